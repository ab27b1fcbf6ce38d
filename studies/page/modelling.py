"""The models of the study: what each costs, how far it sees, what training it took, and a diagram of it.

Costs and reach are counted from the text, times and memory are measured. A search has no models before it
runs: the two ends of its dimensions stand for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from ..costs import TOKENS, cost, reach
from ..plan import SIZES, ModelCost
from ..quantities import duration, in_bytes, plural, prefix
from ..quantities import reach as reach_text
from ..template import RECIPE
from ..trial import Trial
from .markup import Column, Html, Section, code, folded, grid, joined, listed, paragraph, picture, plain
from .material import Material

_MIB = 2**20

_MEANING = (
    "FLOPs are those of a training step, forward and backward, on sequences of the task's length, "
    f"{TOKENS} tokens where it grows; parameters are those with the largest vocabulary. Reach is how many "
    "tokens a position sees to each side. Time is the mean of the trials that are done; memory is the most "
    "that their process held."
)

_NONE = plain("–")


def section(material: Material) -> Section | None:
    """The recipe of all, a row for each model, what is predicted of them, and their diagrams."""
    if not material.plan.models:
        return None
    groups = _groups(material)
    pieces = [
        paragraph(
            joined([plain("Every model is"), Html(f"{code(material.study.template.texts[RECIPE])}.")], " ")
        ),
        _costs(material, groups),
        *_notes(material),
    ]
    if material.draw is not None and groups:
        settings = [_dearest(trials).settings for trials in groups]
        drawn = (picture(material.draw(one).encode(), f"Diagram of {one.model.recipe}") for one in settings)
        pieces.append(folded(plain(f"{plural(len(groups), 'diagram')}, one of each model"), joined(drawn)))
    return Section(name="recipes", title="Recipes", body=joined(pieces))


def _groups(material: Material) -> list[list[Trial]]:
    """The trials of each model of the plan, in its order; none for a search, whose models are its ends."""
    groups: dict[tuple[object, ...], list[Trial]] = {}
    for trial in material.study.trials():
        model = trial.settings.model
        groups.setdefault(tuple(getattr(model, key) for key in SIZES), []).append(trial)
    return list(groups.values())


def _dearest(trials: Sequence[Trial]) -> Trial:
    """The trial with the most parameters, that of the largest vocabulary."""
    return max(trials, key=lambda trial: cost(trial.settings, TOKENS).parameters)


def _costs(material: Material, groups: Sequence[Sequence[Trial]]) -> Html:
    """A row for each model: what the text tells, then what training told.

    Of a size that was solved for equal parameters, the row has the size and how far off it is.
    """
    models, sized = material.plan.models, material.study.design.size
    unit, size = prefix(max(model.step_flops for model in models))
    columns = [
        Column("model"),
        *([Column(sized[0], "number"), Column("residual", "number")] if sized else []),
        Column("parameters", "number"),
        Column(f"{unit}FLOPs/step", "number"),
    ]
    rows = [[code(model.label), *_counted(model, size, sized=sized is not None)] for model in models]
    if groups:
        heads = ("reach", "done", "time/trial", "peak memory")
        columns += [Column(head, "short" if head == "reach" else "number") for head in heads]
        rows = [[*row, *_trained(material, trials)] for row, trials in zip(rows, groups, strict=True)]
    return grid("models and what they cost", columns, rows)


def _counted(model: ModelCost, size: float, *, sized: bool) -> Iterator[Html]:
    """What the text of a model tells of its size."""
    if sized:
        solved = model.sized
        yield plain(f"{solved.size:,}") if solved and solved.size is not None else _NONE
        yield plain(f"{solved.residual:+,}".replace("-", "−")) if solved else _NONE
    yield plain(f"{model.parameters:,}")
    yield plain(f"{model.step_flops / size:,.1f}")


def _trained(material: Material, trials: Sequence[Trial]) -> Iterator[Html]:
    """How far a model sees, and what its trials took."""
    done = material.done(trials)
    yield plain(reach_text(reach(trials[0].settings)))
    yield plain(f"{len(done)} of {len(trials)}")
    if not len(done):
        yield from (_NONE, _NONE)
        return
    yield plain(duration(fmean(done["seconds"])))
    yield plain(in_bytes(max(done["peak_mib"]) * _MIB))


def _notes(material: Material) -> Iterator[Html]:
    """What the figures mean, what is predicted, and what is over budget."""
    yield paragraph(plain(_MEANING), "faint")
    notes = [plain(f"{ceiling}.") for ceiling in material.plan.ceilings]
    notes += [
        plain(f"{each.label}: {each.excess}; {plural(each.trials, 'trial')} not run.")
        for each in material.plan.refused
    ]
    if notes:
        yield paragraph(plain("Known before training:"))
        yield listed(notes)
