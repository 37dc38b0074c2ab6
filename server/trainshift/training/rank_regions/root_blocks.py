"""Find the blocks that are for rank 0 as a whole, because each of their statements is.

They are loops, ``with`` blocks, and an ``if`` with an ``else``.  Only rank 0 runs their headers and the
assignments in them, too: these have no effect, draw nothing, iterate nothing that is used up by it, and bind
nothing that is read later.  Nor do they raise what every rank handles.
"""

from __future__ import annotations

import ast
from collections.abc import Set

from trainshift.core.libraries import Libraries, full_name
from trainshift.core.program import Program
from trainshift.libraries import api
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.reaching_bindings import may_suppress
from trainshift.python.names.values import Class, Function, Library, Member, UserInstance
from trainshift.python.syntax.chunk_syntax import Statement, is_elif, last_name
from trainshift.python.syntax.node_classes import LOOPS, TRIES, WITHS
from trainshift.python.values.call_chains import statements_around
from trainshift.python.values.effects import Effect
from trainshift.training.loops.call_effects import Effects
from trainshift.training.loops.what_trains import WhatTrains
from trainshift.training.rank_regions.readers import Readers
from trainshift.training.uniformity.uniformity import Uniformity

# Attributes and functions whose results can be iterated any number of times.
_LASTING = frozenset(
    {"layers", "metrics_names", "non_trainable_variables", "trainable_variables", "trainable_weights"}
    | {"variables", "weights"}
)
_VIEWS = frozenset({"items", "keys", "values"})
_PASSING = frozenset({"enumerate", "list", "reversed", "sorted", "zip"})
# Builtins that go through what they are given, and those that make something to iterate any number of times.
_ITERATING = _PASSING | {
    "all",
    "any",
    "dict",
    "filter",
    "frozenset",
    "map",
    "max",
    "min",
    "set",
    "sum",
    "tuple",
}
_HOLDING = frozenset({"dict", "frozenset", "list", "range", "set", "sorted", "str", "tuple"})
_MAKING = (
    *(ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp),
    *(ast.Constant, ast.JoinedStr, ast.BinOp),
)
# How a dataset runs Python code, whose effects no call of the script shows.
_RUNNING_PYTHON = ("from_generator", "numpy_function", "py_func", "py_function")
# Expressions and operators that raise nothing, if their parts do not.
_STILL = (ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BoolOp, ast.UnaryOp, ast.Compare)
_HARMLESS = (*_STILL, ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop)
# Packages whose functions make no part of a graph or a model; methods of unknown objects make none, either.
_SIMPLE = frozenset({"", "builtins", "math", "numpy", "random"})
# Methods that return an array or a list, and functions of NumPy that do not.
_GIVING = frozenset({"astype", "flatten", "numpy", "ravel", "reshape", "split", "splitlines", "tolist"})
_ITERATORS = frozenset({"fromiter", "ndenumerate", "ndindex", "nditer"})
# The exceptions that no header raises.
_FROM_ELSEWHERE = frozenset({"ImportError", "KeyboardInterrupt", "ModuleNotFoundError"})


