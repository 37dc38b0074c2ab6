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
from typing import TYPE_CHECKING, TypeAlias

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
from trainshift.core.names import Class, Display, Function, Module, Unknown, UserInstance, Values
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
# Calls of these run the function that they are given at once, as the script's own main function.
LAUNCHERS = frozenset(
    {"absl.app.run", "tensorflow.compat.v1.app.run", "tensorflow.app.run", "fire.Fire", "typer.run"}
)
_RUNNERS = LAUNCHERS | {"threading.Thread", "multiprocessing.Process", "multiprocessing.context.Process"}
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
_STRATEGY_METHODS = (
    "scope", "experimental_run_v2", "experimental_distribute_dataset", "distribute_datasets_from_function",
)  # fmt: skip
# A model is not followed through more names than this to see whether it shares another's weights.
_MOST_PARTS = 400
# Neither is anything traced through more steps than this.
_DEEPEST = 40
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
        """The function that the loop stands in, lambdas left out; None for the module's own code."""
        return _named_function(self.sites[0].scope)

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
        """The first model's expression; empty if it cannot be seen."""
        return ast.unparse(self.models[0].node) if self.models else ""

    @property
    def call(self) -> str:
        """The call that trains, as a message shows it: ``model.fit(...)``."""
        site = self.sites[0]
        return f"{' '.join(self.script.text(site.node.func, site).split())}(...)"


_Sites: TypeAlias = dict[Scope | None, list[Site]]
_Imports: TypeAlias = dict[Scope | None, list[Binding]]


