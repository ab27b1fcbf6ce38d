"""Construction of vocabularies by their kind: learnt from sentences, or restored from files."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from .pieces import PieceVocabulary, TextPieceVocabulary
from .sentences import (
    ByteVocabulary,
    DigitSpellingVocabulary,
    SentenceVocabulary,
    SpelledVocabulary,
    SymbolVocabulary,
    WordVocabulary,
)
from .texts import CharacterVocabulary, TextVocabulary, TextWordVocabulary
from .tokenizers import ByteTokenizer, JsonTokenizer, RankTokenizer

_OF_SENTENCES: dict[str, type[SentenceVocabulary]] = {
    each.kind: each
    for each in (
        ByteVocabulary,
        DigitSpellingVocabulary,
        PieceVocabulary,
        SpelledVocabulary,
        SymbolVocabulary,
        WordVocabulary,
    )
}


def learn_vocabulary(kind: str, sentences: Iterable[str], size: int) -> SentenceVocabulary:
    """Learn a vocabulary from sentences. Raise DataError if `size` does not suit these sentences."""
    return _OF_SENTENCES[kind].learn(sentences, size)


def load_vocabulary(kind: str, content: bytes) -> SentenceVocabulary:
    """Restore a vocabulary of sentences from the bytes that its method `content` returned."""
    return _OF_SENTENCES[kind].restore(content)


def load_text_vocabulary(
    kind: str, content: bytes, *, separated: bool = False, pattern: str = "", documents: bool = False
) -> TextVocabulary:
    """Restore a vocabulary of texts from the bytes that its method `content` returned.

    `separated` says that the text to split into pieces has separated punctuation already, as WikiText has.
    `pattern` splits a text for a file of ranks. With `documents` the mark ends a document, and a line break
    is a character like any other.
    """
    match kind:
        case "words":
            return TextWordVocabulary(content)
        case "bpe":
            return TextPieceVocabulary(content, separated=separated)
        case "json":
            return JsonTokenizer(content, documents=documents)
        case "ranks":
            return RankTokenizer(content, pattern, documents=documents)
        case _:
            return ByteTokenizer() if documents else CharacterVocabulary(content)


def vocabulary_from_dict(record: Mapping[str, Any]) -> SentenceVocabulary:
    """Restore a vocabulary of sentences from the dictionary that its method `to_dict` returned."""
    return load_vocabulary(record["kind"], _content(record))


def text_vocabulary_from_dict(record: Mapping[str, Any]) -> TextVocabulary:
    """Restore a vocabulary of texts from the dictionary that its method `to_dict` returned."""
    options = {key: record[key] for key in ("separated", "pattern", "documents") if key in record}
    return load_text_vocabulary(record["kind"], _content(record), **options)


def _content(record: Mapping[str, Any]) -> bytes:
    return base64.b64decode(record["content"], validate=True)
