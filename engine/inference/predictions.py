"""What a trained model answers to lines of input: symbols, numbers, or sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from ...blocks import Model
from ...blocks.models.seq2seq_model import TransductionModel
from ...errors import ActivememError
from ...studies.catalog.tasks import LabelledSettings, LongTermSettings
from ...studies.schema.settings import TrialSettings
from ..core.model_file import ModelFile
from ..data.vocabularies import vocabulary_from_dict
from ..data.vocabularies.base import END, FIRST_SYMBOL, START, Vocabulary
from ..decoding import LengthLine, SizeSearch
from ..objectives.generation import (
    Decoding,
    number_line,
    output_sizes,
    prefers_trees,
    search_outputs,
)
from ..objectives.tree_costs import TreeCosts

BATCH_SIZE = 32


class InputError(ActivememError):
    """A line that a model cannot read; the message says which, what was expected and what came."""


Reader = Callable[[str], Tensor]
"""Makes a model's input of a line; raises ValueError with what was expected and what came."""

Answer = Callable[[list[Tensor]], list[str]]
"""The answers to inputs of any lengths."""


def predict_lines(file: ModelFile, model: Model | TransductionModel, lines: Iterable[str]) -> Iterator[str]:
    """The answer to each line, batch by batch; InputError for a line that cannot be read."""
    read, answer = _reader_and_answer(file, model)
    numbered = enumerate(lines, start=1)
    while batch := list(islice(numbered, BATCH_SIZE)):
        inputs: list[Tensor] = []
        for number, line in batch:
            try:
                inputs.append(read(line.rstrip("\n")))
            except ValueError as error:
                raise InputError(f"line {number}: {error}") from error
        with torch.no_grad():
            yield from answer(inputs)


def _reader_and_answer(file: ModelFile, model: Model | TransductionModel) -> tuple[Reader, Answer]:
    """How a model's lines are read and answered."""
    settings, interface = file.trial.settings, file.trial.settings.task.interface
    if isinstance(model, TransductionModel):
        if file.symbols is not None:
            source, target = (vocabulary_from_dict(file.symbols[side]) for side in ("source", "target"))
            line = file.symbols.get("length_line")
            sizes = replace(output_sizes(settings), line=None if line is None else LengthLine.from_dict(line))
            return partial(_read_sentence, source), _sentence_answer(model, settings, sizes, source, target)
        source_vocab = interface.source_vocab or interface.vocab
        assert source_vocab is not None, "sources have symbols"
        return partial(_read_drawn, source_vocab), _drawn_answer(model, settings)
    if isinstance(settings.task, LabelledSettings):
        assert file.symbols is not None, "sequences of one's own have a vocabulary"
        read = partial(_read_sequence, vocabulary_from_dict(file.symbols["source"]), settings.task)
        return read, _label_answer(model, file.symbols)
    if interface.columns is not None:
        return partial(_read_numbers, interface.columns), _number_answer(model, settings)
    assert interface.vocab is not None, "inputs are numbers or symbols"
    return partial(_read_symbols, interface.vocab), _symbol_answer(model)


def _read_symbols(vocab: int, line: str, *, first: int = 0) -> Tensor:
    expected = f"expected numbers of symbols from {first} to {vocab - 1} with spaces between them"
    words = line.split()
    if not words or not all(word.isdecimal() and first <= int(word) < vocab for word in words):
        raise ValueError(f"{expected}, got {line[:80]!r}")
    return torch.tensor([int(word) for word in words])


def _read_drawn(vocab: int, line: str) -> Tensor:
    """A source of drawn pairs, between its start and its end."""
    return pad(pad(_read_symbols(vocab, line, first=FIRST_SYMBOL), (1, 0), value=START), (0, 1), value=END)


def _read_sentence(vocabulary: Vocabulary, line: str) -> Tensor:
    if not (symbols := vocabulary.encode(line)):
        raise ValueError(f"expected a sentence, got {line!r}")
    return torch.tensor([*symbols, END])


