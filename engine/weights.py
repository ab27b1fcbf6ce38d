"""Trained weights, in files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor


def save(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights by name; after a crash at any moment the file is whole, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        torch.save({name: weight.cpu() for name, weight in weights.items()}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load(path: Path) -> dict[str, Tensor]:
    """The weights of a file; FileNotFoundError if there is none."""
    return torch.load(path, map_location="cpu", weights_only=True)
