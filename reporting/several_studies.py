"""A table whose columns are cells of several studies, which are shown side by side and not compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import nearest_hint
from ..storage import Store, StoreError
from ..studies.last_run import load_last_run
from ..studies.planning.status import unfinished_of
from ..studies.presentation.table_keys import PublishedSpec
from ..studies.schema.factors import NamedLevels, as_list, one_line
from ..studies.schema.reported_metrics import missing_metric
from ..studies.study import Study, is_path
from ..studies.text.errors import StudyError
from ..studies.text.units import listed
from .kinds import build_table
from .outcomes import load_outcomes
from .tables.cells import TIE_NOTE, TableCells
from .tables.published import warn_of_unmatched
from .tables.table import ColumnKey, Footnotes, Table, TableError, TableExtras, TablePart

if TYPE_CHECKING:
    from ..studies.catalog.published import PublishedMatch
    from ..studies.presentation.kinds import TableKind
    from ..studies.presentation.table_keys import CellsTable
    from ..studies.schema.settings import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The columns of one study: the keys of its own table, and the names of their only level, if any."""

    study: Study
    spec: CellsTable
    names: tuple[str, ...]


def several_studies_table(study: Study, keys: TableKind, store: Store, *, published: bool) -> Table:
    """Return a table with the columns of each study in `studies_beside` of its `keys`.

    Rows are joined by the text of their level. A row that a study lacks has empty cells. A study without the
    factor of the columns has one column, named by its task or, if that is not the factor, by the study.
    Published numbers are those of `study`, which has the table. Raise TableError with all faults.
    """
    spec = cast("CellsTable", keys)  # no other kind has several studies
    studies, absent, faults = _find_studies(study, spec, store)
    parts: list[_Part] = []
    for each in studies:
        own, wrong = _own_part(replace(each, published=study.published), spec)
        parts += [own] if own else []
        faults += [f"{each.name}: {fault}" for fault in wrong]
    if not absent:
        faults += _unused_names(spec, parts)
    if faults or not parts:
        raise TableError("\n".join(f"table {spec.name}: {fault}" for fault in faults or absent))
    outcomes = [load_outcomes(store, part.study, shown=[part.spec]) for part in parts]
    rows: dict[str, str] = {}
    for part, found in zip(parts, outcomes, strict=True):
        cells = TableCells(study=part.study, spec=part.spec, outcomes=found)
        rows = {**rows, **{row.level: row.head for row in cells.rows if row.level not in rows}}
    tables: list[Table] = []
    matches: list[Sequence[PublishedMatch]] = []
    for part, found in zip(parts, outcomes, strict=True):
        begun = [each.id for each in unfinished_of(part.study, store, found["trial"].to_list())]
        place = TablePart(rows=rows, column=part.names)
        tables.append(build_table(part.study, part.spec, found, published=published, begun=begun, part=place))
        extras = TableExtras(published=published, part=place)
        cells = TableCells(study=part.study, spec=part.spec, outcomes=found, extras=extras)
        matches.append(cells.published_matches)
    table = _join(spec, parts, tables)
    warn_of_unmatched(matches, list(rows), [key.level or key.metric for key in table.keys])
    return replace(table, remarks=(*(f"Not in this table: {each}." for each in absent), *table.remarks))


def _find_studies(study: Study, spec: CellsTable, store: Store) -> tuple[list[Study], list[str], list[str]]:
    """Return the studies that a table names, those that cannot be read, and faults.

    Faults are of studies without cells, and of factors and levels that none of them has.
    """
    found: list[Study] = []
    absent: list[str] = []
    faults: list[str] = []
    for name in spec.studies:
        try:
            each = study if name == study.name else load_last_run(_locate(name, study, store), store)
        except StudyError as error:
            absent.append(f"{name}: {error.faults[0].message}")
            continue
        except StoreError as error:
            absent.append(f"{name}: {error}")
            continue
        if each.search is not None:
            faults.append(f"studies: {name} is a search, and has no cells")
        elif each.runs is not None:
            faults.append(
                f"studies: {name} judges runs that were not trained here: show them as published numbers"
            )
        elif each.name in {one.name for one in found}:
            faults.append(f"studies: {name} is the study {each.name}, which is there already")
        else:
            found.append(each)
    known = {factor for each in found for factor in each.design.known_levels}
    for key, names in (("rows", [spec.rows]), ("select", list(spec.select)), ("over", list(spec.over))):
        for name in names:
            if found and not faults and name not in known:
                faults.append(f"{key}: no study has a factor '{name}'{nearest_hint(name, known)}")
    if found and not faults:
        faults += _level_faults(spec, found)
    return found, absent, faults


