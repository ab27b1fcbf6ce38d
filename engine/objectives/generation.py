"""Generated outputs of a model for the test split, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from ...blocks.models.model import TransductionModel
from ...storage import WrittenOutputs
from ...studies.catalog.tasks import (
    DegradationProblem,
    ParsingSettings,
    SentencePairSettings,
    TranslationSettings,
)
from ...studies.schema.settings import TrialSettings
from ..data.sentence_pairs import PairSplit, ParallelText, iter_pair_eval, open_pairs
from ..data.token_files import Split
from ..data.treebanks import bracket_of, gold_trees, open_treebank, parse_linearised
from ..data.vocabularies.vocabulary import END, PADDING, START, Vocabulary
from ..decoding.measures import bleu, bleu_by_length, score_brackets
from ..decoding.searches import Bounds, Decoding, LengthLine, OutputCosts, SizeSearch, decode
from ..tasks.memory_degradation import generate_splits
from .base import Metrics

TAG_COST, BRACKET_COST = 1000.0, 100.0
"""Costs in nats per missing or surplus tag and bracket, if trees are preferred (the program of Kaiser and
Bengio 2016)."""


class TreeCosts(OutputCosts):
    """Costs of outputs that do not form a tree over their sentence.

    Such a tree has one tag for each word, and all its brackets are paired. `words` (sentences,) has the
    number of words of each sentence. Each missing or surplus tag has a cost, as has each bracket without a
    partner. Labels and their order do not matter. `tags` (vocab,) is 1 for a tag. `brackets` (vocab,) is 1
    for an opening bracket and -1 for a closing one.
    """

    def __init__(self, words: Tensor, *, tags: Tensor, brackets: Tensor) -> None:
        self._words, self._tags, self._brackets = words, tags, brackets

    @classmethod
    def of(cls, sentences: Sequence[str], target: Vocabulary) -> Self:
        """Return the costs of outputs for these sentences.

        `target` is the vocabulary of the outputs. A start symbol in an output counts as a surplus tag.
        """
        words = torch.tensor([len(sentence.split(" ")) for sentence in sentences])
        brackets = [bracket_of(target.decode_symbols([number])) for number in range(target.size)]
        tags = torch.tensor([not bracket for bracket in brackets]).long()
        tags[[PADDING, END]] = 0
        return cls(words, tags=tags, brackets=torch.tensor(brackets))

    def select(self, sentences: Tensor) -> Self:
        """Return the costs for the sentences with these indices (rows,), on the device of the indices."""
        tables = (self._words[sentences.to(self._words.device)], self._tags, self._brackets)
        words, tags, brackets = (table.to(sentences.device) for table in tables)
        return type(self)(words, tags=tags, brackets=brackets)

    def total(self, sentences: Tensor, symbols: Tensor) -> Tensor:
        """Return the cost (rows,) of each output.

        `symbols` (rows, longest) are the outputs, and `sentences` (rows,) the indices of their sentences.
        """
        tags, open_brackets = self._tags[symbols].sum(1), self._brackets[symbols].sum(1)
        return _cost((self._words[sentences] - tags).abs(), open_brackets.abs())

    def least(self, sentences: Tensor, symbols: Tensor, left: Bounds) -> Tensor:
        """Return a lower bound (rows,) on the cost of each unfinished output.

        Missing tags count first, then brackets.
        """
        missing = self._words[sentences] - self._tags[symbols].sum(1)
        # the end symbol takes one of the places
        most = left.max_length - 1
        tags = torch.minimum(missing.clamp(min=0), most)
        open_brackets, room = self._brackets[symbols].sum(1).abs(), most - tags
        # brackets come in pairs, so they fill a fixed length only if the number of free places is even
        odd = (left.min_length == left.max_length) & ((room - open_brackets) % 2 == 1)
        return _cost((missing - tags).abs(), torch.where(odd, 1, 0).maximum(open_brackets - room))


def _cost(tags: Tensor, brackets: Tensor) -> Tensor:
    return TAG_COST * tags.double() + BRACKET_COST * brackets.double()


MAX_LENGTH_RATIO = 2
"""Outputs have at most this many times the symbols of their source, plus MARGIN."""

MAX_LENGTH_MARGIN = 10


def output_sizes(settings: TrialSettings) -> SizeSearch:
    """Return the output lengths to try with models that must know the length before they write."""
    task = settings.task
    if isinstance(task, SentencePairSettings):
        return SizeSearch(ratio=task.size_ratio, margin=task.size_margin)
    return SizeSearch(ratio=float(MAX_LENGTH_RATIO), margin=0)


def prefers_trees(settings: TrialSettings) -> bool:
    """Return whether outputs that are not trees have an extra cost."""
    return isinstance(settings.task, ParsingSettings) and settings.task.prefer_trees


class PairData:
    """The source and target sequences of a trial, generated or from a corpus or treebank below `folder`."""

    def __init__(self, settings: TrialSettings, folder: Path) -> None:
        task, self.text = settings.task, None
        self._prefer_trees, self.sizes = prefers_trees(settings), output_sizes(settings)
        if isinstance(task, ParsingSettings | TranslationSettings):
            self.text: ParallelText | None = (
                open_treebank(task, folder) if isinstance(task, ParsingSettings) else open_pairs(task, folder)
            )
            self.train, self.dev, self.test = self.text.train, self.text.dev, self.text.test
            self.max_length, self.dev_tokens = task.longest, task.dev_tokens
        else:
            problem = task.spec
            assert isinstance(problem, DegradationProblem), f"{task.name} has no pairs"
            self.max_length, self.dev_tokens = problem.tokens, None
            self.train, self.dev, self.test = _draw_pairs(problem, settings.seed)

    @cached_property
    def length_line(self) -> LengthLine:
        """Return a line, fitted to the training pairs, that estimates target lengths from source lengths."""
        sources, targets = self.train.source.line_lengths, self.train.target.line_lengths
        # + 1 for the end symbol
        kept = torch.maximum(sources, targets) <= self.max_length + 1
        return LengthLine.fit(sources[kept], targets[kept])

    def sources(self, split: PairSplit) -> list[str]:
        """Return the source sequences of a split as text, or as numbers if the task draws them."""
        return _number_lines(split.source) if self.text is None else split.sentences("source")

    def references(self, split: PairSplit) -> list[str]:
        """Return the targets of a split as normalised text."""
        if self.text is None:
            return _number_lines(split.target)
        return [self.text.target.normalise(sentence) for sentence in split.sentences("target")]

    def tree_costs(self, split: PairSplit) -> TreeCosts | None:
        """Return the costs of outputs that are not trees; None if [task] sets no costs."""
        if not self._prefer_trees or self.text is None:
            return None
        return TreeCosts.of(split.sentences("source"), self.text.target)

    def sentences(self, outputs: Sequence[Sequence[int]]) -> list[str]:
        """Return outputs as text. Outputs for generated pairs are written as numbers."""
        decode_one = number_line if self.text is None else self.text.target.decode
        return [decode_one(output) for output in outputs]


def score_outputs(outputs: Sequence[list[int]], pairs: PairData, settings: TrialSettings) -> Metrics:
    """Score outputs of the test split by labelled brackets, or by the share of exact matches and BLEU."""
    if pairs.text is None:
        lines, tokens, right = pairs.test.target.lines.tolist(), pairs.test.target.tokens.tolist(), 0
        for output, (start, end) in zip(outputs, pairwise(lines), strict=True):
            target = tokens[start:end]
            right += output[: len(target)] == target or [*output, END] == target
        return {"test_exact": right / len(outputs)}
    sentences = pairs.sentences(outputs)
    if settings.task.name == "parsing":
        return _tree_scores(sentences, pairs.test)
    references, sources = pairs.references(pairs.test), pairs.sources(pairs.test)
    total = bleu(sentences, references)
    exact = sum(map(str.__eq__, sentences, references)) / len(references)
    scores = {"test_exact": exact, "bleu": total.score, f"bleu_signature[{total.signature}]": 1.0}
    by_length = bleu_by_length(sentences, references, [len(source.split()) for source in sources])
    return scores | {f"bleu[{words}]": score for words, score in by_length.items()}


def generate(
    model: TransductionModel,
    split: PairSplit,
    decoding: Decoding,
    *,
    pairs: PairData,
    batch_size: int,
    device: torch.device,
) -> list[list[int]]:
    """Generate an output for each source of a split, in the order of the split."""
    outputs, costs, sizes = dict[int, list[int]](), pairs.tree_costs(split), pairs.sizes
    if decoding.sizes == "estimated":
        sizes = replace(sizes, line=pairs.length_line)
    for batch in iter_pair_eval(split, batch_size=batch_size):
        of_batch = None if costs is None else costs.select(batch.pairs.to(device))
        found = search_outputs(model, batch.sources.to(device), decoding, sizes=sizes, costs=of_batch)
        outputs.update(zip(batch.pairs.tolist(), found, strict=True))
    # batches group pairs of similar lengths, so the order of the split is restored here
    return [outputs[number] for number in range(len(outputs))]


def search_outputs(
    model: TransductionModel,
    sources: Tensor,
    decoding: Decoding,
    *,
    sizes: SizeSearch,
    costs: OutputCosts | None,
) -> list[list[int]]:
    """Return the best output, with its end symbol, that a search finds for each padded source (batch, n)."""
    lengths = (sources != PADDING).sum(1)
    ratio, margin = max(sizes.ratio, MAX_LENGTH_RATIO), max(sizes.margin, MAX_LENGTH_MARGIN)
    hypotheses = decode(
        model,
        sources,
        decoding,
        max_length=(ratio * lengths.double()).floor().long() + margin,
        sizes=replace(sizes, costs=costs) if model.body.depends_on_target_length else None,
    )
    return [best.tokens for best in hypotheses]


def write_outputs(
    outputs: Sequence[list[int]], pairs: PairData, split: PairSplit, decoding: Decoding
) -> WrittenOutputs:
    """Return the outputs of a split, its sources and references, and the decoding settings, for the store."""
    return WrittenOutputs(
        **asdict(decoding),
        sources=pairs.sources(split),
        references=pairs.references(split),
        outputs=pairs.sentences(outputs),
    )


# consecutive trials often share a seed, and drawing takes as long as some epochs
_draw_pairs = lru_cache(maxsize=4)(generate_splits)


def _number_lines(side: Split) -> list[str]:
    lines, tokens = side.lines.tolist(), side.tokens.tolist()
    return [number_line(tokens[start:end]) for start, end in pairwise(lines)]


def number_line(symbols: Sequence[int]) -> str:
    """Return symbols as a line of numbers, up to the end symbol. Start symbols are left out."""
    text = takewhile(lambda symbol: symbol != END, symbols)
    return " ".join(str(symbol) for symbol in text if symbol != START)


def _tree_scores(outputs: Sequence[str], split: PairSplit) -> Metrics:
    """Score outputs by EVALB's rules; one that is not a tree over its source has no brackets."""
    sources = [sentence.split(" ") for sentence in split.sentences("source")]
    guesses = [
        parse_linearised(output.split(" "), words) for output, words in zip(outputs, sources, strict=True)
    ]
    score = score_brackets(gold_trees(split), guesses)
    return {
        "f1": score.f1,
        "f1_of_all": score.f1_of_all,
        "precision": score.precision,
        "recall": score.recall,
        "tree_share": sum(guess is not None for guess in guesses) / len(guesses),
    }
