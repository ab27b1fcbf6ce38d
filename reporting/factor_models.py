"""The linear model of a study's factors for one metric, and the levels that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from ..studies.schema.design import level_key
from ..studies.schema.settings import Level
from .observations import Observations
from .statistics.factor_effects import Contrast, FactorModel
from .statistics.factor_terms import TermColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyModel:
    """A model of the factors that vary, with the levels of each that have a value; None if nothing varies."""

    observations: Observations
    observed: Mapping[str, tuple[Level, ...]]
    model: FactorModel | None

    def level_means(self, *factors: str) -> dict[tuple[str, ...], Contrast]:
        """The mean at each level of a factor, or each combination of two, by their keys."""
        if self.model is None or any(len(self.observed[name]) < 2 for name in factors):
            return {}
        term = tuple(name for name in self.observed if name in factors)
        keys = product(*(map(level_key, self.observed[name]) for name in term))
        means = self.model.means(term)
        found = zip(keys, means, strict=True) if means else ()
        return {tuple(key[term.index(name)] for name in factors): mean for key, mean in found}


def model_factors(
    observations: Observations, factors: Mapping[str, tuple[Level, ...]], *, interactions: bool
) -> StudyModel:
    """The model of these factors, which have several levels each, over the values that there are."""
    observed = {name: observations.observed(levels, name) for name, levels in factors.items()}
    varied = [name for name, levels in observed.items() if len(levels) > 1]
    if not varied:
        return StudyModel(observations=observations, observed=observed, model=None)
    seeds = sorted({each.seed for each in observations.values})
    numbers = {name: {level_key(level): at for at, level in enumerate(observed[name])} for name in varied}
    columns = TermColumns(
        levels={
            name: [numbers[name][level_key(each.levels[name])] for each in observations.values]
            for name in varied
        },
        seeds=[seeds.index(each.seed) for each in observations.values],
        with_interactions=interactions,
    )
    model = FactorModel(columns, [each.value for each in observations.values])
    return StudyModel(observations=observations, observed=observed, model=model)
