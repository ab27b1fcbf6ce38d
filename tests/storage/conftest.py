"""An empty store in a separate folder."""

import pytest

from activemem.storage import Store


@pytest.fixture
def root(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def store(root):
    return Store(root)
