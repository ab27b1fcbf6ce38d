"""When a training ends before its last epoch: a metric gets no better, or the loss changes no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ...studies.catalog.metrics import METRICS
from ...studies.schema.training import EarlyStoppingSettings, StopSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The best value of a metric so far, None before the first, and the epochs without a better one since."""

    best: float | None = None
    waited: int = 0

    def after(self, settings: EarlyStoppingSettings, measured: Mapping[str, float]) -> Patience:
        """The patience after an epoch; what is not a number is not better."""
        value = measured[settings.metric]
        if self.best is None and value == value:  # noqa: PLR0124 -- not a number
            return Patience(best=value)
        gain = value - (self.best or 0.0)
        if not METRICS[settings.metric].higher_is_better:
            gain = -gain
        if self.best is not None and gain > settings.min_change:
            return Patience(best=value)
        return replace(self, waited=self.waited + 1)

    def is_over(self, settings: EarlyStoppingSettings) -> bool:
        """Whether that many epochs have brought nothing."""
        return self.waited >= settings.patience

    def state(self) -> dict[str, float | int | None]:
        """Everything needed to resume, as plain values."""
        return asdict(self)


def last_losses(stop: StopSettings | None, losses: Sequence[float]) -> list[float]:
    """Those of the losses of all epochs so far that decide whether a training has converged."""
    return [] if stop is None else list(losses[-stop.epochs - 1 :])


def have_converged(stop: StopSettings | None, losses: Sequence[float]) -> bool:
    """Whether these last losses differ by less than [train] stop says."""
    return stop is not None and len(losses) > stop.epochs and max(losses) - min(losses) < stop.within
