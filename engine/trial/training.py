"""The training of one trial, an epoch at a time: everything that its next step depends on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import ActivememError
from ...storage import WrittenOutputs
from ...studies.schema.settings import TrialSettings
from ..core.models import autocast, build_model, sequence_flops
from ..core.seeds import derive_seed
from ..objectives import Metrics, StepShape, build_objective
from .leaks import check_future_is_hidden
from .optimiser_steps import clip_grad_norm_per_tensor, optimizer, take_clipped_step
from .precision import check_precision, float32_products
from .schedules import Schedule


class NotANumberError(ActivememError):
    """The loss of an epoch is not a finite number."""


class Training:
    """The model, optimiser, generators and objective of one trial on one device.

    The generators are its own, that of dropout too, so that several trainings can take turns in one process
    and one that is restored continues bit for bit. `data` is the folder of the corpora. Raises PrecisionError
    if the device does not have the precision of the settings.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, data: Path = Path("data")) -> None:
        self._settings, self._device = settings, device
        seed, train = settings.seed, settings.train
        check_precision(train.precision, device)
        self._objective = build_objective(settings, device, data)
        generator = torch.Generator().manual_seed(derive_seed(seed, "initialisation"))
        self._model = build_model(settings.model, self._objective.interface, generator).to(device)
        if train.compile:
            self._model.body.compile()
        self._optimizer = optimizer(train.optimizer, self._model.parameters())
        self._schedule = Schedule(train.schedule, self._optimizer, train.epochs * train.steps_per_epoch)
        self._losses: list[float] = []  # of the last epochs, as many as decide whether it has converged
        self._noise = torch.Generator(device).manual_seed(derive_seed(seed, "dropout")).get_state()
        self.parameters = sum(weights.numel() for weights in self._model.parameters())
        self.epoch = self.step = 0
        self.seconds = self.flops = self._tokens = 0.0

    @property
    def finished(self) -> bool:
        """Whether the last epoch is over, the task is solved, or the loss has converged."""
        return self.epoch >= self._settings.train.epochs or self._objective.solved or self._has_converged

    def advance(self) -> Metrics:
        """Train one epoch and evaluate the model; the metrics of both.

        Raises NotANumberError when the mean loss of the epoch is not finite, and LeakError when the task is
        causal and the model sees later inputs.
        """
        started = time.perf_counter()
        with self._own_rng(), float32_products(self._settings.train.precision):
            loss = float(self._train_epoch())
        shape = self._objective.step_shape
        self.epoch += 1
        if not math.isfinite(loss):
            raise NotANumberError(f"not a number at epoch {self.epoch}")
        if (stop := self._settings.train.stop) is not None:
            self._losses = [*self._losses, loss][-stop.epochs - 1 :]
        measured = self._evaluate()
        self._check_causality()
        seconds = time.perf_counter() - started
        self.seconds += seconds
        tokens = self._count_work(shape)
        return {"loss": loss, **measured, "tokens_per_s": tokens / seconds}

    def summary(self, last: Metrics) -> Metrics:
        """The final metrics: those of the last epoch, the speed over all epochs."""
        return last | {"tokens_per_s": self._tokens / max(self.seconds, 1e-9)}

    def state(self) -> dict[str, Any]:
        """Everything that the next epoch depends on, as tensors and plain values."""
        return {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "objective": self._objective.state(),
            "schedule": self._schedule.state(),
            "losses": self._losses,
            "noise": self._noise,
            "progress": (self.epoch, self.step, self.seconds, self.flops, self._tokens),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state; the settings must be those that it was made with."""
        self._model.load_state_dict(state["model"])
        self._model.after_optimiser_step()
        self._optimizer.load_state_dict(state["optimizer"])
        self._objective.restore(state["objective"])
        self._schedule.restore(state["schedule"])
        self._losses = state["losses"]
        self._noise = state["noise"].cpu()
        self.epoch, self.step, self.seconds, self.flops, self._tokens = state["progress"]

    def weights(self) -> Mapping[str, Tensor]:
        """The model as it is now, by name."""
        return self._model.state_dict()

    def outputs(self) -> WrittenOutputs | None:
        """What the model wrote for the test split after its last epoch, if its task has outputs."""
        return self._objective.outputs()

    @property
    def _has_converged(self) -> bool:
        """Whether the last losses differ by less than [train] stop says."""
        stop, losses = self._settings.train.stop, self._losses
        return stop is not None and len(losses) > stop.epochs and max(losses) - min(losses) < stop.within

    def _train_epoch(self) -> Tensor:
        """The mean loss over one epoch's steps, still on the device."""
        train, model = self._settings.train, self._model.train()
        total = torch.zeros((), device=self._device)
        for _ in range(train.steps_per_epoch):
            self.step += 1
            self._optimizer.zero_grad()
            step_loss = torch.zeros((), device=self._device)
            for part in range(train.accumulate):
                share = self._accumulate_gradients(part)
                total, step_loss = total + share, step_loss + share
            if train.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
            if train.clip_tensor_norm is not None:
                clip_grad_norm_per_tensor(model.parameters(), train.clip_tensor_norm)
            if train.clip_step_norm is None:
                self._optimizer.step()
            else:
                take_clipped_step(self._optimizer, model, train.clip_step_norm)
            self._schedule.after_step(step_loss)
            model.after_optimiser_step()
        return total / train.steps_per_epoch

    def _accumulate_gradients(self, part: int) -> Tensor:
        """Add the gradients of one part of the next batch; its share of the step's loss."""
        train = self._settings.train
        with self._autocast():
            loss = self._objective.loss(self._model, part, train.accumulate)
        penalty = self._model.penalty() if train.span_loss else None
        objective = loss if penalty is None else loss + train.span_loss * penalty
        if train.accumulate > 1:
            objective, loss = objective / train.accumulate, loss / train.accumulate
        objective.backward()
        return loss.detach()

    @torch.no_grad()
    def _evaluate(self) -> Metrics:
        """What the objective measures, without dropout."""
        last = self.epoch >= self._settings.train.epochs or self._has_converged
        with self._autocast(), float32_products(self._settings.train.precision):
            measured = self._objective.evaluate(self._model.eval(), last=last)
        self._schedule.after_epoch(measured)
        return measured

    def _check_causality(self) -> None:
        """Look whether the model sees its future: after the epochs 1, 2, 4, 8 and so on, and after the last.

        A block may begin to look ahead only when it has learnt to.
        """
        if self.epoch & (self.epoch - 1) == 0 or self.finished:
            view = self._objective.causal_view()
            if view is not None:
                check_future_is_hidden(self._model, view)

    def _count_work(self, shape: StepShape) -> float:
        """Count the operations and the tokens of an epoch; returns its tokens."""
        sequences = self._settings.train.steps_per_epoch * shape.sequences
        model, interface = self._settings.model, self._objective.interface
        self.flops += sequences * sequence_flops(model, interface, tokens=shape.tokens, past=shape.past)
        self._tokens += sequences * shape.tokens
        return sequences * shape.tokens

    def _autocast(self) -> torch.autocast:
        return autocast(self._settings.train.precision, self._device)

    @contextmanager
    def _own_rng(self) -> Iterator[None]:
        """A context in which dropout draws from this training's generator, not from the process's own."""
        cuda = self._device.type == "cuda"
        with torch.random.fork_rng(devices=[self._device] if cuda else []):
            (torch.cuda.set_rng_state if cuda else torch.set_rng_state)(self._noise)
            yield
            self._noise = torch.cuda.get_rng_state(self._device) if cuda else torch.get_rng_state()
