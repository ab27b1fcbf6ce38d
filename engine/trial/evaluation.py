"""Evaluation of a model after each epoch, the check for causal leaks, and rules that end a training."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from ...blocks.testing.plugin_checks import ROUNDING
from ...errors import ActivememError
from ...plugins import OWN
from ...studies.catalog.metrics import METRICS
from ...studies.planning.final_values import NOT_A_NUMBER, SEES_FUTURE
from ...studies.schema.settings import TrainSettings
from ..core.models import AnyModel, float32_products
from ..core.process import Interruption
from ..objectives.base import CausalView, Metrics, Objective
from ..optimisers.weights import Weights
from .failures import evaluate_with_room, free_memory, may_be_out_of_memory
from .training_parts import Callbacks

MAX_CUTS = 16
"""The maximum number of positions after which inputs are replaced; a short sequence is tested at each
position."""

_CPU = torch.device("cpu")

_log = logging.getLogger(__name__)


class LeakError(ActivememError):
    """Error for a model of a causal task whose outputs depend on later inputs.

    The message names the model or the block.
    """


class NotANumberError(ActivememError):
    """Error for an epoch whose loss is not a finite number."""


def has_modules_of_others(model: nn.Module) -> bool:
    """Return whether a model has modules of plug-ins or other packages. Tests cover those of this package."""
    return any(type(each).__module__.partition(".")[0] not in (OWN, "torch") for each in model.modules())


@torch.no_grad()
def check_future_is_hidden(model: nn.Module, view: CausalView) -> None:
    """Raise LeakError if replacing later inputs changes an output of the model.

    A copy of the model computes in double precision, so an output stays the same only if the model does not
    see the replaced inputs. The sequence is real; a fixed seed draws the replacements. The copy takes twice
    the memory of the weights; if a GPU does not have that much memory, the check runs on the CPU.
    """
    try:
        _check_on(view.inputs.device, model, view)
    except RuntimeError as error:
        if not may_be_out_of_memory(error):
            raise
    else:
        return
    free_memory()  # only now, because until here the frames of the failed call held tensors
    _log.warning("the check for future inputs runs on the CPU: device memory is short")
    _check_on(_CPU, model, view)


def _check_on(device: torch.device, model: nn.Module, view: CausalView) -> None:
    exact, inputs = _copied(model, device).double().eval(), view.inputs.to(device)
    length = len(inputs)
    generator = torch.Generator().manual_seed(length)
    if length - 1 <= MAX_CUTS:
        cuts = torch.arange(length - 1)
    else:
        cuts = torch.randperm(length - 1, generator=generator)[:MAX_CUTS].sort().values
    known = view.outputs(exact, inputs[None])[0]
    for cut in cuts.tolist():
        shifts = torch.randint(1, view.symbols, (length,), generator=generator)
        others = (inputs - view.first + shifts.to(device)) % view.symbols + view.first
        changed = torch.where(torch.arange(length, device=device) > cut, others, inputs)
        moved = _moved(known[: cut + 1], view.outputs(exact, changed[None])[0, : cut + 1])
        if moved is not None:
            raise LeakError(
                f"{SEES_FUTURE}: output {moved} depends on inputs after position {cut} of {length}"
            )


def _copied(model: nn.Module, device: torch.device) -> nn.Module:
    # `deepcopy` takes these tensors as copies, so the weights are copied to the device at once
    known: dict[int, object] = {id(each): each.to(device, copy=True) for each in model.buffers()}
    for weight in model.parameters():
        known[id(weight)] = nn.Parameter(weight.to(device, copy=True), weight.requires_grad)
    return deepcopy(model, known)


def _moved(known: Tensor, found: Tensor) -> int | None:
    distance = (known - found).abs().flatten(1).amax(1) if known.dim() > 1 else (known - found).abs()
    # negated, so that NaN counts as a difference
    wrong = torch.nonzero(~(distance <= ROUNDING * known.abs().max().clamp(min=1.0)))
    return int(wrong[0]) if len(wrong) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestEpoch:
    """The best epoch so far by a metric, which must change by more than `min_change`.

    `value` is None before the first value that is not NaN. `weights` are a copy on the CPU of those that were
    evaluated, if they are kept. They are averages if the training averages weights.
    """

    metric: str
    min_change: float = 0.0
    value: float | None = None
    epoch: int = 0
    weights: Mapping[str, Tensor] | None = None

    def after(self, epoch: int, metrics: Mapping[str, float], model: nn.Module | None = None) -> BestEpoch:
        """Return the best epoch after one more epoch, with the weights of its model, if given.

        Of epochs with equal values, the first is the best. NaN never counts as better.
        """
        value = metrics[self.metric]
        if self.value is None:
            improves = not math.isnan(value)
        else:
            gain = value - self.value if METRICS[self.metric].higher_is_better else self.value - value
            improves = gain > self.min_change
        if not improves:
            return self
        state = {} if model is None else model.state_dict()
        weights = {name: weight.to("cpu", copy=True) for name, weight in state.items()}
        return replace(self, value=value, epoch=epoch, weights=weights or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """State that decides when a training ends.

    `losses` are the last training losses, as many as [train] stop compares. `improved` is the last epoch that
    [train] early_stopping counts as better, and `best` the epoch whose weights are kept.
    """

    train: TrainSettings
    epoch: int = 0
    losses: tuple[float, ...] = ()
    improved: BestEpoch | None = None
    best: BestEpoch | None = None

    @classmethod
    def begin(cls, train: TrainSettings) -> Self:
        """Return the state of a training before its first epoch."""
        early = train.early_stopping
        return cls(
            train=train,
            improved=early and BestEpoch(metric=early.metric, min_change=early.min_change),
            best=BestEpoch(metric=train.best_metric) if train.best_metric else None,
        )

    def after_steps(self, loss: float) -> Stopping:
        """Return a copy with one more epoch. `loss` is the mean training loss of the epoch's steps."""
        stop = self.train.stop
        losses = () if stop is None else (*self.losses, loss)[-stop.epochs - 1 :]
        return replace(self, epoch=self.epoch + 1, losses=losses)

    def after_evaluation(self, metrics: Mapping[str, float], model: nn.Module) -> Stopping:
        """Return a copy with the metrics of the current epoch."""
        return replace(
            self,
            improved=self.improved and self.improved.after(self.epoch, metrics),
            best=self.best and self.best.after(self.epoch, metrics, model),
        )

    @property
    def is_last_epoch(self) -> bool:
        """Return whether this epoch is the last, whatever its evaluation gives."""
        return self.epoch >= self.train.epochs or self._has_converged

    @property
    def is_impatient(self) -> bool:
        """Return whether the metric of [train] early_stopping has not improved for too long."""
        early, improved = self.train.early_stopping, self.improved
        return early is not None and improved is not None and self.epoch - improved.epoch >= early.patience

    @property
    def _has_converged(self) -> bool:
        stop, losses = self.train.stop, self.losses
        return stop is not None and len(losses) > stop.epochs and max(losses) - min(losses) < stop.within

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the epoch. It has only tensors and plain values."""
        state: dict[str, Any] = {"losses": list(self.losses)}
        if (improved := self.improved) is not None:
            state["patience"] = {"best": improved.value, "waited": self.epoch - improved.epoch}
        if (best := self.best) is not None:
            state["best"] = {"value": best.value, "epoch": best.epoch, "weights": best.weights}
        return state

    def restored(self, epoch: int, state: Mapping[str, Any]) -> Stopping:
        """Return this object as it was after `epoch` epochs, rebuilt from its saved state."""
        improved = self.improved
        if improved is not None:
            patience = state["patience"]
            improved = replace(improved, value=patience["best"], epoch=epoch - patience["waited"])
        return replace(
            self,
            epoch=epoch,
            losses=tuple(state["losses"]),
            improved=improved,
            best=self.best and replace(self.best, **state["best"]),
        )


def evaluate_epoch(
    objective: Objective[AnyModel],
    weights: Weights,
    stopping: Stopping,
    callbacks: Callbacks | None,
    *,
    trained: Metrics,
    step: int,
) -> tuple[Metrics, Stopping]:
    """Evaluate a model after an epoch; return the metrics and the updated `stopping`.

    `trained` has the metrics of the epoch's training steps. If the evaluation shows that this epoch is the
    last, the model is evaluated again as after a last epoch. That evaluation uses the weights of the best
    epoch if they are kept. An interruption changes no state. Raise NotANumberError if the dev or test loss is
    not finite, and LeakError if a causal model sees later inputs.
    """
    # after an interruption, the evaluation begins again from these states
    before, called_before = objective.state(), callbacks.state() if callbacks else {}

    try:
        with float32_products(objective.settings.train.precision):
            model = weights.evaluated()
            known_as_last = stopping.is_last_epoch and stopping.best is None
            measured = _measure(objective, model, stopping.epoch, last=known_as_last)
            stopping = stopping.after_evaluation({**trained, **measured}, model)
            best, is_last = stopping.best, ends_training(objective, stopping)
            # only this evaluation shows which epoch is the best, and whether training stops early
            if not known_as_last and (stopping.is_impatient or (best is not None and is_last)):
                objective.restore(before)
                extra: Metrics = {}
                if best is not None and best.weights is not None:
                    model = weights.copied(best.weights)
                    extra = {"best_epoch": float(best.epoch)}
                measured = _measure(objective, model, stopping.epoch, last=True) | extra
            # after 1, 2, 4, 8 … epochs: a block may begin to look ahead only later in training
            is_checked = is_last or stopping.epoch.bit_count() == 1
            if is_checked and (view := objective.causal_view()) is not None:
                check_future_is_hidden(model, view)
            if callbacks:
                metrics = {**trained, **measured}
                measured |= callbacks.after_epoch(model, stopping.epoch, step, metrics, last=is_last)
    except Interruption:
        objective.restore(before)
        if callbacks:
            callbacks.restore(called_before)
        raise
    return measured, stopping


def _measure(objective: Objective[AnyModel], model: AnyModel, epoch: int, *, last: bool) -> Metrics:
    with torch.no_grad(), objective.autocast():
        found = evaluate_with_room(objective, model.eval(), last=last)
    for name in ("dev_loss", "test_loss"):
        if not math.isfinite(found.get(name, 0.0)):
            raise NotANumberError(f"{NOT_A_NUMBER} at epoch {epoch} ({name})")
    return found


def ends_training(objective: Objective[AnyModel], stopping: Stopping) -> bool:
    """Return whether a training ends after the epoch that has just been evaluated."""
    return stopping.is_last_epoch or stopping.is_impatient or objective.solved
