"""The most that a study's models may cost: those above it are reported, and never built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..schema.objectives import Limit
from ..schema.settings import TrialSettings
from .costs import model_cost, parameter_count, step_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBudget:
    """Bounds of a model's parameters, and of a training step's operations; of a search also its limits."""

    max_parameters: int | None = None
    max_step_flops: float | None = None
    limits: tuple[Limit, ...] = ()  # of what follows from a trial's text

    def allows(self, settings: TrialSettings) -> bool:
        """Return whether a trial's model is within all bounds."""
        return self.usage(settings) <= 1 and not any(self._exceeded(settings))

    def usage(self, settings: TrialSettings) -> float:
        """Return the model's cost as a fraction of the bound that it comes closest to; 0 without bounds."""
        return max((spent / bound for spent, bound, _ in self._bounded_costs(settings)), default=0.0)

    def describe_excess(self, settings: TrialSettings) -> str:
        """Return how the model exceeds the bounds, as `4,488,548 parameters, at most 2,000,000`.

        It is empty if nothing is exceeded.
        """
        costs = self._bounded_costs(settings)
        over = [text.format(spent, bound) for spent, bound, text in costs if spent > bound]
        return " and ".join([*over, *self._exceeded(settings)])

    def _exceeded(self, settings: TrialSettings) -> Iterator[str]:
        """Yield the limits that a model exceeds, with its values."""
        for limit in self.limits:
            if not limit.holds(value := model_cost(limit.name, settings)):
                yield f"{limit.name} {value:,g}, not {limit.sign} {limit.bound:,g}"

    def _bounded_costs(self, settings: TrialSettings) -> Iterator[tuple[float, float, str]]:
        """Each cost of a model that has a bound, with that bound and the words for both."""
        if self.max_parameters is not None:
            yield parameter_count(settings), self.max_parameters, "{:,} parameters, at most {:,}"
        if self.max_step_flops is not None:
            yield step_flops(settings), self.max_step_flops, "{:.4g} FLOPs a step, at most {:.4g}"
