"""The gates of a study: which trials wait until claims about other trials are confirmed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..schema.factors import level_key
from ..schema.settings import Level
from ..text.units import format_duration, plural, si_prefix
from .costs import max_trial_flops

if TYPE_CHECKING:
    from ..planning.plan import Plan, PlannedTrial
    from ..study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate: the cells that it holds back until its claims are confirmed.

    `held` has the ids of the trials of these cells, and `opened_by` the ids of the trials that each claim of
    the gate opens.
    """

    levels: Mapping[str, Sequence[Level]]
    held: frozenset[str]
    opened_by: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of a study in file order. A trial trains only after all gates that hold it have opened."""

    gates: tuple[Gate, ...] = ()

    def held(self, confirmed: Sequence[str] = ()) -> frozenset[str]:
        """Return the ids of the trials that are still held back once these claims are confirmed."""
        left = frozenset[str]()
        for gate in self.gates:
            left |= gate.held.difference(*(gate.opened_by.get(name, ()) for name in confirmed))
        return left

    def closed(self, confirmed: Sequence[str], unfinished: Collection[str]) -> frozenset[str]:
        """Return the ids of the unfinished trials that are held back for good.

        Their claims are decided, since all open trials of earlier stages have ended. `confirmed` names the
        confirmed claims.
        """
        held = self.held(confirmed)
        first = min((self.stage(each) for each in unfinished if each not in held), default=len(self.gates))
        return frozenset(each for each in held.intersection(unfinished) if self.stage(each) <= first)

    def stage(self, trial: str) -> int:
        """Return the number of the last gate that holds this trial back, from 1; 0 if none does."""
        return max((number for number, gate in enumerate(self.gates, 1) if trial in gate.held), default=0)

    def first_gate(self, claim: str) -> int | None:
        """Return the index of the first gate that waits for this claim; None if none does."""
        return next((place for place, gate in enumerate(self.gates) if claim in gate.opened_by), None)

    def without_held(self, study: Study, first: int) -> Study:
        """Return a study without the cells of the gate `first`, counted from 0, and of all later gates.

        The claims that open this gate are decided on the remaining cells only, so that the others cannot
        change the verdicts.
        """
        cells = tuple(
            trial
            for trial in study.cells
            if not any(has_levels(trial.levels, gate.levels) for gate in self.gates[first:])
        )
        return replace(study, cells=cells)

    def stages(self, plan: Plan) -> list[list[PlannedTrial]]:
        """Return the unfinished trials by stage: first those without a gate, then those of each gate."""
        stages: list[list[PlannedTrial]] = [[] for _ in range(len(self.gates) + 1)]
        for one in plan.trials:
            if one.status not in ("done", "failed"):
                stages[self.stage(one.trial.id)].append(one)
        return stages

    def stage_words(self, plan: Plan) -> Iterator[str]:
        """Yield the cost of each stage with unfinished trials."""
        for number, trials in enumerate(self.stages(plan), start=1):
            if trials:
                yield f"stage {number}: {stage_cost(trials)}"

    def open_words(self, opened: Collection[str]) -> Iterator[str]:
        """Yield for each gate how many of its trials are among the open ones."""
        for number, gate in enumerate(self.gates, start=1):
            count = len(gate.held.intersection(opened))
            yield f"gate {number}: {count} of {plural(len(gate.held), 'trial')} open"


def stage_cost(trials: Sequence[PlannedTrial]) -> str:
    """Return the cost of trials as text: `12 trials, 3.4 TFLOPs, at most 16 min of training`."""
    flops = math.fsum(max_trial_flops(one.trial.settings) for one in trials)
    unit, size = si_prefix(flops)
    cost = f"{plural(len(trials), 'trial')}, {flops / size:,.1f} {unit}FLOPs"
    seconds = [one.estimate.seconds for one in trials]
    known = [each for each in seconds if each is not None]
    if not known or len(known) < len(seconds):
        return cost
    return f"{cost}, at most {format_duration(math.fsum(known))} of training"


def has_levels(levels: Mapping[str, Level], wanted: Mapping[str, Sequence[Level]]) -> bool:
    """Return whether a cell has one of the wanted levels of each factor."""
    return all(level_key(levels[name]) in {level_key(each) for each in wanted[name]} for name in wanted)
