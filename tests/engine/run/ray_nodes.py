"""Ray nodes on loopback, started as by an operator, with separate folders and packages."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from activemem.engine.core.resources import has_gpu

ROOT = Path(__file__).parents[3]
RAY = str(Path(sys.executable).parent / "ray")
WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": ""} if has_gpu() else {}  # as in other tests that are none of one
ENVIRONMENT = os.environ | {
    "RAY_AUTH_MODE": "disabled",
    "RAY_raylet_start_wait_time_s": "180",  # many tests run at once
    "ACTIVEMEM_CPUS": "1",
    **WITHOUT_GPU,
}


def can_mount():
    """Return whether this user may create mounts."""
    return subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


@contextmanager
def head(**environment):
    """Start a cluster's head without cores, with these variables; return its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--head", f"--port={port}", "--include-dashboard=false", "--num-cpus=0"]
    with _node([RAY, "start", *options, "--node-ip-address=127.0.0.1", "--block"], **environment):
        _wait(lambda: _answers(port))
        yield f"127.0.0.1:{port}"


@contextmanager
def worker(address, number, *, without=None, path=None, awaited=True, gpus=0):
    """Start a node that cannot see the folder `without`, with `path` first on its import path.

    `gpus` is the number of GPUs that the node reports to Ray.

    If `awaited`, wait until the head counts one more node than before; no other node may leave in the
    meantime.
    """
    place = f"--node-ip-address=127.0.0.{number}"
    resources = ["--num-cpus=1", *([f"--num-gpus={gpus}"] if gpus else [])]
    words = [RAY, "start", f"--address={address}", *resources, place, "--block"]
    if without is not None:
        words = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {without}; exec "$@"', "sh", *words]
    before = _count_nodes(address)
    with _node(words, **({"PYTHONPATH": str(path)} if path else {})) as process:
        _wait(lambda: not awaited or _count_nodes(address) > before)
        yield process


@contextmanager
def other_version(folder):
    """Return a folder with this package under another version."""
    target = folder / "activemem"
    ignored = shutil.ignore_patterns(".*", "tests", "docs", "results", "build", "__pycache__")
    shutil.copytree(ROOT, target, ignore=ignored)
    init = target / "__init__.py"
    text = init.read_text(encoding="utf-8")
    assert '__version__ = "' in text
    init.write_text(text.replace('__version__ = "', '__version__ = "0.0.'), encoding="utf-8")
    yield folder


@contextmanager
def _node(words, **environment):
    """Start a node's process, which is killed with its children."""
    with ExitStack() as stack:
        process = subprocess.Popen(
            words,
            env=ENVIRONMENT | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        stack.callback(_kill, process)
        yield process


def _kill(process):
    if process.poll() is None:
        for each in [process, *psutil.Process(process.pid).children(recursive=True)]:
            each.kill()
    process.wait()


def _count_nodes(address):
    """Return the number of nodes according to the cluster's head."""
    words = [RAY, "status", "--address", address]
    shown = subprocess.run(words, env=ENVIRONMENT, check=False, capture_output=True, text=True).stdout
    return shown.count(" node_")


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(what, seconds=300):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(0.2)
