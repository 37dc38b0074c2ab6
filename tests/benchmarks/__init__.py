"""The benchmarks of `make bench`: our speed against that of peers, in the same run."""
