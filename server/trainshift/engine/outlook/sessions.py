"""Sessions: whether TensorFlow 1 sessions may run an operation that trains.

What a session fetches is read backwards in two ways.  Everything behind it is run with it: a step of an
optimizer or an assignment there may train.  What the fetched operation itself *is* must be known: a value
that is only computed with may come from anywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainshift.core.libraries import full_name
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.common import is_common
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import UNKNOWN, Function, Library, texts
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments, last_name
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.step_names import STEPPING

# A method of a graph that looks up a tensor, whose computation changes nothing, and an operation's
# tensors.
_TENSOR = "get_tensor_by_name"
_OPERATIONS = ("get_operation_by_name",)
_OF_OPERATION = ("outputs", "inputs")
_RUNNING = ("run", "eval", "make_callable", "partial_run_setup")
_FETCHING = frozenset(_RUNNING) - {"eval"}
_NAME_OF_TENSOR = re.compile(r".+:\d+")
_ASSIGNING = ("assign", "scatter")
_CALLING_BACK = ("py_func", "numpy_function")
_COLLECTION = "get_collection"
_NO_COMPUTATIONS = (*_ASSIGNING, *STEPPING, *_CALLING_BACK, "Supervisor", _COLLECTION)
# Functions that give one of the operations that they are given, or an operation that runs them.
_PASSING = frozenset({"group", "tuple", "cond", "while_loop", "case", "identity", "with_dependencies"})
# Values that a graph does not compute from anything: variables that are set to them are loaded.
_GIVEN = frozenset(
    {"placeholder", "placeholder_with_default", "constant", "zeros", "ones", "convert_to_tensor"}
)
# Calls that return variables, or some of them.
_VARIABLES = frozenset(
    {"Variable", "filter", "get_variable", "global_variables", "list", "trainable_variables"}
)
# Calls whose results do not depend on the values of their arguments: fed values, and shapes.
_OF_FEEDS = ("placeholder", "get_shape", "as_list", "shape")
# The packages of `tf.contrib` in which nothing trains by itself.
_LAYERS = frozenset(
    {
        "crf",
        "cudnn_rnn",
        "data",
        "framework",
        "image",
        "layers",
        "legacy_seq2seq",
        "lookup",
        "rnn",
        "seq2seq",
        "slim",
    }
)


def only_predicts(program: Program) -> bool:
    """Return whether a program makes sessions in which nothing trains, and trains in no other way."""
    return (
        not program.fact(Loops).own
        and any(
            program.names.calls(site, *api.SESSION)
            for site in program.script.sites_calling(api.last_names(*api.SESSION))
        )
        and first_doubt(program) is None
    )


def first_doubt(program: Program) -> str | None:
    """Return what a session runs that may train, and what would help, for a reason; None if nothing."""
    return next(_Sessions(program).doubts(), None)


def is_computation(name: str) -> bool:
    """Return whether a full name belongs to a library's function that computes and changes no variable."""
    library, *rest = name.split(".")
    known = library == "tensorflow" or is_common(name)
    if "contrib" in rest:
        known = known and not _LAYERS.isdisjoint(rest) and "learning" not in rest
    return known and not (rest and rest[-1].startswith(_NO_COMPUTATIONS))


