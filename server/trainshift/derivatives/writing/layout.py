"""Prints functions with the comments and empty lines of their originals (AD41)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.reading.module import Module
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin

STEP = "    "
BACKWARD = "# Backward, from the last line to the first."


class Layout:
    """Prints generated functions, with the comments of the original."""

    def __init__(self, module: Module, origin: ast.FunctionDef | None) -> None:
        self.module = module
        self.lines: list[str] = []
        self.waiting: list[int] = []
        # For nested functions, outermost first: the user's line after which each printed function ends.
        self.ends = [10**9]
        if origin is not None:
            said = _docstring(origin)
            lines = range(origin.lineno, last_line(module, origin) + 1)
            self.waiting = [each for each in lines if each not in said]
        self.origin = origin

    def function(self, node: ast.FunctionDef) -> str:
        """The text of a top-level function."""
        comment = self._beside(self.origin) if self.origin is not None else ""
        self._definition(node, "", outer=True, comment=comment)
        return "\n".join(self.lines) + "\n"

    def _definition(self, node: ast.FunctionDef, margin: str, outer: bool = False, comment: str = "") -> None:
        self.lines.append(f"{margin}def {node.name}({ast.unparse(node.args)}):{comment}")
        inner = margin + STEP
        body = node.body
        first = body[0]
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            self.lines.append(f'{inner}"""{first.value.value}"""')
            body = body[1:]
        self._block(body, inner, outer)

    def _block(self, body: Sequence[ast.stmt], margin: str, outer: bool = False) -> None:
        for place, node in enumerate(body):
            last = outer and place == len(body) - 1
            own = origin(node).above is not None
            if origin(node).begins_adjoint or (last and not own) or _is_pullback(node):
                self._rest(margin)
            self._statement(node, margin)
            if last and own:
                self._rest(margin)

    def _rest(self, margin: str) -> None:
        """Emit the remaining comments after the user's part of a function."""
        self._above(self.ends[-1], margin, False)
        while self.lines and not self.lines[-1]:
            self.lines.pop()

    def _above(self, line: int, margin: str, empty: bool = True) -> None:
        """The comments and empty lines above a line of the user's."""
        while self.waiting and self.waiting[0] < line:
            number = self.waiting.pop(0)
            text = self.module.lines[number - 1]
            if not text.strip():
                if self.lines[-1] and number > 1 and empty:
                    self.lines.append("")
            elif number in self.module.comments:
                self.lines.append(margin + self.module.comments[number].text)

    def _beside(self, node: ast.stmt) -> str:
        """The comment at the end of a statement's line; those of further lines are kept for later."""
        head: ast.AST = node
        if isinstance(node, ast.If | ast.While):
            head = node.test
        elif isinstance(node, ast.For):
            head = node.iter
        elif isinstance(node, ast.FunctionDef):
            head = max([node.args, *terms.walk(node.args)], key=lambda each: getattr(each, "end_lineno", 0))
        end = max(getattr(head, "end_lineno", None) or node.lineno, node.lineno)
        lines = [each for each in self.waiting if node.lineno <= each <= end and each in self.module.comments]
        found = [self.module.comments[each].text for each in lines]
        self.waiting = [each for each in self.waiting if each > end]
        return "".join(f"  {each}" for each in found)

    def _statement(self, node: ast.stmt, margin: str) -> None:
        if origin(node).begins_adjoint:
            self.lines += ["", margin + BACKWARD]
            return
        above = origin(node).above
        if above is not None:
            self._above(above, margin)
        beside = origin(node).beside
        if beside is not None and origin(node).is_verbatim and self._verbatim(node, margin):
            return
        comment = self._beside(beside) if beside is not None else ""
        match node:
            case ast.If():
                self._if(node, margin, "if", comment)
            case ast.For():
                target = _bare(node.target)
                self.lines.append(f"{margin}for {target} in {_bare(node.iter)}:{comment}")
                self._loop(node, margin)
            case ast.While():
                self.lines.append(f"{margin}while {ast.unparse(node.test)}:{comment}")
                self._loop(node, margin)
            case ast.FunctionDef():
                commented = beside is not None and self.lines[-1].lstrip().startswith("#")
                if self.lines[-1] and not commented:
                    self.lines.append("")
                self.ends.append(
                    last_line(self.module, beside) + 1 if isinstance(beside, ast.FunctionDef) else 0
                )
                self._definition(node, margin, comment=comment)
                self._rest(margin + STEP)
                self.ends.pop()
                self.lines.append("")
            case _:
                self.lines.append(f"{margin}{simple(node)}{comment}")

    def _loop(self, node: ast.For | ast.While, margin: str) -> None:
        self._block(node.body, margin + STEP)
        if node.orelse:
            self.lines.append(f"{margin}else:")
            self._block(node.orelse, margin + STEP)

    def _if(self, node: ast.If, margin: str, word: str, comment: str) -> None:
        self.lines.append(f"{margin}{word} {ast.unparse(node.test)}:{comment}")
        self._block(node.body, margin + STEP)
        other = node.orelse
        if not other:
            return
        if word == "if" and isinstance(node.body[-1], ast.Break | ast.Continue):
            self._block(other, margin)
        elif len(other) == 1 and isinstance(other[0], ast.If) and origin(other[0]).above is None:
            self._if(other[0], margin, "elif", "")
        elif len(other) == 1 and isinstance(other[0], ast.If) and not self._comment_before(other[0]):
            inner = other[0]
            beside = origin(inner).beside
            self._if(inner, margin, "elif", self._beside(beside) if beside is not None else "")
        else:
            self.lines.append(f"{margin}else:")
            self._block(other, margin + STEP)

    def _comment_before(self, node: ast.stmt) -> bool:
        line = origin(node).above or 0
        return any(each < line and each in self.module.comments for each in self.waiting)

    def _verbatim(self, node: ast.stmt, margin: str) -> bool:
        """Emit the lines of a statement unchanged, if they contain nothing else."""
        first, last = node.lineno, node.end_lineno or node.lineno
        text = self.module.lines[first - 1]
        if text[: node.col_offset].strip() or (not text.isascii() and text[: node.col_offset].strip()):
            return False
        tail = self.module.lines[last - 1].encode()[node.end_col_offset or 0 :].decode().strip()
        if tail and not tail.startswith("#"):
            return False
        old = text[: node.col_offset]
        for number in range(first, last + 1):
            line = self.module.lines[number - 1]
            self.lines.append(margin + line[len(old) :] if line.startswith(old) else line)
        self.waiting = [each for each in self.waiting if each > last]
        return True


