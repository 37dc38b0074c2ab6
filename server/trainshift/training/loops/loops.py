"""Training loops: the training code of a program, by pattern, with models, optimizers and tapes.

This is the training-loop identification of spec.md 2.  A program is one script and its callees in the files
that it imports.  The summary of a function is the set of the patterns that run when it is called: none is the
lattice's bottom, two or more are its top.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.reachability import Reachability, idle_scopes
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function, Member, Unknown
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Statement,
    arguments,
    behind_main_guard,
    dotted,
    last_name,
)
from trainshift.python.values.call_chains import functions_leading_to
from trainshift.training.execution.executions import is_of_one_branch
from trainshift.training.execution.origins import Origins
from trainshift.training.loops.loop_kinds import GRAPH_PATTERNS, Loop, Pattern, is_loop, named_function
from trainshift.training.loops.loop_reader import candidates, read_loops, unseen_trainings

LOOKED_FOR = (
    "no training loop: looked for optimizer.apply_gradients(...) fed by a tf.GradientTape, "
    "model.fit(...), a TF1 session and an Estimator"
)
# These calls run their function argument at once, as the script's main function.
LAUNCHERS = frozenset(
    {"absl.app.run", "tensorflow.compat.v1.app.run", "tensorflow.app.run", "fire.Fire", "typer.run"}
)
_RUNNERS = LAUNCHERS | {"threading.Thread", "multiprocessing.Process", "multiprocessing.context.Process"}
_STRATEGY_METHODS = (
    "scope", "experimental_run_v2", "experimental_distribute_dataset", "distribute_datasets_from_function",
)  # fmt: skip

_Code: TypeAlias = tuple[Script, Scope | None]
"""A function of a script, with its lambdas, or (None) the script's own code."""
_Sites: TypeAlias = dict[Scope | None, list[Site]]
_Imports: TypeAlias = dict[Scope | None, list[Binding]]


