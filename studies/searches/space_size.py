"""Sizes of search spaces: how many architectures a search chooses from."""

from __future__ import annotations

from collections import Counter

from ...grammar import Cardinality, Space
from ...grammar.nodes import ChoiceDimension
from ..planning.fitting_trials import RecipeSpace
from ..resolve.study_budget import StudyBudget
from ..resolve.template import HOLE_PATTERN, RECIPE_PATH
from ..schema.search import representative_values
from ..study import Study
from ..text.units import plural


def space_size(study: Study) -> Cardinality | None:
    """Return the number of different recipes of a search; None for a grid, or if recipes are no space.

    It is an upper bound if a dimension may fill two holes of one recipe, which then have the same value.
    """
    if study.search is None or (pattern := RecipeSpace(study).pattern) is None:
        return None
    found = Space(pattern).count
    uses = _uses(study, study.template.texts[RECIPE_PATH])
    shared = any(uses[name] > 1 for name in study.dimensions)
    return Cardinality(forms=found.forms, infinite=found.infinite, exact=found.exact and not shared)


def space_words(study: Study) -> str:
    """Return how large a search's space is in words, and that it is too small for its number of points.

    For example `54 architectures` or `2 points, fewer than the 6 asked for: …`; empty if neither is known.
    """
    if study.search is None:
        return ""
    size, points = space_size(study), study.num_points
    words = [str(size)] if size is not None else []
    if points < study.search.trials:
        allowed = " within the budget" if study.budget != StudyBudget() else ""
        fewer = f"fewer than the {study.search.trials:,} asked for"
        words.append(f"{plural(points, 'point')}{allowed}, {fewer}: a run ends when it has tried all of them")
    return "; ".join(words)


def _uses(study: Study, text: str) -> Counter[str]:
    """Return how often each name fills a hole of one recipe, at most."""
    found = Counter[str]()
    for name in HOLE_PATTERN.findall(text):
        inner = Counter[str]()
        for filling in _fillings(study, name):
            inner |= _uses(study, filling)
        found += Counter([name]) + inner
    return found


def _fillings(study: Study, name: str) -> list[str]:
    """Return the texts of which one fills a hole."""
    dimension = study.dimensions.get(name)
    if isinstance(dimension, ChoiceDimension):
        return [each for each in representative_values(dimension) if isinstance(each, str)]
    if dimension is not None:
        return []
    level = study.factors[name][0] if name in study.factors else study.template.fragments[name]
    return [level] if isinstance(level, str) else []
