"""Conditions in the words of the graph (PS08): tensors of type bool, logical operators."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from trainshift.python.flow.names import names_read
from trainshift.static_graphs.expanding.ir import Code
from trainshift.static_graphs.expanding.knowledge import Knowledge
from trainshift.static_graphs.expanding.refusal import CannotExpand, MustBeTensors
from trainshift.static_graphs.reading.abstract_values import NUMBERS
from trainshift.static_graphs.reading.function import Truth

_GUARDED = "a graph looks at both sides, and the left one may guard the right"
KEEP = (ast.Is, ast.IsNot)
MEMBERSHIP = (ast.In, ast.NotIn)


class Conditions(ABC):
    """Writes the conditions of one function; each place that cannot be written raises CannotExpand."""

    knowledge: Knowledge
    paddle: str
    pinned: frozenset[str]

    @abstractmethod
    def text(self, node: ast.AST) -> str:
        """The text of an expression or a simple statement."""

    @abstractmethod
    def cond(self, *, is_sure: bool) -> str:
        """What `cond` is called, by whether its condition is a tensor for sure."""

    @abstractmethod
    def applied(self, code: str, node: ast.AST) -> None:
        """Note that a rule was applied."""

    def condition(self, node: ast.expr, truth: Truth) -> Code:
        """A condition as the graph takes it: a tensor of type bool, or what Python takes."""
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
        """`and` and `or`: logical operators, which in a graph look at both sides, or else a `cond`."""
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
        """The last side of `and` or `or`, and whether it may be one of Python's."""
        if not self._stays_python(node):
            return self.operand(node), False
        text = self.text(node)
        return operand_text(text, node) if self.knowledge.kind(node).among("bool") else f"bool({text})", True

    def may_be_python(self, node: ast.expr) -> bool:
        """Whether a condition on tensors is one of Python's in some way to run the expansion."""
        if isinstance(node, ast.BoolOp):
            return self._stays_python(node.values[0])
        return self.is_counted(node)

    def _decides(self, values: list[ast.expr], index: int) -> bool:
        """Whether the ones to the left of a condition decide whether it is asked: it may fail otherwise."""
        if self._stays_python(values[index - 1]):
            return True
        guarding = frozenset[str]().union(*map(self._guarding, values[:index]))
        for each in ast.walk(values[index]):
            if isinstance(each, ast.Subscript) and not self.knowledge.is_size(each):
                if names_read(each) & guarding:
                    return True
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div | ast.FloorDiv | ast.Mod):
                if names_read(each.right) & guarding:
                    return True
        return False

    def _stays_python(self, node: ast.expr) -> bool:
        """Whether a condition is one of Python's in every way to run the expansion."""
        return self.knowledge.kind(node).is_python and not self.knowledge.changes(node)

    def _rank(self, node: ast.expr) -> int | None:
        """The number of dimensions of a condition; None where it is not known."""
        if isinstance(node, ast.BoolOp):
            ranks = {self._rank(each) for each in node.values}
            return ranks.pop() if len(ranks) == 1 else None
        if isinstance(node, ast.UnaryOp):
            return self._rank(node.operand)
        value = self.knowledge.kind(node)
        return 0 if value.is_python else value.tensor.rank if value.tensor is not None else None

    def _guarding(self, node: ast.AST) -> frozenset[str]:
        """The names of which a condition asks the number or the size, as one does before indexing."""
        if isinstance(node, ast.Subscript) and not self.knowledge.is_size(node):
            return frozenset()
        if isinstance(node, ast.Name):
            return frozenset({node.id})
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not self.knowledge.has_size(node)
        ):
            return frozenset[str]().union(*map(self._guarding, node.args))
        return frozenset[str]().union(*map(self._guarding, ast.iter_child_nodes(node)))

    def operand(self, node: ast.expr) -> str:
        """One side of a logical operator: a tensor of type bool in every way to run it."""
        truth = self.knowledge.truth(node)
        value = self.knowledge.kind(node)
        if self.is_counted(node) and not isinstance(node, ast.BoolOp | ast.UnaryOp):
            return self.as_tensor(self._condition(node, truth))
        if isinstance(node, ast.BoolOp | ast.UnaryOp):
            is_asked = isinstance(node, ast.UnaryOp) and self._may_be_asked(node.operand)
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
            node, "one side of this condition is no tensor, or may be none; ask for it in an `if` of its own"
        )

    def is_counted(self, node: ast.expr) -> bool:
        """Whether a tensor of the graph is a number in dygraph."""
        return self.knowledge.is_counted(node) and not names_read(node) & self.pinned

    def as_tensor(self, text: str) -> str:
        """What may be a tensor of type bool or a bool of Python's, as a tensor."""
        return f"{self.paddle}.to_tensor({text})"

    def _may_be_asked(self, node: ast.expr) -> bool:
        """Whether it is a comparison of numbers or tensors, or a bool or a tensor of them, whichever runs."""
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            kinds = [self.knowledge.kind(each) for each in parts]
            return (
                len(parts) == 2
                and not any(isinstance(op, (*KEEP, *MEMBERSHIP)) for op in node.ops)
                and all(kind.python <= NUMBERS and not kind.array for kind in kinds)
            )
        return isinstance(node, ast.Name) and self.knowledge.kind(node).among("bool")

    def check_flags(self, test: ast.expr) -> bool:
        """Have the names of a condition that begin as a bool, and become tensors in a loop, begin as tensors.

        Whether the whole condition is such a name, or the opposite of one.
        """
        named = [each for each in ast.walk(test) if isinstance(each, ast.Name) and self._is_flag(each)]
        flags = frozenset(each.id for each in named)
        if not flags <= self.pinned:
            raise MustBeTensors(flags)
        is_negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        return self._is_flag(test.operand if is_negated else test)  # type: ignore[attr-defined]

    def _is_flag(self, node: ast.expr) -> bool:
        """Whether it is a name of a bool of Python's on some ways, and of a tensor of type bool on others."""
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


def unseen(text: str) -> str:
    """The reason where nobody can see whether something is a tensor."""
    return f"Trainshift cannot tell whether `{text}` is a tensor; annotate it as `paddle.Tensor`"


def operand_text(text: str, node: ast.expr) -> str:
    """An expression as it stands beside any operator: the brackets around it are not part of its text."""
    whole = ast.Name | ast.Call | ast.Attribute | ast.Subscript | ast.Constant
    return text if isinstance(node, whole) else f"({text})"


def short(text: str) -> str:
    return " ".join(text.split())[:60]
