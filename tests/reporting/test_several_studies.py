"""One table over several studies."""

import logging
from pathlib import Path

import pytest

from activemem import load_study, open_study
from activemem.reporting import TableError
from activemem.reporting.paper import paper_sheet
from activemem.storage import Store

from ..cli.store_factories import store_outcome
from ..latex import compile_latex
from ..study_texts import study_text

NUMBERS = """\
paper,table,row,column,value,spread,spread_is,n,unit
lee,all,sa,not,10,1,sd,3,tokens
gu,all,conv,own,0.9,,,,fraction
gu,all,gru,reverse,8,,,,tokens
"""
ALL = {"name": "all", "rows": "mixer", "columns": "task", "value": ["max_length", "loss"]}


def write(name, mixers, tasks=None, *, stored=True, table=(), **study):
    """Write a study with a table of its own; with `stored`, all of its trials have ended."""
    keys = {"mixer": mixers, **({"task": tasks} if tasks else {}), "seed": [0, 1]}
    own = {"name": "own", "rows": "mixer", "value": "max_length", **({"columns": "task"} if tasks else {})}
    text = study_text(
        study={"name": name, **study},
        task={"name": "{task}" if tasks else "copy"},
        factors=keys,
        table=[*table, own],
    )
    Path(f"{name}.toml").write_text(text, encoding="utf-8")
    made, store = load_study(f"{name}.toml"), Store("results")
    for number, trial in enumerate(made.trials if stored else ()):
        store_outcome(trial, store, value=5.0 + number)
    if stored:
        record = {"text": made.document.text, "overrides": [], "path": str(Path(f"{name}.toml").absolute())}
        store.records.save(name, {**record, "published": dict(made.published.texts)})
    return made


@pytest.fixture
def joined(tmp_path, monkeypatch):
    """Return a function that renders the table of `own` over several studies."""
    monkeypatch.chdir(tmp_path)
    write("synthetic", ["sa", "conv(k=3)"], ["not", "reverse"])

    def render(*studies, by_name=False, numbers="", **keys):
        study = {"published": "theirs.csv"} if numbers else {}
        Path("theirs.csv").write_text(numbers, encoding="utf-8")
        if not Path("own.toml").exists():
            write("own", ["conv(k=3)", "gru"], table=[{**ALL, "studies": list(studies), **keys}], **study)
        return open_study("own" if by_name else "own.toml", "results").table("all")

    return render


def texts(table):
    return {row: [cell.text for cell in cells] for row, cells in zip(table.rows, table.cells, strict=True)}


@pytest.mark.parametrize("synthetic", ["synthetic", "synthetic.toml"])
@pytest.mark.parametrize("by_name", [False, True])
def test_columns_of_studies_are_side_by_side_and_rows_are_joined_by_their_level(joined, synthetic, by_name):
    made = joined(synthetic, "own", value="max_length", by_name=by_name)
    assert made.columns == ("not", "reverse", "copy")
    assert made.column_headings == (("synthetic", "synthetic", "own"),)
    assert texts(made) == {
        "sa": ["5.5", "7.5", ""],
        "conv(k=3)": ["9.5", "11.5", "5.5"],
        "gru": ["", "", "7.5"],
    }
    assert [key.level for key in made.keys] == ["not", "reverse", "copy"]
    assert made.provenance.startswith("study synthetic · 8 trials")
    assert not any(cell.difference_text for row in made.cells for cell in row)


def test_each_study_has_the_metrics_that_its_trials_have(joined):
    made = joined("synthetic", "own")
    assert made.column_headings[0] == (*["synthetic"] * 4, *["own"] * 2)
    assert made.column_headings[1][0].startswith("max_length")
    assert [key.metric for key in made.keys] == [*["max_length"] * 2, *["loss"] * 2, "max_length", "loss"]


def test_published_numbers_of_several_papers_are_below_the_cells_also_of_rows_that_a_study_lacks(joined):
    made = joined(
        "synthetic",
        "own",
        value="max_length",
        numbers=NUMBERS,
        published={"table": "all", "columns": {"own": "own"}},
    )
    shown = {
        row: [each.published_text for each in cells] for row, cells in zip(made.rows, made.cells, strict=True)
    }
    assert shown == {"sa": ["10 ± 1", "", ""], "conv(k=3)": ["", "", "0.9"], "gru": ["", "8", ""]}
    notes = [note.text for note in made.footnotes if note.text.startswith("Published")]
    assert notes == [
        "Published: lee all (± s.d., n = 3).",
        "Published: gu all.",
        "Published in fraction, not tokens: not compared.",
    ]


def test_the_table_compiles_and_each_row_has_as_many_columns(joined, tmp_path):
    text = joined("synthetic", "own", value="max_length", numbers=NUMBERS).render("latex")
    rows = text.partition("\\midrule")[2].partition("\\bottomrule")[0].strip().splitlines()
    assert [row.count("&") for row in rows] == [3] * 6
    packages = r"\usepackage{booktabs,adjustbox,textcomp}"
    document = rf"\documentclass{{article}}{packages}\begin{{document}}{text}\end{{document}}"
    compile_latex(tmp_path, document, "booktabs", "adjustbox")


def test_the_sheet_of_a_file_counts_the_cells_of_all_studies(joined):
    joined("synthetic", "own", value="max_length", numbers=NUMBERS)
    assert [each.full_size for each in paper_sheet("theirs.csv", "results").printed] == [1, 1]


def test_names_of_papers_are_told_only_if_no_study_has_them(joined, caplog):
    with caplog.at_level(logging.WARNING):
        joined("synthetic", "own", value="max_length", numbers=NUMBERS + "lee,all,mamba,Copy,1,,,,\n")
    assert [each.message.partition(";")[0] for each in caplog.records] == [
        "lee all: row 'mamba' matches no row here",
        "lee all: column 'Copy' matches no column here",
    ]


def test_a_study_without_results_in_the_store_is_named_and_the_others_are_shown(joined):
    made = joined("synthetik", "own", value="max_length")
    assert made.columns == ("copy",)
    assert made.remarks[0].startswith("Not in this table: synthetik: there is no such file")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"select": {"mixer": ["sa", "lstm"]}}, "select.mixer: no study has a level 'lstm'"),
        ({"select": {"width": 3}}, "select: no study has a factor 'width'"),
        ({"rows": "task"}, "own: rows: it has no factor 'task'"),
        ({"value": "test_accuracy"}, "synthetic: value: "),
        ({"published": {"table": "all", "rows": {"lstm": "sa"}}}, "published.rows: no study has 'lstm'"),
        ({"over": ["width"]}, "over: no study has a factor 'width'"),
    ],
)
def test_keys_that_fit_no_study_are_told(joined, keys, message):
    with pytest.raises(TableError) as error:
        joined("synthetic", "own", **{"numbers": NUMBERS, **keys})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"baseline": "gru"}, "baseline: a table of several studies compares no rows"),
        ({"rows": "changes"}, "rows: a table of several studies has no changes of a baseline"),
        ({"studies": ["own", "own"]}, "the study 'own' is listed twice"),
    ],
)
def test_keys_that_compare_rows_are_refused(joined, keys, message):
    with pytest.raises(ValueError, match=message):
        joined("synthetic", "own", **keys)
