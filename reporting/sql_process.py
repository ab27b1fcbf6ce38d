"""The process that runs one SQL statement.

The operating system enforces limits on its memory and time.

It is started by its path, imports only Polars, and opens only the given tables. A statement that exhausts its
memory or time does not harm the calling process.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl

ANSWER_BYTES = 1 << 30
"""The maximum size of an answer's file."""

_COUNT = re.compile(r"^(?!.*\blen\b).*\bcount\s*\(\s*\*\s*\)", re.IGNORECASE | re.DOTALL)
"""A statement with `count(*)` that names no column `len` itself."""


def main() -> None:
    """Read a request as JSON, write the answer to its file, and print an error in the statement."""
    request = json.load(sys.stdin)
    tables = {name: pl.read_ipc(path) for name, path in request["tables"].items()}
    context = pl.SQLContext(frames=tables, eager=False)
    # starts Polars' threads before memory is limited, since each reserves address space
    pl.DataFrame({"a": [1, 2]}).lazy().group_by("a").len().collect()
    _limit(request["memory_bytes"], request["seconds"])
    try:
        # one row more than allowed shows that the answer is too long
        answer = context.execute(request["sql"]).head(request["rows"] + 1).collect()
        is_level = any("len" in table.columns for table in tables.values())
        if _COUNT.search(request["sql"]) and "count" not in answer.columns and not is_level:
            answer = answer.rename({"len": "count"}, strict=False)  # the name that Polars gives count(*)
        answer.write_ipc(request["answer"])
    except pl.exceptions.PolarsError as error:
        # what follows is Polars' plan of the statement
        print(str(error).partition("\n\n")[0], end="")  # noqa: T201 -- for the parent process


def _limit(memory_bytes: int, seconds: float) -> None:
    """Limit the memory and CPU time of this process, if the system supports it.

    The limit on memory is added to what the process already uses.
    """
    try:
        import resource  # noqa: PLC0415 -- not everywhere
    except ImportError:
        return
    limits: dict[int, int] = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: ANSWER_BYTES,
        resource.RLIMIT_CPU: int(seconds * (os.cpu_count() or 1)) + 60,  # in case the parent process is gone
    }
    statm = Path("/proc/self/statm")
    if statm.is_file():
        pages = int(statm.read_text(encoding="ascii").split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + memory_bytes
    for which, most in limits.items():
        hard: Any = resource.getrlimit(which)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (allowed, allowed))


if __name__ == "__main__":
    main()
