"""What the claims say of runs that are made up here; nothing is run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy
import pytest

from trainshift.proving.judging.claims import claims, share_of_epoch
from trainshift.proving.judging.seen import Claim, Seen
from trainshift.proving.judging.shares import judge_shares
from trainshift.proving.judging.timeline import Reduction, repeated
from trainshift.proving.observed.data import Leaves
from trainshift.proving.observed.record import Column, OptimizerRecord, Record, Run
from trainshift.proving.observed.stopping import Stopped, Stopping

STEPS = 6
RANKS = 2


def record(rank: int, **changes: Any) -> Record:
    """What a rank wrote down that began with weights of its own, and got the others' in the first step."""
    steps = [str(step) for step in range(STEPS)]
    optimizer = OptimizerRecord(
        "SGD",
        rates=[0.2] * STEPS,
        gradients=steps,
        weights=[f"{rank}", *steps[1:]],
        variables=["kernel", "bias"],
        slots=["m"],
        initial=[f"kernel {rank}", "zeros"],
        final=["kernel", "bias"],
        number=1,
    )
    own = {name: changes.pop(name) for name in [*changes] if hasattr(optimizer, name)}
    return replace(
        Record(
            optimizers=[replace(optimizer, **own)],
            local_gradients=[f"{rank} {step}" for step in steps],
            broadcasts=[["kernel", "bias", "m"]],
            wraps=1,
            reduced=["average"],
            gpus=[str(rank)],
        ),
        **changes,
    )


def run(written: Record, values: float = 1.0) -> Run:
    """A process that ended well."""
    arrays = {f"0/{kind}/0": numpy.array([values]) for kind in ("variables", "slots")}
    arrays["0/variables/1"] = numpy.array([values])
    return Run(0, "", "", "", "", (), written, arrays)


def arrays(factors: Sequence[float], noise: float = 0.0) -> list[dict[str, Any]]:
    """The samples of two ranks: what reached an optimizer is so many times the mean of their gradients."""
    own = [numpy.array([1.0, 2.0, 3.0]), numpy.array([3.0, 1.0, 0.0])]
    mean, off = (own[0] + own[1]) / 2, numpy.array([1.0, -1.0, 0.0]) * noise
    return [
        {
            name: value
            for step, factor in enumerate(factors)
            for name, value in (
                (f"1/local/{step}", gradient.astype("f4")),
                (f"1/gradients/{step}", (factor * mean + off).astype("f4")),
            )
        }
        for gradient in own
    ]


def judged(ranks: Sequence[Run], samples: Sequence[Any] = ()) -> dict[str, Claim]:
    """The claims on a training by so many ranks, by their ids."""
    before = record(0, rates=[0.1] * STEPS * RANKS, gpus=["0"], losses=[1.1, 0.9, 0.8])
    return {claim.id: claim for claim in claims(Seen(run(before), ranks, arrays=samples, limit=STEPS))}


def pair(**changes: Any) -> list[Run]:
    """Two ranks that wrote down the same, but for what always differs."""
    return [run(record(rank, **changes)) for rank in range(RANKS)]


def test_what_is_right_holds() -> None:
    found = judged(pair(), arrays([1.0] * STEPS))
    for name in ("ends", "weights", "averaged", "broadcast", "rate", "gpu"):
        assert found[name].verdict == "holds", found[name]


def test_a_rank_that_reads_what_another_writes_is_told_to_wait() -> None:
    """It finds the file once it has waited; so one that does not find it has not."""
    zero, one = pair()
    zero = replace(zero, files=("work/out/m.h5", "work/ckpt/model-2.index", "work/h5"))
    for error, name in (
        ("FileNotFoundError: [Errno 2] No such file or directory: 'out/m.h5'", "out/m.h5"),
        ("NotFoundError: Unsuccessful TensorSliceReader: failed to find ckpt/model-2.", "ckpt/model-2"),
        ("OSError: Unable to open file (name = '/s/rank1/here/out/m.h5', errno = 2)", "out/m.h5"),
        ("FileNotFoundError: no data/out/m.h5.gz", ""),
    ):
        failed = replace(one, exit_code=1, record=Record(error=f"Traceback\n{error}\n"))
        ends = judged([zero, failed])["ends"]
        assert (ends.verdict, ends.code) == ("fails", "HV08" if name else ""), error
        assert not name or f"has written {name}: " in ends.do


