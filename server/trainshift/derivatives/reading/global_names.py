"""The meanings of a file's global names: a library's member, a function of the file, or a value."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from trainshift.python.lazy import cached_property
from trainshift.python.names.reaching_bindings import Reaching
from trainshift.python.names.scoping import owner_of
from trainshift.python.names.script import Script
from trainshift.python.names.values import Class, UserInstance
from trainshift.python.syntax.chunk_syntax import Binding, Statement, dotted, root_name

BUILTINS = frozenset(dir(builtins))
# The modules whose names are known, so that a star import binds exactly these.
_MODULES = {"math": frozenset(each for each in dir(math) if not each.startswith("_"))}
# Calls of these without arguments give a dict of the names where they stand.
_OWN_NAMES = frozenset(("locals", "vars"))
_HIDING = frozenset(("exec", "globals", "setattr")) | _OWN_NAMES
# Attributes that are a dict of names.
_DICTS = frozenset(("__globals__", "f_globals"))
_CHANGING = frozenset(("clear", "pop", "popitem", "setdefault", "update"))
# What only reads a module, or a dict of its names.
_READERS = frozenset(
    f"builtins.{each}"
    for each in (
        "dir",
        "getattr",
        "hasattr",
        "id",
        "isinstance",
        "len",
        "list",
        "print",
        "repr",
        "set",
        "sorted",
        "str",
        "type",
    )
)
# What a function computes.
_OF_FUNCTIONS = frozenset(("__code__", "__defaults__", "__kwdefaults__"))
FunctionNode = ast.FunctionDef | ast.Lambda


class Meaning(Struct, frozen=True):
    """The only meaning of a global name whenever the derivative may be called.

    `library` is a full name; for a member of the file itself, or of a file beside it, it begins with a dot.
    `function` is a function of the file.  `unknown` is the reason why there may be several meanings.  A
    value, which is read when the function runs, has none of the three.
    """

    library: str = ""
    function: FunctionNode | None = None
    unknown: str = ""


VALUE = Meaning()
_NONE = Meaning(library="builtins.None")


class GlobalNames:
    """The meanings of the global names of a script after the definition of the function `start`.

    `known` returns whether a library's full name has a derivative or is known to have none.
    """

    def __init__(self, script: Script, start: str, known: Callable[[str], bool]) -> None:
        self.script = script
        self.known = known
        defined = [
            place
            for place, each in enumerate(script.top)
            if isinstance(each.node, ast.FunctionDef | ast.AsyncFunctionDef) and each.node.name == start
        ]
        self.start = defined[-1] if defined else -1
        self._meanings: dict[str, Meaning] = {}
        self._open: set[tuple[str, int]] = set()

    def meaning(self, name: str) -> Meaning:
        """The meaning of a name."""
        if name not in self._meanings:
            self._meanings[name] = self._meaning(name)
        return self._meanings[name]

    def _meaning(self, name: str) -> Meaning:
        match self.script.module_bindings.get(name, ()):
            case [Binding(kind="import" | "function" | "class") as only] if (
                name not in BUILTINS and not self._has_stars and self._is_sure(only, self._last)
            ):
                return self._bound(only).pop()
        reaching = self._reaching(name)
        found = dict.fromkeys(reaching.at_end())
        found.update((each, None) for each in reaching.bindings if _by_function(each))
        first = self._last
        for statement in self._running:
            first = min(first, self._place(statement))
            found.update(dict.fromkeys(reaching.before(statement)))
            found.update(dict.fromkeys(reaching.inside(statement)))
        return self._one(name, found, first, self._last)

    @property
    def _has_stars(self) -> bool:
        return "*" in self.script.module_bindings

    @property
    def _last(self) -> int:
        return len(self.script.top)

    def _one(self, name: str, bindings: Iterable[Binding], first: int, last: int) -> Meaning:
        """The meaning of a name with some bindings, between two statements of the module."""
        bindings = list(bindings)
        found = {meaning for each in bindings for meaning in self._bound(each)}
        if bindings and name in BUILTINS and not any(self._is_sure(each, first) for each in bindings):
            found.add(Meaning(library=f"builtins.{name}"))
        found |= self._starred(name, bindings, last)
        if not bindings and not found:
            return Meaning(library=f"builtins.{name}") if name in BUILTINS else VALUE
        unknown = next((each for each in found if each.unknown), None)
        if unknown is not None:
            return unknown
        # A name that is None after a failed import is not called there.
        found = found - {_NONE} or {VALUE}
        if len(found) == 1:
            return found.pop()
        if not any(each.function or each.library.partition(".")[0] for each in found):
            # None of them is called as a function with a derivative.
            return next(each for each in found if each.library)
        lines = sorted({_line(each) for each in bindings if _line(each)})
        places = f"lines {', '.join(map(str, lines))}" if len(lines) > 1 else f"line {lines[0]}"
        return Meaning(unknown=f"{name} may be one of several things ({places}): give each a name of its own")

    def _reaching(self, name: str) -> Reaching:
        bindings = [*self.script.module_bindings.get(name, ()), *self._stars(name)]
        return Reaching(name, None, self.script.top_index, bindings)

    @property
    def starred_builtins(self) -> frozenset[str]:
        """The names of builtins that star imports bind."""
        starred = (_starred_module(each) for each in self.script.module_bindings.get("*", ()))
        return BUILTINS & frozenset[str]().union(*(_MODULES.get(each, ()) for each in starred))

    def _stars(self, name: str) -> Iterator[Binding]:
        """The bindings of a name by star imports of modules that are known."""
        for each in self.script.module_bindings.get("*", ()):
            module = _starred_module(each)
            if name in _MODULES.get(module, ()):
                yield Binding("import", None, each.statement, each.scope, full_name=f"{module}.{name}")

    def _starred(self, name: str, bindings: list[Binding], place: int) -> set[Meaning]:
        """The possible meanings of a name by star imports of modules with unknown names."""
        places = [self._place(each.statement) for each in bindings if each.statement is not None]
        found = set()
        for each in self.script.module_bindings.get("*", ()):
            module, at = _starred_module(each), self._place(each.statement)
            if module in _MODULES or at >= place or (places and at < min(places)):
                continue
            full = f"{module}.{name}"
            if places or name in BUILTINS:
                line = each.statement.node.lineno if each.statement else 0
                found.add(Meaning(unknown=f"{name} may come from {module} (line {line}): import it by name"))
            elif self.known(full) or not found:
                found = {one for one in found if self.known(one.library)} | {Meaning(library=full)}
        if len(found) > 1:
            return {Meaning(unknown=f"{name} may come from several modules: import it by name")}
        return found

    def _place(self, statement: Statement | None) -> int:
        return -1 if statement is None else self.script.top_index[statement.top]

    @cached_property
    def _running(self) -> list[Statement]:
        """The module's statements behind the function at the start that may call it."""
        return [each for each in self.script.top[self.start + 1 :] if _calls(each.node)]

    def _is_sure(self, binding: Binding, place: int) -> bool:
        """Return whether a binding certainly precedes the module's statement at a place."""
        statement = binding.statement
        if statement is None or statement.parent is not None or statement.scope.kind != "module":
            return False
        unsure = isinstance(statement.node, ast.For | ast.With | ast.Try | ast.Match | ast.While)
        return self._place(statement) < place and binding.kind != "deleted" and not unsure

    # The value of one binding

    def _bound(self, binding: Binding) -> set[Meaning]:
        node = binding.target
        if binding.kind == "import":
            return {Meaning(library=binding.full_name)}
        if binding.kind == "deleted" and getattr(node, "id", "") in BUILTINS:
            return {Meaning(library=f"builtins.{getattr(node, 'id', '')}")}
        if binding.kind == "function":
            if isinstance(node, ast.FunctionDef) and binding.statement and binding.statement.parent is None:
                return {Meaning(function=node)}
            line = getattr(node, "lineno", 0)
            return {Meaning(library=f".{getattr(node, 'name', '')} of line {line}")}
        if binding.kind == "class":
            return {Meaning(library=f".{getattr(node, 'name', '')}")}
        value = binding.taken if binding.kind == "value" else None
        return self._of(value, binding.statement) if value is not None and binding.statement else {VALUE}

    def _of(self, node: ast.expr, statement: Statement) -> set[Meaning]:
        """The meanings of an expression in the module's own code."""
        match node:
            case ast.Name(name):
                own = owner_of(name, statement.scope) is not None
                return {VALUE if own else self.before(name, statement)}
            case ast.Attribute(value, attribute):
                return {self.member(each, attribute) for each in self._of(value, statement)}
            case ast.Lambda():
                return {Meaning(function=node)}
            case ast.IfExp(_, one, other):
                return self._of(one, statement) | self._of(other, statement)
            case ast.Constant(None):
                return {_NONE}
        values = self.script.names.values(node, statement.scope, statement)
        if any(isinstance(each, UserInstance | Class) for each in values):
            return {Meaning(library=f".{ast.unparse(node)}")}
        return {VALUE}

    def before(self, name: str, statement: Statement) -> Meaning:
        """The meaning of a name at the beginning of a module's statement."""
        key = name, self._place(statement)
        if key in self._open:
            return VALUE
        self._open.add(key)
        try:
            reaching = self._reaching(name)
            inside = statement.scope.kind != "module"
            found = dict.fromkeys(reaching.within(statement) if inside else reaching.before(statement))
            found.update((each, None) for each in reaching.bindings if _by_function(each))
            return self._one(name, found, key[1], self._last if inside else key[1])
        finally:
            self._open.discard(key)

    def member(self, base: Meaning, attribute: str) -> Meaning:
        """The meaning of an attribute of something."""
        if not base.library or base.library.startswith("builtins."):
            return base if base.unknown else VALUE
        full = f"{base.library}.{attribute}"
        return Meaning(library=f".{full}") if full in self._replaced else Meaning(library=full)

    @cached_property
    def _replaced(self) -> frozenset[str]:
        """The functions of libraries that the file replaces: `math.sin = ...`."""
        found = set()
        for attribute, given in self.script.code.attributes.items():
            for each in given:
                root, _, below = dotted(each.base).partition(".")
                for binding in self.script.imports if root else ():
                    if binding.target is not None and root in _names_of(binding):
                        parts = [binding.full_name, *([below] if below else []), attribute]
                        found.add(".".join(parts))
        return frozenset(found)

    @cached_property
    def hidden(self) -> tuple[int, str] | None:
        """The line where any name of the file may be bound, or a function replaced, and why; if there is
        one.
        """
        said = "{} may bind any name of the file: write the names out"
        for each in self.script.sites_named(*_HIDING):
            called = self.before(each.name, each.statement.top)
            if each.name == "setattr" and not _is_of_module(self, each.node, each.statement.top):
                continue
            if each.name in _OWN_NAMES and (each.node.args or each.statement.scope.kind != "module"):
                continue
            if each.name in _OWN_NAMES and self._only_read(each.node):
                continue
            if called.library == f"builtins.{each.name}" and isinstance(each.node.func, ast.Name):
                return each.node.lineno, said.format(ast.unparse(each.node))
        for statement in self.script.top:
            for node in ast.walk(statement.node):
                match node:
                    case ast.Attribute(attr=attribute, ctx=ast.Store()) if attribute in _OF_FUNCTIONS:
                        text = f"{ast.unparse(node)} is assigned: write it into the function's definition"
                        return node.lineno, text
                    case ast.expr() if self._is_namespace(node, statement) and not self._only_read(node):
                        return node.lineno, said.format(ast.unparse(node))
        return None

    def _is_namespace(self, node: ast.expr, statement: Statement) -> bool:
        """Return whether an expression may be the file's module, or the dict of its names."""
        match node:
            case ast.Subscript(ast.Name() | ast.Attribute() as modules, key):
                known = isinstance(key, ast.Constant)
            case ast.Call(ast.Attribute(ast.Name() | ast.Attribute() as modules, "get"), [key, *_]):
                known = isinstance(key, ast.Constant)
            case ast.Call(ast.Attribute() | ast.Name() as called, [ast.Name("__name__")]):
                return Meaning(library="importlib.import_module") in self._of(called, statement)
            case ast.Attribute(value, attribute):
                own = attribute == "__dict__" and any(each.library for each in self._of(value, statement))
                return attribute in _DICTS | _OF_FUNCTIONS or own
            case ast.Call(ast.Name("vars"), [value]):
                return any(each.library for each in self._of(value, statement))
            case ast.Call(ast.Name("eval"), [ast.Constant(str(text)), *_]):
                return any(each in text for each in _HIDING)
            case ast.Name(name, ast.Load()) if name in _HIDING - {"setattr"}:
                parent = self._parents.get(node)
                is_called = isinstance(parent, ast.Call) and parent.func is node
                return not is_called and name not in self._given
            case _:
                return False
        return not known and Meaning(library="sys.modules") in self._of(modules, statement)

    def _only_read(self, node: ast.expr, through: frozenset[str] = frozenset()) -> bool:
        """Return whether nothing is bound or changed through a module or a dict of names."""
        match self._parents.get(node):
            case ast.Attribute(attr=attribute, ctx=ast.Load()):
                return attribute == "__name__" or not (attribute.startswith("__") or attribute in _CHANGING)
            case ast.Subscript(ctx=ast.Load()):
                return isinstance(node, ast.Attribute) and node.attr in _OF_FUNCTIONS
            case ast.Call(ast.Name(name)) if name not in self.script.module_bindings:
                return f"builtins.{name}" in _READERS
            case ast.Compare() | ast.For() | ast.comprehension() | ast.Expr() | ast.FormattedValue():
                return True
            case ast.Assign([ast.Name(name)]) if name not in through:
                reads = (each for each in self._parents if isinstance(each, ast.Name) and each.id == name)
                return all(
                    self._only_read(each, through | {name})
                    for each in reads
                    if isinstance(each.ctx, ast.Load)
                )
        return False

    @cached_property
    def _given(self) -> frozenset[str]:
        """The names that the file binds anywhere."""
        names = (each for each in self._parents if isinstance(each, ast.Name))
        stored = (each.id for each in names if not isinstance(each.ctx, ast.Load))
        return frozenset([*stored, *(each.arg for each in self._parents if isinstance(each, ast.arg))])

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        """Return the node around each node."""
        every = (each for statement in self.script.top for each in ast.walk(statement.node))
        return {inner: each for each in every for inner in ast.iter_child_nodes(each)}

    def rebound(self, name: str, statement: Statement) -> int | None:
        """The line where a name gets another value between a statement of the module and the derivative."""
        after = self.script.top[self.start + 1] if self.start + 1 < self._last else None
        reaching = self._reaching(name)
        now = reaching.before(after) if after else reaching.at_end()
        changed = {*now} ^ {*reaching.before(statement)} | {*filter(_by_function, reaching.bindings)}
        return max(map(_line, changed), default=None)


