"""The check of a text: unknown and missing numbers, copies by hand, and stale files."""

import re

import pytest

from activemem.reporting.manuscript import check_text, write_paper

from .conftest import PAPER


@pytest.fixture
def check(built, tmp_path):
    """Return a function that checks a text and returns the reported faults."""

    def told(text):
        (tmp_path / "main.tex").write_text(text, encoding="utf-8")
        return "\n\n".join(map(str, check_text(built, tmp_path / "main.tex").faults))

    return told


@pytest.mark.parametrize(
    "text",
    [
        r"We sort \am{sort} in \am {gain.low} with \am{gain.n} seeds, on 3 tasks in 2026, 30 of them.",
        r"A copy of 30.0 % am: sort",
        r"Copies of 30.0 and $-15.0$. %am: sort, gain",
        r"No copy: 30.0 % am:",
        r"In percent: 197.6\% or 197.6\,\% % am: times",
        "A comment. % 30.0 and \\am{nothing}\n",
        r"An escaped \% 5, \\% \am{nothing}",
        r"\includegraphics{generated/everything/figure-by_task} \include{generated/compute.tex} \input{own}",
        r"A cell of three digits, 104.0 % am:",
        r"\includegraphics[width=0.190\linewidth]{own} in 0.01em",
        r"Published are 41.0 and 20.7; cells of fewer digits are 5.0, 19.0 and 10.0.",
        r"\newcommand{\results}[1]{\input{generated/everything/table-#1}}",
    ],
)
def test_a_text_with_the_numbers_of_the_paper_has_no_fault(check, text):
    assert check(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        r"\am{srot}",
        r"\am{gain.hihg}",
        r"\am{none}",
        r"\am{part}",
        r"42.2 % am: part",
        r"\am{size.n}",
        r"sorts 30.0.",
        r"\% of 30.0\% sorted",
        r"copies 104.0.",
        r"197.7\% % am: times",
        r"30.1 % am: sort",
        r"30.0 and $-15.0$ % am: sort",
        r"no numeral % am: sort",
        r"30.0 % am: sotr",
        r"\input{generated/everything/table-table4}",
        r"\input{generated/everything/table-table}",
        r"\includegraphics[width=2cm]{generated/everything/figure-by_tsk.pdf}",
    ],
)
def test_a_fault_is_reported_below_its_words(check, text, golden):
    told = check(f"First line.\n{text}\n")
    assert f"2 | {text}" in told
    golden(told)
    assert "1 fault" in told


def test_all_faults_of_all_texts_are_reported_at_once(check, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "intro.tex").write_text("\\am{a}\n\\input{main}\n", encoding="utf-8")
    told = check("\\input{parts/intro} \\am{b} \\am{c}\n% \\input{parts/old}\n\\include{generated/numbers}")
    assert told.count("unknown number") == 3
    assert "main.tex: 2 faults" in told
    assert "intro.tex: 1 fault" in told


def test_a_copy_of_a_number_as_it_was_built_is_found(check, built, golden):
    path = built.folder / "numbers.tex"
    path.write_text(path.read_text(encoding="utf-8").replace("{30.0}", "{28.5}"), encoding="utf-8")
    told = check("It sorts 28.5 now.")
    golden(told)


def test_a_copy_of_a_number_that_has_changed_since_is_found_after_the_next_build(check, built, golden):
    record = built.folder / "build.json"
    record.write_text(record.read_text(encoding="utf-8").replace('"30.0"', '"28.5"'), encoding="utf-8")
    for _ in range(2):
        write_paper(built)
    golden(check(r"It sorts 28.5, or 285\% of 10."))
    assert check("It sorts 28.5. % am:") == ""


