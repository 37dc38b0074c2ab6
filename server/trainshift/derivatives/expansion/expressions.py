"""Active comprehensions, conditional expressions and lambdas in expressions, moved before the statement."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import once
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS

FOLDED = frozenset(("builtins.max", "builtins.min"))
# What takes elements by an order, with the keywords that are known: the order is worked out first.
ORDERED = {"builtins.sorted": {"key", "reverse"}, "builtins.max": {"key"}, "builtins.min": {"key"}}


class Expressions:
    """Rewrites the expressions of one function; `before` is what has to precede the statement."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.reader = Reader(function)
        self.before: list[ast.stmt] = []
        self.looped: set[str] = set()

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements, with what has to precede each."""
        raise NotImplementedError

    def _held(self, value: ast.expr) -> ast.expr:
        held = self.function.temporary()
        self.function.local.add(held)
        self.before.extend(self.block([terms.assign(held, value)]))
        return terms.name(held)

    def _copies(self, node: ast.expr) -> bool:
        """Whether an expression is an active part of a list, which is a list of its own."""
        part = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        return part and self.reader.value(node) and not self.reader.kind(node).has("array")

    def _value(self, node: ast.expr) -> ast.expr:
        """An expression with what cannot stay in it moved before the statement; itself, where all can
        stay."""
        match node:
            case ast.IfExp() if self.reader.value(node):
                return self._held(node)
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() | ast.SetComp():
                # A function that is a value is its derivative, whatever it captures.
                made = getattr(node, "elt", getattr(node, "value", None))
                return self._loops(node) if self.reader.value(node) or isinstance(made, ast.Lambda) else node
            case ast.Call(ast.Attribute(base, "pop") as place) if self.reader.value(node):
                if not root_of(base):
                    place = ast.Attribute(self._held(base), "pop", ast.Load())
                return self._held(ast.Call(place, node.args, node.keywords))
            case ast.Call(func=ast.Attribute(attr="values"), args=[]) if self.reader.value(node):
                item = self.function.fresh("each")
                through = ast.comprehension(ast.Name(item, ast.Store()), node, [], 0)
                return self._loops(ast.ListComp(terms.name(item), [through]))
            case ast.Subscript() if self.reader.value(node) and any(once(self.reader, node.slice)):
                index = self._children(self._told(node.slice))
                return ast.Subscript(self._value(node.value), index, ast.Load())
            case ast.Call(ast.Attribute(base, "get"), [key, *default]) if self.reader.value(node):
                return self._got(base, key, default)
            case ast.Subscript() if self._copies(node.value):
                return ast.Subscript(self._held(node.value), node.slice, ast.Load())
            case ast.Lambda():
                name = self.function.fresh("function")
                self.function.local.add(name)
                self.before.append(
                    terms.inline(ast.FunctionDef(name, node.args, [ast.Return(node.body)], []))
                )
                return terms.name(name)
            case ast.Call(ast.Name("dict"), [inner]) if self.reader.value(node) and self.reader.kind(
                inner
            ).has("list"):
                return self._loops(self._of_pairs(inner))
            case ast.Call(ast.Name("list" | "tuple"), [inner]) if (
                self.reader.value(node) and (listed := self._listed(inner)) is not inner
            ):
                return self._children(ast.Call(node.func, [listed], []))
            case ast.Call(ast.Call() as made) if self.reader.value(node):
                return self._value(ast.Call(self._held(made), node.args, node.keywords))
            case ast.Call() if self._orders(node):
                return self._in_order(node)
            case ast.Call() if self._folds(node):
                first = node.args[0]
                for each in node.args[1:]:
                    first = ast.Call(node.func, [first, each], [])
                return self._children(first)
            case ast.Name() | ast.Attribute() if self._is_library(node):
                return self._named_function(node)
            case ast.Name() | ast.Constant() | ast.Compare() | ast.BoolOp() | ast.JoinedStr():
                return node
            case ast.Call():
                return self._children(node)
        return self._children(node)

    def _told(self, index: ast.expr) -> ast.expr:
        """An index, with calls in it that are done once moved before the statement."""
        return terms.rebuilt(index, {id(each): self._held(each) for each in once(self.reader, index)})

    def _of_pairs(self, pairs: ast.expr) -> ast.DictComp:
        key, each = terms.name(self.function.fresh("key")), terms.name(self.function.fresh("each"))
        target = terms.stored(terms.display([key, each]))
        return ast.DictComp(key, each, [ast.comprehension(target, pairs, [], 0)])

    def _got(self, base: ast.expr, key: ast.expr, default: list[ast.expr]) -> ast.expr:
        """`d.get(key, default)` is an element where there is one."""
        if root_of(base) is None or any(once(self.reader, base)):
            base = self._held(base)
            self.function.varied |= terms.names_read(base)
        key = self._held(key) if any(once(self.reader, key)) else key
        found = ast.Compare(terms.copied(key), [ast.In()], [terms.copied(base)])
        other = default[0] if default else terms.constant(None)
        return self._held(ast.IfExp(found, ast.Subscript(base, key, ast.Load()), other))

    def _folds(self, node: ast.Call) -> bool:
        if self.function.dotted(node.func) not in FOLDED:
            return False
        return len(node.args) > 2 and not node.keywords and self.reader.value(node)

    def _orders(self, node: ast.Call) -> bool:
        """Whether a call takes active elements by an order that is no value of its own."""
        dotted = self.function.dotted(node.func) or ""
        given = {each.arg for each in node.keywords}
        ordered = dotted in ORDERED and given <= ORDERED[dotted] and self.reader.value(node)
        return ordered and bool(given or dotted not in FOLDED or self._compares_containers(node))

    def _compares_containers(self, node: ast.Call) -> bool:
        """Whether the values that a call chooses from are containers: one of them is the value, whole."""
        kinds = [self.reader.kind(each) for each in node.args]
        return any(each.container for each in ([kinds[0].element()] if len(kinds) == 1 else kinds))

    def _in_order(self, node: ast.Call) -> ast.expr:
        """The elements by their places: `xs[max(range(len(xs)), key=lambda i: f(xs[i]))]`."""
        first = node.args[0] if len(node.args) == 1 else ast.List(node.args, ast.Load())
        values = first if isinstance(first, ast.Name) else self._held(self._listed(first))
        place = self.function.fresh("i")
        element = ast.Subscript(values, terms.name(place), ast.Load())
        others = [each for each in node.keywords if each.arg != "key"]
        by: ast.expr = element
        for each in node.keywords:
            match each.value:
                case ast.Lambda(ast.arguments(args=[ast.arg(name)]), body) if each.arg == "key":
                    by = terms.copied(body, {name: element})
                case value if each.arg == "key":
                    by = ast.Call(value, [element], [])
        arguments = ast.arguments([], [ast.arg(place)], None, [], [], None, [])
        order = ast.Call(
            node.func,
            [terms.call("range", terms.call("len", values))],
            [*others, ast.keyword("key", ast.Lambda(arguments, by))],
        )
        if self.function.dotted(node.func) in FOLDED:
            return ast.Subscript(values, self._held(order), ast.Load())
        through = ast.comprehension(ast.Name(place, ast.Store()), self._held(order), [], 0)
        return self._loops(ast.ListComp(terms.copied(element), [through]))

    def _listed(self, node: ast.expr) -> ast.expr:
        """A list of what goes by itself only through a loop."""
        match node:
            case ast.Call(ast.Name("zip" | "enumerate" | "reversed")) | ast.Call(
                ast.Attribute(attr="values")
            ):
                names = [self.function.fresh("each")]
            case ast.Call(ast.Attribute(attr="items")):
                names = [self.function.fresh("key"), self.function.fresh("each")]
            case _:
                return node
        parts = [terms.name(each) for each in names]
        item = terms.display(list(parts)) if len(parts) > 1 else parts[0]
        return ast.ListComp(item, [ast.comprehension(terms.stored(item), node, [], 0)])

    def _is_library(self, node: ast.expr) -> bool:
        """Whether an expression is a function of a library that has a derivative."""
        return self.function.dotted(node) in self.function.whole.rows

    def _named_function(self, node: ast.expr) -> ast.expr:
        """A function of a library that is used as a value, made a function of the file's own."""
        dotted = self.function.dotted(node) or ""
        rows = self.function.whole.rows
        params = rows.get(f"{dotted}.whole", rows[dotted]).params
        name = self.function.fresh(dotted.rpartition(".")[2])
        arguments = ast.arguments([], [ast.arg(each) for each in params], None, [], [], None, [])
        call = ast.Call(terms.copied(node), [terms.name(each) for each in params], [])
        definition = ast.FunctionDef(name, arguments, [ast.Return(call)], [])
        self.function.local.add(name)
        self.before.append(terms.inline(definition))
        return terms.name(name)

    def _children(self, node: ast.expr) -> ast.expr:
        changed = False
        fields: dict[str, object] = {}
        asis = self.reader.given_to_library(node)
        for field, old in ast.iter_fields(node):
            new: object = old
            called = field == "func" and isinstance(old, ast.Name | ast.Attribute) and self._is_library(old)
            if isinstance(old, ast.expr) and not called:
                new = self._value(old)
                changed |= new is not old
            elif isinstance(old, list):
                items: list[object] = []
                for each in old:
                    if id(each) in asis:
                        items.append(each)
                    elif isinstance(each, ast.expr):
                        items.append(self._value(each))
                    elif isinstance(each, ast.keyword) and each.arg != "key":
                        value = self._value(each.value)
                        items.append(each if value is each.value else ast.keyword(each.arg, value))
                    else:
                        items.append(each)
                    changed |= items[-1] is not each
                new = items
            fields[field] = new
        return ast.copy_location(terms.made_of(node, fields), node) if changed else node

    def _loops(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp | ast.SetComp) -> ast.expr:
        """The list or dict that a comprehension makes, filled by loops."""
        held = self.function.temporary()
        self.function.local.add(held)
        bound = terms.names_bound([each.target for each in node.generators])
        outside = self._elsewhere(node)
        renamed = {each: terms.name(self.function.fresh(each)) for each in sorted(bound & outside)}
        self.function.local |= {each.id for each in renamed.values()} | bound
        if isinstance(node, ast.DictComp):
            place = ast.Subscript(terms.name(held), terms.copied(node.key, renamed), ast.Store())
            inner: ast.stmt = ast.Assign([place], terms.copied(node.value, renamed))
            empty: ast.expr = ast.Dict([], [])
        else:
            inner = ast.Expr(terms.call(f"{held}.append", terms.copied(node.elt, renamed)))
            empty = ast.List([], ast.Load())
        for each in reversed(node.generators):
            for test in reversed(each.ifs):
                inner = ast.If(terms.copied(test, renamed), [inner], [])
            target = terms.stored(terms.copied(each.target, renamed))
            inner = ast.For(target, terms.copied(each.iter, renamed), [inner], [])
        self.before.append(terms.assign(held, empty))
        self.before.extend(self.block([inner]))
        return terms.name(held)

    def _elsewhere(self, node: ast.expr) -> set[str]:
        """The names that the function uses outside a comprehension."""
        inside = {id(each) for each in terms.walk(node)}
        found = {
            each.id
            for statement in self.function.body
            for each in terms.walk(statement)
            if isinstance(each, ast.Name) and id(each) not in inside
        }
        found |= self.looped | set(self.function.params)
        if isinstance(node, COMPREHENSIONS):
            self.looped |= terms.names_bound([each.target for each in node.generators])
        return found
