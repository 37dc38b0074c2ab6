"""Signs: by which Keras a script is written, told by what only one of the two has (spec.md 8)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_LEGACY
from trainshift.core.program import Program
from trainshift.core.ranks.own_horovod import OwnHorovod
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Instance, Literal
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Site, argument

TENSORFLOW = "tensorflow"
"""The backend of Keras 3 that Horovod works with."""
# Modules and classes of Keras that one of the two has alone, below `keras.`.
_OF_3 = (
    "ops.",
    "random.",
    "tree.",
    "distribution.",
    "Variable",
    "utils.PyDataset",
    "KerasTensor.",
    "config.set_backend",
)
_OF_2 = ("optimizers.legacy.", "optimizers.experimental.", "experimental.", "layers.experimental.")
# One attribute of each: which calls are worth resolving at all.
_TELLING = frozenset(each.rstrip(".").rpartition(".")[2] for each in (*_OF_2, *_OF_3))
_LIBRARIES = {
    "tf_keras": KERAS_LEGACY,
    "keras_hub": KERAS_3,
    "segmentation_models": KERAS_2,
    "tensorflow_addons": KERAS_2,
}
_ALONE = re.compile(r"(?:.*\.)?keras\.(?!src\.)(.*)")
_TENSORFLOWS = re.compile(r"\b(?:tf|tensorflow)\.keras\b|tensorflow import .*\bkeras\b|tf_keras")
# What files and methods are called by Keras 3 alone, or first; and what only Keras 2 calls so.
# "tf.keras" is the name of a module, and of no file.
_NEW_NAMES = re.compile(
    r"""(?<![\w/.{}:-])(?!(?:tf|tensorflow)(?:\.\w+)*\.keras["'])[\w/.{}:-]*\.(?:weights\.h5|keras)["']|\bscale_loss(?=\()"""
)
_OLD_NAMES = re.compile(
    r"""(?<!\.weights)\.h5["']|\.reset_states\(|\b(?:optimizer|opt)\.lr\b|\bget_(?:un)?scaled_\w+\("""
)
# A flag that is a variable needs AutoGraph; Horovod's wraps and loss scaling are not the same on both.
_OF_ONE = re.compile(
    r"autograph *= *False|jit_compile *= *True|\bhorovod\b|LossScale|mixed_precision|\bcompat\b"
)
_BACKEND, FLAG = "KERAS_BACKEND", "TF_USE_LEGACY_KERAS"
_OFF = ("0", "false", "False", "")
_SETTING = ("setdefault", "putenv", "update", "set_backend")


@dataclass(frozen=True, slots=True)
class Sign:
    """What speaks for a Keras: `keras` is which, `shown` what it is, at a 1-based `line` of a file."""

    keras: str
    shown: str
    path: str
    line: int

    @property
    def told(self) -> str:
        """The sign in words."""
        return f"line {self.line} uses {self.shown}"


class KerasSigns:
    """What the files of one program say of the Keras that they are written for."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._names = program.names
        self._own = program.fact(OwnHorovod)

    @cached_property
    def of_2(self) -> Sign | None:
        """The first sign of Keras 2."""
        return next((each for each in self._all if each.keras != KERAS_3), None)

    @cached_property
    def of_legacy(self) -> Sign | None:
        """The first sign of Keras 2 by `tf_keras`."""
        return next((each for each in self._all if each.keras == KERAS_LEGACY), None)

    @cached_property
    def bare(self) -> Sign | None:
        """The first import of `keras` by itself, which from TensorFlow 2.16 on is Keras 3."""
        found = (each for each in self._imports if each[0] == "keras")
        return next((self._sign(KERAS_3, name, start) for _, name, start in found), None)

    @property
    def names_tensorflows(self) -> bool:
        """Whether the script also names the Keras that TensorFlow has."""
        return _TENSORFLOWS.search(self._script.source.text) is not None

    @property
    def sets_flag(self) -> bool:
        """Whether the script has TensorFlow take `tf_keras` itself."""
        return any(value not in _OFF for value, _ in self._settings(FLAG))

    @cached_property
    def of_3(self) -> Sign | None:
        """The first sign of Keras 3."""
        return next((each for each in self._all if each.keras == KERAS_3), None)

    @cached_property
    def of_backend(self) -> Sign | None:
        """What names the backend of Keras, which Keras 2 may be told too, and does not ask for."""
        return self._set(_BACKEND, KERAS_3)

    @cached_property
    def of_names(self) -> Sign | None:
        """The first sign that tells only where nothing else does: how files and a few methods are called."""
        for pattern, keras in ((_OLD_NAMES, KERAS_2), (_NEW_NAMES, KERAS_3)):
            if found := pattern.search(self._script.source.text):
                return self._sign(keras, found[0].strip("\"'.("), found.start())
        return None

    @property
    def suits_both(self) -> bool:
        """Whether a text that runs on either Keras may be written for what the script uses."""
        if _OF_ONE.search(self._script.source.text) is not None:
            return False
        sites = self._script.sites_calling(api.last_names(*api.OPTIMIZERS))
        used = (value for site in sites for value in self._names.site_values(site.node, site))
        return not any(isinstance(each, Instance) and api.differs_by_keras(each.cls) for each in used)

    @cached_property
    def backend(self) -> tuple[str, Span]:
        """The backend of Keras 3 that the script sets, and where; "" where it sets none."""
        return next(self._settings(_BACKEND), ("", Span(0, 0)))

    def _settings(self, key: str) -> Iterator[tuple[str, Span]]:
        """The values that the script gives a variable of the environment, and where."""
        for statement in self._script.statements if self._has(key) else ():
            node = statement.node
            if isinstance(node, ast.Assign) and any(_key(each) == key for each in node.targets):
                for value in self._names.values(node.value, statement.scope, statement):
                    if isinstance(value, Literal) and isinstance(value.value, str):
                        yield value.value, self._script.statement_span(statement)
        for site in self._script.sites_named(*_SETTING):
            for given in _given(site, key):
                for value in self._names.site_values(given, site):
                    if isinstance(value, Literal) and isinstance(value.value, str):
                        yield value.value, self._script.span(site.node, site)

    @cached_property
    def _all(self) -> list[Sign]:
        found = (*self._imported, *self._called, *self._flag, *self._distributed)
        return [each for each in found if each is not None]

    @cached_property
    def _imports(self) -> list[tuple[str, str, int]]:
        """Of each import the package, the name as it is written, and where."""
        found = []
        for each in self._script.imports:
            node = each.statement.node if each.statement is not None else None
            is_own = isinstance(node, ast.ImportFrom) and node.level > 0
            if (
                isinstance(node, ast.Import | ast.ImportFrom)
                and isinstance(each.target, ast.alias)
                and not is_own
            ):
                of = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                written = f"{of}.{each.target.name}".lstrip(".")
                assert each.statement is not None
                start = self._script.statement_span(each.statement).start
                found.append((written.partition(".")[0], written, start))
        return found

    @property
    def _imported(self) -> list[Sign | None]:
        found: list[Sign | None] = []
        for package, written, start in self._imports:
            which = _LIBRARIES.get(package) or _which(f"{written}.")
            if which:
                found.append(self._sign(which, written, start))
        return found

    @property
    def _called(self) -> list[Sign | None]:
        found: list[Sign | None] = []
        for site in self._script.sites if self._has("keras") else ():
            if _TELLING.isdisjoint(_attributes(site.node.func)):
                continue
            for name in self._names.full_names(site.node.func, site.scope, site.statement):
                if which := _which(name):
                    start = self._script.span(site.node, site).start
                    found.append(self._sign(which, ast.unparse(site.node.func), start))
        return found

    @property
    def _flag(self) -> list[Sign | None]:
        """The flag by which TensorFlow takes `tf_keras`, unless the script sets it off."""
        is_off = any(value in _OFF for value, _ in self._settings(FLAG))
        return [self._set(FLAG, KERAS_LEGACY)] if not is_off else []

    def _set(self, word: str, keras: str) -> Sign | None:
        """What speaks of a variable of the environment."""
        return self._sign(keras, word, self._script.source.text.index(word)) if self._has(word) else None

    @property
    def _distributed(self) -> list[Sign]:
        """What an earlier conversion has written for Keras 3 alone."""
        calls = (site for site, _ in self._own.distributed)
        return [self._sign(KERAS_3, site.name, self._script.span(site.node, site).start) for site in calls]

    def _has(self, word: str) -> bool:
        return word in self._script.source.text

    def _sign(self, keras: str, shown: str, start: int) -> Sign:
        script, at = self._script.at(start)
        return Sign(keras, shown, script.path, script.source.position(at)[0])


def _which(name: str) -> str:
    """The Keras that alone has a full name; "" for one that both have."""
    match = _ALONE.fullmatch(name) if name.startswith(("keras.", "tensorflow.")) else None
    if match is None:
        return ""
    if match[1].startswith(_OF_2):
        return KERAS_2
    return KERAS_3 if match[1].startswith(_OF_3) else ""


def _attributes(node: ast.expr) -> Iterator[str]:
    """The attributes of a (dotted) expression, the last one first."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value


def _given(site: Site, key: str) -> Iterator[ast.expr]:
    """What a call may set a variable of the environment to."""
    first = argument(site.node, 0)
    if site.name == "set_backend":
        given = {_BACKEND: first}
    elif site.name == "update":
        given = {word.arg or "": word.value for word in site.node.keywords}
        if isinstance(first, ast.Dict):
            given |= {_text(name): value for name, value in zip(first.keys, first.values, strict=True)}
    else:
        given = {_text(first): argument(site.node, 1)}
    if (found := given.get(key)) is not None:
        yield found


def _text(node: ast.expr | None) -> str:
    """What a constant says; "" for anything else."""
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _key(node: ast.expr) -> str:
    """The constant key of ``os.environ["..."]``; "" for anything else."""
    return _text(node.slice) if isinstance(node, ast.Subscript) else ""
