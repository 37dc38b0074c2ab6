"""The workspace: files that import each other, files that are not open, and reports on all of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.cli.notebooks import TRAINER, USING, notebook
from e2e.lsp.commands import run
from e2e.lsp.session import PULLING, Document, Session, able, serve

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

MAIN = """\
import tensorflow as tf
from pretrain import pretrain

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
pretrain(model)
model.fit(x, y, epochs=5)
"""
TRAINS = "def pretrain(model):\n    note = '🎉'; model.fit(unlabelled, unlabelled, epochs=1)\n"
IDLE = "def pretrain(model):\n    return model\n"
ALIAS = "import tensorflow as tf\nAdam = tf.keras.optimizers.Adam\nopt = Adam()\n"
REQUEST_CANCELLED = -32800
CREATED, CHANGED, DELETED = (
    types.FileChangeType.Created,
    types.FileChangeType.Changed,
    types.FileChangeType.Deleted,
)


def is_spread(found: list[types.Diagnostic]) -> bool:
    """Return whether the program is said to train in several files."""
    return "TL01" in {each.code for each in found}


def is_not_spread(found: list[types.Diagnostic]) -> bool:
    """Return whether it is not."""
    return not is_spread(found)


def write(path: Path, text: str) -> Path:
    """A file on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def opened(session: Session, path: Path) -> Document:
    """A file of the disk, opened."""
    return session.open(path.read_bytes().decode("utf-8"), path.as_uri())


# Files that import each other


async def test_an_imported_file_is_followed_on_the_disk(editor: Session, tmp_path: Path) -> None:
    helper = tmp_path / "pretrain.py"
    main = opened(editor, write(tmp_path / "main.py", MAIN))
    await editor.shown(main, is_not_spread)
    editor.watched(write(helper, TRAINS), CREATED)
    found = await editor.shown(main, is_spread)
    (related,) = next(each for each in found if each.code == "TL01").related_information or ()
    assert related.location.uri == helper.as_uri()
    assert related.message == "model.fit(...) trains here"
    # The emoji before it is two units long, in another file too.
    start = TRAINS.splitlines()[1].index("model.fit") + 1
    assert related.location.range.start == types.Position(1, start)
    editor.watched(write(helper, IDLE), CHANGED)
    await editor.shown(main, is_not_spread)
    editor.watched(write(helper, TRAINS), CHANGED)
    await editor.shown(main, is_spread)
    helper.unlink()
    editor.watched(helper, DELETED)
    await editor.shown(main, is_not_spread)


async def test_an_imported_file_is_followed_while_it_is_edited(editor: Session, tmp_path: Path) -> None:
    helper = write(tmp_path / "pretrain.py", IDLE)
    main = opened(editor, write(tmp_path / "main.py", MAIN))
    await editor.shown(main, is_not_spread)
    buffer = opened(editor, helper)
    editor.edit(buffer, "return model", "model.fit(1, 2)")
    await editor.shown(main, is_spread)
    # The text of the buffer counts, not the file on disk.
    editor.watched(write(helper, IDLE), CHANGED)
    editor.edit(main, "epochs=5", "epochs=6")
    await editor.shown(main, is_spread)
    editor.close(buffer)
    await editor.shown(main, is_not_spread)


async def test_a_new_file_that_is_not_on_the_disk_yet_is_followed(editor: Session, tmp_path: Path) -> None:
    main = opened(editor, write(tmp_path / "main.py", MAIN))
    await editor.shown(main, is_not_spread)
    buffer = editor.open(TRAINS, (tmp_path / "pretrain.py").as_uri())
    await editor.shown(main, is_spread)
    editor.close(buffer)
    await editor.shown(main, is_not_spread)


