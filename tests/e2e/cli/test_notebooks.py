"""Notebooks on the command line: reading, showing, and the bytes written."""

from __future__ import annotations

import ast
import io
import json
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.cli.notebooks import (
    ALIAS,
    CELLS,
    CHECKED,
    LOOP,
    MODEL,
    STEP,
    TRAINER,
    USING,
    cut,
    document,
    notebook,
    sources,
)
from e2e.cli.test_check_formats import SCHEMA
from support.fixtures import SCRIPTS
from trainshift.cli.checks.check import Job, check_file
from trainshift.cli.main import cli
from trainshift.engine.cells import Cells, covered
from trainshift.engine.conversion import Status, convert
from trainshift.host.files import FileProblem, decode
from trainshift.host.notebooks import read_notebook
from trainshift.host.walk import Input
from trainshift.python.source.edit import Edit

SETUP = """\
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices('GPU')
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(
        gpus[hvd.local_rank() % len(gpus)], 'GPU'
    )
"""


def run(*args: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(cli, args, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def nb(here: Path) -> Path:
    """Write nb.ipynb, which converts."""
    path = here / "nb.ipynb"
    path.write_text(notebook(), encoding="utf-8")
    return path


@pytest.fixture
def checked(here: Path) -> Path:
    """Write nb.ipynb, whose cell 3 violates a restriction."""
    path = here / "nb.ipynb"
    path.write_text(notebook(CHECKED), encoding="utf-8")
    return path


class TestConvert:
    def test_shows_the_diff_by_cell_and_places_with_cells(self, nb: Path) -> None:
        before = nb.read_bytes()
        result = run("convert", "-v", "nb.ipynb")
        assert result.exit_code == 0
        headers = [line.rstrip("\t") for line in result.stdout.splitlines() if line.startswith("+++")]
        assert headers == [f"+++ b/nb.ipynb:cell {number}" for number in (1, 3, 4, 5)]
        assert (
            "@@ -1,3 +1,3 @@\n # 🎉\n-opt = tf.keras.optimizers.Adam(1e-3)\n"
            "+opt = tf.keras.optimizers.Adam(1e-3 * hvd.size())\n" in result.stdout
        )
        assert "No newline" not in result.stdout
        assert "    nb.ipynb:cell 3:2:1: HV02 Scale the learning rate" in result.stderr
        assert "    nb.ipynb:cell 5:4:5: HV07 Print on rank 0 only\n" in result.stderr
        assert nb.read_bytes() == before

    def test_writes_nothing_but_the_sources_that_change(self, nb: Path) -> None:
        nb.chmod(0o640)
        wanted = json.loads(nb.read_text(encoding="utf-8"))
        told = run("convert", "--write", "nb.ipynb").stderr.splitlines()
        assert told[0] == "nb.ipynb: converted (5 changes), written"
        assert [each.split(": ")[1] for each in told[1:]] == ["HV15 decided"]
        imports, _, model, _, loop = sources(nb.read_text(encoding="utf-8"))
        assert imports == f"{CELLS[0][1]}\n{SETUP}hvd_broadcast_done = False"
        assert model == MODEL.replace("Adam(1e-3)", "Adam(1e-3 * hvd.size())")
        assert loop == LOOP.replace("    print(i)", "    if hvd.rank() == 0:\n        print(i)")
        for cell, text in zip(wanted["cells"], sources(nb.read_text(encoding="utf-8")), strict=True):
            cell["source"] = text.splitlines(keepends=True)
        assert nb.read_text(encoding="utf-8") == json.dumps(wanted, indent=1, ensure_ascii=False) + "\n"
        assert nb.stat().st_mode & 0o777 == 0o640
        # A second run changes nothing.
        again = nb.stat()
        assert run("convert", "--check", "nb.ipynb").exit_code == 0
        assert "already distributed" in run("convert", "--write", "nb.ipynb").stderr
        assert nb.stat().st_ino == again.st_ino

    def test_gives_a_script_that_python_can_read(self, nb: Path) -> None:
        assert run("convert", "nb.ipynb", "-o", "out.py").exit_code == 0
        script = Path("out.py").read_text(encoding="utf-8")
        ast.parse(script)
        assert script.startswith(
            "# %matplotlib inline\n# !pip install tensorflow 🎉\nimport tensorflow as tf\n"
        )
        assert "\n\n# %%time\nfor i in range(10):\n" in script
        assert convert(script).status is Status.ALREADY_DISTRIBUTED

    def test_gives_a_notebook(self, nb: Path) -> None:
        assert run("convert", "nb.ipynb", "-o", "out.ipynb").exit_code == 0
        stream = run("convert", "nb.ipynb", "-o", "-").stdout_bytes
        run("convert", "--write", "nb.ipynb")
        assert Path("out.ipynb").read_bytes() == nb.read_bytes() == stream

    def test_gives_no_notebook_of_a_script(self, here: Path) -> None:
        (here / "a.py").write_text("x = 1\n")
        result = run("convert", "a.py", "-o", "out.ipynb")
        assert (result.exit_code, Path("out.ipynb").exists()) == (2, False)
        assert "is a script; name a *.py file, not out.ipynb" in result.stderr

    def test_takes_standard_input(self, nb: Path) -> None:
        data = nb.read_bytes()
        assert "+++ b/<stdin>:cell 3" in run("convert", "-", stdin=data).stdout
        written = run("convert", "--write", "-", stdin=data).stdout_bytes
        run("convert", "--write", "nb.ipynb")
        assert written == nb.read_bytes()

    def test_at_takes_a_line_of_a_cell(self, nb: Path) -> None:
        result = run("convert", "--at", "3:2", "nb.ipynb")
        assert "nb.ipynb:cell 3" in result.stdout
        assert "nb.ipynb:cell 5" not in result.stdout
        assert "nb.ipynb: converted (1 change)" in result.stderr

    @pytest.mark.parametrize(
        ("at", "message"),
        [
            ("2:1", "has no Python code in cell 2 (--at)"),
            ("9:1", "has no Python code in cell 9 (--at)"),
            ("3:4", "has 3 lines in cell 3, and no line 4 (--at)"),
            ("3", "is a notebook; give --at a CELL:LINE, for example 3:12"),
        ],
    )
    def test_at_needs_a_line_of_the_cell(self, nb: Path, at: str, message: str) -> None:
        result = run("convert", "--at", at, "nb.ipynb")
        assert (result.exit_code, result.stderr) == (2, f"nb.ipynb: error: {message}\n")

    @pytest.mark.parametrize("at", ["0:1", "1:0", "1:", ":1", "1:2:3", "a:1", "²"])
    def test_at_counts_from_one(self, nb: Path, at: str) -> None:
        result = run("convert", "--at", at, "nb.ipynb")
        assert result.exit_code == 2
        assert "is not LINE, CELL:LINE or FILE.py:LINE, each counted from 1" in result.stderr

    def test_at_of_a_script_takes_no_cell(self, here: Path) -> None:
        (here / "a.py").write_text("x = 1\n")
        assert "is not a notebook; give --at a LINE" in run("convert", "--at", "1:1", "a.py").stderr

    def test_json_has_cells_and_lines(self, nb: Path) -> None:
        (file,) = json.loads(run("convert", "--format", "json", "nb.ipynb").stdout)["files"]
        told = [(each["rule"], each["cell"], each["line"], each["column"]) for each in file["applied"]]
        assert told == [
            ("HV01", 1, 3, 1),
            ("HV02", 3, 2, 1),
            ("HV04", 4, 2, 5),
            ("HV05", 4, 5, 5),
            ("HV07", 5, 4, 5),
        ]
        assert file["diff"].count("+++ b/nb.ipynb:cell ") == 4

    def test_a_cell_that_is_not_python_is_refused_with_its_place(self, here: Path) -> None:
        (here / "nb.ipynb").write_text(notebook([*CELLS, ("code", "x = 1\ny = (")]))
        result = run("convert", "nb.ipynb")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("nb.ipynb:cell 6:2:5: refused: not Python")
        assert "\n    y = (\n        ^\n" in result.stderr

    def test_versions_that_a_project_asks_for_hold(self, nb: Path) -> None:
        (nb.parent / "requirements.txt").write_text("tensorflow==2.16.1\n")
        result = run("convert", "--keras=2", "nb.ipynb")
        assert result.exit_code == 1
        assert "requirements.txt:1" in result.stderr
        assert run("convert", "--ignore-versions", "nb.ipynb").exit_code == 0

    def test_a_magic_is_never_taken_apart(self, here: Path) -> None:
        timed = LOOP.replace("%%time\n", "").replace("    print(i)", "    %time print(i)")
        (here / "nb.ipynb").write_text(notebook([*CELLS[:4], ("code", timed)]))
        result = run("convert", "nb.ipynb")
        assert result.exit_code == 1
        assert result.stderr.startswith("nb.ipynb:cell 5:3:")
        assert "shares its line with a magic; give it a line of its own" in result.stderr

    def test_every_cell_is_python_by_itself(self, here: Path) -> None:
        """Jupyter runs an indented cell as if it were not indented; joined, they would be one loop."""
        (here / "nb.ipynb").write_text(notebook([*CELLS, ("code", "    print('after')")]))
        result = run("convert", "nb.ipynb")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("nb.ipynb:cell 6:1:1: refused: this cell is not Python by itself")

    def test_what_a_magic_measures_is_read(self, here: Path) -> None:
        timed = (
            f"{STEP}\n%time step(tf.ones([4, 2]))\nfor i in range(3):\n    x = %time step(i)\n    print(i)"
        )
        (here / "nb.ipynb").write_text(notebook([*CELLS[:3], ("code", timed)]))
        assert run("convert", "nb.ipynb", "-o", "out.py").exit_code == 0
        script = Path("out.py").read_text(encoding="utf-8")
        assert "\nstep(tf.ones([4, 2]))\n" in script
        assert "    x = step(i)\n    if hvd.rank() == 0:\n        print(i)\n" in script


class TestCheck:
    def test_tells_cell_line_and_column(self, checked: Path) -> None:
        result = run("check", "--strict", "nb.ipynb")
        assert result.exit_code == 1
        assert "\n  cell 3:2:1 TF03 warning Adam is another name" in result.stdout
        assert "      | Adam = tf.keras.optimizers.Adam  # 🎉\n      | ~~~~\n" in result.stdout
        assert run("check", "--strict", "-q", "nb.ipynb").stdout.startswith(
            "nb.ipynb:cell 3:2:1: TF03 warning: "
        )
        assert "TF03" in run("check", "--strict", "--statistics", "nb.ipynb").stdout

    def test_json_has_cells_and_lines(self, checked: Path) -> None:
        (file,) = json.loads(run("check", "--strict", "--format", "json", "nb.ipynb").stdout)["files"]
        (found,) = file["diagnostics"]
        where = {"line": 2, "column": 1, "end_line": 2, "end_column": 5, "cell": 3}
        assert where.items() <= found.items()
        assert {each["cell"] for each in found["fix"]["edits"]} == {3, 4}

    @pytest.mark.parametrize("options", [{}, {"as_list": False}])
    @pytest.mark.parametrize("style", [{"indent": 1}, {"ensure_ascii": False}, {"indent": "\t"}])
    def test_sarif_and_github_name_the_place_in_the_json(
        self, checked: Path, options: dict[str, Any], style: dict[str, Any]
    ) -> None:
        text = json.dumps(document(CHECKED, **options), **style)
        checked.write_text(text, encoding="utf-8")
        log = json.loads(run("check", "--strict", "--format", "sarif", "nb.ipynb").stdout)
        jsonschema.validate(log, SCHEMA)
        (found,) = log["runs"][0]["results"]
        (location,) = found["locations"]
        assert location["logicalLocations"][0]["name"] == "cell 3"
        region = location["physicalLocation"]["region"]
        assert _stretch(text, region) == "Adam"
        # The fix, applied to the text of the file, equals that of --fix.
        (change,) = found["fixes"][0]["artifactChanges"]
        fixed = text
        for each in reversed(change["replacements"]):
            start, end = _offsets(text, each["deletedRegion"])
            fixed = fixed[:start] + each["insertedContent"]["text"] + fixed[end:]
        shown = run("check", "--strict", "--format", "github", "nb.ipynb").stdout
        where = f"line={region['startLine']},col={region['startColumn']},"
        assert shown.startswith(f"::warning file=nb.ipynb,{where}")
        assert "title=TF03 tensorflow-member-alias (cell 3%2C line 2)::" in shown
        assert run("check", "--strict", "--fix", "nb.ipynb").exit_code == 0
        assert sources(checked.read_text(encoding="utf-8")) == sources(fixed)

    def test_fix_writes_cells_and_diff_shows_them(self, checked: Path) -> None:
        before = checked.read_text(encoding="utf-8")
        diff = run("check", "--strict", "--diff", "nb.ipynb").stdout
        assert "+++ b/nb.ipynb:cell 3" in diff
        assert "\n-opt = Adam(1e-3)\n+opt = tf.keras.optimizers.Adam(1e-3)\n" in diff
        assert checked.read_text(encoding="utf-8") == before
        assert run("check", "--strict", "--fix", "nb.ipynb").stdout.startswith(
            "Fixed 1 (1 TF03). Nothing found in 1 file now"
        )
        written = checked.read_text(encoding="utf-8")
        assert sources(written) == [
            "import tensorflow as tf",
            "# x",
            "x = 1\n# 🎉",
            "opt = tf.keras.optimizers.Adam(1e-3)",
        ]
        stream = run("check", "--strict", "--fix", "-", "--stdin-filename", "x.ipynb", stdin=before.encode())
        assert stream.stdout_bytes == written.encode()

    def test_comments_and_settings_hold(self, checked: Path) -> None:
        (checked.parent / "trainshift.toml").write_text('[per-file-ignores]\n"*.ipynb" = ["TF03"]\n')
        assert run("check", "--strict", "nb.ipynb").exit_code == 0
        data = checked.read_bytes()
        assert run("check", "--strict", "-", "--stdin-filename", "sub/x.ipynb", stdin=data).exit_code == 0
        assert run("check", "--strict", "--isolated", "nb.ipynb").exit_code == 1
        silent = ALIAS.replace("# 🎉", "# trainshift: ignore[TF03]")
        checked.write_text(notebook([CHECKED[0], ("code", silent)]))
        assert run("check", "--strict", "--isolated", "nb.ipynb").exit_code == 0

    def test_a_comment_of_another_language_silences_nothing(self, checked: Path) -> None:
        shell = ("code", "%%bash\necho 1 # trainshift: ignore-file")
        checked.write_text(notebook([*CHECKED, shell]))
        assert run("check", "--strict", "nb.ipynb").exit_code == 1

    def test_standard_input_is_known_by_name_or_by_what_it_holds(self, checked: Path) -> None:
        data = checked.read_bytes()
        assert "cell 3:2:1 TF03" in run("check", "--strict", "-", stdin=data).stdout
        named = run("check", "--strict", "-", "--stdin-filename", "x.ipynb", stdin=data).stdout
        assert named.startswith("x.ipynb\n  cell 3:2:1 TF03")

    def test_what_a_process_hands_on_is_whole(self, checked: Path) -> None:
        result = check_file(Job(Input("nb.ipynb"), "nb.ipynb"))
        assert result.diagnostics
        other = pickle.loads(pickle.dumps(result))
        assert other.shown.in_file(other.diagnostics[0].region) == result.shown.in_file(
            result.diagnostics[0].region
        )


def test_loops_tell_their_cells(nb: Path) -> None:
    assert run("loops", "nb.ipynb").stdout.splitlines()[:3] == [
        "nb.ipynb: GradientTape",
        "└── cell 5:2:1  for i in range(10)",
        "    ├── trains     opt.apply_gradients(...)  cell 4:5:5 in step()",
    ]
    (program,) = json.loads(run("loops", "--format", "json", "nb.ipynb").stdout)["programs"]
    (loop,) = program["loops"]
    assert (loop["path"], loop["cell"], loop["line"]) == ("nb.ipynb", 4, 5)
    assert (loop["loop"]["cell"], loop["loop"]["line"], loop["steps"][0]["cell"]) == (5, 2, 4)


@pytest.mark.parametrize("command", ["convert", "check", "loops"])
def test_a_directory_includes_notebooks(nb: Path, command: str) -> None:
    (nb.parent / ".ipynb_checkpoints").mkdir()
    (nb.parent / ".ipynb_checkpoints" / "nb-checkpoint.ipynb").write_text("broken")
    (nb.parent / "other.IPYNB").write_text(notebook([("code", "x = 1")]))
    result = run(command, ".")
    shown = result.stdout + result.stderr
    assert result.exit_code == 0
    assert "checkpoint" not in shown
    assert {"convert": "nb.ipynb:cell 5", "check": "in 2 files", "loops": "cell 5:2:1"}[command] in shown


class TestOtherLanguages:
    @pytest.mark.parametrize("language", ["R", "julia"])
    def test_are_left_alone(self, here: Path, language: str) -> None:
        path = here / "r.ipynb"
        path.write_text(notebook([("code", "x <- (1")], language=language))
        before = path.read_bytes()
        said = f"the language of this notebook is {language.lower()}, not Python; it was left alone"
        for args in (("convert", "--write"), ("check", "--fix"), ("loops",)):
            result = run(*args, "r.ipynb")
            assert result.exit_code == 0
            assert said in result.stdout + result.stderr
        assert path.read_bytes() == before
        assert run("convert", "-o", "-", "r.ipynb").stdout_bytes == before
        assert run("check", ".").stdout == "Nothing found in 1 file.\n"

    def test_cells_may_have_one_of_their_own(self, here: Path) -> None:
        made = document(CHECKED)
        made["cells"].insert(0, {**made["cells"][0], "source": ["select ("]})
        made["cells"][0]["metadata"] = {"vscode": {"languageId": "sql"}}
        (here / "nb.ipynb").write_text(json.dumps(made))
        assert "cell 4:2:1 TF03" in run("check", "--strict", "nb.ipynb").stdout


def test_a_notebook_without_code_is_quiet(here: Path) -> None:
    for cells in ([], [("markdown", "# x")], [("code", "")]):
        (here / "nb.ipynb").write_text(notebook(cells))
        assert run("check", "nb.ipynb").stdout == "Nothing found in 1 file.\n"
        assert "nothing found: " in run("convert", "--write", "nb.ipynb").stderr
        assert run("loops", "nb.ipynb").exit_code == 0


V3 = json.dumps({"metadata": {}, "nbformat": 3, "worksheets": [{"cells": []}]})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "nb.ipynb:1:1: error: the notebook's JSON is empty; save it again in Jupyter"),
        (b'{"cells": [\n  }', "nb.ipynb:2:3: error: the notebook's JSON is broken: expecting value; save"),
        (b'{"cells": ["\0"]}', "nb.ipynb:1:13: error: the notebook's JSON is broken: invalid control"),
        (b"[" * 200_000, "nb.ipynb: error: the notebook's JSON is nested too deeply"),
        (b"x = 1\n", "nb.ipynb:1:1: error: the notebook's JSON is broken: expecting value"),
        (b"[]", "nb.ipynb: error: is not a notebook: its JSON has no list of `cells`"),
        (b"{}", "nb.ipynb: error: is not a notebook: its JSON has no list of `cells`"),
        (b'{"cells": {}}', "nb.ipynb: error: is not a notebook: its JSON has no list of `cells`"),
        (b'{"cells": [1]}', "nb.ipynb: error: is not a notebook: its cell 1 is not a JSON object"),
        (
            b'{"cells": [{"cell_type": "code"}]}',
            "nb.ipynb: error: is not a notebook: the `source` of its cell 1",
        ),
        (
            b'{"cells": [{"cell_type": "code", "source": [1]}]}',
            "nb.ipynb: error: is not a notebook: the `source`",
        ),
        (V3.encode(), "nb.ipynb: error: is a notebook of format 3; convert it first:"),
        (b'{"cells": []}\xff', "nb.ipynb:1:14: error: byte 0xff is not UTF-8; a notebook must be"),
    ],
)
@pytest.mark.parametrize("args", [("convert", "--write"), ("check", "--fix"), ("loops",)])
@pytest.mark.sampled
def test_what_is_no_notebook_is_told(here: Path, args: tuple[str, ...], data: bytes, message: str) -> None:
    (here / "nb.ipynb").write_bytes(data)
    (here / "zz.ipynb").write_text(notebook())
    result = run(*args, "nb.ipynb", "zz.ipynb")
    assert result.exit_code == 2
    told = result.stderr.replace("nb.ipynb:1:1: error: is no", "nb.ipynb: error: is no")
    assert message in told
    assert (here / "nb.ipynb").read_bytes() == data
    assert args[0] != "convert" or "hvd" in (here / "zz.ipynb").read_text()


