"""Pipelines: the construction of a `tf.data` dataset, read backwards from its iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.entries import is_bar
from trainshift.python.flow.traversal import reachable
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Function, Instance
from trainshift.python.syntax.chunk_syntax import Binding, Scope, Site, Statement, argument, arguments
from trainshift.training.datasets.dry_runs import DryRuns
from trainshift.training.datasets.operations import DIRECTORIES, METHODS, SOURCES, WRAPPERS
from trainshift.training.uniformity.uniformity import Uniformity

_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator")


class Node(Struct, eq=False):
    """A node of a data pipeline: an expression that creates or transforms a dataset, with its inputs.

    `operation` is the name of a call's operation: a method of datasets, or the last name of the function that
    creates one; empty for a name and other expressions that pass a dataset on.  `inputs` are its source
    datasets; a name has one of them.  With `unseen`, its value may come from elsewhere.  `bindings` are those
    of a name, `called` the functions of the script that a call runs.  With `is_tried`, the same code also
    reads other data, without training; with `is_function`, the expression returns a dataset when it is
    called.
    """

    at: Occurrence
    operation: str = ""
    site: Site | None = None
    inputs: list[Node] = field(default_factory=list)
    consumers: list[Node] = field(default_factory=list)
    unseen: bool = False
    bindings: list[Binding] = field(default_factory=list)
    called: list[Scope] = field(default_factory=list)
    is_dataset: bool = True
    is_share: bool = False
    is_tried: bool = False
    is_function: bool = False

    @property
    def is_source(self) -> bool:
        """Return whether a library creates the dataset here from other data."""
        return bool(self.operation) and not self.inputs

    def given(self, name: str, position: int | None = None) -> ast.expr | None:
        """The argument of the node's call, by name or position."""
        return argument(self.site.node, position, name) if self.site is not None else None


