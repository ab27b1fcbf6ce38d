"""Provenance of a result: code, versions, device and host; and the peak memory."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from ... import __version__
from ...studies.resolve.trial import shown
from ...studies.schema.settings import TrialSettings

_CODE = ("*.py", "studies/catalog", *(f":(exclude){folder}" for folder in ("tests", "docs", "bench")))
"""The files of a git clone that count as code, as git patterns."""

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def version(settings: TrialSettings) -> str:
    """Return the version of this package, and the plug-in files and packages that a trial uses."""
    others = sorted(set(map(shown, settings.code.values())))
    return " with ".join([__version__, *([", ".join(others)] if others else [])])


@cache
def commit() -> str | None:
    """Return the commit of the code, from `describe_code` at the first call."""
    return describe_code(Path(__file__).parents[2])


def describe_code(root: Path) -> str | None:
    """Return the short git commit of a clone; None if it is none.

    If code differs from it, a hash follows, as in 5d02964+a1b2c3d4. It covers the names and contents of all
    changed or new Python files and files in the catalog. Equal changes have equal hashes. Tests, documents
    and results do not count as code.
    """
    if not (root / ".git").exists():
        return None
    try:
        base = _git(root, "rev-parse", "--short=7", "HEAD").decode().strip()
        entries = _git(root, "status", "--porcelain", "-z", "--no-renames", "-uall", "--", *_CODE)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    changed = sorted(entry[3:] for entry in entries.split(b"\0") if entry)
    return f"{base}+{_hash_files(root, changed)}" if changed else base


def device_name(device: torch.device) -> str:
    """Return the name of the GPU, or of the processor with the number of threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def reset_peak_memory(device: torch.device) -> None:
    """Reset the measurement of peak memory, if the system can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        try:
            _CLEAR_REFS.write_text("5", encoding="ascii")
        except OSError:
            return


def peak_mib(device: torch.device) -> float:
    """Return the peak memory since the last reset in MiB: of the GPU, or else of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if sys.platform == "linux":
        match = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
        if match:
            return int(match[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _git(root: Path, *arguments: str) -> bytes:
    """Run a read-only git command in a clone, without refreshing even its index."""
    words = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(words, cwd=root, capture_output=True, check=True, timeout=10).stdout


def _hash_files(root: Path, names: Iterable[bytes]) -> str:
    """Return eight hexadecimal digits for files in a folder; a missing file counts by its name."""
    digest = hashlib.sha256()
    for name in names:
        path = root / os.fsdecode(name)
        content = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
        digest.update(name + b"\0" + content)
    return digest.hexdigest()[:8]


@cache
def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()
