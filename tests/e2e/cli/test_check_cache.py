"""The cache of `check`: its entries equal a fresh check, and damage to it does no harm."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainshift.cli.checks import check
from trainshift.cli.main import cli
from trainshift.engine.checking import check as check_text
from trainshift.engine.packing import packed, unpacked
from trainshift.engine.verdicts import Verdict
from trainshift.host import verdicts_on_disk
from trainshift.host.verdicts_on_disk import FOLDER
from trainshift.python.syntax.chunks import parse

PROGRAMS = Path(__file__).parents[3] / "fixtures" / "programs"
FINDING = "import tensorflow as tf\ntf.random = None\n"
_KEPT = "verdicts.json"


def checked(*more: str) -> str:
    """The exact output of `check` in the current directory."""
    result = CliRunner().invoke(cli, ["check", "--format", "json", *more, "."])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def anew() -> str:
    """The same without a cache."""
    return checked("--no-cache", "--jobs", "1")


@pytest.fixture
def project(here: Path) -> Path:
    """A project of two files, one of which imports the other."""
    (here / "pyproject.toml").write_text("")
    (here / "train.py").write_text(f"{FINDING}import net\nnet.fit()\n")
    (here / "net.py").write_text("import tensorflow as tf\n\n\ndef fit():\n    tf.print(1)\n")
    return here


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are checked rather than looked up."""
    names: list[str] = []
    own = check.check_file

    def noting(job: check.Job) -> object:
        names.append(job.name)
        return own(job)

    monkeypatch.setattr(check, "check_file", noting)
    return names


def test_a_second_run_judges_nothing(project: Path, judged: list[str]) -> None:
    first = checked()
    assert sorted(judged) == ["net.py", "train.py"]
    judged.clear()
    assert checked() == first == anew()
    assert sorted(judged) == ["net.py", "train.py"], "only the run without a cache judges"


def test_all_formats_say_the_same_of_what_was_kept(project: Path) -> None:
    for format_ in ("text", "sarif", "github"):
        arguments = ["check", "-v", "--format", format_, "--jobs", "1", "."]
        runs = [CliRunner().invoke(cli, arguments).output for _ in range(2)]
        assert runs[0] == runs[1] == CliRunner().invoke(cli, [*arguments, "--no-cache"]).output


