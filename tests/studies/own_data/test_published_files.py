"""Published numbers of any paper, from the user's CSV files."""

from pathlib import Path

import pytest

from activemem import StudyError, load_study
from activemem.studies.catalog.published import read_numbers
from activemem.studies.study import load_recorded_study

from ...study_texts import study_text

HEADER = "table,row,column,value,spread,spread_is,n,unit,source,note\n"


def write(folder, numbers, *, file="theirs.csv", published="theirs.csv", **study):
    """Write a study and a file of published numbers, and return the path of the study."""
    (folder / file).write_text(numbers, encoding="utf-8", newline="")
    text = study_text(
        study={"published": published, **study},
        factors={"mixer": ["sa(heads=2)", "conv(k=3)"], "task": ["not", "reverse"], "seed": [0, 1]},
        table=[
            {"name": "t", "rows": "mixer", "columns": "task", "value": "max_length", "published": "table2"},
        ],
    )
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "lines",
    [
        "t,a,b,0.9.3,,,,,,\nt,a,c,0.5 ± 0.1,,,,,,\nt,a,d,O.99,,,,,,",
        "t,a,b,1,x,sd,0,,,\nt,,e,1,,sd,,,,\nt,a,f,1,0.1,std,3,,,\nt,a,g,OOM,0.1,sd,,,,\nt,a,h,9 %,,,,nats,,",
        "t,a,b,1,,,,,,\n\nt,a,c,1\nt,a,b,2,,,,,,",
        't,a\x1b[31m,b,1,,,,,,\nt,a,c,1,,,,,,"open',
        "",
    ],
    ids=["values", "fields", "lines", "signs", "empty"],
)
def test_all_faults_of_a_file_are_told_with_their_lines(lines, golden):
    golden("\n".join(read_numbers(HEADER + lines)[1]))


@pytest.mark.parametrize(
    "header",
    ["table,row,colum,value", "table;row;column;value", "table,row,row,column,value", "", "value\tunit"],
)
def test_a_wrong_line_of_columns_is_told(header, golden):
    golden("\n".join(read_numbers(f"{header}\nt,a,b,1\n")[1]))


@pytest.mark.parametrize(
    ("written", "value", "unit"),
    [
        *((text, float(text), "") for text in ("0.990", "1e-3", ".5", "-2")),
        ("−0.25", -0.25, ""),
        ("39M", 39e6, ""),
        ("99.3%", 99.3, "percent"),
        *((word, None, "") for word in ("OOM", "–", "> 100", "below 5")),
    ],
)
def test_a_value_is_a_number_as_printed_or_words(written, value, unit):
    numbers, faults = read_numbers(f"table,row,column,value\nt,a,b,{written}\n", "lee-2026")
    number = numbers["lee-2026", "t"]["a", "b"]
    assert (number.text, number.value, number.unit, faults) == (written, value, unit, [])


def test_a_study_shows_faults_of_its_file_at_its_key_and_nothing_that_follows_from_them(tmp_path):
    path = write(tmp_path, HEADER + "table2,conv,not,0.4.1,,,,,,\n", paper="lee-2026")
    with pytest.raises(StudyError) as error:
        load_study(path)
    (fault,) = error.value.faults
    assert fault.message.startswith("[study] published: theirs.csv: line 2: value: expected a number")


@pytest.mark.parametrize(
    ("numbers", "keys", "message"),
    [
        ("table9,conv,not,1", {}, "no published table 'table2' of theirs; nearest: table9"),
        ("table2,conv,not,1", {"published": "their.csv"}, "got none in"),
        ("table2,conv,not,1", {"published": 3, "paper": "lee"}, "[study] published: expected a text"),
        ("table2,conv,not,1", {"published": [], "paper": "lee"}, "unknown paper 'lee'"),
        ("table2,conv,not,1e999", {}, "expected a number of less than 309 digits"),
        ("table2,conv,not,1", {"published": ["theirs.csv", "./theirs.csv"]}, "is in theirs.csv as well"),
    ],
)
def test_what_does_not_fit_is_a_fault(tmp_path, numbers, keys, message):
    with pytest.raises(StudyError) as error:
        load_study(write(tmp_path, f"table,row,column,value\n{numbers}\n", **keys))
    assert message in str(error.value)


def test_a_paper_of_a_file_with_a_column_of_papers_must_be_one_of_them(tmp_path):
    numbers = "paper,table,row,column,value\nlee-2026,table2,conv,not,1\n"
    assert load_study(write(tmp_path, numbers, paper="lee-2026")).published.find("table2")
    with pytest.raises(StudyError, match="unknown paper 'lee-2027'; nearest: lee-2026"):
        load_study(write(tmp_path, numbers, paper="lee-2027"))


def test_a_file_that_no_table_shows_is_a_fault(tmp_path):
    path = write(tmp_path, "table,row,column,value\ntable2,conv,not,1\n")
    path.write_text(path.read_text(encoding="utf-8").replace('published = "table2"\n', ""), encoding="utf-8")
    with pytest.raises(StudyError, match=r"no \[\[table\]\] shows them"):
        load_study(path)


def test_a_file_adds_to_a_paper_that_comes_with_activemem_and_repeats_none_of_its_numbers(tmp_path):
    name = "active-memory-transformer"
    (_, table) = (
        load_study(
            write(tmp_path, f"table,row,column,value\ntable2,a,b,1\ntable4,{row},sort,1.5\n", paper=name)
        ).published.find(each)
        for row in ("rwkv",)
        for each in ("table2", "table4")
    )
    assert (len(table[0].cells), table[0].cells["rwkv", "sort"].text) == (49, "1.5")
    with pytest.raises(StudyError, match=r"line 2: .* row sa, column sort comes with activemem: remove one"):
        load_study(write(tmp_path, "table,row,column,value\ntable4,sa,sort,1.5\ntable2,a,b,1\n", paper=name))


def test_a_recorded_study_needs_no_file_but_its_text(tmp_path):
    path = write(tmp_path, "table,row,column,value\r\ntable2,conv,not,0.5\r\n")
    study = load_study(path)
    Path(tmp_path / "theirs.csv").unlink()
    record = {"text": study.document.text, "published": dict(study.published.texts)}
    assert load_recorded_study(record).published == study.published
    with pytest.raises(StudyError, match="the store has no copy"):
        load_recorded_study({"text": study.document.text})
