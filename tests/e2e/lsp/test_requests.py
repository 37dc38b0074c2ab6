"""Requests beyond the protocol: the outline of a program, and everything with a code."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from e2e.lsp.commands import SCRIPTS, run, text_of
from e2e.lsp.raw import EXIT, INITIALIZED, SHUTDOWN, initialize, talk
from e2e.lsp.session import PULLING, Document, Session, serve
from trainshift.lsp.transport.uris import path_of
from trainshift.pages import page

NOTHING = {"changes": 0, "program": "", "partOf": None, "files": [], "keras": ""}
"""The outline of a file without changes."""

pytestmark = pytest.mark.asyncio(loop_scope="session")

OUTLINE = "trainshift/outline"
RULES = "trainshift/rules"
TWO_FORMS = """\
import tensorflow as tf
Adam = tf.keras.optimizers.Adam
opt = tf.keras.optimizers.Adam(1e-3)
teacher = tf.keras.Sequential([tf.keras.layers.Dense(1)])
teacher.compile(tf.keras.optimizers.SGD(0.1), "mse")
note = "🎉"; teacher.fit(tf.ones([4, 2]), tf.ones([4, 1]))
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for i in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.ones([4, 2])))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
"""
FIT = "teacher.fit(tf.ones([4, 2]), tf.ones([4, 1]))"
CONTENT_MODIFIED = -32801
INVALID_PARAMS = -32602


def place(line: int, start: int, end: int) -> dict[str, Any]:
    """A range in one line."""
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


# The outline


async def test_an_outline_names_the_loops_of_all_forms(strict_puller: Session) -> None:
    puller = strict_puller
    document = puller.open(TWO_FORMS)
    first = await puller.outline(document.uri)
    start = TWO_FORMS.splitlines()[5].index(FIT) + 1  # The emoji is two units long.
    assert first["loops"] == [
        {"name": "Keras", "uri": document.uri, "range": place(5, start, start + len(FIT))},
        {"name": "GradientTape", "uri": document.uri, "range": place(7, 0, len("for i in range(10):"))},
    ]
    # It has the texts and the counts of the lenses.
    titles = [each.command.title for each in await puller.lenses(document) if each.command]
    assert titles[::2] == [f"{each['name']} loop · Make distributed" for each in first["loops"]]
    assert titles[1::2] == ["1 warning"] * len(first["loops"])
    assert first["warnings"] == 1
    # It belongs to the version that is current at the request.
    puller.write(document, f"\n{TWO_FORMS}")
    second = await puller.outline(document.uri)
    assert [each["range"]["start"]["line"] for each in second["loops"]] == [6, 8]
    assert second == {**first, "version": 2, "loops": second["loops"]}
    assert (first["version"], first["status"], first["reason"]) == (1, "convertible", "")


async def test_an_outline_tells_that_there_is_nothing_to_convert(puller: Session) -> None:
    bare = puller.open("import tensorflow as tf\n")
    found = await puller.outline(bare.uri)
    assert found.pop("reason").startswith("no training loop")
    assert found.pop("usesTensorflow")
    assert found == {**NOTHING, "version": 1, "loops": [], "status": "nothing found", "warnings": 0}
    other = await puller.outline(puller.open("print(1)\n").uri)
    assert not other["usesTensorflow"]
    done = puller.open(text_of(SCRIPTS / "mnist_tape" / "after.py"))
    found = await puller.outline(done.uri)
    assert [each["name"] for each in found["loops"]] == ["GradientTape"]
    assert (found["status"], found["changes"]) == ("already distributed", 0)
    assert "distributed already" in found["reason"]


async def test_the_outline_of_a_broken_text_keeps_the_loops_and_promises_nothing(
    strict_puller: Session,
) -> None:
    puller = strict_puller
    document = puller.open(TWO_FORMS)
    first = await puller.outline(document.uri)
    loops = first["loops"]
    puller.edit(document, "opt = tf", "opt = (tf")
    found = await puller.outline(document.uri)
    assert found == {
        **NOTHING,
        "version": 2,
        "loops": loops,
        "status": "refused",
        "reason": "the file cannot be read as Python",
        "keras": first["keras"],
        "warnings": 1,
        "usesTensorflow": True,
    }
    assert [each.code for each in await puller.pulled(document)][:1] == ["TS00"]
    never_read = puller.open("x = (")
    assert (await puller.outline(never_read.uri)) == {
        **found,
        "version": 1,
        "loops": [],
        "keras": "",
        "warnings": 0,
        "usesTensorflow": False,
    }


async def test_there_is_no_outline_of_what_is_not_open_or_not_python(puller: Session) -> None:
    text = puller.open("import tensorflow as tf\n", language="plaintext")
    assert await puller.outline(text.uri) is None
    assert await puller.outline("file:///nowhere/train.py") is None
    document = puller.open(TWO_FORMS)
    puller.close(document)
    assert await puller.outline(document.uri) is None


@pytest.mark.slow
@pytest.mark.parametrize(("section", "is_told"), [({"codeLens": False}, True), ({"enable": False}, False)])
async def test_the_very_first_outline_is_by_the_settings(section: object, is_told: bool) -> None:
    async with serve(PULLING, settings={"": section}) as session:
        document = session.open(TWO_FORMS)
        found = await session.outline(document.uri)
        assert (found is not None) == is_told
        assert not is_told or len(found["loops"]) == 2
        assert await session.lenses(document) == []


@pytest.mark.slow
async def test_an_outline_that_is_overtaken_is_to_be_asked_for_again(puller: Session) -> None:
    document = puller.open(TWO_FORMS + "".join(f"print(tf.constant({number}))\n" for number in range(4000)))
    params = {"textDocument": {"uri": document.uri}}
    sent = puller.client.protocol.send_request(OUTLINE, params)
    assert await puller.lenses(Document("untitled:nothing", "")) == []  # It waits for the check now.
    puller.edit(document, "opt = tf", "best = tf")
    with pytest.raises(JsonRpcException) as refusal:
        await puller.ask(asyncio.wrap_future(sent))
    assert refusal.value.code == CONTENT_MODIFIED
    assert (await puller.outline(document.uri))["version"] == 2


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        [],
        7,
        "text",
        {"uri": "untitled:x"},
        {"textDocument": "untitled:x"},
        {"textDocument": None},
        {"textDocument": {"uri": None}},
        {"textDocument": {"uri": {"uri": "x"}}},
        {"type_name": "no name", "textDocument": {"uri": "x"}},
    ],
)
async def test_nonsense_is_refused(puller: Session, params: object) -> None:
    with pytest.raises(JsonRpcException) as refusal:
        await puller.request(OUTLINE, params)
    assert refusal.value.code == INVALID_PARAMS
    document = puller.open(TWO_FORMS)
    assert await puller.outline(document.uri) is not None


# Codes


async def test_the_codes_are_those_of_the_command_line(puller: Session) -> None:
    found = await puller.request(RULES)
    listed = json.loads(run("rules", "--format", "json"))["rules"]
    kinds = ("restriction", "static", "check", "rule", "derivation")
    assert [{key: each[key] for key in ("code", "name", "title")} for each in found] == [
        {key: each[key] for key in ("code", "name", "title")}
        for kind in kinds
        for each in listed
        if each["kind"] == kind
    ]
    assert len(found) == len(listed)
    for each in found:
        assert each["url"].startswith("file:///")
        assert each["url"].endswith(f"/{each['code']}.md")
        assert page(each["code"])
    assert await puller.request(RULES, {}) == found


# Files that use TensorFlow


async def test_the_scripts_are_those_that_use_tensorflow(tmp_path: Path) -> None:
    """The scripts of all folders, read from the disk at each request; ignored files are left out."""
    texts = {
        "train.py": "import tensorflow as tf\n",
        "pkg/model.py": "from keras import layers\n",
        "notes.py": "print(1)\n",
        "train.txt": "import tensorflow as tf\n",
        "venv/lib.py": "import tensorflow as tf\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    async def found() -> list[str]:
        uris = await session.request("trainshift/scripts", {})
        return sorted(Path(path_of(uri)).relative_to(tmp_path).as_posix() for uri in uris)

    async with serve(folders=[tmp_path]) as session:
        assert await found() == ["pkg/model.py", "train.py"]
        (tmp_path / "notes.py").write_text("import tensorflow as tf\n", encoding="utf-8")
        (tmp_path / "train.py").unlink()
        assert await found() == ["notes.py", "pkg/model.py"]


async def test_a_request_may_come_without_parameters() -> None:
    heard = talk(
        initialize(),
        INITIALIZED,
        {"id": "rules", "method": RULES},
        {"id": "no", "method": "trainshift/no"},
        SHUTDOWN,
        EXIT,
    )
    assert heard.status == 0
    assert {"code": "TF01"}.items() <= heard.answer("rules")["result"][0].items()
    assert heard.answer("no")["error"]["code"] == -32601
