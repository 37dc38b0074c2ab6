"""Plots of numbers by step as drawings for a page: lines with axes, bars, and a timeline.

Colours are classes (s0, s1, ...) that the page's style defines for light and dark.  Labels are text of the
page wherever possible, so that they keep their size when the drawing is narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import groupby
from math import ceil, floor, log10

from trainshift.proving.style import COLOURS

Numbers = Sequence["float | None"]
Series = tuple[str, Numbers, int]
"""A name, a number for each step (None where there is none), and a colour."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 440, 210, 66, 24, 10, 10
DECADES = 4


def lines(series: Sequence[Series], *, logarithmic: bool = False, from_zero: bool = False) -> str:
    """Lines over steps; empty if there is nothing to draw."""
    known = [value for _, values, _ in series for value in values if value is not None]
    longest = max((len(values) for _, values, _ in series), default=0)
    if not known:
        return ""
    positions, marks = (logarithms if logarithmic else evenly)(known, from_zero)
    last = max(2, longest)

    def across(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / (last - 1)

    def down(value: float) -> float:
        return TOP + (HEIGHT - BOTTOM - TOP) * (1 - positions(value))

    drawn = [
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(at):.1f}" y2="{down(at):.1f}"/>'
        f'<text x="{LEFT - 7}" y="{down(at) + 4:.1f}" text-anchor="end">{text}</text>'
        for at, text in marks
    ]
    drawn += [
        f'<text x="{across(step):.1f}" y="{HEIGHT - 4}" {"text-anchor=end" * (step > 1)}>{step}</text>'
        for step in ticks_of(longest)
    ]
    drawn.append(f'<text x="{LEFT - 7}" y="{HEIGHT - 4}" text-anchor="end">step</text>')
    for name, values, colour in series:
        for piece in pieces(values):
            spots = [f"{across(step):.1f},{down(value):.1f}" for step, value in piece]
            title = f"<title>{escape(name)}</title>"
            if len(spots) == 1:
                x, y = spots[0].split(",")
                drawn.append(f'<circle class="{of(colour)}" cx="{x}" cy="{y}" r="3">{title}</circle>')
            else:
                drawn.append(f'<polyline class="{of(colour)}" points="{" ".join(spots)}">{title}</polyline>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(drawn)}</svg>'


def of(colour: int) -> str:
    """The class of a colour."""
    return f"s{colour % COLOURS}"


def pieces(values: Numbers) -> Iterator[list[tuple[int, float]]]:
    """Yield the parts of a line, by step, with gaps at missing numbers."""
    for known, piece in groupby(enumerate(values, 1), lambda each: each[1] is not None):
        if known:
            yield [(step, value) for step, value in piece if value is not None]


def ticks_of(longest: int) -> list[int]:
    """The steps to label on an axis: the first, the last, and round ones with enough space."""
    width = next(
        each * 10**power for power in range(12) for each in (1, 2, 5) if each * 10**power * 5 >= longest
    )
    return sorted(
        {1, longest, *(each for each in range(width, longest, width) if longest - each > 0.7 * width)}
    )


Scale = tuple[Callable[[float], float], "list[tuple[float, str]]"]
"""The position of a value between 0 and 1, and the values at the axis."""


def evenly(known: Sequence[float], from_zero: bool) -> Scale:
    """An even axis that has round numbers at its ends and between them."""
    low, high = min(known), max(known)
    if low == high == 0:
        return (lambda _: 0.0), [(0.0, "0")]
    if from_zero or 0 <= low < high / 2:
        low = min(0.0, low)
    span = (high - low) or abs(high) or 1.0
    width = next(
        each * 10.0**power
        for power in range(floor(log10(span)) - 1, 310)
        for each in (1, 2, 5)
        if each * 10.0**power * 4.01 >= span
    )
    first, last = floor(low / width + 1e-9), ceil(high / width - 1e-9)
    last = max(last, first + 1)

    def position(value: float) -> float:
        return (value / width - first) / (last - first)

    return position, [(number * width, named(number * width)) for number in range(first, last + 1)]


def logarithms(known: Sequence[float], _: bool) -> Scale:
    """A logarithmic axis, with values that are not positive at its lower end."""
    positive = [value for value in known if value > 0] or [1.0]
    zero = min(known) <= 0
    first = floor(log10(min(positive)) + 1e-9) - zero
    last = max(ceil(log10(max(positive)) - 1e-9), first + 1)

    def position(value: float) -> float:
        return (log10(value) - first) / (last - first) if value > 0 else 0.0

    width = ceil((last - first) / DECADES)
    marks = [(10.0**power, named(10.0**power)) for power in range(last, first - 1, -width)]
    return position, [each for each in marks if position(each[0]) > 0.01 or not zero] + [(0.0, "0")] * zero


def named(value: float) -> str:
    """A number of an axis."""
    return f"{value:.6g}".replace("e-0", "e-").replace("e+0", "e")


def bars(values: Sequence[tuple[str, float]]) -> str:
    """Bars with their numbers; empty if all are 0."""
    most = max((value for _, value in values), default=0.0)
    rows = (
        f"<span>{escape(name)}</span>"
        f"<span class=bar><i class={of(index)} style=width:{value / (most or 1):.1%}></i></span>"
        f"<span class=number>{value:,.0f}</span>"
        for index, (name, value) in enumerate(values)
    )
    return f"<div class=bars>{''.join(rows)}</div>" if most else ""


def timeline(steps: Sequence[float], spans: Sequence[Sequence[float]]) -> str:
    """A timeline of steps, each ending at a line, with the reductions; in seconds from the first."""
    if len(steps) < 2:
        return ""
    whole = steps[-1] or 1.0
    drawn = [f'<rect class="{of(0)}" x="0" y="0" width="1000" height="30"/>']
    drawn += [
        f'<rect class="{of(1)}" x="{1000 * early / whole:.1f}" y="0" '
        f'width="{max(1.5, 1000 * (late - early) / whole):.1f}" height="30"/>'
        for early, late in spans
    ]
    drawn += [
        f'<line class="step" x1="{1000 * at / whole:.1f}" x2="{1000 * at / whole:.1f}" y1="0" y2="30"/>'
        for at in steps[1:-1]
    ]
    return (
        '<svg class="time" viewBox="0 0 1000 30" preserveAspectRatio="none" role="img">'
        f"{''.join(drawn)}</svg>"
        f'<div class="ends"><span>0 ms</span><span>{whole * 1000:,.0f} ms</span></div>'
    )
