"""Stand-ins for TensorFlow, Horovod and all other imports of a script: they record its calls.

Two scripts are equivalent if their records are equal.  Code that a rewrite adds is not recorded: all of
Horovod except the objects passed to its wraps, and the choice of GPUs.  Defaults and names are recorded by
their values.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

from trainshift.libraries import api

# Horovod's functions that return their argument unchanged.
_WRAPS = ("DistributedOptimizer", "DistributedGradientTape", "allreduce")
# Functions that rewrites call, and scripts in their place.
_UNNOTED = (
    "tensorflow.config.", "tensorflow.init_scope", "tensorflow.nest.", "tensorflow.compat.v1.set_random_seed",
)  # fmt: skip
# Objects made from arguments alone: equal to them, and nothing without any.
_DESCRIBED = ("GPUOptions", "ConfigProto", "RunConfig", "ChiefSessionCreator")
_SHOWING = ("fit", "evaluate", "predict")
RANKS = 4


class World:
    """One run of a script, as one rank of several."""

    def __init__(self, size: int = 1, rank: int = 0) -> None:
        self.size, self.rank = size, rank
        self.notes: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self._made: Counter[str] = Counter()
        self._averaged: set[str] = set()
        self.environment: dict[str, str] = {}
        self.visible: list[Any] = []

    def run(self, text: str) -> World:
        """Run a script."""
        fakes = {"__import__": self._import, "print": Thing(self, "print"), "open": Thing(self, "open")}
        names = {"__name__": "__main__", "__builtins__": {**vars(builtins), **fakes}, "drive": _drive}
        exec(compile(text, "script.py", "exec"), names)
        return self

    def given(self, path: str, place: int | str) -> list[Any]:
        """The arguments of a path's calls at a position, or for a keyword."""
        return [
            words.get(place) if isinstance(place, str) else args[place] if place < len(args) else None
            for called, args, words in self.notes
            if called.endswith(path)
        ]

    def trained_apart(self) -> set[str]:
        """The optimizers in compiled models, and the tapes, that do not average."""
        used = {
            words.get("optimizer", *args[:1]) if called.endswith("compile") else called.rpartition(".")[0]
            for called, args, words in self.notes
            if called.endswith((".compile", ".gradient"))
        }
        return used - self._averaged

    def _import(self, name: str, *rest: Any) -> Any:
        if name == "os":
            return types.SimpleNamespace(
                devnull="devnull", environ=self.environment, path=Thing(self, "os.path"),
                makedirs=Thing(self, "os.makedirs"), putenv=self.environment.__setitem__,
            )  # fmt: skip
        given = rest[2] if len(rest) > 2 else None
        return Thing(self, name if given else name.partition(".")[0])

    def call(self, thing: Thing, args: tuple[Any, ...], words: dict[str, Any]) -> Any:
        """Record a call, unless a rewrite has added it, and invent its result."""
        path = thing._path
        last = path.rpartition(".")[2]
        if path.startswith("horovod."):
            return self._horovod(last, args)
        if thing._added or any(isinstance(each, Thing) and each._added for each in args):
            return Thing(self, path, added=True)
        if path == "tensorflow.keras.optimizers.get" and args and isinstance(args[0], str):
            return self._named(args[0])
        if path.startswith(_UNNOTED) or last == "variables":
            return self._unnoted(last, args, path)
        if last == "register_keras_serializable":
            return lambda cls: cls
        self._complete(path, last, args, words)
        if last == "compile" and args and isinstance(args[0], str):
            args = (self._named(args[0]), *args[1:])
        if last == "gradient" and len(args) > 1:
            args = (args[0], _flat(args[1]), *args[2:])
        if last == "fit":  # Keras flattens a list of callbacks.
            words["callbacks"] = _flat(words.get("callbacks"))
            args = (*args[:5], *map(_flat, args[5:]))
        rendered = tuple(map(self.render, args))
        known = {name: self.render(value) for name, value in words.items()}
        known = {name: value for name, value in known.items() if value not in (None, [])}
        if last in _DESCRIBED:
            known.pop("visible_device_list", None)
            if known == {"allow_soft_placement": True}:
                known = {}  # Like an Estimator does by itself.
            return Thing(self, path, described=(rendered, known))
        self.notes.append((path, rendered, known))
        if path.endswith(".gradients"):
            return [Thing(self, f"{path}()[0]"), Thing(self, f"{path}()[1]")]
        self._made[path] += 1
        made = f"{path}()#{self._made[path]}"
        if not self._averaged.isdisjoint(each for each in rendered if isinstance(each, str)):
            self._averaged.add(made)  # A wrapper of an averaged value.
        return Thing(self, made)

    def _horovod(self, last: str, args: tuple[Any, ...]) -> Any:
        if last in ("size", "local_size"):
            return self.size
        if last in ("rank", "local_rank"):
            return self.rank
        if last not in _WRAPS:
            return Thing(self, f"horovod.{last}", added=True)
        self._averaged.add(self.render(args[0]))
        return args[0]

    def _unnoted(self, last: str, args: tuple[Any, ...], path: str) -> Any:
        if last == "flatten":
            return _flat(args[0])
        if last == "pack_sequence_as":
            return args[1]
        if last == "set_visible_devices":
            self.visible.append(self.render(args[0]))
        if last.startswith("list_"):
            return [Thing(self, f"gpu{each}") for each in range(RANKS)]
        return Thing(self, f"{path}()")

    def _complete(self, path: str, last: str, args: tuple[Any, ...], words: dict[str, Any]) -> None:
        """Add the defaults of a call's missing arguments, because a rewrite may state them."""
        signature = api.constructor(path) if last[:1].isupper() else None
        rate = signature.parameter("learning_rate") if signature is not None else None
        if rate is not None and rate.default and not args and "lr" not in words:
            words.setdefault("learning_rate", ast.literal_eval(rate.default))
        if last in _SHOWING and "." in path and "#" in path and len(args) < 4:
            words.setdefault("verbose", 1)
        if last.startswith("DNN") and isinstance(words.get("optimizer"), str):
            made = Thing(self, f"tensorflow.compat.v1.train.{words['optimizer']}Optimizer")
            words["optimizer"] = made(learning_rate=0.05)
        if last == "compile":
            if not args:
                words.setdefault("optimizer", "rmsprop")
            if isinstance(words.get("optimizer"), str):
                words["optimizer"] = self._named(words["optimizer"])

    def _named(self, name: str) -> Any:
        """The optimizer that Keras makes of a name."""
        return Thing(self, api.keras_optimizer(name) or name)()

    def render(self, value: Any) -> Any:
        """A value in a comparable form."""
        if isinstance(value, Thing):
            if value._described is not None:
                rendered, known = value._described
                return [value._path, *rendered, known] if rendered or known else None
            return value._path
        if isinstance(value, list | tuple | Iterator):
            return [self.render(each) for each in value if not (isinstance(each, Thing) and each._added)]
        if isinstance(value, dict):
            return {name: self.render(each) for name, each in value.items()}
        if isinstance(value, types.FunctionType):
            return ["function", self.render(value(*range(value.__code__.co_argcount)))]
        if isinstance(value, str | bytes | int | float | type(None)):
            return value
        return type(value).__name__


