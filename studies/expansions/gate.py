"""`[[gate]]`: cells that train only after certain claims about other cells are confirmed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from ...errors import nearest_hint
from ..claims.comparisons import Claim, cell_label
from ..resolve.costs import max_trial_flops
from ..schema.design import Design, DesignReader, Expansion, HeldTrials
from ..schema.factors import SEED, NamedLevels, as_list, level_key
from ..schema.settings import Level, Names
from ..schema.tables import StudyTable
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel, format_value
from ..text.toml_positions import KeyPath
from ..text.units import format_duration, plural, si_prefix

if TYPE_CHECKING:
    from ..planning.plan import Plan, PlannedTrial
    from ..study import Study

TABLE = "gate"

_DIGITS = 12  # decimals of a confidence level, so that rounding errors do not change its text


class GateSettings(StrictModel):
    """Keys of `[[gate]]`: cells to hold back, and the claims that release them."""

    claims: Names = Field(min_length=1)
    """the names of the claims; each confirmed claim opens the cells with the levels that it compares, at the
    sizes that this gate holds back"""
    holds: dict[str, Any]
    """the cells that train only after a claim has opened them: one level or a list of levels for each named
    factor, as in `{ width = [128, 192] }`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate: the cells that it holds back until its claims are confirmed.

    `held` has the ids of the trials of these cells, and `opened_by` the ids of the trials that each claim of
    the gate opens.
    """

    levels: Mapping[str, Sequence[Level]]
    held: frozenset[str]
    opened_by: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates(HeldTrials, Expansion):
    """The gates of a study in file order. A trial trains only after all gates that hold it have opened."""

    table = StudyTable(
        summary="cells to hold back, and the claims that release them", classes=(GateSettings,), is_list=True
    )
    tables: tuple[tuple[KeyPath, GateSettings], ...]
    gates: tuple[Gate, ...] = ()

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        """Return the gates of a study file; report faults."""
        if diagnostics.has_search:
            diagnostics.report(
                (TABLE,), "a gate needs the cells of a grid, but this study is a search: remove the gate"
            )
            return None
        read: dict[KeyPath, GateSettings | None] = {
            (TABLE, index): diagnostics.validate(GateSettings, (TABLE, index), table)
            for index, table in enumerate(diagnostics.tables(TABLE))
        }
        return cls(tables=tuple((path, settings) for path, settings in read.items() if settings is not None))

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        """Report factors, levels and claims of gates that the study does not have."""
        report, known = reader.diagnostics.report, list(reader.levels)
        tables = [each for each in reader.diagnostics.tables("claim") if isinstance(each, Mapping)]
        names = [name for each in tables if isinstance(name := each.get("name"), str)]
        for path, settings in self.tables:
            place = (*path, "holds")
            if not settings.holds:
                report(place, f"expected levels of a factor, got {format_value(settings.holds)}")
            for factor, levels in settings.holds.items():
                if factor not in known:
                    report((*place, factor), f"unknown factor '{factor}'{nearest_hint(factor, known)}")
                for each in as_list(levels):
                    reader.check_levels(place, {factor: each})
            for name in settings.claims:
                if name not in names and name.partition(": ")[2] not in names:
                    message = f"unknown claim '{name}'{nearest_hint(name, names)}"
                    report((*path, "claims"), message)
        return {}

    def held(self, confirmed: Sequence[str] = ()) -> frozenset[str]:
        left = frozenset[str]()
        for gate in self.gates:
            left |= gate.held.difference(*(gate.opened_by.get(name, ()) for name in confirmed))
        return left

    def closed(self, confirmed: Sequence[str], unfinished: Collection[str]) -> frozenset[str]:
        held = self.held(confirmed)
        first = min((self.stage(each) for each in unfinished if each not in held), default=len(self.gates))
        return frozenset(each for each in held.intersection(unfinished) if self.stage(each) <= first)

    def _levels(self, design: Design) -> list[dict[str, list[Level]]]:
        """Return the levels of the cells that each gate holds back, by factor."""
        names = {name: NamedLevels(levels, f"of {name}") for name, levels in design.factors.items()}
        return [
            {
                name: [names[name].find(each) for each in as_list(levels)]
                for name, levels in each.holds.items()
            }
            for _, each in self.tables
        ]

    def stage(self, trial: str) -> int:
        """Return the number of the last gate that holds this trial back, from 1; 0 if none does."""
        return max((number for number, gate in enumerate(self.gates, 1) if trial in gate.held), default=0)

    def count_held(self, design: Design) -> int:
        levels = self._levels(design)
        cells = (cell for block in design.blocks() for cell in block)
        held = sum(any(_has_levels(cell, each) for each in levels) for cell in cells)
        return held * len(design.factors[SEED])

    def first_gate(self, claim: str) -> int | None:
        return next((place for place, gate in enumerate(self.gates) if claim in gate.opened_by), None)

    def without_held(self, study: Study, first: int) -> Study:
        cells = tuple(
            trial
            for trial in study.cells
            if not any(_has_levels(trial.levels, gate.levels) for gate in self.gates[first:])
        )
        return replace(study, source=replace(study.source, cells=cells))

    def complete(self, diagnostics: Diagnostics, study: Study) -> Study:
        """Return the study with its gates, and with a stricter test for each claim that opens a gate.

        Each of these n claims is decided at the level 1 − (1 − level) / n (Bonferroni). So the probability of
        any wrong confirmation stays below that of a single claim.
        """
        found = replace(self, gates=tuple(self._gates(diagnostics, study)))
        names = {name for gate in found.gates for name in gate.opened_by}
        claims = tuple(
            replace(
                claim,
                spec=claim.spec.model_copy(
                    update={"level": round(1 - (1 - claim.spec.level) / len(names), _DIGITS)}
                ),
            )
            if claim.spec.name in names
            else claim
            for claim in study.claims
        )
        return replace(study, claims=claims, expansions={**study.expansions, TABLE: found})

    def _gates(self, diagnostics: Diagnostics, study: Study) -> Iterator[Gate]:
        """Yield the valid gates; report faults of the others, and claims that can never open their gate."""
        design = study.design
        levels = self._levels(design)
        for index, ((path, settings), wanted) in enumerate(zip(self.tables, levels, strict=True)):
            named = [claim for claim in study.claims if not set(settings.claims).isdisjoint(_names(claim))]
            held = [trial for trial in study.cells if _has_levels(trial.levels, wanted)]
            if len(held) in (0, len(study.cells)):
                whole = "every cell, so that nothing would train" if held else "no cell"
                diagnostics.report((*path, "holds"), f"expected some cells of the study, got {whole}")
                continue
            sizes = {*wanted, *(design.ladder if wanted.keys() & set(design.ladder) else ()), SEED}
            opened = dict[str, frozenset[str]]()
            for claim in named:
                compared = [dict(quantity.cell) for quantity in claim.quantities]
                own = next(
                    (cell for cell in compared for each in levels[index:] if _has_levels(cell, each)), None
                )
                if own is not None:
                    what = f"the claim '{claim.spec.name}' compares {cell_label(tuple(own.items()))}"
                    why = "which this gate or a later one holds back"
                    message = f"{what}, {why}: name a claim about cells that train before this gate"
                    diagnostics.report((*path, "claims"), message)
                others = {_key(cell, sizes) for cell in compared}
                opened[claim.spec.name] = frozenset(
                    trial.id for trial in held if _key(trial.levels, sizes) in others
                )
            yield Gate(levels=wanted, held=frozenset(trial.id for trial in held), opened_by=opened)

    def _stages(self, plan: Plan) -> list[list[PlannedTrial]]:
        """Return the unfinished trials by stage: first those without a gate, then those of each gate."""
        stages: list[list[PlannedTrial]] = [[] for _ in range(len(self.gates) + 1)]
        for one in plan.trials:
            if one.status not in ("done", "failed"):
                stages[self.stage(one.trial.id)].append(one)
        return stages

    def stage_words(self, plan: Plan) -> Iterator[str]:
        for number, trials in enumerate(self._stages(plan), start=1):
            if trials:
                yield f"stage {number}: {_stage_cost(trials)}"

    def open_words(self, opened: Collection[str]) -> Iterator[str]:
        for number, gate in enumerate(self.gates, start=1):
            count = len(gate.held.intersection(opened))
            yield f"gate {number}: {count} of {plural(len(gate.held), 'trial')} open"

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield a note on each stage: its maximum cost, and the claims that open it.

        Stage 1 has the trials that no gate holds back; each gate adds a stage. Claims whose trials are all
        trained are named apart, and trials that no claim has opened are said to be held back.
        """
        levels = {claim.spec.name: claim.spec.level for claim in study.claims}
        finished = {one.trial.id for one in plan.trials if one.status in ("done", "failed")}
        planned = {one.trial.id for one in plan.trials}
        for number, trials in enumerate(self._stages(plan)):
            if number == 0:
                yield "stage 1", _stage_cost(trials) if trials else ""
                continue
            later = (gate.held for gate in self.gates[number:])
            own = planned.difference(*later)
            opened = {name: ids & own for name, ids in self.gates[number - 1].opened_by.items()}
            parts: list[str] = []
            if possible := [one for one in trials if one.trial.id not in plan.held_back]:
                left = [name for name, ids in opened.items() if ids - finished - plan.held_back]
                each = ", each for the levels that it compares" if len(left) > 1 else ""
                level = 100 * min((levels[name] for name in left), default=0.0)
                cost = f"at most {_stage_cost(possible)}"
                parts.append(f"{cost}, if a claim is confirmed{each}, at {level:.4g} %: {'; '.join(left)}")
            if closed := len(trials) - len(possible):
                names = "; ".join(name for name, ids in opened.items() if ids & plan.held_back)
                why = f", not confirmed: {names}" if names else ""
                parts.append(f"held back: {plural(closed, 'trial')}{why}")
            if trained := [name for name, ids in opened.items() if ids and ids <= finished]:
                count = len(frozenset[str]().union(*(opened[name] for name in trained)))
                parts.append(f"opened and trained: {plural(count, 'trial')} for {'; '.join(trained)}")
            yield f"stage {number + 1}", "; ".join(parts)


