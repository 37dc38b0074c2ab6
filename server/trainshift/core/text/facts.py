"""Facts: what one chunk of a script says, read once in one pass over its `ast`.

Facts know nothing of the rest of the script: names are not resolved, positions are relative to
the chunk.  They are shared by every rule and kept while the chunk's text stays the same.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar

from trainshift.core.lazy import cached_property
from trainshift.core.text.source import Source, Span

T = TypeVar("T")
_ROOTED = (ast.Attribute, ast.Subscript, ast.Call)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
BindingKind: TypeAlias = Literal[
    "value", "element", "context", "parameter", "import", "function", "class", "deleted", "other"
]


@dataclass(eq=False, slots=True)
class Scope:
    """A namespace: a chunk's share of the module, a function, a class, or a comprehension."""

    kind: Literal["module", "function", "class", "comprehension"]
    node: ast.AST | None
    parent: Scope | None
    statement: Statement | None
    facts: Facts
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    declared_global: set[str] = field(default_factory=set)
    declared_nonlocal: set[str] = field(default_factory=set)
    returns: list[tuple[ast.expr, Statement | None]] = field(default_factory=list)
    is_generator: bool = False

    @property
    def name(self) -> str:
        """The function's or class's own name; empty for a lambda, a comprehension, a module."""
        return getattr(self.node, "name", "")

    def function(self) -> Scope | None:
        """The innermost function that this scope is or lies in."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "function":
            scope = scope.parent
        return scope

    def owner(self) -> Scope | None:
        """The class whose method this function is."""
        if self.kind == "function" and self.parent is not None and self.parent.kind == "class":
            return self.parent
        return None


@dataclass(eq=False, slots=True)
class Statement:
    """A statement, its place in its block, and the scope it runs in."""

    node: ast.stmt
    parent: Statement | None
    branch: str
    block: list[Statement]
    index: int
    scope: Scope
    branches: dict[str, list[Statement]] = field(default_factory=dict)

    def ancestors(self) -> Iterator[Statement]:
        """The compound statements around this one, innermost first, out to the chunk."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def path(self) -> Iterator[Statement]:
        """This statement and then its ancestors."""
        yield self
        yield from self.ancestors()

    def walk(self) -> Iterator[Statement]:
        """This statement and all that stand in its blocks, in text order."""
        yield self
        for block in self.branches.values():
            for each in block:
                yield from each.walk()

    @property
    def top(self) -> Statement:
        """The module's own statement that this one is, or stands in."""
        *_, top = self.path()
        return top

    @property
    def is_nested(self) -> bool:
        """Whether a compound statement of its own scope stands around it."""
        return self.parent is not None and self.parent.scope is self.scope


@dataclass(eq=False, slots=True)
class Binding:
    """One way in which a name, an attribute or an item comes by its value.

    `value` is the bound expression ("value"), what is iterated ("element"), the context manager
    ("context") or a parameter's default; `path` holds the indices of tuple unpacking, in which a
    negative number stands for a starred or unknown place.
    """

    kind: BindingKind
    value: ast.expr | None
    statement: Statement | None
    scope: Scope
    path: tuple[int, ...] = ()
    target: ast.AST | None = None
    full_name: str = ""
    inner: Scope | None = None


@dataclass(eq=False, slots=True)
class Site:
    """A call: its node, the statement and scope it stands in, and what surrounds it.

    `name` is the last part of the called name: ``save`` for ``self.model.save(...)``.
    """

    node: ast.Call
    parent: ast.AST
    statement: Statement
    scope: Scope
    deferred: bool  # in a lambda or a comprehension: not evaluated once, in place
    in_fstring: bool  # where positions cannot be trusted before Python 3.12
    name: str


@dataclass(eq=False, slots=True)
class AttributeBinding:
    """``base.attribute = value`` in any form."""

    base: ast.expr
    binding: Binding


@dataclass(eq=False, slots=True)
class ItemBinding:
    """``base[key] = value``, or ``base.append(value)`` and its like with no key."""

    base: ast.expr
    key: ast.expr | None
    binding: Binding


