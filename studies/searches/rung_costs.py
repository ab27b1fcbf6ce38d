"""Costs of a search's rungs: how many points reach each, and how much work that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..resolve.costs import flops_of_test, max_training_flops
from ..resolve.trial import Trial
from ..study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class RungCost:
    """A rung: its value, the points and trials that come to it, and what a trial there costs.

    `share` is what share of the work of a whole training its training is, the mean over both ends of the
    dimensions; `epochs` are what its trials may train together.
    """

    value: int
    points: int
    trials: int
    epochs: int
    share: float


def rung_costs(study: Study) -> tuple[RungCost, ...]:
    """Return the rungs of a search that has several, the smallest first."""
    if study.fidelity is None:
        return ()
    whole = _ends_at(study, study.fidelity.top)
    found: list[RungCost] = []
    for rung, (count, trials) in enumerate(zip(study.points_by_rung, study.trials_by_rung, strict=True)):
        ends = _ends_at(study, rung)
        found.append(
            RungCost(
                value=study.fidelity.rungs[rung],
                points=count,
                trials=trials,
                epochs=trials * max(trial.settings.train.epochs for trial in ends),
                share=fmean(_work(end) / _work(top) for end, top in zip(ends, whole, strict=True)),
            )
        )
    return tuple(found)


def _ends_at(study: Study, rung: int) -> Sequence[Trial]:
    """Return the trials that represent a rung: every dimension at its first value, or at its last."""
    assert study.fidelity is not None
    return study.boundary_trials(study.fidelity.level(rung))


def _work(trial: Trial) -> float:
    return max_training_flops(trial.settings) + flops_of_test(trial.settings)
