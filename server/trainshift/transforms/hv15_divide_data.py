"""Gives each rank its own share of the data, so that an epoch of all ranks together is one of the original.

    train = Dataset.from_tensor_slices((x, y))
    train = train.shuffle(1000).batch(32)
    for x, y in train:

becomes

    train = Dataset.from_tensor_slices((x, y))
    train = (
        train.shard(hvd.size(), hvd.rank())
        .take(len(train) // hvd.size())
        .shuffle(1000)
        .batch(32)
    )
    for x, y in train:

## Why it matters

Without it each of four GPUs goes through all of the data: four times the work, and no time saved.

## How it is done

All ranks must take the same number of steps: a rank that ends first makes the others fail. So data are
divided only if their length is known. The division comes before `shuffle`, since each rank shuffles in a
different order, and before shuffled elements are batched. If it must come later, for example because one
function also makes the test data, the `shuffle` gets a seed, so that all ranks have one order.

| data | how each rank gets its share |
|---|---|
| a `tf.data.Dataset` | `shard` and `take` |
| arrays for `fit`, and loops that cut batches out of arrays by index | its own rows |
| a loop that draws batches at random, or calls `next` on a dataset | fewer iterations |
| a `while` that advances from slice to slice | its own slices |
| your own generator | one batch per rank is taken, and each rank keeps its own |
| `fit` on a `Sequence`, which `fit` shuffles | fewer steps |
| an Estimator | a share of the dataset of its `input_fn`, or of the arrays of `numpy_input_fn` |

Of nested loops, the innermost one that takes new data in each iteration is divided. A loop over gradients,
optimizers or layers takes none. Neither does one that cuts a batch into smaller ones or steps on it again.

All ranks must choose the same rows. Rank 0 sends a permutation, a choice of rows or a mask that is drawn.
`train_test_split`, `KFold`, `resample`, `SMOTE` and similar functions get a seed; `random.shuffle` of a list
gets a generator with a seed. A vocabulary that each rank builds from its own draws is reported.

Evaluations, previews and statistics see all data. If HV06 divides the steps, three more kinds of data are
divided, since all ranks would otherwise take the same first part: data that nothing shuffles, data that one
seed shuffles alike on all ranks, and generators that never end. If the length is unknown, as after `filter`,
every rank reads all data. The report says what is not divided.

`divide-data = false`, or `--no-divide-data`, leaves all data whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.source.edit import Edit, Remark
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, dotted, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.syntax.precedence import (
    ARGUMENT,
    ITERATED,
    Frame,
    Level,
    level,
    product,
    total,
)
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.rewriting.edits.draw_edits import made_alike, said_of
from trainshift.rewriting.prerequisites import Prerequisites
from trainshift.rewriting.style import Style
from trainshift.training.data.divided_data import DividedData
from trainshift.training.data.division_places import Form, Place
from trainshift.training.data.loop_division import LoopDivision
from trainshift.training.datasets.draw_remedies import Draw, Remedies, Remedy
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.steps_taken.step_division import ALL_TURNS, SAME_DATA, Pace, said_of_work
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.transforms.rule import Proposals

# Functions that compute a vocabulary, or bounds, from their data without keeping them in a variable.
_ADAPTING = (
    *(f"tensorflow.keras.layers.{name}" for name in ("Discretization", "IntegerLookup", "StringLookup")),
    "tensorflow.keras.layers.TextVectorization",
    "tensorflow.keras.utils.FeatureSpace",
)
_ADAPTED = (
    "each rank adapts `{}` to its own draw of `{}`, so one number may stand for different "
    "words; give `{}` a seed"
)
_LISTING = ("list", "tuple")
_OF_SETS = ("copy", "difference", "intersection", "symmetric_difference", "union")
_OTHER_NUMBERS = (
    "ranks may number the elements of `{}` differently, which come in the order of a `set`; sort it"
)
_BY_LIBRARY = (
    "{} gives `{}` its batches: give each rank a share of the data, and let all ranks take equally many steps"
)
_ALIKE = "`{}` gets a seed: zipped datasets that its function makes keep the same pairs in every epoch"


def propose(program: Program, report: Report) -> Proposals:
    """Propose one change for each statement that divides data, and a remark on each loop with all of them."""
    places: dict[Statement, dict[ast.expr, tuple[Place, LoopDivision]]] = {}
    yield from _undivided(program, report)
    yield from _given_by_libraries(program, report)
    for loop in program.fact(DividedData).loops:
        for place in loop.places:
            places.setdefault(place.statement, {}).setdefault(place.at.node, (place, loop))
    for statement in program.fact(Pace).undivided:
        target = program.script.header_span(statement)
        yield report.remark(target, ALL_TURNS.format(_header(program, statement)))
    for statement, same in program.fact(Pace).repeated:
        said = SAME_DATA.format(_header(program, statement), ast.unparse(same))
        yield report.remark(program.script.header_span(statement), said)
    for statement, drawn in program.fact(Pace).worked:
        said = said_of_work(_header(program, statement), drawn)
        yield report.remark(program.script.header_span(statement), said)
    yield from _numbered(program, report)
    yield from _vocabularies(
        program,
        report,
        [draw for found in places.values() for place, _ in found.values() for draw in place.draws],
    )
    for statement, found in places.items():
        edits = tuple(edit for place, loop in found.values() for edit in _divided(program, place, loop))
        if not edits:
            continue
        loops = dict.fromkeys(loop for _, loop in found.values())
        draws = dict.fromkeys(draw for place, _ in found.values() for draw in place.draws)
        data = " and ".join(dict.fromkeys(_shown(program, loop) for loop in loops))
        yield report.change(
            f"Give each rank its share of {data}",
            program.script.statement_span(statement),
            edits,
            tuple(edit for draw in draws for edit in made_alike(program, draw)),
            doubts=(
                *dict.fromkeys(doubt for loop in loops for doubt in loop.doubts),
                *(_ALIKE.format(draw.site.name) for draw in draws if _is_zipped_with_itself(program, draw)),
            ),
            decisions=(
                *dict.fromkeys(loop.said(_shown(program, loop)) for loop in loops),
                *filter(None, (said_of(program, each) for each in draws)),
            ),
        )


def _undivided(program: Program, report: Report) -> Iterator[Remark]:
    """Yield a remark on each loop whose data are not divided, with the reason."""
    loops = program.fact(DividedData).loops
    # The turns around a `fit` whose data are divided are folds or settings, and no data.
    around = {above for each in loops if each.site and each.places for above in each.statement.path()}
    for loop in loops:
        if loop.reason and (loop.site or loop.statement not in around):
            target = program.script.statement_span(loop.statement)
            yield report.remark(target, loop.said(_shown(program, loop)))


def _given_by_libraries(program: Program, report: Report) -> Iterator[Remark]:
    """Yield a doubt for each step that a library calls with batches which it takes itself."""
    trains = program.fact(WhatTrains).statement_trains
    looping = {
        each.scope.function()
        for each in program.script.statements
        if isinstance(each.node, LOOPS) and trains(each)
    }
    looping |= {each.site.scope.function() for each in program.fact(Fits).fits}
    for function, site in program.fact(Uniformity).handed_out.items():
        if function in looping or _is_wrapped(program, site):
            continue
        if not program.names.callers(function)[0]:
            said = _BY_LIBRARY.format(program.script.text(site.node.func, site), function.name)
            yield report.remark(program.script.statement_span(site.statement), said, is_doubt=True)


def _is_wrapped(program: Program, wrapping: Site) -> bool:
    """Return whether the script calls what a library makes of a function."""
    callees = (value for site in program.script.sites for value in program.names.callee(site))
    return any(getattr(value, "node", None) is wrapping.node for value in callees)


def _numbered(program: Program, report: Report) -> Iterator[Remark]:
    """Yield a doubt for each numbering of a set's elements, whose order differs between processes."""
    for site in program.script.sites_named("enumerate", "index"):
        function = site.node.func
        if site.name == "index" and isinstance(function, ast.Attribute):
            counted: list[ast.expr] = [function.value]
        else:
            counted = site.node.args[:1] if program.names.calls(site, "builtins.enumerate") else []
        if any(_lists_set(program, of_call(site).part(each)) for each in counted):
            shown = ast.unparse(counted[0])
            yield report.remark(
                program.script.statement_span(site.statement), _OTHER_NUMBERS.format(shown), is_doubt=True
            )


