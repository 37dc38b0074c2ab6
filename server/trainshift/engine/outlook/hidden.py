"""Hidden Horovod: places where a script hands on what Horovod gives, so that the text hides where it is used.

What a script scales and divides by it there would be scaled and divided twice.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from trainshift.core.program import Program
from trainshift.libraries.entries import prints
from trainshift.libraries.roles import is_horovod
from trainshift.python.names.occurrence import Occurrence, of_call
from trainshift.python.names.values import Class, Function
from trainshift.python.source.source import one_line
from trainshift.python.syntax.chunk_syntax import Binding, Site, argument, arguments, last_name
from trainshift.training.horovod.existing_use import Horovod
from trainshift.training.horovod.horovod_api import COLLECTIVE, DOORS, RANK, SIZE
from trainshift.training.learning_rates.rate_cases import ATTRIBUTES
from trainshift.training.uniformity.uniformity import Uniformity

_READ = (
    "{call} hides what it reads from Horovod, which the script may then use already; "
    "read it by name, as in hvd.size()"
)
_KEPT = "{call} hides where the script keeps what Horovod gives; assign it by name, as in options.size = ..."
_WRAPS = ("DistributedGradientTape", "DistributedOptimizer", "callbacks")
_PARTS = frozenset({*COLLECTIVE, *RANK, *SIZE, *_WRAPS})
# Attributes that are known also where `setattr` sets them.
_KNOWN = frozenset({*ATTRIBUTES, "stop_training"})
_RANK = "rank"
_KEEPING = ("setattr", "update")
_NAMES = ("globals", "locals", "vars")
_DICTIONARY = "__dict__"
_READING = "builtins.getattr"
# Calls that only look at what they are given.
_LOOKING = frozenset(
    f"builtins.{name}" for name in ("callable", "dir", "hasattr", "id", "isinstance", "print", "type")
)


def hidden_horovod(program: Program) -> tuple[Site, str] | None:
    """A call that hands on a part of Horovod, or keeps what it gives, by a name that the text hides."""
    if not program.fact(Horovod).is_used:
        return None
    script = program.script
    handed = {*RANK, *SIZE, *(name for each in script.imports for name in _bound(each))}
    for sites, takes, reason in (
        (script.sites, lambda each: _hands_on(program, each, handed), _READ),
        (script.sites_named(*_KEEPING), lambda each: _keeps(program, each), _KEPT),
    ):
        for site in filter(takes, sites):
            return site, reason.format(call=one_line(script.text(site.node, site)))
    for binding in (each.binding for each in script.item_bindings(_DICTIONARY)):
        at = (
            Occurrence(binding.value, binding.scope, binding.statement) if binding.value is not None else None
        )
        numbers = program.fact(Horovod).calls(*RANK, *SIZE)
        if numbers and at is not None and at.statement is not None and _is_of_horovod(program, at):
            return numbers[0], _KEPT.format(call=ast.unparse(at.statement.node))
    return None


def _bound(binding: Binding) -> Iterator[str]:
    """Yield the name by which an import binds a module of Horovod."""
    if isinstance(binding.target, ast.alias) and is_horovod(f"{binding.full_name}."):
        yield (binding.target.asname or binding.target.name).rpartition(".")[2]


def _hands_on(program: Program, site: Site, handed: Container[str]) -> bool:
    """Return whether other code gets a module of Horovod, or a function that numbers ranks."""
    given = [
        each
        for node in arguments(site.node)
        for each in _elements(node)
        if last_name(each) in handed or site.name == "getattr"
    ]
    if not any(_is_handed(program, of_call(site).part(each)) for each in given):
        return False
    called = program.names.full_names(site.node.func, site.scope, site.statement)
    name = argument(site.node, 1)
    if _READING in called and isinstance(name, ast.Constant):
        return name.value in _PARTS
    callee = program.names.callee(site)
    shows = not _LOOKING.isdisjoint(called) or any(map(prints, called))
    return not shows and not any(isinstance(each, Class | Function) for each in callee)


def _elements(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an argument, or the elements that it lists."""
    if isinstance(node, ast.Dict):
        yield from (each for value in node.values for each in _elements(value))
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from (each for element in node.elts for each in _elements(element))
    else:
        yield node.value if isinstance(node, ast.Starred) else node


def _is_handed(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is a module of Horovod, or a function that numbers ranks."""
    if not isinstance(at.node, ast.Attribute | ast.Name):
        return False
    return any(
        name in DOORS or (is_horovod(name) and name.rpartition(".")[2] in (*RANK, *SIZE))
        for name in program.names.full_names(at.node, at.scope, at.statement)
    )


def _keeps(program: Program, site: Site) -> bool:
    """Return whether a call sets attributes or names to what Horovod gives."""
    named = argument(site.node, 1)
    if site.name == "update" and not _is_of_names(site.node.func):
        return False
    if isinstance(named, ast.Constant) and named.value in _KNOWN:
        return False
    if isinstance(named, ast.Constant) and named.value == _RANK and len(site.node.args) == 3:
        # A rank's number scales and divides nothing.
        value = of_call(site).part(site.node.args[2])
        return _is_handed(program, value) or program.fact(Uniformity).on_size(value)
    return any(_is_of_horovod(program, of_call(site).part(each)) for each in arguments(site.node))


def _is_of_horovod(program: Program, at: Occurrence) -> bool:
    """Return whether an expression is a part of Horovod, or depends on the ranks."""
    uniformity = program.fact(Uniformity)
    return _is_handed(program, at) or uniformity.on_rank(at) or uniformity.on_size(at)


def _is_of_names(node: ast.expr) -> bool:
    """Return whether a call changes the names of a module, or the attributes of an object."""
    owner = node.value if isinstance(node, ast.Attribute) else node
    return last_name(owner.func if isinstance(owner, ast.Call) else owner) in (_DICTIONARY, *_NAMES)
