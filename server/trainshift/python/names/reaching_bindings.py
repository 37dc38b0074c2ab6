"""Reaching definitions of one name of a script: its bindings that may still hold where a statement begins.

It is a view of `python.flow.reaching` for scripts that are cut into chunks and edited, and for one name at a
time: the graph is that of a sketch of the code, with the statements that bind the name, their enclosing
statements, and the jumps in them. If code may be left early in other ways, the result may include impossible
bindings, but never misses a possible one.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.reaching import Definition
from trainshift.python.flow.reaching import Definitions as Reached
from trainshift.python.flow.reaching import Reaching as Definitions
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Binding, ChunkSyntax, Scope, Statement, last_name
from trainshift.python.syntax.node_classes import COMPOUND, FUNCTIONS, TRIES
from trainshift.python.syntax.slotted_ast import kind_of

# Statements that always bind; jumps; and managers that suppress exceptions.
_BINDING = (ast.AugAssign, ast.Delete, ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef)
_CATCHING: tuple[type[ast.stmt], ...] = (ast.With, ast.AsyncWith, *TRIES)
_JUMPS = (ast.Break, ast.Continue, ast.Return, ast.Raise)
_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "ExitStack"})

_Block = tuple[Statement | None, str]


class Reaching:
    """The bindings of one name in one scope: `owner` is the scope, or None for a name of the module."""

    def __init__(
        self, name: str, owner: Scope | None, top_index: Mapping[Statement, int], bindings: list[Binding]
    ) -> None:
        self._name = name
        self._owner = owner
        self._place = partial(_place_of, top_index)
        self.bindings = bindings

    def within(self, statement: Statement) -> list[Binding]:
        """The module's bindings that are visible to the function that contains `statement`.

        It cannot run before its definition: earlier bindings that were replaced by then are no longer
        visible.
        """
        top = statement.top
        held = set(self.before(top))
        place = self._place(top)
        return [each for each in self.bindings if each in held or not self._is_before(each, place)]

    def _is_before(self, binding: Binding, place: int) -> bool:
        """Return whether the module itself binds the name before one of its statements."""
        if binding.statement is None or binding.statement.scope.kind != "module":
            return False
        return self._place(binding.statement.top) < place

    def before(self, statement: Statement) -> list[Binding]:
        """The bindings that may hold where `statement` is evaluated, nearest first."""
        found = self._sketch.bindings_before(statement)
        found.update(dict.fromkeys(each for each in self._of(statement) if _is_inline(each)))
        return [*found, *self._elsewhere]

    def at_end(self) -> list[Binding]:
        """The module's bindings that may hold after all of its statements have run."""
        return list(self._sketch.bindings_at_end())

    def inside(self, statement: Statement) -> list[Binding]:
        """The bindings in a statement, or in functions that it defines."""
        return [
            each
            for each in self.bindings
            if each.statement is not None and any(above is statement for above in each.statement.path())
        ]

    @cached_property
    def _elsewhere(self) -> list[Binding]:
        """The bindings by functions (`nonlocal` or `global`), which may have run at any time."""
        return [
            each for each in self.bindings if each.statement is not None and not self._is_own(each.statement)
        ]

    def _is_own(self, statement: Statement) -> bool:
        scope = statement.scope
        return scope.kind == "module" if self._owner is None else scope is self._owner

    def _of(self, statement: Statement) -> list[Binding]:
        return self._by_statement.get(statement, [])

    @cached_property
    def _by_statement(self) -> dict[Statement, list[Binding]]:
        found: dict[Statement, list[Binding]] = {}
        for binding in self.bindings:
            if binding.statement is not None and self._is_own(binding.statement):
                found.setdefault(binding.statement, []).append(binding)
        return found

    @cached_property
    def _sketch(self) -> _Sketch:
        outside = [each for each in self.bindings if each.statement is None]
        return _Sketch(self._name, self._by_statement, outside, self._place)


