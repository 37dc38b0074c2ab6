"""Which names may be one, and how they come to be: a change of one is seen in the other (SPEC-AD AD37).

A container may also hold one thing in two places: that is a pair of a name with itself.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from trainshift.derivatives import terms
from trainshift.derivatives.reading.function import Function, Shared, root_of
from trainshift.derivatives.reading.kinds import ANY, Kind, meet
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.sources import GIVEN, HOLDING, OF, Sources, number, parts_of

CONTAINERS = ("list", "tuple", "dict")
# Calls that give a container of what they are given, or what is in that.
_HOLDING = frozenset(f"builtins.{each}" for each in HOLDING)
Pairs = dict[frozenset[str], tuple[Shared, ...]]
"""The pairs of names that may be one, with all that may have made them so."""


def either(one: Pairs, other: Pairs) -> Pairs:
    """The join of the pairs of two paths. `one` is returned where `other` adds nothing."""
    found = one
    for pair, shared in other.items():
        both = common(one.get(pair, ()), shared)
        if both is not one.get(pair):
            found = found if found is not one else dict(one)
            found[pair] = both
    return found


def common(one: tuple[Shared, ...], other: tuple[Shared, ...]) -> tuple[Shared, ...]:
    """The join of two sets of reasons why a pair may be one. `one` is returned where `other` adds nothing.

    A reason without a condition stands for all others: there is nothing to ask at run time then.
    """
    found = one
    for new in other:
        if any(each.key == new.key for each in found):
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
    """Tells of what kind a thing is that a value may hold twice: None, where there is no such thing."""

    def __init__(self, sharing: Pairing) -> None:
        self.sharing = sharing
        self.reader = sharing.nodes.reader
        self.moving = _moves(sharing.nodes.function.body)

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
        return [
            shared.twice
            for name in sorted(self.sharing.sources(value))
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
        if not self.sharing.sources(elt):
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
        for name in sorted(self.sharing.sources(value)):
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
                if root is not None and alone and not self.sharing.arrayish(self.reader.kind(place.value)):
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
        if any(isinstance(each, ast.Constant) or self.sharing.nodes.certain(each) for each in (one, other)):
            return None
        if self.apart(one, other) is True or not self._linked(one, other, pairs):
            return None
        theirs = self.reader.kind(other).with_elements()
        arrays = any(map(self.sharing.arrayish, theirs))
        common = [
            each
            for each in self.reader.kind(one).with_elements()
            if (each in theirs if each.container else arrays and self.sharing.arrayish(each))
        ]
        return max(common, key=lambda each: len(each.with_elements()), default=None)

    def _linked(self, one: ast.expr, other: ast.expr, pairs: Pairs) -> bool:
        """Whether two values may come of one variable, or of two that share something."""
        theirs = self.sharing.sources(other)
        return any(
            name == each or frozenset((name, each)) in pairs
            for name in self.sharing.sources(one)
            for each in theirs
        )

    def _changeable(self, value: ast.expr) -> Kind | None:
        """The kind of a value that may be changed in place: of no number."""
        if isinstance(value, ast.Constant) or self.sharing.nodes.certain(value):
            return None
        kind = self.reader.kind(value)
        return kind if self._may_change(kind) else None

    def _may_change(self, kind: Kind) -> bool:
        return kind.container or self.sharing.arrayish(kind)


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


class Pairing:
    """What the names of one function are made of: the pairs that assignments and stores make."""

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
            new = (Shared(node, name, name, unless, kind.found()),)
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
                shared = Shared(node, one, other, unless, None, one if outer else "")
                pairs[pair] = common(pairs.get(pair, ()), (shared,))
                if not any(each.endswith(GIVEN) for each in pair):
                    self.ever[pair] = common(self.ever.get(pair, ()), pairs[pair])
        return pairs

    def _holds(self, name: str, others: set[str]) -> bool:
        """Whether a variable may hold, as an element or deeper, what one of others is."""
        inside = self._kind(name).with_elements() - {self._kind(name).found()}
        kinds, arrays = [self._kind(each).found() for each in others], any(map(self.arrayish, inside))
        return any(each in inside or (arrays and self.arrayish(each)) for each in kinds)
