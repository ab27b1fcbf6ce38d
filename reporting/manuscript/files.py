r"""The files of a paper: tables, figures, appendix, computing time, licences and numbers.

A file depends only on paper.toml, the studies and the store. It has no date and no version of this program.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

import polars as pl

from ...storage.files import write_file
from ...studies.catalog.datasets import Dataset, require_dataset
from ...studies.catalog.metrics import COSTS
from ...studies.planning.trials_to_run import own_costs
from ...studies.schema.factors import one_line
from ...studies.text.units import format_duration, plural
from ..outcomes import program_words
from ..page.section_study import iter_settings, settings
from ..snapshot import Snapshot
from ..tables.render.latex import escape, unicode_note
from .latex_parts import (
    breakable,
    claim_lines,
    draw_bare,
    figure_float,
    file_stem,
    provenance_lines,
    table_float,
    varied_line,
)
from .paper_file import Manuscript, PaperNumber, own_files

NUMBERS = "numbers.tex"
UNKNOWN = r"\textbf{??}"
"""The text that is printed for a number that is unknown or has no value."""

_HEADER = "% Written by activemem paper build; do not edit."
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
# an unknown name expands to the macro `am:??`, which prints ?? and warns, also inside captions
_MACRO = (
    r"% The numbers of the text, by \am{NAME}. Input this file before \begin{document}.",
    r"\newcommand{\am}[1]{\csname am:\ifcsname am:#1\endcsname #1\else ??\fi\endcsname}",
    r"\expandafter\DeclareRobustCommand\csname am:??\endcsname{%",
    rf"  {UNKNOWN}\PackageWarning{{activemem}}{{unknown number}}}}",
)


def paper_files(paper: Manuscript) -> dict[str, bytes]:
    """Return a mapping from the path of each file in the paper's folder to its contents.

    Raises TableError or CurveError if a table or a figure does not fit its study.
    """
    files = dict[str, bytes]()
    for now in paper.studies:
        files |= _study_files(paper, now)
    texts = {
        NUMBERS: _numbers(paper.numbers),
        "appendix.tex": (line for now in paper.studies for line in _appendix(now)),
        "compute.tex": (*_compute(paper.studies), "", *_data(paper)),
    }
    return files | {name: _encode(lines) for name, lines in texts.items()}


def write_paper(paper: Manuscript) -> list[Path]:
    """Write the files of a paper, and return their paths.

    Delete files of an earlier build that no longer belong to the paper. Raises as `paper_files` does.
    """
    files = paper_files(paper)
    for path in _leftover_files(paper, files):
        path.unlink()
    for name, content in files.items():
        path = paper.folder / name
        if not path.is_file() or path.read_bytes() != content:
            write_file(path, content)
    return [paper.folder / name for name in files]


def _leftover_files(paper: Manuscript, files: Collection[str]) -> list[Path]:
    """Return the files of an earlier build that are not among the paper's current `files`."""
    written = (each for each in paper.folder.rglob("*.tex") if each.read_bytes().startswith(_HEADER.encode()))
    stale = [each for each in written if each.relative_to(paper.folder).as_posix() not in files]
    drawn = [each.with_suffix(suffix) for each in stale for suffix in (".pdf", ".svg")]
    return sorted([*stale, *(each for each in drawn if each.is_file())])


def _encode(lines: Iterable[str]) -> bytes:
    text = "\n".join([*lines, ""])
    needed = unicode_note(text)
    head = f"{_HEADER}\n% {needed}\n" if needed not in text else f"{_HEADER}\n"
    return f"{head}{text}".encode()


