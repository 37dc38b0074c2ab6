"""Runtime: whether the versions that a workspace demands are ones that converted scripts run on.

Horovod 0.28.1 works with TensorFlow 2.12 to 2.15, and by what is written for Keras 3 with 2.16 to 2.21.
A workspace asks for Keras 3 where every version that it allows has it; a range that includes older versions
says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum

from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_AUTO, Choices
from trainshift.engine.versions.demands import KERAS, PADDLE, PRODUCTS, TENSORFLOW, Demand

# The first release of each product that is too new.
_TOO_NEW = {TENSORFLOW: (2, 16), KERAS: (3, 0)}
# Paddle 3 brought some of the codes of static graphs; no version is too new.
_LIMITS = {**_TOO_NEW, PADDLE: (3, 0)}
# Packages of which an index has the newest versions only.
_ROLLING = ("tf-nightly",)
SUPPORTED = "Horovod 0.28.1 works with TensorFlow 2.12 to 2.15"
"""What Horovod works with."""
_WHY = f"{SUPPORTED} (from 2.16 on, Keras 3 breaks its tape and its callbacks)"
_ESTIMATOR = ", and tf.estimator itself ends with TensorFlow 2.15"
_UNAVERAGED = "Horovod would train fit there without averaging, and not say so"
_LEGACY = "tf-keras"  # Keras 2 on these versions.
_EXACT = re.compile(r"={2,3}\s*([^\s,*]+)")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a workspace declares about the versions that its scripts run on.

    `too_new` names the declaration of a version that is too new, and is empty where the declared
    versions fit.  `way_out` says how to convert all the same.  The declaration is at a `line`, from 1, of the
    file at `path`, and `asks` for a version.  `is_ignored` tells that somebody wants it ignored, `is_legacy`
    that `tf-keras` is asked for too: Keras 2 on these versions.  `is_paddle2` tells that every version of
    Paddle that is allowed is below 3, `is_open` that nothing is said of TensorFlow and Keras.
    """

    too_new: str = ""
    way_out: str = ""
    path: str = field(default="", compare=False)
    line: int = field(default=1, compare=False)
    asks: str = field(default="", compare=False)
    is_ignored: bool = False
    is_legacy: bool = field(default=False, compare=False)
    is_paddle2: bool = False
    is_open: bool = False

    @property
    def keras(self) -> str:
        """The Keras that scripts are to be written for; "" where that is open."""
        if self.is_ignored or self.is_open:
            return ""
        return KERAS_3 if self.too_new and not self.is_legacy else KERAS_2

    def settled(self, choices: Choices) -> Choices:
        """The choices for a script that runs on these versions: which Keras, where nobody chose it."""
        if choices.keras != KERAS_AUTO or not self.keras:
            return choices
        return replace(choices, keras=self.keras, why_keras=self.too_new)

    def refusal(self, *, estimator: bool = False, fit: bool = False, keras3: bool = False) -> str:
        """Why a script is not converted for these versions; empty if they fit.

        `estimator` and `fit` tell how it trains, `keras3` that it is written for Keras 3.  Where versions are
        ignored, `fit` is still refused: Horovod's optimizer runs on Keras 3, and averages nothing.
        """
        if not self.too_new or keras3:
            return ""
        if self.is_ignored:
            return f"{self.too_new}; {_UNAVERAGED}" if fit and not self.is_legacy else ""
        ending = f"; {self.way_out}" if self.way_out else ""
        return f"{self.too_new}; {_WHY}{_ESTIMATOR if estimator else ''}{ending}"


class _Reach(Enum):
    """Which versions a demand allows."""

    FITTING = "none that is too new"
    TOO_NEW = "only versions that are too new"
    BOTH = "some of each"


def judge(demands: Iterable[Demand]) -> Runtime | None:
    """What the demands of one directory come to; None where they leave the version open.

    What a lock file holds decides over what the other files allow.  Demands that exclude each other
    are of environments to choose from, and one that fits is enough.
    """
    decided = False
    listed = tuple(demands)
    is_paddle2 = _is_paddle2(listed)
    for product in _TOO_NEW:
        own = [demand for demand in listed if PRODUCTS[demand.package] == product]
        reaches = {demand: _reach(demand) for demand in [each for each in own if each.locked] or own}
        if _Reach.FITTING in reaches.values():
            decided = True
            continue
        for demand, reach in reaches.items():
            if reach is _Reach.TOO_NEW:
                asks = _shown(demand)
                too_new = f"{demand.path}:{demand.line} asks for {asks}"
                legacy = any(each.package == _LEGACY for each in listed) and product == TENSORFLOW
                return Runtime(
                    too_new,
                    path=demand.path,
                    line=demand.line,
                    asks=asks,
                    is_legacy=legacy,
                    is_paddle2=is_paddle2,
                )
    return Runtime(is_paddle2=is_paddle2, is_open=not decided) if decided or is_paddle2 else None


def _is_paddle2(listed: tuple[Demand, ...]) -> bool:
    """Whether the demands allow no version of Paddle from 3 on; what a lock file holds decides."""
    own = [demand for demand in listed if PRODUCTS[demand.package] == PADDLE]
    deciding = [demand for demand in own if demand.locked] or own
    return bool(deciding) and all(_reach(demand) is _Reach.FITTING for demand in deciding)


def _reach(demand: Demand) -> _Reach:
    limit = _LIMITS[PRODUCTS[demand.package]]
    written = tuple(_written(demand))
    newer = _allows(demand, (each for each, release in written if release >= limit)) or _allows(
        demand, _versions(limit, (limit[0] + 2, 0))
    )
    older = _allows(demand, (each for each, release in written if release < limit)) or _allows(
        demand, _versions((0, 0), limit)
    )
    if newer and (not older or demand.package in _ROLLING):
        return _Reach.TOO_NEW
    return _Reach.FITTING if older and not newer else _Reach.BOTH


def _allows(demand: Demand, versions: Iterable[str]) -> bool:
    return any(
        allowed.contains(version, prereleases=True) for version in versions for allowed in demand.allowed
    )


def _versions(first: tuple[int, int], limit: tuple[int, int]) -> Iterator[str]:
    """Releases from `first` to below `limit`, close enough together for any range to contain one."""
    for major in range(first[0], limit[0] + 1):
        for minor in range(first[1] if major == first[0] else 0, limit[1] if major == limit[0] else 40):
            for patch in (0, 1, 9):
                yield f"{major}.{minor}.{patch}"


def _written(demand: Demand) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The versions that a constraint names, which may be of a kind that no range holds (2.16.0rc0)."""
    from packaging.version import InvalidVersion, Version

    for allowed in demand.allowed:
        for specifier in allowed:
            version = specifier.version.removesuffix(".*")
            with suppress(InvalidVersion):
                yield version, (*Version(version).release, 0)


def _shown(demand: Demand) -> str:
    exact = _EXACT.fullmatch(demand.asks)
    return f"{demand.package} {exact[1] if exact else demand.asks}".rstrip()
