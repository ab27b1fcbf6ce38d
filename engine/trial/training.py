"""The training loop of one trial, with its learning-rate schedule, counters and time budget."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self, SupportsFloat, cast

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ...plugins import plugin_errors
from ...studies.catalog.optimisers import SCHEDULES, OwnScheduleSettings, PluginSchedule, ScheduleSettings
from ...studies.planning.final_values import NOT_A_NUMBER
from ...studies.schema.settings import TrialSettings
from ..core.models import AnyModel, check_precision, float32_products, sequence_flops
from ..core.process import DeviceStream, Interruption, derive_seed
from ..core.start import take_weights
from ..objectives.base import Metrics, Objective, StepShape
from ..objectives.build import build_objective
from ..optimisers.weights import Weights, make_weights
from .evaluation import (
    LeakError,
    NotANumberError,
    Stopping,
    check_future_is_hidden,
    ends_training,
    evaluate_epoch,
    has_modules_of_others,
)
from .training_parts import Callbacks, LossTerms, to_device

TOKENS_PER_S = "tokens_per_s"
"""The one metric that depends on the machine: symbols of training and evaluation per second."""

BetweenSteps = Callable[[], None]
"""Callback after each step of an epoch, when the training can be saved; an exception leaves the epoch."""


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
        self.step = 0
        self._is_torn = False  # True while parts of the state belong to different steps
        self._begin_epoch()

    @classmethod
    def begin(
        cls,
        settings: TrialSettings,
        device: torch.device,
        data: Path = Path("data"),
    ) -> Self:
        """Return the training of a trial before its first step.

        `data` is the folder of the corpora. Raise PrecisionError if the device does not support the
        precision.
        """
        train = settings.train
        check_precision(train.precision, device)
        objective = build_objective(settings, device, data)
        trained = make_weights(settings, device)
        if train.start is not None:
            take_weights(trained.model, train.start, data, objective.symbols())
        model = trained.model
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
        the epoch or of one of its terms, or the dev or test loss, is not finite. Raise LeakError if the task
        is causal and the model sees later inputs, and whatever `between_steps` raises. A model with modules
        of plug-ins or of other packages is also checked for that before its first step.
        """
        train = self.settings.train
        with self.work.timed():
            if not self.step and has_modules_of_others(self.model):
                view = self.objective.causal_view()
                if view is not None:
                    with float32_products(train.precision):
                        check_future_is_hidden(self.model, view)
            if self.callbacks and not self.callbacks.started:
                with float32_products(train.precision):
                    self.callbacks.start(self.trained.evaluated())
            while self.steps_left:  # with a time budget, the steps left are known only step by step
                self.take_steps(self.steps_left, between_steps)
            steps = self._taken
            shapes, loss = self.objective.epoch_shapes(steps), float(self._loss / steps)
            terms = self.terms.metrics(steps) if self.terms else {}
            trained = {"loss": loss, **self.trained.metrics(steps), **terms}
            stopping = self.stopping.after_steps(loss)
            try:
                if not all(map(math.isfinite, (loss, *terms.values()))):
                    raise NotANumberError(f"{NOT_A_NUMBER} at epoch {stopping.epoch}")
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

    def take_steps(self, count: int = 1, between_steps: BetweenSteps = lambda: None) -> None:
        """Take `count` steps of the current epoch. The caller adds their time to the counters."""
        with self.noise.in_process(), float32_products(self.settings.train.precision):
            if not self.model.training:
                self.model.train()
            for _ in range(count):
                began = time.perf_counter()
                self._is_torn, self.step = True, self.step + 1
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
                self.schedule.after_step(sum(shares[1:], start=shares[0]))
                self.trained.after_step(self.step)
                self._taken += 1
                self._is_torn = False
                between_steps()

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
        """Return whether no epoch is left, the task is solved, or the training stops early."""
        return ends_training(self.objective, self.stopping)

    @property
    def can_be_saved(self) -> bool:
        """Return whether the state can be saved now. It cannot be saved in the middle of a step."""
        return not self._is_torn and self.noise.settled

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights to store, by name. They are the best epoch's weights, or the current ones."""
        best = self.stopping.best
        return self.trained.named() if best is None or best.weights is None else best.weights

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, as tensors and plain values.

        Raise PluginError for a state of a loss term or callback that a checkpoint cannot hold.
        """
        if self.callbacks:
            self.callbacks.check_states()
        work, now_s = self.work, self.work.pending_seconds
        optional = {"terms": self.terms, "callbacks": self.callbacks}
        return {
            **self.trained.state(),
            "objective": self.objective.state(),
            "schedule": self.schedule.state(),
            **self.stopping.state(),
            "noise": self.noise.state,
            "progress": (self.epoch, self.step, work.seconds + now_s, work.flops, work.tokens),
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
        self._is_torn = False
        if self.budget:
            self.budget.spent = state["budget"]
        begun = state["epoch"]
        self._taken, self.work.epoch_seconds = begun["taken"], begun["seconds"]
        self._loss = begun["loss"].to(self.device)
        if self.terms:
            self.terms.restore(state["terms"])
        if self.callbacks:
            self.callbacks.restore(state["callbacks"])


class Schedule:
    """The learning-rate schedule of an optimiser.

    A linear warm-up comes first, and then the schedule of the settings. If the settings give the time of a
    training instead of its steps, `total_steps` may change between steps.
    """

    def __init__(self, settings: ScheduleSettings, optimizer: Optimizer, total_steps: int) -> None:
        own = settings if isinstance(settings, OwnScheduleSettings) else OwnScheduleSettings()
        self._settings = settings
        self._recent = RecentLosses(own)
        self._optimizer, self.total_steps, self._steps = optimizer, total_steps, 0
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        self._set_rates()
        # torch lowers the rate only after one epoch more than its `patience`
        self._plateau = ReduceLROnPlateau(optimizer, patience=own.patience - 1, threshold=0, eps=0)

    def after_step(self, loss: Tensor) -> None:
        """Set the learning rate of the next step, given the loss of the last one."""
        if self._settings.name == "recent":
            self._recent.take(loss)
        if self._settings.name != "plateau" or self._warming_up:
            self._steps += 1
            self._set_rates()

    def _set_rates(self) -> None:
        share = self._recent.share * factor(self._settings, self._steps + 1, self.total_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = group["initial_lr"] * share

    def after_epoch(self, measured: dict[str, float]) -> None:
        """Pass an epoch's dev loss to a plateau schedule. The warm-up and all other schedules ignore it."""
        if self._settings.name == "plateau" and not self._warming_up:
            self._plateau.step(measured["dev_loss"])

    @property
    def _warming_up(self) -> bool:
        return self._steps + 1 < self._settings.warmup

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, as plain values."""
        state = {"per_step": {"last_epoch": self._steps}, "plateau": self._plateau.state_dict()}
        return state | ({"recent": self._recent.state()} if self._settings.name == "recent" else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that `state` returned. The optimiser's own state is restored separately."""
        self._steps = state["per_step"]["last_epoch"]
        self._plateau.load_state_dict(state["plateau"])
        if "recent" in state:
            self._recent.restore(state["recent"])


