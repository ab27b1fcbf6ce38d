"""An S3 server set in the environment, and an address on it."""

import pytest

from .s3_server import S3Server

ADDRESS = "s3://bucket/some/results"


@pytest.fixture
def server(monkeypatch):
    with S3Server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def address(server):
    return ADDRESS
