"""Write random modules whose functions, imports and variables share names: text, from a seed."""

from __future__ import annotations

import random

# Few names, so that they are reused; some are those of builtins and of modules that derivatives import.
NAMES = ("act", "g", "s", "abs", "sum", "math", "rate", "m", "float", "len")
FUNCTIONS = ("sin", "cos", "tanh", "atan", "erf")
BODIES = ("{} * {} * 0.7", "{} + 0.5", "{} * 0.3 - {} * {} * 0.2", "2.0 * {}")


class ModuleAuthor:
    """Writes one module with a function `f(x, y)`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # The kinds of the module's names, as far as they are followed: "call", "module" or "number".
        self.kinds: dict[str, str] = {"abs": "call", "float": "call"}
        self.lines: list[str] = []

    def text(self) -> str:
        """The module."""
        for _ in range(self.random.randint(2, 6)):
            self._item()
        self._function("f", "x", "y")
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self._item()
        return "\n".join(self.lines) + "\n"

    def _name(self) -> str:
        return self.random.choice(NAMES)

    def _of_kind(self, kinds: dict[str, str], kind: str) -> str | None:
        found = [name for name, each in kinds.items() if each == kind]
        return self.random.choice(found) if found else None

    def _item(self) -> None:
        """One statement of the module that binds a name."""
        write = self.random.choice(
            (self._import, self._import, self._def, self._def, self._lambda, self._alias, self._number,
             self._either, self._setter, self._deleted, self._loop, self._class, self._checked, self._default)
        )  # fmt: skip
        write(self._name())

    def _import(self, name: str) -> None:
        self.lines.append(self._importing(name, self.kinds))

    def _importing(self, name: str, kinds: dict[str, str]) -> str:
        how = self.random.random()
        if how < 0.1 and kinds is self.kinds:
            kinds.update(dict.fromkeys(FUNCTIONS, "call"))
            return "from math import *"
        if how < 0.3:
            kinds[name] = "module"
            return "import math" if name == "math" else f"import math as {name}"
        kinds[name] = "call"
        return f"from math import {self.random.choice(FUNCTIONS)} as {name}"

    def _body(self, variable: str) -> str:
        return self.random.choice(BODIES).replace("{}", variable)

    def _def(self, name: str) -> None:
        if self.random.random() < 0.5:
            self._function(name, self.random.choice(("v", self._name())))
        else:
            self.lines += ["", "", f"def {name}(v):", f"    return {self._body('v')}", "", ""]
        self.kinds[name] = "call"

    def _lambda(self, name: str) -> None:
        variable = self.random.choice(("v", self._name()))
        self.lines.append(f"{name} = lambda {variable}: {self._body(variable)}")
        self.kinds[name] = "call"

    def _alias(self, name: str) -> None:
        other = self._of_kind(self.kinds, self.random.choice(("call", "module")))
        if other is None:
            return
        kind = self.kinds[other]
        if kind == "module":
            other = f"{other}.{self.random.choice(FUNCTIONS)}"
        self.lines.append(f"{name} = {other}")
        self.kinds[name] = "call"

    def _number(self, name: str) -> None:
        if self.kinds.get(name) == "number" and self.random.random() < 0.5:
            self.lines.append(f"{name} += 0.5")
        else:
            self.lines.append(f"{name} = {self.random.randint(1, 9) / 4}")
        self.kinds[name] = "number"

    def _either(self, name: str) -> None:
        one, other = self.random.choices(FUNCTIONS, k=2)
        if self.random.random() < 0.5:
            test = self.random.choice(("True", "len(__name__) > 3", "__name__ == '__main__'"))
            lines = [f"if {test}:", f"    from math import {one} as {name}", "else:"]
        else:
            missing = self.random.choice(("math", "nowhere"))
            lines = ["try:", f"    from {missing} import {one} as {name}", "except ImportError:"]
        self.lines += [*lines, f"    from math import {other} as {name}"]
        self.kinds[name] = "call"

    def _setter(self, name: str) -> None:
        value = self.random.choice(("0.25", "lambda v: v * 3.0", "abs"))
        self.lines += ["", "", "def set_it():", f"    global {name}", f"    {name} = {value}", "", ""]
        if self.random.random() < 0.7:
            self.lines.append("set_it()")
            self.kinds[name] = "number" if value == "0.25" else "call"

    def _deleted(self, name: str) -> None:
        if name in self.kinds and any(f"{name} = " in line for line in self.lines):
            self.lines.append(f"del {name}")
            self.kinds.pop(name)

    def _loop(self, name: str) -> None:
        self.lines += [f"for {name} in (0.5, 1.5):", "    pass"]
        self.kinds[name] = "number"

    def _class(self, name: str) -> None:
        lines = [f"class {name}:", "    rate = 0.75", "", "    def __new__(cls, v):"]
        self.lines += ["", "", *lines, f"        return {self._body('v')}", "", ""]
        self.kinds[name] = "call"

    def _checked(self, name: str) -> None:
        known = [each for each in ("f", "g") if f"def {each}(v" in "\n".join(self.lines)]
        if known:
            self.lines.append(f"CHECKED = {known[0]}(0.5)")

    def _default(self, name: str) -> None:
        number = self._of_kind(self.kinds, "number")
        if number is not None and name != number:
            self.lines += ["", "", f"def {name}(v, by={number}):", "    return v * v * by", "", ""]
            self.kinds[name] = "call"

    # Functions

    def _function(self, name: str, *params: str) -> None:
        given = list(params)
        if len(given) == 2 and self.random.random() < 0.3:
            given.append(self._name())
        given = list(dict.fromkeys(given))
        kinds = {**self.kinds, **dict.fromkeys(given, "number")}
        lines = [f"def {name}({', '.join(given)}):"]
        total = given[0]
        for _ in range(self.random.randint(0, 4)):
            lines += self._statement(kinds, given)
        values = [self._value(kinds, 2) for _ in range(2)]
        self.lines += ["", "", *lines, f"    return {total} * {' * '.join(values)}", "", ""]
        self.kinds[name] = "call"

    def _statement(self, kinds: dict[str, str], given: list[str]) -> list[str]:
        name = self._name()
        kind = self.random.randrange(7)
        if kind == 0 and name not in given:
            return [f"    {self._importing(name, kinds)}"]
        if kind == 1:
            lines = [f"    {name} = {self._value(kinds, 2)}"]
            kinds[name] = "number"
            return lines
        if kind == 2 and name not in given:
            variable = self.random.choice(("v", self._name()))
            kinds[name] = "call"
            return [f"    def {name}({variable}):", f"        return {self._body(variable)} + {variable}"]
        if kind == 3 and name not in given:
            variable = self.random.choice(("v", self._name()))
            value = self._value({**kinds, variable: "number"}, 1)
            kinds[name] = "call"
            return [f"    {name} = lambda {variable}: {value}"]
        if kind == 4:
            inner = self._value({**kinds, name: "number"}, 1)
            numbers = ", ".join(self._value(kinds, 1) for _ in range(2))
            kinds["total"] = "number"
            return [f"    total = 0.5 * max([{inner} for {name} in [{numbers}]])"]
        if kind == 5:
            lines = [f"    for {name} in [{self._value(kinds, 1)}, 0.5]:"]
            kinds[name] = "number"
            return [*lines, f"        {given[0]} = {given[0]} * 0.5 + {name}"]
        if kind == 6:
            number = self._of_kind(kinds, "number")
            kinds["scale"] = "call"
            return [f"    scale = lambda v, {name}={number}: v * {name}"]
        return []

    def _value(self, kinds: dict[str, str], deep: int) -> str:
        number = self._of_kind(kinds, "number") or "0.5"
        if deep == 0 or self.random.random() < 0.2:
            return number
        module, call = self._of_kind(kinds, "module"), self._of_kind(kinds, "call")
        inner = self._value(kinds, deep - 1)
        if module is not None and self.random.random() < 0.4:
            return f"{module}.{self.random.choice(FUNCTIONS)}({inner})"
        if call is not None and self.random.random() < 0.8:
            return f"{call}({inner})"
        return f"({inner} + {number})"
