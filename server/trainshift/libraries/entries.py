"""Entries: the knowledge about the members of libraries, by full name.

A library has one file of data, `data/<package>.toml`.  It is read on the first query for a member of that
package.  An entry is a name below the package, a role, and the keys of the role. A name may be a pattern:
`*.DPModel` is a `DPModel` of any module, `log_*` every function with this prefix. Besides its role, an entry
may state facts, such as the argument whose file is read.  A member has the facts of its own entry and of
every pattern that fits.  Modules of the standard library share one file, `data/stdlib.toml`, unless they have
one of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from sys import stdlib_module_names
from typing import Any

from msgspec import Struct

DATA = Path(__file__).with_name("data")
STANDARD = "stdlib"
"""The file of the modules of Python that have none to themselves."""
_PATTERN = "*"
ROOT = "root"
"""The role of a callback that only rank 0 needs."""


class Role(Enum):
    """The role of a library's member in a training script."""

    MODEL = "model"
    OPTIMIZER = "optimizer"
    OPTIMIZER_FACTORY = "optimizer-factory"
    SCHEDULE = "schedule"
    CALLBACK = "callback"
    WRITER = "writer"
    WRITER_OBJECT = "writer-object"
    MOVES = "moves"
    OUTSIDE = "outside"
    TRACKER = "tracker"
    TRAINS = "trains"
    AGENT = "agent"
    DATASET = "dataset"
    COUNTS = "counts"
    NOTED = "noted"
    PRINTS = "prints"
    OPENER = "opener"
    DRAWS = "draws"
    VALUE = "value"


ACTING = (Role.WRITER, Role.WRITER_OBJECT, Role.MOVES, Role.OUTSIDE, Role.TRACKER)
"""The roles of what one rank alone should do."""
COMMON = frozenset({"role", "gives", "says"})
"""The keys of any entry: its role, the class of its result, and a sentence for the report."""
FACTS = frozenset(
    {
        "acts", "applies", "calls_nothing", "collective", "deviceless", "differs", "fills", "graphless",
        "hook", "length", "level", "lists", "makes_files", "pure", "queues", "reads", "removes",
        "returns_path", "stays", "summary", "unseen", "verbose", "writes",
    }
)  # fmt: skip
"""The facts that an entry of the committed data may state, whatever its role."""
_CLASS = frozenset({"base", "signature"})
KEYS: Mapping[Role, frozenset[str]] = {
    Role.MODEL: _CLASS | {"step", "compiled"},
    Role.OPTIMIZER: _CLASS | {"averages", "steps"},
    Role.OPTIMIZER_FACTORY: frozenset({"signature", "rate", "steps", "returns"}),
    Role.SCHEDULE: _CLASS | {"rates", "steps"},
    Role.CALLBACK: _CLASS | {"ranks", "decides", "draws", "blind", "shows"},
    Role.WRITER: frozenset({"path", "unless", "folder", "shows"}),
    Role.WRITER_OBJECT: frozenset({"path", "mode", "elsewhere"}),
    Role.MOVES: frozenset(),
    Role.OUTSIDE: frozenset({"begins", "command", "remote", "starts"}),
    Role.TRACKER: frozenset({"argument", "root", "elsewhere", "before", "context"}),
    Role.TRAINS: frozenset({"reason", "draws"}),
    Role.AGENT: frozenset(),
    Role.DATASET: frozenset({"seed"}),
    Role.COUNTS: frozenset({"signature", "steps"}),
    Role.NOTED: frozenset(),
    Role.PRINTS: frozenset({"argument"}),
    Role.OPENER: frozenset({"path", "mode"}),
    Role.DRAWS: frozenset({"seed", "splits", "told"}),
    Role.VALUE: frozenset(),
}
"""The further keys that an entry of a role may have."""
NEEDED: Mapping[Role, frozenset[str]] = {
    Role.MODEL: frozenset({"step"}),
    Role.OPTIMIZER: frozenset({"signature"}),
    Role.OPTIMIZER_FACTORY: frozenset({"signature", "rate"}),
    Role.SCHEDULE: frozenset({"signature", "rates"}),
    Role.CALLBACK: frozenset({"ranks"}),
    Role.TRAINS: frozenset({"reason"}),
    Role.COUNTS: frozenset({"signature", "steps"}),
    Role.NOTED: frozenset({"says"}),
    Role.OPENER: frozenset({"path"}),
    Role.DRAWS: frozenset({"seed"}),
}
"""The keys that an entry of a role must have."""
WORDS: Mapping[str, frozenset[str]] = {
    "step": frozenset({"keras", "minimize", "tape"}),
    "averages": frozenset({"tape"}),
    "ranks": frozenset({ROOT, "every"}),
    "returns": frozenset({"optimizer", "pair"}),
    "differs": frozenset({"clock", "disk", "draw", "machine", "perhaps", "service"}),
    "length": frozenset({"counts", "through"}),
    "verbose": frozenset({"0", "1"}),
}
"""The values that a key may have, where these are few."""
LISTS = frozenset({"rates", "steps", "begins", "writes"})
"""The keys whose values are lists of names."""
FLAGS = frozenset(
    {
        "context", "command", "compiled", "folder", "remote", "starts", "decides", "draws", "blind", "shows",
        "splits", "applies", "calls_nothing", "collective", "deviceless", "graphless", "hook", "level",
        "lists", "makes_files", "pure", "queues", "removes", "summary", "unseen",
    }
)  # fmt: skip
"""The keys that say whether something is so."""
PLACED = "path"
"""The key whose value may also be the position of an argument."""
NOT_OF_PEOPLE = frozenset({Role.OPENER, Role.DRAWS, Role.VALUE})
"""The roles that only the committed data may tell of."""
_BASES = {
    Role.MODEL: "tensorflow.keras.Model",
    Role.OPTIMIZER: "tensorflow.keras.optimizers.legacy.Optimizer",
    Role.SCHEDULE: "tensorflow.keras.optimizers.schedules.LearningRateSchedule",
    Role.CALLBACK: "tensorflow.keras.callbacks.Callback",
}


