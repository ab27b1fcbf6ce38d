"""A store in a bucket behaves like one in a folder, with concurrent writers."""

import os
import pickle
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activemem.storage import MetricRow, Store, StoreError, trial_files
from activemem.storage.bucket import BucketError
from activemem.storage.store_upkeep import FindingKind

from ..factories import (
    fill_store,
    make_metric_rows,
    make_outputs,
    make_trial_id,
    make_trial_row,
    store_contents,
)

PREFIX = "some/results/"


@pytest.fixture
def store(address):
    return Store(address)


def keys(server, start=""):
    return sorted(key.removeprefix(PREFIX) for key in server.objects if key.startswith(PREFIX + start))


@pytest.mark.heavy
def test_others_read_what_is_written_as_from_a_folder(tmp_path, server, address, store):
    folder = Store(tmp_path / "results")
    for each in (store, folder):
        for number in range(60):  # more than a page
            each.write(make_trial_row(number), make_metric_rows(number), make_outputs())
        each.write(make_trial_row(3, attempt=1, status="failed", reason="why"), [])
        each.write_probes(make_trial_row(4), [MetricRow(step=200, epoch=2, name="probed", value=0.5)])
        each.records.save("alpha", {"text": "a study"})
    assert str(store_contents(address)) == str(store_contents(folder.root))
    other = Store(address)
    assert (other.records.latest(), other.records.load("alpha")) == ("alpha", {"text": "a study"})
    assert (other.place, other.absolute_place) == (address, address)
    assert other.trials(["probed"]).equals(folder.trials(["probed"]), null_equal=True)


def test_a_reader_sees_what_others_write_merge_and_remove(server, address, store):
    fill_store(address, range(3))
    seen = store.follow()
    assert len(seen) == 3
    fill_store(address, range(3, 6))
    assert Store(address).upkeep.compact() == 12
    seen.refresh()
    assert (len(seen), store.trials().height, store.metrics().height) == (6, 6, 24)
    assert [key.rpartition("/")[0] for key in keys(server, "trials")] == ["trials/alpha"]


def test_an_attempt_is_never_written_over(address, store):
    store.write(make_trial_row(1), make_metric_rows())
    with pytest.raises(StoreError, match="new attempt, got 0"):
        Store(address).write(make_trial_row(1, epochs=7), [])
    assert Store(address).trials()["epochs"].to_list() == [2]


def test_a_row_whose_answer_was_lost_is_stored_once_and_reported_as_stored(server, address, store):
    server.lose.append(lambda method, key: method == "PUT" and "/trials/" in key)
    store.write(make_trial_row(1), make_metric_rows())
    assert server.lose == []
    assert Store(address).trials().height == 1


