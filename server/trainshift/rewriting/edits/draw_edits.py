"""Draw edits: the edits that make all ranks draw alike, and the decisions about them."""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.libraries.divergence import SPLITTING
from trainshift.python.source.edit import Edit, innermost
from trainshift.python.syntax.precedence import Frame, Level, handed_to
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.datasets.draw_remedies import Draw, Remedy

_SAYS = {
    Remedy.SEED: "`{}` gets a seed, so that all ranks have one order",
    Remedy.STATE: "`{}` gets a seed, so that all ranks split the data alike",
    Remedy.GENERATOR: "`{}` gets a seed, so that all ranks have one order",
    Remedy.SENT: "rank 0 sends the others what `{}` draws, so that all ranks have one order",
    Remedy.SENT_AFTER: "rank 0 sends the others what `{}` draws, so that all ranks have one order",
}
_DRAWN = "`{}` gets a seed, so that all ranks draw alike"


def said_of(program: Program, draw: Draw) -> str:
    """Return the decision about a draw; nothing if it is not made alike."""
    if draw.remedy is Remedy.STATE and program.script.called_name(draw.site) not in SPLITTING:
        return _DRAWN.format(draw.site.name)
    return _SAYS[draw.remedy].format(draw.site.name) if draw.remedy is not None else ""


def made_alike(program: Program, draw: Draw) -> tuple[Edit, ...]:
    """Return the edits that make all ranks draw alike."""
    site, layout = draw.site, program.fact(Layout)
    if draw.remedy is Remedy.STATE:
        return layout.add_keyword(site, draw.remedy.value, "0")
    if draw.remedy in (Remedy.SEED, Remedy.GENERATOR):
        # Datasets that are zipped or mixed had orders of their own, which one seed would make equal.
        nodes = [each.node for each in program.at(site).script.sites_named(site.name)]
        seed = nodes.index(site.node) if site.node in nodes else 0
        if draw.remedy is Remedy.SEED:
            return layout.add_keyword(site, draw.remedy.value, str(seed))
        assert isinstance(site.node.func, ast.Attribute)
        return layout.put(site.node.func.value, site, Frame("", f".Random({seed})", Level.ATOM))
    sent = f"{program.at(site).fact(Prerequisites).hvd}.broadcast_object"
    if draw.remedy is Remedy.SENT:
        return innermost(layout.put(site.node, site, handed_to(sent, ", root_rank=0")))
    name = program.script.text(site.node.args[0], site)
    return (
        *layout.isolate(site.statement),
        layout.after(site.statement, [f"{name} = {sent}({name}, root_rank=0)"]),
    )
