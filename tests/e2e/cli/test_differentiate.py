"""The command `differentiate`: its output streams, the report, and the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.cli.conftest import Run
from trainshift import derivatives
from trainshift.derivatives import Derived, Mode, NotFound, Refusal, Refused
from trainshift.python.source.edit import Edit

SQUARE = "def square(x, n):\n    return x * x  # a comment\n"
MADE = "\n\ndef square_grad(x, n):\n    ...\n"
DIFF = """\
--- a/model.py
+++ b/model.py
@@ -1,2 +1,6 @@
 def square(x, n):
     return x * x  # a comment
+
+
+def square_grad(x, n):
+    ...
"""
REPORT = """\
model.py:square: square_grad made (the gradient with respect to x)
    not by n: it is only a count
    with _unbroadcast
Nothing was written. Add --write to change the file, or -o OUT to write a new one.
"""


def differentiated(
    text: str,
    function: str,
    mode: Mode = "reverse",
    wrt: Sequence[str] | None = None,
    name: str | None = None,
) -> Derived | Refused:
    """A stand-in for `derive`: adds an empty function, unless it exists."""
    if function == "missing":
        raise NotFound("There is no function missing.")
    if function == "stubborn":
        return Refused(function, mode, (Refusal(2, 5, "a parameter *xs"), Refusal(4, 1, "an \x1b attribute")))
    if function == "broken":
        raise RecursionError
    made = name or f"{function}_{'grad' if mode == 'reverse' else 'jvp'}"
    new = "\n" * 2 + f"def {made}({', '.join(wrt or ('x', 'n'))}):\n    ...\n"
    edits = () if new in text else (Edit(len(text), len(text), new),)
    text += "".join(each.text for each in edits)
    left_out = () if wrt else (("n", "it is only a count"),)
    return Derived(function, mode, made, ("_unbroadcast", made), tuple(wrt or "x"), left_out, edits, text)


@pytest.fixture(autouse=True)
def derive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the stand-in where the command imports it."""
    monkeypatch.setattr(derivatives, "derive", differentiated)


@pytest.fixture
def model(here: Path) -> Path:
    """Write model.py, with a function."""
    path = here / "model.py"
    path.write_text(SQUARE)
    return path


def test_prints_a_diff_and_writes_nothing(run: Run, model: Path) -> None:
    result = run("differentiate", "model.py:square")
    assert (result.exit_code, result.stdout, result.stderr) == (0, DIFF, REPORT)
    assert model.read_text() == SQUARE


def test_the_diff_is_coloured_as_that_of_a_conversion(run: Run, model: Path) -> None:
    shown = run("differentiate", "model.py:square", "--color", "always").stdout
    assert "\x1b[32m+def square_grad(x, n):\x1b[0m\n" in shown


def test_write_changes_the_file(run: Run, model: Path) -> None:
    result = run("differentiate", "--write", "model.py:square", "--mode", "forward", "--wrt", " n , x")
    assert (result.exit_code, result.stdout) == (0, "")
    assert model.read_text() == SQUARE + "\n\ndef square_jvp(n, x):\n    ...\n"
    assert result.stderr == (
        "model.py:square: square_jvp made (the derivative along a direction of n, x), written\n"
        "    with _unbroadcast\n"
    )


def test_write_leaves_a_file_alone_that_has_it(run: Run, model: Path) -> None:
    model.write_text(SQUARE + MADE)
    before = model.stat()
    result = run("differentiate", "--write", "model.py:square")
    assert result.exit_code == 0
    assert result.stderr.startswith("model.py:square: square_grad up to date (")
    assert (model.stat().st_ino, model.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_output_gets_the_whole_file(run: Run, model: Path) -> None:
    model.write_bytes(b"\xef\xbb\xbf" + SQUARE.replace("\n", "\r\n").encode())
    model.chmod(0o755)
    result = run("differentiate", "model.py:square", "-o", "out.py", "--name", "slope")
    assert (result.exit_code, result.stdout) == (0, "")
    assert ", written to out.py\n" in result.stderr
    after = Path("out.py").read_bytes()
    assert after.startswith(model.read_bytes())
    assert b"def slope(x, n):" in after
    assert os.access("out.py", os.X_OK)


def test_output_can_be_standard_output(run: Run, model: Path) -> None:
    result = run("differentiate", "model.py:square", "-o", "-")
    assert (result.exit_code, result.stdout) == (0, SQUARE + MADE)
    assert "written to standard output" in result.stderr


@pytest.mark.parametrize(
    ("text", "status", "word"), [(SQUARE, 1, "would be made"), (SQUARE + MADE, 0, "up to date")]
)
def test_check_sets_the_exit_status_only(run: Run, model: Path, text: str, status: int, word: str) -> None:
    model.write_text(text)
    result = run("differentiate", "--check", "model.py:square")
    assert (result.exit_code, result.stdout) == (status, "")
    assert f"square_grad {word}" in result.stderr
    assert model.read_text() == text


@pytest.mark.parametrize("options", [(), ("--write",), ("--check",), ("-o", "out.py"), ("--quiet",)])
def test_every_reason_of_a_refusal_is_told(run: Run, model: Path, options: tuple[str, ...]) -> None:
    result = run("differentiate", "model.py:stubborn", "--mode", "forward", *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "model.py:2:5 a parameter *xs\n"
        "model.py:4:1 an \N{SYMBOL FOR ESCAPE} attribute\n"
        "model.py: refused: stubborn cannot be differentiated in forward mode.\n"
    )
    assert model.read_text() == SQUARE
    assert not Path("out.py").exists()


def test_quiet_tells_nothing_else(run: Run, model: Path) -> None:
    result = run("differentiate", "model.py:square", "-q")
    assert (result.stdout, result.stderr) == (DIFF, "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "model.py: error: cannot be read: no such file or directory\n"),
        (b"x = '\xe4'\n", "model.py:1:6: error: byte 0xe4 is not UTF-8"),
        (b"\xff\xfex\0", "model.py: error: is UTF-16 or UTF-32 text; save it as UTF-8\n"),
    ],
)
def test_a_file_that_cannot_be_read(run: Run, here: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (here / "model.py").write_bytes(data)
    result = run("differentiate", "model.py:square")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)


