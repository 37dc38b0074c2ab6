"""Unseen: training, or possible training, in code that is not available, so that nothing can be changed."""

from __future__ import annotations

import ast
import re

from trainshift.core.libraries import full_name
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.libraries.common import is_common
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, texts
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.step_names import STEPPING
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.graphs import Graphs

# A method of a graph that looks up a tensor, whose computation changes nothing, and an operation's
# tensors.
_TENSOR = "get_tensor_by_name"
_OPERATIONS = ("get_operation_by_name",)
_OF_OPERATION = ("outputs", "inputs")
_RUNNING = ("run", "eval")
_NAME_OF_TENSOR = re.compile(r".+:\d+")
_CHANGING = ("assign", "scatter", "Supervisor", "py_func", "numpy_function")
# Methods whose results are, or may be, operations that change variables.
_NOT_METHODS = (*_CHANGING, *STEPPING, *_OPERATIONS, "get_collection")
_LIBRARY_STEPS = ("create_train_op", "optimize_loss")


def unseen_run(program: Program) -> tuple[Site, str] | None:
    """A session or an Estimator that may train in code that is not available."""
    # Next to a tape's loop or a `fit`, a session only sets GPU options in the TF1 way.
    if program.fact(Loops).own or _only_computes(program):
        return None
    for site in program.script.sites_calling(api.last_names(*api.SESSION, *MONITORED, *api.ESTIMATOR)):
        for name in program.names.full_names(site.node.func, site.scope, site.statement):
            if name in (*api.SESSION, *MONITORED):
                return site, "a TF1 session is made here, but Trainshift cannot find what trains in it"
            if api.is_subclass(name, *api.ESTIMATOR):
                return site, "an Estimator is made here, but Trainshift cannot find what trains it"
    return None


def only_predicts(program: Program) -> bool:
    """Return whether a program makes sessions in which nothing trains, and trains in no other way."""
    return (
        not program.fact(Loops).own
        and any(
            program.names.calls(site, *api.SESSION)
            for site in program.script.sites_calling(api.last_names(*api.SESSION))
        )
        and _only_computes(program)
    )


def _only_computes(program: Program) -> bool:
    """Return whether sessions only run operations of TensorFlow functions that change no variable."""
    script = program.script
    runs = [
        (site.node.func.value, site)
        for site in script.sites_named(*_RUNNING)
        if isinstance(site.node.func, ast.Attribute)
    ]
    asked = ((argument(site.node, 0, "fetches"), site) for _, site in runs if site.name == "run")
    fetched = [(node, site) for node, site in asked if node is not None]
    tensors = {site.node: site for site in script.sites_named(_TENSOR, *_OPERATIONS) if _gives_tensors(site)}
    behind = (
        at
        for node, site in (*fetched, *runs)
        for at in occurrences_behind(script, node, site.scope, site.statement, tensors)
        if at.node not in tensors and getattr(at.node, "value", None) not in tensors
    )
    return (
        bool(runs)
        and not any(_is_name_of_operation(program, *each) for each in fetched)
        and all(_is_computed(program, at) for at in behind)
        and not any(_hands_session_on(program, site) for site in script.sites)
    )


def _is_computed(program: Program, at: Occurrence) -> bool:
    """Return whether a value has a known source whose computation changes no variable."""
    names = program.names
    if isinstance(at.node, ast.Call):
        site = program.script.site_of(at.node)
        full = names.full_names(at.node.func, at.scope, at.statement)
        if full or names.called_functions(site):
            return all(map(_is_computation, full))
        # A method of an object that is computed itself.
        return isinstance(at.node.func, ast.Attribute) and not site.name.startswith(_NOT_METHODS)
    if isinstance(at.node, ast.Name | ast.Attribute):
        step = names.steps_back(at)
        if step is not None and step.sources and not step.unseen:
            return True
        full = names.full_names(at.node, at.scope, at.statement)
        # An attribute is judged by its object.
        return (bool(full) or isinstance(at.node, ast.Attribute)) and all(map(_is_computation, full))
    return True


def _gives_tensors(site: Site) -> bool:
    """Return whether a call looks a tensor up, or an operation of which only the tensors are used."""
    around = site.parent
    of_operation = isinstance(around, ast.Attribute) and around.attr in _OF_OPERATION
    return site.name == _TENSOR or of_operation


def _is_name_of_operation(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether a session may run an operation by its name."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    found = (text for part in parts for text in texts(program.names.site_values(part, site)))
    return not all(map(_NAME_OF_TENSOR.fullmatch, found))


def _is_computation(name: str) -> bool:
    """Return whether a full name belongs to a library's function that computes and changes no variable."""
    library, *rest = name.split(".")
    known = (library == "tensorflow" or is_common(name)) and "contrib" not in rest
    return known and not (rest and rest[-1].startswith((*_CHANGING, *STEPPING)))


def _hands_session_on(program: Program, site: Site) -> bool:
    """Return whether a call passes a session to code that is not here."""
    names = program.names
    if names.called_functions(site) or not any(
        names.may_be(names.site_values(given, site), *api.SESSION, *MONITORED)
        for given in arguments(site.node)
        if isinstance(given, ast.Name | ast.Attribute)
    ):
        return False
    callee = names.callee(site)
    return not callee or not all(map(_is_computation, map(full_name, callee)))


def unrun_step(program: Program) -> tuple[Site, str] | None:
    """A call that creates a TensorFlow 1 training operation that no available code runs."""
    if program.fact(Graphs).is_used:
        return None
    known = {site for loop in program.fact(Loops).own for site in loop.sites}
    known |= {step.site for step in program.fact(Steps).steps if step.gradients or step.reduced}
    for site in program.script.sites_named(*STEPPING):
        if site not in known and _makes_operation(program, site):
            if unseen := unseen_training(program):
                return unseen
            reason = "this makes a training operation, but Trainshift cannot find the session that runs it; "
            return site, f"{reason}convert the script that does"
    return None


def _makes_operation(program: Program, site: Site) -> bool:
    names, function = program.names, site.node.func
    if site.name in _LIBRARY_STEPS:
        called = names.full_names(function, site.scope, site.statement)
        return any(name.startswith("tensorflow.contrib.") for name in called)
    if not isinstance(function, ast.Attribute) or program.fact(Steps).is_optimizers_own(site.scope):
        return False
    if names.may_be(names.site_values(function.value, site), *api.TF1_OPTIMIZER):
        return True
    if any(isinstance(value, Function) for value in names.callee(site)):
        return False
    step = next((each for each in program.fact(Steps).steps if each.site is site), None)
    return step is not None and program.fact(Graphs).takes_gradients_of(step)


def handed_optimizer(program: Program) -> tuple[Site, str] | None:
    """A call that gives an optimizer to code that is not available, in a program that takes gradients."""
    names = program.names
    for site in program.script.sites if program.fact(Steps).gradients else ():
        called = names.full_names(site.node.func, site.scope, site.statement)
        if names.called_functions(site) or not called or any(map(_is_computation, called)):
            continue
        given = (names.site_values(each, site) for each in arguments(site.node))
        if any(names.may_be(values, *api.OPTIMIZERS) for values in given):
            text = program.script.text(site.node.func, site)
            return site, f"Trainshift cannot see how {text}(...) takes its steps; call apply_gradients here"
    return None


def unseen_training(program: Program) -> tuple[Site, str] | None:
    """A call of `train` on an object of an unknown class, which may be an Estimator."""
    for site in program.fact(Loops).unseen:
        text = program.script.text(site.node.func, site)
        return site, f"Trainshift cannot tell whether {text}(...) trains; convert the file that has the loop"
    return None
