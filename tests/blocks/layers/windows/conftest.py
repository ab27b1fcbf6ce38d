"""What the tests of windows share."""

import pytest

from activemem.grammar.analysis import measured_costs


@pytest.fixture(autouse=True)
def _costs_are_not_remembered(monkeypatch):
    """Measure costs anew: these tests change how windows are computed, which other tests must not see."""
    monkeypatch.setattr(measured_costs._CacheFile, "recall", lambda self, key: None)
    monkeypatch.setattr(measured_costs._CacheFile, "keep", lambda self, key, numbers: numbers)
    measured_costs.measure.cache_clear()
    yield
    measured_costs.measure.cache_clear()
