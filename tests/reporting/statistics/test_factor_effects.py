"""Effects by a linear model: hand-computed, by another parametrisation, and not estimable."""

import itertools
import random

import numpy as np
import pytest
import scipy

from activemem.reporting.statistics import FactorModel, TermColumns, holm_adjusted


def columns(cells, seeds, lost=()):
    """Return the columns of cells with seeds, without these observations."""
    rows = [(cell, seed) for cell in cells for seed in range(seeds)]
    rows = [row for at, row in enumerate(rows) if at not in lost]
    levels = {name: [cell[at] for cell, _ in rows] for at, name in enumerate("abcd"[: len(cells[0])])}
    return TermColumns(levels=levels, seeds=[seed for _, seed in rows])


def by_term(model):
    return {effect.term: effect for effect in model.effects()}


def test_two_by_two_by_hand():
    # cells 00, 01, 10 and 11 have the means 2, 4, 5 and 11
    terms = columns([(0, 0), (0, 1), (1, 0), (1, 1)], 2)
    model = FactorModel(terms, [1.5, 2.5, 3.5, 4.5, 4.5, 5.5, 10.0, 12.0])
    effects = by_term(model)
    assert effects["a",].contrasts[0].value == pytest.approx((5 + 11) / 2 - (2 + 4) / 2)
    assert effects["b",].contrasts[0].value == pytest.approx((4 + 11) / 2 - (2 + 5) / 2)
    assert effects["a", "b"].contrasts[0].value == pytest.approx((11 - 5) - (4 - 2))
    # the seeds differ by 1, 1, 1 and 2, by 1.25 in the mean: each cell has half of what is left over, twice
    assert model.error.variance == pytest.approx(2 * (3 * 0.125**2 + 0.375**2) / 3)
    assert model.error.degrees == 3
    squares = 2 * np.array([5**2, 4**2, 2**2])  # N effect² / 4, the effect of an interaction halved
    total = np.var([1.5, 2.5, 3.5, 4.5, 4.5, 5.5, 10.0, 12.0]) * 8
    assert [effect.share for effect in effects.values()] == pytest.approx(squares / total)
    assert model.shares["seeds"] == pytest.approx(2 * 1.25**2 / total)
    assert model.means(("a",))[1].value == pytest.approx(8)
    assert [each.value for each in model.means(("a", "b"))] == pytest.approx([2, 4, 5, 11])


def treatment_model(terms, kept):
    """Return the same model with first levels as references, and the columns of each term."""
    parts, places, start = [np.ones((len(terms.seeds), 1))], {}, 1
    numbers = {("seed",): ["seed"]} | {term: list(term) for term in kept}
    levels = terms.levels | {"seed": terms.seeds}
    for term, names in numbers.items():
        block = np.ones((len(terms.seeds), 1))
        for name in names:
            codes = np.eye(max(levels[name]) + 1)[levels[name]][:, 1:]
            block = (block[:, :, None] * codes[:, None, :]).reshape(len(block), -1)
        parts.append(block)
        places[term] = range(start, start + block.shape[1])
        start += block.shape[1]
    return np.hstack(parts), places


def left_over(model, y):
    return float(((y - model @ np.linalg.lstsq(model, y, rcond=None)[0]) ** 2).sum())


@pytest.mark.parametrize("lost", [(), (3, 10, 25)], ids=["balanced", "trials without a value"])
def test_another_parametrisation_gives_the_same(lost):
    draw = random.Random(1)
    terms = columns(list(itertools.product(range(3), range(2), range(2))), 3, lost)
    y = np.array(
        [
            draw.gauss(a * b, 1) + seed
            for a, b, seed in zip(terms.levels["a"], terms.levels["b"], terms.seeds, strict=True)
        ]
    )
    model, pairs = FactorModel(terms, y), [("a", "b"), ("a", "c"), ("b", "c")]
    full, places = treatment_model(terms, [("a",), ("b",), ("c",), *pairs])
    # marginal means are means of fitted values over all cells and seeds
    fitted = np.linalg.lstsq(full, y, rcond=None)[0]
    every = columns(list(itertools.product(range(3), range(2), range(2))), 3)
    grid = treatment_model(every, [("a",), ("b",), ("c",), *pairs])[0] @ fitted
    means = [grid[np.array(every.levels["a"]) == level].mean() for level in range(3)]
    assert [each.value for each in model.means(("a",))] == pytest.approx(means)
    assert [each.value for each in model.deviations("a")] == pytest.approx(np.array(means) - grid.mean())
    # the sum of squares of an interaction is what is left over more without it, whatever the parametrisation
    total = ((y - y.mean()) ** 2).sum()
    for pair in pairs:
        without = np.delete(full, list(places[pair]), axis=1)
        share = (left_over(without, y) - left_over(full, y)) / total
        assert by_term(model)[pair].share == pytest.approx(share)
    # the error is what cells and seeds leave over
    cells = np.unique(np.array(list(terms.levels.values())).T, axis=0, return_inverse=True)[1].ravel()
    saturated = np.hstack([np.eye(12)[cells], np.eye(3)[terms.seeds][:, 1:]])
    assert model.error.variance == pytest.approx(left_over(saturated, y) / (len(y) - 14))
    assert model.error.degrees == len(y) - 14


