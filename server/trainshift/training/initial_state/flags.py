"""Broadcast flags: the optimizer steps that need a broadcast, and the flag that makes it happen once.

Each step has one flag (spec.md 5.11).  A step that always uses one optimizer has a Boolean; a step that may
use several, or that a trace may repeat, has a set of the optimizers already used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.script import Script
from trainshift.python.names.values import Instance, UserInstance, Value
from trainshift.python.syntax.chunk_syntax import Binding, Site, Statement, arguments, dotted
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod, is_first_value
from trainshift.training.horovod.own_horovod import OwnHorovod
from trainshift.training.initial_state.first_batches import FirstBatches
from trainshift.training.initial_state.set_weights import SetWeights
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.fits import Fits, firsts_on_batch, is_compiled_optimizer
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Step, Steps
from trainshift.training.uniformity.list_members import members

BASE = "hvd_broadcast_done"
PAIRS_KEY = "[0][1].ref()"
_TAKING_ANY = ("tensorflow.keras.optimizers.legacy.Optimizer", *api.TF1_OPTIMIZER)
SET = "set()"
_COUNT = ".iterations"  # The number of steps of an optimizer.
_OURS = re.compile(rf"{BASE}(_\w+)?")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SAYING_NOTHING = {"optimizer", "opt", "optim", "self", "model"}
_VARIABLES = ("trainable_variables", "trainable_weights", "variables", "weights")
_BROADCASTS = ("broadcast_variables", "broadcast_global_variables", "broadcast_object", "broadcast_")


class Flag(Struct, frozen=True, eq=False):
    """The flag of one step: `key` is the code of its element in a set, None for a Boolean.

    `PAIRS_KEY` represents the first variable of the step's pairs.  `first` is the code of its initial value,
    "" if no flag is needed.
    """

    name: str
    step: Step
    key: str | None
    first: str

    @property
    def counts(self) -> bool:
        """Return whether the optimizer's own step counter replaces a flag."""
        return not self.first


def _told_apart(sites: list[Site], shared: str) -> list[str]:
    """Words for the flags of steps whose optimizers have one name, the `shared` one.

    They name the class or the function that takes each step, its model or its function, by the first of these
    that differs; else the class or the function.  Words of an optimizer's own name are not repeated.
    """
    around = [class_around(site.scope) or site.scope.function() for site in sites]
    functions = [site.scope.function() for site in sites]
    words = [_word(each.name) if each is not None else "" for each in around]
    known = shared.split("_")
    fewer = ["_".join(word for word in _said(each).split("_") if word not in known) for each in words]
    for found in (
        fewer if shared != BASE else words,
        words,
        [_model(site) for site in sites],
        [_word(each.name) if each is not None else "" for each in functions],
    ):
        if len({*found}) == len(found):
            return found
    return words


def _word(name: str) -> str:
    return _WORD.sub("_", name).lower()


def _model(site: Site) -> str:
    """The words that name the model whose variables a step changes: those before `.trainable_variables`."""
    parts = (part for given in arguments(site.node) for part in ast.walk(given))
    owners = {
        dotted(part.value) for part in parts if isinstance(part, ast.Attribute) and part.attr in _VARIABLES
    }
    return _said(owners.pop()) if len(owners) == 1 else ""


def _said(code: str) -> str:
    """The words of a dotted name that tell something."""
    words = [word for name in code.split(".") for word in name.split("_")]
    return "_".join(word for word in words if word and word not in _SAYING_NOTHING)


