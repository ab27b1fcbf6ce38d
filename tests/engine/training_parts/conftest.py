"""Faster evaluations of sentence pairs."""

import pytest

from activemem.engine.objectives import seq2seq


@pytest.fixture
def short_pairs(monkeypatch):
    """Score random pairs on a few symbols instead of a thousand sequences."""
    truncate = seq2seq._truncate
    monkeypatch.setattr(seq2seq, "_truncate", lambda split, _: truncate(split, 300))
