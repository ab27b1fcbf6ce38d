"""The training of one trial, an epoch or a part of one at a time: all that its next step depends on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import ActivememError
from ...storage import WrittenOutputs
from ...studies.schema.settings import TrialSettings
from ..core.device_stream import DeviceStream
from ..core.interruption import Interruption
from ..core.models import AnyModel, autocast, sequence_flops
from ..core.placement import to_device
from ..core.seeds import derive_seed
from ..core.trainable import TOKENS_PER_S, BetweenSteps
from ..objectives import Metrics, StepShape, build_objective
from ..optimisers.weights import make_weights
from ..training_parts import BestEpoch, Callbacks, GradientMeasures, LossTerms, Patience
from ..training_parts.early_stopping import have_converged, last_losses
from .leaks import LeakError, check_future_is_hidden
from .memory_retries import evaluate_with_room
from .precision import check_precision, float32_products
from .schedules import Schedule


class NotANumberError(ActivememError):
    """The loss of an epoch is not a finite number."""


class Training:
    """The model, optimiser, generators and objective of one trial on one device.

    The generators are its own, that of dropout too, so that several trainings can take turns in one process
    and one that is restored continues bit for bit, from between two epochs as from between two steps. `data`
    is the folder of the corpora. Raises PrecisionError if the device does not have the precision of the
    settings.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, data: Path = Path("data")) -> None:
        self.settings, self.device = settings, device
        seed, train = settings.seed, settings.train
        check_precision(train.precision, device)
        self.objective = build_objective(settings, device, data)
        self.trained = make_weights(settings, self.objective.interface, device)
        self.model, self.optimizer = self.trained.model, self.trained.optimizer
        self._schedule = Schedule(train.schedule, self.optimizer, train.epochs * train.steps_per_epoch)
        self._losses: list[float] = []  # of the last epochs, as many as decide whether it has converged
        self._patience = Patience()
        self._best = None if train.best_metric is None else BestEpoch(metric=train.best_metric)
        self._gradients = (
            GradientMeasures(train.measure, self.model, batch_size=train.batch_size, parts=train.accumulate)
            if train.measure
            else None
        )
        self._terms = LossTerms(train.loss_terms, self.model, device) if train.loss_terms else None
        self._callbacks = Callbacks(train.callbacks, seed, device) if train.callbacks else None
        self.noise = DeviceStream(device, derive_seed(seed, "dropout"))
        self.packed_steps = 0  # steps taken together with other trainings
        self.parameters = sum(weights.numel() for weights in self.model.parameters())
        self.epoch = self.step = 0
        self.seconds = self.flops = self._tokens = 0.0
        self._amid_step = self.is_stacked = False  # stacked: its weights and states are part of others
        self._piece_began: float | None = None
        self._begin_epoch()

    @property
    def num_symbols(self) -> int:
        """How many symbols its inputs are of; 0 where they are no symbols."""
        return self.objective.interface.vocab or 0

    @property
    def steps_left(self) -> int:
        """The steps of the epoch under way that have not been taken."""
        return self.settings.train.steps_per_epoch - self._taken

    @property
    def finished(self) -> bool:
        """Whether the last epoch is over, the task is solved, or training is to end before that."""
        return self._ends_after(self.epoch, self._losses, self._patience)

    @property
    def can_be_saved(self) -> bool:
        """Whether all of its state is of one moment, so that it can be saved; not when a step was left."""
        return not self._amid_step and not self.is_stacked and self.noise.settled and self.trained.settled

    @property
    def lacks_last_evaluation(self) -> bool:
        """Whether the steps of its last epoch are taken, and only the evaluation after them is left."""
        train = self.settings.train
        return self.epoch + 1 == train.epochs and self._taken == train.steps_per_epoch

    def advance(self, between_steps: BetweenSteps = lambda: None) -> Metrics:
        """Train one epoch, or the rest of one, and evaluate the model; the metrics of both.

        Raises NotANumberError when the mean loss of the epoch or of one of its terms is not finite, LeakError
        when the task is causal and the model sees later inputs, and what `between_steps` raises.
        """
        with self._timed():
            self._start_callbacks()
            with self.noise.in_process(), float32_products(self.settings.train.precision):
                self._take_steps(between_steps)
            shapes, epoch = self.objective.epoch_shapes(), self.epoch + 1
            loss = float(self._loss / self.settings.train.steps_per_epoch)
            terms = self._term_metrics()
            if not all(map(math.isfinite, (loss, *terms.values()))):
                self.epoch = epoch
                raise NotANumberError(f"not a number at epoch {epoch}")
            losses = last_losses(self.settings.train.stop, [*self._losses, loss])
            trained = {"loss": loss, **self._gradient_metrics(), **terms}
            measured, patience, best = self._measure(epoch, losses, trained)
        seconds, self._amid_step = self._epoch_s, True
        self._schedule.after_epoch(measured)
        self.epoch, self._losses, self._patience, self._best = epoch, losses, patience, best
        self._begin_epoch()
        tokens, self._amid_step = self._count_work(shapes), False
        return {**trained, **measured, TOKENS_PER_S: tokens / seconds}

    def summary(self, last: Metrics) -> Metrics:
        """The final metrics: those of the last epoch, the speed over all epochs."""
        return last | {TOKENS_PER_S: self._tokens / max(self.seconds, 1e-9)}

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on, as tensors and plain values."""
        now_s = self._piece_s()
        return {
            **self.trained.state(),
            "objective": self.objective.state(),
            "schedule": self._schedule.state(),
            "losses": self._losses,
            "patience": self._patience.state(),
            **({"best": self._best.state()} if self._best else {}),
            "noise": self.noise.state,
            "progress": (self.epoch, self.step, self.seconds + now_s, self.flops, self._tokens),
            **({"packed": self.packed_steps} if self.packed_steps else {}),
            "epoch": {"taken": self._taken, "loss": self._loss, "seconds": self._epoch_s + now_s},
            **({"gradients": self._gradients.state()} if self._gradients else {}),
            **({"terms": self._terms.state()} if self._terms else {}),
            **({"callbacks": self._callbacks.state()} if self._callbacks else {}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that the same settings gave; only `epochs` may be larger."""
        self.trained.restore(state)
        given, known = state, ("model", "optimizer", "average", "best", "terms", "callbacks")
        state = to_device({name: each for name, each in state.items() if name not in known}, self.device)
        self.objective.restore(state["objective"])
        self._schedule.restore(state["schedule"])
        self._losses = state["losses"]
        self._patience = Patience(**state.get("patience", {}))  # an earlier version has none
        if self._best:
            self._best = self._best.restored(given["best"])
        self.noise.state = state["noise"]
        self.packed_steps, self._amid_step = state.get("packed", 0), False
        self.is_stacked = False
        self.epoch, self.step, self.seconds, self.flops, self._tokens = state["progress"]
        self._begin_epoch()
        if begun := state.get("epoch"):  # a checkpoint of an earlier version has whole epochs
            self._taken, self._loss, self._epoch_s = begun["taken"], begun["loss"], begun["seconds"]
        if self._gradients:
            self._gradients.restore(state["gradients"])
        if self._terms:
            self._terms.restore(given["terms"])
        if self._callbacks:
            self._callbacks.restore(given["callbacks"])

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights to keep, by name: those of the best epoch, or the current ones."""
        if self._best and self._best.weights is not None:
            return self._best.weights
        return self.trained.named()

    def symbols(self) -> Mapping[str, Any] | None:
        """How text becomes the model's symbols, as plain values, if its task has text."""
        return self.objective.symbols()

    def outputs(self) -> WrittenOutputs | None:
        """What the model wrote for the test split after its last epoch, if its task has outputs."""
        return self.objective.outputs()

    def _begin_epoch(self) -> None:
        """No step of the next epoch is taken, and none of its time has passed; its settings are in force."""
        if (rates := self.trained.begin_epoch(self.epoch)) is not None:
            self._schedule.change_highest(rates)
        self._taken, self._epoch_s = 0, 0.0
        self._loss = torch.zeros((), device=self.device)  # the sum over the steps, still on the device
        if self._gradients:
            self._gradients.begin_epoch()
        if self._terms:
            self._terms.begin_epoch()

    def _gradient_metrics(self) -> Metrics:
        """What the study has asked to measure of the gradients of the epoch."""
        return self._gradients.metrics(self.settings.train.steps_per_epoch) if self._gradients else {}

    def _term_metrics(self) -> Metrics:
        """The means of the loss terms over the epoch."""
        return self._terms.metrics(self.settings.train.steps_per_epoch) if self._terms else {}

    def _start_callbacks(self) -> None:
        """Let callbacks begin, before the first step."""
        if self._callbacks and not self._callbacks.started:
            with self.trained.evaluated() as model, float32_products(self.settings.train.precision):
                self._callbacks.start(model)

    def rehearse_callbacks(self, metrics: Metrics) -> None:
        """Call the callbacks before the first step, and after an epoch with these metrics as the last."""
        if self._callbacks:
            self._start_callbacks()
            self._callbacks.after_epoch(self.model, 1, self.step, metrics, last=True)

    def _ends_after(self, epoch: int, losses: Sequence[float], patience: Patience) -> bool:
        """Whether an epoch is the last, with these losses up to it, and this patience behind it."""
        return self._is_over(epoch, losses) or self.objective.solved or self._is_impatient(patience)

    def _is_over(self, epoch: int, losses: Sequence[float]) -> bool:
        """Whether an epoch is the last whatever is measured after it."""
        train = self.settings.train
        return epoch >= train.epochs or have_converged(train.stop, losses)

    def _is_impatient(self, patience: Patience) -> bool:
        """Whether the metric of [train] early_stopping has not got better for too long."""
        stopping = self.settings.train.early_stopping
        return stopping is not None and patience.is_over(stopping)

    def take_step(self) -> None:
        """Take one step of the epoch under way, whose time is not counted."""
        with self.noise.in_process(), float32_products(self.settings.train.precision):
            self._take_steps(lambda: None, leaving=self.steps_left - 1)

    def _take_steps(self, between_steps: BetweenSteps, leaving: int = 0) -> None:
        """Take the steps of the epoch that have not been taken, but for so many."""
        self.model.train()
        while self.steps_left > leaving:
            self.begin_step()
            step_loss = self._take_gradients()
            self.move_weights()
            self.end_step(step_loss)
            between_steps()

    def _take_gradients(self) -> Tensor:
        """Compute the gradients of the next batch; return its loss, which counts for the epoch."""
        train = self.settings.train
        self.objective.begin_batch(train.accumulate)
        step_loss = torch.zeros((), device=self.device)
        for part in range(train.accumulate):
            share = self._accumulate_gradients(part)
            if self._gradients:
                self._gradients.after_part(part)
            self._loss, step_loss = self._loss + share, step_loss + share
        return step_loss

    def begin_step(self) -> None:
        """Begin a step; until it has ended nothing can be saved."""
        self._amid_step, self.step = True, self.step + 1
        if not self.is_stacked:  # else gradients are those of the stacked weights
            self.optimizer.zero_grad()

    def move_weights(self) -> None:
        """Move the weights by their gradients, as [train] says."""
        if self._gradients:
            self._gradients.after_backward()
        self.trained.move()

    def end_packed_step(self, step_loss: Tensor) -> None:
        """As `end_step`, of a step that was taken together with those of others."""
        self._loss, self.packed_steps = self._loss + step_loss, self.packed_steps + 1
        self.end_step(step_loss)

    def count_seconds(self, seconds: float) -> None:
        """Count time that steps of the epoch under way took."""
        self.seconds, self._epoch_s = self.seconds + seconds, self._epoch_s + seconds

    def end_step(self, step_loss: Tensor) -> None:
        """Take note of a step whose weights have moved."""
        self._schedule.after_step(step_loss)
        self.trained.after_step()
        self._taken += 1
        self._amid_step = False

    def _accumulate_gradients(self, part: int) -> Tensor:
        """Add the gradients of one part of the next batch; its share of the step's loss."""
        train = self.settings.train
        watching = self._terms.watching(self.objective) if self._terms else nullcontext()
        with watching, self._autocast():
            loss = self.objective.loss(self.model, part, train.accumulate)
        penalty = self.model.penalty() if train.span_loss else None
        objective = loss if penalty is None else loss + train.span_loss * penalty
        if self._terms:
            objective = objective + self._terms.after_part(self.step, train.accumulate)
        if train.accumulate > 1:
            objective, loss = objective / train.accumulate, loss / train.accumulate
        objective.backward()
        return loss.detach()

    def _measure(
        self, epoch: int, losses: Sequence[float], trained: Metrics
    ) -> tuple[Metrics, Patience, BestEpoch | None]:
        """Evaluate the model after an epoch, of whose steps `trained` is known.

        Returns the metrics, the patience and the best epoch. If it is left midway, the training is as it was
        before. An epoch that ends the training by what was measured is measured again as the last; if the
        best epoch is kept, with its weights.
        """
        before, stopping = self.objective.state(), self.settings.train.early_stopping
        called_before = self._callbacks.state() if self._callbacks else {}
        last, patience, best = self._is_over(epoch, losses), self._patience, self._best
        try:
            with (
                self.trained.evaluated() as model,
                float32_products(self.settings.train.precision),
                ExitStack() as kept,
            ):
                measured = self._evaluate(model, last=last and best is None)
                if stopping is not None:
                    patience = patience.after(stopping, {**trained, **measured})
                if best is not None:
                    best = best.after(epoch, measured, model)
                    if self._ends_after(epoch, losses, patience):
                        self.objective.restore(before)
                        of_best = {}
                        if best.weights is not None:
                            kept.enter_context(self.trained.replaced(best.weights))
                            of_best = {"best_epoch": float(best.epoch)}
                        measured = self._evaluate(model, last=True) | of_best
                elif not last and stopping is not None and patience.is_over(stopping):
                    self.objective.restore(before)
                    measured = self._evaluate(model, last=True)
                self._check_causality(model, epoch, losses, patience)
                if self._callbacks:
                    last = self._ends_after(epoch, losses, patience)
                    measured |= self._callbacks.after_epoch(
                        model, epoch, self.step, {**trained, **measured}, last=last
                    )
        except Interruption:
            self.objective.restore(before)
            if self._callbacks:
                self._callbacks.restore(called_before)
            raise
        except LeakError:
            self.epoch = epoch
            raise
        return measured, patience, best

    @torch.no_grad()
    def _evaluate(self, model: AnyModel, *, last: bool) -> Metrics:
        """What the objective measures, without dropout."""
        with self._autocast():
            return evaluate_with_room(self.objective, model.eval(), last=last)

    def _check_causality(
        self, model: AnyModel, epoch: int, losses: Sequence[float], patience: Patience
    ) -> None:
        """Look whether the model sees its future: after the epochs 1, 2, 4, 8 and so on, and after the last.

        A block may begin to look ahead only when it has learnt to.
        """
        is_due = epoch & (epoch - 1) == 0 or self._ends_after(epoch, losses, patience)
        if is_due and (view := self.objective.causal_view()) is not None:
            check_future_is_hidden(model, view, self.trained.with_room)

    def _count_work(self, shapes: Mapping[StepShape, int]) -> float:
        """Count the operations and the tokens of an epoch with so many steps of each shape; its tokens."""
        model, interface = self.settings.model, self.objective.interface
        tokens = 0.0
        for shape, steps in shapes.items():
            sequences = steps * shape.sequences
            self.flops += sequences * sequence_flops(model, interface, tokens=shape.tokens, past=shape.past)
            tokens += sequences * shape.tokens
        self._tokens += tokens
        return tokens

    def _autocast(self) -> torch.autocast:
        return autocast(self.settings.train.precision, self.device)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """A context whose time counts as that of the epoch, unless the trial fails in it."""
        self._piece_began = time.perf_counter()
        try:
            yield
            self._count_piece()
        except Interruption:
            self._count_piece()
            raise
        finally:
            self._piece_began = None

    def _count_piece(self) -> None:
        """Add the time since the steps of this process began."""
        self.count_seconds(self._piece_s())

    def _piece_s(self) -> float:
        """The seconds of the epoch under way that are not counted yet."""
        return 0.0 if self._piece_began is None else time.perf_counter() - self._piece_began
