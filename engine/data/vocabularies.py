"""The kinds of vocabularies: learnt from sentences, kept, and had again."""

from __future__ import annotations

from collections.abc import Iterable

from .spelling import Spelled
from .vocabulary import Vocabulary
from .word_lists import Symbols, Words

_KINDS: dict[str, type[Spelled | Words | Symbols]] = {"spelled": Spelled, "words": Words, "symbols": Symbols}


def learn(kind: str, sentences: Iterable[str], size: int) -> Vocabulary:
    """The vocabulary of a kind, from sentences; DataError if none of that size can be made of them."""
    if kind == "bpe":
        from .sentence_pieces import Pieces  # noqa: PLC0415  not every machine needs the library

        return Pieces.learn(sentences, size)
    return _KINDS[kind].learn(sentences, size)


def restore(kind: str, content: bytes) -> Vocabulary:
    """A vocabulary as it was learnt."""
    if kind == "bpe":
        from .sentence_pieces import Pieces  # noqa: PLC0415  as above

        return Pieces(content)
    return _KINDS[kind].restore(content)
