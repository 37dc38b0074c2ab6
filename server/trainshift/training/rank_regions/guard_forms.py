"""Choose how a call is limited to rank 0: the form of its guard, or the reason why it can have none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

from trainshift.core.libraries import path_returned
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string
from trainshift.libraries import api, entries
from trainshift.libraries.containers import ADDING
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Site, Statement, expression_path, is_alone
from trainshift.python.values.effects import Effect
from trainshift.training.execution.executions import Executions
from trainshift.training.loops.call_effects import Effects
from trainshift.training.loops.steps import is_plain
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions import summary_writers as writers
from trainshift.training.rank_regions.readers import Readers
from trainshift.training.rank_regions.restored import Restored
from trainshift.training.uniformity.value_flow import ValueFlow

_V1 = "tensorflow.compat.v1"
_IN_GRAPHS = "only rank 0 saves this, and ranks cannot wait for it inside a graph: their weights then differ"
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)


class RootKind(Enum):
    """The kind of a call that only rank 0 makes: it prints, or it writes."""

    PRINT = "print"
    WRITE = "write"


class Form(Enum):
    """The form of a guard for rank 0."""

    GUARD = "the statement under a test of the rank"
    CONDITIONAL = "the expression under a test of the rank"
    PATH_APART = "the call under a test of the rank, and the path that it returns on every rank"
    BIND = "the arguments evaluated on every rank, the call under a test of the rank"
    PATH = "the path replaced by os.devnull on other ranks"
    WRITER = "a summary writer that writes nothing on other ranks"
    DISABLE = "the progress bar disabled on other ranks"
    RELOAD = "the statement under a test of the rank, then a broadcast of the model"
    SHARE = "the path of rank 0, sent to the others when rank 0 arrives here"
    ELSEWHERE = "the path replaced on other ranks by one that keeps nothing"
    QUIET = "an argument that keeps other ranks quiet"
    BEFORE = "a line above that keeps other ranks quiet"
    CONTEXT = "the context of the with statement under a test of the rank"
    VERBOSE = "the progress bar of evaluate or predict silenced on other ranks"


class RootCall(Struct, frozen=True, eq=False):
    """A call for rank 0 only.

    `outer` is the expression to make conditional, if that is the form: the call or the chain of calls that
    starts with it.  `reason` is the reason why it cannot be guarded; empty if it can.  `block` is the loop,
    `with` or `if` around the call that is for rank 0 as a whole.
    """

    site: Site
    kind: RootKind
    form: Form
    outer: ast.expr
    doubt: str = ""
    reason: str = ""
    block: Statement | None = None

    @property
    def statement(self) -> Statement:
        """The statement that only rank 0 runs, if that is the form."""
        return self.block or self.site.statement


class GuardForms:
    """The guards for those calls of one script that only rank 0 should make."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._effects = program.fact(Effects)

    def guard(self, site: Site, kind: RootKind, form: Form, doubt: str) -> RootCall | None:
        """The call with its guard; `form` is the callee's preferred one. None if it needs no guard."""
        if site.in_fstring:
            return RootCall(site, kind, form, site.node, doubt, in_f_string("it is"))
        if form is Form.CONDITIONAL:
            return self._guard_writer(site)
        if form is not Form.GUARD:
            reason = self._reason_against_verbose(site) if form is Form.VERBOSE else ""
            return RootCall(site, kind, form, site.node, doubt, reason)
        if is_context_manager(site) and kind is RootKind.WRITE:
            return RootCall(site, kind, form, site.node, doubt, self._reason_against_block(site.statement))
        path = expression_path(site.statement.node, site.node)
        outer = _chain(path)
        acting = self._acting(outer, site)
        doubt = doubt or self._doubt(outer, site)
        node = site.statement.node
        if site.name in named("restoring"):
            return self._guard_restore(site, outer)
        if site.name == "load_weights":
            return self._guard_load(site, outer, doubt)
        if isinstance(node, ast.Expr) and _bare(node.value) is outer:
            if not acting:
                return RootCall(site, kind, Form.GUARD, outer, doubt)
            if kind is RootKind.PRINT and outer is site.node and _binds_all(site, acting):
                return RootCall(site, kind, Form.BIND, outer, doubt)
        elif isinstance(node, ast.Assign) and node.value is outer and not acting and not self._is_read(node):
            return RootCall(site, kind, Form.GUARD, outer, doubt)
        elif not acting:
            apart = self.path_apart(site, outer) is not None
            return RootCall(site, kind, Form.PATH_APART if apart else Form.CONDITIONAL, outer, doubt)
        first, what = acting[0], "binds a name or awaits something"
        if isinstance(first, ast.Call):
            what = f"calls {self._script.text(first.func, site)}"
        reason = f"an argument {what}, which every rank must do; move it up a line"
        return RootCall(site, kind, Form.GUARD, outer, doubt, reason)

    def path_apart(self, site: Site, outer: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Return the path that a call is given and returns, and the expression that it may replace.

        None if the statement needs more of the call: it assigns or returns nothing but the path.
        """
        names = self._script.names.full_names(site.node.func, site.scope, site.statement)
        found = next((each for name in names if (each := path_returned(name, site.node))), None)
        path, is_first = found or (None, False)
        node = site.statement.node
        if outer is not site.node or path is None or not isinstance(node, ast.Assign | ast.Return):
            return None
        if self._effects.of_expression(path) is not None or node.value is None:
            return None
        whole = node.value
        if is_first and isinstance(whole, ast.Subscript) and whole.value is outer:
            is_path = isinstance(whole.slice, ast.Constant) and whole.slice.value == 0
        elif is_first and isinstance(node, ast.Assign):
            is_path = whole is outer and self._is_pair(node)
        else:
            is_path = whole is outer and not is_first
        return (path, whole) if is_path else None

    def _is_pair(self, node: ast.Assign) -> bool:
        """Return whether an assignment unpacks two names, of which only the first is read."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return False
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        return len(names) == 2 and names[0] != names[1] and self._script.loads(names[1]) == 0

    def _reason_against_verbose(self, site: Site) -> str:
        """The reason why a progress bar is not silenced: `verbose` may be hidden, or not be a parameter."""
        if any(word.arg is None for word in site.node.keywords):
            return "verbose may be hidden in ** arguments; pass it by name"
        for value in self._script.names.callee(site):
            node = value.scope.node if isinstance(value, Function) else None
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                named = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
                if "verbose" not in named and node.args.kwarg is None:
                    return f"this may call the script's own {site.name}, which takes no verbose"
        return ""

    def _guard_writer(self, site: Site) -> RootCall:
        """Replace a writer by None on other ranks, and guard its uses."""
        reason = writers.reason_to_keep(self._script, self._effects, site)
        alone = is_alone(site)
        form = Form.GUARD if alone else Form.CONDITIONAL
        return RootCall(site, RootKind.WRITE, form, site.node, "", reason)

    def _guard_load(self, site: Site, outer: ast.expr, doubt: str) -> RootCall | None:
        """Guard a load of weights: rank 0 loads, and the broadcast after the first step, or a new one,
        does the rest.
        """
        assert isinstance(site.node.func, ast.Attribute)
        node, late = site.statement.node, self._restored.follows_training(site)
        plain = is_plain(site.node.func.value)
        if late and self._in_graphs:
            return RootCall(site, RootKind.WRITE, Form.GUARD, outer, doubt, _IN_GRAPHS)
        if not plain or not (isinstance(node, ast.Expr) and node.value is outer):
            return self._share(site) if late else None  # Before training each rank loads for itself.
        if not late and self._restored.is_trained(site):
            return RootCall(site, RootKind.WRITE, Form.GUARD, outer, doubt)
        if self._in_graphs or any(may_differ(self._program, above) for above in site.statement.ancestors()):
            return None  # A broadcast would wait for ranks that never reach it: each loads for itself.
        return RootCall(site, RootKind.WRITE, Form.RELOAD, outer, doubt)

    def _guard_restore(self, site: Site, outer: ast.expr) -> RootCall | None:
        """Guard a restore: before training every rank restores; afterwards the others lack rank 0's file."""
        node, restored = site.statement.node, self._restored
        if not restored.follows_training(site):
            return None
        alone = isinstance(node, ast.Expr) and node.value is outer
        if restored.of_saver(site):
            return RootCall(site, RootKind.WRITE, Form.RELOAD, outer) if alone else None
        if self._in_graphs:
            return RootCall(site, RootKind.WRITE, Form.GUARD, outer, reason=_IN_GRAPHS)
        if alone and restored.is_trained_alone(site) and restored.together(site.statement):
            return RootCall(site, RootKind.WRITE, Form.RELOAD, outer)
        return self._share(site)

    def _share(self, site: Site) -> RootCall | None:
        """Let every rank read a file that rank 0 has saved, once it exists."""
        path = self._restored.path(site)
        if self._restored.is_shared(site) or (isinstance(path, ast.Constant) and path.value is None):
            return None
        reason = ""
        if path is None or isinstance(path, ast.Starred):
            reason = "only rank 0 knows what it saved; restore the result of latest_checkpoint instead"
        elif any(self._does(part) for part in ast.walk(path)):
            reason = (
                "the path expression has side effects, which belong to rank 0; assign it to a variable first"
            )
        elif self._program.fact(Executions).is_traced(site.scope):
            reason = "this runs in a graph, where ranks cannot wait for rank 0 to save"
        elif not self._restored.together(site.statement):
            reason = (
                "only rank 0 has saved, so the others may skip this and keep other weights; restore "
                "outside the condition"
            )
        return RootCall(site, RootKind.WRITE, Form.SHARE, site.node, reason=reason)

    @cached_property
    def _restored(self) -> Restored:
        return self._program.fact(Restored)

    @property
    def _in_graphs(self) -> bool:
        return self._program.fact(Executions).runs_in_graphs

    def _reason_against_block(self, statement: Statement) -> str:
        """The reason why a `with` cannot run on rank 0 only: every rank needs a part of its body."""
        if self._program.fact(WhatTrains).statement_trains(statement):
            return "the block under it trains"
        acting = [
            site
            for site in self._script.sites
            if statement in site.statement.path() and self._effects.acts(site)
        ]
        if any(site.name not in (ADDING | {"remove"}) for site in acting):
            return "the block under it also does work that every rank must do"
        body = [part for each in statement.branches["body"] for part in ast.walk(each.node)]
        bound = {part.id for part in body if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for name in sorted(bound):
            if self._program.fact(Readers).is_read_after(name, statement):
                return f"the block under it sets {name}, which is read later"
        return ""

    def holds(self, call: RootCall, is_for_root: Callable[[Statement], bool]) -> bool:
        """Return whether a file is opened for a block in which each statement is for rank 0."""
        statement = call.site.statement
        node = statement.node
        if not is_context_manager(call.site) or not isinstance(node, ast.With) or len(node.items) > 1:
            return False
        bound = node.items[0].optional_vars
        return (
            all(map(is_for_root, statement.branches["body"]))
            and not self._acting(call.outer, call.site)
            and (bound is None or isinstance(bound, ast.Name))
            and (bound is None or not self._program.fact(Readers).is_read_after(bound.id, statement))
        )

    def _doubt(self, outer: ast.expr, site: Site) -> str:
        """The doubt about an unknown function that other ranks will not call."""
        for part in ast.walk(outer):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part is not site.node:
                deed = self._effects.of_call(self._script.site_of(part))
                if deed is not None and deed.effect is Effect.UNKNOWN:
                    return f"{part.func.id}(...) may have side effects; now only rank 0 runs it"
        return ""

    def _is_read(self, node: ast.Assign) -> bool:
        """Return whether the target of the assignment is read anywhere (spec.md 5.12)."""
        targets = [target.id if isinstance(target, ast.Name) else "" for target in node.targets]
        return any(not name or self._script.loads(name) > 0 for name in targets)

    def _does(self, node: ast.AST) -> bool:
        """Return whether a call surely changes something or writes a file."""
        deed = self._effects.of_call(self._script.site_of(node)) if isinstance(node, ast.Call) else None
        return deed is not None and deed.effect is not Effect.UNKNOWN

    def _acting(self, outer: ast.expr, site: Site) -> list[ast.expr]:
        """The calls and other effects among the arguments that every rank must perform."""
        found: list[ast.expr] = []
        for part in ast.walk(outer):
            if isinstance(part, ast.Call) and part is not site.node and part is not outer:
                inner = self._script.site_of(part)
                if self._effects.acts(inner) or self._adds_to_graph(inner) or self._restored.waits(inner):
                    found.append(part)
            elif isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
                found.append(part)
        return found

    # Graphs: Horovod names its reductions after tensors, so that every rank must make the same ones

    @cached_property
    def _builds_graphs(self) -> bool:
        sessions = (*api.SESSION, *api.MONITORED_SESSION, f"{_V1}.train.MonitoredTrainingSession")
        named = {name.rpartition(".")[2] for name in sessions}
        return any(self._script.names.calls(site, *sessions) for site in self._script.sites_named(*named))

    def _adds_to_graph(self, site: Site) -> bool:
        """Return whether a call creates operations of a TF1 graph, itself or in a function of the script."""

        def inside(each: Site) -> Iterator[Site]:
            called = () if _runs_graph(each) else self._script.names.called_functions(each)
            return (inner for inner in self._script.sites if inner.scope.function() in called)

        return self._builds_graphs and any(map(self._makes_operations, reachable([site], inside)))

    def _makes_operations(self, site: Site) -> bool:
        function = site.node.func
        if isinstance(function, ast.Attribute) and _runs_graph(site):
            run = [function.value, *(site.node.args[:1] if function.attr == "run" else ())]
            return any(isinstance(part, _OPERATORS) for each in run for part in ast.walk(each))
        names = self._script.names.full_names(function, site.scope, site.statement)
        return any(name.startswith("tensorflow.") and not entries.fact(name, "graphless") for name in names)


def _runs_graph(site: Site) -> bool:
    """Return whether a call is a method that runs a part of the graph."""
    return isinstance(site.node.func, ast.Attribute) and site.node.func.attr in ("run", "eval")


def is_context_manager(site: Site) -> bool:
    """Return whether a call's result is entered by a `with` statement."""
    node = site.statement.node
    return isinstance(node, ast.With) and any(item.context_expr is site.node for item in node.items)


def may_differ(program: Program, above: Statement) -> bool:
    """Return whether only some ranks may enter a block, for example one that tests whether a file exists.

    All ranks share the result of a collective.
    """
    node = above.node
    if isinstance(node, ast.If):
        test = Occurrence(node.test, above.scope, above)
        has_call = any(isinstance(part, ast.Call) for part in ast.walk(node.test))
        return has_call and not program.fact(ValueFlow).is_collected(test)
    return isinstance(node, ast.Try)


def _chain(path: list[ast.AST]) -> ast.expr:
    """The longest chain ``call.method().attribute`` that starts with the last node of `path`."""
    outer = path[-1]
    for above in reversed(path[:-1]):
        called = isinstance(above, ast.Call) and above.func is outer
        if not called and not (isinstance(above, ast.Attribute) and above.value is outer):
            break
        outer = above
    assert isinstance(outer, ast.expr)
    return outer


def _bare(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


def _binds_all(site: Site, acting: list[ast.expr]) -> bool:
    """Return whether all side effects are in positional arguments."""
    inside = {part for argument in site.node.args for part in ast.walk(argument)}
    return bool(site.node.args) and all(each in inside for each in acting)
