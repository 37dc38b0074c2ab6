"""Facts in the entries of libraries: the effect of each in a script made from the entry itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainshift.core.program import Program
from trainshift.engine.conversion import Conversion, Status, convert
from trainshift.libraries import entries
from trainshift.libraries.divergence import KINDS, CauseKind
from trainshift.libraries.entries import Entry, Role
from trainshift.python.names.occurrence import Occurrence
from trainshift.python.names.script import Script, read_script
from trainshift.python.values.effects import Effect, SideEffect
from trainshift.training.loops.call_effects import Effects
from trainshift.training.uniformity.uniformity import Uniformity

STATED = [
    (entry, key)
    for package in entries.packages()
    for entry in entries.stated(package).values()
    for key in sorted(entries.FACTS & set(entry.data))
]
LOOP = """model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('sgd')
for step in range(100):
    model.train_on_batch(x, y)
    {line}
"""
FIT = """model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('sgd')
model.fit(x, y, epochs=2{more})
"""
GRAPH = """x = tf.compat.v1.placeholder(tf.float32, [None])
loss = tf.reduce_mean((x * tf.compat.v1.get_variable("w", [])) ** 2)
train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
with tf.compat.v1.{session} as sess:
    {ready}
    for step in range(100):
        sess.run(train, {{x: [1.0]}})
        {line}
"""


def in_session(line: str) -> str:
    ready = "sess.run(tf.compat.v1.global_variables_initializer())"
    return GRAPH.format(session="Session()", line=line, ready=ready)


def full_name(entry: Entry) -> str:
    """A name that matches the entry, and has no entry of its own."""
    below = entry.pattern
    if below.startswith("*."):
        below = f"tensorflow{below[1:]}"
    name = f"{entry.package}.{below.replace('*', 'Some')}"
    return name.removeprefix("builtins.").replace("Some", "abs") if entry.package == "builtins" else name


def headed(entry: Entry, body: str) -> str:
    name = full_name(entry)
    head = f"import {name.rpartition('.')[0]}\n" if "." in name else ""
    return f"import random\nimport tensorflow as tf\nimport horovod.tensorflow as hvd\n{head}{body}"


def converted(entry: Entry, body: str) -> Conversion:
    found = convert(headed(entry, body).replace("import horovod.tensorflow as hvd\n", ""))
    assert found.status is Status.CONVERTED, (found.status, found.reason)
    assert not found.withheld
    return found


def program_of(entry: Entry, body: str) -> tuple[Program, Script]:
    script = read_script(headed(entry, body))
    assert isinstance(script, Script)
    return Program(script), script


def effect(entry: Entry, line: str = "done = {name}()") -> SideEffect | None:
    """The own side effect of the last call in a line."""
    program, script = program_of(entry, line.format(name=full_name(entry)))
    own = [site for site in script.sites if site.scope.kind == "module"]
    (last,) = (site for site in own if site.node is getattr(site.statement.node, "value", None))
    return program.fact(Effects).of_call(last)


def causes(entry: Entry, value: str) -> set[CauseKind]:
    """The reasons why a value may differ between ranks."""
    program, script = program_of(entry, f"value = {value}\nprint(value)\n")
    (site,) = script.sites_named("print")
    at = Occurrence(site.node.args[0], site.scope, site.statement)
    return {each.kind for each in program.fact(Uniformity).causes(at)}


def acts(entry: Entry) -> None:
    found = effect(entry)
    assert found is not None
    assert found.effect is Effect.ACTS
    assert found.what == entry.text("acts")


def applies(entry: Entry) -> None:
    assert causes(entry, f"{full_name(entry)}(lambda *_: random.random())") == {CauseKind.DRAW}


def calls_nothing(entry: Entry) -> None:
    given = "def leave():\n    exit()\ndone = {name}(leave)"
    assert effect(entry, given) is None or effect(entry, given) == effect(entry)
    assert effect(entry, given.replace("{name}", "sorted")) is not None


def collective(entry: Entry) -> None:
    found = effect(entry)
    assert found is not None
    assert "all ranks must make together" in found.what


def deviceless(entry: Entry) -> None:
    """It may come before Horovod's set-up, which follows the imports."""
    line = f"{full_name(entry)}()\nimport numpy\n"
    text = converted(entry, f"{line}{FIT.format(more='')}").text
    assert text.index(line) < text.index("hvd.init()")
    other = line.replace(full_name(entry), "tf.zeros")
    text = converted(entry, f"{other}{FIT.format(more='')}").text
    assert text.index(other) > text.index("hvd.init()")


