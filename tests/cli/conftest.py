"""A working directory of its own for every test, and two ways to run a command in it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from activemem.cli.app import app


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("ACTIVEMEM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run():
    """Run a command in this process: a result with exit_code, stdout and stderr."""

    def invoke(*arguments):
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    return invoke


@pytest.fixture
def process():
    """Run a command in a process of its own, as a user does."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "activemem", *arguments],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
            timeout=120,
            check=False,
        )

    return start
