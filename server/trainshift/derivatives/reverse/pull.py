"""Reverse mode within one statement: from the cotangent of its value to terms of what it reads (AD32)."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.reading.kinds import Kind
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.tables import templates
from trainshift.derivatives.writer import Writer
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.terms import rebuilt

Term = tuple[ast.expr, bool]


class Pull(Writer):
    """Takes expressions apart: `ahead` gives their text on the way forward, `push` and `flush` the way back.

    `present` are the variables whose adjoint has been started, `out` the statements of the way back so far.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.present: set[str] = set()
        self.bars: dict[str, str] = {}
        self.terms: dict[str, list[Term]] = {}
        self.held_terms: dict[str, list[Term]] = {}
        # Containers that are as long as they were later, and those whose length has been asked for then.
        self.resized: set[str] = set()
        self.lengths: set[str] = set()
        # Those whose adjoints follow, so that only other names of theirs must ask.
        self.followed: set[str] = set()
        self.consumed: set[str] = set()

    # Names.

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
        """Whether a variable's adjoint lives elsewhere, or is added to by a function inside: it is always
        there."""
        owner = self.function.owner(name)
        return owner is not self.function or (owner, name) in self.whole.captured_bars

    def is_present(self, name: str) -> bool:
        """Whether the adjoint of a variable has been started."""
        return name in self.present or self.foreign(name)

    def boxlike(self, name: str) -> bool:
        """Whether a variable's adjoint is added to element by element."""
        kind = self.function.kind(name)
        return kind.container

    def emit(self, *statements: ast.stmt) -> None:
        """Adds statements to the way back."""
        self.out.extend(statements)

    def zero(self, name: str, defined: bool = True) -> ast.expr:
        """The adjoint of a variable on which nothing depends."""
        kind = self.function.kind(name)
        if not defined or (kind.numeric and self.nodes.settled(terms.name(name))):
            return terms.constant(0.0)
        if kind.numeric:
            return self.helper("_zeros", terms.name(name))
        return self.helper("_zeros" if self.exact(name) else "_cells", terms.name(name))

    def exact(self, name: str) -> bool:
        """Whether a variable holds nodes of a linked structure, which are unpacked and made anew as
        tuples."""
        return self.function.kind(name).has("linked")

    # The way forward.

    def ahead(self, node: Node, lines: list[tuple[str, Node]], top: bool = False) -> ast.expr:
        """The expression of the primal pass, with names for what the adjoint pass reads (AD40)."""
        new: dict[int, ast.expr] = {}
        if node.sort == "call":
            return self.called(node, lines)
        for _, child in node.params:
            made = self.ahead(child, lines)
            if made is not child.expr:
                new[id(child.expr)] = made
        made = rebuilt(node.expr, new) if node.params else self.plain(node.expr)
        if node.needed and not top:
            node.held = self.function.temporary()
            lines.append((node.held, node))
            self.hold(node.held, made)
            return terms.name(node.held)
        return made

    def hold(self, held: str, value: ast.expr) -> None:
        """Puts a line `held = value` into the way forward."""
        raise NotImplementedError

    def called(self, node: Node, lines: list[tuple[str, Node]]) -> ast.expr:
        """The text of a call of a function that has a pullback."""
        raise NotImplementedError

    # The way back.

    def named(self, bar: ast.expr, base: str) -> ast.expr:
        """A cotangent that is used more than once, by a name."""
        if isinstance(bar, ast.Name | ast.Constant):
            return bar
        held = self.function.fresh(f"{base}_bar")
        self.emit(terms.assign(held, terms.simplified(bar)))
        return terms.name(held)

    def push(self, node: Node, bar: ast.expr, pending: bool = False) -> None:
        """Hands a cotangent to an operation."""
        if not node.active:
            return
        if node.held is not None and node.held in self.waiting:
            self.held_terms.setdefault(node.held, []).append((bar, pending))
            return
        self.through(node, bar, pending)

    waiting: frozenset[str] | set[str] = frozenset()

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
        """An element of a variable goes to its adjoint; one of another value to an adjoint made for it."""
        base = node
        while base.sort == "item":
            base = base.params[0][1]
        if base.held is None:
            self.add_at(node.expr, bar, pending)
            return
        held = self.function.fresh(f"{base.held}_bar")
        self.emit(terms.assign(held, self.helper("_cells", terms.name(base.held))))
        place = rebuilt(node.expr, {id(base.expr): terms.name(held)})
        assert isinstance(place, ast.Subscript)
        if pending:
            value = rebuilt(node.expr, {id(base.expr): terms.name(base.held)})
            bar = self.helper("_unbroadcast", bar, value)
        if isinstance(place.value, ast.Name):
            call = self.helper("_add_at", place.value, as_value(place.slice), bar)
            self.emit(terms.assign(place.value, call))
        else:
            self.emit(terms.assign(place, self.helper("_add", place, bar)))
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
                # What nobody reads later has no adjoint: none in its structure, where it has elements.
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
        self.emit(terms.assign(terms.display(targets), bar))
        for child, held in after:
            self.push(child, terms.name(held))

    def _taken(self, node: Node) -> str | None:
        """The adjoint that can be started by the very assignment that brings it."""
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

    # Elements.

    def path(self, expr: ast.expr) -> tuple[ast.expr, list[ast.expr]]:
        """What an element is an element of, and the indices that lead to it."""
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
        """The adjoint of a container, started if it was not."""
        if not self.is_present(name):
            self.present.add(name)
            self.ask_length(name)
            self.emit(terms.assign(self.bar(name), self.zero(name)))
        return self.bar(name)

    def ask_length(self, name: str) -> None:
        """Notes that the way back asks how long a container is, which may be longer or shorter there."""
        aliases = self.whole.aliases(self.function)
        resized = self.resized | (self.followed - {name})
        if resized and resized & aliases.with_names({name}):
            self.lengths.add(name)

    def place(self, expr: ast.expr) -> ast.expr | None:
        """The place of the adjoint that belongs to an element: None, where nothing is active there."""
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
        kind = self.nodes.reader.kind(expr)
        base = self.nodes.reader.kind(expr.value) if isinstance(expr, ast.Subscript) else None
        index = place.slice
        if self.in_tensor(expr) or not self._simple(index, base is not None and base.has("array")):
            held = place.value
            self.emit(terms.assign(held, self.helper("_add_at", held, as_value(index), bar)))
        elif kind.numeric:
            self.emit(terms.added(place, terms.simplified(bar)))
        elif kind.has("array"):
            self.emit(terms.added(place, bar))
        else:
            self.emit(terms.assign(place, self.helper("_add", place, bar)))

    def in_tensor(self, expr: ast.expr) -> bool:
        """Whether an element is one of a tensor, which is never changed in place."""
        base = self.nodes.reader.kind(expr.value) if isinstance(expr, ast.Subscript) else Kind()
        return self.whole.tensors and not base.has("list", "tuple", "dict")

    def _simple(self, index: ast.expr, array: bool) -> bool:
        """Whether an index is one place, or a part of an array without repetitions."""
        if self.whole.tensors:
            return isinstance(index, ast.Constant) and isinstance(index.value, str)
        if isinstance(index, ast.Slice):
            return array
        if isinstance(index, ast.Tuple):
            return all(self._simple(each, True) for each in index.elts)
        if not self.whole.arrays:
            return True
        return isinstance(index, ast.Slice | ast.Constant) or self.nodes.settled(index)

    # The end of a statement.

    def flush(self) -> None:
        """Adds the terms that a statement gave to the adjoints of variables."""
        last: list[tuple[str, ast.expr]] = []
        for name, found in self.terms.items():
            bar = self.total(found, terms.name(name))
            if name in self.consumed and (name not in self.present or self.foreign(name)):
                if self.whole.arrays and self.boxlike(name) and isinstance(bar, ast.Name | ast.Subscript):
                    # What is changed in place later must be nobody else's.
                    bar = self.helper("_copied", bar)
                last.append((name, bar))
            else:
                self.add(name, bar)
        self.terms = {}
        moved = [(name, bar) for name, bar in last if not terms.same(bar, terms.name(self.bar(name)))]
        if len(moved) == 1:
            self.emit(terms.assign(self.bar(moved[0][0]), moved[0][1]))
        elif moved:
            targets = terms.display([terms.name(self.bar(name)) for name, _ in moved])
            self.emit(terms.assign(targets, terms.display([bar for _, bar in moved])))
        self.present.update(name for name, _ in last if not self.foreign(name))
        for name in sorted(self.consumed):
            if self.foreign(name) and name not in [each for each, _ in last]:
                was_given = name in self.function.params
                self.emit(terms.assign(self.bar(name), self.zero(name, was_given)))
        self.consumed = set()

    def total(self, found: Sequence[Term], value: ast.expr) -> ast.expr:
        """Sum a bar over the axes along which its value was broadcast (AD38)."""
        kind = self.nodes.reader.kind(value)
        container = kind.container and not kind.has("array")
        if isinstance(value, ast.Name) and value.id in self.function.written:
            # What is only handed on may be a container, too.
            container = container or not kind.has("number", "scalar", "array")
        container = container or any(isinstance(term, ast.List | ast.ListComp) for term, _ in found)

        def joined(one: ast.expr, other: ast.expr) -> ast.expr:
            return self.helper("_add", one, other) if container else terms.summed(one, other)

        groups: dict[str, tuple[ast.expr, bool]] = {}
        for term, wide in found:
            # Terms of one cotangent have one shape; only these may be summed before they are summed back.
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
        """Adds a cotangent to the adjoint of a variable."""
        kind = self.function.kind(name)
        own = terms.name(self.bar(name))
        if not self.is_present(name):
            if not kind.has("box", "changed"):
                self.present.add(name)
                self.emit(terms.assign(own, bar))
                return
            self.start(name)
        if isinstance(bar, ast.List | ast.ListComp):
            self.emit(terms.assign(own, self.helper("_add", own, bar)))
        elif kind.numeric:
            if self.nodes.settled(terms.name(name)):
                self.emit(terms.added(own, bar))
            else:
                self.emit(terms.assign(own, terms.summed(own, bar)))
        elif kind.has("number") and kind.has("array") and not kind.has("list", "tuple", "dict"):
            self.emit(terms.assign(own, terms.summed(own, bar)))
        else:
            self.emit(terms.assign(own, self.helper("_add", own, bar)))


def source_of(term: ast.expr) -> str:
    """The cotangent that a term begins with."""
    while isinstance(term, ast.BinOp | ast.UnaryOp):
        if isinstance(term, ast.BinOp) and not isinstance(term.op, ast.Mult | ast.Div):
            break
        term = term.left if isinstance(term, ast.BinOp) else term.operand
    return ast.dump(term)


def as_value(index: ast.expr) -> ast.expr:
    """An index as it can be handed to a function."""
    match index:
        case ast.Slice(lower, upper, step):
            return terms.call("slice", *(each or terms.constant(None) for each in (lower, upper, step)))
        case ast.Tuple():
            return terms.display([as_value(each) for each in index.elts])
    return index


@lru_cache(1024)
def _count(template: str) -> int:
    return sum(isinstance(each, ast.Name) and each.id == "d" for each in terms.walk(ast.parse(template)))
