"""Walker: processes the statements of static functions with their current names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from msgspec.structs import replace

from trainshift.python.flow.cfg import Edge, EdgeKind, Point, Role
from trainshift.python.flow.solver import Analysis, Solution, solve
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Scope, dotted
from trainshift.python.syntax.collect import as_load
from trainshift.python.values.heap import Attribute
from trainshift.static_graphs.domain.abstract_values import (
    NOTHING,
    UNBOUND,
    UNKNOWN,
    AbstractValue,
    Env,
    constant,
    join,
    join_envs,
    python,
    shallow,
    tensor,
)
from trainshift.static_graphs.reading.elements import (
    element_of,
    in_any_order,
    item_of,
    put_anywhere,
    put_under,
)
from trainshift.static_graphs.reading.evaluator import Evaluator
from trainshift.static_graphs.reading.frame import Frame, truth_of
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.reading.stores import (
    MUTABLE,
    Cell,
    OuterName,
    Stores,
    outer_name,
    placed,
    put_into,
    store,
    with_stored,
)
from trainshift.static_graphs.reading.type_inference import Uses, may_be_told

_ITERATED = "for "
"""The key, which is not a Python name, for the iterable of a `for` at its place."""
_DYNAMIC = frozenset(
    {"paddle.in_dynamic_mode", "paddle.in_dynamic_or_pir_mode", "paddle.framework.in_dynamic_mode",
     "paddle.fluid.framework.in_dygraph_mode", "paddle.fluid.in_dygraph_mode", "paddle.base.in_dygraph_mode"}
)  # fmt: skip


class _Kinds(Analysis[Env]):
    """The data-flow problem of the possible values of a function's names; a `Walker` has its transfer
    functions.
    """

    rounds = 40
    at_raised = False

    def __init__(self, walker: Walker, function: StaticFunction, env: Env) -> None:
        self._walker = walker
        self._function = function
        self._start = env
        self._outcomes: dict[Point, tuple[bool | None, bool | None]] = {}
        self._given_up: set[str] = set()

    def frame(self, point: Point, env: Env) -> Frame:
        """Return the frame in which the syntax of a point is evaluated."""
        node = point.node
        statement = self._function.statement_of.get(node) if isinstance(node, ast.stmt) else None
        return Frame(self._function.scope, statement or self._function.scope.statement, env, self._function)

    def boundary(self, point: Point) -> Env:
        return dict(self._start)

    def join(self, left: Env, right: Env) -> Env:
        found = join_envs([left, right]) or left
        found.update(dict.fromkeys(self._given_up & found.keys(), UNKNOWN))
        return found

    def widen(self, old: Env, new: Env) -> Env:
        self._given_up.update(name for name in new if new[name] != old.get(name))
        return self.join(old, new)

    def transfer(self, point: Point, state: Env) -> Env:
        env = dict(state)
        node, frame = point.node, self.frame(point, env)
        if isinstance(node, ast.stmt) and frame.statement is not None:
            self._function.reached.add(frame.statement)
        match point.role:
            case Role.STATEMENT:
                assert isinstance(node, ast.stmt)
                return self._walker.simple(node, frame)
            case Role.TEST:
                assert isinstance(node, ast.If | ast.While)
                self._outcomes[point] = self._walker.tested(node, frame)
            case Role.ITERABLE | Role.NEXT | Role.TARGET:
                assert isinstance(node, ast.For | ast.AsyncFor)
                self._walker.turn(node, point.role, frame)
            case Role.CONTEXT:
                (item,) = point.parts
                assert isinstance(item, ast.withitem)
                value = self._walker.values.evaluate(item.context_expr, frame)
                if item.optional_vars is not None:
                    self._walker.assign(item.optional_vars, UNKNOWN if value.unknown else value, frame)
            case Role.SUBJECT:
                assert isinstance(node, ast.Match)
                frame.judge(node, truth_of(self._walker.values.evaluate(node.subject, frame)))
            case Role.CAPTURE:
                assert isinstance(node, ast.match_case)
                env.update(dict.fromkeys(_captured(node.pattern), UNKNOWN))
            case Role.GUARD:
                assert isinstance(node, ast.match_case)
                assert node.guard is not None
                self._walker.values.evaluate(node.guard, frame)
            case Role.CAUGHT:
                assert isinstance(node, ast.ExceptHandler)
                if node.name:
                    env[node.name] = python("object")
            case _:
                pass
        return env

    def refine(self, edge: Edge, state: Env) -> Env | None:
        node = edge.source.node
        if edge.source.role is not Role.TEST or edge.kind not in (EdgeKind.TRUE, EdgeKind.FALSE):
            return state
        assert isinstance(node, ast.If | ast.While)
        known, dynamic = self._outcomes[edge.source]
        holds = edge.kind is EdgeKind.TRUE
        if isinstance(node, ast.While):
            return self._narrowed(edge, state, holds=True) if holds else state
        if (known is (not holds) and dynamic is not True) or (holds and dynamic is True):
            return None
        # The branch that a graph takes shows nothing if it cannot take the other one.
        kept = dynamic is False if holds else dynamic is not None
        return state if kept else self._narrowed(edge, state, holds=holds)

    def _narrowed(self, edge: Edge, state: Env, *, holds: bool) -> Env | None:
        env = dict(state)
        test = getattr(edge.source.node, "test", None)
        assert isinstance(test, ast.expr)
        return self._walker.narrowed(test, env, self.frame(edge.source, env), holds=holds)


class Host(Protocol):
    """The interface to all interpreted functions."""

    def enclose(self, inner: Scope, frame: Frame) -> None:
        """Record the names around an inner function that is made static itself."""

    def stored_more(self, function: StaticFunction, cell: Cell) -> None:
        """Interpret again the functions that depend on a cell of the heap."""


class Walker:
    """Interpret one function after another: the effects of their statements on names."""

    def __init__(self, values: Evaluator, uses: Uses, host: Host) -> None:
        self.values = values
        self.uses = uses
        self.host = host

    def walk(self, function: StaticFunction, env: Env) -> AbstractValue:
        """Interpret a function from initial values of names; return its possible results and record the
        rest in it.
        """
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.values.evaluate(
                node.body, Frame(function.scope, function.scope.statement, env, function)
            )
        function.returned.clear()
        function.at_first.clear()
        cfg = function.cfg
        kinds = _Kinds(self, function, env)
        solution = solve(cfg, kinds)
        self._write_down(function, solution)
        self._join_copies(function, kinds, solution)
        values = list(function.returned.values())
        falls = (edge for edge in cfg.exit.into if edge.kind is not EdgeKind.RETURN)
        function.falls_through = any(solution.along(edge) is not None for edge in falls)
        if function.falls_through:
            values.append(constant(None))
        return join(values)

    def _write_down(self, function: StaticFunction, solution: Solution[Env]) -> None:
        """Record the names around compound statements, and at the ends of the branches of an `if`."""
        for statement in function.statements:
            node = statement.node
            if statement.branches:
                function.after[statement] = solution.after(node) or {}
            if isinstance(node, ast.If):
                points = solution.cfg.points(node.test)
                function.before[statement] = join_envs(solution.after(each) for each in points) or {}
                otherwise = (edge for each in points for edge in each.out if edge.kind is EdgeKind.FALSE)
                ends = [
                    solution.after(block[-1].node) if block else join_envs(map(solution.along, otherwise))
                    for block in (statement.branches.get(name, []) for name in ("body", "orelse"))
                ]
                function.ends[statement] = ends[0], ends[1]
            elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
                entries = (
                    each for point in solution.cfg.starts(node) for each in point.into if not each.back
                )
                function.before[statement] = join_envs(map(solution.along, entries)) or {}

    def _join_copies(self, function: StaticFunction, kinds: _Kinds, solution: Solution[Env]) -> None:
        """Join the results for an expression with several copies in the graph: in a `finally`."""
        copies: dict[ast.AST, list[Point]] = {}
        for point in solution.cfg.all:
            if point.node is not None and solution.before(point) is not None:
                copies.setdefault(point.node, []).append(point)
        found = {(each.node, each.role) for each in solution.cfg.all}
        if sum(map(len, copies.values())) <= len(found):
            return
        joined: dict[ast.AST, AbstractValue] = {}
        truths: dict[ast.AST, Truth] = {}
        whole = dict(function.kinds), dict(function.truths)
        for points in copies.values():
            for point in points:
                function.kinds.clear()
                function.truths.clear()
                before = solution.before(point)
                assert before is not None
                kinds.transfer(point, before)
                for node, value in function.kinds.items():
                    joined[node] = value.joined(joined.get(node, NOTHING))
                for node, truth in function.truths.items():
                    truths[node] = truth if truths.get(node, truth) is truth else Truth.EITHER
        function.kinds, function.truths = whole[0] | joined, whole[1] | truths

    def simple(self, node: ast.stmt, frame: Frame) -> Env:
        """Return the names after a simple statement."""
        env, function, statement = frame.env, frame.function, frame.statement
        assert function is not None
        assert statement is not None
        match node:
            case ast.Assign():
                value = self.values.evaluate(node.value, frame)
                for target in node.targets:
                    self.assign(target, value, frame)
            case ast.AnnAssign():
                if node.value is not None:
                    value = self.values.evaluate(node.value, frame)
                    self.assign(node.target, value, frame)
            case ast.AugAssign():
                self._augmented(node, frame)
            case ast.Expr():
                self.values.evaluate(node.value, frame)
            case ast.Return():
                value = self.values.evaluate(node.value, frame) if node.value is not None else constant(None)
                function.returned[statement] = value
            case ast.Raise():
                for part in (node.exc, node.cause):
                    if part is not None:
                        self.values.evaluate(part, frame)
            case ast.Assert():
                frame.judge(node, truth_of(self.values.evaluate(node.test, frame)))
                if node.msg is not None:
                    self.values.evaluate(node.msg, frame)
                return self.narrowed(node.test, env, frame, holds=True) or env
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._defined(node, function, frame)
            case ast.Import() | ast.ImportFrom():
                for name, bindings in function.scope.bindings.items():
                    env.update(
                        (name, self.values.of_binding(each))
                        for each in bindings
                        if each.statement is statement
                    )
            case ast.Delete():
                for target in node.targets:
                    self._deleted(target, frame)
            case _:
                pass
        return env

    def _defined(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        function: StaticFunction,
        frame: Frame,
    ) -> None:
        """Bind the name of an inner function or class."""
        frame.env.pop(node.name, None)
        for default in getattr(getattr(node, "args", None), "defaults", ()):
            self.values.evaluate(default, frame)
        inner = function.scope.facts.scope_of.get(node)
        if inner is not None and not isinstance(node, ast.ClassDef):
            self.host.enclose(inner, frame)
            frame.env[node.name] = python("function", things=frozenset({Function(inner)}))

    def _deleted(self, target: ast.expr, frame: Frame) -> None:
        """Unbind a name, or remove an element from a container."""
        if isinstance(target, ast.Name):
            frame.env[target.id] = UNBOUND
        elif isinstance(target, ast.Subscript):
            base = self.values.evaluate(target.value, frame)
            self.assign(target.value, in_any_order(base), frame, is_change=True)

    # Bindings

    def assign(
        self, target: ast.expr, value: AbstractValue, frame: Frame, *, is_change: bool = False
    ) -> None:
        """Assign a value to a target."""
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
            self.values.evaluate(target.value, frame)
            if frame.function is None:
                return
            name, value = dotted(target), shallow(placed(value, target))
            if not is_change:
                self.store({Attribute(target.attr): value}, frame)
            if name and (not is_change or name in frame.env):
                frame.env[name] = value
                frame.note(target, value)
        elif isinstance(target, ast.Subscript):
            self._set_item(target, value, frame)

    def store(self, stores: Mapping[Cell, AbstractValue], frame: Frame) -> None:
        """Record stores into heap cells, and their effect on the current names."""
        if frame.function is not None:
            for cell, value in stores.items():
                if store(frame.function.stored, cell, value):
                    self.host.stored_more(frame.function, cell)
        made: Stores = {cell: value for cell, value in stores.items() if isinstance(cell, ast.AST)}
        for name, known in [*frame.env.items()] if made else ():
            frame.env[name] = with_stored(known, made)
        for cell, value in stores.items():
            if isinstance(cell, Attribute):
                ending = f".{cell.name}"
                for name in [each for each in frame.env if each.endswith(ending)]:
                    frame.env[name] = frame.env[name].joined(value)
            elif isinstance(cell, OuterName) and self._names_cell(cell, frame):
                outer = self.values.evaluate(ast.Name(cell.name, ast.Load()), replace(frame, function=None))
                closure = frame.function.closure if frame.function is not None else {}
                frame.env[cell.name] = frame.env.get(cell.name, closure.get(cell.name, outer)).joined(value)

    def _names_cell(self, cell: OuterName, frame: Frame) -> bool:
        """Return whether a name is the same variable at an expression."""
        return self.values.home(frame.scope).names.lookup(cell.name, frame.scope, None)[0] is cell.holder

    def _bind_outside(self, name: str, value: AbstractValue, frame: Frame) -> None:
        """Record the value of a name for the inner or outer functions."""
        function, scope = frame.function, frame.scope
        assert function is not None
        if store(function.bound, name, value):
            self.host.stored_more(function, ast.Pass())
        if name in scope.declared_nonlocal or name in scope.declared_global:
            cell = outer_name(self.values.home(scope), scope, name)
            if store(function.stored, cell, value):
                self.host.stored_more(function, cell)

    def _refined(self, name: str, value: AbstractValue, frame: Frame) -> AbstractValue:
        """An unknown value, refined by the uses of the name while it has that value."""
        if may_be_told(value) and frame.function is not None:
            return self.uses.by_use(name, frame.statement, frame.function, value)
        return value

    def _unpack(self, target: ast.Tuple | ast.List, value: AbstractValue, frame: Frame) -> None:
        starred = [index for index, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
        for index, each in enumerate(target.elts):
            if starred and index >= starred[0]:
                part = element_of(value)
            else:
                is_whole = value.items is None or len(value.items) == len(target.elts) or bool(starred)
                part = item_of(value, index) if is_whole else element_of(value)
            self.assign(each, part, frame)
        frame.note(target, value)

    def _set_item(self, target: ast.Subscript, value: AbstractValue, frame: Frame) -> None:
        base = self.values.evaluate(target.value, frame)
        index = self.values.evaluate(target.slice, frame)
        frame.note(target, value)
        if _is_of_attributes(target.value) and isinstance(index.constant, str):
            self.store({Attribute(index.constant): value}, frame)
        if base.python & {"list", "dict"} and base.tensor is None:
            value = put_into(base.places, value)
            added = element_of(value) if isinstance(target.slice, ast.Slice) else value
            grown = put_anywhere(base, added)
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
        right = self.values.evaluate(node.value, frame)
        reading = as_load(node.target)
        left = self.values.evaluate(reading, replace(frame, function=None))
        if isinstance(node.target, ast.Name) and node.target.id not in frame.env and frame.function:
            left = self.values.evaluate(reading, frame)
        operation = ast.BinOp(reading, node.op, node.value)
        made = self.values.operated(operation, left, right)
        if made.tensor is not None:
            made = replace(made, sources=frozenset({node}))
        if left.python & MUTABLE:
            made = replace(made, places=made.places | left.places)
            self.store(dict.fromkeys(left.places, element_of(right)), frame)
        self.assign(node.target, made, frame)
        frame.note(node, made)

    # Control flow

    def tested(self, node: ast.If | ast.While, frame: Frame) -> tuple[bool | None, bool | None]:
        """Evaluate a test; return its certain outcome, and whether it is true in dygraph only."""
        function = frame.function
        assert function is not None
        test = self.values.evaluate(node.test, frame)
        if isinstance(node, ast.While):
            truth = frame.judge(node, truth_of(test))
            function.at_first.setdefault(node, truth)
            return None, None
        dynamic = self._is_dynamic(node.test, frame)
        truth = frame.judge(node, truth_of(test) if dynamic is None else Truth.PYTHON)
        known = test.constant if isinstance(test.constant, bool) and truth is Truth.PYTHON else dynamic
        return known, dynamic

    def turn(self, node: ast.For | ast.AsyncFor, role: Role, frame: Frame) -> None:
        """Evaluate a loop's iterable, classify it, or bind its target to the next element."""
        iterated = f"{_ITERATED}{node.lineno}:{node.col_offset}"
        if role is Role.ITERABLE:
            frame.env[iterated] = self.values.evaluate(node.iter, frame)
        elif role is Role.NEXT:
            frame.judge(node, _loop_truth(frame.env[iterated]))
        else:
            self.assign(node.target, element_of(frame.env[iterated]), frame)

    def _is_dynamic(self, test: ast.expr, frame: Frame) -> bool | None:
        """Return whether a test is true in dygraph only (True), in a graph only (False), or neither
        (None).
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            found = self._is_dynamic(test.operand, frame)
            return None if found is None else not found
        if isinstance(test, ast.BoolOp):
            wanted = isinstance(test.op, ast.And)  # Each of these alone makes the whole a tensor.
            return wanted if any(self._is_dynamic(each, frame) is wanted for each in test.values) else None
        if isinstance(test, ast.Call) and frame.function is not None:
            names = frame.function.named.get(test, frozenset())
            return True if names & _DYNAMIC or self._asks_for_class(test, names, frame) else None
        return None

    def _asks_for_class(self, test: ast.Call, names: frozenset[str], frame: Frame) -> bool:
        """Return whether it is ``isinstance(t, paddle.Tensor)``, which is false for everything in a graph."""
        if "builtins.isinstance" not in names or len(test.args) != 2:
            return False
        full = self.values.home(frame.scope).names.full_names(test.args[1], frame.scope, frame.statement)
        return "paddle.Tensor" in full

    def narrowed(self, test: ast.expr, env: Env | None, frame: Frame, *, holds: bool) -> Env | None:
        """The names after a test that is true, or false."""
        if env is None:
            return None
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.narrowed(test.operand, env, frame, holds=not holds)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
            for part in test.values:
                env = self.narrowed(part, env, frame, holds=holds)
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
        names = self.values.home(frame.scope).names
        return all(
            any(each.rpartition(".")[2] in ("Tensor", "Variable", "AbstractValue") for each in found)
            for found in (names.full_names(part, frame.scope, frame.statement) for part in parts)
        )


def _captured(pattern: ast.pattern) -> Iterator[str]:
    """The names that a pattern binds."""
    for each in ast.walk(pattern):
        name = each.rest if isinstance(each, ast.MatchMapping) else getattr(each, "name", None)
        if name:
            yield name


def _loop_truth(iterated: AbstractValue) -> Truth:
    """The form of a `for`, by its iterable."""
    if iterated.python & {"range", "enumerate"}:
        element = iterated.element or NOTHING
        if "enumerate" not in iterated.python or not element.items:
            return truth_of(element)
        counted, row = element.items
        return Truth.EITHER if row.unknown else truth_of(counted)
    if iterated.array and not iterated.python:
        return Truth.GRAPH
    return truth_of(iterated)


def _is_of_attributes(node: ast.expr) -> bool:
    """Return whether an expression is the dictionary of an object's attributes."""
    match node:
        case ast.Attribute(attr="__dict__") | ast.Call(ast.Name("vars"), [_]):
            return True
    return False


def _narrow(env: Env, node: ast.expr, change: Callable[[AbstractValue], AbstractValue], frame: Frame) -> None:
    name = dotted(node)
    if not name:
        return
    value = env.get(name)
    if value is None and frame.function is not None and "." in name:
        value = frame.function.kinds.get(node)
    if value is not None:
        env[name] = change(value)


def _none(value: AbstractValue) -> AbstractValue:
    return constant(None) if "None" in value.python or value.unknown else value


def _not_none(value: AbstractValue) -> AbstractValue:
    if value.is_none:
        return NOTHING
    kept = value.python - {"None"}
    return replace(
        value, python=kept, constant=value.constant if value.constant is not None else NOTHING.constant
    )


def _only_tensor(value: AbstractValue) -> AbstractValue:
    known = value.tensor or tensor().tensor
    return AbstractValue(known, sources=value.sources, views=value.views)


def _no_tensor(value: AbstractValue) -> AbstractValue:
    found = replace(value, tensor=None)
    if found.unknown:
        return replace(found, unknown=False, python=found.python | {"object"})
    return found
