"""Session loops: the runs of TensorFlow 1 sessions, plain and monitored, that train."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Unknown
from trainshift.python.syntax.chunk_syntax import Site, last_name
from trainshift.training.execution.graph_slice import reaching_calls
from trainshift.training.loops.loop_kinds import Loop, Pattern, outermost_loop
from trainshift.training.loops.step_names import STEPPING, StepNames, names_of
from trainshift.training.loops.steps import Steps

MONITORED = (*api.MONITORED_SESSION, "tensorflow.compat.v1.train.MonitoredTrainingSession")
_SESSIONS = (
    *api.SESSION,
    "tensorflow.compat.v1.train.Supervisor",
    "tensorflow.compat.v1.get_default_session",
    "tensorflow.compat.v1.keras.backend.get_session",
)


class SessionLoops:
    """The session loops of one script of the program `root`."""

    def __init__(self, program: Program, root: Program) -> None:
        self._program = program
        self._root = root
        self._script = program.script
        self._names = program.names

    @cached_property
    def uses_sessions(self) -> bool:
        """Return whether the script makes or runs a session."""
        return any(self._session_calls) or any(
            self._names.may_be(self._names.site_values(site.node.func.value, site), *api.SESSION, *MONITORED)
            for site in self._script.sites_named("run")
            if isinstance(site.node.func, ast.Attribute)
        )

    @cached_property
    def _session_calls(self) -> list[Site]:
        return [
            site
            for site in self._script.sites_named(
                *{name.rpartition(".")[2] for name in (*_SESSIONS, *MONITORED)}
            )
            if self._names.calls(site, *_SESSIONS, *MONITORED)
        ]

    def sessions(self) -> Iterator[Loop]:
        """The calls of `run` that train."""
        runs = [
            site
            for site in self._script.sites_named("run")
            if isinstance(site.node.func, ast.Attribute) and not self._is_library_function(site)
        ]
        if not runs:
            return
        steps = list(self._graph_steps())
        if not steps and not self._steps_elsewhere:
            return
        trained = names_of(self._script, {site.node for site in steps}) | self._steps_elsewhere
        wanted = {site.node: site for site in steps}
        for site in runs:
            assert isinstance(site.node.func, ast.Attribute)
            receiver = self._names.site_values(site.node.func.value, site)
            session = self._names.may_be(receiver, *api.SESSION, *MONITORED)
            strange = any(isinstance(value, Unknown) for value in receiver) or not receiver
            fetches = [
                *site.node.args[:1],
                *(word.value for word in site.node.keywords if word.arg == "fetches"),
            ]
            if last_name(site.node.func.value) in trained or (not session and not strange):
                fetches = [site.node.func.value] if last_name(site.node.func.value) in trained else []
            ops = [step for each in fetches for step in reaching_calls(
                self._script, wanted, each, site.scope, site.statement
            )]  # fmt: skip
            if not ops and not any(_mentions(each, trained) for each in fetches):
                continue
            monitored = self._names.may_be(receiver, *MONITORED) or (
                not session and any(self._names.calls(each, *MONITORED) for each in self._session_calls)
            )
            pattern = Pattern.MONITORED_SESSION if monitored else Pattern.SESSION
            optimizers = [
                Occurrence(op.node.func.value, op.scope, op.statement)
                for op in ops or steps
                if isinstance(op.node.func, ast.Attribute)
            ]
            yield Loop(pattern, self._script, [site], outermost_loop(self._script, site), [], optimizers)

    def _graph_steps(self) -> Iterator[Site]:
        """The calls that make a training operation of a TF1 graph."""
        taken = {step.site for step in self._program.fact(Steps).steps if step.gradients}
        for site in self._script.sites_named(*STEPPING):
            if site in taken or not isinstance(site.node.func, ast.Attribute):
                continue
            values = self._names.site_values(site.node.func.value, site)
            unknown = any(isinstance(value, Unknown) for value in values)
            if unknown or self._names.may_be(values, *api.OPTIMIZERS) or not values:
                yield site

    def _is_library_function(self, site: Site) -> bool:
        """Return whether the call is a library's function, such as ``subprocess.run``."""
        return bool(self._names.full_names(site.node.func, site.scope, site.statement))

    @cached_property
    def _steps_elsewhere(self) -> frozenset[str]:
        """The names of training operations in other linked scripts: ``model.train_op``."""
        named = self._root.fact(StepNames).by_script
        return frozenset().union(*(names for script, names in named.items() if script is not self._script))


def _mentions(node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    return any(
        isinstance(part, ast.Name | ast.Attribute) and last_name(part) in names for part in ast.walk(node)
    )
