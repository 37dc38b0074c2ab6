"""Divided data: the division of each training loop's data into shares of the ranks (spec.md 8).

All ranks always take the same number of steps.  If that cannot be shown, every rank reads all of the data,
and the reason is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from trainshift.core.program import Program
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.values import UNKNOWN
from trainshift.python.syntax.chunk_syntax import Site, Statement
from trainshift.training.data.arrays import Arrays, is_array, read_arrays
from trainshift.training.data.batches import asked_of
from trainshift.training.data.division_places import Form, Place
from trainshift.training.data.index_loops import IndexLoop, called, read_index_loop, turns_of
from trainshift.training.data.input_fns import InputFn, InputFns
from trainshift.training.data.loop_division import How, LoopDivision
from trainshift.training.data.loop_iterables import Iterated, Iteration
from trainshift.training.data.remaining_steps import divided_of
from trainshift.training.data.rows import Rows, counts, read_rows
from trainshift.training.data.step_counts import StepCounts, divides_epochs, stays
from trainshift.training.data.while_slices import read_slices
from trainshift.training.datasets.generators import Generators
from trainshift.training.datasets.knowledge import Knowledge
from trainshift.training.datasets.operations import BATCHING, JOINING, PASSABLE, SHUFFLING
from trainshift.training.datasets.pipelines import Node, Pipelines
from trainshift.training.datasets.readers import Readers
from trainshift.training.execution.executions import Executions
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.optimizers.global_batch import GlobalBatch
from trainshift.training.uniformity.uniformity import Uniformity


class _Pipeline(Struct, frozen=True):
    """A training loop and the pipeline that it iterates."""

    iteration: Iteration
    root: Node


class DividedData:
    """The division of the data of one program's training loops."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._pipelines = program.fact(Pipelines)
        self._knowledge = program.fact(Knowledge)
        self._readers = program.fact(Readers)
        self._iterated = program.fact(Iterated)
        self._input_fns = program.fact(InputFns)
        self._index_loops: dict[Iteration, IndexLoop | None] = {}
        self._rows: dict[Iteration, Rows | None] = {}

    @cached_property
    def loops(self) -> list[LoopDivision]:
        """Every training loop over data, in text order; none if `divide-data` is off."""
        if not self._program.whole.choices.divide_data:
            return []
        found = [*self._settled, *self._divided, *self._others, *self._of_input_fns(), *self._of_slices()]
        return sorted(found, key=lambda each: self._program.script.span(each.data, each.statement))

    def of(self, statement: Statement) -> LoopDivision | None:
        """The division of the data of a `for`, or of the `fit` in a statement."""
        return next((each for each in self.loops if each.statement is statement), None)

    def divides(self, at: Occurrence) -> bool:
        """Return whether an expression, such as the length of a dataset, is read after a division."""
        places = {id(place.at.node) for each in self.loops for place in each.places}
        parts = [at.part(part) for part in ast.walk(at.node) if isinstance(part, ast.Name | ast.Attribute)]
        return any(
            id(node.at.node) in places or node.is_share
            for part in parts
            for node in self._pipelines.upstream(self._pipelines.read(part))
            if node.at.node is not part.node
        )

    @cached_property
    def _read(self) -> list[_Pipeline]:
        """The training loops whose data are, or may be, datasets."""
        found = [_Pipeline(each, self._pipelines.read(each.at)) for each in self._iterated.data]
        given = [_Pipeline(each.iteration, each.root) for each in self._input_fns.all]
        return [each for each in (*found, *given) if self._may_be_dataset(each)]

    def _may_be_dataset(self, pipeline: _Pipeline) -> bool:
        at, fit = pipeline.iteration.at, pipeline.iteration.fit
        given = self._input_fns.of(pipeline.iteration)
        if given is not None:
            return self._input_fns.gives_datasets(given)
        if fit is not None and fit.given("y") is not None:
            return False
        if self._row(pipeline.iteration) is not None or self._index_loop(pipeline.iteration) is not None:
            return False
        if any(node.is_dataset and node.operation for node in self._nodes(pipeline)):
            return True
        if fit is not None and is_array(self._program, at, no_dataset=True):
            return False
        return UNKNOWN in self._program.names.values(at.node, at.scope, at.statement)

    def _nodes(self, pipeline: _Pipeline) -> Iterator[Node]:
        return self._pipelines.upstream(pipeline.root)

    @cached_property
    def _settled(self) -> list[LoopDivision]:
        """The loops whose steps are divided, while the ranks' orders of the data differ."""
        found = [each for each in self._stepped.values() if not self._may_be_alike(each)]
        return [LoopDivision(each.iteration, How.STEPS) for each in found]

    @cached_property
    def _stepped(self) -> dict[Iteration, _Pipeline]:
        """The loops over datasets whose number of steps is divided."""
        return {each.iteration: each for each in self._read if self._counts_steps(each)}

    def _may_be_alike(self, pipeline: _Pipeline) -> bool:
        """Return whether all ranks may begin with the same part of the data, if only their steps are
        divided.
        """
        nodes = list(self._nodes(pipeline))
        if self._divides_epochs(pipeline.iteration) or any(node.is_share for node in nodes):
            return False
        counts = self._program.fact(StepCounts)
        sites = {node.site for node in nodes} | {getattr(pipeline.iteration.fit, "site", None)}
        own = [each for each in (*counts.taken, *counts.given) if each.site in sites]
        if any(stays(each.node) for each in own):
            return False
        # Data shuffled after a `take` were taken before: the same data on all ranks, unless they differ
        # there.
        taken = {each.site for each in counts.taken}
        cut = [node for node in nodes if node.site in taken]
        nodes = [up for node in cut for up in self._pipelines.upstream(node)] or nodes
        # HV16 never changes the seed of an order that is divided.
        if any(node.operation == "skip" for node in nodes) and any(map(self._knowledge.draws, nodes)):
            return False
        row, known = list(self._nodes(pipeline)), self._knowledge
        return all(not known.likeness(each).diverges or known.reaches_little(each, row) for each in nodes)

    def _counts_steps(self, pipeline: _Pipeline) -> bool:
        """Return whether a loop has a number of steps, which HV06 divides."""
        fit, given = pipeline.iteration.fit, self._input_fns.of(pipeline.iteration)
        if given is not None and given.counted:
            return True
        if (fit is not None and counts(fit)) or self._divides_epochs(pipeline.iteration):
            return True
        return any(
            node.operation == "take" and node.site is not None and not self._iterated.splits(node.site)
            for node in self._nodes(pipeline)
        )

    def _divides_epochs(self, iteration: Iteration) -> bool:
        """Return whether the script itself gives each rank fewer epochs."""
        given = iteration.fit.given("epochs") if iteration.fit is not None else None
        return divides_epochs(self._program, iteration.statement, given)

    @cached_property
    def _divided(self) -> list[LoopDivision]:
        """The other loops, each with its steps if these are divided too."""
        return [
            replace(each, how=How.STEPS, is_alike=self._is_alike(self._stepped[each.iteration]))
            if each.iteration in self._stepped
            else each
            for each in self._cuts
        ]

    def _is_alike(self, pipeline: _Pipeline) -> bool:
        """Return whether all ranks would certainly begin with the same part of the data."""
        return all(self._knowledge.likeness(node).is_uniform for node in self._nodes(pipeline))

    @cached_property
    def _cuts(self) -> list[LoopDivision]:
        """The other loops: divided at places that several may share, or else each at its own place."""
        settled = {each.iteration for each in self._settled}
        waiting = [each for each in self._read if each.iteration not in settled]
        together, whole = waiting, list[LoopDivision]()
        while together:
            found = self._cut(together, together)
            failed = [each for each in found if each.how is How.WHOLE]
            if not failed and self._is_divided_once(found, together):
                return [*found, *whole]
            if not failed:
                break
            whole += failed
            out = {each.iteration for each in failed}
            together = [each for each in together if each.iteration not in out]
        alone = [self._cut([each], [each])[0] for each in waiting]
        return alone

    def _cut(self, pipelines: list[_Pipeline], among: list[_Pipeline]) -> list[LoopDivision]:
        """Divide the data of some loops, if only the loops of `among` read the data that they share."""
        nodes = [node for each in among for node in self._nodes(each)]
        allowed = {id(node.at.node) for node in nodes}
        found = []
        for each in pipelines:
            if self._program.fact(GlobalBatch).is_cut(each.iteration.statement):
                found.append(LoopDivision(each.iteration, How.BY_HAND))
                continue
            cutting = _Cutting(self._program, allowed, each.iteration in self._stepped)
            cut = cutting.of(each.root, batched=False, chained=False)
            if isinstance(cut, str):
                found.append(LoopDivision(each.iteration, How.WHOLE, reason=cut))
                continue
            in_graph = self._input_fns.of(each.iteration) is not None
            places = tuple(self._place(node, in_graph) for node in cut if not node.is_share)
            above = list(dict.fromkeys(up for node in cut for up in self._pipelines.upstream(node)))
            drawing = tuple(up.site for up in above if up.site is not None and self._knowledge.draws(up))
            if self._readers.is_read_alone(drawing):
                found.append(LoopDivision(each.iteration, How.WHOLE, reason=_ALONE))
                continue
            how = How.DIVIDED if places else How.BY_HAND
            found.append(LoopDivision(each.iteration, how, places, drawing))
        return found

    def _place(self, node: Node, in_graph: bool = False) -> Place:
        above = self._pipelines.upstream(node)
        free = dict.fromkeys(draw for up in above for draw in self._knowledge.free_draws(up))
        if not self._knowledge.ends(node):
            return Place(node.at, Form.ENDLESS, tuple(free))
        traced = in_graph or self._program.fact(Executions).is_in_graph(node.at.scope)
        return Place(node.at, Form.IN_GRAPH if traced else Form.DATASET, tuple(free))

    @cached_property
    def _others(self) -> list[LoopDivision]:
        """The loops over arrays."""
        known = {each.iteration for each in self._read}
        found = (self._of_arrays(each) for each in self._iterated.data if each not in known)
        return [each for each in found if each is not None]

    def _of_input_fns(self) -> Iterator[LoopDivision]:
        """Yield the trainings of Estimators without a dataset."""
        read = {each.iteration for each in self._read}
        yield from (self._of_input_fn(each) for each in self._input_fns.all if each.iteration not in read)

    def _of_input_fn(self, each: InputFn) -> LoopDivision:
        iteration, order = each.iteration, self._input_fns.order(each)
        is_alike = order.is_uniform
        if (each.counted and order.diverges) or self._program.fact(Generators).is_by_rank(each.at):
            return LoopDivision(iteration, How.STEPS)
        arrays = self._input_fns.arrays(each)
        if arrays is not None:
            found = self._of_given(iteration, arrays)
            return replace(found, how=How.STEPS, is_alike=is_alike) if each.counted else found
        if each.counted:
            seen, unseen = "no rank has an order of its own", "the script does not show how its data are made"
            return LoopDivision(iteration, How.STEPS, reason=seen if is_alike else unseen, is_alike=is_alike)
        reason = "the script does not show what it returns; shard its dataset, or give `train` its `steps`"
        return LoopDivision(iteration, How.WHOLE, reason=reason)

    def _of_arrays(self, iteration: Iteration) -> LoopDivision | None:
        """The division of arrays that `fit` gets, or that a loop indexes by number."""
        horovod, fit = self._program.fact(Horovod), iteration.fit
        if "builtins.map" in called(self._program, iteration.at):
            return LoopDivision(iteration, How.WHOLE, reason=_SEVERAL)
        if fit is None and self._index_loop(iteration) is None and self._row(iteration) is None:
            found = self._of_next(iteration)
            if found is not None:
                return found
        if self._program.fact(Uniformity).on_rank(iteration.at) or horovod.divided(*iteration.at[:3]):
            return LoopDivision(iteration, How.BY_HAND)
        if self._divides_epochs(iteration):
            return LoopDivision(iteration, How.STEPS)
        rows = self._row(iteration)
        if rows is not None:
            return self._of_rows(iteration, rows)
        if fit is None:
            return self._of_numbers(iteration)
        if counts(fit):
            return LoopDivision(iteration, How.STEPS)
        given = read_arrays(self._program, fit)
        if given is None:
            return None
        return self._of_given(iteration, given)

    def _of_given(self, iteration: Iteration, given: Arrays) -> LoopDivision:
        """The division of arrays that a training call gets."""
        places = tuple(
            Place(each.at, _HOLDING.get(each.holds, Form.ARRAY), given.draws, each.length)
            for each in given.arrays
        )
        return self._drawn(iteration, places, given.reason, given.doubts)

    def _of_slices(self) -> Iterator[LoopDivision]:
        """The `while` loops that count from slice to slice."""
        for each in read_slices(self._program):
            if each.loop not in self._iterated.around:
                assert isinstance(each.loop.node, ast.While)
                test = Occurrence(each.loop.node.test, each.loop.scope, each.loop)
                yield self._numbered(Iteration(test, each.loop), each.turns, each.counting)

    def _index_loop(self, iteration: Iteration) -> IndexLoop | None:
        if iteration not in self._index_loops:
            outer = self._is_outer(iteration)
            self._index_loops[iteration] = None if outer else read_index_loop(self._program, iteration)
        return self._index_loops[iteration]

    def _of_next(self, iteration: Iteration) -> LoopDivision | None:
        """The division of datasets on which each iteration of a loop calls `next`, and of the iterations."""
        numbers, statement = iteration.at, iteration.statement
        turns = turns_of(numbers.node) if isinstance(numbers.node, ast.Call) else None
        if isinstance(turns, ast.Constant):
            turns = turns if isinstance(turns.value, int) and turns.value >= _MANY else None
        sources = asked_of(self._program, statement, self._iterated.idle) if turns is not None else []
        if turns is None or not sources or self._is_outer(iteration) or self._iterated.is_part(statement):
            return None
        known = self._knowledge
        roots = [self._pipelines.read(source) for source in sources]
        rows = [list(self._pipelines.upstream(root)) for root in roots]
        counted = Place(divided_of(self._program, numbers.part(turns)), Form.COUNT)
        cut = _Cutting(self._program, {id(node.at.node) for row in rows for node in row}, counted=True)
        places: dict[Node, None] = {}
        drawing: list[Site] = []
        for root, row in zip(roots, rows, strict=True):
            own = any(known.likeness(node).diverges or node.is_share for node in row)
            if own and root.is_dataset and not any(node.unseen for node in row):
                continue
            found = cut.of(root, batched=False, chained=False)
            if isinstance(found, str):
                return LoopDivision(iteration, How.WHOLE, reason=found)
            places.update(dict.fromkeys(found))
            drawing += [node.site for node in row if node.site is not None and known.draws(node)]
        cuts = (self._place(node) for node in places)
        return LoopDivision(iteration, How.STEPS, (*cuts, counted), tuple(drawing))

    def _is_outer(self, iteration: Iteration) -> bool:
        """Return whether each iteration of a loop is a training of its own, as with folds."""
        return iteration.fit is None and iteration.statement in self._iterated.around

    def _row(self, iteration: Iteration) -> Rows | None:
        if iteration not in self._rows:
            self._rows[iteration] = None if self._is_outer(iteration) else read_rows(self._program, iteration)
        return self._rows[iteration]

    def _of_rows(self, iteration: Iteration, rows: Rows) -> LoopDivision:
        stepped = iteration.fit is not None and counts(iteration.fit)
        if rows.is_own:
            return LoopDivision(iteration, How.STEPS if stepped else How.BY_HAND)
        agreeing = [site for each in rows.places for site in self._program.fact(Generators).draws(each.at)]
        found = self._drawn(iteration, rows.places, rows.reason, agreeing=agreeing)
        stepped = stepped or any(each.form is Form.STEPS for each in rows.places)
        return replace(found, how=How.STEPS, is_alike=rows.is_seen) if stepped else found

    def _of_numbers(self, iteration: Iteration) -> LoopDivision | None:
        loop = self._index_loop(iteration)
        if loop is None:
            return None
        if loop.counts and self._iterated.is_part(iteration.statement):
            reason = "the loop around it also trains; divide its iterations by `hvd.size()`"
            return LoopDivision(iteration, How.WHOLE, reason=reason)
        return self._numbered(iteration, loop)

    def _numbered(
        self, iteration: Iteration, loop: IndexLoop, counting: tuple[Occurrence, ...] = ()
    ) -> LoopDivision:
        """The division of a loop by its numbers."""
        if loop.is_own:
            return LoopDivision(iteration, How.BY_HAND)
        form = Form.STRIDE if counting else Form.COUNT if loop.counts else Form.SEQUENCE
        form = Form.GENERATOR if loop.in_pairs else form
        at = divided_of(self._program, loop.at) if form is Form.COUNT else loop.at
        return self._drawn(iteration, (Place(at, form, loop.draws, counting=counting),), loop.reason)

    def _drawn(
        self,
        iteration: Iteration,
        places: tuple[Place, ...],
        reason: str,
        doubts: tuple[str, ...] = (),
        agreeing: Iterable[Site] = (),
    ) -> LoopDivision:
        """A loop that is divided, unless there is an obstacle."""
        if reason:
            return LoopDivision(iteration, How.WHOLE, reason=reason)
        drawn = (draw.site for place in places for draw in place.draws)
        return LoopDivision(
            iteration, How.DIVIDED, places, tuple(dict.fromkeys((*drawn, *agreeing))), doubts=doubts
        )

    def _is_divided_once(self, loops: list[LoopDivision], pipelines: list[_Pipeline]) -> bool:
        """Return whether each path from a loop to its data passes only one place of division."""
        places = {id(place.at.node) for each in loops for place in each.places}

        def once(node: Node, seen: frozenset[Node]) -> bool:
            here = id(node.at.node) in places
            if here or node in seen:
                return not any(
                    id(up.at.node) in places for up in self._pipelines.upstream(node) if up is not node
                )
            return all(once(each, seen | {node}) for each in node.inputs)

        return all(once(each.root, frozenset()) for each in pipelines)


