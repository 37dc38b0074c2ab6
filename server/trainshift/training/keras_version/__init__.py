"""The Keras that a program runs on, and the names that differ between its versions."""
