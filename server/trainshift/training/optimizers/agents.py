"""The optimizers of agents, which the library's own steps apply, and whether the script averages them."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import Site, hides_arguments
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.loops.agents import Agent, Agents
from trainshift.training.optimizers.graphs import Graphs

_UNSEEN = "Trainshift cannot see the optimizers of this agent; give it them by name: optimizer=..."
_GRAPH = "an agent in a TF1 graph is not converted; run it eagerly, as TensorFlow 2 does"
_UNNAMED = (
    "give the agent a name, and call its initialize() as a statement, after which its variables are broadcast"
)


class AgentOptimizers:
    """The optimizers of a program's agents."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._agents = program.fact(Agents)

    @cached_property
    def bare(self) -> list[tuple[Agent, ast.expr]]:
        """The optimizer arguments of agents that do not average yet."""
        if not self._agents.trainings:
            return []
        averages = self._program.fact(OwnHorovod).averages
        return [
            (agent, each)
            for agent in self._agents.all
            for each in agent.optimizers
            if not averages(Occurrence(each, agent.site.scope, agent.site.statement))
        ]

    @property
    def problem(self) -> tuple[Site, str] | None:
        """The reason why training agents cannot be converted, and the place; None if they can."""
        if not self._agents.trainings:
            return None
        if self._program.fact(Graphs).is_used:
            return self._agents.trainings[0], _GRAPH
        for agent in self._agents.all:
            if not agent.optimizers or hides_arguments(agent.site.node):
                return agent.site, _UNSEEN
        for each in self._agents.beginnings:
            if not each.name or not isinstance(each.statement.node, ast.Expr | ast.Assign):
                return each.site, _UNNAMED
        return None

    @property
    def is_broadcast(self) -> bool:
        """Return whether the script broadcasts by Horovod itself."""
        return bool(self._program.fact(Horovod).calls("broadcast_variables"))
