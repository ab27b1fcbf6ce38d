"""The page of passports and the record have every built-in block of a sequence, and no failed check."""

import re
from pathlib import Path

import pytest

from activemem.blocks.testing.passport import check_block, verify_block
from activemem.grammar import Role, lookup
from activemem.grammar.vocabulary.spec import builtin_names

from ..blocks import equations  # noqa: F401 -- registers the references of `check_block`

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "passports.md"
BLOCKS = [name for name in builtin_names() if lookup(name).role is not Role.TRANSDUCER]


def test_the_page_has_every_block_and_no_failure():
    rows = re.findall(r"^\| `(\w+).*?` \| .* \| (\d) of (\d) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert [name for name, *_ in rows] == BLOCKS
    assert all(passed == tried for _, passed, tried in rows)


def test_the_record_has_every_block_and_no_failure():
    for name in BLOCKS:
        passport = verify_block(name)
        assert f"\n| `{passport.block}` |" in PAGE.read_text(encoding="utf-8")
        assert (passport.recorded, passport.passed) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_the_record_is_what_the_checks_find(name):
    found, recorded = check_block(name).checks, verify_block(name).checks
    assert [(check.name, check.passed) for check in found] == [
        (check.name, check.passed) for check in recorded
    ]
