"""Some faults of a seeded schedule in every test run; a thousand with `make chaos`."""

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
