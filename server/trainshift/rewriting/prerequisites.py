"""Prerequisites: the Horovod import, `hvd.init()`, GPU pinning and flags, as edits that changes share.

Names and places depend on the whole script and not on the order of changes, so that changes made one after
another end in the same text as all of them at once (spec.md 4).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec.structs import replace

from trainshift.core.layout import Layout
from trainshift.core.libraries import Libraries
from trainshift.core.program import Program
from trainshift.libraries import entries
from trainshift.libraries.common import is_common
from trainshift.libraries.devices import LIMITS_MEMORY
from trainshift.libraries.entries import Role
from trainshift.libraries.methods import named
from trainshift.python.lazy import cached_property
from trainshift.python.names.script import Script
from trainshift.python.source.edit import Edit
from trainshift.python.syntax.chunk_syntax import Binding, Statement, root_name
from trainshift.rewriting.import_effects import ImportEffects, imports_package, is_import
from trainshift.rewriting.keras.helpers import Helpers
from trainshift.rewriting.keras.legacy import Legacy
from trainshift.rewriting.style import Style
from trainshift.training.devices.pinning import Pinning
from trainshift.training.horovod.existing_use import KERAS, TENSORFLOW, Horovod
from trainshift.training.initial_state.batch_norms import BatchNorms
from trainshift.training.initial_state.flags import Flag, Flags
from trainshift.training.initial_state.set_weights import SetWeights
from trainshift.training.keras_version.target import Target
from trainshift.training.learning_rates.learning_rates import LearningRates
from trainshift.training.loops.fits import Fits
from trainshift.training.loops.loop_kinds import Pattern
from trainshift.training.loops.loops import Loops
from trainshift.training.loops.steps import Steps
from trainshift.training.rank_regions.guard_forms import Form, RootCall
from trainshift.training.rank_regions.root_only import RootOnly
from trainshift.training.ranks.decisions import Decisions
from trainshift.training.seeds.agreement import Agreement
from trainshift.training.seeds.drawn_alike import DrawnAlike
from trainshift.training.seeds.seed_places import SeedPlaces

_TENSORFLOW = ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2")
# The name of a Horovod module next to another one.
_SECOND = {TENSORFLOW: "hvd_tf", KERAS: "hvd_keras"}
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Delete, ast.Pass)


_STANDARD = re.compile(r"(io|os|tempfile)\.")


def module_of(program: Program, call: RootCall) -> str:
    """The module of the standard library with which a call is kept to rank 0; "" if none is needed."""
    if call.form in (Form.ELSEWHERE, Form.QUIET):
        known = program.fact(Libraries).called(call.site, Role.WRITER_OBJECT, Role.TRACKER)
        used = _STANDARD.match(known.text("elsewhere")) if known is not None else None
        return used[1] if used else ""
    return {Form.PATH: "os", Form.CONTEXT: "contextlib"}.get(call.form, "")


def importing(module: str, name: str) -> str:
    """The statement that imports a module under a name."""
    return f"import {module}" if name == module else f"import {module} as {name}"


class Prerequisites:
    """The prerequisites of one file's rewritten statements, and the edits that add them.

    Every file that uses Horovod imports it.  It also starts it, which may be repeated, if another script may
    import the file; the start file also pins the GPU.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._whole = program.whole
        self._script = program.script
        self._horovod = program.fact(Horovod)
        self._layout = program.fact(Layout)
        self._helpers = program.fact(Helpers)
        self._legacy = program.fact(Legacy)

    @cached_property
    def _root_calls(self) -> list[RootCall]:
        """The file's calls that only rank 0 should make."""
        calls = self._whole.fact(RootOnly).calls
        return [call for call in calls if self._program.holds(call.site)]

    @cached_property
    def _scaling(self) -> list[Statement]:
        """The file's statements with a rate to scale, or a seed to change by rank."""
        rates, _ = self._whole.fact(LearningRates).all
        seeds = self._whole.fact(SeedPlaces).chosen
        changed = [*(each.statement for each in rates), *(each.site.statement for each in seeds)]
        return [each for each in changed if self._program.holds(each)]

    @cached_property
    def hvd(self) -> str:
        """The name of the Horovod module with `size`, `rank` and everything except the Keras parts."""
        return self.modules.get(TENSORFLOW) or self.modules[KERAS]

    @cached_property
    def hvd_keras(self) -> str:
        """The name of `horovod.tensorflow.keras`, which has the callbacks and wraps Keras' optimizers."""
        return self.modules[KERAS]

    @cached_property
    def modules(self) -> dict[str, str]:
        """The names of Horovod's modules that the script has or needs: its own, or fresh (spec.md 5.14)."""
        named = {
            module: found[0]
            for module in (TENSORFLOW, KERAS)
            if (found := self._horovod.imported_as(module)) is not None
        }
        for module in (TENSORFLOW, KERAS):
            if module in self.needs and module not in named:
                names = (_SECOND[module],) if named else ("hvd", _SECOND[module])
                named[module] = self._script.first_free(*names, taken=named.values())
        return named

    @cached_property
    def tf(self) -> str:
        """The module-level name of the TensorFlow module (spec.md 5.10)."""
        return self._tensorflow[0]

    @cached_property
    def v1(self) -> str:
        """The module with TensorFlow 1's names."""
        bindings = self._script.module_bindings.get(self.tf, [])
        own = any(binding.full_name == "tensorflow.compat.v1" for binding in bindings)
        return self.tf if own else f"{self.tf}.compat.v1"

    def standard(self, name: str) -> str:
        """The module-level name of a standard library module that rewritten statements use."""
        found = self._module(name)
        if found is None and name in self._script.module_bindings and name in self._only_meaning((name,)):
            return name
        return found or self._script.fresh(name)

    @cached_property
    def _standard(self) -> list[str]:
        """The modules of the standard library that the file's rewritten statements use."""
        found = {module_of(self._whole, call) for call in self._root_calls if not call.reason}
        return sorted(filter(None, found))

    def standing_in(self, code: str) -> str:
        """The code of an entry, with the file's name of its standard library module."""
        used = _STANDARD.match(code)
        return f"{self.standard(used[1])}.{code[used.end() :]}" if used else code

    @property
    def root(self) -> str:
        """The test that is true only on rank 0."""
        return f"{self.hvd}.rank() == 0"

    @cached_property
    def needs(self) -> frozenset[str]:
        """The modules of Horovod that the rewritten program uses."""
        if self._whole.fact(Target).is_keras3:
            return frozenset({TENSORFLOW})
        whole = self._whole
        patterns = {loop.pattern for loop in whole.fact(Loops).own}
        keras = {KERAS} if Pattern.OPTIMIZER in patterns else set()
        # Slow questions come last.
        needs_both = (
            patterns != {Pattern.OPTIMIZER}
            or whole.fact(Steps).steps
            or whole.fact(Fits).batches
            or whole.fact(BatchNorms).is_needed
            or any(call.form in (Form.RELOAD, Form.SHARE) for call in whole.fact(RootOnly).calls)
            or whole.fact(SetWeights).keeps_before_fits
            or whole.fact(Decisions).is_needed
            or whole.fact(Agreement).is_needed
            or whole.fact(DrawnAlike).is_sent
        )
        return frozenset({TENSORFLOW, *keras} if needs_both else keras)

    def edits(self, said: frozenset[str] | None = None, *, starts: bool = True) -> tuple[Edit, ...]:
        """The edits that set up Horovod, unless the file does so; every change in the file needs them.

        `said` are the words of all code that changes insert into the file: names that do not occur are not
        imported.  None if the file is the whole program.  Unless it `starts` Horovod, the start file does.
        """
        flags = [(each.name, each.first.replace("{tf}", self.tf)) for each in self._flags if each.first]
        done, pinned = self._starts, self._pinned
        edits = [] if done else self._legacy.edits()
        missing = [f"{name} = {value}" for name, value in flags if name not in self._script.module_bindings]
        missing += self._helpers.lines(self.tf, self.v1, self.hvd, self._layout.unit)
        block: list[str] = []
        if not done:
            block += [f"{self.hvd}.init()"] if starts else []
            block += self._legacy.lines(self.tf, self.modules.get(KERAS))
            block += [] if pinned else self._pinning()
            block += missing
        if imports := self._missing_imports(said, done, pinned):
            edits += self._insert_imports(imports, is_all=not done and not block)
            for late in self._moved_up(imports):
                edits += map(self._with_blank_line, self._layout.remove(late, keep_block=False))
        if not done:
            edits += self._insert_block(block) if block else []
        else:
            if not pinned:
                edits.append(self._layout.after(self._pinned_below, self._pinning()))
            if missing:
                edits += self._insert_flags(missing, [name for name, _ in flags])
        return tuple(edits)

    def needed_by(self, said: frozenset[str]) -> tuple[Edit, ...]:
        """Return those of the edits without which inserted code with the words `said` would not run.

        A script that starts Horovod itself keeps its choice of GPUs, and gets no flag that the code does not
        name.
        """
        if not self._starts:
            return self.edits(said)
        edits = self._insert_imports(imports) if (imports := self._missing_imports(said, True, True)) else []
        flags = [each for each in self._flags if each.first and each.name in said]
        lines = [
            f"{each.name} = {each.first.replace('{tf}', self.tf)}"
            for each in flags
            if each.first and each.name not in self._script.module_bindings
        ]
        if not said.isdisjoint(self._helpers.names.values()):
            lines += self._helpers.lines(self.tf, self.v1, self.hvd, self._layout.unit)
        if lines:
            edits += self._insert_flags(lines, [each.name for each in flags])
        return tuple(edits)

    @property
    def is_set_up(self) -> bool:
        """Return whether the script itself starts Horovod and assigns GPUs, even if only in functions."""
        return self._starts and self._pinned

    @property
    def _starts(self) -> bool:
        return bool(self._horovod.calls("init")) and not self._starts_late

    @property
    def _pinned(self) -> bool:
        done = not self._program.is_started or self._whole.fact(Pinning).is_done
        return done or not self._whole.fact(Loops).runs_eagerly

    def is_named_in(self, said: frozenset[str]) -> bool:
        """Return whether code that is inserted into the file uses Horovod, a flag, or a helper."""
        ours = {*(flag.name for flag in self._flags), *self._helpers.names.values()}
        return not said.isdisjoint({*self.modules.values(), *ours})

    @cached_property
    def _flags(self) -> list[Flag]:
        """The flags of the file's own steps."""
        return [each for each in self._whole.fact(Flags).needed if self._program.holds(each.step.site)]

    def _with_blank_line(self, edit: Edit) -> Edit:
        """Extend an edit that removes lines between two empty ones by one of these."""
        source = self._script.source
        before = source.text[: edit.start].rstrip(" \t")
        following = source.text[edit.end : source.next_line(edit.end)]
        between = source.line_start(edit.start) == edit.start and source.line_start(edit.end) == edit.end
        if edit.text or not between or following.strip() or not following:
            return edit
        above = source.text[source.line_start(max(edit.start - 1, 0)) : edit.start]
        return edit if above.strip() or not before else replace(edit, end=source.next_line(edit.end))

    def _moved_up(self, imports: list[str]) -> list[Statement]:
        """The module's statements that only import modules which the new imports above them already
        import.
        """
        return [
            each
            for each in self._script.top
            if isinstance(each.node, ast.Import)
            and self._script.text(each.node, each) in imports
            and each not in self._leading
        ]

    def _is_imported_in_time(self, module: str) -> bool:
        """Return whether the file imports a standard library module before the place that needs it."""
        imports = [each.statement for each in self._script.module_bindings.get(module, ()) if each.statement]
        using = [call.site.statement for call in self._root_calls if module_of(self._whole, call) == module]
        place = self._script.top_index
        first = min((place[each] for each in imports if each.parent is None), default=None)
        return first is not None and all(first < place[self._top(each)] for each in using)

    def _missing_imports(self, said: frozenset[str] | None, starts: bool, pinned: bool) -> list[str]:
        """The import statements that the file lacks."""
        imports = []
        for module in self._standard:
            name = self.standard(module)
            if self._module(module) is None and not self._is_imported_in_time(module):
                imports.append(importing(module, name))
        # An import below other statements is early enough for a script that sets up Horovod itself.
        soon_enough = self._is_named_later or (starts and pinned and self.tf in self._script.module_bindings)
        named = said is None or not pinned or self.tf in said or bool(self._helpers.names)
        if self._tensorflow[1] is None and not soon_enough and named:
            imports.append(importing("tensorflow", self.tf))
        imports += [
            f"import {module} as {name}"
            for module, name in self.modules.items()
            if not self._is_imported(module, leading=not starts)
            and (said is None or name in said or name == self.hvd)
        ]
        return imports

    @cached_property
    def anchor(self) -> Statement | None:
        """The statement of the TensorFlow import, at the top of the script or nested."""
        return self._tensorflow[1] or next(iter(self._importing_tensorflow), None)

    @cached_property
    def _importing_tensorflow(self) -> list[Statement]:
        """The imports of TensorFlow, otherwise those of Keras; those before all work if there are any."""
        imports = [
            [each for each in self._script.statements if imports_package(each, package)]
            for package in ("tensorflow", "keras", "tf_keras")
        ]
        leading = [[each for each in found if self._top(each) in self._leading] for found in imports]
        return next((found for found in (*leading, *imports) if found), [])

    @staticmethod
    def _top(statement: Statement) -> Statement:
        return [*statement.path()][-1]

    @property
    def _starts_late(self) -> bool:
        """Return whether ``hvd.init()`` is called only in functions, after the module's own statements
        need it.
        """
        asking = [*self._scaling, *(call.site.statement for call in self._root_calls)]
        early = any(statement.scope.kind == "module" for statement in asking)
        return early and all(site.scope.kind != "module" for site in self._horovod.calls("init"))

    def _is_imported(self, module: str, leading: bool) -> bool:
        """Return whether the script imports a module of Horovod; with `leading`, before all work."""
        found = self._horovod.imported_as(module)
        return found is not None and (not leading or self._top(found[1]) in self._leading)

    @property
    def _is_named_later(self) -> bool:
        """Return whether TensorFlow is imported too late for the set-up, which for a graph alone works
        without it.
        """
        return not self._whole.fact(Loops).runs_eagerly and self.tf in self._script.module_bindings

    @cached_property
    def _start(self) -> Statement:
        return self._horovod.calls("init")[0].statement

    @property
    def _pinned_below(self) -> Statement:
        """The start of Horovod, or the import of TensorFlow if that comes after it."""
        own = self._tensorflow[1]
        if own is None or self._start.scope.kind != "module":
            return self._start
        place = self._script.top_index
        return max(self._start, own, key=lambda each: place[self._top(each)])

    def _pinning(self) -> list[str]:
        device, devices = "gpu", "gpus"
        if (self._script.fresh(device), self._script.fresh(devices)) != (device, devices):
            device, devices = (self._script.fresh(f"physical_{each}") for each in (device, devices))
        config, unit = f"{self.tf}.config.experimental", self._layout.unit
        gpu = self._program.fact(Style).quoted("GPU")
        return [
            f"{devices} = {config}.list_physical_devices({gpu})",
            f"for {device} in {devices}:",
            f"{unit}{config}.set_memory_growth({device}, True)",
            f"if {devices}:",
            f"{unit}{config}.set_visible_devices({devices}[{self.hvd}.local_rank() % len({devices})], {gpu})",
        ]

    # Places

    @cached_property
    def _leading(self) -> list[Statement]:
        """The statements at the top of the script before the first that does real work."""
        leading = []
        for statement in self._script.top:
            if self._is_work(statement):
                break
            leading.append(statement)
        return leading

    @property
    def _introduction(self) -> list[Statement]:
        """The statements before the first that is neither the docstring nor an import."""
        found = []
        for statement in self._leading:
            said = statement.node.value if isinstance(statement.node, ast.Expr) else None
            if not (isinstance(said, ast.Constant) or is_import(statement)):
                break
            found.append(statement)
        return found

    @cached_property
    def _work_sites(self) -> set[Statement]:
        """Statements with a call that prints, writes or runs TensorFlow, and those that scale a rate."""
        found = {above for each in self._scaling if each.scope.kind == "module" for above in each.path()}
        kept = {call.site for call in self._root_calls}
        for site in self._script.sites:
            if site.statement in found or site.statement.scope.kind != "module":
                continue
            names = self._script.names.full_names(site.node.func, site.scope, site.statement)
            # If the memory of a GPU is limited first, the pinning cannot enable memory growth.
            quiet = all(entries.fact(name, "deviceless") and name != LIMITS_MEMORY for name in names)
            runs = any(name.startswith("tensorflow.") for name in names) and not quiet
            alone = site.name in self._program.fact(Libraries).for_root - named("levels")
            if runs or alone or site in kept:
                found.update(site.statement.path())
        return found

    def _is_work(self, statement: Statement) -> bool:
        node = statement.node
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._program.is_started and any(
                map(self._whole.fact(ImportEffects).touch, self._imported(statement))
            )
        if isinstance(node, ast.If | ast.Try):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                return False
            inner = [each for block in statement.branches.values() for each in block]
            return any(self._is_work(each) for each in inner) or not any(map(is_import, inner))
        return not isinstance(node, _SIMPLE) or statement in self._work_sites

    def _imported(self, statement: Statement) -> Iterator[Script]:
        """The program's own files that an import runs."""
        for binding in self._script.imports:
            if binding.statement is statement:
                yield from self._script.run_by_import(binding)

    @cached_property
    def _tensorflow(self) -> tuple[str, Statement | None]:
        """A module-level name of TensorFlow and its import; a new name if no import is at the top."""
        later = ""
        for full_name in _TENSORFLOW:
            for name, bindings in self._script.module_bindings.items():
                for binding in bindings:
                    if binding.full_name == full_name and name in self._tensorflow_names:
                        if self._is_leading(binding):
                            return name, binding.statement
                        later = later or name
        if not later and (starred := self._starred_tensorflow):
            return starred
        return later or self._script.first_free("tf", "tensorflow", ours=self._tensorflow_names), None

    @cached_property
    def _starred_tensorflow(self) -> tuple[str, Statement] | None:
        """The name of TensorFlow that a star import at the top of the script binds, and that import."""
        stars = [
            each
            for each in self._leading
            if isinstance(each.node, ast.ImportFrom) and each.node.names[0].name == "*"
        ]
        for site in self._script.sites if stars else ():
            name = root_name(site.node.func)
            if name is None or self._script.names.lookup(name.id, site.scope, site.statement)[1]:
                continue
            if self._script.names.full_names(name, site.scope, site.statement) == {"tensorflow"}:
                return name.id, stars[-1]
        return None

    @cached_property
    def _tensorflow_names(self) -> set[str]:
        """The names that always mean the TensorFlow module, wherever they are bound."""
        return self._only_meaning(_TENSORFLOW)

    def _only_meaning(self, modules: tuple[str, ...]) -> set[str]:
        """Names that never mean anything but some modules, wherever they are bound."""
        found: dict[str, bool] = {}
        for facts in self._script.facts:
            for scope in (facts.module, *facts.scopes):
                for name, bindings in scope.bindings.items():
                    only = all(binding.full_name in modules for binding in bindings)
                    found[name] = found.get(name, True) and only
        return {name for name, only in found.items() if only}

    def _is_leading(self, binding: Binding) -> bool:
        if binding.statement is None or binding.scope.kind != "module":
            return False
        return any(each in self._leading for each in binding.statement.path())

    def _module(self, full_name: str) -> str | None:
        for name, bindings in self._script.module_bindings.items():
            if all(b.kind == "import" and b.full_name == full_name for b in bindings) and any(
                self._is_leading(b) for b in bindings
            ):
                return name
        return None

    def _insert_imports(self, lines: list[str], *, is_all: bool = False) -> list[Edit]:
        """Insert imports below those of TensorFlow; those that may precede all others go to the top.

        If they are all that is inserted there, empty lines follow those of a file that had none.
        """
        early = [line for line in lines if not line.startswith("import horovod")]
        anchor = self._imported_below
        last = anchor if anchor is not None else next(reversed(self._leading), None)
        if last is None or last in self._introduction:
            early = []
        elif self._may_set_environment(last):
            early = [line for line in early if not line.startswith("import tensorflow")]
        late = [line for line in lines if line not in early]
        edits = self._insert_at_top(early) if early else []
        if not late:
            return edits
        if anchor is not None:
            return [*edits, *self._layout.isolate(anchor), self._layout.after(anchor, late)]
        return [*edits, *self._insert_at_start([*late, *(self._blank_lines if is_all else [])])]

    @cached_property
    def _imported_below(self) -> Statement | None:
        """The import at the top of the script below which others are inserted."""
        known = [
            s for s in self._script.statements if s.scope.kind == "module" and imports_package(s, "horovod")
        ]
        known = [each for each in known if self._top(each) in self._leading]
        for anchor in reversed(known) if known else self._preferred(self._importing_tensorflow):
            top = self._top(anchor)
            if top in self._leading:
                return top
        return self._last_import

    def _may_set_environment(self, last: Statement) -> bool:
        """Return whether code down to a statement may set the environment, which TensorFlow's import
        reads.
        """
        below = self._leading[len(self._introduction) : self._leading.index(last) + 1]
        inside = {each for top in below for each in top.walk()}
        names = self._script.names
        called = [
            names.full_names(site.node.func, site.scope, site.statement)
            for site in self._script.sites
            if site.statement in inside
        ]
        imported = [frozenset({each.full_name}) for each in self._script.imports if each.statement in inside]
        return any("os.environ" in self._script.text(top.node, top) for top in below) or not all(
            each and all(map(is_common, each)) and not any(name.startswith("os.") for name in each)
            for each in (*called, *imported)
        )

    def _insert_at_top(self, lines: list[str]) -> list[Edit]:
        """Insert below the first imports of the file."""
        above = self._introduction
        if above:
            return [*self._layout.isolate(above[-1]), self._layout.after(above[-1], lines)]
        first = self._script.top[0]
        return [*self._layout.isolate(first), self._layout.before(first, lines, -10)]

    def _preferred(self, anchors: list[Statement]) -> list[Statement]:
        own = self._tensorflow[1]
        return [own] if own is not None else anchors[::-1]

    def _insert_block(self, lines: list[str]) -> list[Edit]:
        """Insert below the last import at the top of the script."""
        last = self._last_import
        if last is None:
            return self._insert_at_start(["", *lines, *self._blank_lines], 1)
        return self._below(last, ["", *lines])

    @cached_property
    def _last_import(self) -> Statement | None:
        last = next((each for each in reversed(self._leading) if is_import(each)), None)
        found = not self._program.is_whole or any(
            imports_package(s, "tensorflow") or imports_package(s, "horovod") or imports_package(s, "keras")
            for top in self._leading
            for s in (top, *(each for block in top.branches.values() for each in block))
        )
        return last if found else None

    def _insert_flags(self, lines: list[str], names: list[str]) -> list[Edit]:
        """Insert below the existing flags, or below the set-up, or below the imports."""
        after = None
        for statement in self._script.top:
            node = statement.node
            flag = isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id in names for target in node.targets
            )
            if flag or self._is_setup(statement):
                after = statement
        if after is not None:
            return [*self._layout.isolate(after), self._layout.after(after, lines)]
        if self._last_import is not None:
            return self._below(self._last_import, ["", *lines])
        return self._insert_at_start([*lines, ""], 1)

    def _is_setup(self, statement: Statement) -> bool:
        """Return whether a statement of the module starts Horovod or pins GPUs by rank."""
        if statement is self._start:
            return True
        return isinstance(statement.node, ast.If) and any(
            site.name == "set_visible_devices" and statement in site.statement.path()
            for site in self._script.sites_named("set_visible_devices")
        )

    def _below(self, statement: Statement, lines: list[str]) -> list[Edit]:
        source, text = self._script.source, self._script.source.text
        edit = self._layout.after(statement, lines)
        following = source.next_line(edit.start)
        if not lines[-1] and not text[following : source.line_end(source.next_line(following))].strip():
            edit = self._layout.after(statement, lines[:-1])
        if text[following : self._script.source.line_end(following)].strip():
            edit = replace(edit, text=edit.text + self._script.source.newline)
        return [*self._layout.isolate(statement), replace(edit, rank=1)]

    @property
    def _blank_lines(self) -> list[str]:
        """The empty lines below the set-up and above the first working statement: two above a definition."""
        leading = self._leading if self._program.is_whole else self._introduction
        following = self._script.top[len(leading) : len(leading) + 1]
        defines = following and isinstance(following[0].node, ast.FunctionDef | ast.ClassDef)
        return ["", ""] if defines else [""]

    def _insert_at_start(self, lines: list[str], rank: int = 0) -> list[Edit]:
        """Insert above the first statement that does real work, or of a module without imports."""
        leading = self._leading if self._program.is_whole else self._introduction
        index = len(leading)
        if index < len(self._script.top):
            first = self._script.top[index]
            return [*self._layout.isolate(first), self._layout.before(first, lines, rank - 10)]
        return [self._layout.after(leading[-1], lines)] if leading else []
