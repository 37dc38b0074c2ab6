"""Entry: the command `trainshift`.  An editor waits for its server, which starts without the command line."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from trainshift.interrupts import end_at_once


def main() -> NoReturn:
    """Run the command that the arguments name."""
    if sys.argv[1:2] == ["server"]:
        from trainshift.lsp.start import may_serve, serve_stdio

        if may_serve(sys.argv[2:]):
            sys.exit(serve_stdio())
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    from trainshift.cli.main import main as run

    run()
