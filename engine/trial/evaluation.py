"""The evaluation of a model after an epoch of its training."""

from __future__ import annotations

from contextlib import ExitStack

import torch

from ..core.interruption import Interruption
from ..core.models import AnyModel, autocast
from ..objectives import Metrics
from ..objectives.base import Objective
from ..optimisers.weights import Weights
from ..training_parts import Callbacks, Stopping
from .leaks import check_future_is_hidden
from .memory_retries import evaluate_with_room
from .precision import float32_products


def evaluate_epoch(
    objective: Objective[AnyModel],
    weights: Weights,
    stopping: Stopping,
    callbacks: Callbacks | None,
    *,
    trained: Metrics,
    step: int,
) -> tuple[Metrics, Stopping]:
    """Evaluate a model after an epoch whose steps gave the metrics `trained`.

    Returns the metrics of the evaluation, and `stopping` with them taken into account. If the evaluation
    shows that this epoch is the last, the model is evaluated again as after a last epoch, with the weights of
    the best epoch if that is kept. An interruption leaves everything as it was before. Raises LeakError.
    """
    before, called_before = objective.state(), callbacks.state() if callbacks else {}

    def measure(model: AnyModel, *, last: bool) -> Metrics:
        with torch.no_grad(), autocast(objective.settings.train.precision, objective.device):
            return evaluate_with_room(objective, model.eval(), last=last)

    try:
        with (
            weights.evaluated() as model,
            float32_products(objective.settings.train.precision),
            ExitStack() as replaced,
        ):
            measured = measure(model, last=stopping.is_last_epoch and stopping.best is None)
            stopping = stopping.after_evaluation({**trained, **measured}, model)
            is_last = ends_training(objective, stopping)
            if (best := stopping.best) is not None and is_last:
                objective.restore(before)
                if best.weights is None:
                    measured = measure(model, last=True)
                else:
                    replaced.enter_context(weights.replaced(best.weights))
                    measured = measure(model, last=True) | {"best_epoch": float(best.epoch)}
            elif best is None and stopping.is_impatient and not stopping.is_last_epoch:
                objective.restore(before)
                measured = measure(model, last=True)
            is_checked = (
                is_last or stopping.epoch.bit_count() == 1
            )  # a block may learn to look ahead only later
            if is_checked and (view := objective.causal_view()) is not None:
                check_future_is_hidden(model, view, weights.with_room)
            if callbacks:
                metrics = {**trained, **measured}
                measured |= callbacks.after_epoch(model, stopping.epoch, step, metrics, last=is_last)
    except Interruption:
        objective.restore(before)
        if callbacks:
            callbacks.restore(called_before)
        raise
    return measured, stopping


def ends_training(objective: Objective[AnyModel], stopping: Stopping) -> bool:
    """Return whether a training ends with the epoch that has just been evaluated."""
    return stopping.is_last_epoch or stopping.is_impatient or objective.solved
