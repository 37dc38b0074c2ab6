"""The command `check`: its options and their meaning."""

from __future__ import annotations

import os
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from trainshift.cli.options import (
    STANDARD_STREAM,
    SectionedCommand,
    announce_standard_input,
    check_patterns,
    color,
    exclude,
)
from trainshift.cli.streams import written_to

if TYPE_CHECKING:
    from trainshift.cli.checks.report import CheckReporter
    from trainshift.engine.settings import Severity


class _CheckCommand(SectionedCommand):
    sections = {  # noqa: RUF012
        "What to check": ("select", "ignore", "strict", "exclude", "config", "isolated", "stdin_filename"),
        "What to do with the fixes": ("fix", "diff"),
        "What to print, and the exit status": (
            "format_",
            "output_file",
            "statistics",
            "fail_on",
            "color",
            "quiet",
            "verbose",
        ),
        "How it runs": ("watch", "jobs", "no_cache", "cache_dir"),
    }


@click.command(cls=_CheckCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@click.option(
    "--select",
    metavar="CODES",
    multiple=True,
    help="Check only these codes, whatever the settings say ('TF03,TL'; TL is all TL codes). Repeatable.",
)
@click.option(
    "--ignore",
    metavar="CODES",
    multiple=True,
    help="Ignore these codes, besides those of the settings. Repeatable.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Warn of every violated restriction, even if the conversion handles it.",
)
@exclude
@click.option("--config", metavar="FILE", help="Use these settings for every script.")
@click.option("--isolated", is_flag=True, help="Ignore settings files.")
@click.option(
    "--stdin-filename",
    metavar="FILE",
    help="The name of standard input ('-'), for messages and settings.",
)
@click.option("--fix", is_flag=True, help="Fix violated findings in place, and report the rest.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="json, sarif: one document; github: annotations. All findings, informational ones too.",
)
@click.option(
    "--output-file",
    metavar="FILE",
    type=click.Path(),
    help="Write the report to FILE instead of standard output.",
)
@click.option(
    "--statistics", is_flag=True, help="Print how many findings each code has, and which files took longest."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "information", "hint", "never"]),
    default="warning",
    show_default=True,
    help="The lowest severity that makes the exit status 1.",
)
@color
@click.option("-q", "--quiet", is_flag=True, help="One line per finding, and no summary.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show findings without effect too, and let --fix fix them all."
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Processes to use; by default one per core."
)
@click.option(
    "--no-cache",
    is_flag=True,
    envvar="TRAINSHIFT_NO_CACHE",
    help="Neither read nor write the cache.",
)
@click.option(
    "--cache-dir",
    metavar="DIR",
    envvar="TRAINSHIFT_CACHE_DIR",
    help="Folder of the cache; by default .trainshift_cache in the project's root.",
)
@click.pass_context
def check(ctx: click.Context, /, **options: Any) -> None:
    """Find what makes a script hard to distribute.

    PATH is a script, a notebook, a directory, or '-' for standard input. Warnings are what the conversion
    refuses, withholds or doubts something for; -v shows the other findings too. Nothing is written
    without --fix.

    Settings come from the nearest trainshift.toml, or pyproject.toml with a [tool.trainshift] table, above
    each script. `# trainshift: ignore[TF03]` silences a finding on its line,
    `# trainshift: ignore-file[TF03]` in its file.

    \b
    Examples:
      trainshift check train.py                  the findings of a script
      trainshift check -v src/                   informational ones too
      trainshift check --diff train.py           what the fixes would change
      trainshift check --fix train.py            make them
      trainshift check --select TF03,TL src/     some codes only
      trainshift check --watch src/              again after each change
      trainshift check --format sarif --output-file check.sarif .

    \b
    Exit status:
      0  nothing found at or above --fail-on
      1  something found
      2  wrong usage or settings, or a file could not be read, parsed or written
    """
    ctx.exit(_check(_Options(**options)))


