"""Diagnostics: those that are pushed, and those for a client that pulls."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from e2e.lsp.commands import ALL, QUICK, SCRIPTS, Place, changes, checked, text_of
from e2e.lsp.edits import lines_of
from e2e.lsp.session import Session

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOWLY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ALL]
SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}


def start_of(session: Session, text: str, diagnostic: types.Diagnostic) -> Place:
    """The start of a diagnostic, its column in code points."""
    line = lines_of(text)[diagnostic.range.start.line]
    before = line.encode("utf-16-le")[: diagnostic.range.start.character * 2].decode("utf-16-le")
    return Place(str(diagnostic.code), diagnostic.range.start.line, len(before))


@pytest.mark.parametrize("name", SLOWLY)
async def test_a_script_is_told_what_check_and_convert_say(editor: Session, name: str) -> None:
    path = SCRIPTS / name / "before.py"
    document = editor.open(text_of(path), path.as_uri())
    wanted = {
        (
            Place(each["code"], each["line"] - 1, each["column"] - 1),
            SEVERITIES[each["severity"]],
            each["message"],
        )
        for each in checked(path)
    }
    shift = {Place(each.code, each.line, each.column) for each in changes(path)}

    def fits(found: list[types.Diagnostic]) -> bool:
        hints = {start_of(editor, document.text, each) for each in found if str(each.code).startswith("HV")}
        return hints == shift

    found = await editor.shown(document, fits)
    told = {
        (start_of(editor, document.text, each), each.severity, each.message)
        for each in found
        if not str(each.code).startswith("HV")
    }
    assert told == wanted
    editor.close(document)


ALIAS = """\
import tensorflow as tf
Adam = tf.keras.optimizers.Adam
print("an emoji 🎉 before", Adam)
"""
STATEMENTS = """\
import tensorflow as tf
opt = tf.keras.optimizers.Adam(1e-3)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
for i in range(10):
    step(tf.ones([4, 2]))
    print(i)
