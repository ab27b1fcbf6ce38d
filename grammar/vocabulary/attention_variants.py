"""Attention blocks that see all positions, with other scores, weights, keys or values."""

from __future__ import annotations

from .attention import HEAD_WIDTH, HEADS, check_turns, odd_width_fault
from .matrix_states import head_norm
from .spec import (
    Role,
    Spec,
    as_int,
    as_word,
    define,
    integer,
    real,
    sees_everything,
    sees_the_past,
    word,
)

define(
    Spec(
        name="fox",
        role=Role.MIXER,
        parameters=(HEADS, HEAD_WIDTH),
        summary="softmax attention with input-dependent forget gates per head",
        equation="f_t = σ(W_f x_t + b_f); "
        "y_i = concat_h Σ_{j≤i} softmax_j(q_iᵀ k_j / √head_width + Σ_{j<l≤i} log f_l) v_j · W_o",
        source="Lin et al. 2025 (Forgetting Transformer), equations 3 to 6, "
        "without the additions of its Pro form",
        reach=sees_the_past,
        state=lambda settings, _context: as_int(settings, "heads") * (2 * as_int(settings, "head_width") + 1),
    ),
    Spec(
        name="diff_attn",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            word("pos", "rope: rotated queries and keys", ("none", "rope")),
            real("share", "initial factor of the second weights, which are subtracted", (0.0, 1.0), 0.8),
            head_norm("rms"),
        ),
        summary="softmax attention with the difference of two weight matrices, "
        "and values twice as wide as keys",
        equation="y = concat_h (1 − s) norm((softmax(Q₁ K₁ᵀ / √head_width) − λ softmax(Q₂ K₂ᵀ / √head_width))"
        " V_h) · W_o, λ = exp(u₁ · w₁) − exp(u₂ · w₂) + s, s the share",
        source="Ye et al. 2024 (Differential Transformer), equations 1 to 3, one share for all layers",
        reach=sees_everything,
        state=lambda settings, _context: 4 * as_int(settings, "heads") * as_int(settings, "head_width"),
        check=check_turns,
        compares_positions=lambda settings: as_word(settings, "pos") == "rope",
    ),
    Spec(
        name="latent_attn",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            integer(
                "latent",
                "width of the latent vector that determines keys and values",
                (1, 65536),
                256,
            ),
            integer(
                "rope_width",
                "width of a rotated key shared by all heads, and of its queries; 0 for none",
                (0, 4096),
                32,
            ),
            integer(
                "query_latent",
                "width of the latent vector that determines queries, 0 for the input itself",
                (0, 65536),
                0,
            ),
        ),
        summary="multi-head latent attention: keys and values of all heads from one latent vector",
        equation="c_t = norm(W_c x_t); k_h = [U_h c_t ; R^t W_r x_t], v_h = V_h c_t; "
        "q_h = [A_h c′_t ; R^t B_h c′_t], c′_t = norm(W_q x_t), or x_t; "
        "y = concat_h softmax(Q_h K_hᵀ / √(head_width + rope_width)) V_h · W_o",
        source="DeepSeek-AI 2024 (DeepSeek-V2), equations 9 to 19",
        reach=sees_everything,
        state=lambda settings, _context: as_int(settings, "latent") + as_int(settings, "rope_width"),
        check=lambda settings: odd_width_fault(settings, "rope", "rope_width"),
        compares_positions=lambda settings: as_int(settings, "rope_width") > 0,
    ),
)
