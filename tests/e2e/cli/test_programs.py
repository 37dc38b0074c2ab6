"""`convert` on programs of several files: the output, the files written, and the errors."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from e2e.cli.conftest import Run
from trainshift.cli.main import cli
from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion

TRAIN = "import tensorflow as tf\nimport model\nimport tools\nprint(model.fit())\n"
MODEL = "import tensorflow as tf\nimport tools\nprint(1)\n# net.fit(1)\nnet.fit(1)\n"
TOOLS = "x = 1\n"
ADDED = "import horovod.tensorflow as hvd\n"
EVALUATE = "import tools\n"
NOTHING = "eval.py: nothing found: looked for a TensorFlow training loop"


def converted(text: str) -> str:
    return text.replace("as tf\n", f"as tf\n{ADDED}").replace("\nprint", "\nif hvd.rank() == 0: print")


@pytest.fixture
def program(here: Path) -> Path:
    """Write train.py with model.py, which change, and tools.py, which does not."""
    (here / "train.py").write_text(TRAIN)
    (here / "model.py").write_text(MODEL)
    (here / "tools.py").write_text(TOOLS)
    return here


def texts(here: Path) -> dict[str, str]:
    return {str(path.relative_to(here)): path.read_text() for path in sorted(here.rglob("*.py"))}


BEFORE = {"model.py": MODEL, "tools.py": TOOLS, "train.py": TRAIN}
AFTER = {"model.py": converted(MODEL), "tools.py": TOOLS, "train.py": converted(TRAIN)}


class TestText:
    def test_shows_the_diff_of_all_files_and_tells_the_program(self, run: Run, program: Path) -> None:
        with (program / "model.py").open("a") as stream:
            stream.write("# decide\n# doubt\n")
        result = run("convert", "train.py")
        assert result.exit_code == 0
        assert [line for line in result.stdout.splitlines() if line.startswith("---")] == [
            "--- a/train.py",
            "--- a/model.py",
        ]
        assert result.stderr.splitlines() == [
            "train.py: converted (2 changes in 2 of 3 files)",
            "    GradientTape loop at train.py:2:1",
            "    train.py: 1 change",
            "    model.py: 1 change",
            "        model.py:2:1: HV06 decided: the steps are divided",
            "        model.py:2:3: HV02 please check: `opt` is an optimizer",
            "    tools.py: nothing to change",
            "Nothing was written. Add --write to change all 2 files, or -o DIR to write them elsewhere.",
        ]

    def test_verbose_lists_the_changes_by_file(self, run: Run, program: Path) -> None:
        lines = run("convert", "-v", "train.py").stderr.splitlines()
        at = lines.index("    model.py: 1 change")
        assert lines[at + 1] == "        model.py:1:1: HV01 Import Horovod"

    def test_quiet_tells_what_is_withheld(self, run: Run, program: Path) -> None:
        assert run("convert", "-q", "train.py").stderr == ""
        (program / "model.py").write_text(MODEL + "# withhold\n")
        result = run("convert", "-q", "--check", "train.py")
        assert result.stderr.splitlines() == [
            "train.py: would be converted (2 changes in 2 of 3 files)",
            "    model.py:3:5: HV05 withheld: the variables cannot be seen",
        ]

    def test_a_module_stands_for_its_program(self, run: Run, program: Path) -> None:
        named = run("convert", "model.py")
        whole = run("convert", "train.py")
        assert named.stdout == whole.stdout
        assert named.stderr == "model.py belongs to the program of train.py.\n" + whole.stderr
        assert run("convert", "model.py", "train.py", "tools.py").stdout == whole.stdout

    def test_a_module_of_two_programs_stands_for_both(self, run: Run, program: Path) -> None:
        (program / "other.py").write_text("import tensorflow as tf\nimport model\nmodel.fit()\n")
        result = run("convert", "--check", "model.py")
        assert result.exit_code == 1
        assert [line for line in result.stderr.splitlines() if line[0] != " "] == [
            "model.py belongs to the program of other.py.",
            "other.py: would be converted (2 changes in 2 of 3 files)",
            "model.py belongs to the program of train.py.",
            "train.py: would be converted (1 change in 1 of 3 files)",
            "2 programs of 4 files: 2 converted",
            "Nothing was written. Run without --check to see the changes.",
        ]

    def test_nothing_found_names_what_was_read_and_what_was_not(self, run: Run, program: Path) -> None:
        (program / "eval.py").write_text("import tools\nimport mylib\n")
        result = run("convert", "eval.py")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.splitlines() == [
            f"{NOTHING}; 2 files were read: eval.py, tools.py",
            "    not followed: eval.py:2:1 import mylib",
        ]

    def test_a_single_script_names_what_was_not_followed_too(self, run: Run, here: Path) -> None:
        (here / "eval.py").write_text("import mylib\n")
        assert run("convert", "eval.py").stderr.splitlines() == [
            NOTHING,
            "    not followed: eval.py:1:1 import mylib",
        ]

    def test_a_refusal_shows_its_place_in_a_module(self, run: Run, program: Path) -> None:
        (program / "model.py").write_text("import tensorflow as tf\n  # refuse\nnet.fit(1)\n")
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 1
        assert result.stderr.splitlines()[:3] == [
            "train.py: refused: model.py:2:3: HV04: it cannot be wrapped",
            "    # refuse",
            "    ^",
        ]
        assert (program / "train.py").read_text() == TRAIN


class TestWrite:
    def test_changes_all_files(self, run: Run, program: Path) -> None:
        result = run("convert", "--write", "train.py")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.startswith("train.py: converted (2 changes in 2 of 3 files), written\n")
        assert texts(program) == AFTER
        again = run("convert", "--write", "train.py")
        assert (again.exit_code, again.stderr) == (0, "train.py: already distributed\n")
        assert texts(program) == AFTER

    def test_of_two_programs_that_share_a_module(self, run: Run, program: Path) -> None:
        (program / "other.py").write_text("import tensorflow as tf\nimport model\nmodel.fit()\n")
        result = run("convert", "--write", "model.py")
        assert result.exit_code == 0
        assert "other.py: converted (2 changes in 2 of 3 files), written\n" in result.stderr
        assert "train.py: converted (1 change in 1 of 3 files), written\n" in result.stderr
        assert (program / "model.py").read_text() == AFTER["model.py"]
        assert (program / "train.py").read_text() == AFTER["train.py"]

    def test_of_a_script_that_another_one_imports(self, run: Run, program: Path) -> None:
        guarded = 'import tensorflow as tf\nif __name__ == "__main__":\n    net.fit(1)\n'
        (program / "model.py").write_text(guarded)
        result = run("convert", "--write", "train.py", "model.py")
        assert result.exit_code == 0
        assert result.stderr.splitlines()[-2:] == [
            "model.py: already distributed",
            "2 programs of 3 files: 1 converted, 1 already distributed",
        ]
        assert (program / "model.py").read_text() == converted(guarded)

    @pytest.mark.parametrize("bad", ["train.py", "model.py"])
    def test_is_all_or_nothing(self, run: Run, program: Path, bad: str) -> None:
        (program / bad).chmod(0o444)
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 2
        named = "" if bad == "train.py" else "model.py "
        assert result.stderr == (
            f"train.py: error: {named}is read-only (mode 0444); nothing was written, chmod +w allows it\n"
        )
        assert texts(program) == BEFORE

    @pytest.mark.parametrize("at", [0, 1])
    def test_restores_when_the_disk_fills(
        self, run: Run, program: Path, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        replace = os.replace
        calls: list[str] = []

        def full(source: str, target: str) -> None:
            calls.append(target)
            if len(calls) == at + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 2
        assert result.stderr == (
            f"train.py: error: {['', 'model.py '][at]}cannot be written: no space left on device; "
            "all files of the program are as they were. Free some disk space and run the command again\n"
        )
        assert texts(program) == BEFORE

    @pytest.mark.skipif(shutil.which("mount") is None, reason="needs a file system of its own")
    def test_on_a_full_disk(self, run: Run, program: Path) -> None:
        disk = program / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("mounting needs root")
        try:
            (disk / "train.py").write_text(TRAIN)
            (disk / "tools.py").write_text(TOOLS)
            (disk / "model.py").write_text(MODEL + "#" * 40_000 + "\n")
            before = texts(disk)
            result = run("convert", "--write", "disk/train.py")
            assert result.exit_code == 2
            assert "disk/train.py: error: disk/model.py cannot be written: no space left" in result.stderr
            assert texts(disk) == before
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def test_a_module_that_changes_while_it_is_converted(
        self, run: Run, program: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inner = conversion.convert_program

        def convert(*args: Any, **options: Any) -> Conversion:
            result = inner(*args, **options)
            (program / "model.py").write_text("mine\n")
            return result

        monkeypatch.setattr(conversion, "convert_program", convert)
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 2
        assert result.stderr == (
            "train.py: error: model.py changed on disk while it was converted; nothing was written, "
            "run the command again\n"
        )
        assert texts(program) == {**BEFORE, "model.py": "mine\n"}

    def test_a_module_that_vanishes_meanwhile(
        self, run: Run, program: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inner = conversion.convert_program

        def convert(*args: Any, **options: Any) -> Conversion:
            result = inner(*args, **options)
            (program / "model.py").unlink()
            return result

        monkeypatch.setattr(conversion, "convert_program", convert)
        result = run("convert", "--write", "train.py")
        assert result.exit_code == 2
        assert result.stderr == ("train.py: error: model.py cannot be read: no such file or directory\n")
        assert (program / "train.py").read_text() == TRAIN

    def test_a_module_outside_of_the_project_is_not_written(self, run: Run, program: Path) -> None:
        project = program / "project"
        project.mkdir()
        (project / "pyproject.toml").touch()
        (project / "train.py").write_text(TRAIN)
        (project / "tools.py").write_text(TOOLS)
        (project / "model.py").symlink_to("../model.py")
        result = run("convert", "--write", "project/train.py")
        assert result.exit_code == 2
        assert result.stderr.startswith("project/train.py: error: project/model.py is a link to ")
        assert "; nothing was written. Put a copy" in result.stderr
        assert (project / "train.py").read_text() == TRAIN
        assert (program / "model.py").read_text() == MODEL
        assert run("convert", "project/train.py", "-o", "out").exit_code == 0
        assert (program / "out" / "model.py").read_text() == converted(MODEL)
        assert not (program / "out" / "model.py").is_symlink()
        assert (program / "model.py").read_text() == MODEL


class TestOutput:
    @pytest.mark.parametrize("out", ["out", "out/", "deep/er/out"])
    def test_directory_takes_the_changed_files(self, run: Run, program: Path, out: str) -> None:
        result = run("convert", "train.py", "-o", out)
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"(2 changes in 2 of 3 files), written to {out}\n" in result.stderr
        found = {name: text for name, text in AFTER.items() if text != BEFORE[name]}
        assert texts(program / out) == found
        assert {name: (program / name).read_text() for name in BEFORE} == BEFORE

    def test_directory_keeps_packages(self, run: Run, here: Path) -> None:
        (here / "proj" / "app").mkdir(parents=True)
        for name, text in (
            ("__init__.py", ""),
            ("train.py", TRAIN),
            ("model.py", MODEL),
            ("tools.py", TOOLS),
        ):
            (here / "proj" / "app" / name).write_text(text)
        assert run("convert", str(here / "proj" / "app" / "train.py"), "-o", "out").exit_code == 0
        assert list(texts(here / "out")) == ["app/model.py", "app/train.py"]

    def test_directory_for_a_single_script(self, run: Run, script: Path) -> None:
        Path("out").mkdir()
        assert run("convert", "train.py", "-o", "out").exit_code == 0
        assert "hvd" in Path("out/train.py").read_text()

    def test_directory_for_every_program_of_a_directory(self, run: Run, program: Path) -> None:
        (program / "other").mkdir()
        (program / "other" / "alone.py").write_text("import tensorflow as tf\n")
        for _ in range(2):  # The output of the first run below OUT is not converted by the second.
            assert run("convert", ".", "-o", "out").exit_code == 0
            assert list(texts(program / "out")) == ["model.py", "other/alone.py", "train.py"]
        result = run("convert", "other", "-o", "elsewhere/")
        assert list(texts(program / "elsewhere")) == ["alone.py"], result.stderr

    @pytest.mark.parametrize("args", [("train.py",), (".",)])
    def test_directory_is_not_that_of_the_program(
        self, run: Run, program: Path, args: tuple[str, ...]
    ) -> None:
        result = run("convert", *args, "-o", ".")
        assert result.exit_code == 2
        assert "train.py: error: . holds the program itself; name another directory" in result.stderr
        assert texts(program) == BEFORE

    def test_file_takes_one_file_only(self, run: Run, program: Path) -> None:
        result = run("convert", "train.py", "-o", "out.py")
        assert result.exit_code == 2
        assert result.stderr == (
            "train.py: error: changes together with model.py, and out.py is one file; name a directory "
            "with -o DIR, or one file of the program with --only FILE\n"
        )
        assert not (program / "out.py").exists()
        assert run("convert", "train.py", "--only", "model.py", "-o", "out.py").exit_code == 0
        assert (program / "out.py").read_text() == converted(MODEL)
        assert run("convert", "train.py", "--only", "model.py", "-o", "-").stdout == converted(MODEL)

    def test_file_takes_the_script_where_it_alone_changes(self, run: Run, program: Path) -> None:
        (program / "model.py").write_text(converted(MODEL))
        assert run("convert", "train.py", "-o", "train_hvd.py").exit_code == 0
        assert (program / "train_hvd.py").read_text() == converted(TRAIN)


class TestParts:
    def test_only_one_file(self, run: Run, program: Path) -> None:
        for named in ("train.py", "model.py"):
            result = run("convert", named, "--only", "model.py")
            assert result.stdout.count("--- a/") == 1
            assert "--- a/model.py" in result.stdout
            assert "train.py: converted (1 change in 1 of 3 files)\n" in result.stderr
            assert "nothing to change" not in result.stderr
        assert run("convert", "--write", "train.py", "--only", "model.py").exit_code == 0
        assert texts(program) == {**BEFORE, "model.py": AFTER["model.py"]}

    def test_only_a_file_without_changes(self, run: Run, program: Path) -> None:
        result = run("convert", "train.py", "--only", "tools.py")
        assert result.exit_code == 0
        assert result.stderr.startswith("train.py: nothing found: ")

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (("--only", "eval.py"), "does not import eval.py; its program is train.py, model.py, tools.py"),
            (("--at", "eval.py:1"), "does not import eval.py; its program is train.py, model.py, tools.py"),
            (("--at", "model.py:9"), "model.py has 5 lines, and no line 9 (--at)"),
            (("--at", "gone.py:1"), "gone.py cannot be read as Python (--at)"),
            (("--at", "9"), "has 4 lines, and no line 9 (--at)"),
            (("--at", "1:1"), "is not a notebook; give --at a LINE"),
        ],
    )
    def test_of_no_file_of_the_program(
        self, run: Run, program: Path, args: tuple[str, ...], message: str
    ) -> None:
        (program / "eval.py").write_text("x = 1\n")
        result = run("convert", "train.py", *args)
        assert (result.exit_code, result.stderr) == (2, f"train.py: error: {message}\n")

    def test_at_a_line_of_a_module(self, run: Run, program: Path) -> None:
        found = run("convert", "train.py", "--at", "model.py:1").stdout
        assert "--- a/model.py" in found
        assert "--- a/train.py" not in found
        assert run("convert", "model.py", "--at", "1").stdout == found
        assert "--- a/train.py" in run("convert", "train.py", "--at", "train.py:1").stdout

    @pytest.mark.parametrize(
        "args",
        [
            ("--only", "model.py", "--at", "1", "train.py"),
            ("--only", "model.py", "."),
            ("--only", "model.py", "train.py", "model.py"),
            ("--only", "", "train.py"),
            ("-o", "out.py", "train.py", "model.py"),
            ("-o", "-", "."),
        ],
    )
    def test_wrong_usage(self, run: Run, program: Path, args: tuple[str, ...]) -> None:
        assert run("convert", *args).exit_code == 2
        assert texts(program) == BEFORE

    @pytest.mark.parametrize("args", [("--only", "x.py"), ("--at", "x.py:1")])
    def test_are_not_for_standard_input(self, run: Run, here: Path, args: tuple[str, ...]) -> None:
        result = run("convert", *args, "-", input=b"import tensorflow as tf\n")
        assert result.exit_code == 2
        assert "<stdin>: error: is a single script or notebook" in result.stderr


class TestDirectory:
    @pytest.fixture
    def project(self, program: Path) -> Path:
        """Write two programs that share model.py, a script that does not train, and a test file."""
        (program / "other.py").write_text("import tensorflow as tf\nimport model\nmodel.fit()\n")
        (program / "eval.py").write_text(EVALUATE)
        (program / "test_model.py").write_text("import tensorflow as tf\nimport model\n")
        return program

    def test_converts_each_program_and_each_file_once(self, run: Run, project: Path) -> None:
        result = run("convert", ".")
        assert result.exit_code == 0
        diffs = [line for line in result.stdout.splitlines() if line.startswith("---")]
        assert sorted(diffs) == ["--- a/model.py", "--- a/other.py", "--- a/train.py"]
        summary = [line for line in result.stderr.splitlines() if line[0] != " "]
        assert summary == [
            f"{NOTHING}; 2 files were read: eval.py, tools.py",
            "other.py: converted (2 changes in 2 of 3 files)",
            "test_model.py: nothing found: it is a test; name it to convert it too",
            "train.py: converted (1 change in 1 of 3 files)",
            "4 programs of 6 files: 2 converted, 2 nothing found",
            "Nothing was written. Add --write to change the files.",
        ]

    def test_the_diff_can_be_applied_and_is_what_is_written(self, run: Run, project: Path) -> None:
        diff = run("convert", ".").stdout_bytes
        shutil.copytree(project, project / "copy")
        subprocess.run(["patch", "-p1"], input=diff, check=True, capture_output=True, cwd=project / "copy")
        patched = texts(project / "copy")
        shutil.rmtree(project / "copy")
        before = {path.name: path.stat().st_ino for path in project.glob("*.py")}
        result = run("convert", "--write", ".")
        assert result.exit_code == 0
        assert result.stderr.count(", written\n") == 2
        assert texts(project) == patched
        assert patched["test_model.py"] == (project / "test_model.py").read_text()
        assert patched["eval.py"] == EVALUATE
        untouched = ("eval.py", "tools.py", "test_model.py")
        assert all((project / name).stat().st_ino == before[name] for name in untouched)
        assert run("convert", "--check", ".").exit_code == 0

    def test_one_program_that_cannot_be_written_does_not_sink_the_other(
        self, run: Run, project: Path
    ) -> None:
        (project / "other.py").chmod(0o444)
        result = run("convert", "--write", ".")
        assert result.exit_code == 2
        assert "other.py: error: is read-only" in result.stderr
        assert "train.py: converted (2 changes in 2 of 3 files), written\n" in result.stderr
        assert (project / "model.py").read_text() == AFTER["model.py"]
        assert (project / "train.py").read_text() == AFTER["train.py"]

    def test_a_module_whose_program_starts_elsewhere_is_left_alone(self, run: Run, program: Path) -> None:
        package = program / "package"
        package.mkdir()
        (package / "part.py").write_text(MODEL.replace("import tools\n", ""))
        (program / "train.py").write_text(
            "import tensorflow as tf\nimport package.part\npackage.part.fit()\n"
        )
        result = run("convert", "--write", "package")
        assert (result.exit_code, result.stderr) == (
            0,
            "package/part.py: nothing found: it belongs to the program of train.py; convert that\n",
        )


class TestJson:
    def test_tells_files_and_programs(self, run: Run, program: Path) -> None:
        (program / "model.py").write_text(MODEL + "# doubt\n")
        found = json.loads(run("convert", "--format", "json", "model.py").stdout)
        start, module = found["files"]
        assert (start["path"], module["path"]) == ("train.py", "model.py")
        assert start["program"] == module["program"] == "train.py"
        assert start["status"] == module["status"] == "converted"
        assert [len(entry["applied"]) for entry in found["files"]] == [1, 1]
        assert [len(entry["doubts"]) for entry in found["files"]] == [0, 1]
        assert all(entry["diff"].startswith(f"--- a/{entry['path']}\n") for entry in found["files"])
        assert found["programs"] == [
            {
                "path": "train.py",
                "status": "converted",
                "files": ["train.py", "model.py", "tools.py"],
                "changed": ["train.py", "model.py"],
                "loops": [{"path": "train.py", "line": 2, "column": 1, "pattern": "GradTape"}],
                "unresolved": [],
                "asked_for": ["model.py"],
                "reason": "",
                "error": None,
            }
        ]
        summary = found["summary"]
        assert (summary["files"], summary["converted"], summary["changes"], summary["doubts"]) == (3, 1, 2, 1)

    def test_says_what_was_written(self, run: Run, program: Path) -> None:
        found = json.loads(run("convert", "--format", "json", "--write", "train.py").stdout)
        assert found["written"] is True
        assert [entry["written"] for entry in found["files"]] == [True, True]

    def test_tells_where_a_refusal_is(self, run: Run, program: Path) -> None:
        (program / "model.py").write_text("import tensorflow as tf\n  # refuse\nnet.fit(1)\n")
        found = json.loads(run("convert", "--format", "json", "train.py").stdout)
        assert found["files"][0]["position"] == {"path": "model.py", "line": 2, "column": 3}

    def test_tells_what_was_read_where_nothing_is_found(self, run: Run, program: Path) -> None:
        (program / "eval.py").write_text("import tools\nimport mylib\n")
        found = json.loads(run("convert", "--format", "json", "eval.py").stdout)
        (told,) = found["programs"]
        assert told["files"] == ["eval.py", "tools.py"]
        assert told["unresolved"] == [{"path": "eval.py", "line": 2, "column": 1, "text": "import mylib"}]


def test_check_names_the_program_of_a_module(run: Run, program: Path) -> None:
    (program / "model.py").write_text(MODEL + "bad()\n")
    (program / "train.py").write_text(TRAIN + "bad()\n")
    shown = run("check", ".").stdout
    assert shown.startswith("model.py (program of train.py)\n  6:1 TF03")
    assert "\n\ntrain.py\n  5:1 TF03" in shown
    found = json.loads(run("check", ".", "--format", "json").stdout)["files"]
    assert {entry["path"]: entry.get("programs") for entry in found} == {
        "model.py": ["train.py"],
        "tools.py": None,
        "train.py": None,
    }


def test_a_module_that_is_no_python_refuses_its_program(here: Path) -> None:
    (here / "step.py").write_text("def step(:\n")
    (here / "train.py").write_text("import tensorflow as tf\nfrom step import step\nstep()\n")
    result = CliRunner().invoke(cli, ["convert", "train.py"])
    assert result.exit_code == 2
    assert result.stderr == "train.py: refused: step.py:1:10: not Python: invalid syntax\n"
    found = json.loads(CliRunner().invoke(cli, ["convert", "--format", "json", "train.py"]).stdout)
    assert found["files"][0]["position"] == {"path": "step.py", "line": 1, "column": 10}


def test_a_script_behind_a_link_imports_from_where_it_lies(run: Run, program: Path) -> None:
    (program / "bin").mkdir()
    (program / "bin" / "start.py").symlink_to("../train.py")
    result = run("convert", "--write", "bin/start.py")
    assert result.exit_code == 0
    assert (program / "bin" / "start.py").is_symlink()
    assert texts(program) == {**AFTER, "bin/start.py": AFTER["train.py"]}


@pytest.mark.slow
def test_the_engine_itself(here: Path) -> None:
    """Without stand-ins: the diff applies, and results in the written text; a second run changes nothing."""
    (here / "step.py").write_text(
        "import tensorflow as tf\n\n\n"
        "class Trainer:\n"
        "    def __init__(self, model, optimizer):\n"
        "        self.model, self.optimizer = model, optimizer\n\n"
        "    def step(self, x, y):\n"
        "        with tf.GradientTape() as tape:\n"
        "            loss = tf.reduce_mean((self.model(x) - y) ** 2)\n"
        "        grads = tape.gradient(loss, self.model.trainable_variables)\n"
        "        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))\n"
        "        return loss\n"
    )
    (here / "train.py").write_text(
        "import tensorflow as tf\n\nfrom step import Trainer\n\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "trainer = Trainer(model, tf.keras.optimizers.Adam(0.1))\n"
        "for x, y in tf.data.Dataset.from_tensors((1.0, 2.0)).repeat().shuffle(4).take(16):\n"
        "    print(float(trainer.step(x, y)))\n"
    )

    def trainshift(*args: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "trainshift", *args]
        return subprocess.run(command, capture_output=True, check=False)

    shown = trainshift("convert", "step.py")
    assert shown.returncode == 0
    assert shown.stderr.startswith(b"step.py belongs to the program of train.py.\ntrain.py: converted (")
    shutil.copytree(here, here / "copy")
    subprocess.run(["patch", "-p1"], input=shown.stdout, check=True, capture_output=True, cwd=here / "copy")
    patched = texts(here / "copy")
    shutil.rmtree(here / "copy")
    assert trainshift("convert", "--write", "train.py").returncode == 0
    assert texts(here) == patched
    assert "DistributedGradientTape" in patched["step.py"]
    assert "0.1 * hvd.size()" in patched["train.py"]
    assert trainshift("convert", "--check", ".").returncode == 0


def test_several_files_go_below_one_folder_as_they_lie(run: Run, here: Path) -> None:
    for name in ("a/train.py", "b/train.py"):
        (here / name).parent.mkdir()
        (here / name).write_text(BEFORE["train.py"].replace("from model import", "# from model import"))
    result = run("convert", "a/train.py", "b/train.py", "-o", "out")
    assert result.exit_code == 0
    assert sorted(each.relative_to(here / "out").as_posix() for each in (here / "out").rglob("*.py")) == [
        "a/train.py",
        "b/train.py",
    ]
