"""The weights from which all ranks start, and the broadcasts that make them equal."""
