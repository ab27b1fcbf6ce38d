"""Points are as near as their recipes are alike, whatever words lead to them."""

import numpy as np
import pytest

from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.samplers.recipe_features import PLACES, RecipeFeatures
from activemem.studies.study import load_study


def features(recipe, **space):
    lines = "".join(f'{name} = "{each}"\n' for name, each in space.items())
    head = (
        STUDY[: STUDY.index("[search.space]")].replace("{mixer} >> ff(8)", recipe).replace('"{rate}"', "1e-3")
    )
    return RecipeFeatures(load_study(f"{head}[search.space]\n{lines}"))


@pytest.fixture(scope="module")
def two_layers():
    mixers = "choice(sa, conv(k=3), conv(k=9), conv(k=3) + sa, sa + conv(k=3))"
    return features("{a} >> {b}", a=mixers, b=mixers)


def apart(found, first, second):
    numbers = found.of([first, second])
    return float(((numbers[0] - numbers[1])[:PLACES] ** 2).sum())


def test_trees_that_share_more_are_nearer(two_layers):
    base = {"a": "conv(k=3)", "b": "sa"}
    one_number = apart(two_layers, base, {"a": "conv(k=9)", "b": "sa"})
    another_block = apart(two_layers, base, {"a": "sa", "b": "sa"})
    another_order = apart(two_layers, base, {"a": "sa", "b": "conv(k=3)"})
    assert 0 < one_number < another_block
    assert 0 < another_order < another_block


def test_a_sum_is_the_same_in_any_order(two_layers):
    assert two_layers.labels({"a": "conv(k=3) + sa", "b": "sa"}) == two_layers.labels(
        {"a": "sa + conv(k=3)", "b": "sa"}
    )


def test_a_repeat_is_its_copies_in_series():
    found = features("{whole}", whole="choice(2 * (sa >> ff(8)), sa >> ff(8) >> sa >> ff(8), sa >> ff(8))")
    repeated, written, once = (
        found.labels({"whole": each})
        for each in ("2 * (sa >> ff(8))", "sa >> ff(8) >> sa >> ff(8)", "sa >> ff(8)")
    )
    assert repeated == written != once


def test_dimensions_in_the_recipe_are_those_that_fill_holes():
    inside = features("integer(1, 3) * (choice(sa, conv(k=integer(3, 9))) >> ff(8))")
    filled = features(
        "{n} * ({mixer} >> ff(8))", n="integer(1, 3)", mixer="choice(sa, conv(k={k}))", k="integer(3, 9)"
    )
    one = {"count": 2, "choice": "conv(k=integer(3, 9))", "conv.k": 5}
    assert inside.labels(one) == filled.labels({"n": 2, "mixer": "conv(k={k})", "k": 5})


def test_numbers_are_nearer_the_closer_they_are_and_by_logarithms_where_these_are_drawn():
    found = RecipeFeatures(load_study(STUDY))
    rates = found.of(
        [{"mixer": "sa(heads={heads})", "heads": 1, "rate": rate} for rate in (1e-4, 1e-3, 1e-2)]
    )
    near, far = (float(((rates[0] - each) ** 2).sum()) for each in rates[1:])
    assert 0 < near < far
    assert float(((rates[1] - rates[2]) ** 2).sum()) == pytest.approx(near)


def test_features_are_the_same_in_every_process():
    found = features("{a}", a="choice(sa >> ff(8), sa)").of([{"a": "sa >> ff(8)"}])[0]
    assert sorted(np.flatnonzero(found).tolist()) == EXPECTED


EXPECTED = [7, 41, 152, 179, 190, 232, 247, 260, 266, 285, 334, 401, 442, 512]
