"""Gives `compile` an optimizer that is scaled and wrapped, where it names one or makes one in place.

    model.compile("adam", loss="mse")

becomes

    optimizer = hvd.DistributedOptimizer(
        tf.keras.optimizers.Adam(learning_rate=0.001 * hvd.size())
    )
    model.compile(optimizer, loss="mse")

## Why it matters

An optimizer that only Keras makes cannot be wrapped. Without the wrap each of two GPUs trains on its own
gradients, and you save one of two models.

## How it is done

This covers every name that Keras accepts, the default (`rmsprop`), and an optimizer that is made among the
arguments. A model whose `train_step` has its own tape gets a scaled optimizer that is not wrapped.

For Keras 3 (TensorFlow 2.16 and later), where Horovod's optimizer averages nothing, `hvd_distribute(model)`
follows `compile`: a function below the set-up that makes the model's optimizer average, and turns XLA off.

A name that is hidden in `**` arguments is refused. So is `jit_compile=True`, with which Horovod cannot
average.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from trainshift.core.layout import Layout
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.python.names.uses import NameUses
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Change, Edit, Side, Withheld
from trainshift.python.syntax.chunk_syntax import Site, dotted, is_alone, last_name
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.python.syntax.precedence import handed_to
from trainshift.rewriting.keras.helpers import DISTRIBUTE, Helpers
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.loops.fits import Compile, Fit, Fits, method_argument
from trainshift.training.loops.steps import is_plain
from trainshift.training.optimizers.compiled import Compiled, model_of
from trainshift.training.optimizers.reductions import Form, Reductions
from trainshift.training.optimizers.wraps import Named, Unnamed, Wrap, Wraps
from trainshift.transforms.rule import Proposals

_BASE = "optimizer"
_OURS = re.compile(rf"(\w+_)?{_BASE}(_\d+)?")
_TITLE_3 = "Average the gradients of the compiled model over all ranks"
_TITLE_XLA = "Turn off XLA, which does not support Horovod"
_TITLE = "Compile with an optimizer that averages the gradients over all ranks"


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each `compile` that names its optimizer or creates it in place."""
    made, named, _ = program.fact(Wraps).all
    for wrap in made:
        if wrap.compile is not None:
            yield _wrap(program, report, wrap, wrap.compile)
    for each in named:
        change = _make(program, report, each)
        if change is not None:
            yield change
    for unnamed in program.fact(Wraps).unnamed:
        yield _get(program, report, unnamed)
    if program.fact(Target).is_keras3:
        for compile in program.fact(Compiled).to_distribute:
            helper = program.at(compile.site).fact(Helpers).names[DISTRIBUTE]
            yield _after(program, report, compile, f"{helper}({{model}})", _TITLE_3)
        for compile in program.fact(Compiled).to_run_without_xla:
            yield _after(program, report, compile, "{model}.jit_compile = False", _TITLE_XLA)
        for fit in program.fact(Compiled).loaded:
            helper = program.at(fit.site).fact(Helpers).names[DISTRIBUTE]
            yield _before_fit(program, report, fit, f"{helper}({{model}})", _TITLE_3)
        for fit in program.fact(Compiled).loaded_with_xla:
            yield _before_fit(program, report, fit, "{model}.jit_compile = False", _TITLE_XLA)
        return
    for compile in program.fact(Fits).compiles:
        compiled = method_argument(compile.site, "jit_compile")
        if isinstance(compiled, ast.Constant) and compiled.value is True:
            span = program.script.span(compile.site.node, compile.site)
            reason = "Horovod's allreduce does not run in a model compiled with jit_compile=True"
            yield report.withheld(span, reason, True)


def _wrap(program: Program, report: Report, wrap: Wrap, compile: Compile) -> Change | Withheld:
    """Wrap an optimizer created in place: through a variable, or directly."""
    site, script = compile.site, program.script
    span = script.span(wrap.site.node, wrap.site)
    hvd = program.at(site).fact(Prerequisites).hvd_keras
    wrapper, more = f"{hvd}.DistributedOptimizer", program.fact(Reductions).given(Form.KERAS, hvd)
    decisions = (*filter(None, [wrap.said]), *program.fact(Reductions).decisions(Form.KERAS))
    if site.in_fstring:
        return report.withheld(span, in_f_string(), True)
    if not is_alone(site) or not _can_follow(program, site, wrap.site):
        edits = program.fact(Layout).put(wrap.site.node, site, handed_to(wrapper, more))
        return report.change(_TITLE, script.statement_span(site.statement), edits, decisions=decisions)
    # The text before the optimizer moves behind it, so that edits inside it keep their place.
    name = _name(program, compile)
    statement = script.statement_span(site.statement)
    newline = program.fact(Layout).newline_at(site.statement)
    lead = script.source.text[statement.start : span.start]
    edits = (
        Edit(statement.start, span.start, f"{name} = {wrapper}("),
        Edit(span.end, span.end, f"{more}){newline}{lead}{name}", Side.WITHIN, 1),
    )
    requires = program.fact(Layout).isolate(site.statement)
    doubts = (wrap.doubt,) if wrap.doubt else ()
    return report.change(_TITLE, statement, edits, requires, doubts, decisions)


