"""The search for the requirements of a script's project, and their effect on `convert`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trainshift.cli.main import cli
from trainshift.engine.versions import demands
from trainshift.host import declarations
from trainshift.host.declarations import Declarations
from trainshift.host.environment import environment

SCRIPT = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(1e-3)
for x, y in data:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
NEW = "tensorflow==2.17.1\n"
OLD = "tensorflow==2.15.1\n"
OPEN = "tensorflow>=2.4\n"
KERAS_2 = 'keras = "2"\n'


@pytest.fixture
def project(here: Path) -> Path:
    """A repository, the current directory, with a script in `src/app`."""
    (here / ".git").mkdir()
    put(here / "src" / "app" / "train.py", SCRIPT)
    return here


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def too_new(path: str) -> str | None:
    """The place that a fresh search names: empty if the versions fit, None if nothing decides."""
    runtime = Declarations().of(path)
    return None if runtime is None else runtime.too_new.partition(" asks")[0]


def convert(*args: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["convert", *args], input=input)


@pytest.mark.parametrize(("asked", "found"), [("==2.6.2", ["PD09"]), ("==3.0.0", ["PD06", "PD09"])])
def test_codes_that_came_with_paddle_3_are_off_for_an_older_one(
    project: Path, asked: str, found: list[str]
) -> None:
    put(project / "requirements.txt", f"{OLD}paddlepaddle{asked}\n")
    put(
        project / "model.py",
        """\
import paddle

@paddle.jit.to_static(full_graph=True)
def step(x):
    for i in range(3):
        for j in range(3):
            if j == 1:
                break
            x = x + 1
    else:
        x = x * 2
    return x
""",
    )
    result = CliRunner().invoke(cli, ["check", "--format", "json", "model.py"])
    codes = {each["code"] for each in json.loads(result.stdout)["files"][0]["diagnostics"]}
    assert codes >= {"PD09"}
    assert sorted(codes & {"PD06", "PD09"}) == found


def test_what_a_directory_says_of_paddle_decides_nothing_of_tensorflow(project: Path) -> None:
    put(project / "requirements.txt", NEW)
    put(project / "src" / "requirements.txt", "paddlepaddle==2.6.2\n")
    runtime = Declarations().of("src/app/train.py")
    assert runtime is not None
    assert (runtime.is_paddle2, bool(runtime.too_new)) == (True, True)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"src/app/requirements.txt": NEW}, "src/app/requirements.txt:1"),
        ({"requirements.txt": NEW}, "requirements.txt:1"),
        ({"requirements/base.txt": NEW}, "requirements/base.txt:1"),
        ({"src/app/requirements.txt": OLD, "requirements.txt": NEW}, ""),
        ({"src/app/requirements.txt": OPEN, "requirements.txt": NEW}, "requirements.txt:1"),
        ({"requirements.txt": OPEN}, None),
        ({"other/requirements.txt": NEW, "src/requirements.md": NEW}, None),
        ({"src/pyproject.toml": "", "requirements.txt": NEW}, "requirements.txt:1"),
        ({"src/app/.git/HEAD": "", "requirements.txt": NEW}, None),
        ({"requirements.txt": "-r deep/base.txt\n", "deep/base.txt": f"-r ../more.in\n{OPEN}"}, None),
        ({"requirements.txt": "-r a/b.txt\n", "a/b.txt": "-c ../c.in\n" + OPEN, "c.in": NEW}, "c.in:1"),
        ({"requirements.txt": "-r requirements.txt\n" + NEW}, "requirements.txt:2"),
        ({"requirements.txt": OPEN, "environment.yml": "- tensorflow=2.16\n"}, "environment.yml:1"),
    ],
)  # fmt: skip
def test_the_nearest_directory_that_decides(
    project: Path, files: dict[str, str], expected: str | None
) -> None:
    for name, text in files.items():
        put(project / name, text)
    assert too_new("src/app/train.py") == expected


def test_without_a_repository_a_project_file_ends_the_search(here: Path) -> None:
    put(here / "requirements.txt", NEW)
    put(here / "a" / "pyproject.toml", "")
    put(here / "a" / "b" / "train.py", SCRIPT)
    assert too_new("a/b/train.py") is None
    (here / "a" / "pyproject.toml").unlink()
    assert too_new("a/b/train.py") == "requirements.txt:1"


def test_the_home_of_the_user_is_no_project(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("USERPROFILE", str(here))
    put(here / "requirements.txt", NEW)
    put(here / "a" / "train.py", SCRIPT)
    assert too_new("a/train.py") is None
    assert too_new("train.py") == "requirements.txt:1"


def test_each_directory_is_read_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project / "requirements.txt", OPEN)
    read = []

    def count(path: str, text: str) -> object:
        read.append(path)
        return demands.read_demands(path, text)

    monkeypatch.setattr(declarations, "read_demands", count)
    found = Declarations()
    for path in ("src/app/train.py", "src/app/other.py", "src/third.py", "-"):
        assert found.of(path) is None
    assert read == [str(project / "requirements.txt")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (NEW.encode("utf-16"), "requirements.txt:1"),
        (NEW.encode("utf-8-sig"), "requirements.txt:1"),
        (b"# \xe9\n" + NEW.encode(), "requirements.txt:2"),
        (b"\x00\xff\xfe\x00tensorflow==2.17", None),
        (b"", None),
    ],
)
def test_any_encoding(project: Path, data: bytes, expected: str | None) -> None:
    (project / "requirements.txt").write_bytes(data)
    assert too_new("train.py") == expected


def test_what_is_no_readable_file_is_left_out(project: Path) -> None:
    (project / "pyproject.toml").mkdir()
    (project / "requirements-a.txt").symlink_to("gone.txt")
    (project / "requirements-b.txt").symlink_to("requirements-b.txt")
    if hasattr(os, "mkfifo"):
        os.mkfifo(project / "requirements-c.txt")
    put(project / "requirements-d.txt", "-r https://example.org/requirements.txt\n-r .\n-r \0\n" + NEW)
    assert too_new("train.py") == "requirements-d.txt:4"


def test_the_refusal(project: Path) -> None:
    put(project / "requirements.txt", "numpy\n" + NEW)
    result = convert("--keras=2", "--write", "src/app/train.py")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "src/app/train.py: refused: requirements.txt:2 asks for tensorflow 2.17.1; Horovod 0.28.1 works with "
        "TensorFlow 2.12 to 2.15 (from 2.16 on, Keras 3 breaks its tape and its callbacks); "
        "choose a newer one with --keras or --tensorflow, or add --ignore-versions\n"
    )
    assert (project / "src" / "app" / "train.py").read_text() == SCRIPT


def test_the_way_out(project: Path) -> None:
    put(project / "requirements.txt", NEW)
    result = convert("--ignore-versions", "--write", "src/app/train.py")
    assert result.exit_code == 0
    assert "hvd" in (project / "src" / "app" / "train.py").read_text()


FIT = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y)
"""