def test_a_function_that_is_not_there(run: Run, model: Path) -> None:
    result = run("differentiate", "model.py:missing")
    assert (result.exit_code, result.stderr) == (2, "model.py: error: There is no function missing.\n")


def test_a_text_that_the_encoding_of_the_file_lacks(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.write_bytes(b"# coding: latin-1\n# \xe4\n" + SQUARE.encode())
    text = model.read_bytes().decode("latin-1")
    edit = Edit(len(text), len(text), "# \N{EURO SIGN}\n")
    found = Derived("square", "reverse", "square_grad", (), ("x",), (), (edit,), text + edit.text)
    monkeypatch.setattr(derivatives, "derive", lambda *_: found)
    for options in ((), ("--write",), ("-o", "out.py")):
        result = run("differentiate", "model.py:square", *options)
        assert result.exit_code == 2
        assert "which the file's encoding" in result.stderr
    assert model.read_bytes().decode("latin-1") == text


def test_a_defect_of_ours_is_told_as_one(run: Run, model: Path) -> None:
    result = run("differentiate", "model.py:broken", "--write")
    assert result.exit_code == 1
    assert "RecursionError" in result.stderr
    assert "please report this" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.py",), "Name the function too: trainshift differentiate model.py:FUNCTION"),
        (("model.py:",), "Name the function too: trainshift differentiate model.py:FUNCTION"),
        (("model.py:a b",), "Name the function too"),
        (("model.ipynb:square",), "model.ipynb is a notebook; differentiate its functions in an editor."),
        (("model.py:square", "--wrt", "x,,k"), "'x,,k' is not a list of parameters, such as x,k."),
        (("model.py:square", "--wrt", "x,x"), "'x,x' is not a list of parameters, such as x,k."),
        (("model.py:square", "--name", "if"), "'if' cannot be the name of a function."),
        (("model.py:square", "--mode", "both"), "'both' is not one of 'forward', 'reverse'."),
        (("model.py:square", "--write", "--check"), "--write, --output and --check exclude each other."),
        (("model.py:square", "-o", ""), "--output needs the name of a file."),
        (("model.py:square", "-o", "-", "--format", "json"), "both want standard output"),
        ((), "Missing argument 'FILE.py:FUNCTION'."),
    ],
)
def test_wrong_usage(run: Run, model: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run("differentiate", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert model.read_text() == SQUARE


class TestJson:
    def test_of_a_derivative(self, run: Run, model: Path) -> None:
        result = run("differentiate", "model.py:square", "--format", "json")
        assert (result.exit_code, result.stderr) == (0, "")
        assert json.loads(result.stdout) == {
            "version": 1,
            "path": "model.py",
            "function": "square",
            "mode": "reverse",
            "status": "differentiated",
            "made": "square_grad",
            "added": ["_unbroadcast", "square_grad"],
            "wrt": ["x"],
            "left_out": [{"name": "n", "reason": "it is only a count"}],
            "shared": [],
            "refusals": [],
            "diff": DIFF,
            "written": False,
            "error": None,
        }

    def test_of_one_that_is_there(self, run: Run, model: Path) -> None:
        model.write_text(SQUARE + MADE)
        told = json.loads(run("differentiate", "--write", "model.py:square", "--format", "json").stdout)
        assert (told["status"], told["diff"], told["written"]) == ("unchanged", "", False)

    def test_of_a_refusal(self, run: Run, model: Path) -> None:
        result = run("differentiate", "model.py:stubborn", "--format", "json")
        assert result.exit_code == 1
        told = json.loads(result.stdout)
        assert told["status"] == "refused"
        assert told["refusals"][0] == {"line": 2, "column": 5, "message": "a parameter *xs"}

    def test_of_an_error(self, run: Run, here: Path) -> None:
        result = run("differentiate", "model.py:square", "--format", "json")
        assert result.exit_code == 2
        told = json.loads(result.stdout)
        assert (told["status"], told["error"]) == ("error", "cannot be read: no such file or directory")


def test_the_rules_of_a_conversion_are_not_loaded(model: Path) -> None:
    code = (
        "import sys; from trainshift.cli.main import cli; "
        "cli(['differentiate', 'model.py:square', '-q'], standalone_mode=False); "
        "print({'trainshift.transforms', 'trainshift.engine.conversion', 'rich'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split()[-1] == b"set()"
