"""Lossless byte pair encoding of sentences by SentencePiece."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import sentencepiece

from ...corpora.files import DataError
from .words import END, PADDING, START, UNKNOWN, Vocabulary

_MIN_PIECES = 300  # the smallest size in a study


def train_pieces(
    sentences: Iterable[str],
    size: int,
    **options: Any,  # noqa: ANN401 -- SentencePiece's own
) -> bytes:
    """Train SentencePiece on sentences; return its model of `size` pieces as bytes.

    Raise DataError if the sentences do not allow this size. The size includes the byte pieces and the
    special symbols, such as the start and the end of a sentence. `options` are passed to SentencePiece, in
    addition to the options that all models share.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            byte_fallback=True,
            normalization_rule_name="identity",
            num_threads=1,
            minloglevel=2,
            **options,
        )
    except RuntimeError as error:
        reason = _reason(str(error).rsplit("] ", 1)[-1].strip())
        raise DataError(f"no vocabulary of {size:,} pieces can be learnt from this text: {reason}") from error
    return model.getvalue()


def _reason(message: str) -> str:
    # sentencepiece (0.2.3) raises RuntimeError for every fault, so only its message tells the reason
    if most := re.search(r"value <= ([0-9]+)", message):
        fewer = f"set [task] pieces to at most {int(most[1]):,}, " if int(most[1]) >= _MIN_PIECES else ""
        return (
            f'it yields at most {int(most[1]):,}; {fewer}use tokens = "characters" or "words", or more text'
        )
    if least := re.search(r"[0-9]+ vs ([0-9]+)", message):
        return f"its distinct characters alone need {int(least[1]):,}; raise [task] pieces"
    return message or "it has no words to learn from"


class SubwordVocabulary(Vocabulary):
    """Vocabulary of subword pieces.

    A character that no piece covers is encoded as its UTF-8 bytes. Decoding returns a space for the character
    "▁".
    """

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> SubwordVocabulary:
        """Learn a vocabulary of `size` pieces.

        Raise DataError if the sentences do not allow this size. The size includes the byte pieces and the
        special symbols.
        """
        return cls(
            train_pieces(
                sentences,
                size,
                character_coverage=1.0,
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                pad_id=PADDING,
                bos_id=START,
                eos_id=END,
                unk_id=UNKNOWN,
            )
        )

    @property
    def size(self) -> int:
        return self._processor.GetPieceSize()

    def content(self) -> bytes:
        return self._model

    def encode(self, sentence: str) -> list[int]:
        return self._processor.Encode(sentence)

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return self._processor.Decode([each for each in symbols if each != UNKNOWN])
