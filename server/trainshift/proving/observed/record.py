"""The record of one process, from the observer to the judge."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# One tensor of a batch: the type and shape of its rows, and a digest of each.
Column = tuple[str, list[str]]


@dataclass
class OptimizerRecord:
    """One optimizer that applied gradients, in order of first use.

    `rates` holds the learning rate of every executed step, `gradients` a digest of the gradients that reached
    it, `weights` one of the variables after it; a step that loss scaling skipped has a rate only. `schedule`
    maps a step to the rate that its schedule gives there. `variables` are the trained ones in order of first
    appearance, `slots` the optimizer's own; both are names.  `initial` holds a digest of each variable's
    value when it was first seen, before any broadcast (None if it had no value yet), `born` one of its
    initial value (None if unknown).  The `unbroadcast_*` lists name the variables that no executed broadcast
    covered; with `given`, all variables that it trains were broadcast before it first got their gradients.
    `began` are the steps, after the first, that were the first for some of the variables.
    For a report: `ended` is the time of each step, `number` the name of its samples, `made_at` and
    `applied_at` the lines of the script (FILE:LINE) that create it and take its steps.

    Steps that a script takes without an optimizer are `by_hand`: then `gradients` are digests of each
    decrease of the variables, and the rates are NaN.
    """

    kind: str
    rates: list[float] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    schedule: dict[str, float] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    initial: list[str | None] = field(default_factory=list)
    born: list[str | None] = field(default_factory=list)
    final: list[str] = field(default_factory=list)
    unbroadcast_variables: list[str] = field(default_factory=list)
    unbroadcast_slots: list[str] = field(default_factory=list)
    given: bool = False
    began: list[int] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    number: int = 0
    made_at: str = ""
    applied_at: str = ""
    by_hand: bool = False

    @property
    def steps(self) -> int:
        """The number of executed optimizer steps."""
        return len(self.rates)


@dataclass
class Record:
    """One process.

    `error` is the traceback that ended the script, or an empty string.  `local_gradients` holds a digest
    of what each executed `GradientTape.gradient` returned before Horovod touched it. `broadcasts` lists
    the names that each executed `broadcast_variables` covered.  `wraps` counts the calls of
    `DistributedGradientTape` and `DistributedOptimizer`, `double_wraps` those whose argument was
    already wrapped, `double_averages` the reductions of gradients that were averaged already.
    `keras3` says that one of Keras 3's optimizers took steps. `stops` says
    that a callback or a hook may end a training by what it measures,
    `adapts` that a `ReduceLROnPlateau` may change the rate so; `monitored` are the metrics that
    `EarlyStopping` and `ReduceLROnPlateau` were given, epoch by epoch.  `steps_per_execution` is the
    largest of all models: callbacks see no single step of such an execution. `written_elsewhere` lists
    the files opened for writing outside the process's own directory, `temporary` the directories that
    `tempfile` made, relative to the process's directory. `data` are, for each time that gradients were
    taken, the tensors that the loss was computed from; `evaluated` how many elements each evaluation or
    other walk through data saw.  Both are empty unless the process was to note them
    (`trainshift.proving.observed.data`). `gpus` are the lists ("0", or "0,1") of the GPUs that its
    sessions were given or, where there was none, TensorFlow's runtime; of those that are not there.
    `stopped` says that the training was ended after as many steps as were asked for, `error_after` what
    then went wrong, `finished` that the script came to its own end anyway.  `warms_up` says that a
    callback of Horovod's raises the rate, `adasum` that
    gradients are combined so; `reduced` says how Horovod puts gradients together, `collectives` which of
    its operations were used; `shards` counts the datasets of which a share was taken, `lengths` are those
    of what the script makes datasets of and gives to `fit`. `epochs` are the
    numbers of batches in one epoch, of each training that tells, `turns` those of the turns of the loops that
    were ended; `losses` and `rows` are those of each time
    that gradients were taken; `printed_at` and `wrote_at` the lines of the script (FILE:LINE) that did.
    """

    error: str = ""
    optimizers: list[OptimizerRecord] = field(default_factory=list)
    local_gradients: list[str] = field(default_factory=list)
    broadcasts: list[list[str]] = field(default_factory=list)
    wraps: int = 0
    double_wraps: int = 0
    double_averages: int = 0
    keras3: bool = False
    stops: bool = False
    adapts: bool = False
    monitored: list[str] = field(default_factory=list)
    steps_per_execution: int = 1
    written_elsewhere: list[str] = field(default_factory=list)
    temporary: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    data: list[list[Column]] = field(default_factory=list)
    evaluated: list[int] = field(default_factory=list)
    stopped: bool = False
    finished: bool = False
    error_after: str = ""
    warms_up: bool = False
    adasum: bool = False
    reduced: list[str] = field(default_factory=list)
    collectives: list[str] = field(default_factory=list)
    shards: int = 0
    lengths: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    printed_at: dict[str, str] = field(default_factory=dict)
    wrote_at: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the record as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def load(path: Path) -> Record:
        """Read a record that `save` wrote."""
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        data["optimizers"] = [OptimizerRecord(**optimizer) for optimizer in data["optimizers"]]
        return Record(**data)


@dataclass(frozen=True)
class Run:
    """One process, observed from outside.

    `exit_code` is negative for a process that was killed.  `stdout` is all of standard output; `stderr` is
    the output of the script's Python code to `sys.stderr` and its logs, with requested INFO records of
    TensorFlow, but without warnings of Python and TensorFlow; `native` is the output of native code to
    standard error, such as `tf.print`; `log` TensorFlow's and Horovod's own messages.  `files` are the files
    left below the process's directory.  `record` is None if the process ended before writing one.  `values`
    holds the final arrays, under keys such as ``0/variables/3`` and ``0/slots/1``.
    """

    exit_code: int
    stdout: str
    stderr: str
    native: str
    log: str
    files: tuple[str, ...]
    record: Record | None
    values: dict[str, Any]
