"""Sources of a machine's settings: activemem.toml, and environment variables."""

from __future__ import annotations

from pathlib import Path

SETTINGS_FILE_NAME = "activemem.toml"
ENV_PREFIX = "ACTIVEMEM_"
PLUGINS_VARIABLE = ENV_PREFIX + "PLUGINS"
TOKEN_VARIABLE = ENV_PREFIX + "TOKEN"
"""The environment variable with the token of `serve`, which is never written or shown."""


def find_settings_file(folder: Path) -> Path | None:
    """Find activemem.toml in a folder or in the nearest folder above."""
    places = (each / SETTINGS_FILE_NAME for each in (folder.resolve(), *folder.resolve().parents))
    return next((place for place in places if place.is_file()), None)
