"""Sessions: the configuration of TensorFlow 1 sessions, and the initialization of their variables.

A configuration is followed to the `ConfigProto` that creates it, and the rank's GPU is named there.  A
broadcast must follow every statement that initializes or restores variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance, Library, Literal, Member, Value
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, hides_arguments
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.devices.pinning import DEVICES, Pinning
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.uniformity.uniformity import Uniformity

_V1 = "tensorflow.compat.v1"
_PROTO, _OPTIONS = f"{_V1}.ConfigProto", f"{_V1}.GPUOptions"
MONITORING = f"{_V1}.train.MonitoredTrainingSession"
RUN_CONFIG = "tensorflow.estimator.RunConfig"
# Calls that take a configuration, with the name of the parameter.
CONFIGURED = {
    f"{_V1}.Session": "config",
    f"{_V1}.InteractiveSession": "config",
    MONITORING: "config",
    f"{_V1}.train.SingularMonitoredSession": "config",
    f"{_V1}.train.ChiefSessionCreator": "config",
    f"{_V1}.train.WorkerSessionCreator": "config",
    RUN_CONFIG: "session_config",
    f"{_V1}.estimator.tpu.RunConfig": "session_config",
}
PLAIN = api.SESSION


class Pin(Struct, frozen=True, eq=False):
    """A call to be given the rank's GPU: a `ConfigProto` or `GPUOptions`, or a setting of its devices.

    `value` is the script's own choice of devices to replace, None if a keyword is added to `site`; with
    `nested`, the keyword is ``gpu_options=GPUOptions(...)``.
    """

    statement: Statement
    site: Site
    value: ast.expr | None = None
    nested: bool = False


class Configuration(Struct, frozen=True, eq=False):
    """The configuration argument of a session's call.

    `given` is the expression, None if there is none; with `missing`, the call needs one, at least if the
    expression is None. `pins` are the changes at other places, and `hidden` is the reason why they are
    unknown.
    """

    given: ast.expr | None
    missing: bool = False
    pins: tuple[Pin, ...] = ()
    hidden: str = ""


class Sessions:
    """The TensorFlow 1 sessions of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    # Configurations

    @cached_property
    def created(self) -> list[tuple[Site, str]]:
        """The calls that create sessions or configure them, with the called name."""
        found = []
        for site in self._script.sites_calling(api.last_names(*CONFIGURED) | {"replace"}):
            for name in sorted(
                self._names.full_names(site.node.func, site.scope, site.statement) & CONFIGURED.keys()
            ):
                found.append((site, name))
                break
            if site.name == "replace" and isinstance(site.node.func, ast.Attribute):
                changed = self._names.site_values(site.node.func.value, site)
                found += [(site, RUN_CONFIG)] if any(_is_run_config(value) for value in changed) else []
        return found

    @cached_property
    def pins(self) -> list[Pin]:
        """Every place where one of the script's configurations must name the rank's GPU."""
        found: dict[ast.AST, Pin] = {}
        for site, name in self.created:
            for pin in self.configuration(site, name).pins:
                found.setdefault(pin.value or pin.site.node, pin)
        return list(found.values())

    def configuration(self, site: Site, name: str) -> Configuration:
        """The configuration of the session that a call of `name` creates."""
        word = CONFIGURED[name]
        signature = api.constructor(name) or api.function(name)
        given = argument(site.node, signature.position(word) if signature else None, word)
        if self._program.fact(Pinning).by_environment:
            return Configuration(given)
        if given is None and site.name == "replace":
            return Configuration(None)
        if given is None:
            if hides_arguments(site.node):
                return Configuration(None, hidden=in_stars("it may be"))
            return Configuration(None, missing=True)
        if isinstance(given, ast.Constant):
            return Configuration(given, missing=given.value is None)
        values = self._names.site_values(given, site)
        protos = [value for value in values if isinstance(value, Instance) and value.cls == _PROTO]
        nothing = {value for value in values if isinstance(value, Literal) and value.value is None}
        if not values or len(protos) + len(nothing) < len(values):
            if self._program.fact(Uniformity).on_rank(of_call(site).part(given)):
                return Configuration(given)
            return Configuration(
                given, hidden=f"Trainshift cannot tell what {self._script.text(given, site)} is"
            )
        pins: list[Pin] = []
        for proto in protos:
            found = self._pins_of(proto)
            if isinstance(found, str):
                return Configuration(given, hidden=found)
            pins += found
        otherwise = isinstance(given, ast.BoolOp) and any(isinstance(each, ast.Call) for each in given.values)
        return Configuration(given, bool(nothing) and not otherwise, tuple(pins))

    def _pins_of(self, proto: Instance) -> list[Pin] | str:
        """The changes to a `ConfigProto` where it is created, or the reason why they are unknown."""
        made = self._script.site_of(proto.node)
        if _has_no_gpu(made):
            return []
        assigned = [pin for pin in self._assigned(proto) if pin.value is not None]
        if assigned:
            others = [pin for pin in assigned if not self._is_pinned(pin)]
            # A configuration without GPUs next to one for the rank's GPU is for a run without GPUs.
            return others if len(others) == len(assigned) else [pin for pin in others if not _names_none(pin)]
        options = argument(made.node, None, "gpu_options")
        if options is None:
            if hides_arguments(made.node):
                return "its gpu_options may be hidden in ** arguments"
            return [Pin(made.statement, made, nested=True)]
        values = self._names.site_values(options, made)
        known = [value for value in values if isinstance(value, Instance) and value.cls == _OPTIONS]
        if not known or len(known) < len(values):
            return f"Trainshift cannot tell what {self._script.text(options, made)} is"
        pins = []
        for value in known:
            site = self._script.site_of(value.node)
            own = [pin for pin in self._assigned(value) if pin.value is not None]
            given = argument(site.node, None, DEVICES)
            if not own and given is None and hides_arguments(site.node):
                return f"its {DEVICES} may be hidden in ** arguments"
            pins += own or [Pin(site.statement, site, given)]
        return [pin for pin in pins if not self._is_pinned(pin)]

    def _is_pinned(self, pin: Pin) -> bool:
        return pin.value is not None and self._program.fact(Uniformity).on_rank(
            Occurrence(pin.value, pin.statement.scope, pin.statement)
        )

    def _assigned(self, owner: Instance) -> Iterator[Pin]:
        """Yield the places where the devices of a `ConfigProto` or `GPUOptions` are set after its
        creation.
        """
        for attribute in self._script.attribute_bindings(DEVICES):
            binding, base = attribute.binding, attribute.base
            if isinstance(base, ast.Attribute) and base.attr == "gpu_options":
                base = base.value
            values = self._names.values(base, binding.scope, binding.statement)
            if owner in values and binding.statement is not None and binding.kind == "value":
                yield Pin(binding.statement, self._script.site_of(owner.node), binding.value)

    def spelling(self, site: Site) -> str:
        """The script's name of the module with TensorFlow 1's names, for a call of one of them."""
        node: ast.expr = site.node.func
        while isinstance(node, ast.Attribute):
            node = node.value
            for value in self._names.site_values(node, site):
                if isinstance(value, Library) and value.name == _V1:
                    return self._script.text(node, site)
                if isinstance(value, Library) and value.name == "tensorflow":
                    text = self._script.text(node, site)
                    tail = self._script.text(site.node.func, site)[len(text) :]
                    return text if f"tensorflow{tail}" in _ONLY_V1 else f"{text}.compat.v1"
        return self._program.at(site).fact(Prerequisites).v1


