"""Connection to a Ray cluster.

It connects to an existing cluster by its address, or starts a local one that ends with the run. The cluster's
workers must import the same package as the driver.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict, TypeVar

import ray
import ray.exceptions

# Ray has no public way to end its wait for a node that has died, or to ask a cluster once with a token.
from ray._private import services
from ray._raylet import GcsClient  # pyright: ignore[reportAttributeAccessIssue] -- compiled
from ray.job_config import JobConfig

from ...studies.text.units import format_bytes, plural
from ..core.events import Event, Listener
from ..core.process import apart_from_terminal
from ..core.resources import Machine, count_gpus_of_processes, cpus_here
from ..trial.failures import HeadLostError, MachineError

LOST_AFTER_S = 5.0
"""The seconds without a connection after which a head counts as gone."""

POLL_S = 0.5

_ResultT = TypeVar("_ResultT")


class HeadWatch:
    """Watcher that checks whether the head of a Ray cluster still answers.

    Without a head, Ray ends the driver without a message, and calls of Ray do not return. So each call runs
    in its own thread, which is abandoned if the head is gone.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._closed = threading.Event()
        self.is_lost = False
        threading.Thread(target=self._look, name="head watch", daemon=True).start()

    def run(self, what: Callable[[], _ResultT]) -> _ResultT:
        """Call `what` and return its result. Raise HeadLostError as soon as the cluster's head is gone."""
        result: Future[_ResultT] = Future()
        thread = threading.Thread(target=_run, args=(what, result), name="cluster", daemon=True)
        thread.start()
        while thread.is_alive():
            if self.is_lost:
                raise HeadLostError("the head of the Ray cluster no longer answers")
            thread.join(POLL_S / 5)
        return result.result()

    def close(self) -> None:
        """Stop checking the cluster's head."""
        self._closed.set()

    def _look(self) -> None:
        reached = time.monotonic()
        while not self._closed.wait(POLL_S):
            try:
                socket.create_connection(self._address, timeout=LOST_AFTER_S / 2).close()
                reached, self.is_lost = time.monotonic(), False
            except OSError:
                self.is_lost = time.monotonic() - reached > LOST_AFTER_S


def _run(what: Callable[[], _ResultT], result: Future[_ResultT]) -> None:
    try:
        result.set_result(what())
    except BaseException as error:  # noqa: BLE001 -- raised when the result is requested
        result.set_exception(error)


RAY_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",  # Tune's old output prints no header
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_TRAIN_COUNT_PREEMPTION_AS_FAILURE": "1",  # otherwise Tune retries, instead of the searcher
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # saves 13 to 30 ms per trial
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # the driver handles signals itself
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # the store is the truth; Tune's snapshots are never read
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",  # otherwise workers start one after the other; see `suggest`
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "30",  # longer than the run needs to end after the head's death
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # on a busy machine Ray's processes start several times slower than its own limits allow
    "RAY_agent_register_timeout_ms": "120000",
    "RAY_gcs_server_port_wait_time_s": "120",
}
"""Default environment variables of Ray and Tune."""

STARTS = 4
"""The number of attempts to start Ray before the run fails. Ray waits 15 s for its agent and 30 s for its
node, which cannot be configured in version 2.60. On a busy machine a later start is quicker, because all
files are cached by then."""

NEEDED_BYTES = 16 * 2**20
"""The free bytes without which Ray is not started: its processes would wait for files that never come."""

_ASKING = {"RAY_raylet_start_wait_time_s": "1"}
"""The environment in which Ray asks for its new node every second."""

NODE_START_S = 120.0
"""The seconds that Ray's node may take to start."""

MAX_FOLDER_BYTES = 34 if sys.platform == "darwin" else 37
"""The length of the longest path below which Ray's sockets have names that the system accepts."""

START_S = 300.0
"""The seconds for the first worker to import the package."""


@contextmanager
def connected(machine: Machine, listener: Listener, study: str = "") -> Iterator[HeadWatch]:
    """Connect to the cluster at the machine's address, or start a local cluster for this context.

    The metadata of the job in Ray names the `study`. Raise MachineError if no cluster can be started, and
    ConnectionError if none answers at the address. Ray replaces the handler of SIGTERM.
    """
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # the driver reports a worker's death itself
    mine = not ray.is_initialized()
    if mine:
        if machine.address is None:
            _start(machine, listener, study)
        else:
            connect(machine.address, study)
    head = HeadWatch(ray.get_runtime_context().gcs_address)
    try:
        yield head
    finally:
        head.close()
        if mine and not head.is_lost:  # otherwise Ray would wait for it
            ray.shutdown()


