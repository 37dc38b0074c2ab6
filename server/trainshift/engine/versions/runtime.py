"""Runtime: check that converted scripts run on the versions that a workspace requires.

Horovod 0.28.1 works with TensorFlow 2.12 to 2.15, and code written for Keras 3 works with 2.16 to 2.21. A
workspace requires Keras 3 if every version that it allows has it; a range that includes older versions
decides nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_AUTO, KERAS_LEGACY, KERAS_NAMES, Choices
from trainshift.engine.versions.demands import (
    BACKEND,
    KERAS,
    LEGACY,
    PADDLE,
    PRODUCTS,
    ROLLING,
    TENSORFLOW,
    Demand,
    demand_for,
)

# The first release of each product that is too new.
_TOO_NEW = {TENSORFLOW: (2, 16), KERAS: (3, 0)}
# Versions from here on are untested.
_UNTRIED = (2, 22)
# Paddle 3 introduced some of the codes of static graphs; no version is too new.
_LIMITS = {**_TOO_NEW, PADDLE: (3, 0)}
SUPPORTED = "Horovod 0.28.1 works with TensorFlow 2.12 to 2.15"
"""The versions that Horovod works with."""
_WHY = f"{SUPPORTED} (from 2.16 on, Keras 3 breaks its tape and its callbacks)"
_ESTIMATOR = ", and tf.estimator was removed after TensorFlow 2.15"
_UNAVERAGED = "there, Horovod would silently train fit without averaging"
_EXACT = re.compile(r"={2,3}\s*([^\s,*]+)")


Shown: TypeAlias = Callable[[str], str]
"""Returns the name of the file at a path, for messages."""


class Problem(NamedTuple):
    """A contradiction among requirements, with the file and line of the requirement concerned."""

    told: str
    path: str
    line: int
    asks: str


@dataclass(frozen=True, slots=True)
class Runtime:
    """The versions of TensorFlow and Keras that a workspace declares.

    `too_new` names the declaration of a version that is too new, and is empty if the declared versions fit.
    `way_out` describes how to convert anyway.  The declaration is at a `line`, from 1, of the file at `path`,
    and `asks` for a version.  With `is_ignored`, the user ignores it; with `is_legacy`, `tf-keras` is
    required too: Keras 2 on these versions.  With `is_paddle2`, every allowed version of Paddle is below 3;
    with `is_open`, neither TensorFlow nor Keras is required.  `decides` is the deciding declaration if none
    is too new, `problem` a contradiction in the declarations. `backend` is the configured backend of Keras 3,
    with the setting's origin. With `is_installed`, nothing is declared, and these are the versions of the
    selected Python.
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
    decides: str = field(default="", compare=False)
    problem: Problem | None = field(default=None, compare=False)
    backend: tuple[str, str] = ("", "")
    is_installed: bool = False

    @property
    def why(self) -> str:
        """The declaration that decides; "" if there is none."""
        return self.decides or self.too_new

    @property
    def keras(self) -> str:
        """The Keras to write for; "" if the declarations leave it open."""
        if self.is_ignored or self.is_open:
            return ""
        if self.is_legacy:
            return KERAS_LEGACY
        return KERAS_3 if self.too_new else KERAS_2

    @property
    def if_told(self) -> Runtime | None:
        """The same if it has any information; None if it leaves the version open without any."""
        return self if self.problem or self.is_paddle2 or self.backend[1] else None

    def refusal(self, *, estimator: bool = False, fit: bool = False, newer: bool = False) -> str:
        """The reason why a script is not converted for these versions; empty if they fit.

        `estimator` and `fit` are its ways of training; with `newer`, it is written for these versions.  If
        they are ignored, `fit` is still refused: Horovod's optimizer runs on Keras 3, and averages nothing.
        """
        if not self.too_new or newer or self.is_installed:
            return ""
        if self.is_ignored:
            return f"{self.too_new}; {_UNAVERAGED}" if fit and not self.is_legacy else ""
        ending = f"; {self.way_out}" if self.way_out else ""
        return f"{self.too_new}; {_WHY}{_ESTIMATOR if estimator else ''}{ending}"


