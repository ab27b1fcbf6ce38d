"""The block `mamba3`: a state space that writes each key at two positions, and rotates keys by the input.

Lahoti et al. 2026 (Mamba-3, arXiv 2603.15569): trapezoidal and complex-valued state, single input and output;
rates as in the program released with it.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from activemem import Block, Linear, Parameter, Reach, register_block

CHUNK = 64
"""Positions that are computed together."""


@register_block(
    "mamba3",
    parameters=[
        Parameter(name="heads", kind="integer", default=8, low=1, high=256, meaning="number of heads"),
        Parameter(name="head_width", kind="integer", default=64, low=1, high=4096, meaning="width of a head"),
        Parameter(
            name="state",
            kind="integer",
            default=64,
            low=4,
            high=4096,
            meaning="width of the shared queries and keys",
        ),
        Parameter(
            name="rotation",
            kind="word",
            words=("half", "all", "none"),
            default="half",
            meaning="the share of state channels that are rotated; none gives a real-valued state",
        ),
    ],
    reach=lambda _settings, _context: Reach(left=math.inf, right=0),
    summary="exponential-trapezoidal state space, keys rotated by input-dependent angles",
    equation="h_t = α_t h_{t−1} + (1 − λ_t) Δ_t α_t k_{t−1} v_{t−1}ᵀ + λ_t Δ_t k_t v_tᵀ, "
    "Δ_t = softplus(W_Δ x_t + b), α_t = exp(−Δ_t max(softplus(W_A x_t), 10⁻⁴)), λ_t = σ(W_λ x_t); "
    "k_t = R(φ_t) (norm(W_k x_t) + c_h), q_t = R(φ_t) (norm(W_q x_t) + d_h), "
    "φ_t = φ_{t−1} + Δ_t π tanh(W_φ x_t); y_t = concat_h (h_tᵀ q_t + D_h v_t) ⊙ silu(W_g x_t) · W_o",
    source="Lahoti et al. 2026",
)
class Mamba3(Block):
    """h_t = α_t h_{t−1} + (1 − λ_t) Δ_t α_t k_{t−1} v_{t−1}ᵀ + λ_t Δ_t k_t v_tᵀ, with rotated keys."""

    state_is_bounded = True
    weight_roles = MappingProxyType(
        {"gains": "norm", "offsets": "bias", "step_offset": "rate", "skip": "gain"}
    )

    def __init__(
        self, *, width: int, causal: bool, heads: int, head_width: int, state: int, rotation: str
    ) -> None:
        super().__init__()
        inner, self.shape, self.state = heads * head_width, (heads, head_width), state
        self.pairs = {"half": state // 4, "all": state // 2, "none": 0}[rotation]
        self.qkv = Linear(width, 2 * state + inner, bias=False)
        self.gains = nn.Parameter(torch.ones(2, 1, state))  # of queries and keys
        self.offsets = nn.Parameter(torch.ones(2, heads, state))
        self.gates = Linear(width, 3 * heads + self.pairs, bias=False)
        steps = torch.empty(heads).uniform_(math.log(1e-3), math.log(0.1)).exp()
        self.step_offset = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))  # its softplus is `steps`
        self.skip = nn.Parameter(torch.ones(heads, 1))
        self.gate = Linear(width, inner, bias=False)
        self.output = Linear(inner, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Run the recurrence over whole sequences; padding comes last, so it changes nothing."""
        return self._run(x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0), None)[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Continue from the matrices h, and the last position's keys and values, in one tensor.

        h and the keys are as if the next position were the first one: its angle counts from 0.
        """
        return self._run(x, state)

    def _run(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        (heads, width), size, exact = self.shape, self.state, torch.promote_types(x.dtype, torch.float32)
        shared, v = self.qkv(x).to(exact).split([2 * size, heads * width], 2)
        shared = shared.unflatten(2, (2, 1, size))
        shared = shared * (shared.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.gains + self.offsets
        # (batch, heads, length, ·), in single precision
        q, k = shared.permute(2, 0, 3, 1, 4)
        v = v.unflatten(2, self.shape).transpose(1, 2)
        steps, rates, shares, angles = self.gates(x).to(exact).split([heads, heads, heads, self.pairs], 2)
        steps = functional.softplus(steps + self.step_offset).mT
        log_decay = -steps * functional.softplus(rates).clamp(min=1e-4).mT
        shares = torch.sigmoid(shares).mT
        # a key is written with `now` at its own position, and with `before` at the next one
        now, before = shares * steps, (1 - shares) * steps
        angles = (steps[..., None] * math.pi * torch.tanh(angles).unsqueeze(1)).cumsum(2)
        matrix = x.new_zeros(len(x), heads, size, width, dtype=exact)
        if state is not None:
            saved, key, value = (
                state.to(exact).unflatten(1, (heads, -1)).split([size * width, size, width], 2)
            )
            matrix = (
                saved.view_as(matrix) + before[:, :, 0, None, None] * key[..., None] * value[..., None, :]
            )
        later = functional.pad(before[..., 1:], (0, 1))
        parts = (turn(q, angles), turn(k, angles), v, now, later, log_decay)
        outputs = list[Tensor]()
        for chunk in zip(*(each.split(CHUNK, 2) for each in parts), strict=True):
            y, matrix = run_chunk(chunk, matrix)
            outputs.append(y)
        y = torch.cat(outputs, 2) + v * self.skip[..., None]
        y = (y.transpose(1, 2).flatten(2) * functional.silu(self.gate(x))).to(x.dtype)
        matrix = turn(matrix.mT, -angles[:, :, -1:]).mT
        kept = torch.cat([matrix.flatten(2), k[:, :, -1], v[:, :, -1]], 2)
        return self.output(y), kept.flatten(1)


def run_chunk(parts: tuple[Tensor, ...], state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the outputs of a chunk, (batch, heads, positions, values), and the state h after it.

    The parts are q, k, v, `now`, `later` and the log decay of each position.
    """
    q, k, v, now, later, log_decay = parts
    total, both, size = log_decay.cumsum(2), now + later, q.shape[2]
    behind = torch.ones(size, size, device=q.device).tril()
    decay = (total[..., None] - total[..., None, :]).masked_fill(behind == 0, -math.inf).exp()
    own = torch.eye(size, dtype=torch.bool, device=q.device)
    shares = torch.where(own, now[..., None, :], both[..., None, :])  # an output sees no later write
    y = (q @ k.mT * decay * shares) @ v + q * total[..., None].exp() @ state
    end = total[..., -1:]
    written = (k * (both * (end - total).exp())[..., None]).mT @ v
    return y, end[..., None].exp() * state + written


def turn(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate pairs of neighbours among the first channels of x (…, width) by angles (…, pairs)."""
    first, rest = x[..., : 2 * angles.shape[-1]], x[..., 2 * angles.shape[-1] :]
    even, odd = first[..., ::2], first[..., 1::2]
    turned = [even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()]
    return torch.cat([torch.stack(turned, -1).flatten(-2), rest], -1)
