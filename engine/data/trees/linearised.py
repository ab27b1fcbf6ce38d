"""Trees as lines of brackets with tags in place of words, and back again (Vinyals et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from .penn_trees import ROOT, Leaf, Tree


def linearise(tree: Tree) -> list[str]:
    """Return the symbols of a tree: `(NP` and `)NP` around a constituent, a tag for each word, no root."""
    symbols = [] if tree.label == ROOT else [f"({tree.label}"]
    for child in tree.children:
        symbols += [child.tag] if isinstance(child, Leaf) else linearise(child)
    return symbols if tree.label == ROOT else [*symbols, f"){tree.label}"]


def bracket_of(symbol: str) -> int:
    """Return 1 for an opening bracket, -1 for a closing one, 0 for a tag."""
    if len(symbol) == 1:
        return 0
    return symbol.startswith("(") - symbol.startswith(")")


def parse_linearised(symbols: Sequence[str], words: Sequence[str]) -> Tree | None:
    """Return the tree that symbols stand for, with a word for each tag.

    None if they are not well bracketed, with the same label at both ends and something in between, or if
    there are more tags or fewer than words (Kaiser and Bengio 2016, section 3).
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
