"""The scripts for Slurm, with stand-ins for its commands and for Ray's."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "docs" / "cluster"

_COMMANDS = {
    "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "ray": """\
        echo "$1 mode=${RAY_AUTH_MODE:-}" >> calls
        case $1 in
          start) while [[ -e calls && ! -e ended ]]; do /bin/sleep 0.05; done ;;
          health-check) [[ ! -v ASKS_FOR_TOKEN || ${RAY_AUTH_MODE:-} == token ]] || {
            printf 'Traceback\\nAuthenticationError: no token\\n' >&2; exit 1; } ;;
          status) printf ' node_1\\n node_2\\n' ;;
        esac""",
    "activemem": """\
        echo "$* mode=${RAY_AUTH_MODE:-}" >> calls
        [[ -v STOPS_BY ]] || exit 0
        trap 'echo saved >> calls; exit 130' TERM
        number=$(kill -l "$STOPS_BY")
        until ((16#$(sed -n 's/SigCgt:\t//p' /proc/$PPID/status) >> number - 1 & 1)); do /bin/sleep 0.05; done
        kill -"$STOPS_BY" $PPID
        while :; do /bin/sleep 0.05; done""",
    "sleep": "",
}


@pytest.fixture
def run(tmp_path):
    for name, text in _COMMANDS.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_script(name="slurm-ray.sbatch", **variables):
        slurm = {"JOB_ID": "7", "CPUS_PER_TASK": "1", "JOB_NUM_NODES": "2"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment = kept | {f"SLURM_{name}": value for name, value in slurm.items()} | variables
        environment |= {"SLURMD_NODENAME": "here", "HOME": str(tmp_path)}
        environment["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        command = ["bash", str(SCRIPTS / name), "mine.toml"]
        with (tmp_path / "errors").open("wb") as errors:  # a pipe would be open until the head ends
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, stderr=errors, timeout=60, check=False
            )
        (tmp_path / "ended").touch()
        return done.returncode, (tmp_path / "errors").read_text(encoding="utf-8")

    return run_script


@pytest.mark.parametrize(
    ("variables", "mode"),
    [({}, ""), ({"RAY_AUTH_MODE": "disabled"}, "disabled"), ({"RAY_AUTH_TOKEN": "secret"}, "token")],
)
def test_only_a_token_sets_the_mode_that_is_not_set(run, tmp_path, variables, mode):
    assert run(**variables)[0] == 0
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert {line.rpartition("mode=")[2] for line in calls} == {mode}
    assert f"study run mine.toml mode={mode}" in calls


def test_a_token_file_makes_every_command_send_the_token(run, tmp_path):
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").touch()
    assert run(ASKS_FOR_TOKEN="1")[0] == 0
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert {"health-check mode=token", "status mode=token"} < {*calls}


def test_a_head_that_does_not_answer_ends_the_job_with_the_last_error_of_ray(run):
    code, errors = run(ASKS_FOR_TOKEN="1", RAY_AUTH_MODE="disabled", HEAD_WAIT_S="0")
    assert code == 1
    assert errors.endswith("(HEAD_WAIT_S): AuthenticationError: no token\n")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux lists caught signals there")
@pytest.mark.parametrize("name", ["slurm-ray.sbatch", "slurm-array.sbatch"])
@pytest.mark.parametrize("signal", ["TERM", "USR1"])
def test_a_signal_before_the_time_is_up_lets_the_study_save_its_trials(run, tmp_path, name, signal):
    assert run(name, STOPS_BY=signal)[0] != 0
    assert (tmp_path / "calls").read_text(encoding="utf-8").splitlines().count("saved") == 1
