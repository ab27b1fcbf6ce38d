"""Type stubs of the blocks for editors, generated from the vocabulary by `python tests/grammar/test_block_names.py`."""
# fmt: off
# ruff: noqa: E501, N803, N805

from typing import Literal

from .expressions import HoleOrDimension
from .recipe import Recipe

__all__ = [
    "activation",
    "all_attn",
    "attention_pool",
    "attn_split",
    "base_conv",
    "cgru",
    "conv",
    "delta",
    "delta_product",
    "dense",
    "diff_attn",
    "extended_neural_gpu",
    "ff",
    "ff_attn",
    "fox",
    "gla",
    "glu",
    "gru",
    "head_split",
    "highway_conv",
    "hyena",
    "kda",
    "last",
    "latent_attn",
    "linear_attn",
    "lstm",
    "mamba",
    "markov_neural_gpu",
    "mean_pool",
    "min_gru",
    "mlstm",
    "neural_gpu",
    "persistent_conv",
    "retention",
    "rg_lru",
    "rwkv7",
    "sa",
    "seq2seq",
    "single_head",
    "slstm",
    "ssd",
    "ttt",
]

class _Activation(Recipe):
    """The block `activation`: activation function only."""

    def __call__(
        _self,
        act: Literal["relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"] | HoleOrDimension = "relu",
    ) -> Recipe:
        """Activation function only: y = act(x).

        act: activation; relu, gelu, gelu_tanh, tanh, leaky_relu or relu2.

        Raffel and Ellis 2016, section 2.
        """

activation: _Activation

class _AllAttn:
    """The block `all_attn`: attention over a window of the past and persistent vectors, with one softmax."""

    def __call__(
        _self,
        N: int | HoleOrDimension,
        span: int | HoleOrDimension = 1024,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        adaptive: bool | HoleOrDimension = False,
        ramp: int | HoleOrDimension = 32,
        self: bool | HoleOrDimension = False,
        pos_values: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Attention over a window of the past and persistent vectors, with one softmax: y = concat_h softmax(q_hᵀ [k_h + u ; √head_width k′_h] / √head_width) [v_h ; √N v′_h] · W_o.

        N: number of persistent vectors per head; whole number, 0 to 1048576.
        span: visible tokens on each side; whole number, 1 to 65536.
        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        adaptive: whether each head learns its span; true or false.
        ramp: length in tokens of the ramp at the end of an adaptive span; whole number, 2 to 65536.
        self: whether a causal span of relative positions includes the position itself; true or false.
        pos_values: whether position vectors are added to values as well as to keys; true or false.

        Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory), section 4.2.
        """

all_attn: _AllAttn

class _AttentionPool(Recipe):
    """The block `attention_pool`: mean of all positions, weighted by learned scores."""

    def __call__(
        _self,
    ) -> Recipe:
        """Mean of all positions, weighted by learned scores: e_t = tanh(w · x_t + b); α = softmax(e); y = Σ_t α_t x_t.

        Raffel and Ellis 2016, section 1.3.
        """

attention_pool: _AttentionPool

class _AttnSplit:
    """The block `attn_split`: sum of attention over a window of the past and attention over persistent vectors."""

    def __call__(
        _self,
        N: int | HoleOrDimension,
        span: int | HoleOrDimension = 1024,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        adaptive: bool | HoleOrDimension = False,
        ramp: int | HoleOrDimension = 32,
        self: bool | HoleOrDimension = False,
        pos_values: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Sum of attention over a window of the past and attention over persistent vectors: y = concat_h (softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(q_hᵀ k′_h) √N v′_h) · W_o.

        N: number of persistent vectors per head; whole number, 0 to 1048576.
        span: visible tokens on each side; whole number, 1 to 65536.
        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        adaptive: whether each head learns its span; true or false.
        ramp: length in tokens of the ramp at the end of an adaptive span; whole number, 2 to 65536.
        self: whether a causal span of relative positions includes the position itself; true or false.
        pos_values: whether position vectors are added to values as well as to keys; true or false.

        Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory), section 5.3.
        """

attn_split: _AttnSplit

class _BaseConv(Recipe):
    """The block `base_conv`: depthwise convolution, gated by a linear map of the input."""

    def __call__(
        _self,
        k: int | HoleOrDimension = 3,
        filter: Literal["explicit", "implicit"] | HoleOrDimension = "explicit",
    ) -> Recipe:
        """Depthwise convolution, gated by a linear map of the input: y_t = (W x_t + b) ⊙ (Σ_{s<k} h_s ⊙ x_{t−s} + b′); implicit: h as in hyena.

        k: kernel size of each channel's filter; whole number, 1 to 65536.
        filter: whether taps are weights, or outputs of a small network for each lag; explicit or implicit.

        Arora et al. 2023 (Zoology), definition 4.1 and section 4.
        """

base_conv: _BaseConv

