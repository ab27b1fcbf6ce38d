"""The sizes of a ladder as plans tell them: parameters, steps, tokens and the learning rate of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..studies.ladder import step_tokens
from ..studies.resolve.costs import cost, sequence_tokens
from ..studies.schema.factors import SEED
from ..studies.schema.level_names import level_name, short_level_names
from ..studies.study import Study
from ..studies.text.units import abbreviate_all

_WIDEST = 20


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
                parameters=cost(settings, length).parameters,
                steps=steps,
                tokens=steps * step_tokens(settings, length),
                lr=train.optimizer.lr,
            )
        ] = None
    return list(found)


def format_rungs(study: Study) -> Iterator[str]:
    """The sizes as a table with a line above; nothing without a ladder."""
    rungs = planned_rungs(study)
    if not rungs or study.ladder is None:
        return
    names = list(dict.fromkeys(each.others for each in rungs))
    others = dict(zip(names, abbreviate_all(short_level_names(names), _WIDEST), strict=True))
    rows = [(", ".join(study.design.ladder), "", "parameters", "steps", "tokens", "a parameter", "lr")]
    rows += [
        (
            each.size,
            others[each.others],
            f"{each.parameters:,}",
            f"{each.steps:,}",
            f"{each.tokens:,}",
            f"{each.tokens / each.parameters:.3g}",
            f"{each.lr:g}",
        )
        for each in rungs
    ]
    words = 2 if any(each.others for each in rungs) else 1
    rows = rows if words == 2 else [(row[0], *row[2:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield ""
    yield f"  ladder {study.ladder.tokens_per_parameter:g} tokens for each parameter"
    yield ""
    for row in rows:
        cells = [
            f"{text:<{width}}" if place < words else f"{text:>{width}}"
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  " + "   ".join(cells).rstrip()
