"""Fixtures: the command with the stand-in engine and restrictions, in an empty current directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from e2e.cli import fake_engine, fake_restrictions
from trainshift.cli.main import cli
from trainshift.engine import conversion, findings, settings

SCRIPT = "import tensorflow as tf\nx = 1\nprint(x)\n"
CONVERTED = "import tensorflow as tf\nimport horovod.tensorflow as hvd\nx = 1\nif hvd.rank() == 0: print(x)\n"

Run = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty directory, and make it the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run(here: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("convert", "train.py", input=b"...")`: the result has exit_code, stdout_bytes and stderr."""
    monkeypatch.setattr(conversion, "convert", fake_engine.convert)
    monkeypatch.setattr(conversion, "convert_program", fake_engine.convert_program)
    monkeypatch.setattr(findings, "RESTRICTIONS", fake_restrictions.RULES)
    # The faked conversion skips a statement because of a finding, so the strict setting decides.
    monkeypatch.setattr(settings, "LETTER", settings.EFFECT)

    def invoke(*args: str, input: bytes | None = None) -> Result:
        result = CliRunner().invoke(cli, args, input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert not list(here.rglob(".trainshift-*")), "a temporary file was left behind"
        return result

    return invoke


@pytest.fixture
def script(here: Path) -> Path:
    """train.py, which converts."""
    path = here / "train.py"
    path.write_text(SCRIPT)
    return path
