"""What the task of a trial asks of its model: symbols or numbers, in and out; what it may see."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog.corpora import vocabulary_size
from ..catalog.memory_degradation import require_degradation
from ..catalog.parallel_corpora import vocabulary_sizes
from ..catalog.tasks import AlgorithmicTask, TaskKind, require_task
from ..catalog.treebanks import treebank_vocab_sizes
from ..schema.settings import TaskSettings

LINE_TOKENS = 40
"""The tokens of a sequence whose length the data decide."""

UNBOUNDED_PAST = 1 << 30
"""More past positions than any block holds: a stream that has run for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInterface:
    """The frame of a model, as `build` and `analyse` take it, and the sequence that stands for all of them.

    Inputs and outputs are symbols of `vocab`, or real numbers: `columns` at each position, `targets` in all.
    Where one sequence becomes another, `source_vocab` has the symbols of the first.
    `tokens` is None where the length grows in training; `past` positions in front of them are held.
    """

    kind: TaskKind
    vocab: int | None = None
    source_vocab: int | None = None
    columns: int | None = None
    targets: int | None = None
    tokens: int | None = None
    past: int = 0

    @property
    def causal(self) -> bool:
        """Whether no output may see a later input."""
        return self.kind is TaskKind.LANGUAGE


def long_term_length_range(task: TaskSettings) -> tuple[int, int]:
    """The shortest and the longest sequence of a long-term problem."""
    return (50, 10_000) if task.variable else (task.length, task.length + task.length // 10)


def model_interface(task: TaskSettings) -> ModelInterface:
    """What a table `[task]` asks; TaskError or CorpusError for what does not exist."""
    spec = require_task(task.name)
    if isinstance(spec, AlgorithmicTask):
        return ModelInterface(kind=spec.kind, vocab=spec.vocab)
    if spec.kind is TaskKind.TRANSDUCTION:
        source, target = _vocab_sizes(task)
        tokens = LINE_TOKENS if task.corpus else require_degradation(task.name).tokens
        return ModelInterface(kind=spec.kind, vocab=target, source_vocab=source, tokens=tokens)
    if spec.kind is TaskKind.REGRESSION:
        return ModelInterface(
            kind=spec.kind, columns=2, targets=1, tokens=sum(long_term_length_range(task)) // 2
        )
    if task.batching == "lines":
        return ModelInterface(kind=spec.kind, vocab=vocabulary_size(task), tokens=LINE_TOKENS)
    return ModelInterface(kind=spec.kind, vocab=vocabulary_size(task), tokens=task.block, past=UNBOUNDED_PAST)


def _vocab_sizes(task: TaskSettings) -> tuple[int, int]:
    """The symbols of a source and of a target."""
    match task.name:
        case "translation":
            return vocabulary_sizes(task)
        case "parsing":
            return treebank_vocab_sizes(task)
        case name:
            symbols = require_degradation(name).vocab
            return symbols, symbols
