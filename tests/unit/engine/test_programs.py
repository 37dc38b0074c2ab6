"""The effects of programs on files that they share."""

from __future__ import annotations

import posixpath
import re

import pytest

from trainshift.engine.analysis import ALL_RULES
from trainshift.engine.checking import check
from trainshift.engine.claims import Claims, KeptClaims, told_apart
from trainshift.engine.conversion import Status, convert_program
from trainshift.engine.incremental import Live
from trainshift.engine.programs import Programs
from trainshift.engine.settings import Settings, Severity
from trainshift.engine.workspace import ParsedFiles, files_in_memory, linked
from trainshift.python.names.reachability import Reachability, idle_scopes
from trainshift.python.source.source import Source

NET = """\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD({rate})
model.compile(optimizer, "mse")
"""
STARRED = """\
from ops import *

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)


def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


step(tf.ones([8, 3]))
"""
SHARED = """\
import tensorflow as tf
import horovod.tensorflow as hvd


def train(model, x, y):
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1 * hvd.size())), "mse")
    model.fit(x[hvd.rank() :: hvd.size()], y[hvd.rank() :: hvd.size()])


def keep(model):
    model.save_weights("model.h5")
"""
USING = """import numpy as np
import horovod.tensorflow as hvd
import tensorflow as tf
from shared import keep, train

hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
hvd.broadcast_variables(model.variables, root_rank=0)
train(model, np.load("x.npy"), np.load("y.npy"))
"""
TRAIN = "from net import model\n\nmodel.fit([1.0], [1.0])\n"


def test_no_other_program_is_read_for_one_that_is_refused() -> None:
    """It would take long, and does not matter then."""
    texts = {
        "/p/net.py": NET.format(rate=0.1),
        "/p/train.py": "from net import model\nmodel.fit([[1.0]], [[1.0]])\n",
        "/p/other.py": "from net import model\nmodel.fit([[1.0]], [[1.0]])\n",
    }

    def asked(text: str) -> list[str]:
        files, starts = files_in_memory({**texts, "/p/train.py": text}), []

        class Noting(KeptClaims):
            def of(self, start: str, rules: frozenset[str]) -> Claims | None:
                starts.append(start)
                return super().of(start, rules)

        convert_program(text, "/p/train.py", files, claims=Noting(files))
        return starts

    assert asked(texts["/p/train.py"]) == ["/p/other.py"]
    hidden = texts["/p/train.py"].replace("[[1.0]])", "[[1.0]], **options)")
    assert asked(f"options = dict(callbacks=made())\n{hidden}") == []


def test_claims_are_kept_while_the_files_of_their_program_stay() -> None:
    texts = {"/p/net.py": NET.format(rate=0.1), "/p/train.py": TRAIN, "/p/other.py": "print(1)\n"}
    names = frozenset(map(posixpath.basename, texts))
    files = ParsedFiles(texts.get, lambda folder: names if folder == "/p" else frozenset())
    claims = KeptClaims(files)
    first = claims.of("/p/train.py", ALL_RULES)
    assert first is not None
    assert {path for path, _, _ in first.wanted} == {"/p/net.py"}

    texts["/p/other.py"] = "print(2)\n"
    files.forget("/p/other.py", is_edit=True)
    assert claims.of("/p/train.py", ALL_RULES) is first

    texts["/p/net.py"] = NET.format(rate=0.25)
    files.forget("/p/net.py", is_edit=True)
    second = claims.of("/p/train.py", ALL_RULES)
    assert second is not None
    assert second.wanted.keys() != first.wanted.keys()


def test_a_program_is_asked_about_few_rules_first_and_about_all_then() -> None:
    """A package with thirty start files would take half a minute if each were analyzed whole."""
    texts = {"/p/net.py": NET.format(rate=0.1), "/p/train.py": TRAIN}
    claims = KeptClaims(files_in_memory(texts))
    whole = KeptClaims(files_in_memory(texts)).of("/p/train.py", ALL_RULES)
    assert whole is not None
    rules = sorted({rule for _, _, rule in whole.wanted})
    assert len(rules) > 1
    first = claims.of("/p/train.py", frozenset(rules[:1]))
    assert first is not None
    assert first.wanted == {at: each for at, each in whole.wanted.items() if at[2] == rules[0]}
    assert {at for at in first.left if at[0] == "/p/net.py"} == {
        at for at in whole.left if at[0] == "/p/net.py"
    }
    assert claims.of("/p/train.py", frozenset(rules[1:])) == whole
    assert claims.of("/p/train.py", ALL_RULES) == whole


