"""The benchmarks of `make bench`: Trainshift's speed against that of peers, in the same run."""
