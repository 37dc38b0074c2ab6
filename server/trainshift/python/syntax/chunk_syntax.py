"""The syntax of one chunk: statements, scopes, bindings and calls, as `collect` reads them in one pass.

ChunkSyntax objects are independent of the rest of the script: names are not resolved, positions are relative
to the chunk.  They are shared by every rule and kept while the chunk's text stays the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from trainshift.python.lazy import cached_property
from trainshift.python.source.source import Source, Span

T = TypeVar("T")
# Nodes without children to visit.
_LEAVES = (ast.Name, ast.Constant)
# The fields of nodes that hold no node, and those whose lists may hold other values.
_WITHOUT_NODES = frozenset({"arg", "attr", "id", "kind", "type_comment"})
_MIXED = frozenset({"keys", "kw_defaults", "kwd_attrs", "names"})
# The fields of each class of nodes that may hold nodes.
_HOLDING: dict[type[ast.AST], tuple[str, ...]] = {}
_ROOTED = (ast.Attribute, ast.Subscript, ast.Call)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BindingKind: TypeAlias = Literal[
    "value", "element", "context", "parameter", "import", "function", "class", "deleted", "other"
]


class Rest(NamedTuple):
    """The slot of a starred target: all but the first `before` and the last `after` elements."""

    before: int
    after: int


# A slot of an unpacked tuple: an index, which after a starred target counts from the end (-1).
Slot: TypeAlias = int | Rest


class Scope(Struct, eq=False):
    """A namespace: a chunk's share of the module, a function, a class, or a comprehension."""

    kind: Literal["module", "function", "class", "comprehension"]
    node: ast.AST | None
    parent: Scope | None
    statement: Statement | None
    facts: ChunkSyntax
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    declared_global: frozenset[str] = frozenset()
    declared_nonlocal: frozenset[str] = frozenset()
    returns: list[tuple[ast.expr, Statement | None]] = field(default_factory=list)
    yields: list[tuple[ast.Yield | ast.YieldFrom, Statement | None]] = field(default_factory=list)

    @property
    def is_generator(self) -> bool:
        """Return whether it is a function that yields."""
        return bool(self.yields)

    @property
    def name(self) -> str:
        """The function's or class's own name; empty for a lambda, a comprehension, a module."""
        return getattr(self.node, "name", "")

    def function(self) -> Scope | None:
        """This scope's function: itself, or the innermost enclosing one."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope

    def path(self) -> Iterator[Scope]:
        """This scope and those around it, up to the module's."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def functions(self) -> Iterator[Scope]:
        """This scope's function, and the functions around it."""
        return (each for each in self.path() if each.kind == "function")

    @property
    def arguments(self) -> ast.arguments:
        """The parameters of a function."""
        assert isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        return self.node.args

    def owner(self) -> Scope | None:
        """The class whose method this function is."""
        if self.kind == "function" and self.parent is not None and self.parent.kind == "class":
            return self.parent
        return None


