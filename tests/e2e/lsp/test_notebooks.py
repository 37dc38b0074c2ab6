"""Notebooks: their cells are one program, and cells that are not Python do no harm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from e2e.cli.notebooks import MODEL, STEP, TRAINER, USING, sources
from e2e.cli.notebooks import notebook as ipynb
from e2e.lsp.session import Document, Session, structured
from trainshift.cli.main import cli

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

NOTEBOOK = "notebook.source.makeDistributed.trainshift"
STATEMENT = "refactor.rewrite.distribute"
IMPORTS = "%matplotlib inline\n!pip install tensorflow 🎉\nimport tensorflow as tf\n"
LOOP = "for i in range(10):\n    step(tf.ones([4, 2]))\n    print(i)"
CELLS = [
    ("python", IMPORTS),
    ("markdown", "# Not Python: (("),
    ("python", MODEL),
    ("python", STEP),
    ("python", LOOP),
]
ALIAS = "Adam = tf.keras.optimizers.Adam"
NUMBERS = count()
# Cells that only a notebook understands, or that are empty.
FOREIGN = (
    "%matplotlib inline",
    "%time x = 1",
    "!ls -l | grep 'x",
    "x = !ls (",
    "files, = %sql select (",
    "%%bash\necho 'not Python: (('\nfor f in *; do",
    "%%html\n<b>(",
    "%%time\nx = 1",
    "tf.keras?",
    "tf.keras??",
    "?tf.keras",
    "if True:\n    !echo (\n    %cd ..",
    "print(1)\n%timeit -n 3 f(",
    "%env A=🎉(",
    "",
    "   \n\n",
    "# only a comment",
)


class Notebook:
    """A notebook of the editor, and its cells in order."""

    def __init__(
        self,
        session: Session,
        cells: Sequence[tuple[str, str]],
        prefix: str = "untitled:notebook-",
        uri: str = "",
    ) -> None:
        self.session = session
        self.uri = uri or f"{prefix}{next(NUMBERS)}.ipynb"
        self.version = 1
        self.languages: dict[str, str] = {}
        self.documents = [self._document(*each) for each in cells]
        listed = [self._cell(each) for each in self.documents]
        notebook = types.NotebookDocument(self.uri, "jupyter-notebook", 1, listed)
        texts = [self._item(each) for each in self.documents]
        session.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, texts))

    def _document(self, language: str, text: str) -> Document:
        name = self.uri.replace("untitled:", "").replace("file://", "")
        document = Document(f"vscode-notebook-cell:{name}#W{next(NUMBERS)}", text)
        self.session.documents[document.uri] = document
        self.languages[document.uri] = language
        return document

    def _cell(self, document: Document) -> types.NotebookCell:
        is_code = self.languages[document.uri] != "markdown"
        kind = types.NotebookCellKind.Code if is_code else types.NotebookCellKind.Markup
        return types.NotebookCell(kind, document.uri)

    def _item(self, document: Document) -> types.TextDocumentItem:
        return types.TextDocumentItem(
            document.uri, self.languages[document.uri], document.version, document.text
        )

    def change(self, change: types.NotebookDocumentCellChanges) -> None:
        """Notify the server of a change of cells."""
        self.version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        params = types.DidChangeNotebookDocumentParams(
            identifier, types.NotebookDocumentChangeEvent(cells=change)
        )
        self.session.client.notebook_document_did_change(params)

    def write(self, number: int, text: str) -> None:
        """Put another text into a cell."""
        document = self.documents[number]
        document.text, document.version = text, document.version + 1
        identifier = types.VersionedTextDocumentIdentifier(document.version, document.uri)
        event = types.TextDocumentContentChangeWholeDocument(text)
        content = types.NotebookDocumentCellContentChanges(identifier, [event])
        self.change(types.NotebookDocumentCellChanges(text_content=[content]))

    def edit(self, number: int, where: types.Range, new: str, text: str) -> None:
        """Replace a range of a cell."""
        document = self.documents[number]
        document.text, document.version = text, document.version + 1
        identifier = types.VersionedTextDocumentIdentifier(document.version, document.uri)
        event = types.TextDocumentContentChangePartial(where, new)
        content = types.NotebookDocumentCellContentChanges(identifier, [event])
        self.change(types.NotebookDocumentCellChanges(text_content=[content]))

    def insert(self, at: int, language: str, text: str) -> Document:
        """A new cell."""
        document = self._document(language, text)
        self.documents.insert(at, document)
        array = types.NotebookCellArrayChange(at, 0, [self._cell(document)])
        structure = types.NotebookDocumentCellChangeStructure(array, did_open=[self._item(document)])
        self.change(types.NotebookDocumentCellChanges(structure=structure))
        return document

    def delete(self, at: int) -> Document:
        """Remove a cell."""
        document = self.documents.pop(at)
        array = types.NotebookCellArrayChange(at, 1)
        structure = types.NotebookDocumentCellChangeStructure(array, did_close=[document.identifier])
        self.change(types.NotebookDocumentCellChanges(structure=structure))
        return document

    def swap(self, at: int) -> None:
        """Swap a cell with the next one."""
        self.documents[at : at + 2] = reversed(self.documents[at : at + 2])
        array = types.NotebookCellArrayChange(
            at, 2, [self._cell(each) for each in self.documents[at : at + 2]]
        )
        structure = types.NotebookDocumentCellChangeStructure(array)
        self.change(types.NotebookDocumentCellChanges(structure=structure))

    def close(self) -> None:
        """Close the notebook."""
        cells = [each.identifier for each in self.documents]
        identifier = types.NotebookDocumentIdentifier(self.uri)
        self.session.client.notebook_document_did_close(
            types.DidCloseNotebookDocumentParams(identifier, cells)
        )

    async def codes(self) -> list[set[object]]:
        """The codes of each cell."""
        return [{each.code for each in await self.session.pulled(cell)} for cell in self.documents]


async def test_the_cells_are_one_program(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    assert await notebook.codes() == [{"HV01"}, set(), {"HV02"}, {"HV04", "HV05"}, {"HV07"}]
    for cell in notebook.documents:
        for each in await puller.pulled(cell):
            assert puller.underlined(cell, each).strip(), each


async def test_what_is_pushed_is_pushed_for_each_cell(editor: Session) -> None:
    notebook = Notebook(editor, [*CELLS, ("python", ALIAS), ("python", "x = 1")])
    model, alias, empty = notebook.documents[2], notebook.documents[5], notebook.documents[6]
    found = await editor.shown(model, lambda found: "HV02" in {each.code for each in found})
    assert [editor.underlined(model, each) for each in found] == ["opt = tf.keras.optimizers.Adam(1e-3)"]
    await editor.shown(alias, lambda found: {each.code for each in found} == {"TF03"})
    await editor.shown(empty, lambda found: not found)
    assert notebook.documents[1].shown is None
    notebook.write(5, "x = 1")
    await editor.shown(alias, lambda found: not found)
    notebook.close()
    await editor.until("nothing is shown", lambda: model.shown == [])


async def test_what_only_a_notebook_understands_is_no_error(puller: Session) -> None:
    notebook = Notebook(puller, [("python", text) for text in (IMPORTS, *FOREIGN, ALIAS)])
    assert await notebook.codes() == [*(set() for _ in (IMPORTS, *FOREIGN)), {"TF03"}]


@pytest.mark.slow
@pytest.mark.parametrize("cell", FOREIGN)
async def test_what_comes_after_it_is_where_it_was(puller: Session, cell: str) -> None:
    texts = (IMPORTS, cell, ALIAS, f"\n{cell}")
    notebook = Notebook(puller, [("python", text) for text in texts])
    assert await notebook.codes() == [set(), set(), {"TF03"}, set()]
    (found,) = await puller.pulled(notebook.documents[2])
    assert puller.underlined(notebook.documents[2], found) == "Adam"


async def test_what_is_wrong_is_told_in_its_cell(puller: Session) -> None:
    notebook = Notebook(puller, [*CELLS, ("python", "x = (1\n")])
    codes = await notebook.codes()
    assert [("TS00" in each) for each in codes] == [False] * 5 + [True]
    (error,) = await puller.pulled(notebook.documents[5])
    assert error.range.start.line == 0
    notebook.write(5, "x = (1)\n")
    assert (await notebook.codes())[5] == set()


async def test_a_magic_that_is_timed_is_python_all_the_same(puller: Session) -> None:
    notebook = Notebook(puller, [("python", IMPORTS), ("python", "%%time\nAdam = tf.keras.optimizers.Adam")])
    (found,) = await puller.pulled(notebook.documents[1])
    assert (found.code, found.range.start.line) == ("TF03", 1)


async def test_a_statement_of_a_cell_is_converted(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    model = notebook.documents[2]
    menu = await puller.actions(model, 1)
    assert {each.kind for each in menu} == {"quickfix", STATEMENT, NOTEBOOK}
    action = next(each for each in menu if each.kind == STATEMENT)
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    after = puller.texts_after(edit)
    assert after.keys() == {notebook.documents[0].uri, model.uri}
    assert after[model.uri] == MODEL.replace("Adam(1e-3)", "Adam(1e-3 * hvd.size())")
    imports = after[notebook.documents[0].uri]
    assert imports.startswith(IMPORTS + "import horovod.tensorflow as hvd\n")
    assert "hvd.init()" in imports


async def test_the_whole_notebook_is_converted_by_its_own_kind_only(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    model = notebook.documents[2]
    for only in (["source"], ["source.makeDistributed"], ["source.fixAll"], ["notebook.source.fixAll"]):
        assert await puller.actions(model, 0, only=only) == [], only
    for only in (["notebook.source.makeDistributed"], ["notebook"], [NOTEBOOK]):
        (action,) = await puller.actions(model, 0, only=only)
        assert (action.kind, action.title) == (NOTEBOOK, "Trainshift: Make distributed (whole notebook)")
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    after = puller.texts_after(edit)
    assert after.keys() == {notebook.documents[number].uri for number in (0, 2, 3, 4)}
    assert after[notebook.documents[4].uri] == LOOP.replace(
        "    print(i)", "    if hvd.rank() == 0:\n        print(i)"
    )
    step = after[notebook.documents[3].uri]
    assert "    tape = hvd.DistributedGradientTape(tape)\n" in step
    assert step.startswith("def step(x):\n")
    # After it is applied, nothing is left to do.
    for number in (0, 2, 3, 4):
        notebook.write(number, after[notebook.documents[number].uri])
    assert not any(str(each).startswith(("HV", "TS")) for each in set().union(*await notebook.codes()))
    (action,) = await puller.actions(model, 0, only=[NOTEBOOK])
    assert action.disabled is not None


@pytest.mark.parametrize(
    "cells",
    [
        CELLS,
        [("python", IMPORTS.rstrip("\n")), ("python", ""), *CELLS[1:4], ("python", f"%%time\n{LOOP}\n")],
        [("python", "%%bash\nif ("), *CELLS, ("python", "# trainshift: ignore-file\npip install x")],
    ],
)
async def test_the_command_line_makes_the_same_of_it(
    puller: Session, tmp_path: Path, cells: list[tuple[str, str]]
) -> None:
    notebook = Notebook(puller, cells)
    (action,) = await puller.actions(notebook.documents[-1], 0, only=[NOTEBOOK])
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    after = puller.texts_after(edit)
    path = tmp_path / "nb.ipynb"
    kinds = {"python": "code", "markdown": "markdown"}
    path.write_text(ipynb([(kinds[language], text) for language, text in cells]), encoding="utf-8")
    assert CliRunner().invoke(cli, ["convert", "--write", str(path)]).exit_code == 0
    wanted = [after.get(each.uri, each.text) for each in notebook.documents]
    assert sources(path.read_text(encoding="utf-8")) == wanted


async def test_the_command_line_finds_the_same(puller: Session, tmp_path: Path) -> None:
    cells = [*CELLS, ("python", f"%env A=🎉(\n{ALIAS}"), ("python", "'🎉'; relu = tf.nn.relu")]
    notebook = Notebook(puller, cells)
    shown = {
        (number, each.range.start.line + 1, each.code, each.message)
        for number, cell in enumerate(notebook.documents, 1)
        for each in await puller.pulled(cell)
        if not str(each.code).startswith("HV")
    }
    path = tmp_path / "nb.ipynb"
    kinds = {"python": "code", "markdown": "markdown"}
    path.write_text(ipynb([(kinds[language], text) for language, text in cells]), encoding="utf-8")
    result = CliRunner().invoke(cli, ["check", "--format", "json", str(path)])
    (file,) = json.loads(result.stdout)["files"]
    found = {(each["cell"], each["line"], each["code"], each["message"]) for each in file["diagnostics"]}
    assert found == shown
    assert {each[2] for each in found} == {"TF03"}


async def test_no_magic_is_taken_apart(puller: Session) -> None:
    timed = LOOP.replace("    print(i)", "    %time print(i)")
    notebook = Notebook(puller, [*CELLS[:4], ("python", timed)])
    (action,) = await puller.actions(notebook.documents[2], 0, only=[NOTEBOOK])
    with pytest.raises(JsonRpcException, match="shares its line with a magic"):
        await puller.resolve(action)


async def test_an_action_for_another_version_of_a_cell_is_refused(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    menu = await puller.actions(notebook.documents[2], 1)
    notebook.write(2, MODEL + "\n")
    for action in menu:
        with pytest.raises(JsonRpcException) as refusal:
            await puller.resolve(action)
        assert refusal.value.code == -32801


async def test_an_action_is_refused_when_another_cell_has_changed(puller: Session) -> None:
    """Its offsets refer to the whole program."""
    notebook = Notebook(puller, CELLS)
    menu = await puller.actions(notebook.documents[2], 1)
    notebook.write(0, "import tensorflow as tf\n" + "x = 1\n" * 50)
    for action in menu:
        with pytest.raises(JsonRpcException) as refusal:
            await puller.resolve(action)
        assert refusal.value.code == -32801


async def test_cells_come_go_move_and_change(puller: Session) -> None:
    notebook = Notebook(puller, [("python", "import tensorflow as tf"), ("python", "opt = Adam()")])
    assert await notebook.codes() == [set(), set()]
    notebook.insert(1, "python", ALIAS)
    notebook.insert(1, "markdown", ALIAS)
    assert await notebook.codes() == [set(), set(), {"TF03"}, set()]
    # A line above it, by a range.
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    notebook.edit(2, start, "# why 🎉\n", "# why 🎉\nAdam = tf.keras.optimizers.Adam")
    (found,) = await puller.pulled(notebook.documents[2])
    assert found.range.start == types.Position(1, 0)
    notebook.swap(2)
    assert await notebook.codes() == [set(), set(), set(), {"TF03"}]
    # Above the import, the import is the one that comes too late.
    notebook.swap(2)
    notebook.swap(1)
    notebook.swap(0)
    assert "TF01" in (await notebook.codes())[1]
    gone = notebook.delete(0)
    assert "TF03" not in set().union(*await notebook.codes())
    assert await puller.pulled(gone) == []


async def test_a_cell_that_goes_shows_nothing(editor: Session) -> None:
    notebook = Notebook(editor, [("python", "import tensorflow as tf"), ("python", ALIAS)])
    await editor.shown(notebook.documents[1], lambda found: {each.code for each in found} == {"TF03"})
    gone = notebook.delete(1)
    await editor.until("nothing is shown", lambda: gone.shown == [])


async def test_lenses_and_hovers_are_those_of_a_cell(strict_puller: Session) -> None:
    puller = strict_puller
    notebook = Notebook(puller, [*CELLS, ("python", ALIAS)])
    assert [len(await puller.lenses(cell)) for cell in notebook.documents] == [0, 0, 0, 0, 2, 0]
    lens, loud = await puller.lenses(notebook.documents[4])
    assert lens.range.start == types.Position(0, 0)
    assert lens.command is not None
    assert lens.command.title == "GradientTape loop · Make distributed"
    assert loud.command is not None
    assert loud.command.title == "1 warning"
    assert (await puller.hover(notebook.documents[5], 0)).startswith("**TF03**")
    assert await puller.hover(notebook.documents[1], 0) == ""


async def test_the_command_converts_the_notebook_of_a_cell(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    puller.edits.clear()
    puller.refuses = "only the edit is looked at"
    answer = await puller.run("trainshift.makeDistributed", {"uri": notebook.documents[4].uri})
    puller.refuses = ""
    assert answer["applied"] is False
    (edit,) = puller.edits
    assert len(puller.texts_after(edit)) == 4


async def test_the_edit_alone_tells_the_cell_of_each_note(puller: Session) -> None:
    notebook = Notebook(puller, CELLS)
    import_, _, model, step, loop = notebook.documents
    for uri in (loop.uri, notebook.uri):
        answer = await puller.run("trainshift.makeDistributed", {"uri": uri, "apply": False})
        told = [(each["rule"], each["uri"], each["line"], each["column"]) for each in answer["changes"]]
        assert told == [
            ("HV01", import_.uri, 3, 1),
            ("HV02", model.uri, 2, 1),
            ("HV04", step.uri, 2, 5),
            ("HV05", step.uri, 5, 5),
            ("HV07", loop.uri, 3, 5),
        ]
        after = puller.texts_after(structured(answer["edit"]))
        assert after.keys() == {each.uri for each in (import_, model, step, loop)}
        assert "    tape = hvd.DistributedGradientTape(tape)\n" in after[step.uri]


async def test_the_outline_tells_the_cell_of_each_loop(strict_puller: Session) -> None:
    puller = strict_puller
    notebook = Notebook(puller, [*CELLS, ("python", ALIAS)])
    loop = notebook.documents[4]
    wanted = {
        "loops": [
            {
                "name": "GradientTape",
                "uri": loop.uri,
                "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 19}},
            }
        ],
        "status": "convertible",
        "reason": "",
        "changes": 5,
        "program": "",
        "partOf": None,
        "files": [],
        "keras": (await puller.outline(notebook.uri))["keras"],  # The installed version decides it.
        "warnings": 1,
        "usesTensorflow": True,
    }
    assert await puller.outline(notebook.uri) == {**wanted, "version": None}
    notebook.write(2, MODEL + "\n")
    assert await puller.outline(notebook.documents[2].uri) == {**wanted, "version": 2}
    assert await puller.outline(loop.uri) == {**wanted, "version": 1}
    # Any cell represents its notebook, as for the command; a cell that is not read has no version.
    assert await puller.outline(notebook.documents[1].uri) == {**wanted, "version": None}


async def test_a_notebook_without_python_is_quiet(puller: Session) -> None:
    notebook = Notebook(puller, [("markdown", "# x"), ("javascript", "let x = (")])
    assert await notebook.codes() == [set(), set()]
    assert await puller.actions(notebook.documents[0], 0) == []
    outline = await puller.outline(notebook.uri)
    assert (outline["loops"], outline["status"]) == ([], "nothing found")
    added = notebook.insert(2, "python", "import tensorflow as tf\nAdam = tf.keras.optimizers.Adam")
    assert {each.code for each in await puller.pulled(added)} == {"TF03"}
    notebook.delete(2)
    assert await notebook.codes() == [set(), set()]


async def test_a_notebook_on_the_disk_is_no_module(puller: Session, tmp_path: Path) -> None:
    notebook = Notebook(puller, CELLS, prefix=f"{tmp_path.as_uri()}/notebook-")
    assert (await notebook.codes())[2] == {"HV02"}
    notebook.close()
    assert await puller.pulled(notebook.documents[2]) == []


# Derivatives

HALF = "def half(x):\n    return x / 2"
CUBE = (
    "%matplotlib inline\ndef cube(x):\n    y = half(x)  # of a half\n    return y * y * y\n\nprint(cube(2.0))"
)


async def test_a_derivative_goes_to_the_end_of_the_cell(puller: Session) -> None:
    notebook = Notebook(
        puller, [("python", HALF), ("markdown", "# ("), ("python", CUBE), ("python", "x = 1\n")]
    )
    cell = notebook.documents[2]
    menu = await puller.actions(cell, 3, only=["refactor.rewrite.differentiate.reverse"])
    (action,) = menu
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    after = puller.texts_after(edit)
    assert list(after) == [cell.uri]
    text = after[cell.uri]
    assert text.startswith(f"{CUBE}\n\n\n")
    assert not text.endswith("\n")
    assert "def cube_grad(x" in text
    compile(text.replace("%matplotlib inline", ""), "cell", "exec")
    notebook.write(2, text)
    (again,) = await puller.actions(cell, 3, only=["refactor.rewrite.differentiate.reverse"])
    assert again.disabled is not None
    assert again.disabled.reason == "cube_grad is up to date"
    notebook.write(2, text.replace("y * y * y", "y * y", 1))
    (again,) = await puller.actions(
        cell,
        cell.line("# Made by trainshift differentiate cube --mode reverse --wrt"),
        only=["refactor.rewrite.differentiate.reverse"],
    )
    assert again.title == "Trainshift: Make again"
    assert (await puller.result(again, cell)).startswith(cell.text[: cell.text.index("# Made by")])


async def test_a_refusal_names_the_line_of_the_cell(puller: Session) -> None:
    notebook = Notebook(
        puller,
        [
            ("python", HALF),
            ("markdown", "# ("),
            ("python", "def open_(x):\n    try:\n        return x\n    finally:\n        pass"),
        ],
    )
    (action,) = await puller.actions(
        notebook.documents[2], 2, only=["refactor.rewrite.differentiate.reverse"]
    )
    assert action.disabled is not None
    assert action.disabled.reason.startswith("line 2 of its cell: try ")


async def test_a_static_function_in_a_cell_is_expanded(puller: Session) -> None:
    """The helper functions are above it, and the magic stays."""
    loop = "    while x.sum() > 1:\n        x = x / 2\n    return x"
    cells = [
        ("python", "%matplotlib inline\nimport paddle"),
        ("python", f"@paddle.jit.to_static\ndef f(x):\n{loop}"),
        ("python", "f(paddle.ones([3]))"),
    ]
    book = Notebook(puller, cells)
    given = {"uri": book.documents[1].uri, "function": "f", "apply": False}
    told = await puller.run("trainshift.expandStatic", given)
    texts = puller.texts_after(structured(told["edit"]))
    assert set(texts) == {book.documents[1].uri}
    (text,) = texts.values()
    assert "def static_while(" in text
    assert text.endswith("    (x,) = static_while(loop_cond, loop_body, (x,))\n    return x")
    end = types.Range(types.Position(0, 0), types.Position(9, 0))
    hints = await puller.client.text_document_inlay_hint_async(
        types.InlayHintParams(book.documents[1].identifier, end)
    )
    assert [(each.position.line, each.label) for each in hints or ()] == [(2, "→ while_loop")]


# Notebooks that import files


@pytest.fixture
def using(puller: Session, tmp_path: Path) -> Notebook:
    """use.ipynb, which trains by a class of trainer.py."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    path = tmp_path / "use.ipynb"
    path.write_text(ipynb(USING), encoding="utf-8")
    kinds = {"code": "python", "markdown": "markdown"}
    return Notebook(puller, [(kinds[kind], text) for kind, text in USING], uri=path.as_uri())


