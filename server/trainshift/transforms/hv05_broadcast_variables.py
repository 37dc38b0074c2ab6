"""Broadcasts the model's and the optimizer's variables from rank 0 once, after the first step.

    optimizer.apply_gradients(zip(grads, model.trainable_variables))

becomes

    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    if not hvd_broadcast_done:
        with tf.init_scope():
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables(), root_rank=0)
        hvd_broadcast_done = True

## Why it matters

Every process starts with its own random weights. Without the broadcast two GPUs average the gradients of two
different models, and neither learns well.

## How it is done

After the first step the optimizer has its variables, so they are broadcast with the model's. Each
`apply_gradients` has a flag of its own. In a function the broadcast is in `tf.init_scope()`, so that it also
happens when the function is traced.

If the model is not known, the variables of the pairs are broadcast, from a list, because a `zip` can be read
only once. A step that may serve several optimizers, or that AutoGraph may turn into a graph loop, keeps a
set of the optimizers that it has served instead of a flag.

A model whose weights the script sets itself, such as a target network, is broadcast together with its source.
So is a model that the loss depends on and that nothing trains, such as a random target. If the script keeps
weights before the first step, to restore or to average them later, the model is also broadcast above the loop
or the statement that keeps them. The same holds for a model whose predictions choose the first training
data, such as the hardest rows: ranks that choose other rows may take different numbers of steps.

With `keras = "3"` the flag is a `tf.Variable` and the broadcast a part of the step's graph: when a step is
traced, an optimizer's variables have no value yet. AutoGraph must read the step, which serves one optimizer.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.python.names.values import Unknown
from trainshift.python.source.edit import Change, Edit, Side
from trainshift.python.syntax.chunk_syntax import Scope, Statement, dotted, last_name
from trainshift.rewriting.edits.early_weights import UNBUILT, broadcast_above, told_of
from trainshift.rewriting.edits.rank_guards import printed
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.execution.executions import Executions
from trainshift.training.initial_state.fixed_models import FixedModels
from trainshift.training.initial_state.flags import PAIRS_KEY, Flag, Flags
from trainshift.training.initial_state.set_weights import OTHER_BEGINNING, SetWeights
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.agents import Agents, Beginning
from trainshift.training.loops.steps import APPLY, Step, Steps, is_plain
from trainshift.training.optimizers.agents import AgentOptimizers
from trainshift.transforms.rule import Proposals

_COPIED = "{} is broadcast as well, since the script sets its weights"
_FIXED = "{} is broadcast as well, since the loss depends on it and each rank makes it with random weights"
_LONGEST = 88


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each optimizer step that is not broadcast yet."""
    for flag in program.fact(Flags).needed:
        step = flag.step
        reason = _reason_against(step) or _reason_on_keras3(program, flag)
        if reason:
            yield report.withheld(program.script.span(step.site.node, step.site), reason, True)
        else:
            yield _change(program, report, flag)
    agents = program.fact(Agents)
    for beginning in agents.beginnings if agents.trainings else ():
        if not program.fact(AgentOptimizers).is_broadcast:
            yield _of_agent(program, report, beginning)


def _of_agent(program: Program, report: Report, beginning: Beginning) -> Change:
    """Broadcast an agent's variables as soon as they exist: networks, targets, counts."""
    statement = beginning.statement
    hvd = program.at(beginning.site).fact(Prerequisites).hvd
    line = f"{hvd}.broadcast_variables({beginning.name}.variables, root_rank=0)"
    edits = (program.fact(Layout).after(statement, [line]),)
    title = f"Broadcast the contents of {beginning.name} from rank 0"
    requires = program.fact(Layout).isolate(statement)
    return report.change(title, program.script.statement_span(statement), edits, requires)


def _reason_against(step: Step) -> str:
    if not step.gradients and not step.reduced and not step.on_batch:
        return "Trainshift cannot tell where the gradients of this step come from, so no tape can be wrapped"
    if step.site.deferred:
        return "apply_gradients is in a lambda or a comprehension; give it a statement of its own"
    if not is_plain(step.receiver) and step.on_batch:
        return "the model is not a plain name; assign it to a variable first"
    if not is_plain(step.receiver):
        return "the optimizer is not a plain name; assign it to a variable first"
    position = _position(step)
    if position == "header" and not isinstance(step.statement.node, ast.With | ast.AsyncWith):
        return "apply_gradients is in the head of a block; give it a statement of its own"
    if position in ("inside", "header") and not step.models:
        return "apply_gradients is part of a larger expression; give it a statement of its own"
    applied = step.site.name == APPLY and not step.models
    if applied and (step.variables is None or not is_plain(step.variables)):
        return "the variables of this step are not a plain name; assign them to a variable first"
    if step.pairs is None and not step.on_batch:
        return in_stars("the gradients and variables are")
    return ""


