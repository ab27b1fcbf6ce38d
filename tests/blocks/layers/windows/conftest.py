"""What the tests of windows share."""

import pytest

from activemem.grammar.analysis import measured_costs


@pytest.fixture(autouse=True)
def _costs_are_not_remembered(monkeypatch):
    """Measure costs anew: these tests change how windows are computed, which other tests must not see."""
    monkeypatch.setattr(measured_costs, "_remembered", lambda what, root, measure: measure())
    measures = (measured_costs.measure_block, measured_costs.measure_step)
    for measure in measures:
        measure.cache_clear()
    yield
    for measure in measures:
        measure.cache_clear()
