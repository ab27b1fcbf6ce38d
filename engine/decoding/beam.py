"""Beam search that keeps only hypotheses that can still win."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from .outputs import Bounds, Outputs, log_probabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """rank = log P / lp + cp, with the exponent α of lp and the factor β of cp (Wu et al. 2016, section 7).

    lp = ((5 + length) / 6)^α, where the length counts the end. cp = β · Σ log min(coverage, 1) over the
    source's positions. The coverage of a position is the sum of all attention weights on it.
    """

    length_penalty: float = 0.0
    coverage_penalty: float = 0.0

    def normalise(self, scores: Tensor, lengths: Tensor | int) -> Tensor:
        """Divide log P by lp. Since cp ≤ 0, this is an upper bound of the rank."""
        return scores / ((5.0 + lengths) / 6.0) ** self.length_penalty

    def coverage_term(self, coverage: Tensor, valid: Tensor) -> Tensor:
        """Return the coverage penalty (rows,) for coverages (rows, n), over the valid source positions."""
        least = torch.finfo(coverage.dtype).tiny  # a weight that became 0 says nothing of the others
        logs = torch.log(coverage.clamp(least, 1.0)).masked_fill(~valid, 0.0)
        return self.coverage_penalty * logs.sum(1, dtype=torch.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypotheses:
    """Unfinished outputs; a sentence has adjacent rows, each with its own slot, counted from 0.

    `prefix` (rows, length) begins with the start symbol; `coverage` (rows, n) is kept if it is needed.
    """

    sentence: Tensor
    slot: Tensor
    scores: Tensor
    prefix: Tensor
    coverage: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The best continuations by falling score, each (sentences, 2 * beam): scores, rows, symbols.

    Missing ones have a score of minus infinity. At least half of them do not end.
    """

    sentences: Tensor  # (sentences,)
    scores: Tensor
    parents: Tensor
    symbols: Tensor


def beam_search(
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, beam: int, end: int, ranking: Ranking
) -> Outputs:
    """Return the highest-ranked output that the search finds for each source (batch, n)."""
    search = BeamSearch(sources, bounds, beam=beam, end=end, ranking=ranking)
    state, alive = model.begin(sources, bounds.max_length), search.begin()
    while len(alive.scores):
        logits, state = model.step(state, alive.prefix[:, -1])
        attended = None if alive.coverage is None else model.body.attention_weights(state)
        parents, alive = search.extend(alive, log_probabilities(logits), attended)
        state = state.select_rows(parents)
    return Outputs(symbols=search.symbols, scores=search.scores)


class BeamSearch:
    """Search state: the best finished output of each sentence, and the hypotheses that may still beat it.

    Among the `beam` best continuations, those with an end symbol are finished outputs. The search continues
    from the `beam` best unfinished ones, as long as one of them can still rank higher than the best output.
    """

    def __init__(self, sources: Tensor, bounds: Bounds, *, beam: int, end: int, ranking: Ranking) -> None:
        batch, device = len(sources), sources.device
        self.valid = sources != PAD
        self.bounds, self.beam, self.end, self.ranking = bounds, beam, end, ranking
        self.symbols = sources.new_full((batch, int(bounds.max_length.max())), PAD)
        self.symbols[:, 0] = end
        self.scores = torch.full((batch,), -torch.inf, dtype=torch.float64, device=device)
        self.ranks = self.scores.clone()

    def begin(self) -> Hypotheses:
        """Return the initial hypotheses, which hold only the start symbol."""
        rows = torch.arange(len(self.scores), device=self.scores.device)
        counted = self.ranking.coverage_penalty > 0.0
        return Hypotheses(
            sentence=rows,
            slot=torch.zeros_like(rows),
            scores=torch.zeros_like(self.scores),
            prefix=torch.full_like(self.symbols[:, :1], PAD),
            coverage=torch.zeros_like(self.valid, dtype=torch.float64) if counted else None,
        )

    def extend(self, alive: Hypotheses, logs: Tensor, attended: Tensor | None) -> tuple[Tensor, Hypotheses]:
        """Return the rows to continue and their extended hypotheses, given log-probabilities (rows, vocab).

        `attended` (rows, n) are the attention weights of this step.
        """
        best = self._best(alive, logs)
        coverage = None if alive.coverage is None or attended is None else alive.coverage + attended
        self._end(best, alive, coverage)
        going, order = best.scores.masked_fill(best.symbols == self.end, -torch.inf).topk(self.beam)
        bound = self.ranking.normalise(going, self.bounds.max_length[best.sentences, None])
        kept = bound > self.ranks[best.sentences, None]
        of, slot = torch.nonzero(kept, as_tuple=True)
        parents, symbols = best.parents.gather(1, order)[kept], best.symbols.gather(1, order)[kept]
        return parents, Hypotheses(
            sentence=best.sentences[of],
            slot=slot,
            scores=going[kept],
            prefix=torch.cat([alive.prefix[parents], symbols[:, None]], 1),
            coverage=None if coverage is None else coverage[parents],
        )

    def _best(self, alive: Hypotheses, logs: Tensor) -> Candidates:
        gains, symbols = self._choices(alive, logs)
        scores = (alive.scores[:, None] + gains).nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        sentences, group = torch.unique_consecutive(alive.sentence, return_inverse=True)
        choices = symbols.shape[1]
        grid = scores.new_full((len(sentences), self.beam, choices), -torch.inf)
        grid[group, alive.slot] = scores
        row = group.new_zeros(grid.shape[:2])
        row[group, alive.slot] = torch.arange(len(group), device=group.device)
        scores, picked = grid.flatten(1).topk(2 * self.beam)  # a slot ends in one way: half of these go on
        parents = row.gather(1, picked // choices)
        chosen = symbols[parents, picked % choices]
        return Candidates(sentences=sentences, scores=scores, parents=parents, symbols=chosen)

    def _choices(self, alive: Hypotheses, logs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best symbols of each row, followed by the end symbol.

        They are log-probabilities and symbols.
        """
        place, bounds = alive.prefix.shape[1], self.bounds.select(alive.sentence)
        ends = logs[:, self.end].masked_fill(place < bounds.min_length, -torch.inf)
        others = logs.clone()
        others[:, PAD] = others[:, self.end] = -torch.inf  # a list of both would be copied to a GPU
        best, symbols = others.topk(min(self.beam, logs.shape[1] - 2))
        best = best.masked_fill((place >= bounds.max_length)[:, None], -torch.inf)
        end = torch.full_like(symbols[:, :1], self.end)
        return torch.cat([best, ends[:, None]], 1).double(), torch.cat([symbols, end], 1)

    def _end(self, best: Candidates, alive: Hypotheses, coverage: Tensor | None) -> None:
        """Record the finished outputs among the `beam` best; the longest was found last."""
        length = alive.prefix.shape[1]
        ending = best.symbols[:, : self.beam] == self.end
        scores = best.scores[:, : self.beam].masked_fill(~ending, -torch.inf)
        ranks = self.ranking.normalise(scores, length)
        if coverage is not None:
            ranks = (
                ranks
                + self.ranking.coverage_term(coverage, self.valid[alive.sentence])[
                    best.parents[:, : self.beam]
                ]
            )
        rank, which = ranks.max(1)
        better = torch.nonzero(rank > self.ranks[best.sentences]).squeeze(1)
        of, which = best.sentences[better], which[better]
        self.ranks[of], self.scores[of] = rank[better], scores[better, which]
        self.symbols[of, : length - 1] = alive.prefix[best.parents[better, which], 1:]
        self.symbols[of, length - 1] = self.end
