"""Reverse mode: the statements of a function forward, and their derivatives from the last to the first (AD32-AD37)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trainshift.derivatives import terms
from trainshift.derivatives.analysis import Function, bound, root_of
from trainshift.derivatives.nodes import Node, cheap
from trainshift.derivatives.pull import Pull, rebuilt

Back = Callable[[], None]
BACKWARD = "# Backward, from the last line to the first."


@dataclass
class Block:
    """The block that is being read: what its way back begins with."""

    statements: Sequence[ast.stmt]
    starts: list[Back] = field(default_factory=list)


class Reverse(Pull):
    """Both ways through one function.

    `kept` are the variables that the way back reads, `contents` those whose elements it reads, as an earlier run
    has found; `idle` the conditionals that have nothing to do on the way back.
    """

    def __init__(self, function: Function, kept: set[str], contents: set[str], idle: set[int]) -> None:
        super().__init__(function)
        self.kept = kept
        self.contents = contents
        self.idle = idle
        self.idle_found: set[int] = set()
        self.depth = 0
        self.defined: set[str] = set(function.params)
        self.maybe: set[str] = set(function.params)
        self.forward: list[ast.stmt] = []
        self.stacks: dict[str, str] = {}
        self.empty_stacks: list[str] = []
        self.unset: set[str] = set()
        self.block = Block([])
        self.backs: list[Back] = []
        self.copied: set[str] = set()

    def run(self) -> None:
        """Reads the function's statements: `forward` and, from `out`, the way back."""
        back = self._block(self.function.body)
        ahead = self.forward
        self.forward = []
        result = self.function.result
        if self.function.active(result):
            self.present.add(result)
        back()
        before: list[ast.stmt] = [terms.assign(each, ast.List([], ast.Load())) for each in self.empty_stacks]
        before += [terms.assign(each, ast.Constant(None)) for each in sorted(self.unset)]
        self.forward = [*before, *ahead]

    # Blocks.

    def _block(self, statements: Sequence[ast.stmt]) -> Back:
        outer, self.block = self.block, Block(statements)
        backs: list[Back] = []
        for node in statements:
            start = len(self.forward)
            back = self._statement(node)
            self._placed(node, start)
            backs.append(back)
        block, self.block = self.block, outer

        def whole() -> None:
            for each in block.starts:
                each()
            for each in reversed(backs):
                each()

        return whole

    def _placed(self, node: ast.stmt, start: int) -> None:
        """Comments of a statement go with the first and the last line that is made of it."""
        made = self.forward[start:]
        if not made or not hasattr(node, "lineno"):
            return
        for each in made:
            if each is not node and not hasattr(each, "lineno"):
                each.own = True  # type: ignore[attr-defined]
        made[0].above = node.lineno  # type: ignore[attr-defined]
        main = next((each for each in made if getattr(each, "lineno", None) == node.lineno), made[-1])
        main.beside = node  # type: ignore[attr-defined]

    def _inner(self, back: Back) -> list[ast.stmt]:
        """The statements that a part of the way back makes."""
        outer, self.out = self.out, []
        back()
        made, self.out = self.out, outer
        return made

    def _statement(self, node: ast.stmt) -> Back:
        match node:
            case ast.Assign(targets=[target]):
                return self._assign(node, target, node.value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                return self._assign(node, node.target, node.value)
            case ast.AugAssign():
                return self._augmented(node)
            case ast.If():
                return self._if(node)
            case ast.For() | ast.While():
                return self._loop(node)
            case ast.FunctionDef():
                return self._definition(node)
            case ast.Expr(value=ast.Call()):
                return self._called_alone(node)
            case ast.Nonlocal() | ast.AnnAssign():
                if isinstance(node, ast.Nonlocal):
                    self.forward.append(node)
                return _nothing
            case _:
                self.forward.append(self._plain_statement(node))
                return _nothing

    def _plain_statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.Expr():
                value = self.plain(node.value)
                return node if value is node.value else ast.copy_location(ast.Expr(value), node)
            case ast.Assert():
                test = self.plain(node.test)
                return node if test is node.test else ast.copy_location(ast.Assert(test, node.msg), node)
        return node

    # Names and what is kept of them.

    def hold(self, held: str, value: ast.expr) -> None:
        """A line `held = value` of the way forward."""
        self.function.local.add(held)
        after = self._keep(held, fresh=True)
        self.forward.append(terms.assign(held, value))
        after()

    def _keep(self, name: str, fresh: bool = False, backs: list[Back] | None = None) -> Callable[[], None]:
        """Keeps the old value of a variable that is about to be assigned, if the way back reads it.

        What is to follow the assignment is done by the function that comes back; what the way back has to do at
        this place is added to `backs`.
        """
        before = name in self.maybe or (self.depth > 0)
        known = name in self.defined
        self.maybe.add(name)
        self.defined.add(name)
        if (
            name not in self.kept
            or not before
            or self.function.owner(name) is not self.function
            and not fresh
        ):
            if not (name in self.kept and self.function.owner(name) not in (self.function, None)):
                return _nothing
        if self.depth and (fresh or self._of_block(name)):
            stack = self._stack(name)
            self.block.starts.append(lambda: self.emit(terms.assign(name, terms.call(f"{stack}.pop"))))
            return lambda: self.forward.append(ast.Expr(terms.call(f"{stack}.append", terms.name(name))))
        if self.depth or self.function.owner(name) is not self.function:
            stack = self._stack(name)
            if not known and self.function.owner(name) is self.function:
                self.unset.add(name)
            self.forward.append(ast.Expr(terms.call(f"{stack}.append", terms.name(name))))
            if backs is not None:
                backs.append(lambda: self.emit(terms.assign(name, terms.call(f"{stack}.pop"))))
            return _nothing
        held = self.function.fresh(name)
        if not known:
            self.unset.add(name)
        self.forward.append(terms.assign(held, terms.name(name)))
        if backs is not None:
            backs.append(lambda: self.emit(terms.assign(name, terms.name(held))))
        return _nothing

    def _stack(self, name: str) -> str:
        if name not in self.stacks:
            made = self.function.fresh(f"{name}s" if not name.endswith("s") else f"{name}_kept")
            self.stacks[name] = made
            self.empty_stacks.append(made)
        return self.stacks[name]

    def _of_block(self, name: str) -> bool:
        """Whether a variable is assigned once, in this block, and read nowhere else and not before."""
        if name in self.function.params or any(
            name in terms.names_read(each.node) for each in self.function.nested.values()
        ):
            return False
        stores = loads = 0
        for statement in self.function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == name:
                    stores += isinstance(node.ctx, ast.Store)
                    loads += isinstance(node.ctx, ast.Load)
                elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    loads += node.target.id == name
        inside = 0
        for statement in self.block.statements:
            for node in ast.walk(statement):
                inside += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        direct = any(name in terms.names_bound([each]) for each in self.block.statements if _simple(each))
        return stores == 1 and direct and inside == loads and name not in exposed(self.block.statements)

    # Assignments.

    def _augmented(self, node: ast.AugAssign) -> Back:
        value = ast.BinOp(terms.copied(node.target), node.op, node.value)
        target = node.target
        whole = self.whole
        verbatim = (
            not whole.arrays
            or (self.nodes.settled(terms.copied(target)) and isinstance(target, ast.Name))
            or isinstance(target, ast.Subscript)
            and self.nodes.reader.kind(target.value).has("array")
        )
        return self._assign(node, target, value, node if verbatim else None)

    def _assign(
        self, node: ast.stmt, target: ast.expr, value: ast.expr, augmented: ast.AugAssign | None = None
    ) -> Back:
        match target:
            case ast.Name(name):
                return self._assign_name(node, name, value, augmented)
            case ast.Subscript():
                return self._store(node, target, value, augmented)
            case ast.Tuple() | ast.List():
                return self._unpack(node, target, value)
        self.forward.append(node)
        return _nothing

    def _assign_name(
        self, node: ast.stmt, name: str, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        active = self.function.active(name)
        root = self.nodes.node(value) if active else Node("still", value)
        if _is_pop(value) and root.active:
            return self._pop(node, name, value)
        if root.active:
            self.nodes.mark(root)
        lines: list[tuple[str, Node]] = []
        backs: list[Back] = []
        clash = name in self.kept and (name in self.maybe or self.depth > 0)
        direct = root.sort == "call"
        if direct:
            made: ast.expr = self._call_line(root, lines, name)
        else:
            top = root.needed and (not clash or self._of_block(name))
            made = self.ahead(root, lines, top=top)
            if top:
                root.held = name
        after = self._keep(name, backs=backs)
        if direct:
            pair = terms.display([terms.name(name), terms.name(self.pullbacks[id(root)])])
            self.forward.append(ast.copy_location(terms.assign(pair, made), node))
            after()
            self._keep(self.pullbacks[id(root)], fresh=True)()
        else:
            self.forward.append(self._line(node, terms.name(name), value, made, augmented))
            after()
        foreign = active and self.foreign(name)

        def back() -> None:
            for each in backs:
                each()
            if not active:
                return
            if name not in self.present and not foreign and not self._must(root):
                return
            bar = terms.name(self.bar(name)) if self.is_present(name) else None
            self.present.discard(name)
            if bar is not None and self.boxlike(name) and name in terms.names_read(value):
                held = self.function.fresh(bar.id)
                self.emit(terms.assign(held, bar))
                bar = terms.name(held)
            self.consumed = {name}
            self._send(root, bar, lines)
            if foreign:
                self.present.discard(name)

        return back

    def _line(
        self,
        node: ast.stmt,
        target: ast.expr,
        value: ast.expr,
        made: ast.expr,
        augmented: ast.AugAssign | None,
    ) -> ast.stmt:
        """The user's own statement where nothing in it had to change, else one of the new value."""
        if augmented is not None:
            assert isinstance(value, ast.BinOp)
            if made is value:
                return node
            if isinstance(made, ast.BinOp) and made.left is value.left:
                line: ast.stmt = ast.AugAssign(augmented.target, augmented.op, made.right)
                return ast.copy_location(line, node)
        elif made is value and not isinstance(node, ast.AugAssign):
            return node
        line = ast.copy_location(terms.assign(target, made), node)
        return line

    def _must(self, root: Node) -> bool:
        """Whether a call has to be gone back through even where nothing depends on its value."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.sort == "call" and self._has_effects(node):
                return True
            waiting.extend(child for _, child in node.params)
        return False

    def _has_effects(self, node: Node) -> bool:
        if node.target is None or node.target.value.has("function"):
            return True
        for each in (node.target, *self.whole.inside(node.target)):
            if any(each.active(name) for name in each.foreign):
                return True
        return any(node.target.kind(each).has("changed") for each in self.whole.signature(node.target)[0])

    def _send(self, root: Node, bar: ast.expr | None, lines: list[tuple[str, Node]]) -> None:
        """The way back through the lines that one statement was split into, from the last to the first."""
        own = id(root) in self.pullbacks
        self.waiting = {held for held, _ in lines}
        self.held_terms = {}
        if own:
            self._call_back(root, bar)
        elif bar is not None:
            if root.held in self.waiting:
                self.held_terms[root.held] = [(bar, False)]  # type: ignore[index]
            else:
                self.through(root, bar, False)
        for held, node in reversed(lines):
            self.waiting.discard(held)  # type: ignore[union-attr]
            found = self.held_terms.pop(held, None)
            if id(node) in self.pullbacks:
                total = self.total(found, terms.name(held)) if found else None
                if total is not None or self._has_effects(node):
                    self._call_back(node, total)
            elif found and node.active:
                self._line_back(held, node, found)
        self.flush()

    def _line_back(self, held: str, node: Node, found: list[tuple[ast.expr, bool]]) -> None:
        elementwise = node.row is not None and node.row.elementwise
        pending = any(wide for _, wide in found)
        if pending and elementwise:
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

    # Calls.

    @property
    def pullbacks(self) -> dict[int, str]:
        """The names of pullbacks by the call's node."""
        if not hasattr(self, "_pullbacks"):
            self._pullbacks: dict[int, str] = {}
        return self._pullbacks

    def called(self, node: Node, lines: list[tuple[str, Node]]) -> ast.expr:
        """A call in an expression gets a line of its own: `t1, t1_pullback = g_vjp(...)`."""
        held = self.function.temporary()
        made = self._call_line(node, lines, held)
        node.held = held
        lines.append((held, node))
        self.function.local.add(held)
        after = self._keep(held, fresh=True)
        pullback = self.pullbacks[id(node)]
        last = self._keep(pullback, fresh=True)
        self.forward.append(terms.assign(terms.display([terms.name(held), terms.name(pullback)]), made))
        after()
        last()
        return terms.name(held)

    def _call_line(self, node: Node, lines: list[tuple[str, Node]], base: str) -> ast.expr:
        """The call of the function that gives the value and the pullback."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        pullback = self.function.fresh(f"{base}_pullback")
        self.pullbacks[id(node)] = pullback
        new: dict[int, ast.expr] = {}
        for param, child in node.params:
            if self._is_function(child.expr):
                new[id(child.expr)] = self._as_function(child.expr)
                continue
            made = self.ahead(child, lines)
            carried = node.target is not None and param in self.whole.signature(node.target)[1]
            place = (
                child.sort == "name"
                or child.sort == "item"
                and isinstance(self.path(child.expr)[0], ast.Name)
            )
            if carried and not place:
                if not isinstance(made, ast.Name):
                    held = self.function.temporary()
                    self.hold(held, made)
                    made = terms.name(held)
                    if child.active:
                        lines.append((held, child))
                        child.held = held
                    else:
                        child.held = held
                elif child.held is None and child.sort == "still":
                    child.held = made.id
            if made is not child.expr:
                new[id(child.expr)] = made
        if node.target is not None:
            function: ast.expr = terms.name(self.whole.made_name(node.target))
        else:
            function = self.plain(expr.func)
        arguments = [rebuilt(each, new) for each in expr.args]
        keywords = [ast.keyword(each.arg, rebuilt(each.value, new)) for each in expr.keywords]
        return ast.Call(function, arguments, keywords)

    def _is_function(self, expr: ast.expr) -> bool:
        if not isinstance(expr, ast.Name):
            return False
        owner = self.function.owner(expr.id)
        if owner is None:
            return expr.id in self.whole.module.functions
        return owner.kind(expr.id).has("function")

    def _as_function(self, expr: ast.expr) -> ast.expr:
        assert isinstance(expr, ast.Name)
        owner = self.function.owner(expr.id)
        if owner is None:
            return terms.name(self.whole.made_name(self.whole.function(expr.id)))
        return self.plain(expr)

    def _call_back(self, node: Node, bar: ast.expr | None) -> None:
        """The call of a pullback, its results added to the adjoints of the arguments."""
        target = node.target
        if target is not None:
            params, carried = self.whole.signature(target)
            given = dict(node.params)
        else:
            given = {param: child for param, child in node.params if not self._is_function(child.expr)}
            params, carried = list(given), set()
        arguments: list[ast.expr] = []
        if target is None or not target.value.has("function"):
            arguments.append(terms.constant(0.0) if bar is None else bar)
        results: list[ast.expr] = []
        after: list[tuple[Node, str]] = []
        for param in params:
            child = given.get(param)
            if child is None or not child.active:
                if param in carried:
                    value = self.value(child) if child is not None else terms.constant(0.0)
                    arguments.append(self.helper("_cells", value))
                results.append(terms.name("_"))
                continue
            if param in carried:
                if child.sort == "name":
                    assert isinstance(child.expr, ast.Name)
                    place: ast.expr | None = terms.name(self.start(child.expr.id))
                elif child.sort == "item":
                    place = self.place(child.expr)
                else:
                    place = None
                if place is not None:
                    arguments.append(place)
                    results.append(place)
                    continue
                held = self.function.fresh(f"{child.held}_bar")
                found = self.held_terms.pop(child.held or "", None)
                start = self.helper("_cells", self.value(child))
                if found:
                    start = self.helper("_add", start, self.total(found, self.value(child)))
                arguments.append(start)
                results.append(terms.name(held))
                after.append((child, held))
                continue
            taken = self._taken(child) if child.held is None else None
            if taken is None:
                base = child.expr.id if isinstance(child.expr, ast.Name) else child.held or "t"
                taken = self.function.fresh(f"{base}_bar")
                after.append((child, taken))
            results.append(terms.name(taken))
        call = terms.call(self.pullbacks[id(node)], *arguments)
        if all(isinstance(each, ast.Name) and each.id == "_" for each in results):
            self.emit(ast.Expr(call))
        else:
            self.emit(terms.assign(terms.display(results), call))
        for child, held in after:
            if child.sort == "name" and not child.pending and isinstance(child.expr, ast.Name):
                if child.expr.id not in self.consumed and child.expr.id not in self.terms:
                    self.add(child.expr.id, terms.name(held))
                    continue
            self.push(child, terms.name(held), child.pending)

    # Tuples.

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
        stores: dict[str, int] = {}
        for statement in self.function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    stores[node.id] = stores.get(node.id, 0) + 1
        return all(stores.get(each, 0) <= (0 if each in self.function.params else 1) for each in found)

    def _add_parts(self, target: ast.expr, expr: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for place, each in enumerate(target.elts):
                self._add_parts(each, ast.Subscript(terms.copied(expr), terms.constant(place), ast.Load()))
        elif isinstance(target, ast.Name) and self.function.active(target.id) and self.is_present(target.id):
            bar = terms.name(self.bar(target.id))
            self.present.discard(target.id)
            self.add_at(expr, bar, False)

    # What other modules add.

    def _store(
        self, node: ast.stmt, target: ast.Subscript, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        raise NotImplementedError

    def _pop(self, node: ast.stmt, name: str, value: ast.expr) -> Back:
        raise NotImplementedError

    def _if(self, node: ast.If) -> Back:
        raise NotImplementedError

    def _loop(self, node: ast.For | ast.While) -> Back:
        raise NotImplementedError

    def _definition(self, node: ast.FunctionDef) -> Back:
        raise NotImplementedError

    def _called_alone(self, node: ast.Expr) -> Back:
        raise NotImplementedError


def _nothing() -> None:
    pass


def _simple(node: ast.stmt) -> bool:
    return not isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)


def _is_pop(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "pop"


def exposed(statements: Sequence[ast.stmt], assigned: set[str] | None = None) -> set[str]:
    """The variables that statements may read before they have assigned them."""
    known = assigned if assigned is not None else set()
    found: set[str] = set()
    for node in statements:
        match node:
            case ast.If():
                found |= terms.names_read(node.test) - known
                one, other = set(known), set(known)
                found |= exposed(node.body, one) | exposed(node.orelse, other)
                known |= one & other
            case ast.For():
                found |= terms.names_read(node.iter) - known
                inner = known | terms.names_bound([node.target])
                found |= exposed(node.body, inner)
            case ast.While():
                found |= terms.names_read(node.test) - known
                found |= exposed(node.body, set(known))
            case ast.AugAssign():
                found |= (terms.names_read(node.value) | terms.names_read(terms.copied(node.target))) - known
                known |= terms.names_bound([node])
            case _:
                found |= terms.names_read(node) - known
                known |= terms.names_bound([node])
    return found


__all__ = ["BACKWARD", "Reverse", "bound", "cheap", "exposed", "root_of"]
