"""Which variables are active, of what kind they are, and which functions are reached."""

from __future__ import annotations

import ast
from keyword import iskeyword
from collections.abc import Iterable, Mapping, Sequence

from trainshift.derivatives import table, terms
from trainshift.derivatives.kinds import ANY, Kind
from trainshift.derivatives.module import Module
from trainshift.derivatives.normal import OneExit

Rows = Mapping[str, table.Row]
# Methods of containers that give an element or the container's elements; those that change it are below.
READING = frozenset(("get", "pop", "copy", "items", "values", "keys", "setdefault"))
CHANGING = frozenset(("append", "extend", "insert", "update"))
# Attributes that have no derivative.
FACTS = frozenset(("shape", "ndim", "size", "dtype"))


class Function:
    """A function that is differentiated: its statements in the form that the mode wants, and what is known of it."""

    def __init__(self, node: ast.FunctionDef, parent: Function | None, whole: Analysis) -> None:
        self.node = node
        self.name = node.name
        self.parent = parent
        self.whole = whole
        arguments = node.args
        self.params = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.foreign: set[str] = set()
        for each in _own(node.body):
            if isinstance(each, ast.Nonlocal):
                self.foreign.update(each.names)
        self.local = (set(self.params) | terms.names_bound(node.body)) - self.foreign
        self.used = set(whole.module.names) | _identifiers(node)
        if parent is not None:
            self.used |= parent.written
        self.written = set(self.used)
        self.result = ""
        self.body = list(node.body)
        self.kinds: dict[str, Kind] = {}
        self.value = Kind()
        self.varied: set[str] = set()
        self.useful: set[str] = set()
        self.returns = False
        self.escapes = False
        self.nested: dict[str, Function] = {}
        if whole.reverse:
            self.result = self._result()
            self.body = OneExit(self.result, self.fresh).body(self.body)
            self.local |= terms.names_bound(self.body) - self.foreign

    def _result(self) -> str:
        free = [each for each in ("value", "result", "output") if each not in self.used]
        found = free[0] if free else self.fresh("value")
        self.used.add(found)
        return found

    def fresh(self, base: str) -> str:
        """A name that nothing in the outermost function has yet: the base, or with the next free number."""
        found, number = base, 0
        while found in self.used or found in self.whole.module.functions or iskeyword(found):
            number += 1
            found = f"{base}{number}" if base == "t" else f"{base}_{number}"
        self.used.add(found)
        return found

    def temporary(self) -> str:
        """t1, t2, …"""
        number = 1
        while f"t{number}" in self.used:
            number += 1
        self.used.add(f"t{number}")
        return f"t{number}"

    def owner(self, name: str) -> Function | None:
        """The function whose variable a name is, None for a global one."""
        found: Function | None = self
        while found is not None and name not in found.local:
            found = found.parent
        return found

    def kind(self, name: str) -> Kind:
        """The kind of a variable."""
        owner = self.owner(name) or self
        return owner.kinds.setdefault(name, Kind())

    def active(self, name: str) -> bool:
        """Whether a variable is active."""
        owner = self.owner(name)
        return owner is not None and name in owner.varied and name in owner.useful

    def captured(self) -> list[str]:
        """The active variables of functions around this one that it reads, sorted."""
        if self.parent is None:
            return []
        places: dict[str, tuple[int, int]] = {}
        for each in ast.walk(self.node):
            if isinstance(each, ast.Name) and each.id not in self.local and self.owner(each.id):
                place = (getattr(each, "lineno", 0), getattr(each, "col_offset", 0))
                places[each.id] = min(place, places.get(each.id, place))
        own = sorted(places, key=lambda name: (places[name], name))
        return [each for each in own if self.active(each) and not self.kind(each).has("function")]


def _identifiers(node: ast.AST) -> set[str]:
    """All names in a function."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(name) | ast.arg(name) | ast.FunctionDef(name=name):
                found.add(name)
    return found


def _own(statements: Iterable[ast.stmt]) -> Iterable[ast.AST]:
    """All nodes of statements without those of functions in them."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


