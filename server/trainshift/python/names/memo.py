"""The memo of resolved values, and of the questions that are still open, for scripts that are linked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import ANYTHING, NOTHING, Values

T = TypeVar("T")
Question: TypeAlias = tuple[object, ...]
# An end for absurd scripts.
_MOST_ANSWERS = 500_000
# An answer that still grows after so many rounds, such as that of ``x = x.child``, is unknown.
_MOST_ROUNDS = 6
# Questions are not followed through more questions than this, so that Python's stack is enough.
_DEEPEST = 120


class Questions(Generic[T]):
    """Questions that lead to each other, in circles too, and their answers, which only grow.

    A question that is asked again while it is being answered is first assumed to add `nothing`, then what it
    was found to give, until that is stable.  After the `most` answers, `deepest` questions inside of each
    other, and too many rounds the answer is `unknown`.
    """

    def __init__(self, nothing: T, unknown: T, most: int = _MOST_ANSWERS, deepest: int = _DEEPEST) -> None:
        self.known: dict[Question, T] = {}
        self._nothing = nothing
        self._unknown = unknown
        self._deepest = deepest
        self._open: dict[Question, int] = {}
        self._assumed: dict[Question, T] = {}
        self._cut = 0
        self._provisional: dict[Question, tuple[T, int]] = {}
        self._until: list[list[Question]] = []
        self._left = most
        self._pause: Callable[[], None] = lambda: None

    @property
    def is_idle(self) -> bool:
        """Whether no question is open, so that what is found is the last word."""
        return not self._open

    @contextmanager
    def pausing(self, pause: Callable[[], None]) -> Iterator[None]:
        """Until this ends `pause` is called before each new answer; it may raise to give up whatever asks."""
        before, self._pause = self._pause, pause
        try:
            yield
        finally:
            self._pause = before

    def is_open(self, question: Question) -> bool:
        """Whether a question is being answered just now."""
        return question in self._open

    def ask(self, question: Question, find: Callable[..., T], *given: object) -> T:
        """What `find` answers of what it is `given`, found once.

        An answer that was cut short by questions further out is not the last word; it is kept as long as
        all of these are open.  They are numbered by depth, and a set of them is an integer's bits.
        """
        known = self.known.get(question)
        if known is not None:
            return known
        if question in self._open:
            self._cut |= 1 << self._open[question]
            return self._assumed.get(question, self._nothing)
        if question in self._provisional:
            answer, cut = self._provisional[question]
            self._cut |= cut
            return answer
        depth = len(self._open)
        if self._left <= 0 or depth >= self._deepest:
            return self._unknown
        self._left -= 1
        self._pause()
        self._open[question] = depth
        outer = self._cut
        try:
            answer = self._round(find, *given)
            if self._cut >> depth & 1 and answer != self._nothing:
                answer = self._stable(question, depth, answer, find, *given)
        finally:
            del self._open[question]
            self._assumed.pop(question, None)
        cut = self._cut & ((1 << depth) - 1)
        if cut:
            self._provisional[question] = answer, cut
            self._until[cut.bit_length() - 1].append(question)
        else:
            self.known[question] = answer
        self._cut = outer | cut
        return answer

    def _round(self, find: Callable[..., T], *given: object) -> T:
        """What is found once, by what is assumed of open questions."""
        self._until.append([])
        self._cut = 0
        try:
            return find(*given)
        finally:
            for each in self._until.pop():
                del self._provisional[each]

    def _stable(self, question: Question, depth: int, answer: T, find: Callable[..., T], *given: object) -> T:
        """The least answer that a question, which leads to itself, gives when it is assumed."""
        for _ in range(_MOST_ROUNDS - 1):
            self._assumed[question] = answer
            answer = self._round(find, *given)
            if not self._cut >> depth & 1 or answer == self._assumed[question]:
                return answer
        return self._unknown


class Memo(Questions[Values]):
    """The values of what linked scripts say, and the questions that are still open."""

    def __init__(self, most: int = _MOST_ANSWERS) -> None:
        super().__init__(NOTHING, ANYTHING, most)
        self.flows: dict[Question, tuple[Occurrence, ...]] = {}
        """What leads to an occurrence, for `flow`, found while no question was open."""
