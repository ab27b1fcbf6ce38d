"""A diverged seed is excluded from tables, figures and verdicts, and reported by all of them."""

import json
from dataclasses import replace

import polars as pl
import pytest

from activemem import StudyResults, load_study
from activemem.reporting import Verdict, query
from activemem.reporting.kinds import build_curve
from activemem.reporting.manuscript.paper_file import read_manuscript
from activemem.storage import MetricRow, Store
from activemem.storage.rows import trial_frame

from ..study_texts import study_text
from .conftest import made_row

TOLD = "1 of 3 seeds diverged: the loss of seed 1 rose from 3.98 to 5.59, its test_perplexity is 5,302.7"
SOUND = (6.2, 4.5, 3.9)
STUDY = study_text(
    model={"recipe": "{model}"},
    task={"name": "reverse_copy"},
    train={"curriculum": None},
    factors={"model": ["seq2seq(gru, gru)", "seq2seq(lstm, lstm)"], "seed": [0, 1, 2]},
    table=[{"name": "ends", "rows": "model", "value": ["test_perplexity", "seconds"]}],
    curve=[{"name": "ends", "kind": "line", "value": "loss", "x": "epoch", "series": "model"}],
    claim=[
        {
            "name": "less",
            "holds": "test_perplexity[model=seq2seq(gru, gru)] < test_perplexity[model=seq2seq(lstm, lstm)]",
        }
    ],
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return a study of six trainings, one of which diverged."""
    study, store = load_study(STUDY), Store(tmp_path_factory.mktemp("results"))
    for number, trial in enumerate(study.trials):
        lost = "gru" in trial.settings.model.recipe and trial.levels["seed"] == 1
        losses = (6.21, 3.98, 5.59) if lost else SOUND
        end = 5302.7 if lost else 300.0 + number % 2
        course = [
            MetricRow(step=epoch, epoch=epoch, name="loss", value=loss)
            for epoch, loss in enumerate(losses, 1)
        ]
        row = made_row(trial, {"test_perplexity": end, "loss": losses[-1]}, number)
        store.write(replace(row, settings=trial.settings.model_dump_json()), course)
    return StudyResults(study, store)


def test_a_table_shows_the_seeds_that_did_not_diverge_and_reports_the_others(found):
    made = found.table()
    cell, cost = made.cells[0]
    assert (cell.status, cell.estimate.n, cost.estimate.n) == ("partial", 2, 3)
    assert cell.estimate.value < 302
    notes = {note.mark: note.text for note in made.footnotes}
    assert [notes[mark] for mark in cell.marks] == [TOLD]
    assert made.cells[1][0].status == "done"


@pytest.mark.parametrize("bold", ["best", "tested"])
def test_a_mean_without_a_diverged_seed_is_never_bold(found, bold):
    study = load_study(STUDY.replace('rows = "model"', f'rows = "model"\nbold = "{bold}"'))
    made = StudyResults(study, found.store).table()
    assert made.cells[0][0].estimate.value < made.cells[1][0].estimate.value
    assert [row[0].best for row in made.cells] == [False, True]
    assert sum(line.endswith("; never with a diverged or failed seed.") for line in made.sentences) == 1


def test_a_claim_counts_a_seed_that_diverged_as_the_worst_and_names_it(found):
    (claim,) = found.check_claims()
    assert claim.verdict is Verdict.UNDECIDED
    assert claim.findings[0].gaps == ()
    assert [note.what for note in claim.findings[0].notes] == [TOLD]


def test_sql_and_frames_name_the_trials_that_tables_leave_out(found):
    sql = "SELECT seed, diverged FROM trials WHERE diverged IS NOT NULL"
    told = [(1, "rose from 3.98 to 5.59")]
    assert query(found.store, sql).rows() == query(found.store, sql, found.study).rows() == told
    assert found.trials["diverged"].drop_nulls().to_list() == ["rose from 3.98 to 5.59"]


def test_a_number_of_a_paper_is_infinite_with_a_diverged_seed_and_names_it(found, tmp_path):
    (tmp_path / "tiny.toml").write_text(STUDY, encoding="utf-8")
    number = 'end = "test_perplexity[model=seq2seq(gru, gru)]"'
    (tmp_path / "paper.toml").write_text(
        f'[paper]\nstudies = ["tiny.toml"]\n[numbers.tiny]\n{number}', encoding="utf-8"
    )
    end = read_manuscript(tmp_path / "paper.toml", lambda place: found.store).numbers["end"]
    assert "∞" in end.text
    assert end.gaps == f"model=seq2seq(gru, gru): {TOLD}"


def test_the_best_points_of_a_search_have_no_training_that_diverged(tmp_path):
    search = study_text(
        model={"recipe": "seq2seq(gru, gru)"},
        task={"name": "reverse_copy"},
        train={"curriculum": None, "optimizer": {"name": "adam", "lr": "{lr}"}},
        search={"trials": 2, "metric": "loss", "direction": "min", "space": {"lr": "choice(1e-3, 1e-1)"}},
    )
    study, store = load_study(search), Store(tmp_path)
    for number, lr in enumerate((1e-3, 1e-1)):
        (trial,) = study.search.trials_of({"lr": lr})
        losses = (6.5, 2.0 + 90 * number)
        course = [MetricRow(step=n, epoch=n, name="loss", value=loss) for n, loss in enumerate(losses, 1)]
        row = made_row(trial, {"loss": losses[-1]}, number)
        store.write(replace(row, factors=json.dumps(dict(trial.levels))), course)
    assert [(each.values, each.mean) for each in StudyResults(study, store).points.best()] == [
        ({"lr": 1e-3}, 2.0)
    ]


def test_a_figure_leaves_out_what_diverged_and_says_so(found):
    made = found.curve()
    assert any(note.endswith(" 6 trials: 1 diverged.") for note in made.notes)
    assert "Hollow: without the seeds that diverged or failed." in made.notes
    lines = made.panels[0].content.lines
    assert [{(point.n, point.diverged) for point in line.points} for line in lines] == [{(2, 1)}, {(3, 0)}]


@pytest.mark.parametrize("keys", [{"kind": "line", "x": "lr"}, {"kind": "pareto", "x": "parameters"}])
def test_a_figure_names_the_levels_at_which_all_seeds_diverged(keys):
    study = load_study(
        study_text(
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={"mixer": ["sa", "gru"], "task": ["sort"], "lr": [1e-3, 1e-1], "seed": [0, 1]},
            curve=[{"name": "rates", "value": "loss", "series": "mixer", **keys}],
        )
    )
    rows = pl.concat([trial_frame(made_row(trial, {"loss": 1.0}, 1)) for trial in study.trials])
    lost = [trial.id for trial in study.trials if (trial.levels["mixer"], trial.levels["lr"]) == ("sa", 1e-1)]
    rose = pl.when(pl.col("trial").is_in(lost)).then(pl.lit("rose from 1 to 2")).alias("diverged")
    made = build_curve(study, study.curves[0], rows.with_columns(rose))
    assert "Without a value, since seeds diverged or failed: sa, lr 0.1." in made.notes
