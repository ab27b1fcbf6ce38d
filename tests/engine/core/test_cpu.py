"""Memory of steps stays in the process, and returns to the system between trainings."""

import platform
import subprocess
import sys

import optuna
import pytest
import torch

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.storage import Store

from ...study_texts import study_text

SEARCHED = study_text(
    model={"recipe": "ff({width})"},
    task={"name": "not"},
    train={"epochs": 1},
    factors={"seed": [0]},
    search={"trials": 1, "metric": "max_length", "direction": "max"},
    space={"width": "integer(4, 8)"},
)

STEPS = """
import ctypes, os, resource, sys
from activemem.engine.core.process import give_back_memory, prepare_cpu

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
BYTES = 24 * 2**20

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def faults(steps):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(steps):
        blocks = [ctypes.c_void_p(library.malloc(ctypes.c_size_t(BYTES))) for _ in range(4)]
        for block in blocks:
            ctypes.memset(block, 1, BYTES)
        for block in reversed(blocks):
            library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "prepared":
    prepare_cpu(1)
faults(2)
found, held = faults(4), resident()
give_back_memory()
print(found, held - resident())
"""


def faults_and_given_back(way):
    words = [sys.executable, "-c", STEPS, way]
    return map(int, subprocess.run(words, capture_output=True, check=True, text=True).stdout.split())


@pytest.mark.heavy  # two processes that import torch
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator than glibc's stays as it is")
def test_freed_memory_is_reused_by_the_next_step_and_returned_after_the_last():
    before, _ = faults_and_given_back("as it is")
    after, given_back = faults_and_given_back("prepared")
    assert after < before / 8
    assert given_back > 2**25


def test_a_local_run_leaves_the_threads_and_optunas_log_level_of_its_caller(tmp_path):
    torch.set_num_threads(2)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    run_study(load_study(SEARCHED), Store(tmp_path), Machine(cpus=1, gpus=0.0), local=True)
    assert (torch.get_num_threads(), optuna.logging.get_verbosity()) == (2, optuna.logging.INFO)
