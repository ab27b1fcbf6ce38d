"""Added seeds for tables: decided differences, captions, and the next additions."""

import random
from dataclasses import replace

import pytest

from activemem import StudyError, StudyResults, load_study
from activemem.reporting import decided_differences
from activemem.reporting.tables import build_table
from activemem.storage import Store

from ...study_texts import study_text
from ..conftest import made_row

TABLE = {"name": "ablation", "rows": "changes", "value": "loss", "smallest_difference": 0.5}
SHIFTS = {"sa": 0.0, "conv(k=3)": 5.0, "conv(k=9)": 0.4, "ff(8)": 0.02}


def grown(folder, *, table=TABLE, seeds=3, more=None, shifts=SHIFTS, spread=0.2, **study):
    """Return a study of four mixers that may add seeds, and its store, with `more` seeds for some."""
    study = load_study(
        study_text(
            study={"max_seeds": 12, **study},
            factors={"mixer": list(SHIFTS), "task": ["sort"], "seed": list(range(seeds))},
            table=[table],
        )
    )
    store = Store(folder)
    for number, trial in enumerate(study.with_later_seeds().trials):
        mixer, seed = trial.levels["mixer"], int(trial.levels["seed"])
        draw = random.Random(f"{mixer} {seed}")
        if seed < (more or {}).get(mixer, seeds):
            end = {"loss": 10 + shifts[mixer] + draw.gauss(0, spread)}
            store.write(made_row(trial, end, number), [])
    return study, store


def table_of(study, store):
    return build_table(study, study.tables[0], store.trials({"loss"}))


def signs(table):
    return [(row[0].is_significant, row[0].is_within) for row in table.cells]


def test_a_difference_is_decided_if_it_is_shown_to_exist_or_to_be_negligible(tmp_path):
    study, store = grown(tmp_path / "few")
    table = table_of(study, store)
    assert signs(table) == [(False, None), (True, False), (False, False), (False, False)]
    assert "≈: smaller than loss 0.5000 either way (p < 0.05, corrected likewise)" in table.caption[3]
    assert table.caption[3].endswith("; 2 of 3 differences are undecided.")
    assert decided_differences(study, store.trials({"loss"})) == (1, 3)
    study, store = grown(tmp_path / "quiet", spread=0.05)
    table = table_of(study, store)
    assert signs(table)[3] == (False, True)
    assert table.cells[3][0].difference_text.endswith(" ≈")
    assert table.frame()["is_within"].to_list() == [None, False, False, True]


def test_a_table_to_which_seeds_may_be_added_is_judged_look_by_look_and_says_so(tmp_path, golden):
    alone, plain = (grown(tmp_path / name, max_seeds=most) for name, most in (("one", None), ("many", 12)))
    one, first = (table_of(*each).cells[3][0] for each in (alone, plain))
    assert first.difference == one.difference
    assert first.p > one.p
    assert first.difference_half_width > 1.2 * one.difference_half_width
    assert "95 % interval" in table_of(*alone).caption[1]
    caption = table_of(*plain).caption
    assert "98.2 % interval" in caption[1]
    golden(caption[-1])


def test_cells_show_the_seeds_of_the_looks_that_they_have_reached(tmp_path):
    more = {"sa": 8, "conv(k=3)": 5, "ff(8)": 7}
    table = table_of(*grown(tmp_path / "more", more=more))
    assert "mean ± s.d. of 3 to 8 seeds" in table.caption[0]
    assert [row[0].count for row in table.cells] == [8, 5, 3, 5]  # 7 seeds are no look
    assert [(each.mark, each.text) for each in table.footnotes] == [
        ("a", "mean of 8 seeds"),
        ("b", "mean of 5 seeds"),
    ]
    assert [row[0].marks for row in table.cells] == [("a",), ("b",), (), ("b",)]
    assert not table_of(*grown(tmp_path / "equal", more=dict.fromkeys(SHIFTS, 5))).footnotes
    first = table_of(*grown(tmp_path / "first"))
    assert table.cells[1][0].difference == first.cells[1][0].difference  # it was decided by the first look
    assert table.cells[3][0].difference != first.cells[3][0].difference
    plain = {key: value for key, value in TABLE.items() if key != "smallest_difference"}
    table = table_of(*grown(tmp_path / "plain", table=plain, more=more))
    assert [row[0].count for row in table.cells] == [3, 3, 3, 3]
    assert table.caption[1].startswith("Left out: 11 stored trials of seeds 3 to 7, which")
    assert "95 % interval" in table.caption[2]


