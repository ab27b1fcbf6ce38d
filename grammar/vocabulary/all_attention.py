"""All-attention: persistent vectors, to which every position attends, in place of a feed-forward layer.

By default only keys have position vectors, and a span begins at the position before the query; the window
is that of `sa(pos=relative)`. Each head has N persistent keys and N values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .attention import ADAPTIVE, HEAD_WIDTH, HEADS, POS_VALUES, RAMP, SELF, check_ramp, window_from_settings
from .registry import define
from .spec import CostContext, Parameter, Reach, Role, Settings, Spec, as_int, lays_out_its_window

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


def _reach(settings: Settings, context: CostContext) -> Reach:
    """Return a reach over the span; persistent vectors are no positions."""
    return window_from_settings(settings, causal=context.causal).reach


def _check_even_heads(settings: Settings) -> str | None:
    """Return what is wrong with the parameters of `head_split`, or None."""
    heads = as_int(settings, "heads")
    return check_ramp(settings) if heads % 2 == 0 else f"head_split halves its heads, got {heads}"


def _register_persistent_attention(
    *,
    name: str,
    summary: str,
    equation: str,
    section: str,
    window_heads: Callable[[int], int] = lambda heads: heads,
    check: Callable[[Settings], str | None] = check_ramp,
) -> Spec:
    return define(
        Spec(
            name=name,
            role=Role.MIXER,
            parameters=_PARAMETERS,
            summary=summary,
            equation=equation,
            source=f"{_SOURCE}, {section}",
            reach=_reach,
            window=lambda settings, context: window_from_settings(settings, causal=context.causal).numbers(
                window_heads(as_int(settings, "heads"))
            ),
            check=check,
            compiled_for_each_length=lambda _settings: True,
            export_fault=lays_out_its_window,
        )
    )


ALL_ATTN = _register_persistent_attention(
    name="all_attn",
    summary="attention over a window of the past and persistent vectors, in one softmax",
    equation=("y = concat_h softmax(q_hᵀ [k_h + u ; √head_width k′_h] / √head_width) [v_h ; √N v′_h] · W_o"),
    section="section 4.2",
)

ATTN_SPLIT = _register_persistent_attention(
    name="attn_split",
    summary="attention over a window of the past, and beside it over persistent vectors, outputs added",
    equation=("y = concat_h (softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(q_hᵀ k′_h) √N v′_h) · W_o"),
    section="section 5.3",
)

HEAD_SPLIT = _register_persistent_attention(
    name="head_split",
    summary="half of the heads attend to a window of the past, half of them to persistent vectors",
    equation=(
        "y = concat_h y_h · W_o; y_h = softmax(q_hᵀ (k_h + u) / √head_width) v_h for the first half, "
        "softmax(q_hᵀ k′_h) √N v′_h for the second"
    ),
    section="section 5.3",
    window_heads=lambda heads: heads // 2,
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
)

FF_ATTN = define(
    Spec(
        name="ff_attn",
        role=Role.CHANNEL,
        parameters=(replace(VECTORS, low=1, meaning="persistent vectors, as wide as the model"),),
        summary="attention to persistent vectors alone, of one head, in the place of a feed-forward layer",
        equation="y = W_o · softmax(qᵀ k′) √N v′, q = W_q · x",
        source=f"{_SOURCE}, section 5.3",
        reach=lambda _settings, _context: Reach(left=0, right=0),
    )
)