_ONLY_V1 = frozenset(
    f"tensorflow.{name}"
    for name in (
        "Session", "InteractiveSession", "ConfigProto", "GPUOptions", "train.MonitoredTrainingSession",
        "train.SingularMonitoredSession", "train.MonitoredSession", "train.ChiefSessionCreator",
        "train.WorkerSessionCreator",
    )
)  # fmt: skip


def _names_none(pin: Pin) -> bool:
    return isinstance(pin.value, ast.Constant) and pin.value.value == ""


def _has_no_gpu(made: Site) -> bool:
    """Return whether a configuration is for sessions without GPU: ``ConfigProto(device_count={"GPU":
    0})``.
    """
    counts = argument(made.node, None, "device_count")
    return isinstance(counts, ast.Dict) and any(
        isinstance(key, ast.Constant)
        and isinstance(value, ast.Constant)
        and (key.value, value.value) == ("GPU", 0)
        for key, value in zip(counts.keys, counts.values, strict=True)
    )


def _is_run_config(value: Value) -> bool:
    """Return whether a value is a `RunConfig`, or a copy of one by `replace`."""
    while isinstance(value, Member) and isinstance(value.owner, Instance):
        value = value.owner
    return isinstance(value, Instance) and value.cls.removesuffix(".replace") == RUN_CONFIG
