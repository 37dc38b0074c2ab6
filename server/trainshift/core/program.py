"""Program: everything that rules ask of one script, read lazily and shared by all of them.

What a conversion alone asks is imported where it is first asked for, so that a check starts soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainshift.core.creations import Creations
from trainshift.core.edit import Edit
from trainshift.core.effects import Effects
from trainshift.core.facts import Site
from trainshift.core.horovod import KERAS, TENSORFLOW, Horovod
from trainshift.core.imports import Imports
from trainshift.core.layout import Layout
from trainshift.core.lazy import cached_property
from trainshift.core.loops import Loops
from trainshift.core.patterns import GRAPH_PATTERNS, Pattern
from trainshift.core.readings import Readings
from trainshift.core.script import Script
from trainshift.core.setup import Setup
from trainshift.core.training import Training

if TYPE_CHECKING:
    from trainshift.core.callbacks import CallbackLists
    from trainshift.core.estimators import Estimators
    from trainshift.core.flags import Flags
    from trainshift.core.graphs import Graphs
    from trainshift.core.hooks import HookLists
    from trainshift.core.initializations import Initializations
    from trainshift.core.keras import Keras
    from trainshift.core.learning_rates import LearningRates
    from trainshift.core.rereads import Rereads
    from trainshift.core.root_only import RootOnly
    from trainshift.core.sessions import Sessions
    from trainshift.core.wraps import Wraps


class Program:
    """One script with its facts; rules are pure functions of it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.names = script.names
        self._linked: dict[Script, Program] = {}
        self.layout = Layout(script)
        self.readings = Readings(script)
        self.horovod = Horovod(script)
        self.training = Training(script, self.horovod, self._updates)
        self.setup = Setup(self)
        self.effects = Effects(script, self.training)

    def _updates(self) -> Iterator[Site]:
        """The calls that are training loops by themselves, or steps of a session's."""
        for loop in self.loops.own:
            yield from loop.sites

    @cached_property
    def eager_updates(self) -> set[Site]:
        """Those of the calls that train which are no operations of a TF1 graph."""
        eager = [loop for loop in self.loops.own if loop.pattern not in GRAPH_PATTERNS]
        return {site for loop in eager for site in loop.sites}

    @cached_property
    def needs(self) -> frozenset[str]:
        """The modules of Horovod that the rewritten script uses."""
        from trainshift.core.root_only import Form

        patterns = {loop.pattern for loop in self.loops.own}
        keras = {KERAS} if Pattern.OPTIMIZER in patterns else set()
        reloads = any(call.form is Form.RELOAD for call in self.root_only.calls)
        if self.training.steps or self.keras.batches or reloads or patterns != {Pattern.OPTIMIZER}:
            return frozenset({TENSORFLOW, *keras})
        return frozenset(keras)

    @cached_property
    def runs_eagerly(self) -> bool:
        """Whether something trains outside of a TF1 session, whose configuration names its GPU."""
        patterns = {loop.pattern for loop in self.loops.own}
        return not patterns or not patterns <= GRAPH_PATTERNS

    def elsewhere(self, script: Script) -> Script | None:
        """The script, or None if it is the program's first: where a related place stands."""
        return None if script is self.script else script

    @cached_property
    def imports(self) -> Imports:
        """How the script names TensorFlow, and what else it calls the module and its members."""
        return Imports(self.script, self.layout, self.readings)

    @cached_property
    def loops(self) -> Loops:
        """The training loops of the script and of what it reaches in other files."""
        return Loops(self)

    @cached_property
    def creations(self) -> Creations:
        """The datasets, optimizers and checkpoints that the script makes, and the names that hold them."""
        return Creations(self.script)

    def linked(self, script: Script) -> Program:
        """The facts of another script of the workspace."""
        if script is self.script:
            return self
        if script not in self._linked:
            self._linked[script] = Program(script)
        return self._linked[script]

    @cached_property
    def root_only(self) -> RootOnly:
        """What only rank 0 is to do."""
        from trainshift.core.root_only import RootOnly

        return RootOnly(self.script, self.horovod, self.training, self.effects)

    @cached_property
    def learning_rates(self) -> LearningRates:
        """The learning rates that are to be scaled."""
        from trainshift.core.learning_rates import LearningRates

        return LearningRates(self)

    @cached_property
    def flags(self) -> Flags:
        """The broadcast flags of the script."""
        from trainshift.core.flags import Flags

        return Flags(self)

    @cached_property
    def keras(self) -> Keras:
        """The Keras loops of the script, and the models that they train."""
        from trainshift.core.keras import Keras

        return Keras(self)

    @cached_property
    def callbacks(self) -> CallbackLists:
        """The callbacks of every `fit`."""
        from trainshift.core.callbacks import CallbackLists

        return CallbackLists(self)

    @cached_property
    def rereads(self) -> Rereads:
        """What every rank reads of what rank 0 has written."""
        from trainshift.core.rereads import Rereads

        return Rereads(self)

    @cached_property
    def wraps(self) -> Wraps:
        """The optimizers that are to be wrapped."""
        from trainshift.core.wraps import Wraps

        return Wraps(self)

    @cached_property
    def graphs(self) -> Graphs:
        """What trains in TensorFlow 1 graphs."""
        from trainshift.core.graphs import Graphs

        return Graphs(self)

    @cached_property
    def sessions(self) -> Sessions:
        """The TensorFlow 1 sessions and their configurations."""
        from trainshift.core.sessions import Sessions

        return Sessions(self)

    @cached_property
    def initializations(self) -> Initializations:
        """What gives the variables of sessions values."""
        from trainshift.core.initializations import Initializations

        return Initializations(self)

    @cached_property
    def estimators(self) -> Estimators:
        """The Estimators that the script makes."""
        from trainshift.core.estimators import Estimators

        return Estimators(self)

    @cached_property
    def hooks(self) -> HookLists:
        """The hooks of monitored sessions and Estimators."""
        from trainshift.core.hooks import HookLists

        return HookLists(self)

    @cached_property
    def requires(self) -> tuple[Edit, ...]:
        """The prerequisites of every change to this script."""
        rates, _ = self.learning_rates.all
        early = [call.site.statement for call in self.root_only.calls]
        early += [rate.statement for rate in rates]
        return self.setup.requires(
            self.flags.missing,
            self.root_only.needs_os,
            any(statement.scope.kind == "module" for statement in early),
        )
