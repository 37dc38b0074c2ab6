"""The cells of source x sink that a conversion fixes: two ranks with their own draws train alike."""

from __future__ import annotations

import io

import numpy as np
import pytest

from proof.code import Code
from proof.harness import run_converted
from support.divergence_table import OWN_SINKS, OWN_SOURCES, SINKS, SOURCES, cell, own_cell
from trainshift.engine.analysis import Analysis, analyze
from trainshift.engine.conversion import Status, convert
from trainshift.python.source.edit import apply, merge

pytestmark = pytest.mark.proof

# Runs script after script, and prints the values that must agree between its ranks: the sizes and sums of
# the weights, the rate and the number of steps.
RUNNER = """import contextlib, io, os, random, runpy, urllib.request
import numpy as np
import tensorflow as tf

rank = int(os.environ["HOROVOD_RANK"])
# What a service answers, and what number a launcher gives, differ from rank to rank.
urllib.request.urlopen = lambda address: io.BytesIO(str(rank + 2).encode())
os.environ["SLURM_PROCID"] = str(rank + 2)
for name in sorted(name for name in os.listdir() if name.endswith("cell.py")):
    random.seed(rank + 4), np.random.seed(rank + 4), tf.random.set_seed(rank + 4)
    with contextlib.redirect_stdout(io.StringIO()):
        found = runpy.run_path(name)
    model = found.get("net", found.get("model"))
    optimizer = found.get("opt") or model.optimizer
    weights = model.get_weights() if model.built else []
    weights = [(each.shape, round(float(np.abs(each).sum()), 5)) for each in weights]
    print(weights, round(float(optimizer.learning_rate), 6), int(optimizer.iterations), flush=True)
"""


def arrays() -> dict[str, bytes]:
    """The files that the cells read."""
    rows = np.random.default_rng(3).normal(size=(64, 3)).astype("f4")
    files = {}
    for name, array in (("x", rows), ("y", rows.sum(axis=1, keepdims=True))):
        buffer = io.BytesIO()
        np.save(buffer, array)
        files[f"{name}.npy"] = buffer.getvalue()
    return files


def outcomes(scripts: list[str]) -> list[tuple[str, str]]:
    """The outcome of each script on each of two ranks, which run them one after the other."""
    cells = {f"{number:02}cell.py": text.encode() for number, text in enumerate(scripts)}
    files = {"run.py": RUNNER.encode(), "data/a": b"", "data/b-c": b"", **arrays(), **cells}
    runs = run_converted(Code(files, ("run.py",)))
    assert [run.exit_code for run in runs] == [0, 0], [run.stdout + run.native for run in runs]
    first, second = (run.stdout.splitlines() for run in runs)
    assert len(first) == len(second) == len(scripts)
    return list(zip(first, second, strict=True))


def mended(sink: str) -> dict[str, str]:
    """The converted text for the sources that the conversion fixes at a sink without a doubt."""
    texts = {}
    for source in SOURCES:
        found = convert(cell(SOURCES[source], sink))
        rules = {note.rule for note in found.applied}
        if found.status is Status.CONVERTED and "HV19" in rules - {note.rule for note in found.doubts}:
            texts[source] = found.text
    return texts


@pytest.mark.parametrize("sink", SINKS)
def test_what_is_mended_trains_alike(sink: str) -> None:
    texts = mended(sink)
    told = outcomes(list(texts.values()))
    assert {source: pair for source, pair in zip(texts, told, strict=True) if pair[0] != pair[1]} == {}


# Values of a rank's own batches: one source for each sink, so that one run shows all that is mended.
OWN = ("a loss", "a batch", "a prediction")


def own_mended() -> dict[str, str]:
    """The converted texts for what a rank's own batches decide, of those that are fixed without a doubt."""
    texts = {}
    for number, sink in enumerate(OWN_SINKS):
        source = OWN[number % len(OWN)]
        found = convert(own_cell(OWN_SOURCES[source], sink))
        rules = {note.rule for note in found.applied}
        if found.status is Status.CONVERTED and "HV19" in rules - {note.rule for note in found.doubts}:
            texts[f"{sink} by {source}"] = found.text
    return texts


def test_what_own_batches_decide_trains_alike_where_it_is_mended() -> None:
    texts = own_mended()
    assert len(texts) > 8
    told = outcomes(list(texts.values()))
    assert {cell: pair for cell, pair in zip(texts, told, strict=True) if pair[0] != pair[1]} == {}


def dropped(sink: str) -> str:
    """The converted text of a drawn value without its fix."""
    text = cell(SOURCES["random"], sink)
    analysis = analyze(text)
    assert isinstance(analysis, Analysis)
    changes = [each for each in analysis.changes if each.rule != "HV19"]
    assert len(changes) < len(analysis.changes)
    return apply(text, merge(changes).edits)


def test_what_is_not_mended_trains_apart() -> None:
    sinks = [sink for sink in SINKS if "rate" in sink or "momentum" in sink]
    told = outcomes([dropped(sink) for sink in sinks])
    assert [sink for sink, (first, second) in zip(sinks, told, strict=True) if first == second] == []
