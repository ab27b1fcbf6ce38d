"""Access to the pages: on this machine for everyone, elsewhere with the token.

The Host header must be a name that only means this machine. Otherwise another site's page in a browser could
read these pages through its own host name (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...errors import ActivememError

MIN_TOKEN_LENGTH = 16

Verdict = Literal["welcome", "welcome with a token", "wrong host", "no token"]


class ServeError(ActivememError):
    """Pages cannot be served with these options; the message has the expected and actual value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The conditions of a request: the names of this machine, and the token, if any.

    Raises ServeError for a host that others can reach without a token, and for a short token.
    """

    host: str
    token: str | None = None
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise ServeError(
                f"token: expected at least {MIN_TOKEN_LENGTH} characters, got {len(self.token)}; "
                f"for instance {secrets.token_urlsafe(18)}"
            )
        if self.token is None and not _is_loopback(self.host):
            raise ServeError(
                f"--host {self.host}: expected 127.0.0.1, or a token (--token, ACTIVEMEM_TOKEN), "
                "since other machines can reach this address"
            )

    def judge(self, headers: Mapping[str, str], query: Mapping[str, str], cookie: str) -> Verdict:
        """Return whether a request is allowed.

        A browser with the token in its query gets a cookie instead.
        """
        if not self.names_this_machine(headers.get("Host", "")):
            return "wrong host"
        if self.token is None:
            return "welcome"
        if _equal(query.get("token", ""), self.token):
            return "welcome with a token"
        if _equal(headers.get("Authorization", "").removeprefix("Bearer "), self.token):
            return "welcome"
        return "welcome" if _equal(cookie, self.cookie) else "no token"

    @property
    def cookie(self) -> str:
        """Return the value that a browser stores instead of the token; it expires with this process."""
        return hmac.new(self._key, (self.token or "").encode(), hashlib.sha256).hexdigest()

    def names_this_machine(self, host: str) -> bool:
        """Return whether a Host header certainly means this machine, at any port.

        With a token its host names are allowed, and any address, since addresses cannot be rebound.
        """
        name = _without_port(host).lower().removesuffix(".")
        if name == "localhost" or name.endswith(".localhost") or _is_loopback(name):
            return True
        if self.token is None:
            return False
        known = {self.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
        return name in known or _is_address(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _equal(given: str, expected: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(given.encode(errors="surrogateescape"), expected.encode())