class Loops:
    """The training loops of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._codes: dict[Script, tuple[_Sites, _Imports]] = {}
        self._origins_of: dict[tuple[int, int], frozenset[ast.AST | None]] = {}
        self._tracing = 0

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
            reached = self._reached([None, *self._script.scopes])
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

    def steps(self, loop: Loop) -> tuple[Span, ...]:
        """The calls of a loop that update weights, as far as they stand in the program's first script."""
        if loop.script is not self._script:
            return ()
        return tuple(self._script.span(site.node, site) for site in loop.sites)

    def summary(self, function: Scope | None) -> frozenset[Pattern]:
        """The patterns that run when `function` of the first script (None: the script itself) is run."""
        reached = self._reached([function])
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
            for site in self.callers(function):
                caller = site.scope.function()
                if caller is not None:
                    waiting.append(caller)
        return found

    def callers(self, function: Scope) -> list[Site]:
        """The calls that run a function: of itself, and of what runs it as a main function or in a thread."""
        found, elsewhere = self._program.names.callers(function)
        if not elsewhere or not function.name:
            return found
        handed = []
        for script in self._script.home(function).users:
            for site in script.sites_named(*(name.rpartition(".")[2] for name in _RUNNERS)):
                given = [*site.node.args, *(word.value for word in site.node.keywords)]
                if script.names.calls(site, *_RUNNERS) and any(
                    isinstance(value, Function) and value.scope is function
                    for each in given
                    if last_name(each)
                    for value in script.names.site_values(each, site)
                ):
                    handed.append(site)
        return [*found, *handed]

    # What runs

    def _reached(self, starts: Iterable[Scope | None]) -> set[tuple[Script, Scope | None]]:
        """The code that may run: functions, and (None) the modules that are imported on the way.

        What stands behind the ``__main__`` guard of an imported file does not run.
        """
        found: set[tuple[Script, Scope | None]] = set()
        waiting: list[tuple[Script, Scope | None]] = []
        for start in starts:
            if start is None or start.kind == "function":
                waiting.append((self._script, start))
        while waiting:
            item = waiting.pop()
            if item in found:
                continue
            found.add(item)
            script, function = item
            passive = function is None and script is not self._script
            sites, imports = self._code(script)
            for site in sites.get(function, ()):
                if not (passive and behind_main_guard(site.statement)):
                    waiting += [(self._script.home(called), called) for called in self._run_by(script, site)]
            for binding in imports.get(function, ()):
                if not (passive and binding.statement and behind_main_guard(binding.statement)):
                    waiting += [(imported, None) for imported in self._imported_scripts(script, binding)]
        return found

    def _code(self, script: Script) -> tuple[_Sites, _Imports]:
        """The calls and the imports of each function (with its lambdas), and of the module itself (None)."""
        if script not in self._codes:
            sites: _Sites = {}
            for site in script.sites:
                sites.setdefault(_named_function(site.scope), []).append(site)
            imports: _Imports = {}
            for binding in script.imports:
                imports.setdefault(binding.scope.function(), []).append(binding)
            self._codes[script] = sites, imports
        return self._codes[script]

    def _imported_scripts(self, script: Script, binding: Binding) -> Iterator[Script]:
        """The scripts whose own code an import runs."""
        workspace = self._script.workspace
        if workspace is not None:
            for path in workspace.run_by_import(script, binding):
                imported = workspace.script(path)
                if imported is not None:
                    yield imported

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
        if not loops:
            return
        sites = list(self._strategy_sites())
        for site in sites:
            names = self._program.names.full_names(site.node.func, site.scope, site.statement)
            if any(api.is_subclass(name, *api.STRATEGY) for name in names):
                self._give_to_strategy(loops, site, True)
                return
        for site in sites:
            if self._uses_strategy(site):
                self._give_to_strategy(loops, site, False)
                return

    def _give_to_strategy(self, loops: list[Loop], origin: Site, certain: bool) -> None:
        for loop in loops:
            loop.pattern = Pattern.STRATEGY
            loop.origin = origin
            loop.certain = certain

    def _strategy_sites(self) -> Iterator[Site]:
        """The calls of the program that may make a strategy, or use one."""
        hidden = next(self._script.sites_named(*_STRATEGY_METHODS), None) is not None
        if hidden or any("trategy" in name for name in self._script.identifiers):
            yield from self._script.sites
        others = [each for each in self._linked if any("trategy" in name for name in each.identifiers)]
        if others:
            reached = self._reached([None, *self._script.scopes])
            for script in others:
                for site in script.sites:
                    if (script, _named_function(site.scope)) in reached:
                        yield site

    def _uses_strategy(self, site: Site) -> bool:
        """Whether the call is one that a strategy has, of an object that is not seen."""
        function = site.node.func
        if site.name not in _STRATEGY_METHODS or not isinstance(function, ast.Attribute):
            return False
        if site.name == "scope" and not (
            isinstance(site.parent, ast.With) and not site.node.args and not site.node.keywords
        ):
            return False
        receiver = self._program.names.site_values(function.value, site)
        return not receiver or any(isinstance(value, Unknown) for value in receiver)

    # One model or two

    def same_model(self, one: Loop, other: Loop) -> bool | None:
        """Whether two loops train the same model; None if it cannot be seen, or if models share weights."""
        if self.shared_model(one, other) is not None:
            return True
        first, second = ([self._origins(place) for place in loop.models] for loop in (one, other))
        if not first or not second or any(None in each or not each for each in (*first, *second)):
            return None
        shared = any(
            self._built_from(place, frozenset().union(*made))
            for loop, made in ((one, second), (other, first))
            for place in loop.models
        )
        return None if shared else False

    def shared_model(self, one: Loop, other: Loop) -> Place | None:
        """The model of `one` that `other` trains too, as far as can be seen."""
        made = frozenset[ast.AST]().union(*(self.creations(place) for place in other.models))
        return next((place for place in one.models if not made.isdisjoint(self.creations(place))), None)

    def creations(self, place: Place) -> frozenset[ast.AST]:
        """The calls that make what an expression stands for; empty if they cannot be seen."""
        return frozenset(node for node in self._origins(place) if node is not None)

    def _origins(self, place: Place) -> frozenset[ast.AST | None]:
        """The calls that make what an expression stands for; None among them for what cannot be seen."""
        key = (id(place.node), id(place.scope))
        if key not in self._origins_of:
            if self._tracing >= _DEEPEST:
                return frozenset({None})
            self._origins_of[key] = frozenset()  # asked again while it is being answered: a cycle
            self._tracing += 1
            self._origins_of[key] = frozenset(self._trace(place))
            self._tracing -= 1
        return self._origins_of[key]

    def _trace(self, place: Place) -> Iterator[ast.AST | None]:
        node, names = place.node, self._program.names
        if isinstance(node, ast.Call):
            yield from self._trace_call(node, place)
        elif isinstance(node, ast.Name) and names.is_self(node, place.scope):
            yield from self._trace_self(place)
        elif isinstance(node, ast.Name):
            bindings = names.lookup(node.id, place.scope, place.statement)[1]
            for binding in bindings:
                yield from self._trace_binding(binding)
            if not bindings:
                yield None
        elif isinstance(node, ast.Attribute):
            yield from self._trace_attribute(node, place)
        elif isinstance(node, ast.IfExp):
            for part in (node.body, node.orelse):
                yield from self._origins(Place(part, place.scope, place.statement))
        elif isinstance(node, ast.Subscript):
            yield from self._trace_elements(node.value, place)
        elif not (isinstance(node, ast.Constant) and node.value is None):
            yield None

    def _trace_call(self, node: ast.Call, place: Place) -> Iterator[ast.AST | None]:
        """A call makes an object of its own, unless its function gives what is made outside of it."""
        values = self._program.names.values(node.func, place.scope, place.statement)
        functions = [value.scope for value in values if isinstance(value, Function)]
        if not values or any(isinstance(value, Unknown) for value in values):
            yield None
        outside: set[ast.AST | None] = set()
        inside = not functions
        for function in functions:
            for value, statement in function.returns:
                for made in self._origins(Place(value, function, statement)):
                    site = self._script.site_of(made) if isinstance(made, ast.Call) else None
                    if site is not None and site.scope.function() is not function:
                        outside.add(made)
                    else:
                        inside = True
        if inside or not outside:
            yield node
        yield from outside

    def _trace_attribute(self, node: ast.Attribute, place: Place) -> Iterator[ast.AST | None]:
        names, found = self._program.names, 0
        for attribute in self._script.home(place.scope).attribute_bindings(node.attr):
            if dotted(attribute.base) == dotted(node.value):
                found += 1
                yield from self._trace_binding(attribute.binding)
        for value in names.values(node.value, place.scope, place.statement):
            if isinstance(value, UserInstance):
                for cls in names.ancestry(value.scope):
                    if not isinstance(cls, Scope):
                        continue
                    for attribute in self._script.home(cls).attribute_bindings(node.attr):
                        function = attribute.binding.scope.function()
                        if function is not None and function.owner() is cls:
                            found += 1
                            yield from self._trace_binding(attribute.binding)
            elif isinstance(value, Module) and self._script.workspace is not None:
                script = self._script.workspace.script(value.path)
                for binding in script.module_bindings.get(node.attr, ()) if script is not None else ():
                    found += 1
                    yield from self._trace_binding(binding)
        if not found:
            yield None

    def _trace_self(self, place: Place) -> Iterator[ast.AST | None]:
        names = self._program.names
        for value in names.values(place.node, place.scope, place.statement):
            if isinstance(value, UserInstance):
                # The class itself stands for an object whose making is not seen.
                yield value.scope.node
                for script in self._script.home(value.scope).users:
                    for site in script.sites_named(value.scope.name):
                        if any(isinstance(v, Class) and v.scope is value.scope for v in names.callee(site)):
                            yield site.node

    def _trace_elements(self, node: ast.expr, place: Place) -> Iterator[ast.AST | None]:
        """What the elements of a list or a comprehension are made by."""
        for value in self._program.names.values(node, place.scope, place.statement):
            parts: list[ast.expr] = []
            scope = place.scope
            if isinstance(value, Display):
                scope = value.scope
                if isinstance(value.node, ast.List | ast.Tuple | ast.Set):
                    parts = value.node.elts
                elif isinstance(value.node, ast.Dict):
                    parts = value.node.values
                elif isinstance(value.node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
                    parts, scope = [value.node.elt], scope.facts.scope_of[value.node]
            for part in parts:
                yield from self._origins(Place(part, scope, getattr(value, "statement", None)))
            if not parts:
                yield None

    def _trace_binding(self, binding: Binding) -> Iterator[ast.AST | None]:
        if binding.kind == "parameter" and binding.inner is not None:
            assert isinstance(binding.target, ast.arg)
            names = self._program.names
            sites, elsewhere = names.callers(binding.inner)
            for site in sites:
                given = names.argument(site, binding.inner, binding.target.arg)
                if given is not None:
                    yield from self._origins(Place(given, site.scope, site.statement))
                elif binding.value is None:
                    yield None
            if elsewhere:
                yield None
        elif binding.kind == "import":
            origins = list(self._imported(binding))
            for origin in origins:
                yield from self._trace_binding(origin)
            if not origins:
                yield None
        elif binding.value is None:
            yield None
        elif binding.kind == "element":
            yield from self._trace_elements(
                binding.value, Place(binding.value, binding.scope, binding.statement)
            )
        elif binding.path:
            yield from self._trace_path(
                binding.value, binding.path, Place(binding.value, binding.scope, binding.statement)
            )
        else:
            yield from self._origins(Place(binding.value, binding.scope, binding.statement))

    def _trace_path(self, node: ast.expr, path: tuple[int, ...], place: Place) -> Iterator[ast.AST | None]:
        """What tuple unpacking takes, where the tuple is written out."""
        for value in self._program.names.values(node, place.scope, place.statement):
            elements = getattr(value.node, "elts", []) if isinstance(value, Display) else []
            if isinstance(value, Display) and len(path) == 1 and 0 <= path[0] < len(elements):
                yield from self._origins(Place(elements[path[0]], value.scope, value.statement))
            else:
                yield None

    def _built_from(self, place: Place, wanted: frozenset[ast.AST | None]) -> bool:
        """Whether a model is made of another one, whose weights it then shares."""
        seen: set[ast.AST] = set()
        sites = [self._script.site_of(made) for made in self.creations(place) if isinstance(made, ast.Call)]
        parts: list[tuple[ast.AST, Scope, Statement | None]] = []
        for site in sites:
            parts += [(part, site.scope, site.statement) for part in ast.walk(site.node)]
        while parts:
            part, scope, statement = parts.pop()
            if part in seen or not isinstance(part, ast.Name | ast.Attribute):
                continue
            seen.add(part)
            if len(seen) > _MOST_PARTS:
                return False
            if not (self._origins(Place(part, scope, statement)) & wanted) <= {None}:
                return True
            if isinstance(part, ast.Name):
                for binding in self._program.names.lookup(part.id, scope, statement)[1]:
                    if binding.kind == "value" and binding.value is not None:
                        parts += [(p, binding.scope, binding.statement) for p in ast.walk(binding.value)]
        return False

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


def _named_function(scope: Scope) -> Scope | None:
    """The function that is not a lambda in which a scope lies; None for the module's own code."""
    function = scope.function()
    while function is not None and not function.name:
        function = function.parent.function() if function.parent is not None else None
    return function


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
            if self._is_custom_step(site.scope) or self._is_optimizers_own(site.scope):
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

    def _is_optimizers_own(self, scope: Scope) -> bool:
        """Whether the code is a method of an optimizer, which is no loop but what a loop calls."""
        function = scope.function()
        while function is not None and function.owner() is None:
            function = function.parent.function() if function.parent is not None else None
        owner = function.owner() if function is not None else None
        bases = self._names.library_bases(owner) if owner is not None else ()
        return any(api.is_subclass(base, *api.OPTIMIZERS) for base in bases)

    def _is_custom_step(self, scope: Scope, seen: frozenset[Scope] = frozenset()) -> bool:
        """Whether the code is only run by the `fit` of a Keras model of the script's own (C23)."""
        function = scope.function()
        while function is not None and function not in seen:
            owner = function.owner()
            if owner is not None and function.name in _TRAINING_METHODS:
                bases = self._names.library_bases(owner)
                if any(api.is_subclass(base, *api.MODEL) for base in bases):
                    return not self._called_directly(function)
            callers, elsewhere = self._names.callers(function)
            if callers and not elsewhere and len(seen) < _DEEPEST:
                seen |= {function}
                return all(self._is_custom_step(site.scope, seen) for site in callers)
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
        scripts = (self._script, self._root.script)
        roots = {binding.full_name.partition(".")[0] for script in scripts for binding in script.imports}
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
        training = self._program.training
        left = {
            each.site.node: each
            for each in training.gradients
            if each not in used and not training.of_input(each)
        }
        if not left:
            return
        for site in self._script.sites_named(*_ASSIGNING):
            if self._is_custom_step(site.scope) or self._is_optimizers_own(site.scope):
                continue
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
    values = list(script.code.bound_values)
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