# Containers of arrays, by the form of the division.
_HOLDING: dict[type[ast.expr] | None, Form] = {ast.List: Form.LIST, ast.Dict: Form.DICTIONARY}


_SEVERAL = "a share of one row would no longer match the others; iterate over them with `zip`"
_ALONE = (
    "a print on rank 0 alone draws a second order from the same `shuffle`; move it to a statement of its own"
)
# So many iterations that each rank gets some.
_MANY = 16


class _Cutting:
    """The search for the places at which pipelines are divided, as near to their sources as is safe.

    Other readers of the expressions in `allowed` are divided with them.  With `counted`, the steps of the
    loop are divided, so that an endless dataset is as good as one of known length.
    """

    def __init__(self, program: Program, allowed: set[int], counted: bool) -> None:
        self._script = program.script
        self._knowledge = program.fact(Knowledge)
        self._pipelines = program.fact(Pipelines)
        self._readers = program.fact(Readers)
        self._taken = program.fact(StepCounts).taken
        self._allowed = allowed
        self._counted = counted

    def of(self, node: Node, batched: bool, chained: bool) -> list[Node] | str:
        """The nodes at which to divide the whole output of `node`, or the reason why there are none.

        With `batched`, later batches consist of consecutive elements, which must stay together. With
        `chained`, one of its methods is called directly.
        """
        if node.is_share or (node.operation in JOINING and not self._obstacle(node, batched, freely=False)):
            return [node]  # Data that belong together are divided together.
        deeper = self._deeper(node, batched)
        if isinstance(deeper, str):
            if any(map(self._is_divided, self._pipelines.upstream(node))):
                return deeper or self._knowledge.unordered(node) or f"`{node.operation}` comes after `take`"
            if not node.is_dataset and deeper:
                return deeper
            return self._obstacle(node, batched) or [node]
        above = node.inputs[0]
        reads_call = not node.operation and deeper == [above] and bool(above.operation)
        if chained and reads_call and not above.is_share and not self._obstacle(node, batched):
            return [node]
        return deeper

    def _deeper(self, node: Node, batched: bool) -> list[Node] | str:
        """The places upstream, one for each path to a source, or the reason why there are none, which is
        empty at a source.
        """
        passable = node.operation in PASSABLE or self._is_divided(node)
        if node.unseen or not node.inputs or not passable or _keeps_file(node):
            return ""
        if node.operation in BATCHING:
            batched = True
        elif node.operation in SHUFFLING:
            batched = False
        found: dict[Node, None] = {}
        for each in node.inputs:
            chained = bool(node.operation) and node.is_dataset and each is node.inputs[0]
            cut = self.of(each, batched, chained)
            if isinstance(cut, str):
                return self._knowledge.of_whole(node, cut)
            found.update(dict.fromkeys(cut))
        return list(found)

    def _is_divided(self, node: Node) -> bool:
        """Return whether a `take` already gets a share of its number (HV06)."""
        return node.operation == "take" and any(each.site is node.site for each in self._taken)

    def _obstacle(self, node: Node, batched: bool, freely: bool = True) -> str:
        """The reason why a node itself cannot be divided; empty if it can.

        Unless `freely`, a draw of an order without a seed is an obstacle, although a seed could be added.
        """
        if not node.is_dataset or node.at.statement is None:
            return f"`{ast.unparse(node.at.node)}` is not a dataset"
        known = self._knowledge
        uncounted = "" if self._counted and not known.ends(node) else known.uncounted(node)
        found = known.single(node) or uncounted or known.unordered(node)
        if not freely and not found and any(map(known.free_draws, self._pipelines.upstream(node))):
            found = "it is shuffled freely"
        if found:
            return found
        if any(each.is_tried for each in self._pipelines.upstream(node)):
            return "the same code also reads other data, without training"
        if batched:
            return "its elements are batched in order"
        other = next(self._readers.others(node, self._allowed), None)
        if other is not None:
            return f"it is also read elsewhere ({self._line(other)}), before it is shuffled or batched"
        return ""

    def _line(self, at: Occurrence) -> str:
        assert at.statement is not None
        return f"line {self._script.line_at(self._script.statement_span(at.statement).start)}"


def _keeps_file(node: Node) -> bool:
    """Return whether a node caches its input in a file, which ranks would share."""
    return node.operation == "cache" and node.given("filename", 0) is not None