class Pipelines:
    """The pipelines of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = program.names
        self._script = program.script
        self._nodes: dict[tuple[int, int], Node] = {}
        self._open: set[Node] = set()

    def read(self, at: Occurrence) -> Node:
        """The pipeline that ends in an expression."""
        key = id(at.node), id(at.scope)
        known = self._nodes.get(key)
        if known is not None:
            # A dataset made from itself, as in a loop, is not followed.
            return known if known not in self._open else Node(at, unseen=True)
        node = self._nodes[key] = Node(at)
        self._open.add(node)
        self._fill(node)
        self._open.discard(node)
        for each in node.inputs:
            each.consumers.append(node)
        return node

    def given_by(self, at: Occurrence) -> Node:
        """The pipeline of a function's result; an expression names, defines or creates the function."""
        node = Node(at, is_dataset=False, is_function=True, bindings=self._names.bindings(at))
        node.inputs = list(self._given_by(node, at))
        node.unseen = node.unseen or not node.inputs
        for each in node.inputs:
            each.consumers.append(node)
        return node

    def _given_by(self, node: Node, at: Occurrence) -> Iterator[Node]:
        if isinstance(at.node, ast.Lambda):
            yield from self._returned(at.scope.facts.scope_of[at.node], at.statement)
            return
        if isinstance(at.node, ast.Call):
            names = self._names.full_names(at.node.func, at.scope, at.statement)
            if "functools.partial" in names and at.node.args:
                yield self.given_by(at.part(at.node.args[0]))
                return
            node.called = list(self._names.called_functions(self._script.site_of(at.node)))
        step = self._names.steps_back(at)
        for each in step.sources if step is not None else ():
            yield self.given_by(each)
        if step is None or not step.sources:
            values = self._names.values(*at[:3])
            for value in values:
                if isinstance(value, Function):
                    yield from self._returned(value.scope, value.scope.statement)
            node.unseen = not all(isinstance(value, Function) for value in values)
        else:
            node.unseen = step.unseen

    def _returned(self, function: Scope, statement: Statement | None) -> Iterator[Node]:
        """Yield the results of a function: datasets, or the elements of a dataset's iterator."""
        iterators = [site for site in self._script.sites_named(*_ITERATORS) if site.scope is function]
        for site in iterators:
            called = self._names.full_names(site.node.func, site.scope, site.statement)
            given = argument(site.node, 0, "dataset") if called else getattr(site.node.func, "value", None)
            if given is not None:
                yield self.read(Occurrence(given, site.scope, site.statement))
        for returned, where in function.returns if not iterators else ():
            yield self.read(Occurrence(returned, function, where or statement))

    def _fill(self, node: Node) -> None:
        at = node.at
        step = self._names.steps_back(at)
        if isinstance(at.node, ast.Call):
            node.site = self._script.site_of(at.node)
            if step is None:
                self._fill_call(node, node.site)
                return
            node.called = list(self._names.called_functions(node.site))
        elif step is None:
            node.unseen = True
            return
        node.bindings = self._names.bindings(at)
        sources = step.sources
        if not sources and step.within:
            # An element of a library's result: ``train, test = tfds.load(...)``.
            sources = step.within
        elif step.unseen:
            node.unseen = True
        wet = tuple(each for each in sources if not self._is_dry(each, node))
        if wet and len(wet) < len(sources):
            node.is_tried, sources = True, wet
        node.inputs = [self.read(each) for each in sources]
        if sources is step.within and not all(map(_gives_several, self.upstream(node))):
            node.unseen = True

    def _is_dry(self, source: Occurrence, node: Node) -> bool:
        """Return whether a parameter gets a source from a call that does not train."""
        dry = self._program.fact(DryRuns)
        functions = (each.inner for each in node.bindings if each.kind == "parameter")
        site = source.site
        return site is not None and any(
            each is not None and each in self._names.called_functions(site) and dry.is_dry(site, each)
            for each in functions
        )

    def _fill_call(self, node: Node, site: Site) -> None:
        names = self._names.full_names(site.node.func, site.scope, site.statement)
        function = site.node.func
        name = next(iter(sorted(names)), "")
        if WRAPPERS.intersection(names) or any(map(is_bar, names)):
            node.is_dataset = False
            node.inputs = [self.read(node.at.part(each)) for each in _wrapped(site.node, names)]
            node.operation = "zip" if "builtins.zip" in names else "iter"
            node.unseen = not node.inputs
        elif name:
            node.operation = name.rpartition(".")[2]
            if ".data." in name and node.operation in ("zip", "sample_from_datasets", "choose_from_datasets"):
                node.inputs = [self.read(node.at.part(each)) for each in _zipped(self, node)]
                node.unseen = not node.inputs
            node.is_dataset = name in SOURCES or self._is_dataset(node.at)
            node.unseen = node.unseen or not node.is_dataset
            node.is_share = node.is_source and self._depends_on_rank(site)
        elif isinstance(function, ast.Attribute) and (self._is_dataset(node.at) or function.attr in METHODS):
            node.operation = function.attr
            inputs = [function.value]
            if function.attr == "concatenate":
                inputs += arguments(site.node)
            elif function.attr == "apply" and not site.node.keywords:
                node.operation = self._applied(site)
            node.inputs = [self.read(node.at.part(each)) for each in inputs]
            node.is_share = self._shares(site, node.operation)
            node.is_dataset = METHODS.get(function.attr, True)
        else:
            node.unseen = True

    def _applied(self, site: Site) -> str:
        """The name of the TensorFlow function that `apply` gets."""
        given = site.node.args[0] if site.node.args else None
        if isinstance(given, ast.Call):
            names = self._names.full_names(given.func, site.scope, site.statement)
            return next((name.rpartition(".")[2] for name in sorted(names)), "apply")
        return "apply"

    def _shares(self, site: Site, operation: str) -> bool:
        """Return whether a call leaves a rank its own share: ``shard(hvd.size(), hvd.rank())``."""
        if operation == "apply" and site.node.args and isinstance(site.node.args[0], ast.Lambda):
            body = site.node.args[0].body
            calls = [part for part in ast.walk(body) if isinstance(part, ast.Call)]
            return any(self._shares(self._script.site_of(each), _method(each)) for each in calls)
        return operation == "shard" and self._depends_on_rank(site)

    def _depends_on_rank(self, site: Site) -> bool:
        """Return whether a call's arguments depend on the rank, such as rows selected before."""
        return any(map(self._program.fact(Uniformity).on_rank, map(of_call(site).part, arguments(site.node))))

    def _is_dataset(self, at: Occurrence) -> bool:
        values = self._names.values(at.node, at.scope, at.statement)
        return any(
            isinstance(value, Instance) and (api.is_subclass(value.cls, *api.DATASET) or value.cls in SOURCES)
            for value in values
        )

    def upstream(self, node: Node) -> Iterator[Node]:
        """Yield a node and everything upstream of it."""
        return reachable([node], lambda each: each.inputs)

    def choices(self, node: ast.expr, at: Occurrence) -> list[ast.expr]:
        """The elements of a literal tuple or list, in place or behind a name."""
        step = None if isinstance(node, ast.Tuple | ast.List) else self._names.steps_back(at.part(node))
        if step is not None and len(step.sources) == 1 and not step.unseen:
            return self.choices(step.sources[0].node, step.sources[0])
        return node.elts if isinstance(node, ast.Tuple | ast.List) else []


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _wrapped(call: ast.Call, names: frozenset[str]) -> list[ast.expr]:
    """The iterables of a builtin function's call."""
    if "builtins.zip" in names:
        return [] if any(isinstance(each, ast.Starred) for each in call.args) else list(call.args)
    given = call.args[:1] or [word.value for word in call.keywords if word.arg == "iterable"]
    return [] if any(isinstance(each, ast.Starred) for each in given) else given


def _zipped(pipelines: Pipelines, node: Node) -> list[ast.expr]:
    """The datasets of ``Dataset.zip`` and similar functions, as one tuple or one by one."""
    assert node.site is not None
    given = arguments(node.site.node)
    if len(given) != 1 and node.operation == "zip":
        return given
    elements = pipelines.choices(given[0], node.at) if given else []
    return [] if any(isinstance(each, ast.Starred) for each in elements) else elements


def _gives_several(node: Node) -> bool:
    """Return whether a node returns several datasets at once, or passes them on."""
    return not node.is_source or node.operation in ("load", "as_dataset", *DIRECTORIES)
