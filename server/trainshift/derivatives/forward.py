"""Forward mode: each active variable beside its tangent, changed together (SPEC-AD AD31)."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from trainshift.derivatives import terms
from trainshift.derivatives.analysis import CHANGING, Analysis, Function, root_of
from trainshift.derivatives.build import function_of, listed, same_arguments
from trainshift.derivatives.module import Module
from trainshift.derivatives.nodes import Node, Nodes
from trainshift.derivatives.pull import rebuilt


class Tangents(Analysis):
    """Everything that the jvp of one function needs."""

    def __init__(self, module: Module, start: str, wrt: Sequence[str], rows: object, made: str) -> None:
        super().__init__(module, start, wrt, rows, False)  # type: ignore[arg-type]
        self.wrt = list(wrt)
        self.made = made
        self.names: dict[Function, str] = {}
        self.helpers: set[str] = set()
        self.needs: set[str] = set()

    def made_name(self, function: Function) -> str:
        """The name of a function's jvp."""
        if function not in self.names:
            base = self.made if function is self.start else f"{function.name}_jvp"
            self.names[function] = base if function.parent is None else function.fresh(base)
            if function.parent is not None:
                function.parent.local.add(self.names[function])
        return self.names[function]

    def signature(self, function: Function) -> list[str]:
        """The parameters that have a tangent."""
        own = [each for each in function.params if not function.kind(each).has("function")]
        if function.escapes:
            return own
        active = [each for each in own if function.active(each)]
        if function is not self.start:
            return active
        return [*self.wrt, *(each for each in active if each not in self.wrt and self._called_again())]

    def _called_again(self) -> bool:
        """Whether the function at the start is called by what is differentiated."""
        return any(
            self.start.name in terms.names_read(statement)
            for function in self.every()
            for statement in function.body
        )

    def functions_made(self) -> list[ast.FunctionDef]:
        """The jvp of the function at the start, after all that it needs."""
        self.made_name(self.start)
        made: dict[Function, ast.FunctionDef] = {}
        while waiting := [each for each in self.names if each.parent is None and each not in made]:
            for each in waiting:
                made[each] = self.jvp(each)
        main = made.pop(self.start)
        return [*made.values(), main]

    def _begun(self) -> list[str]:
        """The parameters that vary, though the derivative is not along them."""
        return [each for each in self.start.params if self.start.active(each) and each not in self.wrt]

    def jvp(self, function: Function) -> ast.FunctionDef:
        """The value of a function and its tangent."""
        way = Forward(function, self)
        body = way.run()
        given = self.signature(function)
        if function is self.start:
            body = [*(way.begun(each, each in given) for each in self._begun()), *body]
        arguments = same_arguments(function.node.args)
        dots = [way.dot(each) for each in self.signature(function)]
        places = [*arguments.posonlyargs, *arguments.args]
        optional = {each.arg for each in places[len(places) - len(arguments.defaults) :]}
        optional |= {each.arg for each in arguments.kwonlyargs}
        if function.escapes and function is not self.start:
            arguments.args = [*arguments.args, *(ast.arg(each) for each in dots)]
            arguments.defaults = [*arguments.defaults, *(terms.constant(0.0) for _ in dots)]
        else:
            arguments.kwonlyargs = [*arguments.kwonlyargs, *(ast.arg(each) for each in dots)]
            defaults: list[ast.expr | None] = [
                terms.constant(None)
                if function is self.start and each not in self.wrt
                else (terms.constant(0.0) if function is not self.start and each in optional else None)
                for each in self.signature(function)
            ]
            arguments.kw_defaults = [*arguments.kw_defaults, *defaults]
        said = (
            f"The value of {function.name}, and its derivative along {listed(dots)}"
            if dots
            else f"The value of {function.name}"
        )
        self.helpers |= way.helpers
        self.needs |= way.needs
        return function_of(
            self.made_name(function), arguments, f"{said}{'' if self.arrays else '; of numbers'}.", body
        )


