"""The scalar memory of the xLSTM: exponential gates that see the state, head by head."""

from __future__ import annotations

from ..attention import HEAD_WIDTH, HEADS
from ..matrix_states.mlstm import FORGET
from ..matrix_states.recurrent_heads import head_norm_parameter
from ..spec import as_int
from .recurrent_channels import register_channels

SLSTM = register_channels(
    "slstm",
    "scalar memory with exponential gates that see the state, the one of the xLSTM",
    "z_t = tanh(W x_t + R h_{t−1} + b); of such maps i_t = exp(…), f_t = σ(…), or exp, o_t = σ(…); "
    "c_t = f_t⊗c_{t−1} + i_t⊗z_t; n_t = f_t⊗n_{t−1} + i_t; h_t = o_t⊗c_t / n_t; "
    "y_t = concat_h norm(h_t) · W_o; R by heads",
    "Beck et al. 2024 (xLSTM), section 2.2, without the layers around it",
    lambda settings: 4 * as_int(settings, "heads") * as_int(settings, "head_width"),
    HEADS,
    HEAD_WIDTH,
    FORGET,
    head_norm_parameter("rms"),
)
