"""The likeliest symbol at every place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from .outputs import Bounds, Outputs, log_probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Rows that are outputs of the same sentences, of which only the likeliest are asked for.

    `sentence` (rows,) tells whose they are, `best` (sentences,) has the best score of those that have ended,
    less what `costs` says of them, which is nothing below 0; it is kept up to date.
    """

    sentence: Tensor
    best: Tensor
    costs: Callable[[Tensor, Outputs], Tensor]

    def record(self, rows: Tensor, outputs: Outputs) -> None:
        """Take note of outputs that have ended, those of these rows."""
        sentence = self.sentence[rows]
        self.best.scatter_reduce_(0, sentence, outputs.scores - self.costs(sentence, outputs), "amax")

    def beaten(self, rows: Tensor, scores: Tensor) -> Tensor:
        """Which beginnings have scores so far that are below the best: they only get worse."""
        return scores < self.best[self.sentence[rows]]


def greedy_search(
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, end: int, race: Race | None = None
) -> Outputs:
    """An output for each source (batch, n), symbol by symbol; what has ended takes no further part.

    Of a race the losers may be left unfinished; their scores are minus infinity.
    """
    batch, device = len(sources), sources.device
    symbols = sources.new_full((batch, int(bounds.max_length.max())), PAD)
    scores = torch.zeros(batch, dtype=torch.float64, device=device)
    rows, place = torch.arange(batch, device=device), 0  # the outputs that have not ended
    state, previous = model.begin(sources, bounds.max_length), sources.new_full((batch,), PAD)
    while len(rows):
        logits, state = model.step(state, previous)
        place += 1
        previous, gains = _likeliest(log_probabilities(logits), bounds, place, end)
        symbols[rows, place - 1] = previous
        scores[rows] += gains
        going = previous != end
        if race is not None:
            going = _still_racing(race, rows, Outputs(symbols=symbols, scores=scores), going)
        kept = torch.nonzero(going).squeeze(1)
        if len(kept) < len(rows):
            rows, previous, bounds, state = (
                rows[kept],
                previous[kept],
                bounds.select(kept),
                state.select_rows(kept),
            )
    return Outputs(symbols=symbols, scores=scores)


def _likeliest(logs: Tensor, bounds: Bounds, place: int, end: int) -> tuple[Tensor, Tensor]:
    """The symbols (rows,) at one place, counted from 1, and their log-probabilities in double precision."""
    allowed = logs.clone()
    allowed[:, PAD] = -torch.inf
    allowed[:, end].masked_fill_(place < bounds.min_length, -torch.inf)
    best, symbols = allowed.max(1)
    must = (place >= bounds.max_length) | ~torch.isfinite(best)
    symbols = torch.where(must, end, symbols)
    gains = logs.gather(1, symbols[:, None]).squeeze(1).double()
    return symbols, gains.nan_to_num(nan=-torch.inf)


def _still_racing(race: Race, rows: Tensor, outputs: Outputs, going: Tensor) -> Tensor:
    """Which rows go on; those that are given up get their score here."""
    ended, scores = rows[~going], outputs.scores
    race.record(ended, Outputs(symbols=outputs.symbols[ended], scores=scores[ended]))
    beaten = going & race.beaten(rows, scores[rows])
    scores[rows[beaten]] = -torch.inf
    return going & ~beaten