class Statement(Struct, eq=False):
    """A statement, its place in its block, and the scope it runs in."""

    node: ast.stmt
    parent: Statement | None
    branch: str
    block: list[Statement]
    index: int
    scope: Scope
    branches: dict[str, list[Statement]] = field(default_factory=dict)

    def ancestors(self) -> Iterator[Statement]:
        """The enclosing compound statements, innermost first, up to the chunk."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def path(self) -> Iterator[Statement]:
        """This statement and then its ancestors."""
        yield self
        yield from self.ancestors()

    def walk(self) -> Iterator[Statement]:
        """Yield this statement and all statements in its blocks, in text order."""
        yield self
        for block in self.branches.values():
            for each in block:
                yield from each.walk()

    def own_parts(self) -> Iterator[ast.AST]:
        """The nodes of this statement itself, without those of its blocks."""
        return own_parts(self.node)

    @property
    def top(self) -> Statement:
        """The module-level statement around this one, or this one."""
        *_, top = self.path()
        return top

    @property
    def is_nested(self) -> bool:
        """Return whether a compound statement of its own scope is around it."""
        return self.parent is not None and self.parent.scope is self.scope


class Binding(Struct, eq=False):
    """One binding of a name, an attribute or an item to a value.

    `value` is the bound expression ("value"), the iterable ("element"), the context manager ("context") or a
    parameter's default; `path` are the slots of tuple unpacking, outermost first.
    """

    kind: BindingKind
    value: ast.expr | None
    statement: Statement | None
    scope: Scope
    path: tuple[Slot, ...] = ()
    target: ast.AST | None = None
    full_name: str = ""
    inner: Scope | None = None

    @property
    def taken(self) -> ast.expr | None:
        """The part of a literal `value` that the path selects; None if a tuple on the path is not literal."""
        value = self.value
        for slot in self.path:
            if not isinstance(value, ast.Tuple | ast.List) or isinstance(slot, Rest):
                return None
            value = element_at(value.elts, slot)
        return value


class Site(Struct, eq=False):
    """A call: its node, and the statement and scope that contain it.

    `name` is the last part of the called name: ``save`` for ``self.model.save(...)``.
    """

    node: ast.Call
    parent: ast.AST
    statement: Statement
    scope: Scope
    deferred: bool  # in a lambda or a comprehension: not evaluated exactly once, in place
    in_fstring: bool  # where positions are unreliable before Python 3.12
    name: str


class AttributeBinding(Struct, eq=False):
    """``base.attribute = value`` in any form."""

    base: ast.expr
    binding: Binding


class ItemBinding(Struct, eq=False):
    """An assignment ``base[key] = value``, or an addition such as ``base.append(value)`` without a key."""

    base: ast.expr
    key: ast.expr | None
    binding: Binding


class ChunkSyntax:
    """Everything that was read from one chunk."""

    def __init__(self, text: str, first_line: int = 0) -> None:
        self.text = text
        self._first_line = first_line
        self.module = Scope("module", None, None, None, self)
        self.statements: list[Statement] = []
        self.top: list[Statement] = []
        self.sites: list[Site] = []
        self.scopes: list[Scope] = []
        self.attributes: dict[str, list[AttributeBinding]] = {}
        self.items: dict[str, list[ItemBinding]] = {}
        self.bound_names: set[str] = set()
        self.loads: dict[str, int] = {}
        self.member_loads: dict[tuple[str, str], int] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        self._source = Source(text)
        self._ascii = text.isascii()
        self._readings: dict[Callable[[ChunkSyntax], object], object] = {}

    @cached_property
    def bindings(self) -> list[Binding]:
        """Every binding of a name, an attribute or an item, in this order."""
        scopes = (self.module, *self.scopes)
        named = [each for scope in scopes for bindings in scope.bindings.values() for each in bindings]
        held = (each.binding for given in self.attributes.values() for each in given)
        items = (each.binding for given in self.items.values() for each in given if each.key is not None)
        return [*named, *held, *items]

    @property
    def names(self) -> set[str]:
        """Every identifier, including attributes."""
        return self.bound_names.union(self.loads)

    @cached_property
    def imports(self) -> list[Binding]:
        """Every name that an import binds, at any depth."""
        return [binding for binding in self.bindings if binding.kind == "import"]

    def once(self, read: Callable[[ChunkSyntax], T]) -> T:
        """The result of `read` for this chunk alone, computed once for each text of the chunk."""
        if read not in self._readings:
            self._readings[read] = read(self)
        return self._readings[read]  # type: ignore[return-value]

    def dissolve(self) -> None:
        """Free everything at once; it must not be used afterwards."""
        for scope in (self.module, *self.scopes, *self.scope_of.values()):
            scope.bindings.clear()
            scope.returns.clear()
            scope.yields.clear()
        for statement in self.statements:
            statement.block.clear()
            statement.branches.clear()
        vars(self).clear()

    def span(self, node: ast.AST) -> Span:
        """The span of `node`, in code points from the start of the chunk."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        return Span(self._offset(line, start), self._offset(end_line, end))

    def _offset(self, line: int, column: int) -> int:
        """Code point offset of a 1-based line and a column in UTF-8 bytes."""
        start = self._source.line_starts[line - 1 - self._first_line]
        if self._ascii:
            return start + column
        piece = self.text[start : start + column]
        return start + len(piece.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "surrogatepass"))


def last_name(expression: ast.expr) -> str:
    """The last part of a dotted name; empty for any other expression."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def dotted(expression: ast.expr) -> str:
    """The text of a dotted name such as ``self.optimizer``; empty for any other expression."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return ""
    return ".".join([expression.id, *reversed(parts)])


def element_at(elements: list[ast.expr], index: int) -> ast.expr | None:
    """The element at an index; None if it does not exist, or is hidden by a starred one before it."""
    if not -len(elements) <= index < len(elements):
        return None
    passed = elements[: index + 1] if index >= 0 else elements[index:]
    return None if any(isinstance(each, ast.Starred) for each in passed) else elements[index]


