"""Aliases: the imports of TensorFlow in a script, and the other names of the module and its members.

An alias is a name, an attribute or an item that is bound to TensorFlow or one of its members other than by an
import.  `Aliases.inlined` removes one from the script, if every use of it is known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.libraries.common import IMPORTERS, ROOTS, is_common
from trainshift.python.flow.traversal import closure
from trainshift.python.lazy import cached_property
from trainshift.python.names.uses import NameUses
from trainshift.python.names.values import Function, Library
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Statement,
    argument,
    arguments,
    dotted,
    imported_name,
    last_name,
    root_name,
)
from trainshift.restrictions.names.spellings import COMPUTING, Spelling, leaves, parts, spelling_of, words_of

# Names that count as the module itself in an import.
MODULES = frozenset({"tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"})
_LOOKING_UP_NAMES = frozenset({"globals", "locals", "exec", "eval"})
_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


class Alias(Struct, frozen=True, eq=False):
    """A binding, other than an import, to TensorFlow or to members of it.

    `names` are the possible full names of `value`.  If it is `dynamic`, the script computes a name at run
    time, and `names` are its possible parents (empty if it may be any module).  With `held`, a literal
    container holds the member; with `passed`, it is a parameter's argument.
    """

    binding: Binding
    value: ast.expr
    names: frozenset[str]
    is_module: bool = False
    dynamic: bool = False
    held: bool = False
    passed: bool = False


class Target(Struct, frozen=True):
    """The text of a binding's target, and its span."""

    text: str
    span: Span


