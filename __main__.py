"""The command line as a program: `activemem`, or `python -m activemem`."""

import sys


def main() -> None:
    """Run the command line; end quietly if Ctrl-C comes while it is still being imported."""
    try:
        from .cli.app import main as run  # noqa: PLC0415 -- takes most of the time before a command begins

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
