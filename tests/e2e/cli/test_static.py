"""The command `static`: its output streams, the JSON document, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.cli.conftest import Run

GRAPH = """\
import paddle


@paddle.jit.to_static
def f(x):
    if x.sum() > 0:  # positive
        x = x + 1
    return x
"""
REFUSED = GRAPH.replace("x = x + 1", "x = x + 1\n        raise ValueError")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(GRAPH)
    return path


def test_a_diff_is_shown_and_nothing_written(run: Run, script: Path) -> None:
    done = run("static", "model.py")
    assert done.exit_code == 0
    assert "+    x = paddle.static.nn.cond(x.sum() > 0, if_true, if_false)\n" in done.stdout
    assert "Nothing was written." in done.stderr
    assert script.read_text() == GRAPH


def test_the_result_is_written_and_has_nothing_to_expand(run: Run, script: Path) -> None:
    assert run("static", "--check", "model.py").exit_code == 1
    done = run("static", "--format", "json", "-o", "out.py", "model.py")
    assert done.exit_code == 0
    (entry,) = json.loads(done.stdout)["files"]
    assert (entry["status"], entry["written"]) == ("expanded", True)
    assert {each["code"] for each in entry["applied"]} == {"PS01", "PS17"}
    assert script.with_name("out.py").read_text().count("# positive") == 1
    assert run("static", "--check", "out.py").exit_code == 0


def test_a_refused_file_is_not_written(run: Run, script: Path) -> None:
    script.write_text(REFUSED)
    done = run("static", "--format", "json", "-o", "out.py", "model.py")
    assert done.exit_code == 1
    (entry,) = json.loads(done.stdout)["files"]
    assert (entry["status"], entry["position"]) == ("refused", [8, 9])
    assert "assert" in entry["reason"]
    assert not script.with_name("out.py").exists()


def test_byte_order_mark_line_ends_and_tabs_are_kept(run: Run, script: Path) -> None:
    text = GRAPH.replace("    ", "\t").replace("\n", "\r\n")
    script.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert run("static", "--write", "model.py").exit_code == 0
    after = script.read_bytes()
    assert after.startswith(b"\xef\xbb\xbfimport paddle\r\n")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert b"\r\n\t# positive\r\n" in after
    assert b"\r\n\t\treturn paddle.assign(x)\r\n" in after


def test_statements_are_listed(run: Run, script: Path) -> None:
    done = run("static", "--show", "--format", "json", "model.py")
    (entry,) = json.loads(done.stdout)["files"]
    assert [(each["line"], each["becomes"], each["function"]) for each in entry["statements"]] == [
        (6, "cond", "f")
    ]
    assert run("static", "--show", "--write", "model.py").exit_code == 2


def test_what_is_no_python_and_what_is_no_file(run: Run, script: Path) -> None:
    script.write_text("import paddle\ndef f(:\n")
    assert run("static", "model.py").exit_code == 2
    assert run("static", "missing.py").exit_code == 2
    script.write_text("print(1)\n")
    assert run("static", "model.py").exit_code == 0


def test_a_function_is_made_static(run: Run, script: Path) -> None:
    script.write_text(GRAPH.replace("@paddle.jit.to_static\n", ""))
    assert run("static", "--make", "model.py").exit_code == 2
    assert run("static", "--make", "--function", "g", "model.py").exit_code == 1
    done = run("static", "--make", "--function", "f", "--write", "--format", "json", "model.py")
    (entry,) = json.loads(done.stdout)["files"]
    assert (entry["status"], entry["written"]) == ("expanded", True)
    assert "@paddle.jit.to_static(full_graph=True)\ndef f" in script.read_text()
    assert run("static", "--make", "--at", "6", "--check", "model.py").exit_code == 0


def test_a_magic_is_kept_or_the_notebook_refused(run: Run, script: Path) -> None:
    book = script.with_name("book.ipynb")

    def write(text: str) -> None:
        cells: list[dict[str, object]] = [
            {"cell_type": "code", "metadata": {}, "source": each, "outputs": [], "execution_count": None}
            for each in ("!pip install paddlepaddle\n%matplotlib inline", text, "%time f(paddle.ones([1]))")
        ]
        book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))

    write(GRAPH)
    assert run("static", "--write", "book.ipynb").exit_code == 0
    sources = ["".join(each["source"]) for each in json.loads(book.read_text())["cells"]]
    assert sources[0].startswith("!pip")
    assert sources[2].startswith("%time")
    assert "paddle.static.nn.cond" in sources[1]
    write(GRAPH.replace("    return x", "    %time y = x\n    return x"))
    before = book.read_text()
    done = run("static", "--write", "book.ipynb")
    assert done.exit_code == 1
    assert "book.ipynb:cell 2:" in done.stderr
    assert "shares its line with a magic" in done.stderr
    assert book.read_text() == before
