"""The study of the ablation path of a search: from its baseline to its best point, one dimension at a time.

A design of kind "path" (Fawcett and Hoos 2016) tries all remaining changes in each round, on fresh seeds.
Each dimension that both points have is a separate step. An option of a choice is one step with everything
inside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...grammar import Recipe
from ...grammar.canonical import render
from ...grammar.dimensions import resolve, settled_values
from ...grammar.nodes import ChoiceDimension, Dimension, HoleNode, Node, Value
from ...studies.resolve.template import HOLE_PATTERN
from ...studies.schema.factors import SEED, level_key, one_line
from ...studies.schema.search_settings import SearchObjective, usual_direction
from ...studies.schema.settings import RECIPE_PATH, Level
from ...studies.searches.points import SearchPoints
from ...studies.study import Study
from ...studies.text.document import parse_document
from ...studies.text.toml_positions import toml_comment, toml_table
from ...studies.text.units import plural
from .promotion import (
    FRESH_SEEDS,
    PromotionError,
    fresh_seeds,
    outer_names,
    refuse_ties,
    sources_table,
    trial_tables,
)

_OPERATOR = re.compile(r">>|[+*]")
"""Operators in a text that may bind differently once it fills a hole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The recipe of a path's cells, with holes for the changes, and the two levels of each change."""

    recipe: str
    levels: Mapping[str, tuple[Level, Level]]
    fixed: Mapping[str, Level]


def path_text(study: Study, found: SearchPoints, *, seeds: int = FRESH_SEEDS) -> str:
    """Return a study file whose cells lead step by step from the baseline to the best point."""
    baseline, ranked = study.baseline, found.ranked()
    if not baseline:
        raise PromotionError(f"expected [study] baseline in {study.name}, as the start of the path; got none")
    if not ranked:
        raise PromotionError(f"{study.name} has no point yet whose seeds all have a value: run it first")
    refuse_ties(study, found)
    steps = _steps(study, baseline, ranked[0].values)
    if not steps.levels:
        raise PromotionError(f"the best point of {study.name} is its baseline: there is no path")
    data = parse_document(study.name, study.text, study.overrides).data
    across = study.search.across if study.search else ()
    factors = {
        **{name: list(study.factors[name]) for name in across},
        **{name: [level] for name, level in steps.fixed.items() if name not in across},
        **{name: list(pair) for name, pair in steps.levels.items()},
        SEED: fresh_seeds(study, seeds),
    }
    what = f"from its baseline to its best point in {plural(len(steps.levels), 'step')}"
    return "\n".join(
        [
            toml_comment(
                f"The ablation path of the search {study.name}: {what}, on {plural(seeds, 'fresh seed')}."
            ),
            toml_comment(
                "Each round tries every remaining change and keeps the best; study run continues to the end."
            ),
            "",
            toml_table("[study]", {**_header(study, data, found.goals[0]), **_around(across)}),
            *trial_tables(study, data, steps.recipe),
            toml_table("[factors]", _written(study, factors)),
            toml_table(
                "[[table]]",
                {"name": "path", "rows": "changes", **_columns(across), "value": found.goals[0].name},
            ),
            *_sources(study, data, factors),
        ]
    )


def _header(study: Study, data: Mapping[str, Any], goal: SearchObjective) -> dict[str, Any]:
    way = "max" if goal.sign > 0 else "min"
    decides = {"metric": goal.name, **({"direction": way} if way != usual_direction(goal.name) else {})}
    paper = {"paper": data["study"]["paper"]} if "paper" in data["study"] else {}
    title = f"Contributions to the best point: {one_line(study.title)}"
    return {"name": f"{study.name}-path", "title": title, **paper, "design": "path", **decides}


def _around(across: Sequence[str]) -> dict[str, Any]:
    return {"around": list(across)} if across else {}


def _columns(across: Sequence[str]) -> dict[str, Any]:
    return {"columns": across[0]} if across else {}


def _written(study: Study, factors: Mapping[str, Sequence[Level]]) -> dict[str, Any]:
    return {
        name: [study.design.written_level(name, level) for level in levels]
        for name, levels in factors.items()
    }


