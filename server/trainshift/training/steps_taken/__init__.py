"""Numbers of steps that depend on the number of ranks: counters, lengths, and schedules of rates."""