class Flags:
    """The flags of one script: those of steps that still need a broadcast."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._target = program.fact(Target)

    @cached_property
    def _steps(self) -> list[Step]:
        """The steps that a broadcast must follow, in text order.

        Steps that the callback of `fit` covers, or that a TF1 session runs, are left out.
        """
        taped = self._program.fact(Loops).eager_updates
        steps = [
            step
            for step in self._program.fact(Steps).steps
            if (step.gradients or (step.reduced and self._program.fact(Steps).tapes) or step.site in taped)
            and not self._is_served(step)
        ]
        steps += self._program.fact(Fits).steps
        return sorted(steps, key=lambda step: self._script.span(step.site.node, step.site))

    def _is_served(self, step: Step) -> bool:
        """Return whether the callback of `fit` broadcasts a step's variables (for Keras 3, all of the
        model's).
        """
        if not self._program.fact(Executions).custom_model(step.site.scope):
            return False
        # The callback for Keras 2 broadcasts only after the first batch.
        return (self._target.is_keras3 and self._is_of_model(step)) or (
            is_compiled_optimizer(step)
            and (self._target.is_keras3 or not self._program.fact(FirstBatches).takes_several(step))
        )

    def _is_of_model(self, step: Step) -> bool:
        """Return whether the model has the optimizer of a step in an attribute, alone or among others."""
        held = step.receiver.value if isinstance(step.receiver, ast.Subscript) else step.receiver
        if dotted(held).startswith("self."):
            return True
        if not isinstance(step.receiver, ast.Name):
            return False
        _, bindings = self._script.names.lookup(step.receiver.id, step.site.scope, step.statement)
        return bool(bindings) and all(map(self._is_from_model, bindings))

    def _is_from_model(self, binding: Binding) -> bool:
        """Return whether a name is bound to an optimizer, or one of several, in an attribute of the model."""
        names = self._script.names
        parts = ast.walk(binding.value) if binding.value is not None else ()
        return any(
            names.may_be(names.values(*held[:3]), *api.OPTIMIZERS)
            for part in parts
            if isinstance(part, ast.Attribute) and dotted(part).startswith("self.")
            for held in members(self._script, part, binding.scope, binding.statement).elements
        )

    @cached_property
    def needed(self) -> list[Flag]:
        """Return a flag for every step that is not broadcast yet, in text order."""
        by_file: dict[Program, list[Step]] = {}
        for step in self._steps:
            by_file.setdefault(self._program.at(step.site), []).append(step)
        return [flag for file, steps in by_file.items() for flag in self._of_file(file, steps)]

    def _of_file(self, file: Program, steps: list[Step]) -> Iterator[Flag]:
        """Yield the flags of one file, named after their optimizers if there are several.

        Steps that only other programs run count too, so that all programs use the same names.
        """
        reached = {step.site for step in steps}
        sites = [*reached]
        if not self._script.code.sites_by_node.keys() >= file.script.code.sites_by_node.keys():
            others = file.script.sites_named("apply_gradients"), firsts_on_batch(file.script)
            known = self._script.code.sites_by_node
            sites += (site for each in others for site in each if site.node not in known)
        sites.sort(key=lambda site: file.script.span(site.node, site))
        own = {site: name for site in sites if (name := self._own_flag(site.statement))}
        names = file.script.identifiers.difference(own.values())
        taken = {name for name in names if not self._is_ours(name, file.script)}
        by_site = {step.site: step for step in steps}
        bases = self._bases(sites, by_site)
        for site in sites:
            step = by_site.get(site)
            is_new = site not in own and step is not None and not self.is_covered(step)
            if is_new or site not in reached or _OURS.fullmatch(own.get(site, "")):
                name = fresh_name(bases[site] if len(sites) > 1 else BASE, taken, first=2)
                taken.add(name)
                if is_new and step is not None:
                    key = self._key(step)
                    yield Flag(name, step, key, self._first(step, key))

    def _bases(self, sites: list[Site], steps: Mapping[Site, Step]) -> dict[Site, str]:
        """The names of the flags of steps, which may still be numbered."""
        bases = {site: self._base(site, steps.get(site)) for site in sites}
        for shared in {*bases.values()}:
            alike = [site for site in sites if bases[site] == shared]
            words = _told_apart(alike, shared) if len(alike) > 1 else [""]
            bases |= {site: f"{shared}_{word}" for site, word in zip(alike, words, strict=True) if word}
        return bases

    @staticmethod
    def _base(site: Site, step: Step | None) -> str:
        """The name of a flag, after the optimizer that takes the step."""
        function = site.node.func
        taking = step.receiver if step is not None else getattr(function, "value", function)
        said = _said(dotted(taking))
        return f"{BASE}_{said}" if said else BASE

    def _first(self, step: Step, key: str | None) -> str:
        """The code of a flag's initial value; that of a variable names TensorFlow by `{tf}`."""
        if key is None:
            return self._target.flag("{tf}")
        # A Keras 3 trace must test a variable, which it cannot create: it tests the optimizer's.
        return "" if self._target.is_keras3 and step.traced else SET

    def _is_ours(self, name: str, script: Script) -> bool:
        """Return whether the name is a flag that an earlier rewrite defined for a step still to come."""
        if not _OURS.fullmatch(name):
            return False
        bindings = script.module_bindings.get(name, [])
        if len(bindings) != 1 or script.loads(name) or bindings[0].value is None:
            return False
        return is_first_value(bindings[0].value)

    def _key(self, step: Step) -> str | None:
        """The expression that distinguishes the objects of a step's calls; None if there is only one."""
        single, text = self._program.fact(Executions).is_single, self._script.text
        if (self._is_staged(step) and not self._target.is_keras3) or not single(step.receiver, step.site):
            return text(step.receiver, step.site)
        for model in step.models:
            values = self._script.names.site_values(model, step.site)
            if values and not single(model, step.site):
                return ast.unparse(model)
        if not step.models and self._may_serve_others(step):
            return PAIRS_KEY
        # Another program may run a module's step with several optimizers, and needs a flag for each.
        return None if self._program.at(step.site).is_started else text(step.receiver, step.site)

    def _may_serve_others(self, step: Step) -> bool:
        """Return whether an optimizer that accepts any variables may get others at another call.

        Keras' new optimizers refuse variables with which they were not built.
        """
        values = self._script.names.site_values(step.receiver, step.site)
        if not self._script.names.may_be(values, *_TAKING_ANY):
            return False
        return not self._program.fact(Steps).has_fixed_variables(step)

    def _is_staged(self, step: Step) -> bool:
        """Return whether AutoGraph may turn a block around the step, and so the flag, into graph code."""
        return step.traced and any(
            isinstance(above.node, ast.For | ast.While | ast.If)
            for above in step.statement.ancestors()
            if above.scope is step.statement.scope
        )

    # Broadcasts that are there

    def is_covered(self, step: Step) -> bool:
        """Return whether the script broadcasts the step's variables."""
        if self._own_flag(step.statement) is not None:
            return True
        if self._program.fact(OwnHorovod).hooks or self._horovod.is_elastic:
            return True
        sets_weights = self._horovod.sets_weights
        sites = self._horovod.calls(*_BROADCASTS)
        # A broadcast object may be anything: the order of the data, or the number of an epoch.
        is_call = self._horovod.is_call
        sent = [site for site in sites if not is_call(site, "broadcast_object") or sets_weights(site)]
        return any(self._covers(site, step) for site in sent)

    def _own_flag(self, statement: Statement) -> str | None:
        """The flag that the broadcast after a step's statement tests, below code for rank 0 alone."""
        following = self._script.following(statement)
        if statement.branches:
            following = statement.branches["body"][0]
        while following is not None and all(
            map(self._horovod.on_root, following.branches.get("body", [following]))
        ):
            following = self._script.following(following)
        return self._flag_of(following) if following is not None else None

    def _flag_of(self, statement: Statement) -> str | None:
        """The flag of an ``if not flag:`` or ``if x not in flag:`` that broadcasts; None for other
        statements.
        """
        node = statement.node
        if not isinstance(node, ast.If):
            return None
        test = node.test
        name = None
        inside = any(statement in site.statement.path() for site in self._horovod.calls(*_BROADCASTS))
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            name = test.operand.id if isinstance(test.operand, ast.Name) else None
        elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn):
            if isinstance(test.comparators[0], ast.Name):
                name = test.comparators[0].id
        elif isinstance(test, ast.Compare) and dotted(test.left).endswith(_COUNT):
            return dotted(test.left) if inside else None
        last = ast.dump(node.body[-1])
        return name if name and inside and f"'{name}'" in last else None

    def _covers(self, site: Site, step: Step) -> bool:
        """Return whether a broadcast covers the step's variables, as far as the script shows."""
        if any(self._flag_of(above) for above in site.statement.path()) or self._follows_load(site):
            return False
        early = self._program.fact(SetWeights).early(step)
        if any(place is self._script.following(site.statement) for place, *_ in early):
            return False
        wanted = self._objects(step.receiver, step.site)
        for model in step.models:
            wanted |= self._objects(model, step.site)
        given = {
            value
            for argument in arguments(site.node)
            for part in ast.walk(argument)
            if isinstance(part, ast.Name | ast.Attribute)
            for value in self._objects(part, site)
        }
        return not wanted or not given or not wanted.isdisjoint(given)

    def _follows_load(self, site: Site) -> bool:
        """Return whether the broadcast is of weights that rank 0 has just loaded."""
        before = self._script.preceding(site.statement)
        while self._horovod.is_statement(before, *_BROADCASTS) and before is not None:
            before = self._script.preceding(before)
        return before is not None and any(
            before in each.statement.path()
            for each in self._script.sites_named("load_weights", *named("restoring"))
        )

    def _objects(self, node: ast.expr, site: Site) -> set[Value]:
        values = self._script.names.site_values(node, site)
        return {value for value in values if isinstance(value, Instance | UserInstance)}
