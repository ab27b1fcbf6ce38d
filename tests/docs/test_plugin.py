"""The example package with a block, `docs/plugin`: installed and used."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from activemem import __version__

from ..forked_commands import run_command, run_program

PLUGIN = Path(__file__).parents[2] / "docs" / "plugin"
README = (PLUGIN / "README.md").read_text(encoding="utf-8")
SIZES = ("--d-model", "128", "--length", "40", "--vocab", "20")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder into which pip installed the example."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(PLUGIN, folder / "plugin")  # pip builds beside the sources
    options = ("--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check")
    target = ("--target", str(folder / "site"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *target, str(folder / "plugin")], check=True
    )
    return folder / "site"


@pytest.fixture
def run(site, tmp_path, monkeypatch):
    """Run a module with the example installed, in a new folder; return its output."""
    for variable in [name for name in os.environ if name.startswith("ACTIVEMEM_")]:
        monkeypatch.delenv(variable)

    def start(module, *words):
        program = run_command if module == "activemem" else partial(run_program, module)
        done = program(*words, cwd=tmp_path, environment={"PYTHONPATH": str(site)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return start


def test_recipes_with_the_block_are_checked_and_broken_down(run):
    text = "4 * (fading_memory(half_life=4) >> ff(512))"
    assert run("activemem", "recipe", "check", text).startswith(
        "4 * (fading_memory(half_life=4.0) >> ff(512))   id "
    )
    shown = run("activemem", "recipe", "show", text, *SIZES)
    assert re.search(r"├─ fading_memory\(half_life=4\.0\) +16,768 ", shown)


def test_the_block_is_listed_and_shown_with_its_package(run):
    listed = " ".join(run("activemem", "list", "blocks").split())
    assert re.search(r" fading_memory average of the sequence that .* · activemem-fading 0\.1\.0", listed)
    shown = run("activemem", "show", "fading_memory")
    assert re.search(r"\n  plug-in +activemem-fading 0\.1\.0\n", shown)
    assert "16,512 parameters" in " ".join(shown.split())


def test_its_own_tests_pass_with_the_conformance_suite_among_them(run):
    assert re.search(
        r"^\d\d passed in", run("pytest", "-q", "-p", "no:cacheprovider", str(PLUGIN)), re.MULTILINE
    )


def test_a_study_trains_it(run):
    run("activemem", "study", "run", str(PLUGIN / "fading.toml"), "--local")
    assert len(mixers(run)) == 3
    frame = run("activemem", "table", "render", "fading", "--format", "markdown")
    versions = re.findall(r"activemem (\S+(?: with \S+ [\d.]+)?)", frame)
    assert versions == [__version__, f"{__version__} with activemem-fading 0.1.0"]


def test_an_edited_module_makes_other_trials_of_those_that_use_it(run, site):
    def ids():
        plan = json.loads(run("activemem", "study", "plan", str(PLUGIN / "fading.toml"), "--json"))
        return {(each["trial"]["levels"]["mixer"], each["trial"]["id"]) for each in plan["trials"]}

    module, before = site / "activemem_fading" / "module.py", ids()
    source = module.read_text(encoding="utf-8")
    module.write_text(source + "# edited\n", encoding="utf-8")
    changed = before - ids()
    module.write_text(source, encoding="utf-8")
    assert changed == {(mixer, trial) for mixer, trial in before if "fading_memory" in mixer}
    assert (bool(changed), ids()) == (True, before)


@pytest.mark.slow
def test_the_workers_of_a_cluster_find_it(run):
    run("activemem", "study", "run", str(PLUGIN / "fading.toml"), "--ray")
    assert len(mixers(run)) == 3


def mixers(run):
    """Return the rows of the study's table with a number."""
    table = run("activemem", "table", "render", "fading", "--format", "csv")
    return re.findall(r'^"?(?:fading_memory|sa).*\d', table, re.MULTILINE)


def test_the_readme_names_the_files_and_the_entry_points_that_there_are():
    named = re.findall(r"^\| `([^`]+)` \|", README, re.MULTILINE)
    kept = [path for path in PLUGIN.rglob("*") if path.suffix in (".py", ".toml") and path.stem != "__init__"]
    assert sorted(named) == sorted(str(path.relative_to(PLUGIN)) for path in kept)
    snippet = re.search(r"^```toml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert snippet is not None
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tomllib.loads(snippet[1])["project"]["entry-points"] == project["entry-points"]
