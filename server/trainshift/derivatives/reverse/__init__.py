"""Reverse mode runs the lines of a function, and then their derivatives from the last line to the first.

The first part computes the value. In the second, below a comment, each line adds to the adjoints of what it
reads: `x_bar` is the derivative of the value by `x`. A line `y = x * k` becomes

    x_bar += y_bar * k
    k_bar += y_bar * x

The first to add something is an `=` instead. This is AD19: its references are local variables, and what
stands there after `k ŷ` is the second part. A function that is called returns its value and a pullback, which
makes the adjoints of its parameters from that of the value.
"""
