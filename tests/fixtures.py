"""The fixtures as data: cases of the Markdown files, and the whole training scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from trainshift.dev.examples import read_examples

ROOT = Path(__file__).parents[1] / "fixtures"
SCRIPTS = sorted(folder for folder in (ROOT / "scripts").iterdir() if (folder / "before.py").exists())


@dataclass
class Case:
    """One ``## heading`` of a fixture file: the script and the blocks that it expects.

    `$0` in the script marks the statement to convert; without it the whole file is converted.
    """

    path: Path
    heading: str
    before: str
    expected: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What pytest calls the case."""
        return f"{self.path.stem}: {self.heading}"

    @property
    def line(self) -> int | None:
        """1-based line of the cursor, None without one."""
        head, mark, _ = self.before.partition("$0")
        return head.count("\n") + 1 if mark else None

    @property
    def text(self) -> str:
        """The script without its cursor."""
        return self.before.replace("$0", "")


def cases(path: Path) -> list[Case]:
    """The cases of one fixture file, in order."""
    found = []
    for example in read_examples(path):
        blocks = dict(example.blocks)
        if "python before" not in blocks:
            raise ValueError(f"{path}: no ```python before block under {example.heading!r}")
        found.append(Case(path, example.heading, blocks.pop("python before"), blocks))
    return found


def section_of(text: str, heading: str) -> tuple[int, int]:
    """Where the section under a ``## heading`` begins and ends."""
    start = re.search(rf"^## {re.escape(heading)}\n", text, re.M)
    assert start is not None
    end = text.find("\n## ", start.end())
    return start.start(), len(text) if end < 0 else end + 1


def rewrite(case: Case, blocks: dict[str, str]) -> None:
    """Replace what the case expects by `blocks`, in its file; its prose stays."""
    text = case.path.read_text(encoding="utf-8")
    start, end = section_of(text, case.heading)
    section = text[start:end]
    prose, _, rest = section.partition("```python before\n")
    before, _, _ = rest.partition("```\n")
    new = f"{prose}```python before\n{before}```\n"
    new += "".join(f"\n```{kind}\n{body}```\n" for kind, body in blocks.items() if body)
    if end < len(text):
        new += "\n"
    case.path.write_text(text[:start] + new + text[end:], encoding="utf-8")


TRANSFORM_FILES = sorted((ROOT / "transforms").glob("*.md"))
TRANSFORM_CASES = [case for path in TRANSFORM_FILES for case in cases(path)]
