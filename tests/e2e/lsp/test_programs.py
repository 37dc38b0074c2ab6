"""Programs of several files: every document shows its own part, and an action changes all files at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.lsp.session import PULLING, Document, Session, able, serve
from support.fixtures import PROGRAMS, ROOT, ProgramFolder
from trainshift.engine.conversion import Conversion, Status, convert_program
from trainshift.host.disk import files_under
from trainshift.lsp.transport.protocol import plain_json
from trainshift.python.source.source import BOM

pytestmark = pytest.mark.asyncio(loop_scope="session")

THREE_FILES = ROOT / "editors" / "three_files"
FILE = "source.makeDistributed.trainshift"
STATEMENT = "refactor.rewrite.distribute"
QUICK = ("transformer_schedule", "two_starts")
"""Programs that stand for all others in the quick loop."""
SLOWLY = [
    pytest.param(program, id=program.name, marks=() if program.name in QUICK else pytest.mark.slow)
    for program in PROGRAMS
]
CONTENT_MODIFIED = -32801
CREATED, CHANGED, DELETED = (
    types.FileChangeType.Created,
    types.FileChangeType.Changed,
    types.FileChangeType.Deleted,
)
OTHER_START = """\
from model import build
from steps import train_step

model, optimizer = build(units=8, rate=0.1)
train_step(model, optimizer, [[1.0, 2.0]], [[1.0]])
"""
FITS = """\
from model import build

model, optimizer = build(units=3)
model.compile(optimizer, "mse")
model.fit([[1.0]], [[1.0]])
"""
CYCLE = {
    "train.py": """\
import step
EPOCHS = 3

def main():
    step.run(EPOCHS)

if __name__ == "__main__":
    main()
""",
    "step.py": """\
import tensorflow as tf
import train

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)

