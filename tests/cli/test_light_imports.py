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


def test_commands_load_no_more_than_they_need(run_python, tiny, tmp_path, monkeypatch):
    make_partial_store(tiny)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    help_of_all = ("--help",), ("--version",)
    recipes = ("study", "run", "--help"), ("recipe", "check", "sa"), ("list", "blocks")
    studies = (
        ("study", "list"),
        ("study", "status", "tiny"),
        ("study", "query", "SELECT * FROM metrics"),
        ("table", "render", "tiny", "--published"),
        ("claim", "check", "algorithmic"),
        ("config", "show"),
        ("data", "list"),
        ("data", "check", "paradise-lost"),
    )
    first_plan = ("study", "plan", "tiny.toml")
    found = loaded(run_python, *help_of_all, *recipes, *studies, first_plan)

    def loaded_by(commands, allowed):
        names = {command: found[" ".join(command)] - allowed for command in commands}
        return {command: each for command, each in names.items() if each}

    assert loaded_by(help_of_all, set()) == {}
    assert loaded_by(recipes, {"pydantic"}) == {}  # no more than typer does
    light = {"pydantic", "polars", "numpy", "pyarrow"}
    assert loaded_by(studies, light) == {}  # neither torch nor Ray
    assert "torch" in found["study plan tiny.toml"]
    assert "torch._dynamo" not in found["study plan tiny.toml"]


@pytest.mark.heavy
def test_costs_that_are_remembered_load_no_torch(process, run_python, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plans = ("study", "plan", "tiny.toml"), ("study", "plan", "muon-small")
    commands = (("recipe", "show", "sa", *SIZES), ("show", "sa"), *plans)
    for command in commands:
        assert process(*command).returncode == 0
    assert not any("torch" in names for names in loaded(run_python, *commands).values())


@pytest.mark.heavy
def test_a_first_plan_loads_torch_without_its_compiler_where_triton_is(
    run_python, tiny, tmp_path, monkeypatch
):
    """Torch for GPUs brings Triton along."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = loaded(run_python, ("study", "plan", "tiny.toml"), before=TRITON)["study plan tiny.toml"]
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
