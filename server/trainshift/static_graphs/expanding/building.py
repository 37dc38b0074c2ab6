"""Building: the statements of a function as forms, with their comments (PS01-PS06)."""

from __future__ import annotations

import ast
from dataclasses import replace

from trainshift.libraries.containers import ADDING
from trainshift.python.flow.names import names_bound, names_read
from trainshift.python.source.comments import Comments
from trainshift.python.syntax.chunk_syntax import Statement, dotted
from trainshift.static_graphs.expanding.conditions import unseen
from trainshift.static_graphs.expanding.exits import leave_kept, leave_loop
from trainshift.static_graphs.expanding.expressions import Expressions
from trainshift.static_graphs.expanding.ir import (
    Branch,
    Code,
    Exit,
    Form,
    Kept,
    Loop,
    Plain,
    VarInfo,
    bound_in,
    exits,
    walk,
)
from trainshift.static_graphs.expanding.knowledge import info_of, unused
from trainshift.static_graphs.expanding.named import renew, taken_out
from trainshift.static_graphs.expanding.places import is_elif, statement_column, without_elif
from trainshift.static_graphs.expanding.refusal import CannotExpand
from trainshift.static_graphs.expanding.statements import Statements
from trainshift.static_graphs.reading.abstract_values import AbstractValue
from trainshift.static_graphs.reading.function import Truth
from trainshift.static_graphs.reporting import exits as leaving

_COUNTER = VarInfo(number="int", tensor=True, dtype="int64", rank=0)
_LOOPS = ast.For | ast.While
_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_CONTAINERS = frozenset({"list", "tuple", "dict", "str", "layer"})