def run(epochs):
    for epoch in range(train.EPOCHS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(tf.ones([1, 1])))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with the program of three files."""
    (tmp_path / ".git").mkdir()
    return shutil.copytree(THREE_FILES, tmp_path / "project")


def text_of(path: Path) -> str:
    """The exact text of a file."""
    return path.read_bytes().decode("utf-8")


def opened(session: Session, path: Path) -> Document:
    """A file of the disk, opened."""
    return session.open(text_of(path), path.as_uri())


def converted(
    start: Path, *, at: tuple[Path, int] | None = None, unsaved: dict[Path, str] | None = None
) -> Conversion:
    """The conversion of a program, or of its statement at a line, from 0, of one file."""
    texts = {path.as_posix(): text for path, text in (unsaved or {}).items()}
    text = texts.get(start.as_posix(), text_of(start).removeprefix("\ufeff") if start.exists() else "")
    place = (at[0].as_posix(), at[1] + 1) if at is not None else None
    return convert_program(text, start.as_posix(), files_under(texts), at=place)


def changed(conversion: Conversion) -> dict[str, str]:
    """The texts of the files that a conversion changes, by their URIs."""
    assert conversion.status is Status.CONVERTED, conversion.reason
    return {Path(each.path).as_uri(): each.text for each in conversion.files if each.text != each.before}


async def whole(session: Session, document: Document) -> types.CodeAction:
    """The only action on the whole program, once its current state is known."""
    await session.outline(document.uri)
    (action,) = await session.actions(document, 0, only=[FILE])
    return action


async def made(session: Session, action: types.CodeAction) -> dict[str, str]:
    """The texts that an action makes."""
    resolved = await session.resolve(action)
    assert resolved.edit is not None
    return session.texts_after(resolved.edit)


async def refused(session: Session, action: types.CodeAction) -> str:
    """The reason why an action is outdated."""
    with pytest.raises(JsonRpcException) as error:
        await session.resolve(action)
    assert error.value.code == CONTENT_MODIFIED
    return error.value.message


def hints(found: list[types.Diagnostic]) -> list[tuple[str, int]]:
    """The rules that would change a document, with the places."""
    return sorted(
        (str(each.code), each.range.start.line) for each in found if str(each.code).startswith("HV")
    )


def told(conversion: Conversion, path: Path, start: Path) -> list[tuple[str, int]]:
    """The same text in the format of a conversion."""
    name = "" if path == start else path.as_posix()
    return sorted((each.rule, each.line - 1) for each in conversion.applied if each.path == name)


# Results shown and applied in each file


@pytest.mark.parametrize("name", ["train.py", "model.py", "steps.py"])
async def test_the_whole_program_is_converted_from_each_of_its_files(
    puller: Session, folder: Path, name: str
) -> None:
    document = opened(puller, folder / name)
    action = await whole(puller, document)
    assert action.title == "Trainshift: Make distributed (train.py and 2 more files)"
    texts = await made(puller, action)
    assert texts == changed(converted(folder / "train.py"))
    assert len(texts) == 3


@pytest.mark.parametrize("name", ["train.py", "model.py", "steps.py"])
async def test_each_file_shows_its_own_part(puller: Session, folder: Path, name: str) -> None:
    start, path = folder / "train.py", folder / name
    document = opened(puller, path)
    await whole(puller, document)
    assert hints(await puller.pulled(document)) == told(converted(start), path, start)
    outline = await puller.outline(document.uri)
    assert [(each["name"], each["uri"]) for each in outline["loops"]] == (
        [("GradientTape", document.uri)] if name == "train.py" else []
    )
    assert outline["status"] == "convertible"
    assert outline["program"] == "train.py and 2 more files"
    assert outline["changes"] == len(converted(start).applied)
    assert outline["files"] == [(folder / each).as_uri() for each in ("train.py", "model.py", "steps.py")]
    titles = [lens.command.title for lens in await puller.lenses(document) if lens.command]
    loop = "GradientTape loop · Make distributed"
    assert [each for each in titles if each != "1 warning"] == ([loop] if name == "train.py" else [])


@pytest.mark.parametrize("name", ["train.py", "model.py", "steps.py"])
async def test_a_statement_is_its_part_of_the_program(puller: Session, folder: Path, name: str) -> None:
    start, path = folder / "train.py", folder / name
    document = opened(puller, path)
    lines = {line for _, line in told(converted(start), path, start)}
    assert lines
    for line in lines:
        menu = await puller.actions(document, line)
        (action,) = (
            each for each in menu if each.kind == STATEMENT and each.title.startswith("Trainshift: Make dist")
        )
        assert await made(puller, action) == changed(converted(start, at=(path, line))), line


async def test_the_statements_one_after_another_make_the_whole(puller: Session, folder: Path) -> None:
    """File by file, in an editor that applies each edit to all files."""
    start = folder / "train.py"
    wanted = changed(converted(start))
    documents = {name: opened(puller, folder / name) for name in ("steps.py", "train.py", "model.py")}
    for turn in range(20):
        unsaved = {folder / name: each.text for name, each in documents.items()}
        left = converted(start, unsaved=unsaved).applied
        if not left:
            break
        note = left[-1 if turn % 2 else 0]
        document = documents[Path(note.path or start).name]
        await puller.outline(document.uri)  # A menu may belong to the previous version.
        menu = await puller.actions(document, note.line - 1)
        (action,) = (each for each in menu if each.kind == STATEMENT)
        resolved = await puller.resolve(action)
        assert resolved.edit is not None
        puller.apply(resolved.edit)
    assert {each.uri: each.text for each in documents.values()} == wanted


async def test_edits_are_annotated_by_rule_and_file(puller: Session, folder: Path) -> None:
    document = opened(puller, folder / "train.py")
    resolved = await puller.resolve(await whole(puller, document))
    assert resolved.edit is not None
    notes = resolved.edit.change_annotations or {}
    assert notes["HV04 steps.py"].label.startswith("HV04: ")
    assert notes["HV04 steps.py"].label.endswith(" (steps.py)")
    assert {key.partition(" ")[2] for key in notes} == {"train.py", "model.py", "steps.py"}
    for change in resolved.edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        name = change.text_document.uri.rpartition("/")[2]
        for edit in change.edits:
            assert isinstance(edit, types.AnnotatedTextEdit)
            assert edit.annotation_id.endswith(f" {name}")


async def test_an_editor_without_versions_gets_all_files_too(folder: Path) -> None:
    capabilities = able({"workspace.workspaceEdit": None}, PULLING)
    async with serve(capabilities) as session:
        document = opened(session, folder / "model.py")
        assert await made(session, await whole(session, document)) == changed(converted(folder / "train.py"))


async def test_the_command_converts_all_files(editor: Session, folder: Path) -> None:
    wanted = converted(folder / "train.py")
    document = opened(editor, folder / "steps.py")
    answer = await editor.run("trainshift.makeDistributed", {"uri": document.uri})
    assert (answer["applied"], answer["program"]) == (True, "train.py and 2 more files")
    assert len(editor.edits) == 1
    assert {uri: each.text for uri, each in editor.documents.items()} == changed(wanted)
    places = {(each["rule"], each["uri"], each["line"]) for each in answer["changes"]}
    assert places == {
        (each.rule, Path(each.path or folder / "train.py").as_uri(), each.line) for each in wanted.applied
    }
    # That was everything, whichever file is asked.
    answer = await editor.run("trainshift.makeDistributed", {"uri": (folder / "model.py").as_uri()})
    assert (answer["applied"], answer["status"]) == (False, "already distributed"), answer


async def test_a_refusal_tells_the_file_that_it_is_for(puller: Session, folder: Path) -> None:
    steps = folder / "steps.py"
    strategy = "strategy = tf.distribute.TPUStrategy()\n"
    steps.write_bytes(steps.read_bytes().replace(b"\r\n\r\n\r\ndef", f"\r\n{strategy}\r\n\r\ndef".encode()))
    wanted = converted(folder / "train.py")
    assert (wanted.status, wanted.path) == (Status.REFUSED, steps.as_posix())
    document = opened(puller, folder / "train.py")
    action = await whole(puller, document)
    assert action.disabled is not None
    assert action.disabled.reason.startswith("steps.py, line ")
    assert action.disabled.reason.endswith(wanted.reason)
    answer = await puller.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
    assert (answer["edit"], answer["reason"]) == (None, action.disabled.reason)
    # In the file itself, the position in the document gives the place.
    action = await whole(puller, opened(puller, steps))
    assert action.disabled is not None
    assert action.disabled.reason == wanted.reason


def bare(texts: dict[str, str]) -> dict[str, str]:
    """Texts without a byte order mark: the client sends a document's text, here the whole file."""
    return {uri: text.removeprefix(BOM) for uri, text in texts.items()}


