"""The fixtures of expanding as data: a script, and calls of its static functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.fixtures import ROOT
from trainshift.core.program import Program
from trainshift.dev.examples import read_examples
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.expanding.door import Expansion, expand


@dataclass(frozen=True)
class ExpansionCase:
    """One ``## heading`` of a file of `fixtures/expansions`.

    `run` are calls, one per line, whose arguments are Python values or NumPy arrays; ``ROWS`` are the numbers
    from 0 to 11 in four rows, and ``array(...)`` is one of float32.  `refused` is the reason why it is not
    expanded, after the code; without calls it is refused.  A script `with CRLF and tabs` is in its fixture
    without them; under `run unchanged` there is nothing to expand.
    """

    path: Path
    heading: str
    script: str
    run: str
    refused: str
    is_expanded: bool

    @property
    def name(self) -> str:
        """The name of the case in pytest."""
        return f"{self.path.stem}: {self.heading}"


def expansion(text: str) -> Expansion:
    """The expansion of a script."""
    script = read_script(text)
    assert isinstance(script, Script)
    return expand(Program(script))


FOREIGN = "python with CRLF and tabs"


def _foreign(text: str) -> str:
    """A script with another system's line endings and tabs."""
    return text.replace("    ", "\t").replace("\n", "\r\n")


EXPANSION_CASES = [
    ExpansionCase(
        path,
        example.heading,
        example.blocks.get("python") or _foreign(example.blocks[FOREIGN]),
        example.blocks.get("run", "") or example.blocks.get("run unchanged", ""),
        example.blocks.get("refused", ""),
        "run" in example.blocks,
    )
    for path in sorted((ROOT / "expansions").glob("*.md"))
    for example in read_examples(path)
]
