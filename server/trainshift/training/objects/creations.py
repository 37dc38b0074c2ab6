"""Creations: the datasets, optimizers and checkpoints that a script creates, and their holders.

A creation is a call that makes a new object.  A method chain is one creation (``Dataset.range(9).batch(2)``);
a call on, or around, an existing object is not one (``ds.batch(2)``, ``LossScaleOptimizer(opt)``), and
neither is the call of a function of the script, which contains the creation.
"""

from __future__ import annotations

import ast
import sys
from enum import Enum
from functools import cache

from msgspec import Struct

from trainshift.core.program import Program
from trainshift.libraries import api, entries
from trainshift.libraries.roles import is_wrap
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.memo import Questions
from trainshift.python.names.occurrence import UNSEEN, Occurrence, Step
from trainshift.python.names.values import (
    Class,
    Display,
    Function,
    Instance,
    Library,
    Literal,
    Member,
    UserInstance,
    Value,
)
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Slot,
    Statement,
    alternatives,
    argument,
    arguments,
    dotted,
    expression_path,
    hides_arguments,
    last_name,
)
from trainshift.training.objects.holders import Condition, Held, conditions, held_by


class MadeKind(Enum):
    """The kind of an object, as far as the restrictions on creations need it.

    OTHER is an object of none of the first four kinds, UNSEEN is an unknown one.
    """

    DATASET = "dataset"
    OPTIMIZER = "optimizer"
    CHECKPOINT = "checkpoint"
    MANAGER = "checkpoint manager"
    OTHER = "something else"
    UNSEEN = "unknown"


Kinds = frozenset[MadeKind]
# The largest number of calls and names to follow.
_DEEPEST = 60
_NONE: Kinds = frozenset()
_OTHER: Kinds = frozenset({MadeKind.OTHER})
_UNSEEN: Kinds = frozenset({MadeKind.UNSEEN})


class Creation(Struct, eq=False):
    """A call that makes a dataset, an optimizer, a checkpoint or a checkpoint manager.

    `whole` is the call with the methods chained to it; `path` are the enclosing nodes, from the statement
    inwards.  `certain` is false if the call may create another kind of object. `holder` is the (dotted) name
    that holds the object: of a name, an annotated name or an attribute. `call` is the call that the creation
    is an argument or the receiver of.
    """

    site: Site
    kind: MadeKind
    certain: bool
    whole: ast.expr
    path: tuple[ast.AST, ...]
    held: Held
    holder: str
    call: ast.Call | None
    conditions: tuple[Condition, ...]

    @property
    def statement(self) -> Statement:
        """The statement of the creation."""
        return self.site.statement


_FAMILIES = {
    MadeKind.DATASET: api.DATASET,
    MadeKind.OPTIMIZER: api.OPTIMIZERS,
    MadeKind.CHECKPOINT: api.CHECKPOINT,
    MadeKind.MANAGER: api.CHECKPOINT_MANAGER,
}
# Functions and class methods that make these objects; classes are recognized by their capital letter.
_MAKING = frozenset(
    {
        "from_tensor_slices", "from_tensors", "from_generator", "range", "list_files", "load", "random",
        "counter", "zip", "choose_from_datasets", "sample_from_datasets", "make_csv_dataset",
        "make_batched_features_dataset", "image_dataset_from_directory", "text_dataset_from_directory",
        "audio_dataset_from_directory", "timeseries_dataset_from_array", "as_dataset", "get", "deserialize",
        "from_config",
    }
)  # fmt: skip
# Functions of other libraries that make datasets from a split name; without one, a dictionary of datasets.
_LOADING = frozenset({"tensorflow_datasets.load", "tensorflow_datasets.load.load"})
# Functions that take nothing but datasets.
_JOINING = frozenset({"zip", "choose_from_datasets", "sample_from_datasets"})
# The position of their split argument.
_OF_SPLITS = {"load": 1, "as_dataset": 0}
_ADDED_OPTIMIZERS = "tensorflow_addons.optimizers."
# Modules whose unrecorded members, or members taken by `getattr`, are probably of this kind.
_MODULES = {
    "tensorflow.keras.optimizers": MadeKind.OPTIMIZER,
    "tensorflow.keras.optimizers.legacy": MadeKind.OPTIMIZER,
    "tensorflow.keras.optimizers.experimental": MadeKind.OPTIMIZER,
    "tensorflow.optimizers": MadeKind.OPTIMIZER,
    "keras.optimizers": MadeKind.OPTIMIZER,
    "tensorflow.contrib.opt": MadeKind.OPTIMIZER,
    "tensorflow.contrib.optimizers": MadeKind.OPTIMIZER,
    "tensorflow.data": MadeKind.DATASET,
    "tensorflow.data.experimental": MadeKind.DATASET,
    "tensorflow.contrib.data": MadeKind.DATASET,
}
# Calls that pass on the elements of their argument, but are not the object itself.
_ITERATING = frozenset(f"builtins.{name}" for name in ("iter", "list", "tuple", "sorted", "reversed"))
# Libraries whose calls never return objects of these kinds.
_FOREIGN = frozenset({"builtins", "numpy", "pandas", "tqdm", "matplotlib", "sklearn", "scipy"})


