"""The files of a paper: all results by default, equal each time, and compiled where LaTeX is installed."""

import json
import re
from dataclasses import replace

import pytest

from activemem import load_study
from activemem.reporting.manuscript.files import paper_files
from activemem.reporting.manuscript.paper_file import read_manuscript
from activemem.storage import Store

from ...latex import compile_latex
from ...study_texts import replaced, study_text
from ..conftest import made_row
from .conftest import PAPER

DOCUMENT = r"""\documentclass[twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage{textcomp,graphicx,booktabs,adjustbox}
\input{generated/numbers}
\begin{document}
\tableofcontents
\section{A title with \am{sort}}
\typeout{[\am{sort}][\am{part.n}]}
A gain of $x = \am{gain}$ and \am{gain}, none of \am{none} and \am{unknown}.
\input{generated/everything/table-table4}
\input{generated/everything/figure-by_task}
\input{generated/compute}
\appendix
\input{generated/appendix}
\end{document}
"""


def test_all_tables_and_figures_are_written_by_default_and_only_those_that_are_asked_for(read):
    assert list(paper_files(read())) == [
        "everything/table-table4.tex",
        *(f"everything/figure-by_task.{ending}" for ending in ("pdf", "svg", "tex")),
        *("numbers.tex", "appendix.tex", "compute.tex"),
    ]
    some = paper_files(read(f"{PAPER}[tables]\neverything = []\n[figures]\neverything = []\n"))
    assert list(some) == ["numbers.tex", "appendix.tex", "compute.tex"]


def test_the_same_store_gives_the_same_files(read):
    assert paper_files(read()) == paper_files(read())


def test_a_float_is_labelled_by_its_study_and_finds_its_drawing(read):
    files = paper_files(read())
    assert rb"\label{tab:everything-table4}" in files["everything/table-table4.tex"]
    figure = files["everything/figure-by_task.tex"]
    assert rb"\includegraphics{generated/everything/figure-by_task.pdf}" in figure
    assert files["everything/figure-by_task.pdf"].startswith(b"%PDF")


