"""What `make bench` runs: our speed against that of peers, in the same run."""
