"""Fixtures of the tests of blocks: one thread, and the references for the conformance suite."""

import pytest
import torch

from . import equations
from .transducers import neural_gpu_references, seq2seq_references

__all__ = ["equations", "neural_gpu_references", "seq2seq_references"]


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
