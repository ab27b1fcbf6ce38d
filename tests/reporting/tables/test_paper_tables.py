"""Every published table can be printed, alone and with our results."""

import tomllib
from pathlib import Path

import polars as pl
import pytest

from activemem import Study, load_study
from activemem.reporting import Table, TableError
from activemem.reporting.outcomes import load_outcomes
from activemem.reporting.paper import (
    paper_tables,
    published_only_table,
    published_tables_of,
    studies_of_paper,
)
from activemem.reporting.tables.render import render
from activemem.reporting.tables.table import Cell, CellStatus, ColumnKey
from activemem.storage import Store
from activemem.studies import published_tables
from activemem.studies.catalog.published import HIGHER_IS_BETTER_BY_UNIT

PAPER = "active-memory-transformer"
TABLES = list(published_tables().values())
IDS = [f"{each.paper} {each.name}" for each in TABLES]


@pytest.mark.parametrize("theirs", TABLES, ids=IDS)
def test_every_published_number_is_in_its_table_in_every_format(theirs):
    made = published_only_table(theirs)
    printed = {
        (row, column): cell.text
        for row, cells in zip(made.rows, made.cells, strict=True)
        for column, cell in zip(theirs.columns, cells, strict=True)
        if cell.status is CellStatus.PUBLISHED
    }
    assert printed == {place: number.text_with_deviation for place, number in theirs.cells.items()}
    for form in ("rich", "markdown", "latex", "html"):
        text = render(made, form).replace("\\%", "%")
        assert all(number.text in text for number in theirs.cells.values())
    assert len(render(made, "csv").splitlines()) == 1 + len(theirs.rows) * len(theirs.columns)
    assert made.frame()["published"].drop_nulls().len() == sum(
        n.value is not None for n in theirs.cells.values()
    )


@pytest.mark.parametrize("theirs", TABLES, ids=IDS)
def test_no_line_of_a_published_table_is_wider_than_a_terminal(theirs):
    assert max(map(len, render(published_only_table(theirs), "rich").splitlines())) <= 80


def test_every_unit_of_the_file_has_a_side():
    assert {
        number.unit for theirs in TABLES for number in theirs.cells.values()
    } == HIGHER_IS_BETTER_BY_UNIT.keys()


def test_a_deviation_of_the_paper_is_printed_and_not_reported_twice():
    made = published_only_table(published_tables()["memory-degradation", "table2"])
    assert made.cells[0][0].text == "0.77 ± 0.05"
    assert made.sentences == ("Published: memory-degradation table2 (fraction).", "± s.d., n = 10.")
    assert made.heading_spans() == ((("theta_vs_luong", 3), ("theta_vs_bahdanau", 3)),)
    assert made.keys[1] == ColumnKey(metric="theta_vs_luong", level="luong_inputs")
    assert made.footnotes == ()


def test_words_of_the_paper_are_shown_in_place_of_its_number():
    made = published_only_table(published_tables()["extended-neural-gpu", "table1"])
    assert [cell.text for cell in made.cells[0]] == ["30.1", "3.5", "below 5"]
    assert made.columns == ("perplexity ↓", "log_perplexity ↓", "bleu ↑")


def test_notes_that_are_not_of_all_numbers_are_footnotes():
    made = published_only_table(published_tables()["all-attention", "table2"])
    assert made.footnotes[0].text == "text8"
    assert (made.cells[0][0].marks, made.cells[0][1].marks, made.cells[4][0].marks) == (("a",), ("a",), ())
    assert made.sentences == ("Published: all-attention table2.",)


def test_the_papers_table_shows_our_numbers_as_soon_as_there_are_any(everything: Study, rows: pl.DataFrame):
    first, second = paper_tables(published_tables_of(PAPER), [everything], rows)
    assert (first.name, second.name) == (f"{PAPER}-table1", f"{PAPER}-table4-everything")
    assert second.provenance.startswith("study everything · 27 of 36 trials · ")
    assert second.rows == (*everything.factors["mixer"], "cgru", "persistent_conv", *second.rows[6:])
    assert second.rows[6:] == ("highway_conv", "sa+conv", "sa+highway_conv")
    assert second.columns == ("sort", "reverse", "copy", "addition", "multiply", "not", "remember")


