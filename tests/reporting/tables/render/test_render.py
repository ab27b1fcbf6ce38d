"""Each table format is compared with a reviewed file; delete one to have it recreated."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from markdown_it import MarkdownIt

from activemem import Study, StudyResults, load_study
from activemem.reporting import Table, TableError
from activemem.reporting.kinds import build_table
from activemem.reporting.paper import published_only_table
from activemem.reporting.tables.render import own_format_names, render, rich
from activemem.reporting.tables.render.markdown import escape
from activemem.reporting.tables.table import Cell, CellStatus, ColumnKey
from activemem.storage import Store
from activemem.studies import published_tables
from activemem.studies.presentation.table_keys import CellsTable

from ....golden import GoldenTexts
from ....latex import compile_latex

GOLDEN = Path(__file__).with_name("golden")
NASTY = ("a_b & c | d", "50% < $x^2 \\ {#1} ~", "*b* [c] `d` \"q\" 'r' --", "é <b>")
STRANGE = ("x_1", "y|2", "z & 3%")
ENDINGS = {"rich": "txt", "markdown": "md", "latex": "tex"}
FORMATS: dict[str, Callable[[Table], str]] = {
    "ansi": lambda made: rich.render(made, width=100, ansi=True),
    **{ENDINGS.get(form, form): partial(render, form=form) for form in own_format_names()},
}

FORMS: dict[str, dict[str, Any]] = {
    "metrics": {
        "value": ["max_length", "loss"],
        "select": {"lr": 1e-3},
    },
    "picked": {
        "value": "max_length",
        "over": "lr",
        "pick_by": "max_length",
        "baseline": "sa",
        "spread": "se",
    },
}
Forms = tuple[Study, pl.DataFrame, frozenset[str]]


@pytest.fixture(scope="module")
def tables(everything: Study, rows: pl.DataFrame, forms: Forms) -> dict[str, Table]:
    one = load_study(everything.document.text, overrides=("factors.seed=[0]",))
    nothing = everything.tables[0].model_copy(update={"caption": "Nothing has run"})
    full = build_table(everything, everything.tables[0], rows, published=True)
    return {
        "published-only": build_table(everything, nothing, rows.clear(), published=True),
        "everything": full,
        "one-seed": build_table(one, one.tables[0], rows),
        "names": replace(
            full,
            rows=NASTY,
            columns=STRANGE,
            corner="a < b",
            keys=tuple(ColumnKey(metric="max_length", level=name) for name in STRANGE),
        ),
        **{name: _form(forms, keys) for name, keys in FORMS.items()},
        "paper": published_only_table(published_tables()["memory-degradation", "table2"]),
        "words": published_only_table(published_tables()["extended-neural-gpu", "table1"]),
    }


def _form(forms: Forms, keys: dict[str, Any]) -> Table:
    study, outcomes, begun = forms
    spec = CellsTable.model_validate({"name": "table4", "rows": "mixer", "columns": "task", **keys})
    return build_table(
        study, spec, outcomes, published=True, paper_only=isinstance(keys["value"], list), begun=begun
    )


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    "name", ["everything", "one-seed", "published-only", "names", *FORMS, "paper", "words"]
)
def test_a_table_is_rendered_byte_for_byte_as_it_was_seen(
    tables: dict[str, Table], name: str, ending: str
) -> None:
    path = GOLDEN / f"{name}.{ending}"
    text = FORMATS[ending](tables[name])
    if not path.exists():
        path.write_bytes(text.encode())
        pytest.fail(f"{path.name} is new: look at it, then run this again")
    assert text.encode() == path.read_bytes()


def test_asterisks_and_marks_stand_beside_a_number_without_the_spread_that_others_have(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    lost = [each.id for each in everything.trials if each.levels["mixer"] == "conv(k=20)" and each.seed < 2]
    made = build_table(everything, everything.tables[0], rows.filter(~pl.col("trial").is_in(lost)))
    lines = render(made, "rich").splitlines()
    golden([line for line in lines if line.startswith(("  mixer", "  sa ", "  conv(k=20)"))])


def test_a_terminal_shows_the_best_in_bold_and_plain_text_between_asterisks(
    tables: dict[str, Table],
) -> None:
    for made in tables.values():
        plain, styled = render(made, "rich"), rich.render(made, ansi=True)
        seen = re.sub(r"\x1b\[\d*m", "", styled)
        assert seen.replace("*", "").split() == plain.replace("*", "").split()
        assert [len(line) for line in seen.splitlines()] <= [len(line) for line in plain.splitlines()]


def test_significance_has_a_mark_of_its_own_in_text(tables: dict[str, Table]) -> None:
    made = tables["picked"]
    assert any("*" in cell.difference_text for row in made.cells for cell in row)
    text = render(made, "rich")
    assert "†: p < 0.05" in " ".join(text.split())
    assert not re.search(r"\d\*\)", text)


@pytest.mark.parametrize("width", [60, 72, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(tables: dict[str, Table], width: int) -> None:
    for made in tables.values():
        assert max(map(len, rich.render(made, width=width).splitlines())) <= width


def test_a_name_wider_than_the_terminal_is_never_cut(tables: dict[str, Table]) -> None:
    text = rich.render(tables["everything"], width=20)
    assert text.count("  persistent_conv(k=20) + sa") == 3  # once in each of three column groups


def test_no_line_ends_in_a_space(tables: dict[str, Table]) -> None:
    for made in tables.values():
        for rendered in FORMATS.values():
            assert not re.search(r"[ \t]$", rendered(made), re.MULTILINE)


def test_a_program_reads_every_number_of_the_csv_back(tables: dict[str, Table]) -> None:
    made = tables["everything"]
    lines = list(csv.DictReader(io.StringIO(render(made, "csv"))))
    flat = [cell for row in made.cells for cell in row]
    estimates = [cell.estimate for cell in flat]
    assert [line["value"] and float(line["value"]) for line in lines] == [
        each.value if each else "" for each in estimates
    ]
    assert [float(line["spread"]) for line in lines if line["spread"]] == [
        each.spread for each in estimates if each and each.spread is not None
    ]
    assert [int(line["n"]) for line in lines] == [cell.count for cell in flat]


def test_latex_has_no_sign_that_its_fonts_lack(tables: dict[str, Table]) -> None:
    signs = "Θ, αλ₁ xⁿ é Łódź ½ √ ⊗ 日 \x1b[31m \u202e"
    made = replace(tables["everything"], caption=signs)
    (caption,) = (line for line in render(made, "latex").splitlines() if "\\caption" in line)
    assert caption == (
        r"  \caption{$\Theta$, $\alpha$$\lambda$\textsubscript{1} x\textsuperscript{n} é Łódź 1/2"
        r" $\surd$ $\otimes$ 日 ?{[}31m ?}"
    )


def test_html_is_ascii_so_that_no_charset_is_needed(tables: dict[str, Table]) -> None:
    assert all(render(made, "html").isascii() for made in tables.values())


def test_rows_lose_arguments_where_that_makes_fewer_groups(tables: dict[str, Table]) -> None:
    made = replace(
        tables["one-seed"], rows=("sa(heads=4)", "conv(k=20)", "conv(k=20) + sa(heads=4)", "cgru(k=9)")
    )
    assert "In full" not in rich.render(made, width=80)
    narrow = rich.render(made, width=50).splitlines()
    rows = [line.split("  ")[1] for line in narrow if line.startswith(("  sa", "  conv", "  cgru"))]
    assert rows == ["sa", "conv", "conv + sa", "cgru"]
    assert "  In full: sa(heads=4), conv(k=20), cgru(k=9)." in narrow


@pytest.mark.parametrize("count", [1, 2])
def test_rows_lose_arguments_where_the_lines_are_too_wide_whatever_the_number_of_columns(
    tables: dict[str, Table], count: int
) -> None:
    long = "gla(heads=4, head_width=16, head_norm=rms, output_gate=silu)"
    rows = (long, "conv(k=20)", f"conv(k=20) + {long}", "cgru(k=9)")
    whole = tables["one-seed"]
    made = replace(
        whole, rows=rows, columns=whole.columns[:count], cells=tuple(line[:count] for line in whole.cells)
    )
    lines = rich.render(made, width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("  conv + gla  ") for line in lines) == 1


def test_columns_are_parted_at_their_headings_and_evenly(tables: dict[str, Table]) -> None:
    first = next(iter(tables["everything"].cells[0]))
    made = replace(
        tables["everything"],
        rows=("a",),
        columns=("one", "two", "three", "four") * 2,
        column_headings=(("x",) * 4 + ("y",) * 4,),
        cells=((replace(first, text="12345678", marks=(), best=False, spread="", published_lines=()),) * 8,),
        groups=(),
        footnotes=(),
    )
    heads = [line.split() for line in rich.render(made, width=45).splitlines() if line.startswith("  mixer")]
    assert heads == [["mixer", "one", "two"], ["mixer", "three", "four"]] * 2
    heads = [line.split() for line in rich.render(made, width=60).splitlines() if line.startswith("  mixer")]
    assert heads == [["mixer", "one", "two", "three", "four"]] * 2


def test_texts_are_left_aligned_in_markdown(tables: dict[str, Table]) -> None:
    made = tables["one-seed"]
    text = Cell(status=CellStatus.DONE, text="sa + conv(k=9)", picked="sa + conv(k=9)")
    made = replace(made, cells=tuple((text, *cells[1:]) for cells in made.cells))
    assert made.render("markdown").splitlines()[3].startswith("| :-- | :-- | --: |")


def test_an_unknown_format_is_reported_with_the_nearest(
    tables: dict[str, Table], golden: GoldenTexts
) -> None:
    with golden.raises(TableError):
        render(tables["everything"], "markdwn")


@pytest.mark.parametrize("form", ["latex", "siunitx"])
def test_latex_shrinks_a_table_that_is_wider_or_higher_than_a_page(
    tables: dict[str, Table], form: str
) -> None:
    few = tables["one-seed"]
    few = replace(few, columns=("a",), cells=tuple(cells[:1] for cells in few.cells))
    narrow = render(replace(few, column_headings=(), keys=few.keys[:1]), form)
    assert r"\begin{table}" in narrow
    wide = render(tables["everything"], form)
    assert r"\begin{table*}" in wide
    assert r"\begin{adjustbox}{max width=\linewidth, max totalheight=0.8\textheight}" in wide


def test_latex_has_the_metrics_of_a_table_that_is_wider_than_a_page_below_one_another() -> None:
    made = StudyResults(load_study("scaling-small"), Store("studies/results")).table("sizes")
    text = render(made, "latex")
    assert re.findall(r"multicolumn\{5\}\{c\}\{([PT][^}]*)\}", text) == [
        r"Test loss $\downarrow$",
        r"Test bits per byte $\downarrow$",
        "Parameters",
    ]
    assert text.count(r"\begin{tabular}{@{}lrrrrr@{}}") == 3
    assert r"max totalheight=0.27\textheight" in text
    assert text.count(r"\caption") == 1


@pytest.mark.parametrize("form", ["latex", "siunitx"])
def test_latex_breaks_long_cells_into_lines_and_compiles(
    tables: dict[str, Table], form: str, tmp_path: Path
) -> None:
    table = tables["one-seed"]
    recipe = Cell(status=CellStatus.DONE, text=" >> ".join(8 * ["highway_conv(k=20)"]))
    cells = tuple((recipe, *row[1:]) for row in table.cells)
    text = render(replace(table, cells=cells), form)
    assert r"{@{}lp{0.55\linewidth}" in text
    packages = text.splitlines()[0].removeprefix("% ").replace(" (siunitx 3)", "")
    document = rf"\documentclass{{article}}{packages}\begin{{document}}{text}\end{{document}}"
    log = compile_latex(tmp_path, document, "booktabs", "adjustbox", "siunitx")
    assert "Overfull" not in log


LIKE_MARKUP = (
    *NASTY,
    *STRANGE,
    *("- x", "+ x", "1. x", "12) x", "---", "===", "# x", "> x", "~~x~~", "`x", "![x](y)", "<https://x.org>"),
    *("&amp;", "\\|", "__x__", "_x_ x_y", "| a |", "https://x.org", "[x]: y", "-1.5"),
)


@pytest.mark.parametrize("text", LIKE_MARKUP)
def test_markdown_shows_an_escaped_text_as_it_is(text: str) -> None:
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for written in (escape(text), f"| {escape(text)} |\n| --- |\n"):
        (inline,) = [token for token in reader.parse(written) if token.type == "inline"]
        shown = {child.type for child in inline.children or ()}
        assert "".join(child.content for child in inline.children or ()) == text
        assert shown <= {"text", "text_special"}
