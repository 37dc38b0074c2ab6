"""Writing: replace files completely or not at all, each alone and several together."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from msgspec import Struct

from trainshift.host.files import FileProblem, SourceFile, describe

_CHANGED = "changed on disk while it was converted; nothing was written, run the command again"
_ALONE = "the file is as it was"
_TOGETHER = "all files of the program are as they were"
_ADVICE = {
    errno.ENOSPC: "Free some disk space and run the command again",
    errno.EDQUOT: "Free some of your quota and run the command again",
    errno.EROFS: "Write elsewhere with -o DIR",
    errno.EACCES: "Make it writable, or write elsewhere with -o DIR",
    errno.EPERM: "Make it writable, or write elsewhere with -o DIR",
}
_ELSE = "Run the command again when that is fixed"


def write_in_place(source: SourceFile, text: str, hint: str = "") -> None:
    """Replace the file that `source` was read from; mode, owner, encoding and symbolic link stay.

    `hint` is the suggestion for a device or a pipe, which cannot be replaced.

    Raises FileProblem, with the file unchanged, if that is not possible or the file has changed since it was
    read.
    """
    try:
        pending = _in_place(source, text, hint)
    except OSError as error:
        raise FileProblem(f"cannot be written: {describe(error)}; {_ALONE}") from error
    _put([pending])


def write_together(changes: Sequence[tuple[SourceFile, str]], named: Collection[str], root: str) -> None:
    """Replace several files, each as `write_in_place` does, or none of them.

    A file whose symbolic link leads out of the directory `root` is not written, unless the user `named` it.
    Two names of one file must have the same text.

    Raises FileProblem, which names its file, with all of them unchanged.
    """
    pending: dict[str, _Pending] = {}
    for source, text in changes:
        try:
            each = _in_place(source, text, "; use -o DIR")
            if source.path not in named:
                _refuse_outside(each.target, root)
            other = pending.setdefault(each.target, each)
            if other.data != each.data:
                raise FileProblem(
                    f"is the same file as {other.name}, and would get different text; import it by one name"
                )
        except OSError as error:
            raise _failed(error, source.path, _TOGETHER) from error
        except FileProblem as problem:
            raise FileProblem(problem.message, problem.position, source.path) from problem
    _put(list(pending.values()))


def write_below(
    directory: str, texts: Sequence[tuple[str, SourceFile, str]], read: Iterable[str] = ()
) -> None:
    """Write each text under its relative path below `directory`, in the manner of `write_output`, or none.

    Missing directories are created.  Raises FileProblem, with everything unchanged, also if one of the places
    is that of a `read` file.
    """
    made: list[str] = []
    taken = {os.path.realpath(path) for path in read}
    try:
        pending = []
        for relative, source, text in texts:
            path = os.path.join(directory, relative)
            if os.path.realpath(path) in taken:
                raise FileProblem(
                    f"{directory} holds the program itself; name another directory, or use --write"
                )
            try:
                _make_directories(os.path.dirname(os.path.realpath(path)), made)
                pending.append(_output(path, source, text))
            except OSError as error:
                raise _failed(error, path, "nothing was written") from error
            except FileProblem as problem:
                raise FileProblem(problem.message, path=path) from problem
        _put(pending, "nothing was written")
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                os.rmdir(each)
        raise


def write_output(path: str, source: SourceFile, text: str) -> None:
    """Write `text` to `path` in the encoding of `source`; raises FileProblem, with `path` as it was.

    A new file gets the mode of the source (less the umask); an existing one keeps its own.
    Devices and pipes are written to, not replaced.
    """
    data = source.encode(text)
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "wb") as stream:
                stream.write(data)
        elif source.info is not None and os.path.isfile(path) and os.path.samefile(path, source.path):
            write_in_place(source, text)
        else:
            _put([_output(path, source, text)], "nothing was written")
    except FileProblem as problem:
        raise FileProblem(f"{path} {problem.message}") from problem
    except OSError as error:
        raise FileProblem(f"{path} cannot be written: {describe(error)}; nothing was written") from error


class _Pending(Struct):
    """New content for `target`, which messages call `name`.

    The file gets the mode and owner in `keep`, else `mode`.  With `expected`, `target` must contain these
    bytes before anything is replaced.
    """

    name: str
    target: str
    data: bytes
    keep: os.stat_result | None = None
    mode: int = 0o600
    expected: bytes | None = None
    temporary: str = ""
    backup: str = ""
    inode: int = 0
    is_put: bool = False

    def prepare(self, is_last: bool) -> None:
        """Write the new bytes beside the target, complete and synced, and link the old file under a second
        name.

        The file replaced last is never restored, so it needs none.
        """
        self.temporary = self._beside(self.data)
        self.inode = os.stat(self.temporary).st_ino
        if self.keep is None or is_last:
            return
        backup = f"{self.temporary}.old"
        try:
            os.link(self.target, backup)
        except OSError:  # Not every file system has links.
            with open(self.target, "rb") as stream:
                backup = self._beside(stream.read())
        self.backup = backup

    def _beside(self, data: bytes) -> str:
        """Write a synced file with the attributes of the target, beside it."""
        import tempfile  # Only writing needs it, and it loads slowly.

        directory = os.path.dirname(self.target)
        descriptor, path = tempfile.mkstemp(prefix=".trainshift-", dir=directory)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                _set_attributes(path, self.target, self.keep, self.mode)
                os.fsync(stream.fileno())
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        return path

    def verify(self) -> None:
        """Raise FileProblem if the target's content has changed."""
        if self.expected is not None and _bytes_at(self.target) != self.expected:
            raise FileProblem(_CHANGED)

    def replace(self) -> None:
        """Put the new file at the target."""
        os.replace(self.temporary, self.target)
        self.is_put = True

    @property
    def is_replaced(self) -> bool:
        """Return whether the new file is at the target; an interrupt may come directly afterwards."""
        with suppress(OSError):
            return self.is_put or os.stat(self.target).st_ino == self.inode
        return False

    def restore(self) -> None:
        """Restore the old file if it was replaced."""
        if not self.is_replaced:
            return
        if self.backup:
            os.replace(self.backup, self.target)
        elif self.keep is None:
            os.unlink(self.target)

    def tidy(self) -> None:
        """Remove all files beside the target."""
        for path in (self.temporary, self.backup):
            with suppress(OSError):
                os.unlink(path)


