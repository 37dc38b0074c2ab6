"""Gives the training of an Estimator the broadcast, keeps its hooks, and its `model_dir` to rank 0.

    estimator = tf.estimator.Estimator(model_fn, model_dir=d)
    estimator.train(input_fn, steps=1000, hooks=[logging_hook])

becomes

    estimator = tf.estimator.Estimator(
        model_fn,
        model_dir=d if hvd.rank() == 0 else None,
        config=tf.estimator.RunConfig(
            session_config=tf.compat.v1.ConfigProto(
                allow_soft_placement=True,
                gpu_options=tf.compat.v1.GPUOptions(
                    visible_device_list=str(hvd.local_rank())
                ),
            )
        ),
    )
    hooks = [hvd.BroadcastGlobalVariablesHook(0)]
    if hvd.rank() == 0:
        hooks.append(logging_hook)
    estimator.train(input_fn, steps=1000 // hvd.size(), hooks=hooks)

## Why it matters

Without it two GPUs start from different weights, and both processes write their checkpoints into one
directory.

## How it is done

The same goes for the `TrainSpec` of `train_and_evaluate`, the hooks of an `EstimatorSpec` and a `RunConfig`.
Hooks are treated as in HV14. Ranks without a `model_dir` use a temporary directory of their own, and
evaluate and predict from it.

The optimizer of a ready-made Estimator (`DNNClassifier`) is wrapped where it is made (HV03). One that is
named, or the default, is made here with its rate, scaled:

    e = DNNClassifier(u, c, optimizer='Adam')

becomes

    optimizer = hvd.DistributedOptimizer(
        tf.train.AdamOptimizer(learning_rate=0.05 * hvd.size())
    )
    e = DNNClassifier(u, c, optimizer=optimizer)

An Estimator that takes no optimizer is refused, since its gradients could not be averaged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.reasons import in_f_string, in_stars
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Site, argument, hides_arguments
from trainshift.rewriting.edits.hook_edits import doubts, hooked, obstacle
from trainshift.rewriting.edits.list_edits import left, placed, titled
from trainshift.rewriting.edits.rank_guards import only_argument
from trainshift.rewriting.edits.root_elements import kept_to_root
from trainshift.rewriting.edits.session_configs import configured, hidden, proto
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.sessions import CONFIGURED, Sessions
from trainshift.training.devices.pinning import Pinning
from trainshift.training.loops.loops import Loops
from trainshift.training.optimizers.estimators import Canned, Estimators, Made
from trainshift.training.rank_regions.hooks import TRAIN_SPEC, HookLists, Hooks
from trainshift.transforms.rule import Proposals

_RUN_CONFIGS = frozenset(name for name, word in CONFIGURED.items() if word == "session_config")
_RESTARTS = (
    "train_and_evaluate runs on every rank: each evaluates from its own checkpoints, "
    "and rank 0 keeps those of model_dir"
)

_DIRECTORY = (
    "only rank 0 uses model_dir; the others train, evaluate and predict from a temporary directory, and "
    "start over where rank 0 resumes: give a run with max_steps a new model_dir"
)


class _Part(Struct, frozen=True):
    """The rewrite of one argument of an Estimator: edits, keywords to add, lines before it, and decisions."""

    edits: tuple[Edit, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each Estimator, `RunConfig`, training and hook that writes."""
    if not program.fact(Estimators).is_used:
        return
    for made in program.fact(Estimators).made:
        yield from _estimator(program, report, made)
    for site, name in program.fact(Sessions).created:
        if name in _RUN_CONFIGS:
            yield from _run_config(program, report, site, name)
    for hooks in program.fact(HookLists).estimators.values():
        yield from _training(program, report, hooks)
        yield from left(report, hooks)
    yield from _unseen_specs(program, report)
    written = program.fact(HookLists).written_on_all_ranks
    kept = [(each.element, each.name) for each, of_estimator in written if of_estimator]
    yield from kept_to_root(report, kept)


def _estimator(program: Program, report: Report, made: Made) -> Proposals:
    """Keep the directory to rank 0, pin the session, and create an optimizer given by name."""
    site, span = made.site, program.script.span(made.site.node, made.site)
    reason = made.reason or (in_f_string("the Estimator is made") if site.in_fstring else "")
    if reason:
        yield report.withheld(span, reason, True)
        return
    unseen = [word for word in ("model_dir", "config") if made.given(word) is None]
    if unseen and hides_arguments(site.node):
        reason = in_stars(f"the Estimator's {' and '.join(unseen)} may be")
        yield report.withheld(span, reason)
    parts = (*_optimizers(program, made), _directory(program, made), _configuration(program, made))
    edits = [edit for part in parts for edit in part.edits]
    added = {word: text for part in parts for word, text in part.added.items()}
    lines = [line for part in parts for line in part.lines]
    edits += program.fact(Layout).add_keywords(site, added)
    requires: tuple[Edit, ...] = ()
    if lines:
        edits.append(program.fact(Layout).before(site.statement, lines))
        requires = program.fact(Layout).isolate(site.statement)
    if edits:
        target = program.script.statement_span(site.statement)
        title = "Prepare the Estimator for several ranks: its directory, its session and its optimizer"
        decided = tuple(each for part in parts for each in part.decisions)
        yield report.change(title, target, tuple(edits), requires, decisions=decided)