def test_a_module_that_trains_when_started_is_part_of_the_programs_that_import_it() -> None:
    net = NET.format(rate=0.1)
    texts = {
        "/p/net.py": f"{net}if __name__ == '__main__':\n    model.fit([[1.0]], [[1.0]])\n",
        "/p/one.py": TRAIN,
        "/p/two.py": TRAIN,
    }
    programs = Programs(files_in_memory(texts))
    assert programs.starts("/p/net.py") == ["/p/net.py"]
    assert programs.containing("/p/net.py") == ["/p/net.py", "/p/one.py", "/p/two.py"]


def test_a_star_import_at_the_top_names_tensorflow() -> None:
    texts = {"/p/ops.py": "import tensorflow as tf\n", "/p/train.py": STARRED}
    files = ParsedFiles(texts.get, lambda folder: frozenset({"ops.py", "train.py"} if folder == "/p" else ()))
    result = convert_program(STARRED, "/p/train.py", files).text
    assert "import tensorflow" not in result
    assert "with tf.init_scope():" in result
    assert result.index("from ops import *") < result.index("import horovod.tensorflow as hvd")


def test_a_file_that_programs_share_shows_the_hazards_of_each() -> None:
    guarded = f"{USING}if hvd.rank() == 0:\n    keep(model)\n"
    texts = {"/p/shared.py": SHARED, "/p/one.py": f"{USING}keep(model)\n", "/p/two.py": guarded}
    files = files_in_memory(texts)
    diagnostics = check(SHARED, path="/p/shared.py", files=files).diagnostics
    found = [each for each in diagnostics if each.severity is Severity.WARNING]
    assert [(each.region.line, each.code) for each in found] == [(7, "HZ14"), (11, "HZ20")]
    assert [each.message.partition(" It concerns ")[2] for each in found] == ["", "the program of one.py."]


def test_the_hazards_of_each_of_many_programs_are_told() -> None:
    guarded = f"{USING}if hvd.rank() == 0:\n    keep(model)\n"
    texts = {"/p/shared.py": SHARED, "/p/z.py": f"{USING}keep(model)\n"}
    texts |= {f"/p/p{number}.py": guarded for number in range(8)}
    found = check(SHARED, path="/p/shared.py", files=files_in_memory(texts)).diagnostics
    messages = [each.message for each in found if each.code == "HZ20"]
    assert [each.partition(" It concerns ")[2] for each in messages] == ["the program of z.py."]


def test_a_conversion_says_that_not_all_files_were_searched_for_programs_that_share_one() -> None:
    texts = {"/p/net.py": NET.format(rate=0.1), "/p/train.py": TRAIN, "/p/other.py": "import os\n"}

    def doubts() -> list[str]:
        files = files_in_memory(texts)
        return [each.text for each in convert_program(TRAIN, "/p/train.py", files).doubts]

    assert not any("too many files" in each for each in doubts())
    texts |= {f"/p/data/m{number}.py": "" for number in range(5000)}
    texts["/p/further/start.py"] = TRAIN
    assert any("too many files" in each for each in doubts())


def test_a_check_says_that_not_all_files_were_searched_for_programs_that_use_one() -> None:
    network = NET.format(rate=0.1)
    texts = {"/p/net.py": network, "/p/train.py": TRAIN, "/p/util.py": "import os\n"}

    def codes(path: str, settings: Settings | None = None) -> list[str]:
        found = check(texts[path], settings, path, files_in_memory(texts)).diagnostics
        return [each.code for each in found if each.code.startswith("TS")]

    assert codes("/p/net.py") == []
    texts |= {f"/p/data/m{number}.py": "" for number in range(5000)}
    texts["/p/further/start.py"] = TRAIN
    assert codes("/p/net.py") == ["TS05"]
    edited = Live("/p/net.py", files_in_memory(texts)).in_full(Source(network), Settings())
    assert "TS05" in {each.code for each in edited.diagnostics}
    assert codes("/p/util.py") == []
    assert (
        codes("/p/net.py", Settings(ignore=("TS05",))) == codes("/p/net.py", Settings(ignore=("HZ",))) == []
    )
    # A file that starts a program is judged by that program alone.
    texts["/p/main.py"] = f"{TRAIN}\nif __name__ == '__main__':\n    print('done')\n"
    assert codes("/p/main.py") == []
    texts["/p/net.py"] = f"# trainshift: ignore-file[TS05]\n{network}"
    assert codes("/p/net.py") == []


