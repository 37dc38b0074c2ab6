"""Calls into libraries, known and unknown: what a conversion does about each, or says of it."""

from __future__ import annotations

import textwrap

import pytest

from trainshift.engine.conversion import Conversion, Status, convert
from trainshift.engine.settings import read_settings
from trainshift.libraries import toml

MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
DATA = "x, y = np.load('x.npy'), np.load('y.npy')\n"
FIT = "model.fit(x, y{more})\n"
SPLIT = "model.fit(x[tr], y[tr], validation_data=(x[te], y[te]))\n"


def converted(body: str) -> Conversion:
    found = convert(f"import numpy as np\nimport tensorflow as tf\n{body}")
    assert found.status is Status.CONVERTED, found.reason
    return found


def said(found: Conversion) -> str:
    return "\n".join(each.text for each in (*found.doubts, *found.decisions))


@pytest.mark.parametrize(
    ("body", "doubt"),
    [
        (
            f"import splitters\n{DATA}tr, te = splitters.Scaffold().split(x, 0.8)\n{MODEL}{SPLIT}",
            "`splitters.Scaffold().split(x, 0.8)` may be drawn at random: "
            "ranks would test on rows that others train on",
        ),
        (
            "from multilabel import iterative_train_test_split as its\n"
            f"{DATA}xa, ya, xb, yb = its(x, y)\n{MODEL}model.fit(xa, ya, validation_data=(xb, yb))\n",
            "`its(x, y)` may be drawn at random",
        ),
        (
            f"from torch.utils.data import random_split\n{DATA}a, b = random_split(range(9), [6, 3])\n"
            f"tr, te = list(a), list(b)\n{MODEL}{SPLIT}",
            "`random_split(range(9), [6, 3])` may be drawn at random",
        ),
        (
            f"import search\n{DATA}tuner = search.Tuner()\nrate = tuner.ask()\n"
            "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
            f"model.compile(tf.keras.optimizers.SGD(rate), 'mse')\n{FIT.format(more='')}",
            "`tuner.ask()` may be drawn at random: ranks would train by different optimizers",
        ),
        (
            f"from skopt import Optimizer\n{DATA}tuner = Optimizer([(0.001, 0.1)])\nrate = tuner.ask()[0]\n"
            "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
            f"model.compile(tf.keras.optimizers.SGD(rate), 'mse')\n{FIT.format(more='')}",
            "`tuner.ask()` may be drawn at random: ranks would train by different optimizers",
        ),
        (
            f"from mylib import get_random_split\n{DATA}(xa, ya), (xb, yb) = get_random_split(x, y)\n{MODEL}"
            "model.fit(xa, ya, validation_data=(xb, yb))\n",
            "`get_random_split(x, y)` may be drawn at random",
        ),
        (
            f"from trials import Client\n{DATA}rate = Client().get_next_trial()[0]\n"
            "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
            f"model.compile(tf.keras.optimizers.SGD(rate), 'mse')\n{FIT.format(more='')}",
            "`Client().get_next_trial()` may be drawn at random: ranks would train by different optimizers",
        ),
        (
            f"from tables import Session\n{DATA}rows = Session.builder.get().read.table('a')\n"
            f"tr, te = rows.randomSplit([0.8, 0.2])\n{MODEL}{SPLIT}",
            "`rows.randomSplit([0.8, 0.2])` may be drawn at random",
        ),
        (
            f"import random\nfrom genes import Toolbox\n{DATA}box = Toolbox()\n"
            "box.register('gene', random.randint, 4, 32)\n"
            "model = tf.keras.Sequential([tf.keras.layers.Dense(n) for n in box.population(3)])\n"
            f"model.compile('sgd', 'mse')\n{FIT.format(more='')}",
            "`box.population(3)` may be drawn at random: ranks would build different models",
        ),
        (
            f"import searches\n{DATA}\n\ndef objective(config):\n"
            "    model = tf.keras.Sequential([tf.keras.layers.Dense(config['units'])])\n"
            "    model.compile('sgd', 'mse')\n    model.fit(x, y)\n\n\n"
            "searches.run(objective, {'units': searches.randint(4, 64)})\n",
            "`searches.run(objective, {'units': searches.randint(4, 64)})` may be drawn at random",
        ),
        (
            f"import engines\n{DATA}{MODEL}optimizer = tf.keras.optimizers.SGD(0.1)\n\n\ndef update(a, b):\n"
            "    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean((model(a) - b) ** 2)\n"
            "    grads = tape.gradient(loss, model.trainable_variables)\n"
            "    optimizer.apply_gradients(zip(grads, model.trainable_variables))\n\n\n"
            "engines.Engine(update).run(x, y)\n",
            "engines.Engine gives `update` its batches",
        ),
        (
            f"from clr import CyclicLR\n{DATA}{MODEL}"
            f"{FIT.format(more=', callbacks=[CyclicLR(base_lr=0.1, max_lr=0.6, step_size=20)]')}",
            "CyclicLR is unknown; its base_lr and max_lr may need `* hvd.size()`",
        ),
    ],
)
def test_what_an_unknown_library_may_draw_is_a_doubt(body: str, doubt: str) -> None:
    assert doubt in said(converted(body))


