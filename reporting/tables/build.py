"""A table as a paper prints it, from a study's trials, their stored outcomes and the published numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import polars as pl

from ...studies.presentation.kinds import Beside, TableKind
from ...studies.study import Study
from ..provenance import overrides_sentence, stale_sentence
from .table import Table, TableError


def build_table(
    study: Study,
    spec: TableKind,
    outcomes: pl.DataFrame,
    *,
    published: bool = False,
    paper_only: bool = False,
    begun: Collection[str] = (),
) -> Table:
    """Return the table that `spec` describes, over the study's trials in `outcomes`, the latest attempts.

    `published` adds the paper's numbers, `paper_only` also the rows and columns that only the paper has.
    `begun` are the trials with a checkpoint. TableError if the specification does not fit the study.
    """
    spec = spec.with_levels(study.design)
    if wrong := list(spec.faults(study.design, study.paper)):
        faults = (f"table {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise TableError("\n".join(faults))
    table = spec.table(study, outcomes, Beside(published=published, paper_only=paper_only, begun=begun))
    told = [overrides_sentence(study.overrides), stale_sentence(study, outcomes)]
    return replace(table, caption=(*table.caption[:1], *filter(None, told), *table.caption[1:]))