def test_what_was_checked_is_counted_and_numerals_that_match_no_result_are_listed(built, tmp_path):
    text = tmp_path / "main.tex"
    text.write_text(
        "We sort \\am{sort}, \\am{gain.low} and \\am{sort} of 3.\n"
        "Adam has 0.9 and 0.999 in version 2.\n"
        "30.0 % am: sort times\n"
        "A third of 33.3 \\% is 0.111. % am:\n"
        "\\includegraphics[width=0.5\\textwidth]{own} % 0.777\n"
        "Widths of 12.5\\textwidth, 0.485 \\linewidth, 1.25\\hsize and 0.25em.\n"
        "\\citep[Table 1.5]{arXiv:2301.12345} \\url{x.org/1.25} \\doi{10.1000/182} \\href{x/1.5}{is 7.5}\n"
        "It ends at 1.75 \\medskip\n"
    )
    checked = check_text(built, text)
    assert (checked.numbers, checked.files) == (3, 7)
    assert [(each.line, each.text) for each in checked.unmatched] == [
        (2, "0.9"),
        (2, "0.999"),
        (7, "7.5"),
        (8, "1.75"),
    ]


def test_files_that_are_stale_missing_or_left_over_are_reported(check, built):
    table = built.folder / "everything" / "table-table4.tex"
    table.write_text(table.read_text(encoding="utf-8") + "by hand", encoding="utf-8")
    (built.folder / "compute.tex").unlink()
    (built.folder / "everything" / "table-old.tex").write_bytes(table.read_bytes())
    (built.folder / "everything" / "table-own.tex").write_text("by hand", encoding="utf-8")
    told = check(r"\include{generated/compute}")
    for words in (
        "there is no such file; paper build writes it",
        "generated: 3 faults",
        "everything/table-table4.tex differs from what the store gives now",
        "compute.tex is missing",
        "everything/table-old.tex no longer belongs to this paper",
    ):
        assert words in told


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_a_drawing_of_another_figure_or_another_build_is_reported(check, built, ending):
    drawing = built.folder / "everything" / f"figure-by_task.{ending}"
    drawing.write_bytes(drawing.read_bytes() + b"of two seeds")
    told = f"everything/figure-by_task.{ending} and its .tex file are not from the same build"
    assert told in check("") and "generated: 1 fault" in check("")


def test_a_drawing_whose_record_is_of_an_earlier_build_is_reported(check, built):
    record, tex = built.folder / "build.json", built.folder / "everything" / "figure-by_task.tex"
    now = tex.read_bytes()
    tex.write_bytes(now.replace(b"% data", b"% data of two seeds"))
    assert "differs" in check("")
    tex.write_bytes(now)
    assert check("") == ""
    record.write_text(re.sub(r"\w{64}", "0" * 64, record.read_text(encoding="utf-8")), encoding="utf-8")
    assert "generated: 2 faults" in check("")


def test_files_with_the_line_ends_of_another_machine_are_current(check, built):
    for path in built.folder.rglob("*"):
        if path.suffix in (".tex", ".svg", ".json"):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert check(r"\am{sort}") == ""


@pytest.mark.parametrize("content", [None, "", "<<<<<<< HEAD", '{"drawings": []}'])
def test_a_missing_or_damaged_record_is_reported(check, built, content):
    record = built.folder / "build.json"
    record.unlink() if content is None else record.write_text(content, encoding="utf-8")
    assert "build.json is missing or damaged" in check("")


def test_a_paper_without_drawings_needs_no_record(read, tmp_path):
    paper = read(f"{PAPER}\n[figures]\neverything = []\n")
    write_paper(paper)
    (paper.folder / "build.json").unlink()
    (tmp_path / "main.tex").write_text(r"\am{sort}", encoding="utf-8")
    assert check_text(paper, tmp_path / "main.tex").faults == ()


def test_a_build_writes_a_damaged_record_anew_and_the_same_one_each_time(check, built):
    record = built.folder / "build.json"
    first = record.read_bytes()
    record.write_text("<<<<<<< HEAD", encoding="utf-8")
    assert record in write_paper(built)
    assert record.read_bytes() == first
    assert check("") == ""
