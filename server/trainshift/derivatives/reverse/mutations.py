"""Reversal of mutations: the primal pass saves lost values, the adjoint pass restores them (AD37)."""

from __future__ import annotations

import ast
import builtins

from trainshift.derivatives.reading.function import bound, root_of
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.reader import CHANGING
from trainshift.derivatives.reverse.adjoints import Pull, as_value
from trainshift.derivatives.reverse.passes import Back, Passes, line_of, nothing
from trainshift.derivatives.writing.writer import with_last
from trainshift.python.rewrite import terms


class Changes:
    """Unpacking, stores, and methods that change a list or dict.

    `unseen` are the variables that calls without a pullback may mutate, by the identity of the call.
    """

    def __init__(self, pull: Pull, passes: Passes) -> None:
        self.pull = pull
        self.passes = passes
        self.function = pull.function
        self.whole = pull.whole
        self.nodes = pull.nodes
        self.unseen: dict[int, set[str]] = {}

    def unpack(self, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr) -> Back:
        names = [each.id for each in terms.leaves(target) if isinstance(each, ast.Name)]
        active = [each for each in names if self.function.active(each)]
        root = self.nodes.marked(value, bool(active))
        lines: list[tuple[str, Node]] = []
        backs: list[Back] = []
        direct = root.sort == "call"
        made = (
            self.pull.call_line(root, lines, self.function.temporary())
            if direct
            else self.pull.ahead(root, lines)
        )
        anew = {each for each in active if self.pull.anew(each)}
        after = [self.passes.keep(each, backs=backs) for each in names]
        if direct:
            self.passes.forward.append(ast.copy_location(self.pull.with_pullback(target, root, made), node))
        else:
            self.passes.forward.append(line_of(node, target, value, made, None))
        for each in after:
            each()
        if direct:
            self.passes.keep(self.pull.pullbacks[id(root)], fresh=True)()
        own = {each for each in active if each in terms.names_read(value) and self.pull.boxlike(each)}
        part = isinstance(getattr(root.expr, "slice", None), ast.Slice)
        copied = part and not self.nodes.reader.kind(root.expr).has("array")
        if root.sort in ("name", "item") and active and not own and not copied:
            if (placed := self._unpack_place(node, target, root, backs, active)) is not None:
                return placed
        defined = set(self.passes.defined)

        def back() -> None:
            asked = bool(active) and (any(map(self.pull.is_present, active)) or self.pull.must(root))
            for name in active if asked else ():
                if self.pull.boxlike(name):
                    # In the structure of the value, which only this variable still has.
                    self.pull.start(name)
            for each in backs:
                each()
            if not asked:
                return
            pulls = self.pull.pulls(root, lines)
            taken = {each for each in active if self.pull.foreign(each) and (pulls or each in anew)}
            held = {each: terms.name(self.pull.taken_out(each)) for each in sorted(taken)}
            for name in sorted(own - taken):
                # Later additions go to the adjoint of the previous value.
                if self.pull.is_present(name):
                    held[name] = terms.name(self.function.fresh(self.pull.bar(name)))
                    self.passes.emit(terms.assign(held[name].id, terms.name(self.pull.bar(name))))
            bar = self._bars(target, defined, held)
            if (
                isinstance(bar, ast.Tuple)
                and isinstance(root.expr, ast.Name)
                and not self.pull.exact(root.expr.id)
            ):
                bar = ast.List(bar.elts, ast.Load())
            self.pull.present -= set(active)
            self.pull.consumed = set(active) - taken
            self.pull.send(root, bar, lines)

        return back

    def _bars(self, target: ast.expr, defined: set[str], held: dict[str, ast.Name]) -> ast.expr:
        """The adjoints of an unpacked target, in its structure; `held` are those with another name."""
        if isinstance(target, ast.Tuple | ast.List):
            return terms.display([self._bars(each, defined, held) for each in target.elts])
        assert isinstance(target, ast.Name)
        if target.id in held:
            return held[target.id]
        if not self.function.active(target.id):
            return terms.constant(0.0)
        if self.pull.is_present(target.id):
            return terms.name(self.pull.bar(target.id))
        return self.pull.zero(target.id, target.id in defined)

    def _unpack_place(
        self, node: ast.stmt, target: ast.Tuple | ast.List, root: Node, backs: list[Back], active: list[str]
    ) -> Back | None:
        """Unpack a variable or an element: the unpacked object carries the adjoints of its parts (AD36).

        None if later statements also add to the adjoint of the whole.
        """
        expr = root.expr
        name = self.pull.path(expr)[0]
        base = name.id if isinstance(name, ast.Name) else ""
        flat = all(isinstance(each, ast.Name) for each in target.elts)
        linked = self.nodes.reader.kind(expr).has("linked")
        boxes = any(not self.function.kind(each).numeric for each in active)
        carry = (linked or boxes) and flat and base and all(self.passes.is_of_block(each) for each in active)
        carry = carry and (self.passes.depth > 0 or all(each not in self.function.params for each in active))
        if carry and self.passes.stays(expr):
            if self.passes.is_read_behind(base, node):
                return None
            self.passes.block.starts.append(lambda: self._take(target, expr))
            exact = linked and isinstance(expr, ast.Name)

            def put() -> None:
                for each in backs:
                    each()
                place = (
                    self.pull.place(expr)
                    if not isinstance(expr, ast.Name)
                    else terms.name(self.pull.start(base))
                )
                assert place is not None
                bars = terms.display(
                    [
                        terms.name(
                            self.pull.bar(each.id) if self.function.active(each.id) else f"{each.id}_bar"
                        )
                        for each in target.elts
                        if isinstance(each, ast.Name)
                    ]
                )
                self.pull.present -= set(active)
                if exact:
                    self.passes.emit(terms.assign(place, bars))
                else:
                    everything = ast.Slice(None, None, None)
                    self.passes.emit(terms.assign(ast.Subscript(place, everything, ast.Load()), bars))

            return put

        def back() -> None:
            for each in backs:
                each()
            self.pull.add_parts(target, expr)

        return back

    def _take(self, target: ast.Tuple | ast.List, expr: ast.expr) -> None:
        """Emit `left_bar, value_bar, right_bar = tree_bar` at the start of a block's adjoint pass."""
        place = (
            self.pull.place(expr) if not isinstance(expr, ast.Name) else terms.name(self.pull.start(expr.id))
        )
        assert place is not None
        bars: list[ast.expr] = []
        for each in target.elts:
            assert isinstance(each, ast.Name)
            if self.function.active(each.id):
                bars.append(terms.name(self.pull.bar(each.id)))
                self.pull.present.add(each.id)
            else:
                bars.append(terms.name(f"{each.id}_bar"))
        self.passes.emit(terms.assign(terms.display(bars), place))

    def store(
        self, node: ast.stmt, target: ast.Subscript, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        name = root_of(target)
        active = name is not None and self.function.active(name)
        root = self.nodes.marked(value, bool(active))
        lines: list[tuple[str, Node]] = []
        made = self.pull.ahead(root, lines)
        backs: list[Back] = []
        place = self._stored_at(target, value) if active or name in self.passes.contents else target
        if name is not None and name in self.passes.contents:
            self._keep_element(name, target, place, value, backs)
        self.passes.forward.append(line_of(node, target, value, made, augmented))

        def back() -> None:
            assert name is not None
            base, part = self.nodes.reader.kind(target.value), isinstance(target.slice, ast.Slice)
            inner = self.nodes.reader.kind(target).container and not base.has("array")
            if name not in self.passes.contents and (base.has("dict") or part or inner):
                # There may be an additional key, and other lengths.
                follows = active and self.pull.is_present(name) and not base.has("dict")
                (self.pull.followed if follows else self.pull.resized).add(name)
            if not active or not self.pull.is_present(name):
                for each in backs:
                    each()
                if self.pull.pulls(root, lines):
                    self.pull.send(root, None, lines)
                return
            slot = self.pull.place(place)
            assert slot is not None
            bar: ast.expr | None = None
            if root.active:
                held = self.function.fresh(f"{name}_bar")
                self.passes.emit(terms.assign(held, self._stored(slot, target, base)))
                bar = terms.name(held)
            for each in backs:
                each()
            self.passes.emit(terms.assign(slot, self._empty(place)))
            self.pull.send(root, bar, lines, self._spreads(target))

        return back

    def _stored(self, slot: ast.expr, target: ast.Subscript, base: Kind) -> ast.expr:
        """The adjoint of a stored value; the last one has that of an element that is stored several times."""
        listed = base.has("list", "tuple", "dict")
        if (
            not self.whole.arrays
            or self.whole.tensors
            or listed
            or not self.pull.indices.repeats(target.slice, self.nodes)
        ):
            return self._own(slot, base)
        assert isinstance(slot, ast.Subscript)
        return self.pull.helper("_stored", slot.value, as_value(slot.slice))

    def _spreads(self, target: ast.Subscript) -> bool:
        """Return whether a store may put one number into many places of an array."""
        base, element = self.nodes.reader.kind(target.value), self.nodes.reader.kind(target)
        if not self.whole.arrays or self.whole.tensors or base.has("list", "dict"):
            return False
        match target.slice:
            case ast.Tuple(elts):
                return any(isinstance(each, ast.Slice) or not self.nodes.settled(each) for each in elts)
            case ast.Slice() | ast.Constant(value=None) | ast.Constant(value=builtins.Ellipsis):
                return True
        rows = element.has("array") or (base.has("array") and element.container)
        return rows or not self.pull.is_one_place(target.slice, True)

    def _stored_at(self, target: ast.Subscript, value: ast.expr) -> ast.Subscript:
        """The place of an element after a store, because the store may change the length of a slice.

        The elements before and after the slice stay, so their numbers determine it.
        """
        place = terms.copied(target)
        assert isinstance(place, ast.Subscript)
        part, owner = place.slice, place.value
        if not isinstance(part, ast.Slice) or self._keeps_length(place, value):
            return place
        self.pull.lengths |= {root_of(owner) or ""}
        ahead, behind = self.function.temporary(), self.function.temporary()
        begin = ast.Slice(None, part.lower, None) if part.lower else ast.Slice(None, terms.constant(0), None)
        self.passes.hold(ahead, terms.call("len", ast.Subscript(owner, begin, ast.Load())))
        rest = ast.BinOp(terms.call("len", owner), ast.Sub(), terms.name(ahead))
        self.passes.hold(behind, ast.BinOp(rest, ast.Sub(), terms.call("len", place)))
        end = ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.USub(), terms.name(behind)), terms.constant(None)])
        return ast.Subscript(owner, ast.Slice(terms.name(ahead), end, None), ast.Load())

    def _keeps_length(self, target: ast.Subscript, value: ast.expr) -> bool:
        """Return whether a store keeps the length of a slice: in an array, with a step, or with a literal of
        equal length.
        """
        part = target.slice
        assert isinstance(part, ast.Slice)
        base = self.nodes.reader.kind(target.value)
        if base.has("array") or (self.whole.arrays and not base.has("list")):
            return True
        if part.step is not None and not terms.is_number(part.step, 1):
            return True
        start = part.lower or terms.constant(0)
        if part.upper is None:
            return terms.is_number(start, 0)
        match start, part.upper, value:
            case ast.Constant(int(first)), ast.Constant(int(last)), ast.List(elts) | ast.Tuple(elts):
                return len(elts) == last - first
        return False

    def _empty(self, place: ast.Subscript) -> ast.expr:
        """The adjoint of a restored element."""
        kind = self.nodes.reader.kind(place)
        base = self.nodes.reader.kind(place.value)
        if base.has("array") or (kind.numeric and not self.whole.arrays):
            return terms.constant(0.0)
        if not isinstance(place.slice, ast.Slice) and base.has("dict"):
            if not kind.container:
                return terms.constant(0.0)
            self.pull.lengths.add(root_of(place) or "")
            known = ast.Compare(terms.copied(place.slice), [ast.In()], [terms.copied(place.value)])
            return ast.IfExp(known, self.pull.helper("_cells", terms.copied(place)), terms.constant(0.0))
        # Its value has the same length as before only where mutations are undone.
        self.pull.lengths.add(root_of(place) or "")
        return self.pull.helper("_cells", terms.copied(place))

    def _own(self, place: ast.expr, base: Kind) -> ast.expr:
        """A copy of the element at a place of a container, because a part of an array is a view."""
        if base.has("array"):
            return ast.BinOp(place, ast.Add(), terms.constant(0))
        if self.whole.arrays and not self.whole.tensors and not base.has("list", "tuple", "dict"):
            return self.pull.helper("_copied", place)
        return place

    def _keep_element(
        self, name: str, target: ast.Subscript, place: ast.Subscript, value: ast.expr, backs: list[Back]
    ) -> None:
        """Save the old value of an element before its assignment; after that, the element is at `place`."""
        kind = self.nodes.reader.kind(target.value)
        added = kind.has("dict") and not any(terms.same(each, terms.copied(target)) for each in _parts(value))
        if added:
            arguments = [terms.copied(target.slice), terms.constant(...)]
            old: ast.expr = ast.Call(ast.Attribute(target.value, "get", ast.Load()), arguments, [])
        else:
            old = self._own(terms.copied(target), kind)
        held = self.function.fresh(f"{name}_old")
        back: ast.expr = terms.name(held)
        if self.passes.depth or self.function.parent is not None:
            self.passes.empty_stacks.append(held)
            self.passes.forward.append(ast.Expr(terms.call(f"{held}.append", old)))
            back = terms.call(f"{held}.pop")
        else:
            self.passes.forward.append(terms.assign(held, old))
        if added:
            backs.append(lambda: self._restore(place, back))
        else:
            backs.append(lambda: self.passes.emit(terms.assign(place, back)))

    def _restore(self, place: ast.Subscript, old: ast.expr) -> None:
        """Restore a dict's value at a key; remove the key if the old value is `...`."""
        if not isinstance(old, ast.Name):
            held = terms.name(self.function.temporary())
            self.passes.emit(terms.assign(held, old))
            old = held
        key = [terms.copied(place.slice)]
        popped = ast.Call(ast.Attribute(terms.copied(place.value), "pop", ast.Load()), key, [])
        nothing_there = ast.Compare(old, [ast.Is()], [terms.constant(...)])
        self.passes.emit(ast.If(nothing_there, [ast.Expr(popped)], [terms.assign(place, old)]))

    def called_alone(self, node: ast.Expr) -> Back:
        call = node.value
        assert isinstance(call, ast.Call)
        if isinstance(call.func, ast.Attribute) and self.nodes.function.dotted(call.func) is None:
            name = root_of(call.func.value)
            method = call.func.attr
            if name is not None and method in (*CHANGING, "pop"):
                return self._changed(node, call, name, method)
        target = self.nodes.reader.target(call)
        if self.pull.runs_code(call) and self.nodes.reader.value(call):
            root = self.nodes.node(call)
            if root.sort == "call" and self.pull.has_effects(root):
                return self._called_for_effect(node, root)
        if target is not None:
            changed = {
                root_of(each) or "" for param, each in bound(target, call) if target.kind(param).changes
            }
            self.unseen[id(call)] = changed
        self.passes.forward.append(self.pull.plain_statement(node))
        return nothing

    def _called_for_effect(self, node: ast.Expr, root: Node) -> Back:
        self.nodes.mark(root)
        lines: list[tuple[str, Node]] = []
        held = self.function.temporary()
        made = self.pull.call_line(root, lines, held)
        pullback = self.pull.pullbacks[id(root)]
        after = self.passes.keep(pullback, fresh=True)
        last = nothing
        if self.pull.asks_for_value(root):
            last = self.passes.keep(held, fresh=True)
            self.function.local.add(held)
            root.held = held
        line = self.pull.with_pullback(root.held or "_", root, made)
        self.passes.forward.append(ast.copy_location(line, node))
        after()
        last()
        return lambda: self.pull.send(root, None, lines)

    def _changed(self, node: ast.Expr, call: ast.Call, name: str, method: str) -> Back:
        """Handle `append`, `extend` and `pop`, each of which undoes another."""
        assert isinstance(call.func, ast.Attribute)
        owner = call.func.value
        active = self.function.active(name)
        undone = name in self.passes.contents
        lines: list[tuple[str, Node]] = []
        if method == "pop":
            if not active and not undone:
                self.passes.forward.append(node)
                return nothing
            held = self.function.temporary()
            return self.pop(ast.copy_location(terms.assign(held, call), node), held, call)
        if not call.args:
            self.passes.forward.append(node)
            return nothing
        argument = call.args[-1]
        root = self.nodes.marked(argument, active)
        made = self.pull.ahead(root, lines)
        size = ""
        if method in ("extend", "update"):
            size = self.function.temporary()
            self.passes.hold(size, terms.call("len", owner))
        self.passes.forward.append(with_last(node, made))

        def back() -> None:
            bar: ast.expr | None = None
            present = active and self.pull.is_present(name)
            if not undone:
                (self.pull.followed if present else self.pull.resized).add(name)
            part = ast.Slice(terms.name(size), None, None) if size else None
            if present:
                place = self.pull.place(terms.copied(owner)) or terms.name(self.pull.bar(name))
                held = self.function.fresh(f"{name}_bar")
                if part is not None:
                    tail = ast.Subscript(place, part, ast.Load())
                    self.passes.emit(terms.assign(held, tail), terms.assign(tail, ast.List([], ast.Load())))
                    bar = terms.name(held)
                elif root.active:
                    self.passes.emit(terms.assign(held, _taken_away(place, call)))
                    bar = terms.name(held)
                else:
                    self.passes.emit(ast.Expr(_taken_away(place, call)))
            if undone:
                if part is not None:
                    tail = ast.Subscript(terms.copied(owner), part, ast.Load())
                    self.passes.emit(terms.assign(tail, ast.List([], ast.Load())))
                else:
                    self.passes.emit(ast.Expr(_taken_away(owner, call)))
            if bar is not None or self.pull.pulls(root, lines):
                self.pull.send(root, bar, lines)

        return back

    def pop(self, node: ast.stmt, name: str, value: ast.expr) -> Back:
        """Reverse `x = xs.pop()`: x and its adjoint are appended, or inserted at the given place."""
        assert isinstance(value, ast.Call)
        assert isinstance(value.func, ast.Attribute)
        owner = value.func.value
        base = root_of(owner)
        assert base is not None
        backs: list[Back] = []
        self.function.local |= {name} - self.function.foreign
        keys = ""
        if base in self.passes.contents and not self._popped_of_list(value):
            keys = self.function.temporary()
            self.passes.hold(keys, terms.call("list", terms.copied(owner)))
        after = self.passes.keep(name, backs=backs, fresh=name not in self.passes.defined)
        self.passes.forward.append(node)
        after()
        known = name in self.passes.defined
        foreign = self.function.active(name) and self.pull.foreign(name)

        def back() -> None:
            active = self.function.active(base)
            if base not in self.passes.contents and self.pull.is_present(base):
                self.pull.followed.add(base)
            if active and (self.pull.is_present(base) or self.pull.is_present(name)):
                self.pull.start(base)
                place = self.pull.place(terms.copied(owner)) or terms.name(self.pull.bar(base))
                bar = (
                    terms.name(self.pull.bar(name))
                    if self.pull.is_present(name)
                    else self.pull.zero(name, known)
                )
                if foreign:
                    bar = terms.name(self.pull.taken_out(name))
                self.passes.emit(self._put_back(value, place, bar, None))
            elif foreign:
                self.pull.taken_out(name)
            if base not in self.passes.contents:
                self.pull.resized.add(base)
            else:
                self.passes.emit(self._put_back(value, owner, terms.name(name), keys))
            self.pull.present.discard(name)
            for each in backs:
                each()

        return back

    def _popped_of_list(self, popped: ast.Call) -> bool:
        """Return whether a `pop` certainly takes an element of a list, not of a dict."""
        assert isinstance(popped.func, ast.Attribute)
        kind = self.nodes.reader.kind(popped.func.value)
        if not popped.args or terms.is_number(popped.args[0], -1):
            # The last key: no dict keeps it otherwise.
            return True
        return kind.has("list") and not kind.has("dict")

    def _put_back(self, popped: ast.Call, place: ast.expr, value: ast.expr, keys: str | None) -> ast.stmt:
        """Put a value back where a `pop` took it; `keys` is the name of the dict's saved keys."""
        place = terms.copied(place)
        if not popped.args or terms.is_number(popped.args[0], -1):
            return ast.Expr(ast.Call(ast.Attribute(place, "append", ast.Load()), [value], []))
        index = terms.copied(popped.args[0])
        if self._popped_of_list(popped):
            return ast.Expr(ast.Call(ast.Attribute(place, "insert", ast.Load()), [index, value], []))
        assert isinstance(popped.func, ast.Attribute)
        if keys is None and self.nodes.reader.kind(popped.func.value).has("dict"):
            return terms.assign(ast.Subscript(place, index, ast.Load()), value)
        given = terms.name(keys) if keys else terms.display([])
        return ast.Expr(self.pull.helper("_put", place, index, value, given))


def _parts(value: ast.expr) -> list[ast.expr]:
    """The parts of a value that are always computed."""
    found = [value]
    for each in found:
        if isinstance(each, ast.BinOp):
            found += [each.left, each.right]
        elif isinstance(each, ast.UnaryOp):
            found.append(each.operand)
    return found


def _taken_away(place: ast.expr, added: ast.Call) -> ast.expr:
    """Remove the element that `append` or `insert` has added to a list."""
    at: list[ast.expr] = []
    for each in added.args[:-1]:
        if isinstance(each, ast.Name):
            at.append(terms.copied(each))
            continue
        number = ast.literal_eval(each)
        last = ast.BinOp(
            terms.call("len", terms.copied(place)), ast.Sub(), terms.constant(1 - min(number, 0))
        )
        # In a shorter list, it was appended at an end.
        end = ("max", terms.constant(0)) if number < 0 else ("min", terms.constant(number))
        at.append(terms.call(*end, last) if number else terms.copied(each))
    return ast.Call(ast.Attribute(terms.copied(place), "pop", ast.Load()), at, [])
