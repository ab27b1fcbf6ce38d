"""Sizes of a ladder in a plan: parameters, steps, tokens and the learning rate of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..studies.ladder import step_tokens
from ..studies.resolve.costs import parameter_count, sequence_tokens
from ..studies.schema.factors import SEED
from ..studies.schema.level_names import level_name, short_level_names
from ..studies.study import Study
from ..studies.text.units import WIDTH, abbreviate_all, labelled_lines

_GAP = 3
_NARROWEST = 8  # what of a model's name is shown in any case


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRung:
    """A size of a model: its label, what it counts, and the sequences' tokens that it is trained on."""

    size: str
    others: str
    parameters: int
    steps: int
    tokens: int
    lr: float


def planned_rungs(study: Study) -> list[PlannedRung]:
    """Every size of every model that a study with a ladder trains, seeds apart; empty without a ladder."""
    found: dict[PlannedRung, None] = {}
    for trial in study.trials if study.ladder else ():
        settings, train = trial.settings, trial.settings.train
        length = sequence_tokens(settings)
        steps = train.epochs * train.steps_per_epoch
        names = study.design.ladder
        others = [
            name for name, levels in study.factors.items() if name not in (*names, SEED) and len(levels) > 1
        ]
        found[
            PlannedRung(
                size=", ".join(str(trial.levels[name]) for name in names),
                others=", ".join(level_name(trial.levels[name]) for name in others),
                parameters=parameter_count(settings),
                steps=steps,
                tokens=steps * step_tokens(settings, length),
                lr=train.optimizer.lr,
            )
        ] = None
    return list(found)


def format_rungs(study: Study, width: int = WIDTH) -> Iterator[str]:
    """Yield the sizes as a table with a line above; nothing without a ladder."""
    rungs = planned_rungs(study)
    if not rungs or study.ladder is None:
        return
    sizes = ", ".join(study.design.ladder)
    told = f"sizes of {sizes}; {study.ladder.tokens_per_parameter:g} tokens for each parameter"
    yield ""
    yield from labelled_lines("ladder", told, width)
    yield ""
    rows = [("size", "parameters", "steps", "tokens", "a parameter", "lr"), *map(_cells, rungs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = WIDTH - sum(_GAP + width for width in widths) - _GAP
    names = list(dict.fromkeys(each.others for each in rungs))
    short = abbreviate_all(short_level_names(names), max(room, _NARROWEST)) if any(names) else names
    others = dict(zip(names, short, strict=True))
    for label, (size, *numbers) in zip(["", *(others[each.others] for each in rungs)], rows, strict=True):
        cells = [f"{label:<{max(map(len, short))}}"] if any(names) else []
        cells += [f"{text:>{width}}" for text, width in zip(numbers, widths[1:], strict=True)]
        yield f"  {size:<{widths[0]}}   {'   '.join(cells)}".rstrip()


def _cells(rung: PlannedRung) -> tuple[str, ...]:
    return (
        rung.size,
        f"{rung.parameters:,}",
        f"{rung.steps:,}",
        f"{rung.tokens:,}",
        f"{rung.tokens / rung.parameters:.3g}",
        f"{rung.lr:g}",
    )
