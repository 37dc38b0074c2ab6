"""Members of TensorFlow must be renamed by imports only.

    Adam = tf.keras.optimizers.Adam             from tensorflow.keras.optimizers import Adam
    optimizer = Adam(1e-3)                      optimizer = Adam(1e-3)

## Why it matters

Behind a second name an optimizer, a tape or a dataset may be missed. On two GPUs its rate is not scaled, its
gradients are not averaged, or each process takes all of its steps.

## What to do

Write the member where it is used, or import it under that name.

## What is reported

A second name for what the conversion looks for: Keras, its optimizers, models, applications, callbacks and
backend, `tf.data`, `tf.train`, `tf.summary`, `tf.estimator`, `tf.compat.v1`, `tf.distribute`, `tf.config`,
`tf.GradientTape`, `tf.function`, `tf.print`, and whatever makes a dataset, an optimizer, a schedule, a
model, a callback, a checkpoint, a session or a summary writer. A member in a container (`{"adam":
tf.keras.optimizers.Adam}`) has another name too.

Not reported: a member that is passed as an argument, a harmless one that is a default
(`activation=tf.nn.relu`), and the result of calling a member.

Harmless: layers, losses, metrics, dtypes, mathematics, constants such as `tf.data.AUTOTUNE`, and an alias
for type checkers only.

Unknown: a member whose name the script computes, as in `getattr(tf.keras.optimizers, name)`.
"""

from __future__ import annotations

from trainshift.core.finding import Finding, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries import api
from trainshift.python.source.edit import Change
from trainshift.python.syntax.chunk_syntax import for_type_checkers
from trainshift.restrictions.names.aliases import MODULES, Alias, Aliases

