"""The pools of the vocabulary, which reduce a whole sequence to one vector.

A pool has no normalisation or residual sum around it, because its output is not a position of its input.
Behind it the model continues with the vector as a sequence of one.
"""

from __future__ import annotations

from .registry import define
from .spec import UNBOUNDED, CostContext, Reach, Role, Settings, Spec

_SOURCE = "Raffel and Ellis 2016, section 1.3"


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """Return a reach over the whole sequence: the vector stands at its end."""
    return Reach(left=UNBOUNDED, right=0)


def _vector(_settings: Settings, context: CostContext) -> int:
    """Return the numbers of one position."""
    return context.width


ATTENTION_POOL = define(
    Spec(
        name="attention_pool",
        role=Role.POOL,
        summary="mean of all positions, weighted by how each scores",
        equation="e_t = tanh(w · x_t + b); α = softmax(e); y = Σ_t α_t x_t",
        source=_SOURCE,
        reach=_reach,
        window=lambda _settings, context: context.width + 1,
    )
)

MEAN_POOL = define(
    Spec(
        name="mean_pool",
        role=Role.POOL,
        summary="plain mean of all positions",
        equation="y = Σ_t x_t / T",
        source=_SOURCE,
        reach=_reach,
        window=_vector,
    )
)

LAST = define(
    Spec(
        name="last",
        role=Role.POOL,
        summary="the last position by itself",
        equation="y = x_T",
        source="Sutskever et al. 2014, section 2",
        reach=_reach,
        window=_vector,
    )
)
