"""Entries of libraries: their effect on the conversion of a script made from the entry itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import trainshift
from trainshift.core.choices import Choices
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.engine.conversion import Conversion, Status, convert
from trainshift.engine.settings import SettingsError, read_settings
from trainshift.libraries import api, entries, toml
from trainshift.libraries.api import read_signature
from trainshift.libraries.entries import Entry, Role
from trainshift.libraries.schema import schema
from trainshift.python.names.script import Script, read_script

ALL = [entry for package in entries.packages() for entry in entries.stated(package).values()]
ENTRIES = [entry for entry in ALL if entry.role is not Role.VALUE]
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
FIT = "model.fit(x, y, epochs=2{more})\n"


def full_name(entry: Entry) -> str:
    """A full name that matches the entry."""
    below = entry.pattern
    if below.startswith("*."):
        below = f"part{below[1:]}"
    return f"{entry.package}.{below.replace('*', 'Some')}"


def called(entry: Entry, **given: str) -> str:
    """A call of the entry's member, with its required arguments."""
    signature = read_signature(entry.signature) if entry.signature is not None else None
    for each in signature.parameters if signature is not None else ():
        if each.default is None and each.kind in ("positional", "keyword"):
            given.setdefault(each.name, "1.0")
    return f"{full_name(entry)}({', '.join(f'{name}={value}' for name, value in given.items())})"


def script(entry: Entry, body: str) -> str:
    return f"import tensorflow as tf\nimport {full_name(entry).rpartition('.')[0]}\n{body}"


def converted(entry: Entry, body: str) -> Conversion:
    found = convert(script(entry, body), choices=Choices(line_length=200))
    assert found.status is Status.CONVERTED, (found.status, found.reason)
    assert not found.withheld
    return found


def refused(entry: Entry, body: str) -> str:
    found = convert(script(entry, body))
    assert found.status is Status.REFUSED
    return found.reason


def model(entry: Entry) -> None:
    body = f"model = {called(entry)}\nmodel.compile(tf.keras.optimizers.SGD(0.1))\n{FIT.format(more='')}"
    if entry.text("step") == "tape":
        assert "its own tape" in refused(entry, body)
    else:
        found = converted(entry, body)
        assert "hvd.DistributedOptimizer(" in found.text or "HvdBroadcast()" in found.text
        assert not [each for each in found.doubts if "Keras model" in each.text]


def optimizer(entry: Entry) -> None:
    if entry.text("averages") == "tape":
        made = called(entry, optimizer="tf.keras.optimizers.legacy.SGD(0.1)")
        body = f"{MODEL}optimizer = {made}\nmodel.compile(optimizer)\n{FIT.format(more='')}"
        assert "averages nothing in fit" in refused(entry, body)
        return
    made = called(entry, learning_rate="0.1")
    found = converted(entry, f"{MODEL}optimizer = {made}\nmodel.compile(optimizer)\n{FIT.format(more='')}")
    assert "learning_rate=0.1 * hvd.size()" in found.text
    assert found.text.count("hvd.size()") == 1 + found.text.count("hvd.rank()::") * 2
    assert "optimizer = hvd.DistributedOptimizer(optimizer)\n" in found.text
    assert entry.text("says") in "\n".join(each.text for each in found.decisions)


def factory(entry: Entry) -> None:
    given = dict.fromkeys(entry.listed("steps"), "100")
    target = "optimizer, schedule" if entry.text("returns") == "pair" else "optimizer"
    made = called(entry, **{entry.text("rate"): "0.1", **given})
    found = converted(entry, f"{MODEL}{target} = {made}\nmodel.compile(optimizer)\n{FIT.format(more='')}")
    assert f"{entry.text('rate')}=0.1 * hvd.size()" in found.text
    assert all(f"{name}=100 / hvd.size()" in found.text for name in given)
    assert "optimizer = hvd.DistributedOptimizer(optimizer)\n" in found.text


