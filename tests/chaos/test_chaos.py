"""Some faults of a seeded schedule in every test run; a thousand with `make chaos`."""

import shutil
from pathlib import Path

import pytest

from ..forked_commands import run_program

ROOT = Path(__file__).parents[2]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("scene", "faults", "seed"),
    [
        ("grid", 6, 1),
        pytest.param("search", 2, 1, marks=pytest.mark.slow),
        pytest.param("bucket", 2, 5, marks=pytest.mark.slow),
    ],
)
def test_a_study_survives_whatever_happens_to_its_drivers_its_files_and_its_disk(scene, faults, seed):
    options = ["--scene", scene, "--faults", str(faults), "--seed", str(seed)]
    done = run_program("tests.chaos", *options, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs the C compiler cc")


@pytest.mark.slow
@needs_compiler
def test_a_study_survives_failing_calls_of_the_file_system_and_power_cuts():
    done = run_program("tests.chaos", "--faults", "0", "--errors", "6", "--power-cuts", "3", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@needs_compiler
def test_power_cuts_lose_reported_trials_if_the_names_in_folders_are_not_flushed():
    done = run_program("tests.chaos", "--faults", "0", "--power-cuts", "3", "--forgetful", cwd=ROOT)
    assert done.returncode == 1
    assert "was reported, and a power cut has lost it" in done.stdout
