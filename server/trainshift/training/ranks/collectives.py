"""Collectives: the calls that all ranks must make together, and the functions that lead to one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, arguments, children
from trainshift.python.values.backward_slice import sliced
from trainshift.python.values.call_chains import called_from, functions_leading_to
from trainshift.training.horovod.defects import at
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import COLLECTIVE
from trainshift.training.loops.loop_kinds import FITTING, Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.averaging import Averaging


class Collectives:
    """The collectives of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def sites(self) -> dict[Site, str]:
        """The calls that wait for all ranks themselves, each with a description."""
        found = {site: site.name for site in self._program.fact(Horovod).calls(*COLLECTIVE)}
        for gradient in self._program.fact(Steps).gradients:
            if gradient.wraps and not gradient.bare - gradient.wrapped:
                found[gradient.site] = "gradient"
        averaging = self._program.fact(Averaging)
        for loop in self._program.fact(Loops).own:
            if loop.pattern is not Pattern.OPTIMIZER:
                continue
            optimizers = loop.optimizers
            shared = bool(optimizers) and all(map(averaging.averages, optimizers))
            shared = shared or averaging.is_distributed(loop)
            if shared or any(map(averaging.averages, loop.models)):
                found |= {site: "fit" for site in loop.sites if site.name in FITTING}
        return found | dict.fromkeys(self.runs, "run")

    @cached_property
    def runs(self) -> dict[Site, list[Site]]:
        """The session calls that run collective operations, with the calls that create these operations."""
        averaging = self._program.fact(Averaging)
        made = [*self._program.fact(Horovod).calls(*COLLECTIVE)]
        for site in (*averaging.minimizers, *self._script.sites_named("compute_gradients")):
            if isinstance(site.node.func, ast.Attribute) and averaging.averages(
                at(site.node.func.value, site)
            ):
                made.append(site)
        wanted = {site.node: site for site in made}
        found: dict[Site, list[Site]] = {}
        for site in self._script.sites_named("run") if wanted else ():
            given = argument(site.node, 0, "fetches")
            if given is None or not isinstance(site.node.func, ast.Attribute):
                continue
            if self._names.member_of_library(site.node.func):
                continue
            reached = [wanted[node] for node in self._made_of(at(given, site)) if node in wanted]
            if reached:
                found[site] = reached
        return found

    def _made_of(self, fetched: Occurrence) -> Iterator[ast.Call]:
        """Yield the calls that create operations: fetched ones, and inputs of others, such as those of
        ``tf.group``.
        """
        for each in sliced(fetched, self._parts):
            if isinstance(each.node, ast.Call):
                yield each.node

    def _parts(self, at: Occurrence) -> Iterable[Occurrence]:
        """The inputs of an operation; for a function's result, also the arguments that choose among
        several.
        """
        node = at.node
        if isinstance(node, ast.Call):
            functions = self._names.called_functions(self._script.site_of(node))
            returns = [(scope, *scope.returns[0]) for scope in functions if len(scope.returns) == 1]
            returned = [Occurrence(value, scope, where) for scope, value, where in returns]
            return returned if functions else map(at.part, arguments(node))
        if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Starred | ast.IfExp | ast.BoolOp):
            return (at.part(part) for part in children(node) if isinstance(part, ast.expr))
        step = self._names.steps_back(at)
        return step.sources if step is not None else ()

    @cached_property
    def functions(self) -> dict[Scope, Site]:
        """The functions that always reach a collective, each with the first one."""
        found: dict[Scope, Site] = {}
        for site in reversed(self.sites):
            for function in functions_leading_to([site.scope.function()], called_from(self._names)):
                found.setdefault(function, site)
        return found

    @cached_property
    def calling(self) -> dict[Site, Site]:
        """The calls of functions that reach a collective, each with that collective."""
        found: dict[Site, Site] = {}
        for function, site in self.functions.items():
            for caller in self._names.callers(function)[0]:
                values = self._names.callee(caller)
                if any(isinstance(each, Function) and each.scope is function for each in values):
                    found[caller] = site
        return found
