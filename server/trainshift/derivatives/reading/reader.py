"""Read a function: infer the kinds of its variables and expressions, and which of them are varied
or useful.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from trainshift.derivatives.reading.activity import feed, is_useful, make_useful, use, vary
from trainshift.derivatives.reading.function import CHANGING_METHODS, Function, bound, root_of
from trainshift.derivatives.reading.kinds import ANY, Kind
from trainshift.derivatives.tables import table
from trainshift.derivatives.tables.table_helpers import CONSTANTS as OF_HELPERS
from trainshift.derivatives.tables.table_numpy import CONSTANTS as OF_NUMPY
from trainshift.derivatives.tables.table_numpy import METHODS, STILL_METHODS
from trainshift.derivatives.tables.table_tensorflow import CONSTANTS as OF_TENSORFLOW
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.python.syntax.iteration import Gets, parts_given

# Methods of containers that give an element or the elements; those that change it.
READING = frozenset(("get", "pop", "copy", "items", "values", "keys", "setdefault"))
CHANGING = CHANGING_METHODS - {"pop"}
# Those that mutate it and lose the old value.
LOSING = frozenset(("sort", "reverse", "remove", "clear", "popitem", "setdefault", "fill", "resize"))
# Methods with the same effect on tangents as on values.
JOINT = frozenset(("clear", "reverse"))
# Keywords that only set the order of a sort.
ORDERING = frozenset(("key", "reverse"))
# Attributes that have no derivative.
FACTS = frozenset(("shape", "ndim", "size", "dtype"))
# Functions of NumPy and TensorFlow that return an array, never a number.
_MAKING = frozenset(
    ["zeros", "ones", "empty", "eye", "arange", "linspace", "array", "full", "stack", "concatenate", "vstack",
     "hstack", "outer", "diag", "zeros_like", "ones_like", "empty_like", "full_like", "tril", "triu", "tile"]
)  # fmt: skip
# Functions that return a view of their first argument.
VIEWS = frozenset(
    ["reshape", "ravel", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims", "atleast_1d",
     "atleast_2d", "asarray", "ascontiguousarray", "broadcast_to", "split", "array_split", "diag", "diagonal",
     "flip", "rollaxis", "view", "hsplit", "vsplit", "dsplit", "atleast_3d", "broadcast_arrays"]
)  # fmt: skip
# Functions of both that return a list of arrays.
_PARTING = frozenset(("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack"))
# Methods of arrays whose value may be a number.
_REDUCING = frozenset(["sum", "mean", "prod", "max", "min", "std", "var", "dot", "trace", "item"])
# Functions that return the keys of a dict, or one of them.
_OF_KEYS = frozenset(
    f"builtins.{each}" for each in ("list", "tuple", "sorted", "reversed", "max", "min", "enumerate", "set")
)


class Reader:
    """Reads the statements of one function once, and infers kinds from the uses of expressions."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.module = function.whole.module

    def read(self) -> None:
        """One pass over the function."""
        function = self.function
        function.feeding = {}
        if function.result:
            function.useful.add(function.result)
            function.kind(function.result).unify(function.value)
            function.returns = function.result in function.varied
        for each in function.params:
            if function.kind(each).changes:
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
                if self.kind(node.target).has("list") and not self.kind(node.target).has("tuple"):
                    self.kind(node.target).tell("changed")
                elif self.whole.arrays and self.kind(node.target).has("box") and self._is_added_to(node):
                    # It has elements, and arithmetic applies to it as a whole.
                    self.kind(node.target).tell("array")
                if self.in_place(node) or self.added_to(node):
                    self.kind(node.target).tell("changed")
            case ast.For():
                self._keyed(node.target, node.iter, node.body)
                self.value(node.iter)
                self._iterated(node.target, node.iter)
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
                use(self.function, node.value)
                self.function.value.unify(self.kind(node.value))
            case ast.FunctionDef():
                if node.name not in self.function.nested:
                    self.function.nested[node.name] = Function(node, self.function, self.whole)
                self.function.kind(node.name).tell_function(self.function.nested[node.name])
            case ast.Expr(value=ast.Call()):
                self._called(node.value)
            case ast.Expr():
                self.value(node.value)
            case _:
                pass

    def _is_added_to(self, node: ast.AugAssign) -> bool:
        kind = self.kind(node.target)
        return kind.has("number") and not kind.has("list", "tuple", "dict")

    def _called(self, node: ast.expr) -> None:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr in (*CHANGING, *JOINT, "pop", "sort"):
            base, method = node.func.value, node.func.attr
            if self.function.dotted(base) is None:
                root = root_of(base)
                active = True in [self.value(each) for each in node.args]
                kind = self.kind(base)
                kind.tell("box", "changed")
                if method in ("append", "insert") and node.args:
                    kind.tell("list")
                    kind.element().unify(self.kind(node.args[-1]))
                elif method in ("extend", "update") and node.args:
                    kind.element().unify(self.kind(node.args[0]).element())
                if root and active:
                    vary(self.function, root)
                if root:
                    feed(self.function, root, *node.args)
                    if active and any(map(self._acts, node.args)):
                        use(self.function, terms.name(root))
                return
        # The callee's mutations depend on all arguments.
        if self.value(node):
            use(self.function, node)

    def _tested(self, test: ast.expr) -> None:
        for node in terms.walk(test):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
                if any(isinstance(each, ast.Constant) and each.value is None for each in node.comparators):
                    self.function.kind(node.left.id).tell("optional")
            elif (
                isinstance(node, ast.UnaryOp)
                and isinstance(node.op, ast.Not)
                and isinstance(node.operand, ast.Name)
            ):
                self.function.kind(node.operand.id).tell("optional")

    def _assigned(self, target: ast.expr, active: bool, kind: Kind, value: ast.expr) -> None:
        if active and self._acts(value):
            # The adjoint pass needs mutating calls even if nothing reads their results.
            for name in terms.names_bound([target]) | ({root_of(target)} - {None}):
                make_useful(self.function, name or "")
        match target:
            case ast.Name(name):
                if active:
                    vary(self.function, name)
                self.function.kind(name).unify(kind)
                feed(self.function, name, value)
                if (
                    not is_useful(self.function, name)
                    and (root := root_of(value))
                    and isinstance(value, ast.Subscript | ast.Name)
                ):
                    # A mutation of a view mutates the whole array.
                    if kind.changes and is_useful(self.function, root):
                        make_useful(self.function, name)
                if kind.changes and isinstance(value, ast.Subscript | ast.Name):
                    root = root_of(value)
                    owner = self.function.owner(name)
                    if root and owner and name in owner.varied:
                        vary(self.function, root)
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
                spread = isinstance(target.slice, ast.Slice) and self.whole.arrays and not base.has("list")
                if not spread:
                    # One number may be broadcast to all elements of a slice.
                    self._index(base, target.slice).unify(kind)
                if root and active:
                    vary(self.function, root)
                if root:
                    feed(self.function, root, value)

    def _keyed(self, target: ast.expr, source: ast.expr, body: Sequence[ast.AST]) -> None:
        """Tag as dict a value that is iterated, or tested with `in`, and indexed with these elements."""
        while isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and len(source.args) == 1:
            if source.func.id not in ("sorted", "list", "tuple", "reversed"):
                break
            source = source.args[0]
        kind = self.kind(source)
        if kind.has("list", "tuple", "array", "dict") or isinstance(target, ast.Constant):
            return
        element = ast.Subscript(terms.copied(source), terms.copied(target), ast.Load())
        for each in terms.inside(body):
            if isinstance(each, ast.Subscript) and terms.same(terms.copied(each), element):
                kind.tell("dict", "box")

    def _iterated(self, target: ast.expr, source: ast.expr) -> None:
        self.kind(source).tell("box")
        for part in parts_given(target, source):
            active = self.value(part.source)
            match part.gets, part.source:
                case Gets.COUNT, _:
                    self._assigned(part.target, False, Kind("number"), ast.Constant(0))
                case Gets.KEY, _:
                    self._assigned(part.target, False, Kind(), ast.Constant(0))
                case Gets.VALUE, inner:
                    self._assigned(part.target, active, self.kind(inner).element(), inner)
                case _, ast.Subscript(inner, ast.Slice()):
                    self.kind(part.source).tell("box")
                    self._iterated(part.target, inner)
                case _, inner if self.goes_through_keys(part.target, inner):
                    self._assigned(part.target, False, Kind(), ast.Constant(0))
                case _, inner:
                    kind = self.kind(inner)
                    kind.tell("box")
                    shown = inner
                    if isinstance(inner, ast.List | ast.Tuple):
                        shown = ast.Subscript(inner, ast.Constant(0), ast.Load())
                    self._assigned(part.target, active, kind.element(), shown)

    def goes_through_keys(self, target: ast.expr, source: ast.expr) -> bool:
        """Return whether a loop iterates a dict, so that its target is a key."""
        known = not isinstance(source, ast.Call) and self.kind(source).has("dict")
        return known and not self._may_be_list(source, target)

    # Varied variables, forward.

    def value(self, node: ast.expr) -> bool:
        """Return whether the value of an expression is varied; record the effects of calls on their
        functions.
        """
        match node:
            case ast.Name(name):
                owner = self.function.owner(name)
                if owner is None:
                    self._function_value(node)
                    return False
                if name in owner.nested:
                    owner.nested[name].escapes = True
                    return self._function_varied(owner.nested[name])
                return name in owner.varied
            case ast.Constant() | ast.JoinedStr():
                return False
            case ast.Lambda():
                inside = terms.names_read(node.body) - {each.arg for each in node.args.args}
                return True in [self.value(terms.name(each)) for each in sorted(inside)]
            case ast.BinOp():
                left, right = self.value(node.left), self.value(node.right)
                if isinstance(node.op, ast.FloorDiv) or _is_string(node.left):
                    return False
                listed = [isinstance(each, ast.List | ast.Tuple) for each in (node.left, node.right)]
                if isinstance(node.op, ast.Mult) and any(listed):
                    if not self.by_part(node, self.kind(node.left), self.kind(node.right)):
                        return left if listed[0] else right
                return left or right
            case ast.UnaryOp():
                return self.value(node.operand) and not isinstance(node.op, ast.Not | ast.Invert)
            case ast.Compare():
                for each in (node.left, *node.comparators):
                    self.value(each)
                if isinstance(node.ops[0], ast.In | ast.NotIn):
                    self._keyed(node.left, node.comparators[0], self.function.body)
                return False
            case ast.BoolOp():
                return True in [self.value(each) for each in node.values]
            case ast.IfExp():
                self.value(node.test)
                return True in [self.value(node.body), self.value(node.orelse)]
            case ast.Subscript():
                # Anywhere in the expression: a container whose elements are read.
                self.kind(node)
                return self.value(node.value)
            case ast.Attribute():
                return (
                    node.attr not in FACTS and self.function.dotted(node) is None and self.value(node.value)
                )
            case ast.Tuple() | ast.List() | ast.Set():
                return True in [self.value(each) for each in node.elts]
            case ast.Dict():
                return True in [self.value(each) for each in node.values]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.Call():
                return self._call(node)
        return False

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        bound = terms.names_bound([each.target for each in node.generators])
        new = bound - self.function.local
        self.function.local |= new
        with self.inside(node):
            for each in node.generators:
                self._keyed(each.target, each.iter, [node])
                self.value(each.iter)
                self._iterated(each.target, each.iter)
            parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            found = True in [self.value(each) for each in parts]
        self.function.useful |= bound
        return found

    def _function_varied(self, inner: Function) -> bool:
        """Return whether a function must be differentiated: it captures, mutates or gets varied values."""
        if inner.varied & set(inner.params) or inner.returns:
            return True
        return any(name in owner.varied for owner, name in (*inner.outside, *inner.free))

    def _call(self, node: ast.Call) -> bool:
        # Keyword arguments of `dict` are values.
        made = self.target(node) is not None or terms.entries(node) is not None
        ordering = () if made else ORDERING
        arguments = [*node.args, *(each.value for each in node.keywords if each.arg not in ordering)]
        actives = [self.value(each) for each in arguments]
        functions = [self._function_value(each) for each in arguments]
        if isinstance(node.func, ast.Name):
            owner = self.function.owner(node.func.id)
            named = owner.nested.get(node.func.id) if owner else None
            if owner is None and node.func.id in self.module.functions:
                if node.func.id not in self.whole.functions and not any(actives) and not any(functions):
                    return False
                named = self.whole.function(node.func.id)
            if named is not None:
                return self._bind(named, node, actives)
            if owner is not None:
                return self._unknown_function(node, actives)
        elif not isinstance(node.func, ast.Attribute):
            return self._unknown_function(node, actives)
        dotted = self.function.dotted(node.func)
        if dotted is None and isinstance(node.func, ast.Attribute):
            base = node.func.value
            if node.func.attr in ("count", "index", "keys"):
                return False
            if node.func.attr in STILL_METHODS:
                self.value(base)
                return False
            still = self._still(node, f"numpy.{node.func.attr}", 1 if node.func.attr in METHODS else 0)
            given = any(active and not each for active, each in zip(actives, still, strict=True))
            if node.func.attr in READING:
                # The default for a missing element.
                given = any(actives[1:])
                if given and node.func.attr == "setdefault" and (root := root_of(base)):
                    vary(self.function, root)
            return self.value(base) or given
        if self.gives_keys(node, dotted):
            return False
        if dotted in table.CONSTANTS or dotted in OF_NUMPY or dotted in OF_TENSORFLOW:
            return False
        if isinstance(node.func, ast.Name) and node.func.id in OF_HELPERS:
            return False
        return any(
            active and not each for active, each in zip(actives, self._still(node, dotted), strict=True)
        )

    def _still(self, node: ast.Call, dotted: str | None, skipped: int = 0) -> list[bool]:
        """Return, for each argument of a library function, whether it is a condition, a count or a similar
        parameter.
        """
        rows = self.whole.rows
        row = rows.get(dotted or "")
        if len(node.args) == 1 and not node.keywords and not skipped:
            row = rows.get(f"{dotted}.whole", row)
        written = terms.entries(node) is not None
        named = [each.arg or "" for each in node.keywords if written or each.arg not in ORDERING]
        if row is None or written:
            return [False] * (len(node.args) + len(named))
        # A shape may be given as several numbers.
        places = [row.params[min(skipped + place, len(row.params) - 1)] for place in range(len(node.args))]
        return [each in table.STILL for each in (*places, *map(row.param, named))]

    def _function_value(self, node: ast.expr) -> bool:
        """Return whether an argument is a function of the file; if so, record its use as a value."""
        if not isinstance(node, ast.Name):
            return False
        owner = self.function.owner(node.id)
        if owner is not None:
            inner = owner.nested.get(node.id)
            if inner is not None:
                inner.escapes = True
            return inner is not None or owner.kind(node.id).has("function")
        if node.id in self.module.functions:
            self.whole.function(node.id).escapes = True
            return True
        return False

    def _unknown_function(self, node: ast.Call, actives: list[bool]) -> bool:
        self.kind(node.func).tell("function")
        # Visited for any arguments: it records the functions that are used as values.
        found = self.value(node.func) or any(actives)
        known = self.known(node)
        for inner in self.whole.escaping():
            if not inner.takes(node):
                continue
            given = bound(inner, node)
            if any(actives):
                inner.varied.update(param for param, _ in given)
            for param, each in given if inner in known else ():
                inner.kind(param).unify(self.kind(each))
            self._effects(inner, node)
            found = found or inner.returns
        return found

    def _effects(self, inner: Function, node: ast.Call) -> None:
        """Mark the arguments of a function as useful if it mutates shared objects."""
        if inner.acts:
            for each in arguments(node):
                use(self.function, each)

    def _acts(self, value: ast.expr) -> bool:
        """Return whether a called function value of the file mutates shared objects."""
        for each in terms.walk(value):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name | ast.Call | ast.Subscript):
                target = self.target(each)
                if any(one.acts for one in ([target] if target else self.known(each))):
                    return True
        return False

    def _bind(self, named: Function, node: ast.Call, actives: list[bool]) -> bool:
        for (param, argument), active in zip(bound(named, node), actives, strict=False):
            if active:
                named.varied.add(param)
            named.kind(param).unify(self.kind(argument))
            if named.kind(param).changes:
                root = root_of(argument)
                if root and param in named.varied:
                    vary(self.function, root)
        self._effects(named, node)
        if any(actives) or self._function_varied(named):
            return named.returns or self._function_varied(named)
        return named.returns

    # Kinds of expressions.

    @contextmanager
    def inside(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[None]:
        """Enter the scope of a comprehension, whose variables hide others of the same name."""
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

    def _index(self, base: Kind, index: ast.expr) -> Kind:
        if isinstance(index, ast.Slice):
            return base.part()
        if isinstance(index, ast.Tuple) and not base.has("dict"):
            base.tell("array")
            return base if any(isinstance(each, ast.Slice) for each in index.elts) else base.element()
        if isinstance(index, ast.Constant) and isinstance(index.value, int | str):
            if isinstance(index.value, str):
                base.tell("dict")
            return base.element(index.value)
        return base.element()

    def _may_be_list(self, source: ast.expr, target: ast.expr | None = None) -> bool:
        """Return whether the function tests the type of a value like a dict, and does not iterate
        its keys.
        """
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
        """Return whether an index is an element of its container's iteration, so that this is a dict:
        elements with a derivative are not positions.
        """
        match index:
            case ast.Name(name):
                match self._given_once(name):
                    case ast.Assign([ast.Name(_)], ast.Call() | ast.Subscript() as value):
                        return self._is_key(base, value)
                    case ast.For(target, source) | ast.comprehension(target, source):
                        return any(
                            each.gets is Gets.ELEMENT
                            and isinstance(each.target, ast.Name)
                            and each.target.id == name
                            and self._lists(each.source, base)
                            for each in parts_given(target, source)
                        )
            case ast.Subscript(listed, place) if not isinstance(place, ast.Slice):
                return self._lists(listed, base)
            case ast.Call(ast.Name("min" | "max"), [listed]):
                return self._lists(listed, base)
        return False

    def _lists(self, node: ast.expr | None, base: ast.expr) -> bool:
        """Return whether a value contains the elements of a container's iteration, in any order."""
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
        """The only statement or loop that binds a variable, if there is just one."""
        given = self.function.assignments(name) if name not in self.function.params else ()
        return given[0] if len(given) == 1 else None

    def target(self, node: ast.Call) -> Function | None:
        """The function of the file that a call refers to, if it names one."""
        if not isinstance(node.func, ast.Name):
            return None
        name = node.func.id
        owner = self.function.owner(name)
        if owner is not None:
            return owner.nested.get(name)
        return self.whole.function(name) if name in self.module.functions else None

    def given_to_library(self, node: ast.expr) -> set[int]:
        """The arguments of library calls that are library objects too, like `float` in `dtype=float`:
        they are not called.
        """
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
                kind.tell("number", *(["real"] if self.is_calculated(node) else []))
                return kind
            case ast.IfExp():
                kind = self.kind(node.body)
                kind.unify(self.kind(node.orelse))
                return kind
            case ast.Subscript():
                base = self.kind(node.value)
                base.tell("box", *(["sliced"] if isinstance(node.slice, ast.Slice) else []))
                known = base.has("list", "tuple", "array", "dict") or not isinstance(node.value, ast.Name)
                if not known and self.value(node.value) and self._is_key(node.value, node.slice):
                    base.tell("dict")
                return self._index(base, node.slice)
            case ast.Attribute(attr="T"):
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
        """Return whether an augmented assignment of a variable mutates a shared array."""
        kind = self.kind(node.target)
        if not self._is_seen(node.target) or kind.has("list", "tuple", "dict"):
            return False
        # If it may also be a list, the adjoint pass checks at run time.
        joins = isinstance(node.op, ast.Add) or (isinstance(node.op, ast.Mult) and not self.value(node.value))
        return kind.has("array") or (kind.has("box") and (self.whole.reverse or not joins))

    def added_to(self, node: ast.stmt) -> bool:
        """Return whether a possible shared array is added to: in forward mode so is its tangent, so that both
        have the same aliases.
        """
        if not (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub)):
            return False
        target, kind = node.target, self.kind(node.target)
        if self.whole.reverse or self.whole.tensors or not self.whole.arrays or not kind.arrayish:
            return False
        if isinstance(target, ast.Subscript):
            return not self.kind(target.value).has("array")
        return kind.has("box") and not kind.has("array") and self._is_seen(target)

    def _is_seen(self, target: ast.expr) -> bool:
        """Return whether an array that a variable has may have another name."""
        if not isinstance(target, ast.Name) or not self.whole.arrays or self.whole.tensors:
            return False
        function = self.function
        own = target.id in function.local and target.id not in function.params
        return not own or target.id in function.shown or target.id in function.captured_inside

    def by_part(self, node: ast.BinOp, left: Kind, right: Kind) -> bool:
        """Return whether a list or tuple is added or multiplied elementwise, because the other operand is an
        array.
        """
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
                # Counts are not differentiated, unless a list of one element is repeated to that length.
                other.tell("computed")
            found |= other.has("array", "computed") or (times_it and other.has("box"))
        return found

    def is_calculated(self, node: ast.expr) -> bool:
        """Return whether an operation cannot make a list: `*` does so only with a whole number."""
        match node:
            case ast.BinOp(op=ast.Sub() | ast.Div() | ast.Pow() | ast.MatMult()):
                return True
            case ast.BinOp(left, ast.Mult(), right):
                factors = left, right
                return any(map(terms.is_float, factors)) or all(map(self.value, factors))
        return isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not)

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
        real = self.is_calculated(node)
        if real:
            for each, kind in ((node.left, left), (node.right, right)):
                kind.tell("real")
                # Only arrays support elementwise arithmetic.
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
                    return base.copy()
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
                # Of strings, or of lists.
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
            viewed = first if last in VIEWS - _PARTING - {"broadcast_arrays"} else None
            array = last in _MAKING or (viewed is not None and self.kind(viewed).has("array"))
            return Kind("number", "array" if array else "computed" if computed else "number")
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
        """Return whether a call returns the keys of a dict, or one of them."""
        if dotted not in _OF_KEYS or len(node.args) != 1:
            return False
        first = node.args[0]
        if not isinstance(first, ast.Name | ast.Subscript) or not self.kind(first).has("dict"):
            return False
        return dotted == "builtins.sorted" or not self._may_be_list(first)

    def _global(self, name: str) -> Kind:
        """The kind of a global name's value."""
        if name not in self.module.functions:
            return Kind()
        made = Kind("function")
        if name in self.whole.functions:
            made.tell_function(self.whole.functions[name])
        return made

    def _value_of(self, node: ast.Call) -> Kind:
        """The kind of the result of calling a function value."""
        known = self.known(node)
        for each in known[1:]:
            known[0].value.unify(each.value)
        return known[0].value if known else Kind()

    def known(self, node: ast.Call) -> list[Function]:
        """The known candidates for a called value."""
        known = self.kind(node.func).functions
        return [each for each in self.whole.escaping() if each in known and each.takes(node)]

    def possible(self, node: ast.Call) -> list[Function]:
        """The possible functions of a called value: all with fitting parameters, if none is known."""
        return self.known(node) or [each for each in self.whole.escaping() if each.takes(node)]


def loses(call: ast.Call) -> bool:
    """Return whether a method mutates a container irreversibly for the adjoint pass."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "pop":
        return len(call.args) > 1
    return call.func.attr in LOSING or call.func.attr == "update"


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _new_list(*parts: Kind) -> Kind:
    """The kind of a list or tuple with the elements of others."""
    made = Kind("tuple" if parts[0].has("tuple") and not parts[0].has("list") else "list")
    for each in parts:
        made.element().unify(each.element())
    return made
