"""Predictions of a trained model for lines of input: symbols, labels, numbers, or sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from ...blocks import Model
from ...blocks.models.model import InputError, TransductionModel
from ...errors import argument_fault, check_arguments
from ...studies.catalog.tasks import LabelledSettings, LongTermSettings
from ...studies.schema.settings import TrialSettings
from ..core.models import ModelFile, ModelFileError
from ..data.labelled_sequences import format_number
from ..data.vocabularies.build import vocabulary_from_dict
from ..data.vocabularies.sentences import SentenceVocabulary
from ..data.vocabularies.vocabulary import END, FIRST_SYMBOL, START
from ..decoding.searches import Decoding, LengthLine, SizeSearch
from ..objectives.generation import (
    TreeCosts,
    number_line,
    output_sizes,
    prefers_trees,
    search_outputs,
)
from .answers import Prediction

BATCH_SIZE = 32

UNREAD = "–"
"""The label text of tokens that the model did not read; JSON lines have null."""


@dataclass(frozen=True, slots=True)
class _Input:
    values: Tensor
    unknown: tuple[str, ...] = ()
    unread: int = 0


_Reader = Callable[[str], _Input | None]
"""Parses a line into a model's input; None for an empty line, ValueError for an unreadable one."""

_Answerer = Callable[[list[_Input]], list[Prediction]]
"""Predicts outputs for inputs of any lengths."""


def answer_lines(
    file: ModelFile, model: Model | TransductionModel, lines: Iterable[str]
) -> Iterator[Prediction]:
    """Predict an output for each line, batch by batch.

    Raise InputError for an unreadable line, after the predictions for the lines before it.
    """
    try:
        read, answer = _reader_and_answerer(file, model)
    except (KeyError, TypeError, AttributeError) as error:
        raise _other_symbols(file) from error
    numbered = enumerate(lines, start=1)
    fault: InputError | None = None
    while fault is None:
        inputs: list[_Input | None] = []
        try:
            inputs.extend(_read_line(read, number, line) for number, line in islice(numbered, BATCH_SIZE))
        except InputError as error:
            fault = error
        if not inputs and fault is None:
            return
        known = [each for each in inputs if each is not None]
        with torch.no_grad():
            answers = iter(answer(known) if known else [])
        yield from (Prediction() if each is None else next(answers) for each in inputs)
    raise fault


def _read_line(read: _Reader, number: int, line: str) -> _Input | None:
    check_arguments(argument_fault(f"line {number}", line, str, "a text"), error=InputError)
    if number == 1:
        line = line.removeprefix("\ufeff")  # drop a byte order mark
    try:
        line.encode()  # an argument may have bytes that are not UTF-8
        return read(line.removesuffix("\n").removesuffix("\r"))
    except ValueError as error:
        raise InputError(f"line {number}: {error}") from error


def _other_symbols(file: ModelFile) -> ModelFileError:
    task = file.trial.settings.task.name
    return ModelFileError(f"expected the symbols and classes of a model of {task}, got others in its file")


def _reader_and_answerer(file: ModelFile, model: Model | TransductionModel) -> tuple[_Reader, _Answerer]:
    settings, interface = file.trial.settings, file.trial.settings.task.interface.model
    if isinstance(model, TransductionModel):
        if file.symbols is not None:
            source, target = (vocabulary_from_dict(file.symbols[side]) for side in ("source", "target"))
            line = file.symbols.get("length_line")
            sizes = replace(output_sizes(settings), line=None if line is None else LengthLine.from_dict(line))
            return partial(_read_sentence, source), _pair_answer(model, settings, sizes, source, target)
        source_vocab = interface.source_vocab or interface.vocab
        assert source_vocab is not None, "sources have symbols"
        return partial(_read_drawn, source_vocab), _pair_answer(model, settings, output_sizes(settings))
    if isinstance(settings.task, LabelledSettings):
        assert file.symbols is not None, "a model of the user's own sequences stores a vocabulary"
        read = partial(_read_sequence, vocabulary_from_dict(file.symbols["source"]), settings.task)
        names = file.symbols.get("classes", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _other_symbols(file)
        return read, _label_answer(model, file.symbols)
    if interface.columns is not None:
        return partial(_read_numbers, interface.columns), _number_answer(model, settings)
    assert interface.vocab is not None, "inputs are numbers or symbols"
    return partial(_read_symbols, interface.vocab), _symbol_answer(model)


def _read_symbols(vocab: int, line: str, *, first: int = 0) -> _Input | None:
    expected = f"expected symbol numbers from {first} to {vocab - 1}, separated by spaces"
    words = line.split()
    # longer numbers are never valid, and Python refuses to convert very long ones
    if not all(len(word) <= 18 and word.isdecimal() and first <= int(word) < vocab for word in words):
        raise ValueError(f"{expected}, got {line[:80]!r}")
    return _Input(torch.tensor([int(word) for word in words])) if words else None


def _read_drawn(vocab: int, line: str) -> _Input | None:
    found = _read_symbols(vocab, line, first=FIRST_SYMBOL)
    return found and _Input(pad(pad(found.values, (1, 0), value=START), (0, 1), value=END))


def _read_sentence(vocabulary: SentenceVocabulary, line: str) -> _Input | None:
    symbols = vocabulary.encode(line)
    return _Input(torch.tensor([*symbols, END]), vocabulary.unknown(line)) if symbols else None


def _read_sequence(vocabulary: SentenceVocabulary, task: LabelledSettings, line: str) -> _Input | None:
    sequence = task.normalise(line)
    if not (symbols := vocabulary.encode(sequence)):
        return None
    read = symbols[: task.longest]
    return _Input(torch.tensor(read), vocabulary.unknown(sequence), len(symbols) - len(read))


def _read_numbers(columns: int, line: str) -> _Input | None:
    if not line.strip():
        return None
    expected = f"expected a JSON list of positions, each a list of {columns} numbers"
    try:
        numbers = torch.tensor(json.loads(line), dtype=torch.float32)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{expected}, got {line[:80]!r}") from None
    if numbers.dim() != 2 or numbers.shape[1] != columns or not len(numbers):
        raise ValueError(f"{expected}, got shape {tuple(numbers.shape)}")
    return _Input(numbers)


def _pad(inputs: list[_Input]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(each.values) for each in inputs])
    return pad_sequence([each.values for each in inputs], batch_first=True), lengths


