"""Constituency trees in Penn bracket format: reading, writing, and what is left of them for parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...corpora import DataError

ROOT = "TOP"
"""The label of the outermost bracket, which the files leave empty."""

TRACE = "-NONE-"
"""The tag of what stands in a tree without having been said."""

_TOKEN = re.compile(r"[()]|[^\s()]+")


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
        """Words and tags from left to right."""
        for child in self.children:
            if isinstance(child, Leaf):
                yield child
            else:
                yield from child.leaves()


def parse_trees(text: str) -> Iterator[Tree]:
    """The trees of a text, one behind the other; DataError where it is not brackets, tags and words."""
    tokens = _Tokens(text)
    while tokens.current is not None:
        tree = _bracket(tokens)
        if isinstance(tree, Leaf):
            raise DataError(f"expected a tree, got the word {tree}")
        yield tree


def strip_annotations(tree: Tree) -> Tree | None:
    """A tree without traces, without what is made of them alone, and without the functions behind labels.

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
    """A constituent's label up to its first `-` or `=`."""
    return re.split("[-=]", label, maxsplit=1)[0] or label


class _Tokens:
    """The brackets and words of a text, one of them in sight."""

    def __init__(self, text: str) -> None:
        self._found = _TOKEN.finditer(text)
        self.current = self._next()

    @property
    def at_bracket(self) -> bool:
        """Whether a bracket is in sight."""
        return self.current in ("(", ")")

    def take(self, expected: str) -> None:
        """Go on; DataError if the token in sight is not the one that is expected."""
        if self.current != expected:
            raise DataError(f"expected {expected}, got {self.current or 'the end'} {self._place}")
        self.current = self._next()

    def word(self) -> str:
        """The word in sight, and go on; DataError if it is none."""
        word = self.current
        if word is None or self.at_bracket:
            raise DataError(f"expected a word, got {word or 'the end'} {self._place}")
        self.current = self._next()
        return word

    def _next(self) -> str | None:
        found = next(self._found, None)
        if found is None:
            return None
        self._place = f"behind {found.start():,} characters"
        return found.group()


def _bracket(tokens: _Tokens, *, inner: bool = False) -> Tree | Leaf:
    """`bracket: "(" label? bracket+ ")" | "(" tag word ")"`; only the outermost may lack its label."""
    tokens.take("(")
    label = ROOT if tokens.at_bracket and not inner else tokens.word()
    if not tokens.at_bracket:
        leaf = Leaf(label, tokens.word())
        tokens.take(")")
        return leaf
    children = [_bracket(tokens, inner=True)]
    while tokens.current != ")":
        children.append(_bracket(tokens, inner=True))
    tokens.take(")")
    return Tree(label, tuple(children))
