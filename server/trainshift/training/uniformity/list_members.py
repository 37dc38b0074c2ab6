"""Members of a script's lists, such as the callbacks of a `fit`, and the places where they are written.

A list is followed from an expression through names, parameters, functions, sums and `append` to the literals
that contain its elements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct, field

from trainshift.libraries.containers import adding_to
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script
from trainshift.python.names.values import Display, Instance, Literal, Module, UserInstance, Values
from trainshift.python.syntax.chunk_syntax import Scope, Site, Statement, argument, dotted

_COPYING = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted"})


class Members(Struct, eq=False):
    """The possible members of a list.

    The `site` of an appended element is the call of `append`. `complete` is false if a part of it is unknown.
    With `may_be_none` there may be no list at all, and with `single` the expression may be one object instead
    of a list.
    """

    elements: list[Occurrence] = field(default_factory=list)
    complete: bool = True
    may_be_none: bool = False
    single: bool = False


def members(script: Script, node: ast.expr, scope: Scope, statement: Statement | None) -> Members:
    """The possible members of the list `node`, read in `scope` at `statement`."""
    reader = _Reader(script)
    reader.read(Occurrence(node, scope, statement))
    reader.read_additions()
    return reader.found


def callbacks(script: Script, site: Site) -> list[Occurrence]:
    """The callbacks of a `fit`, in order."""
    given = script.names.given(site, 5 if site.name == "fit" else None, "callbacks")
    return [each for at in given for each in members(script, *at[:3]).elements]


class _Reader:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._names = script.names
        self._seen: set[tuple[int, int]] = set()
        self._displays: set[ast.expr] = set()
        self._called: set[str] = set()
        self.found = Members()

    def read(self, at: Occurrence) -> None:
        """Follow a list to the places where its elements are written."""
        node = at.node
        key = (id(node), id(at.scope))
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(node, ast.List | ast.Tuple):
            self._displays.add(node)
            for element in node.elts:
                if isinstance(element, ast.Starred):
                    self.read(at.part(element.value))
                else:
                    self.found.elements.append(at.part(element))
        elif isinstance(node, ast.Constant) and node.value is None:
            self.found.may_be_none = True
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            self.read(at.part(node.left))
            self.read(at.part(node.right))
        elif isinstance(node, ast.ListComp | ast.GeneratorExp):
            self._read_comprehension(node, at)
        elif (first := self._first_of(at)) is not None:
            self.found.elements += first
        else:
            self._read_back(at)

    def _first_of(self, at: Occurrence) -> list[Occurrence] | None:
        """Return the first elements of a literal list under a slice, ``callbacks[:2]``.

        Elements added later come after them.
        """
        node = at.node
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            return None
        cut, step = node.slice, self._names.steps_back(at.part(node.value))
        end = cut.upper.value if isinstance(cut.upper, ast.Constant) else None
        if cut.lower or cut.step or not isinstance(end, int) or step is None or step.unseen:
            return None
        if len(step.sources) != 1 or not isinstance(step.sources[0].node, ast.List | ast.Tuple):
            return None
        if any(self._script.sites_named("insert")):
            return None
        elements = step.sources[0].node.elts[:end]
        is_seen = len(elements) == end and not any(isinstance(each, ast.Starred) for each in elements)
        return [step.sources[0].part(each) for each in elements] if is_seen else None

    def _read_back(self, at: Occurrence) -> None:
        """Follow an expression that is not a literal list: a name, a choice, a call."""
        node, names = at.node, self._names
        self._called.add(dotted(node))
        called = names.full_names(node.func, at.scope, at.statement) if isinstance(node, ast.Call) else set()
        if isinstance(node, ast.Call) and called & _COPYING:
            for copied in node.args[:1]:
                self.read(at.part(copied))
            return
        if isinstance(node, ast.Call) and self._read_yields(node):
            return
        step = names.steps_back(at)
        for source in step.sources if step is not None else ():
            self.read(source)
        if step is None or step.unseen:
            self.found.complete = self.found.complete and step is None
            self._read_values(names.values(node, at.scope, at.statement))

    def _read_yields(self, call: ast.Call) -> bool:
        """Read the values that a generator of the script yields; return whether the call is a generator's."""
        functions = self._names.called_functions(self._script.site_of(call))
        yielded = [(each, *found) for each in functions for found in each.yields]
        for function, node, where in yielded:
            if isinstance(node, ast.YieldFrom):
                self.read(Occurrence(node.value, function, where))
            elif node.value is not None:
                self.found.elements.append(Occurrence(node.value, function, where))
        return bool(yielded)

    def _read_comprehension(self, node: ast.ListComp | ast.GeneratorExp, at: Occurrence) -> None:
        """Read elements that are selected from another list, or created one by one."""
        first = node.generators[0]
        inner = Occurrence(node, at.scope.facts.scope_of[node], at.statement)
        picked = isinstance(node.elt, ast.Name) and dotted(first.target) == node.elt.id
        if picked and len(node.generators) == 1:
            self.read(inner.part(first.iter))
        else:
            self.found.elements.append(inner.part(node.elt))

    def _read_values(self, values: Values) -> None:
        for value in values:
            if isinstance(value, Display):
                self.read(Occurrence(value.node, value.scope, value.statement))
            elif isinstance(value, Instance | UserInstance):
                self.found.single = True
            elif isinstance(value, Literal) and value.value is None:
                self.found.may_be_none = True
            elif not isinstance(value, Module):
                self.found.complete = False

    def read_additions(self) -> None:
        """Read the members that `append` and the like add to the lists found so far."""
        done: set[Site] = set()
        while True:  # A list that is added may itself be extended.
            fresh = [site for site in self._additions() if site not in done]
            if not fresh:
                return
            for site in fresh:
                done.add(site)
                given = argument(site.node, 1 if site.name == "insert" else 0)
                if given is None:
                    self.found.complete = False
                elif site.name == "extend":
                    self.read(Occurrence(given, site.scope, site.statement))
                else:
                    added = self._handed_on(given, site)
                    added = added or [Occurrence(given, site.scope, site.statement, site)]
                    at = 0 if site.name == "insert" and _is_first(site) else len(self.found.elements)
                    self.found.elements[at:at] = added

    def _handed_on(self, given: ast.expr, site: Site) -> list[Occurrence]:
        """The arguments that callers pass to a function whose whole body appends its parameter."""
        function = site.scope.function()
        if not isinstance(given, ast.Name) or function is None or function.statement is None:
            return []
        body = [each for each in function.statement.branches.get("body", ()) if not _is_docstring(each)]
        if body != [site.statement] or given.id not in function.bindings:
            return []
        sites, elsewhere = self._names.callers(function)
        found = [(self._names.argument(caller, function, given.id), caller) for caller in sites]
        if elsewhere or not all(node is not None for node, _ in found):
            return []
        return [Occurrence(node, at.scope, at.statement, at) for node, at in found if node is not None]

    def _additions(self) -> Iterator[Site]:
        for site in self._script.sites_named(*adding_to("list")):
            if isinstance(site.node.func, ast.Attribute) and dotted(site.node.func.value):
                values = self._names.site_values(site.node.func.value, site)
                held = {value.node for value in values if isinstance(value, Display)}
                if held & self._displays or (not held and dotted(site.node.func.value) in self._called):
                    yield site


def _is_first(insert: Site) -> bool:
    """Return whether an `insert` puts its element before all others."""
    place = argument(insert.node, 0)
    return isinstance(place, ast.Constant) and place.value == 0


def _is_docstring(statement: Statement) -> bool:
    return isinstance(statement.node, ast.Expr) and isinstance(statement.node.value, ast.Constant)
