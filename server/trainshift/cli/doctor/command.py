"""The command `doctor`: inspects TensorFlow, Keras and Horovod in a Python, and says how to build what is
missing.
"""

from __future__ import annotations

import click


@click.command(short_help="Check that a Python has a Horovod that works with its TensorFlow.")
@click.option(
    "--python",
    metavar="PYTHON",
    help="The Python to inspect, a path or a name.  [default: python of the PATH]",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--write-patch", metavar="FILE", help="Write Horovod's patch for TensorFlow 2.19 and later to FILE."
)
@click.pass_context
def doctor(ctx: click.Context, python: str | None, format_: str, write_patch: str | None) -> None:
    """Check that a Python has a Horovod that works with its TensorFlow.

    Converted scripts need both. The doctor tells which versions there are, whether Horovod can be loaded and
    what it was built with. If something is missing, it prints the commands that build it, to be copied into a
    shell. It changes nothing itself, and runs nothing but that Python.

    Horovod is built from source, in 2 to 5 minutes. For TensorFlow 2.19 and later its source needs a patch of
    one line, which --write-patch writes.

    \b
    Examples:
      trainshift doctor                                 the Python of your shell
      trainshift doctor --python .venv/bin/python       another one
      trainshift doctor --format json                   for programs
      trainshift doctor --write-patch horovod.patch     a step of the commands it prints

    \b
    Exit status:
      0  Horovod works with TensorFlow there, or the patch was written
      1  something is missing or does not go together
      2  wrong usage, a Python that cannot be run, or a file that cannot be written
    """
    from trainshift.cli.doctor.render import tell

    if write_patch is not None:
        _write(write_patch)
        return
    from trainshift.host.pythons.advice import advise
    from trainshift.host.pythons.installed import NoAnswer, ask

    try:
        installed = ask(python or _default())
    except NoAnswer as error:
        raise click.UsageError(
            f"{error}. Name a Python: trainshift doctor --python .venv/bin/python", ctx
        ) from None
    advice = advise(installed)
    tell(installed, advice, format_)
    ctx.exit(0 if advice.ready else 1)


def _default() -> str:
    """The Python of the shell, which a project's environment puts first; else Trainshift's own."""
    import shutil
    import sys

    return next((found for name in ("python", "python3") if (found := shutil.which(name))), sys.executable)


def _write(path: str) -> None:
    from trainshift.host.pythons.patch import write_patch

    try:
        write_patch(path)
    except FileExistsError:
        raise click.UsageError(f"{path} already exists, with other content. Name another file.") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror or error}") from None
