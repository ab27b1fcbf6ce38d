"""Predicted ceilings: lengths that a recipe cannot learn, because it sees less far than the task needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...grammar.nodes import RepeatNode
from ..catalog.tasks import AlgorithmicTask, GeneratedTask, require_algorithmic
from ..resolve.costs import longest_length, max_learnable_length, reach
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortReach:
    """Recipes, by their labels, that see less far than targets of a task of one length can depend on.

    `sees` and `needs` are in tokens to the left and to the right, `needs` None on a side that is seen.
    """

    labels: tuple[str, ...]
    task: str
    sees: tuple[float, float]
    needs: tuple[float | None, float | None]

    def __str__(self) -> str:
        """One sentence: `conv(k=3) on mqar: it reaches 2 to the left, and a target can depend on 62`."""
        sides = [
            f"{sees:g} to the {side}, and a target can depend on {needs:g}"
            for sees, needs, side in zip(self.sees, self.needs, ("left", "right"), strict=True)
            if needs is not None
        ]
        verb = "they reach" if len(self.labels) > 1 else "it reaches"
        return f"{', '.join(self.labels)} on {self.task}: {verb} {'; '.join(sides)}"


_Short = tuple[str, tuple[float, float], tuple[float | None, float | None]]
"""A task, how far a recipe sees, and how far it would have to."""


def find_short_reaches(labelled: Iterable[tuple[str, TrialSettings]]) -> tuple[ShortReach, ...]:
    """Return the inputs that trials do not see of tasks that state their reach, by recipe label."""
    found: dict[_Short, dict[str, None]] = {}
    for label, settings in labelled:
        task = settings.task
        needed = task.required_reach if isinstance(task, GeneratedTask) else None
        if needed is None:
            continue
        sees = reach(settings)
        left = needed.left if needed.left > sees.left else None
        right = needed.right if needed.right > sees.right else None
        if left is not None or right is not None:
            found.setdefault((task.name, (sees.left, sees.right), (left, right)), {})[label] = None
    return tuple(
        ShortReach(labels=tuple(labels), task=task, sees=sees, needs=needs)
        for (task, sees, needs), labels in found.items()
    )


def predict_reach_limits(labelled: Iterable[tuple[str, TrialSettings]]) -> tuple[ReachLimit, ...]:
    """Return the length ceilings that trials can meet, by recipe label; equal ones are merged."""
    limits: dict[str, ReachLimit] = {}
    for label, settings in labelled:
        if not isinstance(settings.task.spec, AlgorithmicTask):
            continue
        bound = max_learnable_length(settings)
        if bound is None or bound >= longest_length(settings):
            continue
        left, right = _binding_reach(settings, bound)
        root = read_recipe(settings.model.recipe).root
        known = limits.get(label)
        limits[label] = ReachLimit(
            labels=(label,),
            layers=root.count if isinstance(root, RepeatNode) and isinstance(root.count, int) else None,
            left=known.left if known and known.left is not None else left,
            right=known.right if known and known.right is not None else right,
            max_lengths={**(known.max_lengths if known else {}), settings.task.name: bound},
        )
    merged: dict[tuple[object, ...], ReachLimit] = {}
    for limit in limits.values():
        key = (limit.layers, limit.left, limit.right, tuple(limit.max_lengths.items()))
        labels = merged[key].labels if key in merged else ()
        merged[key] = replace(limit, labels=(*labels, *limit.labels))
    return tuple(merged.values())


def _binding_reach(settings: TrialSettings, bound: int) -> tuple[int | None, int | None]:
    """Return the reach to the left and to the right.

    Each is given only if the next length after the bound needs more.
    """
    task, sees = require_algorithmic(settings.task.name), reach(settings)
    needed = task.unguessable_reach(bound + task.length_step if bound else task.min_length)
    left = int(sees.left) if needed.left > sees.left else None
    return left, int(sees.right) if needed.right > sees.right else None
