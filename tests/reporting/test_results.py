import pytest

from activemem import StudyError, StudyResults, load_study, open_study
from activemem.reporting import CurveError, TableError
from activemem.reporting.outcomes import provenance
from activemem.storage import MetricRow, Store, TrialRow
from activemem.storage.rows import trial_frame

from ..storage.factories import make_trial_row


@pytest.fixture(scope="module")
def results(everything, kept):
    return StudyResults(everything, kept)


def test_trials_have_the_levels_of_the_study_and_what_became_of_them(results):
    frame = results.trials
    assert frame.columns[:8] == ["trial", "study", "mixer", "task", "seed", "status", "reason", "diverged"]
    assert frame.select("mixer", "task", "seed", "status", "max_length").row(0) == (
        "sa",
        "sort",
        0,
        "done",
        14.0,
    )
    assert frame["status"].value_counts(sort=True).rows() == [("done", 19), ("failed", 5), ("pruned", 3)]


def test_a_course_has_the_levels_next_to_it(results, tmp_path):
    row = results.store.trials().drop("metrics").row(0, named=True)
    store = Store(tmp_path)
    store.write(TrialRow(metrics=(), **row), [MetricRow(step=2, epoch=1, name="loss", value=0.5)])
    frame = StudyResults(results.study, store).metrics
    assert frame.columns == ["trial", "mixer", "task", "seed", "epoch", "step", "name", "value"]
    assert frame.select("epoch", "step", "name", "value").rows() == [(1, 2, "loss", 0.5)]


def test_a_table_is_made_by_its_name_or_the_first_one_is(results, golden):
    assert results.table() == results.table("table4")
    assert results.table()._repr_html_().startswith('<figure class="activemem-table" id="table4">')
    with golden.raises(TableError):
        results.table("table5")


def test_a_figure_is_made_by_its_name_or_the_first_one_is(everything, kept, results, golden):
    spec = (
        '[[curve]]\nname = "by_task"\nkind = "bar"\nx = "task"\nvalue = "loss"\nselect = { mixer = "sa" }\n'
    )
    figures = StudyResults(load_study(everything.document.text + spec), kept)
    assert figures.curve() == figures.curve("by_task")
    assert figures.curve()._repr_svg_().rstrip().endswith("</svg>")
    with golden.raises(CurveError):
        results.curve()


def test_claims_are_a_frame_with_a_verdict_each(everything, kept, results):
    holds = "max_length[task=sort, mixer=conv(k=20)] > max_length[task=sort, mixer=sa]"
    claim = f'[[claim]]\nname = "convolution wins"\nholds = "{holds}"\n'
    [found] = StudyResults(load_study(everything.document.text + claim), kept).claims.iter_rows(named=True)
    assert (found["claim"], found["verdict"], found["effect"], found["n"]) == (
        "convolution wins",
        "undecided",
        15.0,
        3,
    )
    assert found["low"] < 0 < found["high"]
    numbers = ["effect", "low", "high", "added", "p", "n", "needed"]
    assert results.claims.columns == ["claim", "verdict", *numbers, "origin"]
    assert len(results.claims) == 0


def test_a_notebook_shows_title_counts_and_tables(results):
    shown = results._repr_html_()
    assert shown.startswith(
        "<p><strong>Everything that can happen to a cell</strong><br>everything · 19 of 36 "
    )
    assert shown.count('<figure class="activemem-table"') == 1


def test_a_prompt_shows_where_it_all_is(results):
    title, counts, folder = repr(results).splitlines()
    assert (title, folder) == ("everything · Everything that can happen to a cell", str(results.store.root))
    assert counts == "19 of 36 trials done · 5 failed · 3 pruned · 9 left"


def test_a_study_is_opened_as_it_last_ran(everything, kept, tmp_path, golden):
    store = Store(tmp_path)
    store.records.save("everything", {"text": everything.document.text, "overrides": ["train.epochs=3"]})
    assert open_study(results=tmp_path).study.trials[0].settings.train.epochs == 3
    assert open_study("everything", tmp_path, ["train.epochs=4"]).study.trials[0].settings.train.epochs == 4
    with golden.raises(StudyError):
        open_study("quickstrat", tmp_path)


def test_rows_without_a_study_file_are_told(kept):
    with pytest.raises(StudyError, match=r"the store has 27 trials of it, but no copy of its file"):
        open_study("everything", kept)


def test_a_plan_shows_itself_in_a_notebook(results):
    shown = results.plan()._repr_html_()
    assert shown.startswith("<pre>everything · ")
    assert "= 36 trials · 27 in the store · 5 of them failed" in shown
    assert "FLOPs/step" in shown and "\n  conv(k=20) " in shown
    part = results.plan(only=["task=sort"])
    assert "36 trials, 12 in this part" in str(part)
    assert repr(part).startswith("<Plan: 36 trials")


@pytest.mark.parametrize(
    ("arithmetic", "ending"),
    [((None, 0), ""), ((None, 1), "means over the arithmetic 0 and 1 of the code"), ((2, 2), "")],
)
def test_a_mean_over_two_arithmetics_says_so(arithmetic, ending):
    rows = [make_trial_row(number, arithmetic=kind) for number, kind in enumerate(arithmetic)]
    text = provenance([row.trial for row in rows], trial_frame(*rows))
    assert ("arithmetic" in text) == bool(ending)
    assert text.endswith(ending)
