"""The attention blocks of the vocabulary.

The widths of their projections are parameters of the block, not shares of the model's width:
an `sa` of 8 heads of 64 projects to 512 whatever the width of the model is.
"""

from __future__ import annotations

from .vocabulary import ALL, Context, Cost, Parameter, Reach, Role, Settings, Spec, register, whole


def _cost(settings: Settings, context: Context) -> Cost:
    """Four projections and two products of all positions with all, of which a causal mask saves nothing.

    The state is a key and a value of each head.
    """
    inner = whole(settings, "heads") * whole(settings, "head_width")
    projections = 4 * context.width * inner
    products = 2 * 2 * context.length**2 * inner  # queries by keys, weights by values
    return Cost(
        parameters=projections,
        flops=2 * context.length * projections + products,
        state=2 * inner,
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