class _Cgru:
    """The block `cgru`: one step of a convolutional gated recurrent unit."""

    def __call__(
        _self,
        k: int | HoleOrDimension,
    ) -> Recipe:
        """One step of a convolutional gated recurrent unit: u = hardsig(Wᵤ ∗ x + bᵤ); r = hardsig(Wᵣ ∗ x + bᵣ); y = u ⊙ x + (1 − u) ⊙ tanh(W₀ ∗ (r ⊙ x) + b₀).

        k: kernel width in tokens; whole number, 1 to 1024.

        Dowdell and Zhang 2019, section 2; Kaiser and Sutskever 2016.
        """

cgru: _Cgru

class _Conv:
    """The block `conv`: convolution over the sequence."""

    def __call__(
        _self,
        k: int | HoleOrDimension,
        act: Literal["relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"] | HoleOrDimension = "relu",
    ) -> Recipe:
        """Convolution over the sequence: y = act(W ∗ x + b).

        k: kernel width in tokens; whole number, 1 to 1024.
        act: activation; relu, gelu, gelu_tanh, tanh, leaky_relu or relu2.

        Dowdell and Zhang 2019, section 3.1.
        """

conv: _Conv

class _Delta(Recipe):
    """The block `delta`: delta rule, gated or not: the stored value of a key moves towards its new value."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        gate: bool | HoleOrDimension = False,
        negative: bool | HoleOrDimension = False,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["l2", "none"] | HoleOrDimension = "l2",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "none",
    ) -> Recipe:
        """Delta rule, gated or not: the stored value of a key moves towards its new value: S_t = a_t (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), twice that if negative; a_t = 1, with a gate exp(−exp(A_h) softplus(W_a x_t + b_h)); y_t = concat_h norm(S_tᵀ q_t / √head_width) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        gate: whether the state of each head has an input-dependent decay; true or false.
        negative: whether β ranges up to 2, so that eigenvalues of the state transition reach −1; true or false.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; l2 or none.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Schlag et al. 2021; Yang et al. 2024 (Parallelizing Linear Transformers with the Delta Rule); gate: Yang, Kautz and Hatamizadeh 2025 (Gated Delta Networks); negative: Grazzi et al. 2025.
        """

delta: _Delta

class _DeltaProduct(Recipe):
    """The block `delta_product`: delta rule with several sequential keys and values per position."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        n: int | HoleOrDimension = 2,
        gate: bool | HoleOrDimension = False,
        negative: bool | HoleOrDimension = False,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["l2", "none"] | HoleOrDimension = "l2",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "none",
    ) -> Recipe:
        """Delta rule with several sequential keys and values per position: S_tj = (I − β_tj k_tj k_tjᵀ) S_t,j−1 + β_tj k_tj v_tjᵀ, j = 1 … n, S_t0 = a_t S_{t−1,n}; β and a as in delta; y_t = concat_h norm(S_tnᵀ q_t / √head_width) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        n: steps of the delta rule per position; whole number, 1 to 16.
        gate: whether the state of each head has an input-dependent decay; true or false.
        negative: whether β ranges up to 2, so that eigenvalues of the state transition reach −1; true or false.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; l2 or none.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Siems et al. 2025 (DeltaProduct), section 3.
        """

delta_product: _DeltaProduct

class _Dense(Recipe):
    """The block `dense`: linear layer at each position."""

    def __call__(
        _self,
        act: Literal["relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"] | HoleOrDimension = "relu",
    ) -> Recipe:
        """Linear layer at each position: y = act(W · x + b).

        act: activation; relu, gelu, gelu_tanh, tanh, leaky_relu or relu2.

        Raffel and Ellis 2016, section 2.
        """

dense: _Dense

class _DiffAttn(Recipe):
    """The block `diff_attn`: softmax attention with the difference of two weight matrices, and values twice as wide as keys."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        pos: Literal["none", "rope"] | HoleOrDimension = "none",
        share: float | HoleOrDimension = 0.8,
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
    ) -> Recipe:
        """Softmax attention with the difference of two weight matrices, and values twice as wide as keys: y = concat_h (1 − s) norm((softmax(Q₁ K₁ᵀ / √head_width) − λ softmax(Q₂ K₂ᵀ / √head_width)) V_h) · W_o, λ = exp(u₁ · w₁) − exp(u₂ · w₂) + s, s the share.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        pos: rope: rotated queries and keys; none or rope.
        share: initial factor of the second weights, which are subtracted; number, 0.0 to 1.0.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.

        Ye et al. 2024 (Differential Transformer), equations 1 to 3, one share for all layers.
        """

diff_attn: _DiffAttn

class _ExtendedNeuralGpu(Recipe):
    """The block `extended_neural_gpu`: Neural GPU with a decoder that reads all previous outputs from a tape."""

    def __call__(
        _self,
        layers: int | HoleOrDimension = 2,
        width: int | HoleOrDimension = 4,
        maps: int | HoleOrDimension = 0,
        kernel: int | HoleOrDimension = 3,
        tape: Literal["first", "all"] | HoleOrDimension = "first",
        input_norm: bool | HoleOrDimension = False,
        first_unit: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Neural GPU with a decoder that reads all previous outputs from a tape: d_0 = s_n as in neural_gpu; d_{t+1} = CGRU_l(… CGRU_1(d_t, p_t) …, p_t), CGRU(s, p) = u ⊙ s + (1 − u) ⊙ tanh(U ∗ (r ⊙ s) + W ∗ p + B), u = hardsig(U′ ∗ s + W′ ∗ p + B′); r = hardsig(U″ ∗ s + W″ ∗ p + B″); o_t from d_{t+1}[t, 0]; p_{t+1} = p_t but p_{t+1}[t, 0] = E″ o_t.

        layers: number of gated units per step; whole number, 1 to 64.
        width: width of the image; whole number, 1 to 256.
        maps: channels of the image; 0: d_model; whole number, 0 to 65536.
        kernel: kernel size in both directions; whole number, 3 to 64.
        tape: columns across the image's width in which the tape holds each output; first or all.
        input_norm: whether a linear map with bias and a norm over channels create the initial image, including empty cells; true or false.
        first_unit: whether a separate gated unit precedes the steps; true or false.

        Kaiser and Bengio 2016, section 2.2; the order of steps is that of their program.
        """

