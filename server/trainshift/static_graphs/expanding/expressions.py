"""Expressions and conditions in graph code (PS08-PS12): operators, casts, sizes, ternaries."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

from trainshift.python.flow.def_use import Names, names_read
from trainshift.python.names.script import Script
from trainshift.python.syntax.chunk_syntax import arguments
from trainshift.static_graphs.concretization import names_asked
from trainshift.static_graphs.domain.abstract_values import NUMBERS
from trainshift.static_graphs.expanding.ir import Code, VarInfo, info_of
from trainshift.static_graphs.expanding.knowledge import Knowledge
from trainshift.static_graphs.expanding.refusal import CannotExpand, MustBeTensors
from trainshift.static_graphs.expanding.words import (
    FAMILY,
    FROZEN,
    NUMBER_TYPES,
    SIGNS,
    TO_NUMPY,
    VALUE_NEEDED,
)
from trainshift.static_graphs.reading.function import StaticFunction, Truth
from trainshift.static_graphs.tables.api import is_in_place

_GUARDED = "a graph evaluates both sides, and the left one may guard the right"
KEEP = (ast.Is, ast.IsNot)
MEMBERSHIP = (ast.In, ast.NotIn)
_CASTS = {"int": "int64", "float": "float32", "bool": "bool"}
_YET = ", which a graph does not have yet"
_READING = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.operator,
            ast.unaryop, ast.expr_context, ast.Slice, ast.Tuple, ast.List, ast.keyword)  # fmt: skip
_REPEATABLE = frozenset(
    f"{root}.{name}"
    for root in ("paddle", "paddle.Tensor")
    for name in ("max", "min", "mean", "sum", "abs", "norm", "argmax", "argmin", "numel", "cast", "astype")
)
# Python functions that are operators of tensors.
_OPERATORS = frozenset({"builtins.abs", "builtins.pow"})
# Libraries whose functions need values, which a graph does not have yet.
_OF_VALUES = frozenset({"builtins", "cv2", "math", "numpy", "PIL", "scipy", "sklearn"})


class Expressions:
    """Writes the expressions of one function; raises CannotExpand for each place that cannot be written."""

    def __init__(self, knowledge: Knowledge, script: Script, paddle: str) -> None:
        self.knowledge = knowledge
        self.script = script
        self.paddle = paddle
        self.source = script.code.source
        self.rules: dict[str, ast.AST] = {}
        self.needs: set[str] = set()
        self.pinned: frozenset[str] = frozenset()
        self.cuts_gradients = False
        self.lambdas: dict[ast.Lambda, StaticFunction] = {}
        self.taken_out: set[ast.NamedExpr] = set()
        self.staying: set[ast.NamedExpr] = set()
        self._given: set[ast.AST] = set()

    def condition(self, node: ast.expr, truth: Truth) -> Code:
        """A condition for the graph: a tensor of type bool, or a Python value."""
        return Code(self._condition(node, truth), names_read(node))

    def _condition(self, node: ast.expr, truth: Truth) -> str:
        if isinstance(node, ast.BoolOp):
            return self._logical(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._negated(node, truth)
        value = self.knowledge.kind(node)
        text = self.text(node)
        if isinstance(node, ast.Compare) or value.dtype == "bool" or value.is_python:
            is_number = value.is_python and not value.among("bool") and not isinstance(node, ast.Compare)
            if is_number and self.knowledge.changes(node):
                raise CannotExpand(
                    node, f"`{text}` is a number in Python and a tensor in a graph; compare it"
                )
            return text
        if value.is_tensor and value.dtype:
            self.applied("PS08", node)
            return f"{operand_text(text, node)} > 0"
        if value.is_tensor:
            raise CannotExpand(
                node,
                f"Trainshift cannot tell whether `{short(text)}` is of type bool; compare it, as in `> 0`",
            )
        return text

    def _logical(self, node: ast.BoolOp) -> str:
        """`and` and `or`: logical operators, which evaluate both sides in a graph, or else a `cond`."""
        is_and = isinstance(node.op, ast.And)
        word = "logical_and" if is_and else "logical_or"
        self.applied("PS08", node)
        if not any(self._decides(node.values, index) for index in range(1, len(node.values))):
            found, *texts = [self.operand(each) for each in node.values]
            for text in texts:
                found = f"{self.paddle}.{word}({found}, {text})"
            return found
        *before, last = node.values
        found, is_open = self._side(last)
        known = f'{self.paddle}.full([], {not is_and}, dtype="bool")'
        for index, left in reversed([*enumerate(before)]):
            if self._stays_python(left):
                test, is_open = operand_text(self.text(left), left), True
                found = f"({found} if {test} else False)" if is_and else f"(True if {test} else {found})"
                continue
            found = self.as_tensor(found) if is_open else found
            is_open = False
            if not self._decides(node.values, index + 1):
                found = f"{self.paddle}.{word}({self.operand(left)}, {found})"
                continue
            if any(self._rank(each) != 0 for each in node.values[index + 1 :]):
                raise CannotExpand(node.values[index + 1], _GUARDED, "PD15")
            ways = [f"lambda: {each}" for each in ((found, known) if is_and else (known, found))]
            found = f"{self.cond(is_sure=True)}({self.operand(left)}, {', '.join(ways)})"
        return found

    def _side(self, node: ast.expr) -> tuple[str, bool]:
        """The last side of `and` or `or`, and whether it may be a Python value."""
        if not self._stays_python(node):
            return self.operand(node), False
        text = self.text(node)
        return operand_text(text, node) if self.knowledge.kind(node).among("bool") else f"bool({text})", True

    def may_be_python(self, node: ast.expr) -> bool:
        """Return whether a condition on tensors may be a Python value in some run of the expansion."""
        if isinstance(node, ast.BoolOp):
            return self._stays_python(node.values[0])
        return self.is_counted(node)

    def _decides(self, values: list[ast.expr], index: int) -> bool:
        """Return whether the operands to the left of a condition guard it, because it may fail otherwise."""
        if self._stays_python(values[index - 1]):
            return True
        known = self.knowledge
        guarding = frozenset[str]().union(
            *(names_asked(each, known.is_size, known.has_size) for each in values[:index])
        )
        for each in ast.walk(values[index]):
            if isinstance(each, ast.Subscript) and not self.knowledge.is_size(each):
                if names_read(each) & guarding:
                    return True
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div | ast.FloorDiv | ast.Mod):
                if names_read(each.right) & guarding:
                    return True
        return False

    def _stays_python(self, node: ast.expr) -> bool:
        """Return whether a condition is a Python value in every run of the expansion."""
        return self.knowledge.kind(node).is_python and not self.knowledge.changes(node)

    def _rank(self, node: ast.expr) -> int | None:
        """The number of dimensions of a condition; None if it is unknown."""
        if isinstance(node, ast.BoolOp):
            ranks = {self._rank(each) for each in node.values}
            return ranks.pop() if len(ranks) == 1 else None
        if isinstance(node, ast.UnaryOp):
            return self._rank(node.operand)
        value = self.knowledge.kind(node)
        return 0 if value.is_python else value.rank

    def operand(self, node: ast.expr) -> str:
        """One side of a logical operator: a tensor of type bool in every run."""
        truth = self.knowledge.truth(node)
        value = self.knowledge.kind(node)
        if self.is_counted(node) and not isinstance(node, ast.BoolOp | ast.UnaryOp):
            return self.as_tensor(self._condition(node, truth))
        if isinstance(node, ast.BoolOp | ast.UnaryOp):
            asked = node.operand if isinstance(node, ast.UnaryOp) else None
            is_asked = asked is not None and (self._may_be_asked(asked) or self._is_flag(asked))
            if truth is Truth.GRAPH or is_asked:
                text = self._condition(node, truth)
                return self.as_tensor(text) if self.may_be_python(node) else text
        elif value.is_tensor:
            return self._condition(node, Truth.GRAPH)
        elif self._is_flag(node):
            return self.as_tensor(self.text(node))
        changed = names_read(node) & self.knowledge.became_tensors
        if isinstance(node, ast.Compare) and names_read(node) & self.knowledge.sizes:
            return self._condition(node, Truth.GRAPH)
        if value.is_python and isinstance(node, ast.Compare) and (changed or self.knowledge.has_size(node)):
            if self.knowledge.has_size(node) or changed & self.pinned:
                return self._condition(node, Truth.GRAPH)
            raise MustBeTensors(changed)
        if self._may_be_asked(node):
            return self.as_tensor(self._condition(node, truth))
        raise CannotExpand(
            node, "one side of this condition may not be a tensor; test it in an `if` of its own"
        )

    def is_counted(self, node: ast.expr) -> bool:
        """Return whether a tensor of the graph is a number in dygraph."""
        return self.knowledge.is_counted(node) and not names_read(node) & self.pinned

    def as_tensor(self, text: str) -> str:
        """A tensor for a value that may be a tensor of type bool or a Python bool."""
        return f"{self.paddle}.to_tensor({text})"

    def _may_be_asked(self, node: ast.expr) -> bool:
        """Return whether it is a comparison of numbers or tensors, or a bool or a tensor of bools, on any
        path.
        """
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            kinds = [self.knowledge.kind(each) for each in parts]
            return (
                len(parts) == 2
                and not any(isinstance(op, (*KEEP, *MEMBERSHIP)) for op in node.ops)
                and all(kind.python <= NUMBERS and not kind.array for kind in kinds)
            )
        return isinstance(node, ast.Name) and self.knowledge.kind(node).among("bool")

    def pin(self, names: Names) -> None:
        """Make sure that names are tensors before the loop that they are carried by."""
        if not names <= self.pinned:
            raise MustBeTensors(names)

    def check_flags(self, test: ast.expr) -> bool:
        """Make sure that a condition's bools that become tensors in a loop start as tensors.

        Return whether the whole condition is such a name, or its negation.
        """
        named = [each for each in ast.walk(test) if isinstance(each, ast.Name) and self._is_flag(each)]
        self.pin(frozenset(each.id for each in named))
        is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        return self._is_flag(test.operand if is_negated else test)  # type: ignore[attr-defined]

    def _is_flag(self, node: ast.expr) -> bool:
        """Return whether a name is a Python bool on some paths, and a tensor of type bool on others."""
        value = self.knowledge.kind(node)
        is_flag = value.tensor is not None and value.dtype == "bool" and value.python == {"bool"}
        return isinstance(node, ast.Name) and is_flag and not (value.unknown or value.array)

    def _negated(self, node: ast.UnaryOp, truth: Truth) -> str:
        self.applied("PS08", node)
        if truth is not Truth.GRAPH and not (
            self._is_flag(node.operand) and names_read(node.operand) <= self.pinned
        ):
            if not self._may_be_asked(node.operand):
                raise CannotExpand(node, "this may be a tensor or not; Trainshift cannot tell")
            return f"{self.paddle}.logical_not({self.as_tensor(self._condition(node.operand, truth))})"
        return f"{self.paddle}.logical_not({self.operand(node.operand)})"

    # Text

    def check_ends(self, iterable: ast.expr) -> None:
        """Refuse a loop of Python's that may never end: a graph may not know how many rows a tensor has."""
        match iterable:
            case ast.Call(ast.Name("zip"), [_, *_] as parts) if not any(map(self._is_finite, parts)):
                raise CannotExpand(iterable, unseen(self.source_of(parts[0])))
            case ast.Call(ast.Name("enumerate" | "list" | "tuple" | "reversed"), [part, *_]):
                if isinstance(part, ast.Call):
                    self.check_ends(part)
                elif not self._is_finite(part):
                    raise CannotExpand(iterable, unseen(self.source_of(part)))

    def _is_finite(self, iterable: ast.expr) -> bool:
        """Return whether Python can go through a value: it is no tensor, or one of a known length."""
        value = self.knowledge.kind(iterable)
        return not value.unknown and (value.tensor is None or self.knowledge.has_known_length(iterable))

    def code(self, node: ast.expr) -> Code:
        """The text of an expression, and the names that it reads."""
        return Code(self.text(node), names_read(node))

    def text(self, node: ast.AST) -> str:
        """The text of an expression or a simple statement."""
        span = self.script.span(node, self.knowledge.function.scope)
        return self.rewritten(span.start, span.end, node)

    def rewritten(self, start: int, end: int, node: ast.AST) -> str:
        """A span of text with the changed parts of a node replaced."""
        pieces, at = [], start
        for first, last, text in sorted(self._edits(node)):
            pieces += [self.source.text[at:first], text]
            at = last
        return "".join([*pieces, self.source.text[at:end]])

    def _edits(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        new = self._new(node)
        if new is not None:
            span = self.script.span(node, self.knowledge.function.scope)
            is_name = isinstance(node, ast.NamedExpr) and self._stands_alone(span.start, span.end)
            yield span.start - is_name, span.end + is_name, new
            return
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt):
                yield from self._edits(child)

    def _stands_alone(self, start: int, end: int) -> bool:
        """Return whether a span of text is in parentheses that do not belong to a call."""
        before, text = self.source.text[:start].rstrip("(")[-1:], self.source.text
        return text[start - 1 : start] + text[end : end + 1] == "()" and not (
            before.isalnum() or before in "_)]"
        )

    def _new(self, node: ast.AST) -> str | None:
        for kind, write in self._WRITERS.items():
            if isinstance(node, kind):
                return write(self, node)
        return None

    def applied(self, code: str, node: ast.AST) -> None:
        """Note that a rule was applied."""
        self.rules.setdefault(code, node)

    # Rewritten expressions

    def _choice(self, node: ast.BoolOp) -> str | None:
        if self.knowledge.truth(node) is Truth.PYTHON:
            return None
        values = [self.knowledge.kind(each) for each in node.values]
        ranks = {each.tensor.rank for each in values if each.tensor is not None}
        is_bool = all(
            (each.dtype == "bool" or each.tensor is None) and each.python <= {"bool"} and not each.unknown
            for each in values
        )
        if is_bool and (ranks == {0} or (ranks == {1} and all(each.is_tensor for each in values))):
            return self.condition(node, Truth.GRAPH).text  # One of two bools is its value as a condition.
        raise CannotExpand(
            node, "on tensors, `and` and `or` do not return what they return in Python", "PD15"
        )

    def _not(self, node: ast.UnaryOp) -> str | None:
        if not isinstance(node.op, ast.Not) or self.knowledge.truth(node) is Truth.PYTHON:
            return None
        return self._negated(node, self.knowledge.truth(node))

    def _comparison(self, node: ast.Compare) -> str | None:
        parts = [node.left, *node.comparators]
        is_tensor = any(self.knowledge.kind(each).tensor is not None for each in parts)
        if not (is_tensor or self.knowledge.changes(node)) or all(isinstance(op, KEEP) for op in node.ops):
            return None
        if any(isinstance(op, MEMBERSHIP) for op in node.ops):
            raise CannotExpand(node, f"`in` needs the value of a tensor{_YET}", "PD16")
        for each in parts:
            if self.knowledge.is_shape(each) or self.knowledge.kind(each).python & {
                "list",
                "tuple",
                "str",
                "None",
            }:
                raise CannotExpand(node, "a tensor is compared with a Python object", "PD01")
        if len(parts) == 2:
            return None
        if not all(map(self._is_repeatable, parts[1:-1])) or not is_tensor:
            raise CannotExpand(
                node, "a graph has no chained comparison; write two, with a name in between", "PD16"
            )
        texts = [operand_text(self.text(each), each) for each in parts]
        for one, two in pairwise(parts):
            if not (self.knowledge.kind(one).is_tensor or self.knowledge.kind(two).is_tensor):
                raise CannotExpand(node, "one half of this comparison is not a tensor", "PD16")
        self.applied("PS08", node)
        pairs = [
            f"{one} {SIGNS[kind.__class__]} {two}"
            for one, kind, two in zip(texts, node.ops, texts[1:], strict=False)
        ]
        found = pairs[0]
        for pair in pairs[1:]:
            found = f"{self.paddle}.logical_and({found}, {pair})"
        return found

    def _is_repeatable(self, node: ast.expr) -> bool:
        """Return whether an expression has the same value when evaluated twice."""
        for each in ast.walk(node):
            if isinstance(each, ast.Call):
                named = self.knowledge.function.named.get(each, frozenset())
                if not named or not named <= _REPEATABLE:
                    return False
            elif not isinstance(each, _READING):
                return False
        return True

    def _ternary(self, node: ast.IfExp) -> str | None:
        truth = self.knowledge.truth(node)
        if truth is Truth.PYTHON and not self.knowledge.changes(node.test):
            return None
        one, other = info_of(self.knowledge.kind(node.body)), info_of(self.knowledge.kind(node.orelse))
        self.same(node, one, other, "the two values")
        texts = [self.handed(each, info) for each, info in ((node.body, one), (node.orelse, other))]
        dtype = one.dtype or other.dtype
        if one.is_number != other.is_number:
            texts = [
                self.number(text, dtype) if info.is_number else text
                for text, info in zip(texts, (one, other), strict=True)
            ]
        elif one.is_number:
            texts = [self.number(text, NUMBER_TYPES[one.number]) for text in texts]
        is_swapped = truth is Truth.EITHER and isinstance(node.test, ast.UnaryOp)
        test = node.test.operand if is_swapped and isinstance(node.test, ast.UnaryOp) else node.test
        if is_swapped:
            texts.reverse()
        self.applied("PS12", node)
        name = self.cond(is_sure=truth is Truth.GRAPH and not self.may_be_python(test))
        return f"{name}({self._condition(test, truth)}, lambda: {texts[0]}, lambda: {texts[1]})"

    def _lambda(self, node: ast.Lambda) -> str | None:
        """A lambda, whose names are its own (PS12)."""
        inner = self.lambdas.get(node)
        if inner is None or all(truth is Truth.PYTHON for truth in inner.truths.values()):
            return None
        own = Expressions(Knowledge(inner), self.script, self.paddle)
        own.rules, own.needs, own.lambdas = self.rules, self.needs, self.lambdas
        whole = self.script.span(node, self.knowledge.function.scope)
        body, text = self.script.span(node.body, inner.scope), self.source.text
        written = own.rewritten(body.start, body.end, node.body)
        return text[whole.start : body.start] + written + text[body.end : whole.end]

    def cond(self, *, is_sure: bool) -> str:
        """The function to call for `cond`, depending on whether the condition is certainly a tensor."""
        if is_sure:
            return f"{self.paddle}.static.nn.cond"
        self.needs.add("static_cond")
        return "static_cond"

    def number(self, text: str, dtype: str) -> str:
        """A number as a tensor."""
        return f'{self.paddle}.full([], {text}, dtype="{dtype}")'

    def owned(self, node: ast.AST, text: str, info: VarInfo, *, is_outer: bool) -> str:
        """A new tensor for a name whose value stays, whether it is a tensor or a number.

        It `is_outer` if the tensor may come from outside the enclosing `with`.
        """
        if self.cuts_gradients and is_outer and not info.dtype.startswith(("int", "uint", "bool")):
            raise CannotExpand(node, f"`{short(text)}` would lose its gradient in this `with`; move it out")
        if info.value.is_tensor:
            return f"{self.paddle}.assign({text})"
        self.needs.add("static_value")
        return f"static_value({text})"

    def handed(self, node: ast.expr, info: VarInfo) -> str:
        """An expression as a branch's result: an unchanged name gets a tensor of its own."""
        text = self.text(node)
        if info.other or info.container or info.value.array:
            raise CannotExpand(
                node,
                f"`{short(text)}` is neither a tensor nor a number; only those can leave a graph branch",
                "PD12",
            )
        is_name = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        if is_name and (info.value.is_tensor or info.is_assignable):
            self.applied("PS17", node)
            return self.owned(node, text, info, is_outer=True)
        if isinstance(node, ast.Name | ast.Attribute) and info.value.unknown:
            raise CannotExpand(node, unseen(short(text)))
        return text

    def same(self, node: ast.AST, one: VarInfo, other: VarInfo, what: str) -> None:
        """Refuse values that the two branches of a `cond` cannot both return."""
        for info in (one, other):
            if info.other or info.container or info.value.array:
                raise CannotExpand(node, f"{what} are neither tensors nor numbers on some path", "PD12")
        if one.is_number and other.is_number:
            if one.number != other.number or one.number == "mixed":
                raise CannotExpand(node, f"{what} are of different types of numbers; a graph has one", "PD12")
            return
        if one.is_number or other.is_number:
            number, tensor = (one, other) if one.is_number else (other, one)
            fits = tensor.dtype.startswith(FAMILY.get(number.number, "?"))
            fits = fits or (number.number == "float" and not tensor.dtype)
            if not (tensor.value.is_tensor and tensor.value.rank == 0 and fits):
                raise CannotExpand(node, f"{what} are a number on one path and a tensor on the other", "PD12")
            return
        if one.dtype and other.dtype and one.dtype != other.dtype:
            raise CannotExpand(
                node, f"{what} are {one.dtype} on one path and {other.dtype} on the other", "PD12"
            )
        if one.value.rank is not None and other.value.rank is not None and one.value.rank != other.value.rank:
            raise CannotExpand(node, f"{what} have different numbers of dimensions", "PD12")

    def _call(self, node: ast.Call) -> str | None:
        if node in self.knowledge.held.arrays:
            return self._array(node)
        name = getattr(node.func, "id", "")
        values = [self.knowledge.kind(each) for each in node.args]
        if name in _CASTS and len(values) == 1 and not self.script.module_bindings.get(name):
            return self._cast(node, name)
        if name == "len" and len(values) == 1:
            return self._length(node)
        self._check_call(node, name)
        return None

    def _array(self, node: ast.expr) -> str | None:
        """A list that grows in the graph, as a TensorArray (PS15); None for any other value."""
        dtype = self.knowledge.held.arrays.get(node)
        if dtype is None:
            return None
        self.applied("PS15", node)
        begin = f", initialized_list={self.source_of(node)}" if getattr(node, "elts", ()) else ""
        return f"{self.paddle}.tensor.create_array({dtype}{begin})"

    def _cast(self, node: ast.Call, name: str) -> str | None:
        value = self.knowledge.kind(node.args[0])
        if value.tensor is None and not (value.is_python and self.knowledge.changes(node.args[0])):
            if value.unknown:
                raise CannotExpand(node, "this may be a tensor or not; Trainshift cannot tell", "")
            return None
        if not value.is_tensor and not value.is_python:
            raise CannotExpand(node, "this may be a tensor or not; Trainshift cannot tell")
        if value.is_python and name == "int" and value.among("int", "bool"):
            return operand_text(self.text(node.args[0]), node.args[0])
        if value.is_python or (name == "bool" and value.dtype != "bool"):
            raise CannotExpand(node, f"`{name}()` needs a value here{_YET}", "PD16")
        text = operand_text(self.text(node.args[0]), node.args[0])
        if value.rank != 0:
            text = f"{self.paddle}.reshape({text}, [])"
        dtype = "float64" if name == "float" and value.dtype == "float64" else _CASTS[name]
        if not value.dtype.startswith(("int", "bool")):
            text = f"{text}.detach()"  # A Python number carries no gradient.
        self.applied("PS09", node)
        return f'{self.paddle}.cast({text}, "{dtype}")'

    def length(self, text: str, *, is_sure: bool) -> str:
        """The length of a tensor, or of a value that may be a list."""
        found = f"{self.paddle}.shape({text})[0]"
        return found if is_sure else f"({found} if {self.paddle}.is_tensor({text}) else len({text}))"

    def _length(self, node: ast.Call) -> str | None:
        value = self.knowledge.kind(node.args[0])
        if self.knowledge.is_shape(node.args[0]):
            return self.source_of(node)
        if self.knowledge.is_array_length(node):
            self.applied("PS11", node)
            return f"{self.paddle}.tensor.array_length({self.text(node.args[0])})"
        if not self.knowledge.is_length(node) and not value.unknown:
            return None
        if not value.is_tensor:
            named = short(self.source_of(node.args[0]))
            what = f"`{named}` may be a tensor or a list; if it is a tensor, annotate it as `paddle.Tensor`"
            raise CannotExpand(node, what)
        self.applied("PS11", node)
        return self.length(self.text(node.args[0]), is_sure=True)

    def _check_call(self, node: ast.Call, name: str) -> None:
        known = self.knowledge
        given = arguments(node)
        tensors = [each for each in given if known.kind(each).tensor is not None]
        changed = [each for each in given if known.kind(each).tensor is None and known.changes(each)]
        named = known.function.named.get(node, frozenset())
        if name in VALUE_NEEDED and (tensors or changed) and not known.function.calls.get(node):
            raise CannotExpand(node, f"`{name}()` needs the value of a tensor{_YET}", "PD16")
        if named and all(full.startswith("paddle.") for full in named):
            self._given.update(given)
        if name == "isinstance" and tensors:
            raise CannotExpand(node, "a tensor has a different class in a graph", "PD23")
        if isinstance(node.func, ast.Attribute):
            self._check_method(node, node.func)
        for full in named:
            self._check_library(node, full, takes_tensors=bool(tensors or changed))
        if changed and not any(full.startswith("paddle.") for full in named):
            if name not in ("abs", "print", "isinstance"):
                raise CannotExpand(
                    node,
                    f"`{short(self.source_of(changed[0]))}` is a tensor in a graph; this may need a number",
                )

    def _check_method(self, node: ast.Call, method: ast.Attribute) -> None:
        base, name = self.knowledge.kind(method.value), method.attr
        if name in TO_NUMPY and (base.tensor is not None or base.unknown):
            raise CannotExpand(node, f"`.{name}()` needs the value of a tensor{_YET}", "PD03")
        if is_in_place(name):
            raise CannotExpand(node, f"`{name}` writes into a tensor", "PD21")

    def _check_library(self, node: ast.Call, full_name: str, *, takes_tensors: bool) -> None:
        if full_name.startswith(FROZEN):
            raise CannotExpand(node, "a graph keeps the result of the first call", "PD24")
        if full_name.startswith("paddle."):
            if is_in_place(full_name):
                raise CannotExpand(node, f"`{full_name}` writes into a tensor", "PD21")
        elif full_name not in _OPERATORS and takes_tensors:
            if full_name.partition(".")[0] in _OF_VALUES:
                raise CannotExpand(node, f"`{full_name}` needs the value of a tensor{_YET}", "PD03")
            what = full_name.removesuffix(".__call__")
            raise CannotExpand(node, f"Trainshift cannot see what `{what}` does with a tensor")

    def source_of(self, node: ast.AST) -> str:
        """The source text of a node."""
        span = self.script.span(node, self.knowledge.function.scope)
        return self.source.text[span.start : span.end]

    def _subscript(self, node: ast.Subscript) -> str | None:
        known = self.knowledge
        if known.is_shape(node.value):
            if isinstance(node.slice, ast.Slice):
                return self._sizes(node)
            if known.is_size(node):
                assert isinstance(node.value, ast.Attribute)
                if not known.kind(node.value.value).is_tensor:
                    raise CannotExpand(node, "this may be a tensor, and may be something else")
                self.applied("PS11", node)
                return f"{self.paddle}.shape({self.text(node.value.value)})[{self.text(node.slice)}]"
            return self.source_of(node)
        base = known.kind(node.value)
        index = node.slice
        if isinstance(node.value, ast.Name) and node.value.id in known.held.grown:
            return None
        if base.is_python and not base.array and not isinstance(index, ast.Slice):
            if known.kind(index).tensor is not None or known.changes(index):
                raise CannotExpand(node, "the index is a tensor in a graph, and this is not a tensor", "PD16")
        return None

    def _sizes(self, node: ast.AST) -> str | None:
        """`x.shape` as a whole: only if all of its dimensions are known."""
        shape = node.value if isinstance(node, ast.Subscript) else node
        assert isinstance(shape, ast.Attribute)
        tensor = self.knowledge.kind(shape.value).tensor
        if (
            tensor is not None
            and tensor.shape is not None
            and all(isinstance(each, int) for each in tensor.shape)
        ):
            return self.source_of(node)
        if node in self._given:
            self.applied("PS11", node)
            return f"{self.paddle}.shape({self.text(shape.value)})"
        raise CannotExpand(
            node,
            "a graph may not know all dimensions here; ask for the ones needed, as in `x.shape[0]`",
            "PD01",
        )

    def _attribute(self, node: ast.Attribute) -> str | None:
        if self.knowledge.is_shape(node) and isinstance(node.ctx, ast.Load):
            return self._sizes(node)
        return None

    def _string(self, node: ast.JoinedStr) -> str | None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.knowledge.kind(part.value)
                if value.tensor is not None or value.unknown or self.knowledge.changes(part.value):
                    raise CannotExpand(node, f"text needs the value of a tensor{_YET}", "PD16")
        return self.source_of(node)

    def _operation(self, node: ast.BinOp) -> str | None:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if self.knowledge.kind(one).python & {"list", "tuple", "str"} and isinstance(
                node.op, ast.Mult | ast.Mod
            ):
                if self.knowledge.kind(other).tensor is not None or self.knowledge.changes(other):
                    raise CannotExpand(
                        node, "a list or text needs a number here, and a graph has none yet", "PD01"
                    )
        return self.halved(node, node.left, node.right) if isinstance(node.op, ast.FloorDiv) else None

    def halved(self, node: ast.AST, left: ast.expr, right: ast.expr) -> str | None:
        """Rewrite a `//`, whose result in dygraph gets a dimension if it has none, unlike in a graph."""
        known = self.knowledge
        kinds = [known.kind(each) for each in (left, right)]
        if any(kind.tensor is not None and kind.tensor.rank for kind in kinds):
            return None
        sides = [
            each
            for each, kind in zip((left, right), kinds, strict=True)
            if known.changes(each) or not kind.is_python
        ]
        if not sides:
            return None
        if all(known.is_scalar(each, known.scalars | known.sizes) for each in sides):
            self.applied("PS11", node)
            texts = [operand_text(self.text(each), each) for each in (left, right)]
            return f"{self.paddle}.reshape({texts[0]} // {texts[1]}, [])"
        raise CannotExpand(node, "in a graph, `//` gives a different shape here than in Paddle's dygraph")

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> str | None:
        for part in node.generators:
            iterated = self.knowledge.kind(part.iter)
            if iterated.tensor is not None or self.knowledge.changes(part.iter):
                raise CannotExpand(node, "a graph does not know how often this runs", "PD16")
            for test in part.ifs:
                if self.knowledge.truth(test) is not Truth.PYTHON:
                    raise CannotExpand(test, "a comprehension cannot have an `if` in a graph", "PD16")
        return None

    def _starred(self, node: ast.Starred) -> str | None:
        if self.knowledge.kind(node.value).tensor is not None:
            raise CannotExpand(node, "a graph cannot unpack a tensor with `*`", "PD16")
        return None

    def _named(self, node: ast.NamedExpr) -> str | None:
        if node in self.taken_out:
            return node.target.id
        if node in self.staying:
            return None
        raise CannotExpand(node, f"`{node.target.id}` is bound inside this; assign it before")

    def _never(self, node: ast.AST) -> str | None:
        raise CannotExpand(node, "`yield` and `await` are not expanded")

    _WRITERS: ClassVar[dict[Any, Callable[..., str | None]]] = {
        ast.BoolOp: _choice,
        ast.UnaryOp: _not,
        ast.Compare: _comparison,
        ast.IfExp: _ternary,
        ast.Lambda: _lambda,
        ast.Call: _call,
        ast.Subscript: _subscript,
        ast.Attribute: _attribute,
        ast.JoinedStr: _string,
        ast.BinOp: _operation,
        (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp): _comprehension,
        ast.List: _array,
        ast.Starred: _starred,
        ast.NamedExpr: _named,
        (ast.Yield, ast.YieldFrom, ast.Await): _never,
    }


def unseen(text: str) -> str:
    """The reason for a refusal if it is unknown whether a value is a tensor."""
    return f"Trainshift cannot tell whether `{text}` is a tensor; annotate it as `paddle.Tensor`"


def operand_text(text: str, node: ast.expr) -> str:
    """An expression as an operand of any operator, because its parentheses are not part of its text."""
    whole = ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Constant
    return text if isinstance(node, whole) else f"({text})"


def short(text: str) -> str:
    return " ".join(text.split())[:60]
