"""Walker: goes through the statements of static functions with the names that are known there."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from trainshift.core.program import Program
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, Statement, dotted
from trainshift.static_graphs.reading.calls import Calls, classes_of
from trainshift.static_graphs.reading.elements import element_of, in_any_order, item_of, put_under
from trainshift.static_graphs.reading.frame import Frame, truth_of
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reading.heap import (
    MUTABLE,
    Attribute,
    Cell,
    OuterName,
    Stores,
    placed,
    store,
    with_stored,
)
from trainshift.static_graphs.reading.kinds import (
    NOTHING,
    UNBOUND,
    UNKNOWN,
    Env,
    Value,
    constant,
    join,
    join_envs,
    python,
    shallow,
    tensor,
)
from trainshift.static_graphs.reading.uses import may_be_told

_ITERATED = "for "
"""What a `for` goes through is kept under this word and its place, which is no name of Python's."""
_PATIENCE = 40
"""After so many turns of a loop a name that still changes is unknown."""
_DYNAMIC = frozenset(
    {"paddle.in_dynamic_mode", "paddle.in_dynamic_or_pir_mode", "paddle.framework.in_dynamic_mode",
     "paddle.fluid.framework.in_dygraph_mode", "paddle.fluid.in_dygraph_mode", "paddle.base.in_dygraph_mode"}
)  # fmt: skip


@dataclass
class _Exits:
    """The names on the ways out of a loop's body."""

    breaks: list[Env] = field(default_factory=list)
    continues: list[Env] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Turned:
    """A loop whose turns change no name any more: the names at its head, and on the ways out of it."""

    head: Env
    ended: Env
    exits: _Exits
    thrown: Env | None


