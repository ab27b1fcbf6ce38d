import polars as pl
import pytest

from activemem.storage import AttemptRows, Store

from .factories import (
    fill_store,
    finish_script,
    make_metric_rows,
    make_outputs,
    make_trial_id,
    make_trial_row,
    start_script,
    store_contents,
    uncompacted_path,
)


def deaths(template, folder, action):
    """Return the stores after an action killed before each step, the completed one, and the steps."""
    steps = finish_script(start_script("kill_at_every_step.py", template, folder, action)).split()
    return [folder / str(step) for step in range(len(steps))], folder / str(len(steps)), steps


@pytest.mark.heavy
@pytest.mark.parametrize("empty", [True, False], ids=["a new store", "a store in use"])
def test_a_writer_killed_at_any_step_leaves_all_of_its_trial_or_nothing(root, tmp_path, empty):
    root.mkdir()
    fill_store(root, [] if empty else [1, 2])
    held = {} if empty else {make_trial_id(1): ("done", 0), make_trial_id(2): ("done", 0)}
    killed, whole, _ = deaths(root, tmp_path / "dead", "write")
    assert len(killed) >= 10
    assert Store(whole).latest_attempts() == held | {make_trial_id(9): ("done", 0)}
    seen = []
    for folder in killed:
        store = Store(folder)
        outcomes = store.latest_attempts()
        seen.append(make_trial_id(9) in outcomes)
        assert outcomes == (held | {make_trial_id(9): ("done", 0)} if seen[-1] else held)
        assert store.metrics().height == 4 * len(outcomes)
        if outcomes:
            assert pl.read_parquet(folder / "trials").height == len(outcomes)
        assert store.outputs().height == 2 * seen[-1]
        if not seen[-1]:
            store.write(make_trial_row(9), make_metric_rows(9), make_outputs())
        assert str(store_contents(folder)) == str(store_contents(whole))
        assert store.damaged == ()
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (False, True)


def test_trials_that_are_written_together_are_there_all_or_none_and_count_once_when_written_again(
    root, tmp_path
):
    fill_store(root, [1])
    killed, whole, steps = deaths(root, tmp_path / "dead", "together")
    files, folders = 2, 3
    assert steps.count("fsync") == 2 * files + 2 * folders, (
        "each file with its name, each folder at first use"
    )
    both, seen = {make_trial_id(1), make_trial_id(8), make_trial_id(9)}, []
    for folder in (*killed, whole):
        found = set(Store(folder).latest_attempts())
        seen.append(found == both)
        assert seen[-1] or found == {make_trial_id(1)}
        assert Store(folder).metrics().height == 4 * len(found)
    assert seen == sorted(seen)
    again = Store(killed[-1])  # as after a power cut, which has lost the leases
    again.write_together(
        [AttemptRows(make_trial_row(each), make_metric_rows(each), make_outputs()) for each in (8, 9)]
    )
    assert again.metrics().height == 12
    rows = again.trials().select("trial", "attempt", "study")
    assert again.metric_course(None, rows.filter(trial=make_trial_id(8))).height == 4
    assert {path.name for path in (killed[-1] / "outputs").rglob("*.parquet")} < {
        path.name for path in (killed[-1] / "trials").rglob("*.parquet")
    }
    before = store_contents(killed[-1])
    again.upkeep.merge_ended("alpha", at_least=2)
    assert str(store_contents(killed[-1])) == str(before)
    again.upkeep.compact()
    assert str(store_contents(killed[-1])) == str(before)
    assert len(list((killed[-1] / "metrics").rglob("*.parquet"))) == 1


@pytest.mark.heavy
@pytest.mark.parametrize("action", ["compact", "merge"])
def test_a_compaction_killed_at_any_step_loses_and_doubles_nothing(root, tmp_path, action):
    fill_store(root, [1, 2]).upkeep.compact()
    fill_store(root, [2, 3, 4])
    before = store_contents(root)
    killed, whole, _ = deaths(root, tmp_path / "dead", action)
    assert len(killed) >= 20
    assert str(store_contents(whole)) == str(before)
    for folder in killed:
        store = Store(folder)
        assert str(store_contents(folder)) == str(before)
        store.upkeep.compact()
        assert str(store_contents(folder)) == str(before)
        assert pl.read_parquet(folder / "trials").height == 4
        assert len(list((folder / "metrics").rglob("*.parquet"))) == 1
        assert store.damaged == ()
        assert list((folder / "unfinished").iterdir()) == []


def test_a_study_record_killed_at_any_step_is_the_old_or_the_new(root, tmp_path):
    Store(root).records.save("alpha", {"text": "old"})
    killed, whole, _ = deaths(root, tmp_path / "dead", "remember")
    texts = [Store(folder).records.load("alpha")["text"] for folder in killed]
    assert texts == sorted(texts, reverse=True)
    assert set(texts) == {"old", "new"}
    assert Store(whole).records.load("alpha") == {"text": "new"}


def test_a_file_is_flushed_before_it_gets_its_name_and_the_name_before_the_next_file(root, tmp_path):
    fill_store(root, [1]).write(make_trial_row(2), make_metric_rows(2), make_outputs())
    *_, steps = deaths(root, tmp_path / "dead", "write")
    renames = [number for number, step in enumerate(steps) if step == "rename"]
    assert len(renames) == 3
    for number in renames:
        assert steps[number - 2 : number + 3] == ["open", "fsync", "rename", "open", "fsync"]


@pytest.mark.heavy
def test_originals_are_removed_only_when_the_merged_file_has_its_name_for_good(root, tmp_path):
    fill_store(root, [1, 2])
    *_, steps = deaths(root, tmp_path / "dead", "compact")
    del steps[: steps.index("remove") + 1]  # of a new file, whose time is the current time
    for _ in ("trials", "metrics"):
        flushed = steps.index("rename") + 2
        assert steps[flushed - 4 : flushed + 1] == ["open", "fsync", "rename", "open", "fsync"]
        later = [
            step for step in steps[flushed + 1 :] if step != "open"
        ]  # of the folders, to remove files in
        assert later[:3] == ["remove", "remove", "fsync"]
        del steps[: steps.index("fsync", flushed + 1) + 1]
    assert "remove" not in steps


def test_half_written_files_of_dead_writers_are_no_data(root):
    store = fill_store(root, [1])
    (root / "unfinished" / f"{make_trial_id(2)}-0.parquet.0123").write_bytes(
        uncompacted_path(root, 1).read_bytes()[:100]
    )
    assert store.latest_attempts() == {make_trial_id(1): ("done", 0)}
    assert pl.read_parquet(root / "trials").height == 1
    assert store.damaged == ()
