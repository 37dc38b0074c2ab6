"""Drops the script's own choice of GPUs, which would undo the pinning of one GPU per rank.

    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    tf.config.set_visible_devices(gpus[0], "GPU")

Both statements go; their comments stay. A block that would be left empty gets `pass`.

Seeds: S2, S3 `trans_S[[os.environ['CUDA_VISIBLE_DEVICES'] = e]]`; correction C18.
"""

from __future__ import annotations

import ast

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.text.edit import Change, Withheld
from trainshift.core.text.facts import Statement, argument
from trainshift.core.training.horovod import Horovod
from trainshift.transforms.rule import Guard, Proposals, Transform

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SETTERS = ("tensorflow.config.set_visible_devices", "tensorflow.config.experimental.set_visible_devices")


def propose(program: Program) -> Proposals:
    """One change for each statement that chooses GPUs other than by rank."""
    dropped = [each for each in program.script.statements if _chooses_gpus(program, each)]
    if any(isinstance(each.node, ast.Assign) for each in dropped) and _is_read(program):
        reason = "the variable is read elsewhere in the script, which would fail without it"
        for statement in dropped:
            yield Withheld("HV11", program.script.statement_span(statement), reason)
        return
    for statement in dropped:
        # The last of a block that is dropped as a whole becomes `pass`, whichever is applied first.
        emptied = statement.parent is not None and all(each in dropped for each in statement.block)
        last = statement.index == len(statement.block) - 1
        edits = program.fact(Layout).remove(statement, emptied and last)
        target = program.script.statement_span(statement)
        yield Change("HV11", "Leave the choice of GPU to the rank", target, edits)


def _chooses_gpus(program: Program, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return isinstance(target, ast.Subscript) and (
            _is_variable(target.slice)
            and _is_environment(program, target.value, statement)
            and not program.fact(Horovod).pinned(node.value, statement.scope, statement)
        )
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    names = program.names.full_names(call.func, statement.scope, statement)
    if not names.isdisjoint(_SETTERS):
        given = [*call.args, *(word.value for word in call.keywords)]
        kind = argument(call, 1, "device_type")
        if isinstance(kind, ast.Constant) and kind.value not in ("GPU", None):
            return False
        return not any(program.fact(Horovod).pinned(each, statement.scope, statement) for each in given)
    if "os.putenv" in names or "os.environ.setdefault" in names:
        pinned = any(program.fact(Horovod).pinned(each, statement.scope, statement) for each in call.args)
        return bool(call.args) and _is_variable(call.args[0]) and not pinned
    return False


def _is_read(program: Program) -> bool:
    """Whether ``os.environ["CUDA_VISIBLE_DEVICES"]`` is read or deleted somewhere."""
    return any(
        isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Store) and _is_variable(part.slice)
        for statement in program.script.top
        for part in ast.walk(statement.node)
    )


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == _VARIABLE


def _is_environment(program: Program, node: ast.expr, statement: Statement) -> bool:
    return "os.environ" in program.names.full_names(node, statement.scope, statement)


RULE = Transform(
    "HV11",
    "drop-visible-devices",
    propose,
    guards=(Guard("TF01"), Guard("TF03")),
)
