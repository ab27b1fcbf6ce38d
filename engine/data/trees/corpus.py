"""Treebanks as pairs: a sentence, and its tree in one line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ....studies.catalog.datasets import Treebank, require_dataset
from ....studies.catalog.tasks import ParsingSettings
from ...corpora import dataset_folder, read_treebank
from ..pairs.corpus import PairSplit, ParallelText, open_or_write, place_of_writing
from ..pairs.reader import Pair
from ..pairs.writer import PairCorpusSpec
from .linearised import linearise, parse_linearised
from .penn_trees import Tree, parse_trees, strip_annotations


def open_treebank(task: ParsingSettings, folder: Path) -> ParallelText:
    """Return the sentences and trees of the treebank of a `[task]` table, from the folder of all data.

    A source is the words of a sentence, in the tokens that the table says; its target is its bare tree, as
    `linear` writes it. Raises CorpusError, and DataError where the treebank is not there, or not the one that
    was published.
    """
    return open_or_write(*_writing_of(task, folder), folder)


def place_of_trees(task: ParsingSettings, folder: Path) -> Path:
    """Return the folder that has the sentences and trees, or will have them; raises as `open_treebank`."""
    return place_of_writing(*_writing_of(task, folder), folder)


def _writing_of(task: ParsingSettings, folder: Path) -> tuple[PairCorpusSpec, list[Any]]:
    """Return what is to be written for a `[task]` table, and what it depends on."""
    treebank = require_dataset(task.corpus, Treebank)
    files = read_treebank(treebank, dataset_folder(treebank, folder))
    digest = hashlib.sha256(b"".join(text for _, text in files)).hexdigest()
    writing = PairCorpusSpec(
        name=treebank.name,
        pairs=lambda: _pairs(treebank, files),
        kinds={"source": (task.tokens, task.pieces), "target": ("symbols", treebank.tree_vocab_size)},
    )
    splits = [[number, treebank.split_of(number)] for number, _ in files]
    return writing, [digest, splits]


def gold_trees(split: PairSplit) -> list[Tree]:
    """Return the trees of a split that is not for training, in the order of its pairs."""
    trees = []
    for words, symbols in zip(split.sentences("source"), split.sentences("target"), strict=True):
        tree = parse_linearised(symbols.split(" "), words.split(" "))
        assert tree is not None, "what was written is well bracketed"
        trees.append(tree)
    return trees


def _pairs(treebank: Treebank, files: list[tuple[int, bytes]]) -> Iterator[Pair]:
    for number, text in files:
        split = treebank.split_of(number)
        if split is None:
            continue
        for tree in parse_trees(text.decode("utf-8")):
            if (left := strip_annotations(tree)) is not None:
                words = " ".join(leaf.word for leaf in left.leaves())
                yield Pair(split, words, " ".join(linearise(left)))
