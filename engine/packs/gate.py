"""Measurements of whether trials of a form are faster together, and their memory."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from ... import __version__
from ..trial import provenance

LEAST_RATIO = 1.03
"""Steps are taken together where they take this much longer alone; less may be an error of measurement."""

REACH = 2
"""What was measured tells of up to so many times as many trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRatio:
    """The ratio of the time of steps alone to that of steps together, for some trials and tokens."""

    trials: int
    tokens: int
    ratio: float

    @property
    def passes(self) -> bool:
        """Return whether steps are to be taken together."""
        return self.ratio >= LEAST_RATIO

    def tells(self, trials: int, tokens: int) -> bool:
        """Return whether the measurement covers others: more trials gain more, longer sequences less."""
        if self.passes:
            return self.trials <= trials <= REACH * self.trials and tokens <= self.tokens
        return trials <= self.trials and self.tokens <= tokens


class Gate:
    """The ratios measured on this device, in a file of the machine, or in memory alone."""

    def __init__(self, device: torch.device, file: Path | None = None) -> None:
        versions = f"{torch.__version__} {__version__}"
        self._where = f"{provenance.device_name(device)} {torch.get_num_threads()} {versions}"
        self._file = file
        self._measured = {} if file is None else _read(file)

    def lets_pass(self, form: str, trials: int, tokens: int) -> bool | None:
        """Return whether to take steps together; None if no measurement covers it."""
        found = reversed(self._measured.get(self._key(form), []))
        return next((each.passes for each in found if each.tells(trials, tokens)), None)

    def remember(self, form: str, measured: MeasuredRatio) -> None:
        """Keep what was measured; a file that cannot be written is none."""
        key = self._key(form)
        self._measured.setdefault(key, []).append(measured)
        if self._file is not None:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"key": key, **asdict(measured)}) + "\n")

    def _key(self, form: str) -> str:
        return hashlib.sha256(f"{self._where}|{form}".encode()).hexdigest()[:24]


def machine_file() -> Path:
    """Return the file of this machine and user: in XDG_CACHE_HOME, or in .cache of the home folder."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "activemem" / "packs.jsonl"


def _read(file: Path) -> dict[str, list[MeasuredRatio]]:
    """Return what was measured before, by key; lines that are none are passed over."""
    found: dict[str, list[MeasuredRatio]] = {}
    with suppress(OSError):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, KeyError, TypeError):
                read = json.loads(line)
                trials, tokens, ratio = int(read["trials"]), int(read["tokens"]), float(read["ratio"])
                measured = MeasuredRatio(trials=trials, tokens=tokens, ratio=ratio)
                found.setdefault(str(read["key"]), []).append(measured)
    return found
