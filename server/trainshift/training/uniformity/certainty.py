"""Certainty: the sources of an expression's value, as far as the script shows all of them.

Ranks are started by one command: its arguments, its environment and the files that configure it are the same
for all of them, and so are the constants of the script.  The result of a library may differ by rank.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from trainshift.core.program import Program
from trainshift.python.flow.traversal import reachable
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
    Statement,
    arguments,
    children,
    is_main_guard,
    last_name,
    root_name,
)
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.uniformity.value_flow import ValueFlow

# Prefixes of names that hold or return the arguments and environment of a run.
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
# Functions whose value depends on their arguments only.
_PURE = frozenset(
    f"builtins.{name}"
    for name in (
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset", "getattr",
        "hasattr", "int", "isinstance", "len", "list", "max", "min", "range", "reversed", "round", "set",
        "sorted", "str", "sum", "tuple", "type", "zip",
    )
)  # fmt: skip
# Methods, such as those of paths, that read a rank's own disk.
_OF_DISK = frozenset(
    {"exists", "glob", "is_dir", "is_file", "iterdir", "open", "read_bytes", "read_text", "stat"}
)
# Launchers tell each process its own number by variables with this in their names.
_OF_ONE_RANK = "RANK"
# The methods of callbacks that get the number of an epoch or a batch, of which all ranks take equally many.
_HOOK = re.compile(r"on_(epoch|((train|test|predict)_)?batch)_(begin|end)")
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
# Owners of attributes are followed through at most this many attributes; beyond, nothing is known.
_DEEPEST = 30

Place: TypeAlias = tuple[int, int]
"""An expression and its scope, by which it is known while its script lives."""
Parts: TypeAlias = tuple[Occurrence, ...] | None
"""The parts that a value is computed from; None if the text does not show them."""


class Certainty:
    """The values of one program that certainly come from data which all ranks share."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._flow = program.fact(ValueFlow)
        self._known: dict[Place, bool] = {}
        self._parts: dict[Place, Parts] = {}
        self._controls: dict[Statement, Parts] = {}
        self._depth = 0

    def is_shown(self, at: Occurrence) -> bool:
        """Return whether the script shows all sources of a value, and all ranks share them."""
        key = _place(at)
        if key not in self._known:
            if self._depth >= _DEEPEST:
                return False
            self._known[key] = False  # Asked again for the owner of an attribute: it depends on itself.
            self._depth += 1
            seen: set[Place] = set()
            known = self._known
            reached = reachable(
                [at],
                lambda each: () if known.get(_place(each)) else self._rests_on(each) or (),
                _place,
                seen,
            )
            if all(known.get(_place(each)) or self._rests_on(each) is not None for each in reached):
                known.update(dict.fromkeys(seen, True))
            self._depth -= 1
        return self._known[key]

    def _rests_on(self, at: Occurrence) -> Parts:
        """The expressions from which a value is computed, one step back; None if the script does not show
        them.
        """
        key = _place(at)
        if key not in self._parts:
            self._parts[key] = self._read(at)
        return self._parts[key]

    def _read(self, at: Occurrence) -> Parts:
        node = at.node
        if isinstance(node, _OPAQUE):
            return None
        if isinstance(node, ast.Call):
            return self._of_call(node, at)
        if isinstance(node, ast.Name | ast.Attribute):
            return () if self._is_setting(at) else self._of_binding(at)
        if isinstance(node, ast.Subscript) and self._is_setting(at.part(node.value)):
            return None if _OF_ONE_RANK in ast.unparse(node.slice) else ()
        return tuple(at.part(each) for each in children(node) if isinstance(each, ast.expr))

    def _of_call(self, node: ast.Call, at: Occurrence) -> Parts:
        if any(_OF_ONE_RANK in str(each.value) for each in node.args if isinstance(each, ast.Constant)):
            return None
        if last_name(node.func) in _OF_DISK:
            return None
        if self._is_setting(at) or self._flow.is_collected(at):
            return ()
        callees = self._names.values(node.func, at.scope, at.statement)
        if callees and all(isinstance(each, Function) for each in callees):
            return self._of_sources(at)
        given = tuple(map(at.part, arguments(node)))
        if callees and all(isinstance(each, Library) and each.name in _PURE for each in callees):
            return given
        # A method of a value that is the same on all ranks: ``args.mode.lower()``.
        return (*given, at.part(node.func.value)) if isinstance(node.func, ast.Attribute) else None

    def _is_setting(self, at: Occurrence) -> bool:
        """Return whether an expression is, or comes from, a setting of the run (arguments, environment)."""
        values = self._names.values(at.node, at.scope, at.statement)
        known = values - {UNKNOWN}
        if len(known) != 1 or not all(map(is_given, known)):
            return False
        # A name imported from an unknown library may also be an object of any class.
        root = root_name(at.node)
        bound = self._names.lookup(root.id, at.scope, at.statement)[1] if root is not None else []
        return known == values or (bool(bound) and all(each.kind == "import" for each in bound))

    def _of_binding(self, at: Occurrence) -> Parts:
        """The expressions that a name or an attribute gets its value from."""
        if isinstance(at.node, ast.Attribute):
            if self.is_shown(at.part(at.node.value)):
                return ()
            # A library may set the attributes of its objects: `model.stop_training`.
            owners = self._names.values(at.node.value, at.scope, at.statement)
            if not owners or not all(isinstance(each, UserInstance | Class | Module) for each in owners):
                return None
        bindings = self._names.bindings(at)
        if bindings and all(each.kind == "element" for each in bindings):
            return _joined(map(self._of_element, bindings))
        if bindings and all(
            each.kind == "parameter" and (self._is_option(each) or _counts_turns(each, at.node))
            for each in bindings
        ):
            return ()
        return self._of_sources(at)

    def _of_element(self, binding: Binding) -> Parts:
        """The sources of a loop's target; a loop over a count has the same values on all ranks."""
        if binding.value is None:
            return None
        at = Occurrence(binding.value, binding.scope, binding.statement)
        if isinstance(at.node, ast.Call) and binding.path == (0,):
            if "builtins.enumerate" in self._names.full_names(at.node.func, at.scope, at.statement):
                return ()
        return (at,)

    def _is_option(self, binding: Binding) -> bool:
        """Return whether a parameter is a command-line option, judged by its function's decorators."""
        function = binding.inner
        decorators = getattr(function.node, "decorator_list", ()) if function is not None else ()
        return any(
            is_given(value)
            for each in decorators
            for value in self._names.values(
                each.func if isinstance(each, ast.Call) else each, binding.scope, binding.statement
            )
        )

    def _of_sources(self, at: Occurrence) -> Parts:
        sources = self._names.all_sources(at)
        if len(sources) < 2:
            return sources or None
        # The control flow decides which of several values it is.
        return _joined([sources, *(self._controls_of(each.statement) for each in sources)])

    def _controls_of(self, statement: Statement | None) -> Parts:
        """The tests that decide whether a rank runs a statement, up to the start of the program."""
        if statement is None:
            return ()
        if statement not in self._controls:
            unseen = False

            def callers(each: Statement) -> list[Statement]:
                nonlocal unseen
                function = each.scope.function()
                sites, elsewhere = self._names.callers(function) if function is not None else ([], False)
                unseen = unseen or bool(elsewhere)
                return [site.statement for site in sites]

            found = _joined(map(self._around, reachable([statement], callers)))
            self._controls[statement] = None if unseen else found
        return self._controls[statement]

    def _around(self, statement: Statement) -> Parts:
        """The tests in a statement's own function that decide whether it runs."""
        found: list[Parts] = []
        for below, above in pairwise([*_within(statement), None]):
            assert below is not None
            block, index = self._script.siblings(below)
            found += map(self._passes, block[:index])
            if above is not None:
                found.append(self._enters(above, below))
        return _joined(found)

    def _passes(self, statement: Statement) -> Parts:
        """The tests that decide whether ranks continue after a statement."""
        leaves = any(
            isinstance(each.node, _LEAVING) and each.scope is statement.scope
            for block in statement.branches.values()
            for inner in block
            for each in inner.walk()
        )
        if not leaves:
            return ()
        return _tested(statement) if isinstance(statement.node, ast.If) else None

    def _enters(self, above: Statement, below: Statement) -> Parts:
        """The tests at a compound statement that decide whether a rank enters one of its blocks."""
        node = above.node
        if isinstance(node, ast.If):
            return _tested(above)
        if isinstance(node, ast.With | ast.AsyncWith):
            return ()
        if isinstance(node, ast.Match):
            return (Occurrence(node.subject, above.scope, above),)
        if isinstance(node, LOOPS):
            decides = node.test if isinstance(node, ast.While) else node.iter
            return (Occurrence(decides, above.scope, above),)
        return () if below.branch == "finalbody" else None


