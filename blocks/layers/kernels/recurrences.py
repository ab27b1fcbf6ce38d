"""The kernels of flash-linear-attention, called as the plain forms of the same recurrences are.

Each function takes what a plain form takes, and says how the arguments of the package's own (Yang and Zhang
2024, github.com/fla-org/flash-linear-attention) follow from them. Nothing scales queries here: what a mixer
multiplies them by is part of q. States are (batch, heads, keys, values) in both.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import Tensor
from torch.nn import functional


def operation(folder: str, name: str) -> Callable[..., Any]:
    """Return a function of the package, which is loaded when a kernel is first wanted."""
    return getattr(import_module(f"fla.ops.{folder}"), name)


def scalar_decays(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    *,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Compute `run_in_chunks`, with a decay for each head or none.

    In sixteen bits the kernel takes an even number of values only, so an odd one is padded with a zero.
    """
    width = v.shape[3]
    odd = (0, width % 2)
    y, last = operation("simple_gla", "chunk_simple_gla")(
        q,
        k,
        functional.pad(v, odd),
        g=None if log_decay is None else log_decay.expand(len(q), -1, -1),
        scale=1.0,
        initial_state=None if state is None else functional.pad(state, odd),
        output_final_state=keep,
    )
    return y[..., :width], last[..., :width] if keep else None


def shared_keys(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    steps: Tensor,
    log_decay: Tensor,
    skip: Tensor,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Compute `sum_with_shared_keys`; queries and keys are repeated for each head."""
    q, k = (each.unsqueeze(2).expand(-1, -1, v.shape[2], -1) for each in (q, k))
    y, last = scalar_decays(q, k, v * steps.unsqueeze(-1), log_decay, state, keep=keep)
    return y + v * skip.unsqueeze(-1), last


def vector_decays(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, state: Tensor | None = None, *, keep: bool = True
) -> tuple[Tensor, Tensor | None]:
    """Compute `run_vector_decays`, with a decay for each channel of keys."""
    return operation("gla", "chunk_gla")(
        q, k, v, g=log_decay, scale=1.0, initial_state=state, output_final_state=keep
    )


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Compute `run_delta_rule` by one of three kernels; writes of a position follow each other."""
    k, v, beta = (each.transpose(2, 3).flatten(1, 2) for each in (k, v, beta.unsqueeze(-1)))
    beta, rest = beta.squeeze(-1), {"scale": 1.0, "initial_state": state, "output_final_state": keep}
    writes = k.shape[1] // q.shape[1]
    if writes > 1:
        return operation("gated_delta_product", "chunk_gated_delta_product")(
            q, k, v, g=log_decay, beta=beta, num_householder=writes, **rest
        )
    if log_decay is None:
        return operation("delta_rule", "chunk_delta_rule")(q, k, v, beta=beta, **rest)
    return operation("gated_delta_rule", "chunk_gated_delta_rule")(q, k, v, g=log_decay, beta=beta, **rest)


def channel_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    log_decay: Tensor,
    *,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Compute `run_channel_delta` by the kernel of Kimi delta attention."""
    return operation("kda", "chunk_kda")(
        q, k, v, g=log_decay, beta=beta, scale=1.0, initial_state=state, output_final_state=keep
    )


def replaced_keys(
    q: Tensor,
    removed: Tensor,
    rate: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    log_decay: Tensor,
    state: Tensor | None = None,
    keep: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Compute `run_replaced_keys` by the kernel of RWKV-7, which adds b aᵀ S."""
    return operation("rwkv7", "chunk_rwkv7")(
        q,
        w=log_decay,
        k=k,
        v=v,
        a=-removed,
        b=removed * rate,
        scale=1.0,
        initial_state=state,
        output_final_state=keep,
    )


def fading_attention(q: Tensor, k: Tensor, v: Tensor, log_gates: Tensor, *, scale: float) -> Tensor:
    """Compute `attend_fading` by the kernel of the forgetting transformer."""
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return operation("forgetting_attn", "parallel_forgetting_attn")(
        q, k, v, g=log_gates.transpose(1, 2), scale=scale
    ).transpose(1, 2)
