"""The directories that a script adds to `sys.path`, by the text of its expressions."""

from __future__ import annotations

import pytest

from trainshift.python.names.search_path import Added, search_path
from trainshift.python.source.source import Source
from trainshift.python.syntax.chunks import ParseFailure, parse
from trainshift.python.syntax.code import Code

PATH = "/repo/apps/a/train.py"
BEFORE = "import os\nimport os.path as osp\nimport sys\nimport pathlib\nfrom pathlib import Path\n"


def added(text: str) -> list[Added]:
    """The directories that the module at `PATH` adds, from its text."""
    chunks = parse(BEFORE + text)
    assert not isinstance(chunks, ParseFailure)
    return search_path(Code(Source(BEFORE + text), chunks), PATH)


@pytest.mark.parametrize(
    ("expression", "directory"),
    [
        ("'../..'", "../.."),
        ("'/opt/lib/'", "/opt/lib"),
        ("os.path.dirname(__file__)", "/repo/apps/a"),
        ("os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", "/repo/apps"),
        ("os.path.join(os.path.dirname(__file__), '..', 'common')", "/repo/apps/common"),
        ("os.path.join(osp.dirname(osp.realpath(__file__)), os.pardir, os.pardir)", "/repo"),
        ("os.path.dirname(__file__) + '/../lib'", "/repo/apps/lib"),
        ("f'{os.path.dirname(__file__)}/../lib'", "/repo/apps/lib"),
        ("str(Path(__file__).resolve().parent.parent)", "/repo/apps"),
        ("str(Path(__file__).parents[2] / 'src')", "/repo/src"),
        ("pathlib.Path(__file__).parent.joinpath('..', 'b').as_posix()", "/repo/apps/b"),
        ("os.path.join(os.getcwd(), 'lib')", "lib"),
        ("os.path.abspath('..')", ".."),
        ("str(Path.cwd().parent)", ".."),
        ("ROOT", "/repo"),
        ("os.path.join(ROOT, 'lib')", "/repo/lib"),
        ("os.environ['LIB']", None),
        ("TWICE", None),
        ("LOOP", None),
        ("Path(__file__).parents[n]", None),
    ],
)
def test_a_directory(expression: str, directory: str | None) -> None:
    names = (
        "ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))\n"
        "TWICE = 'a'\nTWICE = 'b'\nLOOP = LOOP\n"
    )
    found = added(f"{names}sys.path.append({expression})\n")
    assert found == ([] if directory is None else [Added(directory, None)])


def test_the_order_and_the_ways_to_add() -> None:
    text = (
        "from sys import path\nimport sys as system\n"
        "sys.path.insert(0, 'a')\nsystem.path.extend(['b', 'c'])\npath.append('d')\n"
        "if True:\n    sys.path.append('e')\n"
        "def later():\n    sys.path.append('f')\n"
        "names = []\nnames.append('g')\n"
        "sys.path.insert(1, 'h')\nsys.path.insert(len(path), 'i')\nsys.path.insert(-1, 'j')\n"
    )
    assert added(text) == [
        Added("a", 0),
        *(Added(each, None) for each in "bcde"),
        Added("h", 1),
        Added("i", None),
        Added("j", None),
    ]