def _by_function(binding: Binding) -> bool:
    """Return whether a function binds a name of the module."""
    return binding.statement is not None and binding.statement.scope.kind != "module"


def _line(binding: Binding) -> int:
    return binding.statement.node.lineno if binding.statement is not None else 0


def _starred_module(binding: Binding) -> str:
    return binding.full_name.removesuffix("*").rstrip(".") or binding.full_name


def _names_of(binding: Binding) -> tuple[str, ...]:
    alias = binding.target
    assert isinstance(alias, ast.alias)
    return (alias.asname or alias.name.partition(".")[0], alias.asname or alias.name)


def _is_of_module(names: GlobalNames, call: ast.Call, statement: Statement) -> bool:
    """Return whether a `setattr` is on a module or a library's member, or replaces what a function is."""
    match call.args:
        case [_, ast.Constant(str(attribute)), *_] if attribute in _OF_FUNCTIONS:
            return True
    root = root_name(call.args[0]) if call.args else None
    return root is not None and bool(names.before(root.id, statement).library)


def _calls(node: ast.stmt) -> bool:
    """Return whether a statement of the module may call a function, other than in functions that it
    defines.
    """
    waiting: list[ast.AST] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Call | ast.For | ast.With) or getattr(each, "decorator_list", None):
            return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += [one for one in (*each.args.defaults, *each.args.kw_defaults) if one is not None]
        else:
            waiting += ast.iter_child_nodes(each)
    return False
