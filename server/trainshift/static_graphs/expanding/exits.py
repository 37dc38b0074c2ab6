"""Exits: `break`, `continue` and `return` that tensors decide on become flags and branches (PS06, PS07)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from trainshift.static_graphs.expanding.expressions import Expressions
from trainshift.static_graphs.expanding.ir import (
    Branch,
    Code,
    Exit,
    Form,
    Info,
    Kept,
    Loop,
    Plain,
    again,
    always_leaves,
    exits,
    reading_names,
    walk,
)
from trainshift.static_graphs.expanding.refusal import CannotExpand
from trainshift.static_graphs.reading.kinds import UNBOUND as UNBOUND_VALUE

_FLAG = Info(tensor=True, dtype="bool", rank=0)
_MOST_RETURNS = 4
_MOST_REPEATED = 12
_NAMES = {"break": "broke", "return": "returned", "continue": "skipped"}


@dataclass(slots=True)
class _Flagged:
    """The body of a loop with its exits as flags: those that stop it, how they begin, what comes after."""

    body: list[Form]
    stops: list[str] = field(default_factory=list)
    starts: list[Plain] = field(default_factory=list)
    after: list[Form] = field(default_factory=list)
    returned: list[Exit] = field(default_factory=list)


def _flagged(body: list[Form], node: ast.stmt, fresh: Callable[[str], str], write: Expressions) -> _Flagged:
    kinds = exits(body, *_NAMES)
    if not kinds:
        return _Flagged(body)
    returns = [each for each in walk(body) if isinstance(each, Exit) and each.kind == "return"]
    if len(returns) > _MOST_RETURNS:
        raise CannotExpand(returns[-1].node, "so many ways to return from one loop are not expanded")
    flags = {kind: fresh(name) for kind, name in _NAMES.items() if kind in kinds}
    for place, returned in enumerate(returns):
        returned.flag = fresh(_NAMES["return"]) if place else flags["return"]
    found = _Flagged(guarded(body, flags, write))
    for kind, first in flags.items():
        for name in [each.flag for each in returns] if kind == "return" else [first]:
            start = _flag(name, write, value=False)
            if kind == "continue":
                found.body.insert(0, start)
            else:
                found.starts.append(start)
                found.stops.append(name)
    write.applied("PS06" if kinds != {"return"} else "PS07", node)
    for returned in returns:
        write.applied("PS07", returned.node)
        test = Code(returned.flag, frozenset({returned.flag}))
        found.returned.append(replace(returned, flag=""))
        found.after.append(Branch(test, [found.returned[-1]], [], returned.node))
    return found


def leave_loop(loop: Loop, fresh: Callable[[str], str], write: Expressions) -> list[Form]:
    """The loop with its exits as flags that its test asks for; what is returned in it comes after it."""
    found = _flagged(loop.body, loop.node, fresh, write)
    loop.before += [*_counters_that_are_returned(loop, found.after, write), *found.starts]
    loop.body = found.body
    text = loop.test.text
    if not text and len(found.stops) == len(found.returned):
        found.after[-1:] = found.returned[-1:]  # Nothing but a `return` ends this loop.
    for name in found.stops:
        goes_on = f"{write.paddle}.logical_not({name})"
        text = f"{write.paddle}.logical_and({text}, {goes_on})" if text else goes_on
    loop.test = Code(text, loop.test.reads | frozenset(found.stops))
    return [loop, *found.after]


def _counters_that_are_returned(loop: Loop, after: list[Form], write: Expressions) -> Iterator[Plain]:
    """A value to begin with for the counters of inner loops that a `return` reads, where they have none."""
    function = write.knowledge.function
    statement = next(each for each in function.statements if each.node is loop.node)
    before = function.before.get(statement, {})
    returned = [each.value for each in walk(after) if isinstance(each, Exit) and each.value is not None]
    wanted = frozenset[str]().union(*map(reading_names, returned))
    for inner in walk(loop.body):
        for each in inner.before if isinstance(inner, Loop) else ():
            for name, info in each.gives.items():
                is_counter = info.tensor and info.number == "int" and info.dtype == "int64"
                if is_counter and name in wanted and before.get(name, UNBOUND_VALUE) == UNBOUND_VALUE:
                    gives = {name: Info(tensor=True, dtype="int64", rank=0)}
                    yield Plain([f"{name} = {write.number('0', 'int64')}"], binds=(name,), gives=gives)


def leave_kept(kept: Kept, fresh: Callable[[str], str], write: Expressions) -> list[Form]:
    """A loop through a container of Python's, whose further turns do nothing once a tensor has left it."""
    ((head, body),) = kept.blocks
    found = _flagged(body, kept.node, fresh, write)
    if found.stops:
        test = Code(_any(found.stops, write), frozenset(found.stops))
        found.body = [Branch(test, [], found.body, kept.node)]
    kept.blocks = [(head, found.body)]
    return [*found.starts, kept, *found.after]


