"""Aliases: the names of a function that may be one container or array, where one of them is changed (AD37).

A change through one name that another one shows later cannot be followed: which adjoint it belongs to is not
known.  The pairs of names that may be one flow through the control-flow graph until nothing changes.  A call
is read by the summary of its function, which tells what it returns, links and changes.  A container may also
hold one object at two places: that is a pair of a name with itself.  Where it is not even known whether there
is an array, and not a number, the derivative asks that first (`Alias.unless`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import combinations, pairwise

from trainshift.derivatives.reading.function import Alias, Conflict, Function, Summary, root_of
from trainshift.derivatives.reading.kinds import ANY, Kind, meet, reaches
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import CHANGING, LOSING
from trainshift.derivatives.reading.sources import GIVEN, HOLDING, OF, Sources, name_of, number, parts_of
from trainshift.python.flow.cfg import Edge, EdgeKind, Point, Role
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.liveness import Liveness
from trainshift.python.flow.solver import Analysis, solve
from trainshift.python.rewrite import terms
from trainshift.python.values.heap import UNKNOWN, key_of

START = ast.Pass()
CONTAINERS = ("list", "tuple", "dict")
# Calls that give a container of what they are given, or what is in that.
_HOLDING = frozenset(f"builtins.{each}" for each in HOLDING)
Pairs = dict[frozenset[str], tuple[Alias, ...]]
"""The pairs of names that may be one, with all that may have made them so."""


def either(one: Pairs, other: Pairs) -> Pairs:
    """The join of the pairs of two paths. `one` is returned where `other` adds nothing."""
    found = one
    for pair, shared in other.items() if other is not one else ():
        known = one.get(pair, ())
        both = known if known is shared else common(known, shared)
        if both is not known:
            found = found if found is not one else dict(one)
            found[pair] = both
    return found


def common(one: tuple[Alias, ...], other: tuple[Alias, ...]) -> tuple[Alias, ...]:
    """The join of two sets of reasons why a pair may be one. `one` is returned where `other` adds nothing.

    A reason without a condition stands for all others: there is nothing to ask at run time then.
    """
    found = one
    for new in other:
        if any(each is new or each.key == new.key for each in found):
            continue
        certain = [each for each in found if each.unless is None and each.twice is None]
        if new.twice is not None or not (certain or new.unless is None):
            found = (*found, new)
            continue
        known = certain[0] if certain else new
        rest = [each for each in found if each.twice is not None]
        outers = {each.outer for each in (*found, new) if each.twice is None}
        merged = known if outers == {known.outer} else replace(known, outer="")
        if [each for each in found if each.twice is None] != [merged]:
            found = (merged, *rest)
    return found


class Twice:
    """The kinds of the objects that a container may hold at two places."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases
        self.reader = aliases.nodes.reader
        self.moving = _moves(aliases.nodes.function.body)

    def held(self, value: ast.expr, pairs: Pairs, kind: Kind) -> list[Kind]:
        """The kinds of what a value of a kind may hold in two places."""
        match value:
            case ast.Tuple(elts) | ast.List(elts) | ast.Dict(values=elts):
                both = [self._both(one, other, pairs) for one, other in combinations(elts, 2)]
                found = [each for each in both if each is not None]
                keys: list[object] = list(range(len(elts)))
                if isinstance(value, ast.Dict):
                    keys = [getattr(each, "value", ANY) for each in value.keys]
                for key, element in zip(keys, elts, strict=True):
                    found += self.held(element, pairs, kind.element(key))
                return found
            case ast.BinOp(left, ast.Mult(), right):
                again = False
                for operand in (left, right):
                    if isinstance(operand, ast.List | ast.Tuple):
                        again = again or any(map(self._changeable, operand.elts))
                    elif (of := self.reader.kind(operand)).has("list", "tuple"):
                        again = again or self._may_change(of.element())
                return [kind.element()] if again else []
            case ast.BinOp(left, ast.Add(), right) if self.reader.kind(value).has("list", "tuple"):
                found = []
                if self._linked(left, right, pairs):
                    one = self._changeable(ast.Subscript(left, terms.constant(0), ast.Load()))
                    found += [] if one is None else [one]
                lists = [each.elts for each in (left, right) if isinstance(each, ast.List)]
                joined = [each for some in lists for each in some]
                found += self.held(ast.List(joined, ast.Load()), pairs, kind)
                return found + self.held(left, pairs, kind) + self.held(right, pairs, kind)
            case ast.IfExp(_, body, orelse):
                return self.held(body, pairs, kind) + self.held(orelse, pairs, kind)
            case (
                ast.ListComp(elt, generators)
                | ast.GeneratorExp(elt, generators)
                | ast.DictComp(value=elt, generators=generators)
            ):
                with self.reader.inside(value):
                    return self._repeated(elt, generators, pairs)
            case ast.Call(ast.Name(), args, keywords) if self.reader.module.dotted(value.func) in _HOLDING:
                given = [*args, *(each.value for each in keywords)]
                found = [each for part in given for each in self.held(part, pairs, self.reader.kind(part))]
                named = [each.value for each in keywords]
                apart = [self._both(one, other, pairs) for one, other in combinations(named, 2)]
                return found + [each for each in apart if each is not None]
        callees = self.aliases.names.callees(value) if isinstance(value, ast.Call) else []
        returned = [kind for callee in callees for kind in self.aliases.whole.summary(callee).twice]
        return returned + [
            shared.twice
            for name in sorted(self.aliases.sources(value))
            for shared in pairs.get(frozenset((name,)), ())
            if shared.twice is not None
        ]

    def _repeated(self, elt: ast.expr, generators: list[ast.comprehension], pairs: Pairs) -> list[Kind]:
        """The kinds of what a comprehension may put into its result in two rounds, the same object."""
        match elt:
            case ast.Tuple(elts) | ast.List(elts) | ast.Dict(values=elts):
                return [each for part in elts for each in self._repeated(part, generators, pairs)]
            case ast.IfExp(_, body, orelse):
                return self._repeated(body, generators, pairs) + self._repeated(orelse, generators, pairs)
        if not self.aliases.sources(elt):
            return []
        found: list[Kind] = []
        # The rounds that an element comes of: those of its own variables, and of what these go through.
        needed = terms.names_read(elt)
        for each in reversed(generators):
            if needed & terms.names_bound([each.target]):
                needed |= terms.names_read(each.iter)
                found += self.held(each.iter, pairs, self.reader.kind(each.iter))
        rounds = [each for each in generators if not runs_once(each.iter)]
        apart = isinstance(elt, ast.Name) or (
            isinstance(elt, ast.Subscript) and any(_counts(elt.slice, each) for each in generators)
        )
        if rounds and not (apart and all(needed & terms.names_bound([each.target]) for each in rounds)):
            again = self._changeable(elt)
            found += [] if again is None else [again]
        return found

    def stored(self, node: ast.stmt, root: str, value: ast.expr, pairs: Pairs, kind: Kind) -> list[Kind]:
        """The kinds of what a container may hold twice once a value of a kind is put into it."""
        found = self.held(value, pairs, kind)
        if isinstance(value, ast.Tuple | ast.List | ast.Dict):
            # The display is new, but not what it is made of.
            parts = value.values if isinstance(value, ast.Dict) else value.elts
            return found + [one for each in parts for one in self.stored(node, root, each, pairs, kind)]
        for name in sorted(self.aliases.sources(value)):
            known = pairs.get(frozenset((name, root)), ())
            before = name == root or any(each.name == root for each in known)
            if before and id(node) not in self.moving and not _popped(value):
                again = self._changeable(value)
                found += [] if again is None else [again]
        return found

    def taken_out(self, before: ast.stmt | None, node: ast.stmt, pairs: Pairs) -> Pairs:
        """The pairs after `held = xs[i]` and `xs[i] = 0.0`: what is held is no longer in the container."""
        match before, node:
            case (
                ast.Assign([ast.Name(held)], ast.Subscript() as place),
                ast.Assign([ast.Subscript() as again], ast.Constant()),
            ) if held not in terms.names_read(again) and terms.same(place, terms.copied(again)):
                root = root_of(place)
                alone = frozenset((root,)) not in pairs
                if root is not None and alone and not self.aliases.arrayish(self.reader.kind(place.value)):
                    return {pair: each for pair, each in pairs.items() if pair != {held, root}}
        return pairs

    def apart(self, one: ast.expr, other: ast.expr) -> ast.expr | bool:
        """Whether two parts of one variable are different ones; what tells it, where that are the indices."""
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

    def _both(self, one: ast.expr, other: ast.expr, pairs: Pairs) -> Kind | None:
        """The kind of what two values may both be, or both hold, if that may be changed."""
        if isinstance(other, ast.IfExp):
            one, other = other, one
        if isinstance(one, ast.IfExp):
            return self._both(one.body, other, pairs) or self._both(one.orelse, other, pairs)
        if any(isinstance(each, ast.Constant) or self.aliases.nodes.certain(each) for each in (one, other)):
            return None
        if self.apart(one, other) is True or not self._linked(one, other, pairs):
            return None
        theirs = self.reader.kind(other).with_elements()
        arrays = any(map(self.aliases.arrayish, theirs))
        common = [
            each
            for each in self.reader.kind(one).with_elements()
            if (each in theirs if each.container else arrays and self.aliases.arrayish(each))
        ]
        return max(common, key=lambda each: len(each.with_elements()), default=None)

    def _linked(self, one: ast.expr, other: ast.expr, pairs: Pairs) -> bool:
        """Whether two values may come of one variable, or of two that share something."""
        theirs = self.aliases.sources(other)
        return any(
            name == each or frozenset((name, each)) in pairs
            for name in self.aliases.sources(one)
            for each in theirs
        )

    def _changeable(self, value: ast.expr) -> Kind | None:
        """The kind of a value that may be changed in place: of no number."""
        if isinstance(value, ast.Constant) or self.aliases.nodes.certain(value):
            return None
        kind = self.reader.kind(value)
        return kind if self._may_change(kind) else None

    def _may_change(self, kind: Kind) -> bool:
        return kind.container or self.aliases.arrayish(kind)