@pytest.mark.parametrize("program", SLOWLY)
@pytest.mark.in_turns(2)
async def test_every_file_of_a_program_is_converted_as_convert_does(
    puller: Session, tmp_path: Path, program: ProgramFolder
) -> None:
    """The whole program from each of its files, with one of its start files, and a statement of each file."""
    (tmp_path / "trainshift.toml").touch()
    for name, content in program.before.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    wanted = {start: converted(tmp_path / start) for start in program.starts}
    for name in [*program.starts, *program.after.keys() - {*program.starts}]:
        if not name.endswith(".py"):
            continue
        document = opened(puller, tmp_path / name)
        texts = bare(await made(puller, await whole(puller, document)))
        starts = [name] if name in wanted else program.starts
        (start, *_) = (each for each in starts if texts == changed(wanted[each]))
        own = told(wanted[start], tmp_path / name, tmp_path / start)
        assert hints(await puller.pulled(document)) == own, name
        for line in [line for _, line in own][-1:]:
            menu = await puller.actions(document, line)
            (action,) = (each for each in menu if each.kind == STATEMENT and each.data)
            at = converted(tmp_path / start, at=(tmp_path / name, line))
            assert bare(await made(puller, action)) == changed(at), (name, line)
        puller.close(document)
        del puller.documents[document.uri]


# Changes


async def test_unsaved_changes_of_another_file_count(puller: Session, folder: Path) -> None:
    train, model = opened(puller, folder / "train.py"), opened(puller, folder / "model.py")
    await whole(puller, train)
    puller.edit(model, "    print(", "    lr = rate\n    print(")
    puller.edit(model, "Adam(rate)", "RMSprop(rate * 0.5)")
    texts = await made(puller, await whole(puller, train))
    assert texts == changed(converted(folder / "train.py", unsaved={folder / "model.py": model.text}))
    assert "RMSprop(rate * 0.5 * hvd.size())" in texts[model.uri]


async def test_an_action_is_refused_when_another_file_has_changed(puller: Session, folder: Path) -> None:
    train, model = opened(puller, folder / "train.py"), opened(puller, folder / "model.py")
    action = await whole(puller, train)
    puller.edit(model, "Adam(rate)", "SGD(rate)")
    assert "a file of its program" in await refused(puller, action)
    assert (await made(puller, await whole(puller, train)))[model.uri] != text_of(folder / "model.py")