def _reason_on_keras3(program: Program, flag: Flag) -> str:
    """The reason why a variable cannot serve as a flag."""
    if not program.fact(Target).is_keras3:
        return ""
    if flag.key == PAIRS_KEY:
        return "for Keras 3 the variables of a step must be those of a model, or a list that is made once"
    if flag.counts and next(program.script.sites_named("restore", "restore_or_initialize"), None) is not None:
        return "with Keras 3, a step must use one optimizer if the script restores variables"
    if not program.fact(Executions).has_autograph(flag.step.site.scope):
        return "for Keras 3 the broadcast needs AutoGraph; remove autograph=False"
    return ""


def _position(step: Step) -> str:
    """The position of the call: a "statement" (alone, assigned, returned), "inside" one, or in a "header"."""
    node = step.statement.node
    whole = isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return)
    if whole and node.value is step.site.node:  # type: ignore[attr-defined]
        return "statement"
    return "header" if step.statement.branches else "inside"


def _change(program: Program, report: Report, flag: Flag) -> Change:
    step, script, layout = flag.step, program.script, program.fact(Layout)
    requires = [*_globals(program, flag), *layout.isolate(step.statement)]
    edits: list[Edit] = []
    tf, target_of = program.at(step.site).fact(Prerequisites).tf, program.fact(Target)
    variables = [target_of.of_model(ast.unparse(model), tf) for model in step.models]
    if not variables and step.variables is not None:
        variables = [target_of.known(script.text(step.variables, step.site), tf)]
    elif not variables:
        assert step.pairs is not None
        name = _pairs_name(program, step)
        variables = [f"[variable for _, variable in {name}]"]
        if target_of.is_keras3:
            variables = [target_of.known(variables[0], tf)]
        if name != dotted(step.pairs):
            edits += _bind_pairs(program, step, name)
    set_by_hand = program.fact(SetWeights)
    copies = set_by_hand.copies(step)
    variables += [target_of.of_model(copy, tf) for copy in copies]
    decisions = [_COPIED.format(copy) for copy in copies]
    fixed = [each for each in program.fact(FixedModels).beside(step) if each not in copies]
    variables += [target_of.of_model(each, tf) for each in fixed]
    decisions += [_FIXED.format(each) for each in fixed]
    for early in set_by_hand.early(step):
        requires += broadcast_above(program, early)
        decisions.append(told_of(program, early))
    receiver = script.text(step.receiver, step.site) + (".optimizer" if step.on_batch else "")
    block = _block(program, flag, [*variables, target_of.of_optimizer(receiver, tf)])
    if isinstance(step.statement.node, ast.Return):
        edits += _before_return(program, step, block)
    elif step.statement.branches:
        first = step.statement.branches["body"][0]
        requires += layout.isolate(first)
        edits.append(layout.before(first, block, -1))
    else:
        edits.append(layout.after(printed(script, step.statement)[1], block))
    title = f"Broadcast the variables that {receiver} trains, once, after its first step"
    target = script.statement_span(step.statement)
    return report.change(
        title,
        target,
        tuple(edits),
        tuple(requires),
        _doubts(program, step, receiver),
        tuple(decisions),
    )


def _block(program: Program, flag: Flag, variables: list[str]) -> list[str]:
    """The lines of the broadcast, without indentation."""
    names = program.at(flag.step.site).fact(Prerequisites)
    hvd, unit = names.hvd, program.fact(Layout).unit_at(flag.step.statement)
    calls = [f"{hvd}.broadcast_variables({each}, root_rank=0)" for each in variables]
    if flag.counts:
        receiver = program.script.text(flag.step.receiver, flag.step.site)
        return [f"if {receiver}.iterations == 1:", *(unit + call for call in calls)]
    if program.fact(Target).is_keras3 and flag.key is None:
        return [f"if not {flag.name}:", *(unit + call for call in calls), f"{unit}{flag.name}.assign(True)"]
    if flag.step.site.scope.function() is not None and not program.fact(Target).is_keras3:
        calls = [f"with {names.tf}.init_scope():", *(unit + call for call in calls)]
    if flag.key is None:
        test, done = f"if not {flag.name}:", f"{flag.name} = True"
    else:
        key = f"{_pairs_name(program, flag.step)}{PAIRS_KEY}" if flag.key == PAIRS_KEY else flag.key
        test, done = f"if {key} not in {flag.name}:", f"{flag.name}.add({key})"
    return [test, *(unit + call for call in calls), unit + done]


def _bind_pairs(program: Program, step: Step, name: str) -> list[Edit]:
    """Turn ``apply_gradients(zip(g, v))`` into ``name = list(zip(g, v))`` and ``apply_gradients(name)``."""
    script, layout = program.script, program.fact(Layout)
    assert step.pairs is not None
    pairs = layout.enclosed(step.pairs, step.site)
    statement = script.statement_span(step.statement)
    lead = script.source.text[statement.start : pairs.start]
    if isinstance(step.statement.node, ast.Return):
        call = script.span(step.site.node, step.site).start
        lead = f"{_result_name(program, step)} = {script.source.text[call : pairs.start]}"
    newline = layout.newline_at(step.statement)
    is_list = isinstance(step.pairs, ast.List | ast.ListComp)
    opening, closing = ("", "") if is_list else ("list(", ")")
    return [
        Edit(statement.start, pairs.start, f"{name} = {opening}"),
        Edit(pairs.end, pairs.end, f"{closing}{newline}{lead}{name}", Side.WITHIN, 1),
    ]