def test_statistics_tell_where_the_time_went(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainshift.cli.checks.report._LEAST_SHOWN", 0.0)
    first, second = (CliRunner().invoke(cli, ["check", "--statistics", "."]) for _ in range(2))
    assert "The slowest files:" in first.stderr
    assert "train.py" in first.stderr
    assert "looked up" not in first.stderr
    assert second.stderr.splitlines()[-1] == "2 files looked up in the cache."
    assert first.stdout == second.stdout


def test_the_cache_ignores_itself(project: Path) -> None:
    checked()
    assert sorted(each.name for each in (project / FOLDER).iterdir()) == [".gitignore", "CACHEDIR.TAG", _KEPT]
    assert "*" in (project / FOLDER / ".gitignore").read_text().splitlines()
    assert (
        (project / FOLDER / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )


def test_it_lies_in_the_root_of_the_project_or_where_it_is_wanted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    (project / "below" / "a.py").write_text("x = 1\n")
    checked("--no-cache")
    assert not (project / FOLDER).exists()
    checked("--cache-dir", "elsewhere")
    assert (project / "below" / "elsewhere" / _KEPT).exists()
    assert not (project / FOLDER).exists()
    checked()
    assert (project / FOLDER / _KEPT).exists()
    monkeypatch.setenv("TRAINSHIFT_NO_CACHE", "1")
    shutil.rmtree(project / FOLDER)
    checked()
    assert not (project / FOLDER).exists()


def test_what_is_fixed_is_not_looked_up(project: Path) -> None:
    script = project / "train.py"
    script.write_text("def build():\n    import tensorflow as tf\n\n    return tf.constant(1)\n\n\nbuild()\n")
    checked()
    result = CliRunner().invoke(cli, ["check", "--fix", "-v", "."])
    assert "def build" in script.read_text(), result.output
    assert checked() == anew()


def _edit_settings(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.trainshift]\nignore = ["TF02"]\n')


def _edit_environment(project: Path) -> None:
    (project / "lib").mkdir()
    (project / "lib" / "other.py").write_text("import tensorflow as tf\n")
    (project / "train.py").write_text(f"{FINDING}import other\n")
    checked()
    (project / ".env").write_text("PYTHONPATH=lib\n")


def _demand(project: Path) -> None:
    (project / "requirements.txt").write_text("tensorflow==2.99\n")


def _import_it(project: Path) -> None:
    (project / "main.py").write_text("import train\nimport horovod.tensorflow as hvd\nhvd.init()\n")


def _shadow_it(project: Path) -> None:
    (project / "net").mkdir()
    (project / "net" / "__init__.py").write_text("def fit():\n    pass\n")


def _remove_it(project: Path) -> None:
    (project / "net.py").unlink()


@pytest.mark.parametrize(
    "edit", [_edit_settings, _edit_environment, _demand, _import_it, _shadow_it, _remove_it]
)
def test_what_a_verdict_depends_on_is_looked_at_again(project: Path, edit: Callable[[Path], None]) -> None:
    checked()
    edit(project)
    assert checked() == anew()


def test_an_edit_has_those_files_judged_that_depend_on_it(project: Path, judged: list[str]) -> None:
    (project / "alone.py").write_text(FINDING)
    checked()
    judged.clear()
    (project / "net.py").write_text("def fit():\n    pass\n")
    checked()
    assert sorted(judged) == ["net.py", "train.py"]


def test_another_version_of_ours_judges_anew(
    project: Path, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked()
    judged.clear()
    monkeypatch.setattr(verdicts_on_disk, "_maker", lambda: "another one")
    checked()
    assert sorted(judged) == ["net.py", "train.py"]


def _rows(data: dict[str, object]) -> dict[str, object]:
    return {**data, "rows": [[5], [0]]}


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "[" * 100_000,
        lambda text: text.replace('"rows"', '"cows"'),
        lambda text: json.dumps(_rows(json.loads(text))),
        lambda text: json.dumps({**json.loads(text), "entries": {"a": [1]}}),
        lambda text: text.replace('"text"', '"pickle"'),
        lambda text: text.replace('"TF02"', "17"),
        lambda text: text.replace('"violated"', '"mended"'),
    ],
)
def test_a_cache_that_is_harmed_is_no_cache(project: Path, harm: Callable[[str], str]) -> None:
    first = checked()
    kept = project / FOLDER / _KEPT
    kept.write_text(harm(kept.read_text()))
    assert checked() == first == anew()
    assert checked() == first
    json.loads(kept.read_text())


def test_a_cache_that_cannot_be_written_is_none(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert checked() == anew()
    assert not list((project / FOLDER).glob(f"{_KEPT}*"))
    monkeypatch.undo()
    monkeypatch.chdir(project)
    shutil.rmtree(project / FOLDER)
    (project / FOLDER).write_text("a file is in the way")
    assert checked() == anew()


def test_two_processes_at_once(project: Path) -> None:
    for number in range(12):
        (project / f"m{number}.py").write_text(f"{FINDING}x = {number}\n")
    expected = anew()
    command = [sys.executable, "-m", "trainshift", "check", "--format", "json", "."]
    for _ in range(2):
        running = [
            subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        assert [each.communicate()[0] for each in running] == [expected, expected]
    json.loads((project / FOLDER / _KEPT).read_text())


def test_what_was_found_is_packed_and_unpacked() -> None:
    report = check_text(
        "def f():\n    import tensorflow as tf\n\n    return tf\n",
        path="/project/a.py",
    )
    found = Verdict(report, ("/project/main.py",))
    assert any(each.fix is not None for each in report.diagnostics)
    read = unpacked(Verdict, json.loads(json.dumps(packed(found))))
    assert read == found
    assert [each.fix for each in read.report.diagnostics] == [each.fix for each in report.diagnostics]


def _lines(rng: random.Random, text: str) -> str:
    """A text with a line deleted, doubled or inserted, perhaps no longer valid Python."""
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    put = (
        "import horovod.tensorflow as hvd\n",
        "# trainshift: ignore-file[TF]\n",
        "import tensorflow as tf\n",
    )
    kind = rng.randrange(3)
    lines[at : at + 1] = [] if kind == 0 else [lines[at]] * 2 if kind == 1 else [rng.choice(put), lines[at]]
    return "".join(lines)


def _edit(rng: random.Random, root: Path) -> None:
    """One edit of a project: of a line, of a whole file, or of its surroundings."""
    files = sorted(each for each in root.rglob("*.py") if FOLDER not in each.parts)
    file = rng.choice(files)
    match rng.randrange(8):
        case 0 if len(files) > 2:
            file.unlink()
        case 1:
            file.with_name(f"{rng.choice(files).stem}_more.py").write_text(
                f"import {file.stem}\n{file.read_text()}"
            )
        case 2:
            file.write_text(rng.choice(files).read_text())
        case 3:
            (root / ".env").write_text(f"PYTHONPATH={rng.choice(['.', 'lib', file.parent.name])}\n")
        case 4:
            code = rng.choice(["TF", "TL", "HZ"])
            (root / "trainshift.toml").write_text(f'ignore = ["{code}"]\n')
        case 5:
            (root / "requirements.txt").write_text(f"tensorflow=={rng.choice(['2.4', '2.99'])}\n")
        case _:
            file.write_text(_lines(rng, file.read_text()))


@pytest.mark.parametrize("program", sorted(each.name for each in PROGRAMS.iterdir() if each.is_dir()))
def test_random_edits_are_told_with_and_without_a_cache_and_by_two_processes(
    here: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(check, "MANY_FILES", 2)
    monkeypatch.setattr(check, "_BATCH", 1)
    rng = random.Random(program)
    shutil.copytree(PROGRAMS / program, here, dirs_exist_ok=True)
    (here / "pyproject.toml").write_text("")
    for _ in range(4):
        kept = checked("--jobs", str(rng.choice([1, 2])))
        assert kept == anew()
        for _ in range(rng.randrange(1, 3)):
            _edit(rng, here)


def test_the_work_grows_with_the_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0

    def counting(*given: object, **named: object) -> object:
        nonlocal parsed
        parsed += 1
        return parse(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("trainshift.engine.workspace.parse", counting)
    (here / "pyproject.toml").write_text("")
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("")
    for number in range(200):
        text = f"import tensorflow as tf\nfrom package import m{number - 1}\ntf.random = None\n"
        (here / "package" / f"m{number}.py").write_text(text)
        if number in (99, 199):
            parsed = 0
            anew()
            # Each file is read for itself, for what it imports, and for the files that import it.
            assert parsed < 4 * number


def test_the_folder_is_not_made_by_what_was_not_checked(here: Path) -> None:
    result = CliRunner().invoke(cli, ["check", "-"], input="x = 1\n")
    assert result.exit_code == 0
    assert not os.listdir(here)