class Facts:
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
        self.names: set[str] = set()
        self.loads: dict[str, int] = {}
        self.member_loads: dict[tuple[str, str], int] = {}
        self.scope_of: dict[ast.AST, Scope] = {}
        self._source = Source(text)
        self._ascii = text.isascii()
        self._readings: dict[Callable[[Facts], object], object] = {}

    @cached_property
    def bindings(self) -> list[Binding]:
        """Every way in which a name, an attribute or an item comes by a value, in this order."""
        scopes = (self.module, *self.scopes)
        named = [each for scope in scopes for bindings in scope.bindings.values() for each in bindings]
        held = (each.binding for given in self.attributes.values() for each in given)
        items = (each.binding for given in self.items.values() for each in given if each.key is not None)
        return [*named, *held, *items]

    @cached_property
    def imports(self) -> list[Binding]:
        """Every name that an import binds, at any depth."""
        return [binding for binding in self.bindings if binding.kind == "import"]

    def once(self, read: Callable[[Facts], T]) -> T:
        """What `read` makes of the chunk alone; asked once for as long as the chunk's text stays."""
        if read not in self._readings:
            self._readings[read] = read(self)
        return self._readings[read]  # type: ignore[return-value]

    def dissolve(self) -> None:
        """Free all of it at once; nobody may ask for any of it again."""
        for scope in (self.module, *self.scopes, *self.scope_of.values()):
            scope.bindings.clear()
            scope.returns.clear()
        for statement in self.statements:
            statement.block.clear()
            statement.branches.clear()
        vars(self).clear()

    def span(self, node: ast.AST) -> Span:
        """Where `node` stands, in code points from the start of the chunk."""
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


def read_facts(text: str, body: list[ast.stmt], first_line: int = 0) -> Facts:
    """Read the facts of a chunk from its text and its `ast`, whose first line is the 0-based `first_line`."""
    facts = Facts(text, first_line)
    _Reader(facts).block(body, None, "body", facts.module)
    return facts


def last_name(expression: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def dotted(expression: ast.expr) -> str:
    """The text of a dotted name such as ``self.optimizer``; empty for anything else."""
    parts: list[str] = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, ast.Name):
        return ""
    return ".".join([expression.id, *reversed(parts)])


def root_name(expression: ast.expr) -> ast.Name | None:
    """The name that a dotted name, a subscript or a call begins with."""
    while isinstance(expression, _ROOTED):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression if isinstance(expression, ast.Name) else None


def expression_path(statement: ast.stmt, node: ast.expr) -> list[ast.AST]:
    """The nodes from a statement down to one of its own expressions, both included; empty if not there."""
    above: dict[ast.AST, ast.AST] = {}
    waiting: list[ast.AST] = [statement]
    while waiting and node not in above:
        parent = waiting.pop()
        for child in ast.iter_child_nodes(parent):
            if not isinstance(child, ast.stmt):
                above[child] = parent
                waiting.append(child)
    if node not in above:
        return []
    path: list[ast.AST] = [node]
    while path[-1] in above:
        path.append(above[path[-1]])
    return path[::-1]


def imported_name(binding: Binding) -> str:
    """The name that an import binds."""
    alias = binding.target
    assert isinstance(alias, ast.alias)
    if alias.asname:
        return alias.asname
    from_module = binding.statement is not None and isinstance(binding.statement.node, ast.ImportFrom)
    return alias.name if from_module else alias.name.partition(".")[0]


