"""Entry: the command `trainshift`.  An editor waits for its server, which starts without the command line."""

from __future__ import annotations

import sys

from trainshift.interrupts import install

# Loading `typing` takes noticeable time, even for a person who interrupts the command.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command that the arguments name."""
    if sys.argv[1:2] == ["server"]:
        from trainshift.lsp.start import may_serve, serve_stdio

        if may_serve(sys.argv[2:]):
            sys.exit(serve_stdio())
    install()
    from trainshift.cli.main import main as run

    run()
