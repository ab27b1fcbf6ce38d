"""The study that confirms a search's result: its best points and its baseline on fresh seeds.

The best of many noisy points owes part of its lead to noise. So claims about it are decided by trainings that
the search has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import ActivememError
from ...studies.catalog.metrics import METRICS_AND_COSTS, find_metric
from ...studies.resolve.template import HOLE_PATTERN, TRIAL_TABLES, iter_texts
from ...studies.schema.factors import SEED, one_line
from ...studies.schema.search_settings import DATA, EPOCHS, LENGTH, SearchObjective, is_known_before
from ...studies.schema.settings import RECIPE_PATH, Level
from ...studies.searches.points import FoundPoint, SearchPoints, point_key
from ...studies.study import Study
from ...studies.text.document import parse_document
from ...studies.text.toml_positions import toml_comment, toml_leaves, toml_table
from ...studies.text.units import plural

FRESH_SEEDS = 5
"""The default number of seeds of a winner."""

POINT, RECIPE, BASELINE = "point", "recipe", "baseline"
"""The factors of the new study, and the first factor's level for the baseline."""

_KEPT = ("paper", "keep_weights", "keep_checkpoints")
"""The [study] keys that are copied to the new study."""


class PromotionError(ActivememError):
    """A study of winners cannot be written; the message says what is missing."""


def winners_text(study: Study, found: SearchPoints, *, best: int, seeds: int = FRESH_SEEDS) -> str:
    """Return a study file with the baseline, the best points, and a claim for each."""
    refuse_ties(study, found)
    baseline, winners = study.baseline, find_winners(study, found, best)
    if not winners:
        other = "no other point than its baseline" if found.complete else "no point"
        raise PromotionError(f"{study.name} has {other} yet whose seeds all have a value: run it first")
    if not baseline and len(winners) < 2:
        raise PromotionError(
            f"expected a comparison for the best point of {study.name}: [study] baseline = {{ … }},"
            " or --best of at least 2; got neither"
        )
    data = parse_document(study.name, study.text, study.overrides).data
    names = {f"best_{number}": point.values for number, point in enumerate(winners, 1)}
    cells = ({BASELINE: baseline} if baseline else {}) | names
    notes = {name: _measured_words(point, found) for name, point in zip(names, winners, strict=True)}
    parts = [
        *_preface(study, found, len(winners), seeds, has_baseline=bool(baseline)),
        toml_table("[study]", _header(study, data, len(winners), seeds)),
        *trial_tables(study, data, f"{{{RECIPE}}}"),
        toml_table("[factors]", {SEED: fresh_seeds(study, seeds)}),
        *(
            _cell(
                study,
                name,
                at,
                values=values,
                note=notes.get(name, "the first point of the search"),
            )
            for name, values in cells.items()
            for at in study.point_levels
        ),
        *_shown(study, found, has_baseline=bool(baseline)),
        *_claims(study, found, winners, baseline),
        *_sources(study, data),
    ]
    return "\n".join(parts)


def find_winners(study: Study, found: SearchPoints, best: int) -> list[FoundPoint]:
    """Return the best points other than the baseline, at most `best` of them."""
    return [point for point in found.ranked() if point.key != point_key(study.baseline)][:best]


def refuse_ties(study: Study, found: SearchPoints) -> None:
    """Raise PromotionError if all points of a search have equal objectives."""
    points = found.complete
    measured = {tuple(point.mean(goal.name) for goal in found.goals) for point in points}
    if len(points) < 2 or len(measured) > 1:
        return
    others = len(find_winners(study, found, len(points)))
    values = " and ".join(_goal_words(goal.name, points[0]) for goal in found.goals)
    beside = " with the baseline" if others < len(points) else ""
    count = f"all {others} points tie" if others > 1 else "the only point ties"
    raise PromotionError(f"{study.name}: {count}{beside} at {values}; nothing to promote")


def fresh_seeds(study: Study, count: int) -> list[int]:
    """Return seeds that the search has not used."""
    first = max(study.point_seeds(study.baseline)) + 1
    return list(range(first, first + count))


def trial_tables(study: Study, data: Mapping[str, Any], recipe: str) -> list[str]:
    """Return [model], [task], [train] and [decode] as in the study's file, with another recipe."""
    tables = {name: dict(data[name]) for name in TRIAL_TABLES}
    tables["model"]["recipe"] = recipe
    named = [*TRIAL_TABLES, *(["decode"] if "decode" in data else [])]
    return [toml_table(f"[{name}]", tables[name] if name in tables else data[name]) for name in named]


def outer_names(study: Study) -> set[str]:
    """Return the names of the holes outside the recipe, and of those in their fillings."""
    names = {
        hole
        for path, text in iter_texts(study.template.tables)
        if path != RECIPE_PATH
        for hole in HOLE_PATTERN.findall(text)
    }
    levels = [level for name in names for level in study.factors.get(name, ()) if isinstance(level, str)]
    return names | {hole for level in levels for hole in HOLE_PATTERN.findall(level)}


def sources_table(
    study: Study,
    data: Mapping[str, Any],
    added: Mapping[str, Any],
    dropped: Sequence[str] = ("recipes", "factors", "cells"),
) -> Iterator[str]:
    """Yield the sources of copied and new settings; nothing if the search has none."""
    if "source" not in data:
        return
    kept = {name: value for name, value in data["source"].items() if name not in dropped}
    for change in study.overrides:
        table, *path = change.partition("=")[0].split(".")
        if table in TRIAL_TABLES and path and isinstance(kept.get(table, {}), dict):
            at = kept[table] = dict(kept.get(table, {}))
            at[".".join(path) if len(path) == 1 else path[0]] = "ours: set for the search"
    yield toml_leaves("[source]", {**kept, **added})