class _Sketch:
    """A sketch of one scope's code: the parts that concern one name."""

    def __init__(
        self,
        name: str,
        by_statement: Mapping[Statement, list[Binding]],
        outside: list[Binding],
        place: Callable[[Statement], int],
    ) -> None:
        self._name = name
        self._own = by_statement
        self._place = place
        self._inside: dict[Statement, None] = {}
        roots: list[Statement] = []
        for statement in by_statement:
            for each in statement.path():
                if each.scope is not statement.scope or each in self._inside:
                    break
                self._inside[each] = None
                if each.parent is None or each.parent.scope is not each.scope:
                    roots.append(each)
        self._nodes: dict[Statement, ast.stmt] = {}
        self._bindings: dict[ast.AST | None, list[Binding]] = {None: outside}
        # The positions in a block's sketch: the start of the block, then after each element.
        self._blocks: dict[_Block, tuple[list[int], list[ast.stmt]]] = {}
        roots.sort(key=self._place)
        code = self._block(roots, (roots[0].parent, roots[0].branch) if roots else (None, "body"))
        self._end = code[-1]
        self._before: dict[ast.stmt, Reached] = {}
        self._behind: dict[ast.stmt, Reached] = {}
        if all(
            isinstance(each, ast.Assign) and each is not root.node
            for root, each in zip(roots, code[1:], strict=True)
        ):
            self._follow_in_order(code)
        else:
            self._follow(code)

    def _follow_in_order(self, code: list[ast.stmt]) -> None:
        """Record the bindings for straight-line code in which each statement binds the name: no graph is
        needed.
        """
        reaching = frozenset({Definition(self._name, None)} if self._bindings[None] else ())
        for node in code:
            self._before[node] = reaching
            if node in self._bindings:
                reaching = frozenset({Definition(self._name, node)})
            self._behind[node] = reaching

    def _follow(self, code: list[ast.stmt]) -> None:
        cfg = build(code, swallows=may_suppress)
        outside = {self._name} if self._bindings[None] else ()
        reaching = Definitions(cfg, outside=outside, only={self._name})
        for _, block in self._blocks.values():
            for node in block:
                self._before[node], self._behind[node] = reaching.before(node), reaching.after(node)
        cfg.dissolve()

    def bindings_before(self, statement: Statement) -> dict[Binding, None]:
        """The bindings that may hold at the start of a statement, nearest first."""
        return self._known(self._reaching(statement), self._position(statement))

    def bindings_at_end(self) -> dict[Binding, None]:
        """The bindings that may hold when control falls off the end of the code."""
        return self._known(self._behind[self._end], ())

    def _reaching(self, statement: Statement) -> Reached:
        """The bindings that reach a statement; none in a sketch of other code."""
        for each in statement.path():
            node = self._nodes.get(each)
            if node is not None:
                return self._before[node]
            places, nodes = self._blocks.get((each.parent, each.branch), ((), ()))
            if nodes:
                return self._behind[nodes[bisect_left(places, self._place(each))]]
        return frozenset()

    def _known(self, reaching: Reached, at: tuple[int, ...]) -> dict[Binding, None]:
        found = [binding for each in reaching for binding in self._bindings[each.node]]
        placed = [(self._position(each.statement) if each.statement else (), each) for each in found]
        # Those after the place reach it through a loop.
        placed.sort(key=lambda each: (bool(at) and each[0] >= at, [-place for place in each[0]]))
        return dict.fromkeys(each for _, each in placed)

    def _position(self, statement: Statement) -> tuple[int, ...]:
        return tuple(self._place(each) for each in statement.path())[::-1]

    # The sketch

    def _block(self, statements: Iterable[Statement], key: _Block) -> list[ast.stmt]:
        # A caught exception may occur before and after each binding.
        caught = any(isinstance(each.node, _CATCHING) for each in (key[0].path() if key[0] else ()))
        value = ast.Name("_", ast.Load()) if caught else ast.Constant(None)
        statements = list(statements)
        code: list[ast.stmt] = [ast.Expr(value), *(self._sketched(each, value) for each in statements)]
        self._blocks[key] = [self._place(each) for each in statements], code
        return code

    def _sketched(self, statement: Statement, value: ast.expr) -> ast.stmt:
        node, own = statement.node, self._own.get(statement, [])
        if isinstance(node, COMPOUND):
            node = self._compound(statement, own)
        elif own and (isinstance(node, _BINDING) or _is_target(node, own[-1])):
            own = own[-1:]
            node = ast.Assign([ast.Name(self._name, ast.Store())], value)
        elif not own and isinstance(node, ast.Return | ast.Raise):
            node = ast.Return() if isinstance(node, ast.Return) else ast.Raise()
        self._nodes[statement] = node
        self._bindings[node] = own
        return node

    def _compound(self, statement: Statement, own: list[Binding]) -> ast.stmt:
        """A compound statement with its own head, and the sketches of its blocks."""
        blocks = {name: self._inner(statement, name) for name, block in statement.branches.items() if block}
        node = statement.node
        changed = {"body": blocks.get("body"), "orelse": blocks.get("orelse", [])}
        changed["finalbody"] = blocks.get("finally", [])
        parts: dict[str, list[ast.AST]] = {}
        for field, branch in (("handlers", "except"), ("cases", "case")):
            for number, part in enumerate(getattr(node, field, ())):
                copy = _copied(part, body=blocks[f"{branch} {number}"])
                head = {part, *ast.walk(part.pattern)} if isinstance(part, ast.match_case) else {part}
                head.update(ast.walk(part.guard) if getattr(part, "guard", None) is not None else ())
                self._bindings[copy] = [each for each in own if each.target in head]
                parts.setdefault(field, []).append(copy)
        found = _copied(node, **changed, **parts)
        assert isinstance(found, ast.stmt)
        return found

    def _inner(self, statement: Statement, branch: str) -> list[ast.stmt]:
        jumping = statement.scope.facts.once(_with_jumps)
        block = statement.branches[branch]
        return self._block(
            [each for each in block if each in self._inside or each in jumping], (statement, branch)
        )


