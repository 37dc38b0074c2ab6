"""Ends a training after so many steps, so that what follows it is seen."""