class RootBlocks:
    """The blocks of one script that are for rank 0 alone."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._script = program.script

    def around(self, guarded: Set[Statement], others: Set[Statement]) -> dict[Statement, Statement]:
        """The outermost block that is for rank 0 alone around each guarded statement that has one.

        `others` are the statements with calls that are kept to rank 0 in another way.
        """
        found: dict[Statement, Statement] = {}
        for statement in guarded:
            for above in statement.ancestors():
                if above.scope is not statement.scope:
                    break
                if _is_block(above) and self.is_whole(above, guarded, others):
                    found[statement] = above
        return found

    def is_whole(
        self,
        statement: Statement,
        guarded: Set[Statement],
        others: Set[Statement] = frozenset(),
        block: Statement | None = None,
    ) -> bool:
        """Return whether a statement is guarded, or can be with all that it holds.

        It may stand in a `block` that would be guarded with it.
        """
        if statement in guarded or statement in others:
            return statement in guarded
        node, effects = statement.node, self._program.fact(Effects)
        if isinstance(node, ast.Assign):
            return block is not None and self._is_computed(node, statement, block)
        if isinstance(node, ast.If):
            is_still = effects.of_expression(node.test) is None and not self._draws(
                node.test, block or statement
            )
        elif isinstance(node, ast.For):
            is_still = self._is_lasting(node.iter, statement) and self._is_unread(node.target, statement)
        elif isinstance(node, ast.With) and len(node.items) == 1:
            is_still = self._is_opened(node.items[0], statement)
        else:
            return False
        if not is_still or (self._may_raise(node) and self._is_handled(statement)):
            return False
        inside = (each for block in statement.branches.values() for each in block)
        return all(self.is_whole(each, guarded, others, block or statement) for each in inside)

    def _is_computed(self, node: ast.Assign, statement: Statement, block: Statement) -> bool:
        """Return whether an assignment only computes, from arrays and Python's own values, what nothing
        outside its block reads.
        """
        raises = not all(isinstance(each, _HARMLESS) for each in ast.walk(node.value))
        return (
            self._program.fact(Effects).of_expression(node.value) is None
            and all(
                self._is_simple(each, block) for each in ast.walk(node.value) if isinstance(each, ast.Call)
            )
            and not (raises and self._is_handled(statement))
            and all(self._is_unread(each, block) for each in node.targets)
        )

    def _is_simple(self, call: ast.Call, block: Statement) -> bool:
        """Return whether a call makes no part of a graph or a model, and draws nothing that matters."""
        callees = self._script.names.callee(self._script.site_of(call))
        owners = [each.owner if isinstance(each, Member) else each for each in callees]
        if any(isinstance(each, Class | Function | UserInstance) for each in owners):
            return False
        roots = {full_name(each).partition(".")[0] for each in callees}
        return roots <= _SIMPLE and not self._draws(call, block)

    def _draws(self, node: ast.expr, block: Statement) -> bool:
        """Return whether an expression draws at random: the other ranks would then draw other numbers.

        After all training that is harmless.  The first call of a model or a layer draws its weights.
        """
        names, draws = self._script.names, self._program.fact(Uniformity).draws
        sites = [self._script.site_of(each) for each in ast.walk(node) if isinstance(each, ast.Call)]
        called = (value for each in sites for value in names.callee(each))
        if any(names.is_a(each, *api.MODEL, *api.LAYER) for each in called):
            return True
        found = any(draws.is_draw(each) or draws.shuffles(each) for each in sites)
        return found and not self._is_after_training(block)

    def _is_handled(self, statement: Statement) -> bool:
        """Return whether the script may go on after what a statement raises."""
        return any(map(_may_handle, statements_around(self._script.names, statement)))

    def _may_raise(self, node: ast.If | ast.For | ast.With) -> bool:
        """Return whether a header may raise an exception, such as by a missing key.

        What the opening of a file raises, rank 0 alone meets in every form of the guard.
        """
        if isinstance(node, ast.With):
            return False
        if isinstance(node, ast.If):
            return not all(isinstance(each, _HARMLESS) for each in ast.walk(node.test))
        counts = isinstance(node.iter, ast.Call) and self._builtins(node.iter) <= {
            "enumerate",
            "zip",
            "range",
        }
        given = node.iter.args if counts and isinstance(node.iter, ast.Call) else [node.iter]
        parts = [part for each in given for part in ast.walk(each)]
        is_harmless = all(
            isinstance(each, _HARMLESS) or (isinstance(each, ast.Attribute) and each.attr in _LASTING)
            for each in parts
        )
        return not is_harmless or not (counts or isinstance(node.target, ast.Name))

    def _builtins(self, call: ast.Call) -> set[str]:
        """Return the builtins that an expression may call; other names keep their package."""
        callees = self._script.names.callee(self._script.site_of(call))
        names = [each.name if isinstance(each, Library) else "?" for each in callees]
        return {each.removeprefix("builtins.") for each in names} or {"?"}

    def _is_unread(self, target: ast.expr | None, statement: Statement) -> bool:
        """Return whether a header binds only names, which are not read later."""
        if target is None:
            return True
        parts = [each for each in ast.walk(target) if isinstance(each, ast.expr)]
        names = [each.id for each in parts if isinstance(each, ast.Name)]
        plain = all(isinstance(each, ast.Name | ast.Tuple | ast.List) for each in parts)
        readers = self._program.fact(Readers)
        return plain and not any(readers.is_read_after(name, statement) for name in names)

    def _is_opened(self, item: ast.withitem, statement: Statement) -> bool:
        """Return whether a file is opened that only the block reads."""
        given, effects = item.context_expr, self._program.fact(Effects)
        if not isinstance(given, ast.Call):
            return False
        deed = effects.of_call(self._script.site_of(given))
        inside = [*given.args, *(word.value for word in given.keywords)]
        is_still = all(effects.of_expression(each) is None for each in inside)
        opens = deed is not None and deed.effect is Effect.FILES
        return opens and is_still and self._is_unread(item.optional_vars, statement)

    def _is_lasting(self, node: ast.expr, statement: Statement) -> bool:
        """Return whether an expression gives the same elements however often it is iterated."""
        if isinstance(node, ast.Attribute):
            return node.attr in _LASTING
        if isinstance(node, ast.Name):
            at = Occurrence(node, statement.scope, statement)
            return self._is_kept(at, frozenset()) or self._is_dataset(at)
        if self._program.fact(Effects).of_expression(node) is not None:
            return False
        if _is_made(node) or (isinstance(node, ast.Call) and self._holds(node)):
            return not any(self._may_use_up(each, statement) for each in ast.walk(node))
        if not isinstance(node, ast.Call):
            return False
        site = self._script.site_of(node)
        names = {each.name for each in self._script.names.callee(site) if isinstance(each, Library)}
        if isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS and not node.args:
            return True
        if names and names <= {f"builtins.{each}" for each in _PASSING}:
            return all(self._is_lasting(each, statement) for each in node.args)
        lists = self._program.fact(Libraries).names_stating("lists")
        return names == {"builtins.range"} or (bool(names) and site.name in lists)

    def _may_use_up(self, part: ast.AST, statement: Statement) -> bool:
        """Return whether a part of an expression may iterate what is used up by it."""
        if not isinstance(part, ast.Call):
            return isinstance(part, ast.comprehension)
        iterates = not self._builtins(part).isdisjoint(_ITERATING)
        return iterates and not all(self._is_lasting(each, statement) for each in part.args)

    def _is_kept(self, at: Occurrence, seen: frozenset[ast.AST]) -> bool:
        """Return whether a name, or what a function of the script returns, certainly holds its elements."""
        if _is_made(at.node):
            return True
        if isinstance(at.node, ast.Call) and self._holds(at.node):
            return True
        sources = self._script.names.all_sources(at) if at.node not in seen else ()
        return bool(sources) and all(self._is_kept(each, seen | {at.node}) for each in sources)

    def _holds(self, call: ast.Call) -> bool:
        """Return whether a call returns a list, an array or the like."""
        site = self._script.site_of(call)
        if self._builtins(call) <= _HOLDING:
            return True
        callees = self._script.names.callee(site)
        if site.name == "predict":
            members = [each for each in callees if isinstance(each, Member)]
            return bool(members) and all(self._script.names.is_a(each.owner, *api.MODEL) for each in members)
        of_arrays = {full_name(each).partition(".")[0] for each in callees} == {"numpy"}
        return site.name in _GIVING or (of_arrays and site.name not in _ITERATORS)

    def _is_dataset(self, at: Occurrence) -> bool:
        """Return whether a name is a dataset that runs no Python code, after all training.

        Before, one that shuffles would then give the other ranks another order.
        """
        values = self._script.names.values(at.node, at.scope, at.statement)
        return (
            bool(values)
            and all(self._script.names.is_a(each, *api.DATASET) for each in values)
            and next(self._script.sites_named(*_RUNNING_PYTHON), None) is None
            and at.statement is not None
            and self._is_after_training(at.statement)
        )

    def _is_after_training(self, statement: Statement) -> bool:
        """Return whether a statement of the start file runs once, and none that runs later trains."""
        trains = self._program.fact(WhatTrains).statement_trains
        is_first = self._script.home(statement.scope) is self._script.scripts[0]
        if statement.scope.kind != "module" or not is_first:
            return False
        for each in statement.path():
            block, index = self._script.siblings(each)
            repeats = each is not statement and isinstance(each.node, LOOPS)
            if repeats or any(map(trains, block[index + 1 :])):
                return False
        return True


def _is_block(statement: Statement) -> bool:
    """Return whether a statement gets a guard around it; an ``if`` alone takes the test into its own."""
    node = statement.node
    if isinstance(node, ast.If):
        return bool(node.orelse) and not is_elif(statement)
    return isinstance(node, ast.For | ast.With)


def _is_made(node: ast.expr) -> bool:
    """Return whether an expression makes something that holds elements, or a part of it: no iterator can be
    sliced or added to.
    """
    is_part = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    return is_part or isinstance(node, _MAKING)


def _may_handle(statement: Statement) -> bool:
    """Return whether a statement catches what a block of it raises."""
    node = statement.node
    if isinstance(node, TRIES):
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
        return any(each.type is None or last_name(each.type) not in _FROM_ELSEWHERE for each in handlers)
    return isinstance(node, WITHS) and any(map(may_suppress, node.items))