@pytest.mark.parametrize(
    ("called", "is_told"),
    [
        ("run(main)", False),
        ("run(main, name='train')", False),
        ("run(main, 16)", False),
        ("run(main, {'units': 16})", True),
        ("run(main, trials=16)", True),
    ],
)
def test_a_library_chooses_parameters_only_by_more_than_names_and_what_it_hands_on(
    called: str, is_told: bool
) -> None:
    body = (
        f"import commands\n{DATA}\n\ndef main(units, rate=0.1):\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Dense(units)])\n"
        "    model.compile(tf.keras.optimizers.SGD(rate), 'mse')\n    model.fit(x, y)\n\n\n"
        f"commands.{called}\n"
    )
    assert ("at random" in said(converted(body))) is is_told
    assert "its batches" not in said(converted(body))


def test_a_step_that_the_script_calls_gets_no_batches_of_a_library() -> None:
    body = (
        f"import engines\n{DATA}{MODEL}optimizer = tf.keras.optimizers.SGD(0.1)\n\n\ndef update(a, b):\n"
        "    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean((model(a) - b) ** 2)\n"
        "    grads = tape.gradient(loss, model.trainable_variables)\n"
        "    optimizer.apply_gradients(zip(grads, model.trainable_variables))\n\n\n"
        "fast = engines.compiled(update)\nfor a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(4):\n"
        "    fast(a, b)\n"
    )
    assert "its batches" not in said(converted(body))


def test_a_seed_settles_what_an_unknown_library_draws() -> None:
    body = f"import splitters\n{DATA}tr, te = splitters.Scaffold().split(x, seed=3)\n{MODEL}{SPLIT}"
    assert "at random" not in said(converted(body))


def test_a_split_that_is_only_read_is_no_draw() -> None:
    head = (
        f"import graphs\n{DATA}parts = graphs.Dataset('a').get_idx_split()\ntr, te = parts['a'], parts['b']\n"
    )
    assert "at random" not in said(converted(f"{head}{MODEL}{SPLIT}"))


def test_a_generator_settles_what_torch_draws() -> None:
    drawn = "a, b = random_split(range(9), [6, 3], generator=torch.Generator().manual_seed(1))\n"
    head = f"import torch\nfrom torch.utils.data import random_split\n{DATA}{drawn}"
    assert "at random" not in said(converted(f"{head}tr, te = list(a), list(b)\n{MODEL}{SPLIT}"))


def test_a_resampled_signal_is_not_drawn() -> None:
    for load in (
        "from scipy.signal import resample\nx = resample(np.load('x.npy'), 100)\n",
        "import pandas as pd\nx = pd.read_csv('x.csv').resample('D').mean().values\n",
        "import librosa\nx = librosa.resample(np.load('x.npy'), orig_sr=8, target_sr=4)\n",
    ):
        found = converted(f"{load}y = np.load('y.npy')\n{MODEL}{FIT.format(more='')}")
        assert "seed" not in said(found)
        assert "HZ16" not in "\n".join(each.text for each in found.doubts)
        assert "Shard before" not in said(found)


def test_samples_of_groups_leave_the_data_whole() -> None:
    rows = "rows = pd.read_csv('a.csv').groupby('y').apply(lambda g: g.sample(100))\n"
    found = converted(f"import pandas as pd\n{rows}{MODEL}model.fit(rows[['a']].values, rows['y'].values)\n")
    assert "`sample` orders the data differently on each rank" in said(found)


