"""Reader of pretrained tokenizers, which are in a `tokenizer.json` of Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import OwnTokenizer
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .reader import Reader

TOKENIZER: KeyPath = ("task", "tokenizer")
"""The key that names a tokenizer's file."""


class TokenizerFile(StrictModel):
    """Schema of `[task] tokenizer`: a file."""

    path: str
    """the file, a `tokenizer.json`"""


def read_tokenizer(diagnostics: Diagnostics, reader: Reader) -> OwnTokenizer | None:
    """Read the tokenizer that `[task] tokenizer` names.

    Return the facts about its file; None after a fault.
    """
    task = diagnostics.data["task"]
    given, tokens = task["tokenizer"], task.get("tokens", "characters")
    if isinstance(tokens, str) and "{" not in tokens and tokens != "pretrained":
        message = f'tokenizer has no effect with tokens = "{tokens}": set tokens = "pretrained"'
        diagnostics.report(TOKENIZER, message)
    named = diagnostics.validate(
        TokenizerFile, TOKENIZER, given if isinstance(given, Mapping) else {"path": given}
    )
    path = named and reader.locate(named.path)
    read = path and reader.read(path, text=False, at=TOKENIZER)
    if not named or not read:
        return None
    try:
        sha256, data = read
        return OwnTokenizer(sha256=sha256, form="json", size=_size_of_json(data))
    except CorpusError as error:
        diagnostics.report(TOKENIZER, f"{path}: {error}")
        return None


def _size_of_json(data: bytes) -> int:
    try:
        found: dict[str, Any] = json.loads(data)
        vocabulary = found["model"]["vocab"]
        if isinstance(vocabulary, Mapping):
            numbers = list(vocabulary.values())
        else:  # a unigram model has a list of tokens with their scores
            numbers = list(range(len(vocabulary)))
        numbers += [each["id"] for each in found.get("added_tokens") or ()]
        size = 1 + max(map(int, numbers))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"expected a tokenizer.json with a vocabulary, got: {type(error).__name__}: {error}"
        raise CorpusError(message[:200]) from error
    return size
