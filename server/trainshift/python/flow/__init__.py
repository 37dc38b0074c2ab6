"""Control flow: the graph of a piece of code, how a block completes, and analyses that run on the graph."""
