"""Watch over the head of a Ray cluster: without a head, Ray ends the driver without a message.

A call of Ray then does not return, so it runs in a thread of its own, which is abandoned.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from ..trial.machine_failures import MachineError

LOST_AFTER_S = 5.0
"""A head that could not be reached for this many seconds is gone."""

POLL_S = 0.5

_ResultT = TypeVar("_ResultT")


class HeadLostError(MachineError):
    """The head of a Ray cluster is gone. Ray ends the process half a minute later, or as it exits."""


class HeadWatch:
    """Watcher of whether the head at HOST:PORT accepts connections, until it is closed."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._closed = threading.Event()
        self.is_lost = False
        threading.Thread(target=self._look, name="head watch", daemon=True).start()

    def run(self, what: Callable[[], _ResultT]) -> _ResultT:
        """Return what a function returns; raises HeadLostError as soon as the head is gone."""
        result: Future[_ResultT] = Future()
        thread = threading.Thread(target=_run, args=(what, result), name="cluster", daemon=True)
        thread.start()
        while thread.is_alive():
            if self.is_lost:
                raise HeadLostError("the head of the Ray cluster does not answer any more")
            thread.join(POLL_S / 5)
        return result.result()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _look(self) -> None:
        reached = time.monotonic()
        while not self._closed.wait(POLL_S):
            try:
                socket.create_connection(self._address, timeout=LOST_AFTER_S / 2).close()
                reached, self.is_lost = time.monotonic(), False
            except OSError:
                self.is_lost = time.monotonic() - reached > LOST_AFTER_S


def _run(what: Callable[[], _ResultT], result: Future[_ResultT]) -> None:
    try:
        result.set_result(what())
    except BaseException as error:  # noqa: BLE001 -- it is raised where the result is asked for
        result.set_exception(error)