def _symbol_answer(model: Model) -> _Answerer:
    def answer(inputs: list[_Input]) -> list[Prediction]:
        padded, lengths = _pad(inputs)
        outputs = model(padded, None if bool((lengths == lengths[0]).all()) else lengths)
        largest, best = outputs.float().softmax(-1).max(-1)
        rows = zip(best.tolist(), largest.tolist(), lengths.tolist(), strict=True)
        if model.pooled:
            rows = (([symbol], [probability], 1) for symbol, probability, _ in rows)
        return [
            _answer(" ".join(map(str, row[:length])), probabilities=shares[:length])
            for row, shares, length in rows
        ]

    return answer


def _label_answer(model: Model, symbols: Mapping[str, Any]) -> _Answerer:
    names: list[str] = symbols.get("classes", [])
    # with such names, a line of names separated by spaces would be ambiguous
    as_list = any(name.split() != [name] or name.startswith("[") for name in names)

    def label(each: _Input, logits: Tensor) -> Prediction:
        shares = _shares(names, logits)
        best = names[int(logits.argmax())]
        return _answer(best, probabilities=shares, unknown=each.unknown, unread=each.unread)

    def labels(each: _Input, logits: Tensor) -> Prediction:
        rows = logits[: len(each.values)]
        found = [*(names[number] for number in rows.argmax(-1).tolist()), *[None] * each.unread]
        return Prediction(
            text=_json(found) if as_list else " ".join(UNREAD if name is None else name for name in found),
            output=found,
            probabilities=[_shares(names, row) for row in rows],
            unknown=each.unknown,
            unread=each.unread,
        )

    def answer(inputs: list[_Input]) -> list[Prediction]:
        outputs = model(*_pad(inputs))
        if not names:
            # undo the standardisation of the training labels
            mean, deviation = symbols["mean"], symbols["deviation"]
            numbers = (outputs.squeeze(-1).double() * deviation + mean).tolist()
            return [
                _answer(format_number(number, deviation), unknown=each.unknown, unread=each.unread)
                for each, number in zip(inputs, numbers, strict=True)
            ]
        return list(map(label if model.pooled else labels, inputs, outputs))

    return answer


def _shares(names: list[str], logits: Tensor) -> dict[str, float]:
    return dict(zip(names, logits.double().softmax(-1).tolist(), strict=True))


def _answer(text: str, **known: Any) -> Prediction:  # noqa: ANN401 -- the fields of an answer
    is_one_line = text.splitlines() in ([], [text])
    return Prediction(text=text if is_one_line else _json(text), output=text, **known)


def _json(data: str | list[str | None]) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(data)


def _number_answer(model: Model, settings: TrialSettings) -> _Answerer:
    """Return a function that predicts numbers. A model that reads padding gets sequences one by one."""
    reads_padding = isinstance(settings.task, LongTermSettings) and settings.task.padding == "read"

    def answer(inputs: list[_Input]) -> list[Prediction]:
        outputs = [model(each.values[None])[0] for each in inputs] if reads_padding else model(*_pad(inputs))
        return [_answer(" ".join(f"{value:.7g}" for value in row.flatten().tolist())) for row in outputs]

    return answer


def _pair_answer(
    model: TransductionModel,
    settings: TrialSettings,
    sizes: SizeSearch,
    source: SentenceVocabulary | None = None,
    target: SentenceVocabulary | None = None,
) -> _Answerer:
    """Return a function that searches for outputs by the task's settings; without `target`, for numbers."""
    decoding, trees = Decoding.of_task(settings), prefers_trees(settings)
    decode = number_line if target is None else target.decode

    def answer(inputs: list[_Input]) -> list[Prediction]:
        costs = None
        if trees and source is not None and target is not None:
            costs = TreeCosts.of([source.decode(each.values.tolist()) for each in inputs], target)
        found = search_outputs(model, _pad(inputs)[0], decoding, sizes=sizes, costs=costs)
        pairs = zip(inputs, found, strict=True)
        return [_answer(decode(symbols), unknown=each.unknown) for each, symbols in pairs]

    return answer
