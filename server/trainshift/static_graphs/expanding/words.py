"""Words: the names that an expansion looks for, the types of numbers, and the output of each rule."""

from __future__ import annotations

import ast

VALUE_NEEDED = frozenset(
    [
        "max", "min", "sorted", "any", "all", "round", "sum", "str", "repr", "list", "tuple", "set", "map",
        "filter", "zip", "enumerate", "reversed", "range", "divmod", "format", "hasattr", "iter", "next",
        "dict", "complex", "bytes", "hash", "type", "vars",
    ]
)  # fmt: skip
TO_NUMPY = frozenset({"numpy", "item", "tolist", "__array__", "cpu", "cuda", "detach_"})
FROZEN = ("random.", "numpy.random.", "time.", "datetime.", "os.environ")
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
NUMBER_TYPES = {"int": "int64", "float": "float64", "bool": "bool"}
FAMILY = {"int": "int64", "float": "float", "bool": "bool"}
GENERATED = frozenset(
    [
        "if_true", "if_false", "loop_cond", "loop_body", "static_cond", "static_while", "static_assert",
        "static_print",
    ]
)  # fmt: skip
RULES = {
    "PS01": "`if` on a tensor as `cond`",
    "PS02": "`while` on a tensor as `while_loop`",
    "PS03": "`for` over a range as `while_loop`",
    "PS04": "`for` over a tensor as `while_loop`",
    "PS05": "`for` over `enumerate` as `while_loop`",
    "PS06": "`break` and `continue` as flags",
    "PS07": "early `return` as a branch",
    "PS08": "`and`, `or`, `not` as logical functions",
    "PS09": "`int`, `float`, `bool` as `cast`",
    "PS10": "`print` of tensors",
    "PS11": "sizes as the graph knows them",
    "PS12": "a conditional expression as `cond`",
    "PS13": "a function that is called",
    "PS14": "`assert` on a tensor",
    "PS15": "a list that grows as a TensorArray",
    "PS16": "a dict or list that is carried as a whole",
    "PS17": "tensors of their own",
    "PS18": "values that may be tensors, decided at run time",
}
