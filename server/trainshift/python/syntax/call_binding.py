"""The binding of a call's arguments to the parameters of the function that it calls."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")


class BoundCall(Struct, frozen=True):
    """The arguments of a call by parameter.

    `given` are the explicit arguments, positional ones first; `defaulted` the defaults of omitted ones;
    `missing` the parameters without a value. With `is_hidden`, `*` or `**` hides arguments, so that any of
    the parameters in `defaulted` and `missing` may get one. `surplus` are arguments without a parameter, or
    for `*args` and `**kwargs`.
    """

    given: Mapping[str, ast.expr]
    defaulted: Mapping[str, ast.expr]
    missing: tuple[str, ...]
    surplus: tuple[ast.expr, ...]
    is_hidden: bool

    @property
    def fits(self) -> bool:
        """Return whether each parameter certainly gets one argument, and each argument has a parameter."""
        return not (self.missing or self.surplus or self.is_hidden)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """The named parameters of a function, without `*args` and `**kwargs`, in order."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def parameter_names(arguments: ast.arguments) -> list[str]:
    """The names of all parameters, those of `*args` and `**kwargs` last."""
    rest = (arguments.vararg, arguments.kwarg)
    return [each.arg for each in (*parameters(arguments), *rest) if each is not None]


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of parameters, by name."""
    places = [*arguments.posonlyargs, *arguments.args]
    last = places[len(places) - len(arguments.defaults) :]
    found = {each.arg: default for each, default in zip(last, arguments.defaults, strict=True)}
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return found | {each.arg: default for each, default in by_name if default is not None}


def bind_values(
    arguments: ast.arguments, given: Sequence[T], words: Mapping[str, T], first: int = 0
) -> tuple[dict[str, T], list[T]]:
    """Bind positional and keyword values to parameters; also return the unbound values."""
    places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][first:]
    names = {each.arg for each in parameters(arguments)[first:]}
    names -= {each.arg for each in arguments.posonlyargs}
    bound, surplus = dict(zip(places, given, strict=False)), list(given[len(places) :])
    for name, value in words.items():
        if name in names and name not in bound:
            bound[name] = value
        else:
            surplus.append(value)
    return bound, surplus


def bind_call(call: ast.Call, arguments: ast.arguments, first: int = 0) -> BoundCall:
    """Bind the arguments of a call to parameters, except the `first` ones, such as `self`."""
    starred = next(
        (place for place, each in enumerate(call.args) if isinstance(each, ast.Starred)), len(call.args)
    )
    words = {word.arg: word.value for word in call.keywords if word.arg is not None}
    given, surplus = bind_values(arguments, call.args[:starred], words, first)
    hidden = starred < len(call.args) or any(word.arg is None for word in call.keywords)
    known = defaults(arguments)
    rest = [each.arg for each in parameters(arguments)[first:] if each.arg not in given]
    return BoundCall(
        given,
        {each: known[each] for each in rest if each in known},
        tuple(each for each in rest if each not in known),
        tuple(surplus),
        hidden,
    )
