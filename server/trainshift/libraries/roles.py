"""Roles of library members that the resolver of names reads: wraps, records, transparent decorators."""

from __future__ import annotations

from collections.abc import Iterable

# The libraries whose modules are never looked for among the files of a workspace.
KNOWN_MODULES = frozenset({"tensorflow", "keras", "horovod", "paddle"})
NOT_IN_WORKSPACES = KNOWN_MODULES | {"numpy"}
# The members of Horovod's modules that a star import may bind.
HOROVOD_MEMBERS = frozenset(
    {
        "init", "rank", "size", "local_rank", "local_size", "broadcast_variables", "broadcast", "allreduce",
        "DistributedGradientTape", "DistributedOptimizer", "callbacks",
    }
)  # fmt: skip
# Decorators that return the function they are given.
DECORATORS = frozenset({"tensorflow.function", "tensorflow.autograph.experimental.do_not_convert"})
# Classes whose objects consist of their attributes, set at construction or later.
RECORDS = frozenset(
    {
        "types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict", "addict.Dict",
        "ml_collections.ConfigDict", "ml_collections.config_dict.ConfigDict", "munch.Munch", "box.Box",
    }
)  # fmt: skip
WRAPPED_TAPE = "horovod.tensorflow.DistributedGradientTape"
_LEGACY_KERAS = "tf_keras"


def is_horovod(full_name: str) -> bool:
    """Return whether a full name is that of a module or a member of Horovod."""
    return full_name.startswith("horovod.")


def wraps_optimizer(full_name: str) -> bool:
    """Return whether a full name is that of Horovod's wrap of an optimizer."""
    return is_horovod(full_name) and full_name.endswith(".DistributedOptimizer")


def wraps_tape(full_name: str) -> bool:
    """Return whether a full name is Horovod's tape wrapper, in any of its modules."""
    return is_horovod(full_name) and full_name.endswith(".DistributedGradientTape")


def is_wrap(names: Iterable[str]) -> bool:
    """Return whether one of some full names is Horovod's optimizer wrapper."""
    return any(map(wraps_optimizer, names))


def imported_as(full_name: str) -> str:
    """The name under which an imported member is known: `tf_keras` mirrors `tensorflow.keras`."""
    if full_name.partition(".")[0] == _LEGACY_KERAS:
        return f"tensorflow.keras{full_name.removeprefix(_LEGACY_KERAS)}"
    return full_name
