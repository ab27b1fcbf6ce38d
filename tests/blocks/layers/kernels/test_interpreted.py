"""The kernels themselves, without a GPU: Triton's interpreter computes what it would be given."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from activemem.blocks.layers.kernels import choice


@pytest.mark.slow
@pytest.mark.skipif(
    choice._installed() is None or find_spec("triton") is None, reason="needs the extra fla, and Triton"
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU computes them")
def test_kernels_give_what_plain_forms_give():
    program = Path(__file__).with_name("interpreted.py")
    ran = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