class Creations:
    """The creations of one script, and the names of the created objects."""

    def __init__(self, program: Program) -> None:
        self._script = program.script
        self._questions = Questions(_NONE, _UNSEEN, deepest=_DEEPEST)

    @cached_property
    def all(self) -> list[Creation]:
        """Every creation, in text order."""
        found = []
        for site in self._script.sites:
            made = self._made(site) if self._may_make(site) else None
            if made is not None:
                found.append(self._creation(site, *made))
        return found

    @cached_property
    def by_call(self) -> dict[ast.Call, Creation]:
        """Each creation by its innermost call."""
        return {creation.site.node: creation for creation in self.all}

    def of(self, *kinds: MadeKind) -> list[Creation]:
        """The creations of these kinds, in text order."""
        return [creation for creation in self.all if creation.kind in kinds]

    def shown(self, creation: Creation) -> str:
        """The call in short form, on one line, for a message."""
        called = creation.site.node.func
        return (dotted(called) or one_line(self._script.text(called, creation.site))) + "(...)"

    def module_names(self, kind: MadeKind) -> dict[str, list[Binding]]:
        """The module-level names that may hold an object of `kind`, with their bindings."""
        found: dict[str, list[Binding]] = {}
        for name, bindings in self._script.module_bindings.items():
            giving = [binding for binding in bindings if kind in self.bound(binding)]
            if giving:
                found[name] = giving
        return found

    # Possible values of an expression

    def kinds(self, node: ast.expr, scope: Scope, statement: Statement | None) -> Kinds:
        """The possible kinds of `node`, read in `scope` at `statement`."""
        known = self._questions.known.get((id(node), id(scope)))
        return self._of(Occurrence(node, scope, statement)) if known is None else known

    def bound(self, binding: Binding) -> Kinds:
        """The possible kinds of a binding's value."""
        value, names = binding.value, self._script.names
        if binding.kind in ("function", "class"):
            return _OTHER
        if binding.kind == "other" and isinstance(binding.target, ast.ExceptHandler | ast.arg):
            return _OTHER
        if binding.kind == "parameter":
            assert binding.inner is not None
            assert isinstance(binding.target, ast.arg)
            if names.is_self(ast.Name(binding.target.arg, ast.Load()), binding.inner):
                return _OTHER
        if binding.kind == "context" and value is not None:
            found = self.kinds(value, binding.scope, binding.statement)
            return found if MadeKind.UNSEEN not in found else found & set(_FAMILIES) or _UNSEEN
        if binding.kind == "value" and isinstance(value, ast.Call) and binding.path:
            made = self.kinds(_root(value), binding.scope, binding.statement) & set(_FAMILIES)
            if made:
                return _OTHER if _is_info(_root(value), binding.path) else made
        if binding.kind == "element" and value is not None:
            iterated = self.kinds(value, binding.scope, binding.statement)
            if MadeKind.UNSEEN not in iterated and not iterated.isdisjoint(_FAMILIES):
                return _OTHER
            values = names.values(value, binding.scope, binding.statement)
            if not binding.path and values and all(_is_of_builtins(value) for value in values):
                return _OTHER
        if binding.kind in ("import", "other"):
            return self._of_values(names.bound(binding))
        return self._joined(names.source_of(binding))

    def _of(self, at: Occurrence) -> Kinds:
        return self._questions.ask((id(at.node), id(at.scope)), self._kinds, at)

    def _joined(self, step: Step) -> Kinds:
        found = _NONE.union(*map(self._of, step.sources))
        return found | _UNSEEN if step.unseen else found

    def _kinds(self, at: Occurrence) -> Kinds:
        names, node = self._script.names, at.node
        if isinstance(node, ast.Call):
            return self._call(node, at.scope, at.statement)
        if isinstance(node, ast.Name):
            bindings = names.bindings(at)
            if bindings:
                return _NONE.union(*map(self.bound, bindings))
        elif isinstance(node, ast.Attribute):
            found = self._of_values(names.values(node, at.scope, at.statement))
            bindings = [] if found.isdisjoint(_FAMILIES) else names.bindings(at)
            return _NONE.union(*map(self.bound, bindings)) if bindings else found
        elif alternatives(node):
            return self._joined(names.steps_back(at) or UNSEEN)
        elif not isinstance(node, ast.Subscript | ast.Await | ast.Starred):
            return _OTHER
        return self._of_values(names.values(node, at.scope, at.statement))

    def _call(self, node: ast.Call, scope: Scope, statement: Statement | None) -> Kinds:
        names = self._script.names
        callee = names.values(node.func, scope, statement)
        called = names.full_names(node.func, scope, statement)
        if called and (called <= _ITERATING or all(map(_is_foreign, called))):
            return _OTHER
        if self._loads_all(node, scope, statement):
            return _OTHER
        found = self._of_values(names.values(node, scope, statement))
        if isinstance(node.func, ast.Attribute) and not any(isinstance(each, Library) for each in callee):
            owner = self.kinds(node.func.value, scope, statement)
            if MadeKind.DATASET in owner and gives_dataset(node.func.attr):
                return owner & {MadeKind.DATASET, MadeKind.UNSEEN}
            if owner & set(_FAMILIES) and MadeKind.UNSEEN not in owner and found == _UNSEEN:
                return _OTHER
        return found | {kind for each in callee if (kind := self._makes(each)[0])}

    def _of_values(self, values: frozenset[Value]) -> Kinds:
        return frozenset(map(self._of_value, values))

    def _of_value(self, value: Value) -> MadeKind:
        if isinstance(value, Instance):
            return _of_library(value.cls, entries.project())
        if isinstance(value, Member) and self._script.names.is_a(value.owner, *api.DATASET):
            return MadeKind.OTHER  # such as its `element_spec`
        if isinstance(value, UserInstance):
            return MadeKind.OTHER if value.node is None else self._of_class(value.scope)
        if isinstance(value, Literal | Display | Function | Class):
            return MadeKind.OTHER
        if isinstance(value, Library):
            known = api.canonical(value.name) is not None
            return MadeKind.OTHER if known or _is_foreign(value.name) else MadeKind.UNSEEN
        return MadeKind.UNSEEN

    def _of_class(self, cls: Scope) -> MadeKind:
        """The kind of objects of a class in the script, by the library classes among its bases."""
        bases = self._script.names.library_bases(cls)
        kinds = {_of_library(api.canonical(base) or base, entries.project()) for base in bases}
        known = (kind for kind in (*_FAMILIES, MadeKind.UNSEEN) if kind in kinds)
        return next(known, MadeKind.OTHER)

    # Creations

    def _may_make(self, site: Site) -> bool:
        """Return whether a call may create an object, judged only by the name of its function."""
        called = site.node.func
        if not isinstance(called, ast.Attribute):
            return isinstance(called, ast.Name) or self._script.may_be_callable(called)
        return called.attr[:1].isupper() or called.attr in _MAKING or called.attr in self._bound_attributes

    @cached_property
    def _bound_attributes(self) -> set[str]:
        """The attributes that the script assigns, to objects or in the bodies of its classes."""
        found = {name for facts in self._script.facts for name in facts.attributes}
        for scope in self._script.scopes:
            if scope.kind == "class":
                found.update(name for name, given in scope.bindings.items() if given[0].kind == "value")
        return found

    def _made(self, site: Site) -> tuple[MadeKind, bool] | None:
        """The kind of object that a call creates, and whether that is certain; None if none."""
        if self._loads_all(site.node, site.scope, site.statement):
            return None
        made = [self._makes(value) for value in self._script.names.callee(site)]
        found = {kind for kind, _ in made if kind is not None}
        if len(found) != 1:
            return None
        (kind,) = found
        certain = all(sure for _, sure in made)
        if kind in (MadeKind.DATASET, MadeKind.OPTIMIZER) and self._derives(site, kind):
            return None
        return kind, certain

    def _loads_all(self, node: ast.Call, scope: Scope, statement: Statement | None) -> bool:
        """Return whether a call returns a dictionary with a dataset for each split, because it names none."""
        if last_name(node.func) not in _OF_SPLITS or hides_arguments(node):
            return False
        if argument(node, _OF_SPLITS[last_name(node.func)], "split") is not None:
            return False
        callee = self._script.names.values(node.func, scope, statement)
        return any(
            value.name in _LOADING
            if isinstance(value, Library)
            else isinstance(value, Member) and self._makes(value)[0] is MadeKind.DATASET
            for value in callee
        )

    def _makes(self, value: Value) -> tuple[MadeKind | None, bool]:
        if isinstance(value, Library):
            return _makes_of_library(value.name, entries.project())
        if isinstance(value, Class):
            kind = self._of_class(value.scope)
            return (kind if kind in _FAMILIES else None), True
        elif isinstance(value, Instance) and value.cls == "builtins.getattr" and value.node.args:
            home = self._script.site_of(value.node)
            modules = self._script.names.full_names(value.node.args[0], home.scope, home.statement)
            kinds = {_MODULES[module] for module in modules if module in _MODULES}
            return (kinds.pop() if len(kinds) == 1 else None), False
        elif isinstance(value, Member) and value.name == "as_dataset" and isinstance(value.owner, Instance):
            return (MadeKind.DATASET if value.owner.cls == "tensorflow_datasets.builder" else None), True
        return None, False

    def _derives(self, site: Site, kind: MadeKind) -> bool:
        """Return whether a call gets an object of the kind, and wraps it in another one."""
        if kind is MadeKind.DATASET and last_name(site.node.func) in _JOINING:
            return True
        return any(
            kind in self.kinds(node, site.scope, site.statement) or _is_own_target(node, site)
            for node in reachable(arguments(site.node), _held_by)
            if not isinstance(node, ast.List | ast.Tuple | ast.Dict)
        )

    def _creation(self, site: Site, kind: MadeKind, certain: bool) -> Creation:
        path = expression_path(site.statement.node, site.node)[:-1]
        whole: ast.expr = site.node
        while kind is MadeKind.DATASET and len(path) >= 2:
            attribute, call = path[-1], path[-2]
            if not (isinstance(attribute, ast.Attribute) and isinstance(call, ast.Call)):
                break
            if call.func is not attribute or not gives_dataset(attribute.attr):
                break
            whole = call
            del path[-2:]
        wrapped = path[-1] if path and kind is MadeKind.OPTIMIZER else None
        if isinstance(wrapped, ast.Call) and self._is_horovods(wrapped, site):
            whole = wrapped
            del path[-1]
        held, holder, outer = held_by(whole, path)
        return Creation(
            site,
            kind,
            certain,
            whole,
            tuple(path),
            held,
            holder,
            outer,
            tuple(conditions(site, whole, path)),
        )

    def _is_horovods(self, call: ast.Call, site: Site) -> bool:
        """Return whether a call is Horovod's wrapper with the script's only reference to the inner
        optimizer.
        """
        return is_wrap(self._script.names.full_names(call.func, site.scope, site.statement))


