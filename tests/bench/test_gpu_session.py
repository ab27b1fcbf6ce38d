"""The session of a machine with a GPU, very small and on a CPU: each stage is done once, and stays known."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from activemem.storage import Store

ROOT = Path(__file__).parents[2]
STAGES = [
    "test gpu",
    "bench",
    "study recorded",
    "study",
    "test tests/engine/objectives/test_devices.py",
    "test tests/grammar/test_canonical.py",
]


def call(folder, kept):
    """The exit status of a call of the session, and the lines that it says."""
    command = [sys.executable, "bench/gpu_session.py", str(folder), "--keep", str(kept), "--tiny"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.slow
def test_a_session_does_each_stage_once_and_goes_on_from_what_is_kept(tmp_path):
    folder, kept = tmp_path / "session", tmp_path / "kept.tar.gz"
    status, lines = call(folder, kept)
    assert lines.pop() == "all has ended" and status == 0
    assert [line.rpartition(", ")[0] for line in lines] == [f"{stage}: status 0" for stage in STAGES]
    logs = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.log")}
    assert len(logs) == len(STAGES)
    assert "× torch's own layers, written by hand" in logs["bench"]
    assert " passed" in logs["test-tests-grammar-test_canonical.py"]
    assert [set(Store(folder / name).trials()["status"]) for name in ("recorded", "results")] == [
        {"done"}
    ] * 2
    elsewhere = tmp_path / "another machine"
    assert call(elsewhere, kept) == (0, ["all has ended"])
    notes = json.loads((elsewhere / "notes.json").read_text(encoding="utf-8"))
    notes["ended"] |= {"bench": "status 1", "study": "cut off 2 times", "test gpu": "status 5"}
    notes["ended"]["study recorded"] = "status 5"  # which is fine of pytest alone
    (folder / "notes.json").write_text(json.dumps(notes), encoding="utf-8")
    kept.unlink()
    told = f"not as it should be: bench, study recorded, study; see the logs in {folder}"
    assert call(folder, kept) == (1, ["all has ended", told])
