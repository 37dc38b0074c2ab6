"""Scripts that were distributed by hand, and rightly: a conversion leaves them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainshift.engine.conversion import Status, convert

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "distributed").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_right_script_is_left_alone(script: Path) -> None:
    text = script.read_bytes().decode()
    conversion = convert(text)
    assert (conversion.text, conversion.status) == (text, Status.ALREADY_DISTRIBUTED)
    assert conversion.withheld == conversion.hazards == ()


def test_hazards_are_listed_and_not_called_distributed() -> None:
    right = (SCRIPTS[0].parent / "root_only_model.py").read_text()
    text = right.replace("if hvd.rank() == 0:", "if hvd.rank == 0:")
    conversion = convert(text)
    assert (conversion.text, conversion.status) == (text, Status.ALREADY_DISTRIBUTED)
    assert [(each.rule, each.line) for each in conversion.hazards] == [("HZ25", 27)]
    assert "distributed" not in conversion.reason


def test_what_a_comment_ignores_is_not_listed() -> None:
    right = (SCRIPTS[0].parent / "root_only_model.py").read_text()
    text = right.replace("if hvd.rank() == 0:", "if hvd.rank == 0:  # trainshift: ignore[HZ25]")
    conversion = convert(text)
    assert (conversion.text, conversion.hazards) == (text, ())


def test_what_a_conversion_mends_is_no_hazard_of_its_result() -> None:
    text = (SCRIPTS[0].parent / "lr_keyword.py").read_text()
    bare = text.replace(
        "hvd.DistributedOptimizer(tf.keras.optimizers.legacy.Adam(lr=0.01 * hvd.size()))", '"adam"'
    )
    conversion = convert(bare)
    assert (conversion.status, conversion.hazards) == (Status.CONVERTED, ())
    kept = conversion.text.replace("    callbacks=[hvd", "    callbacks=[] if hvd.rank() else [hvd")
    assert {each.rule for each in convert(kept).hazards} == {"HZ12"}
