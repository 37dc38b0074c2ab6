"""Turns: whether a loop's iterations take new data, or process existing values.

A loop over gradients, optimizers or layers takes none, nor does one that splits the batch of its outer loop
into smaller ones, or steps on it again.  The loop whose iterations take new data is divided.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import is_bar
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Display, Function, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, ChunkSyntax, Statement, children, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.datasets.pipelines import Pipelines
from trainshift.training.loops.steps import VARIABLE_LISTS, Steps
from trainshift.training.loops.what_trains import WhatTrains

NEXT = ("get_next", "next", "next_batch")
"""The functions and methods that ask for the next element."""
_ARITHMETIC = frozenset({"int", "len", "max", "min", "slice"})
# Functions that pass another iterable through unchanged.
_AROUND = {
    "builtins.enumerate", "builtins.iter", "builtins.list", "builtins.reversed", "builtins.sorted",
    "builtins.tuple", "builtins.zip", "itertools.chain", "itertools.zip_longest",
}  # fmt: skip
_NUMBERS = frozenset({"builtins.range", "itertools.count", "itertools.repeat", "tensorflow.range"})
_PARTS = ("items", "keys", "values")
# Objects whose state changes during training.
_STATE = (*api.OPTIMIZERS, *api.MODEL, *api.LAYER, *api.METRIC, *api.MODULE, *api.VARIABLE)
_STATES = frozenset((*VARIABLE_LISTS, "layers", "non_trainable_variables", "non_trainable_weights"))
_TAKEN = ("compute_gradients", "get_gradients")
# Functions that draw the elements of a batch.
_CHOICES = frozenset({"choice", "choices", "integers", "randint", "sample"})


class Gives(IntEnum):
    """The kind of a loop's elements: numbers, parts of the training's state, or possible data."""

    NUMBERS = 0
    STATE = 1
    DATA = 2


class Turns:
    """The data that the iterations of one program's loops take."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._pipelines = program.fact(Pipelines)
        self._cuts: dict[tuple[Statement, bool], bool] = {}

    def gives(self, at: Occurrence) -> Gives:
        """The kind of the elements over which a loop on an expression iterates."""
        return self._gives(at, set())

    def _gives(self, at: Occurrence, seen: set[int]) -> Gives:
        node = at.node
        if id(node) in seen or isinstance(node, ast.Constant):
            return Gives.NUMBERS
        seen.add(id(node))
        if isinstance(node, ast.Call):
            found = self._called(node, at, seen)
            if found is not None:
                return found
        if isinstance(node, ast.Attribute) and node.attr in _STATES:
            return Gives.STATE
        values = self._names.values(*at[:3])
        if values and all(map(self._is_state, values)):
            return Gives.STATE
        parts = self._parts(node)
        if parts is not None:
            return max((self._gives(at.part(each), seen) for each in parts), default=Gives.NUMBERS)
        return max((self._gives(each, seen) for each in self._names.all_sources(at)), default=Gives.DATA)

    def _called(self, node: ast.Call, at: Occurrence, seen: set[int]) -> Gives | None:
        """The kind of a call's elements; None if the names decide it."""
        if node in self._gradients or last_name(node.func) in _TAKEN:
            return Gives.STATE
        names = self._names.full_names(node.func, at.scope, at.statement)
        if names & _NUMBERS:
            return Gives.NUMBERS
        receiver = getattr(node.func, "value", None)
        if not names and last_name(node.func) in _PARTS and receiver is not None and not node.args:
            return self._gives(at.part(receiver), seen)
        if names & _AROUND or any(is_bar(name) or name.startswith("tensorflow.clip_by") for name in names):
            given = [each.value if isinstance(each, ast.Starred) else each for each in node.args]
            return max((self._gives(at.part(each), seen) for each in given), default=Gives.DATA)
        return None

    def _parts(self, node: ast.expr) -> list[ast.expr] | None:
        """The possible alternatives of an expression; None if they are not literal."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return node.elts
        if isinstance(node, ast.Dict):
            return node.values
        if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
            made = (part for part in ast.walk(node.elt) if isinstance(part, ast.Call))
            of_library = all(_is_of_gradients(part) for part in made)
            return [node.generators[0].iter] if of_library else None
        if isinstance(node, ast.Subscript | ast.Starred):
            return [node.value]
        return [node.left, node.right] if isinstance(node, ast.BinOp) else None

    def _is_state(self, value: Value) -> bool:
        if isinstance(value, Function):
            return True
        if isinstance(value, Display) or not self._names.may_be(frozenset({value}), *_STATE):
            return False
        # An iterated object is not a model.
        return not isinstance(value, UserInstance) or not self._names.function_named(value.scope, "__iter__")

    @cached_property
    def _gradients(self) -> set[ast.AST]:
        return {each.site.node for each in self._program.fact(Steps).gradients}

    # The batch of the loop around

    def cuts(self, loop: Statement, by_number: bool = False) -> bool:
        """Return whether each iteration of a loop slices data, other than the outer loop's batch, by its
        index.

        With `by_number`, the index of a `for` counts too.
        """
        if (loop, by_number) not in self._cuts:
            self._cuts[loop, by_number] = self._cut(loop, by_number)
        return self._cuts[loop, by_number]

    def _cut(self, loop: Statement, by_number: bool) -> bool:
        inside = [each for each in loop.walk() if each is not loop]
        read = [(each, part) for each in inside for part in subscripts(each)]
        if not read:
            return False
        names = {name for each in inside for name in _own(each).bound}
        if by_number:
            names |= _targets(loop)
        return any(
            reads(part.slice, names) and self._is_new(Occurrence(part.value, each.scope, each), loop)
            for each, part in read
        )

    def _is_new(self, at: Occurrence, loop: Statement) -> bool:
        return self.gives(at) is Gives.DATA and not self.is_of_batch(at, loop)

    def is_of_batch(self, at: Occurrence, loop: Statement) -> bool:
        """Return whether an expression is computed from the batch of the outer loop's iteration."""
        outer = self.around(loop)
        return outer is not None and any(self._is_taken(each, outer) for each in self._behind(at))

    def around(self, loop: Statement) -> Statement | None:
        """The training loop around another, or around the calls of its function."""
        trains = self._program.fact(WhatTrains)
        waiting, seen = [loop.parent], {loop}
        if loop.parent is None or loop.parent.scope is not loop.scope:
            waiting = [*self._calling(loop)]
        while waiting:
            each = waiting.pop(0)
            if each is None or each in seen:
                continue
            seen.add(each)
            if isinstance(each.node, LOOPS) and trains.statement_trains(each):
                return each
            if each.parent is not None and each.parent.scope is each.scope:
                waiting.append(each.parent)
            else:
                waiting += self._calling(each)
        return None

    def _calling(self, statement: Statement) -> Iterator[Statement]:
        function = statement.scope.function()
        if function is not None:
            yield from (site.statement for site in self._names.callers(function)[0])

    def _behind(self, at: Occurrence) -> Iterator[Occurrence]:
        """An expression, its parts, and all of their sources."""

        def behind(each: Occurrence) -> Iterator[Occurrence]:
            parts = [part for part in children(each.node) if isinstance(part, ast.expr)]
            parts += [word.value for word in each.node.keywords] if isinstance(each.node, ast.Call) else []
            yield from map(each.part, parts)
            step = self._names.steps_back(each)
            yield from (*step.sources, *step.within) if step is not None else ()

        return reachable([at], behind, lambda each: id(each.node))

    def _is_taken(self, at: Occurrence, loop: Statement) -> bool:
        """Return whether a name holds data that an iteration of a loop takes."""
        return isinstance(at.node, ast.Name) and any(
            self._hands_out(loop)
            if each.statement is loop
            else each.statement is not None
            and each.value is not None
            and loop in each.statement.ancestors()
            and self._takes(Occurrence(each.value, each.scope, each.statement), loop)
            for each in self._names.bindings(at)
        )

    def _hands_out(self, loop: Statement) -> bool:
        """Return whether a loop iterates over the batches of a dataset, or of a generator of the script."""
        if not isinstance(loop.node, ast.For | ast.AsyncFor):
            return False
        root = self._pipelines.read(Occurrence(loop.node.iter, loop.scope, loop))
        nodes = list(self._pipelines.upstream(root))
        if any(node.is_dataset and node.operation for node in nodes):
            return True
        values = [value for node in nodes for value in self._names.values(*node.at[:3])]
        calls = [node.at.node for node in nodes if isinstance(node.at.node, ast.Call)]
        functions = [
            each for call in calls for each in self._names.called_functions(self._script.site_of(call))
        ]
        return any(each.is_generator for each in functions) or any(
            isinstance(value, UserInstance) and self._names.function_named(value.scope, "__getitem__")
            for value in values
        )

    def _takes(self, at: Occurrence, loop: Statement) -> bool:
        """Return whether an expression takes the next batch, or slices one by a loop's index or a draw."""
        inside = [each for each in loop.walk() if each.scope is loop.scope]
        names = made_of(_targets(loop), inside)
        for part in ast.walk(at.node):
            if isinstance(part, ast.Call) and last_name(part.func) in NEXT:
                return True
            if isinstance(part, ast.Subscript) and (
                reads(part.slice, names)
                or any(
                    isinstance(each.node, ast.Call) and last_name(each.node.func) in _CHOICES
                    for each in self._behind(at.part(part.slice))
                )
            ):
                return True
        return False