def test_a_folder_that_its_process_deletes_stays_its_own() -> None:
    body = (
        "import os\nimport tempfile\n"
        f"{DATA}{MODEL}{FIT.format(more='')}with tempfile.TemporaryDirectory() as folder:\n"
        "    path = os.path.join(folder, 'w.h5')\n"
        "    model.save(path)\n    again = tf.keras.models.load_model(path)\n"
    )
    found = converted(body)
    assert "with tempfile.TemporaryDirectory() as folder:\n    path" in found.text
    assert "\n    model.save(path)\n" in found.text
    kept = body.replace("    again = tf.keras.models.load_model(path)\n", "")
    assert "    if hvd.rank() == 0:\n        model.save(path)\n" in converted(kept).text


def test_rank_0_downloads_an_artifact_for_ranks_whose_run_is_off() -> None:
    head = "import os\nimport wandb\nrun = wandb.init(project='p')\n"
    read = f"x = np.load(os.path.join(folder, 'x.npy'))\ny = x[:, 0]\n{MODEL}{FIT.format(more='')}"
    found = converted(f"{head}folder = run.use_artifact('data:latest').download()\n{read}")
    assert (
        "folder = hvd.broadcast_object(run.use_artifact('data:latest').download(), root_rank=0)" in found.text
    )
    found = converted(f"{head}data = run.use_artifact('data:latest')\nfolder = data.download()\n{read}")
    assert "comes from a service: ranks would look for different files" in said(found)


def test_what_is_opened_to_be_read_is_read_by_all() -> None:
    store = "store = pd.HDFStore('a.h5', 'r')\nx = store.select('x')\ny = store.select('y')\nstore.close()\n"
    found = converted(f"import pandas as pd\n{store}{MODEL}{FIT.format(more='')}")
    assert store in found.text


def test_a_store_that_is_only_written_is_another_on_other_ranks() -> None:
    store = "store['x'] = pd.DataFrame([1])\nstore.put('y', pd.DataFrame([2]))\nstore.close()\n"
    head = f"import pandas as pd\n{DATA}{MODEL}{FIT.format(more='')}store = pd.HDFStore({{}})\n"
    found = converted(f"{head.format(repr('a.h5'))}{store}")
    assert "pd.HDFStore('a.h5' if hvd.rank() == 0 else tempfile.mktemp())\n" + store in found.text
    assert not found.withheld
    found = converted(f"{head.format(repr('a.h5'))}print(store['x'])\n{store}")
    assert found.withheld


def test_a_run_that_only_callbacks_of_rank_0_use_is_none_on_other_ranks() -> None:
    body = (
        "from dvclive import Live\nfrom dvclive.keras import DVCLiveCallback\n"
        f"{DATA}{MODEL}with Live() as live:\n    live.log_param('a', 1)\n"
        "    model.fit(x, y, callbacks=[DVCLiveCallback(live=live)])\n"
    )
    found = converted(body)
    assert "with Live() if hvd.rank() == 0 else contextlib.nullcontext() as live:\n" in found.text
    assert "    if hvd.rank() == 0:\n        callbacks.append(DVCLiveCallback(live=live))\n" in found.text
    assert not found.withheld
    own = body.replace("callbacks=[DVCLiveCallback(live=live)]", "callbacks=[Mine(live)]")
    assert converted(f"from mine import Mine\n{own}").withheld


def test_folds_and_settings_around_a_divided_fit_are_no_data() -> None:
    for turns in ("for a, b in KFold(5).split(x):", "for a in ParameterGrid({'lr': [0.1, 0.01]}):"):
        body = f"from sklearn.model_selection import KFold, ParameterGrid\n{DATA}{turns}\n"
        inner = textwrap.indent(f"{MODEL}model.fit(x, y)\n", "    ")
        found = converted(f"{body}{inner}")
        assert "each rank trains on its own 1/hvd.size() of x" in said(found)
        assert "every rank reads all" not in said(found)


def test_a_model_that_extends_one_of_an_unknown_library_is_a_doubt() -> None:
    body = "from deeptables.models import DeepNet\n\n\nclass Net(DeepNet):\n    pass\n\n\n"
    fit = "net = Net(8)\nnet.compile(tf.keras.optimizers.Adam(0.01), 'mse')\nnet.fit(x, y)\n"
    found = converted(f"{body}{DATA}{fit}")
    assert "hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.01 * hvd.size()))" in found.text
    assert "net is assumed to be a Keras model; a train_step of its own may average nothing" in said(found)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ("path = acme.save_model(model)\nsaved = acme.find(path)\n", "acme.save_model of acme:"),
        ("def done():\n    return acme.upload('m.h5')\n\n\ndone()\n", "acme.upload of acme:"),
        ("end = lambda logs: acme.log_metrics(logs)\nend({})\n", "acme.log_metrics of acme:"),
        (
            "class Log:\n    def __init__(self):\n        self.run = acme.Run()\n\n"
            "    def end(self):\n        self.run.scalar('loss', 1)\n\n\nLog().end()\n",
            "self.run.scalar of acme:",
        ),
    ],
)
def test_what_acts_in_an_unknown_library_is_told_of(calls: str, told: str) -> None:
    found = said(converted(f"import acme\n{DATA}{MODEL}{FIT.format(more='')}{calls}"))
    assert f"{told} runs on every rank" in found
    assert "acme.find" not in found


