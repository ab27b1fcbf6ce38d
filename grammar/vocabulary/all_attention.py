"""The all-attention blocks, which attend to persistent vectors.

This attention replaces a feed-forward layer. By default only keys have position vectors, and a span begins at
the position before the query. The window equals the window of `sa(pos=relative)`. Each head has N persistent
keys and N values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .attention import (
    ADAPTIVE,
    HEAD_WIDTH,
    HEADS,
    POS_VALUES,
    RAMP,
    SELF,
    check_ramp,
    window_from_settings,
    window_reach,
)
from .spec import Role, Settings, Spec, as_int, boolean, define, integer, sees_itself

_VECTORS = integer("N", "number of persistent vectors per head", (0, 1048576))
_SPAN = integer("span", "visible tokens on each side", (1, 65536), 1024)
_SOURCE = "Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory)"


def _check_even_heads(settings: Settings) -> str | None:
    heads = as_int(settings, "heads")
    return (
        check_ramp(settings) if heads % 2 == 0 else f"head_split needs an even number of heads, got {heads}"
    )


def _persistent_attention(
    name: str,
    summary: str,
    equation: str,
    section: str,
    *,
    window_heads: Callable[[int], int] = lambda heads: heads,
    check: Callable[[Settings], str | None] = check_ramp,
) -> Spec:
    return Spec(
        name=name,
        role=Role.MIXER,
        parameters=(_VECTORS, _SPAN, HEADS, HEAD_WIDTH, ADAPTIVE, RAMP, SELF, POS_VALUES),
        summary=summary,
        equation=equation,
        source=f"{_SOURCE}, {section}",
        reach=window_reach,
        window=lambda settings, context: window_from_settings(settings, causal=context.causal).numbers(
            window_heads(as_int(settings, "heads"))
        ),
        check=check,
    )


define(
    _persistent_attention(
        "all_attn",
        "attention over a window of the past and persistent vectors, with one softmax",
        "y = concat_h softmax(q_hᵀ [k_h + u ; √head_width k′_h] / √head_width) [v_h ; √N v′_h] · W_o",
        "section 4.2",
    ),
    _persistent_attention(
        "attn_split",
        "sum of attention over a window of the past and attention over persistent vectors",
        "y = concat_h (softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(q_hᵀ k′_h) √N v′_h) · W_o",
        "section 5.3",
    ),
    _persistent_attention(
        "head_split",
        "half of the heads attend to a window of the past, the others to persistent vectors",
        "y = concat_h y_h · W_o; y_h = softmax(q_hᵀ (k_h + u) / √head_width) v_h for the first half, "
        "softmax(q_hᵀ k′_h) √N v′_h for the second",
        "section 5.3",
        window_heads=lambda heads: heads // 2,
        check=_check_even_heads,
    ),
    _persistent_attention(
        "single_head",
        "attn_split with a single wide head for the persistent vectors",
        "y = (concat_h softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(qᵀ k′) √N v′) · W_o, "
        "q = concat_h q_h",
        "section 5.3",
    ),
    Spec(
        name="ff_attn",
        role=Role.CHANNEL,
        parameters=(
            replace(_VECTORS, low=1, meaning="number of persistent vectors, as wide as the model"),
            boolean("bare", "whether W_q and W_o are left out, as in equation 9"),
        ),
        summary="single-head attention to persistent vectors only, in place of a feed-forward layer",
        equation="y = W_o · softmax(qᵀ k′) √N v′, q = W_q · x",
        source=f"{_SOURCE}, section 5.3; bare: equation 9",
        reach=sees_itself,
    ),
)
