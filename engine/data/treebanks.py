"""Treebanks as pairs: a sentence, and its tree in one line."""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

from ...studies.corpora import TextSettings
from ...studies.treebanks import Treebank, chosen_treebank, treebank_sizes
from ..corpora import DataError
from .linear import assembled, linear
from .pair_splitting import Pair
from .pair_writing import Writing
from .pairs import PairSplit, ParallelText, written
from .trees import Tree, bare, read_trees

_FILE = re.compile(r"wsj_(\d{4})\.mrg")


def open_treebank(task: TextSettings, folder: Path) -> ParallelText:
    """The sentences and trees of the treebank that a `[task]` table names, from the folder of all data.

    A source is the words of a sentence, in the tokens that the table says; its target is its bare tree, as
    `linear` writes it. Raises CorpusError, and DataError where the treebank is not there, or not the one that
    was published.
    """
    treebank, (source, target) = chosen_treebank(task), treebank_sizes(task)
    files = list(files_of(treebank, folder))
    digest = hashlib.sha256(b"".join(text for _, text in files)).hexdigest()
    if treebank.digest not in (None, f"sha256:{digest}"):
        place = folder / treebank.home
        raise DataError(f"{treebank.name}: {place}: expected {treebank.digest}, got sha256:{digest}")
    writing = Writing(
        name=treebank.name,
        pairs=lambda: _pairs(treebank, files),
        kinds={"source": (task.tokens, source), "target": ("symbols", target)},
    )
    splits = [[number, _split(treebank, number)] for number, _ in files]
    return written(writing, folder, [digest, splits])


def trees_of(split: PairSplit) -> list[Tree]:
    """The trees of a split that is not for training, in the order of its pairs."""
    trees = []
    for words, symbols in zip(split.sentences("source"), split.sentences("target"), strict=True):
        tree = assembled(symbols.split(" "), words.split(" "))
        assert tree is not None, "what was written is well bracketed"
        trees.append(tree)
    return trees


def files_of(treebank: Treebank, folder: Path) -> Iterator[tuple[int, bytes]]:
    """The numbers of a treebank's files, in order, and what is in them.

    They lie anywhere below the treebank's folder, or one behind the other in one file, `….mrg` or `….mrg.xz`,
    with their names and sizes in a table beside it, `….index.tsv`.
    """
    place = folder / treebank.home
    found = {int(name[1]): path for path in place.rglob("*.mrg") if (name := _FILE.fullmatch(path.name))}
    indices = sorted(place.glob("*.index.tsv"))
    if not found and not indices:
        raise DataError(f"{treebank.name}: expected wsj_0001.mrg and so on in {place}, got nothing")
    for number in sorted(found):
        yield number, found[number].read_bytes()
    if not found:
        yield from _joined(indices[0])


def _joined(index: Path) -> Iterator[tuple[int, bytes]]:
    """The files that stand one behind the other beside their index."""
    path = index.with_name(index.name.replace(".index.tsv", ".mrg"))
    try:
        text = (
            path.read_bytes()
            if path.exists()
            else lzma.decompress(path.with_name(f"{path.name}.xz").read_bytes())
        )
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{path} (.xz) cannot be read: {error}") from error
    start = 0
    for row in index.read_text("utf-8").split("\n")[1:-1]:
        name, size = row.split("\t")[:2]
        number = _FILE.fullmatch(name)
        if number is None:
            raise DataError(f"{index}: expected a name such as wsj_0001.mrg, got {name}")
        yield int(number[1]), text[start : start + int(size)]
        start += int(size)


def _pairs(treebank: Treebank, files: list[tuple[int, bytes]]) -> Iterator[Pair]:
    for number, text in files:
        split = _split(treebank, number)
        if split is None:
            continue
        for tree in read_trees(text.decode("utf-8")):
            if (left := bare(tree)) is not None:
                words = " ".join(leaf.word for leaf in left.leaves())
                yield Pair(split, words, " ".join(linear(left)))


def _split(treebank: Treebank, number: int) -> str | None:
    return next((split for split, has in treebank.splits.items() if has(number)), None)
