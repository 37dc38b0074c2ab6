"""Write random Python functions of the scalar subset: text, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

# Of any argument: values stay small, and no function is near the edge of its domain.
CALLS = (
    "math.sin({})",
    "math.cos({})",
    "math.tanh({})",
    "math.atan({})",
    "math.erf({})",
    "math.exp(0.3 * math.sin({}))",
    "math.sqrt(1.2 + ({}) ** 2)",
    "math.log(1.3 + ({}) ** 2)",
    "math.log1p(0.5 * math.cos({}))",
    "math.atan2({}, 1.5)",
    "math.hypot({}, 0.7)",
    "abs({})",
    "float({})",
    "0.5 * ({}) ** 2",
    "0.1 * pow({}, 3)",
    "(1.1 + abs({})) ** 0.7",
    "1.7 ** math.sin({})",
    "(-({}))",
    "({}) % 2.5",
)
PAIRS = ("({} + {})", "({} - {})", "{} * {}", "{} / (1.5 + ({}) ** 2)", "max({}, {})", "min({}, {})")


@dataclass
class Scope:
    """The names available to a statement: numbers, counts, lists with their least lengths, and dicts."""

    reals: list[str]
    counts: list[str] = field(default_factory=list)
    lists: dict[str, int] = field(default_factory=dict)
    pairs: list[str] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    # Parameters that are only read, and lists that an outer loop iterates over.
    held: frozenset[str] = frozenset()
    looping: bool = False
    deep: int = 0

    def inner(self, **more: bool | frozenset[str]) -> Scope:
        """The scope of a block: names bound in it are unknown after it."""
        copied = replace(
            self,
            reals=list(self.reals),
            counts=list(self.counts),
            lists=dict(self.lists),
            pairs=list(self.pairs),
            dicts=list(self.dicts),
            functions=list(self.functions),
            deep=self.deep + 1,
        )
        return replace(copied, **more)  # type: ignore[arg-type]


# One file in this many is long.
LONG = 8


class Author:
    """Writes one file: helpers, some recursive, and `f(x, y, zs, n)` that calls them.

    A short file has at most one helper, and one statement in each block; long files find bugs that need many
    statements.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.long = seed % LONG == 0
        self.lines: list[str] = []
        self.indent = 0
        self.names = 0
        self.helpers: list[tuple[str, str]] = []
        self.result = ""

    def text(self) -> str:
        """The file."""
        self.lines = ["import math", ""]
        for number in range(self.random.randint(0, 1 + self.long)):
            shape = self.random.choice(["real", "real", "pair", "recursive", "list"])
            self._helper(f"g{number}", shape)
            self.helpers.append((f"g{number}", shape))
        self._function("f", "x, y, zs, n", Scope(["x", "y"], ["n"], {"zs": 3}, held=frozenset({"zs"})), 2)
        return "\n".join(self.lines) + "\n"

    def _helper(self, name: str, shape: str) -> None:
        if shape == "list":
            self._function(name, "ws, a", Scope(["a"], [], {"ws": 3}), 2)
        elif shape == "recursive":
            with self.block(f"def {name}(a, b, n):"):
                scope = Scope(["a", "b"], ["n"])
                self.result = "real"
                with self.block("if n <= 0:"):
                    self.say(f"return {self.active(scope)}")
                self._statements(scope, 2)
                one, other = self.active(scope), self.real(scope, 1)
                self.say(f"return 0.5 * {name}({one}, {other}, n - 1) + {self.real(scope, 1)}")
            self.say("")
        else:
            self._function(name, "a, b, c=0.8", Scope(["a", "b", "c"]), 3, shape)

    def _function(self, name: str, params: str, scope: Scope, size: int, result: str = "") -> None:
        self.result = result or self.random.choice(["real", "real", "real", "pair", "list"])
        if name != "f" and not result:
            self.result = "real"
        with self.block(f"def {name}({params}):"):
            self._statements(scope, size)
            self._return(scope)
        self.say("")

    # Lines
    def say(self, line: str) -> None:
        """Write one line."""
        self.lines.append("    " * self.indent + line if line else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a head, with the lines of the `with` block indented below it."""
        self.say(head)
        self.indent += 1
        yield
        self.indent -= 1

    def fresh(self, letter: str = "v") -> str:
        """A name not used so far."""
        self.names += 1
        return f"{letter}{self.names}"

    def number(self) -> str:
        """A literal."""
        return repr(round(self.random.uniform(0.3, 1.9), 2))

    # Expressions
    def real(self, scope: Scope, deep: int = 2) -> str:
        """An expression for a number."""
        draw = self.random.random()
        if deep <= 0 or draw < 0.2:
            return self.leaf(scope)
        if draw < 0.5:
            template = self.random.choice(PAIRS)
            return template.format(self.real(scope, deep - 1), self.real(scope, deep - 1))
        if draw < 0.75:
            return self.random.choice(CALLS).format(self.real(scope, deep - 1))
        if draw < 0.85:
            one, other = self.real(scope, deep - 1), self.real(scope, deep - 1)
            return f"({one} if {self.condition(scope)} else {other})"
        return self.wide(scope, deep)

    def leaf(self, scope: Scope) -> str:
        """A name, a literal or an item."""
        found = list(scope.reals) * 2 + [self.number()]
        for name, least in scope.lists.items():
            place = self.random.randrange(-least, least) if least else None
            if place is not None:
                found.append(f"{name}[{place}]")
            if scope.counts and least:
                found.append(f"{name}[{self.random.choice(scope.counts)} % len({name})]")
        found += [f"{name}[{self.random.choice([0, 1, -1])}]" for name in scope.pairs]
        found += [f"{name}[{self.random.choice(['a', 'b'])!r}]" for name in scope.dicts]
        found += [f"0.3 * {name}" for name in scope.counts]
        return self.random.choice(found)

    def active(self, scope: Scope) -> str:
        """A number that depends on the function's arguments."""
        return f"({self.random.choice(scope.reals[:1])} * {self.real(scope, 1)})"

    def wide(self, scope: Scope, deep: int) -> str:
        """A number made from many: a call, a sum, an extreme."""
        found: list[Callable[[], str]] = []
        for name, shape in self.helpers:
            found += [lambda name=name, shape=shape: self.call(scope, name, shape, deep - 1)]  # type: ignore[misc]
        found += [lambda name=name: f"{name}({self.real(scope, deep - 1)})" for name in scope.functions]  # type: ignore[misc]
        for name, least in scope.lists.items():
            found += [lambda name=name: f"sum([q * {self.real(scope, 0)} for q in {name}])"]  # type: ignore[misc]
            found += [lambda name=name: f"sum(math.sin(q) for q in {name} if q > {self.number()})"]  # type: ignore[misc]
            found += [lambda name=name: f"sum({name})"]  # type: ignore[misc]
            if least:
                found += [lambda name=name: f"{self.random.choice(['max', 'min'])}({name})"]  # type: ignore[misc]
        return self.random.choice(found)() if found else self.leaf(scope)

    def call(self, scope: Scope, name: str, shape: str, deep: int) -> str:
        """A call of a helper, as a number."""
        one, other = self.real(scope, deep), self.real(scope, deep)
        if shape == "recursive":
            return f"{name}({one}, {other}, {self.random.randint(0, 3)})"
        if shape == "list":
            return f"{name}([{one}, {other}, {self.leaf(scope)}], {self.leaf(scope)})"
        more = self.random.choice(["", f", {self.leaf(scope)}", f", c={self.leaf(scope)}"])
        both = f"b={other}, a={one}" if more.startswith(", c=") and deep else f"{one}, {other}"
        return f"{name}({both}{more})" + ("[0]" if shape == "pair" else "")

    def condition(self, scope: Scope) -> str:
        """A test of numbers or of counts."""
        sign = self.random.choice("<>")
        test = f"{self.real(scope, 1)} {sign} {self.random.choice([self.number(), self.leaf(scope)])}"
        if scope.counts and self.random.random() < 0.4:
            other = f"{self.random.choice(scope.counts)} % 2 == {self.random.randint(0, 1)}"
            test = self.random.choice([other, f"{test} and {other}", f"{other} or {test}", f"not {test}"])
        return test

    # Statements
    def _statements(self, scope: Scope, size: int) -> None:
        kinds: list[Callable[[Scope], None]] = [
            self._assign,
            self._assign,
            self._augment,
            self._augment,
            self._swap,
            self._pair,
            self._list,
            self._change,
            self._change,
            self._dict,
            self._closure,
        ]
        if scope.deep < 3:
            kinds += [self._if, self._if, self._if, self._for, self._for, self._while]
        for _ in range(self.random.randint(1, size) if self.long else 1):
            self.random.choice(kinds)(scope)

    def target(self, scope: Scope) -> str:
        """A name to assign: one in use, or a new one."""
        if scope.reals and self.random.random() < 0.6:
            return self.random.choice(scope.reals)
        return self.fresh()

    def _assign(self, scope: Scope) -> None:
        value = self.real(scope)
        name = self.target(scope)
        if self.random.random() < 0.15:
            other = self.fresh()
            self.say(f"{name} = {other} = {value}")
            scope.reals.append(other)
        else:
            self.say(f"{name}{self.random.choice(['', '', ': float'])} = {value}")
        scope.reals += [name] * (name not in scope.reals)

    def _augment(self, scope: Scope) -> None:
        name = self.random.choice(scope.reals)
        value = self.random.choice(["{0} += {1}", "{0} -= {1}", "{0} *= {1}", "{0} /= 1.5 + ({1}) ** 2"])
        self.say(value.format(name, self.real(scope)))

    def _swap(self, scope: Scope) -> None:
        one, other = self.random.choice(scope.reals), self.random.choice(scope.reals)
        if one == other:
            return self._assign(scope)
        self.say(f"{one}, {other} = {other}, {self.real(scope)}")
        return None

    def _pair(self, scope: Scope) -> None:
        pairs = [name for name, shape in self.helpers if shape == "pair"]
        one, other = self.real(scope, 1), self.real(scope, 1)
        value = f"{one}, {other}"
        if pairs and self.random.random() < 0.7:
            value = f"{self.random.choice(pairs)}({value})"
        if self.random.random() < 0.4:
            name = self.fresh("t")
            self.say(f"{name} = {value}")
            scope.pairs.append(name)
        elif self.random.random() < 0.3:
            names = [self.fresh() for _ in range(3)]
            self.say(f"{names[0]}, ({names[1]}, {names[2]}) = {one}, ({other}, {self.leaf(scope)})")
            scope.reals += names
        else:
            names = [self.fresh(), self.fresh()]
            self.say(f"{', '.join(names)} = {value}")
            scope.reals += names

    def _list(self, scope: Scope) -> None:
        name, items = self.fresh("w"), [self.real(scope, 1) for _ in range(3)]
        other = self.random.choice([*scope.lists, ""])
        values = [(f"[{', '.join(items)}]", 3), (f"[{self.number()}] * 3", 3), ("[]", 0)]
        values += [(f"[math.sin(q * {self.leaf(scope)}) for q in range(4)]", 4)]
        if other:
            least = scope.lists[other]
            values += [(f"list({other})", least), (f"{other}[:]", least), (f"{other}[::-1]", least)]
            values += [(f"{other}[1:]", max(0, least - 1))]
            values += [(f"[q * {self.leaf(scope)} for q in {other}]", least)]
            values += [(f"[p * q for p, q in zip({other}, [{items[0]}, {items[1]}])]", min(2, least))]
            values += [(f"{other} + [{items[0]}]", least + 1)]
        value, least = self.random.choice(values)
        self.say(f"{name} = {value}")
        scope.lists[name] = least

    def _change(self, scope: Scope) -> None:
        free = [name for name in scope.lists if name not in scope.held]
        if not free:
            return self._list(scope)
        name = self.random.choice(free)
        least = scope.lists[name]
        value = self.real(scope)
        draw = self.random.random()
        if draw < 0.3 or not least:
            self.say(f"{name}.append({value})")
            scope.lists[name] = least + 1
        elif draw < 0.4:
            self.say(f"{name}.extend([{value}, {self.leaf(scope)}])")
            scope.lists[name] = least + 2
        elif draw < 0.5:
            self.say(f"{name}.append({value})")
            other = self.fresh()
            self.say(f"{other} = {name}.pop()")
            scope.reals.append(other)
        else:
            place = self.random.choice([str(self.random.randrange(least)), f"{-1}"])
            if scope.counts and self.random.random() < 0.5:
                place = f"{self.random.choice(scope.counts)} % len({name})"
            sign = self.random.choice(["=", "=", "+=", "-=", "*="])
            if draw > 0.9:
                self.say(f"{name}[0], {name}[{place}] = {name}[{place}], {name}[0]")
            else:
                self.say(f"{name}[{place}] {sign} {value}")

    def _dict(self, scope: Scope) -> None:
        if not scope.dicts:
            name = self.fresh("d")
            self.say(f"{name} = {{'a': {self.real(scope, 1)}, 'b': {self.real(scope, 1)}}}")
            scope.dicts.append(name)
        else:
            key = self.random.choice(["'a'", "'b'"])
            sign = self.random.choice(["=", "+=", "*="])
            self.say(f"{self.random.choice(scope.dicts)}[{key}] {sign} {self.real(scope)}")

    def _closure(self, scope: Scope) -> None:
        """An inner function whose captures are assigned nowhere else."""
        if scope.looping:
            return self._assign(scope)
        one, name = self.fresh("c"), self.fresh("h")
        self.say(f"{one} = {self.real(scope, 1)}")
        inside = Scope([one, "u"])
        if self.random.random() < 0.5:
            self.say(f"{name} = lambda u: {self.real(inside)}")
        else:
            with self.block(f"def {name}(u):"):
                if self.random.random() < 0.5:
                    with self.block(f"if {self.condition(inside)}:"):
                        self.say(f"return {one} * {self.real(inside, 1)}")
                self.say(f"return {one} * {self.real(inside)}")
        scope.functions.append(name)
        return None

    def _if(self, scope: Scope) -> None:
        new, branches = self.fresh(), self.random.randint(1, 3)
        for number in range(branches):
            word = "if" if number == 0 else "elif" if number < branches - 1 else "else"
            with self.block(f"{word}:" if word == "else" else f"{word} {self.condition(scope)}:"):
                inside = scope.inner()
                self._statements(inside, 2)
                draw = self.random.random()
                if draw < 0.2:
                    self._return(inside)
                elif draw < 0.3 and scope.looping:
                    self.say(self.random.choice(["break", "continue"]))
                elif branches > 2 or word == "else":
                    self.say(f"{new} = {self.real(inside)}")

    def _for(self, scope: Scope) -> None:
        item, count, other = self.fresh("e"), self.fresh("i"), self.fresh("e")
        name = self.random.choice([each for each, least in scope.lists.items() if least] or [""])
        limit = self.random.choice([*scope.counts, "3", "4"]) if scope.deep == 0 else "2"
        heads: list[tuple[str, list[str], list[str]]] = [(f"for {count} in range({limit}):", [], [count])]
        heads += [("for _ in range(2):", [], [])]
        heads += [(f"for {count} in range(3, 0, -1):", [], [count])]
        if name:
            heads += [
                (f"for {item} in {name}:", [item], []),
                (f"for {item} in reversed({name}):", [item], []),
            ]
            heads += [(f"for {count}, {item} in enumerate({name}):", [item], [count])]
            heads += [(f"for {item}, {other} in zip({name}, {name}[1:]):", [item, other], [])]
        head, reals, counts = self.random.choice(heads)
        with self.block(head):
            held = scope.held | ({name} if reals else set())
            inside = scope.inner(looping=True, held=held)
            inside.reals += reals
            inside.counts += counts
            self._statements(inside, 3)
        if self.random.random() < 0.15:
            with self.block("else:"):
                self._augment(scope)

    def _while(self, scope: Scope) -> None:
        count = self.fresh("k")
        self.say(f"{count} = 0")
        with self.block(f"while {count} < {self.random.randint(1, 4)} and ({self.condition(scope)}):"):
            self.say(f"{count} += 1")
            inside = scope.inner(looping=True)
            inside.counts.append(count)
            self._statements(inside, 3)

    def _return(self, scope: Scope) -> None:
        one = self.active(scope)
        if self.result == "pair":
            self.say(f"return {one}, {self.real(scope, 1)}")
        elif self.result == "list":
            free = [name for name in scope.lists if name not in scope.held]
            self.say(f"return [{one}, {self.real(scope, 1)}]" if not free else f"return [{one}] + {free[0]}")
        else:
            self.say(f"return {one} + {self.real(scope)}")
