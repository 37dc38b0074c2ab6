"""Audit: whether the text that a conversion comes to trains as it must, asked of that text alone (SPEC §9).

Each optimizer step must be averaged exactly once, each rate scaled at most once, and what is trained must
start alike on all ranks.  No rule is asked, nor anything that rules ask of what they rewrite: what they miss,
or do twice, is to be seen here.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from trainshift.core.joined import Joined
from trainshift.core.lazy import cached_property
from trainshift.core.names import api
from trainshift.core.names.classes import class_around
from trainshift.core.names.flow import reaching_calls
from trainshift.core.names.occurrence import Occurrence
from trainshift.core.names.script import Script
from trainshift.core.names.values import Instance, UserInstance, Value
from trainshift.core.program import Program
from trainshift.core.text.code import Code
from trainshift.core.text.edit import Change, Edit, apply, merge
from trainshift.core.text.facts import (
    COMPREHENSIONS,
    Scope,
    Site,
    Statement,
    alternatives,
    argument,
    arguments,
    last_name,
)
from trainshift.core.text.source import Source, Span
from trainshift.core.text.statements import Chunk, FactsCache, ParseFailure, parse
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loop_kinds import GRAPH_PATTERNS, Loop, Pattern
from trainshift.core.training.loops import Loops
from trainshift.core.training.steps import GRADIENT_METHODS, Step, Steps

log = logging.getLogger(__name__)

# What averages the gradients that it is given, or that the tape or the optimizer takes which it is given.
_WRAPS = ("DistributedGradientTape", "DistributedOptimizer", "create_distributed_optimizer", "load_model")
_REDUCTIONS = ("allreduce", "grouped_allreduce")
_AVERAGING = (*_WRAPS, *_REDUCTIONS)
_OF_SOME = "broadcast_variables"
_BROADCASTING = (
    _OF_SOME,
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_object_fn",
    "BroadcastGlobalVariablesCallback",
    "BroadcastGlobalVariablesHook",
)
# Methods of an optimizer that take gradients, and functions that do.
_TAKING = (*GRADIENT_METHODS, "compute_gradients", "get_gradients", "_compute_gradients", "gradients")
_RATES = ("learning_rate", "lr", "initial_learning_rate")
# A rate is not followed through more names than this.
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a result; not `certain` where that cannot be seen.

    `span` is the place in the text that was converted, of a program all files one after another.
    """

    text: str
    span: Span
    certain: bool = True


class _Flaw(NamedTuple):
    """A fault where it was found: at a call of the result, or nowhere."""

    text: str
    site: Site | None = None
    certain: bool = True


def faults_of(program: Program, changes: Iterable[Change]) -> tuple[Fault, ...]:
    """What is wrong with the text that changes of a program come to together."""
    edits = merge(changes).edits
    result = _result(program, edits)
    try:
        with result.names.memo.pausing(lambda: None):
            return tuple(
                dict.fromkeys(
                    Fault(flaw.text, _origin(program, result, edits, flaw.site), flaw.certain)
                    for flaw in _flaws(result)
                )
            )
    except RecursionError:
        raise
    except Exception:
        log.exception("the audit failed")
        return (Fault("an internal error: the result could not be checked", Span(0, 0), certain=False),)
    finally:
        result.forget()


def _result(program: Program, edits: tuple[Edit, ...]) -> Program:
    """The program that edits come to."""
    codes = {script.path: _edited(script, own) for script, own in program.script.parts(edits)}
    workspace = program.script.scripts[0].workspace
    if workspace is None:
        return Program(Script(next(iter(codes.values()))))
    linked = workspace.rewritten(codes).reachable
    return Program(Joined(linked) if len(linked) > 1 else linked[0])


def _edited(script: Script, edits: tuple[Edit, ...]) -> Code:
    """A file after its edits, of which only what was edited is read anew."""
    read = zip(script.chunks, script.facts, strict=True)
    text = apply(script.source.text, edits)
    chunks = parse(text, FactsCache([Chunk(*chunk, facts) for chunk, facts in read]))
    if isinstance(chunks, ParseFailure):
        raise ValueError(chunks.message)
    return Code(Source(text), chunks)


