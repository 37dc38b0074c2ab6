"""Names of TensorFlow, its members, and the objects that TF05 and TF10 ask for."""
