"""The study that tests a search's best points and its baseline on fresh seeds.

The best of many noisy points owes part of its lead to noise. So claims about the best points are decided by
trainings that the search has not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import ActivememError
from ...studies.catalog.metrics import METRICS_AND_COSTS, SPLITS, find_metric
from ...studies.resolve.template import TRIAL_TABLES, iter_texts
from ...studies.schema.factors import HOLE_PATTERN, SEED, one_line
from ...studies.schema.limits import is_known_before
from ...studies.schema.reported_metrics import missing_metric
from ...studies.schema.search_settings import (
    DATA,
    EPOCHS,
    LENGTH,
    SearchObjective,
)
from ...studies.schema.settings import RECIPE_PATH, Level
from ...studies.searches.points import FoundPoint, SearchPoints, point_key
from ...studies.study import Study
from ...studies.text.document import iter_leaves
from ...studies.text.toml_positions import toml_comment, toml_key, toml_table, toml_value
from ...studies.text.units import listed, plural

FRESH_SEEDS = 5
"""The default number of fresh seeds of each cell."""

POINT, RECIPE, BASELINE = "point", "recipe", "baseline"
"""The factors of the new study, and the first factor's level for the baseline."""

_KEPT = ("paper", "small", "keep_weights", "keep_checkpoints")
"""The [study] keys that are copied to the new study."""


class PromotionError(ActivememError):
    """Error if a study of the best points cannot be written."""


def winners_text(
    study: Study,
    found: SearchPoints,
    *,
    name: str,
    best: int,
    seeds: int,
    stored: Mapping[str, int],
) -> str:
    """Return a study file with the baseline, the best points, and claims about the best points.

    `stored` has the seeds of stored trials, by trial; the study `name` gets seeds that its cells do not have.
    """
    refuse_ties(study, found)
    search = study.search
    assert search is not None, "only a search has best points"
    baseline, winners = search.baseline, find_winners(study, found, best)
    if not winners:
        other = " other than its baseline" if found.complete else ""
        raise PromotionError(
            f"no point of {study.name}{other} has values for all of its seeds yet: run the study first"
        )
    if not baseline and len(winners) < 2:
        raise PromotionError(
            f"expected a comparison for the best point of {study.name}: [study] baseline = {{ … }},"
            " or --best of at least 2; got neither"
        )
    data = study.document.data
    names = {f"best_{number}": point.values for number, point in enumerate(winners, 1)}
    cells = ({BASELINE: baseline} if baseline else {}) | names
    notes = {name: _measured_words(point, found) for name, point in zip(names, winners, strict=True)}
    parts = [
        *_preface(study, found, len(winners), seeds, has_baseline=bool(baseline)),
        toml_table("[study]", {"name": name, **_header(study, data, len(winners), seeds)}),
        *trial_tables(data, f"{{{RECIPE}}}"),
        toml_table("[factors]", {SEED: fresh_seeds(study, cells.values(), seeds, stored)}),
        *(
            _cell(study, name, at, values=values, note=notes.get(name, "the first point of the search"))
            for name, values in cells.items()
            for at in search.across
        ),
        _shown(study, found, has_baseline=bool(baseline)),
        *_claims(study, found, winners, baseline),
        *sources_table(
            study,
            data,
            {
                "factors": {SEED: f"ours: fresh, not used by the search {study.name}"},
                "cells": f"ours: a result of the search {study.name}",
            },
        ),
    ]
    return "\n".join(parts)


def find_winners(study: Study, found: SearchPoints, best: int) -> list[FoundPoint]:
    """Return up to `best` of a search's best points, without the baseline."""
    assert study.search is not None
    own = point_key(study.search.baseline)
    return [point for point in found.ranked() if point.key != own][:best]


def find_baseline(study: Study, found: SearchPoints) -> FoundPoint | None:
    """Return the search point of the baseline, if there is one and all of its seeds are done."""
    if study.search is None or not study.search.baseline:
        return None
    key = point_key(study.search.baseline)
    return next((point for point in found.complete if point.key == key), None)


def baseline_lead(study: Study, found: SearchPoints, best: int) -> Iterator[str]:
    """Yield a sentence on each trained objective in which some best points do not beat the baseline."""
    if (baseline := find_baseline(study, found)) is None:
        return
    winners = {f"best_{number}": point for number, point in enumerate(find_winners(study, found, best), 1)}
    for goal in found.goals:
        behind = {name: point for name, point in winners.items() if not _beats(point, baseline, goal)}
        if behind and not is_known_before(goal.name):
            shown = {**behind, "the baseline": baseline}.items()
            values = ", ".join(
                f"{name} {find_metric(goal.name).format(point.mean(goal.name) or 0.0)}"
                for name, point in shown
            )
            beat = f"{listed(behind)} did not beat the baseline in {goal.name}"
            yield f"in the search, {beat}: {values}"