extended_neural_gpu: _ExtendedNeuralGpu

class _Ff:
    """The block `ff`: feed-forward layer at each position."""

    def __call__(
        _self,
        filter: int | HoleOrDimension,
        act: Literal["relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"] | HoleOrDimension = "relu",
    ) -> Recipe:
        """Feed-forward layer at each position: y = W₂ · act(W₁ · x + b₁) + b₂.

        filter: width of the inner layer; whole number, 1 to 1048576.
        act: activation; relu, gelu, gelu_tanh, tanh, leaky_relu or relu2.

        Vaswani et al. 2017, section 3.3.
        """

ff: _Ff

class _FfAttn:
    """The block `ff_attn`: single-head attention to persistent vectors only, in place of a feed-forward layer."""

    def __call__(
        _self,
        N: int | HoleOrDimension,
        bare: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Single-head attention to persistent vectors only, in place of a feed-forward layer: y = W_o · softmax(qᵀ k′) √N v′, q = W_q · x.

        N: number of persistent vectors, as wide as the model; whole number, 1 to 1048576.
        bare: whether W_q and W_o are left out, as in equation 9; true or false.

        Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory), section 5.3; bare: equation 9.
        """

ff_attn: _FfAttn

class _Fox(Recipe):
    """The block `fox`: softmax attention with input-dependent forget gates per head."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
    ) -> Recipe:
        """Softmax attention with input-dependent forget gates per head: f_t = σ(W_f x_t + b_f); y_i = concat_h Σ_{j≤i} softmax_j(q_iᵀ k_j / √head_width + Σ_{j<l≤i} log f_l) v_j · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.

        Lin et al. 2025 (Forgetting Transformer), equations 3 to 6, without the additions of its Pro form.
        """

fox: _Fox

