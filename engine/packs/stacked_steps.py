"""Joint steps of trainings with stacked weights: one pass gives the gradients of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from ...blocks import Block
from ...blocks.core.dropout import RandomCall, draw_dropout, record_dropout, replay_dropout
from ...blocks.layers.window_attention import needs_step_hook
from ...errors import ActivememError
from ..core.models import float32_products
from ..objectives.base import Objective, Stackable, on_device
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


class _LossOf(nn.Module):
    """An objective's loss as a module. `functional_call` accepts only modules."""

    def __init__(self, model: nn.Module, objective: Objective[Any]) -> None:
        super().__init__()
        self.model, self._objective = model, _stackable(objective)

    def forward(self, *batch: Tensor) -> Tensor:
        return self._objective.loss_of(self.model, *batch)


def _stackable(objective: Objective[Any]) -> Stackable:
    assert isinstance(objective, Stackable), "the caller has checked it"
    return objective


class PackError(ActivememError):
    """Error for trainings that cannot take steps together; the message says why."""


class StackedSteps:
    """A context in which trainings of equal shapes take steps together.

    Losses and gradients are computed by `torch.vmap` over the stacked `weights` (trainings, …), which have
    the names of a model's parameters. Results equal those of separate trainings. Inside, each training's
    weights are views of the stacked ones; afterwards they are copied back. After an exception in the middle
    of a step the trainings cannot continue.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        first = trainings[0]
        self._trainings, self._device = trainings, first.device
        self._loss = _LossOf(first.model, first.objective)
        self._losses = torch.vmap(self._loss_of_one)
        self._draws = [_stackable(training.objective).draw for training in trainings]
        self._noises = [Generator(first.device) for _ in trainings]  # of the trainings' dropout
        self.weights = {
            name: weight.new_empty((len(trainings), *weight.shape)).requires_grad_(weight.requires_grad)
            for name, weight in first.model.named_parameters()
        }
        # torch's `tie_weights` does not restore weights of a module that several blocks share
        own = {weight: name for name, weight in first.model.named_parameters()}
        self._names = {
            f"{path}.{name}": own[weight]
            for path, module in self._loss.named_modules()
            for name, weight in module.named_parameters(recurse=False)
        }
        self._calls: tuple[tuple[torch.Size, ...], list[RandomCall]] | None = None
        self._own: list[dict[str, nn.Parameter]] = []
        self._homes: list[dict[str, Tensor]] = []  # the weights' own memory
        self._joint: JointAdam | None = None

    def __enter__(self) -> Self:
        try:
            self._loss.train()
            self._own = [dict(training.model.named_parameters()) for training in self._trainings]
            self._homes = [{name: weight.data for name, weight in each.items()} for each in self._own]
            for training, noise in zip(self._trainings, self._noises, strict=True):
                training.is_stacked = True
                noise.set_state(training.noise.state)
            for name, stacked in self.weights.items():
                for place, (own, homes) in enumerate(zip(self._own, self._homes, strict=True)):
                    own[name].grad = None
                    own[name].data = stacked.detach()[place].copy_(homes[name])
            self._joint = JointAdam.build(self._trainings, self._own, self.weights)
        except BaseException:
            self._unstack_weights()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._unstack_weights()
        if self._joint is not None:
            self._joint.give_back()
        for training, noise in zip(self._trainings, self._noises, strict=True):
            training.noise.state = noise.get_state()

    def _unstack_weights(self) -> None:
        moved = list[tuple[Tensor, Tensor]]()
        for each, homes in zip(self._own, self._homes, strict=True):
            for name, weight in each.items():
                moved.append((homes[name], weight.data))
                weight.data, weight.grad = homes[name], None
        for training in self._trainings:
            training.is_stacked = False
        for home, stacked in moved:
            home.copy_(stacked)

    def step(self) -> None:
        """Take one step of each training. Raise PackError if their batches differ in shape."""
        for training in self._trainings:
            training.begin_step()
        with float32_products(self._trainings[0].settings.train.precision):
            losses = self.add_gradients(self._draw())
            if self._joint is None or not self._joint.step():
                self._move_one_by_one()
        for training, loss in zip(self._trainings, losses.unbind(), strict=True):
            training.end_step(loss, packed=True)
        for stacked in self.weights.values():
            stacked.grad = None

    def add_gradients(self, batch: Sequence[Tensor]) -> Tensor:
        """Compute the gradients for a stacked batch, and return the losses (trainings,)."""
        shape = tuple(rows.shape for rows in batch)
        if self._calls is None or self._calls[0] != shape:
            with torch.no_grad(), record_dropout() as calls:
                self._loss(*(rows[0] for rows in batch))
            self._calls = shape, calls
        # torch.vmap cannot draw from one generator for each training, so all factors are drawn before
        factors = draw_dropout(self._calls[1], self._noises, self._device)
        losses = self._losses(self.weights, factors, *batch)
        # each loss depends on its own training's weights only, so the sum gives each its own gradient
        losses.sum().backward()
        return losses.detach()

    def _loss_of_one(self, weights: dict[str, Tensor], factors: list[Tensor], *batch: Tensor) -> Tensor:
        with replay_dropout(factors):
            named = {place: weights[name] for place, name in self._names.items()}
            return functional_call(self._loss, named, batch, tie_weights=False)

    def _move_one_by_one(self) -> None:
        if self._joint is not None:  # the learning rates differ from now on
            self._joint.give_back()
            self._joint = None
        for place, (training, own) in enumerate(zip(self._trainings, self._own, strict=True)):
            for name, weight in own.items():
                gradient = self.weights[name].grad
                weight.grad = None if gradient is None else gradient[place]
            training.trained.move()
            for weight in own.values():
                weight.grad = None

    def _draw(self) -> list[Tensor]:
        drawn = list(zip(*(draw() for draw in self._draws), strict=True))
        if any(rows.shape != alike[0].shape for alike in drawn for rows in alike):
            raise PackError("expected batches of one shape")
        return [on_device(torch.stack(alike), self._device) for alike in drawn]


def stacking_fault(model: nn.Module) -> str | None:
    """Return why the training of a model cannot join a pack; None if it can."""
    if next(model.buffers(), None) is not None:
        return "its model has buffers"
    if any(isinstance(each, Block) and not each.can_be_stacked for each in model.modules()):
        return "it uses kernels of another package, which cannot be stacked"
    looking = next(filter(needs_step_hook, model.modules()), None)
    return None if looking is None else f"{type(looking).__name__} records its weights"
