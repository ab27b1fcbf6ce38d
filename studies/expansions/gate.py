"""`[[gate]]`: cells that train only after certain claims about other cells are confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from ...errors import nearest_hint
from ..claims.comparisons import Claim, cell_label
from ..resolve.gates import Gate, Gates, has_levels, stage_cost
from ..schema.design import Design, DesignReader, Expansion
from ..schema.factors import SEED, NamedLevels, as_list, level_key
from ..schema.settings import Level, Names
from ..schema.tables import StudyTable
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel, format_value
from ..text.toml_positions import KeyPath
from ..text.units import plural

if TYPE_CHECKING:
    from ..planning.plan import Plan
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
class GateTables(Expansion):
    """The tables `[[gate]]` of a study file."""

    table = StudyTable(
        summary="cells to hold back, and the claims that release them", classes=(GateSettings,), is_list=True
    )
    tables: tuple[tuple[KeyPath, GateSettings], ...]

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

    def count_held(self, design: Design) -> int:
        levels = self._levels(design)
        cells = (cell for block in design.blocks() for cell in block)
        held = sum(any(has_levels(cell, each) for each in levels) for cell in cells)
        return held * len(design.factors[SEED])

    def complete(self, diagnostics: Diagnostics, study: Study) -> Study:
        """Return the study with its gates, and with a stricter test for each claim that opens a gate.

        Each of these n claims is decided at the level 1 − (1 − level) / n (Bonferroni). So the probability of
        any wrong confirmation stays below that of a single claim.
        """
        gates = tuple(self._gates(diagnostics, study))
        names = {name for gate in gates for name in gate.opened_by}
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
        return replace(study, claims=claims, gates=Gates(gates))

    def _gates(self, diagnostics: Diagnostics, study: Study) -> Iterator[Gate]:
        """Yield the valid gates; report faults of the others, and claims that can never open their gate."""
        design = study.design
        levels = self._levels(design)
        for index, ((path, settings), wanted) in enumerate(zip(self.tables, levels, strict=True)):
            named = [claim for claim in study.claims if not set(settings.claims).isdisjoint(_names(claim))]
            held = [trial for trial in study.cells if has_levels(trial.levels, wanted)]
            if len(held) in (0, len(study.cells)):
                whole = "every cell, so that nothing would train" if held else "no cell"
                diagnostics.report((*path, "holds"), f"expected some cells of the study, got {whole}")
                continue
            sizes = {*wanted, *(design.ladder if wanted.keys() & set(design.ladder) else ()), SEED}
            opened = dict[str, frozenset[str]]()
            for claim in named:
                compared = [dict(quantity.cell) for quantity in claim.quantities]
                own = next(
                    (cell for cell in compared for each in levels[index:] if has_levels(cell, each)), None
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

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield a note on each stage: its maximum cost, and the claims that open it.

        Stage 1 has the trials that no gate holds back; each gate adds a stage. Claims whose trials are all
        trained are listed separately, and trials that no claim has opened as held back.
        """
        levels = {claim.spec.name: claim.spec.level for claim in study.claims}
        finished = {one.trial.id for one in plan.trials if one.status in ("done", "failed")}
        planned = {one.trial.id for one in plan.trials}
        gates = study.gates.gates
        for number, trials in enumerate(study.gates.stages(plan)):
            if number == 0:
                yield "stage 1", stage_cost(trials) if trials else ""
                continue
            later = (gate.held for gate in gates[number:])
            own = planned.difference(*later)
            opened = {name: ids & own for name, ids in gates[number - 1].opened_by.items()}
            parts: list[str] = []
            if possible := [one for one in trials if one.trial.id not in plan.held_back]:
                left = [name for name, ids in opened.items() if ids - finished - plan.held_back]
                each = ", each for the levels that it compares" if len(left) > 1 else ""
                level = 100 * min((levels[name] for name in left), default=0.0)
                cost = f"at most {stage_cost(possible)}"
                parts.append(f"{cost}, if a claim is confirmed{each}, at {level:.4g} %: {'; '.join(left)}")
            if closed := len(trials) - len(possible):
                names = "; ".join(name for name, ids in opened.items() if ids & plan.held_back)
                why = f", not confirmed: {names}" if names else ""
                parts.append(f"held back: {plural(closed, 'trial')}{why}")
            if trained := [name for name, ids in opened.items() if ids and ids <= finished]:
                count = len(frozenset[str]().union(*(opened[name] for name in trained)))
                parts.append(f"opened and trained: {plural(count, 'trial')} for {'; '.join(trained)}")
            yield f"stage {number + 1}", "; ".join(parts)


def _names(claim: Claim) -> list[str]:
    """Return the names of a claim for gates, with and without a level if it is made at each level."""
    spec = claim.spec
    return [spec.name, *([spec.name.partition(": ")[2]] if spec.each is not None else [])]


def _key(levels: Mapping[str, Level], without: set[str]) -> frozenset[tuple[str, object]]:
    return frozenset((name, level_key(level)) for name, level in levels.items() if name not in without)


EXPANSION = GateTables
