"""Waiting for another process or thread, with a limit that suits a loaded machine."""

import time

PATIENCE_S = 600


def wait_for(what, seconds=PATIENCE_S):
    """Return a function's result as soon as it is true, and fail after a time limit."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(0.01)
    return found
