"""The memo of resolved values, and of open questions, for linked scripts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct, field

from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Keyed
from trainshift.python.names.values import ANYTHING, NOTHING, Values

T = TypeVar("T")
Question: TypeAlias = tuple[object, ...]
# A limit for absurd scripts.
_MOST_ANSWERS = 500_000
# An answer that still grows after this many rounds, such as that of ``x = x.child``, is unknown.
_MOST_ROUNDS = 6
# Questions are followed to this depth, so that Python's stack suffices.
_DEEPEST = 80


class _Undecided(Struct, Generic[T], eq=False):
    """A question without a final answer: it is open, or in a cycle with an open one.

    `index` is its place among the undecided ones, `low` that of the first one that it is known to lead to.
    """

    question: Question
    index: int
    low: int
    answer: T
    find: Callable[..., T]
    given: tuple[object, ...]
    readers: dict[_Undecided[T], None] = field(default_factory=dict)
    turns: int = 0
    is_open: bool = False
    is_stale: bool = False
    has_doubts: bool = False


class Questions(Generic[T]):
    """Questions that depend on each other, also in cycles, and their answers, which only grow.

    This is a local solver of equations.  A question is first assumed to be `nothing`.  The questions of a
    cycle, a strongly connected component of their dependencies, are decided together, once none of their
    answers grows: as long as one does, only its readers are answered again.  Components are found with
    Tarjan's algorithm, in the order in which questions are opened. Beyond `most` answers, `deepest` nested
    questions, or too many `rounds`, the answer is `unknown`.
    """

    def __init__(
        self,
        nothing: T,
        unknown: T,
        most: int = _MOST_ANSWERS,
        deepest: int = _DEEPEST,
        rounds: int = _MOST_ROUNDS,
    ) -> None:
        self.known: dict[Question, T] = {}
        self._nothing = nothing
        self._unknown = unknown
        self._left = most
        self._deepest = deepest
        self._rounds = rounds
        self._undecided: dict[Question, _Undecided[T]] = {}
        self._stack: list[_Undecided[T]] = []
        self._open: list[_Undecided[T]] = []
        self._pause: Callable[[], None] = lambda: None

    @property
    def is_idle(self) -> bool:
        """Return whether no question is open, so that the answers found are final."""
        return not self._open

    @contextmanager
    def pausing(self, pause: Callable[[], None]) -> Iterator[None]:
        """Call `pause` before each new answer inside the block; it may raise to abort."""
        before, self._pause = self._pause, pause
        try:
            yield
        finally:
            self._pause = before

    def is_open(self, question: Question) -> bool:
        """Return whether a question is being answered now; if so, the caller will be answered again later."""
        asked = self._undecided.get(question)
        if asked is None or not asked.is_open:
            return False
        reader = self._open[-1]
        reader.low = min(reader.low, asked.low)
        reader.has_doubts = reader is not asked
        return True

    def ask(self, question: Question, find: Callable[..., T], *given: object) -> T:
        """The result of ``find(*given)``, computed once; a preliminary one while a question that it needs
        is open.
        """
        known = self.known.get(question)
        if known is not None:
            return known
        asked = self._undecided.get(question)
        if asked is None:
            if self._left <= 0 or len(self._open) >= self._deepest:
                return self._unknown
            self._left -= 1
            index = len(self._stack)
            asked = _Undecided(question, index, index, self._nothing, find, given)
            self._undecided[question] = asked
            self._stack.append(asked)
            try:
                self._answer(asked)
                if asked.low == asked.index:
                    self._decide(asked)
            except BaseException:
                self._drop(asked)
                raise
            if asked.low == asked.index:
                return asked.answer
        reader = self._open[-1]
        reader.low = min(reader.low, asked.low)
        asked.readers[reader] = None
        return asked.answer

    def _answer(self, asked: _Undecided[T]) -> None:
        """Answer a question from the current knowledge; if the answer grows, answer its readers again."""
        self._pause()
        asked.is_open, asked.is_stale, asked.has_doubts = True, False, False
        asked.turns += 1
        self._open.append(asked)
        try:
            answer = asked.find(*asked.given)
        finally:
            self._open.pop()
            asked.is_open = False
        if answer != asked.answer:
            asked.answer = answer if asked.turns <= self._rounds else self._unknown
            for reader in asked.readers:
                reader.is_stale = reader.turns <= self._rounds or reader.answer != self._unknown
            asked.readers = {}

    def _decide(self, first: _Undecided[T]) -> None:
        """Answer the questions of a cycle, starting with the one opened first, until no answer grows.

        They stay undecided if they depend on a question that was opened earlier.
        """
        if first is self._stack[-1] and not first.is_stale:
            self.known[first.question] = first.answer
            del self._undecided[self._stack.pop().question]
            return
        while True:
            circle = self._stack[first.index :]
            stale = [each for each in reversed(circle) if each.is_stale]
            stale = stale or [each for each in circle if each.has_doubts]
            if not stale:
                break
            for each in stale:
                self._answer(each)
                first.low = min(first.low, each.low)
            if first.low < first.index:
                return
        for each in circle:
            self.known[each.question] = each.answer
        self._drop(first)

    def _drop(self, first: _Undecided[T]) -> None:
        """Forget a question, and those opened after it, as undecided ones."""
        for each in self._stack[first.index :]:
            del self._undecided[each.question]
        del self._stack[first.index :]


class Revisable(Questions[T]):
    """Questions whose answers depend on facts that may grow later: then they are forgotten, and asked again.

    Readers are questions, or outside code such as a function being read, which is `reading`.
    """

    def __init__(self, nothing: T, unknown: T, rounds: int) -> None:
        super().__init__(nothing, unknown, rounds=rounds)
        self._outside: list[Hashable] = []
        self._readers: dict[Hashable, set[Hashable]] = {}

    @contextmanager
    def reading(self, reader: Hashable) -> Iterator[None]:
        """Ask on behalf of a reader, inside the block."""
        self._outside.append(reader)
        try:
            yield
        finally:
            self._outside.pop()

    def ask(self, question: Question, find: Callable[..., T], *given: object) -> T:
        """The result of ``find(*given)``, computed once until it is forgotten."""
        self.note(question)
        return super().ask(question, find, *given)

    def note(self, key: Hashable) -> None:
        """Record that the current reader depends on a key: a question, or another fact that may grow."""
        if self._open:
            self._readers.setdefault(key, set()).add(self._open[-1].question)
        elif self._outside:
            self._readers.setdefault(key, set()).add(self._outside[-1])

    def forget(self, keys: Iterable[Hashable]) -> set[Hashable]:
        """Forget the answers that depend on some keys; return these, and everything that depends on them."""
        assert not self._open
        found = set(reachable(keys, lambda key: self._readers.pop(key, ())))
        for question in found & self.known.keys():
            del self.known[question]  # type: ignore[arg-type]
            self._left += 1
        return found


class Memo(Questions[Values]):
    """The resolved values of linked scripts, and the open questions."""

    def __init__(self, most: int = _MOST_ANSWERS) -> None:
        super().__init__(NOTHING, ANYTHING, most)
        self.flows: dict[Question, dict[tuple[int, int], tuple[Keyed, ...]]] = {}
        """The flows into an occurrence, by kind of slice, found while no question was open."""
