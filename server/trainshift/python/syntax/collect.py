"""The one pass over the `ast` of a chunk that collects its syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.libraries.containers import ADDING
from trainshift.libraries.roles import imported_as
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    AttributeBinding,
    Binding,
    ChunkSyntax,
    FunctionNode,
    ItemBinding,
    Rest,
    Scope,
    Site,
    Slot,
    Statement,
    imported_names,
    last_name,
)
from trainshift.python.syntax.slotted_ast import for_lean

# A variable can be extended by its methods, like a container.
_ADDING_METHODS = ADDING | {"assign", "assign_add"}


def read_facts(text: str, body: list[ast.stmt], first_line: int = 0) -> ChunkSyntax:
    """Read the facts of a chunk from its text and its `ast`, whose first line is the 0-based `first_line`."""
    facts = ChunkSyntax(text, first_line)
    _Reader(facts).block(body, None, "body", facts.module)
    return facts


class _Reader:
    def __init__(self, facts: ChunkSyntax) -> None:
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
        joined = ast.copy_location(ast.BinOp(as_load(node.target), node.op, node.value), node)
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
        statement.scope.declared_global |= {*node.names}
        self.facts.bound_names.update(node.names)

    def nonlocal_(self, node: ast.Nonlocal, statement: Statement) -> None:
        statement.scope.declared_nonlocal |= {*node.names}
        self.facts.bound_names.update(node.names)

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
        for alias, name, full in imported_names(node):
            known = imported_as(full)
            binding = Binding("import", None, statement, statement.scope, target=alias, full_name=known)
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
            self.facts.bound_names.add(argument.arg)
        for collector in (arguments.vararg, arguments.kwarg):
            if collector is not None:
                binding = Binding("other", None, None, inner, target=collector)
                inner.bindings.setdefault(collector.arg, []).append(binding)
                self.facts.bound_names.add(collector.arg)
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
            for element, slot in _slots(target.elts):
                path = (*binding.path, slot)
                part = Binding(binding.kind, binding.value, binding.statement, binding.scope, path)
                self.bind(element, part)
        elif isinstance(target, ast.Attribute):
            self.expression(target.value, target, binding.scope)
            self.facts.bound_names.add(target.attr)
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
        self.facts.bound_names.add(name)

    def name_loads(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.facts.loads[target.id] = self.facts.loads.get(target.id, 0) + 1

    # Expressions

    def expression(self, node: ast.expr, parent: ast.AST, scope: Scope) -> None:
        if not isinstance(node, ast.Constant):
            _EXPRESSIONS.get(type(node), _Reader.others)(self, node, parent, scope)

    def others(self, node: ast.expr, parent: ast.AST, scope: Scope) -> None:
        self.children(node, scope)

    def binary(self, node: ast.BinOp, parent: ast.AST, scope: Scope) -> None:
        left: ast.expr = node
        while isinstance(left, ast.BinOp):  # A long sum nests to the left, deeper than Python recurses.
            self.expression(left.right, left, scope)
            parent, left = left, left.left
        self.expression(left, parent, scope)

    def name(self, node: ast.Name, parent: ast.AST, scope: Scope) -> None:
        loads, name = self.facts.loads, node.id
        loads[name] = loads.get(name, 0) + 1

    def attribute(self, node: ast.Attribute, parent: ast.AST, scope: Scope) -> None:
        loads, name, base = self.facts.loads, node.attr, node.value
        loads[name] = loads.get(name, 0) + 1
        if isinstance(base, ast.Name):
            members, member = self.facts.member_loads, (base.id, name)
            members[member] = members.get(member, 0) + 1
            loads[base.id] = loads.get(base.id, 0) + 1
        else:
            self.expression(base, node, scope)

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
            function.yields.append((node, self.statement))
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


# The reader of a node, by class; any other node is read through its children.
_STATEMENTS = for_lean(
    {
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
)
_EXPRESSIONS = for_lean(
    {
        ast.Name: _Reader.name,
        ast.Attribute: _Reader.attribute,
        ast.Call: _Reader.call,
        ast.Lambda: _Reader.lambda_,
        ast.BinOp: _Reader.binary,
        **dict.fromkeys(COMPREHENSIONS, _Reader.comprehension),
        ast.NamedExpr: _Reader.walrus,
        ast.JoinedStr: _Reader.fstring,
        ast.Yield: _Reader.yield_,
        ast.YieldFrom: _Reader.yield_,
    }
)


def _slots(targets: list[ast.expr]) -> Iterator[tuple[ast.expr, Slot]]:
    """Yield the targets of an unpacking with the slot of each; those after a starred one count from
    the end.
    """
    starred = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    for index, target in enumerate(targets):
        if isinstance(target, ast.Starred):
            yield target.value, Rest(index, len(targets) - index - 1)
        else:
            yield target, index if starred is None or index < starred else index - len(targets)


def as_load(target: ast.expr) -> ast.expr:
    """The target of ``x += 1``, read as an expression."""
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Attribute):
        return ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
    assert isinstance(target, ast.Subscript)
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
