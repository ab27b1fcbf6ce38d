"""Treebanks as pairs: a sentence, and its tree in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ...studies.corpora import TextSettings
from ...studies.treebanks import Treebank, chosen_treebank, treebank_sizes
from ..corpora import home, read_treebank
from .linear import assembled, linear
from .pair_splitting import Pair
from .pair_writing import Writing
from .pairs import PairSplit, ParallelText, written
from .trees import Tree, bare, read_trees


def open_treebank(task: TextSettings, folder: Path) -> ParallelText:
    """The sentences and trees of the treebank that a `[task]` table names, from the folder of all data.

    A source is the words of a sentence, in the tokens that the table says; its target is its bare tree, as
    `linear` writes it. Raises CorpusError, and DataError where the treebank is not there, or not the one that
    was published.
    """
    treebank, (source, target) = chosen_treebank(task), treebank_sizes(task)
    files = read_treebank(treebank, home(treebank, folder))
    digest = hashlib.sha256(b"".join(text for _, text in files)).hexdigest()
    writing = Writing(
        name=treebank.name,
        pairs=lambda: _pairs(treebank, files),
        kinds={"source": (task.tokens, source), "target": ("symbols", target)},
    )
    splits = [[number, treebank.split_of(number)] for number, _ in files]
    return written(writing, folder, [digest, splits])


def trees_of(split: PairSplit) -> list[Tree]:
    """The trees of a split that is not for training, in the order of its pairs."""
    trees = []
    for words, symbols in zip(split.sentences("source"), split.sentences("target"), strict=True):
        tree = assembled(symbols.split(" "), words.split(" "))
        assert tree is not None, "what was written is well bracketed"
        trees.append(tree)
    return trees


def _pairs(treebank: Treebank, files: list[tuple[int, bytes]]) -> Iterator[Pair]:
    for number, text in files:
        split = treebank.split_of(number)
        if split is None:
            continue
        for tree in read_trees(text.decode("utf-8")):
            if (left := bare(tree)) is not None:
                words = " ".join(leaf.word for leaf in left.leaves())
                yield Pair(split, words, " ".join(linear(left)))
