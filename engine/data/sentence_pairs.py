"""Encoded sentence pairs in memory-mapped files, which the first process that needs them writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice, product, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...studies.catalog.datasets import PairFiles, ParallelCorpus, SourceFile, require_dataset, source_key
from ...studies.catalog.own_corpora import SPLITS, OwnPairs
from ...studies.catalog.tasks import TranslationSettings
from ...studies.own_data.rows import PAIRS, normal_form
from ..corpora.files import DataError, dataset_folder, iter_lines, read_own_rows
from .token_files import (
    Split,
    SplitWriter,
    encoded_folder,
    iter_shuffled,
    open_split,
    prepared,
    smallest_dtype,
)
from .vocabularies.build import learn_vocabulary, load_vocabulary
from .vocabularies.sentences import SentenceVocabulary
from .vocabularies.vocabulary import END


def iter_pairs(corpus: ParallelCorpus, files: PairFiles, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the corpus's pairs (sentence, translation) in the order of the files, without line ends.

    Raise DataError, possibly at the end, if a file is missing or damaged, if it differs from the published
    file, or if the source and target files have different numbers of lines.
    """
    place = dataset_folder(corpus, folder)
    source = _sentences(corpus, files.source, place)
    if files.target is None:
        for number, line in enumerate(source, start=1):
            columns = line.split("\t")
            if len(columns) < 2:
                raise DataError(f"{corpus.name}: expected two columns in line {number:,}, got {line!r}")
            yield columns[0], columns[1]
        return
    target = _sentences(corpus, files.target, place)
    for left, right in zip_longest(source, target):
        if left is None or right is None:
            names = f"{files.source.names[0]} and {files.target.names[0]}"
            raise DataError(
                f"{corpus.name}: expected the same number of lines in {names}, got more lines in one of them"
            )
        yield left, right


def _sentences(corpus: ParallelCorpus, source: SourceFile, place: Path) -> Iterator[str]:
    for number, line in enumerate(iter_lines(corpus, source, place), start=1):
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{corpus.name}: {source.names[0]}: line {number:,}: {error}") from error


class Pair(NamedTuple):
    """A sentence, its translation, and their split."""

    split: str
    source: str
    target: str


_ORDER = ("test", "dev", "train")  # a source in several splits belongs to the first of these


def split_pairs(corpus: ParallelCorpus, folder: Path) -> Iterator[Pair]:
    """Yield all pairs of a corpus with their splits.

    Pairs with an empty source or target are left out. No source sentence is in two splits, ignoring case and
    spaces. If the files are split already, a pair is dropped if its source is also in the dev or test split.
    """
    shares = corpus.held_out
    return _without_held_out(
        Pair(split if shares is None else shares.split_of(source), source, target)
        for split in _ORDER
        for files in corpus.files.get(split, ())
        for source, target in iter_pairs(corpus, files, folder)
    )


def split_own_pairs(facts: OwnPairs, folder: Path) -> Iterator[Pair]:
    """Yield the pairs of the user's own files, each with its split.

    Empty pairs, and pairs whose source is held out, are left out.
    """
    rows = sorted(read_own_rows(facts, PAIRS, folder), key=lambda row: _ORDER.index(row.split))
    return _without_held_out((Pair(*row[:3]) for row in rows), normal_form)


def _without_held_out(pairs: Iterable[Pair], form: Callable[[str], str] = str) -> Iterator[Pair]:
    """Yield the pairs with text on both sides whose source, in this form, is in no earlier split."""
    held_out: dict[bytes, str] = {}  # the split of each source of the test and dev splits
    for pair in pairs:
        if pair.source.strip() and pair.target.strip():
            key = source_key(form(pair.source))
            # sources may repeat within a split
            owner = held_out.get(key) if pair.split == "train" else held_out.setdefault(key, pair.split)
            if owner in (None, pair.split):
                yield pair


FORMAT = 2
"""The version of the files. It grows when their layout or content changes."""