def _after(program: Program, report: Report, compile: Compile, line: str, title: str) -> Change | Withheld:
    """Insert a line below a `compile`, for Keras 3; `{model}` in it becomes the model."""
    site, script, model = compile.site, program.script, model_of(compile)
    target = script.statement_span(site.statement)
    if not is_alone(site) or site.in_fstring:
        return report.withheld(target, "compile is part of a larger statement; give it one of its own", True)
    if not is_plain(model):
        return report.withheld(target, "the model is not a plain name; assign it to a variable first", True)
    layout = program.fact(Layout)
    edits = (layout.after(site.statement, [line.format(model=script.text(model, site))]),)
    decisions = list(program.fact(Reductions).decisions(Form.TAPE)) if title == _TITLE_3 else []
    if given := method_argument(site, "jit_compile"):
        if not (isinstance(given, ast.Constant) and given.value in (False, "auto")):
            decisions.append("jit_compile is turned off, because XLA does not support Horovod")
    return report.change(title, target, edits, layout.isolate(site.statement), decisions=tuple(decisions))


def _before_fit(program: Program, report: Report, fit: Fit, line: str, title: str) -> Change:
    """Insert a line above the fit of a model that is loaded with its optimizer, for Keras 3."""
    site, layout, script = fit.site, program.fact(Layout), program.script
    edits = (layout.before(site.statement, [line.format(model=script.text(fit.model, site))]),)
    target = script.statement_span(site.statement)
    return report.change(title, target, edits, layout.isolate(site.statement))


def _can_follow(program: Program, site: Site, optimizer: Site) -> bool:
    """Return whether the text before the optimizer may be moved, because no rule edits it."""
    assert isinstance(site.node.func, ast.Attribute)
    end = program.script.span(optimizer.node, optimizer).start
    return is_plain(site.node.func.value) and not any(
        other.name in program.fact(Libraries).for_root or program.fact(Wraps).makes_optimizer(other)
        for other in program.script.code.sites_by_statement[site.statement]
        if other is not site and program.script.span(other.node, other).start < end
    )


def _make(program: Program, report: Report, named: Named) -> Change | Withheld | None:
    """Create an optimizer given by name, or by default: before the statement, or in place.

    None if it needs neither a wrap nor scaling.
    """
    site, script, layout = named.compile.site, program.script, program.fact(Layout)
    target = script.statement_span(site.statement)
    if site.in_fstring:
        return report.withheld(target, in_f_string(), True)
    is_keras3 = program.fact(Target).is_keras3
    signature = api.constructor(named.cls, keras3=is_keras3)
    rate = signature.parameter("learning_rate") if signature is not None else None
    last = named.cls.rpartition(".")[2]
    names = program.at(site).fact(Prerequisites)
    reductions, is_wrapped = program.fact(Reductions), named.compile.own_tape is None
    is_wrapped = is_wrapped and not is_keras3
    if not (is_wrapped or reductions.scales_rates):
        return None
    scaled = f"learning_rate={rate.default} * {names.hvd}.size()" if rate is not None else ""
    value = f"{names.tf}.keras.optimizers.{last}({scaled})"
    if is_wrapped:
        more = reductions.given(Form.KERAS, names.hvd_keras)
        value = f"{names.hvd_keras}.DistributedOptimizer({value}{more})"
    requires: tuple[Edit, ...] = ()
    edits: tuple[Edit, ...] = ()
    if is_alone(site) and is_wrapped:
        name = _name(program, named.compile)
        edits = (layout.before(site.statement, [f"{name} = {value}"]),)
        requires = layout.isolate(site.statement)
        value = name
    if named.node is None:
        edits += layout.add_keyword(site, "optimizer", value)
    else:
        edits += layout.replace(named.node, site, value)
    given = script.text(named.node, site) if named.node is not None else "Keras' default"
    decision = f"{given} is {last} with its default learning rate {rate.default if rate else ''}, scaled"
    more_decisions = reductions.decisions(Form.KERAS) if is_wrapped else ()
    return report.change(_TITLE, target, edits, requires, decisions=(decision, *more_decisions))