@pytest.mark.parametrize(
    ("factors", "noise", "reduced", "verdict"),
    [
        ([1.0] * STEPS, 0, ["average"], "holds"),
        ([1.0] * STEPS, 0, ["sum"], "holds"),
        ([2.0] * STEPS, 0, ["sum"], "fails"),
        ([1.0, 1.0, 2.0, 2.0, 2.0, 2.0], 0, ["average", "sum"], "fails"),
        ([0.5] * STEPS, 0, ["average"], "fails"),
        # What is clipped has the direction of the mean; what is changed otherwise has not.
        ([1.0, 0.7, 0.4, 0.6, 0.3, 0.9], 0, ["average"], "holds"),
        ([1.0, 0.7, 0.4, 0.6, 0.3, 0.9], 0, ["sum"], "not seen"),
        ([1.0] * STEPS, 2, ["average"], "holds"),
        ([1.0] * STEPS, 2, ["average", "scaled average"], "not seen"),
        ([1.0] * STEPS, 2, ["sum"], "not seen"),
        ([1.0] * STEPS, 2, [], "not seen"),
    ],
)
def test_what_reached_the_optimizer(
    factors: list[float], noise: float, reduced: list[str], verdict: str
) -> None:
    assert judged(pair(reduced=reduced), arrays(factors, noise))["averaged"].verdict == verdict


def test_a_sum_of_losses_that_are_divided_may_be_an_average() -> None:
    for losses, verdict in (([1.0, 0.9], "fails"), ([0.5, 0.44], "not seen"), ([], "fails")):
        ranks = pair(reduced=["sum"], losses=losses)
        assert judged(ranks, arrays([2.0] * STEPS))["averaged"].verdict == verdict


def test_gradients_that_the_script_averages_once_more() -> None:
    ended = [step + 0.5 for step in range(STEPS)]

    def times(*by_script: str, late: float = 0.25) -> int:
        wrapped = [(f"DistributedGradientTape_Allreduce/{shape}", 0.0) for shape in ("[3, 2]", "[2]", "[]")]
        names = [*wrapped, *((f"HorovodAllreduce_x/{shape}", late) for shape in by_script)]
        reductions = [
            Reduction(name, name.rpartition("/")[2], step + start, step + start + 0.1)
            for step in range(STEPS)
            for name, start in names
        ]
        return repeated(reductions, ended)

    assert times() == times("[]") == times("[2]", "[]") == 1
    assert times("[3, 2]", "[2]", "[]", late=0.75) == 1  # What the step has made of the weights.
    assert times("[3, 2]", "[2]", "[]") == times("[3, 2]", "[2]") == 2


def test_what_is_never_compared_does_not_hold_by_a_wrap() -> None:
    assert judged(pair(reduced=[]))["averaged"].verdict == "not seen"
    assert judged(pair(reduced=["sum"]))["averaged"].verdict == "not seen"


def test_a_broadcast_that_is_undone() -> None:
    undone = [run(record(rank, weights=[f"{rank} {step}" for step in range(STEPS)]), rank) for rank in (0, 1)]
    found = judged(undone, arrays([1.0] * STEPS))
    assert (found["weights"].verdict, found["broadcast"].verdict) == ("fails", "fails")
    later = ["0", "1", "2", "3"]
    apart = [run(record(rank, weights=[*later, f"{rank}", f"{rank}"]), rank) for rank in (0, 1)]
    found = judged(apart, arrays([1.0] * STEPS))
    assert (found["weights"].verdict, found["broadcast"].verdict) == ("fails", "holds")


def test_weights_that_are_made_equal_without_a_broadcast() -> None:
    missing = {"unbroadcast_variables": ["kernel", "bias"], "unbroadcast_slots": ["m"]}
    assert judged(pair(**missing, broadcasts=[]))["broadcast"].verdict == "holds"
    assert judged(pair(**missing))["broadcast"].verdict == "fails"
    given = {"unbroadcast_variables": ["kernel", "bias"], "broadcasts": [["m"]]}
    assert judged(pair(**given))["broadcast"].verdict == "holds"
    alike = {"initial": ["kernel", "zeros"], "weights": [*map(str, range(STEPS))]}
    assert judged(pair(**missing, **alike, broadcasts=[]))["broadcast"].verdict == "fails"


def test_ranks_that_were_stopped_before_the_end_of_epochs_that_differ() -> None:
    for own, stopped, verdict in (
        ([[16], [20]], True, "not seen"),
        ([[16], [20]], False, "holds"),  # Then they have ended, whatever they went through.
        ([[16], [16]], True, "holds"),
        ([[16, 4], [16]], True, "holds"),
    ):
        ranks = [run(record(rank, epochs=epochs, stopped=stopped)) for rank, epochs in enumerate(own)]
        assert judged(ranks)["ends"].verdict == verdict