@pytest.mark.slow
async def test_a_client_that_does_not_watch_tells_by_saving(tmp_path: Path) -> None:
    capabilities = able({"workspace.didChangeWatchedFiles": None})
    async with serve(capabilities, folders=[tmp_path]) as session:
        assert types.WORKSPACE_DID_CHANGE_WATCHED_FILES not in {each.method for each in session.registrations}
        helper = opened(session, write(tmp_path / "pretrain.py", IDLE))
        main = opened(session, write(tmp_path / "main.py", MAIN))
        await session.shown(main, is_not_spread)
        session.close(helper)
        again = opened(session, write(tmp_path / "pretrain.py", TRAINS))
        session.save(again)
        await session.shown(main, is_spread)


@pytest.mark.slow
async def test_one_who_pulls_is_told_to_ask_again_for_the_other_file(tmp_path: Path) -> None:
    async with serve(able({"textDocument.diagnostic": {}}), folders=[tmp_path]) as session:
        helper = opened(session, write(tmp_path / "pretrain.py", IDLE))
        main = opened(session, write(tmp_path / "main.py", MAIN))
        while not {"TL01"}.isdisjoint({each.code for each in await session.pulled(main)}):
            await session.until("a refresh", lambda: session.refreshes)
        session.refreshes.clear()
        session.edit(helper, "return model", "model.fit(1, 2)")
        while not is_spread(await session.pulled(main)):
            await session.until("a refresh", lambda: types.WORKSPACE_DIAGNOSTIC_REFRESH in session.refreshes)
            session.refreshes.clear()


async def test_an_untitled_document_stands_alone(puller: Session) -> None:
    document = puller.open(MAIN)
    assert not is_spread(await puller.pulled(document))
    other = puller.open(ALIAS, "vscode-vfs://github/somebody/repository/train.py")
    assert [each.code for each in await puller.pulled(other) if each.code == "TF03"] == ["TF03"]


# Reports on all files


async def workspace(
    session: Session, known: dict[str, str] | None = None, token: Any = None
) -> dict[str, Any]:
    """The report of each file, by its URI."""
    previous = [types.PreviousResultId(uri, value) for uri, value in (known or {}).items()]
    params = types.WorkspaceDiagnosticParams(previous, work_done_token=token)
    answer = await session.ask(session.client.workspace_diagnostic_async(params))
    found = {each.uri: each for each in answer.items}
    assert len(found) == len(answer.items)
    return found


async def test_all_files_of_the_folders_are_reported(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one / "alias.py", ALIAS)
    write(one / "main.py", MAIN)
    helper = write(one / "pretrain.py", TRAINS)
    write(one / "fine.py", "x = 1\n")
    write(one / ".venv" / "pyvenv.cfg", "")
    write(one / ".venv" / "alias.py", ALIAS)
    write(one / "latin.py", "x = 1")
    write(two / "deep" / "broken.py", "def f(:\n")
    write(tmp_path / "outside.py", ALIAS)
    async with serve(PULLING, folders=[one, two]) as session:
        found = await workspace(session)
        shown = {
            Path(uri.removeprefix("file://")).name: [each.code for each in report.items]
            for uri, report in found.items()
        }
        assert shown["alias.py"] == ["TF03"]
        assert "TL01" in shown["main.py"]
        assert shown["broken.py"] == ["TS00"]
        assert shown.keys() == {"alias.py", "main.py", "broken.py"}
        assert all(each.version is None for each in found.values())
        # Unchanged results are not sent twice.
        known = {uri: each.result_id for uri, each in found.items()}
        again = await workspace(session, known)
        assert {uri: each.kind for uri, each in again.items()} == dict.fromkeys(known, "unchanged")
        # One file changes, which changes the findings of its importers.
        session.watched(write(one / "alias.py", ALIAS.replace("Adam", "SGD")), CHANGED)
        session.watched(write(helper, IDLE), CHANGED)
        again = await workspace(session, known)
        changed = {uri for uri, each in again.items() if each.kind == "full"}
        assert changed == {(one / "alias.py").as_uri(), (one / "main.py").as_uri()}
        assert not is_spread(list(again[(one / "main.py").as_uri()].items))
        # An open file is reported with the editor's text.
        document = session.open("x = 1\n", (one / "alias.py").as_uri())
        again = await workspace(session, known)
        assert (again[document.uri].version, list(again[document.uri].items)) == (1, [])
        # A deleted file has no findings.
        (two / "deep" / "broken.py").unlink()
        session.watched(two / "deep" / "broken.py", DELETED)
        again = await workspace(session, known)
        gone = again.get((two / "deep" / "broken.py").as_uri())
        assert gone is not None
        assert list(gone.items) == []


