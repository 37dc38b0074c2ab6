"""Demands: the requirements on TensorFlow, Keras and Paddle in a workspace's dependency files.

Every reader turns one kind of file into entries (a name, a constraint as it is written, a line);
one function makes demands of those that matter.  `packaging` is imported only for these.
"""

from __future__ import annotations

import ast
import configparser
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from trainshift.engine.versions.syntaxes import caret, conda, pep440

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

log = logging.getLogger(__name__)

TENSORFLOW = "tensorflow"
KERAS = "keras"
PADDLE = "paddle"
BACKEND = "keras-backend"
LEGACY = ("tf-keras", "tf-keras-nightly")
"""Keras 2 for the TensorFlow of the same version."""
ROLLING = ("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu", "keras-nightly", "tf-keras-nightly")
"""Packages of which an index has the newest versions only."""
PRODUCTS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "tensorflow",
            "tensorflow-cpu",
            "tensorflow-gpu",
            "tensorflow-intel",
            "tensorflow-macos",
            "tensorflow-rocm",
            *ROLLING,
            *LEGACY,
        ),
        TENSORFLOW,
    ),
    **dict.fromkeys(("keras", "keras-nightly"), KERAS),
    **dict.fromkeys(("paddlepaddle", "paddlepaddle-gpu", "paddlepaddle-xpu", "paddlepaddle-npu"), PADDLE),
    BACKEND: BACKEND,  # Variables of the environment that pin a version, as if they were packages.
}
"""The product that each package distributes, by its normalised name (PEP 503)."""

# The interpreters and machines that supported versions of TensorFlow and Horovod share.
_PYTHONS = tuple(f"3.{minor}.{patch}" for minor in range(9, 14) for patch in (0, 99))
_MACHINES = ("x86_64", "aarch64")


class Demand(Struct, frozen=True):
    """One declaration of a package: every version that it allows is in one of `allowed`; none if unreadable.

    `asks` is the constraint as written; with `locked`, it is from a lock file.
    """

    path: str
    line: int
    package: str
    asks: str
    allowed: tuple[SpecifierSet, ...]
    locked: bool


class Declared(Struct, frozen=True):
    """The requirements in a file, and the paths of the files that it includes, relative to it."""

    demands: tuple[Demand, ...] = ()
    includes: tuple[str, ...] = ()


class _Entry(Struct, frozen=True):
    """A constraint as written in a file; `syntax` converts `asks` to alternatives in the syntax of PEP
    440.
    """

    name: str
    asks: str
    line: int
    syntax: Callable[[str], Iterator[str]]
    marker: str = ""


class _Include(Struct, frozen=True):
    path: str


_Read = Callable[[str], Iterator[_Entry | _Include]]

_RELEVANT = re.compile(
    r"tensorflow|keras|paddlepaddle|tf[-_.]+nightly|^[ \t]*(?:-[ \t]+)?(?:-r|-c|--requirement|--constraint)",
    re.I | re.M,
)
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?")
_INCLUDE = re.compile(r"(?:-r|-c|--requirement|--constraint)(?:\s+|=|(?<=-[rc]))(\S+)")
_OPTION = re.compile(r"\s--?[A-Za-z]")
_FLAG = re.compile(
    r"^[ \t]*(?:export[ \t]+)?TF_USE_LEGACY_KERAS[ \t]*[:=][ \t]*[\"']?(?:1|true)\b", re.I | re.M
)
_BACKEND = re.compile(r"^[ \t]*(?:export[ \t]+)?KERAS_BACKEND[ \t]*[:=][ \t]*[\"']?(\w+)", re.M)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_PACKAGE = re.compile(r"^\[\[packages?\]\]\s*$.*?(?=^\[\[packages?\]\]|\Z)", re.M | re.S)
_PACKAGE_NAME = re.compile(r"^name\s*=\s*[\"']([^\"']+)", re.M)
_ITEM = re.compile(r"(\s*)-\s+(.*)")
_CONDA = re.compile(r"(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)\s*(.*)")

