"""The command `differentiate`: writes a function's derivative as source code."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from trainshift.cli.options import STANDARD_STREAM, SectionedCommand, Wanted, as_json, color, quiet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainshift.derivatives import Derived, Mode, Refusal, Refused
    from trainshift.host.files import SourceFile

_JSON_VERSION = 1


class _Target(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A function of a file."""

    name = "FILE.py:FUNCTION"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """`model.py:loss`: the file and the function."""
        path, _, function = value.rpartition(":")
        if not path or not function.isidentifier():
            path = value.rstrip(":")
            self.fail(f"Name the function too: trainshift differentiate {path}:FUNCTION", param, ctx)
        if path.lower().endswith(".ipynb"):
            self.fail(f"{path} is a notebook; differentiate its functions in an editor.", param, ctx)
        return path, function


class _Names(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Names of parameters."""

    name = "NAME,..."

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """`x,k`: the names, each once."""
        names = tuple(each.strip() for each in value.split(","))
        wrong = [each for each in names if not each.isidentifier()]
        if wrong or len(set(names)) < len(names):
            self.fail(f"{value!r} is not a list of parameters, such as x,k.", param, ctx)
        return names


class _Name(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The name of a function."""

    name = "NAME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        import keyword

        if not value.isidentifier() or keyword.iskeyword(value):
            self.fail(f"{value!r} cannot be the name of a function.", param, ctx)
        return value


class _DifferentiateCommand(SectionedCommand):
    sections = {  # noqa: RUF012
        "What to do with the result (the default is to print a diff)": ("write", "output", "check"),
        "What to make": ("mode", "wrt", "name"),
        "What to print": ("format_", "color", "quiet"),
    }


@click.command(cls=_DifferentiateCommand)
@click.argument("target", metavar="FILE.py:FUNCTION", type=_Target())
@click.option(
    "--mode",
    type=click.Choice(["forward", "reverse"]),
    default="reverse",
    show_default=True,
    help="forward: the derivative along a direction; reverse: the gradient.",
)
@click.option(
    "--wrt",
    metavar="NAME,...",
    type=_Names(),
    help=("Differentiate by these parameters, in this order. Default: all that can have a derivative."),
)
@click.option(
    "--name", type=_Name(), help="Name of the new function. Default: FUNCTION_grad or FUNCTION_jvp."
)
@click.option("--write", is_flag=True, help="Add the new function to FILE.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=click.Path(),
    help="Write FILE with the new function to OUT ('-' is standard output), and keep FILE.",
)
@click.option(
    "--check",
    is_flag=True,
    help=("Write nothing; exit with status 1 unless FILE already contains this derivative."),
)
@as_json
@color
@quiet
@click.pass_context
def differentiate(ctx: click.Context, /, **options: Any) -> None:
    """Write the derivative of a function below it, as readable Python.

    FILE.py:FUNCTION is a function at the top level of a file. It is read, never run, and the new code imports
    nothing of Trainshift. Functions that it calls are differentiated with it.

    \b
      damped(x, k)                            a function
      damped_grad(x, k, *, value_bar=1.0)     reverse mode: returns value, (x_bar, k_bar)
      damped_jvp(x, k, *, x_dot, k_dot)       forward mode: returns value, value_dot

    Reverse mode gives the gradient by all parameters at once. Forward mode gives the derivative along one
    direction, (x_dot, k_dot), and is the cheaper one for a few parameters.

    By default nothing is written: the diff goes to standard output, the report to standard error. A function
    that cannot be differentiated is refused, with every place and its reason. Made again, the new function
    replaces the old one.

    \b
    Examples:
      trainshift differentiate model.py:loss                   show the gradient, write nothing
      trainshift differentiate model.py:loss --write           put it into the file
      trainshift differentiate model.py:loss --mode forward    the derivative along a direction
      trainshift differentiate model.py:loss --wrt w,b         by these parameters only
      trainshift differentiate model.py:loss_grad --mode forward --wrt w
                                                               Hessian times a vector
      trainshift differentiate model.py:loss -o out.py         keep the original
      trainshift differentiate model.py:loss --check           for CI: is it up to date?

    \b
    Exit status:
      0  done, or nothing to do
      1  the function was refused, or --check found that the file would change
      2  wrong usage, or no such file, function or parameter
    """
    ctx.exit(_differentiate(_Options(**options)))


class _Options(Wanted, frozen=True):
    """The options of the command line, by parameter name."""

    target: tuple[str, str]
    mode: Mode
    wrt: tuple[str, ...] | None
    name: str | None

    @property
    def path(self) -> str:
        """The file as it was named."""
        return self.target[0]


def _differentiate(given: _Options) -> int:
    """Check that the options go together, then make the derivative; returns the exit status."""
    given.check_usage()
    from trainshift.cli.diff import unified_diff
    from trainshift.cli.terminal import describe_defect
    from trainshift.derivatives import Derived, NotFound, derive
    from trainshift.host.files import FileProblem, read

    report = _Report(given)
    try:
        file = read(given.path)
        found = derive(file.text, given.target[1], given.mode, given.wrt, given.name)
        if not isinstance(found, Derived):
            return report.refused(found)
        diff = unified_diff(file.data, file.encode(found.text), file.path)
        written = _deliver(file, found, given)
    except FileProblem as problem:
        return report.failed(problem.message, problem.position)
    except NotFound as problem:
        return report.failed(problem.message)
    except OSError:  # Standard output cannot be written.
        raise
    except Exception as error:
        return report.failed(describe_defect(error), status=1)
    return report.derived(found, diff, file.encoding, written=written)


def _deliver(file: SourceFile, found: Derived, given: _Options) -> bool:
    """Write the new text to its destination; return whether that was done. Raises FileProblem."""
    if given.output == STANDARD_STREAM:
        from trainshift.cli.streams import print_bytes

        print_bytes(file.encode(found.text))
    elif given.output is not None:
        from trainshift.host.writing import write_output

        write_output(given.output, file, found.text)
    elif given.write and found.edits:
        from trainshift.host.writing import write_in_place

        write_in_place(file, found.text, "; use -o OUT")
    else:
        return False
    return True


class _Report:
    """The report, as text for people or as JSON for programs; its methods return the exit status."""

    def __init__(self, given: _Options) -> None:
        from trainshift.cli.terminal import Printer, visible, wants_colour

        self._given = given
        self._visible = visible
        self._path = visible(given.path)
        self._is_json = given.format_ == "json"
        self._colour = wants_colour(sys.stdout, given.color)
        self._printer = Printer(sys.stderr, wants_colour(sys.stderr, given.color))

    def derived(self, found: Derived, diff: bytes, encoding: str, *, written: bool) -> int:
        """Report the derivative, the chosen and omitted parameters, and the next step."""
        from trainshift.cli.diff import decoded, is_text, print_diffs

        given = self._given
        if self._is_json:
            self._print_json(
                "differentiated" if found.edits else "unchanged",
                made=found.made,
                added=list(found.added),
                wrt=list(found.wrt),
                left_out=[{"name": name, "reason": reason} for name, reason in found.left_out],
                shared=_places(found.shared),
                diff=decoded(diff, encoding) if diff else "",
                written=written,
            )
        else:
            if given.is_shown and diff:
                print_diffs([diff], encoding, self._colour)
                if is_text(self._colour) and not given.quiet:
                    self._printer.line()
            if not given.quiet:
                self._tell(found, written=written)
        return int(given.check and bool(found.edits))

    def _tell(self, found: Derived, *, written: bool) -> None:
        given = self._given
        if not found.edits:
            status = "up to date"
        elif given.check:
            status = "would be made"
        else:
            status = "made"
        out = "standard output" if given.output == STANDARD_STREAM else given.output
        where = "" if not written else f", written to {out}" if out else ", written"
        what = "gradient with respect to" if found.mode == "reverse" else "derivative along a direction of"
        self._printer.line(
            (f"{self._path}:{found.function}", "bold"),
            (": ", ""),
            (f"{found.made} {status}", "green"),
            (f" (the {what} {', '.join(found.wrt)}){self._visible(where)}", ""),
        )
        for name, reason in found.left_out:
            self._printer.line((f"    not by {name}: ", "yellow"), (self._visible(reason), ""))
        for each in found.shared:
            said = f"line {each.line}, {each.message}"
            self._printer.line(("    by transposed tangents: ", "yellow"), (self._visible(said), ""))
        others = [each for each in found.added if each != found.made]
        if others and found.edits:
            self._printer.line(("    with ", ""), (", ".join(others), ""))
        if found.edits and given.is_shown:
            step = "Add --write to change the file, or -o OUT to write a new one."
            self._printer.line((f"Nothing was written. {step}", "dim"))
        elif found.edits and given.check:
            self._printer.line(("Nothing was written. Run without --check to see the new function.", "dim"))

    def refused(self, found: Refused) -> int:
        """Every reason with its place; the last line names the function and the mode."""
        if self._is_json:
            self._print_json("refused", refusals=_places(found.refusals))
            return 1
        for each in found.refusals:
            place = f"{self._path}:{each.line}:{each.column}"
            self._printer.line((place, "bold"), (f" {self._visible(each.message)}", ""))
        last = f": {found.function} cannot be differentiated in {found.mode} mode."
        self._printer.line((self._path, "bold"), (": ", ""), ("refused", "red"), (last, ""))
        return 1

    def failed(self, message: str, position: tuple[int, int] | None = None, status: int = 2) -> int:
        """Report an error that occurred before the function was read."""
        if self._is_json:
            self._print_json("error", error=message)
            return status
        place = ":".join([self._path, *map(str, position or ())])
        self._printer.line(
            (place, "bold"), (": ", ""), ("error", "bold red"), (f": {self._visible(message)}", "")
        )
        return status

    def _print_json(self, status: str, **told: object) -> None:
        path, function = self._given.target
        head = {"version": _JSON_VERSION, "path": path, "function": function, "mode": self._given.mode}
        none = {
            "made": "",
            "added": [],
            "wrt": [],
            "left_out": [],
            "refusals": [],
            "diff": "",
            "written": False,
        }
        json.dump({**head, "status": status, **none, "error": None, **told}, sys.stdout, indent=2)
        sys.stdout.write("\n")


def _places(refusals: Iterable[Refusal]) -> list[dict[str, object]]:
    return [{"line": each.line, "column": each.column, "message": each.message} for each in refusals]
