"""Steps without an optimizer: the script itself assigns the variables whose gradients a tape computed.

All assignments between two gradients of the same variables are one step; it ends once each variable was set.
If an optimizer takes a step, no other is one by hand.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.kerases import known_to_tensorflow
from trainshift.proving.observed.values import Numbers, Values

KIND = "steps by hand"
SETTING = ("assign", "assign_add", "assign_sub", "scatter_add", "scatter_sub", "scatter_update")


class Sources:
    """Variables whose gradients are taken together; `keys` are the numbers of their handles.

    With `is_due`, there are gradients that no step has used yet. In an eager step that has begun, `waiting`
    are the variables not yet set, and `before` the previous values of all.
    """

    def __init__(self, variables: Sequence[Any], keys: tuple[int, ...]) -> None:
        self.variables = [weakref.ref(variable) for variable in variables]
        self.keys = keys
        self.is_due = False
        self.waiting: set[int] = set()
        self.before: list[Any] = []
        self.numbers: list[int] = []

    def living(self) -> list[Any]:
        """The variables; none if one has been deleted."""
        variables = [reference() for reference in self.variables]
        return [] if any(variable is None for variable in variables) else variables


@dataclass(eq=False)
class Taken:
    """Gradients of some sources, and the step that follows in the graph that is being built.

    `operation` records the gradients if they are taken in a graph; with `is_used`, a step in this graph, or
    in an inner one, uses them, so that no other does.
    """

    sources: Sources
    operation: Any = None
    is_used: bool = False
    has_begun: bool = False
    waiting: set[int] = field(default_factory=set)
    before: list[Any] = field(default_factory=list)

    def be_due(self) -> None:
        """Record that the gradients were computed."""
        if not self.is_used:
            self.sources.is_due = True


class ByHand(Values):
    """The variables that the script sets, and whose gradients were taken."""

    def __init__(self, tf: Any, np: Any) -> None:
        super().__init__(tf, np)
        self.handles = Numbers()
        # Indexed by all handles, and by each.
        self.sources: dict[tuple[int, ...], Sources] = {}
        self.source_of: dict[int, Sources] = {}
        self.taken_in: weakref.WeakKeyDictionary[Any, dict[Sources, Taken]] = weakref.WeakKeyDictionary()
        self.sees_setting = False
        self.sets_itself = 0

    def hook_setting(self) -> None:
        """Observe the variables that a script assigns."""
        module: Any = importlib.import_module("tensorflow.python.ops.resource_variable_ops")

        def hook(owner: Any, name: str) -> None:
            original = getattr(owner, name)

            @wraps(original)
            def assign(variable: Any, *args: Any, **kwargs: Any) -> Any:
                sources = None
                if self.sees_setting and not self.sets_itself and self.handles.has(variable.handle):
                    sources = self.source_of.get(self.handles.of(variable.handle))
                if sources is None:
                    return original(variable, *args, **kwargs)
                return self.set_by_script(sources, variable, lambda: original(variable, *args, **kwargs))

            setattr(owner, name, assign)

        self.sees_setting = True
        # Some versions of TensorFlow define them on each class again.
        for owner in (module.BaseResourceVariable, module.ResourceVariable):
            for name in SETTING:
                if name in vars(owner):
                    hook(owner, name)

    @contextmanager
    def not_by_script(self) -> Iterator[None]:
        """Ignore assignments in the `with` block, which are a broadcast's and not steps."""
        self.sets_itself += 1
        try:
            yield
        finally:
            self.sets_itself -= 1

    def has_optimizer(self) -> None:
        """Record that an optimizer takes the steps, so that no assignment is a step."""
        if not self.sees_setting:
            return
        self.sees_setting = False
        for sources in self.sources.values():
            number = self.numbers.of(sources)
            self.watches.pop(number, None)
            if self.stopping:
                self.stopping.counts.pop(number, None)
        self.sources.clear()
        self.source_of.clear()
        self.taken_in.clear()

    def note_sources(self, sources: Any, gradients: Any) -> Taken | None:
        """Record the variables whose gradients are taken and that a script may assign itself, if any."""
        if not self.sees_setting:
            return None
        flat = self.tf.nest.flatten
        pairs = zip(flat(sources), flat(gradients), strict=False)
        known = [known_to_tensorflow(source) for source, gradient in pairs if gradient is not None]
        variables = [each for each in known if is_one(each) and self.numbers.of(each) not in self.local]
        keys = tuple(self.handles.of(variable.handle) for variable in variables)
        if not variables:
            return None
        found = self.sources.setdefault(keys, Sources(variables, keys))
        self.source_of.update(dict.fromkeys(keys, found))
        taken = Taken(found)
        if not self.tf.executing_eagerly():
            self.taken_in.setdefault(self.tf.compat.v1.get_default_graph(), {})[found] = taken
        return taken

    def set_by_script(self, sources: Sources, variable: Any, take: Callable[[], Any]) -> Any:
        """Handle an assignment of a variable, which may begin or end a step."""
        variables = sources.living()
        if not variables or self.in_session_graph():
            return take()
        key = self.handles.of(variable.handle)
        if not self.tf.executing_eagerly():
            return self.set_in_graph(sources, variables, key, take)
        ends = False
        if sources.is_due:
            ends = self.end_begun(sources)
            self.begin(sources, variables)
            sources.is_due, sources.waiting = False, {*sources.keys}
            sources.before = [self.value(number) for number in sources.numbers]
        result = take()
        if key in sources.waiting:
            sources.waiting.remove(key)
            if not sources.waiting:
                self.end(sources)
                ends = True
        if ends and self.stopping and not self.stopping.depth:
            self.stopping.boundary()
        return result

    def set_in_graph(
        self, sources: Sources, variables: Sequence[Any], key: int, take: Callable[[], Any]
    ) -> Any:
        """Handle an assignment while a graph is being built."""
        tf = self.tf
        graph = tf.compat.v1.get_default_graph()
        taken = self.taken_in.setdefault(graph, {}).setdefault(sources, Taken(sources))
        if not taken.has_begun:
            self.begin(sources, variables)
            taken.has_begun, taken.waiting = True, {*sources.keys}
            taken.before = [tf.convert_to_tensor(each) for each in variables]
        result = take()
        if key not in taken.waiting:
            return result
        taken.waiting.remove(key)
        if not taken.waiting:
            count, is_used = len(variables), self.use(sources, graph)

            def note(*values: Any) -> None:
                if is_used or sources.is_due:
                    sources.is_due = False
                    self.step(sources, values[:count], values[count:])

            # Facts about the gradients come first.
            with tf.control_dependencies([taken.operation] if taken.operation is not None else []):
                self.observe(note, [*taken.before, *map(tf.convert_to_tensor, variables)])
            taken.before = []
        return result

    def use(self, sources: Sources, graph: Any) -> bool:
        """Use the gradients taken in this graph, or in an outer one; return whether there are any."""
        while graph is not None:
            taken = self.taken_in.get(graph, {}).get(sources)
            if taken and taken.operation is not None:
                taken.is_used = True
                return True
            graph = getattr(graph, "outer_graph", None)
        return False

    def begin(self, sources: Sources, variables: Sequence[Any]) -> None:
        """Record the variables before a step sets them."""
        watch = self.watch(sources)
        watch.record.kind, watch.record.by_hand = KIND, True
        watch.record.applied_at = watch.record.applied_at or self.place()
        sources.numbers = [self.see(variable) for variable in variables]
        watch.record.given &= all(
            number in self.broadcast or number in watch.trained for number in sources.numbers
        )
        watch.trained.update(dict.fromkeys(sources.numbers))

    def end_begun(self, sources: Sources) -> bool:
        """End an eager step that has not set all variables; return whether there is one."""
        if not sources.waiting:
            return False
        sources.waiting = set()
        self.end(sources)
        return True

    def end_all_begun(self) -> None:
        """End all such steps."""
        for sources in self.sources.values():
            self.end_begun(sources)

    def end(self, sources: Sources) -> None:
        """Record the variables after an eager step."""
        self.step(sources, sources.before, [self.value(number) for number in sources.numbers])
        sources.before = []

    def step(self, sources: Sources, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Record a step; the decrease of the variables counts as its gradients."""
        if not self.sees_setting:
            return
        watch = self.watch(sources)
        lowered = [old - new for old, new in zip(before, after, strict=True)]
        watch.record.rates.append(float("nan"))
        watch.record.gradients.append(digest(lowered))
        self.stepped(watch, lowered)
        watch.record.weights.append(digest(after))
        self.changed(watch, len(watch.record.weights) - 1, after)


def is_one(source: Any) -> bool:
    """Return whether this is a single variable, and not one of a strategy with parts on its devices."""
    try:
        return source.handle is not None and hasattr(source, "assign")
    except (AttributeError, ValueError):
        return False
