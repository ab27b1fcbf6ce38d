"""Missing requirements of trackers are reported before a run."""

from importlib.machinery import ModuleSpec

import pytest

from activemem.tracking import contract as opening
from activemem.tracking.contract import TrackingError


@pytest.mark.parametrize("found", [None, ModuleSpec("wandb", None)], ids=["nothing", "folder_of_that_name"])
def test_every_library_that_is_missing_is_reported_with_how_to_install_it(monkeypatch, found, golden):
    monkeypatch.setattr(opening, "find_spec", lambda name: found)
    with golden.raises(TrackingError):
        opening.open_trackers({"tensorboard": "runs", "mlflow": "http://localhost:1", "tensorbord": "runs"})
