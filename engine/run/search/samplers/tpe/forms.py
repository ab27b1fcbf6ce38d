"""Which dimensions a point takes, known by the options that it chooses.

A study tells that of one point at a time. Options that bring the same holes into a recipe lead to the same
dimensions, so that it is asked once for all points whose options differ in nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution

from ......grammar.dimensions import option_label
from ......grammar.nodes import ChoiceDimension, Dimension
from ......studies.schema.settings import Level
from ......studies.study import Study

_DIMENSION = re.compile(r"\b(choice|integer|real)\(")


class Forms:
    """Which dimensions of a study's search the points take that have such values."""

    def __init__(self, study: Study, space: Mapping[str, BaseDistribution]) -> None:
        self._choose, self._space = study.choose, space
        self._axes = {name: axis for axis, name in enumerate(space)}
        self._kinds = dict[int, list[int]]()  # of the options of a choice that decides, by its axis
        for name, dimension in study.dimensions.items():
            if isinstance(dimension, ChoiceDimension):
                brought = [_brought_by(study, option_label(option)) for option in dimension.options]
                if len(set(brought)) > 1:
                    self._kinds[self._axes[name]] = [brought.index(each) for each in brought]
        self._known = dict[tuple[int, ...], int | NDArray[np.bool_]]()  # the next choice, or the dimensions

    def taken(self, row: Sequence[float]) -> NDArray[np.bool_]:
        """Whether a point takes each dimension; its row has a number of each that it may take."""
        kinds: tuple[int, ...] = ()
        while isinstance(found := self._known.get(kinds), int):
            kinds += (self._kinds[found][int(row[found])],)
        return self._ask(row) if found is None else found

    def _ask(self, row: Sequence[float]) -> NDArray[np.bool_]:
        """The same, as the study has it."""
        kinds: tuple[int, ...] = ()

        def value(name: str, dimension: Dimension) -> Level:
            nonlocal kinds
            del dimension
            axis = self._axes[name]
            if axis in self._kinds:
                self._known[kinds] = axis
                kinds += (self._kinds[axis][int(row[axis])],)
            return level_of(self._space[name], row[axis])

        taken = self._choose(value)
        self._known[kinds] = found = np.array([name in taken for name in self._space])
        return found


def level_of(dimension: BaseDistribution, number: float) -> Any:  # noqa: ANN401 -- a value of any kind
    """What a number stands for inside of Optuna."""
    return dimension.to_external_repr(number)


def _brought_by(study: Study, option: Level) -> tuple[str, ...]:
    """What an option brings along: its holes, or itself if it has dimensions, which no other option has."""
    names = study.template.names_in_level(option)
    return (*names, str(option)) if _DIMENSION.search(str(option)) else tuple(names)
