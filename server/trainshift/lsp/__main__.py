"""`python -m trainshift.lsp` is `trainshift server`."""

from __future__ import annotations

from trainshift.lsp.command import server

server(prog_name="python -m trainshift.lsp")
