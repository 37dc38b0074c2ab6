"""Alpha renaming: give each name in a function one meaning.

All later steps read the function in this form. A variable of a comprehension or lambda has a unique name, no
variable has the name of a builtin or of a module that derivatives call, and a function of the file with
several names is called by one of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from trainshift.derivatives.reading.global_names import BUILTINS
from trainshift.derivatives.reading.module import Module
from trainshift.derivatives.reading.result import Impossible, Refusal
from trainshift.python.names.scoping import NameUse
from trainshift.python.rewrite import terms
from trainshift.python.rewrite.renaming import Renaming, identifiers, parameters_of, scopes_around
from trainshift.python.syntax.chunk_syntax import Scope, imported_names
from trainshift.python.syntax.fresh_names import fresh_name

# The names that derivatives use for the modules they need.
MODULES = {"np": "numpy", "math": "math", "tf": "tensorflow"}


def rename_bound(function: ast.FunctionDef, module: Module) -> ast.FunctionDef:
    """A function in which each name has one meaning; the same function if nothing had to change.

    Raises `Impossible` if a name may have several meanings.
    """
    if function.name not in module.renamed:
        module.renamed[function.name] = _Renaming(function, module).renamed()
    return module.renamed[function.name]


class _Renaming:
    def __init__(self, function: ast.FunctionDef, module: Module) -> None:
        self.function = function
        self.module = module
        self.scope = module.scopes[id(function)]
        self.renaming = Renaming(function, self.scope)
        self.uses = self.renaming.uses
        self.free = {each.node.id for each in self.uses if each.owner is None}
        self.taken = set(module.names) | identifiers(function)
        modules = {*MODULES, *(module.alias(each) or "" for each in MODULES.values())}
        made = {f"{each}_{end}" for each in module.functions for end in ("vjp", "jvp", "grad")}
        self.reserved = modules | made | {each for each in BUILTINS if not each.startswith("_")}
        self.refusals: list[Refusal] = []

    def renamed(self) -> ast.FunctionDef:
        self._global_names()
        scopes = self.renaming.scopes
        for scope in scopes:
            self._imports(scope)
        for scope, names in [*self._comprehensions(scopes), *self._variables(scopes)]:
            self.renaming.rename(scope, {each: self._fresh(each) for each in sorted(names)})
        if self.refusals:
            raise Impossible(tuple(sorted(set(self.refusals))))
        return self.renaming.copy()

    def _fresh(self, base: str) -> str:
        name = fresh_name(base, self.taken, numbered=True)
        self.taken.add(name)
        self.module.variables[name] = base
        return name

    def _refuse(self, node: ast.AST, said: str) -> None:
        line, column = getattr(node, "lineno", self.function.lineno), getattr(node, "col_offset", 0)
        text = self.module.lines[line - 1].encode()[:column].decode(errors="replace")
        self.refusals.append(Refusal(line, len(text) + 1, said))

    # Meanings of names

    def _global_names(self) -> None:
        """Give each global name one meaning, and each meaning one name."""
        for use in self.uses:
            name = use.node.id
            if use.owner is None:
                if unknown := self.module.globals.meaning(name).unknown:
                    self._refuse(use.node, unknown)
                elif name in self.module.aliases:
                    self.renaming.replace(use.node, self.module.aliases[name])
        called = {id(each.func) for each in terms.walk(self.function) if isinstance(each, ast.Call)}
        for use in self.uses:
            name = use.node.id
            if use.owner is not None and id(use.node) in called and name in self.reserved:
                if name in parameters_of(use.owner) and not isinstance(use.owner.node, ast.Lambda):
                    self._refuse(use.node, f"the parameter {name} has the name of a builtin: rename it")

    def _imports(self, scope: Scope) -> None:
        """Refuse names that a function both imports and binds otherwise."""
        for name, bindings in scope.bindings.items():
            imported = {each.full_name for each in bindings if each.kind == "import"}
            if imported and (len(imported) > 1 or any(each.kind != "import" for each in bindings)):
                node = bindings[-1].target or self.function
                self._refuse(node, f"{name} is imported here and also means something else: rename one")
            full = next(iter(imported), "")
            if full and name in MODULES and full != MODULES[name]:
                node = bindings[-1].target or self.function
                self._refuse(node, f"{name} is a different module here: import it by another name")

    # New names

    def _comprehensions(self, scopes: Sequence[Scope]) -> list[tuple[Scope, set[str]]]:
        """The comprehensions whose variables share a name with another object."""
        found = []
        for function in scopes:
            if function.kind != "function":
                continue
            used = {each.node.id for each in self.uses if self._is_used_in(each, function)}
            used |= parameters_of(function) | {
                each.name for each in scopes if each.parent is not None and each.parent.function() is function
            }
            for scope in scopes:
                if scope.kind == "comprehension" and scope.function() is function:
                    names = set(scope.bindings) & (used | self.reserved)
                    if names:
                        found.append((scope, names))
        return found

    def _is_used_in(self, use: NameUse, function: Scope) -> bool:
        """Return whether a use of a name is inside a function, and refers to a variable of it or
        around it.
        """
        within = function in scopes_around(use.scope)
        return within and (use.owner is function or function not in scopes_around(use.owner))

    def _variables(self, scopes: Sequence[Scope]) -> list[tuple[Scope, set[str]]]:
        """The functions and lambdas with variables that need another name."""
        found = []
        keywords = {each.arg for each in terms.walk(self.function) if isinstance(each, ast.keyword)}
        for scope in scopes:
            if scope.kind != "function":
                continue
            params = parameters_of(scope)
            own = set(scope.bindings) - scope.declared_nonlocal - scope.declared_global
            names = (own - params) & self.reserved
            if scope is not self.scope:
                names |= own & self.free
            if isinstance(scope.node, ast.Lambda):
                names |= params & self.reserved
            names |= {
                each for each in own if self._is_import(scope, each) and self._is_elsewhere(each, scope)
            }
            names = {each for each in names if not self._is_module_here(scope, each)}
            for name in sorted(names & params & keywords):
                self._refuse(
                    scope.node or self.function, f"{name} has a different meaning outside: rename it"
                )
            if names:
                found.append((scope, names))
        return found

    def _is_elsewhere(self, name: str, scope: Scope) -> bool:
        """Return whether something that is not in a scope has a name, too."""
        others = (each for each in self.renaming.scopes if each is not scope)
        return (
            name in self.module.functions
            or name in self.module.aliases
            or any(name in each.bindings for each in others)
        )

    def _is_import(self, scope: Scope, name: str) -> bool:
        return any(each.kind == "import" for each in scope.bindings[name])

    def _is_module_here(self, scope: Scope, name: str) -> bool:
        """Return whether a function imports the module that derivatives use under this name, and the file has
        no other object of that name.
        """
        outside = self.module.script.module_bindings
        if name not in MODULES or (name in outside and self.module.meaning(name).library != MODULES[name]):
            return False
        return all(each.full_name == MODULES[name] for each in scope.bindings[name])


def dotted_in(function: ast.FunctionDef, module: Module) -> Callable[[ast.expr], str | None]:
    """Return a function like `Module.dotted` for the expressions of a renamed function."""
    nodes = terms.walk(function)
    bound = identifiers(function, bound_only=True)
    imports = {
        name: full
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for _, name, full in imported_names(node)
    }

    def dotted(node: ast.expr) -> str | None:
        match node:
            case ast.Name(name) if name in imports:
                return imports[name]
            case ast.Name(name) if name in bound:
                return None
            case ast.Attribute(value, attribute):
                return module.member(dotted(value), attribute)
        return module.dotted(node)

    return dotted
