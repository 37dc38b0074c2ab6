"""The `trainshift` command: parses arguments, and loads the rest only when a command needs it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from trainshift import __version__
from trainshift.cli.check_command import check
from trainshift.cli.convert_command import convert
from trainshift.cli.differentiate_command import differentiate
from trainshift.cli.options import STANDARD_STREAM, color, exclude
from trainshift.cli.streams import exit_statuses, heeded, prepare_streams
from trainshift.interrupts import end_at_once, interrupt
from trainshift.lsp.command import server


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    prepare_streams()
    with exit_statuses():
        cli(prog_name="trainshift")
    sys.exit(0)


# The modules of commands, and the first sentence of their help.
_LOADED_WHEN_ASKED_FOR = {
    "calculus": (
        "trainshift.cli.calculus_command",
        "Run and transform terms of a calculus of differentiation.",
    ),
    "doctor": (
        "trainshift.cli.doctor.command",
        "Check that a Python has a Horovod that works with its TensorFlow.",
    ),
    "prove": (
        "trainshift.cli.prove_command",
        "Run a script on real ranks, and judge whether the training is correct.",
    ),
    "static": (
        "trainshift.cli.static.command",
        "Expand static Paddle functions to graph code, for reading.",
    ),
}
_LONGEST = 100


class _Trainshift(click.Group):
    """A group of commands that helps users who forget the command's name."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn any interruption into an exit status."""
        with exit_statuses(), heeded(interrupt, end_at_once):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, including unloaded ones."""
        return sorted({*super().list_commands(ctx), *_LOADED_WHEN_ASKED_FOR})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name in _LOADED_WHEN_ASKED_FOR:
            module, _ = _LOADED_WHEN_ASKED_FOR[cmd_name]
            command: click.Command = getattr(import_module(module), cmd_name)
            return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands with the first sentences of their help, without importing their modules."""
        sentences = {name: sentence for name, (_, sentence) in _LOADED_WHEN_ASKED_FOR.items()}
        sentences |= {name: each.get_short_help_str(_LONGEST) for name, each in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(sentences.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command in `args`; a script in its place gets a hint."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if (
                args[0] != STANDARD_STREAM
                and not args[0].endswith((".py", ".ipynb"))
                and not os.path.exists(args[0])
            ):
                raise
            hint = f"{error.message} To convert a script: trainshift convert {args[0]}"
            raise click.UsageError(hint, ctx) from None


@click.group(
    cls=_Trainshift,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn a single-GPU TensorFlow training script into a Horovod one.

    Trainshift finds the training loop and edits only what must change for several GPUs. If something
    can't be converted safely, it stops and says where and why. Your script is read, never run, unless you
    ask for it (prove).

    \b
    Examples:
      trainshift check train.py              find what makes it hard to distribute
      trainshift convert train.py            show the changes, write nothing
      trainshift convert --write train.py    make them
      trainshift doctor                      check that Horovod works here
      trainshift prove train.py              run it on two ranks, and see that it holds
      horovodrun -np 2 python train.py       train on two GPUs
      trainshift differentiate loss.py:loss  show a function's gradient
      trainshift static model.py             show the graph that Paddle makes of it
      trainshift rules                       list the rules and the restrictions
      trainshift explain HV04                say what one of them does, and why
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command()
@click.argument("words", nargs=-1, required=True, metavar="CODE|WORDS...")
@click.pass_context
def explain(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a code, with examples, or find the codes and pages that match some words.

    CODE is a code or a name from `trainshift rules`, or a library or a member of one.

    \b
    Examples:
      trainshift explain HV04
      trainshift explain wrap-tape
      trainshift explain learning rate
      trainshift explain ranks hang
      trainshift explain wandb.init
    """
    from trainshift.cli.entries import explained
    from trainshift.cli.rules import UnknownRule, find_rule, print_page
    from trainshift.cli.search import find, print_hits
    from trainshift.host.configuration import ConfigurationProblem, Configurations

    code = " ".join(words)
    try:
        settings = Configurations().of("script.py").settings
    except ConfigurationProblem as problem:
        raise click.UsageError(str(problem), ctx) from None
    try:
        rule = find_rule(code)
    except UnknownRule as error:
        if lines := explained(code, settings.libraries):
            click.echo("\n".join(lines))
            return
        if hits := find(code):
            print_hits(hits, settings.docs_url)
            return
        hint = f" Did you mean {' or '.join(error.similar)}?" if error.similar else ""
        raise click.UsageError(
            f"No code or page matches {code!r}.{hint} `trainshift rules` lists all codes.", ctx
        ) from None
    print_page(rule, settings.docs_url)


@cli.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path())
@exclude
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@color
@click.pass_context
def loops(
    ctx: click.Context, paths: tuple[str, ...], exclude: tuple[str, ...], format_: str, color: str
) -> None:
    """Show the training loops: kind, place, model, optimizer and tape.

    PATH is a script, a notebook or a directory. A file that a script imports is shown with that script; name
    it to see it alone.

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
    """List the rules and the restrictions."""
    from trainshift.cli.rules import print_rules

    print_rules(format_)


for command in (convert, check, differentiate, server):
    cli.add_command(command)
