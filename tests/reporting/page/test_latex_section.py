"""The LaTeX section: self-contained, and compiled where LaTeX is installed."""

import re

import pytest

from activemem import load_study
from activemem.reporting.page import latex_section

from ...latex import compile_latex

CURVES = """
[[curve]]
name = "by_task"
kind = "bar"
x = "task"
value = "loss"
select = { mixer = "sa" }

[[claim]]
name = "attention beats convolution on sort & 50 %"
holds = "max_length[task=sort, mixer=sa] > max_length[task=sort, mixer=conv(k=20)] + 1"

[[claim]]
name = "convolution wins both"
holds = "all(max_length[task=t, mixer=conv(k=20)] > max_length[task=t, mixer=sa] for t in [sort, copy])"

[[claim]]
name = "attention beats convolution at their best tasks"
holds = "max_length[mixer=sa] > max_length[mixer=conv(k=20)]"
over = "task"
pick_by = "max_length"
"""
DOCUMENT = r"""\documentclass[twocolumn]{article}
PACKAGES
\begin{document}
\input{section}
\end{document}
"""


@pytest.fixture(scope="module")
def written(everything, kept):
    return latex_section(load_study(everything.document.text + CURVES), kept)


def test_all_that_is_pointed_at_is_there_once(written):
    labels = re.findall(r"\\label\{([^}]*)\}", written.text)
    assert labels == ["sec:everything", "tab:everything-table4", "fig:everything-by_task"]
    assert set(re.findall(r"\\ref\{([^}]*)\}", written.text)) == set(labels[1:])
    assert re.findall(r"\\includegraphics\{([^}]*)\}", written.text) == list(written.figures)
    assert all(drawn.startswith(b"%PDF") for drawn in written.figures.values())


def test_every_brace_and_every_environment_is_closed(written):
    text = re.sub(r"\\[\\{}]|(?m:^%.*$)", "", written.text)
    assert text.count("{") == text.count("}")
    open_ones = []
    for what, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if what == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert open_ones == []


def test_it_says_where_its_numbers_come_from_and_what_became_of_the_claims(written):
    for words in (
        "activemem 0.1.0 (a1b2c3d)",
        "Seeds: 0, 1, 2.",
        r"SHA-256 of the study's file \texttt{",
        r"\item \textbf{undecided}: attention beats convolution on sort \& 50 \% (",
        "], tested for more than 1, ",
        "Table~\\ref{tab:everything-table4} has the results.",
    ):
        assert words in written.text


def test_claims_name_the_levels_that_they_picked_and_the_comparison_with_their_numbers(written):
    lines = written.text.replace(r"\allowbreak{}", "").split("\n")
    both, picked = (next(line for line in lines if name in line) for name in ("wins both", "best tasks"))
    assert r"{\footnotesize the numbers are of copy $\cdot$ " in both
    assert picked.endswith(r"mixer=sa: task=copy is its best by max\_length}")


def test_code_in_the_comment_of_a_study_is_set_as_code(everything, kept):
    text = "# `run_it` with `lr` = `0.1.\n\n" + everything.document.text
    assert r"\texttt{run\_\allowbreak{}it} with \texttt{lr} = " in latex_section(load_study(text), kept).text


def test_the_same_store_gives_the_same_section(written, everything, kept):
    again = latex_section(load_study(everything.document.text + CURVES), kept)
    assert (again.text, again.figures) == (written.text, written.figures)


@pytest.mark.slow  # seconds of LaTeX, twice
@pytest.mark.parametrize("form", ["latex", "siunitx"])
def test_latex_compiles_it_without_an_overfull_box(everything, kept, tmp_path, form):
    made = latex_section(load_study(everything.document.text + CURVES), kept, form=form)
    packages = made.text.splitlines()[1].removeprefix("% ").replace(" (siunitx 3)", "")
    (tmp_path / "section.tex").write_text(made.text, encoding="utf-8")
    for name, drawn in made.figures.items():
        (tmp_path / name).write_bytes(drawn)
    log = compile_latex(tmp_path, DOCUMENT.replace("PACKAGES", packages), "booktabs", "adjustbox", "siunitx")
    assert "Overfull" not in log
    assert "undefined" not in log
