"""The package comes with the costs that showing and planning its studies, and showing its blocks, need."""

import json
from pathlib import Path

import pytest

from activemem.grammar.analysis import measured_costs

FILE = Path(measured_costs.__file__).with_name("shipped_costs.json")
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies" / "results"
README_STUDY = ROOT / "docs" / "tutorial" / "steps" / "00" / "mine.toml"
SHOW = """\
import sys
from activemem import open_study
from activemem.__main__ import main
from activemem.grammar.vocabulary.spec import builtin_names
from activemem.grammar.analysis import measured_costs
from activemem.studies import make_plan
from activemem.studies.study import shipped_studies

how, results, readme_study, *names = sys.argv[1:]
if how == "measure":
    measured_costs.shipped_costs = dict
for name, path in shipped_studies().items():
    if name in names or not names:
        shown = open_study(str(path), results)
        if shown.study.tables:
            shown.tables()
        if shown.study.curves:
            shown.curves()
        shown.check_claims()
        empty = open_study(str(path), "empty")
        make_plan(empty.study, empty.store, memory=None)
if not names:
    commands = ["study", "new", f"{how}.toml"], *(["show", name] for name in builtin_names())
    for sys.argv[1:] in commands:
        try:
            main()
        except SystemExit as end:
            assert not end.code, sys.argv
    for written in (f"{how}.toml", readme_study):
        empty = open_study(written, "empty")
        make_plan(empty.study, empty.store, memory=None)
assert how == "measure" or "torch" not in sys.modules
"""


@pytest.fixture
def show(run_python, tmp_path, monkeypatch):
    """Show shipped studies with an empty cache; return the costs that were measured."""

    def run(how, *names):
        home = tmp_path / how
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        done = run_python("-c", SHOW, how, RESULTS, README_STUDY, *names)
        assert done.returncode == 0, done.stderr
        return {
            key: costs
            for path in home.glob("activemem/costs-*.json")
            for key, costs in json.loads(path.read_text(encoding="utf-8")).items()
        }

    return run


@pytest.mark.heavy
def test_costs_of_a_study_with_matched_states_are_those_that_are_measured(show):
    found = show("measure", "which-mixer-state")
    assert len(found) > 50
    assert found.items() <= measured_costs.shipped_costs().items()


@pytest.mark.heavy
def test_no_shipped_study_needs_torch_to_be_shown_and_all_costs_are_those_that_are_measured(show):
    found = show("measure")
    if not FILE.exists():  # it is written, and the next run compares
        lines = (f'"{key}":{json.dumps(found[key], separators=(",", ":"))}' for key in sorted(found))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert found == measured_costs.shipped_costs()
    assert show("recall") == {}
