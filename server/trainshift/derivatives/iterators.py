"""Iterators that the adjoint pass would go through a second time, when nothing is left of them (AD34).

What an expression may be is known for all functions together, through names, containers and calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.function import CHANGING_METHODS, Function, bound, root_of
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.sources import Sources
from trainshift.derivatives.reverse.control_flow import repeated
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, arguments
from trainshift.python.syntax.unpacking import parts_assigned

_MAKERS = frozenset(
    [*(f"builtins.{each}" for each in ("enumerate", "filter", "iter", "map", "open", "reversed", "zip")),
     "csv.DictReader", "csv.reader", "glob.iglob", "numpy.ndenumerate", "numpy.ndindex", "numpy.nditer",
     "os.scandir", "os.walk", "re.finditer"]
)  # fmt: skip
# Calls in a loop's source that take what is left of an iterator, where others fail.
_TAKING = frozenset(("enumerate", "list", "tuple", "zip"))
_VIEWS = frozenset(("items", "keys", "values"))
_ADDING = CHANGING_METHODS | {"add", "appendleft", "setdefault"}
# What an expression may be: an iterator, or a container that holds one.
_IS, _HOLDS = "is", "holds"
_LAMBDA = "lambda"
_Ways = frozenset[str]
_NONE: _Ways = frozenset()


def makes_iterator(function: Function, node: ast.expr) -> bool:
    """Return whether an expression makes something that can be gone through only once."""
    match node:
        case ast.GeneratorExp():
            return True
        case ast.Call(ast.Attribute(attr="__iter__")):
            return True
        case ast.Call(func):
            dotted = function.dotted(func) or ""
            return dotted in _MAKERS or dotted.startswith(("itertools.", "more_itertools."))
    return False


class Iterators:
    """The variables of some functions that may be iterators, or hold some.

    `given` is a parameter of the first function, or an imported name, whose value may be anything.
    """

    def __init__(self, functions: Iterable[Function], given: str | None = None) -> None:
        self.functions = list(functions)
        self.known: dict[tuple[Function | None, str], _Ways] = {}
        first = _rebound(self.functions[0], given) if given is not None else None
        reads = terms.walk(first) if first is not None else ()
        self._arguments = {id(each) for each in reads if isinstance(each, ast.Name) and each.id == given}
        if given is not None and first is None:
            self.known[self.functions[0].owner(given), given] = _element(frozenset([_HOLDS]))
        size = -1
        while size != (size := sum(map(len, self.known.values()))):
            if self.functions:
                self._read_file(Reader(self.functions[0]))
            for each in self.functions:
                self._read(each)

    def gone_through_again(self, function: Function, reader: Reader) -> Iterator[tuple[ast.expr, str]]:
        """Yield the iterators that the adjoint pass of a function would go through again, with the reason."""
        for each in self.gone_through(function, reader):
            part = next((one for one in terms.walk(each) if self.may_be_iterator(reader, one)), None)
            if isinstance(part, ast.expr):
                yield part, _said(function, part)

    def gone_through(self, function: Function, reader: Reader) -> Iterator[ast.expr]:
        """Yield the sources of loops that the adjoint pass of a function goes through again."""
        for node in terms.own_nodes(function.body):
            sources: list[ast.expr] = []
            if isinstance(node, ast.For) and self._is_active(function, node.body):
                sources = [node.iter]
            elif isinstance(node, COMPREHENSIONS) and reader.value(node):
                sources = [each.iter for each in node.generators]
            yield from filter(repeated, sources)

    def _is_active(self, function: Function, body: list[ast.stmt]) -> bool:
        """Return whether the adjoint pass of a loop may do anything: its body names what is active."""
        names = terms.names_bound(body).union(*map(terms.names_read, body))
        called = function.nested.keys() & names
        return any(map(function.active, names)) or any(
            owner.active(name) for each in called for owner, name in function.nested[each].reached
        )

    def may_be_iterator(self, reader: Reader, node: ast.AST) -> bool:
        """Return whether a node is something kept, such as a variable, and may be an iterator."""
        kept = ast.Name | ast.Subscript | ast.Attribute | ast.IfExp | ast.BoolOp
        return isinstance(node, kept) and _IS in self._ways(reader, node)

    def _tell(self, function: Function, name: str | None, ways: _Ways) -> None:
        if ways and name:
            key = function.owner(name), name
            self.known[key] = self.known.get(key, _NONE) | ways

    def _give(self, function: Function, target: ast.expr, ways: _Ways) -> None:
        """Record the ways of a part of a target."""
        match target:
            case ast.Tuple(elts) | ast.List(elts):
                for each in elts:
                    self._give(function, each, _element(ways))
            case ast.Starred(value):
                self._give(function, value, ways)
            case ast.Name(name):
                self._tell(function, name, ways)
            case _:
                self._tell(function, root_of(target), frozenset([_HOLDS]) if ways else _NONE)

    def _read_file(self, reader: Reader) -> None:
        """Record the ways of the variables of the file."""
        for node in terms.own_nodes(reader.function.whole.module.body):
            parts: list[tuple[ast.expr, ast.expr]] = []
            match node:
                case ast.Assign(targets, value):
                    parts = [each for target in targets for each in parts_assigned(target, value)]
                case ast.AnnAssign(target, _, ast.expr() as value):
                    parts = [(target, value)]
            for one, given in parts:
                ways = self._ways(reader, given) | self._made_by(reader, given)
                for name in terms.names_bound([one]) if ways else ():
                    kept = ways if isinstance(one, ast.Name) else _element(ways)
                    self.known[None, name] = self.known.get((None, name), _NONE) | kept

    def _made_by(self, reader: Reader, node: ast.expr) -> _Ways:
        """The ways of the result of one of the file's functions, called where the file is run."""
        module = reader.function.whole.module
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name not in module.all_functions:
            return _NONE
        inside = list(terms.own_nodes(module.all_functions[name].body))
        if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in inside):
            return frozenset([_IS])
        return self._any(reader, [each.value for each in inside if isinstance(each, ast.Return)])

    def _read(self, function: Function) -> None:
        reader = Reader(function)
        sources = Sources(reader)
        for node in terms.own_nodes(function.body):
            match node:
                case ast.Assign(targets, value):
                    for target in targets:
                        for one, given in parts_assigned(target, value):
                            self._give(function, one, self._ways(reader, given))
                case ast.AnnAssign(target, _, ast.expr() as value) | ast.NamedExpr(target, value):
                    self._give(function, target, self._ways(reader, value))
                case ast.AugAssign(target, _, value):
                    self._give(function, target, self._ways(reader, value) & {_HOLDS})
                case ast.For(target, source) | ast.comprehension(target, source):
                    self._give(function, target, _element(self._ways(reader, source)))
                case ast.Lambda(body=body):
                    ways = self._ways(reader, body)
                    self.known[None, _LAMBDA] = self.known.get((None, _LAMBDA), _NONE) | ways
                case ast.Call(func):
                    for callee in sources.callees(node):
                        for param, value in bound(callee, node):
                            self._tell(callee, param, self._ways(reader, value))
                    if isinstance(func, ast.Attribute) and func.attr in _ADDING:
                        if any(self._ways(reader, each) for each in arguments(node)):
                            self._tell(function, root_of(func.value), frozenset([_HOLDS]))

    def _any(self, reader: Reader, nodes: Iterable[ast.expr | None]) -> _Ways:
        return _NONE.union(*(self._ways(reader, each) for each in nodes if each is not None))

    def _ways(self, reader: Reader, node: ast.expr) -> _Ways:
        """The possible ways of an expression: an iterator, or a container that holds one."""
        function = reader.function
        if isinstance(node, ast.GeneratorExp) and reader.value(node):
            # The derivative writes it as a list.
            return frozenset([_HOLDS]) if self._ways(reader, node.elt) else _NONE
        if makes_iterator(function, node):
            inner = [node.elt] if isinstance(node, ast.GeneratorExp) else arguments(node)  # type: ignore[arg-type]
            ways = self._any(reader, inner)
            deeper = bool(ways) if isinstance(node, ast.GeneratorExp) else _HOLDS in ways
            return frozenset([_IS, _HOLDS] if deeper else [_IS])
        match node:
            case ast.Name(name):
                if id(node) in self._arguments:
                    return _element(frozenset([_HOLDS]))
                return self.known.get((function.owner(name), name), _NONE)
            case ast.Subscript(value, part):
                ways = self._ways(reader, value)
                return _element(ways) | (ways if isinstance(part, ast.Slice) else _NONE)
            case ast.Attribute(value):
                return _element(self._ways(reader, value))
            case ast.Starred(value) | ast.NamedExpr(value=value):
                return self._ways(reader, value)
            case ast.IfExp(_, one, other):
                return self._any(reader, [one, other])
            case ast.BoolOp(values=values):
                return self._any(reader, values)
            case ast.BinOp(one, _, other):
                return self._any(reader, [one, other])
            case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts) | ast.Dict(values=parts):
                return frozenset([_HOLDS]) if self._any(reader, parts) else _NONE
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.DictComp(value=part):
                return frozenset([_HOLDS]) if self._ways(reader, part) else _NONE
            case ast.Call(func):
                return self._called(reader, node, func)
        return _NONE

    def _called(self, reader: Reader, node: ast.Call, func: ast.expr) -> _Ways:
        function = reader.function
        if isinstance(func, ast.Attribute) and function.dotted(func) is None:
            if func.attr in _VIEWS and not node.args:
                # A view shows later changes, also those that the adjoint pass has not undone.
                changes = reader.kind(func.value).changes and not reader.value(func.value)
                return self._ways(reader, func.value) | ([_NONE, frozenset([_IS])][changes])
            return _element(self._ways(reader, func.value))
        if dotted := function.dotted(func):
            if dotted.startswith("."):  # A class of the file, whose objects may keep what it is given.
                return frozenset([_HOLDS]) if self._any(reader, arguments(node)) else _NONE
            holding = dotted in ("builtins.list", "builtins.tuple", "builtins.dict", "builtins.sorted")
            return self._any(reader, node.args) & {_HOLDS} if holding else _NONE
        callees = Sources(reader).callees(node)
        found = [self.known.get((each, each.result), _NONE) for each in callees]
        return _NONE.union(*found) if callees else self.known.get((None, _LAMBDA), _NONE)