def _is_of_gradients(call: ast.Call) -> bool:
    """Return whether a call's result is not data: it clips or scales a gradient, or has a gradient's
    shape.
    """
    name = last_name(call.func)
    return name.startswith(("clip_by", "zeros", "ones")) or name in ("Variable", "cast", "divide", "multiply")


class _Own(NamedTuple):
    """The names that a statement itself binds, and the subscripts that it reads."""

    bound: list[str]
    subscripts: list[ast.Subscript]


def subscripts(statement: Statement) -> list[ast.Subscript]:
    """The subscripts that a statement itself reads, without those of its blocks."""
    return _own(statement).subscripts


def _own(statement: Statement) -> _Own:
    known = statement.scope.facts.once(_none_yet)
    if statement not in known:
        own = known[statement] = _Own([], [])
        for part in statement.own_parts():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                own.bound.append(part.id)
            elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                own.subscripts.append(part)
    return known[statement]


def _none_yet(chunk: ChunkSyntax) -> dict[Statement, _Own]:
    """The cache for the statements of one chunk, valid as long as its text is unchanged."""
    return {}


def _targets(loop: Statement) -> set[str]:
    """The names that each iteration of a `for` binds."""
    target = getattr(loop.node, "target", None)
    return {each.id for each in ast.walk(target) if isinstance(each, ast.Name)} if target else set()


def made_of(names: set[str], inside: list[Statement]) -> set[str]:
    """The names in a loop that are computed from some names, by arithmetic alone."""
    found, size = set(names), 0
    while len(found) > size:
        size = len(found)
        for statement in inside:
            node = statement.node
            if isinstance(node, ast.Assign) and reads(node.value, found) and is_arithmetic(node.value):
                targets = (each for target in node.targets for each in ast.walk(target))
                found.update(each.id for each in targets if isinstance(each, ast.Name))
    return found


def is_arithmetic(node: ast.expr) -> bool:
    """Return whether an expression only works out numbers."""
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Call | ast.Subscript)]
    return all(isinstance(part, ast.Call) and last_name(part.func) in _ARITHMETIC for part in parts)


def reads(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression reads one of these names."""
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