def test_no_way_out_leads_to_a_fit_that_would_not_average(project: Path) -> None:
    script = project / "src" / "app" / "train.py"
    put(project / "requirements.txt", NEW)
    put(script, FIT)
    result = convert("--ignore-versions", "--write", "src/app/train.py")
    assert result.exit_code == 1
    assert script.read_text() == FIT
    assert "would silently train fit without averaging" in result.stderr
    put(project / "requirements.txt", "tf-keras==2.17.0\n")  # Keras 2, which Horovod's optimizer works with.
    assert convert("--ignore-versions", "--write", "src/app/train.py").exit_code == 0


@pytest.mark.parametrize("text", [SCRIPT, FIT])
def test_what_is_demanded_decides_for_which_keras_is_written(project: Path, text: str) -> None:
    put(project / "requirements.txt", NEW)
    put(project / "src" / "app" / "train.py", text)
    result = convert("--write", "src/app/train.py")
    assert result.exit_code == 0
    assert "written for Keras 3, because requirements.txt:1 asks for tensorflow 2.17.1" in result.stderr
    written = (project / "src" / "app" / "train.py").read_text()
    assert "Distributed" not in written
    assert "hvd.allreduce" in written


def test_each_script_has_its_own_verdict(project: Path) -> None:
    put(project / "old" / "requirements.txt", OLD)
    put(project / "old" / "train.py", SCRIPT)
    put(project / "new" / "requirements.txt", NEW)
    put(project / "new" / "train.py", SCRIPT)
    put(project / "new" / "util.py", "x = 1\n")
    result = convert("--format", "json", ".")
    entries = {entry["path"]: entry for entry in json.loads(result.stdout)["files"]}
    assert {path: entry["status"] for path, entry in entries.items()} == {
        "new/train.py": "converted",
        "new/util.py": "nothing found",
        "old/train.py": "converted",
        "src/app/train.py": "converted",
    }
    texts = {path: json.dumps(entry["decisions"]) for path, entry in entries.items()}
    told = [path for path, text in texts.items() if "because new/requirements.txt:1 asks for" in text]
    assert told == ["new/train.py"]
    assert result.exit_code == 0


