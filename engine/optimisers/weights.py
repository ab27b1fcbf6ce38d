"""The weights of a training: the model, its optimiser with clipping, and the weight average."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ...blocks import Model
from ...blocks.core.initialisation import find_weights
from ...blocks.models.seq2seq_model import TransductionModel
from ...studies.catalog.tasks import ModelInterface
from ...studies.schema.settings import TrialSettings
from ...studies.schema.training import TrainSettings
from ..core.models import AnyModel, build_model
from ..core.random_streams import derive_seed
from .build import build_optimizer, change_settings, keep_steps_on_cpu
from .compiled_body import check_compile, compile_body


def move_weights(optimizer: torch.optim.Optimizer, model: nn.Module, train: TrainSettings) -> None:
    """Take an optimiser step, with gradients or steps clipped as [train] says."""
    if train.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
    if train.clip_tensor_norm is not None:
        clip_gradients_per_map(model, train.clip_tensor_norm)
    if train.clip_step_norm is None:
        optimizer.step()
    else:
        take_clipped_step(optimizer, model, train.clip_step_norm)


@torch.no_grad()
def clip_gradients_per_map(model: nn.Module, norm: float) -> None:
    """Clip the gradient of each matrix to this norm (Sukhbaatar et al.

    2019, section 5.1). Matrices that share a weight, such as queries, keys and values, are clipped one by
    one.
    """
    for _, gradient in _maps(model):
        gradient.mul_((norm / (gradient.norm() + 1e-6)).clamp(max=1.0))


@torch.no_grad()
def take_clipped_step(optimizer: torch.optim.Optimizer, model: nn.Module, norm: float) -> None:
    """Take a step, and scale each matrix's step by norm / ‖g‖ if its gradient g has a norm above `norm`.

    The optimiser sees the unscaled gradients (the program of Sukhbaatar et al. 2019). Matrices that share a
    weight are scaled one by one.
    """
    starts = [  # a map, its value before the step, the share of the step
        (part, part.clone(), (norm / (gradient.norm() + 1e-10)).clamp(max=1.0))
        for part, gradient in _maps(model)
    ]
    optimizer.step()
    for part, start, share in starts:
        part.copy_(start.lerp_(part, share))


def _maps(model: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each matrix of a model that has a gradient, with its gradient; one weight may hold several."""
    for weight, found in find_weights(model).items():
        if weight.grad is not None:
            yield from zip(found.split_maps(weight), found.split_maps(weight.grad), strict=True)


class WeightAverage:
    """Exponential average of a model's weights with factor `decay`, from the initial weights on."""

    def __init__(self, model: Model | TransductionModel, decay: float) -> None:
        self._model, self._decay = model, decay
        self._average = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        self.settled = True  # False while the model has the average, and where a swap was left midway

    @torch.no_grad()
    def after_step(self) -> None:
        """Update the average after a step."""
        for name, weight in self._model.named_parameters():
            self._average[name].lerp_(weight, 1.0 - self._decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Swap the average into the model within a context.

        The values are swapped weight by weight, because a copy of all weights would double the memory.
        """
        self.settled = False
        self._swap()
        try:
            yield
        finally:
            self._swap()
            self.settled = True

    def state(self) -> dict[str, Tensor]:
        """Return the average by weight name."""
        return self._average

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Resume from a state."""
        for name, average in self._average.items():
            average.copy_(state[name])
        self.settled = True

    @torch.no_grad()
    def _swap(self) -> None:
        for name, weight in self._model.named_parameters():
            own = weight.detach().clone()
            weight.copy_(self._average[name])
            self._average[name].copy_(own)
        self._model.after_optimiser_step()


class Weights:
    """A model with its optimiser and the average of its weights."""

    def __init__(self, model: AnyModel, train: TrainSettings) -> None:
        self.model, self._train = model, train
        self.optimizer = build_optimizer(train.optimizer, model, train.groups)
        self._average = WeightAverage(model, train.average) if train.average else None
        self._replaced = False  # True while the model has other weights

    @property
    def settled(self) -> bool:
        """Return whether all weights belong to the same step; false after an interrupted step."""
        return not self._replaced and (self._average is None or self._average.settled)

    def begin_epoch(self, epoch: int) -> list[float] | None:
        """Apply the settings of [train] after this many epochs.

        Return the highest learning rates if they change.
        """
        if all(each.after != epoch for each in self._train.changes):
            return None
        settings = self._train.optimizer_after(epoch)
        return change_settings(self.optimizer, settings, self.model, self._train.groups)

    def move(self) -> None:
        """Update the weights by their gradients, as [train] says."""
        move_weights(self.optimizer, self.model, self._train)

    def after_step(self) -> None:
        """Update the average and the model's own bookkeeping after a step."""
        self.model.after_optimiser_step()
        if self._average:
            self._average.after_step()

    @contextmanager
    def evaluated(self) -> Iterator[AnyModel]:
        """Yield the model for evaluation, with averaged weights if there is an average."""
        if self._average is None:
            yield self.model
        else:
            with self._average.in_place():
                yield self.model

    @contextmanager
    def replaced(self, weights: Mapping[str, Tensor]) -> Iterator[None]:
        """Give the model other weights within a context."""
        own = {name: weight.clone() for name, weight in self.model.state_dict().items()}
        self._replaced = True
        try:
            self._load(weights)
            yield
        finally:
            self._load(own)
            self._replaced = False

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        self.model.load_state_dict(weights)
        self.model.after_optimiser_step()

    @contextmanager
    def with_room(self) -> Iterator[None]:
        """Move gradients and optimiser state off the device within a context that takes no steps."""
        self.optimizer.zero_grad()
        places = [
            (state, name, kept.device)
            for state in self.optimizer.state.values()
            for name, kept in state.items()
            if isinstance(kept, Tensor)
        ]
        try:
            for state, name, _ in places:
                state[name] = state[name].cpu()
            yield
        finally:
            for state, name, device in places:
                state[name] = state[name].to(device)

    def named(self) -> Mapping[str, Tensor]:
        """Return the weights used for evaluation, by name; averages are on the CPU."""
        with self.evaluated() as model:
            weights = model.state_dict()
            if self._average is None:
                return weights
            return {name: weight.to("cpu", copy=True) for name, weight in weights.items()}

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            **({"average": self._average.state()} if self._average else {}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state."""
        self._load(state["model"])
        self._replaced = False
        self.optimizer.load_state_dict(state["optimizer"])
        keep_steps_on_cpu(self.optimizer)
        if self._average:
            self._average.restore(state["average"])


def draw_model(settings: TrialSettings, interface: ModelInterface) -> AnyModel:
    """Return a trial's initial model on the CPU."""
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "initialisation"))
    return build_model(settings.model, interface, generator)


def make_weights(settings: TrialSettings, interface: ModelInterface, device: torch.device) -> Weights:
    """Return the weights of a trial on one device."""
    check_compile(settings.train.compile, device)
    model = draw_model(settings, interface).to(device)
    if settings.train.compile:
        compile_body(model.body, settings.train.compile)
    return Weights(model, settings.train)
