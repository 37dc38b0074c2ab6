"""Two passes through one function: their statements, and the values that the primal pass saves."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from trainshift.derivatives.reading.function import Function
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.liveness import Liveness
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite import terms

Back = Callable[[], None]
"""Adds the statements of the adjoint pass that belong to a part of the primal pass."""


class Block(Struct, dict=True):
    """The block being read: the first statements of its adjoint pass."""

    statements: Sequence[ast.stmt]
    starts: list[Back] = field(default_factory=list)

    @cached_property
    def loads(self) -> Counter[str]:
        """Return the number of reads of each name."""
        return terms.counted(self.statements)[0]


class Passes:
    """The two passes through a function: `forward` is the primal pass, `out` the adjoint pass.

    `kept` are the variables that the adjoint pass reads, `contents` those whose elements it reads, as found
    by an earlier pass.  `defined` are the variables that certainly have a value at the current point of the
    primal pass, `maybe` those that may have one.
    """

    def __init__(self, function: Function, kept: set[str], contents: set[str]) -> None:
        self.function = function
        self.kept = kept
        self.contents = contents
        self.depth = 0
        self.defined: set[str] = set(function.params)
        self.maybe: set[str] = set(function.params)
        self.forward: list[ast.stmt] = []
        self.out: list[ast.stmt] = []
        self.stacks: dict[str, str] = {}
        self.empty_stacks: list[str] = []
        self.unset: set[str] = set()
        self.block = Block([])

    def hold(self, held: str, value: ast.expr) -> None:
        """Emit `held = value` in the primal pass."""
        self.function.local.add(held)
        after = self.keep(held, fresh=True)
        self.forward.append(terms.assign(held, value))
        after()

    def keep(self, name: str, fresh: bool = False, backs: list[Back] | None = None) -> Callable[[], None]:
        """Save the old value of a variable about to be assigned, if the adjoint pass reads it.

        The returned function emits the code after the assignment; the code of the reverse pass is added to
        `backs`.
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
        if self.depth and (fresh or self.is_of_block(name)):
            stack = self.stack(name)
            self.block.starts.append(lambda: self.emit(terms.assign(name, terms.call(f"{stack}.pop"))))
            return lambda: self.forward.append(ast.Expr(terms.call(f"{stack}.append", terms.name(name))))
        if self.depth or self.function.owner(name) is not self.function:
            stack = self.stack(name)
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

    def stack(self, name: str) -> str:
        if name not in self.stacks:
            made = self.function.fresh(f"{name}s" if not name.endswith("s") else f"{name}_kept")
            self.stacks[name] = made
            self.empty_stacks.append(made)
        return self.stacks[name]

    def is_of_block(self, name: str) -> bool:
        """Return whether a variable is assigned once, in this block, and read neither elsewhere nor
        before.
        """
        if name in self.function.params or name in self.function.captured_inside:
            return False
        loads, stores = self.counts
        if stores[name] != 1 or self.block.loads[name] != loads[name]:
            return False
        direct = any(name in terms.bound_in(each) for each in self.block.statements if simple(each))
        return direct and name not in self.exposed(self.block.statements)

    def exposed(self, statements: Sequence[ast.stmt]) -> frozenset[str]:
        """The names that are live before statements of the function, if none is live after them."""
        known, key = self.function.exposed, tuple(map(id, statements))
        if key not in known:
            cfg = build(statements)
            known[key] = Liveness(cfg).before(cfg.entry)
        return known[key]

    def stays(self, expr: ast.expr) -> bool:
        """Return whether the names in an element's path are not assigned in the rest of the function."""
        found = terms.names_read(expr)
        stores = self.counts[1]
        return all(stores[each] <= (0 if each in self.function.params else 1) for each in found)

    def is_read_behind(self, name: str, node: ast.stmt) -> bool:
        """Return whether a variable is read below a statement of its block, or by an inner function."""
        below = self.block.statements[self.block.statements.index(node) + 1 :]
        return name in self.function.captured_inside or any(name in terms.names_read(each) for each in below)

    @cached_property
    def counts(self) -> tuple[Counter[str], Counter[str]]:
        """Return the numbers of reads and of assignments of each name."""
        return terms.counted(self.function.body)

    def inner(self, back: Back) -> list[ast.stmt]:
        """The statements of a part of the adjoint pass."""
        outer, self.out = self.out, []
        back()
        made, self.out = self.out, outer
        return made

    def emit(self, *statements: ast.stmt) -> None:
        """Add statements to the adjoint pass."""
        self.out.extend(statements)


def nothing() -> None:
    """Return the adjoint pass of a statement without one."""


def simple(node: ast.stmt) -> bool:
    """Return whether a statement contains no others."""
    return not isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)


def line_of(
    node: ast.stmt,
    target: ast.expr,
    value: ast.expr,
    made: ast.expr,
    augmented: ast.AugAssign | None,
) -> ast.stmt:
    """The user's own statement if nothing in it had to change, otherwise one with the new value."""
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
