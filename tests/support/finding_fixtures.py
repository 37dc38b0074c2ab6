"""The fixtures of the restrictions as data: a script, its findings, and the result of fixing them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from support.fixtures import ROOT, section_of
from trainshift.core.finding import Finding
from trainshift.core.program import Program
from trainshift.dev.examples import read_examples, verdicts
from trainshift.engine.findings import find
from trainshift.engine.workspace import files_in_memory, read_linked
from trainshift.python.names.script import Script
from trainshift.python.source.edit import apply, merge
from trainshift.python.source.source import Source, Span

RESTRICTION_FILES = sorted((ROOT / "restrictions").glob("*.md"))
STATIC_FILES = sorted((ROOT / "static_graphs").glob("*.md"))


@dataclass(frozen=True)
class FindingCase:
    """One ``## heading`` of a restriction's fixture file.

    `script` is the ```` ```python ```` block; `others` are further files of its workspace, by path (blocks
    that begin ```` ```python helpers/train.py ````).  `findings` and `fixed` are the expectations: the
    findings of the file's own code, and the text after all of its fixes (empty if there are none). `run` are
    statements that use a static function (```` ```run ````), with their outcomes on real Paddle.
    """

    path: Path
    heading: str
    script: str
    others: dict[str, str]
    findings: str
    fixed: str
    run: str = ""

    @property
    def name(self) -> str:
        """The name of the case in pytest."""
        return f"{self.code}: {self.heading}"

    @property
    def ended(self) -> dict[str, str]:
        """The end of `run` on Paddle and in dygraph, by mode; in the mode `written` its decorators decide."""
        return dict(re.findall(r"^# (\w+): (\w+)", self.run, re.M))

    @property
    def code(self) -> str:
        """The restriction that the file is about."""
        return self.path.stem[:4].upper()

    @property
    def verdicts(self) -> set[str]:
        """The expected verdicts; none for a script that satisfies the restriction."""
        return verdicts(self.findings)


def finding_cases(path: Path) -> list[FindingCase]:
    """The cases of one fixture file, in order."""
    found = []
    for example in read_examples(path):
        blocks = dict(example.blocks)
        if "python" not in blocks:
            raise ValueError(f"{path}: no ```python block under {example.heading!r}")
        script, findings = blocks.pop("python"), blocks.pop("findings", "")
        fixed, run = blocks.pop("python fixed", ""), blocks.pop("run", "")
        others = {kind.removeprefix("python "): body for kind, body in blocks.items()}
        found.append(FindingCase(path, example.heading, script, others, findings, fixed, run))
    return found


def program_of(text: str, others: dict[str, str]) -> Program:
    """The program of a script and the files beside it."""
    files = files_in_memory({f"/workspace/{path}": body for path, body in others.items()})
    script = read_linked(text, "/workspace/main.py", files)
    assert isinstance(script, Script), script
    return Program(script)


def shown(program: Program, code: str) -> str:
    """The findings of one restriction in a fixture's format.

    Per finding: ``line:column code verdict message``, the source line with ``~`` under the region, and the
    other places as ``- line:column message``.
    """
    found = find(program, {code})
    assert found.defects == ()
    return "".join(_shown(program.script.source, each) for each in found.found)


def _shown(source: Source, finding: Finding) -> str:
    line, column = source.position(finding.span.start)
    lines = [f"{line}:{column} {finding.code} {finding.verdict.value} {finding.message}"]
    lines += _underlined(source, finding.span)
    for related in finding.related:
        home = related.script.source if isinstance(related.script, Script) else source
        where = ":".join(str(number) for number in home.position(related.span.start))
        file = "" if related.script is None else f"{posixpath.basename(related.script.path)}:"
        lines.append(f"- {file}{where} {related.message}")
    return "".join(f"{line}\n" for line in lines)


def _underlined(source: Source, span: Span) -> list[str]:
    start, end = source.line_start(span.start), source.line_end(span.start)
    width = max(1, min(span.end, end) - span.start)
    return [source.text[start:end], " " * (span.start - start) + "~" * width]


def fixed(text: str, others: dict[str, str], code: str) -> str:
    """The script after every fix of one restriction, applied until none is left; empty if there is none."""
    before = text
    for _ in range(10):
        found = find(program_of(text, others), {code}).found
        changes = [finding.fix for finding in found if finding.fix is not None]
        if not changes:
            return text if text != before else ""
        plan = merge(changes)
        after = apply(text, plan.edits)
        assert after != text, "a fix that changes nothing"
        text = after
    raise AssertionError("the fixes never come to an end")


def rewrite_case(case: FindingCase, findings: str, fixed_text: str) -> None:
    """Replace the expectations of the case in its file; its prose and scripts stay."""
    text = case.path.read_text(encoding="utf-8")
    start, end = section_of(text, case.heading)
    section = text[start:end]
    kept = re.sub(r"\n*^```(?:findings|python fixed)\n.*?^```\n", "\n", section, flags=re.M | re.S)
    new = kept.rstrip("\n") + "\n"
    for kind, body in (("findings", findings), ("python fixed", fixed_text)):
        new += f"\n```{kind}\n{body}```\n" if body else ""
    if end < len(text):
        new += "\n"
    case.path.write_text(text[:start] + new + text[end:], encoding="utf-8")


def rewrite_run(case: FindingCase, run: str) -> None:
    """Replace the case's statements, with their outcomes, in its file."""
    text = case.path.read_text(encoding="utf-8")
    start, end = section_of(text, case.heading)
    section = text[start:end].replace(f"```run\n{case.run}```\n", f"```run\n{run}```\n")
    case.path.write_text(text[:start] + section + text[end:], encoding="utf-8")


STATIC_CASES = [case for path in STATIC_FILES for case in finding_cases(path)]
FINDING_CASES = [case for path in RESTRICTION_FILES for case in finding_cases(path)]