def test_p_is_that_of_the_f_test_where_seeds_and_cells_vary_alike():
    terms = columns([(0, 0), (0, 1), (1, 0), (1, 1)], 4)
    hadamard = np.array(
        [1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1, -1, 1, 1, -1.0]
    )  # alike in all cells and seeds
    y = np.array([0.3 * a for a in terms.levels["a"]]) + hadamard
    model = FactorModel(terms, y)
    effects = model.effects()
    raw = []
    for effect in effects:
        f = effect.share * ((y - y.mean()) ** 2).sum() / model.error.variance / model._inflation(effect.term)
        raw.append(scipy.stats.f.sf(f, 1, model.error.degrees))
    assert [effect.p for effect in effects] == pytest.approx(holm_adjusted(raw))


def test_an_effect_that_varies_from_seed_to_seed_has_an_error_of_its_own():
    terms = columns([(0, 0), (0, 1), (1, 0), (1, 1)], 4)
    noise = np.array([1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1, -1, 1, 1, -1.0])
    by_seed = np.array([a * (-1) ** seed for a, seed in zip(terms.levels["a"], terms.seeds, strict=True)])
    varied = by_term(FactorModel(terms, noise + 3.0 * by_seed))
    assert varied["a",].varies_more
    assert not varied["b",].varies_more
    assert varied["a",].contrasts[0].error > varied["b",].contrasts[0].error


def test_a_trial_of_several_cells_counts_once_in_the_noise():
    # the first level of a does not use b, so its three cells are the same two trials
    terms = columns(list(itertools.product(range(2), range(3))), 2)
    trials = [0, 1] * 3 + list(range(2, 8))
    terms = TermColumns(levels=terms.levels, seeds=terms.seeds, trials=trials)
    values = np.array([1.5, 2.5, 3.5, 4.5, 4.5, 5.5, 10.0, 12.0])
    model = FactorModel(terms, values[trials])
    # as in four cells of 2 trials each, whose seeds differ by 1, 1, 1 and 2
    assert model.error.degrees == 3
    assert model.error.variance == pytest.approx(2 * (3 * 0.125**2 + 0.375**2) / 3)
    contrast = by_term(model)["a",].contrasts[0]
    assert contrast.value == pytest.approx((4 + 5 + 11) / 3 - 2)
    assert contrast.error >= np.sqrt(model.error.variance * (1 / 2 + 1 / 6))
    alone = model.means(("a",))[0]
    assert alone.value == pytest.approx(2)
    assert alone.error >= np.sqrt(model.error.variance / 2)


def test_a_half_fraction_names_what_it_confuses():
    cells = [(*cell, sum(cell) % 2) for cell in itertools.product(range(2), repeat=3)]
    draw = random.Random(2)
    terms = columns(cells, 2)
    effects = by_term(FactorModel(terms, [draw.random() for _ in terms.seeds]))
    assert all(effects[name,].contrasts and not effects[name,].aliases for name in "abcd")
    assert effects["a", "b"].aliases == (("c", "d"),)
    assert not effects["a", "b"].contrasts
    assert effects["a", "b"].p is None


def test_factors_confounded_with_interactions_say_so_and_confounded_factors_have_no_effect():
    draw = random.Random(3)
    terms = columns([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)], 2)
    effects = by_term(FactorModel(terms, [draw.random() for _ in terms.seeds]))
    assert effects["a",].contrasts
    assert effects["a",].aliases == (("b", "c"),)
    assert effects["a", "b"].aliases == (("c",),)
    in_step = columns([(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)], 2)
    effects = by_term(FactorModel(in_step, [draw.random() for _ in in_step.seeds]))
    assert not effects["a",].contrasts
    assert effects["a",].aliases == (("b",),)
    assert effects["c",].contrasts


def test_without_noise_nothing_is_claimed():
    terms = columns([(0, 0), (0, 1), (1, 0), (1, 1)], 3)
    model = FactorModel(terms, [float(a) for a in terms.levels["a"]])
    assert model.error is None
    first = model.effects()[0]
    assert first.contrasts[0].value == pytest.approx(1)
    assert (first.contrasts[0].low, first.p) == (None, None)
    assert first.share == pytest.approx(1)
    constant = FactorModel(terms, [7.0] * 12)
    assert [effect.share for effect in constant.effects()] == [None] * 3


def test_one_seed_takes_its_error_from_what_the_model_leaves():
    draw = random.Random(4)
    terms = columns(list(itertools.product(range(2), repeat=3)), 1)
    model = FactorModel(terms, [draw.random() for _ in terms.seeds])
    assert (model.error.degrees, model.error.is_within_cells) == (1, False)
    saturated = FactorModel(columns([(0, 0), (0, 1), (1, 0), (1, 1)], 1), [1.0, 2.0, 3.0, 5.0])
    assert saturated.error is None
