"""Wraps the optimizers that Keras' `fit`, sessions and Estimators step, so that the gradients are averaged.

    optimizer = Adam(1e-3)                  optimizer = Adam(1e-3 * hvd.size())
    model.compile(optimizer, "mse")         optimizer = hvd.DistributedOptimizer(optimizer)
                                            model.compile(optimizer, "mse")

## Why it matters

Without the wrap each of two GPUs trains on its own gradients. You would see two losses that have nothing to
do with each other, and save one of two models.

## How it is done

An optimizer is wrapped where it is made: right after its assignment, or in place if it has no name. In a
`LossScaleOptimizer` the inner one is wrapped. A model whose `train_step` has its own tape keeps its
optimizer, since Horovod would not average there. Its tape is wrapped instead (HV04).

A script may fit in one mode and use a tape in another, with one optimizer for both. It is then wrapped where
the mode that fits compiles:

    optimizer = Adam(1e-3)                  optimizer = Adam(1e-3 * hvd.size())
    if args.keras:                          if args.keras:
        model.compile(optimizer, "mse")         optimizer = hvd.DistributedOptimizer(optimizer)
        model.fit(dataset)                      model.compile(optimizer, "mse")

If a checkpoint or a `compile` for all modes sees it too, it is wrapped where it is made. In a tape's loop
the wrap averages nothing; the tape does. An optimizer that may serve both in one run is refused.

In a TensorFlow 1 graph this is for the optimizers of `minimize` and `compute_gradients`, and of ready-made
Estimators. Gradients of `tf.gradients` are averaged where they are taken:

    grads = tf.gradients(loss, tvars)       grads = [grad if grad is None else hvd.allreduce(grad) for grad \
in tf.gradients(loss, tvars)]

An agent of TF-Agents computes its own gradients and passes them to `apply_gradients`, where none of Horovod's
wraps averages. A helper makes its optimizer average:

    agent = DqnAgent(                       agent = DqnAgent(
        specs, optimizer=optimizer)             specs, optimizer=hvd_averaged(optimizer))
    agent.initialize()                      agent.initialize()
                                            hvd.broadcast_variables(agent.variables, root_rank=0)

Horovod's wrap remakes the optimizer from its configuration, a schedule of your own included. So its class is
registered with Keras and gets a `get_config` if it has none, and a `from_config` where a value may be a
tensor or another schedule. A schedule of a library that it cannot remake is given to the wrapped optimizer
again:

    optimizer, _ = create_optimizer(2e-5)   optimizer, _ = create_optimizer(2e-5 * hvd.size())
                                            rate = optimizer.learning_rate
                                            optimizer = hvd.DistributedOptimizer(optimizer)
                                            optimizer.learning_rate = rate
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string
from trainshift.core.report import Report
from trainshift.python.source.edit import Change, Edit, Withheld
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, Statement
from trainshift.python.syntax.precedence import handed_to, of_each
from trainshift.rewriting.keras.helpers import AVERAGED, Helpers
from trainshift.rewriting.keras.schedule_configs import REGISTER, Remake, ScheduleConfigs
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.horovod.existing_use import KERAS
from trainshift.training.loops.agents import Agent
from trainshift.training.optimizers.agents import AgentOptimizers
from trainshift.training.optimizers.graphs import Graphs
from trainshift.training.optimizers.reductions import Form, Reductions
from trainshift.training.optimizers.wraps import Wrap, Wraps
from trainshift.transforms.rule import Proposals


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that creates an optimizer; HV10 handles `compile` itself."""
    made, _, hidden = program.fact(Wraps).all
    for wrap in made:
        if wrap.modes:
            yield _in_modes(program, report, wrap)
        if wrap.compile is None and not wrap.modes:
            yield _change(program, report, wrap)
    for remake in program.fact(ScheduleConfigs).all:
        yield _serializable(program, report, remake)
    for each in hidden:
        yield report.withheld(program.script.span(each.site.node, each.site), each.reason, each.essential)
    for agent, node in program.fact(AgentOptimizers).bare:
        yield _of_agent(program, report, agent, node)
    taken, unseen = program.fact(Graphs).gradients
    for site in taken:
        yield _average(program, report, site)
    for gradients in unseen:
        span = program.script.span(gradients.site.node, gradients.site)
        yield report.withheld(span, gradients.reason, True)


