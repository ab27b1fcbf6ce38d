"""Parquet, and Arrow as Hugging Face `datasets` writes it; classes get the names that it has for them."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from .cells import Cells, RowsError, missing_column
from .limits import max_bytes, too_large

_WORKER = Path(__file__).with_name("columnar_worker.py")
_MIN_TIME_S, _BYTES_PER_S = 120.0, 2_000_000
"""A file may take two minutes, and a second more for each 2 MB; reading a good one is far faster."""

_ADDRESS_SPACE = 6 << 30
"""The address space that a worker may map, beside a few times what a file may have."""


def read_columnar(data: bytes, form: str, columns: Sequence[str]) -> Cells:
    """Return these columns of a Parquet or Arrow file; `translation.en` is a field of a struct.

    A file that is not valid raises RowsError, even if it crashes its reader, a process of its own.
    """
    values, known = _WORKERS.read(data, form, columns)
    if "too_large" in known:
        raise RowsError([too_large("its rows")])
    if "error" in known:
        raise RowsError([f"expected {form.capitalize()}, got: {known['error']}"])
    if "missing" in known:
        more = known["num_found"] - len(known["found"])
        raise RowsError([missing_column(name, known["found"], more) for name in known["missing"]])
    named = [_named(column, names) for column, names in zip(values, known["names"], strict=True)]
    return Cells(unit="row", numbers=range(1, len(values[0]) + 1), columns=named)


class _Workers:
    """The process that reads files, started when it is needed, and again after a file has killed it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def read(self, data: bytes, form: str, columns: Sequence[str]) -> tuple[list[list[Any]], dict[str, Any]]:
        """Return the values of each column, and the last line of the worker's answer."""
        request = {"form": form, "columns": list(columns), "size": len(data), "max_bytes": max_bytes()}
        with self._lock:
            process = self._started()
            limit = _MIN_TIME_S + len(data) / _BYTES_PER_S
            timer = Timer(limit, process.kill)
            timer.start()
            try:
                return _exchange(process, request, data, len(columns))
            except (OSError, ValueError):
                expired = not timer.is_alive()
                self._stop()
            except BaseException:
                self._stop()  # an answer that is half read
                raise
            finally:
                timer.cancel()
        if expired:
            return [], {"error": f"a file that cannot be read within {limit:.0f} seconds"}
        return [], {"error": "a damaged file, which crashes its reader, or one that needs too much memory"}

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the worker of this process; one that came with a fork belongs to the parent."""
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self._stop)
        _limit_memory(self._process.pid, _ADDRESS_SPACE + 4 * max_bytes())
        return self._process

    def _stop(self) -> None:
        """End the worker of this process."""
        atexit.unregister(self._stop)
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.communicate()
            self._process = None


_WORKERS = _Workers()


def _exchange(
    process: subprocess.Popen[bytes], request: dict[str, Any], data: bytes, width: int
) -> tuple[list[list[Any]], dict[str, Any]]:
    """Send a file to a worker and read its rows; OSError or ValueError if it dies."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.write(data)
    process.stdin.flush()
    values: list[list[Any]] = [[] for _ in range(width)]
    for line in process.stdout:
        found = json.loads(line)
        if isinstance(found, dict):
            return values, found
        for column, cells in zip(values, found, strict=True):
            column.extend(cells)
    raise OSError("the reader has died")


def _limit_memory(process: int, size: int) -> None:
    """Limit the address space of a process, where the system can."""
    try:
        import resource  # noqa: PLC0415 -- not on every system

        resource.prlimit(process, resource.RLIMIT_AS, (size, size))
    except (ImportError, AttributeError, OSError, ValueError):
        return


def _named(values: list[Any], names: Sequence[str] | None) -> list[Any]:
    """Return values with a name for each number of a class; a number without a name is no class."""
    if names is None:
        return values

    def name(value: Any) -> Any:  # noqa: ANN401 -- whatever stands in a file
        if isinstance(value, list):
            return [name(each) for each in value]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else None

    return [name(value) for value in values]
