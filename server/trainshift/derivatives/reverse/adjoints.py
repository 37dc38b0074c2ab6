"""Reverse mode within one statement: from the cotangent of its value to terms for the variables it reads
(AD32).

A call of a function of the file returns a pullback next to its value (AD36).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.indices import Indices
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.side_effects import asks, changed_by_call
from trainshift.derivatives.reverse.passes import Passes
from trainshift.derivatives.tables import templates
from trainshift.derivatives.writing.writer import Writer
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.terms import rebuilt, rebuilt_arguments

Term = tuple[ast.expr, bool]


class Pull(Writer):
    """Split expressions: `ahead` returns their text in the primal pass, `send` emits the adjoint pass.

    `present` are the variables whose adjoint has been started, `handed` the arguments of calls with a
    pullback, without numbers.
    """

    def __init__(self, function: Function, passes: Passes) -> None:
        super().__init__(function)
        self.passes = passes
        self.indices = Indices(self.nodes.reader)
        self.present: set[str] = set()
        self.bars: dict[str, str] = {}
        self.terms: dict[str, list[Term]] = {}
        self.held_terms: dict[str, list[Term]] = {}
        self.waiting: set[str] = set()
        self.handed: set[str] = set()
        self.pullbacks: dict[int, str] = {}
        """The names of pullbacks by the identity of the call's node."""
        # Containers that are as long as they were later, and those whose length was read in between.
        self.resized: set[str] = set()
        self.lengths: set[str] = set()
        # Containers whose adjoints follow, so that only their other names must ask.
        self.followed: set[str] = set()
        self.consumed: set[str] = set()

    def bar(self, name: str) -> str:
        """The name of a variable's adjoint."""
        owner = self.function.owner(name)
        if owner is not None and owner is not self.function:
            return self.whole.outer_bar(owner, name)
        if owner is self.function and (owner, name) in self.whole.captured_bars:
            return self.whole.outer_bar(owner, name)
        if name not in self.bars:
            self.bars[name] = self.function.fresh(f"{name}_bar")
        return self.bars[name]

    def foreign(self, name: str) -> bool:
        """Return whether a variable's adjoint lives elsewhere, or an inner function adds to it: it always
        exists.
        """
        owner = self.function.owner(name)
        return owner is not self.function or (owner, name) in self.whole.captured_bars

    def is_present(self, name: str) -> bool:
        """Return whether the adjoint of a variable has been started."""
        return name in self.present or self.foreign(name)

    def boxlike(self, name: str) -> bool:
        """Return whether a variable's adjoint is added to element by element."""
        kind = self.function.kind(name)
        return kind.container

    def zero(self, name: str, defined: bool = True) -> ast.expr:
        """The adjoint of a variable on which nothing depends."""
        kind = self.function.kind(name)
        if not defined or (kind.numeric and self.nodes.settled(terms.name(name))):
            return terms.constant(0.0)
        if kind.numeric:
            return self.helper("_zeros", terms.name(name))
        return self.helper("_zeros" if self.exact(name) else "_cells", terms.name(name))

    def exact(self, name: str) -> bool:
        """Return whether a variable holds nodes of a linked structure, which are unpacked and rebuilt as
        tuples.
        """
        return self.function.kind(name).has("linked")

    def ahead(self, node: Node, lines: list[tuple[str, Node]], top: bool = False) -> ast.expr:
        """The expression of the primal pass, with names for the values that the adjoint pass reads (AD40)."""
        if node.sort == "call":
            return self.called(node, lines)
        made = self.combined(node, lambda child: self.ahead(child, lines))
        if node.needed and not top:
            node.held = self.function.temporary()
            lines.append((node.held, node))
            self.passes.hold(node.held, made)
            return terms.name(node.held)
        return made

    def named(self, bar: ast.expr, base: str) -> ast.expr:
        """A cotangent that is used more than once, as a name."""
        if isinstance(bar, ast.Name | ast.Constant):
            return bar
        held = self.function.fresh(f"{base}_bar")
        self.passes.emit(terms.assign(held, terms.simplified(bar)))
        return terms.name(held)

    def push(self, node: Node, bar: ast.expr, pending: bool = False) -> None:
        """Hands a cotangent to an operation."""
        if not node.active:
            return
        if node.held is not None and node.held in self.waiting:
            self.held_terms.setdefault(node.held, []).append((bar, pending))
            return
        self.through(node, bar, pending)

    def through(self, node: Node, bar: ast.expr, pending: bool) -> None:
        """Hands a cotangent through an operation to its operands."""
        match node.sort:
            case "name":
                assert isinstance(node.expr, ast.Name)
                self.terms.setdefault(node.expr.id, []).append((bar, pending))
            case "row":
                self._row(node, bar, pending)
            case "item":
                self._item(node, bar, pending)
            case "display":
                self._display(node, bar)
            case "joined":
                self._joined(node, bar)
            case "repeated":
                self._repeated(node, bar)

    def _row(self, node: Node, bar: ast.expr, pending: bool) -> None:
        row = node.row
        assert row is not None
        active = [(param, child) for param, child in node.params if child.active and param in row.reverse]
        if pending and not row.elementwise:
            bar = self.helper("_unbroadcast", bar, self.value(node))
            pending = False
        if len(active) > 1 or not row.elementwise:
            uses = sum(_count(row.reverse[param]) for param, _ in active)
            if uses > 1:
                bar = self.named(bar, node.held or "t")
        values = self.operands(node, row)
        for param, child in active:
            template = row.reverse[param]
            self.use(template)
            made = terms.simplified(templates.filled(template, {**values, "d": bar}, row.defaults))
            self.push(child, made, pending or child.pending if row.elementwise else False)

    def _item(self, node: Node, bar: ast.expr, pending: bool) -> None:
        """Add an element's cotangent to the adjoint of its variable, or to a new adjoint for
        another value.
        """
        base = node
        while base.sort == "item":
            base = base.params[0][1]
        if base.held is None:
            self.add_at(node.expr, bar, pending)
            return
        held = self.function.fresh(f"{base.held}_bar")
        self.passes.emit(terms.assign(held, self.helper("_cells", terms.name(base.held))))
        place = rebuilt(node.expr, {id(base.expr): terms.name(held)})
        assert isinstance(place, ast.Subscript)
        if pending:
            value = rebuilt(node.expr, {id(base.expr): terms.name(base.held)})
            bar = self.helper("_unbroadcast", bar, value)
        if isinstance(place.value, ast.Name):
            call = self.helper("_add_at", place.value, as_value(place.slice), bar)
            self.passes.emit(terms.assign(place.value, call))
        else:
            self._add_to(place, node.expr, bar)
        self.push(base, terms.name(held))

    def _display(self, node: Node, bar: ast.expr) -> None:
        children = [child for _, child in node.params]
        written = terms.entries(node.expr)
        if written is not None:
            bar = self.named(bar, "t")
            for (key, _), child in zip(written, children, strict=True):
                self.push(child, terms.item(bar, key))
            return
        if isinstance(bar, ast.Tuple) and len(bar.elts) == len(children):
            for child, each in zip(children, bar.elts, strict=True):
                # A value that is never read has no adjoint, or an empty one of its structure.
                if child.sort == "name" or not terms.is_number(each, 0):
                    self.push(child, each)
            return
        if not any(child.active for child in children):
            return
        targets: list[ast.expr] = []
        after: list[tuple[Node, str]] = []
        for child in children:
            if not child.active:
                targets.append(terms.name("_"))
                continue
            held = self._taken(child)
            if held is None:
                base = child.expr.id if isinstance(child.expr, ast.Name) else "t"
                held = self.function.fresh(f"{base}_bar")
                after.append((child, held))
            targets.append(terms.name(held))
        self.passes.emit(terms.assign(terms.display(targets), bar))
        for child, held in after:
            self.push(child, terms.name(held))

    def _taken(self, node: Node) -> str | None:
        """The adjoint that can be started by the same assignment that computes it."""
        if node.sort != "name" or node.pending:
            return None
        assert isinstance(node.expr, ast.Name)
        name = node.expr.id
        if self.is_present(name) or self.boxlike(name) or name in self.consumed or name in self.terms:
            return None
        self.present.add(name)
        return self.bar(name)

    def _joined(self, node: Node, bar: ast.expr) -> None:
        bar = self.named(bar, "t")
        (_, one), (_, other) = node.params
        size = terms.call("len", self.value(one))
        self.push(one, ast.Subscript(terms.copied(bar), ast.Slice(None, size, None), ast.Load()))
        self.push(other, ast.Subscript(terms.copied(bar), ast.Slice(size, None, None), ast.Load()))

    def _repeated(self, node: Node, bar: ast.expr) -> None:
        one = node.params[0][1]
        if not self.nodes.written(one):
            self.push(one, self.helper("_folded", bar, self.value(one)))
        else:
            bar = self.named(bar, "t")
            size = len(one.params)
            for place, (_, child) in enumerate(one.params):
                part = ast.Slice(terms.constant(place), None, terms.constant(size))
                self.push(child, terms.call("sum", ast.Subscript(terms.copied(bar), part, ast.Load())))

    def path(self, expr: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
        """The variable that contains an element, and the indices that lead to it."""
        indices: list[ast.expr] = []
        while True:
            if isinstance(expr, ast.Subscript):
                indices.insert(0, expr.slice)
                expr = expr.value
            elif (
                isinstance(expr, ast.Call)
                and isinstance(expr.func, ast.Attribute)
                and expr.func.attr in ("get", "pop", "setdefault")
            ):
                indices.insert(0, expr.args[0])
                expr = expr.func.value
            else:
                return expr, indices

    def start(self, name: str) -> str:
        """The adjoint of a container, started if necessary."""
        if not self.is_present(name):
            self.present.add(name)
            self.ask_length(name)
            self.passes.emit(terms.assign(self.bar(name), self.zero(name)))
        return self.bar(name)

    def ask_length(self, name: str) -> None:
        """Record that the adjoint pass needs the length of a container, which may have changed there."""
        aliases = self.whole.aliases(self.function)
        resized = self.resized | (self.followed - {name})
        if resized and resized & aliases.with_names({name}):
            self.lengths.add(name)

    def place(self, expr: ast.expr) -> ast.expr | None:
        """The place of an element's adjoint; None if nothing there is active."""
        root, indices = self.path(expr)
        if not isinstance(root, ast.Name):
            return None
        made: ast.expr = terms.name(self.start(root.id))
        for index in indices:
            made = ast.Subscript(made, self.plain(terms.copied(index)), ast.Load())
        return made

    def add_at(self, expr: ast.expr, bar: ast.expr, pending: bool) -> None:
        """Add to the adjoint of an element of a container (AD36)."""
        place = self.place(expr)
        if place is None:
            raise self.nodes.unknown(expr)
        if pending:
            bar = self.helper("_unbroadcast", bar, expr)
        assert isinstance(place, ast.Subscript)
        self._add_to(place, expr, bar)

    def _add_to(self, place: ast.Subscript, expr: ast.expr, bar: ast.expr) -> None:
        """Add to a place of an adjoint, which belongs to an element.

        In `x[index][0]`, `x[index]` may be a copy, and contain an element of `x` twice: its adjoint is new,
        and is added to that of `x`.
        """
        owner = expr.value if isinstance(expr, ast.Subscript) else None
        whole, copied = place.value, owner is not None and self._copies(owner)
        if copied:
            held = terms.name(self.function.fresh("part_bar"))
            self.passes.emit(terms.assign(held, self.helper("_cells", whole)))
            place = ast.Subscript(held, place.slice, ast.Load())
        kind = self.nodes.reader.kind(expr)
        array = owner is not None and self.nodes.reader.kind(owner).has("array")
        if self.in_tensor(expr) or not self.is_one_place(place.slice, array):
            part = place.value
            self.passes.emit(terms.assign(part, self.helper("_add_at", part, as_value(place.slice), bar)))
        elif kind.numeric:
            self.passes.emit(terms.added(place, terms.simplified(bar)))
        elif kind.has("array"):
            self.passes.emit(terms.added(place, bar))
        else:
            self.passes.emit(terms.assign(place, self.helper("_add", place, bar)))
        if copied:
            assert isinstance(whole, ast.Subscript)
            assert owner is not None
            self._add_to(whole, owner, place.value)

    def _copies(self, expr: ast.expr) -> bool:
        """Return whether an element may be part of a copy that an array of indices made of an array."""
        while isinstance(expr, ast.Subscript):
            base = self.nodes.reader.kind(expr.value)
            listed = base.has("list", "tuple", "dict") and not base.has("array")
            if not listed and not self.is_one_place(expr.slice, True):
                return True
            expr = expr.value
        return False

    def in_tensor(self, expr: ast.expr) -> bool:
        """Return whether an element belongs to a tensor, which is never mutated."""
        base = self.nodes.reader.kind(expr.value) if isinstance(expr, ast.Subscript) else Kind()
        return self.whole.tensors and not base.has("list", "tuple", "dict")

    def is_one_place(self, index: ast.expr, array: bool) -> bool:
        """Return whether an index is one place, or a part of an array without repetitions."""
        if self.whole.tensors:
            return isinstance(index, ast.Constant) and isinstance(index.value, str)
        return array if isinstance(index, ast.Slice) else not self.nodes.open_indices(index)

    def flush(self) -> None:
        """Add the terms of a statement to the adjoints of variables."""
        last: list[tuple[str, ast.expr]] = []
        for name, found in self.terms.items():
            bar = self.total(found, terms.name(name))
            if name in self.consumed and (name not in self.present or self.foreign(name)):
                if self.whole.arrays and self.boxlike(name) and isinstance(bar, ast.Name | ast.Subscript):
                    # An object mutated later must not be shared.
                    bar = self.helper("_copied", bar)
                last.append((name, bar))
            else:
                self.add(name, bar)
        self.terms = {}
        moved = [(name, bar) for name, bar in last if not terms.same(bar, terms.name(self.bar(name)))]
        if len(moved) == 1:
            self.passes.emit(terms.assign(self.bar(moved[0][0]), moved[0][1]))
        elif moved:
            targets = terms.display([terms.name(self.bar(name)) for name, _ in moved])
            self.passes.emit(terms.assign(targets, terms.display([bar for _, bar in moved])))
        self.present.update(name for name, _ in last if not self.foreign(name))
        for name in sorted(self.consumed):
            if self.foreign(name) and name not in [each for each, _ in last]:
                was_given = name in self.function.params
                self.passes.emit(terms.assign(self.bar(name), self.zero(name, was_given)))
        self.consumed = set()

    def total(self, found: Sequence[Term], value: ast.expr) -> ast.expr:
        """Sum a bar over the axes along which its value was broadcast (AD38)."""
        kind = self.nodes.reader.kind(value)
        container = kind.container and not kind.has("array")
        if isinstance(value, ast.Name) and value.id in self.function.written:
            # A value that is only passed on may be a container, too.
            container = container or not kind.has("number", "scalar", "array")
        container = container or any(isinstance(term, ast.List | ast.ListComp) for term, _ in found)

        def joined(one: ast.expr, other: ast.expr) -> ast.expr:
            return self.helper("_add", one, other) if container else terms.summed(one, other)

        groups: dict[str, tuple[ast.expr, bool]] = {}
        for term, wide in found:
            # Terms of one cotangent have one shape; only these may be added before they are reduced to it.
            key = source_of(term) if wide else ""
            bar = terms.simplified(term)
            if key in groups:
                bar = joined(groups[key][0], bar)
            groups[key] = (terms.simplified(bar), wide)
        parts = [self.helper("_unbroadcast", bar, value) if wide else bar for bar, wide in groups.values()]
        whole = parts[0]
        for part in parts[1:]:
            whole = joined(whole, part)
        return whole

    def add(self, name: str, bar: ast.expr) -> None:
        """Add a cotangent to the adjoint of a variable."""
        kind = self.function.kind(name)
        own = terms.name(self.bar(name))
        if not self.is_present(name):
            if not kind.has("box", "changed"):
                self.present.add(name)
                self.passes.emit(terms.assign(own, bar))
                return
            self.start(name)
        if isinstance(bar, ast.List | ast.ListComp):
            self.passes.emit(terms.assign(own, self.helper("_add", own, bar)))
        elif kind.numeric:
            if self.nodes.settled(terms.name(name)):
                self.passes.emit(terms.added(own, bar))
            else:
                self.passes.emit(terms.assign(own, terms.summed(own, bar)))
        elif kind.has("number") and kind.has("array") and not kind.has("list", "tuple", "dict"):
            self.passes.emit(terms.assign(own, terms.summed(own, bar)))
        else:
            self.passes.emit(terms.assign(own, self.helper("_add", own, bar)))

    def sources(self, expr: ast.expr) -> set[str]:
        """The variables whose value, or a part of it, may be in that of an expression."""
        aliases = self.whole.aliases(self.function)
        return aliases.sources(expr)

    def must(self, root: Node) -> bool:
        """Return whether a call needs an adjoint pass even if nothing depends on its result."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.sort == "call" and self.has_effects(node):
                return True
            waiting.extend(child for _, child in node.params)
        return False

    def has_effects(self, node: Node) -> bool:
        target = node.target
        return target is None or target.gives_functions or target.acts or asks(target)

    def _undoes_its_value(self, called: Function) -> bool:
        """Return whether a pullback undoes mutations of its call's result, so that reads of it must come
        before.
        """
        aliases = self.whole.aliases(called)
        return bool(aliases.with_names({called.result}) & aliases.changed)

    def _undone_by(self, node: Node) -> set[str]:
        """The variables that show a call's mutations, which its pullback undoes."""
        assert isinstance(node.expr, ast.Call)
        changed = changed_by_call(self.nodes.reader, node.expr)
        aliases = self.whole.aliases(self.function)
        return aliases.showing(changed)

    def asks_for_value(self, node: Node) -> bool:
        """Return whether a pullback needs a cotangent in the structure of the call's result, even if it
        is zero.
        """
        return any(each.value.container or each.value.has("array") for each in self._called(node))

    def _called(self, node: Node) -> list[Function]:
        """The functions that a call may run."""
        assert isinstance(node.expr, ast.Call)
        return [node.target] if node.target is not None else self.nodes.reader.possible(node.expr)

    def called(self, node: Node, lines: list[tuple[str, Node]]) -> ast.expr:
        """Move a call in an expression to a line of its own: `t1, t1_pullback = g_vjp(...)`."""
        held = self.function.temporary()
        made = self.call_line(node, lines, held)
        node.held = held
        lines.append((held, node))
        self.function.local.add(held)
        after = self.passes.keep(held, fresh=True)
        pullback = self.pullbacks[id(node)]
        last = self.passes.keep(pullback, fresh=True)
        self.passes.forward.append(self.with_pullback(held, node, made))
        after()
        last()
        return terms.name(held)

    def with_pullback(self, target: str | ast.expr, node: Node, made: ast.expr) -> ast.stmt:
        """The assignment of a call's value and pullback, which the call that `call_line` wrote returns."""
        value = terms.name(target) if isinstance(target, str) else target
        return terms.assign(terms.display([value, terms.name(self.pullbacks[id(node)])]), made)

    def call_line(self, node: Node, lines: list[tuple[str, Node]], base: str) -> ast.expr:
        """The call of the function that returns the value and the pullback."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        pullback = self.function.fresh(f"{base}_pullback")
        self.pullbacks[id(node)] = pullback
        # Its pullback reads its arguments.
        for _, child in node.params:
            if not self.nodes.certain(child.expr):
                self.handed |= self.sources(child.expr)
        new: dict[int, ast.expr] = {}
        for param, child in node.params:
            if self.is_function(child.expr):
                new[id(child.expr)] = self.as_function(child.expr)
                continue
            made = self.ahead(child, lines)
            carried = node.target is not None and param in self.whole.signature(node.target)[1]
            place = child.sort == "name" or (
                child.sort == "item" and isinstance(self.path(child.expr)[0], ast.Name)
            )
            if carried and node.target is not None and self._is_changed_copy(child, node.target.kind(param)):
                place = False
            if carried and not place:
                if not isinstance(made, ast.Name):
                    held = self.function.temporary()
                    self.passes.hold(held, made)
                    made = terms.name(held)
                    if child.active:
                        lines.append((held, child))
                    child.held = held
                elif child.held is None and child.sort == "still":
                    child.held = made.id
            if made is not child.expr:
                new[id(child.expr)] = made
        arguments, keywords = rebuilt_arguments(expr, new)
        return ast.Call(self.made_function(node), arguments, keywords)

    def _call_back(self, node: Node, bar: ast.expr | None) -> None:
        """The call of a pullback, its results added to the adjoints of the arguments."""
        target = node.target
        given = dict(node.params)
        if target is not None:
            params, carried = self.whole.signature(target)
        else:
            params = [param for param in given if not self.is_function(given[param].expr)]
            carried = set()
        arguments: list[ast.expr] = []
        called = self._called(node)
        if not any(each.value.has("function") for each in called):
            arguments.append(self._unused_value(node) if bar is None else bar)
        results: list[ast.expr] = []
        after: list[tuple[Node, str]] = []
        # An argument passed twice, or also captured, gets a separate adjoint.
        taken_up: list[ast.expr] = [terms.name(name) for each in called for _, name in each.reached]
        altered = self.whole.summary(target).changed if target is not None else frozenset()
        taken_up += [given[each].expr for each in carried & set(given) & altered]
        placed: list[ast.expr] = []
        for param in params:
            child = given.get(param)
            if child is None or not child.active:
                if param in carried:
                    arguments.append(self._empty_for(child, target, param))
                results.append(terms.name("_"))
                continue
            if param in carried:
                others = placed if param in altered else taken_up
                place = self._handed_over(child, others, target, param)
                if place is None:
                    held = self._bar_of(child)
                    arguments.append(self._made_for(child))
                    results.append(terms.name(held))
                    after.append((child, held))
                else:
                    # Only what has no adjoint of its own keeps others from theirs.
                    taken_up.append(child.expr)
                    placed.append(child.expr)
                    arguments.append(place)
                    results.append(place)
                continue
            taken = self._taken(child) if child.held is None else None
            if taken is None:
                taken = self._bar_for(child)
                after.append((child, taken))
            results.append(terms.name(taken))
        call = terms.call(self.pullbacks[id(node)], *arguments)
        self._before_pullback(node, called)
        unused = all(isinstance(each, ast.Name) and each.id == "_" for each in results)
        self.passes.emit(ast.Expr(call) if unused else terms.assign(terms.display(results), call))
        for child, held in after:
            self._received(child, terms.name(held))

    def _received(self, child: Node, bar: ast.expr) -> None:
        """Add a pullback's result to a variable's adjoint at once, if nothing else waits for it."""
        if child.sort == "name" and not child.pending and isinstance(child.expr, ast.Name):
            if child.expr.id not in self.consumed and child.expr.id not in self.terms:
                self.add(child.expr.id, bar)
                return
        self.push(child, bar, child.pending)

    def _unused_value(self, node: Node) -> ast.expr:
        """The adjoint of a call's value on which nothing depends."""
        if self.asks_for_value(node) and self.value(node) is not node.expr:
            return self.helper("_cells", self.value(node))
        return terms.constant(0.0)

    def _bar_of(self, child: Node) -> str:
        """A new name for the adjoint of an argument that a pullback adds to."""
        return self.function.fresh(f"{child.held or root_of(child.expr) or ''}_bar")

    def _bar_for(self, child: Node) -> str:
        """A new name for a pullback's result for an argument."""
        base = child.expr.id if isinstance(child.expr, ast.Name) else child.held or "t"
        return self.function.fresh(f"{base}_bar")

    def _empty_for(self, child: Node | None, target: Function | None, param: str) -> ast.expr:
        """A zero adjoint for a pullback that requires one."""
        if child is None and target is not None and target.fills(param):
            return terms.constant(None)
        return self.helper("_cells", terms.constant(0.0) if child is None else self.value(child))

    def _handed_over(
        self, child: Node, others: Sequence[ast.expr], target: Function | None, param: str
    ) -> ast.expr | None:
        """The adjoint of an argument, to which a pullback adds; None if it gets a separate one.

        `others` are the other places that the call uses.
        """
        place: ast.expr | None = None
        if target is not None and self._is_changed_copy(child, target.kind(param)):
            return None
        if child.sort == "item" and self._copies(child.expr):
            if target is None or not target.kind(param).changes:
                return None
        if child.sort == "name":
            assert isinstance(child.expr, ast.Name)
            place = terms.name(self.start(child.expr.id))
        elif child.sort == "item" and not self.in_tensor(child.expr):
            place = self.place(child.expr)
        return place if all(_apart(child.expr, each) for each in others) else None

    def _is_changed_copy(self, child: Node, kind: Kind) -> bool:
        """Return whether an argument that the call mutates, as a parameter of a kind, is a slice of a list,
        or what an array of indices picks.

        It is a copy: its contents after the call have an adjoint of their own.
        """
        expr = child.expr
        if child.sort == "item" and self.indices.in_copy(expr):
            return kind.has("changed")
        if child.sort != "item" or not (
            isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Slice)
        ):
            return False
        base = self.nodes.reader.kind(expr.value)
        if base.has("array") or (self.whole.arrays and not base.has("list", "tuple")):
            return False
        if kind.has("changed") and any(each.has("changed") for each in kind.with_elements() - {kind.found()}):
            said = f"{ast.unparse(expr)} is changed, and so is an object inside it: change only one of them"
            raise self.nodes.refused(expr, said)
        return kind.has("changed")

    def _made_for(self, child: Node) -> ast.expr:
        """A new adjoint for an argument, with the sum so far."""
        found = self.held_terms.pop(child.held or "", None)
        start = self.helper("_cells", self.value(child))
        return self.helper("_add", start, self.total(found, self.value(child))) if found else start

    def _before_pullback(self, node: Node, called: Sequence[Function]) -> None:
        """Finish the reads of values that the pullback of a call undoes."""
        undone = self._undone_by(node)
        undoes_value = any(map(self._undoes_its_value, called))
        for each in (self.terms, self.held_terms):
            for name, found in each.items():
                found[:] = [
                    (
                        self.named(term, name) if undoes_value or terms.names_read(term) & undone else term,
                        pending,
                    )
                    for term, pending in found
                ]
        # Values read after the call are processed before it in the reverse pass.
        for name in sorted(undone & set(self.terms) - self.consumed):
            self.add(name, self.total(self.terms.pop(name), terms.name(name)))

    def send(
        self, root: Node, bar: ast.expr | None, lines: list[tuple[str, Node]], pending: bool = False
    ) -> None:
        """Emit the adjoint pass of the lines into which one statement was split, from last to first."""
        own = id(root) in self.pullbacks and all(node is not root for _, node in lines)
        self.waiting = {held for held, _ in lines}
        self.held_terms = {}
        if own:
            self._call_back(root, bar)
        elif bar is not None:
            if root.held in self.waiting:
                self.held_terms[root.held] = [(bar, pending)]
            else:
                self.through(root, bar, pending)
        for held, node in reversed(lines):
            self.waiting.discard(held)
            found = self.held_terms.pop(held, None)
            if id(node) in self.pullbacks:
                total = self.total(found, terms.name(held)) if found else None
                if total is not None or self.has_effects(node):
                    self._call_back(node, total)
            elif found and node.active:
                self._line_back(held, node, found)
        self.flush()

    def pulls(self, root: Node, lines: list[tuple[str, Node]]) -> bool:
        """Return whether the adjoint pass of a statement calls pullbacks, which may add to captured
        variables' adjoints.
        """
        return any(id(each) in self.pullbacks for each in (root, *(node for _, node in lines)))

    def _line_back(self, held: str, node: Node, found: list[tuple[ast.expr, bool]]) -> None:
        elementwise = node.row is not None and node.row.elementwise
        pending = any(wide for _, wide in found)
        if pending and elementwise and len({source_of(bar) for bar, _ in found}) == 1:
            total = self.total([(bar, False) for bar, _ in found], terms.name(held))
        else:
            total = self.total(found, terms.name(held))
            pending, was = False, pending
            if was:
                total = self.named(total, held)
        active = sum(child.active for _, child in node.params)
        if active > 1 and not isinstance(total, ast.Name):
            total = self.named(total, held)
        self.through(node, total, pending)

    def anew(self, name: str) -> bool:
        """Return whether a variable with elements may have had a previous value with an adjoint of
        its own.
        """
        had = (
            name in self.passes.maybe
            or self.passes.depth > 0
            or self.function.owner(name) is not self.function
        )
        return had and self.boxlike(name)

    def taken_out(self, name: str) -> str:
        """The adjoint of an assigned variable, under another name: later additions belong to the previous
        value.
        """
        held = self.function.fresh(self.bar(name))
        self.passes.emit(terms.assign(held, terms.name(self.bar(name))))
        self.ask_length(name)
        self.passes.emit(terms.assign(self.bar(name), self.zero(name)))
        return held

    def add_parts(self, target: ast.expr, expr: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for place, each in enumerate(target.elts):
                self.add_parts(each, ast.Subscript(terms.copied(expr), terms.constant(place), ast.Load()))
        elif isinstance(target, ast.Name) and self.function.active(target.id) and self.is_present(target.id):
            bar = self.taken_out(target.id) if self.foreign(target.id) else self.bar(target.id)
            self.present.discard(target.id)
            self.add_at(expr, terms.name(bar), False)


def source_of(term: ast.expr) -> str:
    """The cotangent that a term begins with."""
    while isinstance(term, ast.BinOp | ast.UnaryOp):
        if isinstance(term, ast.BinOp) and not isinstance(term.op, ast.Mult | ast.Div):
            break
        term = term.left if isinstance(term, ast.BinOp) else term.operand
    return ast.dump(term)


def as_value(index: ast.expr) -> ast.expr:
    """An index as an argument of a function."""
    match index:
        case ast.Slice(lower, upper, step):
            return terms.call("slice", *(each or terms.constant(None) for each in (lower, upper, step)))
        case ast.Tuple():
            return terms.display([as_value(each) for each in index.elts])
    return index


@lru_cache(1024)
def _count(template: str) -> int:
    return sum(isinstance(each, ast.Name) and each.id == "d" for each in terms.walk(ast.parse(template)))


def _apart(one: ast.expr, other: ast.expr) -> bool:
    """Return whether two places are certainly different: of different variables, or with different keys."""
    if root_of(one) != root_of(other):
        return True
    match one, other:
        case ast.Subscript(value, ast.Constant(key)), ast.Subscript(another, ast.Constant(its)):
            return terms.same(value, another) and key != its
    return False
