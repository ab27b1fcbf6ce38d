"""A figure's data from a study, the specification of the figure and the store's frames."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from ...studies.presentation.kinds import CurveKind
from ...studies.study import Study
from ..provenance import stale_sentence
from .curve import Curve, CurveError


def build_curve(
    study: Study, spec: CurveKind, outcomes: pl.DataFrame, metrics: pl.DataFrame | None = None
) -> Curve:
    """Return the figure that `spec` describes, from the store's latest attempts at the study's trials.

    `metrics` are those of these trials in the store, needed if `spec.needs_history`. CurveError if the
    specification does not fit the study.
    """
    spec = spec.with_levels(study.design)
    if wrong := list(spec.faults(study.design, study.paper)):
        faults = (f"curve {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise CurveError("\n".join(faults))
    curve, sentence = spec.curve(study, outcomes, metrics), stale_sentence(study, outcomes)
    return replace(curve, notes=(*curve.notes, sentence)) if sentence else curve
