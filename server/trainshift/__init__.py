"""Trainshift: a single-GPU TensorFlow training script becomes a Horovod script."""

__version__ = "0.1.0"
