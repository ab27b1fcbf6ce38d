"""The command line on an unfit machine: no working folder, little address space, a missing module."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words, folder, limit=None, code="from activemem.__main__ import main; main()"):
    def prepare():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if not folder.exists():
            folder.mkdir()
            os.chdir(folder)
            folder.rmdir()

    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, preexec_fn=prepare, check=False
    )


@pytest.mark.parametrize("words", [("study", "list"), ("table", "render", "quickstart")], ids=" ".join)
def test_a_removed_working_folder_is_named(tmp_path, words):
    done = run(*words, folder=tmp_path / "gone")
    assert done.returncode == 2
    assert "the working folder of this terminal was removed; go to another one: cd ~" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("study", "list"),
        ("study", "status", "quickstart"),
        ("study", "plan", "quickstart"),
        ("study", "query", "SELECT 1"),
        ("table", "render", "quickstart"),
        ("recipe", "show", "sa", "--d-model", "16", "--length", "8", "--vocab", "9"),
    ],
    ids=" ".join,
)
def test_a_small_address_space_is_said_instead_of_the_words_of_a_library(tmp_path, words):
    done = run(*words, folder=tmp_path, limit=10**9)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"this process may use 0\.9 GB of address space, "
        r"and this command needs (1\.5 GB for polars|2 GB for torch): "
        r"raise the limit \(ulimit -v unlimited\)\n",
        done.stderr,
    )


def test_a_training_is_refused_before_it_runs_out_of_address_space(tmp_path):
    done = run("study", "run", "quickstart", "--local", folder=tmp_path, limit=3 * 10**9)
    assert done.returncode == 2
    assert "this command needs 3.5 GB for training: raise the limit" in done.stderr


def test_commands_that_load_no_large_library_need_little_address_space(tmp_path):
    for words in (("--help",), ("recipe", "check", "2 * sa"), ("study", "new", "--help")):
        done = run(*words, folder=tmp_path, limit=10**9)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_module_that_is_missing_is_named_with_the_command_that_installs_it(tmp_path):
    hide = "import sys; sys.modules['torch'] = None; from activemem.__main__ import main; main()"
    done = run("block", "verify", "sa", "--help", folder=tmp_path, code=hide)
    assert done.returncode == 0
    done = run("study", "run", "quickstart", "--results", str(tmp_path / "new"), folder=tmp_path, code=hide)
    assert done.returncode == 2
    assert "the module torch is missing: pip install torch" in done.stderr
    assert "Traceback" not in done.stderr
