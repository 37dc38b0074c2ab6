"""Datasets and generators: their construction, order and length."""
