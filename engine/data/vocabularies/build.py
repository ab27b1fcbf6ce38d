"""Construction of vocabularies, from sentences or from a file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from .words import (
    ByteVocabulary,
    DigitSpellingVocabulary,
    SpelledVocabulary,
    SymbolVocabulary,
    Vocabulary,
    WordVocabulary,
)

_KINDS: dict[
    str,
    type[SpelledVocabulary | DigitSpellingVocabulary | SymbolVocabulary | WordVocabulary | ByteVocabulary],
] = {
    "characters": ByteVocabulary,
    "spelled": SpelledVocabulary,
    "spelled_digits": DigitSpellingVocabulary,
    "words": WordVocabulary,
    "symbols": SymbolVocabulary,
}


def learn_vocabulary(kind: str, sentences: Iterable[str], size: int) -> Vocabulary:
    """Learn a vocabulary from sentences. Raise DataError if `size` does not suit these sentences."""
    if kind == "bpe":
        from .subwords import SubwordVocabulary  # noqa: PLC0415  sentencepiece may not be installed

        return SubwordVocabulary.learn(sentences, size)
    return _KINDS[kind].learn(sentences, size)


def vocabulary_to_dict(vocabulary: Vocabulary) -> dict[str, str]:
    """Return a vocabulary as a dictionary of strings, which `vocabulary_from_dict` reads."""
    kind = next((kind for kind, owner in _KINDS.items() if type(vocabulary) is owner), "bpe")
    return {"kind": kind, "content": base64.b64encode(vocabulary.content()).decode()}


def vocabulary_from_dict(record: Mapping[str, Any]) -> Vocabulary:
    """Rebuild a vocabulary from the dictionary that `vocabulary_to_dict` returned."""
    return load_vocabulary(record["kind"], base64.b64decode(record["content"], validate=True))


def load_vocabulary(kind: str, content: bytes) -> Vocabulary:
    """Rebuild a vocabulary from its stored bytes.

    `content` has the bytes that the vocabulary's method of that name returned.
    """
    if kind == "bpe":
        from .subwords import SubwordVocabulary  # noqa: PLC0415  as above

        return SubwordVocabulary(content)
    return _KINDS[kind].restore(content)
