"""GPUs: the choice of each rank's GPU in a program that uses Horovod."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries.devices import DEVICE_VARIABLES
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Display, Literal
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    argument,
    arguments,
    expression_path,
    last_name,
    root_name,
)
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.ranks.shared_loops import Together
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.uniformity import Uniformity

_SETTING = "set_visible_devices"
_LIST = "visible_device_list"
_SIGNS = (
    "list_physical_devices", "set_memory_growth", "GPUOptions", "is_gpu_available", "list_logical_devices",
    "set_virtual_device_configuration", "set_logical_device_configuration",
)  # fmt: skip
_CONFIGURING = ("GPUOptions", "ConfigProto")
_SIGNING = ("allow_growth", "per_process_gpu_memory_fraction")
_USING = (
    "Session", "InteractiveSession", "MonitoredTrainingSession", "RunConfig", "set_session",
    "enable_eager_execution", "SessionCreator", "Supervisor",
)  # fmt: skip

# Calls that set environment variables.
_PUTTING = ("update", "setdefault", "putenv", "__setitem__")


class By(Enum):
    """The way in which a GPU is chosen."""

    LOCAL_RANK = "local rank"
    RANK = "rank"
    CONSTANT = "a constant"
    NONE = "no GPU at all"
    OTHER = "something else"


class Choice(NamedTuple):
    """A place that chooses a GPU: the index expression, and the kind of choice."""

    at: Occurrence
    by: By
    site: Site | None = None


class Gpus:
    """The choices of GPUs of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._uniformity = program.fact(Uniformity)

    @cached_property
    def choices(self) -> list[Choice]:
        """Every place that chooses a GPU, in no order."""
        together = self._program.fact(Together)
        found = [*self._by_calls(), *self._by_configurations(), *self._by_environment()]
        return [each for each in found if together.runs(each.at.scope)]

    def _by_calls(self) -> Iterator[Choice]:
        for site in self._script.sites_named(_SETTING):
            given = argument(site.node, 0, "devices")
            if given is not None:
                at = Occurrence(given, site.scope, site.statement)
                yield Choice(at, self._by(at), site)

    def _by_configurations(self) -> Iterator[Choice]:
        for attribute in self._script.attribute_bindings(_LIST):
            binding = attribute.binding
            if binding.value is not None:
                at = Occurrence(binding.value, binding.scope, binding.statement)
                yield Choice(at, self._by(at))
        for site in self._script.sites_named("GPUOptions"):
            for word in site.node.keywords:
                if word.arg == _LIST:
                    at = Occurrence(word.value, site.scope, site.statement)
                    yield Choice(at, self._by(at), site)

    def _by_environment(self) -> Iterator[Choice]:
        for item in self._script.item_bindings("environ"):
            key, value = item.key, item.binding.value
            if isinstance(key, ast.Constant) and key.value in DEVICE_VARIABLES and value is not None:
                at = Occurrence(value, item.binding.scope, item.binding.statement)
                yield Choice(at, self._by(at))
        for site in self._script.sites_named(*_PUTTING):
            for name, chosen in _put(site.node):
                if name in DEVICE_VARIABLES:
                    at = Occurrence(chosen, site.scope, site.statement)
                    yield Choice(at, self._by(at), site)

    def _by(self, at: Occurrence) -> By:
        """The kind of a choice: by local rank, by rank, or the same for all."""
        calls = {
            site.name for site in self._program.fact(Trails).calls(self._program.fact(Trails).behind(at))
        }
        if self._uniformity.on_rank(at):
            if calls & {"local_rank"} or not calls & {"rank"}:
                return By.LOCAL_RANK
            return By.OTHER if self._is_looked_up(at) else By.RANK
        node = at.node
        if isinstance(node, ast.List | ast.Tuple) and not node.elts:
            return By.NONE
        values = self._names.values(*at[:3])
        if any(isinstance(each, Display) and not getattr(each.node, "elts", [1]) for each in values):
            return By.NONE
        known = [each.value for each in values if isinstance(each, Literal)]
        if known and all(each in ("", "-1", -1, None) for each in known):
            return By.NONE
        if known and all(isinstance(each, str) and each.isdigit() for each in known):
            return By.CONSTANT
        return By.CONSTANT if self._is_first(node) and "list_physical_devices" in calls else By.OTHER

    def _is_looked_up(self, at: Occurrence) -> bool:
        """Return whether the GPU is selected by the rank modulo a count, or by the rank as an index of the
        script's list.
        """
        for each in self._program.fact(Trails).behind(at):
            node = each.node
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv):
                if not isinstance(node.left, ast.Constant):
                    return True
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Subscript):
                return True
        return False

    @staticmethod
    def _is_first(node: ast.expr) -> bool:
        """Return whether it is one GPU of a list by a number: ``gpus[0]``."""
        parts = node.elts if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1 else [node]
        return all(
            isinstance(each, ast.Subscript)
            and isinstance(each.slice, ast.Constant)
            and isinstance(each.slice.value, int)
            for each in parts
        )

    @cached_property
    def has_signs(self) -> bool:
        """Return whether the program has to do with GPUs."""
        if next(self._script.sites_named(*_SIGNS), None) is not None:
            return True
        return any(next(self._script.attribute_bindings(name), None) is not None for name in _SIGNING)

    def is_unused(self, choice: Choice) -> bool:
        """Return whether a choice is in a configuration that no session uses."""
        if choice.site is not None and choice.site.name == _SETTING:
            return False
        if choice.at.statement is None or not isinstance(choice.at.statement.node, ast.Assign):
            return False
        around = expression_path(choice.at.statement.node, choice.at.node)
        if any(
            isinstance(each, ast.Call) and last_name(each.func) not in _CONFIGURING for each in around[:-1]
        ):
            return False
        target = choice.at.statement.node.targets[0]
        root = root_name(target) if isinstance(target, ast.Attribute | ast.Name) else None
        if root is None or root.id == "os":
            return False
        used = (
            part
            for site in self._script.sites_named(*_USING)
            for given in arguments(site.node)
            for part in ast.walk(given)
        )
        if any(isinstance(each, ast.Name) and each.id == root.id for each in used):
            return False
        return not self._is_read(root.id, set())

    def _is_read(self, name: str, seen: set[Scope]) -> bool:
        """Return whether an object is used: a call gets it, or gets the result of a function that
        returns it.
        """
        # Any other receiver of the configuration may use it.
        handed = (
            each
            for site in self._script.sites
            if site.name != "ConfigProto"
            for each in arguments(site.node)
            if isinstance(each, ast.Name) and each.id == name
        )
        if next(handed, None) is not None:
            return True
        for scope in self._script.scopes:
            returned = any(isinstance(value, ast.Name) and value.id == name for value, _ in scope.returns)
            if returned and scope not in seen and self._is_result_read(scope, {*seen, scope}):
                return True
        return False

    def _is_result_read(self, function: Scope, seen: set[Scope]) -> bool:
        """Return whether the result of a function is used anywhere."""
        sites, elsewhere = self._names.callers(function)
        for site in sites:
            node = site.statement.node
            if not isinstance(node, ast.Assign | ast.Expr) or node.value is not site.node:
                return True
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(not isinstance(each, ast.Name) or self._is_read(each.id, seen) for each in targets):
                return True
        return elsewhere


def _put(node: ast.Call) -> Iterator[tuple[object, ast.expr]]:
    """Yield the environment variables that a call sets: ``environ.update(A=1)``, ``environ.setdefault("A",
    "1")``.
    """
    if last_name(node.func) == "putenv" or "environ" in ast.unparse(node.func):
        yield from ((word.arg, word.value) for word in node.keywords)
        for given in node.args:
            if isinstance(given, ast.Dict):
                yield from (
                    (getattr(key, "value", None), v) for key, v in zip(given.keys, given.values, strict=True)
                )
        if len(node.args) == 2:
            yield getattr(node.args[0], "value", None), node.args[1]