@pytest.mark.parametrize("more", [{}, {"sa": 5, "conv(k=3)": 4}], ids=["of another study", "of both"])
def test_seeds_that_a_table_leaves_out_are_counted_by_the_study_that_trained_them(tmp_path, more, golden):
    plain = {key: value for key, value in TABLE.items() if key != "smallest_difference"}
    study, store = grown(tmp_path, table=plain, more=more)
    for trial in study.with_later_seeds().trials:
        if trial.levels["mixer"] == "ff(8)" and trial.seed in {5, 6}:
            store.write(replace(made_row(trial, {"loss": 10.0}, 99), study="tiny-best"), [])
    golden(table_of(study, store).caption[1])


def test_a_count_that_needs_no_training_adds_no_seeds_to_the_caption(tmp_path):
    table = {**TABLE, "value": ["loss", "parameters"], "smallest_difference": {"loss": 0.5}}
    assert "mean ± s.d. of 3 seeds" in table_of(*grown(tmp_path / "first", table=table)).caption[0]


def test_an_added_seed_that_failed_is_reported_and_no_more_are_added_for_its_difference(tmp_path, golden):
    study, store = grown(tmp_path, more={"sa": 12, "conv(k=9)": 4})
    later = study.with_later_seeds().cells
    (lost,) = (each for each in later if each.levels["mixer"] == "conv(k=9)" and each.settings.seed == 4)
    store.write(made_row(lost, "failed: disk is full", 99), [])
    table = table_of(study, store)
    assert table.cells[2][0].count == 3
    golden([note.text for note in table.footnotes])
    asked = StudyResults(study, store).next_seeds()
    assert {trial.levels["mixer"] for trial in asked.trials} == {"ff(8)"}


def test_the_seeds_that_decide_the_most_differences_for_their_time_are_added(tmp_path):
    study, store = grown(tmp_path)
    found = StudyResults(study, store).next_seeds()
    assert (found.kind, found.name, found.seeds) == ("table", "ablation", 5)
    assert {(trial.levels["mixer"], trial.settings.seed) for trial in found.trials} == {
        (mixer, seed) for mixer in ("sa", "conv(k=9)") for seed in (3, 4)
    }
    assert 0.5 < found.chance < 1
    assert "changes" not in found.trials[0].levels
    everything = dict.fromkeys(SHIFTS, 12)
    assert StudyResults(*grown(tmp_path / "all", more=everything)).next_seeds() is None


def test_tables_of_one_seed_get_a_second_as_one_has_no_spread(tmp_path):
    study, store = grown(tmp_path / "one", seeds=1)
    found = StudyResults(study, store).next_seeds()
    assert (found.kind, found.seeds, len(found.trials), found.chance) == ("table", 2, 4, None)
    more = dict.fromkeys(SHIFTS, 2)
    assert StudyResults(*grown(tmp_path / "two", seeds=1, more=more)).next_seeds().chance > 0


def test_seeds_are_added_until_bold_values_are_shown_to_equal_the_best(tmp_path):
    table = {"name": "best", "rows": "mixer", "value": "loss", "best": "test", "smallest_difference": 0.5}
    study, store = grown(tmp_path / "few", table=table)
    made = table_of(study, store)
    assert [row[0].best for row in made.cells] == [True, False, True, True]
    told = (
        "Of 2 bold values other than the best of its column, 0 are shown to be closer to it than loss 0.5000"
    )
    assert told in made.caption[2]
    assert decided_differences(study, store.trials({"loss"})) == (1, 3)
    assert {trial.levels["mixer"] for trial in StudyResults(study, store).next_seeds().trials} >= {"sa"}
    study, store = grown(tmp_path / "quiet", table=table, spread=0.02)
    assert decided_differences(study, store.trials({"loss"})) == (3, 3)


@pytest.mark.parametrize(
    "keys",
    [
        {"rows": "mixer"},
        {"smallest_difference": 0.0},
        {"smallest_difference": "small"},
        {"value": ["loss", "max_length"]},
        {"smallest_difference": {"lost": 0.5}},
        {"value": ["parameters"]},
    ],
    ids=str,
)
def test_a_smallest_difference_that_means_nothing_is_reported(tmp_path, keys, golden):
    with golden.raises(StudyError):
        grown(tmp_path, table={**TABLE, **keys})