# Sections of a pyproject.toml with lists of requirements, and with tables in Poetry's syntax.
_LISTS = (
    "project.dependencies",
    "project.optional-dependencies.*",
    "dependency-groups.*",
    "tool.pdm.dev-dependencies.*",
    "tool.uv.dev-dependencies",
    "tool.uv.constraint-dependencies",
    "tool.uv.override-dependencies",
    "tool.hatch.envs.*.dependencies",
    "tool.hatch.envs.*.extra-dependencies",
)
_TABLES = (
    "tool.poetry.dependencies",
    "tool.poetry.dev-dependencies",
    "tool.poetry.group.*.dependencies",
)
_PIPFILE_TABLES = ("packages", "dev-packages")
_MARKER_NAMES = ("python_version", "python_full_version", "sys_platform", "platform_machine", "os_name")


def is_declaration(path: str) -> bool:
    """Return whether a file is known by its name to declare dependencies."""
    return _kind(path) is not None


def read_demands(path: str, text: str) -> Declared:
    """Read the requirements in the file at `path`; a file of unknown name is read as a requirements list.

    Unreadable parts are left out.
    """
    read, locked = _kind(path) or (_requirements, False)
    if not _RELEVANT.search(text):
        return Declared()
    demands: list[Demand] = []
    includes: list[str] = []
    try:
        for found in read(text):
            if isinstance(found, _Include):
                includes.append(found.path)
            elif (demand := _demand(path, found, locked)) is not None:
                demands.append(demand)
    except (ValueError, SyntaxError, RecursionError, configparser.Error) as error:
        log.debug("%s is not read: %s", path, error)
    return Declared(tuple(demands), tuple(includes))


def demand_for(package: str, asks: str, path: str = "", line: int = 0) -> Demand:
    """The demand for a version: ``2.21`` for all of its releases, or a constraint as pip reads it.

    An unreadable version allows nothing.
    """
    constraint = f"=={asks}{'.*' * (asks.count('.') < 2)}" if asks[:1].isdigit() else asks
    found = _demand(path, _Entry(package, constraint, line, pep440), False)
    return found or Demand(path, line, package, asks, (), False)


def _demand(path: str, entry: _Entry, locked: bool) -> Demand | None:
    """The demand of an entry, if it is about a relevant package, readable and applicable."""
    package = _normalized(entry.name)
    if package not in PRODUCTS:
        return None
    from packaging.specifiers import SpecifierSet

    allowed: tuple[SpecifierSet, ...] = ()
    try:
        applies = _may_hold(entry.marker)
        allowed = tuple(SpecifierSet(each) for each in entry.syntax(entry.asks))
    except ValueError as error:
        log.debug("%s:%d is not read: %s", path, entry.line, error)
        applies = entry.syntax is pep440 and not locked and _is_constraint(entry.asks)
    return Demand(path, entry.line, package, entry.asks, allowed, locked) if applies else None