class Analysis:
    """All functions that a derivative needs, and a fixed point of what is active in them.

    `wrt` are the parameters of the function at `start` that are differentiated by.
    """

    def __init__(self, module: Module, start: str, wrt: Sequence[str], rows: Rows, reverse: bool) -> None:
        self.module = module
        self.rows = rows
        self.reverse = reverse
        self.used: set[str] = set()
        self.functions: dict[str, Function] = {}
        self.unknown: dict[tuple[int, int], tuple[ast.AST, str]] = {}
        self.arrays = False
        self.start = self.function(start)
        self.start.varied.update(wrt)
        self.settle()

    def function(self, name: str) -> Function:
        """A function of the file, read when it is first asked for."""
        if name not in self.functions:
            self.functions[name] = Function(self.module.functions[name], None, self)
        return self.functions[name]

    def settle(self) -> None:
        """Works out anew what is active and of what kind, until nothing changes."""
        while True:
            before = self._state()
            for function in list(self.every()):
                Reader(function).read()
            if self._state() == before:
                break
        self.arrays = (
            self.arrays
            or self._may_be_arrays()
            or any(each.has("array") for function in self.every() for each in function.kinds.values())
        )

    def _may_be_arrays(self) -> bool:
        """Whether arrays may be given to functions that name none: a file with NumPy, and nothing of one number."""
        if not {"numpy", "tensorflow"} & set(self.module.imports.values()):
            return False
        for function in self.every():
            for statement in function.body:
                for node in ast.walk(statement):
                    if isinstance(node, ast.If | ast.While | ast.IfExp):
                        return False
                    if isinstance(node, ast.Call) and (self.module.dotted(node.func) or "").startswith(
                        "math."
                    ):
                        return False
        return True

    def _state(self) -> object:
        return [
            (len(each.varied), len(each.useful), each.returns, each.escapes, len(each.kinds),
             sum(len(kind.words) for kind in each.kinds.values()), len(each.value.words))
            for each in self.every()
        ]  # fmt: skip

    def every(self) -> Iterable[Function]:
        """All functions, each before those inside it."""
        waiting = list(self.functions.values())[::-1]
        while waiting:
            function = waiting.pop()
            yield function
            waiting.extend(list(function.nested.values())[::-1])

    def escaping(self) -> list[Function]:
        """The functions that are used as values."""
        return [each for each in self.every() if each.escapes]


