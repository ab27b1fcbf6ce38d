"""Loss terms and callbacks of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from fnmatch import fnmatchcase
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ActivememError
from ...plugins import plugin_errors
from ...studies.catalog.train_parts import (
    CALLBACKS,
    LOSS_TERMS,
    Callback,
    LossTerm,
    TrainingMoment,
    TrainingStep,
)
from ...studies.schema.settings import TrialSettings
from ..core.models import meta_model
from ..core.process import derive_seed
from ..objectives.base import Answers, Objective, reported_number


def map_tensors(state: Any, change: Callable[[Tensor], Tensor]) -> Any:  # noqa: ANN401 -- whatever a state is made of
    """Copy nested containers, with each tensor changed."""
    if isinstance(state, Tensor):
        return change(state)
    if isinstance(state, dict):
        return {name: map_tensors(each, change) for name, each in cast("dict[Any, Any]", state).items()}
    # not isinstance, because a named tuple cannot be built from one iterable
    if type(state) in (list, tuple):
        return type(state)(map_tensors(each, change) for each in cast("list[Any]", state))
    return state


def to_device(state: Any, device: torch.device) -> Any:  # noqa: ANN401 -- as above
    """Copy nested containers, with their tensors moved to a device."""
    return map_tensors(state, lambda each: each.to(device))


def check_state(state: Mapping[str, Any]) -> None:
    """Raise TypeError if a part's state has anything but tensors and plain values, as for a checkpoint."""
    for name, value in state.items():
        file = BytesIO()
        try:
            # without the values of tensors, which are fine and may be many
            torch.save(map_tensors(value, lambda _: torch.empty(0)), file)
            file.seek(0)
            torch.load(file, weights_only=True)  # as a checkpoint is read
        except Exception as error:
            got = f"{type(value).__name__} in state[{name!r}]"
            if isinstance(value, np.generic):
                got = f"{got}; use {type(value.item()).__name__}(…)"
            raise TypeError(f"expected tensors and plain values in the state, got {got}") from error


Hook = Callable[[TrainingMoment], Mapping[str, float] | None]
"""The function of a callback for one moment of the training."""


class TrainingPosition(NamedTuple):
    """The progress of a training. It has the epochs and steps so far, and the metrics of the last epoch."""

    epoch: int
    step: int
    metrics: Mapping[str, float]


class CallbackError(ActivememError):
    """Error for a callback that reports an unregistered metric, or that changes torch's global settings."""