def _origin(program: Program, result: Program, edits: tuple[Edit, ...], site: Site | None) -> Span:
    """Where a call of the result stood before the edits."""
    if site is None:
        return Span(0, 0)
    at = result.script.span(site.node, site).start
    for edit in edits:
        if edit.start >= at:
            break
        at -= min(len(edit.text) - (edit.end - edit.start), at - edit.start)
    return Span(at, at)


def _flaws(result: Program) -> list[_Flaw]:
    """What is wrong with a converted program, in no order."""
    found = _Audit(result)
    trains = next((site for loop in result.fact(Loops).own for site in loop.sites), None)
    if not found.averaging:
        return [_Flaw("nothing in it averages gradients", trains)]
    if next(iter(result.fact(Horovod).calls("init")), None) is None:
        return [_Flaw("nothing in it starts Horovod", trains)]
    return [*found.unaveraged(), *found.averaged_twice(), *found.scaled_twice(), *found.unlike()]


class _Audit:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._horovod = program.fact(Horovod)
        self._scalings: dict[tuple[int, int], int] = {}
        self.averaging = {site.node: site for site in self._horovod.calls(*_AVERAGING)}

    # Averaged

    def unaveraged(self) -> Iterator[_Flaw]:
        """The steps whose gradients nothing averages."""
        wrapped = {each.site: each.wrapped for each in self._program.fact(Steps).gradients}
        for step in self._program.fact(Steps).steps:
            if step.pairs is not None and not self._is_aside(step.site):
                yield from self._of_step(step, wrapped)
        for site in self._minimizers:
            assert isinstance(site.node.func, ast.Attribute)
            if not self._averages(Occurrence(site.node.func.value, site.scope, site.statement)):
                yield _Flaw("the gradients of this step are not averaged", site)
        for loop in self._program.fact(Loops).own:
            if loop.pattern is Pattern.OPTIMIZER:
                yield from self._of_fit(loop)
            elif loop.pattern is Pattern.ESTIMATOR:
                yield from self._of_estimator(loop)

    def _of_step(self, step: Step, wrapped: dict[Site, bool]) -> Iterator[_Flaw]:
        """What is wrong with a call of `apply_gradients`."""
        assert step.pairs is not None
        pairs = Occurrence(step.pairs, step.site.scope, step.statement)
        if self._averages(pairs):
            return
        taken = self._reaching(self._taking, pairs) or [each.site for each in step.gradients]
        if not taken and self._averages(pairs._replace(node=step.receiver)):
            return
        if not taken:
            yield _Flaw("where the gradients of this step come from cannot be seen", step.site, certain=False)
        for site in taken:
            called = site.node.func
            of = (
                Occurrence(called.value, site.scope, site.statement)
                if isinstance(called, ast.Attribute)
                else None
            )
            if not (wrapped.get(site) or (site not in wrapped and of is not None and self._averages(of))):
                yield _Flaw("the gradients of this step are not averaged", step.site)
                return

    def _of_fit(self, loop: Loop) -> Iterator[_Flaw]:
        """What is wrong with the fit of a Keras model."""
        site = loop.sites[0]
        if self._has_own_step(loop) or any(map(self._averages, loop.models)):
            return
        if not loop.optimizers:
            yield _Flaw("the optimizer of this model cannot be seen", site, certain=False)
        elif not all(map(self._averages, loop.optimizers)):
            yield _Flaw("the optimizer of this model does not average its gradients", site)

    def _of_estimator(self, loop: Loop) -> Iterator[_Flaw]:
        """What is wrong with the training of an Estimator, unless the script has steps of its own."""
        if not (self._minimizers or self._program.fact(Steps).steps or any(map(self._averages, loop.models))):
            yield _Flaw("the optimizer of this Estimator does not average its gradients", loop.sites[0])

    def _has_own_step(self, loop: Loop) -> bool:
        """Whether the model takes its steps in a method of the script's own."""
        return any(
            isinstance(value, UserInstance) and self._defines_step(value.scope)
            for model in loop.models
            for value in self._names.values(model.node, model.scope, model.statement)
        )

    def _defines_step(self, cls: Scope) -> bool:
        return any(
            isinstance(each, Scope) and "train_step" in each.bindings for each in self._names.ancestry(cls)
        )

    @cached_property
    def _minimizers(self) -> list[Site]:
        """The calls of an optimizer's `minimize`."""
        return [
            site
            for site in self._script.sites_named("minimize")
            if isinstance(site.node.func, ast.Attribute)
            and not self._names.full_names(site.node.func, site.scope, site.statement)
            and not self._is_aside(site)
            and self._names.may_be(self._names.site_values(site.node.func.value, site), *api.OPTIMIZERS)
        ]

    @cached_property
    def _taking(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self._script.sites_named(*_TAKING)}

    def _is_aside(self, site: Site) -> bool:
        """Whether a call is a step inside of an optimizer's class, for which whoever uses that answers."""
        owner = class_around(site.scope)
        bases = self._names.library_bases(owner) if owner is not None else ()
        return any(api.is_subclass(base, *api.OPTIMIZERS) for base in bases)

    def _averages(self, at: Occurrence) -> bool:
        return bool(self._reaching(self.averaging, at))

    def _reaching(self, wanted: dict[ast.Call, Site], at: Occurrence) -> list[Site]:
        return reaching_calls(self._script, wanted, at.node, at.scope, at.statement)

    # Averaged twice

    def averaged_twice(self) -> Iterator[_Flaw]:
        """What averages what is averaged already."""
        reason = "the gradients are averaged here, and were before"
        for site in self.averaging.values():
            given = argument(site.node, 0, "gradtape", "optimizer")
            if given is not None and self._is_wrapped(Occurrence(given, site.scope, site.statement), site):
                yield _Flaw(reason, site)
        for step in self._program.fact(Steps).steps:
            if step.pairs is None:
                continue
            pairs = Occurrence(step.pairs, step.site.scope, step.statement)
            for site in self._reaching(self._reductions, pairs):
                of = argument(site.node, 0, "tensor", "tensors")
                before = (
                    self._reaching(self._reductions, Occurrence(of, site.scope, site.statement)) if of else ()
                )
                if any(each is not site for each in before):
                    yield _Flaw(reason, site)

    @cached_property
    def _reductions(self) -> dict[ast.Call, Site]:
        return {node: site for node, site in self.averaging.items() if site.name in _REDUCTIONS}

    def _is_wrapped(self, at: Occurrence, outer: Site) -> bool:
        """Whether what a call wraps is wrapped already."""
        if isinstance(at.node, ast.Call):
            return at.node in self.averaging
        for binding in self._names.bindings(at):
            value = binding.taken
            inner = self.averaging.get(value) if isinstance(value, ast.Call) else None
            if inner is None or inner is outer:
                continue
            if isinstance(at.node, ast.Name):
                # Under conditions of their own, they may well be of modes that exclude each other.
                conditions, others = (frozenset(_conditions(each)) for each in (inner, outer))
                if conditions <= others or others <= conditions:
                    return True
            elif isinstance(at.node, ast.Attribute) and self._follows(outer.statement, inner.statement):
                return True
        return False

    def _follows(self, later: Statement, earlier: Statement) -> bool:
        """Whether a statement stands further down in the block of another one."""
        block, index = self._script.siblings(later)
        return earlier in block[:index]

    # Scaled

    def scaled_twice(self) -> Iterator[_Flaw]:
        """The optimizers of which a rate is multiplied by the number of ranks more than once."""
        for site in self._script.sites:
            made = [value for value in self._names.site_values(site.node, site) if self._is_optimizer(value)]
            if not made:
                continue
            first = argument(site.node, 0, *_RATES)
            for given in dict.fromkeys(
                (first, *(word.value for word in site.node.keywords if word.arg in _RATES))
            ):
                if given is not None and self._scaling(Occurrence(given, site.scope, site.statement)) > 1:
                    yield _Flaw("the rate of this optimizer is scaled twice", site)

    def _is_optimizer(self, value: Value) -> bool:
        return isinstance(value, Instance) and api.is_subclass(value.cls, *api.OPTIMIZERS)

    def _scaling(self, at: Occurrence, depth: int = 0) -> int:
        """How often a number is multiplied by the number of ranks, at most, on any way that it is made."""
        key = id(at.node), id(at.scope)
        if key not in self._scalings:
            self._scalings[key] = 0  # A number that is made of itself adds nothing.
            self._scalings[key] = self._scaling_of(at, depth) if depth < _DEEPEST else 0
        return self._scalings[key]

    def _scaling_of(self, at: Occurrence, depth: int) -> int:
        node = at.node
        if isinstance(node, ast.Call):
            site = self._script.site_of(node)
            if self._horovod.is_call(site, "size"):
                return 1
            if (step := self._names.steps_back(at)) is not None:
                return self._most(step.sources, depth)
            functions = [*self._names.called_functions(site), *self._schedules(site)]
            returned = [Occurrence(value, each, where) for each in functions for value, where in each.returns]
            return self._most(returned or [at.part(each) for each in arguments(node)], depth)
        if isinstance(node, ast.BinOp):
            sides = [self._scaling(at.part(side), depth + 1) for side in (node.left, node.right)]
            if isinstance(node.op, ast.Mult):
                return sum(sides)
            return sides[0] if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Pow) else max(sides)
        if isinstance(node, ast.UnaryOp):
            return self._scaling(at.part(node.operand), depth + 1)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or alternatives(node):
            step = self._names.steps_back(at)
            return self._most(step.sources, depth) if step is not None else 0
        if isinstance(node, COMPREHENSIONS):
            return 0
        return self._most(
            [at.part(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)], depth
        )

    def _schedules(self, site: Site) -> Iterator[Scope]:
        """The `__call__` of an object of the script's own that a call makes."""
        for value in self._names.site_values(site.node, site):
            if isinstance(value, UserInstance):
                for cls in self._names.ancestry(value.scope):
                    bindings = cls.bindings.get("__call__", ()) if isinstance(cls, Scope) else ()
                    yield from (each.inner for each in bindings if each.inner is not None)

    def _most(self, sources: list[Occurrence] | tuple[Occurrence, ...], depth: int) -> int:
        return max((self._scaling(each, depth + 1) for each in sources), default=0)

    # Alike on all ranks

    def unlike(self) -> Iterator[_Flaw]:
        """The loops of which the ranks start from weights of their own."""
        reason = "nothing gives all ranks the same weights before they train"
        for loop in self._program.fact(Loops).own:
            if loop.pattern is Pattern.GRAD_TAPE:
                yield from (_Flaw(reason, site) for site in loop.sites if not self._is_started(site))
            elif loop.pattern in _TRAINING and not any(map(self._is_begun, loop.sites)):
                yield _Flaw(reason, loop.sites[0])

    def _is_started(self, site: Site) -> bool:
        """Whether a broadcast near a step of the script's own names what it trains, or its optimizer."""
        trained = self._trained.get(site, frozenset())
        return any(
            (not named or not trained or named & trained) and self._is_near(each, site)
            for each, named in self._broadcasts.items()
        )

    def _is_begun(self, site: Site) -> bool:
        """Whether a call that trains is handed what broadcasts, or a broadcast near it names its model."""
        if not isinstance(site.node.func, ast.Attribute):
            return bool(self._broadcasting)
        if site.name == "run":
            return self._is_begun_session(site, site.node.func)
        if self._is_handed_broadcast(site):
            return True
        trained, above = _words(site.node.func.value), self._functions_above(site.scope.function())
        return any(
            (not named or named & trained) and each.scope.function() in above
            for each, named in self._broadcasts.items()
        )

    def _is_begun_session(self, site: Site, run: ast.Attribute) -> bool:
        """Whether each session that a call may run in has run a broadcast, or has a hook that does."""
        sessions = [each for each in self._names.site_values(run.value, site) if isinstance(each, Instance)]
        if not sessions or self._begun_sessions is None:
            return bool(self._broadcasting)
        return all(
            each in self._begun_sessions or self._is_handed_broadcast(self._script.site_of(each.node))
            for each in sessions
        )

    @cached_property
    def _begun_sessions(self) -> frozenset[Value] | None:
        """The sessions that run a broadcast; None where one runs in whichever is the default."""
        found: frozenset[Value] = frozenset()
        for site in self._script.sites_named("run"):
            if isinstance(site.node.func, ast.Attribute) and self._is_handed_broadcast(site):
                session: ast.expr | None = site.node.func.value
                if self._leads(self._broadcasting, site.node.func.value, site):
                    session = argument(site.node, 1, "session")
                if session is None:
                    return None
                found |= self._names.site_values(session, site)
        return found

    def _is_handed_broadcast(self, site: Site) -> bool:
        """Whether an argument of a call, or what it is a method of, leads to a broadcast."""
        called = site.node.func
        parts = [*arguments(site.node), *([called.value] if isinstance(called, ast.Attribute) else [])]
        return any(self._leads(self._broadcasting, each, site) for each in parts)

    def _leads(self, wanted: dict[ast.Call, Site], node: ast.expr, site: Site) -> bool:
        return bool(self._reaching(wanted, Occurrence(node, site.scope, site.statement)))

    def _is_near(self, broadcast: Site, site: Site) -> bool:
        """Whether one function, or what calls it, comes to both calls."""
        one, other = (self._functions_above(each.scope.function()) for each in (broadcast, site))
        inside = broadcast.scope.function()
        callers = self._names.callers(inside)[0] if inside is not None else ()
        return not one.isdisjoint((site.scope.function(),)) or any(
            each.scope.function() in other for each in (broadcast, *callers)
        )

    def _functions_above(self, function: Scope | None) -> set[Scope | None]:
        """A function, and those that call it, from however far."""
        found: dict[Scope | None, None] = {function: None}
        waiting = [function]
        for each in waiting:
            for site in self._names.callers(each)[0] if each is not None else ():
                above = site.scope.function()
                if above not in found:
                    found[above] = None
                    waiting.append(above)
        return set(found)

    @cached_property
    def _broadcasting(self) -> dict[ast.Call, Site]:
        return {site.node: site for site in self._horovod.calls(*_BROADCASTING)}

    @cached_property
    def _broadcasts(self) -> dict[Site, frozenset[str]]:
        """The calls that broadcast variables, with the words of which; none where it is all of them."""
        return {
            site: frozenset().union(*map(_words, site.node.args[:1]))
            if site.name == _OF_SOME
            else frozenset()
            for site in self._broadcasting.values()
            if site.name.startswith("broadcast")
        }

    @cached_property
    def _trained(self) -> dict[Site, frozenset[str]]:
        """The words of what each step trains, and of its optimizer."""
        return {
            step.site: frozenset().union(*map(_words, (step.receiver, *step.models)))
            for step in self._program.fact(Steps).steps
        }


_TRAINING = frozenset({Pattern.GRAD_TAPE, Pattern.OPTIMIZER, *GRAPH_PATTERNS})


_COMMON = frozenset({"self", "cls", "variables", "trainable_variables", "weights", "trainable_weights"})


def _words(node: ast.expr) -> frozenset[str]:
    """The names and attributes of an expression that tell objects apart."""
    parts = (last_name(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))
    return frozenset(parts) - _COMMON


def _conditions(site: Site) -> Iterator[tuple[Statement, str]]:
    """The branches that a call is made in."""
    for below, above in pairwise(site.statement.path()):
        if isinstance(above.node, ast.If | ast.Match | ast.Try):
            yield above, below.branch
