"""Library calls: those that only rank 0 should make, and the form of their guard."""

from __future__ import annotations

import ast
import itertools
import re
import sys

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import entries
from trainshift.libraries.entries import Entry, Role, prints
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Member, Value, texts
from trainshift.python.syntax.chunk_syntax import (
    Site,
    Statement,
    argument,
    arguments,
    expression_path,
    is_alone,
    last_name,
)
from trainshift.python.syntax.node_classes import FUNCTIONS, LOOPS
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions.guard_forms import Form, is_context_manager
from trainshift.training.rank_regions.library_effects import Acting, is_method
from trainshift.training.rank_regions.readers import Readers
from trainshift.training.uniformity.uniformity import Uniformity

_KEPT = "it also reads the file, which would be empty on other ranks; read it first, in a mode of its own"
_OWN = "it also reads the file, which would be empty on other ranks; write it first, in a mode of its own"
_REREAD = "it also reads the file, which only rank 0 has written; open it in a with statement"


class LibraryCalls:
    """The calls of one script into libraries that act outside the process."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._on_rank = program.fact(Uniformity).on_rank
        self._libraries = program.fact(Libraries)
        self._acting = program.fact(Acting)
        self._readers = program.fact(Readers)
        self._trains = program.fact(WhatTrains)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of calls that may write, send or track."""
        objects = self._libraries.sites(Role.WRITER_OBJECT)
        is_made = any(not known.text("elsewhere") for _, known in objects)
        methods = (each.name for each in self._script.sites if is_made and is_method(each))
        return self._libraries.for_root.union(methods, _MOVING if self._imports_paths else ())

    @cached_property
    def _imports_paths(self) -> bool:
        return any(each.full_name.partition(".")[0] == "pathlib" for each in self._script.imports)

    def moves_path(self, site: Site) -> bool:
        """Return whether a method of an unknown object moves a path, with an unused result.

        Methods of tables and strings with such names return a value or take other arguments.
        """
        if not (is_alone(site) and is_method(site)) or site.name not in _MOVING or not self._imports_paths:
            return False
        words = {word.arg for word in site.node.keywords}
        return words <= _PATH_WORDS and len(site.node.args) == _MOVING[site.name]

    def form(self, site: Site, value: Value, known: Entry) -> Form | None:
        """Return the form in which a call is kept to rank 0; None if every rank may make it."""
        if known.role is Role.TRACKER:
            return self._form_of_tracker(site, known)
        if not self._acting.acts(site, value, known):
            return None
        if known.role is Role.WRITER_OBJECT and not isinstance(value, Member):
            return self._form_of_object(site, known)
        return Form.GUARD

    def _form_of_tracker(self, site: Site, known: Entry) -> Form | None:
        for key, form in (("argument", Form.QUIET), ("before", Form.BEFORE)):
            if known.text(key):
                return None if self._acting.is_quiet(site, known) else form
        return Form.CONTEXT if known.flag("context") and is_context_manager(site) else Form.GUARD

    def _form_of_object(self, site: Site, known: Entry) -> Form | None:
        if is_context_manager(site):
            return Form.GUARD
        if not known.text("elsewhere"):
            return Form.CONDITIONAL
        path = argument(site.node, *known.path)
        by_rank = path is not None and self._on_rank(of_call(site).part(path))
        return None if by_rank else Form.ELSEWHERE

    def reason_against_nothing(self, site: Site) -> str:
        """Return the reason why other ranks cannot enter a null context: they use the target of the
        `with` statement.
        """
        bound = _entered_as(site)
        if bound is None:
            return ""
        name = bound.id if isinstance(bound, ast.Name) else ""
        used = self._readers.of(name, site.statement)
        if name and all(self._is_shown(each) or self._is_in_callback(each, name) for each in used):
            return ""
        return f"the block uses {ast.unparse(bound)}, which is None on other ranks; guard that first"

    def _is_shown(self, statement: Statement) -> bool:
        """Return whether a statement is a print or a call of a tracker, which belongs to rank 0."""
        node = statement.node
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            return False
        site = self._script.site_of(node.value)
        named = self._names.full_names(site.node.func, site.scope, statement)
        return any(map(prints, named)) or self._libraries.called(site, Role.TRACKER) is not None

    def _is_in_callback(self, statement: Statement, name: str) -> bool:
        """Return whether a statement uses a name only in a list, for callbacks that belong to rank 0."""
        for part in statement.own_parts():
            if isinstance(part, ast.Name) and part.id == name:
                path = expression_path(statement.node, part)
                calls = [
                    self._script.site_of(below)
                    for above, below in itertools.pairwise(path)
                    if isinstance(above, ast.List) and isinstance(below, ast.Call)
                ]
                known = [self._libraries.called(each, Role.CALLBACK) for each in calls]
                if not any(each is not None and each.text("ranks") == entries.ROOT for each in known):
                    return False
        return True

    def reason_against_elsewhere(self, site: Site, known: Entry) -> str:
        """Return the reason why other ranks cannot write to the null device: they read the file; "" if
        they can.
        """
        path = argument(site.node, *known.path)
        if path is None or isinstance(path, ast.Starred):
            return in_stars("the path may be", "pass it by name")
        return _REREAD if self._acting.reads_too(site, known) and not self._is_only_written(site) else ""

    def reason_against_devnull(self, site: Site) -> str:
        """Return the reason why other ranks cannot open the null device instead of a file; "" if they can.

        The script may read what a mode such as ``a+`` or ``r+`` keeps of the file, or what it has written in
        a mode such as ``w+``.
        """
        mode = argument(site.node, 1, "mode")
        modes = texts(self._names.site_values(mode, site)) if mode is not None else []
        if not any("+" in each for each in modes):
            return ""
        keeps = any("+" in each and "w" not in each for each in modes)
        if self._is_only_written(site) or (not keeps and not self._users(site)):
            return ""
        return _KEPT if keeps else _OWN

    def _is_only_written(self, site: Site) -> bool:
        """Return whether an opened file has a name, and whatever uses it writes to it."""
        users = self._users(site)
        return bool(users) and all(_only_writes(each, bound_to(site)) for each in users)

    def _users(self, site: Site) -> list[Statement]:
        """The statements that may use the file that a call opens, by its name."""
        bound = bound_to(site)
        return list(dict.fromkeys(self._readers.of(bound, site.statement))) if bound else []

    def is_read_again(self, site: Site, write: Statement) -> bool:
        """Return whether a statement may read what another one has written to an opened file."""
        return any(
            self._may_follow(each, write, site.statement)
            for each in self._users(site)
            if not _only_writes(each, bound_to(site))
        )

    def _may_follow(self, read: Statement, write: Statement, opening: Statement) -> bool:
        """Return whether a statement may run after another one, once a file has been opened."""
        if read.scope.function() is not write.scope.function():
            return True
        around = set(write.ancestors()).difference(opening.path())
        turns = any(isinstance(each.node, LOOPS) and each in around for each in read.ancestors())
        span = self._script.statement_span
        return turns or span(write).start < span(read).start

    # Unknown calls

    @cached_property
    def left(self) -> dict[str, list[Site]]:
        """The calls that every rank makes although perhaps only one should, by their packages.

        They are statements that call unknown libraries, directly or through their objects, and that do not
        set anything up; or they open a file to write, or wrap a function that trains, as a notifier does.
        Or they act beyond this program, and their result is used, or their command is unknown.
        """
        found: dict[str, list[Site]] = {}
        outside = dict(self._libraries.sites(Role.OUTSIDE))
        for site, known in outside.items():
            if self._is_left(site, known) and not self._horovod.site_on_root(site):
                found.setdefault(known.package, []).append(site)
        for site in self._script.sites if self._unknown else ():
            if (
                (
                    is_alone(site)
                    or (_is_kept(site) and site.name.startswith(_ACTING))
                    or _opens_to_write(site)
                    or self._wraps_training(site)
                )
                and site not in outside
                and not site.name.startswith(_SETTING_UP)
                and not self._horovod.site_on_root(site)
            ):
                for package in self._packages_behind(site) & self._unknown:
                    found.setdefault(package, []).append(site)
        return found

    def _wraps_training(self, site: Site) -> bool:
        """Return whether a call makes the decorator of a function that trains."""
        node = site.statement.node
        if not isinstance(node, FUNCTIONS) or site.node not in node.decorator_list:
            return False
        trains = self._trains.statement_trains
        return any(map(trains, site.statement.branches["body"]))

    def _is_left(self, site: Site, known: Entry) -> bool:
        acts = not known.listed("begins") and self._acting.acts_outside(site, known)
        if not acts and known.flag("starts"):
            return True
        return acts != is_alone(site) and (acts or known.flag("command"))

    @cached_property
    def _unknown(self) -> frozenset[str]:
        """The packages that the script imports and no entry describes.

        For packages that act beyond the program, an entry describes only the known members.
        """
        imported = {each.full_name.partition(".")[0] for each in self._script.imports} - {""}
        known = _KNOWN | sys.stdlib_module_names
        unknown = itertools.filterfalse(entries.is_pure, imported - known)
        return frozenset(each for each in unknown if self._libraries.roles(each) <= {Role.OUTSIDE})

    def _packages_behind(self, site: Site) -> set[str]:
        """The packages of a call's target: of its name, and of its receiver's creator."""
        start = Occurrence(site.node, site.scope, site.statement)
        behind = reachable([start], self._receivers, lambda at: id(at.node))
        names = (name for at in behind for name in self._names.full_names(at.node, at.scope, at.statement))
        return {name.partition(".")[0] for name in names}

    def _receivers(self, at: Occurrence) -> tuple[Occurrence, ...]:
        """The receivers and sources of an object, one step back."""
        node = at.node
        if isinstance(node, ast.Call):
            return (at.part(node.func),)
        owner = (at.part(node.value),) if isinstance(node, ast.Attribute | ast.Subscript) else ()
        step = self._names.steps_back(at) if isinstance(node, ast.Name | ast.Attribute) else None
        return (*owner, *step.sources, *step.within) if step is not None else owner


