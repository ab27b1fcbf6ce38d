"""Memory of a step stays with its process, and goes back to the system between trainings."""

import subprocess
import sys

import pytest

from activemem.engine.core.cpu import _glibc

STEPS = """
import os, resource, sys
import torch
from activemem.engine.core.cpu import give_back_memory, prepare_cpu

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def faults(steps):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(steps):
        [torch.ones(2**22) for _ in range(10)]  # 160 MiB, which nothing refers to any more
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "prepared":
    prepare_cpu(1)
faults(1)
found, held = faults(4), resident()
give_back_memory()
print(found, held - resident())
"""


def faults_and_given_back(way):
    words = [sys.executable, "-c", STEPS, way]
    return map(int, subprocess.run(words, capture_output=True, check=True, text=True).stdout.split())


@pytest.mark.heavy  # two processes that import torch
@pytest.mark.skipif(_glibc() is None, reason="another allocator than glibc's stays as it is")
def test_what_a_step_frees_is_there_for_the_next_and_goes_back_after_the_last():
    before, _ = faults_and_given_back("as it is")
    after, given_back = faults_and_given_back("prepared")
    assert after < before / 8
    assert given_back > 2**25