def argument(call: ast.Call, position: int | None, *keywords: str) -> ast.expr | None:
    """The expression given at the 0-based `position` or under one of `keywords`; None if there is none.

    A `position` of None stands for a keyword-only parameter.  None too where a starred argument hides it.
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


def arguments(call: ast.Call) -> list[ast.expr]:
    """Everything that the call is given, by position and then by keyword."""
    return [*call.args, *[word.value for word in call.keywords]]


def hides_arguments(call: ast.Call) -> bool:
    """Whether ``*`` or ``**`` hides what the call is given."""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(
        word.arg is None for word in call.keywords
    )


def is_main_guard(statement: Statement) -> bool:
    """Whether the statement is ``if __name__ == "__main__":`` and nothing more, which is no condition."""
    return isinstance(statement.node, ast.If) and _tests_main(statement.node.test)


def behind_main_guard(statement: Statement) -> bool:
    """Whether the statement runs only where its file is the script that was started."""
    return any(
        below.branch == "body" and any(map(_tests_main, _conjuncts(above.node)))
        for below, above in pairwise(statement.path())
    )


def for_type_checkers(statement: Statement) -> bool:
    """Whether the statement stands under ``if TYPE_CHECKING:``, and is never run."""
    return any(
        below.branch == "body"
        and isinstance(above.node, ast.If)
        and last_name(above.node.test) == "TYPE_CHECKING"
        for below, above in pairwise(statement.path())
    )


def _conjuncts(node: ast.stmt) -> list[ast.expr]:
    """The test of an `if`, and the parts that all must hold."""
    if not isinstance(node, ast.If):
        return []
    both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
    return [node.test, *(node.test.values if both else ())]  # type: ignore[attr-defined]


def _tests_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = {getattr(side, "id", getattr(side, "value", "")) for side in (test.left, test.comparators[0])}
    return sides == {"__name__", "__main__"}


def closure(start: Iterable[str], following: Mapping[str, Iterable[str]]) -> set[str]:
    """The names of `start`, and all that follow from them, directly or not."""
    found = set(start)
    waiting = list(found)
    while waiting:
        for name in following.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


_ADDING_METHODS = frozenset(
    {"append", "extend", "insert", "add", "update", "setdefault", "assign", "assign_add"}
)


class _Reader:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.statement: Statement | None = None
        self.deferred = 0
        self.fstrings = 0

    # Statements

    def block(self, body: list[ast.stmt], parent: Statement | None, branch: str, scope: Scope) -> None:
        block: list[Statement] = []
        for index, node in enumerate(body):
            block.append(Statement(node, parent, branch, block, index, scope))
        if parent is None:
            self.facts.top = block
        else:
            parent.branches[branch] = block
        for statement in block:
            self.facts.statements.append(statement)
            outer, self.statement = self.statement, statement
            self.one(statement)
            self.statement = outer

    def one(self, statement: Statement) -> None:
        read = _STATEMENTS.get(type(statement.node))
        if read is not None:
            read(self, statement.node, statement)
        else:
            self.children(statement.node, statement.scope)

    def return_(self, node: ast.Return, statement: Statement) -> None:
        if node.value is not None:
            self.expression(node.value, node, statement.scope)
            function = statement.scope.function()
            if function is not None:
                function.returns.append((node.value, statement))

    def assign(self, node: ast.Assign, statement: Statement) -> None:
        self.expression(node.value, node, statement.scope)
        for target in node.targets:
            self.bind(target, Binding("value", node.value, statement, statement.scope))

    def annotated(self, node: ast.AnnAssign, statement: Statement) -> None:
        self.expression(node.annotation, node, statement.scope)
        if node.value is not None:
            self.expression(node.value, node, statement.scope)
            self.bind(node.target, Binding("value", node.value, statement, statement.scope))

    def augmented(self, node: ast.AugAssign, statement: Statement) -> None:
        self.expression(node.value, node, statement.scope)
        joined = ast.copy_location(ast.BinOp(_as_load(node.target), node.op, node.value), node)
        self.bind(node.target, Binding("value", joined, statement, statement.scope))
        self.name_loads(node.target)

    def for_(self, node: ast.For | ast.AsyncFor, statement: Statement) -> None:
        scope = statement.scope
        self.expression(node.iter, node, scope)
        self.bind(node.target, Binding("element", node.iter, statement, scope))
        self.block(node.body, statement, "body", scope)
        self.block(node.orelse, statement, "orelse", scope)

    def condition(self, node: ast.While | ast.If, statement: Statement) -> None:
        self.expression(node.test, node, statement.scope)
        self.block(node.body, statement, "body", statement.scope)
        self.block(node.orelse, statement, "orelse", statement.scope)

    def with_(self, node: ast.With | ast.AsyncWith, statement: Statement) -> None:
        scope = statement.scope
        for item in node.items:
            self.expression(item.context_expr, node, scope)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Binding("context", item.context_expr, statement, scope))
        self.block(node.body, statement, "body", scope)

    def global_(self, node: ast.Global, statement: Statement) -> None:
        statement.scope.declared_global.update(node.names)
        self.facts.names.update(node.names)

    def nonlocal_(self, node: ast.Nonlocal, statement: Statement) -> None:
        statement.scope.declared_nonlocal.update(node.names)
        self.facts.names.update(node.names)

    def delete(self, node: ast.Delete, statement: Statement) -> None:
        for target in node.targets:
            self.bind(target, Binding("deleted", None, statement, statement.scope))

    def match(self, node: ast.Match, statement: Statement) -> None:
        self.expression(node.subject, node, statement.scope)
        for number, case in enumerate(node.cases):
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(name, str):
                    self.bind_name(name, Binding("other", None, statement, statement.scope, target=pattern))
                elif isinstance(pattern, ast.MatchValue):
                    self.expression(pattern.value, node, statement.scope)
            if case.guard is not None:
                self.expression(case.guard, node, statement.scope)
            self.block(case.body, statement, f"case {number}", statement.scope)

    def try_(self, node: ast.Try, statement: Statement) -> None:
        scope = statement.scope
        self.block(node.body, statement, "body", scope)
        for number, handler in enumerate(node.handlers):
            if handler.type is not None:
                self.expression(handler.type, node, scope)
            if handler.name:
                self.bind_name(handler.name, Binding("other", None, statement, scope, target=handler))
            self.block(handler.body, statement, f"except {number}", scope)
        self.block(node.orelse, statement, "orelse", scope)
        self.block(node.finalbody, statement, "finally", scope)

    def import_(self, node: ast.Import | ast.ImportFrom, statement: Statement) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                full = alias.name if alias.asname else name
            else:
                name = alias.asname or alias.name
                module = f"{node.module}." if node.module else ""
                full = f"{'.' * node.level}{module}{alias.name}"
            binding = Binding("import", None, statement, statement.scope, target=alias, full_name=full)
            self.bind_name(name, binding)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, statement: Statement) -> None:
        for decorator in node.decorator_list:
            self.expression(decorator, node, statement.scope)
        if node.returns is not None:
            self.expression(node.returns, node, statement.scope)
        inner = self.open_function(node, statement)
        self.bind_name(
            node.name, Binding("function", None, statement, statement.scope, target=node, inner=inner)
        )
        deferred, self.deferred = self.deferred, 0
        self.block(node.body, statement, "body", inner)
        self.deferred = deferred

    def open_function(
        self, node: FunctionNode, statement: Statement | None, outer: Scope | None = None
    ) -> Scope:
        parent = outer or (statement.scope if statement else self.facts.module)
        inner = Scope("function", node, parent, statement, self.facts)
        self.facts.scopes.append(inner)
        self.facts.scope_of[node] = inner
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        defaults += arguments.defaults
        for argument, default in [
            *zip(positional, defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]:
            if argument.annotation is not None:
                self.expression(argument.annotation, node, parent)
            if default is not None:
                self.expression(default, node, parent)
            binding = Binding("parameter", default, None, parent, target=argument, inner=inner)
            inner.bindings.setdefault(argument.arg, []).append(binding)
            self.facts.names.add(argument.arg)
        for collector in (arguments.vararg, arguments.kwarg):
            if collector is not None:
                binding = Binding("other", None, None, inner, target=collector)
                inner.bindings.setdefault(collector.arg, []).append(binding)
                self.facts.names.add(collector.arg)
        return inner

    def class_(self, node: ast.ClassDef, statement: Statement) -> None:
        for child in [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]:
            self.expression(child, node, statement.scope)
        inner = Scope("class", node, statement.scope, statement, self.facts)
        self.facts.scopes.append(inner)
        self.facts.scope_of[node] = inner
        self.bind_name(
            node.name, Binding("class", None, statement, statement.scope, target=node, inner=inner)
        )
        self.block(node.body, statement, "body", inner)

    # Bindings

    def bind(self, target: ast.expr, binding: Binding) -> None:
        binding.target = binding.target or target
        if isinstance(target, ast.Name):
            self.bind_name(target.id, binding)
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = False
            for index, element in enumerate(target.elts):
                starred = starred or isinstance(element, ast.Starred)
                inner = element.value if isinstance(element, ast.Starred) else element
                part = Binding(
                    binding.kind,
                    binding.value,
                    binding.statement,
                    binding.scope,
                    (*binding.path, -1 if starred else index),
                )
                self.bind(inner, part)
        elif isinstance(target, ast.Attribute):
            self.expression(target.value, target, binding.scope)
            self.facts.names.add(target.attr)
            self.facts.attributes.setdefault(target.attr, []).append(AttributeBinding(target.value, binding))
        elif isinstance(target, ast.Subscript):
            self.expression(target.value, target, binding.scope)
            self.expression(target.slice, target, binding.scope)
            self.facts.items.setdefault(last_name(target.value), []).append(
                ItemBinding(target.value, target.slice, binding)
            )

    def bind_name(self, name: str, binding: Binding) -> None:
        scope = binding.scope
        while scope.kind == "comprehension" and scope.parent is not None and binding.kind != "element":
            scope = scope.parent
        scope.bindings.setdefault(name, []).append(binding)
        self.facts.names.add(name)

    def name_loads(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.facts.loads[target.id] = self.facts.loads.get(target.id, 0) + 1

    # Expressions

    def expression(self, node: ast.expr, parent: ast.AST, scope: Scope) -> None:
        while isinstance(node, ast.BinOp):  # A long sum nests to the left, deeper than Python recurses.
            self.expression(node.right, node, scope)
            parent, node = node, node.left
        read = _EXPRESSIONS.get(type(node))
        if read is not None:
            read(self, node, parent, scope)
        else:
            self.children(node, scope)

    def constant(self, node: ast.Constant, parent: ast.AST, scope: Scope) -> None:
        pass

    def name(self, node: ast.Name, parent: ast.AST, scope: Scope) -> None:
        facts, name = self.facts, node.id
        facts.names.add(name)
        facts.loads[name] = facts.loads.get(name, 0) + 1

    def attribute(self, node: ast.Attribute, parent: ast.AST, scope: Scope) -> None:
        facts, name = self.facts, node.attr
        facts.names.add(name)
        facts.loads[name] = facts.loads.get(name, 0) + 1
        if isinstance(node.value, ast.Name):
            member = (node.value.id, name)
            facts.member_loads[member] = facts.member_loads.get(member, 0) + 1
        self.expression(node.value, node, scope)

    def lambda_(self, node: ast.Lambda, parent: ast.AST, scope: Scope) -> None:
        inner = self.open_function(node, self.statement, scope)
        inner.returns.append((node.body, None))
        self.deferred += 1
        self.expression(node.body, node, inner)
        self.deferred -= 1

    def walrus(self, node: ast.NamedExpr, parent: ast.AST, scope: Scope) -> None:
        self.expression(node.value, node, scope)
        self.bind(node.target, Binding("value", node.value, self.statement, scope))

    def fstring(self, node: ast.JoinedStr, parent: ast.AST, scope: Scope) -> None:
        self.fstrings += 1
        self.children(node, scope)
        self.fstrings -= 1

    def yield_(self, node: ast.Yield | ast.YieldFrom, parent: ast.AST, scope: Scope) -> None:
        function = scope.function()
        if function is not None:
            function.is_generator = True
        self.children(node, scope)

    def children(self, node: ast.AST, scope: Scope) -> None:
        for field_name in node._fields:
            value = getattr(node, field_name, None)
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.expr):
                    self.expression(child, node, scope)
                elif isinstance(child, ast.keyword):
                    self.expression(child.value, node, scope)

    def call(self, node: ast.Call, parent: ast.AST, scope: Scope) -> None:
        assert self.statement is not None
        name = last_name(node.func)
        site = Site(node, parent, self.statement, scope, self.deferred > 0, self.fstrings > 0, name)
        self.facts.sites.append(site)
        self.expression(node.func, node, scope)
        for argument in node.args:
            self.expression(argument, node, scope)
        for word in node.keywords:
            self.expression(word.value, node, scope)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING_METHODS:
            for added in [*node.args[-1:], *(word.value for word in node.keywords)]:
                binding = Binding("value", added, self.statement, scope, target=node)
                self.facts.items.setdefault(last_name(node.func.value), []).append(
                    ItemBinding(node.func.value, None, binding)
                )

    def comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        parent: ast.AST,
        scope: Scope,
    ) -> None:
        inner = Scope("comprehension", node, scope, self.statement, self.facts)
        self.facts.scope_of[node] = inner
        self.deferred += 1
        for generator in node.generators:
            self.expression(generator.iter, node, inner)
            self.bind(generator.target, Binding("element", generator.iter, self.statement, inner))
            for condition in generator.ifs:
                self.expression(condition, node, inner)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            self.expression(part, node, inner)
        self.deferred -= 1


# How a node is read, by its class; any other is read by its children.
_STATEMENTS: dict[type[ast.AST], Callable[..., None]] = {
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.ClassDef: _Reader.class_,
    ast.Return: _Reader.return_,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.AugAssign: _Reader.augmented,
    ast.For: _Reader.for_,
    ast.AsyncFor: _Reader.for_,
    ast.While: _Reader.condition,
    ast.If: _Reader.condition,
    ast.With: _Reader.with_,
    ast.AsyncWith: _Reader.with_,
    ast.Match: _Reader.match,
    ast.Try: _Reader.try_,
    getattr(ast, "TryStar", ast.Try): _Reader.try_,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_,
    ast.Global: _Reader.global_,
    ast.Nonlocal: _Reader.nonlocal_,
    ast.Delete: _Reader.delete,
}
_EXPRESSIONS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Constant: _Reader.constant,
    ast.Name: _Reader.name,
    ast.Attribute: _Reader.attribute,
    ast.Call: _Reader.call,
    ast.Lambda: _Reader.lambda_,
    **dict.fromkeys(COMPREHENSIONS, _Reader.comprehension),
    ast.NamedExpr: _Reader.walrus,
    ast.JoinedStr: _Reader.fstring,
    ast.Yield: _Reader.yield_,
    ast.YieldFrom: _Reader.yield_,
}


def _as_load(target: ast.expr) -> ast.expr:
    """The target of ``x += 1``, read as an expression."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    assert isinstance(target, ast.Subscript)
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
