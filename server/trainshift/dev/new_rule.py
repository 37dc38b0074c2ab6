"""Lay out something new with a code, or a row of derivatives: `make rule CODE=HV NAME=clip-gradients`.

It writes the module or page, the fixture, the row of the registry and that of the conformance table; `make
docs` derives the other lists of codes from these. The new rule reports nothing yet; its author continues from
there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainshift.core.rule import Rule
from trainshift.derivatives.tables.rows import rows
from trainshift.dev.docgen import ROOT
from trainshift.engine.registry import RULES

PACKAGE = Path("server/trainshift")
CONFORMANCE = Path("server/docs/conformance.md")
TABLES = {
    "builtins": "table.py",
    "math": "table.py",
    "numpy": "table_numpy.py",
    "tensorflow": "table_tensorflow.py",
}
"""The tables of derivatives, by the library of a function that has a row there."""


class UsageError(Exception):
    """The reason why nothing can be laid out for this code and this name."""


@dataclass(frozen=True)
class Layout:
    """The texts for a new code of a family.

    `registry` is the file with the family's rows, and `row` the new one.  `page` is the module or the
    Markdown page, `fixture` the fixture, and `conformance` the row of that table.  The texts have
    placeholders for the `code`, its `family` and `number`, the `name`, its `words`, the `title` and the name
    of a `constant`.
    """

    registry: str
    row: str
    page: str
    fixture: str = ""
    conformance: str = ""


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
_GRAPH = """import paddle


@paddle.jit.to_static(full_graph=True)
def step(x):
    return paddle.abs(x) + 1
```

```run
step(paddle.to_tensor([1.0, 2.0, 3.0]))
# full: agrees
# sot: agrees
```
"""
_TRANSFORM = Layout(
    "transforms/__init__.py",
    'Transform("{code}", "{name}")',
    '''"""{title}.

    before                                  after

## Why it matters

What you would see on two GPUs without it.

## How it is done

What is changed in a script, and what is left alone.
"""

from __future__ import annotations

from trainshift.core.program import Program
from trainshift.core.report import Report
from trainshift.transforms.rule import Proposals


def propose(program: Program, report: Report) -> Proposals:
    """One change for each statement that the rule is about; so far for none."""
    yield from ()
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
_CHECK = '''"""{title} must be right.

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
from trainshift.core.report import Report
from trainshift.core.rule import Findings


def check(program: Program, report: Report) -> Findings:
    """One finding for each place that does not keep to the restriction; so far for none."""
    yield from ()
'''
_CHECKED = (
    """# {code}: {title}

## a plain training loop

It keeps to the restriction.

```python
"""
    + _LOOP
)
_ROW = "| specification | {number}. {title} | {code} | {family}{number} | |"
_RESTRICTION = Layout("restrictions/__init__.py", 'Restriction("{code}", "{name}")', _CHECK, _CHECKED, _ROW)
_HAZARD = Layout(
    "restrictions/__init__.py",
    'Hazard("{code}", "{name}")',
    _CHECK,
    _CHECKED,
    "| hazards | {words} | {code} | {family}{number} | |",
)
_STATIC = Layout(
    "static_graphs/codes.py",
    'StaticCode("{code}", "{name}")',
    '''"""{title} must be right.

## Why it matters

What Paddle does where it is not.

## What to do

How to write it instead.
"""

from __future__ import annotations

from trainshift.core.rule import Findings
from trainshift.static_graphs.reporting import Judge


def check(judge: Judge) -> Findings:
    """One finding for each statement that is wrong; so far for none."""
    yield from ()
''',
    """# {code} {name}

Each case says what is found in its script, and what the fix makes of it.

## a plain function

Nothing in it is wrong.

```python
"""
    + _GRAPH,
    "| specification | {title} | {code} | {family}{number}: a plain function | |",
)
_OWN = Layout(
    "engine/own_codes.py",
    '{constant} := Rule("{code}", "{name}")',
    """{title} is wrong.

## Why it matters

What follows for the user if it stays as it is.

## What to do

How to put it right, by which setting or edit.
""",
)
_DERIVATION = Layout(
    "engine/derivation_rules.py",
    'Rule("{code}", "{name}")',
    """{title} are differentiated.

How it is done, with an example.
""",
    """# {code} {name}

## a square

What the case shows.

```python
def square(x):
    return x * x