def _before_return(program: Program, step: Step, block: list[str]) -> list[Edit]:
    """Turn ``return apply_gradients(...)`` into a call, the broadcast, and the return of its result."""
    script = program.script
    span = script.statement_span(step.statement)
    assert isinstance(step.statement.node, ast.Return)
    assert step.statement.node.value is not None
    value = script.span(step.statement.node.value, step.site)
    name = _result_name(program, step)
    newline = program.fact(Layout).newline_at(step.statement)
    lines = "".join(newline + line for line in [*block, f"return {name}"])
    bound = [Edit(span.start, value.start, f"{name} = ")] if step.models else []
    return [*bound, Edit(span.end, span.end, lines, Side.AFTER)]


def _result_name(program: Program, step: Step) -> str:
    """The name for a step's result: the same for every step, because it is returned at once."""
    ours = set()
    home = program.at(step.site)
    for each in program.fact(Steps).steps:
        node, block = each.statement.node, each.statement.block
        if home.holds(each.site) and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            last = block[-1].node
            if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and last.value.id == name:
                ours.add(name)
    return home.script.fresh("result", ours)


def _pairs_name(program: Program, step: Step) -> str:
    """The name of the list of pairs: the same for every step, because each reads it at once."""
    if own := _own_list(program, step):
        return own
    home = program.at(step.site)
    ours = {_own_list(program, each) for each in program.fact(Steps).steps if home.holds(each.site)}
    return home.script.fresh("grads_and_vars", ours)


def _own_list(program: Program, step: Step) -> str:
    """The name of a step's pairs if the previous statement binds it to a list; "" if it does not."""
    before = program.script.preceding(step.statement)
    if before is None or not isinstance(step.pairs, ast.Name) or not isinstance(before.node, ast.Assign):
        return ""
    value = before.node.value
    bound = {last_name(target) for target in before.node.targets}
    made = isinstance(value, ast.List | ast.ListComp) or (
        isinstance(value, ast.Call) and last_name(value.func) == "list"
    )
    return step.pairs.id if made and step.pairs.id in bound else ""


def _globals(program: Program, flag: Flag) -> list[Edit]:
    """A ``global`` at the top of the function that sets the flag, for all flags of that function."""
    function = flag.step.site.scope.function()
    if function is None or flag.key is not None or program.fact(Target).is_keras3:
        return []
    names = [
        each.name
        for each in program.fact(Flags).needed
        if each.key is None
        and each.step.site.scope.function() is function
        and each.name not in function.declared_global
    ]
    if not names:
        return []
    first = _body(function)[0]
    lines = _declaring(names, program.fact(Layout).indentation(first))
    documented = isinstance(first.node, ast.Expr) and isinstance(first.node.value, ast.Constant)
    isolated = program.fact(Layout).isolate(first)
    if documented and isinstance(first.node.value.value, str):  # type: ignore[attr-defined]
        return [*isolated, program.fact(Layout).after(first, lines)]
    # Later code on the line of the first statement may stay there.
    start = program.script.statement_span(first).start
    below_header = [edit for edit in isolated if edit.end == start]
    if below_header:
        return [*below_header, program.fact(Layout).before(first, lines, -2)]
    return [_above_comments(program, first, lines)]


def _body(function: Scope) -> list[Statement]:
    assert function.statement is not None
    return function.statement.branches["body"]


def _declaring(names: list[str], indentation: str) -> list[str]:
    """The ``global`` statements for some names, each within the line length if possible."""
    lines: list[str] = []
    for name in names:
        if lines and len(f"{indentation}{lines[-1]}, {name}") <= _LONGEST:
            lines[-1] += f", {name}"
        else:
            lines.append(f"global {name}")
    return lines


def _above_comments(program: Program, first: Statement, lines: list[str]) -> Edit:
    """Insert lines right below the function's header, above the first statement's comments."""
    source = program.script.source
    at = program.script.statement_span(first).start
    row = source.line_of(at)
    while row > 0:
        above = source.text[source.line_starts[row - 1] : source.line_starts[row]].strip()
        if above and not above.startswith("#"):
            break
        row -= 1
    start = source.line_starts[row]
    layout = program.fact(Layout)
    text = "".join(layout.indentation(first) + line + layout.line_end_at(first) for line in lines)
    return Edit(start, start, text, Side.BEFORE, -2)


def _doubts(program: Program, step: Step, receiver: str) -> tuple[str, ...]:
    values = program.names.site_values(step.receiver, step.site)
    copy = program.fact(SetWeights).unnamed(step)
    begins = (OTHER_BEGINNING.format(copy),) if copy else ()
    if name := program.fact(SetWeights).unbuilt(step.site, step.models):
        begins = (*begins, UNBUILT.format(name))
    known = step.on_batch or program.names.may_be(values, *api.OPTIMIZERS)
    if known or not any(isinstance(value, Unknown) for value in values):
        return begins
    return (
        *begins,
        f"{receiver} is assumed to be an optimizer whose learning rate is scaled elsewhere",
    )
