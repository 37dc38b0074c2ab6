"""The `trainshift` command: parses arguments, and loads the rest only when a command needs it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from typing import Any, NoReturn

import click

from trainshift import __version__
from trainshift.lsp.command import server

INTERRUPTED = 130
BROKEN_PIPE = 141
_WAY_OUT = "--ignore-versions converts all the same"
_STANDARD_STREAM = "-"


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    _prepare_streams()
    with _exit_statuses():
        cli(prog_name="trainshift")
    sys.exit(0)


class _Trainshift(click.Group):
    """The group: helps those who forget the command."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with an exit status for whatever stops it."""
        with _exit_statuses():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name; a script in its place gets a hint."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0] != _STANDARD_STREAM and not args[0].endswith(".py") and not os.path.exists(args[0]):
                raise
            hint = f"{error.message} To convert a script: trainshift convert {args[0]}"
            raise click.UsageError(hint, ctx) from None


class _SectionedCommand(click.Command):
    """A command whose help lists its options under headings."""

    sections: dict[str, tuple[str, ...]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section; what no section names goes to the last one."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        *_, last = self.sections
        for heading, names in self.sections.items():
            rows = [records.pop(name) for name in names]
            if heading == last:
                rows.extend(records.values())
            with formatter.section(heading):
                formatter.write_dl([row for row in rows if row is not None])


class _ConvertCommand(_SectionedCommand):
    sections = {  # noqa: RUF012
        "What to do with the result (the default is to print a diff)": ("write", "output", "check"),
        "What to convert": ("at", "exclude", "ignore_versions"),
        "What to print": ("format_", "color", "quiet", "verbose"),
    }


# Options that several commands take.
_exclude = click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="In directories, skip what matches this .gitignore pattern ('old/', 'test_*.py'). Repeatable.",
)
_color = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto: on a terminal, unless NO_COLOR is set; FORCE_COLOR forces it.",
)