class _Gla(Recipe):
    """The block `gla`: gated linear attention: input-dependent decay of each key channel."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "silu",
    ) -> Recipe:
        """Gated linear attention: input-dependent decay of each key channel: S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, α_t = max(σ(W₂ W₁ x_t + b)^(1/16), e⁻⁵); y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊙ silu(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Yang et al. 2024 (Gated Linear Attention Transformers), sections 4.1 to 4.4; keys as wide as values.
        """

gla: _Gla

class _Glu:
    """The block `glu`: gated linear unit at each position."""

    def __call__(
        _self,
        filter: int | HoleOrDimension,
        act: Literal["silu", "gelu", "relu", "sigmoid", "none"] | HoleOrDimension = "silu",
    ) -> Recipe:
        """Gated linear unit at each position: y = W₂ · (act(W x) ⊙ V x).

        filter: width of the inner layer; whole number, 1 to 1048576.
        act: activation of one of the maps: silu is SwiGLU, gelu GEGLU, none bilinear; silu, gelu, relu, sigmoid or none.

        Shazeer 2020 (GLU Variants Improve Transformer), equations 5 and 6.
        """

glu: _Glu

class _Gru(Recipe):
    """The block `gru`: gated recurrent unit (GRU), from left to right."""

    def __call__(
        _self,
        layers: int | HoleOrDimension = 1,
    ) -> Recipe:
        """Gated recurrent unit (GRU), from left to right: r, z = σ(W x_t + U h_{t−1} + b); n = tanh(W_n x_t + b_n + r⊙(U_n h_{t−1} + c)); y_t = h_t = (1−z)⊙n + z⊙h_{t−1}.

        layers: number of stacked layers; whole number, 1 to 16.

        Cho et al. 2014, section 2.3; the reset gate after the map, as in cuDNN.
        """

gru: _Gru

class _HeadSplit:
    """The block `head_split`: half of the heads attend to a window of the past, the others to persistent vectors."""

    def __call__(
        _self,
        N: int | HoleOrDimension,
        span: int | HoleOrDimension = 1024,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        adaptive: bool | HoleOrDimension = False,
        ramp: int | HoleOrDimension = 32,
        self: bool | HoleOrDimension = False,
        pos_values: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Half of the heads attend to a window of the past, the others to persistent vectors: y = concat_h y_h · W_o; y_h = softmax(q_hᵀ (k_h + u) / √head_width) v_h for the first half, softmax(q_hᵀ k′_h) √N v′_h for the second.

        N: number of persistent vectors per head; whole number, 0 to 1048576.
        span: visible tokens on each side; whole number, 1 to 65536.
        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        adaptive: whether each head learns its span; true or false.
        ramp: length in tokens of the ramp at the end of an adaptive span; whole number, 2 to 65536.
        self: whether a causal span of relative positions includes the position itself; true or false.
        pos_values: whether position vectors are added to values as well as to keys; true or false.

        Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory), section 5.3.
        """

head_split: _HeadSplit

class _HighwayConv:
    """The block `highway_conv`: convolution with a gate that mixes its output with its input."""

    def __call__(
        _self,
        k: int | HoleOrDimension,
    ) -> Recipe:
        """Convolution with a gate that mixes its output with its input: g = hardsig(W₁ ∗ x + b₁); y = (W₀ ∗ x + b₀) ⊙ g + x ⊙ (1 − g).

        k: kernel width in tokens; whole number, 1 to 1024.

        Dowdell and Zhang 2019, section 3.1.
        """

highway_conv: _HighwayConv

class _Hyena(Recipe):
    """The block `hyena`: long convolutions with implicit filters, alternating with input-dependent gates."""

    def __call__(
        _self,
        channels: int | HoleOrDimension = 512,
        order: int | HoleOrDimension = 2,
        k: int | HoleOrDimension = 1024,
        short_conv: int | HoleOrDimension = 3,
    ) -> Recipe:
        """Long convolutions with implicit filters, alternating with input-dependent gates: [g_0, …, g_N−1, z] = conv(W x + b); z ← h_n ∗ (g_n ⊙ z) + D_n ⊙ g_n ⊙ z, n = N−1 … 1; y = W_o (g_0 ⊙ z); h_n(s) = exp(−δ s / (k−1)) ⊙ W₄ sin(f W₃ sin(f W₂ sin(f W₁ e(s)))).

        channels: width of the recurrence; whole number, 1 to 1048576.
        order: number of gates; there is one long convolution less; whole number, 2 to 8.
        k: kernel size of each long filter; whole number, 1 to 65536.
        short_conv: kernel size of a causal depthwise convolution after the linear map; 0 for none; whole number, 0 to 64.

        Poli et al. 2023 (Hyena Hierarchy), definition 3.1, sections 3.1 to 3.3 and their program.
        """

hyena: _Hyena

class _Kda(Recipe):
    """The block `kda`: Kimi delta attention: delta rule with input-dependent decay of each key channel."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        short_conv: int | HoleOrDimension = 4,
        qk_norm: Literal["l2", "none"] | HoleOrDimension = "l2",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "sigmoid",
    ) -> Recipe:
        """Kimi delta attention: delta rule with input-dependent decay of each key channel: S_t = (I − β_t k_t k_tᵀ) diag(α_t) S_{t−1} + β_t k_t v_tᵀ, β_t = σ(W_β x_t), α_t = exp(−min(exp(A_h) softplus(W₂ W₁ x_t + b), 5)); y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊙ σ(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; l2 or none.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Kimi Team 2025 (Kimi Linear), section 3, with a gate of full rank; decays of fla's safe gate.
        """

kda: _Kda

class _Last(Recipe):
    """The block `last`: the last position only."""

    def __call__(
        _self,
    ) -> Recipe:
        """The last position only: y = x_T.

        Sutskever et al. 2014, section 2.
        """

last: _Last

class _LatentAttn(Recipe):
    """The block `latent_attn`: multi-head latent attention: keys and values of all heads from one latent vector."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        latent: int | HoleOrDimension = 256,
        rope_width: int | HoleOrDimension = 32,
        query_latent: int | HoleOrDimension = 0,
    ) -> Recipe:
        """Multi-head latent attention: keys and values of all heads from one latent vector: c_t = norm(W_c x_t); k_h = [U_h c_t ; R^t W_r x_t], v_h = V_h c_t; q_h = [A_h c′_t ; R^t B_h c′_t], c′_t = norm(W_q x_t), or x_t; y = concat_h softmax(Q_h K_hᵀ / √(head_width + rope_width)) V_h · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        latent: width of the latent vector that determines keys and values; whole number, 1 to 65536.
        rope_width: width of a rotated key shared by all heads, and of its queries; 0 for none; whole number, 0 to 4096.
        query_latent: width of the latent vector that determines queries, 0 for the input itself; whole number, 0 to 65536.

        DeepSeek-AI 2024 (DeepSeek-V2), equations 9 to 19.
        """

latent_attn: _LatentAttn

class _LinearAttn(Recipe):
    """The block `linear_attn`: linear attention: positive features of queries and keys instead of a softmax, constant state size."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        feature: Literal["elu", "relu"] | HoleOrDimension = "elu",
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["none", "rms"] | HoleOrDimension = "none",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "none",
    ) -> Recipe:
        """Linear attention: positive features of queries and keys instead of a softmax, constant state size: S_t = S_{t−1} + φ(k_t) v_tᵀ; z_t = z_{t−1} + φ(k_t); y_t = concat_h S_tᵀ φ(q_t) / (z_tᵀ φ(q_t) + 10⁻⁶) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        feature: the features φ: elu(x) + 1 or relu(x); elu or relu.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; none or rms.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Katharopoulos et al. 2020, equations 9 to 12.
        """

linear_attn: _LinearAttn

class _Lstm(Recipe):
    """The block `lstm`: long short-term memory (LSTM), from left to right."""

    def __call__(
        _self,
        layers: int | HoleOrDimension = 1,
    ) -> Recipe:
        """Long short-term memory (LSTM), from left to right: i, f, o = σ(W x_t + U h_{t−1} + b); s_t = f⊙s_{t−1} + i⊙tanh(W_g x_t + U_g h_{t−1} + b_g); y_t = h_t = o⊙tanh(s_t).

        layers: number of stacked layers; whole number, 1 to 16.

        Hochreiter and Schmidhuber 1997; forget gate of Gers, Schmidhuber and Cummins 2000.
        """

lstm: _Lstm

class _Mamba(Recipe):
    """The block `mamba`: selective state space: a state per channel, with input-dependent steps, keys and queries."""

    def __call__(
        _self,
        channels: int | HoleOrDimension = 512,
        state: int | HoleOrDimension = 16,
        negative: bool | HoleOrDimension = False,
        short_conv: int | HoleOrDimension = 4,
        output_gate: Literal["none", "sigmoid", "silu", "gelu"] | HoleOrDimension = "silu",
    ) -> Recipe:
        """Selective state space: a state per channel, with input-dependent steps, keys and queries: u = silu(conv(W x)); Δ_t = softplus(W₂ W₁ u_t + b); h_t = a_t ⊙ h_{t−1} + (Δ_t ⊙ u_t) (W_B u_t)ᵀ, a_t = exp(−exp(A) Δ_t), if negative 2 exp(−exp(A) Δ_t) − 1; y_t = W_o ((h_t W_C u_t + D ⊙ u_t) ⊙ silu(W_g x_t)).

        channels: width of the recurrence; whole number, 1 to 1048576.
        state: state size per channel; whole number, 1 to 4096.
        negative: whether the decay is between −1 and 1, instead of 0 and 1; true or false.
        short_conv: kernel size of a causal depthwise convolution with SiLU; 0 for none; whole number, 0 to 64.
        output_gate: activation of the output gate, a linear map of the input; none, sigmoid, silu or gelu.

        Gu and Dao 2023 (Mamba), sections 3.2 to 3.6; negative: Grazzi et al. 2025.
        """

mamba: _Mamba

class _MarkovNeuralGpu(Recipe):
    """The block `markov_neural_gpu`: Neural GPU in which each output depends on the previous one."""

    def __call__(
        _self,
        layers: int | HoleOrDimension = 2,
        width: int | HoleOrDimension = 4,
        maps: int | HoleOrDimension = 0,
        kernel: int | HoleOrDimension = 3,
        input_norm: bool | HoleOrDimension = False,
        first_unit: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Neural GPU in which each output depends on the previous one: o_i from [s_n[i, 0] ; E′ o_{i−1}], s_n as in neural_gpu.

        layers: number of gated units per step; whole number, 1 to 64.
        width: width of the image; whole number, 1 to 256.
        maps: channels of the image; 0: d_model; whole number, 0 to 65536.
        kernel: kernel size in both directions; whole number, 3 to 64.
        input_norm: whether a linear map with bias and a norm over channels create the initial image, including empty cells; true or false.
        first_unit: whether a separate gated unit precedes the steps; true or false.

        Kaiser and Bengio 2016, section 2.1.
        """

markov_neural_gpu: _MarkovNeuralGpu

class _MeanPool(Recipe):
    """The block `mean_pool`: plain mean of all positions."""

    def __call__(
        _self,
    ) -> Recipe:
        """Plain mean of all positions: y = Σ_t x_t / T.

        Raffel and Ellis 2016, section 1.3.
        """

mean_pool: _MeanPool

class _MinGru(Recipe):
    """The block `min_gru`: gated recurrent unit with gate and candidate independent of the state, computed as a scan."""

    def __call__(
        _self,
        channels: int | HoleOrDimension = 512,
        candidate: Literal["positive", "linear"] | HoleOrDimension = "positive",
        short_conv: int | HoleOrDimension = 0,
        output_gate: Literal["none", "sigmoid", "silu", "gelu"] | HoleOrDimension = "none",
    ) -> Recipe:
        """Gated recurrent unit with gate and candidate independent of the state, computed as a scan: z_t = σ(W_z x_t + b_z); h_t = (1−z_t)⊙h_{t−1} + z_t⊙g(W_h x_t + b_h); y_t = W_o h_t; g(u) = u + 0.5 if u ≥ 0, else σ(u); or u.

        channels: width of the recurrence; whole number, 1 to 1048576.
        candidate: whether candidates pass through g, which makes them positive; positive or linear.
        short_conv: kernel size of a causal depthwise convolution of W_z x and W_h x, before both are used; 0 for none; whole number, 0 to 64.
        output_gate: activation of the output gate, a linear map of the input; none, sigmoid, silu or gelu.

        Feng et al. 2024 (Were RNNs All We Needed?), section 3.1 and appendix B.
        """

min_gru: _MinGru

class _Mlstm(Recipe):
    """The block `mlstm`: matrix memory of the xLSTM, with exponential gates."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        forget: Literal["sigmoid", "exp"] | HoleOrDimension = "sigmoid",
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "sigmoid",
    ) -> Recipe:
        """Matrix memory of the xLSTM, with exponential gates: C_t = f_t C_{t−1} + i_t k_t v_tᵀ; n_t = f_t n_{t−1} + i_t k_t; i_t = exp(w_i x_t + b_i), f_t = σ(w_f x_t + b_f), or exp; y_t = concat_h norm(C_tᵀ q_t / max(|n_tᵀ q_t|, 1)) ⊙ σ(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        forget: activation of the forget gate; sigmoid or exp.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Beck et al. 2024 (xLSTM), section 2.3, without projections around it; keys are divided by √head_width.
        """

mlstm: _Mlstm

class _NeuralGpu(Recipe):
    """The block `neural_gpu`: Neural GPU with independent outputs."""

    def __call__(
        _self,
        layers: int | HoleOrDimension = 2,
        width: int | HoleOrDimension = 4,
        maps: int | HoleOrDimension = 0,
        kernel: int | HoleOrDimension = 3,
        input_norm: bool | HoleOrDimension = False,
        first_unit: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Neural GPU with independent outputs: CGRU(s) = u ⊙ s + (1 − u) ⊙ tanh(U ∗ (r ⊙ s) + B); u = hardsig(U′ ∗ s + B′); r = hardsig(U″ ∗ s + B″); s_n = (CGRU_l ∘ … ∘ CGRU_1)ⁿ(s_0), n the length; o_i from s_n[i, 0].

        layers: number of gated units per step; whole number, 1 to 64.
        width: width of the image; whole number, 1 to 256.
        maps: channels of the image; 0: d_model; whole number, 0 to 65536.
        kernel: kernel size in both directions; whole number, 3 to 64.
        input_norm: whether a linear map with bias and a norm over channels create the initial image, including empty cells; true or false.
        first_unit: whether a separate gated unit precedes the steps; true or false.

        Kaiser and Sutskever 2016; Kaiser and Bengio 2016, section 2; `input_norm` and `first_unit` are those of their program.
        """

neural_gpu: _NeuralGpu

class _PersistentConv:
    """The block `persistent_conv`: convolution padded with trained vectors, shared by all such convolutions of equal k."""

    def __call__(
        _self,
        k: int | HoleOrDimension,
        act: Literal["relu", "gelu", "gelu_tanh", "tanh", "leaky_relu", "relu2"] | HoleOrDimension = "relu",
    ) -> Recipe:
        """Convolution padded with trained vectors, shared by all such convolutions of equal k: y = act(W ∗ [p ; x ; p′] + b).

        k: kernel width in tokens; whole number, 1 to 1024.
        act: activation; relu, gelu, gelu_tanh, tanh, leaky_relu or relu2.

        Dowdell and Zhang 2019, section 3.1.
        """

persistent_conv: _PersistentConv

class _Retention(Recipe):
    """The block `retention`: linear attention with a fixed decay per head, and rotated queries and keys."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        rotate: bool | HoleOrDimension = True,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "silu",
    ) -> Recipe:
        """Linear attention with a fixed decay per head, and rotated queries and keys: S_t = γ_h S_{t−1} + (R^t k_t) v_tᵀ, γ_h = 1 − 2^(−5−h); y_t = concat_h norm(S_tᵀ R^t q_t / √head_width) ⊙ silu(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        rotate: whether queries and keys are rotated by position-dependent angles; true or false.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Sun et al. 2023, equations 5 to 8; root mean square for its group norm.
        """

retention: _Retention

class _RgLru(Recipe):
    """The block `rg_lru`: real-gated linear recurrent unit: channels decay by a learned rate and an input-dependent gate."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        short_conv: int | HoleOrDimension = 4,
        output_gate: Literal["none", "sigmoid", "silu", "gelu"] | HoleOrDimension = "gelu",
    ) -> Recipe:
        """Real-gated linear recurrent unit: channels decay by a learned rate and an input-dependent gate: u = conv(W x); r_t = σ(W_r u_t + b_r); i_t = σ(W_i u_t + b_i); a_t = σ(Λ)^(8 r_t); h_t = a_t⊙h_{t−1} + √(1−a_t²)⊙i_t⊙u_t; y_t = W_o (h_t ⊙ gelu(W_g x_t)); W_r and W_i by blocks.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        short_conv: kernel size of a causal depthwise convolution after the linear map; 0 for none; whole number, 0 to 64.
        output_gate: activation of the output gate, a linear map of the input; none, sigmoid, silu or gelu.

        De et al. 2024 (Griffin), section 2.4.
        """

rg_lru: _RgLru

class _Rwkv7(Recipe):
    """The block `rwkv7`: generalised delta rule: decays, learning rates, and separate removed and written keys, by channel."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "sigmoid",
    ) -> Recipe:
        """Generalised delta rule: decays, learning rates, and separate removed and written keys, by channel: S_t = (diag(w_t) − (a_t ⊙ κ_t) κ_tᵀ) S_{t−1} + k̃_t v_tᵀ, w_t = exp(−e^(−½) σ(W₂ tanh(W₁ x_t) + b)), a_t = σ(W₄ W₃ x_t + c), κ_t = k_t ⊙ ξ of length one, k̃_t = k_t ⊙ (1 + (a_t − 1) ⊙ η); y_t = concat_h norm(S_tᵀ q_t + (ρ · q_t ⊙ k̃_t) v_t) ⊙ σ(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Peng et al. 2025 (RWKV-7), equations 13 to 20, without token shift and values of the first layer; the bonus within the norm.
        """

rwkv7: _Rwkv7

class _Sa(Recipe):
    """The block `sa`: multi-head softmax self-attention."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        pos: Literal["none", "relative", "rope", "alibi", "t5"] | HoleOrDimension = "none",
        span: int | HoleOrDimension = 0,
        adaptive: bool | HoleOrDimension = False,
        ramp: int | HoleOrDimension = 32,
        self: bool | HoleOrDimension = False,
        pos_values: bool | HoleOrDimension = False,
        temperature: float | HoleOrDimension = 1.0,
        kv_heads: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "rms"] | HoleOrDimension = "none",
        logit_cap: float | HoleOrDimension = 0.0,
    ) -> Recipe:
        """Multi-head softmax self-attention: y = concat_h softmax(Q_h K_hᵀ / (√head_width · temperature)) V_h · W_o, without biases.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        pos: relative: distance vectors added to keys; rope: rotated queries and keys; alibi: scores decreasing with distance; t5: a learned bias for each bucket of distances; none, relative, rope, alibi or t5.
        span: sliding window: visible tokens on each side, 0 for all; whole number, 0 to 65536.
        adaptive: whether each head learns its span; true or false.
        ramp: length in tokens of the ramp at the end of an adaptive span; whole number, 2 to 65536.
        self: whether a causal span of relative positions includes the position itself; true or false.
        pos_values: whether position vectors are added to values as well as to keys; true or false.
        temperature: divisor of the scores in addition to √head_width; number, 1e-06 to 1000000.0.
        kv_heads: number of key/value heads, each shared by equally many query heads; 0: as many as heads; whole number, 0 to 1024.
        qk_norm: normalisation of each head's queries and keys, with gains shared by heads; none or rms.
        logit_cap: cap c of scores: s becomes c tanh(s / c); 0 for none; number, 0.0 to 1000000.0.

        Vaswani et al. 2017; widths of the program of Dowdell and Zhang 2019; positions and spans of Sukhbaatar et al. 2019; rope: Su et al. 2021; alibi: Press et al. 2022, with slopes 2^(−8 h / heads) for 3, 6 or 12 heads too, for which the program of its authors interpolates; t5: Raffel et al. 2020; kv_heads: Ainslie et al. 2023; qk_norm: Henry et al. 2020; logit_cap: Gemma Team 2024 (Gemma 2), section 2.
        """

sa: _Sa

class _Seq2seq:
    """The block `seq2seq`: encoder and decoder."""

    def __call__(
        _self,
        encoder: str | Recipe,
        decoder: str | Recipe,
        attention: Literal["none", "luong", "bahdanau"] | HoleOrDimension = "none",
        attend: Literal["outputs", "inputs"] | HoleOrDimension = "outputs",
        positions: int | HoleOrDimension = 10,
        feed: bool | HoleOrDimension = False,
        units: int | HoleOrDimension = 0,
    ) -> Recipe:
        """Encoder and decoder: y_t = [c_t ; h′_t] for lstm and gru, c_t = Σ softmax_i(score(s_i, h′_t)) m_i, with feed of the input W [x_t ; c_{t−1}] + b; else the decoder's stack, attending to the source after each sub-layer that mixes.

        encoder: encoder of the source; a recipe.
        decoder: decoder of the target; a recipe.
        attention: attention scores of a recurrent decoder; none, luong or bahdanau.
        attend: attended vectors: the encoder's outputs or inputs; outputs or inputs.
        positions: width of the position vectors appended to attended inputs; whole number, 1 to 4096.
        feed: input feeding: whether the context enters the decoder's next input; true or false.
        units: state width of lstm or gru in encoder and decoder; 0: d_model; whole number, 0 to 65536.

        Sutskever, Vinyals and Le 2014; Luong et al. 2015; Bahdanau et al. 2015; Vaswani et al. 2017.
        """

seq2seq: _Seq2seq

class _SingleHead:
    """The block `single_head`: attn_split with a single wide head for the persistent vectors."""

    def __call__(
        _self,
        N: int | HoleOrDimension,
        span: int | HoleOrDimension = 1024,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        adaptive: bool | HoleOrDimension = False,
        ramp: int | HoleOrDimension = 32,
        self: bool | HoleOrDimension = False,
        pos_values: bool | HoleOrDimension = False,
    ) -> Recipe:
        """Attn_split with a single wide head for the persistent vectors: y = (concat_h softmax(q_hᵀ (k_h + u) / √head_width) v_h + softmax(qᵀ k′) √N v′) · W_o, q = concat_h q_h.

        N: number of persistent vectors per head; whole number, 0 to 1048576.
        span: visible tokens on each side; whole number, 1 to 65536.
        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        adaptive: whether each head learns its span; true or false.
        ramp: length in tokens of the ramp at the end of an adaptive span; whole number, 2 to 65536.
        self: whether a causal span of relative positions includes the position itself; true or false.
        pos_values: whether position vectors are added to values as well as to keys; true or false.

        Sukhbaatar et al. 2019 (Augmenting Self-attention with Persistent Memory), section 5.3.
        """

single_head: _SingleHead

class _Slstm(Recipe):
    """The block `slstm`: scalar memory of the xLSTM: exponential gates that depend on the state."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        forget: Literal["sigmoid", "exp"] | HoleOrDimension = "sigmoid",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
    ) -> Recipe:
        """Scalar memory of the xLSTM: exponential gates that depend on the state: z_t = tanh(W x_t + R h_{t−1} + b); of such maps i_t = exp(…), f_t = σ(…), or exp, o_t = σ(…); c_t = f_t⊙c_{t−1} + i_t⊙z_t; n_t = f_t⊙n_{t−1} + i_t; h_t = o_t⊙c_t / n_t; y_t = concat_h norm(h_t) · W_o; R by heads.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        forget: activation of the forget gate; sigmoid or exp.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.

        Beck et al. 2024 (xLSTM), section 2.2, without the layers around it.
        """

slstm: _Slstm

class _Ssd(Recipe):
    """The block `ssd`: state space duality: heads with shared queries and keys, and input-dependent decays."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        state: int | HoleOrDimension = 64,
        short_conv: int | HoleOrDimension = 4,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["rms", "none"] | HoleOrDimension = "rms",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "silu",
    ) -> Recipe:
        """State space duality: heads with shared queries and keys, and input-dependent decays: Δ_t = softplus(W_Δ x_t + b); S_t = exp(−exp(A_h) Δ_t) S_{t−1} + Δ_t k_t v_tᵀ; y_t = concat_h norm(S_tᵀ q_t + D_h v_t) ⊙ silu(W_g x_t) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.
        state: width of the shared queries and keys; whole number, 1 to 4096.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; rms or none.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Dao and Gu 2024 (Mamba-2), sections 6 and 7; the norm is of each head and before the gate.
        """

