"""The package comes with the costs that loading and showing its studies need."""

import json
from pathlib import Path

import pytest

from activemem.grammar.analysis import measured_costs

FILE = Path(measured_costs.__file__).with_name("shipped_costs.json")
SHOW = """\
import sys
from activemem import open_study
from activemem.grammar.analysis import measured_costs
from activemem.studies import shipped_studies

if sys.argv[1] == "measure":
    measured_costs.shipped_costs = dict
for name, path in shipped_studies().items():
    if name in sys.argv[3:] or not sys.argv[3:]:
        shown = open_study(str(path), sys.argv[2])
        if shown.study.tables:
            shown.tables()
        if shown.study.curves:
            shown.curves()
        shown.check_claims()
assert sys.argv[1] == "measure" or "torch" not in sys.modules
"""


@pytest.fixture
def show(run_python, tmp_path, monkeypatch):
    """Show shipped studies with an empty cache; return the costs that were measured."""

    def run(how, *names):
        home = tmp_path / how
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        results = Path(measured_costs.__file__).parents[2] / "studies" / "results"
        done = run_python("-c", SHOW, how, results, *names)
        assert done.returncode == 0, done.stderr
        return {
            key: costs
            for path in home.glob("activemem/costs-*.json")
            for key, costs in json.loads(path.read_text(encoding="utf-8")).items()
        }

    return run


def test_costs_of_a_study_with_matched_states_are_those_that_are_measured(show):
    found = show("measure", "which-mixer-state")
    assert len(found) > 100
    assert found.items() <= measured_costs.shipped_costs().items()


@pytest.mark.heavy
def test_no_shipped_study_needs_torch_to_be_shown_and_all_costs_are_those_that_are_measured(show):
    found = show("measure")
    if not FILE.exists():  # it is written, and the next run compares
        lines = (f"{json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    assert found == measured_costs.shipped_costs()
    assert show("recall") == {}
