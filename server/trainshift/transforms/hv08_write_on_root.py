"""Writes checkpoints, weights, figures, summaries and other files on rank 0 only.

    checkpoint.save(prefix)                 if hvd.rank() == 0:
                                                checkpoint.save(prefix)

    path = manager.save()                   path = manager.save() if hvd.rank() == 0 else None
    print(path)

    w = tf.summary.create_file_writer(d)    w = tf.summary.create_file_writer(d) if hvd.rank() == 0 else \
tf.summary.create_noop_writer()

    log = open("log.txt", "w")              log = open("log.txt" if hvd.rank() == 0 else os.devnull, "w")

## Why it matters

On two GPUs both processes would write the same files at the same time, and may leave a broken one.

## How it is done

A loop or a `with` block in which each statement is for rank 0, or computes what only these read, goes under
the test of the rank as a whole. So does an `if` with an `else`.

Weights are loaded on rank 0 only, too: the broadcast after the first step sends them to the others. If
training may have begun before, there is a new broadcast. The same holds for a checkpoint that contains only
trained objects. Any other checkpoint is restored on every rank, after rank 0 has saved it:

    path = checkpoint.save("ckpt/a")        path = checkpoint.save("ckpt/a") if hvd.rank() == 0 else None
    other.restore(path)                     other.restore(hvd.broadcast_object(path, root_rank=0))

If every rank reads a file that the script has written before, the others wait for rank 0:

    model.save("m.h5")                      if hvd.rank() == 0:
    model = load_model("m.h5")                  model.save("m.h5")
                                            hvd.broadcast(0, root_rank=0)
                                            model = load_model("m.h5")

A `FileWriter` of TensorFlow 1 is `None` on other ranks, and its uses are guarded too:

    writer = tf.summary.FileWriter(d)       writer = tf.summary.FileWriter(d) if hvd.rank() == 0 else None
    writer.add_summary(summary, step)       if hvd.rank() == 0:
                                                writer.add_summary(summary, step)

Only rank 0 logs to an experiment tracker. Other ranks stay quiet in the way that its library documents, so no
other line changes:

    run = wandb.init()                      run = wandb.init(mode=None if hvd.rank() == 0 else "disabled")
    experiment = comet_ml.Experiment()      experiment = comet_ml.Experiment(disabled=hvd.rank() != 0)
    with mlflow.start_run():                with mlflow.start_run() if hvd.rank() == 0 else \
contextlib.nullcontext():

An object that writes, such as `h5py.File("a.h5", "w")`, writes to memory on other ranks. Only rank 0 moves,
archives or sends a file, or calls `subprocess.run` with a path that the script writes.

Some calls sound as if they had side effects (`send_report`, `upload`). In a library that Trainshift does not
know, they stay on every rank, and the report names them once for each library.
"""

from __future__ import annotations

import ast
from functools import partial

from msgspec.structs import replace

from trainshift.core.layout import Layout
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.libraries import api
from trainshift.libraries.entries import Entry, Role, opener
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument
from trainshift.python.syntax.precedence import handed_to
from trainshift.rewriting.edits.rank_guards import (
    conditional,
    guard,
    guard_changes,
    on_root,
    or_none,
    stands_alone,
)
from trainshift.rewriting.edits.session_broadcasts import broadcast, initialize
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.tf1.initializations import Initializations
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.keras_version.target import Target
from trainshift.training.optimizers.wraps import Wraps
from trainshift.training.rank_regions.guard_forms import Form, GuardForms, RootCall, RootKind
from trainshift.training.rank_regions.library_calls import LibraryCalls
from trainshift.training.rank_regions.read_back import Read, ReadBack
from trainshift.training.rank_regions.restored import Restored
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.transforms.rule import Proposals

