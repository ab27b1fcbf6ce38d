"""`docs/how-to/continue.md`: its damaged store is reported as it shows.

python -m tests.docs.test_continue_page write the output again
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from activemem.storage import Store

from ..forked_commands import run_command

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "how-to" / "continue.md"
SHOWN = re.compile(r"(^```\n\$ activemem store check\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def told(folder):
    """Return the output for the tutorial's results, with a flipped bit and the state of a finished trial."""
    shutil.copytree(ROOT / "docs" / "tutorial" / "results", folder / "results")
    store = Store(folder / "results")
    begun = store.files.checkpoint_dir(store.trials().filter(study="beside")["trial"].min()) / "begun"
    begun.parent.mkdir(parents=True)
    begun.write_text("a trial", encoding="utf-8")
    os.utime(begun, (0, 0))
    (rows,) = (folder / "results" / "trials" / "mine").iterdir()
    damaged = bytearray(rows.read_bytes())
    damaged[200] ^= 1
    rows.write_bytes(damaged)
    return run_command("store", "check", cwd=folder, environment={"COLUMNS": "80"}).stdout


def test_the_damaged_store_of_the_page_is_reported_as_shown(tmp_path):
    assert SHOWN.search(PATH.read_text(encoding="utf-8"))[2] == told(tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        output = told(Path(name))
    text = PATH.read_text(encoding="utf-8")
    PATH.write_text(SHOWN.sub(lambda found: found[1] + output + found[3], text), encoding="utf-8")
