"""The sources of a file's settings, and the messages about invalid settings files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from e2e.cli.conftest import Run
from trainshift.core.choices import Choices
from trainshift.engine import conversion
from trainshift.engine.conversion import Conversion

SCRIPT = "import tensorflow as tf\nbad()\n"
OWN = 'ignore = ["TF03"]\n'
PROJECT = f"[tool.trainshift]\n{OWN}"


@pytest.fixture
def script(here: Path) -> Path:
    """Write p/src/train.py, with findings."""
    path = here / "p" / "src" / "train.py"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT)
    return path


def status(run: Run, *args: str) -> int:
    return run("check", "p/src/train.py", *args).exit_code


@pytest.mark.parametrize("place", ["p/src", "p", "."])
@pytest.mark.parametrize(("name", "text"), [("trainshift.toml", OWN), ("pyproject.toml", PROJECT)])
def test_the_nearest_file_above_the_script_counts(
    run: Run, script: Path, place: str, name: str, text: str
) -> None:
    assert status(run) == 1
    Path(place, name).write_text(text)
    assert status(run) == 0
    assert status(run, "--isolated") == 1


def test_nearer_files_hide_farther_ones(run: Run, script: Path) -> None:
    Path("trainshift.toml").write_text(OWN)
    Path("p/src/trainshift.toml").write_text("")
    assert status(run) == 1


def test_trainshift_toml_comes_before_pyproject_toml(run: Run, script: Path) -> None:
    Path("p/pyproject.toml").write_text(PROJECT)
    Path("p/trainshift.toml").write_text("")
    assert status(run) == 1


@pytest.mark.parametrize("text", ["", "[tool.ruff]\nselect = []\n", "[project]\nname = 'x'\n"])
def test_a_pyproject_without_our_table_is_passed_over(run: Run, script: Path, text: str) -> None:
    Path("p/src/pyproject.toml").write_text(text)
    Path("trainshift.toml").write_text(OWN)
    assert status(run) == 0


@pytest.mark.parametrize(("name", "text"), [("mine.toml", OWN), ("pyproject.toml", PROJECT)])
def test_config_names_the_file(run: Run, script: Path, name: str, text: str) -> None:
    Path("p/trainshift.toml").write_text("[severity]\nTF03 = 'error'\n")
    Path("other").mkdir()
    Path("other", name).write_text(text)
    assert status(run, "--config", f"other/{name}") == 0


def test_each_script_of_a_run_has_its_own(run: Run, script: Path) -> None:
    Path("p/trainshift.toml").write_text(OWN)
    Path("q").mkdir()
    Path("q/train.py").write_text(SCRIPT)
    assert (
        run("check", "-q", ".").stdout == "q/train.py:2:1: TF03 warning: bad is called, and that matters.\n"
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("train.py", 0), ("src/", 0), ("/src/*.py", 0), ("*.py", 0), ("test_*.py", 1), ("/train.py", 1)],
)
def test_per_file_ignores_are_relative_to_their_file(
    run: Run, script: Path, pattern: str, expected: int
) -> None:
    Path("p/trainshift.toml").write_text(f'[per-file-ignores]\n"{pattern}" = ["TF03"]\n')
    assert status(run) == expected


def test_severities_decide_the_exit_status(run: Run, script: Path) -> None:
    Path("trainshift.toml").write_text('[severity]\nTF03 = "information"\n')
    assert status(run) == 0
    Path("trainshift.toml").write_text('[severity]\nTF03 = "error"\n')
    assert status(run, "--fail-on", "error") == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trainshift.toml", "x = \n", "p/trainshift.toml:1:5: is not TOML: Invalid value"),
        ("trainshift.toml", "\n\nselect = [\n", "p/trainshift.toml:4:1: is not TOML: "),
        ("pyproject.toml", "[tool\n", "p/pyproject.toml:1:6: is not TOML: "),
        (
            "trainshift.toml",
            "slect = []\n",
            "p/trainshift.toml: `slect` is not a setting. Did you mean select?",
        ),
        (
            "pyproject.toml",
            "[tool.trainshift]\nignore = ['TF33']\n",
            "p/pyproject.toml: [tool.trainshift]: `ignore` names 'TF33', which is not a code. Did you mean",
        ),
        (
            "pyproject.toml",
            "[tool]\ntrainshift = 3\n",
            "p/pyproject.toml: [tool.trainshift]: must be a table",
        ),
        (
            "trainshift.toml",
            "exclude = ['!']\n",
            "p/trainshift.toml: `exclude` holds '!', which is not a .gitig",
        ),
        (
            "trainshift.toml",
            "[per-file-ignores]\n'!' = []\n",
            "p/trainshift.toml: `per-file-ignores` holds '!'",
        ),
        ("trainshift.toml", b"\xff", "p/trainshift.toml: is not UTF-8 text"),
        ("trainshift.toml", "a = " + "[" * 5000, "p/trainshift.toml"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_checked(
    run: Run, script: Path, name: str, text: str | bytes, message: str
) -> None:
    Path("p", name).write_bytes(text if isinstance(text, bytes) else text.encode())
    result = run("check", ".")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_a_file_of_settings_that_cannot_be_read(run: Run, script: Path) -> None:
    result = run("check", "p", "--config", "none.toml")
    assert (result.exit_code, result.stderr) == (
        2,
        "Error: none.toml: cannot be read: no such file or directory\n",
    )


def test_the_settings_that_the_documentation_shows_are_read(run: Run, script: Path) -> None:
    page = (Path(__file__).parents[3] / "server/docs/checking.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    (shown,) = [each for each in blocks if "[tool.trainshift]" in each]
    Path("pyproject.toml").write_text(shown)
    assert status(run) == 1
    Path("pyproject.toml").write_text(shown.replace('"TF04"', '"TF03"'))
    assert status(run) == 0


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Choices | None]:
    """The options of each conversion."""
    found: list[Choices | None] = []
    convert = conversion.convert_program

    def noted(*args: Any, choices: Choices | None = None, **others: Any) -> Conversion:
        found.append(choices)
        return convert(*args, **others)

    monkeypatch.setattr(conversion, "convert_program", noted)
    return found


def test_options_decide_over_settings_of_how_to_convert(
    run: Run, script: Path, chosen: list[Choices | None]
) -> None:
    Path("p/trainshift.toml").write_text('compression = "fp16"\nsync-batch-norm = true\nwarmup-epochs = 3\n')
    Path("own.toml").write_text("backward-passes-per-step = 2\n")
    both = Choices(compression="fp16", sync_batch_norm=True, warmup_epochs=3)
    for args, expected in (
        ((), both),
        (("--no-sync-batch-norm", "--warmup-epochs", "0"), Choices(compression="fp16")),
        (("--op", "adasum", "--isolated"), Choices(op="adasum")),
        (
            ("--config", "own.toml", "--no-divide-data"),
            Choices(backward_passes_per_step=2, divide_data=False),
        ),
    ):
        assert run("convert", "p/src/train.py", *args).exit_code == 0
        found = chosen.pop()
        assert found is not None
        # Nothing requires a TensorFlow, and one may be installed.
        assert replace(found, is_open=False, installed=("", "")) == expected


@pytest.mark.parametrize(
    "args", [("--compression", "fp8"), ("--backward-passes-per-step", "0"), ("--config", "a", "--isolated")]
)
def test_what_cannot_be_chosen_is_wrong_usage(run: Run, script: Path, args: tuple[str, ...]) -> None:
    result = run("convert", "p/src/train.py", *args)
    assert result.exit_code == 2
    assert args[0] in result.stderr


def test_settings_that_are_wrong_leave_the_script_alone(run: Run, script: Path) -> None:
    Path("p/trainshift.toml").write_text("warmup-epochs = -1\n")
    result = run("convert", "--write", "p/src/train.py")
    assert result.exit_code == 2
    assert "`warmup-epochs` must be a whole number of at least 0, not -1." in result.stderr
    assert script.read_text() == SCRIPT


UNWRAPPED = """import horovod.tensorflow.keras as hvd
import tensorflow as tf
from acme.training import Adam8

hvd.init()
x = tf.random.normal((64, 4), seed=1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(Adam8(4, 0.1), "mse")
model.fit(x, x[:, :1], callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""


@pytest.mark.parametrize("order", [("p", "q"), ("q", "p")])
def test_people_s_own_libraries_are_those_of_their_project(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(here)
    own = 'Adam8 = { role = "optimizer", signature = "blocks, learning_rate=0.01" }'
    for folder, table in (("p", f'[libraries."acme.training"]\n{own}\n'), ("q", "")):
        Path(folder).mkdir()
        Path(folder, "train.py").write_text(UNWRAPPED)
        Path(folder, "trainshift.toml").write_text(table)
    told = run("check", "-q", "--no-cache", *order).stdout
    assert "p/train.py:8:1: HZ07" in told
    assert "q/train.py" not in told
