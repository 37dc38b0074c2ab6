"""Choice: the tests by which a script decides whether it uses Horovod, and for which training.

if args.horovod:                        try:
    import horovod.tensorflow as hvd        import horovod.tensorflow as hvd
                                        except ImportError:
                                            hvd = None
"""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Literal
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Site,
    Statement,
    expression_path,
    for_type_checkers,
    is_main_guard,
)
from trainshift.python.values.backward_slice import backward_slice
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.horovod.existing_use import Horovod


class Choice:
    """The option of one program to run without Horovod."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    @cached_property
    def is_optional(self) -> bool:
        """Return whether the program may run without Horovod, whose name may then be unbound or None."""
        return bool(self._imports) and all(map(self._may_lack, self._imports))

    def leaves_out(self, wrap: Site, made: Site) -> bool:
        """Return whether a condition of the script decides if one call's result is wrapped by another.

        Tests of the number of ranks (``if hvd.size() > 1:``), of Horovod's availability, and tests that are
        always true do not count.  Code that elastic training leaves out comes before it makes all ranks
        equal.
        """
        tests = [test for test in _conditions(wrap) if test not in _conditions(made)]
        return any(tests) and not (self._horovod.is_elastic or any(map(self._lets_wrap, tests)))

    def _lets_wrap(self, test: Occurrence) -> bool:
        """Return whether a test holds wherever several ranks train."""
        if self._horovod.divided(*test[:3]) or self._is_of_choice(test):
            return True
        values = self._names.values(test.node, test.scope, test.statement)
        return bool(values) and all(isinstance(each, Literal) and each.value is True for each in values)

    @cached_property
    def _imports(self) -> list[Binding]:
        found = (each for each in self._script.imports if each.full_name.partition(".")[0] == "horovod")
        return [each for each in found if each.statement is not None]

    def _may_lack(self, binding: Binding) -> bool:
        """Return whether code continues without the name that an import binds."""
        assert binding.statement is not None
        if for_type_checkers(binding.statement):
            return True
        return any(
            self._may_pass_by(above, below)
            for below, above in zip(binding.statement.path(), binding.statement.ancestors(), strict=False)
            if above.scope is below.scope
        )

    def _may_pass_by(self, above: Statement, below: Statement) -> bool:
        """Return whether code after a statement may run without a part of it."""
        if isinstance(above.node, ast.If):
            others = [block for name, block in above.branches.items() if name != below.branch]
            left = [self._program.fact(ControlFlow).leaves(block) for block in others if block]
            return not is_main_guard(above) and not (left and all(left))
        if isinstance(above.node, ast.Try) and below.branch == "body":
            handlers = [block for name, block in above.branches.items() if name.startswith("except")]
            return not all(map(self._makes_up, handlers))
        return False

    def _makes_up(self, handler: list[Statement]) -> bool:
        """Return whether a failed import ends the run, or the handler binds a replacement."""
        classes = (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Raise)
        return any(isinstance(each.node, classes) for top in handler for each in top.walk()) or (
            bool(handler) and self._program.fact(ControlFlow).leaves(handler)
        )

    # Conditions

    def _is_of_choice(self, test: Occurrence) -> bool:
        """Return whether a test is for Horovod's availability, or around its import or start."""
        node = test.node
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return all(self._is_of_choice(test.part(each)) for each in node.values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.IsNot):
            test = test.part(node.left)
        names = self._names.full_names(test.node, test.scope, test.statement)
        return any(name.startswith("horovod.") for name in names) or not self._shown(test).isdisjoint(
            self._tests
        )

    @cached_property
    def _tests(self) -> set[str]:
        """The tests around the script's import or start of Horovod, and the names that record success."""
        found: set[str] = set()
        started = [(site.statement, site.node) for site in self._horovod.calls("init")]
        for statement in [each.statement for each in self._imports] + [each for each, _ in started]:
            for above in statement.ancestors() if statement is not None else ():
                if isinstance(above.node, ast.If) and not is_main_guard(above):
                    found |= self._shown(Occurrence(above.node.test, above.scope, above))
                elif isinstance(above.node, ast.Try):
                    found.update(f"set at {id(each)}" for top in above.walk() for each in [top.node])
        return found

    def _shown(self, test: Occurrence) -> set[str]:
        """The texts of a test's operands, both direct and assigned."""
        found: set[str] = set()
        for at in backward_slice(self._names, test):
            found.add(ast.dump(at.node))
            if isinstance(at.node, ast.Constant) and at.statement is not None:
                found.add(f"set at {id(at.statement.node)}")
        return {each for each in found if not each.startswith("Constant")}


def _conditions(site: Site) -> list[Occurrence]:
    """The tests around a call, in its function."""
    path = expression_path(site.statement.node, site.node)
    tests = [_at(outer.test, site.statement) for outer in path if isinstance(outer, ast.IfExp)]
    for each in site.statement.ancestors():
        if each.scope is site.statement.scope and isinstance(each.node, ast.If | ast.Match):
            node = each.node
            tests.append(_at(node.test if isinstance(node, ast.If) else node.subject, each))
    return tests


def _at(node: ast.expr, statement: Statement) -> Occurrence:
    return Occurrence(node, statement.scope, statement)
