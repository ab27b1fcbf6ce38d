"""A trained model loaded from its file: prediction, generation, scoring and export."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Unpack

import numpy as np
import torch

from ...blocks import Model
from ...blocks.models.model import InputError
from ...errors import ActivememError, argument_fault, check_arguments, describe_value
from ...studies.catalog.tasks import LanguageModelSettings
from ...studies.text.units import plural
from ..core.models import ModelFile, ModelFileError, read_model_file, rebuild, with_weights
from ..corpora.files import DataError
from ..data.text.batches import LINE_START
from ..data.text.corpus import sentences_as_lines
from ..data.token_files import Split
from ..data.vocabularies.build import text_vocabulary_from_dict
from ..data.vocabularies.texts import TextVocabulary
from ..objectives.text_scores import TextScore, score_text
from .answers import Prediction
from .hub_folder import HUB_WEIGHTS, write_hub_folder
from .predictions import answer_lines
from .text_generation import GenerationError, Sampling, SamplingKeywords, decode_pieces, generate_symbols

BATCH_SIZE = 32

_log = logging.getLogger(__name__)


class UseError(ActivememError):
    """Error for a method that this kind of model does not support, with the names of those that it does."""


class TrainedModel:
    """A trained model, ready for predictions on the CPU.

    `module` is the torch module, in evaluation mode. `path` is the model's file, and `file` is its content.
    """

    def __init__(self, path: Path, file: ModelFile) -> None:
        self.path, self.file, self.module = path, file, rebuild(file)

    def __repr__(self) -> str:
        settings = self.file.trial.settings
        return (
            f"<TrainedModel {self.recipe} on {settings.task.name}, seed {settings.seed}: "
            f"{self.parameters:,} parameters>"
        )

    @property
    def uses(self) -> tuple[str, ...]:
        """Return the names of the methods that this kind of model supports."""
        if isinstance(self.file.trial.settings.task, LanguageModelSettings):
            return "generate", "score", "export"
        return "predict", "export"

    @property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return sum(weight.numel() for weight in self.module.parameters())

    @property
    def recipe(self) -> str:
        """Return the canonical text of the recipe."""
        return str(self.module)

    def predict(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the prediction for each line as text, "" for an empty line. See `predictions`."""
        return (answer.text for answer in self.predictions(lines))

    def predictions(self, lines: Iterable[str]) -> Iterator[Prediction]:
        """Yield the prediction for each line, with probabilities and unknown symbols.

        The model's task sets the form of a line: a sentence, symbols (numbers separated by spaces), or a
        sequence of numbers (a JSON list of positions). Raise UseError for a language model, and InputError
        for a line that cannot be read.
        """
        if isinstance(self.file.trial.settings.task, LanguageModelSettings):
            raise UseError("a language model continues a text: use generate or score")
        if isinstance(lines, str | bytes | Mapping) or not isinstance(lines, Iterable):
            raise InputError(f"lines: expected a list of texts, got {describe_value(lines)}")
        return answer_lines(self.file, self.module, lines)

    def generate(self, beginning: str = "", **sampling: Unpack[SamplingKeywords]) -> Iterator[str]:
        """Yield the text that follows a beginning, piece by piece; `itertools.islice` takes the first pieces.

        The keywords are `max_symbols`, `temperature`, `top_k`, `top_p` and `seed`, see `Sampling`. A model of
        packed rows reads at most `context` tokens, then restarts from the last `context // 2`. Raise UseError
        if the model is not a language model, GenerationError for wrong settings or keywords, and DataError if
        a part of the text has no symbol.
        """
        model, vocabulary, task = self._language_model()
        known = [field.name for field in fields(Sampling)]
        if unknown := [name for name in sampling if name not in known]:
            got, expected = ", ".join(unknown), ", ".join(known)
            raise GenerationError(f"expected the keywords {expected}, got {got}")
        settings, beginning = Sampling(**sampling), _checked_text(beginning)
        context = task.context if task.batching == "packed" else None
        first = vocabulary.encode(beginning)
        start, end = [LINE_START], vocabulary.end
        if not (task.by_line or vocabulary.documents):  # a stream goes on after the end of a line
            # a model needs at least one input
            start, end = [end] if vocabulary.begins_with_mark or not first else [], None
        elif "\n" in beginning and not vocabulary.documents:
            raise UseError("expected a prompt of one line, since the model was trained on single lines")
        drawn = generate_symbols(model, [*start, *first], settings, end=end, context=context)
        return decode_pieces(drawn, vocabulary, first)

    def score(self, text: str) -> TextScore:
        """Return the likelihood of a text under the language model.

        Every token is scored exactly once, as in the evaluation of a split. A model of lines does not score
        lines of more than `longest` tokens: their number is logged as a warning, and the score's `bytes` are
        those of the other lines. A stream model counts positions from the start of the text, as in generation
        and in transformers. Raise UseError if the model is not a language model, and DataError if a part of
        the text has no symbol, or if nothing in it can be scored.
        """
        model, vocabulary, task = self._language_model()
        text = _checked_text(text)
        data, by_sentence = text.encode(), task.batching == "sentences"
        encoded = vocabulary.encode_bytes(sentences_as_lines(data) if by_sentence else data)
        split = Split(
            tokens=torch.from_numpy(np.concatenate([vocabulary.mark, encoded.tokens])),
            lines=torch.tensor([len(vocabulary.mark), *encoded.lengths]).cumsum(0),
            line_words=torch.tensor(encoded.words),
            line_bytes=torch.tensor(encoded.bytes) if encoded.lossless and not by_sentence else None,
            first_bytes=encoded.first_bytes,
            end_bytes=0 if vocabulary.documents else 1,
        )
        # the first token has no context and is not scored
        if not task.by_line and (len(split.tokens) < 2 or split.words < 2):
            raise DataError(
                f"expected a text of at least two words to score, got a text of {len(text)} characters"
            )
        if task.by_line:
            tokens = split.line_lengths - 1
            if not ((tokens > 0) & (tokens <= task.longest)).any():
                raise DataError(f"expected a line of 1 to {task.longest} tokens, got none")
            if num_long := int((tokens > task.longest).sum()):
                _log.warning("not scored: %s of more than %d tokens", plural(num_long, "line"), task.longest)
        # each row of a stream begins at position 0
        rows = 1 if task.batching == "stream" and model.positions.kind.adds_vectors else BATCH_SIZE
        return score_text(model, split, task, end=vocabulary.end, batch_size=rows, device=torch.device("cpu"))

    def export(self, path: Path | str) -> Path:
        """Write the model to a new folder, as on the Hugging Face Hub; return the folder's path.

        If the weights have changed since the training, the folder has the present ones, and no metrics. Raise
        FileExistsError if the path exists.
        """
        write_hub_folder(with_weights(self.file, self.module.state_dict()), path := Path(path))
        return path

    def _language_model(self) -> tuple[Model, TextVocabulary, LanguageModelSettings]:
        task, symbols = self.file.trial.settings.task, self.file.symbols
        if not isinstance(task, LanguageModelSettings) or symbols is None:
            raise UseError(f"a model of {task.name} predicts line by line: use predict")
        assert isinstance(self.module, Model), "a language model has one sequence"
        return self.module, text_vocabulary_from_dict(symbols), task


def _checked_text(text: str) -> str:
    check_arguments(argument_fault("text", text, str, "a text"), error=InputError)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(str(error)) from error
    # a byte order mark is not part of the text
    return text.removeprefix("\ufeff")


def load_model(path: Path | str) -> TrainedModel:
    """Load a trained model from a file, or from a folder with `model.safetensors`.

    No code in the file is executed. If the file cannot be used, raise ModelFileError with the reason.
    """
    fault = argument_fault("path", path, (str, Path), "the path of a trained model")
    check_arguments(fault, error=ModelFileError)
    path = Path(path)
    path = path / HUB_WEIGHTS if path.is_dir() else path
    return TrainedModel(path, read_model_file(path))
