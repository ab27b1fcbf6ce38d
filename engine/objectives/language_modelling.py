"""Objectives of language models, one for each way to divide a text into sequences.

- Stream: each row continues from step to step, and blocks keep their states.
- Packed: a text is cut into pieces, and no state is kept between them.
- Lines: each line is an independent sequence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...blocks import Model
from ...blocks.core.block import StreamState, split_streams
from ...studies.catalog.tasks import IGNORED, Examples, LanguageModelSettings, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.process import derive_seed
from ..data.text.batches import (
    LineBatch,
    StreamBatch,
    iter_line_batches,
    iter_line_eval,
    iter_packed_batches,
    iter_packed_eval,
    iter_stream_batches,
    iter_stream_eval,
)
from ..data.text.corpus import open_corpus
from ..data.token_files import Split
from .base import (
    CausalView,
    Metrics,
    RegisteredMetrics,
    StepShape,
    StreamedObjective,
    micro_batch_weight,
    on_device,
    part_of,
    scored_on_device,
)
from .separate_documents import iter_pieces, nll_of_documents
from .text_scores import score_text

TextBatch = TypeVar("TextBatch", StreamBatch, LineBatch)


class LanguageObjective(StreamedObjective[Model, TextBatch]):
    """Objective of a language model, with metrics of its dev and test splits."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, LanguageModelSettings), f"{settings.task.name} has no text"
        self._task, self._text = settings.task, open_corpus(settings.task, folder)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the scores of the dev split and, after the last epoch, of the test split.

        Before the last epoch, only the first `dev_tokens` of the dev split are scored. Metrics are the loss
        in nats per token and bits per byte of the original text, unless tokens lose some of it. Bits per
        character or perplexity per word are given with and without line ends. Lines also have a loss per
        position.
        """
        limit = None if last else self._task.dev_tokens
        measured = self._measures(model, self._truncate(self._text.dev, limit), "dev")
        return measured | self._measures(model, self._text.test, "test") if last else measured

    def symbols(self) -> dict[str, Any]:
        return self._text.vocabulary.to_dict()

    def causal_view(self) -> CausalView | None:
        tokens = self._causal_tokens().to(self.device)
        inputs, targets = tokens[:-1], tokens[1:]
        assert self.interface.vocab is not None, "a text has symbols"

        def losses(model: nn.Module, rows: Tensor) -> Tensor:
            assert isinstance(model, Model)
            # the targets stay the same, so that a different loss shows a different output
            return self._losses(model, rows, targets.to(rows.device).expand(len(rows), -1))

        return CausalView(inputs=inputs, first=0, symbols=self.interface.vocab, outputs=losses)

    def _causal_tokens(self) -> Tensor:
        """Return tokens (length + 1,), of the longest length that the model reads at once."""
        if not self._task.by_line:
            return self._text.dev.tokens[: self._task.context + 1].long()
        splits, most = (self._text.dev, self._text.test), self._task.longest + 1
        lengths = [torch.where(each.line_lengths <= most, each.line_lengths, 0) for each in splits]
        split, found = max(zip(splits, lengths, strict=True), key=lambda each: int(each[1].max()))
        line = int(found.argmax())
        return split.tokens[int(split.lines[line]) : int(split.lines[line + 1])].long()

    @abstractmethod
    def _losses(self, model: Model, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the negative log-likelihood of each target (rows, length), computed as in training."""

    def _symbols_of(self, batch: TextBatch) -> int:
        return batch.inputs.numel()

    def _truncate(self, split: Split, limit: int | None) -> Split:
        """Return the first lines of a split, with at most `limit` tokens in total.

        At least one line is returned. If the first line is longer than `limit`, it is cut, but only if tokens
        are characters: for other tokens, perplexity is per word, and a word must stay whole.
        """
        if limit is None or limit >= len(split.tokens):
            return split
        # `lines` has the start of each line, and the end of the last one
        count = int((split.lines <= limit).sum()) - 1
        if not count and self._task.tokens == "characters":
            size = torch.tensor([limit - int(split.lines[0])])
            return replace(split, tokens=split.tokens[:limit], line_bytes=size)
        return split.first_lines(max(count, 1))

    def _measures(self, model: Model, split: Split, name: str) -> Metrics:
        registered = RegisteredMetrics(TaskKind.LANGUAGE, name)
        score = score_text(
            model,
            split,
            self._task,
            end=self._text.vocabulary.end,
            batch_size=self.settings.train.batch_size,
            device=self.device,
            registered=registered,
            parts=self.evaluation_parts,
        )
        measured = {f"{name}_loss": score.loss, **registered.compute()}
        if score.padded_loss is not None:
            measured[f"{name}_loss_padded"] = score.padded_loss
        if (bits := score.bits_per_byte) is not None:
            measured[f"{name}_bits_per_byte"] = bits
        if self._task.tokens == "characters":
            return measured | {f"{name}_bpc": score.bits_per_token}
        return measured | {
            f"{name}_perplexity": score.word_perplexity,
            f"{name}_perplexity_without_ends": score.without_ends.word_perplexity,
        }


