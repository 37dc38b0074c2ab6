"""Find the calls that only one rank should make: the prints, writes and progress bars of a script.

HV07 and HV08 share this fact, because a statement guarded by one of them must not be guarded again, from the
inside or the outside, by the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from trainshift.core.libraries import FOR_ROOT, Libraries
from trainshift.core.program import Program
from trainshift.libraries import api, entries
from trainshift.libraries.entries import Entry, Role
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import of_call
from trainshift.python.names.values import (
    Function,
    Instance,
    Library,
    Member,
    Unknown,
    UserInstance,
    Value,
    texts,
)
from trainshift.python.syntax.chunk_syntax import (
    Site,
    Statement,
    argument,
    arguments,
    hides_arguments,
    is_alone,
    last_name,
)
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.training.execution.executions import of_super
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.learning_rates import LearningRates
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions import summary_writers as writers
from trainshift.training.rank_regions.guard_forms import (
    Form,
    GuardForms,
    RootCall,
    RootKind,
    is_context_manager,
)
from trainshift.training.rank_regions.library_calls import LibraryCalls, may_write_to
from trainshift.training.rank_regions.library_effects import Acting
from trainshift.training.rank_regions.loaders import Loaders
from trainshift.training.rank_regions.own_paths import OwnPaths
from trainshift.training.rank_regions.root_blocks import RootBlocks
from trainshift.training.uniformity.uniformity import Uniformity

# The log levels at which every rank would report its progress.
_TALKATIVE = frozenset({"INFO", "DEBUG", "info", "debug"})
# The forms for which a library's entry has all details.
_BY_ENTRY = (Form.ELSEWHERE, Form.QUIET, Form.CONTEXT)
# The forms that replace the path of a file that is opened.
_BY_PATH = (Form.PATH, Form.ELSEWHERE)


# The forms after which a value is None on other ranks.
_NONE = (Form.CONDITIONAL, Form.CONTEXT)
_OPENED = "other ranks would have no file; open it in a with statement"


class RootOnly:
    """The calls of one script that only rank 0 should make."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)

    @cached_property
    def calls(self) -> list[RootCall]:
        """Every call to keep to rank 0 that is not kept to it yet, in text order."""
        candidates = [site for site in self._candidates() if not self._is_before_start(site)]
        found = [call for site in candidates if (call := self._read(site)) is not None]
        found = self._without_shared(found)
        whole = (Form.GUARD, Form.RELOAD)
        guarded = {call.site.statement for call in found if call.form in whole and not call.reason}
        found = self._without_nowhere([self._with_block(call, guarded) for call in found])
        guarded &= {call.site.statement for call in found}
        guarded |= {call.site.statement for call in found if call.form is Form.GUARD and not call.reason}
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
        return self._with_blocks(kept)

    def _without_shared(self, found: list[RootCall]) -> list[RootCall]:
        """The calls without those that write what every rank reads again from a file that it opens itself."""
        opened = {call.site.node: call.site for call in found if call.reason and call.form in _BY_PATH}
        against = self._program.fact(Loaders).against
        whole = {call.site.node for call in found if call.reason and against(call.site)}
        if not opened and not whole:
            return found
        calls = self._program.fact(LibraryCalls)
        return [
            call
            for call in found
            if not any(
                each is not call.site.node
                and (
                    each in whole
                    or (each in opened and calls.is_read_again(opened[each], call.site.statement))
                )
                for each in reachable([call.site.node], self._written_to)
            )
        ]

    def _written_to(self, call: ast.Call) -> set[ast.Call]:
        """The calls that made what a call may write to: its object, or a file that it is given."""
        at, names = self._script.site_of(call), self._script.names
        given = arguments(call) if may_write_to(call) else []
        receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        values = (value for each in (*receiver, *given) for value in names.site_values(each, at))
        return {value.node for value in values if isinstance(value, Instance)}

    def _with_blocks(self, kept: list[RootCall]) -> list[RootCall]:
        """The calls, each with the block around it that is for rank 0 as a whole."""
        certain = {
            call.site.statement
            for call in kept
            if call.form is Form.GUARD
            and not call.reason
            and not call.doubt
            and call.site.name not in (*named("restoring"), "load_weights")
        }
        others = {call.site.statement for call in kept}.difference(certain)
        around = self._program.fact(RootBlocks).around(certain, others)
        return [replace(call, block=around.get(call.site.statement)) for call in kept] if around else kept

    def _with_block(self, call: RootCall, guarded: set[Statement]) -> RootCall:
        """The call; one that opens a file for a block which is all for rank 0 is for rank 0 itself."""
        blocks = self._program.fact(RootBlocks)
        if (
            call.form is not Form.PATH
            or call.reason
            or not self._program.fact(GuardForms).holds(call, lambda each: blocks.is_whole(each, guarded))
        ):
            return call
        return replace(call, form=Form.GUARD)

    def _without_nowhere(self, calls: list[RootCall]) -> list[RootCall]:
        """The calls, without those that write into a file that is `os.devnull` on other ranks.

        They stay if a value that is None on other ranks may be written.
        """
        if self._has_none or any(call.form in _NONE and not call.reason for call in calls):
            return calls
        # One that opens the file in the same statement, ``pickle.dump(x, open(path, "wb"))``, goes with it.
        guarded = {call.site.statement for call in calls if call.form is Form.GUARD and not call.reason}
        opened = {
            call.site.node
            for call in calls
            if call.form is Form.PATH and not call.reason and call.site.statement not in guarded
        }
        paths = self._program.fact(OwnPaths)
        return [
            call for call in calls if call.form is not Form.GUARD or not paths.goes_nowhere(call.site, opened)
        ]

    @cached_property
    def _has_none(self) -> bool:
        """Return whether the script itself has a value that is None on other ranks, or a null context."""
        tests = (each for each in self._script.sites_named("rank") if self._horovod.is_call(each, "rank"))
        return any(
            isinstance(part, ast.IfExp) and ast.unparse(part.orelse).endswith(("None", "nullcontext()"))
            for site in tests
            for part in ast.walk(site.statement.node)
        )

    def _is_before_start(self, site: Site) -> bool:
        """Return whether the script starts Horovod itself after the call, and no rate needs it earlier."""
        if not self._horovod.is_started_below(site):
            return False
        rates, _ = self._program.fact(LearningRates).all
        return all(rate.statement.scope.kind != "module" for rate in rates)

    @cached_property
    def shared(self) -> list[tuple[Site, str]]:
        """The calls in training loops that every rank makes and no rule rewrites, with their effect on
        each rank.
        """
        found = []
        names = self._program.fact(Libraries).names_stating("stays")
        for site in self._script.sites_named(*sorted(names)):
            called = self._script.names.full_names(site.node.func, site.scope, site.statement)
            what = next(filter(None, (entries.fact(each, "stays") for each in sorted(called))), "")
            in_training = any(
                isinstance(above.node, LOOPS) and self._program.fact(WhatTrains).statement_trains(above)
                for above in site.statement.path()
            )
            if what and in_training and not self._horovod.site_on_root(site):
                found.append((site, what))
        return found

    @cached_property
    def written(self) -> list[Site]:
        """Every call that writes to a named file, on rank 0 or (still) on all."""
        return [
            site
            for site in self._candidates()
            if site.name not in (*named("restoring"), "load_weights") and self._writes(site)
        ]

    def _writes(self, site: Site) -> bool:
        for value in self._script.names.callee(site):
            opened = entries.opener(value.name) if isinstance(value, Library) else None
            if opened is not None and (not opened.text("mode") or self._mode_writes(site)):
                return True
            found = self._classify(site, value)
            if found is not None and found[0] is RootKind.WRITE:
                return True
        return False

    def _candidates(self) -> Iterator[Site]:
        names = self._program.fact(Libraries).for_root | self._program.fact(LibraryCalls).names
        for site in self._script.sites:
            if site.name in names and not _is_import_fallback(site.statement):
                yield site

    # Kinds of calls

    def _read(self, site: Site) -> RootCall | None:
        # Known full names take precedence over method names alone.
        for value in sorted(self._script.names.callee(site), key=lambda v: isinstance(v, Unknown)):
            found = self._classify(site, value)
            if found is not None:
                if self._horovod.site_on_root(site):
                    return None
                kind, form, doubt = found
                if (kind, form) == (RootKind.PRINT, Form.GUARD) and self._horovod.tells_rank(site):
                    return None
                own = (
                    kind is RootKind.WRITE and form is not Form.RELOAD and site.name not in named("restoring")
                )
                if own and site.name != "load_weights" and self._program.fact(OwnPaths).has(site):
                    return None
                call = self._program.fact(GuardForms).guard(site, kind, form, doubt)
                against = self._program.fact(Loaders).against(site) if own and call is not None else ""
                if call is not None and against:
                    return replace(call, reason=call.reason or against)
                by_mode = isinstance(value, Member | Unknown) and self._opens_by_mode(site)
                if call is not None and by_mode and not is_context_manager(site):
                    return replace(call, reason=call.reason or _OPENED)
                return self._with_reason(call, value)
        return None

    def _with_reason(self, call: RootCall | None, value: Value) -> RootCall | None:
        """The call, with the reason why its library's entry cannot be followed here."""
        calls = self._program.fact(LibraryCalls)
        if call is not None and call.form is Form.PATH and not call.reason:
            return replace(call, reason=calls.reason_against_devnull(call.site))
        known = (
            self._program.fact(Acting).entry(value) if call is not None and call.form in _BY_ENTRY else None
        )
        if call is None or known is None or call.reason:
            return call
        if call.form is Form.ELSEWHERE:
            return replace(call, reason=calls.reason_against_elsewhere(call.site, known))
        if call.form is Form.CONTEXT:
            return replace(call, reason=calls.reason_against_nothing(call.site))
        name = known.text("argument")
        hidden = name and argument(call.site.node, None, name) is None and hides_arguments(call.site.node)
        if not hidden or not any(word.arg is None for word in call.site.node.keywords):
            return call
        return replace(call, reason=f"{name} may be hidden in ** arguments; pass it by name")

    def _classify(self, site: Site, value: Value) -> tuple[RootKind, Form, str] | None:
        calls = self._program.fact(LibraryCalls)
        known = self._program.fact(Acting).entry(value)
        is_of_files = known is None or known.role in (Role.WRITER, Role.WRITER_OBJECT)
        if is_of_files and self._program.fact(OwnPaths).is_in_memory(site):
            return None
        if known is not None:
            form = calls.form(site, value, known)
            return (RootKind.WRITE, form, "") if form is not None else None
        if (shown := self._program.fact(Libraries).of(value)) is not None and shown.role is Role.PRINTS:
            return self._classify_print(site, shown)
        if isinstance(value, Library):
            return self._classify_function(site, api.canonical(value.name) or value.name)
        if isinstance(value, Unknown) and calls.moves_path(site):
            return RootKind.WRITE, Form.GUARD, ""
        if isinstance(value, Member | Unknown) and self._opens_by_mode(site):
            return RootKind.WRITE, Form.GUARD, ""
        if isinstance(value, Function) or site.name not in FOR_ROOT:
            return None
        if isinstance(value, Member):
            return self._classify_method(site, value)
        if isinstance(value, Unknown) and site.name in named("evaluating"):
            return self._classify_evaluation(site)
        if isinstance(value, Unknown) and self._is_writing_method(site):
            receiver = self._script.text(site.node.func, site).rpartition(".")[0]
            is_told = site.name in named("doubtful") and not self._is_callbacks_model(site)
            doubt = f"{receiver} is assumed to write files" if is_told else ""
            return RootKind.WRITE, Form.GUARD, doubt
        return None

    @staticmethod
    def _classify_print(site: Site, known: Entry) -> tuple[RootKind, Form, str] | None:
        silencing = known.text("argument")
        if not silencing:
            return RootKind.PRINT, Form.GUARD, ""
        hidden = {word.arg for word in site.node.keywords} & {None, silencing}
        return None if hidden else (RootKind.PRINT, Form.DISABLE, "")

    def _classify_function(self, site: Site, name: str) -> tuple[RootKind, Form, str] | None:
        if entries.fact(name, "level"):
            return (RootKind.PRINT, Form.GUARD, "") if self._is_talkative(site) else None
        if writers.is_writer(name):
            return RootKind.WRITE, Form.CONDITIONAL, ""
        if entries.fact(name, "verbose"):
            return None if self._is_silent(site) else (RootKind.PRINT, Form.VERBOSE, "")
        if name == "tensorflow.summary.create_file_writer":
            return RootKind.WRITE, Form.WRITER, ""
        if (opened := entries.opener(name)) is not None and self._opens_for_writing(site, opened):
            return RootKind.WRITE, Form.PATH, ""
        return None

    def _classify_method(self, site: Site, value: Member) -> tuple[RootKind, Form, str] | None:
        owner, names = self._owner(value, site), self._script.names
        if isinstance(owner, Instance) and value.name == "setLevel":
            return (RootKind.PRINT, Form.GUARD, "") if self._is_of_tensorflow(owner, site) else None
        if names.is_a(owner, *api.MODEL):
            if value.name in named("model_writing"):
                return RootKind.WRITE, Form.GUARD, ""
            if value.name in named("evaluating") and not self._is_silent(site):
                return RootKind.PRINT, Form.VERBOSE, ""
            return None
        if names.is_a(owner, *api.CHECKPOINT, *api.CHECKPOINT_MANAGER, *api.SAVER):
            known = named("checkpoint_writing") | named("restoring")
            return (RootKind.WRITE, Form.GUARD, "") if value.name in known else None
        if writers.writes(value) or (names.is_a(owner, *api.ESTIMATOR) and value.name in named("exporting")):
            return RootKind.WRITE, Form.GUARD, ""
        if isinstance(owner, UserInstance) or api.is_class(owner.cls):
            return None
        if value.name in named("evaluating"):
            return self._classify_evaluation(site)
        if self._is_writing_method(site):
            return RootKind.WRITE, Form.GUARD, ""
        return None

    def _owner(self, value: Member, site: Site) -> Instance | UserInstance:
        """The object of a method; for ``super()``, the object of the class around it."""
        cls = class_around(site.scope) if of_super(site) else None
        return UserInstance(cls, None) if cls is not None else value.owner

    def _classify_evaluation(self, site: Site) -> tuple[RootKind, Form, str] | None:
        """The progress bar of an unknown object that must be a Keras model."""
        if self._is_silent(site) or not isinstance(site.node.func, ast.Attribute):
            return None
        cls = class_around(site.scope) if of_super(site) else None
        of_model = cls is not None and self._script.names.is_a(UserInstance(cls, None), *api.MODEL)
        if of_model or self._is_callbacks_model(site) or self._is_of_heirs(site.node.func.value, site):
            return RootKind.PRINT, Form.VERBOSE, ""
        fit = self._program.fact(Fits).fit_of(site.node.func.value, site)
        if fit is None:
            return None
        model = self._script.text(site.node.func.value, site)
        return RootKind.PRINT, Form.VERBOSE, f"{model} is assumed to be a Keras model"

    def _is_of_heirs(self, receiver: ast.expr, site: Site) -> bool:
        """Return whether an object is ``self`` in a class that only models inherit from."""
        names = self._script.names
        return any(
            bool(heirs := names.heirs(value.scope))
            and all(names.is_a(UserInstance(heir, None), *api.MODEL) for heir in heirs)
            for value in names.site_values(receiver, site)
            if isinstance(value, UserInstance) and value.node is None
        )

    def _is_writing_method(self, site: Site) -> bool:
        if not isinstance(site.node.func, ast.Attribute):
            return False
        if site.name in named("file_writing"):
            return is_alone(site) and self._is_file(site.node.func.value, site)
        if site.name not in named("writing"):
            return False
        if site.name in named("path_writing") and (not arguments(site.node) or self._is_to_memory(site)):
            return False
        if site.name == "mkdir" and any(word.arg == "exist_ok" for word in site.node.keywords):
            return False
        # These return a value on objects that write no file; only a statement can write one.
        return site.name not in ("write", "dump") or isinstance(site.parent, ast.Expr)

    def _is_file(self, node: ast.expr, site: Site) -> bool:
        """Return whether an object is a file that a function or a method ``open`` has opened."""
        names = self._script.names
        made = (each.cls for each in names.site_values(node, site) if isinstance(each, Instance))
        if any(entries.opener(each) is not None or each.endswith(".open") for each in made):
            return True
        step = names.steps_back(of_call(site).part(node))
        sources = [each.node for each in (*step.sources, *step.within)] if step is not None else []
        return any(isinstance(each, ast.Call) and last_name(each.func) == "open" for each in sources)

    def _is_to_memory(self, site: Site) -> bool:
        """Return whether a call writes to an object that writes nothing on other ranks: a workbook.

        All ranks fill it, and then close it: a workbook without a sheet cannot be closed.
        """
        libraries = self._program.fact(Libraries)
        for value in self._script.names.site_values(arguments(site.node)[0], site):
            known = libraries.of(value)
            if known is not None and known.role is Role.WRITER_OBJECT and known.text("elsewhere"):
                assert isinstance(value, Instance)
                return not is_context_manager(self._script.site_of(value.node))
        return False

    def _is_of_tensorflow(self, logger: Instance, site: Site) -> bool:
        """Return whether a logger used for progress is TensorFlow's."""
        named = argument(logger.node, 0, "name")
        own = isinstance(named, ast.Constant) and named.value == "tensorflow"
        return (logger.cls == "tensorflow.get_logger" or own) and self._is_talkative(site)

    def _is_talkative(self, site: Site) -> bool:
        """Return whether a call lets TensorFlow log its progress."""
        level = argument(site.node, 0, "v", "verbosity", "level")
        if isinstance(level, ast.Constant):
            return level.value in _TALKATIVE
        names = self._script.names.full_names(level, site.scope, site.statement) if level is not None else ()
        return any(name.rpartition(".")[2] in _TALKATIVE for name in names)

    def _is_callbacks_model(self, site: Site) -> bool:
        """Return whether the receiver is the model that Keras assigns to a callback, ``self.model``."""
        names, function = self._script.names, site.node.func
        return isinstance(function, ast.Attribute) and any(
            isinstance(value, Member) and value.name == "model" and names.is_a(value.owner, *api.CALLBACK)
            for value in names.site_values(function.value, site)
        )

    def _is_silent(self, site: Site) -> bool:
        """Return whether `verbose` is 0, depends on the rank, or is unknown."""
        names = self._script.names.full_names(site.node.func, site.scope, site.statement)
        given = verbosity(site, names)
        if given is None:
            return any(entries.fact(each, "verbose") == "0" for each in names)
        if isinstance(given, ast.Constant) and given.value == 0:
            return True
        return self._program.fact(Uniformity).on_rank(of_call(site).part(given))

    def _opens_by_mode(self, site: Site) -> bool:
        """Return whether a method ``open`` of a path or a file system opens for writing:
        ``path.open("w")``.
        """
        if site.name != "open" or not isinstance(site.node.func, ast.Attribute):
            return False
        given = [*site.node.args[:2], *(word.value for word in site.node.keywords if word.arg == "mode")]
        texts = (each.value for each in given if isinstance(each, ast.Constant))
        return any(isinstance(each, str) and _is_writing_mode(each) for each in texts)

    def _opens_for_writing(self, site: Site, opened: Entry) -> bool:
        path = argument(site.node, *opened.path)
        if path is None or self._program.fact(Uniformity).on_rank(of_call(site).part(path)):
            return False
        if "os.devnull" in self._script.names.full_names(path, site.scope, site.statement):
            return False
        return not opened.text("mode") or self._mode_writes(site)

    def _mode_writes(self, site: Site) -> bool:
        mode = argument(site.node, 1, "mode")
        values = self._script.names.site_values(mode, site) if mode is not None else ()
        return any(not set(each).isdisjoint("wax+") for each in texts(values))


def _is_verbose(name: str) -> bool:
    return entries.fact(name, "verbose") is not None


def _is_writing_mode(text: str) -> bool:
    return len(text) <= 3 and set(text) <= set("wax+bt") and not set(text).isdisjoint("wax+")


def _is_import_fallback(statement: Statement) -> bool:
    """Return whether the statement handles a failed import, before Horovod is available."""
    below = statement
    for above in statement.ancestors():
        if isinstance(above.node, ast.Try) and below.branch.startswith("except"):
            body = above.branches["body"]
            return all(isinstance(each.node, ast.Import | ast.ImportFrom) for each in body)
        below = above
    return False


def verbosity(site: Site, names: Iterable[str] = ()) -> ast.expr | None:
    """The `verbose` argument of ``evaluate`` or ``predict``, or of the called class among `names`."""
    signature = api.method("tensorflow.keras.Model", site.name)
    for name in filter(_is_verbose, names):
        signature = api.constructor(name)
    return argument(site.node, signature.position("verbose") if signature else None, "verbose")