def test_what_follows_the_last_step_is_not_said_to_hold_unless_it_was_run() -> None:
    def ends(first: Record, second: Record, before: Record) -> Claim:
        ranks = [run(replace(each, stopped=True)) for each in (first, second)]
        return claims(Seen(run(before), ranks, limit=STEPS))[0]

    through, left = ({"finished": finished} for finished in (True, False))
    found = ends(record(0, **through), record(1, **through), record(0, **through))
    assert (found.verdict, found.title) == ("holds", "It starts and ends on every rank")
    found = ends(record(0, **through), record(1, **left), record(0, **through))
    assert (found.verdict, found.title) == ("holds", "It starts and trains on every rank")
    assert "was not run" in found.says
    broken = record(1, error_after="Traceback\nValueError: no checkpoint\n")
    found = ends(record(0, **through), broken, record(0, **through))
    assert (found.verdict, "ValueError: no checkpoint" in found.says) == ("not seen", True)
    assert ends(record(0, **through), broken, record(0, **left)).verdict == "holds"


def test_ranks_that_hide_all_gpus() -> None:
    assert judged(pair(gpus=[""]))["gpu"].verdict == "not seen"
    assert judged(pair(gpus=["0"]))["gpu"].verdict == "fails"


def test_gpus_are_counted_on_each_host() -> None:
    before, ranks = run(record(0, gpus=["0"])), pair(gpus=["0"])
    seen = Seen(before, ranks, limit=STEPS, hosts=("a", "b"))
    assert {claim.id: claim for claim in claims(seen)}["gpu"].verdict == "holds"
    (claim,) = [each for each in claims(replace(seen, ranks=[ranks[0], run(record(1))])) if each.id == "gpu"]
    assert claim.says == "Of the ranks on b, counted there: Rank 0 was given the GPUs 1."


def test_a_rank_without_an_optimizer() -> None:
    found = judged([run(record(0)), run(record(1, optimizers=[]))])
    assert found["ends"].verdict == "fails"
    assert "holds" not in {found[name].verdict for name in ("weights", "averaged", "broadcast", "rate")}


def batches(*ranges: range) -> list[list[Column]]:
    """The data of one process, whose batches hold the elements of some ranges."""
    return [[("f4(2,)", [str(number) for number in each])] for each in ranges]


def shares(
    original: list[list[Column]],
    *ranks: list[list[Column]],
    steps: Sequence[int] = (STEPS,),
    ended: bool = False,
) -> str:
    """What the claim on data says of what processes saw that were stopped, or the ranks of which `ended`."""
    runs = [
        run(
            replace(
                record(0, data=data, stopped=number == 0 or not ended),
                optimizers=[OptimizerRecord("SGD", rates=[0.1] * count) for count in steps],
            )
        )
        for number, data in enumerate((original, *ranks))
    ]
    found = judge_shares(runs[0], runs[1:], None)
    return f"{'fails' if found.fails else 'not seen' if found.unseen else 'holds'}: {found}"


def cut(first: int, last: int) -> list[range]:
    """Batches of four elements."""
    return [range(at, at + 4) for at in range(first, last, 4)]


def test_data_that_only_one_rank_makes_anew_are_not_compared() -> None:
    whole = batches(*cut(0, 40), *cut(0, 40))
    assert shares(whole, batches(*cut(0, 40)[::2] * 2), batches(*cut(0, 40)[1::2] * 2)).startswith("holds")
    strange = shares(whole, batches(*cut(0, 40)), batches(*cut(100, 140)))
    assert strange.startswith("not seen")
    assert "Rank 1 trains on data that the original has not" in strange


def test_trainings_one_after_the_other_are_cut_at_other_places() -> None:
    # The second epoch of the original is cut, as the first of a second optimizer on the ranks is not.
    whole = batches(*cut(0, 40), *cut(0, 40), *cut(0, 12))
    ranks = [batches(*cut(0, 40)[rank::2] * 2, *cut(0, 40)[rank::2]) for rank in range(2)]
    assert shares(whole, *ranks).startswith("fails")
    assert shares(whole, *ranks, steps=(10, 5)).startswith("holds")


def test_data_that_are_also_gone_through_whole_do_not_make_an_epoch_undivided() -> None:
    for whole, own, divided in (
        ([40, 8], [20, 8], True),
        ([40, 8], [40, 8], False),
        ([40, 40, 8], [40, 20, 8], None),
        ([41], [21, 41], False),
        ([], [20], None),
    ):
        ranks = [record(rank, epochs=own) for rank in range(2)]
        assert share_of_epoch(record(0, epochs=whole), ranks) is divided