def _study_files(paper: Manuscript, now: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each table and figure of a study. Figures need results in the store."""
    study, keys = now.study, paper.keys
    shown_tables = keys.tables.get(study.name, [each.name for each in study.tables])
    for table in now.tables([each for each in study.tables if each.name in shown_tables]):
        name = file_stem(f"{study.name}/table-{table.name}")
        yield f"{name}.tex", _encode([table_float(study, table, keys.paper.format)])
    shown = keys.figures.get(study.name, [each.name for each in study.curves])
    specs = [each for each in study.curves if each.name in shown]
    for curve in now.curves(specs) if len(now.own_outcomes) else ():
        name = file_stem(f"{study.name}/figure-{curve.name}")
        yield f"{name}.pdf", draw_bare(curve, "pdf")
        yield f"{name}.svg", draw_bare(curve, "svg")
        written = figure_float(study, curve, f"{keys.paper.folder}/{name}.pdf")
        yield f"{name}.tex", _encode([r"% \usepackage{graphicx}", written])


def _numbers(numbers: Mapping[str, PaperNumber]) -> Iterator[str]:
    yield from _MACRO
    text = ""
    for name, number in numbers.items():
        if number.source != text:
            text = number.source
            yield f"% {one_line(text)}"
        yield rf"\expandafter\def\csname am:{name}\endcsname{{{_latex_number(number)}}}"


def _latex_number(number: PaperNumber) -> str:
    """Return the LaTeX code that prints a number, both in text and in formulas."""
    if number.text is None:
        return UNKNOWN
    text = re.sub(r"\$(.+?)\$", r"\\ensuremath{\1}", escape(number.text))
    return text.replace(r"\textless{}", r"\ensuremath{<}").replace(r"\textgreater{}", r"\ensuremath{>}")


def _appendix(now: Snapshot) -> Iterator[str]:
    """Yield a LaTeX section on a study: its settings by the texts of their sources, claims, provenance."""
    study = now.study
    found: Mapping[str, Any] = settings(now) or {"settings": {}, "sources": {}}
    groups = dict[str, list[str]]()
    for name, texts in found["settings"].items():
        joined = ("; " if any(", " in text for text in texts) else ", ").join(texts)
        value = breakable(_DIGEST.sub(r"\1…", one_line(joined)))
        groups.setdefault(found["sources"].get(name, ""), []).append(
            rf"\texttt{{{breakable(name)}}}~=~{value}"
        )
    yield from ("", rf"\section{{{escape(one_line(study.title))}}}", rf"\label{{app:{study.name}}}")
    name = rf"\texttt{{{escape(study.name)}}}"
    yield from (f"All settings of the study {name} that have a value, by their sources.", "")
    yield from (varied_line(now), "", r"{\footnotesize\raggedright")
    for source, listed in groups.items():
        yield rf"\emph{{{escape(source or 'No source given')}}}:"
        yield ";\n".join(listed) + r".\par"
    yield from ("}", *claim_lines(now), *provenance_lines(now))


def _compute(studies: Sequence[Snapshot]) -> Iterator[str]:
    """Yield a LaTeX paragraph on the trials of all studies: hours, FLOPs, devices and program versions.

    A trial that belongs to several studies counts once, by its valid attempt. Seeds that were added later
    count, too, since verdicts and tables may use them, and so do the earlier trials that a trial continues.
    Other stored trials that the studies do not have any more are counted apart.
    """
    columns = ("trial", "status", "seconds", "flops", "device", "version", "commit")
    versions = ("torch_version", "cuda_version", "python_version")
    rows = pl.concat([now.trainings.select(*columns, *versions) for now in studies])
    rows = rows.unique("trial").sort("device", "trial")
    statuses = Counter(rows["status"].to_list())
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    groups = rows.group_by("device", maintain_order=True)
    devices = [f"{device} ({plural(len(group), 'trial')}, {_hours(group)})" for (device,), group in groups]
    devices = devices if len(devices) > 1 else rows["device"][:1].to_list()
    pythons = rows["python_version"].drop_nulls().unique().sort().to_list()
    programs = [*program_words(rows), *([f"Python {', '.join(pythons)}"] if pythons else [])]
    work = COSTS["flops"].format(fsum(rows["flops"]))
    text = f"{plural(len(rows), 'trial')} ({counts}) trained for {_hours(rows)} and {work} in all"
    words = f"{text}, on {'; '.join(devices)}. Versions: {', '.join(programs)}."
    stored = [
        own_costs(now.outcomes).filter(study=now.study.name).select("trial", "seconds") for now in studies
    ]
    further = pl.concat(stored).filter(~pl.col("trial").is_in(rows["trial"].to_list()))
    if len(further):
        count = plural(len(further), "further trial")
        words += f" {count} of these studies, with other settings or code, trained for {_hours(further)}."
    words += " Steps that interruptions lost, and failed attempts that were repeated, are not counted."
    # versions such as 2.13.0+cpu have no place to break
    yield rf"{{\emergencystretch=2em \paragraph{{Compute.}} {breakable(words)}\par}}"


def _hours(rows: pl.DataFrame) -> str:
    return format_duration(fsum(rows["seconds"]))


def _data(paper: Manuscript) -> Iterator[str]:
    """Yield a LaTeX paragraph on the corpora of all studies, with their sources and licences.

    The user's own corpus is named by its files. A file without a licence in `paper.toml` has a TODO.
    """
    licences = paper.keys.licences
    found = dict[str, Dataset]()
    own = dict[str, str]()
    generated = set[str]()
    for now in paper.studies:
        for task in {each.task.model_dump_json(): each.task for each in iter_settings(now)}.values():
            corpus = getattr(task, "corpus", None)
            if corpus is None:
                generated.add(task.name)
            else:
                dataset = require_dataset(corpus) if isinstance(corpus, str) else corpus.dataset
                found[dataset.name] = dataset
                if dataset.own and (names := [path.name for path in own_files(now.study)]):
                    terms = f"licence {', '.join(dict.fromkeys(licences.get(name, '') for name in names))}"
                    if lacking := [name for name in names if name not in licences]:
                        terms = f"TODO: state the licence of {', '.join(lacking)} in [licences] of paper.toml"
                    own[dataset.name] = f"{', '.join(names)} (own data): {terms}"
    parts = [
        own.get(each.name, f"{each.name} ({each.title}; {each.source}): licence {each.licence}")
        for each in found.values()
    ]
    parts += [f"Generated by the rules of tasks: {', '.join(sorted(generated))}"] if generated else []
    yield rf"\paragraph{{Data.}} {breakable('. '.join(parts))}."
