"""Write to or compact a store repeatedly.

Usage: load_generator.py ROOT SECONDS write|compact; prints the number of writes or compactions.
"""

import sys
import time
from contextlib import suppress

from factories import make_metric_rows, make_trial_row

from activemem.storage import Store, StoreError

TRIALS = 60


def main(root: str, seconds: str, action: str) -> None:
    store, rounds = Store(root), 0
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        if action == "write":
            with suppress(StoreError):  # what has not been merged yet is not written again
                store.write(make_trial_row(rounds % TRIALS), make_metric_rows(rounds % TRIALS))
        else:
            store.upkeep.compact()
        rounds += 1
    assert store.damaged == ()
    print(rounds)  # noqa: T201  read by the test


main(*sys.argv[1:])
