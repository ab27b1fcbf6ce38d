"""The models of the study: what each costs, how far it sees, what its training took, and a diagram.

Costs and reach are counted from the text, times and memory are measured. A search has no models before it
runs: the two ends of its dimensions stand for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import polars as pl

from ...studies.planning.plan import ModelCost, group_by_model
from ...studies.resolve.costs import REFERENCE_TOKENS, model_config, parameter_count, reach, sequence_tokens
from ...studies.resolve.template import RECIPE_PATH
from ...studies.resolve.trial import Trial
from ...studies.text.units import format_bytes, format_duration, format_reach, si_prefix
from ..recipes.display import show_recipe
from .inputs import PageInputs

_MIB = 2**20
_NONE = "–"


def models(inputs: PageInputs) -> Mapping[str, object] | None:
    """The recipe of all, a row for each model, what is predicted of them, and their diagrams."""
    plan, size_match = inputs.make_plan(), inputs.study.design.matched_size
    if not plan.models:
        return None
    unit, size = si_prefix(max(model.step_flops for model in plan.models))
    numbers = [size_match[0], "residual"] if size_match else []
    numbers += ["parameters", f"{unit}FLOPs/step"]
    rows = [list(_size_cells(model, size, matched=size_match is not None)) for model in plan.models]
    groups = group_by_model(inputs.study.trials)  # none for a search, whose models are its ends
    if groups:
        rows = [[*row, *_training_cells(inputs, trials)] for row, trials in zip(rows, groups, strict=True)]
    return {
        "recipe": inputs.study.template.texts[RECIPE_PATH],
        "heads": ["model", *numbers, *(["reach", "done", "time/trial", "peak memory"] if groups else [])],
        "rows": [(model.label, row) for model, row in zip(plan.models, rows, strict=True)],
        "reference_tokens": REFERENCE_TOKENS,
        "plan": plan,
        "diagrams": [_diagram(trials) for trials in groups],
    }


def _size_cells(model: ModelCost, size: float, *, matched: bool) -> Iterator[str]:
    """What the text of a model tells of its size.

    Of a size that was solved for equal parameters, that is the size and how far off it is.
    """
    if matched:
        solved = model.size_match
        yield f"{solved.size:,}" if solved and solved.size is not None else _NONE
        yield f"{solved.residual:+,}".replace("-", "−") if solved else _NONE
    yield f"{model.parameters:,}"
    yield f"{model.step_flops / size:,.1f}"


def _training_cells(inputs: PageInputs, trials: Sequence[Trial]) -> Iterator[str]:
    """How far a model sees, and what its trials took."""
    ids = [trial.id for trial in trials]
    done = inputs.own_outcomes.filter(pl.col("trial").is_in(ids) & (pl.col("status") == "done"))
    yield format_reach(reach(trials[0].settings))
    yield f"{len(done)} of {len(trials)}"
    yield format_duration(fmean(done["seconds"])) if len(done) else _NONE
    yield format_bytes(max(done["peak_mib"]) * _MIB) if len(done) else _NONE


def _diagram(trials: Sequence[Trial]) -> tuple[str, str]:
    """A model's recipe, and its diagram with the largest vocabulary of its trials.

    Sequences are as long as those of the costs beside it.
    """
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
