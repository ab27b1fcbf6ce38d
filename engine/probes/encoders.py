"""A trained model with a recurrent encoder, and what is looked at in it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ...blocks.layers.recurrent import Recurrent, Trace
from ...blocks.models.seq2seq_model import PAD, TransductionModel, shift_right
from ...blocks.transducers.seq2seq import Seq2Seq
from ...errors import ActivememError
from ...studies.schema.settings import TrialSettings
from ..core.models import build_model
from ..data.pairs.batches import PairBatch, collate
from ..data.pairs.corpus import PairSplit
from ..trial import checkpoints
from .memory_change import MemoryStatistics, measure_memory

BATCH = 500
"""Sequences that are read at a time."""

MAX_SHOWN_SYMBOLS = 40
"""Sources with more symbols than these make no map of attention that could be read."""


NO_ENCODER = "no recurrent encoder"
"""Why a model without one is not measured."""


class ProbeError(ActivememError):
    """Nothing can be measured inside of a model; the message says why."""


class EncoderProbe:
    """The recurrent encoder of a trained model, in double precision and without dropout.

    Of several layers it is the last one that is measured, whose outputs a decoder attends to. Raises
    ProbeError where the model has none, or its weights cannot be read.
    """

    def __init__(self, settings: TrialSettings, weights_file: Path) -> None:
        model = build_model(settings.model, settings.task.interface, torch.Generator())
        body = model.body
        if not (isinstance(model, TransductionModel) and isinstance(body, Seq2Seq)):
            raise ProbeError(NO_ENCODER)
        if not isinstance(encoder := body.encoder, Recurrent):
            raise ProbeError(NO_ENCODER)
        try:
            model.load_state_dict(checkpoints.load_weights(weights_file))
        except FileNotFoundError as error:
            raise ProbeError("its weights were not kept") from error
        except (EOFError, RuntimeError, pickle.UnpicklingError) as error:
            raise ProbeError(f"its weights cannot be read: {weights_file}") from error
        self._model, self._body, self._encoder = model.double().eval(), body, encoder

    @torch.no_grad()
    def memory(self, split: PairSplit, sequences: int) -> MemoryStatistics:
        """What the encoder does to its memory over the first so many sources of a split."""
        return measure_memory(self._traces(split, sequences))

    @torch.no_grad()
    def attention(self, split: PairSplit, pair: int) -> Tensor | None:
        """How much each output of a pair attends to each of its inputs, (m, n); None if to none."""
        batch, model = collate(split, [pair]), self._model
        read, written = self._read(batch), model.target(shift_right(batch.targets)) * model.scale
        found = self._body.alignment(read, written, batch.sources != PAD)
        return None if found is None else found[0]

    def _traces(self, split: PairSplit, sequences: int) -> Iterator[tuple[Trace, Tensor]]:
        """What the last layer does over batches of sources, in the order of the split."""
        for place in range(0, sequences, BATCH):
            batch = collate(split, range(place, min(place + BATCH, sequences)))
            yield self._encoder.traces(self._read(batch))[-1], batch.sources != PAD

    def _read(self, batch: PairBatch) -> Tensor:
        """The embedded sources."""
        return self._model.source(batch.sources) * self._model.scale


def choose_pair(split: PairSplit, sequences: int) -> int | None:
    """The pair whose attention is shown: of the first so many, the first with the longest source.

    Sources longer than MAX_SHOWN_SYMBOLS are passed over; None if all are.
    """
    lengths = split.source.line_lengths[:sequences]
    lengths = torch.where(lengths > MAX_SHOWN_SYMBOLS, 0, lengths)
    longest = int(lengths.max())
    return int((lengths == longest).nonzero()[0]) if longest else None
