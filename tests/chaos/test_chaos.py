"""Faults of a seeded schedule, a few in every run of the tests, a thousand by `make chaos`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    command = [sys.executable, "-m", "tests.chaos", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
