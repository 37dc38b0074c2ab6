"""Lay out a new rule or restriction: `make rule CODE=HV18 NAME=clip-gradients`.

It writes the module, the fixture, and the entries of the registry and of the conformance table; `make docs`
derives the other lists of codes from these. The new rule reports nothing yet; its author continues from
there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from trainshift.dev.docgen import ROOT
from trainshift.restrictions import HAZARDS, RESTRICTIONS
from trainshift.restrictions.restriction import Restriction
from trainshift.transforms import TRANSFORMS
from trainshift.transforms.rule import Transform

Rule: TypeAlias = Transform | Restriction
CONFORMANCE = Path("server/docs/conformance.md")


class UsageError(Exception):
    """The reason why nothing can be laid out for this code and this name."""


@dataclass(frozen=True)
class Kind:
    """The common parts of all families of codes of one kind.

    `folder` contains their modules and their fixtures, `rules` is their registry.  The texts have
    placeholders for the `code`, its `family` and `number`, the `name` and the `title`; `row` is for the
    conformance table.
    """

    folder: str
    rules: Sequence[Rule]
    module: str
    fixture: str
    row: str


_LOOP = """import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)

for x, y in data:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
```
"""
TRANSFORM = Kind(
    "transforms",
    TRANSFORMS,
    '''"""{title}.

    before                                  after

## Why it matters

What you would see on two GPUs without it.

## How it is done

What is changed in a script, and what is left alone.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.transforms.rule import Proposals, Transform


def propose(program: Program) -> Proposals:
    """One change for each statement that the rule is about; so far for none."""
    yield from ()


RULE = Transform("{code}", "{name}", propose)
''',
    """# {code} {name}

What the cases below show.

## a plain training loop

Other rules convert it; nothing in it is for this one.

```python before
"""
    + _LOOP,
    "| specification | {title} | {code} | {family}{number}: a plain training loop | |",
)
RESTRICTION = Kind(
    "restrictions",
    RESTRICTIONS,
    '''"""{title} must be right.

    wrong                                   right

## Why it matters

What you would see on two GPUs where it does not hold.

## What to do

How to write it instead.

## What is reported

What breaks it, and what is fine, harmless or unknown.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.restrictions.restriction import Findings, Restriction


def check(program: Program) -> Findings:
    """One finding for each place that does not keep to the restriction; so far for none."""
    yield from ()


RULE = Restriction("{code}", "{name}", check)
''',
    """# {code}: {title}

## a plain training loop

It keeps to the restriction.

```python
"""
    + _LOOP,
    "| specification | {number}. {title} | {code} | {family}{number} | |",
)
HAZARD = replace(
    RESTRICTION,
    rules=HAZARDS,
    module=RESTRICTION.module.replace("Restriction(", "Hazard(").replace("Restriction\n", "Hazard\n"),
)
FAMILIES = {"HV": TRANSFORM, "TF": RESTRICTION, "TL": RESTRICTION, "HZ": HAZARD}
"""The kind of rule that the letters of a code stand for."""


def lay_out(code: str, name: str) -> dict[Path, str]:
    """The contents of files with the new rule, by path from the root; raises UsageError."""
    code, name = code.strip().upper(), name.strip()
    _demand_free(code, name)
    kind = FAMILIES[code[:2]]
    stem = f"{code.lower()}_{name.replace('-', '_')}"
    words = {"code": code, "name": name, "title": name.capitalize().replace("-", " ")}
    words |= {"family": code[:2].lower(), "number": code[2:]}
    package = Path("server/trainshift", kind.folder)
    registry = package / "__init__.py"
    return {
        package / f"{stem}.py": kind.module.format(**words),
        Path("fixtures", kind.folder, f"{stem}.md"): kind.fixture.format(**words),
        registry: _registered((ROOT / registry).read_text(encoding="utf-8"), stem),
        CONFORMANCE: _with_row(
            (ROOT / CONFORMANCE).read_text(encoding="utf-8"), kind, kind.row.format(**words)
        ),
    }


def next_code(family: str) -> str:
    """The code that the next rule of a family gets."""
    numbers = [int(rule.code[2:]) for rule in FAMILIES[family].rules if rule.code.startswith(family)]
    return f"{family}{max(numbers, default=0) + 1:02}"


def main(arguments: Sequence[str]) -> int:
    """Write the files of a new rule with the given code and name, and print the remaining steps."""
    code, name = (*arguments, "", "")[:2]
    try:
        files = lay_out(code, name)
    except UsageError as error:
        print(f"{error}\nUsage: make rule CODE={_next_codes()[0]} NAME=clip-gradients", file=sys.stderr)
        return 2
    for path, text in files.items():
        print(f"{'changed' if (ROOT / path).exists() else 'new    '} {path}")
        (ROOT / path).write_text(text, encoding="utf-8")
    print("CONTRIBUTING.md says how to go on.")
    return 0


def _demand_free(code: str, name: str) -> None:
    if not re.fullmatch(r"[A-Z]{2}\d\d", code) or code[:2] not in FAMILIES:
        raise UsageError(f"CODE is to be one of {', '.join(_next_codes())}, and not {code!r}.")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise UsageError(f"NAME is to be small letters with hyphens in between, and not {name!r}.")
    rules: tuple[Rule, ...] = (*TRANSFORMS, *RESTRICTIONS)
    for rule in rules:
        if code == rule.code:
            raise UsageError(f"{code} is {rule.name} already; the next code is {next_code(code[:2])}.")
        if name == rule.name:
            raise UsageError(f"{rule.code} is called {name} already.")
    if code != next_code(code[:2]):
        raise UsageError(f"{code} would be out of order: the next code is {next_code(code[:2])}.")


def _next_codes() -> list[str]:
    return [next_code(family) for family in FAMILIES]


def _registered(text: str, stem: str) -> str:
    """The registry with an additional module, in the list of imports and in the list of rules, both
    in order.
    """
    for entry in (stem, f"{stem}.RULE"):
        pattern = r"\w+" + re.escape(entry.removeprefix(stem))
        listed = list(re.finditer(rf"^    ({pattern}),\n", text, re.M))
        before = [match for match in listed if match[1] < entry]
        at = before[-1].end() if before else listed[0].start()
        text = f"{text[:at]}    {entry},\n{text[at:]}"
    return text


def _with_row(text: str, kind: Kind, row: str) -> str:
    """The conformance table with an additional row, below the last one of its family, or else of its kind."""
    code = re.search(r"\b[A-Z]{2}\d\d\b", row)
    assert code is not None
    families = [family for family, each in FAMILIES.items() if each is kind]
    lines = text.splitlines(keepends=True)
    for wanted in (code[0][:2], "|".join(families)):
        rows = [at for at, line in enumerate(lines) if re.match(rf"\|.*\| (?:{wanted})\d\d\b", line)]
        if rows:
            return "".join([*lines[: rows[-1] + 1], f"{row}\n", *lines[rows[-1] + 1 :]])
    raise UsageError(f"{CONFORMANCE} has no row of {' or '.join(families)} to put the new one below.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
