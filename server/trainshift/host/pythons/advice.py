"""Advice: check that the packages of a Python fit together, and recommend a fix."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from trainshift.host.pythons.installed import Installed, NoAnswer, ask
from trainshift.host.pythons.recipe import (
    BUILDS,
    HOROVOD,
    LINES,
    Build,
    build_horovod,
    build_tensorflow,
    line_for,
    line_of,
    release,
)

_SUPPORTED = f"{'.'.join(map(str, LINES[0].first))} to {'.'.join(map(str, LINES[-1].last))}"


class Recipe(Struct, frozen=True):
    """One way to install the missing parts: the build, and its commands in order."""

    build: Build
    commands: tuple[str, ...]


class Advice(Struct, frozen=True):
    """The result of an inspection: what the installation lacks, and how to get it.

    `ready`: Horovod works with its TensorFlow.  `says`: the result and the reason, in one or two sentences
    each. `recipes`: ways to install the missing parts, recommended one first; none if only another Python
    helps.
    """

    ready: bool
    says: tuple[str, ...]
    recipes: tuple[Recipe, ...] = ()


def advise(installed: Installed) -> Advice:
    """Judge whether a converted script can run with the installed packages, and list the commands
    that help.
    """
    lacking = _lacking(installed)
    notes = tuple(_notes(installed))
    if not lacking:
        ways = " and ".join(_NAMES[each] for each in installed.built)
        works = f"Horovod {installed.horovod} works with TensorFlow {installed.tensorflow}, by {ways}."
        return Advice(True, (works, *notes))
    return Advice(False, (lacking, *notes), tuple(_recipes(installed)))


def what_is_missing(python: str) -> str:
    """Return the reason why converted scripts cannot run on a Python, with the commands that help, as lines;
    empty if they can.

    For messages of other commands.  Takes some seconds if TensorFlow and Horovod are installed, because they
    are loaded.
    """
    try:
        installed = ask(python)
    except NoAnswer as error:
        return f"{error}."
    advice = advise(installed)
    if advice.ready:
        return ""
    commands = [f"  {command}" for recipe in advice.recipes[:1] for command in recipe.commands]
    more = ["For GPUs or MPI: trainshift doctor --python " + installed.path] if commands else []
    return "\n".join([advice.says[0], *commands, *more])


_NAMES = {"gloo": "Gloo", "mpi": "MPI", "nccl": "NCCL"}


def _lacking(installed: Installed) -> str:
    """The reason why scripts cannot run in an installation; empty if they can."""
    version, horovod = installed.tensorflow, installed.horovod
    if not version:
        if line_for(installed.python):
            return "TensorFlow is not installed there. Install it, then Horovod:"
        python = ".".join(map(str, installed.python[:2]))
        return f"TensorFlow is not installed there, and has no wheel for Python {python}. Use Python 3.11."
    if release(version) < LINES[0].first:
        return f"TensorFlow {version} is too old: converted scripts need {_SUPPORTED}."
    if installed.tensorflow_problem:
        return f"TensorFlow {version} cannot be imported: {installed.tensorflow_problem}"
    if not horovod:
        return f"Horovod is not installed there. Build it for TensorFlow {version}:"
    if not installed.loads:
        return (
            f"Horovod {horovod} does not work with TensorFlow {version}. Build it again: {installed.problem}"
        )
    if not {"gloo", "mpi"} & {*installed.built}:
        return f"Horovod {horovod} was built without Gloo and MPI, so no ranks can talk. Build it again:"
    return ""


def _notes(installed: Installed) -> Iterator[str]:
    """Yield further facts of an installation that matter to converted scripts."""
    version = installed.tensorflow
    if not version:
        return
    line = line_of(version)
    backend = installed.variables.get("KERAS_BACKEND", "tensorflow")
    if installed.horovod and installed.horovod != HOROVOD:
        yield f"Trainshift was tested with Horovod {HOROVOD} only."
    if release(version) > LINES[-1].last:
        yield f"TensorFlow {version} is newer than the tested versions ({_SUPPORTED})."
    if line is not None and line.keras == 2 and release(installed.keras) >= (3, 0):
        yield f'TensorFlow {version} needs Keras 2, not {installed.keras}: pip install "keras<3".'
    if release(version) > LINES[0].last:
        if installed.variables.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True") and installed.tf_keras:
            yield f"tf.keras is Keras 2 there (tf_keras {installed.tf_keras}): TF_USE_LEGACY_KERAS is set."
        else:
            yield (
                "tf.keras is Keras 3 there: convert with `--keras 3`, unless the project chooses one itself. "
                f"Estimators need TensorFlow {LINES[0].choice}."
            )
    if backend != "tensorflow":
        yield f"KERAS_BACKEND={backend} is set: Horovod's averages need Keras on TensorFlow. Unset it."


def _recipes(installed: Installed) -> Iterator[Recipe]:
    """Yield, for each build, the commands that lead to a working Horovod."""
    line = line_for(installed.python)
    keep = installed.tensorflow and not installed.tensorflow_problem
    if keep and release(installed.tensorflow) >= LINES[0].first:
        for build in BUILDS:
            yield Recipe(build, tuple(build_horovod(installed.path, installed.tensorflow, build)))
    elif line is not None:
        for build in BUILDS:
            first = build_tensorflow(installed.path, line, gpu="GPU" in build.name)
            yield Recipe(build, (first, *build_horovod(installed.path, line.choice, build)))
