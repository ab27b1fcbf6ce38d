"""Vocabularies of pieces of words: byte pair encoding by SentencePiece."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from ....studies.catalog.tasks.language_model import combining_marks, word_pattern
from ....studies.own_data.summary import MIN_PIECES
from ...corpora.files import DataError
from .sentences import SentenceVocabulary
from .texts import TextVocabulary, decoded, split_lines
from .vocabulary import END, PADDING, START, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    pass

NORMALISATION = 2
"""The version of the normalisation of lines. It grows when the output of the normalisation changes."""

_PROTECTED = r"<unk>|@[-,.]@"
_MAX_CHARACTERS = 2_000  # characters of a line that are encoded at a time


class _Pieces(Vocabulary):
    """Vocabulary of a model of SentencePiece."""

    kind = "bpe"

    def __init__(self, model: bytes) -> None:
        import sentencepiece  # noqa: PLC0415  most vocabularies do not need it

        self._model, self._processor = model, sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)

    @property
    def size(self) -> int:
        return self._processor.GetPieceSize()

    def content(self) -> bytes:
        return self._model


class PieceVocabulary(_Pieces, SentenceVocabulary):
    """Vocabulary of pieces of sentences.

    A character that no piece covers is encoded as its UTF-8 bytes. Decoding returns a space for the character
    "▁".
    """

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Self:
        """Learn a vocabulary of `size` pieces.

        Raise DataError if the sentences do not allow this size. The size includes the byte pieces and the
        special symbols.
        """
        return cls(
            _train(
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

    def encode(self, text: str) -> list[int]:
        return self._processor.Encode(text)

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return self._processor.Decode([each for each in symbols if each != UNKNOWN])


class TextPieceVocabulary(_Pieces, TextVocabulary):
    """Vocabulary of pieces of a text, each line of which is normalised first.

    `separated` says that the text has separated punctuation already, as WikiText has.
    """

    end = 2

    def __init__(self, model: bytes, *, separated: bool = False) -> None:
        super().__init__(model)
        self._separated = separated
        self._normalise = lowered if separated else separate_punctuation

    @classmethod
    def learn(cls, train: bytes, size: int, *, separated: bool = False) -> Self:
        """Learn a vocabulary of `size` pieces, special pieces and single bytes included.

        Raise DataError if that is impossible.
        """
        normalise = lowered if separated else separate_punctuation
        model = _train(
            (part for line in split_lines(train) for part in _split_long_line(normalise(decoded(line)))),
            size,
            user_defined_symbols=["▁<unk>"],  # with the leading space of all pieces that begin a word
            max_sentence_length=8 * _MAX_CHARACTERS,
            pad_id=PADDING,
            unk_id=1,  # unused, as pieces fall back to bytes
            eos_id=cls.end,
            bos_id=-1,
            pad_piece="<pad>",
            unk_piece="<unseen>",
            eos_piece="<eos>",
        )
        return cls(model, separated=separated)

    @property
    def options(self) -> dict[str, Any]:
        return {"separated": self._separated}

    def encode_each(self, units: Sequence[bytes]) -> list[list[int]]:
        parts = [_split_long_line(self._normalise(decoded(unit))) for unit in units]
        pieces = iter(self._processor.Encode([part for each in parts for part in each], num_threads=1))
        return [[piece for _ in each for piece in next(pieces)] for each in parts]

    def decode_symbols(self, symbols: Sequence[int]) -> str:
        return self._processor.Decode([each for each in symbols if each != PADDING])

    def first_bytes(self, token: int, unit: bytes) -> int:
        if token == self.end:
            return len(unit) + 1
        # at the beginning of a text, a piece stands for its bytes without its leading space
        spelt = self._processor.IdToPiece(token).removeprefix("▁").encode()
        return 1 if self._processor.IsByte(token) else len(spelt)


def lowered(line: str) -> str:
    """Return a line in lower case, with single spaces between its words.

    Use it for texts like WikiText, which already separate punctuation and hyphens by spaces.
    """
    return " ".join(line.lower().split())


def separate_punctuation(line: str) -> str:
    """Return a line in lower case, with spaces around punctuation.

    A hyphen inside a word becomes ` @-@ `. The first paper trains on this form (section 4.1). Marks that
    already have this form stay: `<unk>`, `@-@`, `@,@`, `@.@`.
    """
    hyphen, part = _patterns(ascii_only=line.isascii())
    return " ".join(part.findall(hyphen.sub(" @-@ ", line.lower())))


@cache
def _patterns(*, ascii_only: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a hyphen inside a word, and of the parts that spaces separate."""
    marks = "" if ascii_only else combining_marks()
    return (
        re.compile(rf"(?<=[\w{marks}])-(?=\w)"),
        re.compile(rf"{_PROTECTED}|{word_pattern(ascii_only=ascii_only).pattern}"),
    )


def _split_long_line(line: str) -> list[str]:
    """Split a long line between words.

    No piece spans two words, so the line gets the same pieces as without the split.
    """
    parts = []
    while len(line) > _MAX_CHARACTERS:
        cut = line.find(" ", _MAX_CHARACTERS)
        if cut < 0:
            break
        parts.append(line[:cut])
        line = line[cut + 1 :]
    return [*parts, line]


def _train(
    sentences: Iterable[str],
    size: int,
    **options: Any,  # noqa: ANN401 -- SentencePiece's own
) -> bytes:
    """Train SentencePiece on sentences; return its model of `size` pieces, special ones included, as bytes.

    Raise DataError if the sentences do not allow this size.
    """
    import sentencepiece  # noqa: PLC0415  as above

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
        fewer = f"set [task] pieces to at most {int(most[1]):,}, " if int(most[1]) >= MIN_PIECES else ""
        return f"it yields at most {int(most[1]):,}; {fewer}use other tokens, or more text"
    if least := re.search(r"[0-9]+ vs ([0-9]+)", message):
        return f"its distinct characters alone need {int(least[1]):,}; raise [task] pieces"
    return message or "it has no words to learn from"
