"""Coordinate check of activations across widths (Yang et al. 2022, D.1).

It measures how much the activations of each layer change in a few training steps, for each width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ActivememError
from ...studies.catalog.optimisers import OwnScheduleSettings
from ...studies.schema.factors import SEED, level_name
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study
from ...studies.text.units import plural
from ..core.process import derive_seed
from ..trial.training import Training
from .width_changes import LayerChange, ModelCoordinates, StudyCoordinates

STEPS = 5
"""The number of training steps of each model."""

_SEQUENCES, _MOST_TOKENS = 16, 64


class CoordinateError(ActivememError):
    """Error for models whose activations cannot be compared across widths."""


def check_coordinates(study: Study, data: Path = Path("data"), *, steps: int = STEPS) -> StudyCoordinates:
    """Compare the layers of a study's models across the widths in [ladder].

    `compare_widths` describes the comparison. Raise CoordinateError for a study without a ladder.
    """
    if not study.design.ladder:
        raise CoordinateError(f"{study.name} has no [ladder]: expected a study with the widths to compare")
    names = [
        name
        for name, levels in study.factors.items()
        if name not in (*study.design.ladder, SEED) and len(levels) > 1
    ]
    groups: dict[str, dict[int, list[TrialSettings]]] = {}
    for trial in study.trials:
        model = ", ".join(f"{name}={level_name(trial.levels[name])}" for name in names)
        by_width = groups.setdefault(model, {})
        by_width.setdefault(trial.settings.model.d_model, []).append(trial.settings)
    models = list[ModelCoordinates]()
    for model, by_width in groups.items():
        layers = compare_widths(by_width, steps, data)
        flat = not any(each.grows or each.shrinks for each in layers)
        models.append(ModelCoordinates(model=model, flat=flat, layers=layers))
    return StudyCoordinates(study=study.name, steps=steps, models=tuple(models))


def compare_widths(
    trials: Mapping[int, Sequence[TrialSettings]], steps: int, data: Path = Path("data")
) -> tuple[LayerChange, ...]:
    """Return how much the activations of each layer change in training, at each width.

    The models take `steps` steps with a constant learning rate. The change is averaged over the trials of a
    width. All trials are trained on the CPU, and the activations are measured for the same inputs before and
    after these steps. Raise CoordinateError for fewer than two widths, for models whose layers differ across
    widths, for models that read two sequences, and if activations are no longer finite.
    """
    if len(trials) < 2:
        raise CoordinateError(f"expected at least two widths, got {len(trials)}")
    found = {
        width: _mean([_changes(settings, steps, data) for settings in own]) for width, own in trials.items()
    }
    layers = [tuple(each) for each in found.values()]
    if len(set(layers)) > 1:
        counts = ", ".join(f"{len(each)} at width {width}" for width, each in found.items())
        raise CoordinateError(
            f"expected the same number of layers at each width, got {counts}: keep the depth fixed"
        )
    diverged = [width for width, each in found.items() if not all(map(math.isfinite, each.values()))]
    if diverged:
        widths = ", ".join(map(str, diverged))
        raise CoordinateError(
            f"expected finite activations after {plural(steps, 'step')}, got NaN or inf at width "
            f"{widths}: use a smaller learning rate or fewer steps"
        )
    return tuple(_layer(name, {width: each[name] for width, each in found.items()}) for name in layers[0])


def _layer(name: str, changes: Mapping[int, float]) -> LayerChange:
    # activations that do not change at all have no logarithm
    grown = np.maximum(list(changes.values()), 1e-30)
    exponent, _ = np.polyfit(np.log(list(changes)), np.log(grown), 1)
    return LayerChange(layer=name, changes=dict(changes), exponent=float(exponent))


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: sum(each[name] for each in found) / len(found) for name in found[0]}


def _changes(settings: TrialSettings, steps: int, data: Path) -> dict[str, float]:
    # one step more than is taken, so that the epoch does not end
    longer = settings.with_train(
        epochs=1, steps_per_epoch=steps + 1, seconds=None, schedule=OwnScheduleSettings()
    )
    training = Training.begin(longer, torch.device("cpu"), data)
    inputs = _inputs(training)
    before = _activations(training.model, inputs)
    for _ in range(steps):
        training.take_steps()
    after = _activations(training.model, inputs)
    return {name: float((after[name] - before[name]).abs().mean()) for name in before}


def _inputs(training: Training) -> Tensor:
    interface = training.objective.interface
    tokens = min(training.settings.task.interface.tokens or _MOST_TOKENS, _MOST_TOKENS)
    generator = torch.Generator().manual_seed(derive_seed(0, "coordinates"))
    if interface.columns is not None:
        return torch.randn(_SEQUENCES, tokens, interface.columns, generator=generator)
    if interface.vocab is None or interface.source_vocab is not None:
        raise CoordinateError("expected a model that reads one sequence, got one that reads two")
    return torch.randint(interface.vocab, (_SEQUENCES, tokens), generator=generator)


@torch.no_grad()
def _activations(model: nn.Module, inputs: Tensor) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_module: nn.Module, _inputs: object, outputs: Tensor) -> None:
            found[name] = outputs.detach().clone()

        return hook

    body = model.get_submodule("body.layers")
    places = {"embedding": model.get_submodule("embedding")}
    places |= {f"layer {number}": layer for number, layer in enumerate(body.children(), 1)}
    handles = [module.register_forward_hook(keep(name)) for name, module in places.items()]
    try:
        found_output: Tensor = model.eval()(inputs)
    finally:
        for handle in handles:
            handle.remove()
    return {**found, "output": found_output}
