"""Sources of a machine's settings: activemem.toml, and environment variables."""

from __future__ import annotations

from pathlib import Path

SETTINGS_FILE_NAME = "activemem.toml"
ENV_PREFIX = "ACTIVEMEM_"
PLUGINS_VARIABLE = ENV_PREFIX + "PLUGINS"
TOKEN_VARIABLE = ENV_PREFIX + "TOKEN"
"""The token of `serve`; it is not a setting: it is neither written to a file nor shown."""


def find_settings_file(folder: Path) -> Path | None:
    """Return the activemem.toml of a folder, or of the nearest folder above it that has one."""
    places = (each / SETTINGS_FILE_NAME for each in (folder.resolve(), *folder.resolve().parents))
    return next((place for place in places if place.is_file()), None)
