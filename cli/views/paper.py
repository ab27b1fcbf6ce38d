"""The results for a published paper, as text for a terminal or as Markdown.

This sheet lists the tables, claims and figures of the paper, and the studies for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from ...reporting.claims.verdicts import Verdict
from ...reporting.paper import PaperSheet, PaperStudy, StudyVerdict
from ...reporting.tables.render import markdown, rich
from ...studies.text.units import format_duration, plural

_GAP = 3
_MIN_TEXT = 24  # columns for the first column of a section, however narrow the terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """Rows of text under a header. Only the first column may be wrapped."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def format_sheet(sheet: PaperSheet, width: int, *, tables: bool) -> str:
    """Return the results for a paper in columns, then its tables.

    The tables have measured and published numbers.
    """
    lines = _summary(sheet)
    for section in _sections(sheet):
        lines += ["", *_columns(section, width)]
    shown = [rich.render(table, width=width, ansi=False) for table in sheet.tables] if tables else []
    return "\n".join(["\n".join(lines) + "\n", *shown])


def sheet_to_markdown(sheet: PaperSheet, *, tables: bool) -> str:
    """Return the results for a paper as Markdown tables.

    Times are left out, because they depend on this machine.
    """
    summary, lines = _summary(sheet), list[str]()
    lines += [f"**{summary[0]}**", "", *(f"- {line}" for line in summary[1:])]
    for header, rows in ((section.header, section.rows) for section in _sections(sheet, times=False)):
        lines += ["", f"| {' | '.join(header)} |", f"|{' :-- |' * len(header)}"]
        lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    shown = [markdown.render(table) for table in sheet.tables] if tables else []
    return "\n".join(["\n".join(lines) + "\n", *shown])


def _summary(sheet: PaperSheet) -> list[str]:
    printed = sum(each.printed for each in sheet.printed)
    full_size, small = (sum(getattr(each, size) for each in sheet.printed) for size in ("full_size", "small"))
    claims = len(sheet.claims)
    decided = [sheet.count_decided(small=size) for size in (False, True)]
    return [
        sheet.paper,
        f"{plural(printed, 'printed number')}: {full_size} measured at full size, "
        f"{small} at small size, {printed - full_size - small} not yet",
        f"{plural(claims, 'claim')}: {decided[0]} decided at full size, {decided[1]} at small size",
    ]


def _sections(sheet: PaperSheet, *, times: bool = True) -> Iterator[_Section]:
    yield _Section(
        header=("table", "printed", "full size", "small size", "missing"),
        rows=tuple(
            (each.name, *map(str, (each.printed, each.full_size, each.small, each.missing)))
            for each in sheet.printed
        ),
    )
    if sheet.claims:
        yield _Section(
            header=("claim", "full size", "small size"),
            rows=tuple(
                (each.name, _verdicts(each.full_size), _verdicts(each.small)) for each in sheet.claims
            ),
        )
    if sheet.figures:
        yield _Section(
            header=("figure", "study", "trials"),
            rows=tuple((each.name, each.study, f"{each.done} of {each.trials}") for each in sheet.figures),
        )
    if sheet.studies:
        yield _Section(
            header=("study", "size", "done", "remaining, at most"),
            rows=tuple(
                (
                    each.name,
                    "small" if each.small else "full",
                    f"{each.done} of {each.trials}",
                    _cost(each, times=times),
                )
                for each in sheet.studies
            ),
        )


def _verdicts(found: Sequence[StudyVerdict]) -> str:
    """Describe the verdicts on a claim, as in `confirmed, n = 3`.

    Several verdicts are counted. Without any, the text is a dash.
    """
    if not found:
        return "–"
    if len(found) == 1:
        (one,) = found
        return one.verdict if one.verdict is Verdict.NOT_RUN else f"{one.verdict}, n = {one.n}"
    counts = Counter(each.verdict for each in found)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _cost(study: PaperStudy, *, times: bool) -> str:
    if not study.left:
        return "–"
    time = "" if study.seconds is None or not times else f", {format_duration(study.seconds)} here"
    return f"{study.flops:.1e} FLOPs{time}"


def _columns(section: _Section, width: int) -> Iterator[str]:
    cells = (section.header, *section.rows)
    widths = [max(len(row[place]) for row in cells) for place in range(1, len(section.header))]
    left = max(_MIN_TEXT, width - 2 - sum(widths) - _GAP * len(widths))
    left = min(left, max(len(row[0]) for row in cells))
    for first, *others in cells:
        *above, last = wrap(first, left, break_on_hyphens=False, break_long_words=False) or [""]
        if len(last) > left:  # a long name stands above its numbers
            above, last = [*above, last], ""
        yield from (f"  {line}" for line in above)
        rest = "".join(f"{'':{_GAP}}{text:<{size}}" for text, size in zip(others, widths, strict=True))
        yield f"  {last:<{left}}{rest}".rstrip()
