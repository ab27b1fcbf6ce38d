"""The page of one trial: its state, metrics, learning curve and settings.

The curve is shown beside the curves of other seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from ...studies.schema.factors import ABSENT, SEED, level_name, level_text
from ...studies.schema.settings import Level
from ...studies.study import Study
from ...studies.text.errors import command_line
from ..page.section_study import setting_texts, study_file_name
from .learning import (
    RECIPE,
    LearningCurves,
    Points,
    factor_names,
    finite,
    number,
    row_levels,
    small_plots,
    trial_levels,
)
from .store_reader import StudyNow

REPEATED = "repeated"
"""The store for repeating an ended trial, since a run does not train it again in its own store."""


def has_trial(now: StudyNow, trial: str) -> bool:
    """Return whether a study has a trial with this id: planned, unfinished or stored."""
    return any(each.id == trial for each in now.trials) or trial in now.outcomes["trial"]


def trial_values(
    now: StudyNow, trial: str, courses: pl.DataFrame, metric: str | None
) -> Mapping[str, object]:
    """Return the values for the template of a trial's page, by name.

    `courses` are the stored metrics of the study's trials. The curves are those of `metric` (default: the
    first available metric), one for each seed of the trial's cell.
    """
    rows = now.rows_by_trial()
    known = {name: row_levels(each) for name, each in rows.items()}
    known |= {each.id: trial_levels(each) for each in now.trials}
    levels, row = known[trial], rows.get(trial)
    begun = next((each for each in now.begun if each.trial.id == trial), None)
    planned = next((each for each in now.trials if each.id == trial), None)
    if planned is not None:
        settings = planned.settings.model_dump(mode="json")
    else:  # a search has no list of its trials
        settings = json.loads(row["settings"]) if row else {}
    measured = row["metrics"] if row else []
    state = row["status"] if row else "waiting"
    if begun is not None:
        state = "running" if begun.held else "begun"
    cell = _without_seed(levels)
    seeds = {name: each[SEED] for name, each in known.items() if _without_seed(each) == cell}
    return {
        "study": now.study,
        "levels": {name: level_name(levels[name]) for name in factor_names(now.study) if name in levels},
        "state": state,
        "epoch": begun.epoch if begun else None,
        "row": row,
        "reason": (row["reason"] or "").strip() if row else "",
        "metrics": [(each["name"], number(each["name"], each["value"])) for each in measured],
        "curves": _seed_curves(now, trial, seeds, courses, metric),
        "command": _repeat_command(now.study, levels, state),
        "settings": setting_texts(settings),
    }


def _without_seed(levels: Mapping[str, Level]) -> dict[str, Level]:
    return {name: level for name, level in levels.items() if name not in (SEED, RECIPE)}


def _seed_curves(
    now: StudyNow, shown_trial: str, seeds: Mapping[str, Level], courses: pl.DataFrame, metric: str | None
) -> LearningCurves | None:
    stored = courses.filter(pl.col("trial").is_in(list(seeds)))
    found: dict[str, dict[str, Points]] = {}
    for (name, trial), rows in stored.group_by("name", "trial", maintain_order=True):
        found.setdefault(str(name), {})[str(trial)] = list(rows.select("epoch", "value").iter_rows())
    for each in now.begun:
        for name, course in (each.note.course if each.note and each.trial.id in seeds else {}).items():
            found.setdefault(name, {})[each.trial.id] = course
    begun = {each.trial.id: each.trial.settings.train.epochs for each in now.begun}
    shown: dict[str, list[tuple[str, str, Points, int]]] = {}
    for name, by_trial in found.items():
        for trial in sorted(by_trial, key=lambda one: int(seeds[one])):
            course = finite(by_trial[trial])
            # a trial that ended after one epoch has no curve
            if len(course) > 1 or (course and trial in begun):
                last = begun.get(trial, course[-1][0])
                shown.setdefault(name, []).append((trial, f"seed {seeds[trial]}", course, last))
    return small_plots(now, shown, metric, first=shown_trial, live=not begun.keys().isdisjoint(seeds))


def _repeat_command(study: Study, levels: Mapping[str, Level], state: str) -> str:
    """Return the command that trains a trial of a grid again.

    It is "" for a search, which chooses its points itself.
    """
    if study.search is not None:
        return ""
    only = [
        f"{name}={level_text(levels[name])}"
        for name in factor_names(study)
        if levels.get(name) not in (None, ABSENT)
    ]
    seed = levels[SEED]
    return command_line(
        "study",
        "run",
        study_file_name(study),
        set=[*study.overrides, *([] if seed in study.seeds else [f"factors.seed=[{seed}]"])],
        only=only,
        retry_failed=state == "failed",
        results=REPEATED if state in ("done", "pruned") else None,
    )
