"""What one rank alone should do: every print, write and progress bar of a script, and how to guard it.

HV07 and HV08 share this fact, since a statement that one of them guards must not be guarded again,
from the inside or the outside, by the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from trainshift.core import tables
from trainshift.core.lazy import cached_property
from trainshift.core.names import api
from trainshift.core.names.values import Function, Instance, Library, Member, Unknown, UserInstance, Value
from trainshift.core.program import Program
from trainshift.core.text.facts import Site, Statement, argument, dotted, expression_path, hides_arguments
from trainshift.core.training.effects import Effect, Effects
from trainshift.core.training.executions import LOOPS, Executions
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.steps import Steps, is_plain
from trainshift.core.training.what_trains import WhatTrains
from trainshift.rewriting.ranks import summary_writers as writers

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


class RootOnly:
    """The calls of one script that rank 0 alone should make."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._effects = program.fact(Effects)

    @cached_property
    def calls(self) -> list[RootCall]:
        """Every call to keep to rank 0 that is not kept to it already, in text order."""
        found = [call for site in self._candidates() if (call := self._read(site)) is not None]
        whole = (Form.GUARD, Form.RELOAD)
        guarded = {call.site.statement for call in found if call.form in whole and not call.reason}
        kept: list[RootCall] = []
        seen: set[Statement] = set()
        for call in found:
            statement = call.site.statement
            if any(above in guarded for above in statement.ancestors()) or statement in seen:
                continue
            if statement in guarded:
                if call.form not in whole or call.reason:
                    continue
                seen.add(statement)
            kept.append(call)
        return kept

    @cached_property
    def needs_os(self) -> bool:
        """Whether some rewritten call will name `os.devnull`."""
        return any(call.form is Form.PATH and not call.reason for call in self.calls)

    @cached_property
    def shared(self) -> list[tuple[Site, str]]:
        """The calls in training loops that every rank makes and nothing rewrites, and what each rank does."""
        found = []
        names = {name.rpartition(".")[2] for name in tables.ON_EVERY_RANK} | self._aliases
        for site in self._script.sites_named(*sorted(names)):
            called = self._script.names.full_names(site.node.func, site.scope, site.statement)
            what = next((tables.ON_EVERY_RANK[each] for each in called if each in tables.ON_EVERY_RANK), "")
            in_training = any(
                isinstance(above.node, LOOPS) and self._program.fact(WhatTrains).statement_trains(above)
                for above in site.statement.path()
            )
            if what and in_training and not self._horovod.site_on_root(site):
                found.append((site, what))
        return found

    @cached_property
    def written(self) -> list[Site]:
        """Every call that writes something by a name that it is given, on rank 0 or (still) on all."""
        return [
            site
            for site in self._candidates()
            if site.name not in (*tables.RESTORING, "load_weights") and self._writes(site)
        ]

    def _writes(self, site: Site) -> bool:
        for value in self._script.names.callee(site):
            if isinstance(value, Library) and value.name in tables.OPENING:
                if tables.OPENING[value.name][1] is None or _mode_writes(site):
                    return True
            found = self._classify(site, value)
            if found is not None and found[0] is RootKind.WRITE:
                return True
        return False

    def _candidates(self) -> Iterator[Site]:
        names = tables.ROOT_ONLY_NAMES | self._aliases
        for site in self._script.sites:
            if site.name in names and not _is_import_fallback(site.statement):
                yield site

    @cached_property
    def _aliases(self) -> set[str]:
        """Names that an import gives to something that concerns one rank only."""
        return {
            name
            for facts in self._script.facts
            for scope in (facts.module, *facts.scopes)
            for name, bindings in scope.bindings.items()
            for binding in bindings
            if binding.full_name.rpartition(".")[2] in tables.ROOT_ONLY_NAMES
            or binding.full_name in tables.ON_EVERY_RANK
        }

    # What a call is

    def _read(self, site: Site) -> RootCall | None:
        # What is known by name goes before what merely has the name of a method.
        for value in sorted(self._script.names.callee(site), key=lambda v: isinstance(v, Unknown)):
            found = self._classify(site, value)
            if found is not None:
                if self._horovod.site_on_root(site):
                    return None
                kind, form, doubt = found
                return self._shape(site, kind, form, doubt)
        return None

    def _classify(self, site: Site, value: Value) -> tuple[RootKind, Form, str] | None:
        if isinstance(value, Library):
            return self._classify_function(site, api.canonical(value.name) or value.name)
        if isinstance(value, Function) or site.name not in tables.ROOT_ONLY_METHODS:
            return None
        if isinstance(value, Member):
            return self._classify_method(site, value)
        if isinstance(value, Unknown) and site.name in tables.EVALUATING and self._is_callbacks_model(site):
            return None if self._is_silent(site) else (RootKind.PRINT, Form.VERBOSE, "")
        if isinstance(value, Unknown) and self._is_writing_method(site):
            receiver = self._script.text(site.node.func, site).rpartition(".")[0]
            doubt = f"{receiver} is taken to write files" if site.name in tables.DOUBTFUL_METHODS else ""
            return RootKind.WRITE, Form.GUARD, doubt
        return None

    def _classify_function(self, site: Site, name: str) -> tuple[RootKind, Form, str] | None:
        keywords = {word.arg for word in site.node.keywords}
        if name in tables.PRINTING:
            return RootKind.PRINT, Form.GUARD, ""
        if name in tables.PROGRESS_BARS:
            hidden = None in keywords or "disable" in keywords
            return None if hidden else (RootKind.PRINT, Form.DISABLE, "")
        if name in tables.WRITING:
            needed = tables.WRITING_IF_GIVEN.get(name)
            if (needed is not None and needed not in keywords) or tables.HARMLESS_IF_GIVEN.get(
                name
            ) in keywords:
                return None
            return RootKind.WRITE, Form.GUARD, ""
        if name in tables.VERBOSITY:
            return (RootKind.PRINT, Form.GUARD, "") if self._is_talkative(site) else None
        if writers.is_writer(name):
            return RootKind.WRITE, Form.CONDITIONAL, ""
        if name in tables.TALKING:
            return None if self._is_silent(site) else (RootKind.PRINT, Form.VERBOSE, "")
        if name == "tensorflow.summary.create_file_writer":
            return RootKind.WRITE, Form.WRITER, ""
        if name in tables.OPENING and self._opens_for_writing(site, name):
            return RootKind.WRITE, Form.PATH, ""
        if name in tables.WRITING_CONTEXTS and self._is_context_manager(site):
            return (
                (RootKind.WRITE, Form.GUARD, "")
                if name not in tables.READING_TOO or _mode_writes(site)
                else None
            )
        return None

    def _classify_method(self, site: Site, value: Member) -> tuple[RootKind, Form, str] | None:
        owner, names = value.owner, self._script.names
        if isinstance(owner, Instance) and value.name in tables.PRINTING_METHODS.get(owner.cls, ()):
            return RootKind.PRINT, Form.GUARD, ""
        if isinstance(owner, Instance) and value.name == "setLevel":
            return (RootKind.PRINT, Form.GUARD, "") if self._is_of_tensorflow(owner, site) else None
        if names.is_a(owner, *api.MODEL):
            if value.name in tables.MODEL_WRITING:
                return RootKind.WRITE, Form.GUARD, ""
            if value.name in tables.EVALUATING and not self._is_silent(site):
                return RootKind.PRINT, Form.VERBOSE, ""
            return None
        if names.is_a(owner, *api.CHECKPOINT, *api.CHECKPOINT_MANAGER, *api.SAVER):
            known = tables.CHECKPOINT_WRITING | tables.RESTORING
            return (RootKind.WRITE, Form.GUARD, "") if value.name in known else None
        if writers.writes(value) or (names.is_a(owner, *api.ESTIMATOR) and value.name in tables.EXPORTING):
            return RootKind.WRITE, Form.GUARD, ""
        if isinstance(owner, UserInstance) or api.is_class(owner.cls):
            return None
        if self._is_writing_method(site):
            return RootKind.WRITE, Form.GUARD, ""
        return None

    def _is_writing_method(self, site: Site) -> bool:
        if site.name not in tables.WRITING_METHODS or not isinstance(site.node.func, ast.Attribute):
            return False
        if site.name in tables.PATH_WRITING and not (site.node.args or site.node.keywords):
            return False
        if site.name == "mkdir" and any(word.arg == "exist_ok" for word in site.node.keywords):
            return False
        # `write` gives something back for a TensorArray; only a statement can be a file's.
        return site.name != "write" or isinstance(site.parent, ast.Expr)

    def _is_of_tensorflow(self, logger: Instance, site: Site) -> bool:
        """Whether a logger that is told to log progress is TensorFlow's."""
        named = argument(logger.node, 0, "name")
        own = isinstance(named, ast.Constant) and named.value == "tensorflow"
        return (logger.cls == "tensorflow.get_logger" or own) and self._is_talkative(site)

    def _is_talkative(self, site: Site) -> bool:
        """Whether a call lets TensorFlow log its progress."""
        level = argument(site.node, 0, "v", "verbosity", "level")
        if isinstance(level, ast.Constant):
            return level.value in tables.TALKATIVE
        names = self._script.names.full_names(level, site.scope, site.statement) if level is not None else ()
        return any(name.rpartition(".")[2] in tables.TALKATIVE for name in names)

    def _is_callbacks_model(self, site: Site) -> bool:
        """Whether the method is of the model that Keras gives a callback, ``self.model``."""
        names, function = self._script.names, site.node.func
        return isinstance(function, ast.Attribute) and any(
            isinstance(value, Member) and value.name == "model" and names.is_a(value.owner, *api.CALLBACK)
            for value in names.site_values(function.value, site)
        )

    def _is_silent(self, site: Site) -> bool:
        """Whether `verbose` is 0, depends on the rank, or cannot be seen."""
        names = self._script.names.full_names(site.node.func, site.scope, site.statement)
        given = verbosity(site, names)
        if given is None:
            return hides_arguments(site.node) or not names.isdisjoint(tables.SILENT)
        if isinstance(given, ast.Constant) and given.value == 0:
            return True
        return self._horovod.pinned(given, site.scope, site.statement)

    def _opens_for_writing(self, site: Site, name: str) -> bool:
        path_name, mode_name = tables.OPENING[name]
        path = argument(site.node, 0, path_name)
        if path is None or self._horovod.pinned(path, site.scope, site.statement):
            return False
        return mode_name is None or _mode_writes(site)

    def _is_context_manager(self, site: Site) -> bool:
        node = site.statement.node
        return isinstance(node, ast.With) and any(item.context_expr is site.node for item in node.items)

    # How to guard it

    def _shape(self, site: Site, kind: RootKind, form: Form, doubt: str) -> RootCall | None:
        if site.in_fstring:
            return RootCall(site, kind, form, site.node, doubt, "it stands inside an f-string")
        if form is Form.CONDITIONAL:
            return self._shape_writer(site)
        if form is not Form.GUARD:
            return RootCall(site, kind, form, site.node, doubt)
        if self._is_context_manager(site) and kind is RootKind.WRITE:
            return RootCall(site, kind, form, site.node, doubt, self._reason_against_block(site.statement))
        path = expression_path(site.statement.node, site.node)
        outer = _chain(path)
        acting = self._acting(outer, site)
        doubt = doubt or self._doubt(outer, site)
        node = site.statement.node
        if site.name in tables.RESTORING:
            return self._shape_restore(site, outer)
        if site.name == "load_weights":
            return self._shape_load(site, outer, doubt)
        if isinstance(node, ast.Expr) and _bare(node.value) is outer:
            if not acting:
                return RootCall(site, kind, Form.GUARD, outer, doubt)
            if kind is RootKind.PRINT and outer is site.node and _binds_all(site, acting):
                return RootCall(site, kind, Form.BIND, outer, doubt)
        elif isinstance(node, ast.Assign) and node.value is outer and not acting and not self._is_read(node):
            return RootCall(site, kind, Form.GUARD, outer, doubt)
        elif not acting:
            return RootCall(site, kind, Form.CONDITIONAL, outer, doubt)
        what = self._script.text(acting[0].node.func, acting[0])
        reason = f"an argument calls {what}, which every rank must do"
        return RootCall(site, kind, Form.GUARD, outer, doubt, reason)

    def _shape_writer(self, site: Site) -> RootCall:
        """A writer is none on other ranks, whose uses are guarded as well."""
        reason = writers.reason_to_keep(self._script, self._effects, site)
        alone = isinstance(site.statement.node, ast.Expr) and site.statement.node.value is site.node
        form = Form.GUARD if alone else Form.CONDITIONAL
        return RootCall(site, RootKind.WRITE, form, site.node, "", reason)

    def _shape_load(self, site: Site, outer: ast.expr, doubt: str) -> RootCall | None:
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

    def _shape_restore(self, site: Site, outer: ast.expr) -> RootCall | None:
        """Every rank restores before training; after it, rank 0 has written what the others lack."""
        node = site.statement.node
        late = self._may_follow_training(site.statement)
        if not (late and isinstance(node, ast.Expr) and node.value is outer):
            return None
        if not self.restored(site) and not self.of_saver(site):
            return None
        return RootCall(site, RootKind.WRITE, Form.RELOAD, outer)

    def of_saver(self, site: Site) -> bool:
        """Whether the method is of a TensorFlow 1 `Saver`, which restores into a session."""
        assert isinstance(site.node.func, ast.Attribute)
        values = self._script.names.site_values(site.node.func.value, site)
        return self._script.names.may_be(values, *api.SAVER)

    def restored(self, site: Site) -> list[str]:
        """The code of the variables that every step trains, where the names mean the same here."""
        found: dict[str, None] = {}
        for step in self._program.fact(Steps).steps:
            for node, ending in [
                *((model, ".variables") for model in step.models),
                (step.receiver, ".variables()"),
            ]:
                same = self._script.names.site_values(node, step.site) == self._script.names.site_values(
                    node, site
                )
                if same and self._program.fact(Executions).is_single(node, step.site):
                    found[f"{self._script.text(node, step.site)}{ending}"] = None
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
                    return f"{part.func.id}(...) is taken to matter to rank 0 only"
        return ""

    def _is_read(self, node: ast.Assign) -> bool:
        """Whether what the assignment binds is read anywhere (correction C12)."""
        targets = [target.id if isinstance(target, ast.Name) else "" for target in node.targets]
        return any(not name or self._script.loads(name) > 0 for name in targets)

    def _acting(self, outer: ast.expr, site: Site) -> list[Site]:
        """The calls among the arguments that every rank must make."""
        found = []
        for part in ast.walk(outer):
            if isinstance(part, ast.Call) and part is not site.node and part is not outer:
                inner = self._script.site_of(part)
                if self._effects.acts(inner) or self._adds_to_graph(inner):
                    found.append(inner)
            elif isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
                found.append(site)
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


