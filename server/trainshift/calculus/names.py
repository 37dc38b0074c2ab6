"""Names: which are free, which are new, and terms that differ in nothing else.

A name is letters and digits, then marks, then primes.  The marks are `^` for a hat, which names a pair, and
`~` for a tilde.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trainshift.calculus.syntax import IGNORED, Const, Fst, Let, Snd, Term, Var, rebuilt
from trainshift.calculus.trampoline import Work, run

_NAME = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]*)(?P<marks>[~^]*)(?P<primes>'*)")
_MISSING: Any = object()


def hatted(name: str) -> str:
    """The name of the pair whose first is `name`: `y^` for `y`, `y^'` for `y'`."""
    plain = name.rstrip("'")
    return f"{plain}^{name[len(plain) :]}"


def primed(name: str) -> str:
    """The name of the second of a pair whose first is `name`."""
    return f"{name}'"


def is_hatted(name: str) -> bool:
    """Return whether it is the name of a pair."""
    return "^" in name


class Names:
    """All names that are in use, and new ones."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[tuple[str, str], int] = {}

    def fresh(self, wanted: str) -> str:
        """`wanted`, or the name with another number if it is in use."""
        return self._fresh(wanted, lambda name: [name])

    def fresh_pair(self, wanted: str) -> tuple[str, str, str]:
        """New names for a pair, its first and its second: `y^`, `y` and `y'`, with one number."""
        name = self._fresh(wanted, lambda name: [name, hatted(name), primed(name)])
        return hatted(name), name, primed(name)

    def _fresh(self, wanted: str, all_of: Callable[[str], list[str]]) -> str:
        name = wanted
        parts = _NAME.fullmatch(wanted)
        assert parts
        key = (parts["stem"], parts["marks"] + parts["primes"])
        while not self._used.isdisjoint(all_of(name)):
            number = self._next[key] = self._next.get(key, 0) + 1
            name = f"{parts['stem']}{number}{parts['marks']}{parts['primes']}"
        self._used.update(all_of(name))
        return name


def names_in(term: Term) -> set[str]:
    """Every name in a term, bound or free."""
    found, waiting = set(), [term]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Var):
            found.add(each.name)
        for field, binder in each.SCOPES:
            waiting.append(getattr(each, field))
            if binder:
                found.add(getattr(each, binder))
    return found


def free_names(term: Term) -> list[str]:
    """The names that are read and not bound, each once, in order."""
    return [*dict.fromkeys(name for _, name, binder in variables(term) if binder is None)]


def variables(term: Term) -> Iterator[tuple[Var, str, tuple[int, str] | None]]:
    """Yield each variable with its name and its binder: the `id` of the construct and the field of
    the name.
    """
    bound: dict[str, Any] = {}
    waiting: list[Any] = [term]
    while waiting:
        each = waiting.pop()
        if each.__class__ is tuple:  # (a name, its previous meaning): a scope begins or ends
            name, meaning = each
            if meaning is _MISSING:
                del bound[name]
            else:
                bound[name] = meaning
        elif each.__class__ is Var:
            yield each, each.name, bound.get(each.name)
        else:
            waiting += _parts(each, bound)


def _parts(term: Term, bound: dict[str, Any]) -> Iterator[Any]:
    """Yield the subterms of a construct with the beginnings and ends of their scopes, last one first."""
    for field, binder in reversed(term.SCOPES):
        if binder:
            name = getattr(term, binder)
            yield name, bound.get(name, _MISSING)
            yield getattr(term, field)
            yield name, (id(term), binder)
        else:
            yield getattr(term, field)


def apart(term: Term) -> tuple[Term, Names]:
    """The term with every name bound once and different from the free ones, and its names.

    Names stay as they are where they can.  A pair and its parts, which a hat names, get the same number.
    """
    names = Names(free_names(term))
    meanings: dict[str, str] = {}

    def renamed(term: Term) -> Work[Term]:
        if isinstance(term, Var):
            return Var(meanings.get(term.name, term.name))
        if isinstance(term, Const):
            return term
        changed: dict[str, Any] = {}
        for field, binder in term.SCOPES:
            part = getattr(term, field)
            if binder is None:
                changed[field] = yield renamed(part)
                continue
            name = getattr(term, binder)
            before = meanings.get(name)
            meanings[name] = changed[binder] = chosen(term, name)
            changed[field] = yield renamed(part)
            if before is None:
                del meanings[name]
            else:
                meanings[name] = before
        return rebuilt(term, changed)

    parts_of_pairs: dict[int, str] = {}

    def chosen(term: Term, name: str) -> str:
        if name == IGNORED:
            return name
        if id(term) in parts_of_pairs:
            return parts_of_pairs.pop(id(term))
        if isinstance(term, Let) and (parts := parts_of_pair(term)):
            pair, first, second = names.fresh_pair(parts[0].name)
            parts_of_pairs[id(parts[0])], parts_of_pairs[id(parts[1])] = first, second
            return pair
        return names.fresh(name)

    return run(renamed(term)), names


def parts_of_pair(term: Let) -> tuple[Let, Let] | None:
    """The two lets that bind the parts of a pair, if `term` is `let ŷ = e1 in e2` in full."""
    first = term.body
    if not (isinstance(first, Let) and isinstance(first.value, Fst) and isinstance(first.body, Let)):
        return None
    second = first.body
    if not isinstance(second.value, Snd) or term.name != hatted(first.name):
        return None
    both = (first.value.of, second.value.of)
    named = all(isinstance(each, Var) and each.name == term.name for each in both)
    return (first, second) if named and second.name == primed(first.name) else None


def difference(one: Term, other: Term) -> tuple[Term, Term] | None:
    """The first parts in which two terms differ, apart from bound names; None if there are none."""
    for (here, said), (there, also_said) in zip(_outline(one), _outline(other), strict=True):
        if said != also_said:
            return here, there
    return None


def alpha_equal(one: Term, other: Term) -> bool:
    """Return whether two terms are equal, apart from bound names."""
    return difference(one, other) is None


def _outline(term: Term) -> Iterator[tuple[Term, object]]:
    """Yield a term from its root, left to right; two outlines are equal if the terms are, apart from bound
    names.
    """
    numbers: dict[str, Any] = {}
    waiting: list[Any] = [term]
    count = 0
    while waiting:
        each = waiting.pop()
        if each.__class__ is tuple:
            name, meaning = each
            if meaning is _MISSING:
                numbers.pop(name, None)
            elif meaning.__class__ is tuple:
                count += 1
                numbers[name] = count
            else:
                numbers[name] = meaning
        elif each.__class__ is Var:
            yield each, (Var, numbers.get(each.name, each.name))
        else:
            if each.__class__ is Const:
                yield each, (Const, each.value, each.value.__class__ is float)
            else:
                yield each, each.__class__
            waiting += _parts(each, numbers)
