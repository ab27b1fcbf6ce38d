"""Benchmark of a training step in a process that keeps freed memory, relative to glibc's default.

The script runs the first trials of some included studies in new processes, alternately with and without kept
memory, and prints CPU seconds and peak memory. The language study needs its corpus, in `data` or
ACTIVEMEM_DATA.

Run: python bench/freed_memory.py [STUDY …]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch

from activemem.engine.core.process import prepare_cpu
from activemem.engine.trial.training import Training
from activemem.studies.study import load_study

STUDIES = ("algorithmic-small", "zoology-figure-2-small", "negative-eigenvalues", "language-modelling-small")
FOLDER = Path(__file__).parents[1] / "studies"
TURNS, STEPS = 3, 8


def measure(study: str) -> None:
    """Print the milliseconds of a step and the memory of this process in MiB."""
    data = Path(os.environ.get("ACTIVEMEM_DATA", "data"))
    training = Training.begin(
        load_study(FOLDER / f"{study}.toml").trials[0].settings, torch.device("cpu"), data
    )
    training.take_steps()
    training.take_steps()
    began = time.process_time()
    for _ in range(STEPS):
        training.take_steps()
    seconds = time.process_time() - began
    print(1000 * seconds / STEPS, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def compare(study: str) -> str:
    """Return time and memory of a process that keeps freed memory and of one that does not, with ratios."""
    found: dict[str, list[list[float]]] = {"as it is": [], "keeps": []}
    for _ in range(TURNS):
        for way, runs in found.items():
            words = [sys.executable, __file__, way, study]
            told = subprocess.run(words, capture_output=True, check=True, text=True).stdout
            runs.append([float(each) for each in told.split()])
    (ms, mib), (kept_ms, kept_mib) = (
        [median(run[place] for run in runs) for place in range(2)] for runs in found.values()
    )
    return f"{kept_ms:8.1f} of {ms:.1f} ms, {kept_ms / ms:.2f}; {kept_mib:.0f} of {mib:.0f} MiB"


def main() -> None:
    """Measure in this process, or compare both settings for each study."""
    match sys.argv[1:]:
        case ["keeps", study]:
            prepare_cpu(1)
            measure(study)
        case ["as it is", study]:
            torch.set_num_threads(1)
            measure(study)
        case studies:
            for study in studies or STUDIES:
                print(f"{study:26}", compare(study), flush=True)


if __name__ == "__main__":
    main()
