"""The check of TF05 and TF10: that each object is created by one assignment and has one name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.python.names.uses import NameUses
from trainshift.python.names.values import Class, Function, UserInstance
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Statement,
    dotted,
    last_name,
)
from trainshift.python.syntax.fresh_names import fresh_name
from trainshift.restrictions.names.second_names import kept_names
from trainshift.training.objects.creations import Creation, Creations, MadeKind
from trainshift.training.objects.holders import Held, excludes

WHY = {
    MadeKind.DATASET: "so that the ranks can share its batches",
    MadeKind.OPTIMIZER: "so that it can be scaled and wrapped",
    MadeKind.CHECKPOINT: "so that only rank 0 writes it",
    MadeKind.MANAGER: "so that only rank 0 writes with it",
}
_FRESH = {
    MadeKind.DATASET: "dataset",
    MadeKind.OPTIMIZER: "optimizer",
    MadeKind.CHECKPOINT: "checkpoint",
    MadeKind.MANAGER: "manager",
}
_KEPT = (Held.NAME, Held.UNPACKED)
_HARMLESS = (Held.ANNOTATED, Held.ATTRIBUTE, Held.COMPILED, Held.DISCARDED)
_EXTRACTED = (
    Held.ARGUMENT, Held.COMPILED, Held.CONTAINER, Held.RECEIVER, Held.RETURNED, Held.ITERATED, Held.ITEM,
)  # fmt: skip


def check(report: Report, *kinds: MadeKind) -> Iterator[Finding]:
    """Yield a finding for each creation not held by a plain name first, each second creation, each alias."""
    creations = report.program.fact(Creations).of(*kinds)
    rule = _Rule(report.program, report, kinds)
    if not creations:
        return
    yield from rule.created(creations)
    yield from rule.aliased()
    yield from rule.passed()


class _Rule(Struct, frozen=True):
    program: Program
    report: Report
    kinds: tuple[MadeKind, ...]

    # Creations

    def created(self, creations: list[Creation]) -> Iterator[Finding]:
        """The creations that are not ``name = call(...)``, or not the first for their name."""
        earlier: dict[object, list[Creation]] = {}
        names = self._fresh_names(creations)
        for creation in creations:
            before = earlier.setdefault(_place(self.program, creation), []) if creation.holder else []
            first = next((each for each in before if not excludes(each.statement, creation.statement)), None)
            before.append(creation)
            if first is not None:
                yield self._second(creation, first)
            elif creation.held not in _KEPT:
                yield self._misheld(creation, names.get(creation, ""))

    def _second(self, creation: Creation, first: Creation) -> Finding:
        sure = creation.certain and first.certain
        message = (
            f"`{creation.holder}` is given a second {creation.kind.value} here, and the conversion cannot "
            "tell the two apart. Use another name."
        )
        related = Related(
            self._span(first), f"The first {first.kind.value} of `{first.holder}` is created here."
        )
        verdict = Verdict.VIOLATED if sure else Verdict.UNKNOWN
        return self.report.finding(verdict, self._span(creation), message, (related,))

    def _misheld(self, creation: Creation, name: str) -> Finding:
        kind = creation.kind
        made = f"`{self.program.fact(Creations).shown(creation)}`"
        if creation.held in _HARMLESS:
            verdict = Verdict.HARMLESS
            message = f"The {kind.value} {made} is {self._how(creation)}; {_HARMLESS_BECAUSE[creation.held]}."
        elif creation.certain:
            verdict = Verdict.VIOLATED
            message = (
                f"The {kind.value} {made} is {self._how(creation)}. Assign it to one name first, {WHY[kind]}."
            )
        else:
            verdict = Verdict.UNKNOWN
            message = (
                f"{made} may be {_a(kind)}, and is {self._how(creation)}. "
                f"If it is, assign it to one name first, {WHY[kind]}."
            )
        fix = self._introduce(creation, name) if name else self._split(creation)
        return self.report.finding(verdict, self._span(creation), message, self._callee(creation), fix)

    def _how(self, creation: Creation) -> str:
        if creation.call is not None and creation.held is Held.ARGUMENT:
            return f"written inside the call of `{self._called(creation.call)}`"
        if creation.held in (Held.ANNOTATED, Held.ATTRIBUTE):
            return f"{creation.held.value}, `{creation.holder}`"
        return str(creation.held.value)

    def _called(self, call: ast.Call) -> str:
        return dotted(call.func) or last_name(call.func) or "(...)"

    def _callee(self, creation: Creation) -> tuple[Related, ...]:
        """The function of the script whose parameter becomes the object's name."""
        if creation.held is not Held.ARGUMENT or creation.call is None:
            return ()
        return self._definition(self.program.script.site_of(creation.call))

    def _definition(self, site: Site) -> tuple[Related, ...]:
        """The place of the called function's definition: the first of several, by file and place."""
        found = []
        for value in self.program.names.callee(site):
            if isinstance(value, Function | Class) and value.scope.name and value.scope.statement is not None:
                home = self.program.script.home(value.scope)
                span = home.header_span(value.scope.statement)
                message = f"`{value.scope.name}` is defined here."
                found.append((home.path, Related(span, message, self.program.elsewhere(home))))
        return tuple(related for _, related in sorted(found, key=lambda each: (each[0], each[1].span))[:1])

    def _span(self, creation: Creation) -> Span:
        return self.program.script.span(creation.whole, creation.site)

    # A variable for a creation

    def _fresh_names(self, creations: list[Creation]) -> dict[Creation, str]:
        """A fresh name for each creation for which a variable can be introduced."""
        found: dict[Creation, str] = {}
        for creation in creations:
            if _can_be_named(creation):
                found[creation] = self._fresh_name(creation, found)
        return found

    def _fresh_name(self, creation: Creation, others: dict[Creation, str]) -> str:
        """A name that is free where the creation is, and that no other creation of its function gets."""
        uses, scope = self.program.fact(NameUses), creation.site.scope
        names = {name for each, name in others.items() if each.site.scope.function() is scope.function()}
        return fresh_name(
            _FRESH[creation.kind], lambda name: name in names or uses.is_taken(name, scope), first=2
        )

    def _introduce(self, creation: Creation, name: str) -> Change | None:
        statement = creation.statement
        script = self.program.script
        if _acts_before(creation):
            return None
        text = script.text(creation.whole, creation.site)
        if not _is_whole(text):
            text = f"({text})"
        span = self._span(creation)
        edits = (
            self.program.fact(Layout).before(statement, [f"{name} = {text}"]),
            Edit(span.start, span.end, name),
        )
        target = script.statement_span(statement)
        title = f"Introduce the variable `{name}`"
        return self.report.change(title, target, edits, self.program.fact(Layout).isolate(statement))

    def _split(self, creation: Creation) -> Change | None:
        """One assignment for each name of ``a, b = Adam(), SGD()``."""
        statement, script = creation.statement, self.program.script
        node = statement.node
        if creation.held is not Held.CONTAINER or not isinstance(node, ast.Assign) or len(node.targets) != 1:
            return None
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
            return None
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        made = {each.whole for each in self.program.fact(Creations).all if each.statement is statement}
        quiet = all(each in made or _is_quiet(each) for each in value.elts)
        read = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        span = script.statement_span(statement)
        if (
            not len(set(names)) == len(names) == len(target.elts) == len(value.elts)
            or not quiet
            or not read.isdisjoint(names)
            or "#" in script.source.text[span.start : span.end]
        ):
            return None
        texts = [script.text(each, statement) for each in value.elts]
        lines = [
            f"{name} = {text if _is_whole(text) else f'({text})'}"
            for name, text in zip(names, texts, strict=True)
        ]
        edits = (
            *([self.program.fact(Layout).before(statement, lines[:-1])] if len(lines) > 1 else []),
            Edit(span.start, span.end, lines[-1]),
        )
        return self.report.change(
            "Split into one assignment each",
            span,
            edits,
            self.program.fact(Layout).isolate(statement),
        )

    # Aliases

    def aliased(self) -> Iterator[Finding]:
        """The second names, attributes and containers to which named objects are bound."""
        seen: set[ast.AST] = set()
        for each in (each for facts in self.program.script.facts for each in facts.once(kept_names)):
            binding = each.binding
            if each.target is not None:
                yield from self._alias(binding, each.target, each.names[0])
                continue
            for part in each.names:
                kind = self._kind(part, binding.scope, binding.statement)
                if kind is not None and part not in seen:
                    seen.add(part)
                    text = self.program.script.text(part, binding.scope)
                    message = (
                        f"The {kind.value} `{text}` is also {each.how}; the conversion follows it there."
                    )
                    span = self.program.script.span(part, binding.scope)
                    related = self._bound_at(part, binding.scope, binding.statement)
                    yield self.report.harmless(span, message, related)

    def _kind(self, node: ast.expr, scope: Scope, statement: Statement | None) -> MadeKind | None:
        """The kind of a (dotted) name's value, if it is one of the wanted kinds."""
        if not dotted(node):
            return None
        found = self.program.fact(Creations).kinds(node, scope, statement)
        return next((kind for kind in self.kinds if kind in found), None)

    def _alias(self, binding: Binding, target: ast.Name, source: ast.expr) -> Iterator[Finding]:
        kind = self._kind(source, binding.scope, binding.statement)
        if kind is None:
            return
        script = self.program.script
        text = script.text(source, binding.scope)
        sure = MadeKind.UNSEEN not in self.program.fact(Creations).kinds(
            source, binding.scope, binding.statement
        )
        what = f"the {kind.value} `{text}`" if sure else f"`{text}`, which may be {_a(kind)}"
        message = f"`{target.id}` is a second name for {what}. Use one name, {WHY[kind]}."
        yield self.report.finding(
            Verdict.VIOLATED if sure else Verdict.UNKNOWN,
            script.span(target, binding.scope),
            message,
            self._bound_at(source, binding.scope, binding.statement),
            self._inline(binding, target, source),
        )

    def _bound_at(self, node: ast.expr, scope: Scope, statement: Statement | None) -> tuple[Related, ...]:
        """The places where a (dotted) name gets its value."""
        script = self.program.script
        if isinstance(node, ast.Name):
            _, bindings = self.program.names.lookup(node.id, scope, statement)
        else:
            assert isinstance(node, ast.Attribute)
            name = dotted(node.value)
            found = script.attribute_bindings(node.attr)
            bindings = [each.binding for each in found if dotted(each.base) == name]
        for binding in bindings:
            home = binding.statement or (binding.inner.statement if binding.inner is not None else None)
            if home is not None and script.home(home.scope) is script:
                return (Related(script.header_span(home), f"`{dotted(node)}` is bound here."),)
        return ()

    def _inline(self, binding: Binding, target: ast.Name, source: ast.expr) -> Change | None:
        """Use the first name wherever the second is read, and drop the second."""
        script, names, statement = self.program.script, self.program.names, binding.statement
        if (
            statement is None
            or not isinstance(source, ast.Name)
            or not isinstance(statement.node, ast.Assign)
        ):
            return None
        scope = binding.scope
        if statement.node.targets != [target] or statement.node.value is not source or statement.is_nested:
            return None
        if scope.kind == "class" or not self.program.fact(NameUses).can_be_renamed(target.id):
            return None
        if any(source.id in each.declared_global | each.declared_nonlocal for each in script.scopes):
            return None
        home, bound = names.lookup(source.id, scope, None)
        own, again = names.lookup(target.id, scope, None)
        if len(bound) != 1 or len(again) != 1 or bound[0].kind not in ("value", "parameter"):
            return None
        if own is None and script.may_be_imported:
            return None
        edits: list[Edit] = []
        for reading in self.program.fact(NameUses).of(target.id):
            reader, _ = names.lookup(target.id, reading.scope, None)
            if reader is not own:
                continue
            if reading.string or names.lookup(source.id, reading.scope, None) != (home, bound):
                return None
            span = script.span(reading.node, reading.statement)
            edits.append(Edit(span.start, span.end, source.id))
        if own is None and not edits:
            return None  # A module-level name that nothing here reads is meant for other modules.
        edits += self.program.fact(Layout).remove(statement, len(script.siblings(statement)[0]) == 1)
        title = f"Use `{source.id}` for `{target.id}`"
        return self.report.change(title, script.statement_span(statement), tuple(edits))

    # Arguments

    def passed(self) -> Iterator[Finding]:
        """The objects with a name that are passed to functions of the script."""
        script = self.program.script
        named = {scope.name for scope in script.scopes} | {name for name, _ in script.code.bound_values}
        for site, given in script.code.given.items():
            if isinstance(site.node.func, ast.Attribute) and (
                not script.may_run(site.node) or (site.name not in named and not script.workspace)
            ):
                continue  # A method or module member of this name is not the script's own.
            if not self._is_own(site) or site.node in self.program.fact(Creations).by_call:
                continue
            for part in given:
                kind = self._kind(part, site.scope, site.statement)
                if kind is None or kind in self.program.fact(Creations).kinds(
                    site.node, site.scope, site.statement
                ):
                    continue
                text = script.text(part, site)
                message = (
                    f"The {kind.value} `{text}` has a second name in `{self._called(site.node)}`, its "
                    "parameter; the conversion follows it there."
                )
                span = script.span(part, site)
                yield self.report.harmless(span, message, self._definition(site))

    def _is_own(self, site: Site) -> bool:
        """Return whether the call runs a function of the workspace, which gives its argument a second
        name.
        """
        callee = self.program.names.callee(site)
        return any(isinstance(value, Function | Class) for value in callee) or (
            any(isinstance(value, UserInstance) for value in callee)
            and bool(self.program.names.called_functions(site))
        )


