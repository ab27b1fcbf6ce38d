"""How many architectures a search chooses from."""

from __future__ import annotations

from collections import Counter

from ...grammar import Cardinality, Space
from ...grammar.nodes import ChoiceDimension
from ..planning.fitting_trials import RecipeSpace
from ..resolve.template import HOLE_PATTERN, RECIPE_PATH
from ..schema.search import representative_values
from ..study import Study


def space_size(study: Study) -> Cardinality | None:
    """The number of different recipes of a search; None of a grid, and where recipes are no space.

    At most so many where a dimension may fill two holes of one recipe, which then have the same value.
    """
    if study.search is None or (pattern := RecipeSpace(study).pattern) is None:
        return None
    found = Space(pattern).count
    uses = _uses(study, study.template.texts[RECIPE_PATH])
    shared = any(uses[name] > 1 for name in study.dimensions)
    return Cardinality(forms=found.forms, infinite=found.infinite, exact=found.exact and not shared)


def has_too_few(study: Study, size: Cardinality) -> bool:
    """Whether a search of recipes alone asks for more points than there are architectures."""
    ends = {name: representative_values(dimension) for name, dimension in study.dimensions.items()}
    paths = (path for path in study.template.holes if path != RECIPE_PATH)
    elsewhere = {name for path in paths for name in study.template.names_at(path, {**study.factors, **ends})}
    points = study.search.trials if study.search else 0
    return size.members is not None and size.members < points and not elsewhere & study.dimensions.keys()


def _uses(study: Study, text: str) -> Counter[str]:
    """How often each name fills a hole of one recipe, at most."""
    found = Counter[str]()
    for name in HOLE_PATTERN.findall(text):
        inner = Counter[str]()
        for filling in _fillings(study, name):
            inner |= _uses(study, filling)
        found += Counter([name]) + inner
    return found


def _fillings(study: Study, name: str) -> list[str]:
    """The texts of which one fills a hole."""
    dimension = study.dimensions.get(name)
    if isinstance(dimension, ChoiceDimension):
        return [each for each in representative_values(dimension) if isinstance(each, str)]
    if dimension is not None:
        return []
    level = study.factors[name][0] if name in study.factors else study.template.fragments[name]
    return [level] if isinstance(level, str) else []
