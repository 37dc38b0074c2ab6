"""Step names: the names of a TensorFlow 1 graph's training operations across files."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainshift.core.program import Program
from trainshift.python.flow.traversal import closure, reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.syntax.chunk_syntax import ChunkSyntax, children, last_name
from trainshift.python.syntax.code import bound_values

STEPPING = ("minimize", "apply_gradients", "create_train_op", "optimize_loss")


class StepNames:
    """The names of possible training operations, in every file of a program."""

    def __init__(self, program: Program) -> None:
        self._script = program.script

    @cached_property
    def by_script(self) -> dict[Script, set[str]]:
        """The names, by the script that binds them; scripts without any are left out."""
        workspace = self._script.workspace
        scripts = [self._script] if workspace is None else [self._script, *workspace.reachable]
        found = {script: _step_names(script) for script in dict.fromkeys(scripts)}
        return {script: names for script, names in found.items() if names}


def _step_names(script: Script) -> set[str]:
    return names_of(script, {site.node for site in script.sites_named(*STEPPING)})


def names_of(script: Script, calls: set[ast.Call]) -> set[str]:
    """The names and attributes to which the results of `calls` are bound, through further assignments."""
    found: set[str] = set()
    if not calls:
        return found
    named_after: dict[str, list[str]] = {}
    for name, called, words in (each for facts in script.facts for each in facts.once(_named)):
        if not calls.isdisjoint(called):
            found.add(name)
        for word in words:
            named_after.setdefault(word, []).append(name)
    for condition, name in _controlled(script):
        named_after.setdefault(condition, []).append(name)
    return closure(found, named_after)


def _named(facts: ChunkSyntax) -> list[tuple[str, list[ast.Call], set[str]]]:
    """The names and attributes that a chunk assigns, each with the calls and words in the assigned value."""
    found = []
    for name, value in facts.once(bound_values):
        parts = list(_parts(value))
        words = {last_name(part) for part in parts if isinstance(part, (ast.Name, ast.Attribute))}
        found.append((name, [part for part in parts if isinstance(part, ast.Call)], words))
    return found


def _parts(value: ast.expr) -> Iterator[ast.AST]:
    """Yield an expression and its parts, except inside a session's `run`, which returns values, not
    operations.
    """
    return reachable([value], lambda part: () if _runs(part) else children(part))


def _runs(node: ast.AST) -> bool:
    """Return whether it is a call of a method with the name of a session's run method."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"


def _controlled(script: Script) -> Iterator[tuple[str, str]]:
    """The names in a ``with tf.control_dependencies([...])``, each with a name bound under it."""
    for site in script.sites_named("control_dependencies"):
        block = site.statement.branches.get("body", ()) if isinstance(site.statement.node, ast.With) else ()
        conditions = [part for part in ast.walk(site.node) if isinstance(part, ast.Name | ast.Attribute)]
        for statement in block:
            targets = statement.node.targets if isinstance(statement.node, ast.Assign) else []
            for target in targets:
                for condition in conditions:
                    yield last_name(condition), last_name(target)
