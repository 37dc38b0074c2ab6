"""Functions of forward mode: the jvp of the requested function, and of its callees."""

from __future__ import annotations

import ast

from trainshift.derivatives.forward.statements import Forward
from trainshift.derivatives.reading.analysis import Analysis
from trainshift.derivatives.reading.function import Function
from trainshift.derivatives.writing.layout import function_of, listed, same_arguments
from trainshift.python.flow.exits import leaves
from trainshift.python.rewrite import terms


class Tangents(Analysis):
    """All data for the jvp of one function."""

    reverse = False
    suffix = "jvp"

    def signature(self, function: Function) -> tuple[list[str], set[str]]:
        """The parameters with a tangent."""
        return self._signature(function), set()

    def _signature(self, function: Function) -> list[str]:
        if function.escapes:
            return function.handed()
        own = [each for each in function.params if not function.kind(each).has("function")]
        active = [each for each in own if function.active(each)]
        if function is not self.start:
            return active
        return [*self.wrt, *(each for each in active if each not in self.wrt and self.is_called(self.start))]

    def functions_made(self) -> list[ast.FunctionDef]:
        """The jvp of the requested function, after all functions that it needs."""
        self.names[self.start] = self.made
        made: dict[Function, ast.FunctionDef] = {}
        while waiting := [each for each in self.names if each.parent is None and each not in made]:
            for each in waiting:
                made[each] = self.jvp(each)
        main = made.pop(self.start)
        return [*made.values(), main]

    def made_function(self, function: Function) -> list[ast.stmt]:
        """The replacement of an inner function's definition."""
        return [self.jvp(function)]

    def _is_a_value(self, function: Function) -> bool:
        """Return whether the result of a function is used, although it ends without one."""
        alone = set[int]()
        for node in (each for one in self.every() for line in one.body for each in terms.walk(line)):
            value = getattr(node, "value", None)
            if (
                isinstance(node, ast.Expr)
                and isinstance(value, ast.Call)
                and isinstance(value.func, ast.Name)
            ):
                alone.add(id(value.func))
            elif isinstance(node, ast.Name) and node.id == function.name and id(node) not in alone:
                return True
        return False

    def _begun(self) -> list[str]:
        """The varied parameters, even if the derivative is not along them."""
        return [each for each in self.start.params if self.start.active(each) and each not in self.wrt]

    def jvp(self, function: Function) -> ast.FunctionDef:
        """The value of a function and its tangent."""
        way = Forward(function)
        body = way.run()
        if not leaves(function.body) and (function is self.start or self._is_a_value(function)):
            body.append(ast.Return(terms.display([terms.constant(None), terms.constant(None)])))
        given = self._signature(function)
        if function is self.start:
            body = [*(way.values.begun(each, each in given) for each in self._begun()), *body]
        arguments = same_arguments(function.node.args)
        dots = [way.values.dot(each) for each in given]
        places = [*arguments.posonlyargs, *arguments.args]
        optional = {each.arg for each in places[len(places) - len(arguments.defaults) :]}
        optional |= {each.arg for each in arguments.kwonlyargs}
        if function.escapes and function is not self.start:
            # Positional outputs are the values followed by their tangents; the others are passed by name.
            first, rest = arguments.args[: function.required], arguments.args[function.required :]
            asked = [way.values.dot(each.arg) for each in first if each.arg in given]
            others = [each for each in dots if each not in asked]
            arguments.args = [*first, *(ast.arg(each) for each in asked)]
            arguments.kwonlyargs = [*rest, *arguments.kwonlyargs, *(ast.arg(each) for each in others)]
            zeros = [terms.constant(0.0) for _ in others]
            arguments.kw_defaults = [*arguments.defaults, *arguments.kw_defaults, *zeros]
            arguments.defaults = [terms.constant(0.0) for _ in asked]
        else:
            arguments.kwonlyargs = [*arguments.kwonlyargs, *(ast.arg(each) for each in dots)]
            defaults: list[ast.expr | None] = [
                terms.constant(None)
                if function is self.start and each not in self.wrt
                else (terms.constant(0.0) if function is not self.start and each in optional else None)
                for each in given
            ]
            arguments.kw_defaults = [*arguments.kw_defaults, *defaults]
        said = (
            f"Return the value of {function.name} and its derivative along {listed(dots)}"
            if dots
            else f"Return the value of {function.name}"
        )
        self.helpers |= way.values.helpers
        self.needs |= way.values.needs
        return function_of(
            self.made_name(function), arguments, f"{said}{'' if self.arrays else ', for numbers'}.", body
        )
