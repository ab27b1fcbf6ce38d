"""The scalar memory of the xLSTM: exponential gates that see the state, head by head."""

from __future__ import annotations

from ..attention import HEAD_WIDTH, HEADS
from ..matrix_states.mlstm import FORGET
from ..matrix_states.recurrent_heads import head_norm_parameter
from ..spec import Cost, CostContext, Settings, as_int, as_word
from .recurrent_channels import register_channels


def _slstm(settings: Settings, context: CostContext) -> Cost:
    """Four maps of the input, four of the state by heads, biases, and a map of the output.

    Saved are at each position the output, twice, both gates of what is held, the candidate and the output
    gate, both sums and their quotient, and of a sigmoid its input with those of the others; and what the
    norm keeps.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    inner, normed = heads * head_width, as_word(settings, "head_norm") != "none"
    maps = 5 * context.width * inner
    steps = 14 if as_word(settings, "forget") == "sigmoid" else 9
    saved = length * ((steps + 2 * normed) * inner + normed * heads)
    return Cost(
        parameters=maps + 4 * inner * (head_width + 1) + normed * head_width,
        flops=2 * length * (maps + 4 * inner * head_width),
        window=4 * inner,
        saved=saved,
    )


SLSTM = register_channels(
    "slstm",
    "scalar memory with exponential gates that see the state, the one of the xLSTM",
    "z_t = tanh(W x_t + R h_{t−1} + b); of such maps i_t = exp(…), f_t = σ(…), or exp, o_t = σ(…); "
    "c_t = f_t⊗c_{t−1} + i_t⊗z_t; n_t = f_t⊗n_{t−1} + i_t; h_t = o_t⊗c_t / n_t; "
    "y_t = concat_h norm(h_t) · W_o; R by heads",
    "Beck et al. 2024 (xLSTM), section 2.2, without the layers around it",
    _slstm,
    HEADS,
    HEAD_WIDTH,
    FORGET,
    head_norm_parameter("rms"),
)
