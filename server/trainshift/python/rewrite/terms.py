"""Terms: build, copy and simplify parts of the syntax tree, and find the names that they read."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from trainshift.python.rewrite.origins import origin
from trainshift.python.syntax.slotted_ast import kind_of


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def stored(target: ast.expr) -> ast.expr:
    """A copy of an expression as a target of an assignment."""
    made = copied(target)
    for node in walk(made):
        if isinstance(node, ast.Subscript | ast.Attribute):
            node.ctx = ast.Load()
    for node in leaves(made):
        if isinstance(node, ast.Name | ast.Subscript | ast.Attribute | ast.Tuple | ast.List):
            node.ctx = ast.Store()
    return made


def leaves(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the names, elements and attributes that an assignment to a target assigns, with their
    displays.
    """
    yield target
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from leaves(each)


_NO_NAMES: Mapping[str, ast.expr] = {}


def copied(node: ast.expr, names: Mapping[str, ast.expr] = _NO_NAMES) -> ast.expr:
    """A deep copy of an expression for reading, without places; `names` replaces variables by expressions."""
    match node:
        case ast.Name():
            new = names.get(node.id)
            return ast.Name(node.id, ast.Load()) if new is None else copied(new)
        case ast.Constant():
            return node
        case ast.Lambda(args, body):
            own = {each.arg for each in walk(args) if isinstance(each, ast.arg)}
            by_name = [each and copied(each, names) for each in args.kw_defaults]
            defaults = [copied(each, names) for each in args.defaults]
            params = (args.posonlyargs, args.args, args.vararg, args.kwonlyargs)
            arguments = ast.arguments(*params, by_name, args.kwarg, defaults)
            inside = {name: new for name, new in names.items() if name not in own}
            return ast.Lambda(arguments, copied(body, inside))
    made = kind_of(node)()
    for field in node._fields:
        old = getattr(node, field, None)
        if isinstance(old, list):
            setattr(made, field, [_copied(each, names) for each in old])
        else:
            setattr(made, field, _copied(old, names))
    if hasattr(made, "ctx"):
        made.ctx = ast.Load()
    assert isinstance(made, ast.expr)
    return made


def _copied(value: object, names: Mapping[str, ast.expr]) -> object:
    if isinstance(value, ast.expr):
        return copied(value, names)
    if isinstance(value, ast.keyword):
        return ast.keyword(value.arg, copied(value.value, names))
    if isinstance(value, ast.comprehension):
        ifs = [copied(each, names) for each in value.ifs]
        # An assigned name can only be replaced by another name.
        others = {key: each for key, each in names.items() if isinstance(each, ast.Name)}
        target = stored(copied(value.target, others))
        return ast.comprehension(target, copied(value.iter, names), ifs, value.is_async)
    return value


