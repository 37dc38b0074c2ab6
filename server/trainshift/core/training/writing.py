"""Writing: which calls write files, by their arguments and by what is tried around them."""

from __future__ import annotations

import ast

from trainshift.core import tables
from trainshift.python.syntax.chunk_syntax import Site, Statement, last_name

# What is raised where a folder is there already.
_FORGIVING = ("FileExistsError", "OSError", "EnvironmentError", "IOError", "Exception", "BaseException")


def writes(site: Site, name: str) -> bool:
    """Whether a call of one of `tables.WRITING` writes so that a second rank would do harm."""
    keywords = {word.arg for word in site.node.keywords}
    needed, harmless = tables.WRITING_IF_GIVEN.get(name), tables.HARMLESS_IF_GIVEN.get(name)
    if (needed is not None and needed not in keywords) or harmless in keywords:
        return False
    return not (name in tables.MAKING_FOLDERS and _is_forgiven(site.statement))


def _is_forgiven(statement: Statement) -> bool:
    """Whether the statement is tried, and what fails if another rank was there before is handled."""
    below = statement
    for above in statement.ancestors():
        if isinstance(above.node, ast.Try) and below.branch == "body":
            for handler in above.node.handlers:
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                if any(kind is None or last_name(kind) in _FORGIVING for kind in kinds):
                    return True
        below = above
    return False