class Loops:
    """The training loops of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._codes: dict[Script, tuple[_Sites, _Imports]] = {}
        self._reached_yet: set[_Code] = set()
        self._origins = program.fact(Origins)

    @cached_property
    def own(self) -> list[Loop]:
        """The loops in the program's first script, in text order, regardless of their callers."""
        found = [loop for loop in self._read if loop.likely]
        self._under_strategies(found)
        return found

    @cached_property
    def eager_updates(self) -> set[Site]:
        """The training calls in the script's own loops that are not operations of a TF1 graph."""
        eager = [loop for loop in self.own if loop.pattern not in GRAPH_PATTERNS]
        return {site for loop in eager for site in loop.sites}

    @cached_property
    def runs_eagerly(self) -> bool:
        """Return whether anything trains outside a TF1 session, whose configuration names its GPU."""
        patterns = {loop.pattern for loop in self.own}
        return not patterns or not patterns <= GRAPH_PATTERNS

    @cached_property
    def all(self) -> list[Loop]:
        """The loops of the script, and those that it reaches in other files."""
        found: list[Loop] = []
        for script in self._others(candidates):
            found += [
                loop
                for loop in read_loops(self._program.linked(script), self._program)
                if loop.likely
                and not _is_of_script_only(loop)
                and self._reach.runs(loop.sites[0].scope, loop.sites[0].statement)
                and self._is_reachable((script, loop.function))
            ]
        self._under_strategies(found)
        return [*self.own, *found]

    @cached_property
    def possible(self) -> list[Loop]:
        """The possible loops in the first script, of which only a `fit` is known."""
        return [loop for loop in self._read if not loop.likely]

    @cached_property
    def unseen(self) -> list[Site]:
        """The calls of `train` in the first script that may train an object of an unknown class."""
        return unseen_trainings(self._program, self._program)

    @cached_property
    def _read(self) -> list[Loop]:
        return read_loops(self._program, self._program)

    def _others(self, wanted: Callable[[Script], object]) -> list[Script]:
        """The other files that are `wanted` and of which code runs, if the program's script does not join
        them all.
        """
        workspace = self._script.workspace
        reachable = workspace.reachable if workspace is not None else []
        found = [each for each in reachable if each not in self._script.scripts and wanted(each)]
        # What runs is asked last, since it takes long.
        return [each for each in found if each in self._script.linked]

    def steps(self, loop: Loop) -> tuple[Span, ...]:
        """The calls of a loop that update weights, in the program's first script."""
        if loop.script is not self._script:
            return ()
        return tuple(self._script.span(site.node, site) for site in loop.sites)

    @cached_property
    def runs_any(self) -> bool:
        """Return whether running the first script trains, judged by its visible calls."""
        training = {(loop.script, loop.function) for loop in self.all}
        return bool(training) and any(code in training for code in self._reached([None]))

    def summary(self, function: Scope | None) -> frozenset[Pattern]:
        """The patterns that run when `function` of the first script (None: the script itself) runs."""
        reached = set(self._reached([function]))
        return frozenset(loop.pattern for loop in self.all if (loop.script, loop.function) in reached)

    @cached_property
    def functions(self) -> set[Scope]:
        """The functions of any linked script that are or reach a training loop."""
        starts = (scope for loop in self.all for scope in _enclosing(loop))
        return set(functions_leading_to(starts, self.callers))

    def callers(self, function: Scope) -> list[Site]:
        """The calls that run a function: direct ones, and those that start it as a main function or in a
        thread.
        """
        found, elsewhere = self._program.names.callers(function)
        if not elsewhere or not function.name:
            return found
        handed = []
        for script in self._script.home(function).users:
            for site in script.sites_named(*(name.rpartition(".")[2] for name in _RUNNERS)):
                given = arguments(site.node)
                if script.names.calls(site, *_RUNNERS) and any(
                    isinstance(value, Function) and value.scope is function
                    for each in given
                    if last_name(each)
                    for value in script.names.site_values(each, site)
                ):
                    handed.append(site)
        return [*found, *handed]

    # Code that runs

    def _is_reachable(self, code: _Code) -> bool:
        """Return whether code may run through any function of the script, or through its own code."""
        if code in self._reached_yet:
            return True
        for each in self._reachable:
            self._reached_yet.add(each)
            if each == code:
                return True
        return False

    @cached_property
    def _reachable(self) -> Iterator[_Code]:
        """Yield the code that may run, computed only as far as needed."""
        return self._reached([None, *self._script.scopes])

    @cached_property
    def _reach(self) -> Reachability:
        """The code that runs, judged by names alone: a method of a class that is never named does not run."""
        workspace = self._script.workspace
        scripts = workspace.reachable if workspace is not None else [self._script]
        return Reachability(scripts[0], idle_scopes(scripts, seen=True))

    def _reached(self, starts: Iterable[Scope | None]) -> Iterator[_Code]:
        """Yield the code that may run: functions, and (None) the modules that are imported on the way.

        Code under the ``__main__`` guard of an imported file does not run.
        """

        def run_by(code: _Code) -> Iterator[_Code]:
            script, function = code
            passive = function is None and script is not self._script
            sites, imports = self._code(script)
            for site in sites.get(function, ()):
                if not (passive and behind_main_guard(site.statement)):
                    yield from ((self._script.home(called), called) for called in self._run_by(script, site))
            for binding in imports.get(function, ()):
                if not (passive and binding.statement and behind_main_guard(binding.statement)):
                    yield from ((imported, None) for imported in script.run_by_import(binding))

        run = (start for start in starts if start is None or start.kind == "function")
        return reachable(((self._script, start) for start in run), run_by)

    def _code(self, script: Script) -> tuple[_Sites, _Imports]:
        """The calls and the imports of each function (with its lambdas), and of the module itself (None)."""
        if script not in self._codes:
            sites: _Sites = {}
            for site in script.sites:
                sites.setdefault(named_function(site.scope), []).append(site)
            imports: _Imports = {}
            for binding in script.imports:
                imports.setdefault(binding.scope.function(), []).append(binding)
            self._codes[script] = sites, imports
        return self._codes[script]

    def _run_by(self, script: Script, site: Site) -> Iterator[Scope]:
        """Yield the functions that a call runs: callees and function arguments."""
        yield from script.names.called_functions(site)
        for given in arguments(site.node):
            if isinstance(given, ast.Name | ast.Attribute):
                for value in script.names.site_values(given, site):
                    if isinstance(value, Function):
                        yield value.scope

    # tf.distribute

    def _under_strategies(self, loops: list[Loop]) -> None:
        """The loops of a strategy: those that run, or may run, under a `tf.distribute` strategy of the
        program.
        """
        if not loops:
            return
        every = list(self._strategy_sites())
        makers = [site for site in every if self._makes_strategy(site)]
        sites = [site for site in every if not self._is_beside(site, makers)]
        makers = [site for site in makers if site in sites]
        for origin in makers or filter(self._uses_strategy, sites):
            entered = [origin.statement] if origin.name == "scope" else None
            blocks = self._blocks_of(origin) if makers else entered
            for loop in loops:
                if loop.pattern is not Pattern.STRATEGY and not self._is_apart(loop, origin, blocks):
                    loop.pattern = Pattern.STRATEGY
                    loop.origin = origin
                    loop.certain = bool(makers)

    def _blocks_of(self, maker: Site) -> list[Statement] | None:
        """The ``with strategy.scope():`` statements if they are all uses of a strategy; otherwise None."""
        script, node = self._script.home(maker.scope), maker.statement.node
        target = node.targets[0] if isinstance(node, ast.Assign) and node.value is maker.node else None
        if not isinstance(target, ast.Name) or len(script.users) > 1:
            return None
        entered = [
            site.statement
            for site in script.sites_named("scope")
            if isinstance(site.parent, ast.With) and dotted(site.node.func) == f"{target.id}.scope"
        ]
        sizes = script.code.member_loads.get("num_replicas_in_sync", {}).get(target.id, 0)
        return entered if entered and script.loads(target.id) == len(entered) + sizes else None

    def _is_apart(self, loop: Loop, origin: Site, blocks: list[Statement] | None) -> bool:
        """Return whether a loop is certainly unrelated to a strategy that only `blocks` use.

        That is the case if it ends before the strategy is created, or trains a model that was created
        elsewhere.
        """
        if self._is_over(loop.statement, origin.statement):
            return True
        made = [each for place in loop.models for each in self._origins.of(place)]
        if blocks is None or not made or not all(isinstance(each, ast.Call) for each in made):
            return False
        under = [site for site in self._script.sites if any(each in blocks for each in site.statement.path())]
        inside = self._run_in(under)
        entering = {named_function(each.scope) for each in blocks}
        makings = [self._script.site_of(each) for each in made if isinstance(each, ast.Call)]
        return entering.isdisjoint(self._run_in(makings)) and not any(
            site in under or named_function(site.scope) in inside for site in (*makings, *loop.sites)
        )

    def _run_in(self, sites: list[Site]) -> set[Scope]:
        """The functions that some calls run, directly or indirectly."""
        called = {function for site in sites for function in self._script.names.called_functions(site)}
        return {function for _, function in self._reached(called) if function is not None}

    def _is_over(self, one: Statement, other: Statement) -> bool:
        """Return whether a statement ends before another one of the same code runs."""
        home = self._script.home(one.scope)
        if self._script.home(other.scope) is not home or one.scope.function() is not other.scope.function():
            return False
        over = home.statement_span(one).end <= home.statement_span(other).start
        return over and not any(is_loop(each) for each in other.ancestors())

    @cached_property
    def beside_strategies(self) -> list[Site]:
        """The calls that create a `tf.distribute` strategy in one branch only, while others do without."""
        makers = [site for site in self._strategy_sites() if self._makes_strategy(site)]
        return [site for site in makers if self._is_beside(site, makers)]

    def _is_beside(self, site: Site, makers: list[Site]) -> bool:
        """Return whether a call is in one branch of an `if` whose other branch creates no strategy."""
        if not is_of_one_branch(site):
            return False
        choices = (each for each in site.statement.ancestors() if isinstance(each.node, ast.If))
        branches = [block for each in choices for block in each.branches.values() if block]
        made = [set(map(id, each.statement.path())) for each in makers]
        return not all(any(id(inner) in path for inner in block for path in made) for block in branches)

    def _makes_strategy(self, site: Site) -> bool:
        names = self._program.names.full_names(site.node.func, site.scope, site.statement)
        return any(api.is_subclass(name, *api.STRATEGY) for name in names)

    def _strategy_sites(self) -> Iterator[Site]:
        """The calls of the program that may create a strategy, or use one."""
        hidden = next(self._script.sites_named(*_STRATEGY_METHODS), None) is not None
        if hidden or any("trategy" in name for name in self._script.identifiers):
            yield from self._script.sites_calling(_strategy_calls())
        others = self._others(lambda each: any("trategy" in name for name in each.identifiers))
        for script in others:
            for site in script.sites_calling(_strategy_calls()):
                if self._is_reachable((script, named_function(site.scope))):
                    yield site

    def _uses_strategy(self, site: Site) -> bool:
        """Return whether a call is a method of a strategy, on an unknown object."""
        function = site.node.func
        if site.name not in _STRATEGY_METHODS or not isinstance(function, ast.Attribute):
            return False
        if site.name == "scope" and not (
            isinstance(site.parent, ast.With) and not site.node.args and not site.node.keywords
        ):
            return False
        receiver = self._program.names.site_values(function.value, site)
        return not receiver or any(isinstance(value, Unknown | Member) for value in receiver)

    # One model or two

    def same_model(self, one: Loop, other: Loop) -> bool | None:
        """Return whether two loops train the same model; None if unknown, or if models share weights."""
        if self.shared_model(one, other) is not None:
            return True
        first, second = ([self._origins.of(place) for place in loop.models] for loop in (one, other))
        if not first or not second or any(None in each or not each for each in (*first, *second)):
            return None
        shared = any(
            self._origins.built_from(place, frozenset().union(*made))
            for loop, made in ((one, second), (other, first))
            for place in loop.models
        )
        return None if shared else False

    def shared_model(self, one: Loop, other: Loop) -> Occurrence | None:
        """The model of `one` that `other` also trains, as far as the script shows."""
        made = frozenset[ast.AST]().union(*(self._origins.creations(place) for place in other.models))
        return next(
            (place for place in one.models if not made.isdisjoint(self._origins.creations(place))), None
        )


def _strategy_calls() -> frozenset[str]:
    """The names of calls that may create or use a distribution strategy."""
    return api.last_names(*api.STRATEGY).union(_STRATEGY_METHODS)


def _is_of_script_only(loop: Loop) -> bool:
    """Return whether the loop does not run when its file is imported."""
    return loop.function is None and behind_main_guard(loop.sites[0].statement)


def _enclosing(loop: Loop) -> Iterator[Scope]:
    """Yield the functions around a loop's calls, including a method's step."""
    for site in loop.sites:
        scope = site.scope.function()
        while scope is not None:
            yield scope
            # A lambda or a nested function counts as running when the function around it does.
            scope = scope.parent.function() if scope.parent is not None and not scope.name else None
