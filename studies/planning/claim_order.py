"""The order `decide` of a grid: trials of the claims that need the least compute start first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..claims.comparisons import iter_comparisons, iter_quantities
from ..claims.reader import CellKey, cell_key
from ..resolve.costs import max_training_flops
from ..schema.factors import SEED

if TYPE_CHECKING:
    from ..resolve.trial import Trial
    from ..study import Study


def turns_by_claim(study: Study) -> dict[str, int]:
    """Return a mapping from trial ids to turns; trials of the claim that needs the fewest FLOPs come first.

    Next come the trials of the claim that adds the fewest FLOPs; the trials of no claim come last. Within a
    claim, every cell is trained with one seed before the next seed.
    """
    cells: dict[CellKey, list[Trial]] = {}
    for trial in study.trials:
        key = cell_key((name, level) for name, level in trial.levels.items() if name != SEED)
        cells.setdefault(key, []).append(trial)
    left = [
        {
            key
            for comparison in iter_comparisons(claim.statement)
            for quantity in iter_quantities(comparison)
            if (key := cell_key(quantity.cell)) in cells  # not a cell that overrides removed
        }
        for claim in study.claims
    ]
    costs = {key: len(cells[key]) * max_training_flops(cells[key][0].settings) for key in set().union(*left)}
    groups: list[Sequence[CellKey]] = []
    while left := [claim for claim in left if claim]:
        chosen = min(left, key=lambda claim: math.fsum(costs[key] for key in claim))
        groups.append([key for key in cells if key in chosen])
        left = [claim - chosen for claim in left]
    placed = {key for group in groups for key in group}
    groups.append([key for key in cells if key not in placed])
    turns, turn = dict[str, int](), 0
    for group in groups:
        for at in range(max((len(cells[key]) for key in group), default=0)):
            turns |= {cells[key][at].id: turn for key in group if at < len(cells[key])}
            turn += 1
    return turns