def test_a_notebook_that_is_read_only_is_left_alone(nb: Path) -> None:
    before = nb.read_bytes()
    nb.chmod(0o444)
    result = run("convert", "--write", "nb.ipynb")
    assert result.exit_code == 2
    assert "nb.ipynb: error: is read-only (mode 0444)" in result.stderr
    assert nb.read_bytes() == before


@pytest.mark.parametrize("odd", ["'\\ud83d'", "'\\u0000'"], ids=["half a pair", "a null character"])
def test_odd_characters_of_a_source_are_no_python(here: Path, odd: str) -> None:
    """They are well-formed JSON anyway."""
    text = json.dumps(document([*CELLS, ("code", json.loads(f'"{odd}"'))]))
    (here / "nb.ipynb").write_text(text)
    result = run("convert", "--write", "nb.ipynb")
    assert result.exit_code == 2
    assert "refused: not Python" in result.stderr
    assert (here / "nb.ipynb").read_text() == text


# Bytes

STYLES = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, 2, 4, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (",", ":"), (", ", ": ")]),
        "sort_keys": st.booleans(),
    }
)
TEXTS = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS]
WAYS: dict[str, Callable[[str], str | list[str]]] = {
    "lines": lambda text: text.splitlines(keepends=True),
    "line feeds": lambda text: io.StringIO(text, newline="\n").readlines(),
    "one": lambda text: [text],
    "text": lambda text: text,
}


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_all_bytes_outside_of_changed_sources_stay(data: st.DataObject) -> None:
    """A JSON writer with the same style would have written exactly these bytes."""
    style: dict[str, Any] = data.draw(STYLES)
    way = WAYS[data.draw(st.sampled_from(sorted(WAYS)))]
    head, tail = data.draw(st.sampled_from(["", "\n", " \r\n"])), data.draw(st.sampled_from(["", "\n"]))
    texts = data.draw(
        st.lists(st.sampled_from(["", "a = 'é'", '"🎉"\n', "f(\n'\\\\n', 1)\n\fx\n"]), min_size=1)
    )
    new = [data.draw(st.sampled_from([text, "'🎉'\ny\n", f'{text}\n# new\\n "é"', "one"])) for text in texts]

    def made(texts: list[str]) -> str:
        whole = document([("code", text) for text in texts])
        for cell in whole["cells"]:
            cell["source"] = way("".join(cell["source"]))
        return head + json.dumps(whole, **style) + tail

    # An empty list does not show how lists are indented; text without line endings does not show how they
    # are split.
    before = made(texts)
    cells = read_notebook(decode("nb.ipynb", before.encode(), None))
    after = cells.after(Cells(tuple(new), cells.cells.numbers)).file.text
    assert sources(after) == new
    stripped = [json.loads(before), json.loads(after)]
    for each in stripped:
        for cell in each["cells"]:
            del cell["source"]
    assert stripped[0] == stripped[1]
    if style["ensure_ascii"] or before.isascii():
        return  # New content may be written either way.
    if all("\n" in text.rstrip("\n") for text, now in zip(texts, new, strict=True) if text != now):
        assert after == made(new)


