"""Knowledge of a pipeline: whether its length is known, and whether all ranks have it in the same order.

An answer is the obstacle, in words that follow "because"; it is empty if there is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries.divergence import CauseKind
from trainshift.libraries.entries import Role
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.syntax.chunk_syntax import arguments, hides_arguments
from trainshift.training.datasets.draw_remedies import Draw, Remedies, Remedy
from trainshift.training.datasets.generators import Generators
from trainshift.training.datasets.operations import (
    COUNTED,
    DRAWING,
    ENDLESS,
    FILES,
    MIXING,
    SHUFFLING,
    UNCOUNTED,
)
from trainshift.training.datasets.pipelines import Node, Pipelines
from trainshift.training.datasets.splits import Splits
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.uniformity.draws import TENSORFLOW
from trainshift.training.uniformity.environments import ASKING
from trainshift.training.uniformity.uniformity import Uniformity
from trainshift.training.uniformity.verdict import Cause, Divergent, Uniform, Unknown, Verdict, joined

_TELL = "set it with `.apply(tf.data.experimental.assert_cardinality(n))`"
_ENDLESS = "it never ends"
_BESIDE = "a part of it never ends; shard each part by hand"
_COUNTS = "assert_cardinality"
_FROM_GENERATOR = "from_generator"
_ONE = "from_tensors"
# Options that leave the order of elements to chance.
_CHANCE = ("deterministic", "experimental_deterministic")


class Knowledge:
    """The properties of one program's datasets."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._remedies = program.fact(Remedies)
        self._splits = program.fact(Splits)
        self._lengths: dict[Node, str] = {}
        self._orders: dict[Node, str] = {}

    def uncounted(self, node: Node) -> str:
        """The reason why the number of a dataset's elements may be infinite or differ between ranks."""
        if node not in self._lengths:
            self._lengths[node] = ""  # A dataset cannot depend on itself.
            self._lengths[node] = self._uncounted(node)
        return self._lengths[node]

    def _uncounted(self, node: Node) -> str:
        if node.unseen:
            return self._unseen(node)
        if node.operation == _COUNTS:
            return ""
        if node.operation in UNCOUNTED:
            return f"its length after `{node.operation}` is unknown; {_TELL}"
        if node.operation in ENDLESS or self._repeats_endlessly(node):
            return _ENDLESS
        if node.operation == "repeat":
            return "it is repeated before it could be divided"
        if node.is_source:
            if node.operation not in COUNTED:
                return f"the length of a `{node.operation}` is unknown; {_TELL}"
            return ""
        reason = next(filter(None, map(self.uncounted, node.inputs)), "")
        return self.of_whole(node, reason)

    def of_whole(self, node: Node, reason: str) -> str:
        """The reason against dividing a dataset, by the reason against one of its parts."""
        return _BESIDE if reason == _ENDLESS and self.ends(node) else reason

    def reaches_little(self, shuffle: Node, nodes: Sequence[Node]) -> bool:
        """Return whether a `shuffle` has a smaller buffer than the part taken after it.

        Ranks that take fewer would all begin with the same elements, and never see the last ones.  `nodes`
        are those of the pipeline, from last to first.
        """
        held = self._number(shuffle.given("buffer_size", 0), shuffle)
        if (
            shuffle.operation != "shuffle"
            or held is None
            or any(each.operation == "repeat" for each in nodes)
        ):
            return False
        taken = 0
        for each in nodes[: nodes.index(shuffle)]:
            if each.operation == "take":
                taken = self._number(each.given("count", 0), each) or 0
            elif each.operation == "batch":
                taken *= self._number(each.given("batch_size", 0), each) or 0
        return held < taken

    def _number(self, given: ast.expr | None, node: Node) -> int | None:
        """The value of an operation's numeric argument, before its division by the ranks."""
        return self._counted(node.at.part(given)) if given is not None else None

    def _counted(self, at: Occurrence) -> int | None:
        if isinstance(at.node, ast.BinOp) and isinstance(at.node.op, ast.FloorDiv):
            if self._program.fact(Horovod).divided(at.node.right, at.scope, at.statement):
                return self._counted(at.part(at.node.left))
        step = self._program.names.steps_back(at) if isinstance(at.node, ast.Name) else None
        if step is not None and not step.unseen and len(step.sources) == 1:
            return self._counted(step.sources[0])
        value = at.node.value if isinstance(at.node, ast.Constant) else None
        return value if isinstance(value, int) else None

    def _repeats_endlessly(self, node: Node) -> bool:
        count = node.given("count", 0)
        if node.operation != "repeat":
            return False
        return count is None or ast.unparse(count) in ("-1", "None")

    def single(self, node: Node) -> str:
        """The reason why there is nothing to shard: a dataset is one element, perhaps repeated."""
        up = list(self._program.fact(Pipelines).upstream(node))
        whole = [each for each in up if each.is_source]
        if any(each.operation != _ONE for each in whole) or any(each.operation in UNCOUNTED for each in up):
            return ""
        return f"`{_ONE}` makes one element of all the data; make one for each row" if whole else ""

    def ends(self, node: Node) -> bool:
        """Return whether a dataset ends, as far as is known."""
        if node.operation in ENDLESS or self._repeats_endlessly(node):
            return False
        if node.operation == _FROM_GENERATOR:
            return not any(map(self._program.fact(Generators).never_ends, _given(node)))
        if node.operation == "take":
            return True
        some = [self.ends(each) for each in node.inputs]
        return any(some) if node.operation == "zip" else all(some)

    def unordered(self, node: Node) -> str:
        """The reason why ranks may have a dataset in different orders, so that shards by position would
        overlap.
        """
        if node not in self._orders:
            self._orders[node] = ""
            self._orders[node] = self._unordered(node)
        return self._orders[node]

    def _unordered(self, node: Node) -> str:
        if node.unseen:
            return self._unseen(node)
        if self.draws_freely(node) and not self._can_be_seeded(node):
            seed = self._told(node, "seed") or "seed="
            return f"`{node.operation}` draws a different order on each rank; give it `{seed}`"
        given = node.given("deterministic")
        if given is not None and not (isinstance(given, ast.Constant) and given.value in (True, None)):
            return f"`{node.operation}` may change the order from rank to rank"
        if node.operation == "with_options" and self._leaves_order_to_chance:
            return "its options leave the order of elements undefined"
        return unordered(self._drawn_for(node)) or next(filter(None, map(self.unordered, node.inputs)), "")

    def _unseen(self, node: Node) -> str:
        unseen = f"the script does not show how {_short(ast.unparse(node.at.node))} is made"
        return f"{unseen}; {told}" if (told := self._told(node, "says")) else unseen

    def _told(self, node: Node, key: str) -> str:
        """A value in the library entry of a dataset's creator; "" if there is none."""
        if not isinstance(node.at.node, ast.Call):
            return ""
        known = self._program.fact(Libraries).called(self._program.script.site_of(node.at.node), Role.DATASET)
        return known.text(key) if known is not None else ""

    def _is_drawn(self, node: Node) -> bool:
        """Return whether each rank has a source of its own, or one in an order of its own."""
        drawn = {draw.site for draw in self._drawn_for(node)}
        drawn |= {site for each in _given(node) for site in self._remedies.choosing(each)}
        return not drawn <= self._splits.mended

    def _drawn_for(self, node: Node) -> list[Draw]:
        """The draws behind the source of a dataset."""
        return [draw for each in _given(node) for draw in self._remedies.behind(each)]

    def free_draws(self, node: Node) -> list[Draw]:
        """The draws of a node itself that all ranks must make alike, if it is to be divided after them."""
        own = self.draws_freely(node) and node.site is not None
        return [*self._drawn_for(node), *([Draw(node.site, Remedy.SEED)] if own and node.site else [])]

    def draws(self, node: Node) -> bool:
        """Return whether the order of elements is drawn here."""
        if node.operation in DRAWING:
            name, default = DRAWING[node.operation]
            given = node.given(name)
            return default if given is None else not (isinstance(given, ast.Constant) and not given.value)
        return node.operation in SHUFFLING

    def draws_freely(self, node: Node) -> bool:
        """Return whether the order is drawn here, without a seed that is the same on all ranks."""
        return self.draws(node) and not self._is_seeded(node)

    def likeness(self, node: Node) -> Verdict:
        """The verdict on whether a dataset has the same elements in the same order on all ranks.

        Only `node` itself and the draws of its elements are examined, not its inputs.
        """
        drawn = Divergent((Cause(CauseKind.DRAW, node.at, node.site),))
        if self._is_drawn(node) or node.operation == "RandomDataset":
            return drawn
        if node.operation == _FROM_GENERATOR:
            generators = self._program.fact(Generators)
            found = [generators.likeness(each) for each in _given(node) if generators.run_by(each)]
            return joined(found) if found else Unknown()
        if self.draws(node) or (FILES.get(node.operation) and not _is_off(node.given("shuffle"))):
            by_rank = self._program.choices.seed_by_rank or self._remedies.seeds_by_rank
            seeded = self._is_seeded(node) or self._program.fact(Uniformity).draws.is_seeded(TENSORFLOW)
            return Uniform() if seeded and not by_rank else drawn
        read = joined(map(self.likeness, self._read_by(node)))
        if read.diverges:
            return read
        known = not node.is_source or node.operation in COUNTED or node.operation in FILES
        return Uniform() if known and not node.unseen and node.operation not in MIXING else Unknown()

    def _read_by(self, node: Node) -> Iterator[Node]:
        """Yield the datasets, such as those of file names, that the source of another one gets."""
        pipelines = self._program.fact(Pipelines)
        for each in _given(node) if node.operation in FILES else ():
            yield from pipelines.upstream(pipelines.read(each))

    def _can_be_seeded(self, node: Node) -> bool:
        """Return whether the draws of a node can get a seed.

        A repeated call cannot: it would draw the same order each time.
        """
        site = node.site
        if site is None or hides_arguments(site.node) or site.in_fstring or self._seed(node) is not None:
            return False
        takes_seed = node.operation == "shuffle" or DRAWING.get(node.operation, ("",))[0] == "shuffle"
        return takes_seed and not self._remedies.is_repeated(site)

    def _seed(self, node: Node) -> ast.expr | None:
        return node.given("seed", 1 if node.operation == "shuffle" else None)

    def _is_seeded(self, node: Node) -> bool:
        given, site = self._seed(node), node.site
        if given is None or site is None or hides_arguments(site.node):
            return False
        if self._remedies.seeds_by_rank:
            return False
        draws = self._program.fact(Uniformity).draws
        return draws.of_seed(node.at.part(given), site).is_uniform

    @property
    def _leaves_order_to_chance(self) -> bool:
        return any(True for name in _CHANCE for _ in self._program.script.attribute_bindings(name))


def _given(node: Node) -> list[Occurrence]:
    """The inputs of a dataset's source; none if the node is not a source."""
    made = node.site.node if node.is_source and node.site is not None else None
    return list(map(node.at.part, arguments(made))) if made is not None else []


def unordered(draws: Iterable[Draw]) -> str:
    """The consequence of the first draw that differs between ranks; empty if there is none."""
    draw = next((each for each in draws if each.remedy is None), None)
    if draw is None:
        return ""
    if draw.site.name == "set":
        return "a `set` has a different order on each rank; sort it"
    if draw.site.name in ASKING:
        return f"`{draw.site.name}` gives each rank data of its own"
    return f"`{draw.site.name}` orders the data differently on each rank; give it a seed"


def _is_off(given: ast.expr | None) -> bool:
    return isinstance(given, ast.Constant) and not given.value


def _short(name: str) -> str:
    return f"`{name}`" if len(name) <= 40 and "\n" not in name else "the data"