def _get(program: Program, report: Report, unnamed: Unnamed) -> Change:
    """Create the optimizer behind a possible name by Keras, scaled and wrapped, before the statement."""
    site, layout = unnamed.compile.site, program.fact(Layout)
    names, name = program.at(site).fact(Prerequisites), _name(program, unnamed.compile)
    text = program.script.text(unnamed.node, site)
    text = ast.unparse(unnamed.node) if comments_in(text) else text  # Comments stay where they are.
    lines = [
        f"{name} = {names.tf}.keras.optimizers.get({text})",
        f"{name}.learning_rate = {name}.learning_rate * {names.hvd}.size()",
    ]
    if not program.fact(Target).is_keras3:
        more = program.fact(Reductions).given(Form.KERAS, names.hvd_keras)
        lines.append(f"{name} = {names.hvd_keras}.DistributedOptimizer({name}{more})")
    edits = (layout.before(site.statement, lines), *layout.replace(unnamed.node, site, name))
    doubt = f"{text} is assumed to be the name of an optimizer, or one without a schedule"
    target = program.script.statement_span(site.statement)
    doubts = () if unnamed.is_name else (doubt,)
    decisions = tuple(program.fact(Reductions).decisions(Form.KERAS))
    return report.change(_TITLE, target, edits, layout.isolate(site.statement), doubts, decisions)


def _name(program: Program, compile: Compile) -> str:
    """The name of the optimizer for a `compile`: with the model's name if there are several in its function.

    A model that is compiled again gets another name, that of the optimizer's class, since no name may hold
    two optimizers (TF05).
    """
    classes = _classes(program)
    own = {each: nodes for each in program.fact(Fits).compiles if (nodes := _own_names(program, each))}
    home, function = program.at(compile.site), compile.site.scope.function()
    here = [
        each
        for each in program.fact(Fits).compiles
        if (each in classes or each in own)
        and home.holds(each.site)
        and each.site.scope.function() is function
    ]
    words = _words_of(compile)
    again = [each for each in here if _words_of(each) == words]
    after_model = "_".join([*words, _BASE])
    if compile in again[1:]:
        bases = [_later_name(after_model, again[1 : again.index(compile) + 1], classes)]
    else:
        bases = [*([_BASE] if len(here) == 1 else []), after_model, f"distributed_{after_model}"]
    uses, scope = home.fact(NameUses), compile.site.scope
    ours = {node for each in here for node in own.get(each, ())}
    free = (each for each in bases if not uses.is_taken(each, scope, ours))
    return next(free, "") or fresh_name(bases[-1], lambda name: uses.is_taken(name, scope, ours), first=2)


def _classes(program: Program) -> dict[Compile | None, str]:
    """The class of the optimizer of each `compile` that is rewritten, "" where it is not seen."""
    made, named, unnamed = *program.fact(Wraps).all[:2], program.fact(Wraps).unnamed
    found = {wrap.compile: wrap.site.name if wrap.site.name[:1].isupper() else "" for wrap in made}
    found |= {each.compile: each.cls.rpartition(".")[2] for each in named}
    return found | {each.compile: "" for each in unnamed}


def _later_name(first: str, later: list[Compile], classes: Mapping[Compile | None, str]) -> str:
    """The name of the last of the `later` optimizers of a model, whose first one has the name `first`."""

    def named_after(each: Compile) -> str:
        if each not in classes and isinstance(each.optimizer, ast.Name):
            return each.optimizer.id  # An earlier rewrite has named it.
        cls = classes[each].lower().removesuffix(_BASE)
        return f"{first.removesuffix(_BASE)}{cls}_{_BASE}" if cls else first

    mine = named_after(later[-1])
    number = 1 + sum(_without_number(each) == mine for each in (first, *map(named_after, later[:-1])))
    return f"{mine}_{number}" if number > 1 else mine


def _without_number(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _words_of(compile: Compile) -> list[str]:
    """The words in the name of a model."""
    function = compile.site.node.func
    words = last_name(function.value).split("_") if isinstance(function, ast.Attribute) else []
    return [word for word in words if word not in ("", "model", "self")]


def _own_names(program: Program, compile: Compile) -> set[ast.AST]:
    """The uses of the variable that an earlier rewrite has made for a call's argument."""
    given, before = compile.optimizer, program.script.preceding(compile.site.statement)
    if not isinstance(given, ast.Name) or not _OURS.fullmatch(given.id):
        return set()
    if before is None or not isinstance(before.node, ast.Assign):
        return set()
    bound = [target.id for target in before.node.targets if isinstance(target, ast.Name)]
    if bound != [given.id] or not _is_made_and_wrapped(program, before.node.value):
        return set()
    found: set[ast.AST] = {given}
    while before is not None and isinstance(before.node, ast.Assign):
        if {dotted(target).partition(".")[0] for target in before.node.targets} != {given.id}:
            break
        parts = ast.walk(before.node)
        found.update(each for each in parts if isinstance(each, ast.Name) and each.id == given.id)
        before = program.script.preceding(before)
    return found


def _is_made_and_wrapped(program: Program, node: ast.expr) -> bool:
    """Return whether the expression is a call of Horovod's wrap around the call that creates the
    optimizer.
    """
    return (
        isinstance(node, ast.Call)
        and program.fact(Horovod).is_call(program.script.site_of(node), "DistributedOptimizer")
        and all(isinstance(given, ast.Call | ast.Name) for given in node.args)
    )
