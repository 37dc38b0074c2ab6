"""Sharing: the names of a function that may be one container or array that is mutated (AD37).

A mutation through one name that another one shows later cannot be followed: its adjoint is unknown.  This is
a view on the points-to analysis.  Two names share something if their possible objects, with all contents,
overlap.  The reason is the statement that puts one into the other, or that gives one of them its value.  If
the value may be a number instead of an array, the derivative checks that first (`Alias.unless`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from itertools import combinations, permutations

from msgspec import Struct

from trainshift.derivatives.reading.function import Alias, Conflict, Function, Summary, root_of
from trainshift.derivatives.reading.kinds import Kind, meet, reaches
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import CHANGING, LOSING
from trainshift.derivatives.reading.sources import GIVEN, OF, Sources, name_of, number, parts_of
from trainshift.python.flow.cfg import Edge, EdgeKind, Point, Role
from trainshift.python.flow.liveness import Liveness
from trainshift.python.flow.solver import Analysis, solve
from trainshift.python.flow.traversal import reachable
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.values.heap import (
    UNKNOWN,
    Attribute,
    Bits,
    Object,
    Sort,
    State,
    Variable,
    bits_of,
    key_of,
    union,
)

START = ast.Pass()
CONTAINERS = ("list", "tuple", "dict")
Pairs = Mapping[frozenset[str], tuple[Alias, ...]]
"""The pairs of names that may share something, with the reasons; a name alone may hold one thing twice."""


class _Change(Struct, frozen=True):
    """A mutation of an expression's value, of a kind; `itself`: by an augmented assignment."""

    node: ast.stmt
    changed: ast.expr
    kind: Kind
    itself: bool = False

    @property
    def is_untold(self) -> bool:
        """Return whether only a run shows that the value is an object."""
        return self.itself and not self.kind.has("array", "box", *CONTAINERS)


