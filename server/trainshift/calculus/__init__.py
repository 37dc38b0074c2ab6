"""The calculus of differentiation: its terms, and how they are read, printed, run and transformed.

It knows nothing of Python, TensorFlow or Horovod: here the rules of differentiation are small enough to be
tested on every construct there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainshift.calculus.cps import cps
from trainshift.calculus.cps_meta import cps_shift
from trainshift.calculus.dual import evaluate_dual
from trainshift.calculus.forward import forward
from trainshift.calculus.lexer import CalculusSyntaxError
from trainshift.calculus.machine import Run, Stuck, evaluate
from trainshift.calculus.names import alpha_equal, difference
from trainshift.calculus.parser import parse
from trainshift.calculus.plain import Refused, metacircular
from trainshift.calculus.printer import show
from trainshift.calculus.reverse import reverse, reverse_meta, reverse_shift
from trainshift.calculus.syntax import App, Term


@dataclass(frozen=True)
class Transformation:
    """A set of rules, for any term or for a function from reals to reals, whose derivative they compute."""

    transform: Callable[[Term], Term]
    is_derivative: bool

    def at(self, term: Term, argument: Term) -> Term:
        """The term that applies the transformed term to an argument; raises Refused."""
        if self.is_derivative:
            return App(self.transform(term), argument)
        return self.transform(App(term, argument))


TRANSFORMATIONS = {
    "metacircular": Transformation(metacircular, is_derivative=False),
    "cps-shift": Transformation(cps_shift, is_derivative=False),
    "cps": Transformation(cps, is_derivative=False),
    "forward": Transformation(forward, is_derivative=True),
    "reverse-shift": Transformation(reverse_shift, is_derivative=True),
    "reverse-meta": Transformation(reverse_meta, is_derivative=True),
    "reverse": Transformation(reverse, is_derivative=True),
}
"""All transformations, by their names on the command line."""

__all__ = [
    "TRANSFORMATIONS",
    "CalculusSyntaxError",
    "Refused",
    "Run",
    "Stuck",
    "Term",
    "Transformation",
    "alpha_equal",
    "difference",
    "evaluate",
    "evaluate_dual",
    "parse",
    "show",
]
