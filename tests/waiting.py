"""Waiting for what another process or thread does, without a time that a loaded machine breaks."""

import time

PATIENCE_S = 600


def wait_for(what, seconds=PATIENCE_S):
    """What a function gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(0.01)
    return found
