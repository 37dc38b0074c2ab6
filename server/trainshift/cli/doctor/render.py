"""The doctor's report, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from trainshift.host.pythons.advice import Advice, Recipe
from trainshift.host.pythons.installed import Installed

_VERSION = 1


def tell(installed: Installed, advice: Advice, format_: str) -> None:
    """Print the report, in one of the two formats, to standard output."""
    if format_ == "json":
        click.echo(json.dumps(_table(installed, advice), indent=2))
    else:
        click.echo("\n".join([*_found(installed), "", *advice.says, *_recipes(advice.recipes)]))


def _found(installed: Installed) -> Iterator[str]:
    """Yield one line for each package."""
    built = f" ({', '.join(installed.built)})" if installed.built else ""
    rows = (
        ("Python", f"{'.'.join(map(str, installed.python))} ({installed.path})"),
        ("TensorFlow", installed.tensorflow),
        ("Keras", installed.keras),
        ("tf_keras", installed.tf_keras),
        ("Horovod", installed.horovod + built),
    )
    for name, version in rows:
        if version or name != "tf_keras":
            yield f"{name:<12}{version or 'none'}"


def _recipes(recipes: tuple[Recipe, ...]) -> Iterator[str]:
    """Yield the commands of the first recipe, and the different ones of the others."""
    if not recipes:
        return
    first, *others = recipes
    yield ""
    yield f"For {first.build.name} (needs {first.build.needs}):"
    yield from (f"  {command}" for command in first.commands)
    for recipe in others:
        untried = "" if recipe.build.was_run else ", untested"
        yield ""
        yield f"For {recipe.build.name} (needs {recipe.build.needs}{untried}), run these instead:"
        for command in recipe.commands:
            if command not in first.commands:
                yield f"  {command}"


def _table(installed: Installed, advice: Advice) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "ready": advice.ready,
        "python": {"path": installed.path, "version": ".".join(map(str, installed.python))},
        "tensorflow": installed.tensorflow or None,
        "keras": installed.keras or None,
        "tf_keras": installed.tf_keras or None,
        "horovod": {
            "version": installed.horovod,
            "loads": installed.loads,
            "problem": installed.problem or None,
            "built": [*installed.built],
        }
        if installed.horovod
        else None,
        "programs": sorted(installed.programs),
        "says": [*advice.says],
        "recipes": [
            {
                "for": recipe.build.name,
                "needs": recipe.build.needs,
                "tried": recipe.build.was_run,
                "commands": [*recipe.commands],
            }
            for recipe in advice.recipes
        ],
    }
