"""Forward mode puts the derivative of each line beside it.

A variable that depends on a parameter goes with its tangent, `x` with `x_dot`: its derivative along the
direction that is given. This is AD16, with two names for a pair.

    y = x * k
    y_dot = x_dot * k + x * k_dot

A container of values goes with a container of tangents, and both are changed together. A function that is
called gets a `_jvp` of its own. What does not depend on the parameters has no tangent.
"""
