"""Ranking of outputs of different lengths (Wu et al. 2016, section 7)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """rank = log P / lp + cp, with the exponent α of lp and the factor β of cp, neither below 0.

    lp = ((5 + length) / 6)^α, the end counted; cp = β · Σ log min(coverage, 1) over the source's positions,
    the coverage of one the sum of all weights that it was attended with.
    """

    length_penalty: float = 0.0
    coverage_penalty: float = 0.0

    def normalise(self, scores: Tensor, lengths: Tensor | int) -> Tensor:
        """Divide log P by lp: the rank without cp, and so the most that any output of this score can have."""
        return scores / ((5.0 + lengths) / 6.0) ** self.length_penalty

    def coverage_term(self, coverage: Tensor, valid: Tensor) -> Tensor:
        """Return the coverage penalty (rows,) of coverages (rows, n).

        Only the valid positions of sources count.
        """
        least = torch.finfo(coverage.dtype).tiny  # a weight that became 0 says nothing of the others
        logs = torch.log(coverage.clamp(least, 1.0)).masked_fill(~valid, 0.0)
        return self.coverage_penalty * logs.sum(1, dtype=torch.float64)
