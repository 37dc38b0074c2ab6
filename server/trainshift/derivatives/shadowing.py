"""Refuse derivatives that need a name which the file, or a function in it, uses for another object."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainshift.derivatives.reading.global_names import BUILTINS
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.rename_bound import MODULES
from trainshift.derivatives.reading.result import Refusal
from trainshift.python.rewrite.terms import walk

# Names that are passed on rather than called.
_TYPES = frozenset(("bool", "complex", "dict", "float", "int", "list", "object", "str", "tuple", "type"))


def shadowed(
    module: Module, start: ast.FunctionDef, functions: Sequence[ast.FunctionDef], helpers: Iterable[str]
) -> Iterator[Refusal]:
    """The refusals of new functions, and of the texts of their helpers.

    The user's own code is unaffected: its names have one meaning, and builtins that the file rebinds are
    renamed.
    """
    said = list(_twice(functions)) or [
        *_of_file(module, functions, helpers),
        *_of_parameters(module, functions),
    ]
    for each in dict.fromkeys(said):
        yield Refusal(start.lineno, start.col_offset + 1, each)


def _twice(functions: Iterable[ast.FunctionDef]) -> Iterator[str]:
    """Yield names that clash with a parameter that the derivative adds."""
    for function in functions:
        given = [each.arg for each in walk(function.args) if isinstance(each, ast.arg)]
        for name in sorted({each for each in given if given.count(each) > 1}):
            yield f"the derivative has a parameter {name} of its own: rename this one"


def _of_file(module: Module, functions: Sequence[ast.FunctionDef], helpers: Iterable[str]) -> Iterator[str]:
    """Yield names that the derivative needs and the file uses for another object."""
    bound = module.script.module_bindings.keys()
    others = [key for key, full in MODULES.items() if key in bound and module.alias(full) is None]
    if not others and bound.isdisjoint(BUILTINS) and "*" not in bound:
        return
    own = {name for each in functions for name in _global_names(ast.unparse(ast.fix_missing_locations(each)))}
    of_helpers = {name for each in helpers for name in _global_names(each)}
    for name in sorted((own | of_helpers) & BUILTINS):
        if module.globals.meaning(name).library != f"builtins.{name}":
            yield f"the derivative calls {name}, which means something else in this file: rename it"
    parts = (each.value for one in functions for each in walk(one) if isinstance(each, ast.Attribute))
    needed = own & {each.id for each in parts if isinstance(each, ast.Name)} | of_helpers
    for key in others:
        if key in needed:
            yield f"the derivative imports {MODULES[key]}, and {key} means something else here: rename it"


def _global_names(text: str) -> set[str]:
    """The global names that the functions of a text read."""
    found = set[str]()
    waiting = symtable.symtable(text, "", "exec").get_children()
    while waiting:
        table = waiting.pop()
        found |= {
            each.get_name() for each in table.get_symbols() if each.is_global() and each.is_referenced()
        }
        waiting += table.get_children()
    return found


def _of_parameters(module: Module, functions: Sequence[ast.FunctionDef]) -> Iterator[str]:
    """Yield names that the derivative needs inside a function with a parameter of that name."""
    written = {key: module.alias(full) or key for key, full in MODULES.items()}
    needed = BUILTINS | {*written, *written.values()} | {each.name for each in functions}
    for function in (each for one in functions for each in walk(one)):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            names = {each.arg for each in walk(function.args) if isinstance(each, ast.arg)}
            for name in sorted(set(_needed_in(function, names & needed, written))):
                yield f"the derivative needs {name}, and a parameter has that name: rename it"


def _needed_in(
    function: ast.FunctionDef | ast.Lambda, names: set[str], written: Mapping[str, str]
) -> Iterator[str]:
    """Yield a function's parameters whose names it also uses for another object."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    for each in (node for line in body for node in walk(line)) if names else ():
        match each:
            case ast.Attribute(ast.Name(name)):
                yield from names & {*([name, written[name]] if name in written else ())}
            case ast.Call(func, args, keywords):
                types = [one for arg in args for one in (arg.elts if isinstance(arg, ast.Tuple) else [arg])]
                types += [one.value for one in keywords]
                yield from (one.id for one in [func] if isinstance(one, ast.Name) and one.id in names)
                yield from (one.id for one in types if isinstance(one, ast.Name) and one.id in names & _TYPES)
