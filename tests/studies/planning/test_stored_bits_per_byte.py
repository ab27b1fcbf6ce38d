"""Bits per byte of committed rows, which were stored before bits per byte were measured."""

import math
from pathlib import Path

import polars as pl
import pytest

from activemem import load_study
from activemem.reporting.outcomes import load_outcomes
from activemem.storage import Store
from activemem.studies.planning.final_values import final_value, with_bits_per_byte

RESULTS = Path(__file__).parents[3] / "studies" / "results"


def task_by_trial(study):
    return {trial.id: trial.settings.task for trial in load_study(study).trials}


def finals(study, *names):
    """Return the final values of metrics in a study's committed rows."""
    found, tasks = load_outcomes(Store(RESULTS), load_study(study)), task_by_trial(study)
    rows = with_bits_per_byte(found, names, tasks)
    rows = rows.filter(pl.col("trial").is_in(list(tasks)), pl.col("status") == "done")
    return list(rows.select(*(final_value(name).alias(name) for name in names)).iter_rows())


def test_a_character_is_a_byte():
    rows = finals("attention-variants-small", "test_bits_per_byte", "test_bpc")
    assert len(rows) > 3
    assert all(bits == pytest.approx(other, rel=1e-12) for bits, other in rows)


def test_words_of_wikitext_have_the_bytes_of_its_file():
    rows = finals("all-attention-words-small", "test_bits_per_byte", "test_perplexity")
    size, words = 1_256_449 - len(" \n"), 245_569 - 1  # the first word of the file is given
    assert len(rows) == 6
    for bits, perplexity in rows:
        assert bits == pytest.approx(math.log2(perplexity) * words / size, rel=1e-12)


def test_lower_case_tokens_have_no_bits_per_byte():
    assert {bits for (bits,) in finals("language-modelling-small", "test_bits_per_byte")} == {None}


def test_a_row_with_bits_per_byte_keeps_them():
    names = ("test_bits_per_byte",)
    found = load_outcomes(Store(RESULTS), load_study("all-attention-words-small"))
    tasks = task_by_trial("all-attention-words-small")
    once = with_bits_per_byte(found, names, tasks)
    assert with_bits_per_byte(once, names, tasks).equals(once)