def _stage_cost(trials: Sequence[PlannedTrial]) -> str:
    """Return the cost of trials as text: `12 trials, 3.4 TFLOPs, at most 16 min of training`."""
    flops = math.fsum(max_trial_flops(one.trial.settings) for one in trials)
    unit, size = si_prefix(flops)
    cost = f"{plural(len(trials), 'trial')}, {flops / size:,.1f} {unit}FLOPs"
    seconds = [one.estimate.seconds for one in trials]
    known = [each for each in seconds if each is not None]
    if not known or len(known) < len(seconds):
        return cost
    return f"{cost}, at most {format_duration(math.fsum(known))} of training"


def _names(claim: Claim) -> list[str]:
    """Return the names of a claim for gates, with and without a level if it is made at each level."""
    spec = claim.spec
    return [spec.name, *([spec.name.partition(": ")[2]] if spec.each is not None else [])]


def _key(levels: Mapping[str, Level], without: set[str]) -> frozenset[tuple[str, object]]:
    return frozenset((name, level_key(level)) for name, level in levels.items() if name not in without)


def _has_levels(levels: Mapping[str, Level], wanted: Mapping[str, Sequence[Level]]) -> bool:
    return all(level_key(levels[name]) in {level_key(each) for each in wanted[name]} for name in wanted)


EXPANSION = Gates
