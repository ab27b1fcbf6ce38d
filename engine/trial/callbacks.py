"""Callbacks of plug-ins, which get a copy of the model and random numbers of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import nn

from ...errors import ActivememError
from ...plugins import plugin_errors
from ...studies.catalog.train_parts import CALLBACKS, Callback, TrainingMoment
from ..core.placement import own_states, own_states_on
from ..core.random_streams import derive_seed
from ..objectives.base import reported_number

Hook = Callable[[TrainingMoment], Mapping[str, float] | None]
"""What a callback does at a moment."""


class TrainingPosition(NamedTuple):
    """The place of a training: its epochs and steps so far, and the metrics of the last epoch."""

    epoch: int
    step: int
    metrics: Mapping[str, float]


class CallbackError(ActivememError):
    """A callback that reports what it has not registered, or changes how torch computes."""


class Callbacks:
    """The callbacks of one training, with their states; `started` once they have begun."""

    def __init__(self, callbacks: Sequence[Callback], seed: int, device: torch.device) -> None:
        self._callbacks, self._seed, self._device = callbacks, seed, device
        self._states: dict[str, dict[str, Any]] = {each.name: {} for each in callbacks}
        self.started = False

    def start(self, model: nn.Module) -> None:
        """Let each begin; one that is left midway has not."""
        states = deepcopy(self._states)
        for each in self._callbacks:
            self._call(each.name, each.on_start, model, TrainingPosition(0, 0, {}), states[each.name])
        self._states, self.started = states, True

    def after_epoch(
        self, model: nn.Module, epoch: int, step: int, metrics: Mapping[str, float], *, last: bool
    ) -> dict[str, float]:
        """Return what each reports after an epoch that has these metrics, and after the last one."""
        states, found = deepcopy(self._states), dict[str, float]()
        hooks: list[tuple[str, Hook]] = [(each.name, each.on_epoch_end) for each in self._callbacks]
        hooks += [(each.name, each.on_end) for each in self._callbacks if last]
        for name, hook in hooks:
            place = TrainingPosition(epoch, step, {**metrics, **found})
            found |= self._call(name, hook, model, place, states[name])
        self._states = states
        return found

    def state(self) -> dict[str, Any]:
        """Everything needed to resume."""
        return {"started": self.started, **own_states(self._states, self._device)}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, whose tensors are anywhere."""
        self.started, self._states = state["started"], own_states_on(state, self._device)

    def _call(
        self, name: str, hook: Hook, model: nn.Module, place: TrainingPosition, state: dict[str, Any]
    ) -> dict[str, float]:
        """Return what a callback reports; neither the model nor any generator is moved by it."""
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
            with plugin_errors("callback", name, CALLBACKS[name].settings):
                reported = hook(moment) or {}
        if changed := [what for what, value in _how_torch_computes().items() if value != before[what]]:
            raise CallbackError(f"{name}: expected to leave torch as it was, got another {changed[0]}")
        if unknown := sorted(reported.keys() - CALLBACKS[name].metrics):
            known = ", ".join(sorted(CALLBACKS[name].metrics)) or "none"
            raise CallbackError(f"{name}: expected metrics of those registered, {known}, got {unknown[0]}")
        with plugin_errors("callback", name, CALLBACKS[name].settings):  # what is no number
            return {metric: reported_number(value) for metric, value in reported.items()}


def _how_torch_computes() -> dict[str, object]:
    return {
        "default dtype": torch.get_default_dtype(),
        "number of threads": torch.get_num_threads(),
        "choice of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }
