"""Initializations: the places where a script initializes the variables of a TensorFlow 1 session.

A broadcast must follow every statement that initializes or restores variables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Display, Function, Instance, Unknown, Values
from trainshift.python.syntax.chunk_syntax import (
    Scope,
    Site,
    Statement,
    argument,
    dotted,
    last_name,
    root_name,
)
from trainshift.rewriting.tf1.sessions import PLAIN
from trainshift.training.execution.executions import Executions
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.steps import is_plain
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.rank_regions.root_only import RootOnly

_V1 = "tensorflow.compat.v1"
_ALL_VARIABLES = frozenset(
    f"{_V1}.{name}"
    for name in (
        "global_variables_initializer", "initialize_all_variables", "initializers.global_variables",
    )
)  # fmt: skip
_SOME_VARIABLES = frozenset(
    f"{_V1}.{name}" for name in ("variables_initializer", "initialize_variables", "initializers.variables")
)
_GROUPS = frozenset({"tensorflow.group", f"{_V1}.group", "tensorflow.tuple", f"{_V1}.tuple"})
_BROADCASTS = ("broadcast_global_variables", "broadcast_variables")
# Functions that return lists of variables.
_LISTING = ("global_variables", "all_variables", "trainable_variables", "model_variables", "get_collection")
# All variables, if the code of a list selects others.
ALL = ""


class Initialization(Struct, frozen=True, eq=False):
    """A call that sets variables: it runs an initializer, or restores a checkpoint.

    `anchor` is the statement that a broadcast may follow; `reason` is the reason why none may, empty if one
    may. `variables` is the code of the lists of initialized variables, `ALL` alone for all. `session` is the
    named session, None for the default one; with `by_operation`, the initializer's own `run` is called, and
    with `in_its_graph`, the session's graph may not be the default one here.
    """

    site: Site
    anchor: Statement
    variables: tuple[str, ...]
    session: ast.expr | None
    by_operation: bool = False
    in_its_graph: bool = False
    restores: bool = False
    reason: str = ""


class Initializations:
    """The initializations of one script's sessions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)

    @cached_property
    def all(self) -> list[Initialization]:
        """The calls after which the variables of a session must be broadcast, in text order.

        If one directly follows another, its broadcast serves both: variables may have no value before.
        """
        seen: set[tuple[object, ...]] = set()
        kept = []
        for each in self._all:
            if self._next(each) is not None or self._is_followed(each):
                continue
            restores = each.restores or any(
                other.restores and self._next(other) is each for other in self._everything
            )
            each = replace(each, variables=self._followed(each), restores=restores)
            session = self._script.text(each.session, each.site) if each.session is not None else ""
            key = (each.anchor, each.variables, session, each.by_operation)
            if key not in seen or each.reason:
                seen.add(key)
                kept.append(each)
        return kept

    def _next(self, each: Initialization) -> Initialization | None:
        """The next initialization of the same session, before anything else runs in it."""
        block, index = self._script.siblings(each.anchor)
        sessions = self._sessions_of(each.site)
        for after in () if each.reason else block[index + 1 :]:
            for other in self._everything:
                if other.anchor is after and not other.reason:
                    others = self._sessions_of(other.site)
                    if sessions is None or others is None or sessions & others:
                        return other
            if self._program.fact(WhatTrains).statement_trains(after) or self._runs_something(after):
                return None
        return None

    def _followed(self, each: Initialization) -> tuple[str, ...]:
        """The variables that have values after an initialization: also of those that it directly follows."""
        before = [self._followed(other) for other in self._everything if self._next(other) is each]
        return _together([*(code for variables in before for code in variables), *each.variables])

    def _runs_something(self, statement: Statement) -> bool:
        return any(
            statement in site.statement.path() and not self._is_broadcast(site.node)
            for site in self._script.sites_named("run", "eval")
        )

    @cached_property
    def missing(self) -> Site | None:
        """A training call in a session whose variables are never initialized or broadcast, as far as
        known.
        """
        if self._program.fact(OwnHorovod).hooks or self._horovod.calls("broadcast_"):
            return None
        trained = [
            site
            for loop in self._program.fact(Loops).own
            if loop.pattern is Pattern.SESSION
            for site in loop.sites
        ]
        initialized = [self._sessions_of(each.site) for each in self._all]
        if not initialized:
            return trained[0] if trained and not self._horovod.calls(*_BROADCASTS) else None
        for site in trained:
            assert isinstance(site.node.func, ast.Attribute)
            sessions = self._plain(self._names.site_values(site.node.func.value, site))
            if sessions and not any(each is None or each & sessions for each in initialized):
                return site
        return None

    def _sessions_of(self, site: Site) -> Values | None:
        """The sessions in which a call initializes variables; None if they are unknown."""
        assert isinstance(site.node.func, ast.Attribute)
        session: ast.expr | None = site.node.func.value
        if site.name == "restore":
            session = argument(site.node, 0, "sess")
        found = self._names.site_values(session, site) if session is not None else frozenset()
        plain = self._plain(found)
        return plain if plain and len(plain) == len(found) else None

    def _plain(self, values: Values) -> Values:
        return frozenset(value for value in values if isinstance(value, Instance) and value.cls in PLAIN)

    @cached_property
    def _everything(self) -> list[Initialization]:
        """Every initialization, including those that HV08 handles."""
        restores = [site for site in self._script.sites_named("restore") if self.is_restore(site)]
        found = [*self._initializers(), *map(self.restore, restores)]
        return sorted(found, key=lambda each: self._script.span(each.site.node, each.site))

    @cached_property
    def _all(self) -> list[Initialization]:
        return [each for each in self._everything if each.site not in self._late]

    @cached_property
    def _late(self) -> set[Site]:
        """The calls that restore a file which the script itself has saved, on rank 0 only."""
        calls = self._program.fact(RootOnly).calls
        return {call.site for call in calls if call.site.name == "restore" and not call.reason}

    def _initializers(self) -> Iterator[Initialization]:
        for site in self._script.sites_named("run"):
            function = site.node.func
            if not isinstance(function, ast.Attribute):
                continue
            receiver = self._names.site_values(function.value, site)
            own = any(isinstance(value, Function) for value in self._names.callee(site))
            if own or self._names.may_be(receiver, *MONITORED):
                continue
            targets = list(self._targets(function.value, site.scope, site.statement, site))
            operation = bool(targets)
            if not operation:
                fetches = argument(site.node, 0, "fetches")
                if fetches is None:
                    continue
                targets = list(self._targets(fetches, site.scope, site.statement, site))
            if targets:
                yield self._initialization(site, targets, operation)

    def _runs_others(self, site: Site, operation: bool) -> bool:
        """Return whether a run may also execute other operations than an initializer."""
        assert isinstance(site.node.func, ast.Attribute)
        node = site.node.func.value if operation else argument(site.node, 0, "fetches")
        values = self._names.site_values(node, site) if isinstance(node, ast.Name) else frozenset()
        known = _ALL_VARIABLES | _SOME_VARIABLES | _GROUPS
        return any(
            not isinstance(value, Display) and not (isinstance(value, Instance) and value.cls in known)
            for value in values
        )

    def _targets(
        self,
        node: ast.expr,
        scope: Scope,
        statement: Statement | None,
        site: Site,
        seen: frozenset[ast.expr] = frozenset(),
    ) -> Iterator[str]:
        """Yield the code of the variables that an operation initializes; `ALL` for all variables."""
        if node in seen:
            return
        seen |= {node}
        if isinstance(node, ast.Attribute) and node.attr == "initializer":
            if self._is_variable(node.value, scope, statement) and _same(scope, site.scope):
                yield f"[{self._script.text(node.value, scope)}]"
            return
        if isinstance(node, ast.Call) and last_name(node.func) == "assign" and self._is_early(site):
            assert isinstance(node.func, ast.Attribute)
            if self._is_variable(node.func.value, scope, statement) and _same(scope, site.scope):
                yield f"[{self._script.text(node.func.value, scope)}]"
            return
        for value in self._names.values(node, scope, statement):
            if isinstance(value, Instance) and value.cls in _ALL_VARIABLES:
                yield ALL
            elif isinstance(value, Instance) and value.cls in _SOME_VARIABLES:
                local = self._program.fact(Graphs).initializes_local(value)
                yield from () if local else (self._some(value, site),)
            elif isinstance(value, Instance) and value.cls in _GROUPS:
                made = self._script.site_of(value.node)
                for given in value.node.args:
                    yield from self._targets(given, made.scope, made.statement, site, seen)
            elif isinstance(value, Display):
                yield from self._listed(value, site, seen)

    def _is_early(self, site: Site) -> bool:
        """Return whether a call is made once, before training, so that an assignment is an initialization."""
        trains = self._program.fact(WhatTrains)
        block, index = self._script.siblings(site.statement)
        before = any(trains.statement_trains(each) for each in block[:index])
        return self._program.fact(Executions).runs_once(site) and not before

    def _is_variable(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether an expression is a variable, and not an iterator, which has an initializer too."""
        values = self._names.values(node, scope, statement)
        if self._names.may_be(values, *api.VARIABLE) or any(
            isinstance(value, Instance) and value.cls.endswith(".get_variable") for value in values
        ):
            return True
        if not isinstance(node, ast.Name):
            return False
        _, bindings = self._names.lookup(node.id, scope, statement)
        listing = {site.node: site for site in self._script.sites_named(*_LISTING)}
        return any(
            binding.kind == "element"
            and binding.value is not None
            and bool(reaching_calls(self._script, listing, binding.value, binding.scope, binding.statement))
            for binding in bindings
        )

    def _listed(self, value: Display, site: Site, seen: frozenset[ast.expr]) -> Iterator[str]:
        node, scope = value.node, value.scope
        if isinstance(node, ast.Dict):
            parts: list[ast.expr] = [*node.values]
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            generator = node.generators[0]
            taken = node.elt
            whole = (
                isinstance(taken, ast.Attribute)
                and taken.attr == "initializer"
                and dotted(taken.value) == dotted(generator.target) != ""
                and not generator.ifs
                and self._is_variable(taken.value, scope.facts.scope_of[node], value.statement)
            )
            if whole and _same(scope, site.scope):
                yield self._script.text(generator.iter, scope)
            return
        else:
            parts = [*getattr(node, "elts", ())]
        for part in parts:
            yield from self._targets(part, scope, value.statement, site, seen)

    def _some(self, value: Instance, site: Site) -> str:
        """The argument of `variables_initializer`, if it means the same where that is run."""
        given = argument(value.node, 0, "var_list")
        made = self._script.site_of(value.node)
        if given is None or not _same(made.scope, site.scope):
            return ALL
        if made.statement is site.statement or is_plain(given):
            return self._script.text(given, made)
        return ALL

    def _initialization(self, site: Site, targets: Iterable[str], operation: bool) -> Initialization:
        statement = site.statement
        assert isinstance(site.node.func, ast.Attribute)
        session = argument(site.node, 1, "session") if operation else site.node.func.value
        reason = self._reason(site)
        if self._runs_others(site, operation):
            reason = "the variables are initialized together with other operations; initialize them alone"
        anchor = statement
        if statement.parent is not None and isinstance(statement.parent.node, ast.If) and not reason:
            # One broadcast serves both branches if the other one restores.
            beside = [each for block in statement.parent.branches.values() for each in block]
            for restore in self._restores():
                if restore.site.statement in beside and restore.anchor is not restore.site.statement:
                    anchor = restore.anchor
        elsewhere = self._is_elsewhere(session, site)
        variables = _together(sorted(targets))
        return Initialization(site, anchor, variables, session, operation, elsewhere, reason=reason)

    def _is_elsewhere(self, session: ast.expr | None, site: Site) -> bool:
        """Return whether the session's graph may not be the default graph where a call runs."""
        if session is None:
            return False
        entered = [
            (item.context_expr, above)
            for above in site.statement.ancestors()
            if isinstance(above.node, ast.With)
            for item in above.node.items
        ]
        values = self._names.site_values(session, site)
        for value in values:
            if not isinstance(value, Instance) or value.cls not in PLAIN:
                continue
            if any(value in self._names.values(node, above.scope, above) for node, above in entered) or any(
                _enters(node, session) for node, _ in entered
            ):
                continue
            made = self._script.site_of(value.node)
            around = [above for above in made.statement.path() if _enters_graph(above)]
            if argument(made.node, 1, "graph") is not None or around:
                if not any(above in site.statement.path() for above in around):
                    return True
        return False

    def _reason(self, site: Site) -> str:
        """The reason why no statement can follow that of a call; empty if one can."""
        if site.in_fstring or site.deferred:
            return "the variables are initialized in a larger expression; give that a statement of its own"
        if not isinstance(site.statement.node, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign):
            return "the variables are initialized in the head of a block; give that a statement of its own"
        for other in self._script.sites_named("finalize"):
            if _same(other.scope, site.scope) and self._script.span(other.node, other) < self._script.span(
                site.node, site
            ):
                return "the graph is finalized before its variables are initialized"
        return ""

    # Checkpoints

    def is_restore(self, site: Site) -> bool:
        """Return whether the call is `Saver.restore`."""
        if site.name != "restore" or not isinstance(site.node.func, ast.Attribute):
            return False
        values = self._names.site_values(site.node.func.value, site)
        if self._names.may_be(values, *api.SAVER):
            return True
        session = argument(site.node, 0, "sess")
        strange = not values or any(isinstance(value, Unknown) for value in values)
        return (
            strange
            and session is not None
            and argument(site.node, 1, "save_path") is not None
            and self._names.may_be(self._names.site_values(session, site), *api.SESSION)
        )

    def _restores(self) -> Iterator[Initialization]:
        for site in self._script.sites_named("restore"):
            if self.is_restore(site) and site not in self._late:
                yield self.restore(site)

    def restore(self, site: Site) -> Initialization:
        """The variables that a `Saver.restore` sets, perhaps all."""
        session = argument(site.node, 0, "sess")
        reason = self._reason(site) or (
            "" if session is not None else "Trainshift cannot tell which session runs this"
        )
        elsewhere, anchor = self._is_elsewhere(session, site), self._anchor(site, session)
        return Initialization(site, anchor, (ALL,), session, False, elsewhere, True, reason)

    def _anchor(self, site: Site, session: ast.expr | None) -> Statement:
        """The statement that the broadcast follows: outside an `if` that ranks may decide differently."""
        statement = site.statement
        name = root_name(session) if session is not None else None
        while statement.parent is not None and isinstance(statement.parent.node, ast.If):
            above = statement.parent
            inside = [each for block in above.branches.values() for each in block]
            later = statement.block[statement.index + 1 :]
            binds = any(
                isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and name and part.id == name.id
                for each in inside
                for part in ast.walk(each.node)
            )
            runs = any(
                isinstance(part, ast.Call)
                and isinstance(part.func, ast.Attribute)
                and part.func.attr in ("run", "eval", "save")
                for each in later
                for part in ast.walk(each.node)
                if not self._is_broadcast(part)
            )
            trains = any(self._program.fact(WhatTrains).statement_trains(each) for each in inside)
            leaves = any(isinstance(each.node, ast.Return | ast.Break | ast.Continue) for each in later)
            if binds or runs or trains or leaves or _tests_name(above):
                break
            statement = above
        return statement

    def is_first(self, site: Site) -> bool:
        """Return whether the variables that a call restores may have had no values before it."""
        for current in site.statement.path():
            if not _same(current.scope, site.scope):
                break
            for before in current.block[: current.index]:
                if any(each.site.statement is before for each in self._initializers_once):
                    return False
        return True

    @cached_property
    def _initializers_once(self) -> list[Initialization]:
        return list(self._initializers())

    # Broadcasts that are there

    def _is_followed(self, each: Initialization) -> bool:
        """Return whether the script broadcasts the variables directly after their initialization."""
        block, index = self._script.siblings(each.anchor)
        others = {statement for other in self._all_sites for statement in other.statement.path()}
        for after in block[index + 1 :]:
            if after in others:
                break
            if self._contains_broadcast(after):
                return True
            if self._program.fact(WhatTrains).statement_trains(after):
                break
        return self._is_broadcast_by_name(each.site)

    @cached_property
    def _all_sites(self) -> list[Site]:
        """Every call that initializes or restores."""
        restores = [site for site in self._script.sites_named("restore") if self.is_restore(site)]
        return [*(each.site for each in self._initializers_once), *restores]

    def _contains_broadcast(self, statement: Statement) -> bool:
        return any(statement in site.statement.path() for site in self._horovod.calls(*_BROADCASTS))

    def _is_broadcast(self, call: ast.AST) -> bool:
        return any(
            isinstance(part, ast.Call) and self._horovod.is_call(self._script.site_of(part), *_BROADCASTS)
            for part in ast.walk(call)
        )

    def _is_broadcast_by_name(self, site: Site) -> bool:
        """Return whether a broadcasting operation, created elsewhere, runs later in the same function."""
        made = {each.node for each in self._horovod.calls(*_BROADCASTS)}
        for run in self._script.sites_named("run") if made else ():
            later = self._script.span(run.node, run) > self._script.span(site.node, site)
            if run.scope.function() is not site.scope.function() or not later:
                continue
            assert isinstance(run.node.func, ast.Attribute)
            parts = [run.node.func.value, *run.node.args[:1]]
            listed = [part for each in parts if isinstance(each, ast.List | ast.Tuple) for part in each.elts]
            for part in (*parts, *listed):
                values = self._names.site_values(part, run)
                if not isinstance(part, ast.Call) and any(
                    isinstance(value, Instance) and value.node in made for value in values
                ):
                    return True
        return False


def _together(variables: Iterable[str]) -> tuple[str, ...]:
    """The code of several lists of variables, each once; only `ALL` if one contains all."""
    once = tuple(dict.fromkeys(variables))
    return (ALL,) if ALL in once else once


def _same(one: Scope, other: Scope) -> bool:
    """Return whether two scopes belong to the same function, or to the module."""
    return one.function() is other.function()


def _enters(node: ast.expr, session: ast.expr) -> bool:
    """Return whether a `with` enters a session by its name, or its graph."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "as_default":
        node = node.func.value
        if isinstance(node, ast.Attribute) and node.attr == "graph":
            node = node.value
    return dotted(node) == dotted(session) != ""


def _enters_graph(statement: Statement) -> bool:
    """Return whether a statement is a `with` that makes a graph the default one."""
    return isinstance(statement.node, ast.With) and any(
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr == "as_default"
        for item in statement.node.items
    )


def _tests_name(statement: Statement) -> bool:
    """Return whether the statement is ``if __name__ == ...``."""
    assert isinstance(statement.node, ast.If)
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(statement.node.test))
