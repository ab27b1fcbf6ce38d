"""Ray on machines where its home, its folder, its token or one of its processes is missing."""

import os
import subprocess
import sys

import psutil
import pytest

from activemem.storage import Store

from ...study_texts import replaced
from ...waiting import wait_for
from .ray_nodes import head

PATIENCE_S = 300
VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_TMPDIR", "TMPDIR")


@pytest.fixture
def begin(tmp_path, tiny, monkeypatch):
    """Return a function that starts a study of two short or `long` trials with other variables."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def start(*options, long=False, **environment):
        text = replaced(tiny, ('["not", "reverse"]', '["not"]'), ('"sa(heads=2, head_width=8)", ', ""))
        text = text.replace("epochs = 4", "epochs = 100000") if long else text
        (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", *(options or ["--ray"])],
            cwd=tmp_path,
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    return start


def processes(run, name):
    """Return the processes of this name that a run or its programs have started."""
    found = []
    for each in psutil.Process(run.pid).children(recursive=True):
        try:
            if each.status() != psutil.STATUS_ZOMBIE and name in " ".join(each.cmdline()).split("/")[-1]:
                found.append(each)
        except psutil.Error:
            continue
    return found


@pytest.mark.heavy
@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "{folder}/a file/home"},
        {"TMPDIR": "{folder}/" + 120 * "x"},
        {"RAY_TMPDIR": "{folder}/a file/x", "RAY_AUTH_TOKEN_PATH": "{folder}/absent"},
        {"RAY_AUTH_MODE": "token", "HOME": "{folder}/" + 120 * "x"},
    ],
    ids=["home that cannot be made", "long folder", "no folder and no token", "token asked for"],
)
def test_ray_trains_without_a_home_a_short_folder_or_a_token(begin, tmp_path, environment):
    (tmp_path / "a file").touch()
    (tmp_path / (120 * "x")).mkdir()
    run = begin(**{name: value.format(folder=tmp_path) for name, value in environment.items()})
    _, said = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, said
    assert Store(tmp_path / "results").trials()["status"].to_list() == ["done", "done"]
    assert not list((tmp_path / (120 * "x")).rglob("auth_token"))


@pytest.mark.heavy
def test_a_helper_of_ray_that_is_killed_while_ray_starts_ends_the_run_with_advice(begin):
    run = begin()
    wait_for(lambda: processes(run, "DashboardAgent") or processes(run, "agent.py"))
    for each in processes(run, "DashboardAgent") + processes(run, "agent.py"):
        each.kill()
    _, said = run.communicate(timeout=PATIENCE_S)
    assert run.returncode in {1, 2}, said
    last = said.splitlines()[-1]
    assert last.startswith("stopped: ")
    assert "lack of memory" in last
    assert "Continue: " in last


@pytest.mark.heavy
def test_a_helper_of_ray_that_is_killed_during_a_run_leaves_the_command_to_continue(begin, tmp_path):
    run = begin(long=True)
    wait_for(lambda: any((tmp_path / "results" / "checkpoints").glob("*/*")), seconds=PATIENCE_S)
    for each in processes(run, "DashboardAgent"):
        each.kill()
    _, said = run.communicate(timeout=PATIENCE_S)
    assert run.returncode, said
    last = said.splitlines()[-1]
    assert last.startswith("stopped: ")
    assert "lack of memory" in last
    assert last.endswith("study run tiny.toml --ray")


@pytest.mark.heavy
def test_a_cluster_that_expects_another_token_says_what_to_set(begin, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", 64 * "a")
    monkeypatch.setenv("HOME", str(tmp_path))
    with head(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=64 * "a") as address:
        monkeypatch.delenv("RAY_AUTH_TOKEN")
        for given in ({}, {"RAY_AUTH_MODE": "token"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": 64 * "b"}):
            run = begin("--address", address, **given)
            _, said = run.communicate(timeout=PATIENCE_S)
            assert run.returncode == 2, said
            assert "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what" in said.splitlines()[-1]
            assert len(said.splitlines()) < 10
