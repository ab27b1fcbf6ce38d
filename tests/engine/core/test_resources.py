"""What a machine has for its trials."""

import pytest

from activemem.engine.core.resources import has_multi_process_service


@pytest.mark.parametrize("runs", [False, True])
def test_the_multi_process_service_is_found_by_the_pipe_of_its_daemon(tmp_path, monkeypatch, runs):
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    if runs:
        (tmp_path / "control").touch()
    assert has_multi_process_service() is runs