def settled(choices: Choices, runtime: Runtime | None) -> Choices:
    """The choices for a script whose project requires these versions.

    The user's choice of a Keras or a TensorFlow takes precedence.  Otherwise `runtime` decides; without it,
    the version is open. A contradiction between the two is a doubt.
    """
    is_ignored = runtime is not None and runtime.is_ignored
    if choices.why_keras or choices.is_open or (is_ignored and not choices.tensorflow):
        return choices
    runtime = None if is_ignored else runtime
    choices = replace(choices, backend=runtime.backend) if runtime is not None else choices
    problem = runtime.problem.told if runtime is not None and runtime.problem is not None else ""
    asked, why = (runtime.keras, runtime.why) if runtime is not None else ("", "")
    against = f", but {why}" if why else ""
    if choices.keras != KERAS_AUTO:
        is_contrary = asked != "" and (choices.keras == KERAS_2) != (asked == KERAS_2)
        told = f"{KERAS_NAMES[choices.keras]} was chosen"
        return replace(choices, doubt_keras=f"{told}{against}" if is_contrary else problem)
    chosen = judge([demand_for(TENSORFLOW, choices.tensorflow)]) if choices.tensorflow else None
    if chosen is not None:
        keras = KERAS_LEGACY if chosen.too_new and asked == KERAS_LEGACY else chosen.keras
        told = f"tensorflow {choices.tensorflow} was chosen"
        if chosen.problem is not None:
            problem = f"{told}, {chosen.problem.told.partition(', ')[2]}"
        doubt = f"{told}{against}" if asked and keras != asked else problem
        return replace(choices, keras=keras, why_keras=told, doubt_keras=doubt)
    if choices.backend[1] and (not asked or (runtime is not None and runtime.is_installed)):
        return replace(choices, keras=KERAS_3, why_keras=choices.backend[1], doubt_keras=problem)
    if runtime is not None and runtime.is_installed:
        return replace(choices, installed=(asked, why), doubt_keras=problem, is_open=True)
    return replace(choices, keras=asked or KERAS_AUTO, why_keras=why, doubt_keras=problem, is_open=not asked)


def contradiction(choices: Choices) -> str:
    """The reason why the chosen Keras and TensorFlow do not fit together; empty if they do."""
    if choices.keras == KERAS_AUTO or choices.why_keras or not choices.tensorflow:
        return ""
    asked = judge([demand_for(TENSORFLOW, choices.tensorflow)])
    if asked is None or not asked.keras or (choices.keras == KERAS_2) == (asked.keras == KERAS_2):
        return ""
    has = KERAS_NAMES[asked.keras]
    return (
        f"{KERAS_NAMES[choices.keras]} and tensorflow {choices.tensorflow} were both chosen, "
        f"but that TensorFlow has {has}; "
        "choose one of the two"
    )


class _Reach(Enum):
    """The versions that a requirement allows."""

    FITTING = "none that is too new"
    TOO_NEW = "only versions that are too new"
    BOTH = "some of each"
    NONE = "none at all"


def judge(demands: Iterable[Demand], shown: Shown = str) -> Runtime | None:
    """The versions that the requirements of one directory lead to; None if they leave the version open.

    A lock file takes precedence over other files.  Demands that exclude each other belong to alternative
    environments, of which one that fits is enough.
    """
    listed = tuple(demands)
    is_paddle2 = _is_paddle2(listed)
    reaches = {each: _reach(each) for each in listed if PRODUCTS[each.package] in _TOO_NEW}
    decided = {product: _deciding(reaches, product) for product in _TOO_NEW}
    newer = next((each for each, reach in decided.values() if each and reach is _Reach.TOO_NEW), None)
    legacy = next((each for each in listed if each.package in LEGACY), None)
    found = newer or next((each for each, reach in decided.values() if each), None)
    problem = _problem(reaches, decided, shown)
    backend = next((each for each in listed if each.package == BACKEND), None)
    told = f"{shown(backend.path)}:{backend.line} sets KERAS_BACKEND" if backend is not None else ""
    undecided = Runtime(
        is_paddle2=is_paddle2, is_open=True, problem=problem,
        backend=(backend.asks if backend is not None else "", told),
    )  # fmt: skip
    # The package for Keras 2 works without a known version of TensorFlow.
    if legacy is not None and (found is None or found is decided[TENSORFLOW][0] is newer):
        found = newer or legacy
    elif found is None:
        return undecided.if_told
    else:
        legacy = None
    told = _told(found, shown)
    return replace(
        undecided,
        too_new=told if found is newer else "",
        path=found.path,
        line=found.line,
        asks=_shown(found),
        is_legacy=legacy is not None,
        is_open=False,
        decides=_told(legacy, shown) if legacy is not None else told,
    )


