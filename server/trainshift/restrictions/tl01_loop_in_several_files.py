"""A program must have its training loops in one file.

    import pretrain                             # pretrain.py is a script of its own
    pretrain.run()
    model.fit(data)                             model.fit(data)

## Why it matters

A script is converted together with the files that it imports. If you convert one file alone, a loop in
another one is left as it was: on two GPUs it trains a different model in each process.

## What to do

Convert the whole program, or move the second loop into a script of its own.

## What is reported

A script that trains, and imports a file that trains too.

Not reported: two scripts that do not import each other, a loop behind an imported file's own `if __name__ ==
"__main__":`, and one in a function that the program never calls. A module that cannot be found is not
read.

Unknown: a loop in the other file that may train something other than a Keras model.
"""

from __future__ import annotations

import posixpath

from trainshift.core.finding import Related, Verdict
from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.core.rule import Findings
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, Function
from trainshift.python.names.workspace import Workspace
from trainshift.python.source.source import Span
from trainshift.python.syntax.chunk_syntax import Binding
from trainshift.training.loops.loop_kinds import Loop
from trainshift.training.loops.loops import Loops


def check(program: Program, report: Report) -> Findings:
    """Yield a finding for a program that trains in several files, where its script first does so."""
    first: dict[str, Loop] = {}
    for loop in sorted(program.fact(Loops).all, key=lambda loop: not loop.certain):
        first.setdefault(loop.script.path, loop)
    if len(first) < 2:
        return
    files = " and ".join(posixpath.basename(path) for path in first)
    certain = sum(loop.certain for loop in first.values()) > 1
    message = (
        f"This program {'trains' if certain else 'may train'} in {files}. Convert all of it, "
        "not one file: a loop that is left out makes the ranks diverge."
    )
    related = tuple(
        Related(loop.span, f"{loop.call} trains here", loop.script)
        for loop in first.values()
        if loop.script is not program.script
    )
    verdict = Verdict.VIOLATED if certain else Verdict.UNKNOWN
    yield report.finding(verdict, _place(program, list(first.values())), message, related)


def _place(program: Program, loops: list[Loop]) -> Span:
    """The script's own loop; otherwise the import of the function that trains in the second file."""
    own = program.fact(Loops).own
    if own:
        return own[0].span
    workspace = program.script.workspace
    assert workspace is not None
    imports = [each for each in program.script.imports if each.statement is not None]
    later = [loop.script for loop in reversed(loops)]
    found = [
        *(each for home in later for each in imports if home in _homes(program, each)),
        *(
            each
            for home in later
            for each in imports
            if home.path in _run_by(workspace, program.script, each)
        ),
        *imports,
    ]
    assert found[0].statement is not None
    return program.script.statement_span(found[0].statement)


def _homes(program: Program, binding: Binding) -> list[Script]:
    """The files that define an imported object, regardless of files that re-export it."""
    values = program.names.bound(binding)
    return [program.script.home(each.scope) for each in values if isinstance(each, Function | Class)]


def _run_by(workspace: Workspace, script: Script, binding: Binding) -> list[str]:
    """The files that run because of an import, nearest first."""
    found = list(workspace.run_by_import(script, binding))
    for path in found:
        other = workspace.script(path)
        more = workspace.imported_by(other) if other is not None else ()
        found += [each for each in more if each not in found]
    return found
