"""The pools of the vocabulary: they make one vector of a whole sequence.

Neither a normalisation nor a residual sum stands around a pool, for its output is no step of the sequence it
was given. Behind it the model goes on with the vector, as a sequence of one.
"""

from __future__ import annotations

from .registry import register
from .spec import UNBOUNDED, Cost, CostContext, Reach, Role, Settings, Spec

_SOURCE = "Raffel and Ellis 2016, section 1.3"


def _attention(_settings: Settings, context: CostContext) -> Cost:
    """A score of each position and a weighted sum of all; saved are tanh, and the weights."""
    return Cost(
        parameters=context.width + 1,
        flops=2 * 2 * context.length * context.width,
        window=context.width + 1,
        saved=2 * context.length,
    )


def _mean(_settings: Settings, context: CostContext) -> Cost:
    """One sum of all positions."""
    return Cost(parameters=0, flops=0, window=context.width, saves_input=False)


def _last(_settings: Settings, context: CostContext) -> Cost:
    """One position is taken."""
    return Cost(parameters=0, flops=0, window=context.width, saves_input=False)


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    """The vector stands at the end of the sequence, all of which is to its left."""
    return Reach(left=UNBOUNDED, right=0)


ATTENTION_POOL = register(
    Spec(
        name="attention_pool",
        role=Role.POOL,
        summary="mean of all positions, weighted by how each scores",
        equation="e_t = tanh(w · x_t + b); α = softmax(e); y = Σ_t α_t x_t",
        source=_SOURCE,
        cost=_attention,
        reach=_reach,
    )
)

MEAN_POOL = register(
    Spec(
        name="mean_pool",
        role=Role.POOL,
        summary="plain mean of all positions",
        equation="y = Σ_t x_t / T",
        source=_SOURCE,
        cost=_mean,
        reach=_reach,
    )
)

LAST = register(
    Spec(
        name="last",
        role=Role.POOL,
        summary="the last position by itself",
        equation="y = x_T",
        source="Sutskever et al. 2014, section 2",
        cost=_last,
        reach=_reach,
    )
)