@click.group(
    cls=_Trainshift,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn a single-GPU TensorFlow training script into a Horovod one.

    Trainshift finds the training loop of a script and rewrites the statements that data-parallel
    training needs changed. Everything else stays as it is, byte for byte. It only reads the script:
    neither the script nor TensorFlow is run.

    \b
    Examples:
      trainshift check train.py              tell what stands in the way of a safe conversion
      trainshift convert train.py            show the changes as a diff, write nothing
      trainshift convert --write train.py    make them
      horovodrun -np 2 python train.py       train on two GPUs
      trainshift rules                       list the rules and the restrictions
      trainshift explain HV04                tell why one of them is needed
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command(cls=_ConvertCommand)
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
    metavar="LINE",
    type=int,
    help="Convert only the statement at this line of the one FILE.",
)
@_exclude
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
@_color
@click.option("-q", "--quiet", is_flag=True, help="Report only errors and what was refused or withheld.")
@click.option("-v", "--verbose", is_flag=True, help="List every change that was made.")
@click.pass_context
def convert(ctx: click.Context, /, **options: Any) -> None:
    """Rewrite training scripts for Horovod, or show how.

    Without --write, -o or --check a unified diff goes to standard output and nothing is written. The
    report goes to standard error: per file what became of it, with line and column.

    FILE can be a directory: its *.py files are converted, without what .gitignore or --exclude names,
    hidden directories, virtual environments and symbolic links. A file that is named itself is always
    taken. FILE '-' is standard input; with --write the converted script then goes to standard output.

    The result runs on TensorFlow 2.12 to 2.15. Where the project of FILE asks for a later one
    (requirements, pyproject.toml, a lock file, a conda environment), FILE is refused.

    \b
    Examples:
      trainshift convert train.py                     show what would change
      trainshift convert train.py > horovod.patch     keep it; apply with: patch -p1 < horovod.patch
      trainshift convert --write train.py             change the script
      trainshift convert train.py -o train_hvd.py     keep the original
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
    ctx.exit(_convert(**options))


class _CheckCommand(_SectionedCommand):
    sections = {  # noqa: RUF012
        "What to check": ("select", "ignore", "exclude", "config", "isolated", "stdin_filename"),
        "What to do with the fixes (the default is to mention them)": ("fix", "diff"),
        "What to print, and the exit status": (
            "format_",
            "statistics",
            "fail_on",
            "color",
            "quiet",
            "verbose",
        ),
    }


@cli.command(cls=_CheckCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@click.option(
    "--select",
    metavar="CODES",
    multiple=True,
    help="Check only these codes ('TF03,TL'; TL means all TL codes), whatever the settings say. Repeatable.",
)
@click.option(
    "--ignore",
    metavar="CODES",
    multiple=True,
    help="Do not report these codes, besides the settings'. Repeatable.",
)
@_exclude
@click.option("--config", metavar="FILE", help="Take the settings from this file, for every script.")
@click.option("--isolated", is_flag=True, help="Look for no settings.")
@click.option(
    "--stdin-filename",
    metavar="FILE",
    help="What to call standard input ('-'); its settings are those of FILE.",
)
@click.option("--fix", is_flag=True, help="Make the fixes of the warnings in place; the rest is reported.")
@click.option("--diff", is_flag=True, help="Show what --fix would do as a diff, and write nothing.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="json, sarif: one document; github: annotations. These hold every finding, informational ones too.",
)
@click.option(
    "--statistics", is_flag=True, help="Print the number of findings by code instead of the findings."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "information", "hint", "never"]),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@_color
@click.option("-q", "--quiet", is_flag=True, help="One line per finding, and no summary.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show informational findings too, and let --fix mend them."
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Processes to use; by default one per core."
)
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:
    """Tell what in a training script stands in the way of a safe conversion.

    Checks the restrictions (the codes TF and TL) and prints each finding with its place, its line and
    what it is about. A finding is a warning when the restriction is violated. It is
    informational when that is harmless or cannot be seen; -v shows these. Nothing is written without
    --fix.

    PATH can be a directory, which is walked as `convert` does it, or '-' for standard input.

    Settings are read from the nearest trainshift.toml, or pyproject.toml with a [tool.trainshift]
    table, above each script. A comment `# trainshift: ignore[TF03]` silences a finding on its line, and
    `# trainshift: ignore-file[TF03]` those of its file.

    \b
    Examples:
      trainshift check train.py                  the findings of a script
      trainshift check -v src/                   with what is harmless or unknown
      trainshift check --diff train.py           what the fixes would change
      trainshift check --fix train.py            make them
      trainshift check --select TF03,TL src/     some codes only
      trainshift check --format sarif . > check.sarif

    \b
    Exit status:
      0  nothing found at or above --fail-on
      1  something found
      2  wrong usage or settings, or a file could not be read, parsed or written
    """
    ctx.exit(_check(**options))


@cli.command()
@click.argument("code")
@click.pass_context
def explain(ctx: click.Context, code: str) -> None:
    """Tell what a rule changes or a restriction finds, and why, with examples.

    CODE is a code or a name, as `trainshift rules` and the reports show it.

    \b
    Examples:
      trainshift explain HV04
      trainshift explain TF05
      trainshift explain wrap-tape
    """
    from trainshift.cli.rules import UnknownRule, find_rule, print_page

    try:
        rule = find_rule(code)
    except UnknownRule as error:
        hint = f" Did you mean {' or '.join(error.similar)}?" if error.similar else ""
        raise click.UsageError(
            f"Nothing is called {code!r}.{hint} `trainshift rules` lists them all.", ctx
        ) from None
    print_page(rule)


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@_exclude
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_color
@click.pass_context
def loops(
    ctx: click.Context, paths: tuple[str, ...], exclude: tuple[str, ...], format_: str, color: str
) -> None:
    """Show the training loops of each program: pattern, place, model, optimizer and tape.

    A program is a script and what it calls in the files that it imports. In a directory, a file that
    another one imports is shown with that one's program; name it to see it alone.

    \b
    Examples:
      trainshift loops train.py
      trainshift loops src/ --format json

    \b
    Exit status:
      0  done
      2  wrong usage, or a file that could not be read
    """
    from trainshift.cli.loops import show_loops

    ctx.exit(show_loops(paths, exclude, format_, color))


@cli.command()
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def rules(format_: str) -> None:
    """List the rewriting rules and the restrictions: code, name, and what each one is about."""
    from trainshift.cli.rules import print_rules

    print_rules(format_)


cli.add_command(server)


def _convert(
    paths: tuple[str, ...],
    write: bool,
    output: str | None,
    check: bool,
    at: int | None,
    exclude: tuple[str, ...],
    ignore_versions: bool,
    format_: str,
    color: str,
    quiet: bool,
    verbose: bool,
) -> int:
    """Check that the options go together, then run; returns the exit status."""
    _check_usage(paths, write, output, check, at, format_, quiet and verbose)
    from trainshift.cli.report import JsonReporter, Mode, Reporter, TextReporter
    from trainshift.cli.run import Request, run
    from trainshift.host.declarations import Declarations

    _check_patterns(exclude)
    _announce_standard_input(paths)
    mode = Mode.WRITE if write else Mode.OUTPUT if output else Mode.CHECK if check else Mode.DIFF
    reporter: Reporter
    if format_ == "json":
        reporter = JsonReporter()
    else:
        shown = "standard output" if output == _STANDARD_STREAM else output or ""
        reporter = TextReporter(mode, output=shown, colour=color, quiet=quiet, verbose=verbose)
    declarations = None if ignore_versions else Declarations(_WAY_OUT)
    request = Request(paths, mode, output or "", at, exclude, not quiet, declarations)
    return run(request, reporter)


def _check(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    config: str | None,
    isolated: bool,
    stdin_filename: str | None,
    fix: bool,
    diff: bool,
    format_: str,
    statistics: bool,
    fail_on: str,
    color: str,
    quiet: bool,
    verbose: bool,
    jobs: int | None,
) -> int:
    """Check that the options go together, then run; returns the exit status."""
    for first, second, given in (
        ("--quiet", "--verbose", quiet and verbose),
        ("--fix", "--diff", fix and diff),
        ("--config", "--isolated", config is not None and isolated),
        ("--diff", f"--format {format_}", diff and format_ != "text"),
        ("--statistics", f"--format {format_}", statistics and format_ != "text"),
        ("--diff", "--statistics", diff and statistics),
    ):
        if given:
            raise click.UsageError(f"{first} and {second} exclude each other.")
    reads_stream = _STANDARD_STREAM in paths
    if fix and reads_stream and (len(paths) > 1 or format_ != "text"):
        raise click.UsageError(
            "--fix prints the fixed standard input, so '-' goes alone and with --format text."
        )
    if stdin_filename is not None and not reads_stream:
        raise click.UsageError("--stdin-filename goes with '-'.")
    _check_patterns(exclude)
    from trainshift.cli.check import Action, CheckRequest, run_check
    from trainshift.cli.check_report import (
        CheckReporter,
        GithubReporter,
        JsonCheckReporter,
        TextCheckReporter,
    )
    from trainshift.engine.settings import SEVERITIES, SettingsError, Severity, read_codes
    from trainshift.host.configuration import ConfigurationProblem, Configurations

    threshold = SEVERITIES.get(fail_on)
    least = Severity.HINT if verbose else min(threshold or Severity.WARNING, Severity.WARNING)
    reporter: CheckReporter
    if format_ == "json":
        reporter = JsonCheckReporter()
    elif format_ == "github":
        reporter = GithubReporter()
    elif format_ == "sarif":
        from trainshift.cli.sarif import SarifReporter

        reporter = SarifReporter()
    else:
        reporter = TextCheckReporter(
            colour=color,
            quiet=quiet,
            least=least,
            statistics=statistics,
            diff=diff,
            aside=fix and reads_stream,
        )
    try:
        request = CheckRequest(
            paths,
            Configurations(config, isolated=isolated),
            Action.FIX if fix else Action.DIFF if diff else Action.NONE,
            read_codes("--select", "", _split(select)) if select else None,
            read_codes("--ignore", "", _split(ignore)),
            exclude,
            stdin_filename or "",
            least,
            threshold,
            jobs or os.cpu_count() or 1,
            show_progress=not quiet,
        )
        _announce_standard_input(paths)
        return run_check(request, reporter)
    except (ConfigurationProblem, SettingsError) as error:
        click.echo(f"Error: {error}", err=True)
        return 2


def _split(codes: tuple[str, ...]) -> list[str]:
    return [code for listed in codes for code in listed.split(",") if code.strip()]


def _check_patterns(patterns: tuple[str, ...]) -> None:
    from trainshift.host.walk import spec_of

    for pattern in patterns:
        try:
            spec_of([pattern])
        except ValueError:
            raise click.UsageError(f"--exclude {pattern!r} is not a .gitignore pattern.") from None


def _announce_standard_input(paths: tuple[str, ...]) -> None:
    if _STANDARD_STREAM in paths and sys.stdin is not None and sys.stdin.isatty():
        click.echo("Reading the script from standard input; Ctrl-D ends it.", err=True)


def _check_usage(
    paths: tuple[str, ...],
    write: bool,
    output: str | None,
    check: bool,
    at: int | None,
    format_: str,
    quiet_and_verbose: bool,
) -> None:
    """Raise click's UsageError for options that contradict each other or the inputs."""
    if write + check + (output is not None) > 1:
        raise click.UsageError("--write, --output and --check exclude each other.")
    if quiet_and_verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    single = len(paths) == 1 and not os.path.isdir(paths[0])
    for option, given in (("--output", output is not None), ("--at", at is not None)):
        if given and not single:
            raise click.UsageError(f"{option} takes exactly one FILE, which is no directory.")
    if at is not None and at < 1:
        raise click.UsageError("--at counts lines from 1.")
    if output == "":
        raise click.UsageError("--output needs the name of a file.")
    to_standard_output = output == _STANDARD_STREAM or (write and _STANDARD_STREAM in paths)
    if format_ == "json" and to_standard_output:
        raise click.UsageError("--format json and the converted script both want standard output.")


@contextmanager
def _exit_statuses() -> Iterator[None]:
    """Turn an interrupt, a reader that stops early and a full disk into an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _abandon_standard_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        _abandon_standard_output()
        click.echo(f"Error: standard output cannot be written: {error.strerror or error}", err=True)
        sys.exit(2)


def _prepare_streams() -> None:
    """Make sure that both output streams exist, take every character, and write all or raise.

    An unbuffered stream (PYTHONUNBUFFERED) would silently drop what a full disk does not take.
    The streams opened here live as long as the process.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = TextIOWrapper(BufferedWriter(_Closed()))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and isinstance(stream.buffer, RawIOBase):
            stream = open(stream.fileno(), "w", encoding=stream.encoding, buffering=1, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Closed(RawIOBase):
    """Stands for a standard output that the caller closed: using it is an error, having it is none."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise OSError(errno.EBADF, "it is closed")


def _abandon_standard_output() -> None:
    """Point standard output at nothing, so that the final flush of what it still holds cannot fail."""
    nothing = open(os.devnull, "w")  # noqa: SIM115
    with suppress(OSError, ValueError):
        os.dup2(nothing.fileno(), sys.stdout.fileno())
    sys.stdout = nothing
