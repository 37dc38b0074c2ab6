"""Drawn constants: random numbers that a program draws once, and that its models compute with ever after.

Random features, a fixed mask and a projection that is never trained are examples. Ranks that drew others
average the gradients of different functions. What is drawn for each step, each row or each batch may differ.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.divergence import CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, Instance
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, arguments, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import calls_leading_to, calls_of
from trainshift.python.values.made_objects import MadeObjects
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import RANK, SIZE
from trainshift.training.loops.fits import Fits, method_argument
from trainshift.training.loops.steps import Steps
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.ranks.sink_inputs import counts
from trainshift.training.ranks.training_data import TrainingData
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.draws import BY_SHAPE, TENSORFLOW
from trainshift.training.uniformity.one_axis import has_one_axis
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.value_flow import ValueFlow
from trainshift.training.uniformity.verdict import Cause

# The methods by which layers, models and losses compute on a batch.
_COMPUTING = frozenset({"__call__", "call", "compute_loss", "train_step"})
_LOSSES = "keras.losses."
# The functions that get a function for each batch or row.
_APPLYING = frozenset(
    {"Lambda", "custom_gradient", "function", "map", "map_fn", "minimize", "vectorized_map"}
)
_PRODUCTS = frozenset({"dot", "einsum", "inner", "matmul", "tensordot"})
_COMBINING = frozenset({"add", "divide", "multiply", "subtract", "where"})
# The functions that choose elements of their first argument by the numbers in the second.
_LOOKING_UP = frozenset({"embedding_lookup", "gather", "take"})
_REDUCING = frozenset(
    {
        "max", "mean", "median", "min", "norm", "percentile", "quantile", "reduce_max", "reduce_mean",
        "reduce_min", "reduce_std", "reduce_sum", "std", "sum", "var",
    }
)  # fmt: skip
_ORDERS = frozenset({"permutation", "permuted", "randperm"})
_CHOOSING = frozenset({"choice", "choices", "sample"})
_GIVEN = (ast.Constant, ast.List, ast.Tuple)
_SHAPED_FIRST = frozenset({"normal", "truncated_normal", "uniform"})
_BOUNDED = 2
_DATASETS = frozenset({"from_generator", "from_tensor_slices", "from_tensors"})
_COUNTING = frozenset({"arange", "int", "len", "range", "round"})


class DrawnConstants:
    """The draws of one program that become parts of the functions which its models compute."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._uniformity = program.fact(Uniformity)

    @property
    def all(self) -> Iterator[tuple[Occurrence, Cause]]:
        """Yield the places where a step, or the data that it gets, computes with such a draw."""
        if not self._once:
            return
        for at in self._data:
            yield from self._mixed(at)
        inputs = {part for node in self._trained for part in ast.walk(node)}
        # Without other data, what a step reads are the data.
        has_data = any(not counts(self._program, each) for each in self._data)
        reads = list(self._read) if has_data else []
        # One walk back from all of them tells whether any is drawn.
        is_drawn = any(self._drawn(*reads))
        for at in reads:
            if is_drawn and at.node not in inputs:
                yield from self._unless_data(at, list(self._drawn(at)))
            yield from ((at, each) for given in self._initial(at) for each in self._drawn(given))
        for at in self._of_graphs:
            yield from self._unless_data(
                at, [each for each in self._drawn(at) if not self._is_of_graph(each)]
            )

    @cached_property
    def _once(self) -> dict[ast.AST, Cause]:
        """The draws that the program makes before it trains, and not for each batch or row."""
        if not self._uniformity.asks_any:
            return {}
        draws = self._uniformity.draws
        found = (self._uniformity.cause(of_call(site)) for site in self._script.sites)
        return {
            each.at.node: each
            for each in found
            if each is not None
            and each.kind is CauseKind.DRAW
            and (site := each.site) is not None
            and (draws.is_draw(site) or site.name in _ORDERS)
            and not self._chooses_rows(site)
            and self._is_once(site)
        }

    def _chooses_rows(self, site: Site) -> bool:
        """Return whether a call draws among rows, not among a given number of columns or classes."""
        if site.name not in _ORDERS | _CHOOSING:
            return False
        given = argument(site.node, 0)
        while isinstance(given, ast.Call) and last_name(given.func) in _COUNTING and given.args:
            if last_name(given.func) == "len":
                return True
            given = given.args[0]
        if given is None:
            return True
        step = self._names.steps_back(of_call(site).part(given))
        found = [each.node for each in step.sources] if step is not None and step.sources else [given]
        return not all(isinstance(each, _GIVEN) or _is_columns(each) for each in found)

    def _is_once(self, site: Site) -> bool:
        """Return whether a program draws once for a training, and not in code that its steps call."""
        if site.deferred:
            return False

        def calling(each: Site) -> list[Site]:
            function = each.scope.function()
            return calls_of(self._names, self._script, function) if function is not None else []

        return all(map(self._is_before_steps, reachable([site], calling)))

    def _is_before_steps(self, site: Site) -> bool:
        function = site.scope.function()
        if function in self._computing or site.statement in self._recorded:
            return False
        if function is not None and function.is_generator:
            return False
        loop = next((each for each in site.statement.ancestors() if isinstance(each.node, LOOPS)), None)
        # A loop that makes a new model in each turn, as on each fold, draws for each training.
        return loop is None or not self._making.isdisjoint(loop.walk())

    @cached_property
    def _making(self) -> frozenset[Statement]:
        """The statements that make models or optimizers, and those that call functions which do."""
        made = (
            site
            for site, values in self._program.fact(MadeObjects).all
            if self._names.may_be(values, *api.MODEL, *api.OPTIMIZERS)
        )
        return frozenset(each.statement for each in calls_leading_to(self._names, *made))

    # What a step computes with

    @cached_property
    def _computing(self) -> frozenset[Scope | None]:
        """The functions that run for each batch: those of layers, models and losses, and those that they
        call.
        """
        starts: list[Scope] = []
        for statement in self._script.statements:
            function = statement.scope.function()
            owner = function.owner() if function is not None and function.name in _COMPUTING else None
            if function is not None and owner is not None and self._computes(owner):
                starts.append(function)
        handed = [
            (of_call(site), given)
            for site in self._script.sites_named(*_APPLYING)
            for given in arguments(site.node)
        ]
        for each in self._program.fact(Fits).compiles:
            loss = method_argument(each.site, "loss")
            if loss is not None:
                handed.append((of_call(each.site), loss))
        for at, given in handed:
            values = self._names.values(given, at.scope, at.statement)
            starts += [value.scope for value in values if isinstance(value, Function)]
        called = [site for site in self._script.sites if site.statement in self._recorded]
        starts += [each for site in called for each in self._names.called_functions(site)]

        def calls(function: Scope) -> Iterable[Scope]:
            inside = (site for site in self._script.sites if site.scope.function() is function)
            return (each for site in inside for each in self._names.called_functions(site))

        return frozenset(reachable(dict.fromkeys(starts), calls))

    def _computes(self, cls: Scope) -> bool:
        bases = self._names.library_bases(cls)
        return self._names.descends(cls, *api.LAYER, *api.MODEL, *api.MODULE) or any(
            _LOSSES in (api.canonical(each) or each) for each in bases
        )

    @cached_property
    def _recorded(self) -> frozenset[Statement]:
        """The statements that a tape records."""
        tapes = (each.with_statement for each in self._program.fact(Steps).tapes)
        return frozenset(each for tape in tapes if tape is not None for each in tape.walk())

    @property
    def _read(self) -> Iterator[Occurrence]:
        """Yield the names and attributes that a step reads."""
        for statement in self._script.statements:
            if statement in self._recorded or statement.scope.function() in self._computing:
                for node in statement.own_parts():
                    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                        yield Occurrence(node, statement.scope, statement)
        for site in self._script.sites_named(*_APPLYING):
            for given in arguments(site.node):
                if isinstance(given, ast.Lambda):
                    inner = of_call(site)._replace(scope=site.scope.facts.scope_of.get(given, site.scope))
                    for node in ast.walk(given.body):
                        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                            yield inner.part(node)

    @property
    def _of_graphs(self) -> Iterator[Occurrence]:
        """Yield the losses of graphs, which a session computes for each batch."""
        for site in self._script.sites_named("minimize", "compute_gradients"):
            loss = argument(site.node, 0, "loss")
            if loss is not None and self._program.fact(ValueFlow).has_session:
                yield of_call(site).part(loss)

    def _initial(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the first values of the variables that a name holds, if nothing broadcasts these."""
        for each in self._names.values(*at[:3]):
            if isinstance(each, Instance) and self._names.is_a(each, *api.VARIABLE):
                made = self._script.site_of(each.node)
                given = argument(made.node, 0, "initial_value")
                owner = class_around(made.scope)
                is_kept = owner is not None and self._computes(owner)
                if given is not None and not is_kept and each.node not in self._trained_variables:
                    yield of_call(made).part(given)

    @cached_property
    def _trained_variables(self) -> frozenset[ast.AST]:
        """The calls that make variables whose gradients are taken; these are broadcast."""
        behind = self._program.fact(Trails).behind
        taken = (
            of_call(each.site).part(given)
            for each in self._program.fact(Steps).gradients
            if (given := argument(each.site.node, 1, "sources")) is not None
        )
        handed = (
            of_call(site).part(given)
            for site in self._script.sites_named("minimize")
            if (given := argument(site.node, 1, "var_list")) is not None
        )
        return frozenset(each.node for at in (*taken, *handed) for each in behind(at))

    def _drawn(self, *values: Occurrence) -> Iterator[Cause]:
        """Yield the draws behind some values, but for those by which a rank takes its rows."""
        for each in self._uniformity.computed_from(*values, stops=self._takes_rows):
            if each.node in self._once:
                yield self._once[each.node]

    def _takes_rows(self, at: Occurrence) -> bool:
        """Return whether a value consists of rows: what a loop takes, a dataset, or what is only tested."""
        if at.node in self._trained or at.node in self._iterated or at.node in self._apart:
            return True
        if isinstance(at.node, ast.Call) and last_name(at.node.func) in _DATASETS:
            return True
        return self._program.fact(OwnBatches).cause(at) is not None

    @cached_property
    def _apart(self) -> frozenset[ast.AST]:
        """The arguments that functions of steps get elsewhere, as for a validation."""
        trains = self._program.fact(WhatTrains).site_trains
        sites = (site for each in self._computing if each for site in self._names.callers(each)[0])
        return frozenset(
            given
            for site in sites
            if not (site.statement in self._recorded or site.scope.function() in self._computing)
            and not trains(site)
            for given in arguments(site.node)
        )

    @cached_property
    def _iterated(self) -> frozenset[ast.AST]:
        loops = (each.node for each in self._script.statements)
        return frozenset(each.iter for each in loops if isinstance(each, ast.For | ast.AsyncFor))

    def _unless_data(self, at: Occurrence, drawn: list[Cause]) -> Iterator[tuple[Occurrence, Cause]]:
        """Yield the draws behind a value, unless it is data."""
        if drawn and not self._is_data(at, drawn):
            yield from ((at, each) for each in drawn)

    def _is_data(self, at: Occurrence, drawn: list[Cause]) -> bool:
        """Return whether a value has as many rows as drawn inputs, or is a seed of draws for each row."""
        if any(each.at.node in self._shared or _rows(each.site) in self._counts for each in drawn):
            return True
        seeds = (
            keyword.value
            for site in self._script.sites
            for keyword in site.node.keywords
            if keyword.arg == "seed"
        )
        return any(at.node is part for each in seeds for part in ast.walk(each))

    def _is_of_graph(self, cause: Cause) -> bool:
        return cause.site is not None and self._uniformity.draws.library(cause.site) == TENSORFLOW

    @cached_property
    def _trained(self) -> frozenset[ast.AST]:
        return frozenset(each.node for each in self._program.fact(TrainingData).trained)

    @cached_property
    def _shared(self) -> dict[ast.AST, Cause]:
        """The draws that make up inputs and targets of models."""
        causes = (each for at in self._data for each in self._uniformity.causes(at))
        return {each.at.node: each for each in causes if each.kind is CauseKind.DRAW}

    @cached_property
    def _rows(self) -> dict[ast.AST, str]:
        """The draws that data consist of, or are computed from element by element, with the texts of how many
        rows each has.
        """
        found = (each for at in self._data for each in self._walk(at, _multiplies))
        return {each.node: _rows(self._once[each.node].site) for each in found if each.node in self._once}

    @cached_property
    def _counts(self) -> frozenset[str]:
        """The texts of how many rows the program draws as data, with several columns."""
        return frozenset(
            text for node, text in self._rows.items() if isinstance(_shape(self._once[node].site), list)
        )

    # What the data are computed with

    @property
    def _data(self) -> list[Occurrence]:
        return self._program.fact(TrainingData).trained

    def _mixed(self, at: Occurrence) -> Iterator[tuple[Occurrence, Cause]]:
        """Yield the draws with which rows are multiplied, scaled or looked up."""
        for each in self._uniformity.computed_from(at):
            for part, others in self._constants(each):
                if all(map(self._is_number, others)):
                    continue  # The draw itself is the data.
                mixed = {one.at.node: one for other in others for one in self._of(other)}
                yield from ((part, one) for node, one in self._told(each, part).items() if node not in mixed)

    def _is_number(self, at: Occurrence) -> bool:
        """Return whether an expression is a number of the script or of Horovod."""
        node = at.node
        if isinstance(node, ast.Call):
            return self._program.fact(Horovod).is_call(self._script.site_of(node), *RANK, *SIZE)
        return isinstance(node, ast.Constant)

    def _constants(self, at: Occurrence) -> Iterator[tuple[Occurrence, list[Occurrence]]]:
        """Yield the parts of an expression that may be constants for its rows, each with the rows."""
        node = at.node
        if isinstance(node, ast.BinOp):
            left, right = at.part(node.left), at.part(node.right)
            yield right, [left]
            if not (isinstance(node.op, ast.MatMult) and any(self._of(right))):
                yield left, [right]
        elif isinstance(node, ast.Call):
            name = last_name(node.func)
            given = list(map(at.part, arguments(node)))
            if name in _LOOKING_UP and len(node.args) > 1:
                yield from self._looked_up(given[0], given[1], argument(node, None, "axis"))
            elif name in _PRODUCTS | _COMBINING:
                if isinstance(node.func, ast.Attribute) and len(given) == 1:
                    given.insert(0, at.part(node.func.value))
                for number, each in enumerate(given):
                    others = [*given[:number], *given[number + 1 :]]
                    if number or not any(one for other in others for one in self._of(other)):
                        yield each, others
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Tuple):
                yield from ((at.part(each), [at.part(node.value)]) for each in node.slice.elts[1:])
            elif not isinstance(node.slice, ast.Slice | ast.Constant):
                yield from self._looked_up(at.part(node.value), at.part(node.slice), None)

    def _looked_up(
        self, table: Occurrence, index: Occurrence, axis: ast.expr | None
    ) -> Iterator[tuple[Occurrence, list[Occurrence]]]:
        """Yield the table if rows are numbers in it, or the numbers if they choose columns of the rows."""
        if axis is not None and getattr(axis, "value", None) != 0:
            yield index, [table]
            return
        loads = self._calls_behind(index)
        is_number = all(last_name(each.func) in _COUNTING for each in loads)
        if not is_number and not any(self._of(index)) and loads.isdisjoint(self._calls_behind(table)):
            yield table, [index]

    def _calls_behind(self, at: Occurrence) -> set[ast.Call]:
        return {each.node for each in self._walk(at) if isinstance(each.node, ast.Call)}

    def _of(self, at: Occurrence) -> list[Cause]:
        return [self._once[each.node] for each in self._walk(at) if each.node in self._once]

    def _told(self, whole: Occurrence, part: Occurrence) -> dict[ast.AST, Cause]:
        """The draws of a part of an expression that have no element for each row."""
        found: dict[ast.AST, Cause] = {each.at.node: each for each in self._of(part)}
        node = whole.node
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        is_elementwise = name in _COMBINING or (
            isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult)
        )
        if not found or not is_elementwise:
            return {
                key: each for key, each in found.items() if key not in self._rows or not _multiplies(whole)
            }
        plain = {each.node for each in self._walk(part, self._reduces)}
        others = [each for each in map(whole.part, _operands(node)) if each.node is not part.node]
        have_rows_only = any(has_one_axis(self._program, each, unsure=False) for each in others)
        return {
            key: each
            for key, each in found.items()
            if key not in plain
            or (each.site is not None and self._is_for_all_rows(each.site, have_rows_only))
        }

    @staticmethod
    def _reduces(at: Occurrence) -> bool:
        """Return whether an expression is one result of all rows."""
        if not isinstance(at.node, ast.Call) or last_name(at.node.func) not in _REDUCING:
            return False
        axis = argument(at.node, 0 if isinstance(at.node.func, ast.Attribute) else 1, "axis")
        return axis is None or (isinstance(axis, ast.Constant) and axis.value == 0)

    def _is_for_all_rows(self, site: Site, have_rows_only: bool) -> bool:
        """Return whether a call draws one number, or numbers along columns only.

        Data that `have_rows_only` have no columns.
        """
        if site.name in _ORDERS or _rows(site) in self._counts:
            return False
        shape = _shape(site)
        if shape is None:
            return True
        parts = shape if isinstance(shape, list) else [shape]
        if len(parts) == 1 and have_rows_only:
            return isinstance(parts[0], ast.Constant) and parts[0].value == 1
        if len(parts) == 1:
            step = self._names.steps_back(of_call(site).part(parts[0]))
            sources = step.sources if step is not None else ()
            parts = [each.node for each in sources] if len(sources) == 1 else parts
            if isinstance(parts[0], ast.Tuple | ast.List):
                parts = list(parts[0].elts)
        if isinstance(parts[0], ast.Constant):
            return parts[0].value == 1 or len(parts) == 1
        return len(parts) == 1 and _is_columns(parts[0])

    def _walk(
        self, at: Occurrence, stops: Callable[[Occurrence], bool] | None = None
    ) -> Iterator[Occurrence]:
        """Yield the expressions behind a value, up to those at which the walk stops."""
        return self._uniformity.computed_from(at, stops=stops)


def _operands(node: ast.AST) -> list[ast.expr]:
    return (
        [node.left, node.right]
        if isinstance(node, ast.BinOp)
        else list(arguments(node))
        if isinstance(node, ast.Call)
        else []
    )


def _multiplies(at: Occurrence) -> bool:
    """Return whether an expression is a product of matrices."""
    if isinstance(at.node, ast.Call):
        return last_name(at.node.func) in _PRODUCTS
    return isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.MatMult)


def _shape(site: Site | None) -> list[ast.expr] | ast.expr | None:
    """The shape of the array that a call draws; None if it draws a number."""
    if site is None:
        return None
    named = argument(site.node, None, "shape") or argument(site.node, _BOUNDED, "size")
    if site.name in BY_SHAPE:
        named = named or argument(site.node, None, "size")
        given: list[ast.expr] = list(site.node.args)
        if named is None and len(given) > 1:
            return given
        named = named or (given[0] if given else None)
    elif named is None and site.name in _SHAPED_FIRST and site.node.args:
        first = site.node.args[0]
        named = first if not isinstance(first, ast.Constant) else None
    return list(named.elts) if isinstance(named, ast.Tuple | ast.List) else named


def _rows(site: Site | None) -> str:
    """The text of the number of rows that a call draws; empty if it draws a number."""
    shape = _shape(site)
    if isinstance(shape, list):
        return ast.unparse(shape[0]) if shape else ""
    return ast.unparse(shape) if shape is not None else ""


def _is_columns(node: ast.expr) -> bool:
    """Return whether an expression reads the number of columns of an array: ``x.shape[1]``."""
    return (
        isinstance(node, ast.Subscript)
        and last_name(node.value) == "shape"
        and not (isinstance(node.slice, ast.Constant) and node.slice.value == 0)
    )