class Thing:
    """An object of a library: it has every attribute, accepts every call, and supports every operation."""

    def __init__(self, world: World, path: str, added: bool = False, described: Any = None) -> None:
        self.__dict__.update(_world=world, _path=path, _added=added, _described=described)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = Thing(self._world, f"{self._path}.{name}", added=self._added)
        return self.__dict__[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        given, path = self._world.render(value), f"{self._path}.{name}"
        if given != path:  # A variable assigned to itself keeps its value.
            self._world.notes.append((f"{path} =", (given,), {}))

    def __call__(self, *args: Any, **words: Any) -> Any:
        return self._world.call(self, args, words)

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __iter__(self) -> Iterator[Thing]:
        return iter([Thing(self._world, f"{self._path}[{each}]") for each in range(2)])

    def __getitem__(self, key: Any) -> Any:
        return self if ".gradient()" in self._path else Thing(self._world, f"{self._path}[{key}]")

    def __await__(self) -> Generator[Any, Any, Any]:
        yield from ()
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __format__(self, _: str) -> str:
        return str(self._path)

    def _combined(self, other: Any) -> Any:
        return self if other == 1 else Thing(self._world, f"({self._path} with {self._world.render(other)})")

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __matmul__ = _combined


def _flat(value: Any) -> list[Any]:
    """The members of a structure that TensorFlow flattens."""
    if value is None:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    return [part for each in value for part in _flat(each)] if isinstance(value, list | tuple) else [value]


def _drive(running: Any) -> None:
    """Run a coroutine, or a generator, and send its yielded values back to it."""
    try:
        value = running.send(None)
        while True:
            value = running.send(value)
    except StopIteration:
        return
