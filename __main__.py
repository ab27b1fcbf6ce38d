"""The command line as a program, started as `activemem` or as `python -m activemem`."""

import gc
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Run the command line; end quietly if Ctrl-C comes before a command handles it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed, and the next file that is opened would take its place
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 -- until the end
    gc.set_threshold(500_000)  # the trials of a large study live until the end
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        if interrupt is signal.default_int_handler:  # until a command begins, the process just ends
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from .cli.app import main as run  # noqa: PLC0415 -- takes most of the time before a command begins

        if interrupt is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # at its end, a process need not search its objects for cycles


if __name__ == "__main__":
    main()
