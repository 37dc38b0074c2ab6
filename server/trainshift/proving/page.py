"""One page about a proof, to be kept and sent: claims, plots and a timeline, without network or script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM = 460, 190, 56, 26
COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1864ab", "#846358", "#495057", "#212529")
MARKS = {"holds": ("✓", "Holds"), "fails": ("✗", "Fails"), "not seen": ("–", "Not seen")}
VERDICTS = {
    "holds": "It holds",
    "fails": "It does not hold",
    "not seen": "Nothing is proven",
    "error": "Could not be run",
}

STYLE = """
:root { --ink: #1b1f24; --soft: #5b6570; --line: #d9dee3; --paper: #fff; --back: #f5f7f8;
  --holds: #2b8a3e; --fails: #c92a2a; --unseen: #946200; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a3adb7; --line: #3a4149; --paper:
#1e2329;
  --back: #14181c; --holds: #69db7c; --fails: #ff8787; --unseen: #ffc078; } }
* { box-sizing: border-box; } body { margin: 0; background: var(--back); color: var(--ink); font:
15px/1.5 system-ui, sans-serif; } main { max-width: 1040px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 10px; } .about { color:
var(--soft); margin: 0 0 22px; } .verdict { display: inline-block; padding: 2px 12px; border-radius:
14px; color: var(--paper); font-weight: 600; } .holds { --mark: var(--holds); } .fails { --mark:
var(--fails); } .not-seen, .error { --mark: var(--unseen); } .verdict { background: var(--mark); }
.claims { list-style: none; margin: 0; padding: 0; background: var(--paper); border: 1px solid
var(--line);
  border-radius: 8px; }
.claims li { display: grid; grid-template-columns: 96px 1fr; gap: 2px 14px; padding: 11px 16px;
  border-top: 1px solid var(--line); }
.claims li:first-child { border-top: 0; } .mark { color: var(--mark); font-weight: 600; white-space:
nowrap; } .title { font-weight: 600; } .says { grid-column: 2; } .do { grid-column: 2; color:
var(--soft); } code { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; } .plots {
display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 16px; } figure {
margin: 0; padding: 12px 14px; background: var(--paper); border: 1px solid var(--line); border-radius:
8px; } figcaption { font-weight: 600; margin-bottom: 4px; } figure p { margin: 2px 0; color:
var(--soft); font-size: 13px; } svg { width: 100%; height: auto; display: block; } svg text { fill:
var(--soft); font: 11px system-ui, sans-serif; } svg .axis { stroke: var(--line); stroke-width: 1; }
.key { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 13px; color: var(--soft); } .key i {
display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 5px; } .wide {
grid-column: 1 / -1; }
"""


def page(result: dict[str, Any]) -> str:
    """The page for what `prove` has given, as its JSON has it."""
    name = escape(result["script"])
    how = "its conversion" if result["converted"] else "the script as it is"
    about = (
        f"{how[:1].upper()}{how[1:]} on {result['np']} ranks, {result['steps']} steps. TensorFlow "
        f"{escape(result['tensorflow'])}, Horovod {escape(result['horovod'])}."
    )
    verdict = result["verdict"]
    body = [
        f"<h1>{name}</h1>",
        f'<p class="about"><span class="verdict {css(verdict)}">{VERDICTS[verdict]}</span> {about}</p>',
        f"<p>{escape(result['problem'])}</p>" if result["problem"] else "",
        '<ul class="claims">',
        *(claim(each) for each in result["claims"]),
        "</ul>",
        *notes(result),
        "<h2>Step by step</h2>",
        '<div class="plots">',
        *plots(result),
        "</div>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {VERDICTS[verdict].lower()}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(filter(None, body))
        + "\n</main></body></html>\n"
    )


def css(verdict: str) -> str:
    """The class of a verdict."""
    return verdict.replace(" ", "-")


def claim(each: dict[str, Any]) -> str:
    """One claim."""
    sign, word = MARKS[each["verdict"]]
    parts = [
        f'<li class="{css(each["verdict"])}" id="{each["id"]}"><span class="mark">{sign} {word}</span>',
        f'<span class="title">{escape(each["title"])}</span><span class="says">{escape(each["says"])}</span>',
    ]
    if each["verdict"] == "fails":
        for place in each["places"]:
            at = f"{place['path']}:{place['line']}"
            rank = f" (rank {place['rank']})" if place["rank"] else ""
            # What shows the page may make a link of what names a place, or a code.
            where = f'data-path="{escape(place["path"])}" data-line="{place["line"]}"'
            text = f"<code {where}>{escape(at)}</code><code>{rank} {escape(place['text'])}</code>"
            parts.append(f'<span class="says">{text}</span>')
        explain = f'<code data-code="{each["code"]}">trainshift explain {each["code"]}</code>'
        read = f" Read: {explain}" if each["code"] else ""
        parts.append(f'<span class="do">{escape(each["do"])}{read}</span>')
    return "".join(parts) + "</li>"


def notes(result: dict[str, Any]) -> list[str]:
    """What was written where it should not have been."""
    found = [
        f"Rank {each['rank']} wrote <code>{escape(each['path'])}</code>"
        for each in result["written_elsewhere"]
    ]
    found += [f"<code>{escape(path)}</code> was changed through a link" for path in result["changed"]]
    return ["<h2>Outside the scratch copy</h2>", *(f"<p>{each}.</p>" for each in found)] if found else []


def plots(result: dict[str, Any]) -> list[str]:
    """All plots; one without data says so."""
    runs = result["runs"]
    names = ["one process" if each["run"] == "original" else f"rank {each['rank']}" for each in runs]
    count = result["steps"]

    def of(key: str) -> list[tuple[str, list[float | None]]]:
        return [(name, cut(each[key], count)) for name, each in zip(names, runs, strict=True)]

    apart = result["differences"]
    return [
        figure(
            "Largest difference of weights between ranks",
            lines([("difference", apart)], logarithmic=any(apart[1:])),
            "Equal from the second step on." if apart and not any(apart[1:]) else "",
        ),
        figure("Learning rate", lines(of("rates")), key=names),
        figure("Loss", lines(of("losses")), "Each rank's own, on its own data.", key=names),
        figure("Samples per second", bars(samples(runs))),
        figure("Compute and allreduce, on rank 0", timeline(result), reducing(result), wide=True),
    ]


def cut(values: Sequence[float | None], count: int) -> list[float | None]:
    """As many values as there are steps on the ranks: one process takes more."""
    return list(values[:count] if count and len(values) > count * 2 else values)


def samples(runs: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    """Samples per second, on one process and on all ranks together."""
    one = sum(each["samples_per_second"] for each in runs if each["run"] == "original")
    ranks = [each["samples_per_second"] for each in runs if each["run"] == "ranks"]
    return [("one process", one), (f"{len(ranks)} ranks", min(ranks, default=0.0) * len(ranks))]


def reducing(result: dict[str, Any]) -> str:
    """How much of the time goes into reductions."""
    part = result["reducing"]
    return "" if part is None else f"{part:.0%} of the time of all steps was spent in reductions."


def figure(title: str, drawing: str, says: str = "", *, key: Sequence[str] = (), wide: bool = False) -> str:
    """A plot with its title."""
    listed = "".join(
        f'<span><i style="background:{COLOURS[index % len(COLOURS)]}"></i>{escape(name)}</span>'
        for index, name in enumerate(key)
    )
    return (
        f"<figure{' class=wide' if wide else ''}><figcaption>{escape(title)}</figcaption>"
        f"{drawing or '<p>Nothing was seen.</p>'}"
        + (f'<div class="key">{listed}</div>' if listed and drawing else "")
        + (f"<p>{escape(says)}</p>" if says and drawing else "")
        + "</figure>"
    )


def lines(series: Sequence[tuple[str, Sequence[float | None]]], *, logarithmic: bool = False) -> str:
    """Lines over steps; empty where there is nothing to draw."""
    known = [value for _, values in series for value in values if value is not None]
    longest = max((len(values) for _, values in series), default=0)
    if not known:
        return ""
    positive = [value for value in known if value > 0]
    floor = min(positive, default=1e-12) / 10

    def scale(value: float) -> float:
        return log10(max(value, floor)) if logarithmic else value

    low = scale(min(known)) if logarithmic else min(0.0, *known)
    high = max(map(scale, known))
    span = (high - low) or 1.0

    def spot(step: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - 8) * (step / max(1, longest - 1))
        y = 8 + (HEIGHT - BOTTOM - 8) * (1 - (scale(value) - low) / span)
        return f"{x:.1f},{y:.1f}"

    drawn = []
    for index, (name, values) in enumerate(series):
        spots = [spot(step, value) for step, value in enumerate(values) if value is not None]
        colour = COLOURS[index % len(COLOURS)]
        dash = "" if index == 0 else f' stroke-dasharray="{7 - min(index, 5)} {1 + min(index, 5)}"'
        drawn.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{" ".join(spots)}">'
            f"<title>{escape(name)}</title></polyline>"
        )
        if len(spots) == 1:
            x, y = spots[0].split(",")
            drawn.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
    top = 10**high if logarithmic else high
    bottom = 0.0 if logarithmic and min(known) <= 0 else 10**low if logarithmic else low
    return svg([*axes(f"{top:.3g}", f"{bottom:.3g}", "1", f"step {longest}"), *drawn])


def bars(values: Sequence[tuple[str, float]]) -> str:
    """Bars with their numbers; empty where all are 0."""
    most = max((value for _, value in values), default=0.0)
    if not most:
        return ""
    drawn = []
    for index, (name, value) in enumerate(values):
        y, length = 30 + index * 62, (WIDTH - 190) * value / most
        drawn.append(f'<text x="0" y="{y + 20}">{escape(name)}</text>')
        drawn.append(
            f'<rect x="90" y="{y}" width="{length:.1f}" height="32" rx="3" fill="{COLOURS[index]}"/>'
        )
        drawn.append(f'<text x="{98 + length:.1f}" y="{y + 20}">{value:,.0f}</text>')
    return svg(drawn)


def timeline(result: dict[str, Any]) -> str:
    """The last steps of rank 0, and what of them were reductions."""
    steps, spans = result["timeline"]["steps"], result["timeline"]["reductions"]
    if len(steps) < 2:
        return ""
    width, whole = 960, steps[-1] or 1.0

    def x(seconds: float) -> float:
        return (width - 4) * seconds / whole + 2

    drawn = [f'<rect x="2" y="14" width="{width - 4}" height="30" fill="{COLOURS[0]}" opacity="0.35"/>']
    drawn += [
        f'<rect x="{x(early):.1f}" y="14" width="{max(0.8, x(late) - x(early)):.1f}" height="30" '
        f'fill="{COLOURS[1]}"/>'
        for early, late in spans
    ]
    drawn += [f'<line class="axis" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="8" y2="50"/>' for at in steps]
    first = result["steps"] - len(steps) + 2
    drawn += [f'<text x="2" y="64">step {max(1, first)}</text>']
    drawn += [f'<text x="{width - 4}" y="64" text-anchor="end">{whole * 1000:.0f} ms</text>']
    key = (
        f'<div class="key"><span><i style="background:{COLOURS[0]};opacity:.35"></i>compute</span>'
        f'<span><i style="background:{COLOURS[1]}"></i>allreduce</span></div>'
    )
    return f'<svg viewBox="0 0 {width} 70" role="img">{"".join(drawn)}</svg>{key}'


def axes(top: str, bottom: str, first: str, last: str) -> list[str]:
    """Two axes and their ends."""
    base = HEIGHT - BOTTOM
    return [
        f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="4" y2="{base}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH}" y1="{base}" y2="{base}"/>',
        f'<text x="{LEFT - 6}" y="14" text-anchor="end">{top}</text>',
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">{bottom}</text>',
        f'<text x="{LEFT}" y="{base + 16}">{first}</text>',
        f'<text x="{WIDTH - 4}" y="{base + 16}" text-anchor="end">{last}</text>',
    ]


def svg(parts: Sequence[str]) -> str:
    """A drawing."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