def test_what_was_also_gone_through_whole_is_not_told_of_a_training_that_was_stopped() -> None:
    seen = [batches(*cut(0, 40), *cut(0, 40), *cut(0, 12))]
    seen += [batches(*cut(0, 40)[rank::2] * 2, *cut(0, 40)[rank::2]) for rank in range(2)]
    for whole, own, verdict in (
        ([], [], "fails"),
        ([10, 10], [10, 10], "fails"),
        ([10, 10], [10, 5], "not seen"),
    ):
        epochs = (whole, own, own)
        runs = [
            run(record(0, data=data, epochs=each, stopped=True))
            for data, each in zip(seen, epochs, strict=True)
        ]
        found = claims(Seen(runs[0], runs[1:], data=runs[1:], limit=STEPS))
        assert [each.verdict for each in found if each.id == "data"] == [verdict]


def test_ranks_that_end_before_all_was_seen() -> None:
    whole = batches(*cut(0, 160))
    halves = [batches(*cut(0, 160)[rank::2]) for rank in range(2)]
    quarters = [batches(*cut(0, 160)[rank::4]) for rank in range(2)]
    assert shares(whole, *halves, ended=True).startswith("holds")
    assert shares(whole, *quarters, ended=True).startswith("fails")
    assert shares(whole, *quarters).startswith("holds")  # These were cut, too.
    most = [batches(*cut(0, 120)[rank::2]) for rank in range(2)]
    assert shares(whole, *most, ended=True).startswith("not seen")


def test_batches_that_are_almost_an_epoch_are_drawn_by_chance() -> None:
    def drawn(seed: int, count: int) -> list[list[Column]]:
        rows = [str(number) for number in range(320)] * 12
        random.Random(seed).shuffle(rows)
        return [[("f4(2,)", rows[at : at + 250])] for at in range(0, 250 * count, 250)]

    assert shares(drawn(0, 12), drawn(1, 6), drawn(2, 6), ended=True).startswith("holds")
    assert shares(drawn(0, 12), drawn(1, 6), drawn(1, 6), ended=True).startswith("fails")


class Unhooked(Stopping):
    """Counts steps, and hooks nothing."""

    hook_functions = hook_monitored_sessions = hook_iterators = lambda _: None


def test_a_training_is_not_left_before_the_first_step_s_broadcast() -> None:
    stopping = Unhooked(None, 2, lambda: None)
    for optimizer in (1, 1, 1, 1, 2):
        stopping.step(optimizer)
    assert stopping.is_due
    stopping.boundary()
    stopping.step(2)
    with pytest.raises(Stopped):
        stopping.boundary()


def test_a_function_that_is_traced_under_an_eager_tape_holds_no_data() -> None:
    leaves = Leaves()
    # As TensorFlow calls those that it tells of operations.
    leaves("Placeholder", (), (), (object(),), op_name="x", graph=object())
    assert leaves.found == []
    assert leaves.known == {}


def test_the_rank_that_ended_first_is_named() -> None:
    gone = record(0, error="UnknownError: Horovod has been shut down.\n")
    waited, killed = replace(run(gone), exit_code=1), replace(run(record(1)), exit_code=-9, record=None)
    seen = Seen(run(record(0)), [waited, killed], limit=STEPS)
    assert "Rank 0 ended with status 1" in claims(seen)[0].says
    assert claims(replace(seen, alone=(0, 1)))[0].says.startswith("Rank 1 was ended by signal 9")
    found = claims(replace(seen, ranks=[waited, run(record(1))], alone=(0, 1)))[0]
    assert (found.verdict, found.says) == ("fails", "Rank 1 ended, and rank 0 waited for it in vain.")


def test_labels_of_divided_data_are_not_drawn() -> None:
    def epochs(*numbers: int) -> list[list[Column]]:
        draw = random.Random(7)
        rows = [number for _ in range(2) for number in draw.sample(numbers, len(numbers))]
        parts = [rows[at : at + 16] for at in range(0, len(rows), 16)]
        return [
            [("f4(9,)", [str(row) for row in part]), ("f4(46,)", [labels[row] for row in part])]
            for part in parts
        ]

    labels = [str(random.Random(row).randrange(46)) for row in range(320)]
    whole = epochs(*range(320))
    ranks = [epochs(*range(rank, 320, 2)) for rank in range(2)]
    assert "elements of its own" in shares(whole, *ranks)
    # The rows tell what the labels do not: that each rank has but a half of its share.
    halves = [epochs(*range(rank, 320, 4)) for rank in range(2)]
    assert shares(whole, *halves, ended=True).startswith("fails")


def test_what_other_ranks_log_is_told_apart_from_what_they_print() -> None:
    logs = replace(run(record(1)), stderr="INFO:tensorflow:loss = 0.5\n")
    found = judged([run(record(0)), logs])["output"]
    assert (found.verdict, found.do[:22]) == ("fails", "Let rank 0 alone log: ")
    found = judged([run(record(0)), replace(logs, stdout="loss\n")])["output"]
    assert (found.verdict, found.do) == ("fails", "Put it under: if hvd.rank() == 0:")