def test_lines_that_stay_are_written_as_they_were() -> None:
    """Colab escapes characters special in HTML, and sources may be split anywhere."""
    for source in (
        r'["a \u003c 1\n",   "b = 2\n", "\u00e9\/c\n"  ]',
        r'"a \u003c 1\nb = 2\n\u00e9\/c\n"',
        r'["a \u003c", " 1\nb =", " 2\n\u00e9\/c\n"]',
    ):
        text = f'{{"cells": [{{"source": "md", "cell_type": "code", "source" :{source}}}] , "x": "\\u003c"}}'
        cells = read_notebook(decode("nb.ipynb", text.encode(), None))
        assert cells.cells.texts == ("a < 1\nb = 2\né/c\n",)
        after = cells.after(Cells(("a < 1\nb = 3\né/c\n",), (1,))).file.text
        assert after.startswith('{"cells": [{"source": "md", "cell_type": "code", "source" :')
        assert after.endswith(r'}] , "x": "\u003c"}')
        assert sources(after) == ["a < 1\nb = 3\né/c\n"]
        if 'u003c"' not in source:
            assert after == text.replace("b = 2", "b = 3")


def test_a_byte_order_mark_and_foreign_line_ends_stay(nb: Path) -> None:
    data = b"\xef\xbb\xbf" + nb.read_bytes().replace(b"\n", b"\r\n")
    nb.write_bytes(data)
    assert run("convert", "--write", "nb.ipynb").exit_code == 0
    after = nb.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf{\r\n")
    assert after.count(b"\n") == after.count(b"\r\n") > data.count(b"\n")


@pytest.mark.parametrize("text", TEXTS, ids=[folder.name for folder in SCRIPTS])
@pytest.mark.sampled
def test_a_script_in_cells_is_converted_as_the_script(here: Path, text: str) -> None:
    cells = cut(text.replace("\r\n", "\n"))
    program = "\n".join(cells)
    wanted = convert(program)
    (here / "nb.ipynb").write_text(notebook([("code", cell) for cell in cells]), encoding="utf-8")
    result = run("convert", "--write", "--ignore-versions", "nb.ipynb")
    written = (here / "nb.ipynb").read_text(encoding="utf-8")
    assert result.exit_code == int(wanted.status is Status.REFUSED or bool(wanted.withheld)), result.stderr
    assert _bare("\n".join(sources(written))) == _bare(wanted.text)
    again = run("convert", "--write", "--ignore-versions", "nb.ipynb")
    assert "converted" not in again.stderr
    assert (here / "nb.ipynb").read_text(encoding="utf-8") == written


@pytest.mark.slow
def test_large_outputs_cost_little(nb: Path) -> None:
    made = json.loads(nb.read_text(encoding="utf-8"))
    image = {"data": {"image/png": "iVBORw0KGgo" * 460_000}, "output_type": "display_data"}
    for cell in made["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [image] * 2
    quick = _took("convert", "--write", "nb.ipynb")
    (nb.parent / "large.ipynb").write_text(json.dumps(made, indent=1))
    assert (nb.parent / "large.ipynb").stat().st_size > 40_000_000
    assert _took("convert", "--write", "large.ipynb") < quick + 5
    assert "hvd" in sources((nb.parent / "large.ipynb").read_text())[0]


# Cells


@pytest.mark.parametrize(
    ("cell", "cover", "script"),
    [
        ("%matplotlib inline\nx = 1", "                  \nx = 1", "# %matplotlib inline\nx = 1"),
        ("x = !ls (", "x = 0    ", "# x = !ls ("),
        (
            "!python make.py \\\n  --to a\nx = 1",
            " " * 17 + "\n" + " " * 8 + "\nx = 1",
            "# !python make.py \\\n#   --to a\nx = 1",
        ),
        ("x = !ls \\\r\n (", "x = 0    \r\n  ", "# x = !ls \\\r\n#  ("),
        ("if x:\n    !echo (", "if x:\n    0      ", "if x:\n    pass  # !echo ("),
        ("if x:\n    y = !a", "if x:\n    y = 0 ", "if x:\n    pass  # y = !a"),
        ("%%bash\nif (", "      \n    ", "# %%bash\n# if ("),
        ("%%time\nx = 1", "      \nx = 1", "# %%time\nx = 1"),
        ("%time f(x)", "0;    f(x)", "f(x)"),
        ("y = %time f(x)", "y =       f(x)", "y = f(x)"),
        ("%time f(", "        ", "# %time f("),
        ("tf.keras??", "          ", "# tf.keras??"),
        ("pip install -q 'x==1'\nx", "                     \nx", "# pip install -q 'x==1'\nx"),
        ("x = 5\n%b", "x = 5\n  ", "x = 5\n# %b"),
        ("(x\n%b)", "(x\n%b)", "(x\n%b)"),
    ],
)
def test_what_only_a_notebook_understands(cell: str, cover: str, script: str) -> None:
    assert covered(cell) == cover
    assert Cells((cell,), (1,)).as_script() == f"{script}\n"
    ast.parse(script)


def test_every_edit_stays_in_its_cell() -> None:
    cells = Cells(("a\nb", "", "%m\nc"), (1, 3, 4))
    assert cells.text == "a\nb\n\n  \nc"
    assert cells.edited([Edit(2, 4, "B")]).texts == ("a\nB", "", "%m\nc")
    assert cells.edited([Edit(3, 3, "\nd"), Edit(8, 9, "C")]).texts == ("a\nb\nd", "", "%m\nC")
    assert cells.spoilt([Edit(2, 4, "B"), Edit(8, 9, "C")]) is None
    assert cells.spoilt([Edit(5, 9, "C")]) == Edit(5, 9, "C")
    assert [cells.spot(*each) for each in ((1, 1), (2, 2), (3, 1), (5, 2))] == [
        (1, 1, 1),
        (2, 2, 1),
        (1, 1, 3),
        (2, 2, 4),
    ]


def test_a_file_that_would_not_say_what_it_has_to_is_not_written() -> None:
    found = read_notebook(decode("nb.ipynb", notebook().encode(), None))
    with pytest.raises(FileProblem, match="internal error"):
        found.after(Cells(found.cells.texts, (9, 9, 9, 9)))


def _bare(text: str) -> list[str]:
    """The significant lines, without guards, which statements share but cells do not."""
    guard = re.compile(r"\s*(if \w+\.rank\(\) == 0:)?")
    return [line for line in text.splitlines() if not guard.fullmatch(line)]


def _offsets(text: str, region: dict[str, int]) -> tuple[int, int]:
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    return (
        starts[region["startLine"] - 1] + region["startColumn"] - 1,
        starts[region["endLine"] - 1] + region["endColumn"] - 1,
    )


def _stretch(text: str, region: dict[str, int]) -> str:
    start, end = _offsets(text, region)
    return text[start:end]


def _took(*args: str) -> float:
    began = time.process_time()
    assert run(*args).exit_code == 0
    return time.process_time() - began


@pytest.fixture
def using(here: Path) -> Path:
    """Write use.ipynb, which trains with a class of trainer.py."""
    path = here / "use.ipynb"
    path.write_text(notebook(USING), encoding="utf-8")
    (here / "trainer.py").write_text(TRAINER)
    return path


def test_a_notebook_is_converted_with_the_files_that_it_imports(using: Path) -> None:
    shown = run("convert", "use.ipynb")
    assert shown.exit_code == 0
    assert "+++ b/use.ipynb:cell 5" in shown.stdout
    assert "+++ b/trainer.py" in shown.stdout
    assert "use.ipynb:cell 3:2:1: HV15 decided" in shown.stderr
    assert run("convert", "--write", "use.ipynb").exit_code == 0
    cells = sources(using.read_text("utf-8"))
    assert cells[3] == USING[3][1]
    assert cells[4] == "if hvd.rank() == 0:\n    trainer.model.save('m.h5')"
    assert "hvd.DistributedGradientTape(tape)" in using.with_name("trainer.py").read_text()
    assert "already distributed" in run("convert", "use.ipynb").stderr


def test_one_statement_of_such_a_notebook_is_converted(using: Path) -> None:
    shown = run("convert", "--at", "5:1", "use.ipynb").stdout
    assert "cell 5" in shown
    assert "cell 3" not in shown
    assert "trainer.py" not in shown


def test_such_a_notebook_is_written_below_a_directory(using: Path) -> None:
    assert "changes together with trainer.py" in run("convert", "use.ipynb", "-o", "out.py").stderr
    assert run("convert", "use.ipynb", "-o", "out/").exit_code == 0
    assert "hvd.rank() == 0" in sources(Path("out/use.ipynb").read_text("utf-8"))[4]
    assert "hvd.DistributedGradientTape(tape)" in Path("out/trainer.py").read_text()
    assert using.with_name("trainer.py").read_text() == TRAINER


def test_what_refuses_such_a_notebook_is_told_with_its_place(using: Path) -> None:
    using.write_text(notebook([*USING, ("code", "# Here\nawait_all(lambda: trainer.run(")]), encoding="utf-8")
    assert "use.ipynb:cell 6:2:" in run("convert", "use.ipynb").stderr
    using.write_text(notebook(USING), encoding="utf-8")
    trainer = using.with_name("trainer.py")
    trainer.write_text(TRAINER.replace("tf.GradientTape()", "tf.distribute.MirroredStrategy().scope()"))
    told = run("convert", "use.ipynb").stderr
    assert "refused: trainer.py:" in told