_LOADING = "tensorflow.keras.models.load_model"
_UNREADABLE = (
    "the saved model names Horovod's optimizer: elsewhere, load_model needs compile=False or custom_objects"
)
_ALONE = (
    "all ranks must wait here until rank 0 has written, but one rank may come here alone, through {call}; "
    "call it where every rank does"
)
_SHARING = "Restore on every rank what rank 0 has saved"
_SHARED = "every rank restores what rank 0 has saved: all must see the same directory"


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that writes."""
    forms = {
        Form.GUARD: guard,
        Form.CONDITIONAL: or_none,
        Form.PATH_APART: _path_apart,
        Form.PATH: _devnull,
        Form.WRITER: _noop_writer,
        Form.RELOAD: _reload,
        Form.SHARE: _share,
        Form.ELSEWHERE: _elsewhere,
        Form.QUIET: _quiet,
        Form.BEFORE: _before,
        Form.CONTEXT: _context,
    }
    native, shared = _native_saves(program), _shared(program)
    saves = partial(_is_save_among_saves, program)
    for change in guard_changes(report, (RootKind.WRITE,), forms, "Write on rank 0 only", saves):
        if isinstance(change, Change) and change.target in native:
            change = replace(change, decisions=(_UNREADABLE,))
        if isinstance(change, Change) and change.target in shared:
            change = replace(change, title=_SHARING, decisions=(_SHARED,))
        yield change
    for read in program.fact(ReadBack).taken_away:
        yield _wait_for_readers(program, report, read)
    reads: dict[Statement, list[Read]] = {}
    for read in program.fact(ReadBack).all:
        reads.setdefault(read.anchor, []).append(read)
    for anchor, waiting in reads.items():
        yield _wait(program, report, anchor, waiting)
    for statement in program.fact(ReadBack).filled:
        alone = program.fact(ReadBack).reached_alone(statement)
        if alone is None:
            yield _wait_after(program, report, statement)
        else:
            call = one_line(program.script.text(alone.node, alone))
            yield report.withheld(statement, _ALONE.format(call=call), essential=True)
    for site, known in program.fact(Libraries).sites(Role.NOTED):
        if not program.fact(Horovod).site_on_root(site):
            yield report.remark(program.script.statement_span(site.statement), known.text("says"))
    calls = program.fact(RootOnly).calls
    kept = {call.site for call in calls}
    guarded = {call.statement for call in calls if call.form is Form.GUARD and not call.reason}
    for package, found in program.fact(LibraryCalls).left.items():
        sites = [site for site in found if site not in kept and guarded.isdisjoint(site.statement.path())]
        if not sites:
            continue
        named = dict.fromkeys(program.script.text(each.node.func, each) for each in sites)
        text = f"{', '.join(named)} of {package}: runs on every rank; keep it to rank 0 if it must run once"
        yield report.remark(program.script.statement_span(sites[0].statement), text)


def _path_apart(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Call on rank 0 only, and let every rank go on with the path that the call returns."""
    apart = program.fact(GuardForms).path_apart(call.site, call.outer)
    assert apart is not None
    path, whole = apart
    layout, statement = program.fact(Layout), call.site.statement
    text, node = program.script.text(path, call.site), statement.node
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and whole is call.outer else target
    if first is not None and program.script.text(first, call.site) == text and whole is call.outer:
        start = program.script.statement_span(statement).start
        return (*guard(program, call), Edit(start, program.script.span(whole, statement).start, ""))
    header = f"if {program.at(statement).fact(Prerequisites).root}:"
    called = layout.unit_at(statement) + program.script.text(call.outer, call.site)
    edits = (layout.before(statement, [header, called]), *layout.replace(whole, statement, text))
    if target is None or first is None or first is target:
        return edits
    return (*edits, *layout.replace(target, statement, program.script.text(first, call.site)))


def _is_save_among_saves(program: Program, call: RootCall) -> bool:
    """Return whether a call saves something, and no write in the program depends on another."""
    writes = [each for each in program.fact(RootOnly).calls if each.kind is RootKind.WRITE]
    alone = all(each.form is Form.GUARD and each.site.name.startswith("save") for each in writes)
    return alone and stands_alone(program, call)


def _shared(program: Program) -> set[Span]:
    """The statements by which every rank restores rank 0's file."""
    calls = program.fact(RootOnly).calls
    return {
        program.script.statement_span(each.site.statement)
        for each in calls
        if each.form is Form.SHARE and not each.reason
    }


