"""Tests that a store removes and moves only what it made itself, and says what it removes."""

import errno
import os
import shutil
import time

import pytest

from activemem.storage import Store, StoreError
from activemem.storage.own_files import DATASETS, FOLDERS, MARK, is_own
from activemem.storage.rows import SCHEMAS
from activemem.storage.store import open_layout

from .factories import fill_store, make_trial_id, make_trial_row

OLD = time.time() - 30 * 24 * 3600
ONE, RANDOM = make_trial_id(1), "0123456789abcdef" * 2

FOREIGN = [
    "unfinished/paper.tex",
    f"unfinished/.thesis.tex.{RANDOM}",
    "unfinished/chapters/one.tex",
    "unfinished/.now.backup",
    f"unfinished/{ONE}-0.parquet",
    "weights/.env",
    "weights/notes.tmp",
    f"weights/.{ONE}.safetensors.old",
    "final_checkpoints/.git/config",
    "final_checkpoints/run.damaged",
    f"checkpoints/{ONE}/notes.txt",
    f"checkpoints/{ONE}/mine.pt.damaged",
    f"checkpoints/{ONE}/.state.pt.copy",
    "checkpoints/mine/state.pt.damaged",
    "leases/2026-11-30-1",
    f"leases/{ONE}-1.txt",
    "trials/alpha/draft.tex",
    "trials/alpha/compacted-old.parquet",
    "metrics/alpha/mine/data.parquet",
    "studies/plan.md",
    "thesis.tex",
]
"""Files that no store makes, though many of their names look like a store's."""

OWN = {
    f"unfinished/.{ONE}-0.parquet.{RANDOM}": "it was left unfinished a day ago",
    f"unfinished/.alpha.json.{RANDOM}": "it was left unfinished a day ago",
    f"unfinished/.now.{RANDOM}": "it was left unfinished a day ago",
    f"weights/.{ONE}.safetensors.{RANDOM}": "it was left unfinished a day ago",
    f"final_checkpoints/.{ONE}.pt.{RANDOM}": "it was left unfinished a day ago",
    f"checkpoints/{make_trial_id(9)}/.state.pt.{RANDOM}": "it was left unfinished a day ago",
    f"checkpoints/{make_trial_id(9)}/.reached.json.{RANDOM}": "it was left unfinished a day ago",
    f"checkpoints/{make_trial_id(9)}/state.pt.damaged": "a damaged checkpoint that its trial no longer needs",
}
"""Leftovers of a store."""


