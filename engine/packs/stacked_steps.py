"""Steps of several trainings at once: stacked weights, one forward and backward pass, one optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import TracebackType
from typing import Any, Self, cast

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from ...blocks.core.dropout import RandomCall, draw_dropout, record_dropout, replay_dropout
from ...blocks.layers.window_attention import looks_at_weights
from ...errors import ActivememError
from ..core.models import float32_products
from ..core.process import TimeLimitPassed
from ..objectives.base import Objective, Stackable, on_device
from ..optimisers.build import SGD, Lion
from ..trial.training import Training

_BY_NUMBER = (torch.optim.Adam, torch.optim.Adagrad, SGD, Lion)
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
            assert len(rates) == 1, "the learning rates of a pack are equal"
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


class StackedPasses:
    """Losses and gradients of stacked weights by `torch.vmap`, equal to those of separate trainings.

    `weights` (trainings, …) have the names of a model's parameters; `noises` are the dropout generators, one
    for each training.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        first, models = trainings[0], [training.model for training in trainings]
        self._device, self._loss = first.device, _LossOf(first.model, first.objective)
        self._losses = torch.vmap(self._loss_of_one)
        self.noises = [Generator(first.device) for _ in trainings]
        self.weights = {
            name: weight.new_empty((len(models), *weight.shape)).requires_grad_(weight.requires_grad)
            for name, weight in first.model.named_parameters()
        }
        self._calls: tuple[tuple[torch.Size, ...], list[RandomCall]] | None = None

    def begin(self, trainings: Sequence[Training]) -> None:
        """Use the random state of these trainings, as many as before; the caller sets their weights."""
        self._loss.train()
        for noise, training in zip(self.noises, trainings, strict=True):
            noise.set_state(training.noise.state)

    def take(self, batch: Sequence[Tensor]) -> Tensor:
        """Compute the gradients of the next stacked batches; return the losses (trainings,)."""
        factors = draw_dropout(self._random_calls(batch), self.noises, self._device)
        losses = self._losses(self.weights, factors, *batch)
        losses.sum().backward()
        return losses.detach()

    def _loss_of_one(self, weights: dict[str, Tensor], factors: list[Tensor], *batch: Tensor) -> Tensor:
        with replay_dropout(factors):
            named = {f"model.{name}": weight for name, weight in weights.items()}
            return functional_call(self._loss, named, batch)

    def _random_calls(self, batch: Sequence[Tensor]) -> list[RandomCall]:
        shape = tuple(rows.shape for rows in batch)
        if self._calls is None or self._calls[0] != shape:
            with torch.no_grad(), record_dropout() as calls:
                self._loss(*(rows[0] for rows in batch))
            self._calls = shape, calls
        return self._calls[1]


class _LossOf(nn.Module):
    """A model's loss as a module, so that `functional_call` can substitute weights."""

    def __init__(self, model: nn.Module, objective: Objective[Any]) -> None:
        super().__init__()
        self.model, self._objective = model, objective

    def forward(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch."""
        assert isinstance(self._objective, Stackable), "the caller has checked it"
        return self._objective.loss_of(self.model, *batch)


class PackError(ActivememError):
    """Trainings that cannot take steps together; the message says why."""


class StackedSteps:
    """A context in which trainings of one form take steps together.

    Results equal those of separate trainings. Inside, each training's weights are views of the stacked
    `weights`; afterwards they are copied back. After an exception in the middle of a step the trainings
    cannot continue.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        self._trainings = trainings
        self._objectives = [_stackable(training) for training in trainings]
        self._passes = StackedPasses(trainings)
        self.weights = self._passes.weights
        self._own: list[dict[str, nn.Parameter]] = []
        self._homes: list[dict[str, Tensor]] = []  # where the weights are else
        self._optimisers: StackedOptimisers | None = None

    def __enter__(self) -> Self:
        try:
            self._stack()
        except BaseException:
            self._go_home()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not isinstance(error, Exception | TimeLimitPassed):  # behind which nobody goes on from here
                assert self._optimisers is not None, "the caller has entered the context"
                self._optimisers.unstack()
        finally:
            self._go_home()
        for training, noise in zip(self._trainings, self._passes.noises, strict=True):
            training.noise.state = noise.get_state()

    def _stack(self) -> None:
        for training in self._trainings:
            training.is_stacked = True
        self._passes.begin(self._trainings)
        self._own = own = [dict(training.model.named_parameters()) for training in self._trainings]
        self._homes = [{name: weight.data for name, weight in each.items()} for each in own]
        for name, stacked in self.weights.items():
            for place, (each, homes) in enumerate(zip(own, self._homes, strict=True)):
                each[name].grad = None
                each[name].data = stacked.detach()[place].copy_(homes[name])
        self._optimisers = StackedOptimisers(self._trainings, own, self.weights)

    def _go_home(self) -> None:
        """Give all weights their own memory again, then copy their current values into it."""
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
        """Take one step of each training; raise PackError if their batches differ in shape."""
        for training in self._trainings:
            training.begin_step()
        assert self._optimisers is not None, "the caller has entered the context"
        with float32_products(self._trainings[0].settings.train.precision):
            losses = self._passes.take(self._draw())
            self._optimisers.step()
        for training, loss in zip(self._trainings, losses.unbind(), strict=True):
            training.end_step(loss, packed=True)
        for stacked in self.weights.values():
            stacked.grad = None

    def _draw(self) -> list[Tensor]:
        batches = [objective.draw() for objective in self._objectives]
        drawn = list(zip(*batches, strict=True))
        if any(rows.shape != alike[0].shape for alike in drawn for rows in alike):
            raise PackError("expected batches of one shape")
        return [on_device(torch.stack(alike), self._trainings[0].device) for alike in drawn]


def _stackable(training: Training) -> Stackable:
    """Return a training's objective as a Stackable; an isinstance check would be slow."""
    assert isinstance(training.objective, Stackable), "the caller has checked it"
    return training.objective


def stacking_fault(model: nn.Module) -> str | None:
    """Return why the training of a model cannot join a pack; None if it can."""
    if next(model.buffers(), None) is not None:
        return "its model has buffers"
    looking = next(filter(looks_at_weights, model.modules()), None)
    return None if looking is None else f"{type(looking).__name__} records its weights"
