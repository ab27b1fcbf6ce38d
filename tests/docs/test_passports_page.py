"""docs/reference/passports.md has every block of a sequence, and no failed check."""

import re
from pathlib import Path

import pytest

from activemem.blocks.testing import verify_block
from activemem.grammar import Role, lookup
from activemem.grammar.vocabulary import builtin_names

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "passports.md"
BLOCKS = [name for name in builtin_names() if lookup(name).role is not Role.TRANSDUCER]


def test_the_page_has_every_block_and_no_failure():
    rows = re.findall(r"^\| `(\w+).*?` \| .* \| (\d) of (\d) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert [name for name, *_ in rows] == BLOCKS
    assert all(passed == tried for _, passed, tried in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_passes_its_checks(name):
    assert [check for check in verify_block(name).checks if check.passed is False] == []
