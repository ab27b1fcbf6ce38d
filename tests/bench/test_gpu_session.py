"""The GPU session in a tiny form on a CPU: each stage runs once, and its result is stored."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType

import pytest

from activemem.engine.core.resources import has_gpu
from activemem.storage import Store

ROOT = Path(__file__).parents[2]
STAGES = [
    "test gpu",
    "bench",
    "study",
    "table",
    "test tests/engine/objectives/test_devices.py",
    "test tests/grammar/test_canonical.py",
]
STAGES_ALONE = r"""
import gpu_session, subprocess, sys
from pathlib import Path

for stage in gpu_session.stages_of_study(Path(sys.argv[1]), 2, tiny=False):
    if stage.results is not None:
        done = subprocess.run(stage.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        told = "gpus: expected 1 for each trial, but torch finds none" in done.stdout
        print(stage.name, done.returncode, told, stage.results.exists())
"""
COMMANDS = r"""
import gpu_session, json
from pathlib import Path

print(json.dumps({stage.name: stage.command for stage in gpu_session.stages(Path("results"), tiny=False)}))
"""
SESSION = r"""
import gpu_session, json, sys

given = json.loads(sys.argv.pop())
vars(gpu_session).update(GRACE_S=0.5, LEAST_S=0.1)

def stages(folder, *, tiny):
    for name, (command, more) in given.items():
        results = folder / more.pop("results") if "results" in more else None
        yield gpu_session.Stage(name=name, command=(sys.executable, "-c", command), results=results, **more)

gpu_session.stages = stages
gpu_session.main()
"""
STUDY = r"""
import signal, subprocess, sys, time

worker = subprocess.Popen(["sleep", "600"])
print(worker.pid, flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("ended in order", flush=True)
"""
PATIENT = r"""
import os, time

print(os.getpid(), flush=True)
try:
    time.sleep(600)
except KeyboardInterrupt:
    pass
"""
DEAF = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){STUDY}"


def call(folder, kept):
    """Run one call of the session; return its exit status and printed lines."""
    command = [sys.executable, "bench/gpu_session.py", str(folder), "--keep", str(kept), "--tiny"]
    command += ["--minutes", "60"]  # none is cut off on a busy machine
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def with_benchmarks():
    """Return the environment of a program that imports the benchmarks."""
    path = os.pathsep.join([str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def begin(given, folder, *options, environment=MappingProxyType({})):
    """Start a session whose stages are other programs, and pass it these options."""
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, str(folder), "--tiny", *map(str, options), json.dumps(given)],
        env=with_benchmarks() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def say(given, folder, *options):
    """Run a session whose stages are other programs; return its exit status and output."""
    session = begin(given, folder, *options)
    said, told = session.communicate()
    assert told == "" or not said
    return session.returncode, (said or told).splitlines()


def is_alive(pid):
    """Return whether a process is still running."""
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
def test_a_session_does_each_stage_once_and_resumes_from_what_is_kept(tmp_path):
    folder, kept = tmp_path / "session", tmp_path / "kept.tar.gz"
    status, lines = call(folder, kept)
    assert lines.pop() == "all stages have ended" and status == 0
    assert [line.rpartition(", ")[0] for line in lines] == [f"{stage}: status 0" for stage in STAGES]
    logs = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.log")}
    assert len(logs) == len(STAGES)
    for measured in ("written by hand", "released program"):
        assert measured in logs["bench"]
    assert "raised" not in logs["bench"]
    assert "Longest length with 100 % accuracy" in " ".join(logs["table"].split())
    assert " passed" in logs["test-tests-grammar-test_canonical.py"]
    assert set(Store(folder / "results").trials()["status"]) == {"done"}
    elsewhere = tmp_path / "another machine"
    assert call(elsewhere, kept) == (0, ["all stages have ended"])
    notes = json.loads((elsewhere / "notes.json").read_text(encoding="utf-8"))
    notes["ended"] |= {
        "bench": "status 1",
        "study": "cut off 2 times, no trial ended",
        "test gpu": "status 5",
    }
    (folder / "notes.json").write_text(json.dumps(notes), encoding="utf-8")
    kept.unlink()
    told = f"failed: bench, study; see the logs in {folder}"
    assert call(folder, kept) == (1, ["all stages have ended", told])


def commands():
    """Return the commands of a GPU session by stage."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS], cwd=ROOT, env=with_benchmarks(), capture_output=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.heavy
def test_the_tests_of_a_gpu_are_those_of_the_files_that_its_stages_name():
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "gpu", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    expected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    given = commands()
    assert {part for part in given["test gpu"] if part.startswith("tests/")} == expected


@pytest.mark.heavy
def test_processes_that_run_at_once_share_the_gpu_and_end_together(tmp_path):
    program = tmp_path / "bin" / "nvidia-cuda-mps-control"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/mps\n[ -n "$1" ] || cat >> {tmp_path}/mps\n')
    program.chmod(0o755)
    given = {"study": (PATIENT, {"results": "results", "at_once": 3})}
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    session = begin(given, tmp_path, environment=path)
    file, begun = tmp_path / "study.log", time.monotonic()
    while not file.is_file() or file.read_text().count("\n") < 3:
        assert session.poll() is None and time.monotonic() < begun + 600
        time.sleep(0.05)
    os.killpg(session.pid, signal.SIGTERM)
    assert session.communicate() == ("", "")
    pids = file.read_text().split()
    assert len(set(pids)) == 3 and not any(is_alive(pid) for pid in pids)
    assert (tmp_path / "mps").read_text().split() == ["-d", "quit"]


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("program", "log"), [(STUDY, ["ended in order"]), (DEAF, [])], ids=["in order", "deaf"]
)
def test_a_session_that_is_stopped_ends_its_stage_with_all_processes_and_keeps_what_is_known(
    tmp_path, number, program, log
):
    session = begin({"study": (program, {})}, tmp_path, "--keep", tmp_path / "kept.tar.gz")
    file, begun = tmp_path / "study.log", time.monotonic()
    while not file.is_file() or not file.read_text().endswith("\n"):
        assert session.poll() is None and time.monotonic() < begun + 600
        time.sleep(0.05)
    os.killpg(session.pid, number)
    said, told = session.communicate()
    assert (session.returncode, said, told) == (128 + number, "", "")
    worker, *left = file.read_text().splitlines()
    assert left == log
    assert not is_alive(worker)
    assert json.loads((tmp_path / "notes.json").read_text())["seconds"]["study"] > 0
    assert (tmp_path / "kept.tar.gz").is_file()


@pytest.mark.heavy
def test_a_stage_has_done_what_it_should_by_its_log_too(tmp_path):
    given = {
        "tests": ("print('3 skipped in 0.1s')", {"text": " passed"}),
        "others": ("print('3 passed, 1 skipped')", {"text": " passed"}),
        "all": ("raise SystemExit(5)", {}),
    }
    status, lines = say(given, tmp_path)
    assert status == 1
    assert [line.rpartition(", ")[0] for line in lines[:3]] == [
        "tests: status 0, but its log is without ' passed'",
        "others: status 0",
        "all: status 5",
    ]
    assert lines[3:] == [
        "all stages have ended",
        f"failed: tests, all; see the logs in {tmp_path}",
    ]


@pytest.mark.heavy
def test_a_study_without_kept_states_is_left_when_no_trial_ends_in_two_calls(tmp_path):
    given = {"study": ("import time; time.sleep(600)", {"results": "results"})}
    few, keep = ("--minutes", 1.5 / 60), ("--keep", tmp_path / "kept.tar.gz")
    assert say(given, tmp_path / "a", *few, *keep) == (
        75,
        [
            "study: begins anew, as no trial ended in this call, 1 s",
            "left: study; run the same command again to continue",
        ],
    )
    assert say(given, tmp_path / "b", *few, *keep) == (
        1,
        [
            "study: cut off 2 times, with no trial ended, 2 s",
            "all stages have ended",
            f"failed: study; see the logs in {tmp_path / 'b'}",
        ],
    )
    for _ in range(3):  # where all is kept it goes on by steps
        assert say(given, tmp_path / "c", *few)[1][0].startswith("study: goes on, ")


@pytest.mark.heavy
def test_an_archive_that_cannot_be_read_or_written_is_reported_before_any_work(tmp_path):
    given, kept = {"study": ("pass", {})}, tmp_path / "kept.tar.gz"
    assert say(given, tmp_path / "a", "--keep", kept)[0] == 0
    kept.write_bytes(kept.read_bytes()[:100])
    told = f"--keep {kept}: expected an archive of a session, or room for a new one, got "
    status, lines = say(given, tmp_path / "b", "--keep", kept)
    assert (status, len(lines)) == (1, 1) and lines[0].startswith(told)
    (tmp_path / "file").touch()
    status, lines = say(given, tmp_path / "c", "--keep", tmp_path / "file" / "kept.tar.gz")
    assert (status, len(lines)) == (1, 1) and "file" in lines[0]
    assert not (tmp_path / "c").exists()


@pytest.mark.heavy
@pytest.mark.skipif(has_gpu(), reason="needs a machine without a GPU")
def test_without_a_gpu_nothing_is_begun(tmp_path):
    command = [sys.executable, "bench/gpu_session.py", str(tmp_path / "session")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no GPU can be used: ") and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "session").exists()
    command = [sys.executable, "-c", STAGES_ALONE, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=with_benchmarks(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["study 2 True False"]
