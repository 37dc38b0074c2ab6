"""The modes of `convert`, its output streams, and the exit status."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.cli.conftest import CONVERTED, SCRIPT, Run

DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1,3 +1,4 @@
 import tensorflow as tf
+import horovod.tensorflow as hvd
 x = 1
-print(x)
+if hvd.rank() == 0: print(x)
"""


def test_prints_a_diff_and_writes_nothing(run: Run, script: Path) -> None:
    before = script.stat()
    result = run("convert", "train.py")
    assert result.exit_code == 0
    assert result.stdout == DIFF
    assert result.stderr == (
        "train.py: converted (1 change)\n"
        "Nothing was written. Add --write to change the file, or -o OUT to write a new one.\n"
    )
    assert script.read_text() == SCRIPT
    assert script.stat().st_mtime_ns == before.st_mtime_ns


def test_write_changes_the_file_and_prints_no_diff(run: Run, script: Path) -> None:
    result = run("convert", "--write", "train.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "train.py: converted (1 change), written\n"
    assert script.read_text() == CONVERTED


def test_write_leaves_a_file_that_does_not_change_untouched(run: Run, here: Path) -> None:
    path = here / "done.py"
    path.write_text("import horovod\n")
    before = path.stat()
    result = run("convert", "--write", "done.py")
    assert (result.exit_code, result.stderr) == (0, "done.py: already distributed\n")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("source", "status"), [(SCRIPT, 1), ("import horovod\n", 0), ("x = 1\n", 0), ("x = (\n", 1)]
)
def test_check_sets_the_exit_status_only(run: Run, here: Path, source: str, status: int) -> None:
    (here / "train.py").write_text(source)
    result = run("convert", "--check", "train.py")
    assert (result.exit_code, result.stdout) == (status, "")
    assert (here / "train.py").read_text() == source


def test_check_says_what_would_change(run: Run, script: Path) -> None:
    assert run("convert", "--check", "train.py").stderr == (
        "train.py: would be converted (1 change)\n"
        "Nothing was written. Run without --check to see the changes.\n"
    )


class TestOutput:
    def test_goes_to_another_file(self, run: Run, script: Path) -> None:
        script.chmod(0o755)
        result = run("convert", "train.py", "-o", "out.py")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "train.py: converted (1 change), written to out.py\n"
        assert script.read_text() == SCRIPT
        assert Path("out.py").read_text() == CONVERTED
        assert Path("out.py").stat().st_mode & 0o777 == 0o755 & ~_umask()

    def test_keeps_the_mode_of_an_existing_file(self, run: Run, script: Path) -> None:
        out = Path("out.py")
        out.write_text("old")
        out.chmod(0o640)
        assert run("convert", "train.py", "-o", "out.py").exit_code == 0
        assert (out.read_text(), out.stat().st_mode & 0o777) == (CONVERTED, 0o640)

    def test_may_be_standard_output(self, run: Run, script: Path) -> None:
        result = run("convert", "train.py", "-o", "-")
        assert (result.exit_code, result.stdout) == (0, CONVERTED)
        assert "written to standard output" in result.stderr

    def test_may_be_the_input_itself(self, run: Run, script: Path) -> None:
        assert run("convert", "train.py", "-o", "./train.py").exit_code == 0
        assert script.read_text() == CONVERTED

    def test_is_written_when_there_is_nothing_to_do(self, run: Run, here: Path) -> None:
        (here / "done.py").write_text("import horovod\n")
        assert run("convert", "done.py", "-o", "out.py").exit_code == 0
        assert (here / "out.py").read_text() == "import horovod\n"

    def test_is_not_written_when_the_script_is_refused(self, run: Run, here: Path) -> None:
        (here / "bad.py").write_text("x = (\n")
        assert run("convert", "bad.py", "-o", "out.py").exit_code == 1
        assert not (here / "out.py").exists()

    def test_does_not_replace_a_device(self, run: Run, script: Path) -> None:
        assert run("convert", "train.py", "-o", os.devnull).exit_code == 0
        assert not Path(os.devnull).is_file()

    @pytest.mark.parametrize("out", ["missing/out.py", "."])
    def test_that_cannot_be_written_is_an_error(self, run: Run, script: Path, out: str) -> None:
        result = run("convert", "train.py", "-o", out)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"train.py: error: {out} ")

    def test_that_is_read_only_is_an_error(self, run: Run, script: Path) -> None:
        Path("out.py").write_text("mine")
        Path("out.py").chmod(0o444)
        result = run("convert", "train.py", "-o", "out.py")
        assert result.exit_code == 2
        assert "out.py is read-only (mode 0444)" in result.stderr
        assert Path("out.py").read_text() == "mine"


