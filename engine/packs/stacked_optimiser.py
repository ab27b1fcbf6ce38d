"""Optimisers of stacked weights; one updates all adjacent trainings with the same optimiser key.

The key covers the learning rates, the decays and the gradient norm. A training updates its weights by itself
if its rule looks at whole weights, or if more than the norm of its gradients is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import torch
from torch import Tensor

from ..optimisers.rules import SGD, Lion
from ..trial.training import Training

_BY_NUMBER = (torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, SGD, Lion)
"""Element-wise rules: each parameter depends only on its own gradient and state."""

_STEP = "step"
"""The optimiser state that belongs to a whole weight: its number of steps."""

Weights = Mapping[str, Tensor]


class StackedOptimisers:
    """The optimisers of stacked trainings, one for each optimiser key.

    `own` has each training's weights by name, as views of the stacked weights. `unstack` copies the state
    back to each training's optimiser.
    """

    def __init__(self, trainings: Sequence[Training], own: Sequence[Weights], stacked: Weights) -> None:
        self._stacked, self._parts = stacked, list[_AtOnce | _OneByOne]()
        self._sizes: list[int] = []
        for key, group in groupby(range(len(trainings)), _keys(trainings, own).__getitem__):
            places = list(group)
            part = slice(places[0], places[-1] + 1)
            make = _OneByOne if key is None else _AtOnce
            self._parts.append(make(trainings[part], own[part], stacked, part))
            self._sizes.append(len(places))

    def step(self) -> None:
        """Update all weights by their gradients and the trainings' current learning rates."""
        given = {name: weight.grad for name, weight in self._stacked.items()}
        found = {name: grad.split(self._sizes) for name, grad in given.items() if grad is not None}
        for place, part in enumerate(self._parts):
            part.step({name: grads[place] for name, grads in found.items()})

    def unstack(self) -> None:
        """Copy the state of each training's weights back to its own optimiser."""
        for part in self._parts:
            part.unstack()


def optimiser_key(training: Training) -> str:
    """Return a key of all settings of learning rates, decays and clipping, except parameter groups."""
    train = training.settings.train
    return repr((train.optimizer, train.schedule, train.epochs, train.steps_per_epoch, train.clip_norm))


class _AtOnce:
    """One optimiser for adjacent trainings with the same key, over their part of the stacked weights."""

    def __init__(
        self, trainings: Sequence[Training], own: Sequence[Weights], stacked: Weights, part: slice
    ) -> None:
        self._owned, self._own = [training.optimizer for training in trainings], own
        self._clip_norm = trainings[0].settings.train.clip_norm
        self._weights = {name: weight.detach()[part] for name, weight in stacked.items()}
        for each in self._owned:
            each.step()  # moves nothing without gradients; torch's schedulers ask for a step before theirs
        self._made = _made_as(self._owned[0], own[0], self._weights)
        for name, weight in self._weights.items():
            for place, (optimizer, each) in enumerate(zip(self._owned, own, strict=True)):
                for key, value in _state(optimizer, each[name]).items():
                    _put(self._made.state[weight], key, value, place, weight)

    def step(self, gradients: Weights) -> None:
        """Update the weights that have gradients."""
        for place, group in enumerate(self._made.param_groups):
            rates = {each.param_groups[place]["lr"] for each in self._owned}
            assert len(rates) == 1, "one plan gives one rate"
            group["lr"] = rates.pop()
        if self._clip_norm is not None:
            _clip(gradients.values(), self._clip_norm)
        for name, weight in self._weights.items():
            weight.grad = gradients.get(name)
        self._made.step()
        for weight in self._weights.values():
            weight.grad = None  # free the gradients before the next step makes others

    def unstack(self) -> None:
        """Copy each training's part of the state to its optimiser."""
        for name, weight in self._weights.items():
            for key, value in _state(self._made, weight).items():
                for place, (optimizer, own) in enumerate(zip(self._owned, self._own, strict=True)):
                    optimizer.state[own[name]][key] = _taken_from(key, value, place)


