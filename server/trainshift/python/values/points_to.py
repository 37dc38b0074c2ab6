"""Points-to analysis: the possible objects of names, elements and attributes at each point.

An object is identified by its place of creation.  In a loop, the object of the last iteration is
distinguished from those of earlier ones, so that a mutation of one does not affect the others.  Objects from
outside a function (parameters, outer variables, and their contents) are placeholders, which each call
replaces by its own objects.  Each function is analysed once, and again when the summary of a callee grows,
until nothing grows.

`UNKNOWN` is the top element: any object from outside, or that unknown code may hold.  A set of objects is an
integer with one bit per object.  Numbers, strings and similar values are not objects.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from trainshift.python.flow.cfg import Cfg, Edge, EdgeKind, Point, Role
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.def_use import uses
from trainshift.python.flow.solver import Analysis, Solution, solve
from trainshift.python.syntax.call_binding import parameter_names
from trainshift.python.syntax.node_classes import TRIES
from trainshift.python.values.heap import (
    ANY,
    UNKNOWN,
    Attribute,
    Bits,
    Heap,
    Object,
    Objects,
    Sort,
    State,
    Variable,
    key_of,
    union,
)
from trainshift.python.values.points_transfer import (
    FunctionNode,
    FunctionScope,
    Policy,
    Summary,
    Transfer,
    default_values,
    is_single,
    moves_in,
)

_CATCHING = (*TRIES, ast.With, ast.AsyncWith)
_MOST = 60
"""The number of analyses of a function after which its effects count as unknown."""
_MOST_KEYS = 24
"""With more keys than these, the analysis does not distinguish the objects of parameters by key."""


class PointsTo:
    """The objects in some functions and their inner functions, computed on first use."""

    def __init__(self, functions: Iterable[FunctionNode], policy: Policy) -> None:
        self.policy = policy
        self.objects = Objects()
        self.scopes: dict[ast.AST, FunctionScope] = {}
        self._flows: dict[ast.AST, FunctionPoints] = {}
        self._turns: dict[ast.AST, int] = {}
        self._summaries: dict[ast.AST, Summary] = {}
        self.catches = False
        """True if a function may continue after an exception; otherwise the state at an exception does not
        matter.
        """
        self._capturing: dict[Variable, list[FunctionScope]] = {}
        self._callers: dict[ast.AST, set[ast.AST]] = {}
        self._open: list[ast.AST] = []
        self._stale: dict[ast.AST, None] = {}
        self._keys: set[Hashable] = set()
        for each in functions:
            self._enter(each, None)
        # Later analyses must find the same objects.
        keys = self._keys - {ANY}
        self.objects.keys = frozenset(keys) if len(keys) <= _MOST_KEYS else frozenset()

    def of(self, function: FunctionNode) -> FunctionPoints:
        """The objects in one function."""
        self.summary(function)
        return self._flows[function]

    def summary(self, function: FunctionNode) -> Summary:
        """The summary of a function's calls; still empty while it is being analysed."""
        if function not in self._summaries:
            if function not in self.scopes:
                self._enter(function, None)
            self._summaries[function] = Summary()
            self._analyse(function)
        if self._open:
            self._callers.setdefault(function, set()).add(self._open[-1])
        else:
            while self._stale:
                stale = next(iter(self._stale))
                del self._stale[stale]
                self._analyse(stale)
        return self._summaries[function]

    def capturing(self, variable: Variable) -> Sequence[FunctionScope]:
        """The functions inside that of a variable that know it."""
        return self._capturing.get(variable, ())

    # Functions.

    def _enter(self, function: FunctionNode, parent: FunctionScope | None) -> None:
        used = uses(*self.policy.body(function))
        arguments = function.args
        own = frozenset([*used.bound, *parameter_names(arguments)]) - used.declared
        declared: set[str] = set()
        definitions: dict[str, FunctionNode] = {}
        inner: list[FunctionNode] = []
        lazy = isinstance(function, ast.AsyncFunctionDef)
        bound: dict[str, int] = dict.fromkeys(parameter_names(arguments), 1)
        called: set[int] = set()
        waiting: list[ast.AST] = list(self.policy.body(function))
        while waiting:
            node = waiting.pop()
            match node:
                case ast.Call(func, args):
                    called.add(id(func))
                    if isinstance(func, ast.Attribute) and args:
                        self._keys.add(key_of(args[0]))
                case ast.Subscript(slice=place):
                    self._keys.add(key_of(place))
                case ast.Attribute(attr=name) if id(node) not in called:
                    self._keys.add(Attribute(name))
                case ast.Global(names):
                    declared |= set(names)
                case ast.Nonlocal():
                    pass
                case ast.stmt() if isinstance(node, _CATCHING) and not self.catches:
                    self.catches = True
                    self._stale.update(dict.fromkeys(self._flows))
                case ast.Yield() | ast.YieldFrom() | ast.Await():
                    lazy = True
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    bound[name] = bound.get(name, 0) + 1
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef):
                inner.append(node)  # type: ignore[arg-type]
                if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                    definitions[node.name] = node
                    bound[node.name] = bound.get(node.name, 0) + 1
                waiting += default_values(node)  # type: ignore[arg-type]
            else:
                waiting += ast.iter_child_nodes(node)
        rebound = {each for one in inner for each in uses(*self.policy.body(one)).declared}
        definitions = {
            name: each for name, each in definitions.items() if bound[name] == 1 and name not in rebound
        }
        free = frozenset(used.read | used.captured | used.rebound | used.declared) - own
        scope = FunctionScope(function, parent, own, frozenset(declared), free, definitions, lazy)
        self.scopes[function] = scope
        for name in free:
            variable = scope.variable(name)
            if variable[0] is not None:
                self._capturing.setdefault(variable, []).append(scope)
        for each in inner:
            self._enter(each, scope)

    def _analyse(self, function: FunctionNode | ast.AST) -> None:
        turn = self._turns[function] = self._turns.get(function, 0) + 1
        old = self._summaries[function]
        scope = self.scopes[function]
        if function not in self._flows:
            self._flows[function] = FunctionPoints(self, scope)
        flow = self._flows[function]
        self._open.append(function)
        try:
            flow.solve()
        finally:
            self._open.pop()
        new = flow.summary()
        if old.state is not None and new.state is not None:
            new = Summary(old.returned | new.returned, old.changed | new.changed, old.state.joined(new.state))
        if turn > _MOST or scope.is_lazy:
            new = Summary(UNKNOWN, UNKNOWN, new.state, is_known=False)
        if new != old:
            self._summaries[function] = new
            self._stale.update(dict.fromkeys(self._callers.get(function, ()) if turn <= _MOST + 1 else ()))


