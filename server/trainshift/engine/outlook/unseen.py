"""Unseen: training, or possible training, in code that is not available, so that nothing can be changed."""

from __future__ import annotations

import ast

from trainshift.core.program import Program
from trainshift.engine.outlook.sessions import first_doubt, is_computation
from trainshift.libraries import api
from trainshift.python.names.values import Function
from trainshift.python.syntax.chunk_syntax import Site, arguments
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.session_loops import MONITORED
from trainshift.training.loops.step_names import STEPPING
from trainshift.training.loops.steps import Steps
from trainshift.training.optimizers.graphs import Graphs

_OF_BACKEND = (
    "{call}(...) runs this training operation, and Horovod's hooks do not reach it; "
    "run it in a TF1 session, or use a tf.GradientTape"
)
_LIBRARY_STEPS = ("create_train_op", "optimize_loss")


def unseen_run(program: Program) -> tuple[Site, str] | None:
    """A session or an Estimator that may train in code that is not available."""
    # Next to a tape's loop or a `fit`, a session only sets GPU options in the TF1 way.
    if program.fact(Loops).own or (doubt := first_doubt(program)) is None:
        return None
    for site in program.script.sites_calling(api.last_names(*api.SESSION, *MONITORED, *api.ESTIMATOR)):
        for name in program.names.full_names(site.node.func, site.scope, site.statement):
            if name in (*api.SESSION, *MONITORED):
                return (
                    site,
                    f"a TF1 session is made here, but Trainshift cannot find what trains in it{doubt}",
                )
            if api.is_subclass(name, *api.ESTIMATOR):
                return site, "an Estimator is made here, but Trainshift cannot find what trains it"
    return None


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
            for call in program.script.sites_named("function"):
                if program.names.calls(
                    call, "keras.backend.function", "tensorflow.keras.backend.function"
                ) and site.node in ast.walk(call.node):
                    return site, _OF_BACKEND.format(call=program.script.text(call.node.func, call))
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
        if names.called_functions(site) or not called or any(map(is_computation, called)):
            continue
        given = (names.site_values(each, site) for each in arguments(site.node))
        if any(names.may_be(values, *api.OPTIMIZERS) for values in given):
            text = program.script.text(site.node.func, site)
            return site, f"Trainshift cannot see how {text}(...) takes its steps; call apply_gradients here"
    return None


def is_handed_on(program: Program, made: Site) -> bool:
    """Return whether code that is not available gets what a call makes."""
    names = program.names
    for site in program.script.sites:
        called = names.full_names(site.node.func, site.scope, site.statement)
        if not called or names.called_functions(site) or all(map(is_computation, called)):
            continue
        given = (value for each in arguments(site.node) for value in names.site_values(each, site))
        if any(getattr(value, "node", None) is made.node for value in given):
            return True
    return False


def unseen_training(program: Program) -> tuple[Site, str] | None:
    """A call of `train` on an object of an unknown class, which may be an Estimator."""
    for site in program.fact(Loops).unseen:
        text = program.script.text(site.node.func, site)
        return site, f"Trainshift cannot tell whether {text}(...) trains; convert the file that has the loop"
    return None
