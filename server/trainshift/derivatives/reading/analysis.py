"""Find all functions that a derivative needs, and their active variables."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from trainshift.derivatives.reading.activity import spread_to_aliases, spread_to_kept
from trainshift.derivatives.reading.function import Function, Rows, Summary
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.library_effects import ArrayPolicy
from trainshift.derivatives.reading.list_concat import tell_joined
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.rename_bound import dotted_in, rename_bound
from trainshift.derivatives.reading.result import refused_at
from trainshift.derivatives.reading.sharing import Sharing, changes_something, summarized
from trainshift.derivatives.tables import table
from trainshift.derivatives.tables.helpers import OF_TAPES
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.desugar_calls import desugar_calls
from trainshift.python.syntax.call_binding import parameters
from trainshift.python.values.points_to import PointsTo

# Each pass makes variables active, joins kinds, or is one of the last. More passes than this per variable
# do not terminate.
READINGS_FOR_A_NAME = 8
# Annotations of dicts.
_DICTS = frozenset(
    ("builtins.dict", "typing.Dict", "typing.Mapping", "typing.MutableMapping", "collections.abc.Mapping")
)


class Analysis:
    """All functions that a derivative needs, and a fixed point of their active variables.

    `wrt` are the parameters of the function at `start` that are differentiated by, `made` is the name of the
    new function. `helpers` and `needs` are the callees and the imports of the new functions.
    """

    reverse: bool
    suffix: str

    def __init__(self, module: Module, start: str, wrt: Sequence[str], rows: Rows, made: str) -> None:
        self.module = module
        self.rows = rows
        self.wrt = list(wrt)
        self.made = made
        self.names: dict[Function, str] = {}
        self.helpers: set[str] = set()
        self.needs: set[str] = set()
        self.functions: dict[str, Function] = {}
        self.arrays = False
        self.tensors = False
        self.captured_bars: dict[tuple[Function, str], str] = {}
        self.dot_names: dict[tuple[Function | None, str], str] = {}
        self._aliases: dict[Function, Sharing] = {}
        self._summaries: dict[Function, Summary] = {}
        self._points: PointsTo | None = None
        self._changes: bool | None = None
        self.start = self.function(start)
        self.start.varied.update(wrt)
        self.settle()

    def function(self, name: str) -> Function:
        """A function of the file, read on first use."""
        if name not in self.functions:
            if self.module.helpers.get(name) in OF_TAPES:
                node = self.module.functions[name]
                said = "a gradient that transposes tangents cannot be differentiated again"
                raise refused_at(node, said)
            node = rename_bound(self.module.functions[name], self.module)
            dotted, taken = dotted_in(node, self.module), self.module.names
            node = desugar_calls(node, dotted, taken, table.CONSTANTS.__contains__)
            self.functions[name] = Function(node, None, self)
        return self.functions[name]

    def settle(self) -> None:
        """Recompute activity and kinds until nothing changes."""
        readings = 0
        while readings <= READINGS_FOR_A_NAME * (1 + sum(len(each.local) for each in self.every())):
            readings += 1
            before = self._state()
            for function in list(self.every()):
                function.forget()
                Reader(function).read()
            if self._state() != before:
                continue
            known = self.arrays
            self.arrays = self._annotated_arrays() or known or any(map(self._is_array, self.all_kinds()))
            if self.arrays != known:
                continue
            if [each for each in self.every() if tell_joined(each)]:
                continue
            self._aliases, self._summaries, self._points, self._changes = {}, {}, None, None
            together = [self._changed_together(each) for each in self.every()]
            together += [spread_to_kept(each) for each in self.every()]
            if not any(together):
                break
        else:
            node = self.start.node
            said = (
                f"{node.name} cannot be analysed: "
                f"after {readings} passes, its active variables are still unknown"
            )
            raise refused_at(node, said)

    def _changed_together(self, function: Function) -> bool:
        """Record a function's mutations through all aliases, and the activity they cause; return whether it
        is new.
        """
        aliases = self.aliases(function)
        around = {each for each in aliases.altered() if each not in function.local}
        found = not around <= function.altered
        function.altered |= around
        if not aliases.shown_by <= function.shown:
            function.shown |= aliases.shown_by
            found = True
        return spread_to_aliases(function, aliases.ever, aliases.changed, aliases.shows) or found

    def all_kinds(self) -> Iterable[Kind]:
        """The kinds of all variables, with those of their elements."""
        for function in self.every():
            for kind in function.kinds.values():
                yield from kind.with_elements()

    def _is_array(self, kind: Kind) -> bool:
        """Return whether values of a kind are arrays: in this file, objects with elements and arithmetic, or
        with a changed slice.
        """
        whole = kind.has("real") or (kind.has("changed") and kind.has("sliced"))
        listed = kind.has("list", "tuple", "dict")
        return kind.has("array") or (whole and kind.has("box") and not listed and self.module.knows_arrays)

    def _annotated_arrays(self) -> bool:
        """Return whether a parameter is annotated as an array or tensor; adds the tags of annotations."""
        found = False
        for function in self.every():
            for each in parameters(function.node.args):
                written = each.annotation
                written = written.value if isinstance(written, ast.Subscript) else written
                dotted = self.module.dotted(written) if written is not None else None
                if dotted in _DICTS:
                    function.kind(each.arg).tell("dict", "box")
                if self.module.has_operators(written):
                    function.kind(each.arg).tell("object")
                if dotted is not None and dotted.startswith(("numpy.", "tensorflow.")):
                    if dotted == "numpy.ndarray":
                        function.kind(each.arg).tell("array")
                    found = True
        return found

    def _state(self) -> object:
        """A snapshot of the analysis: useful names, unified kinds, and their tags."""
        numbers: dict[Kind, int] = {}
        return [
            (
                set(each.varied),
                set(each.useful),
                each.returns,
                each.escapes,
                [
                    (
                        name,
                        [
                            (numbers.setdefault(part, len(numbers)), set(part.words))
                            for part in kind.in_order()
                        ],
                    )
                    for name, kind in each.kinds.items()
                ],
                set(each.value.words),
            )
            for each in self.every()
        ]

    def every(self) -> Iterable[Function]:
        """All functions, each before its inner functions."""
        waiting = list(self.functions.values())[::-1]
        while waiting:
            function = waiting.pop()
            yield function
            waiting.extend(list(function.nested.values())[::-1])

    def is_called(self, function: Function) -> bool:
        """Return whether a function is called by one that is differentiated."""
        lines = (line for each in self.every() for line in each.body)
        return function is not self.start or any(function.name in terms.names_read(line) for line in lines)

    def aliases(self, function: Function) -> Sharing:
        """The possible aliases among the names of a function."""
        if function not in self._aliases:
            self._aliases[function] = Sharing(function)
        return self._aliases[function]

    @property
    def points(self) -> PointsTo:
        """The objects of all functions, in the form to be differentiated."""
        if self._points is None:
            self._points = PointsTo([each.node for each in self.functions.values()], ArrayPolicy(self))
        return self._points

    @property
    def changes(self) -> bool:
        """Return whether a function may change a container or an array at all."""
        if self._changes is None:
            self._changes = any(map(changes_something, self.every()))
        return self._changes

    def summary(self, function: Function) -> Summary:
        """The summary of a function's calls."""
        if function not in self._summaries:
            self._summaries[function] = summarized(function)
        return self._summaries[function]

    def escaping(self) -> list[Function]:
        """The functions that are used as values."""
        return [each for each in self.every() if each.escapes]

    def inside(self, function: Function) -> list[Function]:
        """The functions inside one, at any depth."""
        return [each for each in self.every() if function in each.outer]

    # The results of each mode.

    def functions_made(self) -> list[ast.FunctionDef]:
        """The derivative of the requested function, after all functions that it needs."""
        raise NotImplementedError

    def made_name(self, function: Function) -> str:
        """The name of a function's derivative."""
        if function not in self.names:
            base = f"{function.name}_{self.suffix}"
            if function.parent is not None:
                base = function.fresh(base)
                function.parent.local.add(base)
            self.names[function] = base
        return self.names[function]

    def signature(self, function: Function) -> tuple[list[str], set[str]]:
        """The parameters with a derivative, and those whose current adjoints are passed in."""
        raise NotImplementedError

    def outer_bar(self, owner: Function, name: str) -> str:
        """The name of the adjoint of a captured variable."""
        raise NotImplementedError

    def made_function(self, function: Function) -> list[ast.stmt]:
        """The replacement of an inner function's definition."""
        raise NotImplementedError