async def converted(puller: Session, notebook: Notebook) -> dict[str, str]:
    """The texts after the conversion of a notebook, by the names of files, or the numbers of cells."""
    await puller.outline(notebook.documents[0].uri)
    (action,) = await puller.actions(notebook.documents[0], 0, only=[NOTEBOOK])
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    cells = {each.uri: str(number) for number, each in enumerate(notebook.documents, 1)}
    after = puller.texts_after(edit)
    return {cells.get(uri) or uri.rpartition("/")[2]: text for uri, text in after.items()}


async def test_a_notebook_is_converted_with_the_files_that_it_imports(
    puller: Session, using: Notebook, tmp_path: Path
) -> None:
    summary = await puller.outline(using.documents[0].uri)
    assert summary["program"] == "use.ipynb and 1 more file"
    assert [uri.rpartition("/")[2] for uri in summary["files"]][1] == "trainer.py"
    (action,) = await puller.actions(using.documents[0], 0, only=[NOTEBOOK])
    assert action.title == "Trainshift: Make distributed (use.ipynb and 1 more file)"
    after = await converted(puller, using)
    assert after.keys() == {"1", "3", "5", "trainer.py"}
    assert CliRunner().invoke(cli, ["convert", "--write", str(tmp_path / "use.ipynb")]).exit_code == 0
    cells = sources((tmp_path / "use.ipynb").read_text(encoding="utf-8"))
    assert [after.get(str(number), cell) for number, cell in enumerate(cells, 1)] == cells
    assert after["trainer.py"] == (tmp_path / "trainer.py").read_text()


