"""Horovod in a program: its names and signatures, and the uses that a script has already."""
