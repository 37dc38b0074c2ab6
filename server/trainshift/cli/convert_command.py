"""The command `convert`: its options and their meaning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click
from msgspec import Struct

from trainshift.cli.options import (
    STANDARD_STREAM,
    SectionedCommand,
    announce_standard_input,
    as_json,
    check_patterns,
    choosing,
    color,
    exclude,
)
from trainshift.cli.streams import written_to
from trainshift.core.choices import CHOICES, Value

_WAY_OUT = "choose a newer one with --keras or --tensorflow, or add --ignore-versions"


class _Line(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A line, a line of a cell, or a line of another file of the program."""

    name = "LINE"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int | None, str]:
        """`42`, `3:12` for line 12 of cell 3, or `data.py:42`: the line, the cell and the file."""
        home, colon, line = value.rpartition(":")
        numbers = (line,) if not colon or home.endswith(".py") else (home, line)
        if not all(number.isdecimal() and int(number) > 0 for number in numbers):
            expected = "is not LINE, CELL:LINE or FILE.py:LINE, each counted from 1"
            self.fail(f"{value!r} {expected}.", param, ctx)
        return int(line), int(home) if home.isdecimal() else None, "" if home.isdecimal() else home


class _ConvertCommand(SectionedCommand):
    sections = {  # noqa: RUF012
        "What to do with the result (the default is to print a diff)": ("write", "output", "check"),
        "What to convert": ("only", "at", "exclude", "ignore_versions", "config", "isolated"),
        "How to convert it (also settings of the project)": tuple(each.name for each in CHOICES.values()),
        "What to print": ("format_", "report", "color", "quiet", "verbose"),
    }


@click.command(cls=_ConvertCommand)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option(
    "--write",
    is_flag=True,
    help="Change the files in place. All files of a program are replaced, or none of them.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(),
    help="Write the result to OUT and keep the originals: a file for one script ('-' is standard output), a "
    "directory for a program or for several files.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file would change.")
@click.option(
    "--only",
    metavar="FILE",
    type=click.Path(),
    help="Convert only this file of the program.",
)
@click.option(
    "--at",
    type=_Line(),
    help="Convert only the statement at this line of FILE. data.py:42 is a line of another file of its "
    "program, 3:12 is line 12 of a notebook's cell 3.",
)
@exclude
@click.option(
    "--ignore-versions",
    is_flag=True,
    help="Convert even if the project requires other TensorFlow or Keras versions.",
)
@click.option("--config", metavar="FILE", help="Use these settings for every script.")
@click.option("--isolated", is_flag=True, help="Ignore settings files.")
@choosing
@as_json
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(),
    help="Write the report to FILE too, with every change, as `tf_upgrade_v2` does.",
)
@color
@click.option("-q", "--quiet", is_flag=True, help="Report only errors and what was not converted.")
@click.option("-v", "--verbose", is_flag=True, help="List every change.")
@click.pass_context
def convert(ctx: click.Context, /, **options: Any) -> None:
    """Rewrite training programs for Horovod, or show how.

    FILE is the script that you start, a notebook, a directory, or '-' for standard input. The files of the
    project that it imports are converted with it, as one program.

    By default nothing is written: the diff goes to standard output, the report to standard error. If
    something can't be converted safely, the report says where and why.

    A directory stands for every program that starts in it. It skips what .gitignore or --exclude names,
    hidden directories, virtual environments and symbolic links.

    The result runs on TensorFlow 2.12 to 2.15, or on 2.16 to 2.21 where your project or the script asks for
    Keras 3.

    \b
    Examples:
      trainshift convert train.py                     show what would change, in all its files
      trainshift convert train.py > horovod.patch     keep the diff; apply it with patch -p1
      trainshift convert --write train.py             change the files, all or none
      trainshift convert train.py -o train_hvd.py     keep the original of a single script
      trainshift convert train.py -o converted/       write the files that change there
      trainshift convert a.py b.py -o converted/      the same for several files
      trainshift convert train.ipynb -o train.py      a script that horovodrun can start
      trainshift convert train.py --only data.py      only what changes in data.py
      trainshift convert train.py --at 42             only the statement at line 42
      trainshift convert train.py --at data.py:42     only that of data.py
      trainshift convert --check src/                 for CI: is everything converted?
      trainshift convert - < train.py                 read standard input
      trainshift convert --report report.txt src/     every change, for a review
      trainshift convert --format json train.py       for programs

    \b
    Exit status:
      0  done, or nothing to do
      1  a script or one of its changes was refused, or --check found a file that would change
      2  wrong usage, or a file could not be read or written, or is not Python
    """
    chosen = {each.name: options.pop(each.name) for each in CHOICES.values()}
    given = {name: value for name, value in chosen.items() if value is not None}
    ctx.exit(_convert(_Options(**options, chosen=given)))


