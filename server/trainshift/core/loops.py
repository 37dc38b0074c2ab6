"""Training loops: what trains in a program, by which pattern, and which model, optimizer and tape.

This is the training-loop identification of SPEC §2 (S2 §3, S3 §3).  A program is one script and what
it calls in the files that it imports.  The summary of a function is the set of the patterns that run
when it is called: none is the lattice's bottom, two or more are its top.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from trainshift.core import api
from trainshift.core.facts import (
    Binding,
    Scope,
    Site,
    Statement,
    argument,
    behind_main_guard,
    dotted,
    last_name,
)
from trainshift.core.flow import reaching_calls
from trainshift.core.names import Class, Function, Unknown, UserInstance, Values
from trainshift.core.script import Script
from trainshift.core.source import Span
from trainshift.core.training import LOOPS, Step, Tape

if TYPE_CHECKING:
    from trainshift.core.program import Program


class Pattern(Enum):
    """A way to train.  The first five are those that the rules are for."""

    GRAD_TAPE = "GradTape"
    OPTIMIZER = "Optimizer"
    ESTIMATOR = "Estimator"
    SESSION = "Session"
    MONITORED_SESSION = "MonitoredSession"
    STRATEGY = "tf.distribute"
    MINIMIZE = "minimize"
    BY_HAND = "weights assigned by hand"
    UNKNOWN = "unknown"


KNOWN_PATTERNS = frozenset(list(Pattern)[:5])
LOOKED_FOR = (
    "no training loop: looked for optimizer.apply_gradients(...) fed by a tf.GradientTape, "
    "model.fit(...), a TF1 session and an Estimator"
)
FITTING = ("fit", "fit_generator", "train_on_batch")
_STEPPING = ("minimize", "apply_gradients", "create_train_op", "optimize_loss")
_ASSIGNING = ("assign", "assign_sub", "assign_add")
_MONITORED = (*api.MONITORED_SESSION, "tensorflow.compat.v1.train.MonitoredTrainingSession")
_SESSIONS = (
    *api.SESSION,
    "tensorflow.compat.v1.train.Supervisor",
    "tensorflow.compat.v1.get_default_session",
    "tensorflow.compat.v1.keras.backend.get_session",
)
_TF1_OPTIMIZER = "tensorflow.compat.v1.train.Optimizer"
_FIT_KEYWORDS = frozenset(
    {
        "epochs", "batch_size", "validation_data", "validation_split", "callbacks", "steps_per_epoch",
        "validation_steps", "initial_epoch", "class_weight", "nb_epoch",
    }
)  # fmt: skip
_COMPILE_KEYWORDS = frozenset({"optimizer", "loss", "metrics"})
_TRAINING_METHODS = frozenset({"train_step", "make_train_function", "train_on_batch", "fit"})


@dataclass(frozen=True, slots=True)
class Place:
    """An expression where it is read: what it stands for depends on that."""

    node: ast.expr
    scope: Scope
    statement: Statement | None


@dataclass(eq=False, slots=True)
class Loop:
    """One training loop of `script`.

    `sites` are the calls that update the weights.  `statement` is the outermost `for` or `while` around
    them, in their function or in the one that calls it; the first call's own statement if there is none
    (a `fit` is a loop in itself).  `origin` is the call that decides the pattern where it is another one
    (the strategy).  `certain` is false where the script does not show that the receiver is a model.
    """

    pattern: Pattern
    script: Script
    sites: list[Site]
    statement: Statement
    models: list[Place] = field(default_factory=list)
    optimizers: list[Place] = field(default_factory=list)
    tapes: list[Tape] = field(default_factory=list)
    origin: Site | None = None
    certain: bool = True

    @property
    def function(self) -> Scope | None:
        """The function that the loop stands in."""
        return self.sites[0].scope.function()

    @property
    def is_call(self) -> bool:
        """Whether one call is the whole loop (`fit`, `train`), and no `for` or `while` of the script."""
        return self.sites[0].name in ("fit", "fit_generator", "train", "train_and_evaluate")

    @property
    def span(self) -> Span:
        """What to point at, in `script`: the header of its `for` or `while`, or the call."""
        site = self.sites[0]
        if not self.is_call and _is_loop(self.statement) and self.statement.scope is site.statement.scope:
            return header(self.script, self.statement)
        return self.script.span(site.node, site)

    @property
    def model(self) -> str:
        """The first model as the script writes it; empty if it cannot be seen."""
        place = next(iter(self.models), None)
        return self.script.text(place.node, place.scope) if place is not None else ""

    @property
    def call(self) -> str:
        """The call that trains, as a message shows it: ``model.fit(...)``."""
        site = self.sites[0]
        return f"{' '.join(self.script.text(site.node.func, site).split())}(...)"


class Loops:
    """The training loops of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    @cached_property
    def own(self) -> list[Loop]:
        """The loops in the program's first script, in text order."""
        return [loop for loop in self.all if loop.script is self._script]

    @cached_property
    def all(self) -> list[Loop]:
        """The loops of the script, whoever calls them, and those that it reaches in other files."""
        found = _read_loops(self._program, self._program)
        others = [script for script in self._linked if _may_train(script)]
        if others:
            reached = self._reached([None, *self._script.scopes], guarded=True)
            for script in others:
                program = self._program.linked(script)
                found += [
                    loop
                    for loop in _read_loops(program, self._program)
                    if (script, loop.function) in reached and not _is_of_script_only(loop)
                ]
        self._under_strategies(found)
        return found

    @cached_property
    def _linked(self) -> list[Script]:
        workspace = self._script.workspace
        return [] if workspace is None else [each for each in workspace.reachable if each is not self._script]

    def summary(self, function: Scope | None) -> frozenset[Pattern]:
        """The patterns that run when `function` of the first script (None: the script itself) is run."""
        reached = self._reached([function], guarded=function is None)
        return frozenset(loop.pattern for loop in self.all if (loop.script, loop.function) in reached)

    @cached_property
    def functions(self) -> set[Scope]:
        """The functions of any linked script that are or reach a training loop."""
        found: set[Scope] = set()
        waiting = [scope for loop in self.all for scope in _enclosing(loop)]
        while waiting:
            function = waiting.pop()
            if function in found:
                continue
            found.add(function)
            for site in self._program.names.callers(function)[0]:
                caller = site.scope.function()
                if caller is not None:
                    waiting.append(caller)
        return found

    # What runs

    def _reached(self, starts: Iterable[Scope | None], guarded: bool) -> set[tuple[Script, Scope | None]]:
        """The code that may run: functions, and (None) the modules that are imported on the way.

        With `guarded` the modules' own code is followed too, that of an imported file without what
        stands behind its ``__main__`` guard.
        """
        found: set[tuple[Script, Scope | None]] = set()
        waiting: list[tuple[Script, Scope | None]] = []
        for start in starts:
            if start is None or start.kind == "function":
                waiting.append((self._script, start))
        if guarded:
            waiting += [(script, None) for script in self._linked]
        while waiting:
            item = waiting.pop()
            if item in found:
                continue
            found.add(item)
            script, function = item
            for site in _sites_in(script, function):
                if function is None and script is not self._script and behind_main_guard(site.statement):
                    continue
                for called in self._run_by(script, site):
                    waiting.append((self._script.home(called), called))
        return found

    def _run_by(self, script: Script, site: Site) -> Iterator[Scope]:
        """The functions that a call runs: those it calls, and those it is handed."""
        yield from script.names.called_functions(site)
        for given in (*site.node.args, *(word.value for word in site.node.keywords)):
            if isinstance(given, ast.Name | ast.Attribute):
                for value in script.names.site_values(given, site):
                    if isinstance(value, Function):
                        yield value.scope

    # tf.distribute

    def _under_strategies(self, loops: list[Loop]) -> None:
        """Loops of a program that makes a `tf.distribute` strategy are that strategy's."""
        scripts = dict.fromkeys([self._script, *(loop.script for loop in loops)])
        for script in scripts:
            if not any("trategy" in name for name in script.identifiers):
                continue
            for site in script.sites:
                names = script.names.full_names(site.node.func, site.scope, site.statement)
                if any(api.is_subclass(name, *api.STRATEGY) for name in names):
                    for loop in loops:
                        loop.pattern = Pattern.STRATEGY
                        loop.origin = loop.origin or site
                    return

    # One model or two

    def same_model(self, one: Loop, other: Loop) -> bool | None:
        """Whether two loops train the same model; None if it cannot be seen."""
        made = [[self.creations(place) for place in loop.models] for loop in (one, other)]
        if any(not first.isdisjoint(second) for first in made[0] for second in made[1]):
            return True
        return False if all(each and all(each) for each in made) else None

    def creations(self, place: Place) -> frozenset[ast.AST]:
        """The calls that make what an expression stands for; empty if they cannot be seen."""
        found: set[ast.AST] = set()
        self._trace(place, found, set())
        return frozenset(found)

    def _trace(self, place: Place, found: set[ast.AST], seen: set[tuple[int, int]]) -> None:
        node, names = place.node, self._program.names
        key = (id(node), id(place.scope))
        if key in seen:
            return
        seen.add(key)
        if isinstance(node, ast.Call):
            found.add(node)
        elif isinstance(node, ast.Name) and names.is_self(node, place.scope):
            self._trace_self(place, found)
        elif isinstance(node, ast.Name):
            for binding in names.lookup(node.id, place.scope, place.statement)[1]:
                self._trace_binding(binding, found, seen)
        elif isinstance(node, ast.Attribute):
            home = self._script.home(place.scope)
            for attribute in home.attribute_bindings(node.attr):
                if dotted(attribute.base) == dotted(node.value):
                    self._trace_binding(attribute.binding, found, seen)
            for value in names.values(node.value, place.scope, place.statement):
                if isinstance(value, UserInstance) and value.node is not None:
                    self._trace_member(value, node.attr, found, seen)

    def _trace_self(self, place: Place, found: set[ast.AST]) -> None:
        names = self._program.names
        for value in names.values(place.node, place.scope, place.statement):
            if isinstance(value, UserInstance):
                for script in self._script.home(value.scope).users:
                    for site in script.sites_named(value.scope.name):
                        if any(isinstance(v, Class) and v.scope is value.scope for v in names.callee(site)):
                            found.add(site.node)

    def _trace_member(
        self, value: UserInstance, name: str, found: set[ast.AST], seen: set[tuple[int, int]]
    ) -> None:
        for attribute in self._script.home(value.scope).attribute_bindings(name):
            function = attribute.binding.scope.function()
            if function is not None and function.owner() is value.scope:
                self._trace_binding(attribute.binding, found, seen)

    def _trace_binding(self, binding: Binding, found: set[ast.AST], seen: set[tuple[int, int]]) -> None:
        if binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            names = self._program.names
            for site in names.callers(binding.inner)[0]:
                given = names.argument(site, binding.inner, binding.target.arg)
                if given is not None:
                    self._trace(Place(given, site.scope, site.statement), found, seen)
        elif binding.kind == "import":
            for origin in self._imported(binding):
                self._trace_binding(origin, found, seen)
        elif binding.value is not None:
            self._trace(Place(binding.value, binding.scope, binding.statement), found, seen)

    def _imported(self, binding: Binding) -> Iterator[Binding]:
        workspace = self._script.workspace
        if workspace is not None:
            home = workspace.home(binding.scope)
            path, names = workspace.locate(home, binding.full_name)
            script = workspace.script(path) if path and len(names) == 1 else None
            if script is not None:
                yield from script.module_bindings.get(names[0], [])


