"""Drops the script's own choice of GPUs, which would undo the pinning of one GPU per rank.

    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    tf.config.set_visible_devices(gpus[0], "GPU")

Both statements go; their comments stay. A block that would be left empty gets `pass`.

Seeds: S2, S3 `trans_S[[os.environ['CUDA_VISIBLE_DEVICES'] = e]]`; correction C18.
"""

from __future__ import annotations

import ast

from trainshift.core.edit import Change
from trainshift.core.facts import Statement
from trainshift.core.program import Program
from trainshift.transforms.rule import Proposals, Transform

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SETTERS = ("tensorflow.config.set_visible_devices", "tensorflow.config.experimental.set_visible_devices")


def propose(program: Program) -> Proposals:
    """One change for each statement that chooses GPUs other than by rank."""
    dropped = [each for each in program.script.statements if _chooses_gpus(program, each)]
    for statement in dropped:
        # The last of a block that is dropped as a whole becomes `pass`, whichever is applied first.
        emptied = statement.parent is not None and all(each in dropped for each in statement.block)
        last = statement.index == len(statement.block) - 1
        edits = program.layout.remove(statement, emptied and last)
        target = program.script.statement_span(statement)
        yield Change("HV11", "Leave the choice of GPU to the rank", target, edits, program.requires)


def _chooses_gpus(program: Program, statement: Statement) -> bool:
    node = statement.node
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        return isinstance(target, ast.Subscript) and (
            _is_variable(target.slice)
            and _is_environment(program, target.value, statement)
            and not program.horovod.pinned(node.value, statement.scope, statement)
        )
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    names = program.names.full_names(call.func, statement.scope, statement)
    if not names.isdisjoint(_SETTERS):
        given = [*call.args, *(word.value for word in call.keywords)]
        if len(given) > 1 and isinstance(given[1], ast.Constant) and given[1].value != "GPU":
            return False
        return not any(program.horovod.pinned(each, statement.scope, statement) for each in given)
    if "os.putenv" in names or "os.environ.setdefault" in names:
        pinned = any(program.horovod.pinned(each, statement.scope, statement) for each in call.args)
        return bool(call.args) and _is_variable(call.args[0]) and not pinned
    return False


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == _VARIABLE


def _is_environment(program: Program, node: ast.expr, statement: Statement) -> bool:
    return "os.environ" in program.names.full_names(node, statement.scope, statement)


RULE = Transform("HV11", "drop-visible-devices", propose)