class Entry(Struct, frozen=True, eq=False):
    """The entry of one member of a library; `pattern` is its name in the library's file."""

    package: str
    pattern: str
    role: Role
    data: Mapping[str, Any]

    @property
    def base(self) -> str:
        """The TensorFlow class that a class descends from; "" if the member is not a class."""
        return str(self.data.get("base", _BASES.get(self.role, "")))

    @property
    def signature(self) -> str | None:
        """The text between the parentheses of its `def`; None if it is not recorded."""
        found = self.data.get("signature")
        return None if found is None else str(found)

    @property
    def gives(self) -> str:
        """The full name of the class of its result; "" if it is a class itself, or returns no known
        object.
        """
        below = str(self.data.get("gives", ""))
        return f"{self.package}.{below}" if below else ""

    @property
    def path(self) -> tuple[int, str]:
        """The position and the name of the argument that is a path; by position alone, the name is ""."""
        given = self.data.get("path", "")
        return (given, "") if isinstance(given, int) else (0, str(given))

    def text(self, key: str) -> str:
        """The value of a key, as text; "" if there is none."""
        return str(self.data.get(key, ""))

    def flag(self, key: str) -> bool:
        """Return whether it says that something is so."""
        return bool(self.data.get(key, False))

    def listed(self, key: str) -> tuple[str, ...]:
        """The names that it lists under a key."""
        return tuple(self.data.get(key, ()))


Table = Mapping[str, Entry]


def entry(full_name: str) -> Entry | None:
    """Return the entry of a library's member; None if it has none."""
    project = _project.get()
    own = of_people(full_name, project.classes) if project is not None else None
    return own or _committed(full_name)


