"""Report the results of a run over many files, and the differences from the last one."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ecosystem.judge import Found, Outcome, normal
from trainshift.engine.conversion import Status

Outcomes = Mapping[str, Outcome]
"""The outcome of each file, by its path in the folder."""

_MOST = 40
"""The largest number of lines of a list that may be long."""


def figures(found: Outcomes) -> Iterator[str]:
    """The lines on one run."""
    yield f"{len(found)} files"
    crashes = [f"{path}: {each.crash}" for path, each in found.items() if each.crash]
    yield from _listed("crashes", crashes)
    times = sorted((each.seconds, path) for path, each in found.items() if each.seconds)
    if times:
        median = statistics.median(seconds for seconds, _ in times)
        yield f"seconds of the processor for check and conversion: median {median:.2f}"
        yield from (f"  {seconds:6.2f}  {path}" for seconds, path in reversed(times[-3:]))
        memory, path = max((each.memory, path) for path, each in found.items())
        yield f"memory: at most {memory} MB ({path})"
    yield from _counted("conversions", Counter(each.status for each in found.values()))
    converted = [each for each in found.values() if each.status == Status.CONVERTED.value]
    yield f"  {sum(not each.doubts for each in converted)} converted without a doubt"
    yield from _counted("rules", Counter(rule for each in converted for rule in each.rules))
    refused = [each for each in found.values() if each.status == Status.REFUSED.value]
    yield from _counted("refusals", Counter(normal(each.reason) for each in refused))
    yield from _listed("unclean results", _unclean(found))
    yield from _counted("findings", Counter(each.kind for _, each in _findings(found)), by_name=True)


def differences(before: Outcomes, after: Outcomes) -> Iterator[str]:
    """Yield the lines about the differences between two runs, for files in both."""
    both = [path for path in after if path in before]
    yield f"against the last run: {len(after) - len(both)} files are new, {len(before) - len(both)} are gone"
    old = {path: before[path] for path in both}
    new = {path: after[path] for path in both}
    for title, lines in (
        ("other conversions", lambda each: (f"{each.status}  {each.reason}".rstrip(),)),
        ("crashes", lambda each: (each.crash,) if each.crash else ()),
        ("unclean results", lambda each: each.unclean),
        ("findings", lambda each: tuple(map(_told, each.findings))),
    ):
        changes = []
        for path in both:
            was, now = Counter(lines(old[path])), Counter(lines(new[path]))
            changes += [f"- {path}: {line}" for line in (was - now).elements()]
            changes += [f"+ {path}: {line}" for line in (now - was).elements()]
        yield from _listed(title, changes)


def sample(found: Outcomes, number: int, seed: int) -> Iterator[str]:
    """The lines on some random warnings, for a person to read."""
    warnings = [(path, each) for path, each in _findings(found) if each.severity == "warning"]
    chosen = random.Random(seed).sample(warnings, min(number, len(warnings)))
    yield f"{len(chosen)} of {len(warnings)} warnings, seed {seed}"
    for path, each in chosen:
        yield f"{path}: {_told(each)}"
        yield f"    {each.quoted}"


def _findings(found: Outcomes) -> Iterator[tuple[str, Found]]:
    for path, outcome in found.items():
        yield from ((path, each) for each in outcome.findings)


def _unclean(found: Outcomes) -> list[str]:
    return [f"{path}: {each}" for path, outcome in found.items() for each in outcome.unclean]


def _told(each: Found) -> str:
    where = f"cell {each.cell}:{each.line}" if each.cell else f"{each.line}"
    return f"{where} {each.kind}: {each.message}"


def _counted(title: str, counts: Counter[str], by_name: bool = False) -> Iterator[str]:
    yield f"{title}: {counts.total()}"
    ordered = sorted(counts.items()) if by_name else counts.most_common()
    yield from (f"  {number:5}  {name}" for name, number in ordered)


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    yield f"{title}: {len(lines)}"
    yield from (f"  {line}" for line in lines[:_MOST])
    if len(lines) > _MOST:
        yield f"  ... and {len(lines) - _MOST} more"
