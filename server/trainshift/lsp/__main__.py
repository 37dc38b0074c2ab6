"""Run `trainshift server` as `python -m trainshift.lsp`."""

from __future__ import annotations

import sys

from trainshift.lsp.start import may_serve, serve_stdio

if may_serve(sys.argv[1:]):
    sys.exit(serve_stdio())

from trainshift.lsp.command import server

server(prog_name="python -m trainshift.lsp")