class Callbacks:
    """The callbacks of one training, with their states, and whether they have been `started`."""

    def __init__(self, callbacks: Sequence[Callback], seed: int, device: torch.device) -> None:
        self._callbacks, self._seed, self._device = callbacks, seed, device
        self._states: dict[str, dict[str, Any]] = {each.name: {} for each in callbacks}
        self.started = False

    def start(self, model: nn.Module) -> None:
        """Start each callback. If a start is interrupted, all callbacks start again later."""
        states = self._copy_states()
        for each in self._callbacks:
            self._call(each.name, each.on_start, model, TrainingPosition(0, 0, {}), states[each.name])
        self._states, self.started = states, True

    def after_epoch(
        self, model: nn.Module, epoch: int, step: int, metrics: Mapping[str, float], *, last: bool
    ) -> dict[str, float]:
        """Call `on_epoch_end` of each callback and, after the last epoch, `on_end`; return the metrics."""
        states, found = self._copy_states(), dict[str, float]()
        hooks: list[tuple[str, Hook]] = [(each.name, each.on_epoch_end) for each in self._callbacks]
        hooks += [(each.name, each.on_end) for each in self._callbacks if last]
        for name, hook in hooks:
            place = TrainingPosition(epoch, step, {**metrics, **found})
            found |= self._call(name, hook, model, place, states[name])
        self._states = states
        return found

    def check_states(self) -> None:
        """Raise PluginError for a state that a checkpoint cannot hold."""
        for name, state in self._states.items():
            with _blamed(name):
                check_state(state)

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume."""
        return {"started": self.started, "states": self._states}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, whose tensors may be on any device."""
        self.started, self._states = state["started"], to_device(state["states"], self._device)

    def _copy_states(self) -> dict[str, dict[str, Any]]:
        found = dict[str, dict[str, Any]]()
        for name, state in self._states.items():
            with _blamed(name):  # not everything can be copied
                found[name] = deepcopy(state)
        return found

    def _call(
        self, name: str, hook: Hook, model: nn.Module, place: TrainingPosition, state: dict[str, Any]
    ) -> dict[str, float]:
        """Call one function of a callback; return the metrics.

        The function gets a copy of the model. Random generators are restored afterwards. Raise PluginError if
        the function raises an exception, returns something else than metrics, or in the first epoch leaves a
        state that a checkpoint cannot hold. Raise CallbackError if a metric is not registered, or if the
        function changes torch's global settings.
        """
        before = _how_torch_computes()
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.manual_seed(derive_seed(self._seed, f"callback {name} {hook.__name__} {place.epoch}"))
            moment = TrainingMoment(
                model=deepcopy(model).eval(),
                device=self._device,
                **place._asdict(),
                state=state,
            )
            with _blamed(name):
                found: object = hook(moment)
                if not (found is None or isinstance(found, Mapping)):
                    got = type(found).__name__
                    raise TypeError(f"{hook.__name__}: expected None or numbers by their names, got {got}")
                if place.epoch <= 1:  # later only in checkpoints: large states take long
                    check_state(state)
        reported = cast("Mapping[str, float]", found or {})
        if changed := [what for what, value in _how_torch_computes().items() if value != before[what]]:
            raise CallbackError(f"{name}: expected torch's {changed[0]} unchanged, got a change")
        if unknown := sorted(reported.keys() - CALLBACKS[name].metrics):
            known = ", ".join(sorted(CALLBACKS[name].metrics)) or "none"
            raise CallbackError(f"{name}: expected registered metrics, {known}, got {unknown[0]}")
        # for a value that is not a number
        with _blamed(name):
            return {metric: reported_number(value) for metric, value in reported.items()}


def _blamed(callback: str) -> AbstractContextManager[None]:
    return plugin_errors(CALLBACKS.kind, callback, CALLBACKS[callback].settings)


