"""Alike: which expressions surely have one value on all ranks, so that no rank decides otherwise by them.

Ranks are started by one command: its arguments, its environment and the files that configure it are the same
for all of them, and so is what the script itself says.  What a rank reads from its disk, draws at random or
computes while it trains may be its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from trainshift.core.program import Program
from trainshift.python.flow.evaluation import LOOPS
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import (
    UNKNOWN,
    Class,
    Function,
    Instance,
    Library,
    Member,
    Module,
    UserInstance,
    Value,
)
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Statement,
    arguments,
    children,
    is_main_guard,
    last_name,
    root_name,
)

# What a run is started with, and what gives it: all that begins with one of these.
_SETTINGS = (
    "absl.flags", "argparse", "click", "configparser", "docopt", "getopt", "gin", "horovod.keras.size",
    "horovod.tensorflow.keras.size", "horovod.tensorflow.size", "hydra", "json.load", "json.loads",
    "keras.__version__", "keras.backend.backend", "keras.config.backend", "ml_collections", "omegaconf",
    "optparse", "os.environ", "os.getenv", "os.name", "platform.system", "sys.argv", "sys.flags",
    "sys.platform", "sys.version", "sys.version_info", "tensorflow.__version__",
    "tensorflow.app.flags", "tensorflow.compat.v1.app.flags", "tensorflow.compat.v1.flags",
    "tensorflow.keras.__version__", "tensorflow.keras.backend.backend",
    "tensorflow.executing_eagerly", "tensorflow.flags", "tensorflow.version", "toml", "tomli", "tomllib",
    "typer", "wandb.config", "yaml",
)  # fmt: skip
# Functions whose value is decided by what they are given.
_PURE = frozenset(
    f"builtins.{name}"
    for name in (
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset", "getattr",
        "hasattr", "int", "isinstance", "len", "list", "max", "min", "range", "reversed", "round", "set",
        "sorted", "str", "sum", "tuple", "type", "zip",
    )
)  # fmt: skip
# Methods, of paths say, that ask a rank's own disk.
_OF_DISK = frozenset(
    {"exists", "glob", "is_dir", "is_file", "iterdir", "open", "read_bytes", "read_text", "stat"}
)
# Launchers tell each process its own number by variables with this in their names.
_OF_ONE_RANK = "RANK"
_LEAVING = (ast.Break, ast.Continue, ast.Raise, ast.Return)
_OPAQUE = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
)
# A value is not followed through more names than this; behind them it may differ between ranks.
_DEEPEST = 30


class Alike:
    """What the ranks of one program agree on."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._known: dict[tuple[int, int], bool] = {}
        self._running: dict[Statement, bool] = {}
        self._depth = 0

    def is_same(self, at: Occurrence) -> bool:
        """Whether an expression surely has the same value on every rank."""
        key = id(at.node), id(at.scope)
        if key not in self._known:
            if self._depth >= _DEEPEST:
                return False
            self._known[key] = False  # asked again while it is being answered: it depends on itself
            self._depth += 1
            self._known[key] = self._read(at)
            self._depth -= 1
        return self._known[key]

    def _read(self, at: Occurrence) -> bool:
        node = at.node
        if isinstance(node, _OPAQUE):
            return False
        if isinstance(node, ast.Call):
            return self._is_same_call(node, at)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._is_setting(at) or self._is_bound_alike(at)
        if isinstance(node, ast.Subscript) and self._is_setting(at.part(node.value)):
            return _OF_ONE_RANK not in ast.unparse(node.slice)
        return all(self.is_same(at.part(each)) for each in _parts(node))

    def _is_same_call(self, node: ast.Call, at: Occurrence) -> bool:
        if any(_OF_ONE_RANK in str(each.value) for each in node.args if isinstance(each, ast.Constant)):
            return False
        if last_name(node.func) in _OF_DISK:
            return False
        if self._is_setting(at):
            return True
        callees = self._names.values(node.func, at.scope, at.statement)
        if callees and all(isinstance(each, Function) for each in callees):
            return self._is_of_same_sources(at)
        given = all(self.is_same(at.part(each)) for each in arguments(node))
        if callees and all(isinstance(each, Library) and each.name in _PURE for each in callees):
            return given
        # A method of what is the same: ``args.mode.lower()``.
        return given and isinstance(node.func, ast.Attribute) and self.is_same(at.part(node.func.value))

    def _is_setting(self, at: Occurrence) -> bool:
        """Whether it is, or comes from, what the run is started with."""
        values = self._names.values(at.node, at.scope, at.statement)
        known = values - {UNKNOWN}
        if len(known) != 1 or not all(map(is_given, known)):
            return False
        # What is imported from a library that is not known is also taken for an object of any kind.
        root = root_name(at.node)
        bound = self._names.lookup(root.id, at.scope, at.statement)[1] if root is not None else []
        return known == values or (bool(bound) and all(each.kind == "import" for each in bound))

    def _is_bound_alike(self, at: Occurrence) -> bool:
        """Whether a name or an attribute has its value from what is the same."""
        if isinstance(at.node, ast.Attribute):
            if self.is_same(at.part(at.node.value)):
                return True
            # A library may set the attributes of its objects: `model.stop_training`.
            owners = self._names.values(at.node.value, at.scope, at.statement)
            if not owners or not all(isinstance(each, UserInstance | Class | Module) for each in owners):
                return False
        bindings = self._names.bindings(at)
        if bindings and all(each.kind == "element" for each in bindings):
            return all(map(self._is_same_element, bindings))
        if bindings and all(each.kind == "parameter" and self._is_option(each) for each in bindings):
            return True
        return self._is_of_same_sources(at)

    def _is_same_element(self, binding: Binding) -> bool:
        """Whether a loop gives its target the same value at the same turn; a count is the same anyhow."""
        if binding.value is None:
            return False
        at = Occurrence(binding.value, binding.scope, binding.statement)
        counts = isinstance(at.node, ast.Call) and binding.path == (0,)
        if counts and "builtins.enumerate" in self._names.full_names(at.node.func, at.scope, at.statement):  # type: ignore[attr-defined]
            return True
        return self.is_same(at)

    def _is_option(self, binding: Binding) -> bool:
        """Whether a parameter is an option of the command line, by its function's decorators."""
        function = binding.inner
        decorators = getattr(function.node, "decorator_list", ()) if function is not None else ()
        return any(
            is_given(value)
            for each in decorators
            for value in self._names.values(
                each.func if isinstance(each, ast.Call) else each, binding.scope, binding.statement
            )
        )

    def _is_of_same_sources(self, at: Occurrence) -> bool:
        step = self._names.steps_back(at)
        if step is None or step.unseen or not step.sources:
            return False
        # Which of several values it is, is decided by what runs.
        several = len(step.sources) > 1
        return all(self.is_same(each) for each in step.sources) and not (
            several and not all(self._runs_alike(each.statement) for each in step.sources)
        )

    def _runs_alike(self, statement: Statement | None) -> bool:
        """Whether a statement runs on every rank or on none, as far as conditions around it tell."""
        if statement is None:
            return True
        if statement not in self._running:
            self._running[statement] = True  # A function that calls itself is called by another one first.
            self._running[statement] = self._is_run_alike(statement)
        return self._running[statement]

    def _is_run_alike(self, statement: Statement) -> bool:
        for below, above in pairwise([*_within(statement), None]):
            assert below is not None
            block, index = self._script.siblings(below)
            if not all(self._passes(each) for each in block[:index]):
                return False
            if above is not None and not self._enters(above, below):
                return False
        function = statement.scope.function()
        callers = self._callers(function) if function is not None else []
        return callers is not None and all(map(self._runs_alike, callers))

    def _callers(self, function: Scope) -> list[Statement] | None:
        """The statements that call a function; None where they are not all seen."""
        sites, elsewhere = self._names.callers(function)
        return None if elsewhere else [site.statement for site in sites]

    def _passes(self, statement: Statement) -> bool:
        """Whether all ranks that come to a statement go on behind it, or none."""
        leaves = any(
            isinstance(each.node, _LEAVING) and each.scope is statement.scope
            for block in statement.branches.values()
            for inner in block
            for each in inner.walk()
        )
        return not leaves or (isinstance(statement.node, ast.If) and self._is_tested(statement))

    def _enters(self, above: Statement, below: Statement) -> bool:
        """Whether all ranks that come to a compound statement come to a statement of its block, or none."""
        node = above.node
        if isinstance(node, ast.If):
            return self._is_tested(above)
        if isinstance(node, ast.With | ast.AsyncWith):
            return True
        if isinstance(node, ast.Match):
            return self.is_same(Occurrence(node.subject, above.scope, above))
        if isinstance(node, LOOPS):
            decides = node.test if isinstance(node, ast.While) else node.iter
            return self.is_same(Occurrence(decides, above.scope, above))
        return below.branch == "finalbody"

    def _is_tested(self, statement: Statement) -> bool:
        assert isinstance(statement.node, ast.If)
        return is_main_guard(statement) or self.is_same(
            Occurrence(statement.node.test, statement.scope, statement)
        )


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that an expression is made of; an interpolation is one of its f-string's."""
    for child in children(node):
        if isinstance(child, ast.expr):
            yield child


def _within(statement: Statement) -> Iterator[Statement]:
    """A statement and those around it in its function."""
    for each in statement.path():
        if each.scope.function() is not statement.scope.function():
            return
        yield each


def is_given(value: Value) -> bool:
    """Whether a value is, or comes from, what a run is started with."""
    name = ""
    if isinstance(value, Library):
        name = value.name
    elif isinstance(value, Instance):
        name = value.cls
    elif isinstance(value, Member) and isinstance(value.owner, Instance):
        name = value.owner.cls
    return any(name == each or name.startswith(f"{each}.") for each in _SETTINGS)
