"""Start and end of `activemem serve`; its pages are tested in tests/reporting/serve."""

import os
import re
import signal
import socket
import subprocess
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import pytest

from .store_factories import make_partial_store

TOKEN = "a-token-of-some-length"


def test_it_serves_until_it_is_interrupted_and_keeps_the_token_to_itself(tiny):
    make_partial_store(tiny)
    command = [sys.executable, "-m", "activemem", "serve", "--port", "0"]
    environment = {**os.environ, "ACTIVEMEM_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
        try:
            told = server.stdout.readline()
            address = told.split()[-1].partition("?")[0]
            assert told == f"results at {address}?token=…\n"
            with pytest.raises(HTTPError, match="401") as refused:
                urlopen(address)
            refused.value.close()
            browser = build_opener(HTTPCookieProcessor())
            assert "/study/tiny" in browser.open(f"{address}?token={TOKEN}").read().decode()
        finally:
            server.send_signal(signal.SIGINT)
            try:
                status = server.wait(timeout=600)
            finally:
                server.kill()
        assert status == 0


def test_a_folder_without_a_store_is_reported_and_served(run, monkeypatch):
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", lambda _: None)
    result = run("serve", "--port", "0", "--results", "nowhere")
    assert (result.exit_code, f" {Path('nowhere').resolve()} " in result.stderr) == (0, True)


def test_others_are_not_let_in_without_a_token(run):
    result = run("serve", "--host", "0.0.0.0")
    assert result.exit_code == 2
    assert result.stderr.startswith("--host 0.0.0.0: ")


def test_a_port_that_is_taken_is_reported(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
    assert result.exit_code == 2
    assert re.match(f"port {port}: .* --port$", result.stderr)
