"""The coordinate check: with μP the size of activations does not grow with the width."""

import math

import pytest

from activemem import Store, load_plugin, load_study, open_study, run_study
from activemem.engine.probes.conformance import CHECKS

TEXT = """
[study]
name = "widths"
title = "Widths"
plugins = ["coordinates"]
design = "zip"
keep_weights = true

[model]
recipe = "sa(heads=2, head_width={head}) >> ff({filter})"
d_model = "{width}"
embedding = "unit"
position = "none"
dropout = 0.0
mup = 16

[factors]
width = [16, 64, 128]
head = [8, 32, 64]
filter = [32, 128, 256]

[[table]]
name = "sizes"
rows = "width"
value = ["coordinates[embedding]", "coordinates[1]", "coordinates[2]", "coordinates[output]"]

[task]
name = "word_problem"
lengths = [8, 8]

[train]
optimizer = { name = "adam", lr = 1e-2 }
batch_size = 16
epochs = 1
steps_per_epoch = 8
"""


@pytest.mark.parametrize("check", CHECKS)
def test_the_probe_conforms(check):
    load_plugin("coordinates")
    check("coordinates")


def exponents(text, folder):
    """Return the power of the width with which each layer's activations grow."""
    results = open_study(load_study(text), Store(folder))
    run_study(results.study, folder, local=True)
    for _, found in results.probe():
        assert all(each.reason is None for each in found)
    (table,) = open_study(results.study, Store(folder)).tables()
    by_metric = dict(
        table.frame().select("metric", "value").group_by("metric", maintain_order=True).all().rows()
    )
    return {name: math.log(sizes[-1] / sizes[0], 128 / 16) for name, sizes in by_metric.items()}


def test_with_mup_no_activations_grow_with_the_width_and_without_they_do(tmp_path):
    mup = exponents(TEXT, tmp_path / "mup")
    plain = exponents(TEXT.replace("mup = 16\n", ""), tmp_path / "plain")
    assert max(mup.values()) < 0.25
    assert min(plain["coordinates[1]"], plain["coordinates[2]"]) > 0.5
