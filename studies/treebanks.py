"""The treebanks that a parser can be trained on: their files, and how these are split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from .corpora import CorpusError, TextSettings
from .parallel_corpora import PAIR_TOKENS

_MARCUS = "Marcus et al. 1993, Building a large annotated corpus of English: the Penn Treebank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank:
    """Constituency trees in Penn bracket format, split by file.

    `splits` says of a file's number whether it belongs to train, dev or test: `wsj_2301.mrg` is file 2301 and
    of section 23. `digest` is that of all files one behind the other, where they are always the same;
    `symbols` is the size of the vocabulary that trees are written in.
    """

    name: str
    title: str
    home: str
    splits: Mapping[str, Callable[[int], bool]]
    digest: str | None = None
    symbols: int = 128
    licence: str
    source: str


_treebanks: dict[str, Treebank] = {}


def register_treebank(treebank: Treebank) -> Treebank:
    """Add a treebank; a name that is taken raises ValueError."""
    if treebank.name in _treebanks:
        raise ValueError(f"treebank '{treebank.name}' is already defined")
    _treebanks[treebank.name] = treebank
    return treebank


def treebank_names() -> tuple[str, ...]:
    """The names of all treebanks, sorted."""
    return tuple(sorted(_treebanks))


def require_treebank(name: str) -> Treebank:
    """The treebank of that name; CorpusError with the nearest name if there is none."""
    if name not in _treebanks:
        nearest = get_close_matches(name, _treebanks, n=1, cutoff=0)
        raise CorpusError(f"unknown treebank '{name}'; nearest: {', '.join(nearest)}")
    return _treebanks[name]


def chosen_treebank(task: TextSettings) -> Treebank:
    """The treebank that a `[task]` table names; CorpusError if none, or for tokens that no pairs have."""
    if task.corpus is None:
        raise CorpusError(f"expected a treebank ({', '.join(treebank_names())}), got none")
    treebank = require_treebank(task.corpus)
    if task.tokens not in PAIR_TOKENS:
        expected = f"expected tokens {', '.join(PAIR_TOKENS)}"
        raise CorpusError(f"{treebank.name}: {expected}, got {task.tokens}")
    return treebank


def treebank_sizes(task: TextSettings) -> tuple[int, int]:
    """Symbols of the sentences' vocabulary and of the trees'."""
    return task.pieces, chosen_treebank(task).symbols


def _sections(*sections: int) -> Callable[[int], bool]:
    return lambda file: file // 100 in sections


def _files(first: int, last: int) -> Callable[[int], bool]:
    return lambda file: first <= file <= last


register_treebank(
    Treebank(
        name="wsj",
        title="40 thousand sentences of the Wall Street Journal; sections 2 to 21, 22 and 23",
        home="wsj",
        splits={"train": _sections(*range(2, 22)), "dev": _sections(22), "test": _sections(23)},
        licence="LDC99T42, to be had from the Linguistic Data Consortium",
        source=_MARCUS,
    )
)
register_treebank(
    Treebank(
        name="wsj-sample",
        title="3,914 sentences of the Wall Street Journal, files 1 to 199; split by file, not as is standard",
        home="ptb-sample",
        splits={"train": _files(1, 159), "dev": _files(160, 174), "test": _files(175, 199)},
        digest="sha256:f018900543fbff4571439fd5e5ebdae00ba53dfdd6543e48491230d76d0e06a1",
        licence="the sample of the Linguistic Data Consortium in NLTK's data: not for commerce",
        source=_MARCUS,
    )
)
