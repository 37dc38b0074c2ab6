"""A change of a list, dict or array is undone on the way back, and its adjoint follows.

    xs.append(v)        v_bar = xs_bar.pop(); xs.pop()
    xs[i] = v           v_bar = xs_bar[i]; xs[i] = xs_old; xs_bar[i] = 0.0

The old element is kept on the way forward. Arguments and the value are copied first, so that they stay as the
function leaves them. Where two names may be one container, changing it is refused; so is a method that loses
what was there, such as `sort`.
"""

from __future__ import annotations

import ast

from trainshift.derivatives import terms
from trainshift.derivatives.reading.function import bound, root_of
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.reader import CHANGING
from trainshift.derivatives.reverse.calls import Back
from trainshift.derivatives.reverse.lines import Lines, nothing


class Changes(Lines):
    """Unpacking, stores, and methods that change a list or dict."""

    def _unpack(self, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr) -> Back:
        names = [each.id for each in terms.leaves(target) if isinstance(each, ast.Name)]
        active = [each for each in names if self.function.active(each)]
        root = self.nodes.node(value) if active else Node("still", value)
        if root.active:
            self.nodes.mark(root)
        lines: list[tuple[str, Node]] = []
        backs: list[Back] = []
        direct = root.sort == "call"
        made = self._call_line(root, lines, self.function.temporary()) if direct else self.ahead(root, lines)
        after = [self._keep(each, backs=backs) for each in names]
        if direct:
            pair = terms.display([target, terms.name(self.pullbacks[id(root)])])
            self.forward.append(ast.copy_location(terms.assign(pair, made), node))
        else:
            self.forward.append(self._line(node, target, value, made, None))
        for each in after:
            each()
        if direct:
            self._keep(self.pullbacks[id(root)], fresh=True)()
        if root.sort in ("name", "item") and active:
            return self._unpack_place(target, root, backs, active)
        defined = set(self.defined)

        def back() -> None:
            for each in backs:
                each()
            if not active or not (any(self.is_present(each) for each in active) or self._must(root)):
                return
            bar = self._bars(target, defined)
            self.present -= set(active)
            self.consumed = set(active)
            self._send(root, bar, lines)

        return back

    def _bars(self, target: ast.expr, defined: set[str]) -> ast.expr:
        """The adjoints of what is unpacked, in its structure."""
        if isinstance(target, ast.Tuple | ast.List):
            return terms.display([self._bars(each, defined) for each in target.elts])
        assert isinstance(target, ast.Name)
        if not self.function.active(target.id):
            return terms.constant(0.0)
        if self.is_present(target.id):
            return terms.name(self.bar(target.id))
        return self.zero(target.id, target.id in defined)

    def _unpack_place(
        self, target: ast.Tuple | ast.List, root: Node, backs: list[Back], active: list[str]
    ) -> Back:
        """Unpacking a variable or an element: what is unpacked carries the adjoints of its parts (AD36)."""
        expr = root.expr
        name = self.path(expr)[0]
        base = name.id if isinstance(name, ast.Name) else ""
        flat = all(isinstance(each, ast.Name) for each in target.elts)
        linked = self.nodes.reader.kind(expr).has("linked")
        boxes = any(not self.function.kind(each).numeric for each in active)
        carry = (linked or boxes) and flat and base and all(self._of_block(each) for each in active)
        carry = carry and (self.depth > 0 or all(each not in self.function.params for each in active))
        if carry and self._stays(expr):
            self.block.starts.append(lambda: self._take(target, expr))
            exact = linked and isinstance(expr, ast.Name)

            def put() -> None:
                for each in backs:
                    each()
                place = self.place(expr) if not isinstance(expr, ast.Name) else terms.name(self.start(base))
                assert place is not None
                bars = terms.display(
                    [
                        terms.name(self.bar(each.id) if self.function.active(each.id) else f"{each.id}_bar")
                        for each in target.elts
                        if isinstance(each, ast.Name)
                    ]
                )
                self.present -= set(active)
                if exact:
                    self.emit(terms.assign(place, bars))
                else:
                    everything = ast.Slice(None, None, None)
                    self.emit(terms.assign(ast.Subscript(place, everything, ast.Load()), bars))

            return put

        def back() -> None:
            for each in backs:
                each()
            self._add_parts(target, expr)

        return back

    def _take(self, target: ast.Tuple | ast.List, expr: ast.expr) -> None:
        """`left_bar, value_bar, right_bar = tree_bar`, where the way back through a block begins."""
        place = self.place(expr) if not isinstance(expr, ast.Name) else terms.name(self.start(expr.id))
        assert place is not None
        bars: list[ast.expr] = []
        for each in target.elts:
            assert isinstance(each, ast.Name)
            if self.function.active(each.id):
                bars.append(terms.name(self.bar(each.id)))
                self.present.add(each.id)
            else:
                bars.append(terms.name(f"{each.id}_bar"))
        self.emit(terms.assign(terms.display(bars), place))

    def _stays(self, expr: ast.expr) -> bool:
        """Whether what an element is found by is not assigned in the rest of the function."""
        found = terms.names_read(expr)
        stores = self.counts[1]
        return all(stores[each] <= (0 if each in self.function.params else 1) for each in found)

    def _add_parts(self, target: ast.expr, expr: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for place, each in enumerate(target.elts):
                self._add_parts(each, ast.Subscript(terms.copied(expr), terms.constant(place), ast.Load()))
        elif isinstance(target, ast.Name) and self.function.active(target.id) and self.is_present(target.id):
            bar = terms.name(self.bar(target.id))
            self.present.discard(target.id)
            self.add_at(expr, bar, False)

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
                self.emit(terms.assign(held, self._own(slot, base)))
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

    def _own(self, place: ast.expr, base: Kind) -> ast.expr:
        """What stands in a place of a container, by itself: a part of an array is a copy."""
        if base.has("array"):
            return ast.BinOp(place, ast.Add(), terms.constant(0))
        if self.whole.arrays and not self.whole.tensors and not base.has("list", "tuple", "dict"):
            return self.helper("_copied", place)
        return place

    def _keep_element(self, name: str, target: ast.Subscript, backs: list[Back]) -> None:
        """Keeps the old value of an element that is about to be assigned."""
        place = terms.copied(target)
        old: ast.expr = place
        kind = self.nodes.reader.kind(target.value)
        if kind.has("dict"):
            old = ast.Call(ast.Attribute(target.value, "get", ast.Load()), [terms.copied(target.slice)], [])
        else:
            old = self._own(place, kind)
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
        if (target is not None or self.is_function(call.func)) and self.nodes.reader.value(call):
            root = self.nodes.node(call)
            if root.sort == "call" and self._has_effects(root):
                return self._called_for_effect(node, root)
        if target is not None:
            changed = {
                root_of(each) or ""
                for param, each in bound(target, call)
                if target.kind(param).has("changed")
            }
            self.unseen[id(call)] = changed
        self.forward.append(self._plain_statement(node))
        return nothing

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
                return nothing
            held = self.function.temporary()
            return self._pop(ast.copy_location(terms.assign(held, call), node), held, call)
        if not call.args:
            self.forward.append(node)
            return nothing
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
            if not present and not undone:
                self.resized.add(name)
            part = ast.Slice(terms.name(size), None, None) if size else None
            if present:
                place = self.place(terms.copied(owner)) or terms.name(self.bar(name))
                held = self.function.fresh(f"{name}_bar")
                if part is not None:
                    tail = ast.Subscript(place, part, ast.Load())
                    self.emit(terms.assign(held, tail), terms.assign(tail, ast.List([], ast.Load())))
                    bar = terms.name(held)
                elif root.active:
                    self.emit(terms.assign(held, self._popped(place, call)))
                    bar = terms.name(held)
                else:
                    self.emit(ast.Expr(self._popped(place, call)))
            if undone:
                if part is not None:
                    tail = ast.Subscript(terms.copied(owner), part, ast.Load())
                    self.emit(terms.assign(tail, ast.List([], ast.Load())))
                else:
                    self.emit(ast.Expr(self._popped(owner, call)))
            if bar is not None:
                self._send(root, bar, lines)

        return back

    def _popped(self, place: ast.expr, added: ast.Call) -> ast.expr:
        """What `append` or `insert` has added, taken away again."""
        at = [terms.copied(each) for each in added.args[:-1]]
        return ast.Call(ast.Attribute(terms.copied(place), "pop", ast.Load()), at, [])

    def _pop(self, node: ast.stmt, name: str, value: ast.expr) -> Back:
        """`x = xs.pop()`: on the way back x and its adjoint are appended, or inserted at the place given."""
        assert isinstance(value, ast.Call)
        assert isinstance(value.func, ast.Attribute)
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
            active = self.function.active(base)
            if active and (self.is_present(base) or name in self.present):
                self.start(base)
                place = self.place(terms.copied(owner)) or terms.name(self.bar(base))
                bar = terms.name(self.bar(name)) if name in self.present else self.zero(name, known)
                self.emit(self._put_back(value, place, bar))
            if base not in self.contents:
                self.resized.add(base)
            else:
                self.emit(self._put_back(value, owner, terms.name(name)))
            self.present.discard(name)
            for each in backs:
                each()

        return back

    def _put_back(self, popped: ast.Call, place: ast.expr, value: ast.expr) -> ast.stmt:
        """A value put back where a `pop` took it from."""
        assert isinstance(popped.func, ast.Attribute)
        kind = self.nodes.reader.kind(popped.func.value)
        place = terms.copied(place)
        if not popped.args:
            return ast.Expr(ast.Call(ast.Attribute(place, "append", ast.Load()), [value], []))
        index = terms.copied(popped.args[0])
        if kind.has("dict"):
            return terms.assign(ast.Subscript(place, index, ast.Load()), value)
        if not isinstance(index, ast.Constant):
            # The last one: no dict would have it so.
            return ast.Expr(ast.Call(ast.Attribute(place, "append", ast.Load()), [value], []))
        if kind.has("list"):
            return ast.Expr(ast.Call(ast.Attribute(place, "insert", ast.Load()), [index, value], []))
        return ast.Expr(self.helper("_put", place, index, value))
