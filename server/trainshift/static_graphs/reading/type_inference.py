"""Type inference from uses: names with uses that only tensors support."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance
from trainshift.python.syntax.call_binding import bind_call
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Statement, arguments, own_parts
from trainshift.static_graphs.domain.abstract_values import NUMBERS, AbstractValue, Dim, python, tensor
from trainshift.static_graphs.reading.entries import forward_of
from trainshift.static_graphs.reading.frame import Frame
from trainshift.static_graphs.reading.function import Mode, StaticFunction
from trainshift.static_graphs.tables import api

_ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE
# Functions that also make tensors from numbers.
_OF_NUMBERS = frozenset({"to_tensor", "assign", "full", "full_like", "where", "pow"})


# Attributes that NumPy's arrays and tensors have, and nothing else.
_OF_ARRAYS = frozenset({"shape", "ndim"})
# Functions that take a list or tuple of tensors, and raise for anything else in it.
_OF_LISTS = frozenset({"paddle.stack", "paddle.concat", "paddle.add_n"})


def may_be_told(value: AbstractValue) -> bool:
    """Return whether more of a value may be known by how its name is used."""
    return value.unknown or (value.tensor is not None and value.tensor.shape is None)


class _Sign(Enum):
    """A use of a name, and the types that it implies or excludes."""

    HELD = "it is indexed: not a number"
    TABLE = "it is indexed by several indices: not a number, list or string"
    REPEATED = "it is multiplied: a number, list, string or tensor, but not a dict"
    RECKONED = "numbers are added to it, compared with it or divide it: not a container"
    ARRAY = "it is passed to a NumPy function, and arrays have methods of the same names"
    TENSOR = "only tensors are used like this"


class _Evidence(Struct, frozen=True):
    """The evidence from uses about one function's bindings: tensors, tensors or numbers, and dimensions.

    `compared` are the names that are compared with None.
    """

    tensors: frozenset[Binding] = frozenset()
    numeric: frozenset[Binding] = frozenset()
    ranks: Mapping[Binding, int] = field(default_factory=dict)
    compared: frozenset[str] = frozenset()


class Uses:
    """The facts about names from their uses, function by function."""

    def __init__(self, evaluate: Callable[[ast.expr, Frame], AbstractValue]) -> None:
        self._evaluate = evaluate
        self._known: dict[Scope, _Evidence] = {}

    def by_use(
        self, name: str, statement: Statement | None, function: StaticFunction, value: AbstractValue
    ) -> AbstractValue:
        """Refine a value by the uses of the name bound to it."""
        known = self._evidence(function)
        own = [each for each in function.scope.bindings.get(name, ()) if each.statement is statement]
        rank = next((known.ranks[each] for each in own if each in known.ranks), None)
        if rank is not None and value.tensor is not None and value.tensor.shape is None:
            shaped = replace(value.tensor, shape=(value.tensor.loose,) * rank, loose=Dim.ANY)
            value = replace(value, tensor=shaped)
        if not value.unknown:
            return value
        if known.tensors.isdisjoint(own):
            is_numeric = value.python <= NUMBERS and not known.numeric.isdisjoint(own)
            return replace(value, numeric=True) if is_numeric else value
        shape = (Dim.ANY,) * rank if rank is not None else None
        found = tensor("", shape) if value.tensor is None else AbstractValue(value.tensor)
        sources = value.sources or frozenset({name if statement is None else statement.node})
        found = replace(found, sources=sources, views=value.views)
        may_be_none = "None" in value.python or name in known.compared
        return found.joined(python("None")) if may_be_none else found

    def _evidence(self, function: StaticFunction) -> _Evidence:
        if function.scope not in self._known:
            self._known[function.scope] = _Evidence()  # where it calls itself
            self._known[function.scope] = self._read(function)
        return self._known[function.scope]

    def _read(self, function: StaticFunction) -> _Evidence:
        def bindings(name: str, statement: Statement | None) -> Sequence[Binding]:
            return function.script.names.lookup(name, function.scope, statement)[1]

        joined = _lists_of_tensors(function)
        signs: dict[_Sign, set[Binding]] = {sign: set() for sign in _Sign}
        every = [(each, [*own_parts(each.node)]) for each in function.statements]
        parts = [*_parts(function, every)]
        for statement, nodes in parts:
            for sign, name in self._signs(nodes, statement, function, joined):
                signs[sign].update(bindings(name, statement))
            for node in nodes:
                signs[_Sign.TENSOR].update(_elements_asked(node, statement, function))
        held, tables, repeated, reckoned, arrays, found = signs.values()
        arrays = _and_what_they_are_made_of(arrays, function, methods=True)
        found |= held & reckoned | tables & (reckoned | repeated)
        found = _and_what_they_are_made_of(found - arrays, function) - arrays
        for statement, nodes in parts:
            for one, other in _beside_each_other(nodes):
                if not found.isdisjoint(bindings(other, statement)):
                    reckoned.update(bindings(one, statement))
        ranks: dict[Binding, int] = {}
        for statement, _ in every:
            name, rank = _taken_apart(statement.node)
            known = bindings(name, statement) if name else ()
            ranks.update(dict.fromkeys(known, rank) if len(known) == 1 else {})
        compared = frozenset(name for _, nodes in every for name in _compared_with_none(nodes))
        return _Evidence(frozenset(found), frozenset(reckoned - arrays), ranks, compared)

    def _signs(
        self,
        nodes: list[ast.AST],
        statement: Statement | None,
        function: StaticFunction,
        joined: frozenset[str],
    ) -> Iterator[tuple[_Sign, str]]:
        """Yield the names that the expressions of a statement use, and the kind of use."""
        for node in nodes:
            yield from _signs_of(node)
            if isinstance(node, ast.Call) and not function.is_entry:
                yield from ((_Sign.ARRAY, name) for name in _given_to_numpy(node, function))
        for names in (
            self._handed_as_tensors(nodes, statement, function),
            self._replaced_where_none(nodes, statement, function),
            _only_tensors_in(nodes, statement, function, self._evaluate, joined),
        ):
            yield from ((_Sign.TENSOR, name) for name in names)

    def _handed_as_tensors(
        self, nodes: list[ast.AST], statement: Statement | None, function: StaticFunction
    ) -> Iterator[str]:
        """Yield the names passed to functions of the workspace whose uses only tensors support."""
        names = function.script.names
        for node in nodes:
            func = node.func if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or not isinstance(func, ast.Name | ast.Attribute):
                continue
            given = arguments(node)
            if not any(isinstance(each, ast.Name) for each in given) or names.member_of_library(func):
                continue
            callees = self._evaluate(func, Frame(function.scope, statement, {})).things
            scopes = [forward_of(function.script, each) for each in callees]
            wanted = [self._tensors_handed(each, node, function) for each in scopes if each is not None]
            if wanted and len(wanted) == len(scopes):
                yield from frozenset.intersection(*wanted)

    def _tensors_handed(self, scope: Scope, call: ast.Call, caller: StaticFunction) -> frozenset[str]:
        """Return the names that a call passes for parameters whose uses only tensors support."""
        if isinstance(scope.node, ast.Lambda) or scope.is_generator:
            return frozenset()
        called = StaticFunction(scope, caller.script.home(scope), caller.mode, caller.why)
        used = self._evidence(called).tensors
        given = bind_call(call, called.node.args, int(called.takes_self)).given
        return frozenset(
            value.id
            for name, value in given.items()
            if isinstance(value, ast.Name)
            and any(each.statement is None and each in used for each in scope.bindings.get(name, ()))
        )

    def _replaced_where_none(
        self, nodes: list[ast.AST], statement: Statement | None, function: StaticFunction
    ) -> Iterator[str]:
        """Yield the names whose None is replaced by a tensor: ``if y is None: y = zeros(2)``."""
        tests: list[tuple[ast.expr, ast.expr]] = [
            (each.test, each.body) for each in nodes if isinstance(each, ast.IfExp)
        ]
        if statement is not None and isinstance(statement.node, ast.If):
            compared = [*_compared_with_none([statement.node.test])]
            tests += [
                (statement.node.test, each.node.value)
                for each in statement.branches["body"]
                if isinstance(each.node, ast.Assign)
                and [getattr(target, "id", "") for target in each.node.targets] == compared
            ]
        for test, value in tests:
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is):
                if self._evaluate(value, Frame(function.scope, statement, {})).is_tensor:
                    yield from _compared_with_none([test])


def _taken_apart(node: ast.stmt) -> tuple[str, int]:
    """The name whose shape is unpacked, and the number of targets; an empty name for any other statement."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return "", 0
    parts, value = node.targets[0].elts, node.value
    is_shape = (
        isinstance(value, ast.Attribute) and value.attr == "shape" and isinstance(value.value, ast.Name)
    )
    if not is_shape or any(isinstance(each, ast.Starred) for each in parts):
        return "", 0
    return value.value.id, len(parts)  # type: ignore[attr-defined]


