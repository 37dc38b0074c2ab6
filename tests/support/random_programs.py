"""Random programs with every kind of control flow, and traces of their runs.

`random_program` creates a function of one parameter, the oracle `c`, which decides at run time the outcomes
of tests, failures, and the suppression by managers of a `with`.  `run` runs an instrumented copy and returns
its trace, in terms of the original's nodes.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

NAMES = ("u", "v", "w", "x")
SHARED = "z"
"""A name that is declared global where it is used."""

_STEPS = 120


def parsed(text: str) -> ast.expr:
    """Parse a text as an expression."""
    made = ast.parse(text, mode="eval").body
    assert isinstance(made, ast.expr)
    return made


class _Maker:
    def __init__(self, rng: random.Random, size: int) -> None:
        self.rng = rng
        self.size = size
        self.functions: list[str] = []
        self.generators: list[str] = []
        self.count = 0

    def program(self) -> ast.FunctionDef:
        body: list[ast.stmt] = []
        if self.rng.random() < 0.2:
            body.append(ast.Global([SHARED]))
        for name in NAMES:
            if self.rng.random() < 0.9:
                body.append(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(1)))
        while self.size > 0:
            body += self.block(0, False)
        tree = ast.Module([_function("program", body, "c")], [])
        text = ast.unparse(ast.fix_missing_locations(tree))
        made = ast.parse(text).body[0]
        assert isinstance(made, ast.FunctionDef)
        return made

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def value(self) -> ast.expr:
        pick = self.rng.random()
        if pick < 0.2:
            return ast.Constant(1)
        if pick < 0.45:
            return parsed(self.name())
        if pick < 0.6:
            return parsed(f"c.op({self.name()})")
        if pick < 0.66:
            return parsed(f"{self.name()} if c.flip() else c.op({self.name()})")
        if pick < 0.72:
            return parsed(f"c.flip() and ({self.name()} := c.op({self.name()}))")
        if pick < 0.77:
            return parsed(f"[{self.name()} for _ in c.turns()]")
        if pick < 0.81:
            return parsed(f"[({self.name()} := c.op(i)) for i in c.turns()]")
        if pick < 0.85:
            return parsed(f"sum(c.number({self.name()}) for _ in c.turns())")
        if pick < 0.88 and self.generators:
            return parsed(f"next({self.rng.choice(self.generators)}, 0)")
        if pick < 0.94 and self.functions:
            return parsed(f"{self.rng.choice(self.functions)}()")
        if pick < 0.96:
            return parsed(f"c.call(lambda: {self.name()})")
        return parsed("c.op()")

    def test(self) -> ast.expr:
        pick = self.rng.random()
        if pick < 0.6:
            return parsed("c.flip()")
        if pick < 0.8:
            return parsed(f"c.flip({self.name()})")
        if pick < 0.9:
            return parsed(f"c.flip() or c.flip({self.name()})")
        return parsed(f"not ({self.name()} := c.flip())")

    def assignment(self, name: str) -> ast.stmt:
        pick = self.rng.random()
        store = ast.Name(name, ast.Store())
        if pick < 0.75:
            return ast.Assign([store], self.value())
        if pick < 0.85:
            both: list[ast.expr] = [store, ast.Name(self.name(), ast.Store())]
            return ast.Assign(
                [ast.Tuple(both, ast.Store())], ast.Tuple([self.value(), self.value()], ast.Load())
            )
        if pick < 0.92:
            return ast.Assign([store, ast.Name(self.name(), ast.Store())], self.value())
        return ast.AugAssign(store, ast.Add(), ast.Constant(1))

    def block(self, depth: int, in_loop: bool) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for _ in range(self.rng.randint(1, 3)):
            self.size -= 1
            if depth < 4 and self.rng.random() < 0.45:
                made += self.compound(depth + 1, in_loop)
            else:
                made += self.simple(depth, in_loop)
        return made

    def simple(self, depth: int, in_loop: bool) -> list[ast.stmt]:
        pick = self.rng.random()
        if depth == 0 and 0.54 <= pick < 0.7:
            pick = 0.4 * self.rng.random()
        if pick < 0.4:
            return [self.assignment(self.name())]
        if pick < 0.5:
            return [ast.Expr(self.value())]
        if pick < 0.54:
            return [ast.Pass()]
        if pick < 0.58:
            return [ast.Assert(self.test(), None)]
        if pick < 0.62:
            return [ast.Raise(parsed(self.rng.choice(["KeyError", "c.failure()"])), None)]
        if pick < 0.64:
            return [ast.Expr(parsed("c.stop()"))]
        if pick < 0.7:
            return [ast.Return(self.value() if self.rng.random() < 0.6 else None)]
        if pick < 0.78 and in_loop:
            return [ast.Break()]
        if pick < 0.86 and in_loop:
            return [ast.Continue()]
        if pick < 0.88:
            return [ast.Delete([ast.Name(self.name(), ast.Del())])]
        if pick < 0.9:
            return ast.parse(f"import math as {self.name()}").body
        if pick < 0.92:
            return ast.parse(f"class {self.fresh('K')}:\n    field = {self.name()}").body
        if pick < 0.94:
            name = self.fresh("g")
            self.generators.append(name)
            return ast.parse(f"{name} = ({self.name()} for _ in c.turns())").body
        return self.function()

    def function(self) -> list[ast.stmt]:
        name = self.fresh("f")
        read, bound = self.name(), self.name()
        called = (
            f"\n    {self.rng.choice(self.functions)}()" if self.functions and self.rng.random() < 0.3 else ""
        )
        text = self.rng.choice(
            [
                f"def {name}():\n    return c.op({read}){called}",
                f"def {name}():\n    nonlocal {bound}\n    {bound} = c.op({read}){called}",
                f"{name} = lambda: {read}",
                f"def {name}():{called or chr(10) + '    pass'}\n    return {read}\nc.keep({name})",
            ]
        )
        self.functions.append(name)
        return ast.parse(text).body

    def compound(self, depth: int, in_loop: bool) -> list[ast.stmt]:
        pick = self.rng.random()

        def inside(loop: bool = in_loop) -> list[ast.stmt]:
            return self.block(depth, loop)

        def maybe(loop: bool = in_loop) -> list[ast.stmt]:
            return self.block(depth, loop) if self.rng.random() < 0.4 else []

        if pick < 0.25:
            return [ast.If(self.test(), inside(), maybe())]
        if pick < 0.38:
            test = ast.Constant(True) if self.rng.random() < 0.3 else self.test()
            return [ast.While(test, inside(True), maybe())]
        if pick < 0.52:
            target = ast.Name(self.name(), ast.Store())
            return [ast.For(target, parsed("c.turns()"), inside(True), maybe())]
        if pick < 0.66:
            items = [
                ast.withitem(
                    parsed(f"c.manager({self.name()})" if self.rng.random() < 0.4 else "c.manager()"),
                    ast.Name(self.name(), ast.Store()) if self.rng.random() < 0.5 else None,
                )
                for _ in range(self.rng.choice([1, 1, 2]))
            ]
            return [ast.With(items, inside())]
        if pick < 0.78:
            cases = [ast.match_case(ast.MatchValue(ast.Constant(0)), None, inside())]
            if self.rng.random() < 0.6:
                guard = self.test() if self.rng.random() < 0.6 else None
                pattern = ast.MatchSequence([ast.MatchAs(None, self.name())])
                cases.append(ast.match_case(pattern, guard, inside()))
            if self.rng.random() < 0.6:
                cases.append(ast.match_case(ast.MatchAs(), None, inside()))
            return [ast.Match(parsed("c.subject()"), cases)]
        handlers = []
        for kind in ("KeyError", "ValueError"):
            if self.rng.random() < 0.5:
                name = self.name() if self.rng.random() < 0.4 else None
                handlers.append(ast.ExceptHandler(ast.Name(kind, ast.Load()), name, inside()))
        if self.rng.random() < 0.2:
            handlers.append(ast.ExceptHandler(None, None, inside()))
        final = inside() if not handlers or self.rng.random() < 0.5 else []
        return [ast.Try(inside(), handlers, maybe() if handlers else [], final)]


def _function(name: str, body: list[ast.stmt], *parameters: str) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    made = ast.parse(f"def {name}(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = arguments, body
    return made


def random_program(seed: int, size: int = 14) -> ast.FunctionDef:
    """Return the function for a seed, as valid Python."""
    rng = random.Random(seed)
    while True:
        made = _Maker(rng, size).program()
        try:
            compile(ast.Module([made], []), "<program>", "exec")
        except SyntaxError:  # such as `nonlocal` of a name that the function does not bind
            continue
        return made


@dataclass
class Token:
    """A value, with the node that bound it to a name."""

    by: ast.AST
    trace: Trace

    def __add__(self, other: Token) -> Token:
        self.trace.log("write", other.by, getattr(other, "name", ""))
        return other


@dataclass
class Event:
    """A step of a run.

    `start` and `behind` of a statement, `read` of a name at a node with its binding, and `write` of a name.
    """

    kind: str
    node: ast.AST | None
    name: str = ""
    by: ast.AST | None = None


class _Over(BaseException):
    pass


class _Failure(ValueError):
    pass


@dataclass
class Trace:
    """The functions that an instrumented program calls, and the trace they record."""

    nodes: list[ast.AST]
    events: list[Event] = field(default_factory=list)
    over: bool = False
    outcome: str = ""

    def log(self, kind: str, node: ast.AST | None, name: str = "", by: ast.AST | None = None) -> None:
        if not self.over:
            self.events.append(Event(kind, node, name, by))

    def start(self, at: int) -> None:
        if len(self.events) > _STEPS:
            self.over = True
            raise _Over
        self.log("start", self.nodes[at])

    def behind(self, at: int) -> None:
        self.log("behind", self.nodes[at])

    def read(self, name: str, at: int, value: Any) -> Any:
        by = value.by if isinstance(value, Token) else getattr(value, "_by", None)
        self.log("read", self.nodes[at] if at >= 0 else None, name, by)
        return value

    def bound(self, at: int, names: str, value: Any) -> Any:
        for name in names.split():
            self.log("write", self.nodes[at], name)
        return Token(self.nodes[at], self)

    def added(self, at: int, name: str) -> Token:
        made = Token(self.nodes[at], self)
        made.name = name  # type: ignore[attr-defined]
        return made

    def caught(self, at: int, name: str, error: BaseException) -> None:
        self.log("write", self.nodes[at], name)
        error._by = self.nodes[at]  # type: ignore[attr-defined]

    def iterated(self, at: int, name: str, values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            yield self.bound(at, name, value)

    def captured(self, at: int, name: str, subject: Any) -> Any:
        if isinstance(subject, list):
            return [Token(self.nodes[at], self) for _ in subject]
        return subject

    def entered(self, at: int, name: str, manager: Any) -> Any:
        manager.on_enter = lambda: self.bound(at, name, None)
        return manager


class _Manager:
    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.on_enter: Callable[[], Any] = lambda: None

    def __enter__(self) -> Any:
        self.oracle.op()
        return self.on_enter()

    def __exit__(self, kind: type | None, _error: object, _traceback: object) -> bool:
        if kind is _Over:
            return False
        self.oracle.op()
        return self.oracle.rng.random() < 0.5


class Oracle:
    """An oracle that decides the outcomes of tests, and failures."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kept: list[Any] = []

    def op(self, *_values: Any) -> Any:
        pick = self.rng.random()
        if pick < 0.03:
            raise KeyError
        if pick < 0.06:
            raise ValueError
        if self.kept and pick > 0.85:
            return self.rng.choice(self.kept)()
        return 1

    def number(self, _value: Any) -> int:
        return 1

    def flip(self, *_values: Any) -> bool:
        return self.rng.random() < 0.5

    def turns(self) -> Iterator[int]:
        yield from range(self.rng.randint(0, 3))
        self.op()

    def subject(self) -> Any:
        return self.rng.choice([0, [1], 2])

    def manager(self, *_values: Any) -> _Manager:
        return _Manager(self)

    def failure(self) -> Exception:
        return self.rng.choice([KeyError(), ValueError()])

    def stop(self) -> None:
        raise SystemExit

    def keep(self, function: Any) -> None:
        self.kept.append(function)

    def call(self, function: Any) -> Any:
        return function()


