"""What the tests of windows share."""

import pytest

from activemem.grammar.analysis import measured_costs


@pytest.fixture(autouse=True)
def _costs_are_not_remembered(monkeypatch):
    """Measure costs anew: these tests change how windows are computed, which other tests must not see."""

    def measure(block, config, length, past):
        return measured_costs._meter().measure_block(block, config, length, past)

    monkeypatch.setattr(measured_costs, "_measure_block", measure)
