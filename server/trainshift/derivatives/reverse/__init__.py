"""Reverse mode: a primal pass and an adjoint pass over the lines of a function (AD32)."""
