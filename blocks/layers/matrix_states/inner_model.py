"""The block `ttt`, whose state is a small model that learns while it reads.

The model is linear and maps keys to values; the state is its weights. All gradients of a mini-batch of
positions are taken at the weights before the mini-batch, so products compute them. Each position sees a sum
of these gradients (Sun et al. 2024, section 2.5 and appendix A).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ....grammar.vocabulary.spec import Settings, as_int
from ...core.block import Context, register_block
from ...core.initialisation import Initialisable, Linear, WeightRole, roles
from ..head_parts import inverse_norm
from .recurrent_heads import LinearRecurrence

EPSILON = 1e-6
"""The constant added to the variance of the inner model's outputs."""


class InnerModel(Initialisable):
    """The inner model of each head, which maps a key k to k + norm(Wᵀ [k ; 1]).

    The module holds its initial weights W and its layer norm.
    """

    weight_roles = roles(begin=WeightRole.MATRIX, gain=WeightRole.NORM, offset=WeightRole.NORM)

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.begin = nn.Parameter(torch.empty(heads, width + 1, width))
        self.gain = nn.Parameter(torch.empty(heads, 1, width))
        self.offset = nn.Parameter(torch.empty(heads, 1, width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the weights of W from N(0, 0.02²), and set its last row, the biases, to zero.

        The layer norm begins with gains of 1 and offsets of 0.
        """
        nn.init.normal_(self.begin, std=0.02, generator=generator)
        with torch.no_grad():
            self.begin[:, -1] = 0.0
        nn.init.ones_(self.gain)
        nn.init.zeros_(self.offset)

    def fan_in(self, weight: nn.Parameter) -> int:
        return weight.shape[1]

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.unbind()

    def added(self, mapped: Tensor) -> Tensor:
        """Return the layer norm of `mapped` (batch, heads, n, width). The model adds it to its input."""
        return self.gain * _standardise(mapped)[0] + self.offset

    def gradient(self, mapped: Tensor, wanted: Tensor) -> Tensor:
        """Return the gradient of the squared error with respect to `mapped`.

        The error is half the squared distance from `added(mapped)` to `wanted`.
        """
        unit, scale = _standardise(mapped)
        by_unit = (self.gain * unit + self.offset - wanted) * self.gain
        along = (by_unit * unit).mean(-1, keepdim=True)
        return scale * (by_unit - by_unit.mean(-1, keepdim=True) - unit * along)


def _standardise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x with mean 0 and variance 1, and the inverse of its standard deviation (…, 1)."""
    centred = x - x.mean(-1, keepdim=True)
    scale = inverse_norm(centred, EPSILON, mean=True)
    return centred * scale, scale


@register_block("ttt")
class TestTimeTraining(LinearRecurrence):
    """Block `ttt`: its state is a linear model W, trained by gradient steps on keys and values.

    W_t = W_τ − Σ_{τ<s≤t} η_s ∇ℓ(W_τ; k_s, v_s), τ the end of the last mini-batch (Sun et al. 2024).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.size = as_int(settings, "batch")
        self.rate = Linear(context.width, self.heads, bias=True, std=context.config.settings.attention_std)
        self.inner = InnerModel(self.heads, self.head_width)

    def split_state(self, state: Tensor) -> Tensor:
        """Reshape the flat state to (batch, heads, head_width + 1, ·).

        The state has the weights before the mini-batch, the current weights, and the position in the batch.
        """
        return state.unflatten(1, (self.heads, self.head_width + 1, -1))

    def recur(
        self, x: Tensor, qk: Tensor, v: Tensor, state: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Run the inner model; a piece of a stream may begin and end inside a mini-batch."""
        length, rate = x.shape[1], torch.sigmoid(self.rate(x).to(v.dtype)).unsqueeze(-1) / self.head_width
        q, k = qk.unbind(2)
        rows = [functional.pad(each, (0, 1), value=1.0) for each in (q, k)] + [v - k, q, rate]
        if state is None:
            begin = self.inner.begin.expand(len(x), -1, -1, -1).clone(memory_format=torch.contiguous_format)
            y, last = self._learn([_by_heads(each) for each in rows], begin, begin, None, keep=keep)
            return y.transpose(1, 2), last
        start, now, place = state.split([self.head_width, self.head_width, 1], -1)
        first = place[:, 0, 0].round().long()  # (batch, 1): positions of the current mini-batch so far
        # the piece is shifted right by `first`, so that its mini-batches begin at multiples of `size`
        steps = -(-(length + self.size - 1) // self.size) * self.size
        taken = torch.arange(steps, device=x.device) - first  # (batch, steps)
        inside = (taken >= 0) & (taken < length)
        index = taken.clamp(0, length - 1)[:, :, None, None]
        rows = [each.gather(1, index.expand(-1, -1, *each.shape[2:])) for each in rows]
        rows[-1] = rows[-1].masked_fill(~inside[:, :, None, None], 0.0)
        y, last = self._learn([_by_heads(each) for each in rows], start, now, first + length, keep=keep)
        back = (torch.arange(length, device=x.device) + first)[:, :, None, None]
        return y.transpose(1, 2).gather(1, back.expand(-1, -1, *v.shape[2:])), last

    def _learn(
        self, rows: list[Tensor], start: Tensor, now: Tensor, end: Tensor | None, *, keep: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Run the inner model on one mini-batch of positions at a time, and update its weights after each.

        Return the outputs (batch, heads, length, ·), and the state after the last position. `rows` are
        queries and keys with a one appended, target values, plain queries, and rates, each (batch, heads,
        length, ·). Learning continues up to `end` (batch, 1), or to the last row.
        """
        outputs: list[Tensor] = []  # torch.compile does not support `list[Tensor]()`
        length = rows[0].shape[2]
        for begin in range(0, length, self.size):
            stop = min(begin + self.size, length)
            q, k, wanted, plain, rate = (each[:, :, begin:stop] for each in rows)
            errors = self.inner.gradient(k @ start, wanted) * rate
            mapped = q @ now - (q @ k.transpose(-1, -2)).tril() @ errors
            outputs.append(plain + self.inner.added(mapped))
            if keep or stop < length:
                now = now - k.transpose(-1, -2) @ errors
                if end is None:
                    start = now if stop == begin + self.size else start
                else:  # only the sequences that have completed this mini-batch go on to new weights
                    start = torch.where((end >= stop)[:, :, None, None], now, start)
        y = torch.cat(outputs, 2)
        if not keep:
            return y, None
        place = (rows[0].new_full((len(y), 1), length) if end is None else end) % self.size
        place = place[:, :, None, None].expand(-1, *now.shape[1:3], 1).to(now.dtype)
        return y, torch.cat([start, now, place], -1)


def _by_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).clone(memory_format=torch.contiguous_format)
