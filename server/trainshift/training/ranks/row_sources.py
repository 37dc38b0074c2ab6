"""Row sources: whether an iterator or a sequence may give a training its rows, or only other values.

Rates of a list, layers of a model and numbers that a script counts are the same on all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.syntax.chunk_syntax import COMPREHENSIONS, argument, arguments, children
from trainshift.training.loops.steps import VARIABLE_LISTS, Steps
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.value_flow import ValueFlow

# Functions that give nothing but their arguments, or numbers made of these.
_PASSING = (
    "builtins.enumerate", "builtins.iter", "builtins.list", "builtins.next",
    "builtins.range", "builtins.reversed", "builtins.sorted", "builtins.tuple", "builtins.zip",
    "itertools.", "numpy.arange", "numpy.geomspace", "numpy.linspace", "numpy.logspace",
)  # fmt: skip
_OF_MODELS = frozenset({*VARIABLE_LISTS, "layers", "non_trainable_variables", "non_trainable_weights"})
_PLAIN = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Dict, ast.JoinedStr, ast.List, ast.Set, ast.Tuple,
)  # fmt: skip


class RowSources:
    """The sources of the rows that one program trains on."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def may_take(self, at: Occurrence, given: ast.expr) -> bool:
        """Return whether an expression may take rows from a given iterator or sequence.

        It does if a training gets them, or if this leads to data or to code that may give any.
        """
        behind = reachable([at.part(given)], lambda each: self._parts(each) or (), lambda each: each[:2])
        return at.node in self._trained or any(self._parts(each) is None for each in behind)

    def _parts(self, at: Occurrence) -> Iterable[Occurrence] | None:
        """The expressions from which one takes its elements; None if it may take them from data."""
        node = at.node
        if isinstance(node, _PLAIN):
            return [at.part(each) for each in children(node) if isinstance(each, ast.expr)]
        if isinstance(node, COMPREHENSIONS) and not isinstance(node, ast.DictComp):
            inner = Occurrence(node.elt, at.scope.facts.scope_of.get(node, at.scope), at.statement)
            return [inner, *(inner.part(each.iter) for each in node.generators)]
        if isinstance(node, ast.Call):
            return self._of_call(node, at)
        if isinstance(node, ast.Subscript | ast.Yield | ast.YieldFrom | ast.Starred):
            return [at.part(node.value)] if node.value is not None else ()
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        if isinstance(node, ast.Attribute) and node.attr in _OF_MODELS:
            values = self._names.values(node.value, at.scope, at.statement)
            return () if self._names.may_be(values, *api.MODEL) else None
        step = self._names.steps_back(at)
        found = (*step.sources, *step.within) if step is not None else ()
        if not found and isinstance(node, ast.Attribute):
            return [at.part(node.value)]
        found = (*found, *self._program.fact(ValueFlow).added(at)) if found else ()
        return found if found and not (step is not None and step.unseen and not step.within) else None

    def _of_call(self, node: ast.Call, at: Occurrence) -> Iterable[Occurrence] | None:
        called = self._names.full_names(node.func, at.scope, at.statement)
        if called and all(each.startswith(_PASSING) for each in called):
            return [at.part(each) for each in arguments(node)]
        functions = self._names.called_functions(self._script.site_of(node))
        if not functions or not all(each.returns or each.yields for each in functions):
            return None
        return [
            Occurrence(value, function, where)
            for function in functions
            for value, where in (*function.returns, *function.yields)
        ]

    @cached_property
    def _trained(self) -> frozenset[ast.AST]:
        """The expressions that lead to the losses by which the program trains."""
        behind = self._program.fact(Trails).behind
        losses = (
            of_call(each.site).part(given)
            for each in self._program.fact(Steps).gradients
            if (given := argument(each.site.node, 0, "target")) is not None
        )
        fed = (
            of_call(site).part(given)
            for site in self._script.sites_named("train_on_batch", "fit", "partial_fit")
            for given in arguments(site.node)
        )
        made = (each.node for at in (*losses, *fed) for each in behind(at, of_data=True))
        return frozenset(each for each in made if not isinstance(each, ast.Constant))
