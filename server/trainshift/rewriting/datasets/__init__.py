"""Facts about the data: how datasets and generators come to be, in which order, and for how long."""
