"""The fixtures as data: cases of the Markdown files, training scripts, and programs of several files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainshift.core.choices import Choices
from trainshift.dev.examples import fixture_of, read_examples
from trainshift.engine.settings import read_settings
from trainshift.libraries import toml

ROOT = Path(__file__).parents[2] / "fixtures"
SCRIPTS = sorted(folder for folder in (ROOT / "scripts").iterdir() if (folder / "before.py").exists())


@dataclass(frozen=True)
class ProgramFolder:
    """One folder of ``fixtures/programs``.

    `before` are the files of the program by their paths, `after` those that its conversion changes.  The
    commands are words that follow `python`: `train` starts the converted programs, `beside` starts
    unconverted scripts, which may share modules with them.
    """

    folder: Path
    before: dict[str, bytes]
    after: dict[str, bytes]
    train: tuple[tuple[str, ...], ...]
    beside: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        """The name of the program in pytest."""
        return self.folder.name

    @property
    def converted(self) -> dict[str, bytes]:
        """All files of the converted program."""
        return self.before | self.after

    @property
    def starts(self) -> list[str]:
        """The files that its commands start, each once."""
        return [*dict.fromkeys(map(start_of, self.train))]


def start_of(command: Sequence[str]) -> str:
    """The file that a command starts."""
    return command[1].replace(".", "/") + ".py" if command[0] == "-m" else command[0]


def program_in(folder: Path) -> ProgramFolder:
    """The program in a folder of ``fixtures/programs``."""
    said: dict[str, list[str]] = {}
    if (folder / "program.json").exists():
        said = json.loads((folder / "program.json").read_text(encoding="utf-8"))
    before, after = (
        {
            path.relative_to(tree).as_posix(): path.read_bytes()
            for path in sorted(tree.rglob("*"))
            if path.is_file()
        }
        for tree in (folder / "before", folder / "after")
    )
    train, beside = (
        tuple(tuple(shlex.split(command)) for command in said.get(key, default))
        for key, default in (("train", ["train.py"]), ("beside", []))
    )
    return ProgramFolder(folder, before, after, train, beside)


def rewrite_after(program: ProgramFolder, after: dict[str, bytes]) -> None:
    """Replace the expected conversion of a program."""
    shutil.rmtree(program.folder / "after", ignore_errors=True)
    for path, content in after.items():
        place = program.folder / "after" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


PROGRAMS = [program_in(folder) for folder in sorted((ROOT / "programs").iterdir())]


@dataclass
class Case:
    """One ``## heading`` of a fixture file: the script and the blocks that it expects.

    `$0` in the script marks the statement to convert; without it the whole file is converted.  `choices` are
    those of the settings block above it, if there is one.
    """

    path: Path
    heading: str
    before: str
    expected: dict[str, str] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)

    @property
    def name(self) -> str:
        """The name of the case in pytest."""
        return f"{fixture_of(self.path)}: {self.heading}"

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
        settings = read_settings(toml.loads(blocks.pop("toml settings", "")), path.name)
        before = blocks.pop("python before")
        found.append(Case(path, example.heading, before, blocks, settings.choices))
    return found


def section_of(text: str, heading: str) -> tuple[int, int]:
    """The bounds of the section under a ``## heading``."""
    start = re.search(rf"^## {re.escape(heading)}\n", text, re.M)
    assert start is not None
    end = text.find("\n## ", start.end())
    return start.start(), len(text) if end < 0 else end + 1


def rewrite(case: Case, blocks: dict[str, str]) -> None:
    """Replace the expectations of the case by `blocks`, in its file; its prose stays."""
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


def rewrite_blocks(path: Path, heading: str, blocks: Mapping[str, str]) -> None:
    """Replace these blocks of a case in its file, and nothing else."""
    text = path.read_text(encoding="utf-8")
    start, end = section_of(text, heading)
    section = text[start:end]
    for kind, body in blocks.items():
        head, fence, rest = section.partition(f"\n```{kind}\n")
        _, _, after = rest.partition("```\n")
        section = f"{head}{fence}{body}```\n{after}"
    path.write_text(text[:start] + section + text[end:], encoding="utf-8")


TRANSFORM_FILES = sorted((ROOT / "transforms").glob("*.md"))
TRANSFORM_CASES = [case for path in TRANSFORM_FILES for case in cases(path)]