class FunctionPoints(Analysis[State]):
    """The objects at the points of one function."""

    def __init__(self, whole: PointsTo, scope: FunctionScope) -> None:
        self.whole = whole
        self.scope = scope
        self.cfg: Cfg = build(list(whole.policy.body(scope.node)))
        self.moves = moves_in(whole.policy.body(scope.node))
        """The stores of elements that change places."""
        self.changed: dict[Point, Bits] = {}
        """The objects that a point may change, by itself or by its calls."""
        self.changed_by: dict[ast.AST, Bits] = {}
        """The objects that an expression may change, by itself or by its calls."""
        self.stored: dict[Point, dict[Bits, Bits]] = {}
        """The values that a point, or its calls, put into objects, by these."""
        self.assigned: dict[Point, set[Variable]] = {}
        """The variables to which what a point calls may give values."""
        self.given: dict[ast.Call, Bits] = {}
        """The arguments of a call."""
        self.loads: dict[ast.expr, ast.expr] = {}
        """The targets of augmented assignments, as they are read."""
        self.parts: dict[ast.expr, list[ast.expr]] = {}
        """All expressions in one that may not be evaluated."""
        self.returned: Bits = 0
        self._entered: dict[Point, State] = {}
        """The state in which control first reaches the head of a loop, by head."""
        self._solution: Solution[State] | None = None

    def solve(self) -> None:
        """Compute the states of all points."""
        self.at_raised = self.whole.catches
        self._solution = solve(self.cfg, self)

    def summary(self) -> Summary:
        """The summary of a call, for its normal end and for exceptions."""
        assert self._solution is not None
        state = self._solution.after(self.cfg.exit)
        raised = self._solution.after(self.cfg.raised) if self.whole.catches else None
        if state is not None and raised is not None:
            state = state.joined(raised)
        changed = union(self.changed.values())
        state = state or raised
        state = None if state is None else self._left(state)
        return Summary(self.returned, changed & (self.whole.objects.outer | UNKNOWN), state)

    def _left(self, state: State) -> State:
        """The final state without objects that are unreachable once the function has ended."""
        objects = self.whole.objects
        foreign = union(bits for key, bits in state.variables.items() if key[0] is not self.scope.node)
        known = objects.outer | objects.functions | UNKNOWN | state.escaped | self.returned | foreign
        kept = self.within(state, known)
        heap = {index: cells for index, cells in state.heap.items() if kept >> index & 1}
        return replace(
            state, heap=heap, twice={at: bits for at, bits in state.twice.items() if kept >> at & 1}
        )

    # Questions.

    def before(self, at: Point | ast.AST) -> State | None:
        """The state before a point or statement; None if it is unreachable."""
        assert self._solution is not None
        return self._solution.before(at)

    def after(self, at: Point | ast.AST) -> State | None:
        """The state after a point or statement; None if control never falls off its end."""
        assert self._solution is not None
        return self._solution.after(at)

    def of_name(self, state: State, name: str) -> Bits:
        """The objects that a name may be."""
        return state.variables.get(self.scope.variable(name), 0)

    def of(self, state: State, node: ast.expr) -> Bits:
        """The possible objects of an expression, evaluated in a state."""
        return Transfer(self, state, None).value(node)

    def within_value(self, state: State, node: ast.expr) -> Bits:
        """The possible values of an expression and their contents, including objects that it creates."""
        turn = Transfer(self, state, None)
        return turn.heap.closure(turn.value(node))

    def spread(self, state: State, bits: Bits) -> Bits:
        """A set of objects, extended by everything that `UNKNOWN` may be."""
        return self._heap(state).spread(bits)

    def may_be_one(self, state: State, one: Bits, other: Bits) -> bool:
        """Return whether an object of one set may be one of another set."""
        heap = self._heap(state)
        return bool(heap.spread(one) & heap.spread(other))

    def within(self, state: State, bits: Bits) -> Bits:
        """Objects with all their possible contents, at any depth."""
        return self._heap(state).closure(bits)

    def held(self, state: State, bits: Bits, key: Hashable = ANY) -> Bits:
        """The possible contents of objects: at a key, as an attribute, or anywhere."""
        return self._heap(state).held(bits, key)

    def held_twice(self, state: State, bits: Bits) -> Bits:
        """The objects reachable by two paths from one of some objects."""
        return self._heap(state).reached_twice(bits)

    def _heap(self, state: State) -> Heap:
        return Heap(self.whole.objects, state)

    # The analysis.

    def boundary(self, point: Point) -> State:
        arguments = self.scope.node.args
        keys = [(self.scope.node, name) for name in parameter_names(arguments)]
        return State({key: self.whole.objects.intern(Object(Sort.PARAMETER, key)) for key in keys}, {}, {}, 0)

    def join(self, left: State, right: State) -> State:
        return left.joined(right)

    def refine(self, edge: Edge, state: State) -> State:
        """Let a loop over a single element enter its body once, in the first state."""
        if edge.target.role is Role.NEXT and not edge.back:
            known = self._entered.get(edge.target)
            self._entered[edge.target] = state if known is None else known.joined(state)
        match edge.source.role, edge.kind, edge.source.node:
            case Role.NEXT, EdgeKind.TRUE, ast.For(iter=source) if is_single(source):
                return self._entered[edge.source]
        return state

    def transfer(self, point: Point, state: State) -> State:
        turn = Transfer(self, state, point)
        turn.pass_point(point)
        new = turn.heap.state()
        return state if new == state else new
