"""Forms of expression, and the slots of scripts that rewrites edit, as data.

A slot is a script with a hole, `@`.  A form is put into it with the slot's own expressions for `{x}`, the
value, and `{y}`, which must never be the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# Every kind of value takes these.
_ANY = {
    "plain": "{x}",
    "parenthesised": "({x})",
    "parenthesised twice": "(({x}))",
    "parenthesised over lines": "(\n    {x}  # value\n    # below\n)",
    "a comment in parentheses": "(  # why\n    ({x})  # (\n)",
    "lines of the call": "\n    # above )\n    {x}  # behind (\n",
    "conditional": "{x} if flag else {y}",
    "conditional, other branch": "{y} if not flag else {x}",
    "conditional in parentheses": "({x} if flag else {y})",
    "conditional over lines": "(\n    {x}  # if so\n    if flag\n    else {y}  # if not\n)",
    "conditional on the call's lines": "\n    {x}  # if so\n    if flag\n    else {y}  # if not\n",
    "conditional in a conditional": "{x} if flag else {y} if nothing else {y}",
    "or": "nothing or {x}",
    "or over lines": "(nothing  # none\n    or {x})",
    "and": "flag and {x}",
    "walrus": "(kept := {x})",
    "walrus without parentheses": "kept := {x}",
    "walrus around a conditional": "(kept := {x} if flag else {y})",
    "conditional around a walrus": "(kept := {x}) if flag else {y}",
    "call": "same({x})",
    "call over lines": "same(\n    {x}  # same\n)",
    "lambda": "(lambda: {x})()",
    "subscript": "[{x}][0]",
    "subscript by key": '{{"k": {x}}}["k"]',
    "attribute": "Holder({x}).value",
    "comprehension": '[{x} for _ in "1"][0]',
    "generator": 'next({x} for _ in "1")',
    "await": "await later({x})",
    "await in parentheses": "(await later({x}))",
    "yield": "(yield {x})",
    "starred": "*[{x}]",
}
_OF_KIND: dict[str, dict[str, str]] = {
    "number": {
        "sum": "{x} + {x}",
        "sum over lines": "\n    {x}  # one\n    + {x}  # two\n",
        "difference": "2 * {x} - {x}",
        "product": "2 * {x}",
        "quotient": "{x} / 2",
        "power": "{x} ** 2",
        "minus": "- -{x}",
        "not": "{x} + (not flag)",
        "comparison": "{x} * ({x} > 0)",
        "a comparison alone": "{x} > 0",
        "chained comparison": "0 < {x} < 10 ** 9",
        "negation": "not nothing",
        "maximum": "max({x}, 0)",
    },
    "text": {
        "strings over lines": '(\n    "a"  # first\n    "b"  # second\n)',
        "strings on the call's lines": '\n    "a"  # first\n    "b"  # second\n',
        "f-string": 'f"{{flag}}-{{nothing}}"',
        "f-string and string": '"a" f"{{flag}}"',
        "percent": '"%s" % {x}',
        "sum": '{x} + "b"',
        "method": '"{{}}".format({x})',
    },
    "list": {
        "sum": "{x} + []",
        "slice": "{x}[:]",
        "a tuple": "(*{x},)",
        "spread": "[*{x}]",
        "spread over lines": "[\n    *{x},  # all\n]",
        "picked": "[each for each in {x}]",
        "copied": "list({x})",
        "copied from a generator": "list(each for each in {x})",
    },
    "thing": {},
}
_OF_KIND["text"]["f-string of the value"] = "f'{{{x}}}'"
# Places where an expression may be missing.
_OPTIONAL = {
    "None or a value": "None if flag else {x}",
    "a value or None": "{x} if flag else None",
    "None or a value in parentheses": "(None if flag else {x})",
    "None by a name": "nothing",
    "None at last": "nothing or None",
}
PREAMBLE = """\
flag, nothing = True, None


def same(value):
    return value


async def later(value):
    return value


class Holder:
    def __init__(self, value):
        self.value = value