def _level_faults(spec: CellsTable, studies: Sequence[Study]) -> Iterator[str]:
    """Yield a fault for each selected level that no study has."""
    for factor, kept in spec.select.items():
        levels = [each.design.known_levels.get(factor, ()) for each in studies]
        for level in as_list(kept):
            if not any(own and NamedLevels(own, "").has(level) for own in levels):
                yield f"select.{factor}: no study has a level '{level}'"


def _locate(name: str, study: Study, store: Store) -> str:
    """Return the name or the path of a study. A path is relative to the file of the study with the table.

    Of a study that was read from the store, no file is opened: a path then means the study that ran from a
    file of this name.
    """
    if not is_path(name):
        return name
    if study.document.path is not None:
        return str(study.document.path.parent / name)
    ran = [
        each
        for each in store.records.names()
        if Path((store.records.load(each) or {}).get("path") or "").name == Path(name).name
    ]
    return ran[0] if len(ran) == 1 else Path(name).stem


def _own_part(study: Study, spec: CellsTable) -> tuple[_Part | None, list[str]]:
    """Return the columns of one study, None if it has none, and faults.

    They have the metrics, the factors and the selected levels that the study has.
    """
    factors = study.design.known_levels
    trials = [trial.common for trial in study.cells if trial.seed == study.seeds[0]]
    lacking = {name: fault for name in spec.value if (fault := missing_metric(name, trials))}
    value = tuple(name for name in spec.value if name not in lacking)
    if spec.rows not in factors:
        return None, [f"rows: it has no factor '{spec.rows}'; its factors are {listed(factors)}"]
    if not value:
        return None, [f"value: {next(iter(lacking.values()))}"]
    select: dict[str, Any] = {}
    for factor in factors.keys() & spec.select.keys():
        known = NamedLevels(factors[factor], "")
        select[factor] = [level for level in as_list(spec.select[factor]) if known.has(level)]
        if not select[factor]:
            return None, []
    columns = spec.columns if spec.columns in factors else None
    tasks = {trial.task.name for trial in trials}
    task = tasks.pop() if spec.columns == "task" and len(tasks) == 1 else ""
    names = () if columns or spec.columns is None else tuple(filter(None, (task, study.name)))
    published = [_own_names(one, spec, factors, value, names) for one in spec.published or (PublishedSpec(),)]
    keys = {
        "studies": (),
        "published": tuple(published),
        "value": value,
        "columns": columns,
        "select": select,
        "over": tuple(factor for factor in spec.over if factor in factors),
        "otherwise": spec.otherwise if spec.otherwise not in value else None,
        "digits": {name: digits for name, digits in spec.digits.items() if name in value},
    }
    own = spec.model_copy(update=keys).with_levels(study.design)
    faults = [
        f"{'.'.join(map(str, path))}: {fault}" for path, fault in own.faults(study.design, study.published)
    ]
    return (None if faults else _Part(study=study, spec=own, names=names)), faults


def _own_names(
    given: PublishedSpec,
    spec: CellsTable,
    factors: Mapping[str, tuple[Level, ...]],
    value: Sequence[str],
    names: Sequence[str],
) -> PublishedSpec:
    """Return the paper's names of a study's rows and columns. For an only level, it is that of its metric."""
    rows, levels = (NamedLevels(factors.get(name or "", ()), "") for name in (spec.rows, spec.columns))
    columns = {
        name: key
        for name, key in given.columns.items()
        if name.partition(":")[0] in value or (levels.levels and levels.has(name))
    }
    columns |= dict(islice(((value[0], given.columns[name]) for name in names if name in given.columns), 1))
    return PublishedSpec(
        table=given.table,
        rows={name: key for name, key in given.rows.items() if rows.has(name)},
        columns=columns,
    )


