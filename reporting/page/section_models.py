"""The models of the study: what each costs, how far it sees, what its training took, and a diagram.

Costs and reach are counted from the text, times and memory are measured. Of a search the models of its best
points are shown, each by its resolved recipe; before there are any, the ends of its dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import polars as pl

from ...plugins import PluginError
from ...studies.planning.plan import SIZE_KEYS, ModelCost, group_by_model, model_costs
from ...studies.planning.reach_limits import predict_reach_limits
from ...studies.planning.time_estimates import TimeEstimator
from ...studies.resolve.costs import REFERENCE_TOKENS, model_config, parameter_count, reach, sequence_tokens
from ...studies.resolve.template import RECIPE_PATH
from ...studies.resolve.trial import Trial
from ...studies.schema.level_names import level_name
from ...studies.searches.points import find_points
from ...studies.study import Study
from ...studies.text.units import format_bytes, format_duration, format_reach, plural, si_prefix
from ..recipes.display import show_recipe
from .inputs import PageInputs

MAX_SEARCHED = 12
"""So many models of a search are shown: those of its best points."""

_MIB = 2**20
_NONE = "–"


def models(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return a row for each model, what is predicted of them, and their diagrams.

    Return None without models, and where a plug-in's block cannot be measured: the page shows its failures.
    """
    try:
        return _searched_models(inputs) if inputs.study.search is not None else _planned_models(inputs)
    except PluginError:
        return None


def _planned_models(inputs: PageInputs) -> Mapping[str, object] | None:
    """Return the models of a grid."""
    plan = inputs.make_plan()
    if not plan.models:
        return None
    return {
        "lead": "Every model is",
        "recipe": inputs.study.template.texts[RECIPE_PATH],
        "known": [
            *plan.reach_limits,
            *(
                f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run"
                for each in plan.over_budget
            ),
        ],
        **_rows(
            inputs, [each.label for each in plan.models], plan.models, group_by_model(inputs.study.trials)
        ),
    }


def _searched_models(inputs: PageInputs) -> Mapping[str, object]:
    """Return the models of the best points of a search, or of the ends of its space while it has none."""
    study = inputs.study
    found = find_points(study, inputs.outcomes)
    trained = {trial.id: trial for trial in found.trained}
    trials = [trained[trial] for point in found.ranked() for trial in point.trials if trial in trained]
    groups = group_by_model(trials or study.boundary_trials())
    shown = groups[:MAX_SEARCHED]
    estimator = TimeEstimator(inputs.outcomes, [])
    models = [model for each in shown for model in model_costs(study, each, estimator, {})]
    labels = [_resolved(study, each[0]) for each in shown]
    labelled = [(label, trial.settings) for label, each in zip(labels, shown, strict=True) for trial in each]
    lead = "No point that counts is done yet: these are the two ends of the search's space."
    if trials:
        which = f"The best {len(shown)} of {len(groups):,}" if len(groups) > len(shown) else "All"
        lead = f"{which} models whose points are ranked, the best first."
    return {
        "lead": lead,
        "recipe": "",
        "known": predict_reach_limits(labelled),
        **_rows(inputs, labels, models, shown if trials else []),
    }


def _resolved(study: Study, trial: Trial) -> str:
    """Return the recipe of a search's trial, and the dimensions outside of it that change its size."""
    paths = [("model", key) for key in SIZE_KEYS if ("model", key) != RECIPE_PATH]
    names = {name for path in paths for name in study.template.names_at(path, study.factors)}
    sizes = [
        f"{name}={level_name(trial.levels[name])}"
        for name in study.dimensions
        if name in names & trial.levels.keys()
    ]
    return ", ".join([trial.settings.model.recipe, *sizes])


def _rows(
    inputs: PageInputs, labels: Sequence[str], models: Sequence[ModelCost], groups: Sequence[Sequence[Trial]]
) -> Mapping[str, object]:
    """Return the table of models and their diagrams; `groups` has the trials of each, if there are any."""
    size_match = inputs.study.design.matched_size
    unit, size = si_prefix(max(model.step_flops for model in models))
    numbers = [size_match[0], "residual"] if size_match else []
    numbers += ["parameters", f"{unit}FLOPs/step"]
    rows = [list(_size_cells(model, size, matched=size_match is not None)) for model in models]
    if groups:
        rows = [[*row, *_training_cells(inputs, trials)] for row, trials in zip(rows, groups, strict=True)]
    return {
        "heads": ["model", *numbers, *(["reach", "done", "time/trial", "peak memory"] if groups else [])],
        "rows": list(zip(labels, rows, strict=True)),
        "reference_tokens": REFERENCE_TOKENS,
        "diagrams": [_diagram(trials) for trials in groups],
    }


def _size_cells(model: ModelCost, size: float, *, matched: bool) -> Iterator[str]:
    """Yield what the text of a model tells of its size."""
    if matched:
        solved = model.size_match
        yield f"{solved.size:,}" if solved and solved.size is not None else _NONE
        yield f"{solved.residual:+,}".replace("-", "−") if solved else _NONE
    yield f"{model.parameters:,}"
    yield f"{model.step_flops / size:,.1f}"


def _training_cells(inputs: PageInputs, trials: Sequence[Trial]) -> Iterator[str]:
    ids = [trial.id for trial in trials]
    done = inputs.own_outcomes.filter(pl.col("trial").is_in(ids) & (pl.col("status") == "done"))
    yield format_reach(reach(trials[0].settings))
    yield f"{len(done)} of {len(trials)}"
    yield format_duration(fmean(done["seconds"])) if len(done) else _NONE
    yield format_bytes(max(done["peak_mib"]) * _MIB) if len(done) else _NONE


def _diagram(trials: Sequence[Trial]) -> tuple[str, str]:
    """Return a model's recipe, and its diagram with the largest vocabulary of its trials."""
    every = (trial.settings for trial in trials)
    settings = max(every, key=parameter_count)
    interface = settings.task.interface
    shown = show_recipe(
        settings.model.recipe,
        model_config(settings.model, interface),
        length=sequence_tokens(settings),
        batch=settings.train.sequences(sequence_tokens(settings)),
        past=interface.past,
    )
    return settings.model.recipe, shown.render("svg")
