"""The training loop of one trial."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from ...errors import ActivememError
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel, check_precision, checkpoint_activations, float32_products
from ..core.process import DeviceStream, derive_seed
from ..objectives import build_objective
from ..objectives.base import CausalView, Metrics, Objective
from ..optimisers.weights import Weights, make_weights
from .evaluation import (
    LeakError,
    Stopping,
    check_future_is_hidden,
    ends_training,
    evaluate_epoch,
    has_modules_of_others,
)
from .training_parts import Callbacks, LossTerms, Schedule, TimeBudget, Work, to_device

TOKENS_PER_S = "tokens_per_s"
"""The one metric that depends on the machine: symbols of training and evaluation per second."""

BetweenSteps = Callable[[], None]
"""Callback after each step of an epoch, when the training can be saved; an exception leaves the epoch."""


class NotANumberError(ActivememError):
    """Error for an epoch whose loss is not a finite number."""


class Training:
    """The training of one trial on one device, epoch by epoch.

    It can be resumed between any two steps. It is made of parts:

    - the objective: data, loss and metrics
    - the weights: model, optimiser and average
    - the schedule, the state of `Stopping` and the counters of `Work`
    - the optional parts of [train]

    `begin` makes these parts from the settings of a trial. All random numbers come from the training's own
    generators. So several trainings can take turns in one process, and a restored one continues bit for bit,
    unless [train] seconds ends it.
    """

    def __init__(
        self,
        settings: TrialSettings,
        device: torch.device,
        *,
        objective: Objective[AnyModel],
        trained: Weights,
        schedule: Schedule,
        budget: TimeBudget | None = None,
        terms: LossTerms | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.settings, self.device = settings, device
        self.objective, self.trained, self.schedule = objective, trained, schedule
        self.budget, self.terms, self.callbacks = budget, terms, callbacks
        self.model, self.optimizer = trained.model, trained.optimizer
        self.noise = DeviceStream(device, derive_seed(settings.seed, "dropout"))
        self.stopping, self.work = Stopping.begin(settings.train), Work()
        self.parameters = sum(weights.numel() for weights in self.model.parameters())
        self.step = self.packed_steps = 0  # packed: taken together with other trainings
        self.is_stacked = False  # True while the weights are part of the stacked weights of a pack
        self._is_torn = False  # True while parts of the state belong to different steps
        self._begin_epoch()

    @classmethod
    def begin(
        cls,
        settings: TrialSettings,
        device: torch.device,
        data: Path = Path("data"),
        *,
        recomputes: bool = False,
    ) -> Self:
        """Return the training of a trial before its first step.

        `data` is the folder of the corpora. With `recomputes` the model computes activations again in the
        backward pass. Raise PrecisionError if the device does not support the precision.
        """
        train = settings.train
        check_precision(train.precision, device)
        objective, trained = build_objective(settings, device, data), make_weights(settings, device)
        model = trained.model
        if recomputes:
            checkpoint_activations(model, settings)
        steps = sys.maxsize if train.seconds is not None else train.epochs * train.steps_per_epoch
        return cls(
            settings,
            device,
            objective=objective,
            trained=trained,
            schedule=Schedule(train.schedule, trained.optimizer, steps),
            budget=None if train.seconds is None else TimeBudget(train.seconds, train.epochs),
            terms=LossTerms(train.loss_terms, model, device) if train.loss_terms else None,
            callbacks=Callbacks(train.callbacks, settings.seed, device) if train.callbacks else None,
        )

    def advance(self, between_steps: BetweenSteps = lambda: None) -> Metrics:
        """Train one epoch, or the rest of an interrupted epoch, and evaluate the model.

        Return the metrics of the training and of the evaluation. Raise NotANumberError if the mean loss of
        the epoch or of one of its terms is not finite. Raise LeakError if the task is causal and the model
        sees later inputs, and whatever `between_steps` raises. A model with modules of plug-ins or of other
        packages is also checked for that before its first step.
        """
        train = self.settings.train
        with self.work.timed():
            if (view := self.unchecked_view()) is not None:
                with float32_products(train.precision):
                    check_future_is_hidden(self.model, view)
            if self.callbacks and not self.callbacks.started:
                with self.trained.evaluated() as model, float32_products(train.precision):
                    self.callbacks.start(model)
            self.take_steps(self.steps_left, between_steps)
            while self.steps_left:  # with a time budget, the steps left are known only step by step
                self.take_steps(self.steps_left, between_steps)
            steps = self._taken
            shapes, loss = self.objective.epoch_shapes(steps), float(self._loss / steps)
            terms = self.terms.metrics(steps) if self.terms else {}
            trained = {"loss": loss, **self.trained.metrics(steps), **terms}
            stopping = self.stopping.after_steps(loss)
            try:
                if not all(map(math.isfinite, (loss, *terms.values()))):
                    raise NotANumberError(f"not a number at epoch {stopping.epoch}")
                measured, stopping = evaluate_epoch(
                    self.objective, self.trained, stopping, self.callbacks, trained=trained, step=self.step
                )
            except (NotANumberError, LeakError):
                self.stopping = stopping  # a failed epoch counts
                raise
        # until all parts are at the next epoch, a checkpoint would mix two epochs
        seconds, self._is_torn = self.work.epoch_seconds, True
        self.schedule.after_epoch(measured)
        self.stopping = stopping
        self._begin_epoch()
        tokens = self.work.add_steps(self.settings, shapes)
        self._is_torn = False
        return {**trained, **measured, TOKENS_PER_S: tokens / seconds}

    def unchecked_view(self) -> CausalView | None:
        """Return the data for the check before the first step, or None if no check is due."""
        if self.step or not has_modules_of_others(self.model):
            return None
        return self.objective.causal_view()

    def take_steps(self, count: int = 1, between_steps: BetweenSteps = lambda: None) -> None:
        """Take `count` steps of the current epoch. The caller adds their time to the counters."""
        with self.noise.in_process(), float32_products(self.settings.train.precision):
            if not self.model.training:
                self.model.train()
            for _ in range(count):
                began = time.perf_counter()
                self.begin_step()
                self.trained.clear_gradients()
                parts = self.settings.train.accumulate
                self.objective.begin_batch(parts)
                shares: list[Tensor] = []
                for part in range(parts):
                    shares.append(self.add_gradients(part))
                    self._loss = self._loss + shares[-1]
                self.trained.move()
                if self.budget:
                    self.schedule.total_steps = self.budget.add_step(began, self.step, self.device)
                self.end_step(sum(shares[1:], start=shares[0]))
                between_steps()

    def begin_step(self) -> None:
        """Begin a training step. The training cannot be saved until `end_step`."""
        self._is_torn, self.step = True, self.step + 1

    def add_gradients(self, part: int) -> Tensor:
        """Add the gradients of micro-batch number `part`. Return its share of the batch's loss."""
        train = self.settings.train
        watching = self.terms.watching(self.objective) if self.terms else nullcontext()
        with watching, self.objective.autocast():
            loss = self.objective.loss(self.model, part, train.accumulate)
        penalty = self.model.penalty() if train.span_loss else None
        whole = loss if penalty is None else loss + train.span_loss * penalty
        if self.terms:
            whole = whole + self.terms.after_part(self.step, train.accumulate)
        if train.accumulate > 1:
            whole, loss = whole / train.accumulate, loss / train.accumulate
        whole.backward()
        return loss.detach()

    def end_step(self, loss: Tensor, *, packed: bool = False) -> None:
        """Count a step, and set the next learning rate.

        The weights are already updated. `packed` says whether the step was taken together with other
        trainings.
        """
        if packed:
            self._loss, self.packed_steps = self._loss + loss, self.packed_steps + 1
        self.schedule.after_step(loss)
        self.trained.after_step()
        self._taken += 1
        self._is_torn = False

    def _begin_epoch(self) -> None:
        self._taken, self.work.epoch_seconds = 0, 0.0
        self._loss = torch.zeros((), device=self.device)  # the sum over the steps, still on the device
        self.trained.begin_epoch()
        if self.terms:
            self.terms.begin_epoch()

    @property
    def epoch(self) -> int:
        """Return the number of trained epochs."""
        return self.stopping.epoch

    @property
    def steps_left(self) -> int:
        """Return the number of steps left in the current epoch.

        With a time budget, it is 1 until the epoch's share is spent.
        """
        if self.budget:
            return 0 if self.budget.is_spent(self.epoch) else 1
        return self.settings.train.steps_per_epoch - self._taken

    @property
    def finished(self) -> bool:
        """Return whether the training is over.

        It is over if no epoch is left, if the task is solved, or if it stops early.
        """
        return ends_training(self.objective, self.stopping)

    @property
    def can_be_saved(self) -> bool:
        """Return whether the state can be saved now. It cannot be saved in the middle of a step."""
        return not self._is_torn and not self.is_stacked and self.noise.settled and self.trained.settled

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights to store, by name. They are the best epoch's weights, or the current ones."""
        best = self.stopping.best
        return self.trained.named() if best is None or best.weights is None else best.weights

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, as tensors and plain values."""
        work, now_s = self.work, self.work.pending_seconds
        optional = {"terms": self.terms, "callbacks": self.callbacks}
        return {
            **self.trained.state(),
            "objective": self.objective.state(),
            "schedule": self.schedule.state(),
            **self.stopping.state(),
            "noise": self.noise.state,
            "progress": (self.epoch, self.step, work.seconds + now_s, work.flops, work.tokens),
            "packed": self.packed_steps,
            **({"budget": self.budget.spent} if self.budget else {}),
            "epoch": {"taken": self._taken, "loss": self._loss, "seconds": work.epoch_seconds + now_s},
            **{name: part.state() for name, part in optional.items() if part},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state. The training that saved it had the same settings, but perhaps fewer epochs."""
        epoch, self.step, self.work.seconds, self.work.flops, self.work.tokens = state["progress"]
        self.trained.restore(state)
        self.objective.restore(to_device(state["objective"], self.device))
        self.schedule.restore(state["schedule"])
        self.stopping = self.stopping.restored(epoch, state)
        self.noise.state = state["noise"]
        self.packed_steps, self.is_stacked, self._is_torn = state.get("packed", 0), False, False
        if self.budget:
            self.budget.spent = state["budget"]
        begun = state["epoch"]
        self._taken, self.work.epoch_seconds = begun["taken"], begun["seconds"]
        self._loss = begun["loss"].to(self.device)
        if self.terms:
            self.terms.restore(state["terms"])
        if self.callbacks:
            self.callbacks.restore(state["callbacks"])