def alternatives(node: ast.expr) -> list[ast.expr]:
    """The alternatives of an expression: ``a if c else b``, ``a or b``, ``(x := a)``; else none."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    return [node.value] if isinstance(node, ast.NamedExpr) else []


def root_name(expression: ast.expr) -> ast.Name | None:
    """The first name in a dotted name, a subscript or a call."""
    while isinstance(expression, _ROOTED):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression if isinstance(expression, ast.Name) else None


def children(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node, in order; five times as fast as `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    kind = node.__class__
    names = _HOLDING.get(kind)
    if names is None:
        names = _HOLDING[kind] = tuple(each for each in node._fields if each not in _WITHOUT_NODES)
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            if value:
                found += (
                    value if name not in _MIXED else [each for each in value if isinstance(each, ast.AST)]
                )
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes that a statement itself evaluates, without those of statements in its blocks."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _LEAVES):
            waiting += [child for child in children(node) if not isinstance(child, ast.stmt)]


def targets_of(node: ast.AST) -> list[ast.expr]:
    """The targets of an assignment of any kind; none for other nodes."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
        return [node.target]
    return []


def expression_path(statement: ast.stmt, node: ast.expr) -> list[ast.AST]:
    """The nodes from a statement down to one of its own expressions, including both; empty if not there."""
    above: dict[ast.AST, ast.AST] = {}
    waiting: list[ast.AST] = [statement]
    while waiting and node not in above:
        parent = waiting.pop()
        for child in children(parent):
            if not isinstance(child, ast.stmt):
                above[child] = parent
                waiting.append(child)
    if node not in above:
        return []
    path: list[ast.AST] = [node]
    while path[-1] in above:
        path.append(above[path[-1]])
    return path[::-1]


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[ast.alias, str, str]]:
    """Yield the aliases of an import, each with the name that it binds and the full name of the target.

    The full name of a relative import begins with its dots.
    """
    for alias in node.names:
        if isinstance(node, ast.Import):
            name = alias.asname or alias.name.partition(".")[0]
            yield alias, name, alias.name if alias.asname else name
        else:
            module = f"{node.module}." if node.module else ""
            yield alias, alias.asname or alias.name, f"{'.' * node.level}{module}{alias.name}"


def imported_name(binding: Binding) -> str:
    """The name that an import binds."""
    alias = binding.target
    assert isinstance(alias, ast.alias)
    if alias.asname:
        return alias.asname
    from_module = binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom)
    return alias.name if from_module else alias.name.partition(".")[0]


def argument(call: ast.Call, position: int | None, *keywords: str) -> ast.expr | None:
    """The argument at the 0-based `position` or with one of `keywords`; None if there is none.

    A `position` of None means a keyword-only parameter.  The result is also None if a starred argument hides
    it.
    """
    for word in call.keywords:
        if word.arg in keywords:
            return word.value
    if position is None:
        return None
    given = call.args
    if len(given) <= position:
        return None
    for each in given[: position + 1]:
        if isinstance(each, ast.Starred):
            return None
    return given[position]


def is_alone(site: Site) -> bool:
    """Return whether a call is a statement of its own, so that nothing uses its result."""
    node = site.statement.node
    return isinstance(node, ast.Expr) and node.value is site.node


def arguments(call: ast.Call) -> list[ast.expr]:
    """All arguments of the call, positional ones first."""
    if not call.keywords:
        return [*call.args]
    return [*call.args, *[word.value for word in call.keywords]]


def hides_arguments(call: ast.Call) -> bool:
    """Return whether ``*`` or ``**`` hides arguments of the call."""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(
        word.arg is None for word in call.keywords
    )


def is_main_guard(statement: Statement) -> bool:
    """Return whether the statement is exactly ``if __name__ == "__main__":``, which does not count as a
    condition.
    """
    return isinstance(statement.node, ast.If) and _tests_main(statement.node.test)


def behind_main_guard(statement: Statement) -> bool:
    """Return whether the statement runs only if its file is the start file."""
    return any(
        below.branch == "body" and any(map(_tests_main, _conjuncts(above.node)))
        for below, above in pairwise(statement.path())
    )


def for_type_checkers(statement: Statement) -> bool:
    """Return whether the statement is under ``if TYPE_CHECKING:``, and never runs."""
    return any(
        below.branch == "body"
        and isinstance(above.node, ast.If)
        and last_name(above.node.test) == "TYPE_CHECKING"
        for below, above in pairwise(statement.path())
    )


def _conjuncts(node: ast.stmt) -> list[ast.expr]:
    """The operands that must all be true for an `if` to be entered."""
    if not isinstance(node, ast.If):
        return []
    both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
    return [node.test, *(node.test.values if both else ())]  # type: ignore[attr-defined]


def _tests_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = {getattr(side, "id", getattr(side, "value", "")) for side in (test.left, test.comparators[0])}
    return sides == {"__name__", "__main__"}


def is_elif(statement: Statement) -> bool:
    """Return whether a statement is the ``elif`` of the one around it, so that nothing can precede it."""
    above, node = statement.parent, statement.node
    return (
        above is not None
        and isinstance(above.node, ast.If)
        and isinstance(node, ast.If)
        and above.node.orelse == [node]
        and node.col_offset == above.node.col_offset
    )