def _sources(study: Study, data: Mapping[str, Any], factors: Mapping[str, Any]) -> Iterator[str]:
    told = dict.fromkeys(factors, f"ours: the baseline of the search {study.name} and its best point")
    told[SEED] = f"ours: fresh, not used by the search {study.name}"
    yield from sources_table(study, data, {"factors": told})


def _steps(study: Study, start: Mapping[str, Level], end: Mapping[str, Level]) -> _Steps:
    root = study.template.expand(study.template.texts[RECIPE_PATH]).root
    own = {name for name, _ in Recipe(root).dimensions}
    recipe, inner = _recipe_steps(root, start, end, {*study.factors, *study.dimensions} - own)
    level_of = partial(_level, fragments=study.template.fragments)
    levels: dict[str, tuple[Level, Level]] = dict(inner)
    needed = outer_names(study) | set(HOLE_PATTERN.findall(recipe))
    needed |= {hole for pair in inner.values() for level in pair for hole in _holes(level)}
    fixed: dict[str, Level] = {}
    for name in [*study.factors, *(each for each in study.dimensions if each not in study.factors)]:
        if name == SEED or name in own:
            continue
        if name not in study.dimensions:
            fixed[name] = study.factors[name][0]
            continue
        if name not in start or name not in end:  # filled as part of the point that has it
            continue
        pair = level_of(start[name], start, end), level_of(end[name], end, start)
        if level_key(pair[0]) == level_key(pair[1]):
            fixed[name] = pair[0]
        else:
            levels[name] = pair
    levels = {name: (level_of(a, start, end), level_of(b, end, start)) for name, (a, b) in levels.items()}
    used = _closure(
        needed,
        {
            **levels,
            **{name: (level,) for name, level in fixed.items()},
        },
    )
    return _Steps(
        recipe=recipe,
        levels={name: pair for name, pair in levels.items() if name in used or name in inner},
        fixed={name: level for name, level in fixed.items() if name in used},
    )


def _recipe_steps(
    root: Node, start: Mapping[str, Level], end: Mapping[str, Level], taken: Collection[str]
) -> tuple[str, dict[str, tuple[Level, Level]]]:
    """Return the recipe with holes for its own dimensions that change, and the holes' levels."""
    settled = [settled_values(root, lambda name, _, point=point: point[name]) for point in (start, end)]
    levels: dict[str, tuple[Level, Level]] = {}

    def answer(name: str, dimension: Dimension) -> Level | HoleNode:
        if level_key(start[name]) == level_key(end[name]):
            return start[name]
        hole = _hole_name(name, [*taken, *levels])
        if isinstance(dimension, ChoiceDimension):
            levels[hole] = (_plain(settled[0][name]), _plain(settled[1][name]))
        else:
            levels[hole] = (start[name], end[name])
        return HoleNode(hole)

    return render(resolve(root, answer)), levels


def _hole_name(dimension: str, taken: Collection[str]) -> str:
    """Return an unused name for a dimension's hole: `conv_k_2` for `conv.k.2`."""
    name = dimension.replace(".", "_")
    while name in taken:
        name += "_"
    return name


def _plain(value: Value) -> Level:
    return value if isinstance(value, int | float | str) else render(value)


def _level(
    level: Level, own: Mapping[str, Level], other: Mapping[str, Level], fragments: Mapping[str, str]
) -> Level:
    """Return a level with its holes filled."""
    if not isinstance(level, str):
        return level
    alone = {name: str(value) for name, value in own.items() if name not in other}
    whole = HOLE_PATTERN.fullmatch(level)

    def fill(hole: re.Match[str]) -> str:
        inner = alone.get(hole[1], fragments.get(hole[1]))
        if inner is None:
            return hole[0]
        text = str(_level(inner, own, other, fragments))
        return f"({text})" if _OPERATOR.search(text) and not whole else text

    return HOLE_PATTERN.sub(fill, level)


def _holes(level: Level) -> list[str]:
    return HOLE_PATTERN.findall(level) if isinstance(level, str) else []


def _closure(names: Collection[str], levels: Mapping[str, tuple[Level, ...]]) -> set[str]:
    """Return the names and all names that fill holes in their levels."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [hole for level in levels.get(name, ()) for hole in _holes(level)]
    return found
