"""Evaluations of pairs that take no longer than others."""

import pytest

from activemem.engine.objectives import seq2seq


@pytest.fixture
def short_pairs(monkeypatch):
    """Drawn pairs are scored on a few symbols, not on all of a thousand sequences."""
    truncate = seq2seq._truncate
    monkeypatch.setattr(seq2seq, "_truncate", lambda split, _: truncate(split, 300))
