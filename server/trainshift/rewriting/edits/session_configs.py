"""The edits that configure a session and keep its directories to rank 0, shared by several rules."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.source.edit import Edit, Withheld
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.python.syntax.precedence import alternative
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.sessions import CONFIGURED, Configuration, Sessions


def proto(program: Program, site: Site, v1: str, first: str = "") -> str:
    """The code of a configuration that names the GPU of the rank."""
    options = (
        f"{v1}.GPUOptions(visible_device_list=str({program.at(site).fact(Prerequisites).hvd}.local_rank()))"
    )
    return f"{v1}.ConfigProto({first}gpu_options={options})"


def configured(
    program: Program, site: Site, name: str, configuration: Configuration, others: Mapping[str, str]
) -> tuple[Edit, ...]:
    """Edits that give a call without configuration one, preceded by `others` as keyword arguments."""
    added = dict(others)
    edits: tuple[Edit, ...] = ()
    if configuration.missing:
        first = "allow_soft_placement=True, " if CONFIGURED[name] == "session_config" else ""
        text = proto(program, site, program.fact(Sessions).spelling(site), first)
        if configuration.given is None:
            added[CONFIGURED[name]] = text
        else:
            if isinstance(configuration.given, ast.Constant):
                edits = program.fact(Layout).replace(configuration.given, site, text)
            else:
                edits = program.fact(Layout).put(configuration.given, site, alternative(text))
    return (*edits, *program.fact(Layout).add_keywords(site, added))


def hidden(report: Report, site: Site, configuration: Configuration) -> Withheld:
    """The reason why a session is not pinned to a GPU."""
    return report.withheld(site, f"the configuration of the session is left as it is: {configuration.hidden}")
