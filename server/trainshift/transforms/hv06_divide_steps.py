"""Divides the number of batches that a training loop takes by the number of ranks.

    for x, y in dataset.take(1000):         for x, y in dataset.take(1000 // hvd.size()):
        train_step(x, y)                        train_step(x, y)

    model.fit(ds, steps_per_epoch=500)      model.fit(ds, steps_per_epoch=500 // hvd.size())

## Why it matters

A step on two GPUs covers two batches. Without the division both take all steps: twice the work, and no time
saved.

## How it is done

Also divided are `steps` and `max_steps` of an Estimator, and `last_step` and `num_steps` of a
`StopAtStepHook`.

Only a `take` that feeds a training loop is divided. A preview (`next(iter(ds.take(1)))`), an evaluation,
`validation_steps`, and a `take` beside a `skip` of as many elements stay.

All ranks must take the same number of steps. A loop that a rank may leave by its own values, such as its
loss, is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.core.layout import Layout
from trainshift.core.names import api
from trainshift.core.names.values import Literal, Unknown
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Edit, Remark, Withheld
from trainshift.core.text.expressions import Frame, Level, product
from trainshift.core.text.facts import Site, argument
from trainshift.core.text.source import one_line
from trainshift.core.training.horovod import Horovod
from trainshift.core.training.loop_kinds import Pattern
from trainshift.core.training.loops import Loops
from trainshift.core.training.steps import is_plain
from trainshift.rewriting.data.iterated import Iterated
from trainshift.rewriting.keras.fits import Fits
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.ranks.early_exits import own_exits
from trainshift.transforms.rule import Guard, Proposals, Transform

# Constructors of which arguments count the steps of a training.
_COUNTING = {
    "tensorflow.estimator.StopAtStepHook": ("num_steps", "last_step"),
    "tensorflow.estimator.TrainSpec": ("max_steps",),
}


@dataclass(frozen=True, eq=False, slots=True)
class _Count:
    """A number of steps: the call that is given it, under which name, and what is assumed of it.

    `optional` tells that None may be given instead, which stands for all of them.
    """

    site: Site
    node: ast.expr
    what: str
    optional: bool = False
    doubt: str = ""


def propose(program: Program) -> Proposals:
    """One change for each number of steps that a training takes."""
    for count in (*_taken(program), *_given(program)):
        site, target = count.site, program.script.statement_span(count.site.statement)
        if site.in_fstring:
            yield Withheld("HV06", target, "the call is inside an f-string; give it a statement of its own")
        elif not _is_settled(program, count.node, site):
            edits = _divided(program, count.node, site, count.optional)
            if edits is None:
                text = program.script.text(count.node, site)
                yield Withheld("HV06", target, f"{text} may be None: give it a name first")
                continue
            doubts = (count.doubt,) if count.doubt else ()
            number = program.script.text(count.node, site)
            title = f"Divide the {count.what} ({number}) among the ranks"
            decisions = (f"each rank takes its share of the {count.what} ({number}), not all of them",)
            yield Change("HV06", title, target, edits, doubts=doubts, decisions=decisions)
    for statement, test in own_exits(program):
        text = one_line(program.script.text(test, statement))
        yield Remark(
            "HV06",
            program.script.statement_span(statement),
            f"each rank decides by its own values when the loop ends ({text}); the others may wait forever",
        )
    for site in sorted(program.fact(Iterated).takes, key=lambda each: program.script.span(each.node, each)):
        if argument(site.node, 0, "count") is None:
            target = program.script.statement_span(site.statement)
            yield Withheld("HV06", target, "the number of batches is hidden in * or ** arguments")


def _divided(program: Program, node: ast.expr, site: Site, optional: bool) -> tuple[Edit, ...] | None:
    """The edits that divide a number of steps; None where it may be None, and nothing can ask whether it is.

    A conditional is divided in its branches if one of them is no number to divide.
    """
    share = product(f"// {program.at(site).fact(Prerequisites).hvd}.size()")
    last = node.values[-1] if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else node
    maybe = optional and Literal(None) in program.names.site_values(last, site)
    if isinstance(node, ast.IfExp):
        branches = [each for each in (node.body, node.orelse) if not _is_settled(program, each, site)]
        if maybe or len(branches) < 2:
            found = [_divided(program, each, site, optional) for each in branches]
            return None if None in found else tuple(edit for edits in found for edit in edits or ())
    if maybe and not is_plain(node):
        return None
    if maybe:
        share = Frame(f"{program.script.text(node, site)} and ", share.after, share.asks, Level.AND)
    return program.fact(Layout).put(node, site, share)


def _taken(program: Program) -> Iterator[_Count]:
    """What `take` takes of a dataset that a training loop iterates."""
    feeding = program.fact(Iterated).takes
    for site in program.script.sites_named("take"):
        node = argument(site.node, 0, "count")
        if site not in feeding or node is None or program.fact(Iterated).splits(site):
            continue
        assert isinstance(site.node.func, ast.Attribute)
        receiver = program.names.site_values(site.node.func.value, site)
        known = program.names.may_be(receiver, *api.DATASET)
        if known or any(isinstance(value, Unknown) for value in receiver):
            name = program.script.text(site.node.func.value, site)
            doubt = "" if known else f"{name} is assumed to be a dataset"
            yield _Count(site, node, "batches taken", doubt=doubt)


def _given(program: Program) -> Iterator[_Count]:
    """The arguments that count the steps of `fit`, of an Estimator and of hooks."""
    for fit in program.fact(Fits).fits:
        yield from _counts(fit.site, {"steps_per_epoch": fit.given("steps_per_epoch")})
    for loop in program.fact(Loops).own:
        for site in loop.sites if loop.pattern is Pattern.ESTIMATOR else ():
            signature = api.method("tensorflow.estimator.Estimator", site.name)
            if signature is not None:
                names = ("steps", "max_steps")
                yield from _counts(
                    site, {name: argument(site.node, signature.position(name), name) for name in names}
                )
    for site in program.script.sites_calling(api.last_names(*_COUNTING)):
        for name in program.names.full_names(site.node.func, site.scope, site.statement) & _COUNTING.keys():
            signature = api.constructor(name)
            for word in _COUNTING[name] if signature is not None else ():
                assert signature is not None
                yield from _counts(site, {word: argument(site.node, signature.position(word), word)})


def _counts(site: Site, given: dict[str, ast.expr | None]) -> Iterator[_Count]:
    for name, node in given.items():
        if node is not None:
            yield _Count(site, node, name, optional=True)


def _is_settled(program: Program, count: ast.expr, site: Site) -> bool:
    """Whether the count is divided already, or is 1 (which would become none) or "all" (-1 or None)."""
    if program.fact(Horovod).divided(count, site.scope, site.statement):
        return True
    try:
        return ast.literal_eval(count) in (1, -1, None)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


RULE = Transform(
    "HV06",
    "divide-steps",
    propose,
    guards=(Guard("TF03"), Guard("TF05"), Guard("TF06"), Guard("TF07")),
)