_Parts: TypeAlias = "list[tuple[Statement, list[ast.AST]]]"


def _parts(function: StaticFunction, every: _Parts) -> Iterator[tuple[Statement | None, list[ast.AST]]]:
    """Yield the expressions of a function by statement, without those under a test of types."""
    if isinstance(function.node, ast.Lambda):
        nodes = [*ast.walk(function.node.body)]
        if not any(map(_tests_type, nodes)):
            yield function.scope.statement, nodes
    has_tests = any(_tests_type(node) for _, nodes in every for node in nodes)
    for statement, nodes in every:
        if not has_tests or not _is_guarded(statement):
            yield statement, nodes


def _and_what_they_are_made_of(
    found: Iterable[Binding], function: StaticFunction, *, methods: bool = False
) -> set[Binding]:
    """The bindings, and those of names that they alias or scale (``name * 2``), or whose methods they
    call.
    """

    def made_of(binding: Binding) -> Iterator[Binding]:
        value = binding.value if binding.kind == "value" and not binding.path else None
        if methods and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        for name in _parts_named(binding, value):
            yield from function.script.names.lookup(name, function.scope, binding.statement)[1]
        yield from _taken_from(binding, function)

    return set(reachable(found, made_of))


def _taken_from(binding: Binding, function: StaticFunction) -> Iterator[Binding]:
    """The bindings of the names in a container, if a binding's value is an element that is taken from it."""
    at = Occurrence(binding.value, binding.scope, binding.statement) if binding.value is not None else None
    if at is None or binding.kind not in ("value", "element"):
        return
    taken = isinstance(at.node, ast.Subscript)
    container = at.node.value if isinstance(at.node, ast.Subscript) else at.node
    if (taken or binding.path or binding.kind == "element") and _is_only_read(container, function):
        step = function.script.names.source_of(binding)
        if taken and not binding.path and len(step.sources) == 1:
            step = function.script.names.steps_back(at) or step
        if not step.unseen and (binding.kind == "element" or len(step.sources) == 1):
            yield from _named_in(step.sources, function)


