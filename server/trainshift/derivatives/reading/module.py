"""A file to differentiate: its functions, and the values of its global names."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import chain, pairwise

from trainshift.derivatives.reading.global_names import BUILTINS, GlobalNames, Meaning
from trainshift.derivatives.reading.result import NotFound, Refusal
from trainshift.derivatives.tables.helpers import helper_of
from trainshift.derivatives.tables.rows import rows
from trainshift.derivatives.tables.table import CONSTANTS
from trainshift.derivatives.tables.table_helpers import CONSTANTS as OF_HELPERS
from trainshift.derivatives.tables.table_helpers import ROWS as HELPER_ROWS
from trainshift.derivatives.tables.table_numpy import CONSTANTS as OF_NUMPY
from trainshift.derivatives.tables.table_tensorflow import CONSTANTS as OF_TENSORFLOW
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.rewrite.origins import origin
from trainshift.python.rewrite.terms import walk
from trainshift.python.source.comments import Comments, comments_by_line
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunk_syntax import Scope
from trainshift.python.syntax.chunks import ParseFailure, parse
from trainshift.python.syntax.code import Code

_ARRAYS = frozenset(("numpy", "tensorflow", "jax", "torch"))
MADE = "# Made by trainshift differentiate "


_OPERATOR = re.compile(r"__[ri]?(add|sub|mul|matmul|truediv|floordiv|mod|pow)__")
"""The methods by which objects of a class are calculated with."""


class Module:
    """The text of a file, its functions, and the values of its global names.

    `start` is the function to differentiate: names have their meaning after its definition.

    Objects that the file gives the name of a builtin are renamed here: see `original`. Raises `NotFound` if
    the text is not valid Python.
    """

    def __init__(self, text: str, start: str) -> None:
        self.text = text
        self.source = Source(text)
        plain = text.removeprefix("\ufeff")
        chunks = parse(plain, is_kept=False)
        if isinstance(chunks, ParseFailure):
            raise NotFound(f"line {chunks.line} cannot be read as Python: {chunks.message}")
        self.script = Script(Code(Source(plain), chunks))
        self.body = [each.node for each in self.script.top]
        self.all_functions = {each.name: each for each in self.body if isinstance(each, ast.FunctionDef)}
        found = {name: helper_of(each) for name, each in self.all_functions.items()}
        self.helpers = {name: helper for name, helper in found.items() if helper is not None}
        """The helpers of earlier derivatives, by the names that they have in the file."""
        self.globals = GlobalNames(self.script, start, _is_known)
        self.aliases: dict[str, str] = {}
        """The functions that have a different name here than in the file, by their name here."""
        self.original: dict[str, str] = {}
        """The code to write for a name that exists only in this reading."""
        self.variables: dict[str, str] = {}
        """The variables of functions that were renamed, as they are written, by their new names."""
        self.functions: dict[str, ast.FunctionDef] = {}
        self.scopes: dict[int, Scope] = {}
        """The scopes of functions, by their identity."""
        self.renamed: dict[str, ast.FunctionDef] = {}
        """The functions with one meaning for each name, as far as they were asked for."""
        self._libraries: dict[str, str] = {}
        self._read_functions()
        for statement in self.script.statements:
            if not isinstance(statement.node, ast.FunctionDef):
                origin(statement.node).is_verbatim = True

    def _read_functions(self) -> None:
        """Find the functions of the file, with a name for each, and redefined builtins."""
        bound = dict.fromkeys((*self.script.module_bindings, *self.globals.starred_builtins))
        meanings = {name: self.globals.meaning(name) for name in bound if name not in self._known_helpers}
        named = {name: each.function for name, each in meanings.items() if each.function is not None}
        for name, node in named.items():
            key = self._internal(name) if name in BUILTINS else name
            made = _as_function(node, key)
            self.functions[key] = made
            self.scopes[id(made)] = self._scopes[node]
        for name, meaning in meanings.items():
            if name in BUILTINS and name not in self.aliases and meaning.library != f"builtins.{name}":
                self._libraries[self._internal(name)] = meaning.library

    @cached_property
    def _known_helpers(self) -> frozenset[str]:
        """The helpers whose derivatives are in the table; any others are treated like ordinary functions."""
        known = {row.name for row in HELPER_ROWS} | OF_HELPERS
        return frozenset(name for name, helper in self.helpers.items() if helper in known)

    def _internal(self, name: str) -> str:
        """A name unused in the file, for an object with the name of a builtin."""
        made = self.script.fresh(f"{name}_1", taken=self.original)
        self.aliases[name] = made
        self.original[made] = name
        return made

    @cached_property
    def _scopes(self) -> dict[ast.AST | None, Scope]:
        return {each.node: each for each in self.script.scopes}

    def refusal(self, node: ast.AST, message: str, around: ast.stmt) -> Refusal:
        """The refusal of a node, or of the statement around it if the node has no line of its own."""
        line = getattr(node, "lineno", around.lineno)
        before = self.lines[line - 1].encode()[: getattr(node, "col_offset", 0)]
        return Refusal(line, len(before.decode(errors="replace")) + 1, message)

    def forget(self) -> None:
        """Free everything that was read; the module must not be used afterwards.

        It is full of reference cycles, which the garbage collector would be slow to find.
        """
        script = self.script
        chunks = script.facts
        for each in (script.names, script, self):
            vars(each).clear()
        for syntax in chunks:
            syntax.dissolve()

    def restored(self, text: str) -> str:
        """A text with the file's names restored where this reading has renamed them."""
        for made, name in self.original.items():
            text = re.sub(rf"\b{made}(?=\b|_)", name, text)
        return text

    def as_written(self, message: str) -> str:
        """A message with the names in the file, including those of renamed variables."""
        for made, name in self.variables.items():
            message = re.sub(rf"\b{made}\b", name, message)
        return self.restored(message)

    @cached_property
    def lines(self) -> Sequence[str]:
        """The lines of the text without their ends."""
        starts = [*self.source.line_starts, len(self.text)]
        return [self.text[a:b].rstrip("\r\n") for a, b in pairwise(starts)]

    @cached_property
    def comments(self) -> Comments:
        """The comments by line."""
        return comments_by_line(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in the file and the builtins, which no new variable may get."""
        return BUILTINS.union(self.script.module_bindings, self.original)

    @cached_property
    def knows_arrays(self) -> bool:
        """Return whether the file imports a library of arrays."""
        return any(each.full_name.partition(".")[0] in _ARRAYS for each in self.script.imports)

    def function(self, name: str) -> ast.FunctionDef:
        """The top-level function of a name, unchanged; raises `NotFound`."""
        if name not in self.all_functions or name in self._known_helpers:
            raise NotFound(f"there is no function {name} at the top level of the file")
        return self.all_functions[name]

    def meaning(self, name: str) -> Meaning:
        """The meaning of a global name."""
        return self.globals.meaning(self.original.get(name, name))

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of a global name's or attribute's value, if it is imported, built in, or has no
        derivative.
        """
        match node:
            case ast.Name(name):
                if name in self._libraries:
                    return self._libraries[name] or None
                if name in BUILTINS and name in self.aliases:
                    # Written by the derivative: the file's own variable of that name is renamed.
                    return f"builtins.{name}"
                return self.meaning(name).library or None
            case ast.Attribute(value, attribute):
                return self.member(self.dotted(value), attribute)
        return None

    def member(self, base: str | None, attribute: str) -> str | None:
        """The full name of an attribute of something of a library."""
        return self.globals.member(Meaning(library=base or ""), attribute).library or None

    def has_operators(self, node: ast.expr | None) -> bool:
        """Return whether an expression names a class of the file with operator methods, its own or
        inherited.
        """
        return any(
            _OPERATOR.fullmatch(getattr(part, "name", ""))
            for each in reachable(self._classes(node), lambda each: [*chain(*map(self._classes, each.bases))])
            for part in each.body
        )

    def _classes(self, node: ast.expr | None) -> list[ast.ClassDef]:
        """The classes of the file to which a name, or a string annotation, refers."""
        name = getattr(node, "id", None) or getattr(node, "value", None)
        bound = self.script.module_bindings.get(name, ()) if isinstance(name, str) else ()
        return [each.target for each in bound if isinstance(each.target, ast.ClassDef)]

    def default_changes(self, function: ast.FunctionDef, default: ast.expr) -> str:
        """Return the reason why a default may have changed where the derivative is defined; empty if it has
        not.
        """
        statement = self.scopes[id(self.functions[function.name])].statement
        assert statement is not None
        for each in walk(default):
            if isinstance(each, ast.Name) and (line := self.globals.rebound(each.id, statement.top)):
                return f"is bound again in line {line}"
            if isinstance(each, ast.Call) and not _is_known(self.dotted(each.func) or ""):
                return "is the result of one call"
        return ""

    def alias(self, module: str) -> str | None:
        """The name of a module in the file, if it is imported."""
        bound = (name for name in self.script.module_bindings if name not in BUILTINS and name != "*")
        return next((name for name in bound if self.globals.meaning(name).library == module), None)


def _is_known(full_name: str) -> bool:
    """Return whether the tables know a function of a library."""
    return full_name in rows() or full_name in CONSTANTS | OF_NUMPY | OF_TENSORFLOW


def _as_function(node: ast.FunctionDef | ast.Lambda, name: str) -> ast.FunctionDef:
    """A function of the module as a definition under a name."""
    if isinstance(node, ast.FunctionDef):
        if node.name == name:
            return node
        made = ast.FunctionDef(name, node.args, node.body, node.decorator_list, node.returns)
        return ast.copy_location(made, node)
    made = ast.FunctionDef(name, node.args, [ast.copy_location(ast.Return(node.body), node.body)], [])
    return ast.copy_location(made, node)
