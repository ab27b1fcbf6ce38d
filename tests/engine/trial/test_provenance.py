"""Provenance of a row: the commit of a clone with its changes, and the hardware."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from activemem.engine.trial.commit import describe_code

ROOT = Path(__file__).parents[3]


@pytest.fixture
def clone(tmp_path):
    """Return a clone with two Python files, a test and a document."""
    for name in ("code.py", "blocks/layer.py", "tests/test_code.py", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n")
    commit_all(tmp_path)
    return tmp_path


def commit_all(folder):
    """Make a folder a clone with one commit."""
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)


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


@pytest.mark.heavy
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the sources are no clone")
def test_a_wheel_has_its_commit_even_if_built_from_a_source_distribution(tmp_path):
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if not name.startswith(("tests/", "docs/", "bench/", "studies/results/")) and (ROOT / name).is_file():
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    commit_all(tmp_path / "clone")
    expected = describe_code(tmp_path / "clone")
    assert expected is not None
    with tarfile.open(build("sdist", tmp_path / "clone", tmp_path)) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (sources,) = (tmp_path / "unpacked").iterdir()
    for folder in (tmp_path / "clone", sources):
        with zipfile.ZipFile(build("wheel", folder, tmp_path)) as wheel:
            assert wheel.read("activemem/commit.txt").decode() == expected
    with tarfile.open(build("sdist", sources, tmp_path / "again")) as archive:  # packagers repack
        (name,) = (name for name in archive.getnames() if name.endswith("/commit.txt"))
        assert archive.extractfile(name).read().decode() == expected


def build(kind, folder, out):
    """Return the path of a package that setuptools built."""
    out.mkdir(exist_ok=True)
    code = f"import setuptools.build_meta as b, sys; b.build_{kind}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(out)], cwd=folder, capture_output=True, check=True)
    return max(out.glob({"sdist": "*.tar.gz", "wheel": "*.whl"}[kind]), key=lambda path: path.stat().st_mtime)
