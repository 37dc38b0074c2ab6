"""Device choices: the places where a script itself chooses GPUs, which would undo the pinning of one GPU per
rank.

It chooses with environment variables that hide GPUs, set in any way, or with TensorFlow's
`set_visible_devices`.  A choice is a whole statement, an entry of a dictionary or of a call, or a part of
other code, from which it cannot be removed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.devices import DEVICE_VARIABLES, LIMITS_MEMORY, LISTS_DEVICES, SETS_VISIBLE
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Display, Instance, Literal
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    arguments,
    expression_path,
    is_alone,
    last_name,
)
from trainshift.training.devices.pinning import NO_GPU, Pinning
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loops import Loops
from trainshift.training.uniformity.uniformity import Uniformity

_SETTING = ("os.putenv", "os.environ.setdefault", "os.environ.__setitem__")
_UPDATING = "os.environ.update"
_METHODS = frozenset(name.rpartition(".")[2] for name in (*_SETTING, _UPDATING))
_READING = ("get", "getenv", "pop")
_BARE = "this chooses GPUs itself, which would undo one GPU per rank; give it a statement of its own"
_SHARED = "the dictionary chooses GPUs other than by rank, and is used elsewhere too: leave its entry out"


class Entry(Struct, frozen=True, eq=False):
    """An entry of a dictionary or of a call that is a choice: from `first` to `last`, in `container`."""

    first: ast.AST
    last: ast.AST
    container: ast.expr
    statement: Statement


class Target(Struct, frozen=True, eq=False):
    """One of several targets of an assignment that is a choice, by its place among them."""

    index: int
    statement: Statement


class Hidden(Struct, frozen=True, eq=False):
    """A choice that cannot be removed, and the reason."""

    node: ast.expr
    statement: Statement
    reason: str


@dataclass(slots=True)
class Choices:
    """The device choices of one script, by the action that they need."""

    statements: list[Statement] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)

    @property
    def places(self) -> list[Statement]:
        """The statements of all of them, each once."""
        others: tuple[Entry | Target | Hidden, ...] = (*self.entries, *self.targets, *self.hidden)
        return list(dict.fromkeys((*self.statements, *(each.statement for each in others))))


class DeviceChoices:
    """The choices of GPUs of one script that are not made by rank."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    # By the environment

    @cached_property
    def of_environment(self) -> Choices:
        """The places that set a variable which hides GPUs."""
        found = Choices()
        if not any(name in self._script.source.text for name in DEVICE_VARIABLES):
            return found
        for statement in self._script.statements:
            self._read_assignment(statement, found)
        for site in self._script.sites_calling(_METHODS):
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            alone = is_alone(site)
            if not names.isdisjoint(_SETTING) and len(site.node.args) > 1:
                key, value = site.node.args[:2]
                if self._is_variable(key, site.scope, site.statement) and not self._pinned(
                    value, site.statement
                ):
                    if alone:
                        found.statements.append(site.statement)
                    else:
                        found.hidden.append(Hidden(site.node, site.statement, _BARE))
            elif _UPDATING in names:
                chosen, every = self._entries(site.node, site.statement)
                self._add_entries(chosen, every and alone, site.node, site.statement, found)
        return found

    def _read_assignment(self, statement: Statement, found: Choices) -> None:
        node = statement.node
        if isinstance(node, ast.AugAssign) and self._is_environment(node.target, statement):
            chosen, every = self._entries(node.value, statement)
            self._add_entries(chosen, every, node.value, statement, found)
            return
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign) else targets
        for index, target in enumerate(targets):
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for part in parts:
                if not isinstance(part, ast.Subscript) or not self._is_environment(part.value, statement):
                    continue
                assert isinstance(node, ast.Assign | ast.AugAssign)
                if self._pinned(node.value, statement):
                    continue
                if self._is_variable(part.slice, statement.scope, statement):
                    if part is not target:
                        found.hidden.append(Hidden(part, statement, _BARE))
                    elif len(targets) > 1:
                        found.targets.append(Target(index, statement))
                    else:
                        found.statements.append(statement)
                else:
                    self._read_key(part.slice, statement, found)

    def _read_key(self, key: ast.expr, statement: Statement, found: Choices) -> None:
        """Record a variable whose name comes from the keys of a dictionary, one after the other."""
        if not isinstance(key, ast.Name):
            return
        for binding in self._names.lookup(key.id, statement.scope, statement)[1]:
            given = binding.value
            if binding.kind == "element" and given is not None and binding.statement is not None:
                if isinstance(given, ast.Call) and last_name(given.func) in ("items", "keys"):
                    assert isinstance(given.func, ast.Attribute)
                    given = given.func.value
                chosen, _ = self._entries(given, binding.statement)
                self._add_entries(chosen, False, given, binding.statement, found)

    def _add_entries(
        self, chosen: list[Entry], every: bool, node: ast.expr, statement: Statement, found: Choices
    ) -> None:
        """Add the choices in a mapping `node` for the environment, or its whole statement."""
        if every:
            found.statements.append(statement)
            return
        name = node.args[0] if isinstance(node, ast.Call) and node.args else node
        written_here = [each for each in chosen if each.container in ast.walk(node)]
        shared = len(written_here) < len(chosen) and not (
            isinstance(name, ast.Name) and self._script.loads(name.id) == 1
        )
        if shared:
            found.hidden.append(Hidden(node, statement, _SHARED))
        else:
            found.entries += chosen

    def _entries(self, node: ast.expr, statement: Statement) -> tuple[list[Entry], bool]:
        """The entries of a literal mapping that are choices, and whether they are all of it."""
        if isinstance(node, ast.Dict):
            chosen, every = [], True
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    inner, all_of_it = self._entries(value, statement)
                    chosen += inner
                    every = every and all_of_it
                elif self._chooses(key, value, statement):
                    chosen.append(Entry(key, value, node, statement))
                else:
                    every = False
            return chosen, every and bool(chosen)
        if isinstance(node, ast.Call) and self._takes_pairs(node, statement):
            chosen, every = [], True
            for given in node.args:
                inner, all_of_it = self._entries(given, statement)
                chosen += inner
                every = every and all_of_it
            for word in node.keywords:
                if word.arg in DEVICE_VARIABLES and not self._pinned(word.value, statement):
                    chosen.append(Entry(word, word, node, statement))
                else:
                    every = False
            return chosen, every and bool(chosen)
        if isinstance(node, ast.List | ast.Tuple):
            pairs = [
                Entry(each, each, node, statement)
                for each in node.elts
                if isinstance(each, ast.Tuple | ast.List)
                and len(each.elts) == 2
                and self._chooses(each.elts[0], each.elts[1], statement)
            ]
            return pairs, bool(pairs) and len(pairs) == len(node.elts)
        return [each for shown in self._displays(node, statement) for each in shown], False

    def _displays(self, node: ast.expr, statement: Statement) -> Iterator[list[Entry]]:
        """Yield the choosing entries of the mappings to which a name may refer."""
        for value in self._names.values(node, statement.scope, statement):
            if isinstance(value, Display) and value.node is not node and value.statement is not None:
                if isinstance(value.node, ast.Dict | ast.Call):
                    yield self._entries(value.node, value.statement)[0]

    def _takes_pairs(self, node: ast.Call, statement: Statement) -> bool:
        names = self._names.full_names(node.func, statement.scope, statement)
        return not names.isdisjoint({"builtins.dict", _UPDATING})

    def _chooses(self, key: ast.expr, value: ast.expr, statement: Statement) -> bool:
        return self._is_variable(key, statement.scope, statement) and not self._pinned(value, statement)

    def _is_variable(self, node: ast.expr, scope: Scope, statement: Statement) -> bool:
        values = self._names.values(node, scope, statement)
        return any(isinstance(value, Literal) and value.value in DEVICE_VARIABLES for value in values)

    def _is_environment(self, node: ast.expr, statement: Statement) -> bool:
        return "os.environ" in self._names.full_names(node, statement.scope, statement)

    def _pinned(self, value: ast.expr, statement: Statement) -> bool:
        """Return whether a choice is one by rank, or one of no GPU that stays."""
        return self._does_without(value, statement) or self._program.fact(Uniformity).on_rank(
            Occurrence(value, statement.scope, statement)
        )

    def _does_without(self, value: ast.expr, statement: Statement) -> bool:
        """Return whether a choice hides all GPUs, in a script that works without or launches others."""
        if not isinstance(value, ast.Constant) or value.value not in NO_GPU:
            return False
        told = any(isinstance(each.node, ast.If) for each in statement.ancestors())
        return told or self._horovod.starts_in_functions or self._program.fact(Pinning).hides_all

    @cached_property
    def of_none(self) -> list[Statement]:
        """The statements that hide all GPUs, and stay."""
        return [
            statement
            for statement in self._script.statements
            if isinstance(statement.node, ast.Assign)
            and self._does_without(statement.node.value, statement)
            and any(
                isinstance(each, ast.Subscript)
                and self._is_environment(each.value, statement)
                and self._is_variable(each.slice, statement.scope, statement)
                for each in statement.node.targets
            )
        ]

    @cached_property
    def is_read(self) -> bool:
        """Return whether code fails without a variable that hides GPUs: it reads or deletes its value."""
        for statement in self._script.top:
            for part in ast.walk(statement.node):
                if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Store):
                    if _names_variable(part.slice):
                        return True
        return any(
            len(site.node.args) == 1
            and _names_variable(site.node.args[0])
            and (site.name == "pop" or _takes_apart(site.parent))
            for site in self._script.sites_named(*_READING)
        )

    # By TensorFlow

    @cached_property
    def of_tensorflow(self) -> Choices:
        """The places that make some GPUs visible to TensorFlow."""
        found = Choices()
        if self._program.fact(Pinning).hides_all:
            return found
        called: set[ast.expr] = set()
        for site in self._script.sites_calling(api.last_names(SETS_VISIBLE)):
            if not self._names.calls(site, SETS_VISIBLE):
                continue
            called.add(site.node.func)
            kind = argument(site.node, 1, "device_type")
            if isinstance(kind, ast.Constant) and kind.value not in ("GPU", None):
                continue
            given = arguments(site.node)
            if any(self._program.fact(Uniformity).on_rank(of_call(site).part(each)) for each in given):
                continue
            if self._is_all(site):
                found.statements.append(site.statement)
            else:
                found.hidden.append(Hidden(site.node, site.statement, _BARE))
        for node, statement in self._handed_on(called):
            found.hidden.append(Hidden(node, statement, _BARE))
        return found

    def _is_all(self, site: Site) -> bool:
        """Return whether a statement consists of the call, perhaps under a condition or repeated."""
        node = site.statement.node
        if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Lambda):
            return False
        above = expression_path(node, site.node)[1:-1]
        others = [
            part for part in ast.walk(node.value) if isinstance(part, ast.Call) and part is not site.node
        ]
        inside = set(ast.walk(site.node))
        return all(isinstance(each, ast.IfExp | ast.BoolOp | ast.ListComp) for each in above) and all(
            other in inside for other in others
        )

    def _handed_on(self, called: set[ast.expr]) -> Iterator[tuple[ast.expr, Statement]]:
        """Yield the places that pass TensorFlow's function on, to be called elsewhere."""
        if self._script.identifiers.isdisjoint(api.last_names(SETS_VISIBLE)):
            return
        for site in self._script.sites:
            for given in (*site.node.args, *(word.value for word in site.node.keywords)):
                if isinstance(given, ast.Name | ast.Attribute) and given not in called:
                    names = self._names.full_names(given, site.scope, site.statement)
                    if SETS_VISIBLE in names:
                        yield given, site.statement

    # Limits of memory

    @cached_property
    def limited(self) -> list[tuple[ast.Subscript, Statement]]:
        """The GPUs with a memory limit, each selected from the list of all GPUs by a number."""
        found: list[tuple[ast.Subscript, Statement]] = []
        if not self._program.fact(Loops).runs_eagerly:
            return found
        for site in self._script.sites_calling(api.last_names(LIMITS_MEMORY)):
            device = argument(site.node, 0, "device")
            if device is not None and self._names.calls(site, LIMITS_MEMORY):
                found += self._indices(device, site.scope, site.statement)
        return list(dict.fromkeys(found))

    def _indices(
        self, device: ast.expr, scope: Scope, statement: Statement
    ) -> Iterator[tuple[ast.Subscript, Statement]]:
        """Yield the constant subscripts of the list of all GPUs behind a device."""
        if isinstance(device, ast.Subscript) and isinstance(device.slice, ast.Constant):
            if self._lists_gpus(self._names.values(device.value, scope, statement)):
                yield device, statement
        elif isinstance(device, ast.Name):
            for binding in self._names.lookup(device.id, scope, statement)[1]:
                whole = binding.kind == "value" and not binding.path and binding.statement is not None
                if whole and binding.value is not None and binding.statement is not None:
                    yield from self._indices(binding.value, binding.scope, binding.statement)

    def _lists_gpus(self, values: Iterable[object]) -> bool:
        for value in values:
            if isinstance(value, Instance) and value.cls == LISTS_DEVICES:
                kind = argument(value.node, 0, "device_type")
                return isinstance(kind, ast.Constant) and kind.value == "GPU"
        return False


def _takes_apart(node: ast.AST) -> bool:
    """Return whether an expression requires the text directly in it, which must not be None."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("int", "float", "len")
    return isinstance(node, ast.Attribute | ast.Subscript)


def _names_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in DEVICE_VARIABLES
