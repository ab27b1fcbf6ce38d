"""Tests of blocks: one thread, and the references for the conformance suite."""

import pytest
import torch

from . import references
from .layers import attention_references
from .layers.matrix_states import linear_recurrence_references
from .layers.vector_states import diagonal_references
from .transducers import neural_gpu_references, seq2seq_references

__all__ = [
    "attention_references",
    "diagonal_references",
    "linear_recurrence_references",
    "neural_gpu_references",
    "references",
    "seq2seq_references",
]


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
