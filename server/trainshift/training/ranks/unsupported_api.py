"""Unsupported API: names, arguments and uses of Horovod that version 0.28 does not accept (HZ23)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance, Literal
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Site,
    Statement,
    argument,
    hides_arguments,
    imported_name,
    last_name,
)
from trainshift.training.horovod import horovod_api
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import RATE_CALLBACKS
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.ranks.branches import Branches

_EAGER_ONLY = "broadcast_global_variables"
_GRAPHS = (
    "Session", "InteractiveSession", "MonitoredTrainingSession", "MonitoredSession", "placeholder",
    "disable_eager_execution", "disable_v2_behavior", "Supervisor", "Estimator", "set_session",
    "ConfigProto", "get_session", "train_and_evaluate", "model_to_estimator",
)  # fmt: skip
_MOMENTUM = ("tensorflow.keras.optimizers.SGD", "tensorflow.keras.optimizers.RMSprop")
_BY_MOMENTUM = ("sgd", "rmsprop")


class Stranger(NamedTuple):
    """A use that Horovod does not accept; `missing` are the omitted arguments that it needs.

    With `is_mild`, Horovod still accepts it; with `is_certain`, the program surely runs on a version that
    does not.
    """

    place: Occurrence
    message: str
    missing: tuple[str, ...] = ()
    is_mild: bool = False
    is_certain: bool = True


class Strangers:
    """The names and arguments in one program that Horovod does not have."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    @cached_property
    def all(self) -> list[Stranger]:
        """Every such use, one for each place."""
        found: dict[ast.AST, Stranger] = {}
        for each in (*self._failing(), *self._members(), *self._imports(), *self._arguments(), *self._uses()):
            found.setdefault(each.place.node, each)
        return list(found.values())

    @cached_property
    def calls(self) -> frozenset[ast.AST]:
        """The calls at places that are not mild."""
        return frozenset(each.place.node for each in self.all if not each.is_mild)

    @cached_property
    def uses_graphs(self) -> bool:
        """Return whether the program builds graphs for TensorFlow 1's sessions."""
        return next(self._script.sites_named(*_GRAPHS), None) is not None

    @cached_property
    def _trains_eagerly(self) -> bool:
        """Return whether a loop of the program trains by a tape or by `fit`."""
        loops = self._program.fact(Loops).own
        return any(loop.pattern in (Pattern.GRAD_TAPE, Pattern.OPTIMIZER) for loop in loops)

    # Names that Keras 3 lacks

    def _failing(self) -> Iterator[Stranger]:
        of_keras2 = self._program.fact(ForKeras2)
        for site, name, error, told in of_keras2.failing:
            message = f"Horovod's {name} {told}: {error} ({of_keras2.because})."
            at = Occurrence(site.node, site.scope, site.statement)
            yield Stranger(at, message, is_certain=of_keras2.is_certain)

    # Names

    def _members(self) -> Iterator[Stranger]:
        spelled = self._modules
        for at in self._program.fact(ExpressionsByKind).of(ast.Attribute):
            node = at.node
            assert isinstance(node, ast.Attribute)
            if not isinstance(node.ctx, ast.Load) or last_name(node.value) not in spelled:
                continue
            for name in sorted(self._names.full_names(node.value, at.scope, at.statement)):
                if _lacks(name, node.attr) and not self._is_tried(at, node.attr):
                    yield Stranger(at, _no_member(name, node.attr))

    @cached_property
    def _modules(self) -> set[str]:
        """The last names under which a Horovod module may be imported."""
        found = {"callbacks", "elastic", "horovod"}
        for script in self._script.scripts:
            own = [each for each in script.imports if each.full_name.partition(".")[0] == "horovod"]
            found |= set(map(imported_name, own)) | {each.full_name.rpartition(".")[2] for each in own}
            found |= {name for name, value in script.code.bound_values if last_name(value) in found}
        return found

    def _imports(self) -> Iterator[Stranger]:
        for script in self._script.scripts:
            for binding in script.imports:
                statement = binding.statement
                if statement is None or not isinstance(statement.node, ast.ImportFrom):
                    continue
                module, _, name = binding.full_name.rpartition(".")
                if _lacks(module, name) and not self._is_caught(statement):
                    yield Stranger(self._at(binding), _no_member(module, name))

    @staticmethod
    def _at(binding: Binding) -> Occurrence:
        assert binding.target is not None
        return Occurrence(binding.target, binding.scope, binding.statement)  # type: ignore[arg-type]

    def _is_tried(self, at: Occurrence, attribute: str) -> bool:
        """Return whether a script tests first whether Horovod has a name."""
        assert at.statement is not None
        if self._is_caught(at.statement):
            return True
        tests = [each.node.test for each in at.statement.path() if isinstance(each.node, ast.If)]
        asked = ast.unparse(at.statement.node) if not isinstance(at.statement.node, ast.If) else ""
        texts = [*map(ast.unparse, tests), asked if "hasattr" in asked else ""]
        return any(("hasattr" in text and attribute in text) or "__version__" in text for text in texts)

    @staticmethod
    def _is_caught(statement: Statement) -> bool:
        below = statement
        for above in statement.ancestors():
            if isinstance(above.node, ast.Try) and below.branch == "body" and above.node.handlers:
                return True
            below = above
        return False

    # Arguments

    def _arguments(self) -> Iterator[Stranger]:
        for site, names in self._called:
            at = Occurrence(site.node, site.scope, site.statement)
            if self._is_caught(site.statement):
                continue
            for name in names:
                signature = horovod_api.signature(name)
                if signature is None:
                    continue
                yield from self._against(at, site, name, signature)

    @cached_property
    def _called(self) -> list[tuple[Site, list[str]]]:
        found = []
        for site in self._script.sites:
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            own = [each for each in sorted(names) if each.startswith("horovod.") and horovod_api.has(each)]
            if own:
                found.append((site, own))
        return found

    def _against(self, at: Occurrence, site: Site, name: str, signature: api.Signature) -> Iterator[Stranger]:
        last = name.rpartition(".")[2]
        open_ended = any(each.kind == "kwargs" for each in signature.parameters)
        for word in site.node.keywords:
            if word.arg is not None and not open_ended and signature.parameter(word.arg) is None:
                yield Stranger(at, f"{last} of {_module(name)} takes no argument {word.arg}.")
                return
        given = {word.arg for word in site.node.keywords}
        if {"average", "op"} <= given and signature.parameter("average") is not None:
            yield Stranger(at, f"{last} takes op or average, and not both. Leave out average.")
            return
        positional = [each for each in signature.parameters if each.kind == "positional"]
        takes_any = any(each.kind == "args" for each in signature.parameters)
        if hides_arguments(site.node):
            return
        if len(site.node.args) > len(positional) and not takes_any:
            yield Stranger(at, f"{last} of {_module(name)} takes {len(positional)} arguments by position.")
            return
        missing = [
            each.name
            for index, each in enumerate(signature.parameters)
            if each.default is None
            and each.kind in ("positional", "keyword")
            and each.name not in given
            and not (each.kind == "positional" and index < len(site.node.args))
        ]
        if missing:
            words = " and ".join(missing)
            yield Stranger(at, f"{last} needs {words} since Horovod 0.22. Pass it.", tuple(missing))
        elif "average" in given and signature.parameter("average") is not None:
            yield Stranger(
                at, f"average is an old argument of {last}. Pass op=hvd.Average or op=hvd.Sum.", is_mild=True
            )

    # Uses

    def _uses(self) -> Iterator[Stranger]:
        if self.uses_graphs:
            return
        for site in self._horovod.calls(_EAGER_ONLY) if self._trains_eagerly else ():
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            of_door = any(name.rpartition(".")[0] in horovod_api.DOORS for name in names)
            if of_door and not self._is_caught(site.statement):
                at = Occurrence(site.node, site.scope, site.statement)
                yield Stranger(
                    at,
                    "broadcast_global_variables does not work in TensorFlow 2. "
                    "Use hvd.broadcast_variables(model.variables, root_rank=0).",
                )
        for site in self._horovod.calls(*RATE_CALLBACKS):
            corrected = argument(site.node, None, "momentum_correction")
            if isinstance(corrected, ast.Constant) and not corrected.value:
                continue
            if self._program.fact(Branches).of_call(site) is None and self._keeps_momentum(site):
                at = Occurrence(site.node, site.scope, site.statement)
                yield Stranger(
                    at,
                    f"{site.name} fails with this optimizer, whose momentum is a number. "
                    "Pass momentum_correction=False.",
                    ("momentum_correction",),
                )

    def _keeps_momentum(self, site: Site) -> bool:
        """Return whether a model is compiled with an optimizer whose momentum is not a variable."""
        found: list[bool] = []
        for loop in self._program.fact(Loops).own:
            if loop.pattern is not Pattern.OPTIMIZER:
                continue
            for each in loop.optimizers:
                values = self._names.values(*each[:3])
                found += [
                    (isinstance(value, Instance) and value.cls in _MOMENTUM)
                    or (isinstance(value, Literal) and str(value.value).lower() in _BY_MOMENTUM)
                    for value in values
                ]
        return bool(found) and all(found)


def _lacks(module: str, name: str) -> bool:
    """Return whether a module of Horovod has no member of a public name."""
    public = not name.startswith(("_", "*"))
    return public and horovod_api.has_module(module) and not horovod_api.has(f"{module}.{name}")


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _no_member(module: str, name: str) -> str:
    others = horovod_api.homes(name)
    if others:
        return f"{module} has no {name}; {others[0]} has."
    return f"Horovod 0.28 has no {name} in {module}."
