"""Lazy exports: the names of a package that are promised to users, each loaded on first use.

They are written once, in the `__init__.pyi` next to the package's `__init__.py`, where editors read them too.
`PROVIDED` has what a floor uses of a higher one without importing it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PROVIDED: dict[str, Callable[[], Any]] = {}
"""Modules of higher floors that lower floors use, by name. The package's root says how each is loaded."""

_EXPORT = re.compile(r"^from (?P<module>\.[.\w]*) import (?P<name>\w+) as (?P=name)\b", re.MULTILINE)


def lazy_exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package; its names, sorted."""
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_name("__init__.pyi").read_text(encoding="utf-8")
    origins = {found["name"]: found["module"] for found in _EXPORT.finditer(stub)}

    def load(name: str) -> object:
        if name not in origins:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(origins[name], package), name)
        setattr(module, name, value)
        return value

    return load, lambda: sorted({*vars(module), *origins}), sorted(origins)