def walk(node: ast.AST) -> list[ast.AST]:
    """The nodes of `ast.walk`, in its order, without contexts and operators, which are two fifths of all
    nodes.
    """
    found = [node]
    for each in found:
        for field in _INSIDE[each.__class__]:
            value = getattr(each, field, None)
            if value.__class__ is list:
                found += [part for part in value if part is not None]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def inside(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all nodes of some code, including inner functions."""
    return (node for each in statements for node in walk(each))


def children(node: ast.AST) -> list[ast.AST]:
    """The direct children of a node, without contexts and operators."""
    found: list[ast.AST] = []
    for field in _INSIDE[node.__class__]:
        value = getattr(node, field, None)
        if value.__class__ is list:
            found += [part for part in value if part is not None]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def own_nodes(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of some code, without those of inner functions."""
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting.extend(children(node))


def uncalled(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The `own_nodes` of some code, without the functions of its calls."""
    nodes = list(own_nodes(statements))
    called = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
    return (each for each in nodes if id(each) not in called)


class _Inside(dict[type[ast.AST], tuple[str, ...]]):
    """The fields with `children` in a class of nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        no_nodes = (
            "ctx",
            "op",
            "ops",
            "attr",
            "arg",
            "id",
            "kind",
            "name",
            "names",
            "type_comment",
            "simple",
        )
        self[kind] = (
            () if kind is ast.Constant else tuple(each for each in kind._fields if each not in no_nodes)
        )
        return self[kind]


_INSIDE = _Inside()


def names_read(node: ast.AST) -> set[str]:
    """All names that are read anywhere in a node."""
    return {each.id for each in walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def names_bound(nodes: Iterable[ast.AST]) -> set[str]:
    """All names that statements or targets assign, without functions and comprehensions."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
            case ast.FunctionDef():
                found.add(node.name)
            case ast.Assign():
                waiting += node.targets
            case ast.AugAssign() | ast.AnnAssign():
                waiting.append(node.target)
            case ast.Tuple() | ast.List():
                waiting += node.elts
            case ast.Starred():
                waiting.append(node.value)
            case ast.For():
                waiting += [node.target, *node.body, *node.orelse]
            case ast.If() | ast.While():
                waiting += [*node.body, *node.orelse]
            case ast.stmt() if not isinstance(node, _BINDING_NOTHING):
                waiting += children(node)
    return found


_BINDING_NOTHING = (ast.Expr, ast.Return, ast.Assert, ast.Raise, ast.Pass, ast.Break, ast.Continue)


def bound_in(node: ast.stmt) -> frozenset[str]:
    """The result of `names_bound` for a statement that does not change, cached."""
    found = origin(node).bound
    if found is None:
        if isinstance(node, ast.If | ast.While | ast.For):
            head = names_bound([node.target]) if isinstance(node, ast.For) else set()
            found = frozenset(head).union(*map(bound_in, [*node.body, *node.orelse]))
        else:
            found = frozenset(names_bound([node]))
        origin(node).bound = found
    return found


def counted(statements: Iterable[ast.AST]) -> tuple[Counter[str], Counter[str]]:
    """The number of reads and of assignments of each name in statements."""
    loads: Counter[str] = Counter()
    stores: Counter[str] = Counter()
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, ast.Name):
                (stores if isinstance(node.ctx, ast.Store) else loads)[node.id] += 1
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                loads[node.target.id] += 1
    return loads, stores


_OPPOSITE: Mapping[type[ast.AST], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def opposite(test: ast.expr) -> ast.expr:
    """The opposite of a condition, in natural notation."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Compare(left, [operator], [right]) if (kind := kind_of(operator)) in _OPPOSITE:
            return ast.Compare(left, [_OPPOSITE[kind]()], [right])
    return ast.UnaryOp(ast.Not(), test)


def same(one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions read the same."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return ast.dump(one) == ast.dump(other)


def entries(node: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """The keys and values of a literal dict expression: `{"a": x}` or `dict(a=x)`."""
    match node:
        case ast.Dict(keys, values):
            return [(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
        case ast.Call(ast.Name("dict"), [], [_, *_]) if all(each.arg for each in node.keywords):
            return [(ast.Constant(each.arg), each.value) for each in node.keywords]
    return None


def is_number(node: ast.expr, value: float | None = None) -> bool:
    """Return whether an expression is a literal number (that one, if given)."""
    found = node.value if isinstance(node, ast.Constant) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return value is None or found == value


def is_float(node: ast.expr) -> bool:
    """Return whether an expression is a literal that is no whole number, with or without a sign."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def constant(value: object) -> ast.expr:
    """A literal."""
    return ast.Constant(value)  # type: ignore[arg-type]


def is_none(variable: str, is_not: bool = False) -> ast.expr:
    """The test of whether a variable is None, or is not."""
    return ast.Compare(name(variable), [ast.IsNot() if is_not else ast.Is()], [constant(None)])


def negated(node: ast.expr) -> ast.expr:
    """The negated expression, with the sign at its first factor."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return ast.BinOp(negated(node.left), node.op, node.right)
    return ast.UnaryOp(ast.USub(), node)


def is_negative(node: ast.expr) -> bool:
    """Return whether the first factor of an expression has a sign that can be removed."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        node = node.left
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _twice(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return ast.BinOp(_twice(node.left), node.op, node.right)
    return ast.BinOp(node, ast.Mult(), constant(2))


def summed(one: ast.expr, other: ast.expr) -> ast.expr:
    """The sum of two terms."""
    if is_negative(other):
        return ast.BinOp(one, ast.Sub(), negated(other))
    if same(one, other):
        return _twice(one)
    return ast.BinOp(one, ast.Add(), other)


def simplified(node: ast.expr) -> ast.expr:
    """A term without factors 1 and double signs, its sign at the first factor."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return negated(simplified(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = simplified(node.left), simplified(node.right)
        if isinstance(node.op, ast.Mult | ast.Div) and is_number(right, 1):
            return left
        if isinstance(node.op, ast.Mult) and is_number(left, 1):
            return right
        if isinstance(node.op, ast.Mult) and is_negative(right):
            return ast.BinOp(negated(left), node.op, negated(right))
        if isinstance(node.op, ast.Sub) and is_negative(right):
            return ast.BinOp(left, ast.Add(), negated(right))
        if isinstance(node.op, ast.Add) and is_negative(right):
            return ast.BinOp(left, ast.Sub(), negated(right))
        return ast.BinOp(left, node.op, right)
    return node


@cache
def parsed(text: str) -> ast.expr:
    """The expression of a text; it is shared, and must not be mutated."""
    return ast.parse(text, mode="eval").body


def call(function: str, *args: ast.expr, **keywords: ast.expr) -> ast.Call:
    """A call of a function by its (dotted) name."""
    return ast.Call(parsed(function), list(args), [ast.keyword(key, each) for key, each in keywords.items()])


def item(base: ast.expr, index: ast.expr) -> ast.expr:
    """An element of a container."""
    return ast.Subscript(copied(base), copied(index), ast.Load())


def display(elements: Iterable[ast.expr]) -> ast.Tuple:
    """A tuple."""
    return ast.Tuple(list(elements), ast.Load())


def assign(target: str | ast.expr, value: ast.expr) -> ast.Assign:
    """An assignment."""
    return ast.Assign([stored(name(target) if isinstance(target, str) else target)], value)


def added(target: str | ast.expr, value: ast.expr, sign: bool = True) -> ast.stmt:
    """`target += value`, or `-=` if the value has a sign."""
    place = stored(name(target) if isinstance(target, str) else target)
    if sign and is_negative(value):
        return ast.AugAssign(place, ast.Sub(), negated(value))  # type: ignore[arg-type]
    return ast.AugAssign(place, ast.Add(), value)  # type: ignore[arg-type]


def same_block(one: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> bool:
    """Return whether a block is the very one that it was."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def inline(definition: ast.FunctionDef) -> ast.FunctionDef:
    """A definition that has no line of its own."""
    origin(definition).is_inline = True
    return ast.fix_missing_locations(ast.copy_location(definition, ast.Pass()))


def with_value(node: ast.stmt, value: ast.expr) -> ast.stmt:
    """A statement with another value."""
    made: ast.stmt
    match node:
        case ast.Assign():
            made = ast.Assign(node.targets, value)
        case ast.AugAssign():
            made = ast.AugAssign(node.target, node.op, value)
        case ast.AnnAssign():
            made = ast.AnnAssign(node.target, node.annotation, value, node.simple)
        case ast.Return():
            made = ast.Return(value)
        case _:
            made = ast.Expr(value)
    return ast.copy_location(made, node)


def with_blocks(node: ast.If | ast.For | ast.While, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.stmt:
    """A copy of a statement with other blocks; the same statement if the blocks are unchanged."""
    if same_block(body, node.body) and same_block(orelse, node.orelse):
        return node
    made: ast.stmt
    if isinstance(node, ast.For):
        made = ast.For(node.target, node.iter, body, orelse)
    else:
        made = (ast.If if isinstance(node, ast.If) else ast.While)(node.test, body, orelse)
    return ast.copy_location(made, node)


def statement(text: str, **values: ast.expr) -> ast.stmt:
    """A statement of its own, with names replaced."""
    node = ast.parse(text).body[0]
    for parent in walk(node):
        for field, old in ast.iter_fields(parent):
            if isinstance(old, ast.Name) and old.id in values:
                new = values[old.id]
                setattr(parent, field, stored(new) if isinstance(old.ctx, ast.Store) else copied(new))
            elif isinstance(old, list):
                for place, each in enumerate(old):
                    if isinstance(each, ast.Name) and each.id in values:
                        new = values[each.id]
                        old[place] = stored(new) if isinstance(each.ctx, ast.Store) else copied(new)
    return node


def rebuilt(expr: ast.expr, new: dict[int, ast.expr]) -> ast.expr:
    """An expression with parts replaced; itself if none is."""
    if id(expr) in new:
        return new[id(expr)]
    if not new:
        return expr
    changed = False
    fields: dict[str, object] = {}
    for field, old in ast.iter_fields(expr):
        fields[field] = _part(old, new)
        changed |= fields[field] is not old
    return made_of(expr, fields) if changed else expr


def rebuilt_arguments(call: ast.Call, new: dict[int, ast.expr]) -> tuple[list[ast.expr], list[ast.keyword]]:
    """The arguments of a call with parts replaced."""
    keywords = [ast.keyword(each.arg, rebuilt(each.value, new)) for each in call.keywords]
    return [rebuilt(each, new) for each in call.args], keywords


def made_of(expr: ast.expr, fields: dict[str, object]) -> ast.expr:
    """Another expression of the same class."""
    made = kind_of(expr)()
    for field, value in fields.items():
        setattr(made, field, value)
    assert isinstance(made, ast.expr)
    return made


def _part(old: object, new: dict[int, ast.expr]) -> object:
    if isinstance(old, ast.expr):
        return rebuilt(old, new)
    if isinstance(old, ast.keyword):
        value = rebuilt(old.value, new)
        return old if value is old.value else ast.keyword(old.arg, value)
    if isinstance(old, ast.comprehension):
        source, tests = rebuilt(old.iter, new), _part(old.ifs, new)
        if source is old.iter and tests is old.ifs:
            return old
        return ast.comprehension(old.target, source, tests, old.is_async)  # type: ignore[arg-type]
    if isinstance(old, list):
        parts = [_part(each, new) for each in old]
        return old if all(a is b for a, b in zip(parts, old, strict=True)) else parts
    return old
