"""What a recurrent encoder does to its memory, measured on its traces (Harvat and Martín-Guerrero 2022)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...blocks.layers.recurrent import Trace

CHANGE_QUANTILES = 200
"""How many quantiles stand for all Δ of a trial."""

GATE_QUANTILES = 20
"""How many quantiles stand for all activations of the forget gate at one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatistics:
    """What one layer did over some sequences; steps are counted from 1, and padding counts for nothing.

    `changes` has Δ of every two steps in a row, sequence by sequence. `retention` has γ of each step, over
    the sequences that come so far, `forget_gates` by step the activations of all units of the forget gate,
    `updates` by step the mean size of what is added to the memory, i ⊙ c of the paper's equation 10.
    """

    changes: Tensor  # (pairs of steps,)
    retention: Tensor  # (steps,)
    forget_gates: tuple[Tensor, ...]  # each (sequences that come so far * units,)
    updates: Tensor  # (steps,)

    def metrics(self) -> Iterator[tuple[str, float]]:
        """The measures by name; distributions as evenly spaced quantiles of equal weight."""
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
    """Δ, the cosine of memory states that follow each other (the paper's equation 19).

    Of cells (batch, length, width) where `mask` (batch, length) is true at both; row by row.
    """
    return functional.cosine_similarity(cells[:, :-1], cells[:, 1:], dim=-1)[mask[:, 1:]]


def theta(standard: Tensor, compared: Tensor) -> float:
    """Θ, the share of steps at which Δ of standard attention is below that of the compared model.

    The paper's equation 20 is printed with the inequality the other way round; its text and its Table 2 are
    as here. Both are of the same steps of the same sequences.
    """
    return float((standard < compared).double().mean())


def measure_memory(traces: Iterable[tuple[Trace, Tensor]]) -> MemoryStatistics:
    """The memory of one layer over batches of sequences, each its trace and its mask (batch, length)."""
    found: list[Tensor] = []
    kept: list[list[Tensor]] = []
    gates: list[list[Tensor]] = []
    added: list[list[Tensor]] = []
    for trace, mask in traces:
        found.append(memory_changes(trace.cell, mask))
        forget = trace.gates["forget"]
        product = forget.cumprod(1).mean(2)  # (batch, length)
        before = functional.pad(trace.cell[:, :-1], (0, 0, 1, 0))  # the memory is zero before the first step
        update = (trace.cell - forget * before).abs().mean(2)
        for step, here in enumerate(mask.unbind(1)):
            if step == len(kept):
                kept.append([])
                gates.append([])
                added.append([])
            kept[step].append(product[here, step])
            gates[step].append(forget[here, step].flatten().float())
            added[step].append(update[here, step])
    return MemoryStatistics(
        changes=torch.cat(found),
        retention=torch.stack([torch.cat(each).mean() for each in kept]),
        forget_gates=tuple(torch.cat(each) for each in gates),
        updates=torch.stack([torch.cat(each).mean() for each in added]),
    )


def quantiles(values: Tensor, count: int) -> list[float]:
    """The middles of `count` equal parts of the sorted values: a sample in which all weigh the same.

    Of `count` values they are these values.
    """
    shares = (np.arange(count) + 0.5) / count
    return np.quantile(values.numpy(), shares, method="hazen").tolist()