def _share(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Make rank 0 send the path, for which the others wait, so that the saved file is complete."""
    path = program.fact(Restored).path(call.site)
    assert path is not None
    sent = f"{program.at(call.site).fact(Prerequisites).hvd}.broadcast_object"
    return program.fact(Layout).put(path, call.site, handed_to(sent, ", root_rank=0"))


def _native_saves(program: Program) -> set[Span]:
    """The statements that save a model with a wrapped optimizer in Keras' own format."""
    return {
        program.script.statement_span(site.statement)
        for site in program.script.sites_named("save")
        if program.fact(Wraps).classes and site.node.args
        if program.names.may_be(program.names.site_values(_receiver(site), site), *api.MODEL)
        if program.fact(ReadBack).is_native(site.node.args[0], site)
    }


def _receiver(site: Site) -> ast.expr:
    return site.node.func.value if isinstance(site.node.func, ast.Attribute) else site.node.func


def _wait_for_readers(program: Program, report: Report, read: Read) -> Change:
    """Broadcast before a statement that removes a file which others read, so that rank 0 waits for them."""
    layout = program.fact(Layout)
    return report.change(
        f"Wait until all ranks have read {program.script.text(read.path, read.site)}",
        program.script.statement_span(read.anchor),
        (layout.before(read.anchor, _barrier(program, read.anchor, "readers"), -1),),
        layout.isolate(read.anchor),
    )


def _wait(program: Program, report: Report, anchor: Statement, reads: list[Read]) -> Change:
    """Broadcast before a statement that reads rank 0's files, so that the others wait for them."""
    texts = dict.fromkeys(program.script.text(each.path, each.site) for each in reads)
    layout = program.fact(Layout)
    edits = [layout.before(anchor, _barrier(program, anchor))]
    for read in reads:
        edits += _knowing_wrapped(program, read)
    decisions = (
        f"every rank reads {text}, which rank 0 writes: all must see the same directory" for text in texts
    )
    return report.change(
        f"Wait until rank 0 has written {' and '.join(texts)}",
        program.script.statement_span(anchor),
        tuple(edits),
        layout.isolate(anchor),
        decisions=tuple(decisions),
    )


def _wait_after(program: Program, report: Report, statement: Statement) -> Change:
    """Broadcast after a statement by which rank 0 writes files, so that the others wait for them."""
    layout, lines = program.fact(Layout), _barrier(program, statement)
    returns = isinstance(statement.node, ast.Return)
    edit = layout.before(statement, lines, 1) if returns else layout.after(statement, lines)
    return report.change(
        "Wait until rank 0 has written",
        program.script.statement_span(statement),
        (edit,),
        layout.isolate(statement),
        decisions=("rank 0 writes these files for all ranks: all must see the same directory",),
    )


def _barrier(program: Program, at: Statement, awaited: str = "rank 0") -> list[str]:
    """The broadcast at which ranks wait, beside a statement."""
    hvd = program.at(at).fact(Prerequisites).hvd
    return [f"{hvd}.broadcast(0, root_rank=0)  # wait for {awaited}"]


def _knowing_wrapped(program: Program, read: Read) -> tuple[Edit, ...]:
    """The edits by which `load_model` knows the class of a saved model's wrapped optimizer."""
    given = {word.arg for word in read.site.node.keywords}
    if not program.names.calls(read.site, _LOADING) or given & {"custom_objects", "compile", None}:
        return ()
    wrapped, tf = program.fact(Wraps).classes, program.at(read.site).fact(Prerequisites).tf
    if (
        not wrapped
        or len(read.site.node.args) != 1
        or not program.fact(ReadBack).is_native(read.path, read.site)
    ):
        return ()
    classes = ", ".join(
        f'"{name.rpartition(".")[2]}": {tf}{name.removeprefix("tensorflow")}' for name in wrapped
    )
    return program.fact(Layout).add_keyword(read.site, "custom_objects", f"{{{classes}}}")


def _reload(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Load on rank 0 and broadcast, if the broadcast after the first step may have happened already."""
    assert isinstance(call.site.node.func, ast.Attribute)
    if call.site.name == "restore" and program.fact(Restored).of_saver(call.site):
        return (*guard(program, call), *_restored(program, call))
    names = program.at(call.site).fact(Prerequisites)
    variables = program.fact(Restored).variables(call.site, names.tf)
    if call.site.name == "load_weights":
        model = program.script.text(call.site.node.func.value, call.site)
        variables = [program.fact(Target).of_model(model, names.tf)]
    lines = [f"{names.hvd}.broadcast_variables({each}, root_rank=0)" for each in variables]
    return (*guard(program, call), program.fact(Layout).after(call.site.statement, lines))


def _restored(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Initialize the variables that other ranks lack, and broadcast the restored ones."""
    statement = call.site.statement
    restore = program.fact(Initializations).restore(call.site)
    unit = program.fact(Layout).unit_at(statement)
    lines = []
    if program.fact(Initializations).is_first(call.site):
        lines = ["else:", *(unit + line for line in initialize(program, restore))]
    if restore.anchor is statement:
        return (program.fact(Layout).after(statement, [*lines, *broadcast(program, restore)]),)
    edits = (program.fact(Layout).after(restore.anchor, broadcast(program, restore)),)
    return (program.fact(Layout).after(statement, lines), *edits) if lines else edits


def _noop_writer(program: Program, call: RootCall) -> tuple[Edit, ...]:
    function = call.site.node.func
    if isinstance(function, ast.Attribute):
        module = program.script.text(function.value, call.site)
    else:
        module = f"{program.at(call.site).fact(Prerequisites).tf}.summary"
    return conditional(program, call, f"{module}.create_noop_writer()")


def _devnull(program: Program, call: RootCall) -> tuple[Edit, ...]:
    names = program.names.full_names(call.site.node.func, call.site.scope, call.site.statement)
    opened = next(filter(None, map(opener, sorted(names))))
    path = argument(call.site.node, *opened.path)
    assert path is not None
    return on_root(
        program, path, call.site, f"{program.at(call.site).fact(Prerequisites).standard('os')}.devnull"
    )


def _known(program: Program, call: RootCall, role: Role) -> Entry:
    known = program.fact(Libraries).called(call.site, role)
    assert known is not None
    return known


def _elsewhere(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Make other ranks write to an object that keeps nothing, such as ``io.BytesIO()``."""
    known = _known(program, call, Role.WRITER_OBJECT)
    path = argument(call.site.node, *known.path)
    assert path is not None
    elsewhere = program.at(call.site).fact(Prerequisites).standing_in(known.text("elsewhere"))
    return on_root(program, path, call.site, elsewhere)


def _quiet(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Silence other ranks with an argument, such as ``mode="disabled"``."""
    known = _known(program, call, Role.TRACKER)
    names, name, root = (
        program.at(call.site).fact(Prerequisites),
        known.text("argument"),
        known.text("root") or "None",
    )
    given, elsewhere = argument(call.site.node, None, name), names.standing_in(known.text("elsewhere"))
    if given is not None:
        return on_root(program, given, call.site, elsewhere)
    tests = {("False", "True"): f"{names.hvd}.rank() != 0", ("True", "False"): names.root}
    value = tests.get((root, elsewhere), f"{root} if {names.root} else {elsewhere}")
    return program.fact(Layout).add_keyword(call.site, name, value)


def _before(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Silence other ranks with a call on the line above, of the class whose method is called."""
    known, names = _known(program, call, Role.TRACKER), program.at(call.site).fact(Prerequisites)
    receiver = program.script.text(call.site.node.func, call.site).rpartition(".")[0]
    line = f"{receiver}.{known.text('before')}({names.hvd}.rank() != 0)"
    return (program.fact(Layout).before(call.site.statement, [line]),)


def _context(program: Program, call: RootCall) -> tuple[Edit, ...]:
    """Make other ranks enter a null context."""
    names = program.at(call.site).fact(Prerequisites)
    return conditional(program, call, f"{names.standard('contextlib')}.nullcontext()")
