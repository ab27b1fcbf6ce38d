"""One trial in training: everything that its next step depends on, an epoch at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..blocks import build
from ..grammar import analyse, parse
from ..studies.settings import Settings
from .curriculum import Curriculum
from .optimisers import optimizer, schedule
from .seeds import derive
from .tasks import task

Metrics = dict[str, float]


class NotANumberError(ArithmeticError):
    """The loss of an epoch is not a finite number."""


class Training:
    """The model, optimiser, generators and curriculum of one trial on one device.

    The generators are its own, dropout's included, so several can take turns in one process, and a state that
    is restored goes on bit for bit.
    """

    def __init__(self, settings: Settings, device: torch.device) -> None:
        self._settings, self._device = settings, device
        seed, train, model = settings.seed, settings.train, settings.model
        self._task = task(settings.task.name)
        self._spec = self._task.spec
        self._recipe = parse(model.recipe)
        self._model = build(
            self._recipe,
            d_model=model.d_model,
            vocab=self._spec.vocab,
            norm=model.norm,
            position=model.position,
            dropout=model.dropout,
            generator=torch.Generator().manual_seed(derive(seed, "initialisation")),
        ).to(device)
        self._optimizer = optimizer(train.optimizer, self._model.parameters())
        self._factor = schedule(train.schedule, train.epochs * train.steps_per_epoch)
        self._data = torch.Generator(device).manual_seed(derive(seed, "data"))
        self._fresh = torch.Generator(device).manual_seed(derive(seed, "evaluation"))
        self._noise = torch.Generator(device).manual_seed(derive(seed, "dropout")).get_state()
        self._curriculum = Curriculum(
            length=train.curriculum.start, step=self._spec.step, grow_at=train.curriculum.grow_at
        )
        self.parameters = sum(weights.numel() for weights in self._model.parameters())
        self.epoch = self.step = 0
        self.seconds = self.flops = self._tokens = 0.0

    @property
    def finished(self) -> bool:
        """Whether the last epoch is over."""
        return self.epoch >= self._settings.train.epochs

    def advance(self) -> Metrics:
        """Train one epoch, evaluate on one fresh batch, grow the length if all of it is right; its metrics.

        Raises NotANumberError when the mean loss of the epoch is not finite.
        """
        train, length = self._settings.train, self._curriculum.length
        started = time.perf_counter()
        with self._own_noise():
            loss = float(self._steps(length))
        self.epoch += 1
        tokens = train.steps_per_epoch * train.batch_size * self._spec.sequence_length(length)
        if not math.isfinite(loss):
            raise NotANumberError(f"not a number at epoch {self.epoch}")
        accuracy = self._evaluate(length)
        self._curriculum.record(accuracy)
        seconds = time.perf_counter() - started
        self.seconds += seconds
        self.flops += train.steps_per_epoch * train.batch_size * self._step_flops(length)
        self._tokens += tokens
        return {
            "loss": loss,
            "accuracy": accuracy,
            "length": float(length),
            "max_length": float(self._curriculum.passed),
            "tokens_per_s": tokens / seconds,
        }

    def summary(self, last: Metrics) -> Metrics:
        """The final metrics: those of the last epoch, the speed over all epochs."""
        return last | {"tokens_per_s": self._tokens / max(self.seconds, 1e-9)}

    def state(self) -> dict[str, Any]:
        """Everything that the next epoch depends on, as tensors and plain values."""
        return {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "data": self._data.get_state(),
            "fresh": self._fresh.get_state(),
            "noise": self._noise,
            "curriculum": self._curriculum.state(),
            "progress": (self.epoch, self.step, self.seconds, self.flops, self._tokens),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; the settings must be those that it was made with."""
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._data.set_state(state["data"].cpu())
        self._fresh.set_state(state["fresh"].cpu())
        self._noise = state["noise"].cpu()
        self._curriculum = Curriculum(**state["curriculum"])
        self.epoch, self.step, self.seconds, self.flops, self._tokens = state["progress"]

    def _steps(self, length: int) -> Tensor:
        """The mean loss over one epoch's steps, still on the device."""
        train, model = self._settings.train, self._model.train()
        total = torch.zeros((), device=self._device)
        for _ in range(train.steps_per_epoch):
            self.step += 1
            batch = self._task.batch(train.batch_size, length, self._data, self._device)
            # (batch, tokens, vocab) against (batch, tokens)
            loss = functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
            self._optimizer.zero_grad()
            loss.backward()
            if train.clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip_norm)
            if train.schedule.name != "constant" or train.schedule.warmup:
                for group in self._optimizer.param_groups:
                    group["lr"] = train.optimizer.lr * self._factor(self.step)
            self._optimizer.step()
            total += loss.detach()
        return total / train.steps_per_epoch

    @torch.no_grad()
    def _evaluate(self, length: int) -> float:
        """The fraction of tokens that are right on one fresh batch, without dropout."""
        batch = self._task.batch(self._settings.train.batch_size, length, self._fresh, self._device)
        predicted = self._model.eval()(batch.inputs).argmax(-1)
        return float((predicted == batch.targets).double().mean())

    def _step_flops(self, length: int) -> float:
        """Training FLOPs of one sequence."""
        return analyse(
            self._recipe,
            d_model=self._settings.model.d_model,
            length=self._spec.sequence_length(length),
            vocab=self._spec.vocab,
            norm=self._settings.model.norm,
        ).training_flops

    @contextmanager
    def _own_noise(self) -> Iterator[None]:
        """Dropout draws from this training's stream; the process's own stream is left as it was."""
        cuda = self._device.type == "cuda"
        with torch.random.fork_rng(devices=[self._device] if cuda else []):
            (torch.cuda.set_rng_state if cuda else torch.set_rng_state)(self._noise)
            yield
            self._noise = torch.cuda.get_rng_state(self._device) if cuda else torch.get_rng_state()