def _beats(point: FoundPoint, other: FoundPoint | None, goal: SearchObjective) -> bool:
    """Return whether a point has a better mean than another one, or than one that is not known."""
    return other is None or goal.sign * ((point.mean(goal.name) or 0.0) - (other.mean(goal.name) or 0.0)) > 0


def refuse_ties(study: Study, found: SearchPoints) -> None:
    """Raise PromotionError if all points have the same results. Then there is no best point."""
    measured = {tuple(point.mean(goal.name) for goal in found.goals) for point in found.complete}
    if len(found.complete) > 1 and len(measured) == 1:
        raise PromotionError(f"{study.name}: all points have the same results; nothing to promote")


def fresh_seeds(
    study: Study, points: Iterable[Mapping[str, Level]], count: int, stored: Mapping[str, int]
) -> list[int]:
    """Return seeds that the search has not used. No study in the store has trained these points with them."""
    search = study.search
    assert search is not None
    points, first = list(points), max(search.baseline_seeds) + 1
    for seed in sorted({each for each in stored.values() if each >= first}):
        if seed >= first + count:
            break
        trials = (search.trial_of(values, seed, at) for values in points for at in search.across)
        if any(trial.id in stored for trial in trials):
            first = seed + 1
    return list(range(first, first + count))


def trial_tables(data: Mapping[str, Any], recipe: str) -> list[str]:
    """Return [model], [task], [train] and any [decode] of a search as TOML, with a new recipe."""
    tables = {name: data[name] for name in (*TRIAL_TABLES, "decode") if name in data}
    tables["model"] = {**data["model"], "recipe": recipe}
    return [toml_table(f"[{name}]", table) for name, table in tables.items()]


def outer_names(study: Study) -> set[str]:
    """Return the holes that occur outside the recipe, and those in the levels that fill them."""
    names = {
        hole
        for path, text in iter_texts(study.template.tables)
        if path != RECIPE_PATH
        for hole in HOLE_PATTERN.findall(text)
    }
    levels = [level for name in names for level in study.factors.get(name, ()) if isinstance(level, str)]
    return names | {hole for level in levels for hole in HOLE_PATTERN.findall(level)}


