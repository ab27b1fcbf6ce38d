"""All-attention: persistent vectors, which every position attends to, in the place of a feed-forward layer.

Position vectors are on keys alone, and a span begins with the position before, unless parameters say
otherwise; the window is that of `sa(pos=relative)`. Each head has N persistent keys and N values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .attention import ADAPTIVE, HEAD_WIDTH, HEADS, POS_VALUES, RAMP, SELF, check_ramp, window_from_settings
from .attention_window import window_attention_cost
from .registry import register
from .spec import Cost, CostContext, Parameter, Reach, Role, Settings, Spec, Working, as_int

VECTORS = Parameter(name="N", kind="integer", low=0, high=1048576, meaning="persistent vectors of each head")
SPAN = Parameter(
    name="span",
    kind="integer",
    default=1024,
    low=1,
    high=65536,
    meaning="tokens seen to a side",
)

_PARAMETERS = (VECTORS, SPAN, HEADS, HEAD_WIDTH, ADAPTIVE, RAMP, SELF, POS_VALUES)
_SOURCE = "Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory)"


def _add_persistent_vectors(
    base_cost: Cost, settings: Settings, block_context: CostContext, *, heads: int, width: int, weights: bool
) -> Cost:
    """The `base_cost` of a window with that of N vectors in each of `heads` heads, `width` wide.

    Saved are the scaled vectors of a batch, and where `weights`, those of a softmax of their own, whose
    gradients and those of scores are held for a while.
    """
    count, length = as_int(settings, "N"), block_context.length
    kept = block_context.saved_weights(heads * length * count) if weights else 0
    working = max(base_cost.working.numbers, 2 * heads * length * count if weights else 0)
    return replace(
        base_cost,
        parameters=base_cost.parameters + 2 * count * heads * width,
        flops=base_cost.flops + 4 * length * count * heads * width,
        saved=base_cost.saved + kept,
        saved_once=base_cost.saved_once + 2 * count * heads * width,
        working=Working(numbers=working),
    )


def _all_attn_cost(settings: Settings, context: CostContext) -> Cost:
    """One softmax over the window and the vectors."""
    heads, width, count = (as_int(settings, name) for name in ("heads", "head_width", "N"))
    cost = window_attention_cost(
        window_from_settings(settings, causal=context.causal), context, heads=heads, persistent_vectors=count
    )
    return _add_persistent_vectors(cost, settings, context, heads=heads, width=width, weights=False)


def _attn_split_cost(settings: Settings, context: CostContext) -> Cost:
    """A softmax over the window, and one over the vectors."""
    heads, width = as_int(settings, "heads"), as_int(settings, "head_width")
    window, added = window_from_settings(settings, causal=context.causal), as_int(settings, "N") > 0
    cost = window_attention_cost(window, context, heads=heads, adds_to_output=added)
    return _add_persistent_vectors(cost, settings, context, heads=heads, width=width, weights=True)


def _head_split_cost(settings: Settings, context: CostContext) -> Cost:
    """Half of the heads have keys and values of the window, half of them vectors."""
    heads, width = as_int(settings, "heads"), as_int(settings, "head_width")
    window = window_from_settings(settings, causal=context.causal)
    cost = window_attention_cost(window, context, heads=heads // 2, query_heads=heads, adds_to_output=True)
    return _add_persistent_vectors(cost, settings, context, heads=heads // 2, width=width, weights=True)


def _single_head_cost(settings: Settings, context: CostContext) -> Cost:
    """Vectors as wide as all heads together; for their scores the queries are laid out, and kept, again."""
    inner = as_int(settings, "heads") * as_int(settings, "head_width")
    window, added = window_from_settings(settings, causal=context.causal), as_int(settings, "N") > 0
    cost = window_attention_cost(window, context, heads=as_int(settings, "heads"), adds_to_output=added)
    cost = _add_persistent_vectors(cost, settings, context, heads=1, width=inner, weights=True)
    return replace(cost, saved=cost.saved + context.length * inner) if as_int(settings, "N") else cost


def _ff_attn_cost(settings: Settings, context: CostContext) -> Cost:
    """Two maps, and vectors as wide as the model; saved are scaled queries and what the vectors give."""
    size, length = context.width**2, context.length
    base_cost = Cost(parameters=2 * size, flops=4 * length * size, saved=2 * length * context.width)
    return _add_persistent_vectors(base_cost, settings, context, heads=1, width=context.width, weights=True)


def _reach(settings: Settings, context: CostContext) -> Reach:
    """The span; vectors are no positions."""
    return window_from_settings(settings, causal=context.causal).reach


def _check_even_heads(settings: Settings) -> str | None:
    """What is wrong with the parameters of `head_split`, or None."""
    heads = as_int(settings, "heads")
    return check_ramp(settings) if heads % 2 == 0 else f"head_split halves its heads, got {heads}"


def _register_persistent_attention(
    *,
    name: str,
    summary: str,
    equation: str,
    section: str,
    cost: Callable[[Settings, CostContext], Cost],
    check: Callable[[Settings], str | None] = check_ramp,
) -> Spec:
    return register(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=_PARAMETERS,
            summary=summary,
            equation=equation,
            source=f"{_SOURCE}, {section}",
            cost=cost,
            reach=_reach,
            check=check,
            compiled_for_each_length=lambda _settings: True,
        )
    )


ALL_ATTN = _register_persistent_attention(
    name="all_attn",
    summary="attention over a window of the past and persistent vectors, in one softmax",
    equation=("y = concat_h softmax(q_hᵀ [k_h + u ; √head_width k′_h] / √head_width) [v_h ; √N v′_h] · W_o"),
    section="section 4.2",
    cost=_all_attn_cost,
)

ATTN_SPLIT = _register_persistent_attention(
    name="attn_split",
    summary="attention over a window of the past, and beside it over persistent vectors, outputs added",
    equation=("y = concat_h (softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(q_hᵀ k′_h) √N v′_h) · W_o"),
    section="section 5.3",
    cost=_attn_split_cost,
)

HEAD_SPLIT = _register_persistent_attention(
    name="head_split",
    summary="half of the heads attend to a window of the past, half of them to persistent vectors",
    equation=(
        "y = concat_h y_h · W_o; y_h = softmax(q_hᵀ (k_h + u) / √head_width) v_h for the first half, "
        "softmax(q_hᵀ k′_h) √N v′_h for the second"
    ),
    section="section 5.3",
    cost=_head_split_cost,
    check=_check_even_heads,
)

SINGLE_HEAD = _register_persistent_attention(
    name="single_head",
    summary="attn_split with one head, as wide as all together, for the persistent vectors",
    equation=(
        "y = (concat_h softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(qᵀ k′) √N v′) · W_o, "
        "q = concat_h q_h"
    ),
    section="section 5.3",
    cost=_single_head_cost,
)

FF_ATTN = register(
    Spec(
        name="ff_attn",
        role=Role.CHANNEL,
        parameters=(replace(VECTORS, low=1, meaning="persistent vectors, as wide as the model"),),
        summary="attention to persistent vectors alone, of one head, in the place of a feed-forward layer",
        equation="y = W_o · softmax(qᵀ k′) √N v′, q = W_q · x",
        source=f"{_SOURCE}, section 5.3",
        cost=_ff_attn_cost,
        reach=lambda _settings, _context: Reach(left=0, right=0),
    )
)
