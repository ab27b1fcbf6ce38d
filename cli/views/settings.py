"""The settings of a study with their values and sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from ...studies.planning.plan import solved_sizes
from ...studies.presentation.kinds import describe_levels
from ...studies.schema.source_sheet import SourceSheet
from ...studies.study import Study
from ...studies.text.units import WIDTH, plural


def format_settings(study: Study, *, sources: bool) -> str:
    """Return a line for each setting of a study, with its value.

    The source of the value follows if `sources` is true.
    """
    sheet = study.source_sheet
    lines = [*wrap(f"{study.name} · {study.title}", WIDTH), ""]
    width = max(len(each.name) for each in sheet.settings)
    for each in sheet.settings:
        value = wrap(each.text, WIDTH - width - 4) or [""]
        lines += [f"  {each.name:{width}}  {value[0]}".rstrip()]
        lines += [f"  {'':{width}}  {more}" for more in value[1:]]
        if sources and each.source and not each.is_default:
            lines += wrap(str(each.source), WIDTH, initial_indent="      ", subsequent_indent="      ")
    return "\n".join([*lines, *_match(study), "", *wrap(_summary(sheet), WIDTH)])


def _match(study: Study) -> Iterator[str]:
    """Yield the baseline of `match`, and the size that is solved for each model."""
    if (matched := study.design.matched_size) is None:
        return
    levels = {name: study.design.baseline_level(name) for name in study.design.baseline}
    yield ""
    costs = " and ".join(matched.costs)
    yield from wrap(
        f"match: equal {costs} by {matched.name}; in the baseline {matched.name} = {matched.size}, "
        f"{describe_levels(levels)}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
    )
    for label, size in solved_sizes(study):
        yield from wrap(f"{size:>9,}  {label}", WIDTH, initial_indent="  ", subsequent_indent=" " * 13)


def _summary(sheet: SourceSheet) -> str:
    count = plural(len(sheet.settings), "setting")
    if not sheet.is_given:
        return f"{count}; sources unknown, since the study has no table [source]"
    found = Counter("" if each.is_default else each.source.origin for each in sheet.settings if each.source)
    text = f"{found['paper']} from the paper, {found['program']} from its program, {found['ours']} our own"
    return f"{count}: {text}, {found['']} defaults"