class _Options(Struct, frozen=True):
    """The options of the command line, by parameter name."""

    paths: tuple[str, ...]
    write: bool
    output: str | None
    check: bool
    only: str | None
    at: tuple[int, int | None, str] | None
    exclude: tuple[str, ...]
    ignore_versions: bool
    config: str | None
    isolated: bool
    format_: str
    report: str | None
    color: str
    quiet: bool
    verbose: bool
    chosen: Mapping[str, Value]


def _convert(given: _Options) -> int:
    """Check that the options go together, then run; returns the exit status."""
    _check_usage(given)
    from trainshift.cli.programs.request import At, Request
    from trainshift.cli.report import Both, JsonReporter, Mode, Reporter, TextReporter
    from trainshift.cli.run import run
    from trainshift.host.configuration import ConfigurationProblem, Configurations
    from trainshift.host.declarations import Declarations
    from trainshift.host.environment import environment

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
    declarations = Declarations(_WAY_OUT, is_ignored=given.ignore_versions, environment=environment)
    at = At(*given.at) if given.at else None
    try:
        configurations = Configurations(given.config, isolated=given.isolated)
    except ConfigurationProblem as problem:
        raise click.UsageError(str(problem)) from None
    request = Request(
        given.paths,
        mode,
        output,
        at,
        given.only or "",
        given.exclude,
        not given.quiet,
        declarations,
        configurations,
        given.chosen,
    )
    if given.report is None:
        return run(request, reporter)
    with written_to(given.report) as file:
        told = TextReporter(mode, output=output, colour="never", quiet=False, verbose=True, file=file)
        return run(request, Both(reporter, told))


def _check_usage(given: _Options) -> None:
    """Raise click's UsageError for options that contradict each other or the inputs."""
    if given.write + given.check + (given.output is not None) > 1:
        raise click.UsageError("--write, --output and --check exclude each other.")
    if given.quiet and given.verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    if given.only is not None and given.at is not None:
        raise click.UsageError("--only and --at exclude each other; --at takes FILE:LINE.")
    if given.config is not None and given.isolated:
        raise click.UsageError("--config and --isolated exclude each other.")
    single = len(given.paths) == 1 and not os.path.isdir(given.paths[0])
    for option, is_given in (("--only", given.only is not None), ("--at", given.at is not None)):
        if is_given and not single:
            raise click.UsageError(f"{option} takes exactly one FILE, not a directory.")
    if given.output is not None and not single:
        from trainshift.cli.programs.request import is_directory

        if STANDARD_STREAM in given.paths or not is_directory(given.output, several=True):
            raise click.UsageError(
                "--output takes the name of a directory (OUT/) for several files or a directory."
            )
    if given.output == "":
        raise click.UsageError("--output needs the name of a file or directory.")
    if given.report in ("", STANDARD_STREAM):
        raise click.UsageError("--report needs the name of a file.")
    if given.only == "":
        raise click.UsageError("--only needs the name of a file.")
    to_standard_output = given.output == STANDARD_STREAM or (given.write and STANDARD_STREAM in given.paths)
    if given.format_ == "json" and to_standard_output:
        raise click.UsageError("--format json and the converted script both want standard output.")