def test_the_path_of_an_own_writer_may_be_a_position() -> None:
    entry = '[libraries."acme.tracking"]\nexport_model = { role = "writer", path = 1 }\n'
    choices = read_settings(toml.loads(entry), "trainshift.toml").choices
    lines = "export_model(model)\nexport_model(model, 'm')\n"
    body = f"from acme.tracking import export_model\n{DATA}{MODEL}{FIT.format(more='')}{lines}"
    found = convert(f"import numpy as np\nimport tensorflow as tf\n{body}", choices=choices)
    assert "\nexport_model(model)\nif hvd.rank() == 0:\n    export_model(model, 'm')\n" in found.text


@pytest.mark.parametrize(
    ("vocabulary", "is_doubted"),
    [
        ("set(words)", True),
        ("list(set(words) | {'<unk>'})", True),
        ("set().union(words)", True),
        ("['<pad>'] + list(frozenset(words))", True),
        ("[word for word in {each for each in words} if word]", True),
        ("collected(words)", True),
        ("sorted(set(words))", False),
        ("range(len(set(words)))", False),
        ("list(dict.fromkeys(words))", False),
    ],
)
def test_numbers_in_the_order_of_a_set_are_a_doubt(vocabulary: str, is_doubted: bool) -> None:
    body = (
        "def collected(texts):\n    found = set()\n    for each in texts:\n        found |= set(each)\n"
        "    return found\n"
        f"words = open('words.txt').read().split()\nvocabulary = {vocabulary}\n"
        "numbers = {word: at for at, word in enumerate(vocabulary)}\n"
        "x = np.array([[numbers[word]] for word in words])\ny = np.ones(len(words))\n"
        f"{MODEL}{FIT.format(more='')}"
    )
    assert (
        "ranks may number the elements of `vocabulary` differently" in said(converted(body))
    ) is is_doubted


def test_a_function_that_samples_groups_of_rows_gets_a_seed() -> None:
    body = (
        "import pandas as pd\ndf = pd.read_csv('a.csv')\n\n\ndef pick(g):\n    return g.sample(20)\n\n\n"
        "some = df.groupby('y').apply(pick)\nrest = df.drop(some.index)\n"
        f"{MODEL}model.fit(some[['a']].values, some['y'].values)\n"
        "model.evaluate(rest[['a']].values, rest['y'].values)\n"
    )
    assert "return g.sample(20, random_state=0)" in converted(body).text


def test_samples_of_polars_get_a_seed_of_its_own() -> None:
    body = (
        "import polars as pl\ndf = pl.read_csv('a.csv')\nsome = df.sample(fraction=0.8)\n"
        "rest = df.join(some, on='i', how='anti')\nx, y = some[['a']].to_numpy(), some['y'].to_numpy()\n"
        f"{MODEL}{FIT.format(more='')}model.evaluate(rest[['a']].to_numpy(), rest['y'].to_numpy())\n"
    )
    assert "df.sample(fraction=0.8, seed=0)" in converted(body).text


def test_rank_0_draws_by_torch_unless_a_seed_does() -> None:
    body = (
        f"import torch\n{DATA}order = torch.randperm(len(x)).numpy()\n{MODEL}"
        "model.fit(x[order[:8]], y[order[:8]], validation_data=(x[order[8:]], y[order[8:]]))\n"
    )
    assert "hvd.broadcast_object(torch.randperm(len(x)), root_rank=0)" in converted(body).text
    seeded = body.replace("import torch\n", "import torch\ntorch.manual_seed(3)\n")
    assert "order = torch.randperm(len(x)).numpy()" in converted(seeded).text
    by_generator = body.replace("(len(x))", "(len(x), generator=torch.Generator().manual_seed(1))")
    assert "broadcast_object" not in converted(by_generator).text


