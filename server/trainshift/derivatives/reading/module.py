"""A file as the differentiation reads it: its functions, imports, names and comments."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from collections.abc import Sequence
from itertools import pairwise

from trainshift.derivatives.result import NotFound
from trainshift.derivatives.tables.helpers import helper_of
from trainshift.derivatives.tables.table_helpers import CONSTANTS
from trainshift.derivatives.tables.table_helpers import ROWS as OF_HELPERS
from trainshift.derivatives.terms import walk
from trainshift.python.lazy import cached_property
from trainshift.python.source.source import Source

_ARRAYS = frozenset(("numpy", "tensorflow", "jax", "torch"))
MADE = "# Made by trainshift differentiate "


class Module:
    """The text of a file, its tree, and what its top-level names stand for.

    Raises `NotFound` where the text is no Python.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = Source(text)
        try:
            self.tree = ast.parse(text.removeprefix("\ufeff"))
        except (SyntaxError, ValueError) as wrong:
            line = getattr(wrong, "lineno", None) or 1
            raise NotFound(f"line {line} cannot be read as Python") from wrong
        self.all_functions = {each.name: each for each in self.tree.body if isinstance(each, ast.FunctionDef)}
        found = {name: helper_of(each) for name, each in self.all_functions.items()}
        self.helpers = {name: helper for name, helper in found.items() if helper is not None}
        """The helpers of earlier derivatives, by the names that they have in the file."""
        # A helper whose derivative the table does not know is a function like any other.
        known = {row.name for row in OF_HELPERS} | CONSTANTS
        self.functions = {
            name: each for name, each in self.all_functions.items() if self.helpers.get(name) not in known
        }
        self.imports: dict[str, str] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    full = each.name if each.asname else each.name.partition(".")[0]
                    self.imports[each.asname or full] = full
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for each in node.names:
                    self.imports[each.asname or each.name] = f"{node.module}.{each.name}"
        for node in walk(self.tree):
            if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
                node.as_is = True  # type: ignore[attr-defined]

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines of the text without their ends."""
        starts = [*self.source.line_starts, len(self.text)]
        return [self.text[a:b].rstrip("\r\n") for a, b in pairwise(starts)]

    @cached_property
    def comments(self) -> dict[int, tuple[int, str]]:
        """Comments by line: their column, and the text."""
        found: dict[int, tuple[int, str]] = {}
        if "#" not in self.text:
            return found
        text = self.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = (token.start[1], token.string)
        return found

    @cached_property
    def names(self) -> set[str]:
        """All names that top-level statements and builtins use."""
        found = {each.name for each in self.tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
        found.update(self.imports, dir(builtins))
        for statement in self.tree.body:
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found.update(each.id for each in walk(statement) if isinstance(each, ast.Name))
        return found

    @property
    def knows_arrays(self) -> bool:
        """Whether the file imports a library of arrays."""
        return any(each.partition(".")[0] in _ARRAYS for each in self.imports.values())

    def function(self, name: str) -> ast.FunctionDef:
        """The top-level function of a name; raises `NotFound`."""
        if name not in self.functions:
            raise NotFound(f"there is no function {name} at the top level of the file")
        return self.functions[name]

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of what a global name or attribute of a module stands for, if it is imported or
        built in."""
        match node:
            case ast.Name(name):
                if name in self.imports:
                    return self.imports[name]
                return f"builtins.{name}" if hasattr(builtins, name) and name not in self.functions else None
            case ast.Attribute(value, attribute):
                base = self.dotted(value)
                return f"{base}.{attribute}" if base and not base.startswith("builtins.") else None
        return None

    def alias(self, module: str) -> str | None:
        """The name that a module has in the file, if it is imported."""
        return next((name for name, full in self.imports.items() if full == module), None)