def header(script: Script, statement: Statement) -> Span:
    """The first line of a `for` or `while`, up to what it iterates or tests; any other statement's span."""
    span, node = script.statement_span(statement), statement.node
    last = getattr(node, "iter", None) or (node.test if isinstance(node, ast.While) else None)
    return span if last is None else Span(span.start, script.span(last, statement).end)


def _is_of_script_only(loop: Loop) -> bool:
    """Whether the loop does not run when its file is imported."""
    return loop.function is None and behind_main_guard(loop.sites[0].statement)


def _may_train(script: Script) -> bool:
    names = (*FITTING, *_STEPPING, *_ASSIGNING, "train", "train_and_evaluate", "run")
    return next(script.sites_named(*names), None) is not None


def _sites_in(script: Script, function: Scope | None) -> Iterator[Site]:
    """The calls in a function (nested lambdas and comprehensions included), or in the module itself."""
    for facts in script.facts if function is None else (function.facts,):
        for site in facts.sites:
            home = site.scope.function()
            while home is not None and not home.name and home.parent is not None and home is not function:
                home = home.parent.function()
            if home is function:
                yield site


def _enclosing(loop: Loop) -> Iterator[Scope]:
    """The functions that a loop's calls stand in, a method's step included."""
    for site in loop.sites:
        scope = site.scope.function()
        while scope is not None:
            yield scope
            # A lambda or a nested function runs, as far as can be told, when the one around it does.
            scope = scope.parent.function() if scope.parent is not None and not scope.name else None


