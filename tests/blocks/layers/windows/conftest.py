"""Fixtures for the tests of windows."""

import pytest

from activemem.grammar.analysis import measured_costs


@pytest.fixture(autouse=True)
def _costs_are_not_remembered(monkeypatch):
    """Measure costs afresh, since these tests change how windows are computed."""
    monkeypatch.setattr(measured_costs._CacheFile, "recall", lambda self, key: None)
    monkeypatch.setattr(measured_costs._CacheFile, "keep", lambda self, key, numbers: numbers)
    measured_costs.measure.cache_clear()
    yield
    measured_costs.measure.cache_clear()
