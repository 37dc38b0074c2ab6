"""Static functions of Paddle in an editor: the offers, hovers and edits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.lsp.edits import position
from e2e.lsp.session import Document, Session, serve, structured
from support.expansion_fixtures import EXPANSION_CASES
from trainshift.cli.main import cli
from trainshift.core.program import Program
from trainshift.lsp.transport.protocol import plain_json
from trainshift.python.names.script import Script, read_script
from trainshift.static_graphs.expanding.door import expand

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXPAND = "refactor.rewrite.expandStatic.trainshift"
EXPAND_FILE = "source.expandStatic.trainshift"
MAKE = "refactor.rewrite.makeStatic.trainshift"
FOR_READING = "Trainshift: Expand to static graph code (for reading)"
MODEL = """\
import paddle


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


@paddle.jit.to_static(full_graph=True)
def halve(x):
    # \N{PARTY POPPER} until it is small
    y = paddle.abs(x)
    while y.max() > 1:
        y = y / 2
        if y.sum() > 9 and y.min() > 0:
            y = y - 1
    for i in range(3):
        y = y + i
    return y


@paddle.jit.to_static
def stubborn(x):
    if x.sum() > 0:
        x = x + 1
        raise ValueError
    return x


net = Net()
net(paddle.rand([8, 4]))
"""


def expanded(text: str, function: str = "", line: int | None = None) -> str:
    """The result of `trainshift static` for a text."""
    script = read_script(text)
    assert isinstance(script, Script)
    return expand(Program(script), function, line).result


def at(document: Document, words: str, session: Session) -> types.Range:
    """The position of the first occurrence of a text."""
    place = position(document.text, document.text.index(words), session.encoding)
    return types.Range(place, place)


async def menu(
    session: Session, document: Document, words: str, only: tuple[str, ...] | None = None
) -> dict[str, types.CodeAction]:
    """The static function actions at a text, by title."""
    found = await session.menu(document, at(document, words, session), only=only)
    return {each.title: each for each in found if each.kind in (EXPAND, EXPAND_FILE, MAKE)}


async def hover(session: Session, document: Document, words: str) -> str:
    """The hover for the word at the beginning of a text."""
    return await session.hover(document, document.text.index(words))


async def test_a_statement_a_function_and_a_file_are_expanded(puller: Session) -> None:
    document = puller.open(MODEL)
    actions = await menu(puller, document, "while y.max()", (EXPAND, EXPAND_FILE))
    assert set(actions) == {f"{FOR_READING}: {what}" for what in ("this while", "halve", "whole file")}
    line = document.line("while y.max()") + 1
    for what, text in (
        ("this while", expanded(MODEL, "halve", line)),
        ("halve", expanded(MODEL, "halve")),
        ("whole file", expanded(MODEL)),
    ):
        assert text != MODEL
        document = puller.open(MODEL)
        actions = await menu(puller, document, "while y.max()", (EXPAND, EXPAND_FILE))
        assert await puller.result(actions[f"{FOR_READING}: {what}"], document) == text


async def test_the_command_line_and_the_server_expand_alike(
    puller: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"case_{number}.py": case.script for number, case in enumerate(EXPANSION_CASES)}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["static", "--write", "--format", "json", *texts])
    assert done.exit_code == 1  # Some of them are refused.
    told = {each["path"]: each for each in json.loads(done.stdout)["files"]}
    for name, text in texts.items():
        document = puller.open(text)
        given = {"uri": document.uri, "apply": False}
        answered = plain_json(await puller.run("trainshift.expandStatic", given))
        edited = puller.texts_after(structured(answered["edit"]))[document.uri] if answered["edit"] else text
        assert edited == (tmp_path / name).read_bytes().decode(), name
        refusals = [each["message"] for each in told[name]["withheld"]]
        assert [each["text"] for each in answered["withheld"]] == refusals, name
        puller.clear()


async def test_a_layer_is_made_static(puller: Session) -> None:
    document = puller.open(MODEL)
    actions = await menu(puller, document, "return self.fc", (MAKE,))
    (action,) = actions.values()
    assert action.title.startswith("Trainshift: Make static: forward")
    text = await puller.result(action, document)
    spec = 'full_graph=True, input_spec=[paddle.static.InputSpec([None, 4], "float32")]'
    assert f"    @paddle.jit.to_static({spec})\n    def forward" in text
    assert await menu(puller, document, "y = y / 2", (MAKE,)) == {}


async def test_elsewhere_and_without_paddle_nothing_is_offered(puller: Session) -> None:
    document = puller.open(MODEL)
    assert await menu(puller, document, "import paddle", (EXPAND, MAKE)) == {}
    document = puller.open("def f(x):\n    if x > 0:\n        return x\n")
    assert await menu(puller, document, "if x") == {}
    document = puller.open("import paddle\nx = (\n")
    assert await menu(puller, document, "import paddle") == {}


async def test_a_refusal_is_told_with_its_line(puller: Session) -> None:
    document = puller.open(MODEL)
    given = {"uri": document.uri, "function": "stubborn", "apply": False}
    told = plain_json(await puller.run("trainshift.expandStatic", given))
    line = document.line("raise ValueError") + 1
    assert told["reason"].startswith(f"line {line}: ")
    assert (told["edit"], told["status"]) == (None, "refused")
    assert told["withheld"][0]["line"] == line
    action = (await menu(puller, document, "raise ValueError", (EXPAND,)))[f"{FOR_READING}: stubborn"]
    if action.disabled is None:  # It was not known immediately.
        with pytest.raises(JsonRpcException, match="assert"):
            await puller.result(action, document)
    else:
        assert action.disabled.reason == told["reason"]


async def test_the_commands_answer_or_apply(puller: Session) -> None:
    document = puller.open(MODEL)
    given = {"uri": document.uri, "function": "halve", "apply": False}
    told = plain_json(await puller.run("trainshift.expandStatic", given))
    assert puller.texts_after(structured(told["edit"]))[document.uri] == expanded(MODEL, "halve")
    assert {each["rule"] for each in told["changes"]} == {"PS01", "PS02", "PS08", "PS17"}
    where = {"line": document.line("def forward"), "character": 4}
    told = plain_json(await puller.run("trainshift.makeStatic", {"uri": document.uri, "position": where}))
    assert (told["applied"], told["function"]) == (True, "Net.forward")
    assert "InputSpec([None, 4]" in document.text
    with pytest.raises(JsonRpcException):
        await puller.run("trainshift.expandStatic", {"uri": "file:///other.py"})


async def test_words_tell_what_they_become(puller: Session) -> None:
    document = puller.open(MODEL)
    text = await hover(puller, document, "while y.max()")
    assert "becomes `paddle.static.nn.while_loop` (PS02)" in text
    assert f"`y` is a tensor, since line {document.line('y = paddle.abs') + 1}" in text
    assert "`halve` is static" in text
    assert "logical_and" in await hover(puller, document, "and y.min()")
    assert "stays Python" in await hover(puller, document, "for i in")
    assert await hover(puller, document, "y = y / 2") == ""


async def test_hints_stand_at_the_ends_of_headers(puller: Session) -> None:
    document = puller.open(MODEL)
    end = types.Range(types.Position(0, 0), types.Position(document.text.count("\n"), 0))
    params = types.InlayHintParams(document.identifier, end)
    found = await puller.client.text_document_inlay_hint_async(params)
    lines = document.text.split("\n")
    told = [(lines[each.position.line].strip(), each.label) for each in found or ()]
    assert told == [
        ("while y.max() > 1:", "→ while_loop"),
        ("if y.sum() > 9 and y.min() > 0:", "→ cond"),
        ("for i in range(3):", "stays Python"),
        ("if x.sum() > 0:", "→ cond"),
    ]
    line = document.line("while y.max()")
    assert found is not None
    assert (found[0].position.line, found[0].position.character) == (line, len(lines[line]))


async def test_hints_can_be_turned_off() -> None:
    async with serve(settings={"": {"staticHints": False}}) as session:
        document = session.open(MODEL)
        end = types.Range(types.Position(0, 0), types.Position(99, 0))
        params = types.InlayHintParams(document.identifier, end)
        assert not await session.client.text_document_inlay_hint_async(params)