@cache
def _committed(full_name: str) -> Entry | None:
    package, _, below = full_name.partition(".")
    return find(below, table(package)) if below else None


class Project:
    """The user's own classes of optimizers and schedules, which count like TensorFlow's in their project.

    Two with the same contents are equal, because settings may be read several times.
    """

    def __init__(self, own: Mapping[str, Table]) -> None:
        self.own = own
        self.classes = {
            module: {name: each for name, each in table.items() if each.role in _CLASSES}
            for module, table in own.items()
        }
        told = {
            module: {name: each.data for name, each in table.items()}
            for module, table in self.classes.items()
        }
        self._key = repr(told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Project) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


_CLASSES = (Role.OPTIMIZER, Role.SCHEDULE)
_project: ContextVar[Project | None] = ContextVar("project", default=None)


def go_by(own: Mapping[str, Table]) -> None:
    """Use the user's own entries of one project from here on, in this thread or task only.

    Each thread and task uses its own.
    """
    project = _project.get()
    if (project.own if project is not None else {}) is not own and (own or project is not None):
        _project.set(Project(own) if own else None)


def project() -> Project | None:
    """Return the classes in the user's current entries; None without any."""
    return _project.get()


def is_known(full_name: str) -> bool:
    """Return whether a name is that of an entry, or of a module that has one."""
    package, _, below = full_name.partition(".")
    return entry(full_name) is not None or any(name.startswith(f"{below}.") for name in table(package))


def is_described(full_name: str) -> bool:
    """Return whether entries describe the library of a name, or Python has it."""
    package = full_name.partition(".")[0]
    return bool(stated(package)) or package in stdlib_module_names


def is_told_of(full_name: str) -> bool:
    """Return whether an entry describes a name, or states a fact about it."""
    package, _, below = full_name.partition(".")
    return below in stated(package) or is_known(full_name)


def of_people(full_name: str, own: Mapping[str, Table]) -> Entry | None:
    """Return the user's own entry for a library's member, by its full name; None if there is none."""
    for module, table in own.items():
        if full_name.startswith(f"{module}."):
            found = find(full_name.removeprefix(f"{module}."), table)
            if found is not None:
                return found
    return None


def prints(full_name: str) -> bool:
    """Return whether a function or a method has no effect but text on the terminal."""
    known = entry(full_name)
    return known is not None and known.role is Role.PRINTS and not known.text("argument")


def opener(full_name: str) -> Entry | None:
    """Return the entry of a function that opens a file; None for any other."""
    known = entry(full_name)
    return known if known is not None and known.role is Role.OPENER else None


def is_bar(full_name: str) -> bool:
    """Return whether a member is a progress bar around an iterable, with an argument that silences it."""
    known = entry(full_name)
    return known is not None and known.role is Role.PRINTS and bool(known.text("argument"))


@cache
def follows_objects(package: str) -> bool:
    """Return whether entries describe methods of any object of a package: `*.upload_file`."""
    acting = (each.pattern for each in table(package).values() if each.role in ACTING)
    return any("*." in pattern for pattern in acting)


def find(below: str, entries: Table) -> Entry | None:
    """Return the entry of a name below its package: its own, or the first with a matching pattern."""
    if below in entries:
        return entries[below]
    return next((each for name, each in entries.items() if is_pattern(name) and _fits(below, name)), None)


