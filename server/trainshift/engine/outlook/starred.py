"""Starred: possible training by names that only ``from … import *`` of an unknown module can bind."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.libraries.common import ROOTS, is_common
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function, Instance, Unknown
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, root_name
from trainshift.training.loops.loop_kinds import FITTING
from trainshift.training.loops.loop_reader import is_strange

# The start of loops other than `fit`, and a method that is called in such a loop.
_STARTS = {
    "GradientTape": ("gradient", "apply_gradients"),
    "Session": ("run",),
    "InteractiveSession": ("run",),
    "MonitoredTrainingSession": ("run",),
    "Estimator": ("train", "train_and_evaluate"),
}


def hidden_start(program: Program) -> tuple[Site, str] | None:
    """A tape, session or Estimator that may not be TensorFlow's, and the star import or similar code that
    hides it.
    """
    script = program.script
    for site in script.sites_named(*_STARTS) if _unseen(script) else ():
        name = root_name(site.node.func)
        if name is not None and _is_unknown(program, name, site):
            if next(script.sites_named(*_STARTS[site.name]), None) is not None:
                return site, _reason(script, name.id)
    return None


def hidden_fit(program: Program) -> tuple[Site, str] | None:
    """A `fit` of a possible Keras model, and the star import or similar code that hides its class."""
    script = program.script
    for site in script.sites_named(*FITTING) if _unseen(script) else ():
        function = site.node.func
        if isinstance(function, ast.Attribute) and _is_unknown(program, function.value, site):
            if not any(isinstance(value, Function) for value in program.names.callee(site)):
                return site, _reason(script, one_line(script.text(function.value, site)))
    return None


def _is_unknown(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether the script does not show an expression's value."""
    values = program.names.site_values(node, site)
    made = [value.cls for value in values if isinstance(value, Instance)]
    unseen = not values or any(isinstance(value, Unknown) for value in values)
    return (unseen or any(map(is_strange, made))) and all(map(is_strange, made))


def _reason(script: Script, name: str) -> str:
    modules = " and ".join(_unseen(script))
    return f"{name} may come from {modules}, imported with *; import what trains by its name"


def _unseen(script: Script) -> list[str]:
    """The unknown modules that the script imports by ``*``."""
    return [
        module
        for module in script.code.star_imports
        if module.partition(".")[0] not in ROOTS
        and not is_common(module)
        and not (script.workspace is not None and script.workspace.locate(script, module)[0])
    ]