def _runs(statement: Statement) -> bool:
    """Whether what is in the statement runs where it stands: not so for a definition."""
    return not isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _is_import_fallback(statement: Statement) -> bool:
    """Whether the statement handles a failed import: Horovod is not there yet."""
    below = statement
    for above in statement.ancestors():
        if isinstance(above.node, ast.Try) and below.branch.startswith("except"):
            body = above.branches["body"]
            return all(isinstance(each.node, ast.Import | ast.ImportFrom) for each in body)
        below = above
    return False


def may_differ(above: Statement) -> bool:
    """Whether a block may be entered on some ranks only, such as one that asks if a file exists."""
    node = above.node
    return isinstance(node, ast.Try) or (
        isinstance(node, ast.If) and any(isinstance(part, ast.Call) for part in ast.walk(node.test))
    )


def verbosity(site: Site, names: Iterable[str] = ()) -> ast.expr | None:
    """The `verbose` argument of ``evaluate`` or ``predict``, or of the class among `names` that is called."""
    signature = api.method("tensorflow.keras.Model", site.name)
    for name in tables.TALKING.intersection(names):
        signature = api.constructor(name)
    return argument(site.node, signature.position("verbose") if signature else None, "verbose")


def _mode_writes(site: Site) -> bool:
    mode = argument(site.node, 1, "mode")
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return False
    return any(letter in mode.value for letter in "wax+")


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


def _binds_all(site: Site, acting: list[Site]) -> bool:
    """Whether every acting call stands among the positional arguments."""
    inside = {part for argument in site.node.args for part in ast.walk(argument)}
    return bool(site.node.args) and all(each.node in inside for each in acting)
