"""Runs the scripts of `fixtures/keras3` for TensorFlow 2.21 on two ranks: `make proof-keras3`.

    python tests/proof/keras3.py FOLDER [SCRIPT ...]

FOLDER is a virtual environment, made by the commands of `trainshift doctor` where there is none.  Each script
must end with the same weights on both ranks, which begin with others; no wrong conversion may.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from keras3 import SCRIPTS, converted, wrong

TENSORFLOW = "tensorflow-cpu==2.21.0"
SECONDS = 1_200
# What each rank does: every text in turn, and after each a digest of all weights.
RANK = """
import gc, glob, hashlib, io, os, sys, traceback
import numpy, keras, tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.py"))):
    keras.backend.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    keras.utils.set_random_seed(7 + hvd.rank())
    known = {"__name__": "__main__"}
    try:
        exec(compile(open(path).read(), path, "exec"), known)
    except Exception:
        traceback.print_exc()
        print("DIGEST", os.path.basename(path), hvd.rank(), f"failed-{hvd.rank()}", flush=True)
        continue
    models = [each for _, each in sorted(known.items()) if isinstance(each, keras.Model)]
    digest = hashlib.md5(b"".join(numpy.asarray(w).tobytes() for m in models for w in m.weights)).hexdigest()
    print("DIGEST", os.path.basename(path), hvd.rank(), digest, flush=True)
"""


def main(folder: Path, *names: str) -> int:
    """Run all scripts, or those named, and what is wrong of them; how many end as they must not."""
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        build(folder, python)
    texts: dict[str, tuple[str, bool]] = {}
    for path in [each for each in SCRIPTS if not names or each.stem in names]:
        text = converted(path).text
        texts[path.stem] = text, True
        for name, spoilt in wrong(text):
            texts[f"{path.stem} {name}"] = spoilt, False
    ended = run(python, {name: text for name, (text, _) in texts.items()})
    failed = 0
    for name, (_, right) in texts.items():
        digests = ended.get(name, [])
        alike = len(digests) == 2 and len({*digests}) == 1
        failed += alike != right
        print(f"{'ok    ' if alike == right else 'FAILED'} {name}: {'equal' if alike else 'apart'}")
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
            (Path(here) / f"{name}.py").write_text(text, encoding="utf-8")
        rank = Path(here) / "rank"
        rank.write_text(RANK, encoding="utf-8")
        launcher = [str(python.parent / "horovodrun"), "-np", "2", "--gloo", str(python), str(rank), here]
        own = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "3"}
        settings = {**os.environ, **own, "CUDA_VISIBLE_DEVICES": "-1", "KERAS_BACKEND": "tensorflow"}
        settings.pop("PYTHONPATH", None)
        with (Path(here) / "out").open("w+") as out:
            done = subprocess.run(
                launcher, cwd=here, env=settings, stdout=out, stderr=out, timeout=SECONDS, check=False
            )
            out.seek(0)
            said = out.read()
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        _, marked, rest = line.partition("DIGEST ")
        if marked:
            name, _, ending = rest.partition(".py ")
            found.setdefault(name, []).append(ending.split()[1])
    if done.returncode:
        print(said[-3000:])
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), *sys.argv[2:]))
