"""The table of derivatives as data: one row for each operation.

A row has a template for each parameter that can be active.  In a template, the name of a parameter stands for
its value, `y` for the value of the operation and `d` for the incoming derivative: the cotangent of `y` in the
reverse templates, the tangent of the parameter in the forward ones.  `np`, `math` and `tf` are the modules.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping

from msgspec import Struct, field


class Row(Struct, frozen=True):
    """The derivative of one operation.

    `params` are its parameters in order.  With `elementwise`, the result has the broadcast shape of its
    operands, so that a cotangent has to be summed back (AD38); `defaults` are literals of optional
    parameters; `only` are the allowed texts of a parameter's argument.
    """

    name: str
    params: tuple[str, ...]
    reverse: Mapping[str, str]
    forward: Mapping[str, str]
    elementwise: bool = True
    defaults: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def param(self, keyword: str) -> str:
        """The parameter for a keyword."""
        return keyword if keyword in self.params else KEYWORDS.get(keyword, keyword)


# Parameters that are conditions, counts, indices or strings, for any argument.
STILL = frozenset(
    ["test", "shape", "axis", "axes", "keepdims", "dtype", "out", "ord", "mode", "reps", "repeats", "width",
     "parts", "index", "indices", "i", "j", "k", "shift", "num", "perm", "subscripts", "transpose_a",
     "transpose_b", "exclusive", "reverse", "n", "begin", "size", "adjoint", "sign"]
)  # fmt: skip
# The libraries' keyword names of parameters that the rows name differently.
KEYWORDS: Mapping[str, str] = {
    **dict.fromkeys(("a_min", "min", "clip_value_min"), "low"),
    **dict.fromkeys(("a_max", "max", "clip_value_max"), "high"),
    **dict.fromkeys(("newshape",), "shape"),
    **dict.fromkeys(("indices_or_sections", "num_or_size_splits"), "parts"),
    **dict.fromkeys(
        ("input_tensor", "tensor", "values", "value", "t", "input", "params", "fill_value", "logits"), "x"
    ),
    **dict.fromkeys(("features", "diagonal", "inputs"), "x"),
    **dict.fromkeys(("pad_width", "paddings"), "width"),
    "multiples": "reps",
    "indices": "index",
    "offset": "k",
    "condition": "test",
    "x": "a",
    "y": "b",
}


def slope(
    name: str, params: str, templates: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> Row:
    """A row whose forward templates equal its reverse ones, as for elementwise operations."""
    return Row(name, tuple(params.split()), templates, templates, defaults=defaults or {})


OPERATORS: Mapping[str, Row] = {
    row.name: row
    for row in (
        slope("Add", "a b", {"a": "d", "b": "d"}),
        slope("Sub", "a b", {"a": "d", "b": "-d"}),
        Row("Mult", ("a", "b"), {"a": "d * b", "b": "d * a"}, {"a": "d * b", "b": "a * d"}),
        Row("Div", ("a", "b"), {"a": "d / b", "b": "-d * y / b"}, {"a": "d / b", "b": "-y * d / b"}),
        slope("Mod", "a b", {"a": "d", "b": "-d * (a // b)"}),
        slope("USub", "a", {"a": "-d"}),
        slope("UAdd", "a", {"a": "d"}),
    )
}

# For a literal exponent, for any number, and for arrays; `b` is 0 where 0 ** (b - 1) would raise.
POWER = slope(
    "Pow",
    "a b",
    {"a": "d * (b * a ** (b - 1) if b else 0.0)", "b": "d * y * (math.log(a) if a > 0 else 0.0)"},
)
ARRAY_POWER = slope(
    "Pow",
    "a b",
    {
        "a": "d * b * a ** np.where(b, b - 1, 1.0)",
        "b": "d * y * np.log(np.where(a > 0, a, 1.0))",
    },
)
TENSOR_POWER = slope(
    "Pow",
    "a b",
    {"a": "d * b * a ** (b - 1)", "b": "d * y * tf.math.log(tf.where(a > 0, a, tf.ones_like(a)))"},
)

_SHARED = {
    "exp": "d * y",
    "expm1": "d * (y + 1)",
    "log": "d / x",
    "log1p": "d / (1 + x)",
    "sqrt": "d / (2 * y)",
    "sin": "d * M.cos(x)",
    "cos": "-d * M.sin(x)",
    "tan": "d * (1 + y * y)",
    "asin": "d / M.sqrt(1 - x * x)",
    "acos": "-d / M.sqrt(1 - x * x)",
    "atan": "d / (1 + x * x)",
    "sinh": "d * M.cosh(x)",
    "cosh": "d * M.sinh(x)",
    "tanh": "d * (1 - y * y)",
    "asinh": "d / M.sqrt(x * x + 1)",
    "acosh": "d / M.sqrt(x * x - 1)",
    "atanh": "d / (1 - x * x)",
}


def shared(module: str, names: Mapping[str, str]) -> list[Row]:
    """The rows that all three libraries share, under the module's own names."""
    short = {"numpy": "np", "math": "math"}.get(module, "tf.math")
    return [
        slope(f"{module}.{names.get(each, each)}", "x", {"x": template.replace("M.", short + ".")})
        for each, template in _SHARED.items()
    ]


