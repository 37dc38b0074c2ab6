"""Facts about the data: the construction, order and length of datasets and generators."""