_HARMLESS_BECAUSE = {
    Held.ANNOTATED: "the conversion follows the name",
    Held.ATTRIBUTE: "the conversion follows the attribute",
    Held.COMPILED: "the conversion changes it there",
    Held.DISCARDED: "nothing uses it",
}


def _place(program: Program, creation: Creation) -> object:
    """A key for a name that holds a creation: the name and its scope or class."""
    scope = creation.site.scope
    base, _, attribute = creation.holder.rpartition(".")
    if base:
        function = scope.function()
        if function is not None and program.names.is_self(ast.Name(base, ast.Load()), scope):
            return (function.owner(), attribute)
        return (function, creation.holder)
    if creation.statement.scope.kind == "class":
        return (creation.statement.scope, creation.holder)
    home, _ = program.names.lookup(creation.holder, scope, None)
    return (home, creation.holder)


def _a(kind: MadeKind) -> str:
    return f"an {kind.value}" if kind is MadeKind.OPTIMIZER else f"a {kind.value}"


def _is_whole(text: str) -> bool:
    """Return whether the text is an expression without parentheses around it."""
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


# Expressions evaluated before a creation


def _can_be_named(creation: Creation) -> bool:
    """Return whether the creation is evaluated once, in place, in a statement before which a line can be
    added.
    """
    statement = creation.statement
    node = statement.node
    if creation.held not in _EXTRACTED or creation.site.deferred or creation.site.in_fstring:
        return False
    if statement.scope.kind == "class" or creation.site.scope is not statement.scope:
        return False
    root = node.iter if isinstance(node, ast.For | ast.AsyncFor) else getattr(node, "value", None)
    if not isinstance(node, _PLAIN) or not isinstance(root, ast.expr) or not _under(creation, root):
        return False
    if isinstance(node, ast.Assign) and isinstance(root, ast.Tuple | ast.List):
        # Unpacked at once, where separate assignments are equivalent.
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            return False
    moved = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return not any(isinstance(part, moved) for part in ast.walk(creation.whole))


