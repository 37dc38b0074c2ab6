"""Rate cases: the possible values of a learning rate's expression, and the place of each case.

A rate computed from the optimizer's current rate (``lr * 0.9``) is scaled with it, a literal number is not;
one expression may be either, depending on the case.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import UNSEEN, Occurrence, Step
from trainshift.python.names.values import (
    Class,
    Function,
    Library,
    Literal,
    Unknown,
    Value,
)
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    alternatives,
    arguments,
    dotted,
    last_name,
)
from trainshift.python.values.backward_slice import sliced
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.learning_rates.rate_kinds import (
    RATES,
    SETTLED,
    WRITTEN,
    RateKind,
    computes,
    kind_of_values,
)
from trainshift.training.learning_rates.saved_rates import SavedRates
from trainshift.training.learning_rates.schedulers import Schedulers
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.steps import Steps

NAMES = ("learning_rate", "lr")
# Attributes in which an optimizer keeps its rate.
ATTRIBUTES = (*NAMES, "_learning_rate")
_INNER = ("inner_optimizer", "_optimizer")
# Functions that return one of their arguments.
_CHOOSING = ("max", "min", "maximum", "minimum", "clip", "clip_by_value")
_BRANCHING = ("cond", "smart_cond")
# A function that selects elements from two arguments by its first.
_SELECTING = "where"
# Libraries whose functions return no rates of their own.
_CALCULATING = ("builtins", "math", "numpy", "tensorflow", "keras", "horovod")


class _Form(Enum):
    """The way in which an expression is computed from its parts."""

    CASES = auto()  # the value is one of them
    ITEM = auto()  # the value is one of them, inside a container that may have other uses
    SUM = auto()  # they are rates, like itself
    PRODUCT = auto()  # one of them is a rate, the others change it


_CHOICES = (_Form.CASES, _Form.ITEM)


class _Reading(Struct, frozen=True, eq=False):
    """An expression split into its parts.

    `own` are its possible kinds besides those of its `parts`.  `given` are the arguments of an unknown
    function.
    """

    place: Occurrence
    form: _Form
    parts: tuple[Occurrence, ...] = ()
    own: RateKind = RateKind.NONE
    given: tuple[Occurrence, ...] = ()


class RateCases:
    """The cases of the expressions of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._schedulers = program.fact(Schedulers)
        self._saved = SavedRates(program, self.is_rate)
        self._readings: dict[tuple[int, int], _Reading] = {}
        self._kinds: dict[_Reading, RateKind] = {}
        self._open: set[ast.expr] = set()

    # Questions

    def kinds(self, place: Occurrence, settled: frozenset[ast.expr] = frozenset()) -> RateKind:
        """The possible kinds of an expression; parts in `settled` are scaled elsewhere."""
        if settled:
            return self._solve(place, settled, {})[self._reading(place)]
        if self._reading(place) not in self._kinds:
            self._kinds.update(self._solve(place, settled, self._kinds))
        return self._kinds[self._reading(place)]

    def cases(self, place: Occurrence, settled: frozenset[ast.expr] = frozenset()) -> list[Occurrence]:
        """The parts that may have to be scaled one by one; none if the expression cannot be split."""
        reading = self._reading(place)
        if reading.form is _Form.SUM and self.kinds(place, settled) & RateKind.BELOW:
            return [part for part in reading.parts if self.kinds(part, settled) & RATES]
        if self.is_target(place) and reading.form is not _Form.CASES:
            return list(reading.parts if reading.form is _Form.SUM else reading.parts[:1])
        if reading.form in _CHOICES:
            whole = reading.form is _Form.ITEM or reading.own & WRITTEN
            return [] if whole else list(reading.parts)
        if reading.form is _Form.SUM:
            return [part for part in reading.parts if self._is_mixed(part) or self._is_literal(part)]
        mixed = [part for part in reading.parts if self._is_mixed(part)]
        return mixed if len(mixed) == 1 else []

    def is_target(self, place: Occurrence) -> bool:
        """Return whether an expression is implicit: the value that ``rate *= 0.5`` reads and sets."""
        statement = place.statement.node if place.statement is not None else None
        return isinstance(statement, ast.AugAssign) and all(
            part is not place.node for part in ast.walk(statement)
        )

    def reached(self, place: Occurrence) -> Iterator[Occurrence]:
        """Yield every source of the value of `place`, except itself."""
        for reading in self._closure(place):
            if reading.place.node is not place.node:
                yield reading.place

    def is_optimizer(self, place: Occurrence) -> bool:
        """Return whether the expression may be an optimizer, on any path."""
        return self._may_be(place, self._is_shown_optimizer)

    def is_rate(self, place: Occurrence, held: bool = False) -> bool:
        """Return whether the expression is the rate of an optimizer.

        With `held`, it is used like a variable, so an attribute of that name is a rate.
        """
        if place.node in self._open:
            return False
        self._open.add(place.node)
        try:
            return self._may_be(place, lambda each: self._is_shown_rate(each, held))
        finally:
            self._open.discard(place.node)

    # Optimizers

    def _may_be(self, place: Occurrence, holds: Callable[[Occurrence], bool]) -> bool:
        """Return whether a property holds for the expression in one of its cases."""

        def choices(at: Occurrence) -> Iterable[Occurrence]:
            reading = self._reading(at)
            return reading.parts if reading.form in _CHOICES else ()

        return any(map(holds, sliced(place, choices)))

    def member(self, place: Occurrence) -> tuple[Occurrence, str] | None:
        """The object and the name in ``object.name``, also as ``getattr(object, "name")``."""
        node = place.node
        if isinstance(node, ast.Attribute):
            return Occurrence(node.value, place.scope, place.statement), node.attr
        if isinstance(node, ast.Call) and last_name(node.func) == "getattr" and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return Occurrence(node.args[0], place.scope, place.statement), name.value
        return None

    def _is_shown_rate(self, place: Occurrence, held: bool) -> bool:
        member = self.member(place)
        if member is None or member[1] not in ATTRIBUTES:
            return False
        if self.is_optimizer(member[0]):
            return True
        values = self._values(member[0])
        return held and (not values or all(isinstance(value, Unknown) for value in values))

    def _is_shown_optimizer(self, place: Occurrence) -> bool:
        values = self._values(place)
        if self._names.may_be(values, *api.OPTIMIZERS):
            return True
        if any(isinstance(value, Unknown) for value in values) and dotted(place.node) in self._stepped:
            return True
        member = self.member(place)
        if member is None:
            return False
        if member[1] in _INNER:
            return self.is_optimizer(member[0])
        return member[1] == "optimizer" and self._may_be(member[0], self._is_shown_model)

    def _is_shown_model(self, place: Occurrence) -> bool:
        """Return whether the expression is a model: by its class, as a callback's own, or because it is
        fitted.
        """
        values = self._values(place)
        if self._names.may_be(values, *api.MODEL):
            return True
        member = self.member(place)
        if member is not None and member[1] == "model":
            if self._names.may_be(self._values(member[0]), *api.CALLBACK):
                return True
        unknown = any(isinstance(value, Unknown) for value in values)
        return unknown and any(
            dotted(model) == dotted(place.node) != "" and scope is place.scope
            for model, scope in self._fitted
        )

    @cached_property
    def _stepped(self) -> set[str]:
        return {dotted(step.receiver) for step in self._program.fact(Steps).steps} - {""}

    @cached_property
    def _fitted(self) -> list[tuple[ast.expr, Scope]]:
        keras = self._program.fact(Fits)
        return [(fit.model, fit.site.scope) for fit in (*keras.fits, *keras.batches)]

    # Kinds

    def _closure(self, place: Occurrence) -> list[_Reading]:
        """The expression and all sources of its value, split into parts."""

        def behind(reading: _Reading) -> Iterator[_Reading]:
            return map(self._reading, reversed((*reading.parts, *reading.given)))

        return list(reachable([self._reading(place)], behind))

    def _solve(
        self, place: Occurrence, settled: frozenset[ast.expr], known: dict[_Reading, RateKind]
    ) -> dict[_Reading, RateKind]:
        """The kinds of the expression and all of its sources, computed as a fixed point."""
        readings = [each for each in self._closure(place) if each not in known]
        found = dict.fromkeys(readings, RateKind.NONE)

        def kind_of(part: Occurrence) -> RateKind:
            reading = self._reading(part)
            return found[reading] if reading in found else known[reading]

        changed = True
        while changed:
            changed = False
            for reading in reversed(readings):
                kind = RateKind.BELOW if reading.place.node in settled else self._joined(reading, kind_of)
                changed = changed or kind != found[reading]
                found[reading] = kind
        return found

    def _joined(self, reading: _Reading, kind_of: Callable[[Occurrence], RateKind]) -> RateKind:
        """The kind of an expression, from the kinds of its parts."""
        kinds = [kind_of(part) for part in reading.parts]
        kind = reading.own
        for each in kinds:
            kind |= each if reading.form in _CHOICES else each & (SETTLED | RateKind.UNSEEN)
        if reading.form in _CHOICES:
            # A script that scales in one case scales in the others too: ``size() if wide else 1``.
            return kind & ~RATES if kind & RateKind.FACTOR else kind
        if all(each & WRITTEN for each in kinds):
            kind |= RateKind.NUMBER
        if reading.form is _Form.SUM:
            # A number beside a hand-scaled expression is left alone, as a cap of it.
            beside = bool(kind & RateKind.CURRENT)
            split = self.is_target(reading.place)
            for part, each in zip(reading.parts, kinds, strict=True):
                alone = split or each & RateKind.CURRENT or (beside and self._is_literal(part))
                alone = alone or kind & RateKind.BELOW
                if each & RateKind.NUMBER and alone:
                    kind |= RateKind.NUMBER
        if any(kind_of(part) & RateKind.CURRENT for part in reading.given):
            kind |= RateKind.UNSEEN
        return kind

    def _is_mixed(self, place: Occurrence) -> bool:
        kinds = self.kinds(place)
        return bool(kinds & SETTLED) and bool(kinds & RATES)

    def _is_literal(self, place: Occurrence) -> bool:
        values = self._values(place)
        return bool(values) and all(isinstance(value, Literal) for value in values)

    # Splitting into cases

    def _reading(self, place: Occurrence) -> _Reading:
        key = (id(place.node), id(place.scope))
        if key not in self._readings:
            self._readings[key] = self._read(place)
        return self._readings[key]

    def _read(self, place: Occurrence) -> _Reading:
        node = place.node
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):  # The last element, or nothing.
            return _Reading(place, _Form.CASES, (place.part(node.values[-1]),))
        if alternatives(node):
            return self._cases_of(place) or self._leaf(place)
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES and self.is_rate(place):
            return _Reading(place, _Form.CASES, own=RateKind.CURRENT)
        if isinstance(node, ast.Subscript) and (saved := self._saved.kind(place, node)):
            return _Reading(place, _Form.CASES, own=saved)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._read_bindings(place, self._names.bindings(place))
        if isinstance(node, ast.Call):
            return self._read_call(place, node)
        if isinstance(node, ast.BinOp):
            form = _Form.SUM if isinstance(node.op, ast.Add | ast.Sub) else _Form.PRODUCT
            return self._combined(place, form, [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            return self._combined(place, _Form.PRODUCT, [node.operand])
        if isinstance(node, ast.Subscript):
            step = self._names.steps_back(place)
            if step is not None and not step.unseen:
                form = _Form.CASES if len(step.sources) == 1 else _Form.ITEM
                return _Reading(place, form, step.sources)
            if not any(map(computes, self._values(place))):
                return self._combined(place, _Form.PRODUCT, [node.value])
        return self._leaf(place)

    def _cases_of(self, place: Occurrence) -> _Reading | None:
        """Split an expression into alternatives; None if these are unknown."""
        step = self._names.steps_back(place)
        return _Reading(place, _Form.CASES, step.sources) if step is not None and step.sources else None

    def _combined(self, place: Occurrence, form: _Form, nodes: list[ast.expr]) -> _Reading:
        parts = tuple(map(place.part, nodes))
        return _Reading(place, form, parts)

    def _leaf(self, place: Occurrence) -> _Reading:
        """An expression that is not split."""
        node = place.node
        if isinstance(node, ast.Constant) and not node.value:
            return _Reading(place, _Form.CASES, own=RateKind.NOTHING)
        kind = kind_of_values(self._values(place))
        if kind is not RateKind.SOURCE and self._horovod.scaled(node, place.scope, place.statement):
            kind = RateKind.SCALED
        return _Reading(place, _Form.CASES, own=kind)

    # Names and attributes

    def _read_bindings(self, place: Occurrence, bindings: list[Binding]) -> _Reading:
        given = list(self._names.given_to_fields(place))
        if not bindings and not given:
            return self._cases_of(place) or self._leaf(place)
        if any(self._scales_itself(place, binding) for binding in bindings):
            return _Reading(place, _Form.CASES, own=RateKind.SCALED)
        parts: list[Occurrence] = []
        own = RateKind.NONE
        for binding in bindings:
            kind, found = self._read_binding(place, binding)
            own |= kind
            parts += found
        for step in given:
            own |= RateKind.NUMBER if step.unseen else RateKind.NONE
            parts += step.sources
        return _Reading(place, _Form.CASES, tuple(parts), own)

    def _read_binding(self, place: Occurrence, binding: Binding) -> tuple[RateKind, tuple[Occurrence, ...]]:
        """The value of one binding: a kind without parts, or expressions."""
        if binding.target in self._schedulers.current:
            return RateKind.CURRENT, ()
        if binding.kind == "deleted":
            return RateKind.NOTHING, ()
        step, hidden = self._step(binding), RateKind.NUMBER
        if binding.kind not in ("parameter", "import") and binding.value is not None:
            if self._horovod.scaled(binding.value, binding.scope, binding.statement):
                hidden = RateKind.SCALED
        if not step.sources:
            bound = kind_of_values(self._names.bound(binding))
            return (hidden if hidden is RateKind.SCALED else bound), ()
        sources = step.sources
        if place.tested:
            sources = tuple(each._replace(tested=True) for each in sources)
        return hidden if step.unseen else RateKind.NONE, sources

    def _step(self, binding: Binding) -> Step:
        """The sources of a binding's value; for a parameter, the arguments of calls in this script alone."""
        if binding.kind != "parameter" or binding.inner is None:
            return self._names.source_of(binding)
        assert isinstance(binding.target, ast.arg)
        if self._names.is_self(ast.Name(binding.target.arg, ast.Load()), binding.inner):
            return UNSEEN
        return self._names.handed(binding, self._callers.get(binding.inner, ()))

    def _scales_itself(self, place: Occurrence, binding: Binding) -> bool:
        """Return whether the script scales it itself: in ``rate = rate * hvd.size()`` the old value counts as
        scaled.
        """
        if not self._horovod.is_used or binding.value is None or binding.path:
            return False
        name = dotted(place.node)
        return name != "" and any(
            isinstance(part, ast.BinOp)
            and isinstance(part.op, ast.Mult)
            and any(
                self._mentions(one, name) and self._asks_size(other)
                for one, other in ((part.left, part.right), (part.right, part.left))
            )
            for part in ast.walk(binding.value)
        )

    def _mentions(self, node: ast.expr, name: str) -> bool:
        return any(isinstance(part, ast.expr) and dotted(part) == name for part in ast.walk(node))

    def _asks_size(self, node: ast.expr) -> bool:
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        return any(self._is_size(self._script.site_of(call)) for call in calls)

    def _is_size(self, site: Site) -> bool:
        """Return whether a call returns the number of ranks."""
        return self._horovod.is_call(site, "size", "local_size") and not self._horovod.moves_step(site)

    # Calls

    def _read_call(self, place: Occurrence, node: ast.Call) -> _Reading:
        site = self._script.site_of(node)
        if self._is_size(site):
            return _Reading(place, _Form.CASES, own=RateKind.SCALED | RateKind.FACTOR)
        callee = self._names.callee(site)
        returned = self._cases_of(place)
        if returned is not None and not any(isinstance(value, Class) for value in callee):
            return returned
        if last_name(node.func) in _BRANCHING and self._branches(site):
            return _Reading(place, _Form.CASES, tuple(self._branches(site)))
        if self.member(place) is not None and self.is_rate(place):
            return _Reading(place, _Form.CASES, own=RateKind.CURRENT)
        if self._reads_variable(site):
            return _Reading(place, _Form.CASES, own=RateKind.CURRENT)
        values = self._values(place)
        if any(computes(value) for value in values) or any(isinstance(each, Class) for each in callee):
            return self._leaf(place)
        given = tuple(Occurrence(each, place.scope, place.statement, site) for each in arguments(node))
        if last_name(node.func) == _SELECTING:
            given = given[1:]
        libraries = {value.name.partition(".")[0] for value in callee if isinstance(value, Library)}
        known = libraries and libraries.issubset(_CALCULATING)
        chooses = known and last_name(node.func) in (*_CHOOSING, _SELECTING)
        receiver = []
        if isinstance(node.func, ast.Attribute) and not libraries:
            receiver = [place.part(node.func.value)]
        form = _Form.SUM if chooses else _Form.PRODUCT
        own = RateKind.NONE if given or receiver else RateKind.NUMBER
        return _Reading(place, form, (*receiver, *given), own, () if known else given)

    def _branches(self, site: Site) -> list[Occurrence]:
        """The results of the functions among which `tf.cond` chooses."""
        values = [value for given in arguments(site.node) for value in self._names.site_values(given, site)]
        return [
            Occurrence(returned, value.scope, where)
            for value in values
            if isinstance(value, Function)
            for returned, where in value.scope.returns
        ]

    def _reads_variable(self, site: Site) -> bool:
        """Return whether a call reads a variable: ``K.get_value(optimizer.lr)``, also of an unknown
        optimizer.
        """
        if not self._names.calls(site, "tensorflow.keras.backend.get_value"):
            return False
        return any(
            self.is_rate(Occurrence(given, site.scope, site.statement), held=True)
            for given in site.node.args[:1]
        )

    @cached_property
    def _callers(self) -> dict[Scope, list[Site]]:
        """The calls of each function of the script, direct or indirect."""
        found: dict[Scope, list[Site]] = {}
        for site in self._script.sites:
            for function in self._names.called_functions(site):
                found.setdefault(function, []).append(site)
        return found

    def _values(self, place: Occurrence) -> frozenset[Value]:
        return self._names.values(place.node, place.scope, place.statement)
