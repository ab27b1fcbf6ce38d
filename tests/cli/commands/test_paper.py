"""`activemem paper` prints the sheet of a published paper, and writes the files of the user's own."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from activemem import load_study
from activemem.reporting.paper import paper_sheet
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import make_partial_store, store_outcome

PAPER = "negative-eigenvalues"
COMMITTED = Path(__file__).parents[3] / "studies" / "results"

sheet_of = cache(paper_sheet)


@pytest.fixture
def _sheets_are_kept(monkeypatch):
    """Make each sheet once, in whichever forms tests print it."""
    monkeypatch.setattr("activemem.reporting.paper.paper_sheet", sheet_of)


@pytest.mark.usefixtures("_sheets_are_kept")
def test_the_command_prints_the_sheet(run, monkeypatch):
    shown = run("paper", "show", PAPER, "--results", str(COMMITTED), "--no-tables")
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"{PAPER}\n14 printed numbers: 0 ")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    page = run("paper", "show", PAPER, "--results", str(COMMITTED), "--json")
    assert {each["status"] for table in json.loads(page.stdout)["papers"][0]["tables"] for each in table}
    text = run("paper", "show", PAPER, "--results", str(COMMITTED), "--format", "markdown").stdout
    assert "| claim | study | size | verdict | ours | printed | seeds | missing |" in text
    monkeypatch.setattr("activemem.reporting.paper.papers", lambda: (PAPER,))
    every = run("paper", "show", "--all", "--results", str(COMMITTED), "--no-tables")
    assert every.stdout == shown.stdout
    assert run("paper", "show").exit_code == 2


@pytest.mark.usefixtures("_sheets_are_kept")
def test_without_results_the_sheet_ends_with_the_option_for_the_committed_ones(run):
    (told,) = run("paper", "show", PAPER, "--no-tables").stderr.splitlines()
    assert told == (
        f"no trial of {PAPER} has ended in {Path.cwd() / 'results'}, "
        f"but there are results in {COMMITTED}: --results {COMMITTED}"
    )
    assert not run("paper", "show", PAPER, "--results", str(COMMITTED), "--no-tables").stderr


@pytest.mark.heavy  # counts the costs of many models
def test_numbers_with_fewer_seeds_than_planned_are_counted(run, monkeypatch):
    trials = [each for each in load_study("algorithmic").trials if each.settings.task.name == "reverse"]
    for trial in trials[:4]:  # all three seeds of one mixer, and one of the next
        store_outcome(trial, Store("results"))
    sheet = paper_sheet("active-memory-transformer", "results")
    assert [each.fewer_seeds for each in sheet.printed] == [0, 1]
    monkeypatch.setattr("activemem.reporting.paper.paper_sheet", lambda *_: sheet)
    options = ("active-memory-transformer", "--no-tables")
    summary = "56 printed numbers: 2 measured at full size (1 "
    assert summary in run("paper", "show", *options).stdout
    assert summary in run("paper", "show", *options, "--format", "markdown").stdout
    page = json.loads(run("paper", "show", *options, "--json").stdout)
    assert page["papers"][0]["printed"][1]["fewer_seeds"] == 1


@pytest.mark.usefixtures("_sheets_are_kept")
def test_a_study_that_is_not_done_has_the_core_hours_of_its_plan(run):
    shown = run("paper", "show", "negative-eigenvalues", "--results", str(COMMITTED), "--no-tables").stdout
    (row,) = [line for line in shown.splitlines() if "FLOPs" in line]
    assert re.search(r"FLOPs, [\d,.]+ core-hours$|FLOPs$", row)


@pytest.mark.usefixtures("_sheets_are_kept")
def test_a_claim_has_a_row_beside_the_print(run):
    options = ("--results", str(COMMITTED), "--no-tables")
    shown = " ".join(run("paper", "show", PAPER, *options).stdout.split())
    assert "0.314, 0.241 against 0.095) negative-eigenvalues: not run, printed +0.657, 12 of 12 tr" in shown
    assert re.search(
        r"0\.022 of attention\) negative-eigenvalues-small \(small\): confirmed at small size, "
        r"slstm > transformer: \+[\d.]+ \[[\d.]+, [\d.]+\], printed \+0\.978, n = 3 ",
        shown,
    )
    text = run("paper", "show", PAPER, *options, "--format", "markdown").stdout
    (row,) = [line for line in text.splitlines() if "0.314, 0.241 against 0.095" in line]
    assert row.startswith("| eigenvalues down to −1 do better at modular arithmetic (section 5.1, Table 3: ")
    assert row.endswith("| negative-eigenvalues | full | not run | – | +0.657 | – | 12 of 12 |")


@pytest.mark.heavy  # counts the costs of many models
@pytest.mark.usefixtures("_sheets_are_kept")
def test_a_claim_has_a_row_for_each_study_beside_the_print(run):
    options = ("--results", str(COMMITTED), "--no-tables")
    shown = run("paper", "show", "extended-neural-gpu", *options).stdout
    assert max(map(len, shown.splitlines())) <= 80
    name = "the translations of the Extended Neural GPU are better than those of a GRU with attention "
    texts = (" ".join(block.split()) for block in shown.split("\n\n"))
    (rows,) = (text.removeprefix(name) for text in texts if text.startswith(name))
    assert rows.startswith("(section 3, Table 1: BLEU 29.6 against 26.4) translation: not run, printed +3.2,")
    assert re.search(
        r" of \d+ trials missing translation-small \(small\): refuted at small size, "
        r"−[\d.]+ \[−[\d.]+, −[\d.]+\], printed \+3\.2, n = 2$",
        rows,
    )
    assert "n = 1, run more" in " ".join(shown.split())
    text = run("paper", "show", "extended-neural-gpu", *options, "--format", "markdown").stdout
    start = f"| {name}(section 3, Table 1: BLEU 29.6 against 26.4) |"
    row = next(line for line in text.splitlines() if line.startswith(start))
    assert row.endswith("| translation | full | not run | – | +3.2 | – | 6 of 6 |")


PAPER_TOML = """\
[paper]
studies = ["tiny.toml"]