_PLAIN = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.For, ast.AsyncFor)


def _under(creation: Creation, root: ast.expr) -> bool:
    return creation.whole is root or root in creation.path


def _acts_before(creation: Creation) -> bool:
    """Return whether code with possible effects is evaluated before the creation in its statement, or
    decides on it.
    """
    child: ast.AST = creation.whole
    for parent in reversed(creation.path):
        if isinstance(parent, ast.stmt):
            return False
        if isinstance(parent, ast.IfExp | ast.BoolOp | ast.Compare | ast.NamedExpr):
            return True
        for part in ast.iter_child_nodes(parent):
            if part is child:
                break
            if not _is_quiet(part):
                return True
        if isinstance(parent, ast.Dict) and not all(_is_quiet(key) for key in parent.keys if key is not None):
            return True
        child = parent
    return False


_QUIET = (
    ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred, ast.keyword,
    ast.expr_context, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Subscript, ast.Slice, ast.Lambda,
)  # fmt: skip


def _is_quiet(node: ast.AST) -> bool:
    """Return whether evaluating `node` only reads."""
    if isinstance(node, ast.Lambda):
        return not node.args.defaults and not any(node.args.kw_defaults)
    return isinstance(node, _QUIET) and all(_is_quiet(child) for child in ast.iter_child_nodes(node))


# How names are bound and read
