"""The claims about made-up runs; nothing is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from proof.made_up import RANKS, STEPS, arrays, judged, pair, record, run
from trainshift.proving.judging import main
from trainshift.proving.judging.claims import BY_HAND, claims
from trainshift.proving.judging.endings import reason
from trainshift.proving.judging.seen import Claim, Seen
from trainshift.proving.observed.record import Record, Run
from trainshift.proving.observed.stopping import Stopped, Stopping


def test_what_is_right_holds() -> None:
    found = judged(pair(), arrays([1.0] * STEPS))
    for name in ("ends", "weights", "averaged", "broadcast", "rate", "gpu"):
        assert found[name].verdict == "holds", found[name]


def test_a_rank_that_reads_what_another_writes_is_told_to_wait() -> None:
    """The rank finds the file after it has waited; so a rank that does not find it has not waited."""
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
    ("error", "says"),
    [
        ('Traceback\n  File "a.py"\nValueError: no data\n', "ValueError: no data"),
        (
            "UnknownError: Graph execution error:\n\nDetected at node a defined at (most recent call last):\n"
            '  File "a.py", line 2\n\nNo Adasum operation enabled\n\t [[{{node a}}]] [Op:b]\n',
            "UnknownError: Graph execution error: No Adasum operation enabled",
        ),
        (
            "InternalError: Graph execution error:\n2 root error(s) found.\n(0) INTERNAL: no room\n"
            "\t [[{{node a}}]]\n0 successful operations.\n0 derived errors ignored. [Op:b]\n",
            "InternalError: Graph execution error: (0) INTERNAL: no room",
        ),
        ("Abort:\n", "Abort:"),
        ("", ""),
    ],
)
def test_why_a_process_ended_is_told_in_a_line(error: str, says: str) -> None:
    assert reason(Run(1, "", "", "", "", (), Record(error=error), {})) == says


def test_a_broadcast_that_is_undone() -> None:
    undone = [run(record(rank, weights=[f"{rank} {step}" for step in range(STEPS)]), rank) for rank in (0, 1)]
    found = judged(undone, arrays([1.0] * STEPS))
    assert (found["weights"].verdict, found["broadcast"].verdict) == ("fails", "fails")
    # If an optimizer makes other steps, weights drift apart, and no broadcast is undone.
    samples = arrays([1.0] * STEPS)
    for growth, verdict in ((0.0, "fails"), (1.0, "holds")):
        for rank, each in enumerate(samples):
            each |= {
                f"1/weights/{step}": numpy.array([rank * (1 + growth * step), 0.0]) for step in range(STEPS)
            }
        assert judged(undone, samples)["broadcast"].verdict == verdict
    later = ["0", "1", "2", "3"]
    apart = [run(record(rank, weights=[*later, f"{rank}", f"{rank}"]), rank) for rank in (0, 1)]
    found = judged(apart, arrays([1.0] * STEPS))
    assert "They differ from step 5 on." in found["weights"].says
    assert (found["weights"].verdict, found["broadcast"].verdict) == ("fails", "holds")


def test_slots_of_what_was_equal_before_the_first_step() -> None:
    """They started equal on all ranks, and need no broadcast; slots that were read from a file may differ."""
    missing = {"unbroadcast_slots": ["m"]}
    alike = {"weights": [*map(str, range(STEPS))]}
    assert judged(pair(**missing, **alike))["broadcast"].verdict == "fails"
    assert judged(pair(**missing, **alike, given=True))["broadcast"].verdict == "holds"
    assert judged(pair(**missing, given=True))["broadcast"].verdict == "fails"
    apart = [
        run(record(rank, **missing, given=True, gradients=[f"{rank} {step}" for step in range(STEPS)]))
        for rank in range(RANKS)
    ]
    assert judged(apart)["broadcast"].verdict == "holds"
    assert judged(apart)["averaged"].verdict == "fails"
    unknown = {"unbroadcast_variables": ["bias"], "given": True}
    assert judged(pair(**missing, **alike, **unknown))["broadcast"].verdict == "fails"


def test_weights_that_are_made_equal_without_a_broadcast() -> None:
    missing = {"unbroadcast_variables": ["kernel", "bias"], "unbroadcast_slots": ["m"]}
    assert judged(pair(**missing, broadcasts=[]))["broadcast"].verdict == "holds"
    assert judged(pair(**missing))["broadcast"].verdict == "fails"
    given = {"unbroadcast_variables": ["kernel", "bias"], "broadcasts": [["m"]]}
    assert judged(pair(**given))["broadcast"].verdict == "holds"
    alike = {"initial": ["kernel", "zeros"], "weights": [*map(str, range(STEPS))]}
    assert judged(pair(**missing, **alike, broadcasts=[]))["broadcast"].verdict == "fails"


def test_one_variable_of_one_rank_is_enough_to_fail() -> None:
    zero, one = pair()
    for key in one.values:
        apart = replace(one, values={**one.values, key: numpy.array([2.0])})
        assert judged([zero, apart])["weights"].verdict == "fails", key
        close = replace(one, values={**one.values, key: numpy.array([1.0 + 1e-7])})
        assert judged([zero, close])["weights"].verdict == "fails", key
    for missing in ("unbroadcast_variables", "unbroadcast_slots"):
        ranks = [run(record(0)), run(record(1, **{missing: ["bias"]}))]
        assert judged(ranks)["broadcast"].verdict == "fails", missing


def test_what_shows_nothing_does_not_hold() -> None:
    alike = {"initial": ["kernel", "zeros"], "local_gradients": ["0"]}
    found = judged(pair(**alike), arrays([1.0] * STEPS))
    assert (found["weights"].verdict, found["averaged"].verdict) == ("not seen", "not seen")
    still = judged(pair(initial=["kernel", "bias"], final=["kernel", "bias"]))
    assert still["weights"].verdict == "not seen"
    broken = [replace(each, values={"0/variables/0": numpy.array([numpy.nan])}) for each in pair()]
    assert judged(broken)["weights"].verdict == "not seen"
    missing = {"unbroadcast_variables": ["kernel", "bias"], "unbroadcast_slots": ["m"], "broadcasts": []}
    assert judged(pair(**missing, steps_per_execution=STEPS))["broadcast"].verdict == "fails"


def test_a_rank_that_does_not_end_or_leaves_nothing_does_not_hold() -> None:
    zero, one = pair()
    stuck = Seen(run(record(0)), [zero, one], limit=STEPS, stuck="nothing has moved for 45 s")
    assert claims(stuck)[0].verdict == "fails"
    killed = [replace(each, exit_code=-9, record=None) for each in (zero, one)]
    assert "The ranks do not go on" in claims(replace(stuck, ranks=killed))[0].says
    found = judged([zero, replace(one, record=None)])
    assert found["ends"].verdict == "fails"
    assert "holds" not in {found[name].verdict for name in ("weights", "averaged", "broadcast", "output")}
    assert found["gpu"].says == "A rank ended before it could report what it had done."


def test_the_verdict_of_all() -> None:
    assert main.CORE == ("ends", "weights", "averaged", "broadcast", "rate")

    def of(**changed: str) -> str:
        names = ("ends", "weights", "averaged", "broadcast", "rate", "data", "output", "gpu", "worth")
        return main.verdict([Claim(name, "", changed.get(name, "holds"), "") for name in names])

    assert of() == of(worth="not seen", data="not seen", output="not seen", gpu="not seen") == "holds"
    for name in main.CORE:
        assert of(**{name: "not seen"}) == "not seen"
    for name in (*main.CORE, "data", "output", "gpu", "worth"):
        assert of(**{name: "fails"}) == "fails"


def test_one_step_shows_nothing() -> None:
    one = {"rates": [0.2], "gradients": ["0"], "weights": ["0"]}
    found = judged(pair(**one), arrays([1.0]))
    assert {found[name].verdict for name in ("weights", "averaged", "broadcast", "rate")} == {"not seen"}
    assert found["weights"].says == "1 step of an optimizer: at least two are needed."
    by_hand = judged([run(replace(record(rank), optimizers=[])) for rank in range(RANKS)])
    assert (by_hand["weights"].verdict, by_hand["weights"].says) == ("not seen", BY_HAND)


def test_a_file_that_all_ranks_write_is_written_by_all() -> None:
    ranks = [replace(each, files=("work/model.h5",)) for each in pair()]
    assert judged(ranks)["output"].verdict == "fails"
    assert judged([ranks[0], *pair()[1:]])["output"].verdict == "holds"


def test_variables_that_are_set_to_what_was_broadcast() -> None:
    missing = {"unbroadcast_variables": ["kernel", "bias"], "unbroadcast_slots": ["m"], "broadcasts": []}
    for collectives, verdict in ((["allreduce", "broadcast"], "holds"), (["allreduce"], "fails")):
        ranks = [
            run(
                record(
                    rank,
                    **missing,
                    collectives=collectives,
                    born=[f"kernel {rank}", "zeros"],
                    initial=["kernel", "zeros"],
                    weights=[*map(str, range(STEPS))],
                )
            )
            for rank in range(RANKS)
        ]
        assert judged(ranks)["broadcast"].verdict == verdict
        # The same holds if each rank then changes them differently, fixed in the end or not.
        for values in (0, 1):
            for rank, each in enumerate(ranks):
                assert each.record
                own = [f"{rank} {step}" for step in range(STEPS)]
                optimizer = replace(each.record.optimizers[0], gradients=own, weights=own)
                ranks[rank] = run(replace(each.record, optimizers=[optimizer]), values * rank)
            found = judged(ranks)
            assert (found["averaged"].verdict, found["broadcast"].verdict) == ("fails", verdict)


def test_ranks_that_join() -> None:
    short = {"rates": [0.2] * (STEPS - 1), "gradients": [*map(str, range(STEPS - 1))]}
    for collectives, ends, advice in (
        (["allreduce", "join"], "holds", ""),
        (["allreduce"], "fails", "Make every rank run the same steps"),
    ):
        ranks = [run(record(0, collectives=collectives)), run(record(1, collectives=collectives, **short))]
        found = judged(ranks)
        assert (found["ends"].verdict, found["ends"].do[:34]) == (ends, advice)
        assert (found["weights"].verdict, found["data"].verdict) == ("not seen", "not seen")


def test_ranks_that_take_a_step_at_rates_of_their_own() -> None:
    rates = [[0.2] * STEPS, [0.2] * (STEPS - 1) + [0.1]]
    ranks = [run(replace(record(rank, rates=own), adapts=True), rank) for rank, own in enumerate(rates)]
    before = replace(record(0, rates=[0.1] * STEPS * RANKS), adapts=True)
    found = {claim.id: claim for claim in claims(Seen(run(before), ranks, limit=STEPS))}
    assert (found["rate"].verdict, found["rate"].code) == ("fails", "HV09")
    assert "At step 6 the learning rate of optimizer 0 (SGD) is 0.2 on rank 0 and 0.1" in found["rate"].says
    assert (found["weights"].verdict, found["weights"].code) == ("fails", "HV09")


def test_a_warm_up_is_judged_once_it_is_over() -> None:
    for rates, verdict in (
        ([0.1, 0.15, 0.2, 0.2, 0.2, 0.2], "holds"),
        ([0.1, 0.12, 0.14, 0.16, 0.18, 0.2], "not seen"),
        ([0.05, 0.075, 0.1, 0.1, 0.1, 0.1], "fails"),
    ):
        assert judged(pair(rates=rates, warms_up=True))["rate"].verdict == verdict


def test_a_script_that_asks_for_arguments() -> None:
    usage = "usage: train.py --data DATA\ntrain.py: error: the following arguments are required: --data\n"
    failed = [replace(run(Record()), exit_code=2, stderr=usage) for _ in range(RANKS)]
    found = judged(failed)
    assert (found["ends"].verdict, found["output"].verdict) == ("fails", "not seen")
    assert "arguments are required: --data" in found["ends"].says
    assert found["ends"].do.startswith("Give the arguments of the script after --:")
    # Output of ranks other than 0 before one of them ended is still a fault.
    loud = [failed[0], replace(failed[1], stdout="step 1\n")]
    assert judged(loud)["output"].verdict == "fails"


def test_what_was_not_run_may_print() -> None:
    def output(**changes: Any) -> Claim:
        ranks = [run(record(rank, stopped=True, **changes)) for rank in range(RANKS)]
        return judged([replace(ranks[0], stdout="loss\n"), ranks[1]])["output"]

    found = output(finished=True)
    assert (found.verdict, found.says[:30]) == ("holds", "In 6 steps rank 0 printed 1 li")
    assert output().verdict == "not seen"


def test_ranks_that_were_stopped_before_the_end_of_epochs_that_differ() -> None:
    for own, stopped, verdict in (
        ([[16], [20]], True, "not seen"),
        ([[16], [20]], False, "holds"),  # Then they have ended, whatever happened before.
        ([[16], [16]], True, "holds"),
        ([[16, 4], [16]], True, "holds"),
    ):
        for counted in ("epochs", "turns"):
            ranks = [
                run(record(rank, **{counted: counts}, stopped=stopped)) for rank, counts in enumerate(own)
            ]
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
    broken = record(1, error_after="Traceback\nValueError: no checkpoint.\n")
    for zero, before, says in (
        (record(0, **through), record(0, **through), "ValueError: no checkpoint. One process does not. Run"),
        (
            record(0, **through),
            record(0, **left),
            "rank 1 stopped with an error: ValueError: no checkpoint. Run",
        ),
        (
            broken,
            broken,
            "rank 0 stopped with an error: ValueError: no checkpoint. One process does so, too. Run",
        ),
    ):
        found = ends(zero, broken, before)
        assert (found.verdict, says in found.says) == ("not seen", True), found


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


class Unhooked(Stopping):
    """Counts steps without hooks."""

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


def test_the_rank_that_ended_first_is_named() -> None:
    gone = record(0, error="UnknownError: Horovod has been shut down.\n")
    waited, killed = replace(run(gone), exit_code=1), replace(run(record(1)), exit_code=-9, record=None)
    seen = Seen(run(record(0)), [waited, killed], limit=STEPS)
    assert "Rank 0 ended with status 1" in claims(seen)[0].says
    assert claims(replace(seen, alone=(0, 1)))[0].says.startswith("Rank 1 was ended by signal 9")
    found = claims(replace(seen, ranks=[waited, run(record(1))], alone=(0, 1)))[0]
    assert (found.verdict, found.says) == ("fails", "Rank 1 ended, and rank 0 waited for it in vain.")


def test_a_download_of_every_rank_is_not_put_on_rank_0_alone() -> None:
    told = {"train.py:3": "Downloading data from https://example.org/mnist.npz"}
    loads = replace(run(record(1, printed_at=told)), stdout=f"{told['train.py:3']}\n")
    found = judged([run(record(0)), loads])["output"]
    assert (found.verdict, found.do[:28]) == ("fails", "Let rank 0 download first: r")


@pytest.mark.parametrize("text", ["Found 80 files belonging to 2 classes.", "Using 64 files for training."])
def test_what_keras_says_of_the_files_that_each_rank_reads_is_not_put_on_rank_0(text: str) -> None:
    loads = replace(run(record(1, printed_at={"train.py:3": text})), stdout=f"{text}\n")
    found = judged([run(record(0)), loads])["output"]
    assert (found.verdict, found.do[:38]) == ("fails", "Leave it: every rank must read these f")


def test_what_other_ranks_log_is_told_apart_from_what_they_print() -> None:
    logs = replace(run(record(1)), stderr="INFO:tensorflow:loss = 0.5\n")
    found = judged([run(record(0)), logs])["output"]
    assert (found.verdict, found.do[:20]) == ("fails", "Log on rank 0 only: ")
    found = judged([run(record(0)), replace(logs, stdout="loss\n")])["output"]
    assert (found.verdict, found.do) == ("fails", "Put it under: if hvd.rank() == 0:")


def test_what_is_timed_on_shared_cores_shows_no_gain() -> None:
    """Nor does a training that reduces nothing, or that is faster than its ranks can explain."""

    def worth(gpus: int, each: float, **changes: Any) -> Claim:
        before = run(record(0, ended=[float(step) for step in range(STEPS)]))
        ranks = pair(ended=[step * each for step in range(STEPS)], **changes)
        return claims(Seen(before, ranks, limit=STEPS, gpus=gpus))[-1]

    assert worth(2, 1.2).verdict == "holds"
    assert worth(2, 2.5).verdict == "fails"
    for gpus in (0, 1):
        for each in (0.4, 1.2, 2.5):
            assert worth(gpus, each).verdict == "not seen"
            assert "share the cores of one machine" in worth(gpus, each).says
    assert (worth(2, 0.5).verdict, worth(2, 0.4).verdict) == ("not seen", "not seen")
    assert "more than 2 ranks can gain" in worth(2, 0.4).says
    assert worth(2, 1.2, reduced=[]).verdict == "not seen"
    assert "trains by itself" in worth(2, 1.2, reduced=[]).says


def test_a_run_that_failed_does_not_show_that_a_script_prints_nothing() -> None:
    zero, one = pair()
    failed = replace(one, exit_code=1, record=Record(error="ValueError: no data\n"))
    assert judged([zero, one])["output"].says == "The script prints and writes nothing."
    output = judged([zero, failed])["output"]
    assert (output.verdict, output.says) == (
        "not seen",
        "A rank ended before anything was printed or written.",
    )
