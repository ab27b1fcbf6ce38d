"""Treebanks: sentences with their constituency trees (Vinyals et al. 2015).

Trees are read from Penn bracket format. A linear tree is one line of labelled brackets, with a tag for each
word.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...grammar.parser import Tokenizer, TokenReader
from ...studies.catalog.datasets import Treebank, require_dataset
from ...studies.catalog.tasks import ParsingSettings
from ..corpora.files import DataError, dataset_folder
from ..corpora.treebank_files import read_treebank
from .sentence_pairs import Pair, PairCorpusSpec, PairSplit, ParallelText, open_prepared

ROOT = "TOP"
"""The label of the outermost bracket, which is empty in the files."""

TRACE = "-NONE-"
"""The tag of empty elements: leaves that are not words of the sentence."""

_tokenize = Tokenizer({"bracket": r"[()]", "word": r"[^\s()]+", "space": r"\s+"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A word and its part-of-speech tag."""

    tag: str
    word: str

    def __str__(self) -> str:
        return f"({self.tag} {self.word})"


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent of a sentence, with its label and children."""

    label: str
    children: tuple[Tree | Leaf, ...]

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(str, self.children))})"

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves from left to right."""
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()


def parse_trees(text: str) -> Iterator[Tree]:
    """Yield the trees of a text in order. Raise DataError if the text is not well-formed."""
    reader = _TreeReader(list(_tokenize(text)))
    while reader.token.kind != "end":
        tree = reader.bracket()
        if isinstance(tree, Leaf):
            raise DataError(f"expected a tree, got the word {tree}")
        yield tree


def strip_annotations(tree: Tree) -> Tree | None:
    """Return a tree without traces and without annotations in its labels.

    Remove traces (leaves that are not words), constituents with only traces, and the functions in labels. For
    example, `NP-SBJ-1` and `NP=2` become `NP`; tags such as `-LRB-` stay. None if nothing is left.
    """
    children = []
    for child in tree.children:
        if isinstance(child, Leaf):
            if child.tag != TRACE:
                children.append(child)
        elif (left := strip_annotations(child)) is not None:
            children.append(left)
    return Tree(category(tree.label), tuple(children)) if children else None


def category(label: str) -> str:
    """Return a constituent's label up to its first `-` or `=`."""
    # a label that begins with `-` or `=` would become empty
    return re.split("[-=]", label, maxsplit=1)[0] or label


class _TreeReader(TokenReader):
    def bracket(self, *, inner: bool = False) -> Tree | Leaf:
        """Parse `bracket: "(" label? bracket+ ")" | "(" tag word ")"`.

        Only the outermost label may be missing.
        """
        self._take("(")
        label = ROOT if self.token.kind == "bracket" and not inner else self._word()
        if self.token.kind != "bracket":
            leaf = Leaf(label, self._word())
            self._take(")")
            return leaf
        children = [self.bracket(inner=True)]
        while self.token.text != ")":
            children.append(self.bracket(inner=True))
        self._take(")")
        return Tree(label, tuple(children))

    def _take(self, bracket: str) -> None:
        if self.token.text != bracket:
            raise self._unexpected(bracket)
        self._advance()

    def _word(self) -> str:
        if self.token.kind != "word":
            raise self._unexpected("a word")
        return self._advance().text

    def _unexpected(self, expected: str) -> DataError:
        found, place = self.token.text or "the end", f"after {self.token.start:,} characters"
        return DataError(f"expected {expected}, got {found} {place}")


def linearise(tree: Tree) -> list[str]:
    """Return a tree as symbols, such as `(NP`, a tag for each word, and `)NP`; its root has none."""
    symbols = [] if tree.label == ROOT else [f"({tree.label}"]
    for child in tree.children:
        symbols += [child.tag] if isinstance(child, Leaf) else linearise(child)
    return symbols if tree.label == ROOT else [*symbols, f"){tree.label}"]


def bracket_of(symbol: str) -> int:
    """Return 1 if a symbol is an opening bracket, -1 if it is a closing one, and 0 if it is a tag."""
    if len(symbol) == 1:
        return 0
    return symbol.startswith("(") - symbol.startswith(")")


def parse_linearised(symbols: Sequence[str], words: Sequence[str]) -> Tree | None:
    """Build a tree from the symbols of a linearised tree and the words of its sentence.

    The words replace the tags in order (Kaiser and Bengio 2016, section 3). Return None if brackets do not
    match, a constituent is empty or has different labels at its ends, or the numbers of tags and words
    differ.
    """
    stack: list[tuple[str, list[Tree | Leaf]]] = [(ROOT, [])]
    waiting = iter(words)
    for symbol in symbols:
        if bracket_of(symbol) > 0:
            stack.append((symbol[1:], []))
        elif bracket_of(symbol) < 0:
            label, children = stack.pop()
            if not stack or label != symbol[1:] or not children:
                return None
            stack[-1][1].append(Tree(label, tuple(children)))
        elif (word := next(waiting, None)) is not None:
            stack[-1][1].append(Leaf(symbol, word))
        else:
            return None
    (root, children), *still_open = stack
    if still_open or not children or next(waiting, None) is not None:
        return None
    return Tree(root, tuple(children))


def open_treebank(task: ParsingSettings, folder: Path) -> ParallelText:
    """Open the treebank that a `[task]` table names, as pairs of a sentence and its tree.

    `folder` is the folder that holds all data sets. The source of a pair is the tokenised sentence, and its
    target is the linearised tree without annotations. Raise CorpusError for a wrong table, and DataError if
    the treebank is missing or differs from the published one.
    """
    treebank = require_dataset(task.corpus, Treebank)
    files = read_treebank(treebank, dataset_folder(treebank, folder))
    digest = hashlib.sha256(b"".join(text for _, text in files)).hexdigest()
    spec = PairCorpusSpec(
        name=treebank.name,
        pairs=lambda: _pairs(treebank, files),
        kinds={"source": (task.tokens, task.pieces), "target": ("symbols", treebank.tree_vocab_size)},
        depends=[digest, [[number, treebank.split_of(number)] for number, _ in files]],
    )
    return open_prepared(spec, spec.place(folder))


def gold_trees(split: PairSplit) -> list[Tree]:
    """Return the gold trees of a dev or test split, in the order of its pairs."""
    trees = []
    for words, symbols in zip(split.sentences("source"), split.sentences("target"), strict=True):
        tree = parse_linearised(symbols.split(" "), words.split(" "))
        assert tree is not None, "the stored trees have balanced brackets"
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
