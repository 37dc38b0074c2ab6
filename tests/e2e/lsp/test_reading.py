"""Code lenses and hovers: information about a script that does not get in the way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types

from e2e.lsp.commands import ALL, SCRIPTS, converted, text_of
from e2e.lsp.session import PULLING, Session, able, serve

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOP = """\
import tensorflow as tf
Adam = tf.keras.optimizers.Adam
opt = Adam(1e-3)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
for i in range(10):
    step(tf.ones([4, 2]))
"""


def titles(found: list[types.CodeLens]) -> list[tuple[int, str]]:
    """The line of each lens, from 0, and its title."""
    return [(each.range.start.line, each.command.title if each.command else "") for each in found]


# Lenses


async def test_a_training_loop_has_a_lens(strict_puller: Session) -> None:
    puller = strict_puller
    document = puller.open(LOOP)
    lens, loud = await puller.lenses(document)
    assert titles([lens, loud]) == [(9, "GradientTape loop · Make distributed"), (9, "1 warning")]
    assert loud.command is not None
    await puller.run(loud.command.command, *loud.command.arguments or ())
    shown = puller.shown_documents[-1]
    line = document.line("Adam =")
    assert (shown.uri, shown.selection and shown.selection.start.line) == (document.uri, line)
    assert lens.command is not None
    again = LOOP.replace("opt = Adam(1e-3)", "SGD = tf.keras.optimizers.SGD\nopt = Adam(1e-3)")
    puller.write(document, again)
    await puller.pulled(document)
    assert titles(await puller.lenses(document)) == [
        (10, "GradientTape loop · Make distributed"),
        (10, "2 warnings"),
    ]
    await puller.run(lens.command.command, *lens.command.arguments or ())
    assert "DistributedGradientTape" in document.text
    await puller.pulled(document)
    line = document.line("for i in")
    found = titles(await puller.lenses(document))
    assert found == [(line, "GradientTape loop · distributed"), (line, "2 warnings")]


async def test_a_loop_in_a_module_has_a_lens_that_leads_to_the_start(
    strict_puller: Session, tmp_path: Path
) -> None:
    start, module = tmp_path / "main.py", tmp_path / "loop.py"
    start.write_text("from loop import fit\n\nfit([1.0], [2.0])\n")
    module.write_text(
        "import tensorflow as tf\n\ndef fit(x, y):\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        '    model.compile("adam", "mse")\n'
        "    model.fit(x, y)\n"
    )
    document = strict_puller.open(module.read_text(), module.as_uri())
    await strict_puller.outline(document.uri)
    commands = [lens.command for lens in await strict_puller.lenses(document)]
    (found,) = (each for each in commands if each is not None and "part of" in each.title)
    assert found.title == "part of main.py · 2 files"
    assert [*(found.arguments or ())] == [start.as_uri(), 1]


async def test_a_loop_that_cannot_be_converted_says_so_and_why(strict_puller: Session) -> None:
    puller = strict_puller
    text = LOOP.replace("opt = Adam(1e-3)", "strategy = tf.distribute.TPUStrategy()\nopt = Adam(1e-3)")
    document = puller.open(text)
    lens, loud = await puller.lenses(document)
    assert titles([lens, loud]) == [
        (10, "Training loop · cannot be made distributed"),
        (10, "2 warnings"),
    ]
    assert lens.command is not None
    before = len(puller.messages)
    answer = await puller.run(lens.command.command, *lens.command.arguments or ())
    assert answer["applied"] is False
    await puller.until("the reason is told", lambda: len(puller.messages) > before)
    assert answer["reason"] in puller.messages[-1].message
    assert "tf.distribute" in answer["reason"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("keras_mnist_callbacks", "Keras"),
        ("estimator_mnist", "Estimator"),
        ("session_gan", "Session"),
        ("monitored_hooks", "MonitoredSession"),
    ],
)
async def test_each_kind_of_loop_is_named(puller: Session, name: str, kind: str) -> None:
    document = puller.open(text_of(SCRIPTS / name / "before.py"))
    found = titles(await puller.lenses(document))
    assert found
    loops = [title.partition(" · ")[0] for _, title in found if "warning" not in title]
    assert set(loops) == {f"{kind} loop"}


async def test_a_lens_stays_with_its_loop_while_the_text_is_broken(puller: Session) -> None:
    document = puller.open(LOOP)
    await puller.lenses(document)
    puller.edit(document, "opt = Adam(1e-3)", "\n\nopt = Adam(1e-3")
    await puller.pulled(document)
    (line, title), *_ = titles(await puller.lenses(document))
    assert line == 11
    assert title.startswith("GradientTape loop · Make distributed")


async def test_the_editor_is_told_when_there_are_other_lenses(editor: Session) -> None:
    document = editor.open("import tensorflow as tf\n")
    assert await editor.lenses(document) == []
    editor.write(document, LOOP)
    while not await editor.lenses(document):
        await editor.until(
            "lenses are asked for", lambda: types.WORKSPACE_CODE_LENS_REFRESH in editor.refreshes
        )
        editor.refreshes.clear()


@pytest.mark.slow
async def test_lenses_that_are_switched_off_go() -> None:
    async with serve(able({"workspace.configuration": None})) as session:
        document = session.open(LOOP)
        refresh = types.WORKSPACE_CODE_LENS_REFRESH
        await session.until("lenses are asked for", lambda: refresh in session.refreshes)
        assert len(await session.lenses(document)) == 1
        for section, number in (({"codeLens": False}, 0), ({}, 1), ({"enable": False}, 0)):
            session.refreshes.clear()
            changed = types.DidChangeConfigurationParams({"trainshift": section})
            session.client.workspace_did_change_configuration(changed)
            await session.until("lenses are asked for", lambda: refresh in session.refreshes)
            assert len(await session.lenses(document)) == number, section


# Hovers


async def test_a_finding_is_explained_where_it_is_underlined(puller: Session) -> None:
    document = puller.open(LOOP)
    text = await puller.hover(document, LOOP.index("Adam ="))
    title, why, what, link = text.split("\n\n")
    assert title == "**TF03** Members of TensorFlow must be renamed by imports only."
    assert "two GPUs" in why
    assert what.startswith("Write the member where it is used")
    page = re.fullmatch(r"\[More about TF03\]\(file://(.*)\)", link)
    assert page is not None
    assert Path(page[1]).is_file()
    assert await puller.hover(document, LOOP.index("= tf.keras.optimizers")) == ""
    assert await puller.hover(document, LOOP.index("loss, model")) == ""


async def test_a_hint_says_why_and_how_the_line_reads_before_and_after(puller: Session) -> None:
    document = puller.open(LOOP)
    await puller.outline(document.uri)
    what, why, lines, link = (await puller.hover(document, LOOP.index("opt = Adam"))).split("\n\n")
    assert what == "**HV02** Scale the learning rate by the number of ranks."
    assert "With the old rate" in why
    assert lines == "```diff\n- opt = Adam(1e-3)\n+ opt = Adam(1e-3 * hvd.size())\n```"
    assert re.fullmatch(r"\[More about HV02\]\(file://.*\)", link)
    tape = await puller.hover(document, LOOP.index("with tf.Gra"))
    assert "  with tf.GradientTape() as tape:\n" in tape
    assert "\n+ tape = hvd.DistributedGradientTape(tape)\n" in tape
    step = await puller.hover(document, LOOP.index("opt.apply"))
    assert step.index("  opt.apply_gradients") < step.index("\n+ if not hvd_broadcast_done:\n")


async def test_a_hint_of_a_long_file_says_who_shows_its_lines(puller: Session) -> None:
    text = LOOP + "# and on, and on, and on\n" * 4_100
    assert len(text) > 100_000
    document = puller.open(text)
    await puller.outline(document.uri)
    what, why, told, link = (await puller.hover(document, text.index("opt = Adam"))).split("\n\n")
    assert what == "**HV02** Scale the learning rate by the number of ranks."
    assert "With the old rate" in why
    assert told == "The file is too long to show the new lines here. `trainshift convert` shows them."
    assert link.startswith("[More about HV02]")


async def test_a_code_in_a_comment_is_explained(puller: Session) -> None:
    text = (
        "import tensorflow as tf\nAdam = tf.keras.optimizers.Adam  # 🎉 trainshift: ignore[TF05, TF03] why\n"
    )
    document = puller.open(text)
    for code in ("TF05", "TF03"):
        for at in (text.index(code), text.index(code) + 3):
            assert f"**{code}** " in await puller.hover(document, at)
    assert await puller.hover(document, text.index("why")) == ""


async def test_a_name_that_is_no_horovods_is_not_explained(puller: Session) -> None:
    text = "class hvd:\n    def init(): pass\nimport tensorflow as tf\nhvd.init()\n"
    assert await puller.hover(puller.open(text), text.index("init()\n")) == ""


EXPLAINED = {
    "init": "HV01",
    "local_rank": "HV01",
    "size": "HV02",
    "rank": "HV07",
    "DistributedGradientTape": "HV04",
    "DistributedOptimizer": "HV03",
    "broadcast_variables": "HV05",
    "broadcast_global_variables": "HV13",
    "BroadcastGlobalVariablesCallback": "HV09",
    "MetricAverageCallback": "HV09",
    "BroadcastGlobalVariablesHook": "HV12",
}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "mnist_tape",
            {"init", "local_rank", "size", "rank", "DistributedGradientTape", "broadcast_variables"},
        ),
        (
            "keras_mnist_callbacks",
            {"DistributedOptimizer", "BroadcastGlobalVariablesCallback", "size", "rank"},
        ),
        ("session_gan", {"DistributedOptimizer", "broadcast_global_variables", "local_rank"}),
        ("estimator_mnist", {"BroadcastGlobalVariablesHook", "DistributedOptimizer"}),
        ("monitored_hooks", {"BroadcastGlobalVariablesHook", "DistributedOptimizer"}),
    ],
)
async def test_what_trainshift_writes_is_explained(puller: Session, name: str, wanted: set[str]) -> None:
    text = text_of(SCRIPTS / name / "after.py")
    document = puller.open(text)
    await puller.pulled(document)
    told: dict[str, set[str]] = {}
    for match in re.finditer(r"\bhvd\.(?:callbacks\.)?(\w+)\(", text):
        found = await puller.hover(document, match.start(1))
        reason = re.search(rf"^`{re.escape(match[0][:-1])}`: [^\n]+\n\n\[(HV\d\d)\]\(file://", found, re.M)
        assert reason is not None, (match[0], found)
        told.setdefault(match[1], set()).add(reason[1])
    assert wanted <= set(told)
    for construct in wanted:
        assert EXPLAINED[construct] in told[construct], told[construct]


@pytest.mark.slow
@pytest.mark.parametrize("script", ALL)
@pytest.mark.in_turns(2)
async def test_all_that_trainshift_writes_is_explained(puller: Session, script: str) -> None:
    text = text_of(SCRIPTS / script / "after.py")
    document = puller.open(text)
    await puller.pulled(document)
    name = re.search(r"^import horovod[.\w]* as (\w+)", text, re.M)
    assert name is not None
    found = list(re.finditer(rf"^[^#\n]*?\b{name[1]}\.(?:callbacks\.)?(\w+)\(", text, re.M))
    assert found
    for match in found:
        said = await puller.hover(document, match.start(1))
        assert re.search(r"^`\w+(?:\.\w+)*`: [^\n]+\n\n\[HV\d\d\]", said, re.M), (match[0], said)


async def test_a_rank_is_explained_by_what_it_guards(puller: Session) -> None:
    text = text_of(SCRIPTS / "mnist_tape" / "after.py")
    document = puller.open(text)
    await puller.pulled(document)
    steps = await puller.hover(document, text.index("// hvd.size()") + 8)
    assert "HV06" in steps
    rate = await puller.hover(document, text.index("* hvd.size()") + 8)
    assert "HV02" in rate


async def test_a_loop_tells_which_data_each_rank_sees(puller: Session) -> None:
    text = text_of(SCRIPTS / "dcgan" / "before.py")
    document = puller.open(text)
    await puller.pulled(document)
    said = await puller.hover(document, text.index("for batch in rings"))
    assert "each rank trains on its own 1/hvd.size() of `rings`" in said
    after = text_of(SCRIPTS / "dcgan" / "after.py")
    document = puller.open(after)
    await puller.pulled(document)
    assert "HV15" in await puller.hover(document, after.index("shard(hvd.size()") + 10)
    assert "divides `rings` among the ranks" in await puller.hover(document, after.index("batch in rings"))


async def test_a_hover_right_after_an_edit_knows_horovod(puller: Session) -> None:
    path = SCRIPTS / "mnist_tape" / "before.py"
    document = puller.open(text_of(path))
    puller.write(document, converted(path))
    assert "HV04" in await puller.hover(document, document.text.index("DistributedGradientTape"))


@pytest.mark.slow
async def test_nothing_is_said_where_it_is_switched_off() -> None:
    async with serve(
        able({"workspace.configuration": None}, PULLING), options={"codeLens": False}
    ) as session:
        document = session.open(LOOP)
        assert await session.lenses(document) == []
        assert await session.hover(document, LOOP.index("Adam =")) != ""
        off = types.DidChangeConfigurationParams({"trainshift": {"enable": False}})
        session.client.workspace_did_change_configuration(off)
        assert await session.hover(document, LOOP.index("Adam =")) == ""
        assert await session.pulled(document) == []
        assert await session.actions(document, 1) == []


# The log


async def test_what_is_ignored_is_in_the_clients_log(editor: Session) -> None:
    document = editor.open(LOOP)
    whole = types.TextDocumentContentChangeWholeDocument("x")
    old = types.VersionedTextDocumentIdentifier(0, document.uri)
    editor.client.text_document_did_change(types.DidChangeTextDocumentParams(old, [whole]))
    logged = await editor.until("it is logged", lambda: [*editor.logged])
    assert logged[-1].type == types.MessageType.Warning
    assert document.uri in logged[-1].message
    assert "old version 0" in logged[-1].message


async def test_more_is_told_while_the_client_traces(editor: Session) -> None:
    document = editor.open(LOOP)
    await editor.shown(document, lambda found: "HV04" in {each.code for each in found})
    assert editor.traced == []
    editor.client.set_trace(types.SetTraceParams(types.TraceValue.Verbose))
    editor.edit(document, "opt = Adam(1e-3)", "opt = Adam(1e-4)")
    await editor.until("it is traced", lambda: any("version 2 is settled" in each for each in editor.traced))
    editor.client.set_trace(types.SetTraceParams(types.TraceValue.Off))
    await editor.lenses(document)
    before = len(editor.traced)
    editor.edit(document, "opt = Adam(1e-4)", "SGD = tf.keras.optimizers.SGD\nopt = Adam(1e-3)")
    await editor.shown(document, lambda found: [each.code for each in found].count("TF03") == 2)
    assert len(editor.traced) == before
