"""Recurrent blocks whose state is a matrix for each head.

At each position, a key and a value are written to the matrix and a query reads from it. The state follows a
linear recurrence, so training computes chunks of positions by products and passes the state between chunks.
They are causal in every model. All of these blocks share parameters for the usual parts around a recurrence:
a short convolution, a normalisation of each head, a gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .attention import HEAD_WIDTH, HEADS, odd_width_fault
from .spec import (
    CostContext,
    Parameter,
    Role,
    Settings,
    Spec,
    as_bool,
    as_int,
    boolean,
    define,
    integer,
    sees_the_past,
    word,
)

SHORT_CONV = integer(
    "short_conv",
    "kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none",
    (0, 64),
    0,
)
FORGET = word("forget", "activation of the forget gate", ("sigmoid", "exp"))
_GATE = boolean("gate", "whether the state of each head has an input-dependent decay")
_NEGATIVE = boolean(
    "negative", "whether β ranges up to 2, so that eigenvalues of the state transition reach −1"
)


def head_norm(default: str) -> Parameter:
    """Return the block parameter `head_norm`, which selects how each head's output is normalised."""
    meaning = "normalisation of each head's output, with gains shared by heads"
    return word("head_norm", meaning, ("none", "rms") if default == "none" else ("rms", "none"))


def _qk_norm(default: str) -> Parameter:
    meaning = "normalisation of each head's queries and keys; l2 gives unit length"
    return word("qk_norm", meaning, ("none", "l2") if default == "none" else ("l2", "none"))


def _output_gate(default: str) -> Parameter:
    meaning = "activation of the output gate, a linear map of the input"
    return word("output_gate", meaning, ("none", "silu", "sigmoid"), default)


def _recurrence(
    name: str,
    summary: str,
    equation: str,
    source: str,
    *own: Parameter,
    state: Callable[[Settings, int, int], int] = lambda _settings, heads, head_width: heads * head_width**2,
    short_conv: int = 0,
    qk_norm: str = "none",
    norm: str = "rms",
    output_gate: str = "none",
    least_head_width: int = 1,
    check: Callable[[Settings], str | None] | None = None,
    convolved: Callable[[Settings, int], int] = lambda _settings, inner: 3 * inner,
) -> Spec:
    """Return the specification of a block whose `own` parameters precede the shared ones.

    `state` maps the number and the width of heads to the size of the state; `convolved` returns the channels
    of the short convolution.
    """

    def window(settings: Settings, _context: CostContext) -> int:
        heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        taps = max(1, as_int(settings, "short_conv"))
        return state(settings, heads, head_width) + (taps - 1) * convolved(settings, heads * head_width)

    around = (
        replace(SHORT_CONV, default=short_conv),
        _qk_norm(qk_norm),
        head_norm(norm),
        _output_gate(output_gate),
    )
    return Spec(
        name=name,
        role=Role.MIXER,
        parameters=(HEADS, replace(HEAD_WIDTH, low=least_head_width), *own, *around),
        summary=summary,
        equation=equation,
        source=source,
        reach=sees_the_past,
        window=window,
        check=check,
    )


