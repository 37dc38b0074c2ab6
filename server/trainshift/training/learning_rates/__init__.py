"""Learning rates: the places with the value of a rate, its cases, and its factors."""