"""


@dataclass(frozen=True)
class Slot:
    """A slot for an argument or a statement that a rule edits.

    `values` are its expressions for `{x}` and `{y}`, and their kind.  `adds` is the code that the rewrite
    adds, or the ways to write it.  `watched` names the observed argument, by its call and its position or
    keyword; `elsewhere` is its value on rank 1 of 4, None if the call is not made there.  `told` maps the
    forms without a rewrite to the message for the user; an empty text for none. `doubted` are forms for which
    the reported doubt is unfounded.
    """

    name: str
    rule: str
    script: str
    values: tuple[str, str, str]
    adds: str | tuple[str, ...]
    watched: tuple[str, int | str] | None = None
    elsewhere: Callable[[Any], Any] | None = lambda value: value
    told: Mapping[str, str] = field(default_factory=dict)
    doubted: tuple[str, ...] = ()
    optional: bool = False
    in_function: bool = False

    def forms(self) -> Iterator[tuple[str, str]]:
        """The forms for this slot, by name; some may be invalid Python here."""
        x, y, kind = self.values
        known = {**_ANY, **_OF_KIND[kind], **(_OPTIONAL if self.optional else {})}
        for name, form in known.items():
            if self.in_function and name == "yield":
                continue  # It would turn the slot's own function into a generator.
            yield name, form.format(x=x, y=y)

    def text(self, form: str) -> str:
        """The script with a form in its hole, in a function if necessary."""
        head, _, body = self.script.partition("\n\n")
        body = body.replace("@", form)
        if "kept :=" in form and not self.in_function:
            body += "same(kept)\n"
        if "await " in form or "(yield " in form:
            lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
            body = f"{'async ' if 'await ' in form else ''}def main():\n{lines}\n\ndrive(main())\n"
        return f"{head}\n\n{PREAMBLE}{body}"


_UNSEEN = ("generator", "await", "await in parentheses", "yield")
_BINDING = (
    "walrus",
    "walrus without parentheses",
    "walrus around a conditional",
    "conditional around a walrus",
)
_DOING = (*_BINDING, *_UNSEEN[1:])
_EITHER = (
    "conditional",
    "conditional, other branch",
    "conditional in parentheses",
    "conditional over lines",
    "conditional on the call's lines",
    "conditional in a conditional",
    "or",
    "or over lines",
    "and",
    "walrus around a conditional",
    "conditional around a walrus",
)


def _told(text: str, *forms: str) -> dict[str, str]:
    return dict.fromkeys(forms, text)


def _times(value: Any) -> Any:
    """The rate on one of four ranks."""
    if isinstance(value, list):
        return [each if isinstance(each, str) else _times(each) for each in value]
    return value * 4


def _share(value: Any) -> Any:
    """The number of steps on one of four ranks."""
    return value if value is None else value // 4


def _without(word: str) -> Callable[[Any], Any]:
    """The list on other ranks: without members whose names contain the word."""

    def left(value: Any) -> Any:
        kept = [each for each in value or () if word not in str(each)]
        return kept or None

    return left


_TF = "import tensorflow as tf\n\n"
_V1 = "import tensorflow.compat.v1 as tf\n\n"
_RATE = ("0.5", "0.25", "number")
_STEPS = ("100", "60", "number")
_TEXT = ('"log"', '"none"', "text")
_SGD = ("tf.keras.optimizers.SGD(0.5)", "tf.keras.optimizers.SGD(0.25)", "thing")
_STOPPING = "tf.keras.callbacks.EarlyStopping()"
_SAVING = ('tf.keras.callbacks.ModelCheckpoint("m.h5")', 'tf.keras.callbacks.CSVLogger("l")', "thing")
_LOGGING = ("tf.train.LoggingTensorHook({}, 9)", "tf.train.LoggingTensorHook({}, 8)", "thing")
_PROTO = ("tf.ConfigProto(log_device_placement=True)", "nothing", "thing")

_LOOP = """\
model = tf.keras.Sequential()
for x, y in tf.data.Dataset.range(8):
    with tf.GradientTape() as tape:
        loss = model(x)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""
