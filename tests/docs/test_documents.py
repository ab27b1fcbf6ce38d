"""What the documents show is what the program prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_output_in_the_documents_is_what_the_program_prints():
    command = [sys.executable, "docs/refresh.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}refresh with: python docs/refresh.py"


def test_the_map_names_every_folder_and_stays_short():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert {folder for folder in folders if f"`{folder}/`" in text} == folders
    assert len(text.splitlines()) <= 100
