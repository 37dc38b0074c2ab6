"""Imports must be at the top of the script.

    BATCH = 32                                  import tensorflow as tf
    import tensorflow as tf                     BATCH = 32

## Why it matters

If TensorFlow is imported later, Horovod's set-up may run before it. On two GPUs both processes then end up
on the same one.

Each process starts Horovod and takes its own GPU below the imports at the top.

## What to do

Move the import to the end of the imports at the top. One that needs something before it, such as
`os.environ[...]`, stays below that.

## What is reported

An import below the first other statement, or in a block, a function or a class: of TensorFlow, Keras, `os`,
a module that makes datasets or optimizers, or a file of the project that uses TensorFlow.

Not reported: imports after the docstring, comments and `from __future__`, under `if TYPE_CHECKING:`, in `try:
import ... except ImportError:`, and below Horovod's set-up.

Harmless: a late import of anything else (`json`, `matplotlib`, Horovod), and one below statements that
only set environment variables, `warnings` or logging.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct

from trainshift.core.finding import Finding, Related, Verdict
from trainshift.core.layout import Layout
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.libraries.common import is_common
from trainshift.python.flow.traversal import reachable
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.names.values import Instance, Library, Unknown
from trainshift.python.source.edit import Change, Edit
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import (
    AttributeBinding,
    Binding,
    ItemBinding,
    Site,
    Statement,
    for_type_checkers,
    imported_name,
    is_main_guard,
    last_name,
    root_name,
)
from trainshift.restrictions.names.aliases import catches_import_error
from trainshift.training.horovod.existing_use import Horovod

_IMPORTS = (ast.Import, ast.ImportFrom)
_LINE = re.compile(r"\r\n|\n|\r")
# The modules whose names matter, without Horovod: the rewrite imports it below TensorFlow itself.
_NEEDED = frozenset({"tensorflow", "keras", "tf_keras", "tensorflow_datasets", "tensorflow_addons"})
# Prefixes of the full names of calls that only set the environment, warnings or logging.
_QUIET = (
    "os.environ.", "os.putenv", "os.unsetenv", "warnings.", "logging.", "absl.logging.",
    "tensorflow.get_logger", "tensorflow.logging.", "tensorflow.compat.v1.logging.",
    "tensorflow.autograph.set_verbosity",
)  # fmt: skip
# Prefixes of calls that change the meaning of later imports, which may be there for that reason.
_DISTURBING = (
    *_QUIET, "os.chdir", "os.system", "os.exec", "sys.path.",
    "sys.modules.", "subprocess.", "multiprocessing.", "importlib.", "site.", "runpy.", "matplotlib.use",
    "tensorflow.enable_", "tensorflow.disable_", "tensorflow.compat.v1.enable_",
    "tensorflow.compat.v1.disable_", "builtins.exec", "builtins.eval", "builtins.__import__",
)  # fmt: skip
# Assignments with the same effect: `sys.path = [...]`, `os.environ["A"] = "1"`.
_SETTINGS = frozenset({"os.environ", "sys.path", "sys.modules", "sys.meta_path"})


class _Top(Struct, frozen=True, dict=True):
    """The imports at the top and the other statements allowed there: `block`, up to the first other one,
    `end`.

    `loud` is the first statement that does more than setting the environment, warnings or logging.
    """

    program: Program
    block: list[Statement]
    end: Statement | None
    loud: Statement | None

    @cached_property
    def setup(self) -> Statement | None:
        """The first statement at the top level that starts Horovod or gives a rank its GPU."""
        horovod = self.program.fact(Horovod)
        return next((each for each in self.program.script.top if horovod.sets_up(each, ())), None)

    @cached_property
    def calls(self) -> list[tuple[Site, bool, frozenset[str]]]:
        """The calls that may change the result of an import: of any import, or of one of the named
        libraries.
        """
        return list(_read_calls(self.program))


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for each import that is not at the top."""
    top = _read_top(program)
    for statement in program.script.statements:
        if isinstance(statement.node, _IMPORTS) and not _is_future(statement):
            finding = _judge(program, report, statement, top)
            if finding is not None:
                yield finding


def _read_top(program: Program) -> _Top:
    block: list[Statement] = []
    end: Statement | None = None
    for statement in program.script.top:
        if end is None and (_is_silent(statement) or program.fact(Horovod).sets_up(statement, block)):
            block.append(statement)
            continue
        end = end or statement
        if not _is_silent(statement) and not _is_quiet(program, statement):
            return _Top(program, block, end, statement)
    return _Top(program, block, end, None)


# Statements between imports


