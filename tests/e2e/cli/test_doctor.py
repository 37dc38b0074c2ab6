"""`trainshift doctor`, on fake Pythons: programs that answer like the probe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trainshift.cli.main import cli
from trainshift.host.pythons.advice import what_is_missing
from trainshift.host.pythons.probe import packages

Stand = Callable[..., str]
WORKS = {"version": "2.15.1", "built": ["gloo"]}


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """`stand({"tensorflow": "2.15.1"}, {"built": ["gloo"]})` is the path of a Python with this answer."""

    def make(has: dict[str, Any], horovod: dict[str, Any] | str = "exit 1") -> str:
        none = {"tensorflow": "", "keras": "", "tf_keras": "", "horovod": "", "variables": {}, "programs": []}
        told = json.dumps({"python": [3, 11, 7], **none, **has})
        loaded = horovod if isinstance(horovod, str) else f"cat <<'E'\nnoise\n{json.dumps(horovod)}\nE"
        path = tmp_path / "bin dir" / "python"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"#!/bin/sh\nif [ $2 = packages ]; then cat <<'E'\n{told}\nE\nexit; fi\n{loaded}\n",
            encoding="utf-8",
        )
        path.chmod(0o755)
        return str(path)

    return make


def doctor(*args: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *args])


def both(version: str, horovod: str = "0.28.1", **others: Any) -> dict[str, Any]:
    return {"tensorflow": version, "keras": "2.15.0", "horovod": horovod, **others}


def test_what_works_is_told_and_nothing_is_advised(stand: Stand) -> None:
    result = doctor("--python", stand(both("2.15.1"), WORKS))
    assert result.exit_code == 0
    assert "Horovod     0.28.1 (gloo)\n" in result.stdout
    assert result.stdout.endswith("Horovod 0.28.1 works with TensorFlow 2.15.1, by Gloo.\n")


@pytest.mark.parametrize(
    ("has", "horovod", "says"),
    [
        ({}, {}, "TensorFlow is not installed there. Install it, then Horovod:"),
        (
            {"python": [3, 15, 0]},
            {},
            "TensorFlow is not installed there, and has no wheel for Python 3.15. Use Python 3.11.",
        ),
        ({"tensorflow": "1.15.5"}, {}, "TensorFlow 1.15.5 is too old: converted scripts need 2.12 to 2.21."),
        ({"tensorflow": "2.15.1"}, {}, "Horovod is not installed there. Build it for TensorFlow 2.15.1:"),
        (
            both("2.15.1"),
            {"version": "2.15.1", "problem": "ImportError: no symbol"},
            "Horovod 0.28.1 does not work with TensorFlow 2.15.1. Build it again: ImportError: no symbol",
        ),
        (
            both("2.15.1"),
            {"version": "2.15.1", "built": ["nccl"]},
            "Horovod 0.28.1 was built without Gloo and MPI, so no ranks can talk. Build it again:",
        ),
        (
            both("2.15.1"),
            {"tensorflow_problem": "ImportError: numpy.core"},
            "TensorFlow 2.15.1 cannot be imported: ImportError: numpy.core",
        ),
    ],
    ids=["nothing", "too new a Python", "too old", "no Horovod", "another TensorFlow's", "alone", "broken"],
)
def test_what_is_in_the_way_is_told(
    stand: Stand, has: dict[str, Any], horovod: dict[str, Any], says: str
) -> None:
    python = stand(has, horovod)
    told = doctor("--python", python, "--format", "json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["says"][0] == says
    assert what_is_missing(python).splitlines()[0] == says


def test_a_horovod_that_crashes_is_one_that_does_not_work(stand: Stand) -> None:
    result = doctor("--python", stand(both("2.15.1"), "kill -SEGV $$"))
    assert result.exit_code == 1
    assert "does not work with TensorFlow 2.15.1" in result.stdout
    assert "crashed (signal 11)" in result.stdout


@pytest.mark.parametrize(
    ("has", "says"),
    [
        (both("2.21.0", keras="3.15.1"), "tf.keras is Keras 3 there"),
        (
            both("2.21.0", tf_keras="2.21.0", variables={"TF_USE_LEGACY_KERAS": "1"}),
            "tf.keras is Keras 2 there",
        ),
        (both("2.15.1", variables={"KERAS_BACKEND": "jax"}), "KERAS_BACKEND=jax is set"),
        (both("2.15.1", keras="3.0.0"), "TensorFlow 2.15.1 needs Keras 2"),
        (both("2.22.0"), "TensorFlow 2.22.0 is newer than the tested versions (2.12 to 2.21)."),
        (both("2.15.1", horovod="0.27.0"), "Trainshift was tested with Horovod 0.28.1 only."),
    ],
    ids=["Keras 3", "tf_keras", "another backend", "Keras 3 on 2.15", "newer", "another Horovod"],
)
def test_what_else_matters_is_noted(stand: Stand, has: dict[str, Any], says: str) -> None:
    result = doctor("--python", stand(has, {"version": has["tensorflow"], "built": ["gloo"]}))
    assert result.exit_code == 0
    assert says in result.stdout


def commands(python: str) -> dict[str, list[str]]:
    told = json.loads(doctor("--python", python, "--format", "json").stdout)
    return {recipe["for"]: recipe["commands"] for recipe in told["recipes"]}


def test_each_build_has_its_own_commands(stand: Stand) -> None:
    python = stand({"tensorflow": "2.18.1"})
    told = json.loads(doctor("--python", python, "--format", "json").stdout)
    assert [(each["for"], each["tried"]) for each in told["recipes"]] == [
        ("CPU, Gloo", True),
        ("CPU, MPI", True),
        ("NVIDIA GPUs, Gloo and NCCL", False),
        ("NVIDIA GPUs, MPI and NCCL", False),
    ]
    lines = commands(python)
    assert ["NCCL" in each[-1] for each in lines.values()] == [False, False, True, True]
    assert ["HOROVOD_WITH_MPI=1" in each[-1] for each in lines.values()] == [False, True, False, True]
    assert all("patch" not in line for each in lines.values() for line in each)


def test_commands_are_a_shells_also_for_strange_paths(stand: Stand, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    python = stand({"tensorflow": "2.21.0"}, f'echo "$HOROVOD_WITH_GLOO $@" >> {ran}')
    for command in commands(python)["CPU, Gloo"]:
        if command.startswith(("tar", "trainshift", "patch")):
            continue
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    last = ran.read_text(encoding="utf-8").splitlines()[-1]
    assert last.startswith("1 -m pip install ")
    assert last.endswith(" ./horovod-0.28.1")


def test_without_tensorflow_the_commands_install_one_that_the_python_can_have(stand: Stand) -> None:
    assert '"tensorflow-cpu==2.15.1"' in commands(stand({}))["CPU, Gloo"][0]
    newer = commands(stand({"python": [3, 13, 0]}))
    assert '"tensorflow-cpu==2.21.0"' in newer["CPU, Gloo"][0]
    assert '"tensorflow[and-cuda]==2.21.0"' in newer["NVIDIA GPUs, MPI and NCCL"][0]
    assert commands(stand({"python": [3, 15, 0]})) == {}


def test_from_219_on_the_source_is_patched_first(stand: Stand) -> None:
    lines = commands(stand({"tensorflow": "2.19.0"}))["CPU, Gloo"]
    assert lines[3:5] == [
        "trainshift doctor --write-patch horovod.patch",
        "patch -p1 -d horovod-0.28.1 -i ../horovod.patch",
    ]


SOURCE = """\
#include <memory>
#include <queue>
#include <thread>
#include <unordered_map>


