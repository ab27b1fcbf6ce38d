"""Nothing but training loads torch or Ray."""

import json
from pathlib import Path

from .store_factories import make_partial_store

PROBE = """\
import json, sys
from activemem.__main__ import main
heavy = ("torch", "ray", "optuna", "polars", "pyarrow", "pydantic", "rich", "numpy", "matplotlib")
loaded = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
    loaded.append([name for name in heavy if name in sys.modules])
json.dump(loaded, open("loaded.json", "w"))
"""

SIZES = ("--d-model", "8", "--length", "8", "--vocab", "8")


def loaded(run_python, *commands):
    """Which heavy modules are loaded after each of these commands, run one after the other in one process."""
    result = run_python("-c", PROBE, json.dumps(commands))
    assert (result.returncode, result.stderr) == (0, "")
    found = map(set, json.loads(Path("loaded.json").read_text(encoding="utf-8")))
    return dict(zip(map(" ".join, commands), found, strict=True))


def test_help_of_all_loads_nothing_heavy_at_all(run_python):
    found = loaded(run_python, ("--help",), ("--version",))
    assert found == {"--help": set(), "--version": set()}


def test_help_and_recipes_load_no_more_than_typer_does(run_python):
    found = loaded(
        run_python,
        ("study", "run", "--help"),
        ("recipe", "check", "sa"),
        ("recipe", "show", "sa", *SIZES),
        ("block", "list"),
        ("block", "show", "sa"),
    )
    assert {command: names - {"pydantic"} for command, names in found.items() if names - {"pydantic"}} == {}


def test_studies_and_tables_load_neither_torch_nor_ray(run_python, tiny):
    make_partial_store(tiny)
    found = loaded(
        run_python,
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
    )
    heavy = {"torch", "ray", "optuna", "rich", "matplotlib"}
    assert {command: names & heavy for command, names in found.items() if names & heavy} == {}
