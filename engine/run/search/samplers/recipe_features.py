"""Features of a search's points: similar recipes have a small distance.

The first features count the Weisfeiler-Lehman labels of the recipe's tree (Shervashidze et al. 2011). A label
is a node's name, then the name with its children's labels, and so on. Neighbours in a series are labels too,
following the data flow that Ru et al. (2021) label in networks. The values of the search's dimensions come
after these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .....grammar import RecipeError
from .....grammar.dimensions import option_label, resolve
from .....grammar.nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    HoleNode,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from .....studies.schema.settings import RECIPE_PATH, Level
from .....studies.study import Study

Numbers = NDArray[np.float64]

ROUNDS = 2
"""The number of rounds in which a node's label absorbs its children's labels."""

PLACES = 512
"""The number of hashed features of a tree."""

_KEPT = 1024
"""The number of points whose features are cached."""

_MAX_COPIES = 8
"""The maximum number of copies of a repeat that are labelled."""

Labels = tuple[int, ...]
"""A node's labels after each round."""

Occurrences = tuple[tuple[int, int], ...]
"""Labels with their counts."""


class RecipeFeatures:
    """The points of a study's search as feature vectors: first the features of the tree, then the values."""

    def __init__(self, study: Study) -> None:
        self._template = study.template
        recipe = self._template.expand(self._template.texts[RECIPE_PATH])
        self._root, self._has_dimensions = recipe.root, bool(recipe.dimensions)
        self._fixed = {name: levels[0] for name, levels in study.factors.items()}
        self._fillings: dict[Level, Value] = {}
        self._values = {name: _ValuePlaces(dimension) for name, dimension in study.dimensions.items()}
        ends = list(accumulate((each.size for each in self._values.values()), initial=PLACES))
        self._begins, self.size = dict(zip(self._values, ends, strict=False)), ends[-1]
        self._known: dict[frozenset[tuple[str, Level]], Numbers] = {}

    def of(self, points: Sequence[Mapping[str, Level]]) -> Numbers:
        """Return the feature matrix of points, a row for each."""
        keys = [frozenset(values.items()) for values in points]
        new = {key: values for key, values in zip(keys, points, strict=True) if key not in self._known}
        if len(self._known) + len(new) > _KEPT:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        if new:
            self._known |= zip(new, self._rows(list(new.values())), strict=True)
        return np.array([self._known[key] for key in keys]).reshape(-1, self.size)

    def _rows(self, points: Sequence[Mapping[str, Level]]) -> Numbers:
        found, counts = np.zeros((len(points), self.size)), [self.labels(each) for each in points]
        labels = np.array([*chain.from_iterable(counts)], dtype=np.int64)
        occurs = np.array([*chain.from_iterable(each.values() for each in counts)], dtype=np.float64)
        places = labels % PLACES + np.repeat(PLACES * np.arange(len(points)), [len(each) for each in counts])
        counted = np.bincount(places, weights=occurs, minlength=PLACES * len(points))
        np.sqrt(counted.reshape(-1, PLACES), out=found[:, :PLACES])
        for row, values in enumerate(points):
            for name, value in values.items():
                begin = self._begins[name]
                for place, number in self._values[name].of(value):
                    found[row, begin + place] = number
        return found

    def labels(self, values: Mapping[str, Level]) -> dict[int, int]:
        """Return the count of each label in the tree of a point's recipe."""
        levels, root = {**self._fixed, **values}, self._root
        if self._has_dimensions:
            root = resolve(root, levels.get)
        walk = _LabelWalk(lambda name: self._filling(levels[name]))
        walk.node(root)
        return walk.counts

    def _filling(self, level: Level) -> Value:
        """Return the filling of a hole: a part of a recipe if the level can be parsed as one."""
        if level not in self._fillings:
            try:
                self._fillings[level] = self._template.expand(str(level)).root
            except RecipeError:
                self._fillings[level] = level
        return self._fillings[level]