def _unused_names(spec: CellsTable, parts: Sequence[_Part]) -> Iterator[str]:
    """Yield a fault for each name of a published row or column that no study has."""
    for number, given in enumerate(spec.published):
        own = [part.spec.published[number] for part in parts]
        for side in ("rows", "columns"):
            used = {key for each in own for key in getattr(each, side).values()}
            for name, key in getattr(given, side).items():
                if key not in used:
                    yield f"published.{side}: no study has '{name}'"


def _join(spec: CellsTable, parts: Sequence[_Part], tables: Sequence[Table]) -> Table:
    """Join the tables of studies, which have the same rows, below the names of the studies."""
    has_ties = any(TIE_NOTE in table.footnotes for table in tables)
    notes = Footnotes((TIE_NOTE,) if has_ties else ())
    cells = tuple(
        tuple(notes.renewed(cell, table.footnotes) for table in tables for cell in table.cells[number])
        for number in range(len(tables[0].rows))
    )
    several = len({key.metric for table in tables for key in table.keys}) > 1 and spec.columns is not None
    above: list[tuple[str, str]] = []
    names: list[str] = []
    for part, table in zip(parts, tables, strict=True):
        for place in range(len(table.keys)):
            above.append((part.study.name, _metric_head(table, place) if several else ""))
            names.append(part.names[0] if part.names else table.columns[place])
    studies = [study for study, _ in above]
    twice = {name for name, count in Counter(names).items() if count > 1}
    levels = (
        f"{name} ({study})" if name in twice else name for name, study in zip(names, studies, strict=True)
    )
    metrics = (key.metric for table in tables for key in table.keys)
    keys = tuple(
        ColumnKey(metric=metric, level="" if spec.columns is None else level)
        for metric, level in zip(metrics, levels, strict=True)
    )
    titles = [part.study.name for part in parts]
    return Table(
        name=spec.name,
        caption=_caption(spec, titles, [table.caption for table in tables]),
        corner=one_line(spec.rows),
        rows=tables[0].rows,
        columns=tuple(names),
        cells=cells,
        footnotes=tuple(sorted(notes.as_tuple(), key=lambda note: note == TIE_NOTE)),
        provenance="; ".join(
            f"study {name} · {table.provenance}" for name, table in zip(titles, tables, strict=True)
        ),
        keys=keys,
        column_headings=tuple(line for line in zip(*above, strict=True) if any(line)),
        spread=spec.spread,
        remarks=_shared(titles, [table.remarks for table in tables]),
        notes=_shared(titles, [table.notes for table in tables]),
    )


def _caption(spec: CellsTable, studies: Sequence[str], captions: Sequence[str]) -> str:
    """Return the caption of the study file, or what the captions of all studies say."""
    longest = max(captions, key=len)
    if all(longest == each or longest.startswith(each.removesuffix(".") + ",") for each in captions):
        return longest
    return " ".join(_shared(studies, [[each] for each in captions]))


def _metric_head(table: Table, place: int) -> str:
    """Return the heading of a column's metric: above its levels, or the name of the column."""
    lines = [line[place] for line in table.column_headings]
    return (
        table.columns[place]
        if not table.keys[place].level
        else next(iter(lines[:-1]), table.keys[place].metric)
    )


def _shared(studies: Sequence[str], sentences: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the sentences of all studies, then those of one or some, after the names of these studies."""
    owners: dict[str, list[str]] = {}
    for study, own in zip(studies, sentences, strict=True):
        for sentence in own:
            owners.setdefault(sentence, []).append(study)
    groups: dict[tuple[str, ...], list[str]] = {tuple(studies): []}
    for sentence, names in owners.items():
        groups.setdefault(tuple(names), []).append(sentence)
    return tuple(
        " ".join(own) if names == tuple(studies) else f"{listed(names)}: {' '.join(own)}"
        for names, own in groups.items()
        if own
    )
