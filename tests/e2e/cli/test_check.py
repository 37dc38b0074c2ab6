"""The command `check`: its output, the files it writes, and its exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cli.conftest import Run

HEAD = "import tensorflow as tf\n"
SCRIPT = HEAD + "x = 1\nbad(x)\nif x:\n\ty = '世', bad()\nmend()\nfine()\nmaybe()\n"
MENDED = SCRIPT.replace("mend(", "mended(")

TEXT = """\
train.py
  3:1 TF03 warning bad is called, and that matters.
      | bad(x)
      | ~~~~~~
      3:5 this is it
  5:11 TF03 warning bad is called, and that matters.
      | y = '世', bad()
      |           ~~~~~
  6:1 TF03 warning mend is called, and that matters.
      | mend()
      | ~~~~~~
      fix: Call mended(

3 warnings in 1 file (+ 2 informational; -v shows them); 1 can be fixed with --fix.
`trainshift explain TF03` says why it matters and what to do.
"""


@pytest.fixture
def bad(here: Path) -> Path:
    """Write train.py, with findings."""
    path = here / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def clean(here: Path) -> Path:
    """Write clean.py, without findings."""
    path = here / "clean.py"
    path.write_text(HEAD)
    return path


def lines(text: str) -> list[str]:
    return [line.partition(" ")[0] for line in text.splitlines()]


@pytest.mark.usefixtures("bad")
class TestText:
    def test_shows_each_finding_with_its_line(self, run: Run) -> None:
        result = run("check", "train.py")
        assert (result.exit_code, result.stderr) == (1, "")
        assert result.stdout == TEXT

    def test_verbose_shows_what_is_informational(self, run: Run) -> None:
        shown = run("check", "-v", "train.py").stdout
        assert (
            "  7:1 TF03 information fine is called, and that matters.\n      | fine()\n      | ~~~~~~\n"
            in shown
        )
        assert "3 warnings and 2 informational findings in 1 file; 1 can be" in shown

    def test_quiet_is_one_line_per_finding(self, run: Run) -> None:
        result = run("check", "-q", "train.py")
        assert result.exit_code == 1
        assert result.stdout.splitlines() == [
            "train.py:3:1: TF03 warning: bad is called, and that matters.",
            "train.py:5:11: TF03 warning: bad is called, and that matters.",
            "train.py:6:1: TF03 warning: mend is called, and that matters.",
        ]

    def test_several_files_are_apart_and_in_order(self, run: Run, clean: Path, here: Path) -> None:
        (here / "also.py").write_text(HEAD + "bad()  # trainshift: ignore\nbad()\n")
        result = run("check", ".")
        assert result.stdout.startswith("also.py\n  3:1 TF03")
        assert "\n\ntrain.py\n  3:1 TF03" in result.stdout
        assert (
            "\n4 warnings in 2 of 3 files (+ 2 informational; -v shows them), 1 suppressed; 1 can"
            in result.stdout
        )

    def test_statistics_count_verdicts_by_code(self, run: Run, here: Path) -> None:
        (here / "train.py").write_text(SCRIPT + "x = 1  # trainshift: ignore\n")
        result = run("check", "--statistics", "train.py", "--ignore", "TL02")
        assert result.exit_code == 1
        assert result.stdout == (
            "                               violated  harmless   unknown\n"
            "TF03  tensorflow-member-alias         3         1         1\n"
            "\n"
            "3 warnings and 2 informational findings in 1 file; 1 can be fixed with --fix.\n"
        )

    def test_colour_can_be_forced(self, run: Run) -> None:
        shown = run("check", "--color", "always", "train.py").stdout
        assert "\x1b[33mwarning\x1b[0m" in shown
        assert "\x1b" not in run("check", "train.py").stdout

    def test_a_long_line_is_cut_around_the_finding(self, run: Run, bad: Path) -> None:
        bad.write_text(HEAD + "x = [" + "1, " * 500 + "bad(" + "2, " * 500 + ")]\n")
        _, _, source, mark, *_ = run("check", "train.py").stdout.splitlines()
        assert len(source) < 120
        assert source[mark.index("~") :].startswith("bad(")

    def test_the_script_does_not_steer_the_terminal(self, run: Run, bad: Path) -> None:
        bad.write_text(HEAD + "bad('\x1b]0;owned\x07')\n")
        assert "\x1b]0" not in run("check", "--color", "always", "train.py").stdout


def test_nothing_found(run: Run, clean: Path) -> None:
    result = run("check", "clean.py")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Nothing found in 1 file.\n", "")
    assert run("check", "-q", "clean.py").output == ""


class TestExitStatus:
    @pytest.mark.parametrize(
        ("line", "fail_on", "status"),
        [
            ("bad()", "warning", 1),
            ("bad()", "error", 0),
            ("bad()", "never", 0),
            ("fine()", "warning", 0),
            ("fine()", "information", 1),
            ("fine()", "hint", 1),
            ("x = 1", "hint", 0),
        ],
    )
    def test_follows_fail_on(self, run: Run, here: Path, line: str, fail_on: str, status: int) -> None:
        (here / "a.py").write_text(HEAD + line + "\n")
        assert run("check", "--fail-on", fail_on, "a.py").exit_code == status

    def test_what_fails_is_shown(self, run: Run, here: Path) -> None:
        (here / "a.py").write_text(HEAD + "fine()\n")
        assert "2:1 TF03 information" in run("check", "--fail-on", "information", "a.py").stdout

    @pytest.mark.parametrize("fail_on", ["warning", "never"])
    def test_is_2_for_what_could_not_be_checked(self, run: Run, bad: Path, fail_on: str) -> None:
        Path("broken.py").write_text("x = (\n")
        assert run("check", "--fail-on", fail_on, "broken.py", "train.py").exit_code == 2
        assert run("check", "--fail-on", fail_on, "missing.py", "train.py").exit_code == 2


class TestCodes:
    @pytest.mark.parametrize(
        ("args", "status"),
        [
            (("--select", "TF03"), 1),
            (("--select", "tf"), 1),
            (("--select", "TL,TF03"), 1),
            (("--select", "TL", "--select", "TF03"), 1),
            (("--select", "TL"), 0),
            (("--ignore", "TF03"), 0),
            (("--ignore", "TL, TF"), 0),
            (("--select", "TF", "--ignore", "TF03"), 0),
        ],
    )
    def test_are_chosen(self, run: Run, bad: Path, args: tuple[str, ...], status: int) -> None:
        assert run("check", *args, "train.py").exit_code == status

    def test_select_comes_before_the_settings(self, run: Run, bad: Path) -> None:
        Path("trainshift.toml").write_text('ignore = ["TF03"]\n')
        assert run("check", "train.py").exit_code == 0
        assert run("check", "--select", "TF03", "train.py").exit_code == 1

    def test_that_do_not_exist_are_an_error(self, run: Run, bad: Path) -> None:
        result = run("check", "--select", "TF30", "train.py")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("Error: --select: names 'TF30', which is not a code. Did you mean TF")


class TestFix:
    def test_writes_and_reports_what_is_left(self, run: Run, bad: Path) -> None:
        result = run("check", "--fix", "train.py")
        assert bad.read_text() == MENDED
        assert result.exit_code == 1
        assert "  6:1" not in result.stdout
        assert (
            "\nFixed 1 (1 TF03). 2 warnings in 1 file (+ 2 informational; -v shows them) now.\n"
            in result.stdout
        )
        again = run("check", "--fix", "train.py")
        assert "Fixed" not in again.stdout

    def test_is_clean_when_nothing_is_left(self, run: Run, here: Path) -> None:
        (here / "a.py").write_bytes(b"import tensorflow\r\nmend()\t# \xc3\xa9\r\n")
        result = run("check", "--fix", "a.py")
        assert (here / "a.py").read_bytes() == b"import tensorflow\r\nmended()\t# \xc3\xa9\r\n"
        assert (result.exit_code, result.stdout) == (0, "Fixed 1 (1 TF03). Nothing found in 1 file now.\n")

    def test_leaves_a_file_without_fixes_untouched(self, run: Run, clean: Path) -> None:
        before = clean.stat()
        assert run("check", "--fix", "clean.py").exit_code == 0
        assert (clean.stat().st_ino, clean.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_writes_nothing_when_a_fix_breaks_the_script(self, run: Run, bad: Path) -> None:
        bad.write_text(HEAD + "x = breaks(y=1)\nmend()\n")
        result = run("check", "--fix", "train.py")
        assert result.exit_code == 2
        assert "the fixes of TF03 break the script" in result.stdout
        assert bad.read_text() == HEAD + "x = breaks(y=1)\nmend()\n"

    def test_that_cannot_be_written_is_an_error(self, run: Run, bad: Path) -> None:
        bad.chmod(0o444)
        result = run("check", "--fix", "train.py")
        assert result.exit_code == 2
        assert result.stderr.startswith("train.py: error: is read-only (mode 0444)")
        assert "3 warnings" in result.stdout
        assert bad.read_text() == SCRIPT

    def test_filters_standard_input(self, run: Run) -> None:
        result = run("check", "--fix", "-", input=SCRIPT.replace("\n", "\r\n").encode())
        assert result.stdout_bytes == MENDED.replace("\n", "\r\n").encode()
        assert result.exit_code == 1
        assert result.stderr.startswith("<stdin>\n  3:1 TF03 warning")

    def test_standard_input_without_fixes_comes_out_as_it_was(self, run: Run) -> None:
        assert run("check", "--fix", "-", input=b"x = 1").stdout_bytes == b"x = 1"

    def test_standard_input_that_cannot_be_parsed_comes_out_as_it_was(self, run: Run) -> None:
        result = run("check", "--fix", "-", input=b"x = (")
        assert (result.exit_code, result.stdout) == (2, "x = (")


class TestDiff:
    def test_shows_what_fix_would_do(self, run: Run, bad: Path) -> None:
        result = run("check", "--diff", "train.py")
        assert result.exit_code == 1
        assert result.stdout.startswith("--- a/train.py\n+++ b/train.py\n@@")
        assert "\n-mend()\n+mended()\n" in result.stdout
        assert result.stderr == (
            "3 warnings in 1 file (+ 2 informational; -v shows them); --fix would make 1 fix. "
            "Nothing was written.\n"
        )
        assert bad.read_text() == SCRIPT

    def test_is_empty_without_fixes(self, run: Run, clean: Path) -> None:
        result = run("check", "--diff", "clean.py")
        assert (result.exit_code, result.stdout) == (0, "")


class TestStandardInput:
    def test_is_checked(self, run: Run) -> None:
        result = run("check", "-", input=SCRIPT.encode())
        assert result.exit_code == 1
        assert result.stdout == TEXT.replace("train.py", "<stdin>")

    def test_takes_name_and_settings_from_a_file(self, run: Run, here: Path) -> None:
        (here / "src").mkdir()
        (here / "src" / "trainshift.toml").write_text('[per-file-ignores]\n"a.py" = ["TF03"]\n')
        args = ("check", "-", "--stdin-filename")
        assert run(*args, "src/a.py", input=SCRIPT.encode()).exit_code == 0
        assert run(*args, "src/b.py", input=SCRIPT.encode()).stdout == TEXT.replace("train.py", "src/b.py")


class TestWalk:
    def test_leaves_out_what_is_excluded(self, run: Run, bad: Path, here: Path) -> None:
        for name in ("old/a.py", "src/gen/b.py", "src/c.py"):
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(SCRIPT)
        (here / "trainshift.toml").write_text('exclude = ["old/"]\n')
        (here / "src" / "trainshift.toml").write_text('exclude = ["/gen"]\n')
        found = run("check", "-q", ".", "--exclude", "train.py").stdout
        assert {line.partition(":")[0] for line in found.splitlines()} == {"src/c.py"}

    def test_a_named_file_is_always_checked(self, run: Run, bad: Path) -> None:
        Path("trainshift.toml").write_text('exclude = ["*.py"]\n')
        assert run("check", ".").stdout == "Nothing found in 0 files.\n"
        assert run("check", "train.py").exit_code == 1

    def test_a_directory_without_python_files(self, run: Run, here: Path) -> None:
        (here / "docs").mkdir()
        result = run("check", "docs")
        assert (result.exit_code, result.stdout) == (0, "Nothing found in 0 files.\n")
        assert result.stderr.startswith("docs: no Python files (*.py, *.ipynb) here;")


@pytest.mark.parametrize(
    "args",
    [
        ("check",),
        ("check", "-q", "-v", "train.py"),
        ("check", "--fix", "--diff", "train.py"),
        ("check", "--diff", "--format", "json", "train.py"),
        ("check", "--statistics", "--format", "sarif", "train.py"),
        ("check", "--statistics", "--diff", "train.py"),
        ("check", "--config", "x.toml", "--isolated", "train.py"),
        ("check", "--config", "missing.toml", "train.py"),
        ("check", "--fix", "-", "train.py"),
        ("check", "--fix", "--format", "json", "-"),
        ("check", "--stdin-filename", "a.py", "train.py"),
        ("check", "--exclude", "!", "."),
        ("check", "--jobs", "0", "train.py"),
        ("check", "--fail-on", "info", "train.py"),
        ("check", "--format", "xml", "train.py"),
    ],
)
def test_wrong_usage_is_2_and_changes_nothing(run: Run, bad: Path, args: tuple[str, ...]) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert bad.read_text() == SCRIPT


def test_help_names_every_option_and_status(run: Run) -> None:
    text = run("check", "-h").stdout
    for part in (
        "--select",
        "--ignore",
        "--config",
        "--isolated",
        "--fix",
        "--diff",
        "--fail-on",
        "--jobs",
        "-q,",
    ):
        assert part in text
    assert "Exit status:" in text
    assert "# trainshift: ignore[TF03]" in " ".join(text.split())


class TestOutputFile:
    def test_takes_the_report(self, run: Run, bad: Path) -> None:
        result = run("check", "--output-file", "report.txt", "train.py")
        assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")
        assert (bad.parent / "report.txt").read_text() == TEXT

    def test_takes_a_document(self, run: Run, bad: Path) -> None:
        printed = run("check", "--format", "json", "train.py").stdout
        assert run("check", "--format", "json", "--output-file", "report.json", "train.py").stdout == ""
        assert (bad.parent / "report.json").read_text() == printed

    @pytest.mark.parametrize("name", ["gone/report.txt", ".", "-", ""])
    def test_has_to_be_a_file(self, run: Run, bad: Path, name: str) -> None:
        result = run("check", "--output-file", name, "train.py")
        assert (result.exit_code, result.stdout) == (2, "")

    @pytest.mark.parametrize("other", ["--diff", "--fix"])
    def test_is_for_a_report(self, run: Run, other: str) -> None:
        assert run("check", "--output-file", "report.txt", other, "-", input=b"").exit_code == 2


class TestWatch:
    def test_checks_again_when_a_file_changes(
        self, run: Run, bad: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = iter(["import tensorflow as tf\n"])

        def pause(seconds: float) -> None:
            text = next(steps, None)
            if text is None:
                raise KeyboardInterrupt
            bad.write_text(text)

        monkeypatch.setattr("trainshift.cli.checks.watch.time.sleep", pause)
        result = run("check", "--watch", "train.py")
        assert result.exit_code == 130
        assert result.stdout == TEXT + "Nothing found in 1 file.\n"
        assert result.stderr.count("Watching for changes") == 2

    @pytest.mark.parametrize("args", [("--fix", "train.py"), ("-",)])
    def test_wrong_usage(self, run: Run, args: tuple[str, ...]) -> None:
        assert run("check", "--watch", *args, input=b"").exit_code == 2
