"""The part that runs in the Python of the script: hooks on TensorFlow and Horovod, laid before it starts."""
