"""Sampled designs: their cells, what they cannot separate, and their faults."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from activemem import StudyError, load_study

from ..study_texts import study_text


def study(design, factors, **keys):
    """Return a study whose factors are the kernels of single blocks, each with some levels."""
    body = " >> ".join(f"conv(k={{{name}}})" for name in factors)
    return load_study(
        study_text(
            study={"plugins": ["sampled_designs"], "design": design, **keys},
            model={"recipe": body},
            task={"name": "sort"},
            factors={name: list(range(3, 3 + count)) for name, count in factors.items()},
        )
    )


def two_levels(count):
    return {f"f{number}": 2 for number in range(count)}


def rows(found):
    """Return the number of each factor's level in each cell."""
    names = [name for name in found.factors if name != "seed"]
    return [tuple(found.factors[name].index(trial.levels[name]) for name in names) for trial in found.cells]


def aliases(design, factors):
    return study(design, factors).design.alias_words()


@pytest.mark.parametrize(
    ("resolution", "runs"),
    [  # the fewest runs of Box, Hunter and Hunter (1978), table 12.15
        ("III", {3: 4, 4: 8, 7: 8, 8: 16, 11: 16, 15: 16}),
        ("IV", {4: 8, 5: 16, 8: 16, 9: 32, 11: 32}),
        ("V", {5: 16, 6: 32, 7: 64, 8: 64, 11: 128}),
    ],
)
def test_a_fraction_has_its_resolution_in_the_fewest_runs(resolution, runs):
    strength = {"III": 2, "IV": 3, "V": 4}[resolution]
    for factors, count in runs.items():
        found = rows(study({"name": "fractional", "resolution": resolution}, two_levels(factors)))
        assert len(set(found)) == len(found) == count
        assert not any(found[0])  # the baseline
        for some in combinations(range(factors), strength):  # have all of their combinations equally often
            counts = Counter(tuple(row[number] for number in some) for row in found)
            assert set(counts.values()) == {count >> strength}


def test_a_fraction_begins_at_the_baseline_and_names_what_it_cannot_separate(golden):
    found = study({"name": "fractional", "resolution": "IV"}, two_levels(4), baseline={"f1": 4})
    assert rows(found)[0] == (0, 1, 0, 0)
    golden(found.design.alias_words())
    golden(found.design.explain())
    three = study({"name": "fractional", "resolution": "III"}, two_levels(4), around="f3").design
    golden(three.alias_words())
    assert three.explain().startswith("around each f3: 4 of 8 combinations")


@pytest.mark.parametrize("name", ["random", "latin_hypercube"])
def test_a_sample_of_all_cells_is_not_called_drawn(name):
    words = {count: study({"name": name, "cells": count}, two_levels(3)).design.explain() for count in (4, 8)}
    assert "4 of 8 combinations, drawn with seed 0" in words[4]
    assert words[8] == "all 8 combinations, as in a grid: nothing is drawn"


@pytest.mark.parametrize("factors", [2, 3, 7, 11, 15, 19, 20, 23])
def test_screening_designs_are_orthogonal_in_the_fewest_runs(factors):
    found = study("plackett_burman", two_levels(factors))
    signs = 1 - 2 * np.array(rows(found))
    assert len(signs) == 4 * (factors // 4 + 1)
    assert (signs[0] == 1).all()
    assert (signs.T @ signs == len(signs) * np.eye(factors)).all()
    assert not signs.sum(0).any()
    if len(signs) in (12, 20, 24):  # no main effect is an interaction
        assert found.design.alias_words() == []
        assert "partly with interactions" in found.design.explain()


@pytest.mark.parametrize(
    ("runs", "generator"),
    [  # Plackett and Burman (1946), p. 323
        (12, "++-+++---+-"),
        (20, "++--++++-+-+----++-"),
        (24, "+++++-+-++--++--+-+----"),
    ],
)
def test_screening_designs_are_the_published_ones_except_for_where_they_begin(runs, generator):
    found = rows(study("plackett_burman", two_levels(runs - 1)))
    ours = ["".join("-+"[level] for level in row) for row in found]
    shifts = {generator[at:] + generator[:at] for at in range(runs - 1)}
    assert set(ours[1:]) in (shifts, {shift[::-1] for shift in shifts})


HUGE = {f"f{number}": 10 for number in range(9)}


@pytest.mark.parametrize("name", ["random", "latin_hypercube"])
def test_a_sample_of_a_grid_of_a_billion_cells_lists_only_its_own_cells(name):
    found = study({"name": name, "cells": 24, "seed": 7}, HUGE)
    assert len(set(rows(found))) == len(found.cells) == 24
    assert found.design.explain().startswith("24 of 1,000,000,000 ")


def test_more_random_cells_and_levels_leave_what_is_drawn_as_it_is():
    few, more = (rows(study({"name": "random", "cells": count}, HUGE)) for count in (9, 24))
    assert more[:9] == few
    wider = rows(study({"name": "random", "cells": 9}, HUGE | {"f8": 11}))
    assert [row[:8] for row in wider] == [row[:8] for row in few]
    assert rows(study({"name": "random", "cells": 9, "seed": 1}, HUGE)) != few
    assert rows(study({"name": "random", "cells": 3}, {"a": 4, "b": 3})) == [(0, 2), (1, 0), (2, 0)]
    assert len(set(rows(study({"name": "random", "cells": 24}, {"a": 4, "b": 3, "c": 2})))) == 24


@pytest.mark.parametrize("cells", [1, 5, 12, 18, 24])
def test_each_level_of_a_hypercube_is_as_frequent_as_the_others_except_for_one(cells):
    sizes = {"a": 4, "b": 3, "c": 2}
    found = rows(study({"name": "latin_hypercube", "cells": cells}, sizes))
    assert len(set(found)) == cells
    for number, size in enumerate(sizes.values()):
        counts = Counter(row[number] for row in found)
        assert {counts[level] for level in range(size)} <= {cells // size, -(-cells // size)}


def test_a_hypercube_keeps_factors_apart_if_it_can_and_says_so_if_it_cannot(golden):
    for seed in range(20):
        found = study({"name": "latin_hypercube", "cells": 4, "seed": seed}, two_levels(3))
        assert all(
            len({(row[one], row[two]) for row in rows(found)}) == 4 for one, two in ((0, 1), (0, 2), (1, 2))
        )
    golden(found.design.explain())
    mixed = study({"name": "latin_hypercube", "cells": 2}, {"a": 2, "b": 2, "c": 3}).design
    golden(mixed.explain())
    golden(mixed.alias_words())
    assert aliases({"name": "latin_hypercube", "cells": 12}, {"a": 4, "b": 3, "c": 2}) == []


@pytest.mark.parametrize(
    ("design", "factors"),
    [
        ("fractional", two_levels(3)),
        ({"name": "fractional", "resolution": "VI"}, two_levels(3)),
        ("plackett_burman", {"f0": 3, "f1": 2}),
        ("plackett_burman", two_levels(24)),
        ({"name": "random", "seed": 3}, two_levels(3)),
        ({"name": "random", "cells": 9}, two_levels(3)),
    ],
)
def test_keys_and_factors_that_do_not_fit_a_design_are_reported(design, factors, golden):
    with pytest.raises(StudyError) as error:
        study(design, factors)
    golden([fault.message for fault in error.value.faults])
