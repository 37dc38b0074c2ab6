"""Calls: the replacements of a strategy's methods when each rank is one replica."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from msgspec import Struct

from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.python.source.comments import comments_in
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Site, argument, arguments, hides_arguments
from trainshift.python.syntax.precedence import STARRED, Level, asked, assigned, level
from trainshift.rewriting.prerequisites import Prerequisites

_OWN = "every rank has its own value; use hvd.allreduce where you need the average"
_WHOLE = "the function makes the dataset of one replica and does not divide it by rank"
_INPUTS = "distribute_datasets_from_function"


class NotUnderstood(Exception):
    """The reason why a use of a strategy cannot be rewritten."""


class Method(Struct, frozen=True):
    """The rewrite of a method's call: its edits, its title, and its decisions."""

    edits: Callable[[Program, Site, ast.AST], tuple[Edit, ...]]
    title: str
    decision: str = ""

    @property
    def is_run(self) -> bool:
        """Return whether it runs a function, which returns a value for each replica."""
        return self.edits is _run


class _Pieces:
    """A call some pieces of which stay, in order, with new code between them."""

    def __init__(self, program: Program, site: Site) -> None:
        self._site = site
        self._layout = program.fact(Layout)
        self._text = program.script.source.text
        self._span = program.script.span(site.node, site)
        self._at = self._span.start
        self._edits: list[Edit] = []
        self._line_end = self._layout.line_end_at(site) + program.script.source.indentation(self._span.end)

    def keep(self, node: ast.expr, lead: str, least: Level, behind: str = "") -> str:
        """Keep an expression after the text `lead`; return the text that must follow it, `behind` at the
        end.
        """
        span = self._layout.enclosed(node, self._site)
        own = self._text[span.start : span.end]
        open_up = least > Level.CONDITIONAL and level(node, own) < least and not own.startswith("(")
        self._gap(span.start, f"{lead}(" if open_up else lead)
        self._at = span.end
        return f"){behind}" if open_up else behind

    def _gap(self, end: int, code: str, closing: bool = False) -> None:
        """Replace everything up to an offset by code; comments stay inside the parentheses."""
        kept = "".join(f"  {each}{self._line_end}" for each in comments_in(self._text[self._at : end]))
        self._edits.append(Edit(self._at, end, f"{kept}{code}" if closing else f"{code}{kept}"))

    def pass_over(self, node: ast.expr) -> None:
        """Keep everything up to the end of an expression unchanged."""
        self._at = self._layout.enclosed(node, self._site).end

    def end(self, code: str) -> tuple[Edit, ...]:
        """The edits, with `code` at the end."""
        self._gap(self._span.end, code, closing=True)
        return tuple(self._edits)


def _run(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """Turn ``strategy.run(f, args=(x,), kwargs={"k": y})`` into ``f(x, k=y)``."""
    called = _given(site, "fn")
    args, kwargs = argument(site.node, 1, "args"), argument(site.node, 2, "kwargs")
    _know_all(site, [called, args, kwargs])
    pieces = _Pieces(program, site)
    lead = pieces.keep(called, "", Level.ATOM, "(")
    if isinstance(args, ast.Tuple | ast.List):
        for index, each in enumerate(args.elts):
            if index:
                pieces.pass_over(each)
            else:
                lead = pieces.keep(each, lead, Level.NAMED)
        lead = lead if not args.elts else ""
        between = ", " if args.elts else ""
    elif args is not None and not _is_none(args):
        lead, between = pieces.keep(args, f"{lead}*", STARRED), ", "
    else:
        between = ""
    words = _keywords(kwargs)
    if words is None:
        if kwargs is not None and not _is_none(kwargs):
            lead = pieces.keep(kwargs, f"{lead}{between}**", STARRED)
    else:
        for name, value in words.items():
            lead = pieces.keep(value, f"{lead}{between}{name}=", Level.CONDITIONAL)
            between = ", "
    return pieces.end(f"{lead})")


def _keywords(node: ast.expr | None) -> dict[str, ast.expr] | None:
    """The arguments in a dictionary with literal names; None for any other expression."""
    if not isinstance(node, ast.Dict):
        return None
    words: dict[str, ast.expr] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier()):
            return None
        words[key.value] = value
    return words


