"""Reverse mode of calls: a pullback beside each value (AD32, AD36)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainshift.derivatives.reading.function import Function, root_of
from trainshift.derivatives.reading.nodes import Node
from trainshift.derivatives.reading.side_effects import asks, changed_by_call
from trainshift.derivatives.reverse.pull import Pull
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.terms import rebuilt

Back = Callable[[], None]


class Calls(Pull):
    """What a call becomes on both ways."""

    forward: list[ast.stmt]
    # What calls that have a pullback are given, but for numbers.
    handed: set[str]

    def _keep(self, name: str, fresh: bool = False, backs: list[Back] | None = None) -> Back:
        raise NotImplementedError

    def sources(self, expr: ast.expr) -> set[str]:
        """The variables whose value, or a part of whose value, may be in that of an expression."""
        aliases = self.whole.aliases(self.function)
        return aliases.sources(expr)

    def _must(self, root: Node) -> bool:
        """Whether a call has to be gone back through even where nothing depends on its value."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.sort == "call" and self._has_effects(node):
                return True
            waiting.extend(child for _, child in node.params)
        return False

    def _has_effects(self, node: Node) -> bool:
        target = node.target
        return target is None or target.gives_functions or target.acts or asks(target)

    def _undoes_its_value(self, called: Function) -> bool:
        """Whether a pullback undoes changes of what the value of its call is, or shows: what reads that is
        done before."""
        aliases = self.whole.aliases(called)
        return bool(aliases.with_names({called.result}) & aliases.changed)

    def _undone_by(self, call: ast.Call) -> set[str]:
        """The variables that show what a call changes, which its pullback undoes."""
        changed = changed_by_call(self.nodes.reader, call)
        aliases = self.whole.aliases(self.function)
        return aliases.showing(changed)

    def asks_for_value(self, node: Node) -> bool:
        """Whether a pullback asks for an adjoint in the structure of a call's value, even if it is zero."""
        assert isinstance(node.expr, ast.Call)
        called = [node.target] if node.target is not None else self.nodes.reader.possible(node.expr)
        return any(each.value.container or each.value.has("array") for each in called)

    @property
    def pullbacks(self) -> dict[int, str]:
        """The names of pullbacks by the call's node."""
        if not hasattr(self, "_pullbacks"):
            self._pullbacks: dict[int, str] = {}
        return self._pullbacks

    def called(self, node: Node, lines: list[tuple[str, Node]]) -> ast.expr:
        """A call in an expression gets a line of its own: `t1, t1_pullback = g_vjp(...)`."""
        held = self.function.temporary()
        made = self._call_line(node, lines, held)
        node.held = held
        lines.append((held, node))
        self.function.local.add(held)
        after = self._keep(held, fresh=True)
        pullback = self.pullbacks[id(node)]
        last = self._keep(pullback, fresh=True)
        self.forward.append(terms.assign(terms.display([terms.name(held), terms.name(pullback)]), made))
        after()
        last()
        return terms.name(held)

    def _call_line(self, node: Node, lines: list[tuple[str, Node]], base: str) -> ast.expr:
        """The call of the function that gives the value and the pullback."""
        expr = node.expr
        assert isinstance(expr, ast.Call)
        pullback = self.function.fresh(f"{base}_pullback")
        self.pullbacks[id(node)] = pullback
        # Its pullback reads what it was given.
        for _, child in node.params:
            if not self.nodes.certain(child.expr):
                self.handed |= self.sources(child.expr)
        new: dict[int, ast.expr] = {}
        for param, child in node.params:
            if self.is_function(child.expr):
                new[id(child.expr)] = self.as_function(child.expr)
                continue
            made = self.ahead(child, lines)
            carried = node.target is not None and param in self.whole.signature(node.target)[1]
            place = child.sort == "name" or (
                child.sort == "item" and isinstance(self.path(child.expr)[0], ast.Name)
            )
            if carried and not place:
                if not isinstance(made, ast.Name):
                    held = self.function.temporary()
                    self.hold(held, made)
                    made = terms.name(held)
                    if child.active:
                        lines.append((held, child))
                        child.held = held
                    else:
                        child.held = held
                elif child.held is None and child.sort == "still":
                    child.held = made.id
            if made is not child.expr:
                new[id(child.expr)] = made
        arguments = [rebuilt(each, new) for each in expr.args]
        keywords = [ast.keyword(each.arg, rebuilt(each.value, new)) for each in expr.keywords]
        return ast.Call(self.made_function(node), arguments, keywords)

    def _call_back(self, node: Node, bar: ast.expr | None) -> None:
        """The call of a pullback, its results added to the adjoints of the arguments."""
        target = node.target
        if target is not None:
            params, carried = self.whole.signature(target)
            given = dict(node.params)
        else:
            given = {param: child for param, child in node.params if not self.is_function(child.expr)}
            params, carried = list(given), set()
        arguments: list[ast.expr] = []
        assert isinstance(node.expr, ast.Call)
        called = [target] if target is not None else self.nodes.reader.possible(node.expr)
        if not any(each.value.has("function") for each in called):
            if bar is None and self.asks_for_value(node) and self.value(node) is not node.expr:
                bar = self.helper("_cells", self.value(node))
            arguments.append(terms.constant(0.0) if bar is None else bar)
        results: list[ast.expr] = []
        after: list[tuple[Node, str]] = []
        # What is given twice, or is captured too, gets an adjoint of its own.
        taken_up: list[ast.expr] = [terms.name(name) for each in called for _, name in each.reached]
        altered = self.whole.summary(target).changed if target is not None else frozenset()
        taken_up += [given[each].expr for each in carried & set(given) & altered]
        placed: list[ast.expr] = []
        for param in params:
            child = given.get(param)
            if child is None or not child.active:
                if param in carried and child is None and target is not None and target.fills(param):
                    arguments.append(terms.constant(None))
                elif param in carried:
                    value = self.value(child) if child is not None else terms.constant(0.0)
                    arguments.append(self.helper("_cells", value))
                results.append(terms.name("_"))
                continue
            if param in carried:
                if child.sort == "name":
                    assert isinstance(child.expr, ast.Name)
                    place: ast.expr | None = terms.name(self.start(child.expr.id))
                elif child.sort == "item" and not self.in_tensor(child.expr):
                    place = self.place(child.expr)
                else:
                    place = None
                known = root_of(child.expr) or ""
                others = placed if param in altered else taken_up
                if any(not _apart(child.expr, each) for each in others):
                    place = None
                taken_up.append(child.expr)
                placed.append(child.expr)
                if place is not None:
                    arguments.append(place)
                    results.append(place)
                    continue
                held = self.function.fresh(f"{child.held or known}_bar")
                found = self.held_terms.pop(child.held or "", None)
                start = self.helper("_cells", self.value(child))
                if found:
                    start = self.helper("_add", start, self.total(found, self.value(child)))
                arguments.append(start)
                results.append(terms.name(held))
                after.append((child, held))
                continue
            taken = self._taken(child) if child.held is None else None
            if taken is None:
                base = child.expr.id if isinstance(child.expr, ast.Name) else child.held or "t"
                taken = self.function.fresh(f"{base}_bar")
                after.append((child, taken))
            results.append(terms.name(taken))
        call = terms.call(self.pullbacks[id(node)], *arguments)
        undone = self._undone_by(node.expr)
        undoes_value = any(map(self._undoes_its_value, called))
        for each in (self.terms, self.held_terms):
            for name, found in each.items():
                found[:] = [
                    (
                        self.named(term, name) if undoes_value or terms.names_read(term) & undone else term,
                        pending,
                    )
                    for term, pending in found
                ]
        # What was read after the call is gone back through before it.
        for name in sorted(undone & set(self.terms) - self.consumed):
            self.add(name, self.total(self.terms.pop(name), terms.name(name)))
        if all(isinstance(each, ast.Name) and each.id == "_" for each in results):
            self.emit(ast.Expr(call))
        else:
            self.emit(terms.assign(terms.display(results), call))
        for child, held in after:
            if child.sort == "name" and not child.pending and isinstance(child.expr, ast.Name):
                if child.expr.id not in self.consumed and child.expr.id not in self.terms:
                    self.add(child.expr.id, terms.name(held))
                    continue
            self.push(child, terms.name(held), child.pending)


def _apart(one: ast.expr, other: ast.expr) -> bool:
    """Whether two places are different ones: of different variables, or with different keys."""
    if root_of(one) != root_of(other):
        return True
    match one, other:
        case ast.Subscript(value, ast.Constant(key)), ast.Subscript(another, ast.Constant(its)):
            return terms.same(value, another) and key != its
    return False
