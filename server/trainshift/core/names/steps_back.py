"""Steps back: what may give an expression its value, one step back from where it is read.

This is the one engine that follows values.  Whoever follows them from there on takes the steps that are given
here, and decides only where to stop: at a call that makes a model, at a number, at what is written in a list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from trainshift.core.names.classes import is_property
from trainshift.core.names.containers import Containers
from trainshift.core.names.occurrence import UNSEEN, Occurrence, Step, joined, unseen_in
from trainshift.core.names.values import Class, Module, UserInstance, Values
from trainshift.core.text.facts import Binding, Scope, Site, alternatives, dotted, hides_arguments

# A tuple, since this is asked very often: a union would be made anew each time.
_NAMED = (ast.Name, ast.Attribute)


class StepsBack(Containers):
    """Where the values of one script come from."""

    def steps_back(self, at: Occurrence) -> Step | None:
        """The occurrences that may give the value of an expression, one step back.

        None where the value is made right there: by a call, as a number, as a list that is written out.
        """
        if self._script.workspace is not None:
            home = self._script.home(at.scope)
            if home is not self._script:
                return home.names.steps_back(at)
        node = at.node
        if isinstance(node, _NAMED):
            steps = [self.source_of(binding) for binding in self.bindings(at)]
            if isinstance(node, ast.Attribute):
                steps += self._given_by_properties(node, at)
            step = joined(steps)
            step = step if step.sources or step.unseen else UNSEEN
        elif parts := alternatives(node):
            return _choice(node, parts, at)
        elif isinstance(node, ast.Subscript):
            step = self.item(at)
        elif isinstance(node, ast.Starred):
            step = self.elements(at.part(node.value))
        elif isinstance(node, ast.Await):
            step = unseen_in(at.part(node.value))
        elif (found := self._given_by_call(node, at)) is not None:
            step = found
        else:
            return None
        if at.tested:
            return step._replace(sources=tuple(each._replace(tested=True) for each in step.sources))
        return step

    def bindings(self, at: Occurrence) -> list[Binding]:
        """The bindings that a name or an attribute may have its value by; none for another expression."""
        node = at.node
        if isinstance(node, ast.Name):
            return self.lookup(node.id, at.scope, at.statement)[1]
        return list(dict.fromkeys(self._of_attribute(node, at))) if isinstance(node, ast.Attribute) else []

    def source_of(self, binding: Binding) -> Step:
        """The occurrences that a binding has its value from."""
        if binding.kind == "parameter" and binding.inner is not None:
            sites, elsewhere = self.callers(binding.inner)
            step = self.handed(binding, sites, or_default=elsewhere)
            return step._replace(unseen=step.unseen or elsewhere)
        if binding.kind == "import":
            return self._imported_from_files(binding)
        if binding.kind == "deleted":
            return Step()
        if binding.value is None:
            return UNSEEN
        at = Occurrence(binding.value, binding.scope, binding.statement)
        if binding.kind == "element":
            return self.elements(at, binding.path)
        return self.unpacked(at, binding.path) if binding.path else Step((at,))

    def handed(self, binding: Binding, sites: Iterable[Site], or_default: bool = False) -> Step:
        """What calls hand to a parameter: an argument, or the default where one leaves it out."""
        function = binding.inner
        assert function is not None
        assert isinstance(binding.target, ast.arg)
        sources: list[Occurrence] = []
        unseen = False
        for site in sites:
            given = self.argument(site, function, binding.target.arg)
            if given is not None:
                sources.append(Occurrence(given, site.scope, site.statement, site))
            elif hides_arguments(site.node):
                unseen = True
            else:
                or_default = True
        if or_default and binding.value is not None:
            sources.append(Occurrence(binding.value, binding.scope, function.statement))
        return Step(tuple(sources), unseen or (or_default and binding.value is None))

    def object_bindings(self, owner: UserInstance, name: str) -> Iterator[Binding]:
        """How an attribute of an object of the script's may be bound, in methods or from outside."""
        heirs = self.heirs(owner.scope) if owner.node is None else []
        classes = {owner.scope, *heirs}
        family = [each for each in self.ancestry(owner.scope) if isinstance(each, Scope)] + heirs
        homes = dict.fromkeys([self._script, *(self._script.home(each) for each in family)])
        for own, others in (home.names.assigned_attributes for home in homes):
            for cls in family:
                yield from own.get((cls, name), ())
            for attribute in others.get(name, ()):
                binding = attribute.binding
                if any(
                    isinstance(value, UserInstance) and value.scope in classes
                    for value in self.values(attribute.base, binding.scope, binding.statement)
                ):
                    yield binding

    def _of_attribute(self, node: ast.Attribute, at: Occurrence) -> Iterator[Binding]:
        """How an attribute may be bound: by its class, by its module, or under the same dotted name."""
        for value in self._base(node, at):
            if isinstance(value, UserInstance):
                yield from self.object_bindings(value, node.attr)
            if isinstance(value, UserInstance | Class):
                heirs = (
                    self.heirs(value.scope) if isinstance(value, UserInstance) and value.node is None else []
                )
                for cls in (*self.ancestry(value.scope), *heirs):
                    if isinstance(cls, Scope):
                        yield from (each for each in cls.bindings.get(node.attr, ()) if each.kind == "value")
            elif isinstance(value, Module) and self._script.workspace is not None:
                script = self._script.workspace.script(value.path)
                yield from script.module_bindings.get(node.attr, ()) if script is not None else ()
        if not self.is_self(node.value, at.scope):
            name = dotted(node.value)
            for attribute in self._script.attribute_bindings(node.attr) if name else ():
                own = self.is_self(attribute.base, attribute.binding.scope)
                if dotted(attribute.base) == name and not own:
                    yield attribute.binding

    def _base(self, node: ast.Attribute, at: Occurrence) -> Values:
        return self.values(node.value, at.scope, at.statement)

    def _given_by_properties(self, node: ast.Attribute, at: Occurrence) -> Iterator[Step]:
        for value in self._base(node, at):
            if isinstance(value, UserInstance):
                method = self.function_named(value.scope, node.attr)
                if method is not None and is_property(method):
                    yield _returns(method)

    def _given_by_call(self, node: ast.expr, at: Occurrence) -> Step | None:
        """What a call of the script's functions gives; None if it calls none of them."""
        if not isinstance(node, ast.Call):
            return None
        values = self.values(node.func, at.scope, at.statement)
        functions = [each for value in values if (each := self.function_of(value)) is not None]
        if not functions:
            return None
        steps = [
            UNSEEN if each.is_generator or isinstance(each.node, ast.AsyncFunctionDef) else _returns(each)
            for each in functions
        ]
        return joined([*steps, Step(unseen=len(functions) < len(values))])

    def _imported_from_files(self, binding: Binding) -> Step:
        """What gives an imported name its value, in whatever file; files may import it from each other."""
        workspace = self._script.workspace
        steps: list[Step] = []
        seen: set[Binding] = set()
        waiting = [binding] if workspace is not None else []
        while waiting and workspace is not None:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            home = self._script.home(each.scope)
            if each.kind != "import":
                steps.append(home.names.source_of(each))
                continue
            path, names = workspace.locate(home, each.full_name)
            script = workspace.script(path) if path and len(names) == 1 else None
            if script is not None:
                waiting += script.module_bindings.get(names[0], [])
        return joined(steps) if steps else UNSEEN


def _choice(node: ast.expr, parts: list[ast.expr], at: Occurrence) -> Step:
    """The parts of which an expression is one; all but the last operand of ``or`` are used only if true."""
    last = len(parts) - 1 if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else 0
    sources = (
        Occurrence(part, at.scope, at.statement, tested=at.tested or index < last)
        for index, part in enumerate(parts)
    )
    return Step(tuple(sources))


def _returns(function: Scope) -> Step:
    return Step(tuple(Occurrence(value, function, statement) for value, statement in function.returns))