```

```python square
```
""",
    "| specification | {title} | {code} | {family}{number}: a square | |",
)
LAYOUTS = {
    "HV": _TRANSFORM,
    "TF": _RESTRICTION,
    "TL": _RESTRICTION,
    "HZ": _HAZARD,
    "PD": _STATIC,
    "TS": _OWN,
    "AD": _DERIVATION,
}


def lay_out(code: str, name: str) -> dict[Path, str]:
    """The contents of files with the new code, by path from the root; raises UsageError.

    A family alone, such as `HV`, stands for its next code.  For the full name of a function, such as
    `math.cbrt`, that is its row of derivatives; `name` has its parameters then.
    """
    code, name = code.strip(), name.strip()
    if code.partition(".")[0] in TABLES and "." in code:
        return _with_derivative(code, name)
    code = code.upper()
    code = next_code(code) if code in LAYOUTS else code
    _demand_free(code, name)
    layout = LAYOUTS[code[:2]]
    rule = Rule(code, name)
    words = {"code": code, "name": name, "title": name.capitalize().replace("-", " ")}
    words["words"] = name.replace("-", " ")
    words |= {"family": code[:2].lower(), "number": code[2:], "constant": name.upper().replace("-", "_")}
    registry = PACKAGE / layout.registry
    files = {
        PACKAGE / rule.place: layout.page.format(**words),
        registry: _registered(
            (ROOT / registry).read_text(encoding="utf-8"), code, layout.row.format(**words)
        ),
    }
    if layout.fixture:
        files[Path("fixtures", rule.fixtures, f"{rule.stem}.md")] = layout.fixture.format(**words)
    if layout.conformance:
        table = (ROOT / CONFORMANCE).read_text(encoding="utf-8")
        files[CONFORMANCE] = _with_row(table, layout.conformance.format(**words))
    return files


def next_code(family: str) -> str:
    """The code that comes next in a family."""
    numbers = [int(rule.code[2:]) for rule in RULES if rule.code.startswith(family)]
    return f"{family}{max(numbers, default=0) + 1:02}"


def main(arguments: Sequence[str]) -> int:
    """Write the files of a new rule with the given code and name, and print the remaining steps."""
    code, name = (*arguments, "", "")[:2]
    try:
        files = lay_out(code, name)
    except UsageError as error:
        print(f"{error}\nUsage: make rule CODE=HV NAME=clip-gradients", file=sys.stderr)
        return 2
    for path, text in files.items():
        print(f"{'changed' if (ROOT / path).exists() else 'new    '} {path}")
        (ROOT / path).write_text(text, encoding="utf-8")
    print("CONTRIBUTING.md says how to go on.")
    return 0


def _demand_free(code: str, name: str) -> None:
    if not re.fullmatch(r"[A-Z]{2}\d\d", code) or code[:2] not in LAYOUTS:
        raise UsageError(f"CODE is to be one of {', '.join(LAYOUTS)}, or like math.cbrt, and not {code!r}.")
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", name):
        raise UsageError(f"NAME is to be small letters with hyphens in between, and not {name!r}.")
    for rule in RULES:
        if code == rule.code:
            raise UsageError(f"{code} is {rule.name} already; the next code is {next_code(code[:2])}.")
        if name == rule.name:
            raise UsageError(f"{rule.code} is called {name} already.")
    if code != next_code(code[:2]):
        raise UsageError(f"{code} would be out of order: the next code is {next_code(code[:2])}.")


def _registered(text: str, code: str, row: str) -> str:
    """The registry with a row more, below the last one of its family."""
    first = rf'(?:[A-Z_]+ := )?\w+\((?:"{code[:2]}\d\d".*\),\n|\n {{8}}"{code[:2]}\d\d"(?:.*\n)*? {{4}}\),\n)'
    *_, last = re.finditer(rf"^ {{4}}{first}", text, re.M)
    return f"{text[: last.end()]}    {row},\n{text[last.end() :]}"


def _with_row(text: str, row: str) -> str:
    """The conformance table with a row more, below the last one of its family."""
    code = re.search(r"\b[A-Z]{2}\d\d\b", row)
    assert code is not None
    lines = text.splitlines(keepends=True)
    found = [at for at, line in enumerate(lines) if re.match(rf"\|.*\| {code[0][:2]}\d\d\b", line)]
    if not found:
        raise UsageError(f"{CONFORMANCE} has no row of {code[0][:2]} to put the new one below.")
    return "".join([*lines[: found[-1] + 1], f"{row}\n", *lines[found[-1] + 1 :]])


def _with_derivative(function: str, params: str) -> dict[Path, str]:
    """The table of a library with a row for a function, whose derivatives are still to be written."""
    names = params.split()
    if not names or not all(name.isidentifier() for name in names) or {"d", "y"} & set(names):
        raise UsageError(f'NAME is to be the parameters of {function}, as in NAME="a b", without d and y.')
    library = function.partition(".")[0]
    path = PACKAGE / "derivatives" / "tables" / TABLES[library]
    text = (ROOT / path).read_text(encoding="utf-8")
    if function in rows():
        raise UsageError(f"{path} has a row of {function} already.")
    *_, last = re.finditer(rf'^    (?:slope\("{library}\.|\*_slopes\(").*\),\n', text, re.M)
    templates = ", ".join(f'"{name}": "d"' for name in names)
    row = f'    slope("{function}", "{params}", {{{templates}}}),\n'
    return {path: f"{text[: last.end()]}{row}{text[last.end() :]}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