def installed(demand: Demand) -> Runtime | None:
    """The versions that a Python has installed, as if its folder required them."""
    found = judge([demand], posixpath.basename)
    return replace(found, path="", is_installed=True) if found is not None else None


def _deciding(reaches: Mapping[Demand, _Reach], product: str) -> tuple[Demand | None, _Reach]:
    """The demand that decides the versions of a product, and these versions; None if open."""
    own = [demand for demand in reaches if PRODUCTS[demand.package] == product]
    deciding = [each for each in own if each.locked] or own
    for sought in (_Reach.FITTING, _Reach.TOO_NEW):
        for demand in deciding:
            if reaches[demand] is sought:
                return demand, sought
    return None, _Reach.BOTH


def _problem(
    reaches: Mapping[Demand, _Reach],
    decided: Mapping[str, tuple[Demand | None, _Reach]],
    shown: Shown,
) -> Problem | None:
    """The problem with the requirements for TensorFlow and Keras, if any."""
    for each, reach in reaches.items():
        if reach is _Reach.NONE:
            what = "no version is" if each.allowed else "cannot be read"
            return _problem_of(each, f"{_told(each, shown)}, which {what}")
    for product, (demand, reach) in decided.items():
        against = _Reach.FITTING if reach is _Reach.TOO_NEW else _Reach.TOO_NEW
        for each in reaches:
            if demand is not None and PRODUCTS[each.package] == product and reaches[each] is against:
                return _contrary(demand, each, shown)
    (tensorflow, one), (keras, other) = decided[TENSORFLOW], decided[KERAS]
    if tensorflow is None:
        return None
    is_legacy = any(each.package in LEGACY for each in reaches)
    if keras is not None and one is not other and not (is_legacy and one is _Reach.TOO_NEW):
        return _contrary(tensorflow, keras, shown)
    if one is _Reach.TOO_NEW and not _is_tried(tensorflow):
        untried = ".".join(map(str, _UNTRIED))
        told = f"{_told(tensorflow, shown)}, and TensorFlow {untried} and later are untested"
        return _problem_of(tensorflow, told)
    return None


def _contrary(demand: Demand, other: Demand, shown: Shown) -> Problem:
    """The problem of two requirements, one for Keras 2 and one for Keras 3."""
    there = f"{shown(other.path)}:{other.line}"
    told = f"{_told(demand, shown)}, and {there} for {_shown(other)}: they conflict"
    return _problem_of(other, told)


def _is_tried(demand: Demand) -> bool:
    """Return whether a demand for a new TensorFlow allows one that was tried."""
    if _allows(demand, (each for each, release in _written(demand) if release < _UNTRIED)):
        return True
    is_rolling = demand.package in ROLLING
    return not is_rolling and _allows(demand, _versions(_TOO_NEW[TENSORFLOW], _UNTRIED))


def _problem_of(demand: Demand, told: str) -> Problem:
    return Problem(told, demand.path, demand.line, _shown(demand))


def _told(demand: Demand, shown: Shown) -> str:
    """A demand in words, with its place if it has one."""
    where = (
        f"{shown(demand.path)}:{demand.line} asks for "
        if demand.line
        else f"the Python of {shown(demand.path)} has "
    )
    return f"{where}{_shown(demand)}"


def _is_paddle2(listed: tuple[Demand, ...]) -> bool:
    """Return whether the requirements allow no version of Paddle from 3 on; a lock file decides."""
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
    if newer and (not older or demand.package in ROLLING):
        return _Reach.TOO_NEW
    if not newer:
        return _Reach.FITTING if older else _Reach.NONE
    return _Reach.BOTH


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
    """Yield the versions in a constraint, some of which no range can hold (2.16.0rc0)."""
    from packaging.version import InvalidVersion, Version

    for allowed in demand.allowed:
        for specifier in allowed:
            version = specifier.version.removesuffix(".*")
            with suppress(InvalidVersion):
                yield version, (*Version(version).release, 0)


def _shown(demand: Demand) -> str:
    exact = _EXACT.fullmatch(demand.asks)
    return f"{demand.package} {exact[1] if exact else demand.asks}".rstrip()
