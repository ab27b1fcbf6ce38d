"""Provenance of a row: the commit of a clone with its changes, and the hardware."""

import subprocess

import pytest

from activemem.engine.trial.commit import describe_code


@pytest.fixture
def clone(tmp_path):
    """Return a clone with two Python files, a test and a document."""
    for name in ("code.py", "blocks/layer.py", "tests/test_code.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    return tmp_path


def test_code_as_committed_is_its_commit_alone(clone):
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, text=True, check=True)
    assert describe_code(clone) == head.stdout[:7]
    (clone / "tests/test_code.py").write_text("two\n")
    (clone / "docs/page.md").write_text("two\n")
    for own in ("results/row.parquet", "plug.py", "mine/plug.py"):
        (clone / own).parent.mkdir(exist_ok=True)
        (clone / own).write_text("the user's")
    assert describe_code(clone) == head.stdout[:7]


def test_changes_of_code_have_a_hash_that_equal_changes_share(clone):
    base = describe_code(clone)
    (clone / "code.py").write_text("two\n")
    first = describe_code(clone)
    assert first is not None
    assert first.startswith(f"{base}+")
    assert len(first) == len(f"{base}+") + 8
    (clone / "code.py").write_text("three\n")
    second = describe_code(clone)
    (clone / "code.py").write_text("two\n")
    subprocess.run(["git", "add", "."], cwd=clone, check=True)
    assert describe_code(clone) == first != second


def test_new_code_and_removed_code_are_changes(clone):
    base = describe_code(clone)
    (clone / "blocks/né w.py").write_text("")
    new = describe_code(clone)
    (clone / "blocks/né w.py").unlink()
    (clone / "code.py").unlink()
    assert len({base, new, describe_code(clone)}) == 3
    (clone / "code.py").write_text("one\n")
    assert describe_code(clone) == base


def test_a_folder_that_is_no_clone_has_no_commit(tmp_path):
    assert describe_code(tmp_path) is None
