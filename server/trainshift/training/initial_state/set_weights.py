"""Set weights: models that get their weights from the script itself, and not from an optimizer.

A target network, or an average of weights, is a copy of trained weights.  A copy made before the ranks had
the same weights differs by rank, so it is broadcast with the trained model.  Such a broadcast does not reach
weights that the script saves in arrays and restores later: the model is broadcast before they are read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import UNKNOWN
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, dotted, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.backward_slice import backward_slice
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.initial_state.broadcasts import Broadcasts
from trainshift.training.loops.execution_order import Course
from trainshift.training.loops.fits import Fit, Fits
from trainshift.training.loops.steps import VARIABLE_LISTS, Step
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.ranks.training_data import TrainingData

OTHER_BEGINNING = (
    "the script sets the weights of {}, which may start different on each rank; broadcast them too"
)
_ARRAYS = ("get_weights",)
_SET = "set_weights"
# Calls that return a variable's value, or a new variable with that value.
_COPYING = frozenset(
    {"Variable", "array", "convert_to_tensor", "copy", "deepcopy", "identity", "numpy", "read_value", "value"}
)
# The methods of a callback that run before the end of the first step.
_FIRST = ("set_model", "on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_batch_begin")
_ASSIGN = "assign"


class Early(NamedTuple):
    """A statement at which a model is broadcast before a loop uses its weights, with the model's name."""

    place: Statement
    name: str
    predicts: bool = False
    """True if its predictions choose training data there, and False if its weights are copied."""