def schedule(entry: Entry) -> None:
    given = {**dict.fromkeys(entry.listed("rates"), "0.1"), **dict.fromkeys(entry.listed("steps"), "100")}
    made = f"tf.keras.optimizers.SGD({called(entry, **given)})"
    body = f"{MODEL}optimizer = {made}\nmodel.compile(optimizer)\n{FIT.format(more='')}"
    assert "cannot recreate" in refused(entry, body)
    found = converted(entry, body.replace("SGD", "legacy.SGD"))
    kept = "rate = optimizer.learning_rate\noptimizer = hvd.DistributedOptimizer(optimizer)\n"
    assert f"{kept}optimizer.learning_rate = rate\n" in found.text
    assert all(f"{name}=0.1 * hvd.size()" in found.text for name in entry.listed("rates"))
    assert all(f"{name}=100 / hvd.size()" in found.text for name in entry.listed("steps"))
    assert "/ hvd.size() / hvd.size()" not in found.text


def callback(entry: Entry) -> None:
    body = f"{MODEL}model.compile('sgd')\n{FIT.format(more=f', callbacks=[{called(entry)}]')}"
    if entry.flag("decides") and entry.flag("blind"):
        assert "by its own clock" in refused(entry, body)
        return
    found = converted(entry, body)
    assert not [each for each in found.decisions if "(unknown)" in each.text]
    assert any(entry.text("says") in each.text for each in found.decisions)
    text, element = ("".join(each.split()) for each in (found.text, called(entry)))
    guarded = f"ifhvd.rank()==0:callbacks.append({element})" in text
    assert guarded == (entry.text("ranks") == "root")


def end(entry: Entry, line: str) -> str:
    """The converted form of a line after a training loop."""
    body = f"{MODEL}model.compile('sgd')\n{FIT.format(more='')}model.save('w.h5')\n{line}\n"
    return converted(entry, body).text


def call_of_method(entry: Entry, given: str) -> str:
    """A call of a function, or of an object's method, that matches the entry."""
    *owner, method = full_name(entry).split(".")
    made = [number for number, each in enumerate(owner) if each[:1].isupper() or each in _MAKERS]
    if made:
        owner[made[0]] += "()"
    return f"{'.'.join(owner)}.{method}({given})"


_MAKERS = (
    "connect",
    "client",
    "get_writer",
    "getLogger",
    "get_absl_logger",
    "get_logger",
    "get_absl_handler",
)


def acts(entry: Entry) -> None:
    if entry.package == "shell":
        command(entry)
        return
    given = entry.listed("begins")[0] if entry.listed("begins") else "w.h5"
    # Without a path, it writes to a temporary file of its own.
    path = ", 'a'" if entry.text("returns_path").endswith("[0]") else ""
    line = call_of_method(entry, f"{given!r}{path}")
    assert f"    {line}\n" in end(entry, line)


def command(entry: Entry) -> None:
    """A command line runs on rank 0 only; a download from another machine runs on every rank."""
    words = entry.pattern.replace("*", "zf").replace(".", " ")
    line = f'subprocess.run("{words} old new:place", shell=True)'
    local = f"subprocess.run({[*words.split(), '-v', 'old:place', 'new']!r})"
    body = f"{MODEL}model.compile('sgd')\n{FIT.format(more='')}{line}\n{local}\n"
    found = convert(f"import tensorflow as tf\nimport subprocess\n{body}")
    assert f"\n    {line}\n" in found.text
    assert (f"\n    {local}\n" in found.text) != entry.flag("remote")
    told = [each.text for each in found.decisions if "runs on every rank" in each.text]
    assert len(told) == entry.flag("remote")


def writer_object(entry: Entry) -> None:
    mode = ", mode='w'" if entry.text("mode") else ""
    path = f"{entry.text('path')}=" if entry.text("path") else ""
    made = f"{full_name(entry)}({path}'a'{mode})"
    if entry.text("elsewhere"):
        text = end(entry, f"opened = {made}")
        assert f"='a' if hvd.rank() == 0 else {entry.text('elsewhere')}" in text
        module, _, member = entry.text("elsewhere").partition(".")
        assert not member or f"import {module}\n" in text
    else:
        text = end(entry, f"opened = {made}\nopened.append(1)")
        assert (
            f"opened = {made} if hvd.rank() == 0 else None\nif hvd.rank() == 0:\n    opened.append(1)\n"
            in text
        )
    entered = f"with {made} as opened:\n    pass"
    assert f"\n    with {made} as opened:\n" in end(entry, entered)
    if entry.text("mode").endswith("r"):
        read = f"opened = {full_name(entry)}('a')"
        assert f"\n{read}\n" in end(entry, read)


