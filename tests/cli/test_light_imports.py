"""Nothing but training loads torch or Ray."""

import json
from pathlib import Path

import pytest

from .store_factories import make_partial_store

PROBE = """\
import atexit, json, sys
from activemem.__main__ import main
heavy = ("torch", "ray", "optuna", "polars", "pyarrow", "pydantic", "rich", "numpy", "matplotlib")
def tell():
    sys.stdout = open("loaded.json", "w")
    json.dump([name for name in heavy if name in sys.modules], sys.stdout)
    sys.stdout.close()
atexit.register(tell)
main()
"""

SIZES = ("--d-model", "8", "--length", "8", "--vocab", "8")


def loaded(arguments, run_python):
    """Which heavy modules a command has loaded when it ends."""
    result = run_python("-c", PROBE, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return set(json.loads(Path("loaded.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_of_all_loads_nothing_heavy_at_all(arguments, run_python):
    assert loaded(arguments, run_python) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("study", "run", "--help"),
        ("recipe", "check", "sa"),
        ("recipe", "show", "sa", *SIZES),
        ("block", "list"),
        ("block", "show", "sa"),
    ],
)
def test_help_and_recipes_load_no_more_than_typer_does(arguments, run_python):
    assert loaded(arguments, run_python) <= {"pydantic"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("study", "plan", "tiny.toml"),
        ("study", "status", "tiny"),
        ("study", "list"),
        ("study", "query", "SELECT * FROM metrics"),
        ("table", "render", "tiny", "--published"),
        ("claim", "check", "algorithmic"),
        ("report", "build", "tiny"),
        ("config", "show"),
        ("data", "list"),
        ("data", "check", "paradise-lost"),
    ],
)
def test_studies_and_tables_load_neither_torch_nor_ray(arguments, run_python, tiny):
    make_partial_store(tiny)
    assert not loaded(arguments, run_python) & {"torch", "ray", "optuna", "rich", "matplotlib"}
