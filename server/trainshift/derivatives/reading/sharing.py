"""Which names may be one container or array, where one of them is changed (SPEC-AD AD37, AD38).

A change through one name that another one shows later cannot be followed: which adjoint it belongs to is not
known. Where it is not even known whether there is an array, and not a number, the derivative asks that first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainshift.derivatives import terms
from trainshift.derivatives.reading.function import Conflict, Function, Shared, bound, root_of
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.live import Live
from trainshift.derivatives.reading.nodes import Nodes
from trainshift.derivatives.reading.reader import CHANGING, FACTS, LOSING
from trainshift.derivatives.reading.twice import Pairs, Twice

# What gives a part of its first argument, or the same array in another shape.
VIEWS = frozenset(
    ["reshape", "ravel", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims", "atleast_1d",
     "atleast_2d", "asarray", "ascontiguousarray", "broadcast_to", "split", "array_split", "diag", "diagonal",
     "flip", "rollaxis", "view", "hsplit", "vsplit", "dsplit", "atleast_3d", "broadcast_arrays"]
)  # fmt: skip
HOLDING = frozenset(["list", "tuple", "dict", "reversed", "sorted", "zip", "enumerate", "max", "min"])
CONTAINERS = ("list", "tuple", "dict")
# After a parameter's name: what it was given, whatever the name means later.
GIVEN = " given"


class Sharing:
    """Follows the names of one function: `conflicts`, and all pairs that were ever one."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.nodes = Nodes(function)
        self.reader = self.nodes.reader
        self.found: dict[tuple[int, str, str], Conflict] = {}
        self.in_place: set[int] = set()
        self.ever: Pairs = {}
        self.changed: set[str] = set()
        self.arguments: set[str] = set()
        self.returned: set[str] = set()
        self.handed: set[str] = set()
        self.grown: set[str] = set()
        always = set(function.foreign)
        for each in function.nested.values():
            always |= terms.names_read(each.node)
        self.live = Live(function.body, always | {function.result})
        given = [(each, f"{each}{GIVEN}") for each in function.params]
        self.twice = Twice(self)
        start = Shared(ast.Pass(), "", "", _number(""))
        self._block(function.body, {frozenset(pair): start for pair in given})
        self._captured()
        for pair in self.ever:
            if function.result in pair:
                self.returned |= pair

    def _captured(self) -> None:
        """What functions inside change is changed whenever they are called."""
        for inner in self.function.nested.values():
            within = self.whole.sharing(inner)
            for name in within.changed if within else ():
                if inner.owner(name) is self.function:
                    self.changed.add(name)
                    self.arguments |= {name} & set(self.function.params)
                    self.grown.add(name)
                    for pair, shared in self.ever.items():
                        if name in pair and self._partner_shows(pair, name, self.function.kind(name)):
                            key = (id(shared.node), shared.name, shared.other)
                            self.found.setdefault(key, Conflict(shared, inner.node, False))

    def conflicts(self) -> Iterator[Conflict]:
        """The changes of what two names share, in the order of the text."""
        yield from sorted(
            self.found.values(), key=lambda each: (getattr(each.shared.node, "lineno", 0), each.line)
        )

    def shown(self) -> set[str]:
        """The names whose changes those outside may see: parameters, captured variables, and what is one with
        them."""
        function = self.function
        found = set()
        for each in self.changed:
            whole = self.with_names({each})
            if whole & set(function.params) or any(function.owner(name) is not function for name in whole):
                found |= whole
        return found

    def is_known_elsewhere(self, name: str) -> bool:
        """Whether a variable is also changed by a call, or has another name."""
        captured = (terms.names_read(each.node) for each in self.function.nested.values())
        partners = {each for pair in self.ever if name in pair for each in pair}
        partners -= {name, self.function.result}
        return bool(partners) or name in self.handed or any(name in each for each in captured)

    def meets(self, one: str, other: str) -> bool:
        """Whether two variables may have a container or an array in common, by their kinds."""
        return self._meet(self.function.kind(one), self.function.kind(other))

    def with_names(self, names: set[str]) -> set[str]:
        """Names with all that were ever one with them."""
        found, waiting = set(names), list(names)
        while waiting:
            each = waiting.pop()
            for pair in self.ever:
                if each in pair and not pair <= found:
                    waiting.extend(pair - found)
                    found |= pair
        return found

    # Statements.

    def _block(self, statements: Sequence[ast.stmt], pairs: Pairs) -> Pairs:
        before: ast.stmt = ast.Pass()
        for node in statements:
            pairs = self._taken_out(before, node, self._statement(node, pairs))
            before = node
        return pairs

    def _taken_out(self, before: ast.stmt, node: ast.stmt, pairs: Pairs) -> Pairs:
        """The pairs after `held = xs[i]` and `xs[i] = 0.0`: what is held is no longer in the container."""
        match before, node:
            case (
                ast.Assign([ast.Name(held)], ast.Subscript() as place),
                ast.Assign([ast.Subscript() as again], ast.Constant()),
            ) if held not in terms.names_read(again) and terms.same(place, terms.copied(again)):
                root = root_of(place)
                alone = frozenset((root,)) not in pairs
                if root is not None and alone and not self.arrayish(self.reader.kind(place.value)):
                    return {pair: each for pair, each in pairs.items() if pair != {held, root}}
        return pairs

    def _statement(self, node: ast.stmt, pairs: Pairs) -> Pairs:
        match node:
            case ast.If():
                return {**self._block(node.body, pairs), **self._block(node.orelse, pairs)}
            case ast.For() | ast.While():
                for _ in range(2):
                    start = pairs
                    if isinstance(node, ast.For):
                        start = self._bound(node, node.target, node.iter, pairs, True)
                    pairs = {**pairs, **self._block(node.body, start)}
                return self._block(node.orelse, pairs)
            case ast.FunctionDef():
                return pairs
        self._calls(node, pairs)
        match node:
            case ast.Assign():
                return self._assigned(node, node.targets, node.value, pairs)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                return self._assigned(node, [node.target], node.value, pairs)
            case ast.AugAssign():
                self._augmented(node, pairs)
                if self.reader.kind(node.target).has("list") and (root := root_of(node.target)):
                    doubled = self.twice.stored(node, root, node.value, pairs, self.reader.kind(node.target))
                    pairs = self._with(pairs, node, root, self.sources(node.value), None, True)
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
        for target in targets:
            pairs = self._bound(node, target, value, pairs, False)
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
            self._change(node, target.value, base, pairs)
        elif itself and not self.nodes.certain(target):
            self._change(node, target, kind, pairs, True)

    def _calls(self, node: ast.stmt, pairs: Pairs) -> None:
        """What the calls in a statement change."""
        for each in terms.walk(node):
            if not isinstance(each, ast.Call):
                continue
            if isinstance(each.func, ast.Attribute):
                if each.func.attr in (*CHANGING, *LOSING, "pop") and not self._of_module(each.func):
                    self.grown |= {root_of(each.func) or ""}
                    self._change(node, each.func.value, self.reader.kind(each.func.value), pairs)
                continue
            target = self.reader.target(each)
            if target is None:
                continue
            for param, argument in bound(target, each):
                kind = target.kind(param)
                if kind.has("changed") and not kind.has("function"):
                    self.handed |= {root_of(argument) or ""}
                    self.grown |= {root_of(argument) or ""}
                    self._change(node, argument, kind, pairs, deep=True)
                    self._given(node, each, argument, kind, pairs)

    def _joined(self, node: ast.stmt, call: ast.Call, pairs: Pairs) -> Pairs:
        """A method or function that is called alone may put one of its arguments into another."""
        parts = [*call.args, *(each.value for each in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            parts.insert(0, call.func.value)
        if len(parts) < 2 or not any(self.reader.kind(each).has("changed") for each in parts):
            return pairs
        doubled: Kind | None = None
        root = root_of(parts[0]) if isinstance(call.func, ast.Attribute) else None
        if root is not None and isinstance(call.func, ast.Attribute):
            kind = self.reader.kind(parts[0])
            kind = kind if call.func.attr in ("extend", "update") else kind.element()
            doubled = self.twice.stored(node, root, parts[-1], pairs, kind)
        unless: ast.expr | None = None
        last = parts[-1]
        if root is not None and isinstance(last, ast.Name) and self.whole.reverse:
            # In forward mode the tangents share what the values share.
            unless = None if self.reader.kind(last).has("array", "box", *CONTAINERS) else _number(last)
        named = [self.sources(each) for each in parts]
        for place, some in enumerate(named):
            for other in named[place + 1 :]:
                for name in some:
                    pairs = self._with(pairs, node, name, other, unless, True)
        return pairs if root is None else self._doubled(pairs, node, root, doubled)

    # Changes.

    def _given(self, node: ast.stmt, call: ast.Call, changed: ast.expr, kind: Kind, pairs: Pairs) -> None:
        """A function changes what it is given: its other arguments must be something else."""
        for other in (*call.args, *(each.value for each in call.keywords)):
            if other is changed or not self._reaches(self.reader.kind(other), kind):
                continue
            theirs = self.sources(other)
            for name in self.sources(changed):
                shared = next((pairs[p] for each in theirs if (p := frozenset((name, each))) in pairs), None)
                if name in theirs:
                    apart = self.twice.apart(changed, other)
                    shared = None if apart is True else Shared(node, name, name, apart or None, False, kind)
                if shared is not None:
                    key = (id(shared.node), shared.name, shared.other)
                    self.found.setdefault(key, Conflict(shared, node, False))

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
        live = self.live.after(node)
        for pair, shared in pairs.items():
            if name not in pair:
                continue
            if shared.twice is not None:
                inside = deep or not isinstance(changed, ast.Name)
                if inside and name in live and self._reaches(shared.twice, kind):
                    self.found.setdefault((id(shared.node), name, name), Conflict(shared, node, itself))
                continue
            if (
                shared.unless
                and shared.stored
                and name == shared.name
                and isinstance(changed, ast.Name)
                and not deep
            ):
                # A list gets another element then, and an array has a copy.
                continue
            (other,) = pair - {name}
            if other.endswith(GIVEN) and self._partner_shows(pair, name, kind):
                self.arguments.add(other.removesuffix(GIVEN))
            elif other in live and self._partner_shows(pair, name, kind):
                if itself and shared.unless is None:
                    self.in_place.add(id(node))
                key = (id(shared.node), shared.name, shared.other)
                self.found.setdefault(key, Conflict(shared, node, itself))

    def _partner_shows(self, pair: frozenset[str], name: str, kind: Kind) -> bool:
        """Whether the other name of a pair shows a change of a value of a kind."""
        other = next(iter(pair - {name}), name)
        return other != self.function.result and self._reaches(self._kind(other), kind)

    def _kind(self, name: str) -> Kind:
        return self.function.kind(name.removesuffix(GIVEN))

    def _reaches(self, kind: Kind, wanted: Kind) -> bool:
        """Whether a value of a kind may be, or hold, one of another kind."""
        arrays = self.arrayish(wanted)
        return any(
            each is wanted.found() or (arrays and self.arrayish(each)) for each in kind.with_elements()
        )

    def arrayish(self, kind: Kind) -> bool:
        """Whether a value of a kind may be an array."""
        return self.whole.arrays and not kind.has(*CONTAINERS, "function")

    # What names are made of.

    def _bound(self, node: ast.stmt, target: ast.expr, value: ast.expr, pairs: Pairs, each: bool) -> Pairs:
        """The pairs after a target is given a value, or `each` element of it."""
        parts = list(self._parts(target, value, each))
        new = [(leaf.id, part, maybe) for leaf, part, maybe in parts if isinstance(leaf, ast.Name)]
        names = {name for name, _, _ in new}
        partners = {
            name: self._with_partners(self.sources(part), pairs) - names - {name} for name, part, _ in new
        }
        doubled = {name: self.twice.held(part, pairs, self.function.kind(name)) for name, part, _ in new}
        pairs = {pair: shared for pair, shared in pairs.items() if not pair & names or pair <= names}
        if len(names) == 1:
            pairs = {pair: shared for pair, shared in pairs.items() if not pair & names}
        for name, _, maybe in new:
            pairs = self._with(pairs, node, name, partners[name], _number(name) if maybe else None)
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
            unless = _number(place)
        if self.arrayish(base):
            # An array copies what is stored into it.
            array = terms.call("hasattr", terms.copied(place.value), terms.constant("shape"))
            unless = ast.BoolOp(ast.Or(), [array, _number(place)])
        pairs = self._with(pairs, node, root, self.sources(value), unless, True)
        return self._doubled(pairs, node, root, doubled, unless)

    def _doubled(
        self, pairs: Pairs, node: ast.stmt, name: str, kind: Kind | None, unless: ast.expr | None = None
    ) -> Pairs:
        """The pairs after a container has got something of a kind that it may hold already."""
        if kind is None:
            return pairs
        return {**pairs, frozenset((name,)): Shared(node, name, name, unless, False, kind)}

    def _parts(
        self, target: ast.expr, value: ast.expr, each: bool
    ) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
        """The names and places in a target with what each is given, and whether that may be but a number."""
        if not isinstance(target, ast.Tuple | ast.List):
            yield target, value, each or isinstance(value, ast.Subscript | ast.Name)
            return
        inner: list[ast.expr] = [value] * len(target.elts)
        part = True
        match value:
            case ast.Tuple(elts) | ast.List(elts) if not each and len(elts) == len(target.elts):
                inner, part = elts, False
            case ast.Call(func=ast.Name("zip"), args=args) if each and len(args) == len(target.elts):
                inner = args
            case ast.Call(func=ast.Name("enumerate"), args=[first, *_]) if each:
                inner = [ast.Constant(0), first]
        for one, other in zip(target.elts, inner, strict=False):
            yield from self._parts(one, other, part or each)

    def _with_partners(self, names: set[str], pairs: Pairs) -> set[str]:
        return names | {each for pair in pairs if pair & names for each in pair}

    def _with(
        self,
        pairs: Pairs,
        node: ast.stmt,
        name: str,
        others: set[str],
        unless: ast.expr | None,
        stored: bool = False,
    ) -> Pairs:
        kind = self.function.kind(name)
        if kind.has("function") or self.nodes.certain(terms.name(name)):
            return pairs
        if not stored and kind.has("array", "box", *CONTAINERS):
            unless = None
        pairs = dict(pairs)
        for other in others - {name}:
            if not self._meet(kind, self._kind(other)):
                continue
            pair = frozenset((name, other))
            pairs[pair] = Shared(node, name, other, unless, stored)
            if not other.endswith(GIVEN):
                self.ever[pair] = pairs[pair]
        return pairs

    def _meet(self, one: Kind, other: Kind) -> bool:
        """Whether values of two kinds may have a container or an array in common."""
        mine, theirs = one.with_elements(), other.with_elements()
        for each in mine:
            if each in theirs and each.container:
                return True
        return any(map(self.arrayish, mine)) and any(map(self.arrayish, theirs))

    def sources(self, node: ast.expr) -> set[str]:
        """The variables whose value, or a part of whose value, may be in that of an expression."""
        match node:
            case ast.Name(name):
                return set() if self.function.owner(name) is None else {name}
            case ast.Subscript():
                return self.sources(node.value)
            case ast.Attribute():
                return set() if node.attr in FACTS else self.sources(node.value)
            case ast.BoolOp():
                return set().union(*(self.sources(each) for each in node.values))
            case ast.IfExp():
                return self.sources(node.body) | self.sources(node.orelse)
            case ast.Tuple() | ast.List():
                return set().union(*(self.sources(each) for each in node.elts))
            case ast.Dict():
                return set().union(*(self.sources(each) for each in node.values))
            case ast.ListComp() | ast.GeneratorExp():
                return self._made(node, node.elt)
            case ast.DictComp():
                return self._made(node, node.value)
            case ast.BinOp() if self.reader.kind(node).has("list", "tuple"):
                return self.sources(node.left) | self.sources(node.right)
            case ast.Call():
                return self._called(node)
        return set()

    def _made(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, element: ast.expr) -> set[str]:
        found = self.sources(element)
        for each in node.generators:
            if found & terms.names_bound([each.target]):
                found |= self.sources(each.iter)
        return found - terms.names_bound([each.target for each in node.generators])

    def _called(self, node: ast.Call) -> set[str]:
        target = self.reader.target(node)
        arguments = [*node.args, *(each.value for each in node.keywords)]
        if target is not None:
            given = returned_by(target)
            found = [self.sources(each) for name, each in bound(target, node) if name in given]
            return set().union(*found)
        if isinstance(node.func, ast.Name) and self.function.owner(node.func.id):
            return set().union(*(self.sources(each) for each in arguments))
        dotted = self.reader.module.dotted(node.func) or ""
        last = dotted.rpartition(".")[2]
        if dotted.startswith("builtins."):
            return set().union(*(self.sources(each) for each in arguments)) if last in HOLDING else set()
        if dotted.startswith("numpy."):
            return self.sources(node.args[0]) if last in VIEWS and node.args else set()
        if not dotted and isinstance(node.func, ast.Attribute):
            method, base = node.func.attr, node.func.value
            if method in ("get", "pop", "setdefault", "items", "values", *VIEWS):
                return self.sources(base)
            if method == "copy" and self.reader.kind(base).element().container:
                return self.sources(base)
        return set()

    def _of_module(self, func: ast.Attribute) -> bool:
        return self.reader.module.dotted(func) is not None


def returned_by(function: Function) -> set[str]:
    """The parameters that may be, or be in, the value of a function."""
    known = function.whole.sharing(function)
    return known.returned & set(function.params) if known else set()


def _number(value: ast.expr | str) -> ast.expr:
    """Whether a variable, or what is at a place, is a number: no array, which may be a part of another."""
    read = terms.name(value) if isinstance(value, str) else terms.copied(value)
    return ast.UnaryOp(ast.Not(), terms.call("np.ndim", read))
