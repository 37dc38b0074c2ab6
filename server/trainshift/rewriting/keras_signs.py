"""Signs: by which Keras a script is written, told by what only one of the two has (spec.md 8)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from trainshift.core.choices import KERAS_2, KERAS_3
from trainshift.core.lazy import cached_property
from trainshift.core.program import Program
from trainshift.core.ranks.work.own_horovod import OwnHorovod
from trainshift.core.text.facts import argument
from trainshift.core.text.source import Span

TENSORFLOW = "tensorflow"
"""The backend of Keras 3 that Horovod works with."""
# Modules and classes of Keras that one of the two has alone, below `keras.`.
_OF_3 = (
    "ops.",
    "random.",
    "tree.",
    "distribution.",
    "export.",
    "Variable",
    "utils.PyDataset",
    "KerasTensor.",
)
_OF_2 = ("optimizers.legacy.", "optimizers.experimental.", "experimental.", "layers.experimental.")
_LIBRARIES = {"tf_keras": KERAS_2, "keras_hub": KERAS_3}
_ALONE = re.compile(r"(?:.*\.)?keras\.(?!src\.)(.*)")
_BACKEND, _FLAG = "KERAS_BACKEND", "TF_USE_LEGACY_KERAS"
_SETTING = ("setdefault", "putenv", "set_backend")


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
        return next((each for each in self._all if each.keras == KERAS_2), None)

    @cached_property
    def of_3(self) -> Sign | None:
        """The first sign of Keras 3."""
        return next((each for each in self._all if each.keras == KERAS_3), None)

    @cached_property
    def backend(self) -> tuple[str, Span]:
        """The backend of Keras 3 that the script sets, and where; "" where it sets none."""
        for statement in self._script.statements if self._has(_BACKEND) else ():
            node = statement.node
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                if any(_key(each) == _BACKEND for each in node.targets):
                    return str(node.value.value), self._script.statement_span(statement)
        for site in self._script.sites_named(*_SETTING):
            of_config = site.name == "set_backend"
            key = argument(site.node, 0)
            given = key if of_config else argument(site.node, 1)
            if of_config or (isinstance(key, ast.Constant) and key.value == _BACKEND):
                if isinstance(given, ast.Constant):
                    return str(given.value), self._script.span(site.node, site)
        return "", Span(0, 0)

    @cached_property
    def _all(self) -> list[Sign]:
        found = (*self._imported, *self._called, *self._set, *self._distributed)
        return [each for each in found if each is not None]

    @property
    def _imported(self) -> list[Sign | None]:
        found: list[Sign | None] = []
        for each in self._script.imports:
            which = _LIBRARIES.get(each.full_name.partition(".")[0]) or _which(f"{each.full_name}.")
            if which and each.statement is not None:
                found.append(
                    self._sign(which, each.full_name, self._script.statement_span(each.statement).start)
                )
        return found

    @property
    def _called(self) -> list[Sign | None]:
        found: list[Sign | None] = []
        for site in self._script.sites if self._has("keras") else ():
            text = ast.unparse(site.node.func) if isinstance(site.node.func, ast.Attribute) else ""
            if not any(f".{each}" in f"{text}." for each in (*_OF_2, *_OF_3)):
                continue
            for name in self._names.full_names(site.node.func, site.scope, site.statement):
                if which := _which(name):
                    start = self._script.span(site.node, site).start
                    found.append(self._sign(which, text, start))
        return found

    @property
    def _set(self) -> list[Sign | None]:
        """What the script sets in the environment."""
        found: list[Sign | None] = []
        for word, which in ((_FLAG, KERAS_2), (_BACKEND, KERAS_3)):
            if self._has(word):
                found.append(self._sign(which, word, self._script.source.text.index(word)))
        return found

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


def _key(node: ast.expr) -> str:
    """The constant key of ``os.environ["..."]``; "" for anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""
