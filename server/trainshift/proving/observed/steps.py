"""Hooks on the functions that compute and apply gradients: tapes, optimizers, sessions."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from operator import is_not
from typing import Any

from trainshift.proving.observed.by_hand import ByHand, Taken
from trainshift.proving.observed.digests import digest
from trainshift.proving.observed.kerases import known_to_tensorflow
from trainshift.proving.observed.values import Executed


class Steps(ByHand):
    """The gradients of every executed step, and the resulting variables."""

    def hook_making(self) -> None:
        """Record the place where each optimizer is created."""

        def hook(owner: Any) -> None:
            original = owner.__init__

            @wraps(original)
            def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:
                original(optimizer, *args, **kwargs)
                self.made[self.numbers.of(optimizer)] = self.place()

            owner.__init__ = init

        for owner in self.families():
            hook(owner)

    def hook_variables(self) -> None:
        """Record the initial value of each eager variable."""
        owner: Any = importlib.import_module("tensorflow.python.ops.resource_variable_ops").ResourceVariable
        original = owner.__init__

        @wraps(original)
        def init(variable: Any, *args: Any, **kwargs: Any) -> None:
            original(variable, *args, **kwargs)
            if self.tf.executing_eagerly():
                self.born[self.numbers.of(variable)] = digest([variable.numpy()])

        owner.__init__ = init

    def families(self) -> list[Any]:
        """The class in each family of optimizers that applies gradients."""
        own = [owner for keras in self.kerases for owner in keras.optimizers]
        return [*own, self.tf.compat.v1.train.Optimizer]

    def hook_optimizers(self) -> None:
        """Observe the steps of all optimizers."""
        self.hook_apply_gradients(self.tf.compat.v1.train.Optimizer)
        for keras in self.kerases:
            for owner in keras.optimizers:
                if keras.is_3:
                    self.hook_apply(owner)
                else:
                    self.hook_apply_gradients(owner)
            for owner in keras.loss_scaling:
                self.hook_loss_scaling(owner, keras.applies)

    def hook_apply(self, owner: Any) -> None:
        """Observe every `apply` of Keras 3's optimizers, which `apply_gradients` calls."""
        original = owner.apply

        @wraps(original)
        def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
            self.record.keras3 = True
            gradients = list(grads)
            variables = None if trainable_variables is None else list(trainable_variables)
            known = getattr(optimizer, "_trainable_variables", ()) if variables is None else variables
            pairs = [*zip(gradients, known)]
            return self.observe_step(optimizer, pairs, lambda: original(optimizer, gradients, variables))

        owner.apply = apply

    def hook_apply_gradients(self, owner: Any) -> None:
        """Observe every `apply_gradients` of this family of optimizers."""
        original = owner.apply_gradients

        @wraps(original)
        def apply_gradients(optimizer: Any, grads_and_vars: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            return self.observe_step(optimizer, pairs, lambda: original(optimizer, pairs, *args, **kwargs))

        owner.apply_gradients = apply_gradients

    def observe_step(self, optimizer: Any, pairs: Sequence[tuple[Any, Any]], take: Callable[[], Any]) -> Any:
        """Take a step of an optimizer with gradients and their variables, and observe it."""
        tf = self.tf
        self.has_optimizer()
        used = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
        shared = [pair for pair in used if self.numbers.of(known_to_tensorflow(pair[1])) not in self.local]
        if not shared:
            return take()
        watch = self.watch(optimizer)
        # The owner of each slot is unknown.
        watch.has_local, used = len(shared) < len(used), shared
        watch.record.applied_at = watch.record.applied_at or self.place()
        numbers = [self.see(variable) for _, variable in used]
        watch.record.given &= all(each in self.broadcast or each in watch.trained for each in numbers)
        watch.trained.update(dict.fromkeys(numbers))
        gradients = self.dense([gradient for gradient, _ in used])
        whole = self.whole([gradient for gradient, _ in used]) if self.details else gradients
        written_out = whole if any(map(is_not, whole, gradients)) else []
        split, end = len(gradients), len(gradients) + len(used)
        reads: dict[int, Any] = {}

        def note(rate: Any, values: Sequence[Any]) -> None:
            if not watch.loss_scaled:
                watch.record.rates.append(float(rate))
            watch.note_step(numbers)
            watch.record.gradients.append(digest(values[:split]))
            self.stepped(watch, values[end:] or values[:split])

        def before_update(rate: Any, *values: Any) -> None:
            note(rate, values)
            self.see_session_values(numbers, values[split:end])
            self.executed.append(Executed(reads, watch, numbers, len(watch.record.gradients) - 1))

        def after_update(rate: Any, *values: Any) -> None:
            note(rate, values)
            watch.record.weights.append(digest(values[split:end]))
            self.changed(watch, len(watch.record.weights) - 1, values[split:end])
            slots = watch.variables()
            if len(slots) != watch.own:
                watch.own = len(slots)
                watch.slots.update(dict.fromkeys(self.see(slot) for slot in slots))

        def state() -> list[Any]:
            weights = [tf.convert_to_tensor(known_to_tensorflow(variable)) for _, variable in used]
            return [self.rate(optimizer), *gradients, *weights, *written_out]

        if not self.in_session_graph():
            result = take()
            self.observe(after_update, state())
            if self.stopping and tf.executing_eagerly() and not self.stopping.depth:
                self.stopping.boundary()
            return result
        with tf.control_dependencies([self.observe(before_update, state())]):
            result = take()
        slots = watch.variables()
        watch.slots.update(dict.fromkeys(self.see(slot) for slot in slots))
        reads.update(self.reads([*(variable for _, variable in used), *slots]))
        return result

    def hook_loss_scaling(self, owner: Any, name: str) -> None:
        """Count the steps that a `LossScaleOptimizer` takes or, on overflow, skips.

        `name` is the method that takes them; in a session's graph, only these steps count.
        """
        original = getattr(owner, name)

        @wraps(original)
        def take(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.in_session_graph():
                return original(optimizer, *args, **kwargs)
            watch = self.watch(optimizer.inner_optimizer)
            watch.loss_scaled = True
            result = original(optimizer, *args, **kwargs)
            self.observe(
                lambda rate: watch.record.rates.append(float(rate)), [self.rate(optimizer.inner_optimizer)]
            )
            return result

        setattr(owner, name, take)

    def hook_sessions(self) -> None:
        """Read the variables that steps and broadcasts have set, after every run of a session."""
        base: Any = importlib.import_module("tensorflow.python.client.session").BaseSession
        run, call = base._call_tf_sessionrun, base._Callable.__call__

        def observed_run(session: Any, *args: Any) -> Any:
            result = run(session, *args)
            self.read_executed(session)
            return result

        def observed_call(this: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(this, *args, **kwargs)
            self.read_executed(this._session)
            return result

        base._call_tf_sessionrun, base._Callable.__call__ = observed_run, observed_call

    def read_executed(self, session: Any) -> None:
        """Read the variables of the steps and broadcasts that this session has just executed."""
        executed, self.executed = self.executed, []
        for reads, watch, trained, step in executed:
            values = session.run(reads)
            self.session_values.update(values)
            if watch:
                weights = [values[number] for number in trained]
                watch.record.weights.append(digest(weights))
                self.changed(watch, step, weights)
        if self.stopping:
            self.stopping.waited()
            if executed:
                self.stopping.boundary()

    def hook_graph_gradients(self, owner: Any, name: str, target: str) -> None:
        """Observe the results of gradient functions with this name, in a session's graph.

        `target` is the name of the argument whose gradients are taken.
        """
        original = getattr(owner, name)
        signature = inspect.signature(original)

        @wraps(original)
        def gradients(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self.in_session_graph():
                return result
            return self.observed_copies(signature.bind(*args, **kwargs).arguments[target], result)

        setattr(owner, name, gradients)

    def hook_compute_gradients(self) -> None:
        """Observe the results of a TensorFlow 1 optimizer's `compute_gradients`, in a session's graph."""
        owner = self.tf.compat.v1.train.Optimizer
        original = owner.compute_gradients
        signature = inspect.signature(original)

        @wraps(original)
        def compute_gradients(*args: Any, **kwargs: Any) -> Any:
            pairs = original(*args, **kwargs)
            if not self.in_session_graph():
                return pairs
            loss = signature.bind(*args, **kwargs).arguments["loss"]
            copies = self.observed_copies(loss, [gradient for gradient, _ in pairs])
            return list(zip(copies, [variable for _, variable in pairs], strict=True))

        owner.compute_gradients = compute_gradients

    def observed_copies(self, target: Any, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of `target` as tensors that cannot be computed without being observed."""
        present = [gradient for gradient in gradients if gradient is not None]
        observations = [self.observe_local(target, present)]
        if self.data:
            observations.append(self.data.note(target))
        with self.tf.control_dependencies(observations):
            made = self.tf.nest.map_structure(self.tf.identity, present, expand_composites=True)
        self.note_taken(made)
        copies = iter(made)
        return [gradient if gradient is None else next(copies) for gradient in gradients]

    def note_taken(self, gradients: Any) -> None:
        """Remember these gradients, to recognize them when they are averaged."""
        for each in self.tf.nest.flatten(gradients):
            if each is not None:
                self.taken.of(each)

    def observe_local(self, target: Any, gradients: Any, taken: Taken | None = None) -> Any:
        """Observe gradients that Horovod has not touched, and their sources."""
        tf = self.tf
        parts = self.dense(target) if self.details else []

        def note(*values: Any) -> None:
            losses, own = values[: len(parts)], [*values[len(parts) :]]
            if self.details:
                own = [self.details.note_local(sum(losses) if losses else None, own)]
            self.record.local_gradients.append(digest(own))
            if taken:
                taken.be_due()

        losses = [tf.reduce_mean(tf.cast(part, tf.float32)) for part in parts]
        own = self.whole(gradients) if self.details else self.dense(gradients)
        return self.observe(note, [*losses, *own])

    def hook_shards(self) -> None:
        """Count the datasets that are sharded, and record their lengths."""
        owner = self.tf.data.Dataset
        original, slices = owner.shard, owner.from_tensor_slices

        @wraps(original)
        def shard(this: Any, num_shards: Any, *args: Any, **kwargs: Any) -> Any:
            self.record.shards += 1
            return original(this, num_shards, *args, **kwargs)

        @wraps(slices)
        def from_tensor_slices(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            self.note_length(tensors)
            return slices(tensors, *args, **kwargs)

        def hook_fit(model: Any) -> None:
            fit = model.fit

            @wraps(fit)
            def observed_fit(this: Any, x: Any = None, *args: Any, **kwargs: Any) -> Any:
                self.note_length(x)
                return fit(this, x, *args, **kwargs)

            model.fit = observed_fit

        owner.shard, owner.from_tensor_slices = shard, staticmethod(from_tensor_slices)
        for keras in self.kerases:
            hook_fit(keras.api.Model)

    def note_length(self, data: Any) -> None:
        """Record the number of elements of some data, if it is known."""
        with suppress(Exception):
            first = self.tf.nest.flatten(data)[0]
            if not hasattr(first, "element_spec"):
                self.record.lengths.append(len(first))

    def hook_tape(self) -> None:
        """Observe the results of `GradientTape.gradient`, except within a Jacobian's loop."""
        tape = self.tf.GradientTape
        gradient, jacobian, batch_jacobian = tape.gradient, tape.jacobian, tape.batch_jacobian

        def observed_gradient(this: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            result = gradient(this, target, sources, *args, **kwargs)
            if not self.in_jacobian and not self.in_session_graph():
                taken = self.note_sources(sources, result)
                operation = self.observe_local(target, result, taken)
                if taken:
                    taken.operation = operation
                self.note_taken(result)
                if self.data:
                    self.data.note(target)
            return result

        def unobserved(method: Any) -> Any:
            def call(this: Any, *args: Any, **kwargs: Any) -> Any:
                outer, self.in_jacobian = self.in_jacobian, True
                try:
                    return method(this, *args, **kwargs)
                finally:
                    self.in_jacobian = outer

            return call

        tape.gradient = observed_gradient
        tape.jacobian, tape.batch_jacobian = unobserved(jacobian), unobserved(batch_jacobian)
