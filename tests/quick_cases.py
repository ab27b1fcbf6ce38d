"""The cases of a parametrised test that the quick suite runs."""

from collections.abc import Iterable

import pytest


def one_in(count: int, cases: Iterable) -> list:
    """Return the cases as parameters, of which the quick suite runs one in `count`, and `make check` all.

    A case of several arguments is a tuple.
    """
    tuples = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [
        pytest.param(*each, marks=[pytest.mark.heavy] * (place % count > 0))
        for place, each in enumerate(tuples)
    ]
