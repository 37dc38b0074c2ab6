"""The control flow of a program: exits from code, calls that never return, and tests that decide."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from trainshift.core.program import Program
from trainshift.python.flow import exits
from trainshift.python.flow.cfg import Cfg, Edge, EdgeKind, Point, Role, reached
from trainshift.python.flow.cfg_builder import build
from trainshift.python.flow.exits import Completions
from trainshift.python.flow.must_run_may_raise import Ends, never_ends
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function, Library, UserInstance
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Scope, Site, Statement
from trainshift.python.syntax.node_classes import FUNCTIONS, LOOPS, WITHS

_EXITS = ("sys.exit", "os._exit", "os.abort", "builtins.exit", "builtins.quit")
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in _EXITS)
_SUPPRESSING = ("contextlib.suppress", "pytest.raises")
_TESTING = (ast.If, ast.While, ast.Match, ast.Assert)
_LEFT = frozenset({exits.FALL, exits.RETURN})


class ControlFlow:
    """The control flow of one program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._graphs: dict[Statement | Script, Cfg] = {}
        self._statements: dict[ast.AST, Statement] = {}
        self._passed: dict[Edge, set[Point]] = {}
        self._repeated: dict[Cfg, frozenset[Point]] = {}

    def dissolve(self) -> None:
        """Free the graphs at once."""
        for cfg in self._graphs.values():
            cfg.dissolve()

    # Facts from the names of the program

    def ends(self, call: ast.Call) -> bool:
        """Return whether a call never returns: it ends the process, or its function always does so
        or raises.
        """
        return call in self._ending

    @property
    def _ends(self) -> Ends:
        """Like `ends`, for code that contains such a call."""
        return self.ends if self._ending else never_ends

    @cached_property
    def _ending(self) -> set[ast.Call]:
        sites = self._script.sites_calling(_LAST_NAMES)
        found = {site.node for site in sites if self._is_exit(site)}
        # Functions that may never return contain such a call, a `raise`, or a loop.
        waiting = [site.scope.function() for site in sites if site.node in found]
        waiting += [
            each.scope.function()
            for each in self._script.statements
            if isinstance(each.node, ast.Raise | ast.While)
        ]
        never: set[Scope] = set()
        while waiting:  # No traversal: more returning calls make it examine a function again.
            function = waiting.pop()
            if function is None or function in never or not self._never_comes_back(function, found):
                continue
            never.add(function)
            for site in self._names.callers(function)[0]:
                callees = self._names.callee(site)
                if all(isinstance(each, Function) and each.scope in never for each in callees):
                    found.add(site.node)
                    waiting.append(site.scope.function())
        return found

    def _is_exit(self, site: Site) -> bool:
        values = self._names.callee(site)
        return bool(values) and all(isinstance(each, Library) and each.name in _EXITS for each in values)

    def _never_comes_back(self, function: Scope, ending: set[ast.Call]) -> bool:
        node = function.node
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or function.is_generator:
            return False
        ends = ending.__contains__ if ending else never_ends
        found = exits.completions(node.body, ends, self.swallows)
        # A method that only raises is abstract, and meant to be overridden.
        return _LEFT.isdisjoint(found) and (function.owner() is None or exits.END in found)

    def swallows(self, item: ast.withitem) -> bool:
        """Return whether the manager of a `with` may suppress exceptions; an unknown library's does not."""
        statement = self._managing.get(item)
        if statement is None:
            return False
        node = item.context_expr
        if isinstance(node, ast.Call):
            site = self._script.site_of(node)
            if self._names.calls(site, *_SUPPRESSING):
                return True
            if any(map(_yields_in_try, self._names.called_functions(site))):
                return True
        for value in self._names.values(node, statement.scope, statement):
            if isinstance(value, UserInstance):
                leave = self._names.function_named(value.scope, "__exit__")
                if leave is not None and any(_may_be_true(each) for each, _ in leave.returns):
                    return True
        return False

    @cached_property
    def _managing(self) -> dict[ast.withitem, Statement]:
        withs = (each for each in self._script.statements if isinstance(each.node, WITHS))
        return {item: each for each in withs for item in getattr(each.node, "items", ())}

    # How blocks complete

    def succeeds(self, block: Sequence[Statement]) -> bool:
        """Return whether a block may end the process successfully: `sys.exit()`, and not `sys.exit(1)`."""
        return any(self._ends_well(each.node, set()) for each in block)

    def _ends_well(self, node: ast.AST, seen: set[Scope]) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Raise) and exits.completions([part]) == {exits.END}:
                if all(map(_is_nothing, getattr(part.exc, "args", ()))):
                    return True
            elif isinstance(part, ast.Call) and self.ends(part):
                site = self._script.site_of(part)
                if self._is_exit(site):
                    if all(map(_is_nothing, part.args)):
                        return True
                    continue
                for function in self._names.called_functions(site):
                    if function not in seen and function.node is not None:
                        seen.add(function)
                        if self._ends_well(function.node, seen):
                            return True
        return False

    def completions(self, block: Sequence[Statement]) -> Completions:
        """Return the ways in which a sequence of statements may complete."""
        return exits.completions([each.node for each in block], self._ends, self.swallows)

    def leaves(self, block: Sequence[Statement]) -> bool:
        """Return whether the code after a block never runs after it."""
        return exits.FALL not in self.completions(block)

    def never_falls(self, statement: Statement, outer: Statement) -> bool:
        """Return whether the code after `outer` never runs after `statement`, which is `outer` or inside it,
        in one iteration.
        """
        cfg = build([outer.node], self._ends, self.swallows)
        passed = reached(cfg.starts(statement.node))
        return not any(edge.source in passed for edge in cfg.ends(outer.node))

    # The graphs of functions, classes, and files

    def graph(self, statement: Statement) -> Cfg:
        """Return the graph of the function, class or file whose own code a statement is part of."""
        top = _topmost(statement)
        key = top.parent or self._script.home(top.scope)
        if key not in self._graphs:
            block, _ = self._script.siblings(top)
            self._note(block)
            self._graphs[key] = build([each.node for each in block], self._ends, self.swallows)
        return self._graphs[key]

    def around(self, statement: Statement) -> Statement | None:
        """Return the definition whose own code a statement is part of; None for the code of a file."""
        return _topmost(statement).parent

    def has_tests(self, statement: Statement) -> bool:
        """Return whether a test occurs in the function, class or file around a statement."""
        scope = statement.scope
        chunks = self._script.home(scope).facts if scope.kind == "module" else ()
        scopes = [facts.module for facts in chunks] or [scope]
        return any(each in each.facts.once(_with_tests) for each in scopes)

    def decisions(self, cfg: Cfg) -> Iterator[tuple[Edge, Occurrence, bool]]:
        """Yield the edges of a graph that start at tests, with the tests and their outcomes."""
        for point in cfg.all:
            for edge in point.out:
                if point.role in (Role.TEST, Role.GUARD) and edge.kind in (EdgeKind.TRUE, EdgeKind.FALSE):
                    test, holds = point.parts[0], edge.kind is EdgeKind.TRUE
                elif isinstance(point.node, ast.Assert) and edge.kind is EdgeKind.FALL:
                    test, holds = point.node.test, True
                else:
                    continue
                assert isinstance(test, ast.expr)
                assert point.node is not None
                statement = self._statements[point.node]
                yield edge, Occurrence(test, statement.scope, statement), holds

    def statements(self, points: Iterable[Point]) -> Iterator[Statement]:
        """Yield the statements that points of a graph belong to, each once."""
        found = (self._statements.get(point.node) for point in points if point.node is not None)
        yield from dict.fromkeys(each for each in found if each is not None)

    def repeats(self, statement: Statement) -> bool:
        """Return whether a loop of its own function may reach a statement again."""
        if not any(isinstance(each.node, LOOPS) for each in _within(statement)):
            return False
        cfg = self.graph(statement)
        if cfg not in self._repeated:
            self._repeated[cfg] = frozenset(
                point
                for edge in cfg.edges
                if edge.back and edge.source in cfg.reachable
                for point in (edge.target, *reached([edge.source], [edge.target], backward=True))
            )
        return not self._repeated[cfg].isdisjoint(cfg.starts(statement.node))

    def avoids(self, statements: Collection[Statement], end: Statement, start: Statement | None) -> bool:
        """Return whether control may reach `end` without passing one of some statements, from `start` on, or
        from the beginning of its function.

        All of them are in one function, or in a file's own code.
        """
        cfg = self.graph(end)
        passed = [point for each in statements for point in cfg.starts(each.node)]
        starts = [cfg.entry] if start is None else cfg.starts(start.node)
        return not reached(starts, passed).isdisjoint(cfg.starts(end.node))

    def _note(self, block: Sequence[Statement]) -> None:
        """Note which statement syntax of a graph belongs to: a statement, a handler or a case."""
        for each in block:
            self._statements[each.node] = each
            if isinstance(each.node, (*FUNCTIONS, ast.ClassDef)):
                continue
            for part in (*getattr(each.node, "handlers", ()), *getattr(each.node, "cases", ())):
                self._statements[part] = each
            for inner in each.branches.values():
                self._note(inner)

    def _beyond(self, edge: Edge) -> set[Point]:
        """Return the points that are reachable along an edge of a test, before it is evaluated again."""
        if edge not in self._passed:
            self._passed[edge] = reached([edge.target], [edge.source])
        return self._passed[edge]

    def deciding(
        self, statement: Statement, is_asked: Callable[[Statement], bool] = lambda outer: True
    ) -> Iterator[tuple[Statement, bool]]:
        """Yield the tests of which only one outcome leads to a statement, nearest first, with the outcome.

        `is_asked` selects the relevant statements. Such a test precedes the statement; there may be other
        paths to it. A test whose other outcome only raises an error does not count, since an error ends
        everything.
        """
        if not self.has_tests(statement):
            return
        cfg = self.graph(statement)
        starts = cfg.starts(statement.node)
        first = min((point.index for point in starts), default=0)
        for point in reversed(cfg.all[:first]):
            node = point.node
            if point.role is not Role.TEST or not isinstance(node, ast.If) or point not in cfg.reachable:
                continue
            ways = {edge.kind: edge for edge in point.out if edge.kind in (EdgeKind.TRUE, EdgeKind.FALSE)}
            if len(ways) < 2 or not is_asked(self._statements[node]):
                continue
            comes = {kind: not self._beyond(edge).isdisjoint(starts) for kind, edge in ways.items()}
            if comes[EdgeKind.TRUE] != comes[EdgeKind.FALSE]:
                other = ways[EdgeKind.FALSE if comes[EdgeKind.TRUE] else EdgeKind.TRUE]
                if not _only_fails(cfg, other, point):
                    yield self._statements[node], comes[EdgeKind.TRUE]


