"""Every format conforms, and the suite detects violations."""

import pytest

from activemem.reporting.tables import format_conformance
from activemem.reporting.tables.render import FORMATS, own_format_names

from ...registry_entries import replace_entry


@pytest.mark.parametrize("check", format_conformance.CHECKS)
@pytest.mark.parametrize("name", own_format_names())
def test_an_included_format_conforms(name, check):
    check(name)


def headless(table):
    return "\n".join([*table.rows, ""])


def test_the_suite_finds_a_format_that_leaves_columns_out(monkeypatch):
    replace_entry(FORMATS, "csv", headless)
    with pytest.raises(AssertionError, match="'reverse' is missing"):
        format_conformance.nothing_is_left_out("csv")