def connect(address: str, study: str = "") -> None:
    """Connect to the cluster at an address; raise ConnectionError if no cluster answers or it refuses.

    If there is a token in ~/.ray, `ray start` requires it from every client. With an address Ray sends it
    only if RAY_AUTH_MODE is set.
    """
    refused = (
        f"the Ray cluster at {address} takes only clients with its token, and here is none or another one: "
        "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` prints on the machine "
        "where the cluster was started"
    )
    if "RAY_AUTH_MODE" in os.environ and not _has_token():
        raise ConnectionError(refused)
    try:
        if ":" in address:  # Ray itself would ask again for two minutes
            GcsClient(address=address)
        ray.init(
            address=address, job_config=_job_config(study), log_to_driver=False, logging_level=logging.ERROR
        )
    except (ConnectionError, ray.exceptions.RayError) as error:
        if "token" in str(error).lower():
            raise ConnectionError(refused) from error
        cause = " ".join(str(error).split()).rstrip(".")
        raise ConnectionError(f"no Ray cluster answers at {address}: {cause}") from error


def _start(machine: Machine, listener: Listener, study: str = "") -> None:
    """Start a cluster on this machine only.

    Try again if Ray's own time limits were too short. Raise MachineError with the cause.
    """
    otherwise = "to train in this process, without Ray, add --local"
    folder = _folder_of_ray()
    if folder is None:
        raise MachineError(
            "Ray does not start here: it needs a folder that can be written and whose path has at most "
            f"{MAX_FOLDER_BYTES} bytes; set RAY_TMPDIR to one; {otherwise}"
        )
    if (free := shutil.disk_usage(folder).free) < NEEDED_BYTES:
        raise MachineError(
            f"Ray does not start here: {folder}, where it writes, has only {format_bytes(free)} left; make "
            f"room, or set TMPDIR to another folder; {otherwise}"
        )
    if not _has_token():  # Ray would write one into the home folder, which may be closed
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    for attempt in range(1, STARTS + 1):
        listener(Event(kind="starting_ray", attempt=attempt))
        try:
            with apart_from_terminal(), _watched_node():
                ray.init(
                    address="local",
                    job_config=_job_config(study),
                    num_cpus=cpus_here(),
                    # Ray counts the driver's GPUs, but a GPU may be split into instances
                    num_gpus=count_gpus_of_processes() if machine.gpus else 0,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,  # the exception has the same message
                    _temp_dir=str(folder / "ray"),
                )
        except BaseException as error:
            ray.shutdown()
            if not isinstance(error, Exception):  # such as a requested stop
                raise
            if attempt < STARTS and "timed out" in str(error).lower():
                continue
            cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            message = f"Ray does not start here ({plural(attempt, 'attempt')}): {cause}"
            raise MachineError(f"{message}; {otherwise}") from error
        return


def _folder_of_ray() -> Path | None:
    """Return the folder in which Ray makes a folder for its files and sockets, or None if there is none.

    It is the one that Ray would take, unless that one is closed or its path is too long.
    """
    named = (os.environ.get("RAY_TMPDIR"), os.environ.get("TMPDIR"), tempfile.gettempdir(), "/tmp")
    folders = [Path(each).absolute() for each in named if each]
    for folder in (each for each in folders if len(os.fsencode(each)) <= MAX_FOLDER_BYTES):
        with suppress(OSError):
            (folder / "ray").mkdir(parents=True)
            (folder / "ray").chmod(0o777)  # as Ray does, for other users
        if os.access(folder / "ray", os.W_OK | os.X_OK):
            return folder
    return None