class SetWeights:
    """The models of one program whose weights the script sets, as far as known."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def copies(self, step: Step) -> list[str]:
        """The names, at a step, of other models that get weights from the step's model."""
        trained = self._trained(step)
        named = (
            each for names in self._written for each in names if step.models and self._can_name(each, step)
        )
        return [name for name in dict.fromkeys(dotted(each.node) for each in named) if name not in trained]

    def unnamed(self, step: Step) -> str:
        """A model without a name at a step that gets weights from the script; or ""."""
        trained, copies = self._trained(step), set(self.copies(step))
        return self._other({*trained, *copies})

    def beside(self, fit: Fit) -> str:
        """A model that gets weights from the script, and is not part of the one that a `fit` trains."""
        model = Occurrence(fit.model, fit.site.scope, fit.site.statement)
        return self._other({dotted(each.node) for each in self._plain(model)})

    def _other(self, known: set[str]) -> str:
        """The first model set before all training ends that is neither known nor a part of a known one."""
        for names in self._written:
            called = [dotted(each.node) for each in names]
            is_known = any(f"{name}.".startswith(f"{each}.") for name in called for each in known)
            if not is_known and any(map(self._is_model, names)) and not self._is_late(names[0]):
                return called[0]
        return ""

    def _is_model(self, at: Occurrence) -> bool:
        return self._names.may_be(self._names.values(at.node, at.scope, at.statement), *api.MODEL)

    def _is_late(self, at: Occurrence) -> bool:
        """Return whether a statement of the file itself comes after all that train."""
        trains = self._program.fact(WhatTrains).statement_trains
        ends = [self._start(each) for each in self._script.statements if trains(each) and not each.is_nested]
        late = at.statement is not None and self._start(at.statement) > max(ends, default=0)
        return late and at.scope.function() is None

    def early(self, step: Step) -> list[Early]:
        """The statements at which a step's models are broadcast before their weights are used."""
        return self._early(step.site, step.models)

    def early_before(self, fit: Fit) -> list[Early]:
        """The statements at which a `fit`'s model is broadcast before its weights are used.

        A callback that saves weights at the start of the training does so before Horovod's callback
        broadcasts.
        """
        found = self._early(fit.site, [fit.model])
        if not fit.site.deferred and dotted(fit.model) and any(map(self._keeps_first, self._callbacks)):
            found.append(Early(fit.site.statement, dotted(fit.model)))
        return list(dict.fromkeys(found))

    @cached_property
    def keeps_before_fits(self) -> bool:
        """Return whether weights are used before any `fit`."""
        return any(map(self.early_before, self._program.fact(Fits).fits))

    def _early(self, site: Site, models: list[ast.expr]) -> list[Early]:
        found: dict[Early, None] = {}
        for at, around, is_unbuilt in self._used_first(site, models, self._read):
            assert at.statement is not None
            # The loop may call the model first, and it has no variables before.
            found[Early(at.statement if is_unbuilt else around, dotted(at.node))] = None
        for at, around, is_unbuilt in self._used_first(site, models, self._predicting):
            if not is_unbuilt and Early(around, dotted(at.node)) not in found:
                found[Early(around, dotted(at.node), predicts=True)] = None
        return list(found)

    def unbuilt(self, site: Site, models: list[ast.expr]) -> str:
        """The call of a model without variables that chooses its first training data, so that nothing can
        be broadcast before; or "".
        """
        used = self._used_first(site, models, self._predicting)
        return next((dotted(at.node) for at, _, is_unbuilt in used if is_unbuilt), "")

    def _used_first(
        self, site: Site, models: list[ast.expr], used: Iterable[tuple[Occurrence, bool]]
    ) -> Iterator[tuple[Occurrence, Statement, bool]]:
        """Yield the uses of trained models before the first step, with the outermost loop around each, and
        whether the model has no variables before.
        """
        trained = [Occurrence(each, site.scope, site.statement) for each in models]
        names = {dotted(name.node) for model in trained for name in self._plain(model)}
        values = {each for model in trained for each in self._names.values(*model[:3])} - {UNKNOWN}
        put_back = {dotted(name.node) for each in self._set for name in self._plain(each)} & names
        is_unbuilt = any(map(self._program.fact(Broadcasts).is_unbuilt, trained if used else ()))
        for at, is_whole in used if trained else ():
            assert at.statement is not None
            around = self._outermost(at.statement)
            place = at.statement if is_unbuilt else around
            here = {dotted(each.node) for each in self._plain(at)}
            is_trained = bool(here & names) or bool(values & self._names.values(*at[:3]))
            is_own = is_whole and not here & put_back
            if is_trained and not is_own and self._can_send(place) and self._comes_first(at, around, site):
                yield at, around, is_unbuilt

    @cached_property
    def _predicting(self) -> list[tuple[Occurrence, bool]]:
        """The models whose predictions choose training data."""
        found = self._program.fact(TrainingData).chosen_by
        return [(each, False) for each in found if dotted(each.node)]

    @cached_property
    def _read(self) -> list[tuple[Occurrence, bool]]:
        """The models whose weights are read, and whether as arrays, all of them at once."""
        arrays = (_receiver(site) for site in self._script.sites_named(*_ARRAYS) if not _is_later(site))
        found = [(each, True) for each in arrays if each is not None]
        for at in self._program.fact(ExpressionsByKind).of(ast.ListComp, ast.DictComp):
            if at.statement is not None and isinstance(at.statement.node, ast.Assign | ast.AnnAssign):
                of = _model_copied(at.node)
                if of is not None:
                    found.append((at.part(of), False))
        return found

    def _comes_first(self, at: Occurrence, place: Statement, site: Site) -> bool:
        """Return whether weights of a model created before `place` are read before a step is taken."""
        assert at.statement is not None
        if not self._is_bound_before(at, place):
            return False
        function = at.statement.scope.function()
        trains = self._program.fact(WhatTrains)
        if function is None or trains.statement_trains(place) or function is site.scope.function():
            return self._is_before(at.statement, place)
        owner = class_around(at.scope)
        if owner is not None and function.name != "__init__" and self._is_callback(owner):
            return False
        index = self._program.fact(Course).index
        calls = [
            index[each] for each in self._script.sites if each.statement is at.statement and each in index
        ]
        return bool(calls) and min(calls) < index.get(site, 0)

    def _can_send(self, place: Statement) -> bool:
        """Return whether all ranks reach a place at which they can exchange tensors."""
        is_in_graph = self._program.fact(Executions).is_in_graph(place.scope)
        return not is_in_graph and not self._program.fact(Horovod).on_root(place)

    @cached_property
    def _callbacks(self) -> list[Scope]:
        """The script's own classes of callbacks."""
        found = {each.scope.owner() for each in self._script.statements if each.scope.owner() is not None}
        return [each for each in found if each is not None and self._is_callback(each)]

    def _is_callback(self, cls: Scope) -> bool:
        return self._names.descends(cls, *api.CALLBACK)

    def _keeps_first(self, cls: Scope) -> bool:
        """Return whether a callback saves the initial weights of a training, and restores weights."""
        read = [at for at, _ in self._read if self._is_in(at.scope, cls, _FIRST) and not _is_counted(at)]
        setting = self._script.sites_named(_SET, _ASSIGN)
        return bool(read) and any(self._is_in(each.scope, cls) for each in setting)

    def _is_in(self, scope: Scope, cls: Scope, methods: tuple[str, ...] = ()) -> bool:
        function = scope.function()
        is_method = function is not None and (not methods or function.name in methods)
        return is_method and class_around(scope) is cls

    def _trained(self, step: Step) -> set[str]:
        """The names of a step's models, at the step and at its callers."""
        models = (Occurrence(each, step.site.scope, step.statement) for each in step.models)
        return {dotted(name.node) for model in models for name in self._plain(model)}

    @cached_property
    def _set(self) -> list[Occurrence]:
        """The receivers of `set_weights`."""
        found = (_receiver(site) for site in self._script.sites_named(_SET))
        return [each for each in found if each is not None]

    @cached_property
    def _written(self) -> list[list[Occurrence]]:
        """The models whose weights are set from those of others, each by all names that it has.

        Parts of a model that sets their weights itself are left out: they are broadcast with it.
        """
        functions = {site.scope.function() for site in self._script.sites_named(*_ARRAYS)}
        found = [each for each in self._set if each.scope.function() in functions]
        for site in self._script.sites_named(_ASSIGN):
            at, loop = _receiver(site), site.statement.parent
            if at is not None and loop is not None and isinstance(loop.node, ast.For):
                found += self._owners(at)
        return [list(self._plain(each)) for each in found if not self._is_part(each)]

    def _is_part(self, at: Occurrence) -> bool:
        """Return whether a model's own code sets the weights of its parts."""
        owner = class_around(at.scope)
        return owner is not None and self._names.descends(owner, *api.MODEL)

    def _owners(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the models whose variables a loop iterates, by a name."""
        for each in self._behind(at):
            if isinstance(each.node, ast.Attribute) and each.node.attr in VARIABLE_LISTS:
                yield each.part(each.node.value)

    def _plain(self, at: Occurrence) -> Iterator[Occurrence]:
        """Yield the names of a model, and the arguments behind parameters among them."""
        return (each for each in self._behind(at) if dotted(each.node))

    def _behind(self, at: Occurrence) -> list[Occurrence]:
        return list(backward_slice(self._names, at, stop=lambda each: not isinstance(each.node, ast.Name)))

    def _can_name(self, at: Occurrence, step: Step) -> bool:
        """Return whether a model's name still means the same model when a step is taken."""
        root = _root(at.node)
        scope = step.site.scope
        if self._names.is_self(root, at.scope):
            own, here = class_around(at.scope), class_around(scope)
            same = own is here and own is not None and dotted(step.models[0]).startswith(f"{root.id}.")
            made = {each.scope.function() for each in self._names.bindings(at)}
            return same and any(each is not None and each.name == "__init__" for each in made)
        home, bound = self._names.lookup(root.id, at.scope, at.statement)
        there, seen = self._names.lookup(root.id, scope, step.statement)
        if (
            home is not there
            or not bound
            or not seen
            or self._script.home(at.scope) is not self._script.home(scope)
        ):
            return False
        if any(each.kind == "parameter" or each.statement is None for each in seen):
            return False
        begins = self._begins(home)
        return all(self._start(each.statement) < begins for each in seen if each.statement is not None)

    def _begins(self, home: object) -> int:
        """The offset of the first training statement in a function or a file."""
        trains = self._program.fact(WhatTrains).statement_trains
        starts = [
            self._start(each)
            for each in self._script.statements
            if trains(each)
            and each.scope.function() is home
            and not isinstance(each.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        return min(starts, default=0)

    def _outermost(self, statement: Statement) -> Statement:
        """The outermost loop around a statement, in its function; else the statement itself."""
        above = [each for each in statement.ancestors() if each.scope is statement.scope]
        return next((each for each in reversed(above) if isinstance(each.node, LOOPS)), statement)

    def _is_before(self, statement: Statement, place: Statement) -> bool:
        """Return whether weights are read before the first step is taken."""
        trains = self._program.fact(WhatTrains).statement_trains
        function = statement.scope.function()
        if function is not None and not trains(place):
            return False
        around = set(statement.path())
        steps = [self._start(each) for each in place.walk() if trains(each) and each not in around]
        begins = min(steps, default=self._begins(function))
        return self._start(statement) < begins

    def _is_bound_before(self, at: Occurrence, place: Statement) -> bool:
        root = _root(at.node)
        bound = self._names.lookup(root.id, at.scope, at.statement)[1]
        inside = set(place.walk())
        return bool(bound) and not any(each.statement in inside for each in bound)

    def _start(self, statement: Statement) -> int:
        return self._script.statement_span(statement).start


def _is_counted(at: Occurrence) -> bool:
    """Return whether a test of a method's argument, such as the epoch, decides about a statement."""
    function = at.scope.function()
    above = at.statement.ancestors() if at.statement is not None else ()
    bindings = function.bindings if function is not None else {}
    return any(
        isinstance(part, ast.Name)
        and part.id != "self"
        and any(binding.kind == "parameter" for binding in bindings.get(part.id, ()))
        for each in above
        if isinstance(each.node, ast.If)
        for part in ast.walk(each.node.test)
    )


def _is_later(site: Site) -> bool:
    """Return whether a call is not made by its statement, but later by a function that the statement
    creates.
    """
    return site.deferred and any(isinstance(each, ast.Lambda) for each in ast.walk(site.statement.node))


def _model_copied(node: ast.expr) -> ast.expr | None:
    """The model whose variables a comprehension copies, if that has a name."""
    assert isinstance(node, ast.ListComp | ast.DictComp)
    of = node.generators[0].iter
    made = node.elt if isinstance(node, ast.ListComp) else node.value
    copies = any(isinstance(each, ast.Call) and last_name(each.func) in _COPYING for each in ast.walk(made))
    if not copies or not isinstance(of, ast.Attribute) or of.attr not in VARIABLE_LISTS:
        return None
    return of.value if dotted(of.value) else None


def _receiver(site: Site) -> Occurrence | None:
    """The receiver of a method, if it is a name or an attribute of one."""
    function = site.node.func
    if not isinstance(function, ast.Attribute) or not dotted(function.value):
        return None
    return Occurrence(function.value, site.scope, site.statement)


def _root(node: ast.expr) -> ast.Name:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node
