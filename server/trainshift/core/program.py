"""Program: a script, or the linked scripts of several files, and the facts about them.

Each fact is computed when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trainshift.core.choices import Choices
from trainshift.libraries.entries import go_by
from trainshift.python.names.script import Script
from trainshift.python.source.offset_map import OffsetMap
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement

T = TypeVar("T")


class Program:
    """One script with its facts; rules are pure functions of it.

    A fact is an object of a class whose constructor takes only a program (`Steps`, `Loops`, ...).  The
    program does not import these classes, so a rule can read only the facts whose classes it imports.
    `choices` are those of the user.
    """

    def __init__(
        self,
        script: Script,
        whole: Program | None = None,
        choices: Choices | None = None,
        origin: tuple[Program, OffsetMap] | None = None,
        *,
        is_excerpt: bool = False,
    ) -> None:
        self.script = script
        self.whole = whole or self
        self.choices: Choices = (whole.choices if whole else choices) or Choices()
        self.origin = origin
        """The program that this one was made of before rules were asked, and the way from its text."""
        self.is_excerpt = is_excerpt
        """True if statements of its file are left out, so that some uses of a name are missing."""
        self.names = script.names
        self._facts: dict[Callable[[Program], Any], Any] = {}
        self._linked: dict[Script, Program] = {}

    def fact(self, kind: Callable[[Program], T]) -> T:
        """The fact of a kind: ``program.fact(Steps)`` computes a `Steps` on the first call, and keeps it.

        Its later answers also use the libraries of this program's project.
        """
        go_by(self.choices.libraries)
        if kind not in self._facts:
            self._facts[kind] = kind(self)
        return self._facts[kind]  # type: ignore[no-any-return]

    def linked(self, script: Script) -> Program:
        """The facts of another script of the workspace."""
        if script is self.script:
            return self
        if script not in self._linked:
            self._linked[script] = Program(script, self)
        return self._linked[script]

    def at(self, code: Scope | Statement | Site) -> Program:
        """The program of the file that contains some code; itself if there is only one file."""
        scope = code if isinstance(code, Scope) else code.scope
        return self.linked(self.script.home(scope))

    def holds(self, code: Scope | Statement | Site) -> bool:
        """Return whether some code of the whole program is in this program's file."""
        return self.whole.at(code) is self

    @property
    def is_whole(self) -> bool:
        """Return whether the program is not one file of several."""
        return self.whole is self

    @property
    def is_started(self) -> bool:
        """Return whether the program's file is the started one."""
        return self.whole.files[0] is self

    @property
    def files(self) -> list[Program]:
        """The programs of the single files, the start file first; itself if there is only one file."""
        return [self.linked(each) for each in self.script.scripts]

    def start_of(self, file: Program) -> int:
        """The offset of the text of one of the `files` in the joined text."""
        return self.script.start_of(file.script)

    def forget(self) -> None:
        """Free all facts about the program at once; it must not be used afterwards.

        The facts refer to each other, and Python's garbage collection would take longer than half a check.
        Parsed files stay.
        """
        script, names, workspace = self.script, self.script.names, self.script.workspace
        self.forget_facts()
        if workspace is not None:
            workspace.forget()
        for each in (names, script):
            vars(each).clear()

    def forget_facts(self) -> None:
        """Forget the facts of the program, but not those of its files' scripts, which others may share."""
        script, programs = self.script, [self, *self._linked.values()]
        own = () if script in script.scripts else (script.names, script)
        held = [fact for program in programs for fact in program._facts.values() if hasattr(fact, "__dict__")]
        for fact in held:
            # Some facts hold cycles. They break these here, so that reference counting frees them.
            if hasattr(fact, "dissolve"):
                fact.dissolve()
        for each in (*held, *programs, *own):
            vars(each).clear()

    def elsewhere(self, script: Script) -> Script | None:
        """The script if it is not the program's first, which a related place needs; otherwise None."""
        return None if script is self.script else script
