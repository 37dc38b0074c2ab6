"""A wheel of Horovod is built once for its dependencies; pip and the import are faked."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proof import install_horovod


class Machine:
    """A machine whose environment imports Horovod from the wheels in `good`; it counts its builds."""

    def __init__(self) -> None:
        self.tensorflow = "2.15.1"
        self.installed = b""
        self.good = {b"wheel 1", b"wheel 2"}
        self.built = 0

    def works(self) -> bool:
        return self.installed in self.good

    def install(self, wheel: Path) -> None:
        self.installed = wheel.read_bytes()

    def build(self, command: list[str], env: dict[str, str], check: bool) -> None:
        assert check
        assert "MAKEFLAGS" not in env
        assert command[-1] == "horovod==0.28.1"
        self.built += 1
        wheel = Path(command[command.index("-w") + 1]) / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
        wheel.write_bytes(b"wheel %d" % self.built)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """A machine with an empty cache and without Horovod."""
    made = Machine()
    replaced: dict[str, Callable[..., Any]] = {
        "works": made.works,
        "install": made.install,
        "version": lambda _: made.tensorflow,
    }
    for name, stand_in in replaced.items():
        monkeypatch.setattr(install_horovod, name, stand_in)
    monkeypatch.setattr(subprocess, "run", made.build)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MAKEFLAGS", "-j2")
    return made


def test_what_is_there_is_left_alone(machine: Machine) -> None:
    machine.installed = b"wheel 2"
    install_horovod.main("0.28.1")
    assert (machine.installed, machine.built) == (b"wheel 2", 0)


def test_it_is_built_once(machine: Machine) -> None:
    for _ in range(2):
        machine.installed = b""
        install_horovod.main("0.28.1")
        assert (machine.installed, machine.built) == (b"wheel 1", 1)


def test_it_is_built_for_each_tensorflow(machine: Machine) -> None:
    install_horovod.main("0.28.1")
    machine.tensorflow, machine.installed = "2.14.0", b""
    install_horovod.main("0.28.1")
    assert machine.installed == b"wheel 2"


def test_a_wheel_that_does_not_work_is_replaced(machine: Machine) -> None:
    install_horovod.main("0.28.1")
    machine.good.remove(b"wheel 1")
    for _ in range(2):
        machine.installed = b""
        install_horovod.main("0.28.1")
        assert (machine.installed, machine.built) == (b"wheel 2", 2)


def test_one_that_never_works_is_told(machine: Machine, tmp_path: Path) -> None:
    machine.good.clear()
    with pytest.raises(SystemExit, match="cannot be imported"):
        install_horovod.main("0.28.1")
    assert not [*tmp_path.rglob("*.whl")]


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    install_horovod.main("0.28.1")
    assert machine.installed == b"wheel 1"
