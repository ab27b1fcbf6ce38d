"""Blocks, repeats and series as words, read from left to right, split into classes.

An automaton reads a word part by part. It holds every alternative that still fits, so that a word is counted
once in however many ways it can be chosen (Rabin and Scott 1959, the subset construction).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..nodes import Block, Node, Repeat, Series, Tied, Value
from ..vocabulary import lookup
from .canonical import block_of
from .sets import Alternatives, Class, Owned, Splits, alternatives, union

_States = frozenset[int]


@dataclass(slots=True)
class _Automaton:
    """States with edges; `owners` has, by state, the bits of the sets with words that end there."""

    splits: Splits
    make: Callable[[list[Value]], Value]
    edges: list[list[tuple[Alternatives, int]]] = field(default_factory=lambda: [[]])
    owners: list[int] = field(default_factory=lambda: [0])
    _steps: dict[_States, list[tuple[Class, _States]]] = field(default_factory=dict)
    _ways: dict[_States, dict[int, int]] = field(default_factory=dict)

    def state(self, owner: int = 0) -> int:
        """A new state."""
        self.edges.append([])
        self.owners.append(owner)
        return len(self.edges) - 1

    def chain(self, parts: Sequence[Alternatives], here: int, there: int) -> None:
        """Let these parts, one after another, lead from a state to another."""
        for place, options in enumerate(parts, 1):
            following = there if place == len(parts) else self.state()
            self.edges[here].append((options, following))
            here = following

    def chain_flat(self, parts: Sequence[Node], here: int, there: int) -> None:
        """The same for the parts of a series: a series among their options gives its own parts."""
        for place, part in enumerate(parts, 1):
            following = there if place == len(parts) else self.state()
            options = alternatives(part)
            if single := tuple(one for one in options if not isinstance(one, Series)):
                self.edges[here].append((single, following))
            for one in options:
                if isinstance(one, Series):
                    self.chain_flat(one.parts, here, following)
            here = following

    def ends(self, states: _States) -> int:
        """The bits of the sets that have the word which was read up to these states."""
        return union([self.owners[state] for state in states])

    def steps(self, states: _States) -> list[tuple[Class, _States]]:
        """The classes that can be read next, and the states that each leads to."""
        if states not in self._steps:
            targets: dict[Alternatives, set[int]] = {}
            for options, target in (edge for state in sorted(states) for edge in self.edges[state]):
                targets.setdefault(options, set()).add(target)
            self.splits.spend(sum(map(len, targets.values())))
            leads = list(targets.values())
            self._steps[states] = [
                (found, frozenset().union(*(lead for place, lead in enumerate(leads) if mask >> place & 1)))
                for mask, found in self.splits.split(list(targets))
            ]
        return self._steps[states]

    def ways(self, states: _States) -> dict[int, int]:
        """How many words go on from the states, by the bits of the sets that have them.

        The word that ends here counts too.
        """
        if states not in self._ways:
            mask = self.ends(states)
            counts = Counter({mask: 1} if mask else {})
            for found, following in self.steps(states):
                for mask, count in self.ways(following).items():
                    counts[mask] += found.size * count
            self._ways[states] = counts
        return self._ways[states]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words that exactly the sets of `mask` have."""

    automaton: _Automaton
    mask: int
    size: int

    def at(self, index: int) -> Value:
        """The word of that number: a word comes before those that go on from it."""
        values, states = list[Value](), _START
        while True:
            if self.automaton.ends(states) == self.mask:
                if index == 0:
                    return self.automaton.make(values)
                index -= 1
            found, states, index = self._step(states, index)
            values.append(found)

    def _step(self, states: _States, index: int) -> tuple[Value, _States, int]:
        """The next part of the word of that number, where it leads, and the number of the rest."""
        for found, following in self.automaton.steps(states):
            rest = self.automaton.ways(following).get(self.mask, 0)
            if index < found.size * rest:
                return found.at(index // rest), following, index % rest
            index -= found.size * rest
        raise IndexError(index)


_START: _States = frozenset({0})


def split_blocks(splits: Splits, owned: Owned) -> Iterator[tuple[int, Class]]:
    """The classes of blocks of one name; their words are those arguments that any of them gives."""
    blocks = [(bit, block) for bit, block in owned if isinstance(block, Block)]
    name = blocks[0][1].name
    given = {argument for _, block in blocks for argument, _ in block.arguments}
    spec = lookup(name)
    assert spec is not None, f"{name} has left the vocabulary"
    order = [parameter.name for parameter in spec.parameters if parameter.name in given]
    words = [
        (bit, [alternatives(settings[argument]) for argument in order])
        for bit, block in blocks
        for settings in (spec.settings(block),)
    ]
    return _split(splits, words, lambda values: block_of(name, zip(order, values, strict=True)))


def split_repeats(splits: Splits, owned: Owned) -> Iterator[tuple[int, Class]]:
    """The classes of repeats: a count, then a part."""
    words = [
        (bit, [alternatives(repeat.count), alternatives(repeat.body)])
        for bit, repeat in owned
        if isinstance(repeat, Repeat)
    ]
    return _split(splits, words, lambda values: Repeat(*values))  # pyright: ignore[reportArgumentType] -- a count and a part


def split_tied(splits: Splits, owned: Owned) -> Iterator[tuple[int, Class]]:
    """The classes of tied repeats."""
    words = [(bit, [(tied.body,)]) for bit, tied in owned if isinstance(tied, Tied)]
    return _split(splits, words, lambda values: Tied(*values))  # pyright: ignore[reportArgumentType] -- a repeat stays one


def split_series(splits: Splits, owned: Owned) -> Iterator[tuple[int, Class]]:
    """The classes of series, which may be of different lengths."""
    automaton = _Automaton(splits, lambda values: Series(tuple(values)))  # pyright: ignore[reportArgumentType] -- parts
    for bit, series in owned:
        assert isinstance(series, Series)
        automaton.chain_flat(series.parts, 0, automaton.state(bit))
    return _classes(automaton)


def _split(
    splits: Splits,
    words: Sequence[tuple[int, list[Alternatives]]],
    make: Callable[[list[Value]], Value],
) -> Iterator[tuple[int, Class]]:
    """The classes of words of one length, each with the bit of its set."""
    automaton = _Automaton(splits, make)
    for bit, parts in words:
        if parts:
            automaton.chain(parts, 0, automaton.state(bit))
        else:
            automaton.owners[0] |= bit
    return _classes(automaton)


def _classes(automaton: _Automaton) -> Iterator[tuple[int, Class]]:
    """The words of an automaton, by the sets that have them."""
    for mask, size in automaton.ways(_START).items():
        yield mask, _Words(automaton, mask, size)