async def test_an_action_is_refused_when_a_closed_file_has_changed_unnoticed(
    puller: Session, folder: Path
) -> None:
    """Not every client watches files."""
    train = opened(puller, folder / "train.py")
    action = await whole(puller, train)
    model = folder / "model.py"
    model.write_text(text_of(model).replace("Adam(rate)", "SGD(rate)"), encoding="utf-8")
    await refused(puller, action)
    assert await made(puller, await whole(puller, train)) == changed(converted(folder / "train.py"))
    model.unlink()
    await refused(puller, await whole(puller, train))
    answer = await puller.run("trainshift.makeDistributed", {"uri": train.uri, "apply": False})
    assert answer["status"] == converted(folder / "train.py").status.value


async def test_a_change_on_the_disk_is_taken_in(puller: Session, folder: Path) -> None:
    train, model = opened(puller, folder / "train.py"), folder / "model.py"
    await whole(puller, train)
    model.write_text(text_of(model).replace("Adam(rate)", "Adagrad(rate)"), encoding="utf-8")
    puller.watched(model, CHANGED)
    texts = await made(puller, await whole(puller, train))
    assert texts == changed(converted(folder / "train.py"))
    assert "Adagrad(rate * hvd.size())" in texts[model.as_uri()]


async def test_a_file_that_comes_back_belongs_to_the_program_again(editor: Session, folder: Path) -> None:
    steps = folder / "steps.py"
    content = steps.read_bytes()
    train = opened(editor, folder / "train.py")
    before = told(converted(folder / "train.py"), folder / "train.py", folder / "train.py")
    await editor.shown(train, lambda found: hints(found) == before)
    steps.unlink()
    editor.watched(steps, DELETED)
    without = converted(folder / "train.py")
    assert without.status is not Status.CONVERTED
    await editor.shown(train, lambda found: not hints(found))
    steps.write_bytes(content)
    editor.watched(steps, CREATED)
    await editor.shown(train, lambda found: hints(found) == before)


async def test_a_file_that_is_renamed_is_followed(editor: Session, folder: Path) -> None:
    steps, renamed = folder / "steps.py", folder / "stepping.py"
    train = opened(editor, folder / "train.py")
    await editor.shown(train, lambda found: bool(hints(found)))
    steps.rename(renamed)
    editor.watched(steps, DELETED)
    editor.watched(renamed, CREATED)
    await editor.shown(train, lambda found: not hints(found))
    editor.edit(train, "from steps import", "from stepping import")
    await editor.shown(train, lambda found: bool(hints(found)))
    document = opened(editor, renamed)
    texts = await made(editor, await whole(editor, document))
    assert texts == changed(converted(folder / "train.py", unsaved={folder / "train.py": train.text}))
    assert renamed.as_uri() in texts


async def test_an_import_that_is_added_makes_a_module_part_of_the_program(
    editor: Session, folder: Path
) -> None:
    """The module is open, and only its program changes."""
    extra = folder / "extra.py"
    extra.write_text("import tensorflow as tf\n\n\ndef tell(loss):\n    print(loss)\n", encoding="utf-8")
    module, train = opened(editor, extra), opened(editor, folder / "train.py")
    await editor.shown(module, lambda found: not hints(found))
    editor.edit(train, "from model import build\n", "from extra import tell\nfrom model import build\n")
    editor.edit(train, "print(note, epoch, float(loss))", "tell(loss)")
    await editor.shown(module, lambda found: ("HV07", 4) in hints(found))
    action = await whole(editor, module)
    assert action.title == "Trainshift: Make distributed (train.py and 3 more files)"
    editor.edit(train, "tell(loss)", "print(loss)")
    editor.edit(train, "from extra import tell\n", "")
    await editor.shown(module, lambda found: not hints(found))


async def test_saving_and_closing_what_reads_the_same_changes_nothing(puller: Session, folder: Path) -> None:
    train, model = opened(puller, folder / "train.py"), opened(puller, folder / "model.py")
    action = await whole(puller, train)
    puller.save(model)
    puller.watched(folder / "model.py", CHANGED)
    puller.close(model)
    del puller.documents[model.uri]
    assert await made(puller, action) == changed(converted(folder / "train.py"))


# Programs of other shapes