class Builder(Statements):
    """Makes the forms of one function; `wanted` tells which statements are expanded."""

    def __init__(self, expressions: Expressions, comments: Comments, wanted: set[Statement] | None) -> None:
        super().__init__(expressions, comments)
        self.wanted = wanted
        self.taken: set[str] = set()

    def block(self, statements: list[Statement], after: int, until: int) -> list[Form]:
        """The forms of a block that stands between two lines."""
        found: list[Form] = []
        last = after
        for statement in statements:
            first = self._first_line(statement)
            forms = self._statement(statement, self._leading(last, first))
            found += forms
            last = self._end_of(statement)
        tail = self._leading(last, until, statement_column(statements[0]) if statements else 0)
        while tail and not tail[-1]:
            tail.pop()
        if tail and any(tail):
            found.append(Plain([], leading=tail))
        return found

    def _is_wanted(self, statement: Statement) -> bool:
        return self.wanted is None or statement in self.wanted

    def _is_graph(self, statement: Statement) -> bool:
        node = statement.node
        if not isinstance(node, ast.If | ast.While | ast.For) or not self._is_wanted(statement):
            return False
        return self.know.truth(node) is not Truth.PYTHON

    def _statement(self, statement: Statement, leading: list[str]) -> list[Form]:
        node = statement.node
        _check_growing(node)
        if self._is_graph(statement):
            return self._converted(statement, leading)
        if statement.branches and any(
            self._is_graph(each)
            or (isinstance(each.node, ast.Break | ast.Continue | ast.Return) and self._leaves(each))
            for each in statement.walk()
        ):
            kept = self._kept(statement, leading)
            return [kept, *self._afterwards(statement)] if kept.is_loop else [kept]
        if isinstance(node, ast.Break | ast.Continue | ast.Return) and self._leaves(statement):
            value = node.value if isinstance(node, ast.Return) else None
            return [Exit(_word(node), node, leading, self.beside(node), value)]
        return [self._plain(statement, leading)]

    def _leaves(self, statement: Statement) -> bool:
        """Whether a statement leaves what becomes part of the graph."""
        if not self._is_wanted(statement) and self.wanted is not None:
            return False
        for above in statement.ancestors():
            if above.scope is not self.know.function.scope or isinstance(above.node, _SCOPES):
                return False
            is_loop = isinstance(above.node, _LOOPS)
            if self._is_graph(above):
                return True
            if is_loop and not isinstance(statement.node, ast.Return):
                return False
        return False

    def _kept(self, statement: Statement, leading: list[str], *, is_chained: bool = False) -> Kept:
        """A compound statement of Python's; `is_chained` tells that it stays an `elif`."""
        node = statement.node
        self._check(statement)
        if not isinstance(node, ast.If | ast.For | ast.While | ast.With):
            raise CannotExpand(node, "control flow on tensors within this statement is not expanded")
        blocks: list[tuple[Plain, list[Form]]] = []
        is_loop = isinstance(node, ast.For | ast.While)
        parts = [(name, block) for name, block in statement.branches.items() if block]
        parts = parts[:1] if is_loop else parts
        is_whole = isinstance(node, ast.With) or (isinstance(node, ast.If) and len(parts) > 1)
        for index, (name, block) in enumerate(parts):
            above = self._above_else(parts[index - 1][1], block) if name == "orelse" else []
            if name == "orelse" and is_elif(block[0]) and not self._is_graph(block[0]):
                chained = self._kept(block[0], [], is_chained=True)
                chained.blocks[0][0].lines[:0] = above
                blocks += chained.blocks
                is_whole = chained.is_whole
                continue
            until = self._until(statement, name)
            head = self._head(statement, name, block)
            head_line = self._else_line(block) if name != "body" else self._header_end_or(block, statement)
            if name == "body" and not is_chained:
                head.lines[0] = without_elif(head.lines[0])
            head.lines[:0] = above
            blocks.append((head, self.block(block, head_line, until)))
        return Kept(blocks, node, leading, is_loop, is_whole)

    def _afterwards(self, statement: Statement) -> list[Form]:
        """What the `else` of a loop does, which runs after one that nothing leaves."""
        orelse = statement.branches.get("orelse", [])
        if not orelse:
            return []
        if leaving(self.know.function, statement, ast.Break):
            raise CannotExpand(statement.node, "a loop with `break` and `else` is not expanded", "PD09")
        found = self.block(orelse, self._else_line(orelse), self._end_of(statement) + 1)
        above = [*self._above_else(statement.branches["body"], orelse), *self._beside_else(orelse)]
        return [Plain([], leading=above), *found] if above else found

    def _until(self, statement: Statement, name: str) -> int:
        """The line below a block of a statement: that of its `else`, or the one after it."""
        orelse = statement.branches.get("orelse", [])
        return self._else_line(orelse) if name == "body" and orelse else self._end_of(statement) + 1

    def _converted(self, statement: Statement, leading: list[str]) -> list[Form]:
        node = statement.node
        self._graph += 1
        try:
            if isinstance(node, ast.If):
                named = taken_out(node.test, self.write)
                if named:
                    named[0].leading, leading = leading, []
                asserted = self._asserted(statement, node, leading)
                return [*named, *(asserted or [self._branch(statement, node, leading)])]
            assert isinstance(node, ast.For | ast.While)
            return self._loop(statement, node, leading)
        finally:
            self._graph -= 1

    def _branch(self, statement: Statement, node: ast.If, leading: list[str]) -> Form:
        truth = self.know.truth(node)
        body, orelse = statement.branches.get("body", []), statement.branches.get("orelse", [])
        test, rest = node.test, self._python_first(node, truth)
        if truth is Truth.EITHER and self.know.function.loops_around(statement):
            truth = Truth.GRAPH if self.write.check_flags(test) else truth
        above = [*leading, *self._in_header(statement, body, node.test)]
        ends = self._end_of(statement) + 1
        else_line = self._else_line(orelse) if orelse else ends
        forms = self.block(body, self._header_end_or(body, statement), else_line)
        others: list[Form] = []
        else_leading: list[str] = []
        if orelse:
            else_leading = [*self._above_else(body, orelse), *self._beside_else(orelse)]
            others = self.block(orelse, else_line, ends)
        is_swapped = False
        if rest is not None:
            test = rest[-1]
            truth = Truth.GRAPH
        elif truth is Truth.EITHER and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            is_swapped, test = True, test.operand
        condition = self.write.condition(test, truth)
        is_sure = truth is Truth.GRAPH and not self.write.may_be_python(test)
        branch = Branch(condition, forms, others, node, is_sure, above, else_leading, is_swapped)
        self.write.applied("PS01" if truth is Truth.GRAPH else "PS18", node)
        if rest is None:
            return branch
        first = " and ".join(_bracketed(self.write.text(each), each) for each in rest[:-1])
        reads = frozenset[str]().union(*(names_read(each) for each in rest[:-1]))
        branch.leading = []
        return Kept([(Plain([f"if {first}:"], reads), [branch])], node, above)

    def _asserted(self, statement: Statement, node: ast.If, leading: list[str]) -> list[Form]:
        """An `if` that raises as an assertion (PD18), and what it does else; nothing for any other."""
        blocks = [statement.branches.get("body", []), statement.branches.get("orelse", [])]
        places = [place for place, block in enumerate(blocks) if _only_raises(block)]
        if not places or self.know.truth(node) is not Truth.GRAPH:
            return []
        raising, other = blocks[places[0]][0], blocks[1 - places[0]]
        test = self.write.condition(node.test, Truth.GRAPH)
        text = test.text
        if not places[0]:
            text = self.write.as_tensor(text) if self.write.may_be_python(node.test) else text
            text = f"{self.write.paddle}.logical_not({text})"
        message = self._message(raising.node)
        above = [*leading, *self._in_header(statement, blocks[0], node.test)]
        start = self._else_line(blocks[1]) if places[0] else self._header_end_or(blocks[0], statement) + 1
        start = min(start, self._first_line(raising))
        until = self._until(statement, "orelse" if places[0] else "body")
        above += self._leading(start - 1, until)
        self.write.needs.add("static_assert")
        self.write.applied("PS14", node)
        made = Plain([f"static_assert({text}{message})"], test.reads, leading=above)
        if not other:
            return [made]
        line = self._else_line(blocks[1])
        if places[0]:
            return [made, *self.block(other, self._header_end(other), line)]
        beside = self._beside_else(other)
        found = self.block(other, line, self._end_of(statement) + 1)
        return [made, Plain([], leading=beside), *found] if beside else [made, *found]

    def _message(self, node: ast.stmt) -> str:
        """The text that an exception is made with, as another argument of an assertion."""
        raised = getattr(node, "exc", None)
        given = raised.args if isinstance(raised, ast.Call) else []
        if len(given) == 1 and isinstance(given[0], ast.Constant | ast.JoinedStr):
            return f", {self.write.text(given[0])}"
        return ""

    def _python_first(self, node: ast.If, truth: Truth) -> list[ast.expr] | None:
        """The parts of `python and tensor` without an `else`, Python's first; None for any other."""
        test = node.test
        if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)) or truth is Truth.PYTHON:
            return None
        is_python = [self.know.kind(each).is_python and not self.know.changes(each) for each in test.values]
        return test.values if not node.orelse and all(is_python[:-1]) and not is_python[-1] else None

    def fresh(self, base: str) -> str:
        """A name that nobody in the function uses."""
        name = unused(base, self.know.names | self.taken)
        self.taken.add(name)
        return name

    def _loop(self, statement: Statement, node: ast.For | ast.While, leading: list[str]) -> list[Form]:
        truth = self.know.truth(node)
        block = statement.branches.get("body", [])
        head = (node.test,) if isinstance(node, ast.While) else (node.target, node.iter)
        above = [*leading, *self._in_header(statement, block, *head)]
        body = self.block(block, self._header_end_or(block, statement), self._until(statement, "body"))
        self._graph -= 1
        after = self._afterwards(statement)
        self._graph += 1
        is_left = bool(exits(body, "break", "return"))
        if isinstance(node, ast.For) and self._is_container(node.iter):
            if is_left and self._is_target_read(statement, node, body):
                raise CannotExpand(
                    node, "the loop goes on in the graph, and its variable is read after it", "PD08"
                )
            kept = Kept([(self._head(statement, "body", block), body)], node, leading, is_loop=True)
            return [*leave_kept(kept, self.fresh, self.write), *after]
        loop = Loop(Code(""), body, node, leading=above)
        if isinstance(node, ast.While):
            renew(loop, taken_out(node.test, self.write))
            self.write.check_flags(node.test)
            is_endless = isinstance(node.test, ast.Constant) and node.test.value
            if is_endless and not is_left:
                raise CannotExpand(node, "nothing of the graph ends this loop")
            if is_endless:
                pass
            elif is_left and not isinstance(node.test, ast.BoolOp | ast.UnaryOp):
                loop.test = Code(self.write.operand(node.test), names_read(node.test))
            else:
                loop.test = self.write.condition(node.test, truth)
            self.write.applied("PS02", node)
        else:
            self._for(loop, statement, node, is_left=is_left)
        if is_left and any(map(self._goes_too_far, head)):
            if isinstance(node, ast.While):
                raise CannotExpand(
                    node, "after `break` the graph looks at the condition once more, which may go too far"
                )
        return [*leave_loop(loop, self.fresh, self.write), *after]

    def _goes_too_far(self, node: ast.expr) -> bool:
        """Whether an expression asks for an element that may not be there in a further turn."""
        asked = (each for each in ast.walk(node) if isinstance(each, ast.Subscript))
        return any(not self.know.is_shape(each.value) for each in asked)

    def _is_container(self, node: ast.expr) -> bool:
        """Whether a loop surely goes through a container of Python's, which has an end."""
        value = self.know.kind(node)
        if isinstance(node, ast.Call) and value.python & {"zip", "enumerate"}:
            return value.is_python and all(map(self._is_container, node.args))
        return value.is_python and value.python <= _CONTAINERS

    def _is_target_read(self, statement: Statement, node: ast.For, body: list[Form]) -> bool:
        """Whether the variable of a loop is read after it, or is returned."""
        names = frozenset(names_bound(node.target))
        returned = [each.value for each in _walk_exits(body) if each.value is not None]
        live = self.know.function.live_after(statement)
        return bool(names & live) or any(names & names_read(each) for each in returned)

    def _for(self, loop: Loop, statement: Statement, node: ast.For, *, is_left: bool) -> None:
        changed = bound_in(loop.body)
        is_read = self._is_target_read(statement, node, loop.body)
        call = node.iter if isinstance(node.iter, ast.Call) else None
        name = getattr(call.func, "id", "") if call is not None else ""
        if call is not None and name == "range" and isinstance(node.target, ast.Name):
            self._range(loop, node, call, own=is_read or node.target.id in changed, is_left=is_left)
            return
        given, start = node.iter, ""
        target: ast.expr = node.target
        if call is not None and name == "enumerate":
            if not (
                isinstance(target, ast.Tuple)
                and len(target.elts) == 2
                and isinstance(target.elts[0], ast.Name)
            ):
                raise CannotExpand(node, "this loop is expanded with two names as its target only", "PD10")
            words = {each.arg: each.value for each in call.keywords}
            given = call.args[0]
            first = call.args[1] if len(call.args) > 1 else words.get("start")
            start = self._start(loop, node, first) if first is not None else ""
        value = self.know.kind(given)
        if not value.is_tensor and (is_left or not self._may_be_rows(value, target)):
            raise CannotExpand(node, unseen(self.write.source_of(given)), "PD07")
        self._rows(loop, node, given, start, is_enumerated=name == "enumerate")

    def _start(self, loop: Loop, node: ast.For, first: ast.expr) -> str:
        """What `enumerate` counts from: a name of its own, where the body may change what it is."""
        text = self.write.text(first)
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        if isinstance(first, ast.Constant | ast.Name) and not names_read(first) & changed:
            return text
        name = self.fresh("start")
        known = info_of(self.know.kind(first))
        loop.before.append(Plain([f"{name} = {text}"], names_read(first), (name,), gives={name: known}))
        return name

    def _may_be_rows(self, value: AbstractValue, target: ast.expr) -> bool:
        """Whether a value is a tensor, or else a list or tuple of tensors, by what its elements are."""
        row = target.elts[1] if isinstance(target, ast.Tuple) else target
        return value.python <= {"list", "tuple"} and not value.array and self.know.kind(row).is_tensor

    def _range(self, loop: Loop, node: ast.For, call: ast.Call, *, own: bool, is_left: bool) -> None:
        assert isinstance(node.target, ast.Name)
        given = [self.write.text(each) for each in call.args]
        if (
            call.keywords
            or not 1 <= len(given) <= 3
            or any(isinstance(each, ast.Starred) for each in call.args)
        ):
            raise CannotExpand(call, "this `range` cannot be read", "PD10")
        first = given[0] if len(given) > 1 else "0"
        last = given[1] if len(given) > 1 else given[0]
        step = given[2] if len(given) > 2 else "1"
        sign = _sign(call.args[2]) if len(given) > 2 else 1
        if not sign:
            raise CannotExpand(call.args[2], "the step of this `range` is no literal", "PD10")
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        end = call.args[1] if len(given) > 1 else call.args[0]
        if not isinstance(end, ast.Constant | ast.Name) or names_read(end) & changed:
            name = self.fresh("stop")
            loop.before.append(Plain([f"{name} = {last}"], names_read(end), (name,), gives={name: _COUNTER}))
            last, reads = name, frozenset({name})
        else:
            reads = names_read(end)
        counter = self.fresh("index") if own else node.target.id
        must_be_tensor = is_left and not self.know.kind(end).is_tensor
        start = (
            self.write.number(first, "int64")
            if must_be_tensor or node.target.id in self.write.pinned
            else first
        )
        begin = names_read(call.args[0]) if len(given) > 1 else frozenset()
        known = (
            _COUNTER
            if start is not first
            else VarInfo(number="int", tensor=bool(begin & self.know.became_tensors))
        )
        loop.before.append(Plain([f"{counter} = {start}"], begin, (counter,), gives={counter: known}))
        if own:
            loop.before.append(
                Plain(
                    [f"{node.target.id} = {counter}"],
                    frozenset({counter}),
                    (node.target.id,),
                    gives={node.target.id: replace(known, is_alias=True)},
                )
            )
            inside = Plain(
                [f"{node.target.id} = {counter}"],
                frozenset({counter}),
                (node.target.id,),
                gives={node.target.id: replace(_COUNTER, is_alias=True)},
            )
            loop.body.insert(0, inside)
        loop.test = Code(f"{counter} {'<' if sign > 0 else '>'} {last}", reads | {counter})
        loop.steps[counter] = (
            f"{counter} - {step[1:].strip()}" if step.startswith("-") else f"{counter} + {step}"
        )
        self.write.applied("PS03", node)

    def _rows(self, loop: Loop, node: ast.For, given: ast.expr, start: str, *, is_enumerated: bool) -> None:
        changed = set(bound_in(loop.body)) | set(names_bound(node.target))
        target: ast.expr = node.target
        rows = self.write.text(given)
        if not isinstance(given, ast.Name) or given.id in changed:
            name = self.fresh("rows")
            loop.before.append(
                Plain([f"{name} = {rows}"], names_read(given), (name,), gives={name: VarInfo(tensor=True)})
            )
            rows, reads = name, frozenset({name})
        else:
            reads = names_read(given)
        if any(isinstance(each, Loop) and isinstance(each.node, ast.For) for each in walk(loop.body)):
            if not self._has_known_length(given):
                raise CannotExpand(
                    node, "loops over tensors of unknown sizes within each other fail in Paddle"
                )
        counter = self.fresh("index")
        loop.before.append(
            Plain([f"{counter} = 0"], frozenset(), (counter,), gives={counter: VarInfo(number="int")})
        )
        length = self.write.length(rows, is_sure=self.know.kind(given).is_tensor)
        loop.test = Code(f"{counter} < {length}", reads | {counter})
        loop.steps[counter] = f"{counter} + 1"
        first: list[Form] = []
        if is_enumerated:
            assert isinstance(target, ast.Tuple)
            name = self.write.source_of(target.elts[0])
            number = f"{counter} + {start}" if start and start != "0" else counter
            first.append(
                Plain(
                    [f"{name} = {number}"],
                    frozenset({counter, start}) if start.isidentifier() else frozenset({counter}),
                    (name,),
                    gives={name: replace(_COUNTER, is_alias=True)},
                )
            )
            target = target.elts[1]
        bound = names_bound(target)
        gives = {
            each.id: replace(info_of(self.know.kind(each)), is_alias=False)
            for each in ast.walk(target)
            if isinstance(each, ast.Name)
        }
        text = f"{self.write.source_of(target)} = {rows}[{counter}]"
        first.append(Plain([text], reads | {counter}, bound, gives=gives))
        loop.body[:0] = first
        self.write.applied("PS05" if is_enumerated else "PS04", node)

    def _has_known_length(self, node: ast.expr) -> bool:
        tensor = self.know.kind(node).tensor
        return tensor is not None and bool(tensor.shape) and isinstance((tensor.shape or (None,))[0], int)


def _only_raises(block: list[Statement]) -> bool:
    return len(block) == 1 and isinstance(block[0].node, ast.Raise) and block[0].node.exc is not None


def _walk_exits(forms: list[Form]) -> list[Exit]:
    return [each for each in walk(forms) if isinstance(each, Exit)]


def _word(node: ast.stmt) -> str:
    return (
        "break" if isinstance(node, ast.Break) else "continue" if isinstance(node, ast.Continue) else "return"
    )


def _bracketed(text: str, node: ast.expr) -> str:
    return f"({text})" if isinstance(node, ast.BoolOp | ast.IfExp | ast.Lambda) else text


def _sign(node: ast.expr) -> int:
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return -1
    return 1 if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 0 else 0


def _check_growing(node: ast.stmt) -> None:
    """Refuse a loop through a container that grows meanwhile: Paddle goes through what it held at first."""
    for loop in ast.walk(node):
        name = dotted(loop.iter) if isinstance(loop, ast.For) else ""
        for part in ast.walk(loop) if name else ():
            if isinstance(part, ast.Attribute) and part.attr in ADDING and dotted(part.value) == name:
                raise CannotExpand(
                    loop, f"`{name}` grows while this loop goes through it; loop over a copy of it"
                )