def tracker(entry: Entry) -> None:
    line = call_of_method(entry, "")
    text = end(entry, line)
    if entry.text("argument"):
        root, elsewhere = entry.text("root") or "None", entry.text("elsewhere")
        told = f"{root} if hvd.rank() == 0 else {elsewhere}"
        told = {"False": "hvd.rank() != 0", "True": "hvd.rank() == 0"}.get(root, told)
        assert f"({entry.text('argument')}={told})" in text
        given = call_of_method(entry, f"{entry.text('argument')}=x")
        assert f"={'x'} if hvd.rank() == 0 else {elsewhere})" in end(entry, given)
    elif entry.text("before"):
        owner = full_name(entry).rpartition(".")[0]
        assert f"{owner}().{entry.text('before')}(hvd.rank() != 0)\n{line}\n" in text
    else:
        assert f"\n    {line}\n" in text
    if entry.flag("context"):
        assert f"with {line} if hvd.rank() == 0 else contextlib.nullcontext():" in end(
            entry, f"with {line}:\n    pass"
        )


def trains(entry: Entry) -> None:
    owner, _, method = full_name(entry).rpartition(".")
    is_method = owner.rpartition(".")[2][:1].isupper()
    body = (
        f"import {owner.rpartition('.')[0]}\n{owner}().{method}(x)\n" if is_method else f"{called(entry)}\n"
    )
    assert entry.text("reason") in refused(entry, body)


def agent(entry: Entry) -> None:
    """Each optimizer averages, however the agent gets it, and all of the agent's variables are broadcast."""
    sgd = "tf.keras.optimizers.SGD(0.1)"
    made = f"{full_name(entry)}(specs, {sgd}, alpha_optimizer={sgd}, beta_optimizer=None)"
    averaged = "hvd_averaged(tf.keras.optimizers.SGD(0.1 * hvd.size()))"
    broadcast = "hvd.broadcast_variables(agent.variables, root_rank=0)\n"
    train = "for _ in range(3):\n    print(agent.train(specs))\n"
    for begins in ("", "agent.initialize()\n"):
        found = converted(entry, f"import mine\nspecs = mine.specs()\nagent = {made}\n{begins}{train}")
        assert f"(specs, {averaged}, alpha_optimizer={averaged}, beta_optimizer=None)" in found.text
        assert f"{begins}{broadcast}" in found.text
        assert convert(found.text, choices=Choices(line_length=200)).text == found.text
    traced = train.replace("agent.train(", "train(")
    found = converted(
        entry,
        f"import mine\nspecs = mine.specs()\nagent = {made}\ntrain = tf.function(agent.train)\n{traced}",
    )
    assert found.text.count(broadcast) == 1
    own = f"class Own({full_name(entry)}):\n    pass\n"
    found = converted(entry, f"import mine\n{own}agent = Own(optimizer={sgd})\n{train}")
    assert averaged in found.text
    assert broadcast in found.text
    assert "cannot see the optimizers" in refused(entry, f"agent = {full_name(entry)}(**given)\n{train}")
    unnamed = f"agents = [{made}]\nagents[0].initialize()\nagents[0].train(specs)\n"
    assert "give the agent a name" in refused(entry, unnamed)


def dataset(entry: Entry) -> None:
    """The remedy is reported, in the words of the library."""
    given = "'name', split='train', shuffle_files=True" if entry.text("seed") else "'name'"
    made = call_of_method(entry, given)
    body = f"data = {made}.batch(8)\n{MODEL}model.compile('sgd')\nmodel.fit(data)\n"
    found = converted(entry, body)
    assert (entry.text("seed") or entry.text("says")) in "\n".join(each.text for each in found.decisions)


def counts(entry: Entry) -> None:
    made = called(entry, **dict.fromkeys(entry.listed("steps"), "100"))
    found = converted(entry, f"{MODEL}counted = {made}\nmodel.compile('sgd')\n{FIT.format(more='')}")
    assert all(f"{name}=100 / hvd.size()" in found.text for name in entry.listed("steps"))


def noted(entry: Entry) -> None:
    line = call_of_method(entry, "")
    found = converted(entry, f"{MODEL}model.compile('sgd')\n{FIT.format(more='')}made = {line}\n")
    assert entry.text("says") in [each.text for each in found.decisions]


