"""Passes of packs that are recorded once for each length, number of trials and symbols of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ..graphs.recorded_work import RecordedWork, Recordings, Work, require_same_weights
from ..trial.memory_retries import SPARES
from ..trial.training import Training
from .stacked_passes import StackedPasses


class GraphedPasses(StackedPasses):
    """Passes by recordings, which read and write tensors and generators that stay the same.

    Other trainings of the form, as many, can take the place of those that they were recorded for. Where a
    recording cannot be made, they are computed from then on as they would be without.
    """

    def __init__(self, trainings: Sequence[Training], recordings: Recordings) -> None:
        super().__init__(trainings)
        self._recorded = RecordedWork(recordings)
        self._written = next(trainings[0].model.parameters()).new_zeros(len(trainings))
        self._gradients: dict[str, Tensor] | None = None

    def __len__(self) -> int:
        return len(self._recorded)

    @property
    def reason(self) -> str | None:
        """Why nothing is recorded any more."""
        return self._recorded.reason

    def take(self, batch: Sequence[Tensor]) -> Tensor:
        """The losses (trainings,) of the next batches, stacked; the weights then have their gradients."""
        if not self._recorded.do(batch, self._make_work, self.noises):
            for weight in self.weights.values():
                weight.grad = None
            return super().take(batch)
        assert self._gradients is not None, "a recording was made"
        for name, gradient in self._gradients.items():
            self.weights[name].grad = gradient
        return self._written.clone()

    def _make_work(self, batch: tuple[Tensor, ...]) -> Work:
        """What computes the losses of stacked batches and their gradients, in place."""
        calls, gradients = self._random_calls(batch), self._own_gradients(batch)

        def work() -> None:
            for name, gradient in gradients.items():
                self.weights[name].grad = gradient.zero_()
            self._written.copy_(self._compute(batch, calls))

        return work

    def _own_gradients(self, batch: Sequence[Tensor]) -> dict[str, Tensor]:
        """The tensors for gradients, of the weights that a step gives any: the same at each length."""
        before = [noise.get_state() for noise in self.noises]
        for weight in self.weights.values():
            weight.grad = None
        try:
            super().take(batch)
        finally:
            for noise, state in zip(self.noises, before, strict=True):
                noise.set_state(state)
        given = {name: weight for name, weight in self.weights.items() if weight.grad is not None}
        if self._gradients is None:
            self._gradients = {name: torch.zeros_like(weight) for name, weight in given.items()}
        require_same_weights(self._gradients, given)
        return self._gradients


class GraphedPacks:
    """The recorded passes of a worker's packs, by form and the symbols of each trial, while any is kept.

    Each has stacked weights and gradients, which go where memory is short, but for those in use.
    """

    def __init__(self, recordings: Recordings) -> None:
        self._recordings, self._passes = recordings, dict[tuple[str, tuple[int, ...]], GraphedPasses]()
        self._given_up = set[str]()
        self._in_use: GraphedPasses | None = None
        SPARES.add(self)

    def __len__(self) -> int:
        return len(self._passes)

    def passes(self, form: str, trainings: Sequence[Training]) -> GraphedPasses | None:
        """Those of a pack, whose trainings are of this form; None where they could not be recorded."""
        key = form, tuple(training.num_symbols for training in trainings)
        self._given_up |= {each for (each, _), found in self._passes.items() if found.reason is not None}
        self._passes = {each: found for each, found in self._passes.items() if each == key or len(found)}
        if form in self._given_up:
            self._passes.pop(key, None)
            return None
        if key not in self._passes:
            self._passes[key] = GraphedPasses(trainings, self._recordings)
        return self._passes[key]

    @contextmanager
    def lent(self, form: str, trainings: Sequence[Training]) -> Iterator[GraphedPasses | None]:
        """A context in which what `passes` gives is in use."""
        self._in_use = self.passes(form, trainings)
        try:
            yield self._in_use
        finally:
            self._in_use = None

    def give_back(self) -> None:
        """Have none but those in use."""
        self._passes = {key: found for key, found in self._passes.items() if found is self._in_use}

    def clear(self) -> None:
        """Have none any more; what they held is free."""
        self._passes.clear()