def _read_sequence(vocabulary: Vocabulary, task: LabelledSettings, line: str) -> Tensor:
    if not (symbols := vocabulary.encode(task.normalise(line))):
        raise ValueError(f"expected a sequence, got {line!r}")
    return torch.tensor(symbols[: task.longest])


def _read_numbers(columns: int, line: str) -> Tensor:
    expected = f"expected a JSON list of positions, each a list of {columns} numbers"
    try:
        numbers = torch.tensor(json.loads(line), dtype=torch.float32)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{expected}, got {line[:80]!r}") from None
    if numbers.dim() != 2 or numbers.shape[1] != columns or not len(numbers):
        raise ValueError(f"{expected}, got shape {tuple(numbers.shape)}")
    return numbers


def _symbol_answer(model: Model) -> Answer:
    """The likeliest output at each position."""

    def answer(inputs: list[Tensor]) -> list[str]:
        lengths = torch.tensor([len(each) for each in inputs])
        padded = pad_sequence(inputs, batch_first=True)
        best = model(padded, None if bool((lengths == lengths[0]).all()) else lengths).argmax(-1)
        if model.pooled:
            return [str(symbol) for symbol in best.tolist()]
        return [
            " ".join(map(str, row[:length]))
            for row, length in zip(best.tolist(), lengths.tolist(), strict=True)
        ]

    return answer


def _label_answer(model: Model, symbols: Mapping[str, Any]) -> Answer:
    """The likeliest class of each sequence or of each of its tokens, or the number in the labels' unit."""

    def answer(inputs: list[Tensor]) -> list[str]:
        lengths = torch.tensor([len(each) for each in inputs])
        outputs = model(pad_sequence(inputs, batch_first=True), lengths)
        if "classes" not in symbols:
            numbers = outputs.squeeze(-1).double() * symbols["deviation"] + symbols["mean"]
            return [f"{number:.7g}" for number in numbers.tolist()]
        best, names = outputs.argmax(-1).tolist(), symbols["classes"]
        if model.pooled:
            return [names[number] for number in best]
        rows = zip(best, lengths.tolist(), strict=True)
        return [" ".join(names[number] for number in row[:length]) for row, length in rows]

    return answer


def _number_answer(model: Model, settings: TrialSettings) -> Answer:
    """The numbers of each sequence; a task that reads its padding has sequences of one length in a batch."""
    reads_padding = isinstance(settings.task, LongTermSettings) and settings.task.padding == "read"

    def answer(inputs: list[Tensor]) -> list[str]:
        if reads_padding:
            outputs = [model(each[None])[0] for each in inputs]
        else:
            lengths = torch.tensor([len(each) for each in inputs])
            outputs = list(model(pad_sequence(inputs, batch_first=True), lengths))
        return [" ".join(f"{value:.7g}" for value in row.flatten().tolist()) for row in outputs]

    return answer


def _sentence_answer(
    model: TransductionModel,
    settings: TrialSettings,
    sizes: SizeSearch,
    source: Vocabulary,
    target: Vocabulary,
) -> Answer:
    """The sentence that the task's search finds for each, trees where the task prefers them."""
    decoding, trees = Decoding.of_task(settings), prefers_trees(settings)

    def answer(inputs: list[Tensor]) -> list[str]:
        sentences = [source.decode(each.tolist()) for each in inputs]
        costs = TreeCosts.of(sentences, target) if trees else None
        sources = pad_sequence(inputs, batch_first=True)
        found = search_outputs(model, sources, decoding, sizes=sizes, costs=costs)
        return [target.decode(symbols) for symbols in found]

    return answer


def _drawn_answer(model: TransductionModel, settings: TrialSettings) -> Answer:
    """The numbers of the symbols that the search finds for each source."""
    decoding, sizes = Decoding.of_task(settings), output_sizes(settings)

    def answer(inputs: list[Tensor]) -> list[str]:
        sources = pad_sequence(inputs, batch_first=True)
        found = search_outputs(model, sources, decoding, sizes=sizes, costs=None)
        return [number_line(symbols) for symbols in found]

    return answer
