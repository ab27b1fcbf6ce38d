"""The command line as a program: `activemem`, or `python -m activemem`."""

from .cli.app import main

if __name__ == "__main__":
    main()
