"""Code actions: the contents of menus, and the effects of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.lsp.commands import ALL, QUICK, SCRIPTS, changes, converted, report, statements, text_of
from e2e.lsp.edits import lines_of, units
from e2e.lsp.session import EDITOR, PULLING, Document, Session, able, serve, structured
from support.turns import Turns
from trainshift.engine.checking import check
from trainshift.engine.fixing import fix

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOWLY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ALL]
FILE = "source.makeDistributed.trainshift"
STATEMENT = "refactor.rewrite.distribute"
FIX_ALL = "source.fixAll.trainshift"
WHOLE = "Trainshift: Make distributed (whole file)"
MNIST = SCRIPTS / "mnist_tape" / "before.py"
ALIAS = "import tensorflow as tf\nAdam = tf.keras.optimizers.Adam\nopt = Adam()\n"
WITHHELD = """\
import tensorflow as tf
options = [0.1]
opt = tf.keras.optimizers.Adam(*options)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for x in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
"""
CONDITIONAL = """\
import tensorflow as tf
from data import x, y, is_quick

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
if is_quick:
    optimizer = tf.keras.optimizers.SGD(0.1)
else:
    optimizer = tf.keras.optimizers.Adam(1e-3)
model.compile(optimizer, "mse")
model.fit(x, y)
"""
# The script uses Horovod, but not for its optimizer.
IN_PART = """\
import horovod.tensorflow.keras as hvd
import tensorflow as tf
from data import x, y

hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(x, y)
"""
FIXABLE_TWICE = """\
import tensorflow as tf
keras = tf.keras
Adam = tf.keras.optimizers.Adam

def train(ds):
    opt = Adam()
    model = keras.Sequential([keras.layers.Dense(1)])
    for x, y in ds:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        print(opt.apply_gradients(zip(grads, model.trainable_variables)))
"""
FIXABLE = """\
import tensorflow as tf

def train(ds):
    keras = tf.keras
    opt = keras.optimizers.Adam()
    return opt
