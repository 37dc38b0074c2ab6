"""The rule by which a free name is found."""

from __future__ import annotations

from typing import Any

import pytest

from trainshift.python.syntax.fresh_names import fresh_name


@pytest.mark.parametrize(
    ("base", "taken", "options", "found"),
    [
        ("x", (), {}, "x"),
        ("x", ("x",), {}, "x_1"),
        ("x", ("x", "x_1"), {}, "x_2"),
        ("x", ("x",), {"first": 2}, "x_2"),
        ("t", (), {"numbered": True, "separator": ""}, "t1"),
        ("t", ("t1", "t2"), {"numbered": True, "separator": ""}, "t3"),
        ("lambda", (), {}, "lambda_1"),
        ("a", ("as",), {"separator": "", "numbered": True}, "a1"),
    ],
)
def test_a_name_is_the_first_that_is_free(
    base: str, taken: tuple[str, ...], options: dict[str, Any], found: str
) -> None:
    assert fresh_name(base, taken, **options) == found
    assert fresh_name(base, lambda name: name in taken, **options) == found
