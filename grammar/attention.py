"""The attention blocks of the vocabulary.

The widths of their projections are parameters of the block, not shares of the model's width:
an `sa` of 8 heads of 64 projects to 512 whatever the width of the model is.
"""

from __future__ import annotations

from .vocabulary import ALL, Context, Cost, Parameter, Reach, Role, Settings, Spec, register, whole

SHORT = 64
"""Up to this length a CPU computes plain products and keeps their weights; the fused kernel keeps none."""


def _cost(settings: Settings, context: Context) -> Cost:
    """Four projections and two products of all positions with all, of which a causal mask saves nothing.

    The state is a key and a value of each head. Saved are queries, keys, values and what the heads give. To
    that come a short sequence's weights and its causal mask, of one byte a pair; or of a longer one a sum for
    each query, and what the heads give once more, as laid out for the last projection.
    """
    heads, length = whole(settings, "heads"), context.length
    inner = heads * whole(settings, "head_width")
    projections = 4 * context.width * inner
    products = 2 * 2 * length**2 * inner  # queries by keys, weights by values
    short, relaid = length <= SHORT, heads > 1
    return Cost(
        parameters=projections,
        flops=2 * length * projections + products,
        state=2 * inner,
        saved=length * (4 * inner + heads * length if short else (4 + relaid) * inner + heads),
        saved_once=(length**2 + 3) // 4 if short and context.causal else 0,
    )


def _reach(_settings: Settings, context: Context) -> Reach:
    """All that a mask does not hide."""
    return Reach(left=ALL, right=0 if context.causal else ALL)


SA = register(
    Spec(
        name="sa",
        role=Role.MIXER,
        parameters=(
            Parameter(name="heads", kind="integer", default=8, low=1, high=1024, meaning="number of heads"),
            Parameter(
                name="head_width", kind="integer", default=64, low=1, high=4096, meaning="width of one head"
            ),
        ),
        summary="multi-head softmax self-attention",
        equation="y = concat_h softmax(Q_h K_hᵀ / √head_width) V_h · W_o, without biases",
        source="Vaswani et al. 2017; widths of the program of Dowdell and Zhang 2019",
        cost=_cost,
        reach=_reach,
    )
)
