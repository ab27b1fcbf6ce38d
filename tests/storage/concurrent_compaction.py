"""Read a store while a merged file is added. Usage: concurrent_compaction.py ROOT FILE PLACE.

The script moves FILE to PLACE when the first data file is opened, which is after the folder was listed, and
prints the trials that are read.
"""

import sys
from pathlib import Path

from activemem.storage import Store


def main(root: str, file: str, place: str) -> None:
    moving = Path(file)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).startswith(str(Path(place).parent)) and moving.exists():
            moving.rename(place)

    sys.addaudithook(hook)
    print(*Store(root).latest_attempts())  # noqa: T201  read by the test


main(*sys.argv[1:])
