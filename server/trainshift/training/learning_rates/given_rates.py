"""Given rates: the rate argument of a call that creates an optimizer, for each class."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import api
from trainshift.libraries.entries import Role
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Class, Instance, Library, Value
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, arguments, hides_arguments, last_name
from trainshift.python.values.backward_slice import sliced
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.learning_rates.rate_cases import NAMES, RateCases
from trainshift.training.learning_rates.rate_kinds import RateKind
from trainshift.training.learning_rates.rate_settings import RateSetting, RateSettings
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.steps import Steps, is_plain
from trainshift.training.optimizers.estimators import Estimators
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.optimizers.wraps import Wraps

# The optimizers of Keras 2.11 to 2.15 drop ``lr=`` with a warning; the legacy ones accept it.
_IGNORING_LR = ("tensorflow.keras.optimizers.Optimizer",)


class GivenRate(Struct, frozen=True):
    """The rate argument of one of the classes that a call may instantiate.

    `node` is the argument of the call, and `places` are its places in dictionaries after ``**``; without
    either, the rate is the text `default` of the argument `keyword`, which an unknown `mapping` may contain,
    and without a default, `reason` is the obstacle.
    """

    node: ast.expr | None
    keyword: str = ""
    default: str = ""
    doubt: str = ""
    reason: str = ""
    places: tuple[Occurrence, ...] = ()
    mapping: ast.expr | None = None


class GivenRates:
    """The calls of one script that may create an optimizer, and their rate arguments."""

    def __init__(self, program: Program, cases: RateCases) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._cases = cases
        self._libraries = program.fact(Libraries)

    @cached_property
    def makers(self) -> list[Site]:
        """The calls that may create an optimizer, by name, and those that create training objects.

        Optimizers that only rank 0 creates do not count.
        """
        named = api.last_names(*api.OPTIMIZERS, *api.OPTIMIZER_MAKERS) | {"partial"}
        used = (self._script.site_of(value.node).name for value in self._used if isinstance(value, Instance))
        on_root = self._program.fact(Horovod).site_on_root
        named |= self._libraries.names(Role.OPTIMIZER, Role.OPTIMIZER_FACTORY)
        return [site for site in self._script.sites_calling(named.union(used)) if not on_root(site)]

    def of(self, site: Site, settings: list[RateSetting]) -> list[GivenRate]:
        """The rate arguments of the optimizers that a call may create; none if it creates no optimizer."""
        given: list[GivenRate] = []
        if site.node in self._scaled_later:
            return []
        if self._is_named_at_run_time(site):
            return [self._given_to_any(site)]
        for value in self._names.callee(site):
            if isinstance(value, Library):
                given += self._given_to_library(site, value.name, settings)
            elif isinstance(value, Class):
                given += self._given_to_class(site, value.scope)
        return given

    @cached_property
    def _scaled_later(self) -> set[ast.Call]:
        """The calls that create optimizers whose rate is scaled at `compile`, or before."""

        def behind(at: Occurrence) -> Iterable[Occurrence]:
            step = self._names.steps_back(at)
            found = list(step.sources) if step is not None else []
            if isinstance(at.node, ast.Call):
                functions = self._names.called_functions(self._script.site_of(at.node))
                found += [Occurrence(node, each, where) for each in functions for node, where in each.returns]
                found.append(at.part(at.node.func))
            return found

        starts = [
            Occurrence(each.node, each.compile.site.scope, each.compile.site.statement)
            for each in self._program.fact(Wraps).unnamed
        ]
        starts += self._made_and_scaled
        found = [each.node for start in starts for each in sliced(start, behind)]
        return {each for each in found if isinstance(each, ast.Call)}

    @property
    def _made_and_scaled(self) -> list[Occurrence]:
        """The rate arguments of creators of any optimizer whose rate a later statement scales."""
        found = []
        for setting in RateSettings(self._program, self._cases).multiplied():
            step = self._names.steps_back(setting.optimizer)
            for source in step.sources if step is not None else ():
                if isinstance(source.node, ast.Call) and source.node.args:
                    if self._names.calls(self._script.site_of(source.node), *api.OPTIMIZER_MAKERS):
                        found.append(source.part(source.node.args[0]))
        return found

    def _is_named_at_run_time(self, site: Site) -> bool:
        """Return whether the optimizer is named only at run time: ``getattr(tf.keras.optimizers,
        name)(0.1)``.
        """
        taken = site.node.func
        if not isinstance(taken, ast.Call) or last_name(taken.func) != "getattr" or not taken.args:
            return False
        names = self._names.full_names(taken.args[0], site.scope, site.statement)
        return any(name.endswith((".optimizers", ".optimizers.legacy", ".train")) for name in names)

    def _given_to_any(self, site: Site) -> GivenRate:
        """The rate of an optimizer of an unknown class: the first argument, as in all classes."""
        node = argument(site.node, 0, *NAMES)
        return GivenRate(node, reason="" if node is not None else "no learning rate is given here")

    def _given_to_library(self, site: Site, name: str, settings: list[RateSetting]) -> list[GivenRate]:
        known, other = api.canonical(name), self._libraries.entry(name)
        if other is not None and other.role is Role.OPTIMIZER_FACTORY:
            return self._given_by_signature(site, api.read_signature(other.signature), other.text("rate"))
        if name == "functools.partial":
            return self._made_later(site)
        elif known in api.OPTIMIZER_MAKERS:
            if not any(self._sets_rate_of(setting, site) for setting in settings):
                return [GivenRate(None, reason="the optimizer is made from a name or a configuration")]
        elif known is None:
            return self._given_to_stranger(site, name)
        elif api.is_subclass(known, *api.OPTIMIZERS):
            return self._given_to_known(site, known)
        return []

    def _sets_rate_of(self, setting: RateSetting, site: Site) -> bool:
        """Return whether the optimizer of a call certainly gets its rate by a setting in the same block."""
        statement = setting.value.statement
        if statement is None or statement.parent is not site.statement.parent:
            return False
        if statement.scope.function() is not site.scope.function():
            return False
        optimizer = setting.optimizer
        made = self._names.values(optimizer.node, optimizer.scope, optimizer.statement)
        new = bool(self._cases.kinds(setting.value) & (RateKind.NUMBER | RateKind.SOURCE | RateKind.SCALED))
        return new and any(isinstance(value, Instance) and value.node is site.node for value in made)

    def _given_to_known(self, site: Site, cls: str) -> list[GivenRate]:
        """The rate argument of a TensorFlow optimizer."""
        signature = api.constructor(cls, keras3=self._program.fact(Target).is_keras3)
        parameter = signature.parameter("learning_rate") if signature is not None else None
        if signature is None or parameter is None:
            return []  # A wrapper such as LossScaleOptimizer (spec.md 5.22): handled by itself.
        old = argument(site.node, None, "lr")
        ignored = api.is_subclass(cls, *_IGNORING_LR)
        if old is not None and not ignored:
            return [GivenRate(old)]
        if old is not None and self._program.fact(Horovod).scaled(old, site.scope, site.statement):
            return []  # Scaled by the script itself, for a TensorFlow version that reads it.
        doubt = "this optimizer has ignored lr= since TensorFlow 2.11; its default rate is scaled"
        return self._given_by_signature(site, signature, "learning_rate", doubt if old is not None else "")

    def _given_by_signature(
        self, site: Site, signature: api.Signature | None, name: str, doubt: str = ""
    ) -> list[GivenRate]:
        """The rate argument `name` of a call, by the signature; `doubt` is about its default."""
        parameter = signature.parameter(name) if signature is not None else None
        if signature is None or parameter is None:
            return []
        given = argument(site.node, signature.position(name), name)
        if given is not None:
            return [GivenRate(given)]
        if hides_arguments(site.node):
            behind = self._behind_stars(site, parameter.default or "", name)
            if behind is not None:
                return [behind]
        if parameter.default in (None, "..."):
            return [GivenRate(None, reason="no learning rate is given")]
        return [GivenRate(None, name, parameter.default or "", doubt)]

    def _behind_stars(self, site: Site, default: str, name: str) -> GivenRate | None:
        """The rate among ``**`` arguments; None if they certainly contain none."""
        hidden = GivenRate(None, reason=in_stars("the learning rate is", f"pass {name}= by name"))
        if any(isinstance(each, ast.Starred) for each in site.node.args):
            return hidden
        step, may_lack = self._names.given_by_key(site, name)
        if not step.unseen:
            if step.sources:
                return hidden if may_lack else GivenRate(None, places=step.sources)
            return None
        mappings = [word.value for word in site.node.keywords if word.arg is None]
        if len(mappings) > 1 or not is_plain(mappings[0]):
            return hidden
        text = self._script.text(mappings[0], site)
        doubt = f"the learning rate in {text}, if there is one, is assumed to be a number"
        return GivenRate(None, name, default, doubt, mapping=mappings[0])

    def _made_later(self, site: Site) -> list[GivenRate]:
        """The rate of ``partial(Adam, learning_rate=0.1)``, scaled here if it is among the arguments."""
        names = (
            self._names.full_names(site.node.args[0], site.scope, site.statement) if site.node.args else ()
        )
        found: dict[ast.expr, None] = {}
        for name in sorted(names):
            signature = api.constructor(name) if api.is_subclass(name, *api.OPTIMIZERS) else None
            position = signature.position("learning_rate") if signature else None
            if position is not None:
                given = argument(site.node, position + 1, *NAMES)
                if given is not None:
                    found[given] = None
        if len(found) > 1:
            return [
                GivenRate(
                    None, reason="the optimizer is one of several that take the rate in different places"
                )
            ]
        return [GivenRate(given) for given in found]

    def _given_to_stranger(self, site: Site, name: str) -> list[GivenRate]:
        """The rate argument of an unknown library's optimizer, if something trains with it."""
        if name.partition(".")[0] in ("builtins", "horovod", "functools"):
            return []
        if Instance(name, site.node) not in self._used:
            return []
        word = next((word for word in site.node.keywords if word.arg in NAMES), None)
        if word is not None:
            return [GivenRate(word.value)]
        if any(self._names.may_be(values, *api.OPTIMIZERS) for values in self._arguments(site)):
            return []  # A wrapper: the inner one is handled on its own.
        made = Instance(name, site.node)
        if not name.rpartition(".")[2][:1].isupper() and made not in self._stepped:
            return []  # The result of a function is scaled where it is compiled (HV10).
        return [GivenRate(None, reason=f"Trainshift does not know where {name} takes its learning rate")]

    def _arguments(self, site: Site) -> list[frozenset[Value]]:
        return [self._names.site_values(each, site) for each in arguments(site.node)]

    @cached_property
    def _used(self) -> set[Value]:
        """The optimizers that the script trains with, including wrapped ones."""
        places = [(step.receiver, step.site) for step in self._program.fact(Steps).steps]
        places += [
            (each.optimizer, each.site)
            for each in self._program.fact(Fits).compiles
            if each.optimizer is not None
        ]
        places += [*self._program.fact(Graphs).optimizers, *self._program.fact(Estimators).optimizers]

        def wrapped(value: Value) -> Iterable[Value]:
            if not isinstance(value, Instance) or not self._is_wrapper(value.cls):
                return ()
            inner = argument(value.node, 0, "inner_optimizer", "opt", "optimizer")
            site = self._script.site_of(value.node)
            return self._names.site_values(inner, site) if inner is not None else ()

        starts = (value for node, site in places for value in self._names.site_values(node, site))
        return set(reachable(starts, wrapped))

    @cached_property
    def _stepped(self) -> set[Value]:
        """The objects that perform steps themselves rather than as a model's optimizer."""
        places = [(step.receiver, step.site) for step in self._program.fact(Steps).steps]
        places += [*self._program.fact(Graphs).optimizers, *self._program.fact(Estimators).optimizers]
        return {value for node, site in places for value in self._names.site_values(node, site)}

    def _is_wrapper(self, cls: str) -> bool:
        """Return whether a TensorFlow optimizer class has no rate of its own, such as
        `LossScaleOptimizer`.
        """
        signature = api.constructor(cls) if api.is_subclass(cls, *api.OPTIMIZERS) else None
        return signature is not None and signature.parameter("learning_rate") is None

    def _given_to_class(self, site: Site, cls: Scope) -> list[GivenRate]:
        """The rate argument of an optimizer of a class in the script."""
        bases = self._names.library_bases(cls)
        base = next((each for each in sorted(bases) if api.is_subclass(each, *api.OPTIMIZERS)), None)
        if base is None:
            return []
        init = self._names.function_named(cls, "__init__")
        if init is None:
            return self._given_to_known(site, base)
        for name in NAMES:
            if name not in init.bindings:
                continue
            given = self._names.argument(site, init, name)
            default = init.bindings[name][0].value
            if given is not None:
                return [GivenRate(given)]
            if default is not None and not hides_arguments(site.node):
                return [GivenRate(None, name, self._script.text(default, init))]
        return [GivenRate(None, reason=f"the learning rate of {cls.name} is not among its arguments")]