async def test_what_another_program_wants_differently_is_refused(puller: Session, folder: Path) -> None:
    """The optimizer belongs to a tape in one program and to a fit in the other, as long as both exist."""
    fits, trains = folder / "fits.py", folder / "train.py"
    fits.write_text(FITS, encoding="utf-8")
    wanted = converted(fits)
    assert wanted.status is Status.REFUSED
    assert "train.py" in wanted.reason
    document = opened(puller, fits)
    action = await whole(puller, document)
    assert action.disabled is not None
    assert action.disabled.reason == f"model.py, line {(wanted.position or (0, 0))[0]}: {wanted.reason}"
    trains.rename(folder / "aside.txt")
    puller.watched(trains, DELETED)
    assert await made(puller, await whole(puller, document)) == changed(converted(fits))
    # The other file changes too, in a document that is not saved yet.
    text = text_of(folder / "aside.txt")
    other = puller.open(text, trains.as_uri())
    action = await whole(puller, document)
    assert action.disabled is not None
    puller.edit(other, "from model import build", "from steps import build")
    assert await made(puller, await whole(puller, document)) == changed(
        converted(fits, unsaved={trains: other.text})
    )


async def test_what_two_programs_want_alike_is_offered_in_what_they_share(
    puller: Session, folder: Path
) -> None:
    (folder / "zweite.py").write_text(OTHER_START, encoding="utf-8")
    document = opened(puller, folder / "steps.py")
    menu = await puller.actions(document, document.line("with tf.GradientTape()"))
    (action,) = (each for each in menu if each.kind == STATEMENT)
    line = document.line("with tf.GradientTape()")
    assert await made(puller, action) == changed(
        converted(folder / "train.py", at=(folder / "steps.py", line))
    )
    assert (await whole(puller, document)).title == "Trainshift: Make distributed (train.py and 2 more files)"
    second = opened(puller, folder / "zweite.py")
    assert await made(puller, await whole(puller, second)) == changed(converted(folder / "zweite.py"))


async def test_files_that_import_each_other_are_one_program(puller: Session, tmp_path: Path) -> None:
    for name, text in CYCLE.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    wanted = changed(converted(tmp_path / "train.py"))
    assert len(wanted) == 2
    for name in CYCLE:
        assert await made(puller, await whole(puller, opened(puller, tmp_path / name))) == wanted


async def test_a_module_that_is_no_python_for_a_while_does_no_harm(editor: Session, folder: Path) -> None:
    train, model = opened(editor, folder / "train.py"), opened(editor, folder / "model.py")
    before = told(converted(folder / "train.py"), folder / "train.py", folder / "train.py")
    await editor.shown(train, lambda found: hints(found) == before)
    editor.edit(model, "def build(", "def build((")
    await editor.shown(model, lambda found: "TS00" in [each.code for each in found])
    broken = converted(folder / "train.py", unsaved={folder / "model.py": model.text})
    answer = await editor.run("trainshift.makeDistributed", {"uri": train.uri, "apply": False})
    assert (answer["status"], answer["edit"]) == ("refused", None)
    assert broken.status is Status.REFUSED
    assert answer["reason"] == f"model.py, line {model.line('def') + 1}: {broken.reason}"
    answer = await editor.run("trainshift.makeDistributed", {"uri": model.uri, "apply": False})
    assert (answer["status"], answer["edit"]) == ("refused", None)
    editor.edit(model, "def build((", "def build(")
    await editor.shown(train, lambda found: hints(found) == before)
    assert await made(editor, await whole(editor, train)) == changed(converted(folder / "train.py"))


async def test_a_closed_file_with_a_byte_order_mark_is_edited_behind_it(
    puller: Session, folder: Path
) -> None:
    model = folder / "model.py"
    model.write_bytes(b"\xef\xbb\xbfimport tensorflow as tf\n" + model.read_bytes())
    texts = await made(puller, await whole(puller, opened(puller, folder / "train.py")))
    assert texts == changed(converted(folder / "train.py"))
    assert texts[model.as_uri()].startswith("import tensorflow as tf\n")


async def test_a_document_that_is_no_file_stands_alone(puller: Session, folder: Path) -> None:
    document = puller.open(text_of(folder / "model.py"))
    (action,) = await puller.actions(document, 0, only=[FILE])
    assert action.disabled is not None


@pytest.mark.parametrize(
    ("key", "value"), [("round", "x"), ("round", None), ("version", -1), ("span", [1]), ("do", "nothing")]
)
async def test_nonsense_about_programs_is_answered_with_an_error(
    puller: Session, folder: Path, key: str, value: object
) -> None:
    document = opened(puller, folder / "train.py")
    data = plain_json((await whole(puller, document)).data)
    assert isinstance(data, dict)
    with pytest.raises(JsonRpcException):
        await puller.resolve(types.CodeAction("x", kind=FILE, data={**data, key: value}))
    assert await made(puller, await whole(puller, document)) == changed(converted(folder / "train.py"))
