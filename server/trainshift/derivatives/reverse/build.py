"""Functions of reverse mode: the gradient of the requested function, and the vjp of its callees."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.reading.kinds import Kind, meet
from trainshift.derivatives.reading.result import refused_at
from trainshift.derivatives.reverse.control_flow import Ways
from trainshift.derivatives.reverse.peephole import shorter
from trainshift.derivatives.reverse.reversibility import check_changes
from trainshift.derivatives.reverse.saved_values import put_right, reads_of
from trainshift.derivatives.writing.layout import function_of, gradient_of, passed_on, same_arguments
from trainshift.python.lazy import cached_property
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import origin
from trainshift.python.syntax.fresh_names import fresh_name

# Each pass finds another variable that the reverse pass reads, or is one of the last. More passes than this
# per variable do not terminate.
RUNS_FOR_A_NAME = 8


class Build(Analysis):
    """All data for the gradient of one function."""

    reverse = True
    suffix = "vjp"

    @cached_property
    def _kept_around(self) -> dict[Function, set[str]]:
        """The saved values in the functions under construction, each inside the one before it."""
        return {}

    @cached_property
    def _handed(self) -> dict[Function, set[str]]:
        """The values that each function passes to its callees, and that their pullbacks read."""
        return {}

    @cached_property
    def _read_back(self) -> dict[Function, tuple[set[str], set[str], set[int]]]:
        """The names that the adjoint pass of each inner function reads.

        Each pass over a function includes its inner functions; from the second pass on, the names are known.
        """
        return {}

    @cached_property
    def _put_back(self) -> list[Kind]:
        """The kinds of the results of called functions that their pullbacks mutate."""
        return []

    # The names of the functions, and their results.

    def signature(self, function: Function) -> tuple[list[str], set[str]]:
        """The parameters whose adjoints a pullback returns, and those whose current adjoints it gets."""
        if function.escapes:
            return function.handed(), set()
        own = [each for each in function.params if not function.kind(each).has("function")]
        active = [each for each in own if function.active(each)]
        carried = {
            each for each in active if function.kind(each).has("box", "changed", "list", "dict", "tuple")
        }
        return active, carried

    def outer_bar(self, owner: Function, name: str) -> str:
        """The name of the adjoint of a variable that functions inside its own capture."""
        key = (owner, name)
        if key not in self.captured_bars:
            self.captured_bars[key] = owner.fresh(f"{name}_bar")
        return self.captured_bars[key]

    # Functions.

    def way(self, function: Function, first: str | None = None) -> Ways:
        """Both passes of a function, repeated until the reads of the adjoint pass are known."""
        # The reverse passes of outer functions may read the variables that it assigns.
        kept = function.foreign & set[str]().union(*self._kept_around.values())
        aliases = self.aliases(function)
        # A caller may read the mutated objects: mutations are undone.
        # Callees undo their own mutations, in order.
        contents = aliases.with_names(aliases.undone) | (set() if first else aliases.shown())
        idle: set[int] = set()
        if function in self._read_back:
            known = self._read_back[function]
            kept, contents, idle = kept | known[0], contents | known[1], known[2]
        inside_it = [function, *self.inside(function)]
        saved = [(each, set(each.used), set(each.local)) for each in inside_it]
        names, captured = dict(self.names), dict(self.captured_bars)
        runs = 0
        while runs <= RUNS_FOR_A_NAME * (1 + len(function.used)):
            runs += 1
            for each, used, local in saved:
                each.used, each.local = set(used), set(local)
            self.names, self.captured_bars = dict(names), dict(captured)
            self._reserve(function)
            self._kept_around[function] = kept
            way = Ways(function, kept, contents, idle)
            if first:
                way.pull.bars[function.result] = first
            else:
                way.pull.present.update(self.signature(function)[1] - self._rebound(function))
            way.run()
            self._handed[function] = way.pull.handed
            self._finish(way, first is not None)
            reads, inside = reads_of(way)
            handed = (self._handed.get(each, set()) - each.local for each in self.inside(function))
            inside = aliases.with_names(inside.union(way.pull.lengths, way.pull.handed, *handed))
            if reads <= kept and inside <= contents and way.idle_found == idle:
                break
            # A conditional without a reverse pass may get one once more values are saved.
            kept, contents, idle = kept | reads, contents | inside, way.idle_found
        else:
            node = function.node
            said = (
                f"{node.name} cannot be analysed: "
                f"after {runs} passes, the values that its reverse pass reads are still unknown"
            )
            raise refused_at(node, said)
        del self._kept_around[function]
        if function.parent is not None:
            self._read_back[function] = kept, contents, idle
        check_changes(way)
        if not first:
            self._put_back.extend(
                map(function.kind, aliases.returned & aliases.changed & way.passes.contents)
            )
        self.helpers |= way.pull.helpers
        self.needs |= way.pull.needs
        return way

    def _rebound(self, function: Function) -> set[str]:
        """The parameters that are rebound: their current adjoints belong to the new values, not to the
        arguments.
        """
        rebound = terms.names_bound(function.body) & self.signature(function)[1]
        rebound = {each for each in rebound if function.fills(each) is None}
        for name in sorted(rebound):
            captured = (function, name) in self.captured_bars
            if captured or (function in self.names and name in self.summary(function).mutated):
                why = "is captured by a function inside" if captured else "is changed"
                said = f"{name} is rebound and {why}: use two names"
                raise refused_at(function.node, said)
        return rebound

    def _reserve(self, function: Function) -> None:
        for name in function.captured():
            owner = function.owner(name)
            if owner is not None:
                function.used.add(self.outer_bar(owner, name))
        for each in function.nested.values():
            for name in each.captured():
                owner = each.owner(name)
                if owner is function:
                    self.outer_bar(function, name)

    def _finish(self, way: Ways, outermost: bool) -> None:
        """Finish the returned adjoints; containers that the adjoint pass mutates are copied before."""
        function = way.function
        before, after = self._left(way, function.params) if outermost else ([], [])
        bars: list[ast.expr] = []
        rebound = set() if outermost else self._rebound(function)
        aliases = self.aliases(function)
        changed = aliases.with_names(aliases.changed)
        for name in self.wrt if outermost else self.signature(function)[0]:
            kind = function.kind(name)
            if name in rebound:
                way.given[name] = function.fresh(way.pull.bar(name))
                given: ast.expr = terms.name(way.given[name])
                bars.append(
                    way.pull.helper("_add", given, terms.name(way.pull.bar(name)))
                    if way.pull.is_present(name)
                    else given
                )
                continue
            bar: ast.expr = (
                terms.name(way.pull.bar(name)) if way.pull.is_present(name) else way.pull.zero(name)
            )
            if not way.pull.is_present(name) and not kind.numeric:
                bar = way.pull.helper("_zeros", terms.name(name))
                if outermost and name in changed:
                    # In the structure of the argument before its mutation.
                    held = way.pull.bar(name)
                    if held in terms.names_bound([*way.passes.forward, *way.passes.out]):
                        held = function.fresh(held)
                    way.passes.forward.insert(0, terms.assign(held, bar))
                    bar = terms.name(held)
            elif (
                outermost
                and not kind.has("linked", "array")
                and (way.pull.boxlike(name) or self._is_held(function, name))
            ):
                bar = way.pull.helper("_like", bar, terms.name(name))
            way.pull.ask_length(name)
            bars.append(bar)
        way.bars_back = terms.display(bars)
        if after:
            bars_back = function.fresh("bars")
            after.insert(0, terms.assign(bars_back, way.bars_back))
            way.bars_back = terms.name(bars_back)
        way.passes.out = [*before, *way.passes.out, *after]
        starts: list[ast.stmt] = []
        plain: list[ast.expr] = []
        for (owner, name), cell in self.captured_bars.items():
            if owner is not function:
                continue
            container = function.kind(name).container or function.kind(name).has("array")
            carried = not outermost and name in self.signature(function)[1]
            if self._is_begun_late(function, name):
                # The first pullback of those that add to it finds the final value of the variable.
                starts.append(terms.assign(cell, terms.constant(None)))
                if name not in way.passes.defined:
                    starts.append(terms.assign(name, terms.constant(None)))
                continue
            if container and carried and not function.is_outlived:
                # The pullback gets the adjoint to add to.
                plain.append(terms.stored(terms.name(cell)))
                continue
            if container and not function.is_outlived and name not in way.begun:
                # Only at the end of the forward pass does it have the length that the reverse pass needs.
                way.passes.out.insert(0, terms.assign(cell, way.pull.helper("_cells", terms.name(name))))
                if name not in way.passes.defined:
                    starts.append(terms.assign(name, terms.constant(None)))
            elif container and name in function.params:
                starts.append(terms.assign(cell, way.pull.helper("_cells", terms.name(name))))
                continue
            if name in function.params and not function.kind(name).numeric:
                # No adjoint may reach it: it is as long as the argument.
                zero = way.pull.zero(name) if container else way.pull.helper("_zeros", terms.name(name))
                starts.append(terms.assign(cell, zero))
            elif not outermost or not container:
                plain.append(terms.stored(terms.name(cell)))
        if plain:
            starts.append(ast.Assign(plain, terms.constant(0.0)))
        way.passes.forward = [*starts, *way.passes.forward]

    def _is_begun_late(self, function: Function, name: str) -> bool:
        """Return whether the adjoint of a captured variable starts with the first pullback that adds to it:
        the caller calls the pullbacks of inner functions before that of their outer function.
        """
        return function.is_outlived and function.kind(name).container

    def _begun_late(
        self, body: Sequence[ast.stmt], starts: Sequence[ast.stmt], around: set[Function]
    ) -> Iterator[ast.stmt]:
        """Yield the initializations of adjoints used in a pullback's body, unless an earlier pullback has
        them.
        """
        used = set(terms.counted(body)[0]) | terms.names_bound(body)
        for (owner, name), bar in self.captured_bars.items():
            late = owner in around and self._is_begun_late(owner, name)
            if late and bar in used - terms.names_bound(starts):
                helper = "_zeros" if owner.kind(name).has("linked") else "_cells"
                self.helpers.add(helper)
                begun = terms.assign(bar, terms.call(helper, terms.name(name)))
                yield ast.If(terms.is_none(bar), [begun], [])

    def _left(self, way: Ways, params: Sequence[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Restore the arguments and the result to their final state, after the adjoint pass has undone
        mutations.

        An unshared argument is copied before; a shared one is restored afterwards.
        """
        function = way.function
        aliases = self.aliases(function)
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        for name in sorted(aliases.augmented):
            # The argument itself, if it is an array: the reverse pass may read its original value.
            given, held = function.fresh(name), function.fresh(name)
            way.passes.forward.insert(0, terms.assign(given, terms.name(name)))
            way.passes.forward.append(terms.assign(held, terms.name(name)))
            after += put_right(given, held, Kind())[1]
        for name in sorted(aliases.arguments & set(params)):
            if not way.passes.contents & aliases.with_names({name}):
                continue
            inside = (each.foreign for each in self.inside(function))
            rebound = name in terms.names_bound(function.body).union(*inside)
            if not rebound and not aliases.is_known_elsewhere(name):
                before.append(terms.assign(name, way.pull.helper("_copied", terms.name(name))))
                continue
            given = name
            if rebound:
                given = function.fresh(name)
                way.passes.forward.insert(0, terms.assign(given, terms.name(name)))
            held = function.fresh(name)
            keep, right = put_right(given, held, function.kind(name).found())
            if function.may_be_none(name):
                right = [ast.If(terms.is_none(given, is_not=True), right, [])]
            before.append(terms.assign(held, way.pull.helper(keep, terms.name(given))))
            after += right
        return before, after

    def functions_made(self) -> list[ast.FunctionDef]:
        """The gradient of the requested function, after every vjp that it needs."""
        start = self.start
        others: list[ast.FunctionDef] = []
        way = None
        if start in self._called():
            self.made_name(start)
        else:
            start.used.add("value_bar")
            way = self.way(start, "value_bar")
        done: set[Function] = set()
        while True:
            waiting = [each for each in self.names if each.parent is None and each not in done]
            if not waiting:
                break
            for each in waiting:
                done.add(each)
                others.append(self.vjp(each))
        return [*others, self._inline(way) if way else self._wrapper()]

    def _called(self) -> set[Function]:
        found: set[Function] = set()
        for function in self.every():
            for statement in function.body:
                for name in terms.names_read(statement):
                    if function.owner(name) is None and name in self.functions:
                        found.add(self.functions[name])
        return found

    def _inline(self, way: Ways) -> ast.FunctionDef:
        start = self.start
        value = start.result
        if self._undoes_value(way):
            self.helpers.add("_copied")
            way.passes.forward.append(terms.assign(value, terms.call("_copied", terms.name(value))))
        if value in terms.names_bound(way.passes.out):
            # The previous value of the name is restored.
            value = start.fresh(value)
            way.passes.forward.append(terms.assign(value, terms.name(start.result)))
        result = terms.display([terms.name(value), way.bars_back])
        body = [*way.passes.forward, _mark(), *shorter(way.passes.out, self.arrays), ast.Return(result)]
        return gradient_of(self.made, start.node, self.wrt, self._numbers(), body)

    def _is_held(self, function: Function, name: str) -> bool:
        """Return whether an untyped variable is an element of another one whose adjoint has lists instead of
        tuples.
        """
        kind = function.kind(name).found()
        others = (each for other, each in function.kinds.items() if other not in (name, function.result))
        return not kind.words and any(kind in each.with_elements() for each in others if each.container)

    def _undoes_value(self, way: Ways) -> bool:
        """Return whether the adjoint pass may mutate the result of the requested function, here or in
        callees.
        """
        start, aliases = self.start, self.aliases(self.start)
        undone = {each for each in way.passes.contents & aliases.changed if start.owner(each) is start}
        # An object that no variable may be, or hold a part of, is not shared.
        undone &= aliases.with_names({start.result})
        known = start.value.container or start.value.has("array")
        if known or (self.arrays and aliases.returned & undone):
            if any(aliases.meets(start.result, each) for each in undone):
                return True
        return self._puts_back_value()

    def _puts_back_value(self) -> bool:
        """Return whether pullbacks of called functions may mutate the result of the requested function."""
        kind = self.start.kind(self.start.result)
        if any(each.found() in kind.with_elements() for each in self._put_back):
            return True
        known = kind.container or kind.has("array")
        return known and any(meet(self.arrays, kind, each) for each in self._put_back)

    def _wrapper(self) -> ast.FunctionDef:
        start = self.start
        call = passed_on(self.made_name(start), start.node.args)
        params, carried = self.signature(start)
        free = set(start.params)
        value, pullback = (fresh_name(base, free) for base in ("value", "pullback"))
        given: list[ast.expr] = [terms.name("value_bar")]
        for each in params:
            if each in carried:
                helper = "_zeros" if start.kind(each).has("linked") else "_cells"
                self.helpers.add(helper)
                given.append(terms.call(helper, terms.name(each)))
        back = terms.call(pullback, *given)
        pair = terms.display([terms.name(value), terms.name(pullback)])
        body: list[ast.stmt] = [terms.assign(pair, call)]
        loose = [each for each in params if each in carried and not start.kind(each).has("linked")]
        aliases = self.aliases(start)
        undone = sorted(aliases.arguments & set(start.params))
        shared = any(aliases.meets(start.result, each) for each in undone)
        if start.value.changes or shared or self._puts_back_value():
            self.helpers.add("_copied")
            body.append(terms.assign(value, terms.call("_copied", terms.name(value))))
        after: list[ast.stmt] = []
        for each in undone:
            held = fresh_name(f"{each}_1", free)
            keep, right = put_right(each, held, start.kind(each).found())
            self.helpers.add(keep)
            body.append(terms.assign(held, terms.call(keep, terms.name(each))))
            if start.may_be_none(each):
                right = [ast.If(terms.is_none(each, is_not=True), right, [])]
            after += right
        if params == self.wrt and not loose and not after:
            body.append(ast.Return(terms.display([terms.name(value), back])))
        else:
            bars = {each: fresh_name(f"{each}_bar", free) for each in params}
            targets = [terms.name(bars[each] if each in self.wrt else "_") for each in params]
            body.append(terms.assign(terms.display(list(targets)), back))
            results: list[ast.expr] = []
            for each in self.wrt:
                if each not in bars:
                    self.helpers.add("_zeros")
                    results.append(terms.call("_zeros", terms.name(each)))
                elif each in loose:
                    self.helpers.add("_like")
                    made = terms.call("_like", terms.name(bars[each]), terms.name(each))
                    none = ast.IfExp(terms.is_none(each), terms.constant(None), made)
                    results.append(none if start.fills(each) else made)
                else:
                    results.append(terms.name(bars[each]))
            result: ast.expr = terms.display(results)
            if after:
                held = fresh_name("bars", free)
                body += [terms.assign(held, result), *after]
                result = terms.name(held)
            body.append(ast.Return(terms.display([terms.name(value), result])))
        return gradient_of(self.made, start.node, self.wrt, self._numbers(), body)

    def _numbers(self) -> str:
        return "" if self.arrays else ", for numbers"

    def vjp(self, function: Function) -> ast.FunctionDef:
        """The value of a function and its pullback."""
        way = self.way(function)
        pullback = function.fresh("pullback")
        params: list[str] = []
        if not function.value.has("function"):
            params.append(way.pull.bar(function.result))
        _, carried = self.signature(function)
        starts: list[ast.stmt] = []
        for each in [each for each in self.signature(function)[0] if each in carried]:
            bar = way.pull.bar(each)
            given = way.given.get(each, bar)
            if (function, each) in self.captured_bars:
                # Inner functions also add to the adjoint.
                given = function.fresh(bar)
                value: ast.expr = terms.name(given)
                if function.is_outlived:
                    self.helpers.add("_add")
                    value = terms.call("_add", terms.name(bar), value)
                starts.append(terms.assign(bar, value))
            if function.fills(each):
                begun = terms.assign(bar, way.pull.helper("_cells", terms.name(each)))
                starts.append(ast.If(terms.is_none(bar), [begun], []))
            params.append(given)
        back = shorter(way.passes.out, self.arrays)
        inner_body: list[ast.stmt] = [*starts, *back, ast.Return(way.bars_back)]
        ahead = terms.names_bound(way.passes.forward) | set(function.params)
        around = {function, *function.outer}
        for outer in function.outer:
            # Other variables of the same name belong to the function itself.
            ahead |= outer.local & function.foreign.union(*(each.foreign for each in self.inside(function)))
        seen = [bar for (owner, _), bar in self.captured_bars.items() if owner in around]
        inner_body = [*self._begun_late(inner_body, starts, around), *inner_body]
        assigned = terms.names_bound(inner_body) - set(params)
        bars = [each for each in seen if each in assigned]
        changed = list(dict.fromkeys([*bars, *sorted(assigned & {*ahead, *seen} - {"_"})]))
        if changed:
            inner_body.insert(0, ast.Nonlocal(changed))
        pulled = ast.FunctionDef(
            pullback,
            ast.arguments([], [ast.arg(each) for each in params], None, [], [], None, []),
            inner_body,
            [],
        )
        result: ast.expr = terms.name(function.result)
        last: ast.stmt | None = way.passes.forward[-1] if way.passes.forward else None
        if (
            function.value.has("function")
            and isinstance(last, ast.Assign)
            and isinstance(last.value, ast.Name)
        ):
            way.passes.forward.pop()
            result = last.value
        body = [*way.passes.forward, pulled, ast.Return(terms.display([result, terms.name(pullback)]))]
        said = f"Return the value of {function.name} and its pullback{self._numbers()}."
        return function_of(self.made_name(function), same_arguments(function.node.args), said, body)

    def made_function(self, function: Function) -> list[ast.stmt]:
        """The replacement of an inner function's definition."""
        self._reserve(function)
        return [self.vjp(function)]


def _mark() -> ast.stmt:
    """The comment between the two passes."""
    made = ast.Pass()
    origin(made).begins_adjoint = True
    return made
