"""The domain of the analysis: what is known of a value, joined where branches meet."""
