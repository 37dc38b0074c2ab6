"""Workspaces: the targets of imports; odd ones neither fail nor take long."""

from __future__ import annotations

import time

import pytest

from support.finding_fixtures import program_of
from trainshift.engine.workspace import files_in_memory, read_linked
from trainshift.python.names.script import Script
from trainshift.python.names.values import Function
from trainshift.restrictions import RESTRICTIONS
from trainshift.training.loops.loops import Loops

FIT = "import tensorflow as tf\nm = tf.keras.Sequential()\ndef train():\n    m.fit(x)\n"
LOOP_RULES = [rule for rule in RESTRICTIONS if rule.code.startswith("TL")]


def linked(text: str, others: dict[str, str], path: str = "/w/main.py") -> Script:
    """The script at `path` beside others by absolute path."""
    script = read_linked(text, path, files_in_memory({**others, path: text}))
    assert isinstance(script, Script)
    return script


def homes(text: str, others: dict[str, str], path: str = "/w/main.py") -> set[str]:
    """The files that define the functions that the script's ``train()`` calls."""
    script = linked(text, others, path)
    site = next(script.sites_named("train", "run"))
    return {
        script.home(value.scope).path for value in script.names.callee(site) if isinstance(value, Function)
    }


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("from a import train\ntrain()", "/w/a.py"),
        ("import a\na.train()", "/w/a.py"),
        ("import a as b\nb.train()", "/w/a.py"),
        ("from a import train as run\nrun()", "/w/a.py"),
        ("from a import *\ntrain()", "/w/a.py"),
        ("from package import train\ntrain()", "/w/package/train.py"),
        ("import package.deep.inner as t\nt.train()", "/w/package/deep/inner.py"),
        ("import package.deep.inner\npackage.deep.inner.train()", "/w/package/deep/inner.py"),
        ("from package.deep.inner import train\ntrain()", "/w/package/deep/inner.py"),
        ("from space.module import train\ntrain()", "/w/space/module.py"),
        ("from space import module\nmodule.train()", "/w/space/module.py"),
        ("from project.core import train\ntrain()", "/w/src/project/core.py"),
        ("from stars import train\ntrain()", "/w/a.py"),
    ],
)
def test_where_an_import_leads(text: str, home: str) -> None:
    others = {
        "/w/a.py": FIT,
        "/w/package/__init__.py": "from .train import train",
        "/w/package/train.py": FIT,
        "/w/package/deep/__init__.py": "",
        "/w/package/deep/inner.py": FIT,
        "/w/space/module.py": FIT,
        "/w/src/project/__init__.py": "",
        "/w/src/project/core.py": FIT,
        "/w/stars.py": "from a import *",
    }
    assert homes(text, others) == {home}


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("from . import train\ntrain()", "/w/p/q/__init__.py"),
        ("from .b import train\ntrain()", "/w/p/q/b.py"),
        ("from . import b\nb.train()", "/w/p/q/b.py"),
        ("from .. import c\nc.train()", "/w/p/c.py"),
        ("from ..c import train\ntrain()", "/w/p/c.py"),
        ("from ..r.d import train\ntrain()", "/w/p/r/d.py"),
        ("from p.c import train\ntrain()", "/w/p/c.py"),
        ("from .b import *\ntrain()", "/w/p/q/b.py"),
        ("from . import *\ntrain()", "/w/p/q/__init__.py"),
    ],
)
def test_relative_imports(text: str, home: str) -> None:
    others = {
        "/w/p/__init__.py": "",
        "/w/p/c.py": FIT,
        "/w/p/q/__init__.py": FIT,
        "/w/p/q/b.py": FIT,
        "/w/p/r/d.py": FIT,
    }
    assert homes(text, others, "/w/p/q/main.py") == {home}


@pytest.mark.parametrize(
    "text",
    [
        "from missing import train\ntrain()",
        "from .missing import train\ntrain()",
        "from ... import train\ntrain()",
    ],
)
def test_what_is_missing_is_unknown(text: str) -> None:
    assert homes(text, {}) == set()


def test_a_library_is_not_looked_for_in_the_workspace() -> None:
    script = linked("import tensorflow as tf", {"/w/tensorflow/__init__.py": FIT})
    assert script.workspace is not None
    assert script.workspace.reachable == [script]


def test_modules_are_not_looked_for_above_the_root() -> None:
    others = {"/w/pyproject.toml": "", "/a.py": FIT}
    assert homes("from a import train\ntrain()", others) == set()


def test_reachable_scripts_nearest_first() -> None:
    script = linked("import a", {"/w/a.py": "import b.c", "/w/b/__init__.py": "", "/w/b/c.py": "import main"})
    assert script.workspace is not None
    found = [each.path for each in script.workspace.reachable]
    assert found == ["/w/main.py", "/w/a.py", "/w/b/__init__.py", "/w/b/c.py"]


