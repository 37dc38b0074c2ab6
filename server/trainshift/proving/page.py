"""A page about a proof, to keep and send: claims, plots and a timeline, without network or script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Any

from trainshift.proving.judging.seen import counted
from trainshift.proving.plots import Numbers, Series, bars, lines, of, timeline
from trainshift.proving.style import STYLE
from trainshift.proving.words import VERDICTS, about, at, count, headline, notes, verdict

MARKS = {"holds": ("✓", "Holds"), "fails": ("✗", "Fails"), "not seen": ("–", "Not seen")}


def page(result: dict[str, Any]) -> str:
    """The page for the JSON result of `prove`."""
    name, what = escape(result["script"]), verdict(result)
    body = [
        "<header>",
        f'<p class="made">Proof by Trainshift {escape(result["trainshift"])}</p>',
        f"<h1>{name}</h1>",
        '<div class="about">',
        f'<p class="headline"><span class="verdict {css(result["verdict"])}">{what}</span>'
        f"<strong>{headline(result)}</strong></p>"
        if result["claims"]
        else "</p>",
        f"<p>{count(result)}</p>" if {each["verdict"] for each in result["claims"]} != {"holds"} else "",
        *(f"<p>{escape(each)}</p>" for each in notes(result)),
        "</div>",
        facts(result),
        "</header>",
        f"<p>{escape(result['problem'])}</p>" if result["problem"] else "",
        '<ul class="claims">' if result["claims"] else "",
        *(claim(each) for each in result["claims"]),
        "</ul>" if result["claims"] else "",
        "<h2>Step by step</h2>",
        '<div class="plots">',
        *plots(result),
        "</div>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {VERDICTS[result['verdict']].lower()}</title><style>{STYLE}</style></head>\n"
        f'<body><main data-folder="{escape(result["folder"])}">\n'
        + "\n".join(filter(None, body))
        + "\n</main></body></html>\n"
    )


def facts(result: dict[str, Any]) -> str:
    """The facts of a run: its time, software and machine."""
    how, made = about(result), datetime.fromisoformat(result["date"])
    software = (
        f"TensorFlow {result['tensorflow']}, Horovod {result['horovod']}, Python {result['python_version']}"
    )
    rows = [
        ("Run", f"{how[:1].upper()}{how[1:]}"),
        ("Date", f"{made.day} {made:%B %Y, %H:%M} UTC"),
        ("Software", software),
        ("Machine", result["machine"]),
    ]
    listed = "".join(f"<div><dt>{what}</dt><dd>{escape(text)}</dd></div>" for what, text in rows)
    return f'<dl class="facts">{listed}</dl>'


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
            # A viewer of the page may turn elements that name a file of the user, or a code, into links.
            own = f' data-path="{escape(place["path"])}" data-line="{place["own"]}"' if place["own"] else ""
            text = f"<code{own}>{escape(at(place))}</code><code> {escape(place['text'])}</code>"
            parts.append(f'<span class="says">{text}</span>')
        parts.append(f'<span class="do">{escape(each["do"])}</span>')
        if each["code"]:
            explain = f'<code data-code="{each["code"]}">trainshift explain {each["code"]}</code>'
            parts.append(f'<span class="read">Read: {explain}</span>')
    return "".join(parts) + "</li>"


def plots(result: dict[str, Any]) -> list[str]:
    """All plots; one without data shows that it has none."""
    apart = result["differences"]
    is_apart = any(apart[1:])
    rates, losses = by_step(result, "rates"), by_step(result, "losses")
    return [
        figure(
            "Largest difference of weights between ranks",
            lines([("largest difference", apart, 0)], logarithmic=is_apart, from_zero=True),
            says=[*compared(apart, is_apart), *broken([("the difference", apart, 0)])],
        ),
        figure("Learning rate", lines(rates, from_zero=True), key(rates)),
        figure("Loss", lines(losses), key(losses), ["Of each rank on its own data.", *broken(losses)]),
        figure("Samples per second", bars(samples(result["runs"]))),
        figure(
            "Compute and allreduce, on rank 0",
            timeline(result["timeline"]["steps"], result["timeline"]["reductions"]),
            key([("compute", (), 0), ("allreduce", (), 1)]),
            timed(result),
            wide=True,
        ),
    ]


def by_step(result: dict[str, Any], what: str) -> list[Series]:
    """The numbers of each process; processes with equal numbers share a line.

    A single process takes more steps than each rank: only as many as the ranks took are shown.
    """
    count, found = result["steps"], dict[tuple[float | None, ...], list[int]]()
    for number, run in enumerate(result["runs"]):
        values = run[what]
        values = values[:count] if count and len(values) > count * 2 else values
        found.setdefault(tuple(values), []).append(number)
    return [
        (called([result["runs"][number] for number in numbers]), values, numbers[0])
        for values, numbers in found.items()
    ]


def called(runs: Sequence[dict[str, Any]]) -> str:
    """The common name of processes in a legend."""
    one = ["one process" for run in runs if run["run"] == "original"]
    ranks = [run["rank"] for run in runs if run["run"] != "original"]
    if len(ranks) > 2 and ranks == [*range(ranks[0], ranks[-1] + 1)]:
        named = f"ranks {ranks[0]} to {ranks[-1]}"
    else:
        named = f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
    return ", ".join([*one, named] if ranks else one)


def compared(apart: Numbers, is_apart: bool) -> list[str]:
    """An explanation of a difference of weights."""
    if is_apart:
        return ["The scale is logarithmic."]
    return ["Equal from the second step on." if apart[:1] != [0] else "Equal after every step."]


def broken(series: Sequence[Series]) -> list[str]:
    """The first steps at which a series is not a number."""
    found: dict[str, list[str]] = {}
    for name, values, _ in series:
        if None in values:
            found.setdefault(when(values), []).append(name)
    return [f"No finite number {since}: {', '.join(names)}." for since, names in found.items()]


def when(values: Numbers) -> str:
    """The steps without a number, in words."""
    missing = [step for step, value in enumerate(values, 1) if value is None]
    if missing[-1] == len(values) and len(missing) == len(values) - missing[0] + 1:
        return f"from step {missing[0]} on"
    return f"at {counted(len(missing), 'step')}, first at step {missing[0]}"


def samples(runs: Sequence[dict[str, Any]]) -> list[tuple[str, float]]:
    """Samples per second, on one process and on all ranks together."""
    one = sum(each["samples_per_second"] for each in runs if each["run"] == "original")
    ranks = [each["samples_per_second"] for each in runs if each["run"] == "ranks"]
    return [("one process", one), (f"{len(ranks)} ranks", min(ranks, default=0.0) * len(ranks))]


def timed(result: dict[str, Any]) -> list[str]:
    """The steps in the timeline, and the part of their time that goes into reductions."""
    shown, last, part = len(result["timeline"]["steps"]) - 1, result["steps"], result["reducing"]
    first = max(1, last - shown + 1)
    found = [f"Steps {first} to {last}; each ends at a line." if shown > 1 else f"Step {last}."]
    return found + (
        [f"{part:.0%} of the time of all steps was spent in reductions."] if part is not None else []
    )


def figure(title: str, drawing: str, key: str = "", says: Sequence[str] = (), *, wide: bool = False) -> str:
    """A plot with its title."""
    below = key + "".join(f"<p>{escape(each)}</p>" for each in says)
    return (
        f"<figure{' class=wide' if wide else ''}><figcaption>{escape(title)}</figcaption>"
        f"{drawing + below if drawing else '<p>Nothing was seen.</p>'}</figure>"
    )


def key(series: Sequence[Series]) -> str:
    """The legend: the colour of each series."""
    listed = "".join(f'<span><i class="{of(colour)}"></i>{escape(name)}</span>' for name, _, colour in series)
    return f'<div class="key">{listed}</div>'