def prints(entry: Entry) -> None:
    """Text is printed on rank 0 only, and so is a progress bar, while every rank keeps the iterable."""
    line = call_of_method(entry, "'text'")
    if entry.package == "builtins":
        line = f"{entry.pattern}('text')"
    if entry.text("argument"):
        line = call_of_method(entry, "model.layers")
        body = f"{MODEL}model.compile('sgd')\n{FIT.format(more='')}bar = {line}\n"
        assert f"(model.layers, {entry.text('argument')}=hvd.rank() != 0)" in converted(entry, body).text
    else:
        assert f"    {line}\n" in end(entry, line)


def opener(entry: Entry) -> None:
    """The file is written to the null device on other ranks; a file that is only read is left alone."""
    mode = f", {entry.text('mode')}='w'" if entry.text("mode") else ""
    name = full_name(entry).removeprefix("builtins.")
    text = end(entry, f"opened = {name}({entry.text('path')}='a'{mode})")
    assert f"={'a'!r} if hvd.rank() == 0 else os.devnull".replace("'", '"') in text.replace("'", '"')
    if mode:
        read = f"opened = {name}({entry.text('path')}='a')"
        assert f"\n{read}\n" in end(entry, read)


def draws(entry: Entry) -> None:
    """All ranks draw the same, with a seed, if it draws at all."""
    told = f", {entry.text('told')}=True" if entry.text("told") else ""
    made = f"made = {full_name(entry)}(3{told})\n"
    used = "for part in made.split(x):\n    print(part)\n" if entry.flag("splits") else ""
    if entry.package == "imblearn":
        made += "x, y = made.fit_resample(x, y)\n"
    elif not used:
        made += "x = list(made)[0]\n"
    text = converted(entry, f"{made}{MODEL}model.compile('sgd')\n{FIT.format(more='')}{used}").text
    assert f"{entry.text('seed')}=0" in text


CASES: dict[Role, Callable[[Entry], None]] = {
    Role.MODEL: model,
    Role.OPTIMIZER: optimizer,
    Role.OPTIMIZER_FACTORY: factory,
    Role.SCHEDULE: schedule,
    Role.CALLBACK: callback,
    Role.TRAINS: trains,
    Role.AGENT: agent,
    Role.WRITER: acts,
    Role.MOVES: acts,
    Role.OUTSIDE: acts,
    Role.WRITER_OBJECT: writer_object,
    Role.TRACKER: tracker,
    Role.DATASET: dataset,
    Role.COUNTS: counts,
    Role.NOTED: noted,
    Role.PRINTS: prints,
    Role.OPENER: opener,
    Role.DRAWS: draws,
}


@pytest.mark.parametrize("entry", ENTRIES, ids=full_name)
def test_entry_does_what_it_says(entry: Entry) -> None:
    CASES[entry.role](entry)


_ROLE_OR_TEXT = re.compile(r"\bRole\.(\w+)|\"([^\"\n]*)\"")
WRONG = [
    {},
    {"role": "unheard"},
    {"role": "tracker", "rate": "x"},
    {"role": "callback"},
    {"role": "callback", "ranks": "some"},
    {"role": "trains", "reason": 1},
    {"role": "counts", "signature": "n", "steps": "n"},
    {"role": "outside", "command": "yes"},
    {"role": "optimizer"},
    {"role": "model", "step": "keras"},
    {"role": "writer", "path": 1},
    {"role": "writer", "path": -1},
    {"role": "writer", "path": True},
]


@pytest.mark.parametrize("said", [*(dict(each.data) for each in ALL), *WRONG], ids=str)
def test_the_schema_takes_what_the_settings_take(said: dict[str, object]) -> None:
    is_right = not entries.problem_of_people(said)
    found = jsonschema.Draft7Validator(schema()).is_valid({"acme.tools": {"member": said}})
    assert found == is_right


def test_every_role_and_key_is_read() -> None:
    """Every stated fact is read by some rule."""
    folder = Path(trainshift.__file__).parent
    asked: set[str] = set()
    for path in folder.rglob("*.py"):
        if path.parent.name == "libraries" and path.stem in ("entries", "schema"):
            continue
        asked.update(name for names in _ROLE_OR_TEXT.findall(path.read_text("utf-8")) for name in names)
    used = {entry.role for entry in ENTRIES}
    assert {role.name for role in used} <= asked
    read_by_entries = {"role", "base", "signature", "gives"}
    assert {key for entry in ALL for key in entry.data} - read_by_entries <= asked


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("tracker", "must be a table"),
        ({"role": "traker"}, "needs a role"),
        ({"role": "model"}, 'needs "step"'),
        ({"role": "model", "step": "mine"}, "must have one of"),
        ({"role": "tracker", "rate": "lr"}, 'has no "rate"'),
        ({"role": "schedule", "rates": "rate"}, "of the wrong type"),
    ],
)
def test_wrong_entries_are_told(said: object, wrong: str) -> None:
    assert wrong in entries.problem(said)


