"""What the rungs of a search cost: how many points come to each, and how much work that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..fidelity import Fidelity
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
    """The rungs of a search that has several, the smallest first."""
    if study.fidelity is None:
        return ()
    if study.is_population:
        return tuple(_generation_costs(study, study.fidelity))
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


def _generation_costs(study: Study, fidelity: Fidelity) -> Iterator[RungCost]:
    """The generations of a population, each of which trains on; the last one with the baseline."""
    share = 1 / len(fidelity.rungs)
    for rung, (points, trials) in enumerate(zip(study.points_by_rung, study.trials_by_rung, strict=True)):
        whole = len(study.point_trials(study.baseline)) if study.baseline and rung == fidelity.top else 0
        yield RungCost(
            value=fidelity.rungs[rung],
            points=points,
            trials=trials,
            epochs=(trials - whole) * fidelity.rungs[0] + whole * fidelity.rungs[-1],
            share=((trials - whole) * share + whole) / trials,
        )


def _ends_at(study: Study, rung: int) -> Sequence[Trial]:
    """The trials that represent a rung: every dimension at its first value, or at its last."""
    assert study.fidelity is not None
    return study.boundary_trials(study.fidelity.level(rung))


def _work(trial: Trial) -> float:
    return max_training_flops(trial.settings) + flops_of_test(trial.settings)