def test_the_program_of_a_file_is_found_through_any_number_of_importers() -> None:
    texts = {f"/p/m{number}.py": f"from m{number - 1} import model\n" for number in range(1, 220)}
    texts |= {
        "/p/m0.py": NET.format(rate=0.1),
        "/p/train.py": "from m219 import model\n\nmodel.fit([1.0], [1.0])\n",
    }
    assert Programs(files_in_memory(texts)).starts("/p/m0.py") == ["/p/train.py"]


NETS = """\
import tensorflow as tf

{imports}


class {name}(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.net = tf.keras.layers.Dense(1)
        self.optimizer_used = tf.keras.optimizers.SGD(0.1)

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.net(x) ** 2)
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer_used.apply_gradients(zip(grads, self.net.trainable_variables))


def train(net):
    for x in tf.data.Dataset.from_tensor_slices(tf.ones([8, 3])).batch(2):
        net.step(x)
    show("trained")


if __name__ == "__main__":
    train({name}())
"""
SHOW = """\
def show(name):
    if "cache" not in globals():
        print(name)


def compare():
    from second import Second

    print(Second().net)


if __name__ == "__main__":
    show("all")
"""


def test_a_program_does_not_run_a_file_that_only_unused_functions_import() -> None:
    texts = {
        "/p/first.py": NETS.format(imports="from show import show", name="First"),
        "/p/second.py": NETS.format(imports="from show import show", name="Second"),
        "/p/show.py": SHOW,
    }
    converted = convert_program(texts["/p/first.py"], "/p/first.py", files_in_memory(texts))
    assert converted.status is Status.CONVERTED
    assert [each.path for each in converted.files if each.edits] == ["/p/first.py", "/p/show.py"]


TRAINER = """\
import tensorflow as tf


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = tf.keras.optimizers.SGD(0.1)

    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.net(x) ** 2)
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))

    def fit(self, data):
        for x in data:
            self.step(x)

    def predict(self, x):
        return self.net(x)
"""
STARTING = """\
import tensorflow as tf
from trainer import Trainer

trainer = Trainer(tf.keras.Sequential([tf.keras.layers.Dense(1)]))
{calls}
"""


def test_a_program_that_only_predicts_with_a_trainer_has_nothing_to_convert() -> None:
    texts = {
        "/p/trainer.py": TRAINER,
        "/p/train.py": STARTING.format(calls="trainer.fit(tf.data.Dataset.from_tensors(tf.ones([8, 3])))"),
        "/p/predict.py": STARTING.format(calls="print(trainer.predict(tf.ones([8, 3])))"),
    }
    files = files_in_memory(texts)
    predicts = convert_program(texts["/p/predict.py"], "/p/predict.py", files)
    assert predicts.status is Status.NOTHING_FOUND
    trains = convert_program(texts["/p/train.py"], "/p/train.py", files)
    assert trains.status is Status.CONVERTED
    assert not trains.withheld


DISPATCH = """\
from steps import train


class Runner:
    def run(self, name):
        getattr(self, name)()

    def fit(self):
        train()
"""
STEPS = """

def train():
    Trainer(tf.keras.Sequential([tf.keras.layers.Dense(1)])).fit([tf.ones([8, 3])] * 4)
"""


