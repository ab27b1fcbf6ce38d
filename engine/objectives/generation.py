"""What a model writes for the test split of its task, and what that is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path

import torch
from torch import Tensor

from ...blocks.models.seq2seq_model import TransductionModel
from ...storage import WrittenOutputs
from ...studies.catalog.tasks import DegradationProblem, ParsingSettings, SentencePairSettings
from ...studies.schema.settings import TrialSettings
from ..data import ParallelText, gold_trees, iter_pair_eval, open_pairs, open_treebank
from ..data.pairs.corpus import PairSplit
from ..data.token_files import Split
from ..data.trees.linearised import count_faults, parse_linearised
from ..data.vocabularies.base import END, START
from ..decoding import SizeSearch, decode
from ..measures import bleu, bleu_by_length, score_brackets
from ..tasks.memory_degradation import as_pairs, generate_splits
from .base import Metrics

MAX_LENGTH_RATIO = 2
"""Outputs may be at most this many times as long as their sources, plus MARGIN symbols."""

MAX_LENGTH_MARGIN = 10

OutputCost = Callable[[int, list[int]], float]
"""What the output of a pair, by its number in the split, costs beside its likelihood."""


COST_OF_A_TAG, COST_OF_A_BRACKET = 1000.0, 100.0
"""In nats, for each tag or bracket too many or too few, where trees are preferred (the program of Kaiser and
Bengio 2016)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How outputs are searched for: hypotheses kept, and what compares those of different lengths."""

    beam: int = 1
    length_penalty: float = 0.0
    coverage_penalty: float = 0.0

    @classmethod
    def of_task(cls, settings: TrialSettings) -> Decoding:
        """As the task says; greedy where it says nothing."""
        task = settings.task
        if not isinstance(task, SentencePairSettings):
            return cls()
        return cls(beam=task.beam, length_penalty=task.length_penalty, coverage_penalty=task.coverage_penalty)


class PairData:
    """The pairs of a trial: those of a corpus or a treebank, from the folder of all data, or drawn."""

    def __init__(self, settings: TrialSettings, folder: Path) -> None:
        task, self.text = settings.task, None
        self._prefer_trees = isinstance(task, ParsingSettings) and task.prefer_trees
        if isinstance(task, SentencePairSettings):
            self.text: ParallelText | None = (
                open_treebank(task, folder) if task.name == "parsing" else open_pairs(task, folder)
            )
            self.train, self.dev, self.test = self.text.train, self.text.dev, self.text.test
            self.max_length, self.dev_tokens = task.longest, task.dev_tokens
            self.size_ratio, self.size_margin = task.size_ratio, task.size_margin
        else:
            problem = task.spec
            assert isinstance(problem, DegradationProblem), f"{task.name} has no pairs"
            drawn = generate_splits(problem, settings.seed)
            self.max_length, self.dev_tokens = problem.tokens, None
            self.size_ratio, self.size_margin = float(MAX_LENGTH_RATIO), 0
            self.train, self.dev, self.test = (
                as_pairs(each) for each in (drawn.train, drawn.dev, drawn.test)
            )

    def sources(self, split: PairSplit) -> list[str]:
        """The sources of a split that is not for training, as text; of drawn pairs, their numbers."""
        return _number_lines(split.source) if self.text is None else split.sentences("source")

    def references(self, split: PairSplit) -> list[str]:
        """The targets of a split, so for its sources, as outputs are compared with them."""
        if self.text is None:
            return _number_lines(split.target)
        return [self.text.target.normalise(one) for one in split.sentences("target")]

    def tree_costs(self, split: PairSplit) -> OutputCost | None:
        """What keeps an output from being a tree of its pair's sentence, in nats; None if that is all one."""
        if not self._prefer_trees or self.text is None:
            return None
        words = [len(sentence.split(" ")) for sentence in split.sentences("source")]
        decode_one = self.text.target.decode

        def cost(pair: int, output: list[int]) -> float:
            tags, brackets = count_faults(decode_one(output).split(), words[pair])
            return COST_OF_A_TAG * tags + COST_OF_A_BRACKET * brackets

        return cost

    def sentences(self, outputs: Sequence[Sequence[int]]) -> list[str]:
        """What outputs stand for, so for sources."""
        decode_one = _numbers if self.text is None else self.text.target.decode
        return [decode_one(output) for output in outputs]


