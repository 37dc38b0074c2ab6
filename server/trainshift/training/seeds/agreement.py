"""Agreement: the values that rank 0 draws or decides for all ranks."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from enum import Enum
from itertools import pairwise

from msgspec import Struct

from trainshift.core.libraries import Libraries, full_name
from trainshift.core.program import Program
from trainshift.libraries import divergence, entries
from trainshift.libraries.divergence import CauseKind
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Literal
from trainshift.python.syntax.chunk_syntax import (
    COMPREHENSIONS,
    Scope,
    Site,
    Statement,
    expression_path,
    last_name,
    root_name,
)
from trainshift.python.values.backward_slice import sliced, sources
from trainshift.python.values.call_chains import statements_around
from trainshift.training.data.divided_data import DividedData
from trainshift.training.data.division_places import Form as Places
from trainshift.training.data.loop_division import How
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.rank_regions.own_paths import OwnPaths
from trainshift.training.rank_regions.read_back import ReadBack
from trainshift.training.ranks.decisions import can_send
from trainshift.training.ranks.own_batches import OwnBatches
from trainshift.training.ranks.sinks import Divergence, Sink, Sinks
from trainshift.training.seeds.drawn_alike import DrawnAlike
from trainshift.training.uniformity.environments import Worlds
from trainshift.training.uniformity.uniformity import Of, Uniformity
from trainshift.training.uniformity.value_flow import tests_around
from trainshift.training.uniformity.verdict import Cause

# Functions that draw from their argument: the result is sent.
_CHOOSING = frozenset({"choice", "choices", "sample", "suggest_categorical"})
# Functions that shuffle in place and return nothing, or draw whole data.
_IN_PLACE = divergence.BY_STATE | {
    "fit",
    "fit_generator",
    "rejection_resample",
    "sample_from_datasets",
    "shuffle",
}
# Reasons why two ranks name a file differently.  Listed files exist, whichever rank lists them.
_NAMING = (CauseKind.CLOCK, CauseKind.DRAW, CauseKind.HOST)
# Calls whose results cannot be sent, such as a connection, or need not be.
_UNSENT = (CauseKind.NET, CauseKind.PERHAPS, CauseKind.RANK, CauseKind.UNSURE)
# Functions that list files as objects, or folder by folder, each in its own order.
_UNSORTED = frozenset({"scandir", "walk"})
# What rank 0 computes for all ranks, by its own data.
_SENT_WHOLE = (Sink.HYPERPARAMETER, Sink.WEIGHTS, Sink.STOP)
_COUNTING = frozenset({"arange", "len", "range"})
# Functions that yield one file or folder after another, and the library whose methods that list files do.
_LAZY = ("glob.iglob", "os.walk", "tensorflow.io.gfile.walk")
_LAZY_BY_PATH = "pathlib."
# The methods of a tracker's run that fetch files: a run that is off, as on other ranks, has none.
_FETCHING = ("use_artifact", "use_model")
# Functions that return objects with files, locks or layers, or a number of an open file.
_UNSENT_NAMES = (
    "os.scandir", "tempfile.NamedTemporaryFile", "tempfile.TemporaryDirectory", "tempfile.TemporaryFile",
    "tempfile.mkstemp", "tensorflow.keras.",
)  # fmt: skip

# The forms in which each rank gets as many rows as another.
_EQUAL = (Places.ARRAY, Places.DATASET, Places.DICTIONARY, Places.LIST)
# What an expression inside is evaluated later or several times in, or is no place for a call.
_DEFERRING = (ast.Lambda, ast.JoinedStr, *COMPREHENSIONS)


class Form(Enum):
    """The form in which rank 0 sends a value: a Python object, a tensor, or the result of a test.

    SORTED: nothing is sent, because all ranks have the same files, in different orders.  LISTED: the elements
    of an iterator, which cannot be sent itself.
    """

    SORTED = "sorted"
    LISTED = "listed"
    OBJECT = "object"
    TENSOR = "tensor"
    TEST = "test"


class Mend(Struct, frozen=True):
    """An expression that rank 0 evaluates for all ranks, and the values that would diverge otherwise."""

    node: ast.expr
    within: Statement | Site
    form: Form
    divergence: Divergence


class Agreement:
    """The values on which the ranks of one program must agree before they train."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._names = program.names

    @cached_property
    def _told(self) -> list[Mend | Divergence]:
        found = (*self._program.fact(Sinks).divergences, *self._of_paths(), *self._of_shares())
        told = [self._mended(each) or each for each in found if not self.counts_alike(each.cause)]
        sent = {each.node for each in told if isinstance(each, Mend)}
        return [each for each in told if isinstance(each, Mend) or not self._judges_alike(each.cause, sent)]

    def _judges_alike(self, cause: Cause, sent: Container[ast.AST]) -> bool:
        """Return whether models give a value of rows that only draws make differ which are made alike."""
        uniformity, made = self._program.fact(Uniformity), self._program.fact(DrawnAlike).mended

        def given(each: Cause) -> Iterable[Cause]:
            site = each.site if each.kind is CauseKind.DATA else None
            if site is None or not uniformity.judges(site) or uniformity.is_under_tape(site):
                return ()
            return uniformity.causes_of_any(map(of_call(site).part, site.node.args[:2]))

        behind = list(reachable([cause], given, lambda each: each.at.node))
        return len(behind) > 1 and all(
            each.site in made or each.at.node in sent if each.kind is CauseKind.DRAW else any(given(each))
            for each in behind
        )

    def counts_alike(self, cause: Cause) -> bool:
        """Return whether a cause counts the rows of batches that are made from equal shares of the data."""
        return self._program.fact(OwnBatches).counts_alike(cause.at, self._divided)

    @cached_property
    def _divided(self) -> dict[ast.AST, bool]:
        """The datasets and the arrays that are going to be divided equally, by whether they are arrays."""
        loops = self._program.fact(DividedData).loops
        places = [place for each in loops if each.how is How.DIVIDED for place in each.places]
        return {each.at.node: each.form is not Places.DATASET for each in places if each.form in _EQUAL}

    def _of_paths(self) -> Iterator[Divergence]:
        """Yield the file names of this run, to which rank 0 writes and which all ranks read."""
        causes = self._program.fact(Uniformity).causes
        asks = self._program.fact(Uniformity).asks_any
        for read in self._program.fact(ReadBack).of_all if asks else ():
            at = of_call(read.site).part(read.path)
            own = self._program.fact(OwnPaths).temporary
            found = (each for each in causes(at) if self._names_anew(each) and each.at.node not in own)
            yield from (Divergence(Sink.PATH, at, each) for each in found)

    def _of_shares(self) -> Iterator[Divergence]:
        """Yield the sources of lengths that the script reads from sharded data."""
        causes = self._program.fact(Uniformity).causes
        asks = self._program.fact(Uniformity).asks_any
        for each in self._program.fact(DividedData).loops if asks else ():
            fit = each.iteration.fit
            is_counted = each.how is How.BY_HAND and fit is not None and fit.given("steps_per_epoch")
            if each.how in (How.DIVIDED, How.BY_HAND) and not is_counted:
                at = each.iteration.at
                disk = (cause for cause in causes(at, Of.COUNT) if cause.kind is CauseKind.DISK)
                yield from (Divergence(Sink.LENGTH, at, cause) for cause in disk)

    def _names_anew(self, cause: Cause) -> bool:
        """Return whether a name is made up, and not chosen among existing ones."""
        draws = self._program.fact(Uniformity).draws
        chosen = cause.site is not None and (draws.is_draw(cause.site) or draws.shuffles(cause.site))
        is_read = cause.kind is CauseKind.NET and (cause.site is None or cause.site.name in _FETCHING)
        return is_read or (cause.kind in _NAMING and not chosen)

    @cached_property
    def mends(self) -> list[Mend]:
        """The expressions whose values rank 0 sends to the others, each once."""
        found: dict[ast.expr, Mend] = {}
        for each in self._told:
            if isinstance(each, Mend):
                found.setdefault(each.node, each)
        return list(found.values())

    @property
    def is_needed(self) -> bool:
        """Return whether rank 0 sends anything."""
        return bool(self.mends)

    @property
    def left(self) -> list[Divergence]:
        """The divergences that cannot be fixed, once for each cause."""
        found: dict[ast.AST, Divergence] = {}
        for each in self._told:
            if isinstance(each, Divergence):
                found.setdefault(each.cause.at.node, each)
        return list(found.values())

    def _mended(self, divergence: Divergence) -> Mend | None:
        site = divergence.cause.site
        if divergence.sink is Sink.TASK:
            return None  # Only a person knows whether ranks should share a task, or average after it.
        stops_by_clock = divergence.sink is Sink.STOP and divergence.cause.kind is CauseKind.CLOCK
        if divergence.cause.kind is CauseKind.DATA or stops_by_clock:
            return self._of_data(divergence)
        if site is None and divergence.cause.kind is not CauseKind.RANK:
            return self._of_value(divergence, divergence.cause.at)
        if divergence.sink is Sink.PATH and site is not None and site.name in _FETCHING:
            return self._of_download(divergence, site)
        if divergence.cause.kind in _UNSENT or site is None:
            return None
        if site.in_fstring or self._script.called_name(site) in _IN_PLACE:
            return None
        if self._program.fact(Uniformity).draws.is_of_frame(site):
            return None  # It returns whole rows.
        if divergence.sink is Sink.SPLIT and self._only_lists(site, divergence.cause.kind):
            return Mend(site.node, site, Form.SORTED, divergence)
        if site.deferred and not self._is_iterated(site):
            node = self._numbers_of(site)
            can_tell = node is not None and self._can_tell(site.statement.scope, site.statement)
            return Mend(node, site.statement, Form.OBJECT, divergence) if node and can_tell else None
        if not self._can_tell(site.scope, site.statement) or not self._is_sendable(site):
            return None
        form = self._form_of(site, divergence.cause.kind)
        return Mend(site.node, site, form, divergence) if form is not None else None

    def _only_lists(self, site: Site, kind: CauseKind) -> bool:
        """Return whether a call lists files, the same on all ranks in some order."""
        listing = self._program.fact(Libraries).names_stating("lists") - _UNSORTED
        return kind is CauseKind.DISK and site.name in listing and not self._is_taken_from(site)

    def _of_download(self, divergence: Divergence, site: Site) -> Mend | None:
        """Return the fix for the folder of files that a tracker's run fetches."""
        node = _downloaded(site)
        can_tell = node is not None and self._can_tell(site.scope, site.statement)
        return Mend(node, site, Form.OBJECT, divergence) if node and can_tell else None

    def _of_data(self, divergence: Divergence) -> Mend | None:
        """Return the fix for a value from a rank's own data: send the deciding test, or the value."""
        test = divergence.at if divergence.is_test else self._deciding(divergence.at)
        if test is not None and test.statement is not None:
            can_tell = self._can_tell(test.scope, test.statement)
            return Mend(test.node, test.statement, Form.TEST, divergence) if can_tell else None
        return self._of_value(divergence, divergence.at) if divergence.sink in _SENT_WHOLE else None

    def _of_value(self, divergence: Divergence, at: Occurrence) -> Mend | None:
        """Return the fix for a value that rank 0 sends unchanged, such as a search's best parameters, or a
        rate that it has computed.
        """
        if at.statement is None or not self._can_tell(at.scope, at.statement):
            return None
        around = expression_path(at.statement.node, at.node)
        if any(isinstance(each, _DEFERRING) for each in around if each is not at.node):
            return None
        return Mend(at.node, at.statement, Form.OBJECT, divergence)

    def _form_of(self, site: Site, kind: CauseKind) -> Form | None:
        """Return the form in which a call's result can be sent; None if it cannot."""
        if self._program.fact(Uniformity).draws.is_initial(site):
            return Form.TENSOR
        names = set(map(full_name, self._names.callee(site)))
        if any(map(_is_lazy, names)):
            return None if self._is_taken_from(site) else Form.LISTED
        if any(name.startswith(_UNSENT_NAMES) for name in names):
            return None
        # TensorFlow's file functions return plain Python objects.
        is_tensor = kind is not CauseKind.DISK and any(name.startswith("tensorflow.") for name in names)
        return Form.TENSOR if is_tensor else Form.OBJECT

    def _is_taken_from(self, site: Site) -> bool:
        """Return whether `next` takes elements out of a call's result one by one."""
        taken = (
            of_call(each).part(each.node.args[0])
            for each in self._script.sites_named("next")
            if each.node.args
        )
        return any(each.node is site.node for start in taken for each in sliced(start, self._same_iterator))

    def _same_iterator(self, at: Occurrence) -> Iterable[Occurrence]:
        """Return the sources of an iterator in a name, or in an argument of `iter`."""
        if isinstance(at.node, ast.Call):
            return map(at.part, at.node.args[:1]) if last_name(at.node.func) == "iter" else ()
        return sources(self._names, at) if isinstance(at.node, ast.Name | ast.Attribute) else ()

    def _is_iterated(self, site: Site) -> bool:
        """Return whether a call runs at once, or inside a comprehension that iterates its result once."""
        for above, below in pairwise(expression_path(site.statement.node, site.node)):
            if isinstance(above, ast.Lambda):
                return False
            if isinstance(above, ast.comprehension) and below is not above.iter:
                return False
            if isinstance(above, COMPREHENSIONS) and below is not above.generators[0]:
                return False
        return True

    def _numbers_of(self, site: Site) -> ast.expr | None:
        """Return the list of numbers that a draw chooses, or that are drawn: ``[i for i in range(n) if
        ...]``, ``[draw() for _ in range(n)]``.
        """
        for above in expression_path(site.statement.node, site.node):
            if isinstance(above, ast.Lambda):
                return None
            if isinstance(above, ast.ListComp) and above.elt is site.node:
                return above if self._is_sendable(site) and len(above.generators) == 1 else None
            if isinstance(above, ast.ListComp | ast.SetComp):
                one, name = above.generators[0], last_name(above.elt)
                counts = last_name(one.iter.func) if isinstance(one.iter, ast.Call) else ""
                counted = one.target.elts[0] if isinstance(one.target, ast.Tuple) else one.target
                is_counted = counts == ("enumerate" if isinstance(one.target, ast.Tuple) else "range")
                return (
                    above
                    if is_counted and name == last_name(counted) and len(above.generators) == 1
                    else None
                )
        return None

    def _deciding(self, at: Occurrence) -> Occurrence | None:
        """Return the only test by a rank's own data that chooses the value of a name."""
        causes = self._program.fact(Uniformity).causes
        name = root_name(at.node)
        step = self._names.steps_back(at.part(name)) if name is not None else None
        tests = {
            test.node: test
            for source in (step.sources if step is not None else ())
            for test in tests_around(source.statement, at.statement)
            if causes(test)
        }
        return next(iter(tests.values())) if len(tests) == 1 else None

    @property
    def places(self) -> list[Statement]:
        """The statements, reached by all ranks, in which each rank draws or reads its machine."""
        kind = self._program.fact(Uniformity).kind
        sites = (each for each in self._script.sites if kind(each) not in (None, CauseKind.DATA))
        return [each.statement for each in sites if self._can_tell(each.scope, each.statement)]

    def _can_tell(self, scope: Scope, statement: Statement | None) -> bool:
        """Return whether all ranks reach a place at which objects can be sent."""
        function = scope.function()
        # A generator may run in a thread, which sends nothing.
        if statement is None or not can_send(self._program, scope) or (function and function.is_generator):
            return False
        if self._program.fact(Horovod).on_root(statement):
            return False
        # Episodes end at different times on different ranks.
        return not any(map(self._goes_by_world, statements_around(self._names, statement)))

    def _goes_by_world(self, statement: Statement) -> bool:
        """Return whether an environment decides how often a rank reaches the code of a statement."""
        node = statement.node
        test = node.test if isinstance(node, ast.While | ast.If) else getattr(node, "iter", None)
        asked = self._program.fact(Worlds).asked_by
        return test is not None and bool(asked(Occurrence(test, statement.scope, statement)))

    def _is_sendable(self, site: Site) -> bool:
        """Return whether a call's results are numbers or strings rather than objects of the script's
        classes.
        """
        if self._script.called_name(site) not in _CHOOSING:
            return True
        given = [*site.node.args[:2], *(each.value for each in site.node.keywords if each.arg != "k")]
        if site.name != "suggest_categorical":
            given = given[:1]
        return all(self._is_plain(Occurrence(each, site.scope, site.statement)) for each in given)

    def _is_plain(self, at: Occurrence) -> bool:
        """Return whether an expression is made of literal numbers or strings."""
        return all(map(self._is_plain_value, self._names.all_sources(at) or (at,)))

    def _is_plain_value(self, at: Occurrence) -> bool:
        node = at.node
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return all(self._is_plain_value(at.part(each)) for each in node.elts)
        if isinstance(node, ast.UnaryOp):
            return self._is_plain_value(at.part(node.operand))
        if isinstance(node, ast.Call) and last_name(node.func) in _COUNTING:
            return True
        values = self._names.values(*at[:3])
        return isinstance(node, ast.Constant) or (
            bool(values) and all(isinstance(each, Literal) for each in values)
        )


def _downloaded(site: Site) -> ast.expr | None:
    """Return the call that gives the folder of fetched files: ``run.use_artifact(name).download()``."""
    for above, below in pairwise(expression_path(site.statement.node, site.node)):
        if isinstance(above, ast.Call) and isinstance(below, ast.Attribute) and below.value is site.node:
            return above if below.attr == "download" else None
    return site.node if site.name == "use_model" else None


def _is_lazy(name: str) -> bool:
    """Return whether a function, or a method of a path, yields one file or folder after another."""
    return name.startswith(_LAZY) or (name.startswith(_LAZY_BY_PATH) and bool(entries.fact(name, "lists")))
