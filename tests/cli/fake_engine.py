"""A stand-in for the engine: small, and it answers everything that the command line has to show.

Run as a script it is the `trainshift` command with this engine, for tests that need a real process.
"""

from __future__ import annotations

import ast
import re
import time
from pathlib import Path

from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion, Note, Status
from trainshift.engine.versions.runtime import Runtime

IMPORT = re.compile(r"^import tensorflow as tf(\r\n|\n|\r|\Z)", re.MULTILINE)
ADDED = "import horovod.tensorflow as hvd"


def convert(text: str, *, line: int | None = None, runtime: Runtime | None = None) -> Conversion:
    """Adds the Horovod import; comments in the script ask for the other answers."""
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
        doubts=(Note("HV02", 2, 3, "`opt` is an optimizer"),) if "# doubt" in text else (),
        withheld=(Note("HV05", 3, 5, "the variables cannot be seen"),) if "# withhold" in text else (),
    )


if __name__ == "__main__":
    conversion.convert = convert
    from trainshift.cli.main import main

    main()
