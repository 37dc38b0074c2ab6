"""The calculus of differentiation: its terms, and how they are read, printed, run and transformed."""
