"""Costs measured from modules, cached in memory and in a file in the user's cache folder.

Measuring needs torch, so `blocks.costs` does it. The package's root provides this module. It is loaded only
for a cost that is not cached. There is one file for each version of the code. The costs that decide the sizes
of shipped studies come with the package.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...lazy_exports import PROVIDED
from ...plugins import forget_at_unload
from ..canonical import render
from ..model_config import BuildSettings, ModelConfig, configure
from ..nodes import BlockNode, Node, walk
from ..norms import NORMS
from ..positions import POSITIONS, RandomisedPairs
from ..vocabulary.spec import block_code, spec_of

Numbers = dict[str, int]

_NO_DROPOUT = dict.fromkeys(("dropout", "attention_dropout", "embedding_dropout", "input_dropout"), 0.0)

_MAX_ENTRIES = 50_000
"""A cache file with more entries is emptied."""

_MAX_AGE_S = 30 * 24 * 3600
"""The age after which an unused cache file of another version is removed."""

_CACHE_NAME = re.compile(r"costs-[0-9a-f]{16}\.json(\.[0-9]+)?")
"""The name of a cache file, which ends with a process id while it is written."""


@lru_cache(maxsize=65536)
def measure(what: str, root: Node | None, config: ModelConfig, **sizes: int) -> Numbers:
    """Return costs of a block or a model; measure them if they are not cached.

    The function `measure_{what}` of `blocks.costs` measures them. "parameters", "block" and "cache" measure
    one block, "frame" the parts around the body of a model, "transducer" and "step" a whole model. Raise
    BuildError for a block without a module.
    """
    text, codes = "", list[str | None]()
    if what in ("parameters", "block", "cache"):
        assert isinstance(root, BlockNode), "only the costs of a block are measured"
        config = _relevant_to_block(root, config)
    else:
        config = _measured(config)
    if what == "frame":
        config = configure(config, causal=False, source_vocab=None, feedforward_dropout=None, **_NO_DROPOUT)
    if root is not None:
        names = {node.name for node in walk(root) if isinstance(node, BlockNode)}
        text, codes = render(root), [block_code(name) for name in sorted(names)]
        packages = {package for name in names if (package := spec_of(name).package)}
        codes += [_installed(package) for package in sorted(packages)]
    codes += [NORMS.code(config.settings.norm_kind), POSITIONS.code(config.settings.position)]
    key = (_seen(config), *sizes.items(), text, codes)
    provided = PROVIDED["block_costs"]
    return remember(what, key, lambda: getattr(provided(), f"measure_{what}")(root, config, **sizes))


forget_at_unload(measure.cache_clear)


def _seen(config: ModelConfig) -> list[tuple[str, Any]]:
    """Return the settings that differ from their defaults. So a new setting with a default changes no key."""
    parts = (config.settings, config.interface)
    return [item for part in parts for item in sorted(part.model_dump(exclude_defaults=True).items())]


def remember(what: str, of: object, measure: Callable[[], Numbers]) -> Numbers:
    """Return the costs that are cached for `what` and `of`; call `measure` if there are none.

    `what` and `of` form the key of the cache. An empty result is not cached.
    """
    key = hashlib.sha256(repr((what, of)).encode()).hexdigest()[:12]
    if (found := shipped_costs().get(key) or _FILE.recall(key)) is not None:
        return found
    measured = measure()
    return _FILE.keep(key, measured) if measured else measured


@cache
def shipped_costs() -> dict[str, Numbers]:
    """Return the costs that the package comes with, by key.

    They are the parameters and FLOPs that plans, tables, figures and claims of shipped studies need, and
    pages of blocks. So no version of torch can change the sizes and ids of their trials. The memory of a
    training step is not among them.
    """
    return json.loads(Path(__file__).with_name("shipped_costs.json").read_text(encoding="utf-8"))


def _installed(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 -- slow, and few need it

    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _measured(config: ModelConfig) -> ModelConfig:
    """Give settings that do not affect costs fixed values, so that equal costs share an entry."""
    # a dropout rate costs the same whatever its value, unless it is 0
    settings = config.settings
    found: dict[str, Any] = {name: 0.1 if getattr(settings, name) else 0.0 for name in _NO_DROPOUT}
    names = ("norm_eps", "init", "feedforward_std", "attention_std", "attention_output_std", "bias_init")
    found |= {name: BuildSettings.model_fields[name].default for name in (*names, "residual_init")}
    return configure(
        config,
        feedforward_dropout=0.1 if settings.inner_dropout else 0.0,
        **found,
    )


@lru_cache(maxsize=65536)
def _relevant_to_block(block: BlockNode, config: ModelConfig) -> ModelConfig:
    """Keep only settings that affect the costs of `block`, so that many configs share an entry."""
    spec, settings = spec_of(block.name), config.settings
    compares = isinstance(POSITIONS.get(settings.position), RandomisedPairs)
    found: dict[str, Any] = {"position": settings.position if compares else "none"}
    if any(parameter.kind == "recipe" for parameter in spec.parameters):  # it has its own sub-layers
        found = {name: getattr(settings, name) for name in ("norm", "residual", "norm_kind", "position")}
    return configure(
        d_model=settings.d_model,
        vocab=1,
        causal=config.interface.causal,
        max_positions=settings.max_positions,
        dropout=0.0,
        **found,
    )


class _CacheFile:
    """The file with the measured costs for one version of the code, in the user's cache folder.

    An unreadable file counts as empty, and an unwritable one is left unchanged.
    """

    def __init__(self) -> None:
        self._found: dict[str, Any] | None = None
        self._new: dict[str, Numbers] = {}

    def recall(self, key: str) -> Numbers | None:
        if self._found is None:
            self._found = _read(_path())
        found = self._new.get(key, self._found.get(key))
        # another program may have changed the file; `type`, because isinstance(True, int) is true
        if not isinstance(found, dict) or not all(type(n) is int and n >= 0 for n in found.values()):
            return None
        return found

    def keep(self, key: str, numbers: Numbers) -> Numbers:
        if not self._new:
            atexit.register(self.write)
        self._new[key] = numbers
        return numbers

    def write(self) -> None:
        path = _path()
        before = _read(path)
        merged = {**(before if len(before) < _MAX_ENTRIES else {}), **self._new}
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            # a rename is atomic: another process reads the old file or the new one, never half of it
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            beside.write_text(json.dumps(merged), encoding="utf-8")
            beside.replace(path)
            for other in filter(_is_unused, path.parent.iterdir()):
                other.unlink()
        self._new = {}


_FILE = _CacheFile()


def _is_unused(path: Path) -> bool:
    """Return whether `path` is an old cache file. The user's own files in the folder have other names."""
    if not _CACHE_NAME.fullmatch(path.name):
        return False
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > _MAX_AGE_S


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _path() -> Path:
    return cache_folder() / f"costs-{_code_digest()}.json"


def cache_folder() -> Path:
    """Return the user's folder for files that can be computed again. It may not exist, or be unwritable."""
    with suppress(RuntimeError):  # a user without a home folder, as in some containers
        home = os.environ.get("XDG_CACHE_HOME")
        return (Path(home) if home else Path.home() / ".cache") / "activemem"
    return Path(os.devnull) / "activemem"


def _code_digest() -> str:
    package = Path(__file__).parents[2]
    found = hashlib.sha256(f"{sys.version_info[:2]} {_torch_version()}".encode())
    for folder in ("blocks", "grammar"):
        for path in sorted((package / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _torch_version() -> str:
    spec = find_spec("torch")
    path = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin else None
    with suppress(OSError):
        return path.read_text(encoding="utf-8") if path is not None else ""
    return ""
