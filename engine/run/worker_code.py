"""Check that Ray's workers import the same package as the driver."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import ray
import ray.exceptions

from ..trial.failures import MachineError

START_S = 300.0
"""The time limit for this machine's first worker to start and import the package, in seconds."""


class Code(TypedDict):
    """The folder of the imported package, a digest of its source, and any import error."""

    folder: str
    digest: str
    fault: str


def search_path() -> list[str]:
    """Return this process's module search path, in the order in which Ray inserts it."""
    # Ray inserts one after the other at the front; '' is the working folder of the process that has it
    return [entry or str(Path.cwd()) for entry in reversed(sys.path)]


def _make_look() -> Callable[[], Code]:
    """Return the function that describes a process's code.

    An inner function is pickled by value, so a worker needs no package to run it.
    """

    def look() -> Code:
        import hashlib  # noqa: PLC0415 -- all of these are the worker's
        import importlib  # noqa: PLC0415
        import os  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        try:
            package = importlib.import_module("activemem")
        except Exception as error:  # noqa: BLE001 -- whatever another package of that name raises
            return {"folder": "", "digest": "", "fault": " ".join(f"{type(error).__name__}: {error}".split())}
        if package.__file__ is None:
            return {"folder": str(next(iter(package.__path__))), "digest": "", "fault": "no package is there"}
        root, digest = Path(package.__file__).resolve().parent, hashlib.sha256()
        for folder, folders, files in os.walk(root):
            if "__init__.py" not in files:  # tests, documents, environments and results are not the package
                folders.clear()
                continue
            folders.sort()
            for name in sorted(files):
                if name.endswith((".py", ".toml")):
                    path = Path(folder, name)
                    content = hashlib.sha256(path.read_bytes()).digest()
                    digest.update(path.relative_to(root).as_posix().encode() + b"\0" + content)
        return {"folder": str(root), "digest": digest.hexdigest()[:16], "fault": ""}

    return look


look_at_code = _make_look()
"""Describes the code of this process or, as a Ray task, the code of a worker."""


def code_fault(driver: Code, worker: Code) -> str | None:
    """Return how a worker's code differs from the driver's, or None if it is the same.

    A cluster's node may have the same code in another folder.
    """
    if worker["fault"]:
        place = f" from {worker['folder']}" if worker["folder"] else ""
        return f"expected to import activemem from {driver['folder']}, got{place}: {worker['fault']}"
    if worker["digest"] == driver["digest"]:
        return None
    expected, got = (f"{each['folder']} ({each['digest'][:8]})" for each in (driver, worker))
    return f"expected activemem as in {expected}, got {got}"


def check_workers_here(driver: Code) -> None:
    """Raise MachineError if a worker of this machine's cluster does not import the driver's package."""
    try:
        worker = ray.get(ray.remote(look_at_code).options(num_cpus=0).remote(), timeout=START_S)
    except ray.exceptions.GetTimeoutError:
        raise MachineError(
            f"Ray has started no worker within {START_S:g} s; --local trains without Ray"
        ) from None
    fault = code_fault(driver, worker)
    if fault is None and worker["folder"] != driver["folder"]:
        fault = f"expected activemem in {driver['folder']}, got the same in {worker['folder']}"
    if fault is not None:
        raise MachineError(f"Ray's workers run other code: {fault}; --local trains in this process")
