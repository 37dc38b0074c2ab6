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


def test_the_classes_of_numpy_and_python_stay_what_others_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy asks whether NumPy's own generator is a RandomState when it is imported."""
    names = ("RandomState", "PCG64", "MT19937", "Philox", "SFC64", "SeedSequence", "default_rng", "seed")
    plain, generator = numpy.random.RandomState, numpy.random.mtrand._rand
    monkeypatch.setattr(importlib, "import_module", MagicMock())
    for owner, own in ((random, ("seed", "Random")), (numpy.random, names)):
        for name in own:
            monkeypatch.setattr(owner, name, getattr(owner, name))
    draws = [
        plain(8).rand(),
        numpy.random.Generator(numpy.random.PCG64(8)).random(),
        random.Random(8).random(),
    ]
    before = numpy.random.PCG64
    shift_seeds(MagicMock(), numpy, 1)
    assert isinstance(generator, numpy.random.RandomState)
    assert isinstance(before(1), numpy.random.PCG64)
    assert issubclass(plain, numpy.random.RandomState)
    made = numpy.random.RandomState(7), numpy.random.PCG64(7), random.Random(7)
    assert [made[0].rand(), numpy.random.Generator(made[1]).random(), made[2].random()] == draws
    assert isinstance(made[0], plain)

    class Own(numpy.random.RandomState):
        """A class of the script."""

    assert isinstance(Own(1), Own)
    assert not isinstance(generator, Own)
    assert Own(7).rand() == draws[0]
