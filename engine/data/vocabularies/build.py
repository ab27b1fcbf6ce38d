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
from .tokenizers import JsonTokenizer, RankTokenizer

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

_OF_TEXTS: dict[str, type[TextVocabulary]] = {
    each.kind: each
    for each in (
        CharacterVocabulary,
        JsonTokenizer,
        RankTokenizer,
        TextPieceVocabulary,
        TextWordVocabulary,
    )
}


def learn_vocabulary(kind: str, sentences: Iterable[str], size: int) -> SentenceVocabulary:
    """Learn a vocabulary from sentences. Raise DataError if `size` does not suit these sentences."""
    return _OF_SENTENCES[kind].learn(sentences, size)


def load_vocabulary(kind: str, content: bytes) -> SentenceVocabulary:
    """Restore a vocabulary of sentences from the bytes that its method `content` returned."""
    return _OF_SENTENCES[kind].restore(content)


def load_text_vocabulary(
    kind: str,
    content: bytes,
    **options: Any,  # noqa: ANN401 -- a class's own
) -> TextVocabulary:
    """Restore a vocabulary of texts from its `content` and its `options`."""
    return _OF_TEXTS[kind].restore(content, **options)


def vocabulary_from_dict(record: Mapping[str, Any]) -> SentenceVocabulary:
    """Restore a vocabulary of sentences from the dictionary that its method `to_dict` returned."""
    return load_vocabulary(**_restored(record))


def text_vocabulary_from_dict(record: Mapping[str, Any]) -> TextVocabulary:
    """Restore a vocabulary of texts from the dictionary that its method `to_dict` returned."""
    return load_text_vocabulary(**_restored(record))


def _restored(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "content": base64.b64decode(record["content"], validate=True)}