class _OneByOne:
    """Trainings that update their weights separately."""

    def __init__(
        self, trainings: Sequence[Training], own: Sequence[Weights], stacked: Weights, part: slice
    ) -> None:
        del stacked, part  # which its weights are views of
        self._trainings, self._own = trainings, own

    def step(self, gradients: Weights) -> None:
        """Update each training's weights by its part of the gradients."""
        for place, (training, own) in enumerate(zip(self._trainings, self._own, strict=True)):
            for name, weight in own.items():
                grad = gradients.get(name)
                weight.grad = None if grad is None else grad[place]
            training.move_weights()
            for weight in own.values():
                weight.grad = None

    def unstack(self) -> None:
        """Do nothing: each optimiser has its own state."""


def _is_by_number(training: Training) -> bool:
    """Return whether the rule is element-wise, and no learning rate depends on losses."""
    train = training.settings.train
    return (
        type(training.optimizer) in _BY_NUMBER
        and train.clip_tensor_norm is None
        and train.clip_step_norm is None
        and not train.measure
        and train.schedule.name not in ("recent", "plateau")
    )


def _keys(trainings: Sequence[Training], own: Sequence[Weights]) -> list[object]:
    """Return a key for each training, or None if it needs its own optimiser; equal keys share an optimiser.

    A key has the optimiser key, the parameter groups with their rates, and the kinds of state of each weight.
    """
    by_number = [place for place, training in enumerate(trainings) if _is_by_number(training)]
    kept = {
        place: [_state(trainings[place].optimizer, weight) for weight in own[place].values()]
        for place in by_number
    }
    steps = iter(_numbers([state[_STEP] for states in kept.values() for state in states if _STEP in state]))
    keys: list[object] = [None] * len(trainings)
    for place, states in kept.items():
        groups = [
            {**group, "params": len(group["params"])} for group in trainings[place].optimizer.param_groups
        ]
        counted = [(sorted(state), next(steps) if _STEP in state else None) for state in states]
        keys[place] = optimiser_key(trainings[place]), repr(groups), counted
    return keys


@torch.no_grad()
def _clip(gradients: Iterable[Tensor], norm: float) -> None:
    """Clip each training's gradients to a norm over all its weights, like `clip_grad_norm_`."""
    gradients = list(gradients)
    norms = [torch.linalg.vector_norm(each.reshape(len(each), -1), dim=1) for each in gradients]
    shares = (norm / (torch.linalg.vector_norm(torch.stack(norms), dim=0) + 1e-6)).clamp(max=1.0)
    for each in gradients:
        each.mul_(shares.view(-1, *[1] * (each.dim() - 1)))


def _numbers(counts: Sequence[Tensor]) -> list[float]:
    """Return the values of scalar tensors; waits for a GPU at most once."""
    found = dict[int, float]()
    for device in {count.device for count in counts}:
        here = [place for place, count in enumerate(counts) if count.device == device]
        found |= zip(here, torch.stack([counts[place] for place in here]).tolist(), strict=True)
    return [found[place] for place in range(len(counts))]


def _made_as(optimizer: torch.optim.Optimizer, own: Weights, stacked: Weights) -> torch.optim.Optimizer:
    names = {weight: name for name, weight in own.items()}
    groups = [
        {**group, "params": [stacked[names[weight]] for weight in group["params"]]}
        for group in optimizer.param_groups
    ]
    make = cast("Callable[..., torch.optim.Optimizer]", type(optimizer))
    given = {"betas": (0.0, 0.0), "weight_decay": 0.0} if isinstance(optimizer, Lion) else {}
    made = make(groups, lr=groups[0]["lr"], **given)  # each group has its own
    made.state.clear()  # Adagrad has it from the beginning
    return made


def _state(optimizer: torch.optim.Optimizer, weight: Tensor) -> dict[str, Any]:
    return optimizer.state.get(weight, {})


def _put(state: dict[str, Any], key: str, value: object, place: int, weight: Tensor) -> None:
    if key == _STEP or not isinstance(value, Tensor):
        state[key] = value.clone() if isinstance(value, Tensor) else value
        return
    if key not in state:
        state[key] = torch.zeros_like(weight)
    state[key][place].copy_(value)


def _taken_from(key: str, value: object, place: int) -> object:
    if isinstance(value, Tensor):
        return value.clone() if key == _STEP else value[place].clone()
    return value