def values_of(function: Function, node: ast.expr) -> list[ast.expr]:
    """An expression, or the values that a variable is assigned."""
    made = function.assignments(node.id) if isinstance(node, ast.Name) else []
    return [node, *(each.value for each in made if isinstance(each, ast.Assign))]


def used_up(whole: Analysis) -> list[str]:
    """The parameters and imported names that must not be, or hold, iterators: the adjoint pass would silently
    find nothing left of them.

    An argument that is differentiated by has an adjoint in its structure, and an iterator has none.
    """
    functions = list(whole.every())
    readers = [Reader(each) for each in functions]
    loops = [each for one in functions for each in terms.own_nodes(one.body) if isinstance(each, ast.For)]
    if not any(True for each in loops for _ in _taken_silently(each.iter)):
        return []
    found: list[str] = []
    for param in (*whole.start.params, *sorted(_imported(functions))):
        kind = whole.start.kind(param)
        if param not in whole.wrt and not kind.numeric and not kind.has("array", "function"):
            given = Iterators(functions, param)
            if any(
                given.may_be_iterator(one, part)
                for one in readers
                for source in given.gone_through(one.function, one)
                for part in _taken_silently(source)
            ):
                found.append(param)
    return found


def _imported(functions: Iterable[Function]) -> set[str]:
    """The imported names that some functions read and do not call."""
    found = set[str]()
    for function in functions:
        for each in terms.uncalled(function.body):
            if isinstance(each, ast.Name) and function.owner(each.id) is None:
                if not (function.dotted(each) or ".").startswith((".", "builtins.")):
                    found.add(each.id)
    return found


