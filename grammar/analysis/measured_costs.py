"""Costs of blocks, measured from their modules and remembered.

A block is built once on torch's meta device, where nothing is allocated, and its parameters, FLOPs and kept
numbers are read from it. That needs torch, so `activemem.blocks.costs` does it, and is imported only for a
cost that is not remembered: in memory, and in a file in the user's cache folder for each version of the code.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..canonical import render
from ..model_config import ModelConfig
from ..nodes import BlockNode
from ..positions import POSITIONS, RandomisedPairs
from ..vocabulary.registry import block_code, spec_of
from ..vocabulary.spec import Cost, CostContext

_MAX_ENTRIES = 50_000
"""A cache file with more entries is begun anew."""

_MAX_AGE_S = 30 * 24 * 3600
"""A cache file of another version that has not been used for so long is removed."""


def measure_block(block: BlockNode, context: CostContext) -> Cost:
    """Return what a block costs; raises BuildError for a block without a module."""
    return _measure_block(block, _relevant(block, context.config), context.length, context.past)


def measure_parameters(block: BlockNode, config: ModelConfig) -> Cost:
    """Return the parameters of a block and what it shares, without any other cost."""
    return _measure_parameters(block, _relevant(block, config))


@lru_cache(maxsize=65536)
def _measure_block(block: BlockNode, config: ModelConfig, length: int, past: int) -> Cost:
    key = f"{_key(block, config)}, length={length}, past={past}"
    return _FILE.recall(key) or _FILE.keep(key, _meter().measure_block(block, config, length, past))


@lru_cache(maxsize=65536)
def _measure_parameters(block: BlockNode, config: ModelConfig) -> Cost:
    key = _key(block, config)
    return _FILE.recall(key) or _FILE.keep(key, _meter().measure_parameters(block, config))


def _meter() -> Any:  # noqa: ANN401 -- a module that this folder may not import
    return import_module("activemem.blocks.costs")


@lru_cache(maxsize=65536)
def _relevant(block: BlockNode, config: ModelConfig) -> ModelConfig:
    """Return the settings on which the cost of a block may depend, all others at their defaults."""
    spec, compares = spec_of(block.name), isinstance(POSITIONS.get(config.position), RandomisedPairs)
    found: dict[str, Any] = {"position": config.position} if compares else {"position": "none"}
    if any(parameter.kind == "recipe" for parameter in spec.parameters):  # it has sub-layers of its own
        found = {name: getattr(config, name) for name in ("norm", "residual", "norm_kind", "position")}
    rates = {"dropout": config.dropout, "attention_dropout": config.attention_dropout}
    return ModelConfig(
        d_model=config.d_model,
        vocab=1,
        causal=config.causal,
        max_positions=config.max_positions,
        feedforward_dropout=0.1 if config.inner_dropout else 0.0,
        **{name: 0.1 if rate else 0.0 for name, rate in rates.items()},
        **found,
    )


@lru_cache(maxsize=65536)
def _key(block: BlockNode, config: ModelConfig) -> str:
    settings = (config.d_model, config.causal, config.norm, config.residual, config.norm_kind)
    more = (config.position, config.max_positions, config.dropout, config.attention_dropout)
    values = (*settings, *more, config.feedforward_dropout)
    return f"{block_code(block.name) or ''} {render(block)} {' '.join(map(str, values))}"


class _CacheFile:
    """The measured costs of one version of the code, in the user's cache folder.

    A file that cannot be read counts as empty, and one that cannot be written is left alone.
    """

    def __init__(self) -> None:
        self._found: dict[str, Any] | None = None
        self._new: dict[str, Any] = {}

    def recall(self, key: str) -> Cost | None:
        """Return the cost that is stored under a key, or None."""
        if self._found is None:
            self._found = _read(_path())
        try:
            return _from_json(self._found[key])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, key: str, cost: Cost) -> Cost:
        """Return the cost, which is written to the file when the process ends."""
        if not self._new:
            atexit.register(self.write)
        self._new[key] = _as_json(cost)
        return cost

    def write(self) -> None:
        """Add what is new to the file, in one step."""
        path = _path()
        before = _read(path)
        merged = {**(before if len(before) < _MAX_ENTRIES else {}), **self._new}
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            beside.write_text(json.dumps(merged), encoding="utf-8")
            beside.replace(path)
            for other in path.parent.glob("costs-*.json*"):
                if time.time() - other.stat().st_mtime > _MAX_AGE_S:
                    other.unlink()
        self._new = {}


_FILE = _CacheFile()


def _read(path: Path) -> dict[str, Any]:
    """Return the entries of a cache file; none if it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _as_json(cost: Cost) -> list[Any]:
    numbers = [cost.parameters, cost.flops, cost.saved, cost.saved_once]
    return [numbers, cost.saves_input, cost.saves_output, dict(cost.shared)]


def _from_json(stored: Any) -> Cost:  # noqa: ANN401 -- whatever stands in the file
    """Return the cost of an entry; raises TypeError, ValueError or AttributeError for a damaged one."""
    numbers, saves_input, saves_output, shared = stored
    parameters, flops, saved, saved_once = numbers
    counts = (parameters, flops, saved, saved_once, *shared.values())
    are_counts = all(type(count) is int and count >= 0 for count in counts)
    if not (are_counts and type(saves_input) is type(saves_output) is bool):
        raise TypeError
    return Cost(
        parameters=parameters,
        flops=flops,
        saved=saved,
        saved_once=saved_once,
        saves_input=saves_input,
        saves_output=saves_output,
        shared=shared,
    )


@cache
def _path() -> Path:
    """Return the cache file of this code: of the modules of blocks, this package's version and torch's."""
    cache_home = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(cache_home) if cache_home else Path.home() / ".cache") / "activemem"
    return folder / f"costs-{_code_digest()}.json"


def _code_digest() -> str:
    """Return a digest of what costs depend on: the sources of blocks and vocabulary, and torch's version."""
    package = Path(__file__).parents[2]
    found = hashlib.sha256(f"{sys.version_info[:2]} {_torch_version()}".encode())
    for folder in ("blocks", "grammar"):
        for path in sorted((package / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _torch_version() -> str:
    """Return the version of torch, read from its files without importing it."""
    spec = find_spec("torch")
    path = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin else None
    with suppress(OSError):
        return path.read_text(encoding="utf-8") if path is not None else ""
    return ""
