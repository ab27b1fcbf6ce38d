"""Searches for an output of each source: greedy, or by a beam that keeps what can still win."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import PAD, TransductionModel
from ..data.vocabularies.base import END


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds on the number of symbols of each output, its end included, each (batch,).

    An output must not end before `min_length` symbols, and ends after at most `max_length`.
    """

    min_length: Tensor
    max_length: Tensor

    def select(self, index: Tensor) -> Self:
        """Select the bounds of these outputs."""
        return type(self)(min_length=self.min_length[index], max_length=self.max_length[index])

    def after(self, place: int) -> Self:
        """Return the bounds on the symbols that remain after `place` symbols."""
        return type(self)(
            min_length=(self.min_length - place).clamp(min=1), max_length=self.max_length - place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Decoded symbols (batch, longest), each row with its end and then padding, and scores (batch,) in nats.

    A score is the sum of the log-probabilities of a row's symbols, in double precision. It is minus infinity
    if the model outputs NaN, and the row then holds only an end.
    """

    symbols: Tensor
    scores: Tensor

    def select(self, index: Tensor) -> Self:
        """Select these rows."""
        return type(self)(symbols=self.symbols[index], scores=self.scores[index])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the log-probabilities of all symbols, at least in single precision."""
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


class OutputCosts(ABC):
    """Costs of outputs in nats, none below 0."""

    @abstractmethod
    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the costs of outputs (rows, longest) of these sentences (rows,), in float64.

        Each row has its end, and padding after it.
        """

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return a lower bound on the costs of outputs that begin with (rows, written); 0 by default.

        `left` bounds the number of symbols that may follow, end included. A tight bound lets the search drop
        hopeless outputs early.
        """
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)


class NoCosts(OutputCosts):
    """No costs: outputs are compared only by their likelihood."""

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return zeros."""
        return torch.zeros(len(symbols), dtype=torch.float64, device=symbols.device)


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
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, race: Race | None = None
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
        previous, gains = _likeliest(log_probabilities(logits), bounds, place)
        symbols[rows, place - 1] = previous
        scores[rows] += gains
        going = previous != END
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


def _likeliest(logs: Tensor, bounds: Bounds, place: int) -> tuple[Tensor, Tensor]:
    """Return the most likely symbols (rows,) at a 1-based position, and their log-probabilities (float64)."""
    allowed = logs.clone()
    allowed[:, PAD] = -torch.inf
    allowed[:, END].masked_fill_(place < bounds.min_length, -torch.inf)
    best, symbols = allowed.max(1)
    must = (place >= bounds.max_length) | ~torch.isfinite(best)
    symbols = torch.where(must, END, symbols)
    gains = logs.gather(1, symbols[:, None]).squeeze(1).double()
    return symbols, gains.nan_to_num(nan=-torch.inf)


def _still_racing(race: Race, rows: Tensor, written: Outputs, going: Tensor, left: Bounds) -> Tensor:
    """Return a mask of the rows that continue, for at most `left` symbols; score the rows that have ended."""
    race.record(rows[~going], written.select(rows[~going]))
    beaten = going & race.beaten(rows, written.select(rows), left)
    written.scores[rows[beaten]] = -torch.inf
    return going & ~beaten


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
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, beam: int, ranking: Ranking
) -> Outputs:
    """Return the highest-ranked output that the search finds for each source (batch, n)."""
    search = BeamSearch(sources, bounds, beam=beam, ranking=ranking)
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

    def __init__(self, sources: Tensor, bounds: Bounds, *, beam: int, ranking: Ranking) -> None:
        batch, device = len(sources), sources.device
        self.valid = sources != PAD
        self.bounds, self.beam, self.ranking = bounds, beam, ranking
        self.symbols = sources.new_full((batch, int(bounds.max_length.max())), PAD)
        self.symbols[:, 0] = END
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
        going, order = best.scores.masked_fill(best.symbols == END, -torch.inf).topk(self.beam)
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
        ends = logs[:, END].masked_fill(place < bounds.min_length, -torch.inf)
        others = logs.clone()
        others[:, PAD] = others[:, END] = -torch.inf  # a list of both would be copied to a GPU
        best, symbols = others.topk(min(self.beam, logs.shape[1] - 2))
        best = best.masked_fill((place >= bounds.max_length)[:, None], -torch.inf)
        end = torch.full_like(symbols[:, :1], END)
        return torch.cat([best, ends[:, None]], 1).double(), torch.cat([symbols, end], 1)

    def _end(self, best: Candidates, alive: Hypotheses, coverage: Tensor | None) -> None:
        """Record the finished outputs among the `beam` best; the longest was found last."""
        length = alive.prefix.shape[1]
        ending = best.symbols[:, : self.beam] == END
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
        self.symbols[of, length - 1] = END
