"""Gives monitored sessions the broadcast, keeps the script's hooks, and writes checkpoints on rank 0 only.

    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=d,
        hooks=[StopAtStepHook(last_step=n), LoggingTensorHook(t, every_n_iter=9)],
    ) as sess:

becomes

    hooks = [
        hvd.BroadcastGlobalVariablesHook(0),
        StopAtStepHook(last_step=n // hvd.size()),
    ]
    if hvd.rank() == 0:
        hooks.append(LoggingTensorHook(t, every_n_iter=9))
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=d if hvd.rank() == 0 else None,
        hooks=hooks,
        config=tf.ConfigProto(
            gpu_options=tf.GPUOptions(visible_device_list=str(hvd.local_rank()))
        ),
    ) as sess:

## Why it matters

Without it two GPUs start from different weights, and both processes write their checkpoints into one
directory.

## How it is done

The broadcast comes first. Hooks that steer the training stay on every rank. Those that only log or write are
kept to rank 0 where they are put into the list, and an unknown one runs on every rank.

The same goes for `SingularMonitoredSession`, `MonitoredSession` and its session creator. A configuration of
your own is pinned where it is made (HV13).

From TensorFlow 2.16 on, Horovod has no such hook, so the file gets a short one of its own.
"""

from __future__ import annotations

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.python.source.edit import Change, Edit
from trainshift.python.syntax.chunk_syntax import Site, argument
from trainshift.rewriting.edits.hook_edits import doubts, hooked, obstacle
from trainshift.rewriting.edits.list_edits import left, placed, titled
from trainshift.rewriting.edits.rank_guards import only_argument
from trainshift.rewriting.edits.root_elements import kept_to_root
from trainshift.rewriting.edits.session_configs import configured, hidden, proto
from trainshift.rewriting.tf1.sessions import CONFIGURED, PLAIN, Sessions
from trainshift.training.devices.pinning import Pinning
from trainshift.training.rank_regions.hooks import HookLists, Hooks
from trainshift.transforms.rule import Proposals

_DIRECTORIES = ("checkpoint_dir", "summary_dir")
_MONITORED = "tensorflow.compat.v1.train.MonitoredSession"
_CREATORS = frozenset(
    f"tensorflow.compat.v1.train.{name}" for name in ("ChiefSessionCreator", "WorkerSessionCreator")
)


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each monitored session, for each session creator and for each hook that
    writes.
    """
    for site, hooks in program.fact(HookLists).monitored.items():
        yield from _session(program, report, site, hooks)
        yield from left(report, hooks)
    for site, name in program.fact(Sessions).created:
        if name in _CREATORS:
            yield from _configure(program, report, site, name, [])
    written = program.fact(HookLists).written_on_all_ranks
    kept = [(each.element, each.name) for each, of_estimator in written if not of_estimator]
    yield from kept_to_root(report, kept)


def _session(program: Program, report: Report, site: Site, hooks: Hooks) -> Proposals:
    withheld = obstacle(report, hooks)
    if withheld is not None:
        yield withheld
        return
    edits: list[Edit] = []
    added: dict[str, str] = {}
    if not hooks.broadcasts:
        edits, added = hooked(program, hooks)
    name = _name(program, site)
    if name == _MONITORED:
        creator = argument(site.node, 0, "session_creator")
        if creator is None and not program.fact(Pinning).by_environment:
            v1 = program.fact(Sessions).spelling(site)
            creator_text = f"{v1}.train.ChiefSessionCreator(config={proto(program, site, v1)})"
            edits += program.fact(Layout).add_keywords(site, {**added, "session_creator": creator_text})
        else:
            edits += program.fact(Layout).add_keywords(site, added)
        if edits:
            yield _change(program, report, site, edits, hooks)
        return
    yield from _configure(program, report, site, name, edits, hooks, added)


def _configure(
    program: Program,
    report: Report,
    site: Site,
    name: str,
    edits: list[Edit],
    hooks: Hooks | None = None,
    added: dict[str, str] | None = None,
) -> Proposals:
    """Pin a session or its creator, and keep its directories to rank 0."""
    configuration = program.fact(Sessions).configuration(site, name)
    if configuration.hidden:
        yield hidden(report, site, configuration)
    signature = api.constructor(name) or api.function(name)
    for word in _DIRECTORIES:
        given = argument(site.node, signature.position(word) if signature else None, word)
        if given is not None:
            edits += only_argument(program, given, site)
    edits += configured(program, site, name, configuration, added or {})
    if edits:
        yield _change(program, report, site, edits, hooks)


def _name(program: Program, site: Site) -> str:
    names = program.names.full_names(site.node.func, site.scope, site.statement)
    return next(
        name for name in sorted(names) if name in CONFIGURED.keys() - set(PLAIN) or name == _MONITORED
    )


def _change(program: Program, report: Report, site: Site, edits: list[Edit], hooks: Hooks | None) -> Change:
    target = program.script.statement_span(site.statement)
    if hooks is None:
        title = "Pin the session to the GPU of its rank, and write checkpoints on rank 0 only"
        return report.change(title, target, tuple(edits))
    title = "Broadcast from rank 0 when the session begins"
    return report.change(
        titled(title, hooks),
        target,
        tuple(edits),
        doubts=doubts(program, hooks),
        decisions=tuple(placed(hooks)),
    )