class Forward:
    """Forward mode of one function."""

    def __init__(self, function: Function, whole: Tangents) -> None:
        self.function = function
        self.whole = whole
        self.nodes = Nodes(function)
        self.out: list[ast.stmt] = []
        self.dots: dict[str, str] = {}
        self.helpers: set[str] = set()
        self.needs: set[str] = set()

    def run(self) -> list[ast.stmt]:
        """The statements of the function, each with what it does to tangents."""
        body = self.function.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        return self._block(body)

    def begun(self, name: str, given: bool) -> ast.stmt:
        """The tangent of a parameter that the derivative is not along."""
        zero = terms.constant(0.0)
        kind = self.function.kind(name)
        made = terms.assign(
            self.dot(name),
            zero if kind.numeric and not self.whole.arrays else self.helper("_zeros", terms.name(name)),
        )
        if not given:
            return made
        return ast.If(ast.Compare(terms.name(self.dot(name)), [ast.Is()], [terms.constant(None)]), [made], [])

    def dot(self, name: str) -> str:
        """The name of a variable's tangent."""
        owner = self.function.owner(name)
        dots = self.whole.__dict__.setdefault("_dots", {})
        key = (owner, name)
        if key not in dots:
            dots[key] = (owner or self.function).fresh(f"{name}_dot")
        return str(dots[key])

    def helper(self, name: str, *args: ast.expr) -> ast.expr:
        """A call of a helper, which is then put into the file."""
        self.helpers.add(name)
        return terms.call(name, *(terms.copied(each) for each in args))

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        outer, self.out = self.out, []
        for node in statements:
            start = len(self.out)
            self._statement(node)
            made = self.out[start:]
            if made and hasattr(node, "lineno"):
                made[0].above = node.lineno  # type: ignore[attr-defined]
                main = next((each for each in made if getattr(each, "lineno", None) == node.lineno), made[-1])
                main.beside = node  # type: ignore[attr-defined]
        made, self.out = self.out, outer
        return made or [ast.Pass()]

    # Expressions.

    def _read(self, value: ast.expr) -> Node:
        node = self.nodes.node(value)
        if node.active:
            self._mark(node)
        return node

    def _mark(self, node: Node) -> None:
        if node.sort == "row" and node.row is not None:
            operands = dict(node.params)
            used: set[str] = set()
            for param, child in node.params:
                if child.active and param in node.row.forward:
                    used |= terms.template_names(node.row.forward[param])
            if "y" in used and "y" not in operands:
                node.needed = True
            for param in used & set(operands):
                self.nodes.want(operands[param])
        for _, child in node.params:
            if child.active:
                self._mark(child)

    def ahead(self, node: Node, top: bool = False) -> ast.expr:
        """The value of an operation; what its tangent needs as well gets a name."""
        if node.sort == "call":
            held, dot = self.function.temporary(), ""
            dot = self.function.fresh(f"{held}_dot")
            self.function.local.add(held)
            self.out.append(
                terms.assign(terms.display([terms.name(held), terms.name(dot)]), self._called(node))
            )
            node.held = held
            return terms.name(held)
        new: dict[int, ast.expr] = {}
        for _, child in node.params:
            made = self.ahead(child)
            if made is not child.expr:
                new[id(child.expr)] = made
        made = rebuilt(node.expr, new) if node.params else self.plain(node.expr)
        if node.needed and not top:
            node.held = self.function.temporary()
            self.out.append(terms.assign(node.held, made))
            return terms.name(node.held)
        return made

    def _called(self, node: Node) -> ast.expr:
        """The call of a function that gives the value and its tangent."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        new: dict[int, ast.expr] = {}
        for _, child in node.params:
            if self._is_function(child.expr):
                new[id(child.expr)] = self._as_function(child.expr)
                continue
            if child.active and not isinstance(child.expr, ast.Name):
                child.needed = child.sort == "row"
            made = self.ahead(child)
            if made is not child.expr:
                new[id(child.expr)] = made
        arguments = [rebuilt(each, new) for each in expr.args]
        keywords = [ast.keyword(each.arg, rebuilt(each.value, new)) for each in expr.keywords]
        if node.target is None:
            given = [child for _, child in node.params if not self._is_function(child.expr)]
            dots = [self._tangent(child) for child in given]
            return ast.Call(self.plain(expr.func), [*arguments, *dots], keywords)
        target = node.target
        for param in self.whole.signature(target):
            child = dict(node.params).get(param)
            if child is None:
                continue
            name = Forward(target, self.whole).dot(param)
            keywords.append(ast.keyword(name, self._tangent(child)))
        return ast.Call(terms.name(self.whole.made_name(target)), arguments, keywords)

    def _is_function(self, expr: ast.expr) -> bool:
        if not isinstance(expr, ast.Name):
            return False
        owner = self.function.owner(expr.id)
        if owner is None:
            return expr.id in self.whole.module.functions
        return owner.kind(expr.id).has("function")

    def _as_function(self, expr: ast.expr) -> ast.expr:
        assert isinstance(expr, ast.Name)
        if self.function.owner(expr.id) is None:
            return terms.name(self.whole.made_name(self.whole.function(expr.id)))
        return self.plain(expr)

    def plain(self, expr: ast.expr) -> ast.expr:
        """An expression without tangent: functions inside give a tangent too, which is left."""
        new: dict[int, ast.expr] = {}
        for each in ast.walk(expr):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                owner = self.function.owner(each.func.id)
                if owner is not None and owner.kind(each.func.id).has("function"):
                    call = ast.Call(self.plain(each.func), [self.plain(a) for a in each.args], each.keywords)
                    new[id(each)] = ast.Subscript(call, terms.constant(0), ast.Load())
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                owner = self.function.owner(each.id)
                if owner is not None and each.id in owner.nested:
                    new[id(each)] = terms.name(self.whole.made_name(owner.nested[each.id]))
        return rebuilt(expr, new)

    def _value(self, node: Node) -> ast.expr:
        return terms.name(node.held) if node.held else self.plain(node.expr)

    def _tangent(self, node: Node) -> ast.expr:
        """The tangent of an operation."""
        if not node.active:
            return self._zero(node.expr)
        match node.sort:
            case "name":
                assert isinstance(node.expr, ast.Name)
                return terms.name(self.dot(node.expr.id))
            case "call":
                return terms.name(f"{node.held}_dot")
            case "row":
                return self._row(node)
            case "item":
                base = self._tangent(node.params[0][1])
                if isinstance(node.expr, ast.Subscript):
                    return ast.Subscript(base, self.plain(terms.copied(node.expr.slice)), ast.Load())
                assert isinstance(node.expr, ast.Call) and isinstance(node.expr.func, ast.Attribute)
                arguments = [
                    self._zero(each) if place else terms.copied(each)
                    for place, each in enumerate(node.expr.args)
                ]
                return ast.Call(ast.Attribute(base, node.expr.func.attr, ast.Load()), arguments, [])
            case "display":
                parts = [self._tangent(child) for _, child in node.params]
                if isinstance(node.expr, ast.Dict):
                    return ast.Dict([terms.copied(each) for each in node.expr.keys if each], parts)
                return type(node.expr)(parts, ast.Load())  # type: ignore[call-arg]
            case "joined":
                one, other = (self._tangent(child) for _, child in node.params)
                return ast.BinOp(one, ast.Add(), other)
            case "repeated":
                (_, one), (_, count) = node.params
                return ast.BinOp(self._tangent(one), ast.Mult(), self._value(count))
        raise AssertionError(node.sort)

    def _row(self, node: Node) -> ast.expr:
        row = node.row
        assert row is not None
        values = {param: self._value(child) for param, child in node.params}
        for param, default in row.defaults.items():
            values.setdefault(param, ast.parse(default, mode="eval").body)
        if "y" not in values:
            values["y"] = self._value(node)
        total: ast.expr | None = None
        for param, child in node.params:
            if not child.active or param not in row.forward:
                continue
            template = row.forward[param]
            for each in terms.template_names(template):
                if each in ("np", "math", "tf"):
                    self.needs.add(each)
                elif each.startswith("_") and len(each) > 1:
                    self.helpers.add(each)
            made = terms.simplified(terms.filled(template, {**values, "d": self._tangent(child)}))
            total = made if total is None else terms.summed(total, made)
        assert total is not None
        if self.whole.arrays and row.name in ("Add", "Sub", "numpy.add", "numpy.subtract"):
            for _, child in node.params:
                if not child.active and not self.nodes.settled(child.expr):
                    self.needs.add("np")
                    shape = terms.call("np.shape", self._value(child))
                    total = terms.summed(total, terms.call("np.zeros", shape))
        return total

    def _zero(self, expr: ast.expr) -> ast.expr:
        """The tangent of what is not active."""
        match expr:
            case ast.Constant():
                return terms.constant(0.0) if terms.is_number(expr) else terms.constant(None)
            case ast.List() | ast.Tuple():
                return type(expr)([self._zero(each) for each in expr.elts], ast.Load())
            case ast.Dict():
                return ast.Dict(
                    [terms.copied(each) for each in expr.keys if each],
                    [self._zero(each) for each in expr.values],
                )
        if self._is_function(expr):
            return terms.constant(None)
        if not self.whole.arrays and self.nodes.reader.kind(expr).numeric:
            return terms.constant(0.0)
        return self.helper("_zeros", self.plain(expr))

    # Statements.

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                value = node.value
                targets = list(node.targets)
                if len(targets) > 1 and any(self._is_active(each) for each in targets):
                    held = (
                        self.function.temporary() if not isinstance(targets[0], ast.Name) else targets[0].id
                    )
                    self._assign(node, terms.name(held), value)
                    for each in targets if held not in (getattr(targets[0], "id", ""),) else targets[1:]:
                        self._assign(node, each, terms.name(held))
                else:
                    self._assign(node, targets[0], value)
            case ast.AnnAssign(value=ast.expr()):
                assert node.value is not None
                self._assign(node, node.target, node.value)
            case ast.AugAssign():
                self._augmented(node)
            case ast.If():
                test = self.plain(node.test)
                made: ast.stmt = ast.If(
                    test, self._block(node.body), self._block(node.orelse) if node.orelse else []
                )
                self.out.append(ast.copy_location(made, node))
            case ast.While():
                other = self._block(node.orelse) if node.orelse else []
                made = ast.While(self.plain(node.test), self._block(node.body), other)
                self.out.append(ast.copy_location(made, node))
            case ast.For():
                self._for(node)
            case ast.Return():
                self._return(node)
            case ast.FunctionDef():
                self.out.append(self.whole.jvp(self.function.nested[node.name]))
            case ast.Nonlocal():
                dots = [self.dot(each) for each in node.names if self.function.active(each)]
                self.out.append(ast.copy_location(ast.Nonlocal([*node.names, *dots]), node))
            case ast.Expr(value=ast.Call()):
                self._called_alone(node)
            case ast.Assert():
                test = self.plain(node.test)
                made = node if test is node.test else ast.copy_location(ast.Assert(test, node.msg), node)
                self.out.append(made)
            case _:
                self.out.append(node)

    def _is_active(self, target: ast.expr) -> bool:
        return any(self.function.active(name) for each in terms.leaves(target) if (name := root_of(each)))

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        if not self._is_active(target):
            made = self.plain(value)
            same = made is value and isinstance(node, ast.Assign) and len(node.targets) == 1
            self.out.append(node if same else ast.copy_location(terms.assign(target, made), node))
            return
        root = self._read(value)
        if root.sort == "call" and not isinstance(target, ast.Subscript):
            pair = terms.display([target, self._dots_of(target)])
            self.out.append(ast.copy_location(terms.assign(pair, self._called(root)), node))
            return
        names = terms.names_bound([terms.assign(target, terms.constant(0))])
        own = {root_of(each) for each in terms.leaves(target)} - {None}
        top = root.needed and isinstance(target, ast.Name) and target.id not in terms.names_read(value)
        made = self.ahead(root, top)
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
        if root.active:
            tangent = self._tangent(root)
        elif isinstance(target, ast.Name) and not _is_display(value):
            self.out.append(line)
            zero = self._zero(value) if isinstance(value, ast.Constant) else self._zero(target)
            self.out.append(terms.assign(self.dot(target.id), zero))
            return
        else:
            tangent = self._zero(value)
        kind = self.nodes.reader.kind(target) if isinstance(target, ast.Name) else None
        if kind is not None and kind.has("changed") and kind.has("array") and root.sort == "row":
            if isinstance(target, ast.Name) and root.row is not None and root.row.elementwise:
                self.needs.add("np")
                shape = terms.call("np.shape", made)
                tangent = terms.summed(tangent, terms.call("np.zeros", shape))
        dot = terms.assign(self._dots_of(target), tangent)
        if terms.names_read(tangent) & (names | own) and not top:
            self.out += [dot, line]
            dot.own = True  # type: ignore[attr-defined]
        else:
            self.out += [line, dot]

    def _dots_of(self, target: ast.expr) -> ast.expr:
        """The tangents of what is assigned, in its structure."""
        match target:
            case ast.Tuple() | ast.List():
                return terms.display([self._dots_of(each) for each in target.elts])
            case ast.Name():
                return terms.name(self.dot(target.id) if self.function.active(target.id) else "_")
            case ast.Subscript():
                return ast.Subscript(self._dots_of(target.value), terms.copied(target.slice), ast.Load())
        return target

    def _augmented(self, node: ast.AugAssign) -> None:
        if not self._is_active(node.target):
            value = self.plain(node.value)
            made = node if value is node.value else ast.AugAssign(node.target, node.op, value)
            self.out.append(ast.copy_location(made, node))
            return
        joined = ast.BinOp(terms.copied(node.target), node.op, node.value)
        kind = self.nodes.reader.kind(node.target)
        if kind.has("list") and isinstance(node.op, ast.Add):
            root = self._read(node.value)
            made_value = self.ahead(root)
            line = node if made_value is node.value else ast.AugAssign(node.target, node.op, made_value)
            self.out.append(ast.copy_location(line, node))
            self.out.append(
                ast.AugAssign(terms.stored(self._dots_of(node.target)), ast.Add(), self._tangent(root))
            )  # type: ignore[arg-type]
            return
        root = self._read(joined)
        if root.sort != "row":
            self._assign(node, node.target, joined)
            return
        root.needed, needed = False, root.needed
        right = root.params[1][1]
        left = root.params[0][1]
        left.needed = False
        value = self.ahead(right)
        if needed:
            held = self.function.temporary()
            self.out.append(terms.assign(held, ast.BinOp(terms.copied(node.target), node.op, value)))
            root.held = held
            line = ast.copy_location(terms.assign(node.target, terms.name(held)), node)
        elif value is node.value:
            line = node
        else:
            line = ast.copy_location(ast.AugAssign(node.target, node.op, value), node)
        if isinstance(node.op, ast.Add | ast.Sub) and not self.whole.arrays:
            if right.active:
                tangent = self._tangent(right)
                sign = terms.negated(tangent) if isinstance(node.op, ast.Sub) else tangent
                if isinstance(node.op, ast.Sub):
                    dot: ast.stmt = ast.AugAssign(
                        terms.stored(self._dots_of(node.target)), ast.Sub(), tangent
                    )  # type: ignore[arg-type]
                else:
                    dot = terms.added(self._dots_of(node.target), sign)
                read = terms.names_read(tangent)
            else:
                self.out.append(line)
                return
        else:
            tangent = self._tangent(root)
            dot = terms.assign(self._dots_of(node.target), tangent)
            read = terms.names_read(tangent)
        if root_of(node.target) in read:
            self.out += [dot, line]
        else:
            self.out += [line, dot]

    def _return(self, node: ast.Return) -> None:
        value = node.value or ast.Constant(None)
        root = self._read(value)
        if root.sort == "call":
            self.out.append(ast.copy_location(ast.Return(self._called(root)), node))
            return
        made = self.ahead(root)
        self.out.append(ast.copy_location(ast.Return(terms.display([made, self._tangent(root)])), node))

    def _for(self, node: ast.For) -> None:
        found = self._dot_source(node.target, node.iter)
        source = self.plain(node.iter)
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
        else:
            for each in terms.leaves(node.target):
                if isinstance(each, ast.Name) and self.function.active(each.id):
                    body.append(terms.assign(self.dot(each.id), terms.constant(0.0)))
        inner = [*body, *self._block(node.body)]
        other = self._block(node.orelse) if node.orelse else []
        made = ast.For(terms.stored(target), source, inner, other)
        self.out.append(ast.copy_location(made, node))

    def _dot_source(self, target: ast.expr, source: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Targets and source of the tangents of what a loop goes through."""
        if not self.nodes.reader.value(source) or not self._is_active(target):
            return None
        match source:
            case ast.Call(func=ast.Name("enumerate"), args=[inner, *_]) if isinstance(target, ast.Tuple):
                return self._dot_source(target.elts[1], inner)
            case ast.Call(func=ast.Name("zip"), args=args) if isinstance(target, ast.Tuple):
                pairs = [
                    self._dot_source(each, inner) for each, inner in zip(target.elts, args, strict=False)
                ]
                found = [each for each in pairs if each is not None]
                if len(found) < 2:
                    return found[0] if found else None
                return terms.display([each for each, _ in found]), terms.call(
                    "zip", *(each for _, each in found)
                )
            case ast.Call(func=ast.Name("reversed" | "list" | "tuple" as word), args=[inner]):
                pair = self._dot_source(target, inner)
                return None if pair is None else (pair[0], terms.call(word, pair[1]))
            case ast.Call(func=ast.Attribute(value=inner, attr="items")) if isinstance(target, ast.Tuple):
                dots = self._tangent(self._read(inner))
                return self._dots_of(target.elts[1]), ast.Call(
                    ast.Attribute(dots, "values", ast.Load()), [], []
                )
            case ast.Call(func=ast.Attribute(value=inner, attr="values")):
                dots = self._tangent(self._read(inner))
                return self._dots_of(target), ast.Call(ast.Attribute(dots, "values", ast.Load()), [], [])
            case ast.Subscript(slice=ast.Slice()):
                pair = self._dot_source(target, source.value)
                if pair is None:
                    return None
                return pair[0], ast.Subscript(pair[1], terms.copied(source.slice), ast.Load())
        root = self._read(source)
        if not root.active:
            return None
        return self._dots_of(target), self._tangent(root)

    def _called_alone(self, node: ast.Expr) -> None:
        call = node.value
        assert isinstance(call, ast.Call)
        if isinstance(call.func, ast.Attribute) and self.nodes.module.dotted(call.func) is None:
            name = root_of(call.func.value)
            method = call.func.attr
            if name is not None and method in (*CHANGING, "pop") and self.function.active(name):
                dots: list[ast.expr] = [terms.copied(each) for each in call.args]
                if method != "pop" and call.args:
                    root = self._read(call.args[-1])
                    made = self.ahead(root)
                    dots[-1] = self._tangent(root)
                    if made is not call.args[-1]:
                        new = ast.Expr(ast.Call(call.func, [*call.args[:-1], made], []))
                        self.out.append(ast.copy_location(new, node))
                    else:
                        self.out.append(node)
                else:
                    self.out.append(node)
                place = self._dots_of(call.func.value)
                self.out.append(ast.Expr(ast.Call(ast.Attribute(place, method, ast.Load()), dots, [])))
                return
        target = self.nodes.reader.target(call)
        if target is not None and self.nodes.reader.value(call):
            root = self._read(call)
            if root.sort == "call":
                self.out.append(ast.copy_location(ast.Expr(self._called(root)), node))
                return
        value = self.plain(call)
        self.out.append(node if value is call else ast.copy_location(ast.Expr(value), node))


def _is_display(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple | ast.Dict)
