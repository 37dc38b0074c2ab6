"""Definitions and uses of names in one scope: the reads, bindings, and captures of inner functions at each
point.

A function, a lambda and a generator expression read names of the enclosing scope when they *run*, which may
be later: these names are captured.  A list, set or dictionary comprehension and the body of a class run in
place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from trainshift.python.flow.cfg import Cfg, Point, Role
from trainshift.python.syntax.node_classes import FUNCTIONS

Names = frozenset[str]
NONE: Names = frozenset()

# Calls that exhaust a generator before they return.
_CONSUMERS = frozenset(
    {"all", "any", "dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple", "bytes"}
)
# Calls that may read every name of the scope.
_READS_ALL = frozenset({"locals", "vars", "dir", "eval", "exec"})


class Uses(Struct):
    """The uses of names by code: reads, bindings and deletions in its own scope."""

    read: set[str] = field(default_factory=set)
    bound: dict[str, None] = field(default_factory=dict)
    """The names in text order."""
    captured: set[str] = field(default_factory=set)
    """Names read by inner functions, lambdas and generators, whenever these run."""
    rebound: set[str] = field(default_factory=set)
    """Names bound by inner functions, by `nonlocal` or `global`, whenever these run."""
    declared: set[str] = field(default_factory=set)
    """Declared `global` or `nonlocal` in the scope itself."""
    reads_all: bool = False
    """True if a call such as `locals()` may read every name."""
    binds_any: bool = False
    """True if `from module import *` may bind any name."""


def uses(*nodes: ast.AST | None) -> Uses:
    """Return the uses of names by code, including the bodies of compound statements."""
    found = Uses()
    for node in nodes:
        if node is not None:
            _collect(node, found)
    return found


def names_read(node: ast.AST) -> Names:
    """Return the names of its scope that some code reads, including reads by inner functions."""
    found = uses(node)
    return frozenset(found.read | found.captured)


def names_bound(*nodes: ast.AST | None) -> tuple[str, ...]:
    """Return the names that targets or statements bind in their scope, in text order."""
    return tuple(uses(*nodes).bound)


def point_uses(point: Point) -> Uses:
    """Return the uses of names at one point of a control-flow graph."""
    found = Uses()
    match point.role:
        case Role.CASE:
            _collect(point.parts[0], found)
            found.bound.clear()
        case Role.CAPTURE:
            _collect(point.parts[0], found)
            found.read.clear()
        case Role.CAUGHT:
            name = getattr(point.node, "name", None)
            found.bound.update({name: None} if name else {})
        case _:
            for part in point.parts:
                _collect(part, found)
    return found


def _collect(node: ast.AST, found: Uses) -> None:
    match node:
        case ast.Name(id=name, ctx=context):
            if isinstance(context, ast.Load):
                found.read.add(name)
            elif isinstance(context, ast.Del):
                found.read.add(name)
                found.bound[name] = None
            else:
                found.bound[name] = None
        case ast.AugAssign(target=ast.Name(id=name)):
            found.read.add(name)
            found.bound[name] = None
            _collect(node.value, found)
        case ast.AnnAssign(target=ast.Name(), value=None):
            _collect(node.annotation, found)  # the name binds nothing
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            found.bound[node.name] = None
            for part in (*node.decorator_list, node.args, node.returns):
                if part is not None:
                    _collect(part, found)
            _capture(function_uses(node), found)
        case ast.Lambda():
            _collect(node.args, found)
            _capture(function_uses(node), found)
        case ast.ClassDef():
            _of_class(node, found)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            _of_comprehension(node, found, lazy=isinstance(node, ast.GeneratorExp))
        case ast.Call(func=func, args=[ast.GeneratorExp() as generator]) if _consumes(func):
            _collect(func, found)
            _of_comprehension(generator, found, lazy=False)
            for keyword in node.keywords:
                _collect(keyword, found)
        case ast.Call(func=ast.Name(id=name)) if name in _READS_ALL:
            found.reads_all = True
            _collect_parts(node, found)
        case ast.alias(name=name, asname=alias):
            if name == "*":
                found.binds_any = True
            else:
                found.bound[alias or name.partition(".")[0]] = None
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            found.declared.update(names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            found.bound[name] = None
            _collect_parts(node, found)
        case ast.MatchMapping(rest=str(name)):
            found.bound[name] = None
            _collect_parts(node, found)
        case ast.Constant():
            pass
        case _:
            _collect_parts(node, found)


def _collect_parts(node: ast.AST, found: Uses) -> None:
    for part in ast.iter_child_nodes(node):
        _collect(part, found)


def _consumes(func: ast.expr) -> bool:
    match func:
        case ast.Name(id=name):
            return name in _CONSUMERS
        case ast.Attribute(value=ast.Constant(), attr="join"):
            return True
    return False


def _capture(inner: Uses, found: Uses) -> None:
    found.captured |= inner.read | inner.captured
    found.rebound |= inner.bound.keys() | inner.rebound
    found.reads_all |= inner.reads_all


def function_uses(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Uses:
    """Return the uses of names of outer scopes in a function's body, at the time when it runs."""
    body: Sequence[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else node.body
    own = uses(*body)
    local = (own.bound.keys() | parameters(node.args)) - own.declared
    return Uses(
        read=own.read - local,
        bound={name: None for name in own.bound if name in own.declared},
        captured=own.captured - local,
        rebound=own.rebound - local,
        reads_all=own.reads_all,
    )


def parameters(arguments: ast.arguments) -> set[str]:
    """Return the names of the parameters of a function."""
    return {each.arg for each in all_parameters(arguments)}


def all_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a function, in order, starred ones last."""
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*plain, *(each for each in (arguments.vararg, arguments.kwarg) if each is not None)]


def _of_class(node: ast.ClassDef, found: Uses) -> None:
    for part in (*node.decorator_list, *node.bases, *node.keywords):
        _collect(part, found)
    own = uses(*node.body)
    # Code around the class may read a name of the class before the class binds it; methods never see its
    # names.
    found.read |= own.read
    found.captured |= own.captured
    found.rebound |= own.rebound
    found.bound |= {name: None for name in own.bound if name in own.declared}
    found.reads_all |= own.reads_all
    found.bound[node.name] = None


def _of_comprehension(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, found: Uses, *, lazy: bool
) -> None:
    first, *_ = node.generators
    _collect(first.iter, found)
    inner = Uses()
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    targets = {name for each in node.generators for name in uses(each.target).bound}
    for index, generator in enumerate(node.generators):
        _collect(generator.target, inner)
        for part in (*([generator.iter] if index else []), *generator.ifs):
            _collect(part, inner)
    for part in results:
        _collect(part, inner)
    read = inner.read - targets
    if lazy:
        found.captured |= read
        found.rebound |= inner.bound.keys() - targets
    else:
        found.read |= read
        found.bound |= {name: None for name in inner.bound if name not in targets}  # by `:=`
    found.captured |= inner.captured - targets
    found.rebound |= inner.rebound - targets
    found.reads_all |= inner.reads_all


def surely_bound_at(point: Point, used: Uses) -> Names:
    """Return the names that a point binds whenever it ends without an exception.

    `used` are the uses of names there.
    """
    if not used.bound or point.role is Role.CASE:
        return NONE
    if point.role is Role.CAUGHT or not point.parts:
        return frozenset(used.bound)
    return surely_bound(*point.parts)


def surely_bound(*nodes: ast.AST) -> Names:
    """Return the names that parts of a statement bind whenever they are evaluated completely."""
    return frozenset[str]().union(*map(_surely_bound, nodes))


def _surely_bound(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.AnnAssign(value=None):
            return set()
        case ast.BoolOp(values=values):
            return _surely_bound(values[0])
        case ast.IfExp(test=test):
            return _surely_bound(test)
        case ast.Compare(left=left, comparators=comparators):
            return _surely_bound(left) | _surely_bound(comparators[0])
        case ast.Assert(test=test):
            return _surely_bound(test)
        case ast.Lambda() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
            return set()
        case ast.alias(name=name, asname=alias):
            return set() if name == "*" else {alias or name.partition(".")[0]}
        case ast.MatchOr(patterns=patterns):
            return _surely_bound(patterns[0]) if patterns else set()
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}.union(*map(_surely_bound, ast.iter_child_nodes(node)))
        case ast.MatchMapping(rest=str(name)):
            return {name}.union(*map(_surely_bound, ast.iter_child_nodes(node)))
    return set[str]().union(*map(_surely_bound, ast.iter_child_nodes(node)))


class Closures(Struct, frozen=True):
    """The inner functions of a scope, and the times when they may run.

    A function that is only called by its own name (a `def`, or `name = lambda ...`) runs where that name is
    read.  Any other function may be stored, and run at any time after its definition: it escapes.
    """

    by_name: dict[str, Uses]
    escaping: dict[Point, Uses]
    """The places where escaping functions are created, and their uses of names when they run."""


def closures(cfg: Cfg, uses_at: Mapping[Point, Uses]) -> Closures:
    """Find the inner functions of a graph's code, and those that escape.

    `uses_at` has the uses of names at each point.
    """
    made: dict[str, list[Point]] = {}
    elsewhere: set[Point] = set()
    for point, own in uses_at.items():
        if own.captured or own.rebound or _makes_function(point):
            name = _function_name(point)
            if name is None:
                elsewhere.add(point)
            else:
                made.setdefault(name, []).append(point)
    escaping = {name for name in made if _escapes(name, cfg)}
    by_name: dict[str, Uses] = {}
    for name, points in made.items():
        if name in escaping:
            elsewhere.update(points)
        else:
            by_name[name] = _together(uses_at[point] for point in points)
    # The effects of a function include those of its callees.
    changed = True
    while changed:
        changed = False
        for inner in by_name.values():
            for name in inner.captured & by_name.keys():
                other = by_name[name]
                if not (other.captured <= inner.captured and other.rebound <= inner.rebound):
                    inner.captured |= other.captured
                    inner.rebound |= other.rebound
                    inner.reads_all |= other.reads_all
                    changed = True
    found: dict[Point, Uses] = {}
    for point in elsewhere:
        own = uses_at[point]
        called = _together([own, *(by_name[name] for name in own.captured & by_name.keys())])
        found[point] = called
    return Closures(by_name, found)


def _together(several: Iterable[Uses]) -> Uses:
    found = Uses()
    for each in several:
        found.captured |= each.captured
        found.rebound |= each.rebound
        found.reads_all |= each.reads_all
    return found


def _makes_function(point: Point) -> bool:
    return isinstance(point.node, FUNCTIONS)


def _function_name(point: Point) -> str | None:
    """The name to which a point binds the only function that it defines."""
    match point.node:
        case ast.FunctionDef(name=name, decorator_list=[], args=args):
            return None if _captures(args) or _is_generator(point.node) else name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=args, body=body)):
            return None if _captures(args) or isinstance(body, ast.Yield | ast.YieldFrom) else name
    return None


def _captures(node: ast.AST) -> bool:
    return bool(uses(node).captured)


def _is_generator(function: ast.FunctionDef) -> bool:
    """Return whether calling a function only creates a generator, which runs later."""
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function))


def _escapes(name: str, cfg: Cfg) -> bool:
    """Return whether a function's name is read other than to call it, by the scope or an inner function."""
    seen: set[int] = set()
    for point in cfg.all:
        for part in point.parts:
            if id(part) not in seen:
                seen.add(id(part))
                called = {id(each.func) for each in ast.walk(part) if isinstance(each, ast.Call)}
                for each in ast.walk(part):
                    if isinstance(each, ast.Name) and each.id == name and id(each) not in called:
                        if isinstance(each.ctx, ast.Load):
                            return True
                    if isinstance(each, (ast.Global, ast.Nonlocal)) and name in each.names:
                        return True
    return False
