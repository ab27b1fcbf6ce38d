"""Attention of trained models, as probes with a heat map."""

import polars as pl
import pytest

from activemem import Store, load_study, open_study, run_study
from activemem.engine.probes.registered_probes import run_registered_probes

from ..study_texts import study_text

TEXT = study_text(
    study={"plugins": ["attention_maps"], "keep_weights": True},
    model={"recipe": "sa(heads=2, head_width=4) >> sa(heads=2, head_width=4, span=1)"},
    task={"name": "reverse"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "epochs": 1, "steps_per_epoch": 1},
    factors={"seed": [0]},
    curve=[{"name": "map", "kind": "heat", "value": "attention_map", "x": "index2", "y": "index"}],
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    study, store = load_study(TEXT), Store(tmp_path_factory.mktemp("results"))
    run_study(study, store, local=True)
    assert [each.reason for each in run_registered_probes(study, store)] == [None, None]
    return open_study(study, store)


def test_the_weights_of_each_query_add_up_to_1_and_fill_a_heat_map(results):
    rows = results.store.metrics(None, {"attention_map"}).filter(pl.col("name").str.contains(r"\[\d+,"))
    sums = rows.group_by(query=pl.col("name").str.extract(r"\[(\d+),")).agg(pl.col("value").sum())
    assert sums["value"].to_list() == pytest.approx([1.0] * len(sums), abs=1e-5)
    (curve,) = results.curves()
    assert "Attention weight" in curve.render().decode()


def test_a_layer_with_a_short_window_looks_less_far(results):
    metrics = results.store.metrics(None, {"attention_distance"})
    far, near = metrics.filter(name="attention_distance[1]"), metrics.filter(name="attention_distance[2]")
    assert far["value"].item() > 1.0 >= near["value"].item() > 0.0
