"""The settings of a study with their values and sources."""

from __future__ import annotations

from collections import Counter
from textwrap import wrap

from ...studies.plan import design_settings
from ...studies.schema.source_sheet import SourceSheet
from ...studies.study import Study
from ...studies.text.units import WIDTH, plural


def format_settings(study: Study, *, sources: bool) -> str:
    """Return a line for each setting of a study, with its value, and its source if `sources` is true."""
    sheet = study.source_sheet
    given = {each.name: each for each in sheet.settings}
    rows = {each.name: [each.text] for each in sheet.settings} | dict(design_settings(study))
    lines = [*wrap(f"{study.name} · {study.title}", WIDTH), ""]
    width = max(map(len, rows))
    for name, texts in rows.items():
        first, *others = [line for text in texts for line in wrap(text, WIDTH - width - 4)] or [""]
        lines += [f"  {name:{width}}  {first}".rstrip()]
        lines += [f"  {'':{width}}  {more}" for more in others]
        setting = given.get(name)
        if sources and setting and setting.source and not setting.is_default:
            lines += wrap(str(setting.source), WIDTH, initial_indent="      ", subsequent_indent="      ")
    return "\n".join([*lines, "", *wrap(_summary(sheet), WIDTH)])


def _summary(sheet: SourceSheet) -> str:
    count = plural(len(sheet.settings), "setting")
    if not sheet.is_given:
        return f"{count}; sources unknown, since the study has no table [source]"
    found = Counter("" if each.is_default else each.source.origin for each in sheet.settings if each.source)
    text = f"{found['paper']} from the paper, {found['program']} from its program, {found['ours']} our own"
    text += f", {found['fitted']} fitted" if found["fitted"] else ""
    return f"{count}: {text}, {found['']} defaults"
