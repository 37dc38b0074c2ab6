"""Words: the names that an expansion looks for in expressions, and the types of numbers."""

from __future__ import annotations

import ast

VALUE_NEEDED = frozenset(
    [
        "max",
        "min",
        "sorted",
        "any",
        "all",
        "round",
        "sum",
        "str",
        "repr",
        "list",
        "tuple",
        "set",
        "map",
        "filter",
        "zip",
        "enumerate",
        "reversed",
        "range",
        "divmod",
        "format",
        "hasattr",
        "iter",
        "next",
        "dict",
        "complex",
        "bytes",
        "hash",
        "type",
        "vars",
    ]
)
TO_NUMPY = frozenset({"numpy", "item", "tolist", "__array__", "cpu", "cuda", "detach_"})
FROZEN = ("random.", "numpy.random.", "time.", "datetime.", "os.environ")
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
NUMBER_TYPES = {"int": "int64", "float": "float64", "bool": "bool"}
FAMILY = {"int": "int64", "float": "float", "bool": "bool"}
GENERATED = frozenset(
    [
        "if_true",
        "if_false",
        "loop_cond",
        "loop_body",
        "static_cond",
        "static_while",
        "static_assert",
        "static_print",
    ]
)
