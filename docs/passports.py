"""Record the checks of every built-in block of a sequence, which `block verify` and a page show.

python docs/passports.py checks all blocks, which takes about ten minutes on a quiet core. It writes
blocks/testing/passports.json and docs/reference/passports.md.
"""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import torch

from activemem.blocks.testing.passport import Passport, check_block
from activemem.grammar import Role, lookup
from activemem.grammar.vocabulary.spec import builtin_names

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "passports.md"
RECORD = ROOT / "blocks" / "testing" / "passports.json"
TABLE = re.compile(r"(<!-- measured: python docs/passports.py -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = ("outputs", "gradients", "steps", "reach", "cost")
MARKS = {True: "", None: "–", False: "**fails**: "}


def blocks() -> list[str]:
    """Return the names of all blocks that map a sequence to one, or to a vector."""
    specs = [spec for name in builtin_names() if (spec := lookup(name)) is not None]
    return [spec.name for spec in specs if spec.role is not Role.TRANSDUCER]


def row(passport: Passport) -> str:
    """Return a line of the table: what was found, and how many checks passed."""
    checks = {check.name: check for check in passport.checks}
    cells = [f"{MARKS[checks[name].passed]}{_brief(checks[name].finding)}" for name in COLUMNS]
    cells = ["–" if checks[name].passed is None else cell for name, cell in zip(COLUMNS, cells, strict=True)]
    tried = [check for check in passport.checks if check.passed is not None]
    passed = sum(check.passed is True for check in tried)
    return f"| `{passport.block}` | {' | '.join(cells)} | {passed} of {len(tried)} |"


def _brief(finding: str) -> str:
    """Return a finding without what is the same for all blocks."""
    reference, pieces = (
        r"equal to the slow reference at lengths [\d, toand]+, ",
        r"in pieces as in one pass(; )?",
    )
    for same in (reference, pieces, ", as stated"):
        finding = re.sub(same, "", finding)
    return finding.replace(" at length 40, memory of a step", "") or "as whole"


def table(passports: list[Passport]) -> str:
    """Return the table."""
    heads = ("block", *COLUMNS, "checks passed")
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(':--' for _ in heads)} |", *map(row, passports)]
    return "\n".join(lines)


def verify(name: str) -> Passport:
    """Check one block on one thread, by the references of the tests."""
    sys.path.append(str(ROOT))
    import_module("tests.blocks.equations")
    torch.set_num_threads(1)
    return check_block(name)


def main() -> None:
    """Check all blocks, and write the record and the page."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(verify, blocks()))
    record = {
        name: {"block": passport.block, "checks": [asdict(check) for check in passport.checks]}
        for name, passport in zip(blocks(), found, strict=True)
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda mark: f"{mark[1]}\n{table(found)}\n\n{mark[2]}", text), encoding="utf-8")
    sys.exit(any(not passport.passed for passport in found))


if __name__ == "__main__":
    main()