def _lists_set(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is a set, or contains the elements of one in the set's order."""

    def behind(each: Occurrence) -> Iterable[Occurrence]:
        match each.node:
            case ast.Call(ast.Attribute(base, name)) if name in _OF_SETS:
                return (each.part(base),)
            case ast.Call(function, [first, *_]) if last_name(function) in _LISTING:
                return (each.part(first),)
            case ast.BinOp(left, _, right):
                return each.part(left), each.part(right)
            case ast.ListComp(_, [first, *_]) | ast.GeneratorExp(_, [first, *_]):
                return (each.part(first.iter),)
            case ast.Name() | ast.Attribute() | ast.Call():
                return sources(program.names, each)
        return ()

    return any(_is_set(each.node) for each in sliced(at, behind))


def _is_set(node: ast.AST) -> bool:
    called = last_name(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Set | ast.SetComp) or called in ("set", "frozenset")


def _vocabularies(program: Program, report: Report, alike: list[Draw]) -> Iterator[Remark]:
    """Yield a remark on each vocabulary that may differ between ranks, since a draw differs."""
    for site in program.script.sites_named("adapt"):
        given, function = argument(site.node, 0, "data", "dataset"), site.node.func
        if given is None or not isinstance(function, ast.Attribute):
            continue
        if program.names.may_be(program.names.site_values(function.value, site), *_ADAPTING):
            at = Occurrence(given, site.scope, site.statement)
            for draw in dict.fromkeys(
                each for each in program.fact(Remedies).behind(at) if each not in alike
            ):
                said = _ADAPTED.format(ast.unparse(function.value), draw.site.name, draw.site.name)
                yield report.remark(program.script.statement_span(site.statement), said, is_doubt=True)


def _divided(program: Program, place: Place, loop: LoopDivision) -> tuple[Edit, ...]:
    """The edits that leave each rank its share."""
    hvd = program.at(place.statement).fact(Prerequisites).hvd
    if place.form is Form.STEPS and loop.site is not None:
        return _shortened(program, place, loop.site, hvd)
    if place.form is Form.STRIDE:
        return _strided(program, place, hvd)
    if place.form is Form.COUNT and program.fact(Pace).agrees(*place.at[:3]):
        return ()
    edits = program.fact(Layout).put(place.at.node, place.statement, _frame(program, place, hvd))
    # Other rules' additions at the same place, such as callbacks, come after it.
    return tuple(replace(edit, rank=-1) for edit in edits)


def _strided(program: Program, place: Place, hvd: str) -> tuple[Edit, ...]:
    """The edits by which a loop over slices visits only those of its rank."""
    layout, (start, step) = program.fact(Layout), place.counting
    assert start.statement is not None
    assert step.statement is not None
    size = program.script.text(step.node, step.statement)
    own = f"{hvd}.rank() * {size}"
    begins = (
        layout.replace(start.node, start.statement, own)
        if isinstance(start.node, ast.Constant) and start.node.value == 0
        else layout.put(start.node, start.statement, total(own))
    )
    last = total(f"({hvd}.size() - 1 - {hvd}.rank()) * {size}")
    return (
        *begins,
        *layout.put(place.at.node, place.statement, last),
        *layout.put(step.node, step.statement, product(f"* {hvd}.size()")),
    )


def _shortened(program: Program, place: Place, fit: Site, hvd: str) -> tuple[Edit, ...]:
    """The edits that set the number of steps in an epoch of each rank, next to the `fit`'s data."""
    layout, data = program.fact(Layout), program.script.text(place.at.node, place.statement)
    steps = f"len({data}) // {hvd}.size()"
    if fit.node.args[1:]:
        return layout.add_keyword(fit, "steps_per_epoch", steps)
    return layout.put(place.at.node, place.statement, Frame("", f", steps_per_epoch={steps}", ARGUMENT))


def _frame(program: Program, place: Place, hvd: str) -> Frame:
    """The code around an expression that selects a rank's share; all shares have the same length."""
    node, form, style = place.at.node, place.form, program.at(place.statement).fact(Style)
    if form is Form.COUNT:
        return product(f"// {hvd}.size()")
    if form is Form.ENDLESS:
        return Frame("", f".shard({hvd}.size(), {hvd}.rank())", Level.ATOM)
    if form in (Form.DATASET, Form.IN_GRAPH):
        name = dotted(node)
        data = name or "ds"
        length = f"{data}.cardinality()" if form is Form.IN_GRAPH else f"len({data})"
        share = f".shard({hvd}.size(), {hvd}.rank()).take({length} // {hvd}.size())"
        return Frame("", share if name else f".apply(lambda {data}: {data}{share})", Level.ATOM)
    if form is Form.GENERATOR:
        return Frame(f"(each[{hvd}.rank()] for each in zip(*[iter(", f")] * {hvd}.size()))", ARGUMENT)
    if form is Form.LIST:
        return Frame(f"[{_share(style, 'each', hvd)} for each in ", "]", ITERATED)
    if form is Form.DICTIONARY:
        return Frame(f"{{key: {_share(style, 'each', hvd)} for key, each in ", ".items()}", Level.ATOM)
    return Frame("", _share(style, "", hvd, _length(program, place)), Level.ATOM)


def _length(program: Program, place: Place) -> str:
    """The code for the number of elements."""
    node = place.at.node
    if isinstance(node, ast.Call) and len(node.args) == 1 and place.form is Form.SEQUENCE:
        end = program.script.text(node.args[0], place.statement)
        return end if level(node.args[0], end) >= Level.PRODUCT else f"({end})"
    return f"len({program.script.text(place.length or node, place.statement)})"


def _share(style: Style, data: str, hvd: str, length: str = "") -> str:
    """A rank's share of an array: every n-th element, equally many for each rank."""
    blank = " " if style.is_formatted else ""
    every = f"{hvd}.rank(){blank}::{blank}{hvd}.size()"
    return f"{data}[{every}][:{blank}{length or f'len({data})'} // {hvd}.size()]"


def _is_zipped_with_itself(program: Program, draw: Draw) -> bool:
    """Return whether a seeded shuffle creates several datasets, which may be zipped with each other."""
    function = draw.site.scope.function()
    if draw.remedy is not Remedy.SEED or function is None or len(program.names.callers(function)[0]) < 2:
        return False
    return any(
        program.names.calls(site, "tensorflow.data.Dataset.zip") for site in program.script.sites_named("zip")
    )


def _shown(program: Program, loop: LoopDivision) -> str:
    if isinstance(loop.statement.node, ast.While):
        return f"the iterations of {_header(program, loop.statement)}"
    text = one_line(program.script.text(loop.data, loop.statement))
    return text if len(text) <= 60 else "the data"


def _header(program: Program, statement: Statement) -> str:
    node = statement.node
    if isinstance(node, ast.While):
        said = f"while {one_line(program.script.text(node.test, statement))}"
    else:
        assert isinstance(node, ast.For | ast.AsyncFor)
        said = f"for … in {one_line(program.script.text(node.iter, statement))}"
    return f"`{said}`" if len(said) <= 60 else "this loop"
