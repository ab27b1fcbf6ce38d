"""S_t = a_t S_{t−1} + k_t v_tᵀ and y_t = q_tᵀ S_t for all positions: in chunks, each by batched products.

Within a chunk the outputs are those of masked products of queries and keys; from chunk to chunk a state is
handed on (Dao and Gu 2024, section 6). Decays are given as logarithms, at most 0, so that no product of them
that is taken is above 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.linear_recurrences import chunk_shape


def run_in_chunks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    *,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """The outputs (batch, length, heads, values), and the last state (batch, heads, keys, values) to `keep`.

    q and k are (batch, length, heads, keys), v (batch, length, heads, values), and `log_decay`
    (batch or 1, length, heads); without it all is kept. Without a `state` it begins at zero.
    """
    length = q.shape[1]
    q, k, v = (split_chunks(each) for each in (q, k, v))  # each (chunks, batch, heads, size, ·)
    weights = q @ k.transpose(-1, -2)  # (chunks, batch, heads, queries, keys)
    total = None
    if log_decay is None:
        weights = weights.tril()
    else:
        total = split_chunks(log_decay.unsqueeze(-1)).squeeze(-1).cumsum(-1)  # (chunks, batch, heads, size)
        weights = weights * pairwise_decay(total)
    within = weights @ v
    if len(q) == 1 and state is None and not keep:
        return join_chunks(within, length), None
    before, last = _pass_on(k, v, total, state, keep=keep)
    if total is not None:
        q = q[-len(before) :] * total[-len(before) :].exp().unsqueeze(-1) if before else q
    outputs = list(within.unbind(0))
    for place in range(-len(before), 0):
        outputs[place] = outputs[place] + q[place] @ before[place]
    return join_chunks(torch.stack(outputs), length), last


def _pass_on(
    k: Tensor, v: Tensor, total: Tensor | None, state: Tensor | None, *, keep: bool
) -> tuple[list[Tensor], Tensor | None]:
    """The states before each chunk, the first left out if it is zero, and the last state, if asked for."""
    count = len(k) if keep else len(k) - 1
    k, v = k[:count], v[:count]
    if total is not None:
        total = total[:count]
        k = k * (total[..., -1:] - total).exp().unsqueeze(-1)
    written = (k.transpose(-1, -2) @ v).unbind(0)  # each (batch, heads, keys, values)
    states = [] if state is None else [state]
    for place, added in enumerate(written):
        if not states:
            states.append(added)
        elif total is None:
            states.append(states[-1] + added)
        else:
            states.append(states[-1] * total[place, ..., -1].exp()[..., None, None] + added)
    return (states[:-1], states[-1]) if keep else (states, None)


def split_chunks(x: Tensor) -> Tensor:
    """(batch, length, heads, width) as (chunks, batch, heads, size, width), zeros behind the end."""
    batch, length, heads, width = x.shape
    count, size = chunk_shape(length)
    padded = functional.pad(x, (0, 0, 0, 0, 0, count * size - length)) if count * size > length else x
    return padded.reshape(batch, count, size, heads, width).permute(1, 0, 3, 2, 4).contiguous()


def join_chunks(y: Tensor, length: int) -> Tensor:
    """(chunks, batch, heads, size, width) as (batch, length, heads, width)."""
    count, batch, heads, size, width = y.shape
    return y.permute(1, 0, 3, 2, 4).reshape(batch, count * size, heads, width)[:, :length]


def pairwise_decay(total: Tensor) -> Tensor:
    """What is left at each position of what was written at each one: (…, size) to (…, size, size)."""
    size = total.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=total.device).triu(1)
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, -torch.inf).exp()