# The methods of paths that move files, with their number of arguments.
_MOVING = {"rename": 1, "replace": 1, "unlink": 0, "symlink_to": 1, "hardlink_to": 1, "rmdir": 0}
_PATH_WORDS = frozenset({"missing_ok", "target_is_directory"})
# The methods of an open file that read nothing, and the prefixes of functions that write to one.
_FILE_WRITING = frozenset(
    {
        "write", "writelines", "flush", "close", "seek", "tell", "fileno", "truncate", "put", "append",
        "create_dataset",
    }
)  # fmt: skip
_WRITING_TO = ("dump", "print", "save", "to_", "write", "DictWriter")
# Prefixes of calls that every rank needs: they set up its process, or its model.
_SETTING_UP = (
    "append", "apply", "build", "clear", "close", "compile", "config", "connect", "disable", "enable", "eval",
    "extend", "filter", "fit", "init", "load", "manual_seed", "predict", "read", "register", "reset", "seed",
    "set_", "setup", "step", "train", "update", "use",
)  # fmt: skip
# Prefixes of calls that act, whatever becomes of their results.
_ACTING = ("dump", "export", "log_", "publish", "push", "report", "save", "send", "track", "upload", "write")
_MODE = re.compile("([wax][bt]?[+-]?|r[bt]?[+])[bt]?")
# Libraries whose members with such names are handled elsewhere.
_KNOWN = frozenset({"horovod", "tensorflow_datasets", "rich", "click", "joblib"})


