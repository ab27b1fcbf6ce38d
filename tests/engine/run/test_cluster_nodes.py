"""Unfit nodes of a cluster, and nodes without access to the store, are reported and skipped."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
import ray
import torch

from activemem import __version__
from activemem.engine.core import gpus
from activemem.engine.core.events import NOBODY, ClusterNode
from activemem.engine.core.resources import Machine
from activemem.engine.run import cluster_nodes
from activemem.engine.run.cluster_nodes import FitNodes, NodeError, StorePlace, _Inspector, check_nodes
from activemem.engine.run.ray_connection import connect, look_at_code
from activemem.storage import Store

from .ray_nodes import ENVIRONMENT, can_mount, head, other_version, worker


def node(host, problem=""):
    return ClusterNode(id=host, host=host, cpus=1, gpus=0, versions={}, problem=problem)


def test_nodes_that_cannot_train_are_refused_or_left_out():
    nodes = [node("a"), node("b", "no corpus"), node("c", "no torch")]
    with pytest.raises(NodeError) as error:
        check_nodes(nodes, skip=False)
    assert str(error.value) == (
        "expected every node to fit\n  b: no corpus\n  c: no torch\nskip them with --skip-unfit-nodes"
    )
    assert check_nodes(nodes, skip=True) == ["b", "c"]
    with pytest.raises(NodeError, match="no node of the cluster can train\n  b: no corpus"):
        check_nodes(nodes[1:2], skip=True)


FOUR_GPUS = {"CPU": 1.0, "GPU": 4.0}


@pytest.mark.parametrize(
    ("asked", "nodes", "told"),
    [
        (
            {"gpus": 1.0},
            [{"CPU": 2.0}],
            "1 CPU and 1 GPU on one node for each trial, got 2 CPUs and 0 GPUs on the largest; "
            "gpus = 0 trains on CPUs",
        ),
        (
            {"gpus": 0.0, "cpus": 4.0},
            [{"CPU": 2.0}, FOUR_GPUS],
            "4 CPUs and 0 GPUs on one node for each trial, got 2 CPUs and 0 GPUs on the largest",
        ),
        (
            {"gpus": 1.0, "cpus": 2.0},
            [FOUR_GPUS],
            "2 CPUs and 1 GPU on one node for each trial, got 1 CPU and 4 GPUs on the largest",
        ),
    ],
    ids=["no GPU", "CPUs", "both"],
)
def test_what_no_node_has_room_for_is_told_with_what_would_do(monkeypatch, tmp_path, asked, nodes, told):
    found = [{"Alive": True, "Resources": each} for each in nodes]
    monkeypatch.setattr(ray, "nodes", lambda: found)
    monkeypatch.setattr(cluster_nodes, "_Inspector", lambda *_: None)
    with pytest.raises(NodeError) as error:
        FitNodes(StorePlace(root=str(tmp_path)), Machine(**asked), [], NOBODY)
    assert str(error.value) == f"no node of the cluster has room for a trial: expected {told}"


def look(**others):
    """Return this process's report as a node."""
    versions = {"activemem": __version__, "torch": torch.__version__}
    asked = {
        "gpu": False,
        "versions": versions,
        "plugins": pickle.dumps([]),
        "settings": pickle.dumps([]),
        "data": "",
    }
    asked["code"] = look_at_code()
    return cluster_nodes._make_look()(asked | {"marker": "/", "store": "", **others})


def test_a_node_tells_its_versions_whether_it_sees_the_store_and_what_is_wrong(tmp_path, monkeypatch):
    assert look(marker=str(tmp_path))["problem"] == ""
    assert look(marker=str(tmp_path / "elsewhere"), store="/home/me/results")["problem"] == (
        "expected to see the results in /home/me/results, which this node cannot see: "
        "use a folder that all nodes share, or a bucket"
    )
    other = {"activemem": f"0.0.{__version__}", "torch": torch.__version__}
    assert look(versions=other)["problem"] == (
        f"expected activemem 0.0.{__version__}, torch {torch.__version__}, "
        f"got activemem {__version__}, torch {torch.__version__}"
    )
    edited = {**look_at_code(), "digest": "0" * 16}
    assert look(code=edited)["problem"].startswith(
        f"expected activemem as in {edited['folder']} (00000000), got "
    )
    if not torch.cuda.is_available():
        told = "expected the GPU that Ray reports, but torch finds none there"
        assert look(gpu=True)["problem"] == told
        monkeypatch.setattr(gpus, "gpu_fault", lambda: "Error 805")
        assert look(gpu=True)["problem"] == f"{told}, because CUDA fails: Error 805"
    assert look(plugins=b"")["problem"] == "EOFError: Ran out of input"


