"""Objective of sequence-to-sequence tasks, scored by teacher forcing and by generated outputs.

Each batch has pairs of similar lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...blocks.models.model import PAD, TransductionModel
from ...storage import WrittenOutputs
from ...studies.catalog.tasks import Examples, TaskKind
from ...studies.schema.settings import TrainSettings, TrialSettings
from ..core.process import derive_seed
from ..data.sentence_pairs import PairBatch, PairSplit, collate, iter_pair_batches, iter_pair_eval
from ..decoding.searches import Decoding
from .base import (
    CausalView,
    Metrics,
    RegisteredMetrics,
    StreamedObjective,
    on_device,
    part_of,
    scored_on_device,
)
from .generation import PairData, generate, score_outputs, write_outputs
from .text_scores import Likelihood


class Seq2SeqObjective(StreamedObjective[TransductionModel, PairBatch]):
    """Objective of tasks with pairs of sequences, such as translation.

    Outputs for the test split are also generated, and scored by the task's metric.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        self._pairs = PairData(settings, folder)
        self._decoding = Decoding.of_task(settings)
        self._outputs: list[list[int]] = []  # for the test split, after the last epoch
        self._guesses: GuessDraws | None = None  # for the current batch, if the decoder reads guesses

    def begin_batch(self, parts: int) -> None:
        super().begin_batch(parts)
        train = self.settings.train
        if train.sampling:
            seed = derive_seed(self.settings.seed, f"guesses of batch {self._drawn}")
            share, together = sampling_share(train, self._drawn - 1), train.scheduled_sampling is not None
            self._guesses = GuessDraws.of(self.batch.targets, share, seed, together=together)

    def loss(self, model: TransductionModel, part: int, parts: int) -> Tensor:
        batch, train = self.batch, self.settings.train
        drawn = part_of(batch.targets, part, parts)
        sources = on_device(part_of(batch.sources, part, parts), self.device)
        scored, places = scored_on_device(drawn, drawn != PAD, self.device)
        read = on_device(drawn, self.device)
        if self._guesses is not None:
            read = self._guess(model, sources, read, self._guesses.part(part, parts))
            torch.clear_autocast_cache()  # in torch 2.9, casts cached without gradients would be reused below
        logits = model.outputs_at(sources, read, places)
        if self.observer is not None:
            self._show(sources, logits.log_softmax(-1), scored)
        loss = functional.cross_entropy(
            logits, scored, reduction="sum", label_smoothing=train.label_smoothing
        )
        return loss * parts / int(batch.target_lengths.sum())

    def evaluate(self, model: TransductionModel, *, last: bool) -> Metrics:
        """Return the scores of the dev split and, after the last epoch, of the test split.

        Before the last epoch, only the first `dev_tokens` of the dev split are scored. The metrics with
        teacher forcing are the loss in nats per symbol, perplexity per word, and the share of symbols that
        the model ranks first. If the targets' text is known, bits per byte are added. The test split also
        gets the scores of the generated outputs.
        """
        limit = None if last else self._pairs.dev_tokens
        measured = self._scores(model, self._pairs.dev, "dev", limit)
        if not last:
            return measured
        self._outputs = generate(
            model,
            self._pairs.test,
            self._decoding,
            pairs=self._pairs,
            batch_size=self._scored_at_once,
            device=self.device,
        )
        output_scores = score_outputs(self._outputs, self._pairs, self.settings)
        return measured | self._scores(model, self._pairs.test, "test", None) | output_scores

    def test_batches(self) -> Iterator[Examples]:
        for batch in iter_pair_eval(self._pairs.test, batch_size=self._scored_at_once):
            yield Examples(batch.sources, batch.targets)

    def symbols(self) -> dict[str, Any] | None:
        """Describe both vocabularies in plain values. Return None for generated pairs.

        If the lengths of outputs are estimated, also describe the line that estimates them.
        """
        text = self._pairs.text
        if text is None:
            return None
        known: dict[str, Any] = {
            "source": text.source.to_dict(),
            "target": text.target.to_dict(),
        }
        estimated = self._decoding.sizes == "estimated"
        return known | ({"length_line": self._pairs.length_line.to_dict()} if estimated else {})

    def causal_view(self) -> CausalView | None:
        """Return the longest target of the data, as the input of a causality test.

        If pairs are longer than any in training, the first such pair is taken. The decoder reads the symbols
        before the one that it predicts.
        """
        splits, most = (self._pairs.dev, self._pairs.test), self._pairs.max_length
        lengths = [split.target.line_lengths.clamp(max=most) for split in splits]
        split, found = max(zip(splits, lengths, strict=True), key=lambda each: int(each[1].max()))
        batch = collate(split, [int(found.argmax())])
        source, target = batch.sources.to(self.device), batch.targets[0].to(self.device)
        assert self.interface.vocab is not None, "targets have symbols"

        def scores(model: nn.Module, rows: Tensor) -> Tensor:
            return model(source.to(rows.device).expand(len(rows), -1), rows).log_softmax(-1)[:, 1:]

        return CausalView(inputs=target, first=PAD + 1, symbols=self.interface.vocab - 1, outputs=scores)

    def outputs(self) -> WrittenOutputs | None:
        if not self._outputs:
            return None
        return write_outputs(self._outputs, self._pairs, self._pairs.test, self._decoding)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "outputs": self._outputs}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._outputs = state.get("outputs", [])  # checkpoints of earlier versions lack it

    def _iter_batches(self, position: int) -> Iterator[PairBatch]:
        train = self.settings.train
        return iter_pair_batches(
            self._pairs.train,
            batch_size=train.batch_size,
            max_length=self._pairs.max_length,
            seed=derive_seed(self.settings.seed, "data"),
            position=position,
        )

    def _symbols_of(self, batch: PairBatch) -> int:
        return len(batch.sources) * max(batch.sources.shape[1], batch.targets.shape[1])

    @torch.no_grad()
    def _guess(self, model: TransductionModel, sources: Tensor, targets: Tensor, draws: GuessDraws) -> Tensor:
        """Return the decoder's inputs: the targets, with some of them replaced by the model's guesses.

        The model thus learns to continue after its own errors (Bengio et al. 2015). The guesses are from one
        forward pass (Mihaylova and Martins 2019) or, with scheduled sampling, made one after another.
        """
        if self.settings.train.scheduled_sampling is not None:
            return _guess_places(model, sources, targets, draws)
        logits = model(sources, targets)
        logits[..., PAD] = -torch.inf
        replaced = on_device(draws.replaced, self.device) & (targets != PAD)
        return torch.where(replaced, logits.argmax(-1), targets)

    def _scores(self, model: TransductionModel, split: PairSplit, name: str, limit: int | None) -> Metrics:
        nats, right, symbols, words, num_bytes = 0.0, 0, 0, 0, 0
        sizes = split.target_bytes()
        registered = RegisteredMetrics(TaskKind.TRANSDUCTION, name)
        for batch in iter_pair_eval(_truncate(split, limit), batch_size=self._scored_at_once):
            scored, places = scored_on_device(batch.targets, batch.targets != PAD, self.device)
            sources, targets = (on_device(rows, self.device) for rows in (batch.sources, batch.targets))
            scores = model.outputs_at(sources, targets, places).float().log_softmax(-1)
            registered.update(scores, scored)
            nats -= float(scores.gather(-1, scored.unsqueeze(-1)).double().sum())
            right += int((scores.argmax(-1) == scored).sum())
            symbols += len(scored)
            words += batch.words
            num_bytes += sum(sizes[pair] for pair in batch.pairs.tolist()) if sizes else 0
        found = Likelihood(nats=nats, tokens=symbols, words=words, bytes=num_bytes)
        return {
            f"{name}_loss": found.loss,
            **({} if (bits := found.bits_per_byte) is None else {f"{name}_bits_per_byte": bits}),
            f"{name}_perplexity": found.word_perplexity,
            f"{name}_accuracy": right / symbols,
            **registered.compute(),
        }


