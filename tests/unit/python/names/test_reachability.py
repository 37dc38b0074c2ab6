"""Reachability: the code of a program that may run, by the names that code reads."""

import pytest

from trainshift.engine.workspace import files_in_memory, linked
from trainshift.python.names.workspace import Workspace

MAIN = "from lib import one, Base, Layer\n\none()\n"
LIB = """
import tools

def one():
    return Base()

def two(x):
    return helper(x)

def helper(x):
    return x

class Base:
    def call(self, rows):
        return helper(rows)

class Layer(Base):
    pass

TABLE = {"two": two, "layer": [Layer]}
"""
TOOLS = "def three():\n    pass\n"


def workspace(**texts: str) -> Workspace:
    """Return the workspace of `main`, of these files and those above."""
    given = {"main": MAIN, "lib": LIB, "tools": TOOLS} | texts
    paths = {f"/p/{name}.py": text for name, text in given.items()}
    files = files_in_memory(paths)
    code = files.read("/p/main.py")
    assert code is not None
    found = linked(code, "/p/main.py", files).workspace
    assert found is not None
    return found


def running(found: Workspace) -> set[str]:
    scopes = (scope for script in found.reachable for scope in script.code.scopes)
    return {scope.name for scope in scopes if found.runs(scope, None)}


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", {"one", "Base"}),
        # A table runs nothing of what it holds, unless code reads it.
        ("from lib import TABLE\n\nTABLE['two'](1)\n", {"one", "Base", "two", "helper", "Layer"}),
        # A variable of the file itself is not what another file defines by that name, unless it is imported.
        ("two = one()\nprint(two)\n", {"one", "Base"}),
        ("from lib import two as helper\n\nhelper(1)\n", {"one", "Base", "two", "helper"}),
        ("from lib import *\n\nprint(two)\n", {"one", "Base", "two", "helper"}),
        # An attribute of an object that is read by its text is no name of a module, but may be a method.
        ("getattr(one(), input())()\n", {"one", "Base", "call", "helper"}),
        ("print(vars(one()))\n", {"one", "Base", "call", "helper"}),
        ("one().eval()\n", {"one", "Base"}),
        ("getattr(one(), 'call')(1)\n", {"one", "Base", "call", "helper"}),
    ],
)
def test_what_code_reads_may_run(more: str, names: set[str]) -> None:
    assert running(workspace(main=MAIN + more)) == names


@pytest.mark.parametrize(
    "more",
    [
        "import lib\n\ngetattr(lib, input())(1)\n",
        "import lib\n\ndef make(module, name):\n    return getattr(module, name)\n\nmake(lib, input())\n",
        "import lib\n\nprint(vars(lib))\n",
        "import lib\n\nthing = [lib.tools]\ngetattr(thing[0], input())()\n",
        "import sys\n\ngetattr(sys.modules['lib'], input())()\n",
        "def local():\n    import lib as given\n    return given\n\ngetattr(local(), input())()\n",
        "from lib import *\n\ngetattr(tools, input())()\n",
        "eval('one')()\n",
        "import lib\n\nlib.__dict__[input()](1)\n",
        "from lib import *\n\nlocals()[input()](1)\n",
        "from lib import Base\n\nBase.__subclasses__()[0]().call(1)\n",
    ],
)
def test_all_may_run_where_names_of_a_module_are_read_by_text(more: str) -> None:
    assert {"one", "two", "helper", "Base", "call", "Layer", "three"} <= running(workspace(main=MAIN + more))


def test_code_that_never_runs_calls_nothing_and_is_no_heir() -> None:
    found = workspace()
    lib = found.script("/p/lib.py")
    assert lib is not None
    scopes = {scope.name: scope for scope in lib.code.scopes}
    assert lib.names.callers(scopes["helper"]) == ([], True)
    assert not lib.names.heirs(scopes["Base"])
    assert [site.name for site in lib.names.callers(scopes["one"])[0]] == ["one"]


def test_a_file_of_which_nothing_runs_is_no_part_of_the_program() -> None:
    texts = {
        "/p/main.py": "from package import run\n\nrun()\n",
        "/p/package/__init__.py": "from package import calls\n"
        "from package.used import run\nfrom package.unused import other\n",
        "/p/package/calls.py": "def unused(x=print('called by the definition')):\n    return x\n",
        "/p/package/used.py": "import package.rate\n\ndef run():\n    print(package.rate.RATE)\n",
        "/p/package/unused.py": "def other():\n    return 1\n\nif __name__ == '__main__':\n    other()\n",
        "/p/package/rate.py": "RATE = 0.1\n",
    }
    files = files_in_memory(texts)
    code = files.read("/p/main.py")
    assert code is not None
    workspace = linked(code, "/p/main.py", files).workspace
    assert workspace is not None
    assert {each.path for each in workspace.reachable} == set(texts)
    assert {each.path for each in workspace.running} == {
        "/p/main.py",
        "/p/package/calls.py",
        "/p/package/used.py",
        "/p/package/rate.py",
    }


@pytest.mark.parametrize(
    "text",
    [
        "def __getattr__(name):\n    return name\n",
        "class Setup:\n    log = open('log.txt', 'w')\n",
        "class Registry:\n    def __init_subclass__(cls):\n        print(cls)\n\n"
        "class One(Registry):\n    pass\n\nRegistry()\n",
    ],
)
def test_python_runs_some_definitions_by_itself(text: str) -> None:
    found = workspace(main="import given\n", given=text)
    assert [each.path for each in found.running] == ["/p/main.py", "/p/given.py"]
    given = found.running[1]
    assert all(found.runs(scope, None) for scope in given.code.scopes)


def test_what_is_idle_is_found_again_after_an_edit_of_any_file() -> None:
    texts = {
        "/p/main.py": "import lib\n\nlib.run()\n",
        "/p/lib.py": "def idle():\n    pass\n\ndef run():\n    pass\n",
    }
    files = files_in_memory(texts)
    files.stay()
    for edited in ("", "def run():\n    pass\n\ndef idle():\n    pass\n"):
        if edited:
            texts["/p/lib.py"] = edited
            files.forget("/p/lib.py", is_edit=True)
        code = files.read("/p/main.py")
        assert code is not None
        found = linked(code, "/p/main.py", files).workspace
        assert found is not None
        assert running(found) == {"run"}


def test_an_edit_forgets_the_answers_that_depend_on_the_file_alone() -> None:
    texts = {"/p/a.py": "A = 1\n", "/p/b.py": "B = 1\n"}
    files = files_in_memory(texts)
    files.stay()

    read = []

    def text_of(path: str) -> str:
        def find() -> str:
            read.append(path)
            code = files.read(path)
            return code.source.text if code is not None else ""

        return files.once(("text", path), find)

    def both() -> str:
        return files.once("both", lambda: text_of("/p/a.py") + text_of("/p/b.py"))

    def importers() -> tuple[str, ...]:
        return files.once("importers", lambda: tuple(files.naming("/p/b.py")))

    assert (both(), importers()) == ("A = 1\nB = 1\n", ())
    texts["/p/a.py"] = "import b\n"
    assert both() == "A = 1\nB = 1\n"  # It stays until the edit is reported.
    assert read == ["/p/a.py", "/p/b.py"]
    files.forget("/p/a.py", is_edit=True)
    assert (both(), importers()) == ("import b\nB = 1\n", ("/p/a.py",))
    assert read == ["/p/a.py", "/p/b.py", "/p/a.py"]
