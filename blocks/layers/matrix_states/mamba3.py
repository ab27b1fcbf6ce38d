"""The recurrence of the block `mamba3`.

Each key is written at two positions (the trapezoidal rule). Rotation angles of keys and queries depend on the
input.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.matrix_states import rotated_pairs
from ....grammar.vocabulary.spec import Settings, as_int, as_word
from ...core.block import Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, roles
from ...core.operations import at_least_single
from ..head_parts import HeadNorm, turn
from .chunked_recurrence import (
    add_states,
    join_chunks,
    longest_chunk,
    pairwise_decay,
    propagate_states,
    split_chunks,
)
from .recurrent_heads import LinearRecurrence, draw_step_offsets

_LEAST_RATE = 1e-4
"""The lower bound of the rate of decay."""


def run_trapezoid(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    now: Tensor,
    later: Tensor,
    log_decay: Tensor,
    state: Tensor | None,
    keep: bool,
) -> tuple[Tensor, Tensor | None]:
    """Run the recurrence of Mamba3 in chunks.

    Each key is written at two positions:

    S_t = exp(`log_decay`_t) (S_{t−1} + `later`_{t−1} k_{t−1} v_{t−1}ᵀ) + `now`_t k_t v_tᵀ. q and k are
    (batch, length, heads, keys), v (batch, length, heads, values), and the rest (batch, length, heads). The
    last position has no `later` write yet. Return the outputs, and the last state if `keep`.
    """
    length, most = q.shape[1], longest_chunk(q.shape[3])
    q, k, v = (split_chunks(each, most) for each in (q, k, v))
    now, later, total = (split_chunks(each.unsqueeze(-1), most) for each in (now, later, log_decay))
    total, both = at_least_single(total).cumsum(-2), now + later  # (chunks, batch, heads, size, 1)
    size = total.shape[-2]
    own = torch.eye(size, dtype=torch.bool, device=total.device)
    shares = torch.where(own, now.transpose(-1, -2), both.transpose(-1, -2))  # no output sees a later step
    weights = q @ k.transpose(-1, -2) * pairwise_decay(total.squeeze(-1)) * shares
    within = weights.to(v.dtype) @ v
    count = len(q) if keep else len(q) - 1
    ends = total[:count, ..., -1:, :]
    written = (k[:count] * both[:count] * (ends - total[:count]).exp()).to(v.dtype)
    states, last = propagate_states(written.transpose(-1, -2) @ v[:count], ends, state, keep=keep)
    read = q[-len(states) :] * total[-len(states) :].exp() if states else q
    return join_chunks(add_states(within, read, states), length), last


class TrapezoidGates(Initialisable):
    """The quantities that `mamba3` computes from its input for each position.

    They are step sizes, decays, shares λ and rotation angles. The offsets of step sizes are initialised as in
    `HeadRates`.
    """

    weight_roles = roles(step_offset=WeightRole.RATE)

    def __init__(self, width: int, heads: int, pairs: int, std: float | None) -> None:
        super().__init__()
        self.map = Linear(width, (heads, heads, heads, pairs), bias=False, drawn_as_one=True, std=std)
        self.step_offset = nn.Parameter(torch.empty(heads))

    def initialise(self, generator: torch.Generator | None) -> None:
        draw_step_offsets(self.step_offset, generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the step size, log decay, share λ and angles of each position and head.

        λ is the share of a step that writes at its own position; the rest writes at the next position. The
        angles are (batch, length, heads, pairs), and all others (batch, length, heads). An angle is the turn
        of a pair of channels since the previous position.
        """
        steps, rates, shares, angles = self.map(x).split(self.map.map_sizes, 2)
        steps = functional.softplus(steps + self.step_offset)
        log_decay = -steps * functional.softplus(rates).clamp(min=_LEAST_RATE)
        angles = steps.unsqueeze(-1) * (math.pi * torch.tanh(angles)).unsqueeze(2)
        return steps, log_decay, torch.sigmoid(shares), angles


@register_block("mamba3")
class Mamba3(LinearRecurrence):
    """Block `mamba3`: a state space that writes each key at two positions (Lahoti et al. 2026).

    h_t = α_t h_{t−1} + (1 − λ_t) Δ_t α_t k_{t−1} v_{t−1}ᵀ + λ_t Δ_t k_t v_tᵀ. Queries and keys are rotated.
    The state is rotated back, so the next position counts as the first one.
    """

    weight_roles = roles(skip=WeightRole.GAIN, offsets=WeightRole.BIAS)

    def __init__(self, settings: Settings, context: Context) -> None:
        state = as_int(settings, "state")
        super().__init__(settings, context, shared_keys=state)
        normalises = as_word(settings, "qk_norm") == "rms"
        self.norms = nn.ModuleList([HeadNorm(state) for _ in range(2)]) if normalises else None
        self.offsets = nn.Parameter(torch.ones(2, self.heads, state))
        pairs = rotated_pairs(settings)
        self.gates = TrapezoidGates(context.width, self.heads, pairs, context.config.settings.attention_std)
        self.skip = nn.Parameter(torch.ones(self.heads))

    def split_state(self, state: Tensor) -> Tensor:
        """Reshape the flat state to (batch, heads, ·): the state h, and the last position's key and value."""
        return state.unflatten(1, (self.heads, -1))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        steps, log_decay, shares, angles = self.gates(x)
        parts = qk.unbind(2)
        if self.norms is not None:
            parts = [norm(part) for norm, part in zip(self.norms, parts, strict=True)]
        q, k = (part + offset for part, offset in zip(parts, self.offsets, strict=True))
        angles = at_least_single(angles).cumsum(1)  # (batch, length, heads, pairs)
        # a key is written with `now` of its own position, and later with `before` of the next position
        now, before = shares * steps, (1.0 - shares) * steps
        held = None
        if state is not None:
            matrix, key, value = state.split([k.shape[3] * self.head_width, k.shape[3], self.head_width], 2)
            written = key.unsqueeze(-1) * value.unsqueeze(-2)  # (batch, heads, keys, values)
            held = matrix.unflatten(2, (k.shape[3], -1)) + before[:, 0, :, None, None] * written
        y, last = run_trapezoid(
            _turn_first(q, angles),
            _turn_first(k, angles),
            v,
            now=now,
            later=functional.pad(before[:, 1:], (0, 0, 0, 1)),
            log_decay=log_decay,
            state=held,
            keep=keep,
        )
        y = y + v * self.skip[:, None]
        if last is None:
            return y, None
        back = _turn_first(last.transpose(-1, -2), -angles[:, -1].unsqueeze(-2)).transpose(-1, -2)
        return y, torch.cat([back.flatten(2), k[:, -1], v[:, -1]], -1)


def _turn_first(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate pairs of the first channels of x (…, width) by angles (…, pairs); keep the other channels."""
    turned = 2 * angles.shape[-1]
    return torch.cat([turn(x[..., :turned], angles), x[..., turned:]], -1) if turned else x
