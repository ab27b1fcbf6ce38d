"""Ablations that a study lacks, as lines of text with the cost of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from ...reporting.missing_ablations import MissingAblations, MissingCell, has_set_sizes
from ...studies.planning.time_estimates import total_time
from ...studies.schema.factors import level_name
from ...studies.text.units import WIDTH, format_duration, plural, si_prefix

_MIN_WORDS_WIDTH = 24  # a change with less room beside its costs is on the lines below them


def format_missing(
    missing: MissingAblations, cells: Sequence[MissingCell], *, width: int = WIDTH
) -> Iterator[str]:
    """Yield lines about missing ablations: removed parts, other changes, and the total cost."""
    held = ", ".join(f"{name} = {level_name(level)}" for name, level in missing.held.items())
    count = f"{len(cells)} of {plural(len(missing.changes), 'change')} of the baseline"
    lacking = f"the store lacks {count}{f' at {held}' if held else ''}"
    yield from wrap(f"{missing.study.name}: {lacking}", width, subsequent_indent="  ")
    if has_set_sizes(missing.study):
        note = "only parts are removed, at these sizes and steps, which the study sets for each cell"
        yield from wrap(note, width, initial_indent="  ", subsequent_indent="  ")
    texts, counts = [cost_words([cell]) for cell in cells], Counter(cell.change for cell in cells)
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for is_part, heading in ((True, "Parts never removed"), (False, "Levels never tried by themselves")):
        own = [(cell, text) for cell, text in zip(cells, texts, strict=True) if cell.is_part == is_part]
        if own:
            yield f"\n{heading}"
        for cell, text in own:
            words = cell.change if counts[cell.change] == 1 else f"{cell.change}: {cell.recipe}"
            start = f"  {'  '.join(f'{each:>{size}}' for each, size in zip(text, widths, strict=True))}   "
            if len(start) + _MIN_WORDS_WIDTH <= width:
                yield from wrap(words, width, initial_indent=start, subsequent_indent=" " * len(start))
            else:
                yield start.rstrip()
                yield from wrap(words, width, initial_indent="    ", subsequent_indent="    ")
    if cells:
        yield f"\nTotal: {', '.join(cost_words(cells))}"


def cost_words(cells: Sequence[MissingCell]) -> tuple[str, str, str]:
    """Return the number of missing trials of these cells, their FLOPs and their time."""
    flops, estimate = sum(cell.flops for cell in cells), total_time(cell.estimate for cell in cells)
    prefix, scale = si_prefix(flops)
    if estimate.seconds is None:
        time = "time unknown"
    else:
        time = f"{'at most ' if estimate.basis == 'at most' else ''}{format_duration(estimate.seconds)}"
    trials = plural(sum(len(cell.trials) for cell in cells), "trial")
    return trials, f"{flops / scale:.1f} {prefix}FLOPs", time
