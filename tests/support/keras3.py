"""The scripts of `fixtures/keras3`, their conversions for Keras 3, and wrong conversions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from trainshift.core.choices import KERAS_3, Choices
from trainshift.engine.conversion import Conversion, convert

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "keras3").glob("*.py"))
_FLAG = r"hvd_broadcast_done\w*"
# A call over any number of lines, with parentheses in parentheses.
_BROADCAST = re.compile(r"hvd\.broadcast_variables\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_DONE = re.compile(rf"if (not {_FLAG}|optimizer\.iterations == 1):")
# The tape of a step, the broadcast that follows it, and everything between them.
_STEP = re.compile(
    r"(?P<step>(?P<unit> *)with tf\.GradientTape.*?)"
    r"(?P<broadcast>(?P=unit)if not hvd_broadcast_done.*?assign\(True\)\n)",
    re.S,
)


def _instead(pattern: str | re.Pattern[str], text: str) -> Callable[[str], str]:
    return lambda converted: re.sub(pattern, text, converted)


def _before_build(converted: str) -> str:
    """The broadcast above the eager step of a model that has no weights before its first batch.

    A traced step is traced again once its variables exist, together with the broadcast.
    """
    is_built = "Input(" in converted or "tf.Variable(tf." in converted
    return (
        converted
        if is_built or "tf.function" in converted
        else _STEP.sub(r"\g<broadcast>\g<step>", converted)
    )


def _flag_never_set(converted: str) -> str:
    """The broadcast after a step, changed so that it never runs, unless another one precedes all steps."""
    is_early = re.search(r"^hvd\.broadcast_variables", converted, re.M)
    return converted if is_early else _DONE.sub("if False:", converted)


def _boolean_flag(converted: str) -> str:
    """The flag as a Python Boolean in a traced step, which sees only its value at the time of tracing."""
    if "tf.function" not in converted:
        return converted
    flag = f"({_FLAG})"
    set_once = re.sub(rf"{flag}\.assign\(True\)", r"\1[0] = True", converted)
    asked = re.sub(rf"if not {flag}:", r"if not \1[0]:", set_once)
    return re.sub(rf"{flag} = tf\.Variable\(False, trainable=False\)", r"\1 = [False]", asked)


# The change that makes a conversion wrong: its name, and the edit of the text, which must change it.
_MISTAKES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("not averaged", _instead(r"hvd\.allreduce\((grad)\)", r"\1")),
    ("averaged twice", _instead(r"hvd\.allreduce\((grad)\)", r"hvd.allreduce(hvd.allreduce(\1))")),
    ("not averaged in a graph", _instead(r"hvd\.DistributedOptimizer\(", "(")),
    ("not broadcast", _instead(_BROADCAST, "pass")),
    ("broadcast of nothing", _instead(_BROADCAST, "hvd.broadcast_variables([], root_rank=0)")),
    ("broadcast before build", _before_build),
    ("broadcast that is not run", _instead(r"se\w+\.run\((?:hvd\.broad|self\.broad).*", "pass")),
    ("flag that a trace sets", _flag_never_set),
    ("Boolean flag", _boolean_flag),
    ("left to XLA", _instead(r"(\w+)\.jit_compile = False", r"\1.run_eagerly = False")),
)


def converted(path: Path) -> Conversion:
    """The conversion of a script for Keras 3."""
    return convert(path.read_text(encoding="utf-8"), choices=Choices(keras=KERAS_3))


def is_of_graphs(text: str) -> bool:
    """Return whether a script trains in sessions, as TensorFlow 1 does."""
    return ".Session(" in text or "MonitoredTrainingSession(" in text or "MonitoredSession(" in text


def wrong(text: str) -> Iterator[tuple[str, str]]:
    """The wrong conversions made from a correct one, each with its mistake."""
    for name, spoil in _MISTAKES:
        spoilt = spoil(text)
        if spoilt != text:
            yield name, spoilt
