"""`slstm`: exponential gates that depend on their head's state, one position after the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_int, as_word
from ...core.block import Block, Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, glorot, roles
from ..convolutions import zero_masked
from ..head_parts import HeadNorm


class HeadTransitions(Initialisable):
    """The maps from each head's state to its four gates, and their offsets.

    The offsets of a sigmoid forget gate are evenly spaced from 3 to 6 over the heads, the others are 0.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, offset=WeightRole.BIAS)

    def __init__(self, heads: int, width: int, *, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded
        self.weight = nn.Parameter(torch.empty(heads, width, 4 * width))
        self.offset = nn.Parameter(torch.empty(heads, 4 * width))

    def initialise(self, generator: torch.Generator | None) -> None:
        heads, width, _ = self.weight.shape
        glorot(self.weight, width, width, generator)
        nn.init.zeros_(self.offset)
        if self.bounded:
            with torch.no_grad():
                self.offset[:, 2 * width : 3 * width] = torch.linspace(3.0, 6.0, heads).unsqueeze(-1)

    def fan_in(self, weight: nn.Parameter) -> int:
        return weight.shape[1]

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return [part for head in tensor.unbind() for part in head.chunk(4, -1)]


@register_block("slstm")
class ScalarLSTM(Block):
    """c_t = f_t⊗c_{t−1} + i_t⊗z_t, h_t = o_t⊗c_t / n_t, gates by x_t and h_{t−1} (Beck et al. 2024).

    The sums are divided by the exponential of a stabiliser, the largest log weight so far, which cancels in
    their quotient.
    """

    state_is_bounded = True
    loops_over_positions = True

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.heads, self.head_width = as_int(settings, "heads"), as_int(settings, "head_width")
        self.bounded = as_word(settings, "forget") == "sigmoid"
        inner, width = self.heads * self.head_width, context.width
        self.input = Linear(width, inner, bias=False, maps=4)
        self.transitions = HeadTransitions(self.heads, self.head_width, bounded=self.bounded)
        self.norm = HeadNorm(self.head_width) if as_word(settings, "head_norm") == "rms" else None
        self.output = Linear(inner, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute all positions; the block is causal, so that the mask has no effect on valid ones."""
        return self.step_with_grad(zero_masked(x, mask), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Read a piece; the state (batch, 4, heads, head_width) has output, both sums and stabiliser."""
        mapped = self.input(x).unflatten(2, (4, self.heads, -1)).permute(1, 3, 0, 2, 4).flatten(3)
        mapped = mapped + self.transitions.offset.unsqueeze(1)  # (length, heads, batch, 4 * head_width)
        if state is None:
            h = c = n = torch.zeros_like(mapped[0, ..., : self.head_width])
            m = torch.full_like(h, -torch.inf)
        else:
            h, c, n, m = state.permute(1, 2, 0, 3).unbind(0)
        outputs: list[Tensor] = []
        for each in mapped.unbind(0):
            h, c, n, m = self._step(each, h, c, n, m)
            outputs.append(h)
        y = torch.stack(outputs).permute(2, 0, 1, 3)  # (batch, length, heads, head_width)
        kept = torch.stack([h, c, n, m]).permute(2, 0, 1, 3)
        return self.output((y if self.norm is None else self.norm(y)).flatten(2)), kept

    def _step(self, mapped: Tensor, *state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the next state, each (heads, batch, head_width)."""
        h, c, n, m = state
        z, i, f, o = (mapped + torch.bmm(h, self.transitions.weight)).to(c.dtype).chunk(4, -1)
        log_forget = functional.logsigmoid(f) if self.bounded else f
        with torch.no_grad():
            most = torch.maximum(log_forget + m, i)
        kept, written = (log_forget + (m - most)).exp(), (i - most).exp()
        c = kept * c + written * torch.tanh(z)
        n = kept * n + written
        return torch.sigmoid(o) * (c / n), c, n, most