def _put(pending: Sequence[_Pending], untouched: str = "") -> None:
    """Replace all targets or none; raises FileProblem, with the file's name if there are several."""
    several = len(pending) > 1
    untouched = untouched or (_TOGETHER if several else _ALONE)
    now = pending[0].name
    try:
        try:
            for each in pending:
                now = each.name
                each.prepare(is_last=each is pending[-1])
            for each in pending:
                now = each.name
                each.verify()
            for each in pending:
                now = each.name
                each.replace()
        except BaseException:
            _restore(pending)
            raise
    except FileProblem as problem:
        raise (FileProblem(problem.message, path=problem.path or now) if several else problem) from None
    except OSError as error:
        if several:
            raise _failed(error, now, untouched) from error
        raise FileProblem(f"cannot be written: {describe(error)}; {untouched}") from error
    finally:
        for each in pending:
            each.tidy()
    for directory in dict.fromkeys(os.path.dirname(each.target) for each in pending):
        _sync_directory(directory)


def _restore(pending: Sequence[_Pending]) -> None:
    """Restore replaced files; report those that cannot be restored, and the place of their old text."""
    if pending[-1].is_replaced:
        return  # All files were replaced: the run was stopped afterwards.
    lost = []
    for each in reversed(pending):
        try:
            each.restore()
        except OSError as error:
            lost.append(f"{each.name} was replaced and could not be restored: {describe(error)}")
            if each.backup:
                lost[-1] += f"; its old text is in {each.backup}"
                each.backup = ""
    if lost:
        raise FileProblem(f"cannot be written; {'; '.join(lost)}")


def _failed(error: OSError, name: str, untouched: str) -> FileProblem:
    advice = _ADVICE.get(error.errno or 0, _ELSE)
    return FileProblem(f"cannot be written: {describe(error)}; {untouched}. {advice}", path=name)


def _in_place(source: SourceFile, text: str, hint: str) -> _Pending:
    data = source.encode(text)
    info = os.stat(source.path)
    if not stat.S_ISREG(info.st_mode):
        raise FileProblem(f"is not a regular file, so it cannot be replaced{hint}")
    target = os.path.realpath(source.path)
    _refuse_read_only(target, info)
    return _Pending(source.path, target, data, info, expected=source.data)


def _output(path: str, source: SourceFile, text: str) -> _Pending:
    data = source.encode(text)
    target = os.path.realpath(path)
    if os.path.isdir(path):
        raise FileProblem("is a directory; -o takes the name of a file")
    if not os.path.exists(path):
        return _Pending(path, target, data, mode=_mode_of_new_file(source.info))
    info = os.stat(target)
    if not stat.S_ISREG(info.st_mode):
        raise FileProblem("is not a regular file, so it cannot be replaced")
    _refuse_read_only(target, info)
    return _Pending(path, target, data, info)


def _make_directories(directory: str, made: list[str]) -> None:
    """Create a directory and its missing parents; `made` collects the new ones, outermost first."""
    if os.path.isdir(directory):
        return
    _make_directories(os.path.dirname(directory), made)
    os.mkdir(directory)
    made.append(directory)


def _refuse_outside(target: str, root: str) -> None:
    inside = os.path.join(os.path.realpath(root), "")
    if not target.startswith(inside):
        raise FileProblem(
            f"is a link to {target}, outside of {root}; nothing was written. "
            "Put a copy in place of the link, or use -o DIR"
        )


def _refuse_read_only(target: str, info: os.stat_result) -> None:
    """Refuse to replace a read-only file, although renaming over it would succeed in a writable directory."""
    if not info.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise FileProblem(
            f"is read-only (mode {stat.S_IMODE(info.st_mode):04o}); nothing was written, chmod +w allows it"
        )


def _mode_of_new_file(source: os.stat_result | None) -> int:
    umask = os.umask(0)
    os.umask(umask)
    mode = source.st_mode & 0o777 if source is not None and stat.S_ISREG(source.st_mode) else 0o666
    return (mode | 0o600) & ~umask


def _set_attributes(temporary: str, target: str, keep: os.stat_result | None, mode: int) -> None:
    if keep is None:
        os.chmod(temporary, mode)
        return
    if sys.platform != "win32":
        with suppress(OSError):  # Only root may give files away; the content matters more.
            os.chown(temporary, keep.st_uid, keep.st_gid)
    os.chmod(temporary, stat.S_IMODE(keep.st_mode))
    if sys.platform == "linux":
        with suppress(OSError):  # Not every file system has extended attributes.
            for name in os.listxattr(target):
                os.setxattr(temporary, name, os.getxattr(target, name))


def _bytes_at(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def _sync_directory(directory: str) -> None:
    """Make the rename itself survive a power cut, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