def _root(node: ast.Call) -> ast.Call:
    """The innermost call of a method chain."""
    while isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        node = node.func.value
    return node


def _is_info(call: ast.Call, path: tuple[Slot, ...]) -> bool:
    """Return whether unpacking takes the information in ``tfds.load(..., with_info=True)``."""
    word = argument(call, None, "with_info")
    return path[0] == 1 and isinstance(word, ast.Constant) and word.value is True


def gives_dataset(method: str) -> bool:
    """Return whether the method of this name derives a dataset from one."""
    returned = api.returns(f"tensorflow.data.Dataset.{method}")
    return returned is not None and api.is_subclass(returned, *api.DATASET)


def _is_added_optimizer(name: str) -> bool:
    last = name.rpartition(".")[2]
    return name.startswith(_ADDED_OPTIMIZERS) and last[:1].isupper()


def _is_private_optimizer(name: str) -> bool:
    """Return whether a class imported from TensorFlow's private modules is the base of its optimizers."""
    return name.startswith("tensorflow.python.") and name.endswith((".OptimizerV2", "optimizer.Optimizer"))


def _is_of_builtins(value: Value) -> bool:
    """Return whether Python itself creates the value, so that its elements are not the objects."""
    return isinstance(value, Instance) and value.cls.startswith("builtins.")


