"""Greedy search: the most likely symbol at each position."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from .outputs import Bounds, OutputCosts, Outputs, log_probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Competing outputs of the same sentences, of which only the best is wanted.

    `sentence` (rows,) maps rows to sentences. `best` (sentences,) is the best score of a finished output so
    far, minus its cost.
    """

    sentence: Tensor
    best: Tensor
    costs: OutputCosts

    def record(self, rows: Tensor, outputs: Outputs) -> None:
        """Record finished outputs of these rows."""
        sentence = self.sentence[rows]
        worth = outputs.scores - self.costs.total(sentence, outputs.symbols)
        self.best.scatter_reduce_(0, sentence, worth, "amax")

    def beaten(self, rows: Tensor, beginnings: Outputs, left: Bounds) -> Tensor:
        """Return which unfinished outputs, with at most `left` more symbols, already score below the best."""
        sentence = self.sentence[rows]
        worth = beginnings.scores - self.costs.least(sentence, beginnings.symbols, left)
        return worth < self.best[sentence]


def greedy_search(
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, end: int, race: Race | None = None
) -> Outputs:
    """Generate an output for each source (batch, n), symbol by symbol; finished rows are dropped.

    With a race, outputs that cannot win may stay unfinished; their scores are minus infinity.
    """
    batch, device = len(sources), sources.device
    symbols = sources.new_full((batch, int(bounds.max_length.max())), PAD)
    scores = torch.zeros(batch, dtype=torch.float64, device=device)
    rows, place = torch.arange(batch, device=device), 0  # the outputs that have not ended
    if race is not None:
        going = torch.ones(batch, dtype=torch.bool, device=device)
        nothing = Outputs(symbols=symbols[:, :0], scores=scores)
        rows = rows[_still_racing(race, rows, nothing, going, bounds)]
    if not len(rows):
        return Outputs(symbols=symbols, scores=scores)
    bounds = bounds.select(rows)
    state, previous = model.begin(sources[rows], bounds.max_length), sources.new_full((len(rows),), PAD)
    while len(rows):
        logits, state = model.step(state, previous)
        place += 1
        previous, gains = _likeliest(log_probabilities(logits), bounds, place, end)
        symbols[rows, place - 1] = previous
        scores[rows] += gains
        going = previous != end
        if race is not None:
            written = Outputs(symbols=symbols[:, :place], scores=scores)
            going = _still_racing(race, rows, written, going, bounds.after(place))
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
    """Return the most likely symbols (rows,) at a 1-based position, and their log-probabilities (float64)."""
    allowed = logs.clone()
    allowed[:, PAD] = -torch.inf
    allowed[:, end].masked_fill_(place < bounds.min_length, -torch.inf)
    best, symbols = allowed.max(1)
    must = (place >= bounds.max_length) | ~torch.isfinite(best)
    symbols = torch.where(must, end, symbols)
    gains = logs.gather(1, symbols[:, None]).squeeze(1).double()
    return symbols, gains.nan_to_num(nan=-torch.inf)


def _still_racing(race: Race, rows: Tensor, written: Outputs, going: Tensor, left: Bounds) -> Tensor:
    """Return which rows continue, with at most `left` more symbols; the others get their score here."""
    race.record(rows[~going], written.select(rows[~going]))
    beaten = going & race.beaten(rows, written.select(rows), left)
    written.scores[rows[beaten]] = -torch.inf
    return going & ~beaten
