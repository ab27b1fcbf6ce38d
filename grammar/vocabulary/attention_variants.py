"""Attention whose scores, weights, keys or values are made otherwise: all positions, by plain products."""

from __future__ import annotations

from .attention import HEAD_WIDTH, HEADS
from .matrix_states.recurrent_heads import head_norm_parameter
from .registry import define
from .spec import (
    UNBOUNDED,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_int,
    as_word,
)


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """Return a reach over everything that a mask does not hide."""
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


FOX = define(
    Spec(
        name="fox",
        role=Role.MIXER,
        parameters=(HEADS, HEAD_WIDTH),
        summary="softmax attention in which each head forgets what is past by gates of the input",
        equation="f_t = σ(W_f x_t + b_f); "
        "y_i = concat_h Σ_{j≤i} softmax_j(q_iᵀ k_j / √head_width + Σ_{j<l≤i} log f_l) v_j · W_o",
        source="Lin et al. 2025 (Forgetting Transformer), equations 3 to 6, without what its Pro form adds",
        reach=lambda _settings, _context: Reach(left=UNBOUNDED, right=0),
        state=lambda settings, _context: as_int(settings, "heads") * (2 * as_int(settings, "head_width") + 1),
    )
)


def _check_turns(settings: Settings) -> str | None:
    """Return what is wrong with the rotation of heads, or None."""
    width = as_int(settings, "head_width")
    if as_word(settings, "pos") == "rope" and width % 2:
        return f"pos=rope turns channels two by two: expected an even head_width, got {width}"
    return None


DIFF_ATTN = define(
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
        reach=_reach,
        state=lambda settings, _context: 4 * as_int(settings, "heads") * as_int(settings, "head_width"),
        check=_check_turns,
        compares_positions=lambda settings: as_word(settings, "pos") == "rope",
    )
)


def _check_latents(settings: Settings) -> str | None:
    """Return what is wrong with the rotated key, or None."""
    width = as_int(settings, "rope_width")
    if width % 2:
        return f"channels are turned two by two: expected an even rope_width, got {width}"
    return None


LATENT_ATTN = define(
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
        reach=_reach,
        state=lambda settings, _context: as_int(settings, "latent") + as_int(settings, "rope_width"),
        check=_check_latents,
        compares_positions=lambda settings: as_int(settings, "rope_width") > 0,
    )
)