def _counts(index: ast.expr, generator: ast.comprehension) -> bool:
    """Returns True for an index that differs between the rounds of a generator."""
    match generator:
        case ast.comprehension(ast.Name(name), ast.Call(ast.Name("range" | "enumerate" | "sorted"))):
            return isinstance(index, ast.Name) and index.id == name
        case ast.comprehension(
            ast.Tuple([ast.Name(name), _]), ast.Call(ast.Name("enumerate") | ast.Attribute(attr="items"))
        ):
            return isinstance(index, ast.Name) and index.id == name
        case ast.comprehension(ast.Name(name), ast.Name()):
            # The keys of a dict.
            return isinstance(index, ast.Name) and index.id == name
    return False


def runs_once(sequence: ast.expr) -> bool:
    """Returns True for a sequence that has one element at most."""
    match sequence:
        case ast.Constant(str(text)):
            return len(text) < 2
        case ast.List(elts) | ast.Tuple(elts):
            return len(elts) < 2
    return False


def _popped(value: ast.expr) -> bool:
    """Whether a value was taken out of what it is put into."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "pop"


def _moves(statements: Sequence[ast.stmt]) -> set[int]:
    """The stores that move elements: each puts one where another one was just taken from."""
    found = _moved(statements)
    for node in statements:
        if isinstance(node, ast.If | ast.For | ast.While):
            found |= _moves(node.body) | _moves(node.orelse)
    return found


def _moved(statements: Sequence[ast.stmt]) -> set[int]:
    found: set[int] = set()
    for first, second, third in zip(statements, statements[1:], statements[2:], strict=False):
        match first, second, third:
            case (
                ast.Assign([ast.Name(held)], ast.Subscript() as one),
                ast.Assign([ast.Subscript() as one_again], ast.Subscript() as other),
                ast.Assign([ast.Subscript() as other_again], ast.Name(held_again)),
            ) if held == held_again and _same(one, one_again) and _same(other, other_again):
                found |= {id(second), id(third)}
    for node in statements:
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                if sorted(map(ast.unparse, targets)) == sorted(map(ast.unparse, values)):
                    found.add(id(node))
    return found


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


class Aliases:
    """The aliases of one function: all pairs of names that were ever one, and the conflicts among them."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.nodes = Nodes(function)
        self.reader = self.nodes.reader
        self.names = Sources(self.reader)
        self.strangers: dict[str, tuple[Function, str]] = {}
        """The variables of other functions, by what they are called here."""
        self.ever: Pairs = {}
        self.flows: set[frozenset[str]] = set()
        """Pairs of names that are never one, but of which one gets what the other had: `a, b = b, a`."""
        self.twice = Twice(self)
        self.is_called = function.whole.is_called(function)
        self.found: dict[tuple[int, str, str], Conflict] = {}
        self.in_place: set[int] = set()
        self.changed: set[str] = set()
        self.arguments: set[str] = set()
        # The parameters whose arguments may be changed.
        self.altered_given: set[str] = set()
        self.returned: set[str] = set()
        # The kinds of the objects that the value of the function may hold at two places.
        self.returned_twice: set[Kind] = set()
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
        at_exit = solution.before(cfg.exit) or {}
        self.ends |= set(at_exit)
        for reason in at_exit.get(frozenset((function.result,)), ()):
            if reason.twice is not None:
                self.returned_twice.add(reason.twice)
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
        twice = frozenset(kind.found() for kind in self.returned_twice)
        return Summary(returned, frozenset(linked), frozenset(self.altered_given), twice)

    def _is_outer(self, name: str) -> bool:
        return name.endswith(GIVEN) or name not in self.function.local or name in self.function.kept()

    def conflicts(self) -> Iterator[Conflict]:
        """The changes of what two names share, in the order of the text."""

        def order(each: Conflict) -> tuple[int, int, str, str]:
            return getattr(each.alias.node, "lineno", 0), each.line, each.alias.name, each.alias.other

        yield from sorted(self.found.values(), key=order)

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
        for each in terms.own_nodes(self.function.body):
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
        start = Alias(START, "", "", number(""))
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
                self.returned_twice.update(self.twice.held(node.value, pairs, self.reader.kind(node.value)))
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
            shared = Alias(node, name, "what it is given", number(name))
            self.found.setdefault((id(node), name, ""), Conflict(shared, node, True))

    def _of_who_calls(self, node: ast.stmt, place: ast.expr, kind: Kind, pairs: Pairs) -> None:
        """An array in a container of who calls the function is changed in place: that is not followed."""
        root, unless, given = root_of(place), number(place), self._is_given(root_of(place), pairs)
        if (
            self.whole.tensors
            or kind.has(*CONTAINERS)
            or (kind.has("box") and (given or not kind.has("array")))
        ):
            return
        if not given:
            if not (self.whole.reverse and self._is_in_new(node, place, pairs)):
                return
            if isinstance(place, ast.Subscript) and self.arrayish(self.reader.kind(place.value)):
                array = terms.call("hasattr", terms.copied(place.value), terms.constant("shape"))
                unless = ast.BoolOp(ast.Or(), [array, unless])
        shared = Alias(node, root or "", "what it is given", unless)
        self.found.setdefault((id(node), ast.unparse(place), ""), Conflict(shared, node, True))

    def _is_given(self, name: str | None, pairs: Pairs) -> bool:
        """Whether a variable may have something of who calls the function."""
        given = any(name in pair and any(each.endswith(GIVEN) for each in pair) for pair in pairs)
        return given and self.is_called

    def _is_in_new(self, node: ast.stmt, place: ast.expr, pairs: Pairs) -> bool:
        """Whether an element of a new container may be an argument, or a part of one.

        The caller sees changes to the argument, but never sees the container.
        """
        given = any(root_of(place) in pair and any(each.endswith(GIVEN) for each in pair) for pair in pairs)
        if not (given and isinstance(place, ast.Subscript)):
            return False
        flow = self.whole.points.of(self.function.node)
        state, outer = flow.before(node), self.whole.points.objects.outer | UNKNOWN
        if state is None:
            return True
        new = flow.of(state, place.value) & ~outer
        return bool(flow.held(state, new, key_of(place.slice)) & outer)

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
                    reasons += [] if apart is True else [Alias(node, name, name, apart or None, kind)]
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
        self, node: ast.stmt, changed: ast.expr, shared: Alias, kind: Kind, itself: bool
    ) -> None:
        """A change of what a container may hold in two places."""
        if itself and kind.has("array", "box"):
            self.in_place.add(id(node))
        elif itself and not kind.has(*CONTAINERS):
            shared = Alias(node, shared.name, shared.name, number(changed), shared.twice)
        self._conflict(shared, node, itself)

    def _changed_pair(
        self,
        node: ast.stmt,
        changed: ast.expr,
        shared: Alias,
        kind: Kind,
        itself: bool,
        pair: frozenset[str],
        live: Set[str],
    ) -> None:
        """A change of what two names may share."""
        name = root_of(changed) or ""
        (other,) = pair - {name}
        if not self._partner_shows(pair, name, kind):
            return
        if other.endswith(GIVEN):
            self._changed_argument(node, changed, shared, kind, itself, other)
        elif other in live or OF in other:
            unknown = itself and not kind.has("array", "box", *CONTAINERS)
            if itself and kind.has("array", "box") and shared.unless is None:
                self.in_place.add(id(node))
            if unknown and shared.unless is None:
                shared = Alias(node, shared.name, shared.other, number(changed))
            self._conflict(shared, node, itself)

    def _changed_argument(
        self, node: ast.stmt, changed: ast.expr, shared: Alias, kind: Kind, itself: bool, other: str
    ) -> None:
        """A change of what a parameter was given, by any name."""
        name, given = root_of(changed) or "", other.removesuffix(GIVEN)
        unknown = itself and not kind.has("array", "box", *CONTAINERS)
        self.altered_given.add(given)
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
            # Who calls the function gives the adjoint of what it has given, by that name.
            at, unless = (node, number(name)) if shared.node is START else (shared.node, shared.unless)
            asked = Alias(at, name, given, unless)
            self.found.setdefault((id(asked.node), name, other), Conflict(asked, node, itself))

    def _conflict(self, shared: Alias, node: ast.stmt, whole: bool = False) -> None:
        """Notes a change of what is shared, once for what makes it so."""
        key = (id(shared.node), shared.name, shared.other)
        known = self.found.get(key)
        if known is None or (known.alias.unless is not None and shared.unless is None):
            self.found[key] = Conflict(shared, node, whole)

    def _partner_shows(self, pair: frozenset[str], name: str, kind: Kind) -> bool:
        """Whether the other name of a pair shows a change of a value of a kind."""
        other = next(iter(pair - {name}), name)
        return other != self.function.result and reaches(self.whole.arrays, self._kind(other), kind)

    # Pairs.

    def sources(self, node: ast.expr) -> set[str]:
        """The variables whose value, or a part of whose value, may be in that of an expression."""
        return self.names.sources(node)

    def _kind(self, name: str) -> Kind:
        if name in self.strangers:
            owner, name = self.strangers[name]
            return owner.kind(name)
        return self.function.kind(name.removesuffix(GIVEN))

    def active(self, name: str) -> bool:
        """Whether a variable, also one of another function, is active."""
        owner, name = self.strangers.get(name, (self.function, name))
        return owner.active(name)

    def arrayish(self, kind: Kind) -> bool:
        """Whether a value of a kind may be an array."""
        return self.whole.arrays and kind.arrayish

    def _bound(self, node: ast.stmt, target: ast.expr, value: ast.expr, pairs: Pairs, each: bool) -> Pairs:
        """The pairs after a target is given a value, or `each` element of it."""
        parts = list(parts_of(target, value, each))
        new = [(leaf.id, part, maybe) for leaf, part, maybe in parts if isinstance(leaf, ast.Name)]
        names = {name for name, _, _ in new}
        reached = [self._with_partners(self.sources(part), pairs) for _, part, _ in new]
        doubled = {name: self.twice.held(part, pairs, self.function.kind(name)) for name, part, _ in new}
        for place, (name, _, _) in enumerate(new):
            self.flows |= {
                frozenset((name, each))
                for each in reached[place] & names - {name}
                if meet(self.whole.arrays, self._kind(name), self._kind(each))
            }
        before, pairs = pairs, {pair: shared for pair, shared in pairs.items() if not pair & names}
        for place, (name, part, maybe) in enumerate(new):
            others = reached[place] - names
            for (other, its, _), theirs in zip(new[:place], reached[:place], strict=True):
                both = reached[place] & theirs
                if its is part:  # The elements of one value are different ones, where it has none twice.
                    both = {one for one in both if frozenset((one,)) in before}
                if both and self.twice.apart(part, its) is not True:
                    others.add(other)
            numeric = maybe and not self._kind(name).has("array", "box", *CONTAINERS)
            unless, is_new = number(name) if numeric else None, not maybe and self.names.is_new(part)
            pairs = self._with(pairs, node, {name}, others, unless, is_new)
            pairs = self._doubled(pairs, node, name, doubled[name])
        for leaf, part, _ in parts:
            if isinstance(leaf, ast.Subscript):
                pairs = self._stored(node, leaf, part, pairs)
        return pairs

    def _stored(self, node: ast.stmt, place: ast.Subscript, value: ast.expr, pairs: Pairs) -> Pairs:
        root, base = root_of(place), self.reader.kind(place.value)
        if root is None or base.has("array"):
            return pairs
        doubled = self.twice.stored(node, root, value, pairs, self.reader.kind(place))
        unless: ast.expr | None = None
        if not self.reader.kind(value).has("array", "box", *CONTAINERS):
            unless = number(place)
        if self.arrayish(base):
            # An array copies what is stored into it.
            array = terms.call("hasattr", terms.copied(place.value), terms.constant("shape"))
            unless = ast.BoolOp(ast.Or(), [array, number(place)])
        pairs = self._put(pairs, node, place.value, self.sources(value), unless)
        return self._doubled(pairs, node, root, doubled, unless)

    def _doubled(
        self, pairs: Pairs, node: ast.stmt, name: str, kinds: list[Kind], unless: ast.expr | None = None
    ) -> Pairs:
        """The pairs after a container has got something of some kinds that it may hold already."""
        for kind in kinds:
            new = (Alias(node, name, name, unless, kind.found()),)
            pairs = either(pairs, {frozenset((name,)): new})
        return pairs

    def _with_partners(self, names: set[str], pairs: Pairs) -> set[str]:
        return names | {each for pair in pairs if pair & names for each in pair}

    def _holding(self, names: set[str], others: set[str], pairs: Pairs) -> set[str]:
        """Names with those that are one with them, and may hold what others are."""
        return names | {each for each in self._with_partners(names, pairs) if self._holds(each, others)}

    def _put(
        self, pairs: Pairs, node: ast.stmt, place: ast.expr, others: set[str], unless: ast.expr | None
    ) -> Pairs:
        """The pairs after what others have is put into the container at a place."""
        name = root_of(place)
        if name is None:
            return pairs
        whole = isinstance(place, ast.Name)
        shown = {
            pair: reasons
            for pair, reasons in pairs.items()
            if not (whole and all(each.outer == name for each in reasons))
        }
        holding = self._holding({name}, others, shown)
        return self._with(pairs, node, holding, self._with_partners(others, pairs), unless, True)

    def _with(
        self,
        pairs: Pairs,
        node: ast.stmt,
        names: set[str],
        others: set[str],
        unless: ast.expr | None,
        outer: bool,
    ) -> Pairs:
        """The pairs after names are given what others have; `outer`: which do not show them themselves."""
        pairs = dict(pairs)
        for one in names:
            known = OF not in one and self.nodes.certain(terms.name(one))
            for other in others - {one} if not known and not self._kind(one).has("function") else ():
                if not meet(self.whole.arrays, self._kind(one), self._kind(other)):
                    continue
                pair = frozenset((one, other))
                shared = Alias(node, one, other, unless, None, one if outer else "")
                pairs[pair] = common(pairs.get(pair, ()), (shared,))
                if not any(each.endswith(GIVEN) for each in pair):
                    self.ever[pair] = common(self.ever.get(pair, ()), pairs[pair])
        return pairs

    def _holds(self, name: str, others: set[str]) -> bool:
        """Whether a variable may hold, as an element or deeper, what one of others is."""
        inside = self._kind(name).with_elements() - {self._kind(name).found()}
        kinds, arrays = [self._kind(each).found() for each in others], any(map(self.arrayish, inside))
        return any(each in inside or (arrays and self.arrayish(each)) for each in kinds)


class _Flow(Analysis[Pairs]):
    """The analysis of the pairs of names that may be one, on the control-flow graph of a function."""

    def __init__(self, aliases: Aliases) -> None:
        self._sharing = aliases

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