def test_a_damaged_object_is_reported_set_aside_and_mended(server, address, store, caplog):
    fill_store(address, range(3))
    key = f"{PREFIX}trials/alpha/{make_trial_id(1)}-0.parquet"
    data = bytearray(server.objects[key][0])
    data[len(data) // 2] ^= 1
    server.objects[key] = bytes(data), datetime.now(UTC)
    (found,) = store.upkeep.check().findings
    assert (found.kind, found.path) == (
        FindingKind.DAMAGED,
        Path(key.removeprefix(PREFIX)),
    )
    assert [each.kind for each in store.upkeep.repair()] == [FindingKind.DAMAGED]
    assert keys(server, "quarantine") == ["quarantine/notes.txt", f"quarantine/{key.removeprefix(PREFIX)}"]
    again = Store(address).upkeep.check()
    assert [each.kind for each in again.findings] == [FindingKind.INCOMPLETE]  # until it is trained again
    assert again.quarantine["files"] == 1
    assert set(Store(address).trials()["trial"]) == {make_trial_id(0), make_trial_id(2)}


def test_lost_metrics_make_their_trial_incomplete_for_every_reader(server, address, store):
    fill_store(address, range(2))
    key = f"{PREFIX}metrics/alpha/{make_trial_id(1)}-0.parquet"
    server.objects[key] = b"nothing", datetime.now(UTC)
    store.upkeep.repair()
    assert dict(Store(address).trials().select("trial", "status").iter_rows()) == {
        make_trial_id(0): "done",
        make_trial_id(1): "incomplete",
    }


def test_checkpoints_of_ended_trials_and_leases_that_are_old_or_ended_are_removed(server, address, store):
    fill_store(address, [1, 2])
    old = datetime.now(UTC) - timedelta(hours=3)
    for number in (1, 3):
        server.objects[f"{PREFIX}checkpoints/{make_trial_id(number)}/state.pt"] = b"x" * 100, old
    server.objects[f"{PREFIX}leases/{make_trial_id(1)}-0"] = b"{}", old
    for number in (2, 4):
        server.objects[f"{PREFIX}leases/{make_trial_id(number)}-0"] = b"{}", datetime.now(UTC)
    assert store.files.trials_with_checkpoint([make_trial_id(1)])
    (left,) = Store(address).upkeep.clean(dry=True)
    assert (left.path.name, left.bytes) == (make_trial_id(1), 100)
    Store(address).upkeep.compact()
    assert keys(server, "checkpoints") == [f"checkpoints/{make_trial_id(3)}/state.pt"]
    assert keys(server, "leases") == [f"leases/{make_trial_id(4)}-0", "leases/sweeps"]
    assert not store.files.trials_with_checkpoint([make_trial_id(1)])


def test_weights_and_notes_are_downloaded_when_they_are_asked_for(server, address, store):
    trial = make_trial_id(1)
    path = store.files.weights_file(trial)
    path.parent.mkdir()
    path.write_bytes(b"weights")
    store.files.place.put(path)
    note = store.files.checkpoint_dir(trial)
    note.mkdir(parents=True)
    trial_files.write_note(note, 2, {"loss": 0.5})
    store.files.place.put(note / trial_files.NOTE_FILE)
    other = Store(address)
    assert other.files.trials_with_weights([trial, make_trial_id(2)]) == {trial}
    assert other.files.weights_file(trial).read_bytes() == b"weights"
    assert not other.files.weights_file(make_trial_id(2)).exists()
    assert (other.files.checkpoint_note(trial).epoch, other.files.checkpoint_note(make_trial_id(2))) == (
        2,
        None,
    )


def test_keys_that_are_folders_of_others_are_left_out_with_a_warning(server, address, store, caplog):
    fill_store(address, [1])
    server.objects[PREFIX + "trials/alpha"] = b"", datetime.now(UTC)  # as consoles make folders
    assert store.trials().height == 1
    assert caplog.messages == [f"{address}/trials/alpha is skipped: it has the name of a folder"]


@pytest.mark.parametrize("key", ["trials/../../outside", "trials/alpha//x"])
def test_a_key_that_leads_out_of_the_copy_stops_whoever_reads(server, address, store, key):
    server.objects[PREFIX + key] = b"x", datetime.now(UTC)
    with pytest.raises(BucketError, match="Encountered object with invalid path"):
        store.trials()
    assert not list(store.root.parent.rglob("outside*"))


def test_a_store_in_another_process_has_a_copy_of_its_own(store):
    store.write(make_trial_row(1), [])
    other = pickle.loads(pickle.dumps(store))
    assert other.root != store.root
    assert other.trials().equals(store.trials(), null_equal=True)


def test_the_copy_of_a_killed_process_is_removed_by_the_next(server, address):
    script = f"import os; from activemem.storage import Store; print(Store({address!r}).root); os.abort()"
    command = [
        sys.executable,
        "-c",
        script.replace("os.abort()", "import sys; sys.stdout.flush(); os._exit(9)"),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False).stdout
    left = Path(printed.strip())
    assert left.is_dir()
    store = Store(address)
    assert not left.exists()
    assert store.root.is_dir()


def test_a_folder_for_copies_that_somebody_else_has_made_is_refused(tmp_path, address, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / f"activemem-objects-{os.getuid()}"
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=rf"^{re.escape(str(folder))}.*TMPDIR"):
        Store(address)
