"""Drawn alike: the draws that must be equal on all ranks, because data are divided after them or split by
them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import of_call
from trainshift.python.syntax.chunk_syntax import Site
from trainshift.training.data.divided_data import DividedData
from trainshift.training.datasets.draw_remedies import Draw, Remedies, Remedy
from trainshift.training.datasets.knowledge import Knowledge
from trainshift.training.datasets.pipelines import Pipelines
from trainshift.training.datasets.splits import Splits
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.ranks.sinks import Sinks


class DrawnAlike:
    """The draws of one program that are made equal on all ranks, and those that should be."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def divided(self) -> list[Draw]:
        """The draws of an order before a division of data; HV15 makes them equal on all ranks."""
        loops = self._program.fact(DividedData).loops
        return list(dict.fromkeys(draw for each in loops for place in each.places for draw in place.draws))

    @cached_property
    def splitting(self) -> list[Draw]:
        """The other draws by which data are split."""
        divided = {each.site for each in self.divided}
        found = (*self._program.fact(Splits).draws, *self._by_skipping())
        return [each for each in found if each.site not in divided and not self._is_sent(each)]

    @cached_property
    def stated(self) -> list[Draw]:
        """The draws that steer training, such as samples of parameters, which a fixed seed makes equal on
        all ranks.
        """
        remedies = self._program.fact(Remedies)
        divided = {each.site for each in (*self.divided, *self.splitting)}
        sites = (each.cause.site for each in self._program.fact(Sinks).divergences)
        found = dict.fromkeys(site for site in sites if site is not None and site not in divided)
        drawn = [Draw(site, remedies.remedy(site)) for site in found if remedies.is_free(site)]
        return [each for each in drawn if each.remedy in (Remedy.SEED, Remedy.STATE)]

    def _is_sent(self, draw: Draw) -> bool:
        """Return whether rank 0 already sends a drawn value, at the draw or in the next statement."""
        script, around = self._program.script, draw.site.parent
        if self._sends(around):
            return True
        below = script.following(draw.site.statement) if draw.remedy is Remedy.SENT_AFTER else None
        sent = below.node.value if below is not None and isinstance(below.node, ast.Assign) else None
        if not isinstance(sent, ast.Call) or not self._sends(sent) or not sent.args:
            return False
        return ast.unparse(sent.args[0]) == ast.unparse(draw.site.node.args[0])

    def _sends(self, node: ast.AST | None) -> bool:
        """Return whether an expression is a value that rank 0 sends to all."""
        sent = (each.node for each in self._program.fact(Horovod).calls("broadcast_object"))
        return any(node is each for each in sent)

    def _by_skipping(self) -> Iterator[Draw]:
        """Yield the shuffles of datasets of which one part is taken and the rest is also used.

        With a seed, all ranks would read one order, although nothing divides the data.
        """
        knowledge, pipelines = self._program.fact(Knowledge), self._program.fact(Pipelines)
        for skip in self._program.script.sites_named("skip"):
            root = pipelines.read(of_call(skip))
            for node in pipelines.upstream(root) if root.is_dataset else ():
                if node.site is not None and knowledge.draws_freely(node):
                    yield Draw(node.site, None)

    @cached_property
    def mended(self) -> frozenset[Site]:
        """The calls that are made equal on all ranks."""
        return frozenset(each.site for each in (*self.divided, *self.splitting, *self.stated) if each.remedy)

    @cached_property
    def is_sent(self) -> bool:
        """Return whether rank 0 sends the values that it draws to the others."""
        drawn = (each.remedy for each in (*self.divided, *self.splitting))
        return any(each is not None and each.is_sent for each in drawn)
