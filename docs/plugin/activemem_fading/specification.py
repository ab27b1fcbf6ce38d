"""What `fading_memory` is, what it costs and how far it sees; loaded wherever a recipe names it."""

from __future__ import annotations

from activemem.grammar import UNBOUNDED, Context, Cost, Parameter, Reach, Role, Settings, Spec


def _cost(_settings: Settings, context: Context) -> Cost:
    """The average as one product a channel, and the output map.

    The weights of the average, and what they are made from, are kept once for a batch; the average is kept
    for each sequence. In generation the average is all that is needed of the past.
    """
    width, pairs = context.width, context.length**2
    return Cost(
        parameters=width + width**2,
        flops=2 * pairs * width + 2 * context.length * width**2,
        window=width,
        saved=context.length * width,
        saved_once=pairs * width + pairs,
    )


def _reach(_settings: Settings, context: Context) -> Reach:
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
