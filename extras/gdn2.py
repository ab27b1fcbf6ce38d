"""The block `gdn2`: gated delta rule 2, with separate gates that erase and write, by channel.

Hatamizadeh, Choi and Kautz 2026 (Gated DeltaNet-2, arXiv 2605.22791), with an output gate of full rank;
`negative`: Grazzi et al. 2025.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from activemem import Block, Linear, Parameter, Reach, register_block

CHUNK = 16
"""Positions that are computed together. Within them decays multiply to at least exp(−80), a float32."""

TAPS = 4
"""The taps of the short convolution of queries, keys and values."""


@register_block(
    "gdn2",
    parameters=[
        Parameter(name="heads", kind="integer", default=8, low=1, high=256, meaning="number of heads"),
        Parameter(name="head_width", kind="integer", default=64, low=1, high=4096, meaning="width of a head"),
        Parameter(
            name="negative", kind="boolean", default=False, meaning="whether a key can be erased twice over"
        ),
    ],
    reach=lambda _settings, _context: Reach(left=math.inf, right=0),
    summary="gated delta rule 2: separate gates erase and write, by channel, with decay of each key channel",
    equation="S_t = (I − k_t (b_t ⊙ k_t)ᵀ) diag(α_t) S_{t−1} + k_t (w_t ⊙ v_t)ᵀ, w_t = σ(W_w x_t), "
    "b_t = σ(W_b x_t), twice that if negative, α_t = exp(−min(exp(A_h) softplus(W₂ W₁ x_t + c), 5)); "
    "y_t = concat_h norm(S_tᵀ q_t / √head_width) ⊙ σ(W_g x_t) · W_o",
    source="Hatamizadeh, Choi and Kautz 2026",
)
class GatedDeltaRule2(Block):
    """S_t = (I − k_t (b_t ⊙ k_t)ᵀ) diag(α_t) S_{t−1} + k_t (w_t ⊙ v_t)ᵀ, read by the queries of each head."""

    state_is_bounded = True
    weight_roles = MappingProxyType({"log_rate": "rate", "offset": "rate", "gains": "norm", "taps": "filter"})

    def __init__(self, *, width: int, causal: bool, heads: int, head_width: int, negative: bool) -> None:
        super().__init__()
        inner = heads * head_width
        self.shape, self.most = (heads, head_width), 2.0 if negative else 1.0
        self.qkv = Linear(width, 3 * inner, bias=False)
        self.taps = nn.Parameter(torch.empty(TAPS, 3 * inner).uniform_(-(TAPS**-0.5), TAPS**-0.5))
        self.erase, self.write, self.gate = (Linear(width, inner, bias=False) for _ in range(3))
        self.decay_in, self.decay_out = (
            Linear(width, head_width, bias=False),
            Linear(head_width, inner, bias=False),
        )
        self.log_rate = nn.Parameter(torch.empty(heads, 1).uniform_(1.0, 16.0).log())
        steps = torch.empty(heads, head_width).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.offset = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))  # its softplus is `steps`
        self.gains = nn.Parameter(torch.ones(head_width))
        self.output = Linear(inner, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Run the recurrence over whole sequences; padding comes last, so it changes nothing."""
        return self._run(x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Continue from the past inputs of the convolution and the matrices S, in one tensor."""
        return self._run(x, state)

    def _run(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        (heads, width), (batch, length) = self.shape, x.shape[:2]
        exact = torch.promote_types(x.dtype, torch.float32)
        mapped = self.qkv(x)
        channels, matrix = mapped.shape[2], x.new_zeros(batch, heads, width, width, dtype=exact)
        past = mapped.new_zeros(batch, TAPS - 1, channels)
        if state is not None:
            past = state[:, : past[0].numel()].view_as(past).to(mapped.dtype)
            matrix = state[:, past[0].numel() :].view_as(matrix).to(exact)
        seen = torch.cat([past, mapped], 1)
        mapped = functional.silu(sum(seen[:, tap : tap + length] * self.taps[tap] for tap in range(TAPS)))
        # (batch, heads, length, head width), in single precision
        q, k, v = (self._by_head(each) for each in mapped.chunk(3, 2))
        q, k = (each * (each.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for each in (q, k))
        erased, written = (self._by_head(torch.sigmoid(gate(x))) for gate in (self.erase, self.write))
        steps = functional.softplus(
            self._by_head(self.decay_out(self.decay_in(x))) + self.offset[:, None].to(exact)
        )
        log_decay = -(steps * self.log_rate[..., None].to(exact).exp()).clamp(max=5.0)
        parts = (q * width**-0.5, k * erased * self.most, k, v * written, log_decay)
        outputs = list[Tensor]()
        for chunk in zip(*(each.split(CHUNK, 2) for each in parts), strict=True):
            y, matrix = run_chunk(chunk, matrix)
            outputs.append(y)
        y = torch.cat(outputs, 2).transpose(1, 2)  # (batch, length, heads, head width)
        y = y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.gains
        y = (y.flatten(2) * torch.sigmoid(self.gate(x))).to(x.dtype)
        kept = torch.cat([seen[:, length:].flatten(1).to(exact), matrix.flatten(1)], 1)
        return self.output(y), kept

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(2, self.shape).transpose(1, 2).to(torch.promote_types(x.dtype, torch.float32))


def run_chunk(parts: tuple[Tensor, ...], state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs of a chunk, (batch, heads, positions, values), and the state S after it.

    The parts are q, r, k, v and the log decay of each position: S_t = diag(α_t) S_{t−1} + k_t (v_t − r_tᵀ
    diag(α_t) S_{t−1}). The written values solve a triangular system.
    """
    q, read, k, v, log_decay = parts
    total = log_decay.cumsum(2)
    q, read, k_now = q * total.exp(), read * total.exp(), k * (-total).exp()
    # under autocast products are in half precision, in which there is no solver
    system, wanted = (read @ k_now.mT).tril(-1).to(state.dtype), v - (read @ state).to(state.dtype)
    new = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
    y = q @ state + (q @ k_now.mT).tril() @ new
    end = total[:, :, -1:]
    return y, end.exp().mT * state + (k * (end - total).exp()).mT @ new
