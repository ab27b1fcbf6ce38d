"""Distances of points depend on their recipes, not on the spelling of the space."""

from random import Random

import numpy as np
import pytest

from activemem import load_study
from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.samplers.gp_trees import PLACES, RecipeFeatures
from activemem.engine.run.search.samplers.search_observations import distribution, draw

NUMBERS = {
    "h": "integer(1, 4)",
    "k": "integer(2, 8)",
    "n": "integer(1, 12)",
    "w": "choice(8, 16, 32)",
}
INNER = {"inner": "choice(conv(k={k}), sa(heads={h}) >> gru, sa)"}


def searched(recipe, **space):
    lines = "".join(f'{name} = "{each}"\n' for name, each in space.items())
    head = (
        STUDY[: STUDY.index("[search.space]")].replace("{mixer} >> ff(8)", recipe).replace('"{rate}"', "1e-3")
    )
    return load_study(f"{head}[search.space]\n{lines}")


def features(recipe, **space):
    return RecipeFeatures(searched(recipe, **space))


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


@pytest.mark.parametrize(
    ("recipe", "space"),
    [
        ("{mixer} >> ff(8)", {"mixer": "choice(sa(heads={h}), conv(k={k}) + gru)", **NUMBERS}),
        ("{n} * ({mixer} >> ff({w}))", {"mixer": "choice({inner} >> gru, sa, {inner})", **INNER, **NUMBERS}),
        ("tied({n} * {mixer}) >> {n} * ff({w})", {"mixer": "choice({inner}, gru >> sa)", **INNER, **NUMBERS}),
        ("{n} * (choice(sa, {mixer}) >> ff({w}))", {"mixer": "choice(2 * gru, {inner})", **INNER, **NUMBERS}),
    ],
)
def test_a_row_counts_the_labels_of_its_point_whichever_others_are_asked_for(recipe, space):
    used = {name: each for name, each in space.items() if f"{{{name}}}" in recipe + " ".join(space.values())}
    study = searched(recipe, **used)
    found, rng = RecipeFeatures(study), Random(0)
    distributions = {name: distribution(each) for name, each in study.dimensions.items()}
    points = [study.search.choose(lambda name, _: draw(distributions[name], rng)) for _ in range(200)]
    one_by_one = np.vstack([found.of([each]) for each in points])
    np.testing.assert_array_equal(found.of(points), one_by_one)
    for row, values in zip(one_by_one, points, strict=True):
        counts = np.zeros(PLACES)
        for label, occurs in found.labels(values).items():
            counts[label % PLACES] += occurs
        np.testing.assert_array_equal(row[:PLACES], np.sqrt(counts))


def test_features_are_the_same_in_every_process():
    found = features("{a}", a="choice(sa >> ff(8), sa)").of([{"a": "sa >> ff(8)"}])[0]
    assert sorted(np.flatnonzero(found).tolist()) == EXPECTED


EXPECTED = [7, 41, 152, 179, 190, 232, 247, 260, 266, 285, 334, 401, 442, 512]
