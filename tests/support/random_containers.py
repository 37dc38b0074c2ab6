"""Write random Python functions of containers (AD35 to AD37): text and arguments, from a seed.

Lists, dicts and arrays have several names; helpers and inner functions mutate, link and return them.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

# Templates for a value of a kind, and for a mutation of one. `<kind>` is an existing one, a variable or an
# element of one; `<new kind>` any expression, `<f>` a number, `<leaf>` a short one, `<test>` a condition.
VALUES: dict[str, list[str]] = {
    "list": [
        "<list>",
        "[<f>, <f>]",
        "<list>[:]",
        "list(<list>)",
        "[v * <leaf> for v in <list>]",
        "<list> + [<f>]",
        "<list>[1:] + [<leaf>]",
        "sorted(<list>)",
        "list(reversed(<list>))",
        "<list> if <test> else <list>",
    ],
    "dict": ["<dict>", "{'a': <f>, 'b': <f>}", "dict(<dict>)", "{k: v * <leaf> for k, v in <dict>.items()}"],
    "rows": [
        "<rows>",
        "[<new list>, <new list>]",
        "list(<rows>)",
        "[row[:] for row in <rows>]",
        "<rows>[::-1]",
        "[row for row in <rows>]",
        "<rows> + [<new list>]",
    ],
    "box": [
        "<box>",
        "{'a': <new list>, 'b': <new list>}",
        "dict(<box>)",
        "{k: v[:] for k, v in <box>.items()}",
    ],
    "array": [
        "<array>",
        "np.array([<f>, <leaf>, <leaf>])",
        "<array>.copy()",
        "<array> * <leaf>",
        "<array> + <array>",
        "<array> + 1.0",
        "<array> * <call array>",
        "<array>[:]",
        "<array>[::-1]",
        "<array>.reshape(-1)",
        "<array>.flatten()",
        "<array>.astype(float)",
        "np.flip(<array>)",
        "np.sin(<array>)",
        "<array> if <test> else <array>",
    ],
    "stack": ["<stack>", "[<new array>, <new array>]", "list(<stack>)", "[v.copy() for v in <stack>]"],
}
CHANGES: dict[str, list[str]] = {
    "list": [
        "<list>[<at>] = <f>",
        "<list>[<at>] += <f>",
        "<list>[<at>] *= <leaf>",
        "<list>.append(<f>)",
        "<list>.extend(<new list>)",
        "<list> += [<f>]",
        "<list>[0], <list>[1] = <leaf>, <leaf>",
        "<list>[:] = <new list>",
        "<list>.append(<call f>)",
    ],
    "dict": ["<dict>['a'] = <f>", "<dict>['c'] = <f>", "<dict>['b'] *= <leaf>", "<dict>['a'] += <f>"],
    "rows": [
        "<rows>[0] = <new list>",
        "<rows>.append(<new list>)",
        "<rows>[1].append(<f>)",
        "<rows>[1] += [<f>]",
        "<rows>[0], <rows>[1] = <rows>[1], <rows>[0]",
        "<rows>[0][0] *= <leaf>",
    ],
    "box": [
        "<box>['a'] = <new list>",
        "<box>['b'].append(<f>)",
        "<box>['b'][0] = <f>",
        "<box>['a'] += [<leaf>]",
    ],
    "array": [
        "<array>[<at>] = <f>",
        "<array>[<at>] += <f>",
        "<array> += <leaf>",
        "<array> *= <leaf>",
        "<array>[1:] = <leaf>",
        "<array>[1:] += <array>[:-1]",
        "<array>[:] = <new array>",
    ],
    "stack": [
        "<stack>[0] = <new array>",
        "<stack>[1] += <leaf>",
        "<stack>[0][1] = <f>",
        "<stack>.append(<new array>)",
    ],
}
NUMBERS = [
    "<leaf>",
    "<leaf> * <leaf>",
    "<leaf> + <leaf>",
    "math.sin(<leaf>)",
    "sum(<list>)",
    "sum(v * v for v in <list>)",
]
NUMBERS += ["<call f>", "0.5 * <leaf>"]
LEAVES = {
    "list": ["{}[0]", "{}[-1]"],
    "dict": ["{}['a']"],
    "rows": ["{}[0][1]"],
    "box": ["{}['b'][0]"],
    "f": ["{}"] * 2,
}
LEAVES |= {"array": ["{}[1]", "np.sum({})"], "stack": ["{}[0][1]"]}
PARTS = {
    "list": [("rows", "[0]"), ("rows", "[1]"), ("box", "['a']"), ("box", "['b']")],
    "array": [("stack", "[1]")],
}
TOTALS = {"f": "{}", "list": "sum({})", "dict": "sum({}.values())", "rows": "sum(sum(row) for row in {})"}
TOTALS |= {
    "box": "sum(sum(row) for row in {}.values())",
    "array": "np.sum({})",
    "stack": "sum(np.sum(v) for v in {})",
}
NAMES = {"f": "x", "list": "xs", "dict": "d", "rows": "rows", "box": "box", "array": "arr", "stack": "stack"}


class Impossible(Exception):
    """Nothing of this kind is available here."""


@dataclass
class Scope:
    """The kinds of variables, and the callable functions with the kinds of their parameters and results."""

    kinds: dict[str, str]
    functions: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    inside: bool = False


class Author:
    """Writes one file: helpers, and `f` that calls them."""

    def __init__(self, seed: int, arrays: bool) -> None:
        self.random = random.Random(seed)
        self.arrays = arrays
        self.kinds = [kind for kind in VALUES if arrays or kind not in ("array", "stack")]
        self.count = 0

    def file(self) -> tuple[str, dict[str, Any]]:
        """The text, and arguments of `f`."""
        draw = self.random
        lines = ["import math", *["import numpy as np"] * self.arrays]
        scope = Scope({})
        for _ in range(draw.randint(0, 2)):
            lines += ["", *self.function(scope)]
        kinds = ["f", *(kind for kind in self.kinds if draw.random() < 0.5)]
        scope = Scope({NAMES[kind]: kind for kind in kinds}, scope.functions)
        annotated = [f"{NAMES[kind]}: np.ndarray" if kind == "array" else NAMES[kind] for kind in kinds]
        body = ["    made = np.array([x, 0.5, x])"] if self.arrays else []
        scope.kinds |= {"made": "array"} if self.arrays else {}
        self.block(scope, draw.randint(3, 7), 1, body)
        ends = [TOTALS[kind].format(name) for name, kind in scope.kinds.items() if draw.random() < 0.6]
        lines += ["", f"def f({', '.join(annotated)}):", *body, f"    return {' + '.join(['x', *ends])}"]
        return "\n".join(lines) + "\n", {NAMES[kind]: self.argument(kind) for kind in kinds}

    def argument(self, kind: str) -> Any:
        """A value of a kind."""

        def numbers(size: int) -> list[float]:
            return [round(self.random.uniform(0.3, 1.4), 3) for _ in range(size)]

        if kind in ("array", "stack"):
            import numpy

            return numpy.array(numbers(3)) if kind == "array" else [numpy.array(numbers(3)) for _ in range(2)]
        values = {"f": numbers(1)[0], "list": numbers(3), "dict": dict(zip("ab", numbers(2), strict=True))}
        rows = [numbers(2), numbers(3)]
        return {**values, "rows": rows, "box": dict(zip("ab", rows, strict=True))}[kind]

    # Expressions.

    def fill(self, template: str, scope: Scope, deep: int = 0) -> str:
        """A template with its places filled."""
        return re.sub(r"<([\w ]+)>", lambda found: self.part(found[1], scope, deep), template)

    def part(self, word: str, scope: Scope, deep: int) -> str:
        """The text for one place of a template."""
        draw = self.random
        if word == "f":
            return self.attempt(NUMBERS if deep < 2 else ["<leaf>"], scope, deep + 1)
        if word == "leaf":
            found = [each.format(n) for n, kind in scope.kinds.items() for each in LEAVES[kind]]
            return draw.choice([*found, f"{draw.uniform(0.3, 1.5):.1f}"])
        if word == "test":
            return self.fill(f"<leaf> > {draw.uniform(-0.5, 1):.2f}", scope)
        if word == "at":
            return draw.choice(["0", "1", "-1"])
        if word.startswith("call "):
            return self.call(scope, word[5:])
        if word.startswith("new "):
            return self.attempt(VALUES[word[4:]], scope, deep + 1)
        found = [name for name, kind in scope.kinds.items() if kind == word] * 2
        found += [
            n + part for of, part in PARTS.get(word, ()) for n, kind in scope.kinds.items() if kind == of
        ]
        if not found:
            raise Impossible
        return draw.choice(found)

    def attempt(self, templates: list[str], scope: Scope, deep: int) -> str:
        """One of several templates, filled; a different one if that is impossible."""
        for template in self.random.sample(templates, len(templates)):
            try:
                return self.fill(template, scope, deep)
            except Impossible:
                continue
        raise Impossible

    def call(self, scope: Scope, kind: str) -> str:
        """A call of a function that returns a kind."""
        found = [name for name, (_, value) in scope.functions.items() if value == kind]
        if not found:
            raise Impossible
        name = self.random.choice(found)
        given = ["<leaf>" if each == "f" else f"<{each}>" for each in scope.functions[name][0]]
        return self.fill(f"{name}({', '.join(given)})", scope)

    # Statements.

    def block(self, scope: Scope, size: int, indent: int, lines: list[str]) -> None:
        """Write up to `size` statements."""
        for _ in range(size):
            start = len(lines)
            try:
                lines += ["    " * indent + line for line in self.statement(scope)]
            except Impossible:
                del lines[start:]

    def statement(self, scope: Scope) -> list[str]:
        draw, kind = self.random, self.random.choice(self.kinds)
        choice = draw.random()
        if choice < 0.45:
            return [self.fill(draw.choice(CHANGES[kind]), scope)]
        if choice < 0.6:
            kind = draw.choice([kind, "f"])
            value = self.part("f" if kind == "f" else f"new {kind}", scope, 0)
            return [f"{self.target(scope, kind)} = {value}"]
        if choice < 0.75 and scope.functions:
            kind = draw.choice([value for _, value in scope.functions.values()])
            value = self.call(scope, kind)
            return [value if kind == "none" else f"{self.target(scope, kind)} = {value}"]
        if choice < 0.9 and not scope.inside:
            heads = ["if <test>:", "for _ in range(2):", "for v in <list>:", "for row in <rows>:"]
            head = self.fill(draw.choice(heads), scope)
            inner = replace(scope, kinds=dict(scope.kinds), functions=dict(scope.functions), inside=True)
            inner.kinds |= {"v": "f"} if " v " in head else {"row": "list"} if " row " in head else {}
            lines: list[str] = []
            self.block(inner, draw.randint(1, 2), 1, lines)
            if any(re.search(r"append|extend|\+= \[|g\d+\(", line) for line in lines):
                # A sequence that grows while it is iterated has no end.
                head = re.sub(r" in (.*):", r" in list(\1):", head).replace("list(range(2))", "range(2)")
            return [head, *lines] if lines else []
        return self.function(scope) if not scope.inside else []

    def target(self, scope: Scope, kind: str) -> str:
        """A variable of a kind to assign: a new one, or an existing one."""
        there = [name for name, its in scope.kinds.items() if its == kind and name not in ("v", "row")]
        self.count += 1
        name = self.random.choice([*there, f"{kind[0]}{self.count}", f"{kind[0]}{self.count}"])
        scope.kinds[name] = kind
        return name

    def function(self, scope: Scope) -> list[str]:
        """A function that joins the scope: it may mutate, link and return its arguments and captures."""
        draw = self.random
        self.count += 1
        name, params = f"g{self.count}", [draw.choice([*self.kinds, "f"]) for _ in range(draw.randint(1, 2))]
        inner = Scope(dict(scope.kinds), dict(scope.functions), True)
        inner.kinds |= {f"p{place}": kind for place, kind in enumerate(params)}
        lines: list[str] = []
        self.block(inner, draw.randint(1, 3), 1, lines)
        kind = draw.choice(["f", "f", "none", *self.kinds])
        if kind != "none":
            templates = ["<f>"] if kind == "f" else [f"<{kind}>", f"<new {kind}>"]
            lines.append(f"    return {self.attempt(templates, inner, 0)}")
        bound = {found[1] for line in lines if (found := re.match(r" +(\w+) \+?\*?= ", line))}
        if outer := sorted(bound & set(scope.kinds)):
            lines.insert(0, f"    nonlocal {', '.join(outer)}")
        scope.functions[name] = params, kind
        return [
            f"def {name}({', '.join(f'p{place}' for place in range(len(params)))}):",
            *(lines or ["    pass"]),
        ]
