"""A study and the results in its store, read at one moment.

All tables and figures are made from it. A store may grow while results are made. All results of one snapshot
show the same moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from .. import studies  # they load names when these are used: a status needs few
from ..storage import Store
from ..storage.rows import has_trial
from ..studies.catalog.metrics import METRICS, metric_family, metric_index
from ..studies.planning.status import StudyStatus, study_outcomes, study_status, unfinished_of
from ..studies.planning.trials_to_run import own_costs
from ..studies.study import Study
from .outcomes import load_outcomes, provenance

if TYPE_CHECKING:
    from ..studies.claims.comparisons import Claim, Extrapolation
    from ..studies.presentation.kinds import CurveKind, ResultKeys, TableKind
    from ..studies.searches.points import SearchPoints
    from .claims.verdicts import ClaimResult
    from .curves.curve import Curve
    from .statistics.estimates import Interval
    from .tables.table import Table


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A study and all outcomes in its store at one moment. They include the outcomes of other studies."""

    study: Study
    store: Store
    outcomes: pl.DataFrame

    @classmethod
    def of(cls, study: Study, store: Store, shown: Iterable[ResultKeys | Claim] | None = None) -> Snapshot:
        """Read the store, and return the snapshot. Raise StoreError if the store cannot be read.

        It has the metrics of all tables, figures and claims of the study, or of those that are `shown`.
        """
        return cls(study=study, store=store, outcomes=load_outcomes(store, study, shown=shown))

    @cached_property
    def own_outcomes(self) -> pl.DataFrame:
        """Return the outcomes of the study's own trials: the latest attempt at each trial."""
        return study_outcomes(self.study, self.outcomes)

    @cached_property
    def counted_outcomes(self) -> pl.DataFrame:
        """Return the outcomes of the study's own trials and of added seeds, which claims use."""
        return study_outcomes(self.study.with_later_seeds(), self.outcomes)

    @cached_property
    def trainings(self) -> pl.DataFrame:
        """Return the counted outcomes and the earlier trials that they continue, with costs to add up.

        The FLOPs and seconds of a trial do not include the earlier trial that it continues.
        """
        parts = own_costs(self.outcomes)
        trials = {*self.counted_outcomes["trial"]}
        while more := {*parts.filter(has_trial(trials))["continued_from"].drop_nulls()} - trials:
            trials |= more
        return parts.filter(has_trial(trials))

    @cached_property
    def status(self) -> StudyStatus:
        """Return the status of the study: the progress of its trials."""
        return study_status(self.study, self.store, self.outcomes)

    def metrics(self, names: Collection[str]) -> pl.DataFrame:
        """Return the stored history of these metrics, and of those that describe them.

        It is that of the study's trials, with those of added seeds. A metric with an index has the
        history of its whole family.
        """
        families = {metric_family(name) for name in names}
        for metric in [METRICS[each] for each in families if each in METRICS]:
            families |= {*metric.index_labels, metric.noted} - {""}
        trials = [trial.id for trial in self.study.with_later_seeds().trials]
        return self.store.metrics(trials, families)

    @property
    def claim_metrics(self) -> pl.DataFrame | None:
        """Return the stored history of the metrics that the study's claims use by index, if any."""
        quantities = (each for claim in self.study.claims for each in claim.quantities)
        # only the history has an index, as in `bleu[10-20]`
        names = {each.metric for each in quantities if metric_index(each.metric)}
        return self.metrics(names) if names else None

    @cached_property
    def points(self) -> SearchPoints:
        """Return the finished points of a search: those without unfinished trials."""
        return studies.find_points(self.study, self.outcomes)

    def tables(self, specs: Sequence[TableKind] | None = None, *, published: bool = True) -> list[Table]:
        """Return the tables for `specs` (default: the study's own). Raise TableError if one is invalid."""
        from .kinds import build_table  # noqa: PLC0415 -- loaded where it is needed

        unfinished = unfinished_of(self.study, self.store, self.outcomes["trial"].to_list())
        begun = [each.id for each in unfinished]
        found: list[Table] = []
        for spec in self.study.tables if specs is None else specs:
            if spec.studies_beside:
                from .several_studies import several_studies_table  # noqa: PLC0415 -- few studies have one

                found.append(several_studies_table(self.study, spec, self.store, published=published))
            else:
                found.append(build_table(self.study, spec, self.outcomes, published=published, begun=begun))
        return found

    def curves(self, specs: Sequence[CurveKind] | None = None) -> list[Curve]:
        """Return the figures for `specs` (default: the study's own). Raise CurveError if one is invalid."""
        from .kinds import build_curve  # noqa: PLC0415 -- loaded where it is needed

        specs = self.study.curves if specs is None else specs
        names = {name for spec in specs if spec.needs_history for _, name in spec.named_metrics()}
        metrics = self.metrics(names) if names else None
        return [
            build_curve(self.study, spec, self.outcomes, metrics if spec.needs_history else None)
            for spec in specs
        ]

    def claims(self) -> tuple[ClaimResult, ...]:
        """Return the verdict on each claim of the study file, with all of its comparisons."""
        from .claims.check import check_claims  # noqa: PLC0415 -- loaded where it is needed

        origin = provenance(set(self.counted_outcomes["trial"]), self.outcomes)
        found = check_claims(self.study.with_later_seeds(), self.outcomes, self.claim_metrics)
        return tuple(replace(each, origin=origin) for each in found)

    def prediction(self, law: Extrapolation) -> Interval | None:
        """Predict the value of a larger model by a power law, with a 95 % interval; None if unknown.

        The interval is the one in tables of the kind `scaling`.
        """
        from ..studies.claims.comparisons import iter_quantities  # noqa: PLC0415 -- loaded where it is needed
        from .claims.cell_values import CellResults  # noqa: PLC0415 -- loaded where it is needed

        study, quantities = self.study.with_later_seeds(), set(iter_quantities(law))
        return CellResults(study, quantities, self.outcomes, self.claim_metrics).prediction(law)