class Sharing(Analysis[Pairs]):
    """The aliases among one function's names, and the mutations of shared objects."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.nodes = Nodes(function)
        self.reader = self.nodes.reader
        self.names = Sources(self.reader)
        self.strangers: dict[str, tuple[Function, str]] = {}
        """The variables of other functions, by what they are called here."""
        self.ever: dict[frozenset[str], tuple[Alias, ...]] = {}
        self.flows: set[frozenset[str]] = set()
        """Pairs of names of which one gets what the other had: `a, b = b, a`."""
        self.found: dict[tuple[int, str, str], Conflict] = {}
        self.in_place: set[int] = set()
        self.changed: set[str] = set()
        self.arguments: set[str] = set()
        self.returned: set[str] = set()
        self.handed: set[str] = set()
        self.grown: set[str] = set()
        self.undone: set[str] = set()
        self.augmented: set[str] = set()
        self.shown_by: set[str] = set()
        if self.whole.changes:
            self._solve()

    def _solve(self) -> None:
        """Find the aliases at each point, then record the mutations of shared objects.

        Without any mutation, no alias matters.
        """
        function = self.function
        self.flow = self.whole.points.of(function.node)
        self.objects = self.whole.points.objects
        self.is_called = self.whole.is_called(function)
        self.rebound = set(filter(function.is_rebound, terms.names_bound(function.body)))
        self.read_beside: set[str] = set()
        self._known: dict[int, tuple[State, dict[str, Bits]]] = {}
        self._variables = self._named()
        self.rebound |= set[str]().union(*(each.foreign for each in function.nested.values()))
        self._always = {name for _, name in function.reached} | function.captured_inside | {function.result}
        cfg = self.flow.cfg
        self._live = Liveness(cfg, self._always)
        self._iterated = _iterated(function.body)
        self._solution = solve(cfg, self)
        for point in cfg.all:
            self._note(point)
        self._captured()

    # Objects.

    def _named(self) -> dict[str, Variable]:
        """The variables that the function can access, by its names for them."""
        function = self.function
        found: dict[str, Variable] = {each: (function.node, each) for each in function.local}
        reached = [*function.reached]
        for node in terms.own_nodes(function.body):
            if isinstance(node, ast.Call):
                for callee in self.names.callees(node):
                    reached += callee.reached
                    reached += [(callee, name) for name in callee.kept()]
        for owner, name in reached:
            here = name_of(function, owner, name)
            found[here] = owner.node, name
            if OF in here:
                self.strangers[here] = owner, name
        return found

    def _bits(self, state: State, name: str) -> Bits:
        """The possible objects of a variable, or of a parameter's argument."""
        if name.endswith(GIVEN):
            return self.objects.intern(Object(Sort.PARAMETER, (self.function.node, name.removesuffix(GIVEN))))
        variable = self._variables[name]
        if variable in state.variables or variable[0] is self.function.node:
            return state.variables.get(variable, 0)
        if name in self.strangers:
            # Captures of inner functions whose outer function has ended.
            owner, own = self.strangers[name]
            inner = union(
                self.objects.intern(Object(Sort.FUNCTION, each.node)) for each in owner.nested.values()
            )
            return self.flow.held(state, inner, Attribute(own))
        return self.objects.intern(Object(Sort.OUTER, variable))

    def within(self, state: State, name: str) -> Bits:
        """The possible objects of a variable with all their contents, without functions."""
        return self._closures(state).get(name, 0)

    def _closures(self, state: State) -> dict[str, Bits]:
        """The possible objects of each name, with all their contents."""
        known = self._known.get(id(state))
        if known is None or known[0] is not state:
            found: dict[str, Bits] = {}
            for name in (*self._variables, *(f"{each}{GIVEN}" for each in self.function.params)):
                if self._kind(name).has("function") or (
                    OF not in name and GIVEN not in name and self.nodes.certain(terms.name(name))
                ):
                    continue
                if bits := self._bits(state, name):
                    found[name] = self._inside(state, bits)
            known = self._known[id(state)] = state, found
        return known[1]

    def _inside(self, state: State, bits: Bits) -> Bits:
        found = self.flow.within(state, bits) if bits else 0
        return self.flow.spread(state, found & ~self.objects.functions)

    def _twice(self, state: State, name: str) -> Bits:
        """The objects that are reachable from a variable by two paths."""
        return self.flow.held_twice(state, self._bits(state, name)) & ~self.objects.functions

    def _shared(self, state: State) -> set[frozenset[str]]:
        """The pairs of names that may share an object, and the names that may contain an object twice."""
        closures = self._closures(state)
        found = {
            frozenset((one, other))
            for one, other in combinations(closures, 2)
            if closures[one] & closures[other] and meet(self.whole.arrays, self._kind(one), self._kind(other))
        }
        for name in closures if state.twice or state.shared else ():
            inner = self._kind(name).with_elements() - {self._kind(name).found()}
            if not any(each.container or self.arrayish(each) for each in inner):
                continue
            if self._twice(state, name) and not name.endswith(GIVEN):
                found.add(frozenset((name,)))
        return found

    # The analysis: why names share something.

    def boundary(self, point: Point) -> Pairs:
        start = Alias(START, "", "", number(""))
        return {frozenset((each, f"{each}{GIVEN}")): (start,) for each in self.function.params}

    def join(self, left: Pairs, right: Pairs) -> Pairs:
        if left is right or left == right:
            return left
        found = dict(left)
        for pair, reasons in right.items():
            found[pair] = common(found.get(pair, ()), reasons)
        return found

    def refine(self, edge: Edge, state: Pairs) -> Pairs | None:
        return None if edge.kind is EdgeKind.RAISE else state

    def transfer(self, point: Point, pairs: Pairs) -> Pairs:
        before, after = self.flow.before(point), self.flow.after(point)
        node = point.node
        if before is None or after is None or not isinstance(node, ast.stmt):
            return pairs
        bound, stored = _bound_at(point), self._stores(point, after)
        self._exchanged(bound, before, after)
        if before == after and not stored and not bound:
            return pairs
        assigned = self.flow.assigned.get(point, ())
        new = bound | {name for name, each in self._variables.items() if each in assigned}
        # Functions that a call makes keep its variables.
        new |= {each for each in self.strangers if self.within(before, each) != self.within(after, each)}
        copied = {to: of for to, of in _copied_at(point).items() if of in self._variables}
        found: dict[frozenset[str], tuple[Alias, ...]] = {}
        closures = self._closures(after)
        for pair in self._shared(after):
            known = () if pair & bound else pairs.get(pair, ())
            if pair & bound and pair & bound <= copied.keys():
                # An alias of another name has the same aliases as before, and no others.
                sources = frozenset(copied.get(each, each) for each in pair)
                is_made = sources in pairs or len(sources) < len(pair)
            else:
                is_made = bool(pair & new) or self._is_stored(node, pair, closures, stored)
            if is_made:
                known = common(known, (self._reason(node, pair, bound, before, after),))
            if not known:
                continue  # Names that only one of several paths may have made aliases.
            found[pair] = known
            if not any(each.endswith(GIVEN) for each in pair):
                self.ever[pair] = common(self.ever.get(pair, ()), known)
        return found

    def _exchanged(self, bound: frozenset[str], before: State, after: State) -> None:
        """Record the names that a statement rebinds, if one gets the former object of another."""
        mine, theirs = (self._closures(before), self._closures(after)) if len(bound) > 1 else ({}, {})
        for one, other in permutations(bound, 2):
            if theirs.get(one, 0) & mine.get(other, 0):
                if meet(self.whole.arrays, self._kind(one), self._kind(other)):
                    self.flows.add(frozenset((one, other)))

    def _is_stored(
        self,
        node: ast.stmt,
        pair: frozenset[str],
        closures: Mapping[str, Bits],
        stored: list[tuple[Bits, Bits]],
    ) -> bool:
        """Return whether a statement makes names share an object by putting one into the other.

        Previous contents of a container are shared already.
        """
        source, fresh = None, 0
        if (
            isinstance(node, ast.Assign | ast.AugAssign)
            and len(stored) == 1
            and not self._calls_functions(node)
        ):
            source = root_of(node.value) if isinstance(node.value, ast.Subscript) else None
            # Objects created here have no aliases.
            made = (self.objects.made_at.get(each, ()) for each in terms.walk(node) if len(pair) == 2)
            fresh = union(1 << index for some in made for index in some)
        return any(
            closures[one] & mine and closures[other] & theirs & ~fresh
            for mine, theirs in stored
            for one, other in ((min(pair), max(pair)), (max(pair), min(pair)))
            if one != source or len(pair) == 1
        )

    def _calls_functions(self, node: ast.stmt) -> bool:
        calls = (each for each in terms.walk(node) if isinstance(each, ast.Call))
        return any(self.names.callees(each) for each in calls)

    def _stores(self, point: Point, state: State) -> list[tuple[Bits, Bits]]:
        """The objects stored into others at a point, including these."""
        stored = self.flow.stored.get(point, {})
        return [(self.flow.spread(state, bits), self._inside(state, value)) for bits, value in stored.items()]

    def _reason(
        self, node: ast.stmt, pair: frozenset[str], bound: Set[str], before: State, after: State
    ) -> Alias:
        if len(pair) == 1:
            (name,) = pair
            return Alias(node, name, name, None, True)
        one, other = sorted(pair)
        if one in bound and other in bound:
            order = [
                each.id
                for each in terms.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            ]
            swapped = one in order and other in order and order.index(one) < order.index(other)
        else:
            grown = one in bound or self.within(before, one) != self.within(after, one)
            swapped = other in bound or not grown
        one, other = (other, one) if swapped else (one, other)
        return Alias(node, one, other, self._asked(node, one))

    def _asked(self, node: ast.stmt, one: str) -> ast.expr | None:
        """The run-time test that a statement gives a variable an object rather than a number."""
        match node:
            case ast.Assign(targets, value):
                target = targets[0]
                each = False
            case ast.AnnAssign(target, _, ast.expr() as value):
                each = False
            case ast.For(target, value):
                each = True
            case ast.Expr(ast.Call(ast.Attribute(), args)) if args and isinstance(args[-1], ast.Name):
                kind = self.reader.kind(args[-1])
                known = kind.has("array", "box", *CONTAINERS) or not self.whole.reverse
                return None if known else number(args[-1])
            case _:
                return None
        for leaf, _, maybe in parts_of(target, value, each):
            if isinstance(leaf, ast.Name) and leaf.id == one:
                return number(one) if maybe and not self._kind(one).has("array", "box", *CONTAINERS) else None
        for leaf, part, _ in parts_of(target, value, each):
            if isinstance(leaf, ast.Subscript):
                if self.arrayish(self.reader.kind(leaf.value)):
                    array = terms.call("hasattr", terms.copied(leaf.value), terms.constant("shape"))
                    return ast.BoolOp(ast.Or(), [array, number(leaf)])
                return None if self.reader.kind(part).has("array", "box", *CONTAINERS) else number(leaf)
        return None

    # Mutations.

    def _note(self, point: Point) -> None:
        """Record the mutations at a point."""
        node, state = point.node, self.flow.before(point)
        if not isinstance(node, ast.stmt) or state is None or isinstance(node, ast.FunctionDef):
            return
        pairs = self._solution.before(point)
        if pairs is None:
            return
        self._point = point
        match point.role, node:
            case Role.TEST, ast.If() | ast.While():
                self._calls(node, node.test, state, pairs)
            case Role.ITERABLE, ast.For():
                self._calls(node, node.iter, state, pairs)
            case Role.STATEMENT, _:
                self._calls(node, node, state, pairs)
                match node:
                    case ast.Assign(targets=targets):
                        for target in targets:
                            self._stored(node, target, state, pairs)
                    case ast.AnnAssign(target=target):
                        self._stored(node, target, state, pairs)
                    case ast.AugAssign():
                        self._augmented(node, state, pairs)
                    case ast.Return(value=ast.expr() as value):
                        if isinstance(value, ast.Name):
                            self.returned |= {value.id}.union(*(each for each in pairs if value.id in each))
                        else:
                            self.returned |= self._showing(state, value)

    def _value(self, state: State, expr: ast.expr) -> Bits:
        return self.flow.of(state, expr)

    def _showing(self, state: State, value: ast.expr) -> set[str]:
        mine = self._inside_of(state, value)
        return {name for name, theirs in self._closures(state).items() if mine & theirs}

    def _stored(self, node: ast.stmt, target: ast.expr, state: State, pairs: Pairs) -> None:
        for each in terms.leaves(target):
            if isinstance(each, ast.Subscript):
                base = self.reader.kind(each.value)
                self._change(_Change(node, each.value, base), self._value(state, each.value), state, pairs)
                if isinstance(each.slice, ast.Slice) and not base.has("array"):
                    self.grown |= {root_of(each) or ""}

    def _augmented(self, node: ast.AugAssign, state: State, pairs: Pairs) -> None:
        target = node.target
        kind = self.reader.kind(target)
        itself = kind.has("list") or (self.arrayish(kind) and not self.whole.tensors)
        place = terms.copied(target)
        if isinstance(target, ast.Subscript):
            base = self.reader.kind(target.value)
            # An array in a list is mutated itself; a slice of an array is stored like any other value.
            if itself and not base.has("array"):
                self._change(_Change(node, target, kind, True), self._value(state, place), state, pairs)
                if not self.reader.added_to(node):
                    self._of_who_calls(node, target, kind, state)
            self._change(_Change(node, target.value, base), self._value(state, target.value), state, pairs)
        elif itself and not self.nodes.certain(target):
            self._change(_Change(node, target, kind, True), self._value(state, place), state, pairs)
            if isinstance(target, ast.Name) and not kind.has("array", "box", *CONTAINERS):
                self._perhaps_in_place(node, target.id)

    def _perhaps_in_place(self, node: ast.stmt, name: str) -> None:
        """Handle a rebinding or visible mutation of a variable that may be a number or an array."""
        function = self.function
        if name in function.local and name not in function.params:
            return
        if not function.is_rebound(name) and not self.is_called:
            self.augmented.add(name)
        else:
            shared = Alias(node, name, "the value that it gets", number(name))
            self.found.setdefault((id(node), name, ""), Conflict(shared, node, True))

    def _of_who_calls(self, node: ast.stmt, place: ast.expr, kind: Kind, state: State) -> None:
        """Refuse a mutation of an array in a container of the caller: it is not followed."""
        root, unless = root_of(place), number(place)
        given = self._is_given(root, state)
        if (
            self.whole.tensors
            or kind.has(*CONTAINERS)
            or (kind.has("box") and (given or not kind.has("array")))
        ):
            return
        if not given:
            if not (self.whole.reverse and self._is_in_new(place, state)):
                return
            if isinstance(place, ast.Subscript) and self.arrayish(self.reader.kind(place.value)):
                array = terms.call("hasattr", terms.copied(place.value), terms.constant("shape"))
                unless = ast.BoolOp(ast.Or(), [array, unless])
        shared = Alias(node, root or "", "the value that it gets", unless)
        self.found.setdefault((id(node), ast.unparse(place), ""), Conflict(shared, node, True))

    def _given_of(self, state: State, bits: Bits) -> set[str]:
        """The parameters whose arguments are, or contain, some objects."""
        closures = self._closures(state)
        return {each for each in self.function.params if closures.get(f"{each}{GIVEN}", 0) & bits}

    def _is_given(self, name: str | None, state: State) -> bool:
        """Return whether a variable may have something of who calls the function."""
        return self.is_called and bool(self._given_of(state, self.within(state, name or "")))

    def _is_in_new(self, place: ast.expr, state: State) -> bool:
        """Return whether an element of a new container may be an argument, or a part of one."""
        if not (
            isinstance(place, ast.Subscript)
            and self._given_of(state, self.within(state, root_of(place) or ""))
        ):
            return False
        outer = self.objects.outer | UNKNOWN
        new = self._value(state, place.value) & ~outer
        return bool(self.flow.held(state, new, key_of(place.slice)) & outer)

    def _calls(self, node: ast.stmt, part: ast.AST, state: State, pairs: Pairs) -> None:
        for each in terms.walk(part):
            if not isinstance(each, ast.Call):
                continue
            if isinstance(each.func, ast.Attribute):
                base = each.func.value
                if (
                    each.func.attr in (*CHANGING, *LOSING, "pop")
                    and self.reader.function.dotted(each.func) is None
                ):
                    self.grown |= {root_of(each.func) or ""}
                    made = _Change(node, base, self.reader.kind(base))
                    self._change(made, self._value(state, base), state, pairs)
                continue
            own = {id(inner) for inner in terms.walk(each)}
            self.read_beside = {
                one.id
                for one in terms.walk(part)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and id(one) not in own
            }
            for callee in self.names.callees(each):
                self._called(node, each, callee, state, pairs)
            self.read_beside = set()

    def _called(self, node: ast.stmt, call: ast.Call, callee: Function, state: State, pairs: Pairs) -> None:
        given = dict(self.names.given(callee, call))
        changed = self.flow.changed_by.get(call, 0)
        for argument, kind in self.names.changed(callee, call, given):
            bits = self._inside_of(state, argument) & changed
            if not bits:
                continue
            root = root_of(argument) or ""
            self.handed |= {root}
            if self.reader.value(call):
                self.undone |= {root}
            self.grown |= {root}
            self._change(_Change(node, argument, kind), bits, state, pairs, deep=True)
            for other in given.values():
                if other is argument or not self._inside_of(state, other) & bits:
                    continue
                its = self._kind(other.id) if isinstance(other, ast.Name) else self.reader.kind(other)
                if not reaches(self.whole.arrays, its, kind):
                    continue
                for name in self.sources(argument):
                    theirs = self.sources(other)
                    reasons = [one for each in theirs for one in pairs.get(frozenset((name, each)), ())]
                    if name in theirs:
                        apart = _apart(argument, other)
                        reasons += [] if apart is True else [Alias(node, name, name, apart or None, True)]
                    for shared in reasons:
                        self._conflict(shared, node)

    def _inside_of(self, state: State, expr: ast.expr) -> Bits:
        """The possible objects of an expression, or of a variable without a name here, with all contents."""
        if isinstance(expr, ast.Name) and expr.id in self._variables:
            return self._inside(state, self._bits(state, expr.id))
        return self.flow.spread(state, self.flow.within_value(state, expr) & ~self.objects.functions)

    def _change(self, change: _Change, bits: Bits, state: State, pairs: Pairs, deep: bool = False) -> None:
        """Record a mutation of some objects; `deep`: possibly of a nested part."""
        node, changed, kind = change.node, change.changed, change.kind
        name = root_of(changed)
        if name is None:
            return
        self.changed.add(name)
        live = self._live.after(self._point) | self._always | self._iterated[id(node)]
        live |= self.read_beside if OF not in name else set()
        bits = self.flow.spread(state, bits)
        closures = self._closures(state)
        for shared in pairs.get(frozenset((name,)), ()):
            shown = name in live or self._is_given(name, state)
            twice = self._twice(state, name)
            inner = self._kind(name).with_elements() - {self._kind(name).found()}
            reached = kind.found() in inner or (self.arrayish(kind) and any(map(self.arrayish, inner)))
            if (
                reached
                and shown
                and self._inside(state, twice) & bits
                and (deep or not isinstance(changed, ast.Name))
            ):
                self._changed_twice(change, shared)
        for other, theirs in closures.items():
            if other == name or not theirs & bits:
                continue
            pair = frozenset((name, other))
            for shared in pairs.get(pair, ()):
                self._changed_pair(change, shared, other, live)

    def _changed_twice(self, change: _Change, shared: Alias) -> None:
        """Record a mutation of an object that a container may hold at two places."""
        node = change.node
        if change.itself and change.kind.has("array", "box"):
            self.in_place.add(id(node))
        elif change.is_untold:
            shared = Alias(node, shared.name, shared.name, number(change.changed), True)
        self._conflict(shared, node, change.itself)

    def _changed_pair(self, change: _Change, shared: Alias, other: str, live: Set[str]) -> None:
        """Record a mutation of an object that two names share."""
        node, kind = change.node, change.kind
        if other == self.function.result or not reaches(self.whole.arrays, self._kind(other), kind):
            return
        if other.endswith(GIVEN):
            self._changed_argument(change, shared, other)
        elif other in live or OF in other:
            if change.itself and kind.has("array", "box") and shared.unless is None:
                self.in_place.add(id(node))
            if change.is_untold and shared.unless is None:
                shared = Alias(node, shared.name, shared.other, number(change.changed))
            self._conflict(shared, node, change.itself)

    def _changed_argument(self, change: _Change, shared: Alias, other: str) -> None:
        """Record a mutation of an argument's object, through any name."""
        node, changed, kind, itself = change.node, change.changed, change.kind, change.itself
        name, given = root_of(changed) or "", other.removesuffix(GIVEN)
        unknown = change.is_untold
        if not unknown or not isinstance(changed, ast.Name):
            self.arguments.add(given)
        own = isinstance(changed, ast.Name) and name not in self.function.params
        if itself and own and (self.whole.reverse or self.is_called):
            if kind.has("array"):
                self.shown_by.add(name)
            elif unknown and not self.whole.tensors:
                asked = Alias(node, name, given, number(changed))
                self.found.setdefault((id(node), name, other), Conflict(asked, node, True))
        elif (name != given or name in self.rebound) and self.whole.reverse and self.is_called:
            # The caller passes the adjoint of the argument, under that name.
            at, unless = (node, number(name)) if shared.node is START else (shared.node, shared.unless)
            asked = Alias(at, name, given, unless)
            self.found.setdefault((id(asked.node), name, other), Conflict(asked, node, itself))

    def _conflict(self, shared: Alias, node: ast.stmt, whole: bool = False) -> None:
        """Record a mutation of a shared object, once for each reason."""
        key = (id(shared.node), shared.name, shared.other)
        known = self.found.get(key)
        if known is None or (known.alias.unless is not None and shared.unless is None):
            self.found[key] = Conflict(shared, node, whole)

    def _captured(self) -> None:
        """Record mutations by inner functions at each of their calls."""
        for inner in self.function.nested.values():
            for name in inner.altered:
                self.changed.add(name)
                self.handed.add(name)
                if self.reader.value(terms.name(inner.name)):
                    self.undone.add(name)
                if inner.owner(name) is self.function:
                    self.arguments |= {name} & set(self.function.params)
                    self.grown.add(name)
                    for pair, reasons in self.ever.items():
                        other = next(iter(pair - {name}), name)
                        if (
                            name in pair
                            and other != self.function.result
                            and reaches(self.whole.arrays, self._kind(other), self.function.kind(name))
                        ):
                            for shared in reasons:
                                self._conflict(shared, inner.node)

    # Questions.

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the mutations of objects that two names share, in text order."""

        def order(each: Conflict) -> tuple[int, int, str, str]:
            return getattr(each.alias.node, "lineno", 0), each.line, each.alias.name, each.alias.other

        yield from sorted(self.found.values(), key=order)

    def shown(self) -> set[str]:
        """The names whose mutations are visible outside: arguments and captures."""
        function = self.function
        found = set()
        for each in self.changed:
            whole = self.with_names({each})
            if whole & set(function.params) or any(function.owner(name) is not function for name in whole):
                found |= whole
        return found

    def altered(self) -> set[str]:
        """The names of mutated objects, including their aliases."""
        return self.showing(self.changed)

    def showing(self, changed: set[str]) -> set[str]:
        """The variables that may show mutations of some variables, including these."""
        pairs = ((each, name) for name in changed for each in self.with_names({name}))
        return {each for each, name in pairs if each == name or self.shows(each, name)}

    def shows(self, other: str, name: str) -> bool:
        """Return whether another variable may show a mutation of an object in one, judged by their kinds."""
        kinds = {each for each in self._kind(name).with_elements() if each.has("changed")}
        inside = self._kind(other).with_elements()
        return bool(inside & kinds) or (any(map(self.arrayish, kinds)) and any(map(self.arrayish, inside)))

    def is_known_elsewhere(self, name: str) -> bool:
        """Return whether a variable is also mutated by a call, or has another name, such as that of
        a view.
        """
        partners = {each for pair in self.ever if name in pair for each in pair}
        partners -= {name, self.function.result}
        known = bool(partners) or name in self.handed or name in self.function.captured_inside
        return known or any(name in self.sources(each) for each in self._views())

    def _views(self) -> Iterator[ast.expr]:
        """Yield the array parts that the derivative may name, and the objects that pullbacks keep."""
        for each in terms.own_nodes(self.function.body):
            if isinstance(each, ast.Call):
                given = arguments(each)
                yield from given if self.names.callees(each) else []
            if isinstance(each, ast.Call | ast.Attribute) and self.whole.arrays:
                yield each

    def meets(self, one: str, other: str) -> bool:
        """Return whether two variables may have a container or an array in common, judged by their kinds."""
        return meet(self.whole.arrays, self.function.kind(one), self.function.kind(other))

    def with_names(self, names: set[str]) -> set[str]:
        """Names with all names that were ever their aliases, or ever got their values."""
        pairs = (*self.ever, *self.flows)
        return set(reachable(names, lambda name: (each for pair in pairs if name in pair for each in pair)))

    def sources(self, node: ast.expr) -> set[str]:
        """The variables whose value, or a part of it, may be in that of an expression."""
        return self.names.sources(node)

    def _kind(self, name: str) -> Kind:
        if name in self.strangers:
            owner, name = self.strangers[name]
            return owner.kind(name)
        return self.function.kind(name.removesuffix(GIVEN))

    def active(self, name: str) -> bool:
        """Return whether a variable, also one of another function, is active."""
        owner, name = self.strangers.get(name, (self.function, name))
        return owner.active(name)

    def arrayish(self, kind: Kind) -> bool:
        """Return whether a value of a kind may be an array."""
        return self.whole.arrays and kind.arrayish


def changes_something(function: Function) -> bool:
    """Return whether a function, or one of its inner functions, may mutate a container or an array."""
    nodes = Nodes(function)
    for node in terms.inside(function.body):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                return True
            case ast.Call(ast.Attribute(attr=method)) if method in (*CHANGING, *LOSING, "pop"):
                return True
            case ast.AugAssign(target) if not nodes.certain(target):
                return True
    return False


def summarized(function: Function) -> Summary:
    """The summary of a function's calls, by the function's names for outer objects."""
    points = function.whole.points
    flow, known = points.of(function.node), points.summary(function.node)

    def params(bits: Bits) -> set[str]:
        roots = (points.objects.root(index) for index in bits_of(bits & points.objects.outer))
        places = (each.where for each in roots if each.sort is Sort.PARAMETER)
        found = {each[1] for each in places if isinstance(each, tuple) and each[0] is function.node}
        return {*function.params} if bits & UNKNOWN else found

    mutated = params(known.changed)
    changed = {each for each in mutated if function.kind(each).changes}
    returned: set[str] = set()
    if known.state is not None:
        inside = flow.within(known.state, known.returned) & ~points.objects.functions
        returned = {f"{each}{GIVEN}" for each in params(inside)}
        for owner, name in (*function.reached, *((function, each) for each in function.kept())):
            bits = known.state.variables.get((owner.node, name), 0)
            if owner is not function:
                bits |= points.objects.intern(Object(Sort.OUTER, (owner.node, name)))
            if flow.within(known.state, bits) & inside:
                returned.add(name_of(function, owner, name))
    return Summary(frozenset(returned), frozenset(changed), frozenset(mutated))


def common(one: tuple[Alias, ...], other: tuple[Alias, ...]) -> tuple[Alias, ...]:
    """Join two sets of reasons for a pair to be aliases. Return `one` if `other` adds nothing.

    A reason without a condition replaces all others: no check at run time can exclude it.
    """
    found = one
    for new in other:
        if any(each is new or each.key == new.key for each in found):
            continue
        certain = [each for each in found if each.unless is None]
        if certain or new.unless is None:
            found = (certain[0] if certain else new,)
            continue
        found = (*found, new)
    return found


def _bound_at(point: Point) -> frozenset[str]:
    """The names that a point binds."""
    match point.role, point.node:
        case Role.TARGET, ast.For(target=target):
            return frozenset(each.id for each in terms.leaves(target) if isinstance(each, ast.Name))
        case Role.STATEMENT, ast.Assign(targets=targets):
            parts = (each for target in targets for each in terms.leaves(target))
            return frozenset(each.id for each in parts if isinstance(each, ast.Name))
        case Role.STATEMENT, ast.AnnAssign(target=ast.Name(name)):
            return frozenset((name,))
    return frozenset()


def _copied_at(point: Point) -> dict[str, str]:
    """The name from which a statement's target gets its value, by target."""
    found: dict[str, str] = {}
    node = point.node
    if point.role is not Role.STATEMENT or not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return found
    if not any(isinstance(each, ast.Call) for each in terms.walk(node)):
        for leaf, part, _ in parts_of(node.targets[0], node.value, False):
            whole = part is not node.value or leaf is node.targets[0]
            if isinstance(leaf, ast.Name) and isinstance(part, ast.Name) and whole:
                found[leaf.id] = part.id
    return found


def _apart(one: ast.expr, other: ast.expr) -> ast.expr | bool:
    """Return whether two parts of one variable are different; with the test of their indices if
    these decide.
    """
    if not (isinstance(one, ast.Subscript) and isinstance(other, ast.Subscript)):
        return False
    indices = one.slice, other.slice
    if not terms.same(one.value, other.value) or terms.same(*indices):
        return False
    if all(isinstance(each, ast.Constant) for each in indices):
        return True
    if not all(isinstance(each, ast.Name | ast.Constant | ast.BinOp) for each in indices):
        return False
    return ast.Compare(terms.copied(one.slice), [ast.NotEq()], [terms.copied(other.slice)])


def _iterated(statements: list[ast.stmt], around: frozenset[str] = frozenset()) -> dict[int, frozenset[str]]:
    """The names that the loops around a statement iterate, by the statement's identity.

    The reverse pass iterates these again, so they are live until the loop ends.
    """
    found: dict[int, frozenset[str]] = {}
    for node in statements:
        own = around | terms.names_read(node.iter) if isinstance(node, ast.For) else around
        found[id(node)] = own
        if isinstance(node, ast.If | ast.For | ast.While):
            found |= _iterated(node.body, own) | _iterated(node.orelse, around)
    return found
