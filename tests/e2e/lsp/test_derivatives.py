"""Derivatives in an editor: the offers in a function, the edits, and hovers of made comments."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.lsp.edits import position
from e2e.lsp.session import Document, Session, able, serve, structured
from trainshift.derivatives import Derived, Mode, Refused, derive
from trainshift.lsp.transport.protocol import plain_json

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORWARD = "refactor.rewrite.differentiate.forward.trainshift"
REVERSE = "refactor.rewrite.differentiate.reverse.trainshift"
AGAIN = "Trainshift: Make again"
BY_FORWARD = "Trainshift: Differentiate (forward mode)"
BY_REVERSE = "Trainshift: Differentiate (reverse mode)"
BY_K = "Trainshift: Differentiate by k (reverse mode)"
DAMPED = """\
import math


def damped(x, k):
    # stiff below zero
    if x < 0:
        return k * x
    return k * math.sin(x)
"""
STUBBORN = """\
def stubborn(x):
    try:
        return x * x
    finally:
        x = 0
"""
BOTH = f"{DAMPED}\n\n{STUBBORN}"
CONTENT_MODIFIED = -32801
INVALID_PARAMS = -32602
REQUEST_FAILED = -32803


def made(text: str, function: str = "damped", mode: Mode = "reverse", *wrt: str) -> str:
    """The result of `trainshift differentiate` for a text."""
    found = derive(text, function, mode, wrt or None)
    assert isinstance(found, Derived)
    return found.text


def reason(text: str, function: str, mode: Mode = "reverse") -> str:
    """The first reason for which `trainshift differentiate` refuses, with its line."""
    found = derive(text, function, mode)
    assert isinstance(found, Refused)
    return f"line {found.refusals[0].line}: {found.refusals[0].message}"


def at(document: Document, words: str, session: Session, length: int = 0) -> types.Range:
    """The range of a number of code points from the first occurrence of a text."""
    start = document.text.index(words)
    first = position(document.text, start, session.encoding)
    return types.Range(first, position(document.text, start + length, session.encoding))


async def menu(
    session: Session, document: Document, words: str, length: int = 0
) -> dict[str, types.CodeAction]:
    """The derivative actions at a text, by title."""
    found = await session.menu(document, at(document, words, session, length))
    return {each.title: each for each in found if each.kind in (FORWARD, REVERSE)}


async def knowing_menu(session: Session, document: Document, words: str) -> dict[str, types.CodeAction]:
    """The menu once the refusal of reverse mode is known: on a busy machine the first menu does not wait."""
    while (actions := await menu(session, document, words))[BY_REVERSE].disabled is None:
        pass
    return actions


# The menu


@pytest.mark.parametrize(("title", "mode"), [(BY_FORWARD, "forward"), (BY_REVERSE, "reverse")])
async def test_a_function_is_differentiated(puller: Session, title: str, mode: Mode) -> None:
    document = puller.open(BOTH)
    actions = await menu(puller, document, "return k * math")
    assert set(actions) == {BY_FORWARD, BY_REVERSE}
    assert (actions[title].edit, actions[title].disabled) == (None, None)
    assert await puller.result(actions[title], document) == made(BOTH, "damped", mode)


async def test_a_parameter_is_differentiated_by(puller: Session) -> None:
    document = puller.open(BOTH)
    actions = await menu(puller, document, "k):")
    assert set(actions) == {BY_FORWARD, BY_REVERSE, BY_K}
    assert await puller.result(actions[BY_K], document) == made(BOTH, "damped", "reverse", "k")
    assert BY_K in await menu(puller, document, "k * math", 1)
    assert BY_K not in await menu(puller, document, "k * math", 3)
    assert BY_K not in await menu(puller, document, "math.sin")


@pytest.mark.parametrize("words", ["import math", "\n\ndef stub", "total", "size"])
async def test_elsewhere_nothing_is_offered(puller: Session, words: str) -> None:
    document = puller.open(f"{BOTH}\n\nsize = 3\n\nclass Model:\n    def total(self, x):\n        return x\n")
    assert await menu(puller, document, words) == {}


async def test_nor_where_the_text_is_not_python(puller: Session) -> None:
    document = puller.open(BOTH + "x = (")
    assert await menu(puller, document, "return k * math") == {}


async def test_a_selection_is_of_the_only_function_that_it_meets(puller: Session) -> None:
    document = puller.open(BOTH)
    actions = await menu(puller, document, "import math", DAMPED.index("return k * x") + 3)
    assert await puller.result(actions[BY_REVERSE], document) == made(BOTH)
    assert await menu(puller, document, "return k", len(DAMPED)) == {}


async def test_only_the_kinds_that_are_asked_for_are_offered(puller: Session) -> None:
    document = puller.open(BOTH)
    where = at(document, "return k * math", puller)
    for only, titles in (
        ("refactor", [BY_FORWARD, BY_REVERSE]),
        ("refactor.rewrite.differentiate", [BY_FORWARD, BY_REVERSE]),
        (FORWARD, [BY_FORWARD]),
        ("quickfix", []),
    ):
        assert [each.title for each in await puller.menu(document, where, only=[only])] == titles


async def test_what_is_refused_is_disabled_with_the_first_reason(puller: Session) -> None:
    document = puller.open(BOTH)
    actions = await knowing_menu(puller, document, "return x * x")
    disabled = actions[BY_REVERSE].disabled
    assert set(actions) == {BY_FORWARD, BY_REVERSE}
    assert disabled is not None
    assert disabled.reason == reason(BOTH, "stubborn")
    assert (actions[BY_REVERSE].data, actions[BY_REVERSE].edit) == (None, None)


async def test_an_editor_that_can_do_little_gets_edits_at_once_and_nothing_that_is_refused() -> None:
    """With a byte order mark, Windows line endings, characters of two UTF-16 units, and byte positions."""
    text = ("# \N{PARTY POPPER}\n" + BOTH).replace("stiff", "\N{PARTY POPPER}").replace("\n", "\r\n")
    action = "textDocument.codeAction"
    lacks = {f"{action}.disabledSupport": None, f"{action}.resolveSupport": None}
    async with serve(able({**lacks, "general.positionEncodings": ["utf-8"]})) as session:
        document = session.open("\ufeff" + text)
        assert await menu(session, document, "return x * x") == {}
        edit = (await menu(session, document, "return k * x"))[BY_REVERSE].edit
        assert edit is not None
        assert session.texts_after(edit)[document.uri] == "\ufeff" + made(text)


async def test_the_edit_is_of_the_version_that_was_shown(puller: Session) -> None:
    document = puller.open(BOTH)
    actions = await menu(puller, document, "return k * math")
    puller.edit(document, "k * x", "k * x * x")
    with pytest.raises(JsonRpcException) as refusal:
        await puller.resolve(actions[BY_REVERSE])
    assert refusal.value.code == CONTENT_MODIFIED
    again = await menu(puller, document, "return k * math")
    assert await puller.result(again[BY_REVERSE], document) == made(document.text)


@pytest.mark.parametrize(
    "wish", [None, 3, ["damped"], ["damped", "sideways", None, None], ["a", "reverse", 3, None]]
)
async def test_an_action_that_is_not_ours_is_refused(puller: Session, wish: object) -> None:
    document = puller.open(BOTH)
    action = (await menu(puller, document, "return k * math"))[BY_REVERSE]
    action.data = {**plain_json(action.data), "wish": wish}
    with pytest.raises(JsonRpcException) as refusal:
        await puller.resolve(action)
    assert refusal.value.code == INVALID_PARAMS


async def test_it_is_one_edit(puller: Session) -> None:
    document = puller.open(BOTH)
    for text in (BOTH, made(BOTH).replace("return k * x\n", "return k * x * x\n", 1)):
        puller.write(document, text)
        actions = await menu(puller, document, "return k * math")
        edit = (await puller.resolve(actions[BY_REVERSE])).edit
        assert edit is not None
        (change,) = edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert len(change.edits) == 1


# Derivatives that were made


async def test_the_comment_of_what_was_made_tells_its_mode_and_whether_it_is_up_to_date(
    puller: Session,
) -> None:
    for mode, words in (("forward", "Forward mode"), ("reverse", "Reverse mode")):
        document = puller.open(made(BOTH, "damped", "forward" if mode == "forward" else "reverse", "x"))
        comment = document.text.index("# Made by")
        text = await puller.hover(document, comment + 3)
        assert words in text
        assert ("direction of `x`" if mode == "forward" else "with respect to `x`") in text
        assert "`damped` has not changed since" in text
        assert AGAIN not in await menu(puller, document, "# Made by")
        puller.edit(document, "return k * x\n    return", "return k * x * x\n    return")
        assert "`damped` has changed since" in await puller.hover(document, document.text.index("# Made by"))


async def test_it_can_be_made_again(puller: Session) -> None:
    text = made(BOTH, "damped", "reverse", "x").replace("return k * x\n", "return k * x * x\n", 1)
    document = puller.open(text)
    for words in ("# Made by", "def damped_grad"):
        again = (await menu(puller, document, words))[AGAIN]
        assert again.kind == REVERSE
        assert await puller.result(again, document) == made(text, "damped", "reverse", "x") != text


async def test_what_is_there_already_is_not_made_twice(puller: Session) -> None:
    document = puller.open(made(BOTH))
    disabled = (await knowing_menu(puller, document, "return k * math"))[BY_REVERSE].disabled
    assert disabled is not None
    assert disabled.reason == "damped_grad is up to date"


async def test_what_cannot_be_made_again_says_why(puller: Session) -> None:
    document = puller.open(made(BOTH).replace("def damped(", "def other("))
    text = await puller.hover(document, document.text.index("# Made by"))
    assert "can't be made again" in text
    assert AGAIN not in await menu(puller, document, "# Made by")


async def test_other_comments_are_not_explained(puller: Session) -> None:
    document = puller.open(BOTH)
    assert await puller.hover(document, document.text.index("# stiff")) == ""


# The command


async def test_the_command_differentiates_a_function(puller: Session) -> None:
    document = puller.open(BOTH)
    place = position(BOTH, BOTH.index("return k"), puller.encoding)
    position_ = {"line": place.line, "character": place.character}
    told = await puller.run("trainshift.differentiate", {"uri": document.uri, "position": position_})
    assert (told["applied"], told["made"], told["wrt"]) == (True, "damped_grad", ["x", "k"])
    assert document.text == made(BOTH)
    given = {"uri": document.uri, "function": "damped", "mode": "forward", "wrt": ["k"], "name": "slope"}
    await puller.run("trainshift.differentiate", given)
    assert "def slope(" in document.text


async def test_the_command_can_leave_the_edit_to_its_client(puller: Session) -> None:
    document = puller.open(BOTH)
    told = await puller.run(
        "trainshift.differentiate", {"uri": document.uri, "function": "damped", "apply": False}
    )
    assert document.text == BOTH
    assert puller.texts_after(structured(told["edit"]))[document.uri] == made(BOTH)


async def test_the_command_says_why_there_is_nothing(puller: Session) -> None:
    document = puller.open(BOTH)
    told = await puller.run("trainshift.differentiate", {"uri": document.uri, "function": "stubborn"})
    assert (told["applied"], told["edit"]) == (False, None)
    assert told["reason"] == reason(BOTH, "stubborn")
    refusals = derive(BOTH, "stubborn", "reverse")
    assert isinstance(refusals, Refused)
    assert [(each["line"], each["message"]) for each in told["refusals"]] == [
        (each.line, each.message) for each in refusals.refusals
    ]
    await puller.until("the user is told", lambda: puller.messages)
    assert puller.messages[-1].message == f"Trainshift: Not differentiated: {told['reason']}"
    beside = {"uri": document.uri, "position": {"line": 1, "character": 0}, "apply": False}
    assert (await puller.run("trainshift.differentiate", beside))["reason"]


@pytest.mark.parametrize(
    "given",
    [
        {"function": "damped", "mode": "sideways"},
        {"function": "damped", "wrt": "x"},
        {"position": 3},
        {"position": {"line": 1}},
        {"function": "damped", "name": 3},
        {},
    ],
)
async def test_the_command_refuses_what_cannot_be_read(puller: Session, given: dict[str, object]) -> None:
    document = puller.open(BOTH)
    with pytest.raises(JsonRpcException) as refusal:
        await puller.run("trainshift.differentiate", {"uri": document.uri, **given})
    assert refusal.value.code == INVALID_PARAMS


async def test_nothing_that_differentiates_is_loaded_with_the_server() -> None:
    code = (
        "import sys, trainshift.lsp.start, trainshift.lsp.server, trainshift.lsp.answers.derivatives; "
        "print([each for each in sys.modules if each.startswith('trainshift.derivatives')])"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split() == [b"[]"]
