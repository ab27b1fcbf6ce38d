"""Programs in separate processes, forked from one that has imported torch and all of activemem.

A new program would take seconds to import torch each time. A forked process behaves like a new program: it
has its own id, group, folder, environment and streams, and ends like any program. Commands that use Ray are
new programs, since Ray does not support forked processes.

This module, run as a program, is the server: it reads requests from the socket that is its standard input.
"""

import atexit
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from functools import cache
from pathlib import Path

PREPARE = """
import atexit
register, atexit.register = atexit.register, lambda *_, **__: None
import polars  # 2.0 waits at its end for threads that a fork has not
atexit.register = register
import pyarrow.parquet
import torch._dynamo  # which torch's optimisers import
from activemem.cli.app import main
from activemem.cli.live import run as _
from activemem.engine.probes import study_probes as _
from activemem.engine.run import driver as _
from activemem.reporting.tables import table as _
from activemem import plugins
plugins._installed.clear()  # each program looks for the packages of its own environment
"""


def start_command(*words, cwd=None, environment=None, stderr=subprocess.PIPE):
    """Start `python -m activemem WORDS` in a new process and session, with pipes for its output."""
    if words[:2] != ("study", "run") or "--local" in words:
        return start_program("activemem", *words, cwd=cwd, environment=environment, stderr=stderr)
    return subprocess.Popen(
        [sys.executable, "-m", "activemem", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        start_new_session=True,
    )


def run_command(*words, cwd=None, environment=None, timeout=600):
    """Return the command's exit status and output, like `subprocess.run`."""
    return _result(start_command(*words, cwd=cwd, environment=environment), words, timeout)


def start_program(program, *words, cwd=None, environment=None, stderr=subprocess.PIPE):
    """Start any program that does not use Ray, given by a module's name or a script's path.

    Modules in the PYTHONPATH of `environment` take precedence. If `stderr` is a descriptor, such as a
    terminal's, the function closes it.
    """
    return _Program(program, words, cwd, environment or {}, stderr)


def run_program(program, *words, cwd=None, environment=None, timeout=600):
    """Return the program's exit status and output."""
    return _result(start_program(program, *words, cwd=cwd, environment=environment), words, timeout)


def _result(started, words, timeout):
    stdout, stderr = started.communicate(timeout=timeout)
    return subprocess.CompletedProcess(words, started.returncode, stdout, stderr)


class _Program:
    """A program in a forked process, with the parts of `subprocess.Popen` that tests use."""

    def __init__(self, program, words, cwd, environment, stderr):
        out, to_out = os.pipe()
        err, to_err = os.pipe() if stderr == subprocess.PIPE else (None, max(stderr, 0) or to_out)
        request = {
            "program": str(program),
            "words": words,
            "cwd": str(cwd or Path.cwd()),
            "environment": {**os.environ, **environment},
        }
        self.returncode, self.pid = None, _server().ask(request, [to_out, to_err])
        for descriptor in {to_out, to_err}:
            os.close(descriptor)
        self.stdout = os.fdopen(out, encoding="utf-8")
        self.stderr = None if err is None else os.fdopen(err, encoding="utf-8")

    def poll(self):
        if self.returncode is None:
            self.returncode = _server().ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout=None):
        end = time.monotonic() + (timeout or float("inf"))
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return self.returncode

    def communicate(self, timeout=None):
        texts = {}

        def read(stream):
            texts[stream] = stream.read()

        streams = [stream for stream in (self.stdout, self.stderr) if stream]
        readers = [threading.Thread(target=read, args=[stream], daemon=True) for stream in streams]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join(timeout)
        for stream in streams:
            stream.close()
        return texts.get(self.stdout), texts.get(self.stderr)

    def __del__(self):
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class _Server:
    """The process that forks programs, as tests use it."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._process = subprocess.Popen([sys.executable, __file__], stdin=theirs)
        theirs.close()
        atexit.register(self._end)

    def _end(self):
        self._socket.close()
        self._process.wait()

    def ask(self, request, descriptors=()):
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return json.loads(self._socket.recv(1 << 20))


@cache
def _server():
    return _Server()


def _serve(requests):
    """Serve requests until there are no more; in each forked child, return the requested program."""
    while True:
        data, descriptors, *_ = socket.recv_fds(requests, 1 << 20, 2)
        if not data:
            os._exit(0)
        request = json.loads(data)
        if "ended" in request:
            found, status = os.waitpid(request["ended"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if found else None
        elif not (answer := os.fork()):
            requests.close()
            _become(request, descriptors)
            return request["program"], request["words"]
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(json.dumps(answer).encode())


def _become(request, descriptors):
    """Set up this forked process like a new program."""
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, descriptor in zip((1, 2), descriptors, strict=True):
        os.dup2(descriptor, stream)
    for descriptor in descriptors:
        os.close(descriptor)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    sys.path[:1] = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(program, words):
    """Run a program, and exit like the interpreter but without freeing objects."""
    sys.argv, status = [program, *words], 0
    try:
        if program.endswith(".py"):
            sys.path[0] = str(Path(program).parent)
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else end.code is not None
    except BaseException:  # noqa: BLE001  told, as the interpreter does
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    requests = socket.socket(fileno=os.dup(0))
    exec(PREPARE, {})
    _run(*_serve(requests))