def test_every_rank_writes_into_its_own_memory() -> None:
    body = (
        f"import csv\nimport io\n{DATA}{MODEL}rows = io.StringIO()\ncsv.writer(rows).writerow([1, 2])\n"
        "print('a', file=rows)\nkept = io.BytesIO()\nnp.save(kept, x)\nkept.seek(0)\n"
        "model.summary(print_fn=lambda line: rows.write(line))\nmodel.fit(np.load(kept), y)\n"
    )
    found = converted(body).text
    assert "if hvd.rank() == 0:" not in found
    assert "wait for rank 0" not in found


@pytest.mark.parametrize("write", ["pickle.dump(kept, f)", "f.write(kept.getvalue())", "f.writelines(kept)"])
def test_what_was_kept_in_memory_is_written_to_a_file_by_rank_0(write: str) -> None:
    body = (
        f"import io\nimport pickle\n{DATA}{MODEL}model.fit(x, y)\n"
        f"kept = io.StringIO('a,b')\nwith open('a.txt', 'w') as f:\n    {write}\n"
    )
    assert "if hvd.rank() == 0:\n    with open('a.txt', 'w') as f:\n" in converted(body).text


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        return np.load(path)\n    except FileNotFoundError:\n        np.save(path, x)\n"
        "        return np.load(path)\n",
        "    if not os.path.exists(path):\n        np.save(path, x)\n        return np.load(path)\n"
        "    return np.load(path)\n",
        "    if not os.path.exists(path):\n        write(path)\n    return np.load(path)\n\n\n"
        "def write(path):\n    np.save(path, x)\n    again = np.load(path)\n    print(again.shape)\n",
        "    if config.cache.exists():\n        return np.load(config.cache)\n"
        "    told = config.cache.with_suffix('.json')\n"
        "    told.write_text('1')\n    assert told.read_text() == '1'\n    return x\n",
    ],
)
def test_a_file_that_a_rank_makes_and_reads_by_its_own_disk_stays_on_all_ranks(body: str) -> None:
    text = (
        f"import os\nimport settings\n{DATA}config = settings.read()\n\n\ndef load(path):\n{body}\n\n"
        f"data = load('d.npy')\n{MODEL}model.fit(data, y)\n"
    )
    found = convert(f"import numpy as np\nimport tensorflow as tf\n{text}")
    assert "each rank comes here by its own disk" in "\n".join(str(each) for each in found.withheld)


@pytest.mark.parametrize(
    "write",
    [
        "with open(path, 'wb') as f:\n        pickle.dump(x, f)",
        "with open(path, 'wb') as f:\n        for row in x:\n            f.write(row)",
        "f = open(path, 'wb')\n    f.writelines(x)\n    f.close()",
        "with gzip.open(path, 'wb') as f:\n        keep(f)",
    ],
)
def test_every_rank_fills_the_file_that_it_opens_by_its_own_disk(write: str) -> None:
    text = (
        f"import gzip\nimport os\nimport pickle\n{DATA}\n\ndef keep(f):\n    pickle.dump(x, f)\n\n\n"
        "def load(path):\n    if os.path.exists(path):\n        return np.load(path)\n"
        f"    {write}\n    return np.load(path, allow_pickle=True)\n\n\n"
        f"data = load('d.npy')\n{MODEL}model.fit(data, y)\n"
    )
    found = convert(f"import numpy as np\nimport tensorflow as tf\n{text}")
    assert "each rank comes here by its own disk" in "\n".join(str(each) for each in found.withheld)
    assert write in found.text
    assert "    pickle.dump(x, f)\n\n\ndef load" in found.text


@pytest.mark.parametrize(
    ("test", "sent"),
    [
        ("kept.exists()", "hvd.broadcast_object(kept.exists(), root_rank=0)"),
        ("kept.is_file()", "hvd.broadcast_object(kept.is_file(), root_rank=0)"),
        ("(kept / 'a').exists()", "hvd.broadcast_object((kept / 'a').exists(), root_rank=0)"),
        ("list(kept.glob('*'))", "list(hvd.broadcast_object([*kept.glob('*')], root_rank=0))"),
        ("list(kept.iterdir())", "list(hvd.broadcast_object([*kept.iterdir()], root_rank=0))"),
        ("settings.exists()", "settings.exists()"),
        ("Known().exists()", "Known().exists()"),
        ("records.Query(1).exists()", "records.Query(1).exists()"),
    ],
)
def test_rank_0_looks_for_a_path_and_for_nothing_else(test: str, sent: str) -> None:
    body = (
        f"from pathlib import Path\nimport records\nimport settings\n{DATA}{MODEL}kept = Path('kept')\n\n\n"
        "class Known:\n    def exists(self):\n        return True\n\n\n"
        f"epochs = 2 if {test} else 3\nmodel.fit(x, y, epochs=epochs)\n"
    )
    assert f"epochs = 2 if {sent} else 3\n" in converted(body).text


