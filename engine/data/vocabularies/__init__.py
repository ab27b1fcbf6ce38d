"""A vocabulary numbers the symbols of sentences; it is learnt once and kept.

`base` is what all can do; `words`, `spelled_words` and `subwords` are the kinds.
"""

from __future__ import annotations

from collections.abc import Iterable

from .base import Vocabulary
from .spelled_words import DigitSpellingVocabulary, SpelledVocabulary
from .words import SymbolVocabulary, WordVocabulary

_KINDS: dict[str, type[SpelledVocabulary | WordVocabulary | SymbolVocabulary]] = {
    "spelled": SpelledVocabulary,
    "spelled_digits": DigitSpellingVocabulary,
    "words": WordVocabulary,
    "symbols": SymbolVocabulary,
}


def learn_vocabulary(kind: str, sentences: Iterable[str], size: int) -> Vocabulary:
    """The vocabulary of a kind, from sentences; DataError if none of that size can be made of them."""
    if kind == "bpe":
        from .subwords import SubwordVocabulary  # noqa: PLC0415  not every machine needs the library

        return SubwordVocabulary.learn(sentences, size)
    return _KINDS[kind].learn(sentences, size)


def load_vocabulary(kind: str, content: bytes) -> Vocabulary:
    """A vocabulary as it was learnt."""
    if kind == "bpe":
        from .subwords import SubwordVocabulary  # noqa: PLC0415  as above

        return SubwordVocabulary(content)
    return _KINDS[kind].restore(content)
