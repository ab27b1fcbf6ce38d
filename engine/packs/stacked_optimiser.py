"""One optimiser for the stacked weights of trainings whose optimisers have one rule and the same settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from ...blocks.stacked import part_of, stack_weights
from ..optimisers.lion import Lion
from ..trial.training import Training

_BY_NUMBER = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad, Lion)
"""The rules that move each number by its own gradient and state alone."""

_STEP = "step"
"""The one entry of an optimiser's state that is of a weight as a whole: how many steps it has taken."""

Weights = Mapping[str, Tensor]


class StackedOptimiser:
    """The optimiser of stacked weights; what it keeps of each training is handed back in the end."""

    def __init__(
        self, owned: Sequence[torch.optim.Optimizer], own: Sequence[Weights], stacked: Weights
    ) -> None:
        """Of the optimisers and the weights of each training, and the stacked weights by the same names."""
        self._owned, self._own, self._stacked = owned, own, stacked
        names = {weight: name for name, weight in own[0].items()}
        groups = [
            {**group, "params": [stacked[names[weight]] for weight in group["params"]]}
            for group in owned[0].param_groups
        ]
        make = cast("Callable[..., torch.optim.Optimizer]", type(owned[0]))
        given = {"betas": (0.0, 0.0), "weight_decay": 0.0} if isinstance(owned[0], Lion) else {}
        self._made = make(groups, lr=groups[0]["lr"], **given)  # each group has its own
        self._made.state.clear()  # Adagrad has it from the beginning
        for name, weight in stacked.items():
            states = [_state(each, of[name]) for each, of in zip(owned, own, strict=True)]
            if states[0]:
                self._made.state[weight] = {
                    key: _join(key, [state[key] for state in states]) for key in states[0]
                }

    def step(self) -> None:
        """Move all weights, by the rates that the trainings have now."""
        for place, group in enumerate(self._made.param_groups):
            rates = {each.param_groups[place]["lr"] for each in self._owned}
            assert len(rates) == 1, "one schedule gives one rate"
            group["lr"] = rates.pop()
        self._made.step()
        for each in self._owned:
            vars(each)["_opt_called"] = True  # torch's schedulers look whether it has taken a step

    def unstack(self) -> None:
        """Give each training's optimiser its part of the state."""
        for name, weight in self._stacked.items():
            for key, value in _state(self._made, weight).items():
                for place, (optimizer, own) in enumerate(zip(self._owned, self._own, strict=True)):
                    optimizer.state[own[name]][key] = _part(key, value, place, own[name])


def stack_optimisers(
    trainings: Sequence[Training], own: Sequence[Weights], stacked: Weights
) -> StackedOptimiser | None:
    """One optimiser in place of those of trainings; None where each has to move its weights itself."""
    first, owned = trainings[0], [each.optimizer for each in trainings]
    if type(first.optimizer) not in _BY_NUMBER:
        return None
    if any(_plan(each) != _plan(first) or not _moves_plainly(each) for each in trainings):
        return None
    return None if _steps_differ(owned, own, stacked) else StackedOptimiser(owned, own, stacked)


def _steps_differ(owned: Sequence[torch.optim.Optimizer], own: Sequence[Weights], stacked: Weights) -> bool:
    """Whether optimisers have taken other numbers of steps; a GPU that has them is waited for once."""
    both = list(zip(owned, own, strict=True))
    taken = ([_state(of, of_own[name]).get(_STEP) for of, of_own in both] for name in stacked)
    found = ([step for step in each if isinstance(step, Tensor)] for each in taken)
    counts = [torch.stack(each) for each in found if each]
    if not counts:
        return False
    rows = torch.stack(counts)  # (weights, optimisers)
    return bool((rows != rows[:, :1]).any())


def _plan(training: Training) -> tuple[object, ...]:
    """All that a training's rates and decays depend on, and what it has kept so far."""
    train = training.settings.train
    groups = [{**group, "params": len(group["params"])} for group in training.optimizer.param_groups]
    kept = [sorted(state) for state in training.optimizer.state.values()]
    return train.optimizer, train.schedule, train.epochs, train.steps_per_epoch, groups, kept


def _moves_plainly(training: Training) -> bool:
    """Whether nothing but the optimiser looks at gradients, and its rate does not depend on the losses."""
    train = training.settings.train
    clips = (train.clip_norm, train.clip_tensor_norm, train.clip_step_norm)
    return (
        clips == (None, None, None) and not train.measure and train.schedule.name not in ("recent", "plateau")
    )


def _state(optimizer: torch.optim.Optimizer, weight: Tensor) -> dict[str, Any]:
    """What an optimiser keeps of a weight; nothing before its first step."""
    return optimizer.state.get(weight, {})


def _join(key: str, values: Sequence[object]) -> object:
    """The stacked form of what optimisers keep."""
    if key != _STEP and isinstance(values[0], Tensor):
        return stack_weights([value for value in values if isinstance(value, Tensor)])
    return values[0].clone() if isinstance(values[0], Tensor) else values[0]


def _part(key: str, value: object, place: int, own: Tensor) -> object:
    """The part of that of one training, for a weight of its own."""
    if isinstance(value, Tensor):
        return value.clone() if key == _STEP else part_of(value, place, own).clone()
    return value
