"""What a script already knows of Horovod: its import, what runs on the root rank only, what is scaled.

Correction C20: statements that are distributed already are recognised here and left alone.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from trainshift.core.lazy import cached_property
from trainshift.core.names.values import Class, UserInstance
from trainshift.core.program import Program
from trainshift.core.text.facts import Binding, Scope, Site, Statement, dotted, expression_path, last_name

TENSORFLOW = "horovod.tensorflow"
KERAS = "horovod.tensorflow.keras"
# What else gives a script the names of one of the two: Horovod for standalone Keras.
_ALSO = {KERAS: ("horovod.keras",)}


class Horovod:
    """Horovod facts of one script."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._asked_of: set[Scope] = set()

    def imported_as(self, module: str) -> tuple[str, Statement] | None:
        """The expression that is `module` (TENSORFLOW, KERAS) at module level, and its import."""
        wanted = (module, *_ALSO.get(module, ()))
        for name, bindings in self._script.module_bindings.items():
            if any(binding.kind != "import" for binding in bindings):
                continue
            for binding in bindings:
                if binding.scope.kind != "module" or binding.statement is None:
                    continue
                if binding.full_name in wanted:
                    return name, binding.statement
                if isinstance(binding.target, ast.alias) and binding.target.name in wanted:
                    return binding.target.name, binding.statement
        return None

    @cached_property
    def is_used(self) -> bool:
        """Whether any Horovod module is imported, anywhere in the script."""
        return any(binding.full_name.partition(".")[0] == "horovod" for binding in self._script.imports)

    def is_call(self, site: Site, *functions: str) -> bool:
        """Whether the call is ``hvd.<function>()`` for one of `functions`."""
        return self._function(site.node.func, site.scope, site.statement) in functions

    def is_statement(self, statement: Statement | None, *functions: str) -> bool:
        """Whether a statement is nothing but a call of one of Horovod's `functions`."""
        node = statement.node if statement is not None else None
        called = node.value if isinstance(node, ast.Expr) else None
        return isinstance(called, ast.Call) and self.is_call(self._script.site_of(called), *functions)

    def calls(self, *functions: str) -> list[Site]:
        """Every call of one of Horovod's `functions`, whatever it is called in the script."""
        if not self.is_used:
            return []
        return [site for site in self._script.sites if self.is_call(site, *functions)]

    def _function(self, node: ast.expr, scope: Scope, statement: Statement | None) -> str:
        """The name of the Horovod function that an expression is; empty if it is none."""
        if not self.is_used:
            return ""
        for name in self._script.names.full_names(node, scope, statement):
            if name.startswith("horovod."):
                return name.rpartition(".")[2]
        return ""

    def scaled(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Whether the value of `node` depends on ``hvd.size()``, through variables too."""
        return self._depends(node, scope, statement, ("size", "local_size"), set())

    def pinned(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Whether the value of `node` depends on the rank."""
        return self._depends(node, scope, statement, ("local_rank", "rank"), set())

    def _depends(
        self,
        node: ast.expr,
        scope: Scope,
        statement: Statement | None,
        functions: tuple[str, ...],
        seen: set[ast.AST],
    ) -> bool:
        if not self.is_used or node in seen:
            return False
        seen.add(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                if self._function(part.func, scope, statement) in functions:
                    return True
                for function in self._script.names.called_functions(self._script.site_of(part)):
                    returned = function.returns
                    if any(self._depends(value, function, at, functions, seen) for value, at in returned):
                        return True
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                _, bindings = self._script.names.lookup(part.id, scope, statement)
                if any(self._binding_depends(binding, functions, seen) for binding in bindings):
                    return True
            elif isinstance(part, ast.Attribute):
                for binding in self._attribute(part, scope, statement):
                    if self._binding_depends(binding, functions, seen):
                        return True
        return False

    def _attribute(self, node: ast.Attribute, scope: Scope, statement: Statement | None) -> list[Binding]:
        """How an attribute may be bound: under the same dotted name, or in the body of its class."""
        name = dotted(node.value)
        found = [
            each.binding
            for each in self._script.attribute_bindings(node.attr)
            if name and dotted(each.base) == name
        ]
        for value in self._script.names.values(node.value, scope, statement):
            if isinstance(value, Class | UserInstance):
                found += value.scope.bindings.get(node.attr, [])
        return found

    def _binding_depends(self, binding: Binding, functions: tuple[str, ...], seen: set[ast.AST]) -> bool:
        if binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            sites, _ = self._script.names.callers(binding.inner)
            for site in sites:
                given = self._script.names.argument(site, binding.inner, binding.target.arg)
                if given is not None and self._depends(given, site.scope, site.statement, functions, seen):
                    return True
        if binding.value is None:
            return False
        return self._depends(binding.value, binding.scope, binding.statement, functions, seen)

    # Root rank only

    def on_root(self, statement: Statement) -> bool:
        """Whether the statement runs on rank 0 only: under a test of the rank, or after a return."""
        if not self.is_used:
            return False
        below = statement
        for above in statement.ancestors():
            if isinstance(above.node, ast.If):
                wanted = below.branch == "body"
                if self._tells_root(above.node.test, above, wanted):
                    return True
            if above.scope is not below.scope:
                break
            below = above
        if self._after_early_exit(statement):
            return True
        function = statement.scope.function()
        return function is not None and self._called_on_root(function)

    def site_on_root(self, site: Site) -> bool:
        """As `on_root`, for a call: also under ``... if hvd.rank() == 0 else ...`` or ``and``, or in a
        comprehension that asks for the rank.
        """
        return self.expression_on_root(site.node, site.statement)

    def expression_on_root(self, node: ast.expr, statement: Statement) -> bool:
        """As `site_on_root`, for any expression of a statement."""
        if self.on_root(statement):
            return True
        path = expression_path(statement.node, node)
        for above, below in pairwise(path):
            if isinstance(above, ast.IfExp) and below is not above.test:
                if self._tells_root(above.test, statement, below is above.body):
                    return True
            elif isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp) and below is above.elt:
                conditions = [test for generator in above.generators for test in generator.ifs]
                if any(self._tells_root(test, statement, True) for test in conditions):
                    return True
            elif isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And):
                earlier = above.values[: above.values.index(below)]  # type: ignore[arg-type]
                if any(self._tells_root(value, statement, True) for value in earlier):
                    return True
            elif isinstance(above, ast.BoolOp):
                earlier = above.values[: above.values.index(below)]  # type: ignore[arg-type]
                if any(self._tells_root(value, statement, False) for value in earlier):
                    return True
        return False

    def _after_early_exit(self, statement: Statement) -> bool:
        for current in statement.path():
            block, index = self._script.siblings(current)
            for before in block[:index]:
                if not isinstance(before.node, ast.If) or before.node.orelse:
                    continue
                last = before.node.body[-1]
                if _leaves(last) and self._tells_root(before.node.test, before, False):
                    return True
            if current.parent is not None and current.parent.scope is not current.scope:
                return False
        return False

    def _called_on_root(self, function: Scope) -> bool:
        """Whether a function is called on rank 0 only; a call of its own decides nothing."""
        if function in self._asked_of:
            return True
        sites, elsewhere = self._script.names.callers(function)
        if elsewhere or not sites:
            return False
        self._asked_of.add(function)
        try:
            return all(self.site_on_root(site) for site in sites)
        finally:
            self._asked_of.discard(function)

    def _tells_root(self, test: ast.expr, statement: Statement, holds: bool, depth: int = 0) -> bool:
        """Whether `test` being true (or false, if not `holds`) implies that this is rank 0."""
        if depth > 8:
            return False
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            if self._is_rank(test.operand, statement):
                return holds
            return self._tells_root(test.operand, statement, not holds, depth + 1)
        if isinstance(test, ast.BoolOp):
            decisive = ast.And if holds else ast.Or
            return isinstance(test.op, decisive) and any(
                self._tells_root(value, statement, holds, depth + 1) for value in test.values
            )
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sides = [test.left, test.comparators[0]]
            if not any(self._is_rank(side, statement) for side in sides):
                return False
            if any(isinstance(side, ast.Constant) and side.value == 0 for side in sides):
                return isinstance(test.ops[0], ast.Eq | ast.LtE if holds else ast.NotEq | ast.Gt)
            one = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 1
            return one and isinstance(test.ops[0], ast.Lt if holds else ast.GtE)
        if self._is_rank(test, statement):
            return not holds
        if isinstance(test, ast.IfExp) and isinstance(test.body, ast.Constant):
            if isinstance(test.orelse, ast.Constant) and bool(test.body.value) != bool(test.orelse.value):
                same = bool(test.body.value) == holds
                return self._tells_root(test.test, statement, same, depth + 1)
        if isinstance(test, ast.Call):
            functions = self._script.names.called_functions(self._script.site_of(test))
            returned = [each for function in functions for each in function.returns]
            return bool(returned) and all(
                at is not None and self._tells_root(value, at, holds, depth + 1) for value, at in returned
            )
        if isinstance(test, ast.Name | ast.Attribute):
            return self._variable_tells_root(test, statement, holds, depth)
        return False

    def _variable_tells_root(
        self, test: ast.Name | ast.Attribute, statement: Statement, holds: bool, depth: int
    ) -> bool:
        if isinstance(test, ast.Name):
            _, bindings = self._script.names.lookup(test.id, statement.scope, statement)
        else:
            bindings = [each.binding for each in self._script.attribute_bindings(test.attr)]
        return bool(bindings) and all(
            binding.kind == "value"
            and binding.value is not None
            and binding.statement is not None
            and self._tells_root(binding.value, binding.statement, holds, depth + 1)
            for binding in bindings
        )

    def _is_rank(self, node: ast.expr, statement: Statement) -> bool:
        if isinstance(node, ast.Call) and not node.args:
            return self._function(node.func, statement.scope, statement) in ("rank", "local_rank")
        if isinstance(node, ast.NamedExpr):
            return self._is_rank(node.value, statement)
        if isinstance(node, ast.Name | ast.Attribute):
            bindings = (
                self._script.names.lookup(node.id, statement.scope, statement)[1]
                if isinstance(node, ast.Name)
                else self._attribute(node, statement.scope, statement)
            )
            return bool(bindings) and all(
                binding.kind == "value"
                and isinstance(binding.value, ast.Call)
                and binding.statement is not None
                and self._is_rank(binding.value, binding.statement)
                for binding in bindings
            )
        return False


def _leaves(node: ast.stmt) -> bool:
    """Whether what follows the statement is not run."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return last_name(node.value.func) in ("exit", "quit", "_exit")
    return isinstance(node, ast.Return | ast.Raise | ast.Continue)
