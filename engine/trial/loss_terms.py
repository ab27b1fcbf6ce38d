"""Terms that plug-ins add to the loss, from the model's activations in a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import ActivememError
from ...plugins import plugin_errors
from ...studies.catalog.train_parts import LossTerm, TrainingStep
from ...studies.schema.settings import TrialSettings
from ..core.models import outline_model
from ..core.placement import own_states, own_states_on, to_device
from ..objectives.base import Objective


class LossTermError(ActivememError):
    """A loss term that watches what a model lacks, or that is not one number."""


class Scored(NamedTuple):
    """The inputs, outputs and targets of a part of a step."""

    inputs: Tensor
    outputs: Tensor
    targets: Tensor


class LossTerms:
    """The terms of one training, with their states and their sums over the epoch.

    Raises LossTermError for a pattern of modules that the model does not have.
    """

    def __init__(self, terms: Sequence[LossTerm], model: nn.Module, device: torch.device) -> None:
        self._terms, self._model, self._device = terms, model, device
        names = [name for name, _ in model.named_modules() if name]
        self._watched = {term.name: watched_modules(term, names) for term in terms}
        self._states: dict[str, dict[str, Any]] = {term.name: {} for term in terms}
        self._scored: Scored | None = None
        self._activations: list[tuple[str, Tensor]] = []
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Reset the sums before the first step of an epoch."""
        self._sums = {term.name: torch.zeros((), device=self._device) for term in self._terms}

    @contextmanager
    def watching(self, objective: Objective[Any]) -> Iterator[None]:
        """Keep what the terms need of a loss that is computed within a context."""
        self._scored, self._activations = None, []
        objective.observer = self._take
        modules = dict(self._model.named_modules())
        with ExitStack() as hooks:
            for name in dict.fromkeys(name for names in self._watched.values() for name in names):
                hooks.enter_context(_removed(modules[name].register_forward_hook(partial(self._keep, name))))
            try:
                yield
            finally:
                objective.observer = None

    def after_part(self, step: int, parts: int) -> Tensor:
        """Return what the terms add to the loss of the part that was just computed, one of `parts`."""
        assert self._scored is not None, "an objective shows what it has scored"
        total = torch.zeros((), device=self._device)
        for term in self._terms:
            value = self._compute(term, self._scored, step)
            self._sums[term.name] = self._sums[term.name] + value.detach() / parts
            total = total + term.weight * value
        self._scored, self._activations = None, []
        return total

    def metrics(self, steps: int) -> dict[str, float]:
        """Return the mean of each term over the steps of an epoch."""
        return {name: float(total) / steps for name, total in self._sums.items()}

    def state(self) -> dict[str, Any]:
        """Everything needed to resume between two steps."""
        return {"sums": self._sums, **own_states(self._states, self._device)}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state, whose tensors are anywhere."""
        self._sums = to_device(state["sums"], self._device)
        self._states = own_states_on(state, self._device)

    def _compute(self, term: LossTerm, scored: Scored, step: int) -> Tensor:
        watched = self._watched[term.name]
        activations = [each for each in self._activations if each[0] in watched]
        if missing := [name for name in watched if all(name != each for each, _ in activations)]:
            told = f"expected tensors of the modules that it watches, got none of {', '.join(missing)}"
            raise LossTermError(f"{term.name}: {told}")
        with plugin_errors("loss term", term.name, type(term)):
            value: object = term.compute(
                TrainingStep(
                    model=self._model,
                    **scored._asdict(),
                    activations=activations,
                    step=step,
                    state=self._states[term.name],
                )
            )
        if not isinstance(value, Tensor) or value.dim():
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise LossTermError(f"{term.name}: expected one number as a tensor, got {got}")
        return value.float()

    def _take(self, inputs: Tensor, outputs: Tensor, targets: Tensor) -> None:
        self._scored = Scored(inputs, outputs, targets)

    def _keep(self, name: str, _module: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and torch.is_grad_enabled():
            self._activations.append((name, output))


def check_watched(all_settings: Iterable[TrialSettings]) -> None:
    """Raise LossTermError, with all of them, for terms that watch what a model of these trials lacks."""
    distinct = {
        (settings.model, settings.task.interface, settings.train.loss_terms): settings
        for settings in all_settings
        if any(term.watches for term in settings.train.loss_terms)
    }
    faults: list[str] = []
    for settings in distinct.values():
        names = [name for name, _ in outline_model(settings).named_modules() if name]
        for term in settings.train.loss_terms:
            try:
                watched_modules(term, names)
            except LossTermError as error:
                faults.append(f"  {settings.model.recipe}: {error}")
    if faults:
        raise LossTermError("\n".join(["these models lack what loss terms watch", *faults]))


def watched_modules(term: LossTerm, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the modules that a term watches; LossTermError for a pattern that fits none."""
    for pattern in term.watches:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise LossTermError(f"{term.name}: expected a pattern of modules of the model, got '{pattern}'")
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in term.watches))


@contextmanager
def _removed(hook: torch.utils.hooks.RemovableHandle) -> Iterator[None]:
    try:
        yield
    finally:
        hook.remove()
