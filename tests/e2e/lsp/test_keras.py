"""The Keras for which a script is written, with the reason: in hovers, outlines and findings."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from e2e.lsp.commands import SCRIPTS, text_of
from e2e.lsp.session import able, serve
from e2e.lsp.test_settings import project, script

pytestmark = pytest.mark.asyncio(loop_scope="session")

TAPE = text_of(SCRIPTS / "mnist_tape" / "before.py")


async def test_hovers_and_outlines_tell_which_keras_and_why(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    requirements = folder / "requirements.txt"
    requirements.write_text("tensorflow>=2.16\n", encoding="utf-8")
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, TAPE)
        told = "for Keras 3, because requirements.txt:1 asks for tensorflow >=2.16"
        assert (await session.outline(document.uri))["keras"] == told
        assert told in await session.hover(document, document.text.index("import tensorflow") + 8)
        assert "Keras 3" not in await session.hover(document, document.text.index("GradientTape"))
        # The user's choice takes precedence.
        settings = folder / "trainshift.toml"
        settings.write_text('keras = "tf_keras"\n', encoding="utf-8")
        session.watched(settings, types.FileChangeType.Created)
        await session.pulled(document)
        assert (await session.outline(document.uri))["keras"] == "for Keras 2 by tf_keras, as was chosen"


async def test_the_python_that_is_selected_tells_which_keras(tmp_path: Path) -> None:
    folder, env = project(tmp_path / "here"), tmp_path / "env"
    (env / "lib" / "python3.12" / "site-packages" / "tensorflow-2.21.0.dist-info").mkdir(parents=True)
    python = env / "bin" / "python"
    python.parent.mkdir()
    python.write_text("no program", encoding="utf-8")
    python.chmod(0o755)
    async with serve(
        able({"textDocument.diagnostic": {}}), folders=[folder], settings={"": {"python": str(python)}}
    ) as session:
        document = script(session, folder, TAPE)
        await session.pulled(document)
        told = (await session.outline(document.uri))["keras"]
        assert told == "for Keras 3, because the Python of env has tensorflow 2.21.0"


@pytest.mark.parametrize(
    ("requirements", "line", "told"),
    [
        ("numpy\ntensorflow==two\n", 1, "requirements.txt:2 asks for tensorflow two, which cannot be read"),
        (
            "tensorflow==2.15\nnumpy\nkeras>=3\n",
            2,
            "requirements.txt:1 asks for tensorflow 2.15, and requirements.txt:3 for keras >=3: "
            "they conflict",
        ),
    ],
)
async def test_demands_that_are_wrong_are_told_at_the_import(
    tmp_path: Path, requirements: str, line: int, told: str
) -> None:
    folder = project(tmp_path / "here")
    path = folder / "requirements.txt"
    path.write_text(requirements, encoding="utf-8")
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, TAPE)
        (found,) = (each for each in await session.pulled(document) if each.code == "TS04")
        assert found.range.start.line == document.line("import tensorflow")
        assert found.message == f"{told}. Correct that, or choose a Keras with the setting `keras`."
        (related,) = found.related_information or ()
        assert (related.location.uri, related.location.range.start) == (
            path.as_uri(),
            types.Position(line, 0),
        )
        titles = [each.title for each in await session.menu(document, found.range)]
        assert "Trainshift: Open requirements.txt" in titles
        assert "Trainshift: Convert Anyway" not in titles