class Aliases:
    """The names of TensorFlow in one script."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script
        self._readings = program.fact(NameUses)
        self._names = program.names
        self._layout = program.fact(Layout)

    # Names bound by imports

    def is_module_import(self, binding: Binding) -> bool:
        """Return whether the binding is an import of TensorFlow itself."""
        return binding.kind == "import" and binding.full_name in MODULES

    @cached_property
    def module_names(self) -> dict[str, list[Binding]]:
        """The names that imports give to TensorFlow, at any depth, and those imports."""
        found: dict[str, list[Binding]] = {}
        for binding in self._script.imports:
            if self.is_module_import(binding):
                found.setdefault(imported_name(binding), []).append(binding)
        return found

    @cached_property
    def scopes(self) -> list[Scope]:
        """Every scope, including those of comprehensions."""
        return [
            scope
            for facts in self._script.facts
            for scope in (facts.module, *dict.fromkeys(facts.scope_of.values()))
        ]

    # Aliases

    @cached_property
    def aliases(self) -> list[Alias]:
        """Every binding to TensorFlow or to a member of it, except parameters."""
        found: list[Alias] = []
        items: list[Binding] = []
        for binding in self._candidates():
            alias = self._alias(binding)
            if alias is not None:
                found.append(alias)
            elif isinstance(binding.value, ast.Subscript) and not binding.path:
                items.append(binding)
        # An item is read only if its container is known to hold such an object.
        holding = {
            last_name(each.binding.target)
            for each in found
            if each.held and isinstance(each.binding.target, ast.expr)
        }
        for binding in items:
            value = binding.value
            if isinstance(value, ast.Subscript) and last_name(value.value) in holding:
                names = self._library(value, binding.scope, binding.statement)
                if names:
                    found.append(Alias(binding, value, names, "tensorflow" in names))
        return found

    @cached_property
    def _carriers(self) -> set[str]:
        """Every name that may lead to TensorFlow, judged by spelling: only these need to be resolved."""
        found = {
            imported_name(binding)
            for binding in self._script.imports
            if not is_common(binding.full_name) or binding.full_name.partition(".")[0] in ROOTS
        }
        following: dict[str, set[str]] = {}
        taking: dict[str, set[str]] = {}
        for reading in self._read:
            for name, words in reading.following:
                for word in words:
                    following.setdefault(word, set()).add(name)
            for called, parameters in reading.parameters:
                taking.setdefault(called, set()).update(parameters)
        for called, taken in taking.items():
            for site in self._script.sites_named(called):
                for word in words_of(*arguments(site.node)):
                    following.setdefault(word, set()).update(taken)
        return closure(found, following)

    @cached_property
    def defaults(self) -> list[Alias]:
        """The parameters whose default is a member of TensorFlow."""
        found = []
        for binding in (each for reading in self._read for each in reading.defaults):
            value = binding.value
            if isinstance(value, ast.Name | ast.Attribute):
                names = self._library(value, binding.scope, None)
                if names and not self.is_module(value, binding.scope, None):
                    found.append(Alias(binding, value, names))
        return found

    @cached_property
    def _read(self) -> list[Spelling]:
        return [facts.once(spelling_of) for facts in self._script.facts]

    def _candidates(self) -> Iterator[Binding]:
        """The possible aliases, judged by spelling: first names, then attributes and items."""
        carriers = self._carriers
        for part in ("named", "held"):
            for reading in self._read:
                for binding, words in getattr(reading, part):
                    if words is None or not (carriers.isdisjoint(words) or self._is_made(binding)):
                        yield binding

    def _is_made(self, binding: Binding) -> bool:
        """Return whether a binding holds the result of a library call, rather than a member of the
        library.
        """
        value = binding.value
        return binding.kind == "value" and isinstance(value, ast.Call) and not self._script.may_run(value)

    def _alias(self, binding: Binding) -> Alias | None:
        if binding.value is None or binding.kind not in ("value", "element"):
            return None
        if binding.kind == "element":
            return self._element(binding)
        value = binding.taken
        if value is None:
            return None
        found = [
            each
            for leaf in leaves(value)
            for each in self._of_leaf(binding, leaf, binding.scope, binding.statement)
        ]
        # A certain one first, then the module: one binding is one alias.
        found.sort(key=lambda each: (each.dynamic, not each.is_module))
        return found[0] if found else None

    def _of_leaf(
        self, binding: Binding, leaf: ast.expr, scope: Scope, statement: Statement | None
    ) -> Iterator[Alias]:
        if isinstance(leaf, _DISPLAYS):
            for part in parts(leaf):
                if isinstance(part, ast.Name | ast.Attribute) and not words_of(part).isdisjoint(
                    self._carriers
                ):
                    names = self._library(part, scope, statement)
                    if names:
                        module = self.is_module(part, scope, statement)
                        yield Alias(binding, part, names, module, held=True)
            return
        computed = self._computed(leaf, scope, statement)
        if computed is not None:
            names, dynamic = computed
            yield Alias(binding, leaf, names, not dynamic and bool(names & MODULES), dynamic)
            return
        if isinstance(leaf, ast.Call) and not self._script.may_run(leaf):
            return
        if words_of(leaf).isdisjoint(self._carriers):
            return
        if isinstance(leaf, ast.Call) and not any(
            isinstance(value, Function) for value in self._names.values(leaf.func, scope, statement)
        ):
            return
        if isinstance(leaf, ast.Name | ast.Attribute | ast.Call):
            names = self._library(leaf, scope, statement)
            if names:
                passed = self._from_parameter(leaf, scope, statement)
                yield Alias(binding, leaf, names, self.is_module(leaf, scope, statement), passed=passed)

    def _element(self, binding: Binding) -> Alias | None:
        """The alias that a loop binds to the elements of a literal container."""
        if binding.value is None or words_of(binding.value).isdisjoint(self._carriers):
            return None
        names = frozenset(
            value.name
            for value in self._names.bound(binding)
            if isinstance(value, Library) and value.name.partition(".")[0] in ROOTS
        )
        if not names or self._from_parameter(binding.value, binding.scope, binding.statement):
            return None
        return Alias(binding, binding.value, names, "tensorflow" in names)

    def _library(self, node: ast.expr, scope: Scope, statement: Statement | None) -> frozenset[str]:
        return frozenset(
            value.name
            for value in self._names.values(node, scope, statement)
            if isinstance(value, Library) and value.name.partition(".")[0] in ROOTS
        )

    def is_module(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        """Return whether `node` may be TensorFlow itself; a literal ``tf.compat.v1`` is a member."""
        names = self._library(node, scope, statement)
        if "tensorflow" in names:
            return True
        if not isinstance(node, ast.Name) or names.isdisjoint(MODULES):
            return False
        _, bindings = self._names.lookup(node.id, scope, statement)
        return any(self.is_module_import(binding) for binding in bindings)

    def _from_parameter(self, node: ast.expr, scope: Scope, statement: Statement | None) -> bool:
        root = root_name(node)
        if root is None:
            return False
        _, bindings = self._names.lookup(root.id, scope, statement)
        return any(binding.kind == "parameter" for binding in bindings)

    # Modules and members whose names are computed

    def _computed(
        self, node: ast.expr, scope: Scope, statement: Statement | None
    ) -> tuple[frozenset[str], bool] | None:
        """The modules behind ``import_module(...)``, ``getattr(...)`` and similar calls, and whether
        there may be others.
        """
        if isinstance(node, ast.Call):
            if last_name(node.func) not in COMPUTING:
                return None
            called = self._names.full_names(node.func, scope, statement)
            if not called.isdisjoint(IMPORTERS):
                return self._imported(node, scope, statement)
            if "builtins.getattr" in called and len(node.args) >= 2:
                return self._got(node.args[0], node.args[1], scope, statement)
        if isinstance(node, ast.Subscript):
            base = node.value
            if isinstance(base, ast.Call) and last_name(base.func) == "vars" and len(base.args) == 1:
                return self._got(base.args[0], node.slice, scope, statement)
            if isinstance(base, ast.Attribute) and base.attr == "__dict__":
                return self._got(base.value, node.slice, scope, statement)
            if "sys.modules" in self._names.full_names(base, scope, statement):
                text, whole = self._text(node.slice, scope, statement)
                if whole and text.partition(".")[0] in ROOTS:
                    return frozenset({text}), False
        return None

    def _imported(
        self, node: ast.Call, scope: Scope, statement: Statement | None
    ) -> tuple[frozenset[str], bool] | None:
        given = argument(node, 0, "name")
        if given is None:
            return None
        text, whole = self._text(given, scope, statement)
        root, _, below = text.partition(".")
        if whole:
            if root not in ROOTS:
                return None
            top_only = last_name(node.func) == "__import__" and argument(node, 3, "fromlist") is None
            return frozenset({root if top_only else text}), False
        if below or text.endswith("."):
            return (frozenset({text.rpartition(".")[0]}), True) if root in ROOTS else None
        return (frozenset(), True) if any(each.startswith(root) for each in ROOTS) else None

    def _got(
        self, owner: ast.expr, name: ast.expr, scope: Scope, statement: Statement | None
    ) -> tuple[frozenset[str], bool] | None:
        names = self._library(owner, scope, statement)
        if not names:
            return None
        text, whole = self._text(name, scope, statement)
        return (frozenset(f"{each}.{text}" for each in names), False) if whole else (names, True)

    def _text(self, node: ast.expr, scope: Scope, statement: Statement | None) -> tuple[str, bool]:
        """The known beginning of a string, and whether it is complete."""
        if isinstance(node, ast.Constant):
            return (node.value, True) if isinstance(node.value, str) else ("", False)
        if isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                return first.value, len(node.values) == 1
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            start, whole = self._text(node.left, scope, statement)
            if not whole:
                return start, False
            rest, whole = self._text(node.right, scope, statement)
            return start + rest, whole
        elif isinstance(node, ast.Name):
            _, bindings = self._names.lookup(node.id, scope, statement)
            if len(bindings) == 1 and bindings[0].kind == "value" and not bindings[0].path:
                value = bindings[0].value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return value.value, True
        return "", False

    # Reported findings

    def target(self, binding: Binding) -> Target:
        """The target of a binding, as written in the script: ``self.tf``, a parameter, a function's name."""
        node, within = binding.target, binding.statement or binding.scope
        if node is None:
            assert binding.statement is not None
            span = self._script.statement_span(binding.statement)
            return Target("", span)
        span = self._script.span(node, within)
        if isinstance(node, ast.arg):
            return Target(node.arg, Span(span.start, span.start + len(node.arg)))
        name = ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            name = node.name or ""
        elif not isinstance(node, ast.expr | ast.alias):  # a pattern of `match`
            name = getattr(node, "name", "") or getattr(node, "rest", "") or ""
        text = self._script.source.text
        if not name:
            return Target(text[span.start : span.end], span)
        found = re.compile(rf"\b{re.escape(name)}\b").search(text, span.start, span.end)
        start = found.start() if found else span.start
        return Target(name, Span(start, start + len(name)))

    def shown(self, alias: Alias) -> str:
        """The value of an alias, in the script's words if it is literal."""
        if dotted(alias.value) and alias.binding.kind in ("value", "parameter"):
            return self._script.text(alias.value, alias.binding.statement or alias.binding.scope)
        return min(alias.names, default="a module")

    # Removing an alias

    def inlined(self, alias: Alias) -> tuple[Edit, ...] | None:
        """Edits that remove the alias and write the original name wherever it is used.

        None if that could change the script's behaviour, or if not every use of it is known.
        """
        binding, statement = alias.binding, alias.binding.statement
        name = _plain_target(binding) if not self._program.is_excerpt else ""
        if not name or statement is None or alias.dynamic or alias.held or not dotted(alias.value):
            return None
        if alias.value is not binding.value:  # one of several candidates
            return None
        owner = None if binding.scope.kind == "module" else binding.scope
        above = statement.parent
        if (owner is None) != (above is None) or (owner is not None and owner.kind != "function"):
            return None
        if above is not None and not isinstance(above.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if owner is None and self._script.may_be_imported:
            return None
        root = root_name(alias.value)
        if self._is_replaced(alias.value):
            return None
        if root is None or root.id == name or not self._is_settled(name, owner, root.id, binding):
            return None
        text = self._script.text(alias.value, statement)
        if not dotted_text(text):
            return None
        home, _ = self._names.lookup(root.id, binding.scope, statement)
        if not self._library(root, binding.scope, statement):
            return None
        edits = list(self._layout.remove(statement, len(self._script.siblings(statement)[0]) == 1))
        used = False
        for use in self._readings.of(name):
            found, _ = self._names.lookup(name, use.scope, use.statement)
            if found is not owner:
                continue
            if use.string or self._names.lookup(root.id, use.scope, use.statement)[0] is not home:
                return None
            span = self._script.span(use.node, use.statement)
            edits.append(Edit(span.start, span.end, text))
            used = True
        # A name that its module does not use is meant for importers.
        return tuple(edits) if used else None

    def _is_settled(self, name: str, owner: Scope | None, root: str, binding: Binding) -> bool:
        """Return whether `name` and `root` are bound once, and the name is only ever read."""
        script = self._script
        if any(
            name in scope.declared_global or name in scope.declared_nonlocal or root in scope.declared_global
            for scope in script.scopes
        ):
            return False
        bindings = script.module_bindings if owner is None else owner.bindings
        if bindings.get(name) != [binding] or script.code.star_imports:
            return False
        home, _ = self._names.lookup(root, binding.scope, binding.statement)
        roots = (script.module_bindings if home is None else home.bindings).get(root, [])
        same = {each.full_name if each.kind == "import" else id(each) for each in roots}
        if len(same) != 1:
            return False
        if any(script.sites_named(*_LOOKING_UP_NAMES)):
            return False
        if any(not site.node.args for site in script.sites_named("vars")):
            return False
        return not self._is_exported(name) and name not in self._readings.quoted_words

    def _is_replaced(self, member: ast.expr) -> bool:
        """Return whether the script sets an attribute of this name on any object, so that earlier reads
        may differ.
        """
        return next(self._script.attribute_bindings(last_name(member)), None) is not None

    def _is_exported(self, name: str) -> bool:
        values = [binding.value for binding in self._script.module_bindings.get("__all__", [])]
        values += [item.binding.value for item in self._script.item_bindings("__all__")]
        return any(
            isinstance(part, ast.Constant) and part.value == name
            for value in values
            if value is not None
            for part in ast.walk(value)
        )


def catches_import_error(node: ast.Try) -> bool:
    """Return whether some handler of a `try` runs where an import fails."""
    for handler in node.handlers:
        caught = handler.type
        kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
        if any(kind is None or last_name(kind) in _IMPORT_ERRORS for kind in kinds):
            return True
    return False


def dotted_text(text: str) -> bool:
    """Return whether `text` is a dotted name on one line."""
    return re.fullmatch(r"\w+(\.\w+)*", text) is not None


def _plain_target(binding: Binding) -> str:
    """The name of ``name = value``, annotated or not; empty for any other binding."""
    node = binding.statement.node if binding.statement is not None else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and node.value is binding.value:
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is binding.value:
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) and target is binding.target else ""
