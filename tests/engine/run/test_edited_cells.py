"""Parts that cells of a notebook and scripts register: an edit is noticed, and results can be kept."""

import runpy

import pytest

from activemem import PluginError, keep_stale_trials, load_study, open_study, run_study
from activemem.engine import Machine
from activemem.storage import Store
from activemem.studies import METRICS

from ...notebook import Notebook
from ...study_texts import notes_on, study_text

CALLBACK = """
from activemem import Callback, register_callback

@register_callback("cell_callback", title="A callback", source="own", metrics={"drift": "Distance"})
class Drift(Callback):
    def on_epoch_end(self, moment):
        return {"drift": SCALE * 1.0}
"""
METRIC = """
from activemem import register_metric

@register_metric("cell_metric", title="Half", higher_is_better=True, kinds=["tagging"])
class Half:
    def update(self, outputs, targets): pass
    def compute(self): return 0.5
"""


@pytest.fixture
def notebook():
    """Return a notebook whose cells may register the callback and the metric."""
    yield Notebook()
    METRICS.unregister("cell_metric")  # which would be measured in all other tests


def study(*columns):
    return load_study(
        study_text(
            model={"d_model": 8},
            task={"dev_examples": 8},
            train={
                "curriculum": None,
                "lengths": [2, 4],
                "epochs": 1,
                "steps_per_epoch": 2,
                "callbacks": [{"name": "cell_callback"}],
            },
            factors={"mixer": ["conv(k=3)", "sa"], "task": ["sort"], "seed": [0]},
            table=[{"name": "t", "rows": "mixer", "value": list(columns)}],
        )
    )


def trained(found, store):
    return run_study(found, store, Machine(data=store.root), local=True).ran


def stale(found, store):
    results = open_study(found, store)
    status = results.status
    assert bool(notes_on(results.plan(), "stale")) == bool(status.stale)
    return len(status.stale), status.summary()


def test_trials_of_an_edited_cell_are_stale_and_can_be_kept(notebook, tmp_path):
    store = Store(tmp_path / "results")
    notebook.run("SCALE = 1", CALLBACK)
    first = study("drift")
    assert trained(first, store) == 2
    assert stale(first, store)[0] == 0
    notebook.run(f"{CALLBACK}# a comment")
    commented = study("drift")
    assert stale(commented, store) == (
        2,
        "0 of 2 trials done · 2 left · 2 stored trials are from other versions of the code "
        "(the notebook cell of callback cell_callback)",
    )
    assert len(keep_stale_trials(commented, store)) == 2
    assert trained(commented, store) == 0
    notebook.run(CALLBACK.replace("SCALE * 1.0", "7.0"))
    edited = study("drift")
    assert stale(edited, store)[0] == 2
    assert trained(edited, store) == 2
    assert open_study(edited, store).trials["drift"].to_list() == [7.0, 7.0]


def test_trials_of_an_edited_script_are_stale(notebook, tmp_path):
    path, store = tmp_path / "program.py", Store(tmp_path / "results")
    path.write_text(f"SCALE = 1\n{CALLBACK}", encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    assert trained(study("drift"), store) == 2
    path.write_text(f"SCALE = 1\n{CALLBACK}\n# a comment\n", encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    many, summary = stale(study("drift"), store)
    assert many == 2
    assert summary.endswith("from other versions of the code (the script program.py)")
    assert len(keep_stale_trials(study("drift"), store)) == 2


def test_a_table_says_that_values_of_a_metric_are_older_than_its_cell(notebook, tmp_path):
    store = Store(tmp_path / "results")
    notebook.run("SCALE = 1", CALLBACK, METRIC)
    found = study("cell_metric")
    trained(found, store)
    told = (
        "cell_metric was measured by another version of the notebook cell of metric cell_metric in 2 trials"
    )

    def shown():
        return " ".join(str(open_study(study("cell_metric"), store).table()).split())

    assert told not in shown()
    assert "with the notebook cell of callback cell_callback" in shown()
    notebook.run(METRIC.replace("0.5", "50"))
    assert told in shown()
    notebook.run(METRIC)
    assert told not in shown()


def test_a_study_that_is_older_than_an_edit_says_that_it_must_be_loaded_again(notebook, tmp_path):
    store = Store(tmp_path / "results")
    notebook.run("SCALE = 1", CALLBACK)
    found = study("drift")
    notebook.run(CALLBACK.replace("SCALE", "2"))
    with pytest.raises(PluginError) as caught:
        trained(found, store)
    assert str(caught.value) == (
        "the code of callback cell_callback was edited since the study tiny was loaded: "
        "load it again with load_study, and run what this returns"
    )
    assert store.trials().is_empty()
    assert trained(study("drift"), store) == 2
