"""The results for a published paper, as text for a terminal or as Markdown.

This sheet lists the tables, claims and figures of the paper, and the studies for them. A claim has a row for
each study that tests it. On a terminal its numbers follow its verdict; in Markdown each number has a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...reporting.claims.terminal import format_numbers, format_seeds
from ...reporting.claims.verdicts import Verdict, verdict_word
from ...reporting.paper import PaperClaim, PaperFigure, PaperSheet, PaperStudy, StudyVerdict
from ...reporting.tables.render import markdown, rich
from ...studies.catalog.metrics import with_sign
from ...studies.text.units import format_core_hours, plural

_GAP = 3
_MIN_TEXT = 24  # columns for the first column of a section, however narrow the terminal
_NONE = "–"
_LEGEND = (
    "Ours and printed: left minus right of the comparison on which the verdict depends most, ours with its "
    "interval, and the same in the paper's numbers if it prints them. Missing: the claim's trials that have "
    "not ended. `activemem claim check STUDY` prints every comparison."
)


_Row = tuple[str, ...]
_Section = tuple[_Row, Sequence[_Row]]
"""A header, and the rows below it. Only the first column may be wrapped."""


def format_sheet(sheet: PaperSheet, width: int, *, tables: bool) -> str:
    """Return the results for a paper in columns, then its tables with measured and published numbers."""
    lines = [part for line in _summary(sheet) for part in wrap(line, width, subsequent_indent="  ")]
    for header, rows in _sections(sheet):
        claims = header[0] == "claim"
        lines += ["", *(_claim_lines(sheet.claims, width) if claims else _columns((header, *rows), width))]
    shown = [rich.render(table, width=width, ansi=False) for table in sheet.tables] if tables else []
    return "\n".join(["\n".join(lines) + "\n", *shown])


def sheet_to_markdown(sheet: PaperSheet, *, tables: bool) -> str:
    """Return the results for a paper as Markdown tables, without times, which depend on this machine."""
    summary, lines = _summary(sheet), list[str]()
    lines += [
        f"**{markdown.escape(summary[0])}**",
        "",
        *(f"- {markdown.escape(line)}" for line in summary[1:]),
    ]
    for header, rows in _sections(sheet, times=False):
        lines += ["", f"| {' | '.join(header)} |", f"|{' :-- |' * len(header)}"]
        lines += [f"| {' | '.join(map(markdown.escape, row))} |" for row in rows]
        lines += ["", _LEGEND] if header[0] == "claim" else []
    shown = [markdown.render(table) for table in sheet.tables] if tables else []
    return "\n".join(["\n".join(lines) + "\n", *shown])


def _summary(sheet: PaperSheet) -> list[str]:
    printed = sum(each.printed for each in sheet.printed)
    full_size, fewer_seeds, small = (
        sum(getattr(each, size) for each in sheet.printed) for size in ("full_size", "fewer_seeds", "small")
    )
    computed, claims = sum(each.computed for each in sheet.printed), len(sheet.claims)
    notes = [f"{computed} computed without training"] * bool(computed)
    notes += [f"{fewer_seeds} with fewer seeds than planned"] * bool(fewer_seeds)
    of_them = f" ({', '.join(notes)})" if notes else ""
    decided = [sheet.count_decided(small=size) for size in (False, True)]
    untrained = decided[0] - sheet.count_decided(small=False, trained=True)
    by_costs = f" ({untrained} without training)" if untrained else ""
    verdicts = [{each.verdict for each in (*claim.full_size, *claim.small)} for claim in sheet.claims]
    others = {word: sum(word in each for each in verdicts) for word in (Verdict.FITTED, Verdict.UNTRAINED)}
    return [
        sheet.paper,
        f"{plural(printed, 'printed number')}: {full_size} measured at full size{of_them}, "
        f"{small} at small size, {printed - full_size - small} not yet",
        f"{plural(claims, 'claim')}: {decided[0]} decided at full size{by_costs}, {decided[1]} at small size"
        + "".join(f", {count} {word}" for word, count in others.items() if count),
    ]


def _sections(sheet: PaperSheet, *, times: bool = True) -> Iterator[_Section]:
    yield (
        ("table", "printed", "full size", "small size", "missing"),
        [
            (each.name, *map(str, (each.printed, each.full_size, each.small, each.missing)))
            for each in sheet.printed
        ],
    )
    compared = [
        (study, each.name, *(text or _NONE for text in (*found.texts, found.rank_range)))
        for each in sheet.printed
        for study, found in each.reproductions.items()
    ]
    if compared:
        yield ("reproduction", "table", "in noise", "ratio", "order", "ranks"), compared
    if sheet.claims:
        header = ("claim", "study", "size", "verdict", "ours", "printed", "seeds", "missing")
        yield header, [row for each in sheet.claims for row in _claim_rows(each)]
    if sheet.figures:
        figures: dict[str, list[PaperFigure]] = {}
        for each in sheet.figures:
            figures.setdefault(each.study, []).append(each)
        yield (
            ("figures", "study", "trials"),
            [
                (", ".join(each.name for each in several), study, f"{several[0].done} of {several[0].trials}")
                for study, several in figures.items()
            ],
        )
    if sheet.studies:
        rows = [
            (
                each.name,
                "small" if each.small else "full",
                f"{each.done} of {each.trials}",
                _cost(each, times=times),
            )
            for each in sheet.studies
        ]
        yield ("study", "size", "done", "remaining, at most"), rows


def _claim_rows(claim: PaperClaim) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the studies that test a claim. The first row names the claim and its source.

    Studies with the same verdict and no number of their own share a row.
    """
    head, rows = f"{claim.name} ({claim.source})", list[tuple[str, ...]]()
    for each in (*claim.full_size, *claim.small):
        size, (ours, *texts, missing) = "small" if each.small else "full", _number_texts(each)
        study = f"{each.study}, {each.at}" if each.at else each.study
        word = verdict_word(each.verdict, small=each.small, fitted=each.fitted)
        own = (size, word, *(text or _NONE for text in (ours, *texts)))
        missing = missing or _NONE
        if rows and rows[-1][2:-1] == own and not ours:
            study, missing = f"{rows[-1][1]}; {study}", f"{rows.pop()[-1]}; {missing}"
        rows.append(("" if rows else head, study, *own, missing))
    yield from rows