def _is_foreign(name: str) -> bool:
    root = name.partition(".")[0]
    return root in _FOREIGN or root in sys.stdlib_module_names


@cache
def _of_library(cls: str, project: entries.Project | None) -> MadeKind:
    """The kind of the result of calling the library's class or function `cls`."""
    for kind, family in _FAMILIES.items():
        if api.is_subclass(cls, *family):
            return kind
    if cls in _LOADING:
        return MadeKind.DATASET
    if _is_added_optimizer(cls) or _is_private_optimizer(cls):
        return MadeKind.OPTIMIZER
    if _is_foreign(cls) or api.is_class(cls):
        return MadeKind.OTHER
    known = cls.startswith("tensorflow.") and not cls.startswith(("tensorflow.data", "tensorflow.contrib"))
    return MadeKind.OTHER if known and api.canonical(cls) is not None else MadeKind.UNSEEN


@cache
def _makes_of_library(name: str, project: entries.Project | None) -> tuple[MadeKind | None, bool]:
    """The kind of object that a call of the library's `name` creates, and whether that is certain."""
    name = api.canonical(name) or name
    kind = _of_library(api.returns(name) or name, project)
    return (kind, True) if kind in _FAMILIES else (_probable(name), False)


def _probable(name: str) -> MadeKind | None:
    """The probable kind of an unrecorded class's objects, by its module."""
    module, _, last = name.rpartition(".")
    kind = _MODULES.get(module) if api.canonical(name) is None else None
    return kind if kind is not None and last[:1].isupper() else None


def _held_by(node: ast.expr) -> list[ast.expr]:
    """The elements of a literal container."""
    if isinstance(node, ast.Dict):
        return node.values
    return node.elts if isinstance(node, ast.List | ast.Tuple) else []


def _is_own_target(node: ast.expr, site: Site) -> bool:
    """Return whether a call's result is assigned to its own argument: ``opt = Wrap(opt)``."""
    statement = site.statement.node
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return bool(dotted(node)) and any(dotted(target) == dotted(node) for target in targets)