def _any(flags: list[str], write: Expressions) -> str:
    """The condition that one of some flags is set."""
    test = flags[0]
    for name in flags[1:]:
        test = f"{write.paddle}.logical_or({test}, {name})"
    return test


def _flag(name: str, write: Expressions, *, value: bool) -> Plain:
    return Plain([f"{name} = {write.number(str(value), 'bool')}"], frozenset(), (name,), gives={name: _FLAG})


def guarded(forms: list[Form], flags: dict[str, str], write: Expressions) -> list[Form]:
    """A block of a loop's body; what follows an exit is done unless its flag is set."""
    found: list[Form] = []
    for index, form in enumerate(forms):
        rest = forms[index + 1 :]
        if isinstance(form, Exit):
            flag = _flag(form.flag or flags[form.kind], write, value=True)
            if form.kind != "return":
                flag.leading, flag.lines = form.leading, [_beside(flag.lines[0], form.beside)]
            found.append(flag)
            if any(not isinstance(each, Plain) or each.lines for each in rest):
                raise CannotExpand(form.node, "what follows is never reached")
            return [*found, *rest]
        found.append(form)
        leaving = [each for each in walk([form]) if isinstance(each, Exit) and each.kind in flags]
        if not leaving:
            continue
        names = [*dict.fromkeys(each.flag or flags[each.kind] for each in leaving)]
        if isinstance(form, Branch):
            form.body, form.orelse = guarded(form.body, flags, write), guarded(form.orelse, flags, write)
        elif isinstance(form, Kept) and not form.is_loop:
            form.blocks = [(head, guarded(block, flags, write)) for head, block in form.blocks]
        else:
            raise CannotExpand(_node(form), "this loop is left from within one of Python's")
        if not rest:
            return found
        if all(isinstance(each, Plain) and not each.lines for each in rest):
            return [*found, *rest]
        node = next((each.node for each in rest if each.node is not None), form.node)
        assert node is not None
        found.append(
            Branch(Code(_any(names, write), frozenset(names)), [], guarded(rest, flags, write), node)
        )
        return found
    return found


def _once_more(around: Branch | Kept, rest: list[Form]) -> list[Form]:
    """What follows an `if` through which some ways return, for another of the ways that go on."""
    told = [each for each in rest if not isinstance(each, Plain) or each.lines]
    if len([*walk(told)]) > _MOST_REPEATED:
        raise CannotExpand(
            around.node, "some ways through this return and others go on; write `else` for them"
        )
    return again(told)


def _node(form: Form) -> ast.AST:
    return form.node or ast.Pass()


def _beside(line: str, comment: str) -> str:
    return f"{line}  {comment}" if comment else line


def finished(forms: list[Form], write: Expressions) -> list[Form]:
    """A block at whose end the function ends: what follows a `return` in a branch goes into the other one."""
    for index, form in enumerate(forms):
        if not exits([form], "return"):
            continue
        rest = forms[index + 1 :]
        if isinstance(form, Branch):
            leaves, other = always_leaves(form.body), always_leaves(form.orelse)
            if leaves and other:
                if any(not isinstance(each, Plain) or each.lines for each in rest):
                    raise CannotExpand(form.node, "what follows is never reached")
                form.orelse += rest
            elif leaves:
                form.orelse += rest
            elif other:
                form.body += rest
            else:
                form.orelse += _once_more(form, rest)
                form.body += rest
            form.body, form.orelse = finished(form.body, write), finished(form.orelse, write)
            if not (always_leaves(form.body) and always_leaves(form.orelse)):
                raise CannotExpand(
                    form.node, "the function's end is reached without `return` on some way", "PD11"
                )
            form.returns = True
            write.applied("PS07", form.node)
            return [*forms[:index], form]
        if isinstance(form, Exit):
            return forms
        if isinstance(form, Kept) and not form.is_loop:
            for place, (head, block) in enumerate(form.blocks):
                if exits(block, "return"):
                    if not isinstance(form.node, ast.If) and not always_leaves(block):
                        raise CannotExpand(form.node, "a tensor decides on a `return` from within this")
                    going_on = [] if always_leaves(block) else _once_more(form, rest)
                    form.blocks[place] = (head, finished([*block, *going_on], write))
            continue
        raise CannotExpand(_node(form), "a tensor decides on a `return` in a loop of Python's")
    return forms
