"""Shares: the parts of data that ranks select by their numbers, and whether these are disjoint and equally
long.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import Literal
from trainshift.python.syntax.chunk_syntax import Site, Statement, argument, dotted, last_name
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.backward_slice import backward_slice
from trainshift.training.data.loop_inputs import Feed, Feeds
from trainshift.training.execution.graph_slice import occurrences_behind
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import COLLECTIVE, RANK, SIZE
from trainshift.training.loops.loop_kinds import Loop
from trainshift.training.uniformity.backward_slice import Trails
from trainshift.training.uniformity.uniformity import Uniformity

_FILES = ("file", "path", "shard", "tfrecord", "csv")
# Functions that read the rows of files.
_READING = frozenset(
    {"TFRecordDataset", "TextLineDataset", "CsvDataset", "FixedLengthRecordDataset", "interleave", "flat_map"}
)


class Part(NamedTuple):
    """A part of data that a rank selects: by `shard`, a slice, or one of several pieces.

    `of` is the whole; `wrong` names the mistake in the numbers, if there is one.
    """

    at: Occurrence
    of: Occurrence
    site: Site | None = None
    wrong: str = ""


class Uneven(NamedTuple):
    """A part that may be longer on some ranks; `counted` where steps are computed from it."""

    at: Occurrence
    counted: bool = False
    is_file: bool = False


class Shares:
    """The parts that the ranks of one program take."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names
        self._uniformity = program.fact(Uniformity)
        self._trails = program.fact(Trails)
        self._draws = self._uniformity.draws

    @cached_property
    def parts(self) -> list[Part]:
        """Every part, in no order."""
        found = [*self._shards(), *self._slices()]
        nodes = {id(part.at.node) for part in found}
        return [part for part in found if not self._is_by_part(part, nodes)]

    def _is_by_part(self, part: Part, parts: set[int]) -> bool:
        """Return whether the index only selects the rows named by another part of the data: ``x[mine]``."""
        node = part.at.node
        if not isinstance(node, ast.Subscript):
            return False
        return any(id(each.node) in parts for each in self._trails.behind(part.at.part(node.slice)))

    def _shards(self) -> Iterator[Part]:
        for site in self._script.sites_named("shard"):
            first, second = argument(site.node, 0, "num_shards"), argument(site.node, 1, "index")
            if first is None or second is None or not isinstance(site.node.func, ast.Attribute):
                continue
            count, index = (Occurrence(each, site.scope, site.statement) for each in (first, second))
            at = Occurrence(site.node, site.scope, site.statement)
            of = at.part(site.node.func.value)
            on_rank = self._uniformity.on_rank
            if not on_rank(index) and not on_rank(count):
                continue
            wrong = ""
            if on_rank(count) and not on_rank(index) and self._uniformity.on_size(index):
                wrong = "swapped"
            elif self._mixes(count, index):
                wrong = "local"
            yield Part(at, of, site, wrong)

    def _mixes(self, count: Occurrence, index: Occurrence) -> bool:
        """Return whether a count over all ranks is combined with an index within one machine."""
        return self._asks(index) == {"local_rank"} and self._asks(count) == {"size"}

    def _asks(self, at: Occurrence) -> set[str]:
        horovod = self._program.fact(Horovod)
        calls = set(self._trails.calls(self._trails.behind(at)))
        return {site.name for site in calls if horovod.is_call(site, *RANK, *SIZE)}

    def _slices(self) -> Iterator[Part]:
        for at in self._program.fact(Feeds).cuts:
            node = at.node
            assert isinstance(node, ast.Subscript)
            index = at.part(node.slice)
            if not (
                self._is_dealt(at.part(node.value))
                or self._is_drawn(index)
                or self._is_counted(index)
                or self._is_key(index)
            ):
                yield Part(at, at.part(node.value), None, "local" if self._is_local(node, at) else "")

    def _is_drawn(self, index: Occurrence) -> bool:
        """Return whether the rank affects an index only through the seed of a draw."""
        if isinstance(index.node, ast.Slice):
            return False
        return self._comes_only_of(index, self._draws.generators)

    def _is_counted(self, index: Occurrence) -> bool:
        """Return whether an index counts the rows of a rank, and is not an unrelated number."""
        return self._comes_only_of(index, {site.node: site for site in self._script.sites_named("len")})

    def _comes_only_of(self, index: Occurrence, calls: dict[ast.Call, Site]) -> bool:
        """Return whether an index depends on a rank only through some calls."""
        trail = (
            {each.node for each in occurrences_behind(self._script, *index[:3], calls)} if calls else set()
        )
        ranks = self._program.fact(Horovod).calls(*RANK)
        return not trail.isdisjoint(calls) and not any(site.node in trail for site in ranks)

    def _is_key(self, index: Occurrence) -> bool:
        """Return whether an index is a string, which is a key and not a row number."""
        for each in backward_slice(self._names, index):
            parts = [each.node.left, each.node.right] if isinstance(each.node, ast.BinOp) else [each.node]
            if any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in parts):
                return True
        return False

    def _is_dealt(self, at: Occurrence) -> bool:
        """Return whether elements are dealt out, one to each rank: ``for each in zip(*[iter(x)] *
        hvd.size())``.
        """
        if not isinstance(at.node, ast.Name):
            return False
        for binding in self._program.names.bindings(at):
            match binding.value:
                case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=ast.BinOp(op=ast.Mult()))]):
                    return True
        return False

    def _is_local(self, node: ast.Subscript, at: Occurrence) -> bool:
        if not isinstance(node.slice, ast.Slice) or node.slice.lower is None:
            return False
        if node.slice.step is None:
            return self._asks(at.part(node.slice.lower)) == {"local_rank", "size"}
        return self._mixes(at.part(node.slice.step), at.part(node.slice.lower))

    # One order for all

    def shuffled_apart(self, part: Part) -> Site | None:
        """The shuffle before a part that gives each rank a different order, if there is one."""
        # Only some methods of an object return the data, not all of its actions count.
        trail = occurrences_behind(self._script, *part.of[:3], {}, False)
        indices = (
            self._trails.behind(part.at.part(part.at.node.slice))
            if isinstance(part.at.node, ast.Subscript)
            else []
        )
        for site in self._trails.calls([*trail, *indices]):
            if site.name in ("flow", "flow_from_directory", "flow_from_dataframe", "next_batch"):
                continue
            if (
                self._draws.shuffles(site)
                and self._draws.of(site).diverges
                and not self._is_behind(part, site)
                and site.node not in self._sent
            ):
                return site
        if isinstance(part.of.node, ast.Call) and last_name(part.of.node.func) == "range":
            return None
        names = {dotted(each.node) for each in trail if isinstance(each.node, ast.Name | ast.Attribute)}
        for site in self._script.sites_named("shuffle"):
            if (
                isinstance(site.statement.node, ast.Expr)
                and site.node.args
                and dotted(site.node.args[0]) in names
                and site.scope.function() is part.at.scope.function()
            ):
                span = self._script.span
                before = span(site.node, site).start < span(part.at.node, part.at.scope).start
                if before and self._draws.shuffles(site) and self._draws.of(site).diverges:
                    return site
        return None

    @cached_property
    def _sent(self) -> set[ast.AST]:
        """The arguments of collective calls, which give all ranks the same result."""
        calls = self._program.fact(Horovod).calls(*COLLECTIVE)
        return {part for site in calls for given in site.node.args for part in ast.walk(given)}

    def _is_behind(self, part: Part, call: Site) -> bool:
        """Return whether a method is called on data that were divided before: ``ds.shard(n,
        i).shuffle(k)``.
        """
        called = call.node.func
        if not isinstance(called, ast.Attribute):
            return False
        trail = occurrences_behind(self._script, called.value, call.scope, call.statement, {}, False)
        return any(each.node is part.at.node for each in trail)

    # Equal lengths

    def uneven(self, loop: Loop) -> Iterator[Uneven]:
        """Yield the parts of a loop's data that may differ in length, unless the steps are made equal."""
        if not self.parts or self._program.fact(Horovod).calls("join"):
            return
        feed = self._program.fact(Feeds).of(loop)
        nodes = {id(each.node) for each in feed.trail}
        own = [part for part in self.parts if id(part.at.node) in nodes and not part.wrong]
        counted = [each for each in feed.steps if self._uniformity.on_rank(each)]
        bounded = [each for each in feed.steps if not self._bounds_nothing(each)]
        if bounded and not counted:
            return
        for part in own:
            if self._is_even(part, feed) or _is_of_turn(part, loop):
                continue
            yield Uneven(part.at, bool(counted), self._is_file(part))
            return

    def _bounds_nothing(self, at: Occurrence) -> bool:
        """Return whether a number of steps means "all": -1 or None."""
        if isinstance(at.node, ast.UnaryOp | ast.Constant) and getattr(at.node, "value", 1) in (-1, None):
            return True
        values = self._names.values(*at[:3])
        return bool(values) and all(isinstance(each, Literal) and each.value is None for each in values)

    def _is_even(self, part: Part, feed: Feed) -> bool:
        """Return whether all parts have one length: cut to ``n // size``, or to the last rank's length."""
        around = part.at.statement.ancestors() if part.at.statement is not None else ()
        if any(isinstance(each.node, ast.While) and self._looks_ahead(each) for each in around):
            return True
        trail = [*self._trails.behind(part.at), *feed.trail]
        for each in trail:
            node = each.node
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
                # A quotient by the length of a rank's own part is not the shared length.
                right = each.part(node.right)
                if self._uniformity.on_size(right) and not self._uniformity.on_rank(right):
                    return True
            if (
                isinstance(node, ast.Call)
                and last_name(node.func) in ("int", "floor")
                and len(node.args) == 1
            ):
                inner = node.args[0]
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div):
                    if self._uniformity.on_size(each.part(inner.right)):
                        return True
            if isinstance(node, ast.Call) and self._names.calls(self._script.site_of(node), "numpy.split"):
                return True  # The call requires equal parts.
        return False

    def _looks_ahead(self, loop: Statement) -> bool:
        """Return whether a test reads the index of the last rank: ``hvd.size() - 1 - hvd.rank()``."""
        assert isinstance(loop.node, ast.While)
        for part in ast.walk(loop.node.test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
                left, right = (Occurrence(each, loop.scope, loop) for each in (part.left, part.right))
                on_rank, on_size = self._uniformity.on_rank, self._uniformity.on_size
                if on_rank(right) and on_size(left) and not on_rank(left):
                    return True
        return False

    def _is_file(self, part: Part) -> bool:
        """Return whether each rank gets files of its own."""
        text = ast.unparse(part.of.node).lower()
        whole = isinstance(part.at.node, ast.Subscript) and not isinstance(part.at.node.slice, ast.Slice)
        calls = self._trails.calls(self._trails.behind(part.of))
        listed = any(site.name in ("list_files", "glob", "listdir") for site in calls) and not any(
            site.name in _READING for site in calls
        )
        return listed or (whole and any(word in text for word in _FILES))


def _is_of_turn(part: Part, loop: Loop) -> bool:
    """Return whether a part is selected in each iteration of the innermost step loop, without its counter."""
    if part.at.statement is None or loop.is_call:
        return False
    inner = (each for each in loop.sites[0].statement.path() if isinstance(each.node, LOOPS))
    within = next(inner, None)
    return within is not None and within in part.at.statement.ancestors()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
