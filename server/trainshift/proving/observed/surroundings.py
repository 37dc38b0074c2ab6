"""The surroundings of an observed script: its seeds, the destination of its logs, and XLA."""

from __future__ import annotations

import importlib
import itertools
import logging
import random
import sys
import sysconfig
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TextIO

from trainshift.proving.observed.kerases import Keras

SEED = 1000
# Libraries that split and sample data with the seeds passed to them.
SPLITTING = ("sklearn.", "pandas.")
SEED_NAMES = ("seed", "a", "x", "entropy")


def set_seeds(np: Any, shift: int) -> None:
    """Seed Python and NumPy differently on each rank."""
    random.seed(SEED + shift)
    np.random.seed(SEED + shift)


def shift_seeds(tf: Any, np: Any, shift: int) -> None:
    """Seed TensorFlow, and add `shift` to every seed that the script sets from now on."""
    tf.random.set_seed(SEED + shift)
    shift_graph_seeds(tf, shift)
    if not shift:
        return

    def moved(seed: Any) -> Any:
        return seed + shift if isinstance(seed, int | np.integer) else seed

    def shifted(args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        named = {key: moved(value) if key in SEED_NAMES else value for key, value in kwargs.items()}
        return [*map(moved, args[:1]), *args[1:]], named

    def hook(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            given, named = shifted(args, kwargs)
            return original(*given, **named)

        def init(this: Any, *args: Any, **kwargs: Any) -> None:
            given, named = shifted(args, kwargs)
            original.__init__(this, *given, **named)

        setattr(owner, name, standing_in(original, init) if isinstance(original, type) else call)

    def init_random(this: Any, x: Any = None) -> None:
        plain_random.__init__(this, moved(x))

    def init_state(this: Any, seed: Any = None) -> None:
        # Split differently, the ranks' data would not have equal sizes; and these calls draw no weights.
        splits = sys._getframe(1).f_globals.get("__name__", "").startswith(SPLITTING)
        plain_state.__init__(this, seed if splits else moved(seed))

    plain_random, plain_state = random.Random, np.random.RandomState
    hook(random, "seed")
    for name in ("seed", "default_rng", "PCG64", "MT19937", "Philox", "SFC64", "SeedSequence"):
        hook(np.random, name)
    hook(importlib.import_module("tensorflow.python.eager.context"), "set_global_seed")
    hook(tf.random.Generator, "from_seed")
    random.Random = standing_in(plain_random, init_random)  # type: ignore[misc, assignment]
    np.random.RandomState = standing_in(plain_state, init_state)

    # Every stateless random operation, Keras's seeded initializers among them, reads its seed here.
    stateless: Any = importlib.import_module("tensorflow.python.ops.random_ops_util")
    key_counter_alg = stateless.get_key_counter_alg

    def shifted_key_counter_alg(seed: Any, alg: Any) -> Any:
        tensor = tf.convert_to_tensor(seed)
        return key_counter_alg(tensor + tf.cast(shift, tensor.dtype), alg)

    stateless.get_key_counter_alg = shifted_key_counter_alg


class StandIn(type):
    """The type of a class that stands in for another one, `original`, whose instances count as its own."""

    def __instancecheck__(cls, instance: Any) -> bool:
        original = vars(cls).get("original")
        return isinstance(instance, original) if original else super().__instancecheck__(instance)

    def __subclasscheck__(cls, other: type) -> bool:
        original = vars(cls).get("original")
        return issubclass(other, original) if original else super().__subclasscheck__(other)


def standing_in(original: type, init: Callable[..., None]) -> type:
    """Return a subclass with another `__init__` that may replace a class: `isinstance` does not tell them
    apart.
    """
    names = {"__module__": original.__module__, "__qualname__": original.__qualname__}
    return StandIn(original.__name__, (original,), {**names, "original": original, "__init__": init})


def shift_graph_seeds(tf: Any, shift: int) -> None:
    """Add `shift` to the seed of every random operation of a graph; seed those without one."""
    seeds: Any = importlib.import_module("tensorflow.python.framework.random_seed")
    get_seed, numbers = seeds.get_seed, itertools.count()

    def shifted(op_seed: Any) -> tuple[Any, Any]:
        graph_seed, own = get_seed(op_seed)
        if tf.executing_eagerly():
            return graph_seed, own
        return (SEED + shift, next(numbers)) if own is None else (graph_seed + shift, own)

    seeds.get_seed = shifted


def drop_xla() -> None:
    """Make every `tf.function` run without XLA."""
    functions: Any = importlib.import_module(
        "tensorflow.python.eager.polymorphic_function.polymorphic_function"
    )
    original = functions.Function.__init__

    def init(this: Any, *args: Any, **kwargs: Any) -> None:
        original(this, *args, **{**kwargs, "jit_compile": None})

    functions.Function.__init__ = init


def choose_xla(keras: Keras) -> None:
    """Have Keras 3 compile training by XLA wherever it would on a machine with GPUs.

    Other methods of a model never use XLA: that of a CPU may lack features of a GPU's.
    """
    if not keras.is_3:
        return
    owner, trainer = keras.api.Model, keras.part("trainers.trainer")
    supports = trainer.model_supports_jit

    def resolved(model: Any) -> bool:
        return not model._distribute_strategy and bool(supports(model))

    def uncompiled(name: str) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def make(model: Any, *args: Any, **kwargs: Any) -> Any:
            chosen = getattr(model, "_jit_compile", None)
            model._jit_compile = False
            try:
                return original(model, *args, **kwargs)
            finally:
                model._jit_compile = chosen

        setattr(owner, name, make)

    if hasattr(owner, "_resolve_auto_jit_compile"):
        owner._resolve_auto_jit_compile = resolved
    else:  # The original function.
        trainer.resolve_auto_jit_compile = resolved
    for name in ("make_test_function", "make_predict_function"):
        uncompiled(name)


def route_logs(noise: TextIO, stderr: TextIO) -> None:
    """Send the script's log messages to `stderr`, and the packages' own to `noise`.

    A script requests TensorFlow's records below warnings with `tf.logging.set_verbosity`.  `app.run` requests
    nothing, although TensorFlow's INFO records appear if it is used.
    """
    absl: Any = importlib.import_module("absl.logging")
    tensorflow = logging.getLogger("tensorflow")
    packages = sysconfig.get_paths()["purelib"]

    def is_output(entry: logging.LogRecord) -> bool:
        asked = entry.name == tensorflow.name and tensorflow.level and entry.levelno < logging.WARNING
        if asked or not entry.pathname.startswith(packages):
            return True
        noise.write(f"{entry.levelname}:{entry.name}:{entry.getMessage()}\n")
        return False

    for logger in (tensorflow, absl.get_absl_logger()):
        logger.addFilter(is_output)
    for handler in (*tensorflow.handlers, absl.get_absl_handler().python_handler):
        handler.setStream(stderr)


def show_warning(stream: TextIO) -> Callable[..., None]:
    """A `warnings.showwarning` that writes to `stream`, because a Python warning is not the
    script's output.
    """

    def show(
        message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        (file or stream).write(warnings.formatwarning(message, category, filename, lineno, line))

    return show
