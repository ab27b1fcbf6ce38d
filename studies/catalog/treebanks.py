"""The treebanks that a parser can be trained on: their files, and how these are split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from . import datasets
from .datasets import Dataset, Download

_MARCUS = "Marcus et al. 1993, Building a large annotated corpus of English: the Penn Treebank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Treebank(Dataset):
    """Constituency trees in Penn bracket format, split by file.

    `splits` has the numbers of the files of train, dev and test: `wsj_2301.mrg` is file 2301, in section 23.
    Some files of each range must exist. `sentences` counts each split; `digest` is the checksum of all files
    concatenated, if they never vary; `symbols` is the size of the vocabulary of trees.
    """

    KIND: ClassVar[str] = "treebank"

    splits: Mapping[str, tuple[range, ...]]
    sentences: Mapping[str, int]
    digest: str | None = None
    tree_vocab_size: int = 128

    def split_of(self, file: int) -> str | None:
        """The split that a file belongs to, if any."""
        found = (split for split, files in self.splits.items() if any(file in each for each in files))
        return next(found, None)


def register_treebank(treebank: Treebank) -> Treebank:
    """Add a treebank; a name that is taken raises ValueError."""
    return datasets.register(treebank)


def treebank_names() -> tuple[str, ...]:
    """The names of all treebanks, sorted."""
    return datasets.names(Treebank)


def require_treebank(name: str) -> Treebank:
    """The treebank of that name; CorpusError with the nearest name if there is none."""
    return datasets.require(name, Treebank)


def _sections(*sections: int) -> tuple[range, ...]:
    return tuple(range(100 * section, 100 * section + 100) for section in sections)


register_treebank(
    Treebank(
        name="wsj",
        title="40 thousand sentences of the Wall Street Journal; sections 2 to 21, 22 and 23",
        folder="wsj",
        manual_instructions=(
            "licensed by the Linguistic Data Consortium, https://catalog.ldc.upenn.edu/LDC99T42; what is "
            "needed lies in parsed/mrg/wsj of it, in whatever folders"
        ),
        splits={"train": _sections(*range(2, 22)), "dev": _sections(22), "test": _sections(23)},
        sentences={"train": 39_832, "dev": 1_700, "test": 2_416},
        licence="LDC99T42, to be had from the Linguistic Data Consortium",
        source=_MARCUS,
    )
)
register_treebank(
    Treebank(
        name="wsj-sample",
        title="3,914 sentences of the Wall Street Journal, files 1 to 199; split by file, not as is standard",
        folder="ptb-sample",
        downloads=(
            Download(
                name="treebank.zip",
                urls=(
                    "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/treebank.zip",
                ),
                size=1_740_034,
                digest="md5:78c24a97940c2504d0ad35dd3f8a560b",
            ),
        ),
        splits={"train": (range(1, 160),), "dev": (range(160, 175),), "test": (range(175, 200),)},
        sentences={"train": 3_396, "dev": 173, "test": 345},
        digest="sha256:f018900543fbff4571439fd5e5ebdae00ba53dfdd6543e48491230d76d0e06a1",
        licence="the sample of the Linguistic Data Consortium in NLTK's data: not for commerce",
        source=_MARCUS,
    )
)