class RecentLosses:
    """Learning-rate rule that lowers the rate when a mean of recent losses exceeds all kept ones."""

    def __init__(self, settings: OwnScheduleSettings) -> None:
        self._settings = settings
        self._means: list[float] = []
        self._sum: Tensor | float = 0.0
        self._steps = 0
        self.share = 1.0

    def take(self, loss: Tensor) -> None:
        """Record a step's loss, and lower the learning rate if losses are too high.

        The rate is changed only every few steps, by the mean loss. Each mean is over `every` steps, and it is
        too high if it exceeds the last `patience` means.
        """
        # the sum stays on the device, so that a step need not wait for the GPU
        self._sum, self._steps = self._sum + loss, self._steps + 1
        if self._steps < self._settings.every:
            return
        mean, count = float(self._sum) / self._steps, self._settings.patience
        if len(self._means) == count and mean > max(self._means):
            self.share *= self._settings.decay
        self._means = [*self._means, mean][-count:]
        self._sum, self._steps = 0.0, 0

    def state(self) -> dict[str, Any]:
        """Return everything needed to resume, as plain values."""
        return {"means": self._means, "sum": float(self._sum), "steps": self._steps, "share": self.share}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that `state` returned."""
        self._means, self._sum = state["means"], state["sum"]
        self._steps, self.share = state["steps"], state["share"]


def factor(settings: ScheduleSettings, step: int, total_steps: int) -> float:
    """Return the learning rate at a step as a fraction of the peak rate.

    Steps count from 1. "inverse_sqrt" falls as (warmup / step) ** 0.5 (Vaswani et al. 2017, equation 3,
    scaled to a maximum of 1); "linear" and "cosine" fall to the floor at the last step, "milestones" to a
    tenth after each of them. Raise PluginError if a plug-in's share is not a finite number of at least 0.
    """
    warmup = settings.warmup
    if step < warmup:
        return step / warmup
    if isinstance(settings, PluginSchedule):
        # after the last step, the rate of a step that never comes is asked for
        return _plugin_share(settings, min(step, total_steps), total_steps)
    assert isinstance(settings, OwnScheduleSettings), f"{settings.name} has settings of its own"
    return _own_share(settings, step, total_steps)


def _plugin_share(settings: PluginSchedule, step: int, total_steps: int) -> float:
    with plugin_errors(SCHEDULES.kind, settings.name, type(settings)):
        share: object = settings.share(step, total_steps)
        if not (isinstance(share, SupportsFloat) and 0 <= float(share) < math.inf):
            raise ValueError(f"expected a finite share of at least 0 at step {step}, got {share!r}")
        return cast("float", share)


def _own_share(settings: OwnScheduleSettings, step: int, total_steps: int) -> float:
    warmup = settings.warmup
    share, floor = (step - warmup) / max(total_steps - warmup, 1), settings.floor
    match settings.name:
        case "inverse_sqrt":
            return math.sqrt(warmup / step)
        case "linear":
            return 1.0 - (1.0 - floor) * share
        case "cosine":
            return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * share))
        case "warmup_stable_decay":
            fallen = min(max(0.0, 1.0 - (total_steps - step) / settings.cooldown), 1.0)
            return 1.0 - (1.0 - floor) * fallen
        case "milestones":
            return 0.1 ** sum(step > milestone for milestone in settings.milestones)
        case _:
            return 1.0


class Work:
    """Counters of a training's time, FLOPs and tokens, with the current epoch's seconds apart."""

    def __init__(self) -> None:
        self.seconds = self.flops = self.tokens = self.epoch_seconds = 0.0
        self._began: float | None = None

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Within this context, measure the time, and add it to the seconds of the training.

        Time is not added if an exception other than an interruption is raised.
        """
        self._began = time.perf_counter()
        try:
            yield
        except Interruption:
            self._add_seconds(self.pending_seconds)
            raise
        else:
            self._add_seconds(self.pending_seconds)
        finally:
            self._began = None

    @property
    def pending_seconds(self) -> float:
        """Return the seconds since the current `timed` context began.

        They are not added yet. Outside of a context, return 0.
        """
        return 0.0 if self._began is None else time.perf_counter() - self._began

    def _add_seconds(self, seconds: float) -> None:
        """Add time that steps of the current epoch took."""
        self.seconds, self.epoch_seconds = self.seconds + seconds, self.epoch_seconds + seconds

    def add_steps(self, settings: TrialSettings, shapes: Mapping[StepShape, int]) -> float:
        """Count the FLOPs and tokens of the steps, given their number for each shape; return the tokens."""
        tokens = 0.0
        for shape, steps in shapes.items():
            sequences = steps * shape.sequences
            self.flops += sequences * sequence_flops(settings, tokens=shape.tokens, past=shape.past)
            tokens += sequences * shape.tokens
        self.tokens += tokens
        return tokens


class TimeBudget:
    """A time limit for all steps of a training, in seconds. Each epoch gets an equal share."""

    def __init__(self, seconds: float, epochs: int) -> None:
        self._seconds, self._epochs, self.spent = seconds, epochs, 0.0

    def add_step(self, began: float, step: int, device: torch.device) -> int:
        """Add the time of a step; return the expected number of steps in total.

        The step has the number `step` and began at the time `began`. The estimate divides the time budget by
        the mean time of a step. So the progress of a schedule equals the fraction of the budget that is
        spent.
        """
        if device.type == "cuda":
            # kernels run on after their launch, so wait for them
            torch.cuda.synchronize(device)
        self.spent += time.perf_counter() - began
        # the estimate may be too low, but the schedule must not end before the training
        return max(step + 1, round(step * self._seconds / self.spent))

    def is_spent(self, epoch: int) -> bool:
        """Return whether the time for the epochs up to `epoch` is spent. Epochs count from 0."""
        return self.spent >= self._seconds * (epoch + 1) / self._epochs
