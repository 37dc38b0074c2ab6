"""Pythons on this machine: their TensorFlow, Keras and Horovod, and the commands for missing ones."""