def _how_torch_computes() -> dict[str, object]:
    return {
        "default dtype": torch.get_default_dtype(),
        "number of threads": torch.get_num_threads(),
        "choice of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


class LossTermError(ActivememError):
    """Error for a loss term with a missing module or an invalid value. A value must be a single number."""


class LossTerms:
    """The loss terms of one training, with their states.

    Their values are summed over an epoch. Raise LossTermError if a module pattern matches nothing in the
    model.
    """

    def __init__(self, terms: Sequence[LossTerm], model: nn.Module, device: torch.device) -> None:
        self._terms, self._model, self._device = terms, model, device
        names = [name for name, _ in model.named_modules() if name]
        self._watched = {term.name: watched_modules(term, names) for term in terms}
        self._states: dict[str, dict[str, Any]] = {term.name: {} for term in terms}
        self._scored: Answers | None = None
        self._activations: list[tuple[str, Tensor]] = []
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Reset the sums before the first step of an epoch."""
        self._sums = {term.name: torch.zeros((), device=self._device) for term in self._terms}

    @contextmanager
    def watching(self, objective: Objective[Any]) -> Iterator[None]:
        """Within this context, record the tensors that the loss terms need.

        These are the loss's inputs, outputs and targets, and the outputs of the modules that the terms watch.
        """
        self._scored, self._activations = None, []
        objective.observer = self._take
        names = {name for names in self._watched.values() for name in names}
        hooks = [
            module.register_forward_hook(partial(self._keep, name))
            for name, module in self._model.named_modules()
            if name in names
        ]
        try:
            yield
        finally:
            objective.observer = None
            for hook in hooks:
                hook.remove()

    def after_part(self, step: int, parts: int) -> Tensor:
        """Return the weighted sum of the loss terms for the micro-batch just computed, one of `parts`."""
        assert self._scored is not None, "the objective reports its outputs before the loss terms"
        total = torch.zeros((), device=self._device)
        for term in self._terms:
            value = self._compute(term, self._scored, step)
            self._sums[term.name] = self._sums[term.name] + value.detach() / parts
            total = total + term.weight * value
        self._scored, self._activations = None, []
        return total

    def metrics(self, steps: int) -> dict[str, float]:
        """Return the mean of each term over the steps of an epoch."""
        return {name: float(total) / steps for name, total in self._sums.items()}

    def state(self) -> dict[str, Any]:
        """Return the sums and the terms' states, for a checkpoint.

        Raise PluginError for a state that a checkpoint cannot hold.
        """
        for term in self._terms:
            with plugin_errors(LOSS_TERMS.kind, term.name, type(term)):
                check_state(self._states[term.name])
        return {"sums": self._sums, "states": self._states}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, whose tensors may be on any device."""
        self._sums = to_device(state["sums"], self._device)
        self._states = to_device(state["states"], self._device)

    def _compute(self, term: LossTerm, scored: Answers, step: int) -> Tensor:
        watched = self._watched[term.name]
        activations = [each for each in self._activations if each[0] in watched]
        if missing := [name for name in watched if all(name != each for each, _ in activations)]:
            message = f"expected outputs of its watched modules, got none of {', '.join(missing)}"
            raise LossTermError(f"{term.name}: {message}")
        seen = {**scored._asdict(), **{f"the output of {name}": output for name, output in activations}}
        versions = {what: tensor._version for what, tensor in seen.items()}  # torch counts changes in place
        with plugin_errors(LOSS_TERMS.kind, term.name, type(term)):
            value: object = term.compute(
                TrainingStep(
                    model=self._model,
                    **scored._asdict(),
                    activations=activations,
                    step=step,
                    state=self._states[term.name],
                )
            )
        if not isinstance(value, Tensor) or value.dim():
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise LossTermError(f"{term.name}: expected one number as a tensor, got {got}")
        # without this, torch's error in the backward pass would not name the term
        if changed := [what for what, tensor in seen.items() if tensor._version != versions[what]]:
            message = f"changes {changed[0]} in place: change a copy, as by clone()"
            raise LossTermError(f"{term.name}: {message}")
        return value.float()

    def _take(self, inputs: Tensor, outputs: Tensor, targets: Tensor) -> None:
        self._scored = Answers(inputs, outputs, targets)

    def _keep(self, name: str, _module: nn.Module, _inputs: object, output: object) -> None:
        # passes without gradients, such as those that make guesses, are not part of the loss
        if isinstance(output, Tensor) and torch.is_grad_enabled():
            self._activations.append((name, output))


def check_watched(all_settings: Iterable[TrialSettings]) -> None:
    """Raise LossTermError with all loss terms that watch modules which a model lacks."""
    distinct = {
        (settings.model, settings.task.interface, settings.train.loss_terms): settings
        for settings in all_settings
        if any(term.watches for term in settings.train.loss_terms)
    }
    faults: list[str] = []
    for settings in distinct.values():
        names = [name for name, _ in meta_model(settings).named_modules() if name]
        for term in settings.train.loss_terms:
            try:
                watched_modules(term, names)
            except LossTermError as error:
                faults.append(f"  {settings.model.recipe}: {error}")
    if faults:
        raise LossTermError(
            "\n".join(["these models do not have the modules that loss terms watch", *faults])
        )


def watched_modules(term: LossTerm, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the modules that a term watches. Raise LossTermError if a pattern matches none."""
    for pattern in term.watches:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise LossTermError(
                f"{term.name}: expected a pattern that matches modules of the model, got '{pattern}'"
            )
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in term.watches))
