"""The footnote of a table whose trainings have all failed at the first length of their curriculum."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...studies.schema.settings import TrialSettings
from ...studies.text.units import number_range
from .table import Footnotes, Table

SOLVED_LENGTH = "max_length"
"""The metric that is 0 where a training has not solved the first length of its curriculum."""


def unsolved_sentence(lengths: Collection[float], settings: Iterable[TrialSettings]) -> str:
    """Return a hint if the solved lengths of these trainings are all 0, else an empty text."""
    starts = {each.train.curriculum.start for each in settings if each.train.curriculum is not None}
    if not starts or set(lengths) != {0.0}:
        return ""
    first = number_range(sorted(starts))
    return f"no training solved length {first}, where the curriculum starts: train longer or start shorter"


def note_unsolved(table: Table, settings: Iterable[TrialSettings]) -> Table:
    """Return a table of these trainings, with a footnote if it has solved lengths and all of them are 0."""
    columns = [number for number, key in enumerate(table.keys) if key and key.metric == SOLVED_LENGTH]
    places = {
        (row, number)
        for row, cells in enumerate(table.cells)
        for number in columns
        if cells[number].estimate is not None and not cells[number].metric
    }
    lengths = [estimate.value for row, number in places if (estimate := table.cells[row][number].estimate)]
    sentence = unsolved_sentence(lengths, settings)
    if not sentence:
        return table
    notes = Footnotes()
    for note in table.footnotes:
        notes.mark(note.text)
    mark = notes.mark(sentence)
    cells = tuple(
        tuple(
            replace(cell, marks=(*cell.marks, mark)) if (row, number) in places else cell
            for number, cell in enumerate(line)
        )
        for row, line in enumerate(table.cells)
    )
    return replace(table, cells=cells, footnotes=notes.as_tuple())