class Reader:
    """Reads the statements of one function once: activity goes forward and use backward, as far as they come."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.module = function.whole.module

    def read(self) -> None:
        """One pass over the function."""
        function = self.function
        if function.result:
            function.useful.add(function.result)
            function.kind(function.result).unify(function.value)
            function.returns = function.result in function.varied
        for each in function.params:
            if function.kind(each).has("changed"):
                function.useful.add(each)
        if function.parent is not None:
            function.useful |= function.foreign
        self._block(function.body)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                active = self.value(node.value)
                kind = self.kind(node.value)
                for target in node.targets:
                    self._assigned(target, active, kind, node.value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                self._assigned(node.target, self.value(node.value), self.kind(node.value), node.value)
            case ast.AugAssign():
                joined = ast.BinOp(terms.copied(node.target), node.op, node.value)
                self._assigned(node.target, self.value(joined), self.kind(joined), joined)
            case ast.For():
                active = self.value(node.iter)
                self._iterated(node.target, node.iter, active)
                self._block(node.body)
                self._block(node.orelse)
            case ast.While() | ast.If():
                self.value(node.test)
                self._tested(node.test)
                self._block(node.body)
                self._block(node.orelse)
            case ast.Return(value=ast.expr()):
                assert node.value is not None
                self.function.returns |= self.value(node.value)
                self._use(node.value)
                self.function.value.unify(self.kind(node.value))
            case ast.FunctionDef():
                if node.name not in self.function.nested:
                    self.function.nested[node.name] = Function(node, self.function, self.whole)
                self.function.kind(node.name).tell("function")
            case ast.Expr(value=ast.Call()):
                self._called(node.value)
            case _:
                pass

    def _called(self, node: ast.expr) -> None:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr in (*CHANGING, "pop", "sort", "reverse"):
            base, method = node.func.value, node.func.attr
            if self.module.dotted(base) is None:
                root = root_of(base)
                active = any([self.value(each) for each in node.args])
                kind = self.kind(base)
                kind.tell("box", "changed")
                if method in ("append", "insert") and node.args:
                    kind.tell("list")
                    kind.element().unify(self.kind(node.args[-1]))
                elif method in ("extend", "update") and node.args:
                    kind.element().unify(self.kind(node.args[0]).element())
                if root and active:
                    self._vary(root)
                if root and self._is_useful(root):
                    for each in node.args:
                        self._use(each)
                return
        # Whatever is changed by the callee depends on all arguments.
        if self.value(node):
            self._use(node)

    def _tested(self, test: ast.expr) -> None:
        for node in ast.walk(test):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
                if any(isinstance(each, ast.Constant) and each.value is None for each in node.comparators):
                    self.function.kind(node.left.id).tell("optional")
            elif (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.Not)
                and isinstance(node.operand, ast.Name)
            ):
                self.function.kind(node.operand.id).tell("optional")

    def _vary(self, name: str) -> None:
        owner = self.function.owner(name)
        if owner is not None:
            owner.varied.add(name)

    def _is_useful(self, name: str) -> bool:
        owner = self.function.owner(name)
        return owner is not None and name in owner.useful

    def _assigned(self, target: ast.expr, active: bool, kind: Kind, value: ast.expr) -> None:
        match target:
            case ast.Name(name):
                if active:
                    self._vary(name)
                self.function.kind(name).unify(kind)
                if self._is_useful(name):
                    self._use(value)
                elif (root := root_of(value)) and isinstance(value, ast.Subscript | ast.Name):
                    # A change of what is another name for a part changes the whole.
                    if kind.has("changed") and self._is_useful(root):
                        owner = self.function.owner(name)
                        if owner:
                            owner.useful.add(name)
                if kind.has("changed") and isinstance(value, ast.Subscript | ast.Name):
                    root = root_of(value)
                    owner = self.function.owner(name)
                    if root and owner and name in owner.varied:
                        self._vary(root)
            case ast.Tuple() | ast.List():
                kind.tell("box")
                if kind.has("optional"):
                    kind.tell("linked")
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else None
                for place, each in enumerate(target.elts):
                    own = parts[place] if parts and len(parts) == len(target.elts) else value
                    is_active = self.value(own) if parts else active
                    self._assigned(each, is_active, self.kind(own) if parts else kind.element(place), own)
            case ast.Subscript():
                root = root_of(target)
                base = self.kind(target.value)
                base.tell("box", "changed")
                self._index(base, target.slice).unify(kind)
                if root and active:
                    self._vary(root)
                if root and self._is_useful(root):
                    self._use(value)

    def _iterated(self, target: ast.expr, source: ast.expr, active: bool) -> None:
        kind = self.kind(source)
        kind.tell("box")
        match source:
            case ast.Call(func=ast.Name("enumerate"), args=[inner, *_]) if isinstance(target, ast.Tuple):
                self._assigned(target.elts[0], False, Kind("number"), ast.Constant(0))
                self._iterated(target.elts[1], inner, self.value(inner))
            case ast.Call(func=ast.Name("zip")) if isinstance(target, ast.Tuple):
                for each, inner in zip(target.elts, source.args, strict=False):
                    self._iterated(each, inner, self.value(inner))
            case ast.Call(func=ast.Name("reversed" | "list" | "tuple"), args=[inner]):
                self._iterated(target, inner, active)
            case ast.Subscript(value=inner, slice=ast.Slice()):
                self._iterated(target, inner, active)
            case ast.Call(func=ast.Name("range")):
                self._assigned(target, False, Kind("number"), ast.Constant(0))
            case ast.Call(func=ast.Attribute(value=inner, attr="items")) if isinstance(target, ast.Tuple):
                self._assigned(target.elts[0], False, Kind(), ast.Constant(0))
                self._assigned(target.elts[1], active, self.kind(inner).element(), inner)
            case _:
                self._assigned(target, active, kind.element(), source)

    def _index(self, base: Kind, index: ast.expr) -> Kind:
        if isinstance(index, ast.Slice):
            return _another(base)
        if isinstance(index, ast.Tuple):
            base.tell("array")
            return base if any(isinstance(each, ast.Slice) for each in index.elts) else base.element()
        if isinstance(index, ast.Constant) and isinstance(index.value, int | str):
            return base.element(index.value)
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            return base.element()
        return base.element()

    # Use, backward.

    def _use(self, node: ast.expr) -> None:
        """What an expression reads is useful, since the expression is."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                owner = self.function.owner(each.id)
                if owner is not None:
                    owner.useful.add(each.id)
                    if each.id in owner.nested:
                        inner = owner.nested[each.id]
                        for free in ast.walk(inner.node):
                            if isinstance(free, ast.Name):
                                holder = inner.owner(free.id)
                                if holder is not None and holder is not inner:
                                    holder.useful.add(free.id)

    # Activity, forward.

    def value(self, node: ast.expr) -> bool:
        """Whether the value of an expression is varied; notes what calls do to the functions that they call."""
        match node:
            case ast.Name(name):
                owner = self.function.owner(name)
                if owner is None:
                    if name in self.module.functions and name in self.whole.functions:
                        return False
                    return False
                if name in owner.nested:
                    self._escape(owner.nested[name])
                    return self._function_varied(owner.nested[name])
                return name in owner.varied
            case ast.Constant() | ast.JoinedStr() | ast.Lambda():
                return False
            case ast.BinOp():
                left, right = self.value(node.left), self.value(node.right)
                if isinstance(node.op, ast.FloorDiv) or _is_string(node.left):
                    return False
                if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
                    return left
                if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.List):
                    return right
                return left or right
            case ast.UnaryOp():
                return self.value(node.operand) and not isinstance(node.op, ast.Not | ast.Invert)
            case ast.Compare():
                for each in (node.left, *node.comparators):
                    self.value(each)
                return False
            case ast.BoolOp():
                return any([self.value(each) for each in node.values])
            case ast.IfExp():
                self.value(node.test)
                return any([self.value(node.body), self.value(node.orelse)])
            case ast.Subscript():
                return self.value(node.value)
            case ast.Attribute():
                return node.attr not in FACTS and self.module.dotted(node) is None and self.value(node.value)
            case ast.Tuple() | ast.List() | ast.Set():
                return any([self.value(each) for each in node.elts])
            case ast.Dict():
                return any([self.value(each) for each in node.values])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Call():
                return self._call(node)
        return False

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        bound = terms.names_bound([each.target for each in node.generators])
        new = bound - self.function.local
        self.function.local |= new
        for each in node.generators:
            self._iterated(each.target, each.iter, self.value(each.iter))
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        found = any([self.value(each) for each in parts])
        self.function.useful |= bound
        return found

    def _function_varied(self, inner: Function) -> bool:
        """Whether a function has to be differentiated: it captures or is given what varies."""
        if inner.varied & set(inner.params) or inner.returns:
            return True
        for each in ast.walk(inner.node):
            if isinstance(each, ast.Name):
                owner = inner.owner(each.id)
                if owner is not None and owner is not inner and each.id in owner.varied:
                    return True
        return False

    def target(self, node: ast.Call) -> Function | None:
        """The function of the file that a call means, if it names one."""
        if not isinstance(node.func, ast.Name):
            return None
        name = node.func.id
        owner = self.function.owner(name)
        if owner is not None:
            return owner.nested.get(name)
        return self.whole.function(name) if name in self.module.functions else None

    def _call(self, node: ast.Call) -> bool:
        arguments = [*node.args, *(each.value for each in node.keywords)]
        actives = [self.value(each) for each in arguments]
        functions = [self._function_value(each) for each in arguments]
        if isinstance(node.func, ast.Name):
            owner = self.function.owner(node.func.id)
            named = owner.nested.get(node.func.id) if owner else None
            if (
                owner is None
                and node.func.id in self.module.functions
                and node.func.id not in self.module.imports
            ):
                if node.func.id not in self.whole.functions and not any(actives) and not any(functions):
                    return False
                named = self.whole.function(node.func.id)
            if named is not None:
                return self._bind(named, node, actives)
            if owner is not None:
                return self._unknown_function(node, actives)
        elif not isinstance(node.func, ast.Attribute):
            return self._unknown_function(node, actives)
        dotted = self.module.dotted(node.func)
        if dotted is None and isinstance(node.func, ast.Attribute):
            base = node.func.value
            return self.value(base) or (any(actives) and node.func.attr not in READING)
        if dotted in table.CONSTANTS or dotted in self.constants:
            return False
        if isinstance(node.func, ast.Name) and node.func.id in ("_zeros", "_cells"):
            return False
        return any(actives)

    @property
    def constants(self) -> frozenset[str]:
        """Functions of libraries that have no derivative."""
        from trainshift.derivatives.table_numpy import CONSTANTS

        return CONSTANTS

    def _function_value(self, node: ast.expr) -> bool:
        """Whether an argument is a function of the file, which is then known to be used as a value."""
        if not isinstance(node, ast.Name):
            return False
        owner = self.function.owner(node.id)
        if owner is not None:
            inner = owner.nested.get(node.id)
            if inner is not None:
                self._escape(inner)
            return inner is not None or owner.kind(node.id).has("function")
        if node.id in self.module.functions:
            self._escape(self.whole.function(node.id))
            return True
        return False

    def _escape(self, inner: Function) -> None:
        inner.escapes = True

    def _unknown_function(self, node: ast.Call, actives: list[bool]) -> bool:
        self.kind(node.func).tell("function")
        found = any(actives) or self.value(node.func)
        for inner in self.whole.escaping():
            if len(inner.params) < len(node.args):
                continue
            if any(actives):
                inner.varied.update(inner.params)
            for param, each in zip(inner.params, node.args, strict=False):
                inner.kind(param).unify(self.kind(each))
            found = found or inner.returns
        return found

    def _bind(self, named: Function, node: ast.Call, actives: list[bool]) -> bool:
        for (param, argument), active in zip(bound(named, node), actives, strict=False):
            if active:
                named.varied.add(param)
            named.kind(param).unify(self.kind(argument))
            if named.kind(param).has("changed"):
                root = root_of(argument)
                if root and param in named.varied:
                    self._vary(root)
        if any(actives) or self._function_varied(named):
            return named.returns or self._function_varied(named)
        return named.returns

    # Kinds.

    def kind(self, node: ast.expr) -> Kind:
        """The kind of an expression."""
        match node:
            case ast.Name(name):
                if self.function.owner(name) is None:
                    return Kind("function") if name in self.module.functions else Kind()
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
            case ast.Dict():
                made = Kind("dict")
                for key, each in zip(node.keys, node.values, strict=True):
                    place = key.value if isinstance(key, ast.Constant) else ANY
                    made.element(place).unify(self.kind(each))
                return made
            case ast.ListComp() | ast.GeneratorExp():
                self._comprehension(node)
                made = Kind("list")
                made.element().unify(self.kind(node.elt))
                return made
            case ast.DictComp():
                self._comprehension(node)
                made = Kind("dict")
                made.element().unify(self.kind(node.value))
                return made
            case ast.Call():
                return self._call_kind(node)
            case ast.Lambda():
                return Kind("function")
        return Kind()

    def _operation(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        if isinstance(node.op, ast.Mult) and (isinstance(node.left, ast.List) or left.has("list")):
            return left
        if isinstance(node.op, ast.Mult) and isinstance(node.right, ast.List):
            return right
        if isinstance(node.op, ast.Add) and (left.has("list", "tuple") or right.has("list", "tuple")):
            left.unify(right)
            return left
        if isinstance(node.op, ast.MatMult):
            left.tell("array")
            right.tell("array")
        if not isinstance(node.op, ast.Add):
            left.tell("number")
            right.tell("number")
            return Kind("number")
        for one, other in ((left, right), (right, left)):
            if other.has("number", "scalar") and not one.has("list", "tuple"):
                one.tell("number")
        return Kind("number") if left.has("number") or right.has("number") else Kind()

    def _call_kind(self, node: ast.Call) -> Kind:
        target = self.target(node)
        if target is not None:
            return target.value
        if isinstance(node.func, ast.Name) and self.function.owner(node.func.id):
            for inner in self.whole.escaping():
                if len(inner.params) >= len(node.args):
                    return inner.value
            return Kind()
        dotted = self.module.dotted(node.func)
        first = node.args[0] if node.args else None
        if dotted is None and isinstance(node.func, ast.Attribute):
            base = self.kind(node.func.value)
            match node.func.attr:
                case "copy":
                    return _another(base)
                case "get" | "pop" | "setdefault":
                    base.tell("box")
                    return base.element()
                case "items" | "values" | "keys":
                    base.tell("box", "dict")
                    return base
            base.tell("array")
            return Kind("number", "array")
        match dotted:
            case (
                "builtins.list" | "builtins.tuple" | "builtins.dict" | "builtins.reversed" | "builtins.sorted"
            ):
                made = Kind(dotted.partition(".")[2])
                if first is not None:
                    kind = self.kind(first)
                    kind.tell("box")
                    made.element().unify(kind.element())
                return made
            case "builtins.zip" | "builtins.enumerate" | "builtins.range":
                return Kind("list")
            case "builtins.sum" | "builtins.max" | "builtins.min" if (
                len(node.args) == 1 and first is not None
            ):
                kind = self.kind(first)
                kind.tell("box")
                return kind.element()
        if dotted and dotted.startswith("numpy.") or dotted and dotted.startswith("tensorflow."):
            self.whole.arrays = True
            return Kind("number", "array" if dotted.rpartition(".")[2] in _MAKING else "number")
        row = self.whole.rows.get(dotted or "")
        if row and row.elementwise:
            for each in node.args:
                self.kind(each).tell("number")
            return Kind("number")
        return Kind("number") if dotted in ("builtins.float", "builtins.int", "builtins.len") else Kind()


_MAKING = frozenset(("zeros", "ones", "eye", "arange", "array", "full", "stack", "concatenate", "zeros_like"))


def _another(base: Kind) -> Kind:
    """The kind of a copy: the same elements, changed by itself."""
    made = Kind(*(base.words - {"changed"}), "box")
    made.element().unify(base.element())
    return made


def root_of(node: ast.expr) -> str | None:
    """The variable that an expression is a part of."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def bound(named: Function, node: ast.Call) -> list[tuple[str, ast.expr]]:
    """The parameters that a call of a function of the file gives, with their arguments."""
    found = list(zip(named.params, node.args, strict=False))
    return found + [(each.arg, each.value) for each in node.keywords if each.arg]


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)