def test_the_appendix_has_verdicts_with_the_picked_levels_and_where_numbers_come_from(
    kept, tmp_path, everything
):
    claims = """
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
    (tmp_path / "everything.toml").write_text(everything.document.text + claims, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = "everything.toml"', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    appendix = files["appendix.tex"].decode().replace(r"\allowbreak{}", "")
    for words in (
        "activemem 0.1.0 (a1b2c3d)",
        "Seeds: 0, 1, 2.",
        r"SHA-256 of the study's file \texttt{",
        r"\item \textbf{undecided}: attention beats convolution on sort \& 50 \% (",
        "], tested for more than 1, ",
    ):
        assert words in appendix
    lines = appendix.split("\n")
    both, picked = (next(line for line in lines if name in line) for name in ("wins both", "best tasks"))
    assert r"{\footnotesize the numbers are of copy $\cdot$ " in both
    assert picked.endswith(r"mixer=sa: task=copy is its best by max\_length}")


def test_the_appendix_has_every_setting_and_compute_counts_a_trial_once(read, tmp_path, everything, kept):
    twin = everything.document.text.replace('name = "everything"', 'name = "twin"')
    (tmp_path / "twin.toml").write_text(twin, encoding="utf-8")
    one = paper_files(read())
    (tmp_path / "paper.toml").write_text(
        '[paper]\nstudies = ["everything.toml", "twin.toml"]', encoding="utf-8"
    )
    both = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    assert one["compute.tex"] == both["compute.tex"]
    words = one["compute.tex"].decode()
    assert words.startswith("% Written by activemem")
    assert "trained for 40 s and 27.0 FLOPs in all, on H200 \\& 2 others" in words
    assert "failed attempts that were repeated, are not counted.\\par" in words
    assert "of tasks: copy, reverse, sort." in words
    appendix = both["appendix.tex"].decode()
    assert re.findall(r"\\label\{(.*)\}", appendix) == ["app:everything", "app:twin"]
    assert r"\texttt{train.optimizer.lr}~=~0.001" in appendix


def test_compute_and_provenance_count_the_seeds_that_were_added_later(read, tmp_path, everything, kept):
    whole = paper_files(read())
    text = replaced(
        everything.document.text, ("seed = [0, 1, 2]", "seed = [0]"), ("[study]", "[study]\nmax_seeds = 3")
    )
    (tmp_path / "everything.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = "everything.toml"', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    assert files["compute.tex"] == whole["compute.tex"]
    (planned, provenance), (_, named) = (
        re.search(r"(?s)Provenance\}\n(.*)(Seeds: [^.]*)", each["appendix.tex"].decode()).groups()
        for each in (whole, files)
    )
    assert (provenance, named) == ("Seeds: 0, 1, 2", "Seeds: 0; further seeds: 1, 2 (17 of these trials)")
    assert f"{planned}Seeds" in files["appendix.tex"].decode(), "all trials are counted, as in compute.tex"


def test_compute_counts_stored_trials_that_the_study_has_no_more_apart(read, tmp_path, everything, kept):
    text = replaced(everything.document.text, ("seed = [0, 1, 2]", "seed = [0]"))
    whole = paper_files(read())["compute.tex"].decode()
    assert "further" not in whole
    (tmp_path / "everything.toml").write_text(text, encoding="utf-8")
    fewer = paper_files(read('[paper]\nstudies = "everything.toml"'))["compute.tex"].decode()
    counts = re.search(r"(\d+) trials .*?(\d+) further trials of these studies", fewer).groups()
    assert sum(map(int, counts)) == int(re.search(r"(\d+) trials", whole)[1])


def test_costs_that_trials_have_in_common_are_counted_once(tmp_path):
    text = study_text(
        model={"recipe": "conv(k=3)", "d_model": 16},
        task={"name": "reverse"},
        train={"epochs": "{epochs}", "curriculum": None},
        factors={"epochs": [2, 4, 6], "task": None, "seed": [0]},
    )
    store, (two, *longer) = Store(tmp_path / "results"), load_study(text).trials
    store.write(made_row(two, {"loss": 1.0}, 0), [])
    for number, trial in enumerate(longer, 1):
        row = made_row(trial, {"loss": 1.0}, number)
        costs = {"seconds": 1.5 + 10.0 * number, "flops": 1.0 + 2.0 * number}
        store.write(replace(row, **costs, continued_from=two.id, continued_after=2), [])
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = "tiny.toml"', encoding="utf-8")
    for levels in ("[2, 4, 6]", "[4, 6]"):  # without 2, the study only continues its trial
        (tmp_path / "tiny.toml").write_text(text.replace("[2, 4, 6]", levels), encoding="utf-8")
        files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: store))
        compute = files["compute.tex"].decode()
        assert "3 trials (3 done) trained for 32 s and 7.00 FLOPs in all" in compute
        assert "further" not in compute
        assert "H200 \\& 2 others, 32 s" in files["appendix.tex"].decode()
    (tmp_path / "tiny.toml").write_text(text.replace("[2, 4, 6]", "[4]"), encoding="utf-8")
    compute = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: store))[
        "compute.tex"
    ].decode()
    assert "2 trials (2 done) trained for 12 s and 3.00 FLOPs in all" in compute
    assert "1 further trial of these studies, with other settings or code, trained for 20 s" in compute


def test_the_appendix_has_the_sizes_that_make_costs_equal(kept, tmp_path):
    text = study_text(
        study={"match": "parameters", "baseline": {"mixer": "sa", "filter": 64}, "tolerance": 0.05},
        model={"recipe": "{mixer} >> ff({filter})", "d_model": 16},
        task={"name": "reverse"},
        factors={"mixer": ["sa", "gru"], "task": None, "seed": [0, 1]},
    )
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = ["tiny.toml"]', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    appendix = files["appendix.tex"].decode().replace(r"\allowbreak{}", "")
    for setting in ("match}~=~parameters", "baseline}~=~mixer=sa, filter=64", "tolerance}~=~0.05"):
        assert rf"\texttt{{study.{setting}" in appendix
    study = load_study(text)
    solved = [study.size_matches[trial.id].size for trial in study.cells]
    assert solved[0] == solved[1] == 64 != solved[2]
    assert rf"\texttt{{filter}}~=~64 at sa, {solved[2]} at gru" in appendix


def test_the_appendix_has_the_steps_and_the_rate_of_each_size(kept, tmp_path):
    claim = {"name": "gru is ahead", "holds": "loss[mixer=gru, width=16] < loss[mixer=sa, width=16]"}
    ladder = "[ladder]\nsizes = { width = [16, 64] }\ntokens_per_parameter = 40\nlr_exponent = -0.5\n"
    text = ladder + study_text(
        study={"max_seeds": 5},
        model={"recipe": "{mixer} >> ff(8)", "d_model": "{width}"},
        task={"name": "reverse"},
        train={"steps_per_epoch": None, "optimizer": {"name": "adam", "lr": 0.01}},
        factors={"mixer": ["sa", "gru"], "task": None, "seed": [0, 1]},
        claim=[claim],
    )
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = ["tiny.toml"]', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    appendix = (
        files["appendix.tex"].decode().replace(r"\allowbreak{}", "").replace(r"\_", "_").replace("{[}", "[")
    )
    trials = {(each.levels["width"], each.levels["mixer"]): each for each in load_study(text).trials}
    steps = {place: each.settings.train.steps_per_epoch for place, each in trials.items()}
    assert len(set(steps.values())) == 4
    expected = {
        "study.max_seeds": "5",
        "ladder.sizes": "width=[16, 64]",
        "ladder.tokens_per_parameter": "40",
        "train.optimizer.lr": "0.01 at width=16, 0.005 at width=64;",
        "train.steps_per_epoch": "; ".join(
            f"{count} at width={width}, mixer={mixer}" for (width, mixer), count in steps.items()
        ),
    }
    for name, value in expected.items():
        assert rf"\texttt{{{name}}}~=~{value}" in appendix


def test_the_appendix_says_how_a_search_chose_its_points(tmp_path):
    text = study_text(
        study={"baseline": {"k": 3}, "baseline_seeds": 3, "limits": {"parameters": "<= 1e6"}},
        model={"recipe": "conv(k={k})", "d_model": 16},
        task={"name": "reverse"},
        factors={"mixer": None, "task": None, "seed": [0]},
        search={"sampler": "tpe", "trials": 4, "metric": "loss", "space": {"k": "choice(3, 5)"}},
    )
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = ["tiny.toml"]', encoding="utf-8")
    study, store = load_study(text), Store(tmp_path / "results")
    for number, trial in enumerate(study.search.trials_of({"k": 3})):
        row = made_row(trial, {"loss": 1.0}, number)
        store.write(replace(row, factors=json.dumps(dict(trial.levels))), [])
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: store))
    appendix = files["appendix.tex"].decode().replace(r"\allowbreak{}", "")
    for setting in (
        *("study.baseline}~=~k=3", r"study.baseline\_seeds}~=~3", "study.limits}~=~parameters"),
        *("search.sampler.name}~=~tpe", "search.trials}~=~4", "search.metric}~=~loss"),
        *("search.direction}~=~min", "search.seed}~=~0", "search.space.k}~=~choice(3, 5)"),
    ):
        assert rf"\texttt{{{setting}" in appendix
    assert "Seeds: 0; of the baseline also 1, 2." in appendix
    assert "null" not in appendix


@pytest.mark.parametrize(
    ("corpus", "words"),
    [("paradise-lost", "licence public domain"), ("text8", "licence CC BY-SA 3.0, GFDL")],
)
def test_corpora_are_reported_with_their_licences(kept, tmp_path, corpus, words):
    text = (
        f'[study]\nname = "text"\ntitle = "A text"\n[model]\nrecipe = "conv(k=3)"\nd_model = 8\n'
        f'[task]\nname = "language_model"\ncorpus = "{corpus}"\n'
        f'[train]\noptimizer = {{ name = "adam", lr = 1e-3 }}\nbatch_size = 4\nepochs = 1\n'
        "steps_per_epoch = 1\n"
        f"[factors]\nseed = [0]\n"
    )
    (tmp_path / "text.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = "text.toml"', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    assert f"{words}." in files["compute.tex"].decode()


def test_own_texts_are_named_by_their_files_and_their_digests_fit_the_page(kept, tmp_path):
    lines = [f"Line {number} of {''.join(map(chr, range(33, 127)))}" for number in range(40)]
    (tmp_path / "my_notes.txt").write_text("\n".join(lines), encoding="utf-8")
    text = study_text(
        study={"name": "notes"},
        model={"recipe": "conv(k=3)", "d_model": 16},
        task={"name": "language_model", "corpus": {"path": "my_notes.txt"}, "context": 8},
        train={"curriculum": None},
        factors={"mixer": None, "task": None, "seed": [0]},
    )
    (tmp_path / "notes.toml").write_text(text, encoding="utf-8")
    (tmp_path / "paper.toml").write_text('[paper]\nstudies = "notes.toml"', encoding="utf-8")
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    own = load_study(str(tmp_path / "notes.toml")).own_corpus
    compute, appendix = (
        files[name].decode().replace(r"\allowbreak{}", "") for name in ("compute.tex", "appendix.tex")
    )
    told = r"{Data.} my\_notes.txt (own data): TODO: state the licence of my\_notes.txt in {[}licences] of"
    assert told in compute
    assert r"\texttt{task.corpus.path}~=~my\_notes.txt;" in appendix
    assert rf"\texttt{{task.corpus.train.sha256}}~=~{own.facts.train.sha256[:12]}\ldots{{}};" in appendix
    assert own.facts.alphabet[:33] not in appendix
    (tmp_path / "paper.toml").write_text(
        '[paper]\nstudies = "notes.toml"\n[licences]\n"my_notes.txt" = "CC BY 4.0"', encoding="utf-8"
    )
    files = paper_files(read_manuscript(tmp_path / "paper.toml", lambda place: kept))
    assert b"(own data): licence CC BY 4.0." in files["compute.tex"]


def test_latex_compiles_the_files_and_prints_the_numbers(built, tmp_path):
    log = compile_latex(tmp_path, DOCUMENT, "booktabs", "adjustbox")
    assert "[30.0][2]" in log
    assert "Package activemem Warning: unknown number" in log
    assert "Overfull" not in log
    assert "undefined" not in log
