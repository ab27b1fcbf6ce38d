"""An empty store in a folder of its own."""

import pytest

from activemem.storage import Store


@pytest.fixture
def root(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def store(root):
    return Store(root)
