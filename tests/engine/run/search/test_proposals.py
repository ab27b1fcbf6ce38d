"""Programs that ask a search for proposals and hand in points without results."""

import json

import numpy as np
import optuna
import pytest

from activemem import StudyError, StudyResults, load_study, run_study
from activemem.engine import Ended, Listener
from activemem.engine.run.search import SearchService
from activemem.storage import STARTS_FILE, Store

from ....study_texts import study_text

SEARCH = study_text(
    study={"name": "search", "title": "A conditional space", "limits": {"parameters": "<= 2000"}},
    model={"recipe": "choice(ff(8), {mixer}, conv(k=integer(2, 9))) >> {end}"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "batch_size": 4, "epochs": 1, "steps_per_epoch": 1},
    factors={"seed": [0, 1], "end": ["ff(8)"]},
    search={"sampler": "tpe", "trials": 4, "metric": "loss", "direction": "min"},
    space={
        "k": "integer(4, 9, step=2)",
        "mixer": "choice(sa(heads=1), highway_conv(k={k}))",
        "lr": "real(0.001, 0.1, log=true)",
    },
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture(scope="module")
def study():
    return load_study(SEARCH)


def answers(desk, *lines):
    return [desk.hand_in(line).answer for line in lines]


def test_proposals_are_the_points_that_a_run_trains_and_are_not_stored(study, store):
    first, second = SearchService(study, store).propose(2)
    assert [each.values for each in SearchService(study, store).propose(2)] == [first.values, second.values]
    assert (first.proposed_by, store.root.exists()) == ("tpe", False)
    run_study(study, store, local=True, max_trials=2)
    assert set(store.trials()["trial"]) == set(first.trials)
    assert first.id not in {each.id for each in SearchService(study, store).propose(9)}


def test_a_proposal_leaves_optunas_log_level(study, store):
    optuna.logging.set_verbosity(optuna.logging.INFO)
    StudyResults(study, store).propose(2)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO


def test_results_in_python_propose_points_and_take_them(study, store):
    results = StudyResults(study, store)
    (first,) = results.propose()
    results.tell([first])
    answers = results.tell([{"values": first.values}, "\n", '{"recipe": "sa("}'])
    assert [(each.line, each.answer, each.id) for each in answers] == [
        (1, "waiting", first.id),
        (3, "refused", None),
    ]


def test_numbers_of_numpy_are_values(study, store):
    values = {"k": 6, "mixer": "highway_conv(k={k})", "lr": 0.05, "choice": "{mixer}"}
    of_numpy = values | {"k": np.int64(6), "lr": np.array(0.05)}
    answers = StudyResults(study, store).tell(
        [{"values": of_numpy}, {"values": of_numpy | {"k": np.int32(5)}}]
    )
    assert (answers[0].answer, answers[0].values) == ("accepted", values)
    assert answers[1].faults == ("k: expected integer(4, 9, step=2), got 5",)


def test_a_baseline_that_waits_is_not_proposed_again(store):
    results = StudyResults(load_study(SEARCH, ["study.baseline={ choice = 'ff(8)', lr = 0.01 }"]), store)
    proposed = []
    for _ in range(4):
        (point,) = results.propose()
        (answer,) = results.tell([point])
        proposed.append((point.proposed_by, answer.answer))
    assert proposed == [("baseline", "accepted"), *[("tpe", "accepted")] * 3]
    assert results.propose() == []
    run_study(results.study, store, local=True, max_trials=2)  # the baseline is still trained first
    assert set(store.trials()["recipe"]) == {"ff(8) >> ff(8)"}


def test_a_recipe_that_is_handed_in_is_trained_next_and_then_known_with_its_results(study, store):
    line = {"recipe": "highway_conv(k=6) >> ff(8)", "values": {"lr": 0.05}}
    desk = SearchService(study, store)
    assert answers(desk, line, line) == ["accepted", "waiting"]
    assert len(desk.propose(9)) == 3  # of four
    run_study(study, store, local=True, max_trials=2)
    assert set(store.trials()["recipe"]) == {line["recipe"]}
    known = SearchService(study, store).hand_in(line)
    assert known.values == {
        "k": 6, "mixer": "highway_conv(k={k})", "lr": 0.05, "choice": "{mixer}"
    }  # fmt: skip
    assert [(each.seed, each.status) for each in known.trials] == [(0, "done"), (1, "done")]
    table = '[[table]]\nname = "best"\nkind = "points"\n'
    (row,) = StudyResults(load_study(study.document.text + table), store).table().cells
    assert "highway_conv(k=6)" in [cell.text for cell in row]


def test_a_point_whose_handing_in_was_cut_off_is_handed_in_again(study, store):
    line = {"recipe": "highway_conv(k=6) >> ff(8)", "values": {"lr": 0.05}}
    desk = SearchService(study, store)
    values = {"k": 6, "mixer": "highway_conv(k={k})", "lr": 0.05, "choice": "{mixer}"}
    trials = [trial.id for trial in study.search.trials_of(values)]
    starts = store.files.checkpoint_dir(trials[0]) / STARTS_FILE
    starts.parent.mkdir(parents=True)
    starts.write_text("")  # killed before it was written, or on a full disk
    assert answers(desk, line, line) == ["accepted", "waiting"]
    run_study(study, store, local=True, max_trials=2)
    assert set(store.trials()["trial"]) == set(trials)


def test_a_run_that_is_under_way_takes_up_what_is_handed_in(study, store, golden):
    line = {"recipe": "conv(k=7) >> ff(8)", "values": {"lr": 0.02}}

    class Program(Listener):
        def on_event(self, event):
            if isinstance(event, Ended):
                SearchService(study, store).hand_in(line)

    assert run_study(study, store, listener=Program(), local=True).ran == 8
    assert line["recipe"] in set(store.trials()["recipe"])
    (full,) = (
        SearchService(study, store).hand_in(each)
        for each in [{"recipe": "conv(k=3) >> ff(8)", "values": {"lr": 0.07}}]
    )
    golden(full.faults)


LR = {"lr": 0.01}
REFUSED = [
    "3",
    "{",
    '{"mean": 0.1, "valeus": {}}',
    json.dumps({"values": {"choice": "ff(8)", "lr": 3, "k": 4, "kk": 1}}),
    '{"dev_loss": 0.1, "bleu[10-20]": 3, "values": {"choice": "ff(8)", "lr": 0.01}}',
    json.dumps({"values": {"choice": "{mixer}", "k": 99, "lr": 0.01}}),
    json.dumps({"values": {"choice": "ff(8)", "lr": True}}),
    json.dumps({"values": {"choice": "{mixer}"}}),
    json.dumps({"recipe": "conv(k=99) >> ff(8)", "values": LR}),
    json.dumps({"recipe": "conv(k=) >> ff(8)"}),
    json.dumps({"recipe": "conv(k=integer(2, 3)) >> {end}"}),
    json.dumps({"recipe": "conv(k=4) >> ff(8)", "values": {"conv.k": 5, **LR}}),
    json.dumps({"recipe": "conv(k=4) >> ff(8)", "values": LR, "id": "0"}),
    json.dumps({"recipe": "sa(heads=1) >> ff(8)", "values": LR}),
]


@pytest.mark.parametrize("line", REFUSED)
def test_a_point_outside_the_space_is_rejected_with_all_faults(study, store, line, golden):
    refused = SearchService(study, store).hand_in(line)
    assert refused.answer == "refused"
    golden(refused.faults)
    assert not store.root.exists()


def test_a_grid_has_no_points_to_propose(store, golden):
    with golden.raises(StudyError):
        SearchService(load_study("quickstart"), store)
