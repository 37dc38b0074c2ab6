"""Delivery: write converted files to their destination, all or none."""

from __future__ import annotations

import os
from collections.abc import Sequence

from trainshift.cli.diff import STANDARD_INPUT_NAME
from trainshift.cli.documents import Document
from trainshift.cli.options import STANDARD_STREAM
from trainshift.cli.programs.changes import ChangedFile
from trainshift.cli.programs.request import Request, is_directory
from trainshift.cli.programs.sources import home
from trainshift.cli.report import Mode, listed
from trainshift.cli.streams import print_bytes
from trainshift.engine.conversion import Conversion, Status
from trainshift.engine.workspace import ParsedFiles
from trainshift.host.disk import absolute
from trainshift.host.files import FileProblem, shown_path
from trainshift.host.writing import write_below, write_in_place, write_output, write_together


def deliver_text(document: Document, after: Document, result: Conversion, request: Request) -> bool:
    """Write one converted text to its destination; return whether that was done. Raises FileProblem.

    A file that nothing changes is not touched; a filter or -o FILE gets the text anyway, but no output if the
    script is refused.
    """
    if result.status is Status.REFUSED or request.mode in (Mode.DIFF, Mode.CHECK):
        return False
    file, output = document.file, request.output
    is_stream = file.path == STANDARD_INPUT_NAME
    if request.mode is Mode.OUTPUT and not is_stream and is_directory(output, several=bool(request.folder)):
        if after.file.text == file.text:
            return False
        path = home(file.path)
        write_below(output, [(_below(path, [path], request), file, after.file.text)], [file.path])
    elif request.mode is Mode.OUTPUT and output != STANDARD_STREAM:
        write_output(output, file, after.content(output))
    elif request.mode is Mode.OUTPUT or is_stream:
        print_bytes(file.encode(after.file.text))
    elif after.file.text != file.text:
        write_in_place(file, after.file.text, "; use -o OUT")
    else:
        return False
    return True


def deliver_program(
    document: Document,
    after: Document,
    changed: Sequence[ChangedFile],
    result: Conversion,
    request: Request,
    named: Sequence[str],
    files: ParsedFiles,
) -> bool:
    """Write the changed files of a program to the requested destination; return whether that was done.

    `named` are the files that the user named.  Raises FileProblem, with nothing changed.
    """
    if result.status is Status.REFUSED or request.mode in (Mode.DIFF, Mode.CHECK):
        return False
    read = [each.path for each in result.files]
    if request.mode is Mode.OUTPUT and not is_directory(request.output, several=True):
        _deliver_one(document, after, changed, result, request)
        return True
    if not changed:
        return False
    if request.mode is Mode.OUTPUT:
        texts = [(_below(each.path, read, request), each.file, each.text) for each in changed]
        write_below(request.output, texts, read)
    else:
        root = _root(read, files)
        write_together([(each.file, each.text) for each in changed], named, root)
    return True


def _root(program: Sequence[str], files: ParsedFiles) -> str:
    """The directory of a program's files: the project's; without a project, their own."""
    directory = os.path.commonpath([os.path.dirname(each) for each in program])
    above = directory
    while not files.is_root(above):
        if above == os.path.dirname(above):
            return directory
        above = os.path.dirname(above)
    return above


def _deliver_one(
    document: Document,
    after: Document,
    changed: Sequence[ChangedFile],
    result: Conversion,
    request: Request,
) -> None:
    """Write the start file, or the requested one, as one text."""
    start = result.files[0].path
    wanted = home(request.only) if request.only else start
    others = [shown_path(each.path) for each in changed if each.path != wanted]
    if others:
        raise FileProblem(
            f"changes together with {listed(others)}, and {request.output} is one file; name a directory "
            "with -o DIR, or one file of the program with --only FILE"
        )
    file, text = document.file, document.file.text
    for each in changed:
        file, text = each.file, each.text
    if request.output == STANDARD_STREAM:
        print_bytes(file.encode(text))
    else:
        content = after.content(request.output) if wanted == start else text
        write_output(request.output, file, content)


def _below(path: str, program: Sequence[str], request: Request) -> str:
    """The place below DIR of a file: its path in the named folder, or in its program's folder."""
    if request.folder:
        base = absolute(request.folder)
    else:
        base = os.path.commonpath([os.path.dirname(each) for each in program])
        while os.path.isfile(os.path.join(base, "__init__.py")):
            base = os.path.dirname(base)
    relative = os.path.relpath(path, base)
    if relative.startswith(os.pardir):
        raise FileProblem(
            f"lies outside of {request.folder}, so it has no place below {request.output}; "
            "name the directory that holds the whole program",
            path=shown_path(path),
        )
    return relative
