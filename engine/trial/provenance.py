"""Where a result comes from: version, commit, device and host; and the peak memory."""

from __future__ import annotations

import platform
import re
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path

import torch

from ... import __version__
from ...grammar import Recipe, nodes
from ...grammar.vocabulary.registry import lookup
from ...grammar.vocabulary.spec import OWNER

_CLEAR_REFS, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def version(recipe: Recipe) -> str:
    """The version of this package, and those of the packages whose blocks the recipe uses."""
    blocks = dict.fromkeys(node.name for node in nodes.walk(recipe.root) if isinstance(node, nodes.BlockNode))
    specs = [spec for name in blocks if (spec := lookup(name)) is not None]
    others = sorted({spec.owner for spec in specs} - {OWNER})
    return " with ".join([__version__, *([", ".join(others)] if others else [])])


@cache
def commit() -> str | None:
    """The short git commit of the code, with "+" when files differ from it; None outside a clone of it."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=7", "--dirty=+", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


@cache
def device_name(device: torch.device) -> str:
    """The name of the GPU, or of the processor with the number of threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{_processor()}, {threads} thread{'s' if threads > 1 else ''}"


def host() -> str:
    """The name of this machine."""
    return platform.node()


def reset_peak_memory(device: torch.device) -> None:
    """Restart the measurement of the peak memory, if the system can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif sys.platform == "linux":
        try:
            _CLEAR_REFS.write_text("5", encoding="ascii")
        except OSError:
            return


def peak_mib(device: torch.device) -> float:
    """The peak memory since the last reset, in MiB: the GPU's, else the process's."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if sys.platform == "linux":
        match = re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(encoding="ascii"), re.MULTILINE)
        if match:
            return int(match[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()
