"""The models of the study: what each costs, how far it sees, what training it took, and a diagram of it.

Costs and reach are counted from the text, times and memory are measured. A search has no models before it
runs: the two ends of its dimensions stand for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from ...studies.planning.plan import SIZE_KEYS, ModelCost
from ...studies.resolve.costs import REFERENCE_TOKENS, cost, reach
from ...studies.resolve.template import RECIPE_PATH
from ...studies.resolve.trial import Trial
from ...studies.text.units import format_bytes, format_duration, plural, si_prefix
from ...studies.text.units import format_reach as reach_text
from .html import (
    Html,
    HtmlColumn,
    PageSection,
    bullet_list,
    code,
    collapsible,
    escape_html,
    html_table,
    join_html,
    paragraph,
    svg_image,
)
from .inputs import PageInputs

_MIB = 2**20

_COLUMN_NOTES = (
    "FLOPs are those of a training step, forward and backward, on sequences of the task's length, "
    f"{REFERENCE_TOKENS} tokens where it grows; parameters are those with the largest vocabulary. "
    "Reach is how many tokens a position sees to each side. Time is the mean of the trials that are done; "
    "memory is the most that their process held."
)

_NONE = escape_html("–")


def section(inputs: PageInputs) -> PageSection | None:
    """The recipe of all, a row for each model, what is predicted of them, and their diagrams."""
    if not inputs.plan.models:
        return None
    groups = _groups(inputs)
    pieces = [
        paragraph(
            join_html(
                [escape_html("Every model is"), Html(f"{code(inputs.study.template.texts[RECIPE_PATH])}.")],
                " ",
            )
        ),
        _costs(inputs, groups),
        *_notes(inputs),
    ]
    if inputs.draw is not None and groups:
        settings = [_largest_trial(trials).settings for trials in groups]
        drawn = (svg_image(inputs.draw(one).encode(), f"Diagram of {one.model.recipe}") for one in settings)
        pieces.append(
            collapsible(escape_html(f"{plural(len(groups), 'diagram')}, one of each model"), join_html(drawn))
        )
    return PageSection(name="recipes", title="Recipes", body=join_html(pieces))


def _groups(inputs: PageInputs) -> list[list[Trial]]:
    """The trials of each model of the plan, in its order; none for a search, whose models are its ends."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in inputs.study.trials():
        model = trial.settings.model
        groups.setdefault(tuple(getattr(model, key) for key in SIZE_KEYS), []).append(trial)
    return list(groups.values())


def _largest_trial(trials: Sequence[Trial]) -> Trial:
    """The trial with the most parameters, that of the largest vocabulary."""
    return max(trials, key=lambda trial: cost(trial.settings, REFERENCE_TOKENS).parameters)


def _costs(inputs: PageInputs, groups: Sequence[Sequence[Trial]]) -> Html:
    """A row for each model: what the text tells, then what training told.

    Of a size that was solved for equal parameters, the row has the size and how far off it is.
    """
    models, sized = inputs.plan.models, inputs.study.design.matched_size
    unit, size = si_prefix(max(model.step_flops for model in models))
    columns = [
        HtmlColumn("model"),
        *([HtmlColumn(sized[0], "number"), HtmlColumn("residual", "number")] if sized else []),
        HtmlColumn("parameters", "number"),
        HtmlColumn(f"{unit}FLOPs/step", "number"),
    ]
    rows = [[code(model.label), *_size_cells(model, size, sized=sized is not None)] for model in models]
    if groups:
        heads = ("reach", "done", "time/trial", "peak memory")
        columns += [HtmlColumn(head, "short" if head == "reach" else "number") for head in heads]
        rows = [[*row, *_training_cells(inputs, trials)] for row, trials in zip(rows, groups, strict=True)]
    return html_table("models and what they cost", columns, rows)


def _size_cells(model: ModelCost, size: float, *, sized: bool) -> Iterator[Html]:
    """What the text of a model tells of its size."""
    if sized:
        solved = model.size_match
        yield escape_html(f"{solved.size:,}") if solved and solved.size is not None else _NONE
        yield escape_html(f"{solved.residual:+,}".replace("-", "−")) if solved else _NONE
    yield escape_html(f"{model.parameters:,}")
    yield escape_html(f"{model.step_flops / size:,.1f}")


def _training_cells(inputs: PageInputs, trials: Sequence[Trial]) -> Iterator[Html]:
    """How far a model sees, and what its trials took."""
    done = inputs.done_outcomes(trials)
    yield escape_html(reach_text(reach(trials[0].settings)))
    yield escape_html(f"{len(done)} of {len(trials)}")
    if not len(done):
        yield from (_NONE, _NONE)
        return
    yield escape_html(format_duration(fmean(done["seconds"])))
    yield escape_html(format_bytes(max(done["peak_mib"]) * _MIB))


def _notes(inputs: PageInputs) -> Iterator[Html]:
    """What the figures mean, what is predicted, and what is over budget."""
    yield paragraph(escape_html(_COLUMN_NOTES), "faint")
    notes = [escape_html(f"{ceiling}.") for ceiling in inputs.plan.reach_limits]
    notes += [
        escape_html(f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run.")
        for each in inputs.plan.over_budget
    ]
    if notes:
        yield paragraph(escape_html("Known before training:"))
        yield bullet_list(notes)