def differs(entry: Entry) -> None:
    assert causes(entry, f"{full_name(entry)}()") == {KINDS[entry.text("differs")]}


def graphless(entry: Entry) -> None:
    """No rank needs it for the others' graphs."""
    line = f"print({full_name(entry)}())"
    text = converted(entry, in_session(line)).text
    assert f"if hvd.rank() == 0:\n            {line}\n" in text


def hook(entry: Entry) -> None:
    made = f"{full_name(entry)}(10)"
    session = f"train.MonitoredTrainingSession(hooks=[{made}])"
    text = converted(entry, GRAPH.format(session=session, line="pass", ready="pass")).text
    assert f"if hvd.rank() == 0: hooks.append({made})" in " ".join(text.split())


def length(entry: Entry) -> None:
    """The argument that decides the length of the result is the same on all ranks."""
    given = "count" if entry.text("length") == "counts" else "range(count)"
    body = f"count = random.randint(1, 5)\n{LOOP}".replace("range(100)", f"{full_name(entry)}({given})")
    told = [each for each in converted(entry, body.format(line="pass")).decisions if each.rule == "HV19"]
    assert told


def level(entry: Entry) -> None:
    line = f"{full_name(entry)}('INFO')"
    assert f"if hvd.rank() == 0:\n    {line}\n" in converted(entry, f"{FIT.format(more='')}{line}\n").text


def makes_files(entry: Entry) -> None:
    found = effect(entry)
    assert found is not None
    assert found.effect is Effect.FILES


def pure(entry: Entry) -> None:
    """A member without another entry only returns a value."""
    assert effect(entry, "done = {name}(1)".replace("{name}", full_name(entry))) is None


def queues(entry: Entry) -> None:
    found = effect(entry, "done = {name}().get()")
    assert found is not None
    assert found.effect is Effect.ACTS


def reading(entry: Entry, path: str) -> str:
    """A call that reads a path."""
    name = entry.text("reads")
    if name == "self":
        return f"{entry.package}.Path({path}).{entry.pattern.rpartition('.')[2]}('*')"
    return f"{full_name(entry)}({name}={path})"


def lists(entry: Entry) -> None:
    """A folder contains the files that only rank 0 writes when the others list it."""
    line = reading(entry, "'w'")
    written = "with open(f'w/{len(x)}.txt', 'w') as opened:\n    opened.write('a')\n"
    text = converted(entry, f"{FIT.format(more='')}{written}read = list({line})\n").text
    assert f"hvd.broadcast(0, root_rank=0)  # wait for rank 0\nread = list({line})\n" in text


def reads(entry: Entry) -> None:
    """A path that only rank 0 writes exists when the others read it."""
    line = reading(entry, "path")
    written = "path = 'w.txt'\nwith open(path, 'w') as opened:\n    opened.write('a')\n"
    text = converted(entry, f"{FIT.format(more='')}{written}read = {line}\n").text
    assert f"hvd.broadcast(0, root_rank=0)  # wait for rank 0\nread = {line}\n" in text


def removes(entry: Entry) -> None:
    """Rank 0 removes a file after all ranks have read it."""
    name = full_name(entry)
    line = f"{name}('w.npy', 'v.npy')"
    if entry.package == "pathlib":
        line = f"pathlib.Path('w.npy').{entry.pattern.rpartition('.')[2]}('v.npy')"
    body = f"import numpy\nread = numpy.load('w.npy')\n{line}\n{FIT.format(more='')}"
    text = converted(entry, body).text
    assert f"hvd.broadcast(0, root_rank=0)  # wait for readers\nif hvd.rank() == 0:\n    {line}\n" in text


def fills(entry: Entry) -> None:
    """The others wait where rank 0 unpacks an archive without a destination."""
    position = int(entry.text("fills").partition(".")[0])
    line = f"{full_name(entry)}({', '.join(['name'] * position)})"
    text = converted(entry, f"name = 'x.zip'\n{line}\n{FIT.format(more='')}").text
    assert f"if hvd.rank() == 0:\n    {line}\nhvd.broadcast(0, root_rank=0)  # wait for rank 0\n" in text