@pytest.mark.parametrize(
    ("called", "status"),
    [
        ("print(net.infer(sess, [[1.0]]))", Status.NOTHING_FOUND),
        ("print(net.train(sess, [[1.0]]))", Status.CONVERTED),
        ("tf = net\n    print(tf.train(sess, [[1.0]]))", Status.CONVERTED),
    ],
)
def test_a_member_of_a_library_is_no_method_of_the_program(called: str, status: Status) -> None:
    """`tf.train` reads no method of the name `train`."""
    net = """import tensorflow.compat.v1 as tf


class Net:
    def __init__(self):
        self.x = tf.placeholder(tf.float32, [None, 1])
        self.y = tf.layers.dense(self.x, 1)
        self.loss = tf.reduce_mean(self.y**2)
        self.op = tf.train.AdamOptimizer(0.1).minimize(self.loss)
        self.saver = tf.train.Saver()

    def train(self, sess, x):
        return sess.run([self.op, self.loss], {self.x: x})

    def infer(self, sess, x):
        return sess.run(self.y, {self.x: x})
"""
    start = f"""import tensorflow.compat.v1 as tf
from net import Net

net = Net()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    net.saver.restore(sess, tf.train.latest_checkpoint("model"))
    {called}
"""
    files = files_in_memory({"/p/net.py": net, "/p/start.py": start})
    assert convert_program(start, "/p/start.py", files).status is status


def test_what_methods_run_that_a_text_names_is_part_of_a_program() -> None:
    texts = {
        "/p/main.py": 'from dispatch import Runner\n\nRunner().run("f" + "it")\n',
        "/p/dispatch.py": DISPATCH,
        "/p/steps.py": TRAINER + STEPS,
    }
    files = files_in_memory(texts)
    code = files.read("/p/main.py")
    assert code is not None
    workspace = linked(code, "/p/main.py", files).workspace
    assert workspace is not None
    scripts = workspace.reachable
    runs = Reachability(scripts[0], idle_scopes(scripts)).runs
    (train,) = (scope for facts in scripts[-1].facts for scope in facts.scopes if scope.name == "train")
    assert runs(train, None)


DATA = """\
import glob
import random

from sklearn.model_selection import train_test_split


def folders(pattern):
    return glob.glob(pattern)


def number():
    return random.randint(1, 9)


def split(x):
    return train_test_split(x)
"""
COUNTED = """\
import numpy as np
import tensorflow as tf
from data import folders, number, split

x = np.load("x.npy")
train, test = split(x)
model = tf.keras.Sequential([tf.keras.layers.Dense(1), tf.keras.layers.Dense(number())])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(train, epochs=len(folders("*")))
model.evaluate(test)
"""
LISTING = """\
import numpy as np
import tensorflow as tf
from data import folders, number, split

{calls}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(np.load("x.npy"))
"""


@pytest.mark.parametrize(
    ("calls", "is_refused"),
    [
        ('folders("*")\nnumber()\nsplit([1, 2, 3])', False),
        ("import horovod.tensorflow as hvd\n\nhvd.init()\nif hvd.rank() == 0:\n    number()", True),
    ],
)
def test_what_makes_a_draw_alike_is_no_worse_for_programs_whose_ranks_all_draw(
    calls: str, is_refused: bool
) -> None:
    texts = {"/p/data.py": DATA, "/p/train.py": COUNTED, "/p/other.py": LISTING.format(calls=calls)}
    conversion = convert_program(COUNTED, "/p/train.py", files_in_memory(texts))
    assert (conversion.status is Status.REFUSED) is is_refused
    if not is_refused:
        changed = {each.path: each.text for each in conversion.files}["/p/data.py"]
        assert "hvd.broadcast_object(random.randint(1, 9), root_rank=0)" in changed
        assert "train_test_split(x, random_state=0)" in changed


AGENTS = """import tensorflow as tf


def compiled():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model


class One:
    def __init__(self):
        self.net = compiled()

    def learn(self, x):
        for _ in range(4):
            self.net.train_on_batch(x, x[:, :1])


class Two:
    def __init__(self):
        self.actor = compiled()

    def improve(self, x):
        for _ in range(4):
            self.actor.train_on_batch(x, x[:, :1])
"""