class _Options(Struct, frozen=True):
    """The options of the command line, by parameter name."""

    paths: tuple[str, ...]
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    strict: bool
    exclude: tuple[str, ...]
    config: str | None
    isolated: bool
    stdin_filename: str | None
    fix: bool
    diff: bool
    format_: str
    output_file: str | None
    statistics: bool
    fail_on: str
    color: str
    quiet: bool
    verbose: bool
    watch: bool
    jobs: int | None
    no_cache: bool
    cache_dir: str | None

    @property
    def reads_stream(self) -> bool:
        """Return whether standard input is checked."""
        return STANDARD_STREAM in self.paths

    @property
    def threshold(self) -> Severity | None:
        """The lowest severity that makes the exit status 1."""
        from trainshift.engine.settings import SEVERITIES

        return SEVERITIES.get(self.fail_on)

    @property
    def least(self) -> Severity:
        """The least severity that is shown and fixed."""
        from trainshift.engine.settings import Severity

        quietest = Severity.HINT if self.verbose else Severity.WARNING
        return min(self.threshold or Severity.WARNING, quietest)


def _check(given: _Options) -> int:
    """Check that the options go together, then run; returns the exit status."""
    _check_usage(given)
    announce_standard_input(given.paths)
    if not given.watch:
        return _check_into_file(given)
    from trainshift.cli.checks.watch import watch

    return watch(lambda: _check_into_file(given), given.paths, given.exclude)


def _check_into_file(given: _Options) -> int:
    """Run with standard output redirected to the requested file; returns the exit status."""
    if given.output_file is None:
        return _check_once(given)
    with written_to(given.output_file) as file, redirect_stdout(file):
        return _check_once(given)


def _check_once(given: _Options) -> int:
    from trainshift.cli.checks.check import Action, CheckRequest, run_check
    from trainshift.engine.settings import SettingsError, read_codes
    from trainshift.host.configuration import ConfigurationProblem, Configurations

    reporter = _reporter(given)
    try:
        request = CheckRequest(
            given.paths,
            Configurations(given.config, isolated=given.isolated),
            Action.FIX if given.fix else Action.DIFF if given.diff else Action.NONE,
            read_codes("--select", "", _split(given.select)) if given.select else None,
            read_codes("--ignore", "", _split(given.ignore)),
            given.exclude,
            given.stdin_filename or "",
            given.least,
            given.threshold,
            given.jobs or os.cpu_count() or 1,
            show_progress=not given.quiet,
            is_strict=given.strict,
            keeps=not given.no_cache,
            cache_folder=given.cache_dir or "",
        )
        return run_check(request, reporter)
    except (ConfigurationProblem, SettingsError) as error:
        click.echo(f"Error: {error}", err=True)
        return 2


def _check_usage(given: _Options) -> None:
    """Raise click's UsageError for options that contradict each other or the inputs."""
    for first, second, both in (
        ("--quiet", "--verbose", given.quiet and given.verbose),
        ("--fix", "--diff", given.fix and given.diff),
        ("--config", "--isolated", given.config is not None and given.isolated),
        ("--diff", f"--format {given.format_}", given.diff and given.format_ != "text"),
        ("--statistics", f"--format {given.format_}", given.statistics and given.format_ != "text"),
        ("--diff", "--statistics", given.diff and given.statistics),
        ("--diff", "--output-file", given.diff and given.output_file is not None),
        ("--watch", "--fix", given.watch and given.fix),
        ("--watch", "'-'", given.watch and given.reads_stream),
    ):
        if both:
            raise click.UsageError(f"{first} and {second} exclude each other.")
    if given.output_file in ("", STANDARD_STREAM):
        raise click.UsageError("--output-file needs the name of a file.")
    is_report = given.format_ != "text" or given.output_file is not None
    if given.fix and given.reads_stream and (len(given.paths) > 1 or is_report):
        raise click.UsageError(
            "With '-', --fix prints the fixed script: give no other file, no --format and no --output-file."
        )
    if given.stdin_filename is not None and not given.reads_stream:
        raise click.UsageError("--stdin-filename needs '-' (standard input).")
    check_patterns(given.exclude)


def _reporter(given: _Options) -> CheckReporter:
    from trainshift.cli.checks.report import GithubReporter, JsonCheckReporter, TextCheckReporter

    if given.format_ == "json":
        return JsonCheckReporter()
    if given.format_ == "github":
        return GithubReporter()
    if given.format_ == "sarif":
        from trainshift.cli.checks.sarif import SarifReporter

        return SarifReporter()
    return TextCheckReporter(
        colour=given.color,
        quiet=given.quiet,
        least=given.least,
        statistics=given.statistics,
        diff=given.diff,
        aside=given.fix and given.reads_stream,
    )


def _split(codes: tuple[str, ...]) -> list[str]:
    return [code for listed in codes for code in listed.split(",") if code.strip()]