def _is_kept(site: Site) -> bool:
    """Return whether a statement or a lambda only names or returns a call's result."""
    node = site.statement.node
    if isinstance(site.parent, ast.Lambda):
        return site.parent.body is site.node
    return isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and node.value is site.node


def _opens_to_write(site: Site) -> bool:
    """Return whether a call gets a mode in which something is written: ``open_group(path, mode="w")``."""
    mode = argument(site.node, 1, "mode")
    return (
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(_MODE.fullmatch(mode.value))
    )


def bound_to(site: Site) -> str:
    """Return the only name that a call's result is bound to, by ``with`` or an assignment; "" if none."""
    node, target = site.statement.node, _entered_as(site)
    if isinstance(node, ast.Assign) and node.value is site.node and len(node.targets) == 1:
        target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _entered_as(site: Site) -> ast.expr | None:
    """Return the target of the ``with`` that enters a call's result; None if there is none."""
    node = site.statement.node
    items = node.items if isinstance(node, ast.With) else []
    return next((each.optional_vars for each in items if each.context_expr is site.node), None)


def _only_writes(statement: Statement, name: str) -> bool:
    """Return whether a statement does nothing with an open file but write to it."""
    uses, writes = 0, 0
    for part in statement.own_parts():
        uses += isinstance(part, ast.Name) and part.id == name
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            writes += _is_name(part.value, name)
        if isinstance(part, ast.Call):
            function, given = part.func, arguments(part)
            is_method = isinstance(function, ast.Attribute) and _is_name(function.value, name)
            writes += is_method and last_name(function) in _FILE_WRITING
            is_given = any(_is_name(each, name) for each in given)
            writes += is_given and may_write_to(part)
    return uses == writes


def may_write_to(call: ast.Call) -> bool:
    """Return whether a function may write to a file that it is given, judged by its name."""
    return last_name(call.func).startswith(_WRITING_TO)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
