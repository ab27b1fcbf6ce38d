"""Claims with results: the cells that are picked, and the values, gaps, tests and notes of comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from ...studies.catalog.metrics import ANALYTIC_COSTS, find_metric, is_target
from ...studies.claims.comparisons import (
    Claim,
    Comparison,
    Constant,
    Number,
    Picked,
    Quantity,
    SignedSum,
    cell_label,
    iter_quantities,
    number_parts,
    replace_comparisons,
    replace_metrics,
    weighted_cells,
)
from ...studies.planning.final_values import ValueStatus
from ...studies.resolve.trial import cell_key
from ...studies.text.units import plural
from ..observe import best_levels
from ..statistics.groups import Group
from ..statistics.look_levels import look_level
from ..statistics.speedup import Ends
from .cell_values import CellResults, CellValues, count_notes
from .hypothesis_test import PairedTest, groups_test, paired_test
from .verdicts import OPEN, Judgement, Note, Verdict


def with_picks(claim: Claim, results: CellResults) -> tuple[Claim, dict[Quantity, Note]]:
    """Return the claim with each picked cell in it replaced by the cell that the results pick, and notes.

    Added seeds do not count for this choice. A choice that still lacks a value stays open.
    """
    notes: dict[Quantity, Note] = {}
    if not claim.spec.over:
        return claim, notes

    def pick(number: Quantity | Picked) -> Number:
        if isinstance(number, Quantity) or (found := _pick(number, results)) is None:
            return number
        quantity, note = found
        notes[quantity] = note
        return quantity

    def chosen(comparison: Comparison) -> Comparison:
        left, right = (replace_metrics(side, pick) for side in number_parts(comparison))
        return replace(comparison, left=left, right=right)

    return replace(claim, statement=replace_comparisons(claim.statement, chosen)), notes


def _pick(number: Picked, results: CellResults) -> tuple[Quantity, Note] | None:
    """Pick the cell with the best mean; return None if a trial that may change the choice has not ended."""
    levels = {cell: results.trial_ends(Quantity(number.pick_by, cell)) for cell in number.cells}
    is_judged = results.are_judged
    if not (best := best_levels(number.pick_by, levels, is_judged=is_judged)):
        return None
    own = cell_label(tuple(pair for pair in best[0] if pair not in number.shared_levels))
    what = f"{own} is its best by {number.pick_by}"
    if not any(status == ValueStatus.DONE for status, _ in levels[best[0]]):
        what = f"no level has a {number.pick_by} to pick by; {own}, the first of the file, is compared"
    elif len(best) > 1:
        what += f"; {len(best)} levels tie, and the first of the file was taken"
    where = results.label(number.shared_levels, number.metric)
    return Quantity(number.metric, best[0]), Note(where=where, what=what)


WIDER = 3.0
"""A note says so if compared cells vary this many times as much as the others, or the others as much more."""


class CheckedComparison:
    """A comparison of a claim, with the results of its cells.

    `sides` are the values of left and right, `difference` those of left minus right, and `cells` those of
    each quantity. `ends` has the lowest and the highest possible difference for each seed with a value of
    both sides. They are equal unless a training ended before it reached a target. If both sides are infinite,
    they count as equal. `unlearnt` are the cells that are not better than a guess. The comparison
    `is_untrained` if all cells are, unless it says so itself, as `test_accuracy < 0.6` does. `tests` has one
    test for each look (interim test), and `picks` the notes on picked quantities. If seeds are not paired,
    several cells have no difference for each seed: `ends` is empty.
    """

    def __init__(
        self, comparison: Comparison, claim: Claim, results: CellResults, picks: Mapping[Quantity, Note]
    ) -> None:
        self.comparison, self.claim, self.results, self.picks = comparison, claim, results, picks
        left, right = self.sides = [results.values_of(side) for side in number_parts(comparison)]
        self.difference = results.values_of(SignedSum(((1, comparison.left), (-1, comparison.right))))
        self.cells = [results.cells[each] for each in dict.fromkeys(iter_quantities(comparison))]
        weighted = None if results.pairs_seeds else weighted_cells(comparison)
        # of one cell, which is compared with a number, each run has a difference
        self._weighted = None if weighted is None or len(weighted[0]) < 2 else weighted
        both = [seed for seed in results.every if seed in left.ends and seed in right.ends]
        both = [] if self._weighted else both
        pairs = {seed: (left.ends[seed], right.ends[seed]) for seed in both}
        self.ends: dict[int, Ends] = {
            seed: (_minus(one[0], other[1]), _minus(one[1], other[0])) for seed, (one, other) in pairs.items()
        }
        self._ties = {
            seed for seed, (one, other) in pairs.items() if one == other and all(map(math.isinf, one))
        }
        trained = {
            cell_key(each.quantity.cell): each
            for each in reversed(self.cells)
            if each.quantity.metric not in ANALYTIC_COSTS
        }
        self.unlearnt = [
            cell for place, cell in reversed(trained.items()) if results.has_learnt(place) is False
        ]
        is_all = bool(trained) and len(self.unlearnt) == len(trained)
        self.is_untrained = is_all and not says_unlearnt(comparison)
        self.gaps = self._gaps()
        self.bound = self._bound()
        # a look adds seeds; later looks count as long as all their seeds have values
        first, *later = results.looks
        full = [seeds for seeds in later if self.ends.keys() >= set(seeds)]
        self.tests = list(map(self._test, [tuple(self.ends)] if self.bound else [first, *full]))

    def _gaps(self) -> tuple[Note, ...]:
        """Return notes on trials that lack a value, including trials of added seeds.

        A value that cannot change the comparison is not missing, such as another level of a maximum that has
        reached the largest possible value.
        """
        undefined = {seed for seed in self.results.every if seed not in self.ends}
        gaps = [gap for cell in self.cells if cell.missing.keys() & undefined for gap in cell.gaps]
        counted = [seed for seed in self.results.seeds if all(seed in cell.ends for cell in self.cells)]
        if not gaps and not self._weighted and (count := len(undefined.intersection(counted))):
            what = f"{count} of {len(self.results.seeds)} seeds divide by 0"
            gaps = [Note(where="a quotient", what=what)]
        return tuple(dict.fromkeys(gaps))

    def _bound(self) -> Literal["smallest", "largest"] | None:
        """Return the bound that both sides have with all seeds; one side may be a number that is the bound.

        Return None if there is no such bound, if a value is missing, or if a diverged training only counts as
        the worst.
        """
        strayed = any(self.counted(cell) & cell.remarks.keys() for cell in self.cells)
        values = {value for side in self.sides for seed in self.ends for value in side.ends[seed]}
        if self._weighted:
            values = {value for cell in self.cells for value in cell.values.values()}
        if strayed or self.gaps or not self.cells or len(values) != 1 or not all(map(math.isfinite, values)):
            return None
        lowest, highest = ({side.limits[end] for side in self.sides} for end in (0, 1))
        return "smallest" if values == lowest else "largest" if values == highest else None

    def counted(self, cell: CellValues) -> set[int]:
        """Return the seeds of a cell that the comparison uses."""
        return set(cell.ends if self._weighted else self.ends)

    def _test(self, seeds: tuple[int, ...]) -> PairedTest:
        """Test the comparison with some seeds."""
        spec, results, pool = self.claim.spec, self.results, None
        region = self.comparison.accepted_range(self.difference.step)
        if self._weighted:
            weights, constant = self._weighted
            pools = results.comparable.value_pools(self.claim, weights)
            cells = {each.quantity: each for each in self.cells}
            groups = [
                Group(
                    weight=weight,
                    values=list(cells[each].values.values()),
                    pool=pools[each],
                    rounding=cells[each].rounding,
                )
                for each, weight in weights.items()
            ]
            at_bound, complete = self.bound is not None, not self.gaps
            return groups_test(
                groups, constant, region=region, test=spec.test, complete=complete, at_bound=at_bound
            )
        ends = {seed: self.ends[seed] for seed in seeds if seed in self.ends}
        if spec.test == "pooled":
            pool = results.comparable.pool(self.claim, self.difference.weights, seeds)
        # a training that missed a target, as a diverged one has
        targets = [cell.ends for cell in self.cells if is_target(cell.quantity.metric)]
        is_censored = any(math.isinf(each[seed][1]) for each in targets for seed in each.keys() & set(seeds))
        return paired_test(
            differences={seed: low for seed, (low, _) in ends.items()},
            highest={seed: high for seed, (_, high) in ends.items()} if is_censored else None,
            region=region,
            rounding=self.difference.rounding,
            test=spec.test,
            complete=not self.gaps,
            exact=bool(self.cells) and all(cell.quantity.metric in ANALYTIC_COSTS for cell in self.cells),
            ties=len(self._ties & ends.keys()),
            at_bound=self.bound is not None,
            pool=pool,
            family=len(self.claim.comparisons),
            alpha=look_level(results.counts, 1 - spec.level),
        )

    @property
    def has_begun(self) -> bool:
        """Return whether all trials of the comparison have begun for at least one seed.

        Also return True if the comparison has a value without some of them: some costs are computed from
        settings, and a level at the largest possible value settles a maximum.
        """
        missing = [cell.missing.items() for cell in self.cells]
        not_run = {seed for each in missing for seed, one in each if one.status == ValueStatus.MISSING}
        return any(seed in self.ends or seed not in not_run for seed in self.results.seeds)

    def judge(self, threshold: float) -> Judgement:
        """Judge the comparison by the first look that has a p up to `threshold`, or by the last look."""
        deciding = (test for test in self.tests if test.p <= threshold and not self.claim.uses_last_look)
        test = next(deciding, self.tests[-1])
        verdict = Verdict.CONFIRMED if test.inside else Verdict.REFUTED
        if test.p > threshold:
            verdict = Verdict.UNDECIDED
        if self.is_untrained:
            verdict = Verdict.UNTRAINED
        if not self.has_begun:
            verdict = Verdict.NOT_RUN
        return Judgement(
            verdict=verdict,
            deciding=self.comparison,
            test=test,
            favours=test.inside,
            needed=test.needed(1 - threshold) if verdict in OPEN else None,
            parts=(self.comparison,),
        )


def says_unlearnt(comparison: Comparison) -> bool:
    """Return whether a comparison says that a cell is worse than a number, as one that learns nothing is."""
    match comparison:
        case Comparison(left=Quantity(metric=metric), sign="<" | "<=" | ">" | ">=" as sign, right=Constant()):
            return find_metric(metric).higher_is_better is sign.startswith("<")
        case _:
            return False


def _minus(left: float, right: float) -> float:
    """Return left minus right; 0 if both are the same infinity."""
    return 0.0 if left == right else left - right


def notes_on_cells(checked: CheckedComparison) -> Iterator[Note]:
    """Yield notes on picked cells, trainings that diverged or missed a target, and runs without a pair."""
    alone = sum(len(cell.ends.keys() - checked.counted(cell)) for cell in checked.cells)
    if checked.results.are_judged and alone:
        yield Note(where="pairs", what=f"{plural(alone, 'run')} without one of the same seed do not count")
    for cell in checked.cells:
        if (pick := checked.picks.get(cell.quantity)) is not None:
            yield pick
        seeds = checked.counted(cell)
        count = max(len(seeds), len(checked.results.seeds if checked.results.pairs_seeds else cell.trials))
        yield from count_notes(
            (why for seed, why in cell.remarks.items() if seed in seeds),
            cell.where,
            count,
            checked.results.repeats,
        )
    for cell in [] if checked.is_untrained else checked.unlearnt:
        yield Note(where=cell.where, what="not learnt, no better than a guess")


def notes_on_test(
    checked: CheckedComparison, own: Judgement, label: str, of_claim: Verdict
) -> Iterator[Note]:
    """Yield notes on what the test of a comparison shows besides its numbers.

    They are on an effect without a bound, on values that are all at a bound, which more seeds do not change,
    and on other cells: if they vary far more, they widen an open interval; if far less, a verdict is in
    doubt.
    """
    test, is_open, results = own.test, own.verdict in OPEN, checked.results
    if test.bounds == (None, None) and test.is_unknown:
        yield Note(where="target", what="not reached by either side")
    elif test.bounds == (None, None) and test.n:
        yield Note(where="effect", what="no bound, as trainings of both sides missed the target")
    if (bound := checked.bound) is not None:
        easier = (
            "fewer epochs, or steps_to a value," if bound == "largest" else "an easier task or more epochs"
        )
        if results.are_judged:
            easier = "a harder test" if bound == "largest" else "an easier test"
        is_advised = is_open or own.verdict is Verdict.UNTRAINED
        advice = f"; {easier} may show a difference" if is_advised else ""
        what = f"all values of {plural(test.n, results.repeats)} at the {bound} possible value{advice}"
        yield Note(where=label, what=what)
    if test.own_spread is None or test.spread is None or is_open != (of_claim in OPEN):
        return
    if is_open and test.spread > WIDER * test.own_spread > 0:
        yield Note(kind="spread", where="spread", what=f"other cells vary over {WIDER:g} times as much")
    if is_open or test.own_spread < test.spread:
        return  # with calmer other cells, the own spread is above the pooled one
    seeds = next((each for each in results.looks if len(each) == test.n), results.every)
    others = results.comparable.pool(checked.claim, checked.difference.weights, seeds, of_others=True)
    if others is not None and test.own_spread > WIDER * others.sd:
        yield Note(kind="spread", where="spread", what=f"other cells vary less than 1 / {WIDER:g} as much")
