"""Forward mode of statements: each active variable has a tangent, and both change together (AD31)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives.forward.values import Values
from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.reader import CHANGING, JOINT
from trainshift.derivatives.writing.writer import with_last
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.origins import comes_from
from trainshift.python.syntax.iteration import Step, step


class Forward:
    """Forward mode of one function; `values` has the values and tangents of its expressions."""

    in_place: set[int]

    def __init__(self, function: Function) -> None:
        self.function = function
        self.whole = function.whole
        self.values = Values(function)
        self.nodes = self.values.nodes

    def run(self) -> list[ast.stmt]:
        """The statements of the function, each with its effect on tangents."""
        body = self.function.body
        aliases = self.function.whole.aliases(self.function)
        # An aliased array must not be replaced by a new array.
        self.in_place = aliases.in_place
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        return self._block(body)

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        outer, self.values.out = self.values.out, []
        for node in statements:
            start = len(self.values.out)
            self._statement(node)
            comes_from(self.values.out[start:], node)
        made, self.values.out = self.values.out, outer
        return made or [ast.Pass()]

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self._assign_all(node)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                self._assign(node, node.target, node.value)
            case ast.AugAssign():
                self._augmented(node)
            case ast.If():
                test = self.values.plain(node.test)
                made: ast.stmt = ast.If(
                    test, self._block(node.body), self._block(node.orelse) if node.orelse else []
                )
                self.values.out.append(ast.copy_location(made, node))
            case ast.While():
                other = self._block(node.orelse) if node.orelse else []
                made = ast.While(self.values.plain(node.test), self._block(node.body), other)
                self.values.out.append(ast.copy_location(made, node))
            case ast.For():
                self._for(node)
            case ast.Return():
                self._return(node)
            case ast.FunctionDef():
                self.values.out.extend(self.whole.made_function(self.function.nested[node.name]))
            case ast.Nonlocal():
                dots = [self.values.dot(each) for each in node.names if self.function.active(each)]
                self.values.out.append(ast.copy_location(ast.Nonlocal([*node.names, *dots]), node))
            case ast.Expr(value=ast.Call()):
                self._called_alone(node)
            case ast.Assert():
                self.values.out.append(self.values.plain_statement(node))
            case _:
                self.values.out.append(node)

    def _assign_all(self, node: ast.Assign) -> None:
        """Assign a value to all targets of a statement, in order."""
        value, targets = node.value, node.targets
        if len(targets) == 1:
            self._assign(node, targets[0], value)
            return
        if not any(map(self._is_active, targets)):
            self.values.out.append(ast.copy_location(ast.Assign(targets, self.values.plain(value)), node))
            return
        # The first name holds the common value, if it has a tangent and no target reads it.
        own = targets[0].id if isinstance(targets[0], ast.Name) else ""
        asked = any(own in terms.names_read(each) for each in targets[1:])
        if not own or asked or not self._is_active(targets[0]):
            own = self._held_for_all(value)
            targets = [terms.name(own), *targets]
        self._assign(node, targets[0], value)
        for each in targets[1:]:
            self._assign(node, each, terms.name(own))

    def _held_for_all(self, value: ast.expr) -> str:
        """A variable for a value that is stored in several places, with the same activity."""
        function, held = self.function, self.function.temporary()
        function.local.add(held)
        function.kind(held).unify(self.nodes.reader.kind(value))
        if self.nodes.reader.value(value):
            function.varied.add(held)
            function.useful.add(held)
        return held

    def _is_active(self, target: ast.expr) -> bool:
        return any(self.function.active(name) for each in terms.leaves(target) if (name := root_of(each)))

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if not self._is_active(target):
            made = self.values.plain(value)
            same = made is value and isinstance(node, ast.Assign) and len(node.targets) == 1
            match value:
                case ast.Call(func=ast.Attribute(place, "pop")) if self._is_active(place):
                    # Its tangent is not needed but removed along with it, and first, since the place may
                    # depend on the length.
                    dots = ast.Attribute(self._dots_of(place), "pop", ast.Load())
                    self.values.out.append(
                        ast.Expr(ast.Call(dots, [terms.copied(each) for each in value.args], []))
                    )
            self.values.out.append(node if same else ast.copy_location(terms.assign(target, made), node))
            return
        root = self.values.read(value)
        if root.sort == "call" and not isinstance(target, ast.Subscript):
            pair = terms.display([target, self._dots_of(target)])
            self.values.out.append(ast.copy_location(terms.assign(pair, self.values.called(root)), node))
            return
        names = terms.names_bound([terms.assign(target, terms.constant(0))])
        own = {root_of(each) for each in terms.leaves(target)} - {None}
        top = root.needed and isinstance(target, ast.Name) and target.id not in terms.names_read(value)
        made = self.values.ahead(root, top)
        if top:
            assert isinstance(target, ast.Name)
            root.held = target.id
        if (
            made is value
            and isinstance(node, ast.Assign | ast.AnnAssign)
            and value is node.value
            and (not isinstance(node, ast.Assign) or len(node.targets) == 1)
        ):
            line: ast.stmt = node
        else:
            line = ast.copy_location(terms.assign(target, made), node)
        kind = self.nodes.reader.kind(target) if isinstance(target, ast.Name) else None
        if root.active:
            tangent = self.values.own_tangent(root, kind, target.id if isinstance(target, ast.Name) else "")
        elif isinstance(target, ast.Name) and not _is_display(value):
            self.values.out.append(line)
            told = isinstance(value, ast.Constant) or self.values.fills_itself(value)
            zero = self.values.zero(value if told else target)
            self.values.out.append(terms.assign(self.values.dot(target.id), zero))
            return
        else:
            tangent = self.values.zero(value)
        if kind is not None and kind.has("changed") and kind.has("array") and root.sort == "row":
            if isinstance(target, ast.Name) and root.row is not None and root.row.elementwise:
                tangent = terms.summed(tangent, self.values.wide(made))
        dot = terms.assign(self._dots_of(target), tangent)
        match value:
            case ast.Call(ast.Attribute(place, "pop"), [_, *_]):
                own |= {root_of(place)}
        if isinstance(tangent, ast.Name) and terms.same(tangent, self._dots_of(target)):
            self.values.out.append(line)
        elif terms.names_read(tangent) & (names | self._with_names(own)) and not top:
            self.values.out += [dot, line]
        else:
            self.values.out += [line, dot]

    def _dots_of(self, target: ast.expr) -> ast.expr:
        """The tangents of an assignment's target, in its structure."""
        match target:
            case ast.Tuple() | ast.List():
                return terms.display([self._dots_of(each) for each in target.elts])
            case ast.Name():
                return terms.name(self.values.dot(target.id) if self.function.active(target.id) else "_")
            case ast.Subscript():
                return ast.Subscript(self._dots_of(target.value), terms.copied(target.slice), ast.Load())
        return target

    def _augmented(self, node: ast.AugAssign) -> None:
        if not self._is_active(node.target):
            value = self.values.plain(node.value)
            made = node if value is node.value else ast.AugAssign(node.target, node.op, value)
            self.values.out.append(ast.copy_location(made, node))
            return
        joined = ast.BinOp(terms.copied(node.target), node.op, node.value)
        kind = self.nodes.reader.kind(node.target)
        if kind.has("list") and isinstance(node.op, ast.Add):
            root = self.values.read(node.value)
            made_value = self.values.ahead(root)
            longer = node if made_value is node.value else ast.AugAssign(node.target, node.op, made_value)
            tangent = self.values.tangent(root)
            lines = [longer, terms.added(self._dots_of(node.target), tangent, sign=False)]
            # The place in the tangents is computed before its container grows.
            early = self._with_names({root_of(node.target)}) & terms.names_read(tangent)
            self.values.out += lines[::-1] if early else lines
            ast.copy_location(longer, node)
            return
        root = self.values.read(joined)
        if root.sort != "row":
            self._assign(node, node.target, joined)
            return
        root.needed, needed = False, root.needed
        right = root.params[1][1]
        left = root.params[0][1]
        left.needed = False
        value = self.values.ahead(right)
        line: ast.stmt
        if needed:
            held = self.function.temporary()
            self.values.out.append(terms.assign(held, ast.BinOp(terms.copied(node.target), node.op, value)))
            root.held = held
            line = ast.copy_location(terms.assign(node.target, terms.name(held)), node)
        elif value is node.value:
            line = node
        else:
            line = ast.copy_location(ast.AugAssign(node.target, node.op, value), node)
        in_place = id(node) in self.in_place
        follows = in_place or not self.whole.arrays or self.nodes.reader.added_to(node)
        if isinstance(node.op, ast.Add | ast.Sub) and follows:
            if right.active:
                tangent = self.values.tangent(right)
                if isinstance(node.op, ast.Sub):
                    dot = terms.added(self._dots_of(node.target), terms.negated(tangent))
                else:
                    dot = terms.added(self._dots_of(node.target), tangent)
                read = terms.names_read(tangent)
            else:
                self.values.out.append(line)
                return
        else:
            tangent = self.values.tangent(root)
            place = self._dots_of(node.target)
            if in_place:
                place = ast.Subscript(place, terms.constant(...), ast.Load())
            dot = terms.assign(place, tangent)
            read = terms.names_read(tangent)
        if self._with_names({root_of(node.target)}) & read:
            self.values.out += [dot, line]
        else:
            self.values.out += [line, dot]

    def _with_names(self, names: set[str | None]) -> set[str]:
        """Variables with their aliases: reads through these must precede a mutation.

        Two parameters, or a captured variable, may be one object if their kinds allow it.
        """
        aliases = self.function.whole.aliases(self.function)
        own = {each for each in names if each is not None}
        own = aliases.with_names(own)
        outer = {*self.function.params, *self.function.around}
        met = {each for each in outer if any(aliases.meets(each, one) for one in own & outer)}
        return own | aliases.with_names(met)

    def _return(self, node: ast.Return) -> None:
        value = node.value or ast.Constant(None)
        root = self.values.read(value)
        if root.sort == "call":
            self.values.out.append(ast.copy_location(ast.Return(self.values.called(root)), node))
            return
        made = self.values.ahead(root)
        self.values.out.append(
            ast.copy_location(
                ast.Return(terms.display([made, self.values.own_tangent(root, self.function.value)])), node
            )
        )

    def _for(self, node: ast.For) -> None:
        found = self._dot_source(node.target, node.iter)
        source = self.values.plain(node.iter)
        body: list[ast.stmt] = []
        target: ast.expr = node.target
        if found is not None:
            dots, values = found
            if (
                isinstance(source, ast.Call)
                and isinstance(source.func, ast.Name)
                and source.func.id == "zip"
                and isinstance(values, ast.Call)
                and isinstance(values.func, ast.Name)
                and values.func.id == "zip"
                and isinstance(target, ast.Tuple)
                and isinstance(dots, ast.Tuple)
            ):
                target = terms.display([*target.elts, *dots.elts])
                source = ast.Call(source.func, [*source.args, *values.args], [])
            else:
                target = terms.display([target, dots])
                source = terms.call("zip", source, values)
        # A count or a key has no tangent, even if its variable has one elsewhere.
        given = terms.names_bound([terms.stored(target)])
        for each in terms.leaves(node.target):
            if isinstance(each, ast.Name) and self.function.active(each.id):
                dot = self.values.dot(each.id)
                if found is None or (dot not in given and self.function.is_given_elsewhere(each.id)):
                    body.append(terms.assign(dot, terms.constant(0.0)))
        inner = [*body, *self._block(node.body)]
        other = self._block(node.orelse) if node.orelse else []
        made = ast.For(terms.stored(target), source, inner, other)
        self.values.out.append(ast.copy_location(made, node))

    def _dot_source(self, target: ast.expr, source: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The targets and the iterable for the tangents of a loop."""
        if not self.nodes.reader.value(source) or not self._is_active(target):
            return None
        if self.nodes.reader.goes_through_keys(target, source):
            return None
        match step(source):
            case Step.KEYS, _:
                return None
            case Step.NUMBERED, [inner] if isinstance(target, ast.Tuple):
                return self._dot_source(target.elts[1], inner)
            case Step.BESIDE, parts if isinstance(target, ast.Tuple):
                pairs = [
                    self._dot_source(each, inner) for each, inner in zip(target.elts, parts, strict=False)
                ]
                found = [each for each in pairs if each is not None]
                if len(found) < 2:
                    return found[0] if found else None
                return terms.display([each for each, _ in found]), terms.call(
                    "zip", *(each for _, each in found)
                )
            case Step.BACKWARDS | Step.COPY, [inner]:
                pair = self._dot_source(target, inner)
                assert isinstance(source, ast.Call)
                return None if pair is None else (pair[0], ast.Call(source.func, [pair[1]], []))
            case Step.ITEMS, [inner] if isinstance(target, ast.Tuple):
                dots = self.values.tangent(self.values.read(inner))
                return self._dots_of(target.elts[1]), ast.Call(
                    ast.Attribute(dots, "values", ast.Load()), [], []
                )
            case Step.VALUES, [inner]:
                dots = self.values.tangent(self.values.read(inner))
                return self._dots_of(target), ast.Call(ast.Attribute(dots, "values", ast.Load()), [], [])
        match source:
            case ast.Subscript(slice=ast.Slice()):
                pair = self._dot_source(target, source.value)
                if pair is None:
                    return None
                return pair[0], ast.Subscript(pair[1], terms.copied(source.slice), ast.Load())
        root = self.values.read(source)
        if not root.active:
            return None
        return self._dots_of(target), self.values.tangent(root)

    def _called_alone(self, node: ast.Expr) -> None:
        call = node.value
        assert isinstance(call, ast.Call)
        if isinstance(call.func, ast.Attribute) and self.nodes.function.dotted(call.func) is None:
            name = root_of(call.func.value)
            method = call.func.attr
            if name is not None and method in (*CHANGING, *JOINT, "pop") and self.function.active(name):
                dots: list[ast.expr] = [terms.copied(each) for each in call.args]
                start = len(self.values.out)
                line = node
                if method != "pop" and call.args:
                    root = self.values.read(call.args[-1])
                    made = self.values.ahead(root)
                    dots[-1] = self.values.own_tangent(root)
                    line = with_last(node, made)
                self.values.out.append(line)
                place = self._dots_of(call.func.value)
                dot = ast.Expr(ast.Call(ast.Attribute(place, method, ast.Load()), dots, []))
                if (
                    dots
                    and self._with_names({name}) & terms.names_read(dots[-1])
                    and len(self.values.out) > start
                ):
                    self.values.out.insert(len(self.values.out) - 1, dot)
                else:
                    self.values.out.append(dot)
                return
        if self.values.runs_code(call) and self.nodes.reader.value(call):
            root = self.values.read(call)
            if root.sort == "call":
                self.values.out.append(ast.copy_location(ast.Expr(self.values.called(root)), node))
                return
        self.values.out.append(self.values.plain_statement(node))


def _is_display(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) or terms.entries(value) is not None
