"""Predicted ceilings: lengths that a recipe cannot learn, because it sees less far than the task needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...grammar.nodes import RepeatNode
from ..catalog.tasks import AlgorithmicTask, require_algorithmic
from ..resolve.costs import max_curriculum_length, max_learnable_length, reach
from ..schema.settings import TrialSettings, read_recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachLimit:
    """Recipes that see equally far, by their labels, and the longest length of each task that they can learn.

    A length is 0 if none can be learnt; `left` and `right` are in tokens, None if a side sets no bound.
    `layers` is None if a recipe is not one repeat.
    """

    labels: tuple[str, ...]
    layers: int | None
    left: int | None
    right: int | None
    max_lengths: Mapping[str, int]

    def __str__(self) -> str:
        """One sentence: `conv(k=20) on remember: 4 layers reach 36 to the left, so no length …`."""
        sides = ((self.left, "left"), (self.right, "right"))
        far = " and ".join(f"{tokens} to the {side}" for tokens, side in sides if tokens is not None)
        does = "they reach" if len(self.labels) > 1 else "it reaches"
        if self.layers:
            does = f"{self.layers} layer{'s reach' if self.layers > 1 else ' reaches'}"
        one = next(iter(self.max_lengths)) if len(self.max_lengths) == 1 else None
        where = f" on {one}" if one else ""
        bounds = ", ".join(f"{length} on {task}" for task, length in self.max_lengths.items())
        bound = f"no length beyond {self.max_lengths[one]}" if one else f"no length beyond {bounds}"
        return f"{', '.join(self.labels)}{where}: {does} {far}, so {bound} can be learnt"


def predict_reach_limits(labelled: Iterable[tuple[str, TrialSettings]]) -> tuple[ReachLimit, ...]:
    """The ceilings that trials can meet, each trial given with its recipe's label; equal ones are merged."""
    lengths: dict[str, dict[str, int]] = {}
    sides: dict[str, tuple[int | None, int | None]] = {}
    layers: dict[str, int | None] = {}
    for label, settings in labelled:
        if not isinstance(settings.task.spec, AlgorithmicTask):
            continue
        bound = max_learnable_length(settings)
        if bound is None or bound >= max_curriculum_length(settings):
            continue
        lengths.setdefault(label, {})[settings.task.name] = bound
        left, right = sides.get(label, (None, None))
        binds = _binding_reach(settings, bound)
        sides[label] = (binds[0] if left is None else left, binds[1] if right is None else right)
        layers[label] = _layers(settings)
    groups: dict[tuple[object, ...], list[str]] = {}
    for label, found in lengths.items():
        groups.setdefault((layers[label], sides[label], tuple(found.items())), []).append(label)
    return tuple(
        ReachLimit(
            labels=tuple(labels),
            layers=layers[labels[0]],
            left=sides[labels[0]][0],
            right=sides[labels[0]][1],
            max_lengths=lengths[labels[0]],
        )
        for labels in groups.values()
    )


def _binding_reach(settings: TrialSettings, bound: int) -> tuple[int | None, int | None]:
    """The reach to the left and to the right, each only if the next length after the bound needs more."""
    task, sees = require_algorithmic(settings.task.name), reach(settings)
    asked = task.unguessable_reach(bound + task.length_step if bound else task.min_length)
    left = int(sees.left) if asked.left > sees.left else None
    return left, int(sees.right) if asked.right > sees.right else None


def _layers(settings: TrialSettings) -> int | None:
    """The number of copies where the recipe is one repeat, else None."""
    root = read_recipe(settings.model.recipe).root
    return root.count if isinstance(root, RepeatNode) and isinstance(root.count, int) else None
