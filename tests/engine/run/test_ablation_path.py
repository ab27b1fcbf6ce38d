"""A path runs in rounds, each keeping the best change, and every command knows its progress."""

from dataclasses import replace

import pytest

from activemem import StudyError, load_study, run_study
from activemem.reporting.tables import build_table
from activemem.storage import Store
from activemem.studies import follow_rounds, load_last_run
from activemem.studies.planning import select_shard
from activemem.studies.presentation import read_changes

from ...reporting.conftest import made_row
from ...study_texts import study_text

FACTORS = {"norm": ["pre", "post"], "p": [0.0, 0.1], "tied": [False, True]}
TABLE = {"name": "path", "rows": "changes", "value": "loss"}


def study(*overrides, seeds=(0, 1), **keys):
    text = study_text(
        study={"design": {"name": "path", "metric": "loss"}} | keys,
        model={"norm": "{norm}", "dropout": "{p}", "tied": "{tied}"},
        task={"name": "sort"},
        train={"epochs": 1},
        factors={**FACTORS, "mixer": ["gru"], "seed": list(seeds)},
        table=[TABLE],
    )
    return load_study(text, overrides)


def train(found, store, loss):
    """Store a loss by its levels for each missing trial."""
    known = set(store.trials()["trial"])
    for number, trial in enumerate(found.trials):
        if trial.id not in known and (value := loss(trial.levels)) is not None:
            store.write(made_row(trial, {"loss": value}, number), [])


def worth(levels):
    """Return a loss that `tied` improves most; `norm` improves it more than `p`, but only with `tied`."""
    gain = 3.0 * levels["tied"] + (levels["p"] == 0.1)
    return (
        9.0
        - 0.01 * levels["seed"] * levels["tied"]
        - gain
        - (levels["norm"] == "post") * (2.0 if levels["tied"] else 0.5)
    )


def test_each_round_keeps_the_best_of_what_is_left(tmp_path, golden):
    store, found = Store(tmp_path), study()
    assert len(found.cells) == 2 * (1 + 3)
    counts = []
    while True:
        train(found, store, worth)
        further = follow_rounds(found, store)
        counts.append(len(further.cells) // 2)
        if len(further.design.kept) == len(found.design.kept):
            break
        found = further
    assert counts == [6, 7, 7, 7]
    assert found.design.kept == ("tied", "norm", "p")
    table = build_table(found, found.tables[0], store.trials())
    assert table.rows == ("baseline", "+ tied", "+ norm = post", "+ p = 0.1")
    assert [row[0].difference for row in table.cells[1:]] == pytest.approx([-3.0, -2.0, -1.0], abs=0.01)
    assert [row.choices for row in read_changes(found.tables[0], found.design).rows] == [1, 3, 6, 2]
    assert any(each.startswith("Rows were selected ") for each in table.caption)
    golden(found.design.explain().split("; ")[1:3])


def test_a_path_around_a_factor_counts_the_candidates_of_each_round_for_each_level():
    found = study('factors.mixer=["gru", "sa"]', around="mixer")
    ended = replace(found.design, kept=("tied", "norm", "p"))
    assert [row.choices for row in read_changes(found.tables[0], ended).rows] == [1, 3, 6, 2] * 2


def test_a_round_waits_for_all_its_seeds_and_keeps_no_change_that_lacks_one(tmp_path):
    store, found = Store(tmp_path), study()
    train(found, store, lambda levels: None if levels["p"] == 0.1 and levels["seed"] else worth(levels))
    assert follow_rounds(found, store).design.kept == ()
    (late,) = [one for one in found.trials if one.id not in set(store.trials()["trial"])]
    store.write(made_row(late, {}, 99), [])
    assert follow_rounds(found, store).design.kept == ("tied",)


def test_a_run_continues_from_round_to_round_and_resumes_after_a_stop(tmp_path):
    store, found = Store(tmp_path), study(seeds=[0])
    first = run_study(found, store, local=True, max_trials=5)
    assert (first.ran, len(store.trials())) == (5, 5)
    assert len(load_last_run("tiny", store).design.kept) == 1
    rest = run_study(found, store, local=True)
    assert (rest.ran, rest.left, len(store.trials())) == (2, 0, 7)
    assert len(load_last_run("tiny", store).design.kept) == 3
    assert run_study(found, store, local=True).ran == 0


def test_a_path_has_no_shards(golden):
    with golden.raises(StudyError):
        select_shard(study(), "1/2")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"design": "path"}, 'path needs more keys: write { name = "path", metric = … }'),
        ({"design": {"name": "path", "metric": "los"}}, "unknown metric 'los'; nearest: loss"),
        ({"metric": "loss"}, 'unknown key \'metric\': write design = { name = "path", metric = "loss" }'),
    ],
)
def test_impossible_paths_are_reported(keys, told):
    with pytest.raises(StudyError) as caught:
        study(**keys)
    assert any(fault.message.endswith(told) for fault in caught.value.faults), caught.value