def test_programs_name_alike_what_they_add_for_batches_of_a_file_that_they_share() -> None:
    start = (
        "import numpy as np\nfrom agents import {name}\n\nagent = {name}()\nagent.{method}(np.ones((8, 3)))\n"
    )
    texts = {
        "/p/agents.py": AGENTS,
        "/p/one.py": start.format(name="One", method="learn"),
        "/p/two.py": start.format(name="Two", method="improve"),
        "/p/both.py": "import one\nimport two\n",
    }
    flags = {"/p/one.py": ["net"], "/p/two.py": ["actor"], "/p/both.py": ["actor", "net"]}
    for path, names in flags.items():
        found = convert_program(texts[path], path, files_in_memory(texts))
        assert found.status is Status.CONVERTED, (path, found.reason)
        text = next(each.text for each in found.files if each.path == "/p/agents.py")
        assert sorted(re.findall(r"^hvd_broadcast_done_(\w+) = ", text, re.MULTILINE)) == names


def test_what_lists_the_members_of_a_package_has_no_say_in_its_changes() -> None:
    start = "import numpy as np\nimport agents\n\nagent = agents.One()\nagent.learn(np.ones((8, 3)))\n"
    pages = "import agents\n\nfor each in (agents.One.learn, agents.Two):\n    print(each.__doc__)\n"
    texts = {"/p/agents.py": AGENTS, "/p/one.py": start, "/p/pages.py": pages}
    files = files_in_memory(texts)
    assert KeptClaims(files).of("/p/pages.py", ALL_RULES) is None
    assert convert_program(start, "/p/one.py", files).status is Status.CONVERTED


GAN = """import numpy as np


def train(generator, critic, x):
    for step in range(4):
        fakes = generator.predict(np.ones((8, 3)))
        critic.train_on_batch(fakes, np.zeros((8, 1)))


def show(generator):
    print(generator.predict(np.ones((8, 3))))
"""


def test_a_bar_that_one_program_shows_is_no_worse_for_another() -> None:
    head = "import numpy as np\nimport tensorflow as tf\nimport gan\n\nx = np.ones((8, 3))\n"
    made = "tf.keras.Sequential([tf.keras.layers.Dense(3)])"
    sgd = "compile(tf.keras.optimizers.SGD(0.1), 'mse')"
    models = "".join(f"{name} = {made}\n{name}.{sgd}\n" for name in ("generator", "critic"))
    own = "def train(critic, x):\n    for _ in range(4):\n        critic.train_on_batch(x, x)\n\n\n"
    texts = {
        "/p/gan.py": GAN,
        "/p/one.py": f"{head}{models}gan.train(generator, critic, x)\ngan.show(generator)\n",
        "/p/two.py": f"{head}{own}{models}train(critic, x)\ngan.show(critic)\n",
    }
    for path in ("/p/one.py", "/p/two.py"):
        found = convert_program(texts[path], path, files_in_memory(texts))
        assert found.status is Status.CONVERTED, (path, found.reason)
        assert not found.withheld


READERS = """\
from glob import glob


class Reader:
    def __init__(self):
        self.rows = self.read()

    def read(self):
        return [1]


class Folder(Reader):
    def read(self):
        return glob("*")
"""
READING = """\
import tensorflow as tf
from readers import {name}

model = tf.keras.Sequential([tf.keras.layers.Dense(len({name}().rows))])
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit([1.0], [1.0])
"""


@pytest.mark.parametrize(("name", "is_told"), [("Reader", False), ("Folder", True)])
def test_what_a_class_draws_that_nothing_makes_diverges_nowhere(name: str, is_told: bool) -> None:
    start = READING.format(name=name)
    texts = {"/p/readers.py": READERS, "/p/train.py": start, "/p/second.py": start}
    conversion = convert_program(start, "/p/train.py", files_in_memory(texts))
    changed = {each.path: each.text for each in conversion.files}["/p/readers.py"]
    assert conversion.status is Status.CONVERTED
    assert ('hvd.broadcast_object(glob("*"), root_rank=0)' in changed) is is_told
    # Another program finds it already converted.
    second = convert_program(start, "/p/second.py", files_in_memory({**texts, "/p/readers.py": changed}))
    assert {each.path: each.text for each in second.files}["/p/readers.py"] == changed


