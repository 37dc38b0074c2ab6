"""Options: the parts that all commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from trainshift.core.choices import CHOICES, Choice

STANDARD_STREAM = "-"


class SectionedCommand(click.Command):
    """A command whose help lists its options under headings."""

    sections: dict[str, tuple[str, ...]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section; those without a section go to the last one."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        *_, last = self.sections
        for heading, names in self.sections.items():
            rows = [records.pop(name) for name in names]
            if heading == last:
                rows.extend(records.values())
            with formatter.section(heading):
                formatter.write_dl([row for row in rows if row is not None])


# Options that several commands take.
exclude = click.option(
    "--exclude",
    metavar="PATTERN",
    multiple=True,
    help="In directories, skip what matches this .gitignore pattern ('old/', 'test_*.py'). Repeatable.",
)
color = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="auto: on a terminal, unless NO_COLOR is set; FORCE_COLOR forces it.",
)

as_json = click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: one document instead of the diff and the report.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Report only errors and what was refused.")


class Wanted(Struct, frozen=True):
    """The options for writing and reporting a new text, by parameter name."""

    write: bool
    output: str | None
    check: bool
    format_: str
    color: str
    quiet: bool

    @property
    def is_shown(self) -> bool:
        """Return whether the command only shows a diff."""
        return not (self.write or self.check or self.output is not None)

    def check_usage(self) -> None:
        """Raise click's UsageError for options that contradict each other."""
        if self.write + self.check + (self.output is not None) > 1:
            raise click.UsageError("--write, --output and --check exclude each other.")
        if self.output == "":
            raise click.UsageError("--output needs the name of a file.")
        if self.format_ == "json" and self.output == STANDARD_STREAM:
            raise click.UsageError("--format json and the new text both want standard output.")


class _Version(click.ParamType):  # type: ignore[type-arg]
    """A version, or a constraint as pip reads it."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        problem = CHOICES[param.name].problem(value) if param is not None and param.name is not None else ""
        return self.fail(problem, param, ctx) if problem else value


def choosing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a conversion to a command; their values are None if not given."""
    for choice in reversed(CHOICES.values()):
        flag = f"--{choice.key}"
        kind: Any = _Version() if choice.is_version else None
        if choice.values:
            kind = click.Choice(list(choice.values))
        elif kind is None:
            kind = click.IntRange(choice.least)
        command = click.option(
            f"{flag}/--no-{choice.key}" if choice.is_switch else flag,
            type=None if choice.is_switch else kind,
            default=None,
            metavar=None if choice.is_switch or choice.values or choice.is_version else "N",
            help=_help(choice),
        )(command)
    return command


def _help(choice: Choice) -> str:
    """The help text of an option, with its default."""
    others = (f"{value}: {says}" for value, says in choice.values.items() if value != choice.default)
    default = ("on" if choice.default else "off") if choice.is_switch else choice.default
    ending = f"  [default: {default}]" if default != "" else ""
    return f"{' '.join([choice.says, *others])}{ending}".replace("`", "")


def check_patterns(patterns: tuple[str, ...]) -> None:
    """Raise click's UsageError for an invalid --exclude pattern."""
    from trainshift.host.walk import spec_of

    for pattern in patterns:
        try:
            spec_of([pattern])
        except ValueError:
            raise click.UsageError(f"--exclude {pattern!r} is not a .gitignore pattern.") from None


def announce_standard_input(paths: tuple[str, ...]) -> None:
    """Print to a terminal that the command is waiting for a script."""
    if STANDARD_STREAM in paths and sys.stdin is not None and sys.stdin.isatty():
        click.echo("Reading the script from standard input; Ctrl-D ends it.", err=True)
