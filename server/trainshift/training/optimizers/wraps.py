"""Wraps: the optimizers of a script that need `hvd.DistributedOptimizer`, and the place of each wrap.

An optimizer is followed from where it trains (the `compile` of a fitted model) back to the call that makes
it, through names, containers and functions; that call is where it is wrapped.  For a wrapper such as
`LossScaleOptimizer`, the inner one is wrapped (spec.md 5.22).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import api
from trainshift.libraries.entries import Entry, Role
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Class, Instance, Library, Literal, Unknown, UserInstance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, arguments, dotted, is_alone
from trainshift.python.syntax.precedence import does_more
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.horovod.choice import Choice
from trainshift.training.horovod.existing_use import KERAS, TENSORFLOW, Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.fits import DEFAULT_OPTIMIZER, Compile, Fit, Fits, hides
from trainshift.training.loops.steps import is_plain
from trainshift.training.optimizers.compiled import Compiled
from trainshift.training.optimizers.estimators import Estimators
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.optimizers.shared import InMode, Shared

_WRAPPER = "DistributedOptimizer"
_SETTABLE = ("tensorflow.keras.optimizers.legacy.Optimizer",)
_COPIES = ("copy.copy", "copy.deepcopy")
_SOMETIMES = (
    "DistributedOptimizer wraps the optimizer in some cases only, and nothing is averaged "
    "in the others; wrap it in all cases"
)

_OWN_STEP = (
    "the train_step of {cls} applies the gradients of its own tape, so a wrapped optimizer "
    "averages nothing; override train_step with your own tape"
)
_OWN_OPTIMIZERS = (
    "{text} steps the optimizers inside it itself, so wrapping it averages nothing in fit; "
    "train with a tf.GradientTape and apply_gradients"
)


class Wrap(Struct, frozen=True, eq=False):
    """An optimizer to wrap, by the call that makes it.

    `target` is the (dotted) name in the call's own statement, empty if there is none; `module` is the Horovod
    module that wraps it.  `compile` is the call with the optimizer as a direct argument.  With `is_shared`,
    tapes use it in other modes of the script; `modes` are then the places where it is wrapped, if not at its
    creation.  It is wrapped where it is `used` if the script has an unused wrap of it.  `said` is the note in
    its library's entry.  With `keeps_rate`, Horovod cannot recreate its schedule, so the wrapped optimizer
    gets it again.
    """

    site: Site
    target: str
    module: str
    compile: Compile | None = None
    doubt: str = ""
    is_shared: bool = False
    modes: tuple[InMode, ...] = ()
    used: tuple[ast.expr, Site] | None = None
    said: str = ""
    keeps_rate: bool = False

    @property
    def statement(self) -> Statement:
        """The statement of the call."""
        return self.site.statement


class Named(Struct, frozen=True, eq=False):
    """An optimizer that `compile` gets by name, or by default: `cls` is its canonical class.

    `node` is the expression of the name, None for the default.
    """

    compile: Compile
    cls: str
    node: ast.expr | None


class Unnamed(Struct, frozen=True, eq=False):
    """The optimizer argument `node` of a `compile`: a name of an optimizer, or a setting that may be one."""

    compile: Compile
    node: ast.expr
    is_name: bool


class HiddenOptimizer(Struct, frozen=True, eq=False):
    """An optimizer that trains and cannot be wrapped, the place of its use, and the reason.

    It is not `essential` if the script itself wraps it in some cases.
    """

    site: Site
    reason: str
    essential: bool = True


class _Use(Struct, frozen=True, eq=False):
    """A use of an optimizer, at the place where a training object gets it."""

    node: ast.expr
    site: Site
    module: str
    compile: Compile | None = None

    @property
    def place(self) -> tuple[ast.expr, Scope, Statement]:
        return self.node, self.site.scope, self.site.statement


_NOT_FOUND = "Trainshift cannot find {model}.compile(...), so the optimizer cannot be wrapped"
_COMPILED = "its library compiles {model}; call {model}.compile(...) with an optimizer"


class Wraps:
    """The optimizers of one script that are not wrapped yet but must be."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._wraps: dict[ast.expr, Wrap] = {}
        self._named: list[Named] = []
        self._hidden: list[HiddenOptimizer] = []
        # Where an optimizer is compiled that a tape uses in another mode; None if there may be other
        # places.
        self._in_modes: dict[ast.Call, list[Compile | None]] = {}
        self._unnamed: list[Unnamed] = []
        self._is_keras3 = program.fact(Target).is_keras3
        self._libraries = program.fact(Libraries)

    @property
    def unnamed(self) -> list[Unnamed]:
        """The arguments that may be names of optimizers, which are known only at run time."""
        return self._unnamed if self.all else []

    @cached_property
    def all(self) -> tuple[list[Wrap], list[Named], list[HiddenOptimizer]]:
        """The optimizers created by calls, those given by name, and the unknown ones."""
        keras = self._program.fact(Fits)
        for fit in (*keras.fits, *keras.batches):
            model = self._script.text(fit.model, fit.site)
            known = keras.compiles_of(fit) or keras.own_tape(fit.model, fit.site)
            if self._program.fact(Compiled).is_averaged_loaded(fit):
                continue
            if not self._is_keras3 and (cls := keras.librarys_tape(fit.model, fit.site)):
                self._hide(fit.site, _OWN_STEP.format(cls=cls))
                continue
            if keras.is_loaded_compiled(fit) and keras.own_tape(fit.model, fit.site) is None:
                self._hide(
                    fit.site,
                    f"{model} may be loaded with its optimizer, which cannot be wrapped; compile it again",
                )
            elif not known and not self._is_loaded_by_horovod(fit):
                compiled = _COMPILED if keras.is_compiled_by_library(fit) else _NOT_FOUND
                self._hide(
                    fit.site,
                    compiled.format(model=model),
                )
        for compile in keras.compiles:
            self._read_compile(compile)
        for node, site in (
            *self._program.fact(Graphs).optimizers,
            *self._program.fact(Estimators).optimizers,
        ):
            self._read_use(_Use(node, site, TENSORFLOW))
        wraps = [self._with_modes(wrap) for wrap in self._wraps.values()]
        return wraps, self._named, self._hidden

    def makes_optimizer(self, site: Site) -> bool:
        """Return whether the call creates an optimizer of a known class, or of one of the script's own."""
        for value in self._names.callee(site):
            if isinstance(value, Library):
                known = api.canonical(value.name.removesuffix(".from_config"))
                if known in api.OPTIMIZER_MAKERS or (known and api.is_subclass(known, *api.OPTIMIZERS)):
                    return not _wraps_another(known)
                if value.name in _COPIES and site.node.args:
                    copied = self._names.site_values(site.node.args[0], site)
                    return self._names.may_be(copied, *api.OPTIMIZERS)
            elif isinstance(value, Class):
                if self._names.descends(value.scope, *api.OPTIMIZERS):
                    return True
        return False

    # Keras

    def _is_loaded_by_horovod(self, fit: Fit) -> bool:
        values = self._names.site_values(fit.model, fit.site)
        return any(isinstance(value, Instance) and value.cls.startswith("horovod.") for value in values)

    def _read_compile(self, compile: Compile) -> None:
        site, given = compile.site, compile.optimizer
        if self._program.fact(Fits).may_have_own_tape_or_not(compile) and not self._is_keras3:
            model = self._script.text(site.node.func, site).rpartition(".")[0]
            self._hide(
                site,
                f"{model} may have a train_step with its own tape, or not; compile each kind separately",
            )
            return
        if given is None:
            if hides(self._script, site, "optimizer"):
                self._hide(site, in_stars("the optimizer may be", "pass optimizer= by name"))
            elif compile.own_tape is None or self._program.fact(Fits).uses_compiled_optimizer(
                compile.own_tape
            ):
                self._name(compile, DEFAULT_OPTIMIZER, None)
            return
        values = self._names.site_values(given, site)
        names = {value.value for value in values if isinstance(value, Literal) and value.value is not None}
        if len(values) == 1 and names and _are_names(names):
            self._name(compile, str(*names), given)
        elif names and all(isinstance(value, Literal) for value in values) and _are_names(names):
            self._get_by_name(
                compile, given, "the optimizer is one of several names; make it an object", True
            )
        elif names:
            self._hide(site, "the optimizer is one of several names; make it an object")
        elif compile.own_tape is None:
            self._read_use(_Use(given, site, KERAS, compile))

    def _name(self, compile: Compile, name: str, node: ast.expr | None) -> None:
        cls = api.keras_optimizer(name)
        if cls is None:
            self._hide(compile.site, f"Keras has no optimizer named {name!r}")
        else:
            self._named.append(Named(compile, cls, node))

    def _get_by_name(self, compile: Compile, node: ast.expr, reason: str, is_name: bool = False) -> None:
        """Let Keras create the named optimizer, if a line can do so."""
        site = compile.site
        alone = is_alone(site)
        if alone and not does_more(node) and not self._program.fact(Horovod).calls(_WRAPPER):
            self._unnamed.append(Unnamed(compile, node, is_name))
        else:
            self._hide(site, reason)

    # From a use to the creation of the optimizer

    def _read_use(self, use: _Use) -> None:
        made = reaching_calls(self._script, self._makers, *use.place)
        if self._is_keras3 and use.module == KERAS and (made or self._strangers(use)):
            return  # The compiled optimizer averages.
        if any(site.node in self._factories for site in made):
            self._read_factories(use, made)
            return
        alone = next((site for site in made if self._averages_in_tapes_alone(site)), None)
        if alone is not None and use.module == KERAS:
            self._hide(use.site, _OWN_OPTIMIZERS.format(text=self._script.text(alone.node.func, alone)))
            return
        strange = next((site for site in made if site in self._strange_wrappers), None)
        if strange is not None:
            text = self._script.text(strange.node.func, strange)
            self._hide(
                use.site,
                f"Trainshift does not know {text}, so it cannot tell where the gradients are averaged",
            )
            return
        if not made:
            made = self._strangers(use)
            if not made:
                text = self._script.text(use.node, use.site)
                reason = f"Trainshift cannot tell which optimizer {text} is, so it cannot wrap it"
                if use.compile is not None:
                    self._get_by_name(use.compile, use.node, reason)
                else:
                    self._hide(use.site, reason)
        for site in made:
            if site.node in self._wrapped and any(each in self._wrappers for each in made):
                self._perhaps_wrapped(use, site, made)
                continue
            if not self._program.fact(Horovod).is_call(site, _WRAPPER):
                self._read_maker(use, site, len(made) == 1)

    def _read_maker(self, use: _Use, site: Site, alone: bool) -> None:
        """Wrap a call's optimizer for a use, if Horovod can; `alone` if the use has no other one."""
        if not self._is_of_one_mode(site, use):
            reason = "the optimizer serves both a tape and a fit; give each an optimizer of its own"
            self._hide(use.site, reason)
        elif use.module == KERAS and (cls := self._loses_its_arguments(site)):
            self._hide(use.site, f"Horovod recreates the optimizer; give {cls} a get_config method")
        elif use.module == KERAS and (cls := self._schedule_given(site)):
            self._keep_rate(use, site, cls)
        else:
            self._add(site, use, alone)

    def _schedule_given(self, site: Site) -> str:
        """The library schedule of an optimizer, which Horovod cannot copy; or "".

        Its configuration contains a function or another schedule, which Keras turns into a dictionary.
        """
        for given in arguments(site.node):
            for value in self._names.site_values(given, site):
                known = self._libraries.of(value) if isinstance(value, Instance) else None
                if known is not None and known.role is Role.SCHEDULE:
                    return known.pattern.rpartition(".")[2]
        return ""

    def _keep_rate(self, use: _Use, site: Site, schedule: str) -> None:
        """Wrap an optimizer and give it its schedule again, which current Keras optimizers do not accept."""
        made = (value for value in self._names.callee(site) if isinstance(value, Library))
        if not all(api.is_subclass(value.name, *_SETTABLE) for value in made):
            self._hide(
                use.site,
                (f"Horovod recreates the optimizer, and cannot recreate {schedule}; use a legacy optimizer"),
            )
        elif not _target(site) or self._program.fact(Shared).steps_of(site):
            self._hide(use.site, f"Horovod cannot recreate {schedule}; give the optimizer a name of its own")
        else:
            self._wraps.setdefault(site.node, replace(self._wrap(site, use), keeps_rate=True))

    def _averages_in_tapes_alone(self, site: Site) -> bool:
        """Return whether a call's optimizer steps others itself, which a wrap does not affect."""
        known = self._libraries.called(site, Role.OPTIMIZER)
        return known is not None and known.text("averages") == "tape"

    @cached_property
    def _factories(self) -> dict[ast.Call, Entry]:
        """The calls of library functions that create an optimizer, alone or with its schedule."""
        return {site.node: known for site, known in self._libraries.sites(Role.OPTIMIZER_FACTORY)}

    def _read_factories(self, use: _Use, made: list[Site]) -> None:
        """Wrap the result of a library's factory, if the calling statement names the optimizer."""
        for site in made:
            known = self._factories.get(site.node)
            if known is None or len(made) > 1:
                text = self._script.text(use.node, use.site)
                self._hide(use.site, f"{text} may be made in several ways; compile each separately")
                return
            target = _first_target(site) if known.text("returns") == "pair" else _target(site)
            if not target:
                text = self._script.text(site.node.func, site)
                self._hide(use.site, f"give the optimizer that {text} makes a name of its own first")
                return
            self._wraps.setdefault(site.node, Wrap(site, target, use.module, keeps_rate=True))

    def _perhaps_wrapped(self, use: _Use, site: Site, made: list[Site]) -> None:
        """Report an optimizer that the script wraps on some paths to its use only."""
        choice = self._program.fact(Choice)
        if any(each in self._wrappers and choice.leaves_out(each, site) for each in made):
            self._hide(use.site, _SOMETIMES, False)

    @cached_property
    def _wrappers(self) -> set[Site]:
        return set(self._program.fact(Horovod).calls(_WRAPPER))

    @cached_property
    def _makers(self) -> dict[ast.Call, Site]:
        """The calls that create optimizers, and Horovod's wrappers, at which the search stops."""
        wraps = self._wrappers
        named = api.last_names(*api.OPTIMIZERS, *api.OPTIMIZER_MAKERS, *_COPIES) | {"from_config"}
        named |= self._libraries.names(Role.OPTIMIZER)
        made = filter(self.makes_optimizer, self._script.sites_calling(named))
        others = [site for site, _ in self._libraries.sites(Role.OPTIMIZER_FACTORY)]
        others += [
            site for site, _ in self._libraries.sites(Role.OPTIMIZER) if self._averages_in_tapes_alone(site)
        ]
        return {site.node: site for site in (*made, *others, *wraps, *self._strange_wrappers)}

    @cached_property
    def _strange_wrappers(self) -> set[Site]:
        """The calls of unknown library classes that get an optimizer."""
        return {
            site
            for site in self._script.sites
            if site.name[:1].isupper()
            and any(
                isinstance(value, Library)
                and not api.canonical(value.name)
                and value.name.partition(".")[0] not in ("builtins", "horovod", "tensorflow")
                for value in self._names.callee(site)
            )
            and any(
                self._names.may_be(self._names.site_values(given, site), *api.OPTIMIZERS)
                for given in arguments(site.node)
            )
        }

    def _loses_its_arguments(self, site: Site) -> str:
        """The optimizer class of the script whose arguments Horovod's wrap would lose; empty if none."""
        for value in self._names.callee(site):
            if isinstance(value, Class):
                methods = ("__init__", "get_config")
                init, config = (self._names.function_named(value.scope, name) for name in methods)
                if init is not None and config is None:
                    return value.scope.name
        return ""

    @cached_property
    def _wrapped(self) -> set[ast.Call]:
        """The calls that create an optimizer which is wrapped somewhere."""
        makers = {node: site for node, site in self._makers.items() if self.makes_optimizer(site)}
        makers.update((site.node, site) for site in self._strange_wrappers)
        return {
            site.node
            for wrap in self._wrappers
            for given in arguments(wrap.node)[:1]
            for site in reaching_calls(self._script, makers, given, wrap.scope, wrap.statement)
        }

    def _strangers(self, use: _Use) -> list[Site]:
        """The calls of unknown library classes that create the optimizer in use."""
        values = self._names.values(*use.place)
        found = [value for value in values if isinstance(value, Instance) and not api.canonical(value.cls)]
        if len(found) != len(values) or not all(
            value.cls.rpartition(".")[2][:1].isupper() for value in found
        ):
            return []
        return [self._script.site_of(value.node) for value in found]

    def _is_of_one_mode(self, site: Site, use: _Use) -> bool:
        """Return whether no run steps this optimizer both by a tape and by `fit`."""
        shared = self._program.fact(Shared)
        if use.compile is None:
            return not shared.steps_of(site)
        return shared.is_of_one_mode(site, use.compile)

    def _add(self, site: Site, use: _Use, alone: bool) -> None:
        """Wrap a call's optimizer for a use; `alone` if the use has no other one."""
        if use.compile is not None and self._program.fact(Shared).steps_of(site):
            compiles = self._in_modes.setdefault(site.node, [])
            compiles.append(use.compile if alone else None)
        if site.node in self._wrapped:
            # An unused wrap of it is left alone, and must not be wrapped again.
            self._wraps.setdefault(use.node, replace(self._wrap(site, use), used=(use.node, use.site)))
        else:
            self._wraps.setdefault(site.node, self._wrap(site, use))

    def _with_modes(self, wrap: Wrap) -> Wrap:
        """The wrap, moved to the modes that need it if a tape uses the optimizer too."""
        compiles = self._in_modes.get(wrap.site.node)
        if compiles is None:
            return wrap
        known = [each for each in compiles if each is not None]
        modes = self._program.fact(Shared).in_modes(wrap.site, known) if len(known) == len(compiles) else ()
        return replace(wrap, modes=modes, is_shared=True)

    def _wrap(self, site: Site, use: _Use) -> Wrap:
        own = use.compile if use.node is site.node else None
        values = self._names.values(*use.place)
        doubt = ""
        if any(isinstance(value, Unknown) for value in values):
            doubt = f"{self._script.text(use.node, use.site)} may be another optimizer, which is not wrapped"
        known = self._libraries.called(site, Role.OPTIMIZER)
        return Wrap(site, _target(site), use.module, own, doubt, said=known.text("says") if known else "")

    @cached_property
    def classes(self) -> list[str]:
        """The canonical class names that Horovod's wrap for Keras replaces in saved models."""
        if self._is_keras3:
            return []
        made, named, _ = self.all
        sites = [wrap.site for wrap in made if wrap.module == KERAS]
        sites += [site for node, site in self._makers.items() if node in self._wrapped]
        values = [value for site in sites for value in self._names.callee(site)]
        known = {api.canonical(value.name) or "" for value in values if isinstance(value, Library)}
        known.update(each.cls for each in named)
        return sorted(name for name in known if name.startswith("tensorflow.keras.optimizers."))

    @cached_property
    def schedules(self) -> list[UserInstance]:
        """The schedules of the script's own classes that Horovod's wrap makes again."""
        made = [wrap.site for wrap in self.all[0]]
        made += [site for node, site in self._makers.items() if node in self._wrapped]
        given = [(each, site) for site in made for each in arguments(site.node)]
        values = [value for each, site in given for value in self._names.site_values(each, site)]
        return [
            value
            for value in dict.fromkeys(values)
            if isinstance(value, UserInstance) and self._names.is_a(value, *api.SCHEDULE)
        ]

    def _hide(self, site: Site, reason: str, essential: bool = True) -> None:
        if all(each.site is not site for each in self._hidden):
            self._hidden.append(HiddenOptimizer(site, reason, essential))


def _wraps_another(cls: str) -> bool:
    """Return whether an optimizer class such as `LossScaleOptimizer` wraps another optimizer."""
    signature = api.constructor(cls)
    names = [parameter.name for parameter in signature.parameters] if signature is not None else []
    return any(name in ("inner_optimizer", "opt", "optimizer") for name in names)


def _target(site: Site) -> str:
    """The dotted name to which a call's own statement binds its result."""
    node = site.statement.node
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    whole = isinstance(node, ast.Assign | ast.AnnAssign) and node.value is site.node
    return dotted(targets[0]) if whole and len(targets) == 1 and is_plain(targets[0]) else ""


def _first_target(site: Site) -> str:
    """The name to which a call's own statement binds the first of its results."""
    node = site.statement.node
    if not isinstance(node, ast.Assign) or node.value is not site.node or len(node.targets) != 1:
        return ""
    taken = node.targets[0]
    first = taken.elts[0] if isinstance(taken, ast.Tuple | ast.List) and taken.elts else None
    return dotted(first) if first is not None and is_plain(first) else ""


def _are_names(given: Iterable[object]) -> bool:
    return all(isinstance(each, str) for each in given)