class TestStandardInput:
    def test_gives_a_diff(self, run: Run) -> None:
        result = run("convert", "-", input=SCRIPT.encode())
        assert result.exit_code == 0
        assert result.stdout.startswith("--- a/<stdin>\n+++ b/<stdin>\n@@")
        assert result.stderr.startswith("<stdin>: converted (1 change)\n")

    def test_with_write_gives_the_text(self, run: Run) -> None:
        result = run("convert", "--write", "-", input=SCRIPT.replace("\n", "\r\n").encode())
        assert result.stdout_bytes == CONVERTED.replace("\n", "\r\n").encode()

    def test_with_write_gives_an_unchanged_text_too(self, run: Run) -> None:
        assert run("convert", "--write", "-", input=b"x = 1").stdout_bytes == b"x = 1"

    def test_with_output_goes_to_the_file(self, run: Run, here: Path) -> None:
        assert run("convert", "-", "-o", "out.py", input=SCRIPT.encode()).exit_code == 0
        assert (here / "out.py").read_text() == CONVERTED
        assert (here / "out.py").stat().st_mode & 0o777 == 0o666 & ~_umask()

    def test_that_is_refused_gives_nothing(self, run: Run) -> None:
        result = run("convert", "--write", "-", input=b"x = (\n")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("<stdin>:1:5: refused: does not parse")

    def test_may_stand_among_files(self, run: Run, script: Path) -> None:
        result = run("convert", "-", "train.py", "-", input=SCRIPT.encode())
        assert result.stdout.count("--- a/") == 2
        assert "2 files: 2 converted" in result.stderr


class TestAt:
    def test_converts_the_statement(self, run: Run, script: Path) -> None:
        assert run("convert", "--at", "1", "train.py").stdout == DIFF
        result = run("convert", "--at", "2", "train.py")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "train.py: nothing found: looked for a TensorFlow training loop\n"

    def test_needs_a_line_of_the_file(self, run: Run, script: Path) -> None:
        result = run("convert", "--at", "4", "train.py")
        assert result.exit_code == 2
        assert result.stderr == "train.py: error: has 3 lines, and no line 4 (--at)\n"


class TestExitStatus:
    def test_is_1_when_a_change_was_withheld_and_the_rest_is_done(self, run: Run, script: Path) -> None:
        script.write_text(SCRIPT + "# withhold\n")
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 1
        assert "hvd" in script.read_text()
        assert result.stderr == (
            "train.py: converted (1 change), written\n"
            "    train.py:3:5: HV05 withheld: the variables cannot be seen\n"
        )

    def test_is_0_with_doubts(self, run: Run, script: Path) -> None:
        script.write_text(SCRIPT + "# doubt\n")
        result = run("convert", "train.py")
        assert result.exit_code == 0
        assert "    train.py:2:3: HV02 please check: `opt` is an optimizer\n" in result.stderr

    def test_is_2_when_an_error_meets_a_refusal(self, run: Run, script: Path, here: Path) -> None:
        (here / "bad.py").write_text("x = (\n")
        assert run("convert", "missing.py", "bad.py", "train.py").exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        ("convert",),
        ("convert", "--write", "--check", "train.py"),
        ("convert", "--write", "-o", "out.py", "train.py"),
        ("convert", "--check", "-o", "out.py", "train.py"),
        ("convert", "-q", "-v", "train.py"),
        ("convert", "-o", "out.py", "train.py", "other.py"),
        ("convert", "-o", "out.py", "."),
        ("convert", "-o", "", "train.py"),
        ("convert", "--at", "1", "train.py", "other.py"),
        ("convert", "--at", "1", "."),
        ("convert", "--at", "0", "train.py"),
        ("convert", "--at", "x", "train.py"),
        ("convert", "--format", "json", "-o", "-", "train.py"),
        ("convert", "--format", "json", "--write", "-"),
        ("convert", "--format", "xml", "train.py"),
        ("convert", "--exclude", "!", "."),
        ("convert", "--wirte", "train.py"),
        ("train.py",),
    ],
)
def test_wrong_usage_is_2_and_changes_nothing(run: Run, script: Path, args: tuple[str, ...]) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert [path.name for path in Path().iterdir()] == ["train.py"]
    assert script.read_text() == SCRIPT


def test_a_script_in_place_of_a_command_gets_a_hint(run: Run, script: Path) -> None:
    assert "trainshift convert train.py" in run("train.py").stderr


@pytest.mark.parametrize("args", [(), ("-h",), ("--help",)])
def test_help_shows_examples(run: Run, args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 0
    assert "trainshift convert --write train.py" in result.stdout


def test_help_of_convert_names_every_option_and_status(run: Run) -> None:
    text = run("convert", "-h").stdout
    for part in (
        "--write",
        "-o,",
        "--check",
        "--at",
        "--exclude",
        "--format",
        "--color",
        "-q,",
        "-v,",
        "-h,",
    ):
        assert part in text
    assert "Exit status:" in text


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
