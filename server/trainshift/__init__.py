"""Trainshift: turn a single-GPU TensorFlow training script into a Horovod script."""

__version__ = "0.1.0"