def _elements_asked(
    node: ast.AST, statement: Statement | None, function: StaticFunction
) -> Iterator[Binding]:
    """The bindings of the name in a container of which an element's method is called that only tensors
    have.
    """
    match node:
        case ast.Call(ast.Attribute(ast.Subscript(container, ctx=ast.Load()) as element, method)):
            if method in api.only_tensors() and _is_only_read(container, function):
                step = function.script.names.steps_back(Occurrence(element, function.scope, statement))
                if step is not None and not step.unseen and len(step.sources) == 1:
                    yield from _named_in(step.sources, function)


def _named_in(sources: Iterable[Occurrence], function: StaticFunction) -> Iterator[Binding]:
    """The bindings of the only names in some expressions of a function."""
    for source in sources:
        name = _only_name(source.node)
        if name is not None and source.scope is function.scope:
            yield from function.script.names.lookup(name, source.scope, source.statement)[1]


def _is_only_read(container: ast.expr, function: StaticFunction) -> bool:
    """Return whether a container is written out here, or has a name under which nothing changes it."""
    if isinstance(container, ast.Tuple | ast.List | ast.Dict):
        return True
    if not isinstance(container, ast.Name):
        return False
    read = 0
    for node in function.own_nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()) | ast.For(iter=ast.Name(id=name)):
                read += name == container.id
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=name)):
                read += name == container.id
            case ast.Call(func=ast.Name(id="len" | "enumerate"), args=[ast.Name(id=name)]):
                read += name == container.id
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=name)), ctx=ast.Store()):
                read -= name == container.id
    named = [each for each in function.own_nodes if isinstance(each, ast.Name) and each.id == container.id]
    return read == sum(isinstance(each.ctx, ast.Load) for each in named)


