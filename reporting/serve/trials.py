"""The trials of a study as a list: those that train, and then those that have ended."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from ...storage.rows import row_values
from ...studies.catalog.metrics import METRICS
from ...studies.schema.factors import SEED, level_name, value_name
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.units import format_duration
from ..search.promotion import RECIPE, column_names
from .study_now import StudyNow

MAX_METRICS = 4
"""The maximum number of metrics in a trial's line."""

MAX_LINES = 100
"""The maximum number of trials in the list."""


def trial_list(now: StudyNow) -> dict[str, object]:
    """Return the factors and the lines of the list, and how many trials it leaves out.

    The trials that train come first, then those that nobody trains now, then those that ended last.
    """
    study, lines = now.study, list[dict[str, object]]()
    for each in (*now.running, *now.stopped):
        settings = each.trial.settings
        levels = {**each.trial.levels, SEED: settings.seed, RECIPE: settings.model.recipe}
        lines.append(
            {
                "trial": each.trial.id,
                "levels": _level_words(study, levels),
                "state": "running" if each.held else "begun",
                "epochs": f"{each.epoch}/{settings.train.epochs}",
                "metrics": metric_words(each.metrics, study.metrics),
                "time": "",
                "moment": each.note.saved_at if each.note else None,
            }
        )
    begun = {each.trial.id for each in now.begun}
    ended = [row for row in now.ended.iter_rows(named=True) if row["trial"] not in begun]
    ended.sort(key=lambda row: row["finished"], reverse=True)
    more = max(0, len(lines) + len(ended) - MAX_LINES)
    for row in ended[: max(0, MAX_LINES - len(lines))]:
        levels = {SEED: row["seed"], **json.loads(row["factors"]), RECIPE: row["recipe"]}
        lines.append(
            {
                "trial": row["trial"],
                "levels": _level_words(study, levels),
                "state": row["status"],
                "epochs": f"{row['epochs']:,}",
                "metrics": metric_words(row_values(row), study.metrics),
                "time": format_duration(row["seconds"]),
                "moment": row["finished"],
            }
        )
    return {"factors": _factor_names(study), "lines": lines[:MAX_LINES], "more": more}


def _factor_names(study: Study) -> list[str]:
    """Return the factors that distinguish a study's trials; for a search mainly recipe and seed."""
    if (search := study.search) is not None:
        rungs = [search.rungs.name] if search.rungs.rungs else []
        return [*column_names(study), *search.settings.across, *rungs, SEED]
    varied = {name for name, levels in study.factors.items() if len(levels) > 1}
    varied |= {SEED} if study.later_seeds else set()
    return [name for name in study.factors if name in varied]


def _level_words(study: Study, levels: Mapping[str, Level]) -> list[str]:
    """Return a trial's levels as text, "" for a factor that the trial does not have.

    A search chooses numbers with many digits, which are rounded as in tables.
    """
    shown = level_name if study.search is None else value_name
    return [shown(levels[name]) if name in levels else "" for name in _factor_names(study)]


def metric_words(metrics: Mapping[str, float], own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the names and values of at most MAX_METRICS metrics to show, those in `own` first."""
    first = [name for name in own if name in metrics]
    known = [name for name in METRICS if name in metrics]
    others = [name for name in (*known, *sorted(set(metrics).difference(METRICS))) if "[" not in name]
    return [(name, _number(name, metrics[name])) for name in dict.fromkeys([*first, *others])][:MAX_METRICS]


def _number(name: str, value: float) -> str:
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return METRICS[name].format(value) if name in METRICS else f"{value:,.4g}".replace("-", "−")
