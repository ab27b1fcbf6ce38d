"""The memory and the attention of a trained model with a recurrent encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ...blocks.layers.recurrent import Recurrent, Trace
from ...blocks.models.seq2seq_model import PAD, TransductionModel, shift_right
from ...blocks.transducers.seq2seq import Seq2Seq
from ...studies.planning.trial_values import encoder_arguments
from ...studies.schema.settings import TrialSettings
from ..data.pairs.batches import PairBatch, collate
from ..data.pairs.corpus import PairSplit
from .memory_change import MemoryStatistics, measure_memory, memory_changes
from .trained_models import ProbeError, load_kept_model

BATCH = 500
"""Sequences read at a time."""

MAX_SHOWN_SYMBOLS = 40
"""The longest source whose map of attention is still readable."""


NO_ENCODER = "no recurrent encoder"
"""Why a model without one is not measured."""


class EncoderProbe:
    """The recurrent encoder of a trained model, in double precision and without dropout.

    Of several layers the last is measured, whose outputs a decoder attends to. Raises ProbeError if the model
    has no such encoder or its weights cannot be read.
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
        """Return the memory statistics of the encoder over the first `sequences` sources of a split."""
        return measure_memory(self._traces(split, sequences))

    @torch.no_grad()
    def attention(self, split: PairSplit, pair: int) -> Tensor | None:
        """Return the attention of each output of a pair to each of its inputs, (m, n).

        Returns None without attention.
        """
        batch, model = collate(split, [pair]), self._model
        sources, targets = self._embed_sources(batch), model.target(shift_right(batch.targets)) * model.scale
        weights = self._body.alignment(sources, targets, batch.sources != PAD)
        return None if weights is None else weights[0]

    @torch.no_grad()
    def changes(self, split: PairSplit, pair: int) -> Tensor:
        """Δ of every two consecutive steps of one source, (n - 1,)."""
        batch = collate(split, [pair])
        trace = self._encoder.traces(self._embed_sources(batch))[-1]
        return memory_changes(trace.cell, batch.sources != PAD)

    def _traces(self, split: PairSplit, sequences: int) -> Iterator[tuple[Trace, Tensor]]:
        """Yield the trace of the last layer and the mask of each batch of sources.

        They are in the order of the split.
        """
        for start in range(0, sequences, BATCH):
            batch = collate(split, range(start, min(start + BATCH, sequences)))
            yield self._encoder.traces(self._embed_sources(batch))[-1], batch.sources != PAD

    def _embed_sources(self, batch: PairBatch) -> Tensor:
        return self._model.source(batch.sources) * self._model.scale


def choose_pair(split: PairSplit, sequences: int) -> int | None:
    """Return the pair whose attention is shown.

    It is the first with the longest of the first `sequences` sources. Sources longer than
    MAX_SHOWN_SYMBOLS are skipped; None if all are.
    """
    lengths = split.source.line_lengths[:sequences]
    lengths = torch.where(lengths > MAX_SHOWN_SYMBOLS, 0, lengths)
    longest = int(lengths.max())
    return int((lengths == longest).nonzero()[0]) if longest else None
