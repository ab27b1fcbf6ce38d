"""The trials of a grid.

No model is built: settings come from the text, parameters and FLOPs from its analysis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import ActivememError
from ...grammar.nodes import BlockNode, walk
from ...grammar.vocabulary.spec import spec_of
from ..catalog.metrics import MODEL_COSTS
from ..schema.design import MAX_TRIALS
from ..schema.factors import SEED, level_name
from ..schema.limits import is_known_before
from ..schema.settings import D_MODEL_PATH, RECIPE_PATH, Level, read_recipe
from ..text.document import Diagnostics
from ..text.errors import StudyError
from ..text.strict_model import InvalidTableError, ValidationProblem
from ..text.toml_positions import KeyPath
from .costs import SizeMatch, parameter_count, sequence_tokens, step_flops
from .draft import report_problem
from .template import resolve_settings
from .trial import CellKey, Kind, Trial, cell_key, first_of_each_kind

if TYPE_CHECKING:
    from ..study import Study


_MAX_FAULTS = 20  # after this many faults, further cells are not checked


def build_grid(diagnostics: Diagnostics, study: Study) -> Study:
    """Return a study with the trials of all valid cells of its design; without any if there are too many.

    Cells with invalid combinations of levels are reported. A budget that excludes every cell is a fault, too:
    there would be nothing to run.
    """
    design, seeds = study.design, study.seeds
    count = design.count()
    for limit in study.header.bounds:
        if not is_known_before(limit.name):
            known = ", ".join(MODEL_COSTS)
            message = f"only a search limits what training shows: expected one of {known}, got {limit.name}"
            diagnostics.report(("study", "limits", limit.name), message, key=True)
    if count > MAX_TRIALS:
        where = "cells" if design.listed_cells and "factors" not in diagnostics.data else "factors"
        diagnostics.report((where,), f"expected at most {MAX_TRIALS:,} trials, got {count:,}")
        return study
    cells: list[Trial] = []
    over_budget: list[Trial] = []
    size_matches: dict[str, SizeMatch] = {}
    for block in design.blocks():
        allowed: list[list[Trial]] = []
        refused: list[list[Trial]] = []
        for levels in block:
            if (cell := _resolve_cell(diagnostics, study, levels)) is None:
                continue
            kind, match, is_allowed = cell
            trials = Trial.of_seeds(study.name, levels, kind, seeds)
            (allowed if is_allowed else refused).append(trials)
            if match is not None:
                for trial in trials:
                    size_matches.setdefault(trial.id, match)
        cells += itertools.chain.from_iterable(zip(*allowed, strict=True))  # by seed
        over_budget += itertools.chain.from_iterable(zip(*refused, strict=True))
    if over_budget and not cells and not diagnostics.faults:
        diagnostics.report(("study", "limits"), study.budget.describe_exclusion("cell", over_budget))
    return replace(study, cells=tuple(cells), over_budget=tuple(over_budget), size_matches=size_matches)


def _resolve_cell(
    diagnostics: Diagnostics, study: Study, levels: Mapping[str, Level]
) -> tuple[Kind, SizeMatch | None, bool] | None:
    """Return the settings of a cell, its size, and whether the limits allow it; None after faults."""
    if len(diagnostics.faults) >= _MAX_FAULTS:
        return None
    values, match = dict(levels), None
    for each in study.expansions.values():
        if (filling := each.fill(diagnostics, study, levels)) is None:
            return None
        values |= filling[0]
        match = filling[1] or match
    try:
        settings = resolve_settings(study.template, values)
    except InvalidTableError as error:
        for problem in error.problems:
            report_problem(diagnostics, study.template, problem, levels=levels, paths={})
        return None
    for each in study.expansions.values():
        settings = each.change(settings, levels)
    return Kind(settings), match, study.budget.allows(settings)


def check_layers(study: Study, trials: Sequence[Trial]) -> None:
    """Raise StudyError with all layers of other packages that cannot be built or measured.

    Such a layer is reported at its level in the study file. Only the package knows whether its arguments are
    valid, so the file is read without it.
    """
    errors: list[tuple[Trial, set[str], ActivememError]] = []
    for trial in first_of_each_kind(trials):
        recipe = read_recipe(trial.settings.model.recipe).root
        names = {
            node.name for node in walk(recipe) if isinstance(node, BlockNode) and spec_of(node.name).package
        }
        try:
            if names:
                parameter_count(trial.settings)
                step_flops(trial.settings)
        except ActivememError as error:
            errors.append((trial, names, error))
    if not errors:
        return
    diagnostics = Diagnostics(study.document)
    own = diagnostics.table("factors")
    for trial, names, error in errors:
        levels = {
            name: level
            for name, level in trial.levels.items()
            if isinstance(level, str) and any(f"{each}(" in level for each in names)
        } or trial.levels
        paths: dict[str, KeyPath] = {
            name: ("factors", name, own[name].index(level))
            for name, level in levels.items()
            if level in own.get(name, ())
        }
        problem = ValidationProblem(RECIPE_PATH, str(error))
        report_problem(diagnostics, study.template, problem, levels=levels, paths=paths)
    raise StudyError(diagnostics.document.source, diagnostics.faults)


SIZE_PATHS = (RECIPE_PATH, D_MODEL_PATH)
"""The keys that may use a size."""


def factors_of_sizes(study: Study) -> list[str]:
    """Return the factors outside the model, such as the task, that change the solved sizes.

    Models that differ only in such a factor have different sizes, since they have different baselines.
    """
    if study.design.matched_size is None:
        return []
    inside = {name for path in SIZE_PATHS for name in study.template.names_at(path, study.factors)}
    matches = study.size_matches
    sizes = {trial.cell: matches[trial.id].size for trial in study.trials if trial.id in matches}
    varied = [name for name, levels in study.factors.items() if len(levels) > 1]
    return [name for name in varied if name not in (*inside, SEED) and _decides_size(name, sizes)]


def training_difference(study: Study) -> str:
    """Return by how much trainings of models with equal FLOPs differ from their baseline's, as text.

    The steps of a ladder follow the parameters, which are not equal then. Return "" if trainings have equally
    many steps, or if the study does not match FLOPs.
    """
    if study.design.matched_size is None or "flops" not in study.design.matched_size.costs:
        return ""
    cells = {trial.cell: trial for trial in study.trials}
    steps = {
        cell: trial.common.train.epochs * trial.common.train.steps_per_epoch for cell, trial in cells.items()
    }
    largest = 0.0
    for cell, trial in cells.items():
        baseline = cell_key(study.design.baseline_of(trial.levels))
        largest = max(largest, abs(steps[cell] / steps.get(baseline, steps[cell]) - 1))
    percent = math.ceil(round(100 * largest, 6))
    return f"whole trainings differ by up to {percent} % in steps and FLOPs" if percent else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRung:
    """A model of a ladder at one size, with the length and learning rate of its training.

    `size` has the ladder's values, and `others` the levels of all other factors, as text.
    """

    size: str
    others: str
    parameters: int
    steps: int
    tokens: int
    lr: float


def planned_rungs(study: Study) -> list[PlannedRung]:
    """Return each model of a study's ladder at each size, with all seeds as one; none without a ladder."""
    ladder = study.design.ladder
    varied = [name for name, levels in study.factors.items() if len(levels) > 1]
    others = [name for name in varied if name not in (*ladder, SEED)]
    found: dict[PlannedRung, None] = {}
    for trial in study.trials if ladder else ():
        settings, train = trial.settings, trial.settings.train
        steps = train.epochs * train.steps_per_epoch
        rung = PlannedRung(
            size=", ".join(str(trial.levels[name]) for name in ladder),
            others=", ".join(level_name(trial.levels[name]) for name in others),
            parameters=parameter_count(settings),
            steps=steps,
            tokens=steps * train.batch_size * sequence_tokens(settings),
            lr=train.optimizer.lr,
        )
        found[rung] = None
    return list(found)


def _decides_size(factor: str, sizes: Mapping[CellKey, int | None]) -> bool:
    found: dict[CellKey, int | None] = {}
    for cell, size in sizes.items():
        others = frozenset((name, level) for name, level in cell if name != factor)
        if found.setdefault(others, size) != size:
            return True
    return False
