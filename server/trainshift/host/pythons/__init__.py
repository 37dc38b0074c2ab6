"""Pythons of this machine: their TensorFlow, Keras and Horovod, and what builds those that they lack."""
