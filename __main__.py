"""The command line as a program, started as `activemem` or as `python -m activemem`."""

import gc
import signal
import sys


def main() -> None:
    """Run the command line; end quietly if Ctrl-C comes before a command handles it."""
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