def _average(program: Program, report: Report, site: Site) -> Change | Withheld:
    """Average the result of `tf.gradients`, except for variables without a gradient."""
    span = program.script.span(site.node, site)
    if site.in_fstring:
        return report.withheld(
            span, "the gradients are taken inside an f-string; give that a statement of its own", True
        )
    hvd, reductions = program.at(site).fact(Prerequisites).hvd, program.fact(Reductions)
    averaged = f"grad if grad is None else {hvd}.allreduce(grad{reductions.given(Form.GRADIENTS, hvd)})"
    edits = program.fact(Layout).put(site.node, site, of_each(site.node, "grad", averaged))
    title = "Average the gradients that tf.gradients takes over all ranks"
    decisions = tuple(reductions.decisions(Form.GRADIENTS))
    target = program.script.statement_span(site.statement)
    return report.change(title, target, edits, decisions=decisions)


def _of_agent(program: Program, report: Report, agent: Agent, node: ast.expr) -> Change:
    """Average the gradients of an agent's own step: no Horovod wrapper averages in `apply_gradients`."""
    helper = program.at(agent.site).fact(Helpers).names[AVERAGED]
    edits = program.fact(Layout).put(node, agent.site, handed_to(helper))
    title = (
        f"Average the gradients that {one_line(program.script.text(node, agent.site))} applies over all ranks"
    )
    decisions = tuple(program.fact(Reductions).decisions(Form.TAPE))
    return report.change(title, program.script.span(node, agent.site), edits, decisions=decisions)


def _change(program: Program, report: Report, wrap: Wrap) -> Change | Withheld:
    """Wrap an optimizer where it is created, or where it is used."""
    node, site = wrap.used or (wrap.site.node, wrap.site)
    span = program.script.span(node, site)
    if site.in_fstring:
        return report.withheld(span, in_f_string("the optimizer is made"), True)
    name, (wrapper, more) = wrap.target or "the optimizer", _wrapper(program, site.statement, wrap)
    requires: tuple[Edit, ...] = ()
    edits = program.fact(Layout).put(node, site, handed_to(wrapper, more))
    if wrap.target and wrap.used is None:
        lines = [f"{name} = {wrapper}({name}{more})"]
        if wrap.keeps_rate:
            rate = program.at(wrap.statement).script.fresh("rate")
            lines = [f"{rate} = {name}.learning_rate", *lines, f"{name}.learning_rate = {rate}"]
        edits = (program.fact(Layout).after(wrap.statement, lines),)
        requires = program.fact(Layout).isolate(wrap.statement)
    decision = (
        f"{name} is wrapped for all modes; where a tape uses it, the tape averages and the wrap does not"
    )
    return _averaging(program, report, wrap, name, site.statement, edits, requires, decision)


def _in_modes(program: Program, report: Report, wrap: Wrap) -> Change | Withheld:
    """Wrap an optimizer where modes of the script compile a model with it: in all of them, or in none."""
    edits: list[Edit] = []
    requires: list[Edit] = []
    named: dict[str, None] = {}
    for mode in wrap.modes:
        site, given = mode.compile.site, mode.compile.optimizer
        assert given is not None
        if site.in_fstring:
            span = program.script.span(site.node, site)
            return report.withheld(span, in_f_string(), True)
        name, (wrapper, more) = program.script.text(given, site), _wrapper(program, site.statement, wrap)
        named[name] = None
        if mode.name:
            line = f"{name} = {wrapper}({name}{more})"
            edits.append(program.fact(Layout).before(site.statement, [line]))
            requires += program.fact(Layout).isolate(site.statement)
        else:
            edits += program.fact(Layout).put(given, site, handed_to(wrapper, more))
    names, alone = " and ".join(named), "this mode alone" if len(wrap.modes) == 1 else "these modes alone"
    decision = f"{names} is wrapped for {alone}; where a tape uses it, the tape averages"
    first = wrap.modes[0].compile.site.statement
    return _averaging(program, report, wrap, names, first, tuple(edits), tuple(requires), decision)