define(
    _recurrence(
        "linear_attn",
        "linear attention: positive features of queries and keys instead of a softmax, constant state size",
        "S_t = S_{t−1} + φ(k_t) v_tᵀ; z_t = z_{t−1} + φ(k_t); "
        "y_t = concat_h S_tᵀ φ(q_t) / (z_tᵀ φ(q_t) + 10⁻⁶) · W_o",
        "Katharopoulos et al. 2020, equations 9 to 12",
        word("feature", "the features φ: elu(x) + 1 or relu(x)", ("elu", "relu")),
        state=lambda _settings, heads, width: heads * width * (width + 1),
        norm="none",
    ),
    _recurrence(
        "retention",
        "linear attention with a fixed decay per head, and rotated queries and keys",
        "S_t = γ_h S_{t−1} + (R^t k_t) v_tᵀ, γ_h = 1 − 2^(−5−h); "
        "y_t = concat_h norm(S_tᵀ R^t q_t / √head_width) ⊙ silu(W_g x_t) · W_o",
        "Sun et al. 2023, equations 5 to 8; root mean square for its group norm",
        replace(
            boolean("rotate", "whether queries and keys are rotated by position-dependent angles"),
            default=True,
        ),
        output_gate="silu",
        check=lambda settings: (
            odd_width_fault(settings, "rotate=true") if as_bool(settings, "rotate") else None
        ),
    ),
    _recurrence(
        "gla",
        "gated linear attention: input-dependent decay of each key channel",
        "S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = max(σ(W₂ W₁ x_t + b)^(1/16), e⁻⁵); "
        "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊙ silu(W_g x_t) · W_o",
        "Yang et al. 2024 (Gated Linear Attention Transformers), sections 4.1 to 4.4; keys as wide as values",
        output_gate="silu",
    ),
    _recurrence(
        "ssd",
        "state space duality: heads with shared queries and keys, and input-dependent decays",
        "Δ_t = softplus(W_Δ x_t + b); S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ; "
        "y_t = concat_h norm(S_tᵀ q_t + D_h v_t) ⊙ silu(W_g x_t) · W_o",
        "Dao and Gu 2024 (Mamba-2), sections 6 and 7; the norm is of each head and before the gate",
        integer("state", "width of the shared queries and keys", (1, 4096), 64),
        state=lambda settings, heads, width: as_int(settings, "state") * heads * width,
        short_conv=4,
        convolved=lambda settings, inner: 2 * as_int(settings, "state") + inner,
        output_gate="silu",
    ),
    _recurrence(
        "delta",
        "delta rule, gated or not: the stored value of a key moves towards its new value",
        "S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), twice that if negative; "
        "a_t = 1, with a gate exp(−exp(A_h) softplus(W_a x_t + b_h)); "
        "y_t = concat_h norm(S_tᵀ q_t / √head_width) · W_o",
        "Schlag et al. 2021; Yang et al. 2024 (Parallelizing Linear Transformers with the Delta Rule); "
        "gate: Yang, Kautz and Hatamizadeh 2025 (Gated Delta Networks); negative: Grazzi et al. 2025",
        _GATE,
        _NEGATIVE,
        qk_norm="l2",
    ),
    _recurrence(
        "delta_product",
        "delta rule with several sequential keys and values per position",
        "S_tj = (I − β_tj k_tj k_tjᵀ) S_t,j−1 + β_tj k_tj v_tjᵀ, j = 1 … n, S_t0 = a_t S_{t−1,n}; β and a "
        "as in delta; y_t = concat_h norm(S_tnᵀ q_t / √head_width) · W_o",
        "Siems et al. 2025 (DeltaProduct), section 3",
        integer("n", "steps of the delta rule per position", (1, 16), 2),
        _GATE,
        _NEGATIVE,
        convolved=lambda settings, inner: (1 + 2 * as_int(settings, "n")) * inner,
        qk_norm="l2",
    ),
    _recurrence(
        "kda",
        "Kimi delta attention: delta rule with input-dependent decay of each key channel",
        "S_t = (I − β_t k_t k_tᵀ) diag(α_t) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), "
        "α_t = exp(−min(exp(A_h) softplus(W₂ W₁ x_t + b), 5)); "
        "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊙ σ(W_g x_t) · W_o",
        "Kimi Team 2025 (Kimi Linear), section 3, with a gate of full rank; decays of fla's safe gate",
        short_conv=4,
        qk_norm="l2",
        output_gate="sigmoid",
    ),
    _recurrence(
        "rwkv7",
        "generalised delta rule: decays, learning rates, and separate removed and written keys, by channel",
        "S_t = (diag(w_t) − (a_t ⊙ κ_t) κ_tᵀ) S_{t−1} + k̃_t v_tᵀ, w_t = exp(−e^(−½) σ(W₂ tanh(W₁ x_t) + "
        "b)), a_t = σ(W₄ W₃ x_t + c), κ_t = k_t ⊙ ξ of length one, k̃_t = k_t ⊙ (1 + (a_t − 1) ⊙ η); "
        "y_t = concat_h norm(S_tᵀ q_t + (ρ · q_t ⊙ k̃_t) v_t) ⊙ σ(W_g x_t) · W_o",
        "Peng et al. 2025 (RWKV-7), equations 13 to 20, without token shift and values of the first "
        "layer; the bonus within the norm",
        output_gate="sigmoid",
    ),
    _recurrence(
        "mlstm",
        "matrix memory of the xLSTM, with exponential gates",
        "C_t = f_t C_{t−1} + i_t k_t v_tᵀ; n_t = f_t n_{t−1} + i_t k_t; i_t = exp(w_i x_t + b_i), "
        "f_t = σ(w_f x_t + b_f), or exp; y_t = concat_h norm(C_tᵀ q_t / max(|n_tᵀ q_t|, 1)) ⊙ σ(W_g x_t) · "
        "W_o",
        "Beck et al. 2024 (xLSTM), section 2.3, without projections around it; keys are divided by "
        "√head_width",
        FORGET,
        state=lambda _settings, heads, width: heads * (width * (width + 1) + 1),
        output_gate="sigmoid",
    ),
    _recurrence(
        "ttt",
        "test-time training: the state is a linear model of values given keys, trained by gradient steps",
        "W_t = W_τ − Σ_{τ<s≤t} η_s [k_s ; 1] g_sᵀ, g_s = ∂ ½|k_s + LN(u) − v_s|² / ∂u at u = W_τᵀ [k_s ; 1], "
        "τ the end of the last mini-batch, η_s = σ(W_η x_s + b) / head_width; "
        "y_t = concat_h (q_t + LN(W_tᵀ [q_t ; 1])) · W_o",
        "Sun et al. 2024 (Learning to Learn at Test Time), sections 2.1 to 2.7, TTT-Linear without rotated "
        "keys",
        integer(
            "batch",
            "mini-batch size in positions; its gradients use the weights before the mini-batch",
            (1, 65536),
            16,
        ),
        state=lambda _settings, heads, width: heads * (width + 1) * (2 * width + 1),
        norm="none",
        least_head_width=4,  # a layer norm of two numbers leaves their order alone
    ),
)