def _has_token() -> bool:
    """Return whether Ray needs no token here, or finds one."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return True
    try:
        path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
        return bool(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home folder
        return False


@contextmanager
def _watched_node() -> Iterator[None]:
    """Within this context, end Ray's wait for its new node as soon as the node's process has ended.

    Ray ends the node if a helper of it is killed or cannot start, and then waits for it all the same.
    """
    import psutil  # noqa: PLC0415  comes with Ray, and can be imported only after it

    get_node, begun = services.get_node, time.monotonic()
    os.environ.update(_ASKING)

    def look(*arguments: str) -> object:
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:
                nodes = [each for each in psutil.Process().children() if each.name() == "raylet"]
                if any(each.status() == psutil.STATUS_ZOMBIE for each in nodes):
                    raise MachineError(
                        "the process of its node has ended; often the system has killed one of Ray's "
                        "processes for lack of memory: free memory, and try again"
                    ) from None
                if time.monotonic() - begun > NODE_START_S:
                    raise

    services.get_node = look
    try:
        yield
    finally:
        services.get_node = get_node
        for name in _ASKING:
            del os.environ[name]


def _job_config(study: str) -> JobConfig:
    """Return settings that give Ray's workers this process's module search path.

    By default Ray puts the working folder first in the module search path, except for the job of a Ray
    client.
    """
    # Ray inserts one entry after the other at the front, so reverse them; '' would be a worker's own folder
    path = [entry or str(Path.cwd()) for entry in reversed(sys.path)]
    metadata = {"program": "activemem", **({"study": study} if study else {})}
    return JobConfig(metadata=metadata, _client_job=True, _py_driver_sys_path=path)


class Code(TypedDict):
    """The copy of activemem that a process imports: version and digest of its source, or the import error."""

    folder: str
    version: str
    digest: str
    fault: str


def _make_look() -> Callable[[], Code]:
    """Return a function that describes the calling process's copy of activemem.

    The returned function is an inner one, which is pickled by value: a worker can run it without this
    package.
    """

    def look() -> Code:
        import contextlib  # noqa: PLC0415 -- these modules belong to the worker
        import hashlib  # noqa: PLC0415
        import importlib  # noqa: PLC0415
        import os  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        code: Code = {"folder": "", "version": "", "digest": "", "fault": ""}
        try:
            package = importlib.import_module("activemem")
        except Exception as error:  # noqa: BLE001 -- another package of that name may raise anything
            return {**code, "fault": " ".join(f"{type(error).__name__}: {error}".split())}
        if package.__file__ is None:
            return {**code, "folder": str(next(iter(package.__path__))), "fault": "no package is there"}
        root, digest = Path(package.__file__).resolve().parent, hashlib.sha256()
        for folder, folders, files in os.walk(root):
            if "__init__.py" not in files:  # tests, documents, environments and results are not the package
                folders.clear()
                continue
            folders.sort()
            for name in sorted(files):
                if name.endswith((".py", ".toml")):
                    path = Path(folder, name)
                    content = hashlib.sha256(path.read_bytes()).digest()
                    digest.update(path.relative_to(root).as_posix().encode() + b"\0" + content)
        commit = None
        with contextlib.suppress(Exception):  # another release may differ
            commit = importlib.import_module("activemem.engine.trial.commit").commit()
        version = f"{package.__version__}, commit {commit or 'unknown'}"
        return {"folder": str(root), "version": version, "digest": digest.hexdigest()[:16], "fault": ""}

    return look


look_at_code = _make_look()
"""Describes the code of this process or, as a Ray task, the code of a worker."""


def code_fault(driver: Code, worker: Code) -> str | None:
    """Describe how a worker's code differs from the driver's; None if it is the same.

    On a node of a cluster, the same code may be in a different folder.
    """
    if worker["fault"]:
        place = f" from {worker['folder']}" if worker["folder"] else ""
        expected = f"expected to import activemem from {driver['folder']}"
        return f"{expected}, but the import{place} failed: {worker['fault']}"
    if worker["digest"] == driver["digest"]:
        return None
    form = "activemem {version} (files {digest:.8}), in {folder}"
    expected, got = form.format_map(driver), form.format_map(worker)
    return f"expected {expected}; got {got}: install the same version, with the same files, on all nodes"


def check_workers_here(driver: Code) -> None:
    """Raise MachineError if a worker of this machine's cluster imports another copy of activemem."""
    try:
        worker = ray.get(ray.remote(look_at_code).options(num_cpus=0).remote(), timeout=START_S)
    except ray.exceptions.GetTimeoutError:
        raise MachineError(
            f"Ray has started no worker within {START_S:g} s; to train without Ray, add --local"
        ) from None
    fault = code_fault(driver, worker)
    if fault is None and worker["folder"] != driver["folder"]:
        fault = f"expected activemem in {driver['folder']}, got a copy of it in {worker['folder']}"
    if fault is not None:
        raise MachineError(
            f"Ray's workers do not import the code that runs here: {fault}; "
            "to train in this process, add --local"
        )
