"""Constituency trees in Penn bracket format: reading, writing, and what is left of them for parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....tokenizer import Tokenizer, TokenReader
from ...corpora import DataError

ROOT = "TOP"
"""The label of the outermost bracket, which the files leave empty."""

TRACE = "-NONE-"
"""The tag of what stands in a tree without having been said."""

_tokenize = Tokenizer({"bracket": r"[()]", "word": r"[^\s()]+", "space": r"\s+"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A word and its tag."""

    tag: str
    word: str

    def __str__(self) -> str:
        return f"({self.tag} {self.word})"


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent: its label, and the constituents and words that it is made of."""

    label: str
    children: tuple[Tree | Leaf, ...]

    def __str__(self) -> str:
        return f"({self.label} {' '.join(map(str, self.children))})"

    def leaves(self) -> Iterator[Leaf]:
        """Yield words and tags from left to right."""
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()


def parse_trees(text: str) -> Iterator[Tree]:
    """Yield the trees of a text, one behind the other; DataError where it is not brackets, tags and words."""
    reader = _TreeReader(list(_tokenize(text)))
    while reader.token.kind != "end":
        tree = reader.bracket()
        if isinstance(tree, Leaf):
            raise DataError(f"expected a tree, got the word {tree}")
        yield tree


def strip_annotations(tree: Tree) -> Tree | None:
    """Return a tree without traces, constituents of traces alone, and function labels.

    So `NP-SBJ-1` and `NP=2` become `NP`; tags such as `-LRB-` stay. None if nothing is left.
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
    return re.split("[-=]", label, maxsplit=1)[0] or label


class _TreeReader(TokenReader):
    """One reading of brackets and words."""

    def bracket(self, *, inner: bool = False) -> Tree | Leaf:
        """`bracket: "(" label? bracket+ ")" | "(" tag word ")"`; only the outermost may lack its label."""
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
        found, place = self.token.text or "the end", f"behind {self.token.start:,} characters"
        return DataError(f"expected {expected}, got {found} {place}")