def _within(statement: Statement) -> Iterator[Statement]:
    """A statement and its enclosing ones in the same function, class, or file, the outermost last."""
    around: Statement | None = statement
    while around is not None:
        yield around
        around = around.parent
        if around is not None and isinstance(around.node, (*FUNCTIONS, ast.ClassDef)):
            return


def _topmost(statement: Statement) -> Statement:
    """The outermost enclosing statement in the same function, class, or file."""
    return [*_within(statement)][-1]


def _with_tests(facts: ChunkSyntax) -> set[Scope]:
    """The scopes of a chunk whose own code contains a test: of an `if`, a loop, a case, or an `assert`."""
    return {each.scope for each in facts.statements if isinstance(each.node, _TESTING)}


def _only_fails(cfg: Cfg, edge: Edge, test: Point) -> bool:
    """Return whether an edge of a test leads only to an error that is raised."""
    beyond = reached([edge.target], implicit=False)
    if cfg.exit in beyond or test in beyond or cfg.raised not in beyond:
        return False
    return all(
        isinstance(each.source.node, ast.Assert) or _raises_error(each.source)
        for each in cfg.raised.into
        if each.source in beyond and not each.implicit
    )


def _raises_error(point: Point) -> bool:
    return isinstance(point.node, ast.Raise) and exits.completions([point.node]) == {exits.RAISE}


def _yields_in_try(function: Scope) -> bool:
    """Return whether a generator, as of `contextlib.contextmanager`, handles exceptions where it yields."""
    for _, statement in function.yields:
        for each in statement.path() if statement is not None else ():
            if each.scope.function() is not function:
                break
            if each.parent is not None and getattr(each.parent.node, "handlers", None):
                if each.branch == "body":
                    return True
    return False


def _may_be_true(node: ast.expr | None) -> bool:
    return node is not None and not _is_nothing(node)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value
