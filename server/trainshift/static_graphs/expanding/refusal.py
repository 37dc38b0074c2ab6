"""Refusal: the reason why a function is not expanded, and the place."""

from __future__ import annotations

import ast


class CannotExpand(Exception):
    """A place of a function that cannot be expanded; `code` is the finding that prevents it, if any."""

    def __init__(self, node: ast.AST, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason
        self.code = code


class MustBeTensors(Exception):
    """Numbers that must be tensors before a loop begins: the expansion restarts with that knowledge."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names
