"""Reverse mode of statements: lines, conditionals, loops and inner functions (AD32 to AD35)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.side_effects import changed_by_call
from trainshift.derivatives.reverse.adjoints import Pull
from trainshift.derivatives.reverse.mutations import Changes
from trainshift.derivatives.reverse.passes import Back, Block, Passes, line_of, nothing, simple
from trainshift.python.flow.exits import BREAK, completions
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import comes_from
from trainshift.python.syntax.iteration import Step, step

AGAIN = frozenset(("len", "isinstance"))
# Calls in a loop's iterable that the adjoint pass repeats.
_REPEATED = frozenset(("range", "enumerate", "zip", "reversed", "list", "tuple", "len"))
_VIEWS = frozenset(("items", "keys", "values"))


class Ways:
    """Both passes through one function: `passes` has their statements, `pull` the adjoints.

    `idle` are the conditionals without a reverse pass, as found by an earlier pass. `bars_back` are the
    results of the pullback.
    """

    bars_back: ast.expr

    def __init__(self, function: Function, kept: set[str], contents: set[str], idle: set[int]) -> None:
        self.function = function
        self.whole = function.whole
        self.passes = Passes(function, kept, contents)
        self.pull = Pull(function, self.passes)
        self.changes = Changes(self.pull, self.passes)
        self.nodes = self.pull.nodes
        self.idle = idle
        self.idle_found: set[int] = set()
        self.begun: set[str] = set()
        # Names of the initial adjoints, for variables that get other values.
        self.given: dict[str, str] = {}
        # The names of index variables by loop, where the reverse pass of the loop needs them.
        self._places: dict[int, str] = {}

    def run(self) -> None:
        """Read the function's statements into `forward` and, from `out`, the adjoint pass."""
        back = self._block(self.function.body)
        ahead = self.passes.forward
        self.passes.forward = []
        result = self.function.result
        if self.function.active(result):
            self.pull.present.add(result)
        back()
        before: list[ast.stmt] = [
            terms.assign(each, ast.List([], ast.Load())) for each in self.passes.empty_stacks
        ]
        before += [terms.assign(each, ast.Constant(None)) for each in sorted(self.passes.unset)]
        self.passes.forward = [*before, *ahead]

    def _block(self, statements: Sequence[ast.stmt]) -> Back:
        outer, self.passes.block = self.passes.block, Block(statements)
        backs: list[Back] = []
        for node in statements:
            if isinstance(node, ast.Pass):
                continue
            start = len(self.passes.forward)
            back = self._statement(node)
            comes_from(self.passes.forward[start:], node)
            backs.append(back)
        block, self.passes.block = self.passes.block, outer

        def whole() -> None:
            for each in block.starts:
                each()
            for each in reversed(backs):
                each()

        return whole

    def _statement(self, node: ast.stmt) -> Back:
        match node:
            case ast.Assign(targets=[target]):
                return self._assign(node, target, node.value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                return self._assign(node, node.target, node.value)
            case ast.AugAssign():
                return self._augmented(node)
            case ast.If(ast.Compare(ast.Name(name), [ast.Is()]), [ast.Assign([ast.Name(given)])], []) if (
                name == given and self.function.fills(name)
            ):
                self.passes.forward.append(node)
                return nothing
            case ast.If():
                return self._if(node)
            case ast.For() | ast.While():
                return self._loop(node)
            case ast.FunctionDef():
                return self._definition(node)
            case ast.Expr(value=ast.Call()):
                return self.changes.called_alone(node)
            case ast.Nonlocal() | ast.AnnAssign():
                if isinstance(node, ast.Nonlocal):
                    self.passes.forward.append(node)
                return nothing
            case _:
                self.passes.forward.append(self.pull.plain_statement(node))
                return nothing

    def _augmented(self, node: ast.AugAssign) -> Back:
        value = ast.BinOp(terms.copied(node.target), node.op, node.value)
        target = node.target
        whole = self.whole
        verbatim = (
            not whole.arrays
            or (self.nodes.settled(terms.copied(target)) and isinstance(target, ast.Name))
            or (isinstance(target, ast.Subscript) and self.nodes.reader.kind(target.value).has("array"))
        )
        return self._assign(node, target, value, node if verbatim else None)

    def _assign(
        self, node: ast.stmt, target: ast.expr, value: ast.expr, augmented: ast.AugAssign | None = None
    ) -> Back:
        match target:
            case ast.Name(name):
                return self._assign_name(node, name, value, augmented)
            case ast.Subscript():
                return self.changes.store(node, target, value, augmented)
            case ast.Tuple() | ast.List():
                return self.changes.unpack(node, target, value)
        self.passes.forward.append(node)
        return nothing

    def _popped_of_active(self, value: ast.expr) -> bool:
        base = root_of(value.func) if isinstance(value, ast.Call) else None
        return base is not None and self.function.active(base)

    def _assign_name(
        self, node: ast.stmt, name: str, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        active = self.function.active(name)
        root = self.nodes.marked(value, active)
        if _is_pop(value) and (
            root.active or _popped_from(value) in self.passes.contents or self._popped_of_active(value)
        ):
            return self.changes.pop(node, name, value)
        lines: list[tuple[str, Node]] = []
        backs: list[Back] = []
        clash = name in self.passes.kept and (name in self.passes.maybe or self.passes.depth > 0)
        direct = root.sort == "call"
        if direct:
            made: ast.expr = self.pull.call_line(root, lines, name)
        else:
            top = root.needed and (not clash or self.passes.is_of_block(name))
            made = self.pull.ahead(root, lines, top=top)
            if top:
                root.held = name
        anew = self.pull.anew(name)
        after = self.passes.keep(name, backs=backs)
        if direct:
            self.passes.forward.append(ast.copy_location(self.pull.with_pullback(name, root, made), node))
            after()
            self.passes.keep(self.pull.pullbacks[id(root)], fresh=True)()
        else:
            self.passes.forward.append(line_of(node, terms.name(name), value, made, augmented))
            after()
        foreign = active and self.pull.foreign(name)

        def back() -> None:
            if active and direct and self.pull.must(root) and self.pull.asks_for_value(root):
                # In the structure of the value, which only this variable still has.
                self.pull.start(name)
            for each in backs:
                each()
            if not active:
                return
            if name not in self.pull.present and not foreign and not self.pull.must(root):
                return
            bar = terms.name(self.pull.bar(name)) if self.pull.is_present(name) else None
            self.pull.present.discard(name)
            own = self.pull.boxlike(name) and name in terms.names_read(value)
            if bar is not None and own and not foreign:
                held = self.function.fresh(bar.id)
                self.passes.emit(terms.assign(held, bar))
                bar = terms.name(held)
            self.pull.consumed = {name}
            if bar is not None and foreign and (own or anew or self.pull.pulls(root, lines)):
                bar = terms.name(self.pull.taken_out(name))
                self.pull.consumed = set()
            self.pull.send(root, bar, lines)

        return back

    def _if(self, node: ast.If) -> Back:
        test = self.pull.plain(node.test)
        again = test
        if id(node) not in self.idle and not self._asks_again(node):
            held = self.function.temporary()
            # A list no longer has that length when it is read again.
            lasts = not any(self.function.kind(each).changes for each in self.pull.sources(node.test))
            self.passes.hold(held, test if lasts else terms.call("bool", test))
            test = again = terms.name(held)
        branches: list[list[ast.stmt]] = []
        backs: list[Back] = []
        known, maybe = set(self.passes.defined), set(self.passes.maybe)
        ends: list[tuple[set[str], set[str]]] = []
        for statements in (node.body, node.orelse):
            self.passes.defined, self.passes.maybe = set(known), set(maybe)
            outer, self.passes.forward = self.passes.forward, []
            backs.append(self._block(statements))
            branches.append(self.passes.forward)
            self.passes.forward = outer
            leaves = bool(statements) and isinstance(statements[-1], ast.Break | ast.Continue | ast.Raise)
            ends.append(
                (set(known) | self.passes.maybe if leaves else self.passes.defined, self.passes.maybe)
            )
        self.passes.defined = ends[0][0] & ends[1][0]
        self.passes.maybe = ends[0][1] | ends[1][1]
        made = ast.copy_location(ast.If(test, branches[0] or [ast.Pass()], branches[1]), node)
        self.passes.forward.append(made)

        def back() -> None:
            start = set(self.pull.present)
            one = self.passes.inner(backs[0])
            first = set(self.pull.present)
            self.pull.present = set(start)
            other = self.passes.inner(backs[1])
            second = set(self.pull.present)
            for name in sorted(second - first):
                one.append(terms.assign(self.pull.bar(name), self._zero_if(name, known)))
            for name in sorted(first - second):
                other.append(terms.assign(self.pull.bar(name), self._zero_if(name, known)))
            self.pull.present = first | second
            if one:
                self.passes.emit(ast.If(terms.copied(again), one, other))
            elif other:
                turned = terms.opposite(terms.copied(again))
                self.passes.emit(ast.If(turned, other, []))
            else:
                self.idle_found.add(id(node))

        return back

    def _zero_if(self, name: str, known: set[str]) -> ast.expr:
        """The adjoint of a variable on which nothing depends, and that may have no value here."""
        if name not in known and self.pull.boxlike(name) and self.function.owner(name) is self.function:
            # It may have had one in the previous iteration, with elements; else it is None.
            self.passes.unset.add(name)
            return self.pull.zero(name)
        return self.pull.zero(name, name in known)

    def _asks_again(self, node: ast.If) -> bool:
        """Return whether the adjoint pass may repeat a test: the branches assign no variable that
        it reads.
        """
        read = terms.names_read(node.test)
        changed = self._reassigned([*node.body, *node.orelse])
        for each in terms.walk(node.test):
            if isinstance(each, ast.Call) and not (isinstance(each.func, ast.Name) and each.func.id in AGAIN):
                return False
        return not read & changed and not any(
            self.function.kind(each).changes for each in read if self.function.owner(each)
        )

    def _reassigned(self, statements: list[ast.stmt]) -> set[str]:
        """The variables that are assigned by statements, or by functions that they call."""
        found = set[str]().union(*map(terms.bound_in, statements))
        for each in terms.inside(statements):
            if isinstance(each, ast.Call) and not isinstance(each.func, ast.Attribute):
                found |= changed_by_call(self.nodes.reader, each)
        return found

    def _loop(self, node: ast.For | ast.While) -> Back:
        """The primal and the adjoint pass of a loop (AD34)."""
        counted = isinstance(node, ast.While) or BREAK in completions(node.body)
        assigned = frozenset[str]().union(*map(terms.bound_in, node.body))
        names: list[str] = []
        backs: list[Back] = []
        if isinstance(node, ast.For):
            source = self.pull.plain(node.iter)
            reassigned = self._reassigned(node.body) | terms.names_bound([node.target])
            moved = terms.names_read(node.iter) & reassigned
            if moved and self.nodes.reader.value(node.iter):
                said = f"the loop changes the sequence that it iterates over: {', '.join(sorted(moved))}"
                raise self.nodes.refused(node.iter, said)
            if moved or not repeated(node.iter):
                held = self.function.temporary()
                made = source if _ranged(source) else terms.call("list", source)
                self.passes.hold(held, made)
                source = terms.name(held)
            names = sorted(terms.names_bound([node.target]))
            for each in names:
                self._keep_outside(each, backs)
        trips = ""
        if counted:
            trips = self.function.fresh("trips")
            self.function.local.add(trips)
            self.passes.forward.append(terms.assign(trips, terms.constant(0)))
        known = set(self.passes.defined)
        outer, self.passes.forward = self.passes.forward, []
        if counted:
            self.passes.forward.append(terms.added(trips, terms.constant(1)))
        self.passes.depth += 1
        self.passes.maybe |= assigned | set(names)
        inside = set(self.passes.defined)
        self.passes.defined |= set(names)
        body_back = self._block(node.body)
        self.passes.defined = inside & self.passes.defined | inside
        self.passes.depth -= 1
        body, self.passes.forward = self.passes.forward, outer
        if isinstance(node, ast.For):
            new: ast.stmt = ast.For(node.target, source, body or [ast.Pass()], [])
        else:
            new = ast.While(self.pull.plain(node.test), body or [ast.Pass()], [])
        self.passes.forward.append(ast.copy_location(new, node))
        if counted:
            self._keep_trips(trips)
        live = {each for each in self.passes.exposed([node]) if self.function.active(each)}
        live = {each for each in live if not self.function.kind(each).has("function")}

        def back() -> None:
            for name in sorted(live - self.pull.present):
                if not self.pull.foreign(name):
                    self.passes.emit(terms.assign(self.pull.bar(name), self._zero_if(name, known)))
                    self.pull.present.add(name)
            start = set(self.pull.present)
            if isinstance(node, ast.For):
                inner = self.passes.inner(lambda: self._for_back(node, source, body_back))
            else:
                inner = self.passes.inner(body_back)
            for name in sorted(start - self.pull.present):
                inner.append(terms.assign(self.pull.bar(name), self._zero_if(name, known)))
            self.pull.present = start
            if inner:
                count = self._trips(trips)
                if isinstance(node, ast.For):
                    self.passes.emit(self._header(node, source, inner, count))
                else:
                    assert count is not None
                    self.passes.emit(
                        ast.For(terms.stored(terms.name("_")), terms.call("range", count), inner, [])
                    )
            for each in backs:
                each()

        return back

    def _keep_outside(self, name: str, backs: list[Back]) -> None:
        """Save a loop's variable before the loop, if the adjoint pass needs it."""
        elsewhere = self.passes.counts[1][name] > 1 or name in self.function.params
        if name in self.passes.maybe and name in self.passes.kept and elsewhere:
            self.passes.keep(name, backs=backs)
        self.passes.maybe.add(name)

    def _keep_trips(self, trips: str) -> None:
        if self.passes.depth:
            stack = self.passes.stack(trips)
            self.passes.forward.append(ast.Expr(terms.call(f"{stack}.append", terms.name(trips))))

    def _trips(self, trips: str) -> ast.expr | None:
        if not trips:
            return None
        return (
            terms.call(f"{self.passes.stacks[trips]}.pop")
            if trips in self.passes.stacks
            else terms.name(trips)
        )

    def _header(
        self, node: ast.For, source: ast.expr, inner: list[ast.stmt], count: ast.expr | None
    ) -> ast.stmt:
        """The reversed loop: over the same values, or over the places of elements whose adjoints
        are updated.
        """
        place = self._places.pop(id(node), "")
        plain = source
        # Pullbacks of inner functions read their captures.
        read = self.function.captured_inside.union(*map(terms.names_read, inner))
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
        """The elements of a loop's iterable that it reached."""
        match source:
            case ast.Call(ast.Name("zip"), [first, *others]):
                # The loop ends with the shortest iterable.
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
            # From here on, additions by inner functions belong to the previous iteration.
            if self.function.active(each) and self.pull.foreign(each):
                self.passes.emit(terms.assign(self.pull.bar(each), self.pull.zero(each)))

    def _element(self, target: ast.expr, source: ast.expr, at: object) -> None:
        """Add the adjoints of a loop's variables to those of the elements."""
        assert callable(at)
        names = [each.id for each in terms.leaves(target) if isinstance(each, ast.Name)]
        if not any(self.function.active(each) and self.pull.is_present(each) for each in names):
            return
        match step(source):
            case Step.NUMBERED, [inner] if isinstance(target, ast.Tuple):
                self._element(target.elts[1], inner, at)
            case Step.BESIDE, parts if isinstance(target, ast.Tuple):
                for each, inner in zip(target.elts, parts, strict=False):
                    self._element(each, inner, at)
            case Step.BACKWARDS, [inner]:
                self._element_at(target, inner, ast.UnaryOp(ast.Invert(), terms.name(at())))
            case Step.COPY, [inner]:
                self._element(target, inner, at)
            case Step.ITEMS, [inner] if isinstance(target, ast.Tuple):
                self._element_at(target.elts[1], inner, terms.copied(target.elts[0]))
                at()
            case Step.VALUES, [inner]:
                keys = ast.Subscript(terms.call("list", inner), terms.name(at()), ast.Load())
                self._element_at(target, inner, keys)
            case _:
                self._element_at(target, source, terms.name(at()))

    def _element_at(self, target: ast.expr, source: ast.expr, index: ast.expr) -> None:
        part = source.slice if isinstance(source, ast.Subscript) else None
        if isinstance(index, ast.UnaryOp) and isinstance(part, ast.Slice) and part.upper is None:
            # Counted from the last element, a slice that ends with the whole sequence is found as in the
            # whole.
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
        self.pull.add_parts(target, element)

    def _definition(self, node: ast.FunctionDef) -> Back:
        """The primal and the adjoint pass of a function defined inside (AD35)."""
        inner = self.function.nested[node.name]
        self.passes.defined.add(node.name)
        self.passes.maybe.add(node.name)
        made = self.whole.made_function(inner)
        stores = terms.counted([each for each in self.passes.block.statements if simple(each)])[1]
        # A name that also has a value from elsewhere has an adjoint there, too.
        here = {each for each in stores if stores[each] == self.passes.counts[1][each]} - set(
            self.function.params
        )
        for (owner, name), bar in list(self.whole.captured_bars.items()):
            if owner is not self.function or name in self.begun or not self.function.kind(name).container:
                continue
            if name in here and not self.function.is_outlived:
                self.begun.add(name)
                start = terms.assign(bar, self.pull.helper("_cells", terms.name(name)))
                self.passes.block.starts.append(lambda start=start: self.passes.emit(start))  # type: ignore[misc]
        self.passes.forward.extend(made)
        return nothing


def _is_pop(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "pop"


def _popped_from(value: ast.expr) -> str | None:
    assert isinstance(value, ast.Call)
    assert isinstance(value.func, ast.Attribute)
    return root_of(value.func.value)


def _ranged(source: ast.expr) -> bool:
    return isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id == "range"


def repeated(source: ast.expr) -> bool:
    """Return whether the adjoint pass evaluates a loop's iterable again: names, elements, and their views."""
    for each in terms.walk(source):
        match each:
            case ast.Call(ast.Name(name)) if name in _REPEATED:
                pass
            case ast.Call(ast.Attribute(attr=name)) if name in _VIEWS:
                pass
            case ast.Call() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return False
    return True
