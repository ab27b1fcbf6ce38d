"""Estimate of an output's length from the length of its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLine:
    """An output has `slope` times as many symbols as its source, and `constant` more, the ends counted.

    The numbers are exact, so that what is rounded up is the same on every machine.
    """

    slope: Fraction
    constant: Fraction

    @classmethod
    def fit(cls, sources: Tensor, targets: Tensor) -> Self:
        """Return the line of least squares through the lengths (pairs,) of sources and targets.

        They are whole numbers. If all sources have one length, it is the mean of the targets. At least one
        pair is needed.
        """
        sources, targets = sources.long(), targets.long()
        count, total, written = len(sources), int(sources.sum()), int(targets.sum())
        spread = count * int(sources.dot(sources)) - total**2
        together = count * int(sources.dot(targets)) - total * written
        slope = Fraction(together, spread) if spread else Fraction(0)
        return cls(slope=slope, constant=(written - slope * total) / count)

    def estimate(self, lengths: Tensor) -> Tensor:
        """Return the estimated output length of each source length (rows,), rounded up; it may be below 1."""
        found = [math.ceil(self.slope * length + self.constant) for length in lengths.tolist()]
        return torch.tensor(found, device=lengths.device)

    def to_dict(self) -> dict[str, str]:
        """Return the line as plain values that `from_dict` reads."""
        return {"slope": str(self.slope), "constant": str(self.constant)}

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> Self:
        """Return the line that `to_dict` wrote."""
        return cls(slope=Fraction(values["slope"]), constant=Fraction(values["constant"]))
