"""Origins: the original statements behind rewritten code, for rewriting and printing."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from msgspec import Struct


class Origin(Struct):
    """The origin of a statement.

    Comments above the line `above` go above it, and the one beside the statement `beside` goes beside it.
    With `is_verbatim`, its text is that of the file; with `is_inline`, it has no line of its own there; with
    `is_expanded`, an expansion created it.  It `begins_adjoint` if the adjoint pass begins there. `bound`
    caches the names that it binds.
    """

    above: int | None = None
    beside: ast.stmt | None = None
    is_verbatim: bool = False
    is_inline: bool = False
    is_expanded: bool = False
    begins_adjoint: bool = False
    bound: frozenset[str] | None = None


def origin(node: ast.stmt) -> Origin:
    """Return the origin of a statement, to be read or changed; deep copies have a copy of it."""
    found: Origin | None = getattr(node, "_origin", None)
    if found is None:
        found = Origin()
        node._origin = found  # type: ignore[attr-defined]
    return found


def comes_from(made: Sequence[ast.stmt], node: ast.stmt) -> None:
    """Attach the comments of a statement to the first and the main line made from it."""
    if not made or not hasattr(node, "lineno") or origin(node).is_inline:
        return
    origin(made[0]).above = node.lineno
    main = next((each for each in made if getattr(each, "lineno", None) == node.lineno), made[-1])
    origin(main).beside = node