@pytest.mark.parametrize(
    ("gpus", "found"), [("auto", None), (0.5, 7 * 10**8), (1.0, None)], ids=["auto", "a share", "whole"]
)
def test_trials_that_share_gpus_go_by_what_is_free_of_the_fullest(monkeypatch, tmp_path, gpus, found):
    room = {"a": 8 * 10**9, "b": 7 * 10**8, "c": 0}
    nodes = [
        replace(node(name, "no corpus" if name == "c" else ""), gpus=1.0, gpu_bytes=bytes_)
        for name, bytes_ in room.items()
    ]
    monkeypatch.setattr(cluster_nodes, "_find_nodes", lambda _machine: [{"Resources": {"GPU": 1.0}}])
    monkeypatch.setattr(cluster_nodes, "inspect_nodes", lambda *_: nodes)
    monkeypatch.setattr(cluster_nodes, "_Inspector", lambda *_: None)
    asked = Machine(gpus=gpus, address="elsewhere:1", skip_unfit_nodes=True)
    machine = FitNodes(StorePlace(root=str(tmp_path)), asked, [], NOBODY).machine
    assert machine.gpus == (1.0 if gpus == "auto" else gpus)  # one without trials shares nothing
    assert machine.gpu_bytes == found


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray")  # 2.50 says it of what is chosen here,
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # and leaves files open
def test_a_node_that_is_asked_sees_its_gpus_whatever_ray_hides_from_who_asks_for_none(monkeypatch):
    def make_look():
        return lambda asked: os.environ.get("CUDA_VISIBLE_DEVICES")

    monkeypatch.setattr(cluster_nodes, "_make_look", make_look)
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")  # as it is in Ray 2.50
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    ray.init(address="local", num_cpus=1, num_gpus=1, include_dashboard=False, log_to_driver=False)
    try:
        (here,) = ray.nodes()
        seen = [
            ray.get(_Inspector(StorePlace(root="/nowhere"), Machine(gpus=gpus), []).ask(here))
            for gpus in (1.0, 0.0)
        ]
    finally:
        ray.shutdown()
    assert seen == ["0", ""]


@pytest.mark.slow  # four programs with Ray
@pytest.mark.skipif(not can_mount(), reason="needs mounts of its own")
def test_nodes_without_the_store_or_of_another_version_are_named_and_left_out(tmp_path, tiny):
    work, packages = tmp_path / "work", tmp_path / "packages"
    for folder in (work, packages):
        folder.mkdir()
    (work / "tiny.toml").write_text(tiny.replace("[study]", "[study]\nkeep_weights = true"), encoding="utf-8")
    with (
        other_version(packages) as path,
        head() as address,
        worker(address, 2, without=work),
        worker(address, 3, path=path),
    ):
        command = [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", "--address", address]
        run = {"cwd": work, "env": ENVIRONMENT, "capture_output": True, "text": True, "check": False}
        refused = subprocess.run(command, **run)
        done = subprocess.run([*command, "--skip-unfit-nodes"], **run)
    assert refused.returncode == 2
    assert f"(127.0.0.3): expected activemem {__version__}, torch" in refused.stderr
    assert f"got activemem 0.0.{__version__}, torch" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert "(127.0.0.2)" in done.stderr and "expected to see the results in" in done.stderr
    store = Store(work / "results")
    assert set(store.trials()["status"]) == {"done"}
    assert len(store.trials()) == 8
    assert store.metrics()["epoch"].max() == 4
    assert all(store.files.weights_file(trial).is_file() for trial in store.trials()["trial"])
    assert not any(store.files.checkpoint_dir("x").parent.glob("*"))
    assert not any((work / "results" / "unfinished").glob("*"))


def test_a_cluster_that_refuses_is_told_with_what_its_token_needs(monkeypatch):
    def refuse(**_keys):
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379")

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(ConnectionError, match=r"10\.0\.0\.1:6379: .* set RAY_AUTH_MODE=token$"):
        connect("10.0.0.1:6379")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(ConnectionError, match=r"10\.0\.0\.1:6379$"):
        connect("10.0.0.1:6379")
