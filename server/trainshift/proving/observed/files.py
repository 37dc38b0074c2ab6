"""Hooks on files: record those opened for writing, by Python and by TensorFlow's own code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainshift.proving.observed.distribution import Distribution
from trainshift.proving.observed.links import CHANGING, Links, Others

CACHES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KERAS_HOME", "MPLCONFIGDIR")
# TensorFlow's native writers, which Python's audit events do not show: module, name, and the place or
# the name of the argument that holds the path.
NATIVE_WRITERS: tuple[tuple[str, str, int | str], ...] = (
    ("tensorflow.python.lib.io._pywrap_file_io", "WritableFile", 0),
    ("tensorflow.python.lib.io._pywrap_file_io", "CopyFile", 1),
    ("tensorflow.python.lib.io._pywrap_file_io", "RenameFile", 1),
    ("tensorflow.python.client._pywrap_events_writer", "EventsWriter", 0),
    ("tensorflow.python.ops.gen_summary_ops", "create_summary_file_writer", "logdir"),
    ("tensorflow.python.ops.io_ops", "save_v2", 0),
    ("tensorflow.python.ops.gen_io_ops", "write_file", 0),
    ("tensorflow.io", "write_file", 0),
)
# The names of operations in which Horovod's ranks wait for each other.
COLLECTIVE = re.compile(r"horovod_(grouped_)?(all|barrier|broadcast|join|reducescatter)")


class Files(Distribution):
    """The files that a process writes."""

    def hook_files(self, home: Path) -> None:
        """Record every file opened for writing outside `home`, and temporary directories.

        No link in `home` is written through. For a report, the files written by other ranks appear there too.
        """
        others = Others(str(home)) if self.stopping else None
        links = others.links if others else Links([str(home)])
        ignored = [home, Path("/dev"), Path("/proc"), Path(sys.prefix), Path(sys.base_prefix)]
        ignored += [Path(os.environ[name]) for name in CACHES if name in os.environ]
        written = self.record.written_elsewhere

        def note(path: Any, *, keep: bool = True) -> None:
            if not isinstance(path, str | bytes | os.PathLike):
                return
            links.own(path, keep=keep)
            place = Path(os.path.abspath(os.fsdecode(path)))
            own = any(place.is_relative_to(home / name) for name in ("tmp", "record"))
            if self.details and not own and place != Path(os.devnull):
                self.details.note_place(self.details.wrote, str(place))
            inside = any(place.is_relative_to(directory) for directory in ignored)
            if not inside and "__pycache__" not in place.parts and str(place) not in written:
                written.append(str(place))

        is_finalizing = sys.is_finalizing

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            # A library may still write while Python shuts down and this module's names are gone.
            if is_finalizing():
                return
            if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
                note(arguments[0], keep=not arguments[2] & os.O_TRUNC)
            for index in CHANGING.get(event, ()):
                links.own(arguments[index])

        def hook(module: Any, name: str, place: int | str, tell: Callable[[Any], None] = note) -> None:
            original = getattr(module, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                path: Any = kwargs.get(place) if isinstance(place, str) else next(iter(args[place:]), None)
                if self.tf.is_tensor(path):
                    path = path.numpy() if hasattr(path, "numpy") else None
                tell(path)
                return original(*args, **kwargs)

            setattr(module, name, call)

        make_directory = tempfile.mkdtemp

        def mkdtemp(*args: Any, **kwargs: Any) -> Any:
            made = make_directory(*args, **kwargs)
            self.record.temporary.append(os.path.relpath(os.fsdecode(made), home))
            return made

        tempfile.mkdtemp = mkdtemp
        for module, name, place in NATIVE_WRITERS:
            hook(importlib.import_module(module), name, place)
        for name in ("CreateDir", "RecursivelyCreateDir", "DeleteFile", "DeleteRecursively"):
            hook(importlib.import_module(NATIVE_WRITERS[0][0]), name, 0, links.own)
        hook(self.tf.compat.v1.train.Saver, "save", 2, links.own)
        if "h5py" in sys.modules:
            h5f: Any = sys.modules["h5py"].h5f
            open_file = h5f.open

            def opened(path: Any, flags: int = h5f.ACC_RDWR, *args: Any, **kwargs: Any) -> Any:
                if flags & h5f.ACC_RDWR:
                    links.own(path)
                return open_file(path, flags, *args, **kwargs)

            h5f.open = opened
            hook(h5f, "create", 0)
        sys.addaudithook(audit)
        if others and others.folders and self.stopping:
            self.stopping.waited = others.look
            self.hook_waiting(others.look)

    def hook_waiting(self, look: Callable[[], None]) -> None:
        """Call `look` after every Python call by which a rank waits for others."""

        def hook(owner: Any, name: str) -> None:
            original = getattr(owner, name)

            # AutoGraph does not convert functions defined here, nor their callees.
            def call(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                look()
                return result

            setattr(owner, name, call)

        hook(time, "sleep")
        if importlib.util.find_spec("horovod"):
            operations: Any = importlib.import_module("horovod.tensorflow.mpi_ops").MPI_LIB
            for name in dir(operations):
                if COLLECTIVE.match(name):
                    hook(operations, name)
