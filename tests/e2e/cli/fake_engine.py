"""A stand-in for the engine: small, but with every answer that the command line shows.

Run as a script it is the `trainshift` command with this engine, for tests that need a real process.
"""

from __future__ import annotations

import ast
import posixpath
import re
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from trainshift.core.choices import Choices
from trainshift.engine import conversion
from trainshift.engine.claims import KeptClaims
from trainshift.engine.conversion import Conversion, Note, Rewritten, Status
from trainshift.engine.versions.runtime import Runtime
from trainshift.engine.workspace import ParsedFiles

IMPORT = re.compile(r"^import tensorflow as tf(\r\n|\n|\r|\Z)", re.MULTILINE)
ADDED = "import horovod.tensorflow as hvd"
LINKED = re.compile(r"^import (?!tensorflow|horovod)(\w+)", re.MULTILINE)
# A program has the best status of its files.
ORDER = (Status.REFUSED, Status.CONVERTED, Status.ALREADY_DISTRIBUTED, Status.NOTHING_FOUND)


def convert(
    text: str,
    *,
    line: int | None = None,
    runtime: Runtime | None = None,
    choices: Choices | None = None,
    apart: Sequence[int] = (),
) -> Conversion:
    """Add the Horovod import; comments in the script select other results."""
    if "# crash" in text:
        raise RecursionError("maximum recursion depth exceeded")
    if "# slow" in text:
        Path("started").touch()
        time.sleep(30)
    if "\0" in text:
        return Conversion(Status.REFUSED, text, reason="the script holds a null byte", position=(1, 1))
    try:
        ast.parse(text)
    except SyntaxError as error:
        position = (error.lineno or 1, error.offset or 1)
        return Conversion(Status.REFUSED, text, reason=f"does not parse: {error.msg}", position=position)
    if "# refuse" in text:
        return Conversion(Status.REFUSED, text, reason="HV04: it cannot be wrapped", position=(2, 3))
    if "horovod" in text:
        return Conversion(Status.ALREADY_DISTRIBUTED, text)
    match = IMPORT.search(text)
    if match is None or line not in (None, 1):
        return Conversion(Status.NOTHING_FOUND, text, reason="looked for a TensorFlow training loop")
    newline = match[1] or "\n"
    new = text[: match.end(0) - len(match[1])] + newline + ADDED + match[1] + text[match.end(0) :]
    new = re.sub(r"^print\(", "if hvd.rank() == 0: print(", new, flags=re.MULTILINE)
    return Conversion(
        Status.CONVERTED,
        new,
        applied=(Note("HV01", 1, 1, "Import Horovod"),),
        decisions=(Note("HV06", 2, 1, "the steps are divided"),) if "# decide" in text else (),
        doubts=tuple(
            Note("HV02", row, 3, "`opt` is an optimizer") for row in range(2, 2 + text.count("# doubt"))
        ),
        withheld=(Note("HV05", 3, 5, "the variables cannot be seen"),) if "# withhold" in text else (),
    )


def convert_program(
    text: str,
    path: str,
    files: ParsedFiles,
    *,
    at: tuple[str, int] | None = None,
    only: str = "",
    runtime: Runtime | None = None,
    claims: KeptClaims | None = None,
    choices: Choices | None = None,
    apart: Sequence[int] = (),
) -> Conversion:
    """Convert each file of the program on its own; the first file names the loop."""
    texts, unresolved = linked(text, path, files)
    wanted = [each for each in texts if (at is None or at[0] == each) and only in ("", each)]
    lines = {at[0]: at[1]} if at else {}
    parts = {each: conversion.convert(texts[each], line=lines.get(each), runtime=runtime) for each in wanted}
    first = min(parts, key=lambda each: ORDER.index(parts[each].status), default=path)
    result = parts.get(first) or Conversion(Status.NOTHING_FOUND, text)
    changes = result.status is Status.CONVERTED

    def notes(kind: str) -> tuple[Note, ...]:
        return tuple(
            replace(note, path="" if each == path else each)
            for each, part in parts.items()
            for note in getattr(part, kind)
        )

    return replace(
        result,
        text=parts[path].text if changes and path in parts else text,
        applied=notes("applied"),
        decisions=notes("decisions"),
        doubts=notes("doubts"),
        withheld=notes("withheld"),
        path="" if first == path else first,
        files=tuple(
            Rewritten(each, body, parts[each].text if changes and each in parts else body, ())
            for each, body in texts.items()
        ),
        unresolved=tuple(unresolved) if result.status is Status.NOTHING_FOUND else (),
        loops=(Note("", 2, 1, "GradTape", path="" if first == path else first),) if changes else (),
    )


def linked(text: str, path: str, files: ParsedFiles) -> tuple[dict[str, str], list[Note]]:
    """The texts of a program by path, the start file's first, and the unresolved imports."""
    texts = {path: text}
    unresolved = []
    for home in (waiting := [path]):
        for match in LINKED.finditer(texts[home]):
            other = posixpath.join(posixpath.dirname(home), f"{match[1]}.py")
            code = files.read(other)
            if code is None:
                line = texts[home].count("\n", 0, match.start()) + 1
                unresolved.append(Note("", line, 1, match[0], path="" if home == path else home))
            elif other not in texts:
                texts[other] = code.source.text
                waiting.append(other)
    return texts, unresolved


if __name__ == "__main__":
    conversion.convert = convert
    conversion.convert_program = convert_program
    from trainshift.cli.main import main

    main()
