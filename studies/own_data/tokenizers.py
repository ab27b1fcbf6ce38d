"""Reader of pretrained tokenizers.

They are in `tokenizer.json` of Hugging Face, or in tiktoken's files of ranks. A file of ranks has one token
in each line, with its rank, which is its number.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import OwnTokenizer
from ..catalog.tasks.sentence_pairs import BYTES
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath
from .files import Reader

TOKENIZER: KeyPath = ("task", "tokenizer")
"""The key that names a tokenizer's file."""

_RANK = re.compile(rb"([A-Za-z0-9+/]+=*) ([0-9]{1,9})")


class TokenizerFile(StrictModel):
    """Schema of `[task] tokenizer`: a file and, for tiktoken, a `pattern` that splits a text into words."""

    path: str
    """the file: `tokenizer.json`, or the ranks of tiktoken"""
    pattern: str | None = None
    """for a file of ranks: the regular expression that splits a text into words"""


def read_tokenizer(diagnostics: Diagnostics, reader: Reader) -> OwnTokenizer | None:
    """Return the facts about the file of `[task] tokenizer`; None after a fault."""
    task = diagnostics.data["task"]
    given, tokens = task["tokenizer"], task.get("tokens", "characters")
    if isinstance(tokens, str) and "{" not in tokens and tokens != "pretrained":
        message = f'tokenizer has no effect with tokens = "{tokens}": set tokens = "pretrained"'
        diagnostics.report(TOKENIZER, message)
    named = diagnostics.validate(
        TokenizerFile, TOKENIZER, given if isinstance(given, Mapping) else {"path": given}
    )
    path = named and reader.locate(named.path)
    digest = path and reader.read(path, text=False, at=TOKENIZER)
    if not named or not digest:
        return None
    try:
        return _facts(named, digest, reader.content(digest))
    except CorpusError as error:
        diagnostics.report(TOKENIZER, f"{path}: {error}")
        return None


def _facts(named: TokenizerFile, sha256: str, data: bytes) -> OwnTokenizer:
    if data.lstrip()[:1] == b"{":
        if named.pattern is not None:
            raise CorpusError("tokenizer.json already defines how a text is split: remove pattern")
        return OwnTokenizer(sha256=sha256, form="json", size=_size_of_json(data))
    ranks = read_ranks(data)
    if named.pattern is None:
        raise CorpusError(
            "a file of ranks does not define how a text is split: "
            "add the regular expression of its encoding, "
            f"as in {{ path = \"{named.path}\", pattern = '...' }}"
        )
    return OwnTokenizer(
        sha256=sha256, form="ranks", size=max(ranks.values()) + 1, pattern=named.pattern.encode().hex()
    )


def read_ranks(data: bytes) -> dict[bytes, int]:
    """Read a tiktoken file; return the rank of each token.

    Each line of the file has the token in base64, a space, and its rank. Raise CorpusError for anything else,
    and if a byte has no token.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not (stripped := line.strip()):
            continue
        found = _RANK.fullmatch(stripped)
        try:
            token = binascii.a2b_base64(found[1], strict_mode=True) if found else b""
        except binascii.Error:
            token = b""
        if not found or not token:
            shown = ascii(stripped[:40].decode("ascii", "replace"))
            raise CorpusError(
                "expected a tokenizer.json, or ranks of tiktoken such as 'SGVsbG8= 15496', "
                f"got {shown} in line {number:,}"
            )
        ranks[token] = int(found[2])
    if lacking := sum(bytes([byte]) not in ranks for byte in range(BYTES)):
        raise CorpusError(f"expected a token for each of {BYTES} bytes, got none for {lacking}")
    if len(set(ranks.values())) < len(ranks):
        raise CorpusError("expected a different rank for each token, got one twice")
    return ranks


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