def run(program: ast.FunctionDef, seed: int) -> Trace:
    """Run a program once, with decisions from the seed."""
    nodes = list(ast.walk(program))
    instrumented = _Instrument(program, nodes).made
    trace = Trace(nodes)
    space: dict[str, Any] = {"h": trace, SHARED: 0}
    exec(compile(ast.fix_missing_locations(ast.Module([instrumented], [])), "<program>", "exec"), space)
    try:
        space["program"](Oracle(random.Random(seed)))
        trace.outcome = "returned"
    except _Over:
        trace.outcome = "over"
    except BaseException:
        trace.outcome = "raised"
    if trace.over:
        trace.outcome = "over"
    return trace


class _Instrument(ast.NodeTransformer):
    """Adds the calls of a trace to a copy of a program."""

    def __init__(self, program: ast.FunctionDef, nodes: list[ast.AST]) -> None:
        self.made = copy.deepcopy(program)
        self._index = {id(twin): index for index, twin in enumerate(ast.walk(self.made))}
        self._at = 0
        self._binding = 0
        self.made.body = self._block(self.made.body)

    def _hook(self, name: str, *values: Any) -> Any:
        arguments: list[ast.expr] = [
            value if isinstance(value, ast.expr) else ast.Constant(value) for value in values
        ]
        return ast.Call(ast.Attribute(ast.Name("h", ast.Load()), name, ast.Load()), arguments, [])

    def _block(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in block:
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                made.append(node)
                continue
            at = self._index[id(node)]
            made += [
                ast.Expr(self._hook("start", at)),
                *self._statement(node, at),
                ast.Expr(self._hook("behind", at)),
            ]
        return made

    def _value(self, node: ast.expr, at: int, binding: int = -1) -> ast.expr:
        """An expression that is evaluated at a node; its value may be bound to another name."""
        outer = self._at, self._binding
        self._at, self._binding = at, at if binding < 0 else binding
        made: ast.expr = self.visit(node)
        self._at, self._binding = outer
        return made

    def _statement(self, node: ast.stmt, at: int) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for index, (target, value) in enumerate(zip(targets, values, strict=True)):
                    values[index] = self._hook("bound", at, _names([target]), self._value(value, at))
            case ast.Assign(targets=targets, value=ast.Lambda()):
                node.value = self._value(node.value, at)
                before.append(ast.Expr(self._hook("bound", at, _names(targets), ast.Constant(0))))
            case ast.Assign(targets=targets, value=value):
                if isinstance(value, ast.GeneratorExp):
                    node.value = self._value(value, at)
                else:
                    node.value = self._hook("bound", at, _names(targets), self._value(value, at))
            case ast.AugAssign(target=ast.Name(id=name)):
                before.append(ast.Expr(self._hook("read", name, at, ast.Name(name, ast.Load()))))
                node.value = self._hook("added", at, name)
            case ast.If() | ast.While():
                node.test = self._value(node.test, at)
                node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            case ast.For(target=ast.Name(id=name)):
                node.iter = self._hook("iterated", at, name, self._value(node.iter, at))
                node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            case ast.With():
                for item in node.items:
                    item.context_expr = self._value(item.context_expr, self._index[id(item)])
                    if isinstance(item.optional_vars, ast.Name):
                        name = item.optional_vars.id
                        item.context_expr = self._hook("entered", at, name, item.context_expr)
                node.body = self._block(node.body)
            case ast.Match():
                node.subject = self._value(node.subject, at)
                for case in node.cases:
                    here = self._index[id(case)]
                    noted: list[ast.stmt] = []
                    match case.pattern:
                        case ast.MatchSequence(patterns=[ast.MatchAs(name=str(name))]):
                            node.subject = self._hook("captured", here, name, node.subject)
                            hook = self._hook("bound", here, name, ast.Constant(0))
                            if case.guard is not None:
                                guard = self._value(case.guard, self._index[id(case.guard)], here)
                                case.guard = ast.BoolOp(ast.And(), [hook, guard])
                            else:
                                noted = [ast.Expr(hook)]
                        case _ if case.guard is not None:
                            case.guard = self._value(case.guard, self._index[id(case.guard)], here)
                    case.body = noted + self._block(case.body)
            case ast.Try():
                for handler in node.handlers:
                    noted = []
                    if handler.name:
                        name, here = handler.name, self._index[id(handler)]
                        noted = [ast.Expr(self._hook("caught", here, name, ast.Name(name, ast.Load())))]
                    handler.body = noted + self._block(handler.body)
                node.body, node.orelse = self._block(node.body), self._block(node.orelse)
                node.finalbody = self._block(node.finalbody)
            case ast.Delete(targets=[ast.Name(id=name)]):
                pass
            case ast.FunctionDef():
                node.body = [self._inner(each, at) for each in node.body]
            case ast.ClassDef():
                node.body = [self._value(each, at) for each in node.body]  # type: ignore[arg-type,misc]
            case ast.Import(names=[ast.alias(asname=str(name))]):
                before.append(ast.Expr(self._hook("bound", at, name, ast.Constant(0))))
            case _:
                self._at = self._binding = at
                self.generic_visit(node)
        return [*before, node]

    def _inner(self, node: ast.stmt, at: int) -> ast.stmt:
        """A statement of an inner function: its reads are not at a statement of the program."""
        if isinstance(node, ast.Assign):
            node.value = self._hook("bound", at, _names(node.targets), self._value(node.value, -1))
            return node
        outer, self._at = self._at, -1
        made: ast.stmt = self.generic_visit(node)  # type: ignore[assignment]
        self._at = outer
        return made

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in NAMES:
            return ast.copy_location(self._hook("read", node.id, self._at, node), node)  # type: ignore[no-any-return]
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        value: ast.expr = self.visit(node.value)
        node.value = self._hook("bound", self._binding, node.target.id, value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self._value(node.body, -1)
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        node.elt = self._value(node.elt, -1)
        return node


def _names(targets: Sequence[ast.AST]) -> str:
    return " ".join(each.id for each in targets if isinstance(each, ast.Name))