def test_standard_input_belongs_to_the_current_directory(project: Path) -> None:
    assert convert("-", input=SCRIPT).exit_code == 0
    put(project / "requirements.txt", NEW)
    result = convert("-", input=SCRIPT)
    assert result.exit_code == 0
    assert "requirements.txt:1 asks for tensorflow 2.17.1" in result.stderr


@pytest.mark.parametrize(("requirement", "loaded"), [("numpy==2.0", False), ("tensorflow==2.15", True)])
def test_packaging_is_loaded_only_where_it_matters(project: Path, requirement: str, loaded: bool) -> None:
    put(project / "requirements.txt", requirement + "\n-c tensorflow-constraints.txt\n")
    code = (
        "import sys; from trainshift.host.declarations import Declarations; Declarations().of('train.py'); "
        "print('packaging' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loaded)


def check(*args: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["check", "--format=json", *args])
    assert result.exit_code == 0, result.output
    (file,) = json.loads(result.stdout)["files"]
    found: list[dict[str, Any]] = file["diagnostics"]
    return found


def test_check_tells_at_the_import_what_the_project_asks_for(project: Path) -> None:
    put(project / "requirements.txt", f"numpy\n{NEW}")
    assert check("src/app/train.py") == []
    put(project / "trainshift.toml", KERAS_2)
    (found,) = check("src/app/train.py")
    assert (found["code"], found["severity"], found["line"]) == ("TS04", "information", 1)
    assert str(found["message"]).startswith("requirements.txt asks for tensorflow 2.17.1, but Horovod")
    (related,) = found["related"]
    assert (related["path"], related["line"]) == ("requirements.txt", 2)
    put(project / "requirements.txt", OLD)
    assert check("src/app/train.py") == []


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT.replace("as tf", "as tf  # trainshift: ignore[TS04]"),
        SCRIPT.replace("as tf", "as tf  # trainshift: ignore"),
        "import tensorflow as tf\nprint(tf.__version__)\n",
    ],
)
def test_check_tells_nothing_where_that_is_silenced_or_nothing_trains(project: Path, text: str) -> None:
    put(project / "requirements.txt", NEW)
    put(project / "trainshift.toml", KERAS_2)
    put(project / "src" / "app" / "train.py", text)
    assert check("src/app/train.py") == []


@pytest.mark.parametrize("setting", ['ignore = ["TS04"]', '[severity]\nTS04 = "off"'])
def test_settings_switch_it_off(project: Path, setting: str) -> None:
    put(project / "requirements.txt", NEW)
    put(project / "trainshift.toml", KERAS_2 + setting)
    assert check("src/app/train.py") == []
    put(project / "trainshift.toml", KERAS_2 + '[severity]\nTS04 = "error"')
    result = CliRunner().invoke(cli, ["check", "src/app/train.py"])
    assert result.exit_code == 1
    assert "TS04" in result.output


def test_the_python_of_a_project_is_asked_and_then_the_first_on_the_path(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = str(project / "src" / "app" / "train.py")
    versions = {"active": "2.12.0", ".venv": "2.21.0", "venv": "2.18.0", "path": "2.16.2"}
    for name, version in versions.items():
        put(
            project / name / "lib/python3.11/site-packages" / f"tensorflow-{version}.dist-info" / "METADATA",
            "",
        )
        put(project / name / "bin" / "python", "no program")
        (project / name / "bin" / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(project / "path" / "bin"))
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "active"))
    for name, version in versions.items():
        found = environment(script)
        assert found is not None
        assert found.why == f"the Python of {name} has tensorflow {version}"
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
        shutil.rmtree(project / name)


def test_what_a_python_has_is_read_and_not_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = project / "env" / "lib" / "python3.12" / "site-packages"
    put(packages / "tensorflow_cpu-2.21.0.dist-info" / "METADATA", "")
    put(packages / "tensorflow_io-0.37.1.dist-info" / "METADATA", "")
    put(project / "env" / "bin" / "python", "no program")
    (project / "env" / "bin" / "python").chmod(0o755)
    (project / "env" / "bin" / "other").symlink_to(sys.executable)
    for name in ("python", "other"):
        found = environment(python=str(project / "env" / "bin" / name))
        assert found is not None
        assert (found.is_installed, found.why) == (True, "the Python of env has tensorflow 2.21.0")
    assert environment(python=str(project / "nothing")) is None
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "env"))
    assert "because the Python of env has tensorflow 2.21.0" in convert("src/app/train.py").stderr
    put(project / "requirements.txt", OLD)
    assert "the Python of env" not in convert("src/app/train.py").stderr