class _LabelWalk:
    def __init__(self, filling: Callable[[str], Value]) -> None:
        self._filling = filling
        self.counts: dict[int, int] = {}
        self._times = 1  # how often there is what is walked

    def node(self, node: Value) -> Labels:
        """Return the labels of a node; all labels inside are counted."""
        match node:
            case HoleNode():
                return self.node(self._filling(node.name))
            case BlockNode():
                return self._block(node)
            case SumNode():
                return self._label("+", sorted(self.node(part) for part in node.parts))
            case SeriesNode() | RepeatNode():
                parts = self.parts(node)
                self._count([hash((before[1], after[1])) for before, after in pairwise(parts)])
                return self._label(">>", parts)
            case TiedNode():
                return self._label("tied", [self.node(node.body)])
            case _:
                return _leaf(node)

    def _block(self, node: BlockNode) -> Labels:
        """Return the labels of a block; they are cached if all its arguments are numbers and words."""
        arguments = tuple((name, self._filled(value)) for name, value in node.arguments)
        if not all(isinstance(value, int | float | str) for _, value in arguments):
            return self.labels_of(node.name, arguments)
        labels, occurrences = _plain_block(node.name, arguments)
        for label, occurs in occurrences:
            self.counts[label] = self.counts.get(label, 0) + occurs * self._times
        return labels

    def _filled(self, value: Value) -> Value:
        return self._filling(value.name) if isinstance(value, HoleNode) else value

    def parts(self, node: Value) -> list[Labels]:
        """Return the labels of a series' parts, with copies written out."""
        match node:
            case HoleNode():
                return self.parts(self._filling(node.name))
            case SeriesNode():
                return [labels for part in node.parts for labels in self.parts(part)]
            case RepeatNode():
                count = self._filled(node.count)
                copies = min(int(count), _MAX_COPIES) if isinstance(count, int) else 1
                self._times, outside = self._times * copies, self._times
                parts = self.parts(node.body)
                self._times = outside
                return parts * copies
            case _:
                return [self.node(node)]

    def labels_of(self, name: str, arguments: Iterable[tuple[str, Value]]) -> Labels:
        """Return the labels of a block; all labels inside are counted."""
        return self._label(name, [self._label(each, [self.node(value)]) for each, value in arguments])

    def _label(self, name: str, inner: Sequence[Labels]) -> Labels:
        labels = [_hash(name)]
        for place in range(ROUNDS):
            labels.append(hash((labels[-1], *[each[place] for each in inner])))
        self._count(labels)
        return tuple(labels)

    def _count(self, labels: Iterable[int]) -> None:
        counts, times = self.counts, self._times
        for label in labels:
            counts[label] = counts.get(label, 0) + times


class _ValuePlaces:
    def __init__(self, dimension: Dimension) -> None:
        options = dimension.options if isinstance(dimension, ChoiceDimension) else ()
        self._places = {option_label(option): place for place, option in enumerate(options)}
        self.size = len(options) or 2
        if not isinstance(dimension, ChoiceDimension):
            self._log = dimension.log
            low, high = (math.log(end) if dimension.log else end for end in (dimension.low, dimension.high))
            self._low, self._turn = low, math.pi / 2 / (high - low or 1)

    def of(self, value: Level) -> list[tuple[int, float]]:
        """Return feature indices and values: a one-hot option, or a number as a point of a quarter circle."""
        if self._places:
            return [(self._places[value], 1.0)]
        angle = self._turn * ((math.log(float(value)) if self._log else float(value)) - self._low)
        return [(0, math.cos(angle)), (1, math.sin(angle))]


@lru_cache(maxsize=4096)
def _plain_block(name: str, arguments: tuple[tuple[str, Value], ...]) -> tuple[Labels, Occurrences]:
    walk = _LabelWalk(_no_filling)
    labels = walk.labels_of(name, arguments)
    return labels, tuple(walk.counts.items())


def _no_filling(name: str) -> Value:
    raise AssertionError(f"a hole: {name}")


def _leaf(value: Value) -> Labels:
    """Return the label of a number or a word; all real numbers share one, since none occurs twice."""
    return (_hash("real" if isinstance(value, float) else str(value)),) * (ROUNDS + 1)


@cache
def _hash(text: str) -> int:
    return crc32(text.encode())