def _gathered(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """Turn ``strategy.gather(value, axis=0)`` into ``value``."""
    return _alone(program, site, parent, _given(site, "value"))


def _dataset(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """The dataset itself; if it would only get a second name, it is prefetched like by the strategy."""
    given = _given(site, "dataset")
    if not (isinstance(parent, ast.Assign) and isinstance(given, ast.Name)):
        return _alone(program, site, parent, given)
    pieces = _Pieces(program, site)
    pieces.keep(given, "", Level.ATOM)
    return pieces.end(f".prefetch({program.at(site).fact(Prerequisites).tf}.data.AUTOTUNE)")


def _alone(program: Program, site: Site, parent: ast.AST, value: ast.expr) -> tuple[Edit, ...]:
    """Replace a call by its argument, in parentheses if needed."""
    text, whole = program.script.source.text, program.script.span(site.node, site)
    span = program.script.span(value, site)
    code, enclosed = text[span.start : span.end], program.fact(Layout).enclosed(value, site)
    needs = level(value, code) < asked(parent, site.node) or assigned(code) != code
    said = comments_in(text[whole.start : enclosed.start]) + comments_in(text[enclosed.end : whole.end])
    opening, closing = ("(", ")") if said or (needs and enclosed == span) else ("", "")
    pieces = _Pieces(program, site)
    pieces.keep(value, opening, Level.NAMED)
    return pieces.end(closing)


def _reduced(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """Turn ``strategy.reduce(op, value, axis=None)`` into ``value``; along an axis, TensorFlow reduces it."""
    operation, value = _given(site, "reduce_op"), _given(site, "value", 1)
    axis = argument(site.node, 2, "axis")
    _know_all(site, [operation, value, axis])
    if axis is None or _is_none(axis):
        return _alone(program, site, parent, value)
    names = {
        each.rpartition(".")[2] for each in program.names.full_names(operation, site.scope, site.statement)
    }
    if isinstance(operation, ast.Constant):
        names = {str(operation.value).upper()}
    if len(names) != 1 or not names <= {"SUM", "MEAN"}:
        raise NotUnderstood("Trainshift cannot see how it reduces")
    tf = program.at(site).fact(Prerequisites).tf
    pieces = _Pieces(program, site)
    rest = pieces.keep(value, f"{tf}.reduce_{names.pop().lower()}(", Level.CONDITIONAL)
    rest = pieces.keep(axis, f"{rest}, axis=", Level.CONDITIONAL)
    return pieces.end(f"{rest})")


def _results(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """The results of all replicas of this process: a tuple of one."""
    value = _given(site, "value")
    _know_all(site, [value])
    pieces = _Pieces(program, site)
    rest = pieces.keep(value, "(", Level.CONDITIONAL)
    return pieces.end(f"{rest},)")


def _from_function(program: Program, site: Site, parent: ast.AST) -> tuple[Edit, ...]:
    """Turn ``strategy.distribute_datasets_from_function(f)`` into a call of ``f`` for one replica."""
    made = _given(site, "dataset_fn")
    pieces = _Pieces(program, site)
    rest = pieces.keep(made, "", Level.ATOM, "(")
    tf = program.at(site).fact(Prerequisites).tf
    return pieces.end(f"{rest}{tf}.distribute.InputContext())")


def _given(site: Site, name: str, position: int = 0) -> ast.expr:
    found = None if hides_arguments(site.node) else argument(site.node, position, name)
    if found is None:
        raise NotUnderstood("Trainshift cannot see its argument")
    return found


def _know_all(site: Site, known: list[ast.expr | None]) -> None:
    """Raise if a call has an unknown argument, or arguments in an unexpected order."""
    if any(each not in known for each in arguments(site.node)):
        raise NotUnderstood("it has unknown options")
    places = [(each.lineno, each.col_offset) for each in known if each is not None]
    if places != sorted(places):
        raise NotUnderstood("its arguments are in a different order")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_DATASET = Method(_dataset, "Read the dataset itself")
_FUNCTION = Method(_from_function, "Make the dataset for this rank", _WHOLE)
_RUN = Method(_run, "Call the function directly")
_RESULTS = Method(_results, "Take the rank's own result")

METHODS: Mapping[str, Method] = {
    "run": _RUN,
    "experimental_run_v2": _RUN,
    "reduce": Method(_reduced, "Take the rank's own value", _OWN),
    "gather": Method(_gathered, "Take the rank's own value", _OWN),
    "experimental_local_results": _RESULTS,
    "unwrap": _RESULTS,
    "experimental_distribute_dataset": _DATASET,
    _INPUTS: _FUNCTION,
    f"experimental_{_INPUTS}": _FUNCTION,
}