class StreamObjective(LanguageObjective[StreamBatch]):
    """Language-model objective that reads a text in parallel rows.

    The rows continue from step to step. Blocks keep their states between steps.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        self._streams = [StreamState()] * settings.train.accumulate

    @property
    def step_shape(self) -> StepShape:
        train, block = self.settings.train, self._task.context
        return StepShape(
            sequences=train.batch_size, tokens=block, past=max(0, self._streams[0].past_length - block)
        )

    def begin_batch(self, parts: int) -> None:
        super().begin_batch(parts)
        if self.batch.reset:
            self._streams = [StreamState()] * parts

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        inputs, targets = (on_device(part_of(rows, part, parts), self.device) for rows in self.batch[:2])
        nats, self._streams[part] = model.nll_stream(inputs, targets, self._streams[part])
        self._show(inputs, nats.flatten(), targets.flatten())
        return nats.mean() * micro_batch_weight(len(self.batch.inputs), part, parts)

    def test_batches(self) -> Iterator[Examples]:
        train, tokens = self.settings.train, self._text.test.tokens
        for batch in iter_stream_eval(tokens, batch_size=train.batch_size, context=self._task.context):
            yield Examples(batch.inputs, batch.targets.where(batch.scored, IGNORED))

    def state(self) -> dict[str, Any]:
        streams = [(stream.past_length, stream.block_states) for stream in self._streams]
        return {**super().state(), "streams": streams}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore({"padded": 0, **state})  # checkpoints of earlier versions lack it
        streams = [StreamState(length, tuple(states)) for length, states in state["streams"]]
        # a retry after a lack of memory divides the batch into more parts than the checkpoint has
        self._streams = split_streams(streams, self.settings.train.accumulate)

    def _losses(self, model: Model, inputs: Tensor, targets: Tensor) -> Tensor:
        return model.nll_stream(inputs, targets, StreamState())[0]

    def _iter_batches(self, position: int) -> Iterator[StreamBatch]:
        offsets = torch.Generator().manual_seed(derive_seed(self.settings.seed, "offsets"))
        return iter_stream_batches(
            self._text.train.tokens,
            batch_size=self.settings.train.batch_size,
            context=self._task.context,
            position=position,
            offsets=offsets if self._task.random_offset else None,
        )


class PackedObjective(LanguageObjective[StreamBatch]):
    """Language-model objective that cuts a text into independent pieces of equal length.

    The text may be a mixture of texts. If documents are read separately, a step still has the same number of
    targets, and its tokens and FLOPs are counted as for whole pieces.
    """

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        drawn = [part_of(rows, part, parts) for rows in self.batch[:2]]
        inputs, targets = (on_device(rows, self.device) for rows in drawn)
        if self._task.separate_documents:
            nats = nll_of_documents(model, *drawn, end=self._text.vocabulary.end, device=self.device)
        else:
            nats = model.nll(inputs, targets)
        self._show(inputs, nats.flatten(), targets.flatten())
        return nats.mean() * micro_batch_weight(len(self.batch.inputs), part, parts)

    def test_batches(self) -> Iterator[Examples]:
        size, context = self.settings.train.batch_size, self._task.context
        for batch in iter_packed_eval(self._text.test.tokens, batch_size=size, context=context):
            targets = batch.targets.where(batch.scored, IGNORED)
            if not self._task.separate_documents:
                yield Examples(batch.inputs, targets)
                continue
            for pieces in iter_pieces(batch.inputs, self._text.vocabulary.end):
                wanted = targets.flatten()[pieces.places].where(pieces.valid, IGNORED)
                yield Examples(pieces.inputs, wanted, pieces.lengths)

    def _losses(self, model: Model, inputs: Tensor, targets: Tensor) -> Tensor:
        return model.nll(inputs, targets)

    def _iter_batches(self, position: int) -> Iterator[StreamBatch]:
        return iter_packed_batches(
            [(weight, split.tokens) for weight, split in self._text.sources],
            batch_size=self.settings.train.batch_size,
            context=self._task.context,
            seed=derive_seed(self.settings.seed, "data"),
            position=position,
        )


class LineObjective(LanguageObjective[LineBatch]):
    """Language-model objective that reads each line as a sequence (Dowdell and Zhang 2019, section 4.1)."""

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        rows, drawn, own_lengths = (part_of(each, part, parts) for each in self.batch[:3])
        valid = torch.arange(drawn.shape[1]) < own_lengths[:, None]
        targets, places = scored_on_device(drawn, valid, self.device)
        inputs, lengths = on_device(rows, self.device), on_device(own_lengths, self.device)
        nats = model.nll_at(inputs, targets, places, lengths)
        self._show(inputs, nats, targets)
        # divide by the tokens of the whole batch, since its parts may have different numbers of tokens
        return nats.sum() * parts / int(self.batch.lengths.sum())

    def test_batches(self) -> Iterator[Examples]:
        size, longest = self.settings.train.batch_size, self._task.longest
        for batch in iter_line_eval(self._text.test, batch_size=size, max_length=longest):
            yield Examples(batch.inputs, batch.targets, batch.lengths)

    def _losses(self, model: Model, inputs: Tensor, targets: Tensor) -> Tensor:
        lengths = torch.full((len(inputs),), inputs.shape[1], device=inputs.device)
        return model.nll(inputs, targets, lengths)

    def _iter_batches(self, position: int) -> Iterator[LineBatch]:
        return iter_line_batches(
            self._text.train,
            batch_size=self.settings.train.batch_size,
            max_length=self._task.longest,
            seed=derive_seed(self.settings.seed, "data"),
            position=position,
        )