def sources_table(study: Study, data: Mapping[str, Any], added: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table [source] of the new study file, if the search has one: the origins of all settings."""
    if "source" not in data:
        return
    kept = {
        name: value for name, value in data["source"].items() if name not in ("recipes", "factors", "cells")
    }
    for change in study.document.overrides:
        table, *path = change.partition("=")[0].split(".")
        if table in TRIAL_TABLES and path and isinstance(kept.get(table, {}), dict):
            at = kept[table] = dict(kept.get(table, {}))
            at[".".join(path) if len(path) == 1 else path[0]] = "ours: set for the search"
    leaves = iter_leaves((), {**kept, **added})
    lines = [
        f"{'.'.join(toml_key(str(each)) for each in path)} = {toml_value(value)}" for path, value in leaves
    ]
    yield "\n".join(["[source]", *lines, ""])


def _preface(
    study: Study, found: SearchPoints, winners: int, seeds: int, *, has_baseline: bool
) -> Iterator[str]:
    what = "The best point" if winners == 1 else f"The {winners} best points"
    beside = " and its baseline" if has_baseline else ""
    yield toml_comment(
        f"{what} of the search {study.name}, of {len(found.complete)}, trained again{beside} on"
        f" {plural(seeds, 'fresh seed')}."
    )
    for lead in baseline_lead(study, found, winners):
        yield toml_comment(f"{lead[0].upper()}{lead[1:]}.")
    yield toml_comment(
        "The best of many noisy points owes part of its lead to noise, so "
        "the claims use only the trainings of"
        " this study. With activemem study run FILE --until-decided seeds are added"
        " while a claim is undecided."
    )
    for goal, claimed in zip(found.goals, _reported(study, found), strict=True):
        split = goal.name.partition("_")[0]
        if goal != claimed:
            yield toml_comment(f"{claimed.name} is claimed, because the dev split has chosen the points.")
        elif split in SPLITS:
            yield toml_comment(f"The {split} split has chosen the points, so {goal.name} flatters them.")
    yield ""


def _header(study: Study, data: Mapping[str, Any], winners: int, seeds: int) -> dict[str, Any]:
    what = "the best point holds" if winners == 1 else f"the {winners} best points hold"
    return {
        "title": f"Whether {what} on fresh seeds: {one_line(study.title)}",
        **{key: data["study"][key] for key in _KEPT if key in data["study"]},
        "labels": [POINT],
        "max_seeds": 3 * seeds,
    }


def _fixed(study: Study) -> dict[str, Level]:
    has_rungs = study.search is not None and study.search.rungs.rungs
    made = (EPOCHS, LENGTH, DATA) if has_rungs else ()  # the file has no holes for these
    names = outer_names(study).difference(study.dimensions, (SEED, *made))
    return {name: levels[0] for name, levels in study.factors.items() if name in names}


def _cell(study: Study, name: str, at: Mapping[str, Level], *, values: Mapping[str, Level], note: str) -> str:
    """Return a search point as `[[cells]]` of TOML: its name, its complete recipe, and other levels."""
    assert study.search is not None
    needed = outer_names(study)
    trial = study.search.trial_of(values, study.seeds[0], at)
    others = {key: _filled(value, values) for key, value in values.items() if key in needed}
    own = {
        key: study.template.written_level(key, level)
        for key, level in ({**_fixed(study), **at} | others).items()
    }
    cell = {POINT: name, RECIPE: trial.settings.model.recipe, **own}
    return toml_table(f"[[cells]]  # {note}", cell)


def _filled(value: Level, values: Mapping[str, Level]) -> Level:
    if not isinstance(value, str):
        return value
    return HOLE_PATTERN.sub(lambda hole: str(values.get(hole[1], hole[0])), value)


def _measured_words(point: FoundPoint, found: SearchPoints) -> str:
    known = [(goal.name, value) for goal in found.goals if (value := point.mean(goal.name)) is not None]
    words = ", ".join(f"{name} {find_metric(name).format(value)}" for name, value in known)
    return f"in the search {words} over {plural(point.seeds, 'seed')}"


def _shown(study: Study, found: SearchPoints, *, has_baseline: bool) -> str:
    across = study.search.settings.across if study.search else ()
    goals = [goal.name for goal in found.goals if goal.name in METRICS_AND_COSTS]
    goals += [each.name for each in _reported(study, found) if each.name in METRICS_AND_COSTS]
    keys: dict[str, Any] = {"name": "winners", "rows": POINT} | ({"columns": across[0]} if across else {})
    keys |= {"value": list(dict.fromkeys([*goals, "parameters"]))}
    return toml_table("[[table]]", keys | ({BASELINE: BASELINE} if has_baseline else {}))


def _reported(study: Study, found: SearchPoints) -> list[SearchObjective]:
    """Return the objectives, each on the test split if the search has used its value on the dev split.

    The dev split has chosen the points, so its values flatter them.
    """
    settings = [trial.settings for trial in study.examples]
    tested = [replace(goal, name=goal.name.replace("dev_", "test_", 1)) for goal in found.goals]
    return [
        test if goal.name.startswith("dev_") and not missing_metric(test.name, settings) else goal
        for goal, test in zip(found.goals, tested, strict=True)
    ]


def _claims(
    study: Study, found: SearchPoints, winners: Sequence[FoundPoint], baseline: Mapping[str, Level]
) -> Iterator[str]:
    """Yield a claim for each best point: that it beats the baseline.

    With several objectives, it is about those in which the point does so in the search, if any does. If the
    search has no baseline, the claim is that the first winner is the best.
    """
    reported = zip(found.goals, _reported(study, found), strict=True)
    measured = [(goal, claimed) for goal, claimed in reported if not is_known_before(goal.name)]
    across = study.search.settings.across if study.search else ()
    if baseline:
        start = find_baseline(study, found)
        every = [(number, point, goals) for number, point in enumerate(winners, 1) for goals in measured]
        ahead = [each for each in every if _beats(each[1], start, each[2][0])]
        for number, _, (_, goal) in ahead if ahead and len(found.goals) > 1 else every:
            yield _claim(f"best_{number}", BASELINE, goal, _cell_of(goal, BASELINE, across), across)
        return
    for _, goal in measured[:1]:
        others = [_cell_of(goal, f"best_{number}", across) for number in range(2, len(winners) + 1)]
        against = f"{'max' if goal.sign > 0 else 'min'}({', '.join(others)})" if others[1:] else others[0]
        yield _claim("best_1", "the others" if others[1:] else "best_2", goal, against, across)


def _claim(point: str, other: str, goal: SearchObjective, against: str, across: Sequence[str]) -> str:
    sign, word = (">", "higher") if goal.sign > 0 else ("<", "lower")
    return toml_table(
        "[[claim]]",
        {
            "name": f"{point} has a {word} {goal.name} than {other}",
            "holds": f"{_cell_of(goal, point, across)} {sign} {against}",
        },
    )


def _cell_of(goal: SearchObjective, point: str, across: Sequence[str]) -> str:
    if not across:
        return f"{goal.name}[{POINT}={point}]"
    at = "".join(f", {name}=at_{name}" for name in across)
    return f"mean({goal.name}[{POINT}={point}{at}] {' '.join(f'for at_{name} in {name}' for name in across)})"


def column_names(study: Study) -> list[str]:
    """Return the columns that describe a search's points: a varied recipe, and dimensions outside it."""
    outer, inner = outer_names(study), study.template.names_at(RECIPE_PATH, study.factors)
    varies = any(name in inner or name not in outer for name in study.dimensions)
    names = [name for name in study.dimensions if name in outer]
    return list(dict.fromkeys([RECIPE, *names] if varies else names))
