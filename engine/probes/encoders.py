"""A trained model with a recurrent encoder, and what is looked at in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ...blocks.layers.recurrent import Recurrent, Trace
from ...blocks.models.seq2seq_model import PAD, TransductionModel, shift_right
from ...blocks.transducers.seq2seq import Seq2Seq
from ...studies.planning.probe_targets import encoder_arguments
from ...studies.schema.settings import TrialSettings
from ..data.pairs.batches import PairBatch, collate
from ..data.pairs.corpus import PairSplit
from .memory_change import MemoryStatistics, measure_memory, memory_changes
from .trained_models import ProbeError, load_model

BATCH = 500
"""Sequences that are read at a time."""

MAX_SHOWN_SYMBOLS = 40
"""Sources with more symbols than these make no map of attention that could be read."""


NO_ENCODER = "no recurrent encoder"
"""Why a model without one is not measured."""


class EncoderProbe:
    """The recurrent encoder of a trained model, in double precision and without dropout.

    Of several layers it is the last one that is measured, whose outputs a decoder attends to. Raises
    ProbeError where the model has none, or its weights cannot be read.
    """

    def __init__(self, settings: TrialSettings, weights_file: Path) -> None:
        if encoder_arguments(settings.model.recipe) is None:
            raise ProbeError(NO_ENCODER)
        model = load_model(settings, weights_file)
        assert isinstance(model, TransductionModel)
        assert isinstance(model.body, Seq2Seq)
        assert isinstance(model.body.encoder, Recurrent)
        self._model, self._body, self._encoder = model.double(), model.body, model.body.encoder

    @torch.no_grad()
    def memory(self, split: PairSplit, sequences: int) -> MemoryStatistics:
        """What the encoder does to its memory over the first `sequences` sources of a split."""
        return measure_memory(self._traces(split, sequences))

    @torch.no_grad()
    def attention(self, split: PairSplit, pair: int) -> Tensor | None:
        """How much each output of a pair attends to each of its inputs, (m, n); None if to none."""
        batch, model = collate(split, [pair]), self._model
        read, written = self._read(batch), model.target(shift_right(batch.targets)) * model.scale
        found = self._body.alignment(read, written, batch.sources != PAD)
        return None if found is None else found[0]

    @torch.no_grad()
    def changes(self, split: PairSplit, pair: int) -> Tensor:
        """Δ of every two steps in a row of one source, (n - 1,)."""
        batch = collate(split, [pair])
        trace = self._encoder.traces(self._read(batch))[-1]
        return memory_changes(trace.cell, batch.sources != PAD)

    def _traces(self, split: PairSplit, sequences: int) -> Iterator[tuple[Trace, Tensor]]:
        """What the last layer does over batches of sources, in the order of the split."""
        for place in range(0, sequences, BATCH):
            batch = collate(split, range(place, min(place + BATCH, sequences)))
            yield self._encoder.traces(self._read(batch))[-1], batch.sources != PAD

    def _read(self, batch: PairBatch) -> Tensor:
        """The embedded sources."""
        return self._model.source(batch.sources) * self._model.scale


def choose_pair(split: PairSplit, sequences: int) -> int | None:
    """The pair whose attention is shown: of the first `sequences`, the first with the longest source.

    Sources longer than MAX_SHOWN_SYMBOLS are passed over; None if all are.
    """
    lengths = split.source.line_lengths[:sequences]
    lengths = torch.where(lengths > MAX_SHOWN_SYMBOLS, 0, lengths)
    longest = int(lengths.max())
    return int((lengths == longest).nonzero()[0]) if longest else None