async def test_the_command_converts_such_a_notebook(puller: Session, using: Notebook) -> None:
    given = {"uri": using.uri, "apply": False}
    told = await puller.run("trainshift.makeDistributed", given)
    assert (told["status"], told["files"]) == ("converted", 2)
    uris = [each.uri for each in using.documents]
    places = {
        (uris.index(each["uri"]) + 1 if each["uri"] in uris else each["uri"].rpartition("/")[2], each["line"])
        for each in (*told["changes"], *told["decisions"])
    }
    assert {(3, 2), (5, 1), ("trainer.py", 7)} <= places


async def test_a_statement_of_such_a_notebook_is_converted(puller: Session, using: Notebook) -> None:
    saved = using.documents[4]
    await puller.outline(saved.uri)
    action = next(each for each in await puller.actions(saved, 0) if each.kind == STATEMENT)
    edit = (await puller.resolve(action)).edit
    assert edit is not None
    after = puller.texts_after(edit)
    assert after.keys() == {using.documents[0].uri, saved.uri}
    assert after[saved.uri] == f"if hvd.rank() == 0:\n    {saved.text}"


async def test_a_change_of_an_imported_file_counts(puller: Session, using: Notebook, tmp_path: Path) -> None:
    """It may be open or not."""
    assert "hvd.DistributedGradientTape(tape)" in (await converted(puller, using))["trainer.py"]
    path = tmp_path / "trainer.py"
    other = TRAINER.replace("tape", "watch")
    trainer = puller.open(TRAINER, path.as_uri())
    puller.write(trainer, other)
    assert "hvd.DistributedGradientTape(watch)" in (await converted(puller, using))["trainer.py"]
    puller.close(puller.documents.pop(trainer.uri))
    path.write_text(TRAINER.replace("tape", "gradients"))
    puller.watched(path, types.FileChangeType.Changed)
    assert "hvd.DistributedGradientTape(gradients)" in (await converted(puller, using))["trainer.py"]