ssd: _Ssd

class _Ttt(Recipe):
    """The block `ttt`: test-time training: the state is a linear model of values given keys, trained by gradient steps."""

    def __call__(
        _self,
        heads: int | HoleOrDimension = 8,
        head_width: int | HoleOrDimension = 64,
        batch: int | HoleOrDimension = 16,
        short_conv: int | HoleOrDimension = 0,
        qk_norm: Literal["none", "l2"] | HoleOrDimension = "none",
        head_norm: Literal["none", "rms"] | HoleOrDimension = "none",
        output_gate: Literal["none", "silu", "sigmoid"] | HoleOrDimension = "none",
    ) -> Recipe:
        """Test-time training: the state is a linear model of values given keys, trained by gradient steps: W_t = W_τ − Σ_{τ<s≤t} η_s [k_s ; 1] g_sᵀ, g_s = ∂ ½|k_s + LN(u) − v_s|² / ∂u at u = W_τᵀ [k_s ; 1], τ the end of the last mini-batch, η_s = σ(W_η x_s + b) / head_width; y_t = concat_h (q_t + LN(W_tᵀ [q_t ; 1])) · W_o.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 4 to 4096.
        batch: mini-batch size in positions; its gradients use the weights before the mini-batch; whole number, 1 to 65536.
        short_conv: kernel size of causal depthwise convolutions with SiLU on queries, keys and values; 0 for none; whole number, 0 to 64.
        qk_norm: normalisation of each head's queries and keys; l2 gives unit length; none or l2.
        head_norm: normalisation of each head's output, with gains shared by heads; none or rms.
        output_gate: activation of the output gate, a linear map of the input; none, silu or sigmoid.

        Sun et al. 2024 (Learning to Learn at Test Time), sections 2.1 to 2.7, TTT-Linear without rotated keys.
        """

ttt: _Ttt
