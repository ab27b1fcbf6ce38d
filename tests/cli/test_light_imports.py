"""Only training imports torch or Ray."""

import json
from pathlib import Path

import pytest

from .store_factories import make_partial_store

PROBE = """\
import json, sys
from activemem.__main__ import main
heavy = ("torch", "ray", "optuna", "polars", "pyarrow", "pydantic", "rich", "numpy", "matplotlib")
heavy += ("torch._dynamo",)  # torch's compiler
loaded = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        unrun = arguments[0] == "claim"  # claims of a study that has not run end with 1
        assert end.code in ((1,) if unrun else (None, 0)), (arguments, end.code)
    loaded.append([name for name in heavy if name in sys.modules])
json.dump(loaded, open("loaded.json", "w"))
"""

# of triton only the class whose kernels a plan leaves out
TRITON = """\
import sys, types
class KernelInterface:
    def __getitem__(self, grid): raise NotImplementedError
sys.modules["triton.runtime.jit"] = types.SimpleNamespace(KernelInterface=KernelInterface)
"""

SIZES = ("--d-model", "8", "--length", "8", "--vocab", "8")


def loaded(run_python, *commands, before=""):
    """Return the heavy modules loaded after each command, in one process that first runs `before`."""
    result = run_python("-c", before + PROBE, json.dumps(commands))
    assert result.returncode == 0, result.stderr
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
        ("list", "blocks"),
    )
    assert {command: names - {"pydantic"} for command, names in found.items() if names - {"pydantic"}} == {}


def test_studies_and_tables_load_neither_torch_nor_ray(run_python, tiny):
    make_partial_store(tiny)
    found = loaded(
        run_python,
        ("study", "status", "tiny"),
        ("study", "query", "SELECT * FROM metrics"),
        ("table", "render", "tiny", "--published"),
        ("claim", "check", "algorithmic"),
        ("config", "show"),
        ("json-schema",),
        ("data", "list"),
        ("data", "check", "paradise-lost"),
    )
    heavy = {"torch", "ray", "optuna", "rich", "matplotlib"}
    assert {command: names & heavy for command, names in found.items() if names & heavy} == {}


def test_a_first_list_of_studies_loads_no_torch(run_python, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "torch" not in loaded(run_python, ("study", "list"))["study list"]


@pytest.mark.heavy
def test_costs_that_are_remembered_load_no_torch(process, run_python, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plans = ("study", "plan", "tiny.toml"), ("study", "plan", "muon-small")
    commands = (("recipe", "show", "sa", *SIZES), ("show", "sa"), *plans)
    for command in commands:
        assert process(*command).returncode == 0
    assert not any("torch" in names for names in loaded(run_python, *commands).values())


@pytest.mark.parametrize(
    "before",
    ["", pytest.param(TRITON, marks=pytest.mark.heavy)],
    ids=["alone", "with triton, as torch for GPUs brings it"],
)
def test_a_first_plan_loads_torch_without_its_compiler(run_python, tiny, tmp_path, monkeypatch, before):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = loaded(run_python, ("study", "plan", "tiny.toml"), before=before)["study plan tiny.toml"]
    assert "torch" in names
    assert "torch._dynamo" not in names


@pytest.mark.heavy
def test_a_run_without_trackers_loads_nothing_of_them(run_python, tiny):
    code = "import sys; from activemem.__main__ import main\ntry: main()\nexcept SystemExit: pass\n"
    shown = "print([name for name in sys.modules if name.startswith('activemem.tracking.')], file=sys.stderr)"
    ran = run_python("-c", code + shown, "study", "run", tiny, "--local", "--max-trials", "1", "--json")
    assert ran.stderr.splitlines()[-1] == "[]", ran.stderr


def test_a_study_is_read_without_what_reads_a_store_and_draws(run_python):
    heavy = "{'polars', 'numpy', 'matplotlib', 'activemem.storage.store'}"
    code = "import sys; from activemem import load_study; load_study('quickstart')"
    assert run_python("-c", f"{code}; print({heavy} & {{*sys.modules}})").stdout.strip() == "set()"
