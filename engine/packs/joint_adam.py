"""One step of Adam for several trainings at once, over their stacked weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from ..optimisers.build import Adam
from ..trial.training import Training

_MEANS = "exp_avg", "exp_avg_sq"


class JointAdam:
    """Adam over stacked weights, which holds the state of the trainings' own optimisers until `give_back`.

    `own` has the weights of each training by name, and `stacked` the same weights of all trainings.
    """

    def __init__(
        self,
        trainings: Sequence[Training],
        own: Sequence[Mapping[str, nn.Parameter]],
        stacked: Mapping[str, Tensor],
    ) -> None:
        self._optimizers = [training.optimizer for training in trainings]
        self._weights = [(weight, [each[name] for each in own]) for name, weight in stacked.items()]
        stacked_of = {members[0]: weight for weight, members in self._weights}
        self._adam = Adam(
            {**group, "params": [stacked_of[weight] for weight in group["params"]]}
            for group in self._optimizers[0].param_groups
        )

    @classmethod
    def build(
        cls,
        trainings: Sequence[Training],
        own: Sequence[Mapping[str, nn.Parameter]],
        stacked: Mapping[str, Tensor],
    ) -> Self | None:
        """Take over the optimisers of trainings; return None if these cannot take joint steps.

        They can if all use Adam with equal settings, have taken equally many steps, and clip nothing.
        """
        if not all(training.trained.only_adam for training in trainings):
            return None
        rules = [_rule(*each) for each in zip(trainings, own, strict=True)]
        if any(rule != rules[0] for rule in rules):
            return None
        joint = cls(trainings, own, stacked)
        if not joint._have_equal_steps():
            return None
        joint._take_over()
        return joint

    def step(self) -> bool:
        """Update all weights from their gradients.

        Return False, without an update, if the learning rates of the trainings differ.
        """
        rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in self._optimizers]
        if any(each != rates[0] for each in rates):
            return False
        for group, rate in zip(self._adam.param_groups, rates[0], strict=True):
            group["lr"] = rate
        self._adam.take_step()
        return True

    def give_back(self) -> None:
        """Move the state back to the trainings' own optimisers."""
        for weight, members in self._weights:
            if not (state := self._adam.state.pop(weight, None)):
                continue
            for place, (optimizer, member) in enumerate(zip(self._optimizers, members, strict=True)):
                means = {name: state[name][place].clone() for name in _MEANS}
                optimizer.state[member] = {"step": state["step"].clone(), **means}

    def _have_equal_steps(self) -> bool:
        counts = list[Tensor]()
        for _, members in self._weights:
            found = [state["step"] for state in self._states(members) if state]
            if found and len(found) < len(members):
                return False
            counts += [torch.stack(found)] if found else []
        if not counts:
            return True
        steps = torch.stack(counts)  # (weights, trainings), to wait for a GPU only once
        return bool((steps == steps[:, :1]).all())

    def _take_over(self) -> None:
        for weight, members in self._weights:
            states = self._states(members)
            if all(states):
                means = {name: torch.stack([state[name] for state in states]) for name in _MEANS}
                self._adam.state[weight] = {"step": states[0]["step"], **means}
                for optimizer, member in zip(self._optimizers, members, strict=True):
                    del optimizer.state[member]

    def _states(self, members: Sequence[nn.Parameter]) -> list[dict[str, Tensor]]:
        return [each.state.get(member, {}) for each, member in zip(self._optimizers, members, strict=True)]


def _rule(training: Training, own: Mapping[str, nn.Parameter]) -> list[dict[str, Any]]:
    names = {weight: name for name, weight in own.items()}
    groups = training.optimizer.param_groups
    return [{**group, "params": [names[weight] for weight in group["params"]]} for group in groups]