class _Sessions:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    def doubts(self) -> Iterator[str]:
        """Yield the end of a reason for each operation that may train."""
        runs = [
            each for each in self._script.sites_named(*_RUNNING) if isinstance(each.node.func, ast.Attribute)
        ]
        fetched = [each for site in runs for each in self._fetched(site)]
        for at, site in fetched:
            if self._is_name_of_operation(at.node, site):
                yield f"; {self._text(at)} may name a training operation: make it in this program"
        looked_up = self._script.sites_named(_TENSOR, *_OPERATIONS)
        tensors = {site.node for site in looked_up if _gives_tensors(site)}
        computed = tensors.union(site.node for site in self._script.sites if self._is_computed(site))
        computed |= self._values_read
        for at, _ in fetched:
            for each in self._behind(at, tensors):
                if isinstance(each.node, ast.Call) and self._may_change(each):
                    yield f"; {self._text(each)} may train: let an optimizer's minimize(...) do it"
            for each in self._behind(at, computed, whole=False):
                if self._is_unknown(each):
                    yield f"; it cannot follow {self._text(each)}: make what trains in this program"
        for site in self._script.sites:
            if self._hands_session_on(site) or (not runs and self._is_of_unseen_code(site)):
                yield f"; it cannot follow {self._text(of_call(site))}: make what trains in this program"

    def _fetched(self, site: Site) -> Iterator[tuple[Occurrence, Site]]:
        """The operations that a call of `run` or `eval` runs: its argument, or its owner."""
        assert isinstance(site.node.func, ast.Attribute)
        node = argument(site.node, 0, "fetches") if site.name in _FETCHING else None
        if node is not None:
            yield Occurrence(node, site.scope, site.statement), site
        owner = site.node.func.value
        values = self._names.site_values(owner, site)
        is_module = bool(values) and all(
            isinstance(each, Library) and "." not in each.name for each in values
        )
        if not is_module and not self._names.may_be(values, *api.SESSION, *MONITORED):
            yield Occurrence(owner, site.scope, site.statement), site

    def _behind(self, at: Occurrence, stops: set[ast.Call], whole: bool = True) -> Iterator[Occurrence]:
        """Yield what reaches a value, without the calls that end the search, and parts of their results."""
        ends = dict.fromkeys(stops)
        found = occurrences_behind(self._script, at.node, at.scope, at.statement, ends, whole)
        chosen = {
            part
            for each in found
            if isinstance(each.node, ast.Subscript)
            for part in ast.walk(each.node.slice)
        }
        for each in found:
            if (
                each.node not in stops
                and getattr(each.node, "value", None) not in stops
                and each.node not in chosen
            ):
                yield each

    def _is_computed(self, site: Site) -> bool:
        """Return whether the call's result is a value that a library computes, of whatever it is given."""
        if site.name.startswith((*_ASSIGNING, *_CALLING_BACK)):
            return True  # Judged by what is assigned, or called.
        full = self._full_names(site)
        passing = any(name.rpartition(".")[2] in _PASSING for name in full)
        known = bool(full) and all(map(is_computation, full)) and not passing
        return known and not self._names.called_functions(site)

    def _may_change(self, at: Occurrence) -> bool:
        """Return whether a call behind what a session runs may change variables as training does."""
        assert isinstance(at.node, ast.Call)
        site = self._script.site_of(at.node)
        if self._names.called_functions(site):
            return False
        if site.name.startswith(_ASSIGNING):
            fed = self._values_read.union(each.node for each in self._script.sites_named(*_OF_FEEDS))
            return any(
                self._is_computed_from(list(self._behind(at.part(given), fed)))
                for given in arguments(at.node)[self._is_of_graph(at) :]  # What `tf.assign` changes is first.
            )
        if site.name.startswith(_CALLING_BACK):
            called = argument(at.node, 0, "func")
            values = self._names.site_values(called, site) if called is not None else ()
            return not any(isinstance(value, Function) for value in values)
        return site.name.startswith(STEPPING)

    @cached_property
    def _values_read(self) -> set[ast.Call]:
        """The calls that read the values of variables."""
        return {each.node for each in self._script.sites_named("eval") if self._reads_variable(each)}

    def _is_computed_from(self, behind: list[Occurrence]) -> bool:
        """Return whether a graph computes a value, rather than copies that of a variable."""
        calls = [each for each in behind if isinstance(each.node, ast.Call) and self._is_of_graph(each)]
        is_copy = not any(_calculates(each) for each in behind)
        return any(not (is_copy and last_name(each.node.func) in _VARIABLES) for each in calls)  # type: ignore[attr-defined]

    def _reads_variable(self, site: Site) -> bool:
        """Return whether a call reads the value that a variable has: ``w.eval()``."""
        if not isinstance(site.node.func, ast.Attribute):
            return False
        behind = self._behind(of_call(site).part(site.node.func.value), set())
        calls = [each.node for each in behind if isinstance(each.node, ast.Call)]
        return bool(calls) and all(last_name(each.func) in _VARIABLES for each in calls)

    def _is_of_graph(self, at: Occurrence) -> bool:
        """Return whether a call gives what a graph computes."""
        assert isinstance(at.node, ast.Call)
        full = self._names.full_names(at.node.func, at.scope, at.statement)
        return any(name.startswith("tensorflow.") and name.rpartition(".")[2] not in _GIVEN for name in full)

    def _is_unknown(self, at: Occurrence) -> bool:
        """Return whether a value may be an operation that is made in code that is not here."""
        names = self._names
        if isinstance(at.node, ast.Call):
            site = self._script.site_of(at.node)
            full = self._full_names(site)
            if full:
                return not all(map(is_computation, full))
            # A method of an object, or a name, that is judged itself.
            return site.name.startswith((*_OPERATIONS, _COLLECTION))
        if not isinstance(at.node, ast.Name | ast.Attribute):
            return False
        step = names.steps_back(at)
        if step is not None and (step.sources or step.within):
            return False
        values = names.values(at.node, at.scope, at.statement)
        if values and UNKNOWN not in values and not names.full_names(at.node, at.scope, at.statement):
            return False
        full = names.full_names(at.node, at.scope, at.statement)
        # An attribute is judged by its object.
        return not ((full or isinstance(at.node, ast.Attribute)) and all(map(is_computation, full)))

    def _is_name_of_operation(self, node: ast.expr, site: Site) -> bool:
        """Return whether a session may run an operation by its name."""
        parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        found = (text for part in parts for text in texts(self._names.site_values(part, site)))
        return not all(map(_NAME_OF_TENSOR.fullmatch, found))

    def _hands_session_on(self, site: Site) -> bool:
        """Return whether a call passes a session to code that is not here."""
        names = self._names
        if (
            site.node in self._values_read
            or names.called_functions(site)
            or not any(
                names.may_be(names.site_values(given, site), *api.SESSION, *MONITORED)
                for given in arguments(site.node)
                if isinstance(given, ast.Name | ast.Attribute)
            )
        ):
            return False
        callee = names.callee(site)
        return not callee or not all(map(is_computation, map(full_name, callee)))

    def _is_of_unseen_code(self, site: Site) -> bool:
        return not all(map(is_computation, self._full_names(site)))

    def _full_names(self, site: Site) -> frozenset[str]:
        return self._names.full_names(site.node.func, site.scope, site.statement)

    def _text(self, at: Occurrence) -> str:
        return one_line(self._script.text(at.node, at.scope))


def _gives_tensors(site: Site) -> bool:
    """Return whether a call looks a tensor up, or an operation of which only the tensors are used."""
    around = site.parent
    of_operation = isinstance(around, ast.Attribute) and around.attr in _OF_OPERATION
    return site.name == _TENSOR or of_operation


def _calculates(at: Occurrence) -> bool:
    is_augmented = at.statement is not None and isinstance(at.statement.node, ast.AugAssign)
    return is_augmented or isinstance(at.node, ast.BinOp | ast.UnaryOp)
