"""Run static functions as plain Python with a stand-in for tensors, and record which expressions were
tensors.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

Place = tuple[int, int, str]
"""The place of an expression: the offsets of its start and end, and the name of its class."""


class Tensor:
    """A number that counts as a tensor."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __neg__(self) -> Tensor:
        return Tensor(-self.value)

    __hash__ = object.__hash__

    _OPERATORS: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
    }
    _COMPARISONS: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {
        each: getattr(operator, each) for each in ("lt", "le", "gt", "ge", "eq", "ne")
    }

    def abs(self) -> Tensor:
        """The method that makes another tensor from one."""
        return Tensor(abs(self.value))


def _number(value: object) -> Any:
    return value.value if isinstance(value, Tensor) else value


def _define_operators() -> None:
    def forward(made: Callable[[Any, Any], Any]) -> Callable[[Tensor, object], object]:
        def method(self: Tensor, other: object) -> object:
            number = _number(other)
            return Tensor(made(self.value, number)) if isinstance(number, int | float) else NotImplemented

        return method

    def reflected(made: Callable[[Any, Any], Any]) -> Callable[[Tensor, object], object]:
        return forward(lambda one, other: made(other, one))

    for name, made in {**Tensor._OPERATORS, **Tensor._COMPARISONS}.items():
        setattr(Tensor, f"__{name}__", forward(made))
    for name, made in Tensor._OPERATORS.items():
        setattr(Tensor, f"__r{name}__", reflected(made))


_define_operators()


def _paddle() -> dict[str, ModuleType]:
    """Modules that replace Paddle's."""

    def to_static(function: Any = None, **_: object) -> Any:
        return function if function is not None else (lambda given: given)

    class Layer:
        training = False

        def __call__(self, *given: Any, **words: Any) -> Any:
            return self.forward(*given, **words)  # type: ignore[attr-defined]

    modules = {name: ModuleType(name) for name in ("paddle", "paddle.jit", "paddle.nn", "paddle.static")}
    made: dict[str, dict[str, object]] = {
        "paddle": {
            "Tensor": Tensor,
            "abs": lambda x: Tensor(abs(_number(x))),
            "to_tensor": lambda x: Tensor(_number(x)),
            "is_tensor": lambda x: isinstance(x, Tensor),
        },
        "paddle.jit": {"to_static": to_static, "not_to_static": to_static},
        "paddle.nn": {"Layer": Layer},
        "paddle.static": {"InputSpec": lambda *_, **__: None},
    }
    for name, module in modules.items():
        vars(module).update(made[name])
        if "." in name:
            setattr(modules["paddle"], name.partition(".")[2], module)
    return modules


@contextmanager
def _stand_ins() -> Iterator[None]:
    modules = _paddle()
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class _Marked(ast.NodeTransformer):
    """Marks every expression that is read."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.places: list[Place] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(each) for each in node.body]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if not isinstance(node, ast.expr) or not is_read or isinstance(node, ast.Starred | ast.Slice):
            return node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        self.places.append((start, end, node.__class__.__name__))
        number = ast.Constant(len(self.places) - 1)
        return ast.Call(ast.Name("__note__", ast.Load()), [number, node], [])


def traced(text: str, call: Callable[[dict[str, Any]], object]) -> dict[Place, set[str]]:
    """Run a script, then `call` with its names; the kind of each expression: "tensor", "number" or
    "other".
    """
    marked = _Marked(text)
    tree = ast.fix_missing_locations(marked.visit(ast.parse(text)))
    seen: dict[Place, set[str]] = {}

    def note(number: int, value: object) -> object:
        is_number = isinstance(value, int | float)
        kind = "tensor" if isinstance(value, Tensor) else "number" if is_number else "other"
        seen.setdefault(marked.places[number], set()).add(kind)
        return value

    names: dict[str, Any] = {"__note__": note, "__name__": "traced"}
    with _stand_ins():
        exec(compile(tree, "<traced>", "exec", dont_inherit=True), names)
        call(names)
    return seen
