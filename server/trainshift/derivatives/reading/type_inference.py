"""Infers the kinds of expressions: numbers, arrays, containers, functions."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.reading.kinds import ANY, Kind
from trainshift.derivatives.tables.table_numpy import METHODS, STILL_METHODS
from trainshift.python.rewrite import terms

# Functions of NumPy and TensorFlow whose value is an array, and no number.
_MAKING = frozenset(
    ["zeros", "ones", "empty", "eye", "arange", "linspace", "array", "full", "stack", "concatenate", "vstack",
     "hstack", "outer", "diag", "zeros_like", "ones_like", "empty_like", "full_like", "tril", "triu", "tile"]
)  # fmt: skip
# Functions of both whose value is a list of arrays.
_PARTING = frozenset(("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack"))
# Methods of arrays whose value may be a number.
_REDUCING = frozenset(["sum", "mean", "prod", "max", "min", "std", "var", "dot", "trace", "item"])
# What gives the keys of a dict, or one of them.
_OF_KEYS = frozenset(
    f"builtins.{each}" for each in ("list", "tuple", "sorted", "reversed", "max", "min", "enumerate", "set")
)


class KindReader:
    """Tells the kinds of expressions of one function, and learns kinds from how they are used."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.module = function.whole.module

    def value(self, node: ast.expr) -> bool:
        """Whether the value of an expression is varied."""
        raise NotImplementedError

    @contextmanager
    def inside(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[None]:
        """Where the variables of a comprehension are its own, whatever else has their names."""
        kinds = self.function.kinds
        names = terms.names_bound([each.target for each in node.generators])
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        outside = {each: kinds.pop(each, None) for each in names}
        for each in names:
            kinds[each] = kinds.setdefault(f"{each} of {place}", Kind())
        yield
        for each, kind in outside.items():
            if kind is None:
                del kinds[each]
            else:
                kinds[each] = kind

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        raise NotImplementedError

    def _index(self, base: Kind, index: ast.expr) -> Kind:
        if isinstance(index, ast.Slice):
            return _another(base)
        if isinstance(index, ast.Tuple) and not base.has("dict"):
            base.tell("array")
            return base if any(isinstance(each, ast.Slice) for each in index.elts) else base.element()
        if isinstance(index, ast.Constant) and isinstance(index.value, int | str):
            if isinstance(index.value, str):
                base.tell("dict")
            return base.element(index.value)
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            return base.element()
        return base.element()

    def _may_be_list(self, source: ast.expr, target: ast.expr | None = None) -> bool:
        """Whether the function asks what something like a dict is, and goes through no keys of it."""
        asked = ("builtins.isinstance", "builtins.hasattr")
        source = terms.copied(source)
        inside = [each for node in self.function.body for each in terms.walk(node)]
        calls = [
            each for each in inside if isinstance(each, ast.Call) and self.function.dotted(each.func) in asked
        ]
        if not any(terms.same(terms.copied(each.args[0]), source) for each in calls):
            return False
        element = ast.Subscript(source, terms.copied(target), ast.Load()) if target else source
        return target is None or not any(
            isinstance(each, ast.Subscript) and terms.same(terms.copied(each), element) for each in inside
        )

    def _is_key(self, base: ast.expr, index: ast.expr) -> bool:
        """Whether an index is one of what comes when its container is gone through, so that this is a dict:
        elements that have a derivative are no places."""
        match index:
            case ast.Name(name):
                match self._given_once(name):
                    case ast.Assign([ast.Name(_)], ast.Call() | ast.Subscript() as value):
                        return self._is_key(base, value)
                    case ast.For(target, source) | ast.comprehension(target, source):
                        return self._lists(_behind(name, target, source), base)
            case ast.Subscript(listed, place) if not isinstance(place, ast.Slice):
                return self._lists(listed, base)
            case ast.Call(ast.Name("min" | "max"), [listed]):
                return self._lists(listed, base)
        return False

    def _lists(self, node: ast.expr | None, base: ast.expr) -> bool:
        """Whether a value has what comes when a container is gone through, in whatever order."""
        match node:
            case ast.Call(ast.Name("sorted" | "list" | "tuple" | "reversed"), [inner]):
                return self._lists(inner, base)
            case ast.Subscript(inner, ast.Slice()):
                return self._lists(inner, base)
            case ast.Name(name) if not terms.same(node, base):
                match self._given_once(name):
                    case ast.Assign([ast.Name(_)], ast.Call(ast.Name("sorted" | "list" | "tuple"), [inner])):
                        return terms.same(inner, base)
        return node is not None and terms.same(node, base)

    def _given_once(self, name: str) -> ast.AST | None:
        """The one statement or loop that gives a variable its value, if there is but one."""
        given = self.function.assignments(name) if name not in self.function.params else ()
        return given[0] if len(given) == 1 else None

    def target(self, node: ast.Call) -> Function | None:
        """The function of the file that a call means, if it names one."""
        if not isinstance(node.func, ast.Name):
            return None
        name = node.func.id
        owner = self.function.owner(name)
        if owner is not None:
            return owner.nested.get(name)
        return self.whole.function(name) if name in self.module.functions else None

    def given_to_library(self, node: ast.expr) -> set[int]:
        """What is given to a function of a library or a method and is of a library, too, as `float` in
        `dtype=float`: it is no function that is called."""
        if not isinstance(node, ast.Call) or self.target(node) is not None:
            return set()
        dotted = self.function.dotted(node.func)
        if dotted == "builtins.dict" or (dotted is None and getattr(node.func, "attr", "") != "astype"):
            return set()
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        values = [each.value if isinstance(each, ast.keyword) else each for each in given]
        types = [
            dotted == "builtins.isinstance" or self.function.dotted(each) in self.whole.rows
            for each in values
        ]
        return {id(each) for each, known in zip(given, types, strict=True) if known}

    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression."""
        match node:
            case ast.Name(name):
                if self.function.owner(name) is None:
                    return self._global(name)
                return self.function.kind(name)
            case ast.Constant():
                return Kind("scalar") if terms.is_number(node) else Kind()
            case ast.BinOp():
                return self._operation(node)
            case ast.UnaryOp():
                kind = self.kind(node.operand)
                kind.tell("number")
                return kind
            case ast.IfExp():
                kind = self.kind(node.body)
                kind.unify(self.kind(node.orelse))
                return kind
            case ast.Subscript():
                base = self.kind(node.value)
                base.tell("box")
                known = base.has("list", "tuple", "array", "dict") or not isinstance(node.value, ast.Name)
                if not known and self.value(node.value) and self._is_key(node.value, node.slice):
                    base.tell("dict")
                return self._index(base, node.slice)
            case ast.Attribute("T"):
                self.kind(node.value).tell("array")
                return Kind("array", "number")
            case ast.Tuple():
                made = Kind("tuple")
                for place, each in enumerate(node.elts):
                    made.element(place).unify(self.kind(each))
                return made
            case ast.List():
                made = Kind("list")
                made.element(ANY)
                for each in node.elts:
                    made.element(ANY).unify(self.kind(each))
                return made
            case ast.Dict() | ast.Call(ast.Name("dict"), []):
                made = Kind("dict")
                for key, each in terms.entries(node) or ():
                    at: Hashable = key.value if isinstance(key, ast.Constant) else ANY
                    made.element(at).unify(self.kind(each))
                return made
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node)
                made = Kind("dict" if isinstance(node, ast.DictComp) else "list")
                with self.inside(node):
                    made.element().unify(
                        self.kind(node.value if isinstance(node, ast.DictComp) else node.elt)
                    )
                return made
            case ast.Call():
                return self._call_kind(node)
            case ast.Lambda():
                return Kind("function")
        return Kind()

    def in_place(self, node: ast.AugAssign) -> bool:
        """Whether an augmented assignment of a variable changes an array that others see."""
        kind = self.kind(node.target)
        if not self._is_seen(node.target) or kind.has("list", "tuple", "dict"):
            return False
        # Where a list would do as well, going back asks whether it is one.
        joins = isinstance(node.op, ast.Add) or (isinstance(node.op, ast.Mult) and not self.value(node.value))
        return kind.has("array") or (kind.has("box") and (self.whole.reverse or not joins))

    def added_to(self, node: ast.stmt) -> bool:
        """Whether what may be an array is added to where others see it: in forward mode its tangent is, too,
        so that they have the same other names."""
        if not (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub)):
            return False
        target, kind = node.target, self.kind(node.target)
        if self.whole.reverse or self.whole.tensors or not self.whole.arrays or not kind.arrayish:
            return False
        if isinstance(target, ast.Subscript):
            return not self.kind(target.value).has("array")
        return kind.has("box") and not kind.has("array") and self._is_seen(target)

    def _is_seen(self, target: ast.expr) -> bool:
        """Whether an array that a variable has may have another name."""
        if not isinstance(target, ast.Name) or not self.whole.arrays or self.whole.tensors:
            return False
        function = self.function
        inside = (terms.names_read(each.node) for each in function.nested.values())
        own = target.id in function.local and target.id not in function.params
        return not own or target.id in function.shown or any(target.id in each for each in inside)

    def by_part(self, node: ast.BinOp, left: Kind, right: Kind) -> bool:
        """Whether a list or tuple is added or multiplied part by part: the other operand is an array."""
        found = False
        for part, own, times, other in (
            (node.left, left, node.right, right),
            (node.right, right, node.left, left),
        ):
            if not own.has("list", "tuple") or other.has("list", "tuple", "dict"):
                continue
            times_it = isinstance(node.op, ast.Mult)
            one = isinstance(part, ast.List | ast.Tuple) and not part.elts[1:]
            if times_it and self.whole.arrays and not one and self.value(times):
                # No count is differentiated by, but where a list of one element is made so long.
                other.tell("computed")
            found |= other.has("array", "computed") or (times_it and other.has("box"))
        return found

    def _operation(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        computed = ["computed"] if left.has("array", "computed") or right.has("array", "computed") else []
        if isinstance(node.op, ast.Add | ast.Mult) and self.by_part(node, left, right):
            return Kind("number", "array")
        for part, kind, times in ((node.left, left, node.right), (node.right, right, node.left)):
            listed = kind.has("list", "tuple") and not self.value(times)
            if isinstance(node.op, ast.Mult) and (listed or isinstance(part, ast.List | ast.Tuple)):
                return _new_list(kind)
        if isinstance(node.op, ast.Add) and (left.has("list", "tuple") or right.has("list", "tuple")):
            if left.has("list") or right.has("list"):
                left.tell("list")
                right.tell("list")
                return _new_list(left, right)
            left.unify(right)
            return left
        real = isinstance(node.op, ast.Sub | ast.Div | ast.Pow) or (
            isinstance(node.op, ast.Mult) and (self.value(node.left) and self.value(node.right))
        )
        if real:
            for each, kind in ((node.left, left), (node.right, right)):
                kind.tell("real")
                # Only arrays can be calculated with part by part.
                if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice):
                    self.kind(each.value).tell("array", "number")
        if isinstance(node.op, ast.MatMult):
            left.tell("array")
            right.tell("array")
        if not isinstance(node.op, ast.Add):
            left.tell("number")
            right.tell("number")
            return Kind("number", *computed, *(["real"] if real else []))
        for one, other in ((left, right), (right, left)):
            if other.has("number", "scalar") and not one.has("list", "tuple"):
                one.tell("number", *other.words & {"real"})
        words = (left.words | right.words) & {"number", "real"}
        return Kind(*words, *computed) if words else Kind()

    def _call_kind(self, node: ast.Call) -> Kind:
        target = self.target(node)
        if target is not None:
            return target.value
        if isinstance(node.func, ast.Name) and self.function.owner(node.func.id):
            return self._value_of(node)
        dotted = self.function.dotted(node.func)
        first = node.args[0] if node.args else None
        if dotted is not None and self.module.has_operators(node.func):
            return Kind("object")
        if dotted is None and isinstance(node.func, ast.Attribute):
            base = self.kind(node.func.value)
            match node.func.attr:
                case "copy":
                    return _another(base)
                case "get" | "setdefault":
                    base.tell("box")
                    made = base.element() if first is None else self._index(base, first)
                    for other in node.args[1:]:
                        made.unify(self.kind(other))
                    return made
                case "pop":
                    base.tell("box", "changed")
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        base.tell("dict")
                    return base.element()
                case "items" | "values" | "keys" as view:
                    base.tell("box", "dict")
                    return self._view(view, base)
            if node.func.attr not in METHODS | STILL_METHODS:
                # One of texts, or of lists.
                return Kind()
            base.tell("array")
            return Kind("number") if node.func.attr in _REDUCING else Kind("number", "array")
        match dotted:
            case (
                "builtins.list" | "builtins.tuple" | "builtins.dict" | "builtins.reversed" | "builtins.sorted"
            ):
                made = Kind("list" if dotted == "builtins.sorted" else dotted.partition(".")[2])
                if first is not None and not self.gives_keys(node, dotted):
                    kind = self.kind(first)
                    kind.tell("box")
                    pairs = dotted == "builtins.dict" and kind.has("list")
                    made.element().unify(kind.element().element(1) if pairs else kind.element())
                return made
            case "builtins.zip" | "builtins.enumerate" | "builtins.range":
                return Kind("list")
            case "builtins.sum" | "builtins.max" | "builtins.min" if first is not None and (
                len(node.args) == 1 or dotted == "builtins.sum"
            ):
                kind = self.kind(first)
                kind.tell("box")
                return Kind() if self.gives_keys(node, dotted) else kind.element()
        if (dotted and dotted.startswith("numpy.")) or (dotted and dotted.startswith("tensorflow.")):
            self.whole.arrays = True
            self.whole.tensors = self.whole.tensors or dotted.startswith("tensorflow.")
            last = dotted.rpartition(".")[2]
            # A count has no derivative.
            computed = self.value(node) and last not in _PARTING
            return Kind("number", "array" if last in _MAKING else "computed" if computed else "number")
        row = self.whole.rows.get(dotted or "")
        if row and row.elementwise:
            for each in node.args:
                self.kind(each).tell("number")
            return Kind("number")
        return Kind("number") if dotted in ("builtins.float", "builtins.int", "builtins.len") else Kind()

    def _view(self, view: str, base: Kind) -> Kind:
        """The kind of a view of a dict."""
        made = Kind("list")
        if view == "values":
            made.element().unify(base.element())
        elif view == "items":
            pair = made.element()
            pair.tell("tuple")
            pair.element(0)
            pair.element(1).unify(base.element())
        return made

    def gives_keys(self, node: ast.Call, dotted: str | None) -> bool:
        """Whether a call gives the keys of a dict, or one of them."""
        if dotted not in _OF_KEYS or len(node.args) != 1:
            return False
        first = node.args[0]
        if not isinstance(first, ast.Name | ast.Subscript) or not self.kind(first).has("dict"):
            return False
        return dotted == "builtins.sorted" or not self._may_be_list(first)

    def _global(self, name: str) -> Kind:
        """The kind of what a name of the file means."""
        if name not in self.module.functions:
            return Kind()
        made = Kind("function")
        if name in self.whole.functions:
            made.tell_function(self.whole.functions[name])
        return made

    def _value_of(self, node: ast.Call) -> Kind:
        """The kind of what a call of a function gives that is a value."""
        known = self.known(node)
        for each in known[1:]:
            known[0].value.unify(each.value)
        return known[0].value if known else Kind()

    def known(self, node: ast.Call) -> list[Function]:
        """The functions that a called value is known to be."""
        known = self.kind(node.func).functions
        return [each for each in self.whole.escaping() if each in known and each.takes(node)]

    def possible(self, node: ast.Call) -> list[Function]:
        """The functions that a called value may be: all that take its arguments, where none is known."""
        return self.known(node) or [each for each in self.whole.escaping() if each.takes(node)]


def _behind(name: str, target: ast.expr, source: ast.expr) -> ast.expr | None:
    """What a variable of a loop goes through."""
    match target, source:
        case ast.Name(), _:
            return source
        case ast.Tuple(targets), ast.Call(ast.Name("zip"), parts):
            pairs = list(zip(targets, parts, strict=False))
        case ast.Tuple([_, each]), ast.Call(ast.Name("enumerate"), [part, *_]):
            pairs = [(each, part)]
        case _:
            return None
    return next((part for each, part in pairs if isinstance(each, ast.Name) and each.id == name), None)


def _new_list(*parts: Kind) -> Kind:
    """The kind of a list or tuple that is made of others, whose elements it has."""
    made = Kind("tuple" if parts[0].has("tuple") and not parts[0].has("list") else "list")
    for each in parts:
        made.element().unify(each.element())
    return made


def _another(base: Kind) -> Kind:
    """The kind of a copy: the same elements, changed by itself."""
    made = Kind(*(base.words - {"changed"}), "box")
    made.element().unify(base.element())
    return made
