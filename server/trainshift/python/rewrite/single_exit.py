"""Single-exit form: early `return`, `break` and `continue` become flags that guard the later code.

`SingleExit` is the rewrite for any type of statements.  `PythonSingleExit` is the one for Python functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Generic, TypeVar

from msgspec import Struct

from trainshift.python.flow.exits import Completion, completions, leaves
from trainshift.python.flow.must_run_may_raise import outcome
from trainshift.python.rewrite import terms
from trainshift.python.syntax.slotted_ast import kind_of

S = TypeVar("S")


class Leave(Struct, Generic[S], frozen=True):
    """The code that replaces exits of one kind.

    `at` creates it from an exit; `again` creates it where a named flag shows that an exit was reached. `flag`
    is the flag that both set, if further code needs one.
    """

    at: Callable[[S], list[S]]
    again: Callable[[str], list[S]]
    flag: str = ""


class SingleExit(Generic[S]):
    """Rewrite blocks of statements of type `S` so that no exit skips later code.

    Kinds of exits are words such as "return" or "break".  Subclasses define the type of statements, the
    rewrite of loops, and the code that sets and tests flags.
    """

    nests = True
    """True if the code after a conditional moves into its branch when only one branch continues."""

    def block(self, statements: Sequence[S], leave: Mapping[str, Leave[S]]) -> list[S]:
        """Return a block in which `leave` replaces the exits, and the code that they skipped is guarded."""
        made: list[S] = []
        for place, node in enumerate(statements):
            rest = statements[place + 1 :]
            kind = self.kind(node)
            if kind in leave:
                return [*made, *leave[kind].at(node), *self.unreached(node, rest)]
            if not self.exits([node]) & leave.keys():
                made += self.plain(node, leave)
                if self.never_ends(node):
                    return made
            elif (arms := self.arms(node)) is None:
                return [*made, *self.loop(node, rest, leave)]
            elif self.is_empty(rest):
                return [*made, *self.with_arms(node, [self.block(arm, leave) for arm in arms]), *rest]
            else:
                return [*made, *self.conditional(node, arms, rest, leave)]
        return made

    def conditional(
        self, node: S, arms: Sequence[Sequence[S]], rest: Sequence[S], leave: Mapping[str, Leave[S]]
    ) -> list[S]:
        """Return a conditional with exits, and the code after it."""
        going = [place for place, arm in enumerate(arms) if not self.leaves(arm)]
        if len(going) > 1 or not self.nests:
            return self.flagged(node, arms, rest, leave)
        rest = rest if going else self.unreached(node, rest)
        last = going[0] if going else len(arms) - 1
        nested = [[*arm, *rest] if place == last else arm for place, arm in enumerate(arms)]
        return self.with_arms(node, [self.block(arm, leave) for arm in nested])

    def flagged(
        self, node: S, arms: Sequence[Sequence[S]], rest: Sequence[S], leave: Mapping[str, Leave[S]]
    ) -> list[S]:
        """Return a conditional whose exits set flags, and the code after it, guarded by these flags."""
        starts: list[S] = []
        own = dict(leave)
        for kind in sorted(self.exits([node]) & leave.keys()):
            name = leave[kind].flag
            if not name:
                name = self.fresh_flag(kind)
                starts.append(self.set_flag(name, value=False))
            own[kind] = self.flagging(kind, name)
        flags = self.flags(node, own)
        inner = self.with_arms(node, [self.block(arm, own) for arm in arms])
        return [*starts, *inner, *self.guarded(node, flags, rest, leave)]

    def flags(self, node: S, own: Mapping[str, Leave[S]]) -> dict[str, str]:
        """Return the flags that a statement may set, with the kinds of their exits."""
        return {own[kind].flag: kind for kind in sorted(self.exits([node]) & own.keys())}

    def is_empty(self, rest: Sequence[S]) -> bool:
        """Return whether the rest of a block does nothing."""
        return not rest

    def unreached(self, node: S, rest: Sequence[S]) -> Sequence[S]:
        """Return the statements to keep after one that always leaves."""
        return ()

    def never_ends(self, node: S) -> bool:
        """Return whether the code after a statement without exits is unreachable and may be dropped."""
        return False

    def kind(self, node: S) -> str:
        """The kind of exit of a statement, or an empty text."""
        raise NotImplementedError

    def exits(self, block: Sequence[S]) -> Set[str]:
        """Return the kinds of exits that may leave a block."""
        raise NotImplementedError

    def leaves(self, block: Sequence[S]) -> bool:
        """Return whether control never reaches the end of a block."""
        raise NotImplementedError

    def arms(self, node: S) -> list[list[S]] | None:
        """Return the blocks of a conditional, one of which runs; None for any other statement."""
        raise NotImplementedError

    def with_arms(self, node: S, arms: Sequence[list[S]]) -> list[S]:
        """Return a conditional with other blocks."""
        raise NotImplementedError

    def plain(self, node: S, leave: Mapping[str, Leave[S]]) -> list[S]:
        """Return the rewritten form of a statement without exits."""
        raise NotImplementedError

    def loop(self, node: S, rest: Sequence[S], leave: Mapping[str, Leave[S]]) -> list[S]:
        """Return a loop, or another statement with blocks, that has exits, and the code after it."""
        raise NotImplementedError

    def fresh_flag(self, kind: str) -> str:
        """Return a free name for the flag of exits of a kind."""
        raise NotImplementedError

    def flagging(self, kind: str, name: str) -> Leave[S]:
        """Return the replacement for exits of a kind that only sets a flag."""
        raise NotImplementedError

    def set_flag(self, name: str, *, value: bool) -> S:
        """Return an assignment to a flag."""
        raise NotImplementedError

    def guarded(
        self, node: S, flags: Mapping[str, str], rest: Sequence[S], leave: Mapping[str, Leave[S]]
    ) -> list[S]:
        """Return the code after a statement, guarded so that it runs if none of the statement's
        flags is set.
        """
        raise NotImplementedError


_KINDS: Mapping[type, str] = {
    ast.Return: "return",
    ast.Break: "break",
    ast.Continue: "continue",
}
_WORDS = {Completion.RETURN: "return", Completion.BREAK: "break", Completion.CONTINUE: "continue"}
_FLAGS = {"return": "returned", "break": "stopped", "continue": "skipped"}
_ACTING = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_IN_LOOP: Mapping[str, Leave[ast.stmt]] = {
    "break": Leave(lambda node: [node], lambda flag: [ast.Break()]),
    "continue": Leave(lambda node: [node], lambda flag: [ast.Continue()]),
}


class PythonSingleExit(SingleExit[ast.stmt]):
    """The single-exit form of a function: every path through it ends with an assignment to `result`.

    `fresh` returns an unused name. The result has no `return`; `break` and `continue` are the last statements
    of their loops' parts, and no loop has an `else`. A `try`, a `with` or a `match` stays as it is.
    """

    def __init__(self, result: str, fresh: Callable[[str], str]) -> None:
        self.result = result
        self.fresh = fresh

    def body(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the body of a function in this form, without its docstring."""
        if statements and _is_text(statements[0]):
            statements = statements[1:]
        if not leaves(statements):
            statements = [*statements, ast.Return(ast.Constant(None))]
        return self.block(statements, {"return": Leave(self._finish, lambda flag: [])})

    def _finish(self, node: ast.stmt) -> list[ast.stmt]:
        assert isinstance(node, ast.Return)
        made = terms.assign(self.result, node.value or ast.Constant(None))
        return [ast.copy_location(made, node)]

    def kind(self, node: ast.stmt) -> str:
        return _KINDS.get(kind_of(node), "")

    def exits(self, block: Sequence[ast.stmt]) -> Set[str]:
        return {_WORDS[each] for each in completions(block) if each in _WORDS}

    def leaves(self, block: Sequence[ast.stmt]) -> bool:
        return leaves(block)

    def never_ends(self, node: ast.stmt) -> bool:
        return leaves(node)

    def arms(self, node: ast.stmt) -> list[list[ast.stmt]] | None:
        return [node.body, node.orelse] if isinstance(node, ast.If) else None

    def with_arms(self, node: ast.stmt, arms: Sequence[list[ast.stmt]]) -> list[ast.stmt]:
        assert isinstance(node, ast.If)
        body, orelse = arms
        if not body and not orelse:
            if not any(isinstance(each, _ACTING) for each in ast.walk(node.test)):
                return [ast.copy_location(ast.Pass(), node)]
            body = [ast.Pass()]
        made = ast.If(node.test, body, orelse) if body else ast.If(terms.opposite(node.test), orelse, [])
        return [ast.copy_location(made, node)]

    def plain(self, node: ast.stmt, leave: Mapping[str, Leave[ast.stmt]]) -> list[ast.stmt]:
        match node:
            case ast.If():
                return self.with_arms(node, [self.block(arm, leave) for arm in (node.body, node.orelse)])
            case ast.For() | ast.While():
                return self.loop(node, (), leave)
        return [] if isinstance(node, ast.Pass) else [node]

    def loop(
        self, node: ast.stmt, rest: Sequence[ast.stmt], leave: Mapping[str, Leave[ast.stmt]]
    ) -> list[ast.stmt]:
        if not isinstance(node, ast.For | ast.While):
            return [node, *self.block(rest, leave)]
        inside = self.exits(node.body)
        own = dict(_IN_LOOP)
        starts: list[ast.stmt] = []
        if node.orelse and "break" in inside:
            own["break"] = self.flagging("break", self.fresh_flag("break"), ast.Break)
            starts.append(self.set_flag(own["break"].flag, value=False))
            unset = terms.opposite(terms.name(own["break"].flag))
            rest = [ast.If(unset, node.orelse, []), *rest]
        else:
            rest = [*node.orelse, *rest]
        if "return" in inside and self._is_endless(node):
            # Only a `return` ends this loop: no flag records it.
            own["return"] = Leave(lambda each: [*self._finish(each), ast.Break()], lambda flag: [ast.Break()])
            loop = terms.with_blocks(node, self.block(node.body, own) or [ast.Pass()], [])
            return [*starts, loop, *leave["return"].again("")]
        if "return" in inside:
            flag = leave["return"].flag
            if not flag:
                flag = self.fresh_flag("return")
                starts.append(self.set_flag(flag, value=False))
            own["return"] = self.flagging("return", flag, ast.Break)
        loop = terms.with_blocks(node, self.block(node.body, own) or [ast.Pass()], [])
        returned = {own["return"].flag: "return"} if "return" in own else {}
        return [*starts, loop, *self.guarded(node, returned, rest, leave)]

    def _is_endless(self, node: ast.For | ast.While) -> bool:
        endless = isinstance(node, ast.While) and outcome(node.test) is True
        return endless and "break" not in self.exits(node.body)

    def fresh_flag(self, kind: str) -> str:
        return self.fresh(_FLAGS[kind])

    def flagging(self, kind: str, name: str, then: Callable[[], ast.stmt] | None = None) -> Leave[ast.stmt]:
        """Return the replacement for exits of a kind that sets a flag and then does one more thing."""

        def at(node: ast.stmt) -> list[ast.stmt]:
            return [*(self._finish(node) if kind == "return" else ()), *again("")]

        def again(flag: str) -> list[ast.stmt]:
            told = [self.set_flag(name, value=True)] if flag != name else []
            return told if then is None else [*told, then()]

        return Leave(at, again, name)

    def set_flag(self, name: str, *, value: bool) -> ast.stmt:
        return terms.assign(name, ast.Constant(value))

    def guarded(
        self,
        node: ast.stmt,
        flags: Mapping[str, str],
        rest: Sequence[ast.stmt],
        leave: Mapping[str, Leave[ast.stmt]],
    ) -> list[ast.stmt]:
        made = self.block(rest, leave)
        for flag, kind in reversed([*flags.items()]):
            again = leave[kind].again(flag)
            if again or made:
                made = self.with_arms(ast.If(terms.name(flag), [], []), [again, made])
        return made


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
