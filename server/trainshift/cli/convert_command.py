"""The command `convert`: its options, and what they mean."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click

from trainshift.cli.options import (
    STANDARD_STREAM,
    SectionedCommand,
    announce_standard_input,
    check_patterns,
    color,
    exclude,
)

_WAY_OUT = "--ignore-versions converts all the same"


class _Line(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A line, or a line of a cell."""

    name = "LINE"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int | None]:
        """`42`, or `3:12`, which is line 12 of cell 3: the line and the cell."""
        numbers = value.split(":")
        if len(numbers) > 2 or not all(number.isdecimal() and int(number) > 0 for number in numbers):
            self.fail(f"{value!r} is neither LINE nor CELL:LINE, which count from 1.", param, ctx)
        return int(numbers[-1]), int(numbers[0]) if len(numbers) == 2 else None


class _ConvertCommand(SectionedCommand):
    sections = {  # noqa: RUF012
        "What to do with the result (the default is to print a diff)": ("write", "output", "check"),
        "What to convert": ("at", "exclude", "ignore_versions"),
        "What to print": ("format_", "color", "quiet", "verbose"),
    }


@click.command(cls=_ConvertCommand)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--write", is_flag=True, help="Change the files in place. Each is replaced completely or not at all."
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(),
    help="Write the converted script to OUT and leave FILE alone; '-' is standard output.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; the exit status says whether a file would change."
)
@click.option(
    "--at",
    type=_Line(),
    help="Convert only the statement at this line of the one FILE; in a notebook CELL:LINE, such as 3:12.",
)
@exclude
@click.option(
    "--ignore-versions",
    is_flag=True,
    help="Convert whatever TensorFlow the requirements or the lock file of the project ask for.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: one document on standard output instead of diff and report.",
)
@color
@click.option("-q", "--quiet", is_flag=True, help="Report only errors and what was refused or withheld.")
@click.option("-v", "--verbose", is_flag=True, help="List every change that was made.")
@click.pass_context
def convert(ctx: click.Context, /, **options: Any) -> None:
    """Rewrite training scripts for Horovod, or show how.

    Without --write, -o or --check a unified diff goes to standard output and nothing is written. The
    report goes to standard error: per file what became of it, with line and column.

    FILE can be a directory: its *.py and *.ipynb files are converted, without what .gitignore or --exclude
    names, hidden directories, virtual environments and symbolic links. A file that is named itself is
    always taken. FILE '-' is standard input; with --write the converted script then goes to standard
    output.

    The Python cells of a notebook are one program. Its diff is shown by cell, and places name the cell,
    counted from 1 among all cells. Nothing but the source of cells that change is written; outputs stay.
    With -o OUT.py the result is a script.

    The result runs on TensorFlow 2.12 to 2.15. Where the project of FILE asks for a later one
    (requirements, pyproject.toml, a lock file, a conda environment), FILE is refused.

    \b
    Examples:
      trainshift convert train.py                     show what would change
      trainshift convert train.py > horovod.patch     keep it; apply with: patch -p1 < horovod.patch
      trainshift convert --write train.py             change the script
      trainshift convert train.py -o train_hvd.py     keep the original
      trainshift convert train.ipynb -o train.py      a script that horovodrun can start
      trainshift convert --at 42 train.py             only the statement at line 42
      trainshift convert --check src/                 for CI: is everything converted?
      trainshift convert - < train.py                 read standard input
      trainshift convert --format json train.py       for programs

    \b
    Exit status:
      0  done, or nothing to do
      1  a script or one of its changes was refused (the rest was converted all the same),
         or --check found a file that would change
      2  wrong usage, or a file could not be read or written
    """
    ctx.exit(_convert(_Options(**options)))


@dataclass(frozen=True)
class _Options:
    """What stands on the command line, by the names of the parameters."""

    paths: tuple[str, ...]
    write: bool
    output: str | None
    check: bool
    at: tuple[int, int | None] | None
    exclude: tuple[str, ...]
    ignore_versions: bool
    format_: str
    color: str
    quiet: bool
    verbose: bool


def _convert(given: _Options) -> int:
    """Check that the options go together, then run; returns the exit status."""
    _check_usage(given)
    from trainshift.cli.report import JsonReporter, Mode, Reporter, TextReporter
    from trainshift.cli.run import At, Request, run
    from trainshift.host.declarations import Declarations

    check_patterns(given.exclude)
    announce_standard_input(given.paths)
    output = given.output or ""
    mode = Mode.WRITE if given.write else Mode.OUTPUT if output else Mode.CHECK if given.check else Mode.DIFF
    reporter: Reporter
    if given.format_ == "json":
        reporter = JsonReporter()
    else:
        shown = "standard output" if output == STANDARD_STREAM else output
        reporter = TextReporter(
            mode, output=shown, colour=given.color, quiet=given.quiet, verbose=given.verbose
        )
    declarations = None if given.ignore_versions else Declarations(_WAY_OUT)
    at = At(*given.at) if given.at else None
    request = Request(given.paths, mode, output, at, given.exclude, not given.quiet, declarations)
    return run(request, reporter)


def _check_usage(given: _Options) -> None:
    """Raise click's UsageError for options that contradict each other or the inputs."""
    if given.write + given.check + (given.output is not None) > 1:
        raise click.UsageError("--write, --output and --check exclude each other.")
    if given.quiet and given.verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    single = len(given.paths) == 1 and not os.path.isdir(given.paths[0])
    for option, is_given in (("--output", given.output is not None), ("--at", given.at is not None)):
        if is_given and not single:
            raise click.UsageError(f"{option} takes exactly one FILE, which is no directory.")
    if given.output == "":
        raise click.UsageError("--output needs the name of a file.")
    to_standard_output = given.output == STANDARD_STREAM or (given.write and STANDARD_STREAM in given.paths)
    if given.format_ == "json" and to_standard_output:
        raise click.UsageError("--format json and the converted script both want standard output.")
