"""Tables with the published numbers of the user's own files."""

import logging

import pytest

from activemem import load_study, open_study
from activemem.reporting.paper import paper_sheet
from activemem.storage import Store

from ...cli.store_factories import store_outcome
from ...study_texts import study_text

MIXERS = ["sa(heads=2)", "conv(k=3)"]
LEE = "paper,table,row,column,value,spread,spread_is,n,unit,source\n"


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """Return a function that runs a study beside a file of published numbers, and returns its first table."""
    monkeypatch.chdir(tmp_path)

    def render(numbers, *, by_name=False, task=("not", "reverse"), **keys):
        (tmp_path / "theirs.csv").write_text(LEE + numbers, encoding="utf-8")
        table = {"name": "t", "rows": "mixer", "columns": "task", "value": "max_length", "published": "t2"}
        text = study_text(
            study={"published": "theirs.csv"},
            factors={"mixer": MIXERS, "task": list(task), "seed": [0, 1]},
            table=[{**table, **keys}],
        )
        (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
        study, store = load_study("tiny.toml"), Store("results")
        for number, trial in enumerate(study.trials if len(store.trials()) == 0 else ()):
            store_outcome(trial, store, value=5.0 + number)
        record = {"text": text, "overrides": [], "published": dict(study.published.texts)}
        store.records.save("tiny", record)
        return open_study("tiny" if by_name else "tiny.toml", "results").table("t")

    return render


def lines(table):
    return [[[line.text for line in cell.published_lines] for cell in row] for row in table.cells]


def test_a_number_is_below_the_cell_of_its_level_its_label_or_its_blocks(shown):
    made = shown("lee,t2,sa(heads=2),not,10,0.5,sd,3,tokens,Table 2\nlee,t2,conv,reverse,OOM,,,,,Table 2\n")
    assert lines(made) == [[["10 ± 0.5"], []], [[], ["OOM"]]]
    assert any("Below: published, lee t2 (± s.d., n = 3; Table 2)." in each for each in made.remarks)
    tasks = [{"name": "not", "test_lengths": [6], "label": "negation"}, "reverse"]
    labelled = shown("lee,t2,conv,negation,10,,,,,\n", task=tasks)
    assert (labelled.columns[0], lines(labelled)[1][0]) == ("negation", ["10"])


def test_a_table_of_a_study_by_its_name_needs_no_file(shown, tmp_path):
    made = shown("lee,t2,sa(heads=2),not,10,,,,,\n")
    (tmp_path / "theirs.csv").unlink()
    again = open_study("tiny", "results").table("t")
    assert (lines(again), again.remarks) == (lines(made), made.remarks)


def test_several_papers_are_below_a_cell_each_with_its_mark(shown):
    made = shown("lee,t2,conv,not,10,,,,tokens,\ngu,t2,conv,not,8.5,1,se,4,tokens,p. 7\n")
    cell = made.cells[1][0]
    notes = {note.mark: note.text for note in made.footnotes}
    texts = [(line.text, *(notes[mark] for mark in line.marks)) for line in cell.published_lines]
    assert texts == [
        ("10", "Published: lee t2."),
        ("8.5 ± 1", "Published: gu t2 (± standard error, n = 4; p. 7)."),
    ]
    for form in ("rich", "latex", "siunitx", "markdown", "html"):
        assert "8.5" in made.render(form)
    assert sum(each.startswith("Reproduction of ") for each in made.remarks) == 2
    (note,) = made.frame()["note"].drop_nulls().unique()
    assert note.startswith("10: Published: lee t2.; 8.5 ± 1: Published: gu t2 (")


def test_a_list_names_tables_of_other_names(shown):
    numbers = "lee,t2,conv,not,10,,,,,\ngu,main,convolution,not,8,,,,,\n"
    other = {"table": "gu:main", "rows": {"conv": "convolution"}}
    assert lines(shown(numbers, published=["t2", other]))[1][0] == ["10", "8"]
    # the sheet has each of them beside the cells
    assert [each.full_size for each in paper_sheet("theirs.csv", "results").printed] == [1, 1]


@pytest.mark.parametrize(
    ("value", "unit", "text", "note"),
    [
        ("10", "tokens", "10 (+7)", ""),
        ("10", "", "10 (+7)", ""),
        ("10", "percent", "10", "Published in percent, not tokens: not compared."),
        ("-1", "", "-1", "Published no value of max_length, and its unit is not named: not compared."),
    ],
)
def test_numbers_in_another_unit_have_no_difference(shown, value, unit, text, note):
    made = shown(
        f"lee,t2,sa(heads=2),not,3,,,,{unit},\nlee,t2,conv,not,{value},,,,{unit},\n", baseline="sa(heads=2)"
    )
    (line,) = made.cells[1][0].published_lines
    marked = [each.text for each in made.footnotes if each.mark in line.marks]
    assert (line.text, marked) == (text, [note] if note else [])
    assert any("Reproduction" in each for each in made.remarks) is not bool(note and value == "10")


def test_names_that_match_nothing_are_told_with_both_lists(shown, caplog):
    with caplog.at_level(logging.WARNING):
        shown("lee,t2,conv,not,10,,,,,\nlee,t2,mamba,NOT,1,,,,,\n")
    assert [each.message.partition(";")[0] for each in caplog.records] == [
        "lee t2: row 'mamba' matches no row here",
        "lee t2: column 'NOT' matches no column here",
    ]
    assert "ours are 'sa(heads=2)' and 'conv(k=3)'" in caplog.records[0].message
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        shown("gu,t2,attention,MQAR,1,,,,,\n")
    assert "its rows are 'attention', and ours 'sa(heads=2)' and 'conv(k=3)'" in caplog.text


def test_a_figure_draws_the_numbers_that_the_table_shows(shown, tmp_path):
    shown("lee,t2,conv,not,10,,,,tokens,\nlee,t2,sa(heads=2),not,90,,,,percent,\ngu,t2,conv,not,8,,,,,\n")
    text = (tmp_path / "tiny.toml").read_text(encoding="utf-8")
    keys = 'kind = "bar"\nx = "mixer"\npanels = "task"\nvalue = "max_length"\n'
    (tmp_path / "tiny.toml").write_text(f'{text}\n[[curve]]\nname = "c"\n{keys}published = "lee:t2"\n')
    made = open_study("tiny.toml", "results").curve("c")
    assert [[bar.published for bar in panel.content.bars] for panel in made.panels] == [
        [None, 10],
        [None] * 2,
    ]
    (tmp_path / "tiny.toml").write_text(f'{text}\n[[curve]]\nname = "c"\n{keys}published = "t2"\n')
    with pytest.raises(ValueError, match='is a table of 2 papers: write "lee:t2" or "gu:t2"'):
        load_study("tiny.toml")


def test_the_sheet_of_a_file_has_its_numbers_and_the_studies_that_show_them(shown):
    shown("lee,t2,conv,not,10,,,,,\nlee,t2,mamba,not,9,,,,,\ngu,t2,conv,reverse,8,,,,,\n")
    sheet = paper_sheet("theirs.csv", "results")
    assert [(each.name, each.printed, each.full_size) for each in sheet.printed] == [
        ("lee t2", 2, 1),
        ("gu t2", 1, 1),
    ]
    assert [each.name for each in sheet.studies] == ["tiny"]
    assert "mamba" in sheet.tables[0].rows
    assert paper_sheet("lee", "results").printed[0].printed == 2