def test_star_imports_give_the_members_that_entries_tell_of() -> None:
    found = convert(
        "from shutil import *\nfrom sklearn.model_selection import *\nfrom wandb import *\n"
        "import numpy as np\nimport tensorflow as tf\n\n"
        "init(project='demo')\nx = np.load('x.npy')\na, b = train_test_split(x)\n"
        f"{MODEL}model.compile('sgd')\nmodel.fit(a, a)\ncopyfile('a', 'b')\n"
    )
    assert 'mode=None if hvd.rank() == 0 else "disabled"' in found.text
    assert "train_test_split(x, random_state=0)" in found.text
    assert "if hvd.rank() == 0:\n    copyfile('a', 'b')\n" in found.text


def test_all_ranks_fill_a_book_of_sheets_and_close_it() -> None:
    """Other ranks have theirs in memory: a workbook without a sheet cannot be closed."""
    book = (
        "sheets = pd.ExcelWriter({})\nbold = sheets.book.add_format()\n"
        "pd.DataFrame(history.history).to_excel(sheets)\nsheets.sheets['Sheet1'].set_column(0, 1, 10, bold)\n"
        "sheets.close()\n"
    )
    head = f"import pandas as pd\nimport tensorflow as tf\n\n{MODEL}model.compile('sgd')\n"
    found = convert(f"{head}history = {FIT.format(more='')}{book.format(repr('a.xlsx'))}")
    assert book.format("'a.xlsx' if hvd.rank() == 0 else io.BytesIO()") in found.text
    assert not found.withheld


def test_what_is_used_otherwise_than_by_its_methods_is_not_taken_from_other_ranks() -> None:
    found = convert(
        f"import cv2\nimport tensorflow as tf\n\n{MODEL}model.compile('sgd')\n{FIT.format(more='')}"
        "film = cv2.VideoWriter('a.avi')\nfilm['x'] = 1\nfilm.release()\n"
    )
    assert "film = cv2.VideoWriter('a.avi')\n" in found.text
    assert ["film['x']" in each.text for each in found.withheld] == [True]


def test_files_are_put_into_an_archive_by_rank_0() -> None:
    found = convert(
        f"import tarfile\nimport tensorflow as tf\n\n{MODEL}model.compile('sgd')\n{FIT.format(more='')}"
        "packed = tarfile.open('a.tgz', 'w:gz')\npacked.add('a.h5')\npacked.close()\n"
    )
    assert "\nif hvd.rank() == 0:\n    packed.add('a.h5')\npacked.close()\n" in found.text


OWN = """
[libraries."acme.tracking"]
"start" = { role = "tracker", argument = "enabled", root = "True", elsewhere = "False" }
"log_*" = { role = "tracker" }
"Run.export" = { role = "writer" }

[libraries."acme.training"]
"make" = { role = "optimizer-factory", signature = "peak, steps", rate = "peak", steps = ["steps"] }
"Report" = { role = "callback", ranks = "root" }
"Net" = { role = "model", step = "tape" }

[libraries."acme.training".Adam8]
role = "optimizer"
base = "tensorflow.keras.optimizers.legacy.Adam"
signature = "blocks, learning_rate=0.01, **kwargs"

[libraries."acme.training".Steps]
role = "schedule"
signature = "peak, every, *, low=0.0"
rates = ["peak", "low"]
steps = ["every"]
"""
SCRIPT = """import tensorflow as tf
from acme.training import Report, make
from acme import tracking

tracking.start("demo")
run = tracking.Run()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = make(0.1, steps=100)
model.compile(optimizer)
model.fit(x, y, epochs=2, callbacks=[Report()])
tracking.log_metric("loss", 1.0)
run.export("model")
"""


