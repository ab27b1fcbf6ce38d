"""Whether somebody listens where a Ray cluster should be, asked before Ray waits a minute for it."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from .settings import SettingsError

PATIENCE_S = 5.0


def check_reachable(address: str | None) -> None:
    """Raise SettingsError if an address that names a host and a port does not answer."""
    if address is None or address == "auto":
        return
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_S).close()
    except OSError as error:
        raise SettingsError(f"address: expected a Ray cluster at {address}, got: {error}") from error
