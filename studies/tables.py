"""A table as a paper prints it, from a study's trials, their stored outcomes and the published numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import polars as pl

from .axes import columns_of, rows_of
from .beside import beside
from .captions import caption
from .cells import Filler
from .fitting import misfits
from .footnotes import Footnotes
from .labels import level_text, one_line
from .picking import pick
from .published import published_tables
from .selecting import chosen, selects
from .settings import Level
from .study import Study
from .table import Key, Table, TableError
from .table_spec import TableSpec
from .tally import Place, Tally, gather
from .trial import Trial
from .widening import with_columns, with_rest


def table(
    study: Study,
    spec: TableSpec,
    outcomes: pl.DataFrame,
    *,
    published: bool = False,
    rest: bool = False,
    begun: Collection[str] = (),
) -> Table:
    """The table that `spec` describes, over the study's trials in `outcomes`, the store's latest attempts.

    `published` puts the paper's numbers beside ours, `rest` also the rows that only the paper has. `begun`
    are the trials that have a checkpoint. TableError if the specification does not fit the study.
    """
    if wrong := misfits(spec, study.design, study.paper):
        faults = (f"table {spec.name}: {'.'.join(map(str, path))}: {message}" for path, message in wrong)
        raise TableError("\n".join(faults))
    trials = [trial for trial in study.asked if selects(spec.select, trial.levels)]
    tallies, lost = _tallies(spec, trials, outcomes, begun)
    filler = _filler(study, spec, tallies, lost, published=published)
    ids = list(dict.fromkeys(trial.id for trial in trials))
    made = _assembled(study.name, filler, chosen(spec.select, study.factors), provenance(ids, outcomes))
    # what the file's caption says of the settings may not hold; levels show by themselves
    if changed := [change for change in study.overrides if not change.startswith("factors.")]:
        sentence = one_line(f"Other than in the study's file: {', '.join(changed)}.")
        made = replace(made, caption=(made.caption[0], sentence, *made.caption[1:]))
    theirs = filler.beside
    if theirs and rest:
        made = with_rest(made, theirs, filler.rows, filler.columns)
    return with_columns(made) if theirs and spec.published.show == "columns" else made


def provenance(trials: Collection[str], outcomes: pl.DataFrame) -> str:
    """Where the numbers come from, told by the rows of these trials alone: how many, what made them, when."""
    known = outcomes.filter(pl.col("trial").is_in(trials)).select("version", "commit", "device", "finished")
    count = f"{len(known)}" if len(known) == len(trials) else f"{len(known)} of {len(trials)}"
    parts = [f"{count} trial{'' if len(trials) == 1 else 's'}"]
    for version in known["version"].unique().sort():
        commits = known.filter(pl.col("version") == version)["commit"].drop_nulls()
        short = ", ".join(commits.str.head(7).unique().sort())
        parts.append(f"activemem {version}" + (f" ({short})" if short else ""))
    if len(known):
        parts.append(", ".join(known["device"].unique().sort()))
        parts.extend(known.select(pl.col("finished").max().dt.strftime("%Y-%m-%d")).to_series())
    return one_line(" · ".join(parts))


def _filler(
    study: Study,
    spec: TableSpec,
    tallies: Mapping[Place, Tally],
    lost: Mapping[Place, str],
    *,
    published: bool,
) -> Filler:
    """What fills the cells of a table: its rows and columns, what is in them, and the paper's beside."""
    levels = chosen(spec.select, study.factors)
    rows, columns = rows_of(spec, levels), columns_of(spec, levels)
    paper = published_tables().get((study.paper or "", spec.printed)) if published else None
    return Filler(
        spec=spec,
        rows=rows,
        columns=columns,
        tallies={place: tally for place, tally in tallies.items() if place[2] in spec.value},
        instead={place[:2]: tally for place, tally in tallies.items() if place[2] == spec.otherwise},
        lost=lost,
        refused=_refused(study, spec),
        beside=beside(paper, spec.published, rows, columns) if paper else None,
        notes=Footnotes(),
    )


def _assembled(study: str, filler: Filler, levels: Mapping[str, tuple[Level, ...]], provenance: str) -> Table:
    """The table of what a filler fills, with the sentences around it.

    The cells come first, since the footnotes are those that filling them has asked for.
    """
    spec, rows, columns = filler.spec, filler.rows, filler.columns
    cells = filler.fill()
    return Table(
        name=spec.name,
        caption=caption(
            spec,
            study=study,
            columns=columns,
            levels=levels,
            tallies=filler.tallies.values(),
            cells=list(chain(*cells)),
            beside=filler.beside,
        ),
        corner=one_line(spec.rows),
        rows=tuple(row.head for row in rows),
        columns=tuple(column.head for column in columns),
        cells=cells,
        footnotes=filler.notes.all(),
        provenance=provenance,
        keys=tuple(
            Key(metric=column.metric.name, level=column.head if column.level else "") for column in columns
        ),
        bands=tuple(zip(*(column.bands for column in columns), strict=True)),
        groups=tuple(row.group for row in rows) if spec.groups.rows else (),
        center=spec.center,
        spread=spec.spread,
    )


def _tallies(
    spec: TableSpec, trials: Sequence[Trial], outcomes: pl.DataFrame, begun: Collection[str]
) -> tuple[dict[Place, Tally], dict[Place, str]]:
    """The tally that each place shows, and of how many levels that it was picked from there is no value."""
    found = gather(
        trials,
        outcomes,
        rows=spec.rows,
        columns=spec.columns,
        metrics=spec.value if spec.otherwise is None else (*spec.value, spec.otherwise),
        over=spec.over,
        apart=spec.pick is not None,
        begun=begun,
    )
    if spec.pick is None:
        return {place: tallies[0] for place, tallies in found.items()}, {}
    return pick(spec, found)


def _refused(study: Study, spec: TableSpec) -> set[tuple[str, str]]:
    """The rows and columns of trials that the study's budget does not allow."""
    kept = (trial.levels for trial in study.refused if selects(spec.select, trial.levels))
    return {
        (level_text(levels[spec.rows]), level_text(levels[spec.columns]) if spec.columns else "")
        for levels in kept
    }
