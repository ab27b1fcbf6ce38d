"""Blocks, repeats and series as words, read from left to right, split into classes.

An automaton reads a word part by part. It holds every alternative that still fits, so that a word is counted
once in however many ways it can be chosen (Rabin and Scott 1959, the subset construction).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..nodes import BlockNode, Node, RepeatNode, SeriesNode, TiedNode, Value
from ..vocabulary.registry import spec_of
from .partition_types import Alternatives, DisjointClass, SetSplitter, TaggedParts, alternatives, union_bits
from .rebuild import make_block

_States = frozenset[int]


@dataclass(slots=True)
class _Automaton:
    """States with edges; `owners` has, by state, the bits of the sets with words that end there."""

    splitter: SetSplitter
    make: Callable[[list[Value]], Value]
    edges: list[list[tuple[Alternatives, int]]] = field(default_factory=lambda: [[]])
    owners: list[int] = field(default_factory=lambda: [0])
    _transitions: dict[_States, list[tuple[DisjointClass, _States]]] = field(default_factory=dict)
    _word_counts: dict[_States, dict[int, int]] = field(default_factory=dict)

    def add_state(self, owner: int = 0) -> int:
        """A new state."""
        self.edges.append([])
        self.owners.append(owner)
        return len(self.edges) - 1

    def add_chain(self, parts: Sequence[Alternatives], source: int, target: int) -> None:
        """Let these parts, one after another, lead from a state to another."""
        for place, options in enumerate(parts, 1):
            following = target if place == len(parts) else self.add_state()
            self.edges[source].append((options, following))
            source = following

    def add_flattened_chain(self, parts: Sequence[Node], source: int, target: int) -> None:
        """The same for the parts of a series: a series among their options gives its own parts."""
        for place, part in enumerate(parts, 1):
            following = target if place == len(parts) else self.add_state()
            options = alternatives(part)
            if single := tuple(one for one in options if not isinstance(one, SeriesNode)):
                self.edges[source].append((single, following))
            for one in options:
                if isinstance(one, SeriesNode):
                    self.add_flattened_chain(one.parts, source, following)
            source = following

    def accepted_mask(self, states: _States) -> int:
        """The bits of the sets that have the word which was read up to these states."""
        return union_bits([self.owners[state] for state in states])

    def transitions(self, states: _States) -> list[tuple[DisjointClass, _States]]:
        """The classes that can be read next, and the states that each leads to."""
        if states not in self._transitions:
            targets: dict[Alternatives, set[int]] = {}
            for options, target in (edge for state in sorted(states) for edge in self.edges[state]):
                targets.setdefault(options, set()).add(target)
            self.splitter.count_steps(sum(map(len, targets.values())))
            leads = list(targets.values())
            self._transitions[states] = [
                (found, frozenset().union(*(lead for place, lead in enumerate(leads) if mask >> place & 1)))
                for mask, found in self.splitter.split(list(targets))
            ]
        return self._transitions[states]

    def word_counts(self, states: _States) -> dict[int, int]:
        """How many words go on from the states, by the bits of the sets that have them.

        The word that ends here counts too.
        """
        if states not in self._word_counts:
            mask = self.accepted_mask(states)
            counts = Counter({mask: 1} if mask else {})
            for found, following in self.transitions(states):
                for mask, count in self.word_counts(following).items():
                    counts[mask] += found.size * count
            self._word_counts[states] = counts
        return self._word_counts[states]


@dataclass(frozen=True, slots=True)
class _WordClass:
    """The words that exactly the sets of `mask` have."""

    automaton: _Automaton
    mask: int
    size: int

    def at(self, index: int) -> Value:
        """The word of that number: a word comes before those that go on from it."""
        values, states = list[Value](), _START_STATES
        while True:
            if self.automaton.accepted_mask(states) == self.mask:
                if index == 0:
                    return self.automaton.make(values)
                index -= 1
            found, states, index = self._step(states, index)
            values.append(found)

    def _step(self, states: _States, index: int) -> tuple[Value, _States, int]:
        """The next part of the word of that number, where it leads, and the number of the rest."""
        for found, following in self.automaton.transitions(states):
            rest = self.automaton.word_counts(following).get(self.mask, 0)
            if index < found.size * rest:
                return found.at(index // rest), following, index % rest
            index -= found.size * rest
        raise IndexError(index)


_START_STATES: _States = frozenset({0})


def split_blocks(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of blocks of one name; their words are those arguments that any of them gives."""
    blocks = [(bit, block) for bit, block in tagged if isinstance(block, BlockNode)]
    name = blocks[0][1].name
    given = {argument for _, block in blocks for argument, _ in block.arguments}
    spec = spec_of(name)
    order = [parameter.name for parameter in spec.parameters if parameter.name in given]
    words = [
        (bit, [alternatives(settings[argument]) for argument in order])
        for bit, block in blocks
        for settings in (spec.settings(block),)
    ]
    return _split(splitter, words, lambda values: make_block(name, zip(order, values, strict=True)))


def split_repeats(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of repeats: a count, then a part."""
    words = [
        (bit, [alternatives(repeat.count), alternatives(repeat.body)])
        for bit, repeat in tagged
        if isinstance(repeat, RepeatNode)
    ]
    return _split(splitter, words, lambda values: RepeatNode(*values))  # pyright: ignore[reportArgumentType] -- a count and a part


def split_tied(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of tied repeats."""
    words = [(bit, [(tied.body,)]) for bit, tied in tagged if isinstance(tied, TiedNode)]
    return _split(splitter, words, lambda values: TiedNode(*values))  # pyright: ignore[reportArgumentType] -- a repeat stays one


def split_series(splitter: SetSplitter, tagged: TaggedParts) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of series, which may be of different lengths."""
    automaton = _Automaton(splitter, lambda values: SeriesNode(tuple(values)))  # pyright: ignore[reportArgumentType] -- parts
    for bit, series in tagged:
        assert isinstance(series, SeriesNode)
        automaton.add_flattened_chain(series.parts, 0, automaton.add_state(bit))
    return _classes(automaton)


def _split(
    splitter: SetSplitter,
    words: Sequence[tuple[int, list[Alternatives]]],
    make: Callable[[list[Value]], Value],
) -> Iterator[tuple[int, DisjointClass]]:
    """The classes of words of one length, each with the bit of its set."""
    automaton = _Automaton(splitter, make)
    for bit, parts in words:
        if parts:
            automaton.add_chain(parts, 0, automaton.add_state(bit))
        else:
            automaton.owners[0] |= bit
    return _classes(automaton)


def _classes(automaton: _Automaton) -> Iterator[tuple[int, DisjointClass]]:
    """The words of an automaton, by the sets that have them."""
    for mask, size in automaton.word_counts(_START_STATES).items():
        yield mask, _WordClass(automaton, mask, size)