def _parts_named(binding: Binding, value: ast.expr | None) -> Iterator[str]:
    """Yield the names that may be a binding's value: parts of the value, or of a loop's iterable."""
    statement = binding.statement.node if binding.statement is not None else None
    if isinstance(statement, ast.For) and statement.target is binding.target:
        if isinstance(statement.iter, ast.Tuple | ast.List):
            yield from filter(None, map(_only_name, statement.iter.elts))
    elif statement is not None and value is not None:
        name = _only_name(value)
        if name is not None:
            yield name


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _only_name(node: ast.expr, is_number: Callable[[ast.expr], bool] = _is_constant) -> str | None:
    """The only name in an arithmetic expression with numbers, or in a comparison with one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _only_name(node.operand, is_number)
    sides: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], _ORDER):
        sides = [node.left, *node.comparators]
    names = {_only_name(each, is_number) for each in sides if not is_number(each)}
    return names.pop() if len(names) == 1 else None


def _compared_with_none(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that are compared with None."""
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            if isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:
                yield node.left.id


def _only_tensors_in(
    nodes: list[ast.AST],
    statement: Statement | None,
    function: StaticFunction,
    evaluate: Callable[[ast.expr, Frame], AbstractValue],
    joined: frozenset[str],
) -> Iterator[str]:
    """The names with uses, in expressions of a statement, that only tensors support.

    `joined` are the names of lists of tensors.
    """
    names = function.script.names

    def is_number(part: ast.expr) -> bool:
        if isinstance(part, ast.Attribute | ast.Name):
            return evaluate(part, Frame(function.scope, statement, {})).among(*NUMBERS)
        return _is_constant(part)

    for node in nodes:
        if not isinstance(node, ast.Call):
            if _is_asked_as_tensor(node, statement, function, evaluate):
                yield node.value.id  # type: ignore[attr-defined]
            continue
        func = node.func
        library = names.member_of_library(func) if isinstance(func, ast.Name | ast.Attribute) else ()
        if library:
            for thing in library:
                yield from _given_as_tensors(getattr(thing, "name", ""), node, is_number)
        elif isinstance(func, ast.Attribute):
            name = _only_name(func.value, is_number) or ""
            first = _only_name(node.args[0], is_number) if node.args else None
            if func.attr in api.only_tensors():
                yield name
            elif func.attr == "append" and name in joined and first:
                yield first
            elif first and isinstance(func.value, ast.Name) and name == "self":
                layer = evaluate(func, Frame(function.scope, statement, {}))
                if any(isinstance(each, Instance) and api.layer_returns(each.cls) for each in layer.things):
                    yield first


def _signs_of(node: ast.AST) -> Iterator[tuple[_Sign, str]]:
    """Yield the operand names of an operator, and the kind of use."""
    sides: tuple[ast.expr, ...] = ()
    numbers: type | UnionType = int | float
    match node:
        case ast.Subscript(value=ast.Name(id=name)):
            yield _Sign.HELD, name
            if isinstance(node.slice, ast.Tuple):
                yield _Sign.TABLE, name
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)):
            yield _Sign.RECKONED, name
        case ast.Compare(left=left, ops=[operator, *_], comparators=[right, *_]):
            sides = (left, right) if isinstance(operator, _ORDER) else ()
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Div() | ast.Pow(), right=right):
            sides = left, right
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            sides, numbers = (left, right), float  # A list can be repeated.
            yield from ((_Sign.REPEATED, each.id) for each in sides if isinstance(each, ast.Name))
    if any(isinstance(getattr(each, "value", None), numbers) for each in sides):
        yield from ((_Sign.RECKONED, each.id) for each in sides if isinstance(each, ast.Name))


