"""Greedy search, beam search, and a search over output lengths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import torch
from torch import Tensor

from ...blocks.models.model import PAD, TransductionModel
from ...studies.catalog.tasks import SentencePairSettings, SizeChoice
from ...studies.schema.settings import TrialSettings
from ..core.process import give_back_memory
from ..data.vocabularies.vocabulary import END


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The smallest and the largest allowed length of each output (batch,).

    Lengths are in symbols and include the end symbol. An output must not end before `min_length` symbols, and
    ends after at most `max_length`.
    """

    min_length: Tensor
    max_length: Tensor

    def select(self, index: Tensor) -> Self:
        """Return the length limits of the outputs with these indices."""
        return type(self)(min_length=self.min_length[index], max_length=self.max_length[index])

    def after(self, place: int) -> Self:
        """Return the length limits of the rest of each output, after its first `place` symbols."""
        return type(self)(
            min_length=(self.min_length - place).clamp(min=1), max_length=self.max_length - place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Decoded symbols (batch, longest) and their scores (batch,) in nats.

    Padding follows each end symbol. A score is the sum of the log-probabilities of a row's symbols, in double
    precision. It is minus infinity if the model outputs NaN, and the row then holds only an end.
    """

    symbols: Tensor
    scores: Tensor

    def select(self, index: Tensor) -> Self:
        """Return the outputs in these rows."""
        return type(self)(symbols=self.symbols[index], scores=self.scores[index])


def log_probabilities(logits: Tensor) -> Tensor:
    """Return the log-probabilities of all symbols. They are at least in single precision."""
    return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))


class OutputCosts(ABC):
    """Extra costs of outputs, in nats, which a search subtracts from their scores. No cost is below 0."""

    @abstractmethod
    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the cost (rows,) of each finished output, as float64.

        `symbols` is (rows, longest). `sentences` (rows,) has the index of each output's sentence. Each row
        has its end, and padding after it.
        """

    @abstractmethod
    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return a lower bound (rows,) on the cost of each unfinished output.

        `symbols` are (rows, written), and `left` bounds the number of symbols that may follow, end included.
        A lower value, such as 0, is also correct, but then the search drops hopeless outputs later.
        """


def _worth(outputs: Outputs, costs: OutputCosts | None, sentences: Tensor) -> Tensor:
    """Return the scores of finished outputs minus their costs, if there are any."""
    return outputs.scores if costs is None else outputs.scores - costs.total(sentences, outputs.symbols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Competition among several outputs of each sentence, of which only the best is kept.

    Outputs that cannot win are dropped early. `sentence` (rows,) maps rows to sentences. `best` (sentences,)
    is the best score of a finished output so far, minus its cost.
    """

    sentence: Tensor
    best: Tensor
    costs: OutputCosts | None

    def keep(self, rows: Tensor, written: Outputs, going: Tensor, left: Bounds) -> Tensor:
        """Return a mask of the outputs in these rows that are unfinished and can still win.

        `going` marks the unfinished ones, and `left` bounds the number of symbols that may follow. The best
        scores are updated with the finished outputs. The score of each beaten output is set to -inf.
        """
        ended, sentence = rows[~going], self.sentence[rows]
        worth = _worth(written.select(ended), self.costs, self.sentence[ended])
        self.best.scatter_reduce_(0, self.sentence[ended], worth, "amax")
        begun = written.select(rows)
        least = 0.0 if self.costs is None else self.costs.least(sentence, begun.symbols, left)
        beaten = going & (begun.scores - least < self.best[sentence])
        written.scores[rows[beaten]] = -torch.inf
        return going & ~beaten


def greedy_search(
    model: TransductionModel, sources: Tensor, bounds: Bounds, *, race: Race | None = None
) -> Outputs:
    """Generate an output for each source (batch, n), symbol by symbol.

    Finished rows are dropped. With a race, outputs that cannot win may stay unfinished; their scores are
    minus infinity.
    """
    batch, device = len(sources), sources.device
    symbols = sources.new_full((batch, int(bounds.max_length.max())), PAD)
    scores = torch.zeros(batch, dtype=torch.float64, device=device)
    rows, place = torch.arange(batch, device=device), 0  # rows of unfinished outputs
    if race is not None:
        going = torch.ones(batch, dtype=torch.bool, device=device)
        nothing = Outputs(symbols=symbols[:, :0], scores=scores)
        rows = rows[race.keep(rows, nothing, going, bounds)]
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
            going = race.keep(rows, written, going, bounds.after(place))
        kept = torch.nonzero(going).squeeze(1)
        if len(kept) < len(rows):
            rows, previous, bounds = rows[kept], previous[kept], bounds.select(kept)
            state = state.select_rows(kept)
    return Outputs(symbols=symbols, scores=scores)


def _likeliest(logs: Tensor, bounds: Bounds, place: int) -> tuple[Tensor, Tensor]:
    """Return each output's likeliest allowed symbol at a position, from 1, and its log-probability."""
    allowed = logs.clone()
    allowed[:, PAD] = -torch.inf
    allowed[:, END].masked_fill_(place < bounds.min_length, -torch.inf)
    best, symbols = allowed.max(1)
    # a row with only NaN or -inf ends here, since no symbol can be chosen for it
    must = (place >= bounds.max_length) | ~torch.isfinite(best)
    symbols = torch.where(must, END, symbols)
    gains = logs.gather(1, symbols[:, None]).squeeze(1).double()
    return symbols, gains.nan_to_num(nan=-torch.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Decoding settings: the size of the beam, and the penalties that rank outputs.

    The rank (Wu et al. 2016, section 7) is log P / lp + cp. lp = ((5 + length) / 6)^α, where the length
    counts the end. cp = β · Σ log min(coverage, 1) over the source's positions. The coverage of a position is
    the sum of all attention weights on it. α is `length_penalty`, and β is `coverage_penalty`. A beam of 1 is
    greedy.

    `sizes` chooses the output lengths to try with a model that needs the length in advance.
    """

    beam: int = 1
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0
    sizes: SizeChoice = "all"

    @classmethod
    def of_task(cls, settings: TrialSettings) -> Decoding:
        """Return the decoding settings of a trial; the default is greedy search."""
        task = settings.task
        if not isinstance(task, SentencePairSettings):
            return cls()
        return cls(
            beam=task.beam,
            length_penalty=task.length_penalty,
            coverage_penalty=task.coverage_penalty,
            sizes=task.sizes,
        )

    def normalise(self, scores: Tensor, lengths: Tensor | int) -> Tensor:
        """Return the score divided by the length penalty: log P / lp.

        This is an upper bound of the rank, since the coverage penalty cp is never above 0.
        """
        return scores / ((5.0 + lengths) / 6.0) ** self.length_penalty

    def coverage_term(self, coverage: Tensor, valid: Tensor) -> Tensor:
        """Return the coverage penalty (rows,) of each output.

        `coverage` is (rows, n); only valid source positions count.
        """
        # the logarithm of a weight that underflowed to 0 stays finite
        least = torch.finfo(coverage.dtype).tiny
        logs = torch.log(coverage.clamp(least, 1.0)).masked_fill(~valid, 0.0)
        return self.coverage_penalty * logs.sum(1, dtype=torch.float64)


def beam_search(model: TransductionModel, sources: Tensor, bounds: Bounds, decoding: Decoding) -> Outputs:
    """Return the highest-ranked output that the search finds for each source (batch, n).

    Among the `beam` best continuations of a sentence's unfinished outputs, those with an end symbol are
    finished outputs. The search continues from the `beam` best unfinished ones, as long as one of them can
    still rank higher than the best finished output.
    """
    device, valid, beam = sources.device, sources != PAD, decoding.beam
    symbols = sources.new_full((len(sources), int(bounds.max_length.max())), PAD)
    # the output of a row for which no finite score is ever found
    symbols[:, 0] = END
    scores = torch.full((len(sources),), -torch.inf, dtype=torch.float64, device=device)
    ranks = scores.clone()

    # rows of unfinished outputs; those of a sentence are next to each other, and `slot` numbers them
    sentence = torch.arange(len(sources), device=device)
    slot, sums = torch.zeros_like(sentence), torch.zeros_like(scores)
    prefix = torch.full_like(symbols[:, :1], PAD)  # it begins with the start symbol
    coverage = torch.zeros_like(valid, dtype=torch.float64) if decoding.coverage_penalty > 0.0 else None
    state = model.begin(sources, bounds.max_length)
    while len(sums):
        logits, state = model.step(state, prefix[:, -1])
        if coverage is not None:
            attended = model.body.attention_weights(state)
            coverage = None if attended is None else coverage + attended

        # the best continuations of each sentence, (sentences, 2 * beam): their sums, parents and symbols
        length = prefix.shape[1]
        gains, following = _choices(log_probabilities(logits), bounds.select(sentence), length, beam)
        continued = (sums[:, None] + gains).nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        sentences, group = torch.unique_consecutive(sentence, return_inverse=True)
        choices = following.shape[1]
        grid = continued.new_full((len(sentences), beam, choices), -torch.inf)
        grid[group, slot] = continued
        row = group.new_zeros(grid.shape[:2])
        row[group, slot] = torch.arange(len(group), device=device)
        # each slot has one continuation that ends, so at least half of these do not end
        best, picked = grid.flatten(1).topk(2 * beam)
        parents = row.gather(1, picked // choices)
        chosen = following[parents, picked % choices]

        # the outputs that end here, and improve on the best so far
        ending = best[:, :beam].masked_fill(chosen[:, :beam] != END, -torch.inf)
        ended = decoding.normalise(ending, length)
        if coverage is not None:
            terms = decoding.coverage_term(coverage, valid[sentence])
            ended = ended + terms[parents[:, :beam]]
        rank, which = ended.max(1)
        better = torch.nonzero(rank > ranks[sentences]).squeeze(1)
        of, which = sentences[better], which[better]
        ranks[of], scores[of] = rank[better], ending[better, which]
        symbols[of, : length - 1] = prefix[parents[better, which], 1:]
        symbols[of, length - 1] = END

        # a score only falls with more symbols, and the largest length divides it most, so no continuation
        # ranks higher than this bound
        going, order = best.masked_fill(chosen == END, -torch.inf).topk(beam)
        kept = decoding.normalise(going, bounds.max_length[sentences, None]) > ranks[sentences, None]
        of, slot = torch.nonzero(kept, as_tuple=True)
        rows = parents.gather(1, order)[kept]
        sentence, sums, state = sentences[of], going[kept], state.select_rows(rows)
        prefix = torch.cat([prefix[rows], chosen.gather(1, order)[kept][:, None]], 1)
        coverage = None if coverage is None else coverage[rows]
    return Outputs(symbols=symbols, scores=scores)


def _choices(logs: Tensor, bounds: Bounds, place: int, beam: int) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities and the numbers of each output's best next symbols, the end mark last."""
    ends = logs[:, END].masked_fill(place < bounds.min_length, -torch.inf)
    others = logs.clone()
    others[:, PAD] = others[:, END] = -torch.inf  # indexing by a list would copy it to the GPU
    best, symbols = others.topk(min(beam, logs.shape[1] - 2))
    best = best.masked_fill((place >= bounds.max_length)[:, None], -torch.inf)
    end = torch.full_like(symbols[:, :1], END)
    return torch.cat([best, ends[:, None]], 1).double(), torch.cat([symbols, end], 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthLine:
    """Linear estimate of an output's length from its source's length.

    The estimate is slope · length + constant. Both lengths include the end symbol. The numbers are exact, so
    every machine rounds up to the same length.
    """

    slope: Fraction
    constant: Fraction

    @classmethod
    def fit(cls, sources: Tensor, targets: Tensor) -> Self:
        """Fit the line by least squares to the lengths (pairs,) of sources and targets.

        Lengths are whole numbers. If all sources have the same length, the line is constant: the mean target
        length. At least one pair is needed.
        """
        sources, targets = sources.long(), targets.long()
        count, total, written = len(sources), int(sources.sum()), int(targets.sum())
        spread = count * int(sources.dot(sources)) - total**2
        together = count * int(sources.dot(targets)) - total * written
        slope = Fraction(together, spread) if spread else Fraction(0)
        return cls(slope=slope, constant=(written - slope * total) / count)

    def estimate(self, lengths: Tensor) -> Tensor:
        """Estimate output lengths from source lengths (rows,). They are rounded up, and may be below 1."""
        found = [math.ceil(self.slope * length + self.constant) for length in lengths.tolist()]
        return torch.tensor(found, device=lengths.device)

    def to_dict(self) -> dict[str, str]:
        """Return the line as plain values that `from_dict` reads."""
        return {"slope": str(self.slope), "constant": str(self.constant)}

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> Self:
        """Rebuild the line from the values that `to_dict` returned."""
        return cls(slope=Fraction(values["slope"]), constant=Fraction(values["constant"]))


MAX_POSITIONS = 16384
"""Limit on the positions of all outputs decoded at once: about two gigabytes for images of 4 x 512."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSearch:
    """Settings of the search over output lengths.

    It is for models that must know the length of an output before they write it. The length that such a model
    is given is the output's size. The sizes go from a source's length to `ratio` times that length plus
    `margin`. The best output is the most likely one or, with `costs` for each source, the one with the
    highest log-probability minus cost. With a `line`, only the size nearest to its estimate is tried.
    """

    ratio: float = 2.0
    margin: int = 0
    costs: OutputCosts | None = None
    line: LengthLine | None = None

    def tried(self, lengths: Tensor, longest: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest output length (size) to try for each source.

        No size is above `longest`. Both sizes are (rows,).
        """
        most = (self.ratio * lengths.double()).floor().long() + self.margin
        least, most = torch.minimum(lengths, longest), torch.minimum(most, longest)
        if self.line is not None:
            least = most = self.line.estimate(lengths).clamp(least, most)
        return least, most


def size_bounds(lengths: Tensor, sizes: Tensor) -> Bounds:
    """Return the allowed lengths of outputs for a model that is given these output sizes.

    `lengths` and `sizes` are (rows,). All sizes up to the source's length are equivalent; a longer output
    has exactly its size.
    """
    return Bounds(min_length=torch.where(sizes > lengths, sizes, 1), max_length=sizes)


def search_lengths(
    model: TransductionModel,
    sources: Tensor,
    max_length: Tensor,
    *,
    beam: int,
    sizes: SizeSearch,
) -> Outputs:
    """Try several output lengths for each source, and return the best output.

    Kaiser and Bengio 2016, section 3. Greedy search finds the best size. With a `beam` above 1, beam search
    then runs with that size only. `max_length` (batch,) bounds the sizes. If outputs have costs, the greedy
    output is kept unless the beam's is better. With a length line, only one size is tried.
    """
    costs = sizes.costs
    if beam > 1 and sizes.line is not None and costs is None:
        lengths_tried, _ = sizes.tried((sources != PAD).sum(1), max_length)
        return _beams(model, sources, lengths_tried, beam)
    chosen, found = _best_sizes(model, sources, max_length, sizes)
    if beam == 1:
        return found
    widely = _beams(model, sources, chosen, beam)
    if costs is None:
        return widely
    everyone = torch.arange(len(sources), device=sources.device)
    worth = [_worth(each, costs, everyone) for each in (widely, found)]
    better = worth[0] >= worth[1]
    return Outputs(
        symbols=torch.where(better[:, None], widely.symbols, found.symbols[:, : widely.symbols.shape[1]]),
        scores=torch.where(better, widely.scores, found.scores),
    )


def _beams(model: TransductionModel, sources: Tensor, lengths_tried: Tensor, beam: int) -> Outputs:
    bounds = size_bounds((sources != PAD).sum(1), lengths_tried)
    symbols = sources.new_full((len(sources), int(lengths_tried.max())), PAD)
    scores = torch.zeros(len(sources), dtype=torch.float64, device=sources.device)
    for rows in _chunks(lengths_tried, MAX_POSITIONS // beam):
        written = beam_search(model, _trim_padding(sources[rows]), bounds.select(rows), Decoding(beam=beam))
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    return Outputs(symbols=symbols, scores=scores)


def _best_sizes(
    model: TransductionModel, sources: Tensor, longest: Tensor, sizes: SizeSearch
) -> tuple[Tensor, Outputs]:
    """Return the best size (batch,) for each source, and the greedy output of this size.

    A size is dropped as soon as its likelihood so far, with its lowest possible cost, cannot beat another
    output.
    """
    costs, lengths = sizes.costs, (sources != PAD).sum(1)
    least, most = sizes.tried(lengths, longest)
    tried = torch.arange(int((most - least).max()) + 1, device=sources.device)
    sentence, more = torch.nonzero(tried <= (most - least)[:, None], as_tuple=True)  # (outputs,)
    lengths_tried = least[sentence] + more
    symbols = sources.new_full((len(lengths_tried), int(most.max())), PAD)
    scores = torch.full(lengths_tried.shape, -torch.inf, dtype=torch.float64, device=sources.device)
    best = scores.new_full(lengths.shape, -torch.inf)
    for rows in _chunks(lengths_tried, MAX_POSITIONS):
        of, bounds = sentence[rows], size_bounds(lengths[sentence[rows]], lengths_tried[rows])
        # all chunks share `best`: outputs of small sizes end first, and stop larger ones early
        race = Race(sentence=of, best=best, costs=costs)
        written = greedy_search(model, _trim_padding(sources[of]), bounds, race=race)
        scores[rows], symbols[rows, : written.symbols.shape[1]] = written.scores, written.symbols
    outputs = Outputs(symbols=symbols, scores=scores)
    table = scores.new_full((len(sources), len(tried)), -torch.inf)
    table[sentence, more] = _worth(outputs, costs, sentence)
    chosen = torch.zeros_like(table, dtype=torch.long)
    chosen[sentence, more] = torch.arange(len(lengths_tried), device=lengths_tried.device)
    chosen = chosen.gather(1, table.argmax(1, keepdim=True)).squeeze(1)
    return lengths_tried[chosen], outputs.select(chosen)


def _chunks(sizes: Tensor, positions: int) -> Iterator[Tensor]:
    """Divide rows into padded chunks, the shortest rows first, and yield the indices of each chunk.

    A padded chunk has at most `positions` positions, unless it is a single row. After each chunk freed memory
    is returned to the system. On a CPU oneDNN caches prepared convolutions for each shape, and shrinking
    batches produce hundreds of shapes, which fragments the heap.
    """
    order = torch.argsort(sizes, stable=True)
    start = 0
    for place, size in enumerate(sizes[order].tolist()):
        if place > start and (place - start + 1) * size > positions:
            yield order[start:place]
            give_back_memory()
            start = place
    yield order[start:]
    give_back_memory()


def _trim_padding(sources: Tensor) -> Tensor:
    return sources[:, : int((sources != PAD).sum(1).max())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A decoded output: its symbols, the end symbol last, and their log-probability in nats.

    The score is the negative of `TransductionModel.nll` for these symbols.
    """

    tokens: list[int]
    score: float


def decode(
    model: TransductionModel,
    sources: Tensor,
    decoding: Decoding,
    *,
    max_length: Tensor | int,
    sizes: SizeSearch | None = None,
) -> list[Decoded]:
    """Return the best output that a search finds for each source.

    `sources` (batch, n) are padded with 0. Each output has at most `max_length` symbols, its end included:
    one number for all, or one for each (batch,). A model whose transducer has `depends_on_target_length`
    writes exactly `max_length` symbols if the source has fewer. For such a model, `sizes` searches for the
    best length instead, without penalties.
    """
    most = torch.as_tensor(max_length, device=sources.device).expand(len(sources))
    bounds = Bounds(min_length=torch.ones_like(most), max_length=most)
    if model.body.depends_on_target_length:
        bounds = size_bounds((sources != PAD).sum(1), most)
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            if sizes is not None:
                found = search_lengths(model, sources, most, beam=decoding.beam, sizes=sizes)
            elif decoding.beam == 1:
                found = greedy_search(model, sources, bounds)
            else:
                found = beam_search(model, sources, bounds, decoding)
    finally:
        model.train(training)
    lengths = (found.symbols != PAD).sum(1).tolist()
    rows = zip(found.symbols.tolist(), lengths, found.scores.tolist(), strict=True)
    return [Decoded(tokens=symbols[:length], score=score) for symbols, length, score in rows]
