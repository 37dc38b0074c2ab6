"""Program: one script, and what is known of it, each worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trainshift.core.names.script import Script

T = TypeVar("T")


class Program:
    """One script with its facts; rules are pure functions of it.

    A fact is an object of a class that is made of a program and nothing else (`Steps`, `Loops`, ...).  The
    program knows no such class, so a rule can read only the facts whose classes it imports.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.names = script.names
        self._facts: dict[Callable[[Program], Any], Any] = {}
        self._linked: dict[Script, Program] = {}

    def fact(self, kind: Callable[[Program], T]) -> T:
        """The one fact of a kind: ``program.fact(Steps)`` makes a `Steps` when first asked, and keeps it."""
        if kind not in self._facts:
            self._facts[kind] = kind(self)
        return self._facts[kind]  # type: ignore[no-any-return]

    def linked(self, script: Script) -> Program:
        """The facts of another script of the workspace."""
        if script is self.script:
            return self
        if script not in self._linked:
            self._linked[script] = Program(script)
        return self._linked[script]

    def forget(self) -> None:
        """Free at once what is known of the program; nobody may ask for any of it again.

        All of it refers to each other, and Python's search for what nobody refers to would take longer than
        half a check.  What was read stays.
        """
        script, programs = self.script, [self, *self._linked.values()]
        scripts = [script] if script.workspace is None else script.workspace.scripts
        held = [fact for program in programs for fact in program._facts.values() if hasattr(fact, "__dict__")]
        for each in (*held, *programs, *(other.names for other in scripts), script.workspace, script):
            if each is not None:
                vars(each).clear()

    def elsewhere(self, script: Script) -> Script | None:
        """The script, or None if it is the program's first: where a related place stands."""
        return None if script is self.script else script
