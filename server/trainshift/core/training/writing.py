"""Writing: check whether a `try` allows for a folder that already exists."""

from __future__ import annotations

import ast

from trainshift.python.syntax.chunk_syntax import Statement, last_name

# Exceptions raised if a folder already exists.
_FORGIVING = ("FileExistsError", "OSError", "EnvironmentError", "IOError", "Exception", "BaseException")


def is_forgiven(statement: Statement) -> bool:
    """Return whether a statement is in a `try` that handles its failure if another rank was faster."""
    below = statement
    for above in statement.ancestors():
        if isinstance(above.node, ast.Try) and below.branch == "body":
            for handler in above.node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                if any(kind is None or last_name(kind) in _FORGIVING for kind in kinds):
                    return True
        below = above
    return False