@pytest.mark.parametrize(
    ("made", "is_told"),
    [("records.Query(1)", True), ("pd.Series(1)", False), ("h5py.File('a')", False), ("Known()", False)],
)
def test_an_object_of_a_library_that_no_entry_describes_may_ask_a_disk(made: str, is_told: bool) -> None:
    body = (
        f"import h5py\nimport pandas as pd\nimport records\n{DATA}{MODEL}\n\n"
        "class Known:\n    def exists(self):\n        return True\n\n\n"
        f"asked = {made}\nepochs = 2 if asked.exists() else 3\nmodel.fit(x, y, epochs=epochs)\n"
    )
    told = [each for each in converted(body).doubts if "may come from a rank's own disk" in each.text]
    assert bool(told) is is_told


LISTED = "tf.keras.utils.image_dataset_from_directory({})"


@pytest.mark.parametrize(
    ("write", "read", "waits"),
    [
        ("tf.keras.utils.save_img('data/train/a.png', x)", LISTED.format("'data/train/'"), 1),
        ("tf.keras.utils.save_img('data/train/a/b.png', x)", LISTED.format("'./data'"), 1),
        ("np.savetxt('data/labels.txt', x)", LISTED.format("'data/train'"), 0),
        ("np.savetxt('data/train.txt', x)", LISTED.format("'data/train'"), 0),
        ("np.savetxt('d/a.csv', x)", "tf.data.experimental.make_csv_dataset('d/*.csv', 8)", 1),
        ("np.savetxt('d/a.csv', x)", "tf.data.experimental.make_csv_dataset('d/e/*.csv', 8)", 0),
        ("np.savetxt(f'data/train/{len(x)}.txt', x)", LISTED.format("'data/train'"), 1),
        ("np.savetxt(f'data/train/a/{len(x)}.txt', x)", LISTED.format("'data'"), 1),
        ("np.savetxt(f'data/train/{len(x)}.txt', x)", LISTED.format("'data/test'"), 0),
        ("np.savetxt('data/train/%d.txt' % len(x), x)", LISTED.format("'data/train'"), 1),
        ("np.savetxt('data/train/{}.txt'.format(len(x)), x)", LISTED.format("'data'"), 1),
        ("np.savetxt(os.path.join('data/train/a', str(len(x))), x)", LISTED.format("'data/train'"), 1),
        ("np.savetxt('a.txt', x)", "(np.loadtxt('a.txt'), np.loadtxt('a.txt'))[0]", 1),
        ("np.savetxt('a.txt', x)", "np.loadtxt('a.txt')\ny = np.loadtxt('a.txt')", 1),
        (
            "np.savetxt('a.txt', x)",
            "np.loadtxt('a.txt')\nnp.savetxt('b.txt', x)\ny = np.loadtxt('a.txt')\ny = np.loadtxt('b.txt')",
            2,
        ),
        ("np.savetxt('a.txt', x)", "np.loadtxt('a.txt')\nnp.savetxt('a.txt', x)\ny = np.loadtxt('a.txt')", 2),
    ],
)
def test_ranks_wait_once_for_what_they_read(write: str, read: str, waits: int) -> None:
    found = converted(f"import os\n{DATA}{write}\ndata = {read}\n{MODEL}model.fit(data, epochs=2)\n")
    assert found.text.count("  # wait for rank 0") == waits
    assert ("which rank 0 writes" in said(found)) == bool(waits)


def test_ranks_wait_for_a_cache_that_a_sequence_writes_when_it_is_made() -> None:
    body = (
        f"{DATA}\n\nclass Rows(tf.keras.utils.Sequence):\n    def __init__(self):\n        self.keep()\n\n"
        "    def keep(self):\n        np.save('rows.npy', x)\n\n    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, i):\n        return np.load('rows.npy')[i : i + 1], y[i : i + 1]\n\n\n"
        f"rows = Rows()\n{MODEL}model.fit(rows)\n"
    )
    found = converted(body).text
    assert "        if hvd.rank() == 0:\n            np.save('rows.npy', x)\n" in found
    assert "hvd.broadcast(0, root_rank=0)  # wait for rank 0" in found
