"""Linear recurrences, computed in chunks of positions.

They are S_t = a_t S_{t−1} + k_t v_tᵀ, y_t = q_tᵀ S_t. Within a chunk the outputs are masked products of
queries and keys; a state passes from chunk to chunk (Dao and Gu 2024, section 6). Decays are given as
logarithms, at most 0.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ...core.operations import at_least_single

MAX_CHUNK_LENGTH, MAX_VECTOR_CHUNK_LENGTH = 64, 16
"""The maximum chunk lengths; longer sequences are split into chunks of nearly equal size.

The first is for at most one decay per head, the second for one per channel of keys.
"""


def chunk_shape(length: int, most: int) -> tuple[int, int]:
    """Return the number and the length of a sequence's chunks, each of at most `most` positions.

    The last chunk may extend beyond the sequence.
    """
    count = max(1, -(-length // most))
    return count, -(-length // count)


def longest_chunk(keys: int) -> int:
    """Return the maximum chunk length for keys of this width, from 32 to 64.

    It grows with the width of the keys. All pairs of positions in a chunk are multiplied.
    """
    return min(MAX_CHUNK_LENGTH, max(32, keys))


LEAST_LOG_DECAY = -5.0
"""The lower bound of a key channel's log decay, so that chunks stay within single precision."""


def run_in_chunks(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    *,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Run S_t = a_t S_{t−1} + k_t v_tᵀ, y_t = q_tᵀ S_t in chunks.

    Return the outputs (batch, length, heads, values) and, with `keep`, the last state. q and k are (batch,
    length, heads, keys), v (batch, length, heads, values), and `log_decay` (batch or 1, length, heads);
    without it nothing decays. Heads may share queries and keys, (batch, length, 1, keys). Without a `state`,
    the recurrence begins at zero.
    """
    length, most = q.shape[1], longest_chunk(q.shape[3])
    q, k, v = (split_chunks(each, most) for each in (q, k, v))  # (chunks, batch, heads, size, ·)
    weights = q @ k.transpose(-1, -2)  # (chunks, batch, heads, queries, keys)
    total = None
    if log_decay is None:
        weights = weights.tril()
    else:
        total = split_chunks(at_least_single(log_decay).unsqueeze(-1), most).cumsum(-2)
        weights = rescale(weights, pairwise_decay(total.squeeze(-1)))
    within = weights @ v
    count = len(q) if keep else len(q) - 1
    if total is None:
        states, last = propagate_states(k[:count].transpose(-1, -2) @ v[:count], None, state, keep=keep)
        return join_chunks(add_states(within, q, states), length), last
    written = rescale(k[:count], (total[:count, ..., -1:, :] - total[:count]).exp())
    decays = total[:count, ..., -1:, :]
    states, last = propagate_states(written.transpose(-1, -2) @ v[:count], decays, state, keep=keep)
    read = q[-len(states) :] * total[-len(states) :].exp() if states else q
    return join_chunks(add_states(within, read, states), length), last


def run_vector_decays(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, state: Tensor | None = None, *, keep: bool = True
) -> tuple[Tensor, Tensor | None]:
    """Run S_t = diag(a_t) S_{t−1} + k_t v_tᵀ in chunks.

    Each key channel has its own decay. Return outputs and last state as `run_in_chunks` does. `log_decay` is
    (batch, length, heads, keys). Queries are multiplied by the decay since their chunk's start, and keys by
    its inverse. Chunks are so short that decays of at least e⁻⁵ per position stay within single precision
    (Yang et al. 2024, section 4).
    """
    length = q.shape[1]
    q, k, v, steps = (split_chunks(each, MAX_VECTOR_CHUNK_LENGTH) for each in (q, k, v, log_decay))
    total = at_least_single(steps).cumsum(-2)  # (chunks, batch, heads, size, keys)
    q, k = rescale(q, total.exp()), rescale(k, (-total).exp())
    within = (q @ k.transpose(-1, -2)).tril() @ v
    count = len(q) if keep else len(q) - 1
    decays = total[:count, ..., -1:, :]
    written = k[:count].transpose(-1, -2) @ v[:count] * decays.exp().transpose(-1, -2)
    states, last = propagate_states(written, decays, state, keep=keep)
    return join_chunks(add_states(within, q[-len(states) :], states), length), last


def propagate_states(
    written: Tensor, log_decay: Tensor | None, state: Tensor | None, *, keep: bool
) -> tuple[list[Tensor], Tensor | None]:
    """Return the state before each chunk, and the last state.

    They are in at least single precision. The last state is None without `keep`. If there is no initial
    `state`, the list begins with the state before the second chunk.

    - `written` (chunks, batch, heads, keys, values) is what each chunk adds to the state.
    - `log_decay` (chunks, batch or 1, heads, 1, keys or 1) is the log of the earlier state's decay.
    """
    states = [] if state is None else [at_least_single(state)]
    for place, added in enumerate(at_least_single(written).unbind(0)):
        if not states:
            states.append(added)
        elif log_decay is None:
            states.append(states[-1] + added)
        else:
            states.append(states[-1] * log_decay[place].exp().transpose(-1, -2) + added)
    return (states[:-1], states[-1]) if keep else (states, None)


def add_states(within: Tensor, read: Tensor, states: list[Tensor]) -> Tensor:
    """Add the contributions of earlier chunks to each chunk's outputs.

    The outputs `within` only have the contributions of their own chunks. The queries `read` (chunks, …, size,
    keys) are multiplied by the `states` before their chunks.
    """
    if not states:
        return within
    outputs, read = list(within.unbind(0)), read.to(within.dtype)
    for place in range(-len(states), 0):
        outputs[place] = outputs[place] + read[place] @ states[place].to(within.dtype)
    return torch.stack(outputs)


def rescale(x: Tensor, factor: Tensor) -> Tensor:
    """Return x times a factor of at least its precision, in the precision of x."""
    return (x * factor).to(x.dtype)


def split_chunks(x: Tensor, most: int) -> Tensor:
    """Reshape (batch, length, heads, width) to (chunks, batch, heads, size, width), padded with zeros."""
    batch, length, heads, width = x.shape
    count, size = chunk_shape(length, most)
    padded = functional.pad(x, (0, 0, 0, 0, 0, count * size - length)) if count * size > length else x
    chunks = padded.reshape(batch, count, size, heads, width).permute(1, 0, 3, 2, 4)
    return chunks.clone(memory_format=torch.contiguous_format)


def join_chunks(y: Tensor, length: int) -> Tensor:
    """Reshape (chunks, batch, heads, size, width) to (batch, length, heads, width)."""
    count, batch, heads, size, width = y.shape
    return y.permute(1, 0, 3, 2, 4).reshape(batch, count * size, heads, width)[:, :length]


def pairwise_decay(total: Tensor) -> Tensor:
    """Return the decay factor of each write at each later position, (…, size, size).

    `total` (…, size) are the running sums of the log decays. The last dimension is that of the writes. The
    factor is zero at positions before the write.
    """
    size = total.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=total.device).triu(1)
    # masked before the exponential: growing factors could overflow, and then their gradients would be NaN
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, -torch.inf).exp()