def _read_loops(program: Program, root: Program) -> list[Loop]:
    """The loops that stand in one script, by pattern, one for each outermost loop statement."""
    reader = _Reader(program, root)
    merged: dict[tuple[Pattern, Statement, Scope | None], Loop] = {}
    for loop in reader.read():
        key = (loop.pattern, loop.statement, None if _is_loop(loop.statement) else loop.function)
        known = merged.setdefault(key, loop)
        if known is not loop:
            known.sites += loop.sites
            known.models += [each for each in loop.models if each not in known.models]
            known.optimizers += loop.optimizers
            known.tapes += [tape for tape in loop.tapes if tape not in known.tapes]
    return sorted(merged.values(), key=lambda loop: program.script.span(loop.sites[0].node, loop.sites[0]))


def _is_loop(statement: Statement) -> bool:
    return isinstance(statement.node, LOOPS)


class _Reader:
    """Reads the loops of one script of a program."""

    def __init__(self, program: Program, root: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._root = root

    def read(self) -> Iterator[Loop]:
        yield from self._tapes()
        yield from self._fits()
        yield from self._estimators()
        yield from self._sessions()
        yield from self._minimizers()
        yield from self._by_hand()

    # GradTape

    def _tapes(self) -> Iterator[Loop]:
        for step in self._program.training.steps:
            site = step.site
            if self._is_custom_step(site.scope):
                continue
            receiver = self._names.site_values(step.receiver, site)
            tf1 = self._names.may_be(receiver, _TF1_OPTIMIZER)
            if not step.gradients and not step.reduced:
                if tf1 or self._uses_sessions or next(self._script.sites_named("compute_gradients"), None):
                    continue
            pattern = Pattern.GRAD_TAPE if self._is_fed(step) else Pattern.UNKNOWN
            tapes = list(dict.fromkeys(tape for each in step.gradients for tape in each.tapes))
            models = [Place(model, site.scope, site.statement) for model in step.models]
            if not models and step.pairs is not None:
                models = list(self._variable_owners(step))
            yield Loop(
                pattern, self._script, [site], self._around(site), models,
                [Place(step.receiver, site.scope, site.statement)], tapes,
            )  # fmt: skip

    def _is_fed(self, step: Step) -> bool:
        if step.gradients or step.reduced:
            return True
        workspace = self._script.workspace
        if step.pairs is None or workspace is None:
            return False
        wanted = {
            gradient.site.node: gradient
            for script in workspace.reachable
            if next(script.sites_named("GradientTape"), None)
            for gradient in self._root.linked(script).training.gradients
        }
        found = reaching_calls(self._script, wanted, step.pairs, step.site.scope, step.statement)
        return bool(wanted) and bool(found)

    def _is_custom_step(self, scope: Scope) -> bool:
        """Whether the code is what `fit` of a Keras model of the script's own runs (C23)."""
        function = scope.function()
        while function is not None:
            owner = function.owner()
            if owner is not None and function.name in _TRAINING_METHODS:
                bases = self._names.library_bases(owner)
                if any(api.is_subclass(base, *api.MODEL) for base in bases):
                    return not self._called_directly(function)
            function = function.parent.function() if function.parent is not None else None
        return False

    def _called_directly(self, function: Scope) -> bool:
        sites = self._names.callers(function)[0]
        return any(site.scope.function() is not function and not _of_super(site) for site in sites)

    def _variable_owners(self, step: Step) -> Iterator[Place]:
        """The models that the variables are named after, where it is not sure that they are all."""
        found = self._program.training.variables(step)
        if found is None:
            return
        node, scope, statement = found
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr.startswith(
                ("trainable_", "variables", "weights")
            ):
                yield Place(part.value, scope, statement)

    # Optimizer

    def _fits(self) -> Iterator[Loop]:
        for site in self._script.sites_named(*FITTING):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or _of_super(site):
                continue
            if any(isinstance(value, Function) for value in self._names.callee(site)):
                continue
            values = self._names.site_values(function.value, site)
            known = self._names.may_be(values, *api.MODEL)
            if not known and not self._looks_like_fit(site, function.value, values):
                continue
            if self._is_custom_step(site.scope) and dotted(function.value) == "self":
                continue
            place = Place(function.value, site.scope, site.statement)
            yield Loop(
                Pattern.OPTIMIZER, self._script, [site], self._around(site), [place],
                list(self._compiled_with(site)), certain=known,
            )  # fmt: skip

    def _looks_like_fit(self, site: Site, receiver: ast.expr, values: Values) -> bool:
        """Whether an unknown object is fitted as only a Keras model is."""
        if values and not any(isinstance(value, Unknown) for value in values):
            return False
        if site.name != "fit" or any(word.arg in _FIT_KEYWORDS for word in site.node.keywords):
            return self._imports_tensorflow
        name = dotted(receiver)
        return bool(name) and any(
            dotted(each.node.func.value) == name
            for each in self._script.sites_named("compile")
            if isinstance(each.node.func, ast.Attribute)
            and any(word.arg in _COMPILE_KEYWORDS for word in each.node.keywords)
        )

    @cached_property
    def _imports_tensorflow(self) -> bool:
        roots = {binding.full_name.partition(".")[0] for binding in self._script.imports}
        return not roots.isdisjoint({"tensorflow", "keras"})

    def _compiled_with(self, fit: Site) -> Iterator[Place]:
        """The optimizers that the fitted model is compiled with."""
        assert isinstance(fit.node.func, ast.Attribute)
        loops = self._root.loops
        model = loops.creations(Place(fit.node.func.value, fit.scope, fit.statement))
        for site in self._script.sites_named("compile"):
            if not isinstance(site.node.func, ast.Attribute):
                continue
            place = Place(site.node.func.value, site.scope, site.statement)
            same = dotted(place.node) == dotted(fit.node.func.value) != ""
            if same or not model.isdisjoint(loops.creations(place)):
                given = argument(site.node, 0, "optimizer")
                if given is not None:
                    yield Place(given, site.scope, site.statement)

    # Estimator

    def _estimators(self) -> Iterator[Loop]:
        for site in self._script.sites_named("train", "train_and_evaluate"):
            function = site.node.func
            estimator = argument(site.node, 0, "estimator")
            if site.name == "train":
                if not isinstance(function, ast.Attribute):
                    continue
                estimator = function.value
                if not self._names.may_be(self._names.site_values(estimator, site), *api.ESTIMATOR):
                    continue
            elif not any(
                name.endswith("estimator.train_and_evaluate")
                for name in self._names.full_names(function, site.scope, site.statement)
            ):
                continue
            models = [Place(estimator, site.scope, site.statement)] if estimator is not None else []
            yield Loop(Pattern.ESTIMATOR, self._script, [site], self._around(site), models)

    # Session, MonitoredSession

    @cached_property
    def _uses_sessions(self) -> bool:
        return any(self._session_calls) or any(
            self._names.may_be(self._names.site_values(site.node.func.value, site), *api.SESSION, *_MONITORED)
            for site in self._script.sites_named("run")
            if isinstance(site.node.func, ast.Attribute)
        )

    @cached_property
    def _session_calls(self) -> list[Site]:
        return [
            site
            for site in self._script.sites_named(
                *{name.rpartition(".")[2] for name in (*_SESSIONS, *_MONITORED)}
            )
            if self._names.calls(site, *_SESSIONS, *_MONITORED)
        ]

    def _sessions(self) -> Iterator[Loop]:
        runs = [site for site in self._script.sites_named("run") if isinstance(site.node.func, ast.Attribute)]
        if not runs:
            return
        steps = list(self._graph_steps())
        if not steps and not self._steps_elsewhere:
            return
        trained = _names_of(self._script, {site.node for site in steps}) | self._steps_elsewhere
        wanted = {site.node: site for site in steps}
        for site in runs:
            assert isinstance(site.node.func, ast.Attribute)
            receiver = self._names.site_values(site.node.func.value, site)
            session = self._names.may_be(receiver, *api.SESSION, *_MONITORED)
            strange = any(isinstance(value, Unknown) for value in receiver) or not receiver
            fetches = [
                *site.node.args[:1],
                *(word.value for word in site.node.keywords if word.arg == "fetches"),
            ]
            if last_name(site.node.func.value) in trained or (not session and not strange):
                fetches = [site.node.func.value] if last_name(site.node.func.value) in trained else []
            ops = [step for each in fetches for step in reaching_calls(
                self._script, wanted, each, site.scope, site.statement
            )]  # fmt: skip
            if not ops and not any(_mentions(each, trained) for each in fetches):
                continue
            monitored = self._names.may_be(receiver, *_MONITORED) or (
                not session and any(self._names.calls(each, *_MONITORED) for each in self._session_calls)
            )
            pattern = Pattern.MONITORED_SESSION if monitored else Pattern.SESSION
            optimizers = [
                Place(op.node.func.value, op.scope, op.statement)
                for op in ops or steps
                if isinstance(op.node.func, ast.Attribute)
            ]
            yield Loop(pattern, self._script, [site], self._around(site), [], optimizers)

    def _graph_steps(self) -> Iterator[Site]:
        """The calls that make a training operation of a TF1 graph."""
        taken = {step.site for step in self._program.training.steps if step.gradients}
        for site in self._script.sites_named(*_STEPPING):
            if site in taken or not isinstance(site.node.func, ast.Attribute):
                continue
            values = self._names.site_values(site.node.func.value, site)
            unknown = any(isinstance(value, Unknown) for value in values)
            if unknown or self._names.may_be(values, *api.OPTIMIZERS) or not values:
                yield site

    @cached_property
    def _steps_elsewhere(self) -> frozenset[str]:
        """Names that other linked scripts give to training operations: ``model.train_op``."""
        workspace = self._script.workspace
        found: set[str] = set()
        for script in workspace.reachable if workspace is not None else ():
            if script is not self._script and next(script.sites_named(*_STEPPING), None):
                found |= _names_of(script, {site.node for site in script.sites_named(*_STEPPING)})
        return frozenset(found)

    # What is none of these

    def _minimizers(self) -> Iterator[Loop]:
        for site in self._script.sites_named("minimize"):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or self._names.full_names(
                function, site.scope, site.statement
            ):
                continue
            values = self._names.site_values(function.value, site)
            optimizer = self._names.may_be(values, *api.OPTIMIZERS)
            tf1 = self._names.may_be(values, _TF1_OPTIMIZER)
            eager = _is_eager(site) or (optimizer and not tf1)
            if self._uses_sessions or self._builds_estimators or not eager:
                continue
            if not optimizer and not any(isinstance(value, Unknown) for value in values):
                continue
            place = Place(function.value, site.scope, site.statement)
            yield Loop(
                Pattern.MINIMIZE, self._script, [site], self._around(site), [], [place], certain=optimizer
            )

    @cached_property
    def _builds_estimators(self) -> bool:
        return next(self._script.sites_named("EstimatorSpec", "TPUEstimatorSpec"), None) is not None

    def _by_hand(self) -> Iterator[Loop]:
        """Weights that are assigned what a tape's gradients say, without an optimizer."""
        used = {gradient for step in self._program.training.steps for gradient in step.gradients}
        left = {each.site.node: each for each in self._program.training.gradients if each not in used}
        if not left:
            return
        for site in self._script.sites_named(*_ASSIGNING):
            gradients = [
                gradient
                for given in site.node.args
                for gradient in reaching_calls(self._script, left, given, site.scope, site.statement)
            ]
            if gradients:
                tapes = list(dict.fromkeys(tape for each in gradients for tape in each.tapes))
                yield Loop(Pattern.BY_HAND, self._script, [site], self._around(site), [], [], tapes)

    # Where the loop is

    def _around(self, site: Site) -> Statement:
        """The outermost loop statement around a call, in its function or in the one that calls it."""
        seen: set[Scope] = set()
        statement, scope = site.statement, site.scope
        while True:
            outermost = [
                each for each in statement.path() if _is_loop(each) and each.scope is statement.scope
            ]
            if outermost:
                return outermost[-1]
            function = scope.function()
            if function is None or function in seen or site.name in FITTING:
                return site.statement
            seen.add(function)
            callers = [each for each in self._names.callers(function)[0] if each.scope.function() != function]
            if not callers:
                return site.statement
            statement, scope = callers[0].statement, callers[0].scope


def _of_super(site: Site) -> bool:
    function = site.node.func
    receiver = function.value if isinstance(function, ast.Attribute) else function
    return isinstance(receiver, ast.Call) and last_name(receiver.func) == "super"


def _is_eager(site: Site) -> bool:
    """Whether a call of `minimize` is one of TF2: of a function, or with the variables or the tape."""
    loss = argument(site.node, 0, "loss")
    return isinstance(loss, ast.Lambda) or any(word.arg == "tape" for word in site.node.keywords)


def _names_of(script: Script, calls: set[ast.Call]) -> set[str]:
    """The names and attributes that the results of `calls` are bound to, through further assignments."""
    found: set[str] = set()
    values = list(script.bound_values)
    while True:
        before = len(found)
        for name, value in values:
            if name not in found and any(
                part in calls or (isinstance(part, ast.Name | ast.Attribute) and last_name(part) in found)
                for part in ast.walk(value)
            ):
                found.add(name)
        if len(found) == before:
            return found


def _mentions(node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    return any(
        isinstance(part, ast.Name | ast.Attribute) and last_name(part) in names for part in ast.walk(node)
    )
