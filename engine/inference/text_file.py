"""The score of a text that no corpus has: read in the symbols of a model, as its corpus was."""

from __future__ import annotations

import torch

from ...blocks import Model
from ...studies.catalog.tasks import LanguageModelSettings
from ..data import DataError, Split
from ..data.text.symbols import TextSymbols
from ..data.text.tokenization import sentences_as_lines
from ..objectives.text_scores import TextScore, score_lines, score_stream

BATCH_SIZE = 32
_CPU = torch.device("cpu")


def score_text(model: Model, symbols: TextSymbols, task: LanguageModelSettings, text: str) -> TextScore:
    """Every token once, as the splits of a corpus are scored.

    Raises DataError for what has no symbol, and for a text in which nothing can be scored.
    """
    data, end = text.encode(), symbols.end_of_line
    encoded = symbols.encode_bytes(sentences_as_lines(data) if task.batching == "sentences" else data)
    split = Split(
        tokens=torch.tensor(encoded.tokens),
        lines=torch.tensor(encoded.lines),
        line_words=torch.tensor(encoded.words),
        words=int(encoded.words.sum()),
        line_bytes=torch.tensor(encoded.bytes),
        first_bytes=encoded.first_bytes,
    )
    if task.batching == "stream":
        if len(split.tokens) < 2 or split.words < 2:
            raise DataError(f"expected at least two words, got {len(text)} characters")
        return score_stream(model, split, batch_size=BATCH_SIZE, context=task.context, end=end, device=_CPU)
    if not bool(((split.line_lengths > 1) & (split.line_lengths <= task.longest + 1)).any()):
        raise DataError(f"expected a line of 1 to {task.longest} tokens, got none")
    return score_lines(model, split, batch_size=BATCH_SIZE, longest=task.longest, end=end, device=_CPU)
