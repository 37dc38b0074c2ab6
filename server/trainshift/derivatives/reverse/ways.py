"""Reverse mode of conditionals, loops and functions inside (AD33, AD34, AD35)."""

from __future__ import annotations

import ast

from trainshift.derivatives.reading.side_effects import changed_by_call
from trainshift.derivatives.reverse.calls import Back
from trainshift.derivatives.reverse.changes import Changes
from trainshift.derivatives.reverse.lines import nothing, simple
from trainshift.python.flow.exits import BREAK, completions
from trainshift.python.rewrite import terms

AGAIN = frozenset(("len", "isinstance"))


class Ways(Changes):
    """Reverse mode of one function, whole; `bars_back` is what its pullback returns."""

    bars_back: ast.expr

    # Conditionals.

    def _if(self, node: ast.If) -> Back:
        test = self.plain(node.test)
        again = test
        if id(node) not in self.idle and not self._asks_again(node):
            held = self.function.temporary()
            # A list is not as long any more when it is asked again.
            lasts = not any(self.function.kind(each).changes for each in self.sources(node.test))
            self.hold(held, test if lasts else terms.call("bool", test))
            test = again = terms.name(held)
        branches: list[list[ast.stmt]] = []
        backs: list[Back] = []
        known, maybe = set(self.defined), set(self.maybe)
        ends: list[tuple[set[str], set[str]]] = []
        for statements in (node.body, node.orelse):
            self.defined, self.maybe = set(known), set(maybe)
            outer, self.forward = self.forward, []
            backs.append(self._block(statements))
            branches.append(self.forward)
            self.forward = outer
            leaves = bool(statements) and isinstance(statements[-1], ast.Break | ast.Continue | ast.Raise)
            ends.append((set(known) | self.maybe if leaves else self.defined, self.maybe))
        self.defined = ends[0][0] & ends[1][0]
        self.maybe = ends[0][1] | ends[1][1]
        made = ast.copy_location(ast.If(test, branches[0] or [ast.Pass()], branches[1]), node)
        self.forward.append(made)

        def back() -> None:
            start = set(self.present)
            one = self._inner(backs[0])
            first = set(self.present)
            self.present = set(start)
            other = self._inner(backs[1])
            second = set(self.present)
            for name in sorted(second - first):
                one.append(terms.assign(self.bar(name), self._zero_if(name, known)))
            for name in sorted(first - second):
                other.append(terms.assign(self.bar(name), self._zero_if(name, known)))
            self.present = first | second
            if one:
                self.emit(ast.If(terms.copied(again), one, other))
            elif other:
                turned = terms.opposite(terms.copied(again))
                self.emit(ast.If(turned, other, []))
            else:
                self.idle_found.add(id(node))

        return back

    def _zero_if(self, name: str, known: set[str]) -> ast.expr:
        """The adjoint of a variable on which nothing depends, and that may have no value here."""
        if name not in known and self.boxlike(name) and self.function.owner(name) is self.function:
            # It may have had one in the round before, with elements; else it is None.
            self.unset.add(name)
            return self.zero(name)
        return self.zero(name, name in known)

    def _asks_again(self, node: ast.If) -> bool:
        """Whether the way back may ask the same: nothing that the test reads is assigned in the branches."""
        read = terms.names_read(node.test)
        changed = self._reassigned([*node.body, *node.orelse])
        for each in terms.walk(node.test):
            if isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in AGAIN):
                return False
        return not read & changed and not any(
            self.function.kind(each).changes for each in read if self.function.owner(each)
        )

    def _reassigned(self, statements: list[ast.stmt]) -> set[str]:
        """The variables that statements assign, or functions that they call."""
        found = set[str]().union(*map(terms.bound_in, statements))
        for each in (part for line in statements for part in terms.walk(line)):
            if isinstance(each, ast.Call) and not isinstance(each.func, ast.Attribute):
                found |= changed_by_call(self.nodes.reader, each)
        return found

    # Loops.

    def _loop(self, node: ast.For | ast.While) -> Back:
        """The primal and the adjoint pass of a loop (AD34)."""
        counted = isinstance(node, ast.While) or BREAK in completions(node.body)
        assigned = frozenset[str]().union(*map(terms.bound_in, node.body))
        names: list[str] = []
        backs: list[Back] = []
        if isinstance(node, ast.For):
            source = self.plain(node.iter)
            reassigned = self._reassigned(node.body) | terms.names_bound([node.target])
            moved = terms.names_read(node.iter) & reassigned
            if moved and self.nodes.reader.value(node.iter):
                said = f"the loop's sequence changes inside the loop: {', '.join(sorted(moved))}"
                raise self.nodes.refused(node.iter, said)
            if moved or not _plain_source(node.iter):
                held = self.function.temporary()
                made = source if _ranged(source) else terms.call("list", source)
                self.hold(held, made)
                source = terms.name(held)
            names = sorted(terms.names_bound([node.target]))
            for each in names:
                self._keep_outside(each, backs)
        trips = ""
        if counted:
            trips = self.function.fresh("trips")
            self.function.local.add(trips)
            self.forward.append(terms.assign(trips, terms.constant(0)))
        known = set(self.defined)
        outer, self.forward = self.forward, []
        if counted:
            self.forward.append(terms.added(trips, terms.constant(1)))
        self.depth += 1
        self.maybe |= assigned | set(names)
        inside = set(self.defined)
        self.defined |= set(names)
        body_back = self._block(node.body)
        self.defined = inside & self.defined | inside
        self.depth -= 1
        body, self.forward = self.forward, outer
        if isinstance(node, ast.For):
            new: ast.stmt = ast.For(node.target, source, body or [ast.Pass()], [])
        else:
            new = ast.While(self.plain(node.test), body or [ast.Pass()], [])
        self.forward.append(ast.copy_location(new, node))
        if counted:
            self._keep_trips(trips)
        live = {each for each in self.exposed([node]) if self.function.active(each)}
        live = {each for each in live if not self.function.kind(each).has("function")}

        def back() -> None:
            for name in sorted(live - self.present):
                if not self.foreign(name):
                    self.emit(terms.assign(self.bar(name), self._zero_if(name, known)))
                    self.present.add(name)
            start = set(self.present)
            if isinstance(node, ast.For):
                inner = self._inner(lambda: self._for_back(node, source, body_back))
            else:
                inner = self._inner(body_back)
            for name in sorted(start - self.present):
                inner.append(terms.assign(self.bar(name), self._zero_if(name, known)))
            self.present = start
            if inner:
                count = self._trips(trips)
                if isinstance(node, ast.For):
                    self.emit(self._header(node, source, inner, count))
                else:
                    assert count is not None
                    self.emit(ast.For(terms.stored(terms.name("_")), terms.call("range", count), inner, []))
            for each in backs:
                each()

        return back

    def _keep_outside(self, name: str, backs: list[Back]) -> None:
        """Keeps a loop's variable as it was before the loop, if something before the loop is read on the
        way back."""
        if name in self.maybe and name in self.kept and name in self._read_elsewhere(name):
            self._keep(name, backs=backs)
        self.maybe.add(name)

    def _read_elsewhere(self, name: str) -> set[str]:
        return {name} if self.counts[1][name] > 1 or name in self.function.params else set()

    def _keep_trips(self, trips: str) -> None:
        if self.depth:
            stack = self._stack(trips)
            self.forward.append(ast.Expr(terms.call(f"{stack}.append", terms.name(trips))))

    def _trips(self, trips: str) -> ast.expr | None:
        if not trips:
            return None
        return terms.call(f"{self.stacks[trips]}.pop") if trips in self.stacks else terms.name(trips)

    def _header(
        self, node: ast.For, source: ast.expr, inner: list[ast.stmt], count: ast.expr | None
    ) -> ast.stmt:
        """The loop backwards: over the same values, or over places where adjoints of elements are added
        to."""
        place = self._places.pop(id(node), "")
        plain = source
        # Pullbacks of functions inside read what these capture.
        functions = [each.node for each in self.function.nested.values()]
        read = set[str]().union(*map(terms.names_read, [*inner, *functions]))
        targets = terms.names_bound([node.target])
        if not place and (_ranged(source) or isinstance(source, ast.Name)):
            if count is not None:
                part = ast.Slice(None, count, None)
                plain = ast.Subscript(terms.copied(source), part, ast.Load())
            return ast.For(node.target, terms.call("reversed", plain), inner, [])
        if count is not None:
            source = self._first(source, count)
        if not place:
            return ast.For(node.target, terms.call("reversed", terms.call("list", source)), inner, [])
        if not read & targets:
            size = count if count is not None else self._size(source)
            if size is not None:
                header = terms.call("reversed", terms.call("range", size))
                return ast.For(terms.stored(terms.name(place)), header, inner, [])
        values = terms.call("list", terms.call("enumerate", source))
        target = terms.display([terms.name(place), node.target])
        return ast.For(terms.stored(target), terms.call("reversed", values), inner, [])

    def _first(self, source: ast.expr, count: ast.expr) -> ast.expr:
        """The first elements of what a loop goes through, so many as it came to."""
        match source:
            case ast.Call(ast.Name("zip"), [first, *others]):
                # It ends with the shortest.
                return terms.call("zip", self._first(first, count), *others)
            case ast.Call(ast.Name("enumerate"), [inner, *start], keywords):
                return ast.Call(source.func, [self._first(inner, count), *start], keywords)
            case ast.Name() | ast.Subscript() if not self.nodes.reader.kind(source).has("dict"):
                pass
            case _:
                source = terms.call("list", source)
        return ast.Subscript(terms.copied(source), ast.Slice(None, count, None), ast.Load())

    def _size(self, source: ast.expr) -> ast.expr | None:
        if isinstance(source, ast.Name | ast.Subscript):
            return terms.call("len", source)
        return None

    @property
    def _places(self) -> dict[int, str]:
        """The names of places by loop, where the way back through a loop asks for them."""
        if not hasattr(self, "_place_names"):
            self._place_names: dict[int, str] = {}
        return self._place_names

    def _for_back(self, node: ast.For, source: ast.expr, body_back: Back) -> None:
        body_back()
        place = ""

        def at() -> str:
            nonlocal place
            place = place or self.function.fresh("i")
            return place

        self._element(node.target, source if isinstance(source, ast.Name) else node.iter, at)
        if place:
            self._places[id(node)] = place
        for each in sorted(terms.names_bound([node.target])):
            # What functions inside add to from here on is of the round before.
            if self.function.active(each) and self.foreign(each):
                self.emit(terms.assign(self.bar(each), self.zero(each)))

    def _element(self, target: ast.expr, source: ast.expr, at: object) -> None:
        """What a loop's variables have as adjoints goes to the elements that they were."""
        assert callable(at)
        names = [each.id for each in terms.leaves(target) if isinstance(each, ast.Name)]
        if not any(self.function.active(each) and self.is_present(each) for each in names):
            return
        match source:
            case ast.Call(func=ast.Name("enumerate"), args=[inner, *_]) if isinstance(target, ast.Tuple):
                self._element(target.elts[1], inner, at)
            case ast.Call(func=ast.Name("zip"), args=args) if isinstance(target, ast.Tuple):
                for each, inner in zip(target.elts, args, strict=False):
                    self._element(each, inner, at)
            case ast.Call(func=ast.Name("reversed"), args=[inner]):
                self._element_at(target, inner, ast.UnaryOp(ast.Invert(), terms.name(at())))
            case ast.Call(func=ast.Name("list" | "tuple"), args=[inner]):
                self._element(target, inner, at)
            case ast.Call(func=ast.Attribute(value=inner, attr="items")) if isinstance(target, ast.Tuple):
                self._element_at(target.elts[1], inner, terms.copied(target.elts[0]))
                self._places_needed(at)
            case ast.Call(func=ast.Attribute(value=inner, attr="values")):
                keys = ast.Subscript(terms.call("list", inner), terms.name(at()), ast.Load())
                self._element_at(target, inner, keys)
            case _:
                self._element_at(target, source, terms.name(at()))

    def _places_needed(self, at: object) -> None:
        assert callable(at)
        at()

    def _element_at(self, target: ast.expr, source: ast.expr, index: ast.expr) -> None:
        part = source.slice if isinstance(source, ast.Subscript) else None
        if isinstance(index, ast.UnaryOp) and isinstance(part, ast.Slice) and part.upper is None:
            # From the last one on, a part that ends where the whole does is found as in the whole.
            assert isinstance(source, ast.Subscript)
            self._element_at(target, source.value, index)
            return
        if isinstance(part, ast.Slice) and not isinstance(index, ast.UnaryOp):
            assert isinstance(source, ast.Subscript)
            start = part.lower
            if part.step is None and (start is None or terms.is_number(start)):
                shift = start.value if start is not None else 0  # type: ignore[attr-defined]
                if shift >= 0:
                    moved = ast.BinOp(index, ast.Add(), terms.constant(shift)) if shift else index
                    self._element_at(target, source.value, moved)
                    return
        element = ast.Subscript(terms.copied(source), index, ast.Load())
        if self.whole.reverse and isinstance(index, ast.Name):
            self.function.local.add(index.id)
        self._add_parts(target, element)

    # Functions inside.

    def _definition(self, node: ast.FunctionDef) -> Back:
        """The primal and the adjoint pass of a function defined inside (AD35)."""
        inner = self.function.nested[node.name]
        self.defined.add(node.name)
        self.maybe.add(node.name)
        made = self.whole.made_function(inner)
        stores = terms.counted([each for each in self.block.statements if simple(each)])[1]
        # What also has a value from elsewhere has an adjoint there, too.
        here = {each for each in stores if stores[each] == self.counts[1][each]} - set(self.function.params)
        for (owner, name), bar in list(self.whole.captured_bars.items()):
            if owner is not self.function or name in self.begun or not self.function.kind(name).container:
                continue
            if name in here and not self.function.is_outlived:
                self.begun.add(name)
                start = terms.assign(bar, self.helper("_cells", terms.name(name)))
                self.block.starts.append(lambda start=start: self.emit(start))  # type: ignore[misc]
        self.forward.extend(made)
        return nothing


def _ranged(source: ast.expr) -> bool:
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"


def _plain_source(source: ast.expr) -> bool:
    """Whether a loop's sequence may be asked for again: names, elements, and views of them."""
    for each in terms.walk(source):
        if isinstance(each, ast.Call):
            known = ("range", "enumerate", "zip", "reversed", "list", "tuple", "len")
            if isinstance(each.func, ast.Name) and each.func.id in known:
                continue
            if isinstance(each.func, ast.Attribute) and each.func.attr in ("items", "values", "keys"):
                continue
            return False
        if isinstance(each, ast.ListComp | ast.GeneratorExp):
            return False
    return True
