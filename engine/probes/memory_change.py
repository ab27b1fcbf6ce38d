"""Memory changes of a recurrent encoder, measured on its traces (Harvat and Martín-Guerrero 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...blocks.layers.recurrent import Trace

CHANGE_QUANTILES = 200
"""How many quantiles of all Δ of a trial are stored."""

GATE_QUANTILES = 20
"""How many quantiles of the forget gate's activations at one step are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatistics:
    """Memory statistics of one layer over some sequences; padding is ignored.

    `changes` has Δ of every two consecutive steps, sequence by sequence. The others have, by step and over
    the sequences that are at least as long: `retention` γ, `forget_gates` the activations of all units of
    the forget gate, `updates` the mean size of the added term, i ⊙ c of the paper's equation 10.
    """

    changes: Tensor  # (pairs of steps,)
    retention: Tensor  # (steps,)
    forget_gates: tuple[Tensor, ...]  # each (sequences of that length or more * units,)
    updates: Tensor  # (steps,)

    def metrics(self) -> Iterator[tuple[str, float]]:
        """Yield the measures by name, steps counted from 1; distributions as evenly spaced quantiles."""
        if len(self.changes):
            yield "memory_change", float(self.changes.mean())
            for place, value in enumerate(quantiles(self.changes, CHANGE_QUANTILES)):
                yield f"memory_change[{place}]", value
        for step, value in enumerate(self.retention.tolist(), start=1):
            yield f"gamma[{step}]", value
        for step, values in enumerate(self.forget_gates, start=1):
            for place, value in enumerate(quantiles(values, GATE_QUANTILES)):
                yield f"forget_gate[{step},{place}]", value
            low, high = np.quantile(values.numpy(), (0.25, 0.75), method="hazen").tolist()
            yield f"forget_mean[{step}]", float(values.double().mean())
            yield f"forget_spread[{step}]", high - low
        for step, value in enumerate(self.updates.tolist(), start=1):
            yield f"memory_update[{step}]", value


def memory_changes(cells: Tensor, mask: Tensor) -> Tensor:
    """Δ, the cosine of consecutive memory states (the paper's equation 19), row by row.

    `cells` is (batch, length, width); only steps at which `mask` (batch, length) is true are compared.
    """
    return functional.cosine_similarity(cells[:, :-1], cells[:, 1:], dim=-1)[mask[:, 1:]]


def theta(standard: Tensor, compared: Tensor) -> float:
    """Return Θ, the share of steps at which Δ of standard attention is below that of the compared model.

    Both are over the same steps of the same sequences. The paper's equation 20 has the opposite inequality;
    its text and its Table 2 are as here.
    """
    return float((standard < compared).double().mean())


def measure_memory(traces: Iterable[tuple[Trace, Tensor]]) -> MemoryStatistics:
    """Return the memory statistics of one layer over batches.

    Each batch has its trace and its mask (batch, length).
    """
    changes: list[Tensor] = []
    retention: list[list[Tensor]] = []
    forget_gates: list[list[Tensor]] = []
    updates: list[list[Tensor]] = []
    for trace, mask in traces:
        changes.append(memory_changes(trace.cell, mask))
        forget = trace.gates["forget"]
        retained = forget.cumprod(1).mean(2)  # (batch, length)
        before = functional.pad(trace.cell[:, :-1], (0, 0, 1, 0))  # the memory is zero before the first step
        update = (trace.cell - forget * before).abs().mean(2)
        for step, present in enumerate(mask.unbind(1)):
            if step == len(retention):
                retention.append([])
                forget_gates.append([])
                updates.append([])
            retention[step].append(retained[present, step])
            forget_gates[step].append(forget[present, step].flatten().float())
            updates[step].append(update[present, step])
    return MemoryStatistics(
        changes=torch.cat(changes),
        retention=torch.stack([torch.cat(batches).mean() for batches in retention]),
        forget_gates=tuple(map(torch.cat, forget_gates)),
        updates=torch.stack([torch.cat(batches).mean() for batches in updates]),
    )


def quantiles(values: Tensor, count: int) -> list[float]:
    """`count` evenly spaced quantiles, the middles of equal parts; of `count` values, these values."""
    shares = (np.arange(count) + 0.5) / count
    return np.quantile(values.numpy(), shares, method="hazen").tolist()