def test_people_tell_of_their_own_libraries() -> None:
    settings = read_settings(toml.loads(OWN), "trainshift.toml")
    found = convert(SCRIPT, choices=settings.choices)
    assert found.status is Status.CONVERTED, found.reason
    assert 'tracking.start("demo", enabled=hvd.rank() == 0)\n' in found.text
    assert '\n    tracking.log_metric("loss", 1.0)\n' in found.text
    assert '\n    run.export("model")\n' in found.text
    assert "if hvd.rank() == 0:\n    callbacks.append(Report())\n" in found.text
    assert not found.withheld
    assert "optimizer = make(0.1 * hvd.size(), steps=100 / hvd.size())\n" in found.text
    assert "optimizer = hvd.DistributedOptimizer(optimizer)\n" in found.text


def test_classes_of_people_s_own_are_optimizers_and_schedules() -> None:
    settings = read_settings(toml.loads(OWN), "trainshift.toml")
    head = f"import tensorflow as tf\nfrom acme.training import Adam8, Steps\n{MODEL}"
    for made, scaled in (
        ("Adam8(4, 0.1)", "Adam8(4, 0.1 * hvd.size())"),
        ("Adam8(4)", "Adam8(4, learning_rate=0.01 * hvd.size())"),
        (
            "Adam8(4, Steps(0.1, 300, low=0.01))",
            "Adam8(4, Steps(0.1 * hvd.size(), 300 / hvd.size(), low=0.01 * hvd.size()))",
        ),
        (
            "tf.keras.optimizers.legacy.SGD(Steps(0.1, 300))",
            "tf.keras.optimizers.legacy.SGD(Steps(0.1 * hvd.size(), 300 / hvd.size(), low=0.0 * hvd.size()))",
        ),
    ):
        text = f"{head}optimizer = {made}\nmodel.compile(optimizer)\n{FIT.format(more='')}"
        choices = replace(settings.choices, line_length=120)
        found = convert(text, choices=choices)
        assert found.status is Status.CONVERTED, found.reason
        assert not found.withheld
        assert f"optimizer = {scaled}\n" in found.text
        assert "optimizer = hvd.DistributedOptimizer(optimizer)\n" in found.text
        assert convert(found.text, choices=choices).text == found.text


def test_each_project_has_its_own_classes() -> None:
    text = f"import tensorflow as tf\nfrom acme.training import Adam8\n{MODEL}optimizer = Adam8(4, 0.1)\n"
    text += f"model.compile(optimizer)\n{FIT.format(more='')}"
    known = read_settings(toml.loads(OWN), "trainshift.toml")
    other = read_settings(toml.loads(OWN.replace('"blocks, learning', '"learning')), "trainshift.toml")
    forgotten = read_settings(toml.loads('[libraries."acme.training"]\n'), "trainshift.toml")
    for settings in (known, forgotten, other, known):
        found = convert(text, choices=settings.choices)
        assert ("0.1 * hvd.size()" in found.text) == (settings is known)


def test_what_is_asked_later_goes_by_the_libraries_of_its_own_program() -> None:
    text = f"import tensorflow as tf\nfrom acme.training import Adam8\n{MODEL}optimizer = Adam8(4, 0.1)\n"
    text += f"model.compile(optimizer)\n{FIT.format(more='')}"
    choices = read_settings(toml.loads(OWN), "trainshift.toml").choices
    script = read_script(text)
    assert isinstance(script, Script)
    known, unknown = Program(script, choices=choices), Program(script)
    for program in (known, unknown, known):
        program.fact(Libraries)
        is_own = api.is_subclass("acme.training.Adam8", *api.OPTIMIZERS)
        assert is_own == (program is known)


def test_models_of_people_s_own_are_refused() -> None:
    settings = read_settings(toml.loads(OWN), "trainshift.toml")
    text = "import tensorflow as tf\nfrom acme.training import Net\n\nmodel = Net()\n"
    text += f"model.compile('sgd')\n{FIT.format(more='')}"
    assert "its own tape" in convert(text, choices=settings.choices).reason


def test_wrong_settings_name_their_place() -> None:
    with pytest.raises(SettingsError, match=r'libraries."acme"."log".*needs a role'):
        read_settings(toml.loads('[libraries.acme]\nlog = { role = "logs" }'), "trainshift.toml")
    wrong = 'Adam = { role = "optimizer", signature = "", base = "acme.Base" }'
    with pytest.raises(SettingsError, match="not a known class of TensorFlow"):
        read_settings(toml.loads(f"[libraries.acme]\n{wrong}"), "trainshift.toml")
    with pytest.raises(SettingsError, match=r"must be the name of a module"):
        read_settings(toml.loads('[libraries."acme tracking"]\n'), "trainshift.toml")
