"""Exit flags: turn `break`, `continue` and `return` that depend on tensors into flags and branches (PS06,
PS07).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.python.flow.def_use import names_read
from trainshift.python.rewrite.single_exit import Leave, SingleExit
from trainshift.static_graphs.domain.abstract_values import UNBOUND as UNBOUND_VALUE
from trainshift.static_graphs.expanding.expressions import Expressions
from trainshift.static_graphs.expanding.ir import (
    Branch,
    Code,
    Exit,
    Form,
    Kept,
    Loop,
    Plain,
    again,
    always_leaves,
    exits,
    scalar,
    walk,
)
from trainshift.static_graphs.expanding.refusal import CannotExpand

Leaves: TypeAlias = Mapping[str, Leave[Form]]
_FLAG = scalar("bool")
_MOST_RETURNS = 4
_MOST_REPEATED = 12
_NAMES = {"break": "broke", "return": "returned", "continue": "skipped"}


class _FormsSingleExit(SingleExit[Form]):
    """The single-exit rewrite of forms; control flow that does not depend on tensors stays."""

    def __init__(self, write: Expressions) -> None:
        self.write = write

    def unreached(self, node: Form, rest: Sequence[Form]) -> Sequence[Form]:
        if not _is_empty(rest):
            raise CannotExpand(_node(node), "the code after this is never reached")
        return rest

    def kind(self, node: Form) -> str:
        return node.kind if isinstance(node, Exit) else ""

    def exits(self, block: Sequence[Form]) -> Set[str]:
        return exits(block, *_NAMES)

    def leaves(self, block: Sequence[Form]) -> bool:
        return always_leaves(block)

    def plain(self, node: Form, leave: Leaves) -> list[Form]:
        return [node]


class _LoopExits(_FormsSingleExit):
    """Replace each exit of a loop by a flag; later code runs if no flag is set."""

    nests = False

    def is_empty(self, rest: Sequence[Form]) -> bool:
        return _is_empty(rest)

    def arms(self, node: Form) -> list[list[Form]] | None:
        if isinstance(node, Branch):
            return [node.body, node.orelse]
        return [block for _, block in node.blocks] if isinstance(node, Kept) and not node.is_loop else None

    def with_arms(self, node: Form, arms: Sequence[list[Form]]) -> list[Form]:
        if isinstance(node, Branch):
            node.body, node.orelse = arms
        elif isinstance(node, Kept):
            node.blocks = [(head, arm) for (head, _), arm in zip(node.blocks, arms, strict=True)]
        return [node]

    def flagging(self, kind: str, name: str) -> Leave[Form]:
        return Leave(self._set, lambda flag: [], name)

    def _set(self, node: Form) -> list[Form]:
        assert isinstance(node, Exit)
        flag = _flag(node.flag, self.write, value=True)
        if node.kind != "return":
            flag.leading, flag.lines = node.leading, [_beside(flag.lines[0], node.beside)]
        return [flag]

    def flags(self, node: Form, own: Leaves) -> dict[str, str]:
        return {each.flag: each.kind for each in walk([node]) if isinstance(each, Exit)}

    def guarded(
        self, node: Form, flags: Mapping[str, str], rest: Sequence[Form], leave: Leaves
    ) -> list[Form]:
        at = next((each.node for each in rest if each.node is not None), node.node)
        assert at is not None
        test = Code(_any([*flags], self.write), frozenset(flags))
        return [Branch(test, [], self.block(rest, leave), at)]

    def loop(self, node: Form, rest: Sequence[Form], leave: Leaves) -> list[Form]:
        raise CannotExpand(_node(node), "this loop is left from inside a Python loop")


class _FunctionExits(_FormsSingleExit):
    """End both branches of a conditional on tensors with a `return`, if one does."""

    def arms(self, node: Form) -> list[list[Form]] | None:
        return [node.body, node.orelse] if isinstance(node, Branch) else None

    def with_arms(self, node: Form, arms: Sequence[list[Form]]) -> list[Form]:
        assert isinstance(node, Branch)
        node.body, node.orelse = arms
        if not all(map(always_leaves, arms)):
            raise CannotExpand(node.node, "some paths reach the end of the function without `return`", "PD11")
        node.returns = True
        self.write.applied("PS07", node.node)
        return [node]

    def flagged(
        self, node: Form, arms: Sequence[Sequence[Form]], rest: Sequence[Form], leave: Leaves
    ) -> list[Form]:
        """Copy the following code into each branch that continues, instead of flags."""
        copies = _once_more(node, rest)
        body, orelse = arms
        nested = [[*body, *rest], [*orelse, *copies]]
        return self.with_arms(node, [self.block(arm, leave) for arm in nested])

    def loop(self, node: Form, rest: Sequence[Form], leave: Leaves) -> list[Form]:
        if not isinstance(node, Kept) or node.is_loop:
            raise CannotExpand(_node(node), "a tensor decides on a `return` inside a Python loop")
        for place, (head, block) in enumerate(node.blocks):
            if exits(block, "return"):
                leaves = always_leaves(block)
                if not isinstance(node.node, ast.If) and not leaves:
                    raise CannotExpand(node.node, "a tensor decides on a `return` inside this statement")
                going_on = [] if leaves else _once_more(node, rest)
                node.blocks[place] = (head, self.block([*block, *going_on], leave))
        return [node, *self.block(rest, leave)]


class _Flagged(Struct):
    """The body of a loop with flags for exits: the flags that stop it, their initial values, the code
    after it.
    """

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
        raise CannotExpand(returns[-1].node, "this loop has too many `return`s to be expanded")
    flags = {kind: fresh(name) for kind, name in _NAMES.items() if kind in kinds}
    for place, each in enumerate(returns):
        each.flag = fresh(_NAMES["return"]) if place else flags["return"]
    for form in walk(body):
        if isinstance(form, Exit):
            form.flag = form.flag or flags[form.kind]
    rewrite = _LoopExits(write)
    leave = {kind: rewrite.flagging(kind, flag) for kind, flag in flags.items()}
    found = _Flagged(rewrite.block(body, leave))
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
    """The loop with its exits as flags that its test reads; `return`s in it happen after it."""
    found = _flagged(loop.body, loop.node, fresh, write)
    loop.before += [*_counters_that_are_returned(loop, found.after, write), *found.starts]
    loop.body = found.body
    text = loop.test.text
    if not text and len(found.stops) == len(found.returned):
        found.after[-1:] = found.returned[-1:]  # Only a `return` ends this loop.
    for name in found.stops:
        goes_on = f"{write.paddle}.logical_not({name})"
        text = f"{write.paddle}.logical_and({text}, {goes_on})" if text else goes_on
    loop.test = Code(text, loop.test.reads | frozenset(found.stops))
    return [loop, *found.after]


def _counters_that_are_returned(loop: Loop, after: list[Form], write: Expressions) -> Iterator[Plain]:
    """Yield initial values for the counters of inner loops that a `return` reads, if they have none."""
    function = write.knowledge.function
    before = function.before.get(function.statement_of[loop.node], {})
    returned = [each.value for each in walk(after) if isinstance(each, Exit) and each.value is not None]
    wanted = frozenset[str]().union(*map(names_read, returned))
    for inner in walk(loop.body):
        for each in inner.before if isinstance(inner, Loop) else ():
            for name, info in each.gives.items():
                is_counter = info.tensor and info.number == "int" and info.dtype == "int64"
                if is_counter and name in wanted and before.get(name, UNBOUND_VALUE) == UNBOUND_VALUE:
                    gives = {name: scalar("int64")}
                    yield Plain([f"{name} = {write.number('0', 'int64')}"], binds=(name,), gives=gives)


def leave_kept(kept: Kept, fresh: Callable[[str], str], write: Expressions) -> list[Form]:
    """A loop over a Python container, whose remaining iterations do nothing once a tensor has left it."""
    ((head, body),) = kept.blocks
    found = _flagged(body, kept.node, fresh, write)
    if found.stops:
        test = Code(_any(found.stops, write), frozenset(found.stops))
        found.body = [Branch(test, [], found.body, kept.node)]
    kept.blocks = [(head, found.body)]
    return [*found.starts, kept, *found.after]


def _any(flags: list[str], write: Expressions) -> str:
    """The condition that at least one flag is set."""
    test = flags[0]
    for name in flags[1:]:
        test = f"{write.paddle}.logical_or({test}, {name})"
    return test


def _flag(name: str, write: Expressions, *, value: bool) -> Plain:
    return Plain([f"{name} = {write.number(str(value), 'bool')}"], frozenset(), (name,), gives={name: _FLAG})


def finished(forms: list[Form], write: Expressions) -> list[Form]:
    """A block that ends its function: code after a `return` in a branch moves to the other branch."""
    return _FunctionExits(write).block(forms, {"return": Leave(lambda node: [node], lambda flag: [])})


def _once_more(around: Form, rest: Sequence[Form]) -> list[Form]:
    """Repeat the code after an `if` with `return`s on another path that continues."""
    told = [each for each in rest if not isinstance(each, Plain) or each.lines]
    if len([*walk(told)]) > _MOST_REPEATED:
        raise CannotExpand(
            _node(around), "some paths through this return and others go on; write `else` for them"
        )
    return again(told)


def _is_empty(forms: Sequence[Form]) -> bool:
    """Return whether a block contains only comments."""
    return all(isinstance(each, Plain) and not each.lines for each in forms)


def _node(form: Form) -> ast.AST:
    return form.node or ast.Pass()


def _beside(line: str, comment: str) -> str:
    return f"{line}  {comment}" if comment else line