@pytest.mark.parametrize(
    ("path", "text", "starts"),
    [
        ("/p/notes.txt", "", False),
        ("/p/other.py", "from report import told\n\ntold(2)\n", True),
        ("/p/other.py", "from report import listed\n\nlisted(2)\n", False),
        (
            "/p/other.py",
            "import horovod.tensorflow as hvd\nfrom report import told\n\nhvd.init()\ntold(2)\n",
            True,
        ),
        ("/p/tests/test_report.py", "from report import told\n\n\ndef test_it():\n    told(1)\n", True),
        ("/p/notes/try.ipynb", "{}", True),
    ],
)
def test_a_module_starts_horovod_if_another_file_runs_what_is_changed_in_it(
    path: str, text: str, starts: bool
) -> None:
    start = "from report import told\nfrom steps import train\n\ntrain()\ntold(1)\n"
    texts = {
        "/p/pyproject.toml": "",
        "/p/train.py": start,
        "/p/report.py": "def told(x):\n    print(x)\n\n\ndef listed(x):\n    return [x]\n",
        "/p/steps.py": TRAINER + STEPS,
        path: text,
    }
    found = convert_program(start, "/p/train.py", files_in_memory(texts))
    changed = {each.path: each.text for each in found.files}
    assert "if hvd.rank() == 0:" in changed["/p/report.py"]
    assert ("hvd.init()" in changed["/p/report.py"]) is starts
    assert "hvd.init()" in changed["/p/train.py"]


def test_a_module_that_relies_on_the_start_file_says_that_it_only_imports() -> None:
    steps = "import tensorflow as tf\n\n\ndef train(model, opt, x):\n    with tf.GradientTape() as tape:\n"
    steps += (
        "        loss = tf.reduce_sum(model(x))\n    grads = tape.gradient(loss, model.trainable_variables)\n"
    )
    steps += "    opt.apply_gradients(zip(grads, model.trainable_variables))\n"
    start = "import tensorflow as tf\nfrom steps import train\n\n"
    start += "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
    start += (
        "opt = tf.keras.optimizers.SGD(0.1)\nfor i in range(3):\n    train(model, opt, tf.ones([8, 2]))\n"
    )
    files = files_in_memory({"/p/train.py": start, "/p/steps.py": steps})
    made = convert_program(start, "/p/train.py", files)
    assert [(each.path, each.text) for each in made.applied if each.rule == "HV01"] == [
        ("", "Import and start Horovod, one GPU per rank"),
        ("/p/steps.py", "Import Horovod"),
    ]


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    assert told_apart("/a/b/main.py", "/a/c/train.py") == ("main.py", "train.py")
    assert told_apart("/a/b/main.py", "/a/c/main.py") == ("b/main.py", "c/main.py")
    assert told_apart("/a/main.py", "/a/c/main.py") == ("main.py", "c/main.py")


HANDED = """\
import tensorflow as tf


class Trainer:
    def __init__(self):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        self.opt = tf.keras.optimizers.SGD(0.1)

    def update(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.model(x) ** 2)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))

    def step(self, x):
        self.update(x)


def train(trainer, data):
    for x in data:
        trainer.step(x)


if __name__ == "__main__":
    train(Trainer(), tf.data.Dataset.from_tensor_slices(tf.ones((64, 2))).batch(8))
"""
HEIR = """\
import tensorflow as tf
from trainer import Trainer, train
from data import read


class Scaled(Trainer):
    def step(self, x):
        self.update(x / 2)


if __name__ == "__main__":
    train(Scaled(), read())
"""
READ = """\
import tensorflow as tf


def read():
    print("reading")
    return tf.data.Dataset.from_tensor_slices(tf.ones((64, 2))).batch(8)
"""


@pytest.mark.parametrize("start", ["heir", "other"])
def test_a_file_calls_the_methods_of_objects_that_the_start_file_hands_it(start: str) -> None:
    """Also if it does not import the file of their class.  What other programs do with it agrees."""
    files = {"trainer": HANDED, "data": READ, "heir": HEIR, "other": HEIR.replace("Scaled", "Other")}
    found = convert_program(
        files[start],
        f"/project/{start}.py",
        files_in_memory({f"/project/{name}.py": text for name, text in files.items()}),
    )
    assert found.status is Status.CONVERTED
    texts = {each.path: each.text for each in found.files}
    assert "ds.shard(hvd.size(), hvd.rank())" in texts["/project/data.py"]
    assert "0.1 * hvd.size()" in texts["/project/trainer.py"]
