"""`activemem store`: messages about damage, and repairs."""

import json
import os
from pathlib import Path

import pytest

from ...storage.factories import fill_store, make_trial_id, uncompacted_path


@pytest.fixture
def store(tmp_path):
    return fill_store(tmp_path / "results", [1, 2])


def damage(path):
    path.write_bytes(path.read_bytes()[:-9] + b"x" * 9)


def test_a_sound_store_is_reported_in_a_line(store, run):
    result = run("store", "check", "--results", str(store.root))
    assert result.exit_code == 0
    head, _, tail = result.stdout.partition(" files, ")
    assert head == f"{store.root} · 4"
    assert tail.endswith(" kB · all files intact\n")


def test_damage_is_reported_and_repaired_and_the_lost_trial_is_named_until_it_is_trained(store, run, golden):
    path, results = uncompacted_path(store.root, 1), ("--results", str(store.root))
    damage(path)
    result = run("store", "check", *results)
    assert result.exit_code == 1
    head, finding, reason, then = result.stdout.splitlines()
    assert head.endswith(" · 1 damaged")
    assert finding.startswith(f"  damaged   trials/alpha/{path.name}   ")
    golden(reason.strip())
    golden(then)
    assert path.exists()
    result = run("store", "repair", *results)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"1 damaged file moved to {store.root / 'quarantine'}\n")
    assert not path.exists()
    result = run("store", "check", "--json", *results)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [each["path"] for each in found["findings"]] == [f"trials/alpha/{path.name}"]
    golden(found["findings"][0]["reason"])
    assert (found["files"], found["quarantine"]["files"]) == (3, 1)


def test_an_incomplete_trial_is_a_fault_that_a_run_mends(store, run):
    path = uncompacted_path(store.root, 1, dataset="metrics")
    damage(path)
    result = run("store", "repair", "--json", "--results", str(store.root))
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [each["kind"] for each in found["moved"]] == ["damaged"]
    (finding,) = found["findings"]
    assert "study run" in finding.pop("reason")
    assert finding == {"kind": "incomplete", "path": f"metrics/alpha/{path.name}", "bytes": 0}


def test_a_dry_run_lists_what_would_be_removed(store, run):
    folder, results = store.files.checkpoint_dir(make_trial_id(1)), ("--results", str(store.root))
    folder.mkdir(parents=True)
    (folder / "state.pt.damaged").write_bytes(bytes(2000))
    os.utime(folder / "state.pt.damaged", (0, 0))
    before = run("store", "clean", "--dry-run", *results)
    assert before.stdout.endswith("would be removed: 1 leftover, 2.0 kB\n")
    assert folder.exists()
    assert run("store", "clean", *results).stdout.endswith("\nremoved: 1 leftover, 2.0 kB\n")
    assert not folder.exists()
    assert run("store", "clean", *results).stdout == "no leftovers\n"


@pytest.mark.parametrize("command", ["check", "repair", "clean"])
def test_a_named_folder_that_does_not_exist_is_reported(run, command, golden):
    assert run("store", command).exit_code == 0
    Path("file").touch()
    for place in ("gone", "file"):
        result = run("store", command, "--results", place)
        assert (result.exit_code, result.stdout) == (2, "")
        golden(result.stderr)


@pytest.mark.parametrize("command", ["check", "repair"])
def test_a_folder_without_a_file_of_a_store_is_reported(run, command, golden):
    Path("notes/studies").mkdir(parents=True)
    Path("notes/studies/draft.toml").touch()
    result = run("store", command, "--results", "notes")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
    golden(run("store", "check").stdout)


def test_errors_of_the_system_are_reported_with_the_file(run):
    Path("file").touch()
    result = run("study", "new", "file/study.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == "file/study.toml: Not a directory"
