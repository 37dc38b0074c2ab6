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
    NET = "comes of a service"


NAMES: dict[str, CauseKind] = {
    "datetime.": CauseKind.CLOCK,
    "time.": CauseKind.CLOCK,
    "secrets.": CauseKind.DRAW,
    "uuid.uuid1": CauseKind.DRAW,
    "uuid.uuid4": CauseKind.DRAW,
    "os.urandom": CauseKind.DRAW,
    "builtins.hash": CauseKind.DRAW,  # Python draws anew with each process how it hashes strings.
    "tensorflow.data.experimental.rejection_resample": CauseKind.DRAW,
    "multiprocessing.cpu_count": CauseKind.HOST,
    "os.cpu_count": CauseKind.HOST,
    "os.getpid": CauseKind.HOST,
    "os.uname": CauseKind.HOST,
    "platform.node": CauseKind.HOST,
    "psutil.": CauseKind.HOST,
    "socket.gethostname": CauseKind.HOST,
    "tempfile.": CauseKind.DRAW,
    "GPUtil.": CauseKind.HOST,
    "tensorflow.config.get_visible_devices": CauseKind.HOST,
    "tensorflow.config.list_logical_devices": CauseKind.HOST,
    "tensorflow.config.list_physical_devices": CauseKind.HOST,
    "tensorflow.python.client.device_lib.list_local_devices": CauseKind.HOST,
    "pynvml.": CauseKind.HOST,
    "http.client.": CauseKind.NET,
    "httpx.": CauseKind.NET,
    "pymongo.": CauseKind.NET,
    "redis.": CauseKind.NET,
    "requests.": CauseKind.NET,
    "sqlite3.": CauseKind.NET,
    "sqlalchemy.": CauseKind.NET,
    "urllib.request.": CauseKind.NET,
    "glob.": CauseKind.DISK,
    "os.listdir": CauseKind.DISK,
    "os.path.exists": CauseKind.DISK,
    "os.path.isfile": CauseKind.DISK,
    "tensorflow.io.gfile.exists": CauseKind.DISK,
    "os.scandir": CauseKind.DISK,
    "os.walk": CauseKind.DISK,
}
METHODS = dict.fromkeys(
    (
        "rejection_resample",
        "should_prune",
        "suggest_categorical",
        "suggest_discrete_uniform",
        "suggest_float",
        "suggest_int",
        "suggest_loguniform",
        "suggest_uniform",
    ),
    CauseKind.DRAW,
)
"""Methods that draw elements, or a hyperparameter in a search for the best."""

SPLITTING = frozenset(
    {
        "train_test_split",
        "GroupShuffleSplit", "KFold", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit",
        "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit",
    }
)  # fmt: skip
"""What scikit-learn splits rows by at random, each fixed by an argument `random_state`."""
BY_STATE = SPLITTING | {
    "ADASYN", "BorderlineSMOTE", "KMeansSMOTE", "ParameterSampler", "RandomOverSampler",
    "RandomUnderSampler", "SMOTE", "SMOTEENN", "SMOTENC", "SMOTETomek", "SVMSMOTE", "resample",
}  # fmt: skip
"""These, and what scikit-learn and imbalanced-learn draw rows by, which is fixed in the same way."""
CHOOSING_ROWS = BY_STATE | {"choice", "choices", "rejection_resample", "sample"}
"""These, and what else draws some rows out of those that it is given."""
UNLESS_TOLD = frozenset({"KFold", "StratifiedGroupKFold", "StratifiedKFold"})
"""Those of them that draw only if they are told to shuffle."""

SIZED = frozenset(
    {
        "arange", "empty", "eye", "full", "linspace", "ones", "range", "zeros",
        "integers", "normal", "poisson", "rand", "randint", "randn", "random", "random_sample",
        "standard_normal", "uniform",
    }
)  # fmt: skip
"""What gives as many numbers as it is told."""
CHOOSING = frozenset(
    {
        "argwhere", "boolean_mask", "compress", "drop_duplicates", "dropna", "flatnonzero", "nonzero",
        "query", "set", "unique", "where",
    }
)  # fmt: skip
"""What gives as many elements as have some value, of no more than two arguments."""
TESTING = frozenset({"filter", "take_while"})
"""What gives the elements for which a function holds."""
APPLYING = frozenset(
    {
        "attr.ib", "attrs.field", "builtins.filter", "builtins.map", "builtins.max", "builtins.min",
        "builtins.sorted", "collections.defaultdict", "dataclasses.field", "functools.reduce",
        "itertools.accumulate", "itertools.starmap", "numpy.apply_along_axis", "numpy.fromfunction",
        "numpy.vectorize", "pydantic.Field",
    }
)  # fmt: skip
"""Functions that give the result of a function that is handed to them."""
DROPPING = frozenset({"rejection_resample"})
"""What leaves out elements at random."""
CUTTING = frozenset(
    {
        "batch",
        "choice",
        "head",
        "islice",
        "nlargest",
        "nsmallest",
        "repeat",
        "sample",
        "skip",
        "tail",
        "take",
        "window",
    }
)
"""What gives a part of what it is given, or is called of, as long as it is told further."""


def cause_of(full_name: str) -> CauseKind | None:
    """Return why what a library's function gives differs between processes; None if nothing says so."""
    if full_name in NAMES:
        return NAMES[full_name]
    parts = full_name.split(".")
    prefixes = (".".join(parts[:end]) + "." for end in range(1, len(parts)))
    return next((NAMES[each] for each in prefixes if each in NAMES), None)
