"""The command line in a process whose trainings of seed 0 misbehave: misbehaving.py MODE WORDS…"""

import importlib
import itertools
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from activemem.cli.app import main
from activemem.engine.trial.training import Training


def loop():
    """Never end, in Python, whatever is raised."""
    while True:
        with suppress(Exception):
            time.sleep(0.01)


def native():
    """Never come back to Python, and let no other thread run; the file says that it has begun."""
    Path("native").touch()
    sum(itertools.repeat(0))


MODES = {
    "loop": loop,
    "native": native,
    "exit": lambda: sys.exit(0),
    "abort": os.abort,
    "module": lambda: importlib.import_module("no_such_module"),
    "gpu": lambda: torch.zeros(1, device="cuda"),
}

mode, *sys.argv[1:] = sys.argv[1:]
advance = Training.advance


def misbehave(self):
    if self._settings.seed == 0:
        MODES[mode]()
    return advance(self)


Training.advance = misbehave
main()