"""


def codes(found: list[types.Diagnostic]) -> list[object]:
    """The codes, in order."""
    return [each.code for each in found]


async def test_a_finding_tells_its_code_its_page_and_its_version(editor: Session) -> None:
    document = editor.open(ALIAS)
    (found,) = await editor.shown(document, lambda found: found)
    assert (found.code, found.source, found.severity) == (
        "TF03",
        "trainshift",
        types.DiagnosticSeverity.Information,
    )
    assert editor.underlined(document, found) == "Adam"
    assert found.code_description is not None
    assert Path(found.code_description.href.removeprefix("file://")).read_text().startswith("# TF03")
    editor.edit(document, "import tensorflow", "\nimport tensorflow")
    (found,) = await editor.shown(document, lambda found: found)
    assert (document.shown_version, found.range.start.line) == (2, 2)


async def test_a_finding_names_the_other_places_that_it_is_about(editor: Session) -> None:
    text = 'x = "🎉"; import os\nimport tensorflow as tf\nopt = tf.keras.optimizers.Adam()\n'
    document = editor.open(text)
    found = await editor.shown(document, lambda found: "TF01" in codes(found))
    (related,) = next(each for each in found if each.code == "TF01").related_information or ()
    assert related.location.uri == document.uri
    assert related.message == "this comes before the import"
    assert related.location.range == types.Range(types.Position(0, 0), types.Position(0, 8))


async def test_a_syntax_error_takes_no_finding_away(editor: Session) -> None:
    document = editor.open(STATEMENTS + "Adam = tf.keras.optimizers.Adam\n")
    whole = await editor.shown(document, lambda found: {"TF03", "HV04"} <= {each.code for each in found})
    (alias,) = (each for each in whole if each.code == "TF03")
    editor.edit(document, "for i in range(10):", "\nfor i in range(10:")
    found = await editor.shown(document, lambda found: "TS00" in codes(found))
    error, kept = (each for each in found if not str(each.code).startswith("HV"))
    assert (error.code, error.severity) == ("TS00", types.DiagnosticSeverity.Error)
    assert error.range.start.line == 9
    # The findings of the other statements are still shown, at their current places.
    assert (kept.message, kept.severity) == (alias.message, alias.severity)
    assert kept.range.start == types.Position(alias.range.start.line + 1, alias.range.start.character)
    assert ("HV04", 4) in [(each.code, each.range.start.line) for each in found]
    editor.edit(document, "range(10:", "range(10):")
    await editor.shown(
        document, lambda found: {"TF03", "HV04"} <= set(codes(found)) and "TS00" not in codes(found)
    )


async def test_while_the_text_is_broken_findings_move_and_go_with_what_is_cut(editor: Session) -> None:
    lines = [f"Adam{number} = tf.keras.optimizers.Adam\n" for number in range(3)]
    document = editor.open("import tensorflow as tf\n" + "".join(lines) + "opt = Adam0(1e-3)\n")
    await editor.shown(document, lambda found: codes(found).count("TF03") == 3)
    editor.edit(document, "opt = Adam0(1e-3)", "opt = Adam0(1e-3")
    await editor.shown(document, lambda found: "TS00" in codes(found))
    editor.edit(document, lines[1], "")
    found = await editor.shown(document, lambda found: codes(found).count("TF03") == 2)
    assert [each.range.start.line for each in found if each.code == "TF03"] == [1, 2]
    editor.edit(document, "import tensorflow as tf\n", "\nimport tensorflow as tf\n")
    await editor.shown(
        document,
        lambda found: [each.range.start.line for each in found if each.code == "TF03"] == [2, 3],
    )
    editor.edit(document, "opt = Adam0(1e-3", "opt = Adam0(1e-3)")
    found = await editor.shown(document, lambda found: "TS00" not in codes(found))
    assert codes(found).count("TF03") == 2


async def test_an_unused_comment_is_shown_as_needless(editor: Session) -> None:
    document = editor.open(
        "import tensorflow as tf  # trainshift: ignore[TF03]\nopt = tf.keras.optimizers.Adam()\n"
    )
    (found,) = await editor.shown(document, lambda found: found)
    assert (found.code, list(found.tags or ())) == ("TS01", [types.DiagnosticTag.Unnecessary])
    assert editor.underlined(document, found) == "# trainshift: ignore[TF03]"


async def test_a_closed_document_shows_nothing(editor: Session) -> None:
    document = editor.open(ALIAS)
    await editor.shown(document, lambda found: found)
    editor.close(document)
    await editor.until("nothing is shown", lambda: document.shown == [])


async def test_what_is_no_python_is_ignored(editor: Session) -> None:
    other = editor.open(ALIAS, language="plaintext")
    document = editor.open(ALIAS)
    await editor.shown(document, lambda found: found)
    assert await editor.actions(other, 1) == []
    assert await editor.lenses(other) == []
    assert other.shown is None


async def test_a_file_by_its_name_is_python_whatever_the_editor_calls_it(
    editor: Session, tmp_path: Path
) -> None:
    document = editor.open(ALIAS, (tmp_path / "a b%é.py").as_uri(), language="python3")
    (found,) = await editor.shown(document, lambda found: found)
    assert found.code == "TF03"


# Pulled


async def test_a_pulled_report_is_complete_and_then_unchanged(puller: Session) -> None:
    document = puller.open(STATEMENTS)
    first = await puller.pull(document)
    assert first.kind == "full"
    assert {"HV02", "HV04", "HV05", "HV07"} <= set(codes(first.items))
    second = await puller.pull(document, first.result_id)
    assert (second.kind, second.result_id) == ("unchanged", first.result_id)
    puller.edit(document, "opt = ", "\nopt = ")
    third = await puller.pull(document, first.result_id)
    assert third.kind == "full"
    assert third.result_id != first.result_id
    assert [each.range.start.line - 1 for each in third.items if each.code == "HV04"] == [
        each.range.start.line for each in first.items if each.code == "HV04"
    ]
    puller.edit(document, "\nopt = ", "opt = ")
    assert (await puller.pull(document, first.result_id)).kind == "unchanged"


async def test_nothing_is_pushed_to_a_client_that_pulls(puller: Session) -> None:
    document = puller.open(ALIAS)
    assert codes(await puller.pulled(document)) == ["TF03"]
    puller.edit(document, "Adam = ", "Best = ")
    assert codes(await puller.pulled(document)) == ["TF03"]
    puller.close(document)
    assert await puller.pulled(document) == []
    assert puller.published == []


@pytest.mark.parametrize("name", SLOWLY)
async def test_pulled_is_what_is_pushed(puller: Session, name: str) -> None:
    path = SCRIPTS / name / "before.py"
    document = puller.open(text_of(path), path.as_uri())
    found = await puller.pulled(document)
    wanted = {Place(each["code"], each["line"] - 1, each["column"] - 1) for each in checked(path)}
    assert {start_of(puller, document.text, each) for each in found} == wanted | changes(path)
    puller.close(document)


async def test_what_the_conversion_doubts_is_a_warning_when_that_is_known(editor: Session) -> None:
    parted = STATEMENTS.replace("for i in range(10):", "if random.random() < 0.5:\n  for i in range(10):")
    text = "import random\n" + parted.replace("\n    step(", "\n      step(").replace(
        "\n    print(", "\n      print("
    )
    document = editor.open(text)

    def loud(found: list[types.Diagnostic]) -> list[object]:
        return [each.code for each in found if each.severity is types.DiagnosticSeverity.Warning]

    assert loud(await editor.shown(document, loud)) == ["TL05"]
