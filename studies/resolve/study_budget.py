"""The most that a study's models may cost: those above are reported, and never built."""

from __future__ import annotations

from dataclasses import dataclass

from ..schema.settings import TrialSettings
from .costs import REFERENCE_TOKENS, cost, step_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyBudget:
    """Bounds of a model's parameters, and of a training step's operations."""

    max_parameters: int | None = None
    max_step_flops: float | None = None

    def allows(self, settings: TrialSettings) -> bool:
        """Whether a trial's model is within both bounds."""
        return self.usage(settings) <= 1

    def usage(self, settings: TrialSettings) -> float:
        """The model's cost as a fraction of the bound that it comes closest to; 0 without bounds."""
        parameters = (
            cost(settings, REFERENCE_TOKENS).parameters / self.max_parameters if self.max_parameters else 0.0
        )
        return max(parameters, step_flops(settings) / self.max_step_flops if self.max_step_flops else 0.0)

    def describe_excess(self, settings: TrialSettings) -> str:
        """How the model exceeds the bounds, as `4,488,548 parameters, at most 2,000,000`, or nothing."""
        parts = []
        if self.max_parameters is not None:
            parameters = cost(settings, REFERENCE_TOKENS).parameters
            if parameters > self.max_parameters:
                parts.append(f"{parameters:,} parameters, at most {self.max_parameters:,}")
        if self.max_step_flops is not None:
            flops = step_flops(settings)
            if flops > self.max_step_flops:
                parts.append(f"{flops:.4g} FLOPs a step, at most {self.max_step_flops:.4g}")
        return " and ".join(parts)