class GuessDraws(NamedTuple):
    """Random numbers that decide which target symbols become guesses.

    Both fields are (pairs, symbols). They are drawn for the whole batch, so they do not depend on its
    division into parts. `replaced` marks the symbols to replace; `uniform` has the numbers in [0, 1) that
    draw the guesses.
    """

    replaced: Tensor
    uniform: Tensor

    @classmethod
    def of(cls, targets: Tensor, share: float, seed: int, *, together: bool) -> GuessDraws:
        """Draw the random numbers for targets (pairs, symbols).

        Each symbol becomes a guess with probability `share`. With `together` the same positions are replaced
        in all pairs.
        """
        generator = torch.Generator().manual_seed(seed)
        rows = torch.rand(targets.shape[-1:] if together else targets.shape, generator=generator)
        uniform = torch.rand(targets.shape, generator=generator)
        return cls((rows < share).expand(targets.shape), uniform)

    def part(self, part: int, parts: int) -> GuessDraws:
        """Return the random numbers of one micro-batch."""
        return GuessDraws(*(part_of(each, part, parts) for each in self))


def sampling_share(train: TrainSettings, step: int) -> float:
    """Return the share of target symbols that become the model's guesses at a step, counted from 0."""
    if (scheduled := train.scheduled_sampling) is None:
        return train.sampling
    return min(train.sampling, scheduled.start * 2.0 ** min(step / scheduled.double_every, 1000.0))


def _guess_places(model: TransductionModel, sources: Tensor, targets: Tensor, draws: GuessDraws) -> Tensor:
    """Replace target symbols by the model's guesses from left to right. Later guesses see earlier ones."""
    # all pairs have the same places here, because `GuessDraws.of` was called with `together`
    places = draws.replaced[0].tolist()
    if not any(places):
        return targets
    read, valid, uniform = targets.clone(), targets != PAD, on_device(draws.uniform, targets.device)
    state, previous = model.begin(sources, valid.sum(1)), torch.full_like(targets[:, 0], PAD)
    # stop after the last position to replace
    for place in range(len(places) - places[::-1].index(True)):
        logits, state = model.step(state, previous)
        if places[place]:
            logits[:, PAD] = -torch.inf
            guessed = draw_symbols(logits.float().softmax(-1), uniform[:, place])
            read[:, place] = torch.where(valid[:, place], guessed, PAD)
        previous = read[:, place]
    return read


def draw_symbols(shares: Tensor, uniform: Tensor) -> Tensor:
    """Sample a symbol from each row of `shares` (rows, symbols).

    Each row uses its own random number in `uniform` (rows,), from 0 to below 1.
    """
    until = shares.cumsum(-1)
    found = torch.searchsorted(until, uniform.unsqueeze(-1) * until[:, -1:], right=True).squeeze(-1)
    # because of rounding, the search may end after the last symbol
    return found.clamp(max=shares.shape[-1] - 1)


def _truncate(split: PairSplit, limit: int | None) -> PairSplit:
    """Return the first pairs of a split, at least one, with at most `limit` target symbols in total."""
    if limit is None or limit >= len(split.target.tokens):
        return split
    count = max(1, int((split.target.lines <= limit).sum()) - 1)
    return replace(split, source=split.source.first_lines(count), target=split.target.first_lines(count))
