"""The intermediate form of a function that is expanded into graph code, and its live names.

A block is a list of forms.  Its text is written from them (`writing`), and the names of `cond` and
`while_loop` follow from their reads and bindings.  Half of the forms are statements that the expansion adds:
text without syntax.  So liveness and exits are folds over forms here, not queries of a control-flow graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from trainshift.python.flow.def_use import Names, names_read
from trainshift.python.flow.exits import leaves
from trainshift.python.flow.traversal import least_fixed_point
from trainshift.python.source.comments import comments_by_line
from trainshift.python.syntax.node_classes import DEFINITIONS
from trainshift.static_graphs.domain.abstract_values import NUMBER, AbstractValue, Tensor, tensor
from trainshift.static_graphs.domain.abstract_values import UNBOUND as UNBOUND_VALUE

GRAPH_NUMBERS = frozenset({"int", "float", "bool"})
"""The types of numbers that a graph can carry."""
_CONTAINERS = frozenset({"list", "dict", "tuple", "set"})


class Code(Struct, frozen=True):
    """Text with the names that it reads; with `number`, it is a number and not a tensor."""

    text: str
    reads: Names = frozenset()


class VarInfo(Struct, frozen=True):
    """The facts about a name in expanded code: the types of its value, and how branches and loops may pass it
    on.

    With `is_alias`, another name refers to it too.  `held` is "array", "dict" or "list" for such a container
    carried by a graph.
    """

    value: AbstractValue
    is_alias: bool = False
    held: str = ""

    @property
    def number(self) -> str:
        """The possible type of number: int, float, bool, or "mixed" for several; else empty."""
        numbers = self.value.python & GRAPH_NUMBERS
        if numbers == {"int", "float"}:
            return "float"
        return "mixed" if len(numbers) > 1 else next(iter(numbers), "")

    @property
    def tensor(self) -> bool:
        """Return whether it may be a tensor."""
        return self.value.tensor is not None

    @property
    def other(self) -> bool:
        """Return whether it may be a Python value that is not a number."""
        return bool(self.value.python - GRAPH_NUMBERS)

    @property
    def container(self) -> bool:
        """Return whether it may be a container of Python's."""
        return bool(self.value.python & _CONTAINERS)

    @property
    def dtype(self) -> str:
        """The dtype, if it may be a tensor with a known dtype."""
        return "" if self.value.dtype == NUMBER else self.value.dtype

    @property
    def is_number(self) -> bool:
        """Return whether it is a number of Python and nothing else."""
        return self.value.among(*GRAPH_NUMBERS)

    @property
    def is_assignable(self) -> bool:
        """Return whether `paddle.assign` makes a tensor of it, whether it is a tensor or a number."""
        return self.value.unknown and self.value.is_numeric and not self.other

    def joined(self, other: VarInfo) -> VarInfo:
        """The join of two facts."""
        held = self.held if self.held == other.held else ""
        return VarInfo(self.value.joined(other.value), self.is_alias or other.is_alias, held)

    def named(self, *, is_alias: bool) -> VarInfo:
        """The same facts for a name that has a value."""
        return replace(self, value=self.value.bound(), is_alias=is_alias)

    def or_tensor(self) -> VarInfo:
        """The same facts for a value that may also be a tensor."""
        return self if self.tensor else replace(self, value=replace(self.value, tensor=Tensor()))


def info_of(value: AbstractValue) -> VarInfo:
    """The types of a value, as far as they matter for passing it on."""
    return VarInfo(value.types)


def scalar(dtype: str) -> VarInfo:
    """A tensor without dimensions."""
    return VarInfo(tensor(dtype, ()))


Env: TypeAlias = dict[str, VarInfo]
UNBOUND = VarInfo(UNBOUND_VALUE)


class Plain(Struct):
    """A statement with its tensor operations rewritten for the graph.

    `gives` has the types of names that it binds, if the reading does not.
    """

    lines: list[str]
    reads: Names = frozenset()
    binds: tuple[str, ...] = ()
    leading: list[str] = field(default_factory=list)
    beside: str = ""
    node: ast.stmt | None = None
    gives: Env = field(default_factory=dict)


class Exit(Struct):
    """A `break`, `continue` or `return` that depends on tensors; `flag` is the name of its flag, if any."""

    kind: str
    node: ast.stmt
    leading: list[str]
    beside: str
    value: ast.expr | None = None
    flag: str = ""


class Kept(Struct):
    """A compound statement that stays Python, around one that does not.

    If it `is_whole`, one of its blocks runs.  It may be a `with` in which tensors lose their gradients.
    """

    blocks: list[tuple[Plain, list[Form]]]
    node: ast.stmt
    leading: list[str] = field(default_factory=list)
    is_loop: bool = False
    is_whole: bool = False
    cuts_gradients: bool = False


class Branch(Struct):
    """An `if` on a tensor (`is_sure`), or on a value that may be one."""

    test: Code
    body: list[Form]
    orelse: list[Form]
    node: ast.stmt
    is_sure: bool = True
    leading: list[str] = field(default_factory=list)
    else_leading: list[str] = field(default_factory=list)
    is_swapped: bool = False
    returns: bool = False


class Loop(Struct):
    """A loop over tensors, or over values that may be tensors.

    `before` are its initial statements, `steps` the updates of a counter after each iteration.
    """

    test: Code
    body: list[Form]
    node: ast.stmt
    before: list[Plain] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    leading: list[str] = field(default_factory=list)
    test_flags: tuple[str, ...] = ()