def _wrapper(program: Program, statement: Statement, wrap: Wrap) -> tuple[str, str]:
    """The wrapping function for an optimizer, and its further arguments."""
    module = program.at(statement).fact(Prerequisites).modules[wrap.module]
    return f"{module}.DistributedOptimizer", program.fact(Reductions).given(_form(wrap), module)


def _form(wrap: Wrap) -> Form:
    return Form.KERAS if wrap.module == KERAS else Form.GRAPH


def _averaging(
    program: Program,
    report: Report,
    wrap: Wrap,
    name: str,
    statement: Statement,
    edits: tuple[Edit, ...],
    requires: tuple[Edit, ...],
    decision: str,
) -> Change:
    """The change of a statement that wraps an optimizer; it is a decision if a tape uses the optimizer
    too.
    """
    title = f"Average the gradients that {name} steps over all ranks"
    doubts = (wrap.doubt,) if wrap.doubt else ()
    decisions = [decision] if wrap.is_shared else []
    decisions += [wrap.said] if wrap.said else []
    decisions += program.fact(Reductions).decisions(_form(wrap))
    target = program.script.statement_span(statement)
    return report.change(title, target, edits, requires, doubts, tuple(decisions))


def _serializable(program: Program, report: Report, remake: Remake) -> Change | Withheld:
    """Register a schedule class of the script, and add the methods that copies of its objects need."""
    statement, layout = remake.statement, program.fact(Layout)
    target = program.script.header_span(statement)
    if remake.reason:
        return report.withheld(target, remake.reason, True)
    edits, requires, methods = list[Edit](), list[Edit](), list[str]()
    tf, unit = program.at(statement).fact(Prerequisites).tf, layout.unit_at(statement.branches["body"][-1])
    if not remake.is_registered:
        edits.append(layout.before(statement, [f"@{tf}.keras.utils.{REGISTER}()"]))
        requires += layout.isolate(statement)
    if remake.config is not None:
        said = ", ".join(
            f"**{code}" if name == "**" else f'"{name}": {code}'
            for name, code in remake.config.arguments.items()
        )
        if remake.config.first is not None:
            kept = _kept(statement)
            edits.append(_keep(program, remake.config.first, f"{remake.config.me}.{kept} = {{{said}}}"))
            requires += layout.isolate(remake.config.first)
            said = f"**self.{kept}"
        methods += ["", "def get_config(self):", f"{unit}return {{{said}}}"]
    if remake.deserializes:
        given = f"**{tf}.keras.utils.deserialize_keras_object(config)"
        methods += ["", "@classmethod", "def from_config(cls, config):", f"{unit}return cls({given})"]
    if methods:
        last = statement.branches["body"][-1]
        edits.append(layout.after(last, methods))
        requires += layout.isolate(last)
    title = f"Let Horovod recreate the schedule {remake.scope.name}"
    return report.change(title, target, tuple(edits), tuple(requires))


def _keep(program: Program, first: Statement, line: str) -> Edit:
    """Insert a line as the first of a function's body, below its docstring."""
    layout, said = program.fact(Layout), first.node.value if isinstance(first.node, ast.Expr) else None
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        following = program.script.following(first)
        return layout.after(first, [line]) if following is None else layout.before(following, [line])
    return layout.before(first, [line])


def _kept(statement: Statement) -> str:
    """The attribute for a constructor's argument, private to the class by its two underscores."""
    assert isinstance(statement.node, ast.ClassDef)
    taken = {part.attr for part in ast.walk(statement.node) if isinstance(part, ast.Attribute)}
    # Python does not distinguish the attributes of `_Decay` from those of a `Decay` that inherits from it.
    name = base = "__given" + "_base" * statement.node.name.startswith("_")
    number = 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name