async def test_a_refusal_names_the_place_in_the_imported_file(
    puller: Session, using: Notebook, tmp_path: Path
) -> None:
    path = tmp_path / "trainer.py"
    path.write_text(TRAINER.replace("tf.GradientTape()", "tf.distribute.MirroredStrategy().scope()"))
    puller.watched(path, types.FileChangeType.Changed)
    told = await puller.run("trainshift.makeDistributed", {"uri": using.uri, "apply": False})
    assert told["reason"].startswith("trainer.py, line ")
    assert told["at"]["uri"] == path.as_uri()


async def test_findings_of_such_a_notebook_are_those_of_the_command_line(
    puller: Session, using: Notebook, tmp_path: Path
) -> None:
    shown = {
        (number, each.range.start.line + 1, each.code, each.message)
        for number, cell in enumerate(using.documents, 1)
        for each in await puller.pulled(cell)
        if not str(each.code).startswith("HV")
    }
    result = CliRunner().invoke(cli, ["check", "--format", "json", str(tmp_path / "use.ipynb")])
    (file,) = json.loads(result.stdout)["files"]
    assert {
        (each["cell"], each["line"], each["code"], each["message"]) for each in file["diagnostics"]
    } == shown
    (second,) = (each for each in await puller.pulled(using.documents[3]) if each.code == "TF05")
    assert [each.location.uri for each in second.related_information or ()] == [
        (tmp_path / "trainer.py").as_uri()
    ]
    (listed,) = (each for each in file["diagnostics"] if each["code"] == "TF05")
    (related,) = listed["related"]
    assert related["path"].endswith("trainer.py")
    assert "cell" not in related
