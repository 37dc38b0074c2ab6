"""Own paths: writes to paths that contain the rank, or to temporary files, which every rank may make."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import Role, entry, opener
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Instance
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments, children, last_name
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.uniformity.value_flow import ValueFlow

# The path parameters of classes and functions that write.
_PLACES = (
    "filepath", "filename", "file", "fname", "path", "path_or_buf", "save_path", "export_dir", "log_dir",
    "logdir", "backup_dir", "checkpoint_dir", "output_dir", "directory", "to_file", "dst",
)  # fmt: skip
_TEMPORARY = ("TemporaryDirectory", "NamedTemporaryFile", "mkstemp")
_READING = ("load", "read", "restore")
_RANKS = ("rank", "local_rank", "cross_rank")
# Functions whose path argument comes after the data.
_SECOND = frozenset(
    {
        "pickle.dump", "json.dump", "yaml.dump", "joblib.dump", "shutil.copy", "shutil.copyfile",
        "shutil.copyfileobj", "shutil.copytree", "shutil.move", "tensorflow.saved_model.save",
        "tensorflow.compat.v1.saved_model.simple_save", "tensorflow.io.write_graph",
        "tensorflow.keras.models.save_model", "tensorflow.keras.utils.plot_model",
    }
)  # fmt: skip
# Functions that write all other arguments to the first.
_FIRST = frozenset(f"numpy.{name}" for name in ("save", "savetxt", "savez", "savez_compressed"))
# Methods of an object opened at the path.
_OF_OPENED = frozenset(
    {"write", "writelines", "writerow", "writerows", "write_text", "write_bytes", "mkdir"}
) | (named("writer") - {"save"})


_ROWS = ("csv.writer", "csv.DictWriter")
_MEMORY = ("io.BytesIO", "io.StringIO")
# Objects that write into the file that they are given, besides those of entries.
_WRAPPING = (*_ROWS, "io.BufferedWriter", "io.TextIOWrapper")
# The argument by which a function prints, such as `summary` of a model.
_PRINTER = "print_fn"


class OwnPaths:
    """The calls of one script that write to a rank's own path."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._flow = program.fact(ValueFlow)

    def has(self, site: Site) -> bool:
        """Return whether the path of a writing call, or of its writer, depends on the rank."""
        if not self._horovod.is_used and not self.temporary:
            return False
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        if not names and isinstance(site.node.func, ast.Attribute):
            return self._is_of_own(site, site.node.func.value)
        return self._is_given_own(site, int(not names.isdisjoint(_SECOND)))

    def is_in_memory(self, site: Site) -> bool:
        """Return whether a call writes into a file in its process's memory, as every rank must."""
        printer = argument(site.node, None, _PRINTER)
        if printer is not None:
            return self._collects(printer, site)
        return any(self._is_of_memory(each, site, frozenset()) for each in self._files_of(site))

    def _files_of(self, site: Site) -> list[ast.expr]:
        """The expressions of a call that may be the file into which it writes, and not what it writes."""
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        words = [each.value for each in site.node.keywords]
        if site.name == "print":
            return words
        if names:
            position = int(not names.isdisjoint(_SECOND) or site.name == "dump")
            is_known = position or not names.isdisjoint(_FIRST)
            return [*(site.node.args[position : position + 1] if is_known else site.node.args), *words]
        receiver = [site.node.func.value] if isinstance(site.node.func, ast.Attribute) else []
        if site.name in _OF_OPENED and any(self._is_opened(each, site) for each in receiver):
            return receiver
        return [*receiver, *site.node.args, *words]

    def _is_opened(self, file: ast.expr, site: Site) -> bool:
        """Return whether an object is a file on disk, or writes into the file that it is given."""
        made = [each.cls for each in self._names.site_values(file, site) if isinstance(each, Instance)]
        return any(each in _WRAPPING or opener(each) is not None or each.endswith(".open") for each in made)

    def _collects(self, printer: ast.expr, site: Site) -> bool:
        """Return whether a function only collects text: in a list, or in a file in memory."""
        at = Occurrence(printer, site.scope, site.statement)
        if isinstance(printer, ast.Attribute):
            return printer.attr == "append" or self._is_of_memory(printer.value, site, frozenset())
        called = [each.node for each in self._flow.returned(at) if isinstance(each.node, ast.Call)]
        return any(
            last_name(each.func) == "append" or self.is_in_memory(self._script.site_of(each))
            for each in called
        )

    def _is_of_memory(self, file: ast.expr, site: Site, seen: frozenset[ast.AST]) -> bool:
        """Return whether an object may be a file in memory, or one that writes into it: a CSV writer."""
        for value in self._names.site_values(file, site):
            if isinstance(value, Instance) and value.node not in seen:
                if value.cls in _MEMORY:
                    return True
                known = entry(value.cls)
                writes = value.cls in _WRAPPING or (known is not None and known.role is Role.WRITER_OBJECT)
                made, inner = self._script.site_of(value.node), seen | {value.node}
                if writes and any(self._is_of_memory(each, made, inner) for each in arguments(made.node)):
                    return True
        return False

    def goes_nowhere(self, site: Site, opened: Collection[ast.AST]) -> bool:
        """Return whether a call writes into files that are ``os.devnull`` on other ranks: those that the
        calls in `opened` open, or that the script opens so itself.
        """
        function = site.node.func
        if site.name in _OF_OPENED and isinstance(function, ast.Attribute):
            return self._is_nowhere(function.value, site, opened)
        file = argument(site.node, None, "file") or argument(site.node, 1, "fp", "stream")
        return file is not None and site.name in ("print", "dump") and self._is_nowhere(file, site, opened)

    def _is_nowhere(self, file: ast.expr, site: Site, opened: Collection[ast.AST]) -> bool:
        values = self._names.site_values(file, site)
        for value in values:
            if not isinstance(value, Instance):
                return False
            made = self._script.site_of(value.node)
            if made.node in opened or self._is_opened_nowhere(made):
                continue
            behind = argument(made.node, 0, "csvfile") if value.cls in _ROWS else None
            if behind is None or not self._is_nowhere(behind, made, opened):
                return False
        return bool(values)

    def _is_opened_nowhere(self, site: Site) -> bool:
        """Return whether a call opens ``path if hvd.rank() == 0 else os.devnull``.

        Or ``[os.devnull, path][hvd.rank() == 0]``, where the path binds a name.
        """
        match argument(site.node, 0, "file", "filename", "path", "name"):
            case ast.IfExp(test, _, other) | ast.Subscript(ast.List([other, _]), test):
                calls = (each for each in ast.walk(test) if isinstance(each, ast.Call))
                is_nowhere = "os.devnull" in self._names.full_names(other, site.scope, site.statement)
                return is_nowhere and any(
                    self._horovod.is_call(self._script.site_of(each), "rank") for each in calls
                )
        return False

    def _is_of_own(self, site: Site, receiver: ast.expr) -> bool:
        """Like `has`, for the method of an object."""
        values = self._names.site_values(receiver, site)
        made = [each for each in values if isinstance(each, Instance)]
        if any(self._names.is_a(each, *api.SAVER) for each in made):
            return self._is_given_own(site, 1)
        managers = [each for each in made if self._names.is_a(each, *api.CHECKPOINT_MANAGER)]
        opened = made if site.name in _OF_OPENED else []
        if managers or opened:
            sites = [self._script.site_of(each.node) for each in managers or opened]
            return all(self._is_given_own(each, int(bool(managers))) for each in sites)
        return site.name not in _OF_OPENED and self._is_given_own(site, 0)

    def _is_given_own(self, site: Site, position: int) -> bool:
        place = argument(site.node, position, *_PLACES)
        return place is not None and self._is_own(place, site)

    def _is_own(self, place: ast.expr, site: Site) -> bool:
        """Return whether the rank is part of a path, or the path is that of a temporary file.

        A path chosen by the rank, ``path if hvd.rank() == 0 else os.devnull``, does not count.
        """
        return any(
            at.node in self.temporary or self._horovod.is_call(self._script.site_of(at.node), *_RANKS)
            for at in self._parts_of(place, site)
            if isinstance(at.node, ast.Call)
        )

    def _parts_of(self, place: ast.expr, site: Site) -> Iterable[Occurrence]:
        """Yield the parts of a path, through names."""

        def behind(at: Occurrence) -> Iterable[Occurrence]:
            if isinstance(at.node, ast.Compare):
                return ()
            found = sources(self._names, at)
            if found or self._is_of_tensorflow(at):
                return found
            parts = (each for each in children(at.node) if isinstance(each, ast.expr))
            words = at.node.keywords if isinstance(at.node, ast.Call) else ()
            return map(at.part, (*parts, *(word.value for word in words)))

        return sliced(Occurrence(place, site.scope, site.statement), behind)

    @cached_property
    def temporary(self) -> frozenset[ast.AST]:
        """The calls that make a temporary file or folder of the process, from which the script reads again.

        It is deleted when the process leaves its block, so that no other rank can use it.
        """
        made = {site.node for site in self._script.sites_called(*_TEMPORARY)}
        reads = [each for each in self._script.sites if made and each.name.startswith(_READING)]
        given = ((each, site) for site in reads for each in arguments(site.node))
        return frozenset(at.node for each, site in given for at in self._parts_of(each, site)) & made

    def _is_of_tensorflow(self, at: Occurrence) -> bool:
        """Return whether an expression is a TensorFlow object, which names no place."""
        values = self._names.values(at.node, at.scope, at.statement)
        return any(isinstance(each, Instance) and each.cls.startswith("tensorflow.") for each in values)
