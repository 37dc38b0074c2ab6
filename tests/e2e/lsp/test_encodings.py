"""Positions in every encoding, with text whose lines and characters are unusual."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types

from e2e.lsp.commands import SCRIPTS, converted, text_of
from e2e.lsp.edits import lines_of, offset, position, units
from e2e.lsp.session import PULLING, Document, Session, able, serve

ENCODINGS = ("utf-16", "utf-8", "utf-32")
PARAMS = ["utf-8", *(pytest.param(each, marks=pytest.mark.slow) for each in ("utf-16", "utf-32"))]
pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "source.makeDistributed.trainshift"
# A form feed and U+2028 end no line of the protocol; \r alone does.
STRANGE = (
    "\ufeffimport tensorflow as tf  # 🎉 é \u2028 and on\r\n"
    "\x0c\r\n"
    "note = '🎉\u2028\u2029\x0b\x85é'; Adam = tf.keras.optimizers.Adam; best = 1\r"
    "a = '𝒳'; SGD = tf.keras.optimizers.SGD\n"
    "if True:\n"
    "\tb = 'ü' ; RMSprop = tf.keras.optimizers.RMSprop\r\n"
)
LINES = {"Adam": 2, "SGD": 3, "RMSprop": 5}


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PARAMS)
async def session(request: pytest.FixtureRequest) -> AsyncIterator[Session]:
    """An editor that speaks one encoding."""
    capabilities = able({"general.positionEncodings": [request.param]}, PULLING)
    async with serve(capabilities) as made:
        assert made.encoding == request.param
        yield made


async def test_the_helper_counts_as_the_protocol_does() -> None:
    """The emoji is one code point, two units of UTF-16 and four of UTF-8."""
    assert [units("🎉é", each) for each in ENCODINGS] == [3, 6, 2]
    assert lines_of("a\r\nb\rc\n\x0c\u2028d") == ["a\r\n", "b\r", "c\n", "\x0c\u2028d"]
    assert position("x\n🎉y", 3, "utf-16") == types.Position(1, 2)
    assert offset("x\n🎉y", types.Position(1, 4), "utf-8") == 3


async def names(session: Session, document: Document) -> dict[str, int]:
    """The names underlined as other names of TensorFlow, with their lines."""
    found = await session.pulled(document)
    return {
        session.underlined(document, each): each.range.start.line for each in found if each.code == "TF03"
    }


async def test_findings_are_where_they_are(session: Session) -> None:
    document = session.open(STRANGE)
    assert await names(session, document) == LINES


async def test_hovers_and_menus_are_for_what_is_there(session: Session) -> None:
    document = session.open(STRANGE)
    at = STRANGE.index("Adam")
    assert (await session.hover(document, at)).startswith("**TF03**")
    assert (await session.hover(document, at + 3)).startswith("**TF03**")
    assert await session.hover(document, at + 4) == ""
    assert await session.hover(document, at - 1) == ""
    place = position(STRANGE, at, session.encoding)
    menu = await session.menu(document, types.Range(place, place))
    action = next(each for each in menu if each.title.startswith("Trainshift: Ignore TF03"))
    after = STRANGE.replace("; best = 1\r", "; best = 1  # trainshift: ignore[TF03]\r")
    assert await session.result(action, document) == after


async def test_edits_of_any_kind_leave_the_same_text(session: Session) -> None:
    """The server's text is only visible through its findings."""
    document = session.open(STRANGE)
    assert await names(session, document) == LINES
    session.edit(document, "🎉 é", "é🎉\x0c")
    session.edit(document, "\x0c\r\n", "\u2028 = 1\n")
    # No longer valid Python: the findings stay where they were.
    assert "TS00" in [each.code for each in await session.pulled(document)]
    assert await names(session, document) == LINES
    session.edit(document, "\u2028 = 1\n", "\x0c\r\n")
    assert await names(session, document) == LINES
    session.edit(document, "'🎉\u2028\u2029\x0b\x85é'; ", "")
    session.edit(document, "note = ", "\n\n\r\n\r")
    assert await names(session, document) == {name: line + 4 for name, line in LINES.items()}
    session.edit(document, "\ufeff", "")
    session.edit(document, "import tensorflow as tf", "\n\nimport tensorflow as tf")
    assert await names(session, document) == {name: line + 6 for name, line in LINES.items()}


