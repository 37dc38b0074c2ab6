"""Where values come from and who calls whom: analyses of a whole program that build on names."""