class Walker(Calls):
    """Interprets one function after the other."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._turned: dict[Statement, _Turned] = {}
        self._thrown: list[Env | None] = []

    def walk(self, function: StaticFunction, env: Env) -> Value:
        """What a function may return when it begins with some names; all else is written down in it."""
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, Frame(function.scope, function.scope.statement, env, function))
        function.returned.clear()
        outer, self._thrown = self._thrown, []
        for statement in function.statements:
            self._turned.pop(statement, None)
        try:
            end = self._block(function.block, env, function, None)
        finally:
            self._thrown = outer
        values = list(function.returned.values())
        function.falls_through = end is not None
        if end is not None:
            values.append(constant(None))
        return join(values)

    def _block(
        self, block: Iterable[Statement], env: Env | None, function: StaticFunction, exits: _Exits | None
    ) -> Env | None:
        for statement in block:
            if env is None:
                return None
            env = self._statement(statement, env, function, exits)
        return env

    def _statement(
        self, statement: Statement, env: Env, function: StaticFunction, exits: _Exits | None
    ) -> Env | None:
        node = statement.node
        frame = Frame(function.scope, statement, env, function)
        function.reached.add(statement)
        self._throw(env)
        match node:
            case ast.Assign():
                value = self.evaluate(node.value, frame)
                for target in node.targets:
                    self.assign(target, value, frame)
            case ast.AnnAssign():
                if node.value is not None:
                    value = self.evaluate(node.value, frame)
                    self.assign(node.target, value, frame)
            case ast.AugAssign():
                self._augmented(node, frame)
            case ast.Expr():
                self.evaluate(node.value, frame)
            case ast.Return():
                value = self.evaluate(node.value, frame) if node.value is not None else constant(None)
                function.returned[statement] = value
                return None
            case ast.Raise():
                for part in (node.exc, node.cause):
                    if part is not None:
                        self.evaluate(part, frame)
                return None
            case ast.Break() | ast.Continue():
                if exits is not None:
                    (exits.breaks if isinstance(node, ast.Break) else exits.continues).append(env)
                return None
            case ast.Assert():
                frame.judge(node, truth_of(self.evaluate(node.test, frame)))
                if node.msg is not None:
                    self.evaluate(node.msg, frame)
                return self._narrowed(node.test, env, frame, holds=True)
            case ast.If():
                return self._if(statement, node, env, function, exits)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(statement, node, env, function, exits)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.evaluate(item.context_expr, frame)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, UNKNOWN if value.unknown else value, frame)
                return self._block(statement.branches.get("body", []), env, function, exits)
            case ast.Try():
                return self._try(statement, env, function, exits)
            case ast.Match():
                frame.judge(node, truth_of(self.evaluate(node.subject, frame)))
                captured = {name: UNKNOWN for case in node.cases for name in _captured(case.pattern)}
                blocks = statement.branches.values()
                ways = [self._block(each, {**env, **captured}, function, exits) for each in blocks]
                return join_envs([env, *ways])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                env.pop(node.name, None)
                for default in getattr(getattr(node, "args", None), "defaults", ()):
                    self.evaluate(default, frame)
                inner = function.scope.facts.scope_of.get(node)
                if inner is not None and not isinstance(node, ast.ClassDef):
                    self.enclose(inner, frame)
                    env[node.name] = python("function", things=frozenset({Function(inner)}))
            case ast.Import() | ast.ImportFrom():
                for name, bindings in function.scope.bindings.items():
                    env.update(
                        (name, self.of_binding(each)) for each in bindings if each.statement is statement
                    )
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        env[target.id] = UNBOUND
                    elif isinstance(target, ast.Subscript):
                        base = self.evaluate(target.value, frame)
                        self.assign(target.value, in_any_order(base), frame, is_change=True)
            case _:
                pass
        return env

    @abstractmethod
    def enclose(self, inner: Scope, frame: Frame) -> None:
        """Note the names around a nested function that is made static for itself."""

    # Bindings

    def assign(self, target: ast.expr, value: Value, frame: Frame, *, is_change: bool = False) -> None:
        """Give a value to a target."""
        if isinstance(target, ast.Name):
            if is_change and target.id not in frame.env:
                return
            value = shallow(placed(value, target))
            if frame.function is not None and not is_change:
                self._bind_outside(target.id, value, frame)
            frame.env[target.id] = value if is_change else self._refined(target.id, value, frame)
            if not is_change:
                for name in [each for each in frame.env if each.startswith(f"{target.id}.")]:
                    del frame.env[name]
            frame.note(target, frame.env[target.id])
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, frame)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, python("list", element=element_of(value)), frame)
        elif isinstance(target, ast.Attribute):
            self.evaluate(target.value, frame)
            if frame.function is None:
                return
            name, value = dotted(target), shallow(placed(value, target))
            if not is_change:
                classes = classes_of(frame.function.kind(target.value))
                self.store({Attribute(cls, target.attr): value for cls in classes}, frame)
            if name and (not is_change or name in frame.env):
                frame.env[name] = value
                frame.note(target, value)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, value, frame)

    def store(self, stores: Mapping[Cell, Value], frame: Frame) -> None:
        """Note that values are stored in cells of the heap, and what the names at hand are by it."""
        if frame.function is not None:
            for cell, value in stores.items():
                if store(frame.function.stored, cell, value):
                    self.stored_more(frame.function, cell)
        made: Stores = {cell: value for cell, value in stores.items() if isinstance(cell, ast.AST)}
        for name, known in [*frame.env.items()] if made else ():
            frame.env[name] = with_stored(known, made)
        for cell, value in stores.items():
            if isinstance(cell, Attribute):
                ending = f".{cell.name}"
                for name in [each for each in frame.env if each.endswith(ending)]:
                    frame.env[name] = frame.env[name].joined(value)
            elif isinstance(cell, OuterName) and self._names_cell(cell, frame):
                outer = self.evaluate(ast.Name(cell.name, ast.Load()), replace(frame, function=None))
                closure = frame.function.closure if frame.function is not None else {}
                frame.env[cell.name] = frame.env.get(cell.name, closure.get(cell.name, outer)).joined(value)

    def _names_cell(self, cell: OuterName, frame: Frame) -> bool:
        """Whether a name is the same variable where an expression stands."""
        return self.home(frame.scope).names.lookup(cell.name, frame.scope, None)[0] is cell.holder

    @abstractmethod
    def stored_more(self, function: StaticFunction, cell: Cell) -> None:
        """Have what depends on a cell of the heap read anew."""

    def _bind_outside(self, name: str, value: Value, frame: Frame) -> None:
        """Note what a name is given for the functions within this one, or around it."""
        function, scope = frame.function, frame.scope
        assert function is not None
        if store(function.bound, name, value):
            self.stored_more(function, ast.Pass())
        if name in scope.declared_nonlocal or name in scope.declared_global:
            is_global = name in scope.declared_global
            around = scope if is_global or scope.parent is None else scope.parent
            holder = None if is_global else self.home(scope).names.lookup(name, around, None)[0]
            cell = OuterName(holder, name)
            if store(function.stored, cell, value):
                self.stored_more(function, cell)

    def _refined(self, name: str, value: Value, frame: Frame) -> Value:
        """A value that is unknown, by how the name is used as long as it has it."""
        if may_be_told(value) and frame.function is not None:
            return self.by_use(name, frame.statement, frame.function, value)
        return value

    @abstractmethod
    def by_use(self, name: str, statement: Statement | None, function: StaticFunction, value: Value) -> Value:
        """What a value is known to be by how the name that is bound to it is used."""

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> None:
        starred = [index for index, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
        for index, each in enumerate(target.elts):
            if starred and index >= starred[0]:
                part = element_of(value)
            else:
                is_whole = value.items is None or len(value.items) == len(target.elts) or bool(starred)
                part = item_of(value, index) if is_whole else element_of(value)
            self.assign(each, part, frame)
        frame.note(target, value)

    def _set_item(self, target: ast.Subscript, value: Value, frame: Frame) -> None:
        base = self.evaluate(target.value, frame)
        index = self.evaluate(target.slice, frame)
        frame.note(target, value)
        if base.python & {"list", "dict"} and base.tensor is None:
            element = base.whole_element
            added = element_of(value) if isinstance(target.slice, ast.Slice) else value
            grown = replace(
                base, items=None, keys=None, element=added if element is None else element.joined(added)
            )
            at = index.constant
            is_list = base.items is not None and base.keys is None
            if base.among("dict"):
                grown = put_under(base, index, value)
            elif is_list and base.items is not None and isinstance(at, int):
                if -len(base.items) <= at < len(base.items):
                    items = list(base.items)
                    items[at] = value
                    grown = replace(base, items=tuple(items), element=None)
            self.store(dict.fromkeys(base.places, added), frame)
            self.assign(target.value, grown, frame, is_change=True)

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        right = self.evaluate(node.value, frame)
        reading = _as_load(node.target)
        left = self.evaluate(reading, replace(frame, function=None)) if reading is not None else UNKNOWN
        if isinstance(node.target, ast.Name) and node.target.id not in frame.env and frame.function:
            left = self.evaluate(reading, frame) if reading is not None else UNKNOWN
        operation = ast.BinOp(reading or ast.Name("_", ast.Load()), node.op, node.value)
        made = self.operated(operation, left, right)
        if made.tensor is not None:
            made = replace(made, sources=frozenset({node}))
        if left.python & MUTABLE:
            made = replace(made, places=made.places | left.places)
            self.store(dict.fromkeys(left.places, element_of(right)), frame)
        self.assign(node.target, made, frame)
        frame.note(node, made)

    # Control flow

    def _if(
        self,
        statement: Statement,
        node: ast.If,
        env: Env,
        function: StaticFunction,
        exits: _Exits | None,
    ) -> Env | None:
        frame = Frame(function.scope, statement, env, function)
        test = self.evaluate(node.test, frame)
        dynamic = self._is_dynamic(node.test, frame)
        truth = frame.judge(node, truth_of(test) if dynamic is None else Truth.PYTHON)
        function.before[statement] = dict(env)
        known = test.constant if isinstance(test.constant, bool) and truth is Truth.PYTHON else dynamic
        body: Env | None = None
        orelse: Env | None = None
        if known is not False and dynamic is not True:
            body = dict(env) if dynamic is False else self._narrowed(node.test, dict(env), frame, holds=True)
            body = self._block(statement.branches.get("body", []), body, function, exits)
        if known is not True or dynamic is True:
            # Which way a graph goes tells nothing where it cannot go the other one.
            kept = dynamic is not None
            orelse = dict(env) if kept else self._narrowed(node.test, dict(env), frame, holds=False)
            orelse = self._block(statement.branches.get("orelse", []), orelse, function, exits)
        function.ends[statement] = body, orelse
        return join_envs([body, orelse])

    def _is_dynamic(self, test: ast.expr, frame: Frame) -> bool | None:
        """Whether a test holds in dygraph alone (True), in a graph alone (False), or is another."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            found = self._is_dynamic(test.operand, frame)
            return None if found is None else not found
        if isinstance(test, ast.BoolOp):
            wanted = isinstance(test.op, ast.And)  # Each of these alone makes the whole so in a graph.
            return wanted if any(self._is_dynamic(each, frame) is wanted for each in test.values) else None
        if isinstance(test, ast.Call) and frame.function is not None:
            names = frame.function.named.get(test, frozenset())
            return True if names & _DYNAMIC or self._asks_for_class(test, names, frame) else None
        return None

    def _asks_for_class(self, test: ast.Call, names: frozenset[str], frame: Frame) -> bool:
        """Whether it is ``isinstance(t, paddle.Tensor)``, which nothing in a graph is."""
        if "builtins.isinstance" not in names or len(test.args) != 2:
            return False
        full = self.home(frame.scope).names.full_names(test.args[1], frame.scope, frame.statement)
        return "paddle.Tensor" in full

    def _narrowed(self, test: ast.expr, env: Env | None, frame: Frame, *, holds: bool) -> Env | None:
        """The names where a test holds, or does not."""
        if env is None:
            return None
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._narrowed(test.operand, env, frame, holds=not holds)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
            for part in test.values:
                env = self._narrowed(part, env, frame, holds=holds)
            return env
        if (
            isinstance(test, ast.Compare)
            and len(test.ops) == 1
            and isinstance(test.ops[0], ast.Is | ast.IsNot)
        ):
            other = test.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                is_none = isinstance(test.ops[0], ast.Is) == holds
                _narrow(env, test.left, lambda value: _none(value) if is_none else _not_none(value), frame)
        if isinstance(test, ast.Call) and test.args and frame.function is not None:
            names = frame.function.named.get(test, frozenset())
            is_tensor = "paddle.is_tensor" in names or (
                "builtins.isinstance" in names
                and len(test.args) > 1
                and self._names_tensor(test.args[1], frame)
            )
            if is_tensor:
                change = _only_tensor if holds else _no_tensor
                _narrow(env, test.args[0], change, frame)
        return env

    def _names_tensor(self, node: ast.expr, frame: Frame) -> bool:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        names = self.home(frame.scope).names
        return all(
            any(each.rpartition(".")[2] in ("Tensor", "Variable", "Value") for each in found)
            for found in (names.full_names(part, frame.scope, frame.statement) for part in parts)
        )

    def _loop(
        self,
        statement: Statement,
        node: ast.While | ast.For | ast.AsyncFor,
        env: Env,
        function: StaticFunction,
        outer: _Exits | None,
    ) -> Env | None:
        function.before[statement] = dict(env)
        known = self._turned.get(statement)
        head = dict(env) if known is None else (join_envs([known.head, env]) or env)
        if known is None or head != known.head:
            known = self._turn_until_stable(statement, node, head, function)
            self._turned[statement] = known
        self._throw(known.thrown)
        is_endless = isinstance(node, ast.While) and getattr(node.test, "value", None) is True
        after = None if is_endless else dict(known.ended)
        if statement.branches.get("orelse"):
            after = self._block(statement.branches["orelse"], after, function, outer)
        return join_envs([after, *known.exits.breaks])

    def _turn_until_stable(
        self,
        statement: Statement,
        node: ast.While | ast.For | ast.AsyncFor,
        head: Env,
        function: StaticFunction,
    ) -> _Turned:
        """Go through a loop until the names at its head no longer change.

        A name that changes for too long is unknown from then on.
        """
        iterated = f"{_ITERATED}{node.lineno}:{node.col_offset}"
        if not isinstance(node, ast.While):
            frame = Frame(function.scope, statement, head, function)
            value = self.evaluate(node.iter, frame)
            head[iterated] = value.joined(head.get(iterated, NOTHING))
        widened: set[str] = set()
        self._thrown.append(None)
        turn = 0
        while True:
            exits = _Exits()
            inside = dict(head)
            frame = Frame(function.scope, statement, inside, function)
            if isinstance(node, ast.While):
                test = self.evaluate(node.test, frame)
                truth = frame.judge(node, truth_of(test))
                if turn == 0 and statement not in self._turned:
                    function.at_first[node] = truth
                ended = inside
                inside = self._narrowed(node.test, dict(inside), frame, holds=True) or inside
            else:
                ended = head
                frame.judge(node, _loop_truth(head[iterated]))
                self.assign(node.target, element_of(head[iterated]), frame)
            end = self._block(statement.branches.get("body", []), inside, function, exits)
            grown = join_envs([head, end, *exits.continues]) or head
            turn += 1
            if turn > _PATIENCE:
                widened.update(name for name in grown if grown[name] != head.get(name))
            grown.update(dict.fromkeys(widened, UNKNOWN))
            if grown == head:
                return _Turned(head, ended, exits, self._thrown.pop())
            head = grown

    def _throw(self, env: Env | None) -> None:
        """Note the names with which an exception may be raised, if a `try` may catch it."""
        if self._thrown and env is not None:
            self._thrown[-1] = join_envs([self._thrown[-1], env])

    def _try(
        self, statement: Statement, env: Env, function: StaticFunction, exits: _Exits | None
    ) -> Env | None:
        branches = statement.branches
        ending = branches.get("finally", [])
        inner = _Exits() if ending and exits is not None else exits
        self._thrown.append(dict(env))
        body = self._block(branches.get("body", []), env, function, inner)
        self._throw(body)
        thrown = self._thrown.pop()
        self._throw(thrown)
        ways: list[Env | None] = [self._block(branches.get("orelse", []), body, function, inner)]
        for name, block in branches.items():
            if name.startswith("except"):
                ways.append(self._block(block, dict(thrown or env), function, inner))
        after = join_envs(ways)
        if not ending:
            return after
        left = [*inner.breaks, *inner.continues] if inner is not None and inner is not exits else []
        before = join_envs([after, *left]) or dict(thrown or env)
        end = self._block(ending, before, function, exits)
        if end is not None and inner is not None and exits is not None and inner is not exits:
            exits.breaks += [dict(end) for _ in inner.breaks[:1]]
            exits.continues += [dict(end) for _ in inner.continues[:1]]
        return end if after is not None else None


