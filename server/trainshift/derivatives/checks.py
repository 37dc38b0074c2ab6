"""Refusals: all constructs that cannot be differentiated, with reasons, in text order."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainshift.derivatives.changed_sequences import changed_sequences
from trainshift.derivatives.expansion.statements import ORDERED
from trainshift.derivatives.file_state import changed_state, changed_unseen
from trainshift.derivatives.iterators import Iterators, values_of
from trainshift.derivatives.lazy_values import kept_lazily
from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.evaluation_order import out_of_order
from trainshift.derivatives.reading.function import Alias, Function, bound, root_of
from trainshift.derivatives.reading.kinds import reaches
from trainshift.derivatives.reading.nodes import Nodes, method
from trainshift.derivatives.reading.reader import CHANGING, JOINT, LOSING, READING, Reader, loses
from trainshift.derivatives.reading.result import Impossible, Refusal, Shared
from trainshift.derivatives.reading.sources import Sources, whole_numbers
from trainshift.derivatives.tables import table
from trainshift.python.rewrite import terms
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, arguments
from trainshift.python.syntax.slotted_ast import kind_of

_STATEMENTS: dict[type[ast.AST], str] = {
    ast.Try: "try cannot be differentiated: move it out of the function",
    ast.With: "with cannot be differentiated: move it out of the function",
    ast.Match: "match cannot be differentiated: write if and elif",
    ast.Yield: "yield cannot be differentiated: return a list",
    ast.YieldFrom: "yield cannot be differentiated: return a list",
    ast.Await: "await cannot be differentiated: pass the awaited value as an argument",
    ast.AsyncFor: "async cannot be differentiated: write a plain function",
    ast.AsyncWith: "async cannot be differentiated: write a plain function",
    ast.AsyncFunctionDef: "async cannot be differentiated: write a plain function",
    ast.Global: "global cannot be differentiated: pass the variable as a parameter, and return it",
    ast.Delete: "del cannot be differentiated: leave the value in place",
    ast.ClassDef: "class cannot be differentiated: write functions and containers",
    ast.NamedExpr: ":= cannot be differentiated: assign on a line of its own",
}
_SETS = frozenset(("builtins.set", "builtins.frozenset"))
_SET = "a set cannot be differentiated: use a list or a tuple"
_HIDDEN = frozenset(f"builtins.{each}" for each in ("eval", "exec", "globals", "locals", "vars"))
_ASSIGNING = frozenset(("assign", "assign_add", "assign_sub"))
# Containers that are neither lists nor dicts.
_NO_LISTS = frozenset(("collections.deque", "collections.Counter", "array.array", "queue.Queue"))
# Element types of arrays that are not real numbers.
_NO_NUMBERS = frozenset(
    {
        "builtins.complex", "builtins.object", "numpy.cdouble", "numpy.complex128", "numpy.complex64",
        "numpy.csingle", "numpy.object_", "tensorflow.complex128", "tensorflow.complex64",
    }
)  # fmt: skip


# Tags of values that are not functions.
_VALUES = ("number", "real", "scalar", "array", "computed", "list", "tuple", "dict")

# Functions that return a new container.
_COPYING = frozenset(("builtins.list", "builtins.dict", "builtins.sorted"))
_SHARED = "two names may share an object that is changed"


class Checks:
    """The refusals of one derivative."""

    def __init__(self, whole: Analysis, wrt: Sequence[str]) -> None:
        self.whole = whole
        self.wrt = wrt
        self.found: dict[Refusal, Refusal] = {}
        self.shared: set[Refusal] = set()
        """The refusals of names that share a changed object."""

    def all(self) -> tuple[Refusal, ...]:
        """Every refusal, in the order of the text."""
        for function in self.whole.every():
            if function.parent is None:
                self._syntax(function)
            self._function(function)
        iterators = Iterators(self.whole.every() if self.whole.reverse else ())
        for function in iterators.functions:
            for part, said in iterators.gone_through_again(function, Reader(function)):
                made = values_of(function, part)
                if not any(self._is_refused(one) for each in made for one in terms.walk(each)):
                    self.refuse(part, said)
        changed = changed_state(self.whole.module, self.whole.functions, self.whole.reverse)
        for node, said in (*changed, *changed_unseen(self.whole)):
            if not any(each.line == getattr(node, "lineno", 0) for each in self.found.values()):
                self.refuse(node, said)
        start = self.whole.start
        for each in start.params:
            if start.kind(each).has("function"):
                for node in self._calls_of(each):
                    said = f"{each} is a parameter and is called: call a function of the file by its name"
                    self.refuse(node, said)
        if start.is_outlived:
            said = f"{start.name} returns a function: differentiate one that calls it"
            self.refuse(start.node, said)
        if not self.found and not start.returns:
            self.refuse(start.node, f"the value does not depend on {', '.join(self.wrt or start.params)}")
        return tuple(sorted(self.found.values()))

    def of_expanded(self) -> tuple[Refusal, ...]:
        """The refusals that only show after the expansion of lambdas and of loops over sequences."""
        for function in self.whole.every():
            self._mixed(function, list(terms.own_nodes(function.body)))
            aliases = self.whole.aliases(function)
            for each in aliases.conflicts():
                names = {each.alias.name, each.alias.other}
                if names & function.sequences and each.alias.unless is None:
                    (name, *_) = sorted(names - function.sequences)
                    self.refuse(each.node, f"the loop changes the sequence that it iterates over: {name}")
            # The result of a lambda, and `max` of lists, are known only where they are written out.
            written = {*function.params, *terms.names_bound(function.node.body)}
            self._shared(function, written | function.slices.keys())
        return tuple(sorted(self.found.values()))

    @property
    def impossible(self) -> Impossible:
        """The exception for a missing derivative, with all refusals."""
        found = tuple(sorted(self.found.values()))
        return (Shared if self.shared.issuperset(found) else Impossible)(found)

    def refuse(self, node: ast.AST, message: str) -> Refusal:
        """Record a refusal at a place, and return it."""
        found = self.whole.module.refusal(node, message, self.whole.start.node)
        return self.found.setdefault(found, found)

    def _calls_of(self, param: str) -> list[ast.Call]:
        """The calls of a parameter of the function to differentiate, in its own text."""
        calls = [each for each in terms.walk(self.whole.start.node) if isinstance(each, ast.Call)]
        return [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == param]

    def _is_refused(self, node: ast.AST) -> bool:
        """Return whether an expression was refused already, so that advice on parts of it says nothing."""
        if not isinstance(node, ast.expr):
            return False
        place = self.whole.module.refusal(node, "", self.whole.start.node)
        return any((each.line, each.column) == (place.line, place.column) for each in self.found)

    def _syntax(self, function: Function) -> None:
        for node in terms.walk(function.node):
            if kind_of(node) in _STATEMENTS or type(node).__name__ == "TryStar":
                self.refuse(node, _STATEMENTS.get(kind_of(node), _STATEMENTS[ast.Try]))
            match node:
                case ast.arguments():
                    for star, each in (("*", node.vararg), ("**", node.kwarg)):
                        if each is not None:
                            self.refuse(
                                each,
                                f"a parameter {star}{each.arg} has an unknown number of values: name them",
                            )
                case ast.Starred():
                    text = ast.unparse(node)
                    what = "a starred target" if isinstance(node.ctx, ast.Store) else "a starred argument"
                    self.refuse(node, f"{what} {text} has an unknown number of values: write them out")
                case ast.keyword(arg=None):
                    self.refuse(
                        node,
                        f"a starred argument **{ast.unparse(node.value)} has unknown names: write them out",
                    )
                case ast.Dict(keys) if None in keys:
                    rest = [value for key, value in zip(keys, node.values, strict=True) if key is None]
                    text = ast.unparse(rest[0])
                    self.refuse(node, f"a starred item **{text} has unknown keys: write them out")
                case ast.Attribute(ctx=ast.Store()):
                    self.refuse(node, f"an attribute is assigned: {ast.unparse(node)}")
                case ast.Constant(value=complex()):
                    self.refuse(node, f"complex numbers are not supported: {ast.unparse(node)}")
                case ast.FunctionDef():
                    for mark in node.decorator_list:
                        dotted = function.dotted(mark.func if isinstance(mark, ast.Call) else mark)
                        if dotted != "tensorflow.function":
                            self.refuse(
                                mark, f"the decorator @{ast.unparse(mark)} may change the function: remove it"
                            )

    def _function(self, function: Function) -> None:
        reader, nodes = Reader(function), Nodes(function)
        inside = list(terms.own_nodes(function.body))
        for node in inside:
            match node:
                case ast.Call():
                    self._call(function, reader, nodes, node)
                case ast.Assign([ast.Name(name)], ast.Call(func) as made) if (
                    function.active(name) and function.dotted(func) in _NO_LISTS
                ):
                    self.refuse(made, f"no derivative of {ast.unparse(func)} is known")
                case ast.AugAssign(target, op, value) if type(op).__name__ not in _KNOWN:
                    if reader.value(target) or reader.value(value):
                        self.refuse(node, f"no derivative of {ast.unparse(node)} is known")
                case ast.AugAssign(target, _, value) if self._is_own(reader, node, target, value):
                    pass
                case ast.AugAssign(target, ast.Mult(), value) if reader.kind(target).listed(
                    self.whole.arrays
                ):
                    if reader.value(target) and not reader.value(value):
                        text = f"{ast.unparse(target)} = {ast.unparse(target)} * {ast.unparse(value)}"
                        self.refuse(node, f"*= repeats a list in place: write {text}")
                case ast.AugAssign(target, ast.Add(), value):
                    self._joined(reader, ast.BinOp(target, ast.Add(), value))
                case ast.FunctionDef(name=name) if function.bindings(name) > 1:
                    self.refuse(
                        node, f"{name} is bound to other values too: give the function a name of its own"
                    )
                case ast.FunctionDef(args=arguments) | ast.Lambda(args=arguments):
                    for each in (*arguments.defaults, *arguments.kw_defaults):
                        if each is not None and reader.value(each):
                            said = f"the default {ast.unparse(each)} depends on the parameters"
                            self.refuse(each, f"{said}: pass it as an argument")
                case ast.Set() | ast.SetComp() if reader.value(node):
                    self.refuse(node, _SET)
        for value in _values(inside):
            for node in _inside(value, function):
                if isinstance(node, ast.BoolOp) and reader.value(node):
                    word = "and" if isinstance(node.op, ast.And) else "or"
                    self.refuse(node, f"the value of {word} depends on the parameters: write if")
                elif (
                    isinstance(node, ast.BinOp)
                    and reader.value(node)
                    and type(node.op).__name__ not in _KNOWN
                ):
                    self.refuse(node, f"no derivative of {ast.unparse(node)} is known")
                elif isinstance(node, ast.BinOp) and self._is_own(reader, node, node.left, node.right):
                    pass
                elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
                    self._joined(reader, node)
        for param in function.params:
            default = function.default(param)
            if default is None or isinstance(default, ast.Constant):
                continue
            text, kind = ast.unparse(default), function.kind(param)
            listed = isinstance(default, ast.List | ast.Dict | ast.Tuple)
            if listed and function.active(param) and function is not self.whole.start:
                self.refuse(default, f"the default {text} is active: pass it as an argument")
            elif kind.has("function"):
                if function is self.whole.start and self._calls_of(param):
                    continue  # Its calls are refused.
                self.refuse(default, f"the default {text} is a function: pass it as an argument")
            elif kind.changes:
                self.refuse(default, f"the default {text} is changed for later calls: pass it as an argument")
            elif function.parent is None and (
                said := self.whole.module.default_changes(function.node, default)
            ):
                self.refuse(default, f"the default {text} {said}: pass it as an argument")
        self._mixed(function, inside)
        self._shared(function)
        if self.whole.reverse:
            self._outlived(function, reader, inside)
        self._changes(function, reader, inside)
        for lazy, said in kept_lazily(function, reader, inside):
            around = (each for each in inside if isinstance(each, ast.expr) and self._is_refused(each))
            if not any(one is lazy for each in around for one in terms.walk(each)):
                self.refuse(lazy, said)
        for part, said in (
            *changed_sequences(function, reader, inside),
            *(each for each in out_of_order(function, reader, inside) if not self._is_refused(each[0])),
        ):
            self.refuse(part, said)

    def _mixed(self, function: Function, inside: Sequence[ast.AST]) -> None:
        """Refuse variables that may hold functions or other values."""
        for name, kind in function.kinds.items():
            if kind.has("function") and self._is_value(function, name, inside):
                said = f"{name} may be a function or another value: give each a name of its own"
                self.refuse(next(iter(function.assignments(name)), function.node), said)

    def _is_value(self, function: Function, name: str, inside: Sequence[ast.AST]) -> bool:
        """Return whether a variable that is a function may be something else, too."""
        if function.kind(name).has(*_VALUES):
            return True
        if function is self.whole.start and name in function.params and name in self.wrt:
            calls = (each for each in inside if isinstance(each, ast.Call))
            return not any(isinstance(each.func, ast.Name) and each.func.id == name for each in calls)
        return False

    def _is_own(self, reader: Reader, node: ast.AST, *operands: ast.expr) -> bool:
        """Refuse an operator that a class of the file may define; return whether it is one."""
        own = [each for each in operands if reader.kind(each).has("object")]
        if own and any(map(reader.value, operands)):
            text = ast.unparse(own[0])
            self.refuse(node, f"{text} may be an object of a class that defines operators: call a function")
        return bool(own)

    def _joined(self, reader: Reader, node: ast.BinOp) -> None:
        """Check `+` and `*` on values that may be lists or numbers, as from a list that contains both."""
        for each in (node.left, node.right):
            kind = reader.kind(each)
            mixed = kind.has("list", "tuple") and kind.has("number", "scalar")
            if kind.has("unclear") and not kind.has("list", "tuple") and reader.value(each):
                text = ast.unparse(each)
                self.refuse(
                    each, f"{text} may be a list, or a number or array: write list({text}) if it is a list"
                )
            if mixed and reader.value(node) and not isinstance(each, ast.BinOp):
                said = f"{ast.unparse(each)} may be a number or a list: put them into a tuple or dict"
                self.refuse(each, said)

    def _call(self, function: Function, reader: Reader, nodes: Nodes, node: ast.Call) -> None:
        module, dotted_name = self.whole.module, function.dotted
        if isinstance(node.func, ast.Attribute) and dotted_name(node.func) is None:
            name = node.func.attr
            text = ast.unparse(node.func)
            if name in _ASSIGNING:
                self.refuse(node, f"{text} changes a tf.Variable")
                return
            given = arguments(node)
            if (dotted_name(node.func.value) or "").startswith("builtins."):
                self.refuse(node, f"no derivative of {text} is known")
                return
            if not any(map(reader.value, [node.func.value, *given])):
                return
            if name in CHANGING and node.keywords:
                self.refuse(node, f"no derivative of {text} with {node.keywords[0].arg}= is known")
                return
            lost = name in (LOSING if self.whole.reverse else LOSING - JOINT)
            # A dict without tangents has no tangent for a missing element either.
            lost = lost or (name == "pop" and any(map(reader.value, given[1:])))
            if lost or (self.whole.reverse and loses(node)):
                self.refuse(node, f"{ast.unparse(node)} changes an active value and cannot be undone")
                return
            if name in (*CHANGING, *JOINT, *READING):
                return
        elif isinstance(node.func, ast.Call) and dotted_name(node.func.func) and reader.value(node):
            self.refuse(node, f"no derivative of {ast.unparse(node.func)} is known")
            return
        elif (
            isinstance(node.func, ast.Name)
            and (function.owner(node.func.id) or node.func.id in module.functions)
        ) or not isinstance(node.func, ast.Name | ast.Attribute):
            self._callee(reader, node)
            return
        for part in arguments(node):
            made = (dotted_name(node.func) or "numpy").startswith(("numpy", "tensorflow"))
            if made and dotted_name(part) in _NO_NUMBERS:
                text = ast.unparse(node.func)
                self.refuse(node, f"{text} does not make an array of real numbers: {ast.unparse(part)}")
        if dotted_name(node.func) in _HIDDEN:
            text = ast.unparse(node.func)
            self.refuse(node, f"{text} cannot be differentiated: its inputs are unknown")
        if not reader.value(node):
            return
        dotted = dotted_name(node.func)
        operands = list(node.args)
        if dotted is None and isinstance(node.func, ast.Attribute):
            dotted = method(node.func.attr)
            operands.insert(0, node.func.value)
            if node.func.attr in ("reshape", "transpose"):
                operands = operands[:2]
        if dotted in ORDERED and {each.arg for each in node.keywords} <= ORDERED[dotted]:
            return
        if dotted == "builtins.dict" and terms.entries(node):
            return
        if dotted in ("builtins.enumerate", "builtins.zip", "builtins.reversed"):
            return
        row = nodes.row(dotted or "", operands, node)
        text = ast.unparse(node.func)
        if dotted in _SETS:
            self.refuse(node, _SET)
            return
        if row is None:
            which = ""
            if dotted in ("numpy.einsum", "tensorflow.einsum"):
                which = ": its subscripts are not written out"
                if isinstance(operands[0], ast.Constant):
                    which = f" for {ast.unparse(operands[0])}: an index occurs twice, or its size is unknown"
            self.refuse(node, f"no derivative of {text} is known{which}")
            return
        for each in node.keywords:
            if each.arg == "out":
                self.refuse(node, f"out= of {text} changes an array")
            elif each.arg is not None and row.param(each.arg) not in (*row.params, "dtype", "keepdims"):
                self.refuse(node, f"no derivative of {text} with {each.arg}= is known")
        if len(operands) > len(row.params):
            self.refuse(node, f"no derivative of {text} with {len(operands)} arguments is known")
        if row.name.startswith("_"):
            return
        for param, value in [
            *zip(row.params, operands, strict=False),
            *((row.param(k.arg), k.value) for k in node.keywords if k.arg),
        ]:
            if param in row.only and ast.unparse(value) not in row.only[param]:
                self.refuse(value, f"no derivative of {text} with {param}={ast.unparse(value)} is known")
            elif (
                reader.value(value) and param in {*row.params} - {*row.reverse} - table.STILL and row.reverse
            ):
                self.refuse(value, f"no derivative of {text} with respect to {param} is known")

    def _callee(self, reader: Reader, node: ast.Call) -> None:
        """Refuse a call that may or may not return a function: the pullback of one that does takes no bar."""
        if not self.whole.reverse or reader.target(node) is not None or not reader.value(node):
            return
        if len({one.gives_functions for one in reader.possible(node)}) > 1:
            text = ast.unparse(node.func)
            self.refuse(node, f"cannot tell whether {text} returns a function: call one function here")

    def _shared(self, function: Function, among: set[str] | None = None) -> None:
        """Refuse two names for a mutated object: the adjoint pass does not know which of them a mutation
        belongs to.

        Tangents share objects like their values, so in forward mode both names only need a tangent.  A value
        without one starts with zeros in its structure, which share nothing.  With `among`, both names are in
        this set.
        """
        aliases = self.whole.aliases(function)
        for each in aliases.conflicts():
            names = each.alias.name, each.alias.other
            if among is not None and not among.issuperset(names):
                continue
            active = [aliases.active(name) for name in names]
            followed = all(active) and not self.whole.reverse and not self._begins_anew(each.alias, function)
            if not any(active) or followed or each.alias.unless is not None:
                continue
            # Expanded code has no line of its own.
            there = f" (line {each.line})" if each.line else ""
            if each.alias.is_twice:
                said = f"{names[0]} may hold one object in two places, and it is changed{there}"
            elif names[0] == names[1]:
                said = f"{names[0]} is rebound and is changed{there}: use two names"
            else:
                written = ", ".join(function.slices.get(name, name) for name in names)
                said = f"{_SHARED}: {written}{there}"
            self.shared.add(self.refuse(each.alias.node, said))

    def _begins_anew(self, shared: Alias, function: Function) -> bool:
        """Return whether the tangent of an object with two references starts as zeros in the value's
        structure.
        """
        value = getattr(shared.node, "value", None)
        if not shared.is_twice or not isinstance(value, ast.expr):
            return False
        displays = ast.List | ast.Tuple | ast.Dict | ast.Name | ast.Subscript
        return not isinstance(value, displays) and not Reader(function).value(value)

    def _outlived(self, function: Function, reader: Reader, inside: Iterable[ast.AST]) -> None:
        """Refuse shared objects that inner functions keep and mutate after their function has ended."""
        sources, aliases = Sources(reader), self.whole.aliases(function)
        kept = (self._kept(function) & aliases.returned) - {function.result}
        for node in inside:
            match node:
                case ast.Assign([ast.Name(result)], value) if result == function.result:
                    for name in sorted(kept & sources.sources(value)) if kept else ():
                        said = f"{_SHARED}: {name}, the result of {function.name}"
                        self.shared.add(self.refuse(node, said))
            for callee in sources.callees(node) if isinstance(node, ast.Call) else ():
                assert isinstance(node, ast.Call)
                theirs = self._kept(callee)
                for param, value in bound(callee, node):
                    kind, names = callee.kind(param), sorted(sources.sources(value))
                    names = [each for each in names if reaches(self.whole.arrays, function.kind(each), kind)]
                    if param in theirs and names and reader.value(value):
                        said = f"{_SHARED}: {names[0]}, {param} of {callee.name}"
                        self.shared.add(self.refuse(value, said))

    def _kept(self, function: Function) -> set[str]:
        """The mutated variables, under all names, that inner functions keep after their function
        has ended.
        """
        aliases = self.whole.aliases(function)
        return aliases.with_names(function.kept())

    def _changes(self, function: Function, reader: Reader, inside: Sequence[ast.AST]) -> None:
        """Check that mutated objects have a name here, because other readers are known only by names."""
        in_loops = {
            id(each) for node in inside if isinstance(node, COMPREHENSIONS) for each in terms.walk(node)
        }
        for node in inside:
            places, given = self._changed_by(reader, node)
            nameless = any(root_of(each) is None for each in places) and self.whole.reverse
            if not places or not (nameless or any(map(reader.value, [*given, *places]))):
                continue
            for place in places:
                made = [getattr(each, "value", None) for each in function.assignments(root_of(place) or "")]
                if any(each is not None and whole_numbers(function, each) for each in made):
                    text = ast.unparse(place)
                    said = f"{text} holds integers, which truncate what is stored: use floats"
                    self.refuse(node, said)
                self._changed(function, node, place)
                self._holds(function, reader, node, place)
            if id(node) in in_loops and not (isinstance(node, ast.Call) and _is_pop(node)):
                said = f"{ast.unparse(node)} changes something in a comprehension: write a loop"
                self.refuse(node, said)

    def _changed_by(self, reader: Reader, node: ast.AST) -> tuple[list[ast.expr], list[ast.expr]]:
        """The objects that a statement or call mutates, and its arguments."""
        match node:
            case ast.Assign(targets, value):
                places = [each for target in targets for each in terms.leaves(target)]
                return [each.value for each in places if isinstance(each, ast.Subscript)], [value]
            case ast.AugAssign(ast.Subscript(place), _, value):
                return [place], [value]
            case ast.Call():
                given = arguments(node)
                if isinstance(node.func, ast.Attribute):
                    changing = node.func.attr in (*CHANGING, "pop", *LOSING)
                    own = changing and reader.function.dotted(node.func) is None
                    return [node.func.value] if own else [], given
                target = reader.target(node)
                if target is None:
                    return [], given
                changed = self.whole.summary(target).changed
                places = [each for param, each in bound(target, node) if param in changed]
                return [*places, *([node.func] if target.changes_outside else [])], [*given, node]
        return [], []

    def _holds(self, function: Function, reader: Reader, node: ast.AST, place: ast.expr) -> None:
        """Check that a container mutated by a call has a name if it holds named objects."""
        target = reader.target(node) if isinstance(node, ast.Call) else None
        if root_of(place) is not None or target is None:
            return
        kinds = [
            each
            for param, value in bound(target, node)  # type: ignore[arg-type]
            for each in target.kind(param).with_elements()
            if value is place and each.has("changed")
        ]
        for name in sorted(Sources(reader).sources(place)):
            arrays = self.whole.arrays and not self.whole.tensors
            if any(reaches(arrays, function.kind(name), each) for each in kinds):
                said = f"{ast.unparse(place)} is changed and holds {name}: assign it to a local variable"
                self.refuse(node, said)

    def _changed(self, function: Function, node: ast.AST, place: ast.expr) -> None:
        base = place
        while isinstance(base, ast.Subscript):
            base = base.value
        text = ast.unparse(place)
        # A method mutates a new object, which nothing else references; `_holds` reads the arguments of a
        # function.
        new = place
        while isinstance(new, ast.Subscript) and isinstance(new.slice, ast.Slice):
            new = new.value
        called = isinstance(node, ast.Call) and (base is new or isinstance(node.func, ast.Name))
        match base:
            case ast.Name() if place is not new and not isinstance(getattr(node, "func", None), ast.Name):
                if Reader(function).kind(new).listed(self.whole.arrays):
                    self.refuse(node, f"{text} is a copy, and is changed: assign it to a local variable")
            case ast.Name(name):
                named = name in self.whole.module.functions
                if function.owner(name) is None and not named:
                    said = f"{text} is a variable of the file and is changed: pass it as a parameter"
                    self.refuse(node, said)
            case ast.List() | ast.Dict() | ast.Tuple() | ast.ListComp() | ast.DictComp() if called:
                pass
            case ast.Call() if called and base is place and function.dotted(base.func) in _COPYING:
                pass
            case _:
                self.refuse(node, f"{text} is changed: assign it to a local variable first")


_KNOWN = {*table.OPERATORS, "Pow", "MatMult", "FloorDiv"}


def _is_pop(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "pop"


def _inside(node: ast.expr, function: Function) -> Iterator[ast.AST]:
    """The parts of an expression that are values, without conditions and indices."""
    yield node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return
    if isinstance(node, ast.Call) and function.dotted(node.func) in table.CONSTANTS:
        return
    for field, value in ast.iter_fields(node):
        if field in ("test", "slice", "ifs") or isinstance(node, ast.Compare | ast.Lambda):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                yield from _inside(each, function)
            elif isinstance(each, ast.keyword):
                yield from _inside(each.value, function)


def _values(inside: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in inside:
        if (
            isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return)
            and node.value is not None
        ):
            yield node.value
