"""Call binding: which argument of a call each parameter of a function gets, as Python's rules say."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum


class Source(Enum):
    """Where a parameter has its value from."""

    GIVEN = "the call gives it"
    DEFAULT = "the call does not give it, and it has a default"
    COLLECTED = "it collects what is left: `*rest`, `**options`"
    UNKNOWN = "an argument after `*` or `**` may give it"
    MISSING = "nothing gives it: the call fails"


@dataclass(frozen=True)
class Argument:
    """What a parameter gets: the expression that the call gives, its default, or those that it collects."""

    source: Source
    values: tuple[ast.expr, ...] = ()

    @property
    def given(self) -> ast.expr | None:
        """The one expression that the call gives, if it surely does."""
        return self.values[0] if self.source is Source.GIVEN else None


_UNKNOWN = Argument(Source.UNKNOWN)


def bind(call: ast.Call, parameters: ast.arguments, skipped: int = 0) -> dict[str, Argument]:
    """Return what each parameter of a function gets by a call.

    `skipped` is the number of first parameters that the call does not give: 1 for `self` of a bound method.
    These are not among the results.
    """
    positional = [*parameters.posonlyargs, *parameters.args]
    defaults = dict(zip((each.arg for each in positional[::-1]), parameters.defaults[::-1], strict=False))
    by_keyword = {word.arg: word.value for word in call.keywords if word.arg is not None}
    hides_keywords = any(word.arg is None for word in call.keywords)
    star = next((at for at, each in enumerate(call.args) if isinstance(each, ast.Starred)), None)
    plain = call.args[:star]
    positional_only = {each.arg for each in parameters.posonlyargs}
    taken: set[str] = set()
    found: dict[str, Argument] = {}
    for place, parameter in enumerate(positional[skipped:]):
        name = parameter.arg
        if place < len(plain):
            found[name] = Argument(Source.GIVEN, (plain[place],))
        elif name in by_keyword and name not in positional_only:
            taken.add(name)
            found[name] = Argument(Source.GIVEN, (by_keyword[name],))
        elif star is not None or (hides_keywords and name not in positional_only):
            found[name] = _UNKNOWN
        else:
            found[name] = _without(defaults.get(name))
    for parameter, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
        name = parameter.arg
        if name in by_keyword:
            taken.add(name)
            found[name] = Argument(Source.GIVEN, (by_keyword[name],))
        else:
            found[name] = _UNKNOWN if hides_keywords else _without(default)
    if parameters.vararg is not None:
        rest = tuple(plain[max(len(positional) - skipped, 0) :])
        found[parameters.vararg.arg] = _UNKNOWN if star is not None else Argument(Source.COLLECTED, rest)
    if parameters.kwarg is not None:
        left = tuple(value for name, value in by_keyword.items() if name not in taken)
        found[parameters.kwarg.arg] = _UNKNOWN if hides_keywords else Argument(Source.COLLECTED, left)
    return found


def _without(default: ast.expr | None) -> Argument:
    return Argument(Source.MISSING) if default is None else Argument(Source.DEFAULT, (default,))
