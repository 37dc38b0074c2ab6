"""Settings: of the editor, of its folders, and of the project, which take precedence."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from e2e.lsp.commands import SCRIPTS, converted, run, text_of
from e2e.lsp.session import PULLING, Document, Session, able, serve
from trainshift.engine.versions.demands import NAMES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

TEXT = """\
import os
x = 1
import tensorflow as tf
Adam = tf.keras.optimizers.Adam
opt = Adam()
"""
LOOP = """\
import tensorflow as tf
opt = tf.keras.optimizers.Adam(1e-3)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
for x in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
"""
FIT = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.ones([8, 1]), tf.ones([8, 1]), epochs=8)
"""
BOTH = {"TF01", "TF03"}
# A client that cannot be asked for its settings.
TELLING = able({"workspace.configuration": None, "workspace.didChangeConfiguration": None})
ERROR = types.DiagnosticSeverity.Error
INFORMATION = types.DiagnosticSeverity.Information


def project(path: Path, table: str = "") -> Path:
    """A directory that is a project with such settings."""
    path.mkdir(parents=True)
    (path / "pyproject.toml").write_text(f"[tool.trainshift]\n{table}\n" if table else "", encoding="utf-8")
    return path


def script(session: Session, folder: Path, text: str = TEXT, name: str = "train.py") -> Document:
    """A script in a directory, opened."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return session.open(text, (folder / name).as_uri())


KERAS_2 = 'keras = "2"\n'  # Whatever the project requires.


async def shown(session: Session, document: Document, *codes: str, **loud: types.DiagnosticSeverity) -> None:
    """Wait until exactly these codes are shown, some with these severities."""

    def fits(found: list[types.Diagnostic]) -> bool:
        known = {str(each.code): each.severity for each in found}
        return known.keys() == {*codes, *loud} and loud.items() <= known.items()

    await session.shown(document, fits)


def tell(session: Session, section: object) -> None:
    """Send the settings of a client that cannot be asked."""
    session.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(section))


# Settings of the editor


async def test_each_folder_has_settings_of_its_own(tmp_path: Path) -> None:
    quiet, loud, inner = tmp_path / "quiet", tmp_path / "loud", tmp_path / "loud" / "inner"
    for each in (quiet, loud, inner):
        project(each)
    settings = {
        "": {"ignore": ["TF01"]},
        quiet.as_uri(): {"ignore": ["TF03"]},
        loud.as_uri(): {"severity": {"TF03": "error"}},
        inner.as_uri(): {"select": ["TF03"]},
    }
    async with serve(folders=[quiet, loud, inner], settings=settings) as session:
        await shown(session, script(session, quiet), "TF01")
        await shown(session, script(session, loud), "TF01", TF03=ERROR)
        await shown(session, script(session, inner), TF03=INFORMATION)
        # A document outside all folders has no folder's settings.
        outside = script(session, tmp_path / "else")
        await shown(session, outside, "TF03")
        untitled = session.open(TEXT)
        await shown(session, untitled, "TF03")
        # They change for one folder, then for documents outside all folders.
        session.configure({"ignore": ["TF"]}, loud.as_uri())
        await session.until(
            "a warning goes", lambda: session.documents[(loud / "train.py").as_uri()].shown == []
        )
        session.configure({"select": ["TF01"]})
        await shown(session, untitled, "TF01")
        await shown(session, outside, "TF01")
        # A folder is removed, and its settings with it.
        event = types.WorkspaceFoldersChangeEvent(
            added=[], removed=[types.WorkspaceFolder(quiet.as_uri(), "quiet")]
        )
        session.client.set_configuration({"ignore": ["TF01"]}, section="trainshift")
        session.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
        await shown(session, session.documents[(quiet / "train.py").as_uri()], "TF03")


async def test_changes_of_settings_and_files_are_asked_for(editor: Session) -> None:
    await editor.until("the server has registered", lambda: len(editor.registrations) >= 2)
    methods = {each.method: each.register_options for each in editor.registrations}
    assert methods.keys() == {
        types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
    }
    watched = str(methods[types.WORKSPACE_DID_CHANGE_WATCHED_FILES])
    declaring = (f"**/{name}" for name in NAMES if not name.endswith((".py", ".lock")))
    for pattern in ("**/*.py", "**/*.lock", "**/trainshift.toml", *declaring):
        assert f"'{pattern}'" in watched


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
async def test_a_client_that_is_not_asked_gives_its_settings_at_the_start(nested: bool) -> None:
    settings = {"ignore": ["TF01"], "severity": {"TF03": "error"}}
    async with serve(TELLING, options={"settings": settings} if nested else settings) as session:
        document = session.open(TEXT)
        await shown(session, document, TF03=ERROR)
        tell(session, {"trainshift": {"ignore": ["TF03"]}})
        await shown(session, document, "TF01")
        tell(session, {"ignore": ["TF"]})
        await shown(session, document)
        tell(session, {"trainshift": {}})
        await shown(session, document, *BOTH)
        assert session.configured == 0
        assert session.messages == []


@pytest.mark.slow
async def test_hints_can_be_switched_off_alone() -> None:
    async with serve(TELLING) as session:
        document = session.open(LOOP + "Adam = tf.keras.optimizers.Adam\n")
        await session.shown(document, lambda found: {"TF03", "HV04"} <= {each.code for each in found})
        tell(session, {"trainshift": {"hints": False}})
        await shown(session, document, "TF03")
        menu = await session.actions(document, 4)
        assert any(each.title.startswith("Trainshift: Make distributed: average") for each in menu)
        tell(session, {"trainshift": {"enable": False}})
        await shown(session, document)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        pytest.param({"ignore": ["TF99"]}, "TF99", marks=pytest.mark.slow),
        pytest.param({"severity": {"TF03": "loud"}}, "loud", marks=pytest.mark.slow),
        pytest.param({"hints": "no"}, "hints", marks=pytest.mark.slow),
        ({"ingore": ["TF03"]}, "ingore"),
        pytest.param(["TF03"], "object", marks=pytest.mark.slow),
        pytest.param({"exclude": ["!"]}, "gitignore", marks=pytest.mark.slow),
    ],
    ids=str,
)
async def test_settings_that_cannot_be_used_are_told_once(section: object, told: str) -> None:
    async with serve(TELLING, options={"settings": section}) as session:
        document = session.open(TEXT)
        await shown(session, document, *BOTH)
        for _ in range(3):
            tell(session, {"trainshift": {"enable": False}})
            tell(session, {"trainshift": section})
        await shown(session, session.open(TEXT), *BOTH)
        assert len(session.messages) == (1 if told else 0)
        assert all(told in each.message for each in session.messages)


@pytest.mark.slow
async def test_what_is_right_holds_beside_what_is_wrong() -> None:
    async with serve(
        TELLING, options={"ignore": ["TF03"], "select": 7, "interpreter": ["python3"]}
    ) as session:
        await shown(session, session.open(TEXT), "TF01")
        (message,) = session.messages
        assert message.type == types.MessageType.Warning
        assert "select" in message.message


# Settings of the project


async def test_the_project_decides_key_by_key(tmp_path: Path) -> None:
    folder = project(tmp_path / "here", 'ignore = ["TF01"]')
    settings = {"": {"ignore": ["TF03"], "severity": {"TF03": "error"}}}
    async with serve(folders=[folder], settings=settings) as session:
        document = script(session, folder)
        await shown(session, document, TF03=ERROR)
        (folder / "pyproject.toml").write_text(
            '[tool.trainshift.severity]\nTF01 = "hint"\n', encoding="utf-8"
        )
        session.watched(folder / "pyproject.toml", types.FileChangeType.Changed)
        await shown(session, document, TF01=types.DiagnosticSeverity.Hint)
        (folder / "trainshift.toml").write_text('ignore = ["TF03", "TF01"]\n', encoding="utf-8")
        session.watched(folder / "trainshift.toml", types.FileChangeType.Created)
        await shown(session, document)
        (folder / "trainshift.toml").unlink()
        session.watched(folder / "trainshift.toml", types.FileChangeType.Deleted)
        await shown(session, document, "TF01")


@pytest.mark.slow
async def test_a_project_file_that_cannot_be_used_is_told_once(tmp_path: Path) -> None:
    folder = project(tmp_path / "here", "ignore = 7")
    async with serve(folders=[folder]) as session:
        await shown(session, script(session, folder), *BOTH)
        await shown(session, script(session, folder, name="other.py"), *BOTH)
        session.watched(folder / "pyproject.toml", types.FileChangeType.Changed)
        document = script(session, folder, name="third.py")
        await shown(session, document, *BOTH)
        (message,) = session.messages
        assert "pyproject.toml" in message.message
        assert "ignore" in message.message
        (folder / "pyproject.toml").write_text('[tool.trainshift]\nignore = ["TF03"]\n', encoding="utf-8")
        session.watched(folder / "pyproject.toml", types.FileChangeType.Changed)
        await shown(session, document, "TF01")


@pytest.mark.slow
async def test_a_file_that_the_project_leaves_out_is_left_out(tmp_path: Path) -> None:
    folder = project(
        tmp_path / "here", 'exclude = ["old/"]\n[tool.trainshift.per-file-ignores]\n"new/*" = ["TF01"]'
    )
    async with serve(PULLING, folders=[folder]) as session:
        assert await session.pulled(script(session, folder, name="old/train.py")) == []
        assert {each.code for each in await session.pulled(script(session, folder, name="new/train.py"))} == {
            "TF03"
        }


@pytest.mark.slow
async def test_patterns_of_the_editor_are_those_of_its_folder(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    settings = {folder.as_uri(): {"exclude": ["/old/"], "perFileIgnores": {"new/*.py": ["TF01"]}}}
    async with serve(PULLING, folders=[folder], settings=settings) as session:
        # The very first answer follows these settings.
        assert await session.pulled(script(session, folder, name="old/first.py")) == []
        assert {each.code for each in await session.pulled(script(session, folder))} == BOTH
        assert {each.code for each in await session.pulled(script(session, folder, name="new/a.py"))} == {
            "TF03"
        }
        assert await session.pulled(script(session, folder, name="old/a.py")) == []
        assert {
            each.code for each in await session.pulled(script(session, folder, name="x/old/a.py"))
        } == BOTH


# Versions


async def test_codes_link_to_the_site_that_a_setting_names(tmp_path: Path) -> None:
    """Findings and hints link to the site; without the setting, to the bundled pages."""
    folder = project(tmp_path / "here")
    site = "https://docs.example.org/ts"
    async with serve(folders=[folder]) as session:
        document = script(session, folder, LOOP.replace("opt = ", "Adam = tf.keras.optimizers.Adam\nopt = "))

        def links(found: list[types.Diagnostic]) -> dict[object, str]:
            return {each.code: each.code_description.href for each in found if each.code_description}

        found = await session.shown(document, lambda found: {"TF03", "HV04"} <= links(found).keys())
        assert all(link.startswith("file:///") for link in links(found).values())
        session.configure({"docsUrl": site})
        await session.shown(
            document,
            lambda found: (
                {"TF03", "HV04"} <= links(found).keys()
                and all(link == f"{site}/rules/{code}.html" for code, link in links(found).items())
            ),
        )
        assert f"({site}/rules/TF03.html)" in await session.hover(document, document.text.index("Adam"))


async def test_syntax_errors_are_shown_unless_another_tool_shows_them(tmp_path: Path) -> None:
    """A severity of their own overrides that, and broken code is never converted."""
    folder = project(tmp_path / "here")
    async with serve(folders=[folder]) as session:
        document = script(session, folder, "import tensorflow as tf\nprint((\n")
        await shown(session, document, "TS00")
        for settings, is_shown in (
            ({"syntaxErrors": False}, False),
            ({"syntaxErrors": True}, True),
            ({"severity": {"TS": "off"}}, False),
            ({"syntaxErrors": False, "severity": {"TS00": "error"}}, True),
            ({"syntaxErrors": False, "severity": {"TF": "error"}}, False),
        ):
            session.configure(settings)
            await shown(session, document, *(["TS00"] if is_shown else []))
            answer = await session.run("trainshift.makeDistributed", {"uri": document.uri})
            assert (answer["applied"], answer["status"]) == (False, "refused")


async def test_a_script_is_written_for_the_keras_that_its_project_asks_for(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    (folder / "requirements.txt").write_text("tensorflow==2.16.1\n", encoding="utf-8")
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, text_of(SCRIPTS / "mnist_tape" / "before.py"))
        assert "TS04" not in {each.code for each in await session.pulled(document)}
        answer = await session.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
        assert any(
            each["text"] == "written for Keras 3, because requirements.txt:1 asks for tensorflow 2.16.1"
            for each in answer["decisions"]
        ), answer["decisions"]


async def test_a_script_for_keras_3_is_refused_unless_versions_are_ignored(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    (folder / "requirements.txt").write_text("tensorflow==2.16.1\n", encoding="utf-8")
    (folder / "trainshift.toml").write_text(KERAS_2, encoding="utf-8")
    text = text_of(SCRIPTS / "mnist_tape" / "before.py")
    only = ["source.makeDistributed"]
    async with serve(
        able({"textDocument.diagnostic": {}, "workspace.diagnostics": None}), folders=[folder]
    ) as session:
        document = script(session, folder, text)
        assert not any(str(each.code).startswith("HV") for each in await session.pulled(document))
        (action,) = await session.actions(document, 0, only=only)
        assert action.disabled is not None
        assert "requirements.txt" in action.disabled.reason
        assert "trainshift.ignoreVersions" in action.disabled.reason
        assert [each.command.title for each in await session.lenses(document) if each.command] == [
            "GradientTape loop · cannot be made distributed"
        ]
        answer = await session.run("trainshift.makeDistributed", {"uri": document.uri})
        assert (answer["applied"], answer["status"]) == (False, "refused")
        assert answer["reason"] == action.disabled.reason
        # A different version is required, and then the first one again; then versions are ignored.
        for content, is_refused in (("tensorflow==2.15.1\n", False), ("tensorflow==2.16.1\n", True)):
            (folder / "requirements.txt").write_text(content, encoding="utf-8")
            session.watched(folder / "requirements.txt", types.FileChangeType.Changed)
            (action,) = await session.actions(document, 0, only=only)
            assert (action.disabled is not None) == is_refused, content
        count = session.configured
        session.configure({"ignoreVersions": True})
        await session.until("settings are asked for", lambda: session.configured > count)
        (action,) = await session.actions(document, 0, only=only)
        while action.disabled is not None:
            (action,) = await session.actions(document, 0, only=only)
        assert await session.result(action, document) == text_of(SCRIPTS / "mnist_tape" / "after.py")


async def test_what_the_project_asks_for_is_told_at_the_import(tmp_path: Path) -> None:
    folder = project(tmp_path / "here")
    requirements = folder / "requirements.txt"
    requirements.write_text("numpy\ntensorflow==2.16.1\n", encoding="utf-8")
    (folder / "trainshift.toml").write_text(KERAS_2, encoding="utf-8")
    path = SCRIPTS / "mnist_tape" / "before.py"
    async with serve(able({"textDocument.diagnostic": {}}), folders=[folder]) as session:
        document = script(session, folder, text_of(path), name="train.py")
        (found,) = (each for each in await session.pulled(document) if each.code == "TS04")
        assert (found.range.start.line, found.severity) == (document.line("import tensorflow"), INFORMATION)
        assert found.message.startswith("requirements.txt asks for tensorflow 2.16.1, but Horovod")
        (related,) = found.related_information or ()
        assert related.location.uri == requirements.as_uri()
        assert related.location.range.start == types.Position(1, 0)
        # Possible fixes.
        actions = {each.title: each.command for each in await session.menu(document, found.range)}
        opening = actions["Trainshift: Open requirements.txt"]
        assert opening is not None
        await session.run(opening.command, *opening.arguments or ())
        assert session.shown_documents[-1].uri == requirements.as_uri()
        assert session.shown_documents[-1].selection == types.Range(
            types.Position(1, 0), types.Position(1, 0)
        )
        answer = await session.run("trainshift.makeDistributed", {"uri": document.uri, "apply": False})
        assert (answer["status"], answer["code"]) == ("refused", "TS04")
        assert (answer["at"]["uri"], answer["at"]["line"]) == (requirements.as_uri(), 2)
        anyway = actions["Trainshift: Convert Anyway"]
        assert anyway is not None
        await session.run(anyway.command, *anyway.arguments or ())
        assert document.text == text_of(path.with_name("after.py"))
        # It stays while the import is edited, and disappears with a different version.
        session.edit(document, "import tensorflow as tf", "import tensorflow as tf\n")
        assert "TS04" in {each.code for each in await session.pulled(document)}
        requirements.write_text("numpy\ntensorflow==2.15.1\n", encoding="utf-8")
        session.watched(requirements, types.FileChangeType.Changed)
        while "TS04" in {each.code for each in await session.pulled(document)}:
            pass


async def test_a_script_is_converted_as_was_chosen(tmp_path: Path) -> None:
    """The editor's settings, and the overriding ones of the project, work like the command's options."""
    folder = project(tmp_path / "here", "warmup-epochs = 0")
    only = ["source.makeDistributed.trainshift"]
    async with serve(folders=[folder]) as session:
        document = script(session, folder, FIT)
        (action,) = await session.actions(document, 0, only=only)
        assert await session.result(action, document) == converted(folder / "train.py")
        count = session.configured
        session.configure({"compression": "fp16", "warmupEpochs": 3})
        await session.until("settings are asked for", lambda: session.configured > count)
        (action,) = await session.actions(document, 0, only=only)
        with_editor = run("convert", "-q", "--compression", "fp16", "-o", "-", folder / "train.py").decode()
        assert "fp16" in with_editor
        assert await session.result(action, document) == with_editor
        (folder / "pyproject.toml").write_text("[tool.trainshift]\nwarmup-epochs = 5\ncompression = 'none'\n")
        session.watched(folder / "pyproject.toml", types.FileChangeType.Changed)
        (action,) = await session.actions(document, 0, only=only)
        with_project = run("convert", "-q", "-o", "-", folder / "train.py").decode()
        assert "warmup_epochs=5" in with_project
        assert await session.result(action, document) == with_project