_STEP = "optimizer = tf.keras.optimizers.SGD(0.5)\nw = tf.Variable(1.0)\n" + _LOOP
_RETURNED = """\
optimizer = tf.keras.optimizers.SGD(0.5)
w = tf.Variable(1.0)


def step(x):
    with tf.GradientTape() as tape:
        loss = w * x
    grads = tape.gradient(loss, [w])
    return optimizer.apply_gradients(@)


for x in tf.data.Dataset.range(8):
    step(x)
"""
_MODEL = "model = tf.keras.Sequential()\n"
_COMPILED = _MODEL + 'model.compile(tf.keras.optimizers.SGD(0.5), "mse")\n'
_TRAINED = _COMPILED + "model.fit(1, 2, verbose=0)\n"
_COMPILE = _MODEL + 'model.compile(optimizer, "mse")\nmodel.fit(1, 2)\n'
_GRAPH = """\
w = tf.get_variable("w", [])
loss = tf.square(w)
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
"""
_SESSION = """\
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(2):
        sess.run(train)
"""
_MONITORED = """\
with tf.train.MonitoredTrainingSession(@) as sess:
    while not sess.should_stop():
        sess.run(train)
"""
_ESTIMATOR = """\
def model_fn(features, labels, mode):
    loss = tf.square(tf.get_variable("w", []))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


"""
_ESTIMATED = _ESTIMATOR + "estimator = tf.estimator.Estimator(model_fn)\n"
_TRAIN = "estimator.train(input_fn=None)\n"

_HIDDEN = "hidden in * or ** arguments"
_NAMES = "the optimizer is one of several names"
_NOWHERE = "where the gradients of this step come from"
_EVERY_RANK = "which every rank must do"
_KEPT = (" if hvd.rank() == 0 else []", "if hvd.rank() == 0:")
_MAY_WRITE = "ModelCheckpoint may write, and stays on every rank"
_TAKEN = "is assumed to be a list of callbacks that every rank needs"
_LEFT = "the configuration of the session is left as it is"


def _rate(name: str, script: str, watched: tuple[str, int | str], **more: Any) -> Slot:
    return Slot(name, "HV02", _TF + script, _RATE, "* hvd.size()", watched, _times, **more)


def _count(name: str, script: str, watched: tuple[str, int | str], **more: Any) -> Slot:
    return Slot(name, "HV06", script, _STEPS, "// hvd.size()", watched, _share, **more)


def _printed(name: str, script: str, values: tuple[str, str, str], place: int = 0) -> Slot:
    path = "logging.info" if "logging" in script else "print"
    return Slot(name, "HV07", _TF + script, values, "if hvd.rank() == 0:", (path, place), None)


def _listed(name: str, script: str, values: tuple[str, str, str], **more: Any) -> Slot:
    adds, fit = "BroadcastGlobalVariablesCallback(0)", ("fit", "callbacks")
    more = {"watched": fit, "optional": True, **more}
    return Slot(name, "HV09", _TF + _COMPILED + script, values, adds, **more)


def _saved(name: str, script: str, **more: Any) -> Slot:
    given = {
        "adds": _KEPT,
        "watched": ("fit", "callbacks"),
        "elsewhere": _without("ModelCheckpoint"),
        "told": _told(_MAY_WRITE, *_BINDING) | _told("stays on every rank", *_UNSEEN),
        **more,
    }
    return Slot(name, "HV09", _TF + _COMPILED + script, _SAVING, **given)


def _session(
    name: str, rule: str, script: str, values: tuple[str, str, str], adds: str | tuple[str, ...], **more: Any
) -> Slot:
    return Slot(name, rule, _V1 + script, values, adds, **more)


