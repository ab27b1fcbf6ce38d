"""Running activemem's commands in forked processes, which share one import of the package."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from pathlib import Path

import matplotlib.backends.backend_svg
import matplotlib.figure  # noqa: F401  -- imported once, for all commands
import polars  # noqa: F401  -- as above
import scipy.special  # noqa: F401  -- as above

from activemem.cli.app import main
from activemem.reporting import results  # noqa: F401  -- as above

ROOT = Path(__file__).parent.parent


def run_forked(command: str, folder: Path = ROOT) -> tuple[int, str]:
    """Return a command's exit status and its output, run in a folder without a terminal, at 80 columns.

    It runs in a process forked from this one, which must not have started threads.
    """
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
            sys.argv = shlex.split(command)
            os._exit(_status_of_main())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode()


def _status_of_main() -> int:
    """Run the command in the arguments and return its exit status, flushing its output."""
    status: int | str | None = 0
    try:
        main()
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 -- told, as the interpreter does
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)
