"""Loop reader: finds the training loops of one script, each with its model, optimizer and tape."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.common import ROOTS, is_common
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.names.values import (
    Function,
    Instance,
    Library,
    Literal,
    Member,
    Unknown,
    UserInstance,
    Value,
    Values,
)
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted
from trainshift.training.execution.executions import Executions, of_super
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.execution.origins import Origins
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.agents import Agents
from trainshift.training.loops.loop_kinds import FITTING, Loop, Pattern, is_loop, outermost_loop
from trainshift.training.loops.overrides import hands_on, is_handed_on
from trainshift.training.loops.session_loops import SessionLoops
from trainshift.training.loops.step_names import STEPPING
from trainshift.training.loops.steps import APPLY, Step, Steps

# Functions that take gradients by a tape of their own, and the TensorFlow 1 modules that had the others.
_TAKING = (
    "compute_gradients", "implicit_gradients", "implicit_value_and_gradients", "gradients_function",
    "value_and_gradients_function",
)  # fmt: skip
_CONTRIBUTED = "tensorflow.contrib.eager."
_ASSIGNING = ("assign", "assign_sub", "assign_add")
_FIT_KEYWORDS = frozenset(
    {
        "epochs", "batch_size", "validation_data", "validation_split", "callbacks", "steps_per_epoch",
        "validation_steps", "initial_epoch", "class_weight", "nb_epoch",
    }
)  # fmt: skip
# Methods of library objects that train a model by a `fit` of their own.
_TRAINERS = {"keras_tuner": "search", "kerastuner": "search", "autokeras": "fit", "scikeras": "fit"}
# Classes that wrap a model for scikit-learn, from Keras and its successors.
_WRAPPERS = ("KerasClassifier", "KerasRegressor")
# A Keras class with a `fit` that is neither recorded nor a model.
_GENERATOR = "ImageDataGenerator"
# Methods that a function replaces to make a model average.
_REPLACED = ("apply", "apply_gradients", "optimizer")
_COMPILE_KEYWORDS = frozenset({"optimizer", "loss", "metrics"})


def candidates(script: Script) -> list[Site]:
    """The calls that may train, judged only by the names of the methods."""
    names = (*FITTING, *STEPPING, *_ASSIGNING, *_WRAPPERS, "search", "train", "train_and_evaluate", "run")
    return list(script.sites_named(*names, APPLY))


def unseen_trainings(program: Program, root: Program) -> list[Site]:
    """The calls of `train` on objects of unknown classes, which may be Estimators."""
    return list(_Reader(program, root).unseen())


def read_loops(program: Program, root: Program) -> list[Loop]:
    """The loops in one script, by pattern: one for each outermost loop statement."""
    reader = _Reader(program, root)
    merged: dict[tuple[Pattern, bool, Statement, Scope | None], Loop] = {}
    for loop in reader.read():
        home = None if is_loop(loop.statement) else loop.function
        key = (loop.pattern, loop.likely, loop.statement, home)
        known = merged.setdefault(key, loop)
        if known is not loop:
            known.sites += loop.sites
            known.models += [each for each in loop.models if each not in known.models]
            known.optimizers += loop.optimizers
            known.tapes += [tape for tape in loop.tapes if tape not in known.tapes]
    return sorted(merged.values(), key=lambda loop: program.script.span(loop.sites[0].node, loop.sites[0]))


class _Reader:
    """Reads the loops of one script of a program."""

    def __init__(self, program: Program, root: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._root = root
        self._graphs = SessionLoops(program, root)

    def read(self) -> Iterator[Loop]:
        yield from self._tapes()
        yield from self._fits()
        yield from self._trainers()
        yield from self._agents()
        yield from self._estimators()
        yield from self._graphs.sessions()
        yield from self._minimizers()
        yield from self._hidden_tapes()
        yield from self._by_hand()

    # GradTape

    def _tapes(self) -> Iterator[Loop]:
        for step in self._program.fact(Steps).steps:
            site = step.site
            if self._is_of_custom_step(site) or self._program.fact(Steps).is_optimizers_own(site.scope):
                continue
            receiver = self._names.site_values(step.receiver, site)
            tf1 = self._names.may_be(receiver, *api.TF1_OPTIMIZER)
            reduced = step.reduced and bool(self._program.fact(Steps).tapes)
            if not step.gradients and not reduced:
                if (
                    tf1
                    or self._graphs.uses_sessions
                    or next(self._script.sites_named("compute_gradients"), None)
                ):
                    continue
            pattern = Pattern.GRAD_TAPE if self._is_fed(step) else Pattern.UNKNOWN
            tapes = list(dict.fromkeys(tape for each in step.gradients for tape in each.tapes))
            models = [Occurrence(model, site.scope, site.statement) for model in step.models]
            if not models and step.pairs is not None:
                models = list(self._variable_owners(step))
            yield Loop(
                pattern, self._script, [site], self._around(site), models,
                [Occurrence(step.receiver, site.scope, site.statement)], tapes,
            )  # fmt: skip

    def _is_fed(self, step: Step) -> bool:
        if step.gradients or step.reduced:
            return True
        workspace = self._script.workspace
        if step.pairs is None or workspace is None:
            return False
        wanted = {
            gradient.site.node: gradient
            for script in workspace.reachable
            if next(script.sites_named("GradientTape"), None)
            for gradient in self._root.linked(script).fact(Steps).gradients
        }
        found = self._program.fact(Steps).reaching(step, wanted)
        return bool(wanted) and bool(found)

    def _is_of_custom_step(self, site: Site) -> bool:
        return self._program.fact(Executions).custom_model(site.scope) is not None

    def _variable_owners(self, step: Step) -> Iterator[Occurrence]:
        """Yield the models after which the variables are named, if there may be others."""
        found = self._program.fact(Steps).variables(step)
        if found is None:
            return
        node, scope, statement = found
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr.startswith(
                ("trainable_", "variables", "weights")
            ):
                yield Occurrence(part.value, scope, statement)

    # Optimizer

    def _fits(self) -> Iterator[Loop]:
        for site in self._script.sites_named(*FITTING):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or site in self._hidden_fits:
                continue
            if self._is_own(self._names.callee(site)) or is_handed_on(self._script, site):
                continue
            values = self._fitted(function.value, site)
            known = self._names.may_be(values, *api.MODEL) or any(map(_is_loaded_by_horovod, values))
            if not known and not self._may_be_model(values):
                continue
            # Models of TensorFlow outside its own Keras are not models that Horovod's Keras can train.
            inner = any(
                isinstance(value, Instance) and value.cls.startswith("tensorflow.") for value in values
            )
            likely = known or (not inner and self._looks_like_fit(site, function.value))
            if self._is_of_custom_step(site) and dotted(function.value) == "self":
                continue
            place = Occurrence(function.value, site.scope, site.statement)
            if self._is_alone(site, place):
                continue
            yield Loop(
                Pattern.OPTIMIZER, self._script, [site], self._around(site), [place],
                list(self._compiled_with(site)), certain=known, likely=likely,
            )  # fmt: skip

    def _is_alone(self, fit: Site, model: Occurrence) -> bool:
        """Return whether only rank 0 fits a model, without Horovod."""
        horovod, creations = self._program.fact(Horovod), self._root.fact(Origins).creations
        if not horovod.site_on_root(fit):
            return False
        wraps = {each.node: each for each in horovod.calls("DistributedOptimizer", "load_model")}
        used = (model, *self._compiled_with(fit))
        if any(reaching_calls(self._script, wraps, *each[:3]) for each in used) or self._is_told(model):
            return False
        others = [
            Occurrence(site.node.func.value, site.scope, site.statement)
            for site in self._script.sites_named(*FITTING)
            if isinstance(site.node.func, ast.Attribute) and not horovod.site_on_root(site)
        ]
        made = creations(model)
        return bool(made) and all(made.isdisjoint(creations(each)) for each in others)

    def _is_told(self, model: Occurrence) -> bool:
        """Return whether a model is passed to a function that averages its gradients by replacing its
        optimizer's method.
        """
        name = dotted(model.node)
        replaced = (each for part in _REPLACED for each in self._script.attribute_bindings(part))
        replacing = {each.binding.scope.function() for each in replaced}
        return any(
            dotted(given) == name != "" and not around.isdisjoint(self._names.called_functions(call))
            for site in (self._program.fact(Horovod).calls("allreduce") if replacing else ())
            if not replacing.isdisjoint(around := {*site.scope.functions()})
            for call in self._script.sites
            for given in call.node.args
        )

    def _is_own(self, called: Values) -> bool:
        """Return whether the callee is a function of the script, and not possibly a model's."""
        own = [each.scope for each in called if isinstance(each, Function)]
        return not all(hands_on(self._script, each) for each in own) and not any(
            isinstance(value, Member) and self._names.is_a(value.owner, *api.MODEL) for value in called
        )

    def _fitted(self, receiver: ast.expr, site: Site) -> Values:
        """The possible objects of a `fit` call; ``super()`` is an object of the class around it."""
        owner = class_around(site.scope) if of_super(site) else None
        if owner is not None:
            return frozenset({UserInstance(owner, None)})
        return self._names.site_values(receiver, site)

    def _may_be_model(self, values: Values) -> bool:
        """Return whether the object of a `fit` call may be a Keras model."""
        known = [value for value in values if isinstance(value, Instance | Library)]
        if not self._imports_tensorflow or not all(map(self._is_unseen, known)):
            return False
        return not values or any(self._is_unseen(value) for value in values)

    def _is_unseen(self, value: Value) -> bool:
        """Return whether the script does not show the class of an object."""
        if isinstance(value, Member):
            return isinstance(value.owner, UserInstance) or self._is_unseen(value.owner)
        if isinstance(value, Instance):
            return is_strange(value.cls)
        if isinstance(value, Library):  # an object that a module holds, not the module
            return "." in value.name and (is_strange(value.name) or api.is_subclass(value.name, *api.MODEL))
        if isinstance(value, UserInstance):
            own = [each for each in self._names.ancestry(value.scope) if isinstance(each, Scope)]
            return (
                any(map(is_strange, self._names.library_bases(value.scope)))
                or any("__getattr__" in cls.bindings for cls in own)
                or any(
                    isinstance(each, Unknown)
                    for cls in own
                    if isinstance(cls.node, ast.ClassDef)
                    for base in cls.node.bases
                    for each in self._names.values(base, cls.parent or cls, cls.statement)
                )
            )
        return isinstance(value, Unknown)

    def _looks_like_fit(self, site: Site, receiver: ast.expr) -> bool:
        """Return whether an unknown object is fitted as only a Keras model is."""
        if site.name != "fit" or any(word.arg in _FIT_KEYWORDS for word in site.node.keywords):
            return True
        name = dotted(receiver)
        return bool(name) and any(
            dotted(each.node.func.value) == name
            for each in self._script.sites_named("compile")
            if isinstance(each.node.func, ast.Attribute)
            and (
                any(word.arg in _COMPILE_KEYWORDS for word in each.node.keywords)
                or self._is_given_optimizer(each)
            )
        )

    def _is_given_optimizer(self, compile: Site) -> bool:
        """Return whether the first argument of a call is an optimizer, or the name of one."""
        given = argument(compile.node, 0)
        values = self._names.site_values(given, compile) if given is not None else ()
        return any(
            api.keras_optimizer(value.value) is not None
            if isinstance(value, Literal) and isinstance(value.value, str)
            else self._names.is_a(value, *api.OPTIMIZERS)
            for value in values
        )

    @cached_property
    def _imports_tensorflow(self) -> bool:
        scripts = (self._script, self._root.script)
        roots = {binding.full_name.partition(".")[0] for script in scripts for binding in script.imports}
        return not roots.isdisjoint({"tensorflow", "keras"})

    def _compiled_with(self, fit: Site) -> Iterator[Occurrence]:
        """The optimizers that the fitted model is compiled with."""
        assert isinstance(fit.node.func, ast.Attribute)
        place = Occurrence(fit.node.func.value, fit.scope, fit.statement)
        model, name = self._root.fact(Origins).of(place), dotted(place.node)
        for site, compiled, creations in self._compiles:
            is_known = None not in model | creations
            if not model.isdisjoint(creations - {None}) or (compiled == name != "" and not is_known):
                given = argument(site.node, 0, "optimizer")
                if given is not None:
                    yield Occurrence(given, site.scope, site.statement)

    @cached_property
    def _compiles(self) -> list[tuple[Site, str, frozenset[ast.AST | None]]]:
        """The calls of a model's `compile`, each with the model's name and the calls that create it.

        These include None if some are unknown.
        """
        found = []
        origins = self._root.fact(Origins)
        for site in self._script.sites_named("compile"):
            if isinstance(site.node.func, ast.Attribute):
                place = Occurrence(site.node.func.value, site.scope, site.statement)
                found.append((site, dotted(place.node), origins.of(place) | origins.inside_and_out(place)))
        return found

    # Libraries that hide the fit

    @cached_property
    def _hidden_fits(self) -> list[Site]:
        """The library calls that train a model."""
        imported = {binding.full_name.partition(".")[0] for binding in self._script.imports}
        methods = {_TRAINERS[root] for root in imported if root in _TRAINERS}
        wraps = [
            site
            for site in self._script.sites_named(*_WRAPPERS)
            if any(_wraps_model(value) for value in self._names.callee(site))
        ]
        if wraps:
            methods.add("fit")
        fits = []
        for site in self._script.sites_named(*sorted(methods)):
            if not isinstance(site.node.func, ast.Attribute):
                continue
            values = self._names.site_values(site.node.func.value, site)
            known = {
                _TRAINERS.get(cls.partition(".")[0], "fit" if cls.endswith(_WRAPPERS) else "")
                for value in values
                for cls in self._classes(value)
            }
            strange = not values or any(isinstance(value, Unknown) for value in values)
            if site.name in known or (strange and site.name == "search"):
                fits.append(site)
        # A wrapped model may be passed to something that fits it, such as a parameter search.
        return fits or wraps

    def _classes(self, value: Value) -> Iterable[str]:
        """The library classes of an object."""
        if isinstance(value, Instance):
            return (value.cls,)
        return self._names.library_bases(value.scope) if isinstance(value, UserInstance) else ()

    def _trainers(self) -> Iterator[Loop]:
        for site in self._hidden_fits:
            yield Loop(Pattern.LIBRARY, self._script, [site], self._around(site))

    def _agents(self) -> Iterator[Loop]:
        """The steps that a library's agents take with tapes of their own."""
        for site in self._program.fact(Agents).trainings:
            yield Loop(Pattern.GRAD_TAPE, self._script, [site], self._around(site))

    # Estimator

    def _estimators(self) -> Iterator[Loop]:
        for site in self._script.sites_named("train", "train_and_evaluate"):
            function = site.node.func
            estimator = argument(site.node, 0, "estimator")
            if site.name == "train":
                if not isinstance(function, ast.Attribute):
                    continue
                estimator = function.value
                if not self._names.may_be(self._names.site_values(estimator, site), *api.ESTIMATOR):
                    continue
            elif not any(
                name.endswith("estimator.train_and_evaluate")
                for name in self._names.full_names(function, site.scope, site.statement)
            ):
                continue
            models = [Occurrence(estimator, site.scope, site.statement)] if estimator is not None else []
            yield Loop(Pattern.ESTIMATOR, self._script, [site], self._around(site), models)

    # Other patterns

    def _minimizers(self) -> Iterator[Loop]:
        for site in self._script.sites_named("minimize"):
            function = site.node.func
            if not isinstance(function, ast.Attribute) or self._names.full_names(
                function, site.scope, site.statement
            ):
                continue
            values = self._names.site_values(function.value, site)
            optimizer = self._names.may_be(values, *api.OPTIMIZERS)
            tf1 = self._names.may_be(values, *api.TF1_OPTIMIZER)
            eager = self._is_eager(site) or (optimizer and not tf1)
            if self._graphs.uses_sessions or self._builds_estimators or not eager:
                continue
            if not optimizer and not any(isinstance(value, Unknown) for value in values):
                continue
            place = Occurrence(function.value, site.scope, site.statement)
            yield Loop(
                Pattern.MINIMIZE,
                self._script,
                [site],
                self._around(site),
                [],
                [place],
                certain=optimizer,
            )

    def _hidden_tapes(self) -> Iterator[Loop]:
        """The eager steps whose gradients do not come from a tape of the script."""
        wanted = {site.node: site for site in self._script.sites_named(*_TAKING) if self._takes_eagerly(site)}
        for step in self._program.fact(Steps).steps if wanted else ():
            site = step.site
            if (
                step.gradients
                or step.reduced
                or step.pairs is None
                or self._program.fact(Steps).is_optimizers_own(site.scope)
            ):
                continue
            taken = self._program.fact(Steps).reaching(step, wanted)
            if taken:
                optimizers = [Occurrence(step.receiver, site.scope, site.statement)]
                around = self._around(site)
                yield Loop(Pattern.MINIMIZE, self._script, [site], around, [], optimizers, origin=taken[0])

    def _takes_eagerly(self, site: Site) -> bool:
        """Return whether a call computes gradients with a tape of its own, or creates the function
        that does.
        """
        if site.name != _TAKING[0]:
            names = self._names.full_names(site.node.func, site.scope, site.statement)
            return any(name.startswith(_CONTRIBUTED) for name in names)
        if (
            self._graphs.uses_sessions
            or self._builds_estimators
            or not isinstance(site.node.func, ast.Attribute)
        ):
            return False
        values = self._names.site_values(site.node.func.value, site)
        return self._names.may_be(values, *api.OPTIMIZERS) and self._is_eager(site)

    def _is_eager(self, site: Site) -> bool:
        """Return whether an optimizer takes the gradients of a function, or uses a tape, as in
        TensorFlow 2.
        """
        loss = argument(site.node, 0, "loss")
        if any(word.arg == "tape" for word in site.node.keywords) or isinstance(loss, ast.Lambda):
            return True
        values = self._names.site_values(loss, site) if loss is not None else ()
        return any(isinstance(value, Function) for value in values)

    # Code that is not visible

    def unseen(self) -> Iterator[Site]:
        """Yield the calls of `train` on objects that the script does not show."""
        for site in self._script.sites_named("train"):
            if site in self._program.fact(Agents).trainings:
                continue
            if isinstance(site.node.func, ast.Attribute) and not self._is_own(self._names.callee(site)):
                if self._may_be_model(self._names.site_values(site.node.func.value, site)):
                    yield site

    @cached_property
    def _builds_estimators(self) -> bool:
        return next(self._script.sites_named("EstimatorSpec", "TPUEstimatorSpec"), None) is not None

    def _by_hand(self) -> Iterator[Loop]:
        """Yield the loops that assign weights from a tape's gradients, without an optimizer."""
        used = {gradient for step in self._program.fact(Steps).steps for gradient in step.gradients}
        steps = self._program.fact(Steps)
        left = {
            each.site.node: each for each in steps.gradients if each not in used and not steps.of_input(each)
        }
        if not left:
            return
        for site in self._script.sites_named(*_ASSIGNING):
            if self._is_of_custom_step(site) or self._program.fact(Steps).is_optimizers_own(site.scope):
                continue
            gradients = [
                gradient
                for given in site.node.args
                for gradient in reaching_calls(self._script, left, given, site.scope, site.statement)
            ]
            if gradients:
                tapes = list(dict.fromkeys(tape for each in gradients for tape in each.tapes))
                yield Loop(Pattern.BY_HAND, self._script, [site], self._around(site), [], [], tapes)

    def _around(self, site: Site) -> Statement:
        return outermost_loop(self._script, site)


def is_strange(full_name: str) -> bool:
    """Return whether a class or function is unrecorded, or of an unknown library."""
    root, _, rest = full_name.partition(".")
    if api.is_class(full_name) or rest.endswith(_GENERATOR):
        return False
    return root in ROOTS or not is_common(full_name)


def _is_loaded_by_horovod(value: Value) -> bool:
    """Return whether a value is the result of ``hvd.load_model(...)``."""
    return isinstance(value, Instance) and value.cls.startswith("horovod.") and "load_model" in value.cls


def _wraps_model(value: Value) -> bool:
    """Return whether it is a class that wraps a Keras model for scikit-learn."""
    root = value.name.partition(".")[0] if isinstance(value, Library) else ""
    return root in (*ROOTS, "scikeras")
