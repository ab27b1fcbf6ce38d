r"""The LaTeX code of tables, figures, claims and provenance in the files of a paper."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...storage.rows import has_trial
from ...studies.schema.factors import level_names, one_line
from ...studies.study import Study
from ...studies.text.units import format_duration, plural
from ..curves.curve import Curve
from ..curves.figure_format import FigureFormat
from ..page import section_results
from ..snapshot import Snapshot
from ..tables.render import render
from ..tables.render.latex import escape
from ..tables.table import Table

COLUMN_FIGURE = 0.6 * 460
"""The maximum width, in points, of a figure that fits into one of two columns."""

_BREAKS = re.compile(r"(?<=[,=+/])(?=\S)|(?<=\\_)(?=\S)")
_HASH_PART = 8


def table_float(study: Study, table: Table, form: str) -> str:
    """Return a table as a LaTeX float, with the label `tab:STUDY-TABLE`."""
    return render(replace(table, name=f"{study.name}-{table.name}"), form)


def draw_bare(curve: Curve, form: FigureFormat) -> bytes:
    """Draw a figure without its caption, notes and provenance. The LaTeX float has them as text."""
    return replace(curve, caption="", notes=(), provenance="").render(form)


def file_stem(name: str) -> str:
    """Return the path of a generated file without its extension.

    Dots become dashes, because LaTeX would read the text after a dot as a file extension.
    """
    return name.replace(".", "-")


def figure_float(study: Study, curve: Curve, file: str) -> str:
    """Return a LaTeX float for a figure and its PDF file, with the label `fig:STUDY-FIGURE`.

    A wide figure spans both columns; no figure is wider than the surrounding text. The notes stand below the
    caption, as below a table.
    """
    environment = "figure" if curve.measure_width() <= COLUMN_FIGURE + 1 else "figure*"
    below = filter(None, [" ".join(curve.notes), curve.provenance])
    return "\n".join(
        [
            rf"\begin{{{environment}}}",
            r"  \centering",
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"    \includegraphics{{{file}}}}}",
            rf"  \caption{{{escape(f'{curve.caption}.')}}}",
            rf"  \label{{fig:{study.name}-{curve.name}}}",
            r"  \begin{minipage}{\linewidth}",
            "    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(map(escape, below)),
            r"  \end{minipage}",
            rf"\end{{{environment}}}",
            "",
        ]
    )


def varied_line(inputs: Snapshot) -> str:
    """Return a paragraph on the varied factors with their levels, and on the number of trials."""
    study = inputs.study
    factors = [
        f"{name} ({', '.join(level_names(levels))})"
        for name, levels in study.factors.items()
        if len(levels) > 1 and name not in study.dimensions
    ]
    varied = f"Varied: {'; '.join(factors)}. " if factors else ""
    return rf"{{\raggedright {breakable(f'{varied}{inputs.status.summary()}.')}\par}}"


def claim_lines(inputs: Snapshot) -> Iterator[str]:
    """Yield a paragraph with the verdict on each claim; nothing without claims or results."""
    found: Mapping[str, Any] | None = section_results.claims(inputs)
    if found is None:
        return
    yield from ("", r"\paragraph{Claims}", rf"{escape(found['counts'])}.", r"\begin{itemize}")
    for each in found["claims"]:
        effect, interval, p, seeds = each["numbers"]
        numbers = [" ".join(part for part in (effect, interval) if part), each["tested_for"], p, seeds]
        text = ", ".join(part for part in numbers if part)
        verdict, notes = rf"\textbf{{{each['verdict']}}}", " · ".join(filter(None, each["notes"]))
        below = rf" {{\footnotesize {breakable(one_line(notes))}}}" if notes else ""
        yield rf"  \item {verdict}: {escape(one_line(each['spec'].name))} ({escape(text)}){below}"
    yield r"\end{itemize}"
    yield rf"{{\footnotesize {escape(found['legend'])}\par}}"


def provenance_lines(inputs: Snapshot) -> Iterator[str]:
    """Yield a paragraph on programs, devices, times, seeds and hashes."""
    study = inputs.study
    yield from ("", r"\paragraph{Provenance}")
    sentences: list[str] = []
    found: Mapping[str, Any] = section_results.provenance(inputs) or {"groups": (), "others": ()}
    for each in found["groups"]:
        parts = [
            f"activemem {each['version']}" + (f" ({each['commit']})" if each["commit"] else ""),
            each["torch"],
            f"Python {each['python']}" if each["python"] else "",
            each["device"],
            format_duration(each["seconds"]),
            f"{each['first']:%Y-%m-%d} to {each['last']:%Y-%m-%d}",
        ]
        sentences.append(f"{plural(each['trials'], 'trial')}: {', '.join(part for part in parts if part)}.")
    sentences += [
        f"{plural(count, 'trial')} trained for the study {name}." for name, count in found["others"]
    ]
    seeds, added = ", ".join(map(str, study.seeds)), inputs.status.added
    if added:
        numbers = inputs.counted_outcomes.filter(has_trial(added))["seed"].unique().sort().to_list()
        seeds += f"; further seeds: {', '.join(map(str, numbers))} ({len(added)} of these trials)"
    own = study.search.baseline_seeds if study.search else ()
    if more := [seed for seed in own if seed not in study.seeds]:
        seeds += f"; of the baseline also {', '.join(map(str, more))}"
    sentences.append(f"Seeds: {seeds}.")
    if study.document.overrides:
        sentences.append(f"Changed from the study's file: {', '.join(study.document.overrides)}.")
    hashes = {
        "the study's file": study.document.text,
        "the ids of its trials, sorted": "\n".join(sorted({*(each.id for each in study.trials), *added})),
    }
    texts = [rf"of {what} {_hash(text)}" for what, text in hashes.items() if text]
    words = breakable(" ".join(sentences))
    yield rf"{{\footnotesize\raggedright {words} SHA-256 {'; '.join(texts)}.\par}}"


def breakable(text: str) -> str:
    """Return a text as LaTeX code with possible line breaks inside names of recipes and settings."""
    return _BREAKS.sub(r"\\allowbreak{}", escape(text))


def _hash(text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()
    parts = (digits[at : at + _HASH_PART] for at in range(0, len(digits), _HASH_PART))
    broken = r"\allowbreak{}".join(parts)
    return rf"\texttt{{{broken}}}"
