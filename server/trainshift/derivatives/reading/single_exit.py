"""Single-exit form of a function: every path ends with an assignment to its result (AD33)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from trainshift.derivatives import terms
from trainshift.python.flow.exits import Completion, completions, leaves
from trainshift.python.syntax.slotted_ast import kind_of

Leave = Callable[[ast.stmt], list[ast.stmt]]


class OneExit:
    """The body of a function with one exit: every way through it ends with an assignment to `result`.

    `fresh` gives a name that is free.  After it there is no return, and break and continue are the last
    thing that a loop's body does.
    """

    def __init__(self, result: str, fresh: Callable[[str], str]) -> None:
        self.result = result
        self.fresh = fresh

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a function's body, so rewritten."""
        if statements and _is_text(statements[0]):
            statements = statements[1:]
        if not leaves(statements):
            statements = [*statements, ast.Return(ast.Constant(None))]
        return self._block(statements, {"return": self._finish})

    def _finish(self, node: ast.stmt) -> list[ast.stmt]:
        assert isinstance(node, ast.Return)
        if getattr(node, "done", False):
            return []
        made = terms.assign(self.result, node.value or ast.Constant(None))
        return [_placed(made, node)]

    def _block(self, statements: list[ast.stmt], leave: Mapping[str, Leave]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for place, node in enumerate(statements):
            rest = statements[place + 1 :]
            kind = _KINDS.get(kind_of(node))
            if kind and kind in leave:
                return made + leave[kind](node)
            match node:
                case ast.If():
                    if not jumps([node]) or not rest:
                        body, other = self._block(node.body, leave), self._block(node.orelse, leave)
                        made.append(_branches(node, body, other))
                        if jumps([node]):
                            return made
                    elif leaves(node.body):
                        other = self._block([*node.orelse, *rest], leave)
                        return [*made, _branches(node, self._block(node.body, leave), other)]
                    elif leaves(node.orelse):
                        body = self._block([*node.body, *rest], leave)
                        return [*made, _branches(node, body, self._block(node.orelse, leave))]
                    else:
                        return made + self._flagged(node, rest, leave)
                case ast.For() | ast.While():
                    if jumps([node]) or node.orelse:
                        return made + self._left_loop(node, rest, leave)
                    own: dict[str, Leave] = {"break": lambda each: [each], "continue": lambda each: [each]}
                    made.append(terms.with_blocks(node, self._block(node.body, own), []))
                case ast.Assign() if len(node.targets) > 1:
                    made.extend(self._chain(node))
                case ast.Pass():
                    pass
                case ast.Raise():
                    return [*made, node]
                case _:
                    made.append(node)
        return made

    def _chain(self, node: ast.Assign) -> list[ast.stmt]:
        simple = isinstance(node.value, ast.Constant | ast.Name)
        first = node.targets[0]
        made: list[ast.stmt] = []
        value = node.value
        if not simple:
            if isinstance(first, ast.Name):
                made = [_placed(ast.Assign([first], value), node)]
                value = terms.name(first.id)
                targets = node.targets[1:]
            else:
                held = self.fresh("t")
                made = [_placed(terms.assign(held, value), node)]
                value, targets = terms.name(held), node.targets
        else:
            targets = node.targets
        return made + [_placed(ast.Assign([each], terms.copied(value)), node) for each in targets]

    def _flagged(self, node: ast.If, rest: list[ast.stmt], leave: Mapping[str, Leave]) -> list[ast.stmt]:
        """What follows a conditional that leaves on some of its inner ways only."""
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        own: dict[str, Leave] = dict(leave)
        words = {"return": "returned", "break": "stopped", "continue": "skipped"}
        for kind in sorted(jumps([node]) & set(leave)):
            flag = self.fresh(words[kind])
            before.append(terms.assign(flag, ast.Constant(False)))

            def setting(each: ast.stmt, flag: str = flag, kind: str = kind) -> list[ast.stmt]:
                told = terms.assign(flag, ast.Constant(True))
                return [*(self._finish(each) if kind == "return" else []), told]

            own[kind] = setting
            again: ast.stmt = ast.Break() if kind == "break" else ast.Continue()
            if kind == "return":
                again = ast.Return(terms.name(self.result))
                again.done = True  # type: ignore[attr-defined]
            after.append(ast.If(terms.name(flag), [again], []))
        inner = _branches(node, self._block(node.body, own), self._block(node.orelse, own))
        return [*before, inner, *self._block([*after, *rest], leave)]

    def _left_loop(
        self, node: ast.For | ast.While, rest: list[ast.stmt], leave: Mapping[str, Leave]
    ) -> list[ast.stmt]:
        """A loop that is left by a return, or has an else, and what follows it."""
        before: list[ast.stmt] = []
        after: list[ast.stmt] = list(rest)
        own: dict[str, Leave] = {"break": lambda each: [each], "continue": lambda each: [each]}
        breaks = "break" in jumps(node.body)
        if node.orelse:
            if breaks:
                stopped = self.fresh("stopped")
                before.append(terms.assign(stopped, ast.Constant(False)))
                own["break"] = lambda each: [terms.assign(stopped, ast.Constant(True)), each]
                test = ast.UnaryOp(ast.Not(), terms.name(stopped))
                after = [ast.If(test, node.orelse, []), *after]
            else:
                after = [*node.orelse, *after]
        if "return" in jumps(node.body):
            always = isinstance(node, ast.While) and _is_true(node.test) and not breaks
            if always:
                own["return"] = lambda each: [*self._finish(each), ast.Break()]
                left = ast.Return(terms.name(self.result))
                left.done = True  # type: ignore[attr-defined]
                after = [left]
            else:
                returned = self.fresh("returned")
                before.append(terms.assign(returned, ast.Constant(False)))

                def leaving(each: ast.stmt) -> list[ast.stmt]:
                    told = terms.assign(returned, ast.Constant(True))
                    return [*self._finish(each), told, ast.Break()]

                own["return"] = leaving
                left = ast.Return(terms.name(self.result))
                left.done = True  # type: ignore[attr-defined]
                after = [ast.If(terms.name(returned), [left], []), *after]
        loop = terms.with_blocks(node, self._block(node.body, own), [])
        return [*before, loop, *self._block(after, leave)]


_KINDS: Mapping[type, str] = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}
_WORDS = {
    Completion.RETURN: "return",
    Completion.BREAK: "break",
    Completion.CONTINUE: "continue",
}


def jumps(statements: list[ast.stmt]) -> set[str]:
    """Return the words by which statements may leave what is around them."""
    return {_WORDS[each] for each in completions(statements) if each in _WORDS}


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _placed(made: ast.stmt, node: ast.stmt) -> ast.stmt:
    return ast.copy_location(made, node)


def _branches(node: ast.If, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
    if not body and not orelse:
        return ast.copy_location(ast.Pass(), node)
    made = ast.If(node.test, body, orelse)
    if not body:
        made = ast.If(terms.opposite(node.test), orelse, [])
    return ast.copy_location(made, node)