@pytest.mark.parametrize(
    ("added", "home"),
    [
        ("sys.path.insert(0, 'a')\nsys.path.insert(0, 'b')", "/w/b/one.py"),
        ("sys.path.insert(0, 'a')\nsys.path.insert(1, 'b')", "/w/a/one.py"),
        ("sys.path.append('a')\nsys.path.append('b')", "/w/a/one.py"),
        ("sys.path.insert(1, 'c')\nsys.path.append('b')", "/w/c/one.py"),
    ],
)
def test_the_directory_that_comes_first_on_the_path_is_looked_in_first(added: str, home: str) -> None:
    others = dict.fromkeys(("/w/a/one.py", "/w/b/one.py", "/w/c/one.py", "/w/c/two.py", "/w/two.py"), FIT)
    assert homes(f"import sys\n{added}\nimport one\none.train()", others) == {home}
    assert homes(f"import sys\n{added}\nimport two\ntwo.train()", others) == {"/w/two.py"}


def test_imports_for_type_checkers_are_not_run() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a"
    script = linked(text, {"/w/a.py": FIT})
    assert script.workspace is not None
    assert script.workspace.reachable == [script]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("from main import train\ntrain()", {}),
        ("import main\nmain.train()", {}),
        ("from main import *\ntrain()", {}),
        ("from a import train\ntrain()", {"a.py": "from b import train", "b.py": "from a import train"}),
        ("from a import *\ntrain()", {"a.py": "from b import *", "b.py": "from a import *"}),
        (
            "from a import M\nM().fit(x)",
            {"a.py": "from b import N\nclass M(N): ...", "b.py": "from a import M as N"},
        ),
        ("import a\na.train()", {"a.py": "def train(:"}),
        ("import a\na.train()", {"a.py": ""}),
        ("from a import a\na.train()", {"a.py": "import a"}),
        (
            "from a.b.c import d\nd()",
            {"a/__init__.py": "from . import b", "a/b/__init__.py": "from .. import a"},
        ),
        ("from . import main\nmain.train()", {}),
        ("import a\nx = a.x.y.z\nx.fit(y, epochs=1)", {"a.py": "from main import x"}),
        ("from a import *\nfrom b import *\nf()", {"a.py": "f = g", "b.py": "from a import f as g\nf = g"}),
    ],
)
def test_odd_imports_are_survived(text: str, others: dict[str, str]) -> None:
    program = program_of(f"import tensorflow as tf\n{text}\n", others)
    for rule in LOOP_RULES:
        list(rule.check(program))
    assert program.fact(Loops).summary(None) == frozenset() or program.fact(Loops).all


def test_a_class_hierarchy_through_files() -> None:
    others = {
        "base.py": "import tensorflow as tf\nclass Base(tf.keras.Model): ...",
        "net.py": "from base import Base\nclass Net(Base):\n    def run(self):\n        super().all()",
    }
    program = program_of("from net import Net\nNet().fit(x)", others)
    assert [loop.call for loop in program.fact(Loops).all] == ["Net().fit(...)"]


def test_super_and_inherited_constructors_are_followed() -> None:
    others = {
        "base.py": "class Base:\n    def __init__(self, model):\n        self.model = model\n"
        "    def train(self):\n        self.model.fit(x)\n",
        "mid.py": "from base import Base\nclass Mid(Base):\n    def __init__(self, net):\n"
        "        super().__init__(net)\n    def train(self):\n        super().train()\n",
    }
    text = "import tensorflow as tf\nfrom mid import Mid\nMid(tf.keras.Sequential()).train()"
    (loop,) = program_of(text, others).fact(Loops).all
    assert loop.certain
    assert loop.script.path == "/workspace/base.py"


@pytest.mark.parametrize(
    "style", ["import m{0}", "from m{0} import *", "from m{0} import f{0}, train as t{0}"]
)
def test_many_files_that_import_each_other_take_bounded_time(style: str) -> None:
    number, near = 300, 12
    body = "import tensorflow as tf\nx = 0\ndef f{0}(a):\n    return f{1}(a)\ndef train():\n    f{0}(x)\n"
    others = {}
    for index in range(number):
        modules = [(index + step) % number for step in range(1, near)]
        imports = "".join(f"{style.format(module)}\n" for module in modules)
        others[f"m{index}.py"] = imports + body.format(index, modules[0])
    imports = "".join(f"{style.format(module)}\n" for module in range(number))
    program = program_of(
        f"{imports}\nimport tensorflow as tf\nmodel = f0(1)\nmodel.fit(x, epochs=2)\n", others
    )
    start = time.process_time()
    for rule in LOOP_RULES:
        list(rule.check(program))
    assert time.process_time() - start < 10


def test_a_package_that_imports_everything() -> None:
    others = {f"p/m{index}.py": f"from . import *\nfrom p import m{index + 1}\n{FIT}" for index in range(50)}
    others["p/__init__.py"] = "".join(
        f"from .m{index} import *\nfrom . import m{index}\n" for index in range(50)
    )
    program = program_of("import tensorflow as tf\nimport p\np.train()\n", others)
    start = time.process_time()
    for rule in LOOP_RULES:
        list(rule.check(program))
    assert time.process_time() - start < 10