#if TENSORFLOW_VERSION >= 2006000000

#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/compiler/xla/client/xla_builder.h"

#endif // TENSORFLOW_VERSION >= 2006000000
"""
"""Around the lines of `xla_mpi_ops.cc` of Horovod 0.28.1 that matter, which begin at its line 17."""


def test_the_patch_leaves_out_the_file_for_those_versions_alone(tmp_path: Path) -> None:
    source = tmp_path / "horovod-0.28.1" / "horovod" / "tensorflow" / "xla_mpi_ops.cc"
    source.parent.mkdir(parents=True)
    source.write_text("//\n" * 16 + SOURCE, encoding="utf-8")
    written = tmp_path / "horovod.patch"
    for _ in range(2):  # An existing identical file is fine.
        assert doctor("--write-patch", str(written)).exit_code == 0
    patch = ["patch", "-p1", "-d", str(tmp_path / "horovod-0.28.1"), "-i", "../horovod.patch"]
    done = subprocess.run(patch, check=True, capture_output=True, text=True)
    assert "fuzz" not in done.stdout
    assert "offset" not in done.stdout
    wanted = "#if TENSORFLOW_VERSION >= 2006000000 && TENSORFLOW_VERSION < 2019000000\n"
    changed = SOURCE.replace("#if TENSORFLOW_VERSION >= 2006000000\n", wanted)
    assert source.read_text(encoding="utf-8") == "//\n" * 16 + changed


def test_the_patch_overwrites_nothing(tmp_path: Path) -> None:
    other = tmp_path / "mine.txt"
    other.write_text("mine", encoding="utf-8")
    result = doctor("--write-patch", str(other))
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert other.read_text(encoding="utf-8") == "mine"
    assert doctor("--write-patch", str(tmp_path / "no" / "where")).exit_code == 2


@pytest.mark.parametrize("python", ["no-such-python", "/no/python", "/bin/ls"])
def test_what_is_no_python_is_wrong_usage(python: str) -> None:
    result = doctor("--python", python)
    assert result.exit_code == 2
    assert "Name a Python: trainshift doctor --python" in result.stderr


def test_the_probe_answers_for_this_python() -> None:
    assert packages()["python"] == list(sys.version_info[:3])
