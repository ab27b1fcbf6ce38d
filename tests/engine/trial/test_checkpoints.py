"""A damaged checkpoint costs an epoch but never changes a number."""

import json
import logging
import os
import random
import shutil

import pytest
import torch

from activemem.engine import ModelFileError
from activemem.engine.core.models import read_model_file
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.engine.trial.failures import CrashCounts
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.storage import Store
from activemem.storage.trial_files import STARTS_FILE, begun_trials
from activemem.studies import Trial
from activemem.studies.planning.trials_to_run import unfinished_trials

CPU = torch.device("cpu")
SAMPLE = 40
"""The number of tested bit flips, at places drawn with a fixed seed."""


@pytest.fixture
def job(settings):
    trial = Trial(study="tiny", levels={"mixer": "conv", "seed": 0}, settings=settings())
    return Job(trial=trial, attempt=0, run="run", keep_weights=True)


@pytest.fixture
def store(tmp_path, job):
    """Return a store with a trial that was interrupted after three epochs."""
    store = Store(tmp_path / "results")
    attempt = Attempt(job, store, CPU)
    for _ in range(4):
        attempt.advance()
    return store


@pytest.fixture
def folder(store, job):
    return store.files.checkpoint_dir(job.trial.id)


def finish(job, store):
    """Finish a trial; return the epoch of its resumption, its losses, and its weights."""
    attempt = Attempt(job, store, CPU)
    first = attempt.advance()
    assert first.kind == "started"
    while not attempt.ended:
        last = attempt.advance()
    assert last.run.status == "done"
    losses = store.metrics().filter(name="loss").select("step", "epoch", "value").rows()
    return first.run.epoch, losses, dict(read_model_file(store.files.weights_file(job.trial.id)).weights)


def flips(data):
    """Yield the data with one bit flipped, at several places."""
    chance = random.Random(14)
    for _ in range(SAMPLE):
        place, bit = chance.randrange(len(data)), chance.randrange(8)
        flipped = bytearray(data)
        flipped[place] ^= 1 << bit
        yield bytes(flipped)


def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_ends_the_same(
    job, store, folder, tmp_path, caplog, golden
):
    whole = Store(tmp_path / "whole")
    start, losses, weights = finish(job, whole)
    assert start == 0
    data = bytearray((folder / "state.pt").read_bytes())
    data[len(data) // 3] ^= 1
    (folder / "state.pt").write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert (resumed := finish(job, store))[:2] == (2, losses)
    golden(caplog.messages)
    assert resumed[2].keys() == weights.keys()
    assert all(torch.equal(resumed[2][name], weights[name]) for name in weights)


def test_without_an_intact_checkpoint_a_trial_starts_again_and_ends_the_same(
    job, store, folder, tmp_path, caplog, golden
):
    _, losses, _ = finish(job, Store(tmp_path / "whole"))
    (folder / "state.pt").write_bytes(b"")
    (folder / "previous.pt").write_bytes((folder / "previous.pt").read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        assert finish(job, store)[:2] == (0, losses)
    golden([message.rpartition("; ")[2] for message in caplog.messages])


def test_a_save_that_is_killed_between_its_two_renames_leaves_the_one_before(job, store, folder):
    (folder / "state.pt").unlink()
    assert finish(job, store)[0] == 2


def test_flipped_bits_of_a_checkpoint_are_all_found(store, folder):
    state = folder / "state.pt"
    data = state.read_bytes()
    assert Checkpoint(store, folder.name).load().run.epoch == 3
    for flipped in flips(data):
        state.write_bytes(flipped)
        assert Checkpoint(store, folder.name).load().run.epoch == 2
        assert (folder / "state.pt.damaged").read_bytes() == flipped
    state.write_bytes(data)
    assert Checkpoint(store, folder.name).load().run.epoch == 3


@pytest.mark.parametrize("name", ["state.pt", "previous.pt", STARTS_FILE, "reached.json"])
def test_a_flipped_bit_in_any_file_of_an_unfinished_trial_changes_no_result(
    job, store, folder, tmp_path, name, caplog
):
    _, losses, weights = finish(job, Store(tmp_path / "whole"))
    data, whole = (folder / name).read_bytes(), tmp_path / "copy"
    shutil.copytree(store.root, whole)
    for flipped in list(flips(data))[:3]:
        shutil.rmtree(store.root)
        shutil.copytree(whole, store.root)
        (folder / name).write_bytes(flipped)
        caplog.clear()
        start, found, ended = finish(job, Store(store.root))
        assert (start, found) == (2 if name == "state.pt" else 3, losses)
        assert all(torch.equal(ended[each], weights[each]) for each in weights)
        assert bool(caplog.messages) == (name in ("state.pt", STARTS_FILE))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("nowhere")])