def _docstring(origin: ast.FunctionDef) -> range:
    """The lines of a function's docstring."""
    match origin.body[0]:
        case ast.Expr(ast.Constant(str())) as first:
            return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def last_line(module: Module, origin: ast.FunctionDef) -> int:
    """The last line of a function, including comments below it with the indentation of its body."""
    line = origin.end_lineno or origin.lineno
    while line + 1 in module.comments and module.comments[line + 1].column > origin.col_offset:
        line += 1
    return line


def _is_pullback(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("pullback")


def _bare(node: ast.expr) -> str:
    """An expression; a tuple of two or more without its parentheses."""
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return ", ".join(ast.unparse(each) for each in node.elts)
    return ast.unparse(node)


def simple(node: ast.stmt) -> str:
    """The text of a one-line statement."""
    match node:
        case ast.Assign():
            return " = ".join([*map(_bare, node.targets), _bare(node.value)])
        case ast.Return(value=ast.expr()):
            assert node.value is not None
            return f"return {_bare(node.value)}"
    return ast.unparse(ast.fix_missing_locations(node))


def same_arguments(old: ast.arguments) -> ast.arguments:
    return ast.arguments(
        list(old.posonlyargs),
        list(old.args),
        None,
        list(old.kwonlyargs),
        list(old.kw_defaults),
        None,
        list(old.defaults),
    )


def passed_on(name: str, arguments: ast.arguments) -> ast.Call:
    """A call of a function, by its name, with arguments named like its parameters."""
    given: list[ast.expr] = [terms.name(each.arg) for each in (*arguments.posonlyargs, *arguments.args)]
    named = [ast.keyword(each.arg, terms.name(each.arg)) for each in arguments.kwonlyargs]
    return ast.Call(terms.name(name), given, named)


def function_of(name: str, arguments: ast.arguments, said: str, body: list[ast.stmt]) -> ast.FunctionDef:
    text: list[ast.stmt] = [ast.Expr(ast.Constant(said))]
    return ast.FunctionDef(name, arguments, [*text, *body], [])


def gradient_of(
    name: str, start: ast.FunctionDef, wrt: Sequence[str], numbers: str, body: list[ast.stmt]
) -> ast.FunctionDef:
    """The function that returns a function's value and its gradient along `value_bar`."""
    arguments = same_arguments(start.args)
    arguments.kwonlyargs = [*arguments.kwonlyargs, ast.arg("value_bar")]
    arguments.kw_defaults = [*arguments.kw_defaults, terms.constant(1.0)]
    by = f"with respect to {listed(wrt)}"
    return function_of(
        name, arguments, f"Return the value of {start.name} and its gradient {by}{numbers}.", body
    )


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
