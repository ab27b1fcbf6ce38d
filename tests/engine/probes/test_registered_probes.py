"""Probes of plug-ins get the test examples of every kind of task; the suite detects violations."""

import pytest
import torch

from activemem import PluginError, load_study, register_probe
from activemem.engine import draw_test_batches
from activemem.engine.probes import conformance
from activemem.engine.probes.trained_models import trained_trials
from activemem.storage import Store
from activemem.studies import METRICS
from activemem.studies.catalog.metrics import PROBES

from ...registry_entries import replace_entry, restore_entries
from ...study_texts import study_text
from .probe_factories import NAIVE, make_study, store_outcomes


def width(model, batches):
    return {"": model.config.settings.d_model, "batches": sum(1 for _ in batches)}


@pytest.fixture(autouse=True)
def _registered():
    """Register a probe of all kinds of task during these tests."""
    register_probe("test_width", title="Width of the outputs")(width)
    yield
    restore_entries()  # else the replaced probe would come back after it is gone
    for registry in (PROBES, METRICS):
        registry.unregister("test_width")


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_a_probe_of_every_kind_conforms(check):
    check("test_width")


@pytest.mark.parametrize(
    ("measure", "check"),
    [
        (lambda model, batches: {"": float("nan")}, "numbers_are_measured"),
        (lambda model, batches: {}, "numbers_are_measured"),
        (lambda model, batches: {"a b": 1}, "numbers_are_measured"),
        (lambda model, batches: {"": torch.rand(1)}, "measured_again_it_is_the_same"),
        (lambda model, batches: {"": bool(model.train())}, "model_is_left_alone"),
    ],
)
def test_the_suite_finds_violations_of_probes(measure, check, monkeypatch, golden):
    probe = PROBES["test_width"]
    replace_entry(PROBES, "test_width", type(probe)(name=probe.name, measure=measure, kinds=probe.kinds))
    with golden.raises((AssertionError, PluginError)):
        getattr(conformance, check)("test_width")


@pytest.mark.parametrize(
    ("task", "train", "batches"),
    [
        ({}, {}, [(8, 5)]),
        ({"test_lengths": [3, 9], "test_examples": 10}, {}, [(8, 3), (2, 3), (8, 9), (2, 9)]),
        ({"dev_examples": 12}, {"curriculum": None, "lengths": [2, 3]}, [(6, 2), (6, 3)]),
    ],
)
def test_batches_are_those_that_a_model_is_tested_on(task, train, batches, tmp_path):
    text = study_text(
        model={"recipe": "ff(8)"}, task={"name": "reverse", **task}, train={"batch_size": 8, **train}
    )
    found = list(draw_test_batches(load_study(text).trials[0], tmp_path))
    assert [tuple(examples.inputs.shape) for examples in found] == batches
    assert all(examples.targets.shape == examples.inputs.shape for examples in found)


def test_measurements_of_one_probe_stay_next_to_those_of_another(tmp_path):
    store, study = Store(tmp_path), make_study(NAIVE)
    store_outcomes(store, study)
    (trained,) = trained_trials(study, store)
    for names in (("a", "a[1]"), ("b",), ("a[2]",)):
        store.write_probes(trained.row, trained.metric_rows(dict.fromkeys(names, 1.0)))
    named = store.trials({"a", "a[1]", "a[2]", "b"})["metrics"][0]
    assert {metric["name"] for metric in named} >= {"a[2]", "b"}
    assert not {"a", "a[1]"} & {metric["name"] for metric in named}
