"""Read back: files that rank 0 alone writes and that every rank reads later in the same run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainshift.core.libraries import Libraries, argument_stated, full_name
from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.libraries.entries import ROOT
from trainshift.libraries.methods import named
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.classes import class_around
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Instance, Literal, Member
from trainshift.python.syntax.chunk_syntax import Site, Statement, arguments, is_elif
from trainshift.python.syntax.node_classes import LOOPS
from trainshift.python.values.call_chains import callers_around, calls_leading_to
from trainshift.training.execution.control_flow import ControlFlow
from trainshift.training.execution.executions import innermost_loop
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions.callbacks import CallbackLists
from trainshift.training.rank_regions.guard_forms import Form, may_differ
from trainshift.training.rank_regions.loaders import Loaders, read_by
from trainshift.training.rank_regions.path_keys import PathKeys, above, is_shown, may_end_alike
from trainshift.training.rank_regions.restored import Restored
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.training.ranks.branches import Branches
from trainshift.training.uniformity.uniformity import Uniformity

# The forms by which a whole statement is limited to rank 0.
_GUARDED = (Form.GUARD, Form.RELOAD)


class Read(NamedTuple):
    """A call that reads a file: the path, and the statement up to which all ranks run the same code.

    A read in a thread or in a graph waits where the thread is started, the data is created or the graph is
    run.
    """

    site: Site
    path: ast.expr
    anchor: Statement


class ReadBack:
    """The calls of one script that read files which the script has written."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._paths = program.fact(PathKeys)
        self._loaders = program.fact(Loaders)

    @cached_property
    def all(self) -> list[Read]:
        """The reading calls that must wait for rank 0, in text order."""
        if not self._program.fact(Loops).runs_eagerly:
            return []
        found = [
            each
            for each in self.of_all
            if (writes := self._written_before(each))
            if not all(self._is_in_statement(site, each.anchor) for site in writes)
        ]
        found.sort(key=lambda each: (self._script.span(each.site.node, each.site), self._start(each.anchor)))
        first = {(each.site, each.anchor): each for each in reversed(found)}
        reads = self._at_once(list(reversed(first.values())))
        return [each for each in reads if not self._is_waited_for(each)]

    def _at_once(self, reads: list[Read]) -> list[Read]:
        """The reads, each of which waits at an anchor above its own if nothing is written in between."""
        waits: set[Statement] = set()
        found: dict[Read, Read] = {}
        for read in sorted(reads, key=lambda each: self._start(each.anchor)):
            above = self._last_above(read, waits.__contains__)
            found[read] = read if above is None else read._replace(anchor=above)
            waits.add(found[read].anchor)
        return [found[each] for each in reads]

    def _is_waited_for(self, read: Read) -> bool:
        """Return whether a statement at which all ranks wait stands before a read, and nothing that it reads
        is written in between.
        """
        is_broadcast = self._program.fact(Horovod).is_statement
        above = self._last_above(read, lambda each: is_broadcast(each, "broadcast"))
        return self._waits(read.anchor) or above is not None

    def _last_above(self, read: Read, is_wait: Callable[[Statement], bool]) -> Statement | None:
        """The last statement for which a test holds above a read, in its block or in one around it, unless
        something that it reads is written in between.
        """
        for around in read.anchor.path():
            block, start = self._script.siblings(around)
            within = [] if around is read.anchor else [around]
            last = next((at for at in reversed(range(start)) if is_wait(block[at])), None)
            if last is not None:
                is_still = self._writes_nothing([*block[last:start], *within], read)
                return block[last] if is_still else None
        return None

    def _writes_nothing(self, statements: list[Statement], read: Read) -> bool:
        """Return whether nothing that a read reads is written in some statements, and nothing trained."""
        between = {part for each in statements for part in each.walk()}
        trains = self._program.fact(WhatTrains).statement_trains
        names, here = self._program.names, read.anchor.scope.function()
        return not any(map(trains, between)) and not any(
            call.statement in between
            or ((function := call.scope.function()) not in (None, here) and names.callers(function)[1])
            for site in self._written_before(read)
            for call in calls_leading_to(names, site)
        )

    def _start(self, statement: Statement) -> int:
        return self._script.statement_span(statement).start

    @cached_property
    def filled(self) -> list[Statement]:
        """The statements after which ranks must wait: rank 0 alone has unpacked an archive into a folder that
        the script does not name, or has written what the calling statement reads.
        """
        guarded = {
            call.site
            for call in self._program.fact(RootOnly).calls
            if call.form in (*_GUARDED, Form.CONDITIONAL, Form.PATH_APART) and not call.reason
        }
        found: dict[Statement, None] = {}
        for site in self._script.sites_named(*sorted(self._program.fact(Libraries).names_stating("fills"))):
            stated = (entries.fact(full_name(each), "fills") for each in self._program.names.callee(site))
            places = [argument_stated(site.node, str(each)) for each in stated if each]
            if (site in guarded or self._is_on_root(site)) and places and None in places:
                found.update(dict.fromkeys(self._around(site)))
        for read in self.of_all:
            for site in self._written_before(read):
                is_alone = site in guarded or self._is_on_root(site)
                if is_alone and self._is_in_statement(site, read.anchor):
                    found.update(dict.fromkeys(self._around(site)))
        reading = {self._script.preceding(each.anchor) for each in self.all}
        return [each for each in found if each not in reading and not self._is_followed(each)]

    def reached_alone(self, statement: Statement) -> Site | None:
        """Return a call by which one rank may come to a statement of a function without the others."""
        function = statement.scope.function()
        callers = self._program.names.callers(function)[0] if function is not None else []
        return next((each for each in reachable(callers, self._outwards) if self._may_be_alone(each)), None)

    def _may_be_alone(self, call: Site) -> bool:
        on_some = self._program.fact(Branches).of_call(call) is not None
        return on_some or self._anchor(call.statement) is not call.statement

    def _around(self, site: Site) -> Iterator[Statement]:
        """Yield the statements that all ranks run together around a call, or around the calls that lead to
        it.
        """
        for call in reachable([site], self._unless_together):
            if not self._unless_together(call):
                yield self._anchor(call.statement)

    def _unless_together(self, call: Site) -> list[Site]:
        """Return the callers of a function that some ranks leave before a call in it."""
        is_together = self._anchor(call.statement) in call.statement.path()
        return [] if is_together else callers_around(self._program.names, call)

    def _is_followed(self, statement: Statement) -> bool:
        following = self._script.following(statement)
        return following is not None and self._program.fact(Horovod).is_statement(following, "broadcast")

    @cached_property
    def of_all(self) -> list[Read]:
        """The calls by which all ranks read files, without those that become rank 0's."""
        reads = list(self._reads())
        calls = self._program.fact(RootOnly).calls if reads else ()
        # Calls of rank 0 alone come after its own writes.
        guarded = {call.statement for call in calls if call.form in _GUARDED and not call.reason}
        # Nor does a call that writes a file read it.
        others = {call.site for call in calls if call.form is Form.SHARE}
        others.update(self._program.fact(RootOnly).written if reads else ())
        return [
            each
            for each in reads
            if each.site not in others
            and not self._is_in(guarded, each.site)
            and not self._is_on_root(each.site)
        ]

    def is_kept(self, call: Site) -> bool:
        """Return whether a call reads a file that the script itself writes, in this run or an earlier one."""
        paths = (read_by(call, value) for value in self._program.names.callee(call))
        read = {key for path in paths if path is not None for key in self._paths.of(of_call(call).part(path))}
        return not read.isdisjoint(self._written if read else ())

    @cached_property
    def taken_away(self) -> list[Read]:
        """The calls by which rank 0 alone removes files that all ranks read before, in text order."""
        if not self._program.fact(Loops).runs_eagerly or not self.of_all:
            return []
        guarded = {
            call.site
            for call in self._program.fact(RootOnly).calls
            if call.form in (*_GUARDED, Form.CONDITIONAL) and not call.reason
        }
        found: list[Read] = []
        for site in self._script.sites_named(*sorted(self._program.fact(Libraries).names_stating("removes"))):
            path = self._taken_away_by(site) if site in guarded or self._is_on_root(site) else None
            # Each rank collects garbage at its own times.
            if path is None or any(
                _is_finalizer(call) for call in calls_leading_to(self._program.names, site)
            ):
                continue
            readers = self._readers(path, site)
            found += [
                each
                for each in (self._waiting(site, path) if readers else ())
                if not self._waits(each.anchor)
                and any(self._is_before(read, each.anchor) for read in readers)
            ]
        return found

    def _taken_away_by(self, site: Site) -> ast.expr | None:
        """Return the path that a call removes or renames; None if it does neither."""
        for value in self._program.names.callee(site):
            if entries.fact(full_name(value), "removes"):
                if isinstance(value, Member) and isinstance(site.node.func, ast.Attribute):
                    return site.node.func.value
                return site.node.args[0] if site.node.args else None
        return None

    def _readers(self, path: ast.expr, site: Site) -> list[Site]:
        """Return the calls by which all ranks read a path, or the contents of a folder."""
        keys = self._paths.of(of_call(site).part(path))
        found = []
        for read in self.of_all:
            at = of_call(read.site).part(read.path)
            if not keys.isdisjoint(self._paths.of(at) | self._paths.of_folders(at)):
                found.append(read.site)
        return found

    def _is_before(self, call: Site, statement: Statement) -> bool:
        """Return whether a call, or its caller, precedes a statement, or that statement's caller."""
        names, function = self._program.names, statement.scope.function()
        callers = names.callers(function)[0] if function is not None else []
        last = {function: self._start(statement)}
        for each in calls_leading_to(names, *callers):
            within = each.scope.function()
            last[within] = max(self._end(each), last.get(within, -1))
        return any(
            self._end(each) < last.get(each.scope.function(), -1) for each in calls_leading_to(names, call)
        )

    def _end(self, call: Site) -> int:
        """Return the end of a call, which follows those of its arguments."""
        return self._script.span(call.node, call).end

    def _is_on_root(self, site: Site) -> bool:
        """Return whether only rank 0 makes a call, or the objects of the class that makes it."""
        horovod = self._program.fact(Horovod)
        cls = class_around(site.scope)
        made = list(self._script.sites_named(cls.name)) if cls is not None else []
        return horovod.site_on_root(site) or (bool(made) and all(map(horovod.site_on_root, made)))

    def _is_in(self, guarded: set[Statement], site: Site) -> bool:
        """Return whether a call is in one of the statements, or in a function called there."""
        calls = calls_leading_to(self._program.names, site)
        return any(not guarded.isdisjoint(call.statement.path()) for call in calls)

    def _written_before(self, read: Read) -> list[Site]:
        """Return the writes that precede everything that waits for them, or that a function which reads runs
        after.
        """
        written = self._written
        path = of_call(read.site).part(read.path)
        own, folders = self._paths.of(path), self._paths.of_folders(path)
        lists = self._lists(read.site)
        listed = self._paths.of_listed(path) if lists else frozenset()
        known = sorted(key for key in own | folders if key in written)
        shown = [site for key in known if is_shown(key) for site in written[key]]
        if shown and self._is_late(read.site):
            return shown
        writes = [site for key in known for site in written[key]]
        writes += [
            site
            for key, site, other in self._written_in
            if (key in folders and may_end_alike(read.path, other))
            or (lists and not listed.isdisjoint((key, *above(key))))
            or (lists and key in own | folders and not (listed and other is None))
        ]
        return [
            site
            for site in dict.fromkeys(writes)
            if self._is_written_before(site, read.anchor) or self._is_in_statement(site, read.anchor)
        ]

    def _is_in_statement(self, site: Site, statement: Statement) -> bool:
        """Return whether a function that a statement calls writes, such as ``load(fetch(url))``."""
        leading = calls_leading_to(self._program.names, site)
        return any(call is not site and call.statement is statement for call in leading)

    def _is_written_before(self, site: Site, anchor: Statement) -> bool:
        """Return whether a write precedes a statement, in the text or by the calls that lead to both."""
        is_above = self._end(site) < self._start(anchor)
        return is_above or self._is_before(site, anchor)

    def _lists(self, site: Site) -> bool:
        """Return whether a call reads which files a folder has."""
        found = map(full_name, self._program.names.callee(site))
        return any(entries.fact(name, "lists") for name in found if name)

    @cached_property
    def _written_in(self) -> list[tuple[str, Site, ast.expr | None]]:
        """The folders in which rank 0 alone writes, the call, and the path if its text is unknown."""
        found = []
        for path, site in self._paths_written:
            shown = any(map(is_shown, self._paths.of(path)))
            found += [(key, site, None if shown else path.node) for key in self._paths.of_folders(path)]
        return found

    def _waiting(self, site: Site, path: ast.expr) -> Iterator[Read]:
        """Yield a read for each place where all ranks can wait before a call reads."""
        anchors = [self._anchor(call.statement) for call in self._together(site)]
        yield from (Read(site, path, anchor) for anchor in dict.fromkeys(anchors))

    def _together(self, site: Site) -> list[Site]:
        """Return the outermost calls at which ranks may diverge, or else the reading call itself.

        They may diverge in a thread, in a graph, and where each rank decides for itself whether it runs the
        code.
        """
        calls = list(reachable([site], self._outwards))
        begun = {outer for call in calls for outer in self._loaders.outside(call)}
        apart = [call for call in calls if call in begun or self._may_be_alone(call)]
        return [
            call
            for call in apart
            if all(outer is call or outer not in apart for outer in reachable([call], self._outwards))
        ] or [site]

    def _outwards(self, call: Site) -> list[Site]:
        return self._loaders.outside(call) or callers_around(self._program.names, call)

    @cached_property
    def _blocks(self) -> dict[Statement, Statement]:
        """The blocks around statements of rank 0 that are for rank 0 as a whole."""
        return {call.site.statement: call.block for call in self._program.fact(RootOnly).calls if call.block}

    def _anchor(self, statement: Statement) -> Statement:
        """Return the first statement of a function after which ranks may take different paths."""
        around = [each for each in statement.path() if each.scope is statement.scope]
        blocks = {each.parent for each in around}
        apart = [each for each in around[1:] if may_differ(self._program, each)]
        for outer in self._deciding(statement):
            apart += [each for each in outer.path() if each.parent in blocks][:1]
        found = min([self._blocks.get(statement, statement), *apart], key=self._start)
        while is_elif(found) and found.parent is not None:
            found = found.parent
        return found

    def _deciding(self, statement: Statement) -> Iterator[Statement]:
        """Yield the tests and loops before a statement by which ranks certainly take different paths."""
        trains = self._program.fact(WhatTrains).statement_trains
        for outer, _ in self._program.fact(ControlFlow).deciding(statement, self._decides_alone):
            loop = innermost_loop(outer)
            # Ranks that have left a loop, or an iteration, do not reach later code in it.
            yield outer if loop is None or outer in statement.path() or trains(loop) else loop
        for around in statement.ancestors():
            if isinstance(around.node, LOOPS) and not trains(around) and self._decides_alone(around):
                yield around

    def _decides_alone(self, statement: Statement) -> bool:
        """Return whether ranks certainly differ in a test's outcome or a loop's iterable."""
        node = statement.node
        if not isinstance(node, ast.If | ast.While | ast.For | ast.AsyncFor):
            return False
        test = node.iter if isinstance(node, ast.For | ast.AsyncFor) else node.test
        at = Occurrence(test, statement.scope, statement)
        uniformity = self._program.fact(Uniformity)
        return uniformity.on_rank(at) or bool(uniformity.asks_any and uniformity.causes(at))

    def _is_late(self, site: Site) -> bool:
        """Return whether a function that reads may run after a training step."""
        return site.scope.function() is not None and self._program.fact(Restored).follows_training(site)

    def is_native(self, path: ast.expr, site: Site) -> bool:
        """Return whether Keras may save a model to the path in its own format, which names Horovod's
        classes.
        """
        values = self._program.names.site_values(path, site)
        shown = [value.value for value in values if isinstance(value, Literal)]
        return len(shown) < len(values) or any(
            isinstance(each, str) and (each.endswith(".keras") or not each) for each in shown
        )

    def _reads(self) -> Iterator[Read]:
        names = self._program.fact(Libraries).names_stating("reads") | named("path_readers")
        for site in self._script.sites_named(*sorted(names)):
            for value in self._program.names.callee(site):
                path = read_by(site, value)
                if path is not None:
                    yield from self._waiting(site, path)
        for site in self._script.sites_named("load_weights"):
            path = self._program.fact(Restored).path(site)
            if path is not None:
                yield from self._waiting(site, path)

    def _keeps(self, name: str) -> bool:
        """Return whether a class of callbacks is rank 0's."""
        known = self._program.fact(Libraries).callback(name)
        return known is not None and known.text("ranks") == ROOT

    @cached_property
    def _written(self) -> dict[str, list[Site]]:
        """The keys of paths that only rank 0 writes, and the calls that write each."""
        found: dict[str, list[Site]] = {}
        for path, site in self._paths_written:
            for key in self._paths.of(path):
                found.setdefault(key, []).append(site)
        return found

    @cached_property
    def _paths_written(self) -> list[tuple[Occurrence, Site]]:
        """Every argument or receiver that may be a path written by rank 0 alone, with the call."""
        written = self._program.fact(RootOnly).written
        writing = [site for site in written if not self._loaders.reads_back(site)]
        for callbacks in self._program.fact(CallbackLists).all:
            for member in callbacks.members:
                element = member.element
                for value in self._program.names.values(element.node, element.scope, element.statement):
                    if isinstance(value, Instance) and self._keeps(value.cls):
                        writing.append(self._script.site_of(value.node))
        return [(of_call(site).part(path), site) for site in writing for path in _places(site)]

    def _waits(self, statement: Statement) -> bool:
        """Return whether the statement before is a broadcast, at which the other ranks wait."""
        return self._program.fact(Horovod).is_statement(self._script.preceding(statement), "broadcast")


def _places(site: Site) -> Iterator[ast.expr]:
    """Yield the parts of a writing call that may be the path, including its receiver."""
    for given in arguments(site.node):
        # After the rewrite, the path of `open` differs between rank 0 and the others.
        path = given.body if isinstance(given, ast.IfExp) else given
        if not isinstance(path, ast.Constant) or isinstance(path.value, str):
            yield path
    if isinstance(site.node.func, ast.Attribute) and site.name in named("path_writers"):
        yield site.node.func.value


def _is_finalizer(site: Site) -> bool:
    """Return whether a call is in a finalizer, which Python runs when it destroys an object."""
    function = site.scope.function()
    return function is not None and function.name == "__del__"