Form: TypeAlias = "Plain | Exit | Kept | Branch | Loop"


def parts(form: Form) -> Iterator[tuple[Sequence[Plain], list[Form]]]:
    """The blocks of a form, in order, each with the statements that run before it."""
    match form:
        case Plain():
            yield [form], []
        case Kept():
            yield from (([head], block) for head, block in form.blocks)
        case Branch():
            yield [], form.body
            yield [], form.orelse
        case Loop():
            yield form.before, form.body


def bound_in(forms: Sequence[Form]) -> dict[str, None]:
    """The names that a block binds, in the order of their first binding."""
    found: dict[str, None] = {}
    for form in forms:
        for heads, block in parts(form):
            for head in heads:
                found.update(dict.fromkeys(head.binds))
            found.update(bound_in(block))
    return found


def surely_bound_in(forms: Sequence[Form]) -> Names:
    """The names that a block binds on every path through it."""
    found: frozenset[str] = frozenset()
    for form in forms:
        match form:
            case Plain() if form.node is None or not hasattr(form.node, "body"):
                found |= frozenset(form.binds)
            case Branch() | Loop():
                found |= frozenset(bound_in([form]))
            case Kept() if form.is_whole:
                ways = [frozenset(head.binds) | surely_bound_in(block) for head, block in form.blocks]
                found |= frozenset.intersection(*ways)
            case _:
                pass
    return found


def loop_names(loop: Loop, live: Names) -> list[str]:
    """The names that pass from one iteration to the next, or to the code after the loop."""
    head = live_before(loop.body, live | frozenset(loop.steps)) | loop.test.reads | frozenset(loop.test_flags)
    head |= frozenset(loop.test_flags)
    bound = {**dict.fromkeys(loop.steps), **bound_in(loop.body)}
    wanted = head | live | live_before(loop.body, head | live | frozenset(loop.steps))
    return [name for name in bound if name in wanted]


def live_before(forms: Sequence[Form], live: Names) -> Names:
    """The names that may be read from the start of a block on, before it binds them."""
    for form in reversed(forms):
        live = _before(form, live)
    return live


def _before(form: Form, live: Names) -> Names:
    match form:
        case Plain():
            is_whole = (
                form.node is None or not hasattr(form.node, "body") or isinstance(form.node, DEFINITIONS)
            )
            return (live - frozenset(form.binds if is_whole else ())) | form.reads
        case Exit():
            return live | (names_read(form.value) if form.value is not None else frozenset())
        case Branch():
            return live_before(form.body, live) | live_before(form.orelse, live) | form.test.reads
        case Loop():
            head = live | form.test.reads | frozenset(form.test_flags) | frozenset(form.steps)
            return live_before(form.before, least_fixed_point(head, partial(live_before, form.body)))
        case Kept() if form.is_loop:
            return least_fixed_point(live, partial(_before_blocks, form))
        case Kept():
            return live | _before_blocks(form, live)
    raise AssertionError(form)


def _before_blocks(form: Kept, live: Names) -> Names:
    """Return the names that may be read from the start of one of the blocks on."""
    return frozenset[str]().union(
        *((live_before(block, live) - frozenset(top.binds)) | top.reads for top, block in form.blocks)
    )


def walk(forms: Sequence[Form]) -> Iterator[Form]:
    """Yield every form of a block, and the nested ones."""
    for form in forms:
        yield form
        for _, block in parts(form):
            yield from walk(block)


def again(forms: Sequence[Form]) -> list[Form]:
    """A copy of the forms without their comments, to be changed separately."""
    found: list[Form] = []
    for form in forms:
        match form:
            case Plain():
                if form.lines:
                    found.append(_bare(form))
            case Exit():
                found.append(replace(form, leading=[], beside=""))
            case Kept():
                blocks = [(_bare(head), again(block)) for head, block in form.blocks]
                found.append(replace(form, blocks=blocks, leading=[]))
            case Branch():
                body, orelse = again(form.body), again(form.orelse)
                found.append(replace(form, body=body, orelse=orelse, leading=[], else_leading=[]))
            case Loop():
                before = [_bare(each) for each in form.before]
                steps = dict(form.steps)
                found.append(replace(form, body=again(form.body), before=before, steps=steps, leading=[]))
    return found


def _bare(form: Plain) -> Plain:
    """A statement without its comments."""
    lines = list(form.lines)
    text = "\n".join(each.removeprefix("\0") for each in lines)
    for comment in comments_by_line(text).values():
        whole = lines[comment.line - 1]
        mark = "\0" if whole.startswith("\0") else ""
        lines[comment.line - 1] = mark + whole.removeprefix("\0")[: comment.column].rstrip()
    return replace(form, lines=[each for each in lines if each.strip("\0 \t\1")], leading=[], beside="")


def exits(forms: Sequence[Form], *kinds: str) -> Names:
    """The kinds of exits in a block."""
    return frozenset(form.kind for form in walk(forms) if isinstance(form, Exit) and form.kind in kinds)


def always_leaves(forms: Sequence[Form]) -> bool:
    """Return whether the end of a block is never reached."""
    told = [each for each in forms if not (isinstance(each, Plain) and not each.lines)]
    if not told:
        return False
    last = told[-1]
    match last:
        case Exit():
            return True
        case Plain():
            return last.node is not None and leaves(last.node)
        case Branch():
            return last.returns or (always_leaves(last.body) and always_leaves(last.orelse))
        case Kept():
            return last.is_whole and all(always_leaves(block) for _, block in last.blocks)
    return False