def returns_path(entry: Entry) -> None:
    """Every rank goes on with the path that rank 0's call returns."""
    name = full_name(entry)
    target = "path, _" if entry.text("returns_path").endswith("[0]") else "path"
    body = f"{target} = {name}('a.npy', 'b.npy')\nopened = open(path)\n{FIT.format(more='')}"
    text = converted(entry, body).text
    assert f"if hvd.rank() == 0:\n    {name}('a.npy', 'b.npy')\npath = 'b.npy'\n" in text


def stays(entry: Entry) -> None:
    found = converted(entry, LOOP.format(line=f"{full_name(entry)}()"))
    assert [each for each in found.decisions if entry.text("stays") in each.text]


def summary(entry: Entry) -> None:
    found = effect(entry)
    assert found is not None
    assert found.what == "writes a summary"


def unseen(entry: Entry) -> None:
    found = effect(entry)
    assert found is not None
    assert found.effect is Effect.UNKNOWN


def verbose(entry: Entry) -> None:
    """It shows text by default, or only on request."""
    name = full_name(entry)
    loud = f"shown = {name}(verbose=1)\n"
    told = "verbose=1 if hvd.rank() == 0 else 0"
    text = converted(entry, f"{FIT.format(more='')}{loud}").text
    assert told in text.partition("shown = ")[2]
    plain = converted(entry, f"{FIT.format(more='')}shown = {name}()\n").text
    assert ("verbose=" in plain.partition("shown = ")[2]) == (entry.text("verbose") == "1")


def writes(entry: Entry) -> None:
    made = f"{full_name(entry)}('logs')"
    for method in entry.listed("writes"):
        line = f"writer.{method}(1)"
        body = in_session(line).replace("with", f"writer = {made}\nwith", 1)
        text = converted(entry, body).text
        assert f"{made} if hvd.rank() == 0 else None" in " ".join(text.split())
        assert f"if hvd.rank() == 0:\n            {line}\n" in text


CASES: dict[str, Callable[[Entry], None]] = {
    "acts": acts,
    "applies": applies,
    "calls_nothing": calls_nothing,
    "collective": collective,
    "deviceless": deviceless,
    "differs": differs,
    "fills": fills,
    "graphless": graphless,
    "hook": hook,
    "length": length,
    "level": level,
    "lists": lists,
    "makes_files": makes_files,
    "pure": pure,
    "queues": queues,
    "reads": reads,
    "removes": removes,
    "returns_path": returns_path,
    "stays": stays,
    "summary": summary,
    "unseen": unseen,
    "verbose": verbose,
    "writes": writes,
}


@pytest.mark.parametrize(
    ("entry", "key"), STATED, ids=lambda each: each if isinstance(each, str) else full_name(each)
)
def test_a_fact_is_heeded(entry: Entry, key: str) -> None:
    CASES[key](entry)


def test_every_fact_has_a_case_and_an_entry() -> None:
    assert set(CASES) == entries.FACTS == {key for _, key in STATED}


def test_what_only_gives_a_value_states_something() -> None:
    for package in entries.packages():
        for entry in entries.stated(package).values():
            assert entry.role is not Role.VALUE or entries.FACTS & set(entry.data), full_name(entry)


ORBIT = """import orbit


class Trainer(orbit.StandardTrainer):
    def train_step(self, iterator):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x) - y) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))


net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
Trainer(data).train(tf.constant(100))
"""
CLIPPED = """import gradclip

net = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.SGD(0.1)
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(net(x))
gradclip.apply(opt, tape.gradient(loss, net.trainable_variables), net.trainable_variables)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ORBIT, "Orbit takes the steps itself"),
        (CLIPPED, "cannot see how gradclip.apply(...) takes its steps"),
    ],
)
def test_what_takes_the_steps_elsewhere_is_named(text: str, reason: str) -> None:
    """A method that a class of the script inherits, and a function that gets the optimizer."""
    found = convert(f"import tensorflow as tf\n{text}")
    assert found.status is Status.REFUSED
    assert reason in found.reason


@pytest.mark.parametrize(
    "made",
    ["import fsspec\nfs = fsspec.filesystem('file')", "import s3fs\nfs = s3fs.S3FileSystem()"],
    ids=["fsspec", "s3fs"],
)
def test_rank_0_asks_a_file_system_for_all_ranks(made: str) -> None:
    script = f"""{made}
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
for epoch in range(9):
    if fs.exists("stop"):
        break
    model.fit(x, y)
"""
    assert 'if hvd.broadcast_object(bool(fs.exists("stop")), root_rank=0):' in convert(script).text