SIDES = ("source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCorpusSpec:
    """The specification of a corpus of sentence pairs: its vocabularies, and where its pairs come from.

    `pairs` can be called repeatedly, and `depends` lists what determines them. `kinds` has the kind and size
    of the vocabularies of sources and of targets. They are learnt from every `stride`-th training pair. With
    `joint` sources and targets share one vocabulary, learnt from both.
    """

    name: str
    pairs: Callable[[], Iterator[Pair]]
    kinds: Mapping[str, tuple[str, int]]
    depends: Sequence[object] = ()
    stride: int = 1
    joint: bool = False

    def place(self, folder: Path) -> Path:
        """Return the folder of the encoded pairs, below the folder of all data; it may not exist yet."""
        (kind, size), target = self.kinds["source"], self.kinds["target"]
        depends = [FORMAT, *self.depends, kind, size, *target, *(["joint"] if self.joint else [])]
        pieces = "bpe" in (kind, target[0])
        return encoded_folder(folder, [self.name, kind, str(size)], depends, pieces=pieces)


def _learn(spec: PairCorpusSpec) -> dict[str, SentenceVocabulary]:
    def sentences(side: str) -> Iterator[str]:
        train = (pair for pair in spec.pairs() if pair.split == "train")
        return (getattr(pair, side) for pair in islice(train, 0, None, spec.stride))

    if spec.joint:
        kind, size = spec.kinds["target"]
        both = learn_vocabulary(kind, chain.from_iterable(map(sentences, SIDES)), size)
        return dict.fromkeys(SIDES, both)
    return {side: learn_vocabulary(kind, sentences(side), size) for side, (kind, size) in spec.kinds.items()}


def _write(spec: PairCorpusSpec, place: Path) -> dict[str, Any]:
    """Learn the vocabularies, write all pairs to token files, and return the description of the files.

    A sentence's end counts as a word. A split of targets is lossy if their tokens do not determine the text.
    """
    vocabularies = _learn(spec)
    for side, vocabulary in vocabularies.items():
        (place / f"{side}.vocabulary").write_bytes(vocabulary.content())
    with ExitStack() as stack:
        writers, texts = dict[tuple[str, str], SplitWriter](), dict[tuple[str, str], BinaryIO]()
        for split, side in product(SPLITS, SIDES):
            no_mark, name = np.array([], smallest_dtype(vocabularies[side].size)), f"{split}.{side}"
            writers[split, side] = stack.enter_context(SplitWriter(place, name, no_mark))
            if split != "train":
                texts[split, side] = stack.enter_context((place / f"{name}.txt").open("xb"))
        counts: Counter[str] = Counter()
        lossy = set[str]()
        for pair in spec.pairs():
            counts[pair.split] += 1
            for side in SIDES:
                sentence: str = getattr(pair, side)
                tokens = [*vocabularies[side].encode(sentence), END]
                writers[pair.split, side].add(tokens, [len(tokens)], [len(sentence.split()) + 1])
                if pair.split != "train":
                    texts[pair.split, side].write(sentence.encode() + b"\n")
                    if side == "target" and vocabularies[side].decode(tokens) != sentence:
                        lossy.add(pair.split)
    if missing := [split for split in SPLITS if not counts[split]]:
        raise DataError(f"{spec.name}: expected pairs in every split, got none in {', '.join(missing)}")
    return {
        "corpus": spec.name,
        "kinds": {side: kind for side, (kind, _) in spec.kinds.items()},
        "lossy": sorted(lossy),
        "files": {name: about for writer in writers.values() for name, about in writer.about().items()},
    }


_MAX_LEARNING_PAIRS = 4_000_000  # vocabularies are learnt from at most this many, spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSplit:
    """Encoded sentences and their translations, each with an end symbol.

    Pair i is line i of `source` and of `target`. For splits other than training, files that begin with
    `path_prefix` have the original sentences. `lossless` says whether the tokens determine the text of the
    targets.
    """

    source: Split
    target: Split
    path_prefix: Path | None = None
    lossless: bool = False

    def sentences(self, side: str) -> list[str]:
        """Return the original sentences of the split's sources or targets; `side` is "source" or "target"."""
        if self.path_prefix is None:
            raise DataError("expected a split with sentences, got one with token ids only")
        path = self.path_prefix.with_name(f"{self.path_prefix.name}.{side}.txt")
        return path.read_text("utf-8").split("\n")[:-1]

    def target_bytes(self) -> list[int] | None:
        """Return the number of UTF-8 bytes of each target sentence.

        Its line end counts too. Return None if the tokens do not determine the text.
        """
        if not self.lossless:
            return None
        return [len(sentence.encode()) + 1 for sentence in self.sentences("target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelText:
    """A parallel corpus: encoded sentence pairs in three splits, and their vocabularies.

    Each language has a vocabulary. The splits share no source sentence.
    """

    source: SentenceVocabulary
    target: SentenceVocabulary
    train: PairSplit
    dev: PairSplit
    test: PairSplit


def open_pairs(task: TranslationSettings, folder: Path) -> ParallelText:
    """Open the sentence pairs that a `[task]` table names.

    `folder` is the folder of all data. The first call writes the encoded pairs below `encoded/`; several
    processes may call this at once. Raise CorpusError for a wrong table, and DataError if the pairs are
    missing or differ from the published pairs.
    """
    if isinstance(task.corpus, OwnPairs):
        corpus, pairs, number = task.corpus.dataset, split_own_pairs, task.corpus.rows.train
        given, depends = task.corpus, [task.corpus.model_dump(mode="json")]
    else:
        given = corpus = require_dataset(task.corpus, ParallelCorpus)
        pairs, number = split_pairs, corpus.pairs
        files = {split: [asdict(each) for each in files] for split, files in corpus.files.items()}
        shares = corpus.held_out and asdict(corpus.held_out)
        depends = [files, [each.digest for each in corpus.downloads], shares]
    spec = PairCorpusSpec(
        name=corpus.name,
        pairs=partial(pairs, given, folder),
        kinds=dict.fromkeys(SIDES, (task.tokens, task.pieces)),
        depends=depends,
        stride=-(-number // _MAX_LEARNING_PAIRS),
        joint=task.joint_vocabulary,
    )
    return open_prepared(spec, spec.place(folder))


def open_prepared(spec: PairCorpusSpec, place: Path) -> ParallelText:
    """Open the pairs in a folder; write them first if they are missing."""
    about = prepared(place, spec.name, partial(_write, spec))
    files = about["files"]

    def vocabulary(side: str) -> SentenceVocabulary:
        return load_vocabulary(about["kinds"][side], (place / f"{side}.vocabulary").read_bytes())

    def split(name: str) -> PairSplit:
        source, target = (open_split(place, f"{name}.{side}", files) for side in SIDES)
        if name == "train":
            return PairSplit(source=source, target=target)
        return PairSplit(
            source=source, target=target, path_prefix=place / name, lossless=name not in about["lossy"]
        )

    source, target = (vocabulary(side) for side in SIDES)
    return ParallelText(
        source=source, target=target, train=split("train"), dev=split("dev"), test=split("test")
    )


class PairBatch(NamedTuple):
    """A batch of whole pairs, int64, padded at the end with 0.

    `sources` (batch, n) and `targets` (batch, m) end in an end symbol, which `target_lengths` (batch,) count.
    `pairs` are the indices of the pairs in the split. `words` counts the words of all targets.
    """

    sources: Tensor
    targets: Tensor
    target_lengths: Tensor
    pairs: Tensor
    words: int


def iter_pair_batches(
    split: PairSplit,
    *,
    batch_size: int,
    max_length: int,
    seed: int,
    width: int = 5,
    position: int = 0,
) -> Iterator[PairBatch]:
    """Yield batches of pairs without end, from batch number `position` on.

    A batch has pairs of similar length: their longer sides differ by less than `width`, unless the batch has
    pairs of two neighbouring buckets. The batches of each pass and their order depend on the seed and the
    number of the pass. A random remainder that does not fill a batch is dropped, and so is a pair with a side
    of more than `max_length` tokens, not counting its end.
    """
    lengths = _max_side_lengths(split)
    fitting = torch.nonzero(lengths <= max_length + 1).flatten()
    if len(fitting) < batch_size:
        raise DataError(
            f"expected at least {batch_size} pairs of at most {max_length} tokens, got {len(fitting)}"
        )
    buckets = torch.div(lengths, width, rounding_mode="floor")
    for rows in iter_shuffled(
        fitting, batch_size=batch_size, seed=seed, what="pairs", position=position, buckets=buckets
    ):
        yield collate(split, rows)


def iter_pair_eval(split: PairSplit, *, batch_size: int) -> Iterator[PairBatch]:
    """Yield batches that together have each pair once, ordered by length. The last may be smaller."""
    order = torch.argsort(_max_side_lengths(split), stable=True)
    for rows in order.split(batch_size) if len(order) else ():
        yield collate(split, rows.tolist())


def collate(split: PairSplit, chosen: Sequence[int]) -> PairBatch:
    """Return a batch of the pairs with these indices."""
    sources, _ = split.source.padded_lines(chosen)
    targets, target_lengths = split.target.padded_lines(chosen)
    numbers = torch.tensor(chosen)
    words = int(split.target.line_words[numbers].sum())
    return PairBatch(sources, targets, target_lengths, numbers, words)


def _max_side_lengths(split: PairSplit) -> Tensor:
    return torch.maximum(split.source.line_lengths, split.target.line_lengths)
