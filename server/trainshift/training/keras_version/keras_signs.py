"""Signs of the Keras version that a script is written for: names that only one version has (spec.md 8)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_LEGACY
from trainshift.core.program import Program
from trainshift.libraries import api, keras_signs
from trainshift.python.lazy import cached_property
from trainshift.python.names.expressions import ExpressionsByKind
from trainshift.python.names.values import Instance, texts
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, Site, argument, last_name
from trainshift.training.horovod.own_horovod import OwnHorovod

TENSORFLOW = "tensorflow"
"""The backend of Keras 3 that Horovod works with."""
_LIBRARIES = {
    "tf_keras": KERAS_LEGACY,
    "keras_hub": KERAS_3,
    "segmentation_models": KERAS_2,
    "tensorflow_addons": KERAS_2,
}
_TENSORFLOWS = re.compile(r"\b(?:tf|tensorflow)\.keras\b|tensorflow import .*\bkeras\b|tf_keras")
# File and method names that only Keras 3 uses, or that it introduced; and names that only Keras 2 uses.
# "tf.keras" is the name of a module, not of a file.
_NEW_NAMES = re.compile(
    r"""(?<![\w/.{}:-])(?!(?:tf|tensorflow)(?:\.\w+)*\.keras["'])[\w/.{}:-]*\.(?:weights\.h5|keras)["']|\bscale_loss(?=\()"""
)
_OLD_NAMES = re.compile(
    r"""(?<!\.weights)\.h5["']|\.reset_states\(|\b(?:optimizer|opt)\.lr\b|\bget_(?:un)?scaled_\w+\("""
)
_BACKEND, FLAG = "KERAS_BACKEND", "TF_USE_LEGACY_KERAS"
_OFF = ("0", "false", "False", "")
_SETTING = ("setdefault", "putenv", "update", "set_backend")


class Sign(Struct, frozen=True):
    """A sign that a program is written for the version `keras`: the code `shown`, at a 1-based `line` of a
    file.
    """

    keras: str
    shown: str
    path: str
    line: int

    @property
    def told(self) -> str:
        """The sign in words."""
        return f"line {self.line} uses {self.shown}"


class KerasSigns:
    """The signs in the files of one program of the Keras that they are written for."""

    def __init__(self, program: Program) -> None:
        self._program = program
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
        """The first plain import of `keras`, which is Keras 3 from TensorFlow 2.16 on."""
        found = (each for each in self._imports if each[0] == "keras")
        return next((self._sign(KERAS_3, name, start) for _, name, start in found), None)

    @property
    def names_tensorflows(self) -> bool:
        """Return whether the script also names the Keras that TensorFlow has."""
        return _TENSORFLOWS.search(self._script.source.text) is not None

    @property
    def sets_flag(self) -> bool:
        """Return whether the script has TensorFlow take `tf_keras` itself."""
        return any(value not in _OFF for value, _ in self._settings(FLAG))

    @cached_property
    def of_3(self) -> Sign | None:
        """The first sign of Keras 3."""
        return next((each for each in self._all if each.keras == KERAS_3), None)

    @cached_property
    def of_backend(self) -> Sign | None:
        """A setting of the Keras backend; Keras 2 ignores it, so it is a weak sign."""
        return self._set(_BACKEND, KERAS_3)

    @cached_property
    def of_names(self) -> Sign | None:
        """The first weak sign, which decides only without others: the names of files and of a few methods."""
        for first, keras in ((_first_old_name, KERAS_2), (_first_new_name, KERAS_3)):
            for chunk in self._script.code.pieces:
                if (found := chunk.facts.once(first)) is not None:
                    return self._sign(keras, found[0].strip("\"'.("), chunk.offset + found.start())
        return None

    @cached_property
    def backend(self) -> tuple[str, Span]:
        """The Keras 3 backend that the script sets, and the place; "" if it sets none."""
        return next(self._settings(_BACKEND), ("", Span(0, 0)))

    def _settings(self, key: str) -> Iterator[tuple[str, Span]]:
        """Yield the values that the script assigns to an environment variable, and the places."""
        for statement in self._script.statements if self._has(key) else ():
            node = statement.node
            if isinstance(node, ast.Assign) and any(_key(each) == key for each in node.targets):
                for text in texts(self._names.values(node.value, statement.scope, statement)):
                    yield text, self._script.statement_span(statement)
        for site in self._script.sites_named(*_SETTING):
            for given in _given(site, key):
                for text in texts(self._names.site_values(given, site)):
                    yield text, self._script.span(site.node, site)

    @cached_property
    def _all(self) -> list[Sign]:
        found = (*self._imported, *self._named, *self._called, *self._flag, *self._distributed)
        return [each for each in found if each is not None]

    @cached_property
    def _imports(self) -> list[tuple[str, str, int]]:
        """The package, the name as written, and the line of each import."""
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
            which = _LIBRARIES.get(package) or keras_signs.of_name(written)
            if which:
                found.append(self._sign(which, written, start))
        return found

    @property
    def _named(self) -> list[Sign]:
        """The names that only one of the two versions has, in the order of the text."""
        if not self._has("keras") or keras_signs.telling().isdisjoint(self._script.identifiers):
            return []
        found: dict[int, Sign] = {}
        within: set[ast.expr] = set()  # Part of a longer name that was already examined.
        for at in self._program.fact(ExpressionsByKind).of(ast.Attribute, ast.Name):
            parts = [*_parts(at.node)]
            if at.node in within or not any(last_name(each) in keras_signs.telling() for each in parts):
                continue
            within.update(parts)
            for name in self._names.full_names(at.node, at.scope, at.statement):
                if which := keras_signs.of_name(name):
                    start = self._script.span(at.node, at.statement or at.scope).start
                    found[start] = self._sign(which, ast.unparse(at.node), start)
        return [found[start] for start in sorted(found)]

    @property
    def _called(self) -> Iterator[Sign]:
        """The calls with parameters or methods that only one of the two versions has."""
        telling = keras_signs.telling()
        for site in self._script.sites if self._has("keras") else ():
            given = [word.arg for word in site.node.keywords if word.arg in telling]
            names = self._names.full_names(site.node.func, site.scope, site.statement) if given else ()
            for name in names:
                for word in given:
                    if which := keras_signs.of_parameters(name, [word]):
                        yield self._sign(which, f"{word}=", self._script.span(site.node, site).start)
            if site.name in telling and (which := self._of_method(site)):
                yield self._sign(which, f".{site.name}()", self._script.span(site.node, site).start)

    def _of_method(self, site: Site) -> str:
        """The only Keras version whose objects have the called method; "" if there is no such sign."""
        if not isinstance(site.node.func, ast.Attribute):
            return ""
        owner = site.node.func.value
        if isinstance(owner, ast.Attribute) and owner.attr == "optimizer":
            models = self._names.values(owner.value, site.scope, site.statement)
            if models and all(self._names.is_a(each, *api.MODEL) for each in models):
                return keras_signs.of_method(api.OPTIMIZERS[0], site.name)
        values = self._names.values(owner, site.scope, site.statement)
        found = {
            keras_signs.of_method(value.cls, site.name) if isinstance(value, Instance) else ""
            for value in values
        }
        return found.pop() if len(found) == 1 else ""

    @property
    def _flag(self) -> list[Sign | None]:
        """The flag that makes TensorFlow use `tf_keras`, unless the script unsets it."""
        is_off = any(value in _OFF for value, _ in self._settings(FLAG))
        return [self._set(FLAG, KERAS_LEGACY)] if not is_off else []

    def _set(self, word: str, keras: str) -> Sign | None:
        """A sign in the setting of an environment variable."""
        return self._sign(keras, word, self._script.source.text.index(word)) if self._has(word) else None

    @property
    def _distributed(self) -> list[Sign]:
        """The code that an earlier conversion wrote for Keras 3 only."""
        calls = (site for site, _ in self._own.distributed)
        return [self._sign(KERAS_3, site.name, self._script.span(site.node, site).start) for site in calls]

    def _has(self, word: str) -> bool:
        return word in self._script.source.text

    def _sign(self, keras: str, shown: str, start: int) -> Sign:
        script, at = self._script.at(start)
        return Sign(keras, shown, script.path, script.source.position(at)[0])


def _first_old_name(facts: ChunkSyntax) -> re.Match[str] | None:
    return _OLD_NAMES.search(facts.text)


def _first_new_name(facts: ChunkSyntax) -> re.Match[str] | None:
    return _NEW_NAMES.search(facts.text)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """A dotted name and its prefixes, longest first."""
    yield node
    while isinstance(node, ast.Attribute):
        node = node.value
        yield node


def _given(site: Site, key: str) -> Iterator[ast.expr]:
    """Yield the values that a call may set an environment variable to."""
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
    """The text of a string constant; "" for anything else."""
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _key(node: ast.expr) -> str:
    """The constant key of ``os.environ["..."]``; "" for anything else."""
    return _text(node.slice) if isinstance(node, ast.Subscript) else ""
