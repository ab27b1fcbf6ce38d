"""Checks and repairs of stores: every file, without losing intact data."""

import io
import math
import os
import shutil
import subprocess
import sys
import time
import zipfile
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from safetensors.numpy import save

from activemem.storage import Store, StoreError
from activemem.storage.checksums import add_checksum, add_model_checksum, encode_metadata, sealing
from activemem.storage.files import temporary_name
from activemem.storage.store_upkeep import FindingKind

from .factories import (
    fill_store,
    make_metric_rows,
    make_trial_id,
    make_trial_row,
    store_contents,
    uncompacted_path,
)

DAY_S = 25 * 3600
UNFINISHED = (
    "unfinished",
    f"checkpoints/{make_trial_id(300)}",
    "its trial has no row; unless a run is training it, study run resumes it if a study still has it, "
    "with the same settings and code",
)


def write_sealed(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("data", b"weights" * 100)
    with sealing(path) as file:
        file.write(whole.getvalue())


def write_model(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {"bias": np.arange(100.0)}
    path.write_bytes(add_model_checksum(save(weights, metadata=encode_metadata({"trial": path.stem}))))


def flip(path, place=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if place is None else place] ^= 4
    path.write_bytes(data)


def age(path, seconds=DAY_S):
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)


def told(root, findings):
    return [(each.kind.value, str(each.path), each.reason) for each in findings]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return the folder of an intact store with a file of every kind."""
    root = tmp_path_factory.mktemp("sound")
    store = fill_store(root, range(1, 151))
    store.upkeep.compact()
    fill_store(root, [201, 202])
    store.records.save("alpha", {"text": "as it was"})
    for number in (1, 2):
        write_model(store.files.weights_file(make_trial_id(number)))
    for name in ("state.pt", "previous.pt"):
        write_sealed(store.files.checkpoint_dir(make_trial_id(300)) / name)
    return root


@pytest.fixture
def sound(root, original):
    """Return an intact store with a file of every kind."""
    return Store(shutil.copytree(original, root, dirs_exist_ok=True))


def names(root):
    return sorted(str(path) for path in root.rglob("*"))


def test_a_sound_store_has_no_findings(root, sound):
    found = sound.upkeep.check()
    assert told(root, found.findings) == [UNFINISHED]
    assert (found.has_faults, found.quarantine["files"]) == (False, 0)
    assert found.files == 2 + 2 * 2 + 1 + 2 + 2
    stored = [path for path in root.rglob("*") if path.is_file() and path.name != ".activemem-store"]
    assert found.bytes == sum(path.stat().st_size for path in stored)
    assert sound.upkeep.repair() == sound.upkeep.clean() == ()


def test_a_check_reports_every_fault_and_changes_nothing(root, sound, caplog, golden):
    (merged,) = (root / "trials/alpha").glob("compacted-*")
    flip(merged, 10)
    flip(uncompacted_path(root, 201, dataset="metrics"))
    flip(root / "studies/alpha.json")
    flip(sound.files.weights_file(make_trial_id(2)))
    flip(sound.files.checkpoint_dir(make_trial_id(300)) / "state.pt")
    os.mkfifo(uncompacted_path(root, 203))
    (root / "metrics/alpha/notes.txt").write_text("mine")
    (root / f"weights/.{make_trial_id(1)}.safetensors.{0:032x}").write_text("half")
    age(root / f"weights/.{make_trial_id(1)}.safetensors.{0:032x}")
    before = names(root)
    found = sound.upkeep.check()
    golden([" ".join(map(str, each)).replace(merged.name, "MERGED") for each in told(root, found.findings)])
    assert found.has_faults
    assert names(root) == before
    assert caplog.messages == []


def test_a_repair_leaves_nothing_damaged(root, sound):
    before = Store(root).trials()["trial"].to_list()
    (merged,) = (root / "trials/alpha").glob("compacted-*")
    flip(merged, 10)
    flip(root / "studies/alpha.json")
    flip(sound.files.weights_file(make_trial_id(2)))
    flip(sound.files.checkpoint_dir(make_trial_id(300)) / "state.pt")
    assert len(sound.upkeep.repair()) == 4
    kinds = [each.kind for each in sound.upkeep.check().findings]
    assert kinds == [FindingKind.INCOMPLETE] * 150 + [FindingKind.UNFINISHED]
    assert sound.upkeep.check().quarantine["files"] == 4
    left = Store(root).trials()["trial"].to_list()
    assert set(left) < set(before)
    assert len(before) - len(left) == 150
    assert not sound.files.weights_file(make_trial_id(2)).exists()
    assert [path.name for path in sound.files.checkpoint_dir(make_trial_id(300)).iterdir()] == ["previous.pt"]
    assert sound.upkeep.repair() == ()


def test_a_trial_whose_metrics_are_damaged_is_incomplete_until_it_has_run_again(root, caplog, golden):
    store = fill_store(root, [1, 2])
    flip(uncompacted_path(root, 1, dataset="metrics"))
    assert store.latest_attempts()[make_trial_id(1)] == ("done", 0)  # nobody has looked at them yet
    assert store.metrics()["trial"].unique().to_list() == [make_trial_id(2)]
    for each in (store, Store(root)):
        assert each.latest_attempts() == {
            make_trial_id(1): ("incomplete", 0),
            make_trial_id(2): ("done", 0),
        }
        assert each.follow()[make_trial_id(1)]["status"] == "incomplete"
        row, _ = each.trials().rows(named=True)
        golden((row["status"], row["reason"]))
    assert told(root, store.upkeep.check().findings)[0][:2] == (
        "incomplete",
        f"metrics/alpha/{make_trial_id(1)}-0.parquet",
    )
    store.write(make_trial_row(1, attempt=1), make_metric_rows(1))
    assert store.latest_attempts()[make_trial_id(1)] == ("done", 1)
    assert store.upkeep.check().findings == ()


def test_a_trial_whose_row_was_deleted_is_named_with_the_next_step(root, sound, golden):
    uncompacted_path(root, 201).unlink()
    write_model(sound.files.weights_file(make_trial_id(400)))
    golden([" ".join(each) for each in told(root, sound.upkeep.check().findings)])
    assert sound.upkeep.check().has_faults


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_trial_that_two_stores_trained_with_different_values_is_reported(
    root, tmp_path, is_merged, golden, caplog
):
    for folder, loss, commit in ((root, 0.5, "8b66930"), (tmp_path / "other", 0.25, None)):
        store = Store(folder)
        for number in (1, 2):
            metrics = (("loss", loss if number == 1 else math.nan), ("tokens_per_s", loss))
            attempt = 0 if is_merged or folder == root else 1
            row = make_trial_row(number, attempt=attempt, metrics=metrics, host=folder.name, commit=commit)
            store.write(row, make_metric_rows(loss))
        if is_merged:
            store.upkeep.compact()
    assert Store(root).upkeep.check().findings == ()
    shutil.copytree(tmp_path / "other", root, dirs_exist_ok=True)
    found = Store(root).upkeep.check()
    golden([" ".join(each) for each in told(root, found.findings)])
    assert not found.has_faults
    assert Store(root).trials()["host"].to_list() == ["other", "other"]
    Store(root).upkeep.compact()
    told_once = "trained twice, by 8b66930 and an unknown commit, with different values; only that of 2026"
    assert (told_once in caplog.text) == is_merged  # attempts with other numbers both stay
    assert caplog.text.count("was trained twice") == is_merged


def test_a_damaged_file_of_merged_metrics_makes_its_trials_incomplete_and_no_others(root, sound):
    (merged,) = (root / "metrics/alpha").glob("compacted-*")
    flip(merged, 10)
    sound.upkeep.compact()
    statuses = sound.latest_attempts()
    incomplete = [trial for trial, (status, _) in statuses.items() if status == "incomplete"]
    assert incomplete == [make_trial_id(number) for number in range(1, 151)]
    assert len(statuses) == 152


def test_metrics_that_were_not_copied_with_their_rows_are_a_finding(root):
    store = fill_store(root, [1])
    assert store.upkeep.check().findings == ()
    shutil.rmtree(root / "metrics")
    assert store.latest_attempts() == {make_trial_id(1): ("done", 0)}
    (found,) = store.upkeep.check().findings
    assert found.reason.endswith(" are lost, or were not copied with its row: copy them, or forget it")
    assert store.upkeep.check().has_faults


def test_a_file_that_was_read_while_it_was_copied_returns_once_it_is_complete(root, tmp_path):
    fill_store(tmp_path / "source", [1])
    shutil.copytree(tmp_path / "source", root)
    (path,) = (root / "trials").glob("*/*.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:100])
    assert Store(root).trials().is_empty()
    (moved,) = (root / "quarantine/trials").glob("*/*.parquet")
    assert Store(root).trials().is_empty()
    moved.write_bytes(data)
    assert len(Store(root).trials()) == 1
    assert path.read_bytes() == data
    assert not moved.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_study_with_a_file_of_another_user_is_not_forgotten(root):
    store = fill_store(root, [1])
    (path,) = (root / "trials").glob("*/*.parquet")
    study = path.parent.name
    path.chmod(0)
    with pytest.raises(StoreError, match="no permission to read 1 of the files of"):
        store.upkeep.forget(study, [make_trial_id(1)])
    path.chmod(0o600)
    assert len(store.trials()) == 1


@pytest.fixture
def leftovers(root):
    """Return a store with a checkpoint for each way a trial can end, and a temporary file."""
    store = fill_store(root, [1])
    fill_store(root, [2], status="failed", reason="not a number at epoch 2")
    fill_store(root, [3], status="failed", reason="time limit of 5 s passed at epoch 2")
    fill_store(root, [4, 5])
    for number in (1, 2, 3, 4, 5, 6):
        folder = store.files.checkpoint_dir(make_trial_id(number))
        folder.mkdir(parents=True)
        (folder / "begun").write_text("a trial")
        os.utime(folder / "begun", (0, 0))
    (store.files.checkpoint_dir(make_trial_id(4)) / "begun").touch()  # it runs again
    temporary = store.files.checkpoint_dir(make_trial_id(6)) / f".state.pt.{0:032x}"
    temporary.write_bytes(bytes(1000))
    age(temporary)
    return store


def test_leftovers_are_reported_with_their_sizes_and_removed(root, leftovers):
    expected = [
        (f"checkpoints/{make_trial_id(6)}/.state.pt.{0:032x}", "a day ago", 1000),
        (f"checkpoints/{make_trial_id(1)}", "done", 7),
        (f"checkpoints/{make_trial_id(2)}", "failed", 7),
        (f"checkpoints/{make_trial_id(5)}", "done", 7),
    ]
    before = names(root)
    for dry in (True, False):
        assert names(root) == before
        found = leftovers.upkeep.clean(dry=dry)
        assert [(str(each.path), each.bytes) for each in found] == [
            (path, size) for path, _, size in expected
        ]
        assert all(each.reason.endswith(end) for each, (_, end, _) in zip(found, expected, strict=True))
    assert leftovers.upkeep.clean() == ()
    assert sorted(path.name for path in (root / "checkpoints").iterdir()) == [
        make_trial_id(number) for number in (3, 4, 6)
    ]


def test_current_files_are_kept_by_a_machine_whose_clock_is_days_fast(root, sound, monkeypatch):
    begun = root / "unfinished" / f".{make_trial_id(1)}-0.parquet.{0:032x}"
    begun.write_bytes(b"half")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3 * DAY_S)
    assert sound.upkeep.clean() == ()
    assert begun.exists()


def test_files_of_a_machine_whose_clock_was_days_slow_are_leftovers(root):
    then = datetime.now(UTC) - timedelta(days=9)
    store = fill_store(root, [1], started=then, finished=then)
    fill_store(root, [2], status="failed", reason="not a number", started=then, finished=then)
    for number in (1, 2):
        begun = store.files.checkpoint_dir(make_trial_id(number)) / "begun"
        begun.parent.mkdir(parents=True)
        begun.write_text("a trial")
        age(begun)
    (found,) = store.upkeep.clean()
    assert found.path.name == make_trial_id(1)  # the other is being tried again


WRITE_AND_DIE = """
import os, signal, sys
from activemem.storage.files import replacing
from pathlib import Path
for name in sys.argv[1:]:
    replacing(Path(name)).__enter__().write_text("half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_leaves_is_removed_at_once(root):
    ended = datetime.now(UTC)
    store = fill_store(root, [1, 2, 3], finished=ended)
    fill_store(root, [4], status="failed", reason="not a number at epoch 2", finished=ended)
    begun = [f"checkpoints/{make_trial_id(each)}/begun" for each in (1, 2, 3, 4)]
    mine = [
        f"unfinished/{temporary_name('now')}",
        "unfinished/.now.of.mine",
        f"checkpoints/{make_trial_id(3)}/a",
    ]
    for name in (*begun, *mine, final := f"final_checkpoints/{make_trial_id(1)}.pt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("whole")
        os.utime(root / name, (ended.timestamp() - 9, ended.timestamp() - 9))
    os.utime(root / begun[1], (ended.timestamp() + 9, ended.timestamp() + 9))  # it has been resumed since
    half = [
        "unfinished/now",
        f"unfinished/group-{0:016x}-{0:08x}.parquet",
        f"weights/{make_trial_id(1)}.safetensors",
    ]
    subprocess.run([sys.executable, "-c", WRITE_AND_DIE, *(root / name for name in half)], check=False)
    assert len(list((root / "unfinished").iterdir())) == 4
    store.upkeep.compact()
    left = {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and path.read_bytes() in (b"whole", b"half")
    }
    assert left == {begun[1], begun[3], *mine, final}


def test_a_compaction_removes_leftovers(root, leftovers):
    before = store_contents(root)
    leftovers.upkeep.compact()
    assert len(list((root / "checkpoints").iterdir())) == 3
    assert str(store_contents(root)) == str(before)


def test_a_last_state_is_a_leftover_once_a_longer_trial_has_its_own_or_its_trial_failed(root, caplog):
    store, ids = Store(root), [make_trial_id(seed) for seed in range(4)]
    failed = {"status": "failed", "reason": "diverged"}
    for seed, more in enumerate(({}, {"continued_from": ids[0]}, failed, {"continued_from": ids[2]})):
        store.write(make_trial_row(seed, **more), make_metric_rows(seed))
    for trial in ids[:3]:  # the fourth resumed from the third, and keeps no state of its own
        write_sealed(store.files.final_checkpoint_file(trial))
    check = store.upkeep.check()
    assert check.last_states["files"] == 3
    assert told(root, check.findings) == told(root, store.upkeep.clean(dry=True))
    assert {(each.path.stem, each.reason) for each in check.findings} == {
        (ids[0], "a trial that resumed from it has a last state of its own"),
        (ids[2], "its trial is failed"),
    }
    store.upkeep.compact()  # as each run does: replaced states are expected, and no warning
    assert [record.args[0].stem for record in caplog.records] == [ids[2]]
    assert store.files.trials_with_final_checkpoint() == {ids[1]}


def test_a_file_of_another_version_is_reported_and_the_rest_is_checked(root, sound):
    uncompacted_path(root, 201).write_text("x")
    path = uncompacted_path(root, 202)
    data = path.read_bytes()
    start = data.index(b"activemem.sealed")
    path.write_bytes(add_checksum(data[:start] + data[start + 52 :], version=99))
    assert [(each.kind, each.path) for each in sound.upkeep.check().findings] == [
        (FindingKind.DAMAGED, uncompacted_path(root, 201).relative_to(root)),
        (FindingKind.FOREIGN, path.relative_to(root)),
    ]