def _is_constraint(asks: str) -> bool:
    """Return whether the text after a package's name is a version constraint, and not a placeholder."""
    return asks[:1] in tuple("<>=~!") and not set("${").intersection(asks)


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _may_hold(marker: str) -> bool:
    """Return whether an environment marker holds on some Python that the supported versions run on."""
    if not marker:
        return True
    from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName

    environment = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "sys_platform": "linux",
    }
    parsed = Marker(marker)
    try:
        return any(
            parsed.evaluate(
                environment
                | {
                    "platform_machine": machine,
                    "python_full_version": python,
                    "implementation_version": python,
                    "python_version": python.rpartition(".")[0],
                }
            )
            for python in _PYTHONS
            for machine in _MACHINES
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True


# Lists of requirements


def _requirements(text: str) -> Iterator[_Entry | _Include]:
    """The format of pip: comments, continued lines, options, includes."""
    for number, line in _logical_lines(text):
        yield from _requirement_line(line, number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, those that end with a backslash joined, with the number of the first."""
    start, held = 1, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield start, _COMMENT.sub("", held + line).strip()
        held = ""
    if held:
        yield start, _COMMENT.sub("", held).strip()


def _requirement_line(line: str, number: int) -> Iterator[_Entry | _Include]:
    include = _INCLUDE.match(line)
    if include:
        yield _Include(include[1])
    elif line and not line.startswith("-"):
        yield from _requirement(_OPTION.split(line)[0], number)


def _requirement(text: str, line: int) -> Iterator[_Entry]:
    """One requirement as PEP 508 writes it, or the place of a wheel."""
    asked, _, marker = (part.strip() for part in text.partition(";"))
    file = asked.partition("#")[0].replace("%2B", "+").rpartition("/")[2]
    name, *rest = file.split("-")
    match = _REQUIREMENT.match(asked)
    if file.endswith(".whl") and rest:
        yield _Entry(name, f"=={rest[0]}", line, pep440, marker)
    elif match:
        asks = asked[match.end() :].strip()
        yield _Entry(match[1], "" if asks.startswith("@") else asks.strip("()"), line, pep440, marker)


# TOML, JSON and INI


def _pyproject(text: str) -> Iterator[_Entry]:
    table = _toml(text)
    for path in _LISTS:
        for listed in _at(table, path.split(".")):
            yield from _listed(listed, text)
    for path in _TABLES:
        for each in _at(table, path.split(".")):
            yield from _table(each, text)


def _pipfile(text: str) -> Iterator[_Entry]:
    table = _toml(text)
    for path in _PIPFILE_TABLES:
        yield from _table(table.get(path), text)


def _setup_cfg(text: str) -> Iterator[_Entry]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    lists = [parser.get("options", "install_requires", fallback="")]
    if parser.has_section("options.extras_require"):
        lists += [listed for _, listed in parser.items("options.extras_require")]
    for listed in lists:
        yield from _listed(listed.splitlines(), text)


def _setup(text: str) -> Iterator[_Entry]:
    """The requirements that a setup.py writes out; the file is not run."""
    for call in ast.walk(ast.parse(text)):
        for word in call.keywords if isinstance(call, ast.Call) else ():
            if word.arg in ("install_requires", "extras_require"):
                for each in ast.walk(word.value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield from _requirement(each.value, each.lineno)


def _listed(listed: object, text: str) -> Iterator[_Entry]:
    """The requirements of a list, which may contain other items."""
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, str):
            for entry in _requirement(each, 0):
                yield _located(entry, text)


def _table(table: object, text: str) -> Iterator[_Entry]:
    """The entries of a table of names, each with a constraint, a table, or a list of tables."""
    for name, value in table.items() if isinstance(table, dict) else ():
        if _normalized(name) not in PRODUCTS:
            continue
        for each in value if isinstance(value, list) else [value]:
            options = each if isinstance(each, dict) else {"version": each}
            asks = options.get("version", "*")
            if isinstance(asks, str):
                yield _located(_Entry(name, asks, 0, caret, _table_marker(options)), text)


def _table_marker(options: Mapping[str, object]) -> str:
    """The marker that the options of a dependency of Poetry or Pipenv amount to."""
    parts = [str(options["markers"])] if options.get("markers") else []
    parts += [f"{name} {options[name]}" for name in _MARKER_NAMES if name in options]
    if "platform" in options:
        parts.append(f"sys_platform == '{options['platform']}'")
    if "python" in options:
        alternatives = [
            " and ".join(f"python_full_version {piece}" for piece in _quoted(each))
            for each in caret(str(options["python"]))
            if each
        ]
        parts += [" or ".join(f"({each})" for each in alternatives)] if alternatives else []
    return " and ".join(f"({part})" for part in parts)


def _quoted(specifiers: str) -> Iterator[str]:
    """The comparisons of a set of specifiers as a marker writes them: ``>= '3.9'``."""
    for piece in specifiers.split(","):
        yield re.sub(r"^(\W+)(.*)$", r"\1 '\2'", piece)


def _at(value: object, path: list[str]) -> Iterator[object]:
    """Yield the values at a path of keys; ``*`` matches any key."""
    if not path:
        yield value
    elif isinstance(value, dict):
        first, *rest = path
        for each in value.values() if first == "*" else [value[first]] if first in value else []:
            yield from _at(each, rest)


def _located(entry: _Entry, text: str) -> _Entry:
    """An entry at the line that holds its name with its constraint, or else its name."""
    name = rf"^(?![ \t]*#).*?(?<![\w.-]){re.escape(entry.name)}(?![\w.-])"
    match = re.search(rf"{name}.*?{re.escape(entry.asks)}", text, re.M) or re.search(name, text, re.M)
    return replace(entry, line=text.count("\n", 0, match.start()) + 1 if match else 1)


def _toml(text: str) -> dict[str, object]:
    from trainshift.libraries import toml

    table: dict[str, object] = toml.loads(text)
    return table


# Lock files


def _lock(text: str) -> Iterator[_Entry]:
    """Read a lock file of Poetry, uv, PDM or PEP 751: an array of packages, of which few are parsed."""
    for match in _PACKAGE.finditer(text):
        name = _PACKAGE_NAME.search(match[0])
        if name is None or _normalized(name[1]) not in PRODUCTS:
            continue
        for package in _at(_toml(match[0]), ["*"]):
            for each in package if isinstance(package, list) else ():
                if isinstance(each, dict) and isinstance(each.get("version"), str):
                    line = text.count("\n", 0, match.start() + name.start()) + 1
                    yield _Entry(name[1], f"=={each['version']}", line, pep440, _locked_marker(each))


def _pipfile_lock(text: str) -> Iterator[_Entry]:
    for section in _at(json.loads(text), ["*"]):
        for name, package in section.items() if isinstance(section, dict) else ():
            if isinstance(package, dict) and isinstance(package.get("version"), str):
                yield _located(_Entry(name, package["version"], 0, pep440, _locked_marker(package)), text)


def _locked_marker(package: Mapping[str, object]) -> str:
    """The marker under which a package of a lock file is installed; one of several suffices."""
    for key in ("resolution-markers", "markers", "marker"):
        value = package.get(key)
        markers = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        texts = [each for each in markers if isinstance(each, str) and each]
        if texts:
            return " or ".join(f"({each})" for each in texts)
    return ""


# Conda


def _environment(text: str) -> Iterator[_Entry | _Include]:
    """An environment of conda, as its lists are usually laid out: an item a line."""
    pip: int | None = None  # The indentation of pip's heading inside that list.
    for number, line in enumerate(text.splitlines(), 1):
        item = _ITEM.match(_COMMENT.sub("", line).rstrip())
        if item is None:
            continue
        content = item[2].strip("\"'")
        if pip is not None and len(item[1]) > pip:
            yield from _requirement_line(content, number)
        elif content == "pip:":
            pip = len(item[1])
        elif match := _CONDA.match(content):
            pip = None
            yield _Entry(match[1], match[2], number, conda)
    yield from _variables(text)


def _variables(text: str) -> Iterator[_Entry]:
    """The variables for Keras among those that a file sets.

    One makes TensorFlow use `tf-keras`; another names the backend of Keras 3.
    """
    for pattern, name in ((_FLAG, "tf-keras"), (_BACKEND, BACKEND)):
        if match := pattern.search(text):
            line = text.count("\n", 0, match.start()) + 1
            asks = match[1] if name == BACKEND else "by TF_USE_LEGACY_KERAS"
            yield _Entry(name, asks, line, lambda asks: iter([""]))


# Kinds of files by name: their reader, and whether they lock versions.
_KINDS: tuple[tuple[str, _Read, bool], ...] = (
    ("pyproject.toml", _pyproject, False),
    ("setup.cfg", _setup_cfg, False),
    ("setup.py", _setup, False),
    ("Pipfile", _pipfile, False),
    ("Pipfile.lock", _pipfile_lock, True),
    ("poetry.lock", _lock, True),
    ("uv.lock", _lock, True),
    ("pdm.lock", _lock, True),
    ("pylock*.toml", _lock, True),
    ("environment*.yml", _environment, False),
    ("environment*.yaml", _environment, False),
    ("conda*.yml", _environment, False),
    ("conda*.yaml", _environment, False),
    (".env", _variables, False),
    ("*requirements*.txt", _requirements, False),
    ("*requirements*.in", _requirements, False),
    ("requirements/*.txt", _requirements, False),
    ("requirements/*.in", _requirements, False),
)


NAMES = tuple(pattern for pattern, _, _ in _KINDS)
"""The names of files that declare dependencies, as patterns; the server watches all of them."""

# A folder may hold as many images as there are training examples: most names are filtered by their
# extension.
_ENDINGS = tuple({pattern[max(pattern.rfind("."), 0) :] for pattern, _, _ in _KINDS})


def _kind(path: str) -> tuple[_Read, bool] | None:
    if not path.endswith(_ENDINGS):
        return None
    pure = PurePath(path)
    return next(((read, locked) for pattern, read, locked in _KINDS if pure.match(pattern)), None)
