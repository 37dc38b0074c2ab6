"""The part that runs in the script's Python: hooks on TensorFlow and Horovod, installed before it starts."""
