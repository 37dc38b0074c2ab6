"""The messages about the data of ranks, in made-up runs; nothing is run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from proof.made_up import STEPS, record, run
from trainshift.proving.judging.claims import claims
from trainshift.proving.judging.data import judge_data, looks, walk_of
from trainshift.proving.judging.rates import share_of_epoch
from trainshift.proving.judging.seen import Seen
from trainshift.proving.judging.shares import LEFT_OUT, UNDIVIDED, judge_shares, part_of_epoch
from trainshift.proving.observed.data import Leaves
from trainshift.proving.observed.record import Column, OptimizerRecord, Record


def batches(*ranges: range) -> list[list[Column]]:
    """The data of one process, whose batches contain the elements of some ranges."""
    return [[("f4(2,)", [str(number) for number in each])] for each in ranges]


def shares(
    original: list[list[Column]],
    *ranks: list[list[Column]],
    steps: Sequence[int] = (STEPS,),
    ended: bool = False,
) -> str:
    """The message of the claim on data about processes that were stopped, or of which some `ended`."""
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
    assert "Rank 1 trains on data that one process did not reach" in strange


def test_trainings_one_after_the_other_are_cut_at_other_places() -> None:
    # The second epoch of the original is cut, but not the first epoch of a second optimizer on the ranks.
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


def test_an_epoch_of_all_ranks_is_the_originals_whatever_the_size_of_its_batches() -> None:
    for own, rows, part in (([20], 4, 1.0), ([40], 2, 1.0), ([40], 4, 2.0), ([10], 4, 0.5), ([10], 8, 1.0)):
        ranks = [record(rank, epochs=own, rows=[rows] * STEPS) for rank in range(2)]
        assert part_of_epoch(record(0, epochs=[40], rows=[4] * STEPS), ranks) == part
        looped = [replace(each, epochs=[], turns=own) for each in ranks]
        assert part_of_epoch(record(0, turns=[40], rows=[4] * STEPS), looped) == part
    unknown = part_of_epoch(record(0, turns=[-1], rows=[4]), [record(0, turns=[-1], rows=[4])] * 2)
    assert math.isnan(unknown)
    unknown = part_of_epoch(record(0, epochs=[40], rows=[4]), [record(0, epochs=[20, 8], rows=[4])] * 2)
    assert math.isnan(unknown)

    def found(step: int, *, size: int, epochs: list[int]) -> str:
        """The message if each rank has every `size`th element, in batches of a size."""
        written = []
        for first, by, many, length in (
            (0, 1, 4, 40),
            (0, step, size, epochs[0]),
            (1, step, size, epochs[0]),
        ):
            at = [range(160)[first::by][start : start + many] for start in range(0, 10 * many, many)]
            data = [[("f4(2,)", [str(number) for number in each])] for each in at]
            written.append(record(0, data=data, stopped=True, epochs=[length], rows=[many] * 10))
        divided = share_of_epoch(written[0], written[1:])
        shares = judge_shares(run(written[0]), [*map(run, written[1:])], divided)
        return " ".join(shares.fails) or shares.unseen or "holds"

    assert found(2, size=4, epochs=[20]) == "holds"
    assert found(2, size=2, epochs=[40]) == "holds"
    assert found(4, size=4, epochs=[10]) == LEFT_OUT.format(0.5)
    # The ranks reach the end of their second epoch, and the original the end of its fourth.
    whole = batches(*cut(0, 160) * 4)
    ours = [batches(*[range(160)[rank::2][at : at + 2] for at in range(0, 80, 2)] * 2) for rank in range(2)]
    assert shares(whole, *ours).startswith("holds")
    assert shares(whole, *(each[:60] for each in ours)).startswith("holds")
    assert shares(whole, *(each[:20] * 4 for each in ours)).startswith("fails")
    # A loop that sees its first elements again has also reached its end.
    whole = batches(*cut(0, 160))
    halves = [batches(*cut(0, 160)[rank::2] * 2) for rank in range(2)]
    assert shares(whole, *halves).startswith("holds")
    parts = [batches(*cut(0, 160)[rank::4] * 4) for rank in range(2)]
    assert LEFT_OUT.format(0.5) in shares(whole, *parts)
    # Of the 31 elements of each rank, 16 make a batch.
    small = [batches(*[range(rank * 31, rank * 31 + 16)] * 6) for rank in range(2)]
    assert not shares(batches(range(16), range(16, 32), range(32, 48)), *small).startswith("fails")
    # One of 3 batches is left over, and possibly one on each rank.
    three = [record(rank, data=batches(*cut(0, 12)[rank::2]), epochs=[1], rows=[4]) for rank in range(2)]
    few = record(0, data=batches(*cut(0, 12)), stopped=True, epochs=[3], rows=[4])
    assert not judge_shares(run(few), [*map(run, three)], True).fails


def test_an_epoch_of_smaller_batches_is_divided_where_it_is_run_to_its_end() -> None:
    whole = batches(*cut(0, 160), *cut(0, 160))
    for width, count, verdict in ((2, 40, ""), (4, 20, ""), (1, 40, "epoch-not-divided")):
        ranks = [
            batches(*[range(160)[rank::2][at : at + width] for at in range(0, count * width, width)] * 2)
            for rank in range(2)
        ]
        runs = [run(record(0, data=data)) for data in (whole, *ranks)]
        assert " ".join(judge_data(runs[0], runs[1:])).partition(":")[0] == verdict, width


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


def test_parts_of_data_that_are_shuffled_and_were_not_all_seen() -> None:
    def drawn(*numbers: int, seed: int = 1) -> list[list[Column]]:
        order = random.Random(seed).sample(numbers, 200)
        return [[("f4(2,)", [str(number) for number in order[at : at + 10]])] for at in range(0, 200, 10)]

    whole = drawn(*range(600), seed=0)
    assert shares(whole, *(drawn(*range(rank, 600, 2)) for rank in range(2))).startswith("holds: ")
    assert shares(whole, *(drawn(*range(600)) for _ in range(2))).startswith("fails")
    # With this many elements, all ranks may draw from all, and seldom draw the same.
    many = shares(drawn(*range(1700), seed=5), *(drawn(*range(rank, 1700, 2)) for rank in range(2)))
    assert "too short for an epoch" in many


def test_an_epoch_of_which_parts_are_seen_twice_or_never() -> None:
    whole, zero = batches(*cut(0, 80) * 2), batches(*cut(0, 40) * 2)
    assert shares(whole, zero, batches(*cut(40, 80) * 2)).startswith("holds")
    assert "seen on no rank" in shares(whole, zero, batches(*cut(40, 60) * 4))
    sharded = [run(replace(record(0, data=data, stopped=True), shards=1)) for data in (whole, zero)]
    second = run(replace(record(1, data=batches(*cut(36, 76) * 2), stopped=True), shards=1))
    assert "seen on several ranks" in str(judge_shares(sharded[0], [sharded[1], second], None).fails)
    alike = judge_shares(run(record(0, data=whole)), [sharded[1], second], False)
    assert alike.fails == (UNDIVIDED,)


def test_batches_that_are_almost_an_epoch_are_drawn_by_chance() -> None:
    def drawn(seed: int, count: int) -> list[list[Column]]:
        rows = [str(number) for number in range(320)] * 12
        random.Random(seed).shuffle(rows)
        return [[("f4(2,)", rows[at : at + 250])] for at in range(0, 250 * count, 250)]

    assert shares(drawn(0, 12), drawn(1, 6), drawn(2, 6), ended=True).startswith("holds")
    assert shares(drawn(0, 12), drawn(1, 6), drawn(1, 6), ended=True).startswith("fails")


def test_a_function_that_is_traced_under_an_eager_tape_holds_no_data() -> None:
    leaves = Leaves()
    # In TensorFlow's names of its operations.
    leaves("Placeholder", (), (), (object(),), op_name="x", graph=object())
    assert leaves.found == []
    assert leaves.known == {}


def test_ranks_that_see_the_same_at_most_steps() -> None:
    own = [cut(0, 96)[:12], cut(96, 192)[:12]]
    ranks = [batches(*cut(400, 416), *each[:2]) for each in own]
    whole = batches(*cut(0, 192), *cut(400, 416))
    assert "saw the same batch in 4 of 6 steps" in shares(whole, *ranks)


def test_parts_that_each_rank_was_given_are_no_draws_from_all() -> None:
    """Each rank shuffles independently and takes its part: some elements are on both, some on none."""
    draws = random.Random(3)

    def drawn(*numbers: int) -> list[list[Column]]:
        order = draws.sample(numbers, len(numbers))
        return [[("f4(2,)", [*map(str, order[at : at + 4])])] for at in range(0, 160, 4)]

    whole, whole_again = drawn(*range(400)), drawn(*[*range(200)] * 2)
    mine = [drawn(*draws.sample(range(400), 200)) for _ in range(2)]
    apart = [drawn(*range(200)), drawn(*range(200, 400))]
    Case = tuple[list[list[Column]], list[list[list[Column]]], tuple[list[int], ...], str]
    cases: tuple[Case, ...] = (
        (whole, mine, ([400], [200], [200]), "fails"),
        (whole, mine, ([400, 50], [200, 50], [200, 50]), "fails"),
        (whole, mine, ([50, 400], [200, 50], [200, 50]), "not seen"),
        (whole, mine, ([400], [400], [400]), "holds"),
        (whole, mine, ([400], [200], [400]), "not seen"),
        (whole, mine, ([400], [100], [100]), "not seen"),
        (whole, mine, ([], [], []), "not seen"),
        (whole, apart, ([400], [200], [200]), "holds"),
        # Some rows that occur twice are on both ranks, however they are divided.
        (whole_again, [drawn(*range(200)), drawn(*range(200))], ([400], [200], [200]), "not seen"),
    )
    for original, ranks, lengths, verdict in cases:
        runs = [
            run(replace(record(0, data=data, stopped=True), lengths=length))
            for data, length in zip((original, *ranks), lengths, strict=True)
        ]
        found = judge_shares(runs[0], runs[1:], True)
        assert ("fails" if found.fails else "not seen" if found.unseen else "holds") == verdict, (
            lengths,
            found,
        )


def test_parts_that_each_rank_goes_through_again_and_again_are_no_draws_from_all() -> None:
    draws = random.Random(3)

    def drawn(numbers: Sequence[int], count: int) -> list[list[Column]]:
        """Batches of four, of all numbers in one order and then in another."""
        order = [each for _ in range(4) for each in draws.sample(numbers, len(numbers))][: 4 * count]
        return [[("f4(2,)", [*map(str, order[at : at + 4])])] for at in range(0, len(order), 4)]

    whole, mine = range(160), [draws.sample(range(160), 80) for _ in range(2)]
    for numbers, verdict in ((mine, "fails"), ([whole, whole], "holds")):
        ranks = [run(record(rank, data=drawn(each, 60))) for rank, each in enumerate(numbers)]
        found = judge_shares(run(record(0, data=drawn(whole, 120))), ranks, None)
        assert ("fails" if found.fails else "not seen" if found.unseen else "holds") == verdict, found


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
    assert "its own elements" in shares(whole, *ranks)
    # The rows show that each rank has only half of its share, which the labels do not.
    halves = [epochs(*range(rank, 320, 4)) for rank in range(2)]
    assert shares(whole, *halves, ended=True).startswith("fails")


def test_weights_that_start_alike_are_no_data() -> None:
    """The first steps of a rank may share no row with the original, where all data are shuffled."""

    def process(name: str, steps: int, size: int) -> Record:
        rows = [[f"{name}{step}.{row}" for row in range(8)] for step in range(steps)]
        biases = [["0" if step == 0 else f"{name}{step}"] for step in range(steps)]
        data: list[list[Column]] = [
            [("float32(4,)", own), ("float32()", bias)] for own, bias in zip(rows, biases, strict=True)
        ]
        return record(0, data=data, epochs=[size], stopped=True)

    before, records = process("a", 12, 64), [process("b", 6, 32), process("c", 6, 32)]
    (kind,) = looks(before)
    assert walk_of(kind, before, records) is None
