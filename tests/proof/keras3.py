"""Runs the scripts of `fixtures/keras3` for TensorFlow 2.21 on two ranks: `make proof-keras3`.

    python tests/proof/keras3.py FOLDER [SCRIPT ...]

FOLDER is a virtual environment, made by the commands of `trainshift doctor` where there is none.  Each script
must end with the same weights on both ranks, which begin with others, and average what it applies once; no
wrong conversion may.  Keras chooses XLA as on a machine with GPUs, which cannot compile Horovod's operations.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from keras3 import SCRIPTS, converted, is_of_graphs, wrong

TENSORFLOW = "tensorflow-cpu==2.21.0"
# Ranks that have ended no script for so long wait for each other; the slowest takes seconds.
STALLED_SECONDS = 900
# In how many scripts each mistake is made.
MOST_MISTAKES = 2
# What each rank does: every text in turn, those for sessions last, and after each a digest of all weights.
RANK = """
import glob, hashlib, os, sys, traceback
import numpy, keras, tensorflow as tf
import horovod.tensorflow as hvd
from tensorflow.python.client.session import BaseSession

hvd.init()
keras.Model._resolve_auto_jit_compile = lambda model: True
state = {"averaged": {}, "twice": False, "session": ""}
allreduce, close = hvd.allreduce, BaseSession.close

def digest(values):
    return hashlib.md5(b"".join(numpy.asarray(each).tobytes() for each in values)).hexdigest()

def observed_allreduce(tensor, *args, **kwargs):
    state["twice"] |= id(tensor) in state["averaged"]
    result = allreduce(tensor, *args, **kwargs)
    state["averaged"][id(result)] = result
    return result

def observed_close(session):
    variables = session.graph.get_collection("variables")
    try:
        state["session"] = digest(session.run(variables))
    except Exception:
        pass
    close(session)

hvd.allreduce, BaseSession.close = observed_allreduce, observed_close

def weights(known):
    for _, each in sorted(known.items(), key=lambda item: item[0]):
        if isinstance(each, keras.Model):
            yield from each.trainable_weights
            optimizer = getattr(each, "optimizer", None)
            yield from optimizer.variables if optimizer is not None else ()
        elif isinstance(each, keras.optimizers.Optimizer):
            yield from each.variables
        elif isinstance(each, tf.Variable):
            yield each

for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.py"))):
    in_graphs = os.path.basename(path).startswith("graph")
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    keras.utils.set_random_seed(7 + hvd.rank())
    state.update(averaged={}, twice=False, session="")
    if in_graphs:
        tf.compat.v1.disable_eager_execution()
        tf.compat.v1.reset_default_graph()
        tf.compat.v1.set_random_seed(7 + hvd.rank())
    known = {"__name__": "__main__"}
    try:
        exec(compile(open(path).read(), path, "exec"), known)
        failed = False
    except Exception:
        traceback.print_exc()
        failed = True
    ending = state["session"] if in_graphs else digest(weights(known)) if not failed else ""
    ending = f"failed-{hvd.rank()}" if failed else "twice" if state["twice"] else ending
    print("DIGEST", os.path.basename(path), hvd.rank(), ending, flush=True)
"""


def main(folder: Path, *names: str) -> int:
    """Run all scripts and each mistake in a few, or those named with all mistakes; how many end otherwise."""
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        build(folder, python)
    texts: dict[str, tuple[str, bool]] = {}
    made: dict[str, int] = {}
    for path in [each for each in SCRIPTS if not names or each.stem in names]:
        text = converted(path).text
        texts[path.stem] = text, True
        for name, spoilt in wrong(text):
            made[name] = made.get(name, 0) + 1
            if names or made[name] <= MOST_MISTAKES:
                texts[f"{path.stem} {name}"] = spoilt, False
    ended = run(python, {name: text for name, (text, _) in texts.items()})
    failed = 0
    for name, (_, right) in texts.items():
        digests = ended.get(name, [])
        alike = len(digests) == 2 and len({*digests}) == 1 and "twice" not in digests
        failed += alike != right
        has_failed = not digests or any(each.startswith("failed") for each in digests)
        how = (
            "averaged twice"
            if "twice" in digests
            else "stopped"
            if has_failed
            else "equal"
            if alike
            else "apart"
        )
        print(f"{'ok    ' if alike == right else 'FAILED'} {name}: {how}")
    print(f"{len(texts) - failed} of {len(texts)} end as they must")
    return failed


def build(folder: Path, python: Path) -> None:
    """Make the environment by the commands that `trainshift doctor` prints for it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", TENSORFLOW], check=True)
    doctor = [sys.executable, "-m", "trainshift", "doctor", "--python", str(python), "--format", "json"]
    with tempfile.TemporaryDirectory() as here:
        said = subprocess.run(doctor, cwd=here, capture_output=True, text=True, check=False)
        commands = json.loads(said.stdout)["recipes"][0]["commands"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        script = "\n".join(["set -e", *commands])
        subprocess.run(["bash", "-c", script], cwd=here, env={**os.environ, "PATH": path}, check=True)
    (folder / ".done").touch()


def run(python: Path, texts: dict[str, str]) -> dict[str, list[str]]:
    """The digests of both ranks for each text, by its name."""
    with tempfile.TemporaryDirectory() as here:
        for name, text in texts.items():
            kind = "graph" if is_of_graphs(text) else "eager"
            (Path(here) / f"{kind} {name}.py").write_text(text, encoding="utf-8")
        rank = Path(here) / "rank"
        rank.write_text(RANK, encoding="utf-8")
        launcher = [str(python.parent / "horovodrun"), "-np", "2", "--gloo", str(python), str(rank), here]
        own = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "3"}
        settings = {**os.environ, **own, "CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow"}
        settings.pop("PYTHONPATH", None)
        with (Path(here) / "out").open("w+") as out:
            ranks = subprocess.Popen(
                launcher, cwd=here, env=settings, stdout=out, stderr=out, start_new_session=True
            )
            status = waited(ranks, Path(out.name))
            out.seek(0)
            said = out.read()
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        _, marked, rest = line.partition("DIGEST ")
        if marked:
            name, _, ending = rest.partition(" ")[2].partition(".py ")
            found.setdefault(name, []).append(ending.split()[1])
    if status:
        print(said[-3000:])
    return found


def waited(ranks: subprocess.Popen[bytes], out: Path) -> int:
    """The exit status of ranks, which are killed once they write no more to their output."""
    seen = -1
    while (size := out.stat().st_size) != seen:
        seen = size
        try:
            return ranks.wait(STALLED_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(ranks.pid, signal.SIGKILL)
    return ranks.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), *sys.argv[2:]))
