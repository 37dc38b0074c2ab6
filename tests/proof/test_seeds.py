"""Seeds differ by rank, except where a library splits data by a seed of the script."""

from __future__ import annotations

import importlib
import random
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy
import pytest

from trainshift.proving.observed.surroundings import shift_seeds


class State:
    """A RandomState that reports its seed."""

    def __init__(self, seed: Any = None) -> None:
        self.seed = seed


@pytest.mark.parametrize(
    ("module", "seed"), [("__main__", 8), ("sklearn.utils", 7), ("pandas.core.common", 7), ("sklearnex", 8)]
)
def test_a_random_state_by_who_makes_it(module: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("seed", "Random"):
        monkeypatch.setattr(random, name, getattr(random, name))
    monkeypatch.setattr(importlib, "import_module", MagicMock())
    np: Any = SimpleNamespace(integer=numpy.integer, random=MagicMock(RandomState=State))
    shift_seeds(MagicMock(), np, 1)
    space: dict[str, Any] = {"__name__": module, "np": np}
    exec("found = np.random.RandomState(7).seed", space)
    assert space["found"] == seed
