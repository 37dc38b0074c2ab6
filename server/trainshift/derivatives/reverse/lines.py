"""Reverse mode of lines: the primal and adjoint statements of each statement (AD32)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reverse.calls import Back, Calls
from trainshift.derivatives.reverse.pull import source_of
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.liveness import Liveness
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin


@dataclass
class Block:
    """The block that is being read: what its way back begins with."""

    statements: Sequence[ast.stmt]
    starts: list[Back] = field(default_factory=list)

    @cached_property
    def loads(self) -> Counter[str]:
        """How often it reads each name."""
        return terms.counted(self.statements)[0]


class Lines(Calls):
    """Both ways through one function.

    `kept` are the variables that the way back reads, `contents` those whose elements it reads, as an
    earlier run has found; `idle` the conditionals that have nothing to do on the way back.
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
        self.begun: set[str] = set()
        # What the adjoints that are given at the start are called, where the variables get other values.
        self.given: dict[str, str] = {}
        aliases = self.whole.aliases(function)
        # What becomes longer or shorter, and what calls without a way back may change.
        self.grown: set[str] = aliases.grown
        self.unseen: dict[int, set[str]] = {}
        self.handed: set[str] = set()

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
            if isinstance(node, ast.Pass):
                continue
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
        if not made or not hasattr(node, "lineno") or origin(node).is_inline:
            return
        origin(made[0]).above = node.lineno
        main = next((each for each in made if getattr(each, "lineno", None) == node.lineno), made[-1])
        origin(main).beside = node

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
            case ast.If(ast.Compare(ast.Name(name), [ast.Is()]), [ast.Assign([ast.Name(given)])], []) if (
                name == given and self.function.fills(name)
            ):
                self.forward.append(node)
                return nothing
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
                return nothing
            case _:
                self.forward.append(self._plain_statement(node))
                return nothing

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

        What is to follow the assignment is done by the function that comes back; what the way back has to
        do at this place is added to `backs`.
        """
        before = name in self.maybe or (self.depth > 0)
        known = name in self.defined
        self.maybe.add(name)
        self.defined.add(name)
        if (
            name not in self.kept
            or not before
            or (self.function.owner(name) is not self.function and not fresh)
        ):
            if not (name in self.kept and self.function.owner(name) not in (self.function, None)):
                return nothing
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
            return nothing
        held = self.function.fresh(name)
        if not known:
            self.unset.add(name)
        self.forward.append(terms.assign(held, terms.name(name)))
        if backs is not None:
            backs.append(lambda: self.emit(terms.assign(name, terms.name(held))))
        return nothing

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
        loads, stores = self.counts
        if stores[name] != 1 or self.block.loads[name] != loads[name]:
            return False
        direct = any(name in terms.bound_in(each) for each in self.block.statements if simple(each))
        return direct and name not in self.exposed(self.block.statements)

    def exposed(self, statements: Sequence[ast.stmt]) -> frozenset[str]:
        """The names that are live before statements of the function, if none is live behind them."""
        known, key = self.function.exposed, tuple(map(id, statements))
        if key not in known:
            cfg = build(statements)
            known[key] = Liveness(cfg).before(cfg.entry)
        return known[key]

    def _stays(self, expr: ast.expr) -> bool:
        """Whether what an element is found by is not assigned in the rest of the function."""
        found = terms.names_read(expr)
        stores = self.counts[1]
        return all(stores[each] <= (0 if each in self.function.params else 1) for each in found)

    def _is_read_behind(self, name: str, node: ast.stmt) -> bool:
        """Whether a variable is read below a statement of its block, or by a function inside."""
        below = self.block.statements[self.block.statements.index(node) + 1 :]
        inside = (each.node for each in self.function.nested.values())
        return any(name in terms.names_read(each) for each in (*below, *inside))

    @cached_property
    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """How often the function reads each name, and how often it assigns it."""
        return terms.counted(self.function.body)

    # Assignments.

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
                return self._store(node, target, value, augmented)
            case ast.Tuple() | ast.List():
                return self._unpack(node, target, value)
        self.forward.append(node)
        return nothing

    def _popped_of_active(self, value: ast.expr) -> bool:
        base = root_of(value.func) if isinstance(value, ast.Call) else None
        return base is not None and self.function.active(base)

    def _assign_name(
        self, node: ast.stmt, name: str, value: ast.expr, augmented: ast.AugAssign | None
    ) -> Back:
        active = self.function.active(name)
        root = self.nodes.node(value) if active else Node("still", value)
        if _is_pop(value) and (
            root.active or _popped_from(value) in self.contents or self._popped_of_active(value)
        ):
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
        anew = self.anew(name)
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
            if active and direct and self._must(root) and self.asks_for_value(root):
                # In the structure of the value, which the variable has only here.
                self.start(name)
            for each in backs:
                each()
            if not active:
                return
            if name not in self.present and not foreign and not self._must(root):
                return
            bar = terms.name(self.bar(name)) if self.is_present(name) else None
            self.present.discard(name)
            own = self.boxlike(name) and name in terms.names_read(value)
            if bar is not None and own and not foreign:
                held = self.function.fresh(bar.id)
                self.emit(terms.assign(held, bar))
                bar = terms.name(held)
            self.consumed = {name}
            if bar is not None and foreign and (own or anew or self._pulls(root, lines)):
                bar = terms.name(self.taken_out(name))
                self.consumed = set()
            self._send(root, bar, lines)

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

    def _send(
        self, root: Node, bar: ast.expr | None, lines: list[tuple[str, Node]], pending: bool = False
    ) -> None:
        """The way back through the lines that one statement was split into, from the last to the first."""
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
                if total is not None or self._has_effects(node):
                    self._call_back(node, total)
            elif found and node.active:
                self._line_back(held, node, found)
        self.flush()

    def _pulls(self, root: Node, lines: list[tuple[str, Node]]) -> bool:
        """Whether the way back through a statement calls pullbacks, which may add to adjoints of variables
        that functions capture."""
        return any(id(each) in self.pullbacks for each in (root, *(node for _, node in lines)))

    def anew(self, name: str) -> bool:
        """Whether a variable with elements may have had another value, which has an adjoint of its own."""
        had = name in self.maybe or self.depth > 0 or self.function.owner(name) is not self.function
        return had and self.boxlike(name)

    def taken_out(self, name: str) -> str:
        """The adjoint of a variable that is assigned here, by another name: what is added from here on is
        that of the value before."""
        held = self.function.fresh(self.bar(name))
        self.emit(terms.assign(held, terms.name(self.bar(name))))
        self.ask_length(name)
        self.emit(terms.assign(self.bar(name), self.zero(name)))
        return held

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

    # What the classes above add.

    def _unpack(self, node: ast.stmt, target: ast.Tuple | ast.List, value: ast.expr) -> Back:
        raise NotImplementedError

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


def nothing() -> None:
    pass


def simple(node: ast.stmt) -> bool:
    """Whether a statement holds no others."""
    return not isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)


def _is_pop(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "pop"


def _popped_from(value: ast.expr) -> str | None:
    assert isinstance(value, ast.Call)
    assert isinstance(value.func, ast.Attribute)
    return root_of(value.func.value)