def test_an_irregular_file_is_no_checkpoint_and_is_not_waited_for(job, store, folder, make):
    (folder / "state.pt").unlink()
    make(folder / "state.pt")
    assert finish(job, store)[0] == 2
    store.files.weights_file("0" * 16).unlink(missing_ok=True)
    make(store.files.weights_file("0" * 16))
    with pytest.raises(ModelFileError, match="expected a file"):
        read_model_file(store.files.weights_file("0" * 16))


def test_a_damaged_start_is_left_out_and_stops_no_other(job, store, folder, caplog):
    others = [folder.with_name(f"{number:016x}") for number in range(4)]
    for other in others:
        shutil.copytree(folder, other)
    for path in others:
        (path / STARTS_FILE).unlink()
    (others[0] / STARTS_FILE).write_bytes(b"\xff\xfe{\n")
    os.mkfifo(others[1] / STARTS_FILE)
    (others[2] / STARTS_FILE).symlink_to("nowhere")
    shutil.copy(folder / STARTS_FILE, others[3])  # another trial's
    with caplog.at_level(logging.WARNING):
        assert [trial.id for trial in unfinished_trials(folder.parent)] == [job.trial.id]
    assert len(caplog.messages) >= 3  # Python 3.13 lists the link too


def test_trials_of_other_studies_are_not_read(job, store, folder, caplog):
    begun = json.loads(job.trial.to_json())
    settings = json.loads(begun["settings"])
    settings["model"]["recipe"] = "a_block_of_a_plugin_that_is_not_loaded"
    begun["settings"] = json.dumps(settings)
    other = folder.with_name("0" * 16)
    other.mkdir()
    Checkpoint(store, other.name).record_start(json.dumps(begun | {"study": "another"}), "run", "0")
    with caplog.at_level(logging.WARNING):
        found = unfinished_trials(folder.parent, job.trial.study)
    assert ([trial.id for trial in found], caplog.messages) == ([job.trial.id], [])


@pytest.mark.parametrize("torn", ["", '{"study": "al', "run 0\n", "[1]\n"])
def test_a_start_that_was_cut_off_is_written_again(job, store, folder, torn):
    text, starts = job.trial.to_json(), folder / STARTS_FILE
    starts.write_text(torn, encoding="utf-8")  # killed, or the disk was full
    checkpoint = Checkpoint(store, folder.name)
    assert checkpoint.record_start(text, "run", "0") == CrashCounts(in_run=0, in_all=0)
    assert [trial.id for trial in unfinished_trials(folder.parent)] == [folder.name]
    assert checkpoint.record_start(text, "run", "0") == CrashCounts(in_run=1, in_all=1)
    begun = starts.read_text(encoding="utf-8")
    checkpoint.record_begun(text)
    assert starts.read_text(encoding="utf-8") == begun
    starts.write_text(torn, encoding="utf-8")
    checkpoint.record_begun(text)
    assert [trial.id for trial in unfinished_trials(folder.parent)] == [folder.name]
    assert begun_trials(folder.parent, job.trial.study) == {folder.name}


def test_flipped_bits_of_a_start_leave_the_trial_its_outcome(job, store, folder):
    starts = folder / STARTS_FILE
    data = starts.read_bytes()
    for flipped in flips(data):
        starts.write_bytes(flipped)
        assert {trial.id for trial in unfinished_trials(folder.parent)} <= {job.trial.id}
        assert Attempt(job, store, CPU).advance().kind == "started"