def _optimizers(program: Program, made: Made) -> Iterator[_Part]:
    """Yield the optimizers given by name, created before the Estimator or in place."""
    for canned in made.canned:
        text, lines = _optimizer(program, made, canned), tuple[str, ...]()
        if _is_plain(made.site):
            name = program.fact(Estimators).name(made, canned.word)
            text, lines = name, (f"{name} = {text}",)
        shown = f"the default {canned.word}"
        edits: tuple[Edit, ...] = ()
        added = {canned.word: text}
        if canned.node is not None:
            shown = program.script.text(canned.node, made.site)
            edits, added = program.fact(Layout).replace(canned.node, made.site, text), {}
        decision = f"{shown} is {canned.cls} with the learning rate {canned.rate}, scaled"
        yield _Part(edits, added, lines, (decision,))


def _directory(program: Program, made: Made) -> _Part:
    """The directory, which only rank 0 uses."""
    given = made.given("model_dir")
    kept = only_argument(program, given, made.site) if given is not None else ()
    return _Part(kept, decisions=(_DIRECTORY,) if kept else ())


def _configuration(program: Program, made: Made) -> _Part:
    """A configuration that pins the sessions, if the Estimator has none."""
    pinned = made.given("config") is not None or program.fact(Pinning).by_environment
    if pinned or hides_arguments(made.site.node):
        return _Part()
    config = proto(
        program, made.site, program.fact(Sessions).spelling(made.site), "allow_soft_placement=True, "
    )
    return _Part(added={"config": f"{_module(program, made.site)}.RunConfig(session_config={config})"})


def _is_plain(site: Site) -> bool:
    """Return whether the statement only creates the Estimator, so that a line may precede it."""
    node = site.statement.node
    return isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return) and node.value is site.node


def _optimizer(program: Program, made: Made, canned: Canned) -> str:
    """The code of a wrapped optimizer with its rate scaled."""
    v1, names = program.fact(Sessions).spelling(made.site), program.at(made.site).fact(Prerequisites)
    module = f"{v1}.train" if canned.module == "train" else f"{names.tf}.{canned.module}"
    hvd = names.hvd
    scaled = f"learning_rate={canned.rate} * {hvd}.size()"
    return f"{hvd}.DistributedOptimizer({module}.{canned.cls}({scaled}))"


def _module(program: Program, site: Site) -> str:
    """The script's name of `tf.estimator`."""
    names = (part for part in program.script.text(site.node.func, site).split("."))
    before = []
    for name in names:
        before.append(name)
        if name == "estimator":
            return ".".join(before)
    return f"{program.at(site).fact(Prerequisites).tf}.estimator"


def _run_config(program: Program, report: Report, site: Site, name: str) -> Proposals:
    configuration = program.fact(Sessions).configuration(site, name)
    if configuration.hidden:
        yield hidden(report, site, configuration)
    edits: list[Edit] = []
    signature = api.constructor(name)
    directory = argument(site.node, signature.position("model_dir") if signature else None, "model_dir")
    kept = only_argument(program, directory, site) if directory is not None else ()
    edits += (*kept, *configured(program, site, name, configuration, {}))
    if edits:
        title = "Pin the sessions to the GPU of their rank, and keep model_dir to rank 0"
        target = program.script.statement_span(site.statement)
        decided = (_DIRECTORY,) if kept else ()
        yield report.change(title, target, tuple(edits), decisions=decided)


def _training(program: Program, report: Report, hooks: Hooks) -> Proposals:
    site, withheld = hooks.site, obstacle(report, hooks)
    if withheld is not None:
        yield withheld
    if withheld is not None or hooks.broadcasts:
        return
    edits, added = hooked(program, hooks)
    edits += program.fact(Layout).add_keywords(site, added)
    target = program.script.statement_span(site.statement)
    title = titled("Broadcast from rank 0 when the training begins", hooks)
    decided = (_RESTARTS,) if site.name != "train" else ()
    yield report.change(
        title,
        target,
        tuple(edits),
        doubts=doubts(program, hooks),
        decisions=(*decided, *placed(hooks)),
    )


def _unseen_specs(program: Program, report: Report) -> Proposals:
    """Yield each `train_and_evaluate` whose `TrainSpec` is not created in this file."""
    for loop in program.fact(Loops).own:
        for site in loop.sites:
            given = argument(site.node, 1, "train_spec") if site.name == "train_and_evaluate" else None
            if given is None:
                continue
            values = program.names.site_values(given, site)
            made = [each for each in values if getattr(each, "cls", "") == TRAIN_SPEC]
            if not made:
                span = program.script.span(site.node, site)
                text = program.script.text(given, site)
                yield report.withheld(span, f"Trainshift cannot tell which TrainSpec {text} is", True)
