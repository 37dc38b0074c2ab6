"""How a call is kept to rank 0: the form of its guard, or why it can have none."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum

from trainshift.core import tables
from trainshift.core.lazy import cached_property
from trainshift.core.names import api
from trainshift.core.names.values import Function, Instance, UserInstance
from trainshift.core.program import Program
from trainshift.core.text.facts import Site, Statement, dotted, expression_path
from trainshift.core.training.effects import Effect, Effects
from trainshift.core.training.executions import LOOPS, Executions
from trainshift.core.training.steps import Steps, is_plain
from trainshift.core.training.what_trains import WhatTrains
from trainshift.rewriting.ranks import summary_writers as writers
from trainshift.rewriting.target import Target

_V1 = "tensorflow.compat.v1"
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)


class RootKind(Enum):
    """Whether the call shows something or keeps something."""

    PRINT = "print"
    WRITE = "write"


class Form(Enum):
    """How a call is kept to rank 0."""

    GUARD = "the statement under a test of the rank"
    CONDITIONAL = "the expression under a test of the rank"
    BIND = "the arguments evaluated on every rank, the call under a test of the rank"
    PATH = "the path replaced by os.devnull on other ranks"
    WRITER = "a summary writer that writes nothing on other ranks"
    DISABLE = "the progress bar disabled on other ranks"
    RELOAD = "the statement under a test of the rank, then a broadcast of the model"
    VERBOSE = "the progress bar of evaluate or predict silenced on other ranks"


@dataclass(frozen=True, eq=False, slots=True)
class RootCall:
    """A call for rank 0 only, as it stands in the script.

    `outer` is the expression to make conditional, if that is the form: the call or the chain of
    calls that starts with it.  `reason` tells why it cannot be guarded; empty if it can.
    """

    site: Site
    kind: RootKind
    form: Form
    outer: ast.expr
    doubt: str = ""
    reason: str = ""


class GuardForms:
    """How the calls of one script that concern rank 0 alone can be kept to it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._effects = program.fact(Effects)

    def guard(self, site: Site, kind: RootKind, form: Form, doubt: str) -> RootCall | None:
        """The call with its guard, of which `form` is what the callee asks for; None if it needs none."""
        if site.in_fstring:
            return RootCall(
                site, kind, form, site.node, doubt, "it is inside an f-string; give it a statement of its own"
            )
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
        if site.name in tables.RESTORING:
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
            return RootCall(site, kind, Form.CONDITIONAL, outer, doubt)
        first, what = acting[0], "binds a name or awaits something"
        if isinstance(first, ast.Call):
            what = f"calls {self._script.text(first.func, site)}"
        reason = f"an argument {what}, which every rank must do; move it up a line"
        return RootCall(site, kind, Form.GUARD, outer, doubt, reason)

    def _reason_against_verbose(self, site: Site) -> str:
        """Why a progress bar is not silenced: `verbose` may be hidden, or be unknown to what is called."""
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
        """A writer is none on other ranks, whose uses are guarded as well."""
        reason = writers.reason_to_keep(self._script, self._effects, site)
        alone = isinstance(site.statement.node, ast.Expr) and site.statement.node.value is site.node
        form = Form.GUARD if alone else Form.CONDITIONAL
        return RootCall(site, RootKind.WRITE, form, site.node, "", reason)

    def _guard_load(self, site: Site, outer: ast.expr, doubt: str) -> RootCall | None:
        """Weights are loaded on rank 0; the broadcast after the first step, or a new one, does the rest."""
        node = site.statement.node
        if not (isinstance(node, ast.Expr) and node.value is outer):
            reason = "what loading the weights returns is used on every rank"
            return RootCall(site, RootKind.WRITE, Form.GUARD, outer, doubt, reason)
        assert isinstance(site.node.func, ast.Attribute)
        covered = not self._may_follow_training(site.statement) and self._is_trained(site)
        if covered or self._program.fact(Executions).runs_in_graphs or not is_plain(site.node.func.value):
            return RootCall(site, RootKind.WRITE, Form.GUARD, outer, doubt)
        if any(may_differ(above) for above in site.statement.ancestors()):
            return None  # A broadcast would wait for ranks that do not come here: each loads for itself.
        return RootCall(site, RootKind.WRITE, Form.RELOAD, outer, doubt)

    def _guard_restore(self, site: Site, outer: ast.expr) -> RootCall | None:
        """Every rank restores before training; after it, rank 0 has written what the others lack."""
        node = site.statement.node
        late = self._may_follow_training(site.statement)
        if not (late and isinstance(node, ast.Expr) and node.value is outer):
            return None
        if not self.restored(site, "tf") and not self.of_saver(site):
            return None
        return RootCall(site, RootKind.WRITE, Form.RELOAD, outer)

    def of_saver(self, site: Site) -> bool:
        """Whether the method is of a TensorFlow 1 `Saver`, which restores into a session."""
        assert isinstance(site.node.func, ast.Attribute)
        values = self._script.names.site_values(site.node.func.value, site)
        return self._script.names.may_be(values, *api.SAVER)

    def restored(self, site: Site, tf: str) -> list[str]:
        """The code of the variables that every step trains, where the names mean the same here.

        `tf` is the name of TensorFlow's module.
        """
        found: dict[str, None] = {}
        target = self._program.fact(Target)
        for step in self._program.fact(Steps).steps:
            for node, of in [
                *((model, target.of_model) for model in step.models),
                (step.receiver, target.of_optimizer),
            ]:
                same = self._script.names.site_values(node, step.site) == self._script.names.site_values(
                    node, site
                )
                if same and self._program.fact(Executions).is_single(node, step.site):
                    found[of(self._script.text(node, step.site), tf)] = None
        return list(found)

    def _is_trained(self, site: Site) -> bool:
        """Whether the object that the method belongs to is a model that some step or `fit` trains."""
        assert isinstance(site.node.func, ast.Attribute)
        known = self._script.names.site_values(site.node.func.value, site)
        trained = [(model, step.site) for step in self._program.fact(Steps).steps for model in step.models]
        for fit in self._program.fact(WhatTrains).others:
            if isinstance(fit.node.func, ast.Attribute):
                trained.append((fit.node.func.value, fit))
        return any(
            (value in known and isinstance(value, Instance | UserInstance))
            or (dotted(model) == dotted(site.node.func.value) != "" and at.scope is site.scope)
            for model, at in trained
            for value in self._script.names.site_values(model, at)
        )

    def _may_follow_training(self, statement: Statement) -> bool:
        """Whether a training step may have been made before the statement runs."""
        for current in statement.path():
            looped = isinstance(current.node, LOOPS)
            if (
                current is not statement
                and looped
                and self._program.fact(WhatTrains).statement_trains(current)
            ):
                return True
            block, index = self._script.siblings(current)
            if any(
                self._program.fact(WhatTrains).statement_trains(before)
                for before in block[:index]
                if _runs(before)
            ):
                return True
        return False

    def _reason_against_block(self, statement: Statement) -> str:
        """Why a `with` cannot run on rank 0 only: every rank needs something that it does."""
        if self._program.fact(WhatTrains).statement_trains(statement):
            return "the block under it trains"
        acting = [
            site
            for site in self._script.sites
            if statement in site.statement.path() and self._effects.acts(site)
        ]
        if any(site.name not in ("append", "extend", "insert", "remove") for site in acting):
            return "the block under it does what every rank must do"
        body = [part for each in statement.branches["body"] for part in ast.walk(each.node)]
        bound = {part.id for part in body if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for name in sorted(bound):
            if self._is_read_after(name, statement):
                return f"the block under it sets {name}, which is read later"
        return ""

    def _is_read_after(self, name: str, statement: Statement) -> bool:
        """Whether the name is read after the statement, in its function, before it is bound again."""
        for current in statement.path():
            block, index = self._script.siblings(current)
            for after in block[index + 1 :]:
                uses = [
                    part for part in ast.walk(after.node) if isinstance(part, ast.Name) and part.id == name
                ]
                if uses:
                    first = min(uses, key=lambda part: (part.lineno, part.col_offset))
                    return isinstance(first.ctx, ast.Load)
            if current.parent is not None and current.parent.scope is not current.scope:
                return False
        return False

    def _doubt(self, outer: ast.expr, site: Site) -> str:
        """What is assumed of a function that nobody sees and that other ranks will not call."""
        for part in ast.walk(outer):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part is not site.node:
                deed = self._effects.of_call(self._script.site_of(part))
                if deed is not None and deed.effect is Effect.UNKNOWN:
                    return f"{part.func.id}(...) may have side effects; only rank 0 will run it now"
        return ""

    def _is_read(self, node: ast.Assign) -> bool:
        """Whether what the assignment binds is read anywhere (spec.md 5.12)."""
        targets = [target.id if isinstance(target, ast.Name) else "" for target in node.targets]
        return any(not name or self._script.loads(name) > 0 for name in targets)

    def _acting(self, outer: ast.expr, site: Site) -> list[ast.expr]:
        """The calls among the arguments that every rank must make, and what else every rank must do there."""
        found: list[ast.expr] = []
        for part in ast.walk(outer):
            if isinstance(part, ast.Call) and part is not site.node and part is not outer:
                inner = self._script.site_of(part)
                if self._effects.acts(inner) or self._adds_to_graph(inner):
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

    def _adds_to_graph(self, site: Site, depth: int = 0) -> bool:
        """Whether a call makes operations of a TF1 graph, itself or in a function of the script."""
        if not self._builds_graphs or depth > 2:
            return False
        function = site.node.func
        if isinstance(function, ast.Attribute) and function.attr in ("run", "eval"):
            run = [function.value, *(site.node.args[:1] if function.attr == "run" else ())]
            return any(isinstance(part, _OPERATORS) for each in run for part in ast.walk(each))
        names = self._script.names.full_names(function, site.scope, site.statement)
        if any(
            name.startswith("tensorflow.") and not name.startswith(tables.NO_OPERATIONS) for name in names
        ):
            return True
        return any(
            self._adds_to_graph(inner, depth + 1)
            for called in self._script.names.called_functions(site)
            for inner in self._script.sites
            if inner.scope.function() is called
        )


def is_context_manager(site: Site) -> bool:
    """Whether a call makes what a `with` statement enters."""
    node = site.statement.node
    return isinstance(node, ast.With) and any(item.context_expr is site.node for item in node.items)


def may_differ(above: Statement) -> bool:
    """Whether a block may be entered on some ranks only, such as one that asks if a file exists."""
    node = above.node
    return isinstance(node, ast.Try) or (
        isinstance(node, ast.If) and any(isinstance(part, ast.Call) for part in ast.walk(node.test))
    )


def _runs(statement: Statement) -> bool:
    """Whether what is in the statement runs where it stands: not so for a definition."""
    return not isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


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
    """Whether all that acts stands among the positional arguments."""
    inside = {part for argument in site.node.args for part in ast.walk(argument)}
    return bool(site.node.args) and all(each in inside for each in acting)
