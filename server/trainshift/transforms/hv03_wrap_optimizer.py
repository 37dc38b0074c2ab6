"""Wraps the optimizers that Keras' `fit`, sessions and Estimators step, so that the gradients are averaged.

    optimizer = Adam(1e-3)                  optimizer = Adam(1e-3 * hvd.size())
    model.compile(optimizer, "mse")         optimizer = hvd.DistributedOptimizer(optimizer)
                                            model.compile(optimizer, "mse")

An optimizer is wrapped where it is made, whichever way it takes from there to the `compile` of a model that
is fitted: right after the assignment that names it, or in place where it has no name. In a
`LossScaleOptimizer` the inner one is wrapped. The optimizer of a model whose `train_step` uses a tape of its
own stays as it is, since Horovod would not average there: its tape is wrapped (HV04).

In a TensorFlow 1 graph it is the optimizers whose `minimize` or `compute_gradients` makes the training
operation, and those that a ready-made Estimator is given. A wrap averages nothing of what `tf.gradients`
gives to `apply_gradients`, so that these gradients are averaged where they are taken:

    grads = tf.gradients(loss, tvars)       grads = [grad if grad is None else hvd.allreduce(grad) \
for grad in tf.gradients(loss, tvars)]

Horovod's wrap makes the optimizer anew from its configuration, and with it a schedule of a class of the
script's own: the class is registered with Keras, and gets a `get_config` where it has none.

Seeds: S2 `trans_S[[Adam]]`; corrections C20, C22, C23.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.names import api
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Edit, Withheld
from trainshift.core.text.facts import Scope, Site, dotted, last_name
from trainshift.rewriting.keras.wraps import Wrap, Wraps
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.graphs import Graphs
from trainshift.transforms.rule import Guard, Proposals, Transform

_REGISTER = "register_keras_serializable"


def propose(program: Program) -> Proposals:
    """One change for each statement that makes an optimizer, `compile` itself left to HV10."""
    made, _, hidden = program.fact(Wraps).all
    for wrap in made:
        if wrap.compile is None:
            yield _change(program, wrap)
    for cls in program.fact(Wraps).rebuilt:
        change = _serializable(program, cls)
        if change is not None:
            yield change
    for each in hidden:
        yield Withheld("HV03", program.script.span(each.site.node, each.site), each.reason, True)
    taken, unseen = program.fact(Graphs).gradients
    for site in taken:
        yield _average(program, site)
    for gradients in unseen:
        span = program.script.span(gradients.site.node, gradients.site)
        yield Withheld("HV03", span, gradients.reason, True)


def _average(program: Program, site: Site) -> Change | Withheld:
    """Average what `tf.gradients` gives, but for the variables that have none."""
    span = program.script.span(site.node, site)
    if site.in_fstring:
        return Withheld("HV03", span, "the gradients are taken inside an f-string", True)
    lead = f"[grad if grad is None else {program.fact(Prerequisites).hvd}.allreduce(grad) for grad in "
    edits = (Edit(span.start, span.start, lead), Edit(span.end, span.end, "]"))
    title = "Average the gradients that tf.gradients takes over all ranks"
    return Change("HV03", title, program.script.statement_span(site.statement), edits)


def _change(program: Program, wrap: Wrap) -> Change | Withheld:
    span = program.script.span(wrap.site.node, wrap.site)
    if wrap.site.in_fstring:
        return Withheld("HV03", span, "the optimizer is made inside an f-string", True)
    wrapper = f"{program.fact(Prerequisites).modules[wrap.module]}.DistributedOptimizer"
    requires: tuple[Edit, ...] = ()
    edits: tuple[Edit, ...]
    if wrap.target:
        line = f"{wrap.target} = {wrapper}({wrap.target})"
        edits = (program.fact(Layout).after(wrap.statement, [line]),)
        requires = program.fact(Layout).isolate(wrap.statement)
    else:
        edits = (Edit(span.start, span.start, f"{wrapper}("), Edit(span.end, span.end, ")"))
    name = wrap.target or "the optimizer"
    doubts = (wrap.doubt,) if wrap.doubt else ()
    target = program.script.statement_span(wrap.statement)
    return Change(
        "HV03", f"Average the gradients that {name} steps over all ranks", target, edits, requires, doubts
    )


def _serializable(program: Program, cls: Scope) -> Change | Withheld | None:
    """Register a schedule class of the script's own, and give it the `get_config` that it lacks."""
    statement, edits, requires = cls.statement, list[Edit](), list[Edit]()
    assert statement is not None
    assert isinstance(statement.node, ast.ClassDef)
    target = program.script.header_span(statement)
    decorators = {
        last_name(each.func if isinstance(each, ast.Call) else each) for each in statement.node.decorator_list
    }
    if _REGISTER not in decorators:
        line = f"@{program.fact(Prerequisites).tf}.keras.utils.{_REGISTER}()"
        edits.append(program.fact(Layout).before(statement, [line]))
        requires += program.fact(Layout).isolate(statement)
    if program.names.function_named(cls, "get_config") is None and not _has_inherited_config(program, cls):
        kept = _kept(program, cls)
        if kept is None:
            reason = f"Horovod makes the optimizer anew, for which {cls.name} needs a get_config method"
            return Withheld("HV03", target, reason, True)
        last = statement.branches["body"][-1]
        unit = program.fact(Layout).unit_at(last)
        items = ", ".join(f'"{name}": self.{attribute}' for name, attribute in kept.items())
        lines = ["", "def get_config(self):", f"{unit}return {{{items}}}"]
        edits.append(program.fact(Layout).after(last, lines))
        requires += program.fact(Layout).isolate(last)
    if not edits:
        return None
    title = f"Let Horovod's wrap make the schedule {cls.name} again"
    return Change("HV03", title, target, tuple(edits), tuple(requires))


def _has_inherited_config(program: Program, cls: Scope) -> bool:
    """Whether the class is made like one of TensorFlow's schedules, whose `get_config` serves it."""
    own_init = program.names.function_named(cls, "__init__") is not None
    return not own_init and any(api.rate_parameters(base) for base in program.names.library_bases(cls))


def _kept(program: Program, cls: Scope) -> dict[str, str] | None:
    """The attributes that keep the arguments of a class's ``__init__``; None if some are not kept."""
    init = program.names.function_named(cls, "__init__")
    if init is None:
        return {}
    assert isinstance(init.node, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = init.node.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        return None
    kept: dict[str, str] = {}
    for name in [each.arg for each in (*arguments.args[1:], *arguments.kwonlyargs)]:
        for attribute, value in program.script.code.bound_values:
            of_self = any(
                each.binding.value is value and each.binding.scope is init
                for each in program.script.attribute_bindings(attribute)
            )
            read = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
            if of_self and (name == dotted(value) or (name in read and name not in kept)):
                if read & (init.bindings.keys() - {"self"}) == {name}:
                    kept[name] = attribute
        if name not in kept:
            return None
    return kept


RULE = Transform(
    "HV03",
    "wrap-optimizer",
    propose,
    guards=(Guard("TF03"), Guard("TF05"), Guard("TF06"), Guard("TF07"), Guard("TL03")),
)
