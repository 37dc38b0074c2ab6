"""The server's own log: a file, or standard error."""

from __future__ import annotations

import logging
import sys


def log_to(path: str | None, verbose: bool) -> None:
    """Write the log to a file, or warnings to standard error; raises OSError."""
    level = logging.DEBUG if verbose else logging.INFO if path else logging.WARNING
    handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Our own protocol reports malformed messages, in one line.
    logging.getLogger("pygls").setLevel(logging.INFO if verbose else logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
