"""Reverse mode of what has statements inside or changes a container (SPEC-AD AD33, AD34, AD35, AD37)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives import terms
from trainshift.derivatives.analysis import CHANGING, root_of
from trainshift.derivatives.nodes import Node
from trainshift.derivatives.reverse import Back, Reverse, exposed

AGAIN = frozenset(("len", "isinstance"))


class Ways(Reverse):
    """Reverse mode of one function, whole."""

    # Conditionals.

    def _if(self, node: ast.If) -> Back:
        test = self.plain(node.test)
        again = test
        if id(node) not in self.idle and not self._asks_again(node):
            held = self.function.temporary()
            self.hold(held, test)
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
                one.append(terms.assign(self.bar(name), self.zero(name, name in known)))
            for name in sorted(first - second):
                other.append(terms.assign(self.bar(name), self.zero(name, name in known)))
            self.present = first | second
            if one:
                self.emit(ast.If(terms.copied(again), one, other))
            elif other:
                turned = terms.copied(again)
                if isinstance(turned, ast.UnaryOp) and isinstance(turned.op, ast.Not):
                    turned = turned.operand
                else:
                    turned = ast.UnaryOp(ast.Not(), turned)
                self.emit(ast.If(turned, other, []))
            else:
                self.idle_found.add(id(node))

        return back

    def _asks_again(self, node: ast.If) -> bool:
        """Whether the way back may ask the same: nothing that the test reads is assigned in the branches."""
        read = terms.names_read(node.test)
        changed = terms.names_bound([*node.body, *node.orelse])
        for each in ast.walk(node.test):
            if isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in AGAIN):
                return False
        return not read & changed and not any(
            self.function.kind(each).has("changed") for each in read if self.function.owner(each)
        )

    # Loops.

    def _loop(self, node: ast.For | ast.While) -> Back:
        counted = isinstance(node, ast.While) or _breaks(node.body)
        assigned = terms.names_bound(node.body)
        names: list[str] = []
        backs: list[Back] = []
        if isinstance(node, ast.For):
            source = self.plain(node.iter)
            moved = terms.names_read(node.iter) & (assigned | terms.names_bound([node.target]))
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
        live = {each for each in exposed([node]) if self.function.active(each)}
        live = {each for each in live if not self.function.kind(each).has("function")}

        def back() -> None:
            for name in sorted(live - self.present):
                if not self.foreign(name):
                    self.emit(terms.assign(self.bar(name), self.zero(name, name in known)))
                    self.present.add(name)
            start = set(self.present)
            if isinstance(node, ast.For):
                inner = self._inner(lambda: self._for_back(node, source, body_back))
            else:
                inner = self._inner(body_back)
            for name in sorted(start - self.present):
                inner.append(terms.assign(self.bar(name), self.zero(name, name in known)))
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
        """Keeps a loop's variable as it was before the loop, if something before the loop is read on the way back."""
        if name in self.maybe and name in self.kept and name in self._read_elsewhere(name):
            self._keep(name, backs=backs)
        self.maybe.add(name)

    def _read_elsewhere(self, name: str) -> set[str]:
        stores = 0
        for statement in self.function.body:
            for node in ast.walk(statement):
                stores += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        return {name} if stores > 1 or name in self.function.params else set()

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
        """The loop backwards: over the same values, or over places where adjoints of elements are added to."""
        place = self._places.pop(id(node), "")
        plain = source
        read = set().union(*(terms.names_read(each) for each in inner)) if inner else set()
        targets = terms.names_bound([node.target])
        if not place and (_ranged(source) or isinstance(source, ast.Name)):
            if count is not None:
                part = ast.Slice(None, count, None)
                plain = ast.Subscript(terms.copied(source), part, ast.Load())
            return ast.For(node.target, terms.call("reversed", plain), inner, [])
        if not place:
            values: ast.expr = terms.call("list", source)
            if count is not None:
                values = ast.Subscript(values, ast.Slice(None, count, None), ast.Load())
            return ast.For(node.target, terms.call("reversed", values), inner, [])
        if not read & targets:
            size = count if count is not None else self._size(source)
            if size is not None:
                header = terms.call("reversed", terms.call("range", size))
                return ast.For(terms.stored(terms.name(place)), header, inner, [])
        values = terms.call("list", terms.call("enumerate", source))
        if count is not None:
            values = ast.Subscript(values, ast.Slice(None, count, None), ast.Load())
        target = terms.display([terms.name(place), node.target])
        return ast.For(terms.stored(target), terms.call("reversed", values), inner, [])

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
                last = ast.BinOp(ast.UnaryOp(ast.Not(), terms.name(at())), ast.Add(), terms.constant(0))
                self._element_at(target, inner, ast.UnaryOp(ast.Invert(), terms.name(at())))
                del last
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
        if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
            start = source.slice.lower
            if source.slice.step is None and (start is None or terms.is_number(start)):
                shift = start.value if start is not None else 0  # type: ignore[attr-defined]
                if shift >= 0:
                    moved = ast.BinOp(index, ast.Add(), terms.constant(shift)) if shift else index
                    self._element_at(target, source.value, moved)
                    return
        element = ast.Subscript(terms.copied(source), index, ast.Load())
        if self.whole.reverse and isinstance(index, ast.Name):
            self.function.local.add(index.id)
        self._add_parts(target, element)

    # Changes of containers.

    def _store(
        self, node: ast.stmt, target: ast.Subscript, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        name = root_of(target)
        active = name is not None and self.function.active(name)
        root = self.nodes.node(value) if active else Node("still", value)
        if root.active:
            self.nodes.mark(root)
        lines: list[tuple[str, Node]] = []
        made = self.ahead(root, lines)
        backs: list[Back] = []
        if name is not None and name in self.contents:
            self._keep_element(name, target, backs)
        self.forward.append(self._line(node, target, value, made, augmented))

        def back() -> None:
            assert name is not None
            place = terms.copied(target)
            if not active or not self.is_present(name):
                for each in backs:
                    each()
                return
            slot = self.place(place)
            assert slot is not None
            bar: ast.expr | None = None
            base = self.nodes.reader.kind(target.value)
            if root.active:
                held = self.function.fresh(f"{name}_bar")
                taken: ast.expr = slot
                if base.has("array"):
                    taken = ast.BinOp(slot, ast.Add(), terms.constant(0.0))
                self.emit(terms.assign(held, taken))
                bar = terms.name(held)
            for each in backs:
                each()
            self.emit(terms.assign(slot, self._empty(target, base)))
            self._send(root, bar, lines)

        return back

    def _empty(self, target: ast.Subscript, base: object) -> ast.expr:
        kind = self.nodes.reader.kind(target)
        base_kind = self.nodes.reader.kind(target.value)
        del base
        if base_kind.has("array") or (kind.numeric and not self.whole.arrays) or not kind.words:
            return terms.constant(0.0)
        if isinstance(target.slice, ast.Slice):
            return self.helper("_cells", terms.copied(target))
        if base_kind.has("dict"):
            return terms.constant(0.0)
        return self.helper("_cells", terms.copied(target))

    def _keep_element(self, name: str, target: ast.Subscript, backs: list[Back]) -> None:
        """Keeps the old value of an element that is about to be assigned."""
        place = terms.copied(target)
        old: ast.expr = place
        kind = self.nodes.reader.kind(target.value)
        if kind.has("dict"):
            old = ast.Call(ast.Attribute(target.value, "get", ast.Load()), [terms.copied(target.slice)], [])
        elif kind.has("array"):
            old = ast.BinOp(place, ast.Add(), terms.constant(0))
        if self.depth or self.function.parent is not None:
            stack = self.function.fresh(f"{name}_old")
            self.empty_stacks.append(stack)
            self.forward.append(ast.Expr(terms.call(f"{stack}.append", old)))
            backs.append(lambda: self.emit(terms.assign(place, terms.call(f"{stack}.pop"))))
        else:
            held = self.function.fresh(f"{name}_old")
            self.forward.append(terms.assign(held, old))
            backs.append(lambda: self.emit(terms.assign(place, terms.name(held))))

    def _called_alone(self, node: ast.Expr) -> Back:
        call = node.value
        assert isinstance(call, ast.Call)
        if isinstance(call.func, ast.Attribute) and self.nodes.module.dotted(call.func) is None:
            name = root_of(call.func.value)
            method = call.func.attr
            if name is not None and method in (*CHANGING, "pop"):
                return self._changed(node, call, name, method)
        target = self.nodes.reader.target(call)
        if target is not None and self.nodes.reader.value(call):
            root = self.nodes.node(call)
            if root.sort == "call" and self._has_effects(root):
                return self._called_for_effect(node, root)
        self.forward.append(self._plain_statement(node))
        return _nothing

    def _called_for_effect(self, node: ast.Expr, root: Node) -> Back:
        self.nodes.mark(root)
        lines: list[tuple[str, Node]] = []
        held = self.function.temporary()
        made = self._call_line(root, lines, held)
        pullback = self.pullbacks[id(root)]
        after = self._keep(pullback, fresh=True)
        pair = terms.display([terms.name("_"), terms.name(pullback)])
        self.forward.append(ast.copy_location(terms.assign(pair, made), node))
        after()
        return lambda: self._send(root, None, lines)

    def _changed(self, node: ast.Expr, call: ast.Call, name: str, method: str) -> Back:
        """`append`, `extend` and `pop`, undone by each other."""
        assert isinstance(call.func, ast.Attribute)
        owner = call.func.value
        active = self.function.active(name)
        undone = name in self.contents
        lines: list[tuple[str, Node]] = []
        if method == "pop":
            if not active and not undone:
                self.forward.append(node)
                return _nothing
            held = self.function.temporary()
            return self._pop(ast.copy_location(terms.assign(held, call), node), held, call)
        if not call.args:
            self.forward.append(node)
            return _nothing
        argument = call.args[-1]
        root = self.nodes.node(argument) if active else Node("still", argument)
        if root.active:
            self.nodes.mark(root)
        made = self.ahead(root, lines)
        size = ""
        if method in ("extend", "update"):
            size = self.function.temporary()
            self.hold(size, terms.call("len", owner))
        if made is argument:
            self.forward.append(node)
        else:
            new = ast.Expr(ast.Call(call.func, [*call.args[:-1], made], []))
            self.forward.append(ast.copy_location(new, node))

        def back() -> None:
            bar: ast.expr | None = None
            present = active and self.is_present(name)
            part = ast.Slice(terms.name(size), None, None) if size else None
            if present:
                place = self.place(terms.copied(owner)) or terms.name(self.bar(name))
                held = self.function.fresh(f"{name}_bar")
                if part is not None:
                    tail = ast.Subscript(place, part, ast.Load())
                    self.emit(terms.assign(held, tail), terms.assign(tail, ast.List([], ast.Load())))
                    bar = terms.name(held)
                elif root.active and root.sort != "display" or len(root.params) > 1:
                    self.emit(terms.assign(held, self._popped(place)))
                    bar = terms.name(held)
                else:
                    self.emit(ast.Expr(self._popped(place)))
            if undone:
                if part is not None:
                    tail = ast.Subscript(terms.copied(owner), part, ast.Load())
                    self.emit(terms.assign(tail, ast.List([], ast.Load())))
                else:
                    self.emit(ast.Expr(self._popped(owner)))
            if bar is not None:
                self._send(root, bar, lines)

        return back

    def _popped(self, place: ast.expr) -> ast.expr:
        return ast.Call(ast.Attribute(terms.copied(place), "pop", ast.Load()), [], [])

    def _pop(self, node: ast.stmt, name: str, value: ast.expr) -> Back:
        """`x = xs.pop()`: on the way back x and its adjoint are appended."""
        assert isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
        owner = value.func.value
        base = root_of(owner)
        assert base is not None
        backs: list[Back] = []
        self.function.local.add(name)
        after = self._keep(name, backs=backs, fresh=name not in self.defined)
        self.forward.append(node)
        after()
        known = name in self.defined

        def back() -> None:
            if base in self.contents:
                self.emit(_appended(owner, terms.name(name)))
            if self.function.active(base) and self.is_present(base):
                place = self.place(terms.copied(owner)) or terms.name(self.bar(base))
                bar = terms.name(self.bar(name)) if name in self.present else self.zero(name, known)
                self.emit(_appended(place, bar))
            elif name in self.present:
                place = terms.name(self.start(base))
                self.emit(_appended(place, terms.name(self.bar(name))))
            self.present.discard(name)
            for each in backs:
                each()

        return back

    # Functions inside.

    def _definition(self, node: ast.FunctionDef) -> Back:
        inner = self.function.nested[node.name]
        self.defined.add(node.name)
        self.maybe.add(node.name)
        self.forward.extend(self.whole.made_function(inner, self))
        return _nothing


def _appended(place: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Attribute(terms.copied(place), "append", ast.Load()), [value], []))


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    for node in statements:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.If) and (_breaks(node.body) or _breaks(node.orelse)):
            return True
    return False


def _ranged(source: ast.expr) -> bool:
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"


def _plain_source(source: ast.expr) -> bool:
    """Whether a loop's sequence may be asked for again: names, elements, and views of them."""
    for each in ast.walk(source):
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


def _nothing() -> None:
    pass