def _beside_each_other(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that are added or compared: if one is a tensor, the other is a tensor or a
    number.
    """
    for node in nodes:
        pair: tuple[ast.expr, ...] = ()
        if isinstance(node, ast.BinOp):
            pair = node.left, node.right
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], _ORDER):
            pair = node.left, node.comparators[0]
        one, other = (_only_name(each) or "" for each in pair) if pair else ("", "")
        if one and other:
            yield one, other
            yield other, one


def _given_to_numpy(node: ast.Call, function: StaticFunction) -> Iterator[str]:
    """Yield the names passed to a NumPy function."""
    if isinstance(node.func, ast.Attribute | ast.Name):
        library = function.script.names.member_of_library(node.func)
        if any(getattr(thing, "name", "").startswith("numpy.") for thing in library):
            yield from (each.id for each in node.args if isinstance(each, ast.Name))


def _given_as_tensors(full_name: str, node: ast.Call, is_number: Callable[[ast.expr], bool]) -> Iterator[str]:
    if full_name in _OF_LISTS and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
        yield from (_only_name(each, is_number) or "" for each in node.args[0].elts)
    operation = api.function(full_name)
    if operation is None or full_name.rpartition(".")[2] in _OF_NUMBERS:
        return
    for parameter, given in zip(operation.parameters, node.args, strict=False):
        if parameter in operation.tensors:
            yield _only_name(given, is_number) or ""
    for word in node.keywords:
        if word.arg in operation.tensors:
            yield _only_name(word.value, is_number) or ""


def _is_asked_as_tensor(
    node: ast.AST,
    statement: Statement | None,
    function: StaticFunction,
    evaluate: Callable[[ast.expr, Frame], AbstractValue],
) -> bool:
    """Return whether an element or attribute of a name is read that only tensors have."""
    match node:
        case ast.Attribute(value=ast.Name(), attr=name):
            return function.is_entry and name in _OF_ARRAYS  # An entry's NumPy arrays become tensors.
        case ast.Subscript(value=ast.Name(), slice=ast.Tuple(elts=parts)) if any(map(_is_slicing, parts)):
            return True
        case ast.Subscript(value=ast.Name(), slice=index) if not isinstance(index, ast.Slice | ast.Constant):
            # A graph has no index yet, and Python's containers need one.
            frame = Frame(function.scope, statement, {})
            return function.mode is Mode.FULL and evaluate(index, frame).is_tensor
    return False


def _lists_of_tensors(function: StaticFunction) -> frozenset[str]:
    """The names of lists that Paddle joins as lists of tensors, and that only `append` changes."""
    names, scope = function.script.names, function.scope
    joined: set[str] = set()
    harmless: Counter[str] = Counter()
    for node in function.own_nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[_]):
                harmless[name] += 1
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
                harmless[name] += 1
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()):
                harmless[name] += 1
            case ast.Call(func=ast.Attribute() | ast.Name() as func, args=[ast.Name(id=name), *_]):
                if any(getattr(each, "name", "") in _OF_LISTS for each in names.member_of_library(func)):
                    joined.add(name)
                    harmless[name] += 1
    every = Counter(
        each.id for each in function.own_nodes if isinstance(each, ast.Name) and each.id in joined
    )
    return frozenset(
        name
        for name in joined
        if len(scope.bindings.get(name, ())) == 1 and every[name] == harmless[name] + 1
    )


def _is_slicing(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and node.value is ...)


def _is_guarded(statement: Statement) -> bool:
    """Return whether a statement is under a test of types."""
    tests = (getattr(above.node, "test", None) for above in statement.path())
    return any(_tests_type(node) for test in tests if test is not None for node in ast.walk(test))


def _tests_type(node: ast.AST) -> bool:
    name = (
        getattr(node.func, "attr", "") or getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    )
    return name in ("isinstance", "is_tensor", "hasattr", "type")
