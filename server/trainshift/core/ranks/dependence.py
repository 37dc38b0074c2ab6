"""Dependence: which values are not the same on all ranks, and which follow the number of ranks.

A value depends on the rank where it is made of `rank()` and its like, or is chosen by a test of it, through
names, tuples, parameters and returns.  What a collective gives is the same on all ranks, whatever it is
given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.ranks import horovod_api
from trainshift.core.training.horovod import Horovod
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence, Step
from trainshift.python.names.values import Library
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    children,
    last_name,
)

RANK = ("rank", "local_rank", "cross_rank")
SIZE = ("size", "local_size", "cross_size")
COLLECTIVE = (
    "allreduce", "allreduce_", "grouped_allreduce", "grouped_allreduce_", "allgather", "allgather_object",
    "grouped_allgather", "broadcast", "broadcast_", "broadcast_object", "broadcast_variables",
    "broadcast_global_variables", "alltoall", "reducescatter", "grouped_reducescatter", "join", "barrier",
)  # fmt: skip
"""What all ranks have to call, or none."""
# By which launchers tell a process its number, and what gives it without Horovod.
_NUMBERS = ("RANK", "PROCID", "TASK_INDEX")
_GIVING = ("Get_rank",)
# What gives results that do not follow from how much of them is shown.
_GIVING_RESULTS = frozenset({"fit", "fit_generator", "evaluate", "predict", "train_on_batch", "compile"})


class Dependence:
    """What depends on the rank, or on the number of ranks, in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._known: dict[bool, dict[tuple[ast.expr, Scope], bool]] = {True: {}, False: {}}

    @cached_property
    def is_judged(self) -> bool:
        """Whether a file of the program imports Horovod for TensorFlow."""
        names = (
            name
            for script in self._script.scripts
            for binding in script.imports
            for name in (binding.full_name, getattr(binding.target, "name", ""))
        )
        return any(
            name == door or name.startswith(f"{door}.") for name in names for door in horovod_api.DOORS
        )

    def on_rank(self, at: Occurrence) -> bool:
        """Whether an expression may have another value on another rank because of its number."""
        return self._depends(at, by_rank=True)

    @cached_property
    def cuts(self) -> list[Occurrence]:
        """The subscripts by the number of a rank: what takes its rows, but not its GPU or its variables."""
        subscripts = self._program.fact(ExpressionsByKind).of(ast.Subscript)
        return [
            at
            for at in subscripts
            if isinstance(at.node, ast.Subscript)
            and isinstance(at.node.ctx, ast.Load)
            and self.on_rank(at.part(at.node.slice))
            and _takes_rows(at.node)
        ]

    def on_size(self, at: Occurrence) -> bool:
        """Whether an expression depends on the number of ranks."""
        return self._depends(at, by_rank=False)

    def _depends(self, at: Occurrence, by_rank: bool) -> bool:
        known = self._known[by_rank]

        def sources(each: Occurrence) -> Iterable[Occurrence]:
            return () if _key(each) in known else self._parts(each, by_rank)

        if _key(at) not in known:
            seen = set[tuple[ast.expr, Scope]]()
            for each in reachable([at], sources, _key, seen):
                if known.get(_key(each)) or self._gives(each, by_rank):
                    known[_key(at)] = True
                    break
            else:
                known.update(dict.fromkeys(seen, False))
        return known[_key(at)]

    def _gives(self, at: Occurrence, by_rank: bool) -> bool:
        """Whether an expression is itself the number of the rank, or that of all."""
        node = at.node
        if isinstance(node, ast.Call):
            if node in self._calls(RANK if by_rank else SIZE):
                return True
            if by_rank and last_name(node.func) in _GIVING:
                return True
            return by_rank and reads_number(node)
        if isinstance(node, ast.Name | ast.Attribute):
            functions = RANK if by_rank else SIZE
            return last_name(node) in functions and self.is_function(at, functions)
        return by_rank and reads_number(node)

    def is_function(self, at: Occurrence, functions: tuple[str, ...]) -> bool:
        """Whether an expression is one of Horovod's functions itself, which is meant to be called (HZ25)."""
        values = self._names.values(*at[:3])
        return bool(values) and all(
            isinstance(each, Library)
            and each.name.startswith("horovod.")
            and each.name.rpartition(".")[2] in functions
            for each in values
        )

    def _calls(self, functions: tuple[str, ...]) -> dict[ast.Call, Site]:
        return self._by_rank if functions is RANK else self._by_size

    @cached_property
    def _by_rank(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self._horovod.calls(*RANK)}

    @cached_property
    def _by_size(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self._horovod.calls(*SIZE)}

    @cached_property
    def _equal(self) -> set[ast.Call]:
        return {site.node for site in self._horovod.calls(*COLLECTIVE)}

    def parts(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield what an expression has its value from, one step back, and the tests that choose it."""
        return self._parts(at, by_rank=False)

    def _parts(self, at: Occurrence, by_rank: bool) -> Iterator[Occurrence]:
        node = at.node
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Call):
            yield from self._of_call(node, at, by_rank)
            return
        if isinstance(node, ast.Name | ast.Attribute):
            if self._names.member_of_library(node):
                return
            step = self._names.steps_back(at)
            sources = step.sources if step is not None else ()
            yield from sources
            if len(sources) > 1:
                yield from (test for each in sources for test in tests_around(each.statement, at.statement))
            if isinstance(node, ast.Attribute) and not sources:
                yield at.part(node.value)
            return
        if by_rank and isinstance(node, ast.Compare) and _asks_none(node):
            # Whether a launcher tells a process its number, it tells all of them.
            step = self._names.steps_back(at.part(node.left)) or Step((at.part(node.left),))
            if step.sources and all(reads_number(each.node) for each in step.sources):
                return
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant):
                step = self._names.steps_back(at)
                sources = step.sources if step is not None else ()
                yield from sources
                if len(sources) > 1:
                    yield from (
                        test for each in sources for test in tests_around(each.statement, at.statement)
                    )
                if step is not None and not step.unseen:
                    return
            # Which element it is, only the run tells.
            yield at.part(node.slice)
            yield at.part(node.value)
            return
        for child in children(node):
            if isinstance(child, ast.expr):
                yield at.part(child)
            elif isinstance(child, ast.comprehension):
                inner = Occurrence(child.iter, at.scope.facts.scope_of.get(node, at.scope), at.statement)
                yield inner
                # Which elements there are, its tests tell.
                yield from (inner._replace(node=test) for test in child.ifs)

    def _of_call(self, node: ast.Call, at: Occurrence, by_rank: bool) -> Iterator[Occurrence]:
        if node in self._equal:
            return
        site = self._script.site_of(node)
        functions = self._names.called_functions(site)
        for function in functions:
            for value, where in function.returns:
                yield Occurrence(value, function, where)
                if len(function.returns) > 1:
                    yield from tests_around(where, None)
            if function.is_generator:
                yield from map(at.part, arguments(node))
        if functions:
            return
        callee = self._names.callee(site)
        if by_rank and any(isinstance(each, Library) and api.is_class(each.name) for each in callee):
            return
        if last_name(node.func) in _GIVING_RESULTS:
            return
        if isinstance(node.func, ast.Attribute) and not self._names.member_of_library(node.func):
            yield at.part(node.func.value)
        shown = self._program.fact(Libraries).called(site, Role.PRINTS)
        silencing = shown.text("argument") if shown is not None else ""
        quiet = argument(node, None, silencing) if silencing else None
        yield from (at.part(given) for given in arguments(node) if given is not quiet)


def _key(at: Occurrence) -> tuple[ast.expr, Scope]:
    return at.node, at.scope


def tests_around(statement: Statement | None, beside: Statement | None) -> Iterator[Occurrence]:
    """The tests of the `if` around a statement, in its function, that are not around another one as well."""
    if statement is None:
        return
    common = set(beside.ancestors()) if beside is not None else set()
    for each in statement.ancestors():
        if each.scope is statement.scope and each not in common and isinstance(each.node, ast.If):
            yield Occurrence(each.node.test, each.scope, each)


def _takes_rows(node: ast.Subscript) -> bool:
    """Whether a subscript by rank cuts data, and does not choose a GPU or a variable of the environment."""
    text = ast.unparse(node.value).lower()
    return "gpu" not in text and "device" not in text and "environ" not in text


def _asks_none(node: ast.Compare) -> bool:
    """Whether a comparison asks only whether there is a value: ``x is None``."""
    given = node.comparators[0]
    return (
        isinstance(node.ops[0], ast.Is | ast.IsNot)
        and isinstance(given, ast.Constant)
        and given.value is None
    )


def reads_number(node: ast.expr) -> bool:
    """Whether an expression reads the number of a process from its environment."""
    if isinstance(node, ast.Call):
        return any(map(_numbers, node.args))
    return isinstance(node, ast.Subscript) and _numbers(node.slice)


def _numbers(node: ast.expr) -> bool:
    """Whether it names the variable by which a launcher tells a process its number."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and value.isupper() and value.endswith(_NUMBERS)
