"""The command `prove`: its options, its questions and its output (spec.md 10)."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from trainshift import __version__
from trainshift.cli.options import color
from trainshift.cli.streams import heeded
from trainshift.interrupts import end_at_once, interrupt

if TYPE_CHECKING:
    from trainshift.core.choices import Choices
    from trainshift.proving.interpreter import Interpreter
    from trainshift.proving.prove import Request


@click.command()
@click.argument("script", type=click.Path())
@click.argument("arguments", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
@click.option(
    "-np",
    "ranks",
    metavar="N",
    type=click.IntRange(2, 8),
    default=2,
    show_default=True,
    help="Number of ranks.",
)
@click.option(
    "--steps",
    metavar="N",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Stop after this many optimizer steps; 0 runs to the end.",
)
@click.option(
    "--python",
    metavar="PY",
    default="",
    help="The Python that runs the script; it needs TensorFlow and Horovod.",
)
@click.option("--hosts", metavar="HOSTS", default="", help="Hosts on which horovodrun starts the ranks.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="End a run that takes no step for this long.",
)
@click.option(
    "--keep", metavar="DIR", type=click.Path(), default="", help="Run in DIR, and keep all files there."
)
@click.option("-y", "--yes", is_flag=True, help="Run the script without asking.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--html", metavar="FILE", type=click.Path(), default="", help="Also write a page with plots.")
@click.option(
    "--badge", metavar="FILE", type=click.Path(), default="", help="Also write an SVG for a README."
)
@color
@click.pass_context
def prove(ctx: click.Context, /, **options: Any) -> None:
    """Run a script on real ranks, and judge whether the training is correct.

    The original runs in one process, its conversion on -np ranks (a script that uses Horovod already
    runs as it is), in scratch copies of the project. Each claim holds, fails with the line and what to
    do, or was not seen.

    SCRIPT is a script or a notebook; the files that it imports are converted with it. Your files are
    not changed, and data are linked. What SCRIPT writes to absolute paths is written there, and
    reported.

    \b
    Examples:
      trainshift prove train.py                     two ranks, 20 steps
      trainshift prove train.py -- --epochs 2       with arguments of the script
      trainshift prove -np 4 --steps 100 train.py   four ranks, and more steps
      trainshift prove --python ~/tf/bin/python train.py
      trainshift prove --html proof.html train.py   also write a page with plots
      trainshift prove --badge proof.svg train.py   also write a badge for a README

    \b
    Exit status:
      0  what was seen holds
      1  a claim fails, or too little was seen
      2  it could not be run: wrong usage, a refused script, no TensorFlow or Horovod
    """
    # Nothing needs to be cleaned up before processes are started.
    with heeded(end_at_once, interrupt):
        from trainshift.cli.proof_report import Live, show
        from trainshift.host.files import FileProblem
        from trainshift.proving.interpreter import Unfit, find
        from trainshift.proving.machine import machine
        from trainshift.proving.project import own_line
        from trainshift.proving.prove import Request, gpus_here, prove

    try:
        with heeded(end_at_once, interrupt):
            interpreter = find(options["python"])
            if interpreter.doubt and options["format_"] == "text":
                click.echo(interpreter.doubt, err=True)
            before, after, name, variables = projects(options["script"], options["arguments"], interpreter)
            request = Request(
                before,
                after,
                interpreter,
                options["ranks"],
                options["steps"],
                options["keep"],
                options["hosts"],
                options["time_limit"],
                gpus_here(),
                variables,
            )
            prepared(request, options)
        with Live(options["ranks"], options["steps"], options["format_"] == "json") as live:
            result = prove(request, live.tell)
    except (Unfit, FileProblem) as problem:
        fail(options["script"], str(problem), options["format_"])
        ctx.exit(2)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        fail(
            options["script"],
            f"The scratch folder could not be written: {error.strerror}{where}. Make room, or name another "
            "folder: TMPDIR=FOLDER or --keep FOLDER.",
            options["format_"],
        )
        ctx.exit(2)
    result = {
        "version": 1,
        "trainshift": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(request.gpus),
        "script": name,
        "python": interpreter.path,
        "python_version": ".".join(map(str, interpreter.python)),
        "tensorflow": interpreter.tensorflow,
        "horovod": interpreter.horovod,
        "np": options["ranks"],
        "limit": options["steps"],
        "converted": request.is_converted,
        "folder": request.after.top,
        **result,
    }
    for place in (place for claim in result["claims"] for place in claim["places"]):
        place["own"] = own_line(request.before, request.after, place["path"], place["line"])
    is_written = wrote(result, options["html"], options["badge"])
    show(result, options["format_"], options["color"])
    if options["badge"] and is_written:
        from trainshift.proving.badge import line

        click.echo(f"For a README: {line(result, options['badge'], options['html'])}", err=True)
    ctx.exit({"holds": 0, "error": 2}.get(result["verdict"], 1) if is_written else 2)


def wrote(result: dict[str, Any], html: str, picture: str) -> bool:
    """Write the page with plots and the badge, each completely or not at all; print the reason if
    one fails.
    """
    from trainshift.host.files import FileProblem, SourceFile
    from trainshift.host.writing import write_output
    from trainshift.proving.badge import badge
    from trainshift.proving.page import page

    try:
        for path, made in ((html, page), (picture, badge)):
            if path:
                write_output(path, SourceFile(path, b"", "", "utf-8", False, None), made(result))
    except FileProblem as problem:
        click.echo(str(problem), err=True)
        return False
    return True


def prepared(request: Request, options: dict[str, Any]) -> None:
    """Ask whether the script may be run; raises Abort or UsageError if not.

    The destinations of the page and the badge are checked before the runs, which take minutes.
    """
    import os

    for path in filter(None, (options["html"], options["badge"])):
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise click.UsageError(f"{path} cannot be written: {folder} is not a writable folder.")
    if options["yes"]:
        return
    what = "its conversion" if request.is_converted else "it"
    if not sys.stdin or not sys.stdin.isatty():
        raise click.UsageError("This runs the script. Without a terminal, confirm with --yes.")
    click.confirm(
        f"This runs {options['script']} on one process and {what} on {request.ranks} ranks, with all "
        "that it does.\nGo on?",
        abort=True,
        err=True,
        default=True,
    )


def fail(script: str, problem: str, format_: str) -> None:
    """Report why nothing could be run."""
    if format_ == "json":
        import json

        print(
            json.dumps({"version": 1, "script": script, "verdict": "error", "problem": problem, "claims": []})
        )
    else:
        click.echo(f"{script}: {problem}", err=True)


def projects(
    script: str, arguments: tuple[str, ...], interpreter: Interpreter
) -> tuple[Any, Any, str, dict[str, str]]:
    """The original program, the one for the ranks, its name, and the environment variables of both.

    The conversion is for the TensorFlow of the interpreter that runs it.  Raises Unfit or FileProblem.
    """
    import os

    from trainshift.cli.documents import read_document
    from trainshift.cli.programs.sources import Sources, home
    from trainshift.core.choices import KERAS_LEGACY
    from trainshift.engine import conversion
    from trainshift.engine.conversion import Status
    from trainshift.engine.versions.demands import TENSORFLOW, demand_for
    from trainshift.engine.versions.runtime import installed, settled
    from trainshift.host.configuration import ConfigurationProblem, Configurations
    from trainshift.host.declarations import Declarations
    from trainshift.host.environment import prefix_of
    from trainshift.host.files import is_notebook
    from trainshift.host.walk import Input
    from trainshift.proving.interpreter import Unfit
    from trainshift.proving.observed.kerases import FLAG
    from trainshift.proving.project import Project, as_module, top_of

    if os.path.isdir(script):
        raise Unfit("it is a directory; name the script that starts the training.")
    document = read_document(Input(script), script)
    path, here = home(script), os.path.realpath(os.getcwd())
    try:
        choices = Configurations().of(path).settings.choices
    except ConfigurationProblem as problem:
        raise Unfit(str(problem)) from None
    has = installed(demand_for(TENSORFLOW, interpreter.tensorflow, prefix_of(interpreter.path)))
    runtime = Declarations("name another --python", environment=lambda _: has).of(script)
    asked, sources = settled(choices, runtime), Sources()
    # The original does not choose Keras 2 itself if its project requires `tf_keras`; its conversion does.
    variables = {FLAG: "1"} if asked.keras == KERAS_LEGACY else {}
    if is_notebook(script):
        result = conversion.convert(document.text, runtime=runtime, choices=choices, apart=document.starts)
        script_path = os.path.splitext(path)[0] + ".py"
        name = os.path.basename(script_path)
        _, after = document.converted(result)
        files = [script_path]
        before_texts = {script_path: document.content(name).encode()}
        after_texts = {script_path: after.content(name).encode()}
    else:
        result = conversion.convert_program(
            document.text, path, sources.parsed, runtime=runtime, choices=choices
        )
        script_path = path
        files = [path, *(each.path for each in result.files)]
        before_texts = {}
        after_texts = {
            each.path: (document.file if each.path == path else sources.file(each.path, each.before)).encode(
                each.text
            )
            for each in result.files
            if each.text != each.before
        }
        if result.status is Status.CONVERTED and result.text != document.text:
            after_texts[path] = document.file.encode(result.text)
    texts = [document.text, *(each.before for each in result.files)]
    if any(map(imports_horovod, texts)):
        after_texts = before_texts
    elif result.status is Status.REFUSED:
        place = f" (line {result.position[0]})" if result.position else ""
        raise Unfit(f"Trainshift does not convert it{place}: {result.reason}")
    elif against := unsuited(asked, interpreter):
        raise Unfit(against)
    elif result.status is not Status.CONVERTED:
        raise Unfit(f"There is nothing to prove: {result.reason.rstrip('.') or 'it does not train'}.")
    files = [os.path.realpath(each) for each in files]
    command = (os.path.realpath(script_path), *arguments)
    module = None if is_notebook(script) else as_module(command[0], document.text)
    if module:
        here, command = module[0], ("-m", module[1], *arguments)
    top = top_of(here, files)

    def project(texts: dict[str, bytes]) -> Project:
        return Project(
            top, here, command, {os.path.relpath(os.path.realpath(p), top): t for p, t in texts.items()}
        )

    return project(before_texts), project(after_texts), script, variables


def imports_horovod(text: str) -> bool:
    """Return whether a script imports Horovod; its program is then run as it is."""
    import ast

    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return any(name.partition(".")[0] == "horovod" for name in names)


def unsuited(choices: Choices, interpreter: Interpreter) -> str:
    """The reason why the Python cannot run code for the chosen Keras; empty if it can."""
    from trainshift.core.choices import KERAS_2, KERAS_3, KERAS_LEGACY, KERAS_NAMES
    from trainshift.host.pythons.recipe import LINES, release

    is_newer = release(interpreter.tensorflow) >= LINES[-1].first
    if choices.keras not in ((KERAS_2,) if is_newer else (KERAS_3, KERAS_LEGACY)):
        return ""
    why = f"{KERAS_NAMES[choices.keras]} was chosen" + (
        f" ({choices.why_keras})" if choices.why_keras else ""
    )
    return f"{why}, and {interpreter.path} has TensorFlow {interpreter.tensorflow}: name another --python."
