"""Active comprehensions, conditionals, lambdas and swaps of elements, moved before the statement."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.expansion.copied_parts import changes_no_copy
from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.list_concat import no_lists
from trainshift.derivatives.reading.reader import Reader
from trainshift.derivatives.reading.side_effects import (
    asked_by,
    asks_length,
    changed_inside,
    keys_named,
    moving,
    once,
    place_told,
    unvaried,
)
from trainshift.derivatives.reading.sources import is_no_part, may_follow
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin

FOLDED = frozenset(("builtins.max", "builtins.min"))
# Calls that take elements in an order, with their known keywords: the order is computed first.
ORDERED = {"builtins.sorted": {"key", "reverse"}, "builtins.max": {"key"}, "builtins.min": {"key"}}


def expand(whole: Analysis) -> None:
    """Rewrite the bodies of all functions, and recompute the active variables."""
    known: dict[Function, set[str]] = {}
    # A lambda becomes a function, whose callees may only then become active.
    while waiting := [each for each in whole.every() if known.get(each) != _active_names(each)]:
        rewritten = False
        for function in waiting:
            known[function] = _active_names(function)
            body = Expander(function).block(function.body)
            rewritten = rewritten or not terms.same_block(body, function.body)
            function.body = body
            function.local |= terms.names_bound(body) - function.foreign
        if rewritten:
            whole.settle()


def _active_names(function: Function) -> set[str]:
    """The active variables of a function in its current form."""
    written = {*function.params, *terms.names_bound(function.node.body)}
    return written & function.varied & function.useful


class Expander:
    """Rewrite one function; `before` are the statements that must precede the current one."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.reader = Reader(function)
        self.before: list[ast.stmt] = []
        self.looped: set[str] = set()
        self.places: set[str] = set()
        self.moved: set[str] = set()
        self.resized: set[str] = set()
        self.asked: dict[int, list[ast.stmt]] = {}
        aliases = function.whole.aliases(function)
        for each in aliases.conflicts():
            active = [aliases.active(name) for name in (each.alias.name, each.alias.other)]
            asks = function.whole.reverse or (each.whole and not self.reader.added_to(each.node))
            asks = asks or (any(active) and not all(active))
            if each.alias.unless and asks:
                self.asked.setdefault(id(each.alias.node), []).append(each.alias.asked())

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements, each after those that must precede it."""
        made: list[ast.stmt] = []
        for node in statements:
            outer, self.before = self.before, []
            new = self._statement(node)
            made.extend(self.before)
            if not isinstance(node, ast.For) and not origin(node).is_expanded:
                made.extend(no_lists(self.function, node))
                made.extend(changes_no_copy(self.reader, node))
            asked = self.asked.get(id(node), ())
            if isinstance(node, ast.AugAssign):
                # Its value may be a number where the old one is an array without axes.
                made.extend(asked)
            made.extend(new)
            if not isinstance(node, ast.For) and not origin(node).is_expanded:
                if not isinstance(node, ast.AugAssign):
                    made.extend(asked)
                for each in new:
                    origin(each).is_expanded = True
            self.before = outer
        return made

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.If() | ast.While():
                return [terms.with_blocks(node, self.block(node.body), self.block(node.orelse))]
            case ast.For():
                outer = self.moved
                if self.function.whole.reverse:
                    self.moved, self.resized = moving(self.reader, node)
                source = self._source(self._sequence(node.iter))
                self.moved = outer
                target, begin = (node.target, []) if origin(node).is_expanded else self._target(node)
                loop = ast.For(target, source, [*begin, *self.block(node.body)], self.block(node.orelse))
                if source is node.iter and target is node.target:
                    if terms.same_block(loop.body, node.body) and terms.same_block(loop.orelse, node.orelse):
                        loop = node
                origin(loop).is_expanded = True
                return [ast.copy_location(loop, node)]
            case ast.Assign(targets=[ast.Name(name)], value=ast.IfExp() as value) if self.reader.value(value):
                return self._choice(node, name, value)
            case ast.Assign(targets=[ast.Name(name)], value=ast.Lambda() as value) if (
                name != self.function.result and self.function.bindings(name) < 2
            ):
                return [self._definition(name, value, node)]
            case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as value) if (
                len(target.elts) == len(value.elts)
                and any(isinstance(each, ast.Subscript) for each in target.elts)
                and (self.reader.value(value) or any(self.reader.value(each) for each in target.elts))
            ):
                held = [self.function.temporary() for _ in value.elts]
                swapped = [
                    terms.assign(place, self._value(each))
                    for place, each in zip(held, value.elts, strict=True)
                ]
                stores = [
                    ast.Assign([each], terms.name(place))
                    for place, each in zip(held, target.elts, strict=True)
                ]
                asked = [
                    is_no_part(place, each)
                    for place, each in zip(held, value.elts, strict=True)
                    if may_follow(self.reader, each, target)
                ]
                return [ast.copy_location(each, node) for each in (*swapped, *asked, *stores)]
            case ast.Assign([ast.Tuple() | ast.List()], value) if self._is_array(value):
                # Its adjoint is also an array.
                return [terms.with_value(node, self._held(value))]
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(base, "pop")) as call) if root_of(base):
                return [self._at_place(node, call, name)]
            case ast.AugAssign(place, ast.Add(), value) if self._lengthens(place):
                extend = ast.Attribute(terms.copied(place), "extend", ast.Load())
                longer = ast.Expr(ast.Call(extend, [self._value(value)], []))
                return [ast.copy_location(longer, node)]
            case ast.AugAssign(ast.Name(name)) if self.reader.in_place(node):
                place = ast.Subscript(terms.name(name), ast.Constant(...), ast.Store())
                return self._statement(ast.copy_location(ast.AugAssign(place, node.op, node.value), node))
            case ast.Assign(targets=[ast.Subscript() as place]) | ast.AugAssign(ast.Subscript() as place) if (
                self.function.active(root_of(place) or "")
                and (root_of(place) in asked_by(place.slice) or any(once(self.reader, place.slice)))
            ):
                return self._placed(node, place)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="pop")) as call):
                return [self._at_place(node, call)]
            case ast.Expr(ast.Call(ast.Attribute(attr="insert")) as call) if (
                told := self._at_place(node, call)
            ) is not node:
                return self._statement(told)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Return():
                if node.value is not None:
                    new = self._value(node.value)
                    if new is not node.value:
                        return [terms.with_value(node, new)]
        return [node]

    def _at_place(self, node: ast.stmt, call: ast.Call, name: str = "") -> ast.stmt:
        """A `pop` or `insert`, perhaps assigned to a variable, at a place that the adjoint pass can read."""
        if not self.function.whole.reverse or self.function.dotted(call.func) is not None:
            return node
        place = place_told(self.reader, call, name)
        if place is None or getattr(call.args[0], "id", "") in self.places:
            return node
        held = self._held(place)
        self.places |= terms.names_read(held)
        return terms.with_value(node, ast.Call(call.func, [held, *call.args[1:]], []))

    def _is_array(self, node: ast.expr) -> bool:
        """Return whether the parts of an active value are those of an array computed here."""
        whole, kind = self.function.whole, self.reader.kind(node)
        if not (whole.reverse and whole.arrays and self.reader.value(node)):
            return False
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.BinOp | ast.UnaryOp) and not kind.has("list", "tuple", "dict")
        return kind.has("array", "computed")

    def _lengthens(self, target: ast.expr) -> bool:
        kind = self.reader.kind(target)
        return self.function.whole.reverse and kind.has("list") and not kind.has("tuple")

    def _placed(self, node: ast.Assign | ast.AugAssign, place: ast.Subscript) -> list[ast.stmt]:
        """A store at a place that the store itself may change: the place is saved first."""
        moved = not isinstance(place.slice, ast.Slice) and root_of(place) in asked_by(place.slice)
        held = self._held(place.slice) if moved else self._told(place.slice)
        target = ast.Subscript(place.value, held, ast.Store())
        made: ast.stmt = ast.Assign([target], node.value)
        if isinstance(node, ast.AugAssign):
            made = ast.AugAssign(target, node.op, node.value)
        return self._statement(ast.copy_location(made, node))

    def _choice(self, node: ast.stmt, name: str, value: ast.IfExp) -> list[ast.stmt]:
        body, other = (
            # Nothing to do if it stays the same.
            []
            if isinstance(each, ast.Name) and each.id == name
            else self.block([ast.copy_location(terms.assign(name, each), node)])
            for each in (value.body, value.orelse)
        )
        made = ast.If(value.test, body, other) if body else ast.If(terms.opposite(value.test), other, [])
        return [ast.copy_location(made if body or other else ast.Expr(value.test), node)]

    def _definition(self, name: str, value: ast.Lambda, node: ast.stmt) -> ast.stmt:
        made = ast.FunctionDef(name, value.args, [ast.Return(value.body)], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def _sequence(self, node: ast.expr, backwards: bool = False) -> ast.expr:
        """The iterable of a loop, with names for active values created there, because their elements have
        adjoints.
        """
        if asks_length(self.reader, node, self.resized):
            return self._held(node)
        match node:
            case ast.Call(ast.Name("list" | "tuple"), [ast.Call(ast.Attribute() | ast.Name("zip"))]) if (
                backwards and self.function.whole.reverse and self.reader.value(node)
            ):
                return self._held(node)
            case ast.Call(func=ast.Name("zip" | "enumerate" | "reversed" | "list" | "tuple" as word)):
                backwards = word == "reversed"
                parts = [self._sequence(each, backwards) for each in node.args]
                return ast.Call(node.func, parts, node.keywords)
            case ast.Call(ast.Attribute(ast.DictComp() | ast.Dict() | ast.Call() as base, word), []) if (
                word in ("items", "values") and self.reader.value(base)
            ):
                return ast.Call(ast.Attribute(self._held(base), word, ast.Load()), [], [])
            case ast.Call(func=ast.Attribute(attr="items" | "values" | "keys")):
                return node
            case ast.Name() | ast.Subscript() if root_of(node) in self.moved and self.reader.value(node):
                held = self._held(terms.call("list", node))
                self.function.sequences |= terms.names_read(held)
                return held
            case ast.List() | ast.Tuple() | ast.BinOp() | ast.Call() | ast.Attribute() | ast.UnaryOp() if (
                self.reader.value(node)
            ):
                return self._held(node)
            case ast.Subscript(slice=ast.Slice(lower, upper, step)) if self._copies(node):
                simple = step is None and (lower is None or terms.is_number(lower))
                return node if simple and root_of(node) and not (backwards and upper) else self._held(node)
        return node

    def _source(self, node: ast.expr) -> ast.expr:
        """The iterable of a loop; views and parallel iteration (`zip`) stay, whatever they contain."""
        match node:
            case ast.Call(ast.Name("zip" | "enumerate" | "reversed" | "list" | "tuple")):
                parts = [self._source(each) for each in node.args]
                same = all(one is other for one, other in zip(parts, node.args, strict=True))
                return node if same else ast.Call(node.func, parts, node.keywords)
        return node if _is_view(node) else self._value(node)

    def _target(self, node: ast.For) -> tuple[ast.expr, list[ast.stmt]]:
        """The target of a loop, and the first statements of its body.

        The reverse pass iterates over the same values again, so a variable that the body sets is renamed, and
        so is one whose source the body may replace.  An active variable gets a count or a key from the loop
        by an assignment.
        """
        match node:
            case ast.For(
                ast.Name(name),
                ast.Call(ast.Name("zip" | "enumerate" as word), args)
                | ast.Call(ast.Attribute(attr="items" as word), args),
            ) if self.reader.value(node.iter) and not any(isinstance(each, ast.Starred) for each in args):
                # Each parallel iterable has its own adjoint.
                size = len(args) if word == "zip" else 2
                parts = [terms.name(self.function.fresh(name)) for _ in range(size)]
                self.function.local |= {each.id for each in parts}
                whole = terms.display(list(parts))
                return terms.stored(whole), [terms.assign(name, whole), *self.asked.get(id(node), [])]
        target = keys_named(self.reader, node)
        own, assigned = terms.names_bound([target]), terms.names_bound(node.body)
        names = own if changed_inside(self.reader, node) else own & assigned
        if not any(map(self.function.active, assigned)):
            names = {each for each in names if self.function.active(each)}
        asked = self.asked.get(id(node), [])
        if self.function.whole.reverse:
            # An expression with an adjoint elsewhere has none here.
            active = filter(self.function.active, unvaried(self.reader, target, node.iter))
            names |= set(filter(self.function.is_given_elsewhere, active))
        if not names or not self.function.whole.reverse:
            return target, asked
        given = {each: terms.name(self.function.fresh(each)) for each in sorted(names)}
        self.function.local |= {each.id for each in given.values()}
        begin = [terms.assign(each, given[each]) for each in given]
        return terms.stored(terms.copied(target, given)), [*begin, *asked]

    # Expressions.

    def _held(self, value: ast.expr) -> ast.expr:
        held = self.function.temporary()
        self.function.local.add(held)
        self.before.extend(self.block([terms.assign(held, value)]))
        return terms.name(held)

    def _copies(self, node: ast.expr) -> bool:
        """Return whether an expression is an active slice of a list, which is a new list."""
        part = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        return part and self.reader.value(node) and not self.reader.kind(node).has("array")

    def _value(self, node: ast.expr) -> ast.expr:
        """An expression with unsupported parts moved before the statement; unchanged if there are none."""
        match node:
            case ast.IfExp() if self.reader.value(node):
                return self._held(node)
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() | ast.SetComp():
                # A function used as a value is represented by its derivative, whatever it captures.
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
                held = self._held(node.value)
                self.function.slices |= dict.fromkeys(terms.names_read(held), ast.unparse(node.value))
                return ast.Subscript(held, node.slice, ast.Load())
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
        return self._children(node)

    def _told(self, index: ast.expr) -> ast.expr:
        """An index, with its calls moved before the statement so that they run once."""
        return terms.rebuilt(index, {id(each): self._held(each) for each in once(self.reader, index)})

    def _of_pairs(self, pairs: ast.expr) -> ast.DictComp:
        key, each = terms.name(self.function.fresh("key")), terms.name(self.function.fresh("each"))
        target = terms.stored(terms.display([key, each]))
        return ast.DictComp(key, each, [ast.comprehension(target, pairs, [], 0)])

    def _got(self, base: ast.expr, key: ast.expr, default: list[ast.expr]) -> ast.expr:
        """Rewrite `d.get(key, default)` as an element, if it exists."""
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
        """Return whether a call selects active elements by an order that is not an active value."""
        dotted = self.function.dotted(node.func) or ""
        given = {each.arg for each in node.keywords}
        ordered = dotted in ORDERED and given <= ORDERED[dotted] and self.reader.value(node)
        return ordered and bool(given or dotted not in FOLDED or self._compares_containers(node))

    def _compares_containers(self, node: ast.Call) -> bool:
        """Return whether a call chooses among containers, of which the whole chosen one is the value."""
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
        """A list of the elements of an iterable that can only be iterated once."""
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
        """Return whether an expression is a library function with a derivative."""
        return self.function.dotted(node) in self.function.whole.rows

    def _named_function(self, node: ast.expr) -> ast.expr:
        """A library function that is used as a value, wrapped in a function of the file."""
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
        """The list or dict of a comprehension, filled by loops."""
        held = self.function.temporary()
        self.function.local.add(held)
        bound = terms.names_bound([each.target for each in node.generators])
        outside = self._elsewhere(node, bound)
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

    def _elsewhere(self, node: ast.expr, bound: set[str]) -> set[str]:
        """The names that the function uses outside a comprehension, which binds some."""
        inside = {id(each) for each in terms.walk(node)}
        found = {
            each.id
            for statement in self.function.body
            for each in terms.walk(statement)
            if isinstance(each, ast.Name) and id(each) not in inside
        }
        found |= self.looped | set(self.function.params)
        self.looped |= bound
        return found


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "values", "keys")
    )
