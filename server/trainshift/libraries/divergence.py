"""Divergence: the calls of libraries whose results differ from one process to the next.

Keys are full names, or prefixes of these where they end with a dot.  Methods are those of objects whose class
nothing tells.  What a seed makes the same is not in this table: `core/ranks/seeds.py` knows it.
"""

from __future__ import annotations

from enum import Enum


class CauseKind(Enum):
    """Why a value may be another on each rank."""

    RANK = "depends on the rank"
    DATA = "comes of a rank's own data"
    DRAW = "is drawn at random"
    CLOCK = "comes of a rank's own clock"
    HOST = "comes of the machine"
    DISK = "comes of a rank's own disk"


NAMES: dict[str, CauseKind] = {
    "datetime.": CauseKind.CLOCK,
    "time.": CauseKind.CLOCK,
    "secrets.": CauseKind.DRAW,
    "uuid.uuid1": CauseKind.DRAW,
    "uuid.uuid4": CauseKind.DRAW,
    "os.urandom": CauseKind.DRAW,
    "hyperopt.fmin": CauseKind.DRAW,
    "sklearn.model_selection.ParameterSampler": CauseKind.DRAW,
    "sklearn.utils.resample": CauseKind.DRAW,
    "multiprocessing.cpu_count": CauseKind.HOST,
    "os.cpu_count": CauseKind.HOST,
    "os.getpid": CauseKind.HOST,
    "os.uname": CauseKind.HOST,
    "platform.node": CauseKind.HOST,
    "psutil.": CauseKind.HOST,
    "socket.gethostname": CauseKind.HOST,
    "glob.": CauseKind.DISK,
    "os.listdir": CauseKind.DISK,
    "os.scandir": CauseKind.DISK,
    "os.walk": CauseKind.DISK,
}
METHODS = dict.fromkeys(
    (
        "suggest_categorical",
        "suggest_discrete_uniform",
        "suggest_float",
        "suggest_int",
        "suggest_loguniform",
        "suggest_uniform",
    ),
    CauseKind.DRAW,
)
"""Methods of a search for hyperparameters, each of which draws one."""


def cause_of(full_name: str) -> CauseKind | None:
    """Return why what a library's function gives differs between processes; None if nothing says so."""
    if full_name in NAMES:
        return NAMES[full_name]
    parts = full_name.split(".")
    prefixes = (".".join(parts[:end]) + "." for end in range(1, len(parts)))
    return next((NAMES[each] for each in prefixes if each in NAMES), None)
