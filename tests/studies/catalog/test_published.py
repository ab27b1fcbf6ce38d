"""Published numbers by paper, table, row and column, also by our spelling of a row."""

import pytest

from activemem.studies import published_tables
from activemem.studies.catalog.published import PublishedNumber, match_published_keys

TABLE4 = published_tables()["active-memory-transformer", "table4"]


def test_every_number_of_the_file_is_in_a_table() -> None:
    counts = {key: len(table.cells) for key, table in published_tables().items()}
    assert counts == {
        ("active-memory-transformer", "table1"): 8,
        ("active-memory-transformer", "table4"): 48,
        ("extended-neural-gpu", "table1"): 12,
        ("all-attention", "table1"): 30,
        ("all-attention", "table2"): 25,
        ("all-attention", "table3"): 18,
        ("all-attention", "readme"): 2,
        ("feedforward-attention", "table1-addition"): 12,
        ("feedforward-attention", "table1-multiplication"): 12,
        ("feedforward-attention", "section2.3"): 4,
        ("memory-degradation", "table2"): 48,
        ("negative-eigenvalues", "table3"): 14,
        ("deltanet", "table1-mad"): 42,
        ("chomsky-hierarchy", "table2"): 27,
        ("mamba-3", "table4b"): 15,
    }


def test_a_number_keeps_the_digits_that_the_paper_prints() -> None:
    found = published_tables()["memory-degradation", "table2"].cells[
        "reverse_copy_bigrams", "theta_vs_luong:luong_inputs"
    ]
    assert found == PublishedNumber(
        value=1.0, text="1.00", unit="fraction", spread="0.00", spread_is="sd", n=10
    )


def test_a_number_that_the_paper_only_describes_has_no_value() -> None:
    found = published_tables()["extended-neural-gpu", "table1"].cells["neural_gpu", "bleu"]
    assert found == PublishedNumber(value=None, text="below 5", unit="bleu")


def test_a_number_that_the_paper_prints_in_millions_keeps_its_letter() -> None:
    found = published_tables()["all-attention", "table1"].cells["all_attn_small", "parameters"]
    assert found == PublishedNumber(value=39e6, text="39M", unit="parameters", note="")


def test_rows_and_columns_keep_the_order_of_the_paper() -> None:
    assert TABLE4.rows[:3] == ("cgru", "sa", "conv")
    assert TABLE4.columns == ("reverse", "sort", "addition", "multiply", "not", "remember")


@pytest.mark.parametrize(
    ("level", "key"),
    [
        ("sa", "sa"),
        ("cgru(k=20)", "cgru"),
        ("sa + conv(k=20)", "sa+conv"),
        ("highway_conv(k=20) + sa(heads=4)", "sa+highway_conv"),
        ("sa+conv", "sa+conv"),
    ],
)
def test_a_level_matches_the_row_that_names_its_blocks(level: str, key: str) -> None:
    assert match_published_keys([level], TABLE4.rows) == {level: key}


@pytest.mark.parametrize("level", ["4 * sa", "sa >> ff(8)", "ff(8)", "sa + sa", "wavelet", ""])
def test_a_level_that_the_paper_lacks_matches_nothing(level: str) -> None:
    assert match_published_keys([level], TABLE4.rows) == {}


def test_two_levels_of_the_same_blocks_match_nothing_unless_one_is_the_key_itself() -> None:
    assert match_published_keys(["conv(k=3)", "conv(k=20)", "sa"], TABLE4.rows) == {"sa": "sa"}
    assert match_published_keys(["sa", "sa(heads=4)"], TABLE4.rows) == {"sa": "sa"}


def test_levels_that_are_no_recipes_match_by_themselves() -> None:
    assert match_published_keys(["reverse", "copy"], TABLE4.columns) == {"reverse": "reverse"}
