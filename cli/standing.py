"""How a study stands, as it is told: a line for each reason of failures, and the same for a program."""

from __future__ import annotations

from ..studies.standing import Standing
from .figures import crop

_LONGEST_REASON = 60


def failures(now: Standing) -> list[str]:
    """A line for each reason why trials failed."""
    return [f"  {count} failed   {crop(reason, _LONGEST_REASON)}" for reason, count in now.reasons]


def as_data(now: Standing) -> dict[str, object]:
    """The same for a program: counts of all, by status, of what is left and begun, and the reasons."""
    counts = now.counts
    return {
        "trials": now.total,
        **{status: counts[status] for status in ("done", "failed", "pruned")},
        "left": now.left,
        "begun": len(now.begun),
        "weightless": len(now.weightless),
        "reasons": dict(now.reasons),
    }