def score_outputs(outputs: Sequence[list[int]], pairs: PairData, settings: TrialSettings) -> Metrics:
    """What outputs of the test split are worth: BLEU, brackets of trees, or the share of right copies."""
    if pairs.text is None:
        return {"test_exact": _exact(outputs, pairs.test)}
    sentences = pairs.sentences(outputs)
    if settings.task.name == "parsing":
        return _of_trees(sentences, pairs.test)
    references, sources = pairs.references(pairs.test), pairs.sources(pairs.test)
    total = bleu(sentences, references)
    found = {"bleu": total.score, f"bleu_signature[{total.signature}]": 1.0}
    for bucket in bleu_by_length(sentences, references, [len(one.split()) for one in sources]):
        found[f"bleu[{bucket.min_words}-{bucket.max_words}]"] = bucket.bleu.score
    return found


def generate(
    model: TransductionModel,
    split: PairSplit,
    decoding: Decoding,
    *,
    pairs: PairData,
    batch_size: int,
    device: torch.device,
) -> list[list[int]]:
    """The outputs of a split's sources, in its order."""
    outputs, search = dict[int, list[int]](), partial(decode, **asdict(decoding))
    costs = pairs.tree_costs(split)
    ratio, margin = pairs.size_ratio, pairs.size_margin
    for batch in iter_pair_eval(split, batch_size=batch_size):
        cost = None if costs is None else partial(_cost_in_batch, costs, batch.pairs.tolist())
        found = search(
            model,
            batch.sources.to(device),
            max_length=_max_lengths(batch.source_lengths, ratio, margin).to(device),
            try_lengths=model.body.depends_on_target_length,
            sizes=SizeSearch(ratio=ratio, margin=margin, cost=cost),
        )
        outputs.update(zip(batch.pairs.tolist(), (each.tokens for each in found), strict=True))
    return [outputs[number] for number in range(len(outputs))]


def _max_lengths(lengths: Tensor, ratio: float, margin: int) -> Tensor:
    """The longest outputs of any search."""
    ratio, margin = max(ratio, MAX_LENGTH_RATIO), max(margin, MAX_LENGTH_MARGIN)
    return (ratio * lengths.double()).floor().long() + margin


def _cost_in_batch(costs: OutputCost, pairs: Sequence[int], row: int, output: list[int]) -> float:
    """What the output of a row of a batch costs, these being the batch's pairs."""
    return costs(pairs[row], output)


def write_outputs(
    outputs: Sequence[list[int]], pairs: PairData, split: PairSplit, decoding: Decoding
) -> WrittenOutputs:
    """Outputs of a split as the store keeps them."""
    return WrittenOutputs(
        **asdict(decoding),
        sources=pairs.sources(split),
        references=pairs.references(split),
        outputs=pairs.sentences(outputs),
    )


def _number_lines(side: Split) -> list[str]:
    lines, tokens = side.lines.tolist(), side.tokens.tolist()
    return [_numbers(tokens[start:end]) for start, end in pairwise(lines)]


def _numbers(symbols: Sequence[int]) -> str:
    """The numbers of symbols before an end, without starts."""
    text = takewhile(lambda symbol: symbol != END, symbols)
    return " ".join(str(symbol) for symbol in text if symbol != START)


def _exact(outputs: Sequence[list[int]], split: PairSplit) -> float:
    """The share of outputs that are their targets, to the end."""
    lines, tokens = split.target.lines.tolist(), split.target.tokens.tolist()
    right = 0
    for number, output in enumerate(outputs):
        target = tokens[lines[number] : lines[number + 1]]
        right += output[: len(target)] == target or [*output, END] == target
    return right / len(outputs)


def _of_trees(lines: Sequence[str], split: PairSplit) -> Metrics:
    """Labelled brackets by EVALB's rules; what is no tree of the sentence counts as none."""
    words = [one.split(" ") for one in split.sentences("source")]
    guesses = [parse_linearised(line.split(" "), own) for line, own in zip(lines, words, strict=True)]
    score = score_brackets(gold_trees(split), guesses)
    return {
        "f1": score.f1,
        "f1_of_all": score.f1_of_all,
        "precision": score.precision,
        "recall": score.recall,
        "tree_share": sum(guess is not None for guess in guesses) / len(guesses),
    }
