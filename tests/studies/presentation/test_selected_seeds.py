"""The words for a choice among the seeds of a study."""

import pytest

from activemem.studies.presentation.kinds import selected_seeds


@pytest.mark.parametrize(
    ("select", "seeds", "told"),
    [
        ({}, (0, 1, 2), ""),
        ({"task": "sort"}, (0, 1, 2), ""),
        ({"seed": [2, 1, 0]}, (0, 1, 2), ""),
        ({"seed": 2}, (0, 1, 2), "seed 2 of 0 to 2 (selected)"),
        ({"seed": [0, 2]}, (0, 1, 2), "seeds 0 and 2 of 0 to 2 (selected)"),
        ({"seed": [7]}, (7, 1, 30), "seed 7 of 1, 7 and 30 (selected)"),
    ],
)
def test_selected_seeds_are_named_beside_all_of_the_study(select, seeds, told):
    assert selected_seeds(select, {"seed": seeds, "task": ("sort", "reverse")}) == told
