"""Program: everything that rules ask of one script, read lazily and shared by all of them."""

from __future__ import annotations

from functools import cached_property

from trainshift.core.creations import Creations
from trainshift.core.edit import Edit
from trainshift.core.effects import Effects
from trainshift.core.flags import Flags
from trainshift.core.horovod import Horovod
from trainshift.core.imports import Imports
from trainshift.core.layout import Layout
from trainshift.core.learning_rates import LearningRates
from trainshift.core.loops import Loops
from trainshift.core.readings import Readings
from trainshift.core.root_only import RootOnly
from trainshift.core.script import Script
from trainshift.core.setup import Setup
from trainshift.core.training import Training


class Program:
    """One script with its facts; rules are pure functions of it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.names = script.names
        self._linked: dict[Script, Program] = {}
        self.layout = Layout(script)
        self.readings = Readings(script)
        self.horovod = Horovod(script)
        self.training = Training(script, self.horovod)
        self.setup = Setup(script, self.horovod, self.layout)
        self.effects = Effects(script, self.training)
        self.root_only = RootOnly(script, self.horovod, self.training, self.effects)
        self.learning_rates = LearningRates(script, self.horovod, self.training)

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
    def flags(self) -> Flags:
        """The broadcast flags of the script."""
        return Flags(self.script, self.horovod, self.training)

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
