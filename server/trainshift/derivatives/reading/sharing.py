"""Which names may be one container or array, where one of them is changed (SPEC-AD AD37, AD38).

A change through one name that another one shows later cannot be followed: which adjoint it belongs to is not
known. Who calls a function is told what it links (`summary`), captured variables as well as arguments. Where
it is not even known whether there is an array, and not a number, the derivative asks that first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from itertools import pairwise

from trainshift.derivatives import terms
from trainshift.derivatives.reading.function import Conflict, Function, Shared, Summary, own_nodes, root_of
from trainshift.derivatives.reading.kinds import Kind, meet, reaches
from trainshift.derivatives.reading.pairs import CONTAINERS, Pairing, Pairs, either, runs_once
from trainshift.derivatives.reading.reader import CHANGING, LOSING
from trainshift.derivatives.reading.sources import GIVEN, OF, name_of, number
from trainshift.python.flow.cfg import Edge, Point, Role
from trainshift.python.flow.cfg import Kind as EdgeKind
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.liveness import Liveness
from trainshift.python.flow.solver import Analysis, solve

START = ast.Pass()


class Sharing(Pairing):
    """Follows the names of one function: `conflicts`, and all pairs that were ever one."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.is_called = function.whole.is_called(function)
        self.found: dict[tuple[int, str, str], Conflict] = {}
        self.in_place: set[int] = set()
        self.changed: set[str] = set()
        self.arguments: set[str] = set()
        # The parameters whose arguments may be changed.
        self.altered_given: set[str] = set()
        self.returned: set[str] = set()
        self.ends: set[frozenset[str]] = set()
        self.handed: set[str] = set()
        self.grown: set[str] = set()
        # What is changed by calls that have a way back.
        self.undone: set[str] = set()
        # Parameters that `+=` and its like change in place, if they are arrays.
        self.augmented: set[str] = set()
        # What `+=` and its like change in place, which who calls the function may know.
        self.shown_by: set[str] = set()
        always = {name for _, name in function.reached}
        # What the statement of a call reads outside of that.
        self.read_beside: set[str] = set()
        # The variables that get other values, and not by `+=` and its like alone.
        self.rebound = set(filter(function.is_rebound, terms.names_bound(function.body)))
        for each in function.nested.values():
            always |= terms.names_read(each.node)
            self.rebound |= each.foreign
        cfg = build(function.body)
        self._always = always | {function.result}
        self._live = Liveness(cfg, self._always)
        self._at = cfg.entry
        self._before = _predecessors(function.body)
        self._iterated = _iterated(function.body)
        self._entered: dict[int, Pairs] = {}
        entered: dict[int, Pairs] | None = None
        while entered != self._entered:
            entered = dict(self._entered)
            solution = solve(cfg, _Flow(self))
        self.ends |= set(solution.before(cfg.exit) or ())
        self._captured()
        for pair in self.ends:
            if function.result in pair:
                self.returned |= pair

    def _captured(self) -> None:
        """What functions inside change is changed whenever they are called."""
        for inner in self.function.nested.values():
            for name in inner.altered:
                self.changed.add(name)
                self.handed.add(name)
                if self.reader.value(terms.name(inner.name)):
                    self.undone.add(name)
                if inner.owner(name) is self.function:
                    self.arguments |= {name} & set(self.function.params)
                    self.altered_given |= self.with_names({name}) & set(self.function.params)
                    self.grown.add(name)
                    for pair, reasons in self.ever.items():
                        if name in pair and self._partner_shows(pair, name, self.function.kind(name)):
                            for shared in reasons:
                                self._conflict(shared, inner.node)

    def summary(self) -> Summary:
        """What a call of the function leaves behind."""
        linked = (each for each in self.ends if len(each) == 2 and all(map(self._is_outer, each)))
        returned = frozenset(filter(self._is_outer, self.returned))
        return Summary(returned, frozenset(linked), frozenset(self.altered_given))

    def _is_outer(self, name: str) -> bool:
        return name.endswith(GIVEN) or name not in self.function.local or name in self.function.kept()

    def conflicts(self) -> Iterator[Conflict]:
        """The changes of what two names share, in the order of the text."""
        yield from sorted(
            self.found.values(), key=lambda each: (getattr(each.shared.node, "lineno", 0), each.line)
        )

    def shown(self) -> set[str]:
        """The names whose changes those outside may see: of what is given, or captured."""
        function = self.function
        found = set()
        for each in self.changed:
            whole = self.with_names({each})
            if whole & set(function.params) or any(function.owner(name) is not function for name in whole):
                found |= whole
        return found

    def altered(self) -> set[str]:
        """The names of what is changed, by whatever name."""
        return self.showing(self.changed)

    def showing(self, changed: set[str]) -> set[str]:
        """The variables that may show changes of some, with these."""
        pairs = ((each, name) for name in changed for each in self.with_names({name}))
        return {each for each, name in pairs if each == name or self.shows(each, name)}

    def shows(self, other: str, name: str) -> bool:
        """Whether another variable may show a change of something in one, by their kinds."""
        kinds = {each for each in self._kind(name).with_elements() if each.has("changed")}
        inside = self._kind(other).with_elements()
        return bool(inside & kinds) or (any(map(self.arrayish, kinds)) and any(map(self.arrayish, inside)))

    def is_known_elsewhere(self, name: str) -> bool:
        """Whether a variable is also changed by a call, or has another name, such as that of a view."""
        captured = (terms.names_read(each.node) for each in self.function.nested.values())
        partners = {each for pair in self.ever if name in pair for each in pair}
        partners -= {name, self.function.result}
        known = bool(partners) or name in self.handed or any(name in each for each in captured)
        return known or any(name in self.sources(each) for each in self._views())

    def _views(self) -> Iterator[ast.expr]:
        """The parts of arrays that the derivative may give names of their own, and what pullbacks keep."""
        for each in own_nodes(self.function.body):
            if isinstance(each, ast.Call):
                given = [*each.args, *(one.value for one in each.keywords)]
                yield from given if self.names.callees(each) else []
            if isinstance(each, ast.Call | ast.Attribute) and self.whole.arrays:
                yield each

    def meets(self, one: str, other: str) -> bool:
        """Whether two variables may have a container or an array in common, by their kinds."""
        return meet(self.whole.arrays, self.function.kind(one), self.function.kind(other))

    def with_names(self, names: set[str]) -> set[str]:
        """Names with all that were ever one with them, or ever got what they had."""
        found, waiting = set(names), list(names)
        while waiting:
            each = waiting.pop()
            for pair in (*self.ever, *self.flows):
                if each in pair and not pair <= found:
                    waiting.extend(pair - found)
                    found |= pair
        return found

    # Statements.

    def given(self) -> Pairs:
        """The pairs where the function begins: each parameter is what it was given."""
        start = Shared(START, "", "", number(""))
        return {frozenset((each, f"{each}{GIVEN}")): (start,) for each in self.function.params}

    def passed(self, point: Point, pairs: Pairs) -> Pairs:
        """The pairs behind a point of the control flow; notes what is changed there."""
        self._at, node = point, point.node
        if not isinstance(node, ast.stmt):
            return pairs
        match point.role, node:
            case Role.TEST, ast.If() | ast.While():
                return self._calls(node, node.test, pairs)
            case Role.ITERABLE, ast.For():
                pairs = self._calls(node, node.iter, pairs)
                if runs_once(node.iter):
                    self._entered[id(node)] = either(self._entered.get(id(node), {}), pairs)
                return pairs
            case Role.TARGET, ast.For():
                # What the body does is not there yet, where there is no second round.
                pairs = self._entered.get(id(node), pairs)
                return self._bound(node, node.target, node.iter, pairs, True)
            case Role.STATEMENT, _ if not isinstance(node, ast.FunctionDef):
                return self.twice.taken_out(self._before.get(id(node)), node, self._statement(node, pairs))
        return pairs

    def _statement(self, node: ast.stmt, pairs: Pairs) -> Pairs:
        pairs = self._calls(node, node, pairs)
        match node:
            case ast.Assign():
                return self._assigned(node, node.targets, node.value, pairs)
            case ast.AnnAssign(value=ast.expr() as value):
                return self._assigned(node, [node.target], value, pairs)
            case ast.AugAssign():
                self._augmented(node, pairs)
                if self.reader.kind(node.target).has("list") and (root := root_of(node.target)):
                    doubled = self.twice.stored(node, root, node.value, pairs, self.reader.kind(node.target))
                    pairs = self._put(pairs, node, node.target, self.sources(node.value), None)
                    return self._doubled(pairs, node, root, doubled)
            case ast.Return(value=ast.expr()):
                assert node.value is not None
                self.returned |= self._with_partners(self.sources(node.value), pairs)
            case ast.Expr(ast.Call() as call):
                return self._joined(node, call, pairs)
        return pairs

    def _assigned(self, node: ast.stmt, targets: list[ast.expr], value: ast.expr, pairs: Pairs) -> Pairs:
        for target in targets:
            for each in terms.leaves(target):
                if isinstance(each, ast.Subscript):
                    self._change(node, each.value, self.reader.kind(each.value), pairs)
                    if isinstance(each.slice, ast.Slice) and not self.reader.kind(each.value).has("array"):
                        self.grown |= {root_of(each) or ""}
        for target in sorted(targets, key=lambda each: not isinstance(each, ast.Name)):
            pairs = self._bound(node, target, value, pairs, False)
            value = terms.name(target.id) if isinstance(target, ast.Name) else value
        return pairs

    def _augmented(self, node: ast.AugAssign, pairs: Pairs) -> None:
        target = node.target
        kind = self.reader.kind(target)
        itself = kind.has("list") or (self.arrayish(kind) and not self.whole.tensors)
        if isinstance(target, ast.Subscript):
            base = self.reader.kind(target.value)
            # An array in a list is changed itself; a part of an array is stored like any other.
            if itself and not base.has("array"):
                self._change(node, target, kind, pairs, True)
                if not self.reader.added_to(node):
                    self._of_who_calls(node, target, kind, pairs)
            self._change(node, target.value, base, pairs)
        elif itself and not self.nodes.certain(target):
            self._change(node, target, kind, pairs, True)
            if isinstance(target, ast.Name) and not kind.has("array", "box", *CONTAINERS):
                self._perhaps_in_place(node, target.id)

    def _perhaps_in_place(self, node: ast.stmt, name: str) -> None:
        """What may be a number or an array is given another value, or is changed where others see it."""
        function = self.function
        if name in function.local and name not in function.params:
            return
        if not function.is_rebound(name) and not self.is_called:
            self.augmented.add(name)
        else:
            shared = Shared(node, name, "what it is given", number(name))
            self.found.setdefault((id(node), name, ""), Conflict(shared, node, True))

    def _of_who_calls(self, node: ast.stmt, place: ast.expr, kind: Kind, pairs: Pairs) -> None:
        """An array in a container of who calls the function is changed in place: that is not followed."""
        given = self._is_given(root_of(place), pairs)
        if given and not kind.has("box", *CONTAINERS) and not self.whole.tensors:
            shared = Shared(node, root_of(place) or "", "what it is given", number(place))
            self.found.setdefault((id(node), ast.unparse(place), ""), Conflict(shared, node, True))

    def _is_given(self, name: str | None, pairs: Pairs) -> bool:
        """Whether a variable may have something of who calls the function."""
        given = any(name in pair and any(each.endswith(GIVEN) for each in pair) for pair in pairs)
        return given and self.is_called

    def _calls(self, node: ast.stmt, part: ast.AST, pairs: Pairs) -> Pairs:
        """The pairs after the calls in a part of a statement; notes what they change."""
        for each in terms.walk(part):
            if not isinstance(each, ast.Call):
                continue
            if isinstance(each.func, ast.Attribute):
                if (
                    each.func.attr in (*CHANGING, *LOSING, "pop")
                    and self.reader.function.dotted(each.func) is None
                ):
                    self.grown |= {root_of(each.func) or ""}
                    self._change(node, each.func.value, self.reader.kind(each.func.value), pairs)
                continue
            # What else the statement reads may be read when the call has changed it.
            own = {id(inner) for inner in terms.walk(each)}
            self.read_beside = {
                one.id
                for one in terms.walk(part)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and id(one) not in own
            }
            before = pairs
            for callee in self.names.callees(each):
                pairs = either(pairs, self._after_call(node, each, callee, before))
            self.read_beside = set()
        return pairs

    def _after_call(self, node: ast.stmt, call: ast.Call, callee: Function, pairs: Pairs) -> Pairs:
        """The pairs after a call of a function: what that changes, and what it makes one."""
        for owner, name in callee.reached:
            here = name_of(self.function, owner, name)
            if OF in here:
                self.strangers[here] = owner, name
        given = dict(self.names.given(callee, call))
        for argument, kind in self.names.changed(callee, call, given):
            self.handed |= {root_of(argument) or ""}
            if self.reader.value(call):
                self.undone |= {root_of(argument) or ""}
            self.grown |= {root_of(argument) or ""}
            self._change(node, argument, kind, pairs, deep=True)
            self._given(node, list(given.values()), argument, kind, pairs)
        for pair in self.whole.summary(callee).linked:
            one, other = (given.get(each) or self._kept(callee, each) for each in sorted(pair))
            if one is not None and other is not None:
                for name in self.sources(one):
                    holding = self._holding({name}, self.sources(other), pairs)
                    others = self._with_partners(self.sources(other), pairs)
                    pairs = self._with(pairs, node, holding, others, None, False)
        return pairs

    def _kept(self, callee: Function, name: str) -> ast.expr | None:
        """What functions inside a called one keep, once that has ended, has no name here."""
        if name not in callee.kept():
            return None
        here = name_of(self.function, callee, name)
        self.strangers[here] = callee, name
        return terms.name(here)

    def _joined(self, node: ast.stmt, call: ast.Call, pairs: Pairs) -> Pairs:
        """A method that is called alone may put one of its arguments into another."""
        if self.names.callees(call):
            return pairs
        parts = [*call.args, *(each.value for each in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            parts.insert(0, call.func.value)
        if len(parts) < 2 or not any(self.reader.kind(each).has("changed") for each in parts):
            return pairs
        doubled: list[Kind] = []
        root = root_of(parts[0]) if isinstance(call.func, ast.Attribute) else None
        if root is not None and isinstance(call.func, ast.Attribute):
            kind = self.reader.kind(parts[0])
            kind = kind if call.func.attr in ("extend", "update") else kind.element()
            doubled = self.twice.stored(node, root, parts[-1], pairs, kind)
        unless: ast.expr | None = None
        last = parts[-1]
        if root is not None and isinstance(last, ast.Name) and self.whole.reverse:
            # In forward mode the tangents share what the values share.
            unless = None if self.reader.kind(last).has("array", "box", *CONTAINERS) else number(last)
        named = [self.sources(each) for each in parts]
        for place, some in enumerate(named):
            for other in named[place + 1 :]:
                for name in some:
                    at = parts[0] if name == root else terms.name(name)
                    pairs = self._put(pairs, node, at, other, unless)
        return pairs if root is None else self._doubled(pairs, node, root, doubled)

    # Changes.

    def _given(
        self, node: ast.stmt, given: list[ast.expr], changed: ast.expr, kind: Kind, pairs: Pairs
    ) -> None:
        """A function changes something that it knows: all else that it knows must be something else."""
        for other in given:
            its = self._kind(other.id) if isinstance(other, ast.Name) else self.reader.kind(other)
            if other is changed or not reaches(self.whole.arrays, its, kind):
                continue
            theirs = self.sources(other)
            for name in self.sources(changed):
                reasons = [one for each in theirs for one in pairs.get(frozenset((name, each)), ())]
                if name in theirs:
                    apart = self.twice.apart(changed, other)
                    reasons += [] if apart is True else [Shared(node, name, name, apart or None, kind)]
                for shared in reasons:
                    self._conflict(shared, node)

    def _change(
        self,
        node: ast.stmt,
        changed: ast.expr,
        kind: Kind,
        pairs: Pairs,
        itself: bool = False,
        deep: bool = False,
    ) -> None:
        """A change of what an expression means, a value of a kind.

        `itself`: by an augmented assignment; `deep`: perhaps of a part of a part.
        """
        name = root_of(changed)
        if name is None:
            return
        self.changed.add(name)
        live = self._live.after(self._at) | self._always | self._iterated[id(node)]
        live |= self.read_beside if OF not in name else set()
        for pair, reasons in pairs.items():
            for shared in reasons if name in pair else ():
                if shared.twice is not None:
                    shown = name in live or self._is_given(name, pairs)
                    inside = deep or not isinstance(changed, ast.Name)
                    if inside and shown and reaches(self.whole.arrays, shared.twice, kind):
                        self._changed_twice(node, changed, shared, kind, itself)
                elif name != shared.outer or not isinstance(changed, ast.Name) or deep:
                    self._changed_pair(node, changed, shared, kind, itself, pair, live)

    def _changed_twice(
        self, node: ast.stmt, changed: ast.expr, shared: Shared, kind: Kind, itself: bool
    ) -> None:
        """A change of what a container may hold in two places."""
        if itself and kind.has("array", "box"):
            self.in_place.add(id(node))
        elif itself and not kind.has(*CONTAINERS):
            shared = Shared(node, shared.name, shared.name, number(changed), shared.twice)
        self._conflict(shared, node, itself)

    def _changed_pair(
        self,
        node: ast.stmt,
        changed: ast.expr,
        shared: Shared,
        kind: Kind,
        itself: bool,
        pair: frozenset[str],
        live: Set[str],
    ) -> None:
        """A change of what two names may share."""
        name = root_of(changed) or ""
        unknown = itself and not kind.has("array", "box", *CONTAINERS)
        (other,) = pair - {name}
        given = other.removesuffix(GIVEN)
        if given != other and self._partner_shows(pair, name, kind):
            self.altered_given.add(given)
            if not unknown or not isinstance(changed, ast.Name):
                self.arguments.add(given)
            own = isinstance(changed, ast.Name) and name not in self.function.params
            if itself and own and (self.whole.reverse or self.is_called):
                if kind.has("array"):
                    self.shown_by.add(name)
                elif unknown and not self.whole.tensors:
                    asked = Shared(node, name, given, number(changed))
                    self.found.setdefault((id(node), name, other), Conflict(asked, node, True))
            elif (name != given or name in self.rebound) and self.whole.reverse and self.is_called:
                # Who calls the function gives the adjoint of what it has given, by that name.
                at, unless = (node, number(name)) if shared.node is START else (shared.node, shared.unless)
                asked = Shared(at, name, given, unless)
                self.found.setdefault((id(asked.node), name, other), Conflict(asked, node, itself))
        elif (other in live or OF in other) and self._partner_shows(pair, name, kind):
            if itself and kind.has("array", "box") and shared.unless is None:
                self.in_place.add(id(node))
            if unknown and shared.unless is None:
                shared = Shared(node, shared.name, shared.other, number(changed))
            self._conflict(shared, node, itself)

    def _conflict(self, shared: Shared, node: ast.stmt, whole: bool = False) -> None:
        """Notes a change of what is shared, once for what makes it so."""
        key = (id(shared.node), shared.name, shared.other)
        known = self.found.get(key)
        if known is None or (known.shared.unless is not None and shared.unless is None):
            self.found[key] = Conflict(shared, node, whole)

    def _partner_shows(self, pair: frozenset[str], name: str, kind: Kind) -> bool:
        """Whether the other name of a pair shows a change of a value of a kind."""
        other = next(iter(pair - {name}), name)
        return other != self.function.result and reaches(self.whole.arrays, self._kind(other), kind)


class _Flow(Analysis[Pairs]):
    """The flow of pairs through one function."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing

    def boundary(self, point: Point) -> Pairs:
        return self._sharing.given()

    def join(self, left: Pairs, right: Pairs) -> Pairs:
        return either(left, right)

    def transfer(self, point: Point, state: Pairs) -> Pairs:
        return self._sharing.passed(point, state)

    def refine(self, edge: Edge, state: Pairs) -> Pairs | None:
        # What fails has no derivative: `try` is refused.
        return None if edge.kind is EdgeKind.RAISE else state


def _iterated(statements: list[ast.stmt], around: frozenset[str] = frozenset()) -> dict[int, frozenset[str]]:
    """By the identity of a statement: the names that the loops around it iterate.

    The way back iterates these again, so they are live until a loop is done.
    """
    found: dict[int, frozenset[str]] = {}
    for node in statements:
        own = around | terms.names_read(node.iter) if isinstance(node, ast.For) else around
        found[id(node)] = own
        if isinstance(node, ast.If | ast.For | ast.While):
            found |= _iterated(node.body, own) | _iterated(node.orelse, around)
    return found


def _predecessors(statements: list[ast.stmt]) -> dict[int, ast.stmt]:
    """The statement right before each one in its block, by the identity of that."""
    found = {id(node): before for before, node in pairwise(statements)}
    for node in statements:
        if isinstance(node, ast.If | ast.For | ast.While):
            found |= _predecessors(node.body) | _predecessors(node.orelse)
    return found
