"""Estimators: their creation in a script, and the optimizers of ready-made ones.

The names and defaults of ready-made Estimators are those of the installed `tensorflow_estimator`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.core.reasons import in_stars
from trainshift.libraries import api
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.values import Function, Library, Literal, UserInstance, Value
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Scope, Site, argument, hides_arguments
from trainshift.training.execution.graph_slice import is_reached
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.optimizers.graphs import Graphs

_V1 = "tensorflow.compat.v1."
# Names that TensorFlow 2 has only under `compat.v1`, if at all.
_TENSORFLOW_1 = tuple(
    f"tensorflow.{name}."
    for name in ("app", "contrib", "estimator.inputs", "flags", "gfile", "layers", "logging")
)  # fmt: skip
_CUSTOM = ("tensorflow.estimator.Estimator", "tensorflow.compat.v1.estimator.Estimator")
_OPTIMIZERS = ("optimizer", "dnn_optimizer", "linear_optimizer")
# The meaning of a name in the Estimators of TensorFlow 1 and in those of TensorFlow 2.
_CLASSES = {
    "Adagrad": ("AdagradOptimizer", "Adagrad"),
    "Adam": ("AdamOptimizer", "Adam"),
    "Ftrl": ("FtrlOptimizer", "Ftrl"),
    "RMSProp": ("RMSPropOptimizer", "RMSprop"),
    "SGD": ("GradientDescentOptimizer", "SGD"),
}
# The rate of an optimizer that is given by name, by the Estimator's family and argument; None: the class's
# own.
_RATES = (
    ("DNNLinearCombined", "dnn_optimizer", "0.001", "0.001"),
    ("DNNLinearCombined", "linear_optimizer", "0.005", "0.005"),
    ("DNN", "optimizer", "0.05", None),
    ("Linear", "optimizer", "0.2", "0.2"),
    ("Baseline", "optimizer", "0.3", "0.3"),
)


class Canned(Struct, frozen=True, eq=False):
    """An optimizer that a ready-made Estimator gets by name, or by default.

    `word` is the argument, `node` the expression of the name (None for the default), `name` its value;
    `module`, `cls` and `rate` are its meaning.
    """

    word: str
    node: ast.expr | None
    name: str
    module: str
    cls: str
    rate: str


class Made(Struct, frozen=True, eq=False):
    """A call that creates an Estimator of the class `cls`; `reason` is the reason why it cannot be
    converted.
    """

    site: Site
    cls: str
    canned: tuple[Canned, ...] = ()
    reason: str = ""

    def given(self, word: str) -> ast.expr | None:
        """An argument, by keyword or by its position."""
        signature = api.constructor(self.cls)
        return argument(self.site.node, signature.position(word) if signature else None, word)


class Estimators:
    """The Estimators of one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def is_used(self) -> bool:
        """Return whether the script trains an Estimator."""
        return any(loop.pattern is Pattern.ESTIMATOR for loop in self._program.fact(Loops).own)

    @cached_property
    def made(self) -> list[Made]:
        """The calls that create Estimators, in a script that trains one."""
        found = []
        for site in self._script.sites if self.is_used else ():
            for value in self._names.callee(site):
                name = api.canonical(value.name) if isinstance(value, Library) else None
                if name and api.is_subclass(name, *api.ESTIMATOR):
                    found.append(self._read(site, name))
                    break
                if name and name.endswith(".model_to_estimator"):
                    reason = "model_to_estimator copies the optimizer, and the copy is not wrapped"
                    found.append(Made(site, name, reason=reason))
                    break
        return found

    @cached_property
    def optimizers(self) -> list[tuple[ast.expr, Site]]:
        """The optimizer objects (not names) passed to ready-made Estimators and heads."""
        found = [(given, site) for site, given in self._specs]
        for made in self.made:
            named = {each.word for each in made.canned}
            for word in self._words(made.cls):
                given = made.given(word)
                if given is not None and word not in named and not made.reason:
                    found.append((given, made.site))
        return found

    def name(self, made: Made, word: str) -> str:
        """The name for an optimizer created before its Estimator: a different one for each."""
        places = [
            each
            for each in self.made
            if any(canned.word == word for canned in each.canned) or self._own_name(each, word)
        ]
        ours = {name for each in places if (name := self._own_name(each, word))}
        taken = self._script.identifiers - ours
        free = (
            name
            for number in range(1, len(taken) + len(places) + 1)
            if (name := word if number == 1 else f"{word}_{number}") not in taken
        )
        names = dict(zip((each.site for each in places), free, strict=False))
        return names[made.site]

    def _own_name(self, made: Made, word: str) -> str:
        """The name that an earlier rewrite has given to an optimizer before its Estimator."""
        given = made.given(word)
        before = self._script.preceding(made.site.statement)
        while isinstance(given, ast.Name) and before is not None and isinstance(before.node, ast.Assign):
            value = before.node.value
            wrapped = isinstance(value, ast.Call) and self._program.fact(Horovod).is_call(
                self._script.site_of(value), "DistributedOptimizer"
            )
            if not wrapped:
                break
            if any(isinstance(each, ast.Name) and each.id == given.id for each in before.node.targets):
                return given.id if self._script.loads(given.id) == 1 else ""
            before = self._script.preceding(before)
        return ""

    def _words(self, cls: str) -> list[str]:
        signature = api.constructor(cls)
        return [word for word in _OPTIMIZERS if signature is not None and signature.parameter(word)]

    def _read(self, site: Site, cls: str) -> Made:
        words = self._words(cls)
        if not words and cls not in _CUSTOM:
            return Made(
                site, cls, reason=f"{cls.rpartition('.')[2]} is given no optimizer that could be wrapped"
            )
        made = Made(site, cls)
        if cls in _CUSTOM and (reason := self._hidden_training(made)):
            return Made(site, cls, reason=reason)
        canned = []
        for word in words:
            given = made.given(word)
            if given is None:
                if hides_arguments(site.node):
                    return Made(site, cls, reason=in_stars(f"its {word} may be"))
                if not self._uses(made, word):
                    continue
            literals = self._literals(made, word)
            if literals is None:
                continue
            if len(literals) != 1 or not literals <= _CLASSES.keys():
                return Made(
                    site,
                    cls,
                    reason=f"its {word} is a name that the script does not show; give it an optimizer",
                )
            (name,) = literals
            known = self._meaning(cls, word, name)
            if known is None:
                last = cls.rpartition(".")[2]
                return Made(
                    site,
                    cls,
                    reason=f"Trainshift does not know {word}={name!r} of {last}; give it an optimizer",
                )
            canned.append(Canned(word, given, name, *known))
        return Made(site, cls, tuple(canned))

    # Training inside a `model_fn`

    def _hidden_training(self, made: Made) -> str:
        """The reason why the training of an Estimator may not be averaged; empty if it is."""
        given = made.given("model_fn")
        if given is None:
            return "Trainshift cannot find its model_fn among the arguments; name it in the call"
        text = one_line(self._script.text(given, made.site))
        values = self._names.site_values(given, made.site)
        functions = [self._function(value) for value in values]
        if not functions or None in functions:
            return f"Trainshift cannot find the function {text}, which trains; keep it in this project"
        if not all(function is not None and self._averages(function) for function in functions):
            return f"Trainshift cannot find the optimizer of {text}; keep what makes it in this project"
        return ""

    def _function(self, value: Value) -> Scope | None:
        if isinstance(value, UserInstance):
            return self._names.function_named(value.scope, "__call__")
        return value.scope if isinstance(value, Function) else None

    def _averages(self, function: Scope) -> bool:
        """Return whether gradients are averaged in a function, its callees, or the code that uses its
        result.
        """
        wanted = self._program.fact(Graphs).averaging.union(site.node for site, _ in self._specs)

        def called(current: Scope) -> Iterator[Scope]:
            return (
                each for site in self._inside.get(current, ()) for each in self._names.called_functions(site)
            )

        for current in reachable([function], called):
            if any(site.node in wanted for site in self._inside.get(current, ())):
                return True
        calls = dict.fromkeys(wanted)
        return any(is_reached(self._script, calls, node, function, where) for node, where in function.returns)

    @cached_property
    def _inside(self) -> dict[Scope, list[Site]]:
        """The calls in each function, including those in its inner functions."""
        found: dict[Scope, list[Site]] = {}
        for site in self._script.sites:
            scope: Scope | None = site.scope
            while scope is not None:
                if scope.kind == "function":
                    found.setdefault(scope, []).append(site)
                scope = scope.parent
        return found

    @cached_property
    def _specs(self) -> list[tuple[Site, ast.expr]]:
        """The calls by which a head creates the training operation, and their optimizers."""
        found = []
        for site in self._script.sites_named("create_estimator_spec") if self.is_used else ():
            given = argument(site.node, 4, "optimizer")
            own = any(isinstance(value, Function) for value in self._names.callee(site))
            if given is not None and not own:
                found.append((site, given))
        return found

    # Ready-made Estimators

    def _uses(self, made: Made, word: str) -> bool:
        """Return whether the model has the part that the optimizer is for."""
        if word == "optimizer":
            return True
        return made.given(f"{word.removesuffix('_optimizer')}_feature_columns") is not None

    def _literals(self, made: Made, word: str) -> set[str] | None:
        """The possible names of the optimizer argument; None if it is an object."""
        given = made.given(word)
        if given is None:
            signature = api.constructor(made.cls)
            parameter = signature.parameter(word) if signature is not None else None
            return {str(ast.literal_eval(parameter.default))} if parameter and parameter.default else set()
        values = self._names.site_values(given, made.site)
        literals = {value.value for value in values if isinstance(value, Literal)}
        if not literals:
            return None
        return {str(each) for each in literals} if len(literals) == len(values) else set()

    @cached_property
    def _is_of_tensorflow_1(self) -> bool:
        """Return whether the script uses names that `tensorflow` has only in TensorFlow 1."""
        names = (
            value.name
            for site in self._script.sites
            for value in self._names.callee(site)
            if isinstance(value, Library) and value.name.startswith("tensorflow.")
        )
        return any(
            name.startswith(_TENSORFLOW_1)
            or (not name.startswith(_V1) and (api.canonical(name) or "").startswith(_V1))
            for name in names
        )

    def _meaning(self, cls: str, word: str, name: str) -> tuple[str, str, str] | None:
        """The module, the class and the rate for a name."""
        old = cls.startswith(_V1) or self._is_of_tensorflow_1
        for family, argument_name, first, second in _RATES:
            if cls.rpartition(".")[2].startswith(family) and argument_name == word:
                rate = first if old else second
                if rate is None:
                    signature = api.constructor(f"tensorflow.keras.optimizers.legacy.{_CLASSES[name][1]}")
                    parameter = signature.parameter("learning_rate") if signature is not None else None
                    rate = parameter.default if parameter is not None else None
                if rate is None:
                    return None
                module = "train" if old else "keras.optimizers.legacy"
                return module, _CLASSES[name][0 if old else 1], rate
        return None
