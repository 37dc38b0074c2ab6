"""Environments: environments, queues and simulations, whose results differ between ranks."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.execution.graph_slice import reaching_calls

ASKING = frozenset({"act", "poll", "recv", "reset", "step"})
"""Methods that ask an environment for something."""


class Worlds:
    """The environments that one program uses."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names

    def asked_by(self, at: Occurrence) -> list[Site]:
        """Return the calls of environments whose results reach an expression."""
        return reaching_calls(self._script, self._calls, *at[:3], False)

    @cached_property
    def _calls(self) -> dict[ast.Call, Site]:
        return {
            site.node: site
            for site in self._script.sites_named(*sorted(ASKING))
            if isinstance(site.node.func, ast.Attribute)
            and not self._names.full_names(site.node.func, site.scope, site.statement)
        }
