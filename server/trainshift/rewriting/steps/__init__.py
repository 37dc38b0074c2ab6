"""Steps of training that are written out as what they do."""
