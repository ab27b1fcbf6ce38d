"""What `fading_memory` is, what it costs and how far it sees; loaded wherever a recipe names it."""

from __future__ import annotations

from activemem.grammar import UNBOUNDED, Cost, CostContext, Parameter, Reach, Role, Settings, Spec


def _cost(_settings: Settings, context: CostContext) -> Cost:
    """The average as one product a channel, and the output map.

    The weights of the average, the distances, three steps of the rate and the mask, a byte a pair, are saved
    once for a batch; the average is saved for each sequence, and is all that generation needs of the past.
    """
    width, pairs = context.width, context.length**2
    return Cost(
        parameters=width + width**2,
        flops=2 * pairs * width + 2 * context.length * width**2,
        window=width,
        saved=context.length * width,
        saved_once=(width + 1) * pairs + 3 * width + (pairs // 4 if context.causal else 0),
    )


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """All that a mask does not hide."""
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


FADING_MEMORY = Spec(
    name="fading_memory",
    role=Role.MIXER,
    parameters=(
        Parameter(
            name="half_life",
            kind="real",
            default=8.0,
            low=0.5,
            high=10_000,
            meaning="distance in tokens at which a weight begins at one half",
        ),
    ),
    summary="average of the sequence that fades with distance, at a trained rate for each channel",
    equation="y_t = W · Σ_s (1 − λ) λ^|t − s| ⊗ x_s",
    source="the example in activemem's documents",
    cost=_cost,
    reach=_reach,
)
