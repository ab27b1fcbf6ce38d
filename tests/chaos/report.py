"""The results of chaos tests as a table between two marks of a document."""

import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from activemem.engine.trial import outcome

_MARKED = re.compile(r"(<!-- chaos -->\n).*?(<!-- end -->)", re.DOTALL)


def write_table(
    document: Path, *, command: str, struck: Mapping[str, int], problems: int, seconds: float
) -> None:
    """Replace the table between the marks of a document."""
    kinds = sorted(struck.items(), key=lambda each: (-each[1], each[0]))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        f"`{command}` at {outcome.commit()}, {datetime.now(UTC):%Y-%m-%d}, {seconds / 60:.0f} minutes on "
        f"{os.cpu_count()} cores with {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}:",
        "",
        "| fault | times |",
        "| --- | --: |",
        *(f"| {name} | {count} |" for name, count in kinds),
        f"| **all** | **{sum(struck.values())}** |",
        "",
        f"Episodes to which the oracle objected: {problems}.",
    ]
    page = document.read_text(encoding="utf-8")
    shown = "\n".join(["", *lines, "", ""])
    document.write_text(_MARKED.sub(lambda found: found[1] + shown + found[2], page), encoding="utf-8")