[numbers.tiny]
length = "max_length[task=not, mixer=conv(k=3)]"
missing = "max_length[task=reverse, mixer=conv(k=3)]"
"""


@pytest.fixture
def paper(tiny):
    """Write a paper of the tiny study, six of whose trials are done."""
    Path("paper.toml").write_text(PAPER_TOML, encoding="utf-8")
    return make_partial_store(tiny, reason="disk is full")


def test_the_files_of_a_paper_are_written(run, paper):
    done = run("paper", "build")
    assert done.exit_code == 0
    written = ["numbers.tex", "appendix.tex", "compute.tex"]
    assert done.stdout.splitlines()[-3:] == [f"generated/{name}" for name in written]
    assert "missing: mixer=conv(k=3), task=reverse: 1 of 2 seeds failed" in done.stderr
    page = json.loads(run("paper", "build", "paper.toml", "--json").stdout)
    assert page["numbers"]["missing"]["text"] is None


def test_files_with_letters_beyond_latin_name_the_programs_that_print_them(run, tiny, paper):
    text = Path(tiny).read_text(encoding="utf-8").replace("[[table]]", '[[table]]\ncaption = "精度"', 1)
    Path(tiny).write_text(text, encoding="utf-8")
    done = run("paper", "build")
    needs = "needs XeLaTeX or LuaLaTeX, and a font that has 度精\n"
    assert f"the LaTeX code in generated {needs}" in done.stderr
    with_note = [each for each in Path("generated").rglob("*.tex") if f"% {needs}" in each.read_text("utf-8")]
    assert [each.parent.name for each in with_note] == ["tiny"]


def test_a_number_whose_level_a_test_metric_or_its_own_has_picked_is_said_to_be_biased(run):
    study = study_text(
        task={"test_lengths": [6]},
        train={"curriculum": None, "lengths": [2, 4]},
        factors={"mixer": ["sa"], "task": ["not", "reverse"], "seed": [0]},
    )
    Path("tiny.toml").write_text(study, encoding="utf-8")
    keys = 'value = "test_loss[mixer=sa]", over = "task", pick_by = '
    numbers = "".join(f'{split} = {{ {keys}"{split}_loss" }}\n' for split in ("dev", "test"))
    numbers += 'own = { value = "dev_loss[mixer=sa]", over = "task", pick_by = "dev_loss" }\n'
    text = f'[paper]\nstudies = ["tiny.toml"]\n[numbers.tiny]\n{numbers}'
    Path("paper.toml").write_text(text, encoding="utf-8")
    store_outcome(load_study("tiny.toml").trials[0], Store("results"))
    biased = [line for line in run("paper", "build").stderr.splitlines() if "biased" in line]
    assert biased == [
        "test: The test split chose task (by test_loss), so the values are biased.",
        "own: dev_loss itself chose task, so its values are biased.",
    ]


def test_a_file_of_an_earlier_build_that_no_longer_belongs_to_the_paper_is_removed(run, paper):
    run("paper", "build")
    old, own = Path("generated/tiny/table-old.tex"), Path("generated/tiny/table-own.tex")
    old.write_bytes(old.with_stem("table-table4").read_bytes())
    own.write_text("by hand", encoding="utf-8")
    assert run("paper", "build").exit_code == 0
    assert (old.exists(), own.exists()) == (False, True)


def test_a_study_by_its_name_is_the_last_run_whose_overrides_are_noted(run, paper, tiny):
    record = {"text": load_study(tiny).document.text, "overrides": ["train.clip_norm=2.0"]}
    paper.records.save("tiny", record)
    assert "--set" not in run("paper", "build").stderr
    Path("paper.toml").write_text('[paper]\nstudies = ["tiny"]\n', encoding="utf-8")
    paper.records.save("tiny", {**record, "overrides": ["factors.seed=[0]"]})
    told = run("paper", "build")
    assert (told.exit_code, "tiny: its last run had --set factors.seed=[0]; " in told.stderr) == (0, True)


def test_a_paper_without_any_results_is_not_written(run, tiny, golden):
    Path("paper.toml").write_text(PAPER_TOML, encoding="utf-8")
    done = run("paper", "build")
    assert (done.exit_code, done.stdout, Path("generated").exists()) == (1, "", False)
    golden(done.stderr)


def test_a_paper_of_an_edited_study_says_that_its_trials_are_stored(run, paper, tiny):
    text = load_study(tiny).document.text
    paper.records.save("tiny", {"text": text, "overrides": []})
    Path(tiny).write_text(text.replace("lr = 0.01", "lr = 0.02"), encoding="utf-8")
    done = run("paper", "build")
    first, second, _ = done.stderr.splitlines()
    assert (done.exit_code, first.startswith("no trial of tiny with these settings")) == (1, True)
    changed = "(train.optimizer.lr = 0.01, now 0.02)"
    assert second == f"7 stored trials of other versions of tiny are not counted {changed}"


def test_a_wrong_paper_is_reported(run, paper, golden):
    Path("paper.toml").write_text(PAPER_TOML.replace("tiny.toml", "tinny.toml"), encoding="utf-8")
    done = run("paper", "build")
    assert (done.exit_code, "nearest: tiny.toml" in done.stderr) == (2, True)
    told = run("paper", "build", "none.toml").stderr
    golden(told)