def _claim_lines(claims: Sequence[PaperClaim], width: int) -> Iterator[str]:
    """Yield the lines of all claims: each name with its source, and below them a row for each study."""
    for claim in claims:
        yield from wrap(claim.name, width, initial_indent="  ", subsequent_indent="  ")
        yield from wrap(f"({claim.source})", width, initial_indent="  ", subsequent_indent="   ")
        for each in (*claim.full_size, *claim.small):
            ours, printed, seeds, missing = _number_texts(each)
            words = [verdict_word(each.verdict, small=each.small, fitted=each.fitted), ours]
            words += [f"printed {printed}" if printed else "", seeds]
            words += [f"{missing} trials missing" if missing else ""]
            study = f"{each.study}{' (small)' if each.small else ''}{each.at and f', {each.at}'}"
            line = f"{study}: {', '.join(filter(None, words))}"
            yield from wrap(
                line, width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
            )
        yield ""
    yield from wrap(_LEGEND, width, initial_indent="  ", subsequent_indent="  ")


def _number_texts(verdict: StudyVerdict) -> tuple[str, str, str, str]:
    """Return ours, printed, seeds and missing trials of a verdict as texts; "" for what is unknown or 0."""
    finding = verdict.deciding
    effect, ends, _ = format_numbers(finding, verdict.verdict)
    ours = " ".join(filter(None, (effect, f"[{', '.join(ends)}]" if ends else "", finding.tested_for)))
    ours = f"{verdict.part}: {ours}" if verdict.part and ours else ours
    printed = "" if verdict.printed is None else with_sign(finding.format(verdict.printed))
    seeds = ""
    if verdict.verdict is not Verdict.NOT_RUN:
        seeds = format_seeds(finding, verdict.seeds, verdict.needed, within="no difference larger than ")
    return ours, printed, seeds, f"{verdict.missing} of {verdict.trials}" if verdict.missing else ""


def _cost(study: PaperStudy, *, times: bool) -> str:
    if not study.left:
        return "–"
    time = "" if study.seconds is None or not times else f", {format_core_hours(study.seconds)}"
    return f"{study.flops:.1e} FLOPs{time}"


def _columns(cells: Sequence[_Row], width: int) -> Iterator[str]:
    widths = [max(len(row[place]) for row in cells) for place in range(1, len(cells[0]))]
    left = max(_MIN_TEXT, width - 2 - sum(widths) - _GAP * len(widths))
    left = min(left, max(len(row[0]) for row in cells))
    for first, *others in cells:
        *above, last = wrap(first, left, break_on_hyphens=False, break_long_words=False) or [""]
        if len(last) > left:  # a long name stands above its numbers
            above, last = [*above, last], ""
        yield from (f"  {line}" for line in above)
        rest = "".join(f"{'':{_GAP}}{text:<{size}}" for text, size in zip(others, widths, strict=True))
        yield f"  {last:<{left}}{rest}".rstrip()
