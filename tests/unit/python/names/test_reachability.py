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
