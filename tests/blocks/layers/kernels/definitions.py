"""What each kernel of flash-linear-attention computes, by its definition: loops over positions.

The names and the layouts of arguments are the package's, (batch, length, heads, width); others are refused.
Sun et al. 2023, Yang et al. 2024 and 2025, and of 2025 Siems et al., Kimi Team, Peng et al. and Lin et al.
"""

import torch


def run(length, start, step, keep):
    """Outputs (batch, length, heads, values) of a step from a position and a state, and the last state."""
    state, outputs = start, []
    for t in range(length):
        y, state = step(t, state)
        outputs.append(y)
    return torch.stack(outputs, 1), state if keep else None


def begin(k, v, initial_state):
    """The state before the first position, (batch, heads, keys, values)."""
    if initial_state is not None:
        return initial_state
    return v.new_zeros(len(v), v.shape[2], k.shape[-1], v.shape[-1])


def outer(k, v):
    return k.unsqueeze(-1) * v.unsqueeze(-2)


def read(q, state):
    return (q.unsqueeze(-1) * state).sum(-2)


def chunk_simple_gla(q, k, v, g=None, *, scale, initial_state, output_final_state):
    assert q.shape == k.shape and q.shape[:3] == v.shape[:3]
    assert g is None or g.shape == v.shape[:3]

    def step(t, state):
        state = state if g is None else state * g[:, t].exp()[..., None, None]
        state = state + outer(k[:, t], v[:, t])
        return read(scale * q[:, t], state), state

    return run(q.shape[1], begin(k, v, initial_state), step, output_final_state)


def chunk_gla(q, k, v, g, *, scale, initial_state, output_final_state):
    assert q.shape == k.shape == g.shape and v.shape[:3] == q.shape[:3]

    def step(t, state):
        state = state * g[:, t].exp().unsqueeze(-1) + outer(k[:, t], v[:, t])
        return read(scale * q[:, t], state), state

    return run(q.shape[1], begin(k, v, initial_state), step, output_final_state)


def corrected(k, v, beta, state):
    """What a key holds, moved by a share towards a value."""
    return state + outer(beta.unsqueeze(-1) * k, v - read(k, state))


def chunk_gated_delta_product(q, k, v, g, beta, *, num_householder, scale, initial_state, output_final_state):
    batch, length, heads, _ = q.shape
    assert k.shape[:3] == v.shape[:3] == beta.shape == (batch, length * num_householder, heads)
    assert g is None or g.shape == (batch, length, heads)

    def step(t, state):
        state = state if g is None else state * g[:, t].exp()[..., None, None]
        for row in range(t * num_householder, (t + 1) * num_householder):
            state = corrected(k[:, row], v[:, row], beta[:, row], state)
        return read(scale * q[:, t], state), state

    return run(length, begin(k, v, initial_state), step, output_final_state)


def chunk_gated_delta_rule(q, k, v, g, beta, *, scale, initial_state, output_final_state):
    assert g is not None
    return chunk_gated_delta_product(
        q,
        k,
        v,
        g,
        beta,
        num_householder=1,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def chunk_delta_rule(q, k, v, beta, *, scale, initial_state, output_final_state):
    return chunk_gated_delta_product(
        q,
        k,
        v,
        None,
        beta,
        num_householder=1,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def chunk_kda(q, k, v, g, beta, *, scale, initial_state, output_final_state):
    assert q.shape == k.shape == g.shape and beta.shape == v.shape[:3] == q.shape[:3]

    def step(t, state):
        state = corrected(k[:, t], v[:, t], beta[:, t], state * g[:, t].exp().unsqueeze(-1))
        return read(scale * q[:, t], state), state

    return run(q.shape[1], begin(k, v, initial_state), step, output_final_state)


def chunk_rwkv7(r, w, k, v, a, b, *, scale, initial_state, output_final_state):
    assert r.shape == w.shape == k.shape == a.shape == b.shape and v.shape[:3] == r.shape[:3]

    def step(t, state):
        kept = state * w[:, t].exp().unsqueeze(-1) + outer(b[:, t], read(a[:, t], state))
        state = kept + outer(k[:, t], v[:, t])
        return read(scale * r[:, t], state), state

    return run(r.shape[1], begin(k, v, initial_state), step, output_final_state)


def parallel_forgetting_attn(q, k, v, g, *, scale):
    assert q.shape == k.shape == v.shape and g.shape == q.shape[:3]
    total, rows = g.cumsum(1), []
    for t in range(q.shape[1]):
        scores = scale * (q[:, t : t + 1] * k[:, : t + 1]).sum(-1) + total[:, t : t + 1] - total[:, : t + 1]
        rows.append((torch.softmax(scores, 1).unsqueeze(-1) * v[:, : t + 1]).sum(1))
    return torch.stack(rows, 1)