@pytest.mark.slow
async def test_reports_are_those_of_check(tmp_path: Path) -> None:
    write(tmp_path / "alias.py", "\ufeff" + ALIAS.replace("\n", "\r\n"))
    write(tmp_path / "main.py", MAIN)
    write(tmp_path / "pretrain.py", TRAINS)
    async with serve(PULLING, folders=[tmp_path]) as session:
        found = await workspace(session)
    told = {
        (Path(uri).name, each.code, each.range.start.line + 1, each.range.start.character + 1)
        for uri, report in found.items()
        for each in report.items
    }
    wanted = {
        (Path(file["path"]).name, each["code"], each["line"], each["column"])
        for file in json.loads(run("check", "--format", "json", tmp_path))["files"]
        for each in file["diagnostics"]
    }
    assert told == wanted
    assert {code for _, code, _, _ in told} == {"TF03", "TL01"}


async def test_a_notebook_is_scanned_with_its_imports_and_places_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without results that check has kept."""
    write(tmp_path / "pyproject.toml", "")
    write(tmp_path / "trainer.py", TRAINER)
    book = write(tmp_path / "use.ipynb", notebook([*USING, ("code", "'🎉'; relu = tf.nn.relu")]))
    lines = book.read_text(encoding="utf-8").splitlines()

    async def found() -> list[tuple[str, str, list[str]]]:
        async with serve(PULLING, folders=[tmp_path]) as session:
            items = (await workspace(session))[book.as_uri()].items
        starts = [(lines[each.range.start.line], each.range.start.character) for each in items]
        return [
            (str(each.code), line[at:][:12], [other.location.uri for other in each.related_information or ()])
            for each, (line, at) in zip(items, starts, strict=True)
        ]

    wanted = [
        ("TF05", 'data)"', [(tmp_path / "trainer.py").as_uri()]),
        ("TF03", "elu = tf.nn.", []),  # The emoji takes two units of UTF-16.
    ]
    assert await found() == wanted
    monkeypatch.chdir(tmp_path)
    run("check", ".")
    assert await found() == wanted


async def test_a_scan_takes_what_check_has_kept_while_the_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "pyproject.toml", "")
    alias = write(tmp_path / "alias.py", ALIAS)
    other = write(tmp_path / "other.py", f"from alias import opt\n{ALIAS}")
    monkeypatch.chdir(tmp_path)
    run("check", ".")
    kept = tmp_path / ".trainshift_cache" / "verdicts.json"
    kept.write_text(kept.read_text().replace("Adam", "KEPT"))

    async def is_kept(session: Session, path: Path) -> bool:
        return "KEPT" in (await workspace(session))[path.as_uri()].items[0].message

    async with serve(PULLING, folders=[tmp_path]) as session:
        assert await is_kept(session, alias)
        assert await is_kept(session, other)
        # Imported files are evidence for a file, too.
        write(alias, f"{ALIAS}\n")
        session.watched(alias, CHANGED)
        assert not await is_kept(session, alias)
        assert not await is_kept(session, other)


@pytest.mark.slow
async def test_a_long_scan_tells_how_far_it_is(tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path / f"file{number}.py", "x = 1\n")
    write(tmp_path / "alias.py", ALIAS)
    async with serve(PULLING, folders=[tmp_path]) as session:
        assert set(await workspace(session)) == {(tmp_path / "alias.py").as_uri()}
        kinds = [value["kind"] for _, value in session.progress]
        assert kinds[:2] == ["create", "begin"]
        assert kinds[-1] == "end"
        assert set(kinds[2:-1]) == {"report"}
        percentages = [value["percentage"] for _, value in session.progress if value["kind"] == "report"]
        assert percentages == sorted(percentages)
        assert percentages[-1] == 100
        # Only the first scan takes long.
        session.progress.clear()
        await workspace(session)
        assert session.progress == []


@pytest.mark.slow
async def test_a_client_may_bring_the_token_of_its_progress(tmp_path: Path) -> None:
    for number in range(60):
        write(tmp_path / f"file{number}.py", "x = 1\n")
    async with serve(able({"window.workDoneProgress": None}, PULLING), folders=[tmp_path]) as session:
        await workspace(session, token="mine")
        assert {token for token, _ in session.progress} == {"mine"}
        assert session.progress[0][1]["kind"] == "begin"
        assert session.progress[-1][1]["kind"] == "end"


@pytest.mark.slow
async def test_a_scan_can_be_cancelled(tmp_path: Path) -> None:
    for number in range(400):
        write(tmp_path / f"file{number}.py", ALIAS + f"x = {number}\n" * 50)
    async with serve(PULLING, folders=[tmp_path]) as session:
        params = types.WorkspaceDiagnosticParams([])
        # By the button of its progress bar.
        first = asyncio.ensure_future(session.client.workspace_diagnostic_async(params))
        await session.until(
            "it has begun", lambda: any(each["kind"] == "report" for _, each in session.progress)
        )
        token = session.progress[0][0]
        session.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        with pytest.raises(JsonRpcException) as refusal:
            await session.ask(first)
        assert refusal.value.code == REQUEST_CANCELLED
        await session.until("the bar is gone", lambda: session.progress[-1][1]["kind"] == "end")
        # By the number of the request.
        sent = session.client.protocol.send_request_async(  # type: ignore[no-untyped-call]
            types.WORKSPACE_DIAGNOSTIC, params, "scan"
        )
        second = asyncio.ensure_future(sent)
        document = session.open(ALIAS)
        assert {each.code for each in await session.pulled(document)} == {"TF03"}
        session.client.cancel_request(types.CancelParams("scan"))
        with pytest.raises(JsonRpcException) as refusal:
            await session.ask(second)
        assert refusal.value.code == REQUEST_CANCELLED
        # The server still works as before.
        session.edit(document, "Adam = tf", "Best = tf")
        assert (await session.pulled(document))[0].range.start.line == 1


# Requests


async def test_a_request_is_cancelled(puller: Session) -> None:
    """A request that waits for a long check is answered at once when it is cancelled, and only then."""
    long = puller.open(ALIAS + "".join(f"print(tf.constant({number}))\n" for number in range(4000)))
    params = types.DocumentDiagnosticParams(long.identifier)
    sent = puller.client.protocol.send_request_async(  # type: ignore[no-untyped-call]
        types.TEXT_DOCUMENT_DIAGNOSTIC, params, "pull"
    )
    waiting = asyncio.ensure_future(sent)
    assert await puller.lenses(Document("untitled:nothing", "")) == []  # It waits for the check now.
    puller.client.cancel_request(types.CancelParams("pull"))
    with pytest.raises(JsonRpcException) as refusal:
        await puller.ask(waiting)
    assert refusal.value.code == REQUEST_CANCELLED
    puller.close(long)


async def test_a_pull_that_is_overtaken_is_to_be_asked_again(puller: Session) -> None:
    long = puller.open(ALIAS + "".join(f"print(tf.constant({number}))\n" for number in range(4000)))
    params = types.DocumentDiagnosticParams(long.identifier)
    waiting = asyncio.ensure_future(puller.client.text_document_diagnostic_async(params))
    assert await puller.lenses(Document("untitled:nothing", "")) == []  # It waits for the check now.
    puller.edit(long, "Adam = tf", "Best = tf")
    with pytest.raises(JsonRpcException) as refusal:
        await puller.ask(waiting)
    assert (refusal.value.code, refusal.value.data) == (-32802, {"retriggerRequest": True})
    puller.close(long)