def put(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the content of {name}")


def age(root):
    for path in root.rglob("*"):
        os.utime(path, (OLD, OLD), follow_symlinks=False)


def content(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("clean", ["clean", "compact", "repair", "check"])
def test_files_of_the_user_in_folders_of_a_store_stay(root, clean, caplog):
    store = fill_store(root, [1])
    put(root, FOREIGN)
    put(root, OWN)
    age(root)
    getattr(store.upkeep, clean)()
    for name in FOREIGN:
        assert (root / name).read_text() == f"the content of {name}"
    left = 0 if clean in ("clean", "compact") else len(OWN)
    assert sum((root / name).exists() for name in OWN) == left
    if clean == "compact":
        for name, reason in OWN.items():
            assert f"removed {name}: {reason}" in caplog.text


def test_a_run_counts_the_removed_files_that_it_does_not_name(root, caplog):
    store = fill_store(root, [1])
    put(root, [f"unfinished/.{make_trial_id(number)}-0.parquet.{RANDOM}" for number in range(13)])
    age(root)
    store.upkeep.compact()
    assert "removed 3 more leftovers" in caplog.text


def test_a_checkpoint_folder_keeps_the_files_of_the_user(root):
    store = fill_store(root, [1, 2])
    put(root, [f"checkpoints/{each}/begun" for each in (ONE, make_trial_id(2))])
    put(root, [f"checkpoints/{ONE}/notes.txt"])
    age(root)
    store.upkeep.clean()
    assert [path.name for path in (root / "checkpoints").rglob("*")] == [ONE, "notes.txt"]
    assert store.upkeep.clean() == ()


LINKED = (*FOLDERS, "trials/alpha", "metrics/alpha", f"checkpoints/{ONE}")


@pytest.mark.parametrize("linked", LINKED)
def test_nothing_is_removed_through_a_link(root, tmp_path, linked):
    store = fill_store(root, [1, 2])
    store.records.save("alpha", {"text": "as it was"})
    put(root, OWN)
    put(root, [f"checkpoints/{ONE}/begun", f"leases/{ONE}-0", f"weights/{ONE}.safetensors"])
    victim = tmp_path / "victim"
    folder = root / linked
    if folder.exists():
        shutil.move(folder, victim)
    victim.mkdir(exist_ok=True)
    put(victim, ["thesis.tex", f".{ONE}.safetensors.{RANDOM}", f".now.{RANDOM}", f"{make_trial_id(7)}-0"])
    age(victim)
    age(root)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(victim)
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    again = Store(root)
    again.upkeep.clean()
    again.upkeep.compact()
    again.upkeep.repair()
    with pytest.raises(StoreError, match=r"is no link|got a link, and nothing is written or removed"):
        again.upkeep.forget("alpha", [ONE])
    with pytest.raises(StoreError, match="got a link, and nothing is written or removed through links"):
        again.write(make_trial_row(3), [])
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before
    if linked.count("/") == 0:
        assert any(str(each.path) == linked for each in again.upkeep.check().findings)


def test_a_link_in_place_of_a_file_is_no_file_of_the_store(root, tmp_path):
    store = fill_store(root, [1])
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("mine")
    link = root / "unfinished" / f".{ONE}-0.parquet.{RANDOM}"
    link.symlink_to(thesis)
    os.utime(link, (OLD, OLD), follow_symlinks=False)
    assert store.upkeep.clean() == ()
    open_layout(root).place.delete(link)
    assert link.is_symlink()
    assert thesis.read_text() == "mine"


def test_a_folder_that_is_no_store_is_neither_cleaned_nor_merged(root, caplog):
    put(root, [*FOREIGN, *OWN])
    age(root)
    before = content(root)
    with pytest.raises(StoreError, match="nothing is removed, because this is not a store"):
        Store(root).upkeep.clean()
    assert Store(root).upkeep.compact() == 0
    assert "is not a store: nothing in it is removed or merged" in caplog.text
    assert content(root) == before


@pytest.mark.parametrize(
    "names", [["unfinished/paper.tex"], ["weights/.env"], ["studies/mine.toml", "src/a.py"], ["leases"]]
)
def test_a_folder_with_files_where_a_store_has_its_own_becomes_no_store(root, names):
    put(root, names)
    before = content(root)
    with pytest.raises(StoreError, match=f"where a store keeps its own: {names[0]}. Choose another folder"):
        Store(root).write(make_trial_row(1), [])
    assert content(root) == before


def test_a_folder_with_other_files_becomes_a_store_and_that_is_said(root, caplog):
    put(root, [".git/config", "README.md", "src/main.py"])
    before = content(root)
    fill_store(root, [1])
    assert f"{root} becomes a store, beside other files: .git, README.md, src" in caplog.text
    assert (root / MARK).read_text() == "1\n"
    assert before.items() <= content(root).items()


def test_a_new_store_bears_its_mark_before_its_first_file_and_nothing_is_said(root, caplog):
    fill_store(root, [1])
    assert (root / MARK).read_text() == "1\n"
    assert caplog.text == ""


def test_a_store_whose_mark_was_lost_gets_it_again(root, caplog):
    fill_store(root, [1])
    (root / MARK).unlink()
    put(root, ["unfinished/paper.tex", *OWN])
    age(root)
    assert len(Store(root).upkeep.clean()) == len(OWN)  # rows of trials show that it is a store
    fill_store(root, [2])
    assert (root / MARK).read_text() == "1\n"
    assert (root / "unfinished/paper.tex").exists()


def test_what_a_killed_process_left_of_a_new_store_is_no_clash(root):
    put(root, [f"unfinished/.{MARK}.{RANDOM}"])
    fill_store(root, [1])
    assert (root / MARK).exists()


def test_a_mark_of_another_version_is_refused(root):
    fill_store(root, [1])
    (root / MARK).write_text("2\n")
    with pytest.raises(StoreError, match="expected a store of version 1, got '2'"):
        Store(root).upkeep.clean()
    with pytest.raises(StoreError, match="expected a store of version 1"):
        Store(root).make()


def test_a_folder_in_place_of_the_mark_is_named(root):
    (root / MARK).mkdir(parents=True)
    with pytest.raises(StoreError, match=f"{MARK}: expected a file, got a folder"):
        Store(root).make()


def test_one_store_inside_another_is_not_touched(root):
    store, inner = fill_store(root, [1]), fill_store(root / "weights/inner", [2])
    put(root / "weights/inner", OWN)
    age(root)
    store.upkeep.compact()
    assert all((root / "weights/inner" / name).exists() for name in OWN)
    assert len(inner.trials()) == 1


def test_a_damaged_file_of_another_name_is_skipped_and_stays(root, caplog):
    store = fill_store(root, [1])
    mine = root / "trials/alpha/mine.parquet"
    mine.write_bytes(b"PAR1 my own")
    assert len(store.trials()) == 1
    assert mine.read_bytes() == b"PAR1 my own"
    assert "mine.parquet is skipped" in caplog.text


def test_rows_in_files_of_other_names_count_but_are_neither_merged_nor_forgotten(root):
    store = fill_store(root, [1, 2])
    copy = root / "trials/alpha/from a colleague.parquet"
    (root / f"trials/alpha/{make_trial_id(2)}-0.parquet").rename(copy)
    store.upkeep.compact()
    assert copy.exists()
    assert len(Store(root).trials()) == 2
    with pytest.raises(StoreError, match="got rows of alpha; nothing is removed"):
        store.upkeep.forget("alpha", [make_trial_id(2)])
    assert len(Store(root).trials()) == 2


def test_names_of_the_store_are_known_for_each_dataset():
    assert set(DATASETS) == set(SCHEMAS)
    assert all(is_own(f"{dataset}/alpha/{ONE}-0.parquet") for dataset in DATASETS)


@pytest.mark.parametrize("write", ["put_if_absent", "touch"])
def test_short_writes_of_a_lease_are_continued(root, monkeypatch, write):
    store, real = Store(root), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    lease = store.leases("a run").claim(ONE, 0)
    if write == "touch":
        lease.beat()
    assert not lease.is_lost()
    assert open_layout(root).lease(ONE, 0).read_bytes().count(b"\n") == 1
    lease.release()


def test_a_write_that_takes_nothing_is_an_error_of_the_disk(root, monkeypatch):
    monkeypatch.setattr(os, "write", lambda descriptor, data: 0)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        Store(root).leases("a run").claim(ONE, 0)
    assert list(open_layout(root).leases.iterdir()) == []