SLOTS = [
    _rate(
        "rate",
        "optimizer = tf.keras.optimizers.SGD(@)\n" + _LOOP,
        ("SGD", 0),
        told=_told(_HIDDEN, "starred"),
    ),
    _rate(
        "rate by keyword",
        "optimizer = tf.keras.optimizers.SGD(momentum=0.1, learning_rate=@)\n" + _LOOP,
        ("SGD", "learning_rate"),
    ),
    _rate("lr", "optimizer = tf.keras.optimizers.legacy.SGD(lr=@)\n" + _LOOP, ("SGD", "lr")),
    _rate("rate in a variable", "rate = @\noptimizer = tf.keras.optimizers.SGD(rate)\n" + _LOOP, ("SGD", 0)),
    _rate(
        "rate of a schedule",
        "rate = tf.keras.optimizers.schedules.ExponentialDecay(@, 100, 0.9)\n"
        "optimizer = tf.keras.optimizers.SGD(rate)\n" + _LOOP,
        ("ExponentialDecay", 0),
        told=_told(_HIDDEN, "starred"),
    ),
    _rate(
        "rates of a schedule",
        "rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10], [0.75, @])\n"
        "optimizer = tf.keras.optimizers.SGD(rate)\n" + _LOOP,
        ("PiecewiseConstantDecay", 1),
    ),
    Slot(
        "list of rates",
        "HV02",
        _TF + "rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10], @)\n"
        "optimizer = tf.keras.optimizers.SGD(rate)\n" + _LOOP,
        ("[0.5, 0.25]", "[0.1, 0.2]", "list"),
        "* hvd.size()",
        ("PiecewiseConstantDecay", 1),
        _times,
        told=_told(_HIDDEN, "starred"),
    ),
    _rate(
        "rate that is returned",
        "def rate():\n    return @\n\n\noptimizer = tf.keras.optimizers.SGD(rate())\n" + _LOOP,
        ("SGD", 0),
        in_function=True,
    ),
    _rate(
        "rate of a parameter",
        "def make(rate=@):\n    return tf.keras.optimizers.SGD(rate)\n\n\noptimizer = make()\n" + _LOOP,
        ("SGD", 0),
    ),
    _rate(
        "rate that is set",
        "optimizer = tf.keras.optimizers.SGD(0.125)\noptimizer.learning_rate = @\n" + _LOOP,
        ("learning_rate =", 0),
    ),
    _rate(
        "rate that is assigned",
        "optimizer = tf.keras.optimizers.SGD(0.125)\noptimizer.learning_rate.assign(@)\n" + _LOOP,
        ("learning_rate.assign", 0),
        told=_told("", "starred"),
    ),
    _rate(
        "rate of a callback",
        _COMPILED + "scheduler = tf.keras.callbacks.LearningRateScheduler(lambda epoch: @)\n"
        "model.fit(1, 2, verbose=0, callbacks=[scheduler])\n",
        ("LearningRateScheduler", 0),
        in_function=True,
    ),
    Slot(
        "optimizer",
        "HV03",
        _TF + "optimizer = @\n" + _COMPILE,
        _SGD,
        "DistributedOptimizer(",
        told=_told(_NAMES, "and"),
    ),
    Slot(
        "optimizer that is returned",
        "HV03",
        _TF + "def make():\n    return @\n\n\noptimizer = make()\n" + _COMPILE,
        _SGD,
        "DistributedOptimizer(",
        told=_told(_NAMES, "and"),
        in_function=True,
    ),
    Slot(
        "optimizer in another",
        "HV03",
        _TF + "optimizer = tf.keras.mixed_precision.LossScaleOptimizer(@)\n" + _COMPILE,
        _SGD,
        "DistributedOptimizer(",
    ),
    Slot(
        "gradients",
        "HV03",
        _V1 + _GRAPH.replace("minimize(loss)", "apply_gradients(zip(@, [w]))") + _SESSION,
        ("tf.gradients(loss, [w])", "tf.gradients(w, [w])", "thing"),
        ".allreduce(",
    ),
    Slot(
        "what gradients are of",
        "HV03",
        _V1 + _GRAPH.replace("minimize(loss)", "apply_gradients(zip(tf.gradients(@, [w]), [w]))") + _SESSION,
        ("loss", "w", "thing"),
        ".allreduce(",
    ),
    Slot(
        "tape",
        "HV04",
        _TF + _STEP.replace("tf.GradientTape()", "@"),
        ("tf.GradientTape()", "tf.GradientTape(persistent=True)", "thing"),
        "DistributedGradientTape(",
        told=_told(_NOWHERE, *_UNSEEN),
    ),
    Slot(
        "tape that is read",
        "HV04",
        _TF + _STEP.replace("tape.gradient", "(@).gradient"),
        ("tape", "nothing", "thing"),
        "DistributedGradientTape(",
        told=_told(_NOWHERE, *_UNSEEN),
    ),
    Slot(
        "sources",
        "HV04",
        _TF + _STEP.replace("loss, model.trainable_variables", "loss, @"),
        ("model.trainable_variables", "nothing", "thing"),
        "DistributedGradientTape(",
        told=_told(_HIDDEN, "starred"),
    ),
    Slot(
        "one variable",
        "HV04",
        _TF
        + _STEP.replace("loss, model.trainable_variables", "loss, @").replace(
            "zip(grads, model.trainable_variables)", "[(grads, w)]"
        ),
        ("w", "nothing", "thing"),
        "[0]",
        told=_told("is assumed to be a list of variables", *_UNSEEN) | _told(_HIDDEN, "starred"),
    ),
    Slot(
        "nested sources",
        "HV04",
        _TF
        + _STEP.replace("loss, model.trainable_variables", "loss, @")
        .replace("zip(grads, model.trainable_variables)", '[(grads["w"], w)]')
        .replace("model =", 'weights = {"w": w}\nmodel ='),
        ("weights", "nothing", "thing"),
        "nest.flatten(",
        told=_told("is assumed to be a list of variables", *_UNSEEN)
        | _told(_HIDDEN, "starred")
        | _told(
            "a nested structure that is made in the call", "call", "call over lines", "lambda", "attribute"
        ),
    ),
    Slot(
        "pairs",
        "HV05",
        _TF
        + _STEP.replace("zip(grads, model.trainable_variables)", "@").replace(
            "model.trainable_variables", "[w]"
        ),
        ("zip(grads, [w])", "[]", "thing"),
        "broadcast_variables(",
        told=_told(_NOWHERE, "starred"),
    ),
    Slot(
        "pairs of a model",
        "HV05",
        _TF + _STEP.replace("zip(grads, model.trainable_variables)", "@"),
        ("zip(grads, model.trainable_variables)", "[]", "thing"),
        "broadcast_variables(",
        told=_told(_NOWHERE, "starred"),
    ),
    Slot(
        "pairs in a return",
        "HV05",
        _TF + _RETURNED,
        ("zip(grads, [w])", "[]", "thing"),
        "broadcast_variables(",
        told=_told(_NOWHERE, "starred"),
        in_function=True,
    ),
    _count(
        "steps of an epoch",
        _TF + _COMPILED + "model.fit(1, 2, steps_per_epoch=@)\n",
        ("fit", "steps_per_epoch"),
        told=_told("may be None", "None at last"),
        optional=True,
    ),
    _count(
        "batches taken",
        _TF + _STEP.replace("range(8)", "range(8).take(@)"),
        ("take", 0),
        told=_told(_HIDDEN, "starred"),
    ),
    _count(
        "batches taken of a fit",
        _TF + _COMPILED + "model.fit(tf.data.Dataset.range(8).take(@))\n",
        ("take", 0),
        told=_told(_HIDDEN, "starred"),
    ),
    _count(
        "last step",
        _V1 + _GRAPH + _MONITORED.replace("@", "hooks=[tf.train.StopAtStepHook(last_step=@)]"),
        ("StopAtStepHook", "last_step"),
    ),
    _count(
        "steps of an Estimator",
        _V1 + _ESTIMATED + "estimator.train(input_fn=None, steps=@)\n",
        ("train", "steps"),
        told=_told("may be None", "None at last"),
        optional=True,
    ),
    _printed("what is printed", _TRAINED + "print(@)\n", _TEXT),
    _printed("what else is printed", _TRAINED + 'print("loss", @, sep="")\n', ("7", "8", "number"), 1),
    _printed("what is printed after a step", _TRAINED + "it = iter([3, 4])\nprint(next(it), @)\n", _TEXT, 1),
    _printed(
        "a step that is printed",
        _TRAINED + "it = iter([3, 4, 5, 6, 7, 8])\nprint(@)\n",
        ("next(it)", "9", "number"),
    ),
    _printed("what is logged", "import logging\n" + _TRAINED + "logging.info(@)\n", _TEXT),
    Slot(
        "a print in an expression",
        "HV07",
        _TF + _TRAINED + "none = same(@)\n",
        ('print("loss")', "nothing", "thing"),
        "if hvd.rank() == 0 else None",
        ("print", 0),
        None,
    ),
    Slot(
        "path",
        "HV08",
        _TF + _TRAINED + 'log = open(@, "w")\n',
        _TEXT,
        "os.devnull",
        ("open", 0),
        lambda _: "devnull",
        told=_told("", "starred"),
    ),
    Slot(
        "path by keyword",
        "HV08",
        _TF + _TRAINED + 'log = open(mode="w", file=@)\nlog.write("x")\n',
        _TEXT,
        "os.devnull",
        ("open", "file"),
        lambda _: "devnull",
    ),
    Slot(
        "mode",
        "HV08",
        _TF + _TRAINED + 'log = open("log", @)\n',
        ('"w"', '"a"', "text"),
        "os.devnull",
        ("open", 0),
        lambda _: "devnull",
        # A file opened in an unknown mode is most often read.
        told=_told(
            "",
            *_UNSEEN,
            "starred",
            "f-string",
            "f-string and string",
            "percent",
            "sum",
            "method",
            "f-string of the value",
            "strings over lines",
            "strings on the call's lines",
        ),
    ),
    Slot(
        "path of weights",
        "HV08",
        _TF + _TRAINED + "model.save_weights(@)\n",
        _TEXT,
        "if hvd.rank() == 0:",
        ("save_weights", 0),
        None,
        told=_told(_EVERY_RANK, *_DOING, "generator"),
    ),
    Slot(
        "writer",
        "HV08",
        _TF + _TRAINED + "writer = @\n",
        ('tf.summary.create_file_writer("d")', "nothing", "thing"),
        "if hvd.rank() == 0 else tf.summary.create_noop_writer()",
        ("create_file_writer", 0),
        None,
    ),
    Slot(
        "directory of a writer",
        "HV08",
        _TF + _TRAINED + "writer = tf.summary.create_file_writer(@)\n",
        _TEXT,
        "if hvd.rank() == 0 else tf.summary.create_noop_writer()",
        ("create_file_writer", 0),
        None,
        told=_told(_EVERY_RANK, *_DOING),
    ),
    Slot(
        "what is written",
        "HV08",
        _TF + "manager = tf.train.CheckpointManager(nothing, 'd', 3)\n" + _TRAINED + "same(@)\n",
        ("manager.save()", "nothing", "thing"),
        "if hvd.rank() == 0 else None",
        (".save", 0),
        None,
    ),
    _listed("callbacks", "model.fit(1, 2, callbacks=@)\n", (f"[{_STOPPING}]", "[]", "list")),
    _listed(
        "callbacks by position",
        "model.fit(1, 2, 32, 1, 2, @)\n",
        (f"[{_STOPPING}]", "[]", "list"),
        watched=("fit", 5),
        told=_told(_HIDDEN, "starred"),
    ),
    _listed(
        "callbacks in a variable",
        f"callbacks = [{_STOPPING}]\nmodel.fit(1, 2, callbacks=@)\n",
        ("callbacks", "[]", "list"),
    ),
    _listed(
        "one callback",
        "model.fit(1, 2, callbacks=@)\n",
        (_STOPPING, "nothing", "thing"),
        doubted=_UNSEEN[1:],
    ),
    _listed(
        "the first callback",
        f"model.fit(1, 2, callbacks=[@, {_STOPPING}])\n",
        ("tf.keras.callbacks.ReduceLROnPlateau()", _STOPPING, "thing"),
        optional=False,
    ),
    _saved(
        "one callback that writes",
        "model.fit(1, 2, callbacks=@)\n",
        told=_told(_MAY_WRITE, *_BINDING)
        | _told("stays on every rank", "generator")
        | _told(_TAKEN, *_UNSEEN[1:])
        | _told("", "None by a name", "None at last"),
        doubted=_UNSEEN[1:],
        optional=True,
    ),
    _saved("a first callback that writes", f"model.fit(1, 2, callbacks=[@, {_STOPPING}])\n"),
    Slot(
        "callbacks that write",
        "HV09",
        _TF + _COMPILED + "model.fit(1, 2, callbacks=@)\n",
        (f"[{_SAVING[0]}]", f"[{_SAVING[1]}]", "list"),
        _KEPT,
        ("fit", "callbacks"),
        _without("ModelCheckpoint"),
        told=_told(_TAKEN, *_UNSEEN[1:])
        | _told("stays on every rank", "generator")
        | _told("", "None by a name", "None at last"),
        optional=True,
    ),
    _saved(
        "callbacks that are made one by one",
        'model.fit(1, 2, callbacks=[@ for each in "12"])\n',
        adds=" if hvd.rank() == 0]",
    ),
    Slot(
        "callbacks that are picked",
        "HV09",
        _TF + _COMPILED + f"model.fit(1, 2, callbacks=[{_SAVING[0]} for each in [1] if @], verbose=0)\n",
        ("flag", "nothing", "thing"),
        " if hvd.rank() == 0",
        ("fit", "callbacks"),
        _without("ModelCheckpoint"),
    ),
    _saved(
        "a callback that is added",
        f"callbacks = [{_STOPPING}]\ncallbacks.append(@)\nmodel.fit(1, 2, callbacks=callbacks)\n",
        adds="if hvd.rank() == 0:",
        told=_told(_MAY_WRITE, *_BINDING) | _told("stays on every rank", *_UNSEEN) | _told("", "starred"),
    ),
    Slot(
        "verbose",
        "HV09",
        _TF + _COMPILED + "model.fit(1, 2, verbose=@)\n",
        ("2", "1", "number"),
        "hvd.rank() == 0",
        ("fit", "verbose"),
        lambda _: 0,
    ),
    Slot(
        "verbose of evaluate",
        "HV09",
        _TF + _TRAINED + "model.evaluate(1, verbose=@)\n",
        ("2", "1", "number"),
        "hvd.rank() == 0",
        ("evaluate", "verbose"),
        lambda _: 0,
    ),
    Slot(
        "optimizer",
        "HV10",
        _TF + _MODEL + "model.compile(@)\nmodel.fit(1, 2)\n",
        _SGD,
        "DistributedOptimizer(",
        told=_told(_NAMES, "and") | _told(_HIDDEN, "starred"),
    ),
    Slot(
        "optimizer by keyword",
        "HV10",
        _TF + _MODEL + 'model.compile(loss="mse", optimizer=@)\nmodel.fit(1, 2)\n',
        _SGD,
        "DistributedOptimizer(",
        told=_told(_NAMES, "and"),
    ),
    Slot(
        "name of an optimizer",
        "HV10",
        _TF + _MODEL + "model.compile(@)\nmodel.fit(1, 2)\n",
        ('"adam"', '"sgd"', "thing"),
        "DistributedOptimizer(",
        told=_told(_NAMES, "and", *_BINDING[2:])
        | _told("so it cannot wrap it", *_UNSEEN[1:])
        | _told(_HIDDEN, "starred"),
    ),
    Slot(
        "loss in front of it",
        "HV10",
        _TF + _MODEL + "model.compile(loss=@, optimizer=tf.keras.optimizers.SGD(0.5))\nmodel.fit(1, 2)\n",
        ('"mse"', '"mae"', "text"),
        "DistributedOptimizer(",
    ),
    Slot(
        "devices",
        "HV11",
        _TF
        + 'gpus = tf.config.list_physical_devices("GPU")\ntf.config.set_visible_devices(@, "GPU")\n'
        + _TRAINED,
        ("gpus[0]", "gpus[1]", "thing"),
        "hvd.local_rank()",
        told=_told("give the choice of GPUs its own", *_DOING),
    ),
    Slot(
        "variable",
        "HV11",
        _TF + 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = @\n' + _TRAINED,
        ('"0"', '"1"', "text"),
        "hvd.local_rank()",
        told=_told("give the choice of GPUs its own", *_DOING),
    ),
    _session(
        "directory",
        "HV12",
        _ESTIMATOR + "estimator = tf.estimator.Estimator(model_fn, model_dir=@)\n" + _TRAIN,
        _TEXT,
        "hvd.rank() == 0",
        watched=("Estimator", "model_dir"),
        elsewhere=lambda _: None,
        optional=True,
    ),
    _session(
        "name of an optimizer",
        "HV12",
        "estimator = tf.estimator.DNNClassifier([8], [], optimizer=@)\n" + _TRAIN,
        ('"Adam"', '"SGD"', "thing"),
        "DistributedOptimizer(",
        told=_told("a name that the script does not show", *_EITHER)
        | _told("so it cannot wrap it", *_UNSEEN),
    ),
    _session(
        "hooks",
        "HV12",
        _ESTIMATED + "estimator.train(input_fn=None, hooks=@)\n",
        ("[tf.train.NanTensorHook(1)]", "[]", "list"),
        "BroadcastGlobalVariablesHook(0)",
        watched=("train", "hooks"),
        optional=True,
    ),
    _session(
        "a hook that writes",
        "HV12",
        _ESTIMATED + "estimator.train(input_fn=None, hooks=[tf.train.NanTensorHook(1), @])\n",
        _LOGGING,
        _KEPT,
        watched=("train", "hooks"),
        elsewhere=_without("LoggingTensorHook"),
        told=_told("stays on every rank", *_BINDING, *_UNSEEN),
    ),
    _session(
        "configuration",
        "HV12",
        _ESTIMATOR + "config = tf.estimator.RunConfig(session_config=@)\n"
        "estimator = tf.estimator.Estimator(model_fn, config=config)\n" + _TRAIN,
        _PROTO,
        "visible_device_list=",
        told=_told(_LEFT, "and", *_UNSEEN),
        optional=True,
    ),
    _session(
        "directory of a configuration",
        "HV12",
        _ESTIMATOR + "config = tf.estimator.RunConfig(model_dir=@)\n"
        "estimator = tf.estimator.Estimator(model_fn, config=config)\n" + _TRAIN,
        _TEXT,
        "hvd.rank() == 0",
        optional=True,
    ),
    _session(
        "configuration",
        "HV13",
        _GRAPH + _SESSION.replace("Session()", "Session(config=@)"),
        _PROTO,
        "visible_device_list=",
        told=_told(_LEFT, "and", *_UNSEEN),
        optional=True,
    ),
    _session(
        "devices",
        "HV13",
        _GRAPH
        + "options = tf.GPUOptions(visible_device_list=@)\n"
        + _SESSION.replace("Session()", "Session(config=tf.ConfigProto(gpu_options=options))"),
        ('"0"', '"1"', "text"),
        "local_rank()",
    ),
    _session(
        "initializer",
        "HV13",
        _GRAPH + _SESSION.replace("tf.global_variables_initializer()", "@"),
        ("tf.global_variables_initializer()", "nothing", "thing"),
        "broadcast_global_variables(0)",
        told=_told("nothing here initializes or restores the variables", *_UNSEEN, "starred"),
    ),
    _session(
        "checkpoint",
        "HV13",
        _GRAPH
        + "saver = tf.train.Saver()\n"
        + _SESSION.replace("sess.run(tf.global_variables_initializer())", "saver.restore(sess, @)"),
        _TEXT,
        "broadcast_global_variables(0)",
    ),
    _session(
        "directory",
        "HV14",
        _GRAPH + _MONITORED.replace("@", "checkpoint_dir=@"),
        _TEXT,
        "hvd.rank() == 0",
        watched=("MonitoredTrainingSession", "checkpoint_dir"),
        elsewhere=lambda _: None,
        optional=True,
    ),
    _session(
        "hooks",
        "HV14",
        _GRAPH + _MONITORED.replace("@", "hooks=@"),
        ("[tf.train.NanTensorHook(1)]", "[]", "list"),
        "BroadcastGlobalVariablesHook(0)",
        watched=("MonitoredTrainingSession", "hooks"),
        optional=True,
    ),
    _session(
        "a first hook that writes",
        "HV14",
        _GRAPH + _MONITORED.replace("@", "hooks=[@, tf.train.NanTensorHook(1)]"),
        _LOGGING,
        _KEPT,
        watched=("MonitoredTrainingSession", "hooks"),
        elsewhere=_without("LoggingTensorHook"),
        told=_told("stays on every rank", *_BINDING, *_UNSEEN),
    ),
    _session(
        "configuration",
        "HV14",
        _GRAPH + _MONITORED.replace("@", "config=@"),
        _PROTO,
        "visible_device_list=",
        told=_told(_LEFT, "and", *_UNSEEN),
        optional=True,
    ),
]
