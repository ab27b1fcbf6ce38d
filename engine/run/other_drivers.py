"""Other drivers on the same store: what they train is waited for, and taken over when they are gone."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ...storage import Store
from ..core.events import Listener, Taken
from ..trial.claims import taken
from .interrupts import Stop


class OtherDrivers:
    """The trials that other processes have, as one run watches them."""

    def __init__(self, store: Store, run: str, listener: Listener) -> None:
        self._store, self._leases, self._listener = store, store.leases(run), listener

    def wait(self, trials: Mapping[str, Taken], stop: Stop) -> dict[str, int]:
        """Wait until some of these trials can be taken over, all have ended, or a stop is requested.

        Each trial that can be is there with the attempt up to which its owners are gone, -1 for none.
        """
        waiting, told = dict(trials), set[Taken]()
        while waiting and not stop.requested:
            found = {trial: self._leases.find(trial, each.attempt) for trial, each in waiting.items()}
            stored = self._store.last_numbers() if any(each and each.ended for each in found.values()) else {}
            free: dict[str, int] = {}
            for trial, state in found.items():
                if state is None:
                    free[trial] = -1
                elif state.ended and stored.get(trial, -1) >= state.attempt:
                    del waiting[trial]
                elif state.lists_are_current if state.ended else state.gone:
                    free[trial] = state.attempt
                else:
                    waiting[trial] = taken(state)
            if free:
                return free
            if waiting and told != (now := set(waiting.values())):
                self._listener.waiting(list(waiting.values()))
                told = now
            time.sleep(self._leases.poll_s)
        return {}