def _captured(pattern: ast.pattern) -> Iterator[str]:
    """The names that a pattern binds."""
    for each in ast.walk(pattern):
        name = each.rest if isinstance(each, ast.MatchMapping) else getattr(each, "name", None)
        if name:
            yield name


def _loop_truth(iterated: Value) -> Truth:
    """What a `for` becomes, by what it goes through."""
    if iterated.python & {"range", "enumerate"}:
        element = iterated.element or NOTHING
        if "enumerate" not in iterated.python or not element.items:
            return truth_of(element)
        counted, row = element.items
        return Truth.EITHER if row.unknown else truth_of(counted)
    if iterated.array and not iterated.python:
        return Truth.GRAPH
    return truth_of(iterated)


def _narrow(env: Env, node: ast.expr, change: Callable[[Value], Value], frame: Frame) -> None:
    name = dotted(node)
    if not name:
        return
    value = env.get(name)
    if value is None and frame.function is not None and "." in name:
        value = frame.function.kinds.get(node)
    if value is not None:
        env[name] = change(value)


def _none(value: Value) -> Value:
    return constant(None) if "None" in value.python or value.unknown else value


def _not_none(value: Value) -> Value:
    if value.is_none:
        return NOTHING
    kept = value.python - {"None"}
    return replace(
        value, python=kept, constant=value.constant if value.constant is not None else NOTHING.constant
    )


def _only_tensor(value: Value) -> Value:
    known = value.tensor or tensor().tensor
    return Value(known, sources=value.sources, views=value.views)


def _no_tensor(value: Value) -> Value:
    found = replace(value, tensor=None)
    if found.unknown:
        return replace(found, unknown=False, python=found.python | {"object"})
    return found


def _as_load(target: ast.expr) -> ast.expr | None:
    """A target of `+=` as it is read."""
    made: ast.expr | None = None
    if isinstance(target, ast.Name):
        made = ast.Name(target.id, ast.Load())
    elif isinstance(target, ast.Attribute):
        made = ast.Attribute(target.value, target.attr, ast.Load())
    elif isinstance(target, ast.Subscript):
        made = ast.Subscript(target.value, target.slice, ast.Load())
    return ast.copy_location(made, target) if made is not None else None
