"""Loop kinds: the patterns of training, and the attributes of a training loop.

The patterns of loops are those of spec.md 2; `loop_reader.py` finds the loops of one script, and `loops.py`
joins them over a program.
"""

from __future__ import annotations

import ast
from enum import Enum

from msgspec import Struct, field

from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.loops.steps import Tape

FITTING = ("fit", "fit_generator", "train_on_batch")


class Pattern(Enum):
    """A pattern of training. The rules handle the first five."""

    GRAD_TAPE = "GradTape"
    OPTIMIZER = "Optimizer"
    ESTIMATOR = "Estimator"
    SESSION = "Session"
    MONITORED_SESSION = "MonitoredSession"
    STRATEGY = "tf.distribute"
    MINIMIZE = "minimize"
    BY_HAND = "weights assigned by hand"
    LIBRARY = "a library that hides the fit"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The name of the pattern in messages."""
        return _WORDS.get(self, self.value)


_WORDS = {
    Pattern.GRAD_TAPE: "GradientTape",
    Pattern.OPTIMIZER: "model.fit",
    Pattern.SESSION: "TF1 session",
    Pattern.MONITORED_SESSION: "monitored session",
}
KNOWN_PATTERNS = frozenset(list(Pattern)[:5])
SESSION_PATTERNS = frozenset({Pattern.SESSION, Pattern.MONITORED_SESSION})
# Patterns whose operations run in TF1 sessions.
GRAPH_PATTERNS = frozenset({Pattern.ESTIMATOR, *SESSION_PATTERNS})


class Loop(Struct, eq=False):
    """One training loop of `script`.

    `sites` are the calls that update the weights.  `statement` is the outermost `for` or `while` around them,
    in their function or in the one that calls it; the first call's own statement if there is none (a `fit` is
    a loop in itself).  `origin` is the call that decides the pattern if it is a different one (the strategy).
    `certain` is false if the script does not show that the receiver is a model, and `likely` is false if
    there is no evidence for it at all.
    """

    pattern: Pattern
    script: Script
    sites: list[Site]
    statement: Statement
    models: list[Occurrence] = field(default_factory=list)
    optimizers: list[Occurrence] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)
    origin: Site | None = None
    certain: bool = True
    likely: bool = True

    @property
    def function(self) -> Scope | None:
        """The function around the loop, not counting lambdas; None for the module's own code."""
        return named_function(self.sites[0].scope)

    @property
    def is_call(self) -> bool:
        """Return whether one call is the whole loop (`fit`, `train`), without a `for` or `while` of the
        script.
        """
        return self.sites[0].name in ("fit", "fit_generator", "train", "train_and_evaluate")

    @property
    def span(self) -> Span:
        """The span in `script` to which messages point: the header of the `for` or `while`, or the call."""
        site = self.sites[0]
        if not self.is_call and is_loop(self.statement) and self.statement.scope is site.statement.scope:
            return header(self.script, self.statement)
        return self.script.span(site.node, site)

    @property
    def model(self) -> str:
        """The first model's expression; empty if it is unknown."""
        return ast.unparse(self.models[0].node) if self.models else ""

    @property
    def call(self) -> str:
        """The call that trains, as shown in messages: ``model.fit(...)``."""
        site = self.sites[0]
        return f"{one_line(self.script.text(site.node.func, site))}(...)"


def header(script: Script, statement: Statement) -> Span:
    """The first line of a `for` or `while`, up to its iterable or test; the whole span of any other
    statement.
    """
    span, node = script.statement_span(statement), statement.node
    last = getattr(node, "iter", None) or (node.test if isinstance(node, ast.While) else None)
    return span if last is None else Span(span.start, script.span(last, statement).end)


def is_loop(statement: Statement) -> bool:
    """Return whether the statement is a `for` or a `while`."""
    return isinstance(statement.node, LOOPS)


def named_function(scope: Scope) -> Scope | None:
    """The innermost enclosing function that is not a lambda; None for the module's own code."""
    function = scope.function()
    while function is not None and not function.name:
        function = function.parent.function() if function.parent is not None else None
    return function


def outermost_loop(script: Script, site: Site) -> Statement:
    """The outermost loop statement around a call, in its function or in the caller."""
    seen: set[Scope] = set()
    statement, scope = site.statement, site.scope
    while True:
        outermost = [each for each in statement.path() if is_loop(each) and each.scope is statement.scope]
        if outermost:
            return outermost[-1]
        function = scope.function()
        if function is None or function in seen or site.name in FITTING:
            return site.statement
        seen.add(function)
        callers = [each for each in script.names.callers(function)[0] if each.scope.function() != function]
        if not callers:
            return site.statement
        statement, scope = callers[0].statement, callers[0].scope


def told_what_to_train_on(script: Script, loop: Loop) -> list[Site]:
    """The calls that give an Estimator its input function for training; none for other loops."""
    if loop.pattern is not Pattern.ESTIMATOR:
        return []
    return [*(site for site in loop.sites if site.name == "train"), *script.sites_named("TrainSpec")]
