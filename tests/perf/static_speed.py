"""Times `trainshift server` on static functions of Paddle, beside TensorFlow and ruff; prints ratios.

    PYTHONPATH=tests python -m perf.static_speed [--quick]

Each file has 2,000 lines; in that of Paddle every layer is saved as a full graph.  An edit goes to the
servers in turn: at once after the one before, and after a pause in which a server checks in full.  The ratio
is ours on Paddle over ours on TensorFlow.  The milliseconds are the machine's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from dataclasses import replace
from itertools import count

from perf.script import script
from perf.server_speed import OURS, RUFF, WARM_UP, machine
from perf.session import Session

LINES = 2_000
PAUSES = {"edit at once": 0.0, "edit after a pause": 0.4}
FIRST = "`initialized` to first diagnostics"
TARGETS = {FIRST: "", **dict.fromkeys(PAUSES, "< 50 ms")}
PADDLE, TENSORFLOW, PEER = "Paddle", "TensorFlow", "ruff"

HEADER = '''\
"""Layers that the benchmark measures."""

import paddle
from paddle import nn
from paddle.nn import functional as F


@paddle.jit.to_static(full_graph=True)
def probe(x: paddle.Tensor):
    """What the benchmark edits."""
    probe_alias = paddle.exp(x)
    probe_scale = probe_alias * 2
    return probe_scale
'''
LAYER = '''

class Block{n}(nn.Layer):
    """One of many."""

    def __init__(self, width, depth={depth}):
        super().__init__()
        self.layers = nn.LayerList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.rate = paddle.to_tensor(0.{n})
        self.depth = depth

    def scores(self, x, mask=None):
        logits = paddle.matmul(x, x, transpose_y=True) / self.depth
        if mask is not None:
            logits = logits + mask
        if logits.max() > {depth}:
            logits = logits - logits.max()
        return F.softmax(logits, axis=-1)

    @paddle.jit.to_static(full_graph=True)
    def forward(self, x, mask=None):
        x = self.norm(x)
        steps = paddle.zeros([], dtype="int64")
        for layer in self.layers:
            y = F.relu(layer(x))
            weights = self.scores(y, mask)
            x = x + paddle.matmul(weights, y)
        while x.abs().max() > {n}.0:
            x = x * self.rate
            steps = steps + 1
            if steps > self.depth:
                x = x / {depth}
        n, length = x.shape[:2]
        if self.training:
            x = F.dropout(x, p=0.1)
        return x.reshape([n, length, -1]), steps


block{n} = Block{n}({n})
paddle.jit.save(block{n}, "block{n}", input_spec=[paddle.static.InputSpec([None, 8, {n}], "float32")])
'''
# The edit of every column: a line, and its suffixes without and with a problem.
ON_PADDLE = replace(OURS, harmless="paddle.exp(x)", problem="x.tolist()", code="PD03")
RUFF_ON_PADDLE = replace(RUFF, harmless="probe_alias", problem="probe_aliasx")


def layers(lines: int) -> str:
    """A script of static functions of at least so many lines."""
    text = HEADER
    for number in count(1):
        if text.count("\n") >= lines:
            return text
        text += LAYER.format(n=number, depth=2 + number % 5)
    raise AssertionError


def measure(edits: int, values: dict[tuple[str, str], list[float]]) -> None:
    """Start the servers, and time them side by side."""
    ours = {PADDLE: (ON_PADDLE, layers(LINES)), TENSORFLOW: (OURS, script(LINES))}
    sessions = {
        name: Session(server, text)
        for name, (server, text) in {**ours, PEER: (RUFF_ON_PADDLE, layers(LINES))}.items()
    }
    try:
        for name, session in sessions.items():
            session.start()
            values[FIRST, name].append(session.open())
        for turn in range(WARM_UP + edits):
            for row, pause in PAUSES.items():
                time.sleep(pause)
                for name, session in sessions.items():
                    taken = session.edit(problem=(turn + bool(pause)) % 2 == 1)
                    if turn >= WARM_UP:
                        values[row, name].append(taken)
    finally:
        for session in sessions.values():
            session.close()


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true", help="one round")
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(1 if options.parse_args().quick else 3):
        measure(20, values)
    print(machine())
    names = (PADDLE, TENSORFLOW, PEER)
    print(f"{'ms, medians':36}" + "".join(f"{name:>12}" for name in names) + f"{'ratio':>8}  target")
    for row, target in TARGETS.items():
        medians = [statistics.median(values[row, name]) for name in names]
        numbers = "".join(f"{each:12.1f}" for each in medians)
        print(f"{row:36}{numbers}{medians[0] / medians[1]:8.2f}  {target}")


if __name__ == "__main__":
    main()