def hypot(count: int) -> Row:
    """The row of `math.hypot` with `count` arguments."""
    params = [f"a{place}" for place in range(count)]
    return slope("math.hypot", " ".join(params), {each: f"d * {each} / y if y else 0.0" for each in params})


OF_MATH = (
    *shared("math", {}),
    slope("math.log2", "x", {"x": "d / (x * math.log(2.0))"}),
    slope("math.log10", "x", {"x": "d / (x * math.log(10.0))"}),
    slope("math.log2arguments", "x b", {"x": "d / (x * math.log(b))", "b": "-d * y / (b * math.log(b))"}),
    slope("math.atan2", "a b", {"a": "d * b / (a * a + b * b)", "b": "-d * a / (a * a + b * b)"}),
    slope("math.pow", "a b", POWER.reverse),
    hypot(2),
    slope(
        "math.copysign",
        "a sign",
        {"a": "d * math.copysign(1.0, a) * math.copysign(1.0, sign)"},
    ),
    Row(
        "math.dist",
        ("p", "q"),
        {
            "p": "_like([d * (a - b) / y if y else 0.0 for a, b in zip(p, q)], p)",
            "q": "_like([d * (b - a) / y if y else 0.0 for a, b in zip(p, q)], q)",
        },
        {
            "p": "sum([(a - b) * c for a, b, c in zip(p, q, d)]) / y if y else 0.0",
            "q": "sum([(b - a) * c for a, b, c in zip(p, q, d)]) / y if y else 0.0",
        },
        False,
    ),
    slope("math.fabs", "x", {"x": "d * ((x > 0) - (x < 0))"}),
    slope("math.erf", "x", {"x": "d * 2 / math.sqrt(math.pi) * math.exp(-x * x)"}),
    slope("math.erfc", "x", {"x": "-d * 2 / math.sqrt(math.pi) * math.exp(-x * x)"}),
    slope("math.fmod", "a b", {"a": "d", "b": "-d * math.trunc(a / b)"}),
    slope("math.radians", "x", {"x": "math.radians(d)"}),
    slope("math.degrees", "x", {"x": "math.degrees(d)"}),
    slope("builtins.abs", "x", {"x": "d * ((x > 0) - (x < 0))"}),
    slope("builtins.float", "x", {"x": "d"}),
    slope("builtins.pow", "a b", POWER.reverse),
    slope("builtins.max", "a b", {"a": "d if a >= b else 0.0", "b": "0.0 if a >= b else d"}),
    slope("builtins.min", "a b", {"a": "d if a <= b else 0.0", "b": "0.0 if a <= b else d"}),
    Row("builtins.sum", ("x",), {"x": "[d for _ in x]"}, {"x": "sum(d)"}, False),
    Row(
        "builtins.sum.start",
        ("x", "start"),
        {"x": "[d for _ in x]", "start": "d"},
        {"x": "sum(d)", "start": "d"},
        False,
    ),
    Row(
        "builtins.sum.arrays",
        ("x",),
        {"x": "[_unbroadcast(d, each) for each in x]"},
        {"x": "sum(d)"},
        False,
    ),
    Row(
        "builtins.sum.start.arrays",
        ("x", "start"),
        {"x": "[_unbroadcast(d, each) for each in x]", "start": "_unbroadcast(d, start)"},
        {"x": "sum(d, _zeros(start))", "start": "d"},
        False,
    ),
    Row("math.fsum", ("x",), {"x": "[d for _ in x]"}, {"x": "math.fsum(d)"}, False),
    Row(
        "math.prod",
        ("x",),
        {"x": "[d * math.prod(x[:i]) * math.prod(x[i + 1:]) for i in range(len(x))]"},
        {"x": "sum([d[i] * math.prod(x[:i]) * math.prod(x[i + 1:]) for i in range(len(x))])"},
        False,
    ),
    *(
        Row(
            name,
            ("x",),
            {"x": "[d / list(x).count(y) if each == y else 0.0 for each in x]"},
            {"x": "sum([b for a, b in zip(x, d) if a == y]) / list(x).count(y)"},
            False,
        )
        for name in ("builtins.max.all", "builtins.min.all")
    ),
    Row("builtins.list", ("x",), {"x": "d"}, {"x": "list(d)"}, False),
    Row("builtins.tuple", ("x",), {"x": "d"}, {"x": "tuple(d)"}, False),
    Row("builtins.dict", ("x",), {"x": "d"}, {"x": "dict(d)"}, False),
    Row("copy", ("x",), {"x": "d"}, {"x": "d.copy()"}, False),
)


_EXCEPTIONS = [
    name
    for name, each in vars(builtins).items()
    if isinstance(each, type) and issubclass(each, BaseException)
]
# Functions without a derivative: their value is locally constant, or not a number.
CONSTANTS = frozenset(
    f"builtins.{each}"
    for each in [
        "len", "range", "int", "round", "bool", "str", "isinstance", "print", "repr", "type", "id", "any",
        "all", "hasattr", "callable", "format", "ord", "chr", "hash", "object", "slice", *_EXCEPTIONS,
    ]
) | frozenset(
    f"math.{each}"
    for each in [
        "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "isclose", "gcd", "factorial", "comb",
        "perm",
    ]
)  # fmt: skip
