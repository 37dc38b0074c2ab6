"""Device places: the devices that a script names for its operations with `tf.device`.

In a composed name, parts that change between a loop's iterations are distinguished from unknown ones:
``f"/gpu:{i}"`` in a loop is a tower on each of several GPUs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import product

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Function, Library, Literal, Member
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Statement, argument, arguments
from trainshift.training.optimizers.graphs import Graphs

_DEVICE = ("tensorflow.device", "tensorflow.compat.v1.device")
_SPEC = ("tensorflow.DeviceSpec", "tensorflow.compat.v1.DeviceSpec")
_NAMING = ("device_name", "device_name_or_function", "device_function")
# The arguments of a `DeviceSpec`, in order, and the prefix of each in a device name.
_PARTS = {
    "job": "/job:",
    "replica": "/replica:",
    "task": "/task:",
    "device_type": "/device:",
    "device_index": ":",
}
# Placeholders for a part of a name that changes in a loop, and for an unknown part.
_VARIES, _UNSEEN = "#", "?"
_GPU = re.compile(r"gpu:([\d#?]+)", re.I)
_JOB = re.compile(r"/(?:job:(?!localhost)|task:[^0])", re.I)
_FIELD = re.compile(r"%[ds i]|\{[^{}]*\}")
# Limits on the number of texts and of names; beyond, a place is unknown.
_MOST, _DEEPEST = 64, 12


class Where(Enum):
    """The meaning of a device name for a rank, whose own GPU is the first."""

    HERE = "on that GPU, or on the CPU"
    OTHER_GPU = "on another GPU"
    OTHER_PROCESS = "in another process"
    UNSEEN = "not seen"


class DevicePlace(Struct, frozen=True, eq=False):
    """A call that places operations, and its device."""

    site: Site
    where: Where


class DevicePlaces:
    """The devices on which one script places its operations."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def all(self) -> list[DevicePlace]:
        """Every call that places operations, in text order."""
        return [
            DevicePlace(site, self._where(given, site))
            for site in self._script.sites_calling(frozenset({"device"}))
            if self._places(site) and (given := argument(site.node, 0, *_NAMING)) is not None
        ]

    def _places(self, site: Site) -> bool:
        return any(
            value.name in _DEVICE
            if isinstance(value, Library)
            else isinstance(value, Member) and self._names.is_a(value.owner, "tensorflow.Graph")
            for value in self._names.callee(site)
        )

    def _where(self, given: ast.expr, site: Site) -> Where:
        texts = set(_limited(self._texts(given, site.scope, site.statement, 0)))
        indices = [index for text in texts for index in _GPU.findall(text)]
        if any(map(_JOB.search, texts)):
            return Where.OTHER_PROCESS
        if any(_VARIES in index or index.strip("0?") for index in indices):
            return Where.OTHER_GPU
        if any(_VARIES in text for text in texts) and self._program.fact(Graphs).is_used:
            return Where.OTHER_GPU
        return Where.UNSEEN if any(_VARIES in text or _UNSEEN in text for text in texts) else Where.HERE

    # The texts that an expression may have as its value

    def _texts(self, node: ast.expr, scope: Scope, statement: Statement | None, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            yield _UNSEEN
        elif isinstance(node, ast.Constant):
            yield "" if node.value is None else str(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield from self._joined(node.values, scope, statement, depth)
        elif isinstance(node, ast.FormattedValue | ast.NamedExpr):
            yield from self._texts(node.value, scope, statement, depth + 1)
        elif isinstance(node, ast.BinOp):
            yield from self._combined(node, scope, statement, depth)
        elif isinstance(node, ast.IfExp):
            for part in (node.body, node.orelse):
                yield from self._texts(part, scope, statement, depth + 1)
        elif isinstance(node, ast.BoolOp):
            for part in node.values:
                yield from self._texts(part, scope, statement, depth + 1)
        elif isinstance(node, ast.Lambda):
            yield from self._texts(node.body, scope.facts.scope_of[node], statement, depth + 1)
        elif isinstance(node, ast.Name):
            yield from self._named(node, scope, statement, depth)
        elif isinstance(node, ast.Call):
            yield from self._called(node, scope, statement, depth)
        else:
            yield from self._valued(node, scope, statement)

    def _joined(
        self, parts: Iterable[ast.expr], scope: Scope, statement: Statement | None, depth: int
    ) -> Iterator[str]:
        texts = [set(_limited(self._texts(part, scope, statement, depth + 1))) for part in parts]
        yield from _limited(map("".join, product(*texts)))

    def _combined(
        self, node: ast.BinOp, scope: Scope, statement: Statement | None, depth: int
    ) -> Iterator[str]:
        """Yield the texts of a sum, a format, or arithmetic, for which only changes in a loop matter."""
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
            if isinstance(node.left, ast.JoinedStr) or isinstance(node.left.value, str):
                given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
                yield from self._filled(node.left, given, scope, statement, depth)
                return
        sides = list(self._joined([node.left, node.right], scope, statement, depth))
        plain = isinstance(node.op, ast.Add) and not all(side.strip("#?").isdigit() for side in sides)
        for side in sides:
            yield side if plain else (_VARIES if _VARIES in side else _UNSEEN)

    def _filled(
        self,
        form: ast.expr,
        given: Iterable[ast.expr],
        scope: Scope,
        statement: Statement | None,
        depth: int,
    ) -> Iterator[str]:
        """Yield the texts of a format with its arguments filled in, one after another."""
        parts = [set(_limited(self._texts(part, scope, statement, depth + 1))) for part in given]
        for text in self._texts(form, scope, statement, depth + 1):
            yield from _limited(_fill(text, chosen) for chosen in product(*parts))

    def _named(self, node: ast.Name, scope: Scope, statement: Statement | None, depth: int) -> Iterator[str]:
        bindings = self._names.lookup(node.id, scope, statement)[1]
        if not bindings:
            yield _UNSEEN
        for binding in bindings:
            yield from self._bound(binding, depth + 1)

    def _bound(self, binding: Binding, depth: int) -> Iterator[str]:
        if binding.kind == "function" and binding.inner is not None:
            yield from self._returned(binding.inner, depth)
        elif binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            sites, elsewhere = self._names.callers(binding.inner)
            given = [self._names.argument(site, binding.inner, binding.target.arg) for site in sites]
            for site, each in zip(sites, given, strict=True):
                if each is not None:
                    yield from self._texts(each, site.scope, site.statement, depth)
            if binding.value is not None and (elsewhere or None in given):
                yield from self._texts(binding.value, binding.scope, binding.statement, depth)
            elif elsewhere:
                yield _UNSEEN
        elif binding.kind == "element":
            found = self._names.bound(binding)
            # A concatenation starts from an empty text.
            known = [value.value for value in found if isinstance(value, Literal)]
            whole = len(known) == len(found) and not any(each in (None, "") for each in known)
            yield from map(str, known) if known and whole else (_VARIES,)
        elif binding.statement is not None and isinstance(binding.statement.node, ast.AugAssign):
            yield _VARIES
        elif binding.kind == "value" and binding.value is not None and not binding.path:
            yield from self._texts(binding.value, binding.scope, binding.statement, depth)
        else:
            yield _UNSEEN

    def _called(self, node: ast.Call, scope: Scope, statement: Statement | None, depth: int) -> Iterator[str]:
        names = self._names.full_names(node.func, scope, statement)
        functions = self._names.called_functions(self._script.site_of(node))
        if "builtins.str" in names and node.args:
            yield from self._texts(node.args[0], scope, statement, depth + 1)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "format" and not names:
            yield from self._filled(node.func.value, arguments(node), scope, statement, depth)
        elif not names.isdisjoint(_SPEC):
            yield from self._specified(node, scope, statement, depth)
        elif functions:
            for function in functions:
                yield from self._returned(function, depth + 1)
        else:
            given = list(self._joined(arguments(node), scope, statement, depth))
            yield _VARIES if any(_VARIES in text for text in given) else _UNSEEN

    def _specified(
        self, node: ast.Call, scope: Scope, statement: Statement | None, depth: int
    ) -> Iterator[str]:
        """Yield the device name of a `DeviceSpec`, as far as it matters."""
        parts: list[ast.expr] = []
        for index, (key, lead) in enumerate(_PARTS.items()):
            given = argument(node, index, key)
            if given is not None:
                parts += [ast.Constant(lead), given]
        yield from self._joined(parts, scope, statement, depth)

    def _returned(self, function: Scope, depth: int) -> Iterator[str]:
        for value, statement in function.returns:
            yield from self._texts(value, function, statement, depth)

    def _valued(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Iterator[str]:
        """The texts among the values of another expression, such as an element of a list."""
        for value in self._names.values(node, scope, statement):
            if isinstance(value, Literal) and isinstance(value.value, str) and value.value:
                yield value.value
            elif isinstance(value, Function):
                yield from self._returned(value.scope, _DEEPEST)
            else:
                yield _UNSEEN


def _limited(texts: Iterable[str]) -> Iterator[str]:
    """Yield the first texts up to a limit, and an unknown one if there are more."""
    for number, text in enumerate(texts):
        if number == _MOST:
            yield _UNSEEN
            return
        yield text


def _fill(text: str, parts: Iterable[str]) -> str:
    """A text with its fields filled in, one after another."""
    left = iter(parts)
    return _FIELD.sub(lambda _: next(left, _UNSEEN), text)