def _preface(
    study: Study, found: SearchPoints, winners: int, seeds: int, *, has_baseline: bool
) -> Iterator[str]:
    what = "The best point" if winners == 1 else f"The {winners} best points"
    beside = " and its baseline" if has_baseline else ""
    yield toml_comment(
        f"{what} of the search {study.name}, of {len(found.complete)}, trained again{beside} on"
        f" {plural(seeds, 'fresh seed')}."
    )
    yield toml_comment(
        "The best of many noisy points owes part of its lead to noise, so "
        "the claims use only the trainings of"
        " this study. With activemem study run FILE --until-decided seeds are added"
        " while a claim is undecided."
    )
    yield ""


def _header(study: Study, data: Mapping[str, Any], winners: int, seeds: int) -> dict[str, Any]:
    what = "the best point holds" if winners == 1 else f"the {winners} best points hold"
    return {
        "name": f"{study.name}-winners",
        "title": f"Whether {what} on fresh seeds: {one_line(study.title)}",
        **{key: data["study"][key] for key in _KEPT if key in data["study"]},
        "labels": [POINT],
        "max_seeds": 3 * seeds,
    }


def _fixed(study: Study) -> dict[str, Level]:
    """Return the levels of factors that the search does not choose and that fill holes outside the recipe."""
    own = (*study.dimensions, SEED)
    made = (EPOCHS, LENGTH, DATA) if study.fidelity is not None else ()  # the file has no holes for these
    return {
        name: levels[0]
        for name, levels in study.factors.items()
        if name in outer_names(study) and name not in own and name not in made
    }


def _cell(
    study: Study,
    name: str,
    at: Mapping[str, Level],
    *,
    values: Mapping[str, Level],
    note: str,
) -> str:
    """Return a point as a TOML cell: its name, its complete recipe, and its levels for other holes."""
    needed = outer_names(study)
    trial = study.trial_for(values, study.seeds[0], at)
    others = {key: _filled(value, values) for key, value in values.items() if key in needed}
    own = {
        key: study.design.written_level(key, level)
        for key, level in ({**_fixed(study), **at} | others).items()
    }
    cell = {POINT: name, RECIPE: trial.settings.model.recipe, **own}
    return toml_table(f"[[cells]]  # {note}", cell)


def _filled(value: Level, values: Mapping[str, Level]) -> Level:
    if not isinstance(value, str):
        return value
    return HOLE_PATTERN.sub(lambda hole: str(values.get(hole[1], hole[0])), value)


def _measured_words(point: FoundPoint, found: SearchPoints) -> str:
    told = [words for goal in found.goals if (words := _goal_words(goal.name, point))]
    return f"in the search {', '.join(told)} over {plural(point.seeds, 'seed')}"


def _goal_words(metric: str, point: FoundPoint) -> str:
    """Describe a point's objective as `loss 0.398`; "" without a value."""
    value = point.mean(metric)
    return "" if value is None else f"{metric} {find_metric(metric).format(value)}"


def _shown(study: Study, found: SearchPoints, *, has_baseline: bool) -> Iterator[str]:
    across = study.search.across if study.search else ()
    goals = [goal.name for goal in found.goals if goal.name in METRICS_AND_COSTS]
    keys: dict[str, Any] = {
        "name": "winners",
        "rows": POINT,
        **({"columns": across[0]} if across else {}),
        "value": list(dict.fromkeys([*goals, "parameters"])),
        "best": "test",
    }
    yield toml_table("[[table]]", {**keys, **({BASELINE: BASELINE} if has_baseline else {})})


def _claims(
    study: Study, found: SearchPoints, winners: Sequence[FoundPoint], baseline: Mapping[str, Level]
) -> Iterator[str]:
    """Yield a claim for each winner that it is better than the baseline.

    Without a baseline the claim is that the first is best.
    """
    measured = [goal for goal in found.goals if not is_known_before(goal.name)]
    across = study.search.across if study.search else ()
    if baseline:
        for number, _ in enumerate(winners, 1):
            for goal in measured:
                yield _claim(f"best_{number}", BASELINE, goal, _cell_of(goal, BASELINE, across), across)
        return
    others = [f"best_{number}" for number in range(2, len(winners) + 1)]
    for goal in measured[:1]:
        ahead = "max" if goal.sign > 0 else "min"
        against = f"{ahead}({', '.join(_cell_of(goal, each, across) for each in others)})"
        yield _claim("best_1", "the others", goal, against, across)


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


def _sources(study: Study, data: Mapping[str, Any]) -> Iterator[str]:
    seeds = f"ours: fresh, not used by the search {study.name}"
    found = f"ours: a result of the search {study.name}"
    yield from sources_table(study, data, {"factors": {SEED: seeds}, "cells": found})


def column_names(study: Study) -> list[str]:
    """Return the recipe, if points differ in it, and the dimensions that fill holes outside it."""
    outer, inner = outer_names(study), study.template.names_at(RECIPE_PATH, study.factors)
    varies = any(name in inner or name not in outer for name in study.dimensions)
    names = [name for name in study.dimensions if name in outer]
    return list(dict.fromkeys([RECIPE, *names] if varies else names))


def column_levels(study: Study, values: Mapping[str, Level]) -> dict[str, Level]:
    """Return the values of a point together with its resolved recipe."""
    return {**values, RECIPE: study.trial_for(values).settings.model.recipe}