async def test_many_changes_of_one_message_follow_each_other(session: Session) -> None:
    document = session.open(STRANGE)
    text = STRANGE
    changes: list[types.TextDocumentContentChangeEvent] = []
    generator = random.Random(7)
    for _ in range(60):
        places = [
            0,
            *(at for at, each in enumerate(text) if at and text[at - 1 : at + 1] != "\r\n"),
            len(text),
        ]
        start, end = sorted((generator.choice(places), generator.choice(places)))
        end = min(end, start + 9)
        end -= text[end - 1 : end + 1] == "\r\n"
        new = generator.choice(["", "🎉", "\n", "\r\n", "é\u2028", "\x0c", "x", "\r", "\n# 𝒳\n"])
        first, last = (position(text, each, session.encoding) for each in (start, max(start, end)))
        changes.append(types.TextDocumentContentChangePartial(types.Range(first, last), new))
        text = text[:start] + new + text[max(start, end) :]
    document.text, document.version = text, 2
    identifier = types.VersionedTextDocumentIdentifier(2, document.uri)
    session.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, changes))
    # A finding below the edited text.
    tail = "\nimport tensorflow as tf\nAdam = tf.keras.optimizers.Adam\n"
    last = position(text, len(text), session.encoding)
    document.text, document.version = text + tail, 3
    identifier = types.VersionedTextDocumentIdentifier(3, document.uri)
    change = types.TextDocumentContentChangePartial(types.Range(last, last), tail)
    session.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
    fresh = session.open(document.text)
    assert [(each.code, each.range) for each in await session.pulled(document)] == [
        (each.code, each.range) for each in await session.pulled(fresh)
    ]
    # After it becomes valid again, with each of its lines a comment.
    comments = "# " + text.replace("\r", "\n").replace("\n", "\n# ")
    document.text, document.version = comments + tail, 4
    identifier = types.VersionedTextDocumentIdentifier(4, document.uri)
    change = types.TextDocumentContentChangePartial(types.Range(types.Position(0, 0), last), comments)
    session.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
    assert await names(session, document) == {"Adam": len(lines_of(comments + tail)) - 2}


async def test_positions_beyond_an_end_are_that_end(session: Session) -> None:
    document = session.open("import tensorflow as tf\nx = '🎉'\n")
    far = types.Range(types.Position(1, 99), types.Position(99, 99))
    document.text, document.version = (
        "import tensorflow as tf\nx = '🎉'\nAdam = tf.keras.optimizers.Adam\n",
        2,
    )
    identifier = types.VersionedTextDocumentIdentifier(2, document.uri)
    change = types.TextDocumentContentChangePartial(far, "\nAdam = tf.keras.optimizers.Adam\n")
    session.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
    assert await names(session, document) == {"Adam": 2}


@pytest.mark.parametrize("name", ["emoji_bom", "crlf_tabs"])
async def test_a_whole_file_is_converted(session: Session, name: str) -> None:
    path = SCRIPTS / name / "before.py"
    document = session.open(text_of(path))
    (action,) = await session.actions(document, 0, only=[FILE])
    assert await session.result(action, document) == text_of(path.with_name("after.py"))


async def test_a_file_of_strange_characters_is_converted(session: Session, tmp_path: Path) -> None:
    text = text_of(SCRIPTS / "mnist_tape" / "before.py")
    text = text.replace('print(f"', 'print(f"🎉\u2028é ').replace("step = 0\n", "\x0cstep = 0  # 𝒳\n")
    text = text.replace("    if step % 10 == 0:", "    '𝒳'; n = 1\n    if step % 10 == 0:").replace(
        "\n\n", "\n\r\n"
    )
    path = tmp_path / "train.py"
    path.write_bytes(text.encode("utf-8"))
    document = session.open(text, path.as_uri())
    (action,) = await session.actions(document, 0, only=[FILE])
    after = await session.result(action, document)
    assert after == converted(path)
    assert after != text
    line = next(number for number, each in enumerate(lines_of(text)) if "🎉\u2028é step" in each)
    statement = next(
        each for each in await session.actions(document, line) if each.kind == "refactor.rewrite.distribute"
    )
    assert await session.result(statement, document) == converted(path, line)