def _fits(below: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return fnmatchcase(below, pattern) or fnmatchcase(below, pattern[2:])
    return fnmatchcase(below, pattern)


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern."""
    return _PATTERN in name


def fits_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of some patterns."""
    return any(fnmatchcase(name, each) for each in patterns)


@cache
def table(package: str) -> Table:
    """Return the entries of a package with a role beyond returning a value; none if it has no file."""
    return {name: each for name, each in stated(package).items() if each.role is not Role.VALUE}


@cache
def stated(package: str) -> Table:
    """Return all entries of a package, including those that only state facts."""
    path = DATA / f"{package}.toml"
    if package.isidentifier() and path.is_file():
        return read(package, _loads(path.read_text("utf-8")))
    return _standard().get(package, {}) if package in stdlib_module_names else {}


@cache
def fact(full_name: str, key: str) -> Any:
    """Return the fact that the entry of a library's member, or a matching pattern, states; None if
    none does.
    """
    package, _, below = full_name.partition(".")
    known = stated(package)
    own = known.get(below)
    if own is not None and key in own.data:
        return own.data[key]
    fitting = (each for name, each in known.items() if key in each.data and is_pattern(name))
    return next((each.data[key] for each in fitting if _fits(below, each.pattern)), None)


def is_pure(package: str) -> bool:
    """Return whether a package's members only return values, except those whose own entries differ."""
    every = stated(package).get(_PATTERN)
    return every is not None and every.flag("pure")


@cache
def _standard() -> Mapping[str, Table]:
    """Return the entries of the modules of the standard library that share a file, by module."""
    rows: dict[str, dict[str, Any]] = {}
    for name, said in _loads((DATA / f"{STANDARD}.toml").read_text("utf-8")).items():
        module, _, below = name.partition(".")
        rows.setdefault(module, {})[below] = said
    return {module: read(module, data) for module, data in rows.items()}


def packages() -> list[str]:
    """Return the names of all packages that have entries."""
    files = {path.stem for path in DATA.glob("*.toml")}
    return sorted({*files, *_standard()} - {STANDARD})


def _loads(text: str) -> dict[str, Any]:
    # Most runs read no such file, and the server should start quickly.
    from trainshift.libraries.toml import loads

    found: dict[str, Any] = loads(text)
    return found


def read(package: str, data: Mapping[str, Any]) -> Table:
    """Return the entries in a package's data; raise `ValueError` if the data are invalid."""
    found = {}
    for name, said in data.items():
        if wrong := problem(said):
            raise ValueError(f"{package}.{name}: {wrong}")
        found[name] = Entry(package, name, Role(said["role"]), said)
    return found


def problem(said: object) -> str:
    """Return the problem with the data of one entry; "" if there is none."""
    if not isinstance(said, Mapping):
        return 'must be a table such as { role = "tracker" }.'
    roles = {each.value: each for each in Role}
    role = roles.get(said.get("role", ""))
    if role is None:
        return f"needs a role: {', '.join(roles)}."
    allowed = COMMON | KEYS[role] | FACTS
    for key, value in said.items():
        if key not in allowed:
            may = ", ".join(sorted(allowed - FACTS))
            return f'has no "{key}" for the role "{role.value}"; it may have {may}.'
        if key in WORDS and value not in WORDS[key]:
            return f'must have one of {", ".join(sorted(WORDS[key]))} as its "{key}".'
        if not _is_of_kind(key, value):
            return f'has a "{key}" of the wrong type.'
    if missing := NEEDED.get(role, frozenset()) - set(said):
        return f'needs "{min(missing)}" for the role "{role.value}".'
    return ""


def problem_of_people(said: object) -> str:
    """Return the problem with an entry of the user's own; "" if there is none."""
    if wrong := problem(said):
        return wrong
    assert isinstance(said, Mapping)
    if stray := FACTS & set(said):
        return f'cannot state "{min(stray)}".'
    if Role(said["role"]) in NOT_OF_PEOPLE:
        return f'cannot have the role "{said["role"]}".'
    if said["role"] == Role.MODEL.value and said["step"] != "tape":
        return 'needs no entry: a model whose step is not its own "tape" is treated as a Keras model.'
    return ""


def _is_of_kind(key: str, value: object) -> bool:
    if key in LISTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if key == PLACED and isinstance(value, int):
        return value >= 0 and not isinstance(value, bool)
    return isinstance(value, bool) if key in FLAGS else isinstance(value, str)