"""
REFUSED = WITHHELD.replace("variables)\n    opt", "variables, unconnected_gradients='zero')\n    opt")
NOTES = {"changes": "applied", "decisions": "decisions", "doubts": "doubts", "withheld": "withheld"}
"""The notes that the command and `trainshift convert` share."""
CONTENT_MODIFIED = -32801
INVALID_PARAMS = -32602
REQUEST_FAILED = -32803


def titled(menu: list[types.CodeAction], beginning: str, kind: str = "") -> types.CodeAction:
    """The only action of a kind whose title begins with a text."""
    (found,) = (each for each in menu if each.title.startswith(beginning) and kind in ("", each.kind))
    return found


def mnist(session: Session) -> Document:
    """A script with statements of all kinds."""
    return session.open(text_of(MNIST))


# Statements and files


@pytest.mark.parametrize("name", SLOWLY)
@pytest.mark.in_turns(5)
async def test_a_script_becomes_what_convert_makes_of_it(puller: Session, name: str, turns: Turns) -> None:
    path = SCRIPTS / name / "before.py"
    document = puller.open(text_of(path), path.as_uri())
    await _assert_same_edit_alone(puller, document, path)
    await _assert_same_file(puller, document, path)
    await _assert_same_statements(puller, document, path, turns)
    puller.close(document)


async def _assert_same_file(puller: Session, document: Document, path: Path) -> None:
    menu = await puller.actions(document, 0, only=[FILE])
    after = text_of(path.with_name("after.py"))
    if report(path)["status"] == "converted":
        (action,) = menu
        assert (action.title, action.kind, action.edit) == (WHOLE, FILE, None)
        assert await puller.result(action, document) == after == converted(path)
    else:
        (action,) = menu
        assert action.disabled is not None
        assert action.disabled.reason == report(path)["reason"]
        assert after == document.text


async def _assert_same_statements(puller: Session, document: Document, path: Path, turns: Turns) -> None:
    lines = sorted({place.line for place in changes(path)})
    # The command line starts anew for each line: it is tested for a few lines, the core for all.
    expected = statements(path, lines) | {line: converted(path, line) for line in turns.of(lines, 8)}
    for line in lines:
        menu = await puller.actions(document, line)
        action = titled(menu, "Trainshift: Make distributed: ", STATEMENT)
        assert await puller.result(action, document) == expected[line], line
        quick = titled(menu, action.title, "quickfix")
        assert quick.data == action.data
        hints = {each.code for each in quick.diagnostics or ()}
        assert hints <= {place.code for place in changes(path)}
        assert hints


async def _assert_same_edit_alone(puller: Session, document: Document, path: Path) -> None:
    """Check that the command returns its edit, and applies nothing."""
    puller.messages.clear()
    puller.edits.clear()
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
    outline = await puller.outline(document.uri)
    assert (document.version, puller.edits, puller.messages) == (1, [], [])
    told = report(path)
    assert (answer["applied"], answer["status"], answer["reason"]) == (False, told["status"], told["reason"])
    assert outline["reason"] == told["reason"]
    assert outline["changes"] == len(told["applied"])
    if told["status"] == "converted":
        (action,) = await puller.actions(document, 0, only=[FILE])
        edit = structured(answer["edit"])
        assert edit == (await puller.resolve(action)).edit
        assert puller.texts_after(edit)[document.uri] == converted(path)
        assert outline["status"] == "convertible"
    else:
        assert answer["edit"] is None
        assert outline["status"] == told["status"]
    lines = lines_of(document.text)
    for mine, theirs in NOTES.items():
        wanted = [
            {
                "rule": each["rule"],
                "uri": document.uri,
                "line": each["line"],
                "column": units(lines[each["line"] - 1][: each["column"] - 1], puller.encoding) + 1,
                "text": each["text"],
            }
            for each in told[theirs]
        ]
        beside = ("optional", "newLine")
        found = [{key: value for key, value in each.items() if key not in beside} for each in answer[mine]]
        assert found == wanted, mine


async def test_a_hint_can_be_fixed_where_it_is_shown(puller: Session) -> None:
    document = mnist(puller)
    for hint in await puller.pulled(document):
        if str(hint.code).startswith("HV"):
            menu = await puller.menu(document, hint.range, only=["quickfix"])
            action = titled(menu, "Trainshift: Make distributed: ")
            assert (hint.code, hint.range) in [(each.code, each.range) for each in action.diagnostics or ()]


async def test_several_statements_are_converted_together(puller: Session) -> None:
    document = mnist(puller)
    first, last = (
        document.line("for images, labels in dataset.take"),
        document.line("for images, labels in test_dataset"),
    )
    menu = await puller.actions(document, first, last)
    action = titled(menu, "Trainshift: Make distributed: ", STATEMENT)
    assert action.title == "Trainshift: Make distributed: 5 statements"
    text = await puller.result(action, document)
    lines, after = text.splitlines(), converted(MNIST).splitlines()
    # The loop is as in the converted file; everything above it, except the set-up, is unchanged.
    at = lines.index("for images, labels in dataset.take(STEPS // hvd.size()):")
    there = after.index(lines[at])
    rest = [line for line in after[there:] if line.strip()]
    selected = [line for line in lines[at:] if line.strip()]
    end = next(
        number
        for number, line in enumerate(selected)
        if line.startswith("for images, labels in test_dataset")
    )
    assert selected[:end] == rest[:end]
    assert "DistributedGradientTape" not in text
    assert "learning_rate=0.003)" in text
    assert text.count("hvd.init()") == 1


async def test_where_nothing_is_to_be_done_nothing_is_offered(puller: Session) -> None:
    document = mnist(puller)
    menu = await puller.actions(document, document.line("start = time.time()"))
    assert [each.title for each in menu] == [WHOLE]


async def test_kinds_that_are_not_asked_for_are_not_offered(puller: Session) -> None:
    document = mnist(puller)
    line = document.line("optimizer = tf.keras")
    for only, kinds in (
        (["quickfix"], {"quickfix"}),
        (["refactor"], {STATEMENT}),
        (["refactor.rewrite"], {STATEMENT}),
        (["refactor.rewrite.distribute"], {STATEMENT}),
        (["refactor.extract"], set()),
        (["source"], {FILE}),
        (["source.makeDistributed"], {FILE}),
        ([FILE], {FILE}),
        (["source.fixAll"], set()),
        (["source.fixAll.trainshift"], set()),
        (["source.organizeImports"], set()),
        (["notebook"], set()),
        (["quickfix", "source"], {"quickfix", FILE}),
        ([""], {"quickfix", STATEMENT, FILE}),
        ([], set()),
        (None, {"quickfix", STATEMENT, FILE}),
    ):
        assert {each.kind for each in await puller.actions(document, line, only=only)} == kinds, only


async def test_what_makes_a_place_distributed_is_preferred_and_first(puller: Session) -> None:
    document = puller.open(CONDITIONAL)
    (where,) = {each.code: each for each in await puller.pulled(document) if each.code == "TF07"}.values()
    titles = [each.title for each in await puller.menu(document, where.range) if each.kind == "quickfix"]
    beginnings = ["Make distributed: scale", "Show what TF07", "Ignore TF07"]
    assert [title.startswith(f"Trainshift: {each}") for title, each in zip(titles, beginnings, strict=True)]
    first, *others = await puller.menu(document, where.range)
    assert first.is_preferred
    assert not any(each.is_preferred for each in others)


async def test_a_finding_where_nothing_is_to_be_done_offers_the_whole_file(puller: Session) -> None:
    document = puller.open(FIXABLE_TWICE)
    alias, _ = (each for each in await puller.pulled(document) if each.code == "TF03")
    for only in (None, ["quickfix"]):
        first, *others = await puller.menu(document, alias.range, only=only)
        assert (first.title, first.kind, first.is_preferred) == (WHOLE, "quickfix", True)
        assert [each.code for each in first.diagnostics or ()] == ["TF03"]
        assert WHOLE not in [each.title for each in others]
        assert others[-1].title == "Trainshift: Ignore TF03 on this line"
        assert await puller.result(first, document) == await puller.result(
            titled(await puller.actions(document, 0, only=[FILE]), WHOLE), document
        )


async def test_the_fix_of_a_hazard_is_preferred_and_first(puller: Session) -> None:
    document = puller.open(IN_PART)
    hazards = [each for each in await puller.pulled(document) if each.code in ("HZ07", "HZ10")]
    for each in hazards:
        first, *others = await puller.menu(document, each.range)
        data = first.data or {}
        assert (data["do"], data["code"], first.is_preferred) == ("fix", each.code, True)
        assert WHOLE in [other.title for other in others]
        assert not any(other.is_preferred for other in others)
    assert hazards


async def test_all_fixes_are_those_of_the_command_line(puller: Session) -> None:
    document = puller.open(FIXABLE_TWICE)
    for only in (["source.fixAll"], [FIX_ALL], ["source"]):
        menu = await puller.actions(document, 0, only=only)
        action = titled(menu, "Trainshift: Fix all", FIX_ALL)
        assert await puller.result(action, document) == fix(FIXABLE_TWICE).text != FIXABLE_TWICE
    assert not [each for each in await puller.actions(document, 0) if each.kind == "source.fixAll"]
    puller.write(document, fix(FIXABLE_TWICE).text)
    assert await puller.actions(document, 0, only=[FIX_ALL]) == []


async def test_hazards_are_told_and_fixed_as_other_findings_are(puller: Session) -> None:
    text = "import horovod.tensorflow as hvd\n\nhvd.init()\nif hvd.rank == 0:\n    print('root')\n"
    document = puller.open(text)
    (told,) = (each for each in await puller.pulled(document) if each.code == "HZ25")
    assert told.severity is types.DiagnosticSeverity.Warning
    mended = text.replace("hvd.rank ==", "hvd.rank() ==")
    quick = titled(await puller.menu(document, told.range), "Trainshift: Call hvd.rank", "quickfix")
    assert await puller.result(quick, document) == mended
    every = titled(await puller.actions(document, 0, only=[FIX_ALL]), "Trainshift: Fix all", FIX_ALL)
    assert await puller.result(every, document) == mended == fix(text).text


async def test_a_fix_that_has_to_be_chosen_is_no_part_of_all_fixes(puller: Session) -> None:
    choice = "tf.config.set_visible_devices(GPUS[hvd.local_rank()], 'GPU')\n"
    head, metric = (
        "import horovod.tensorflow as hvd\nimport tensorflow as tf\n\n",
        "metric = tf.keras.metrics.Mean()\n",
    )
    text = f"{head}{metric}hvd.init()\n{choice}"
    document = puller.open(text)
    (told,) = (each for each in await puller.pulled(document) if each.code == "HZ04")
    quick = titled(await puller.menu(document, told.range), "Trainshift: Choose the GPU first", "quickfix")
    assert await puller.result(quick, document) == f"{head}hvd.init()\n{choice}{metric}"
    assert not [each for each in await puller.actions(document, 0, only=[FIX_ALL]) if each.kind == FIX_ALL]
    assert fix(text).text == text


async def test_all_findings_of_one_code_are_fixed(puller: Session) -> None:
    document = puller.open(FIXABLE_TWICE)
    menu = await puller.actions(document, document.line("keras = "))
    after = await puller.result(titled(menu, "Trainshift: Fix all TF03", "quickfix"), document)
    left = {each.code for each in check(after).diagnostics}
    assert "TF03" not in left
    assert left == {each.code for each in check(FIXABLE_TWICE).diagnostics} - {"TF03"} != set()
    # One fix on its own is enough.
    document = puller.open(FIXABLE)
    menu = await puller.actions(document, document.line("keras = "))
    assert not [each for each in menu if "Fix all" in each.title and each.kind == "quickfix"]


# Findings


async def test_a_finding_is_fixed(puller: Session) -> None:
    document = puller.open(FIXABLE)
    (found,) = (each for each in await puller.pulled(document) if each.code == "TF03")
    menu = await puller.menu(document, found.range)
    fix = next(each for each in menu if each.data is not None and each.data["do"] == "fix")
    assert (fix.kind, fix.is_preferred) == ("quickfix", None)
    assert [(each.code, each.range) for each in fix.diagnostics or ()] == [("TF03", found.range)]
    text = await puller.result(fix, document)
    assert "keras = tf.keras" not in text
    assert "opt = tf.keras.optimizers.Adam()" in text
    puller.write(document, text)
    assert "TF03" not in {each.code for each in await puller.pulled(document)}


async def test_the_removal_of_a_needless_comment_is_preferred(puller: Session) -> None:
    document = puller.open(
        "import tensorflow as tf  # trainshift: ignore[TF03]\nopt = tf.keras.optimizers.Adam()\n"
    )
    (found,) = await puller.pulled(document)
    (fix,) = (each for each in await puller.menu(document, found.range) if each.is_preferred)
    assert await puller.result(fix, document) == "import tensorflow as tf\nopt = tf.keras.optimizers.Adam()\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("Adam = tf.keras.optimizers.Adam", "Adam = tf.keras.optimizers.Adam  # trainshift: ignore[TF03]"),
        (
            "Adam = tf.keras.optimizers.Adam  # why",
            "Adam = tf.keras.optimizers.Adam  # why  # trainshift: ignore[TF03]",
        ),
        (
            "Adam = tf.keras.optimizers.Adam  # trainshift: ignore[TF05]",
            "Adam = tf.keras.optimizers.Adam  # trainshift: ignore[TF05, TF03]",
        ),
    ],
)
async def test_a_finding_is_ignored_by_a_comment(puller: Session, line: str, after: str) -> None:
    document = puller.open(f"import tensorflow as tf\n{line}\nopt = Adam()\n")
    assert "TF03" in {each.code for each in await puller.pulled(document)}
    action = titled(await puller.actions(document, 1), "Trainshift: Ignore TF03 on this line", "quickfix")
    text = await puller.result(action, document)
    assert text == f"import tensorflow as tf\n{after}\nopt = Adam()\n"
    puller.write(document, text)
    assert "TF03" not in {each.code for each in await puller.pulled(document)}


async def test_the_page_of_a_finding_is_shown(puller: Session) -> None:
    document = puller.open(ALIAS)
    action = titled(await puller.actions(document, 1), "Trainshift: Show what TF03 means", "quickfix")
    assert action.edit is None
    assert action.command is not None
    assert await puller.run(action.command.command, *action.command.arguments or ()) is None
    shown = puller.shown_documents[-1]
    assert shown.uri.endswith("/TF03.md")
    await puller.run(action.command.command, "hv04")
    assert puller.shown_documents[-1].uri.endswith("/HV04.md")
    for nonsense in ("XX99", "../../README", 7):
        with pytest.raises(JsonRpcException, match=str(nonsense)) as refusal:
            await puller.run(action.command.command, nonsense)
        assert refusal.value.code == INVALID_PARAMS


@pytest.mark.slow
async def test_the_meaning_is_told_to_a_client_that_opens_no_documents() -> None:
    async with serve(able({"window.showDocument": None})) as session:
        assert await session.run("trainshift.explain", "TF03") is None
        await session.until("it is told", lambda: session.messages)
        assert "TF03" in session.messages[0].message
        assert session.shown_documents == []


# Versions and capabilities


async def test_an_action_of_an_older_version_is_refused(puller: Session) -> None:
    document = mnist(puller)
    menu = await puller.actions(document, document.line("optimizer = tf.keras"))
    puller.edit(document, "BATCH_SIZE = 32", "BATCH_SIZE = 64")
    for action in menu:
        with pytest.raises(JsonRpcException) as refusal:
            await puller.resolve(action)
        assert refusal.value.code == CONTENT_MODIFIED
    puller.close(document)
    with pytest.raises(JsonRpcException) as refusal:
        await puller.resolve(menu[0])
    assert refusal.value.code == CONTENT_MODIFIED


async def test_while_the_text_is_broken_the_menu_stays_but_changes_nothing(puller: Session) -> None:
    document = mnist(puller)
    before = await puller.actions(document, document.line("optimizer = tf.keras"))
    puller.edit(document, "BATCH_SIZE = 32", "BATCH_SIZE = (32")
    menu = await puller.actions(document, document.line("optimizer = tf.keras"))
    assert [each.title for each in menu] == [each.title for each in before]
    for action in menu:
        with pytest.raises(JsonRpcException, match="cannot be read") as refusal:
            await puller.resolve(action)
        assert refusal.value.code == REQUEST_FAILED


async def test_edits_tell_their_version_and_why_each_is_made(puller: Session) -> None:
    document = mnist(puller)
    (action,) = await puller.actions(document, 0, only=[FILE])
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    (change,) = edit.document_changes or ()
    assert isinstance(change, types.TextDocumentEdit)
    assert (change.text_document.uri, change.text_document.version) == (document.uri, document.version)
    notes = edit.change_annotations or {}
    assert set(notes) == {each["rule"] for each in report(MNIST)["applied"]}
    assert notes["HV04"].label.startswith("HV04: Wraps every tape whose gradients reach an optimizer step")
    told = [each["text"] for each in report(MNIST)["decisions"] if each["rule"] == "HV06"]
    assert notes["HV06"].description == "; ".join(told)
    kinds = {
        each.annotation_id: each.new_text
        for each in change.edits
        if isinstance(each, types.AnnotatedTextEdit)
    }
    assert set(kinds) == set(notes)
    assert "DistributedGradientTape" in kinds["HV04"]
    assert not any(note.needs_confirmation for note in notes.values())


@pytest.mark.slow
async def test_a_client_without_annotations_gets_plain_edits() -> None:
    async with serve(able({"workspace.workspaceEdit.changeAnnotationSupport": None}, PULLING)) as session:
        document = mnist(session)
        (action,) = await session.actions(document, 0, only=[FILE])
        edit = (await session.resolve(action)).edit
        assert edit is not None
        assert edit.change_annotations is None
        (change,) = edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert {type(each) for each in change.edits} == {types.TextEdit}
        assert session.texts_after(edit)[document.uri] == converted(MNIST)


async def test_a_simple_client_gets_edits_at_once_and_without_versions() -> None:
    simple = {
        "workspace": {"workspaceEdit": {}},
        "textDocument": {
            "codeAction": {
                "codeActionLiteralSupport": EDITOR["textDocument"]["codeAction"]["codeActionLiteralSupport"]
            }
        },
    }
    async with serve(simple) as session:
        document = mnist(session)
        menu = await session.actions(document, document.line("optimizer = tf.keras"))
        assert {each.kind for each in menu} == {"quickfix", STATEMENT, FILE}
        for action in menu:
            assert action.data is None
            assert action.edit is not None
            assert action.edit.document_changes is None
            line = None if action.kind == FILE else document.line("optimizer = tf.keras")
            assert session.texts_after(action.edit)[document.uri] == converted(MNIST, line)
        alias = session.open(ALIAS)
        ignore = titled(await session.actions(alias, 1), "Trainshift: Ignore TF03")
        assert ignore.edit is not None
        assert "ignore[TF03]" in session.texts_after(ignore.edit)[alias.uri]


async def test_a_menu_says_why_something_is_not_done(puller: Session) -> None:
    path = SCRIPTS / "already_distributed" / "before.py"
    document = puller.open(text_of(path))
    (action,) = await puller.actions(document, 0, only=[FILE])
    assert action.disabled is not None
    assert action.disabled.reason == report(path)["reason"]
    assert action.edit is action.data is None


@pytest.mark.slow
async def test_a_menu_without_reasons_leaves_out_what_cannot_be_done() -> None:
    capabilities = able({"textDocument.codeAction.disabledSupport": None}, PULLING)
    async with serve(capabilities) as session:
        path = SCRIPTS / "already_distributed" / "before.py"
        document = session.open(text_of(path))
        assert await session.actions(document, 0, only=[FILE]) == []


@pytest.mark.slow
async def test_a_client_without_preferences_is_told_none() -> None:
    async with serve(able({"textDocument.codeAction.isPreferredSupport": None}, PULLING)) as session:
        document = session.open(
            "import tensorflow as tf  # trainshift: ignore[TF03]\nopt = tf.keras.optimizers.Adam()\n"
        )
        (found,) = await session.pulled(document)
        menu = await session.menu(document, found.range)
        assert "quickfix" in {each.kind for each in menu}
        assert {each.is_preferred for each in menu} == {None}


async def test_a_statement_that_is_left_alone_says_why(puller: Session, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(WITHHELD, encoding="utf-8")
    (withheld,) = report(path)["withheld"]
    document = puller.open(WITHHELD)
    (action,) = await puller.actions(document, withheld["line"] - 1, only=["refactor", "quickfix"])
    assert action.disabled is not None
    assert action.disabled.reason == withheld["text"]
    assert action.kind == STATEMENT
    # All others are converted, and the user is told about this one.
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri})
    assert document.text == converted(path)
    assert [each["text"] for each in answer["withheld"]] == [withheld["text"]]
    assert withheld["text"] in puller.messages[-1].message


# The command


async def test_the_command_converts_the_file(puller: Session) -> None:
    document = mnist(puller)
    puller.edits.clear()
    answer = await puller.run("trainshift.makeDistributed", document.uri)
    assert document.text == converted(MNIST)
    assert (answer["applied"], answer["reason"], answer["status"]) == (True, "", "converted")
    told = [(each["rule"], each["line"], each["text"]) for each in answer["changes"]]
    assert told == [(each["rule"], each["line"], each["text"]) for each in report(MNIST)["applied"]]
    assert [each["text"] for each in answer["decisions"]] == [
        each["text"] for each in report(MNIST)["decisions"]
    ]
    assert (answer["doubts"], answer["withheld"]) == ([], [])
    # For each change, the reply says where it begins now.
    lines = document.text.splitlines()
    begins = {each["rule"]: lines[each["newLine"] - 1].strip() for each in reversed(answer["changes"])}
    assert begins["HV04"] == "tape = hvd.DistributedGradientTape(tape)"
    assert begins["HV05"] == "if not hvd_broadcast_done:"
    assert begins["HV07"] == "if hvd.rank() == 0:"
    assert answer["files"] == 1
    # A converted script gets a reply that says so, and no edit.
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri})
    assert answer == {
        "applied": False,
        "reason": "every training step, print and write is distributed already",
        "status": "already distributed",
        "program": "",
        "files": 0,
        "at": None,
        "code": "",
        **{name: [] for name in NOTES},
    }
    assert len(puller.edits) == 1
    assert answer["reason"] in puller.messages[-1].message


async def test_the_command_tells_when_the_editor_does_not_apply_its_edit(puller: Session) -> None:
    document = mnist(puller)
    puller.refuses = "the document is read only"
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri})
    puller.refuses = ""
    assert (answer["applied"], answer["reason"]) == (False, "the document is read only")
    assert document.version == 1


@pytest.mark.parametrize("applies", [True, False])
async def test_the_command_says_what_a_refused_script_is_refused_for(
    puller: Session, tmp_path: Path, applies: bool
) -> None:
    path = tmp_path / "train.py"
    path.write_text(REFUSED, encoding="utf-8")
    told = report(path)
    assert told["status"] == "refused"
    document = puller.open(REFUSED)
    puller.messages.clear()
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": applies})
    assert await puller.lenses(document)  # Everything that was to be shown has been shown.
    plain = {"applied", "reason", "status", "program", "files", "at", "code"}
    assert answer.keys() == {*plain, *NOTES, *([] if applies else ["edit"])}
    assert (answer["applied"], answer["status"], answer["reason"]) == (False, "refused", told["reason"])
    assert answer.get("edit") is None
    assert [(each["rule"], each["line"], each["column"], each["text"]) for each in answer["withheld"]] == [
        (each["rule"], each["line"], each["column"], each["text"]) for each in told["withheld"]
    ]
    assert answer["withheld"]
    (essential,) = (each for each in answer["withheld"] if each["rule"] == answer["code"])
    assert answer["at"] == {**essential, "text": told["reason"]}
    assert [told["reason"] in each.message for each in puller.messages] == [True] * applies


async def test_a_text_that_is_not_python_has_no_edit(puller: Session) -> None:
    document = mnist(puller)
    await puller.outline(document.uri)
    puller.edit(document, "BATCH_SIZE = 32", "BATCH_SIZE = (32")
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
    assert (answer["edit"], answer["status"]) == (None, "refused")
    assert "cannot be read" in answer["reason"]
    assert (answer["at"]["uri"], answer["at"]["line"], answer["code"]) == (
        document.uri,
        document.line("BATCH_SIZE") + 1,
        "TS00",
    )


@pytest.mark.parametrize("arguments", [[], ["file:///nowhere.py"], [7], [{"path": 1}], [{"apply": False}]])
async def test_the_command_refuses_what_is_no_open_document(puller: Session, arguments: list[object]) -> None:
    with pytest.raises(JsonRpcException) as refusal:
        await puller.run("trainshift.makeDistributed", *arguments)
    assert refusal.value.code == INVALID_PARAMS


@pytest.mark.parametrize("applies", [None, 0, "no", []])
async def test_the_command_refuses_to_guess_whether_to_apply(puller: Session, applies: object) -> None:
    document = mnist(puller)
    with pytest.raises(JsonRpcException) as refusal:
        await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": applies})
    assert refusal.value.code == INVALID_PARAMS
    assert document.version == 1


@pytest.mark.parametrize(
    "data", [{}, {"do": "fix"}, {"do": "file", "uri": 1, "version": 1, "span": 3, "code": ""}]
)
async def test_an_action_of_somebody_else_is_refused(puller: Session, data: object) -> None:
    with pytest.raises(JsonRpcException):
        await puller.resolve(types.CodeAction("x", data=data))


@pytest.mark.slow
async def test_the_command_needs_an_editor_that_applies_edits() -> None:
    async with serve(able({"workspace.applyEdit": None})) as session:
        document = mnist(session)
        answer = await session.run("trainshift.makeDistributed", {"uri": document.uri})
        assert answer["applied"] is False
        assert answer["reason"] in session.messages[-1].message
        assert session.edits == []


async def test_prints_can_be_left_out_one_by_one_and_nothing_else(puller: Session) -> None:
    document = mnist(puller)

    async def planned(left: list[dict[str, object]]) -> tuple[list[tuple[str, int]], str]:
        given = {"uri": document.uri, "apply": False, "leaveOut": left}
        answer = await puller.run("trainshift.makeDistributed", given)
        edit = structured(answer["edit"])
        text = puller.texts_after(edit)[document.uri]
        return [(each["rule"], each["line"]) for each in answer["changes"]], text

    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
    everything = answer["changes"]
    optional = [each for each in everything if each.get("optional")]
    assert {each["rule"] for each in optional} == {"HV07"}
    last = optional[-1]
    changes, text = await planned([last])
    assert changes == [(each["rule"], each["line"]) for each in everything if each is not last]
    assert document.text.splitlines()[last["line"] - 1] in text.splitlines()
    # A change that is not optional cannot be left out.
    assert (await planned(everything))[0] == [
        (each["rule"], each["line"]) for each in everything if not each.get("optional")
    ]
    assert (await planned([]))[1] == converted(MNIST)
