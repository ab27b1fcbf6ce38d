"""Whether trials of a form are faster together: measured once for each shape and machine, then remembered."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

import torch

from ..trial import provenance

LEAST_RATIO = 1.03
"""Steps are taken together where they take this much longer alone; less may be an error of measurement."""


class Gate:
    """The ratios that were measured on this device, in a file of the machine; without one in memory alone."""

    def __init__(self, device: torch.device, file: Path | None = None) -> None:
        self._where = f"{provenance.device_name(device)} {torch.get_num_threads()} {torch.__version__}"
        self._file = file
        self._ratios = {} if file is None else _read(file)

    def ratio(self, form: str, shape: str) -> float | None:
        """How much longer steps take alone than together; None if that was not measured."""
        return self._ratios.get(self._key(form, shape))

    def remember(self, form: str, shape: str, ratio: float) -> None:
        """Keep what was measured; a file that cannot be written is none."""
        key = self._key(form, shape)
        self._ratios[key] = ratio
        if self._file is not None:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, "ratio": round(ratio, 3)}) + "\n")

    def lets_pass(self, ratio: float) -> bool:
        """Whether steps are to be taken together."""
        return ratio >= LEAST_RATIO

    def _key(self, form: str, shape: str) -> str:
        return hashlib.sha256(f"{self._where}|{form}|{shape}".encode()).hexdigest()[:24]


def machine_file() -> Path:
    """The file of this machine and user: in XDG_CACHE_HOME, or in .cache of the home folder."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "activemem" / "packs.jsonl"


def _read(file: Path) -> dict[str, float]:
    """What was measured before, of one key the last; lines that are none are passed over."""
    found: dict[str, float] = {}
    with suppress(OSError):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                read = json.loads(line)
                found[str(read["key"])] = float(read["ratio"])
    return found
