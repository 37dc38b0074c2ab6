"""Removal: the replacement of every use of a strategy when each rank is one replica."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct, field

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.libraries.entries import prints
from trainshift.python.names.script import Script
from trainshift.python.names.values import Instance, Library, Value
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Edit
from trainshift.python.source.source import Span, one_line
from trainshift.python.syntax.chunk_syntax import (
    Binding,
    Scope,
    Site,
    Statement,
    arguments,
    dotted,
    imported_name,
)
from trainshift.python.syntax.precedence import does_more
from trainshift.rewriting.edits.entries import without
from trainshift.rewriting.strategies.calls import METHODS, NotUnderstood
from trainshift.rewriting.strategies.scopes import left_scopes
from trainshift.rewriting.strategies.second_names import read_by_own_name
from trainshift.rewriting.strategies.uses import REPLICATING, Strategies, Use, parameters

_CONFIGS = ("tensorflow.estimator.RunConfig", "tensorflow.compat.v1.estimator.RunConfig")
_CONFIGURED = ("train_distribute", "eval_distribute")
_SET = "tensorflow.distribute.experimental_set_strategy"
_SIZE = "num_replicas_in_sync"
_REFUSED = "Trainshift cannot remove this strategy: {reason} ({code}); remove the strategy first"
UNSUPPORTED = "{name} already distributes this script; remove the strategy first"
_ONE = (
    "each rank is one replica: it reads the batch of one replica, "
    "and all ranks together read the global batch"
)
_BATCH = "the batch size is now that of one rank; before, it was that of all replicas together"
_UNSEEN = "a strategy"
_COMMENT = "a comment is in the way"


class Left(Struct):
    """The rewrite of one statement: a title, the decisions, and the code of the strategy that it shows.

    `shown` are the places, with the member of Horovod that is shown there instead.
    """

    statement: Statement
    title: str
    decisions: list[str] = field(default_factory=list)
    shown: list[tuple[Span, str]] = field(default_factory=list)


class Removal:
    """The removal of the strategies that some calls create, all of them or none.

    `edits` are in text order, `left` are the rewritten statements; if a use is not understood, there is a
    `problem` instead: the place, and the reason.
    """

    def __init__(self, program: Program, makers: Sequence[Site]) -> None:
        self._program = program
        self._script = program.script
        self._layout = program.fact(Layout)
        self._strategies = program.fact(Strategies)
        self._text = program.script.source.text
        self._makers = makers
        self._uses = self._strategies.uses(makers)
        self._edits: dict[Edit, None] = {}
        self._gone: list[Statement] = []
        self._entries: dict[ast.AST, list[Span]] = {}
        self._unbound: set[tuple[Statement, str]] = set()
        self._entered: dict[Statement, list[ast.expr]] = {}
        self._dropped: dict[tuple[Scope, str], list[Site]] = {}
        self._left: dict[Statement, Left] = {}
        self._decided: set[str] = set()
        self._is_configured = False
        self.edits: tuple[Edit, ...] = ()
        self.problem = self._remove_all() if makers else None
        span_of = self._script.statement_span
        self.left = sorted(self._left.values(), key=lambda each: span_of(each.statement).start)

    def _remove_all(self) -> tuple[Span, str] | None:
        for site in self._makers:
            name = self._unsupported(site)
            if name:
                return self._script.span(site.node, site), UNSUPPORTED.format(name=name)
            if not any(each.node is site.node for use in self._uses for each in use.made):
                return self._script.span(site.node, site), UNSUPPORTED.format(name=_UNSEEN)
        use = self._uses[0]
        try:
            for use in self._uses:
                self._leave(use)
            use = self._uses[0]
            self._drop_parameters()
            self._know_all_readings()
            self._say_whose_batch()
            self.edits = self._merged()
        except NotUnderstood as problem:
            return self._told(use, problem)
        return None

    def _told(self, use: Use, problem: NotUnderstood) -> tuple[Span, str]:
        """The place of a use that is not understood, with the reason."""
        node, statement = _shown(use), use.statement
        code = one_line(self._script.text(node, statement))
        code = code if len(code) < 50 else f"{code[:46]}..."
        return self._script.span(node, statement), _REFUSED.format(reason=problem, code=code)

    def _unsupported(self, site: Site) -> str:
        """The name of a strategy that cannot be removed; empty for one that can."""
        name = self._strategies.name_of(site)
        if name.rpartition(".")[2] not in REPLICATING:
            return one_line(self._script.text(site.node.func, site))
        given = [part for each in arguments(site.node) for part in ast.walk(each)]
        for part in given:
            if isinstance(part, ast.Name | ast.Attribute | ast.Call):
                values = self._program.names.site_values(part, site)
                if any("cluster_resolver" in _name_of(value) for value in values):
                    return "a strategy with a cluster resolver"
        return ""

    # One use

    def _leave(self, use: Use) -> None:
        if not use.sure:
            raise NotUnderstood("it may be something else too")
        parent, node = use.parent, use.statement.node
        if (name := _class_name(use)) is not None and self._is_shown(use):
            self._note(use, "Name Horovod").shown.append((self._span_of(use, name), "__name__"))
        elif isinstance(parent, ast.Attribute):
            self._leave_member(use, parent)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and parent is node and use.node is node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not all(isinstance(each, ast.Name | ast.Attribute) for each in targets):
                raise NotUnderstood("it is unpacked")
            self._remove(use, "Remove the strategy")
        elif isinstance(parent, ast.Expr):
            self._remove(use, "Remove the strategy")
        elif isinstance(parent, ast.Return):
            self._return_nothing(use)
        else:
            self._leave_argument(use)

    def _note(self, use: Use, title: str, decision: str = "") -> Left:
        left = self._left.setdefault(use.statement, Left(use.statement, title))
        if decision and decision not in self._decided:
            self._decided.add(decision)
            left.decisions.append(decision)
        return left

    def _know_all_readings(self) -> None:
        """Raise if a name that held a strategy is read, or deleted, in an unknown way."""
        seen = {use.node for use in self._uses}
        names = self._program.names
        for statement, name in self._unbound:
            holder, _ = names.lookup(name, statement.scope, None)
            home = self._script.home(statement.scope)
            for each in self._strategies.readings.get(name, ()):
                where, bound = names.lookup(name, each.scope, None)
                alike = where is holder and self._script.home(each.scope) is home
                if each.node not in seen and alike and any(one.statement is statement for one in bound):
                    raise NotUnderstood(f"{name} may be something else too")
            _, bound = names.lookup(name, statement.scope, None)
            if any(one.kind == "deleted" for one in bound):
                raise NotUnderstood(f"{name} is deleted")

    def _say_whose_batch(self) -> None:
        """Record, if no batch is computed from the number of replicas, that it was the global one."""
        several = [
            site for site in self._makers if not self._strategies.name_of(site).endswith(".OneDeviceStrategy")
        ]
        if several and _ONE not in self._decided and not self._is_configured:
            self._note(self._uses[0], "Remove the strategy", _BATCH)

    def _remove(self, use: Use, title: str) -> None:
        """Remove a statement that only creates or names a strategy; a call of the user's own function
        stays.
        """
        self._note(use, title)
        node = use.statement.node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        self._unbound.update((use.statement, each.id) for each in targets if isinstance(each, ast.Name))
        if self._is_own_call(use.node):
            start = self._script.span(use.node, use.statement).start
            self._replace(Span(self._script.statement_span(use.statement).start, start), "")
        else:
            self._know_pure(use)
            self._gone.append(use.statement)

    def _is_own_call(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and node not in self._strategies.calls

    def _know_pure(self, use: Use) -> None:
        """Raise if creating the strategy does anything else."""
        own = (
            site
            for site in self._script.sites
            if site.statement is use.statement and self._program.names.called_functions(site)
        )
        if does_more(use.node) or next(own, None) is not None:
            raise NotUnderstood("making it runs code of your own")

    def _return_nothing(self, use: Use) -> None:
        if self._is_own_call(use.node):
            raise NotUnderstood("it is returned from another function")
        self._know_pure(use)
        self._note(use, "Return no strategy")
        self._replace(self._script.statement_span(use.statement), "return")

    def _leave_member(self, use: Use, member: ast.Attribute) -> None:
        site = self._site(use.around[1], member) if len(use.around) > 1 else None
        if member.attr == _SIZE:
            self._count(use, member)
        elif site is not None and member.attr == "scope":
            self._enter(use, site)
        elif site is not None and member.attr in METHODS:
            if site.in_fstring:
                raise NotUnderstood("it is in an f-string")
            method = METHODS[member.attr]
            if method.is_run:
                self._know_no_values(use)
            if member.attr == "experimental_distribute_dataset":
                renamed = read_by_own_name(self._program, site)
                if renamed is not None:
                    self._edits.update(dict.fromkeys(renamed))
                    self._gone.append(site.statement)
                    self._note(use, method.title)
                    return
            self._edits.update(dict.fromkeys(method.edits(self._program, site, use.around[2])))
            self._note(use, method.title, method.decision)
        else:
            raise NotUnderstood(f"Horovod has no counterpart of {member.attr}")

    def _know_no_values(self, use: Use) -> None:
        """Raise if the values of all replicas are extracted from the result of a run."""
        node, above = use.statement.node, use.around[2]
        targets = node.targets if isinstance(node, ast.Assign) and above is node else []
        names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        read = [each.parent for name in names for each in self._strategies.readings.get(name, ())]
        if any(isinstance(each, ast.Attribute) and each.attr == "values" for each in (above, *read)):
            raise NotUnderstood("the values of its replicas are taken one by one")

    def _site(self, node: ast.AST, member: ast.Attribute) -> Site | None:
        """The call of a method."""
        called = isinstance(node, ast.Call) and node.func is member
        return self._script.site_of(node) if called and isinstance(node, ast.Call) else None

    # The number of replicas

    def _count(self, use: Use, member: ast.Attribute) -> None:
        """Replace the number of replicas by 1; where the number is shown, by the number of ranks."""
        if self._is_shown(use):
            span = self._span_of(use, member)
            self._note(use, "Use the number of ranks").shown.append((span, "size()"))
            return
        product = use.around[1] if len(use.around) > 1 else None
        if isinstance(product, ast.AugAssign) and isinstance(product.op, ast.Mult | ast.FloorDiv):
            self._note(use, "Count one replica for each rank", _ONE)
            self._gone.append(use.statement)
            return
        layout, within = self._layout, use.statement
        span = layout.enclosed(member, within)
        self._note(use, "Count one replica for each rank", _ONE)
        if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult | ast.FloorDiv):
            if product.right is member:
                self._replace(Span(layout.enclosed(product.left, within).end, span.end), "")
                return
            if isinstance(product.op, ast.Mult):
                self._replace(Span(span.start, layout.enclosed(product.right, within).start), "")
                return
        self._replace(self._script.span(member, within), "1")

    def _is_shown(self, use: Use) -> bool:
        """Return whether a value is only printed, logged or formatted."""
        for each in use.around:
            if isinstance(each, ast.JoinedStr):
                return True
            if not isinstance(each, ast.Call):
                continue
            site = self._script.site_of(each)
            if site.name == "format" and isinstance(each.func, ast.Attribute):
                if isinstance(each.func.value, ast.Constant):
                    return True
            for value in self._program.names.callee(site):
                if isinstance(value, Library) and prints(value.name):
                    return True
        return False

    def _span_of(self, use: Use, member: ast.Attribute) -> Span:
        """The span of a member; in an f-string, positions are unreliable before Python 3.12."""
        span, code = self._script.span(member, use.statement), ast.unparse(member)
        if self._text[span.start : span.end] == code:
            return span
        text = next((each for each in use.around[::-1] if isinstance(each, ast.JoinedStr)), None)
        if text is None:
            return span
        whole = self._script.span(text, use.statement)
        if self._text.count(code, whole.start, whole.end) != 1:
            raise NotUnderstood("it is in an f-string more than once")
        at = self._text.index(code, whole.start, whole.end)
        return Span(at, at + len(code))

    # Blocks

    def _enter(self, use: Use, site: Site) -> None:
        """Turn ``with strategy.scope():`` into its body."""
        item = use.around[2]
        if not isinstance(item, ast.withitem) or not isinstance(use.statement.node, ast.With):
            raise NotUnderstood("its scope is not entered by with")
        if item.optional_vars is not None:
            raise NotUnderstood("its scope gets a name")
        self._note(use, "Take the body out of the strategy's scope")
        self._entered.setdefault(use.statement, []).append(site.node)

    # Arguments, returned values, second names

    def _leave_argument(self, use: Use) -> None:
        call = next((each for each in use.around[:2] if isinstance(each, ast.Call)), None)
        site = self._script.site_of(call) if call is not None else None
        if site is None or (call is use.parent and use.node not in site.node.args):
            raise NotUnderstood("it is used in another way")
        if self._program.names.calls(site, _SET) and isinstance(site.statement.node, ast.Expr):
            self._note(use, "Remove the strategy")
            self._gone.append(site.statement)
            return
        if isinstance(use.parent, ast.keyword) and use.parent.arg in _CONFIGURED:
            if self._program.names.calls(site, *_CONFIGS):
                self._note(use, "Configure no strategy")
                self._is_configured = True  # An input function returns one replica's batch anyway.
                self._drop_argument(site, use.node)
                return
        functions = self._program.names.called_functions(site)
        if len(functions) != 1 or len(self._program.names.callee(site)) != 1:
            raise NotUnderstood("it is passed to code that Trainshift cannot see")
        name = self._parameter(site, functions[0], use.node)
        self._dropped.setdefault((functions[0], name), []).append(site)
        self._note(use, "Pass no strategy")
        self._drop_argument(site, use.node)

    def _drop_argument(self, site: Site, given: ast.expr) -> None:
        word = next((each for each in site.node.keywords if each.value is given), None)
        span = self._layout.enclosed(given, site)
        start = span.start if word is None else self._script.span(word, site).start
        self._drop(site.node, Span(start, span.end))

    def _drop(self, holder: ast.AST, entry: Span) -> None:
        """Remove an entry from a list of arguments, of parameters or of imported names."""
        self._entries.setdefault(holder, []).append(entry)

    def _parameter(self, site: Site, function: Scope, given: ast.expr) -> str:
        """The parameter that receives an argument."""
        for each in parameters(function):
            if self._program.names.argument(site, function, each.arg) is given:
                return each.arg
        raise NotUnderstood("it is passed to code that Trainshift cannot see")

    def _drop_parameters(self) -> None:
        """Remove the parameters that get a strategy in all calls."""
        for (function, name), sites in self._dropped.items():
            callers, elsewhere = self._program.names.callers(function)
            node = function.node
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            positional = [*node.args.posonlyargs, *node.args.args]
            if elsewhere or set(callers) != set(sites) or name not in [each.arg for each in positional]:
                raise NotUnderstood("some calls of a function do not pass it")
            index = [each.arg for each in positional].index(name)
            first = len(positional) - len(node.args.defaults)
            start = self._script.span(positional[index], function).start
            end: ast.AST = node.args.defaults[index - first] if index >= first else positional[index]
            self._drop(node, Span(start, self._script.span(end, function).end))

    # All together

    def _replace(self, span: Span, code: str) -> None:
        if comments_in(self._text[span.start : span.end]):
            raise NotUnderstood(_COMMENT)
        self._edits[Edit(span.start, span.end, code)] = None

    def _merged(self) -> tuple[Edit, ...]:
        for each in list(self._gone):
            whole = all(one in self._gone for one in each.block) and each.parent is not None
            for edit in self._layout.remove(each, whole and each.index == 0):
                self._edits[edit] = None
            if each in self._left:
                self._left[each].decisions.extend(self._layout.left_behind(each, self._gone))
        self._drop_imports()
        for entries in self._entries.values():
            self._edits.update(dict.fromkeys(without(self._program, sorted(entries))))
        scopes = left_scopes(self._program, self._entered)
        for edit in sorted(scopes, key=lambda edit: edit.start - edit.end):
            if not any(each.start <= edit.start and edit.end <= each.end for each in self._edits):
                self._edits[edit] = None
        found = sorted(self._edits, key=lambda edit: (edit.start, edit.end))
        if any(one.end > other.start for one, other in pairwise(found)):
            raise NotUnderstood("its uses overlap")
        return tuple(found)

    def _drop_imports(self) -> None:
        """Remove the imports of names that hold a strategy."""
        unbound = {name for _, name in self._unbound}
        for script in self._script.scripts:
            for binding in script.imports:
                if binding.full_name.rpartition(".")[2] in unbound and binding.statement is not None:
                    values = self._program.names.bound(binding)
                    if any(getattr(value, "node", None) in self._strategies.calls for value in values):
                        self._drop_import(script, binding)

    def _drop_import(self, script: Script, binding: Binding) -> None:
        statement, alias = binding.statement, binding.target
        assert statement is not None
        assert isinstance(alias, ast.alias)
        node = statement.node
        if not isinstance(node, ast.ImportFrom):
            raise NotUnderstood(f"another file imports only {imported_name(binding)}")
        if len(node.names) > 1:
            self._drop(node, self._script.span(alias, statement))
        else:
            # The file still runs.
            root = (node.module or "").partition(".")[0]
            if node.level or root in script.module_bindings or script.loads(root):
                raise NotUnderstood(f"another file imports only {imported_name(binding)}")
            self._replace(self._script.statement_span(statement), f"import {node.module}")
        self._left.setdefault(statement, Left(statement, "Import no strategy"))


def _class_name(use: Use) -> ast.Attribute | None:
    """The expression around a strategy that names its class: `strategy.__class__.__name__`."""
    cls, name = use.parent, use.around[1] if len(use.around) > 1 else None
    is_class = isinstance(cls, ast.Attribute) and cls.attr == "__class__"
    is_class = is_class or (isinstance(cls, ast.Call) and dotted(cls.func) == "type" and len(cls.args) == 1)
    return name if is_class and isinstance(name, ast.Attribute) and name.attr == "__name__" else None


def _shown(use: Use) -> ast.expr:
    """The expression that shows the use of a strategy: its member, or the call that gets it."""
    shown = use.node
    for each in use.around:
        if isinstance(each, ast.Call):
            return each if shown is use.node or each.func is shown else shown
        if isinstance(each, ast.Attribute):
            shown = each
        elif not isinstance(each, ast.keyword):
            break
    return shown


def _name_of(value: Value) -> str:
    """The full name of an object's class, if a library defines it."""
    if isinstance(value, Instance):
        return value.cls
    return value.name if isinstance(value, Library) else ""
