"""The texts that a language model can be trained on: files, splits, vocabularies, licences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from . import datasets
from .datasets import CorpusError, Dataset, Download, SourceFile

_MAHONEY = "Mahoney, Large text compression benchmark"
_MERITY = "Merity et al. 2017, Pointer sentinel mixture models"
_WIKIPEDIA = "CC BY-SA 3.0, GFDL"
_WIKITEXT = "CC BY-SA 3.0"
_ASCII = bytes(range(32, 127))


class TextSettings(Protocol):
    """The keys of a `[task]` table that say into which tokens a text is cut."""

    @property
    def corpus(self) -> str:
        """The name of a corpus."""
        ...

    @property
    def tokens(self) -> str:
        """What a token is: characters, words or bpe."""
        ...

    @property
    def pieces(self) -> int:
        """With bpe, the size of the vocabulary."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSlice:
    """The bytes of one split."""

    source: SourceFile
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus(Dataset):
    """One text in three splits.

    `size_mb` is the approximate size of the plain text. `splits` are train, dev and test. `alphabet` has all
    bytes of the text except line ends; `words` is the size of the standard word vocabulary, if there is one.
    In a `separated` text punctuation is already set apart from words.
    """

    KIND: ClassVar[str] = "corpus"

    size_mb: float | None = None
    splits: Mapping[str, FileSlice]
    alphabet: bytes
    word_vocab_size: int | None = None
    pretokenized: bool = False

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The text files, each once."""
        return tuple(dict.fromkeys(part.source for part in self.splits.values()))


def register_corpus(corpus: Corpus) -> Corpus:
    """Add a corpus; a name that is taken raises ValueError."""
    return datasets.register(corpus)


def corpus_names() -> tuple[str, ...]:
    """The names of all corpora, sorted."""
    return datasets.names(Corpus)


def require_corpus(name: str) -> Corpus:
    """The corpus of that name; CorpusError with the nearest name if there is none."""
    return datasets.require(name, Corpus)


def corpus_of_task(task: TextSettings) -> Corpus:
    """The corpus that a `[task]` table names; CorpusError if there is none or it lacks such tokens."""
    corpus = require_corpus(task.corpus)
    if task.tokens == "words" and corpus.word_vocab_size is None:
        raise CorpusError(f"{corpus.name} has no standard vocabulary of words; expected characters or bpe")
    return corpus


def vocabulary_size(task: TextSettings) -> int:
    """The number of symbols of a `[task]` table's text, including the end-of-line mark.

    Raises CorpusError if the table names no known text.
    """
    corpus = corpus_of_task(task)
    if task.tokens == "words":
        assert corpus.word_vocab_size is not None
        return corpus.word_vocab_size
    return task.pieces if task.tokens == "bpe" else len(corpus.alphabet) + 1


def _one_file(source: SourceFile, dev: int, test: int, end: int) -> dict[str, FileSlice]:
    """Train, dev and test, one after the other in one file."""
    return {
        "train": FileSlice(source=source, stop=dev),
        "dev": FileSlice(source=source, start=dev, stop=test),
        "test": FileSlice(source=source, start=test, stop=end),
    }


def _between(*ranges: Iterable[int]) -> bytes:
    return bytes(byte for each in ranges for byte in each)


def _wikitext(folder: str, digests: dict[str, tuple[int | None, str]]) -> dict[str, FileSlice]:
    """Train, dev and test of a WikiText, each a file in the folder of its archive."""
    names = {"train": "wiki.train.tokens", "dev": "wiki.valid.tokens", "test": "wiki.test.tokens"}
    return {
        split: FileSlice(
            source=SourceFile(
                names=(name, f"{folder}/{name}"),
                size=digests[split][0],
                digest=digests[split][1],
                archive=f"{folder}-v1.zip",
            )
        )
        for split, name in names.items()
    }


def _addresses(name: str) -> tuple[str, ...]:
    return (
        f"https://wikitext.smerity.com/{name}",
        f"https://s3.amazonaws.com/research.metamind.io/wikitext/{name}",
    )


_TEXT8 = Download(
    name="text8.zip",
    urls=("https://mattmahoney.net/dc/text8.zip", "http://mattmahoney.net/dc/text8.zip"),
    size=31_344_016,
    digest="sha256:a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
)
_LETTERS = b" abcdefghijklmnopqrstuvwxyz"

register_corpus(
    Corpus(
        name="text8",
        title="100 million characters of Wikipedia, letters and spaces only",
        folder="text8",
        size_mb=100.0,
        downloads=(_TEXT8,),
        splits=_one_file(
            SourceFile(
                names=("text8",),
                size=100_000_000,
                digest="md5:3bea1919949baf155f99411df5fada7e",
                archive="text8.zip",
            ),
            90_000_000,
            95_000_000,
            100_000_000,
        ),
        alphabet=_LETTERS,
        licence=_WIKIPEDIA,
        source=_MAHONEY,
    )
)
register_corpus(
    Corpus(
        name="text8-6m",
        title="the first 6.9 million characters of text8",
        folder="text8",
        size_mb=6.9,
        downloads=(_TEXT8,),
        splits=_one_file(
            SourceFile(
                names=("text8", "text8.first6877825"),
                size=6_877_825,
                digest="sha256:8c5551457ad85e6f248e016443493f940756c7582473e6bbfcafcbe27fc98836",
                archive="text8.zip",
            ),
            5_877_825,
            6_377_825,
            6_877_825,
        ),
        alphabet=_LETTERS,
        licence=_WIKIPEDIA,
        source=_MAHONEY,
    )
)
register_corpus(
    Corpus(
        name="enwik8",
        title="100 million bytes of Wikipedia with its markup",
        folder="enwik8",
        size_mb=100.0,
        downloads=(
            Download(
                name="enwik8.zip",
                urls=("https://mattmahoney.net/dc/enwik8.zip", "http://mattmahoney.net/dc/enwik8.zip"),
                size=36_445_475,
                digest="sha256:547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc",
            ),
        ),
        splits=_one_file(
            SourceFile(
                names=("enwik8",),
                size=100_000_000,
                digest="md5:a1fa5ffddb56f4953e226637dabbb36a",
                archive="enwik8.zip",
            ),
            90_000_000,
            95_000_000,
            100_000_000,
        ),
        alphabet=_between(
            b"\t", _ASCII, range(0x80, 0xC0), range(0xC2, 0xDD), (0xDE,), range(0xE0, 0xEE), (0xEF, 0xF0)
        ),
        licence=_WIKIPEDIA,
        source=_MAHONEY,
    )
)
register_corpus(
    Corpus(
        name="wikitext-2",
        title="2 million words of good articles of Wikipedia",
        folder="wikitext-2",
        size_mb=13.2,
        downloads=(
            Download(
                name="wikitext-2-v1.zip",
                urls=_addresses("wikitext-2-v1.zip"),
                digest="md5:542ccefacc6c27f945fb54453812b3cd",
            ),
        ),
        splits=_wikitext(
            "wikitext-2",
            {
                "train": (
                    10_797_148,
                    "sha256:9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
                ),
                "dev": (1_121_681, "sha256:f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
                "test": (
                    1_256_449,
                    "sha256:d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
                ),
            },
        ),
        alphabet=_between(
            _ASCII.translate(None, b"_{}"),
            range(0x80, 0xC0),
            range(0xC2, 0xC7),
            (0xCA, 0xCC, 0xCE, 0xD0, 0xD1, 0xD8, 0xD9, 0xE0, 0xE1, 0xE2, 0xE3, 0xE5, 0xE6, 0xE7, 0xE9, 0xEF),
        ),
        word_vocab_size=33_278,
        pretokenized=True,
        licence=_WIKITEXT,
        source=_MERITY,
    )
)
register_corpus(
    Corpus(
        name="wikitext-103",
        title="103 million words of good articles of Wikipedia",
        folder="wikitext-103",
        size_mb=543.0,
        downloads=(
            Download(
                name="wikitext-103-v1.zip",
                urls=_addresses("wikitext-103-v1.zip"),
                digest="md5:9ddaacaf6af0710eda8c456decff7832",
            ),
        ),
        splits=_wikitext(
            "wikitext-103",
            {
                "train": (None, "sha1:b7497e2dfe77e72cfef5e3dbc61b7b53712ac211"),
                "dev": (1_142_309, "sha1:c326ac59dc587676d58c422eb8a03e119582f92b"),
                "test": (1_281_077, "sha1:8a5befc548865cec54ed4273cf87dbbad60d1e47"),
            },
        ),
        alphabet=_between(range(10), range(11, 256)),
        word_vocab_size=267_735,
        pretokenized=True,
        licence=_WIKITEXT,
        source=_MERITY,
    )
)
register_corpus(
    Corpus(
        name="paradise-lost",
        title="Milton's Paradise Lost of 1674, 456 thousand characters",
        folder="paradise-lost",
        installed=True,
        size_mb=0.5,
        splits=_one_file(
            SourceFile(
                names=("paradise-lost.txt",),
                size=456_078,
                digest="sha256:e83733cab0c45b53082c0d1bfdc024ffb840ebb60eefd8317044d3cb30a8e2ce",
            ),
            387_922,
            428_095,
            456_078,
        ),
        alphabet=_between(b" !\"'(),-.:;?", range(65, 91), range(97, 123)),
        licence="public domain",
        source="Project Gutenberg 1992, after Raben 1965, stray signs removed",
    )
)