def _rebound(function: Function, param: str) -> ast.expr | None:
    """The value of the statement that first names a parameter, if it always assigns to it."""
    first = next((each for each in function.body if param in terms.names_read(each)), None)
    match first:
        case ast.Assign([ast.Name(name)], value) if name == param:
            return value
    return None


def _taken_silently(source: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a loop's source that may be iterators with nothing left, without an error.

    The adjoint pass makes a list of a source that is no variable.
    """
    if not isinstance(source, ast.Name) and not isinstance(getattr(source, "slice", None), ast.Slice):
        yield source
    for each in terms.walk(source):
        if _is_taking(each):
            yield from arguments(each)  # type: ignore[arg-type]


def _is_taking(node: ast.AST) -> bool:
    """Return whether a node is a call that takes the values of iterators like those of lists."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TAKING


def _element(ways: _Ways) -> _Ways:
    """The ways of an element, by those of its container."""
    return frozenset([_IS, _HOLDS]) if _HOLDS in ways else _NONE


def _said(function: Function, node: ast.expr) -> str:
    text = ast.unparse(node)
    said = f"{text} can be gone through only once"
    if isinstance(node, ast.Name):
        match function.assignments(node.id):
            case [ast.Assign([ast.Name()], value) as made] if makes_iterator(function, value):
                if read_once(function, node.id, made):
                    return f"{said}: write {as_list(value)}"
                return f"{said}, and is read more often: decide where its values are taken"
    return f"{said} if it is an iterator: decide where its values are taken"


def read_once(function: Function, name: str, made: ast.AST) -> bool:
    """Return whether the value that a statement gives a variable is read only once, also by loops."""
    if name in function.captured_inside or terms.counted(function.body)[0][name] != 1:
        return False
    for each in terms.own_nodes(function.body):
        again: Sequence[ast.AST]
        match each:
            case ast.For(body=body) | ast.While(body=body):
                again = body
            case ast.Lambda(body=inner):
                again = [inner]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                own = each.generators[0]
                parts = [*terms.children(each), *terms.children(own)]
                again = [one for one in parts if one not in (own, own.iter)]
            case _:
                continue
        if name in set[str]().union(*map(terms.names_read, again)):
            if not any(one is made for part in again for one in terms.walk(part)):
                return False
    return True


def as_list(node: ast.expr) -> str:
    """The text of a list of the elements that an expression yields."""
    match node:
        case ast.GeneratorExp():
            return f"[{plain(node)[1:-1]}]"
    return f"list({plain(node)})"


def plain(node: ast.expr) -> str:
    """The text of an expression; a generator that is the only argument has no brackets of its own."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        if isinstance(node.args[0], ast.GeneratorExp):
            return f"{ast.unparse(node.func)}{ast.unparse(node.args[0])}"
    return ast.unparse(node)
