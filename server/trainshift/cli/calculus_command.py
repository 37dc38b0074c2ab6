"""The command `calculus`: terms of the calculus of differentiation, shown, run, transformed and compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from trainshift import calculus as terms
from trainshift.calculus.values import show_value
from trainshift.cli.options import STANDARD_STREAM, announce_standard_input

if TYPE_CHECKING:
    from trainshift.calculus import Term

_MOST_SHOWN = 2000


@dataclass(frozen=True)
class _Failure(Exception):
    """The reason why there is no result, and the exit status."""

    message: str
    status: int


_file = click.argument("file", metavar="FILE", type=click.Path())
_at = click.option("--at", metavar="X", help="Apply the term to X, a number or any other term.")


@click.group(short_help="Run and transform terms of a calculus of differentiation.")
def calculus() -> None:
    """Run and transform terms of a calculus of differentiation.

    The calculus is a small language in which each rule of differentiation is one line. It shows how
    `trainshift differentiate` makes derivatives: the rules AD01 to AD20 are those of this calculus, and
    `trainshift explain AD19` explains one of them.

    \b
    A term, which raises x to the power of 3, and its ASCII spelling:
      λx. letrec go = λn. case n of done ⇒ 1 or m ⇒ x * go m in go (inr (inr (inr (inl ()))))
      \\x. letrec go = \\n. case n of done => 1 or m => x * go m in go (inr (inr (inr (inl ()))))

    \b
    Terms:
      3  -7/2  1e-3                 numbers: exact, unless they have an exponent
      e + e   e * e                 sums and products
      λx. e   f x   let x = e in e  functions, calls, names
      (e, e)  fst e   snd e         pairs; () is the empty value
      ref e   !e      r := e        references, r += e
      inl e   inr e                 two kinds of values, told apart by
      case e of x ⇒ e or y ⇒ e      ... this
      if e then e else e   true   false   e; e   letrec f = λx. e in e   let (x, y) = e in e
      shift k in e    ⟨e⟩           what follows, up to the nearest ⟨ ⟩, as the function k

    \b
    Examples:
      echo 'λx. x * x + 3 * x' > f.txt
      trainshift calculus run f.txt --at 5                  40
      trainshift calculus run f.txt --at 5 --dual           (40, 13): value and derivative
      trainshift calculus transform reverse f.txt           the derivative, as a term
      trainshift calculus transform reverse f.txt --at 5    13
      trainshift calculus transform cps f.txt | trainshift calculus show --ascii -

    \b
    Exit status:
      0  done; for equal: they are
      1  the term cannot be transformed, or has no value; for equal: they differ
      2  wrong usage, or a file that cannot be read
    """


@calculus.command()
@_file
@click.option("--ascii", "ascii_", is_flag=True, help="Use ASCII only: \\ for λ, => for ⇒, <e>, y^ for ŷ.")
@click.option("--expand", is_flag=True, help="Show the encodings of true, if, letrec, ; and other sugar.")
@click.pass_context
def show(ctx: click.Context, file: str, ascii_: bool, expand: bool) -> None:
    """Show a term in lines, in either spelling.

    FILE holds the term; '-' is standard input.
    """
    _answer(ctx, lambda: terms.show(_term(file), ascii_only=ascii_, expand=expand))


@calculus.command()
@_file
@_at
@click.option("--dual", is_flag=True, help="Compute with dual numbers: a value and its derivative.")
@click.option("--steps", is_flag=True, help="Also print the cost: steps, arithmetic operations, stack.")
@click.pass_context
def run(ctx: click.Context, file: str, at: str | None, dual: bool, steps: bool) -> None:
    """Run a term and print its value.

    FILE holds the term; '-' is standard input. With --dual each number of the result is a pair: the number,
    and its derivative by X.
    """

    def value() -> str:
        term = _term(file)
        found = _run(file, lambda: _evaluated(term, at, dual))
        text = show_value(found.value)
        if steps:
            text += f"\n{found.steps} steps, {found.arithmetic} operations, {found.frames} frames of stack"
        return text

    _answer(ctx, value)


@calculus.command()
@click.argument("rules", metavar="RULES", type=click.Choice([*terms.TRANSFORMATIONS]))
@_file
@_at
@click.pass_context
def transform(ctx: click.Context, rules: str, file: str, at: str | None) -> None:
    """Transform a term and print the result.

    FILE holds the term; '-' is standard input. With --at, the result is run for X, and its value is printed.

    \b
    RULES:
      metacircular    the identity, construct by construct (AD10)
      cps             continuation-passing style, without shift and ⟨ ⟩ (AD11 to AD14)
      cps-shift       the same, made with shift and reset (AD15)
      forward         the derivative of a function, by dual numbers (AD16)
      reverse-shift   the same, backwards from the result, by shift and reset (AD18)
      reverse         the same without them, in continuation-passing style (AD19)
      reverse-meta    as reverse, made with shift and reset (AD20)
    """

    def result() -> str:
        term, chosen = _term(file), terms.TRANSFORMATIONS[rules]
        try:
            if at is None:
                return terms.show(chosen.transform(term))
            ready = chosen.at(term, _argument(at))
        except terms.Refused as reason:
            raise _Failure(f"{_named(file)}: refused: {reason}", 1) from None
        return show_value(_run(file, lambda: terms.evaluate(ready)).value)

    _answer(ctx, result)


@calculus.command()
@click.argument("one", metavar="FILE", type=click.Path())
@click.argument("other", metavar="FILE", type=click.Path())
@click.pass_context
def equal(ctx: click.Context, one: str, other: str) -> None:
    """Compare two terms, apart from the names that they bind.

    One FILE may be '-', standard input.
    """
    if one == other == STANDARD_STREAM:
        raise click.UsageError("Only one of the files can be standard input.", ctx)

    def verdict() -> str:
        found = terms.difference(_term(one), _term(other))
        if found is None:
            return "equal"
        here, there = (_short(terms.show(each)) for each in found)
        raise _Failure(f"not equal: {_named(one)} has\n{here}\nwhere {_named(other)} has\n{there}", 1)

    _answer(ctx, verdict)


def _answer(ctx: click.Context, result: Callable[[], str]) -> None:
    """Print a result, or the reason why there is none; exit with the status."""
    try:
        click.echo(result())
    except _Failure as failure:
        click.echo(failure.message, err=True)
        ctx.exit(failure.status)


def _term(path: str) -> Term:
    """The term of a file."""
    from trainshift.host.files import FileProblem, read, read_stream

    try:
        if path == STANDARD_STREAM:
            announce_standard_input((path,))
            file = read_stream(_named(path), sys.stdin.buffer)
        else:
            file = read(path)
    except FileProblem as problem:
        raise _Failure(f"{_named(path)}: error: {problem.message}", 2) from None
    try:
        return terms.parse(file.text)
    except terms.CalculusSyntaxError as error:
        place = f"{_named(path)}:{error.line}:{error.column}"
        line = file.text.split("\n")[error.line - 1].rstrip("\r")
        mark = "".join(each if each == "\t" else " " for each in line[: error.column - 1])
        raise _Failure(f"{place}: error: {error.reason}\n    {line}\n    {mark}^", 2) from None


def _argument(text: str) -> Term:
    try:
        return terms.parse(text)
    except terms.CalculusSyntaxError as error:
        raise _Failure(f"--at {text!r} is not a term: {error.reason}", 2) from None


def _evaluated(term: Term, at: str | None, dual: bool) -> terms.Run:
    from trainshift.calculus.dual import Duals
    from trainshift.calculus.syntax import App, Const

    if at is None:
        return terms.evaluate(term, Duals() if dual else None)
    argument = _argument(at)
    if not dual:
        return terms.evaluate(App(term, argument))
    if not isinstance(argument, Const) or isinstance(argument.value, tuple):
        raise _Failure(f"--at {at!r} is not a number, which --dual needs", 2)
    return terms.evaluate_dual(term, argument.value)


def _run(path: str, evaluated: Callable[[], terms.Run]) -> terms.Run:
    try:
        return evaluated()
    except terms.Stuck as stuck:
        part = _short(terms.show(stuck.term))
        raise _Failure(f"{_named(path)}: stuck: {stuck.reason}, in\n{part}", 1) from None


def _short(text: str) -> str:
    """A term, indented; its beginning, if it is long."""
    cut = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return "".join(f"    {line}\n" for line in cut.splitlines()).rstrip("\n")


def _named(path: str) -> str:
    return "standard input" if path == STANDARD_STREAM else path
