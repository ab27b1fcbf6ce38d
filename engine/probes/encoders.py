"""Measurements of recurrent encoders: memory (Harvat and Martín-Guerrero 2022) and attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...blocks.layers.recurrent import Recurrent, Trace
from ...blocks.models.model import PAD, TransductionModel, shift_right
from ...blocks.transducers.seq2seq import Seq2Seq
from ...studies.planning.final_values import encoder_arguments
from ...studies.schema.settings import TrialSettings
from ..data.sentence_pairs import PairBatch, PairSplit, collate
from .trained_models import ProbeError, load_kept_model

CHANGE_QUANTILES = 200
"""The number of stored quantiles of all Δ of a trial."""

GATE_QUANTILES = 20
"""The number of stored quantiles of the forget gate's activations at one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStatistics:
    """Statistics of a recurrent layer's memory over some sequences; padding is ignored.

    `changes` has Δ of each two consecutive steps, sequence by sequence. The other fields have an entry for
    each step, over the sequences that reach it. `retention` is γ, and `forget_gates` has the activations of
    all units of the forget gate. `updates` is the mean size of the added term, i ⊙ c of the paper's equation
    10.
    """

    changes: Tensor  # (pairs of steps,)
    retention: Tensor  # (steps,)
    forget_gates: tuple[Tensor, ...]  # each (sequences of that length or more * units,)
    updates: Tensor  # (steps,)

    def metrics(self) -> Iterator[tuple[str, float]]:
        """Yield the name and the value of each metric.

        A distribution, such as all Δ, yields evenly spaced quantiles. Steps are counted from 1.
        """
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
    """Return Δ, the similarity of successive memory states (equation 19 of the paper).

    It is the cosine similarity of each state to the next. The values of all sequences are joined, one
    sequence after another. `cells` is (batch, length, width); only steps at which `mask` (batch, length) is
    true are compared.
    """
    return functional.cosine_similarity(cells[:, :-1], cells[:, 1:], dim=-1)[mask[:, 1:]]


def theta(standard: Tensor, compared: Tensor) -> float:
    """Return Θ, which compares memory changes with those under standard attention.

    It is the share of steps at which memory changes more with standard attention than in `compared`. Memory
    changes more at a step if its Δ, a cosine similarity, is smaller. `standard` has Δ of the model with
    standard attention, and `compared` has Δ of the other model. Both tensors cover the same steps of the same
    sequences. The paper's equation 20 has the opposite inequality; its text and its Table 2 agree with this
    function.
    """
    return float((standard < compared).double().mean())


def measure_memory(traces: Iterable[tuple[Trace, Tensor]]) -> MemoryStatistics:
    """Return the memory statistics of one layer, given each batch's trace and mask (batch, length)."""
    changes: list[Tensor] = []
    retention = defaultdict[int, list[Tensor]](list)  # by step, as are the next two
    forget_gates = defaultdict[int, list[Tensor]](list)
    updates = defaultdict[int, list[Tensor]](list)
    for trace, mask in traces:
        changes.append(memory_changes(trace.cell, mask))
        forget = trace.gates["forget"]
        retained = forget.cumprod(1).mean(2)  # (batch, length)
        before = functional.pad(trace.cell[:, :-1], (0, 0, 1, 0))  # the memory is zero before the first step
        update = (trace.cell - forget * before).abs().mean(2)
        for step, present in enumerate(mask.unbind(1)):
            retention[step].append(retained[present, step])
            forget_gates[step].append(forget[present, step].flatten().float())
            updates[step].append(update[present, step])
    return MemoryStatistics(
        changes=torch.cat(changes),
        retention=torch.stack([torch.cat(batches).mean() for batches in retention.values()]),
        forget_gates=tuple(map(torch.cat, forget_gates.values())),
        updates=torch.stack([torch.cat(batches).mean() for batches in updates.values()]),
    )


def quantiles(values: Tensor, count: int) -> list[float]:
    """Return `count` evenly spaced quantiles of the values, at the shares (i + 0.5) / count."""
    # by the method hazen, these are the sorted values themselves if there are `count` of them
    shares = (np.arange(count) + 0.5) / count
    return np.quantile(values.numpy(), shares, method="hazen").tolist()


BATCH = 500
"""The number of sequences per batch."""

MAX_SHOWN_SYMBOLS = 40
"""The longest source for which an attention map is still readable."""


NO_ENCODER = "no recurrent encoder"
"""The reason for skipping a model without a recurrent encoder."""


class EncoderProbe:
    """The recurrent encoder of a trained model, in double precision and without dropout.

    The last layer is measured, because a decoder attends to its outputs. Raise ProbeError if the model has no
    such encoder or its weights cannot be read.
    """

    def __init__(self, settings: TrialSettings, weights_file: Path) -> None:
        if encoder_arguments(settings.model.recipe) is None:
            raise ProbeError(NO_ENCODER)
        model = load_kept_model(settings, weights_file)
        assert isinstance(model, TransductionModel)
        assert isinstance(model.body, Seq2Seq)
        assert isinstance(model.body.encoder, Recurrent)
        self._model, self._body, self._encoder = model.double(), model.body, model.body.encoder

    @torch.no_grad()
    def memory(self, split: PairSplit, sequences: int) -> MemoryStatistics:
        """Return statistics of the encoder's states over the first `sequences` sources of a split."""
        return measure_memory(self._traces(split, sequences))

    @torch.no_grad()
    def attention(self, split: PairSplit, pair: int) -> Tensor | None:
        """Return the attention weights (outputs, inputs) of a pair, or None if the model has no attention."""
        batch, model = collate(split, [pair]), self._model
        sources, targets = self._embed_sources(batch), model.target(shift_right(batch.targets)) * model.scale
        weights = self._body.alignment(sources, targets, batch.sources != PAD)
        return None if weights is None else weights[0]

    @torch.no_grad()
    def changes(self, split: PairSplit, pair: int) -> Tensor:
        """Return Δ (n - 1,) for one source. It is the cosine similarity of each memory state to the next."""
        batch = collate(split, [pair])
        trace = self._encoder.traces(self._embed_sources(batch))[-1]
        return memory_changes(trace.cell, batch.sources != PAD)

    def _traces(self, split: PairSplit, sequences: int) -> Iterator[tuple[Trace, Tensor]]:
        for start in range(0, sequences, BATCH):
            batch = collate(split, range(start, min(start + BATCH, sequences)))
            yield self._encoder.traces(self._embed_sources(batch))[-1], batch.sources != PAD

    def _embed_sources(self, batch: PairBatch) -> Tensor:
        return self._model.source(batch.sources) * self._model.scale


def choose_pair(split: PairSplit, sequences: int) -> int | None:
    """Return the index of the pair with the longest source.

    Only the first `sequences` pairs are considered. Sources longer than MAX_SHOWN_SYMBOLS are skipped. Return
    None if all sources are too long.
    """
    lengths = split.source.line_lengths[:sequences]
    lengths = torch.where(lengths > MAX_SHOWN_SYMBOLS, 0, lengths)
    longest = int(lengths.max())
    return int((lengths == longest).nonzero()[0]) if longest else None
