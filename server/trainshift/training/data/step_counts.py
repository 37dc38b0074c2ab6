"""Step counts: the arguments for numbers of steps in a script's training calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Unknown
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument
from trainshift.training.data.loop_iterables import Iterated
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops

# Constructors with arguments that count the steps of a training.
_COUNTING = {
    "tensorflow.estimator.StopAtStepHook": ("num_steps", "last_step"),
    "tensorflow.estimator.TrainSpec": ("max_steps",),
}


class StepCount(Struct, frozen=True, eq=False):
    """A number of steps: its call, the parameter's name, and assumptions about it.

    With `optional`, None is also allowed, and means all of them.
    """

    site: Site
    node: ast.expr
    what: str
    optional: bool = False
    doubt: str = ""


def stays(count: ast.expr) -> bool:
    """Return whether a number of steps must stay: 1, whose share would be 0, or -1 or None for all."""
    try:
        return ast.literal_eval(count) in (1, -1, None)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


class StepCounts:
    """The numbers of steps of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def taken(self) -> list[StepCount]:
        """The arguments of `take` on datasets that a training loop iterates."""
        iterated, names = self._program.fact(Iterated), self._program.names
        found = []
        for site in self._program.script.sites_named("take"):
            node = argument(site.node, 0, "count")
            if site not in iterated.takes or node is None or iterated.splits(site):
                continue
            assert isinstance(site.node.func, ast.Attribute)
            receiver = names.site_values(site.node.func.value, site)
            known = names.may_be(receiver, *api.DATASET)
            if known or any(isinstance(value, Unknown) for value in receiver):
                name = self._program.script.text(site.node.func.value, site)
                doubt = "" if known else f"{name} is assumed to be a dataset"
                found.append(StepCount(site, node, "batches taken", doubt=doubt))
        return found

    @cached_property
    def given(self) -> list[StepCount]:
        """The arguments that count the steps of `fit`, of an Estimator and of hooks."""
        return [*self._of_fits(), *self._of_estimators(), *self._of_hooks()]

    def _of_fits(self) -> Iterator[StepCount]:
        for fit in self._program.fact(Fits).fits:
            if divides_epochs(self._program, fit.site.statement, fit.given("epochs")):
                continue
            yield from _counts(fit.site, {"steps_per_epoch": fit.given("steps_per_epoch")})

    def _of_estimators(self) -> Iterator[StepCount]:
        for loop in self._program.fact(Loops).own:
            for site in loop.sites if loop.pattern is Pattern.ESTIMATOR else ():
                signature = api.method("tensorflow.estimator.Estimator", site.name)
                if signature is not None:
                    names = ("steps", "max_steps")
                    yield from _counts(
                        site, {name: argument(site.node, signature.position(name), name) for name in names}
                    )

    def _of_hooks(self) -> Iterator[StepCount]:
        for site in self._program.script.sites_calling(api.last_names(*_COUNTING)):
            names = self._program.names.full_names(site.node.func, site.scope, site.statement)
            for name in names & _COUNTING.keys():
                signature = api.constructor(name)
                for word in _COUNTING[name] if signature is not None else ():
                    assert signature is not None
                    yield from _counts(site, {word: argument(site.node, signature.position(word), word)})


def divides_epochs(program: Program, statement: Statement, given: ast.expr | None) -> bool:
    """Return whether the script itself gives each rank fewer epochs, by an argument or by outer loops."""
    epochs = [(each.node.iter, each) for each in statement.ancestors() if isinstance(each.node, ast.For)]
    if given is not None:
        epochs.append((given, statement))
    return any(program.fact(Horovod).divided(node, each.scope, each) for node, each in epochs)


def _counts(site: Site, given: dict[str, ast.expr | None]) -> Iterator[StepCount]:
    for name, node in given.items():
        if node is not None:
            yield StepCount(site, node, name, optional=True)