# Below `tensorflow.`: the modules that the rules read, and the consequence for a rank if they miss one.
_THROUGH = {
    "keras": "an optimizer or a model",
    "keras.optimizers": "an optimizer",
    "keras.models": "a model",
    "keras.applications": "a model",
    "keras.callbacks": "a callback",
    "keras.backend": "a learning rate",
    "keras.mixed_precision": "an optimizer",
    "optimizers": "an optimizer",
    "mixed_precision": "an optimizer",
    "data": "a dataset",
    "train": "an optimizer or a checkpoint",
    "summary": "a summary",
    "estimator": "an estimator",
    "distribute": "a distribution strategy",
    "config": "a choice of devices",
    "app": "the start of the script",
    "compat": "an optimizer or a dataset",
}
# Members that the rules look for one by one.
_MEMBERS = {
    "GradientTape": "a tape",
    "function": "a compiled function",
    "print": "a print",
    "keras.Model": "a model",
    "keras.Sequential": "a model",
    "keras.backend.set_value": "a learning rate",
    "keras.backend.get_session": "a session",
    "keras.backend.set_session": "a session",
    "config.set_visible_devices": "a choice of devices",
    "config.experimental": "a choice of devices",
    "config.experimental.set_visible_devices": "a choice of devices",
    "app.run": "the start of the script",
    "Session": "a session",
    "InteractiveSession": "a session",
    "ConfigProto": "a session",
    "global_variables_initializer": "a session",
}
# Of the modules above, those in which any class or function counts, beyond the families below.
_WHOLE = (
    "keras.optimizers",
    "keras.models",
    "keras.callbacks",
    "keras.applications",
    "optimizers",
    "estimator",
)
# ... and those where functions count, but not classes such as `tf.train.Example`.
_FUNCTIONS = ("data", "summary", "distribute")
# The consequence if one of them is missed.
_COSTS = {
    "a callback": "run on every rank",
    "a checkpoint": "be written by every rank",
    "a choice of devices": "give every rank the same GPU",
    "a compiled function": "hide a training step",
    "a dataset": "give every rank all of the steps",
    "a distribution strategy": "compete with Horovod",
    "a learning rate": "not be scaled to the number of ranks",
    "a model": "start from different weights on each rank",
    "a print": "be repeated on every rank",
    "a session": "start from different weights on each rank",
    "a summary": "be written by every rank",
    "a tape": "not average its gradients over the ranks",
    "an estimator": "start from different weights on each rank",
    "an optimizer": "not be scaled to the number of ranks",
    "an optimizer or a checkpoint": "stay as for one rank",
    "an optimizer or a dataset": "stay as for one rank",
    "an optimizer or a model": "stay as for one rank",
    "the start of the script": "hide the training that it runs",
}
_FAMILIES = (
    (api.OPTIMIZERS, "an optimizer"),
    (api.SCHEDULE, "a learning rate"),
    (api.DATASET, "a dataset"),
    (api.MODEL, "a model"),
    (api.TAPE, "a tape"),
    (api.CALLBACK, "a callback"),
    (api.CHECKPOINT, "a checkpoint"),
    (api.CHECKPOINT_MANAGER, "a checkpoint"),
    (api.SAVER, "a checkpoint"),
    (api.SUMMARY_WRITER, "a summary"),
    (api.ESTIMATOR, "an estimator"),
    (api.SESSION, "a session"),
    (api.MONITORED_SESSION, "a session"),
    (api.SESSION_HOOK, "a session"),
    (api.STRATEGY, "a distribution strategy"),
)


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each name, attribute or item that is bound to a member of TensorFlow."""
    for alias in program.fact(Aliases).aliases:
        if alias.is_module or alias.passed or not alias.names:
            continue
        if all(".FLAGS." in name for name in alias.names):  # a value from the command line
            continue
        roles = [role for name in sorted(alias.names) if (role := _role(name, alias.dynamic))]
        if alias.held and not roles:
            continue
        yield _finding(program, report, alias, roles[0] if roles else "")
    for alias in program.fact(Aliases).defaults:
        roles = [role for name in sorted(alias.names) if (role := _role(name, False))]
        if roles:
            yield _finding(program, report, alias, roles[0])


def _finding(program: Program, report: Report, alias: Alias, role: str) -> Finding:
    binding = alias.binding
    target, member = program.fact(Aliases).target(binding), program.fact(Aliases).shown(alias)
    verb = "is some member of" if alias.dynamic else "holds" if alias.held else "is another name for"
    verb = "is by default" if binding.kind == "parameter" else verb
    why = f": {role} behind it may be missed, and {_COSTS.get(role)}"
    if not alias.dynamic:
        why += f". Write {member} where it is used"
    verdict = Verdict.UNKNOWN if alias.dynamic else Verdict.VIOLATED
    if not role:
        verdict, why = Verdict.HARMLESS, "; the conversion does not need it"
    elif binding.statement is not None and for_type_checkers(binding.statement):
        verdict, why = Verdict.HARMLESS, "; only type checkers see it"
    message = f"{target.text} {verb} {member}{why}."
    return report.finding(
        verdict, target.span, message, (), _fix(program, report, alias, target.text, member)
    )


def _fix(program: Program, report: Report, alias: Alias, name: str, member: str) -> Change | None:
    edits = program.fact(Aliases).inlined(alias)
    if not edits or alias.binding.statement is None:
        return None
    span = program.script.statement_span(alias.binding.statement)
    return report.change(f"Write {member} instead of {name}", span, edits)


def _role(name: str, below: bool) -> str:
    """The role that the rules would miss in a member; empty for one that no rule reads.

    With `below`, for any member of the module `name`.
    """
    path = _path(name)
    if below:
        return "an optimizer or a model" if not path else _THROUGH.get(path) or _in_whole(path)
    if path in _THROUGH or path in _MEMBERS:
        return _THROUGH.get(path) or _MEMBERS[path]
    if name in MODULES:
        return _THROUGH["compat"]
    last = path.rpartition(".")[2]
    if (last.isupper() and not api.is_class(name)) or last.startswith("_") or last == "ModeKeys":
        return ""
    made = api.returns(name) or name
    for family, role in _FAMILIES:
        if api.is_subclass(made, *family) or api.is_subclass(made.rpartition(".")[0], *family):
            return role
    if api.is_class(name):
        return ""
    if not last[:1].isupper():
        if path.startswith("train."):  # in which only the functions that make schedules count
            return _THROUGH["train"] if api.rate_parameters(name) else ""
        if path.startswith("keras.applications.") and path.count(".") > 2:  # `resnet.preprocess_input`
            return ""
        for module in _FUNCTIONS:
            if path.startswith(f"{module}."):
                return _THROUGH[module]
    return _in_whole(path)


def _in_whole(path: str) -> str:
    return next((_THROUGH[module] for module in _WHOLE if path.startswith(f"{module}.")), "")


def _path(name: str) -> str:
    """The path after the module: ``keras.Model`` for ``tensorflow.compat.v1.keras.Model``."""
    for module in ("tensorflow.compat.v1", "tensorflow.compat.v2", "tensorflow"):
        if name == module or name.startswith(f"{module}."):
            return name[len(module) + 1 :]
    return name
