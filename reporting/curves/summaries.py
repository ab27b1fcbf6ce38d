"""A figure whose marks are over many cells of a design, by its kind."""

from __future__ import annotations

import polars as pl

from ...studies.presentation.effect_figures import EffectsCurveSpec, InteractionSpec
from ...studies.presentation.scaling import ScalingSpec
from ...studies.presentation.scores import ProfileSpec
from ...studies.presentation.search import SEARCH_SPECS, SearchCurveSpec
from ...studies.study import Study
from .curve import Curve
from .effect_figures import effect_figure
from .profiles import profile_figure
from .scaling import scaling_figure
from .search.build import search_figure


def summary_figure(
    study: Study,
    spec: EffectsCurveSpec | InteractionSpec | ProfileSpec | ScalingSpec | SearchCurveSpec,
    outcomes: pl.DataFrame,
) -> Curve:
    """The figure that `spec` describes, which fits the study, over its trials in `outcomes`."""
    if isinstance(spec, ProfileSpec):
        return profile_figure(study, spec, outcomes)
    if isinstance(spec, ScalingSpec):
        return scaling_figure(study, spec, outcomes)
    if isinstance(spec, SEARCH_SPECS):
        return search_figure(study, spec, outcomes)
    return effect_figure(study, spec, outcomes)
