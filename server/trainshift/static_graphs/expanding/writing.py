"""Writing: convert forms to text, with the functions for `cond` and `while_loop` (PS01, PS02, PS17, PS18)."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from msgspec.structs import replace

from trainshift.python.flow.def_use import Names
from trainshift.python.syntax.chunk_syntax import own_parts
from trainshift.static_graphs.expanding.expressions import Expressions, unseen
from trainshift.static_graphs.expanding.ir import (
    UNBOUND,
    Branch,
    Env,
    Exit,
    Form,
    Kept,
    Loop,
    Plain,
    VarInfo,
    bound_in,
    info_of,
    live_before,
    loop_names,
    scalar,
    surely_bound_in,
)
from trainshift.static_graphs.expanding.refusal import CannotExpand, MustBeTensors
from trainshift.static_graphs.expanding.words import NUMBER_TYPES

_MOST_LOOPS = 6
_PINNED = {**NUMBER_TYPES, "float": "float32"}
_DEFINED = ("if_true", "if_false", "loop_cond", "loop_body")


class Writer:
    """Write the blocks of one function; `unit` is one level of indentation."""

    def __init__(self, write: Expressions, unit: str) -> None:
        self.write = write
        self.unit = unit
        self.lines: list[str] = []
        self.raw: set[str] = set()
        self._loops = 0
        self._result = write.knowledge.name("result")
        self._named = {name: write.knowledge.name(name) for name in _DEFINED}

    # Lines

    def _put(self, level: int, text: str) -> None:
        if text.startswith("\0"):
            self.lines.append(text[1:])
            self.raw.add(text[1:])
        else:
            self.lines.append(self.unit * level + text if text else "")

    def _put_all(self, level: int, lines: list[str]) -> None:
        for each in lines:
            self._put(level, each)

    # Blocks

    def block(self, forms: list[Form], env: Env, live: Names, level: int, *, returns: bool = False) -> None:
        """Write a block; `env` has the facts about its names, before and then after it."""
        for index, form in enumerate(forms):
            after = live_before(forms[index + 1 :], live)
            match form:
                case Plain():
                    self._plain(form, env, level, returns=returns)
                case Exit():
                    self._put_all(level, form.leading)
                    self._return(form, form.value, env, level, form.beside)
                case Kept():
                    self._kept(form, env, after, level, returns=returns)
                case Branch():
                    self._branch(form, env, after, level)
                case Loop():
                    self._loop(form, env, after, level)

    def _plain(self, form: Plain, env: Env, level: int, *, returns: bool) -> None:
        self._put_all(level, form.leading)
        node = form.node
        if returns and isinstance(node, ast.Return):
            comment = form.lines[-1].rpartition("  #")
            self._return(form, node.value, env, level, f"#{comment[2]}" if comment[1] else "")
            return
        if returns and node is not None and any(isinstance(each, ast.Return) for each in ast.walk(node)):
            if not isinstance(node, ast.FunctionDef | ast.Lambda):
                raise CannotExpand(node, "a `return` here comes after one that a tensor decides on")
        self._put_all(level, form.lines)
        if form.gives:
            env.update(form.gives)
        elif node is not None and not (hasattr(node, "body") or isinstance(node, ast.Match)):
            self.write.knowledge.bind(env, node)
        elif node is not None and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._bind_all(node, env)

    def _bind_all(self, node: ast.stmt, env: Env) -> None:
        """Record the bindings inside a compound statement that Python runs."""
        before = dict(env)
        for each in ast.walk(node):
            if isinstance(each, ast.stmt):
                self.write.knowledge.bind(env, each)
        for name in {*before, *env}:
            env[name] = before.get(name, UNBOUND).joined(env.get(name, UNBOUND))
        function = self.write.knowledge.function
        after = function.after.get(function.statement_of.get(node), {})  # type: ignore[arg-type]
        for name in env.keys() & after.keys():
            env[name] = replace(env[name], value=replace(env[name].value, unbound=after[name].unbound))

    def _kept(self, form: Kept, env: Env, live: Names, level: int, *, returns: bool) -> None:
        self._put_all(level, form.leading)
        if form.is_loop:
            self._pin(bound_in([form]), env, level)
        ends: list[Env] = []
        before = dict(env)
        cuts, within = self.write.cuts_gradients, before
        if form.cuts_gradients:  # Every known tensor may have a gradient, because an alias of it may.
            self.write.cuts_gradients = True
            within = {name: replace(info, is_alias=True) for name, info in before.items()}
        if form.is_loop:
            for _, block in form.blocks:
                live = live | live_before(block, live)
        for head, block in form.blocks:
            self._put_all(level, head.lines)
            inner = dict(within)
            if head.node is not None:
                for part in own_parts(head.node):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        inner[part.id] = info_of(self.write.knowledge.kind(part)).named(is_alias=False)
            self.block(block, inner, live, level + 1, returns=returns or self._returns(block))
            ends.append(
                {name: before[name] if info is within.get(name) else info for name, info in inner.items()}
            )
        self.write.cuts_gradients = cuts
        if not form.is_whole:
            ends.append(before)
        for name in {name for end in ends for name in end}:
            found = ends[0].get(name, UNBOUND)
            for end in ends[1:]:
                found = found.joined(end.get(name, UNBOUND))
            env[name] = found

    def _returns(self, block: list[Form]) -> bool:
        return any(isinstance(each, Branch) and each.returns for each in block)

    # Branches

    def _branch(self, form: Branch, env: Env, live: Names, level: int) -> None:
        write = self.write
        self._put_all(level, form.leading)
        self._narrow(form.node, env)
        bound = {**bound_in(form.body), **bound_in(form.orelse)}
        outs = [] if form.returns else [name for name in bound if name in live]
        ends = [dict(env), dict(env)]
        names = [self._named["if_true"], self._named["if_false"]]
        texts = self._texts(form, ends, frozenset(outs), level + 1)
        if self._loops and any(end.get(name, UNBOUND).held == "array" for name in bound for end in ends):
            raise CannotExpand(
                form.node, "in a loop of the graph, a list cannot grow under a condition on a tensor", "PD25"
            )
        infos = [self._both(form.node, name, env, ends) for name in outs]
        for place, (block, lines) in enumerate(zip((form.body, form.orelse), texts, strict=True)):
            if place and form.else_leading:
                self._put_all(level, form.else_leading)
            sure = surely_bound_in(block)
            own = _begun(bound, block, frozenset(outs))
            self._put(level, f"def {names[place]}({', '.join(f'{name}={name}' for name in own)}):")
            self._copy_held(own, env, level + 1)
            self.lines += lines
            handed = [
                self._handed(form.node, name, infos[index], place, is_bound=name in sure)
                for index, name in enumerate(outs)
            ]
            self._put_result(level + 1, handed, lines)
        order = names[::-1] if form.is_swapped else names
        call = f"{write.cond(is_sure=form.is_sure)}({form.test.text}, {', '.join(order)})"
        if form.returns:  # SOT does not compile a `return` of a call whose arguments outer functions read.
            self._put(level, f"{self._result} = {call}")
            self._put(level, f"return {self._result}")
        elif outs:
            self._put(level, f"{', '.join(outs)} = {call}")
        else:
            self._put(level, call)
        env.update((name, _of_branches(*both)) for name, both in zip(outs, infos, strict=True))
        for name in bound.keys() - set(outs) - live:
            env.pop(name, None)

    def _texts(self, form: Branch, ends: list[Env], live: Names, level: int) -> list[list[str]]:
        """The lines of a branch's two blocks; `ends` receives the facts about names at their ends."""
        kept, texts = self.lines, []
        for block, end in zip((form.body, form.orelse), ends, strict=True):
            self.lines = []
            self.block(block, end, live, level, returns=form.returns)
            texts.append(self.lines)
        self.lines = kept
        return texts

    def _put_result(self, level: int, handed: list[str], lines: list[str]) -> None:
        """Write the results of a branch's function, or that it does nothing."""
        if handed:
            self._put(level, f"return {', '.join(handed)}")
        elif not any(line.strip() and not line.strip().startswith("#") for line in lines):
            self._put(level, "pass")

    def _narrow(self, node: ast.stmt, env: Env) -> None:
        """Narrow names by tests: an `elif` after ``if best is None`` excludes None."""
        function = self.write.knowledge.function
        for name, value in function.before.get(function.statement_of[node], {}).items():
            if name in env and env[name].other and not (known := info_of(value)).other:
                env[name] = replace(known, is_alias=env[name].is_alias)

    def _both(self, node: ast.AST, name: str, env: Env, ends: list[Env]) -> tuple[VarInfo, VarInfo]:
        """The facts about a name at the end of both branches; refuses values that a graph cannot pass on."""
        one, other = (self._settled(node, name, end.get(name, UNBOUND)) for end in ends)
        if one.value.unbound or other.value.unbound:
            raise CannotExpand(node, f"`{name}` may have no value after this, on one of the paths", "PD13")
        if one.held and one.held == other.held:
            return one, other
        self.write.same(node, one, other, f"the values of `{name}`")
        before = env.get(name, UNBOUND)
        if (
            before.value.is_tensor
            and before.value.rank is None
            and (one.value.rank is None) != (other.value.rank is None)
        ):
            if before in (one, other):
                raise CannotExpand(
                    node,
                    f"Trainshift cannot tell how many dimensions `{name}` has, and one path changes them",
                )
        return one, other

    def _settled(self, node: ast.AST, name: str, info: VarInfo) -> VarInfo:
        """A name that is a number in Python and a tensor in a graph, as a possible tensor."""
        if info.tensor and info.number and not info.other and not info.value.unknown:
            if info.number == "int":
                return replace(info, value=scalar("int64").value)
            if name in self.write.pinned:
                raise CannotExpand(node, f"`{name}` is a number on some paths and a tensor on others", "PD12")
            raise MustBeTensors(frozenset({name}))
        return info

    def _handed(
        self, node: ast.AST, name: str, infos: tuple[VarInfo, VarInfo], place: int, *, is_bound: bool
    ) -> str:
        info, other = infos[place], infos[1 - place]
        write = self.write
        if info.held:
            return self._held(node, name, info)
        if info.is_number:
            write.applied("PS17", node)
            types = _PINNED if other.value.is_tensor else NUMBER_TYPES
            return write.number(name, other.dtype or types[info.number])
        if is_bound and not info.is_alias and not info.is_assignable:
            return name
        if info.value.unknown and not info.is_assignable:
            raise CannotExpand(node, unseen(name))
        write.applied("PS17", node)
        if info.dtype == "int64" and info.value.rank == 0:
            return write.number(name, "int64")
        return write.owned(node, name, info, is_outer=info.is_alias)

    def _held(self, node: ast.AST, name: str, info: VarInfo) -> str:
        """A container as the result of a graph's function, with tensors of its own."""
        if info.held == "array":
            return name
        self.write.applied("PS16", node)
        return f"{self.write.paddle}.utils.map_structure({self.write.paddle}.assign, {name})"

    def _copy_held(self, names: list[str], env: Env, level: int) -> None:
        """Begin a function of the graph with containers of its own."""
        for name in names:
            held = env.get(name, UNBOUND).held
            if held in ("dict", "list"):
                self._put(level, f"{name} = {held}({name})")

    def _return(self, form: Plain | Exit, value: ast.expr | None, env: Env, level: int, comment: str) -> None:
        node = form.node
        assert node is not None
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            raise CannotExpand(
                node, "one path out of a `cond` returns a tensor, and this one returns nothing", "PD11"
            )
        text = self._given_back(value, env)
        self._put(level, f"return {text}" + (f"  {comment}" if comment else ""))

    def _given_back(self, value: ast.expr, env: Env) -> str:
        if isinstance(value, ast.Tuple | ast.List) and value.elts:
            inner = ", ".join(self._given_back(each, env) for each in value.elts)
            if isinstance(value, ast.List):
                return f"[{inner}]"
            return f"({inner},)" if len(value.elts) == 1 else f"({inner})"
        info = env.get(value.id) if isinstance(value, ast.Name) else None
        if info is None:
            info = info_of(self.write.knowledge.kind(value))
            if info.number and self.write.knowledge.changes(value):
                info = info.or_tensor()
        if info.other and not info.container and not info.tensor:
            raise CannotExpand(
                value, "one path out of a `cond` returns tensors, and this one something else", "PD11"
            )
        if info.is_number:
            return self.write.number(self.write.text(value), NUMBER_TYPES.get(info.number, "int64"))
        if info.container or info.value.array:
            raise CannotExpand(value, "a container is returned where a tensor decides", "PD25")
        return (
            self.write.handed(value, info)
            if info.value.is_tensor or info.is_assignable
            else self.write.text(value)
        )

    # Loops

    def _loop(self, form: Loop, env: Env, live: Names, level: int) -> None:
        self._loops += 1
        if self._loops > _MOST_LOOPS:
            raise CannotExpand(form.node, "too many loops are nested")
        self._put_all(level, form.leading)
        self._narrow(form.node, env)
        for each in form.before:
            self._plain(each, env, level, returns=False)
        names = loop_names(form, live)
        self._pin(names, env, level)
        head, body = self._named["loop_cond"], self._named["loop_body"]
        start = {name: self._start(form, name, env) for name in names}
        if not names:
            raise CannotExpand(form.node, "nothing changes from one iteration of this loop to the next")
        kept, known = self.lines, start
        while True:
            self.lines, inner = [], {**env, **known}
            self.block(form.body, inner, frozenset(names), level + 1)
            more = {name: self._joined(known[name], inner.get(name, UNBOUND)) for name in names}
            if more == known:
                break
            known = more
        lines, self.lines = self.lines, kept
        given = ", ".join(names)
        self._put(level, f"def {head}({given}):")
        self._put(level + 1, f"return {form.test.text}")
        self._put(level, f"def {body}({given}):")
        changed = bound_in(form.body)
        self._copy_held([name for name in names if name in changed], start, level + 1)
        self.lines += lines
        handed = [form.steps.get(name) or self._next(form, name, start[name], inner) for name in names]
        back = ", ".join(handed)
        whole = f"({given},)" if len(names) == 1 else f"({given})"
        self._put(level + 1, f"return ({back},)" if len(names) == 1 else f"return {back}")
        self.write.needs.add("static_while")
        self._put(level, f"{whole if len(names) == 1 else given} = static_while({head}, {body}, {whole})")
        env.update(known)
        for name in bound_in(form.body):
            if name not in names:
                env.pop(name, None)
        self._loops -= 1

    def _pin(self, names: Iterable[str], env: Env, level: int) -> None:
        """Convert the numbers that must be tensors before a loop begins."""
        for name in names:
            info = env.get(name, UNBOUND)
            if name in self.write.pinned and info.is_number:
                dtype = _PINNED[info.number]
                self._put(level, f"{name} = {self.write.number(name, dtype)}")
                env[name] = scalar(dtype)
            elif (
                name in self.write.pinned and info.number == "bool" and not (info.other or info.value.unknown)
            ):
                self._put(level, f"{name} = {self.write.as_tensor(name)}")
                env[name] = scalar("bool")

    def _joined(self, start: VarInfo, end: VarInfo) -> VarInfo:
        found = replace(start.joined(end), is_alias=False)
        return found.or_tensor().named(is_alias=False) if start.is_number else found

    def _start(self, form: Loop, name: str, env: Env) -> VarInfo:
        info = env.get(name, UNBOUND)
        if info.value.unbound or info == UNBOUND:
            raise CannotExpand(form.node, f"`{name}` has no value before this loop, and one after it", "PD13")
        if (info.other or info.container or info.value.array) and not info.held:
            raise CannotExpand(
                form.node,
                (f"`{name}` is carried from one iteration to the next, and is neither a tensor nor a number"),
                "PD25",
            )
        return info

    def _check_number(self, node: ast.AST, start: VarInfo, end: VarInfo, what: str) -> None:
        """Refuse a number before a loop that is not a value the graph can carry after an iteration."""
        if end.number and end.number != start.number:
            raise CannotExpand(node, f"{what} are of different types of numbers", "PD12")
        if end.value.is_tensor:
            dtype = _PINNED.get(start.number, "")
            if end.value.rank != 0 or (end.dtype != dtype and (end.dtype or start.number != "float")):
                raise CannotExpand(node, f"{what} are a number first and then tensors", "PD12")
        if end.value.unknown:
            raise CannotExpand(node, f"{what} are a number first, and then something Trainshift cannot tell")

    def _next(self, form: Loop, name: str, start: VarInfo, env: Env) -> str:
        """The value that the body passes to the next iteration; refuses one whose type changes between
        iterations.
        """
        end = env.get(name, UNBOUND)
        what = f"the values of `{name}` across iterations"
        if start.held and start.held == end.held:
            return self._held(form.node, name, end)
        if end.value.unbound or end.other or end.container or end.value.array:
            raise CannotExpand(form.node, f"{what} are neither tensors nor numbers on some path", "PD25")
        if start.number and not start.tensor:
            self._check_number(form.node, start, end, what)
        elif start.value.is_tensor and not end.value.unknown:
            if end.is_number and start.value.rank not in (0, None):
                raise CannotExpand(form.node, f"{what} are a tensor first and then a number", "PD12")
            if not end.number:
                self.write.same(form.node, start, end, what)
        return self._given_on(form.node, name, start, end)

    def _given_on(self, node: ast.AST, name: str, start: VarInfo, end: VarInfo) -> str:
        """The text of a name at the end of an iteration: a new tensor, if it would be an alias."""
        if end.is_number:
            return self.write.number(
                name, start.dtype or ("float32" if end.number == "float" else NUMBER_TYPES[end.number])
            )
        is_counted = end.dtype == "int64" and end.value.rank == 0 and self.write.knowledge.holds_counted(name)
        if end.is_alias and end.tensor and (end.number == "int" or is_counted):
            return self.write.number(name, "int64")
        if end.is_alias and (end.value.is_tensor or end.value.unknown):
            return self.write.owned(node, name, end, is_outer=True)
        return name


def _of_branches(one: VarInfo, other: VarInfo) -> VarInfo:
    """The facts about a name after a `cond`, by its branches."""
    is_number = one.is_number or other.is_number
    if not is_number:
        return one.joined(other).named(is_alias=False)
    dtype = one.dtype or other.dtype or "float32"
    if one.is_number and other.is_number:
        dtype = NUMBER_TYPES.get(one.number, "")
    return scalar(dtype)


def _begun(names: Iterable[str], block: list[Form], after: Names) -> list[str]:
    """The names, of some, that a block binds and reads from before it."""
    mine = frozenset(bound_in(block))
    read = live_before(block, after & mine)
    return [name for name in names if name in mine and name in read]
