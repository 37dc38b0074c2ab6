"""Classes of syntax nodes that are asked for together, as tuples for `isinstance`."""

from __future__ import annotations

import ast

LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
# `except*` exists from Python 3.11 on.
TRIES: tuple[type[ast.stmt], ...] = (ast.Try, *filter(None, (getattr(ast, "TryStar", None),)))
COMPOUND = (ast.If, *LOOPS, *WITHS, *TRIES, ast.Match)