def _tested(statement: Statement) -> Parts:
    assert isinstance(statement.node, ast.If)
    is_main = is_main_guard(statement)
    return () if is_main else (Occurrence(statement.node.test, statement.scope, statement),)


def _joined(found: Iterable[Parts]) -> Parts:
    parts: list[Occurrence] = []
    for each in found:
        if each is None:
            return None
        parts += each
    return tuple(parts)


def _place(at: Occurrence) -> Place:
    return id(at.node), id(at.scope)


def _within(statement: Statement) -> Iterator[Statement]:
    """A statement and the enclosing ones in its function."""
    for each in statement.path():
        if each.scope.function() is not statement.scope.function():
            return
        yield each


def is_given(value: Value) -> bool:
    """Return whether a value is, or comes from, a setting of the run."""
    name = ""
    if isinstance(value, Library):
        name = value.name
    elif isinstance(value, Instance):
        name = value.cls
    elif isinstance(value, Member) and isinstance(value.owner, Instance):
        name = value.owner.cls
    return any(name == each or name.startswith(f"{each}.") for each in _SETTINGS)


def _counts_turns(binding: Binding, name: ast.AST) -> bool:
    """Return whether a parameter is the number of an epoch or a batch that Keras tells a callback."""
    function = binding.inner.node if binding.inner is not None else None
    if not isinstance(function, ast.FunctionDef) or not _HOOK.fullmatch(function.name):
        return False
    first = function.args.args[1:2]
    return isinstance(name, ast.Name) and [each.arg for each in first] == [name.id]
