"""Knowledge: the types of a function's names after expansion, in which numbers may have become tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from trainshift.python.flow.def_use import Names, names_bound
from trainshift.python.flow.traversal import least_fixed_point
from trainshift.python.lazy import cached_property
from trainshift.python.syntax.chunk_syntax import Binding, Statement, own_parts, targets_of
from trainshift.python.syntax.collect import as_load
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.python.syntax.node_classes import DEFINITIONS
from trainshift.python.syntax.unpacking import parts_assigned
from trainshift.static_graphs.domain.abstract_values import NOTHING, AbstractValue, Dim, Tensor
from trainshift.static_graphs.expanding.ir import GRAPH_NUMBERS, UNBOUND, Env, VarInfo, info_of
from trainshift.static_graphs.expanding.tensor_arrays import Held
from trainshift.static_graphs.reading.function import StaticFunction, Truth

_COMPOUND = (ast.If, ast.While, ast.For)


class Knowledge:
    """The facts about a function during its expansion."""

    def __init__(self, function: StaticFunction) -> None:
        self.function = function
        self._left: dict[Names, frozenset[ast.AST]] = {}

    def kind(self, node: ast.AST) -> AbstractValue:
        """The abstract value of an expression in the unchanged function."""
        return self.function.kind(node)

    @cached_property
    def names(self) -> Names:
        """The names that the function uses, including those of its inner functions."""
        node = self.function.node
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        used.update(each.arg for each in ast.walk(node) if isinstance(each, ast.arg))
        return frozenset(used.union(each.name for each in ast.walk(node) if isinstance(each, DEFINITIONS)))

    def name(self, base: str) -> str:
        """The name of an object for use directly below; the name itself may be rebound."""
        scopes = (each for each in ast.walk(self.function.node) if isinstance(each, DEFINITIONS))
        return (
            base
            if all(_is_used_below(scope, base) for scope in scopes)
            else fresh_name(base, self.names, first=2)
        )

    @cached_property
    def became_tensors(self) -> Names:
        """The names of numbers that are tensors in the graph, because control flow or sizes make them so."""
        return least_fixed_point(frozenset(), self._grown)

    def _grown(self, known: Names) -> Iterator[str]:
        for statement in self.function.statements:
            node = statement.node
            if isinstance(node, _COMPOUND) and self.truth_with(node, known) is not Truth.PYTHON:
                live = self.function.live_after(statement)
                is_loop = not isinstance(node, ast.If)
                for inner in statement.walk():
                    for each in own_parts(inner.node):
                        if not isinstance(each, ast.Name) or not isinstance(each.ctx, ast.Store):
                            continue
                        if self.kind(each).python & GRAPH_NUMBERS and (is_loop or each.id in live):
                            yield each.id
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                is_number = not isinstance(self.kind(node.value).tensor, Tensor)
                becomes = self.reads_any(node.value, known) or self._has_choice(node.value, known)
                if (is_number and becomes) or self._gives_sizes(node.value):
                    for target in targets_of(node):
                        if isinstance(target, ast.Name | ast.Tuple | ast.List):
                            yield from names_bound(target)

    def made_tensors_in(self, loop: Statement) -> Names:
        """The names that are numbers before a loop, and that an iteration may turn into tensors."""
        numbers = {
            name for name, value in self.function.before.get(loop, {}).items() if value.python & GRAPH_NUMBERS
        }
        inside = [each for each in loop.walk() if each is not loop]
        return least_fixed_point(frozenset(), lambda known: numbers & {*self._made_in(inside, known)})

    def _made_in(self, statements: list[Statement], known: Names) -> Iterator[str]:
        for statement in statements:
            node = statement.node
            if isinstance(node, _COMPOUND) and self.truth(node) is not Truth.PYTHON:
                for inner in statement.walk():
                    yield from names_bound(*targets_of(inner.node))
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                is_tensor = self.kind(node.value).tensor is not None or self._has_choice(node.value, known)
                if is_tensor or self.reads_any(node.value, known):
                    yield from names_bound(*targets_of(node))

    def _has_choice(self, node: ast.AST, known: Names) -> bool:
        """Return whether a conditional expression in it becomes a `cond`."""
        choices = (each for each in ast.walk(node) if isinstance(each, ast.IfExp))
        return any(self.truth_with(each, known) is not Truth.PYTHON for each in choices)

    @cached_property
    def sizes(self) -> Names:
        """The names that are tensors in every run of the expansion, because they only get sizes."""
        bindings = self.function.scope.bindings
        found = {name for name, given in bindings.items() if all(map(self._binds_size, given))}
        return frozenset(found)

    def _binds_size(self, binding: Binding) -> bool:
        node = binding.statement.node if binding.statement is not None else None
        return isinstance(node, ast.Assign) and binding.kind == "value" and self._gives_sizes(node.value)

    def _gives_sizes(self, node: ast.expr) -> bool:
        """Return whether an expression yields sizes, or is computed from them."""
        if isinstance(node, ast.BinOp):
            return self._gives_sizes(node.left) or self._gives_sizes(node.right)
        if isinstance(node, ast.Tuple | ast.List):
            return any(map(self._gives_sizes, node.elts))
        return self.is_size(node) or self.is_shape(node)

    @cached_property
    def scalars(self) -> Names:
        """The names that are tensors in every run of the expansion, and numbers in the source."""
        every = frozenset(self.function.scope.bindings)
        return every - least_fixed_point(frozenset(), lambda others: self._no_scalars(every - others))

    def _no_scalars(self, scalars: Names) -> Iterator[str]:
        """Yield the names that are not scalars, given some others that are."""
        for name, bindings in self.function.scope.bindings.items():
            if not all(self._binds_scalar(each, scalars) for each in bindings):
                yield name

    def _binds_scalar(self, binding: Binding, known: Names) -> bool:
        node = binding.statement.node if binding.statement is not None else None
        return (
            isinstance(node, ast.Assign)
            and binding.kind == "value"
            and not binding.path
            and self.is_scalar(node.value, known)
        )

    def is_scalar(self, node: ast.expr, known: Names) -> bool:
        """Return whether it is a size, a cast, a name of one, or computed from these and from numbers."""
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            return any(self.is_scalar(each, known) for each in sides) and all(
                self.is_scalar(each, known) or self.kind(each).among(*GRAPH_NUMBERS) for each in sides
            )
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("int", "float"):
            return self.kind(node).is_tensor
        return self.is_size(node) or (isinstance(node, ast.Name) and node.id in known)

    def is_counted(self, node: ast.expr) -> bool:
        """Return whether a tensor of the graph may be a number in dygraph: see `Tensor.counted`."""
        return _is_counted(self.kind(node))

    def holds_counted(self, name: str) -> bool:
        """Return whether the tensor of a name may be a number in dygraph, anywhere."""
        return _is_counted(self.function.bound.get(name, NOTHING))

    def truth_with(self, node: ast.AST, known: Names) -> Truth:
        """The form of control flow if some numbers are tensors."""
        found = self._tested_with(node, known)
        if found is Truth.PYTHON and isinstance(node, ast.For | ast.While) and node in self._left_with(known):
            return Truth.GRAPH
        return found

    def _tested_with(self, node: ast.AST, known: Names) -> Truth:
        """The form of control flow by its test alone."""
        found = self.function.truth(node)
        test = node.iter if isinstance(node, ast.For) else getattr(node, "test", node)
        if found is Truth.PYTHON and isinstance(test, ast.UnaryOp) and test is not node:
            found = self.function.truth(test)
        if found is Truth.PYTHON and not _is_identity(test):
            if self.reads_any(test, known) or (self.has_size(test) and not isinstance(node, ast.Assert)):
                return Truth.EITHER
            if test is not node and self._has_choice(test, known):
                return Truth.EITHER
        return found

    def truth(self, node: ast.AST) -> Truth:
        """The form of control flow."""
        found = self.truth_with(node, self.became_tensors)
        if found is Truth.PYTHON and self.held.arrays and isinstance(node, ast.For | ast.While | ast.If):
            test = node.iter if isinstance(node, ast.For) else node.test
            return Truth.EITHER if any(map(self.is_array_length, ast.walk(test))) else found
        return found

    @cached_property
    def held(self) -> Held:
        """The lists and dicts that the graph carries. Raises CannotExpand if it cannot carry one."""
        flow = [each for each in self.function.statements if isinstance(each.node, _COMPOUND)]
        known = self.became_tensors
        graph = {each for each in flow if self.truth_with(each.node, known) is not Truth.PYTHON}
        return Held(self.function, graph)

    def is_array_length(self, node: ast.AST) -> bool:
        """Return whether it is `len` of a list that grows in the graph."""
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and len(node.args) == 1):
            return False
        return isinstance(node.args[0], ast.Name) and node.args[0].id in self.held.grown

    def _left_with(self, known: Names) -> frozenset[ast.AST]:
        """The loops left by a `break`, `continue` or `return` whose condition is a tensor."""
        if known in self._left:
            return self._left[known]
        found: set[ast.AST] = set()
        for statement in self.function.statements:
            if not isinstance(statement.node, ast.Break | ast.Continue | ast.Return):
                continue
            is_graph = False
            for each in self.function.left_by(statement):
                if is_graph and isinstance(each.node, ast.For | ast.While):
                    found.add(each.node)
                is_compound = isinstance(each.node, (*_COMPOUND, ast.Match))
                is_graph |= is_compound and self._tested_with(each.node, known) is not Truth.PYTHON
        self._left[known] = frozenset(found)
        return self._left[known]

    def reads_any(self, node: ast.AST, known: Names) -> bool:
        """Return whether an expression reads such a number where its value counts."""
        return any(
            isinstance(each, ast.Name) and each.id in known and isinstance(each.ctx, ast.Load)
            for each in ast.walk(node)
        )

    def changes(self, node: ast.AST) -> bool:
        """Return whether an expression's number becomes a tensor in the graph."""
        known = self.became_tensors
        return self.reads_any(node, known) or self.has_size(node) or self._has_choice(node, known)

    def has_size(self, node: ast.AST) -> bool:
        """Return whether a size that a graph does not know is read in an expression."""
        return any(self.is_size(each) for each in ast.walk(node))

    def is_size(self, node: ast.AST) -> bool:
        """Return whether it is ``x.shape[0]``, ``len(x)`` or ``x.shape`` with sizes that a graph may not
        know.
        """
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return self.is_shape(node.value) and not isinstance(self.size_at(node), int)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and len(node.args) == 1:
            return self.is_length(node)
        return False

    def is_length(self, node: ast.Call) -> bool:
        """Return whether `len(x)` has a tensor of unknown length as argument."""
        return self.kind(node.args[0]).tensor is not None and not self.has_known_length(node.args[0])

    def has_known_length(self, node: ast.expr) -> bool:
        """Return whether the first dimension of a tensor is known."""
        tensor = self.kind(node).tensor
        return tensor is not None and bool(tensor.shape) and isinstance((tensor.shape or (None,))[0], int)

    def is_shape(self, node: ast.AST) -> bool:
        """Return whether an expression is a tensor's `shape`."""
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "shape"
            and self.kind(node.value).tensor is not None
        )

    def size_at(self, node: ast.Subscript) -> int | Dim:
        """The size `x.shape[i]`, if it is a number in every run."""
        assert isinstance(node.value, ast.Attribute)
        tensor = self.kind(node.value.value).tensor
        index = self.kind(node.slice).constant
        if tensor is None or tensor.shape is None or not isinstance(index, int):
            return Dim.ANY
        return tensor.shape[index] if -len(tensor.shape) <= index < len(tensor.shape) else Dim.ANY

    def bind(self, env: Env, node: ast.stmt) -> None:
        """Record the types of the names that a statement binds."""
        value = getattr(node, "value", None)
        is_alias = isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            value, ast.Name | ast.Attribute | ast.Subscript | ast.IfExp | ast.Tuple
        )
        given: dict[ast.expr, ast.expr] = {}
        if isinstance(node, ast.Assign):
            for target in node.targets:
                given.update(parts_assigned(target, node.value))
        for each in own_parts(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                info = info_of(self.kind(each)).named(is_alias=is_alias)
                if each in given:
                    info = replace(info, held=self.held.kind_of(given[each]))
                made = value
                if isinstance(node, ast.AugAssign):
                    made = ast.BinOp(as_load(node.target), node.op, node.value)
                augmented = made is not value and each.id in self.became_tensors
                if info.number and made is not None and (augmented or self.changes(made)):
                    info = self._computed(info, made, env)
                known = info.value.tensor
                if known is not None and known.rank is None:
                    if made is not None and self._is_scalar(made, env):
                        known = replace(known, shape=())
                        info = replace(info, value=replace(info.value, tensor=known))
                env[each.id] = info

    def _computed(self, info: VarInfo, value: ast.expr, env: Env) -> VarInfo:
        """The type of a number computed from possible tensors: a tensor if one part certainly is."""
        named = [env[each.id] for each in _summands(value) if env.get(each.id, UNBOUND).value.is_tensor]
        if not named or info.number not in ("int", "float"):
            return info.or_tensor()
        dtypes = {each.dtype for each in named}
        dtype = "int64" if info.number == "int" else "float64" if "float64" in dtypes else "float32"
        shape = () if all(each.value.rank == 0 for each in named) else None
        known = Tensor("" if "" in dtypes else dtype, shape)
        kept = info.value.python - GRAPH_NUMBERS
        return replace(info, value=replace(info.value, python=kept, tensor=known))

    def at_start(self) -> Env:
        """The names at the beginning of the function: parameters, typed by their first uses."""
        function = self.function
        found = {name: info_of(value) for name, value in function.closure.items()}
        found.update({name: info_of(value) for name, value in function.parameters.items()})
        seen: set[str] = set()
        for statement in function.statements:
            for each in own_parts(statement.node):
                if isinstance(each, ast.Name) and each.id in function.parameters and each.id not in seen:
                    kind = self.kind(each)
                    if isinstance(each.ctx, ast.Load) and not kind.is_nothing:
                        found[each.id] = info_of(kind)
                    seen.add(each.id)
        return found

    def _is_scalar(self, node: ast.expr, env: Env) -> bool:
        """Return whether an expression surely has no dimensions."""
        if isinstance(node, ast.BinOp):
            return self._is_scalar(node.left, env) and self._is_scalar(node.right, env)
        if isinstance(node, ast.Name) and node.id in env:
            info = env[node.id]
            return not (info.other or info.value.unknown or info.value.array) and (
                info.is_number or info.value.rank == 0
            )
        info = info_of(self.kind(node))
        return info.is_number or (info.value.is_tensor and info.value.rank == 0)


def _summands(node: ast.expr) -> Iterator[ast.Name]:
    """Yield the names in sums, products and quotients."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        yield from _summands(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield from _summands(node.left)
        yield from _summands(node.right)


def _is_counted(value: AbstractValue) -> bool:
    return value.tensor is not None and value.tensor.counted


def _is_identity(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and all(isinstance(each, ast.Is | ast.IsNot) for each in node.ops)


def _is_used_below(scope: ast.AST, name: str) -> bool:
    """Return whether no `if` or loop is between a scope's reads of a name and the function of that name."""
    ends, branches, reads = [0], [], []
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        each = waiting.pop()
        if isinstance(each, DEFINITIONS):
            ends += [each.end_lineno or 0] if each.name == name else []
            continue
        if isinstance(each, _COMPOUND):
            branches.append(each.lineno)
        elif isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
            reads.append(each.lineno)
        waiting += ast.iter_child_nodes(each)
    made = [(max(end for end in ends if end < line), line) for line in reads]
    return all(end and not any(end < branch <= line for branch in branches) for end, line in made)
