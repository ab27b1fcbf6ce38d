"""Attention whose scores, weights, keys or values are made otherwise: all positions, by plain products."""

from __future__ import annotations

from .attention import HEAD_WIDTH, HEADS
from .matrix_states.recurrent_heads import head_norm_parameter
from .registry import register
from .spec import (
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    Working,
    as_int,
    as_word,
)


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """All that a mask does not hide."""
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


def _kept_mask(context: CostContext) -> int:
    """A causal mask of one byte a pair."""
    return (context.length**2 + 3) // 4 if context.causal else 0


def _of_pairs(count: int, context: CostContext) -> Working:
    """So many numbers for each pair of positions: for a while gradients of weights and of scores are held."""
    return Working(numbers=count * context.length**2)


def _fox_cost(settings: Settings, context: CostContext) -> Cost:
    """Attention by plain products at any length, and a map with a bias to the gate of each head.

    The state is a key, a value and a gate of each head. Saved are queries, keys and values, the weights,
    twice and the mask if some are dropped, what the heads give, and the gates; and a mask of one byte a pair.
    """
    heads, length = as_int(settings, "heads"), context.length
    inner = heads * as_int(settings, "head_width")
    maps = 4 * context.width * inner + context.width * heads
    weights = context.saved_weights(heads * length**2)
    return Cost(
        parameters=maps + heads,
        flops=2 * length * maps + 4 * length**2 * inner,
        state=2 * inner + heads,
        saved=length * (4 * inner + heads) + weights,
        saved_once=(length**2 + 3) // 4,
        working=_of_pairs(2 * heads, context),
    )


FOX = register(
    Spec(
        name="fox",
        role=Role.MIXER,
        parameters=(HEADS, HEAD_WIDTH),
        summary="softmax attention in which each head forgets what is past by gates of the input",
        equation="f_t = σ(W_f x_t + b_f); "
        "y_i = concat_h Σ_{j≤i} softmax_j(q_iᵀ k_j / √head_width + Σ_{j<l≤i} log f_l) v_j · W_o",
        source="Lin et al. 2025 (Forgetting Transformer), equations 3 to 6, without what its Pro form adds",
        cost=_fox_cost,
        reach=lambda _settings, _context: Reach(left=UNBOUNDED, right=0),
    )
)


def _diff_attn_cost(settings: Settings, context: CostContext) -> Cost:
    """Four maps, and products of two queries and keys of each head and of a value as wide as both.

    The state is keys and values. Saved are queries, keys and values, both weights and their difference, of
    which some may be dropped, what the heads give, and what a norm is of. Where the gradients of both weights
    and of their scores are held, the difference has been given up.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    inner, normed = 2 * heads * head_width, as_word(settings, "head_norm") != "none"
    weights = 3 * heads * length**2
    if context.config.attention_dropout:
        weights += (heads * length**2 + 3) // 4
    turned = as_word(settings, "pos") == "rope"
    return Cost(
        parameters=4 * context.width * inner + 4 * head_width + normed * 2 * head_width,
        flops=8 * length * context.width * inner + 4 * length**2 * inner,
        state=2 * inner,
        saved=length * ((4 + 2 * normed) * inner + normed * heads) + weights,
        saved_once=3 + turned * 2 * length * head_width + _kept_mask(context),
        working=_of_pairs(3 * heads, context),
    )


def _check_turns(settings: Settings) -> str | None:
    """What is wrong with heads that are turned, or None."""
    width = as_int(settings, "head_width")
    if as_word(settings, "pos") == "rope" and width % 2:
        return f"pos=rope turns channels two by two: expected an even head_width, got {width}"
    return None


DIFF_ATTN = register(
    Spec(
        name="diff_attn",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            Parameter(
                name="pos",
                kind="word",
                default="none",
                words=("none", "rope"),
                meaning="rope: queries and keys are turned",
            ),
            Parameter(
                name="share",
                kind="real",
                default=0.8,
                low=0.0,
                high=1.0,
                meaning="how much of the second weights is taken away at first",
            ),
            head_norm_parameter("rms"),
        ),
        summary="softmax attention by the difference of two weights, values twice as wide as a head's keys",
        equation="y = concat_h (1 − s) norm((softmax(Q₁ K₁ᵀ / √head_width) − λ softmax(Q₂ K₂ᵀ / √head_width))"
        " V_h) · W_o, λ = exp(u₁ · w₁) − exp(u₂ · w₂) + s, s the share",
        source="Ye et al. 2024 (Differential Transformer), equations 1 to 3, one share for all layers",
        cost=_diff_attn_cost,
        reach=_reach,
        check=_check_turns,
        compares_positions=lambda settings: as_word(settings, "pos") == "rope",
    )
)


def _latent_attn_cost(settings: Settings, context: CostContext) -> Cost:
    """Maps down to latents and up to heads, and products of all positions.

    The state is a latent vector and the turned key. Saved are what is mapped to each, divided and by what,
    and what is kept of it; queries, keys, values, weights, and what the heads give.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    latent, turned = as_int(settings, "latent"), as_int(settings, "rope_width")
    asked, inner = as_int(settings, "query_latent"), heads * head_width
    wide, width = heads * (head_width + turned), context.width
    maps = width * (latent + turned) + 2 * latent * inner + inner * width
    maps += asked * (width + wide) if asked else width * wide
    weights = context.saved_weights(heads * length**2)
    kept = 3 * latent + 2 * turned + 1 + (3 * asked + 1) * (asked > 0) + 2 * wide + 2 * inner
    return Cost(
        parameters=maps + latent + asked,
        flops=2 * length * maps + 2 * length**2 * (wide + inner),
        state=latent + turned,
        saved=length * kept + weights,
        saved_once=2 * length * turned + _kept_mask(context),
        working=_of_pairs(2 * heads, context),
    )


def _check_latents(settings: Settings) -> str | None:
    """What is wrong with the key that is turned, or None."""
    width = as_int(settings, "rope_width")
    if width % 2:
        return f"channels are turned two by two: expected an even rope_width, got {width}"
    return None


LATENT_ATTN = register(
    Spec(
        name="latent_attn",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            Parameter(
                name="latent",
                kind="integer",
                default=256,
                low=1,
                high=65536,
                meaning="width of the vector of each position from which its keys and values are made",
            ),
            Parameter(
                name="rope_width",
                kind="integer",
                default=32,
                low=0,
                high=4096,
                meaning="width of a turned key that all heads share, and of queries for it; 0 for none",
            ),
            Parameter(
                name="query_latent",
                kind="integer",
                default=0,
                low=0,
                high=65536,
                meaning="width of the vector from which queries are made, 0 for the input itself",
            ),
        ),
        summary="multi-head latent attention: keys and values of all heads from one narrow vector",
        equation="c_t = norm(W_c x_t); k_h = [U_h c_t ; R^t W_r x_t], v_h = V_h c_t; "
        "q_h = [A_h c′_t ; R^t B_h c′_t], c′_t = norm(W_q x_t), or x_t; "
        "y = concat_h softmax(Q_h K_hᵀ / √(head_width + rope_width)) V_h · W_o",
        source="DeepSeek-AI 2024 (DeepSeek-V2), equations 9 to 19",
        cost=_latent_attn_cost,
        reach=_reach,
        check=_check_latents,
        compares_positions=lambda settings: as_int(settings, "rope_width") > 0,
    )
)
