"""Unseen: training, or possible training, in code that is not available, so that nothing can be changed."""

from __future__ import annotations

import ast

from trainshift.core.libraries import full_name
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Function, texts
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.step_names import STEPPING
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.graphs import Graphs

# Functions that load a graph, or look up an operation by its name.
_LOADING = (
    "import_meta_graph",
    "import_graph_def",
    "load",
    "load_model",
    "get_operation_by_name",
    "get_tensor_by_name",
    "get_collection",
)
_CHANGING = ("assign", "scatter", "Supervisor", "py_func", "numpy_function")
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


def _only_computes(program: Program) -> bool:
    """Return whether sessions only run operations of TensorFlow functions that change no variable."""
    script = program.script
    if any(script.sites_named(*_LOADING, *STEPPING)):
        return False
    runs = [
        (site.node.func.value, site)
        for site in script.sites_named("run", "eval")
        if isinstance(site.node.func, ast.Attribute)
    ]
    asked = ((argument(site.node, 0, "fetches"), site) for _, site in runs if site.name == "run")
    fetched = [(node, site) for node, site in asked if node is not None]
    behind = (
        at
        for node, site in (*fetched, *runs)
        for at in occurrences_behind(script, node, site.scope, site.statement, {})
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
        full = names.full_names(at.node.func, at.scope, at.statement)
        site = program.script.site_of(at.node)
        return all(map(_is_computation, full)) if full else bool(names.called_functions(site))
    if isinstance(at.node, ast.Name | ast.Attribute):
        step = names.steps_back(at)
        if step is not None and step.sources and not step.unseen:
            return True
        full = names.full_names(at.node, at.scope, at.statement)
        return bool(full) and all(map(_is_computation, full))
    return True


def _is_name_of_operation(program: Program, node: ast.expr, site: Site) -> bool:
    """Return whether a session may run an operation by its name."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return any(texts(program.names.site_values(part, site)) for part in parts)


def _is_computation(name: str) -> bool:
    """Return whether a full name belongs to a library's function that computes and changes no variable."""
    library, *rest = name.split(".")
    known = library in ("tensorflow", "numpy", "builtins") and "contrib" not in rest
    return known and not (rest and rest[-1].startswith(_CHANGING))


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
