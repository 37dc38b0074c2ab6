"""Refuses derivatives that need a name which the file, or a function of it, gives to something else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainshift.derivatives.reading.global_names import BUILTINS
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.rename_bound import MODULES, identifiers
from trainshift.derivatives.result import Refusal
from trainshift.derivatives.terms import walk

# What is handed on rather than called.
_TYPES = frozenset(("bool", "complex", "dict", "float", "int", "list", "object", "str", "tuple", "type"))


def shadowed(
    module: Module, start: ast.FunctionDef, functions: Sequence[ast.FunctionDef], helpers: Iterable[str]
) -> Iterator[Refusal]:
    """The refusals of new functions, and of the texts of their helpers.

    What the user's own code reads has one meaning, and another name where the file binds a builtin's.
    """
    made = {each.name for each in functions}
    needed = {name for each in functions for name in _read_outside(each)}
    needed |= {name for text in helpers for node in ast.parse(text).body for name in _read_outside(node)}
    for name in sorted(needed & BUILTINS):
        meaning = module.globals.meaning(name)
        if meaning.library != f"builtins.{name}":
            yield _refusal(
                start, f"the derivative calls {name}, which is another thing in this file: rename it"
            )
    modules = {*MODULES, *(module.alias(each) or "" for each in MODULES.values())}
    bases = {
        each.value.id
        for function in functions
        for each in walk(function)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)
    }
    for key, full in MODULES.items():
        if key in bases & needed and module.alias(full) is None and key in module.script.module_bindings:
            yield _refusal(
                start, f"the derivative imports {full}, and {key} is another thing here: rename it"
            )
    for function in functions:
        for each in walk(function):
            if isinstance(each, ast.FunctionDef | ast.Lambda):
                given = [arg.arg for arg in walk(each.args) if isinstance(arg, ast.arg)]
                names = set(given)
                for name in sorted(one for one in names if given.count(one) > 1):
                    said = f"the derivative has a parameter {name} of its own: rename this one"
                    yield _refusal(start, said)
                for name in sorted(_needed_in(each, names & (BUILTINS | modules | made), modules)):
                    said = f"the derivative needs {name}, and a parameter is called so: rename it"
                    yield _refusal(start, said)


def _read_outside(node: ast.AST) -> set[str]:
    """The names that a function reads and does not bind anywhere."""
    return identifiers(node) - identifiers(node, bound_only=True)


def _needed_in(function: ast.FunctionDef | ast.Lambda, names: set[str], modules: set[str]) -> Iterator[str]:
    """Those of a function's parameters that are used as what else has their name is."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    for each in (node for line in body for node in walk(line)) if names else ():
        match each:
            case ast.Attribute(ast.Name(name)) if name in names & modules:
                yield name
            case ast.Call(func, args, keywords):
                types = [one for arg in args for one in (arg.elts if isinstance(arg, ast.Tuple) else [arg])]
                types += [one.value for one in keywords]
                yield from (one.id for one in [func] if isinstance(one, ast.Name) and one.id in names)
                yield from (one.id for one in types if isinstance(one, ast.Name) and one.id in names & _TYPES)


def _refusal(start: ast.FunctionDef, said: str) -> Refusal:
    return Refusal(start.lineno, start.col_offset + 1, said)