def _place_of(top_index: Mapping[Statement, int], statement: Statement) -> int:
    """The place of a statement in its block, or in its file."""
    return statement.index if statement.parent is not None else top_index[statement]


def _copied(node: ast.AST, **changed: object) -> ast.AST:
    """A copy of a node with some of its fields changed, if it has them."""
    fields = {field: changed.get(field, getattr(node, field, None)) for field in node._fields}
    return kind_of(node)(**fields)


def _with_jumps(facts: ChunkSyntax) -> set[Statement]:
    """The statements of a chunk that are jumps, or contain one that leaves their own function."""
    found: set[Statement] = set()
    for statement in facts.statements:
        if isinstance(statement.node, _JUMPS):
            for each in statement.path():
                if each.scope is not statement.scope or each in found:
                    break
                found.add(each)
    return found


def _is_target(node: ast.stmt, binding: Binding) -> bool:
    """Return whether a name is the target of an assignment, but not of a `:=` that may not be evaluated."""
    if not isinstance(node, ast.Assign):
        return False
    return any(binding.target is part for target in node.targets for part in ast.walk(target))


def _is_inline(binding: Binding) -> bool:
    """Return whether a statement may read its own binding: by `:=`, or as one of several managers."""
    node = binding.statement.node if binding.statement is not None else None
    if isinstance(node, ast.With | ast.AsyncWith) and binding.kind == "context":
        return len(node.items) > 1
    is_target = isinstance(node, (ast.AnnAssign, *_BINDING)) or (
        node is not None and _is_target(node, binding)
    )
    return binding.kind == "value" and not is_target


def may_suppress(item: ast.withitem) -> bool:
    """Return whether a manager is known to suppress exceptions, by the last part of its name."""
    node = item.context_expr
    return isinstance(node, ast.Call) and last_name(node.func) in _SUPPRESSING