def _is_silent(statement: Statement) -> bool:
    """Return whether the statement keeps imports below it at the top: it is one, guards one, or does
    nothing.
    """
    node = statement.node
    if isinstance(node, (*_IMPORTS, ast.Pass)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return last_name(node.test) == "TYPE_CHECKING" and not node.orelse
    if isinstance(node, ast.Try):
        return catches_import_error(node) and all(
            _is_silent(each) or _is_flag(each) for each in _in(statement, "body", "orelse", "finally")
        )
    return _suppresses(statement) and all(map(_is_silent, statement.branches["body"]))


def _in(statement: Statement, *branches: str) -> list[Statement]:
    return [each for branch in branches for each in statement.branches.get(branch, [])]


def _is_flag(statement: Statement) -> bool:
    """Return whether the statement is like ``HAS_TENSORFLOW = True``."""
    return isinstance(statement.node, ast.Assign) and isinstance(statement.node.value, ast.Constant)


def _suppresses(statement: Statement) -> bool:
    """Return whether the statement is ``with suppress(ImportError):``."""
    return isinstance(statement.node, ast.With) and all(
        isinstance(item.context_expr, ast.Call)
        and last_name(item.context_expr.func) == "suppress"
        and any(last_name(each) in ("ImportError", "ModuleNotFoundError") for each in item.context_expr.args)
        for item in statement.node.items
    )


def _is_quiet(program: Program, statement: Statement) -> bool:
    """Return whether the statement only sets the environment, warnings, logging, or the module's own
    metadata.
    """
    node = statement.node
    if isinstance(node, (*_IMPORTS, ast.Pass)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_quiet_call(program, statement, node.value)
    if isinstance(node, ast.Assign):
        return all(_is_quiet_target(program, statement, target) for target in node.targets) or (
            _is_quiet_call(program, statement, node.value)
        )
    if isinstance(node, ast.AugAssign):
        return _is_quiet_target(program, statement, node.target)
    if isinstance(node, ast.Delete):
        return all(_is_quiet_target(program, statement, target) for target in node.targets)
    if isinstance(node, ast.With):
        contexts = [item.context_expr for item in node.items]
        if not all(_is_quiet_call(program, statement, each) for each in contexts) and not _suppresses(
            statement
        ):
            return False
    elif not isinstance(node, ast.If | ast.Try):
        return False
    return all(_is_quiet(program, each) for each in _in(statement, *statement.branches))


def _is_quiet_call(program: Program, statement: Statement, node: ast.expr) -> bool:
    """Return whether an expression is a call that sets such options, also of a logger."""
    while isinstance(node, ast.Call):
        names = program.names.full_names(node.func, statement.scope, statement)
        if names and all(name.startswith(_QUIET) for name in names):
            return True
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
        if isinstance(node, ast.Name):
            return _is_logger(program, statement, node)
    return False


def _is_logger(program: Program, statement: Statement, node: ast.Name) -> bool:
    values = program.names.values(node, statement.scope, statement)
    return bool(values) and all(isinstance(each, Instance) and each.cls.startswith(_QUIET) for each in values)


def _is_quiet_target(program: Program, statement: Statement, target: ast.expr) -> bool:
    if isinstance(target, ast.Name):
        return target.id.startswith("__") and target.id.endswith("__")
    if isinstance(target, ast.Subscript):
        target = target.value
    names = program.names.full_names(target, statement.scope, statement)
    return bool(names) and all(f"{name}.".startswith(_QUIET) for name in names)


# Judging one import


def _judge(program: Program, report: Report, statement: Statement, top: _Top) -> Finding | None:
    home = statement.top
    nested = _nesting(statement)
    before = top.end is not None and _start(program, home) > _start(program, top.end)
    if nested is None and not before:
        return None
    if nested is None and top.setup is not None and _start(program, home) > _start(program, top.setup):
        return None
    loud = top.loud is not None and _start(program, home) > _start(program, top.loud)
    verdict = Verdict.HARMLESS
    if for_type_checkers(statement):
        why = "only type checkers see it"
    elif not _needed(program, statement):
        why = "the conversion does not need it"
    elif not loud and (nested is None or (home is not top.loud and isinstance(nested.node, ast.With))):
        why = "the code above it only sets the environment, warnings or logging"
    else:
        verdict = Verdict.VIOLATED
        why = ""
    return _finding(program, report, statement, verdict, why, nested, top)


def _nesting(statement: Statement) -> Statement | None:
    """The innermost compound statement around an import that is not itself a guard of imports."""
    for below, above in pairwise(statement.path()):
        guarded = isinstance(above.node, ast.Try) and catches_import_error(above.node)
        first = guarded and all(map(_is_silent, above.branches[below.branch][: below.index]))
        if not first and not _is_silent(above):
            return above
    return None


def _start(program: Program, statement: Statement) -> int:
    return program.script.statement_span(statement).start


def _finding(
    program: Program,
    report: Report,
    statement: Statement,
    verdict: Verdict,
    why: str,
    nested: Statement | None,
    top: _Top,
) -> Finding:
    script = program.script
    span = script.statement_span(statement)
    modules = _listed(statement)
    verb = "are" if "," in modules else "is"
    related: tuple[Related, ...] = ()
    if nested is not None:
        where = f"inside {_described(nested)}"
        header = script.statement_span(nested).start
        related = (Related(Span(header, script.source.line_end(header)), "the import is in here"),)
    else:
        where = "below other statements"
        first = top.end if verdict is Verdict.HARMLESS or top.loud is None else top.loud
        if first is not None:
            related = (Related(script.statement_span(first), "this comes before the import"),)
    message = f"{modules} {verb} imported {where}; {why}."
    if not why:
        message = f"Horovod's set-up may run before {modules} {verb} imported {where}. Move the import up."
    return report.finding(verdict, span, message, related, _fix(program, report, statement, top))


def _described(statement: Statement) -> str:
    node = statement.node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{node.name}()"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    kind = type(node).__name__.lower().removeprefix("async")
    return f"a `{kind}` block"


def _modules(statement: Statement) -> list[str]:
    """The modules that an import names, with the dots of a relative one."""
    node = statement.node
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert isinstance(node, ast.ImportFrom)
    return ["." * node.level + (node.module or "")]


def _listed(statement: Statement) -> str:
    return ", ".join(dict.fromkeys(_modules(statement)))


def _is_future(statement: Statement) -> bool:
    return isinstance(statement.node, ast.ImportFrom) and statement.node.module == "__future__"


def _bindings(statement: Statement) -> list[Binding]:
    """The bindings that an import makes."""
    return [
        binding
        for bindings in statement.scope.bindings.values()
        for binding in bindings
        if binding.statement is statement
    ]


def _needed(program: Program, statement: Statement) -> bool:
    """Return whether the rules use the name that the import binds."""
    for binding in _bindings(statement):
        root = binding.full_name.partition(".")[0]
        if root in _NEEDED or binding.full_name in ("os", "os.environ"):
            return True
        if not root or not is_common(root):
            if _reaches_tensorflow(program, binding):
                return True
    return False


def _reaches_tensorflow(program: Program, binding: Binding) -> bool:
    """Return whether the import is of a workspace file that imports TensorFlow, directly or indirectly."""
    workspace = program.script.workspace
    if workspace is None:
        return False
    path, _ = workspace.locate(program.script, binding.full_name)

    def read(paths: Iterable[str]) -> list[Script]:
        others = (workspace.script(each) for each in paths if each not in ("", program.script.path))
        return [script for script in others if script is not None]

    scripts = reachable(read([path]), lambda script: read(workspace.imported_by(script)))
    return any(each.full_name.partition(".")[0] in _NEEDED for script in scripts for each in script.imports)


# Moving it


def _fix(program: Program, report: Report, statement: Statement, top: _Top) -> Change | None:
    """Move the import to the end of those at the top, if that cannot change the script's behaviour."""
    if top.end is None or not _is_movable(program, statement) or _is_disturbed(program, statement, top):
        return None
    script, layout = program.script, program.fact(Layout)
    span = script.statement_span(statement)
    lines, removal = _taken_out(program, statement)
    last = next((each for each in reversed(top.block) if not isinstance(each.node, ast.Expr)), None)
    last = last or (top.block[-1] if top.block else None)
    place = layout.after(last, lines) if last is not None else layout.before(top.end, lines)
    requires = layout.isolate(last or top.end)
    if any(edit.start < other.end and other.start < edit.end for edit in removal for other in requires):
        return None
    title = f"Move the import of {_listed(statement)} to the top"
    return report.change(title, span, (place, *removal), requires)


def _taken_out(program: Program, statement: Statement) -> tuple[list[str], tuple[Edit, ...]]:
    """The import's lines, with its own comments, and the edits that remove them."""
    script, source = program.script, program.script.source
    span = script.statement_span(statement)
    start, end = source.line_start(span.start), source.line_end(span.end)
    indentation = source.text[start : span.start]
    rest = source.text[span.end : end]
    alone = not indentation.strip() and (not rest.strip() or rest.lstrip().startswith("#"))
    only = len(script.siblings(statement)[0]) == 1
    if not alone:
        lines = _dedented(source.text[span.start : span.end], indentation if not indentation.strip() else "")
        return lines, program.fact(Layout).remove(statement, only)
    above = _comment_above(program, start, end)
    lines = [line.lstrip() for line in _LINE.split(source.text[above:start])[:-1]]
    lines += _dedented(source.text[span.start : end].rstrip(), indentation)
    if only and statement.parent is not None:
        return lines, (Edit(above, end, f"{indentation}pass"),)
    return lines, (Edit(above, source.next_line(span.end), ""),)


def _dedented(text: str, indentation: str) -> list[str]:
    first, *others = _LINE.split(text)
    return [first, *(line.removeprefix(indentation) for line in others)]


def _comment_above(program: Program, start: int, end: int) -> int:
    """The start of a comment that belongs only to the import, directly above it."""
    source = program.script.source
    following = source.next_line(end)
    if source.text[following : source.line_end(following)].strip():
        return start
    above = start
    while above > 0:
        line = source.line_start(above - 1)
        text = source.text[line:above].strip()
        if not text.startswith("#") or text.startswith(
            ("#!", "# %%", "#%%", "# In[", "# -", "#-", "# =", "#=")
        ):
            break
        above = line
    return above


def _is_movable(program: Program, statement: Statement) -> bool:
    """Return whether the import is of known modules, unconditional, and the only meaning of its names."""
    node, parent, script = statement.node, statement.parent, program.script
    if not all(is_common(module) for module in _modules(statement)):
        return False
    if parent is not None:
        function = isinstance(parent.node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not (function or (is_main_guard(parent) and statement.branch == "body" and parent.parent is None)):
            return False
        # A function may import optional modules late; TensorFlow is installed if it trains.
        if function and not _needed(program, statement):
            return False
    for alias in node.names:  # type: ignore[attr-defined]
        if alias.name == "*":
            return False
    scope = statement.scope
    for binding in _bindings(statement):
        name = imported_name(binding)
        if hasattr(builtins, name) or name in scope.declared_global | scope.declared_nonlocal:
            return False
        known = [*script.module_bindings.get(name, []), *scope.bindings[name]]
        outer = scope.parent
        while outer is not None:
            known += outer.bindings.get(name, [])
            outer = outer.parent
        if any(each.kind != "import" or each.full_name != binding.full_name for each in known):
            return False
    return True


def _is_disturbed(program: Program, statement: Statement, top: _Top) -> bool:
    """Return whether code between the top and the import may change the result of the import."""
    script = program.script
    assert top.end is not None
    first, at = _start(program, top.end), _start(program, statement)
    at_once = statement.scope.kind == "module"

    def between(each: Statement | None) -> bool:
        """Return whether a statement may run after the top and before the import."""
        if each is None or each.scope.kind != "module":
            return True
        start = _start(program, each)
        return first <= start and (start < at or not at_once)

    if any(between(binding.statement) for binding in script.module_bindings.get("*", [])):
        return True
    for setting in _SETTINGS:
        name = setting.partition(".")[2]
        given: list[AttributeBinding | ItemBinding] = [*script.attribute_bindings(name)]
        given += script.item_bindings(name)
        for each in given:
            if between(each.binding.statement) and _is_setting(program, each):
                return True
    roots = {module.partition(".")[0] for module in _modules(statement)} - {"tensorflow"}
    return any(
        (always or not libraries.isdisjoint(roots)) and between(site.statement)
        for site, always, libraries in top.calls
    )


def _is_setting(program: Program, each: AttributeBinding | ItemBinding) -> bool:
    """Return whether an assignment sets the environment or the module search path."""
    names = program.names.full_names(each.base, each.binding.scope, each.binding.statement)
    return any(f"{name}.".startswith(("os.environ.", "sys.")) or name == "os" for name in names)


def _read_calls(program: Program) -> Iterator[tuple[Site, bool, frozenset[str]]]:
    """Yield each such call, whether it affects any import, and the libraries concerned."""
    for site in program.script.sites:
        always = False
        libraries: set[str] = set()
        for value in program.names.callee(site):
            if isinstance(value, Library):
                root = value.name.partition(".")[0]
                always = always or value.name.startswith(_DISTURBING) or not is_common(root)
                libraries.add(root)
            elif isinstance(value, Unknown):
                called = root_name(site.node)
                if called is not None:
                    bound = program.names.lookup(called.id, site.scope, site.statement)[1]
                    always = always or not bound
        if always or libraries:
            yield site, always, frozenset(libraries)
