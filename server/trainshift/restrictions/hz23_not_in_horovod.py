"""Names and arguments must be those that Horovod has.

    import horovod.tensorflow as hvd        import horovod.tensorflow.keras as hvd
    hvd.callbacks.                          hvd.callbacks.
        LearningRateWarmupCallback()            LearningRateWarmupCallback(initial_lr=0.01 * hvd.size())

## Why it matters

The script ends with an AttributeError or a TypeError, often only when training begins.

## What to do

Import the module that has the name, or pass the arguments that it accepts.

## What is reported

Names that `horovod.tensorflow`, `horovod.tensorflow.keras` or `horovod.keras` do not have, unknown and
missing arguments, `average` beside `op`, `broadcast_global_variables` in TensorFlow 2, and callbacks that
fail with the momentum of new optimizers. `average` alone is harmless: Horovod still takes it.

Also calls that do not work on Keras 3, in a project that requires it or a script that needs it: Horovod's
callbacks and its elastic state of a Keras model, its tape and `broadcast_variables` where they are given
variables of Keras' own, and from TensorFlow 2.16 on its hook. The code that `trainshift convert` writes for
Keras 3 works there. If Keras 3 is merely installed, the verdict is unknown.
"""

from __future__ import annotations

import ast

from msgspec.structs import replace

from trainshift.core.finding import Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.restrictions.fixes.moves import inserted
from trainshift.restrictions.fixes.places import replaced
from trainshift.training.horovod import horovod_api
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.for_keras2 import ForKeras2
from trainshift.training.learning_rates.rates import Rates
from trainshift.training.ranks.unsupported_api import Stranger, Strangers

# The name of a second Horovod module.
_ALIASES = dict(zip(horovod_api.DOORS, ("hvd_tf", "hvd_keras", "hvd_keras"), strict=True))
_NUMBERS = (ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.Call)


def check(program: Program, report: Report) -> Findings:
    """Yield one finding for each use that Horovod does not support."""
    failing = {each.site.node for each in program.fact(ForKeras2).failing}
    for each in program.fact(Strangers).all:
        broken = Verdict.VIOLATED if each.is_certain else Verdict.UNKNOWN
        verdict = Verdict.HARMLESS if each.is_mild else broken
        fix = _fix(program, report, each) if each.place.node not in failing else None
        yield report.finding(verdict, each.place, each.message, fix=fix)


def _fix(program: Program, report: Report, stranger: Stranger) -> Change | None:
    """Add a missing argument, if the script shows its value."""
    node = stranger.place.node
    if isinstance(node, ast.Attribute):
        return _of_other_module(program, report, stranger.place, node)
    if not isinstance(node, ast.Call):
        return None
    if any(word.arg == "average" for word in node.keywords) and not stranger.is_mild:
        return _without_average(program, report, stranger.place, node)
    if stranger.missing == ("momentum_correction",):
        return _given(program, report, stranger.place, "momentum_correction", "False")
    rate = _rate(program, stranger.place) if stranger.missing == ("initial_lr",) else ""
    return _given(program, report, stranger.place, "initial_lr", rate) if rate else None


def _of_other_module(program: Program, report: Report, at: Occurrence, node: ast.Attribute) -> Change | None:
    """Replace the module by the first one with the name, through an existing or a new import."""
    homes = horovod_api.homes(node.attr)
    file = program.at(at.scope)
    here = [file.fact(Horovod).imported_as(each) for each in horovod_api.DOORS]
    beside = next((each[1] for each in here if each is not None), None)
    if not homes or beside is None:
        return None
    imported = file.fact(Horovod).imported_as(homes[0])
    requires: tuple[Edit, ...] = ()
    name = imported[0] if imported is not None else file.script.fresh(_ALIASES[homes[0]])
    if imported is None:
        line = inserted(report, "", f"import {homes[0]} as {name}", beside, behind=True)
        if line is None:
            return None
        requires = line.edits
    change = replaced(report, f"Use {homes[0]}", at.part(node.value), name)
    return replace(change, requires=requires)


def _without_average(program: Program, report: Report, at: Occurrence, node: ast.Call) -> Change:
    """The call without its old argument."""
    span = program.script.span
    words = [*node.args, *node.keywords]
    index = next(i for i, each in enumerate(words) if getattr(each, "arg", "") == "average")
    own = span(words[index], at.scope)
    edit = Edit(own.start, own.end, "")
    if index:
        edit = Edit(span(words[index - 1], at.scope).end, own.end, "")
    elif len(words) > 1:
        edit = Edit(own.start, span(words[1], at.scope).start, "")
    return report.change("Leave out average", span(node, at.scope), (edit,))


def _given(program: Program, report: Report, at: Occurrence, name: str, value: str) -> Change:
    assert isinstance(at.node, ast.Call)
    span = program.script.span(at.node, at.scope)
    parts = arguments(at.node)
    end = max((program.script.span(each, at.scope).end for each in parts), default=span.end - 1)
    text = f"{', ' if parts else ''}{name}={value}"
    return report.change(f"Pass {name}", span, (Edit(end, end, text),))


def _rate(program: Program, at: Occurrence) -> str:
    """The text of the only rate of the program's optimizers, if it means the same here."""
    rates = program.fact(Rates)
    texts = set()
    for site in rates.shared:
        rate = rates.rate(site)
        if rate is None or not all(isinstance(each, _NUMBERS) for each in _parts(rate.node)):
            return ""
        if rate.scope.function() is not at.scope.function():
            return ""
        texts.add(program.script.text(rate.node, rate.scope))
    return texts.pop() if len(texts) == 1 else ""


def _parts(node: ast.expr) -> list[ast.AST]:
    return [each for each in ast.walk(node) if isinstance(each, ast.expr)]