def test_a_study_without_a_trial_leaves_the_paper_alone(everything: Study, rows: pl.DataFrame):
    (made,) = paper_tables(published_tables_of(PAPER, "table4"), [everything], rows.clear())
    assert made == published_only_table(published_tables()[PAPER, "table4"])


def test_two_studies_of_one_table_are_two_tables(everything: Study, rows: pl.DataFrame):
    other = load_study(everything.document.text.replace('name = "everything"', 'name = "again"'))
    made = paper_tables(published_tables_of(PAPER, "table4"), [everything, other], rows)
    assert [each.name for each in made] == [f"{PAPER}-table4-everything", f"{PAPER}-table4-again"]


def test_two_studies_with_other_rows_of_one_table_are_one_table():
    store = Store(Path(__file__).parents[3] / "studies" / "results")
    names = ("memory-degradation", "memory-degradation-translation")
    studies = [load_study(Path(__file__).parents[3] / "studies" / f"{name}.toml") for name in names]
    theirs = published_tables_of("memory-degradation", "table2")
    (made,) = paper_tables(theirs, studies, load_outcomes(store, *studies))
    apart = [paper_tables(theirs, [study], load_outcomes(store, study))[0] for study in studies]
    assert made.rows == (*apart[0].rows[:4], *apart[1].rows[:4])
    assert (made.groups, made.corner, made.keys) == ((), "task / corpus", apart[0].keys)
    assert sum(sentence.startswith("Θ, ") for sentence in made.sentences) == 1
    assert made.caption.endswith(" of 10 seeds, fewer where marked.")
    for number, row in enumerate(made.cells):
        whole, offset = (apart[0], 0) if number < 4 else (apart[1], 4)
        for key, cell in zip(made.keys, row, strict=True):
            other = whole.cells[number - offset][whole.keys.index(key)]
            assert (cell.full_text, cell.published_text) == (other.full_text, other.published_text)
            assert _notes(made, cell) == _notes(whole, other)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ('name = "memory-degradation-translation"', 'name = "memory-degradation-translation"\nsmall = true'),
        ('rows = "corpus"', 'rows = "corpus"\nspread = "se"'),
    ],
)
def test_studies_of_another_size_or_with_other_spreads_are_tables_of_their_own(written: str, instead: str):
    folder = Path(__file__).parents[3] / "studies"
    first = load_study(folder / "memory-degradation.toml")
    text = (folder / "memory-degradation-translation.toml").read_text()
    assert written in text
    second = load_study(text.replace(written, instead))
    outcomes = load_outcomes(Store(folder / "results"), first, second)
    theirs = published_tables_of("memory-degradation", "table2")
    made = paper_tables(theirs, [first, second], outcomes)
    assert [each.provenance.split()[1] for each in made] == [first.name, second.name]


def _notes(made: Table, cell: Cell) -> list[str]:
    return [note.text for note in made.footnotes if note.mark in cell.marks]


def test_the_studies_of_a_paper_are_shipped_studies_and_studies_that_ran(tmp_path, everything: Study):
    store = Store(tmp_path)
    shipped = {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["study"].get("paper")
        for path in (Path(__file__).parents[3] / "studies").glob("*.toml")
    }
    for paper in (PAPER, "all-attention", "a paper of nobody"):
        own = {name for name, its in shipped.items() if its == paper}
        assert {study.name for study in studies_of_paper(paper, store)} == own


@pytest.mark.parametrize(
    "name",
    [
        ("all-atention",),
        ("all-attention", "table4"),
    ],
    ids=str,
)
def test_unknown_papers_and_tables_are_reported(name, golden):
    with golden.raises(TableError):
        published_tables_of(*name)
